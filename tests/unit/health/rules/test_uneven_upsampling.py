"""Transposed convolutions that draw checkerboards."""

from __future__ import annotations

import pytest
from check_records import layer, record

from fmapboard.checks import NotRecorded, RunRecord
from fmapboard.health.rules import UnevenUpsamplingCheck


def upsampling(kernel: tuple[int, ...], stride: tuple[int, ...] | None) -> RunRecord:
    shape = (8, 8, *kernel)
    up = layer(1, type="ConvTranspose2d", kernel_shape=shape, transposed_stride=stride)
    return record([layer(0), up])


@pytest.mark.parametrize(
    ("kernel", "stride", "is_found"),
    [
        ((3, 3), (2, 2), True),
        ((4, 4), (2, 2), False),
        ((4, 3), (2, 2), True),
        ((2, 2), (2, 2), False),
        ((3, 3), (1, 1), False),
        ((1, 1), (2, 2), True),
        ((3, 3), None, False),
        ((3, 3), (2,), False),
    ],
)
def test_a_kernel_that_is_no_multiple_of_its_stride(
    kernel: tuple[int, ...], stride: tuple[int, ...] | None, is_found: bool
) -> None:
    found = UnevenUpsamplingCheck()(upsampling(kernel, stride))
    assert [one.layer for one in found] == ["conv1"] * is_found


def test_without_an_overview_kernels_are_not_recorded() -> None:
    with pytest.raises(NotRecorded, match="fmapboard_overview"):
        UnevenUpsamplingCheck()(RunRecord())
