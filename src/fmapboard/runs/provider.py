"""What is asked of runs: the provider that answers, the one that reads event files, the cache."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from types import SimpleNamespace
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar
from weakref import WeakValueDictionary

from fmapboard.formats.tab_records import PLUGIN_NAME
from fmapboard.runs.events import SCALARS
from fmapboard.runs.log import Datum, EventLog, TagSeries

T = TypeVar("T")
Build: TypeAlias = Callable[[T | None], T]
"""Builds a value, given its last version or None; it may return that itself."""
OVERHEAD = 500
"""Estimated bytes per entry in addition to its value: key, object header, dictionary slot."""


class Cache:
    """Keeps the most recently used values; thread-safe.

    Args:
        max_bytes: limit, overhead included; the last value is kept in any case.
        most: a larger value is not kept, bytes.
    """

    def __init__(self, max_bytes: int, most: float = math.inf) -> None:
        self._max_bytes = max_bytes
        self._most = most
        self._values: OrderedDict[Hashable, tuple[int, Any]] = OrderedDict()
        # A lock per key, for as long as it is used.
        self._building: WeakValueDictionary[Hashable, threading.Lock] = WeakValueDictionary()
        self._lock = threading.Lock()
        self.held = 0
        """Bytes in use, overhead included."""

    def get(self, key: Hashable) -> Any:
        """The value that was put last under a key, or None."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            _, value = self._values[key]
            return value

    def put(self, key: Hashable, value: object, nbytes: int) -> None:
        """Keep a value; evicts the least recently used ones if the limit is exceeded."""
        size = nbytes + OVERHEAD
        if size > self._most:
            return
        with self._lock:
            replaced, _ = self._values.pop(key, (0, None))
            self._values[key] = size, value
            self.held += size - replaced
            while self.held > self._max_bytes and len(self._values) > 1:
                _, evicted = self._values.popitem(last=False)
                freed, _ = evicted
                self.held -= freed

    def renew(self, key: Hashable, build: Build[T], nbytes: Callable[[T], int]) -> T:
        """Build a value; concurrent calls with the same key wait for each other.

        Args:
            key: what the value is kept under.
            build: returns the value; see `Build`.
            nbytes: size of a value; one of 0 bytes is not kept: of a name that somebody made up,
                there is nothing.
        """
        with self._lock:
            building = self._building.setdefault(key, threading.Lock())
        with building:
            value = build(self.get(key))
            size = nbytes(value)
            if size:
                self.put(key, value, size)
        return value


IMAGES = "images"
HISTOGRAMS = "histograms"
BUILT = 128 * 2**20
"""Bytes of parsed records to cache."""


class Point(NamedTuple):
    """One step of a blob series; ``blobs`` has one entry per blob, by which the provider knows it.

    Attributes:
        wall_time: s; 0 if it is not finite.
    """

    plugin: str
    run: str
    tag: str
    step: int
    wall_time: float
    blobs: Sequence[Any]


Blob: TypeAlias = tuple[Point, int]
"""A blob: its point, and its index in it."""


class Provider(Protocol):
    """Answers questions about runs; thread-safe.

    Series of other tags than those asked for, and runs that do not exist, are missing in its
    answers.
    """

    def runs(self) -> Mapping[str, tuple[float | None, Sequence[str]]]:
        """Run -> wall time of its first event, s, or None; tags of the tab's records, unordered."""

    def points(self, plugin: str, run: str, tags: Iterable[str]) -> Mapping[str, list[Point]]:
        """Tag -> the steps that are kept of a run's blob series, ascending.

        Args:
            plugin: name of the plugin that the series belong to.
            run: name of the run.
            tags: the tags to read.
        """

    def tags_of(self, plugin: str, run: str) -> Sequence[str]:
        """Tags of a run's series that belong to a plugin, in any order."""

    def scalars(self, run: str, tags: Iterable[str]) -> Mapping[str, Sequence[Any]]:
        """Tag -> data points with ``step`` and ``value``, ascending."""

    def histograms(self, run: str, tags: Iterable[str]) -> Mapping[str, Sequence[Any]]:
        """Tag -> data points with ``step`` and ``numpy``, ascending.

        ``numpy`` is [K, 3]: the left edge, right edge and count of each bucket.
        """

    def blobs(self, requested: Sequence[Blob], *, keep: bool = True) -> list[bytes | None]:
        """The requested blobs, in order; None for a blob that cannot be read.

        Args:
            requested: the blobs.
            keep: True to cache the blobs for later requests.
        """

    def built(self, key: tuple[str, ...], build: Build[T], nbytes: Callable[[T], int]) -> T:
        """A value that is kept for later requests; see `Cache.renew`."""

    def unread(self, run: str, tag: str, read: float) -> int | None:
        """The newest step of a series that is not read yet; see `LogEnds.unread`."""

    def restore(self, run: str, steps: Collection[int]) -> None:
        """Have `points` return these logged steps of a run even if they were dropped."""


