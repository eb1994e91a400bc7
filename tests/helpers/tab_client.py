"""The tab on a log directory, in this process and without a server."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tab_answers import expanded, facts_and_parts, layers_at
from tensorboard.backend.application import TensorBoardWSGI
from tensorboard.backend.event_processing.data_provider import MultiplexerDataProvider
from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer
from tensorboard.plugins.base_plugin import TBContext
from werkzeug.test import Client, TestResponse

from fmapboard.plugin.followed import FollowedRuns
from fmapboard.plugin.plugin import FeatureMapsPlugin
from fmapboard.plugin.standalone import application, data_apps

ROUTES = "/data/plugin/feature_maps/"


@dataclass(frozen=True)
class Tab:
    """The tab's routes, and the data provider below them."""

    client: Client
    provider: Any

    def get(self, route: str, **query: object) -> TestResponse:
        sent = {
            name: list(map(str, value)) if isinstance(value, list) else str(value)
            for name, value in query.items()
        }
        return self.client.get(ROUTES + route, query_string=sent)

    def ask(self, route: str, **query: object) -> Any:
        """The JSON of a route; fails unless the status is 200."""
        answer = self.get(route, **query)
        assert answer.status_code == 200, answer.text
        return expanded(json.loads(answer.data))

    def open(self, route: str, **query: object) -> tuple[dict[str, Any], bytes]:
        """The JSON and the parts of a binary answer; fails unless the status is 200."""
        answer = self.get(route, **query)
        assert answer.status_code == 200, answer.text
        return facts_and_parts(answer.data)

    def layer(self, run: str, key: str) -> dict[str, Any]:
        """A layer's entry in the list of layers."""
        (layer,) = [one for one in self.ask("data/layers", run=run)["layers"] if one["key"] == key]
        return layer

    def health(self, run: str, key: str, step: int) -> dict[str, Any]:
        """What is known of a layer at a step."""
        return layers_at(*self.open("data/health_step", run=run, step=step))[key]


def open_tab(logdir: Path, kept: int = 50, given: str = "") -> Tab:
    """The tab, where TensorBoard keeps ``kept`` steps of pictures and records.

    Args:
        logdir: the log directory.
        kept: number of steps.
        given: what TensorBoard was told instead of the directory, such as a URL.
    """
    most = {"images": kept, "feature_maps": kept, "histograms": 500, "scalars": 1000}
    multiplexer = EventMultiplexer(tensor_size_guidance=most)
    multiplexer.AddRunsFromDirectory(str(logdir))
    multiplexer.Reload()
    provider = MultiplexerDataProvider(multiplexer, str(logdir))
    context = TBContext(
        data_provider=provider, multiplexer=multiplexer, logdir=given or str(logdir),
        plugin_name_to_instance={},
    )  # fmt: skip
    app = TensorBoardWSGI([FeatureMapsPlugin(context)], data_provider=provider)
    return Tab(Client(app), provider)


def open_alone(logdir: Path) -> Tab:
    """The tab without TensorBoard, under the same addresses."""
    provider = FollowedRuns(logdir)
    while provider.look():
        pass
    apps = data_apps(provider, str(logdir))
    answers = application(lambda: apps)

    def app(environ: dict[str, Any], start_response: Any) -> Any:
        environ["PATH_INFO"] = environ["PATH_INFO"].removeprefix(ROUTES.rstrip("/"))
        return answers(environ, start_response)

    return Tab(Client(app), provider)
