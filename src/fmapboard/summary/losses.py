"""The losses that were read of the outputs, a file of its own for which of them are certain.

A loss that is read from an output and its gradient counts once two logged steps agree on its kind.
Until then its value is held back, and it is stored with the step that confirms it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from fmapboard.formats import tags
from fmapboard.formats.training_facts import HeldLoss, OutputFacts


class ReadLoss(NamedTuple):
    """What was read from the last output and gradient of one name that could be read.

    Attributes:
        held: step, loss and accuracy.
        kind: of the loss.
        is_climbed: as in ``OutputFacts``.
        is_certain: another step has agreed.
    """

    held: HeldLoss
    kind: str
    is_climbed: bool
    is_certain: bool


def certain_outputs(
    before: Mapping[str, ReadLoss], outputs: Iterable[OutputFacts], step: int
) -> tuple[Mapping[str, ReadLoss], tuple[OutputFacts, ...]]:
    """What to compare later steps with, and the outputs without what no other step agrees with.

    Args:
        before: By name of the output.
        outputs: As they were read.
        step: The logged step.
    """
    after = dict(before)
    certain = list[OutputFacts]()
    for output in outputs:
        if output.kind == "not certain":
            certain.append(output)
            continue
        last = before.get(output.name)
        agrees = (
            last is not None and last.kind == output.kind and last.is_climbed == output.is_climbed
        )
        held = HeldLoss(step, output.loss, output.accuracy)
        after[output.name] = ReadLoss(held, output.kind, output.is_climbed, agrees)
        if last is None or not agrees:
            certain.append(_without_loss(output))
        elif last.is_certain or output.given:
            certain.append(output)
        else:
            certain.append(replace(output, held=last.held))
    return after, tuple(certain)


def _without_loss(output: OutputFacts) -> OutputFacts:
    """Only what does not depend on which loss it is, and what the user gave."""
    known = OutputFacts(
        name=output.name,
        shape=output.shape,
        rows=output.rows,
        low=output.low,
        high=output.high,
        spread=output.spread,
        rows_are=output.rows_are,
        predictions=output.predictions,
        classes=output.classes,
    )
    if not output.given:
        return known
    return replace(
        known,
        loss=output.loss,
        accuracy=output.accuracy,
        labels=output.labels,
        label_changes=output.label_changes,
        given=True,
    )


def output_scalars(
    outputs: Iterable[OutputFacts], prefix: str
) -> tuple[dict[str, float], dict[int, dict[str, float]]]:
    """The scalars of outputs by tag, and those of earlier steps that are certain now."""
    now = dict[str, float]()
    earlier = dict[int, dict[str, float]]()

    def tagged(output: OutputFacts, values: Mapping[str, float | None]) -> dict[str, float]:
        end = f"/{output.name}" if output.name else ""
        return {f"{prefix}{tag}{end}": value for tag, value in values.items() if value is not None}

    for output in outputs:
        tag = tags.LOSS_GIVEN if output.given else tags.LOSS_READ
        values = {
            tag: output.loss,
            tags.ACCURACY: output.accuracy,
            tags.OUTPUT_SPREAD: output.spread,
        }
        now |= tagged(output, values)
        held = output.held
        if held is not None:
            values = {tags.LOSS_READ: held.loss, tags.ACCURACY: held.accuracy}
            earlier.setdefault(held.step, {}).update(tagged(output, values))
    return now, earlier
