"""Tapped tensors are selected by `layers=`, also in modules without parameters, and changed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from tapped_models import Residual, images, logged, names
from torch import Tensor, nn

import fmapboard
from fmapboard import extract, extract_gradients, intervene, silence, tap
from fmapboard.errors import LayerNotFound
from fmapboard.writers.folder import MemoryWriter


class Product(nn.Module):
    """No parameters; what `tap` returns is not used."""

    def forward(self, a: Tensor, b: Tensor, factor: Tensor | None = None) -> Tensor:
        c = a * b if factor is None else a * b * factor
        tap("c", c)
        return c.sum()


class TwoTaps(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 1)

    def forward(self, x: Tensor) -> Tensor:
        return _tapped("b", tap("a", self.conv(x) + 1)).mean((2, 3))


def _tapped(name: str, value: Tensor) -> Tensor:
    return tap(name, value * 2)


def factors() -> tuple[Tensor, Tensor]:
    return torch.rand(1, 2, 4, 4, requires_grad=True), torch.rand(1, 2, 4, 4)


@pytest.mark.parametrize("layers", [None, "c", ["c"], re.compile("^c$"), lambda *_: False])
def test_a_tap_in_a_module_without_parameters_is_found(layers: Any) -> None:
    a, b = factors()
    with torch.no_grad():
        assert torch.equal(extract(Product(), (a, b), layers)["c"], a * b)
    found = extract_gradients(Product(), (a, b), torch.sum, layers)
    assert found["c"].grad_output[0].tolist() == torch.ones_like(a).tolist()
    model, kept = Product(), MemoryWriter()
    with fmapboard.watch(model, writer=kept, layers=layers) as board, board.step(0):
        model(a, b).backward()
    assert names(kept.steps[0]) == ["c"]


def test_a_tap_in_a_function_that_the_module_calls_is_found() -> None:
    class Calls(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return _tapped("b", x)

    assert list(extract(Calls(), images())) == ["b"]


def test_inputs_by_keyword_get_gradients_too() -> None:
    a, b = factors()
    keywords = {"a": a.detach(), "b": b, "factor": b}
    found = extract_gradients(Product(), (), torch.sum, forward_kwargs=keywords)
    assert found["c"].grad_output[0] is not None
    assert all(tensor.grad is None for tensor in (a, b))


def test_a_pattern_that_matches_no_module_selects_among_tapped_tensors() -> None:
    x = images()
    assert list(extract(TwoTaps(), x)) == ["conv", "a", "b"]
    assert list(extract(TwoTaps(), x, "conv")) == ["conv", "a", "b"]
    assert list(extract(TwoTaps(), x, "b")) == ["b"]
    assert list(extract(TwoTaps(), x, ["conv", "a"])) == ["conv", "a"]
    assert list(extract(TwoTaps(), x, ["[ab]", "!a"])) == ["b"]
    assert names(logged(TwoTaps(), x, layers="a", probe=x)) == ["a"]


def test_a_pattern_that_matches_nothing_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    said = "no layer matches 'sums', and no tensor named by tap(): tapped was sum"
    with pytest.raises(LayerNotFound, match=re.escape(said)):
        extract(Residual(), images(), "sums")
    with pytest.raises(LayerNotFound, match=re.escape(said)):
        extract_gradients(Residual(), images(), torch.sum, "sums")
    with pytest.raises(LayerNotFound, match=re.escape(said)):
        fmapboard.visualize(Residual(), images(), layers="sums", out=tmp_path)
    model, kept = Residual(), MemoryWriter()
    with fmapboard.watch(model, writer=kept, every=1, layers=["conv", "sums"]) as board:
        for step in range(2):
            with board.step(step):
                model(images()).sum().backward()
    assert caplog.text.count(said) == 1
    with pytest.raises(LayerNotFound, match="no layer matches 'sums' among 2"):
        fmapboard.watch(nn.Sequential(nn.Conv2d(3, 3, 1)), writer=MemoryWriter(), layers="sums")


def test_visualize_draws_the_taps_of_a_module_without_parameters(tmp_path: Path) -> None:
    class Doubled(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return tap("c", x * 2)

    done = fmapboard.visualize(Doubled(), torch.rand(1, 3, 16, 16), layers="c", out=tmp_path)
    assert [list(of_image) for of_image in done.files] == [["c"]]


def test_changes_of_a_tapped_gradient_are_made_in_order() -> None:
    a, b = factors()
    seen: list[Tensor] = []

    def keep(gradient: Tensor) -> Tensor:
        seen.append(gradient)
        return gradient

    changes = [lambda gradient: gradient + 2, lambda gradient: gradient * 10, keep]
    model = Product()
    with intervene(model, gradients={"c": changes}):
        out = model(a, b)
    out.backward()
    assert seen[0].tolist() == torch.full_like(a, 30.0).tolist()
    assert torch.equal(a.grad, 30.0 * b)
    a.grad = None
    model(a, b).backward()
    assert torch.equal(a.grad, b)


def test_changes_of_a_layers_gradient_are_made_in_order_too() -> None:
    model = nn.Sequential(nn.Conv2d(1, 1, 1))
    changes = [lambda gradient: gradient + 2, lambda gradient: gradient * 10]
    with intervene(model, gradients={"0": changes}):
        model(torch.ones(1, 1, 1, 1)).sum().backward()
    assert model[0].bias.grad.item() == 30.0


def test_a_tapped_leaf_keeps_no_hook() -> None:
    class Weighted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(3))

        def forward(self, x: Tensor) -> Tensor:
            return (x * tap("w", self.weight)).sum()

    model = Weighted()
    with intervene(model, gradients={"w": [lambda g: g * 2, lambda g: g + 1]}):
        model(torch.ones(3)).backward()
    assert model.weight.grad.tolist() == [3.0] * 3
    assert not model.weight._backward_hooks
    model.weight.grad = None
    model(torch.ones(3)).backward()
    assert model.weight.grad.tolist() == [1.0] * 3


def test_a_tapped_tensor_is_changed_and_recorded_as_changed() -> None:
    model, x = TwoTaps(), images()
    with torch.no_grad():
        plain = model(x)
        with intervene(model, {"a": silence(1)}):
            silenced, maps = model(x), extract(model, x)
            other = TwoTaps()(x)
    assert silenced[:, 1].tolist() == [0.0, 0.0]
    assert torch.equal(silenced[:, 0], plain[:, 0])
    assert not maps["a"][:, 1].any()
    assert maps["a"][:, 0].any()
    assert other[:, 1].any()  # another model
    assert torch.equal(model(x), plain)


def test_a_tap_has_no_input_and_one_that_was_not_called_is_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with pytest.raises(LayerNotFound, match="no layer matches 'a'"):
        intervene(TwoTaps(), inputs={"a": silence()})
    model = TwoTaps()
    with intervene(model, gradients={"d": silence()}):
        model(images())
    assert "intervene: 'd' was not called" in caplog.text
    assert "name a layer that fmapboard.layers(model, x) shows with an output" in caplog.text
