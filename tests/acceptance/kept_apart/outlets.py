"""What each outlet says of what a training logged: ``why``, ``check``, the tab and the report."""

from __future__ import annotations

import base64
import gzip
import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from fmapboard.cli.main import fmapboard
from fmapboard.health.verdict import WORST_FIRST
from fmapboard.report.write import write_report

sys.path.append(str(Path(__file__).parents[2] / "helpers"))
from tab_client import open_tab

Found = tuple[str, str, str]
"""Class, kind and place of a finding."""


@dataclass(frozen=True)
class Said:
    """What is said of a training, which may have logged into several directories.

    Attributes:
        state: the worst of the verdicts.
        learns: that of the worst verdict.
        line: the first line of the worst verdict.
        kind, class_: of the first cause; empty if nothing was found.
        sentence: the first cause in one sentence; `line` if nothing was found.
        warnings, notes: how many findings there are.
        screen: what ``fmapboard why`` prints.
        outlets: "agree", or in which they differ.
    """

    state: str
    learns: bool | None
    line: str
    kind: str
    class_: str
    sentence: str
    warnings: int
    notes: int
    screen: str
    outlets: str


def read(run: Path) -> Said:
    """What is said of the runs in or below a directory.

    Raises:
        ValueError: the commands cannot read it.
    """
    verdicts = [json.loads(line) for line in _printed("why", "--json", run).splitlines()]
    verdicts.sort(key=lambda verdict: WORST_FIRST.index(verdict["verdict"]))
    findings = json.loads(_printed("check", "--json", run))
    worst = verdicts[0]
    cause = worst["cause"] or {}
    classes = [finding["class"] for finding in findings]
    return Said(
        state=worst["verdict"],
        learns=worst["learns"],
        line=worst["line"],
        kind=cause.get("kind", ""),
        class_=cause.get("class", ""),
        sentence=cause.get("message", worst["line"]),
        warnings=classes.count("warning"),
        notes=classes.count("note"),
        screen=_printed("why", run).replace(str(run), "run"),
        outlets=difference(run, verdicts, findings),
    )


def _printed(command: str, *arguments: str | Path) -> str:
    done = CliRunner().invoke(fmapboard, [command, *map(str, arguments)])
    if done.exit_code not in (0, 1):
        raise ValueError(f"fmapboard {command}: {done.stderr.strip() or done.exception!r}")
    return done.stdout


def difference(
    run: Path, verdicts: Sequence[Mapping[str, Any]], findings: Sequence[Mapping[str, Any]]
) -> str:
    """In which outlets a run is not as in ``why --json``; "agree" if in none.

    Args:
        run: the directory that was given.
        verdicts: of ``why --json``, one per run.
        findings: of ``check --json``, those of all runs.
    """
    tab = open_tab(run)
    embedded = _embedded(run)
    differ = set()
    for verdict in verdicts:
        path = verdict["run"]
        name = Path(path).relative_to(run).as_posix()
        listed = [one for one in findings if one.get("run", path) == path]
        expected = [_found(one, "layer") for one in listed]
        cause = verdict["cause"]
        named = [] if cause is None else [_found(cause, "layer")]
        if expected[:1] != named:
            differ.add("check")
        told = (verdict["verdict"], verdict["line"])
        shown = tab.ask("data/findings", run=name)
        if _of_answer(shown) != (told, expected):
            differ.add("tab")
        if (told, expected) not in [_of_answer(answer) for answer in embedded]:
            differ.add("report")
    return f"differ: {', '.join(sorted(differ))}" if differ else "agree"


def _found(finding: Mapping[str, Any], place: str) -> Found:
    return finding["class"], finding["kind"], finding.get(place) or ""


def _of_answer(answer: Mapping[str, Any]) -> tuple[tuple[str, str], list[Found]]:
    line = answer["line"]
    told = (line["state"], line["text"])
    return told, [_found(one, "label") for one in answer["findings"]]


def _embedded(run: Path) -> list[dict[str, Any]]:
    """The answers about findings that a report of the runs embeds."""
    page = run.parent / "report.html"
    write_report([run], page)
    stored = re.findall(r'<script type="text/plain" id="(.).*?">(.*?)</script>', page.read_text())
    page.unlink()
    found = []
    for kind, text in stored:
        blob = base64.b64decode(text)
        plain = gzip.decompress(blob) if kind == "z" else blob
        if b'"findings":' in plain[:400]:
            found.append(json.loads(plain))
    return found
