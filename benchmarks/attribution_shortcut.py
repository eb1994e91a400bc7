"""Measure what attribution finds: a planted shortcut, and how close it is to LayerCAM of a class.

    python benchmarks/attribution_shortcut.py [--only shortcut|agreement|floor] [--steps N]

All networks are trained on crops of the bundled photographs (``fmapboard.demo.photographs``).

shortcut: each crop gets a coloured square of 6 px at a random place. In one run its colour is that
of the label, in the control it is random. Share of the heat inside the square, by layer, seed and
step, and the ratio of both runs.

agreement: correlation of the maps of the training step with LayerCAM of the label's logit in eval
mode, at the same weights and images; median and 10th percentile over the drawn samples.

floor: correlation of maps in float32 with those in float64 while the loss goes to 0, by the gain on
which ``summary.attributions.NEGLIGIBLE`` decides.
"""

from __future__ import annotations

import argparse
import copy
import json
from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

import fmapboard
from fmapboard.demo.network import DemoNetwork
from fmapboard.demo.photographs import Photographs
from fmapboard.render.heat import resized
from fmapboard.writers.memory import MemoryWriter

SIDE, STAMP, BATCH, SAMPLES, RATE = 48, 6, 32, 16, 0.02
SEEDS = range(5)


class FunctionalNet(nn.Module):
    """Residual blocks with functional ReLUs, as in many networks for CIFAR."""

    class Block(nn.Module):
        """Two convolutions; the ReLUs are functions."""

        def __init__(self, inputs: int, width: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(inputs, width, 3, stride, 1, bias=False)
            self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
            self.norm1, self.norm2 = nn.BatchNorm2d(width), nn.BatchNorm2d(width)
            self.skip = nn.Conv2d(inputs, width, 1, stride, bias=False)

        def forward(self, x: Tensor) -> Tensor:
            y = self.norm2(self.conv2(functional.relu(self.norm1(self.conv1(x)))))
            return functional.relu(y + self.skip(x))

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            self.Block(3, 16, 2), self.Block(16, 32, 2), self.Block(32, 64, 2)
        )
        self.head = nn.Linear(64, 8)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.head(self.layers(x).mean((2, 3)))
        return found


def plain_network() -> nn.Module:
    """Convolutions and SiLUs with GroupNorm, without skips."""
    parts: list[nn.Module] = []
    for inputs, width in ((3, 16), (16, 32), (32, 64)):
        parts += nn.Conv2d(inputs, width, 3, padding=1), nn.GroupNorm(4, width), nn.SiLU()
        parts += nn.Conv2d(width, width, 3, padding=1), nn.GroupNorm(4, width), nn.SiLU()
        parts.append(nn.MaxPool2d(2))
    return nn.Sequential(*parts[:-1], nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 8))


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "demo": DemoNetwork, "functional": FunctionalNet, "plain": plain_network,
}  # fmt: skip


def stamped(images: Tensor, labels: Tensor, made: torch.Generator) -> tuple[Tensor, np.ndarray]:
    """Draw the squares; also bool [N, H, W], where they are."""
    masks = np.zeros((len(images), SIDE, SIDE), bool)
    places = torch.randint(0, SIDE - STAMP + 1, (len(images), 2), generator=made).tolist()
    for number, (top, left) in enumerate(places):
        bits = int(labels[number])
        colour = torch.tensor([2.0 if bits >> shift & 1 else -2.0 for shift in range(3)])
        spot = slice(top, top + STAMP), slice(left, left + STAMP)
        images[number, :, spot[0], spot[1]] = colour[:, None, None]
        masks[number, spot[0], spot[1]] = True
    return images, masks


