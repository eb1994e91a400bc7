"""Trainings with a fault of the fourth acceptance set that need a loop of their own."""

from __future__ import annotations

from pathlib import Path

import torch
from acceptance_classic import unit
from acceptance_data import photos, pictures, scenes
from acceptance_fourth_faults_nets import with_dropout
from acceptance_fourth_pictures import LinkNet, all_masks
from acceptance_later_loops import encoder
from acceptance_third_loop import Measured
from acceptance_third_tuning import named
from torch import nn, optim
from torch.nn import functional

import fmapboard

P = photos(32)


def once_per_epoch(place: Path, seed: int) -> Measured:
    """``zero_grad`` stands in the loop over epochs, 12 batches each."""
    random, model = torch.Generator().manual_seed(seed), encoder(8)
    optimizer, losses = optim.SGD(model.parameters(), lr=0.01), Measured()
    with fmapboard.watch(model, place, optimizer=optimizer, every=5):
        for _ in range(5):
            optimizer.zero_grad()
            for _ in range(12):
                loss = named(model, *P(random, 16))
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
    return losses


def one_of_two(place: Path, seed: int) -> Measured:
    """A rate for the backbone and one for the head by two optimizers; one is cleared, twice."""
    random, model = torch.Generator().manual_seed(seed), encoder(8)
    first = optim.Adam(model[:-1].parameters(), lr=1e-3)
    second, losses = optim.Adam(model[-1].parameters(), lr=3e-3), Measured()
    with fmapboard.watch(model, place, every=5) as board:
        for step in range(60):
            with board.step(step):
                second.zero_grad()
                second.zero_grad()
                loss = named(model, *P(random, 16))
                loss.backward()
                first.step()
                second.step()
            losses.append(loss.item())
    return losses


def closure_kept(place: Path, seed: int) -> Measured:
    """A closure without ``zero_grad``, which each optimizer of PyTorch accepts."""
    random, model = torch.Generator().manual_seed(seed), encoder(8)
    optimizer, losses = optim.RMSprop(model.parameters(), lr=3e-4), Measured()
    with fmapboard.watch(model, place, optimizer=optimizer, every=5):
        for _ in range(60):
            images, labels = P(random, 16)

            def closure(images=images, labels=labels) -> torch.Tensor:
                loss = named(model, images, labels)
                loss.backward()
                return loss

            losses.append(optimizer.step(closure).item())
    return losses


def accuracy_left(place: Path, seed: int) -> Measured:
    """Accuracy on the batch is measured in eval mode by a function that does not switch back."""
    random, model = torch.Generator().manual_seed(seed), with_dropout()
    optimizer, losses = optim.AdamW(model.parameters(), lr=2e-3), Measured()
    with fmapboard.watch(model, place, optimizer=optimizer, every=5):
        for step in range(60):
            images, labels = P(random, 16)
            loss = named(model, images, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            if step == 9:
                model.eval()
                with torch.no_grad():
                    model(images).argmax(1)
    return losses


def encoder_left(place: Path, seed: int) -> Measured:
    """Pictures of the encoder's maps are drawn at step 20; then it stays in eval mode."""
    random, model = torch.Generator().manual_seed(seed), LinkNet()
    optimizer, losses = optim.Adam(model.parameters(), lr=2e-3), Measured()
    with fmapboard.watch(model, place, optimizer=optimizer, every=5):
        for step in range(60):
            batch = scenes(random, 12)
            if step == 20:
                model.first.eval()
                model.down.eval()
            loss = all_masks(model, *batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def cleared_too_late(place: Path, seed: int) -> Measured:
    """``zero_grad`` stands between ``backward`` and ``step``; gradients are kept as zeros."""
    random, model = torch.Generator().manual_seed(seed), encoder(8)
    optimizer, losses = optim.SGD(model.parameters(), lr=0.05, momentum=0.9), Measured()
    with fmapboard.watch(model, place, optimizer=optimizer, every=5):
        for _ in range(60):
            loss = named(model, *P(random, 16))
            loss.backward()
            optimizer.zero_grad(set_to_none=False)
            optimizer.step()
            losses.append(loss.item())
    return losses


def spike(place: Path, seed: int) -> Measured:
    """A warm-up that ends at 3 in place of 0.03, for four steps; no norm, ReLU."""
    random, model = torch.Generator().manual_seed(seed), encoder(8, norm=False)
    optimizer, losses = optim.SGD(model.parameters(), lr=0.01, momentum=0.9), Measured()
    with fmapboard.watch(model, place, optimizer=optimizer, every=5):
        for step in range(60):
            optimizer.param_groups[0]["lr"] = 3.0 if 10 <= step < 14 else 0.01
            loss = named(model, *P(random, 16))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def clipped_away(place: Path, seed: int) -> Measured:
    """Gradients are clipped to a norm of 1e-5: clip and rate were given in the wrong order."""
    random, model = torch.Generator().manual_seed(seed), encoder(8)
    optimizer, losses = optim.SGD(model.parameters(), lr=0.05, momentum=0.9), Measured()
    with fmapboard.watch(model, place, optimizer=optimizer, every=5):
        for _ in range(60):
            loss = named(model, *P(random, 16))
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1e-5)
            optimizer.step()
            losses.append(loss.item())
    return losses


def five_pixels(place: Path, seed: int) -> Measured:
    """DCGAN after TensorFlow's tutorial: transposed convolutions of 5 px, stride 2."""
    random, draw = torch.Generator().manual_seed(seed), pictures(32)
    layers: list[nn.Module] = [nn.Linear(32, 48 * 64), nn.Unflatten(1, (48, 8, 8))]
    layers += [nn.BatchNorm2d(48), nn.LeakyReLU(0.2), nn.ConvTranspose2d(48, 24, 5, 2, 2, 1)]
    layers += [nn.BatchNorm2d(24), nn.LeakyReLU(0.2), nn.ConvTranspose2d(24, 3, 5, 2, 2, 1)]
    maker = nn.Sequential(*layers, nn.Tanh())
    act = lambda: nn.LeakyReLU(0.2)  # noqa: E731
    body = [unit(3, 24, 5, 2, None, act), nn.Dropout(0.3), unit(24, 48, 5, 2, None, act)]
    critic = nn.Sequential(*body, nn.Dropout(0.3), nn.Flatten(), nn.Linear(48 * 64, 1))
    first = optim.Adam(maker.parameters(), lr=3e-4, betas=(0.5, 0.999))
    second = optim.Adam(critic.parameters(), lr=1e-4, betas=(0.5, 0.999))
    losses = Measured()
    with (
        fmapboard.watch(maker, place, optimizer=first, every=5, name="generator"),
        fmapboard.watch(critic, place, optimizer=second, every=5, name="critic"),
    ):
        for _ in range(60):
            (real,) = draw(random, 12)
            fake = maker(torch.randn(12, 32))
            loss = functional.softplus(-critic(real)).mean()
            loss = loss + functional.softplus(critic(fake.detach())).mean()
            second.zero_grad()
            loss.backward()
            second.step()
            first.zero_grad()
            functional.softplus(-critic(fake)).mean().backward()
            first.step()
            losses.append(loss.item())
    return losses
