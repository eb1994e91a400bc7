"""What the checks said while a run was logged is in the tab's list of findings."""

from __future__ import annotations

import copy
import json
import math
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from checked_runs import batches, network
from tab_client import open_tab
from torch import nn
from two_layer_runs import store_blobs

import fmapboard
from fmapboard.checks import Finding, RunRecord
from fmapboard.cli.commands.check import why_runs
from fmapboard.formats import tags
from fmapboard.health.run import LiveChecks
from fmapboard.health.table import HealthTable
from fmapboard.plugin import overview_series
from fmapboard.plugin.routes import findings

TAG = "fmapboard_checks"


@dataclass(frozen=True)
class Parameter:
    """A warning about a parameter, and a note about the network."""

    kind: str = "mine"

    def __call__(self, record: RunRecord) -> list[Finding]:
        return [
            Finding(
                kind="mine", class_="warning", message="a fault", parameter="2.bias", since_step=1
            ),
            Finding(kind="mine", class_="note", message="a note", healthy="none"),
        ]


def log(run: Path, **options: Any) -> None:
    """Three steps of a network whose third layer has equal kernels."""
    torch.manual_seed(0)
    model = network()
    nn.init.constant_(model.get_parameter("2.weight"), 0.05)
    nn.init.constant_(model.get_parameter("2.bias"), 0.05)
    with fmapboard.watch(model, run, every=1, **options) as board:
        for step, (images, _) in enumerate(batches(3)):
            with board.step(step):
                model(images).sum().backward()


def lines(root: Path, run: str) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = open_tab(root).ask("data/findings", run=run)["findings"]
    return listed


def test_a_built_in_note_names_its_layer_and_its_pictures(tmp_path: Path) -> None:
    log(tmp_path / "run")
    (line,) = [one for one in lines(tmp_path, "run") if one["kind"] == "copied_channels"]
    assert line["message"].endswith("have a copy in the layer at step 0 (healthy: below 25 %)")
    assert (line["class"], line["severity"], line["label"]) == ("note", 1, "2")
    assert (line["key"], line["shown_at"], line["since"], line["value"]) == (
        "fmapboard/2", "fmapboard/2", 0, 1.0,
    )  # fmt: skip


def test_findings_need_one_request_for_the_overview_and_one_to_judge_it_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As by `visualize` and earlier versions, nothing is stored: the checks run on the answer.
    monkeypatch.setattr(LiveChecks, "__call__", lambda self, step: (self._state, step))
    log(tmp_path / "run")
    tab, ran, asked = open_tab(tmp_path), [], []
    read, check = tab.provider.read_blob_sequences, findings.run_checks
    monkeypatch.setattr(findings, "run_checks", lambda record: ran.append(0) or check(record))
    monkeypatch.setattr(
        tab.provider, "read_blob_sequences", lambda *a, **k: asked.append(k) or read(*a, **k)
    )
    first, second = (tab.ask("data/findings", run="run") for _ in range(2))
    assert first == second
    assert (len(asked), len(ran)) == (2, 1)  # what was read within a second is not read again
    monkeypatch.setattr(overview_series, "_RECENT", 0.0)
    log(tmp_path / "run")  # again, so the steps are newer ones
    tab.provider._multiplexer.Reload()
    tab.ask("data/findings", run="run")
    assert len(ran) == 2


def test_a_check_of_ones_own_appears_with_the_parameters_layer(tmp_path: Path) -> None:
    log(tmp_path / "run", checks=[Parameter()], name="gen")
    warning, note = [one for one in lines(tmp_path, "run") if one["kind"] == "mine"]
    assert (warning["class"], warning["severity"], warning["since"]) == ("warning", 2, 1)
    assert (warning["label"], warning["key"], warning["shown_at"]) == ("", None, "gen.fmapboard/2")
    assert (note["message"], note["since"]) == ("`gen`: a note (healthy: none)", 0)
    assert (note["name"], note["shown_at"]) == ("gen", None)


def test_what_a_finding_may_follow_from_is_a_field_and_not_repeated_in_its_explanation() -> None:
    finding = Finding(kind="mine", class_="note", message="m", follows="dead", meaning="It means")
    table = HealthTable("run", (0,), 1, (), {}, {}, (0.0,))
    line = findings._line(finding, table, 1)
    assert (line.follows, line.explanation) == ("dead", "It means.")


def log_still(run: Path, lost: list[str], frozen: list[str]) -> None:
    """Five steps in which updates of some weights are lost, and others are in no optimizer."""
    torch.manual_seed(0)
    model = network()
    moved = [p for name, p in model.named_parameters() if name not in frozen]
    optimizer = torch.optim.SGD(moved, lr=0.01)
    before = {name: model.get_parameter(name).detach().clone() for name in lost}
    with fmapboard.watch(model, run, every=1, optimizer=optimizer) as board:
        for step, (images, classes) in enumerate(batches(6)):
            with board.step(step):
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(images), classes).backward()
                optimizer.step()
            with torch.no_grad():
                for name, value in before.items():
                    model.get_parameter(name).copy_(value)


