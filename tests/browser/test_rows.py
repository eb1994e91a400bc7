"""Sequences in a real browser: a row of pixels per channel, values, comparisons, scales."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from browser_visitor import Person
from torch import Tensor, nn

import fmapboard

STEPS = [0, 1, 2]
LENGTH = 60


class Audio(nn.Module):
    """Two 1-D convolutions; channel 3 of the first is constant."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Conv1d(1, 12, 5)
        self.second = nn.Conv1d(12, 6, 3)
        with torch.no_grad():
            self.first.weight[3], self.first.bias[3] = 0.0, 2.0

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.first(x).tanh())  # type: ignore[no-any-return]


def waves() -> Tensor:
    time = torch.arange(float(LENGTH))
    return torch.stack([(0.3 * time).sin(), (0.7 * time).cos()])[:, None]  # [2, 1, L]


@pytest.fixture(scope="module")
def address(serve: Callable[[Path], str], tmp_path_factory: pytest.TempPathFactory) -> str:
    root = tmp_path_factory.mktemp("sequences")
    model = Audio()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    with fmapboard.watch(
        model, root / "audio", every=1, samples=2, inputs=True, activation_gradients=True
    ) as board:
        for step in STEPS:
            with board.step(step):
                optimizer.zero_grad()
                model(waves()).square().mean().backward()
                optimizer.step()
    return serve(root)


def test_all_channels_are_one_picture_and_the_value_under_the_cursor_is_the_logged_one(
    address: str, visit: Callable[..., Person]
) -> None:
    with torch.no_grad():
        true = Audio().first(waves())[0]  # [12, 56]
    person = visit(address, run="audio", layer="fmapboard/first", step=0)
    person.drawn(0, "first")
    assert "12 channels · 56 columns" in person.see(".facts").text_content()
    box = person.see(".grid canvas").bounding_box()
    seen: dict[int, str] = {}
    for y in range(22, int(box["height"]), 6):
        person.page.mouse.move(box["x"] + 200, box["y"] + y)
        said = person.see(".status").text_content()
        found = re.fullmatch(r"channel (\d+) · position (\d+) · (\S+) (.+)", said)
        if found is None:
            continue
        channel, position, value, rest = found.groups()
        seen[int(channel)] = rest
        assert float(value.replace("−", "-")) == pytest.approx(
            float(true[int(channel), int(position)]), abs=0.02
        )
    assert sorted(seen) == list(range(12))
    assert "constant" in seen[3]


def test_colours_scale_lock_size_and_order_change_the_rows(
    address: str, visit: Callable[..., Person]
) -> None:
    person = visit(address, run="audio", layer="fmapboard/first")
    pictures = [person.canvas(".grid canvas")]
    for key in ("s", "l", "c", "c", "c", "+"):
        person.press(key)
        person.settle()
        pictures.append(person.canvas(".grid canvas"))
    for order in ("strength", "change", "similarity"):
        person.menu("Display")
        person.see("select[aria-label=Sort]").select_option(order)
        person.settle()
        pictures.append(person.canvas(".grid canvas"))
    assert len(set(pictures)) == 10
    person.menu("Display")
    person.see("select[aria-label=Tile]").select_option(label="24 px")
    person.settle()
    grid = "document.querySelector('.grid')"
    person.wait(f"{grid}.scrollWidth > {grid}.clientWidth")
    before, box = person.canvas(".grid canvas"), person.see(".grid canvas").bounding_box()
    positions = []
    for left in (0, 300):
        person.frame.evaluate(f"{grid}.scrollLeft = {left}")
        person.wait(f"{grid}.scrollLeft === {left}")
        person.page.mouse.move(box["x"] + 140 + left / 100, box["y"] + 60)
        said = re.search(r"position (\d+)", person.see(".status").text_content())
        assert said is not None
        positions.append(int(said[1]))
    assert positions[1] > positions[0]
    person.wait(f"document.querySelector('.grid canvas').toDataURL() !== {before!r}")


def test_a_channel_of_a_sequence_is_a_line_over_positions_and_offers_no_overlay(
    address: str, visit: Callable[..., Person]
) -> None:
    person = visit(address, run="audio", layer="fmapboard/second", channel=2)
    assert person.see("canvas.profile").is_visible()
    assert "channel 2 over positions" in person.see("canvas.profile").get_attribute("aria-label")
    assert person.see("button:text-is('Over input')").is_hidden()
    box = person.see("figure:visible canvas").first.bounding_box()
    person.page.mouse.move(box["x"] + box["width"] - 2, box["y"] + 10)
    said = person.see("figcaption .value:visible").first.text_content()
    assert said.startswith("position 53: ")
    line = person.canvas("canvas.profile")
    person.press("]")
    person.see("h2:text-is('Channel 3')").wait_for()
    assert person.canvas("canvas.profile") != line


@pytest.mark.parametrize(
    ("kind", "other"),
    [
        ("sample", "1"),
        *(
            pytest.param(*pair, marks=pytest.mark.sweep)
            for pair in (("step", "0"), ("role", "gradients_of_maps"))
        ),
    ],
)
def test_rows_are_compared_with_another_step_sample_or_role(
    address: str, visit: Callable[..., Person], kind: str, other: str
) -> None:
    person = visit(address, run="audio", layer="fmapboard/first", step=2, channel=1)
    alone = person.canvas(".grid canvas")
    person.menu("Compare")
    person.see("select[aria-label='Compare with']").select_option(kind)
    person.see("button[aria-label='Change column B']").click()
    label = {"step": "Step of", "sample": "Sample of", "role": "What"}[kind]
    person.see(f"select[aria-label^='{label} column B']").select_option(other)
    person.page.keyboard.press("Escape")
    person.menu("Compare")
    person.see("button:text-is('Both')").click()
    person.settle()
    person.wait("document.querySelectorAll('.channel figure:not([hidden])').length === 3")
    assert person.canvas(".grid canvas") != alone
    box = person.see(".grid canvas").bounding_box()
    said = []
    for x in range(50, int(box["width"]), 40):
        person.page.mouse.move(box["x"] + x, box["y"] + 60)
        said.append(person.see(".status").text_content())
    assert any(re.search(r"position \d+ · difference", text) for text in said)


def test_inputs_gradients_and_kernels_of_a_sequence_are_shown(
    address: str, visit: Callable[..., Person]
) -> None:
    person = visit(address, run="audio", layer="fmapboard/first")
    pictures = {person.canvas(".grid canvas")}
    for role in ("Inputs", "Gradients", "Kernels"):
        person.menu("Data")
        person.see(f"[aria-label=Data] button:text-is('{role}')").click()
        person.settle()
        pictures.add(person.canvas(".grid canvas"))
        assert person.see(".grid-room > .note:visible").count() == 0
    assert len(pictures) == 4
    assert "A row per output channel, a column per input" in person.see(".order").text_content()


def test_the_view_of_a_sequence_is_saved_as_a_png(
    address: str, visit: Callable[..., Person], tmp_path: Path
) -> None:
    person = visit(address, run="audio", layer="fmapboard/first")
    with person.page.expect_download() as download:
        person.press("p")
    download.value.save_as(tmp_path / "view.png")
    assert (tmp_path / "view.png").stat().st_size > 5_000
