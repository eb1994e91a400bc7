"""A provider over TensorBoard's own."""

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
from fmapboard.plugin.log_ends import Logdirs, LogEnds
from fmapboard.runs.events import SCALARS
from fmapboard.runs.log import EventLog
from fmapboard.runs.provider import BUILT, HISTOGRAMS, Cache, Point, finite

T = TypeVar("T")
_NUDGE_INTERVAL = 0.004  # s
_NUDGES = 25
_THREADS = 8
Method = Callable[..., Any]
"""A method of TensorBoard's data provider."""
Call = Callable[[], Any]
"""A call of one, with its arguments."""
Data = dict[str, list[Any]]
"""Tag -> data points, ascending by step."""
Calls = Callable[[Sequence[Call], Call], list[Any]]
"""Runs functions and returns their results, in order; the first exception is raised."""


def in_turn(calls: Sequence[Call], nudge: Call) -> list[Any]:
    """Run calls one after another in this thread, for a loader in this process."""
    return [call() for call in calls]


class AtOnce:
    """Runs calls concurrently in its own threads, and sends nudges meanwhile; thread safe."""

    def __init__(self) -> None:
        self._workers = ThreadPoolExecutor(_THREADS, "feature-maps-read")
        self._nudgers = ThreadPoolExecutor(_THREADS, "fmapboard-nudge")

    def __call__(self, calls: Sequence[Call], nudge: Call) -> list[Any]:
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
        self.in_process = in_process
        self.calls: Calls = in_turn if in_process else AtOnce()

    def reader(self, environ: Any) -> Reader:
        """The provider for one request, with its authorization context and experiment.

        Args:
            environ: the request's WSGI environment.
        """
        context = plugin_util.context(environ)
        experiment = plugin_util.experiment_id(environ)
        return Reader(self, context, experiment)


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
        runs = self._ask(self.provider.list_runs)
        started = {run.run_name: run.start_time for run in runs}
        series = self._ask(self.provider.list_blob_sequences, plugin_name=PLUGIN_NAME)
        found = {}
        for run, tags in series.items():
            found[run] = (started.get(run), list(tags))
        return found

    def points(self, plugin: str, run: str, tags: Iterable[str]) -> dict[str, list[Point]]:
        """See `Provider`; steps that were restored are read from the run's files."""
        found = self._listed(self._ask, plugin, run, tags)
        log: EventLog | None = self.source.built.get(self._restored(run))
        if log is None:
            return found
        for tag, points in found.items():
            if tag not in log.series:
                continue
            known = {point.step for point in points}
            for datum in log.series[tag].ordered():
                if datum.step not in known:
                    blobs = [(log, datum)] * datum.blobs
                    points.append(_point(plugin, run, tag, datum, blobs))
            points.sort(key=lambda point: point.step)
        return found

    def tags_of(self, plugin: str, run: str) -> list[str]:
        """See `Provider`."""
        method = self.provider.list_blob_sequences
        if plugin == SCALARS:
            method = self.provider.list_scalars
        elif plugin == HISTOGRAMS:
            method = self.provider.list_tensors
        chosen = RunTagFilter([run])
        listed = self._ask(method, plugin_name=plugin, run_tag_filter=chosen)
        return list(listed.get(run, ()))

    def scalars(self, run: str, tags: Iterable[str]) -> Data:
        """See `Provider`."""
        return self._data(self.provider.read_scalars, SCALARS, run, tags)

    def histograms(self, run: str, tags: Iterable[str]) -> Data:
        """See `Provider`."""
        return self._data(self.provider.read_tensors, HISTOGRAMS, run, tags)

    def blobs(
        self, requested: Sequence[tuple[Point, int]], *, keep: bool = True
    ) -> list[bytes | None]:
        """See `Provider`."""
        cache = self.source.blobs
        keys = [self._key(point, index) for point, index in requested]
        found = [cache.get(key) for key in keys]
        if not self.source.in_process:
            self.source.ends.fill(found, requested)
        missing = []
        calls = []
        for i, (point, index) in enumerate(requested):
            if found[i] is None:
                missing.append(i)
                calls.append(partial(self._blob, point, index))
        blobs = self.source.calls(calls, self._nudge)
        for i, blob in zip(missing, blobs, strict=True):
            found[i] = blob
            if keep and blob is not None:
                cache.put(keys[i], blob, len(blob))
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
            self.source.built.put(self._restored(run), log, 10_000)

    def _restored(self, run: str) -> tuple[str, ...]:
        """What the log with the restored steps of a run is kept under."""
        return (self.experiment, "restored", run)

    def _key(self, point: Point, index: int) -> tuple[Any, ...]:
        series = (self.experiment, point.plugin, point.run, point.tag)
        return (series, point.step, point.wall_time, index)

    def _blob(self, point: Point, index: int) -> bytes | None:
        """Read a blob; if its key is no longer valid, list the series again and retry once."""
        blob = self._read(point, index)
        if blob is not None:
            return blob
        listed = self._listed(self._call, point.plugin, point.run, [point.tag])
        for again in listed.get(point.tag, ()):
            is_at_step = again.step == point.step
            if is_at_step and again.wall_time == point.wall_time:
                return self._read(again, index)
        return None

    def _read(self, point: Point, index: int) -> bytes | None:
        try:
            key = point.blobs[index]
            if isinstance(key, tuple):
                log, datum = key
                strings: list[bytes] = log.strings(datum)
                return strings[index]
            blob = self.provider.read_blob(self.context, blob_key=key)
        except (errors.PublicError, LookupError, TypeError, ValueError):
            return None  # dropped, or not a series of blobs
        return blob if isinstance(blob, bytes) else None

    def _listed(
        self, ask: Method, plugin: str, run: str, tags: Iterable[str]
    ) -> dict[str, list[Point]]:
        listed = ask(
            self.provider.read_blob_sequences,
            plugin_name=plugin,
            run_tag_filter=RunTagFilter([run], tags),
            downsample=_ALL,
        )
        found = {}
        for tag, data in listed.get(run, {}).items():
            points = []
            for datum in sorted(data, key=lambda datum: datum.step):
                blobs = tuple(value.blob_key for value in datum.values)
                points.append(_point(plugin, run, tag, datum, blobs))
            found[tag] = points
        return found

    def _data(self, method: Method, plugin: str, run: str, tags: Iterable[str]) -> Data:
        """Tag -> data points, without series of which TensorBoard cannot convert a value."""
        series = list(tags)
        chosen = RunTagFilter([run], series)
        try:
            found = self._ask(method, plugin_name=plugin, run_tag_filter=chosen, downsample=_ALL)
        except (TypeError, ValueError):  # a damaged tensor
            readable: Data = {}
            if len(series) > 1:
                for tag in series:
                    readable |= self._data(method, plugin, run, [tag])
            return readable
        return {tag: list(data) for tag, data in found.get(run, {}).items()}

    def _ask(self, method: Method, **arguments: Any) -> Any:
        call = partial(self._call, method, **arguments)
        (answer,) = self.source.calls([call], self._nudge)
        return answer

    def _call(self, method: Method, **arguments: Any) -> Any:
        return method(self.context, experiment_id=self.experiment, **arguments)

    def _nudge(self) -> Any:
        """A cheap call: unlike a list of runs or plugins, it does not go through all series."""
        return self._call(self.provider.experiment_metadata)


def _point(plugin: str, run: str, tag: str, datum: Any, blobs: Sequence[Any]) -> Point:
    return Point(
        plugin=plugin,
        run=run,
        tag=tag,
        step=datum.step,
        wall_time=finite(datum.wall_time),
        blobs=blobs,
    )
