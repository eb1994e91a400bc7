"""Tags are taken apart into logger and layer, and names are sorted."""

from __future__ import annotations

import pytest

from fmapboard.plugin.tag_names import LayerTag, layer_of, natural


@pytest.mark.parametrize(
    ("tag", "layer"),
    [
        ("fmapboard/conv1", LayerTag("", "conv1")),
        ("fmapboard_first/conv1", LayerTag("", "conv1")),
        ("gan.fmapboard/layer1.0.conv1.call2", LayerTag("gan", "layer1.0.conv1.call2")),
        ("a.b.fmapboard_first/x", LayerTag("a.b", "x")),
        ("fmapboard/a/b", LayerTag("", "a/b")),
        ("fmapboard/", None),
        ("fmapboard", None),
        ("xfmapboard/conv1", None),
        ("feature_maps_64x3x7x7/conv1", None),
        ("", None),
    ],
)
def test_a_tag_names_its_layer(tag: str, layer: LayerTag | None) -> None:
    assert layer_of(tag) == layer


def test_a_layer_names_its_tags() -> None:
    layer = LayerTag("gan", "conv1")
    assert (layer.key, layer.first_key) == ("gan.fmapboard/conv1", "gan.fmapboard_first/conv1")
    assert layer_of(layer.key) == layer_of(layer.first_key) == layer


def test_names_are_sorted_in_natural_order() -> None:
    names = ["layer10.2", "layer2.10", "layer2.9", "10", "9", "b", "Zz", "", "layer²"]
    assert sorted(names, key=natural) == [
        "", "9", "10", "Zz", "b", "layer2.9", "layer2.10", "layer10.2", "layer²",
    ]  # fmt: skip
