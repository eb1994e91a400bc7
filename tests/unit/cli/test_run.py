"""``fmapboard run``: a script runs as under ``python``, and ends as it does there."""

from __future__ import annotations

import importlib
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from fmapboard.cli.commands.run import _when_imported
from fmapboard.cli.main import run

ENDS = {
    "exit": "import sys\nprint('out')\nsys.exit(3)",
    "message": "import sys\nsys.exit('a message')",
    "own_hook": "import sys\nsys.excepthook = lambda k, v, t: print(k, v, t.tb_lineno)\n1 / 0",
    "exception": "def inner():\n    try:\n        1 / 0\n    except ZeroDivisionError as error:\n"
    "        raise OSError(2, 'no') from error\ninner()",
    "interrupt": "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(9)",
    "syntax": "print('not run')\ndef broken(:",
    "replaced": "import os, sys\nif len(sys.argv) == 3:\n"
    "    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:], 'again'])\nprint(sys.argv)",
}
"""Name -> a script that ends in a way of its own."""
STATE = '''"""A script."""
import atexit, pickle, sys
class Own: pass
count: int = 3
print(sys.argv, sys.path[0], sys.orig_argv[1:], sys._getframe().f_code.co_filename)
for name in sorted(globals()):
    value = globals()[name]
    print(name, value if type(value) in (str, dict, type(None)) else type(value).__name__)
print(type(pickle.loads(pickle.dumps(Own()))) is Own, "numpy" in sys.modules)
atexit.register(lambda: print("exit", sys.modules["__main__"].Own is Own))
'''
CHILDREN = """
import multiprocessing, sys
def child(queue):
    queue.put((__name__, sys.argv, "fmapboard" in sys.modules))
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=child, args=(queue,))
    process.start()
    print(queue.get())
"""
TRAINING = """
import numpy
import random
import torch
from torch import nn
torch.manual_seed(0)
random.seed(0)
numpy.random.seed(0)
layers = nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 4), nn.Softmax(dim=0)
network = nn.Sequential(*layers)
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for _ in range(3):
    images, labels = torch.rand(16, 1, 8, 8), torch.arange(16) % 4
    optimizer.zero_grad()
    nn.functional.cross_entropy(network(images), labels).backward()
    optimizer.step()
print(*(parameter.double().sum().item() for parameter in network.parameters()))
print(torch.rand(1), random.random(), numpy.random.rand())
"""


def outcome(folder: Path, *command: str) -> tuple[int, str, str]:
    """Exit status, output, and what is on stderr beside lines of ours, of a script in a folder."""
    done = subprocess.run(
        [sys.executable, *command, "a", "-b"],
        capture_output=True, text=True, cwd=folder, timeout=60, check=False,
    )  # fmt: skip
    lines = done.stderr.splitlines()
    return done.returncode, done.stdout, "\n".join(x for x in lines if x[:10] != "fmapboard:")


@pytest.mark.parametrize("name", ENDS)
def test_a_script_ends_as_under_python(name: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(ENDS[name])
    ours = outcome(tmp_path, "-m", "fmapboard", "run", "train.py")
    assert ours == outcome(tmp_path, "train.py")


@pytest.mark.parametrize("command", [["train.py"], ["-m", "package"], ["-m", "package.train"]])
def test_a_script_sees_what_it_sees_under_python(command: list[str], tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("name = 'mine'")
    (tmp_path / "train.py").write_text(STATE)
    for name in ("__main__.py", "train.py"):
        (package / name).write_text(STATE + "from . import name\nprint(name)\n")
    ours = outcome(tmp_path, "-m", "fmapboard", "run", "--every", "5", *command)
    assert ours == outcome(tmp_path, *command)
    assert ours[0] == 0, ours[2]


def test_a_spawned_child_runs_without_fmapboard(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(CHILDREN)
    status, output, _ = outcome(tmp_path, "-m", "fmapboard", "run", "train.py")
    assert (status, output) == (0, "('__mp_main__', ['train.py', 'a', '-b'], False)\n")


def test_a_script_that_is_not_there_is_named_with_the_closest_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("")
    with pytest.raises(SystemExit) as ended:
        run(["run", "trian.py", "--lr", "0.1"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == ("fmapboard: 'trian.py': no such script; closest: train.py\n")


def test_without_an_optimizer_one_line_says_so(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('done')")
    done = subprocess.run(
        [sys.executable, "-m", "fmapboard", "run", "train.py"],
        capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert done.stderr == (
        "fmapboard: no optimizer of torch stepped in this process, so nothing is logged\n"
    )
    assert list(tmp_path.iterdir()) == [tmp_path / "train.py"]


def test_warnings_of_fmapboard_stay_out_of_the_scripts_log(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import logging, sys\nlogging.basicConfig(stream=sys.stdout)\n"
        "logging.getLogger('fmapboard').warning('ours')\nlogging.warning('its own')"
    )
    done = subprocess.run(
        [sys.executable, "-m", "fmapboard", "run", "train.py"],
        capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False,
    )  # fmt: skip
    assert done.stdout == "WARNING:root:its own\n"
    assert done.stderr.splitlines()[0] == "fmapboard: ours"


def test_a_rehearsal_names_the_fault_and_leaves_the_script_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    done = subprocess.run(
        [sys.executable, "-m", "fmapboard", "run", "--rehearse", "train.py"],
        capture_output=True, text=True, cwd=tmp_path, timeout=120, check=False,
    )  # fmt: skip
    runpy.run_path(str(tmp_path / "train.py"))
    assert (done.returncode, done.stdout) == (0, capsys.readouterr().out)
    fault = "fault: exchanging one image changes the outputs of others, first in 4 (Softmax)"
    assert done.stderr.count(fault) == 1
    assert done.stderr.count("fmapboard: ") == 1  # the model, and no optimizer of a copy
    assert "fmapboard: watching Sequential, trained by SGD" in done.stderr


def test_two_tools_may_wait_for_one_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "waited_for.py").write_text("value = 3")
    monkeypatch.syspath_prepend(tmp_path)
    seen = []
    for tool in ("first", "second"):
        _when_imported("waited_for", lambda module, tool=tool: seen.append((tool, module.value)))
    module = importlib.import_module("waited_for")
    monkeypatch.delitem(sys.modules, "waited_for")
    assert seen == [("first", 3), ("second", 3)]
    assert "exec_module" not in vars(module.__spec__.loader)
