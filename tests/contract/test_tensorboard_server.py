"""A real TensorBoard server shows what was logged, with the fast and with the Python loader."""

from __future__ import annotations

import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from local_servers import LOAD_LIMIT, Server, tensorboard, wait_for
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
from tensorboard.compat.proto import event_pb2
from torch import nn
from torch.utils.tensorboard import SummaryWriter

import fmapboard

RUNS = ("own", "through_summary_writer")
STEPS = [0, 1, 2]
MAPS = "feature_maps_6x3x3x3/0"
IMAGES = {
    "feature_maps_6x3x3x3/0", "feature_maps_5x6x3x3/2",
    "inputs_6x3x3x3/0", "inputs_5x6x3x3/2",
    "gradients_of_maps_6x3x3x3/0", "gradients_of_maps_5x6x3x3/2",
    "kernels_6x3x3x3/0", "kernels_5x6x3x3/2",
    "network_input/sample_0", "network_input/sample_1", "network_input/highest_loss",
}  # fmt: skip
HISTOGRAMS = {
    "activations/0", "activations/2", "inputs/0", "inputs/2",
    "activation_gradients/0", "activation_gradients/2",
    "weights/0.weight", "weights/0.bias", "weights/2.weight", "weights/2.bias",
    "gradients/0.weight", "gradients/0.bias", "gradients/2.weight", "gradients/2.bias",
}  # fmt: skip
PARAMETERS = {f"{layer}.{kind}" for layer in "026" for kind in ("weight", "bias")}
SCALARS = {
    "gradient_norm/total", *(f"gradient_norm/{name}" for name in PARAMETERS),
    *(f"update_ratio/{name}" for name in PARAMETERS),
    *(f"{what}/{layer}" for what in ("constant_channels", "nonfinite") for layer in "0123"),
    "dead_channels/1", "dead_channels/3", "fmapboard/logged_step_ms", "output/spread",
    "learning_rate/0", "loss/read_from_gradient", "loss/accuracy",
}  # fmt: skip


def train(log_dir: Path | None, writer: Any = None) -> None:
    """Three optimizer steps of a tiny CNN, each logged, two samples drawn."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 6, 3), nn.ReLU(inplace=True), nn.Conv2d(6, 5, 3), nn.ReLU(inplace=True),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(5, 4),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(
        model, log_dir, writer=writer, optimizer=optimizer, every=1, samples=2,
        inputs=True, activation_gradients=True, kernels=1,
    ):  # fmt: skip
        for _ in STEPS:
            loss = nn.functional.cross_entropy(model(torch.randn(4, 3, 20, 24)), torch.arange(4))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()


@pytest.fixture(scope="module")
def logdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs: one in an event file of fmapboard's own, one through a SummaryWriter."""
    root = tmp_path_factory.mktemp("runs")
    train(root / "own")
    with SummaryWriter(str(root / "through_summary_writer")) as writer:
        train(None, writer)
    return root


