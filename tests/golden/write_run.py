"""Writes a small run with everything that fmapboard logs. It wrote tests/golden/run_cde8805.

It was run once, at commit cde8805. Do not rewrite the stored files: they prove that runs written
by that version still open in TensorBoard and in the Feature maps tab. For a later format store
another run next to them:

    python tests/golden/write_run.py tests/golden/run_<commit>
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

import fmapboard

PHOTOGRAPHS = Path(__file__).parents[2] / "assets" / "bundled" / "photographs"
NAMES = ("astronaut", "chelsea", "coffee", "rocket")
STEPS = (0, 10, 20, 30)
SIDE = 16  # px
SHRINK = 10  # px of the photograph per px of the crop


class Network(nn.Module):
    """Four convolutions, of which one is called twice in a forward pass.

    Channel 4 of ``refine`` is dead behind the ReLU. No layer with more outputs than inputs has a
    dead channel: with inputs=True, cde8805 stores the flags of such a layer cut off.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 5, 5), nn.ReLU(inplace=True), nn.MaxPool2d(2))
        self.refine = nn.Conv2d(5, 5, 3, padding=1)
        self.relu = nn.ReLU()
        self.block = nn.Sequential(
            nn.Conv2d(5, 5, 3, stride=2), nn.ReLU(inplace=True), nn.Conv2d(5, 4, 1), nn.ReLU6()
        )
        self.head = nn.Linear(4, len(NAMES))
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


def write(run: Path) -> None:
    """Train four steps, each logged; in the last one a channel of a layer is NaN."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    network = Network()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    with fmapboard.watch(
        network, run, every=1, samples=2, inputs=True, activation_gradients=True, kernels=3,
        on_error="raise",
    ) as board:  # fmt: skip
        for step in STEPS:
            make_constant(network)
            if step == STEPS[-1]:
                poison(network)
            with board.step(step):
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(network(crops(step)), torch.arange(len(NAMES)))
                loss.backward()
                board.before_clipping()
                nn.utils.clip_grad_norm_(network.parameters(), 1.0)
                optimizer.step()


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


def main() -> None:
    run = Path(sys.argv[1])
    if run.exists():
        sys.exit(f"{run} exists already; stored runs are not rewritten")
    write(run)
    (written,) = run.glob("*tfevents*")
    written.rename(run / "events.out.tfevents.1.fmapboard")  # its name had the host's name in it


if __name__ == "__main__":
    main()
