"""Bound the number of logged steps that wait to be written, and decide when writing is urgent.

If the process is killed, the steps that are not yet written are lost. So the backlog (the steps
that are queued or being written) is bounded: 8 steps, or the steps of the last 2 s of training,
whichever is more. Time that training spends waiting for the queue does not count as training.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")

MAX_STEPS = 8
MAX_SECONDS = 2.0
"""Bound of the backlog in seconds of training, if that is more than ``MAX_STEPS`` steps."""


class Backlog(Generic[T]):
    """A queue of items plus the item being worked on; not thread-safe.

    ``len()`` counts both. Times (``now``) are in seconds of training, on the caller's clock.

    Args:
        max_bytes: Bound of the queued items in bytes. A larger item is accepted if the queue is
            empty.
        in_steps: Also apply the bound of ``MAX_STEPS`` and ``MAX_SECONDS``.
    """

    def __init__(self, max_bytes: int, *, in_steps: bool) -> None:
        self._max_bytes, self._in_steps = max_bytes, in_steps
        self._queued: deque[tuple[T, int, float]] = deque()
        self._working_since: float | None = None
        self._last_added = float("inf")
        self._recent: deque[float] = deque()
        self.nbytes = 0

    def __len__(self) -> int:
        return len(self._queued) + (self._working_since is not None)

    def is_full(self, nbytes: int, now: float) -> bool:
        """True if adding an item of ``nbytes`` bytes now would exceed a bound."""
        if not self._queued:
            return False
        if self.nbytes + nbytes > self._max_bytes:
            return True
        recent = sum(added > now - MAX_SECONDS for added in self._recent)
        return self._in_steps and len(self) + 1 > max(MAX_STEPS, recent + 1)

    def add(self, item: T, nbytes: int, now: float) -> bool:
        """Append an item; True if the backlog has now reached its bound in steps.

        That is the case if it has ``MAX_STEPS`` steps or more that, including the next one, span at
        least ``MAX_SECONDS`` of training.
        """
        step_seconds, self._last_added = max(0.0, now - self._last_added), now
        self._queued.append((item, nbytes, now))
        self.nbytes += nbytes
        if not self._in_steps:
            return False
        while self._recent and self._recent[0] <= now - MAX_SECONDS:
            self._recent.popleft()
        self._recent.append(now)
        oldest = self._queued[0][2] if self._working_since is None else self._working_since
        return len(self) >= MAX_STEPS and now + step_seconds - oldest >= MAX_SECONDS

    @property
    def is_queued(self) -> bool:
        """True if an item is queued that is not being worked on."""
        return bool(self._queued)

    def take(self) -> T:
        """Remove the oldest queued item; it counts as being worked on until ``done``."""
        item, nbytes, self._working_since = self._queued.popleft()
        self.nbytes -= nbytes
        return item

    def done(self) -> None:
        """Mark the item that was taken as finished."""
        self._working_since = None

    def drop_oldest(self) -> None:
        """Remove the oldest queued item."""
        self.nbytes -= self._queued.popleft()[1]

    def clear(self) -> None:
        """Remove all items, including the one being worked on."""
        self._queued.clear()
        self.nbytes, self._working_since = 0, None


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
