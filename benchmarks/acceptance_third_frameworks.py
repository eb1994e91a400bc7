"""Trainings of the third set under Lightning, Fabric and ignite, and with unusual optimizers."""

from __future__ import annotations

import copy
from contextlib import suppress
from pathlib import Path

import lightning.pytorch as pl
import torch
from acceptance_classic import unit
from acceptance_data import photos, pictures
from acceptance_later_library import timm_model
from acceptance_third_loop import Measured, evaluated
from acceptance_third_selfsup import classifier
from ignite.engine import Engine, Events
from ignite.handlers import EMAHandler
from lightning.fabric import Fabric
from lightning.pytorch.callbacks import StochasticWeightAveraging
from torch import Tensor, nn, optim
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import fmapboard
from fmapboard.integrations import ignite, lightning


def trainer(place: Path, steps: int, callbacks: list[object], **options: object) -> pl.Trainer:
    return pl.Trainer(
        max_steps=steps,
        accelerator="cpu",
        default_root_dir=str(place),
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=callbacks,
        **options,
    )


class Adversarial(pl.LightningModule):
    """Lightning's GAN with manual optimization: super-resolution and a critic in one module."""

    def __init__(self) -> None:
        super().__init__()
        self.automatic_optimization = False
        layers = [unit(3, 32, norm=None), unit(32, 32), nn.Conv2d(32, 48, 3, padding=1)]
        self.generator = nn.Sequential(
            *layers, nn.PixelShuffle(2), unit(12, 12), nn.Conv2d(12, 3, 1)
        )
        layers = [unit(3, 24, 4, 2, norm=None), unit(24, 48, 4, 2), nn.Conv2d(48, 1, 3)]
        self.critic, self.losses = nn.Sequential(*layers), Measured()

    def training_step(self, batch: list[Tensor], _: int) -> None:
        first, second = self.optimizers()
        (real,) = batch
        fake = self.generator(functional.avg_pool2d(real, 2))
        entropy = functional.binary_cross_entropy_with_logits
        self.toggle_optimizer(first)
        judged, near = self.critic(fake), functional.l1_loss(fake, real)
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
        rates = {"lr": 1e-3, "betas": (0.9, 0.99)}
        return [
            optim.Adam(self.generator.parameters(), **rates),
            optim.Adam(self.critic.parameters(), lr=3e-4),
        ], []


def manual_gan(place: Path, seed: int) -> Measured:
    random, model = torch.Generator().manual_seed(seed), Adversarial()
    data = DataLoader(TensorDataset(*pictures(32)(random, 256)), 8, shuffle=True, drop_last=True)
    board = lightning.FeatureMapCallback(every=6, log_dir=str(place))
    trainer(place, 120, [board]).fit(model, data)  # global_step counts both optimizers
    held_out = pictures(32)(random, 16)[0]
    told = lambda: functional.l1_loss(model.generator(functional.avg_pool2d(held_out, 2)), held_out)  # noqa: E731
    model.losses.evaluated = evaluated(model, told)
    return model.losses


