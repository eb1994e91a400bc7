"""TensorBoard's data provider as the one that the routes ask, and the caches for it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from tensorboard import errors, plugin_util
from tensorboard.data.provider import RunTagFilter

from fmapboard.formats.tab_records import PLUGIN_NAME
from fmapboard.runs.events import SCALARS
from fmapboard.runs.log import EventLog
from fmapboard.runs.provider import BUILT, HISTOGRAMS, Cache, Point, finite
from fmapboard.runs.unread import Logdirs, LogEnds

T = TypeVar("T")
_NUDGE_INTERVAL = 0.004  # s
_NUDGES = 25
_THREADS = 8


Calls = Callable[[Sequence[Callable[[], Any]], Callable[[], Any]], list[Any]]
"""Runs functions and returns their results, in order; the first exception is raised."""


def in_turn(calls: Sequence[Callable[[], T]], nudge: Callable[[], Any]) -> list[T]:
    """Run calls one after another in this thread, for a loader in this process."""
    return [call() for call in calls]


class AtOnce:
    """Runs calls concurrently in its own threads, and sends nudges meanwhile; thread safe."""

    def __init__(self) -> None:
        self._workers = ThreadPoolExecutor(_THREADS, "feature-maps-read")
        self._nudgers = ThreadPoolExecutor(_THREADS, "fmapboard-nudge")

    def __call__(self, calls: Sequence[Callable[[], T]], nudge: Callable[[], Any]) -> list[T]:
        """The results, in order; raises the first exception.

        Args:
            calls: functions that may run in any thread.
            nudge: a small call, made only for the packet that it sends; its errors are ignored.
        """
        futures = [self._workers.submit(call) for call in calls]
        for _ in range(_NUDGES):
            if not wait(futures, timeout=_NUDGE_INTERVAL).not_done:
                break
            self._nudgers.submit(nudge)
        return [future.result() for future in futures]


_ALL = 1_000_000
"""Maximum points per series, in effect all that TensorBoard keeps (0 would return none)."""
_CACHE = 48 * 2**20
"""Bytes of blobs to cache."""


class Source:
    """Creates a provider for each request, and owns the caches that these share; thread-safe.

    Args:
        data_provider: TensorBoard's data provider.
        in_process: True if the data is in this process (TensorBoard's Python loader).
        logdirs: the directories that TensorBoard reads, as in `LogEnds`.
    """

    def __init__(self, data_provider: Any, *, in_process: bool, logdirs: Logdirs = ()) -> None:
        self.provider = data_provider
        self.blobs = Cache(_CACHE, _CACHE // 4)
        self.built = Cache(BUILT)
        self.ends = LogEnds(logdirs)
        self.calls: Calls = in_turn if in_process else AtOnce()

    def reader(self, environ: Any) -> Reader:
        """The provider for one request, with its authorization context and experiment.

        Args:
            environ: the request's WSGI environment.
        """
        return Reader(self, plugin_util.context(environ), plugin_util.experiment_id(environ))


@dataclass(frozen=True, slots=True)
class Reader:
    """The `runs.provider.Provider` of the data that one request is authorized to see."""

    source: Source
    context: Any
    experiment: str

    @property
    def provider(self) -> Any:
        """TensorBoard's data provider."""
        return self.source.provider

    def runs(self) -> dict[str, tuple[float | None, list[str]]]:
        """See `Provider`."""
        started = {run.run_name: run.start_time for run in self._ask(self.provider.list_runs)}
        listed = self._ask(self.provider.list_blob_sequences, plugin_name=PLUGIN_NAME)
        return {run: (started.get(run), list(tags)) for run, tags in listed.items()}

    def points(self, plugin: str, run: str, tags: Iterable[str]) -> dict[str, list[Point]]:
        """See `Provider`; steps that were restored are read from the run's files."""
        found = self._listed(self._ask, plugin, run, tags)
        log: EventLog | None = self.source.built.get((self.experiment, "restored", run))
        series = {} if log is None else log.series
        for tag in found.keys() & series:
            known = {point.step for point in found[tag]}
            for at in series[tag].data.values():
                if at.step not in known:
                    blobs, time = [(log, at)] * at.blobs, finite(at.wall_time)
                    found[tag].append(Point(plugin, run, tag, at.step, time, blobs))
            found[tag].sort(key=lambda point: point.step)
        return found

    def tags_of(self, plugin: str, run: str) -> list[str]:
        """See `Provider`."""
        methods = {SCALARS: self.provider.list_scalars, HISTOGRAMS: self.provider.list_tensors}
        method = methods.get(plugin, self.provider.list_blob_sequences)
        listed = self._ask(method, plugin_name=plugin, run_tag_filter=RunTagFilter(runs=[run]))
        return list(listed.get(run, {}))

    def scalars(self, run: str, tags: Iterable[str]) -> dict[str, list[Any]]:
        """See `Provider`."""
        return self._data(self.provider.read_scalars, SCALARS, run, tags)

    def histograms(self, run: str, tags: Iterable[str]) -> dict[str, list[Any]]:
        """See `Provider`."""
        return self._data(self.provider.read_tensors, HISTOGRAMS, run, tags)

    def blobs(
        self, requested: Sequence[tuple[Point, int]], *, keep: bool = True
    ) -> list[bytes | None]:
        """See `Provider`."""
        found = [self.source.blobs.get(self._key(*one)) for one in requested]
        if self.source.calls is not in_turn:
            self.source.ends.fill(found, requested)
        missing = [i for i, blob in enumerate(found) if blob is None]
        calls = [partial(self._blob, *requested[i]) for i in missing]
        for i, blob in zip(missing, self.source.calls(calls, self._nudge), strict=True):
            found[i] = blob
            if keep and blob is not None:
                self.source.blobs.put(self._key(*requested[i]), blob, len(blob))
        return found

    def built(
        self, key: tuple[str, ...], build: Callable[[T | None], T], nbytes: Callable[[T], int]
    ) -> T:
        """See `Provider`."""
        return self.source.built.renew((self.experiment, *key), build, nbytes)

    def unread(self, run: str, tag: str, read: float) -> int | None:
        """See `Provider`."""
        return self.source.ends.unread(run, tag, read)

    def restore(self, run: str, steps: Collection[int]) -> None:
        """See `Provider`; remote runs are left as they are."""
        folder = self.source.ends.folder(run)
        with contextlib.suppress(OSError):
            log = None if folder is None else EventLog(Path(folder), steps=steps)
            self.built(("restored", run), lambda _: log, lambda _: 10_000)

    def _key(self, point: Point, index: int) -> tuple[Any, ...]:
        stamp = (point.tag, point.step, point.wall_time, index)
        return (self.experiment, point.plugin, point.run, *stamp)

    def _blob(self, point: Point, index: int) -> bytes | None:
        """Read a blob; if its key is no longer valid, list the series again and retry once."""
        blob = self._read(point, index)
        if blob is not None:
            return blob
        listed = self._listed(self._call, point.plugin, point.run, [point.tag])
        for again in listed.get(point.tag, ()):
            if (again.step, again.wall_time) == (point.step, point.wall_time):
                return self._read(again, index)
        return None

    def _read(self, point: Point, index: int) -> bytes | None:
        try:
            key = point.blobs[index]
            if isinstance(key, tuple):
                restored, datum = key
                return restored.strings(datum)[index]  # type: ignore[no-any-return]
            blob = self.provider.read_blob(self.context, blob_key=key)
        except (errors.PublicError, LookupError, TypeError, ValueError):
            return None  # dropped, or not a series of blobs
        return blob if isinstance(blob, bytes) else None

    def _listed(
        self, ask: Callable[..., Any], plugin: str, run: str, tags: Iterable[str]
    ) -> dict[str, list[Point]]:
        found = ask(
            self.provider.read_blob_sequences,
            plugin_name=plugin,
            run_tag_filter=RunTagFilter([run], tags),
            downsample=_ALL,
        )
        return {
            tag: [_point(plugin, run, tag, d) for d in sorted(data, key=lambda datum: datum.step)]
            for tag, data in found.get(run, {}).items()
        }

    def _data(
        self, method: Callable[..., Any], plugin: str, run: str, tags: Iterable[str]
    ) -> dict[str, list[Any]]:
        """Tag -> data points, without series of which TensorBoard cannot convert a value."""
        series = list(tags)
        chosen = RunTagFilter([run], series)
        try:
            found = self._ask(method, plugin_name=plugin, run_tag_filter=chosen, downsample=_ALL)
        except (TypeError, ValueError):  # a damaged tensor
            each = [[tag] for tag in series] if len(series) > 1 else []
            apart = (self._data(method, plugin, run, alone) for alone in each)
            return {tag: data for found in apart for tag, data in found.items()}
        return {tag: list(data) for tag, data in found.get(run, {}).items()}

    def _ask(self, method: Callable[..., Any], **arguments: Any) -> Any:
        return self.source.calls([partial(self._call, method, **arguments)], self._nudge)[0]

    def _call(self, method: Callable[..., Any], **arguments: Any) -> Any:
        return method(self.context, experiment_id=self.experiment, **arguments)

    def _nudge(self) -> Any:
        """A cheap call: unlike a list of runs or plugins, it does not go through all series."""
        return self._call(self.provider.experiment_metadata)


def _point(plugin: str, run: str, tag: str, datum: Any) -> Point:
    blobs = tuple(value.blob_key for value in datum.values)
    return Point(plugin, run, tag, datum.step, finite(datum.wall_time), blobs)
