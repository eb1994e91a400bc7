"""Whether the network sees what it is to predict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from fmapboard.rehearsal.batches import size_of
from fmapboard.rehearsal.compared import Loss, Outputs, label_tensors, named_inputs
from fmapboard.rehearsal.experiment import Answer, Experiment, fault, fine, not_judged
from fmapboard.rehearsal.setup import Setup

_LEAST_SAMPLES = 8
"""Samples in which a label is in the input, so that it is no coincidence."""
_LEAST_VALUES = 3
"""Different values of a label that it takes to find it in the input."""
_MOST_COLUMNS = 100_000


class Pair(NamedTuple):
    """An input, a label of the same shape, and by how many places the label is ahead."""

    given: Tensor
    label: Tensor
    shift: int


@dataclass(frozen=True, slots=True)
class TargetIsHidden(Experiment):
    """What an output is compared with is changed in the input; that output must stay.

    Where a label has the same value as a place of the input, or the loss takes its targets from the
    input, that place is changed, in eval mode. It costs up to 12 forward passes of at most eight
    samples.

    A fault: the output for a token or a time step depends on the one that follows and that it is to
    predict; labels that are the tokens or pixels which a causal network gets, the ones before them,
    or the ones after the next; labels of a decoder that are its input; labels that stand in the
    input of each sample.

    Not a fault: an autoencoder, whose outputs depend on places on both sides of their own.

    Attributes:
        tolerance: change of an output that counts, as a share of its standard deviation.
    """

    tolerance: float = 1e-5
    kind: ClassVar[str] = "target_is_hidden"
    question: ClassVar[str] = "Does the network see what it is to predict?"
    bound: ClassVar[str] = "no output changes with its own target"

    def run(self, setup: Setup) -> Answer:
        """See `Experiment.run`."""
        found = _standing(setup)
        if found is not None:
            return found
        batch, _, _, given_tensors = setup.samples()
        inputs = list(named_inputs(setup, batch).values()) or given_tensors
        if not inputs:
            return not_judged("the network gets no tensor")
        outputs = Outputs(setup, batch)
        loss = None if setup.task.loss is None else Loss(setup, batch)
        asked = False
        for given in inputs:
            if loss is not None:
                shift = _acts_on(loss, given, outputs)
                if shift is not None:
                    asked = True
                    wrong = self._sees(outputs, given, shift)
                    if wrong is not None:
                        return wrong
            for label in label_tensors(setup, batch):
                shift = _shift(given, label)
                if shift is None:
                    continue
                asked = True
                wrong = self._of_labels(setup, batch, outputs, loss, Pair(given, label, shift))
                if wrong is not None:
                    return wrong
        if not asked:
            return fine("no label is in the input")
        return fine("no output changes with its own target, or both sides of it are seen")

    def _of_labels(
        self, setup: Setup, batch: Any, outputs: Outputs, loss: Loss | None, pair: Pair
    ) -> Answer | None:
        """A fault if the output at a place depends on the input that is its label."""
        given, label, shift = pair
        if not any(_has_places(output, given) for output in outputs.tensors):
            return None
        if _is_tokens(given):
            wrong = _wrong_shift(setup, batch, pair)
            if wrong is not None:
                return wrong
            if shift == 0 and not bool((label == given).all()):
                return None  # labels of hidden tokens
        acted = None if loss is None else _acts_on(loss, label, outputs)
        if acted is None:
            return self._sees(outputs, given, shift) if shift > 0 else None
        return self._sees(outputs, given, shift + acted)

    def _sees(self, outputs: Outputs, given: Tensor, shift: int) -> Answer | None:
        """A fault if the output at p depends on the input at p + shift, which it is to predict."""
        reach = _reach(outputs, given, self.tolerance)
        if reach is None:
            return None
        what = "token" if _is_tokens(given) else "pixel" if given.dim() == 4 else "time step"
        if shift > 0 and -shift in reach:
            return fault(
                f"the output for a {what} changes with the one that it is to predict, "
                + ("the next one" if shift == 1 else f"{shift} later"),
                figure=float(shift),
                advice="Mask attention to later places (is_causal=True), and check the sign and "
                "the axes of the mask; pad convolutions at the beginning only, and use one "
                "direction of a recurrent network",
            )
        is_causal = any(offset > 0 for offset in reach) and not any(offset < 0 for offset in reach)
        if shift <= 0 and is_causal and -shift in reach:
            past = "itself" if shift == 0 else f"the one {-shift} before it"
            return fault(
                f"the network sees no later {what}, and each {what} is to predict {past}",
                figure=float(shift),
                advice="Shift the labels by one, so that each place predicts the next one; the "
                "first layer of a masked convolution must leave out its own pixel",
            )
        return None


def _standing(setup: Setup) -> Answer | None:
    """A fault if the label of each sample stands in its input, at the same place in all."""
    batch = setup.batch
    size, axis = size_of(batch, setup.task)
    inputs = named_inputs(setup, batch)
    if size < _LEAST_SAMPLES or axis:
        return None
    for label in label_tensors(setup, batch):
        if len(label) != size or label.dim() > 2 or label.is_complex():
            continue
        columns = label.reshape(size, -1)
        if columns.shape[1] > 64:
            continue
        is_sequence = columns.shape[1] > 1
        for name, given in inputs.items():
            is_float = given.is_floating_point() and len(given) == size
            if not is_float or given[0].numel() > _MOST_COLUMNS or given.shape == label.shape:
                continue
            if is_sequence and columns.shape[1] in given.shape[1:]:  # one label per time step
                continue
            values = given.reshape(size, -1)
            place = _found_in(values, columns)
            if place is not None:
                where = _unraveled(place, tuple(given.shape[1:]))
                return fault(
                    f"the label of each image is in what the network gets, {name}[:, {where}]",
                    figure=float(place),
                    advice="Take it out of the input: cut the window before the value that is to "
                    "be predicted, and drop the column of the label",
                )
    return None


def _found_in(values: Tensor, columns: Tensor) -> int | None:
    """The column [N] of the values [N, F] that equals one of the labels [N, K]."""
    for column in columns.T:
        own = column.to(values.dtype)
        if len(torch.unique(own)) < _LEAST_VALUES and len(own) < 4 * _LEAST_SAMPLES:
            continue
        if len(torch.unique(own)) < 2:
            continue
        same = (values == own[:, None]).all(0).nonzero().flatten()
        if len(same):
            return int(same[0])
    return None


def _unraveled(place: int, shape: tuple[int, ...]) -> str:
    numbers: list[int] = []
    for side in reversed(shape):
        numbers.insert(0, place % side)
        place //= side
    return ", ".join(map(str, numbers))


def _is_tokens(tensor: Tensor) -> bool:
    """True for numbers of tokens [N, T]."""
    return tensor.dim() == 2 and not tensor.is_floating_point() and tensor.shape[1] > 2


def _time_axis(tensor: Tensor) -> int | None:
    """The axis of time of tokens [N, T] or of sequences [N, T, F] or [N, F, T]."""
    if _is_tokens(tensor):
        return 1
    if tensor.dim() == 3 and tensor.is_floating_point():
        return 1 if tensor.shape[1] >= tensor.shape[2] else 2
    return None


def _shift(given: Tensor, label: Tensor) -> int | None:
    """By how many places labels are ahead of the input; None if they are others."""
    axis = _time_axis(given)
    if axis is None or label.shape != given.shape or label.dtype != given.dtype:
        return None
    length = given.shape[axis]
    if length < 4:
        return None
    known = (
        label >= 0 if not label.is_floating_point() else torch.ones_like(label, dtype=torch.bool)
    )
    for shift in (0, 1, -1, 2):
        begin = max(0, -shift)
        count = length - abs(shift)
        own = label.narrow(axis, begin, count)
        there = given.narrow(axis, begin + shift, count)
        counted = known.narrow(axis, begin, count)
        if int(counted.sum()) >= 4 and torch.equal(own[counted], there[counted]):
            if len(torch.unique(own[counted])) < _LEAST_VALUES:
                return None
            return shift
    return None


def _has_places(output: Tensor, given: Tensor) -> bool:
    """True if an output has one place per place of the input."""
    axis = _time_axis(given)
    if axis is None:
        return output.shape[-2:] == given.shape[-2:] and output.dim() >= 3
    return _axis_of(output, given) is not None


def _axis_of(output: Tensor, given: Tensor) -> int | None:
    """The axis of time of an output; None if it is not clear."""
    axis = _time_axis(given)
    if axis is None or output.dim() < 2 or len(output) != len(given):
        return None
    length = given.shape[axis]
    found = [i for i in range(1, output.dim()) if output.shape[i] == length]
    return found[0] if len(found) == 1 else None


def _places(given: Tensor) -> Iterator[tuple[Tensor, int]]:
    """The input with one place changed, and the number of that place."""
    axis = _time_axis(given)
    if axis is not None:
        length = given.shape[axis]
        for place in (length // 2, length - 2):
            changed = given.clone()
            other = given.select(axis, place).roll(1, 0)
            if _is_tokens(given):
                other = _other_tokens(given.select(axis, place), given)
            changed.select(axis, place).copy_(other)
            if not torch.equal(changed, given):
                yield changed, place
    elif given.dim() == 4 and given.is_floating_point():
        rows, columns = given.shape[-2:]
        place = (rows // 2) * columns + columns // 2
        changed = given.clone()
        own = given[:, :, rows // 2, columns // 2]
        other = own.roll(1, 0)
        opposite = given.max() + given.min() - own
        changed[:, :, rows // 2, columns // 2] = torch.where(other == own, opposite, other)
        yield changed, place


def _other_tokens(column: Tensor, tokens: Tensor) -> Tensor:
    """For each token of a column another one of the batch."""
    known = torch.unique(tokens)
    places = torch.searchsorted(known, column.contiguous())
    other: Tensor = known[(places + 1) % len(known)]
    return other


def _moved_places(change: Tensor, given: Tensor, tolerance: float) -> set[int] | None:
    """The places of an output at which it has changed."""
    axis = _axis_of(change, given)
    if axis is not None:
        others = [i for i in range(change.dim()) if i != axis]
        largest = change.amax(others)
    elif given.dim() == 4 and change.shape[-2:] == given.shape[-2:]:
        largest = change.flatten(-2).flatten(0, -2).amax(0)  # [H*W]
    else:
        return None
    return set((largest > tolerance).nonzero().flatten().tolist())


def _reach(outputs: Outputs, given: Tensor, tolerance: float) -> set[int] | None:
    """At which offsets from a changed input outputs move; None if it is not clear."""
    found: set[int] = set()
    for changed, place in _places(given):
        changes = outputs.changes({id(given): changed})
        if changes is None:
            return None
        own = [_moved_places(change, given, tolerance) for change in changes]
        known = [moved for moved in own if moved is not None]
        if not known:
            return None
        found |= {place_moved - place for place_moved in known[0]}
    return found or None


def _acts_on(loss: Loss, given: Tensor, outputs: Outputs) -> int | None:
    """By how many places the target that a loss takes from the input is ahead of the output.

    None if the loss does not take it from there, or from more than one place.
    """
    before = loss.at({})
    if before is None or not any(_has_places(output, given) for output in outputs.tensors):
        return None
    shifts = set()
    for changed, place in _places(given):
        after = loss.at({id(given): changed})
        if after is None:
            return None
        moved: set[int] = set()
        for old, new in zip(before.gradients, after.gradients, strict=True):
            scale = old.abs().max().clamp(min=1e-30)
            places = _moved_places(((new - old).abs() / scale).double(), given, 1e-5)
            moved |= places or set()
        if len(moved) != 1:
            return None
        shifts.add(place - moved.pop())
    return shifts.pop() if len(shifts) == 1 else None


def _wrong_shift(setup: Setup, batch: Any, pair: Pair) -> Answer | None:
    """A fault if a token is to predict itself, or the one after the next."""
    tokens, label, shift = pair
    if shift not in (0, 1, 2):
        return None
    is_counted = label >= 0  # others, such as -100, have no loss
    is_itself = shift == 0
    seen = setup.forward(setup.make_copy(), batch, training=False, needs_loss=True)
    output = seen.outputs[0] if seen.outputs else None
    if output is None or output.dim() != 3 or output.shape[:2] != tokens.shape or seen.loss is None:
        return None
    if int(label.max()) >= output.shape[2]:
        return None
    loss = float(seen.loss)
    if is_itself and _is_loss(output, label, loss):
        hidden = "those that the network does not get: -100 elsewhere"
        return fault(
            "the label of each token is the token itself, which the network gets",
            figure=loss,
            advice="Shift the labels by one, so that each token predicts the next one"
            if bool(is_counted.all())
            else f"The labels of hidden tokens must be {hidden}",
        )
    is_shifted_again = shift == 1 and _is_loss(output[:, :-1], label[:, 1:], loss)
    if is_shifted_again or (shift == 2 and _is_loss(output, label, loss)):
        return fault(
            "labels are shifted twice: each token is to predict the one after the next",
            figure=loss,
            advice="The network shifts its labels itself: pass the tokens as labels",
        )
    return None


def _is_loss(output: Tensor, label: Tensor, loss: float) -> bool:
    """True if a loss is the cross-entropy of outputs [N, T, C] with labels [N, T]."""
    flat = label.flatten()
    known = flat >= 0
    own = float(functional.cross_entropy(output.flatten(0, 1)[known], flat[known]))
    return abs(own - loss) <= 1e-5 * abs(own)
