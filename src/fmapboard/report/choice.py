"""Which steps and layers a report holds."""

from __future__ import annotations

import bisect
import fnmatch
from collections.abc import Collection, Iterable, Mapping, Sequence

from fmapboard.errors import LayerNotFound, closest
from fmapboard.formats.overview import KINDS
from fmapboard.formats.tab_records import PLUGIN_NAME
from fmapboard.plugin.tag_names import layer_of, overview_of
from fmapboard.runs.log import EventLog, TagSeries

CHART_STEPS = 50
"""Steps of the charts and of the overview, as many as TensorBoard keeps by default."""
_CHARTS = ("images", "histograms")


def spread(steps: Sequence[int], count: int, wanted: Iterable[int] = ()) -> list[int]:
    """At most ``count`` of the steps, evenly spaced, with the first and the last.

    Args:
        steps: ascending.
        count: at least 1.
        wanted: steps that take the place of the nearest chosen ones, the most important first. Of
            one that is not among ``steps``, the next one is taken.

    Example:
        >>> spread([0, 10, 20, 30, 40], 3)
        [0, 20, 40]
        >>> spread([0, 10, 20, 30, 40], 3, [30])
        [0, 30, 40]
    """
    if count >= len(steps):
        return list(steps)
    if count == 1:
        return [steps[-1]]
    last = len(steps) - 1
    chosen = [(2 * place * last + count - 1) // (2 * (count - 1)) for place in range(count)]
    free = set(chosen[1:-1])
    for step in wanted:
        place = bisect.bisect_left(steps, step)
        if free and place <= last and place not in chosen:
            nearest = min(free, key=lambda other: (abs(other - place), other))
            chosen[chosen.index(nearest)] = place
            free.remove(nearest)
        free.discard(place)
    return [steps[place] for place in sorted(chosen)]


def onsets(
    since: Mapping[str, Mapping[int, int]], rows: Collection[int], steps: Sequence[int]
) -> list[int]:
    """The steps at which the layers' faults began, and those before them, to be shown.

    Args:
        since: for each kind of fault, row of a layer -> the step since which it lasts.
        rows: of the layers that are shown.
        steps: ascending.
    """
    of_kinds = [[s for row, s in since.get(kind, {}).items() if row in rows] for kind in KINDS]
    first = dict.fromkeys(min(of) for of in of_kinds if of)
    begun = [step for step in first if step > steps[0]]
    return begun + [steps[bisect.bisect_left(steps, step) - 1] for step in begun]


def layers_of(log: EventLog) -> dict[str, str]:
    """Key of a layer -> its name, and the call if it is not the first."""
    layers = [
        layer_of(tag)
        for tag, series in log.series.items()
        if series.plugin == PLUGIN_NAME and series.data  # a run begun anew may have dropped all
    ]
    return {layer.key: layer.label for layer in layers if layer is not None}


def logged_steps(log: EventLog) -> list[int]:
    """The steps at which records for the tab were written, ascending."""
    sampled = [series.data for tag, series in log.series.items() if _is_sampled(tag, series)]
    return sorted(set[int]().union(*sampled))


def thin(log: EventLog, steps: Iterable[int]) -> None:
    """Keep only these steps of pictures, records and histograms; scalars and texts stay.

    The first and the last step of each series stay too: a layer may run at few steps only.
    """
    kept = set(steps)
    for tag, series in log.series.items():
        if series.data and (series.plugin in _CHARTS or _is_sampled(tag, series)):
            series.keep({min(series.data), max(series.data), *kept})


def _is_sampled(tag: str, series: TagSeries) -> bool:
    is_of_steps = layer_of(tag) is not None or overview_of(tag) is not None
    return series.plugin == PLUGIN_NAME and is_of_steps


def matching(patterns: Sequence[str], names: Sequence[str]) -> set[str]:
    """The names that match any of the globs, without those that a glob with ``!`` matches.

    Raises:
        LayerNotFound: a pattern matches none, or none is left.
    """
    chosen = set() if any(not one.startswith("!") for one in patterns) else set(names)
    for pattern in patterns:
        found = set(fnmatch.filter(names, pattern.removeprefix("!")))
        if not found:
            near = closest(pattern, names)
            raise LayerNotFound(f"no layer matches {pattern!r} among {len(names)}{near}")
        chosen = chosen - found if pattern.startswith("!") else chosen | found
    if not chosen:
        raise LayerNotFound(f"no layer is left of {len(names)}: {', '.join(patterns)}")
    return chosen
