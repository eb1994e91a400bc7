"""Volumes in the tab: up to eight depth slices of the maps, and the slider that chooses one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from browser_visitor import Person
from run_reader import read
from tab_answers import unpacked
from tab_client import open_tab
from torch import Tensor, nn

import fmapboard
from fmapboard.measure.layout import other_slices

DEPTH = 5


def volumes() -> Tensor:
    """[2, 1, 5, 3, 4]: 5 per sample, 10 per slice, 1 per row."""
    sample = 5.0 * torch.arange(2).view(2, 1, 1, 1, 1)
    place = 10.0 * torch.arange(DEPTH).view(1, 1, DEPTH, 1, 1)
    row = 1.0 * torch.arange(3).view(1, 1, 1, 3, 1)
    return (sample + place + row).expand(2, 1, DEPTH, 3, 4).contiguous()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Layers that return what they receive: of volumes, of volumes at one depth, and of images."""
    root = tmp_path_factory.mktemp("volumes")
    for name, options in (("all", {}), ("one", {"depth": 1}), ("images", {})):
        conv = nn.Conv2d(1, 1, 1) if name == "images" else nn.Conv3d(1, 1, 1)
        nn.init.ones_(conv.weight)
        nn.init.zeros_(conv.bias)  # type: ignore[arg-type]
        model = nn.Sequential(conv)
        x = volumes()[:, :, 0] if name == "images" else volumes()
        with fmapboard.watch(model, root / name, every=1, samples=2, **options) as board:
            for step in range(3):
                with board.step(step):
                    model(x).sum().backward()
    return root


def test_the_other_slices_are_evenly_spaced_and_at_most_seven() -> None:
    assert other_slices(1, 8) == ()
    assert other_slices(2, 8) == (0,)
    assert other_slices(5, 8) == (0, 1, 3, 4)
    assert other_slices(128, 8) == (0, 18, 36, 54, 91, 109, 127)


@pytest.mark.parametrize("kept", [50, 1])  # the first step is in a record of its own
def test_each_slice_of_each_sample_has_its_own_range(runs: Path, kept: int) -> None:
    tab = open_tab(runs, kept)
    for step in (0, 2):
        facts, body = tab.open("data/maps", run="all", key="fmapboard/0", step=step)
        (maps, _) = facts["header"]["pictures"]
        assert (maps["slices"], maps["depth"], maps["view"]) == ([0, 1, 3, 4], 2, "")
        arrays = unpacked(facts["arrays"], body)
        low = [20, 25, 0, 5, 10, 15, 30, 35, 40, 45]  # the middle slices are the first
        assert arrays["feature_maps.lo"].ravel().tolist() == low
        assert arrays["feature_maps.hi"].ravel().tolist() == [value + 2 for value in low]
        samples = [each["sample"] for each in facts["pictures"] if each["role"] == "feature_maps"]
        assert samples == list(range(10))


def test_only_volumes_have_slices_and_only_if_no_depth_was_chosen(runs: Path) -> None:
    for run, count in (("all", 10), ("one", 2), ("images", 2)):
        (event, *_) = read(runs / run).Tensors("fmapboard/0")
        assert len(event.tensor_proto.string_val) == count, run


def test_sheet_and_film_say_which_slice_they_show(
    runs: Path, serve: Callable[[Path], str], visit: Callable[..., Person]
) -> None:
    rows, _ = open_tab(runs).open("data/sheet", run="all", key="fmapboard/0", step=[0, 1], cell=8)
    assert [row["view"] for row in rows["rows"]] == ["depth slice 2 of 0…4"]
    rows, _ = open_tab(runs).open("data/sheet", run="one", key="fmapboard/0", step=[0, 1], cell=8)
    assert [row["view"] for row in rows["rows"]] == ["depth slice 1 of 0…4"]
    person = visit(serve(runs), view=None, run="all")
    person.settle()
    assert person.see(".sheet-name span").last.inner_text() == "depth slice 2 of 0…4"
    person.turn_to("feature_maps&p.feature_maps.run=all&p.feature_maps.view=film")
    person.see(".film .facts").filter(has_text="depth slice 2 of 0…4").wait_for()


def test_the_slider_shows_another_slice(
    runs: Path, serve: Callable[[Path], str], visit: Callable[..., Person]
) -> None:
    person = visit(serve(runs), run="all", layer="fmapboard/0", sample=1, channel=0)
    person.drawn(2)
    assert person.see(".depth .label").text_content() == "depth slice 2 of 0…4"
    assert person.see(".status").text_content() == "channel 0 · 25 … 27"
    person.see(".depth input").fill("4")
    person.wait("document.querySelector('.status').textContent === 'channel 0 · 45 … 47'")
    assert person.see(".depth .label").text_content() == "depth slice 4 of 0…4"
    assert person.see(".thumbnail").count() == 0  # the input is that of the middle slice
    person.see(".depth input").fill("2")
    person.wait("document.querySelector('.status').textContent === 'channel 0 · 25 … 27'")
    assert person.see(".thumbnail").count() == 1
    one = visit(serve(runs), run="one", layer="fmapboard/0")
    one.drawn(2)
    assert one.see(".depth").count() == 0
