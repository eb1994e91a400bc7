"""Tag names, and concurrent calls."""

from __future__ import annotations

import threading

import pytest

from fmapboard.plugin.source import AtOnce, Calls, in_turn
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


@pytest.mark.parametrize("calls", [in_turn, AtOnce()])
def test_results_come_in_the_order_of_the_calls(calls: Calls) -> None:
    assert calls([lambda i=i: i * i for i in range(50)], int) == [i * i for i in range(50)]


@pytest.mark.parametrize("calls", [in_turn, AtOnce()])
def test_an_error_of_a_call_reaches_the_caller(calls: Calls) -> None:
    with pytest.raises(ZeroDivisionError):
        calls([int, lambda: 1 // 0], int)


def test_a_call_that_waits_for_another_packet_is_nudged() -> None:
    nudged = threading.Event()

    def stuck() -> bool:
        return nudged.wait(20)

    assert AtOnce()([stuck, stuck], nudged.set) == [True, True]


def test_a_nudge_that_fails_does_no_harm() -> None:
    started = threading.Semaphore(0)

    def nudge() -> None:
        started.release()
        raise RuntimeError

    assert AtOnce()([lambda: started.acquire(timeout=20)], nudge) == [True]
