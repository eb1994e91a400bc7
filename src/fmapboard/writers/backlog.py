"""Bound the number of logged steps that wait to be written, and decide when writing is urgent.

If the process is killed, the steps that are not yet written are lost. So the backlog (the steps
that are queued or being written) holds at most 8 steps.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")

MAX_STEPS = 8


class Backlog(Generic[T]):
    """A queue of items plus the item being worked on.

    One thread adds and another one takes, without a lock: an exception that a signal handler
    raises in the middle of a method could leave it locked. ``len()`` counts both kinds of items.

    Args:
        max_bytes: Bound of the queued items in bytes. A larger item is accepted if the queue is
            empty.
        in_steps: Also apply the bound of ``MAX_STEPS``.
    """

    def __init__(self, max_bytes: int, *, in_steps: bool) -> None:
        self._max_bytes, self._in_steps = max_bytes, in_steps
        self._queued: deque[tuple[T, int]] = deque()
        self._is_working = False

    def __len__(self) -> int:
        return len(self._queued) + self._is_working

    @property
    def nbytes(self) -> int:
        """Size of the queued items in bytes."""
        return sum(nbytes for _, nbytes in tuple(self._queued))

    @property
    def is_queued(self) -> bool:
        """True if an item is queued that is not being worked on."""
        return bool(self._queued)

    @property
    def is_at_bound(self) -> bool:
        """True if no further step may be added before one is done."""
        return self._in_steps and len(self) >= MAX_STEPS

    def is_full(self, nbytes: int) -> bool:
        """True if adding an item of ``nbytes`` bytes now would exceed a bound."""
        if not self._queued:
            return False
        return self.is_at_bound or self.nbytes + nbytes > self._max_bytes

    def add(self, item: T, nbytes: int) -> None:
        """Append an item."""
        self._queued.append((item, nbytes))

    def take(self) -> tuple[T, int] | None:
        """Remove the oldest queued item, which counts as being worked on until ``done``.

        Returns:
            The item and its size in bytes; None if none is queued.
        """
        self._is_working = True  # before the item leaves the queue, so that it is always counted
        try:
            return self._queued.popleft()
        except IndexError:
            self._is_working = False
            return None

    def done(self) -> None:
        """Mark the item that was taken as finished."""
        self._is_working = False

    def drop_oldest(self) -> bool:
        """Remove the oldest queued item; False if none is queued."""
        try:
            self._queued.popleft()
        except IndexError:
            return False
        return True

    def clear(self) -> None:
        """Remove all items, including the one being worked on."""
        self._queued.clear()
        self._is_working = False


_MIN_CALM_ADDITIONS, _MAX_CALM_ADDITIONS = 8, 2**14


class Urgency:
    """Decides whether the worker runs at normal priority.

    Urgency is high from the time the backlog reaches its bound until it has been short for enough
    consecutive additions. That number doubles each time, so that a busy machine does not switch
    back and forth forever.
    """

    def __init__(self) -> None:
        self.is_high = False
        self._calm_additions, self._required = 0, _MIN_CALM_ADDITIONS

    def rise(self) -> None:
        """Record that the backlog has reached its bound."""
        if not self.is_high:
            self.is_high, self._calm_additions = True, 0

    def added(self, before: int) -> None:
        """Record that an item was added to a backlog of ``before`` items."""
        self._calm_additions = self._calm_additions + 1 if before <= 1 else 0
        if self.is_high and self._calm_additions >= self._required:
            self.is_high, self._required = False, min(2 * self._required, _MAX_CALM_ADDITIONS)
