"""Whether the network computes the same in training and in eval mode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from fmapboard.health import thresholds
from fmapboard.model.modes import eval_modules
from fmapboard.rehearsal.experiment import Answer, Experiment, fault, fine, not_judged
from fmapboard.rehearsal.function_calls import FunctionCall, function_calls
from fmapboard.rehearsal.setup import Pass, Setup


@dataclass(frozen=True, slots=True)
class TrainAndEval(Experiment):
    """The same images in training and in eval mode, with the first layer that computes otherwise.

    It costs five passes.

    A fault: the network is in eval mode as a whole, so dropout and BatchNorm do not train; dropout
    that is on in eval mode, or leaves hardly anything; BatchNorm whose running statistics never
    change, or are those of the last batch alone; layers that normalize with the statistics that
    they began with, such as ``FrozenBatchNorm2d`` without weights.

    That dropout and BatchNorm differ between the modes is what they are for.
    """

    kind: ClassVar[str] = "train_and_eval"
    question: ClassVar[str] = "Is train equal to eval?"
    bound: ClassVar[str] = "but for dropout and BatchNorm"

    def run(self, setup: Setup) -> Answer:
        """See `Experiment.run`."""
        copy = setup.make_copy()
        names = eval_modules(copy.model)
        if names:
            return fault(
                f"the network is in eval mode: {names[0]} and {len(names) - 1} more do not train"
                if len(names) > 1
                else f"the network is in eval mode: {names[0]} does not train",
                figure=len(names),
                layer=names[0],
                advice="Call model.train() before each epoch, also after a validation",
            )
        wrong = _wrong_settings(copy.model)
        if wrong is not None:
            return wrong
        batch = setup.few(16)
        training = setup.forward(copy, batch)
        wrong = _without_statistics(training)
        if wrong is not None:
            return wrong
        evaluating = setup.forward(setup.make_copy(), batch, training=False)
        if not training.outputs or not evaluating.outputs:
            return not_judged("the network returns no tensor in one of the modes")
        output = training.outputs[0].double()
        other = evaluating.outputs[0].double()
        if output.shape != other.shape:
            return not_judged(
                f"it returns {list(output.shape)} in training and {list(other.shape)} in eval mode"
            )
        random = _dropout_in_eval(setup, batch)
        if random is not None:
            return random
        difference = float((output - other).abs().mean() / other.abs().mean().clamp(min=1e-12))
        place = _first_difference(training, evaluating)
        if not place:
            return fine("both modes compute the same", 0.0)
        return fine(f"they differ by {difference:.2g}, first in {place}", difference)


def _dropout_in_eval(setup: Setup, batch: Any) -> Answer | None:
    """A fault if the same images have other outputs in eval mode, because of dropout."""
    first, second = (
        setup.forward(setup.make_copy(), batch, training=False, seed=seed) for seed in (0, 1)
    )
    place = _first_difference(first, second)
    if not place:
        return None
    found = function_calls(setup, batch, _DROPOUTS, _dropped)
    if not found:
        return None
    share = max(found)
    return fault(
        f"dropout is on in eval mode: it drops {share:.0%} in {place}",
        figure=share,
        advice="Pass training=self.training to functional.dropout, and to "
        "scaled_dot_product_attention a dropout_p of 0 in eval mode",
    )


def _dropped(call: FunctionCall) -> float | None:
    """The share that a function of dropout drops; None if it drops nothing."""
    if call.name == "scaled_dot_product_attention":
        share = float(call.argument("dropout_p", 4, 0.0))
    elif call.argument("training", 2, True):
        share = float(call.argument("p", 1, 0.5))
    else:
        share = 0.0
    return share or None


_DROPOUTS = ("dropout", "dropout1d", "dropout2d", "dropout3d", "scaled_dot_product_attention")


def _wrong_settings(model: nn.Module) -> Answer | None:
    """A fault of dropout or BatchNorm that can be read from their settings."""
    high = []
    for name, module in model.named_modules():
        if not isinstance(module, nn.modules.dropout._DropoutNd) or not module.training:
            continue
        if module.p >= thresholds.DROPOUT.value:
            high.append((name, module.p))
    least = thresholds.DROPOUT_SINGLE.value if len(high) == 1 else thresholds.DROPOUT.value
    if high and max(p for _, p in high) >= least:
        name, p = high[0]
        return fault(
            f"{name} drops {p:.0%} of what it gets",
            figure=p,
            layer=name,
            advice="The argument of Dropout is the share that is dropped, not the share kept",
        )
    for name, module in model.named_modules():
        if not isinstance(module, nn.modules.batchnorm._BatchNorm) or module.momentum is None:
            continue
        if not module.track_running_stats or not module.training:
            continue
        if module.momentum == 0 or module.momentum >= 0.95:
            return fault(
                f"momentum of {name} is {module.momentum}: its running statistics "
                + ("never change" if module.momentum == 0 else "are those of the last batch"),
                figure=module.momentum,
                layer=name,
                advice="In torch, momentum is the weight of a new batch: usually 0.1",
            )
    return None


def _without_statistics(training: Pass) -> Answer | None:
    """A fault if layers normalize with the mean of 0 and variance of 1 that they began with."""
    found = []
    for call in training.calls:
        mean = getattr(call.module, "running_mean", None)
        variance = getattr(call.module, "running_var", None)
        if not isinstance(mean, Tensor) or not isinstance(variance, Tensor):
            continue
        if bool((mean == 0).all()) and bool((variance == 1).all()):
            found.append(call)
    if not found:
        return None
    first = found[0]
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return fault(
        f"{first.name} ({first.kind}){more} normalizes with a mean of 0 and a variance of 1, which "
        "it began with and which no pass changes",
        figure=len(found),
        layer=first.name,
        advice="Load the statistics of a trained network, or use BatchNorm in training mode",
    )


def _first_difference(training: Pass, evaluating: Pass) -> str:
    """The first layer whose output differs, in words; "" if none does."""
    for call, other in zip(training.calls, evaluating.calls, strict=False):
        for output, in_eval in zip(call.outputs, other.outputs, strict=False):
            if output.shape == in_eval.shape and torch.equal(output, in_eval):
                continue
            return f"{call.name or 'the network'} ({call.kind})"
    return ""
