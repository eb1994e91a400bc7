"""The TensorBoard plugin of the tab."""

from __future__ import annotations

from typing import Any

from tensorboard.plugins import base_plugin

from fmapboard.formats.tab_records import PLUGIN_NAME
from fmapboard.plugin.answers import Missing
from fmapboard.plugin.apps import data_app, file_app
from fmapboard.plugin.front_end import ENTRY, static_files
from fmapboard.plugin.kept_steps import keeps_enough
from fmapboard.plugin.log_scan import given_logdirs
from fmapboard.plugin.routes.by_name import ROUTES, Runs, runs
from fmapboard.plugin.source import Source
from fmapboard.runs.provider import Provider


class FeatureMapsPlugin(base_plugin.TBPlugin):  # type: ignore[misc]  # tensorboard has no types
    """Serves the front end's files and the data routes; all are thread safe.

    Raises:
        FileNotFoundError: a file of the front end is not installed.
    """

    plugin_name = PLUGIN_NAME

    def __init__(self, context: Any) -> None:
        logdirs = given_logdirs(context.flags)
        if context.logdir:
            logdirs = [("", context.logdir)]
        self._logdirs = [path for _, path in logdirs]
        self._keeps_enough = keeps_enough(context.flags)
        self._source: Source | None = None
        provider = context.data_provider
        if provider:
            in_process = context.multiplexer is not None
            self._source = Source(provider, in_process=in_process, logdirs=logdirs)
        self._routes = self._data_routes()
        for path, (content, kind) in static_files().items():
            self._routes[path] = file_app(content, kind)

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

        apps = {}
        routes = {**ROUTES, "runs": all_runs}
        for name, route in routes.items():
            apps[f"/data/{name}"] = data_app(route, self._provider)
        return apps

    def _provider(self, environ: Any) -> Provider:
        if self._source is None:
            raise Missing("this TensorBoard has no data provider")
        return self._source.reader(environ)
