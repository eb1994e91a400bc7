"""How the trainings that are kept apart are run: the table, the figures and the judge's sheet."""

from __future__ import annotations

import importlib
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
ACCEPTANCE = ROOT / "tests" / "acceptance"
BENCHMARKS = ROOT / "benchmarks"
AUTHOR = '''
import torch
import fmapboard

def lines(run, seed, wrong):
    """A linear layer on sums.
    MISTAKE: the rate is
    0."""
    torch.manual_seed(seed)
    net = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.0 if wrong else 0.2)
    board = fmapboard.watch(net, run, every=5, optimizer=optimizer)
    losses = []
    for _ in range(60):
        inputs = torch.randn(16, 2)
        loss = torch.nn.functional.mse_loss(net(inputs), inputs.sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    board.close()
    return losses, -losses[-1]

def fails(run, seed):
    """Ends with an error."""
    raise RuntimeError("out of\\nmemory")

PAIRS = [lines]
HEALTHY = [fails]
'''


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Imports a module by its name; the harness is gone from `sys.modules` afterwards."""
    monkeypatch.syspath_prepend(str(ACCEPTANCE))
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if name.startswith("kept_apart") or name in ("beside", "beside_tools", "first_batch"):
            del sys.modules[name]


def row(load: Any, version: str, held_out: float, end: float = 1.0, **values: Any) -> Any:
    """A training of alder's case "rate" whose loss starts at 2."""
    return load("kept_apart.figures").Row(
        "alder", "rate", version, held_out=held_out, loss_start=2.0, loss_end=end, **values
    )


@pytest.mark.parametrize(
    ("held_out", "end", "untrained", "expected"),
    [
        (0.24, 0.0, 0.2, (True, "held-out")),  # gains 0.04 of 0.6, however far the loss fell
        (0.27, 2.0, 0.2, (False, "held-out")),
        (math.nan, 0.0, 0.2, (True, "held-out")),
        (0.8, 1.95, 0.8, (True, "loss")),  # the right one gains nothing over the untrained one
        (0.8, 1.85, 0.9, (False, "loss")),
        (0.8, math.nan, 0.9, (True, "loss")),
    ],
)
def test_a_run_learns_nothing_below_a_tenth_of_what_the_right_one_gains(
    load: Any, held_out: float, end: float, untrained: float, expected: tuple[bool, str]
) -> None:
    wrong = row(load, "wrong", held_out, end)
    right = row(load, "right", 0.8)
    found = load("kept_apart.figures").learns_nothing(
        wrong, right, row(load, "untrained", untrained)
    )
    assert found == expected


def test_the_figures_count_by_author_and_in_all(load: Any) -> None:
    birch = load("kept_apart.figures").Row("birch", "gan", "healthy", state="suspicion", notes=2)
    rows = [
        row(load, "right", 0.8, state="learns", outlets="agree"),
        row(load, "wrong", 0.2, 2.0, state="learns", outlets="differ: tab"),
        row(load, "untrained", 0.2, 2.0),
        birch,
    ]
    text = load("kept_apart.figures").figures(rows, {("alder", "rate"): "symptom"})
    assert "| alder | 1 | 0 | 1 | 0 | 0 | 0 |" in text
    assert "| alder | 1 | 0 | 0 (0 %) | 1 | 0 (0 %) |" in text
    assert "| alder | 1 | 0 | 0 (0 %) | learns 1 | 1 of 2 |" in text
    assert "| birch | 1 | 0 | 1 (100 %) | suspicion 1 | 1 of 1 |" in text
    assert "| all | 2 | 0 | 1 (50 %) | learns 1, suspicion 1 | 2 of 3 |" in text


def test_a_table_of_texts_with_line_breaks_is_read_as_it_was_written(
    load: Any, tmp_path: Path
) -> None:
    table = load("kept_apart.figures")
    rows = [row(load, "wrong", 0.5, notes=2, screen='two\nlines, a "quote" and C:\\new')]
    table.write(rows, tmp_path / "kept.tsv")
    assert len((tmp_path / "kept.tsv").read_text().splitlines()) == 2
    assert table.read(tmp_path / "kept.tsv") == rows


def item(load: Any, tool: str, version: str, text: str = "said") -> Any:
    mistake = "the rate is 0" if version == "wrong" else ""
    return load("kept_apart.sheet").Item(tool, "alder", "rate", version, "A net.", mistake, text)


