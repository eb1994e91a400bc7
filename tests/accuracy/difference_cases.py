"""The 60 planted differences of the first-difference acceptance, ten per network.

The list was frozen before any tolerance was chosen. Each case changes a copy of a network in place;
``where`` is the exact place that must be named: a layer, or around functional code the two nearest
layers that both networks run.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional


class Case(NamedTuple):
    """A planted difference: the network, what is changed, how, and the place to be named."""

    network: str
    change: str
    plant: Callable[[Any], object]
    where: str


def _weight(layer: str, change: Callable[[Any], Any]) -> Callable[[Any], None]:
    return _tensor(f"{layer}.weight", change)


def _tensor(name: str, change: Callable[[Any], Any]) -> Callable[[Any], None]:
    def plant(model: nn.Module) -> None:
        path, _, attribute = name.rpartition(".")
        tensor = getattr(model.get_submodule(path), attribute)
        tensor.data.copy_(change(tensor.data.clone()))

    return plant


def _option(layer: str, **options: Any) -> Callable[[Any], None]:
    def plant(model: nn.Module) -> None:
        for name, value in options.items():
            setattr(model.get_submodule(layer), name, value)

    return plant


def _module(layer: str, make: Callable[[], nn.Module]) -> Callable[[Any], None]:
    return lambda model: model.set_submodule(layer, make().eval())


def _method(layer: str, name: str, function: Callable[..., Any]) -> Callable[[Any], None]:
    def plant(model: nn.Module) -> None:
        module = model.get_submodule(layer) if layer else model
        setattr(module, name, MethodType(function, module))

    return plant


def _noise(share: float) -> Callable[[Any], Any]:
    def change(w: Any) -> Any:
        source = torch.Generator().manual_seed(5)
        return w + share * w.std() * torch.randn(w.shape, generator=source)

    return change


def _row(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def one_row(w: Any) -> Any:
        w[3] = change(w)
        return w

    return one_row


def _one_value(w: Any) -> Any:
    w.view(-1)[5] += w.abs().max()
    return w


def _without_sum(block: Any, x: Any) -> Any:
    out = block.relu(block.bn1(block.conv1(x)))
    return block.relu(block.bn2(block.conv2(out)))


def _without_relu(block: Any, x: Any) -> Any:
    out = block.bn2(block.conv2(block.bn1(block.conv1(x))))
    return block.relu(out + block.downsample(x))


def _reflect(conv: Any) -> None:
    conv.padding_mode = "circular"
    conv._reversed_padding_repeated_twice = [p for p in reversed(conv.padding) for _ in range(2)]


def _swap(w: Any) -> Any:
    third = len(w) // 3
    return torch.cat([w[third : 2 * third], w[:third], w[2 * third :]])


def _vit_block(block: Any, x: Any, **_: Any) -> Any:
    x = x + block.drop_path1(block.ls1(block.attn(block.norm1(x))))
    return x + 0.9 * block.drop_path2(block.ls2(block.mlp(block.norm2(x))))


def _convnext_block(block: Any, x: Any) -> Any:
    out = block.mlp(block.norm(block.conv_dw(x)))
    return block.drop_path(out.mul(block.gamma.reshape(1, -1, 1, 1)))


def _joined(function: Callable[..., Any], number: int) -> Callable[[Any], None]:
    def joined(net: Any, out: Any, x: Any, index: int) -> Any:
        return function(out, x) if index == number else type(net).joined(net, out, x, index)

    return _method("", "joined", joined)


def _activated(function: Callable[..., Any], number: int) -> Callable[[Any], None]:
    def activated(net: Any, x: Any, index: int) -> Any:
        return function(x) if index == number else functional.relu_(x)

    return _method("", "activated", activated)


def _skip(function: Callable[..., Any], level: int) -> Callable[[Any], None]:
    def join(net: Any, up: Any, skip: Any, at: int) -> Any:
        return function(up, skip) if at == level else torch.cat([up, skip], 1)

    return _method("", "join", join)


def _between(before: str, after: str) -> str:
    return f"between `{before}` and `{after}`"


_RESNET = [
    ("1 % noise on a weight", _weight("layer1.0.conv1", _noise(0.01)), "layer1.0.conv1"),
    ("one filter is another's", _weight("layer3.1.conv2", _row(lambda w: w[4])), "layer3.1.conv2"),
    ("BatchNorm eps 1e-3", _option("layer2.0.bn1", eps=1e-3), "layer2.0.bn1"),
    ("variance not loaded", _tensor("layer4.0.downsample.1.running_var", torch.ones_like),
     "layer4.0.downsample.1"),
    ("kernel transposed", _weight("layer2.1.conv1", lambda w: w.transpose(2, 3)), "layer2.1.conv1"),
    ("leaky ReLU", _module("layer3.0.relu", lambda: nn.LeakyReLU(0.05)), "layer3.0.relu"),
    ("average pooling", _module("maxpool", lambda: nn.AvgPool2d(3, 2, 1)), "maxpool"),
    ("residual left out", _method("layer1.1", "forward", _without_sum),
     _between("layer1.1.bn2", "layer1.1.relu.call2")),
    ("one call of a ReLU left out", _method("layer2.0", "forward", _without_relu),
     "layer2.0.relu"),
    ("bias not loaded", _tensor("fc.bias", torch.zeros_like), "fc"),
]  # fmt: skip

_MOBILENET = [
    ("one value of a weight", _weight("features.0.0", _one_value), "features.0.0"),
    ("bias + 0.05", _tensor("features.4.block.2.fc1.bias", lambda b: b + 0.05),
     "features.4.block.2.fc1"),
    ("mean not loaded", _tensor("features.3.block.1.1.running_mean", torch.zeros_like),
     "features.3.block.1.1"),
    ("SiLU for Hardswish", _module("features.6.block.0.2", nn.SiLU), "features.6.block.0.2"),
    ("dilation 2", _option("features.5.block.1.0", dilation=(2, 2), padding=(4, 4)),
     "features.5.block.1.0"),
    ("BatchNorm eps 1e-5", _option("features.8.block.3.1", eps=1e-5), "features.8.block.3.1"),
    ("sigmoid for hardsigmoid", _module("features.9.block.2.scale_activation", nn.Sigmoid),
     "features.9.block.2.scale_activation"),
    ("scale applied twice", _method("features.10.block.2", "forward",
                                    lambda se, x: (s := se._scale(x)) * s * x),
     _between("features.10.block.2.scale_activation", "features.10.block.3.0")),
    ("residual left out", _option("features.10", use_res_connect=False),
     _between("features.10.block.3.1", "features.11.block.0.0")),
    ("weight rounded to bfloat16", _weight("classifier.3", lambda w: w.bfloat16().float()),
     "classifier.3"),
]  # fmt: skip

_VIT = [
    ("position embedding x 0.9", _tensor("pos_embed", lambda w: 0.9 * w),
     _between("patch_embed.norm", "pos_drop")),
    ("LayerNorm eps 1e-4", _option("blocks.0.norm1", eps=1e-4), "blocks.0.norm1"),
    ("attention scale x 1.1", lambda m: setattr(m.blocks[3].attn, "scale",
                                                1.1 * m.blocks[3].attn.scale),
     _between("blocks.3.attn.k_norm", "blocks.3.attn.attn_drop")),
    ("approximate GELU", _module("blocks.5.mlp.act", lambda: nn.GELU("tanh")),
     "blocks.5.mlp.act"),
    ("query and key swapped", _weight("blocks.7.attn.qkv", _swap), "blocks.7.attn.qkv"),
    ("branch x 0.9", _method("blocks.8", "forward", _vit_block),
     _between("blocks.8.drop_path2", "blocks.9.norm1")),
    ("0.1 % noise on a weight", _weight("blocks.10.mlp.fc2", _noise(0.001)), "blocks.10.mlp.fc2"),
    ("last norm x 1.01", _weight("norm", lambda w: 1.01 * w), "norm"),
    ("class token 0", _tensor("cls_token", torch.zeros_like),
     _between("patch_embed.norm", "pos_drop")),
    ("one row of the head negated", _weight("head", _row(lambda w: -w[3])), "head"),
]  # fmt: skip

_CONVNEXT = [
    ("5 % noise on a bias", _tensor("stem.1.bias", _noise(0.05)), "stem.1"),
    ("kernel flipped", _weight("stages.0.blocks.1.conv_dw", lambda w: w.flip(2, 3)),
     "stages.0.blocks.1.conv_dw"),
    ("kernel transposed", _weight("stages.1.downsample.1", lambda w: w.transpose(2, 3)),
     "stages.1.downsample.1"),
    ("layer scale x 1.1", _tensor("stages.1.blocks.0.gamma", lambda w: 1.1 * w),
     _between("stages.1.blocks.0.mlp.drop2", "stages.1.blocks.0.drop_path")),
    ("bias not loaded", _tensor("stages.2.blocks.3.mlp.fc1.bias", torch.zeros_like),
     "stages.2.blocks.3.mlp.fc1"),
    ("ReLU for GELU", _module("stages.2.blocks.5.mlp.act", nn.ReLU),
     "stages.2.blocks.5.mlp.act"),
    ("shortcut left out", _method("stages.2.blocks.1", "forward", _convnext_block),
     _between("stages.2.blocks.1.drop_path", "stages.2.blocks.2.conv_dw")),
    ("circular padding", lambda m: _reflect(m.stages[0].blocks[0].conv_dw),
     "stages.0.blocks.0.conv_dw"),
    ("weight + 0.01", _weight("head.norm", lambda w: w + 0.01), "head.norm"),
    ("classes in another order", _weight("head.fc", lambda w: w.flip(0)), "head.fc"),
]  # fmt: skip

_UNET = [
    ("BGR for RGB", _weight("enc1.0", lambda w: w.flip(1)), "enc1.0"),
    ("mean not loaded", _tensor("enc2.4.running_mean", torch.zeros_like), "enc2.4"),
    ("average pooling", _module("pool", lambda: nn.AvgPool2d(2)), "pool"),
    ("ELU for ReLU", _module("bottom.2", lambda: nn.ELU(inplace=True)), "bottom.2"),
    ("kernel flipped", _weight("up2", lambda w: w.flip(2)), "up2"),
    ("skip before upsampled", _skip(lambda up, skip: torch.cat([skip, up], 1), 2),
     _between("up2", "dec2.0")),
    ("bias + 0.01", _tensor("dec1.3.bias", lambda b: b + 0.01), "dec1.3"),
    ("skip x 0.9", _skip(lambda up, skip: torch.cat([up, 0.9 * skip], 1), 1),
     _between("up1", "dec1.0")),
    ("BatchNorm eps 1e-3", _option("dec2.4", eps=1e-3), "dec2.4"),
    ("sigmoid at the end", _method("", "end", lambda net, x: x.sigmoid()),
     "between `out` and the output"),
]  # fmt: skip

_FUNCTIONAL = [
    ("ReLU left out", _activated(lambda x: x, 1), _between("norms.2", "convs.3")),
    ("average pooling", _method("", "pooled", lambda net, x: functional.avg_pool2d(x, 2)),
     _between("norms.1", "convs.2")),
    ("residual x 0.5", _joined(lambda out, x: functional.relu(out + 0.5 * x), 1),
     _between("norms.3", "convs.4")),
    ("bias of one channel", _tensor("convs.5.bias", _row(lambda b: b[3] + 0.1)), "convs.5"),
    ("leaky ReLU", _activated(lambda x: functional.leaky_relu_(x, 0.01), 2),
     _between("norms.4", "convs.5")),
    ("nearest for bilinear",
     _method("", "enlarged", lambda net, x: functional.interpolate(x, scale_factor=2)),
     _between("norms.5", "smooth")),
    ("input not standardized", _method("", "standardized", lambda net, x: x),
     "between the input and `stem`"),
    ("last weight x 1.001", _tensor("weight", lambda w: 1.001 * w),
     "between `smooth` and the output"),
    ("groups of a GroupNorm", _option("norms.3", num_groups=2), "norms.3"),
    ("ReLU before the sum", _joined(lambda out, x: functional.relu(out) + x, 2),
     _between("norms.5", "smooth")),
]  # fmt: skip

CASES = [
    Case(network, *case)
    for network, cases in (
        ("resnet18", _RESNET), ("mobilenet_v3_small", _MOBILENET), ("vit_tiny", _VIT),
        ("convnext_atto", _CONVNEXT), ("unet", _UNET), ("functional_residual", _FUNCTIONAL),
    )
    for case in cases
]  # fmt: skip