class _Histogram(NamedTuple):
    """A histogram, read when its numbers are asked for: a chart shows a few of many steps."""

    log: EventLog
    datum: Datum

    @property
    def step(self) -> int:
        """Number of the step."""
        return self.datum.step

    @property
    def numpy(self) -> Any:
        """See `Provider.histograms`; None if it cannot be read."""
        return self.log.array(self.datum)


class Files:
    """A provider over event files.

    Args:
        logs: by name of the run.
        most: bytes of parsed records to cache.
    """

    def __init__(self, logs: Mapping[str, EventLog], most: int = BUILT) -> None:
        self._logs = logs
        self.built = Cache(most).renew  # see `Provider`

    def runs(self) -> dict[str, tuple[float | None, list[str]]]:
        """See `Provider`."""
        found = {}
        for run, log in self._logs.items():
            tags = self.tags_of(PLUGIN_NAME, run)
            found[run] = (log.started, tags)
        return found

    def points(self, plugin: str, run: str, tags: Iterable[str]) -> dict[str, list[Point]]:
        """See `Provider`."""
        found: dict[str, list[Point]] = {}
        with self._locked(run):
            for tag, series in self._series(plugin, run, tags):
                points = []
                for step, wall_time, count in series.outlines():
                    at = finite(wall_time)
                    point = Point(plugin, run, tag, step, wall_time=at, blobs=range(count))
                    points.append(point)
                found[tag] = points
        return found

    def tags_of(self, plugin: str, run: str) -> list[str]:
        """See `Provider`."""
        with self._locked(run):
            return [tag for tag, _ in self._series(plugin, run, None)]

    def scalars(self, run: str, tags: Iterable[str]) -> dict[str, list[Any]]:
        """See `Provider`."""
        found: dict[str, list[Any]] = {}
        for tag, data in self._data(SCALARS, run, tags).items():
            points = []
            for datum in data:
                if datum.number is not None:
                    point = SimpleNamespace(step=datum.step, value=datum.number)
                    points.append(point)
            found[tag] = points
        return found

    def histograms(self, run: str, tags: Iterable[str]) -> dict[str, list[Any]]:
        """See `Provider`."""
        found: dict[str, list[Any]] = {}
        for tag, data in self._data(HISTOGRAMS, run, tags).items():
            found[tag] = [_Histogram(self._logs[run], datum) for datum in data]
        return found

    def blobs(self, requested: Sequence[Blob], *, keep: bool = True) -> list[bytes | None]:
        """See `Provider`; nothing is cached."""
        strings = cache(self._strings)  # mostly several blobs of a record are requested
        found: list[bytes | None] = []
        for point, index in requested:
            blobs = strings(point)
            is_stored = index < len(blobs)
            found.append(blobs[index] if is_stored else None)
        return found

    def unread(self, run: str, tag: str, read: float) -> int | None:
        """None: the files are read to their ends."""
        return None

    def restore(self, run: str, steps: Collection[int]) -> None:
        """Nothing is dropped."""

    def _strings(self, point: Point) -> list[bytes]:
        log = self._logs.get(point.run)
        if log is None:
            return []
        with log.lock:
            series = log.series.get(point.tag)
            datum = None if series is None else series.at(point.step)
        return [] if datum is None else log.strings(datum)

    def _locked(self, run: str) -> AbstractContextManager[Any]:
        """Keeps a run as it is while its series are read."""
        log = self._logs.get(run)
        return nullcontext() if log is None else log.lock

    def _data(self, plugin: str, run: str, tags: Iterable[str]) -> dict[str, list[Datum]]:
        with self._locked(run):
            return {tag: series.ordered() for tag, series in self._series(plugin, run, tags)}

    def _series(
        self, plugin: str, run: str, tags: Iterable[str] | None
    ) -> Iterator[tuple[str, TagSeries]]:
        """The series of a run that belong to a plugin; of these tags, or all."""
        log = self._logs.get(run)
        if log is None:
            return
        asked = log.series if tags is None else dict.fromkeys(tags)
        for tag in asked:
            series = log.series.get(tag)
            if series and series.plugin == plugin:
                yield tag, series


def finite(wall_time: float) -> float:
    """A wall time, s; 0 if it is not finite."""
    return wall_time if math.isfinite(wall_time) else 0.0
