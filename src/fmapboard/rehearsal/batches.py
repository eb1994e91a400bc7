"""Draws batches without taking them from the training, cuts them, and exchanges their tensors."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset

from fmapboard.errors import ConfigurationError, first_line
from fmapboard.interrupts import raise_interrupt
from fmapboard.model.tensors import map_tensors, tensors
from fmapboard.rehearsal.surroundings import surroundings_kept
from fmapboard.rehearsal.task import Task

_COPIED: tuple[type, ...] = (type(iter([])), type(iter(())), zip, map, enumerate)
"""Iterators of Python of which a copy can be made."""


def drawn(given: Any, most: int) -> list[Any]:
    """At most so many batches, with every generator of random numbers put back afterwards.

    Args:
        given: one batch (a tensor, a tuple, a mapping, a list of tensors), a list of batches, a
            loader, or an iterator over one.
        most: how many.

    Raises:
        ConfigurationError: there is none, or drawing it would take it from the training.
    """
    if isinstance(given, (Tensor, tuple, Mapping)) or _is_batch(given):
        return [given]
    if not isinstance(given, Iterable):
        raise ConfigurationError(
            f"batch={type(given).__name__}: expected what the training loop draws: a tensor, a "
            "tuple, a dict, or a DataLoader"
        )
    with surroundings_kept(given):
        batches = list(itertools.islice(_source(given), most))
    if not batches:
        raise ConfigurationError(f"batch={type(given).__name__}: it holds no batch")
    return batches


def _is_batch(given: Any) -> bool:
    """True for a list of tensors that is one batch as a DataLoader makes it.

    Three or more of the same shape, the first axis apart, are several batches.
    """
    if not isinstance(given, list) or not given:
        return False
    if not all(isinstance(part, Tensor) for part in given):
        return False
    kinds = {(part.shape[1:], part.dtype) for part in given}
    are_batches = len(given) > 2 and len(kinds) == 1 and given[0].dim() > 1
    return not are_batches


def _source(given: Any) -> Iterator[Any]:
    """An iterator of our own."""
    if isinstance(given, DataLoader):
        try:
            return iter(_own_loader(given))
        except Exception as error:
            raise_interrupt(error)
            raise ConfigurationError(
                f"batch={type(given).__name__}: its sampler or data set cannot be copied "
                f"({first_line(error)}); pass a list of batches"
            ) from error
    if not isinstance(given, Iterator):
        return iter(given)
    if hasattr(given, "_index_sampler") and hasattr(given, "_dataset"):
        return _of_loader(given)
    if isinstance(given, _COPIED):
        try:
            return copy.deepcopy(given)
        except Exception as error:
            raise_interrupt(error)
    raise ConfigurationError(
        f"batch={type(given).__name__}: to draw from this iterator takes batches from the "
        "training; pass its DataLoader, a batch, or a list of batches"
    )


def _own_loader(loader: DataLoader[Any]) -> DataLoader[Any]:
    """A loader over the same data, without workers, with samplers of its own.

    What a framework has added to the loader, which shares its state with others, is left out.
    """
    dataset = loader.dataset
    shared = {id(dataset): dataset}
    options: dict[str, Any] = {"collate_fn": loader.collate_fn}
    if isinstance(dataset, IterableDataset):
        if isinstance(dataset, Iterator):  # it counts itself how far it was read
            dataset = copy.deepcopy(dataset)
        options["batch_size"] = loader.batch_size
        options["drop_last"] = loader.drop_last
    elif loader.batch_sampler is not None:
        options["batch_sampler"] = copy.deepcopy(loader.batch_sampler, shared)
    else:
        options["batch_size"] = None
        options["sampler"] = copy.deepcopy(loader.sampler, shared)
    return DataLoader(dataset, **options)


def _of_loader(iterator: Any) -> Iterator[Any]:
    """The batches of a loader's data from the beginning, given an iterator over it."""
    if iterator._dataset_kind != 0:  # an IterableDataset
        raise ConfigurationError(
            "batch is an iterator over an IterableDataset: pass its DataLoader"
        )
    for index in iter(iterator._index_sampler):
        if not iterator._auto_collation:
            yield iterator._collate_fn(iterator._dataset[index])
            continue
        items = [iterator._dataset[number] for number in index]
        yield iterator._collate_fn(items)


