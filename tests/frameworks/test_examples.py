"""Every example runs for a few steps."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from installed_commands import environment
from local_servers import free_port
from same_training import steps
from warm_python import WarmPython

EXAMPLES = Path(__file__).parents[2] / "examples"


pytestmark = pytest.mark.filterwarnings("ignore")  # the libraries' own, about the examples' data


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """Runs an example in this process, which has imported torch; returns its standard output."""
    monkeypatch.chdir(tmp_path)

    def in_process(example: str, *arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", [example, *arguments])
        runpy.run_path(str(EXAMPLES / f"{example}.py"), run_name="__main__")
        return capsys.readouterr().out

    return in_process


def run_in_two_processes(example: str, directory: Path, *arguments: str) -> None:
    """Without torchrun, whose own process imports torch too: with what it puts around them."""
    code = f"import runpy; runpy.run_path({str(EXAMPLES / example)!r} + '.py', run_name='__main__')"
    around = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2"}
    started = [
        WarmPython(
            code, *arguments, cwd=directory, env=environment(**around, RANK=rank, LOCAL_RANK=rank)
        )
        for rank in "01"
    ]
    try:
        for process in started:
            done = process.communicate(timeout=240)
            assert done.returncode == 0, done.stderr[-2000:]
    finally:
        for process in started:
            process.kill()


@pytest.mark.parametrize(
    ("example", "place"),
    [
        ("with_lightning", "lightning_logs/version_0/fmapboard"),
        ("with_transformers", "runs/*/fmapboard"),
        ("with_ignite", "fmapboard"),
        ("with_accelerate", "accelerate/fmapboard"),
    ],
)
def test_an_example_runs_and_logs_its_steps(
    example: str, place: str, tmp_path: Path, run: Callable[..., str]
) -> None:
    assert "tensorboard --logdir" in run(example, "--steps=3", f"--logdir={tmp_path}")
    (place_found,) = tmp_path.glob(place)
    assert steps(place_found) == [0]  # of every tenth


def test_the_plain_example_trains_in_two_processes_and_resumes_in_one(
    tmp_path: Path, run: Callable[..., str]
) -> None:
    place = tmp_path / "runs" / "plain_pytorch"
    options = ("--every=2", "--batch=4")
    run_in_two_processes("plain_pytorch", tmp_path, "--steps=3", *options)
    assert steps(place) == [0, 2]
    assert len(list(place.glob("*tfevents*"))) == 1
    run("plain_pytorch", "--steps=6", f"--resume={place / 'checkpoint.pt'}", *options)
    assert steps(place) == [0, 2, 4]
    assert steps(place, "gradient_norm_before_clipping/total") == [0, 2, 4]
