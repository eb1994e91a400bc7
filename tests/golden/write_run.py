"""Write ``tests/golden/format_1``: small runs with every kind of record, and ``expected.json``.

Until format 1 is released, a change of what is stored writes them again; after that they stay as
they are, and prove that stored runs open in TensorBoard, in the tab, in ``fmapboard check`` and in
``fmapboard report``::

    python tests/golden/write_run.py

``training`` is a training with all options, and patches; ``sequences`` a training on sequences,
whose model has a name and a probe; ``images`` was written by ``fmapboard visualize``.
"""

from __future__ import annotations

import copy
import hashlib
import io
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

import fmapboard

TESTS = Path(__file__).parents[1]
FORMAT_1 = Path(__file__).with_name("format_1")
PHOTOGRAPHS = TESTS.parent / "assets" / "bundled" / "photographs"
NAMES = ("astronaut", "chelsea", "coffee", "rocket")
STEPS = (0, 10, 20)
SIDE = 16  # px
SHRINK = 10  # px of the photograph per px of the crop


class Network(nn.Module):
    """Four convolutions: one is called twice in a forward pass, and one is not called.

    Channel 4 of ``refine`` is dead behind the ReLU.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 5, 5), nn.ReLU(inplace=True), nn.MaxPool2d(2))
        self.refine = nn.Conv2d(5, 5, 3, padding=1)
        self.relu = nn.ReLU()
        self.block = nn.Sequential(nn.Conv2d(5, 4, 3, stride=2), nn.ReLU6())
        self.head = nn.Linear(4, len(NAMES))
        self.unused = nn.Conv2d(4, 2, 1)
        assert self.refine.bias is not None
        with torch.no_grad():
            self.refine.bias[4] = -10.0

    def forward(self, x: Tensor) -> Tensor:
        y = self.stem(x)  # [N, 5, 6, 6]
        y = self.relu(self.refine(y)) + y
        y = self.relu(self.refine(y)) + y
        logits: Tensor = self.head(self.block(y).mean((2, 3)))  # [N, 4]
        return logits


def crops(step: int) -> Tensor:
    """One crop of each photograph, [4, 3, 16, 16], on a scale of -1 to 1."""
    found = []
    for name in NAMES:
        with Image.open(PHOTOGRAPHS / f"{name}.jpg") as opened:
            image = opened.convert("RGB").reduce(SHRINK)
        left, top = (image.width - SIDE) * step // 60, (image.height - SIDE) // 2
        crop = np.asarray(image.crop((left, top, left + SIDE, top + SIDE)))
        found.append(torch.from_numpy(crop.copy()).permute(2, 0, 1) / 127.5 - 1)
    return torch.stack(found)


def write_training(run: Path) -> None:
    """Train three steps, each logged; in the last one a channel of a layer is NaN."""
    torch.manual_seed(0)
    network = Network()
    healthy = network
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    with fmapboard.watch(
        network, run, every=1, samples=2, inputs=True, activation_gradients=True, kernels=2,
        attribution=True,
    ) as board:  # fmt: skip
        for step in STEPS:
            make_constant(network)
            if step == STEPS[-1]:
                healthy = copy.deepcopy(network)
                poison(network)
            with board.step(step):
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(network(crops(step)), torch.arange(len(NAMES)))
                loss.backward()
                board.before_clipping()
                nn.utils.clip_grad_norm_(network.parameters(), 1.0)
                optimizer.step()
    fmapboard.patches(healthy, crops(0), layers="stem.0", k=2, step=STEPS[-1], log_dir=run)


def make_constant(network: Network) -> None:
    """Make channel 2 of the layer ``stem.0`` constant, whatever it has learned."""
    layer = network.stem[0]
    assert isinstance(layer, nn.Conv2d)
    with torch.no_grad():
        layer.weight[2] = 0.0


def poison(network: Network) -> None:
    """Make channel 3 of the layer ``block.0`` NaN."""
    layer = network.block[0]
    assert isinstance(layer, nn.Conv2d)
    with torch.no_grad():
        layer.weight[3, 0, 0, 0] = float("nan")


def write_sequences(run: Path) -> None:
    """Train two steps on sequences: pictures of rows, the prefix of a name, and a probe."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv1d(2, 4, 3), nn.ReLU(), nn.Conv1d(4, 2, 3))
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    with fmapboard.watch(
        network, run, every=1, name="critic", probe=torch.rand(1, 2, 12), kernels=4,
        optimizer=optimizer,
    ) as board:  # fmt: skip
        for _ in range(2):
            optimizer.zero_grad()
            network(torch.rand(3, 2, 12)).square().mean().backward()
            optimizer.step()
        board.flush()


def write_images(run: Path) -> None:
    """Draw the maps of two images."""
    torch.manual_seed(0)
    network = Network()
    fmapboard.visualize(network, crops(0)[:2], layers="stem.0", log_dir=run)


def expected() -> dict[str, Any]:
    """What is in the files: steps of each series, and digests of the decoded pictures."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found: dict[str, Any] = {}
    for run in sorted(FORMAT_1.iterdir()):
        if not run.is_dir():
            continue
        log = EventAccumulator(str(run), size_guidance={"tensors": 0}).Reload()
        series: dict[str, dict[str, list[int]]] = {}
        digests: dict[str, dict[str, list[str]]] = {}
        for tag in log.Tags()["tensors"]:
            plugin = log.SummaryMetadata(tag).plugin_data.plugin_name
            events = log.Tensors(tag)
            series.setdefault(plugin, {})[tag] = [event.step for event in events]
            if plugin == "images":
                digests[tag] = {
                    str(event.step): [
                        sha256_of_pixels(png) for png in event.tensor_proto.string_val[2:]
                    ]
                    for event in events
                }
        series["scalars"] = {
            tag: [event.step for event in log.Scalars(tag)] for tag in log.Tags()["scalars"]
        }
        found[run.name] = {"steps": series, "pixels": digests}
    return found


def sha256_of_pixels(png: bytes) -> str:
    """The digest of the decoded picture: encoders may store equal pixels in different bytes."""
    with Image.open(io.BytesIO(png)) as image:
        return hashlib.sha256(image.convert("RGB").tobytes()).hexdigest()[:16]


def main() -> None:
    os.environ["FMAPBOARD_ON_ERROR"] = "raise"
    torch.set_num_threads(1)
    shutil.rmtree(FORMAT_1, ignore_errors=True)
    for name, write in (
        ("training", write_training), ("sequences", write_sequences), ("images", write_images),
    ):  # fmt: skip
        write(FORMAT_1 / name)
        written = sorted(
            (FORMAT_1 / name).glob("*tfevents*"), key=lambda file: file.stat().st_mtime
        )
        for number, file in enumerate(written, start=1):  # the names had that of the host in them
            file.rename(file.with_name(f"events.out.tfevents.{number}.fmapboard"))
    text = json.dumps(expected(), indent=1, sort_keys=True)
    (FORMAT_1 / "expected.json").write_text(text + "\n")
    size = sum(file.stat().st_size for file in FORMAT_1.rglob("*") if file.is_file())
    sys.stdout.write(f"{FORMAT_1}: {size:,} bytes\n")


if __name__ == "__main__":
    main()
