"""The table of spoilt trainings, and the figures that are read from it."""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

HALF = 0.5
"""At or below this share of the healthy progress, half of it is lost."""
NEARLY_ALL = 0.9
"""At or above this share, nothing is lost."""


@dataclass(frozen=True)
class Trained:
    """One training: a row of the table.

    Attributes:
        spoiling, group: What was spoilt; "healthy" for the training as it is.
        healthy_start, healthy_end: Losses of the healthy training with this seed.
        start, end: Losses of this training.
        class_, kind, message: What check says first; empty for nothing.
        said: All that it says, classes and kinds.
        left_out: Why the case cannot be spoilt so; else empty.
    """

    file: str
    name: str
    first_seen: str
    architecture: str
    recipe: str
    seed: int
    spoiling: str
    group: str
    healthy_start: float = math.nan
    healthy_end: float = math.nan
    start: float = math.nan
    end: float = math.nan
    seconds: float = 0.0
    class_: str = ""
    kind: str = ""
    said: str = ""
    message: str = ""
    left_out: str = ""

    @property
    def key(self) -> tuple[str, str, str, int, str]:
        return self.file, self.name, self.first_seen, self.seed, self.spoiling

    @property
    def twin_key(self) -> tuple[str, str, str, int]:
        return self.key[:4]

    @property
    def share(self) -> float:
        """The share of the healthy progress that is left; minus infinity if the loss is NaN."""
        share = (self.healthy_start - self.end) / (self.healthy_start - self.healthy_end)
        return share if math.isfinite(share) else -math.inf

    @property
    def kinds(self) -> list[str]:
        """The kinds that are said, in their order."""
        return [words.split()[1] for words in self.said.split("; ") if words]

    def but(self, **changes: Any) -> Trained:
        return replace(self, **changes)

    def line(self) -> str:
        """What is printed of the training while others go on."""
        told = self.left_out or f"{self.share:.2f}\t{self.seconds}\t{self.said or 'nothing'}"
        return f"{self.file}\t{self.name}\t{self.spoiling}\t{told}"


COLUMNS = [field.name for field in fields(Trained)]


def read(path: Path | None) -> list[Trained]:
    if path is None or not path.exists():
        return []
    with path.open(newline="") as file:
        return [_row(row) for row in csv.DictReader(file, delimiter="\t")]


def _row(texts: dict[str, str]) -> Trained:
    numbers = ("healthy_start", "healthy_end", "start", "end", "seconds")
    values: dict[str, Any] = {name: texts[name] for name in COLUMNS}
    values |= {name: float(texts[name]) for name in numbers}
    return Trained(**values | {"seed": int(texts["seed"])})


def write(rows: Iterable[Trained], path: Path) -> None:
    """Write the table in one move: an interrupted program leaves the one of before."""
    new = path.with_suffix(".new")
    with new.open("w", newline="") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow([*COLUMNS, "share"])
        for row in rows:
            losses = {
                name: f"{getattr(row, name):.5g}"
                for name in ("healthy_start", "healthy_end", "start", "end")
            }
            writer.writerow([*(asdict(row) | losses).values(), f"{row.share:.3f}"])
    new.replace(path)


def by_amount(spoiling: str) -> tuple[str, float]:
    """Sorts the amounts of a group in their order: "rate x0.1" before "rate x10"."""
    group, _, amount = spoiling.rpartition(" x")
    return (group, float(amount)) if group else (spoiling, 0.0)


@dataclass(frozen=True)
class Judged:
    """A spoilt training, and the kinds that are said of it and not of its healthy twin."""

    row: Trained
    kinds: tuple[str, ...]

    @property
    def is_lost(self) -> bool:
        return self.row.share <= HALF

    @property
    def is_kept(self) -> bool:
        return self.row.share >= NEARLY_ALL

    @property
    def first(self) -> str:
        """The kind that is said first; empty if nothing is said but what is of the twin."""
        return self.kinds[0] if self.kinds else ""


def spoilt(rows: Sequence[Trained]) -> list[Judged]:
    """The trainings that were spoilt, without those that were left out."""
    twins = {row.twin_key: row.kinds for row in rows if row.group == "healthy"}
    found = []
    for row in rows:
        if row.group != "healthy" and not row.left_out:
            known = twins.get(row.twin_key, [])
            found.append(Judged(row, tuple(kind for kind in row.kinds if kind not in known)))
    return found


def judged(rows: Sequence[Trained]) -> str:
    """For which share of the trainings something is said, per spoiling and per kind.

    What is said of the healthy training of the same case does not count.
    """
    every = spoilt(rows)
    healthy = [row for row in rows if row.group == "healthy" and not row.left_out]
    warned = sum("warning" in row.said for row in healthy)
    noted = sum(bool(row.said) for row in healthy) - warned
    lines = [
        f"healthy trainings: {len(healthy)}, with a warning {warned}, with a note only {noted}",
        f"spoilt trainings: {len(every)}; left out: {sum(bool(row.left_out) for row in rows)}",
        *("", *_per_spoiling(every)),
        *("", *_per_kind(every)),
    ]
    reasons = Counter((row.spoiling, row.left_out) for row in rows if row.left_out)
    if reasons:
        lines += ["", "Left out:"]
    for (name, reason), count in reasons.most_common():
        lines.append(f"- {count} × {name}: {reason}")
    return "\n".join(lines)


def _per_spoiling(every: Sequence[Judged]) -> list[str]:
    lines = [
        "| spoiling | trainings | lose half | of these said | lose nothing | of these said "
        "| said first of those that lose half |",
        "|---|---|---|---|---|---|---|",
    ]
    names = {run.row.spoiling for run in every}
    for name in [*sorted(names, key=by_amount), "all"]:
        chosen = [run for run in every if name in (run.row.spoiling, "all")]
        lost = [run for run in chosen if run.is_lost]
        kept = [run for run in chosen if run.is_kept]
        first = Counter(run.first or "nothing" for run in lost).most_common()
        kinds = ", ".join(f"{kind} {count}" for kind, count in first)
        parts = (name, len(chosen), len(lost), _said(lost), len(kept), _said(kept), kinds)
        lines.append(f"| {' | '.join(map(str, parts))} |")
    return lines


def _said(runs: Sequence[Judged]) -> str:
    if not runs:
        return ""
    said = sum(bool(run.kinds) for run in runs)
    return f"{said} ({100 * said / len(runs):.0f} %)"


def _per_kind(every: Sequence[Judged]) -> list[str]:
    lines = [
        "| kind | said | said first | of these lose half | of these lose nothing | median share |",
        "|---|---|---|---|---|---|",
    ]
    counts = Counter(kind for run in every for kind in set(run.kinds))
    for kind, count in counts.most_common():
        chosen = [run for run in every if run.first == kind]
        lost = sum(run.is_lost for run in chosen)
        kept = sum(run.is_kept for run in chosen)
        shares = sorted(run.row.share for run in every if kind in run.kinds)
        middle = shares[len(shares) // 2]
        lines.append(f"| {kind} | {count} | {len(chosen)} | {lost} | {kept} | {middle:.2f} |")
    return lines
