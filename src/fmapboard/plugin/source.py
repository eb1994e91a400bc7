"""TensorBoard's data provider as the one that the routes ask, and the caches for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from tensorboard import errors, plugin_util
from tensorboard.data import provider

from fmapboard.formats.tab_records import PLUGIN_NAME
from fmapboard.runs.cache import Cache
from fmapboard.runs.events import SCALARS
from fmapboard.runs.provider import BUILT, HISTOGRAMS, Point, finite
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


class Gone(Exception):
    """A listed blob cannot be read; TensorBoard may have dropped it in the meantime."""


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

    def started(self) -> dict[str, float | None]:
        """See `Provider`."""
        runs = self._ask(self.provider.list_runs)
        return {run.run_name: run.start_time for run in runs}

    def tags(self) -> dict[str, list[str]]:
        """See `Provider`."""
        listed = self._ask(self.provider.list_blob_sequences, plugin_name=PLUGIN_NAME)
        return {run: list(tags) for run, tags in listed.items()}

    def points(
        self, plugin: str, run: str, tags: Iterable[str] | None = None
    ) -> dict[str, list[Point]]:
        """See `Provider`."""
        found = self._ask(
            self.provider.read_blob_sequences,
            plugin_name=plugin,
            run_tag_filter=_filter(run, tags),
            downsample=_ALL,
        )
        return {
            tag: [_point(plugin, run, tag, d) for d in sorted(data, key=lambda datum: datum.step)]
            for tag, data in found.get(run, {}).items()
        }

    def tags_of(self, plugin: str, run: str) -> list[str]:
        """See `Provider`."""
        methods = {SCALARS: self.provider.list_scalars, HISTOGRAMS: self.provider.list_tensors}
        method = methods.get(plugin, self.provider.list_blob_sequences)
        listed = self._ask(method, plugin_name=plugin, run_tag_filter=_filter(run, None))
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

    def _key(self, point: Point, index: int) -> tuple[Any, ...]:
        stamp = (point.tag, point.step, point.wall_time, index)
        return (self.experiment, point.plugin, point.run, *stamp)

    def _blob(self, point: Point, index: int) -> bytes | None:
        """Read a blob; if its key is no longer valid, list the series again and retry once."""
        try:
            return self._read(point, index)
        except Gone:
            pass
        listed = self._list_again(point)
        try:
            return None if listed is None else self._read(listed, index)
        except Gone:
            return None

    def _read(self, point: Point, index: int) -> bytes:
        try:
            blob = self.provider.read_blob(self.context, blob_key=point.blobs[index])
        except (errors.PublicError, LookupError, TypeError, ValueError) as error:
            raise Gone from error  # dropped, or not a series of blobs
        if not isinstance(blob, bytes):
            raise Gone
        return blob

    def _list_again(self, point: Point) -> Point | None:
        found = self.provider.read_blob_sequences(
            self.context,
            experiment_id=self.experiment,
            plugin_name=point.plugin,
            run_tag_filter=_filter(point.run, [point.tag]),
            downsample=_ALL,
        )
        for datum in found.get(point.run, {}).get(point.tag, ()):
            listed = _point(point.plugin, point.run, point.tag, datum)
            if (listed.step, listed.wall_time) == (point.step, point.wall_time):
                return listed
        return None

    def _data(
        self, method: Callable[..., Any], plugin: str, run: str, tags: Iterable[str]
    ) -> dict[str, list[Any]]:
        """Tag -> data points, without series of which TensorBoard cannot convert a value."""
        series = list(tags)
        chosen = _filter(run, series)
        try:
            found = self._ask(method, plugin_name=plugin, run_tag_filter=chosen, downsample=_ALL)
        except (TypeError, ValueError):  # a damaged tensor
            each = [[tag] for tag in series] if len(series) > 1 else []
            apart = (self._data(method, plugin, run, alone) for alone in each)
            return {tag: data for found in apart for tag, data in found.items()}
        return {tag: list(data) for tag, data in found.get(run, {}).items()}

    def _ask(self, method: Callable[..., Any], **arguments: Any) -> Any:
        call = partial(method, self.context, experiment_id=self.experiment, **arguments)
        return self.source.calls([call], self._nudge)[0]

    def _nudge(self) -> Any:
        """A cheap call: unlike a list of runs or plugins, it does not go through all series."""
        return self.provider.experiment_metadata(self.context, experiment_id=self.experiment)


def _point(plugin: str, run: str, tag: str, datum: Any) -> Point:
    blobs = tuple(value.blob_key for value in datum.values)
    return Point(plugin, run, tag, datum.step, finite(datum.wall_time), blobs)


def _filter(run: str, tags: Iterable[str] | None) -> Any:
    return provider.RunTagFilter(runs=[run], tags=None if tags is None else list(tags))
