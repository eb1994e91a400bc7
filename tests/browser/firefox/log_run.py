"""Log a ResNet-18 with a dead layer and one NaN step, for the check of the tab in Firefox."""

from __future__ import annotations

import copy
import sys
from pathlib import Path

import torch
import torchvision
from torch import nn
from torch.nn import functional

import fmapboard
from fmapboard.demo.bundled import bundled
from fmapboard.demo.photographs import Photographs

STEPS, EVERY, NAN_AT = 16, 2, 10


def main(log_dir: Path) -> None:
    """Train on the bundled photographs, then search them for what excites two layers."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    photographs = Photographs.load()
    generator = torch.Generator().manual_seed(0)
    model = torchvision.models.resnet18(weights=None, num_classes=len(photographs.names))
    shift = model.layer2[0].bn1.bias.requires_grad_(False)
    nn.init.constant_(shift, -30.0)  # the ReLU behind it returns only 0
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    probe = photographs.training_batch(2, torch.Generator().manual_seed(1))[0]
    with fmapboard.watch(
        model, log_dir, optimizer=optimizer, every=EVERY, probe=probe, samples=2,
        attribution=True, inputs=True, activation_gradients=True,
    ):  # fmt: skip
        for step in range(STEPS):
            kept = copy.deepcopy(model.state_dict()) if step == NAN_AT else None
            if kept is not None:
                nn.init.constant_(model.layer3[1].conv1.weight[5].detach(), float("nan"))
            images, labels = photographs.training_batch(8, generator)
            optimizer.zero_grad()
            functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
            if kept is not None:
                model.load_state_dict(kept)
    fmapboard.patches(
        model, bundled("photographs"), ["conv1", "layer1.0.conv1"], log_dir=log_dir, step=STEPS
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
