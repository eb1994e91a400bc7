"""``ArrayFile``: a NumPy file that grows along its first axis."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from numpy.lib import format as npy
from torch import Tensor

from fmapboard.errors import ConfigurationError, WriteError


class ArrayFile:
    """A ``.npy`` file to which batches are appended; it is complete after each of them.

    Format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html. NumPy pads the
    header so that the length of the first axis can be changed in place.

    Args:
        path: Created by the first ``append``, with its folder; an existing file is replaced.
        name: Name of the layer, for messages.

    Attributes:
        path: As passed.
    """

    def __init__(self, path: Path, name: str) -> None:
        self.path, self._name = path, name
        self._shape: tuple[int, ...] = ()
        self._dtype: np.dtype[np.generic] | None = None

    def append(self, tensor: Tensor) -> None:
        """Append a tensor [N, ...] of any device.

        Raises:
            ConfigurationError: It has no first axis, or another shape or dtype than the earlier
                ones.
            WriteError: The file cannot be written.
        """
        if tensor.dim() == 0:
            raise ConfigurationError(
                f"{self._name} is a single number per batch; it cannot be stored along samples"
            )
        values = _array(tensor)
        if self._dtype is not None and (values.shape[1:], values.dtype) != (
            self._shape[1:],
            self._dtype,
        ):
            raise ConfigurationError(
                f"{self._name} is {values.dtype} {list(values.shape)} in this batch, but the file "
                f"holds {self._dtype} {list(self._shape)}: only the first axis may differ; use "
                "extract_batches, or images of one size"
            )
        try:
            self._write(values)
        except OSError as error:
            raise WriteError(f"cannot write {self.path}: {error.strerror or error}") from error

    def _write(self, values: npt.NDArray[Any]) -> None:
        rows = (self._shape[0] if self._shape else 0) + len(values)
        header = _header((rows, *values.shape[1:]), values.dtype)
        if self._dtype is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # A file of its own: whoever has opened an earlier one as a memory map keeps that.
            self.path.unlink(missing_ok=True)
            self.path.write_bytes(header + values.tobytes())
        else:
            with self.path.open("r+b") as file:
                file.seek(0, io.SEEK_END)
                file.write(values.data)
                # After the data: until then the header describes the earlier batches.
                file.seek(0)
                file.write(header)
        self._shape, self._dtype = (rows, *values.shape[1:]), values.dtype


def _header(shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> bytes:
    """A header of version 1.0, whose length does not depend on the first axis."""
    written = io.BytesIO()
    described = {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    npy.write_array_header_1_0(written, described)
    return written.getvalue()


def _array(tensor: Tensor) -> npt.NDArray[Any]:
    values = tensor.detach().cpu()
    if values.is_quantized:
        values = values.dequantize()
    if values.layout != torch.strided:
        values = values.to_dense()
    is_8_bit_float = values.is_floating_point() and values.dtype.itemsize == 1
    if is_8_bit_float or values.dtype == torch.bfloat16:  # NumPy has neither
        values = values.float()
    return np.ascontiguousarray(values.resolve_conj().resolve_neg().numpy())
