"""What the loss compares each output with, found by changing labels and by which way it pulls."""

from __future__ import annotations

from functools import partial
from math import inf
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from fmapboard.model.tensors import tensors
from fmapboard.rehearsal.batches import with_tensors
from fmapboard.rehearsal.compared import Loss
from fmapboard.rehearsal.experiment import Answer, fault
from fmapboard.rehearsal.setup import Pass, Setup
from fmapboard.rehearsal.task import Task
from fmapboard.rehearsal.training_copy import TrainingCopy

_EFFECT = 1e-6
"""Change of a gradient that counts, as a share of the largest one: more than rounding."""
_NEAR = 8
"""A label may act on outputs within this part of a side: losses resize, and shift by a token."""
_OUT_OF_REACH = 0.05
"""Share of targets outside the range of the outputs that is more than a few outliers."""


_LEAST_LABELS = 4
_DIRECTIONS = 4
"""Random directions in which outputs are moved away from labels."""


class Activation(NamedTuple):
    """The function that made an output, and the range of its values."""

    name: str
    lowest: float
    highest: float


_ACTIVATIONS = {
    "SigmoidBackward0": Activation("Sigmoid", 0.0, 1.0),
    "HardsigmoidBackward0": Activation("Hardsigmoid", 0.0, 1.0),
    "SoftmaxBackward0": Activation("Softmax", 0.0, 1.0),
    "TanhBackward0": Activation("Tanh", -1.0, 1.0),
    "ReluBackward0": Activation("ReLU", 0.0, inf),
    "SoftplusBackward0": Activation("Softplus", 0.0, inf),
    "GeluBackward0": Activation("GELU", -0.2, inf),
    "LeakyReluBackward0": Activation("LeakyReLU", -inf, inf),
}
_RESHAPES = ("View", "Squeeze", "Unsqueeze", "Transpose", "Permute", "Clone", "Alias", "TBack")


def last_activation(output: Tensor) -> Activation | None:
    """The activation function whose values an output holds; None if another one made it."""
    node: Any = output.grad_fn
    while node is not None and any(name in node.name() for name in _RESHAPES):
        node = node.next_functions[0][0]
    return None if node is None else _ACTIVATIONS.get(node.name())


def out_of_reach(batch: Any, output: Tensor, gradient: Tensor) -> Answer | None:
    """A fault if targets are outside of the values that the last activation can have.

    A tensor of the batch is the target if the loss pulls each output towards its value there.
    """
    activation = last_activation(output)
    if activation is None:
        return None
    for target in tensors(batch):
        if target.numel() != output.numel() or target.is_complex():
            continue
        wanted = target.detach().double().reshape(output.shape)
        difference = output.detach().double() - wanted
        pulled = (gradient != 0) & (difference != 0)
        agrees = (difference > 0) == (gradient > 0)
        if int(pulled.sum()) < 8 or float(agrees[pulled].double().mean()) < 0.999:
            continue
        is_out = (wanted < activation.lowest) | (wanted > activation.highest)
        share = float(is_out.double().mean())
        if share > _OUT_OF_REACH:
            values = f"{activation.lowest:g} to {activation.highest:g}"
            return fault(
                f"the network ends in {activation.name}, whose values are {values}, and "
                f"{share:.0%} of the targets are outside",
                figure=share,
                advice=f"Leave out {activation.name} at the end, or scale the targets",
            )
    return None


def unpaired(setup: Setup, copy: TrainingCopy, seen: Pass) -> Answer | None:
    """A fault if the loss compares outputs with labels of other images or of other places."""
    label = setup.task.parts(setup.batch).label
    task: Task = copy.own(setup.task)
    output = seen.returned
    is_known = isinstance(label, Tensor) and label.dim() and not label.is_complex()
    if task.loss is None or not is_known or not isinstance(output, Tensor):
        return None
    if output.dim() == 0 or len(label) < 2 or len(output) != len(label):
        return None
    probe = _Probe(task, copy, output.detach(), setup.batch)
    if output.shape != label.shape and output.numel() == label.numel():
        return _broadcast(probe, label)
    return _elsewhere(probe, label)


class _Probe(NamedTuple):
    """Computes gradients at an output for changed labels."""

    task: Task
    copy: TrainingCopy
    output: Tensor
    batch: Any

    def gradient(self, label: Tensor, changed: Tensor) -> Tensor | None:
        """The gradient of the loss with other labels; None if it is not finite."""
        given = with_tensors(self.batch, {id(label): changed})
        run = partial(_gradient, self.task, self.output)
        found: Tensor = self.copy.call(run, given, gradients=True)
        return found if bool(torch.isfinite(found).all()) else None


def _gradient(task: Task, output: Tensor, _: nn.Module, batch: Any) -> Tensor:
    own = output.clone().requires_grad_()
    return torch.autograd.grad(task.loss_of(own, batch), own)[0]