def size_of(batch: Any, task: Task) -> tuple[int, int]:
    """How many samples a batch has, and along which axis of its inputs they are.

    Returns:
        0 samples if that is not clear.
    """
    parts = task.parts(batch)
    inputs = input_tensors(batch, task)
    if not inputs or inputs[0].dim() == 0:
        return 0, 0
    first = inputs[0]
    if isinstance(first_of(parts), (list, tuple)):
        return len(first_of(parts)), 0  # a list of images
    label = parts.label
    is_label = isinstance(label, Tensor) and label.dim() == 1
    if is_label and first.dim() > 1 and first.shape[0] != len(label) == first.shape[1]:
        return len(label), 1
    return first.shape[0], 0


class Samples(NamedTuple):
    """Some samples of a batch.

    Attributes:
        batch: they and their labels.
        size: how many; 0 if that is not clear.
        axis: of the inputs along which they are.
        inputs: the tensors that the network gets.
    """

    batch: Any
    size: int
    axis: int
    inputs: list[Tensor]


def first_of(parts: Any) -> Any:
    """The first argument of the network."""
    return next(iter((*parts.args, *parts.kwargs.values())))


def input_tensors(batch: Any, task: Task) -> list[Tensor]:
    """The tensors of a batch that the network gets, without labels."""
    parts = task.parts(batch)
    labels = {id(tensor) for tensor in tensors(parts.label)}
    held = tensors((parts.args, parts.kwargs))
    found = [tensor for tensor in held if id(tensor) not in labels]
    return found or held


def with_tensors(batch: Any, changed: Mapping[int, Tensor]) -> Any:
    """The batch with other tensors.

    Args:
        changed: by the identity of those of the batch.
    """
    return map_tensors(batch, lambda tensor: changed.get(id(tensor), tensor))


def first_samples(batch: Any, task: Task, count: int) -> Any:
    """The first samples of a batch; the whole batch if it cannot be cut, or is a graph."""
    size, axis = size_of(batch, task)
    if not 0 < count < size or has_relations(batch, task, size):
        return batch
    cut = _cut(batch, size, axis, count)
    return batch if cut is None else cut


def has_relations(batch: Any, task: Task, size: int) -> bool:
    """True if an input says which samples belong together, such as the edges of a graph."""
    inputs = input_tensors(batch, task)
    if any(tensor.layout is not torch.strided for tensor in inputs):
        return True
    for tensor in inputs[1:]:
        if tensor.dim() == 2 and tensor.shape[0] == tensor.shape[1] == size:
            return True
        if tensor.dim() == 2 and tensor.shape[0] == 2 != size and not tensor.is_floating_point():
            return True
    return False


def _cut(value: Any, size: int, axis: int, count: int) -> Any:
    """Nested values cut along their samples; None if one has another number of them."""
    if isinstance(value, Tensor):
        if value.dim() == 0:
            return value
        own_axis = axis if axis and value.dim() > 1 else 0
        if value.shape[own_axis] == size:
            return value.narrow(own_axis, 0, count)
        return None
    if isinstance(value, Mapping):
        cut = {key: _cut(held, size, axis, count) for key, held in value.items()}
        return None if any(held is None for held in cut.values()) else cut
    if isinstance(value, (tuple, list)):
        is_of_samples = len(value) == size and not all(
            isinstance(held, Tensor) and held.dim() and held.shape[0] == size for held in value
        )
        if is_of_samples:
            return type(value)(value[:count])
        parts = [_cut(held, size, axis, count) for held in value]
        if any(part is None and held is not None for part, held in zip(parts, value, strict=True)):
            return None
        kind: Any = type(value)
        return kind(*parts) if hasattr(value, "_fields") else kind(parts)
    return value


def moved(batch: Any, device: torch.device) -> Any:
    """The batch on a device."""
    return map_tensors(batch, lambda tensor: tensor.to(device))


def labels_of(batches: Sequence[Any], task: Task) -> list[Tensor | None]:
    """The label of each batch, if it is a tensor."""
    found = []
    for batch in batches:
        label = task.parts(batch).label
        found.append(label if isinstance(label, Tensor) else None)
    return found
