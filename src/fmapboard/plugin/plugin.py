"""The plugin class: the tab's name, front end and routes."""

from __future__ import annotations

from typing import Any

from tensorboard.plugins import base_plugin

from fmapboard.formats.tab_records import PLUGIN_NAME
from fmapboard.plugin.answers import Missing
from fmapboard.plugin.bundle import ENTRY, static_files
from fmapboard.plugin.http import data_app, file_app
from fmapboard.plugin.loader import keeps_enough
from fmapboard.plugin.log_scan import given_logdirs
from fmapboard.plugin.routes.by_name import ROUTES
from fmapboard.plugin.routes.runs import Runs, runs
from fmapboard.plugin.source import Source
from fmapboard.runs.provider import Provider


class FeatureMapsPlugin(base_plugin.TBPlugin):  # type: ignore[misc]  # tensorboard has no types
    """Serves the front end's files and the data routes; all are thread safe.

    Raises:
        FileNotFoundError: a file of the front end is not installed.
    """

    plugin_name = PLUGIN_NAME

    def __init__(self, context: Any) -> None:
        own = [("", context.logdir)] if context.logdir else given_logdirs(context.flags)
        self._keeps_enough = keeps_enough(context.flags)
        provider, in_process = context.data_provider, context.multiplexer is not None
        self._source = provider and Source(provider, in_process=in_process, logdirs=own)
        self._logdirs = [path for _, path in own]
        files = {path: file_app(*content) for path, content in static_files().items()}
        self._routes = {**files, **self._data_routes()}

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
        def all_runs(provider: Provider) -> Runs:
            return runs(provider, self._logdirs, keeps_enough=self._keeps_enough)

        routes = {**ROUTES, "runs": all_runs}
        return {f"/data/{name}": data_app(route, self._provider) for name, route in routes.items()}

    def _provider(self, environ: Any) -> Provider:
        if self._source is None:
            raise Missing("this TensorBoard has no data provider")
        return self._source.reader(environ)
