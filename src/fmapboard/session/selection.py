"""``PassSelection``: finds the forward pass that produced the gradients of a logged step."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, Literal, Protocol

import torch
from torch import Tensor, nn
from torch.optim.optimizer import Optimizer

from fmapboard.capture.collector import ActivationCollector
from fmapboard.capture.functional_calls import FunctionalCalls, functional_calls
from fmapboard.capture.gradient_sums import leaves_behind
from fmapboard.capture.guard import Guard
from fmapboard.capture.isolation import is_settled
from fmapboard.capture.module_calls import has_compiled_parts, untraced
from fmapboard.capture.passes import Decision, Moment, PassEvent, Progress
from fmapboard.gradients.loss_scale import LossScale
from fmapboard.gradients.optimizers import parameters_of
from fmapboard.gradients.reader import GradientReader
from fmapboard.gradients.touched import GradientMarks
from fmapboard.model.layers import WatchedLayers
from fmapboard.model.tensors import tensors

Passes = Literal["all", "training", "evaluation"]
"""Which forward passes of a logged step count.

- ``"all"``: every pass.
- ``"training"``: every pass that could train the model.
- ``"evaluation"``: every pass in eval mode; no optimizer step is expected.
"""

_MAX_LEAVES = 256
"""How many leaf tensors in front of the model are found behind each tensor that it receives."""


class PassKind(Enum):
    """What a forward pass could train."""

    TRAINS_MODEL = "gradients are enabled, and a parameter of the model requires one"
    NO_GRAD = "it would, but for torch.no_grad()"
    INFERENCE = "it would, but for torch.inference_mode()"
    FROZEN_FOR_NOW = "no parameter requires a gradient, but some do at times"
    TRAINS_INPUT = "the model is frozen, and gradients reach what it receives"
    MAY_TRAIN_OTHERS = "the model is frozen and in training mode: tensors of its own may learn"
    TRAINS_NOTHING = "the model is frozen"
    TRANSFORMED = "it runs inside a transformation of torch.func (vmap, grad)"


_TRAINABLE = frozenset({PassKind.TRAINS_MODEL, PassKind.NO_GRAD, PassKind.INFERENCE})
"""Kinds of passes in which a parameter requires a gradient."""

_TRAINING = frozenset({PassKind.TRAINS_MODEL, PassKind.TRAINS_INPUT, PassKind.MAY_TRAIN_OTHERS})
"""Kinds of passes that could train something."""


class TrainingPasses:
    """Tells forward passes that could train something from those that could not.

    A pass could train the model if gradients are enabled and one of its parameters requires one. In
    a model whose parameters are frozen and stay so, a pass could train what the model receives if
    that requires a gradient: the image of neural style transfer, or the network in front of a
    perceptual loss. A discriminator that is frozen only in the generator's update is no such model.

    Args:
        model: the unwrapped model.

    Attributes:
        kinds: those of the open step's passes, in their order.
        is_frozen: no parameter requires a gradient, and none is known to do so at times.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self.kinds: list[PassKind] = []
        self.is_frozen = True
        self.step_opens("all")

    def step_opens(self, passes: Passes) -> None:
        """Called when a logged step opens, with the passes that count in it.

        If all passes of the step before were frozen, the model is.
        """
        self._passes: Passes = passes
        untransformed = set(self.kinds) - {PassKind.TRANSFORMED}
        if untransformed and untransformed.isdisjoint(_TRAINABLE):
            self.is_frozen = True
        if self.has_trainable():
            self.is_frozen = False
        self.kinds = []

    def has_trainable(self) -> bool:
        """True if a parameter requires a gradient now."""
        return any(parameter.requires_grad for parameter in self._model.parameters())

    @property
    def may_train(self) -> bool:
        """True if the pass that began last could train something."""
        return bool(self.kinds) and self.kinds[-1] in _TRAINING

    @property
    def disabled_by(self) -> str | None:
        """What disabled gradients in all passes that could have trained the model otherwise.

        None if there are none, or if gradients were enabled in one.
        """
        if PassKind.TRAINS_MODEL in self.kinds:
            return None
        disabled = [k for k in self.kinds if k in (PassKind.NO_GRAD, PassKind.INFERENCE)]
        if not disabled:
            return None
        is_inference = disabled[-1] is PassKind.INFERENCE
        return "torch.inference_mode()" if is_inference else "torch.no_grad()"

    def counts(self, received: Any) -> bool:
        """Called when a pass begins; True if it counts.

        While an optimizer's steps are counted, these are the passes that could train something and,
        if the model is frozen, all passes in training mode. Those inside ``vmap``, ``grad`` and the
        like never count: tensors have no values to be read there.

        Args:
            received: what the model is called with. If its layers are called one by one, what
                the layer received or returned.
        """
        if torch._C._functorch.peek_interpreter_stack() is not None:
            self.kinds.append(PassKind.TRANSFORMED)
            return False
        if self._passes == "evaluation":
            return not self._model.training
        kind = self._kind(received)
        self.kinds.append(kind)
        if self._passes == "all" or kind in _TRAINING:
            return True
        return kind is PassKind.TRAINS_NOTHING and self._model.training

    def _kind(self, received: Any) -> PassKind:
        is_enabled = torch.is_grad_enabled()
        if self.has_trainable():
            self.is_frozen = False
            if is_enabled:
                return PassKind.TRAINS_MODEL
            is_inference = torch.is_inference_mode_enabled()
            return PassKind.INFERENCE if is_inference else PassKind.NO_GRAD
        if not self.is_frozen:
            return PassKind.FROZEN_FOR_NOW
        if is_enabled and any(tensor.requires_grad for tensor in tensors(received)):
            return PassKind.TRAINS_INPUT
        if is_enabled and self._model.training:
            return PassKind.MAY_TRAIN_OTHERS
        return PassKind.TRAINS_NOTHING


