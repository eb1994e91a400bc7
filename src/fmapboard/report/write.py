"""Write logged runs into one HTML file."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from pathlib import Path

from fmapboard import __version__
from fmapboard.errors import ConfigurationError
from fmapboard.report.choice import layers_of
from fmapboard.report.contents import Contents
from fmapboard.report.result import Report
from fmapboard.runs.find import run_directories
from fmapboard.runs.log import EventLog
from fmapboard.writers.folder import store

PRIVACY = "This report contains training images; feature maps may reveal more of them."
OF_IMAGES = "This report contains the images that were run; feature maps may reveal more of them."
NO_INPUT = "This report contains no input images, but feature maps may reveal them."


def write_report(
    runs: Sequence[Path],
    out: Path,
    *,
    steps: int = 8,
    layers: Sequence[str] = (),
    max_mb: float = 20,
    inputs: bool = True,
    below: bool = True,
) -> Report:
    """Write runs into one HTML file that opens without a server.

    Args:
        runs: run directories, or directories above them.
        out: The HTML file. It is replaced if it exists.
        steps: Pictures of at most N steps per run: first, last, where faults began, others between.
        layers: Layers to include, such as 'layer1.*'; '!*.downsample.*' excludes layers. Empty for
            all.
        max_mb: Size limit; to keep it, pictures of steps are left out, then layers. In 10⁶ bytes.
            Steps are left out down to two, then the layers whose pictures take most bytes.
        inputs: False to leave out every picture that shows the network's input.
        below: also read the runs in directories below.

    Raises:
        ConfigurationError: an argument is invalid, or the runs hold nothing of fmapboard.
        LayerNotFound: a glob matches no layer.
        WriteError: the file cannot be written.
    """
    _check_options(out, steps, max_mb)
    logs, problems = _logs(runs, below=below)
    contents = Contents(logs, layers, steps=steps, limit=int(max_mb * 1e6), inputs=inputs)
    has_images = OF_IMAGES if contents.is_without_training else PRIVACY
    privacy = has_images if inputs else NO_INPUT
    names = ", ".join(name or "." for name in contents.runs)
    facts = {
        "title": f"Feature maps of {names}",
        "version": __version__,
        "written": time.strftime("%Y-%m-%d %H:%M"),
        "privacy": privacy,
        "left_out": contents.left_out,
    }
    page = contents.page.html(facts)
    store(out, page)
    if len(page) > max_mb * 1e6:
        problems.append(
            f"{out} has {len(page) / 1e6:.1f} MB, more than {max_mb:g} MB: it already holds the "
            "fewest steps and layers. Raise the limit, or log smaller tiles (max_tile=)"
        )
    return Report(
        path=out,
        size=len(page),
        embedded=contents.page.embedded,
        runs=tuple(contents.runs),
        steps=tuple(tuple(steps) for steps in contents.steps),
        privacy=privacy,
        left_out=tuple(contents.left_out),
        problems=tuple(problems),
    )


def _check_options(out: Path, steps: int, max_mb: float) -> None:
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise ConfigurationError(f"steps={steps!r}: expected at least 1")
    if not 0 < max_mb < math.inf:
        raise ConfigurationError(f"max_mb={max_mb!r}: expected a size in MB above 0, such as 20")
    if "tfevents" in out.name:
        raise ConfigurationError(
            f"{out}: has the name of an event file, which a report would replace. Give a name that "
            "ends in .html"
        )


def _logs(paths: Sequence[Path], *, below: bool) -> tuple[dict[str, EventLog], list[str]]:
    """The runs with records of fmapboard, and what could not be read.

    A run's name is its path below what all have in common.
    """
    found: dict[Path, tuple[Path, EventLog]] = {}  # resolved -> as given
    foreign: list[EventLog] = []
    unlisted: list[OSError] = []
    for path in paths:
        if not path.is_dir():
            raise ConfigurationError(
                f"{path}: expected the directory of a run, or one above it, and this is none"
            )
        for folder in run_directories(path, unlisted) if below else [path]:
            log = EventLog(folder)
            if layers_of(log):
                found.setdefault(folder.resolve(), (Path(os.path.abspath(folder)), log))
            else:
                foreign.append(log)
    problems = [f"{error.filename}: {error.strerror}" for error in unlisted]
    if not found:
        where = ", ".join(map(str, paths))
        why = "".join(f"; {problem}" for problem in _problems_of(foreign) + problems)
        raise ConfigurationError(
            f"nothing logged by fmapboard in {where}{why}. Give the directory that watch(model, "
            "log_dir) wrote"
        )
    logs = [log for _, log in found.values()]
    logs += [log for log in foreign if log.started is None]
    problems += _problems_of(logs)
    above = os.path.commonpath([folder.parent for folder, _ in found.values()])
    return {_name(folder, above): log for folder, log in found.values()}, problems


def _problems_of(logs: Sequence[EventLog]) -> list[str]:
    """What could not be read in each log, with its path."""
    return [f"{log.path}: {problem}" for log in logs for problem in log.problems]


def _name(folder: Path, above: str) -> str:
    name = os.path.relpath(folder, above).replace(os.sep, "/")
    return os.fsencode(name).decode(errors="replace")
