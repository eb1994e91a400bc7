"""The plugin class: the tab's name, front end and routes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorboard.plugins import base_plugin

from fmapboard.formats.tab_records import PLUGIN_NAME
from fmapboard.plugin.http import Answer, Query, app, missing
from fmapboard.plugin.loader import keeps_enough
from fmapboard.plugin.log_scan import given_logdirs
from fmapboard.plugin.routes.attribution import attribution, attribution_picture
from fmapboard.plugin.routes.charts import numbers
from fmapboard.plugin.routes.difference import difference
from fmapboard.plugin.routes.findings import findings
from fmapboard.plugin.routes.health import health, health_step
from fmapboard.plugin.routes.history import history
from fmapboard.plugin.routes.layers import layers
from fmapboard.plugin.routes.maps import maps, network_input
from fmapboard.plugin.routes.overview import overview
from fmapboard.plugin.routes.patches import layer_patches, patches
from fmapboard.plugin.routes.runs import runs
from fmapboard.plugin.routes.timeline import timeline
from fmapboard.plugin.source import Source
from fmapboard.plugin.static_files import ENTRY, static_routes
from fmapboard.runs.provider import Provider as Reader

Route = Callable[[Reader, Query], Answer]


class FeatureMapsPlugin(base_plugin.TBPlugin):  # type: ignore[misc]  # tensorboard has no types
    """Serves the front end's files and the data routes; all are thread safe.

    Raises:
        FileNotFoundError: a file of the front end is not installed.
    """

    plugin_name = PLUGIN_NAME

    def __init__(self, context: Any) -> None:
        own = [("", context.logdir)] if context.logdir else given_logdirs(context.flags)
        self._keeps_enough = keeps_enough(context.flags)
        self._source = None
        if context.data_provider is not None:
            in_process = context.multiplexer is not None
            provider = context.data_provider
            self._source = Source(provider, in_process=in_process, logdirs=own)
        self._logdirs = [path for _, path in own]
        self._routes = {**static_routes(), **self._data_routes()}

    def get_plugin_apps(self) -> dict[str, Any]:
        """Path -> WSGI application."""
        return self._routes

    def is_active(self) -> bool:
        """False; TensorBoard shows the tab anyway as soon as a run has records of the plugin."""
        return False

    def frontend_metadata(self) -> Any:
        """The front end's entry module and the tab's title."""
        return base_plugin.FrontendMetadata(es_module_path=ENTRY, tab_name="Feature maps")

    def _data_routes(self) -> dict[str, Any]:
        def all_runs(reader: Reader, query: Query) -> Answer:
            return runs(reader, query, self._logdirs, keeps_enough=self._keeps_enough)

        routes: dict[str, Route] = {
            "runs": all_runs,
            "layers": layers,
            "health": health,
            "health_step": health_step,
            "findings": findings,
            "overview": overview,
            "timeline": timeline,
            "maps": maps,
            "history": history,
            "difference": difference,
            "numbers": numbers,
            "input": network_input,
            "attribution": attribution,
            "attribution_picture": attribution_picture,
            "patches": patches,
            "layer_patches": layer_patches,
        }
        return {f"/data/{name}": app(self._handler(route)) for name, route in routes.items()}

    def _handler(self, route: Route) -> Callable[[Any, Query], Answer]:
        def handle(environ: Any, query: Query) -> Answer:
            if self._source is None:
                raise missing("this TensorBoard has no data provider")
            return route(self._source.reader(environ), query)

        return handle
