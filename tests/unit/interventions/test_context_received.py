"""Under `intervene`, and with `effective=True`, recorded is what the next layer receives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from hooked_model import Choosing
from logged_step import measurement, picture_tags, statistics_of
from module_hooks import hook_count
from torch import Tensor, nn

import fmapboard
from fmapboard import (
    HookRegistry,
    add,
    extract,
    extract_gradients,
    intervene,
    replace,
    scale,
    silence,
)
from fmapboard.capture.passes import CaptureListener
from fmapboard.formats.tab_records import unpack
from fmapboard.formats.tags import RECORD
from fmapboard.records import LoggedStep
from fmapboard.writers.folder import MemoryWriter

X = torch.linspace(-1, 1, 2 * 3 * 8 * 8).reshape(2, 3, 8, 8)
SAID = "what the next layer receives, after all forward hooks"


def net() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(inplace=True), nn.Conv2d(4, 2, 3))


def descriptions(step: LoggedStep) -> dict[str, str]:
    return {p.tag: p.description for p in step.pictures if p.kind != "kernels"}


def doubled(model: nn.Module) -> Any:
    """A hook of the user's own that changes the output of the first layer."""
    return model[0].register_forward_hook(lambda layer, args, output: output * 2)


def test_extract_returns_what_the_next_layer_receives() -> None:
    model = net()
    bare = extract(model, X)
    with intervene(model, {"0": silence([1, 3])}):
        maps = extract(model, X)
    expected = bare["0"].clone()
    expected[:, [1, 3]] = 0
    assert torch.equal(maps["0"], expected)
    assert torch.equal(maps["2"], model[2](expected.relu()))
    assert torch.equal(extract(model, X)["0"], bare["0"])
    assert hook_count(model) == 0


def test_extract_returns_the_input_that_a_layer_receives() -> None:
    model = net()
    bare = extract(model, X, side="input")
    with intervene(model, inputs={"2": add(1.0)}):
        into = extract(model, X, side="input")
    assert torch.equal(into["2"], bare["2"] + 1)


def test_a_users_own_hook_is_seen_with_effective_only() -> None:
    model = net()
    bare = extract(model, X, "0")["0"]
    handle = doubled(model)
    assert torch.equal(extract(model, X, "0")["0"], bare)
    assert torch.equal(extract(model, X, "0", effective=True)["0"], bare * 2)
    handle.remove()


def test_under_an_intervention_a_users_own_hook_is_seen_too() -> None:
    model = net()
    bare = extract(model, X, "0")["0"]
    handle = doubled(model)
    with intervene(model, {"2": silence()}):
        assert torch.equal(extract(model, X, "0")["0"], bare * 2)
    handle.remove()


def test_an_intervention_in_a_part_of_the_model_counts_for_that_part() -> None:
    model = nn.Sequential(net(), net()[:1])
    model[1][0] = nn.Conv2d(2, 4, 3)
    bare = extract(model, X, ["0.0", "1.0"])
    handles = [part[0].register_forward_hook(lambda *args: args[2] * 2) for part in model]
    with intervene(model[1], {"0": add(1.0)}):
        maps = extract(model, X, ["0.0", "1.0"])
    assert torch.equal(maps["0.0"], bare["0.0"])
    again = model[1][0].forward(model[0](X))
    assert torch.equal(maps["1.0"], again * 2 + 1)
    for handle in handles:
        handle.remove()


@pytest.mark.parametrize("first", ["intervention", "recording"])
def test_the_order_in_which_they_begin_does_not_matter(first: str) -> None:
    class Kept(CaptureListener):
        def __init__(self) -> None:
            self.values: list[Tensor] = []
            self.received: list[bool] = []

        def begin(self, args: Any, kwargs: Any) -> None:
            self.values.clear()
            self.received.clear()

        def captured(self, layer_call: Any, side: Any, value: Tensor, module: Any) -> None:
            self.values.append(value.clone())
            self.received.append(layer_call.received)

    model, kept = net(), Kept()
    registry = HookRegistry(model, ["Sequential", "0"])
    handle = doubled(model)
    bare = model[0].forward(X)
    silenced = intervene(model, {"0": silence([1]), "Sequential": silence([0])})
    if first == "intervention":
        silenced.__enter__()
    registry.arm(kept, policy=Choosing(start_over=True))
    if first == "recording":
        model(X)
        assert kept.received == [False, False]
        assert torch.equal(kept.values[0], bare)
        silenced.__enter__()
    out = model(X)
    expected = bare * 2
    expected[:, 1] = 0
    assert kept.received == [True, True]
    assert torch.equal(kept.values[0], expected)
    assert torch.equal(kept.values[1], out)
    assert not out[:, 0].any()
    silenced.__exit__(None, None, None)
    model(X)
    assert kept.received == [False, False]  # as before, in front of the user's hook
    assert torch.equal(kept.values[0], bare)
    registry.disarm()
    handle.remove()
    assert hook_count(model) == 0


