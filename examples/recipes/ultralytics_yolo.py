"""Train YOLO11 with ultralytics' trainer, and log it with two callbacks."""

import argparse
from pathlib import Path
from typing import Any

import torch
from PIL import Image, ImageDraw
from torch import nn
from ultralytics import YOLO

import fmapboard
from fmapboard.demo.bundled import bundled

SIDE, IMAGES, BATCH = 160, 32, 4


def write_data(folder: Path) -> Path:
    """Write a data set in YOLO's format, discs of one photograph on another; returns its YAML."""
    source = torch.Generator().manual_seed(0)
    files = sorted(bundled("photographs").glob("*.jpg"))
    photographs = [Image.open(file).convert("RGB").resize((SIDE, SIDE)) for file in files]
    for part in ("images", "labels"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    for number in range(IMAGES):
        around, inside = torch.randperm(len(files), generator=source)[:2].tolist()
        x, y = torch.randint(40, SIDE - 40, (2,), generator=source).tolist()
        radius = int(torch.randint(16, 40, (), generator=source))
        mask = Image.new("L", (SIDE, SIDE))
        ImageDraw.Draw(mask).ellipse((x - radius, y - radius, x + radius, y + radius), fill=255)
        image = Image.composite(photographs[inside], photographs[around], mask)
        image.save(folder / "images" / f"{number}.png")
        box = (x / SIDE, y / SIDE, 2 * radius / SIDE, 2 * radius / SIDE)
        (folder / "labels" / f"{number}.txt").write_text("0 " + " ".join(map(str, box)))
    description = folder / "data.yaml"
    description.write_text(
        f"path: {folder.resolve()}\ntrain: images\nval: images\nnames:\n  0: disc\n"
    )
    return description


def train(steps: int, every: int, logdir: Path) -> nn.Module:
    model = YOLO("yolo11n.yaml")
    boards = []

    def watch(trainer: Any) -> None:
        boards.append(
            fmapboard.watch(
                trainer.model,
                logdir,
                optimizer=trainer.optimizer,
                scaler=trainer.scaler,
                every=every,
            )
        )

    def close(trainer: Any) -> None:
        boards.pop().close()

    model.add_callback("on_train_start", watch)
    model.add_callback("on_train_end", close)
    model.train(
        data=str(write_data(logdir / "data")),
        epochs=-(-steps * BATCH // IMAGES),
        batch=BATCH,
        nbs=BATCH,  # an optimizer step per batch; by default 64 images are accumulated
        imgsz=SIDE,
        project=str(logdir.resolve()),
        name="ultralytics",
        device="cpu",
        workers=0,
        val=False,
        save=False,
        plots=False,
        pretrained=False,
    )
    return model.trainer.model


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", default=64, type=int, help="rounded up to whole epochs of 8")
    parser.add_argument("--every", default=8, type=int)
    parser.add_argument("--logdir", default="runs/yolo", type=Path)
    args = parser.parse_args()
    train(args.steps, args.every, args.logdir)
    print(f"tensorboard --logdir {args.logdir}")
