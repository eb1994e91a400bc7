"""`fmapboard why` on real runs, and what a run says of itself when its logger is closed."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from checked_runs import NAN_AT, STEPS, batches, check, network, train, why
from PIL import Image
from run_reader import read
from tab_client import open_tab
from tensorboard.util import tensor_util
from torch import nn
from torch.utils.tensorboard import SummaryWriter

import fmapboard
from fmapboard.errors import ON_ERROR
from fmapboard.formats.tags import SUMMARY_FILE
from fmapboard.writers.folder import MemoryWriter
from fmapboard.writers.pipeline import Pipeline


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``healthy``, ``jump``, in which channels die, and ``nan``."""
    root = tmp_path_factory.mktemp("judged")
    for name in ("healthy", "jump", "nan"):
        torch.manual_seed(0)
        train(root / name, network(), fault="" if name == "healthy" else name)
    return root


def judged(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> list[dict[str, Any]]:
    """The objects of ``fmapboard why --json``."""
    return [json.loads(line) for line in why(capsys, "--json", *arguments)[1].splitlines()]


def test_a_fault_is_named_with_evidence_and_the_next_step(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, output, errors = why(capsys, runs / "nan")
    assert (status, errors) == (1, "")
    lines = output.splitlines()
    assert lines[0] == f"fault: {runs / 'nan'} (8 layers × {STEPS} steps, the last one 11)"
    assert lines[1].startswith(f"cause: nonfinite: NaN since step {NAN_AT}, first in `4`, whose ")
    assert lines[2].startswith("means: The fault is in the weights: `4.weight` is not finite")
    (following,) = [line for line in lines if line.startswith("next: ")]
    assert following.endswith("See `fmapboard docs checks#nonfinite`")
    assert not [line for line in lines if line.startswith("not checked: not_in_optimizer")]


def test_the_object_of_a_run_has_the_cause_as_check_tells_it(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (answer,) = judged(capsys, runs / "nan")
    assert set(answer) == {
        "run", "verdict", "learns", "line", "cause", "consequences", "evidence", "next",
        "not_checked", "no_loss",
    }  # fmt: skip
    listed = json.loads(check(capsys, "--json", runs / "nan")[1])
    assert answer["cause"] in listed
    assert all(each in listed for each in answer["consequences"])
    assert answer["not_checked"] == {}  # the network has no BatchNorm
    assert [each for each in answer["evidence"] if each.startswith("median update ")]
    (suspicion,), (nothing,) = judged(capsys, runs / "jump"), judged(capsys, runs / "healthy")
    assert (suspicion["verdict"], suspicion["cause"]["class"]) == ("suspicion", "note")
    assert (nothing["verdict"], nothing["cause"], nothing["consequences"]) == (
        "not known", None, [],
    )  # fmt: skip
    assert nothing["learns"] is None


def test_of_several_runs_the_worst_comes_first_and_only_a_fault_ends_with_1(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = judged(capsys, runs)
    assert [(Path(one["run"]).name, one["verdict"]) for one in answers] == [
        ("nan", "fault"), ("jump", "suspicion"), ("healthy", "not known"),
    ]  # fmt: skip
    text = why(capsys, runs / "healthy", runs / "jump")[1]
    assert [block.split(":")[0] for block in text.split("\n\n")] == ["suspicion", "not known"]
    assert [why(capsys, runs / name)[0] for name in ("nan", "jump", "healthy")] == [1, 0, 0]
    assert why(capsys, runs / "nan", "--without", "nonfinite")[0] == 0
    (without,) = judged(capsys, runs / "nan", "--without", "nonfinite")
    assert without["not_checked"]["nonfinite"] == "switched off"


def test_what_cannot_be_read_ends_with_2(
    tmp_path: Path, runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "missing", tmp_path / "empty"):
        status, output, errors = why(capsys, "--json", path)
        assert (status, output, errors.count("\n")) == (2, "", 1)
    (tmp_path / "file").write_text("")
    status, _, errors = why(capsys, runs / "nan", "--pictures", tmp_path / "file" / "below")
    assert (status, "is a file" in errors) == (2, True)


def broken_checks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module with a check whose finding of one run cannot be ordered, and the check's name."""
    (folder / "broken_checks.py").write_text(
        "from fmapboard.checks import Finding\n"
        "class OfJump:\n"
        "    kind = 'of_jump'\n"
        "    def __call__(self, record):\n"
        "        if not record.run.endswith('jump'):\n"
        "            return []\n"
        "        return [Finding(message='it is so', since_step='12')]\n"
    )
    monkeypatch.syspath_prepend(folder)
    return "broken_checks:OfJump"


def test_a_run_that_cannot_be_read_or_judged_costs_its_own_line_only(
    runs: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "empty").mkdir()
    paths = [runs / "healthy", tmp_path / "empty", runs / "jump", runs / "nan"]
    name = broken_checks(tmp_path, monkeypatch)
    status, output, errors = why(capsys, "--json", "--check", name, *paths)
    assert status == 2
    answers = [json.loads(line) for line in output.splitlines()]
    assert [(Path(one["run"]).name, one["verdict"]) for one in answers] == [
        ("nan", "fault"), ("healthy", "not known"),
    ]  # fmt: skip
    unread, unjudged = errors.splitlines()
    assert unread.startswith(f"fmapboard: {tmp_path / 'empty'}: no event files")
    assert unjudged.startswith(f"fmapboard: {runs / 'jump'}: TypeError: ")
    status, output, errors = check(capsys, "--json", "--check", name, *paths[:2], runs / "nan")
    assert (status, errors.count("\n")) == (2, 1)
    assert {Path(one["run"]).name for one in json.loads(output)} == {"nan"}


def test_up_to_three_pictures_are_written_and_their_paths_are_told(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "pictures"
    _, output, _ = why(capsys, runs / "nan", runs / "healthy", "--pictures", folder)
    told = [line.split(": ", 1)[1] for line in output.splitlines() if line.startswith("picture: ")]
    assert sorted(told) == sorted(map(str, folder.iterdir()))
    assert [Path(path).name for path in told] == [
        f"nan_feature_maps_16x8x3x3_4_step{NAN_AT}.png",
        f"nan_network_input_highest_loss_step{NAN_AT - 1}.png",  # without a loss later on
        f"nan_network_input_sample_0_step{NAN_AT}.png",
        f"healthy_network_input_highest_loss_step{STEPS - 1}.png",
        f"healthy_network_input_sample_0_step{STEPS - 1}.png",
    ]
    for path in told:
        with Image.open(path) as picture:
            assert picture.format == "PNG"
    answers = judged(capsys, runs / "nan", "--pictures", folder)
    assert answers[0]["pictures"] == told[:3]


def test_it_works_without_torch_and_on_a_run_that_is_still_written(
    runs: Path, tmp_path: Path
) -> None:
    (file,) = (runs / "nan").glob("*tfevents*")
    (tmp_path / file.name).write_bytes(file.read_bytes()[:-7])
    code = (
        "import sys\n"
        "sys.modules['torch'] = sys.modules['torchvision'] = None\n"
        "from fmapboard.cli.main import run\n"
        f"run(['why', '--json', '--pictures', {str(tmp_path)!r}, {str(tmp_path)!r}])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert "still being written, or cut off" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    answer = json.loads(done.stdout)
    assert (answer["verdict"], answer["cause"]["kind"]) == ("fault", "nonfinite")
    assert len(answer["pictures"]) == 3


def text_of(log_dir: Path, tag: str = "fmapboard/why") -> list[str]:
    (newest,) = read(log_dir).Tensors(tag)
    text: str = tensor_util.make_ndarray(newest.tensor_proto)[()].decode()
    return text.split("\n\n")


@pytest.mark.parametrize("name", ["healthy", "jump", "nan"])
def test_the_text_the_file_and_the_tab_say_the_same_as_the_command(
    name: str, runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stored = json.loads((runs / name / SUMMARY_FILE).read_text())
    (answer,) = judged(capsys, runs / name)
    assert stored == answer
    lines = why(capsys, runs / name)[1].splitlines()
    hints = [line for line in lines if line.startswith("proof: none was tried")]
    assert len(hints) == (name == "nan")  # which only the command gives
    lines = [line for line in lines if line not in hints]
    assert text_of(runs / name) == lines
    line = open_tab(runs).ask("data/findings", run=name)["line"]
    assert (line["state"], line["text"]) == (answer["verdict"], answer["line"])
    rest = [(remark["label"], remark["text"]) for remark in line["rest"]]
    of_command = [line.split(": ", 1) for line in lines[-len(rest) :]]
    for (label, text), (shown, named) in zip(rest, of_command, strict=True):
        kind = named.split(": ")[0] if label == "may follow from it" else ""
        assert (label, f"{kind}: {text}" if kind else text) == (shown, named)
        assert not kind or kind in {finding["kind"] for finding in answer["consequences"]}
    assert answer["line"] in lines[1]
    assert [one for one in answer["evidence"] if one.startswith("loss 2.")]


def closed(log_dir: Path | None = None, **options: Any) -> None:
    """Train with an infinite weight and close the logger."""
    torch.manual_seed(0)
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with torch.no_grad():
        model.get_parameter("2.weight")[0, 0, 0, 0] = float("inf")
    with fmapboard.watch(model, log_dir, optimizer=optimizer, every=1, **options) as board:
        for images, classes in batches(3):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), classes).backward()
            optimizer.step()
    board.close()


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    said = [record for record in caplog.records if "fmapboard: fault: " in record.getMessage()]
    assert {record.levelno for record in said} <= {logging.WARNING}
    return [record.getMessage() for record in said]


def test_a_fault_is_logged_once_when_the_logger_is_closed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    closed(tmp_path / "run", name="net")
    (said,) = logged(caplog)
    lines = text_of(tmp_path / "run", "net.fmapboard/why")
    assert said == "fmapboard: " + "\n  ".join(lines)
    assert (tmp_path / "run" / f"net.{SUMMARY_FILE}").exists()


def test_without_event_files_it_is_logged_only_and_without_checks_not_at_all(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    writer = MemoryWriter()
    closed(writer=writer)
    assert len(logged(caplog)) == 1
    assert [step.step for step in writer.steps] == [0, 1, 2]
    caplog.clear()
    closed(tmp_path, checks=False)
    assert logged(caplog) == []
    assert not (tmp_path / SUMMARY_FILE).exists()
    torch.manual_seed(0)
    train(tmp_path / "healthy", network())
    assert "nothing found" not in caplog.text


def test_a_summary_writer_that_the_user_has_closed_begins_no_further_file(tmp_path: Path) -> None:
    writer = SummaryWriter(tmp_path)
    torch.manual_seed(0)
    model = network()
    with fmapboard.watch(model, writer=writer, every=1) as board:
        for step, (images, _) in enumerate(batches(2)):
            with board.step(step):
                model(images).sum().backward()
        board.flush()
        writer.close()
    assert len(list(tmp_path.glob("*tfevents*"))) == 1
    assert json.loads((tmp_path / SUMMARY_FILE).read_text())["verdict"] == "not known"


def test_an_error_while_it_is_written_does_not_reach_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*arguments: object) -> None:
        raise RuntimeError("no verdict")

    monkeypatch.setattr(Pipeline, "_write_verdict", fail)
    monkeypatch.delenv(ON_ERROR)
    closed(tmp_path)
    assert "verdict: RuntimeError: no verdict; the run is logged without its verdict" in caplog.text
    assert read(tmp_path).Tags()["tensors"]
