"""What a logged step may cost on a GPU: launches, memory traffic, extra memory and host waits.

Counted on fake CUDA tensors, with plain operations. `python tests/helpers/device_workloads.py`
prints all figures; with `-v`, per operation.
"""

from __future__ import annotations

from typing import Any

import pytest
from device_trace import Trace
from device_workloads import EVERYTHING, WORKLOADS
from traced_fused import counted_fused_kernels

from fmapboard.capture import tile_coder
from fmapboard.measure.code_tiles import launches

MARGIN = 1.1
LAUNCHES_PER_TENSOR = 8
LAUNCHES = 800
"""Of a step with default options, for any of these models."""
READS = 3.5
"""Bytes read and written, as a multiple of the bytes of the watched tensors."""
FUSED_LAUNCHES, FUSED_READS = 250, 1.3
"""The same of a step with the fused kernels."""
PEAK = 100e6
"""Bytes of extra device memory."""


def assert_within_the_budgets(trace: Trace) -> None:
    found = trace.by_op()
    assert trace.launches_per_tensor <= MARGIN * LAUNCHES_PER_TENSOR, found
    assert trace.reads <= MARGIN * READS, found
    assert trace.peak <= MARGIN * PEAK
    assert trace.waits == []


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_logged_step_is_within_the_budgets(name: str) -> None:
    trace = WORKLOADS[name].trace()
    assert_within_the_budgets(trace)
    assert trace.launches <= MARGIN * LAUNCHES, trace.by_op()


@pytest.mark.parametrize("name", WORKLOADS)
def test_inputs_and_gradients_of_activations_are_within_the_budgets(name: str) -> None:
    trace = WORKLOADS[name].trace(**EVERYTHING)
    assert_within_the_budgets(trace)


def test_a_step_without_kernels_takes_fewer_launches() -> None:
    workload = WORKLOADS["ResNet-18 b64"]
    assert workload.trace(kernels=False).launches < workload.trace().launches


@pytest.mark.parametrize("options", [{}, EVERYTHING], ids=["default", "everything"])
def test_the_launches_do_not_depend_on_the_batch(options: dict[str, Any]) -> None:
    workload = WORKLOADS["two layers b64"]
    larger = workload.trace(**options)
    smaller = type(workload)(workload.make, (8, 3, 32, 32)).trace(**options)
    assert larger.launches == smaller.launches
    assert larger.to_host <= 1.5 * smaller.to_host


@pytest.mark.parametrize("options", [{}, {"colormap": "signed"}], ids=["grey", "signed"])
@pytest.mark.parametrize("name", ["ResNet-50 b64", "ResNet-50 bf16"])
def test_quantizing_tiles_takes_the_launches_by_which_it_was_judged(
    name: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = []
    code = tile_coder._code

    def counted(measured: Any, groups: Any, centered: bool) -> None:
        tiles = [tile_coder._tiles(measured, group) for group in groups]
        expected.append(launches(tiles, zero_centered=centered))
        code(measured, groups, centered)

    monkeypatch.setattr(tile_coder, "_code", counted)
    trace = WORKLOADS[name].trace(**options)
    assert [trace.by_module()["measure.code_tiles"][0]] == expected


def test_quantizing_tiles_saves_a_third_of_the_transfer(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = WORKLOADS["ResNet-50 b64"].trace()
    monkeypatch.setattr(tile_coder, "_LAUNCHES_PER_TENSOR", 0)
    without = WORKLOADS["ResNet-50 b64"].trace()
    assert trace.to_host < 2 / 3 * without.to_host
    assert trace.launches <= without.launches + 2 / 3 * len(trace.watched)
    assert trace.peak <= without.peak


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_step_with_the_fused_kernels_is_within_their_budgets(name: str) -> None:
    """The kernels do not run: their launches are counted, and each of their tensors once."""
    with counted_fused_kernels() as counts:
        trace = WORKLOADS[name].trace()
    assert counts.failures == []
    watched, drawn = counts.launches["statistics"], counts.launches["tiles"]
    assert (watched, drawn > 0) == (len(trace.watched), True)
    assert watched + drawn + trace.launches <= MARGIN * FUSED_LAUNCHES, trace.by_op()
    # The gradients of all parameters are read too, for their norms: 0.8 GB in ConvNeXt-L.
    moved = sum(op.nbytes for op in trace.ops if op.module != "measure.norms") + counts.nbytes
    assert moved <= MARGIN * FUSED_READS * sum(trace.watched)
    assert trace.peak <= MARGIN * PEAK
    assert trace.waits == []
