"""The judging sheet: what a tool said of a training beside what is wrong in it, without names.

A judge who does not know which tool said what, or what its names mean, writes one word per answer
into ``judgement.tsv``. ``key.tsv`` says which answer is whose, and is not for the judge.
"""

from __future__ import annotations

import csv
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

FAULTY_WORDS = ("named", "symptom", "wrong", "silent")
HEALTHY_WORDS = ("quiet", "warned")
MOST_CHARACTERS = 7000
"""An answer is cut after these."""
MOST_ALIKE = 3
"""Maximum number of lines of an answer that differ only in numbers."""
MORE = "  … (more such lines)"
HOW_TO_JUDGE = """\
# What a tool said of trainings

Each section is one training. It says what was trained and, if it has a mistake, which; then follow
answers of a tool to the question what is wrong with it. Judge each answer by its meaning alone and
write one word into the column `judgement` of judgement.tsv, and why in a few words into `why`.

If the training has a mistake:

- `named`: a reader who knows nothing but the answer would correct the mistake, or look at the right
  line. {first}
- `symptom`: it says truly that something is not in order, and neither its cause nor its cure leads
  to the mistake. A list of more than three possible causes without a preference is a symptom.
- `wrong`: it says that something is not in order which is, or its cure leads away from the mistake.
- `silent`: it says that nothing is wrong, or nothing but remarks on speed, hardware and style.

If it has none:

- `warned`: it says that something is wrong or should be changed, by whatever name.
- `quiet`: it says nothing of the kind. Remarks on speed, hardware and style do not count, nor does
  what is called information.
"""
FIRST = "Only the cause that the answer puts first counts."
ANYWHERE = "It may be said anywhere in the answer."
_DRAWN = re.compile("[\u2500-\u259f\u2700-\u27bf\U0001f300-\U0001faff]|\x1b\\[[0-9;]*m")
"""Lines of boxes, emoji, and ANSI colours."""


@dataclass(frozen=True)
class Item:
    """An answer to be judged.

    Attributes:
        tool, author, case, version: what the answer is about.
        description: what is trained.
        mistake: what is wrong; empty for a healthy training.
        text: the answer as its user reads it.
    """

    tool: str
    author: str
    case: str
    version: str
    description: str
    mistake: str
    text: str

    @property
    def number(self) -> str:
        """A name that says nothing, the same on each sheet."""
        return _hash(self.tool, self.author, self.case, self.version)

    @property
    def section(self) -> str:
        return _hash(self.author, self.case, self.version)

    @property
    def words(self) -> tuple[str, ...]:
        return FAULTY_WORDS if self.mistake else HEALTHY_WORDS


def _hash(*texts: str) -> str:
    return hashlib.sha256("/".join(texts).encode()).hexdigest()[:7]


def anonymous(text: str, names: Iterable[str], run: str = "") -> str:
    """A text without names of the tool, frames, colours, repetitions, links and the run's path.

    Args:
        text: what the tool printed.
        names: of the tool.
        run: path that it was given.
    """
    plain = _DRAWN.sub(" ", text)
    if run:
        plain = plain.replace(run, "run")
    for name in names:
        plain = re.sub(rf"\b{re.escape(name)}\b", "the tool", plain, flags=re.IGNORECASE)
    plain = re.sub(r"See `[^`]*`|(See )?\S*(https?://|docs/)\S+", "", plain)
    lines = [re.sub(r"[ \t]{3,}", "   ", line).rstrip() for line in plain.splitlines()]
    kept = [line for line in lines if line.strip() and not line.startswith("not checked")]
    short = "\n".join(_folded(kept))
    return short if len(short) <= MOST_CHARACTERS else f"{short[:MOST_CHARACTERS]} […]"


def _folded(lines: Iterable[str]) -> list[str]:
    """The lines, with `MORE` in place of those after `MOST_ALIKE` that differ only in numbers."""
    counts: Counter[str] = Counter()
    kept = []
    for line in lines:
        alike = re.sub(r"\d+(\.\d+)?", "0", line)
        counts[alike] += 1
        if counts[alike] <= MOST_ALIKE:
            kept.append(line)
        elif kept[-1] != MORE:
            kept.append(MORE)
    return kept


def write_sheet(items: Sequence[Item], folder: Path, counts: str) -> None:
    """Write the sheet, its key and the blank judgement, which is kept if it is there.

    Args:
        items: the answers; they are shuffled, each time in the same way.
        folder: where.
        counts: `FIRST` or `ANYWHERE`: what of an answer counts.
    """
    folder.mkdir(parents=True, exist_ok=True)
    shuffled = sorted(items, key=lambda item: (item.section, item.number))
    lines = [HOW_TO_JUDGE.format(first=counts)]
    section = ""
    for item in shuffled:
        if item.section != section:
            section = item.section
            wrong = item.mistake or "nothing."
            lines += [
                f"## Training {section}",
                "",
                item.description,
                "",
                f"Wrong in it: {wrong}",
                "",
            ]
        lines += [f"### Answer {item.number}", "", "```text", item.text or "(nothing)", "```", ""]
    (folder / "sheet.md").write_text("\n".join(lines))
    keys = [(item.number, item.tool, item.author, item.case, item.version) for item in shuffled]
    _write(folder / "key.tsv", ("number", "tool", "author", "case", "version"), keys)
    known = judgements(folder) if (folder / "judgement.tsv").exists() else {}
    blank = [(item.number, *known.get(item.number, ("", ""))) for item in shuffled]
    _write(folder / "judgement.tsv", ("number", "judgement", "why"), blank)


def _write(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def judgements(folder: Path) -> dict[str, tuple[str, str]]:
    """Number of an answer -> the judge's word, and why.

    Raises:
        ValueError: a word is none of those of the sheet.
    """
    found = {}
    for row in _read(folder / "judgement.tsv"):
        word = (row["judgement"] or "").strip().lower()
        if word and word not in (*FAULTY_WORDS, *HEALTHY_WORDS):
            known = ", ".join((*FAULTY_WORDS, *HEALTHY_WORDS))
            raise ValueError(f"judgement {word!r} of {row['number']}: expected one of {known}")
        found[row["number"]] = (word, row["why"] or "")
    return found


def judged(folder: Path) -> Mapping[tuple[str, str, str, str], str]:
    """Tool, author, case and version -> the judge's word; empty for an answer not judged yet."""
    words = judgements(folder)
    found = {}
    for row in _read(folder / "key.tsv"):
        key = (row["tool"], row["author"], row["case"], row["version"])
        found[key] = words.get(row["number"], ("", ""))[0]
    return found