def shortcut(steps: int) -> Iterator[dict[str, object]]:
    """Share of the heat inside the squares, with the label's colour and with a random one."""
    photographs = Photographs.load()
    for seed in SEEDS:
        shares: dict[str, dict[str, dict[int, float]]] = {}
        for kind in ("label", "random"):
            made = torch.Generator().manual_seed(seed)
            model, kept = DemoNetwork(seed=seed), MemoryWriter()
            optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=0.9)
            masks = {}
            with fmapboard.watch(
                model, writer=kept, optimizer=optimizer, every=40, samples=SAMPLES,
                attribution=True, layers="conv1", kernels=False,
            ):  # fmt: skip
                for step in range(steps + 1):
                    images, labels = photographs.training_batch(BATCH, made)
                    other = torch.randint(8, (BATCH,), generator=made)
                    colours = labels if kind == "label" else other
                    images, masks[step] = stamped(images, colours, made)
                    optimizer.zero_grad()
                    functional.cross_entropy(model(images), labels).backward()
                    optimizer.step()
            own: dict[str, dict[int, float]] = {}
            for logged in kept.steps:
                found: dict[str, list[float]] = {}
                for one in logged.attributions:
                    heat = np.maximum(resized(one.heat.astype(float), SIDE, SIDE), 0)
                    share = heat[masks[logged.step][one.sample]].sum() / max(heat.sum(), 1e-30)
                    found.setdefault(one.layer_call.label, []).append(float(share))
                for label, values in found.items():
                    own.setdefault(label, {})[logged.step] = round(float(np.mean(values)), 4)
            shares[kind] = own
        last = max(next(iter(shares["label"].values())))
        ratios = {
            label: round(shares["label"][label][last] / max(shares["random"][label][last], 1e-9), 1)
            for label in shares["label"]
        }
        yield {"seed": seed, "step": last, "ratio": ratios, "share": shares}


def agreement(steps: int) -> Iterator[dict[str, object]]:
    """Correlation with LayerCAM of the label's logit in eval mode, at each layer."""
    photographs = Photographs.load()
    for name, make in NETWORKS.items():
        torch.manual_seed(0)
        made, kept, model = torch.Generator().manual_seed(0), MemoryWriter(), make()
        optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=0.9)
        expected = {}
        with fmapboard.watch(
            model, writer=kept, optimizer=optimizer, every=40, samples=SAMPLES,
            attribution=True, kernels=False,
        ):  # fmt: skip
            for step in range(steps + 1):
                images, labels = photographs.training_batch(BATCH, made)
                if step % 40 == 0:
                    first = images[:SAMPLES], labels[:SAMPLES]
                    expected[step] = fmapboard.attribution(copy.deepcopy(model), *first)
                optimizer.zero_grad()
                functional.cross_entropy(model(images), labels).backward()
                optimizer.step()
        for logged in kept.steps:
            found: dict[str, list[float]] = {}
            for one in logged.attributions:
                label = one.layer_call.label
                real = expected[logged.step][label][one.sample].numpy().ravel()
                ours = np.maximum(one.heat, 0).ravel()
                if real.any() and ours.any() and real.std() > 0 and ours.std() > 0:
                    found.setdefault(label, []).append(float(np.corrcoef(real, ours)[0, 1]))
            yield {
                "network": name,
                "step": logged.step,
                "median": {k: round(float(np.median(v)), 3) for k, v in found.items()},
                "10th percentile": {
                    k: round(float(np.quantile(v, 0.1)), 3) for k, v in found.items()
                },
            }


def floor(steps: int) -> Iterator[dict[str, object]]:
    """Correlation of float32 with float64, for a classifier whose logits are scaled up."""
    photographs = Photographs.load()
    made, model = torch.Generator().manual_seed(0), DemoNetwork()
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=0.9)
    for _ in range(steps):
        images, labels = photographs.training_batch(BATCH, made)
        optimizer.zero_grad()
        functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
    images, labels = photographs.training_batch(BATCH, made)
    for factor in (1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0):
        heats = []
        for dtype in (torch.float32, torch.float64):
            twin = copy.deepcopy(model).to(dtype).eval()
            seen: list[Tensor] = []
            twin.relu4.register_forward_hook(lambda m, a, out, seen=seen: seen.append(out))
            loss = functional.cross_entropy(twin(images.to(dtype)) * factor, labels)
            (gradient,) = torch.autograd.grad(loss, seen)
            heats.append((torch.relu(-gradient) * seen[0].detach()).sum(1).double().numpy())
        for ours, real in zip(*heats, strict=True):
            r = np.corrcoef(ours.ravel(), real.ravel())[0, 1] if ours.any() else float("nan")
            error = np.abs(ours - real).sum() / max(real.sum(), 1e-300)
            yield {"gain": float(real.sum() * BATCH), "r": float(r), "error": float(error)}


def main() -> None:
    """Print one JSON object per line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=["shortcut", "agreement", "floor"])
    parser.add_argument("--steps", type=int, default=160)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for part in (shortcut, agreement, floor):
        if options.only in (None, part.__name__):
            for row in part(options.steps):
                print(json.dumps({"part": part.__name__, **row}), flush=True)


if __name__ == "__main__":
    main()
