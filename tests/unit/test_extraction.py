"""`extract` and `extract_gradients` against what `forward` and backward hooks really give."""

from __future__ import annotations

import copy
import random
from collections import UserDict, defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
import torchvision
from torch import Tensor, nn

from fmapboard import ConfigurationError, LayerNotFound, extract, extract_gradients
from fmapboard.model.layers import named_layers

torch.set_num_threads(1)


def _net(name: str, **options: Any) -> nn.Module:
    extra = {"aux_logits": False, "init_weights": False} if name == "googlenet" else {}
    model: nn.Module = getattr(torchvision.models, name)(weights=None, **extra, **options)
    return model.eval()


def _image(size: int = 64, batch: int = 2) -> Tensor:
    return torch.rand(batch, 3, size, size)


def _record_forwards(model: nn.Module, x: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Outputs and inputs of each Conv2d by wrapping its `forward`, cloned at once; no hooks."""
    outputs: dict[str, Tensor] = {}
    inputs: dict[str, Tensor] = {}
    for name, module in model.named_modules():
        if isinstance(module, nn.Conv2d):

            def wrapped(value: Tensor, name: str = name, forward: Any = module.forward) -> Tensor:
                inputs[name] = value.detach().clone()
                out: Tensor = forward(value)
                outputs[name] = out.detach().clone()
                return out

            module.forward = wrapped  # type: ignore[method-assign]
    with torch.no_grad():
        model(x)
    for module in model.modules():
        module.__dict__.pop("forward", None)
    return outputs, inputs


def _assert_same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert list(found) == list(expected)  # call order, and nothing lost
    for name, value in expected.items():
        assert torch.equal(found[name], value), name


@pytest.mark.parametrize(
    ("name", "size", "convolutions"),
    [
        ("alexnet", 64, 5),
        ("vgg11", 32, 8),
        ("squeezenet1_1", 64, 26),
        ("resnet18", 64, 20),
        ("mobilenet_v3_small", 64, 52),
        ("densenet121", 64, 120),
        ("googlenet", 64, 57),
    ],
)
def test_outputs_and_inputs_are_bitwise_what_each_forward_returned_and_got(
    name: str, size: int, convolutions: int
) -> None:
    model, x = _net(name), _image(size)
    outputs, inputs = _record_forwards(model, x)
    assert len(outputs) == convolutions
    _assert_same(extract(model, x), outputs)
    _assert_same(extract(model, x, side="input"), inputs)


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v3_small", "googlenet"])
def test_in_train_mode_the_outputs_are_those_of_a_training_forward(name: str) -> None:
    model, x = _net(name).train(), _image()
    twin = copy.deepcopy(model)  # its BatchNorm statistics may move
    torch.manual_seed(5)
    outputs, _ = _record_forwards(twin, x)
    torch.manual_seed(5)
    _assert_same(extract(model, x), outputs)


def test_an_inplace_relu_behind_a_convolution_does_not_change_its_output() -> None:
    model = _net("alexnet")
    maps = extract(model, _image())
    assert all(float(value.min()) < 0.0 for value in maps.values())
    rectified = extract(model, _image(), layers="features.1")
    assert float(rectified["features.1"].min()) == 0.0


def test_a_second_call_changes_nothing_that_the_first_returned() -> None:
    model = _net("squeezenet1_1")
    first = extract(model, torch.zeros(1, 3, 64, 64))
    kept = {name: value.clone() for name, value in first.items()}
    second = extract(model, torch.ones(1, 3, 64, 64))
    assert len(first) == len(second) == 26
    _assert_same(first, kept)
    assert not torch.equal(first["features.0"], second["features.0"])


def test_a_returned_map_is_a_clone_that_shares_no_memory_with_the_model() -> None:
    same = nn.Identity()
    x = torch.ones(1, 2, 3, 3)
    out = extract(nn.Sequential(same), x, layers=nn.Identity)["0"]
    out.add_(1.0)
    assert torch.equal(x, torch.ones(1, 2, 3, 3))
    assert not out.requires_grad


class _Restless(nn.Module):
    """BatchNorm, Dropout, a buffer put in place of another, and all random generators."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.frozen = nn.BatchNorm2d(4).eval()
        self.drop = nn.Dropout(0.5)
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        self.seen = self.seen + 1
        random.random()
        np.random.rand()
        out: Tensor = self.drop(self.frozen(self.norm(self.conv(x))))
        return out.sum()


def _state(model: nn.Module) -> list[Any]:
    return [
        *(p.detach().clone() for p in model.parameters()),
        *(b.clone() for b in model.buffers()),
        *(torch.zeros(0) if p.grad is None else p.grad.clone() for p in model.parameters()),
        torch.get_rng_state(),
        torch.tensor([m.training for m in model.modules()]),
        torch.tensor([*np.random.get_state()[1].tolist(), np.random.get_state()[2]]),
        torch.tensor(list(random.getstate()[1]), dtype=torch.int64),
    ]


@pytest.mark.parametrize("what", ["extract", "extract_gradients"])
def test_model_random_numbers_and_gradients_are_bitwise_as_before(what: str) -> None:
    model = _Restless()
    model.frozen.train(False)
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    x, seen, versions = _image(8), model.seen, [p._version for p in model.parameters()]
    before = _state(model)
    if what == "extract":
        extract(model, x)
    else:
        extract_gradients(model, x, loss=lambda out: out)
    for now, then in zip(_state(model), before, strict=True):
        assert torch.equal(now, then)
    assert model.seen is seen
    assert [p._version for p in model.parameters()] == versions
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_extracting_leaves_no_hook_behind_when_the_forward_raises() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Linear(1, 1))
    for run in (extract, lambda m, x: extract_gradients(m, x, loss=Tensor.sum)):
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            run(model, _image(8))
        assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_weights_cast_by_autocast_inside_do_not_stay_in_the_users_cache() -> None:
    cache: list[bool] = []
    model = nn.Sequential(nn.Conv2d(3, 4, 3))
    model.register_forward_hook(lambda *_: cache.append(torch.is_autocast_cache_enabled()))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = extract(model, _image(8))["0"]
        assert torch.is_autocast_cache_enabled()
        model(_image(8)).sum().backward()
    assert cache == [False, True]
    assert out.dtype == torch.bfloat16
    assert model[0].weight.grad is not None


