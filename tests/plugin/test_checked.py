"""What the checks said while a run was logged is in the tab's list of findings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from checked_runs import batches, network
from tab_client import open_tab
from torch import nn
from two_layer_runs import store_blobs

import fmapboard
from fmapboard.checks import Finding, RunRecord
from fmapboard.formats.overview import LayerFacts
from fmapboard.health.layer_findings import LayerFinding
from fmapboard.health.table import HealthTable, rows_of
from fmapboard.plugin.routes.findings import in_one_line, without_repeats

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


def test_a_check_of_ones_own_appears_with_the_parameters_layer(tmp_path: Path) -> None:
    log(tmp_path / "run", checks=[Parameter()], name="gen")
    warning, note = [one for one in lines(tmp_path, "run") if one["kind"] == "mine"]
    assert (warning["class"], warning["severity"], warning["since"]) == ("warning", 3, 1)
    assert (warning["label"], warning["key"], warning["shown_at"]) == ("", None, "gen.fmapboard/2")
    assert (note["message"], note["since"]) == ("a note (healthy: none)", 0)
    assert (note["name"], note["shown_at"]) == ("gen", None)


def log_growing(run: Path, factor: float) -> None:
    """Six steps of a network; the outputs of its third layer grow by ``factor`` at step 2."""
    torch.manual_seed(0)
    model = network()
    with fmapboard.watch(model, run, every=1) as board:
        for step, (images, _) in enumerate(batches(6)):
            if step == 2:
                with torch.no_grad():
                    model.get_parameter("2.weight").mul_(factor)
            with board.step(step):
                model(images).sum().backward()


def test_growth_is_not_told_again_where_large_magnitudes_are(tmp_path: Path) -> None:
    log_growing(tmp_path / "large", 1e7)
    log_growing(tmp_path / "below", 6e3)
    large = [line for line in lines(tmp_path, "large") if "magnitudes" in line["message"]]
    assert [(line["kind"], line["severity"]) for line in large] == [("large", 2)] * len(large)
    assert [line["label"] for line in large][:2] == ["2", "4"]
    (below,) = [line for line in lines(tmp_path, "below") if "magnitudes" in line["message"]]
    assert (below["kind"], below["severity"], below["since"]) == ("exploding", 1, 2)


def test_growth_after_the_last_step_of_large_magnitudes_is_told() -> None:
    conv = LayerFacts("conv", "conv", "Conv2d", (2, 1, 1, 1), 1, 0, 2, 4, activation="relu")
    relu = LayerFacts("relu", "relu", "ReLU", None, 1, 1, 2, 4)
    rows = tuple(rows_of("", [conv, relu]))
    table = HealthTable("run", (0, 3, 6, 9, 12), 5, rows, {}, {})
    large = LayerFinding("large", 2, "", "conv", None, None, 6, None, 9, 1e5, 0, "")

    def line(label: str, since: int, message: str = "magnitudes in") -> dict[str, Any]:
        return {"name": "", "label": label, "since": since, "message": f"{message} `{label}`"}

    said = [line("conv", 3), line("relu", 9)]
    further = [line("conv", 12), line("other", 6), line("conv", 6, "the gradients of")]
    assert without_repeats([*said, *further], [large], table) == further
    lasting = replace(large, until=None)
    assert without_repeats([*said, *further], [lasting], table) == further[1:]


def test_every_layer_whose_updates_are_lost_is_counted_once() -> None:
    weights = tuple(f"{layer}.weight" for layer in "abcd")  # the sentence names three of them
    line = {"kind": "unchanged_weights", "name": "", "more": 0, "parameters": weights}
    unchanged = LayerFinding("unchanged", 1, "", "d", None, None, 6, None, None, 0.0, 4, "")
    said, told = in_one_line([line], [unchanged])
    assert (said, told) == ([{"kind": "unchanged_weights", "name": "", "more": 1}], [])


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


def test_weights_whose_updates_are_lost_have_one_line(tmp_path: Path) -> None:
    log_still(tmp_path / "one", ["2.weight"], [])
    log_still(tmp_path / "two", ["2.weight"], ["4.weight"])
    (one,) = [line for line in lines(tmp_path, "one") if "unchanged" in line["message"]]
    assert (one["kind"], one["shown_at"], one["more"]) == ("unchanged_weights", "fmapboard/2", 0)
    (two,) = [line for line in lines(tmp_path, "two") if "unchanged" in line["message"]]
    assert (two["kind"], two["shown_at"], two["more"]) == ("unchanged_weights", "fmapboard/2", 1)


def test_weights_of_another_layer_that_are_in_no_optimizer_keep_their_line(tmp_path: Path) -> None:
    log_still(tmp_path / "run", ["4.weight"], ["2.weight"])
    said = [line for line in lines(tmp_path, "run") if "unchanged" in line["message"]]
    assert [(line["kind"], line["shown_at"]) for line in said] == [
        ("unchanged_weights", "fmapboard/4"), ("unchanged", "fmapboard/2"),
    ]  # fmt: skip


def test_what_was_silenced_is_not_there(tmp_path: Path) -> None:
    log(tmp_path / "one", checks={"copied_channels": False})
    log(tmp_path / "all", checks=False)
    for run in ("one", "all"):
        assert [one for one in lines(tmp_path, run) if one["kind"] == "copied_channels"] == []


def test_a_damaged_record_is_left_out(tmp_path: Path) -> None:
    for run, blobs in (("a", [b"\xff"]), ("b", []), ("c", [b"[3]"])):
        log(tmp_path / run)
        store_blobs(tmp_path / run, blobs, tag=TAG, step=9)
        assert [one for one in lines(tmp_path, run) if one["kind"] == "copied_channels"] == []


def test_every_line_has_the_keys_that_the_front_end_reads(tmp_path: Path) -> None:
    log(tmp_path / "run", checks=[Parameter()])
    every = lines(tmp_path, "run")
    keys = {
        "kind", "class", "severity", "name", "label", "key", "shown_at", "since", "after", "until",
        "value", "more", "message", "explanation",
    }  # fmt: skip
    assert [set(line) for line in every] == [keys] * len(every)
    assert every == sorted(every, key=lambda line: (-line["severity"], line["since"]))
