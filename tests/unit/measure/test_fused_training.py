"""A step that is read with the fused kernels, interpreted, has the records of the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from triton_process import TritonProcess

from fmapboard.records import LoggedStep


def logged(interpreter: TritonProcess, *args: Any) -> Any:
    from fused_training import logged

    return interpreter(logged, *args)


def assert_same_records(found: LoggedStep, expected: LoggedStep) -> None:
    """Equal tags; equal planes, samples, extremes, counts and flags; means and deviations close."""
    assert [tagged.tag for tagged in found.pictures] == [tagged.tag for tagged in expected.pictures]
    assert len(found.statistics) == len(expected.statistics) > 0
    for ours, theirs in zip(found.statistics, expected.statistics, strict=True):
        assert (ours.layer_call, ours.kind, ours.shape) == (
            theirs.layer_call, theirs.kind, theirs.shape,
        )  # fmt: skip
        for name in ("minimum", "maximum", "nan", "positive_infinity", "negative_infinity"):
            np.testing.assert_array_equal(
                getattr(ours.statistics, name), getattr(theirs.statistics, name), err_msg=name
            )
        for name in ("mean", "std") if ours.layer_call.pictures else ():
            np.testing.assert_allclose(
                getattr(ours.statistics, name), getattr(theirs.statistics, name),
                rtol=1e-5, atol=1e-7, err_msg=name,
            )  # fmt: skip
        for name in ("constant", "dead"):
            assert str(getattr(ours.statistics, name)) == str(getattr(theirs.statistics, name))
        assert (ours.sample is None) == (theirs.sample is None)
        if ours.sample is not None and theirs.sample is not None:
            np.testing.assert_array_equal(ours.sample.values, theirs.sample.values)
            assert str(ours.sample) == str(theirs.sample)
        assert (ours.planes is None) == (theirs.planes is None)
        if ours.planes is not None and theirs.planes is not None:
            apart = np.abs(ours.planes.pixels.astype(int) - theirs.planes.pixels)
            assert apart.max() <= int(theirs.planes.block > 1)
            for name in ("marks", "flat", "block", "view", "layout", "channels"):
                assert str(getattr(ours.planes, name)) == str(getattr(theirs.planes, name)), name
            np.testing.assert_allclose(ours.planes.lo, theirs.planes.lo, rtol=1e-6)
            np.testing.assert_allclose(ours.planes.hi, theirs.planes.hi, rtol=1e-6)


OPTIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "averaged": {"max_tile": 4},
    "layer": {"scale": "layer", "samples": 2},
    "locked, averaged": {"scale": "locked", "max_tile": 5},
    "signed, inputs, gradients": {
        "colormap": "signed",
        "inputs": True,
        "activation_gradients": True,
    },
}


KINDS = ("maps", "channels_last", "bfloat16", "volumes", "sequences")


@pytest.mark.parametrize(
    ("kind", "nonfinite"), [*((kind, False) for kind in KINDS), ("maps", True), ("volumes", True)]
)
def test_the_records_are_those_of_the_cpu(
    interpreter: TritonProcess, kind: str, nonfinite: bool
) -> None:
    expected, _ = logged(interpreter, kind, False, nonfinite, {})
    found, launches = logged(interpreter, kind, True, nonfinite, {})
    assert_same_records(found, expected)
    drawn = sum(one.planes is not None for one in found.statistics)
    if kind == "sequences":
        assert launches == [len(found.statistics), 0]
    elif kind == "volumes":
        assert launches == [len(found.statistics), drawn]
    else:  # the last convolution's maps have one pixel
        assert launches == [len(found.statistics), drawn - 1]


@pytest.mark.parametrize("name", list(OPTIONS)[1:])
def test_every_option_draws_what_it_draws_on_the_cpu(interpreter: TritonProcess, name: str) -> None:
    expected, _ = logged(interpreter, "maps", False, False, OPTIONS[name])
    found, _ = logged(interpreter, "maps", True, False, OPTIONS[name])
    assert_same_records(found, expected)


def test_compiling_checks_what_each_kernel_computes(interpreter: TritonProcess) -> None:
    from fused_training import compiled_for_the_cpu

    assert interpreter(compiled_for_the_cpu)
