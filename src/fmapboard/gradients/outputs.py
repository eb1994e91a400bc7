"""``OutputRecorder``: copies the outputs of a training pass and their gradients, to read the loss.

Little is copied: evenly spaced rows, at most 1 MB of outputs and gradients in all. Which images
have the highest loss is found where the outputs are, before it is known which loss it is: by the
negative logarithm of the probability of the label.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from fmapboard.arithmetic import ceil_div
from fmapboard.capture.collector import ActivationCollector
from fmapboard.capture.inputs import image_batch
from fmapboard.capture.isolation import aside
from fmapboard.capture.texts import ids_by_length, is_only_text
from fmapboard.formats.training_facts import MAX_OUTPUTS, OUTSIDE
from fmapboard.model.distributed import is_dtensor
from fmapboard.model.tensors import is_observable, named_tensors, tensors
from fmapboard.records import PassCount

MAX_ROWS = 4096
"""At most this many rows of an output are read."""
_ABOUT = "outputs"
_MAX_BYTES = 2**20
"""Of outputs and gradients of a step."""
_HARDEST = 8
"""How many images with the highest loss are copied."""
_MAX_SIDE = 112
"""Pixels of their longer side."""
_MAX_GRAPH = 20_000
"""How many nodes behind an output are searched for parameters."""
_MAX_NODES = 16
"""How many nodes behind what a module receives are searched for outputs of other modules."""
TOKENS_AHEAD = 2
"""Labels are compared with a token of the text and with so many behind it."""


@dataclass(frozen=True, slots=True)
class PendingOutput:
    """An output of the network in the training pass and its gradient, copies of evenly spaced rows.

    Attributes:
        name: as in ``OutputFacts``.
        shape: of the whole output.
        steps: step along each of its axes.
        values: [n, C, ...].
        gradient: [n, C, ...]; None if none has arrived, or not that of all backward passes.
        hardest: [k], positions in ``values`` of the images with the highest loss; or None.
        images: [k, C, H, W], these images, subsampled.
        passes: number of backward passes that have reached the output.
        tokens: [`TOKENS_AHEAD` + 2, R], if each row over the last axis belongs to a token that the
            network receives: these tokens, those that follow, first the next ones, -1 behind a
            text, and the number of the text; None otherwise.
        only_text: the network receives one text per sample and, besides, nothing but masks.
        predicted: [N], the class that each row of an output [N, C] predicts, of one unit whether it
            is positive; None if all rows are in ``values``.
    """

    name: str
    shape: tuple[int, ...]
    steps: tuple[int, ...]
    values: Tensor
    gradient: Tensor | None = None
    hardest: Tensor | None = None
    images: Tensor | None = None
    passes: int = 0
    tokens: Tensor | None = None
    only_text: bool = False
    predicted: Tensor | None = None


def strides(shape: tuple[int, ...], itemsize: int, nbytes: int) -> tuple[int, ...] | None:
    """The step along each axis of an output at which rows are copied; None if one is too large.

    Args:
        shape: [], [N], [N, C] or [N, C, ...]; of three axes the last may be that of the classes.
        itemsize: bytes per value.
        nbytes: how many may be copied.
    """
    if not shape:
        return ()
    most_values = nbytes // itemsize
    if len(shape) == 3:
        step = 1
        rows = max(shape[1:])  # of a sample
        values = math.prod(shape[1:])
    else:
        classes = math.prod(shape[1:2])
        most_rows = min(MAX_ROWS, most_values // classes)
        step, rows = _step_within(shape, most=most_rows // shape[0])
        values = classes * rows
    samples = min(most_values // values, max(1, MAX_ROWS // rows))
    if not samples:
        return None
    every = ceil_div(shape[0], samples)
    if len(shape) == 1:
        return (every,)
    spatial_axes = len(shape) - 2
    return (every, 1, *[step] * spatial_axes)


def _step_within(shape: tuple[int, ...], most: int) -> tuple[int, int]:
    """The step along the axes behind that of the classes, and how many rows of a sample it leaves.

    Args:
        shape: [N], [N, C] or [N, C, ...].
        most: how many rows of a sample may be copied, at least one.
    """
    sides = shape[2:]
    rows = math.prod(sides)
    step = 1
    while rows > max(1, most):
        step += 1
        kept = [ceil_div(side, step) for side in sides]
        rows = math.prod(kept)
    return step, rows


class OutputRecorder:
    """Follows the outputs of one forward pass; used on the training thread.

    Args:
        collected: what else is recorded of the pass; it follows the gradients.
        received: what the model is called with, or the first of its parts if only these are called;
            None if that is not known.
        model: whose parameters the outputs should depend on; None if that is known.

    Attributes:
        outside: see `outside_parameters`.
    """

    def __init__(
        self, collected: ActivationCollector, received: Any = None, model: nn.Module | None = None
    ) -> None:
        self._collected = collected
        self._parts = set[str]()
        self.outside = dict[str, Tensor]()
        self._model = model
        self._before = set[Any]()
        if model is not None:
            self._before = {tensor.grad_fn for tensor in tensors(received)}
        self._found = dict[tuple[int, int], PendingOutput]()  # by node and number of its output
        self._images = _batch_of(collected, received)
        self._texts: Mapping[int, Tensor] = {}
        self._only_text = False
        if received is not None and self._images is None:
            self._texts = ids_by_length(*received)
            self._only_text = is_only_text(*received)

    def returned(self, output: Any, part: str = "") -> None:
        """Called when the model or, while it is not called itself, a part of it has returned."""
        if part in self._parts or self._collected.guard.is_disabled(_ABOUT):
            return
        self._parts.add(part)
        with self._collected.guard(_ABOUT):
            if self._model is not None:
                self.outside = outside_parameters(output, self._before, self._model)
            self._before = set()
            followed = [pair for pair in named_tensors(output) if is_followed(pair[1])]
            followed = followed[: MAX_OUTPUTS - len(self._found)]
            count = max(len(followed), 1)
            most_bytes = _MAX_BYTES // 2 // count
            for place, tensor in followed:
                steps = strides(tuple(tensor.shape), tensor.element_size(), most_bytes)
                if steps is None:
                    continue
                name = f"{part}.{place}" if part and place else part or place
                self._follow(name.replace("/", "_"), tensor, steps)
        has_images = [self._has_images(found) for found in self._found.values()]
        if not part and not any(has_images):
            self._images = None

    def received(self, values: Any) -> None:
        """Called when a part begins: outputs that it is given are none of the network."""
        due = [(tensor.grad_fn, tensor.output_nr) for tensor in tensors(values)]
        for node, number in due:  # which grows
            if node is None or len(due) >= _MAX_NODES:
                continue
            key = _number(node), number
            self._found.pop(key, None)
            due += node.next_functions

    def _follow(self, name: str, tensor: Tensor, steps: tuple[int, ...]) -> None:
        window = tuple([slice(None, None, step) for step in steps])
        key = _number(tensor.grad_fn), tensor.output_nr
        with aside(tensor.device.type):
            values = tensor.detach()[window].clone()
            tokens = _tokens_of(tensor, self._texts, steps[:1]) if self._texts else None
            is_in_part = len(steps) == 2 and steps[0] > 1
            predicted = _predictions(tensor.detach()) if is_in_part else None
        self._found[key] = PendingOutput(
            name,
            tuple(tensor.shape),
            steps,
            values,
            tokens=tokens,
            only_text=self._only_text,
            predicted=predicted,
        )

        def reduce(gradient: Tensor) -> Tensor:
            return gradient[window]

        def record(gradient: Tensor | None, passes: PassCount) -> None:
            if key not in self._found:
                return
            is_partial = passes.summed < passes.seen
            self._arrived(key, None if is_partial else gradient, passes.seen)

        self._collected.sums.follow(_ABOUT, tensor, reduce, record)

    def _arrived(self, key: tuple[int, int], gradient: Tensor | None, passes: int) -> None:
        output = self._found[key]
        if gradient is not None:
            with aside(gradient.device.type):
                gradient = gradient.detach().clone()
                if self._has_images(output):
                    output = self._with_images(output, gradient)
        self._found[key] = replace(output, gradient=gradient, passes=passes)

    def _has_images(self, output: PendingOutput) -> bool:
        """True if the output has one row for each of the images."""
        if self._images is None or len(output.shape) not in (1, 2):
            return False
        return output.shape[0] == len(self._images.images)

    def _with_images(self, output: PendingOutput, gradient: Tensor) -> PendingOutput:
        """The output with the images that have the highest loss."""
        batch = self._images
        assert batch is not None
        self._images = None
        images = batch.images
        if images._version != batch.version:
            return output
        losses = _losses_by_sign(output.values, gradient)
        count = min(_HARDEST, len(losses))
        hardest = losses.topk(count).indices
        longer_side = max(images.shape[2:])
        every = ceil_div(longer_side, _MAX_SIDE)
        subsampled = images.detach()[:: output.steps[0], :, ::every, ::every]
        chosen = subsampled[hardest]
        if chosen.element_size() > 2 and chosen.device.type != "cpu":
            chosen = chosen.bfloat16()  # for the way to the host
        return replace(output, hardest=hardest, images=chosen)

    def pending(self) -> tuple[PendingOutput, ...]:
        """The outputs that have a gradient; nothing is kept.

        If none has, one without values that stands for all of them; none if nothing was returned.
        """
        found = list(self._found.values())
        self._images = None
        self._texts = {}
        self._found = {}
        if len(found) == 1:
            found = [replace(found[0], name="")]
        with_gradient = [output for output in found if output.gradient is not None]
        if with_gradient:
            return tuple(with_gradient)
        if not self._parts:
            return ()
        passes = [output.passes for output in found]
        none = PendingOutput("", (), (), torch.empty(0), passes=max(passes, default=0))
        return (none,)


class _Batch(NamedTuple):
    """The batch of images that a model receives, and its version then."""

    images: Tensor
    version: int


def _batch_of(collected: ActivationCollector, received: Any) -> _Batch | None:
    expected = collected.reduce.sequences.are_expected
    images = image_batch(received, sequences=expected, depth=collected.reduce.depth)
    if images is None or images.is_inference() or is_dtensor(images):
        return None
    return _Batch(images, images._version)


def _tokens_of(
    output: Tensor, texts: Mapping[int, Tensor], steps: tuple[int, ...]
) -> Tensor | None:
    """See ``PendingOutput.tokens``.

    Args:
        output: [N, T, C], or [N * T, C].
        texts: T -> ids [N, T].
        steps: step along the first axis of the output.
    """
    for length, ids in texts.items():
        if output.shape[:-1] not in ((len(ids), length), (len(ids) * length,)):
            continue
        parts = [ids]
        for _ in range(TOKENS_AHEAD):
            following = parts[-1].roll(-1, 1)
            following[:, -1] = -1
            parts.append(following)
        numbers = torch.arange(len(ids), dtype=ids.dtype, device=ids.device)
        parts.append(numbers.unsqueeze(1).expand_as(ids))
        tokens = torch.stack(parts)  # [A, N, T]
        if output.dim() == 2:
            tokens = tokens.flatten(1)
        return tokens[:, :: steps[0]].flatten(1)  # [A, R]
    return None


def _predictions(output: Tensor) -> Tensor:
    """[N, C] -> the most probable class of each row, [N]; of one unit whether it is positive."""
    if output.shape[1] > 1:
        return output.argmax(1)
    return output[:, 0] > 0


def _losses_by_sign(values: Tensor, gradient: Tensor) -> Tensor:
    """The loss of each row if its label is what the gradient makes larger, -inf without one.

    Args:
        values: [n] or [n, C], logits.
        gradient: the same.

    Returns:
        [n].
    """
    values = values.reshape(len(values), -1).float()  # [n, C]
    gradient = gradient.reshape(len(gradient), -1).float()
    if values.shape[1] > 1:
        labels = gradient.argmin(1, keepdim=True)  # [n, 1]
        losses = -values.log_softmax(1).gather(1, labels)
    else:
        wrong = torch.where(gradient < 0, -values, values)
        losses = functional.softplus(wrong)
    has_none = ~gradient.any(1)
    return losses[:, 0].masked_fill(has_none, -math.inf)


def outside_parameters(output: Any, before: set[Any], model: nn.Module) -> dict[str, Tensor]:
    """Parameters that the output depends on and that the model does not have, under a description.

    Args:
        output: of a forward pass.
        before: nodes of what the model was called with; what is behind them is not searched.
        model: the model.
    """
    own = set(map(id, model.parameters()))
    found = dict[str, Tensor]()
    seen = before | {None}
    due: list[Any] = [tensor.grad_fn for tensor in tensors(output)]
    while due and len(seen) < _MAX_GRAPH:
        node = due.pop()
        if node in seen:
            continue
        seen.add(node)
        due += [following for following, _ in node.next_functions]
        leaf = getattr(node, "variable", None)
        if isinstance(leaf, nn.Parameter) and id(leaf) not in own:
            shape = list(leaf.shape)
            number = len(found) + 1
            found[f"{OUTSIDE}{shape} ({number})"] = leaf
    return found


def _number(node: Any) -> int:
    """Tells a node of this thread from others, also those that are gone, without keeping it."""
    return node._sequence_nr() if hasattr(node, "_sequence_nr") else id(node)


def is_followed(tensor: Tensor) -> bool:
    """True for an output whose gradient is recorded."""
    if tensor.is_leaf or not tensor.requires_grad:
        return False  # a hook on a leaf would stay after the step
    if not tensor.is_floating_point():
        return False
    return is_observable(tensor) and not is_dtensor(tensor)
