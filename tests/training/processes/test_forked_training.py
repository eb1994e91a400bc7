"""A process that was forked from one that logs can train, and warns that it does not log."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import warm_python
from event_files import steps_in

Runs = Callable[[str, Path], "subprocess.CompletedProcess[str]"]

_COMMON = """if 1:
    import os, sys, warnings
    import torch
    from torch import nn
    from torch.utils.data import DataLoader
    import fmapboard

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    board = fmapboard.watch(model, sys.argv[1], every=1)

    def train(first, last):
        for number in range(first, last):
            with board.step(number):
                optimizer.zero_grad()
                model(torch.rand(1, 3, 8, 8)).sum().backward()
                optimizer.step()
"""


def new_python(code: str, log_dir: Path) -> subprocess.CompletedProcess[str]:
    """Run the code in a process that has imported nothing yet."""
    command = [sys.executable, "-c", code, str(log_dir)]
    return subprocess.run(command, capture_output=True, text=True, timeout=100)


def said_by(code: str, log_dir: Path, run: Runs = warm_python.run) -> list[str]:
    """Run the code after the common part; its lines on stderr. It must end without an error."""
    done = run(_COMMON + code, log_dir)
    assert done.returncode == 0, done.stderr
    return done.stderr.splitlines()


def steps_in_directory(log_dir: Path) -> list[int]:
    (path,) = log_dir.glob("*tfevents*")
    return sorted({*steps_in(path)})  # the last one also has the verdict


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks")


def test_a_forked_child_that_goes_on_training_warns_once_that_it_does_not_log(
    tmp_path: Path,
) -> None:
    code = """
    train(0, 3)
    child = os.fork()
    if child == 0:
        train(3, 6)
        board.flush()
        board.close()
        sys.exit()
    assert os.waitpid(child, 0)[1] == 0
    train(3, 5)
    board.close()
    print(child)
    """
    said = said_by(code, tmp_path)
    assert len(said) == 1
    assert "so its steps are not logged" in said[0]
    assert "call fmapboard.watch in this process with a separate log_dir" in said[0]
    assert steps_in_directory(tmp_path) == [0, 1, 2, 3, 4]


def test_a_forked_child_that_calls_watch_again_logs_into_its_own_directory(tmp_path: Path) -> None:
    code = """
    train(0, 3)
    child = os.fork()
    if child == 0:
        board = fmapboard.watch(model, sys.argv[1] + "/child", every=1)
        train(0, 7)
        board.close()
        sys.exit()
    assert os.waitpid(child, 0)[1] == 0
    board.close()
    """
    assert said_by(code, tmp_path) == []
    assert steps_in_directory(tmp_path / "child") == list(range(7))


def test_data_loader_workers_do_not_warn(tmp_path: Path) -> None:
    code = """
    train(0, 2)
    loader = DataLoader(range(20), num_workers=2, multiprocessing_context="fork")
    assert len(list(loader)) == 20
    train(2, 4)
    board.close()
    """
    assert said_by(code, tmp_path) == []
    assert steps_in_directory(tmp_path) == [0, 1, 2, 3]


def test_no_thread_of_fmapboard_imports_anything(tmp_path: Path) -> None:
    code = """
    import threading
    from importlib.abc import MetaPathFinder

    class Spy(MetaPathFinder):
        def find_spec(self, name, path, target=None):
            if threading.current_thread() is not threading.main_thread():
                print(threading.current_thread().name, "imports", name, file=sys.stderr)

    sys.meta_path.insert(0, Spy())
    train(0, 3)
    board.close()
    torch.set_num_threads(2)
    # NaN and gradients that are added up give findings.
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 8000)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    board = fmapboard.watch(
        model, sys.argv[1] + "/second", every=1, probe=torch.rand(2, 3, 8, 8), inputs=True,
        activation_gradients=True, attribution=True, colormap="viridis",
    )
    images = torch.rand(4, 3, 8, 8)
    with board.step(0):
        model(images).square().mean().backward()
        optimizer.step()
    images[0, 0, 0, 0] = float("nan")
    with board.step(1):
        model(images).square().mean().backward()
        optimizer.step()
    board.close()
    """
    said = said_by(code, tmp_path, new_python)
    assert [line for line in said if " imports " in line] == []
    assert [line for line in said if "gradients_not_cleared" in line]
    assert [line for line in said if "nonfinite: " in line]


def test_a_forked_child_has_no_thread_that_explains_and_closes_at_once(tmp_path: Path) -> None:
    code = """
    import threading
    names = lambda: [t.name for t in threading.enumerate() if t.name == "fmapboard-usage"]
    assert names()
    child = os.fork()
    if child == 0:
        with board.step(0):
            model(torch.rand(1, 3, 8, 8)).sum().backward()
        assert not names()
        board.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    """
    said_by(code, tmp_path)
