"""Write logged runs into one HTML file: what it holds, below the limit on its size; the page."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import math
import os
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from fmapboard import __version__
from fmapboard.errors import ConfigurationError
from fmapboard.plugin.front_end import FOLDER, styles
from fmapboard.plugin.routes.by_name import runs
from fmapboard.plugin.tag_names import layer_of
from fmapboard.report.answers import Embedded, RunAnswers, is_shrinkable
from fmapboard.report.choice import CHART_STEPS, layers_of, logged_steps, matching, spread, thin
from fmapboard.report.result import Report
from fmapboard.runs.find import run_directories
from fmapboard.runs.log import EventLog
from fmapboard.runs.provider import Files
from fmapboard.writers.folder import store

_SMALL = 200
"""Bytes up to which nothing is compressed."""
_TAG = b'<script type="text/plain" id="%s">%s</script>\n'


_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'"
)
_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width">
<meta name="generator" content="{generator}">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>
{styles}</style>
</head>
<body>
<noscript>This report needs JavaScript. {privacy}</noscript>
"""
_TAIL = '<script id="start" data-index="{index}" data-script="{script}">\n{start}</script>\n</body>\n</html>\n'  # noqa: E501


NO_FACTS: dict[str, Any] = {"title": "", "version": "", "privacy": ""}
"""Facts for a page whose size is to be known."""


