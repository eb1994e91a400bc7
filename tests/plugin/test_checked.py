"""What the checks said while a run was logged is in the tab's list of findings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from checked_runs import batches, network
from tab_client import open_tab
from torch import nn
from two_layer_runs import store_blobs

import fmapboard
from fmapboard.checks import Finding, RunRecord

TAG = "fmapboard_checks"


@dataclass(frozen=True)
class Parameter:
    """A fact about a parameter, and a figure about the network."""

    kind: str = "mine"

    def __call__(self, record: RunRecord) -> list[Finding]:
        return [
            Finding(kind="mine", class_="fact", message="a fact", parameter="2.bias", since_step=1),
            Finding(kind="mine", class_="figure", message="a note", healthy="none"),
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


def test_a_built_in_figure_names_its_layer_and_its_pictures(tmp_path: Path) -> None:
    log(tmp_path / "run")
    (line,) = [one for one in lines(tmp_path, "run") if one["kind"] == "copied_channels"]
    assert line["message"].endswith("are copies of each other at step 0 (healthy: below 20 %)")
    assert (line["class"], line["severity"], line["label"]) == ("figure", 1, "2")
    assert (line["key"], line["shown_at"], line["since"], line["value"]) == (
        "fmapboard/2", "fmapboard/2", 0, 1.0,
    )  # fmt: skip


def test_a_check_of_ones_own_appears_with_the_parameters_layer(tmp_path: Path) -> None:
    log(tmp_path / "run", checks=[Parameter()], name="gen")
    fact, figure = [one for one in lines(tmp_path, "run") if one["kind"] == "mine"]
    assert (fact["class"], fact["severity"], fact["since"]) == ("fact", 2, 1)
    assert (fact["label"], fact["key"], fact["shown_at"]) == ("", None, "gen.fmapboard/2")
    assert (figure["message"], figure["since"]) == ("a note (healthy: none)", 0)
    assert (figure["name"], figure["shown_at"]) == ("gen", None)


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
        "value", "more", "message",
    }  # fmt: skip
    assert [set(line) for line in every] == [keys] * len(every)
    assert every == sorted(every, key=lambda line: (-line["severity"], line["since"]))
