"""Measure how close attribution is to LayerCAM of the label's logit in eval mode.

    python tests/accuracy/attribution_agreement.py [--networks known|fresh|later] [--only NAME]

Networks are trained on the bundled photographs (``attribution_networks``): with SGD at 0.02, those
of ``LATER`` with AdamW at 0.001, falling to 0 along a cosine. At each mark, the maps of eight
consecutive training steps (256 images) are compared with ``fmapboard.attribution`` of the same
images with the same weights, and the maps of ``attribution_loss`` on a probe of 192 held-out images
likewise. For each layer: the median over the images of the correlation over the places of a map,
which is how the first prototype was measured; and that of the images by p, the probability that the
network in eval mode gives to the label.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import json
from collections.abc import Iterator

import numpy as np
import torch
from attribution_networks import FRESH, KNOWN, LATER, TASKS, Batch, Make
from torch import Tensor, nn
from torch.nn import functional

import fmapboard
from fmapboard.records import Attribution
from fmapboard.writers.folder import MemoryWriter

BATCH, RATE, STEPS_PER_MARK = 32, 0.02, 8
MARKS = (0, 40, 80, 120, 160, 320, 640)
SETS = {"known": KNOWN, "fresh": FRESH, "later": LATER}
LIMITS = (0.0, 0.5, 0.9, 0.99, 1.01)
"""Limits of the ranges of p."""

Correlations = dict[str, list[tuple[float, float]]]
"""Label of a layer -> correlation and p of each image."""


def compared(found: tuple[Attribution, ...], twin: nn.Module, batch: Batch) -> Correlations:
    """Compare maps with those of the label's logit in eval mode, on a copy of the network."""
    images, labels = batch
    with torch.no_grad():
        p = copy.deepcopy(twin).eval()(images).softmax(1).gather(1, labels[:, None])[:, 0]
    expected = fmapboard.attribution(twin, images, labels)
    result: Correlations = {}
    for one in found:
        label = one.layer_call.label
        real, ours = expected[label][one.sample].numpy().ravel(), np.maximum(one.heat, 0).ravel()
        if real.std() > 0 and ours.std() > 0:
            r = float(np.corrcoef(real, ours)[0, 1])
            result.setdefault(label, []).append((r, float(p[one.sample])))
    return result


def row(found: Correlations) -> dict[str, object]:
    """Medians at each layer, and at the last one by p with the number of images."""
    medians = {k: round(float(np.median([r for r, _ in v])), 3) for k, v in found.items()}
    last = np.array(next(reversed(found.values())))
    parts = {}
    for low, high in itertools.pairwise(LIMITS):
        chosen = last[(last[:, 1] >= low) & (last[:, 1] < high), 0]
        if len(chosen):
            parts[f"p {low} to {min(high, 1.0)}"] = [
                round(float(np.median(chosen)), 3),
                len(chosen),
            ]
    return {"median": medians, "last": next(reversed(medians.values())), "by p": parts}


def train(make: Make, task: str, steps: int, *, adam: bool) -> Iterator[dict[str, object]]:
    """Train a network with both kinds of attribution logged at the marks."""
    torch.manual_seed(0)
    data, made, model = TASKS[task](), torch.Generator().manual_seed(0), make()
    marks = [mark for mark in MARKS if mark <= steps]
    optimizer: torch.optim.Optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=0.9)
    if adam:
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, max(marks) + STEPS_PER_MARK)
    held = data.held_out()
    twins: dict[int, tuple[nn.Module, Batch]] = {}
    after: dict[int, nn.Module] = {}

    def at_mark(step: int) -> bool:
        return any(mark <= step < mark + STEPS_PER_MARK for mark in marks)

    def loss_on_probe(output: Tensor) -> Tensor:
        return functional.cross_entropy(output, held[1])

    kept, probed = MemoryWriter(), MemoryWriter()
    shared: dict[str, object] = {
        "optimizer": optimizer, "attribution": True, "kernels": False, "checks": False,
    }  # fmt: skip
    with (
        fmapboard.watch(
            model, writer=kept, name="step", every=at_mark, samples=BATCH, **shared
        ),
        fmapboard.watch(
            model, writer=probed, name="probe", every=lambda s: s in marks, probe=held[0],
            attribution_loss=loss_on_probe, **shared
        ),
    ):  # fmt: skip
        for step in range(max(marks) + STEPS_PER_MARK):
            batch = data.training(BATCH, made)
            if at_mark(step):
                twins[step] = copy.deepcopy(model), batch
            optimizer.zero_grad()
            functional.cross_entropy(model(batch[0]), batch[1]).backward()
            if step in marks:
                after[step] = copy.deepcopy(model)  # with the running averages that the probe sees
            optimizer.step()
            if adam:
                schedule.step()
    of_step = {step.step: step.attributions for step in kept.steps}
    of_probe = {step.step: step.attributions for step in probed.steps}
    for mark in marks:
        merged: Correlations = {}
        for step in range(mark, mark + STEPS_PER_MARK):
            for label, values in compared(of_step[step], *twins[step]).items():
                merged.setdefault(label, []).extend(values)
        yield {"step": mark, "kind": "training step", **row(merged)}
        found = compared(of_probe[mark], after[mark], held)
        yield {"step": mark, "kind": "probe", **row(found)}


def main() -> None:
    """Print one JSON object per line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--networks", choices=list(SETS), default="later")
    parser.add_argument("--only", help="name of one network of the set")
    parser.add_argument("--task", choices=list(TASKS))
    parser.add_argument("--steps", type=int, default=640)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for task in [options.task] if options.task else TASKS:
        for name, make in SETS[options.networks].items():
            if options.only not in (None, name):
                continue
            adam = options.networks == "later"
            for found in train(make, task, options.steps, adam=adam):
                print(json.dumps({"task": task, "network": name, **found}), flush=True)


if __name__ == "__main__":
    main()