class Averaged(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net, self.losses = timm_model("test_resnet"), Measured()

    def training_step(self, batch: list[Tensor], _: int) -> Tensor:
        loss = functional.cross_entropy(self.net(batch[0]), batch[1], label_smoothing=0.1)
        self.losses.append(loss.item())
        return loss

    def configure_optimizers(self) -> object:
        return optim.SGD(self.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)


def stochastic_average(place: Path, seed: int) -> Measured:
    """Lightning's SWA callback, accumulation of two batches, gradient clipping."""
    random, model = torch.Generator().manual_seed(seed), Averaged()
    data = DataLoader(TensorDataset(*photos(48)(random, 256)), 16, shuffle=True)
    board = lightning.FeatureMapCallback(every=6, log_dir=str(place), module="net")
    swa = StochasticWeightAveraging(swa_lrs=0.01, swa_epoch_start=4, annealing_epochs=2)
    options = {"accumulate_grad_batches": 2, "gradient_clip_val": 2.0}
    made = pl.Trainer(
        max_epochs=8,
        accelerator="cpu",
        default_root_dir=str(place),
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[board, swa],
        **options,
    )
    made.fit(model, data)
    images, labels = photos(48)(random, 32)
    told = lambda: functional.cross_entropy(model.net(images), labels)  # noqa: E731
    model.losses.evaluated = evaluated(model, told)
    return model.losses


def fabric(place: Path, seed: int) -> Measured:
    """Fabric in bf16-mixed: the wrapped network is watched, steps are marked."""
    helper = Fabric(accelerator="cpu", devices=1, precision="bf16-mixed")
    random = torch.Generator().manual_seed(seed)
    plain = timm_model("test_efficientnet")
    model, optimizer = helper.setup(plain, optim.AdamW(plain.parameters(), lr=2e-3))
    data = DataLoader(TensorDataset(*photos(48)(random, 256)), 16, shuffle=True)
    losses, step = Measured(), 0
    with fmapboard.watch(model, place, every=6) as board:
        for _ in range(4):
            for images, labels in helper.setup_dataloaders(data):
                with board.step(step):
                    loss = functional.cross_entropy(model(images), labels)
                    helper.backward(loss)
                    helper.clip_gradients(model, optimizer, max_norm=1.0)
                    optimizer.step()
                    optimizer.zero_grad()
                step += 1
                losses.append(loss.item())
    held_out = photos(48)(random, 32)
    told = lambda: functional.cross_entropy(plain(held_out[0]), held_out[1])  # noqa: E731
    losses.evaluated = evaluated(plain, told)
    return losses


def ignite_ema(place: Path, seed: int) -> Measured:
    """ignite: a process function of one's own, accumulation over two batches, an EMA handler."""
    random, model = torch.Generator().manual_seed(seed), classifier()
    optimizer, losses = optim.AdamW(model.parameters(), lr=2e-3), Measured()

    def update(engine: Engine, batch: list[Tensor]) -> float:
        model.train()
        loss = functional.cross_entropy(model(batch[0]), batch[1])
        (loss / 2).backward()
        if engine.state.iteration % 2 == 0:
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.item())
        return loss.item()

    engine = Engine(update)
    EMAHandler(model, momentum=0.01).attach(engine, event=Events.ITERATION_COMPLETED(every=2))
    board = ignite.FeatureMapHandler(
        model, every=6, log_dir=str(place), gradient_accumulation_steps=2
    )
    board.attach(engine)
    engine.run(DataLoader(TensorDataset(*photos(32)(random, 256)), 16, shuffle=True), max_epochs=8)
    images, labels = photos(32)(random, 32)
    losses.evaluated = evaluated(model, lambda: functional.cross_entropy(model(images), labels))
    return losses


class ScheduleFree(optim.Optimizer):
    """Schedule-free SGD: gradients at a point between the average and the last one."""

    def __init__(self, params: object, lr: float = 0.1, beta: float = 0.9) -> None:
        super().__init__(params, {"lr": lr, "beta": beta})
        self.count = 0

    @torch.no_grad()
    def step(self, closure: object = None) -> None:
        self.count += 1
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["z"], state["x"] = p.clone(), p.clone()
                rate = group["lr"] * min(1.0, self.count / 10)
                state["z"].sub_(p.grad, alpha=rate)
                state["x"].lerp_(state["z"], 1 / self.count)
                p.copy_(state["z"].lerp(state["x"], group["beta"]))


def schedule_free(model: nn.Module) -> optim.Optimizer:
    return ScheduleFree(model.parameters(), lr=0.3)


def muon(place: Path, seed: int) -> Measured:
    """Muon for the matrices of a ViT's blocks, AdamW for the rest; steps are marked."""
    random, model = torch.Generator().manual_seed(seed), timm_model("test_vit", img_size=64)
    inside = [p for n, p in model.named_parameters() if p.ndim == 2 and "blocks" in n]
    known = {id(p) for p in inside}
    rest = [p for p in model.parameters() if id(p) not in known]
    both = [optim.Muon(inside, lr=0.01, weight_decay=0.01), optim.AdamW(rest, lr=2e-3)]
    losses = Measured()
    with fmapboard.watch(model, place, every=8) as board:
        for step in range(80):
            with board.step(step):
                images, labels = photos(64)(random, 16)
                loss = functional.cross_entropy(model(images), labels)
                for optimizer in both:
                    optimizer.zero_grad()
                loss.backward()
                for optimizer in both:
                    optimizer.step()
            losses.append(loss.item())
    return losses


def early_stop(place: Path, seed: int) -> Measured:
    """Keras-like fit: epochs with validation in eval mode, best weights restored, rate halved."""
    random, model = torch.Generator().manual_seed(seed), classifier()
    optimizer = optim.Adam(model.parameters(), lr=2e-3)
    plateau = optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
    train = DataLoader(TensorDataset(*photos(32)(random, 256)), 32, shuffle=True)
    held_out, losses, best = photos(32)(random, 48), Measured(), (9e9, {})
    with suppress(StopIteration), fmapboard.watch(model, place, optimizer=optimizer, every=8):
        for epoch in range(10):
            model.train()
            for images, labels in train:
                optimizer.zero_grad()
                loss = functional.cross_entropy(model(images), labels)
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            model.eval()
            with torch.no_grad():
                told = functional.cross_entropy(model(held_out[0]), held_out[1]).item()
            plateau.step(told)
            if told < best[0]:
                best = (told, copy.deepcopy(model.state_dict()))
            elif epoch > 6:
                raise StopIteration
    model.load_state_dict(best[1])
    losses.evaluated = best[0]
    return losses
