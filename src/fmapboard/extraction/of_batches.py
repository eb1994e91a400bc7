"""``extract_batches`` and ``extract_to_folder``: the outputs of layers for a whole data set."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from numpy.lib import format as npy
from torch import Tensor, nn

from fmapboard.errors import ConfigurationError, few, writing
from fmapboard.extraction.of_outputs import Sides, extracted, hooked_layers
from fmapboard.model.given import described
from fmapboard.model.layers import Layers
from fmapboard.model.tensors import dense, map_tensors, tensors
from fmapboard.notebook import LayerMaps
from fmapboard.printing import console, track
from fmapboard.writers.folder import file_stem, free_name
from fmapboard.writers.remote import local_directory

Arguments = Callable[[Any], Any]


def extract_batches(
    model: nn.Module,
    batches: Iterable[Any],
    layers: Layers = None,
    *,
    side: Sides = "output",
    arguments: Arguments | None = None,
    progress: bool = True,
) -> Iterator[LayerMaps]:
    """Yield what ``extract`` returns for each batch of a data set, one forward pass at a time.

    Nothing is kept from batch to batch, and no hook is installed between two of them: memory does
    not grow with the number of batches unless the caller keeps the results.

    Args:
        model: Any module, in the mode (train or eval) in which it is to run.
        batches: A DataLoader or any other iterable. The tensors of a batch are moved to the model's
            device.
        layers: As in ``extract``.
        side: As in ``extract``.
        arguments: A function of a batch that returns what the model is called with: a tuple of
            positional arguments, a mapping of keyword arguments, or the only argument. By default a
            mapping is the keyword arguments, of a tuple or list the first element is the only
            argument (images, without their labels), and anything else is the only argument.
        progress: Show a progress bar on stderr if that is a terminal.

    Yields:
        One ``LayerMaps`` per batch, on the model's device.

    Raises:
        ConfigurationError: As ``extract`` does; before the first batch is read if it is about
            ``layers``.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> from fmapboard import extract_batches
        >>> net, images = nn.Sequential(nn.Conv2d(3, 8, 3)), torch.zeros(10, 3, 8, 8)
        >>> loader = torch.utils.data.DataLoader(images, batch_size=4)
        >>> [len(maps["0"]) for maps in extract_batches(net, loader)]
        [4, 4, 2]
    """
    registry = hooked_layers(model, layers)
    _check_batches(batches)
    device = next((p.device for p in model.parameters()), None)

    def maps_of(batch: Any) -> LayerMaps:
        given = (arguments or _default_arguments)(batch)
        given = map_tensors(given, lambda tensor: tensor.to(device=device))
        if isinstance(given, Mapping):
            return extracted(registry, (), side, given)
        return extracted(registry, given, side, {})

    return map(maps_of, _followed(batches) if progress else batches)


def extract_to_folder(
    model: nn.Module,
    batches: Iterable[Any],
    folder: str | Path,
    layers: Layers = None,
    *,
    side: Sides = "output",
    arguments: Arguments | None = None,
    overwrite: bool = False,
    progress: bool = True,
) -> dict[str, Path]:
    """Write the outputs of layers for a whole data set to disk, one batch at a time.

    Each layer becomes one NumPy file ``<layer>.npy`` that holds the samples of all batches along
    the first axis. ``numpy.load(path, mmap_mode="r")`` opens it without reading it into memory. The
    files are complete after each batch, so an interrupted call leaves those that were done.
    bfloat16 is stored as float32.

    A further call with other layers adds their files to the folder. If a file exists already,
    nothing is written, unless ``overwrite`` is True: then it is replaced with the first batch, and
    an array that was opened before keeps its values. Other files in the folder stay.

    Args:
        model: Any module, in the mode (train or eval) in which it is to run.
        batches: As in ``extract_batches``.
        folder: Created if it does not exist.
        layers: As in ``extract``.
        side: As in ``extract``; with ``"both"``, the inputs are in ``<layer>.input.npy``.
        arguments: As in ``extract_batches``.
        overwrite: Replace files that exist.
        progress: Show a progress bar on stderr if that is a terminal.

    Returns:
        Layer name -> file, in call order. If a layer returns several tensors, ``name``,
        ``name.tensor2`` and so on.

    Raises:
        WriteError: A file cannot be written.
        ConfigurationError: As ``extract`` does; or the shapes of two batches differ after the first
            axis; or a batch ran other layers than the first; or a file exists, which is known
            after the first forward pass.

    Example:
        >>> import numpy, torch
        >>> from torch import nn
        >>> from fmapboard import extract_to_folder
        >>> net, images = nn.Sequential(nn.Conv2d(3, 8, 3)), torch.zeros(10, 3, 8, 8)
        >>> loader = torch.utils.data.DataLoader(images, batch_size=4)
        >>> files = extract_to_folder(net, loader, "maps")
        >>> numpy.load(files["0"], mmap_mode="r").shape
        (10, 8, 6, 6)
    """
    place = local_directory(folder, "a folder of arrays")
    files: dict[str, ArrayFile] = {}
    taken: set[str] = set()
    for number, maps in enumerate(
        extract_batches(model, batches, layers, side=side, arguments=arguments, progress=progress)
    ):
        named = dict(_named_tensors(maps))
        if number == 0:
            files = {
                name: ArrayFile(place / f"{free_name(file_stem(name), taken)}.npy", name)
                for name in named
            }
            if not overwrite:
                _refuse_existing(place, files)
        if named.keys() != files.keys():
            other = sorted(named.keys() ^ files.keys())
            raise ConfigurationError(
                f"batch {number} ran other layers than the first one ({', '.join(other)}): "
                "the rows of their arrays would not be of the same samples; select layers= that "
                "run in every batch, or use extract_batches"
            )
        for name, tensor in named.items():
            files[name].append(tensor)
    return {name: file.path for name, file in files.items()}


def _refuse_existing(place: Path, files: Mapping[str, ArrayFile]) -> None:
    there = [file.path.name for file in files.values() if file.path.exists()]
    if there:
        raise ConfigurationError(
            f"{place} holds {few(there, 1)} already, of an earlier call: choose another folder, "
            "or pass overwrite=True to replace what this call writes"
        )


def _named_tensors(maps: LayerMaps) -> Iterator[tuple[str, Tensor]]:
    """The tensors of a batch, under unique names."""
    for values, suffix in ((maps, ""), (maps.inputs, ".input")):
        for name, value in values.items():
            for number, tensor in enumerate(tensors(value), 1):
                unique = f"{name}{suffix}"
                if number > 1:
                    unique += f".tensor{number}"
                yield unique, tensor


def _default_arguments(batch: Any) -> Any:
    if isinstance(batch, (tuple, list)) and batch:
        return batch[0]
    return batch


def _followed(batches: Iterable[Any]) -> Iterable[Any]:
    """The batches, with a progress bar on stderr if that is a terminal."""
    errors = console(stderr=True)
    total = len(batches) if isinstance(batches, Sized) else None
    return track(batches, "extracting", total, console=errors, disable=not errors.is_terminal)


def _check_batches(batches: Any) -> None:
    if isinstance(batches, Tensor):
        raise ConfigurationError(
            f"batches=tensor {list(batches.shape)}: expected an iterable of batches, such as a "
            "DataLoader; extract(model, x) takes a single batch"
        )
    is_iterable = isinstance(batches, Iterable)
    if not is_iterable or isinstance(batches, (str, Mapping)):
        raise ConfigurationError(
            f"batches={described(batches)}: expected an iterable of batches, such as a DataLoader"
        )


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
        self.path = path
        self._name = name
        self._rows = 0
        self._row: tuple[tuple[int, ...], np.dtype[np.generic]] | None = None  # shape and dtype

    def append(self, tensor: Tensor) -> None:
        """Append a tensor [N, ...] of any device.

        Raises:
            ConfigurationError: It has no first axis, or another shape or dtype than the earlier
                ones.
            WriteError: The file cannot be written.
        """
        if tensor.dim() == 0:
            raise ConfigurationError(
                f"{self._name} is a single number per batch, which has no samples; leave the layer "
                "out of layers=, or use extract_batches"
            )
        values = _array(tensor)
        row = values.shape[1:], values.dtype
        if self._row is not None and row != self._row:
            shape, dtype = self._row
            raise ConfigurationError(
                f"{self._name} is {values.dtype} {list(values.shape)} in this batch, but the file "
                f"holds {dtype} {[self._rows, *shape]}: only the first axis may differ; use "
                "extract_batches, or images of one size"
            )
        with writing(str(self.path)):
            self._write(values)

    def _write(self, values: npt.NDArray[Any]) -> None:
        rows = self._rows + len(values)
        header = _header((rows, *values.shape[1:]), values.dtype)
        if self._row is None:
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
        self._rows = rows
        self._row = (values.shape[1:], values.dtype)


def _header(shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> bytes:
    """A header of version 1.0, whose length does not depend on the first axis."""
    written = io.BytesIO()
    described = {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    npy.write_array_header_1_0(written, described)
    return written.getvalue()


def _array(tensor: Tensor) -> npt.NDArray[Any]:
    values = dense(tensor.cpu())
    is_8_bit_float = values.is_floating_point() and values.dtype.itemsize == 1
    if is_8_bit_float or values.dtype == torch.bfloat16:  # NumPy has neither
        values = values.float()
    return np.ascontiguousarray(values.resolve_conj().resolve_neg().numpy())
