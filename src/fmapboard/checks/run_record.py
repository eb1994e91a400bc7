"""What the checks read: the numbers of one watched model over the logged steps of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from fmapboard.checks.finding import Finding
from fmapboard.checks.health_table import HealthRow, HealthTable
from fmapboard.formats import tags
from fmapboard.formats.tab_records import Floats
from fmapboard.formats.training_facts import Findings

Steps = npt.NDArray[np.int64]


class NotRecorded(Exception):
    """A check lacks what it reads; the message says which series is missing."""


@dataclass(frozen=True, slots=True)
class Series:
    """A scalar over the steps.

    Attributes:
        steps: int64 [S], ascending.
        values: float64 [S]; may hold NaN and infinities.
    """

    steps: Steps
    values: Floats


@dataclass(frozen=True, slots=True)
class RunRecord:
    """The record of one watched model; nothing in it depends on torch.

    Attributes:
        run: name or path of the run.
        name: name of the model, as in ``watch(name=...)``; "" for none.
        health: numbers of every layer at every step; None if the run has no overview series.
        scalars: group, such as ``gradient_norm`` -> name of a layer or parameter -> its series;
            of the groups in `record_builder.GROUPS`.
        facts: logged step -> what only the training process knew, ascending; empty if the run has
            no such series.
        first: label of a drawn layer -> ``minimum``, ``maximum``, ``mean`` and ``std`` of its drawn
            channels at the first logged step, float32 [channels].
        network_input: logged step -> `formats.overview.INPUT_NUMBERS` of the drawn input images.
    """

    run: str = ""
    name: str = ""
    health: HealthTable | None = None
    scalars: Mapping[str, Mapping[str, Series]] = field(default_factory=dict)
    facts: Mapping[int, Findings] = field(default_factory=dict)
    first: Mapping[str, Mapping[str, Floats]] = field(default_factory=dict)
    network_input: Mapping[int, Mapping[str, float]] = field(default_factory=dict)

    def layers(self) -> HealthTable:
        """``health``.

        Raises:
            NotRecorded: the run has no overview series.
        """
        if self.health is None:
            raise NotRecorded(f"the series {tags.OVERVIEW}")
        return self.health

    def training_facts(self) -> Mapping[int, Findings]:
        """``facts``.

        Raises:
            NotRecorded: the run has no series of findings.
        """
        if not self.facts:
            raise NotRecorded(f"the series {tags.FINDINGS}")
        return self.facts

    def group(self, group: str) -> Mapping[str, Series]:
        """Name of a layer or parameter -> its scalar in a group, such as ``gradient_norm``.

        Raises:
            NotRecorded: the run has no scalar in the group.
        """
        if not self.scalars.get(group):
            raise NotRecorded(f"the scalars {group}/…")
        return self.scalars[group]

    def picture(self, row: HealthRow) -> str:
        """Tag of the Images series that shows a layer, or the layer before it; "" if none does."""
        shown = row
        if row.key is None:
            of_key = (other for other in self.layers().rows if other.key == row.shown_at)
            found = None if row.shown_at is None else next(of_key, None)
            if found is None:
                return ""
            shown = found
        facts = shown.facts
        if "feature_maps" not in facts.roles:
            return ""
        group = "x".join(map(str, facts.kernel_shape)) if facts.kernel_shape else facts.type
        return tags.prefix(self.name) + tags.image("feature_maps", group, facts.label)

    def weighted_layers(self) -> list[HealthRow]:
        """The first call of each layer with kernels, in network order."""
        rows = self.layers().rows
        return [row for row in rows if row.facts.kernel_shape and row.facts.call == 1]


def has_zero_gradient(record: RunRecord, parameter: str) -> bool:
    """True if the gradient of a parameter is known to be zero at every logged step."""
    norms = record.scalars.get(tags.GRADIENT_NORM, {}).get(parameter)
    return norms is not None and bool((norms.values == 0).all())


class Check(Protocol):
    """Looks for one kind of fault in a run.

    An implementation is a small object, such as a frozen dataclass whose fields are its thresholds.
    It keeps no state: it is called again with a longer record as the run goes on, and with records
    of other models and runs, in any thread.

    Attributes:
        kind: names the check, to silence it, and the kind of its findings: a valid identifier.
    """

    @property
    def kind(self) -> str:
        """Name of the check."""
        ...

    def __call__(self, record: RunRecord) -> Sequence[Finding]:
        """What is wrong; empty if nothing is.

        Args:
            record: the record of one model; it may be of a run that goes on, with few steps.

        Raises:
            NotRecorded: the run lacks a series that the check reads.
        """
        ...
