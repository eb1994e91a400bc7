"""How typed answers become bytes."""

from __future__ import annotations

import json
import math
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fmapboard.formats.overview import LayerFacts
from fmapboard.plugin.answers import Answer, Binary, Png, body, dumped, pieces


@dataclass(frozen=True, slots=True)
class Inner:
    class_: str
    known: int | None = None


@dataclass(frozen=True, slots=True)
class Outer(Answer):
    listed: tuple[Inner, ...]
    by_name: dict[str, Inner]


@dataclass(frozen=True, slots=True)
class Table(Binary):
    value: float
    arrays: dict[str, npt.NDArray[Any]]
    png: bytes


def test_fields_are_sent_by_name_without_what_is_unknown() -> None:
    answer = Outer((Inner("a"), Inner("b", known=0)), {"c": Inner("d")})
    assert json.loads(body(answer)) == {
        "listed": [{"class": "a"}, {"class": "b", "known": 0}],
        "by_name": {"c": {"class": "d"}},
    }


def test_an_answer_of_one_field_is_an_object() -> None:
    @dataclass(frozen=True, slots=True)
    class One(Answer):
        steps: list[int]

    assert body(One([1, 2])) == b'{"steps":[1,2]}'


def test_what_is_known_of_a_layer_is_sent_among_the_fields_of_its_answer() -> None:
    @dataclass(frozen=True, slots=True)
    class Known(Answer):
        facts: LayerFacts
        step: int

    facts = LayerFacts("a.call2", "a", "ReLU", None, 2, 5, channels=3, values=4)
    assert json.loads(body(Known(facts, 7))) == {
        "label": "a.call2", "layer": "a", "type": "ReLU", "kernel_shape": None, "call": 2,
        "position": 5, "channels": 3, "values": 4, "drawn": 0, "samples": 1, "roles": [],
        "activation": None, "transposed_stride": None, "followed_by": [], "step": 7,
        "shape": "", "unit": "channel",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("value", "text"), [(math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity")]
)
def test_numbers_that_json_lacks_are_sent_as_text(value: float, text: str) -> None:
    answer = Outer((Inner("a", known=value),), {})  # type: ignore[arg-type]  # a number in any field
    assert json.loads(body(answer))["listed"] == [{"class": "a", "known": text}]
    assert dumped({"values": [1.5, (value,)]}) == [f'{{"values":[1.5,["{text}"]]}}'.encode()]


@pytest.mark.parametrize("value", [3.0, math.inf])
def test_the_json_says_where_arrays_and_bytes_are_behind_it(value: float) -> None:
    arrays = {"a": np.array([[1.0, 1e300]]), "b": np.array([2, 255], np.uint8)}
    text, *parts = pieces(Table(value, arrays, b"png"))
    assert struct.unpack_from("<I", text) == (len(text) - 4,)
    assert json.loads(text[4:]) == {
        "value": 3.0 if value == 3 else "Infinity",
        "arrays": {"a": {"offset": 0, "shape": [1, 2]}, "b": {"offset": 8, "shape": [2]}},
        "png": {"offset": 10, "length": 3},
    }
    assert np.frombuffer(parts[0], "<f4").tolist() == [1.0, math.inf]
    assert parts[1:] == [b"\x02\xff", b"png"]


def test_a_picture_is_sent_as_it_is() -> None:
    assert body(Png(b"png", 3)) == b"png"