def test_gradients_are_those_of_what_the_next_layer_receives() -> None:
    model = net()
    bare = extract_gradients(model, X, torch.sum)
    with intervene(model, gradients={"2": scale(0.5)}):
        found = extract_gradients(model, X, torch.sum)
    assert torch.equal(found["2"].grad_output[0], bare["2"].grad_output[0] * 0.5)
    assert torch.equal(found["0"].grad_output[0], bare["0"].grad_output[0] * 0.5)
    with intervene(model, {"0": silence([1])}):
        silenced = extract_gradients(model, X, torch.sum)
    assert silenced["0"].grad_output[0].shape == bare["0"].grad_output[0].shape


def watched(model: nn.Module, **options: Any) -> LoggedStep:
    kept = MemoryWriter()
    with (
        fmapboard.watch(model, writer=kept, every=1, checks=False, **options) as board,
        board.step(0),
    ):
        model(X).sum().backward()
    return kept.steps[0]


def test_what_watch_draws_is_said_in_the_description_and_in_the_tabs_record() -> None:
    model = net()
    plain = watched(model)
    assert all(SAID not in said for said in descriptions(plain).values())
    with intervene(model, {"0": silence([1])}):
        under = watched(model, activation_gradients=True, inputs=True)
    of_maps = descriptions(under)
    assert len(of_maps) == 7
    for tag, said in of_maps.items():
        assert (f"; {SAID}; " in said) == tag.startswith(("feature_maps", "gradients")), tag
    views = [
        picture["view"]
        for record in under.records
        if record.tag.startswith(RECORD)
        for picture in unpack(record.blobs)[0]["pictures"]
        if picture["role"] == "feature_maps"
    ]
    assert views == [SAID, SAID]
    assert statistics_of(under, "0").constant.tolist() == [False, True, False, False]
    assert picture_tags(under) >= picture_tags(plain)


@pytest.mark.parametrize("probe", [None, X[:1]])
def test_watch_draws_a_users_own_hook_with_effective_only(probe: Tensor | None) -> None:
    model = net()
    handle = doubled(model)
    for effective in (False, True):
        step = watched(model, effective=effective, probe=probe)
        drawn = next(p for p in step.pictures if p.tag.endswith("/0") if p.kind == "feature_maps")
        assert (SAID in drawn.description) == effective
        part = measurement(step, "0")
        expected = model[0].forward(X if probe is None else probe) * (2 if effective else 1)
        assert part.planes is not None
        lo = expected[0].detach().amin((1, 2)).double().numpy()
        assert part.planes.lo[0] == pytest.approx(lo)
    handle.remove()


def test_values_below_an_activations_floor_are_measured() -> None:
    model = net()
    below = torch.zeros(2, 4, 6, 6)
    below[1] = -5.0  # the first sample is at the floor everywhere
    with intervene(model, {"1": replace(below)}):
        step = watched(model)
    assert statistics_of(step, "1").minimum.tolist() == [-5.0] * 4


def test_training_under_an_intervention_is_the_same_when_it_is_watched(tmp_path: Path) -> None:
    def trained(watching: bool) -> dict[str, Tensor]:
        torch.manual_seed(3)
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        board = None
        if watching:
            board = fmapboard.watch(
                model, tmp_path, optimizer=optimizer, every=2, activation_gradients=True,
                effective=True, attribution=True,
            )  # fmt: skip
        with intervene(model, {"0": silence([1])}, gradients={"2": scale(0.5)}):
            for _ in range(4):
                optimizer.zero_grad()
                model(X).square().mean().backward()
                optimizer.step()
        if board is not None:
            board.close()
        assert hook_count(model) == 0
        return model.state_dict()

    bare, seen = trained(watching=False), trained(watching=True)
    assert all(torch.equal(seen[name], value) for name, value in bare.items())
