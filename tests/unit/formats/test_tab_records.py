"""The stored format: records are read back as written; damaged and newer ones are refused."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
import pytest
import torch
from torch import nn

import fmapboard
from fmapboard.errors import FmapboardError
from fmapboard.formats.tab_records import FormatError, pack, typed, unpack
from fmapboard.plugin.stored_record import read_header
from fmapboard.writers.folder import MemoryWriter

HEADER = {"layer": "layer1.0.conv1", "kernel_shape": [64, 3, 7, 7], "view": "Tiefe 3 – Mitte"}


def arrays() -> dict[str, np.ndarray]:
    return {
        "feature_maps.lo": np.array([[0.5, -1.25], [2.0, 3.0]]),
        "feature_maps.nan": np.array([0, 3], np.int64),
        "feature_maps.constant": np.array([True, False]),
        "feature_maps.mean": np.array([np.nan, np.inf], np.float32),
    }


def test_header_and_arrays_are_read_back_unchanged() -> None:
    header, back = unpack(pack(HEADER, arrays()))
    assert {key: header[key] for key in HEADER} == HEADER
    assert header["format"] == 1
    assert list(back) == list(arrays())
    for name, array in arrays().items():
        assert back[name].dtype == np.dtype("<f4")
        assert np.array_equal(back[name], array.astype(np.float32), equal_nan=True)


def test_additional_blobs_follow_unchanged() -> None:
    blobs = pack(HEADER, arrays(), [b"png 0", b"png 1"])
    assert blobs[2:] == (b"png 0", b"png 1")
    assert unpack(blobs)[0]["layer"] == "layer1.0.conv1"


def test_numbers_that_float32_cannot_hold_become_infinite_without_a_warning() -> None:
    _, back = unpack(pack({}, {"a": np.array([1e39, -1e39])}))
    assert back["a"].tolist() == [np.inf, -np.inf]


def test_a_header_with_nan_is_refused_since_json_cannot_represent_it() -> None:
    with pytest.raises(ValueError, match="JSON"):
        pack({"peak": float("nan")}, {})


def test_unknown_keys_are_ignored() -> None:
    header, _ = unpack(pack({"tomorrow": {"deep": [1]}, **HEADER}, arrays()))
    assert header["tomorrow"] == {"deep": [1]}


def test_a_newer_format_is_refused_with_the_advice_to_upgrade() -> None:
    blob = json.dumps({"format": 2, "arrays": []}).encode()
    for read in (lambda: unpack([blob, b""]), lambda: read_header(blob)):
        with pytest.raises(FormatError) as error:
            read()
        assert str(error.value) == (
            "the record was written by a newer fmapboard, in format 2; this fmapboard reads "
            "formats up to 1: upgrade it"
        )
        assert isinstance(error.value, FmapboardError)


@pytest.mark.parametrize(
    "blobs",
    [
        [],
        [b"", b""],
        [b"{}", b""],
        [b"not json", b""],
        [b"\xff\xfe\x00", b""],
        [b"[1, 2]", b""],
        [b"7", b""],
        [b"[" * 100_000, b""],
        [b'{"format": null, "arrays": []}', b""],
        [b'{"format": "1", "arrays": []}', b""],
        [b'{"format": 1}', b""],
        [b'{"format": 0, "arrays": []}', b""],
        [b'{"format": true, "arrays": []}', b""],
        [b'{"format": 1, "arrays": [3]}', b""],
        [b'{"format": 1, "arrays": [{"name": "a"}]}', b""],
        [b'{"format": 1, "arrays": [{"name": "a", "shape": [2]}]}'],
        [b'{"format": 1, "arrays": [{"name": "a", "shape": [2]}]}', b"1234"],
        [b'{"format": 1, "arrays": [{"name": "a", "shape": [-2]}]}', b"12345678"],
        [b'{"format": 1, "arrays": [{"name": "a", "shape": ["x"]}]}', b"12345678"],
        [b'{"format": 1, "arrays": [{"name": "a", "shape": [1e400]}]}', b"12345678"],
        [b'{"format": 1, "arrays": [{"name": "a", "shape": [%d]}]}' % 10**40, b"12345678"],
    ],
    ids=lambda blobs: repr(blobs)[:60],
)
def test_a_broken_record_raises_only_a_format_error(blobs: list[bytes]) -> None:
    with pytest.raises(FormatError, match="the record is not in fmapboard's format"):
        unpack(blobs)


def test_a_truncated_record_raises_a_format_error() -> None:
    header, numbers = pack(HEADER, arrays())
    for cut in range(len(numbers)):
        with pytest.raises(FormatError):
            unpack([header, numbers[:cut]])
    for cut in range(len(header)):
        with pytest.raises(FormatError):
            unpack([header[:cut], numbers])


def test_the_record_of_a_layer_with_64_channels_takes_at_most_8_kb() -> None:
    names = ["layer4", "2", "a_residual_branch_of_some_length", "block", "1", "convolution"]
    conv: nn.Module = nn.Conv2d(64, 64, 3)
    for name in reversed(names):
        conv = _wrapped(name, conv)
    model = nn.Sequential(conv, nn.ReLU())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    memory = MemoryWriter()
    with fmapboard.watch(
        model, writer=memory, every=1, inputs=True, activation_gradients=True, kernels=1,
    ) as board:  # fmt: skip
        for number in range(2):
            x = torch.randn(2, 64, 12, 12)
            x[0, :2, 0, 0] = float("nan")
            with board.step(number):
                model(x).nan_to_num().sum().backward()
                optimizer.step()
    assert len(memory.steps) == 2
    for step in memory.steps:
        (record,) = [r for r in step.records if r.tag.startswith("fmapboard/")]
        header, stored = unpack(record.blobs)
        assert {p["role"] for p in header["pictures"]} == {
            "feature_maps", "inputs", "gradients_of_maps", "kernels",
        }  # fmt: skip
        assert all(p.get("drawn", 64) == 64 for p in header["pictures"])
        assert stored["feature_maps.mean"].shape == (64,)
        slower = len("12345.678") - len(str(header["training_thread_ms"]))
        assert sum(map(len, record.blobs)) + slower <= 8 * 1024


def _wrapped(name: str, module: nn.Module) -> nn.Module:
    holder = nn.Sequential()
    holder.add_module(name, module)
    return holder


def test_a_header_that_would_fill_the_memory_is_refused() -> None:
    header, arrays = pack({"layer": "a"}, {})
    unpack([header + b" " * 2**23, arrays])
    with pytest.raises(FormatError, match=r"has \d+ bytes; expected 16777216 at most"):
        unpack([header + b" " * 2**24, arrays])


def test_an_object_with_more_names_than_are_stored_is_refused() -> None:
    kind = Mapping[str, int]
    stored = {str(number): number for number in range(4096)}
    assert typed(kind, stored) == stored
    with pytest.raises(TypeError, match="does not fit"):
        typed(kind, {**stored, "one more": 0})


def test_a_number_is_no_text() -> None:
    with pytest.raises(AttributeError):
        typed(str, 3)


def test_a_type_that_no_json_value_has_is_an_error() -> None:
    with pytest.raises(TypeError, match="no JSON value"):
        typed(bytes, "x")
