"""Train a timm network as timm's train.py does: mixup, accumulation, clipping, EMA."""

import argparse
from pathlib import Path

import torch
from timm import create_model
from timm.data import Mixup
from timm.loss import SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import create_scheduler_v2
from timm.utils import ModelEmaV2, dispatch_clip_grad, random_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import fmapboard
from fmapboard.demo.photographs import Photographs

BATCH, ACCUMULATE = 8, 2


def train(steps: int, every: int, logdir: Path) -> nn.Module:
    random_seed(0)
    photographs = Photographs.load()
    classes = len(photographs.names)
    crops = photographs.training_batch(256, torch.Generator().manual_seed(0))
    loader = DataLoader(TensorDataset(*crops), BATCH, shuffle=True, drop_last=True)

    model = create_model("convnext_atto", num_classes=classes, drop_path_rate=0.1)
    optimizer = create_optimizer_v2(model, opt="adamw", lr=1e-3, weight_decay=0.05)
    model_ema = ModelEmaV2(model, decay=0.99)
    mixup = Mixup(mixup_alpha=0.8, cutmix_alpha=1.0, label_smoothing=0.1, num_classes=classes)
    loss_fn = SoftTargetCrossEntropy()
    updates_per_epoch = len(loader) // ACCUMULATE
    scheduler, epochs = create_scheduler_v2(
        optimizer,
        num_epochs=-(-steps // updates_per_epoch),
        step_on_epochs=False,
        updates_per_epoch=updates_per_epoch,
        warmup_epochs=0,
    )

    board = fmapboard.watch(model, logdir, optimizer=optimizer, every=every)

    num_updates = 0
    for epoch in range(epochs):
        model.train()
        optimizer.zero_grad()
        for batch_idx, (images, labels) in enumerate(loader):
            need_update = (batch_idx + 1) % ACCUMULATE == 0
            images, targets = mixup(images, labels)
            (loss_fn(model(images), targets) / ACCUMULATE).backward()
            if not need_update:
                continue
            board.before_clipping()
            dispatch_clip_grad(model.parameters(), value=1.0, mode="norm")
            optimizer.step()
            num_updates += 1
            optimizer.zero_grad()
            model_ema.update(model)
            scheduler.step_update(num_updates=num_updates)
            if num_updates == steps:
                break
        scheduler.step(epoch + 1)
        if num_updates == steps:
            break

    board.close()
    return nn.ModuleList([model, model_ema.module])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", default=100, type=int)
    parser.add_argument("--every", default=10, type=int)
    parser.add_argument("--logdir", default="runs/timm", type=Path)
    args = parser.parse_args()
    train(args.steps, args.every, args.logdir)
    print(f"tensorboard --logdir {args.logdir}")
