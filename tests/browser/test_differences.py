"""The run of differences that `diff` writes, in a real browser."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import torch
from browser_visitor import Person
from torch import nn

import fmapboard

MIDDLE_OF_FIRST = """(canvas) => Math.min(
  ...canvas.getContext("2d").getImageData(20, 20, 1, 1).data)"""
"""The smallest of red, green and blue: a large one is white, the colour of 0."""


def test_a_run_of_differences_opens_at_the_first_layer_that_differs_in_a_signed_palette(
    serve: Callable[[Path], str], visit: Callable[..., Person], tmp_path: Path
) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3), nn.Conv2d(4, 2, 3))
    other = copy.deepcopy(model)
    with torch.no_grad():
        other[1].weight[0] += 0.1  # type: ignore[operator, index]
    found = fmapboard.diff(model, other, torch.rand(1, 3, 12, 12), log_dir=tmp_path)
    address = serve(tmp_path)
    person = visit(address, run="difference")
    person.wait("document.documentElement.dataset.layer === 'fmapboard/1'")
    person.settle()
    chosen = "[...document.querySelectorAll('.toolbar select')].map((each) => each.value)"
    assert "signed" in person.frame.evaluate(chosen)
    assert person.see(".legend .label").inner_text() == "red: larger in b, blue: larger in a"
    equal = visit(address, run="difference", layer="fmapboard/0", channel=0)
    equal.settle()
    equal.see(".grid canvas").first.hover(position={"x": 30, "y": 30})
    assert "−1" not in equal.see(".grid .status, .status").first.text_content()
    first = visit(address, width=640, view="overview")
    first.settle()
    row = found.table.rows[1]
    assert first.see(".verdict .sentence").inner_text() == (
        f"1 differs first, by a relative error of {float(row.added):.2g}; 1 of 3 layers differs"
    )
    assert first.see(".why summary").all_inner_texts() == ["All layers"]  # "not checked" is no news
    first.see(".why summary").click()
    cells = first.see(".differences .differs td").all_inner_texts()
    assert cells == [row.name, row.type, row.error_in, row.error_out, row.added, row.note]
    assert first.see(".sheet-steps span").all_inner_texts() == ["batch 0"]
    assert first.see(".states li").all_inner_texts() == [
        "red: larger in b, blue: larger in a",
        "empty: identical",
    ]
    assert first.see(".sheet-page:visible > canvas").last.evaluate(MIDDLE_OF_FIRST) > 240
    first.see(".verdict .go").click()
    first.wait("document.documentElement.dataset.layer === 'fmapboard/1'")


def test_a_fault_of_a_difference_is_told_in_its_own_words(
    serve: Callable[[Path], str], visit: Callable[..., Person], tmp_path: Path
) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3))
    other = copy.deepcopy(model)
    with torch.no_grad():
        other[1].weight[0] = float("nan")  # type: ignore[operator, index]
    fmapboard.diff(model, other, torch.rand(1, 3, 12, 12), log_dir=tmp_path)
    person = visit(serve(tmp_path), view="overview", run="difference")
    person.settle()
    assert person.see(".verdict b").inner_text() == "Fault:"
    assert person.see(".sheet-steps .onset").all_inner_texts() == ["batch 0"]
    assert person.see(".verdict .sentence").inner_text().startswith("NaN ")
    assert person.see(".why summary").all_inner_texts() == ["Evidence, next step", "All layers"]