def test_a_layer_called_twice_stands_under_two_names() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(2, 2, 1)
            self.alias = self.conv

        def forward(self, x: Tensor) -> Tensor:
            return self.alias(self.conv(x))  # type: ignore[no-any-return]

    model, x = Twice(), torch.rand(1, 2, 4, 4)
    maps = extract(model, x)
    with torch.no_grad():
        once = model.conv(x)
        twice = model.conv(once)
    _assert_same(maps, {"conv": once, "conv.call2": twice})
    _assert_same(extract(model, x, side="input"), {"conv": x, "conv.call2": once})


@dataclass(frozen=True)
class _Pair:
    maps: Tensor
    scale: float


class _Returns(nn.Module):
    def __init__(self, build: Any) -> None:
        super().__init__()
        self.build = build

    def forward(self, x: Tensor) -> Any:
        return self.build(x + 1)


class _Head(nn.Module):
    """Calls `inner`, then overwrites every tensor that it returned."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        from fmapboard.model.tensors import tensors

        for tensor in tensors(self.inner(x)):
            tensor.zero_()
        return x


@pytest.mark.parametrize(
    "build",
    [
        lambda t: (t, [t * 2, None, "text"]),
        lambda t: {"a": t, "b": (t, 3)},
        lambda t: defaultdict(list, a=t),
        lambda t: UserDict(a=t),
        lambda t: _Pair(t, 2.0),
        lambda t: torch.max(t, dim=0),
        lambda t: nn.utils.rnn.pack_sequence([t[0], t[1]]),
    ],
    ids=["tuple", "dict", "defaultdict", "userdict", "dataclass", "structseq", "packed"],
)
def test_structures_of_any_kind_come_back_with_clones_of_their_tensors(build: Any) -> None:
    from fmapboard.model.tensors import tensors

    x = torch.rand(2, 3)
    out = extract(_Head(_Returns(build)), x, layers=_Returns)["inner"]
    expected = build(x + 1)
    assert isinstance(out, (type(expected), dict))
    pairs = list(zip(tensors(out), tensors(expected), strict=True))
    assert pairs
    assert all(torch.equal(found, wanted) for found, wanted in pairs)


def test_recurrent_and_attention_layers_give_their_whole_output() -> None:
    lstm, x = nn.LSTM(3, 5), torch.rand(7, 2, 3)
    out, (h, c) = extract(nn.Sequential(lstm), x, layers=nn.LSTM)["0"]
    with torch.no_grad():
        wanted, (wanted_h, wanted_c) = lstm(x)
    assert all(torch.equal(a, b) for a, b in ((out, wanted), (h, wanted_h), (c, wanted_c)))

    attention, q = nn.MultiheadAttention(4, 2), torch.rand(5, 1, 4)
    out, weights = extract(attention, (q, q, q), layers=nn.MultiheadAttention)["MultiheadAttention"]
    with torch.no_grad():
        wanted, wanted_weights = attention(q, q, q)
    assert torch.equal(out, wanted)
    assert torch.equal(weights, wanted_weights)
    inputs = extract(attention, (q, q, q), layers=nn.MultiheadAttention, side="input")
    assert [tuple(value.shape) for value in inputs["MultiheadAttention"]] == [(5, 1, 4)] * 3


def test_a_layer_that_is_called_with_keywords_gives_them_as_its_input() -> None:
    class Calls(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 1)

        def forward(self, *, image: Tensor) -> Tensor:
            return self.conv(input=image)  # type: ignore[no-any-return]

    x = _image(4)
    found = extract(Calls(), (), side="input", forward_kwargs={"image": x})
    _assert_same(found, {"conv": x})


def test_an_unknown_side_and_an_unknown_layer_are_refused_before_anything_runs() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 1))
    with pytest.raises(ConfigurationError, match="side='out': expected 'output' or 'input'"):
        extract(model, _image(4), side="out")  # type: ignore[arg-type]
    with pytest.raises(LayerNotFound, match="no layer matches 'conv1' among 2"):
        extract(model, _image(4), layers="conv1")


# --- gradients


def _not_inplace(model: nn.Module) -> nn.Module:
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
    model, x = _net(name), _image(32 if name == "resnet18" else 64, batch=1)
    expected = _backward_hooks(_not_inplace(model), x, kind)
    found = extract_gradients(_not_inplace(model), x, loss=_loss, layers=kind)
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


def test_grad_input_is_the_layers_own_share_where_others_use_the_tensor_too() -> None:
    gradients = extract_gradients(_Residual(), torch.tensor([[[[1.0, -1.0]]]]), loss=Tensor.sum)
    assert gradients["branch"].grad_output[0].tolist() == [[[[1.0, 1.0]]]]
    assert gradients["branch"].grad_input[0].tolist() == [[[[3.0, 3.0]]]]
    assert gradients["stem"].grad_output[0].tolist() == [[[[13.0, 0.0]]]]
    assert gradients["stem"].grad_input[0].tolist() == [[[[26.0, 0.0]]]]


def test_an_inplace_relu_has_the_gradients_of_one_that_is_not_in_place() -> None:
    model, x = _Residual(), torch.tensor([[[[1.0, -1.0]]]])
    for twin in (model, _not_inplace(model)):
        relu = extract_gradients(twin, x, loss=Tensor.sum, layers=nn.ReLU)["relu"]
        assert relu.grad_output[0].tolist() == [[[[13.0, 13.0]]]]
        assert relu.grad_input[0].tolist() == [[[[13.0, 0.0]]]]


def test_no_parameter_gets_a_gradient_and_no_parameter_hook_fires() -> None:
    model = _net("resnet18")
    fired: list[Any] = []
    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(fired.append)
        parameter.register_hook(fired.append)
    with torch.no_grad():
        gradients = extract_gradients(model, _image(32, batch=1), loss=_loss)
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


def test_gradients_are_to_be_had_inside_the_users_inference_mode() -> None:
    model = _Residual()
    with torch.inference_mode():
        gradients = extract_gradients(model, torch.tensor([[[[1.0, -1.0]]]]), loss=Tensor.sum)
        assert torch.is_inference_mode_enabled()
    assert gradients["stem"].grad_input[0].tolist() == [[[[26.0, 0.0]]]]


def test_a_lazy_network_is_extracted_as_its_first_forward_pass() -> None:
    model = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d())
    maps = extract(model, _image(8))
    assert maps["0"].shape == (2, 4, 6, 6)
    assert not any(module._forward_hooks for module in model)


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (lambda out: out, r"loss returned \(2, 4, 6, 6\): expected a tensor of one element"),
        (lambda out: 3.0, "loss returned float: expected a tensor of one element"),
        (lambda out: out.detach().sum(), "the loss needs no gradient"),
    ],
)
def test_a_loss_that_is_no_single_differentiable_number_is_refused(loss: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        extract_gradients(nn.Sequential(nn.Conv2d(3, 4, 3)), _image(8), loss=loss)
