"""`extract_gradients` returns what backward hooks receive."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from extracted_maps import random_images, untrained
from torch import Tensor, nn

from fmapboard import ConfigurationError, extract_gradients
from fmapboard.model.layers import named_layers


def _out_of_place(model: nn.Module) -> nn.Module:
    twin = copy.deepcopy(model)
    for module in twin.modules():
        if hasattr(module, "inplace"):
            module.inplace = False
    return twin


def _loss(out: Tensor) -> Tensor:
    return (out * torch.linspace(-1, 1, out.numel()).view_as(out)).sum()


def _backward_hooks(
    model: nn.Module, x: Tensor, kind: type[nn.Module]
) -> dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """(grad_output, grad_input) as `register_full_backward_hook` gives them."""
    found: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {}
    for name, module in named_layers(model).items():
        if isinstance(module, kind):

            def hook(_: nn.Module, grad_in: Any, grad_out: Any, name: str = name) -> None:
                found[name] = (grad_out, grad_in)

            module.register_full_backward_hook(hook)
    _loss(model(x.clone().requires_grad_())).backward()
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("resnet18", nn.Conv2d),
        ("squeezenet1_1", nn.Module),
        ("googlenet", nn.Conv2d),
    ],
)
def test_gradients_are_those_of_backward_hooks_on_the_same_net_without_inplace_operations(
    name: str, kind: type[nn.Module]
) -> None:
    model, x = untrained(name), random_images(32 if name == "resnet18" else 64, batch=1)
    expected = _backward_hooks(_out_of_place(model), x, kind)
    found = extract_gradients(_out_of_place(model), x, loss=_loss, layers=kind)
    assert found.keys() == expected.keys()
    for layer, (grad_output, grad_input) in expected.items():
        assert torch.equal(found[layer].grad_output[0], grad_output[0]), layer
        assert torch.equal(found[layer].grad_input[0], grad_input[0]), layer
    inplace = extract_gradients(model, x, loss=_loss, layers=nn.Conv2d)
    for layer, gradients in inplace.items():
        assert torch.equal(gradients.grad_output[0], expected[layer][0][0]), layer
        assert torch.equal(gradients.grad_input[0], expected[layer][1][0]), layer


class _Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 1, 1, bias=False)
        self.relu = nn.ReLU(inplace=True)
        self.branch = nn.Conv2d(1, 1, 1, bias=False)
        with torch.no_grad():
            self.stem.weight.fill_(2.0)
            self.branch.weight.fill_(3.0)

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu(self.stem(x))
        return self.branch(x) + 10 * x  # type: ignore[no-any-return]


def test_grad_input_is_the_layers_own_share_if_other_layers_use_the_tensor_too() -> None:
    gradients = extract_gradients(_Residual(), torch.tensor([[[[1.0, -1.0]]]]), loss=Tensor.sum)
    assert gradients["branch"].grad_output[0].tolist() == [[[[1.0, 1.0]]]]
    assert gradients["branch"].grad_input[0].tolist() == [[[[3.0, 3.0]]]]
    assert gradients["stem"].grad_output[0].tolist() == [[[[13.0, 0.0]]]]
    assert gradients["stem"].grad_input[0].tolist() == [[[[26.0, 0.0]]]]


def test_an_inplace_relu_has_the_gradients_of_an_out_of_place_one() -> None:
    model, x = _Residual(), torch.tensor([[[[1.0, -1.0]]]])
    for twin in (model, _out_of_place(model)):
        relu = extract_gradients(twin, x, loss=Tensor.sum, layers=nn.ReLU)["relu"]
        assert relu.grad_output[0].tolist() == [[[[13.0, 13.0]]]]
        assert relu.grad_input[0].tolist() == [[[[13.0, 0.0]]]]


def test_no_parameter_gets_a_gradient_and_no_parameter_hook_fires() -> None:
    model = untrained("resnet18")
    fired: list[Any] = []
    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(fired.append)
        parameter.register_hook(fired.append)
    with torch.no_grad():
        gradients = extract_gradients(model, random_images(32, batch=1), loss=_loss)
    assert len(gradients) == 20
    assert fired == []
    assert all(parameter.grad is None for parameter in model.parameters())


def test_a_frozen_network_has_gradients_of_its_maps_and_an_unused_layer_has_none() -> None:
    class Unused(_Residual):
        def forward(self, x: Tensor) -> Tensor:
            self.branch(x)
            return self.stem(x)  # type: ignore[no-any-return]

    model = Unused().requires_grad_(False)
    gradients = extract_gradients(model, torch.ones(1, 1, 1, 1), loss=Tensor.sum)
    assert gradients["stem"].grad_input[0].item() == 2.0
    assert gradients["branch"].grad_output == (None,)
    assert gradients["branch"].grad_input == (None,)


def test_the_users_input_is_neither_changed_nor_made_to_require_a_gradient() -> None:
    x = torch.rand(1, 2, 3, 3) - 0.5
    before = x.clone()
    extract_gradients(nn.Sequential(nn.ReLU(inplace=True)), x, loss=Tensor.sum, layers=nn.ReLU)
    assert torch.equal(x, before)
    assert not x.requires_grad
    assert x.grad is None


def test_gradients_are_available_inside_the_users_inference_mode() -> None:
    model = _Residual()
    with torch.inference_mode():
        gradients = extract_gradients(model, torch.tensor([[[[1.0, -1.0]]]]), loss=Tensor.sum)
        assert torch.is_inference_mode_enabled()
    assert gradients["stem"].grad_input[0].tolist() == [[[[26.0, 0.0]]]]


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (lambda out: out, r"loss returned tensor \[2, 4, 6, 6\]: expected a tensor with one"),
        (lambda out: 3.0, "loss returned float: expected a tensor with one element"),
        (lambda out: out.detach().sum(), "the loss does not require a gradient: compute it "),
    ],
)
def test_a_loss_that_is_not_a_single_differentiable_number_is_refused(
    loss: Any, message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        extract_gradients(nn.Sequential(nn.Conv2d(3, 4, 3)), random_images(8), loss=loss)