def test_states_of_layers_have_no_line_of_their_own(tmp_path: Path) -> None:
    log_still(tmp_path / "one", ["2.weight"], [])
    log_still(tmp_path / "two", ["2.weight"], ["4.weight"])
    for run in ("one", "two"):  # that a layer is frozen is no finding
        (line,) = [line for line in lines(tmp_path, run) if "unchanged" in line["message"]]
        assert (line["kind"], line["shown_at"]) == ("unchanged_weights", "fmapboard/2")


def log_lost(run: Path, **options: Any) -> None:
    """Five steps; from step 3 on, a weight of layer ``2`` is infinite."""
    torch.manual_seed(0)
    model = network()
    with fmapboard.watch(model, run, every=1, **options) as board:
        for step, (images, _) in enumerate(batches(5)):
            with torch.no_grad():
                model.get_parameter("2.weight")[0, 0, 0, 0] = math.inf if step >= 3 else 1.0
            with board.step(step):
                model(images).sum().backward()


@pytest.mark.parametrize("name", [None, "gen"])
def test_non_finite_values_that_the_check_tells_of_are_said_once(
    name: str | None, tmp_path: Path
) -> None:
    log_lost(tmp_path / "run", name=name)
    listed = [one for one in lines(tmp_path, "run") if one["kind"] == "nonfinite"]
    assert [(one["class"], one["since"]) for one in listed] == [("warning", 3)]
    spelled = "gen: 2" if name else "2"
    assert f"first in `{spelled}`, whose " in listed[0]["message"]
    facts, _ = open_tab(tmp_path).open("data/health", run="run")
    assert f"first in {spelled}, whose 2.weight is not" in facts["first_nonfinite"]["text"]


def test_what_the_loss_does_is_said_beside_a_cause_and_not_twice(tmp_path: Path) -> None:
    log_still(tmp_path / "still", ["2.weight"], [])
    log_still(tmp_path / "moving", [], [])
    tab = open_tab(tmp_path)
    found = {run: tab.ask("data/findings", run=run)["line"] for run in ("still", "moving")}
    progress = found["still"]["progress"]
    assert re.fullmatch(r"loss 2\.\d+ at step 0, 2\.\d+ at step 5; batch accuracy .*", progress)
    assert progress in [each["text"] for each in found["still"]["rest"]]
    assert found["moving"]["progress"] == ""  # the text says it
    assert "2.32 at step 0" in found["moving"]["text"]


def test_of_images_it_is_no_question_whether_they_learn(tmp_path: Path) -> None:
    torch.manual_seed(0)
    images = torch.rand(4, 3, 8, 8)
    fmapboard.visualize(network(), images, log_dir=tmp_path / "well")
    broken = network()
    broken.get_parameter("2.weight").data[0, 0, 0, 0] = math.nan
    fmapboard.visualize(broken, images, log_dir=tmp_path / "broken")
    tab = open_tab(tmp_path)
    states = [tab.ask("data/findings", run=run)["line"]["state"] for run in ("well", "broken")]
    assert states == ["no training", "fault"]


def test_the_line_of_a_run_names_the_weights_that_are_not_finite(tmp_path: Path) -> None:
    log_lost(tmp_path / "run")
    line = open_tab(tmp_path).ask("data/findings", run="run")["line"]
    assert line["text"].startswith(
        "NaN and +Inf since step 3, first in `2`, whose `2.weight` is not finite; then in "
    )


def test_what_was_silenced_is_not_there(tmp_path: Path) -> None:
    log(tmp_path / "one", checks={"copied_channels": False})
    log(tmp_path / "all", checks=False)
    for run in ("one", "all"):
        assert [one for one in lines(tmp_path, run) if one["kind"] == "copied_channels"] == []


def test_instead_of_a_damaged_record_the_kept_steps_are_judged(tmp_path: Path) -> None:
    log(tmp_path / "a")
    (logged,) = [one for one in lines(tmp_path, "a") if one["kind"] == "copied_channels"]
    for run in "bc":
        shutil.copytree(tmp_path / "a", tmp_path / run)
    for run, blobs in (("a", [b"\xff"]), ("b", []), ("c", [b"[3]"])):
        store_blobs(tmp_path / run, blobs, tag=TAG, step=9)
        assert [one for one in lines(tmp_path, run) if one["kind"] == "copied_channels"] == [logged]