class Page:
    """Collects answers and writes the page.

    Attributes:
        embedded: bytes that are stored, after compression and before base64.
        size: bytes that they take in the page.
    """

    def __init__(self) -> None:
        self._index: dict[str, list[str]] = {}
        self._names: dict[bytes, str] = {}
        self._stored: dict[str, bytes] = {}
        self.embedded = self.size = 0

    def add(self, answers: Iterable[Embedded]) -> None:
        """Embed answers."""
        for answer in answers:
            question = _dumped([answer.path, *answer.query])
            self._index[question] = [self._name_of(part) for part in answer.parts if part]

    def _name_of(self, blob: bytes) -> str:
        """Store some bytes and name them; the names of compressed ones begin with ``z``."""
        digest = hashlib.sha256(blob).digest()
        name = self._names.get(digest)
        if name is None:
            packed = blob if len(blob) < _SMALL else gzip.compress(blob, 6, mtime=0)
            is_smaller = len(packed) < 0.95 * len(blob)
            name = f"{'z' if is_smaller else 'b'}{len(self._names)}"
            stored = packed if is_smaller else blob
            self._names[digest], self._stored[name] = name, stored
            self.embedded += len(stored)
            self.size += len(_TAG) - 4 + len(name) + 4 * -(-len(stored) // 3)
        return name

    def html(self, facts: dict[str, Any]) -> bytes:
        """The page.

        Args:
            facts: what the page says about itself (``ReportFacts`` in ``state/report.js``).
        """
        code = self._name_of(FOLDER.joinpath("dist", "report.js").read_bytes())
        index = {"report": facts, "answers": self._index}
        listed = self._name_of(_dumped(index).encode())
        head = _HEAD.format(
            policy=html.escape(_POLICY),
            generator=html.escape(f"fmapboard {facts['version']}"),
            title=html.escape(facts["title"]),
            styles=styles(),
            privacy=html.escape(facts["privacy"]),
        )
        start = FOLDER.joinpath("report_start.js").read_text("utf-8")
        tail = _TAIL.format(index=listed, script=code, start=start)
        # No HTML parser can misread base64.
        stored = (_TAG % (n.encode(), base64.b64encode(b)) for n, b in self._stored.items())
        return b"".join([head.encode(), *stored, tail.encode()])


def _dumped(content: Any) -> str:
    """JSON as JavaScript's ``JSON.stringify`` writes it."""
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


_SMALLEST = 16
"""Side in px of the smallest maps that are still halved."""


@dataclass(slots=True)
class LayerSize:
    """What the maps of a layer take in a report.

    Attributes:
        maps: bytes of the pictures that can be drawn smaller.
        others: bytes of all other pictures, such as kernels.
        side: longer side of a map in px, 0 if there is none that can be drawn smaller.
    """

    maps: int = 0
    others: int = 0
    side: int = 0


def layer_sizes(answers: Iterable[Embedded]) -> dict[str, LayerSize]:
    """Key of a layer -> what its answers take together."""
    found: defaultdict[str, LayerSize] = defaultdict(LayerSize)
    for answer in answers:
        if answer.maps is None:
            continue
        of = found[dict(answer.query)["key"]]
        entries = filter(is_shrinkable, answer.maps.header["pictures"])
        sides = {entry["role"]: max(entry["tile"]) for entry in entries}
        of.side = max([of.side, *sides.values()])
        for picture in answer.maps.pictures:
            if picture.role in sides:
                of.maps += len(picture.png)
            else:
                of.others += len(picture.png)
    return dict(found)


def largest(saved: Mapping[str, int], excess: int) -> list[str]:
    """The names that save most bytes, until they save enough; at least one if there is any.

    Args:
        saved: name -> bytes that it saves.
        excess: bytes to save, above 0.
    """
    chosen = []
    for name in sorted(saved, key=lambda name: -saved[name]):
        if excess > 0:
            chosen.append(name)
            excess -= saved[name]
    return chosen


_PER_ANSWER = 60
"""Bytes of the page's index for one answer, at most."""
_CHARTS = 0.25
"""Share of the limit that the charts may take."""
_FEWEST = 2
"""Steps: with fewer there is nothing to compare."""


class Contents:
    """Collects the answers of a report.

    Args:
        logs: by name of the run; what the report does not show is dropped from them.
        layers: globs on layer names.
        steps: most steps of pictures per run.
        limit: of the page's size, bytes.
        inputs: False to leave out every picture that shows the network's input.

    Attributes:
        page: with all answers.
        runs: names of the runs.
        steps: for each run, the steps of its pictures.
        left_out: what the runs have and the report does not, in words.

    Raises:
        LayerNotFound: a glob matches no layer.
    """

    def __init__(
        self,
        logs: Mapping[str, EventLog],
        layers: Sequence[str],
        *,
        steps: int,
        limit: int,
        inputs: bool,
    ) -> None:
        self.page = Page()
        self.left_out: list[str] = []
        self._asked, self._limit, self._inputs = steps, limit, inputs
        self._to_fit = f", to stay below {limit / 1e6:g} MB"
        self._keys = self._matching(logs, layers)
        self._blocks: dict[str, int] = {}
        self._logs = {run: logs[run] for run in self._keys}
        self._logged = {run: logged_steps(log) for run, log in self._logs.items()}
        self.runs = list(self._keys)
        numbers = self._charts()
        count, pictures = self._fitting(numbers)
        self.steps = [run.shown_steps(count) for run in self._answers]
        self.page.add([Embedded.of("runs", runs(self._provider))])
        self.page.add(numbers if not self._dropped else self._numbers())
        self.page.add(pictures)
        self._say()

    @property
    def is_without_training(self) -> bool:
        """True if no step is one of a training: images or checkpoints were drawn."""
        return all(run.is_without_training for run in self._answers)

    def _matching(
        self, logs: Mapping[str, EventLog], patterns: Sequence[str]
    ) -> dict[str, set[str]]:
        """Run -> keys of the layers whose names match; runs without any are left out."""
        found = {run: layers_of(log) for run, log in logs.items()}
        labels = sorted({label for layers in found.values() for label in layers.values()})
        kept = matching(patterns, labels) if patterns else set(labels)
        if len(kept) < len(labels):
            self.left_out.append(f"{len(labels) - len(kept)} of {len(labels)} layers, as asked for")
        chosen = {run: {k for k, label in of.items() if label in kept} for run, of in found.items()}
        return {run: keys for run, keys in chosen.items() if keys}

    def _charts(self) -> list[Embedded]:
        """Everything but pictures, of as many steps as may take a quarter of the limit."""
        self._dropped: set[str] = set()
        most = max(CHART_STEPS, self._asked)
        while True:
            self._chart_steps = most
            for log in self._logs.values():
                thin(log, spread(logged_steps(log), most))
            self._provider = Files(self._logs)
            self._answers = [
                RunAnswers(self._provider, run, keys, inputs=self._inputs)
                for run, keys in self._keys.items()
            ]
            numbers = self._numbers()
            size, room = _size(numbers), _CHARTS * self._limit
            if size <= room or most <= self._asked:
                return numbers
            longest = max(len(logged_steps(log)) for log in self._logs.values())
            most = max(self._asked, min(most - 1, int(longest * room / size)))

    def _fitting(self, numbers: list[Embedded]) -> tuple[int, list[Embedded]]:
        """How many steps fit, and the answers with their pictures."""
        room, count = self._limit - len(Page().html(NO_FACTS)) - _size(numbers), self._asked
        sides: dict[str, int] = {}  # of the maps that were made smaller last
        stuck: set[str] = set()  # pictures that are damaged, or too large to be decoded
        while True:
            of_runs = (run.pictures(run.shown_steps(count), self._blocks) for run in self._answers)
            found = list(chain.from_iterable(of_runs))
            size = _size(found) + _PER_ANSWER * (len(numbers) + len(found))
            sizes = layer_sizes(found)
            for key in [key for key, side in sides.items() if sizes[key].side >= side]:
                stuck.add(key)
                self._blocks[key] //= 2
            if size <= room:
                break
            excess = (size - room) * 3 // 4  # base64 adds a third
            # Half the side takes about a quarter of the bytes.
            saved = {k: of.maps * 3 // 4 for k, of in sizes.items() if of.side >= _SMALLEST}
            smaller = largest({k: of for k, of in saved.items() if k not in stuck}, excess)
            sides = {key: sizes[key].side for key in smaller}
            for key in smaller:
                self._blocks[key] = 2 * self._blocks.get(key, 1)
            if smaller:
                continue
            if count > _FEWEST:
                count = max(_FEWEST, min(count - 1, int(count * max(room, 0) / size)))
                continue
            dropped = largest({k: of.maps + of.others for k, of in sizes.items()}, excess)
            dropped = dropped[: len(sizes) - 1]  # never all layers
            if not dropped:
                break
            self._dropped.update(dropped)
            for run in self._answers:
                run.drop(dropped)
        self._blocks = {key: block for key, block in self._blocks.items() if block > 1}
        return count, found

    def _numbers(self) -> list[Embedded]:
        return [answer for run in self._answers for answer in run.numbers()]

    def _say(self) -> None:
        """Say in words what was left out."""
        say = self.left_out.append
        if self._blocks:
            finest = max(self._blocks.values())
            how = "half" if finest == 2 else f"half to 1/{finest}"
            say(
                f"full resolution of {_counted(len(self._blocks))}: their maps are drawn at {how} "
                f"of the stored side{self._to_fit}"
            )
        for run, shown in zip(self.runs, self.steps, strict=True):
            of, every = f" of {run}" if len(self.runs) > 1 else "", len(self._logged[run])
            if len(shown) < every:
                fewer = len(shown) < min(self._asked, every)
                why = self._to_fit if fewer else ""
                say(f"pictures of {every - len(shown)} of {every} logged steps{of}{why}")
            if self._chart_steps < every:
                why = self._to_fit if self._chart_steps < CHART_STEPS else ""
                less = every - self._chart_steps
                say(f"{less} of {every} logged steps{of} in charts and the overview{why}")
        if self._dropped:
            names = sorted({of.label for of in map(layer_of, self._dropped) if of is not None})
            say(f"{_counted(len(names))} with large pictures{self._to_fit}: {', '.join(names)}")
        if not self._inputs:
            say("pictures of the network's input and of layers' inputs, attribution, and patches")


def _counted(layers: int) -> str:
    return f"{layers} layer{'s' * (layers != 1)}"


def _size(answers: Iterable[Embedded]) -> int:
    """Bytes that answers take in the page."""
    page = Page()
    page.add(answers)
    return page.size


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
        max_mb: Size limit; to keep it, maps are drawn smaller, then steps and layers are left out.
            In 10⁶ bytes. The largest maps are drawn at half their side, or less, down to 8 px; then
            steps are left out down to two; then the layers whose pictures take most bytes.
        inputs: False to leave out every picture that shows the network's input.
        below: also read the runs in directories below.

    Raises:
        ConfigurationError: an argument is invalid, or the runs hold nothing of fmapboard.
        LayerNotFound: a glob matches no layer.
        WriteError: the file cannot be written.
    """
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise ConfigurationError(f"steps={steps!r}: expected at least 1")
    if not 0 < max_mb < math.inf:
        raise ConfigurationError(f"max_mb={max_mb!r}: expected a size in MB above 0")
    if "tfevents" in out.name:
        raise ConfigurationError(f"{out}: has the name of an event file; a report would replace it")
    logs, problems = _logs(runs, below=below)
    contents = Contents(logs, layers, steps=steps, limit=int(max_mb * 1e6), inputs=inputs)
    has_images = OF_IMAGES if contents.is_without_training else PRIVACY
    privacy = has_images if inputs else NO_INPUT
    page = contents.page.html(
        {
            "title": f"Feature maps of {', '.join(name or '.' for name in contents.runs)}",
            "version": __version__,
            "written": time.strftime("%Y-%m-%d %H:%M"),
            "privacy": privacy,
            "left_out": contents.left_out,
        }
    )
    store(out, page)
    if len(page) > max_mb * 1e6:
        problems.append(
            f"{out} has {len(page) / 1e6:.1f} MB, more than {max_mb:g} MB: it already holds the "
            "fewest steps and layers"
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


def _logs(paths: Sequence[Path], *, below: bool) -> tuple[dict[str, EventLog], list[str]]:
    """The runs with records of fmapboard, and what could not be read.

    A run's name is its path below what all have in common.
    """
    found: dict[Path, tuple[Path, EventLog]] = {}  # resolved -> as given
    foreign: list[EventLog] = []
    unlisted: list[OSError] = []
    for path in paths:
        if not path.is_dir():
            raise ConfigurationError(f"{path}: expected the directory of a run")
        for folder in run_directories(path, unlisted) if below else [path]:
            log = EventLog(folder)
            if layers_of(log):
                found.setdefault(folder.resolve(), (Path(os.path.abspath(folder)), log))
            else:
                foreign.append(log)
    problems = [f"{error.filename}: {error.strerror}" for error in unlisted]
    if not found:
        problems = [f"{log.path}: {p}" for log in foreign for p in log.problems] + problems
        where, why = ", ".join(map(str, paths)), "".join(f"; {problem}" for problem in problems)
        raise ConfigurationError(f"nothing logged by fmapboard in {where}{why}")
    logs = [log for _, log in found.values()] + [log for log in foreign if log.started is None]
    problems += [f"{log.path}: {problem}" for log in logs for problem in log.problems]
    above = os.path.commonpath([folder.parent for folder, _ in found.values()])
    return {_name(folder, above): log for folder, log in found.values()}, problems


def _name(folder: Path, above: str) -> str:
    name = os.path.relpath(folder, above).replace(os.sep, "/")
    return os.fsencode(name).decode(errors="replace")
