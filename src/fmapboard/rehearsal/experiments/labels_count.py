"""Whether the loss uses each label."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fmapboard.gradients.loss import read
from fmapboard.model.tensors import tensors
from fmapboard.rehearsal.batches import has_relations, size_of
from fmapboard.rehearsal.compared import Loss, LossAt, label_tensors, other_samples
from fmapboard.rehearsal.experiment import Answer, Experiment, fault, fine, not_judged
from fmapboard.rehearsal.setup import Setup

_MOST_COLUMNS = 64
_LEAST_SAMPLES = 4
_LEAST_VALUES = 16


@dataclass(frozen=True, slots=True)
class LabelsCount(Experiment):
    """Labels are changed under fixed outputs; the loss, or its gradient, must change.

    It costs one forward pass, and up to 70 times the loss without the network.

    A fault: labels of some images that make no difference, because of their place in the batch or
    of their class; a column, a quarter or nearly all time steps of the labels that make none;
    labels whose order makes no difference, as where averages over the batch are compared; labels
    that all have one value; a loss that counts padded places only, or places of one class only.

    Not judged: a loss without labels, one that the network or a framework computes, one that is
    random, and one that another tensor of the batch masks; nodes of a graph that have no label.
    """

    kind: ClassVar[str] = "labels_count"
    question: ClassVar[str] = "Does every label count?"
    bound: ClassVar[str] = "another label, another loss"

    def run(self, setup: Setup) -> Answer:
        """See `Experiment.run`."""
        if setup.task.loss is None:
            return not_judged("the loss is not computed from outputs and labels")
        batch = setup.step_batch
        size, axis = size_of(batch, setup.task)
        labels = [label for label in label_tensors(setup, batch) if len(label) == size]
        if not labels or axis or size < _LEAST_SAMPLES:
            return not_judged("the batch has no labels apart from what the network gets")
        loss = Loss(setup, batch)
        before = loss.at({})
        again = loss.at({})
        if before is None or again is None or not before.is_same(again):
            return not_judged("the loss is random, or has no finite gradient")
        used = [label for label in labels if not _is_unused(loss, before, label)]
        if not used:
            return _without_labels(setup, loss) or not_judged("the loss uses no label")
        constant = _constant(setup, loss, used)
        if constant is not None:
            return constant
        for label in used:
            found = self._of_label(setup, loss, before, label, size)
            if found is not None:
                return found
        return fine("each label makes a difference to the loss")

    def _of_label(
        self, setup: Setup, loss: Loss, before: LossAt, label: Tensor, size: int
    ) -> Answer | None:
        batch = setup.step_batch
        wrong = _only_filled(before, label) or _one_class(setup, before, label)
        if wrong is not None:
            return wrong
        if _is_masked(setup, loss, before, label, size):
            return None
        wrong = _unordered(loss, before, label, size)
        if wrong is not None:
            return wrong
        if not has_relations(batch, setup.task, size):  # labels of a part of a graph are hidden
            ignored = _ignored_images(loss, before, label, size)
            if ignored is not None:
                return ignored
        parts = [
            (name, changed) for name, changed in _parts(label) if not torch.equal(changed, label)
        ]
        still = []
        for name, changed in parts:
            found = loss.at({id(label): changed})
            if found is not None and before.is_same(found):
                still.append(name)
        is_text = not label.is_floating_point() and label.dim() == 2
        if not still or (is_text and len(still) < max(len(parts) - 1, 3)):
            return None
        named = ", ".join(still[:4]) + (f" and {len(still) - 4} more" if len(still) > 4 else "")
        return fault(
            f"{len(still)} of {len(parts)} parts of the labels make no difference to the loss: "
            f"{named}",
            figure=len(still),
            advice="Look at which outputs and which labels the loss takes: an index or a slice "
            "too many",
        )


def _is_unused(loss: Loss, before: LossAt, label: Tensor) -> bool:
    """True if the loss is the same with other labels."""
    after = loss.at({id(label): _others(label)})
    return after is not None and before.is_same(after)


def _without_labels(setup: Setup, loss: Loss) -> Answer | None:
    """A fault if a loss is given labels that fit the outputs, and makes no use of them."""
    label = setup.task.parts(setup.step_batch).label
    if not isinstance(label, Tensor):
        return None
    output = loss.outputs[0] if len(loss.outputs) == 1 else None
    fits = False
    if output is not None and output.dim() == 2 and label.dim() == 1:
        is_class = not label.is_floating_point() and int(label.min()) >= 0
        fits = is_class and int(label.max()) == output.shape[1] - 1 > 0
    if not setup.task.takes_label and not (fits and _is_cross_entropy(loss)):
        return None
    return fault(
        "the loss is the same with any labels",
        figure=0.0,
        advice="Look at what the loss compares outputs with, and at label_smoothing",
    )


def _is_cross_entropy(loss: Loss) -> bool:
    """True if the loss is one of classes, as its gradient tells."""
    at = loss.at({})
    if at is None:
        return False
    reading = read(loss.outputs[0].cpu(), at.gradients[0].cpu())
    return reading.labels is not None


def _constant(setup: Setup, loss: Loss, used: list[Tensor]) -> Answer | None:
    """A fault if all labels of all batches have one value, and outputs are compared with them."""
    label = setup.task.parts(setup.step_batch).label
    labels = setup.labels()
    if labels is None or len(labels) < _LEAST_VALUES or not isinstance(label, Tensor):
        return None
    if not _is_constant(labels) or not any(label is own for own in used):
        return None
    if not any(_is_of(label, output) for output in loss.outputs):
        return None  # such as what a discriminator is to say of the output
    if not all(map(_is_constant, used)):
        return None
    value = float(labels.flatten()[0])
    return fault(
        f"all {labels.numel()} labels are {value:g}",
        figure=value,
        advice="Look at how labels are read, and at the order of the data: shuffle it",
    )


def _is_of(label: Tensor, output: Tensor) -> bool:
    """True for one label per output, or the number of a class per row of outputs."""
    if output.numel() == label.numel():
        return True
    if label.is_floating_point():
        return False
    return label.shape in (output.shape[:-1], output.shape[:1] + output.shape[2:])


def _is_constant(labels: Tensor) -> bool:
    return bool((labels == labels.flatten()[0]).all())


def _only_filled(before: LossAt, label: Tensor) -> Answer | None:
    """A fault if the loss counts only places whose labels are one value, and other places not."""
    if label.dim() < 2 or len(before.gradients) != 1:
        return None
    counted = _counted(before.gradients[0], label)
    if counted is None:
        return None
    own = label[counted]
    others = label[~counted]
    if len(own) < _LEAST_VALUES or len(others) < _LEAST_VALUES:
        return None
    is_filled = bool((own == own[0]).all())
    known = others[others >= 0] if not others.is_floating_point() else others
    if not is_filled or len(torch.unique(known)) < 3 or bool((known == own[0]).any()):
        return None
    return fault(
        f"the loss counts only places whose label is {float(own[0]):g}, and none of the others",
        figure=float(own[0]),
        advice="Look at the mask of the loss: it is inverted",
    )


def _one_class(setup: Setup, before: LossAt, label: Tensor) -> Answer | None:
    """A fault if a loss of classes counts only places of one of them, and ignores the others."""
    labels = setup.labels()
    if label.dim() < 2 or label.is_floating_point() or len(before.gradients) != 1:
        return None
    gradient = before.gradients[0]
    counted = None if gradient.shape == label.shape else _counted(gradient, label)
    if counted is None or labels is None or len(labels) < _LEAST_VALUES:
        return None
    own = torch.unique(label[counted])
    ignored = torch.unique(label[~counted & (label >= 0)])
    known = torch.cat([own, ignored])
    if len(own) != 1 or not len(ignored) or not bool(torch.isin(labels[labels >= 0], known).all()):
        return None
    rows = gradient if gradient.shape[:-1] == label.shape else gradient.movedim(1, -1)
    of_classes = rows[counted]  # [places, C]
    if int(own) >= of_classes.shape[1] or not bool((of_classes[:, int(own)] < 0).all()):
        return None  # a mask, not the numbers of classes
    named = ", ".join(map(str, ignored.tolist()[:4]))
    return fault(
        f"the loss counts only places whose label is {int(own)}, and none whose label is {named}",
        figure=float(own),
        advice="Look at ignore_index, and at the numbers of the classes: divide masks of 0 and "
        "255 by 255",
    )


def _counted(gradient: Tensor, label: Tensor) -> Tensor | None:
    """The places of a label at whose outputs there is a gradient; None if it has no such places."""
    if gradient.shape == label.shape:
        return gradient != 0
    if gradient.shape[:-1] == label.shape:
        return gradient.any(-1)
    if gradient.shape[:1] + gradient.shape[2:] == label.shape:
        return gradient.any(1)
    return None


def _others(label: Tensor) -> Tensor:
    """Other labels than these: numbers moved by a deviation, classes exchanged for others."""
    if label.is_floating_point():
        values = label[torch.isfinite(label)]
        if values.numel() and bool(((values == 0) | (values == 1)).all()):
            return torch.where(torch.isfinite(label), 1 - label, label)
        deviation = values.std() if values.numel() > 1 else label.new_tensor(1.0)
        return label + (deviation if float(deviation) > 0 else 1.0)
    if label.dtype is torch.bool:
        return ~label
    known = torch.unique(label[label >= 0])
    if len(known) < 2:
        return torch.where(label > 0, label - 1, torch.where(label == 0, 1, label))
    places = torch.searchsorted(known, label.clamp(min=int(known[0])))
    other = known[(places + 1) % len(known)]
    return torch.where(label >= 0, other, label)


def _is_masked(setup: Setup, loss: Loss, before: LossAt, label: Tensor, size: int) -> bool:
    """True if another tensor of the batch, such as a mask or lengths, says which places count."""
    for tensor in tensors(setup.step_batch):
        if tensor is label or not tensor.dim() or len(tensor) != size:
            continue
        changed = other_samples(tensor)
        if torch.equal(changed, tensor):
            continue
        after = loss.at({id(tensor): changed})
        if after is None:
            return True
        for old, new in zip(before.gradients, after.gradients, strict=True):
            if not torch.equal(old == 0, new == 0):
                return True
    return False


def _unordered(loss: Loss, before: LossAt, label: Tensor, size: int) -> Answer | None:
    """A fault if all outputs are pulled alike, whichever label belongs to which."""
    turned = label.flip(0)
    after = loss.at({id(label): turned})
    if torch.equal(turned, label) or after is None or not before.is_same(after):
        return None
    if not _pulls_all_alike(before, size):
        return None
    level = [out.median() for out in loss.outputs if out.shape == label.shape]
    if level and label.is_floating_point():
        among = label - label.median() + level[0]  # a distance pulls outputs below all labels alike
        nearer = loss.at({id(label): among})
        if nearer is None or not _pulls_all_alike(nearer, size):
            return None
    return fault(
        "it makes no difference to the loss which label belongs to which image: averages over the "
        "batch are compared",
        figure=0.0,
        advice="Compare each output with its own label first, and average then",
    )


def _pulls_all_alike(at: LossAt, size: int) -> bool:
    """True if the gradient is the same at the outputs of all images."""
    gradients = [g for g in at.gradients if len(g) == size and bool(g.any())]
    for gradient in gradients:
        scale = gradient.abs().max()
        if bool(((gradient - gradient[:1]).abs() > 1e-5 * scale).any()):
            return False
    return bool(gradients)


def _ignored_images(loss: Loss, before: LossAt, label: Tensor, size: int) -> Answer | None:
    """A fault if outputs of some images have no part in the loss."""
    resting = _resting(before, size)
    if resting is None or not bool(resting.any()) or bool(resting.all()):
        return None
    negative = {id(output): -output for output in loss.outputs}
    turned = loss.at({}, negative)  # where a margin is kept, it is not any more
    again = None if turned is None else _resting(turned, size)
    if again is None or not torch.equal(again, resting):
        return None
    count = int(resting.sum())
    if label.dim() == 1 and not label.is_floating_point():
        own = set(label[resting].tolist())
        others = set(label[~resting].tolist())
        if any(value < 0 for value in own):
            return None
        if not own & others:
            named = ", ".join(map(str, sorted(own)[:4]))
            classes = loss.outputs[0].shape[1] if loss.outputs[0].dim() == 2 else 0
            if classes < 2 or max(own) >= classes:
                return None
            return fault(
                f"the loss ignores all {count} images of class {named}",
                figure=count / size,
                advice="Look at ignore_index and at the weights of classes",
            )
    counted = label[~resting]
    changed = label.clone()
    changed[resting] = counted[torch.arange(count, device=label.device) % len(counted)]
    after = loss.at({id(label): changed})
    if after is None or not before.is_same(after):
        return None
    return fault(
        f"the labels of {count} of {size} images make no difference to the loss, nor do their "
        "outputs",
        figure=count / size,
        advice="Look for an index or a slice of the batch in the loss, such as output[0]",
    )


def _resting(at: LossAt, size: int) -> Tensor | None:
    """Which samples have no gradient at any output: bool [N]."""
    resting: Tensor | None = None
    for gradient in at.gradients:
        if len(gradient) != size:
            return None
        own = (gradient.reshape(size, -1) == 0).all(1)
        resting = own if resting is None else resting & own
    return resting


def _parts(label: Tensor) -> Iterator[tuple[str, Tensor]]:
    """Columns, time steps or quarters of labels, with other values in them."""
    others = _others(label)
    if label.dim() == 2 and 1 < label.shape[1] <= _MOST_COLUMNS:
        for number in range(label.shape[1]):
            changed = label.clone()
            changed[:, number] = others[:, number]
            yield f"column {number}", changed
    if label.dim() >= 3 and min(label.shape[-2:]) >= 8:
        rows, columns = label.shape[-2:]
        for vertical in (0, 1):
            for horizontal in (0, 1):
                down = slice(rows // 2, None) if vertical else slice(0, rows // 2)
                right = slice(columns // 2, None) if horizontal else slice(0, columns // 2)
                changed = label.clone()
                changed[..., down, right] = others[..., down, right]
                place = f"{('upper', 'lower')[vertical]} {('left', 'right')[horizontal]}"
                yield f"the {place} quarter", changed