def test_every_line_has_the_keys_that_the_front_end_reads(tmp_path: Path) -> None:
    log(tmp_path / "run", checks=[Parameter()])
    every = lines(tmp_path, "run")
    keys = {
        "kind", "class", "severity", "name", "label", "index", "key", "shown_at", "since", "value",
        "message", "explanation", "follows",
    }  # fmt: skip
    assert [set(line) for line in every] == [keys] * len(every)
    assert every == sorted(every, key=lambda line: -line["severity"])


def test_the_line_of_a_run_is_its_cause_or_that_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log(tmp_path / "faulty", checks=[Parameter()])
    faulty = open_tab(tmp_path).ask("data/findings", run="faulty")
    first, line = faulty["findings"][0], faulty["line"]
    rest = line.pop("rest")
    assert first["key"] is None
    assert line == {
        "state": "fault", "progress": "", "text": "a fault", "name": "", "label": "",
        "shown_at": first["shown_at"], "since": 1,
    }  # fmt: skip
    besides = [remark["text"] for remark in rest if remark["label"] == "found besides"]
    copies = "100 % of the drawn channels in `2` have a copy in the layer at step 0"
    assert besides == [f"{copies} (healthy: below 25 %)", "a note (healthy: none)"]

    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Conv2d(8, 4, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    with fmapboard.watch(model, tmp_path / "well", optimizer=optimizer, every=1):
        for images, _ in batches(3):
            optimizer.zero_grad()
            model(images).square().mean().backward()
            optimizer.step()
    tab, read = open_tab(tmp_path), []
    scalars = tab.provider.read_scalars
    monkeypatch.setattr(
        tab.provider, "read_scalars", lambda *a, **k: read.append(k) or scalars(*a, **k)
    )
    well = [tab.ask("data/findings", run="well")["line"] for _ in range(2)]
    assert well[0] == well[1]
    assert well[0]["state"] == "not known"
    assert well[0]["text"].startswith("nothing found in 2 layers × 3 steps; whether it learns ")
    assert read == []  # what was stored is not judged again


def test_a_run_without_a_stored_judgement_has_the_line_that_why_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(LiveChecks, "__call__", lambda self, step: (self._state, step))
    log_still(tmp_path / "old", lost=[], frozen=[])
    why_runs([tmp_path / "old"], as_json=True, pictures=None, silenced=[], further=[])
    why = json.loads(capsys.readouterr().out)
    line = open_tab(tmp_path).ask("data/findings", run="old")["line"]
    assert (line["state"], line["text"]) == (why["verdict"], why["line"])
    assert "since the loss has fallen by no more than it varies" in line["text"]


def test_verdicts_of_several_runs_are_those_of_their_findings_and_read_no_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log(tmp_path / "noted")
    log(tmp_path / "warned", checks=[Parameter()])
    log(tmp_path / "unchecked", checks=False)
    tab = open_tab(tmp_path)
    asked = ["noted", "warned", "unchecked", "none"]
    own = {run: tab.ask("data/findings", run=run)["line"] for run in asked[:2]}
    monkeypatch.delattr(overview_series, "unpack_overview")
    listed = open_tab(tmp_path).ask("data/verdicts", run=asked)["verdicts"]
    assert [each["run"] for each in listed] == ["noted", "warned"]
    for each in listed:
        line = own[each["run"]]
        assert (each["state"], each["text"]) == (line["state"], line["text"])


def test_a_run_of_differences_says_what_diff_printed(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 3))
    other = copy.deepcopy(model)
    other[2].weight.data *= 1.5
    images = torch.rand(1, 3, 8, 8)
    found = fmapboard.diff(model, other, images, log_dir=tmp_path / "other")
    assert not fmapboard.diff(model, model, images, log_dir=tmp_path / "same")
    tab = open_tab(tmp_path)
    answer = tab.ask("data/findings", run="other/difference")["difference"]
    shown = [line.split() for line in repr(found).splitlines()]
    row = answer["table"]["rows"][2]
    keys = ("name", "type", "error_in", "error_out", "added")
    assert shown[3][:5] == [row[key] for key in keys]
    assert row["note"] == found.layers[2].note
    assert [each["is_different"] for each in answer["table"]["rows"]] == [False, False, True]
    assert answer["text"] == (
        "`2` differs first, by a relative error of 0.33; 1 of 3 layers differs"
    )
    facts, _ = tab.open("data/health", run="other/difference")
    assert facts["states"][1]["word"] == "finite"  # a layer that differs is not fine
    assert tab.ask("data/findings", run="other/a")["difference"] is None
    same = tab.ask("data/findings", run="same/difference")["difference"]
    assert same["text"] == "none of 3 layers differs by a relative error above 1e-05"
    shutil.copytree(tmp_path / "other" / "difference", tmp_path / "damaged")
    store_blobs(tmp_path / "damaged", [b"{}"], tag=tags.MODEL_DIFFERENCE, step=1)
    assert open_tab(tmp_path).ask("data/findings", run="damaged")["difference"] is None
