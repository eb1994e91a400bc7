"""Write logged runs into one HTML file, or into a site with the pictures in files."""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Any

from fmapboard import __version__
from fmapboard.errors import ConfigurationError, writing
from fmapboard.report.choice import layers_of
from fmapboard.report.contents import Contents
from fmapboard.report.page import Page
from fmapboard.report.result import Report
from fmapboard.runs.find import run_directories
from fmapboard.runs.log import EventLog
from fmapboard.writers.folder import store

PRIVACY = "This report contains training images; feature maps may reveal more of them."
OF_IMAGES = "This report contains the images that were run; feature maps may reveal more of them."
_MAX_MB = 20.0
"""Limit on the size of one file, 10⁶ bytes."""
_PICTURES_FILE = re.compile(r"\d+\.js")
NO_INPUT = "This report contains no input images, but feature maps may reveal them."


def write_report(
    runs: Sequence[Path],
    out: Path | None = None,
    *,
    site: Path | None = None,
    steps: int = 8,
    layers: Sequence[str] = (),
    max_mb: float | None = None,
    inputs: bool = True,
    below: bool = True,
) -> Report:
    """Write runs into one HTML file that opens without a server.

    Args:
        runs: run directories, or directories above them.
        out: The HTML file. It is replaced if it exists; None for ``report.html``.
        site: Write a folder instead, with a page that loads its pictures when they are shown. The
            page is its ``index.html``; it is replaced, and so are the pictures of an earlier one.
        steps: Pictures of at most N steps per run: first, last, where faults began, others between.
        layers: Layers to include, such as 'layer1.*'; '!*.downsample.*' excludes layers. Empty for
            all.
        max_mb: Size limit; to keep it, pictures of steps are left out, then layers. In 10⁶ bytes.
            Steps are left out down to two, then the layers whose pictures take most bytes. None
            for 20 MB in one file, and for no limit in a site.
        inputs: False to leave out every picture that shows the network's input.
        below: also read the runs in directories below.

    Raises:
        ConfigurationError: an argument is invalid, or the runs hold nothing of fmapboard.
        LayerNotFound: a glob matches no layer.
        WriteError: the file cannot be written.
    """
    is_site = site is not None
    page_path = _page_path(out, site)
    _check_options(page_path, steps, max_mb)
    usual = math.inf if is_site else _MAX_MB
    limit = usual if max_mb is None else max_mb
    logs, problems = _logs(runs, below=below)
    contents = Contents(
        logs, layers, steps=steps, limit=limit * 1e6, inputs=inputs, is_site=is_site
    )
    facts = _facts(contents, inputs=inputs)
    size = _store_pictures(page_path.with_name("pictures"), contents.page) if is_site else 0
    page = contents.page.html(facts)
    store(page_path, page)
    size += len(page)
    if size > limit * 1e6:
        problems.append(
            f"{page_path} has {size / 1e6:.1f} MB, more than {limit:g} MB: it already holds the "
            "fewest steps and layers. Raise the limit, or log smaller tiles (max_tile=)"
        )
    return Report(
        path=page_path,
        size=size,
        embedded=contents.page.embedded,
        runs=tuple(contents.runs),
        steps=tuple(tuple(steps) for steps in contents.steps),
        privacy=facts["privacy"],
        left_out=tuple(contents.left_out),
        problems=tuple(problems),
    )


def page_of(
    runs: Sequence[Path], *, steps: int, layers: Sequence[str], max_mb: float, inputs: bool
) -> tuple[Contents, bytes]:
    """What a report would hold, and its HTML; see `write_report`."""
    _check_options(Path(), steps, max_mb)
    logs, _ = _logs(runs, below=True)
    contents = Contents(logs, layers, steps=steps, limit=max_mb * 1e6, inputs=inputs)
    return contents, contents.page.html(_facts(contents, inputs=inputs))


def _page_path(out: Path | None, site: Path | None) -> Path:
    if site is None:
        return out or Path("report.html")
    if out is None:
        return site / "index.html"
    raise ConfigurationError("a report is a file (--out) or a site (--site), not both")


def _facts(contents: Contents, *, inputs: bool) -> dict[str, Any]:
    """What a page says about itself (``ReportFacts`` of the front end)."""
    has_images = OF_IMAGES if contents.is_without_training else PRIVACY
    names = ", ".join(name or "." for name in contents.runs)
    return {
        "title": f"Feature maps of {names}",
        "version": __version__,
        "written": time.strftime("%Y-%m-%d %H:%M"),
        "privacy": has_images if inputs else NO_INPUT,
        "left_out": contents.left_out,
    }


def _store_pictures(folder: Path, page: Page) -> int:
    """Write the files of pictures, remove those of an earlier site; return their bytes."""
    with writing(f"to {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        stale = {path.name for path in folder.iterdir() if _PICTURES_FILE.fullmatch(path.name)}
    size = 0
    for name, content in page.files():
        store(folder / name, content)
        stale.discard(name)
        size += len(content)
    with writing(f"to {folder}"):
        for name in stale:
            folder.joinpath(name).unlink()
    return size


def _check_options(out: Path, steps: int, max_mb: float | None) -> None:
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise ConfigurationError(f"steps={steps!r}: expected at least 1")
    if max_mb is not None and not 0 < max_mb < math.inf:
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
    above = _directory_above([folder for folder, _ in found.values()])
    return {_name(folder, above): log for folder, log in found.values()}, problems


def _problems_of(logs: Sequence[EventLog]) -> list[str]:
    """What could not be read in each log, with its path."""
    return [f"{log.path}: {problem}" for log in logs for problem in log.problems]


def _directory_above(folders: Sequence[Path]) -> str:
    """The directory that all runs are below; empty if they are on several drives of Windows."""
    try:
        return os.path.commonpath([folder.parent for folder in folders])
    except ValueError:
        return ""


def _name(folder: PurePath, above: str) -> str:
    if above:
        name = os.path.relpath(folder, above).replace(os.sep, "/")
    else:
        name = folder.as_posix().lstrip("/").replace(":", "")  # C/runs/exp1
    return os.fsencode(name).decode(errors="replace")