def _broadcast(probe: _Probe, label: Tensor) -> Answer | None:
    """A fault if it makes no difference which label belongs to which output."""
    turned = label.flip(0)
    if len(label) < 4 or not label.is_floating_point() or torch.equal(label, turned):
        return None
    constant = label[:1].expand_as(label).contiguous()
    found = [probe.gradient(label, changed) for changed in (label, turned, constant)]
    if any(gradient is None for gradient in found):
        return None
    same, other, unlike = [gradient for gradient in found if gradient is not None]
    if not _differ(same, unlike).any() or _differ(same, other).any():
        return None
    return fault(
        f"outputs {list(probe.output.shape)} and labels {list(label.shape)} are broadcast: each "
        "output is compared with all labels",
        advice="Give both the same shape: output.squeeze(1), or label[:, None]",
    )


def _elsewhere(probe: _Probe, label: Tensor) -> Answer | None:
    """A fault if a changed label only acts on outputs of another image or another place."""
    shape = probe.output.shape
    axes: list[int | None] = []  # of the classes; None without one
    if shape == label.shape:
        axes.append(None)
    if len(shape) > 1 and shape[:1] + shape[2:] == label.shape:
        axes.append(1)
    if len(shape) > 2 and shape[:-1] == label.shape:
        axes.append(len(shape) - 1)
    before = probe.gradient(label, label)
    if not axes or before is None:
        return None
    for place in _places(label):
        values = label[(label != label[place]) & (label >= 0)]
        if not len(values):
            continue
        changed = label.clone()
        changed[place] = values[0]
        after = probe.gradient(label, changed)
        if after is None:
            continue
        moved = _differ(before, after)
        found = [_where(moved if axis is None else moved.any(axis)) for axis in axes]
        if all(len(places) and not _any_near(places, place, label) for places in found):
            acts_on = tuple(found[0][0].tolist())
            return fault(
                f"the label at {list(place)} acts on the output at {list(acts_on)}, and not on "
                f"its own: outputs are {list(shape)}, labels {list(label.shape)}",
                advice="Look at how the loss reshapes both: move the axis of classes to the end "
                "(permute or movedim) before a reshape to [-1, classes]",
            )
    return None


def _places(label: Tensor) -> list[tuple[int, ...]]:
    """Places in the middle image, at different shares of each axis but that of the images."""
    image = len(label) // 2
    sides = label.shape[1:]
    shares = (0.3, 0.4) if sides else (0.0,)
    return [(image, *(int(share * side) for side in sides)) for share in shares]


def _any_near(places: Tensor, own: tuple[int, ...], label: Tensor) -> bool:
    """True if one of the places [P, D] is in the same image, and near."""
    sides = torch.tensor([0, *(max(side // _NEAR, 1) for side in label.shape[1:])])
    distance = (places - torch.tensor(own)).abs()
    return bool((distance <= sides).all(1).any())


def _where(moved: Tensor) -> Tensor:
    return moved.nonzero().cpu()


def _differ(gradient: Tensor, other: Tensor) -> Tensor:
    scale = gradient.abs().max().clamp(min=1e-30)
    return (gradient - other).abs() > _EFFECT * scale


def turned_loss(setup: Setup) -> Answer | None:
    """A fault if a loss falls as outputs move away from the labels.

    Outputs at some distance of the labels, in random directions, are compared with those at twice
    the distance. Of binary labels of pixels, the gradient tells: where a label is 1, the output
    must rise, and fall elsewhere.
    """
    label = setup.task.parts(setup.batch).label
    if label is None:
        label = next(iter(setup.inputs(setup.batch)), None)
    if setup.task.loss is None or not isinstance(label, Tensor) or not label.is_floating_point():
        return None
    loss = Loss(setup, setup.batch)
    places = [i for i, o in enumerate(loss.outputs) if o.numel() == label.numel()]
    if not places or len(label) < _LEAST_LABELS or not float(label.std()) > 0:
        return None
    place = places[0]
    wanted = label.reshape(loss.outputs[place].shape)
    is_binary = bool(((label == 0) | (label == 1)).all())
    is_turned = _pushes_away if is_binary else _falls_around
    if not is_turned(loss, place, wanted):
        return None
    return fault(
        "the sign of the loss is turned: it falls as outputs move away from the labels",
        advice="Turn the sign of the loss, or set maximize=False",
    )


def _pushes_away(loss: Loss, place: int, wanted: Tensor) -> bool:
    """True if outputs of pixels whose label is 1 are to fall, and all others to rise.

    Not for one label per image: a distance is to be small where a label is 1.
    """
    found = loss.at({})
    if found is None or wanted.dim() < 3:
        return False
    gradient = found.gradients[place]
    return bool((gradient[wanted == 1] > 0).all() and (gradient[wanted == 0] < 0).all())


def _falls_around(loss: Loss, place: int, wanted: Tensor) -> bool:
    """True if the loss falls from some distance of the labels to twice that, in all directions."""
    drawn = torch.Generator().manual_seed(0)
    output = loss.outputs[place]
    for _ in range(_DIRECTIONS):
        direction = torch.randn(wanted.shape, generator=drawn).to(wanted) * wanted.std() / 5
        for step in (-direction, direction):
            near = loss.at({}, {id(output): wanted + step})
            far = loss.at({}, {id(output): wanted + 2 * step})
            if near is None or far is None:
                return False
            if near.value - far.value <= _EFFECT * abs(near.value):
                return False
    return True
