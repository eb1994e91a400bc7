"""Whether each part of the input makes a difference to the output."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from fmapboard.rehearsal.batches import has_relations, input_tensors
from fmapboard.rehearsal.compared import Loss, Outputs, named_inputs, other_samples
from fmapboard.rehearsal.experiment import Answer, Experiment, fault, fine, not_judged
from fmapboard.rehearsal.setup import Setup

_MOST_CHANNELS = 16
_MOST_COLUMNS = 64
_LEAST_SIDE = 8


class Part(NamedTuple):
    """A part of the input in words, and the input with that part of other samples."""

    name: str
    changed: Tensor
    advice: str


@dataclass(frozen=True, slots=True)
class EveryInputMatters(Experiment):
    """One part of the input is exchanged between images at a time; an output must change.

    Parts are the arguments of the network, the channels or columns of the first one, the four
    quarters of images, the halves of clips, and all time steps but the first or the last one. It
    costs up to 40 forward passes of at most eight images, and ten steps if a part makes no
    difference.

    A fault: a part whose exchange changes nothing, before and after ten steps, in eval mode and in
    training mode. An argument that the loss uses is none.

    Of graphs, only the relations between samples are exchanged.

    Not judged: parts that are the same in all images.
    """

    kind: ClassVar[str] = "every_input_matters"
    question: ClassVar[str] = "Does every part of the input matter?"
    bound: ClassVar[str] = "exchanging any part between images changes an output"

    def run(self, setup: Setup) -> Answer:
        """See `Experiment.run`."""
        batch, size, axis, _ = setup.samples()
        if size < 2 or axis:
            return not_judged("the batch has no second image along its first axis")
        outputs = Outputs(setup, batch)
        if not outputs.tensors or not any(float(o.std()) > 0 for o in outputs.tensors if len(o)):
            return not_judged("the outputs are all the same")
        count = 0
        is_graph = has_relations(batch, setup.task, size)
        for given, part in _relations(setup, batch) if is_graph else _parts(setup, batch, size):
            if setup.remaining() <= 0:
                return not_judged("no time was left; pass seconds= for more")
            if torch.equal(part.changed, given):
                continue
            count += 1
            if outputs.change({id(given): part.changed}) != 0.0:
                continue
            if self._is_ignored(setup, batch, given, part):
                return fault(
                    f"{part.name} makes no difference to the output, also after ten steps",
                    figure=0.0,
                    advice=part.advice,
                )
        if not count:
            return not_judged("the parts of the images are all the same")
        return fine(f"each of {count} parts makes a difference", count)

    def _is_ignored(self, setup: Setup, batch: Any, given: Tensor, part: Part) -> bool:
        """True if a part makes no difference after ten steps, in no mode, and not to the loss."""
        if part.name.startswith("the argument") and setup.task.loss is not None:
            loss = Loss(setup, batch)
            before = loss.at({})
            after = loss.at({id(given): part.changed})
            if before is None or after is None or not before.is_same(after):
                return False
        trained = setup.trained(1.0, 10, seconds=setup.remaining() / 4).copy
        for training in (False, True):
            outputs = Outputs(setup, batch, trained, training=training)
            if outputs.change({id(given): part.changed}) != 0.0:
                return False
        return True


def _parts(setup: Setup, batch: Any, size: int) -> Iterator[tuple[Tensor, Part]]:
    """Inputs, and parts of them."""
    named = named_inputs(setup, batch)
    if len(named) > 1:
        for name, given in named.items():
            if given.dim() and len(given) == size:
                advice = f"Look at where forward() uses {name}"
                yield given, Part(f"the argument {name}", other_samples(given), advice)
    first = input_tensors(batch, setup.task)[0]
    if first.dim() < 2 or len(first) != size:
        return
    yield from ((first, part) for part in _channels(first))
    yield from ((first, part) for part in _regions(first))
    yield from ((first, part) for part in _all_but_one_step(first))


def _relations(setup: Setup, batch: Any) -> Iterator[tuple[Tensor, Part]]:
    """What says which samples belong together."""
    for name, given in list(named_inputs(setup, batch).items())[1:]:
        if given.dim() != 2 or given.layout is not torch.strided:
            continue
        changed = given.clone()
        changed[0] = given[0].flip(0)
        if given.shape[0] == given.shape[1]:
            changed = given.roll(1, 0)
        yield given, Part(f"the argument {name}", changed, f"Look at where forward() uses {name}")


def _channels(images: Tensor) -> Iterator[Part]:
    """The channels of images, or the columns of a table."""
    if not images.is_floating_point() or images.dim() > 4:
        return
    axis = 1
    most = _MOST_CHANNELS
    name = "channel"
    if images.dim() == 2:
        most = _MOST_COLUMNS
        name = "column"
    elif images.dim() == 3 and images.shape[2] < images.shape[1]:
        axis = 2
    elif images.dim() == 4 and images.shape[3] < min(images.shape[1:3]):
        axis = 3
    count = images.shape[axis]
    if not 1 < count <= most:
        return
    for number in range(count):
        changed = images.clone()
        own = changed.select(axis, number)
        own.copy_(other_samples(images.select(axis, number)))
        yield Part(
            f"{name} {number} of {count} of the input",
            changed,
            f"Does the network use it? Leave it out of the data otherwise; look at the index of "
            f"the {name}s, and at their scales",
        )


def _regions(images: Tensor) -> Iterator[Part]:
    """The quarters of images [N, C, H, W] or [N, H, W, C], and the halves of clips."""
    if images.dim() == 5 and images.shape[2] > 3 and images.is_floating_point():
        half = images.shape[2] // 2
        for name, window in (("first", slice(0, half)), ("second", slice(half, None))):
            changed = images.clone()
            changed[:, :, window] = other_samples(images[:, :, window])
            yield Part(f"the {name} half of the clip", changed, "Look at which frames are used")
        return
    if images.dim() != 4 or not images.is_floating_point():
        return
    top = 1 if images.shape[3] < min(images.shape[1:3]) else 2
    rows, columns = images.shape[top : top + 2]
    if min(rows, columns) < _LEAST_SIDE:
        return
    for vertical in (0, 1):
        for horizontal in (0, 1):
            changed = images.clone()
            own = changed.narrow(top, vertical * (rows // 2), rows // 2)
            own = own.narrow(top + 1, horizontal * (columns // 2), columns // 2)
            own.copy_(other_samples(own.clone()))
            place = f"{('upper', 'lower')[vertical]} {('left', 'right')[horizontal]}"
            yield Part(
                f"the {place} quarter of the images",
                changed,
                "Look for a crop or an index that leaves out a part of the image",
            )


def _all_but_one_step(sequences: Tensor) -> Iterator[Part]:
    """All time steps but the first, and all but the last one, of tokens or sequences."""
    is_tokens = sequences.dim() == 2 and not sequences.is_floating_point()
    if is_tokens:
        axis = 1
    elif sequences.dim() == 3 and sequences.is_floating_point():
        axis = 1 if sequences.shape[1] >= sequences.shape[2] else 2
    else:
        return
    length = sequences.shape[axis]
    if length < 4:
        return
    for kept, name in ((0, "first"), (length - 1, "last")):
        changed = other_samples(sequences)
        changed.select(axis, kept).copy_(sequences.select(axis, kept))
        what = "token" if is_tokens else "time step"
        yield Part(
            f"every {what} but the {name} one",
            changed,
            "Look at which step of the recurrent network or of the attention is used, such as "
            "out[:, 0] in place of out[:, -1], and at the mask",
        )
