"""``OutputRecorder``: copies the outputs of a training pass and their gradients, to read the loss.

Little is copied: evenly spaced rows, at most 1 MB of outputs and gradients in all. Which images
have the highest loss is found where the outputs are, before it is known which loss it is: by the
negative logarithm of the probability of the label.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from fmapboard.capture.collector import ActivationCollector
from fmapboard.capture.inputs import image_batch
from fmapboard.capture.isolation import aside
from fmapboard.formats.training_facts import MAX_OUTPUTS, OUTSIDE
from fmapboard.gradients.loss import MAX_ROWS, PendingOutput
from fmapboard.model.distributed import is_dtensor
from fmapboard.model.tensors import is_observable, named_tensors, tensors
from fmapboard.records import PassCount

_ABOUT = "outputs"
_MAX_BYTES = 2**20
"""Of outputs and gradients of a step."""
_HARDEST, _MAX_SIDE = 8, 112
"""How many images with the highest loss are copied, and px of their longer side."""
_MAX_GRAPH = 20_000
"""How many nodes behind an output are searched for parameters."""
_MAX_NODES = 16
"""How many nodes behind what a module receives are searched for outputs of other modules."""


def strides(shape: tuple[int, ...], itemsize: int, nbytes: int) -> tuple[int, ...] | None:
    """The step along each axis of an output at which rows are copied; None if one is too large.

    Args:
        shape: [], [N], [N, C] or [N, C, ...]; of three axes the last may be that of the classes.
        itemsize: bytes per value.
        nbytes: how many may be copied.
    """
    if not shape:
        return ()
    if len(shape) == 3:
        step, places, row = 1, max(shape[1:]), math.prod(shape[1:])
    else:
        spatial, row = shape[2:], math.prod(shape[1:2])
        most, step = max(1, min(MAX_ROWS, nbytes // itemsize // row) // shape[0]), 1
        while (places := math.prod(-(-side // step) for side in spatial)) > most:
            step += 1
        row *= places
    samples = min(nbytes // itemsize // row, max(1, MAX_ROWS // places))
    return (-(-shape[0] // samples), 1, *[step] * len(shape[2:]))[: len(shape)] if samples else None


class OutputRecorder:
    """Follows the outputs of one forward pass; used on the training thread.

    Args:
        collected: what else is recorded of the pass; it follows the gradients.
        received: what the model is called with; None if only parts of it are called.
        model: whose parameters the outputs should depend on; None if that is known.

    Attributes:
        outside: see `outside_parameters`.
    """

    def __init__(
        self, collected: ActivationCollector, received: Any = None, model: nn.Module | None = None
    ) -> None:
        self._collected, self._parts = collected, set[str]()
        self.outside, self._model, self._before = dict[str, Tensor](), model, set[Any]()
        if model is not None:
            self._before = {tensor.grad_fn for tensor in tensors(received)}
        self._found = dict[tuple[int, int], PendingOutput]()  # by node and number of its output
        expected, depth = collected.reduce.sequences.are_expected, collected.reduce.depth
        images = image_batch(received, sequences=expected, depth=depth)
        self._images = None
        if images is not None and not (images.is_inference() or is_dtensor(images)):
            self._images = images, images._version

    def returned(self, output: Any, part: str = "") -> None:
        """Called when the model or, while it is not called itself, a part of it has returned."""
        if part in self._parts or self._collected.guard.is_disabled(_ABOUT):
            return
        self._parts.add(part)
        with self._collected.guard(_ABOUT):
            if self._model is not None:
                self.outside = outside_parameters(output, self._before, self._model)
            self._before = set()
            own = [one for one in named_tensors(output) if _is_followed(one[1])]
            own = own[: MAX_OUTPUTS - len(self._found)]
            most = _MAX_BYTES // 2 // max(len(own), 1)
            for place, tensor in own:
                steps = strides(tuple(tensor.shape), tensor.element_size(), most)
                if steps is not None:
                    name = ".".join(filter(None, (part, place))).replace("/", "_")
                    self._follow(name, tensor, steps)
        if not any(self._has_images(one) for one in self._found.values()):
            self._images = None

    def received(self, values: Any) -> None:
        """Called when a part begins: outputs that it is given are none of the network."""
        due = [(tensor.grad_fn, tensor.output_nr) for tensor in tensors(values)]
        for node, number in due:  # which grows
            if node is not None and len(due) < _MAX_NODES:
                self._found.pop((_number(node), number), None)
                due += node.next_functions

    def _follow(self, name: str, tensor: Tensor, steps: tuple[int, ...]) -> None:
        window = tuple([slice(None, None, step) for step in steps])
        key = _number(tensor.grad_fn), tensor.output_nr
        with aside(tensor.device.type):
            values = tensor.detach()[window].clone()
        self._found[key] = PendingOutput(name, tuple(tensor.shape), steps, values)

        def record(gradient: Tensor | None, passes: PassCount) -> None:
            if key in self._found:
                self._arrived(key, gradient if passes.summed >= passes.seen else None)

        self._collected.sums.follow(_ABOUT, tensor, lambda gradient: gradient[window], record)

    def _arrived(self, key: tuple[int, int], gradient: Tensor | None) -> None:
        output = self._found[key]
        if gradient is not None:
            with aside(gradient.device.type):
                gradient = gradient.detach().clone()
                if self._has_images(output):
                    output = self._with_images(output, gradient)
        self._found[key] = replace(output, gradient=gradient)

    def _has_images(self, output: PendingOutput) -> bool:
        """True if the output has one row for each of the images."""
        if self._images is None or len(output.shape) not in (1, 2):
            return False
        return output.shape[0] == len(self._images[0])

    def _with_images(self, output: PendingOutput, gradient: Tensor) -> PendingOutput:
        """The output with the images that have the highest loss."""
        assert self._images is not None
        (images, version), self._images = self._images, None
        if images._version != version:
            return output
        values, gradient = (t.reshape(len(t), -1).float() for t in (output.values, gradient))
        if values.shape[1] > 1:
            logs = values.log_softmax(1)
            losses = -logs.gather(1, gradient.argmin(1, keepdim=True))[:, 0]
        else:
            losses = functional.softplus(torch.where(gradient < 0, -values, values))[:, 0]
        losses = losses.masked_fill(~gradient.any(1), -math.inf)
        hardest = losses.topk(min(_HARDEST, len(losses))).indices
        every = -(-max(images.shape[2:]) // _MAX_SIDE)
        chosen = images.detach()[:: output.steps[0], :, ::every, ::every][hardest]
        if chosen.element_size() > 2 and chosen.device.type != "cpu":
            chosen = chosen.bfloat16()  # for the way to the host
        return replace(output, hardest=hardest, images=chosen)

    def pending(self) -> tuple[PendingOutput, ...]:
        """The outputs that have a gradient; nothing is kept."""
        found, self._images, self._found = list(self._found.values()), None, {}
        if len(found) == 1:
            found = [replace(found[0], name="")]
        return tuple(one for one in found if one.gradient is not None)


def outside_parameters(output: Any, before: set[Any], model: nn.Module) -> dict[str, Tensor]:
    """Parameters that the output depends on and that the model does not have, under a description.

    Args:
        output: of a forward pass.
        before: nodes of what the model was called with; what is behind them is not searched.
        model: the model.
    """
    own, found = set(map(id, model.parameters())), dict[str, Tensor]()
    seen, due = before | {None}, list[Any](tensor.grad_fn for tensor in tensors(output))
    while due and len(seen) < _MAX_GRAPH:
        if (node := due.pop()) not in seen:
            seen.add(node)
            due += [one for one, _ in node.next_functions]
            leaf = getattr(node, "variable", None)
            if isinstance(leaf, nn.Parameter) and id(leaf) not in own:
                found[f"{OUTSIDE}{list(leaf.shape)} ({len(found) + 1})"] = leaf
    return found


def _number(node: Any) -> int:
    """Tells a node of this thread from others, also those that are gone, without keeping it."""
    return node._sequence_nr() if hasattr(node, "_sequence_nr") else id(node)


def _is_followed(tensor: Tensor) -> bool:
    # A hook on a leaf would stay after the step.
    is_learned = tensor.requires_grad and not tensor.is_leaf and tensor.is_floating_point()
    return is_learned and is_observable(tensor) and not is_dtensor(tensor)
