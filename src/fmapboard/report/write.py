"""Write a report: choose steps and layers, embed the tab's answers, stay below the size limit."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fmapboard import __version__
from fmapboard.errors import ConfigurationError, WriteError
from fmapboard.plugin.tag_names import layer_of
from fmapboard.report.answers import Answer, RunAnswers
from fmapboard.report.blobs import Blobs
from fmapboard.report.choice import CHART_STEPS, logged_steps, matching, spread, thin
from fmapboard.report.event_log import EventLog, run_directories
from fmapboard.report.page import Page
from fmapboard.report.routes import Routes

_FRONT_END = 360_000
"""Bytes that the page takes without any answer."""
PRIVACY = "This report contains training images, and feature maps that may reveal more of them."
NO_INPUT = "Without input images; feature maps may still reveal them."


@dataclass(frozen=True, slots=True)
class Report:
    """A report that was written.

    Attributes:
        path: the HTML file.
        size: of the file, bytes.
        embedded: bytes that are embedded in it, before base64.
        runs: names of the runs.
        left_out: what the runs have and the report does not, in words.
    """

    path: Path
    size: int
    embedded: int
    runs: tuple[str, ...]
    left_out: tuple[str, ...]


def write_report(
    runs: Sequence[Path],
    out: Path,
    *,
    steps: int = 8,
    layers: Sequence[str] = (),
    max_mb: float = 20.0,
    inputs: bool = True,
) -> Report:
    """Write runs into one HTML file that opens without a server.

    Args:
        runs: run directories, or directories above them.
        out: the HTML file; replaced if it exists.
        steps: pictures of at most this many steps per run, evenly spaced, with the first and last.
        layers: globs on layer names; one that begins with ``!`` excludes. Empty for all layers.
        max_mb: limit on the size of the file, 10⁶ bytes. Above it, steps are left out, and below
            two steps, the pictures of the layers that need most bytes.
        inputs: False to leave out every picture that shows the network's input.

    Raises:
        ConfigurationError: an argument is invalid, or the runs hold nothing of fmapboard.
        LayerNotFound: a glob matches no layer.
        WriteError: the file cannot be written.
    """
    if steps < 1:
        raise ConfigurationError(f"steps={steps!r}: expected at least 1")
    if not max_mb > 0:
        raise ConfigurationError(f"max_mb={max_mb!r}: expected a size in MB above 0")
    logs = _logs(runs)
    return _Composed(logs, layers, inputs=inputs, limit=int(max_mb * 1e6)).write(out, steps)


class _Composed:
    """What goes into a report of some runs."""

    def __init__(
        self, logs: Mapping[str, EventLog], layers: Sequence[str], *, inputs: bool, limit: int
    ) -> None:
        self._inputs, self._limit = inputs, limit
        self._left_out: list[str] = []
        self._logged = {run: logged_steps(log) for run, log in logs.items()}
        self._chosen = _layers(logs, layers)
        for run, log in logs.items():
            thin(log, {*spread(self._logged[run], CHART_STEPS)})
        routes = Routes(logs)
        self._routes = routes
        self._runs = {
            run: RunAnswers(routes, run, keys, inputs=inputs) for run, keys in self._chosen.items()
        }

    def write(self, out: Path, steps: int) -> Report:
        """Write the page."""
        page = Page()
        page.add([Answer.of("runs", self._routes.ask("runs") or b"")])
        for answers in self._runs.values():
            page.add(answers.numbers())
        page.add(self._pictures(self._limit - _FRONT_END - page.blobs.size, steps))
        names = tuple(self._runs)
        facts = {
            "title": f"Feature maps of {', '.join(name or '.' for name in names)}",
            "version": __version__,
            "written": time.strftime("%Y-%m-%d %H:%M"),
            "privacy": PRIVACY if self._inputs else NO_INPUT,
            "left_out": self._left_out,
        }
        content = page.html(facts)
        try:
            out.write_bytes(content)
        except OSError as error:
            raise WriteError(f"cannot write {out}: {error.strerror or error}") from error
        return Report(out, len(content), page.blobs.embedded, names, tuple(self._left_out))

    def _pictures(self, room: int, steps: int) -> list[Answer]:
        """The answers with pictures, as many as fit into this many bytes of the page."""
        count = steps
        while True:
            found = [
                answer
                for answers in self._runs.values()
                for answer in answers.pictures(spread(answers.steps, count))
            ]
            size = _size(found)
            if size <= room or count <= 2:
                break
            count = max(2, min(count - 1, int(count * max(room, 0) / size)))
        return found


def _size(answers: Iterable[Answer]) -> int:
    blobs = Blobs()
    for answer in answers:
        for part in answer.parts:
            blobs.add(part)
    return blobs.size


def _logs(paths: Sequence[Path]) -> dict[str, EventLog]:
    """The runs with records of fmapboard by name: their path below what all have in common."""
    found: dict[Path, EventLog] = {}
    for path in paths:
        if not path.is_dir():
            raise ConfigurationError(f"{path}: expected the directory of a run")
        for folder in run_directories(path):
            log = EventLog(folder)
            if any(layer_of(tag) for tag in log.series):
                found[folder.resolve()] = log
    if not found:
        raise ConfigurationError(f"nothing logged by fmapboard in {', '.join(map(str, paths))}")
    above = os.path.commonpath([folder.parent for folder in found])
    return {_name(folder, above): log for folder, log in found.items()}


def _name(folder: Path, above: str) -> str:
    name = os.path.relpath(folder, above).replace(os.sep, "/")
    return os.fsencode(name).decode(errors="replace")


def _layers(logs: Mapping[str, EventLog], patterns: Sequence[str]) -> dict[str, set[str]]:
    """Run -> keys of the layers whose names match."""
    found = {
        run: {layer.key: layer.label for layer in map(layer_of, log.series) if layer is not None}
        for run, log in logs.items()
    }
    if not patterns:
        return {run: set(layers) for run, layers in found.items()}
    labels = {label for layers in found.values() for label in layers.values()}
    kept = matching(patterns, sorted(labels))
    chosen = {run: {k for k, label in of.items() if label in kept} for run, of in found.items()}
    return {run: keys for run, keys in chosen.items() if keys}
