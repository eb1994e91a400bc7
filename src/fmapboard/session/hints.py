"""Why something is missing from a logged step, a file of its own for its texts, logged once."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from fmapboard.capture.side_pass import NOT_NEUTRAL
from fmapboard.errors import WarnOnce
from fmapboard.gradients.loss_scale import LossScale
from fmapboard.gradients.optimizers import holding
from fmapboard.gradients.reader import GradientReader
from fmapboard.model.tensors import Unread
from fmapboard.session.open_step import OpenStep
from fmapboard.session.selection import PassSelection

_MAX_NAMED = 5
"""How many parameters or layers a message lists."""

_UNREAD: dict[Unread, tuple[str, str]] = {
    "sparse": ("sparse tensors", "return dense ones (Tensor.to_dense)"),
    "nested": ("nested tensors", "return padded ones (torch.nested.to_padded_tensor)"),
}
"""Kinds of outputs that are not logged, and how to make them such that they are."""

_FROZEN = "all parameters of the model are frozen (requires_grad=False)"


class Hints:
    """Compares what a logged step collected with what the user expects.

    Args:
        warn: where warnings are reported.
        gradients: the session's reader of gradients.
        loss_scale: the session's tracker of the GradScaler.
        selection: the session's choice of the forward pass.
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
        self._trains_input = False

    def explain(
        self,
        opened: OpenStep,
        *,
        has_failed: bool,
        missing: str | None = None,
        unseen: bool = False,
    ) -> None:
        """Warn about anything missing or unexpected in a logged step that closes.

        Args:
            opened: the step.
            has_failed: errors were reported, which may be the reason why nothing was collected.
            missing: says that a pattern in ``layers=`` matched neither a layer nor a tapped tensor.
            unseen: no call of the model or a part of it was seen, in a process that compiles.
        """
        if missing is not None:
            self._warn.warn("taps", f"step {opened.step}: {missing}")
        is_named = has_failed or missing is not None
        for why in _UNREAD:
            names = [name for name, reason in opened.live.unread.items() if reason == why]
            if names:
                is_named = True
                self.unread(opened.step, names, why)
        if not opened.live.pending:
            if unseen and self._gradients.stepped:
                self.ran_compiled(opened.step)
            elif not is_named:
                self.nothing_ran(opened.step, is_empty="empty" in opened.live.unread.values())
        elif opened.passes != "evaluation":
            if self._selection.passes.input_learns:
                return
            if not self._gradients.stepped:
                self.no_optimizer_step(opened.step, is_counted=opened.passes == "training")
                return
            self._selection.finds_input = False
            chosen = self._selection.chosen
            if chosen is not None and not chosen.is_used and chosen.graph is not None:
                self.no_contribution(opened.step)

    def ran_compiled(self, step: int) -> None:
        """Warn that the model trains, but that no call of it was seen."""
        self._warn.warn(
            "unseen",
            f"step {step}: no forward pass of the model was seen, as inside code that "
            "torch.compile made, so no feature maps are logged; pass the compiled model, as in "
            f'fmapboard.watch(torch.compile(model)), or compiled="eager" ({NOT_NEUTRAL})',
        )

    def compiled_later(self, step: int) -> None:
        """Warn that ``model.compile()`` was called while the step was open."""
        self._warn.warn(
            "compiled later",
            f"step {step}: model.compile() was called after fmapboard.watch(), so feature maps are "
            "logged from the next due step on; call it before watch()",
        )

    def no_gradients_of_maps(self) -> None:
        """Warn that a compiled model's pass is recorded without gradients."""
        self._warn.warn(
            "compiled gradients",
            "the model is compiled, so activation_gradients= and attribution= log nothing; "
            f'with compiled="eager" they do, but {NOT_NEUTRAL}',
        )

    def not_neutral(self) -> None:
        """Warn about the option ``compiled="eager"``."""
        self._warn.warn(
            "eager",
            'compiled="eager": logged steps run uncompiled, so training is not bitwise the same as '
            "without fmapboard; without this option it is",
        )

    def layers_gone(self, step: int, names: tuple[str, ...]) -> None:
        """Warn about watched layers that are no longer part of the model, if there are any."""
        if names:
            self._warn.warn(
                f"gone {names}",
                f"step {step}: these layers are no longer part of the model and are not logged "
                f"any more: {_listed(names)}",
            )

    def unread(self, step: int, names: Sequence[str], why: Unread) -> None:
        """Warn that the outputs of layers are of a kind that is not logged."""
        kind, fix = _UNREAD[why]
        self._warn.warn(
            f"unread {why}",
            f"step {step}: these layers return {kind}, which are not logged: {_listed(names)}; "
            f"to log them, {fix}",
        )

    def nothing_ran(self, step: int, *, is_empty: bool = False) -> None:
        """Warn that no watched layer ran in the step.

        Args:
            step: its number.
            is_empty: layers ran, and returned tensors without values.
        """
        if is_empty:
            self._warn.warn(
                "empty batch",
                f"step {step}: the model ran on an empty batch: its layers returned tensors "
                "without values, so there is nothing to log; leave out batches of 0 samples",
            )
            return
        if self._selection.gave_up:
            self._warn.warn(
                "in vain",
                f"step {step}: many forward passes ran without a backward pass, so later ones "
                "were not recorded; run passes that do not train under torch.no_grad()",
            )
            return
        text = (
            "call the model itself (not a scripted or traced copy), with gradients enabled, in the "
            "training thread"
        )
        passes = self._selection.passes
        if passes.were_transformed:
            text = (
                "it ran only inside a transformation of torch.func (vmap, grad), where tensors "
                "have no values yet; to see its layers, also call the model itself on the batch"
            )
        elif _is_on_meta_device(self._selection.model):
            text = (
                "its parameters are on the meta device, which holds no values; give them memory "
                "with model.to_empty(device=...) and initialize or load them"
            )
        elif not passes.has_trainable():
            text = (
                f"{_FROZEN}, and in eval mode only passes whose input requires a gradient count; "
                "to log any other pass, put it into a block: with board.step(i):"
                if passes.is_frozen
                else f"{_FROZEN} since fmapboard.watch() was called; freeze them before that call"
            )
        elif passes.disabled_by is not None:
            text = (
                f"the model ran under {passes.disabled_by} alone, where nothing can be trained; to "
                "log such passes, put them into a block: with board.step(i):"
            )
        self._warn.warn(
            "nothing ran", f"step {step}: no watched layer ran in a training pass; {text}"
        )

    def no_optimizer_step(self, step: int, *, is_counted: bool) -> None:
        """Warn that no optimizer stepped, unless the GradScaler skipped the step.

        Args:
            step: its number.
            is_counted: an optimizer's step has ended the logged one.
        """
        if self._loss_scale.was_skipped() or self._gradients.skipped:
            return
        if not self._selection.passes.has_trainable():
            self._warn.warn("frozen", f"step {step}: {_FROZEN}, so there are no gradient norms")
            return
        if self._is_input_trained():
            self._warn.warn(
                "input learns",
                f"step {step}: an optimizer updates what the model receives, as in style transfer, "
                "and none updates the model; freeze it before fmapboard.watch(), so that no "
                "gradients of its parameters are computed: model.requires_grad_(False)",
            )
            return
        if (by := self._selection.passes.disabled_by) is not None:
            text = f"step {step}: the model ran under {by}, so there are no gradient norms"
            self._warn.warn("disabled", text)
            return
        if self._gradients.read_after_backward:  # the loop updates the parameters by itself
            return
        why = (
            "the one passed as optimizer= holds none of them. Pass the one that trains the model, "
            "created from model.parameters() after the model was copied or its layers replaced"
            if is_counted
            else "put optimizer.step() inside the board.step() block"
        )
        self._warn.warn(
            "no optimizer step",
            f"step {step}: no optimizer stepped on the model's parameters, so there are no "
            f"gradient norms; {why}",
        )

    def _is_input_trained(self) -> bool:
        """True if an optimizer holds what the model receives, and none a parameter of the model.

        Determined once, in the first step with an input that learns.
        """
        learned = self._selection.input
        if learned:
            self._selection.finds_input = False
            own = {id(p) for p in self._selection.model.parameters()}
            self._trains_input = bool(holding(learned.keys())) and not holding(own)
        return self._trains_input

    def stepped_too_early(self, step: int) -> None:
        """Warn that an optimizer stepped in the logged step before the forward pass."""
        self._warn.warn(
            "steps last",
            f"step {step}: an optimizer stepped on the model's parameters before the forward pass "
            "of the step; with optimizer=, pass the one that steps last; with board.step(i), put "
            "forward, backward and all optimizer steps inside the block, in this order",
        )

    def no_contribution(self, step: int) -> None:
        """Warn that the recorded pass did not contribute to the gradients of the step."""
        self._warn.warn(
            "no contribution",
            f"step {step}: the recorded forward pass contributed nothing to the gradients that "
            "the optimizer used; run forward, backward and optimizer.step() in the same step",
        )


def _is_on_meta_device(model: nn.Module) -> bool:
    devices = {parameter.device.type for parameter in model.parameters()}
    return devices == {"meta"}


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return f"{', '.join(names[:_MAX_NAMED])}{more}"
