"""The fused kernels compile ahead of time, and nothing compiles after that."""

from __future__ import annotations

from pathlib import Path

import pytest
from fused_compilation import compiled
from triton_process import TritonProcess

from fmapboard.measure.fused.plan import VARIANTS

DTYPES = 3


@pytest.mark.parametrize("capability", [80, 90, 100])
def test_every_kernel_compiles_once_and_a_tensor_takes_one_launch_plus_one_if_it_is_drawn(
    capability: int, tmp_path: Path
) -> None:
    pytest.importorskip("triton", reason="Triton is not installed")
    process = TritonProcess(TRITON_CACHE_DIR=str(tmp_path))
    found = process(compiled, capability)
    process.close()
    assert found["kernels"] == (len(VARIANTS) + 1) * DTYPES
    assert found["afterwards"] == 0
    assert found["launches"] == {(1, 1)}
    assert found["loads"] == (True, True)
    assert not found["float64"]
    assert not found["flushes_denormals"]
