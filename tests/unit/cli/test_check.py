"""`fmapboard check` on real runs: what it says, its exit status, and what it can read."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from checked_runs import JUMP_AT, NAN_AT, STEPS, batches, check, found, network, train
from tensorboard.compat.proto import event_pb2
from torch import nn

import fmapboard
from fmapboard.errors import ConfigurationError
from fmapboard.formats.framing import frame
from fmapboard.report.write import write_report
from fmapboard.writers.tensorboard import TensorBoardWriter


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``healthy``, ``nan`` and ``jump``, and a run of two models."""
    root = tmp_path_factory.mktemp("checked")
    for name in ("healthy", "nan", "jump"):
        torch.manual_seed(0)
        train(root / name, network(), fault="" if name == "healthy" else name)
    return root


def test_a_healthy_run(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, output, errors = check(capsys, runs / "healthy")
    assert (status, errors) == (0, "")
    lines = output.splitlines()
    assert lines[0] == str(runs / "healthy")
    assert lines[1].startswith(f"  not known: nothing found in 8 layers × {STEPS} steps; ")
    assert check(capsys, "--json", runs / "healthy")[:2] == (0, "[]\n")


def test_links_to_runs_are_followed(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a_run").symlink_to(runs / "nan")
    status, output, errors = check(capsys, tmp_path)
    assert (status, errors) == (1, "")
    assert output.splitlines()[0] == str(tmp_path / "a_run")


def test_nan_is_a_fact_with_its_first_place(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, output, _ = check(capsys, runs / "nan")
    assert status == 1
    warning = next(line for line in output.splitlines() if "warning: nonfinite" in line)
    assert f"NaN since step {NAN_AT}, first in `4`" in warning
    assert "The fault is in the weights: `4.weight` is not finite, so" in warning
    assert "Picture: `feature_maps_16x8x3x3/4`. See `fmapboard docs checks#nonfinite`" in warning
    facts = [one for one in found(capsys, runs / "nan") if one["class"] == "warning"]
    (nonfinite,) = facts
    assert list(nonfinite) == [
        "kind", "class", "layer", "since_step", "value", "healthy", "message"
    ]  # fmt: skip
    assert (nonfinite["kind"], nonfinite["layer"], nonfinite["since_step"]) == (
        "nonfinite", "4", NAN_AT,
    )  # fmt: skip


def test_channels_that_die_in_a_jump_are_a_note(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, output, _ = check(capsys, runs / "jump")
    assert status == 0
    whole = f"100 % of 8 channels dead in `2` (after `3`) since step {JUMP_AT + 1}"
    assert f"  note: dead: {whole}; nothing of the input reaches 1 layer behind it (" in output
    (dead,) = [one for one in found(capsys, runs / "jump") if one["kind"] == "dead"]
    assert (dead["class"], dead["layer"], dead["value"]) == ("note", "2", 1.0)
    assert dead["since_step"] == JUMP_AT + 1
    assert dead["healthy"] == "below 72 %"


def test_several_runs_are_told_apart(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    listed = found(capsys, runs)
    assert {Path(one["run"]).name for one in listed} == {"nan", "jump"}
    assert check(capsys, runs / "healthy", runs / "nan")[0] == 1
    both = found(capsys, runs / "nan", runs / "nan")
    assert all("run" not in one for one in both)


def test_a_check_can_be_silenced(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(capsys, runs / "nan", "--without", "nonfinite")[0] == 0
    status, _, errors = check(capsys, runs / "nan", "--without", "nonfinitee")
    assert (status, "closest: nonfinite" in errors) == (2, True)
    status, _, errors = check(capsys, runs / "nan", "--without", "xyz")
    assert (status, "'xyz'; `fmapboard docs checks` lists them" in errors) == (2, True)


def test_a_check_of_ones_own(
    runs: Path,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "my_checks.py").write_text(
        "from fmapboard.checks import Finding\n"
        "class Mine:\n"
        "    kind = 'mine'\n"
        "    def __call__(self, record):\n"
        "        return [Finding(kind='mine', class_='warning', message='it is so')]\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert check(capsys, runs / "healthy", "--check", "my_checks:Mine")[0] == 1
    own = ("--check", "my_checks:Mine", "--without", "mine")
    assert check(capsys, runs / "healthy", *own)[0] == 0
    for wrong in ("my_checks:Theirs", "no_such_module:X", "my_checks", ":"):
        status, _, errors = check(capsys, runs / "healthy", "--check", wrong)
        assert (status, errors.startswith("fmapboard: --check")) == (2, True)


def test_bad_usage_and_unreadable_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    (tmp_path / "foreign").mkdir()
    event = event_pb2.Event(step=1)
    event.summary.value.add(tag="loss", simple_value=1.0)
    framed(tmp_path / "foreign" / "events.out.tfevents.1.x", event.SerializeToString())
    (tmp_path / "zeros").mkdir()
    (tmp_path / "zeros" / "events.out.tfevents.1.x").write_bytes(bytes(1000))
    for name in ("empty", "file", "foreign", "zeros", "missing"):
        status, output, errors = check(capsys, tmp_path / name)
        assert (status, output, errors.count("\n")) == (2, "", 1), name
        assert str(tmp_path / name) in errors
        expected = "; give the log_dir of fmapboard.watch"
        if name == "file":
            expected = f"; give {tmp_path}\n"
        elif name == "missing":
            expected = "; there are: "
        assert expected in errors
    assert check(capsys)[0] == 2
    assert check(capsys, "--nonsense")[0] == 2


def framed(path: Path, *contents: bytes) -> None:
    """Write records in the format of event files."""
    with path.open("ab") as file:
        file.writelines(part for content in contents for part in frame(content))


def test_a_run_that_is_still_written_is_read_up_to_its_last_whole_record(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (file,) = (runs / "nan").glob("*tfevents*")
    whole = file.read_bytes()
    copy = tmp_path / file.name
    for size in (len(whole) - 1, len(whole) * 3 // 4, len(whole) // 2, 1000):
        copy.write_bytes(whole[:size])
        status, _, errors = check(capsys, tmp_path)
        assert status in (0, 1, 2)
        assert "still being written, or cut off" in errors
    copy.write_bytes(whole[:-1])
    assert check(capsys, tmp_path)[0] == 1


def test_what_cannot_be_read_is_named_and_the_rest_is_checked(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(runs / "healthy", tmp_path / "logs" / "good")
    (tmp_path / "logs" / "bad").mkdir()
    for run in ("good", "bad"):  # reading the beginning of this file fails
        (tmp_path / "logs" / run / "a.tfevents").symlink_to("/proc/self/mem")
    status, output, errors = check(capsys, tmp_path / "logs")
    assert (status, output.count(str(tmp_path))) == (0, 1)
    named = [f"{tmp_path}/logs/{run}: a.tfevents cannot be read" for run in ("bad", "good")]
    assert all(each in errors for each in named)
    assert check(capsys, tmp_path / "logs" / "bad")[0] == 2
    report = write_report([tmp_path / "logs"], tmp_path / "out.html")
    assert report.runs == ("good",)
    assert [p.split(": ")[0] for p in report.problems] == [
        f"{tmp_path}/logs/good", f"{tmp_path}/logs/bad",
    ]  # fmt: skip
    with pytest.raises(ConfigurationError, match=r"bad: a\.tfevents cannot be read"):
        write_report([tmp_path / "logs" / "bad"], tmp_path / "out.html")


def test_a_damaged_record_is_left_out(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (file,) = (runs / "healthy").glob("*tfevents*")
    damaged = bytearray(file.read_bytes())
    damaged[len(damaged) // 2] ^= 0xFF
    (tmp_path / file.name).write_bytes(damaged)
    status, _, errors = check(capsys, tmp_path)
    assert status == 0
    assert "is damaged" in errors


def test_huge_and_hostile_values_are_no_error(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (file,) = (runs / "healthy").glob("*tfevents*")
    shutil.copy(file, tmp_path)
    events = []
    for step in range(-2, STEPS + 2):
        event = event_pb2.Event(step=step * 2**40)
        for group in ("gradient_norm", "update_ratio", "batchnorm_gap"):
            for layer in ("0", "2", "4", "6"):
                value = (1e38, float("nan"), float("inf"), -1e38)[step % 4]
                event.summary.value.add(tag=f"{group}/{layer}.weight", simple_value=value)
        bad = event.summary.value.add(tag="gradient_norm/0.weight")
        bad.tensor.dtype = 9999
        event.summary.value.add(tag="update_ratio/" + "x" * 10_000)
        event.summary.value.add(tag="fmapboard_overview").tensor.string_val.append(b"\xff")
        event.summary.value.add(tag="fmapboard_findings").tensor.string_val.append(b"{" * 10_000)
        events.append(event.SerializeToString())
    framed(tmp_path / f"{file.name}.2", *events, b"no event at all")
    status, output, errors = check(capsys, "--json", tmp_path)
    assert status in (0, 1)
    json.loads(output, parse_constant=pytest.fail)
    assert "Traceback" not in errors


def test_a_resumed_run_forgets_what_it_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.manual_seed(0)
    train(tmp_path, network(), fault="nan")
    assert check(capsys, tmp_path)[0] == 1
    train(tmp_path, network(), start_step=NAN_AT - 1)
    assert check(capsys, tmp_path)[0] == 0


def test_models_with_names_are_told_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.manual_seed(0)
    writer = TensorBoardWriter(tmp_path)
    for name in ("one", "two"):
        model = network()
        if name == "two":
            nn.init.constant_(model.get_parameter("2.weight"), 0.05)
            nn.init.constant_(model.get_parameter("2.bias"), 0.05)
        board = fmapboard.watch(model, writer=Shared(writer), name=name, every=1)
        with board:
            for step, (images, _) in enumerate(batches(3)):
                with board.step(step):
                    model(images).sum().backward()
    writer.close()
    (copied,) = [one for one in found(capsys, tmp_path) if one["kind"] == "copied_channels"]
    assert (copied["model"], copied["layer"], copied["value"]) == ("two", "2", 1.0)
    assert copied["message"].startswith("`two`: 100 % of the drawn channels in `2`")


class Shared:
    """A writer that stays open when a logger closes it."""

    def __init__(self, inner: TensorBoardWriter) -> None:
        self.write, self.flush = inner.write, inner.flush

    def close(self) -> None:
        """Does nothing."""


def test_it_works_without_torch(runs: Path) -> None:
    code = (
        "import sys\n"
        "sys.modules['torch'] = sys.modules['torchvision'] = None\n"
        "from fmapboard.cli.main import run\n"
        f"run(['check', '--json', {str(runs / 'nan')!r}])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "")
    assert json.loads(done.stdout)[0]["kind"] == "nonfinite"


def test_transposed_convolutions_tell_their_stride(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.ConvTranspose2d(4, 4, 3, stride=2), nn.ConvTranspose2d(4, 4, 4, 2)
    )
    with fmapboard.watch(model, tmp_path, every=1) as board:
        for step, (images, _) in enumerate(batches(2)):
            with board.step(step):
                model(images).sum().backward()
    (uneven,) = [one for one in found(capsys, tmp_path) if one["kind"] == "uneven_upsampling"]
    assert (uneven["class"], uneven["layer"], uneven["value"]) == ("note", "1", 1.5)


def test_inputs_that_are_not_scaled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = network()
    with fmapboard.watch(model, tmp_path, every=1) as board:
        for step, (images, _) in enumerate(batches(2)):
            with board.step(step):
                model(images.sigmoid() * 255).sum().backward()
    (scale,) = [one for one in found(capsys, tmp_path) if one["kind"] == "images_not_scaled"]
    assert (scale["class"], scale["layer"]) == ("note", None)
    assert 240 < scale["value"] <= 255


def test_without_the_name_of_a_group_none_of_its_rules_is_in_the_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.manual_seed(0)
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with fmapboard.watch(model, tmp_path / "run", optimizer=optimizer, every=1):
        for _ in range(10):
            model(torch.randn(4, 3, 16, 16)).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    assert [one["kind"] for one in found(capsys, tmp_path / "run")] == ["zero_rate"]
    for name in ("zero_rate", "unchanged_weights"):
        assert found(capsys, "--without", name, tmp_path / "run") == []
