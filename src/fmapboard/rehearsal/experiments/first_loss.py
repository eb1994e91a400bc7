"""Whether the first loss fits the labels."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from fmapboard.formats.training_facts import LossKind
from fmapboard.gradients.loss import Reading, read
from fmapboard.health import thresholds
from fmapboard.rehearsal.experiment import Answer, Experiment, fault, fine, not_judged
from fmapboard.rehearsal.experiments.one_batch_is_learnt import lowest
from fmapboard.rehearsal.pairing import last_activation, out_of_reach, turned_loss, unpaired
from fmapboard.rehearsal.setup import Setup, entropy, log_classes
from fmapboard.rehearsal.tried import normalized

_MOST_ROWS = 512

_WRONG_LOSSES = {
    LossKind.SOFTMAX_TWICE: (
        "the network ends in a softmax, and the loss applies another one",
        "Leave out the softmax at the end of the network, or use NLL of its logarithm",
    ),
    LossKind.NLL_OF_LOGITS: (
        "the loss expects logarithms of probabilities, and gets other numbers",
        "Use cross-entropy, or apply log_softmax first",
    ),
    LossKind.NLL_OF_PROBABILITIES: (
        "the loss expects logarithms of probabilities, and gets probabilities",
        "Use log_softmax in place of softmax",
    ),
    LossKind.BEYOND_1: (
        "binary cross-entropy has labels above 1",
        "Divide masks of 0 and 255 by 255; use cross-entropy for numbers of classes",
    ),
    LossKind.BELOW_0: (
        "binary cross-entropy has labels of -1 and 1",
        "Use labels of 0 and 1",
    ),
}


@dataclass(frozen=True, slots=True)
class FirstLoss(Experiment):
    """The first loss beside that of an uninformed guess, from the distribution of the labels.

    It costs one pass, and 20 steps if the loss is high.

    The loss and its labels are read from the gradient at the output. A fault: a softmax before
    cross-entropy, NLL of logits or of probabilities, a divergence of numbers that are no
    logarithms, a softmax or cross-entropy over classes beside several labels per image, labels
    above 1 in binary cross-entropy, a loss whose sign is turned; labels that are not paired with
    outputs, as where [N, 1] and [N] are broadcast to [N, N], or logits [N, C, H, W] are reshaped to
    [-1, C]; targets outside of the values of the last activation; other labels than those of the
    batch; a cross-entropy far above guessing, which 20 steps do not bring below it.

    Not judged: losses of which no guess is known.

    Attributes:
        factor: of the loss of guessing.
        outright: the same, from which it makes no difference whether steps bring it down. A
            cosine head, whose scale makes the outputs large on purpose, stays below.
        falls: the loss as a share of the first one or of guessing, below which steps bring it down.
    """

    factor: float = thresholds.INITIAL_LOSS.value
    outright: float = 30.0
    falls: float = 0.9
    kind: ClassVar[str] = "first_loss"
    question: ClassVar[str] = "Does the first loss fit?"
    bound: ClassVar[str] = "about that of guessing"

    def run(self, setup: Setup) -> Answer:
        """See `Experiment.run`."""
        copy = setup.make_copy()
        seen = setup.forward(copy, setup.batch, gradients=True, needs_loss=True)
        loss = seen.loss
        if loss is None or not loss.requires_grad or not bool(torch.isfinite(loss)):
            return not_judged("there is no finite loss with a gradient")
        wrong = unpaired(setup, copy, seen) or turned_loss(setup)
        if wrong is not None:
            return wrong
        output = seen.outputs[0] if seen.outputs else None
        value = float(loss.detach())
        if output is None or not output.requires_grad:
            return not_judged("the loss is not computed from one output", value)
        wrong = _by_value(setup, output, value)
        if wrong is not None:
            return wrong
        gradient = torch.autograd.grad(loss, output, allow_unused=True)[0]
        if gradient is None:
            return not_judged("the loss is not computed from the first output", value)
        wrong = out_of_reach(setup.batch, output, gradient)
        if wrong is not None:
            return wrong
        reading = _read(output.detach(), gradient.detach())
        if reading.kind in _WRONG_LOSSES:
            text, advice = _WRONG_LOSSES[reading.kind]
            return fault(text, figure=value, advice=advice)
        if reading.is_climbed and reading.losses is not None:
            return fault(
                f"the sign of the loss is turned: training makes the {reading.kind} larger",
                figure=value,
                advice="Turn the sign of the loss, or set maximize=False",
            )
        return self._by_labels(setup, output, reading, value)

    def _by_labels(self, setup: Setup, output: Tensor, reading: Reading, loss: float) -> Answer:
        mismatch = _other_labels(setup, output, reading) or _maximized(setup, reading)
        if mismatch is not None:
            return mismatch
        if reading.losses is not None:
            first = float(reading.losses.mean())
        elif _is_cross_entropy(setup, output, loss):
            first = loss
        else:
            return not_judged(
                f"the loss, {loss:.3g}, is of no kind of which a guess is known", loss
            )
        count = output.shape[_axis_of_classes(output)] if output.dim() > 1 else 1
        is_binary = reading.kind.startswith("BCE") or count < 2
        guess = log_classes(2 if is_binary else count)
        text = f"{first:.3g}, where guessing among {count} classes has {guess:.3g}"
        classes = setup.classes()
        if classes is not None and reading.labels is not None:
            text += f" and guessing by their shares {entropy(classes):.3g}"
        if first < self._most(guess):
            return fine(text, first)
        return self._high(setup, output, first, guess, text)

    def _most(self, guess: float) -> float:
        """The first loss up to which it is about that of guessing."""
        return max(self.factor * guess, guess + 1)

    def _high(self, setup: Setup, output: Tensor, first: float, guess: float, text: str) -> Answer:
        """The answer about a first loss far above guessing."""
        most = self._most(guess)
        losses = setup.trained(1.0, 20, seconds=setup.remaining() / 4).losses
        share = lowest(losses) / losses[0]
        if share * first < self.falls * guess:  # where all units die, it falls to guessing
            return fine(f"{text}; it falls below that in the first {len(losses)} steps", first)
        scaled = self._scaled(setup)
        if scaled < most:
            return fault(
                f"{text}; with normalized inputs it is {scaled:.3g}",
                figure=first,
                advice="Shift and scale the inputs to a mean near 0 and a deviation near 1",
            )
        rescaled = self._rescaled(setup, output)
        if rescaled < most:
            return fault(
                f"{text}; with smaller weights in the last layer it is {rescaled:.3g}",
                figure=first,
                advice="Scale the inputs; initialize the last layer, and an embedding that shares "
                "its weights, with a standard deviation near 0.02",
            )
        if first < self.outright * guess and share < self.falls:
            return fine(f"{text}; it falls in the first {len(losses)} steps", first)
        return fault(
            text,
            figure=first,
            advice="Outputs are too large at the start: make the initial weights of the last "
            "layer smaller, and scale the images",
        )

    def _scaled(self, setup: Setup) -> float:
        """The first loss with normalized inputs."""
        batch = normalized(setup, setup.batch)
        if batch is None:
            return inf
        loss = setup.forward(setup.make_copy(), batch, needs_loss=True).loss
        return inf if loss is None else float(loss)

    def _rescaled(self, setup: Setup, output: Tensor) -> float:
        """The first loss with weights of the last layer that make outputs vary by 1."""
        copy = setup.make_copy()
        calls = setup.forward(copy, setup.batch).calls
        weights = [getattr(call.module, "weight", None) for call in calls]
        matrices = [w for w in weights if isinstance(w, Tensor) and w.dim() > 1]
        if not matrices:
            return inf
        with torch.no_grad():
            matrices[-1].div_(output.detach().std().clamp(min=1.0))
        loss = setup.forward(copy, setup.batch, needs_loss=True).loss
        return inf if loss is None else float(loss)


def _by_value(setup: Setup, returned: Tensor, loss: float) -> Answer | None:
    """A fault if the loss has the value of one that does not fit the output."""
    output = returned.detach()
    label = setup.task.parts(setup.batch).label
    if not isinstance(label, Tensor) or label.is_complex() or output.dim() > 2:
        return None
    if label.is_floating_point():
        return _of_shares(output, label, loss) or _binary(returned, label, loss)
    if output.dim() < 2 or label.shape != output.shape[:1] or output.shape[1] < 2:
        return None
    labels = label.long()
    if int(labels.min()) < 0 or int(labels.max()) >= output.shape[1]:
        return None
    return _of_classes(returned, labels, loss)


def _of_classes(returned: Tensor, labels: Tensor, loss: float) -> Answer | None:
    """A fault if a loss of logits is that of other numbers.

    Args:
        returned: by the network [N, C].
        labels: numbers of classes [N].
        loss: its value.
    """
    output = returned.detach()
    are_shares = bool((output >= 0).all()) and _all_one(output.sum(1))
    kind = ""
    if _is_close(functional.cross_entropy(output, labels), loss):
        last = last_activation(returned)
        if are_shares:
            kind = LossKind.SOFTMAX_TWICE
        elif last is not None:
            return fault(
                f"the network ends in {last.name}, in front of cross-entropy",
                figure=loss,
                advice="Leave it out: cross-entropy takes numbers of any size and sign",
            )
    elif _is_close(functional.nll_loss(output, labels), loss):
        if are_shares:
            kind = LossKind.NLL_OF_PROBABILITIES
        elif float(output.logsumexp(1).abs().mean()) > 0.01:
            kind = LossKind.NLL_OF_LOGITS
    elif len(output) != output.shape[1] and _is_close(
        functional.nll_loss(output.log_softmax(0), labels), loss
    ):
        return fault(
            "the loss applies a softmax over the images of the batch, and not over the classes",
            figure=loss,
            advice="Use dim=1 for outputs [N, classes], or cross-entropy, which needs no axis",
        )
    if not kind:
        return None
    text, advice = _WRONG_LOSSES[kind]
    return fault(text, figure=loss, advice=advice)


def _is_cross_entropy(setup: Setup, output: Tensor, loss: float) -> bool:
    """True if the loss is the cross-entropy of the output with the labels of the batch."""
    label = setup.task.parts(setup.batch).label
    if not isinstance(label, Tensor) or label.is_floating_point():
        return False
    if output.dim() != 2 or label.shape != output.shape[:1] or output.shape[1] < 2:
        return False
    if int(label.min()) < 0 or int(label.max()) >= output.shape[1]:
        return False
    return _is_close(functional.cross_entropy(output.detach(), label.long()), loss)


def _binary(returned: Tensor, label: Tensor, loss: float) -> Answer | None:
    """A fault if a sigmoid was applied to probabilities."""
    activation = last_activation(returned)
    if activation is None or activation.highest != 1 or activation.lowest < 0:
        return None  # numbers that are within 0 to 1 by chance
    output = returned.detach()
    if output.numel() != label.numel() or float(output.min()) < 0 or float(output.max()) > 1:
        return None
    if float(label.min()) < 0 or float(label.max()) > 1 or output.numel() < 8:
        return None
    of_logits = functional.binary_cross_entropy_with_logits(output.reshape(label.shape), label)
    if not _is_close(of_logits, loss):
        return None
    return fault(
        "the outputs are probabilities, and the loss applies a sigmoid to them",
        figure=loss,
        advice="Leave out the sigmoid at the end of the network, or use BCELoss",
    )


def _of_shares(output: Tensor, label: Tensor, loss: float) -> Answer | None:
    """A fault if outputs that sum to 1 are compared with labels that do not, or no logarithms."""
    if output.dim() != 2 or output.shape != label.shape or output.shape[1] < 3:
        return None
    several = bool(((label == 0) | (label == 1)).all()) and not _all_one(label.sum(1))
    if several and bool((output >= 0).all()) and _all_one(output.sum(1)):
        of_shares = functional.binary_cross_entropy(output.clamp(0, 1), label)
        if _is_close(of_shares, loss):
            return fault(
                "the network ends in a softmax, whose outputs sum to 1, and labels of binary "
                f"cross-entropy sum to {float(label.sum(1).min()):g} to "
                f"{float(label.sum(1).max()):g}",
                figure=loss,
                advice="Use a sigmoid in place of the softmax",
            )
    if several and _is_close(functional.cross_entropy(output, label), loss):
        return fault(
            "cross-entropy over classes is given several labels per image, or none",
            figure=loss,
            advice="Use binary cross-entropy, one per label",
        )
    if _all_one(output.exp().sum(1)) or not bool((label >= 0).all()):
        return None
    total = functional.kl_div(output, label, reduction="sum")
    for count in (output.numel(), len(output), 1):
        if _is_close(total / count, loss):
            return fault(
                "the divergence expects logarithms of probabilities, and gets other numbers",
                figure=loss,
                advice="Apply log_softmax to the outputs first",
            )
    return None


def _is_one_hot(label: Tensor) -> bool:
    return bool(((label == 0) | (label == 1)).all() and (label.sum(1) == 1).all())


def _all_one(sums: Tensor) -> bool:
    return torch.allclose(sums, torch.ones_like(sums), atol=1e-3)


def _is_close(found: Tensor, loss: float) -> bool:
    return abs(float(found) - loss) <= 1e-5 * max(abs(loss), 1e-3)


def _read(output: Tensor, gradient: Tensor) -> Reading:
    """The loss of rows, read from their gradient."""
    if output.dim() > 2:
        axis = _axis_of_classes(output)
        output = output.movedim(axis, -1).flatten(0, -2)
        gradient = gradient.movedim(axis, -1).flatten(0, -2)
    elif output.dim() == 1:
        output = output[:, None]
        gradient = gradient[:, None]
    output = output[:_MOST_ROWS].cpu()
    gradient = gradient[:_MOST_ROWS].cpu()
    if not bool(torch.isfinite(output).all()):
        return Reading()
    return read(output, gradient)


def _axis_of_classes(output: Tensor) -> int:
    is_last = output.dim() == 3 and output.shape[-1] > output.shape[1]
    return output.dim() - 1 if is_last else 1


def _maximized(setup: Setup, reading: Reading) -> Answer | None:
    """A fault if the optimizer makes a loss larger that is to become smaller."""
    groups = setup.make_copy().optimizer.param_groups
    if reading.losses is None or not all(group.get("maximize", False) for group in groups):
        return None
    return fault(
        f"the optimizer has maximize=True: it makes the {reading.kind} larger",
        figure=float(reading.losses.mean()),
        advice="Leave out maximize=True",
    )


def _other_labels(setup: Setup, output: Tensor, reading: Reading) -> Answer | None:
    """A fault if the loss has used other labels than those of the batch, in no fixed relation."""
    given = setup.task.parts(setup.batch).label
    labels = reading.labels
    if labels is None or not isinstance(given, Tensor) or output.dim() != 2:
        return None
    if given.shape == output.shape and _is_one_hot(given):
        given = given.argmax(1)
    if given.is_floating_point():
        return None
    if given.dim() != 1 or len(given) != len(output):
        return None
    own = given.cpu()[torch.as_tensor(reading.rows)].tolist()
    relation: dict[int, set[int]] = {}
    for label, used in zip(own, labels.tolist(), strict=True):
        relation.setdefault(int(label), set()).add(int(used))
    wrong = [label for label, used in relation.items() if len(used) > 1]
    if not wrong or len(own) < 8:
        return None
    different = sum(label != used for label, used in zip(own, labels.tolist(), strict=True))
    return fault(
        f"the loss has used other labels than the batch holds for {different} of {len(own)} images",
        figure=different / len(own),
        advice="Look at what reorders images or labels between the loader and the loss",
    )