def test_a_sheet_names_no_tool_and_keeps_what_was_judged(load: Any, tmp_path: Path) -> None:
    sheet = load("kept_apart.sheet")
    first = item(load, "torchmortem", "wrong")
    sheet.write_sheet([first, item(load, "guardtower", "right")], tmp_path, sheet.FIRST)
    text = (tmp_path / "sheet.md").read_text()
    assert "Wrong in it: the rate is 0\n" in text
    assert "Wrong in it: nothing.\n" in text
    assert "torchmortem" not in text
    assert "guardtower" not in text
    judgement = tmp_path / "judgement.tsv"
    judgement.write_text(
        judgement.read_text().replace(f"{first.number}\t\t", f"{first.number}\tNamed\tyes")
    )
    sheet.write_sheet([first, item(load, "runmedic", "wrong")], tmp_path, sheet.FIRST)
    assert sheet.judged(tmp_path) == {
        ("torchmortem", "alder", "rate", "wrong"): "named",
        ("runmedic", "alder", "rate", "wrong"): "",
    }
    judgement.write_text("number\tjudgement\twhy\n1\tgood\t\n")
    with pytest.raises(ValueError, match=r"^judgement 'good' of 1: expected one of named, symptom"):
        sheet.judged(tmp_path)


def test_an_answer_is_shown_without_names_frames_links_and_repetitions(load: Any) -> None:
    text = "\n".join(
        [
            "┏━━━━┓\x1b[31m",
            "Torch-Audit of /tmp/run: FAIL",
            *(f"  WARN  step {step}: 99.{step} % dead" for step in range(5)),
            "not checked: labels",
            "Lower the rate. See `fmapboard docs checks#rate`",
        ]
    )
    assert load("kept_apart.sheet").anonymous(text, ("torch-audit",), "/tmp/run").splitlines() == [
        "the tool of run: FAIL",
        "  WARN  step 0: 99.0 % dead",
        "  WARN  step 1: 99.1 % dead",
        "  WARN  step 2: 99.2 % dead",
        "  … (more such lines)",
        "Lower the rate.",
    ]


@pytest.mark.sweep  # starts a server of processes
def test_trainings_are_kept_with_what_every_outlet_says(load: Any, tmp_path: Path) -> None:
    (tmp_path / "maple.py").write_text(AUTHOR)
    command = [sys.executable, str(ACCEPTANCE / "kept_apart" / "run.py")]
    command += ["--cases", str(tmp_path), "--runs", str(tmp_path / "runs")]
    command += ["--out", str(tmp_path / "kept.tsv"), "--jobs", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stderr
    rows = load("kept_apart.figures").read(tmp_path / "kept.tsv")
    told = [(one.case, one.version, one.mistake, one.kind, one.outlets) for one in rows]
    assert told == [
        ("lines", "right", "", "", "agree"),
        ("lines", "wrong", "the rate is 0.", "zero_rate", "agree"),
        ("lines", "untrained", "", "", ""),
        ("fails", "healthy", "", "", ""),
    ]
    right, wrong, untrained, fails = rows
    assert right.held_out > -0.01
    assert untrained.held_out == wrong.held_out < -0.1
    assert fails.error.startswith("RuntimeError: out of\nmemory")
    again = subprocess.run(command, capture_output=True, text=True, timeout=250)
    assert (again.returncode, again.stderr) == (0, "")


@pytest.mark.sweep
def test_a_training_that_takes_too_long_is_ended(load: Any, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, time\n"
        f"sys.path.insert(0, {str(ACCEPTANCE)!r})\n"
        "from pathlib import Path\n"
        "from kept_apart.trainings import isolated, start_server\n"
        "if __name__ == '__main__':\n"
        "    start_server()\n"
        "    print(isolated(Path('log.txt'), 30, int, 'three'))\n"
        "    print(isolated(Path('log.txt'), 1, time.sleep, 60))\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=100, cwd=tmp_path
    )
    assert done.stdout.splitlines() == [
        "ValueError: invalid literal for int() with base 10: 'three'",
        "not over after 1 s",
    ], done.stderr


def test_the_table_beside_others_counts_words_by_tool(load: Any) -> None:
    beside = load("beside")
    file = ACCEPTANCE / "kept_apart" / "alder.py"
    right, wrong = (
        beside.Training(file, "rate", version, "A net.", "the rate is 0")
        for version in ("right", "wrong")
    )
    said = [
        (("torchmortem", right), {"text": "fine"}),
        (("torchmortem", wrong), {"text": "low rate"}),
        (("guardtower", right), {"text": ""}),
        (("guardtower", wrong), {"text": "PASS"}),
    ]
    words = {
        ("torchmortem", "alder", "rate", "right"): "warned",
        ("torchmortem", "alder", "rate", "wrong"): "named",
        ("guardtower", "alder", "rate", "wrong"): "silent",
    }
    assert beside.table(words, said, {"torchmortem": "0.1.1"}).splitlines()[2:] == [
        "| torchmortem 0.1.1 | 1 | 1 | 0 | 0 | 0 | 0 | 1 | 1 | 0 |",
        "| guardtower | 1 | 0 | 0 | 0 | 1 | 0 | 1 | 0 | 1 |",
    ]
