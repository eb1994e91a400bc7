"""How the layer calls of two models are paired."""

from __future__ import annotations

from collections import Counter

import pytest
import torch

from fmapboard.extraction.call_trace import TracedCall
from fmapboard.model_comparison.pairs import paired
from fmapboard.records import LayerCall


def calls(text: str) -> list[TracedCall]:
    """One call per word ``name:type:size``; type and size default to those of a ReLU of 8."""
    numbers: Counter[str] = Counter()
    found = []
    for word in text.split():
        name, kind, size = (word.split(":") + ["ReLU", "8"][word.count(":") :])[:3]
        numbers[name] += 1
        returned = ((torch.float32, (1, int(size))),)
        found.append(TracedCall(LayerCall(name, kind, call=numbers[name]), returned=returned))
    return found


def pairing(first: str, second: str) -> list[str]:
    return [
        "=".join(call.label if call else "-" for call in pair)
        for pair in paired(calls(first), calls(second))
    ]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("a b c", "a b c", "a=a b=b c=c"),
        ("a b c", "a c", "a=a b=- c=c"),
        ("a c", "a b c", "a=a -=b c=c"),
        ("c", "a b c", "-=a -=b c=c"),
        ("a act b act", "a b act", "a=a act=- b=b act.call2=act"),
        ("a b c", "b a c", "a=a b=b c=c"),
        ("a:Conv:4 b c:Conv", "x:Conv:4 y z:Conv", "a=x b=y c=z"),
        ("a b:ReLU c", "a b:GELU c", "a=a b=b c=c"),
        ("a b:ReLU c", "a d:GELU c", "a=a b=d c=c"),
        ("a b:ReLU:4 c", "a d:GELU:5 c", "a=a -=d b=- c=c"),
        ("0:Conv 1:Drop 2:Conv", "0:Conv 1:Conv", "0=0 1=- 2=1"),
        ("0:Conv 1:Conv", "0:Conv 1:Drop 2:Conv", "0=0 -=1 1=2"),
        ("a:Linear:5", "a:Linear:4", "a=a"),
    ],
)
def test_calls_are_paired_by_name_then_by_order(first: str, second: str, expected: str) -> None:
    assert pairing(first, second) == expected.split()
