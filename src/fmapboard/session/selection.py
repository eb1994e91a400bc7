"""``PassSelection``: finds the forward pass that produced the gradients of a logged step."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn
from torch.optim.optimizer import Optimizer

from fmapboard.capture.collector import ActivationCollector
from fmapboard.capture.guard import Guard
from fmapboard.capture.module_calls import untraced
from fmapboard.gradients.optimizers import parameters_of
from fmapboard.model.layers import WatchedLayers
from fmapboard.model.tensors import tensors


class PassObserver:
    """Is notified by a ``PassSelection`` on the training thread; this one does nothing.

    The selection calls each method in a block of its ``Guard``.
    """

    def step_opens(self) -> None:
        """Called when a logged step opens, before its first pass."""

    def pass_begins(self, candidate: Candidate) -> None:
        """Called when a pass that is recorded begins."""

    def backward_begins(self) -> None:
        """Called when a backward pass of the step begins, before it changes any gradient."""

    def backward_ends(self) -> None:
        """Called when a backward pass of the step has ended."""


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


class GradientState:
    """Tells whether a gradient of leaf tensors was touched since the last check.

    Args:
        parameters: the model's parameters, or the leaf tensors that lead to its input; of a large
            number, evenly spaced ones are checked.
    """

    def __init__(self, parameters: Collection[Tensor] = ()) -> None:
        stride = -(-len(parameters) // _MAX_CHECKED) or 1
        self._parameters = dict(enumerate(islice(parameters, 0, None, stride)))
        self.settle()

    def has_changed(self) -> bool:
        """True if a gradient changed since the last call of this method or of ``settle``."""
        kept, before = untouched(self._seen, self._parameters), len(self._seen)
        self.settle()
        return len(kept) < max(before, len(self._seen))

    def settle(self) -> None:
        """Make the current gradients the reference for the next check."""
        self._seen = marks(self._parameters)


_NOTHING = GradientState()

_MAX_NODES = 256
"""How many nodes of the graph in front of the model are searched for what it leads to."""


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
        self._was_trainable = self._has_run = self._runs_trainable = False
        self.may_train = self.input_learns = self.were_transformed = False
        self._enabled = False
        self.disabled_by: str | None = None

    def step_opens(self) -> None:
        """Called when a logged step opens."""
        self._enabled, self.disabled_by = False, None
        self._was_trainable = self._was_trainable or self.has_trainable()

    def step_closes(self) -> None:
        """Called when a logged step closes: if all of its passes were frozen, the model is."""
        if self._has_run and not self._runs_trainable:
            self._was_trainable = False
        self._has_run = self._runs_trainable = False
        self.may_train = self.input_learns = self.were_transformed = False

    @property
    def is_frozen(self) -> bool:
        """True if no parameter requires a gradient, and none is known to do so at times."""
        return not self._was_trainable

    def has_trainable(self) -> bool:
        """True if a parameter requires a gradient now."""
        return any(parameter.requires_grad for parameter in self._model.parameters())

    def are_transformed(self) -> bool:
        """True inside ``vmap``, ``grad`` and the like, where tensors have no values to be read."""
        found = torch._C._functorch.peek_interpreter_stack() is not None
        self.were_transformed = self.were_transformed or found
        return found

    def begins(self, received: Any) -> bool:
        """Called when a pass begins; True if it counts while an optimizer's steps are counted.

        These are the passes that could train something and, if the model is frozen, all passes in
        training mode.

        Args:
            received: what the model is called with. If its layers are called one by one, what
                the layer received or returned.
        """
        trainable, enabled = self.has_trainable(), torch.is_grad_enabled()
        self._has_run = True
        self._runs_trainable = self._runs_trainable or trainable
        self._was_trainable = self._was_trainable or trainable
        if self._was_trainable:
            self.may_train = enabled and trainable
            if trainable:
                self._enabled = self._enabled or enabled
                inference = torch.is_inference_mode_enabled()
                by = "torch.inference_mode()" if inference else "torch.no_grad()"
                self.disabled_by = None if self._enabled else by
        else:
            learns = enabled and any(tensor.requires_grad for tensor in tensors(received))
            self.input_learns = self.input_learns or learns
            # In training mode, tensors that are not parameters may learn.
            self.may_train = learns or (enabled and self._model.training)
            return learns or self._model.training
        return self.may_train


def learned_leaves(received: Any) -> tuple[Tensor, ...]:
    """The leaf tensors, such as an image or weights, that gradients of a model's input reach.

    Searches the graph in front of the model up to 256 nodes: of what is behind a deep network,
    leaves may be missing.

    >>> image = torch.rand(1, 3, 8, 8, requires_grad=True)
    >>> [leaf is image for leaf in learned_leaves(((image - 0.5) / 0.2,))]
    [True]
    """
    found = {id(leaf): leaf for tensor in tensors(received) for leaf in _leaves(tensor)}
    return tuple(found.values())


def _leaves(tensor: Tensor) -> Iterator[Tensor]:
    if tensor.grad_fn is None:
        if tensor.requires_grad:
            yield tensor
        return
    due, seen = deque([tensor.grad_fn]), {tensor.grad_fn}
    while due:
        node = due.popleft()
        leaf = getattr(node, "variable", None)  # only nodes that accumulate a gradient have it
        if isinstance(leaf, Tensor):
            yield leaf
        for following, _ in node.next_functions:
            if following is not None and following not in seen and len(seen) < _MAX_NODES:
                seen.add(following)
                due.append(following)


_MAX_ABANDONED = 8
"""After this many passes without a backward pass, no more passes of the step are recorded."""

_ENOUGH_CONFIRMATIONS = 2
"""After this many logged steps in which the first candidate was right, only one is recorded."""


class _Graph:
    """A token that lives as long as the autograd graph of a forward pass.

    While it is alive, a backward pass may still follow.

    Attributes:
        is_used: its backward pass has begun.
    """

    is_used = False


@dataclass(eq=False)
class Candidate:
    """A recorded forward pass that may have produced the gradients.

    Attributes:
        collected: what was recorded.
        trains: the pass may build a graph that leads to what is trained.
        in_eval_mode: the model was in eval mode.
        graph: dead once no backward pass can follow; None if that is unknown.
        is_used: its backward pass has begun, and gradients were not cleared since.
        is_cleared: gradients were cleared after its backward pass had begun.
        is_overtaken: gradients were cleared, and its backward pass has not begun.
        eval_modules: see ``eval_mode.eval_modules``; empty if that is not recorded.
    """

    collected: ActivationCollector
    trains: bool
    in_eval_mode: bool
    graph: weakref.ref[_Graph] | None = None
    is_used: bool = False
    is_cleared: bool = False
    is_overtaken: bool = False
    eval_modules: tuple[str, ...] = ()

    @property
    def is_abandoned(self) -> bool:
        """True if no backward pass has begun, and none can begin any more."""
        return not self.is_used and self.graph is not None and self.graph() is None


class PassSelection:
    """Follows forward passes, backward passes and cleared gradients through one logged step.

    The right pass is the first one whose backward pass contributed to the gradients that the
    optimizer uses. This is known only when the optimizer steps. Until then, up to three candidates
    are recorded side by side.

    Args:
        watched: the watched layers of the model.
        guard: handles errors in fmapboard's own code.

    Attributes:
        model: the unwrapped model.
        guard: as passed.
        observer: is notified of the passes.
        backward_ended: called when a backward pass of the step has ended.
        passes: tells which passes could train something.
        fed: number of forward passes, recorded or not, whose backward pass contributed to the
            gradients, as far as it is known.
        finds_input: find what learns in front of a model that is not frozen.
        input: the tensors that were found, by ``id``: an image, or weights.
    """

    def __init__(self, watched: WatchedLayers, guard: Guard) -> None:
        self.model, self.guard = watched.model, guard
        self.observer = PassObserver()
        self.backward_ended: Callable[[], None] = _nothing
        self.passes = TrainingPasses(self.model)
        self._confirmations, self.finds_input = 0, True
        self._gradients = _NOTHING
        self._candidates: list[Candidate] = []
        self.close()

    def open(self, trainable: Sequence[nn.Parameter] = (), *, follows: bool = True) -> None:
        """Begin to follow a logged step.

        Args:
            trainable: parameters whose gradients are checked for being cleared; empty if that
                cannot be detected (sharded parameters).
            follows: False selects the first pass, whatever follows it.
        """
        self.close()
        self._is_followed = follows
        self.passes.step_opens()
        self._gradients = GradientState(trainable)
        self.observer.step_opens()

    def close(self) -> None:
        """End the logged step: drop all candidates."""
        self._drop(list(self._candidates))
        self._current: Candidate | None = None
        self._chosen: Candidate | None = None
        self._abandoned = {True: 0, False: 0}  # by `model.training`
        self._is_followed = self._in_backward = False
        self._learned: dict[int, Tensor] = {}  # leaf tensors in front of a frozen model, by `id`
        self._gradients = _NOTHING
        self.input: dict[int, Tensor] = {}
        self.passes.step_closes()
        self.fed = 0

    @property
    def chosen(self) -> Candidate | None:
        """The pass whose gradients the optimizer used; None before the decision."""
        return self._chosen

    @property
    def gave_up(self) -> bool:
        """True if recording stopped: too many passes in this mode had no backward pass."""
        return self._abandoned[self.model.training] >= _MAX_ABANDONED

    def is_learned_by(self, optimizer: Optimizer) -> bool:
        """True if the optimizer updates the input of a frozen model, as far as it is known."""
        learned = self._learned
        return bool(learned) and any(id(one) in learned for one in parameters_of(optimizer))

    def wants_another(self) -> bool:
        """True if a pass that begins now is to be recorded as a further candidate."""
        self._current = None
        if self._chosen is not None or not self._is_followed:
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

    def begin(self, collected: ActivationCollector, received: Any) -> None:
        """Called when a pass to be recorded begins, with what the model is called with."""
        trains = self.passes.may_train
        if trains:
            self._discard_outdated()
            self._drop([one for one in self._candidates if not one.trains])
        if self._current is not None:  # its forward pass raised
            self._drop([self._current])
        self._current = Candidate(collected, trains, not self.model.training)
        self._candidates.append(self._current)
        if trains and self.passes.is_frozen:
            self._follow_input(received)
        elif trains and self.finds_input:
            own = set(map(id, self.model.parameters()))
            self.input |= {id(t): t for t in learned_leaves(received) if id(t) not in own}
        self.observer.pass_begins(self._current)

    def _follow_input(self, received: Any) -> None:
        """Detect also when the gradients of a frozen model's input are cleared."""
        leaves = {id(leaf): leaf for leaf in learned_leaves(received)}
        if leaves.keys() - self._learned.keys():
            self._learned |= leaves
            self._gradients = GradientState(self._learned.values())

    def ended(self, output: Any) -> None:
        """Called when a pass, recorded or not, has returned: wait for its backward pass."""
        current, self._current = self._current, None
        if current is not None:
            current.collected.ended()
        if self._chosen is not None or not self._is_followed or not torch.is_grad_enabled():
            return
        graph = _Graph()
        nodes = {t.grad_fn for t in tensors(output) if t.grad_fn is not None}
        for node in nodes:
            node.register_prehook(untraced(self._backward_hook(graph, current)))
        if current is not None:
            current.collected.output_computed(nodes, self._begins(graph, current))
        if current is not None and nodes:
            current.graph = weakref.ref(graph)
        elif current is not None and self.passes.is_frozen:
            current.trains = False

    def restart(self) -> bool:
        """Drop all candidates, which another thread ran, unless a backward pass of one has begun.

        Returns:
            True if they were dropped.
        """
        used = any(one.is_used or one.is_cleared for one in self._candidates)
        if self._chosen is not None or used:
            return False
        self._drop(list(self._candidates))
        self._current, self._abandoned = None, {True: 0, False: 0}
        return True

    def forget(self) -> None:
        """Drop all candidates: the GradScaler has skipped their optimizer step."""
        self._drop(list(self._candidates))
        self._chosen = None
        self.fed = 0

    def choose(self) -> Candidate | None:
        """Choose the pass whose gradients the optimizer uses.

        Called when the gradients are complete, and when the logged step ends.

        Returns:
            The chosen pass, or None if no pass was recorded.
        """
        if self._chosen is None and self._candidates:
            self._chosen = self._best()
            self._learn(self._chosen)
            self._drop([one for one in self._candidates if one is not self._chosen])
            self._chosen.collected.gradients_complete()
        return self._chosen

    def _best(self) -> Candidate:
        """The first candidate that was used; otherwise, the first that may still be used."""
        used = [one for one in self._candidates if one.is_used]
        possible = [one for one in self._candidates if not one.is_abandoned and not one.is_cleared]
        return (used or possible or self._candidates)[0]

    def _learn(self, right: Candidate) -> None:
        """Count the steps in a row in which the first of several candidates was right."""
        if right is not self._candidates[0] or not right.is_used:
            self._confirmations = 0
        elif len(self._candidates) > 1:
            self._confirmations += 1

    def _discard_outdated(self) -> None:
        """A training pass begins: drop candidates that can no longer be the right one."""
        self._in_backward = False
        self._notice_cleared()
        if not self._candidates:
            return
        for one in self._candidates:
            self._abandoned[not one.in_eval_mode] += one.is_abandoned
        self._drop(
            [o for o in self._candidates if o.is_abandoned or o.is_cleared or o.is_overtaken]
        )
        # Keep at most one candidate of each kind; with the new pass there are three.
        used = [one for one in self._candidates if one.is_used]
        unused = [one for one in self._candidates if not one.is_used]
        self._drop([*used[1:], *unused[1:]])

    def _notice_cleared(self) -> bool:
        """Mark the candidates whose gradients were cleared; False if no gradient changed."""
        if not self._gradients.has_changed():
            return False
        self.fed = 0
        for one in self._candidates:
            if one.is_used:
                one.is_used, one.is_cleared = False, True
                one.collected.gradients_cleared()
            elif one is not self._current:
                one.is_overtaken = True
        return True

    def _backward_hook(self, graph: _Graph, candidate: Candidate | None) -> Any:
        selection = weakref.ref(self)
        recorded = None if candidate is None else weakref.ref(candidate)

        def begins(gradients: Any) -> None:
            found = selection()
            if found is not None:
                found._backward_begins(graph, None if recorded is None else recorded())

        return begins

    def _begins(self, graph: _Graph, candidate: Candidate) -> Callable[[], None]:
        """As ``_backward_hook``, for what must not keep the graph's token alive."""
        selection, token = weakref.ref(self), weakref.ref(graph)
        recorded = weakref.ref(candidate)

        def begins() -> None:
            found, graph = selection(), token()
            if found is not None and graph is not None:
                found._backward_begins(graph, recorded())

        return begins

    def _backward_begins(self, graph: _Graph, candidate: Candidate | None) -> None:
        with self.guard("backward pass"):
            if self._chosen is not None:
                return
            if not self._in_backward:
                if self._notice_cleared() and any(one.is_cleared for one in self._candidates):
                    self._confirmations = 0
                self._in_backward = True
                self._when_backward_ends()
                self.observer.backward_begins()
            self.fed += not graph.is_used
            graph.is_used = True
            if candidate is not None:
                candidate.is_used, candidate.is_cleared = True, False
                candidate.is_overtaken = False

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
            self._gradients.settle()
            self.observer.backward_ends()
        self.backward_ended()

    def _drop(self, candidates: Iterable[Candidate]) -> None:
        for one in candidates:
            one.collected.discard()
            if one in self._candidates:
                self._candidates.remove(one)


def _nothing() -> None:
    return
