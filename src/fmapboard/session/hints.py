"""``Hints``, a file of its own for texts: why something is missing from a logged step."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from fmapboard.capture.side_pass import NOT_NEUTRAL
from fmapboard.errors import WarnOnce
from fmapboard.gradients.loss_scale import LossScale
from fmapboard.gradients.optimizers import holding
from fmapboard.gradients.reader import GradientReader
from fmapboard.session.selection import PassKind, PassSelection, State
from fmapboard.session.step import OpenStep

_MAX_NAMED = 5
"""How many parameters or layers a message lists."""

_FROZEN = "all parameters of the model are frozen (requires_grad=False)"
_NOTHING_RAN = "step {step}: no watched layer ran in a training pass"
_NO_STEP = (
    "step {step}: no optimizer stepped on the model's parameters, so there are no gradient norms"
)
_MARK = "to log such passes, put them into a block: with board.step(i):"

_TEXTS = {
    "taps": "step {step}: {names}",
    "unseen": "step {step}: no forward pass of the model was seen, as inside code that "
    "torch.compile made, so no feature maps are logged; pass the compiled model, as in "
    f'fmapboard.watch(torch.compile(model)), or compiled="eager" ({NOT_NEUTRAL})',
    "compiled gradients": "the model is compiled, so activation_gradients= and attribution= log "
    f'nothing; with compiled="eager" they do, but {NOT_NEUTRAL}',
    "eager": 'compiled="eager": logged steps run uncompiled, so training is not bitwise the same '
    "as without fmapboard; without this option it is",
    "gone": "step {step}: these layers are no longer part of the model and are not logged any "
    "more: {names}; to log what replaced them, call fmapboard.watch() again",
    "unread sparse": "step {step}: these layers return sparse tensors, which are not logged: "
    "{names}; to log them, return dense ones (Tensor.to_dense)",
    "unread nested": "step {step}: these layers return nested tensors, which are not logged: "
    "{names}; to log them, return padded ones (torch.nested.to_padded_tensor)",
    "functions": "step {step}: not drawn: {names}, since only what modules return is; to draw "
    "it, name it in forward: y = fmapboard.tap('name', y)",
    "empty batch": "step {step}: the model ran on an empty batch: its layers returned tensors "
    "without values, so there is nothing to log; leave out batches of 0 samples",
    "nothing ran": f"{_NOTHING_RAN}; call the model itself (not a scripted or traced copy), with "
    "gradients enabled, in the training thread",
    "new thread": "step {step}: not logged, as it began in a thread in which torch had not yet set "
    "its number of threads; call torch.get_num_threads() at the beginning of the thread",
    "transformed": f"{_NOTHING_RAN}; it ran only inside a transformation of torch.func (vmap, "
    "grad), where tensors have no values yet; to see its layers, also call the model itself on "
    "the batch",
    "meta": f"{_NOTHING_RAN}; its parameters are on the meta device and have no values; call "
    "watch() once they have: after model.to_empty(device=...) or "
    "load_state_dict(..., assign=True)",
    "copied": f"{_NOTHING_RAN}; no optimizer holds its parameters, as when a deep copy of it is "
    "trained in its place; call the model itself, or pass the copy to fmapboard.watch()",
    "frozen in eval mode": f"{_NOTHING_RAN}; {_FROZEN}, and in eval mode only passes whose input "
    f"requires a gradient count; {_MARK}",
    "frozen later": f"{_NOTHING_RAN}; {_FROZEN} since fmapboard.watch() was called; freeze first",
    "nothing trained": f"{_NOTHING_RAN}; the model ran under {{disabled_by}} alone, where nothing "
    f"can be trained; {_MARK}",
    "in vain": "step {step}: many forward passes ran without a backward pass, so later ones were "
    "not recorded; run passes that do not train under torch.no_grad()",
    "frozen": f"step {{step}}: {_FROZEN}, so there are no gradient norms",
    "input learns": "step {step}: an optimizer updates what the model receives, as in style "
    "transfer, and none updates the model; freeze it before fmapboard.watch(), so that no "
    "gradients of its parameters are computed: model.requires_grad_(False)",
    "disabled": "step {step}: the model ran under {disabled_by}, so there are no gradient norms",
    "other optimizer": f"{_NO_STEP}; the one passed as optimizer= holds none of them. Pass the one "
    "that trains the model, created after the model was copied or its layers replaced",
    "copies": "step {step}: the optimizer holds float32 copies of the model's parameters (master "
    "weights), so gradient norms, update ratios and learning rates are not logged; to log the "
    "norms, leave out optimizer= and mark the steps: with board.step(i):",
    "no optimizer step": f"{_NO_STEP}; put optimizer.step() inside the board.step() block, or "
    "pass the GradScaler that skipped it as scaler= to fmapboard.watch()",
    "steps last": "step {step}: an optimizer stepped on the model's parameters before the forward "
    "pass of the step; with optimizer=, pass the one that steps last; with board.step(i), put "
    "forward, backward and all optimizer steps inside the block, in this order",
    "no contribution": "step {step}: the recorded forward pass contributed nothing to the "
    "gradients that the optimizer used; run forward, backward and optimizer.step() in one step",
}
"""Subject -> what is said about it."""


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
        self._warn = warn
        self._gradients = gradients
        self._loss_scale = loss_scale
        self._selection = selection
        self._trains_input = False
        self._held_by_none: bool | None = None  # not known yet

    def say(self, about: str, step: int = 0, names: Sequence[str] = ()) -> None:
        """Log one of `_TEXTS`, once; ``"gone"`` once for the same layers.

        Args:
            about: the subject.
            step: the logged step.
            names: what is listed.
        """
        more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
        listed = f"{', '.join(names[:_MAX_NAMED])}{more}"
        key = f"gone {names}" if about == "gone" else about
        by = self._selection.passes.disabled_by
        self._warn.warn(key, _TEXTS[about].format(step=step, names=listed, disabled_by=by))

    def explain(self, opened: OpenStep, *, is_named: bool, unseen: bool) -> None:
        """Warn about anything missing or unexpected in a logged step that closes.

        Args:
            opened: the step.
            is_named: something was reported that may be the reason why nothing was collected.
            unseen: no call of the model or a part of it was seen, in a process that compiles.
        """
        for why in ("sparse", "nested"):
            names = [name for name, reason in opened.live.unread.items() if reason == why]
            if names:
                is_named = True
                self.say(f"unread {why}", opened.step, names)
        functional = self._selection.functional_calls
        if functional is not None and functional.count:
            self.say("functions", opened.step, [str(functional)])
        if opened.live.pending:
            about = None if opened.passes == "evaluation" else self._of_training(opened)
        elif unseen and self._gradients.stepped:
            about = "unseen"
        else:
            about = None if is_named else self._of_nothing(opened)
        if about is not None:
            self.say(about, opened.step)

    def _of_nothing(self, opened: OpenStep) -> str:
        """What to say of a step in which no watched layer ran."""
        passes = self._selection.passes
        if "empty" in opened.live.unread.values():  # they did, and returned tensors without values
            return "empty batch"
        if self._selection.is_in_new_thread:
            return "new thread"
        if self._selection.gave_up:
            return "in vain"
        if PassKind.TRANSFORMED in passes.kinds:
            return "transformed"
        model = self._selection.model
        parameters = list(model.parameters())
        if parameters and all(parameter.is_meta for parameter in parameters):
            return "meta"
        if not passes.kinds and passes.has_trainable() and self._is_held_by_none(parameters):
            return "copied"
        if not passes.has_trainable():
            return "frozen in eval mode" if passes.is_frozen else "frozen later"
        return "nothing ran" if passes.disabled_by is None else "nothing trained"

    def _is_held_by_none(self, parameters: Sequence[Tensor]) -> bool:
        """True if no optimizer of the process held one of the parameters, when asked first."""
        if self._held_by_none is None:
            self._held_by_none = not holding({id(parameter) for parameter in parameters})
        return self._held_by_none

    def _of_training(self, opened: OpenStep) -> str | None:
        """What to say of a training step in which layers ran; None if nothing is missing."""
        chosen = self._selection.chosen
        passes = self._selection.passes
        if PassKind.TRAINS_INPUT in passes.kinds:
            return None
        if self._gradients.stepped:
            self._selection.finds_input = False
            if chosen is None or chosen.graph is None or chosen.state is State.USED:
                return None
            return "no contribution"
        if self._loss_scale.was_skipped() or self._gradients.skipped:
            return None
        if not passes.has_trainable():
            return "frozen"
        if self._is_input_trained():
            return "input learns"
        if passes.disabled_by is not None:
            return "disabled"
        if self._gradients.read_after_backward:  # the loop updates the parameters by itself
            return None
        if self._gradients.copies_stepped:
            return "copies"
        # A step that counts what could train the model alone is ended by an optimizer's step.
        return "other optimizer" if opened.passes == "training" else "no optimizer step"

    def _is_input_trained(self) -> bool:
        """True if an optimizer holds what the model receives, and none a parameter of the model.

        Determined once, in the first step with an input that learns.
        """
        learned = self._selection.learned
        if learned:
            self._selection.finds_input = False
            own = {id(p) for p in self._selection.model.parameters()}
            self._trains_input = bool(holding(learned.keys())) and not holding(own)
        return self._trains_input
