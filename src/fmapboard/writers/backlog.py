"""How many logged steps may wait to be written, and when writing them becomes urgent.

Until a step is written, a process that is killed without warning loses it. So the backlog (steps
that are queued or being written) has a bound: 8 steps, or the steps of the last 2 s of training,
whichever is more. Time for which training waited for the queue does not count as training.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")

MAX_STEPS = 8
MAX_SECONDS = 2.0
"""The backlog's bound: the steps of this many seconds, where that is more than `MAX_STEPS`."""


class Backlog(Generic[T]):
    """A queue of items and the one that is being worked on; not thread safe.

    Its length counts all of them. ``now`` is in seconds of training, on a clock of the caller's.

    Args:
        max_bytes: bound of the queued items. One that is larger is accepted into an empty queue.
        in_steps: the bound of `MAX_STEPS` and `MAX_SECONDS` applies too.
    """

    def __init__(self, max_bytes: int, *, in_steps: bool) -> None:
        self._max_bytes, self._in_steps = max_bytes, in_steps
        self._queued: deque[tuple[T, int, float]] = deque()
        self._at_work_since: float | None = None
        self._last_added = float("inf")
        self._recent: deque[float] = deque()
        self.nbytes = 0

    def __len__(self) -> int:
        return len(self._queued) + (self._at_work_since is not None)

    def is_full(self, nbytes: int, now: float) -> bool:
        """True if an item of ``nbytes`` bytes, added now, would exceed a bound."""
        if not self._queued:
            return False
        if self.nbytes + nbytes > self._max_bytes:
            return True
        recent = sum(added > now - MAX_SECONDS for added in self._recent)
        return self._in_steps and len(self) + 1 > max(MAX_STEPS, recent + 1)

    def add(self, item: T, nbytes: int, now: float) -> bool:
        """Append an item; True if the backlog has now reached its bound.

        The steps in it then hold up `MAX_SECONDS` of training, the step that comes next included.
        """
        step_seconds, self._last_added = max(0.0, now - self._last_added), now
        self._queued.append((item, nbytes, now))
        self.nbytes += nbytes
        if not self._in_steps:
            return False
        while self._recent and self._recent[0] <= now - MAX_SECONDS:
            self._recent.popleft()
        self._recent.append(now)
        oldest = self._queued[0][2] if self._at_work_since is None else self._at_work_since
        return len(self) >= MAX_STEPS and now + step_seconds - oldest >= MAX_SECONDS

    @property
    def is_queued(self) -> bool:
        """True if an item is queued that nobody works on yet."""
        return bool(self._queued)

    def take(self) -> T:
        """Remove the oldest queued item, which is being worked on until `done`."""
        item, nbytes, self._at_work_since = self._queued.popleft()
        self.nbytes -= nbytes
        return item

    def done(self) -> None:
        """Count the item that was taken as finished."""
        self._at_work_since = None

    def drop_oldest(self) -> None:
        """Remove the oldest queued item."""
        self.nbytes -= self._queued.popleft()[1]

    def clear(self) -> None:
        """Remove every item, the one at work too."""
        self._queued.clear()
        self.nbytes, self._at_work_since = 0, None


_LEAST_CALM, _MOST_CALM = 8, 2**14


class Urgency:
    """Whether the backlog has to be worked off at normal priority.

    From the moment that the backlog reaches its bound until it has been short at enough additions
    in a row: twice as many after each time, so that a machine that stays busy does not pay for
    going back and forth.
    """

    def __init__(self) -> None:
        self.is_high = False
        self._calm, self._enough = 0, _LEAST_CALM

    def rise(self) -> None:
        """The backlog has reached its bound."""
        if not self.is_high:
            self.is_high, self._calm = True, 0

    def added(self, before: int) -> None:
        """An item was added, and there were ``before`` items in the backlog."""
        self._calm = self._calm + 1 if before <= 1 else 0
        if self.is_high and self._calm >= self._enough:
            self.is_high, self._enough = False, min(2 * self._enough, _MOST_CALM)
