"""Patches in the tab: beside the channel of a run that they were added to."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from browser_visitor import Person
from PIL import Image
from tab_client import Tab, open_tab
from torch import nn

import fmapboard
from fmapboard.demo.bundled import bundled
from fmapboard.imaging.patches import Patches
from fmapboard.records import LoggedStep, TabRecord
from fmapboard.report.answers import RunAnswers
from fmapboard.report.write import write_report
from fmapboard.runs.log import EventLog
from fmapboard.runs.provider import Files
from fmapboard.top_patches.pictures import RowLayout
from fmapboard.writers.tensorboard import TensorBoardWriter

CHANNELS = 70
FIGURES = "[data-part='patches'] figure"


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Patches]:
    """A run of two steps with patches of parts of photographs."""
    root = tmp_path_factory.mktemp("patches")
    parts = root / "parts"
    parts.mkdir()
    for name in ("chelsea", "coffee"):
        with Image.open(bundled("photographs") / f"{name}.jpg") as image:
            for number in range(6):
                left = 40 * number
                image.crop((left, 100, left + 40, 140)).save(parts / f"{name} <b>{number}.png")
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, CHANNELS, 5, 2, 2), nn.ReLU(), nn.Conv2d(CHANNELS, 4, 3))
    nn.init.constant_(net[0].weight[65:66].detach(), 0)  # no value of channel 65 is above 0
    nn.init.constant_(net[0].bias[65:66].detach(), 0)
    place = root / "logs" / "run"
    with fmapboard.watch(net, place, every=1, max_channels=CHANNELS) as board:
        for step in range(2):
            with board.step(step):
                net(torch.rand(1, 3, 60, 60)).mean().backward()
    found = fmapboard.patches(
        net, parts, k=5, channels=67, log_dir=place, step=1,
        transform=lambda image: torch.from_numpy(np.array(image)).permute(2, 0, 1) / 255,
    )  # fmt: skip
    return root / "logs", found


def test_the_steps_of_the_run_that_patches_are_added_to_are_kept(
    logged: tuple[Path, Patches], tab: Tab
) -> None:
    patched = open_tab(logged[0])
    assert patched.ask("data/layers", run="run")["steps"] == [0, 1]
    listed = patched.ask("data/patches", run="run")["series"]
    assert [(one["key"], one["steps"]) for one in listed] == [
        ("fmapboard/0", [1]),
        ("fmapboard/2", [1]),
    ]
    assert tab.ask("data/patches", run="run2")["series"] == []
    for wrong in ({"key": "fmapboard/1"}, {"step": 0}):
        query = {"run": "run", "key": "fmapboard/0", "step": 1, **wrong}
        assert patched.get("data/layer_patches", **query).status_code == 404


def test_the_tab_shows_the_patches_of_the_open_channel(
    logged: tuple[Path, Patches],
    serve: Callable[[Path], str],
    visit: Callable[..., Person],
) -> None:
    root, found = logged
    person = visit(serve(root), run="run", layer="fmapboard/0", channel=66)
    person.drawn(1)
    person.settle()
    crops = found["0"].crops[66]
    assert person.see(FIGURES).count() == 5
    first = person.see(FIGURES).first
    assert first.get_attribute("title").startswith(f"1. {crops[0].name}: ")
    assert "<b>" in first.get_attribute("title")
    layout, page = RowLayout.of(found["0"]), np.asarray(found.picture("0", page=1))
    row = page[layout.top + 2 * layout.down :, layout.left :]  # of channel 64 + 2
    assert np.array_equal(shown_pixels(person), row[: layout.cell[0], : layout.cell[1]])
    heading = person.see("[data-part='patches'] h3 span").first
    assert heading.text_content() == "Excited most by"
    person.press("[")
    person.wait("document.querySelector('.channel h2').textContent === 'Channel 65'")
    person.settle()
    assert heading.text_content() == "Largest values, none above 0"
    person.press("]")
    person.press("]")
    person.wait("document.querySelector('.channel h2').textContent === 'Channel 67'")
    person.settle()
    assert "channels 0…66 of 70" in person.see("[data-part='patches'] .note").text_content()
    assert person.complaints == []


def test_a_report_has_the_patches_unless_it_is_to_have_no_inputs(
    logged: tuple[Path, Patches], visit: Callable[..., Person]
) -> None:
    root, found = logged
    report = write_report([root], root.parent / "patches.html")
    person = visit(f"{report.path.as_uri()}?", run="run", layer="fmapboard/0", channel=66)
    person.drawn(1)
    person.settle()
    layout, page = RowLayout.of(found["0"]), np.asarray(found.picture("0", page=1))
    row = page[layout.top + 2 * layout.down :, layout.left :]  # of channel 64 + 2
    assert np.array_equal(shown_pixels(person), row[: layout.cell[0], : layout.cell[1]])
    provider = Files({"run": EventLog(root / "run")})
    for inputs in (True, False):
        answers = RunAnswers(provider, "run", {"fmapboard/0"}, inputs=inputs).pictures([0, 1])
        assert any(each.path == "layer_patches" for each in answers) == inputs


def shown_pixels(person: Person) -> Any:
    """Pixels of the first crop, [H, W, 3]."""
    script = f"""() => {{
      const canvas = document.querySelector("{FIGURES} canvas");
      const {{ width, height }} = canvas;
      const data = canvas.getContext("2d").getImageData(0, 0, width, height).data;
      return [height, width, [...data]];
    }}"""
    height, width, data = person.frame.evaluate(script)
    return np.array(data, np.uint8).reshape(height, width, 4)[..., :3]


LAYOUT = {
    "tag": "patches_x/a", "cell": [9, 5], "rows": 64, "left": 0, "top": 0, "across": 9, "down": 9,
}  # fmt: skip
WRONG = {
    "none": {"cell": None}, "negative": {"left": -1}, "huge": {"across": 2**31},
    "fraction": {"top": 0.5}, "bool": {"down": True}, "text": {"rows": "64"},
    "one side": {"cell": [9]}, "three sides": {"cell": [9, 5, 3]}, "no height": {"cell": [0, 5]},
    "no width": {"cell": [9, 0]}, "no rows": {"rows": 0}, "no distance": {"down": 0},
}  # fmt: skip


def answer_of(folder: Path, header: bytes) -> Any:
    """The answer about the patches of a record with this header."""
    record = TabRecord("fmapboard_patches/a", (header, b""))
    with closing(TensorBoardWriter(folder / "run")) as board:
        board.write(LoggedStep(0, 0.0, records=(record,)))
    query = {"run": "run", "key": "fmapboard/a", "step": 0}
    return open_tab(folder).get("data/layer_patches", **query)


@pytest.mark.parametrize("wrong", [None, *WRONG])
def test_a_layout_that_crops_cannot_be_cut_by_is_an_error_in_words(
    tmp_path: Path, wrong: str | None
) -> None:
    picture = {**LAYOUT, **WRONG.get(wrong or "", {})}
    header = {"format": 1, "arrays": [], "picture": picture}
    answer = answer_of(tmp_path, json.dumps(header).encode())
    assert answer.status_code == (200 if wrong is None else 404)
    if wrong is not None:
        assert "the patches of 'fmapboard/a' cannot be read" in answer.json["error"]


@pytest.mark.parametrize(
    ("header", "text"),
    [
        (b"{}", "not in fmapboard's format"),
        (b'{"format": 99, "arrays": []}', "reads formats up to 1: upgrade it"),
        (b'{"format": 1, "arrays": []}', "cannot be read: 'picture'"),
    ],
)
def test_a_damaged_record_is_an_error_in_words(tmp_path: Path, header: bytes, text: str) -> None:
    answer = answer_of(tmp_path, header)
    assert answer.status_code == 404
    assert text in answer.json["error"]
