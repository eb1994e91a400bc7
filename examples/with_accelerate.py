"""Train ResNet-18 on bundled photographs with accelerate, and log its feature maps."""

import argparse

import torch
import torchvision
from accelerate import Accelerator
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from fmapboard.demo.photographs import Photographs
from fmapboard.integrations.accelerate import watch


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", default=60, type=int)
    parser.add_argument("--logdir", default="runs")
    args = parser.parse_args()

    accelerator = Accelerator(
        log_with="tensorboard", project_dir=args.logdir, gradient_accumulation_steps=2
    )
    accelerator.init_trackers("accelerate")
    photographs = Photographs.load()
    crops = photographs.training_batch(512, torch.Generator().manual_seed(0))
    model = torchvision.models.resnet18(num_classes=len(photographs.names))
    model, optimizer, training = accelerator.prepare(
        model,
        torch.optim.AdamW(model.parameters(), lr=1e-3),
        DataLoader(TensorDataset(*crops), 8, shuffle=True),
    )

    with watch(accelerator, model, optimizer, every=10) as board:
        steps = 0
        while steps < args.steps:
            for images, labels in training:
                with accelerator.accumulate(model):
                    loss = functional.cross_entropy(model(images), labels)
                    accelerator.backward(loss)
                    if accelerator.sync_gradients:
                        board.before_clipping()
                        accelerator.clip_grad_norm_(model.parameters(), 1.0)
                    optimizer.step()
                    optimizer.zero_grad()
                if accelerator.sync_gradients:
                    accelerator.log({"loss": loss.item()}, step=steps)
                    steps += 1
                if steps == args.steps:
                    break

    accelerator.end_training()
    accelerator.print(f"tensorboard --logdir {args.logdir}/accelerate")


if __name__ == "__main__":
    main()