def learned_leaves(received: Any) -> tuple[Tensor, ...]:
    """The leaf tensors, such as an image or weights, that gradients of a model's input reach.

    Of what is behind a deep network, leaves may be missing (see ``leaves_behind``).

    >>> image = torch.rand(1, 3, 8, 8, requires_grad=True)
    >>> [leaf is image for leaf in learned_leaves(((image - 0.5) / 0.2,))]
    [True]
    """
    found: list[Tensor] = []
    for tensor in tensors(received):
        behind = [node.variable for node in leaves_behind(tensor, _MAX_LEAVES)]
        found += [tensor] if tensor.is_leaf and tensor.requires_grad else behind
    return tuple({id(leaf): leaf for leaf in found}.values())


_MAX_ABANDONED = 8
"""After this many passes without a backward pass, no more passes of the step are recorded."""

_ENOUGH_CONFIRMATIONS = 2
"""After this many logged steps in which the first candidate was right, only one is recorded."""


class State(Enum):
    """What has become of a recorded pass."""

    WAITING = "its backward pass has not begun"
    USED = "its backward pass has begun, and gradients were not cleared since"
    CLEARED = "gradients were cleared after its backward pass had begun"
    OVERTAKEN = "gradients were cleared, and its backward pass has not begun"
    ABANDONED = "no backward pass has begun, and none can begin any more"


@dataclass(eq=False)
class Candidate:
    """A recorded forward pass that may have produced the gradients.

    Attributes:
        collected: what was recorded.
        trains: the pass may build a graph that leads to what is trained.
        in_eval_mode: the model was in eval mode.
        graph: dead once no backward pass can follow; None if that is unknown.
        known: its state when something last happened to it.
    """

    collected: ActivationCollector
    trains: bool
    in_eval_mode: bool
    graph: weakref.ref[_Graph] | None = None
    known: State = State.WAITING

    @property
    def state(self) -> State:
        """What has become of the pass."""
        may_follow = self.graph is None or self.graph() is not None
        if may_follow or self.known in (State.USED, State.CLEARED):
            return self.known
        return State.ABANDONED


class _Graph:
    """Called when a backward pass through it begins; lives as long as a pass's autograd graph.

    While it is alive, a backward pass may still follow.

    Args:
        selection: follows the backward pass.
        candidate: the forward pass; None if it was not recorded.
    """

    def __init__(self, selection: PassSelection, candidate: Candidate | None) -> None:
        self._selection = weakref.ref(selection)
        self._candidate = None if candidate is None else weakref.ref(candidate)

    def __call__(self, gradients: Any = None) -> None:
        """The hook of the nodes of the model's output."""
        selection = self._selection()
        if selection is not None:
            selection._backward_begins(None if self._candidate is None else self._candidate())


def _call(reference: weakref.ref[_Graph]) -> None:
    """Call an object for what must not keep it alive."""
    graph = reference()
    if graph is not None:
        graph()


