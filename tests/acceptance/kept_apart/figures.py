"""The table of the trainings that were kept apart, and the three figures that are read from it."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from kept_apart.sheet import FAULTY_WORDS
from kept_apart.trainings import HEALTHY, RIGHT, UNTRAINED, WRONG

NOTHING = 0.1
"""Below this share of what the right version gains, a wrong version learns nothing."""
LEARNS = "learns"


@dataclass(frozen=True)
class Row:
    """One training.

    Attributes:
        author, case, version: which; see `kept_apart.trainings`.
        mistake: the author's words; empty unless the version is wrong.
        held_out: the measure at the end, higher is better.
        loss_start: mean of the first three losses.
        loss_end: mean of the last fifth of the losses.
        state: of the verdict; empty for an untrained version, which logs nothing.
        learns: what the verdict says of the loss: True, False or None.
        class_, kind: of the first cause; empty if nothing was found.
        warnings, notes: how many findings there are.
        outlets: "agree", or in which outlets something else is said.
        error: why the training ended, or was not read; else empty.
        line: first line of the verdict.
        screen: what ``fmapboard why`` prints.
    """

    author: str
    case: str
    version: str
    mistake: str = ""
    held_out: float = math.nan
    loss_start: float = math.nan
    loss_end: float = math.nan
    state: str = ""
    learns: str = ""
    class_: str = ""
    kind: str = ""
    warnings: int = 0
    notes: int = 0
    outlets: str = ""
    error: str = ""
    line: str = ""
    screen: str = ""

    @property
    def pair(self) -> tuple[str, str]:
        return self.author, self.case

    @property
    def fall(self) -> float:
        """By how much the loss fell."""
        return self.loss_start - self.loss_end


def losses_of(losses: Sequence[float]) -> tuple[float, float]:
    """Means of the first three losses and of the last fifth of them, five at least."""
    last = max(5, len(losses) // 5)
    return statistics.fmean(losses[:3]), statistics.fmean(losses[-last:])


def write(rows: Iterable[Row], path: Path) -> None:
    """Write the table; line breaks are written as two characters."""
    lines = ["\t".join(field.name for field in fields(Row))]
    lines += ["\t".join(_text(value) for value in asdict(row).values()) for row in rows]
    path.write_text("\n".join(lines) + "\n")


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.5g}"
    plain = str(value).replace("\\", "\\\\").replace("\n", "\\n")
    return plain.replace("\t", " ").replace("\r", " ")


def read(path: Path) -> list[Row]:
    kinds: dict[str, Callable[[str], Any]] = {"float": float, "int": int, "str": _plain}
    header, *lines = path.read_text().removesuffix("\n").split("\n")
    rows = []
    for line in lines:
        texts = dict(zip(header.split("\t"), line.split("\t"), strict=True))
        values = {field.name: kinds[str(field.type)](texts[field.name]) for field in fields(Row)}
        rows.append(Row(**values))
    return rows


def _plain(text: str) -> str:
    return "\\".join(part.replace("\\n", "\n") for part in text.split("\\\\"))


def learns_nothing(wrong: Row, right: Row, untrained: Row | None) -> tuple[bool, str]:
    """True if the wrong version gains less than `NOTHING` of what the right one gains.

    The gain is that of the held-out measure over the untrained network, which has seen as many
    batches. If the right version does not gain, or that is not known, the fall of the loss counts.

    Returns:
        Whether it learns nothing, and "held-out" or "loss".
    """
    start = math.nan if untrained is None else untrained.held_out
    gain = right.held_out - start
    if math.isfinite(gain) and gain > 0:
        return not wrong.held_out - start >= NOTHING * gain, "held-out"
    return not wrong.fall >= NOTHING * right.fall, "loss"


@dataclass(frozen=True)
class Group:
    """The trainings of an author, or of all of them."""

    name: str
    rows: Sequence[Row]
    words: Mapping[tuple[str, str], str]

    @property
    def wrong(self) -> list[Row]:
        return [row for row in self.rows if row.version == WRONG]

    @property
    def healthy(self) -> list[Row]:
        return [row for row in self.rows if row.version in (RIGHT, HEALTHY)]

    def cells_of_causes(self) -> list[Any]:
        counts = Counter(self.words.get(row.pair, "") for row in self.wrong)
        unknown = len(self.wrong) - sum(counts[word] for word in FAULTY_WORDS)
        return [len(self.wrong), *(counts[word] for word in FAULTY_WORDS), unknown]

    def cells_of_learning(self) -> list[Any]:
        by_pair = {(*row.pair, row.version): row for row in self.rows}
        nothing: list[Row] = []
        by_loss = 0
        flat: list[Row] = []
        for row in self.wrong:
            right = by_pair.get((*row.pair, RIGHT))
            if right is None:
                continue
            is_nothing, by = learns_nothing(row, right, by_pair.get((*row.pair, UNTRAINED)))
            if is_nothing:
                nothing.append(row)
                by_loss += by == "loss"
                if not row.fall >= NOTHING * right.fall:
                    flat.append(row)
        return [len(nothing), by_loss, _share_not_green(nothing), len(flat), _share_not_green(flat)]

    def cells_of_healthy(self) -> list[Any]:
        warned = [row for row in self.healthy if row.warnings]
        noted = [row for row in self.healthy if row.notes and not row.warnings]
        read = [row for row in self.rows if row.state]
        differ = [row for row in read if row.outlets != "agree"]
        total = len(self.healthy)
        states = Counter(row.state or "error" for row in self.healthy)
        text = ", ".join(f"{state} {count}" for state, count in states.most_common())
        return [
            total,
            len(warned),
            _share(len(noted), total),
            text,
            f"{len(differ)} of {len(read)}",
        ]


def _share_not_green(rows: Sequence[Row]) -> str:
    return _share(sum(row.state not in ("", LEARNS) for row in rows), len(rows))


def _share(count: int, total: int) -> str:
    return f"{count} ({100 * count / total:.0f} %)" if total else "0"


def figures(rows: Sequence[Row], words: Mapping[tuple[str, str], str]) -> str:
    """The three figures per author and for all, as Markdown, with their definitions.

    Args:
        rows: the table.
        words: author and case -> the judge's word on the wrong version.
    """
    authors = list(dict.fromkeys(row.author for row in rows))
    groups = [Group(name, [row for row in rows if row.author == name], words) for name in authors]
    groups.append(Group("all", rows, words))
    errors = [f"- {row.author} {row.case}, {row.version}: {row.error}" for row in rows if row.error]
    lines = [
        "**The right cause first.** Of the trainings with a mistake, those whose first cause names",
        "it: by its meaning, judged by a reader of the mistake and of the answer alone.",
        "",
        "| author | with a mistake | named | symptom | wrong | silent | not judged |",
        "|---|---|---|---|---|---|---|",
        *(_line(group.name, group.cells_of_causes()) for group in groups),
        "",
        "**Learns nothing, and is not called green.** A training with a mistake learns nothing if",
        f"its held-out measure gains less than {NOTHING:.0%} of what the right one gains over the",
        "untrained network: the right one once more, with optimizers that do not step. If the",
        f"right one does not gain, its loss counts: a fall of less than {NOTHING:.0%} of the right",
        "one's. The last columns count those of them whose training loss did not fall so far",
        "either: what is wrong with the others shows in held-out data only.",
        "",
        "| author | learn nothing | by the loss | not green | loss flat too | not green |",
        "|---|---|---|---|---|---|",
        *(_line(group.name, group.cells_of_learning()) for group in groups),
        "",
        "**Healthy trainings**: the right version of each pair, and the others. With a note means:",
        "and without a warning. Outlets differ: of all runs that logged, those of which `why`,",
        "`check`, the tab and the report do not say the same.",
        "",
        "| author | healthy | with a warning | with a note | states | outlets differ |",
        "|---|---|---|---|---|---|",
        *(_line(group.name, group.cells_of_healthy()) for group in groups),
    ]
    if errors:
        lines += ["", "Ended before their end, or not read:", *errors]
    return "\n".join(lines)


def _line(name: str, cells: Sequence[Any]) -> str:
    return f"| {' | '.join(map(str, (name, *cells)))} |"
