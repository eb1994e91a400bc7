"""A sorted order shows the number it is sorted by, a locked scale is that of the shown sample, and
gradients have a palette of their own; the numbers are those of the model, computed with PyTorch."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from browser_visitor import Person
from drawn_texts import drawn_texts
from torch import Tensor, nn

import fmapboard

STEPS = [0, 5, 10, 15]
CHANNELS = 6


@dataclass
class Trained:
    """What happened in a training run, step by step."""

    logdir: Path
    maps: list[Tensor] = field(default_factory=list)  # [N, C, H, W]
    gradients: list[Tensor] = field(default_factory=list)
    weights: list[Tensor] = field(default_factory=list)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A small network, logged at four steps on a batch of four images, of which two are drawn."""
    found = Trained(tmp_path_factory.mktemp("sorted"))
    torch.manual_seed(3)
    model = nn.Sequential(nn.Conv2d(3, CHANNELS, 3, padding=1), nn.Tanh(), nn.Conv2d(6, 2, 1))
    images = torch.randn(4, 3, 16, 16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    with fmapboard.watch(
        model, found.logdir / "run", every=1, samples=2, activation_gradients=True
    ) as board:
        for step in STEPS:
            maps = model[0](images)
            maps.retain_grad()
            model[1:](maps).square().mean().backward()
            found.maps.append(maps.detach())
            found.gradients.append(maps.grad)
            found.weights.append(model[0].weight.detach().clone())
            optimizer.zero_grad()
            with board.step(step):
                model(images).square().mean().backward()
                optimizer.step()
            optimizer.zero_grad()
    return found


@pytest.fixture(scope="module")
def sorted_address(serve: Callable[[Path], str], trained: Trained) -> str:
    return serve(trained.logdir)


def numbers(person: Person, before: str, after: str = "") -> list[tuple[int, float]]:
    """(channel, number below it) of each tile, in the order drawn."""
    texts = drawn_texts(person, ".grid canvas")
    found, channel = [], -1
    for text in texts:
        if re.fullmatch(r"\d+", text):
            channel = int(text)
        elif text.startswith(before) and text.endswith(after):
            number = text.removeprefix(before).removesuffix(after).replace("−", "-")
            found.append((channel, float(number.replace("–", "nan"))))
    return found


def test_strength_is_the_root_mean_square_over_the_batch(
    sorted_address: str, trained: Trained, visit: Callable[..., Person]
) -> None:
    person = visit(sorted_address, sort="strength", step=10)
    expected = trained.maps[2].square().mean((0, 2, 3)).sqrt()
    shown = numbers(person, "RMS ")
    assert [c for c, _ in shown] == expected.argsort(descending=True).tolist()
    assert [value for _, value in shown] == pytest.approx(
        [float(expected[c]) for c, _ in shown], rel=5e-3
    )
    meaning = person.see(".order").text_content()
    assert "root mean square" in meaning
    assert "whole batch at step 10" in meaning
    person.press("Home")  # the order and its numbers stay, and say of which step they are
    person.drawn(0)
    assert numbers(person, "RMS ") == shown
    assert "at step 10" in person.see(".order").text_content()
    person.menu("Display")
    person.see(".again").click()
    person.settle()
    assert "at step 0" in person.see(".order").text_content()
    first = trained.maps[0].square().mean((0, 2, 3)).sqrt()
    assert dict(numbers(person, "RMS ")) == pytest.approx(
        {c: float(first[c]) for c in range(CHANNELS)}, rel=5e-3
    )


def test_change_is_the_mean_relative_movement_of_the_weights(
    sorted_address: str, trained: Trained, visit: Callable[..., Person]
) -> None:
    person = visit(sorted_address, sort="change")
    flat = [weight.flatten(1) for weight in trained.weights]
    moved = [(b - a).norm(dim=1) / a.norm(dim=1) for a, b in pairwise(flat)]
    expected = 100 * torch.stack(moved).mean(0)
    shown = numbers(person, "Δ ", " %")
    assert [c for c, _ in shown] == expected.argsort(descending=True).tolist()
    assert [value for _, value in shown] == pytest.approx(
        [float(expected[c]) for c, _ in shown], rel=1e-2
    )
    meaning = person.see(".order").text_content()
    assert "in percent of their norm" in meaning
    assert "mean over 3 logged steps, 5 to 15" in meaning


@pytest.mark.parametrize("sample", [0, 1])
def test_similarity_is_the_correlation_with_the_channel_before(
    sorted_address: str, trained: Trained, visit: Callable[..., Person], sample: int
) -> None:
    person = visit(sorted_address, sort="similarity", step=15, sample=sample)
    shown = numbers(person, "r ")
    order = [c for c, _ in shown]
    assert sorted(order) == list(range(CHANNELS))
    small = nn.functional.avg_pool2d(trained.maps[3][sample], 2).flatten(1)  # [C, 8 * 8]
    correlation = torch.corrcoef(small)
    assert order[0] == int(trained.maps[3].square().mean((0, 2, 3)).argmax())
    assert shown[0][1] != shown[0][1]  # the first one has none before it
    for before, (now, value) in zip(order, shown[1:], strict=False):
        assert value == pytest.approx(float(correlation[before, now]), abs=0.01)
    assert f"of sample {sample} at step 15" in person.see(".order").text_content()


def test_an_order_by_index_has_no_line_and_no_numbers(
    sorted_address: str, visit: Callable[..., Person]
) -> None:
    person = visit(sorted_address)
    assert not person.see(".order").is_visible()
    assert not [text for text in drawn_texts(person, ".grid canvas") if re.match(r"RMS|Δ|r ", text)]


def ends(person: Person) -> list[float]:
    """Values at both ends of the colour bar of the maps."""
    labels = person.see(".legend .bar >> nth=0 >> .end").all_text_contents()
    texts = (labels[0], labels[-1])
    return [float(text.replace("−", "-")) for text in texts]


@pytest.mark.parametrize("sample", [0, 1])
def test_a_locked_scale_has_the_extremes_of_the_shown_sample(
    sorted_address: str, trained: Trained, visit: Callable[..., Person], sample: int
) -> None:
    person = visit(sorted_address, sample=sample, locked=1, channel=2, step=5)
    person.settle()
    all_steps = torch.stack([maps[sample, 2] for maps in trained.maps])
    batch = torch.stack([maps[:, 2] for maps in trained.maps])
    expected = [float(all_steps.min()), float(all_steps.max())]
    assert [float(batch.min()), float(batch.max())] != pytest.approx(expected, rel=1e-2)
    assert ends(person) == pytest.approx(expected, rel=5e-3)
    person.press("l")
    person.settle()
    only = trained.maps[1][sample, 2]
    assert ends(person) == pytest.approx([float(only.min()), float(only.max())], rel=5e-3)


def chosen(person: Person) -> Any:
    return person.see("select[aria-label^=Colours]").input_value()


def test_gradients_open_in_the_signed_palette_and_keep_their_own(
    sorted_address: str, trained: Trained, visit: Callable[..., Person]
) -> None:
    person = visit(sorted_address, channel=1)
    assert chosen(person) == "viridis"
    person.menu("Data")
    person.see("[aria-label=Data] button:text-is('Gradients')").click()
    person.settle()
    assert chosen(person) == "signed"
    peak = float(trained.gradients[-1][0, 1].abs().max())
    assert ends(person) == pytest.approx([-peak, peak], rel=5e-3)
    person.press("c")  # the palette after the last is the first
    person.settle()
    assert chosen(person) == "grey"
    person.menu("Display")
    person.see("select[aria-label^=Colours]").select_option("magma")
    person.settle()
    gradients = trained.gradients[-1][0, 1]
    assert ends(person) == pytest.approx([float(gradients.min()), float(gradients.max())], rel=5e-3)
    person.menu("Data")
    person.see("[aria-label=Data] button:text-is('Maps')").click()
    person.settle()
    assert chosen(person) == "viridis"
    assert "gradient_colours=magma" in person.page.url
    person.reopen()
    assert chosen(person) == "viridis"
    person.menu("Data")
    person.see("[aria-label=Data] button:text-is('Gradients')").click()
    person.settle()
    assert chosen(person) == "magma"
