"""What is known of a healthy output of ten classes, and checks of runs with such outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from check_records import record

from fmapboard.checks import Check, Finding, RunRecord
from fmapboard.formats.training_facts import OutputFacts, TrainingFacts

OUTPUT = OutputFacts(
    name="", shape=(32, 10), rows=32, low=-2.0, high=2.0, spread=1.0, predictions=9,
    kind="cross-entropy", loss=2.3, accuracy=0.1, classes=10, label_changes=28,
    labels=tuple((n, 4) for n in range(8)),
)  # fmt: skip
"""Logits of 32 images of ten classes, at the loss of guessing."""


def labels(*pairs: tuple[int, int], **changes: Any) -> OutputFacts:
    """The output with these (label, number of images), and other changes."""
    return replace(OUTPUT, labels=pairs, **changes)


def record_of(outputs: Sequence[OutputFacts | tuple[OutputFacts, ...]], **known: Any) -> RunRecord:
    """The record of a run with an output, or several, at each logged step."""
    facts = []
    for output in outputs:
        every = output if isinstance(output, tuple) else (output,)
        facts.append(TrainingFacts(batch=32, outputs=every))
    return record(facts=facts, **known)


def findings_of(check: Check, *outputs: OutputFacts | tuple[OutputFacts, ...]) -> list[Finding]:
    """What a check finds in a run with an output, or several, at each logged step."""
    return list(check(record_of(outputs)))
