"""Layers, grids, channels and comparisons of a trained run, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import quote

import pytest
import torch
from browser_visitor import Person
from striped_training import HOSTILE, StripesNet, stripes


def test_layers_are_found_in_order_and_by_kernel_shape_and_name(
    address: str, visit: Callable[..., Person]
) -> None:
    person = visit(address, run="good")
    rows = person.see(".tree .layer .name")
    names = ["stem.0", "block.0", "block.2", HOSTILE]
    assert rows.all_text_contents() == names
    person.press("/")
    person.page.keyboard.type("24x24")
    person.wait("document.querySelectorAll('.tree .layer').length === 1")
    person.page.keyboard.type("nothing like it")
    person.see(".layers .note:visible").wait_for()


def test_a_layer_with_nan_is_marked_in_the_list(address: str, visit: Callable[..., Person]) -> None:
    person = visit(address, run="bad")
    person.see(".layer[data-severity='3']").first.wait_for()
    assert "NaN" in person.see(".layer[data-severity='3'] .badge").first.text_content()
    person.press("Home")
    person.drawn(0)
    person.wait("document.querySelectorAll(\".layer[data-severity='3']\").length === 0")


def test_the_value_under_the_cursor_is_the_logged_one(
    address: str, visit: Callable[..., Person]
) -> None:
    torch.manual_seed(0)
    model = StripesNet()
    images, _ = stripes(16)
    with torch.no_grad():
        true = model.stem[0](images)  # [16, 16, 32, 32], of step 0 with the same seed
    person = visit(address, run="good", layer="fmapboard/stem.0", step=0, channel=5)
    person.drawn(0)
    box = person.see("figure:visible canvas").first.bounding_box()
    at = (box["x"] + box["width"] * (7.5 / 32), box["y"] + box["height"] * (20.5 / 32))
    person.page.mouse.move(*at)
    said = person.see("figcaption .value:visible").first.text_content()
    found = re.fullmatch(r"y 20, x 7: (\S+) ± (\S+)", said)
    assert found is not None, said
    value, unit = (float(text.replace("−", "-")) for text in found.groups())
    assert value == pytest.approx(float(true[0, 5, 20, 7]), abs=unit + 1e-3)


def test_all_channels_are_drawn_and_a_dead_one_is_marked(
    address: str, visit: Callable[..., Person]
) -> None:
    person = visit(address, run="good", layer="fmapboard/stem.0", colours="grey")
    box = person.see(".grid canvas").bounding_box()
    seen = set()
    for column in range(40):
        person.page.mouse.move(box["x"] + 20 + column * box["width"] / 40, box["y"] + 40)
        seen.add(person.see(".status").text_content().split(" · ")[0])
    assert {"channel 0", "channel 1", "channel 2", "channel 3"} <= seen
    bluish = person.frame.evaluate(
        """() => { const c = document.querySelector(".grid canvas");
        const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
        let n = 0;
        for (let i = 0; i < d.length; i += 4) if (d[i+1] - d[i] > 20 && d[i+2] - d[i] > 20) n += 1;
        return n; }"""
    )
    assert bluish > 1000  # lines over the tile of channel 3, which is constant; the others are grey


def test_scale_colours_sort_and_size_change_the_picture(
    address: str, visit: Callable[..., Person]
) -> None:
    person = visit(address, run="good", layer="fmapboard/block.2")
    pictures = {person.canvas(".grid canvas")}
    for key in ("s", "c", "c", "c", "+", "l"):
        person.press(key)
        person.settle()
        pictures.add(person.canvas(".grid canvas"))
    for order in ("strength", "change", "similarity"):
        person.menu("Display")
        person.see("select[aria-label=Sort]").select_option(order)
        person.settle()
        pictures.add(person.canvas(".grid canvas"))
    assert len(pictures) == 10


def test_an_opened_channel_shows_its_numbers_and_can_overlay_the_input(
    address: str, visit: Callable[..., Person]
) -> None:
    person = visit(address, run="good", layer="fmapboard/stem.0")
    person.see(".grid canvas").click(position={"x": 30, "y": 30})
    person.see("h2:text-is('Channel 0')").wait_for()
    assert "p.feature_maps.channel=0" in person.page.url
    assert "Minimum" in person.see(".numbers").text_content()
    assert person.see(".channel canvas.chart").is_visible()
    before = person.canvas(".channel figure canvas")
    person.see("button:text-is('Over input')").click()
    person.settle()
    person.wait(f"document.querySelector('.channel figure canvas').toDataURL() !== {before!r}")
    person.press("Escape")
    person.see("h2:text-is('Channel 0')").wait_for(state="hidden")


@pytest.mark.parametrize(
    ("kind", "other"),
    [
        ("run", "bad"),
        ("role", "gradients_of_maps"),
        *(
            pytest.param(*pair, marks=pytest.mark.sweep)
            for pair in (("step", "0"), ("sample", "1"))
        ),
    ],
)
def test_two_sides_are_compared_channel_by_channel(
    address: str, visit: Callable[..., Person], kind: str, other: str
) -> None:
    person = visit(address, run="good", layer="fmapboard/block.0", step=20, channel=2)
    alone = person.canvas(".grid canvas")
    person.menu("Compare")
    person.see("select[aria-label='Compare with']").select_option(kind)
    person.settle()
    person.see("button[aria-label='Change column B']").click()
    if kind == "run":
        person.see("button[aria-label^='Run of column B']").click()
        person.page.keyboard.type(other)
        person.page.keyboard.press("Enter")
    else:
        label = {"step": "Step of", "sample": "Sample of", "role": "What"}[kind]
        person.see(f"select[aria-label^='{label} column B']").select_option(other)
    person.page.keyboard.press("Escape")
    person.menu("Compare")
    person.see("button:text-is('Both')").click()
    person.settle()
    person.wait("document.querySelectorAll('.channel figure:not([hidden])').length === 3")
    assert person.canvas(".grid canvas") != alone
    named = {"step": "step 0", "run": "bad · step 20", "sample": "sample 1", "role": "Gradients"}
    sides = person.see(".numbers tr").first.locator("th[scope=col]").all_text_contents()
    expected = f"B: {named[kind]}"
    if kind == "sample":
        assert sides == ["whole batch"]
    else:
        assert sides[1] == expected
    titles = person.see("figcaption:visible > span:first-child").all_text_contents()
    assert expected in titles[:2]
    text = {"step": "@0", "run": "bad@", "sample": "@:1", "role": "@::gradients_of_maps"}[kind]
    assert person.page.url.split("p.feature_maps.compare=")[1].split("&")[0] == quote(text, "")


def test_inputs_gradients_and_kernels_can_replace_the_maps(
    address: str, visit: Callable[..., Person]
) -> None:
    person = visit(address, run="good", layer="fmapboard/block.0")
    pictures = {person.canvas(".grid canvas")}
    for role in ("Inputs", "Gradients", "Kernels"):
        person.menu("Data")
        person.see(f"[aria-label=Data] button:text-is('{role}')").click()
        person.settle()
        pictures.add(person.canvas(".grid canvas"))
        assert person.see(".grid-room > .note:visible").count() == 0
    assert len(pictures) == 4
