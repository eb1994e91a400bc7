"""Input images whose values are far from the usual range, where that matters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fmapboard.checks.finding import Finding
from fmapboard.checks.run_record import NotRecorded, RunRecord
from fmapboard.formats import tags

_RESCALED = 3.0
"""Factor between the magnitudes of a layer and of its activation from which a normalization must be
between the two; activations themselves hardly enlarge anything."""


@dataclass(frozen=True, slots=True)
class InputScaleCheck:
    """Input images whose values are far from the usual range: not normalized, or twice.

    Attributes:
        largest: median over the logged steps of the largest magnitude from which it is reported.
        response: standard deviation of the first layer's output at the first logged step up to
            which large images are not reported: the network scales them itself.
        spread: median over the logged steps of the standard deviation up to which it is reported,
            unless a normalization follows the first layer.
    """

    largest: float = 30.0
    response: float = 2.0
    spread: float = 0.03
    kind: ClassVar[str] = "input_scale"

    def __call__(self, record: RunRecord) -> Sequence[Finding]:
        """See `Check`."""
        needed = {"minimum", "maximum", "std"}
        every = [numbers for numbers in record.network_input.values() if needed <= numbers.keys()]
        if not every:
            raise NotRecorded(f"the input's range (key input of {tags.OVERVIEW})")
        low, high = (float(np.median([n[key] for n in every])) for key in ("minimum", "maximum"))
        magnitude = float(np.median([max(abs(n["minimum"]), abs(n["maximum"])) for n in every]))
        varied = [n["std"] for n in every if n["maximum"] > n["minimum"]]
        spread = float(np.median(varied)) if varied else math.inf
        if magnitude > self.largest and _response(record) > self.response:
            text = (
                f"the largest magnitude of the input images is {magnitude:.3g} (median of "
                f"{len(every)} logged steps)"
            )
            return [self._finding(record, text, magnitude, _of_large(low, high))]
        if spread < self.spread and not _is_normalized(record):
            text = (
                f"input images have a standard deviation of {spread:.2g} (median of "
                f"{len(every)} logged steps)"
            )
            meaning = "The images were scaled twice, or have hardly any contrast"
            return [self._finding(record, text, spread, meaning)]
        return []

    def _finding(self, record: RunRecord, text: str, value: float, meaning: str) -> Finding:
        since = min(record.network_input)
        when = f"since step {since}" if record.health is None else record.health.since_text(since)
        return Finding(
            kind=self.kind,
            class_="note",
            message=f"{text} {when}",
            since_step=since,
            value=value,
            healthy="magnitudes up to 5, standard deviation 0.2 to 1.5",
            meaning=meaning,
            advice="Normalize the images once, to a standard deviation near 1",
            picture=f"{tags.prefix(record.name)}{tags.network_input(0)}",
        )


def _of_large(low: float, high: float) -> str:
    """What the range of images with large values may mean."""
    if low >= 0 and 100 <= high <= 255:
        return "The images are not scaled: 0 to 255 instead of 0 to 1"
    return f"The images are not scaled: their values range from {low:.3g} to {high:.3g}"


def _response(record: RunRecord) -> float:
    """Standard deviation of the first layer with kernels at the first logged step.

    Infinite if it is not known.
    """
    rows = [] if record.health is None else record.weighted_layers()
    if not rows or record.health is None:
        return math.inf
    std = float(record.health.columns["std"][0, record.health.rows.index(rows[0])])
    return std if math.isfinite(std) else math.inf


def _is_normalized(record: RunRecord) -> bool:
    """True if a normalization must follow the first layer with kernels.

    The activation behind it then has much larger magnitudes than the layer itself, and larger than
    1, which is as far as a sigmoid can lift small values.
    """
    table = record.health
    rows = [] if table is None else record.weighted_layers()
    if not rows or table is None:
        return False
    magnitude = np.fmax(np.abs(table.columns["minimum"][0]), np.abs(table.columns["maximum"][0]))
    known = {row.facts.label: float(magnitude[n]) for n, row in enumerate(table.rows)}
    own, after = known[rows[0].facts.label], known.get(rows[0].facts.activation or "", math.nan)
    return after > 1 and after > _RESCALED * own
