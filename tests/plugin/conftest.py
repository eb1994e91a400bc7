"""Runs that were really written, and the tab on top of them, in process."""

from __future__ import annotations

import contextlib
import json
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from browser_visitor import address, browser, serve, visit  # noqa: F401  # fixtures
from striped_training import striped_runs  # noqa: F401  # a fixture
from tensorboard.backend import application
from tensorboard.backend.event_processing.data_provider import MultiplexerDataProvider
from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer
from tensorboard.plugins.base_plugin import TBContext
from torch import nn
from werkzeug.test import Client, TestResponse

import fmapboard
from fmapboard.plugin.plugin import FeatureMapsPlugin
from fmapboard.records import LoggedStep, TabRecord, TaggedPictures
from fmapboard.writers.tensorboard import TensorBoardWriter

STEPS = [0, 10, 20]
ROUTES = "/data/plugin/feature_maps/"
# Of its five output channels one is NaN, one constant, and one always below zero.
WEIGHTS, BIASES = [1.0, 2.0, 0.0, float("nan"), -1.0], [0.0, 0.0, 5.0, 0.0, -1.0]


def two_layers() -> nn.Sequential:
    """A 1x1 convolution with known numbers, and a ReLU after it."""
    model = nn.Sequential(nn.Conv2d(1, 5, 1), nn.ReLU())
    with torch.no_grad():
        model[0].weight.copy_(torch.tensor(WEIGHTS)[:, None, None, None])
        model[0].bias.copy_(torch.tensor(BIASES))
    return model


def log(
    run: Path, names: Sequence[str | None] = (None,), steps: Sequence[int] = STEPS,
    **options: Any,
) -> None:  # fmt: skip
    """Log steps of a `two_layers` for each name; the input of step s is 0, 1, 2, 3 plus s / 10."""
    with contextlib.ExitStack() as stack:
        models = [two_layers() for _ in names]
        boards = [
            stack.enter_context(
                fmapboard.watch(
                    model, run, every=1, layers=[nn.Conv2d, nn.ReLU], samples=2, inputs=True,
                    activation_gradients=True, name=name, **options,
                )
            )
            for model, name in zip(models, names, strict=True)
        ]  # fmt: skip
        for step in steps:
            for model, board in zip(models, boards, strict=True):
                log_step(model, board, step)
            for board in boards:
                board.flush()


def log_step(model: nn.Module, board: fmapboard.FeatureMapLogger, step: int) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with board.step(step):
        x = torch.arange(4.0).reshape(1, 1, 2, 2).repeat(3, 1, 1, 1) + step / 10
        model(x).nansum().backward()
        optimizer.step()
    optimizer.zero_grad()


def store(
    run: Path, blobs: Sequence[bytes], *, tag: str = "fmapboard/a", step: int = 0,
    pictures: tuple[TaggedPictures, ...] = (),
) -> None:  # fmt: skip
    """Store blobs as a record, whatever they are; what the run holds stays."""
    writer = TensorBoardWriter(run, start_step=10**6)
    records = (TabRecord(tag, tuple(blobs)),)
    writer.write(LoggedStep(step, time.time(), pictures=pictures, records=records))
    writer.close()


@dataclass(frozen=True)
class Tab:
    """The tab's routes on a log directory, in process."""

    client: Client
    provider: Any

    def get(self, route: str, **query: object) -> TestResponse:
        return self.client.get(ROUTES + route, query_string={k: str(v) for k, v in query.items()})

    def ask(self, route: str, **query: object) -> Any:
        answer = self.get(route, **query)
        assert answer.status_code == 200, answer.text
        return json.loads(answer.data)

    def open(self, route: str, **query: object) -> tuple[dict[str, Any], bytes]:
        """The JSON and the parts of a binary answer."""
        answer = self.get(route, **query)
        assert answer.status_code == 200, answer.text
        (length,) = struct.unpack_from("<I", answer.data)
        return json.loads(answer.data[4 : 4 + length]), answer.data[4 + length :]

    def layer(self, run: str, key: str) -> dict[str, Any]:
        (layer,) = [one for one in self.ask("data/layers", run=run)["layers"] if one["key"] == key]
        return layer

    def health(self, run: str, key: str, step: int) -> dict[str, Any]:
        listed = self.ask("data/overview", run=run, step=step)["layers"]
        (layer,) = [one for one in listed if one["key"] == key]
        return layer


@pytest.fixture(scope="session")
def open_tab() -> Callable[..., Tab]:
    def tab(logdir: Path, kept: int = 50) -> Tab:
        most = {"images": kept, "feature_maps": kept, "histograms": 500, "scalars": 1000}
        multiplexer = EventMultiplexer(tensor_size_guidance=most)
        multiplexer.AddRunsFromDirectory(str(logdir))
        multiplexer.Reload()
        provider = MultiplexerDataProvider(multiplexer, str(logdir))
        context = TBContext(
            data_provider=provider, multiplexer=multiplexer, logdir=str(logdir),
            plugin_name_to_instance={},
        )  # fmt: skip
        app = application.TensorBoardWSGI([FeatureMapsPlugin(context)], data_provider=provider)
        return Tab(Client(app), provider)

    return tab


@pytest.fixture(scope="session")
def log_steps() -> Callable[..., None]:
    return log


@pytest.fixture(scope="session")
def store_blobs() -> Callable[..., None]:
    return store


@pytest.fixture(scope="session")
def logdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs: one model, and two models of one process."""
    root = tmp_path_factory.mktemp("logdir")
    log(root / "run2")
    log(root / "run10", names=["gan", "critic"])
    return root


@pytest.fixture(scope="session")
def tab(logdir: Path, open_tab: Callable[..., Tab]) -> Tab:
    return open_tab(logdir)
