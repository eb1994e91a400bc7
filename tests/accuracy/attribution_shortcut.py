"""Measure what attribution finds of a planted shortcut.

    python tests/accuracy/attribution_shortcut.py [--network demo|functional|plain] [--steps N]

Each crop of the bundled photographs gets a coloured square of 8 px (2.8 % of the area) at a random
place. In one run the label is drawn independently of the photograph, and the colour of the square
tells it: the square is the only clue. In the control, the label is that of the photograph, and the
colour is random. Printed, by layer and logged step: the share of the heat inside the square, as the
mean over samples and of the heat of all samples together, for the training step (train mode) and
for ``attribution_loss`` on a probe of held-out crops (eval mode); and at the end the ratio of both.
"""

from __future__ import annotations

import argparse
import json

import numpy as np
import torch
from attribution_networks import KNOWN, SIDE, Crops
from torch import Tensor, nn
from torch.nn import functional

import fmapboard
from fmapboard.records import Attribution, LoggedStep
from fmapboard.render.heat import resized

STAMP, BATCH, RATE = 8, 32, 0.05
EVERY, LAST = 100, 32
"""Logged are steps divisible by the first; at the end as many consecutive ones as the second."""

COLOURS = torch.tensor([[2.5, -2.0, -2.0], [-2.0, 2.5, -2.0], [-2.0, -2.0, 2.5], [2.5, 2.5, -2.0]])
"""Normalized colour of each of four classes."""

Shares = dict[str, dict[str, tuple[float, float]]]
"""Label of a layer -> step, or "last" for the last ones together -> mean of the shares of the
samples, and share of their sum."""


class AttributionWriter:
    """Keeps the attribution of each step alone: the maps of all images would fill the memory."""

    def __init__(self) -> None:
        self.steps: list[tuple[int, tuple[Attribution, ...]]] = []

    def write(self, step: LoggedStep) -> None:
        """See ``Writer``."""
        self.steps.append((step.step, step.attributions))

    def flush(self) -> None:
        """See ``Writer``."""

    def close(self) -> None:
        """See ``Writer``."""


def stamped(images: Tensor, colours: Tensor, made: torch.Generator) -> np.ndarray:
    """Draw the squares into the images; bool [N, H, W], where they are."""
    masks = np.zeros((len(images), SIDE, SIDE), bool)
    places = torch.randint(0, SIDE - STAMP + 1, (len(images), 2), generator=made).tolist()
    for number, (top, left) in enumerate(places):
        spot = slice(top, top + STAMP), slice(left, left + STAMP)
        images[number, :, spot[0], spot[1]] = COLOURS[colours[number]][:, None, None]
        masks[number, spot[0], spot[1]] = True
    return masks


def shares(kept: AttributionWriter, masks: dict[int, np.ndarray], last: int) -> Shares:
    """The heat inside the squares; the steps from ``last`` on are taken together."""
    inside: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for step, found in kept.steps:
        key = "last" if step >= last else str(step)
        for one in found:
            heat = np.maximum(resized(one.heat.astype(float), SIDE, SIDE), 0)
            part = float(heat[masks[step][one.sample]].sum()), float(heat.sum())
            inside.setdefault(one.layer_call.label, {}).setdefault(key, []).append(part)
    return {
        label: {key: _share(parts) for key, parts in of_steps.items()}
        for label, of_steps in inside.items()
    }


def _share(parts: list[tuple[float, float]]) -> tuple[float, float]:
    square, whole = np.array(parts).T
    mean = float(np.mean(square / np.maximum(whole, 1e-30)))
    return round(mean, 4), round(float(square.sum() / max(whole.sum(), 1e-30)), 4)


def train(network: str, seed: int, steps: int, *, is_shortcut: bool) -> dict[str, object]:
    """Train once; the shares of both kinds of attribution, and the accuracy at the end."""
    torch.manual_seed(seed)
    data, made, model = Crops(), torch.Generator().manual_seed(seed), KNOWN[network]()
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=0.9)

    def drawn(images: Tensor, labels: Tensor) -> tuple[Tensor, np.ndarray]:
        colours = torch.randint(len(COLOURS), (len(images),), generator=made)
        return colours if is_shortcut else labels % len(COLOURS), stamped(images, colours, made)

    probe, kind = data.held_out()
    probe_labels, probe_masks = drawn(probe, kind)
    kept, probed, masks, right = AttributionWriter(), AttributionWriter(), {}, list[float]()
    shared: dict[str, object] = {
        "optimizer": optimizer, "attribution": True, "kernels": False, "checks": False,
        "layers": lambda name, layer: isinstance(layer, nn.Linear),  # maps cost time
    }  # fmt: skip
    with (
        fmapboard.watch(
            model, writer=kept, name="step", samples=BATCH,
            every=lambda step: step % EVERY == 0 or step >= steps, **shared,
        ),
        fmapboard.watch(
            model, writer=probed, name="probe", probe=probe, every=EVERY,
            attribution_loss=lambda output: functional.cross_entropy(output, probe_labels),
            **shared,
        ),
    ):  # fmt: skip
        for step in range(steps + LAST):
            images, labels = data.training(BATCH, made)
            labels, masks[step] = drawn(images, labels)
            optimizer.zero_grad()
            output = model(images)
            functional.cross_entropy(output, labels).backward()
            optimizer.step()
            right.append(float((output.argmax(1) == labels).float().mean()))
    return {
        "accuracy": round(float(np.mean(right[-20:])), 2),
        "training step": shares(kept, masks, steps),
        "probe": shares(probed, dict.fromkeys(masks, probe_masks), steps),
    }


def ratios(shortcut: Shares, control: Shares) -> dict[str, list[float]]:
    """Ratio of both runs at the end, of the means and of the sums."""
    return {
        label: [
            round(a / max(b, 1e-9), 1)
            for a, b in zip(values["last"], control[label]["last"], strict=True)
        ]
        for label, values in shortcut.items()
    }


def main() -> None:
    """Print one JSON object per line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--network", choices=list(KNOWN), default="demo")
    parser.add_argument("--steps", type=int, default=600, help=f"divisible by {EVERY}")
    parser.add_argument("--seeds", type=int, nargs="*", default=range(5))
    options = parser.parse_args()
    torch.set_num_threads(1)
    for seed in options.seeds:
        runs = {
            name: train(options.network, seed, options.steps, is_shortcut=name == "shortcut")
            for name in ("shortcut", "control")
        }
        for name, run in runs.items():
            row = {"network": options.network, "seed": seed, "run": name, **run}
            print(json.dumps(row), flush=True)
        for kind in ("training step", "probe"):
            found = ratios(runs["shortcut"][kind], runs["control"][kind])  # type: ignore[arg-type]  # of JSON
            row = {"network": options.network, "seed": seed, "kind": kind, "step": options.steps}
            print(json.dumps({**row, "ratio": found}), flush=True)


if __name__ == "__main__":
    main()
