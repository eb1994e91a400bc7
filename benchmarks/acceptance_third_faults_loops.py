"""Trainings with a fault of the third acceptance set that need a loop of their own."""

from __future__ import annotations

import copy
from pathlib import Path

import lightning.pytorch as pl
import torch
from acceptance_classic import head, unit
from acceptance_data import photos
from acceptance_later_loops import encoder
from acceptance_later_losses import ArcFace, angular
from acceptance_third_frameworks import trainer
from acceptance_third_loop import Measured
from torch import Tensor, nn, optim
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import fmapboard
from fmapboard.integrations import lightning


def data(seed: int, count: int = 256, batch: int = 16) -> DataLoader:
    return DataLoader(
        TensorDataset(*photos(32)(torch.Generator().manual_seed(seed), count)), batch, shuffle=True
    )


def unfrozen_late(place: Path, seed: int) -> Measured:
    """The optimizer gets what is trainable at the start; later the backbone is unfrozen."""
    random, model = torch.Generator().manual_seed(seed), encoder(8)
    for part in model[:3]:
        part.requires_grad_(False)
    optimizer = optim.Adam(filter(lambda p: p.requires_grad, model.parameters()), lr=2e-3)
    losses = Measured()
    with fmapboard.watch(model, place, optimizer=optimizer, every=5):
        for step in range(60):
            if step == 20:
                model.requires_grad_(True)
            images, labels = photos(32)(random, 16)
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def centres_forgotten(place: Path, seed: int) -> Measured:
    """ArcFace: only the backbone's parameters are given to SGD, not the class centres."""
    random, model = torch.Generator().manual_seed(seed), ArcFace(encoder(32))
    optimizer, losses = optim.SGD(model.back.parameters(), lr=0.05, momentum=0.9), Measured()
    with fmapboard.watch(model, place, optimizer=optimizer, every=5):
        for _ in range(60):
            loss = angular(model, *photos(32)(random, 16))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def accumulated_wrongly(place: Path, seed: int) -> Measured:
    """Gradients are to be accumulated over 4 batches, but the optimizer steps after each."""
    random, model = torch.Generator().manual_seed(seed), encoder(8)
    optimizer, losses = optim.SGD(model.parameters(), lr=0.01), Measured()
    with fmapboard.watch(model, place, optimizer=optimizer, every=5):
        for step in range(60):
            images, labels = photos(32)(random, 16)
            loss = functional.cross_entropy(model(images), labels) / 4
            loss.backward()
            optimizer.step()
            if (step + 1) % 4 == 0:
                optimizer.zero_grad()
            losses.append(loss.item() * 4)
    return losses


class Manual(pl.LightningModule):
    """Manual optimization without zero_grad, which Lightning then does not call either."""

    def __init__(self) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.net, self.losses = encoder(8), Measured()

    def training_step(self, batch: list[Tensor], _: int) -> None:
        optimizer = self.optimizers()
        loss = functional.cross_entropy(self.net(batch[0]), batch[1])
        self.manual_backward(loss)
        optimizer.step()
        self.losses.append(loss.item())

    def configure_optimizers(self) -> optim.Optimizer:
        return optim.AdamW(self.parameters(), lr=1e-3)


def manual_kept(place: Path, seed: int) -> Measured:
    model, board = Manual(), lightning.FeatureMapCallback(every=5, log_dir=str(place))
    trainer(place, 60, [board]).fit(model, data(seed))
    return model.losses


class FineTuned(pl.LightningModule):
    """A backbone that a library returns in eval mode; Lightning 2.2 and later leave it so."""

    def __init__(self) -> None:
        super().__init__()
        parts, self.losses = list(encoder(32)), Measured()
        self.net = nn.Sequential(*parts[:-1], nn.Dropout(0.3), parts[-1]).eval()
        self.last = nn.Linear(32, 8)

    def training_step(self, batch: list[Tensor], _: int) -> Tensor:
        loss = functional.cross_entropy(self.last(self.net(batch[0])), batch[1])
        self.losses.append(loss.item())
        return loss

    def configure_optimizers(self) -> optim.Optimizer:
        return optim.AdamW(self.parameters(), lr=2e-3)


def lightning_eval(place: Path, seed: int) -> Measured:
    model, board = FineTuned(), lightning.FeatureMapCallback(every=5, log_dir=str(place))
    trainer(place, 60, [board]).fit(model, data(seed))
    return model.losses


class Stuck(nn.Module):
    """``train`` is overridden to freeze the norms, and forgets to call super."""

    def __init__(self) -> None:
        super().__init__()
        layers = [unit(3, 24, stride=2), unit(24, 48, stride=2), *head(48, 8, 0.2)]
        self.layers = nn.Sequential(*layers)

    def train(self, mode: bool = True) -> nn.Module:
        self.training = mode
        return self

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


def train_overridden(place: Path, seed: int) -> Measured:
    """After a first evaluation by hand, ``train()`` reaches no layer."""
    random, model = torch.Generator().manual_seed(seed), Stuck()
    for module in model.layers.modules():
        module.training = False  # what eval() of the parts does before the first epoch
    optimizer, losses = optim.Adam(model.parameters(), lr=1e-3), Measured()
    with fmapboard.watch(model, place, optimizer=optimizer, every=5):
        for _ in range(60):
            model.train()
            images, labels = photos(32)(random, 16)
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def restored(place: Path, seed: int) -> Measured:
    """The averaged weights are swapped in for evaluation; what is put back was saved once."""
    random, model = torch.Generator().manual_seed(seed), encoder(8)
    optimizer, losses = optim.Adam(model.parameters(), lr=1e-3), Measured()
    saved = copy.deepcopy(model.state_dict())
    with fmapboard.watch(model, place, optimizer=optimizer, every=5):
        for _ in range(60):
            images, labels = photos(32)(random, 16)
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            model.load_state_dict(saved)
            losses.append(loss.item())
    return losses


def small_half(place: Path, seed: int) -> Measured:
    """Weights in bfloat16 and a rate of 1e-6: most updates are rounded away."""
    random, model = torch.Generator().manual_seed(seed), encoder(8, norm=False).bfloat16()
    optimizer, losses = optim.AdamW(model.parameters(), lr=1e-6, weight_decay=0.0), Measured()
    with fmapboard.watch(model, place, optimizer=optimizer, every=5):
        for _ in range(60):
            images, labels = photos(32)(random, 16)
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(images.bfloat16()).float(), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses
