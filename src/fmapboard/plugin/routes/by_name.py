"""The data routes by the names by which the front end asks for them."""

from __future__ import annotations

from collections.abc import Callable

from fmapboard.plugin.answers import Answer
from fmapboard.plugin.routes.attribution import attribution, attribution_picture
from fmapboard.plugin.routes.charts import numbers
from fmapboard.plugin.routes.difference import difference
from fmapboard.plugin.routes.findings import findings
from fmapboard.plugin.routes.health import health, health_step
from fmapboard.plugin.routes.history import history
from fmapboard.plugin.routes.layers import layers
from fmapboard.plugin.routes.maps import maps, network_input
from fmapboard.plugin.routes.patches import layer_patches, patches
from fmapboard.plugin.routes.runs import runs
from fmapboard.plugin.routes.sheet import sheet, sheet_input

_ROUTES: tuple[Callable[..., Answer], ...] = (
    runs, layers, health, health_step, findings, maps, sheet, sheet_input, history, difference,
    numbers, network_input, attribution, attribution_picture, patches, layer_patches,
)  # fmt: skip
ROUTES = {route.__name__.removeprefix("network_"): route for route in _ROUTES}
"""Name, as in ``data/<name>`` -> the route."""
