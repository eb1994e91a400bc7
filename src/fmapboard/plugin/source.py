"""A provider over TensorBoard's own, and what TensorBoard has not read of local event files."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

from tensorboard import errors, plugin_util
from tensorboard.data.provider import RunTagFilter

from fmapboard.formats.framing import FOOTER_BYTES, Damaged, records
from fmapboard.formats.tab_records import PLUGIN_NAME
from fmapboard.runs import events
from fmapboard.runs.events import SCALARS
from fmapboard.runs.find import entries, event_files
from fmapboard.runs.log import EventLog
from fmapboard.runs.provider import BUILT, HISTOGRAMS, Cache, Point, finite

_LAG = 10.0
"""Time in s for which a new record may be unread: TensorBoard looks for new ones every 5 s."""
_RECORDS = 20_000
"""Maximum number of records that one call reads the beginnings of."""
_LAST, _KNOWN = 16, 2**14
"""Records at the end of a file among which the newest one of a series is looked for, and those
that are remembered."""
_LEAST, _MOST = 256, 2**26
"""Size in bytes of the records that are searched; a scalar has about 50."""
_FILE, _EACH, _REMEMBERED = 3000, 250, 32 * 2**20
"""Bytes in memory of what is known of a file, and of a record or value in it, roughly; and of all
files together."""
_MANY = 4
"""Blobs of an event from which on the file is read: TensorBoard's data server takes a call each."""


class _Record(NamedTuple):
    """An event: its place in the file, wall time in s, and step."""

    offset: int
    length: int
    wall_time: float
    step: int


@dataclass(slots=True)
class _File:
    """How far a file has been gone through, and its last records."""

    end: int = 0
    last: deque[_Record] = field(default_factory=lambda: deque(maxlen=_KNOWN))


Logdirs = Iterable[tuple[str, str]]
"""Log directories, each after the name that its runs begin with, or "" for none."""


class LogEnds:
    """Finds records in the event files of local log directories; thread-safe.

    Only the beginnings of records are read, each once, and those that are asked for completely.

    Args:
        logdirs: the directories, as given to TensorBoard; nothing is found in a remote one.
    """

    def __init__(self, logdirs: Logdirs = ()) -> None:
        local = [(name, path) for name, path in logdirs if path and "://" not in path]
        self._logdirs = [(name, os.path.expanduser(path)) for name, path in local]
        self._files, self._places = Cache(_REMEMBERED), Cache(_REMEMBERED)
        self._lock = threading.Lock()

    def folder(self, run: str) -> str | None:
        """The local directory of a run; None if it has none, or if several have its name."""
        folders = {folder for at in self._logdirs if (folder := _folder(run, *at)) is not None}
        return folders.pop() if len(folders) == 1 else None

    def unread(self, run: str, tag: str, read: float) -> int | None:
        """The newest step of a series that is in the files, but not among what was read.

        Args:
            run: name of the run: its directory relative to the log directory, after the name of
                that directory, if it has one.
            tag: tag of the series.
            read: wall time of the newest step of the series that TensorBoard has read, s.

        Returns:
            The step; None if there is none, or if it is not known because the files are remote,
            cannot be read, or have very many records, or because two directories have a run of this
            name. A record of the last 10 s does not count.
        """
        before, last = time.time() - _LAG, list[tuple[str, _Record]]()
        with contextlib.suppress(OSError, ValueError):
            for path, known, is_whole in self._files_of(run):
                last += [(path, record) for record in known[-_LAST:] if is_whole]
            for path, record in sorted(last, key=lambda one: one[1].wall_time, reverse=True):
                is_new = read < record.wall_time <= before
                if is_new and tag.encode() in self._values(path, record):
                    return record.step
        return None

    def fill(self, found: list[bytes | None], requested: Sequence[tuple[Point, int]]) -> None:
        """Read blobs from local files, which is faster than to ask TensorBoard's data server.

        Args:
            found: the requested blobs as far as they are known; those that are None are filled in
                where many of one event are missing, if the event is found.
            requested: as for `Provider.blobs`.
        """
        asked: dict[tuple[str, int, float], list[int]] = {}
        for i, (point, _) in enumerate(requested):
            if found[i] is None:
                asked.setdefault((point.run, point.step, point.wall_time), []).append(i)
        many = {key: places for key, places in asked.items() if len(places) >= _MANY}
        with contextlib.suppress(OSError, ValueError):
            for run in {run for run, *_ in many}:
                for path, known, _ in self._files_of(run):
                    for record in known:
                        for i in many.get((run, record.step, record.wall_time), ()):
                            found[i] = found[i] or self._blob(path, record, *requested[i])

    def _blob(self, path: str, record: _Record, point: Point, index: int) -> bytes | None:
        """A blob in an event; None if it is not there, or if the file was replaced."""
        tag = point.tag.encode()
        value = _read(path, *self._values(path, record).get(tag, (0, 0)))
        whole = 0, len(value)
        if events.tag_of(value, whole) != tag:
            return None
        blobs = events.strings(value, events.read_value(value, whole).tensor)
        return value[slice(*blobs[index])] if index < len(blobs) else None

    def _values(self, path: str, record: _Record) -> Mapping[bytes, events.Span]:
        """Where the larger values of an event are in its file, by tag."""
        known: dict[bytes, events.Span] | None = self._places.get((path, record.offset))
        if known is None:
            at, known = record.offset, {}
            content = _read(path, at, at + record.length)
            for start, end in events.parse(content).values:
                if end - start >= _LEAST:
                    tag = events.tag_of(content, (start, end))
                    known.setdefault(tag, (at + start, at + end))
            self._places.put((path, at), known, _EACH * len(known))
        return known

    def _files_of(self, run: str) -> list[tuple[str, list[_Record], bool]]:
        """Path and records of each event file of a run; True if these go up to its end.

        The beginnings of further records are read.
        """
        folder, found = self.folder(run), []
        with self._lock:
            for path in [] if folder is None else event_files(entries(folder)):
                with open(path, "rb", buffering=0) as opened:
                    known: _File | None = self._files.get(path)
                    if known is None or os.fstat(opened.fileno()).st_size < known.end:
                        known = _File()  # it is new, or was replaced
                    is_whole = _go_on(opened, known)
                self._files.put(path, known, _FILE + _EACH * len(known.last))
                found.append((path, list(known.last), is_whole))
        return found


def _read(path: str, start: int, end: int) -> bytes:
    with open(path, "rb", buffering=0) as file:
        file.seek(start)
        return file.read(end - start)


def _folder(run: str, name: str, logdir: str) -> str | None:
    """The directory of a run below a log directory; None if there is none."""
    if name and run != name and not run.startswith(f"{name}/"):
        return None
    folder = os.path.normpath(os.path.join(logdir, run[len(name) + 1 :] if name else run))
    return folder if os.path.isdir(folder) else None


def _go_on(file: BinaryIO, known: _File) -> bool:
    """Read the beginnings of further records; False if there are too many for one call."""
    count = 0
    file.seek(known.end)
    try:
        for offset, size in islice(records(file), _RECORDS):
            count += 1
            known.end = offset + size + FOOTER_BYTES
            if _LEAST <= size <= _MOST:
                known.last.append(_Record(offset, size, *events.stamp(file.read(events.STAMP))))
    except Damaged:  # or not completely written yet
        pass
    return count < _RECORDS


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
