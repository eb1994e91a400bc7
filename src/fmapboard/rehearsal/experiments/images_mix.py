"""Whether the output of one image depends on another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from fmapboard.model.tensors import tensors
from fmapboard.rehearsal.batches import (
    has_relations,
    input_tensors,
    labels_of,
    size_of,
    with_tensors,
)
from fmapboard.rehearsal.experiment import Answer, Experiment, fault, fine, not_judged
from fmapboard.rehearsal.setup import Call, Pass, Setup

_EPISODES = 3
"""Batches whose labels are the same by their places, not by chance."""


@dataclass(frozen=True, slots=True)
class ImagesMix(Experiment):
    """One image of the batch is exchanged, in eval mode; the outputs of the others must not change.

    It costs six forward passes of at most eight images.

    A fault: softmax, normalization or attention over the batch, ``view`` in place of ``transpose``.
    The answer names the first layer whose output mixes images. Also images whose output changes
    with their place in the batch: positions that are added along the axis of images.

    Not judged: graphs, examples and queries of few-shot learning, batches of one image, outputs
    that are no rows of images. A layer that is named for the batch (``BatchNorm`` without running
    statistics, ``MinibatchStdDev``) mixes them on purpose, as a loss that compares images does,
    which is not part of the network.

    Attributes:
        tolerance: change of an output that counts, as a share of its standard deviation.
        placed: the same for images in another order, which some kernels round otherwise.
    """

    tolerance: float = 1e-5
    placed: float = 1e-3
    kind: ClassVar[str] = "images_mix"
    question: ClassVar[str] = "Do images mix?"
    bound: ClassVar[str] = "exchanging one image changes no output of another one"

    def run(self, setup: Setup) -> Answer:
        """See `Experiment.run`."""
        batch, size, axis, _ = setup.samples()
        if size < 2:
            return not_judged("the batch has no second image")
        if has_relations(batch, setup.task, size):
            return not_judged("the network gets relations between the samples")
        changed = exchanged(setup, batch, 0)
        if changed is None:
            return not_judged("all images of the batch are the same")
        copies = [setup.make_copy() for _ in range(3)]
        before, again, after = (
            setup.forward(copy, given, training=False)
            for copy, given in zip(copies, (batch, batch, changed), strict=True)
        )
        shares = self._shares(before, again, after, size)
        if shares is None:
            return not_judged("no output has one row per image")
        if max(shares) <= self.tolerance:
            placed = self._by_place(setup, batch, size, axis)
            if placed is not None:
                return placed
            return fine("exchanging one image changes no output of another one", max(shares))
        return self._judged(setup, before, again, after, size, max(shares), axis)

    def _by_place(self, setup: Setup, batch: Any, size: int, axis: int) -> Answer | None:
        """A fault if the output of an image depends on its place in the batch."""
        turned = {}
        for tensor in tensors(batch):  # labels too: a decoder may get them
            own_axis = axis if axis and tensor.dim() > 1 else 0
            if tensor.dim() and tensor.shape[own_axis] == size:
                turned[id(tensor)] = tensor.flip(own_axis)
        reversed_batch = with_tensors(batch, turned)
        passes = [
            setup.forward(setup.make_copy(), given, training=False, seed=seed)
            for given, seed in ((batch, 0), (batch, 1), (reversed_batch, 0))
        ]
        before, again, after = passes
        if not self._has_moved(before.outputs, again.outputs, after.outputs, size):
            return None
        name = ""
        for old, same, new in zip(before.calls, again.calls, after.calls, strict=False):
            if self._has_moved(old.outputs, same.outputs, new.outputs, size):
                name = old.name
                break
        where = f", first in {name}" if name else ""
        return fault(
            f"the output of an image changes with its place in the batch{where}",
            layer=name,
            advice="Look for positions or weights that are added along the axis of the images, "
            "such as pe[: x.size(0)] where batches come first",
        )

    def _has_moved(
        self, old: Sequence[Tensor], same: Sequence[Tensor], new: Sequence[Tensor], size: int
    ) -> bool:
        """True if images in reverse order have other outputs than these in reverse order."""
        for before, again, after in zip(old, same, new, strict=False):
            if before.shape != after.shape or len(before) != size:
                continue
            if before.dim() == 2 and before.shape[1] == size:  # all images with all
                continue
            noise = float((again.double() - before.double()).abs().max())
            change = float((after.flip(0).double() - before.double()).abs().max())
            scale = float(before.double().std())
            if change > 10 * noise and change > self.placed * scale > 0:
                return True
        return False

    def _shares(self, before: Pass, again: Pass, after: Pass, size: int) -> list[float] | None:
        found = []
        for old, same, new in zip(before.outputs, again.outputs, after.outputs, strict=False):
            share = leak(old, same, new, size)
            if share is not None:
                found.append(share)
        return found or None

    def _judged(
        self,
        setup: Setup,
        before: Pass,
        again: Pass,
        after: Pass,
        size: int,
        share: float,
        axis: int,
    ) -> Answer:
        if _are_episodes(setup):
            return not_judged("images are compared with examples of their classes", share)
        if self._has_other_axis(setup):
            return not_judged("samples are along the second axis of the input", share)
        place, call = self._first(before, again, after, size)
        if call is not None and _is_for_batch(call):
            return not_judged(f"{place} mixes the images of a batch on purpose", share)
        return fault(
            f"exchanging one image changes the outputs of others, first in {place}",
            figure=share,
            layer=call.name if call is not None else "",
            advice="Each image must be computed on its own: check the axis of softmax and of "
            "normalization, batch_first= of attention and recurrent layers, and view() where "
            "transpose() is meant",
        )

    def _has_other_axis(self, setup: Setup) -> bool:
        """True if samples may be along the second axis: then exchanging one there changes no other.

        Only without one label per sample: with them, it is known where samples are.
        """
        batch = setup.batch
        label = setup.task.parts(batch).label
        first = input_tensors(batch, setup.task)[0]
        if isinstance(label, Tensor) and label.dim() == 1 and len(label) == first.shape[0]:
            return False
        if first.dim() < 2 or first.dim() > 3 or first.shape[1] < 2:
            return False
        turned = first.clone()
        turned[:, 0] = first[:, 1]
        if torch.equal(turned, first):
            return False
        changed = with_tensors(batch, {id(first): turned})
        passes = [
            setup.forward(setup.make_copy(), given, training=False)
            for given in (batch, batch, changed)
        ]
        shares = []
        for old, same, new in zip(*(found.outputs for found in passes), strict=False):
            if old.dim() < 2 or first.shape[1] not in old.shape[:2]:
                return False
            number = list(old.shape[:2]).index(first.shape[1])
            rows = [each.transpose(0, number) for each in (old, same, new)]
            share = leak(rows[0], rows[1], rows[2], first.shape[1])
            shares.append(1.0 if share is None else share)
        return bool(shares) and max(shares) <= self.tolerance

    def _first(self, before: Pass, again: Pass, after: Pass, size: int) -> tuple[str, Call | None]:
        """The first layer whose output mixes images, in words and as a call."""
        for old, same, new in zip(before.calls, again.calls, after.calls, strict=False):
            if not self._mixes(old.outputs, same.outputs, new.outputs, size):
                continue
            name = f"{old.name} ({old.kind})" if old.name else f"forward() of {old.kind}"
            if old.name and self._mixes(old.inputs, same.inputs, new.inputs, size):
                parent = old.name.rpartition(".")[0]
                where = f"forward() of {parent}" if parent else "forward() of the network"
                return f"{where}, before {old.name}", None
            return name, old
        return "the network", None

    def _mixes(
        self, old: Sequence[Tensor], same: Sequence[Tensor], new: Sequence[Tensor], size: int
    ) -> bool:
        for parts in zip(old, same, new, strict=False):
            share = leak(parts[0], parts[1], parts[2], size)
            if share is not None and share > self.tolerance:
                return True
        return False


def _are_episodes(setup: Setup) -> bool:
    """True if batches hold examples and queries: two inputs, and the same labels in each batch."""
    labels = labels_of(setup.batches, setup.task)
    first = labels[0]
    if len(labels) < _EPISODES or first is None or len(setup.inputs(setup.batch)) < 2:
        return False
    others = [label for label in labels[1:] if label is not None and label.shape == first.shape]
    return len(others) == len(labels) - 1 and all(torch.equal(first, label) for label in others)


def _is_for_batch(call: Call) -> bool:
    """True for a layer that is named for the batch."""
    return "batch" in call.kind.lower()


def exchanged(setup: Setup, batch: Any, number: int) -> Any:
    """The batch with the content of another image in place of one; None if all are the same."""
    size, axis = size_of(batch, setup.task)
    changed = {}
    for tensor in input_tensors(batch, setup.task):
        own_axis = axis if axis and tensor.dim() > 1 else 0
        if tensor.dim() == 0 or tensor.shape[own_axis] != size:
            continue
        others = [i for i in range(size) if not _same(tensor, own_axis, i, number)]
        if not others:
            continue
        other = tensor.clone()
        source = tensor.select(own_axis, others[0])
        other.select(own_axis, number).copy_(source)
        changed[id(tensor)] = other
    return with_tensors(batch, changed) if changed else None


def _same(tensor: Tensor, axis: int, one_number: int, other_number: int) -> bool:
    first = tensor.select(axis, one_number)
    return torch.equal(first, tensor.select(axis, other_number))


def leak(old: Tensor, same: Tensor, new: Tensor, size: int) -> float | None:
    """How much rows of other images than the first one have changed.

    Where images may be in several ways, the way in which the fewest have changed counts.

    Args:
        old: an output, some axis of which holds the images.
        same: of a second pass that should be the same.
        new: of the pass in which the first image was exchanged.
        size: the number of images.

    Returns:
        The largest change as a share of the standard deviation; None if there are no such rows.
    """
    if old.shape != new.shape or old.shape != same.shape or old.numel() < size:
        return None
    change = (new.double() - old.double()).abs()
    noise = float((same.double() - old.double()).abs().max())
    scale = float(old.double().std()) if old.numel() > 1 else 0.0
    if not scale > 0:
        return None
    found = []
    for rows in _ways(change, size):
        others = rows[1:]
        if old.dim() == 2 and old.shape[0] == old.shape[1] == size:
            others = others[:, 1:]  # a comparison of all images with all
        found.append(float(others.max()) if others.numel() else 0.0)
    if not found:
        return None
    largest = min(found)
    if largest <= 10 * noise:
        return 0.0
    return largest / scale


def _ways(change: Tensor, size: int) -> list[Tensor]:
    """The tensor with images along its first axis, in each way in which they may be in it."""
    ways = []
    first = change.shape[0]
    if first % size == 0:
        ways.append(change.reshape(size, -1))
        if first > size:
            inner = change.reshape(first // size, size, -1)
            ways.append(inner.transpose(0, 1).flatten(1))
    for axis in range(1, change.dim()):
        if change.shape[axis] == size and first != size:
            ways.append(change.transpose(0, axis).flatten(1))
    return ways
