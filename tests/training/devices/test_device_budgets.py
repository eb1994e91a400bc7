"""What a logged step may cost on a GPU: launches, memory traffic, extra memory and host waits.

Counted on fake CUDA tensors, with plain operations. `python tests/helpers/device_workloads.py`
prints all figures; with `-v`, per operation.
"""

from __future__ import annotations

import functools
from typing import Any

import pytest
from device_trace import Trace
from device_workloads import EVERYTHING, WORKLOADS

MARGIN = 1.1
LAUNCHES_PER_TENSOR = 8
LAUNCHES = 400
"""Of a step with default options, for any of these models."""
READS = 3.5
"""Bytes read and written, as a multiple of the bytes of the watched tensors."""
PEAK = 100e6
"""Bytes of extra device memory."""
OFTEN = {"two layers b64", "ResNet-18 b64", "ConvNeXt-T b64", "3-D U-Net b2"}
"""Workloads that CI traces; `pytest -m sweep` traces the others, which are larger or plainer."""


def each(often: set[str]) -> list[Any]:
    return [
        pytest.param(name, marks=() if name in often else pytest.mark.sweep) for name in WORKLOADS
    ]


@functools.cache
def traced(name: str, *, everything: bool = False) -> Trace:
    """The trace of a workload, which several tests read."""
    return WORKLOADS[name].trace(**(EVERYTHING if everything else {}))


def assert_within_the_budgets(trace: Trace) -> None:
    found = trace.by_op()
    assert trace.launches_per_tensor <= MARGIN * LAUNCHES_PER_TENSOR, found
    assert trace.reads <= MARGIN * READS, found
    assert trace.peak <= MARGIN * PEAK
    assert trace.waits == []


@pytest.mark.parametrize("name", each(OFTEN))
def test_a_logged_step_is_within_the_budgets(name: str) -> None:
    trace = traced(name)
    assert_within_the_budgets(trace)
    assert trace.launches <= MARGIN * LAUNCHES, trace.by_op()


@pytest.mark.parametrize("name", each(OFTEN - {"ConvNeXt-T b64"}))
def test_inputs_and_gradients_of_activations_are_within_the_budgets(name: str) -> None:
    assert_within_the_budgets(traced(name, everything=True))


def test_a_step_without_kernels_takes_fewer_launches() -> None:
    name = "ResNet-18 b64"
    assert WORKLOADS[name].trace(kernels=False).launches < traced(name).launches


@pytest.mark.parametrize("everything", [False, True], ids=["default", "everything"])
def test_the_launches_do_not_depend_on_the_batch(everything: bool) -> None:
    workload, larger = WORKLOADS["two layers b64"], traced("two layers b64", everything=everything)
    options = EVERYTHING if everything else {}
    smaller = type(workload)(workload.make, (8, 3, 32, 32)).trace(**options)
    assert larger.launches == smaller.launches
    assert larger.to_host <= 1.5 * smaller.to_host


def test_layers_share_what_is_launched_after_they_were_read() -> None:
    """Read: extremes, moments; copied: what is drawn and sampled; what follows is done together."""
    assert traced("ResNet-18 b64").launches_per_tensor < 4
