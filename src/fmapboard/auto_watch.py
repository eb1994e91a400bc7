"""Watch the models of a script that does not call ``watch``: those that its optimizers train."""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.optimizer import Optimizer

from fmapboard.capture.guard import Guard
from fmapboard.errors import FmapboardError, WarnOnce
from fmapboard.gradients.optimizer_hook import StepHook
from fmapboard.gradients.optimizers import COPY, parameters_of
from fmapboard.interrupts import WeakTable
from fmapboard.logger import FeatureMapLogger, is_watched, watch
from fmapboard.model.distributed import is_sharded, world_size
from fmapboard.model.layers import unwrap
from fmapboard.model.living import living
from fmapboard.module_owners import LivingModules, held, inside
from fmapboard.printing import note
from fmapboard.schedule import Every, StepCounter

MOST_MODELS = 16
"""No more models of one script are watched."""
_FINDER = 0
"""Key of the function on an optimizer that looks for its model."""
_RESTARTS = 16
"""After so many optimizers of one model, only the 32nd, 64th, ... of them makes a new logger."""
_COMPARED = 16
"""How many gradients of an optimizer are compared, to tell whether there was a backward pass."""


@dataclass(slots=True, eq=False)
class Trained:
    """An optimizer of the script, and what is known of its steps.

    Attributes:
        reference: the optimizer.
        hook: called after each of its steps.
        steps: how many it has completed, up to when its model is watched or given up.
        gradients: those of its parameters when another optimizer stepped last, with their versions.
        passed: number of the next step of a logger of its model, when it stepped first.
        is_done: nothing is left to find.
    """

    reference: weakref.ref[Optimizer]
    hook: StepHook
    steps: int = 0
    gradients: tuple[tuple[weakref.ref[Tensor], int], ...] = ()
    passed: int | None = None
    is_done: bool = False

    def parameters(self) -> list[Tensor]:
        """What the optimizer updates; nothing once it is deleted."""
        optimizer = self.reference()
        return [] if optimizer is None else parameters_of(optimizer)

    def ids(self) -> set[int]:
        """The ``id`` of each parameter."""
        return {id(parameter) for parameter in self.parameters()}

    def remember_gradients(self) -> None:
        """Note which gradients its parameters have now."""
        with torch._C.DisableTorchFunction():
            found = [p.grad for p in self.parameters()[:_COMPARED] if p.is_leaf]
            self.gradients = tuple((weakref.ref(g), g._version) for g in found if g is not None)

    def has_same_gradients(self) -> bool:
        """True if its gradients are still those noted, but for a scaler's change in place."""
        with torch._C.DisableTorchFunction():
            now = [p.grad for p in self.parameters()[:_COMPARED] if p.is_leaf]
        held = {id(gradient): gradient for gradient in now if gradient is not None}
        for reference, version in self.gradients:
            gradient = reference()
            if gradient is None or id(gradient) not in held or gradient._version > version + 1:
                return False
        return bool(self.gradients)


@dataclass(slots=True, eq=False)
class Watched:
    """A model of the script that is watched.

    Attributes:
        model: the module, unwrapped.
        board: its logger.
        steps: counts its steps.
        name: what its tags begin with; None for nothing.
        place: where it is logged; empty on a rank that writes nothing.
        restarts: how many optimizers trained it after its first one was deleted.
    """

    model: weakref.ref[nn.Module]
    board: weakref.ref[FeatureMapLogger]
    steps: StepCounter
    name: str | None
    place: str
    restarts: int = 0

    def open_board(self) -> FeatureMapLogger | None:
        """The logger, if it is open."""
        board = self.board()
        return None if board is None or board.is_closed else board


