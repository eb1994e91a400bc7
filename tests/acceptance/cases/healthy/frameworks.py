"""Healthy: training under a framework, which logs through a callback."""

from __future__ import annotations

import logging
from pathlib import Path

import lightning.pytorch as pl
import torch
import transformers
from accelerate import Accelerator
from data import P, loader, photos, pictures
from frameworks import trainer
from ignite.engine import Engine, Events
from ignite.handlers import EMAHandler
from lightning.fabric import Fabric
from loops import Losses, evaluated, own_loop, seen
from losses import named
from nets.classifiers import classifier, encoder, unit
from nets.library import hf_convnext, timm_model
from torch import Generator, Tensor, nn, optim
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, TensorDataset

import fmapboard
from fmapboard.integrations import accelerate, ignite, lightning
from fmapboard.integrations.transformers import FeatureMapCallback


class Crops(Dataset):
    """Photographs, under the names of transformers' arguments."""

    def __init__(self, count: int, seed: int) -> None:
        self.images, self.labels = P(Generator().manual_seed(seed), count)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, number: int) -> dict[str, Tensor]:
        return {"pixel_values": self.images[number], "labels": self.labels[number]}


class Labelled(nn.Module):
    """A network that returns its loss and logits, as transformers expects."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, pixel_values: Tensor, labels: Tensor) -> dict[str, Tensor]:
        logits = self.net(pixel_values)
        return {"loss": functional.cross_entropy(logits, labels), "logits": logits}


def hf_trainer(place: Path, seed: int) -> Losses:
    """Trainer: accumulation of two batches, warm-up, clipping, evaluation."""
    arguments = transformers.TrainingArguments(
        str(place),
        max_steps=80,
        per_device_train_batch_size=8,
        gradient_accumulation_steps=2,
        learning_rate=2e-3,
        warmup_steps=10,
        eval_strategy="steps",
        eval_steps=20,
        logging_steps=1,
        save_strategy="no",
        report_to=["tensorboard"],
        disable_tqdm=True,
        use_cpu=True,
        seed=seed,
    )
    made = transformers.Trainer(
        Labelled(hf_convnext()),
        arguments,
        train_dataset=Crops(256, seed),
        eval_dataset=Crops(32, seed + 1),
        callbacks=[FeatureMapCallback(every=8, log_dir=str(place))],
    )
    logging.getLogger("transformers").setLevel(logging.ERROR)
    made.train()
    return Losses(float(entry["loss"]) for entry in made.state.log_history if "loss" in entry)


class Cycled(pl.LightningModule):
    """A classifier, its losses and an own schedule; validation shares its forward pass."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net, self.losses = net, Losses()

    def training_step(self, batch: list[Tensor], _: int) -> Tensor:
        loss = named(self.net, *batch)
        self.losses.append(loss.item())
        return loss

    def validation_step(self, batch: list[Tensor], _: int) -> None:
        self.net(batch[0])

    def configure_optimizers(self) -> object:
        optimizer = optim.AdamW(self.parameters(), lr=2e-3)
        schedule = optim.lr_scheduler.OneCycleLR(optimizer, 5e-3, 100)
        return [optimizer], [{"scheduler": schedule, "interval": "step"}]


def pl_trainer(place: Path, seed: int) -> Losses:
    """Lightning: one-cycle, clipping, validation per epoch."""
    model = Cycled(timm_model("test_efficientnet"))
    board = lightning.FeatureMapCallback(every=10, log_dir=str(place))
    held_out = loader(seed + 1, 32, 32, 48)
    trainer(place, 100, [board], gradient_clip_val=1.0).fit(model, loader(seed, size=48), held_out)
    return model.losses


class Adversarial(pl.LightningModule):
    """Lightning's GAN with manual optimization: super-resolution and a critic in one module."""

    def __init__(self) -> None:
        super().__init__()
        self.automatic_optimization = False
        layers = [unit(3, 32, norm=None), unit(32, 32), nn.Conv2d(32, 48, 3, padding=1)]
        layers += [nn.PixelShuffle(2), unit(12, 12), nn.Conv2d(12, 3, 1)]
        self.generator = nn.Sequential(*layers)
        layers = [unit(3, 24, 4, 2, norm=None), unit(24, 48, 4, 2), nn.Conv2d(48, 1, 3)]
        self.critic, self.losses = nn.Sequential(*layers), Losses()

    def near(self, real: Tensor) -> tuple[Tensor, Tensor]:
        fake = self.generator(functional.avg_pool2d(real, 2))
        return fake, functional.l1_loss(fake, real)

    def training_step(self, batch: list[Tensor], _: int) -> None:
        first, second = self.optimizers()
        (real,) = batch
        fake, near = self.near(real)
        entropy = functional.binary_cross_entropy_with_logits
        self.toggle_optimizer(first)
        judged = self.critic(fake)
        first.zero_grad()
        self.manual_backward(near + 1e-2 * entropy(judged, torch.ones_like(judged)))
        first.step()
        self.untoggle_optimizer(first)
        self.toggle_optimizer(second)
        true, false = self.critic(real), self.critic(fake.detach())
        second.zero_grad()
        loss = entropy(true, torch.ones_like(true)) + entropy(false, torch.zeros_like(false))
        self.manual_backward(loss)
        second.step()
        self.untoggle_optimizer(second)
        self.losses.append(near.item())

    def configure_optimizers(self) -> object:
        first = optim.Adam(self.generator.parameters(), lr=1e-3, betas=(0.9, 0.99))
        return [first, optim.Adam(self.critic.parameters(), lr=3e-4)], []


