"""`extract` of both sides in one pass, of several arguments, and with the autograd graph."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from extracted_maps import assert_same_maps, random_images, untrained
from model_state import assert_unchanged, state_of
from module_hooks import hook_count
from torch import Tensor, nn

from fmapboard import KernelShape, extract
from fmapboard.notebook import LayerMaps


def test_both_sides_of_one_pass_are_those_of_two_passes() -> None:
    model, x, passes = untrained("squeezenet1_1"), random_images(), []
    model.register_forward_hook(lambda *_: passes.append(1))
    both = extract(model, x, side="both")
    assert len(passes) == 1
    assert len(both) == 26
    assert_same_maps(both, extract(model, x))
    assert_same_maps(both.inputs, extract(model, x, side="input"))
    assert isinstance(both.inputs, LayerMaps)
    assert extract(model, x).inputs == {}


class _TwoBranches(nn.Module):
    """Takes two images, a weight by keyword, and passes two tensors on to one layer."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Conv2d(3, 4, 1), nn.Conv2d(3, 4, 1)
        self.join = nn.Bilinear(4, 4, 2)

    def forward(self, a: Tensor, b: Tensor, *, weight: float = 1.0) -> Tensor:
        left, right = self.left(a).mean((2, 3)), self.right(b * weight).mean((2, 3))
        return self.join(left, input2=right)  # type: ignore[no-any-return]


def test_a_model_may_take_several_inputs_and_keyword_arguments() -> None:
    model, a, b = _TwoBranches(), random_images(4), random_images(4)
    names, kwargs = ["left", "right", "join"], {"weight": 2.0}
    found = extract(model, (a, b), layers=names, side="both", forward_kwargs=kwargs)
    assert torch.equal(found.inputs["left"], a)
    assert torch.equal(found.inputs["right"], b * 2.0)
    assert [tuple(value.shape) for value in found.inputs["join"]] == [(2, 4), (2, 4)]
    by_name = extract(model, layers=names, side="both", forward_kwargs={"a": a, "b": b, **kwargs})
    assert_same_maps(by_name, found)


def test_groups_hold_the_names_of_the_convolutions_by_kernel_shape() -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 1))
    model.append(model[2])
    found = extract(model, random_images(8), layers=[nn.Conv2d, nn.ReLU])
    assert isinstance(found, dict)
    assert list(found) == ["0", "1", "2", "2.call2"]
    assert found.groups == {
        KernelShape((8, 3, 3, 3)): ["0"],
        KernelShape((8, 8, 1, 1)): ["2", "2.call2"],
    }


def _perceptual_loss(maps: dict[str, Any]) -> Tensor:
    return torch.stack([value.square().mean() for value in maps.values()]).sum()


def _with_hooks(model: nn.Module, x: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    """Gradients of the loss by hooks that clone, for the input and the parameters."""
    kept: dict[str, Tensor] = {}
    handles = [
        module.register_forward_hook(lambda m, a, out, name=name: kept.update({name: out.clone()}))
        for name, module in model.named_modules()
        if isinstance(module, nn.Conv2d)
    ]
    image = x.clone().requires_grad_()
    model(image)
    named = dict(model.named_parameters())
    found = torch.autograd.grad(_perceptual_loss(kept), [image, *named.values()], allow_unused=True)
    for handle in handles:
        handle.remove()
    return found[0], {name: g for name, g in zip(named, found[1:], strict=True) if g is not None}


@pytest.mark.parametrize(
    "name", ["squeezenet1_1", pytest.param("resnet18", marks=pytest.mark.slow)]
)
def test_the_loss_of_kept_graphs_has_the_gradients_of_hooks(name: str) -> None:
    model, x = untrained(name), random_images(batch=1)
    of_input, of_parameters = _with_hooks(model, x)
    before, image = state_of(model), x.clone().requires_grad_()
    with torch.no_grad():  # the caller's mode does not matter
        maps = extract(model, image, keep_graph=True)
    assert_unchanged(before, state_of(model))
    assert hook_count(model) == 0
    _perceptual_loss(maps).backward()
    assert image.grad is not None
    assert torch.equal(image.grad, of_input)
    found = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
    assert found.keys() == of_parameters.keys()
    assert all(torch.equal(found[n], of_parameters[n]) for n in found)


def test_in_train_mode_too_the_buffers_are_restored_before_the_backward_pass() -> None:
    model, x = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()), random_images(8)
    mean = model[1].running_mean.clone()
    maps = extract(model, x, "2", keep_graph=True)
    assert torch.equal(model[1].running_mean, mean)
    maps["2"].sum().backward()
    kept = [parameter.grad for parameter in model.parameters()]
    model.zero_grad(set_to_none=True)
    model(x).sum().backward()
    for before, parameter in zip(kept, model.parameters(), strict=True):
        assert torch.equal(before, parameter.grad)


def test_without_keep_graph_nothing_requires_a_gradient_and_with_it_clones_are_returned() -> None:
    model, x = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(inplace=True)), random_images(8)
    assert not extract(model, x)["0"].requires_grad
    maps = extract(model, x, keep_graph=True)
    assert maps["0"].requires_grad
    assert float(maps["0"].detach().min()) < 0.0


def test_images_of_inference_mode_can_be_part_of_a_kept_graph() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3))
    with torch.inference_mode():
        x = random_images(8)
        maps = extract(model, x, keep_graph=True)
    maps["0"].sum().backward()
    assert model[0].weight.grad is not None
