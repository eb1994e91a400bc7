"""What a rehearsal has shown: printed as a table, raised, or drawn."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from fmapboard.errors import FmapboardError
from fmapboard.printing import add_row, as_text, new_table
from fmapboard.rehearsal.experiment import Answer
from fmapboard.rehearsal.picture import drawn_curves


class RehearsalFault(FmapboardError):
    """A rehearsal has found a fault; the message names each."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One experiment and its answer.

    Attributes:
        kind: the experiment's name.
        question: what it asks.
        bound: what is expected of a healthy training.
        answer: what it has shown.
        seconds: how long it took.
    """

    kind: str
    question: str
    bound: str
    answer: Answer
    seconds: float


@dataclass(frozen=True, slots=True, repr=False)
class Rehearsal:
    """The result of ``rehearse``; it prints itself as a table.

    Attributes:
        outcomes: one per experiment, in the order in which they ran.
        is_interrupted: Ctrl-C has ended it.
    """

    outcomes: tuple[Outcome, ...]
    is_interrupted: bool = False

    @property
    def faults(self) -> tuple[Outcome, ...]:
        """The experiments that have found a fault; the most specific ones first."""
        found = [outcome for outcome in self.outcomes if outcome.answer.judgement == "fault"]
        return tuple(sorted(found, key=lambda outcome: outcome.kind in _SYMPTOMS))

    @property
    def suspicions(self) -> tuple[Outcome, ...]:
        """The experiments whose answer some healthy trainings have, too."""
        return tuple([o for o in self.outcomes if o.answer.judgement == "suspicion"])

    @property
    def verdict(self) -> str:
        """One sentence."""
        seconds = sum(outcome.seconds for outcome in self.outcomes)
        ended = ", ended by Ctrl-C" if self.is_interrupted else ""
        asked = f"{len(self.outcomes)} questions in {seconds:.0f} s{ended}"
        found = self._found
        if not found:
            judged = [o for o in self.outcomes if o.answer.judgement == "fine"]
            if not judged:
                return f"nothing could be judged ({asked})"
            return f"no fault found ({asked})"
        first = found[0].answer
        more = len(found) - 1
        others = f"; {more} more below" if more else ""
        return f"{first.judgement}: {first.text}{others} ({asked})"

    @property
    def _found(self) -> tuple[Outcome, ...]:
        """Faults, then suspicions."""
        return (*self.faults, *self.suspicions)

    def __repr__(self) -> str:
        table = new_table()
        for title in ("", "question", "answer", "s"):
            table.add_column(title, overflow="fold")
        for outcome in self.outcomes:
            answer = outcome.answer
            style = "bold" if outcome in self._found else None
            seconds = f"{outcome.seconds:.1f}"
            add_row(table, answer.judgement, outcome.question, answer.text, seconds, style=style)
        lines = [self.verdict, ""]
        for outcome in self._found:
            lines.append(f"{outcome.question} {outcome.answer.advice}.")
        if self._found:
            lines.append("")
        return "\n".join([*lines, as_text(table)])

    def raise_for_faults(self) -> None:
        """Raise an error if there is a fault; not for a suspicion.

        Raises:
            RehearsalFault: there is one.
        """
        if not self.faults:
            return
        named = [f"{outcome.answer.text}. {outcome.answer.advice}" for outcome in self.faults]
        raise RehearsalFault("; ".join(named))

    def to_dict(self) -> dict[str, Any]:
        """The result as strings, numbers, lists and dictionaries."""
        experiments = []
        for outcome in self.outcomes:
            answer = asdict(outcome.answer)
            answer["curves"] = {n: list(values) for n, values in outcome.answer.curves.items()}
            experiments.append(
                {
                    "kind": outcome.kind,
                    "question": outcome.question,
                    "bound": outcome.bound,
                    "seconds": outcome.seconds,
                    **answer,
                }
            )
        return {
            "verdict": self.verdict,
            "faults": [outcome.kind for outcome in self.faults],
            "suspicions": [outcome.kind for outcome in self.suspicions],
            "is_interrupted": self.is_interrupted,
            "experiments": experiments,
        }

    def image(self) -> Image.Image:
        """The table, and the curves of each experiment that has any."""
        rows: list[tuple[str, str, str]] = []
        for outcome in self.outcomes:
            answer = outcome.answer
            rows.append((answer.judgement, outcome.question, answer.text))
            if outcome in self._found:
                rows.append(("", "", f"{answer.advice}."))
        return drawn_curves(self.verdict, rows, self._curves())

    def save(self, path: str | Path) -> None:
        """Write the picture, as PNG or any other format of its suffix."""
        self.image().save(path)

    def _curves(self) -> Mapping[str, Mapping[str, tuple[float, ...]]]:
        found = {}
        for outcome in self.outcomes:
            if outcome.answer.curves:
                found[outcome.question] = outcome.answer.curves
        return found

    def _repr_html_(self) -> str:
        png = io.BytesIO()
        self.image().save(png, "PNG")
        encoded = base64.b64encode(png.getvalue()).decode()
        return (
            f'<img src="data:image/png;base64,{encoded}" alt="{html.escape(self.verdict)}" '
            'style="max-width: 100%">'
        )


_SYMPTOMS = frozenset({"one_batch_is_learnt", "rates"})
"""Kinds whose faults may follow from those of the others."""
