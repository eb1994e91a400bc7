"""Every example runs for a few steps."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from installed_commands import environment
from same_training import steps

ROOT = Path(__file__).parents[2]


def run(example: str, directory: Path, *arguments: str, processes: int = 1) -> str:
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    done = subprocess.run(
        [
            sys.executable,
            *(launcher if processes > 1 else []),
            str(ROOT / "examples" / f"{example}.py"),
            *arguments,
        ],
        cwd=directory,
        env=environment(HF_HUB_OFFLINE="1"),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize(
    ("example", "place", "expected"),
    [
        ("with_lightning", "lightning_logs/version_0/fmapboard", [0, 10]),
        ("with_transformers", "runs/*/fmapboard", [0, 10]),
        ("with_ignite", "fmapboard", [0, 10]),
        ("with_accelerate", "accelerate/fmapboard", [0, 10]),
    ],
)
def test_an_example_runs_and_logs_its_steps(
    example: str, place: str, expected: list[int], tmp_path: Path
) -> None:
    assert "tensorboard --logdir" in run(example, tmp_path, "--steps=11", f"--logdir={tmp_path}")
    (place_found,) = tmp_path.glob(place)
    assert steps(place_found) == expected


def test_the_plain_example_trains_in_two_processes_and_resumes_in_one(tmp_path: Path) -> None:
    place = tmp_path / "runs" / "plain_pytorch"
    options = ("--every=2", "--batch=4")
    run("plain_pytorch", tmp_path, "--steps=3", *options, processes=2)
    assert steps(place) == [0, 2]
    assert len(list(place.glob("*tfevents*"))) == 1
    run("plain_pytorch", tmp_path, "--steps=6", f"--resume={place / 'checkpoint.pt'}", *options)
    assert steps(place) == [0, 2, 4]
    assert steps(place, "gradient_norm_before_clipping/total") == [0, 2, 4]
