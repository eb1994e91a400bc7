"""Reads parameters right before and right after an optimizer updates them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import is_

import torch
from torch import Tensor, nn
from torch.optim.optimizer import Optimizer

from fmapboard.capture.gradient_row_reader import GradientRowReader
from fmapboard.capture.isolation import aside
from fmapboard.capture.row_copies import PLAIN, RowCopy, read_again, row_copies
from fmapboard.capture.side_thread import SideThread
from fmapboard.measure.gradient_rows import GradientRows
from fmapboard.measure.spare_memory import SpareMemory
from fmapboard.measure.updates import Updates

_EMBEDDINGS = (nn.Embedding, nn.EmbeddingBag)

_MANY_VALUES = 1 << 20
"""Parameters of an optimizer with fewer values are read faster than a thread is woken."""

_SCATTERED = 4
"""Reading scattered rows takes about as long as reading this many times their bytes in sequence."""


@dataclass(frozen=True, eq=False, slots=True)
class _Ahead:
    """Rows of parameters that were read before the optimizer's step.

    Attributes:
        parameters: the parameters, by name.
        state: their state right before they were read.
        copies: their rows.
    """

    parameters: dict[str, Tensor]
    state: list[int]
    copies: list[RowCopy]

    def fit(self, parameters: dict[str, Tensor]) -> bool:
        """True if the rows are those of these parameters as they are now."""
        own = self.parameters
        is_same = len(own) == len(parameters) and all(map(is_, own.values(), parameters.values()))
        return is_same and self.state == _state(parameters)


@dataclass(frozen=True, eq=False, slots=True)
class _Begun:
    """Rows of parameters whose update has begun.

    Attributes:
        copy: their rows before the update.
        reader: reads their gradients; None if they are not read.
        gradients: returns the rows of the gradients; to be called after the update.
        is_read: True if those were read before the update.
    """

    copy: RowCopy
    reader: GradientRowReader | None = None
    gradients: Callable[[], GradientRows | None] = lambda: None
    is_read: bool = False


class UpdateReader:
    """Estimates the size of the update that each parameter gets in one optimizer step.

    Runs on the training thread. Large models on the CPU are read before the update on a thread of
    its own, from the end of the forward pass on; parameters that change before the optimizer's step
    are read again. Rows of their gradients are read there during the update. Of sharded parameters
    it reads this process's shard.

    Args:
        model: the unwrapped model, in which it looks for embeddings.
        enabled: False reads nothing.
    """

    def __init__(self, model: nn.Module, *, enabled: bool = True) -> None:
        self._model, self._is_enabled = model, enabled
        self._known, self._tables = set[int](), frozenset[str]()
        self._versions: dict[int, int] = {}
        self._depths = Counter[int]()
        self._memory, self._side = SpareMemory(), SideThread()
        self._last: dict[int, tuple[str, ...]] = {}
        self._ahead: dict[int, Callable[[], _Ahead | None]] | None = None
        self._begun: dict[int, list[_Begun]] = {}
        self._ended: list[Updates] = []
        self._editing = set[int]()  # optimizers that change gradients through ``.data``

    def forget(self) -> None:
        """Discard what was read."""
        for unused in self._ahead or ():
            del self._last[unused]
        self._versions, self._begun, self._ended, self._ahead = {}, {}, [], None
        self._depths.clear()

    def end(self) -> None:
        """End the thread that reads ahead; reading again starts another one."""
        self._side.end()

    def read_ahead(self, parameters: Mapping[str, Tensor]) -> None:
        """Called when a forward pass has ended: begin to read what will probably be updated.

        Those are the parameters that each optimizer updated at the last logged step, if they are
        many. Later passes before the update begin nothing.

        Args:
            parameters: those of the model, by name.
        """
        if not self._is_enabled or self._ahead is not None:
            return
        self._ahead = {
            optimizer: self._side.start(partial(_read_ahead, names, parameters, self._memory))
            for optimizer, names in self._last.items()
        }

    def announce(self, optimizer: Optimizer, parameters: Iterable[Tensor]) -> None:
        """Called before an optimizer's step, also before its closure is evaluated.

        A closure whose optimizer changes parameters around it (sharpness-aware minimization) calls
        ``before`` too late; those parameters are then left out.
        """
        self._depths[id(optimizer)] += 1  # a step may call that of its base class
        self._versions.update((id(p), p._version) for p in parameters)

    def before(
        self, optimizer: Optimizer, parameters: dict[str, Tensor], *, is_scaled: bool = False
    ) -> None:
        """Copy a subsample of the parameters that the optimizer is about to update.

        Reads the gradients of large ones on the CPU too: beside the update if there was a
        read-ahead, else at once.

        Args:
            optimizer: the optimizer; ``after`` recognizes it.
            parameters: those that have a gradient, by name; none if they were read before.
            is_scaled: True if the gradients are still multiplied by a loss scale.
        """
        if not self._is_enabled or not parameters:
            return
        own = parameters
        if known := self._versions:
            own = {n: p for n, p in own.items() if known.get(id(p), p._version) == p._version}
        reading = self._ahead.pop(id(optimizer), None) if self._ahead else None
        ahead = reading() if reading is not None else None
        if ahead is not None and ahead.fit(own):
            copies = ahead.copies
        else:
            self._find_tables((name, p) for name, p in own.items() if p.dim() == 2)
            copies = row_copies(own, self._memory)
            self._last.pop(id(optimizer), None)
            if _pays_ahead(own.values()):
                self._last[id(optimizer)] = tuple(own)
        begun = self._begun.setdefault(id(optimizer), [])
        for copy in copies:
            if is_scaled or not copy.in_part or id(optimizer) in self._editing:
                begun.append(_Begun(copy))
            else:
                reader = GradientRowReader(copy.in_part, self._memory)
                begun.append(self._begin(copy, reader, beside=reading is not None))

    def _begin(self, copy: RowCopy, reader: GradientRowReader, *, beside: bool) -> _Begun:
        """Begin to read gradients on the side thread, or read them now."""
        if beside:
            return _Begun(copy, reader, self._side.start(reader.read))
        with aside("cpu"):
            found = reader.read()
        return _Begun(copy, reader, lambda: found, is_read=True)

    def _find_tables(self, matrices: Iterable[tuple[str, Tensor]]) -> None:
        """Remember which parameters are weights of embeddings; listing modules takes long."""
        fresh = {id(parameter): name for name, parameter in matrices}
        if fresh.keys() <= self._known:
            return
        self._known |= fresh.keys()
        tables = {id(m.weight) for m in self._model.modules() if isinstance(m, _EMBEDDINGS)}
        self._tables |= {name for found, name in fresh.items() if found in tables}

    def after(self, optimizer: Optimizer | None = None) -> None:
        """Called when an optimizer has updated its parameters: read them again.

        Args:
            optimizer: the optimizer; None for all of them.
        """
        if optimizer is not None:
            self._depths[id(optimizer)] -= 1
            if self._depths[id(optimizer)]:
                return
        for done in [id(optimizer)] if optimizer is not None else list(self._begun):
            for device, own in groupby(self._begun.pop(done, ()), _device_type):
                self._read_again(done, device, list(own))

    def _read_again(self, optimizer: int, device_type: str, begun: list[_Begun]) -> None:
        """Read what was copied of parameters on one type of device."""
        with aside(device_type, _SCATTERED * sum(one.copy.copied.nbytes for one in begun)):
            found = [
                read_again(one.copy, self._tables, self._gradients(optimizer, one)) for one in begun
            ]
        self._ended += [updates for updates in found if updates is not None]

    def _gradients(self, optimizer: int, begun: _Begun) -> GradientRows | None:
        """The rows of the gradients; None if the optimizer may have changed them."""
        if begun.reader is None or not begun.reader.is_unchanged():
            return None
        rows = begun.gradients()
        if rows is not None and begun.is_read and not begun.reader.holds(rows):
            self._editing.add(optimizer)
            return None
        return rows

    def pending(self) -> tuple[Updates, ...]:
        """All updates that have ended."""
        return tuple(self._ended)


def _device_type(begun: _Begun) -> str:
    return begun.copy.device_type


def _read_ahead(
    names: Iterable[str], parameters: Mapping[str, Tensor], memory: SpareMemory
) -> _Ahead | None:
    """Read the rows of some parameters; None if there is no such parameter any more."""
    try:
        own = {name: parameters[name] for name in names}
    except KeyError:
        return None
    return _Ahead(own, _state(own), row_copies(own, memory))


def _state(parameters: Mapping[str, Tensor]) -> list[int]:
    """Of each parameter its version and where its values are."""
    own = parameters.values()
    return [p._version for p in own] + [p.data_ptr() for p in own]


def _pays_ahead(parameters: Collection[Tensor]) -> bool:
    """True for many values on the CPU, if torch may use several threads."""
    return (
        torch.get_num_threads() > 1
        and all(type(p) in PLAIN and p.is_cpu for p in parameters)
        and sum(p.numel() for p in parameters) >= _MANY_VALUES
    )
