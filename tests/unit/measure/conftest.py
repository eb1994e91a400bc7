"""Fixtures of the tests of the fused kernels."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from triton_process import TritonProcess
from triton_process import interpreter as interpreting


@pytest.fixture(scope="module")
def interpreter() -> Iterator[TritonProcess]:
    pytest.importorskip("triton", reason="Triton is not installed")
    process = interpreting()
    yield process
    process.close()
