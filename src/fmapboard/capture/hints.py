"""Warnings, once each, where a user would wonder why something is missing from a logged step."""

from __future__ import annotations

from collections.abc import Sequence

from fmapboard.capture.gradients import GradientReader
from fmapboard.capture.loss_scale import LossScale
from fmapboard.capture.pass_selection import Candidate, PassSelection
from fmapboard.errors import WarnOnce

_NAMED = 5
"""Parameters or layers that a message names."""


class Hints:
    """Compares what a logged step collected with what its user expects.

    Args:
        warn: where hints are reported.
        gradients, loss_scale, selection: those of the session.
    """

    def __init__(
        self,
        warn: WarnOnce,
        gradients: GradientReader,
        loss_scale: LossScale,
        selection: PassSelection,
    ) -> None:
        self._warn, self._gradients = warn, gradients
        self._loss_scale, self._selection = loss_scale, selection
        self._knows_optimizers = False

    def layers_gone(self, step: int, names: tuple[str, ...]) -> None:
        """Watched layers that are no part of the model any more."""
        if names:
            self._warn.warn(
                f"gone {names}",
                f"step {step}: no part of the model any more, and not logged from now on: "
                f"{_listed(names)}",
            )

    def nothing_ran(self, step: int) -> None:
        """No watched layer ran in the step."""
        if self._selection.gave_up:
            self._warn.warn(
                "in vain",
                f"step {step}: many forward passes ran without a backward pass, and those after "
                "them were not recorded; run them under torch.no_grad()",
            )
            return
        self._warn.warn(
            "nothing ran",
            f"step {step}: no watched layer ran in a training pass; was the model itself called "
            "(no scripted or traced copy of it), with gradients enabled, and in the thread that "
            "trains?",
        )

    def no_optimizer_step(self, step: int) -> None:
        """Layers ran, and no optimizer stepped on the model's parameters."""
        if self._loss_scale.was_skipped() or self._gradients.skipped:
            return
        self._warn.warn(
            "no optimizer step",
            f"step {step}: no optimizer stepped on the model's parameters inside the "
            "window, so there are no gradient norms; put optimizer.step() inside board.step()",
        )

    def stepped_too_early(self, step: int) -> None:
        """An optimizer stepped in the window before its forward pass."""
        self._warn.warn(
            "steps last",
            f"step {step}: an optimizer stepped on the model's parameters after the one "
            "that was given; give optimizer= the one that steps last, or mark steps with "
            "board.step(i): norms are of what steps inside the window",
        )

    def of_optimizers(self, step: int) -> None:
        """An optimizer stepped: name, once, the parameters that none holds."""
        if self._knows_optimizers:
            return
        self._knows_optimizers = True
        missing = self._gradients.unoptimized()
        if missing:
            self._warn.warn(
                "no optimizer",
                f"step {step}: trainable parameters that are in no optimizer and stay as they are: "
                f"{_listed(missing)}; give them to one, or set "
                "requires_grad=False where that is meant",
            )

    def of_pass(self, step: int, chosen: Candidate) -> None:
        """An optimizer stepped, and this is the pass that was recorded."""
        if not chosen.is_used and chosen.graph is not None:
            self._warn.warn(
                "no contribution",
                f"step {step}: the recorded forward pass contributed nothing to the gradients that "
                "the optimizer used: no backward pass went through it",
            )
        elif chosen.is_used and chosen.in_eval_mode:
            self._warn.warn(
                "eval mode",
                f"step {step}: the model was in eval mode in a step that trains it; call "
                "model.train() unless that is meant",
            )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"
