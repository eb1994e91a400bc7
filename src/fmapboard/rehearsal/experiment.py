"""What an experiment is, and what it answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from fmapboard.rehearsal.setup import Setup

Judgement = Literal["fault", "suspicion", "fine", "not judged"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What an experiment has shown.

    Attributes:
        judgement: *suspicion* for what some healthy trainings show too; *not judged* if the network
            or the batch is of a kind that the bound does not hold for, or if time was missing.
        text: the answer, one sentence without a full stop.
        figure: what was measured; None if it is no number.
        advice: what to do about a fault or a suspicion.
        layer: the layer that the answer names; "" if it names none.
        curves: losses by what they are of, for the picture.
    """

    judgement: Judgement
    text: str
    figure: float | None = None
    advice: str = ""
    layer: str = ""
    curves: Mapping[str, tuple[float, ...]] = field(default_factory=dict)


class Experiment(ABC):
    """One question about a training, answered by passes and steps of a copy.

    A subclass is a frozen dataclass in a module of its own, ``rehearsal.experiments.<kind>``, whose
    fields are its bounds. Its docstring is what the docs say of it.

    Attributes:
        kind: its name in results.
        question: what it answers.
        bound: what is expected of a healthy training.
    """

    __slots__ = ()
    kind: ClassVar[str]
    question: ClassVar[str]
    bound: ClassVar[str]

    @abstractmethod
    def run(self, setup: Setup) -> Answer:
        """Answer the question.

        Raises:
            NoTwin: a pass was refused.
        """


def fault(
    text: str,
    *,
    advice: str,
    figure: float | None = None,
    layer: str = "",
    curves: Mapping[str, tuple[float, ...]] | None = None,
) -> Answer:
    """An answer that says what is wrong."""
    return Answer("fault", text, figure, advice, layer, curves or {})


def fine(
    text: str,
    figure: float | None = None,
    curves: Mapping[str, tuple[float, ...]] | None = None,
) -> Answer:
    """An answer that finds nothing wrong."""
    return Answer("fine", text, figure, curves=curves or {})


def not_judged(
    why: str,
    figure: float | None = None,
    curves: Mapping[str, tuple[float, ...]] | None = None,
) -> Answer:
    """An answer that says why there is none."""
    return Answer("not judged", why, figure, curves=curves or {})
