"""Results of checks: one printed line per check, and all of them as JSON and as Markdown tables."""

from __future__ import annotations

import gc
import json
import logging
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

OK, FAILED, SKIPPED, MEASURED = "ok", "FAIL", "skip", "measured"
WITH_COLUMNS = ("cost",)
"""Sections whose figures are columns of their table."""


class Skip(Exception):  # not an error
    """Ends a check that cannot run; the message says why."""


@dataclass
class Result:
    """One check.

    Attributes:
        section: The section that it belongs to.
        name: What was checked.
        verdict: ``"ok"``; ``"FAIL"``; ``"skip"`` if it could not run; ``"measured"`` if nothing was
            expected of the figures.
        figures: Name, with its unit, -> value.
        notes: Why it failed or was skipped, and what fmapboard logged meanwhile.
        seconds: How long it took.
    """

    section: str
    name: str
    verdict: str
    figures: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def __str__(self) -> str:
        figures = ", ".join(f"{name} {value}" for name, value in self.figures.items())
        text = "; ".join(filter(None, [figures, *self.notes]))
        return f"[{self.section}] {self.verdict:8} {self.name}: {text} ({self.seconds:.1f} s)"


class Check:
    """What a running check collects.

    Attributes:
        figures: Name, with its unit, -> value.
        failures: The expectations that did not hold.
        said: The warnings that fmapboard logged during the check.
    """

    def __init__(self) -> None:
        self.figures: dict[str, Any] = {}
        self.failures: list[str] = []
        self.said: list[str] = []
        self._expected = 0

    def expect(self, holds: bool, otherwise: str) -> None:
        """Fail the check unless ``holds``."""
        self._expected += 1
        if not holds:
            self.failures.append(otherwise)

    def expect_none(self, wrong: list[str], what: str) -> None:
        """Fail the check if anything is listed; the first few are quoted."""
        self.expect(not wrong, f"{len(wrong)} {what}: {'; '.join(wrong[:4])}")

    def expect_silence(self) -> None:
        """Fail the check if fmapboard has logged a warning."""
        self.expect(not self.said, "fmapboard logged a warning")

    @property
    def verdict(self) -> str:
        if self.failures:
            return FAILED
        return OK if self._expected else MEASURED


class Report:
    """Runs checks and keeps their results; saves them after each, should the process be killed.

    Args:
        folder: Where ``on_gpu.json`` and ``on_gpu.md`` go; created if missing.
        about: Lines for the head of the page: machine, command.
        limit_s: Checks that would begin later than this are skipped.
    """

    def __init__(self, folder: Path, about: list[str], limit_s: float) -> None:
        self.results: list[Result] = []
        self._folder, self._about = folder, about
        self._until = time.perf_counter() + limit_s
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def failed(self) -> int:
        """How many checks failed."""
        return sum(result.verdict == FAILED for result in self.results)

    @property
    def seconds_left(self) -> float:
        """Time until further checks are skipped."""
        return self._until - time.perf_counter()

    def run(self, section: str, name: str, body: Callable[[Check], object]) -> None:
        """Run a check; whatever it raises ends only this check."""
        check, begun, skipped = Check(), time.perf_counter(), ""
        with _warnings_of_fmapboard(check.said):
            try:
                if self.seconds_left < 0:
                    raise Skip("out of time: raise --limit, or use --only and --modes")
                body(check)
            except Skip as skip:
                skipped = str(skip)
            except Exception as error:
                check.failures.append(_described(error))
        if not skipped:
            _release()
        said = [f"fmapboard said: {text}" for text in dict.fromkeys(check.said)]
        verdict = SKIPPED if skipped else check.verdict
        notes = [skipped] if skipped else [*check.failures, *said[:2]]
        seconds = time.perf_counter() - begun
        self.add(Result(section, name, verdict, check.figures, notes, seconds))

    def add(self, result: Result, *, printed: bool = True) -> None:
        """Keep a result, print it, and save all results."""
        self.results.append(result)
        if printed:
            print(result, flush=True)
        everything = {"about": self._about, "results": [asdict(one) for one in self.results]}
        text = json.dumps(everything, indent=1, default=str)
        (self._folder / "on_gpu.json").write_text(text + "\n")
        (self._folder / "on_gpu.md").write_text(self.markdown())

    def summary(self) -> str:
        """How many checks had each verdict, in one line."""
        verdicts = [result.verdict for result in self.results]
        counts = [f"{verdicts.count(one)} {one}" for one in (OK, FAILED, SKIPPED, MEASURED)]
        return f"{', '.join(counts)}: {self._folder / 'on_gpu.md'}"

    def markdown(self) -> str:
        """A table per section, to be pasted into the documentation."""
        lines = [*self._about, ""]
        for section in dict.fromkeys(result.section for result in self.results):
            chosen = [result for result in self.results if result.section == section]
            columns = section in WITH_COLUMNS
            lines += [f"**{section}**", "", *(_wide(chosen) if columns else _narrow(chosen)), ""]
        return "\n".join(lines)


def load(folder: Path) -> list[Result]:
    """The results that a report saved in a folder; none if it saved none."""
    try:
        saved = json.loads((folder / "on_gpu.json").read_text())
    except FileNotFoundError:
        return []
    return [Result(**one) for one in saved["results"]]


def _narrow(results: list[Result]) -> list[str]:
    rows = ["| check | result | figures and notes |", "|---|---|---|"]
    for one in results:
        figures = [f"{name} {value}" for name, value in one.figures.items()]
        rows.append(_row([one.name, one.verdict, "; ".join([", ".join(figures), *one.notes])]))
    return rows


def _wide(results: list[Result]) -> list[str]:
    names = list(dict.fromkeys(name for result in results for name in result.figures))
    rows = [_row(["check", "result", *names, "notes"]), "|---" * (len(names) + 3) + "|"]
    for one in results:
        cells = [str(one.figures.get(name, "")) for name in names]
        rows.append(_row([one.name, one.verdict, *cells, "; ".join(one.notes)]))
    return rows


def _row(cells: list[str]) -> str:
    plain = [" ".join(cell.replace("|", "/").split()).strip("; ") for cell in cells]
    return "| " + " | ".join(plain) + " |"


def _described(error: Exception) -> str:
    """Type, first line and place of an error."""
    text = " ".join(str(error).split())[:300]
    frames = traceback.extract_tb(error.__traceback__)
    return f"{type(error).__name__}: {text} ({Path(frames[-1].filename).name}:{frames[-1].lineno})"


def _release() -> None:
    gc.collect()
    if torch.cuda.is_available():
        with suppress(Exception):  # after an error that CUDA does not recover from
            torch.cuda.empty_cache()


@contextmanager
def _warnings_of_fmapboard(said: list[str]) -> Iterator[None]:
    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage().removeprefix("fmapboard: "))

    logger, listener = logging.getLogger("fmapboard"), Listener(logging.WARNING)
    logger.addHandler(listener)
    before, logger.propagate = logger.propagate, False
    try:
        yield
    finally:
        logger.removeHandler(listener)
        logger.propagate = before