class PassObserver(Protocol):
    """Follows the passes of a logged step; each method is called in a block of the guard."""

    def pass_returned(self, candidate: Candidate, output: Any) -> None:
        """Called when a recorded pass has returned, if a backward pass may follow."""

    def part_begins(self, part: nn.Module, received: Any) -> None:
        """Called with ``(args, kwargs)`` of a part that the user calls instead of the model."""

    def part_returned(self, part: nn.Module, output: Any) -> None:
        """Called when such a part has returned."""

    def backward_begins(self) -> None:
        """Called when a backward pass of the step begins, before it changes any gradient."""

    def backward_ends(self) -> None:
        """Called when a backward pass of the step has ended."""


class PassSelection:
    """Decides which forward passes of a logged step are recorded, and which of them counts.

    It follows forward passes, backward passes and cleared gradients. The right pass is the first
    one whose backward pass contributed to the gradients that the optimizer uses. This is known only
    when the optimizer steps. Until then, up to three candidates are recorded side by side. The
    policy of the session's ``HookRegistry``: see ``capture.passes.PassPolicy``.

    Args:
        watched: the watched layers of the model.
        guard: handles errors in fmapboard's own code.
        gradients: reads gradients after each backward pass in steps that the user marks.
        loss_scale: knows whether the GradScaler skipped a step.

    Attributes:
        model: the unwrapped model.
        guard: as passed.
        passes: tells which passes could train something.
        observer: follows passes and backward passes; None for nobody.
        chosen: the pass whose gradients the optimizer used; None before the decision.
        finds_input: find what learns in front of a model that is not frozen.
        learned: leaf tensors in front of the model, by ``id``: an image, or weights.
        counts_functions: count the convolutions that the next training pass calls as functions.
        functional_calls: those; None before.
        is_in_new_thread: a pass began in a thread in which torch has yet to set its number of
            threads, so that the step is not logged (see ``capture.isolation``).
    """

    def __init__(
        self, watched: WatchedLayers, guard: Guard, gradients: GradientReader, loss_scale: LossScale
    ) -> None:
        self.model = watched.model
        self.guard = guard
        self._gradients = gradients
        self._loss_scale = loss_scale
        self.passes = TrainingPasses(self.model)
        self.observer: PassObserver | None = None
        self.finds_input = True
        self.counts_functions = False
        self.functional_calls: FunctionalCalls | None = None
        self._confirmations = 0
        self._candidates: list[Candidate] = []
        self._reads_after_backward = False
        self.is_in_new_thread = False
        self.close()

    def open(self, passes: Passes, trainable: Collection[Tensor]) -> None:
        """Begin to follow a logged step.

        Args:
            passes: which passes count; of an evaluation, the first one is selected.
            trainable: parameters whose gradients are checked for being cleared; empty if that
                cannot be detected (sharded parameters).
        """
        self._is_followed = passes != "evaluation"
        self._reads_after_backward = passes == "all"
        self.is_in_new_thread = False
        self._progress = Progress.WAITING
        self.passes.step_opens(passes)
        self._marks = GradientMarks(trainable)

    def decide(self, event: PassEvent) -> Decision:
        """Decide whether what begins is recorded; see ``PassPolicy``."""
        with self.guard("forward pass"):
            if event.moment is Moment.BEGINS:
                return self._begins(event)
            if event.moment is Moment.RETURNS:
                self._returns(event.value)
            elif event.moment is Moment.PART_RETURNS:
                self._part_returns(event)
            elif self._progress is not Progress.RECORDED:
                return self._part_or_layer_begins(event)
        return Decision.IGNORE

    def _begins(self, event: PassEvent) -> Decision:
        if not is_settled():
            self.is_in_new_thread = True
            self._gradients.disarm()
            return Decision.IGNORE
        counts = self.passes.counts(event.value)
        if event.is_elsewhere:
            if not counts or self.is_settled:
                return Decision.IGNORE
            self.start_over()
            self._progress = Progress.RECORDING
            return Decision.TAKE_OVER
        if not counts:
            if self._progress is Progress.RECORDING:  # that pass raised; do not complete it
                self._progress = Progress.WAITING
            return Decision.IGNORE
        if self._progress is Progress.RECORDED and not self._wants_another():
            return Decision.IGNORE
        self._progress = Progress.RECORDING
        return Decision.RECORD

    def _part_or_layer_begins(self, event: PassEvent) -> Decision:
        if not is_settled():
            self.is_in_new_thread = True
            self._gradients.disarm()
            return Decision.IGNORE
        if event.moment is Moment.PART_BEGINS:
            if self.observer is not None and event.module is not None:
                self.observer.part_begins(event.module, event.value)
            return Decision.RECORD
        return Decision.RECORD if self.passes.counts(event.value) else Decision.IGNORE

    def _part_returns(self, event: PassEvent) -> None:
        part = event.module
        if self.observer is not None and part is not None:
            self.observer.part_returned(part, event.value)
        if any(part is child for child in self.model.children()):
            self._waits_for_backward(event.value)

    def close(self) -> None:
        """End the logged step: drop all candidates."""
        self.start_over()
        self._counts_functions = False
        self._is_followed = False
        self._in_backward = False
        self._progress = Progress.WAITING
        self.learned = dict[int, Tensor]()
        self._marks = GradientMarks(())

    def start_over(self) -> None:
        """Drop all candidates: what they were for was skipped, or another thread takes over."""
        self._drop(list(self._candidates))
        self._current: Candidate | None = None
        self.chosen: Candidate | None = None
        self._abandoned = {True: 0, False: 0}  # by `model.training`

    @property
    def gave_up(self) -> bool:
        """True if recording stopped: too many passes in this mode had no backward pass."""
        return self._abandoned[self.model.training] >= _MAX_ABANDONED

    @property
    def is_settled(self) -> bool:
        """True once a backward pass of a candidate has contributed to the gradients."""
        return self.chosen is not None or State.USED in [c.known for c in self._candidates]

    def holds(self, candidate: Candidate) -> bool:
        """True if a recorded pass may still be the right one, or is."""
        return candidate in self._candidates

    def is_learned_by(self, optimizer: Optimizer) -> bool:
        """True if the optimizer updates the input of a frozen model, as far as it is known."""
        if not self.passes.is_frozen:
            return False
        return any(id(parameter) in self.learned for parameter in parameters_of(optimizer))

    def _wants_another(self) -> bool:
        """True if a pass that begins now is to be recorded as a further candidate."""
        if self._loss_scale.was_skipped(stepped=self._gradients.stepped):
            self.start_over()
            return True
        self._current = None
        if self.chosen is not None or not self._is_followed:
            return False
        trains = self.passes.may_train
        if trains:
            self._discard_outdated()
        if self.gave_up:
            return False
        if not self._candidates:
            return True
        first = self._candidates[0]
        return trains and (not first.trains or self._confirmations < _ENOUGH_CONFIRMATIONS)

    def begin(self, collected: ActivationCollector, received: Any) -> Candidate:
        """Called when a pass to be recorded begins, with what the model is called with."""
        trains = self.passes.may_train
        if trains:
            self._discard_outdated()
            self._drop([candidate for candidate in self._candidates if not candidate.trains])
        if self._current is not None:  # its forward pass raised
            self._drop([self._current])
        self._current = Candidate(collected, trains, not self.model.training)
        self._candidates.append(self._current)
        if trains and (self.finds_input or self.passes.is_frozen):
            self._find_input(received)
        if self.counts_functions:
            leads_back = any(tensor.requires_grad for tensor in tensors(received))
            self._counts_functions = trains and not leads_back
        return self._current

    def _find_input(self, received: Any) -> None:
        """Find what learns in front of the model; if that is frozen, follow those gradients."""
        own = set(map(id, self.model.parameters()))
        known = len(self.learned)
        self.learned |= {id(t): t for t in learned_leaves(received) if id(t) not in own}
        if self.passes.is_frozen and len(self.learned) > known:
            self._marks = GradientMarks(self.learned.values())

    def _returns(self, output: Any) -> None:
        """Called when a pass, recorded or not, has returned."""
        if self._progress is Progress.RECORDING:
            self._progress = Progress.RECORDED
        self._waits_for_backward(output)

    def _waits_for_backward(self, output: Any) -> None:
        """Wait for the backward pass of what a pass has returned."""
        current = self._current
        self._current = None
        if current is not None:
            current.collected.ended()
        if self.chosen is not None or not self._is_followed or not torch.is_grad_enabled():
            return
        graph = _Graph(self, current)
        nodes = {t.grad_fn for t in tensors(output) if t.grad_fn is not None}
        for node in nodes:
            node.register_prehook(untraced(graph))
        if current is None:
            return
        if self.observer is not None:
            self.observer.pass_returned(current, output)
        current.collected.sums.ended(nodes, partial(_call, weakref.ref(graph)))
        if nodes:
            current.graph = weakref.ref(graph)
        elif self.passes.is_frozen:
            current.trains = False
        if nodes and self._counts_functions:
            self._count_functions(nodes, current.collected)

    def _count_functions(self, nodes: Collection[Any], collected: ActivationCollector) -> None:
        """Count the convolutions that the first recorded pass has called as functions."""
        self.counts_functions = False
        self._counts_functions = False
        is_complete = bool(collected.pending) and not self.guard.has_failed
        if not is_complete or has_compiled_parts(self.model):
            return  # which layers ran is not known
        with self.guard("functional calls"):
            calls = [measurement.layer_call for measurement in collected.pending]
            outputs = {call.label: call for call in calls}
            self.functional_calls = functional_calls(nodes, self.model, outputs.values())

    def choose(self) -> Candidate | None:
        """Choose the pass whose gradients the optimizer uses.

        Called when the gradients are complete, and when the logged step ends.

        Returns:
            The chosen pass, or None if no pass was recorded.
        """
        if self.chosen is None and self._candidates:
            # The first one that was used; otherwise, the first that may still be used.
            order = {State.USED: 0, State.WAITING: 1, State.OVERTAKEN: 1}
            self.chosen = min(self._candidates, key=lambda c: order.get(c.state, 2))
            self._learn(self.chosen)
            self._drop([c for c in self._candidates if c is not self.chosen])
            self.chosen.collected.gradients_complete()
        return self.chosen

    def _learn(self, right: Candidate) -> None:
        """Count the steps in a row in which the first of several candidates was right."""
        if right is not self._candidates[0] or right.state is not State.USED:
            self._confirmations = 0
        elif len(self._candidates) > 1:
            self._confirmations += 1

    def _discard_outdated(self) -> None:
        """A training pass begins: drop candidates that can no longer be the right one.

        Of those that can be, one that was used and one that waits are kept; with the new pass there
        are three.
        """
        self._in_backward = False
        self._notice_cleared()
        kept: dict[State, Candidate] = {}
        for candidate in self._candidates:
            state = candidate.state
            if state is State.ABANDONED:
                self._abandoned[not candidate.in_eval_mode] += 1
            if state in (State.USED, State.WAITING):
                kept.setdefault(state, candidate)
        self._drop([c for c in self._candidates if c not in kept.values()])

    def _notice_cleared(self) -> bool:
        """Mark the candidates whose gradients were cleared; False if no gradient changed."""
        if not self._marks.were_touched():
            return False
        for candidate in self._candidates:
            if candidate.known is State.USED:
                candidate.known = State.CLEARED
                candidate.collected.sums.cleared()
            elif candidate.known is State.WAITING and candidate is not self._current:
                candidate.known = State.OVERTAKEN
        return True

    def _backward_begins(self, candidate: Candidate | None) -> None:
        is_known = candidate is None or candidate.known is State.USED
        if self.chosen is not None or (self._in_backward and is_known):
            return
        with self.guard("backward pass"):
            if not self._in_backward:
                cleared = self._notice_cleared()
                if cleared and State.CLEARED in [c.known for c in self._candidates]:
                    self._confirmations = 0
                self._in_backward = True
                self._when_backward_ends()
                if self.observer is not None:
                    self.observer.backward_begins()
            if candidate is not None:
                candidate.known = State.USED

    def _when_backward_ends(self) -> None:
        """Call ``_backward_ends`` after all other callbacks at the end of the backward pass.

        DistributedDataParallel copies its reduced gradients in such a callback. Queuing ours from
        within a callback puts it behind that one.
        """
        queue = torch.autograd.Variable._execution_engine.queue_callback
        queue(partial(queue, untraced(self._backward_ends)))

    def _backward_ends(self) -> None:
        with self.guard("backward pass"):
            self._in_backward = False
            self._marks.look()
            if self._reads_after_backward:
                self._gradients.backward_ended(self._loss_scale.at_forward)
            if self.observer is not None:
                self.observer.backward_ends()

    def _drop(self, candidates: Iterable[Candidate]) -> None:
        for candidate in candidates:
            candidate.collected.discard()
            if candidate in self._candidates:
                self._candidates.remove(candidate)
