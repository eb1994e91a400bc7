"""Choosing layers, naming them, and grouping convolutions by kernel shape."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from extracted_maps import untrained
from torch import nn

from fmapboard import ConfigurationError, KernelShape, LayerNotFound, kernel_groups
from fmapboard.model.kernel_shapes import kernel_shape
from fmapboard.model.layers import clean_name, named_layers, select, unwrap


def _meta(name: str) -> nn.Module:
    """An untrained network without memory for its weights."""
    with torch.device("meta"):
        return untrained(name)


@pytest.fixture(scope="module")
def resnet() -> nn.Module:
    return _meta("resnet18")


def _mixed() -> nn.Module:
    return nn.ModuleDict(
        {
            "line": nn.Conv1d(2, 4, 3),
            "plane": nn.Conv2d(2, 4, (3, 5), groups=2),
            "volume": nn.Conv3d(2, 4, 3),
            "up_line": nn.ConvTranspose1d(2, 4, 3),
            "up_plane": nn.ConvTranspose2d(2, 4, 3, groups=2),
            "up_volume": nn.ConvTranspose3d(2, 4, 3),
            "head": nn.Linear(4, 2),
        }
    )


def test_by_default_every_convolution_at_any_depth_is_selected(resnet: nn.Module) -> None:
    names = list(select(resnet))
    assert len(names) == 20
    assert names[:3] == ["conv1", "layer1.0.conv1", "layer1.0.conv2"]
    assert list(select(_mixed())) == [
        "line", "plane", "volume", "up_line", "up_plane", "up_volume",
    ]  # fmt: skip


def test_a_glob_crosses_dots_and_selects_only_convolutions(resnet: nn.Module) -> None:
    assert list(select(resnet, "layer1.*")) == [
        "layer1.0.conv1",
        "layer1.0.conv2",
        "layer1.1.conv1",
        "layer1.1.conv2",
    ]


def test_a_glob_that_matches_no_convolution_selects_every_module_that_it_matches(
    resnet: nn.Module,
) -> None:
    assert list(select(resnet, "layer1.?.bn1")) == ["layer1.0.bn1", "layer1.1.bn1"]
    assert list(select(resnet, "fc")) == ["fc"]


def test_an_exclamation_mark_excludes(resnet: nn.Module) -> None:
    assert len(select(resnet, "!*.downsample.*")) == 17
    assert list(select(resnet, ["layer2.*", "!*.downsample.*", "!*.1.*"])) == [
        "layer2.0.conv1",
        "layer2.0.conv2",
    ]


def test_a_regular_expression_is_searched(resnet: nn.Module) -> None:
    assert list(select(resnet, re.compile(r"[34]\.0\.conv2$"))) == [
        "layer3.0.conv2",
        "layer4.0.conv2",
    ]


def test_a_type_selects_its_instances_and_a_list_is_combined_in_definition_order(
    resnet: nn.Module,
) -> None:
    assert list(select(resnet, nn.Linear)) == ["fc"]
    assert list(select(resnet, ("fc", nn.MaxPool2d, re.compile("^conv1")))) == [
        "conv1",
        "maxpool",
        "fc",
    ]


def test_a_predicate_decides_alone(resnet: nn.Module) -> None:
    chosen = select(resnet, lambda name, module: name.endswith("relu"))
    assert len(chosen) == 9
    assert all(isinstance(module, nn.ReLU) for module in chosen.values())


def test_convolutions_of_every_dimension_are_selected_by_name_or_type() -> None:
    assert list(select(_mixed(), "*")) == [
        "line", "plane", "volume", "up_line", "up_plane", "up_volume",
    ]  # fmt: skip
    assert list(select(_mixed(), (nn.Conv1d, nn.ConvTranspose3d))) == ["line", "up_volume"]


def test_a_model_that_is_one_layer_is_named_after_its_type() -> None:
    assert list(select(nn.Conv2d(3, 4, 3))) == ["Conv2d"]


@pytest.mark.parametrize(
    ("layers", "error", "message"),
    [
        ("layer1.0.conv3", LayerNotFound, "'layer1.0.conv3' among 68; closest: layer1.0.conv"),
        (re.compile("^stem"), LayerNotFound, r"no layer matches re.compile\('\^stem'\) among 68"),
        (nn.Conv3d, LayerNotFound, "no layer matches 'Conv3d' among 68"),
        (["layer1.*", "!*"], LayerNotFound, "excluded by a '!' pattern; leave out a pattern with"),
        (lambda name, module: False, LayerNotFound, "of the 68 modules; it is called with the na"),
        ([], ConfigurationError, r"layers=\[\] selects nothing"),
        (7.5, ConfigurationError, "layers=7.5: expected a glob"),
        ({"a": 1}, ConfigurationError, r"layers=\{'a': 1\}: expected a glob"),
        (["conv1", 3.5], ConfigurationError, "layers contains 3.5: expected a glob"),
    ],
)  # fmt: skip
def test_a_selection_that_matches_nothing_is_refused_and_quotes_the_users_input(
    resnet: nn.Module, layers: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        select(resnet, layers)


def test_a_pattern_that_resembles_no_name_is_answered_with_the_names_or_where_they_are(
    resnet: nn.Module,
) -> None:
    plain = nn.Sequential(*[nn.Conv2d(1, 1, 1) for _ in range(8)])
    for model, names in (
        (plain, "; there are: Sequential, 0, 1, 2, 3, 4, 5, 6, 7"),
        (resnet, "; for the names: fmapboard.layers(model), or visualize --list"),
    ):
        with pytest.raises(LayerNotFound) as error:
            select(model, "encoder")
        count = len(list(model.modules()))
        assert str(error.value) == f"no layer matches 'encoder' among {count}{names}"


def test_names_contain_nothing_that_wrappers_insert() -> None:
    assert clean_name("layer1._orig_mod.0._checkpoint_wrapped_module.conv") == "layer1.0.conv"
    assert clean_name("_fsdp_wrapped_module.conv1") == "conv1"
    assert clean_name("\ud800.é") == "\\ud800.é"
    model = nn.Sequential(nn.Conv2d(1, 1, 1))
    wrapped = nn.DataParallel(torch.compile(model))
    assert unwrap(wrapped) is model
    assert list(select(wrapped)) == ["0"]
    inner = nn.Sequential(torch.compile(model), nn.ReLU())
    assert select(inner) == {"0.0": model[0]}


def test_a_shared_module_is_listed_once_under_its_first_name() -> None:
    conv = nn.Conv2d(1, 1, 1)
    assert list(named_layers(nn.ModuleDict({"a": conv, "b": conv}))) == ["ModuleDict", "a"]


def test_kernel_shapes_are_those_of_the_weights() -> None:
    for module in _mixed().values():
        shape = kernel_shape(module)
        if isinstance(module, nn.Linear):
            assert shape is None
        else:
            assert shape == tuple(module.weight.shape)
    assert str(kernel_shape(nn.Conv2d(4, 6, (3, 5), groups=2))) == "6x2x3x5"
    assert str(kernel_shape(nn.ConvTranspose2d(4, 6, (3, 5), groups=2))) == "4x3x3x5"


@pytest.mark.parametrize(
    ("name", "convolutions", "shapes"),
    [("alexnet", 5, 5), ("vgg16", 13, 8), ("resnet50", 53, 20), ("densenet121", 120, 34)],
)
def test_kernel_groups_hold_every_convolution_once(
    name: str, convolutions: int, shapes: int
) -> None:
    model = _meta(name)
    groups = kernel_groups(model)
    assert len(groups) == shapes
    names = [layer for layers in groups.values() for layer in layers]
    assert len(names) == len(set(names)) == convolutions
    modules = dict(model.named_modules())
    for shape, layers in groups.items():
        assert all(tuple(modules[layer].weight.shape) == shape for layer in layers)


def test_alexnet_has_five_kernel_groups() -> None:
    assert kernel_groups(_meta("alexnet")) == {
        KernelShape((64, 3, 11, 11)): ["features.0"],
        KernelShape((192, 64, 5, 5)): ["features.3"],
        KernelShape((384, 192, 3, 3)): ["features.6"],
        KernelShape((256, 384, 3, 3)): ["features.8"],
        KernelShape((256, 256, 3, 3)): ["features.10"],
    }


@pytest.mark.parametrize(
    ("name", "deepest"),
    [
        ("mobilenet_v3_small", "features.1.block.0.0"),
        ("efficientnet_b0", "features.1.0.block.0.0"),
        ("convnext_tiny", "features.1.0.block.0"),
        ("resnet18", "layer2.0.downsample.0"),
        ("densenet121", "features.denseblock1.denselayer1.conv1"),
    ],
)
def test_names_of_any_depth_are_not_shortened(name: str, deepest: str) -> None:
    names = [layer for layers in kernel_groups(_meta(name)).values() for layer in layers]
    assert deepest in names
    assert max(layer.count(".") for layer in names) == deepest.count(".")


def test_grouping_neither_reads_a_spectral_norm_weight_nor_needs_an_initialised_one() -> None:
    normed = nn.utils.parametrizations.spectral_norm(nn.Conv2d(2, 4, 3))
    before = [buffer.clone() for buffer in normed.buffers()]
    lazy = nn.LazyConv2d(5, 3)
    assert kernel_groups(nn.Sequential(normed, lazy)) == {
        KernelShape((4, 2, 3, 3)): ["0"],
        KernelShape((5, 0, 3, 3)): ["1"],
    }
    assert all(torch.equal(a, b) for a, b in zip(normed.buffers(), before, strict=True))
    assert nn.parameter.is_lazy(lazy.weight)