class Optimizers:
    """The optimizers of the script, and which of them have stepped on one backward pass."""

    def __init__(self) -> None:
        self._known: WeakTable[Optimizer, Trained] = WeakTable()
        self._groups: list[list[Trained]] = []
        self._graph_task = -1

    def add(self, optimizer: Optimizer, function: Any) -> None:
        """Call a function after each of its steps; does nothing for one that is known."""
        if self._known.get(optimizer) is None:
            hook = StepHook(optimizer)
            hook.call(_FINDER, function)
            self._known[optimizer] = Trained(weakref.ref(optimizer), hook)

    def get(self, optimizer: Optimizer) -> Trained | None:
        """What is known of an optimizer."""
        return self._known.get(optimizer)

    def all(self, *, stepped: bool) -> list[Trained]:
        """Those that have stepped, or those that have not."""
        found = [self._known.get(optimizer) for optimizer in self._known]
        return [known for known in found if known is not None and bool(known.steps) == stepped]

    def stepped_first(self, trained: Trained) -> None:
        """Put an optimizer into a group, and note which gradients the others have now."""
        task = torch._C._current_graph_task_id()
        is_same = task != -1 and task == self._graph_task
        if self._groups and (is_same or trained.has_same_gradients()):
            self._groups[-1].append(trained)
        else:
            self._groups.append([trained])
        self._graph_task = task
        for other in self.all(stepped=False):
            other.remember_gradients()

    def take_groups(self) -> list[list[Trained]]:
        """The groups since this was called last: those who step on one backward pass, in order."""
        groups = self._groups
        self._groups = []
        return groups


