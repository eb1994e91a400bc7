"""How typed answers become bytes."""

from __future__ import annotations

import json
import math
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from fmapboard.formats.overview import LayerFacts
from fmapboard.formats.tab_records import Floats
from fmapboard.plugin.answers import Answer, Binary, Png, body, dumped, packed_arrays


@dataclass(frozen=True, slots=True)
class Inner:
    class_: str
    content: bytes = b""
    known: int | None = None


@dataclass(frozen=True, slots=True)
class Outer(Answer):
    listed: tuple[Inner, ...]
    by_name: dict[str, Inner]


@dataclass(frozen=True, slots=True)
class Table(Binary):
    step: int
    arrays: dict[str, Floats]

    def packed(self) -> tuple[Any, list[bytes]]:
        return packed_arrays(self, self.arrays)


def test_fields_are_sent_by_name_without_bytes_and_without_what_is_unknown() -> None:
    answer = Outer((Inner("a", b"x"), Inner("b", known=0)), {"c": Inner("d")})
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
        "activation": None, "transposed_stride": None, "step": 7,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("value", "text"), [(math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity")]
)
def test_numbers_that_json_lacks_are_sent_as_text(value: float, text: str) -> None:
    answer = Outer((Inner("a", known=value),), {})  # type: ignore[arg-type]  # a number in any field
    assert json.loads(body(answer))["listed"] == [{"class": "a", "known": text}]
    assert dumped({"values": [1.5, (value,)]}) == f'{{"values":[1.5,["{text}"]]}}'.encode()


def test_arrays_follow_the_json_in_which_they_are_listed() -> None:
    answer = Table(3, {"a": np.array([[1.0, 1e300]]), "b": np.array([2], np.float32)})
    content = body(answer)
    (length,) = struct.unpack_from("<I", content)
    assert json.loads(content[4 : 4 + length]) == {
        "step": 3,
        "arrays": [{"name": "a", "shape": [1, 2]}, {"name": "b", "shape": [1]}],
    }
    assert np.frombuffer(content, "<f4", offset=4 + length).tolist() == [1.0, math.inf, 2.0]


def test_a_picture_is_sent_as_it_is() -> None:
    assert body(Png(b"png", 3)) == b"png"
