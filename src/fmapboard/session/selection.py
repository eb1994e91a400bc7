"""``PassSelection``: finds the forward pass that produced the gradients of a logged step."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial
from itertools import islice
from typing import Any, Literal, NamedTuple, TypeVar

import torch
from torch import Tensor, nn
from torch.optim.optimizer import Optimizer

from fmapboard.capture.collector import ActivationCollector
from fmapboard.capture.gradient_sums import leaves_behind
from fmapboard.capture.guard import Guard
from fmapboard.capture.module_calls import untraced
from fmapboard.gradients.optimizers import parameters_of
from fmapboard.gradients.outputs import OutputRecorder
from fmapboard.model.layers import WatchedLayers
from fmapboard.model.tensors import tensors

Passes = Literal["all", "training", "evaluation"]
"""Which forward passes of a logged step count.

- ``"all"``: every pass.
- ``"training"``: every pass that could train the model.
- ``"evaluation"``: every pass in eval mode; no optimizer step is expected.
"""

# Was a gradient touched? Identities and versions of gradients, compared at two moments.
#
# Accumulation by a backward pass, ``zero_grad``, an assignment to ``grad`` and an in-place
# operation each change one of them; an operation on ``.data`` does not. The selection of the pass
# asks this of some gradients, the search for uncleared ones of all. A mark holds no reference to
# the gradient.

K = TypeVar("K")


class Mark(NamedTuple):
    """A gradient and its version at one moment."""

    gradient: weakref.ref[Tensor]
    version: int


def marks(parameters: Mapping[K, Tensor]) -> dict[K, Mark]:
    """Mark the gradients that some parameters have now; those without one are left out."""
    return {
        key: Mark(weakref.ref(gradient), gradient._version)
        for key, parameter in parameters.items()
        if (gradient := parameter.grad) is not None
    }


def same(before: Mapping[K, Mark], parameters: Mapping[K, Tensor]) -> dict[K, Mark]:
    """Mark the gradients again that are still the same tensor, changed or not."""
    return {
        key: Mark(mark.gradient, gradient._version)
        for key, mark in before.items()
        if (gradient := parameters[key].grad) is not None and mark.gradient() is gradient
    }


def untouched(before: Mapping[K, Mark], parameters: Mapping[K, Tensor]) -> dict[K, Mark]:
    """The marks of gradients that are still the same tensor and were not changed."""
    now = same(before, parameters)
    return {key: mark for key, mark in now.items() if mark.version == before[key].version}


_MAX_CHECKED = 32
"""How many parameters are checked at most, spread over the model."""

_MAX_LEAVES = 256
"""How many leaf tensors in front of the model are found behind each tensor that it receives."""


class TrainingPasses:
    """Tells forward passes that could train something from those that could not.

    A pass could train the model if gradients are enabled and one of its parameters requires one. In
    a model whose parameters are frozen and stay so, a pass could train what the model receives if
    that requires a gradient: the image of neural style transfer, or the network in front of a
    perceptual loss. A discriminator that is frozen only in the generator's update is no such model.

    Args:
        model: the unwrapped model.

    Attributes:
        may_train: the pass that began last could train something.
        input_learns: a pass of the open step could train what a frozen model receives.
        were_transformed: a pass of the open step ran inside a transformation of ``torch.func``.
        disabled_by: what disabled gradients in all passes of the open step that could have trained
            the model otherwise; None if there are none, or if gradients were enabled in one.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._was_trainable, self._ran = False, set[bool]()  # of each pass: has_trainable
        self.step_opens("all")

    def step_opens(self, kind: Passes) -> None:
        """Called when a logged step opens, with the kind of passes that count in it.

        If all passes of the step before were frozen, the model is.
        """
        self._kind: Passes = kind
        self.may_train = self.input_learns = self.were_transformed = False
        self._enabled = False
        self.disabled_by: str | None = None
        was_trainable = self._was_trainable and self._ran != {False}
        self._was_trainable = was_trainable or self.has_trainable()
        self._ran.clear()

    @property
    def is_frozen(self) -> bool:
        """True if no parameter requires a gradient, and none is known to do so at times."""
        return not self._was_trainable

    def has_trainable(self) -> bool:
        """True if a parameter requires a gradient now."""
        return any(parameter.requires_grad for parameter in self._model.parameters())

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
            self.were_transformed = True
            return False
        if self._kind == "evaluation":
            return not self._model.training
        trainable, enabled = self.has_trainable(), torch.is_grad_enabled()
        self._ran.add(trainable)
        self._was_trainable = self._was_trainable or trainable
        if trainable:
            self._enabled = self._enabled or enabled
            inference = torch.is_inference_mode_enabled()
            by = "torch.inference_mode()" if inference else "torch.no_grad()"
            self.disabled_by = None if self._enabled else by
        if self._was_trainable:
            counts = self.may_train = enabled and trainable
        else:
            learns = enabled and any(tensor.requires_grad for tensor in tensors(received))
            self.input_learns = self.input_learns or learns
            # In training mode, tensors that are not parameters may learn.
            self.may_train = learns or (enabled and self._model.training)
            counts = learns or self._model.training
        return counts or self._kind == "all"


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
        eval_modules: see ``facts.eval_modules``; empty if that is not recorded.
        outputs: follows what the pass returns; None if that is not recorded.
    """

    collected: ActivationCollector
    trains: bool
    in_eval_mode: bool
    graph: weakref.ref[_Graph] | None = None
    known: State = State.WAITING
    eval_modules: tuple[str, ...] = ()
    outputs: OutputRecorder | None = None

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
        selection: is told of the backward pass.
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


class PassSelection:
    """Follows forward passes, backward passes and cleared gradients through one logged step.

    The right pass is the first one whose backward pass contributed to the gradients that the
    optimizer uses. This is known only when the optimizer steps. Until then, up to three candidates
    are recorded side by side.

    Args:
        watched: the watched layers of the model.
        guard: handles errors in fmapboard's own code.
        backward_begins: called when a backward pass of the step begins, before it changes any
            gradient, in a block of the guard.
        backward_ends: called when a backward pass of the step has ended, in such a block.

    Attributes:
        model: the unwrapped model.
        guard: as passed.
        passes: tells which passes could train something.
        chosen: the pass whose gradients the optimizer used; None before the decision.
        finds_input: find what learns in front of a model that is not frozen.
        learned: leaf tensors in front of the model, by ``id``: an image, or weights.
    """

    def __init__(
        self,
        watched: WatchedLayers,
        guard: Guard,
        backward_begins: Callable[[], None],
        backward_ends: Callable[[], None],
    ) -> None:
        self.model, self.guard = watched.model, guard
        self._notify_begins, self._notify_ends = backward_begins, backward_ends
        self.passes = TrainingPasses(self.model)
        self._confirmations, self.finds_input = 0, True
        self._candidates: list[Candidate] = []
        self.close()

    def open(self, kind: Passes, trainable: Collection[Tensor]) -> None:
        """Begin to follow a logged step.

        Args:
            kind: which passes count; of an evaluation, the first one is selected.
            trainable: parameters whose gradients are checked for being cleared; empty if that
                cannot be detected (sharded parameters).
        """
        self._is_followed = kind != "evaluation"
        self.passes.step_opens(kind)
        self._check(trainable)

    def _check(self, leaves: Collection[Tensor]) -> None:
        """Check the gradients of the model's parameters or of the leaves that lead to its input.

        Of a large number, evenly spaced ones are checked.
        """
        stride = -(-len(leaves) // _MAX_CHECKED) or 1
        self._checked = dict(enumerate(islice(leaves, 0, None, stride)))
        self._marks = marks(self._checked)

    def close(self) -> None:
        """End the logged step: drop all candidates."""
        self.start_over()
        self._is_followed = self._in_backward = False
        self.learned = dict[int, Tensor]()
        self._check(())

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
        return self.chosen is not None or State.USED in [one.known for one in self._candidates]

    def is_learned_by(self, optimizer: Optimizer) -> bool:
        """True if the optimizer updates the input of a frozen model, as far as it is known."""
        own = parameters_of(optimizer)
        return self.passes.is_frozen and any(id(one) in self.learned for one in own)

    def wants_another(self) -> bool:
        """True if a pass that begins now is to be recorded as a further candidate."""
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
            self._drop([one for one in self._candidates if not one.trains])
        if self._current is not None:  # its forward pass raised
            self._drop([self._current])
        self._current = Candidate(collected, trains, not self.model.training)
        self._candidates.append(self._current)
        if trains and (self.finds_input or self.passes.is_frozen):
            self._find_input(received)
        return self._current

    def _find_input(self, received: Any) -> None:
        """Find what learns in front of the model; if that is frozen, follow those gradients."""
        own, known = set(map(id, self.model.parameters())), len(self.learned)
        self.learned |= {id(t): t for t in learned_leaves(received) if id(t) not in own}
        if self.passes.is_frozen and len(self.learned) > known:
            self._check(self.learned.values())

    def ended(self, output: Any) -> None:
        """Called when a pass, recorded or not, has returned: wait for its backward pass."""
        current, self._current = self._current, None
        if current is not None:
            current.collected.ended()
        if self.chosen is not None or not self._is_followed or not torch.is_grad_enabled():
            return
        graph = _Graph(self, current)
        nodes = {t.grad_fn for t in tensors(output) if t.grad_fn is not None}
        for node in nodes:
            node.register_prehook(untraced(graph))
        if current is not None:
            if current.outputs is not None:
                current.outputs.returned(output)
            current.collected.sums.ended(nodes, partial(_call, weakref.ref(graph)))
        if current is not None and nodes:
            current.graph = weakref.ref(graph)
        elif current is not None and self.passes.is_frozen:
            current.trains = False

    def choose(self) -> Candidate | None:
        """Choose the pass whose gradients the optimizer uses.

        Called when the gradients are complete, and when the logged step ends.

        Returns:
            The chosen pass, or None if no pass was recorded.
        """
        if self.chosen is None and self._candidates:
            # The first one that was used; otherwise, the first that may still be used.
            order = {State.USED: 0, State.WAITING: 1, State.OVERTAKEN: 1}
            self.chosen = min(self._candidates, key=lambda one: order.get(one.state, 2))
            self._learn(self.chosen)
            self._drop([one for one in self._candidates if one is not self.chosen])
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
        for one in self._candidates:
            state = one.state
            self._abandoned[not one.in_eval_mode] += state is State.ABANDONED
            if state in (State.USED, State.WAITING):
                kept.setdefault(state, one)
        self._drop([one for one in self._candidates if one not in kept.values()])

    def _notice_cleared(self) -> bool:
        """Mark the candidates whose gradients were cleared; False if no gradient changed."""
        before, kept = self._marks, untouched(self._marks, self._checked)
        self._marks = marks(self._checked)
        if len(kept) == len(before) == len(self._marks):
            return False
        for one in self._candidates:
            if one.known is State.USED:
                one.known = State.CLEARED
                one.collected.sums.cleared()
            elif one.known is State.WAITING and one is not self._current:
                one.known = State.OVERTAKEN
        return True

    def _backward_begins(self, candidate: Candidate | None) -> None:
        with self.guard("backward pass"):
            if self.chosen is not None:
                return
            if not self._in_backward:
                cleared = self._notice_cleared()
                if cleared and State.CLEARED in [one.known for one in self._candidates]:
                    self._confirmations = 0
                self._in_backward = True
                self._when_backward_ends()
                self._notify_begins()
            if candidate is not None:
                candidate.known = State.USED

    def _when_backward_ends(self) -> None:
        """Call ``_backward_ends`` after all other callbacks at the end of the backward pass.

        DistributedDataParallel copies its reduced gradients in such a callback. Queuing ours from
        within a callback puts it behind that one.
        """
        engine = torch.autograd.Variable._execution_engine
        ends = untraced(self._backward_ends)
        engine.queue_callback(untraced(lambda: engine.queue_callback(ends)))

    def _backward_ends(self) -> None:
        with self.guard("backward pass"):
            self._in_backward = False
            self._marks = marks(self._checked)
            self._notify_ends()

    def _drop(self, candidates: Iterable[Candidate]) -> None:
        for one in candidates:
            one.collected.discard()
            if one in self._candidates:
                self._candidates.remove(one)
