"""A small version of the trainer of ultralytics: its callbacks, and the order of calls per step."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn


class Conv(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, 2, 1, bias=False)
        self.bn, self.act = nn.BatchNorm2d(outputs), nn.SiLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.act(self.bn(self.conv(x)))


class Head(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.cv2 = nn.ModuleList(
            [nn.Sequential(Conv(channels, channels), nn.Identity(), nn.Conv2d(channels, 5, 1))]
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.cv2[0](x)


class DetectionModel(nn.Module):
    """Returns the loss for a batch and predictions for images, as in ultralytics."""

    def __init__(self) -> None:
        super().__init__()
        layers = [Conv(3, 8), Conv(8, 8), *(nn.Identity() for _ in range(21)), Head(8)]
        self.model = nn.Sequential(*layers)

    def forward(self, x: Any) -> Tensor:
        if isinstance(x, dict):
            return (self(x["img"]).mean((2, 3)) - x["bboxes"]).square().mean()
        return self.model(x)


class Trainer:
    def __init__(self, events: dict[str, Callable[[Any], None]]) -> None:
        self.events = events
        torch.manual_seed(0)
        self.model = DetectionModel()
        self.ema = copy.deepcopy(self.model).eval()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
        self.scaler = torch.amp.GradScaler("cpu", enabled=False)

    def train(self, folder: Path, epochs: int, batch: int) -> None:
        files = sorted((folder / "images").iterdir())
        self.events["on_train_start"](self)
        self.optimizer.zero_grad()
        for _ in range(epochs):
            self.model.train()
            for start in range(0, len(files), batch):
                loss = self.model(load(files[start : start + batch]))
                self.scaler.scale(loss).backward()
                self.optimizer_step()
            with torch.no_grad():
                self.ema(load(files[:batch])["img"])  # validation
        self.events["on_train_end"](self)

    def optimizer_step(self) -> None:
        self.scaler.unscale_(self.optimizer)
        nn.utils.clip_grad_norm_(self.model.parameters(), max_norm=10.0)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad()
        with torch.no_grad():
            for mean, now in zip(self.ema.parameters(), self.model.parameters(), strict=True):
                mean.lerp_(now, 0.1)


def load(files: list[Path]) -> dict[str, Tensor]:
    """Batches with labels before images, as from the loader of ultralytics."""
    boxes = [(f.parents[1] / "labels" / f"{f.stem}.txt").read_text().split() for f in files]
    images = np.stack([np.asarray(Image.open(file)) for file in files])  # [N, H, W, 3]
    return {
        "bboxes": torch.tensor([[float(word) for word in box] for box in boxes]),
        "img": torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255,
    }


class YOLO:
    def __init__(self, _: str) -> None:
        self.events: dict[str, Callable[[Any], None]] = {}

    def add_callback(self, event: str, call: Callable[[Any], None]) -> None:
        self.events[event] = call

    def train(self, *, data: str, epochs: int, batch: int, **_: object) -> None:
        self.trainer = Trainer(self.events)
        self.trainer.train(Path(data).parent, epochs, batch)
