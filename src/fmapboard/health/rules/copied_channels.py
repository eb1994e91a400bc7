"""Channels that start as copies of each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.health import effects, thresholds
from fmapboard.health.copies import copied_layers
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding, whole_percent
from fmapboard.health.record import NotRecorded
from fmapboard.health.rule import Rule
from fmapboard.health.table import call_text

_KERNELS = (
    "Equal kernels compute the same feature. They get equal gradients and stay equal as long as "
    "the weights behind them are equal too",
    "Initialize the weights at random, not with a constant",
)
_HEADS = (
    "Heads with equal queries and keys attend to the same tokens, so the layer attends in fewer "
    "ways than it has heads",
    "Check that each head receives features of its own, and initialize the weights of queries and "
    "keys at random",
)


@dataclass(frozen=True, slots=True)
class CopiedChannelsCheck(Rule):
    """Channels, units of an MLP or heads that are copies of each other at the first logged step.

    Copies have equal ranges, standard deviations and distances of the mean from the minimum, to
    within 1e-4 of the range; they may differ by an offset, as that of a bias.

    Why it hurts: equal kernels get equal gradients, and stay equal as long as the weights behind
    them are equal too: the layer has fewer features than channels.

    Silent: for constant channels; for layers behind one of a single channel; for layers without
    kernels, such as normalizations; and where channels start in equal groups of 4, 9 or 16
    neighbours, the usual initialization in front of a PixelShuffle.

    Example: ``nn.init.constant_(layer.weight, 0.02)``; a wrong index that gives each head the
    queries and keys of the first one.

    Attributes:
        share: share of a layer's drawn channels that have a copy, 0 to 1, from which it is
            reported.
        least: number of channels that a layer must have.
    """

    share: float = thresholds.COPIED_SHARE.value
    least: int = thresholds.COPIED_CHANNELS.value
    kind: ClassVar[str] = "copied_channels"
    leads_to: ClassVar[tuple[str, ...]] = effects.fading()
    cure: ClassVar[str] = "new_weights"

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        if not evidence.record.first:
            raise NotRecorded("records of the first logged step (fmapboard_first/…)")
        table = evidence.layers
        copied = copied_layers(evidence, self.share, self.least)
        if not copied:
            return
        row, share = copied[0]
        others = len(copied) - 1
        more = ""
        if others:
            layers = "layer" if others == 1 else "layers"
            more = f", and in {others} further {layers}"
        meaning, advice = _HEADS if row.facts.unit == "head" else _KERNELS
        yield Finding(
            message=f"{whole_percent(share)} of the drawn {row.facts.unit}s in "
            f"{call_text(table, row)} have a copy in the layer at "
            f"{table.step_text(table.steps[0])}{more}",
            since_step=table.steps[0],
            layer=row.facts.label,
            value=share,
            healthy=f"below {whole_percent(self.share)}",
            meaning=meaning,
            advice="" if table.is_of_images else advice,
            picture=evidence.record.picture(row),
        )