@pytest.fixture(scope="module", params=["true", "false"], ids=["fast", "python"])
def server(
    request: pytest.FixtureRequest, logdir: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """A TensorBoard server that has loaded both runs."""
    output = tmp_path_factory.mktemp("server") / "output"
    flags = ("--reload_interval=1", f"--load_fast={request.param}")
    with tensorboard(logdir, output, *flags) as server:

        def loaded() -> bool:
            images = server.ask("plugin/images/tags")
            return all(
                MAPS in images.get(run, {})
                and len(server.ask("plugin/images/images", run=run, tag=MAPS, sample=0)) == 3
                for run in RUNS
            )

        wait_for("both runs", LOAD_LIMIT, loaded)
        yield server


def stored_pngs(run: Path, tag: str) -> dict[int, list[bytes]]:
    """Step -> PNGs of a series, read directly from the event file."""
    (path,) = run.glob("*tfevents*")
    pngs = {}
    for data in RawEventFileLoader(str(path)).Load():
        event = event_pb2.Event.FromString(data)
        for value in event.summary.value:
            if value.tag == tag:
                pngs[event.step] = list(value.tensor.string_val[2:])
    return pngs


@pytest.fixture(params=RUNS)
def run(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def test_the_dashboards_with_our_data_are_active(server: Server) -> None:
    listed = server.ask("plugins_listing")
    for dashboard in ("images", "histograms", "distributions", "scalars", "custom_scalars"):
        assert listed[dashboard]["enabled"], dashboard
    assert sorted(server.ask("runs")) == sorted(RUNS)


def test_images_lists_every_series_with_both_samples_and_its_description(
    server: Server, run: str
) -> None:
    tags = server.ask("plugin/images/tags")[run]
    assert set(tags) == IMAGES
    assert tags[MAPS]["samples"] == 2
    assert tags["kernels_6x3x3x3/0"]["samples"] == 1
    assert "(Conv2d), shape [4, 6, 18, 22]" in tags[MAPS]["description"]


@pytest.mark.parametrize("tag", [MAPS, "kernels_5x6x3x3/2", "network_input/sample_1"])
def test_an_image_is_served_at_every_step_as_the_bytes_that_were_stored(
    server: Server, logdir: Path, run: str, tag: str
) -> None:
    stored = stored_pngs(logdir / run, tag)
    assert sorted(stored) == STEPS
    for sample in range(len(stored[0])):
        entries = server.ask("plugin/images/images", run=run, tag=tag, sample=sample)
        assert [entry["step"] for entry in entries] == STEPS
        for entry in entries:
            data = server.get("plugin/images/individualImage?" + entry["query"])
            assert data == stored[entry["step"]][sample]
            assert data[:8] == b"\x89PNG\r\n\x1a\n"


def test_histograms_and_distributions_show_every_series_at_every_step(
    server: Server, run: str
) -> None:
    assert set(server.ask("plugin/histograms/tags")[run]) == HISTOGRAMS
    assert set(server.ask("plugin/distributions/tags")[run]) == HISTOGRAMS
    for tag, values in (("activations/0", 4 * 6 * 18 * 22), ("gradients/2.weight", 5 * 6 * 3 * 3)):
        series = server.ask("plugin/histograms/histograms", run=run, tag=tag)
        assert [step for _, step, _ in series] == STEPS
        for _, _, buckets in series:
            assert len(buckets) == 30
            assert sum(count for _, _, count in buckets) == pytest.approx(values)
            assert all(left < right for left, right, _ in buckets)
        drawn = server.ask("plugin/distributions/distributions", run=run, tag=tag)
        assert [step for _, step, _ in drawn] == STEPS


def test_scalars_shows_every_series_at_every_step(server: Server, run: str) -> None:
    assert set(server.ask("plugin/scalars/tags")[run]) == SCALARS
    norms = {
        name: [
            value
            for _, _, value in server.ask(
                "plugin/scalars/scalars", run=run, tag=f"gradient_norm/{name}"
            )
        ]
        for name in ("total", *PARAMETERS)
    }
    for step in STEPS:
        square = sum(norms[name][step] ** 2 for name in PARAMETERS)
        assert norms["total"][step] ** 2 == pytest.approx(square, rel=1e-3)


def test_custom_scalars_puts_all_gradient_norms_in_one_chart(server: Server, run: str) -> None:
    layout = server.ask("plugin/custom_scalars/layout")
    (category,) = layout["category"]
    (chart,) = category["chart"]
    assert (category["title"], chart["title"]) == ("Gradient norms", "all layers")
    (pattern,) = chart["multiline"]["tag"]
    answer = server.ask("plugin/custom_scalars/scalars", run=run, tag=pattern)
    assert answer["regex_valid"]
    assert set(answer["tag_to_events"]) == {
        tag for tag in SCALARS if tag.startswith("gradient_norm")
    }
    for events in answer["tag_to_events"].values():
        assert [step for _, step, _ in events] == STEPS


def test_both_ways_of_writing_serve_the_same_pictures(server: Server) -> None:
    served = []
    for run in RUNS:
        entries = server.ask("plugin/images/images", run=run, tag=MAPS, sample=1)
        served.append([server.get("plugin/images/individualImage?" + e["query"]) for e in entries])
    assert served[0] == served[1]


def test_an_unknown_series_is_answered_with_status_404(server: Server) -> None:
    with pytest.raises(urllib.error.HTTPError) as error:
        server.get("plugin/images/images", run=RUNS[0], tag="no/such", sample=0)
    with error.value:
        assert error.value.code == 404
