"""Train a UNet2DModel of diffusers to denoise photographs, in a loop with accelerate."""

import argparse
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from diffusers import DDPMScheduler, UNet2DModel
from diffusers.optimization import get_cosine_schedule_with_warmup
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from fmapboard.demo.photographs import Photographs
from fmapboard.integrations.accelerate import watch


def train(steps: int, every: int, logdir: Path) -> nn.Module:
    set_seed(0)
    accelerator = Accelerator(
        log_with="tensorboard", project_dir=logdir, gradient_accumulation_steps=2
    )
    accelerator.init_trackers("ddpm")
    crops, _ = Photographs.load().training_batch(512, torch.Generator().manual_seed(0))
    model = UNet2DModel(
        sample_size=48,
        block_out_channels=(32, 64, 64),
        layers_per_block=1,
        norm_num_groups=8,
        down_block_types=("DownBlock2D", "DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D", "UpBlock2D"),
    )
    noise_scheduler = DDPMScheduler(num_train_timesteps=1000)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    lr_scheduler = get_cosine_schedule_with_warmup(optimizer, 10, steps)
    model, optimizer, loader, lr_scheduler = accelerator.prepare(
        model, optimizer, DataLoader(TensorDataset(crops / 2.5), 4, shuffle=True), lr_scheduler
    )

    board = watch(accelerator, model, optimizer, every=every)

    step = 0
    while step < steps:
        for (images,) in loader:
            noise = torch.randn_like(images)
            timesteps = torch.randint(0, 1000, (len(images),), device=images.device)
            noisy_images = noise_scheduler.add_noise(images, noise, timesteps)
            with accelerator.accumulate(model):
                loss = functional.mse_loss(model(noisy_images, timesteps).sample, noise)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    board.before_clipping()
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                lr_scheduler.step()
                optimizer.zero_grad()
            if accelerator.sync_gradients:
                accelerator.log({"loss": loss.item()}, step=step)
                step += 1
            if step == steps:
                break

    board.close()
    accelerator.end_training()
    return accelerator.unwrap_model(model)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", default=60, type=int)
    parser.add_argument("--every", default=10, type=int)
    parser.add_argument("--logdir", default="runs/diffusion", type=Path)
    args = parser.parse_args()
    train(args.steps, args.every, args.logdir)
    print(f"tensorboard --logdir {args.logdir}")
