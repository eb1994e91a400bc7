"""Train torchvision's Mask R-CNN to find discs of one photograph pasted into another."""

import argparse
from pathlib import Path

import torch
import torchvision
from PIL import Image
from torch import Tensor, nn
from torchvision.models.detection import MaskRCNN
from torchvision.models.detection.backbone_utils import resnet_fpn_backbone
from torchvision.transforms.v2 import functional as transforms

import fmapboard
from fmapboard.demo.bundled import bundled

SIDE, BATCH = 128, 2
Target = dict[str, Tensor]


def photographs() -> list[Tensor]:
    """The bundled photographs, each float32 [3, 128, 128] in 0 to 1."""
    files = sorted(bundled("photographs").glob("*.jpg"))
    images = [Image.open(file).convert("RGB").resize((SIDE, SIDE)) for file in files]
    return [transforms.to_dtype(transforms.pil_to_tensor(i), scale=True) for i in images]


def scene(images: list[Tensor]) -> tuple[Tensor, Target]:
    """A photograph with one to three discs of other photographs, and its detection target."""
    background, *objects = torch.randperm(len(images))[: int(torch.randint(2, 5, ()))].tolist()
    image, masks = images[background].clone(), []
    rows, columns = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    for which in objects:
        radius = torch.randint(SIDE // 8, SIDE // 4, ())
        down, across = torch.randint(SIDE // 4, SIDE * 3 // 4, (2,))
        mask = (rows - down) ** 2 + (columns - across) ** 2 < radius**2  # [128, 128]
        image = torch.where(mask, images[which], image)
        masks = [m & ~mask for m in masks] + [mask]  # without the parts that this disc covers
    seen = torch.stack([m for m in masks if m.sum() > 50])
    boxes = torchvision.ops.masks_to_boxes(seen)
    labels = torch.ones(len(seen), dtype=torch.int64)
    return image, {"boxes": boxes, "labels": labels, "masks": seen.to(torch.uint8)}


def train(steps: int, every: int, logdir: Path) -> nn.Module:
    torch.manual_seed(0)
    backbone = resnet_fpn_backbone(backbone_name="resnet18", weights=None, trainable_layers=5)
    model = MaskRCNN(
        backbone, num_classes=2, min_size=SIDE, max_size=SIDE, box_batch_size_per_image=32
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.005, momentum=0.9, weight_decay=5e-4)
    warm_up = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.001, total_iters=steps)
    images = photographs()
    model.train()

    board = fmapboard.watch(model, logdir, optimizer=optimizer, every=every)

    for _ in range(steps):
        batch, targets = zip(*(scene(images) for _ in range(BATCH)), strict=True)
        losses: dict[str, Tensor] = model(list(batch), list(targets))
        loss = torch.stack(list(losses.values())).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        warm_up.step()

    board.close()
    return model


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", default=30, type=int)
    parser.add_argument("--every", default=5, type=int)
    parser.add_argument("--logdir", default="runs/detection", type=Path)
    args = parser.parse_args()
    train(args.steps, args.every, args.logdir)
    print(f"tensorboard --logdir {args.logdir}")
