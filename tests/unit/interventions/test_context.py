"""`intervene` changes outputs, inputs and gradients of layers inside its block, and only there."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from module_hooks import hook_count
from networks import NestedNet
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import fmapboard
from fmapboard import add, intervene, replace, scale, silence

X = torch.linspace(-2, 2, 2 * 3 * 8 * 8).reshape(2, 3, 8, 8)


def net() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(inplace=True), nn.Conv2d(4, 2, 3))


def test_outputs_are_changed_inside_the_block_and_the_next_layer_gets_the_change() -> None:
    model = net()
    before = model(X)
    first = model[0](X)
    first[:, [1, 3]] = 0
    with intervene(model, {"0": silence([1, 3])}):
        assert torch.equal(model(X), model[2](model[1](first)))
    assert hook_count(model) == 0
    assert torch.equal(model(X), before)


def test_a_function_and_several_changes_in_order_are_applied() -> None:
    model = net()
    with intervene(model, {"2": [add(1.0), lambda maps: maps.clamp(min=0), scale(2.0)]}):
        changed = model(X)
    assert torch.equal(changed, (model(X) + 1).clamp(min=0) * 2)


def test_layers_are_selected_by_glob_by_regex_and_by_type_as_elsewhere() -> None:
    for key in ("?", re.compile("[02]"), nn.Conv2d):
        model = net()
        with intervene(model, {key: silence()}) as active:
            assert not model(X).any()
        assert active.layers == ("0", "2")


def test_the_whole_network_has_the_name_of_its_type() -> None:
    model = net()
    with intervene(model, {"Sequential": replace(3.0, 0)}):
        assert torch.equal(model(X)[:, 0], torch.full((2, 4, 4), 3.0))


def test_inputs_are_changed_also_those_given_by_keyword() -> None:
    class ByKeyword(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3)

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.conv(input=x)
            return out

    for model in (nn.Sequential(nn.Conv2d(3, 4, 3)), ByKeyword()):
        layer = next(iter(model.named_children()))[0]
        without_green = X.clone()
        without_green[:, 1] = 0
        with intervene(model, inputs={layer: silence(1)}):
            changed = model(X)
        assert torch.equal(changed, model(without_green))


def test_of_several_tensors_the_first_is_changed_and_objects_without_it_are_passed_on() -> None:
    class Cache(dict[str, Any]):
        pass

    class TakesMore(nn.Module):
        def forward(self, ids: Tensor, x: Tensor, cache: Cache) -> tuple[Tensor, Cache, Tensor]:
            cache["seen"] = True
            return ids, cache, x

    model, cache, ids = nn.Sequential(nn.Identity()), Cache(), torch.arange(3)
    model.more = TakesMore()
    with intervene(model, {"more": add(1.0)}, inputs={"more": scale(2.0)}):
        same, kept, x = model.more(ids, X, cache)
    assert same is ids
    assert kept is cache
    assert cache == {"seen": True}
    assert torch.equal(x, X * 2 + 1)


@pytest.mark.parametrize(
    ("layer", "x", "axis"),
    [
        (nn.Linear(3, 6), torch.randn(2, 5, 3), 2),
        (nn.Linear(3, 6), torch.randn(2, 3), 1),
        (nn.Linear(3, 6), torch.randn(2, 4, 4, 3), 3),
        (nn.LayerNorm(3), torch.randn(2, 4, 4, 3), 3),
        (nn.Conv1d(3, 6, 1), torch.randn(2, 3, 5), 1),
        (nn.Conv2d(3, 6, 1), torch.randn(3, 5, 5), 0),
        (nn.Conv3d(3, 6, 1), torch.randn(2, 3, 4, 5, 5), 1),
        (nn.LSTM(3, 6), torch.randn(5, 2, 3), 2),
        (nn.BatchNorm2d(3).eval(), torch.randn(2, 3, 5, 5), 1),
    ],
)
def test_channels_are_on_the_axis_that_the_pictures_show(
    layer: nn.Module, x: Tensor, axis: int
) -> None:
    model = nn.Sequential(layer)
    before = model(x)
    with intervene(model, {"0": silence(2)}):
        after = model(x)
    if isinstance(before, tuple):
        before, after = before[0], after[0]
    expected = before.clone()
    expected.select(axis, 2).zero_()
    assert torch.equal(after, expected)
    assert before.select(axis, 2).any()


def test_gradients_of_outputs_are_changed_before_they_flow_back() -> None:
    model = NestedNet().eval()
    model(X).sum().backward()
    plain = {name: p.grad.clone() for name, p in model.named_parameters()}
    model.zero_grad()
    with intervene(model, gradients={"inner.0.0": scale(0.5)}):
        out = model(X)
        out.sum().backward()
    halved = ("stem.", "inner.0.0.")
    for name, p in model.named_parameters():
        expected = plain[name] * (0.5 if name.startswith(halved) else 1.0)
        assert torch.equal(p.grad, expected), name
    assert torch.equal(out, model(X))


def test_the_gradient_of_one_layer_is_changed_even_if_it_returns_its_input() -> None:
    class Skip(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.same = nn.Identity()

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = x + self.same(x)
            return out

    model, x = Skip(), torch.ones(1, 2, requires_grad=True)
    with intervene(model, gradients={"same": silence()}):
        model(x).sum().backward()
    assert x.grad.tolist() == [[1.0, 1.0]]


def test_a_changed_gradient_survives_an_in_place_layer_and_a_late_backward_pass() -> None:
    model = net()
    with intervene(model, gradients={"0": silence()}):
        out = model(X)
    out.sum().backward()
    assert not model[0].weight.grad.any()
    assert model[2].weight.grad.any()


def test_without_gradients_a_pass_under_changed_gradients_is_the_same() -> None:
    model = net()
    before = model(X)
    with intervene(model, gradients={"0": silence()}), torch.no_grad():
        assert torch.equal(model(X), before)


def test_in_nested_blocks_the_outer_one_changes_first() -> None:
    model = net()
    before = model(X)
    with intervene(model, {"2": add(1.0)}):
        with intervene(model, {"2": scale(2.0)}):
            both = model(X)
        outer = model(X)
    assert torch.equal(both, (before + 1) * 2)
    assert torch.equal(outer, before + 1)
    assert hook_count(model) == 0


def test_blocks_may_end_in_another_order() -> None:
    model = net()
    before = model(X)
    outer, inner = intervene(model, {"2": add(1.0)}), intervene(model, {"2": scale(2.0)})
    outer.__enter__()
    inner.__enter__()
    outer.__exit__(None, None, None)
    assert torch.equal(model(X), before * 2)
    inner.__exit__(None, None, None)
    assert hook_count(model) == 0
    assert torch.equal(model(X), before)


def test_the_same_intervention_can_be_used_again_but_not_within_itself() -> None:
    model = net()
    silenced = intervene(model, {"2": silence()})
    for _ in range(2):
        with silenced:
            assert not model(X).any()
            with pytest.raises(fmapboard.ConfigurationError, match="is active already"):
                silenced.__enter__()
            assert not model(X).any()
        assert model(X).any()
    silenced.__exit__(None, None, None)  # does nothing


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_hooks_are_gone_after_an_error_in_the_block(error: type[BaseException]) -> None:
    model = net()
    every = {"0": silence()}
    with pytest.raises(error), intervene(model, every, inputs=every, gradients={"2": silence()}):
        raise error
    assert hook_count(model) == 0


def test_an_error_of_the_users_function_is_raised_and_hooks_are_gone() -> None:
    def fails(maps: Tensor) -> Tensor:
        raise ZeroDivisionError("mine")

    model = net()
    with pytest.raises(ZeroDivisionError, match="mine"), intervene(model, {"0": fails}):
        model(X)
    assert hook_count(model) == 0


def test_the_users_own_hooks_stay_and_run_before_the_intervention() -> None:
    model, seen = net(), []
    handle = model[2].register_forward_hook(lambda *args: seen.append(args[2].clone()))
    before = model(X)
    with intervene(model, {"2": silence()}):
        assert not model(X).any()
    assert torch.equal(seen[1], before)
    assert hook_count(model) == 1
    handle.remove()


def test_names_in_wrapped_models_may_have_the_wrappers_prefix() -> None:
    model = net()
    wrapped = nn.DataParallel(model)
    for name in ("2", "module.2"):
        with intervene(wrapped, {name: silence()}):
            assert not wrapped(X).any()
    own = nn.Sequential()
    own.module = net()
    with intervene(nn.DataParallel(own), {"module.2": silence()}):
        assert not own(X).any()


def test_a_layer_that_runs_twice_is_changed_in_both_calls() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 3, 1)

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.conv(x) + self.conv(2 * x)
            return out

    model = Twice()
    with intervene(model, {"conv": silence([0])}):
        assert not model(X)[:, 0].any()


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_checkpointed_segment_is_recomputed_with_the_intervention(reentrant: bool) -> None:
    class Checkpointed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = net()

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = checkpoint(self.inner, x, use_reentrant=reentrant)
            return out

    model = Checkpointed()
    with intervene(model, {"inner.0": silence([0, 1, 2, 3])}):
        model(X.clone().requires_grad_()).sum().backward()
    assert not model.inner[2].weight.grad.any()  # its input was silenced when it was recomputed
    assert model.inner[2].bias.grad.any()


def test_a_layer_that_was_not_called_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    model = net()
    with intervene(model, {"0": silence(), "2": silence()}):
        model[2](torch.ones(1, 4, 3, 3))
    assert [record.getMessage() for record in caplog.records] == [
        "fmapboard: intervene: '0' was not called, so nothing was changed there; name a layer that "
        "fmapboard.layers(model, x) shows with an output"
    ]
    caplog.clear()
    with pytest.raises(ValueError), intervene(model, {"0": silence()}):  # noqa: PT011
        raise ValueError
    assert caplog.records == []
