"""Which of a model's trainable parameters no optimizer holds, at each logged step."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor
from torch.optim.optimizer import Optimizer

from fmapboard.capture.optimizers import holding, parameters_of
from fmapboard.model.weak_table import WeakTable


class OptimizerMembership:
    """Knows the optimizers of a model, without keeping them alive.

    Parameters that none of those seen so far holds are searched for in all optimizers of the
    process. That takes tens of ms, so while it finds nothing new it is done at the 1st, 2nd, 4th,
    8th, ... logged step with such parameters.
    """

    def __init__(self) -> None:
        self._known: WeakTable[Optimizer, bool] = WeakTable()
        self._searches = 0
        self._missing: frozenset[int] = frozenset()
        self._versions: dict[int, int] = {}

    def stepping(self, optimizer: Optimizer) -> None:
        """Called when an optimizer of the model steps."""
        self._known[optimizer] = True

    def opens(self, trainable: Mapping[str, Tensor]) -> None:
        """Called when a logged step opens, with the trainable parameters by name."""
        held = self._held()
        self._versions = {id(p): p._version for p in trainable.values() if id(p) not in held}

    def closes(self, trainable: Mapping[str, Tensor]) -> tuple[str, ...] | None:
        """Called when a logged step closes, in which an optimizer stepped.

        Returns:
            Names of the trainable parameters that no optimizer holds and that nothing else has
            changed in the step; None if no optimizer of the model is known.
        """
        if not any(True for _ in self._known):
            return None
        unseen = self._unseen(trainable)
        if unseen:
            self._search(frozenset(unseen))
            unseen = self._unseen(trainable)
        return tuple(
            name
            for one, name in unseen.items()
            if self._versions.get(one) == trainable[name]._version
        )

    def knows(self, trainable: Mapping[str, Tensor]) -> bool:
        """True if an optimizer that was seen so far holds one of these parameters."""
        held = self._held()
        return any(id(parameter) in held for parameter in trainable.values())

    def holds_any(self, trainable: Mapping[str, Tensor]) -> bool:
        """True if an optimizer of this process holds one of these parameters."""
        if not self.knows(trainable):
            self._search(frozenset(map(id, trainable.values())))
        return self.knows(trainable)

    def _search(self, missing: frozenset[int]) -> None:
        is_new = not missing <= self._missing
        self._searches = 1 if is_new else self._searches + 1
        self._missing = missing
        if self._searches & (self._searches - 1) == 0:
            for optimizer in holding(missing):
                self._known[optimizer] = True

    def _unseen(self, trainable: Mapping[str, Tensor]) -> dict[int, str]:
        held = self._held()
        return {id(p): name for name, p in trainable.items() if id(p) not in held}

    def _held(self) -> set[int]:
        return {id(p) for optimizer in self._known for p in parameters_of(optimizer)}
