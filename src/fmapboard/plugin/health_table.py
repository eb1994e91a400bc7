"""What is known about the state of a run's layers over the steps, whatever it was read from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypedDict

from fmapboard.overview_format import LayerFacts
from fmapboard.tab_format import Floats


class FirstNonfinite(TypedDict):
    """Where `watch` found the first non-finite value of a run.

    ``step`` is the logged step, ``text`` what was written about it without backticks, ``name`` the
    name of the model or "", and ``label`` the layer, or None for a parameter.
    """

    step: int
    text: str
    name: str
    label: str | None


@dataclass(frozen=True, slots=True)
class HealthRow:
    """One layer call of a run.

    Attributes:
        facts: what is known about the layer.
        name: name of the model, as in ``watch(name=...)``; "" for none.
        key: tag of the layer's records, or None if the layer has no pictures.
        shown_at: key of the layer whose pictures show this one: its own; of an activation, that of
            the layer it follows; otherwise that of the nearest layer with pictures before it in
            the order of calls, else after it; None if the run has no pictures at all.
    """

    facts: LayerFacts
    name: str
    key: str | None
    shown_at: str | None


@dataclass(frozen=True, slots=True)
class HealthTable:
    """Numbers of every layer of a run at every step that is kept.

    Attributes:
        run: name of the run.
        source: ``"overview"`` if the run has an overview series; otherwise ``"records"``, or
            ``"scalars"`` for a run with too many records to read. Then only what those tell is
            known: of ``"scalars"`` the shares of channels, of ``"records"`` the drawn channels of
            the drawn layers and what the scalars tell of the others.
        steps: the kept steps, ascending.
        written: number of logged steps.
        rows: the layers in network order.
        columns: name of one of `overview_format.COLUMNS` -> float [steps, rows], NaN if not known.
        since: kind of `overview_format.KINDS` -> row -> first of the logged steps at which the
            layer has been in that state without interruption up to the newest step. Exact even
            where TensorBoard has dropped steps; empty unless ``source`` is ``"overview"``.
        first_nonfinite: where the first non-finite value was found; None if none was.
    """

    run: str
    source: Literal["overview", "records", "scalars"]
    steps: tuple[int, ...]
    written: int
    rows: tuple[HealthRow, ...]
    columns: Mapping[str, Floats]
    since: Mapping[str, Mapping[int, int]]
    first_nonfinite: FirstNonfinite | None = None
