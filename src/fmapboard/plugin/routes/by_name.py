"""The route that lists the runs, and all routes by their names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import path

from fmapboard.plugin.answers import Answer
from fmapboard.plugin.log_scan import has_own_records
from fmapboard.plugin.routes.attribution import attribution, attribution_picture
from fmapboard.plugin.routes.charts import numbers
from fmapboard.plugin.routes.difference import difference
from fmapboard.plugin.routes.findings import findings, verdicts
from fmapboard.plugin.routes.health import health, health_step
from fmapboard.plugin.routes.history import history
from fmapboard.plugin.routes.layers import layers
from fmapboard.plugin.routes.maps import maps, network_input
from fmapboard.plugin.routes.patches import layer_patches, patches
from fmapboard.plugin.routes.sheet import sheet, sheet_input
from fmapboard.plugin.routes.tokens import tokens
from fmapboard.plugin.tag_names import layer_of, natural
from fmapboard.runs.provider import Provider


@dataclass(frozen=True, slots=True)
class RunEntry:
    """A run with records of the tab, its number of layers, and its first wall time, s."""

    run: str
    layers: int
    started: float | None


@dataclass(frozen=True, slots=True)
class Runs(Answer):
    """``data/runs``.

    Attributes:
        runs: those with records of the tab, in natural order.
        logdir: the log directories, as given to TensorBoard.
        root: name of that directory, whose own run TensorBoard calls "."; "" if there are several.
        keeps_enough: False if TensorBoard keeps its default of 10 steps, because there were no
            records of the tab when it started.
        is_unread: True if there are no runs, but files of fmapboard that TensorBoard has not read.
        keeps_all: True if every logged step is kept, by a server that is not TensorBoard.
    """

    runs: list[RunEntry]
    logdir: str
    root: str
    keeps_enough: bool
    is_unread: bool
    keeps_all: bool


def runs(
    provider: Provider,
    logdirs: Sequence[str] = (),
    *,
    keeps_enough: bool = True,
    keeps_all: bool = False,
) -> Runs:
    """The runs with records of the tab; see `Runs` for the arguments."""
    listed = []
    for run, (started, tags) in provider.runs().items():
        found = {layer_of(tag) for tag in tags} - {None}
        if found:
            listed.append(RunEntry(run, len(found), started))
    listed.sort(key=lambda entry: natural(entry.run))
    root = ""
    if len(logdirs) == 1:
        folder = path.expanduser(logdirs[0])
        root = path.basename(path.abspath(folder))
    return Runs(
        runs=listed,
        logdir=", ".join(logdirs),
        root=root,
        keeps_enough=keeps_enough,
        is_unread=not listed and has_own_records(logdirs),
        keeps_all=keeps_all,
    )


_ROUTES: tuple[Callable[..., Answer], ...] = (
    runs, layers, health, health_step, findings, verdicts, maps, sheet, sheet_input, history,
    difference, numbers, network_input, attribution, attribution_picture, patches, layer_patches,
    tokens,
)  # fmt: skip
ROUTES = {route.__name__.removeprefix("network_"): route for route in _ROUTES}
"""Name, as in ``data/<name>`` -> the route."""
