"""Which steps and layers a report holds."""

from __future__ import annotations

import bisect
import fnmatch
from collections.abc import Collection, Iterable, Mapping, Sequence

from fmapboard.errors import LayerNotFound, closest, few
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
    gaps = count - 1
    chosen = set()
    for number in range(count):
        rounded = (2 * number * last + gaps) // (2 * gaps)  # of number * last / gaps
        chosen.add(rounded)
    free = chosen - {0, last}
    for step in wanted:
        place = bisect.bisect_left(steps, step)
        is_new = place <= last and place not in chosen
        if free and is_new:
            nearest = min(free, key=lambda other: (abs(other - place), other))
            chosen.remove(nearest)
            chosen.add(place)
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
    begun: list[int] = []
    before: list[int] = []
    for kind in KINDS:
        since_of_kind = since.get(kind, {})
        onsets_of_rows = [since_of_kind[row] for row in rows if row in since_of_kind]
        if not onsets_of_rows:
            continue
        first = min(onsets_of_rows)
        if first > steps[0] and first not in begun:
            place = bisect.bisect_left(steps, first)
            begun.append(first)
            before.append(steps[place - 1])
    return begun + before


def layers_of(log: EventLog) -> dict[str, str]:
    """Key of a layer -> its name, and the call if it is not the first."""
    labels: dict[str, str] = {}
    for tag, series in log.series.items():
        layer = layer_of(tag)
        is_kept = bool(series)  # a run begun anew may have dropped all
        if layer is not None and series.plugin == PLUGIN_NAME and is_kept:
            labels[layer.key] = layer.label
    return labels


def logged_steps(log: EventLog) -> list[int]:
    """The steps at which records for the tab were written, ascending."""
    steps: set[int] = set()
    for tag, series in log.series.items():
        if _is_sampled(tag, series):
            steps.update(series.steps)
    return sorted(steps)


def thin(log: EventLog, steps: Iterable[int]) -> None:
    """Keep only these steps of pictures, records and histograms; scalars and texts stay.

    The first and the last step of each series stay too: a layer may run at few steps only.
    """
    kept = set(steps)
    for tag, series in log.series.items():
        is_thinned = series.plugin in _CHARTS or _is_sampled(tag, series)
        if is_thinned and series:
            series.keep({series.steps[0], series.steps[-1], *kept})


def _is_sampled(tag: str, series: TagSeries) -> bool:
    if series.plugin != PLUGIN_NAME:
        return False
    return layer_of(tag) is not None or overview_of(tag) is not None


def matching(patterns: Sequence[str], names: Sequence[str]) -> set[str]:
    """The names that match any of the globs, without those that a glob with ``!`` matches.

    Raises:
        LayerNotFound: a pattern matches none, or none is left.
    """
    only_excludes = all(pattern.startswith("!") for pattern in patterns)
    chosen = set(names) if only_excludes else set()
    for pattern in patterns:
        found = set(fnmatch.filter(names, pattern.removeprefix("!")))
        if not found:
            near = closest(pattern, names) or f"; the first ones: {few(names)}"
            raise LayerNotFound(f"no layer matches {pattern!r} among {len(names)}{near}")
        if pattern.startswith("!"):
            chosen -= found
        else:
            chosen |= found
    if not chosen:
        raise LayerNotFound(
            f"no layer is left of {len(names)}: {', '.join(patterns)}; leave out a pattern with '!'"
        )
    return chosen