def manual_gan(place: Path, seed: int) -> Losses:
    random, model = Generator().manual_seed(seed), Adversarial()
    data = DataLoader(TensorDataset(*pictures(32)(random, 256)), 8, shuffle=True, drop_last=True)
    board = lightning.FeatureMapCallback(every=6, log_dir=str(place))
    trainer(place, 120, [board]).fit(model, data)  # global_step counts both optimizers
    held_out = pictures(32)(random, 16)[0]
    model.losses.evaluated = evaluated(model, lambda: model.near(held_out)[1])
    return model.losses


def fabric(place: Path, seed: int) -> Losses:
    """Fabric in bf16-mixed: the wrapped network is watched, steps are marked."""
    helper = Fabric(accelerator="cpu", devices=1, precision="bf16-mixed")
    plain = timm_model("test_efficientnet")
    model, optimizer = helper.setup(plain, optim.AdamW(plain.parameters(), lr=2e-3))
    data, losses = loader(seed, size=48), Losses()
    with fmapboard.watch(model, place, every=6) as board:
        for _ in range(4):
            for batch in helper.setup_dataloaders(data):
                with board.step(len(losses)):
                    loss = named(model, *batch)
                    helper.backward(loss)
                    helper.clip_gradients(model, optimizer, max_norm=1.0)
                    optimizer.step()
                    optimizer.zero_grad()
                losses.append(loss.item())
    held_out = photos(48)(Generator().manual_seed(seed + 1000), 32)
    losses.evaluated = evaluated(plain, lambda: named(plain, *held_out))
    return losses


def hf_accelerate(place: Path, seed: int) -> Losses:
    """accelerate: accumulation of two batches, clipping."""
    helper, model, losses = (
        Accelerator(cpu=True, gradient_accumulation_steps=2),
        encoder(8),
        Losses(),
    )
    optimizer = optim.AdamW(model.parameters(), lr=2e-3)
    model, optimizer, data = helper.prepare(model, optimizer, loader(seed))
    with accelerate.watch(helper, model, optimizer, every=5, log_dir=str(place)) as board:
        for _ in range(10):
            for batch in data:
                with helper.accumulate(model):
                    loss = named(model, *batch)
                    helper.backward(loss)
                    if helper.sync_gradients:
                        board.before_clipping()
                        helper.clip_grad_norm_(model.parameters(), 1.0)
                    optimizer.step()
                    optimizer.zero_grad()
                losses.append(loss.item())
    return losses


def ignite_ema(place: Path, seed: int) -> Losses:
    """ignite: a process function of one's own, accumulation over two batches, an EMA handler."""
    model, losses = classifier(), Losses()
    optimizer = optim.AdamW(model.parameters(), lr=2e-3)

    def update(engine: Engine, batch: list[Tensor]) -> float:
        model.train()
        loss = named(model, *batch)
        (loss / 2).backward()
        if engine.state.iteration % 2 == 0:
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.item())
        return loss.item()

    engine = Engine(update)
    EMAHandler(model, momentum=0.01).attach(engine, event=Events.ITERATION_COMPLETED(every=2))
    options = {"every": 6, "log_dir": str(place), "gradient_accumulation_steps": 2}
    ignite.FeatureMapHandler(model, **options).attach(engine)
    engine.run(loader(seed), max_epochs=8)
    held_out = P(Generator().manual_seed(seed + 1000), 32)
    losses.evaluated = evaluated(model, lambda: named(model, *held_out))
    return losses


CASES = seen(
    "2026-11-23T07:48",
    own_loop("hf_trainer", "transformers ConvNeXt v2", "Trainer", hf_trainer, 80, 8),
    own_loop("lightning", "timm EfficientNet", "Lightning", pl_trainer, 100, 10),
    own_loop("accelerate", "encoder CNN", "accelerate", hf_accelerate, 80, 5),
)
CASES += seen(
    "2026-11-23T08:43",
    own_loop("manual_gan", "SRGAN", "Lightning, manual", manual_gan, 60, 6),
    own_loop("fabric", "timm EfficientNet", "Fabric, bfloat16", fabric, 64, 6),
    own_loop("ignite_ema", "residual CNN", "ignite, EMA, accumulation", ignite_ema, 64, 6),
)
