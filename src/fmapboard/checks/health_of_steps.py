"""Build the health table of one model from its overviews, one per step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from fmapboard.checks.health_table import HealthTable, rows_of
from fmapboard.formats.overview import KINDS, LayerFacts, OverviewStep, is_of_images
from fmapboard.formats.training_facts import FirstNonfinite

COLUMNS = (
    "minimum", "maximum", "std", "nonfinite", "constant", "dead", "dead_lasting", "weights_change",
    "values",
)  # fmt: skip
"""Columns of an overview that the checks read."""
MAX_LAYERS = 20_000
"""Layers of a model that are read; a real network has fewer."""


def health_of(
    run: str,
    name: str,
    overviews: Sequence[tuple[int, OverviewStep]],
    told: FirstNonfinite | None,
) -> HealthTable | None:
    """The health table of a model; None without overviews.

    Args:
        run: name of the run.
        name: name of the model; "" for none.
        overviews: step and overview, ascending.
        told: where `watch` found the first non-finite value.
    """
    if not overviews:
        return None
    newest = overviews[-1][1]
    layers = with_values(merged([of.layers for _, of in overviews]), newest)
    place = {layer.label: index for index, layer in enumerate(layers)}
    columns = {
        column: np.full((len(overviews), len(layers)), np.nan, np.float32) for column in COLUMNS
    }
    last: tuple[LayerFacts, ...] = ()
    source, target = np.zeros(0, np.intp), np.zeros(0, np.intp)
    for index, (_, of) in enumerate(overviews):
        if of.layers is not last:
            last = of.layers
            known = [(i, place[one.label]) for i, one in enumerate(last) if one.label in place]
            source, target = np.array(known, np.intp).reshape(-1, 2).T
        for column, table in columns.items():
            if column in of.numbers:
                table[index, target] = of.numbers[column][source]
    since: dict[str, dict[int, int]] = {kind: {} for kind in KINDS}
    for kind, among in newest.since.items():
        for index, step in among.items():
            row = place.get(newest.layers[index].label)
            if row is not None:
                since[kind][row] = step
    shown = {step: of.source for step, of in overviews}
    return HealthTable(
        run=run,
        steps=tuple(shown),
        written=max(len(overviews), newest.steps_written),
        rows=tuple(rows_of(name, layers)),
        columns=columns,
        since={} if is_of_images(shown) else {kind: of for kind, of in since.items() if of},
        first_nonfinite=told,
        sources={step: source for step, source in shown.items() if source is not None},
    )


def merged(lists: Iterable[tuple[LayerFacts, ...]]) -> tuple[LayerFacts, ...]:
    """All layers, each as in the last list that has it, in the order of calls."""
    found: dict[str, LayerFacts] = {}
    last: tuple[LayerFacts, ...] = ()
    for layers in lists:
        if layers is not last:
            found.update({layer.label: layer for layer in layers})
            last = layers
    ordered = sorted(found.values(), key=lambda one: (one.position, one.call, one.label))
    return tuple(ordered[:MAX_LAYERS])


def with_values(layers: tuple[LayerFacts, ...], newest: OverviewStep) -> tuple[LayerFacts, ...]:
    """The layers with their number of values per channel at the newest step."""
    if "values" not in newest.numbers:
        return layers
    values = zip(newest.layers, newest.numbers["values"].tolist(), strict=True)
    now = {one.label: int(value) for one, value in values if 0 <= value < 2**53}
    return tuple(replace(x, values=now[x.label]) if x.label in now else x for x in layers)