@dataclass(eq=False)
class AutoWatch:
    """Watches each model from the first step of its optimizer on.

    Optimizers are made known by ``created``. After an optimizer's first step, the outermost module
    that owns its parameters is watched. Optimizers of one module that step on the gradients of one
    backward pass count as one; others have models of their own: the outermost modules that contain
    no parameter of another one, each logged under a name. So the choice waits until each of them
    has stepped, or one has stepped twice.

    Args:
        log_dir: as of ``watch``.
        every: a number of steps.
        options: the other options of ``watch``.
        say: called with a line for the user.
        is_launched: every rank of a distributed training runs this.

    Attributes:
        watched: the models that are watched, or were.
        kept: names of the models that the script itself watches.
        stepped: True once an optimizer has stepped.
    """

    log_dir: Any
    every: int
    options: dict[str, Any]
    say: Callable[[str], None]
    is_launched: bool
    watched: list[Watched] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    stepped: bool = False

    def __post_init__(self) -> None:
        self._process = os.getpid()
        self._guard = Guard(WarnOnce())
        self._optimizers = Optimizers()

    def created(self, optimizer: Optimizer) -> None:
        """Called in the constructor of an optimizer, and when its state is loaded."""
        if os.getpid() == self._process and not hasattr(optimizer, COPY):
            self._optimizers.add(optimizer, self._after_step)

    def close(self) -> None:
        """Write what is pending and close the loggers."""
        for watched in self.watched:
            board = watched.open_board()
            if board is None:
                continue
            if watched.steps.next == 1:  # nothing was missed
                board.end.run.usage.explains = False
                self.say(f"{watched.name or 'the model'} was trained for one step only: not logged")
                watched.place = ""
            board.close()

    def _after_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        """Called after each step of an optimizer whose model is not watched yet."""
        trained = self._optimizers.get(optimizer)
        if trained is None or trained.is_done or os.getpid() != self._process:
            return
        self.stepped = True
        trained.steps += 1
        is_found = False
        with self._guard("finding the model that an optimizer trains"):
            if not self._continue(trained, optimizer):
                self._find(trained)
            is_found = True
        trained.is_done |= not is_found

    def _continue(self, trained: Trained, optimizer: Optimizer) -> bool:
        """Go on with the loggers of models that another optimizer has trained so far.

        If that one exists and steps too, it stays the one whose steps are counted.

        Returns:
            False if no such model is watched.
        """
        ids = trained.ids()
        is_continued = False
        for watched in self.watched:
            model = watched.model()
            if model is None or ids.isdisjoint(held(model)):
                continue
            is_continued = True
            board = watched.open_board()
            if board is None:
                self._restart(watched, model, trained)
            elif trained.passed is None:
                trained.passed = watched.steps.next
            else:
                if trained.passed == watched.steps.next:
                    board.count(optimizer, trained.hook)
                trained.is_done = True
        return is_continued

    def _restart(self, watched: Watched, model: nn.Module, trained: Trained) -> None:
        """Open a new logger for a model whose optimizer was deleted, with its next step."""
        trained.is_done = True
        watched.restarts += 1
        count = watched.restarts
        self.options["rehearse"] = False  # it was at the beginning
        if count <= _RESTARTS or count & (count - 1) == 0:
            board = self._logger(model, watched.steps.next + 1, watched.name, trained)
            watched.board = weakref.ref(board)
            watched.steps = board.end.run.steps

    def _find(self, trained: Trained) -> None:
        """Watch the models of the optimizers that have stepped, unless others must step first."""
        modules = LivingModules()
        if trained.steps == 1:
            self._optimizers.stepped_first(trained)
            inside = set[int]().union(*map(held, modules.outermost(trained.ids(), ())))
            if any(
                (other.ids() - trained.ids()) & inside
                for other in self._optimizers.all(stepped=False)
            ):
                return
        for group in self._optimizers.take_groups():
            ids = {key for member in group for key in member.ids()}
            others = {
                key for other in self._optimizers.all(stepped=True) for key in other.ids()
            } - ids
            last = group[-1]
            roots = modules.outermost(ids, others)
            for root in roots:
                self._watch(root, modules, last)
            for member in group:
                member.is_done = True
                if member is not last:
                    member.hook.drop(_FINDER)
            if not roots:
                kind = type(last.reference()).__name__
                self.say(f"no module owns what {kind} updates, so it is not watched")

    def _watch(self, root: nn.Module, modules: LivingModules, trained: Trained) -> None:
        """Watch a module from its second step on, unless the script does so."""
        model = unwrap(root)
        kind = type(model).__name__
        if any(map(is_watched, inside(root))):
            self.kept.append(kind)
            return
        if len(self.watched) == MOST_MODELS:
            self.say(f"{kind} is not watched: {MOST_MODELS} models of this script are")
            return
        if not self.is_launched and world_size() > 1 and self._needs_ranks(model):
            self.say(
                f"{kind} is not watched: its ranks were started by the script itself, and each "
                "must take part; start them with torchrun -m fmapboard run"
            )
            return
        name = self._name(root, modules)
        try:
            board = self._logger(root, trained.steps, name, trained)
        except FmapboardError as error:
            self.say(f"{kind} is not watched: {error}")
            return
        run = board.end.run
        place = str(run.pipeline.log_dir) if run.writes else ""
        self.watched.append(Watched(weakref.ref(model), weakref.ref(board), run.steps, name, place))
        if run.writes:
            by = type(trained.reference()).__name__
            named = f"{name} ({kind})" if name not in (None, kind) else kind
            layers = len(run.session.registry.layers)
            self.say(f"watching {named}, trained by {by}: {layers} layers, logged into {place}")

    def _needs_ranks(self, model: nn.Module) -> bool:
        return bool(self.options.get("reduce_statistics")) or is_sharded(model)

    def _logger(
        self, root: nn.Module, step: int, name: str | None, trained: Trained
    ) -> FeatureMapLogger:
        """A logger whose first step is ``step``; raises as ``watch`` does."""
        optimizer = trained.reference()
        assert optimizer is not None  # it has just stepped
        board = watch(
            root,
            self.log_dir,
            scaler=_scaler_of(optimizer),
            every=Every(self.every, first=step),
            start_step=step,
            name=name,
            **self.options,
        )
        board.show = note  # the output is the script's own
        board.count(optimizer, trained.hook)
        trained.hook.drop(_FINDER)
        return board

    def _name(self, root: nn.Module, modules: LivingModules) -> str | None:
        """What tells a model from the others; None for the first one, if it is the only one."""
        everything = [*self._optimizers.all(stepped=True), *self._optimizers.all(stepped=False)]
        trained = set[int]().union(*(other.ids() for other in everything))
        if not self.watched and len(modules.outermost(trained - held(root), ())) == 0:
            return None
        own = (root, unwrap(root))
        main = vars(sys.modules["__main__"])
        called = [name for name, value in list(main.items()) if any(value is o for o in own)]
        first = (called or [modules.name_in_parent(root) or type(own[1]).__name__])[0]
        first = first.replace("/", "_") or "model"
        taken = {watched.name for watched in self.watched}
        name = first
        while name in taken:
            number = int(name.rpartition("_")[2]) + 1 if name != first else 2
            name = f"{first}_{number}"
        return name


def _scaler_of(optimizer: Optimizer) -> Any:
    """The GradScaler that steps an optimizer, if any."""
    for scaler in living(torch.amp.GradScaler):
        if scaler.is_enabled() and id(optimizer) in scaler._per_optimizer_states:
            return scaler
    return None
