"""Acceptance trainings with loops of their own: two models, two optimizers, closures, resuming."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import torch
from acceptance_case import Losses, follow
from acceptance_data import photos, pictures
from acceptance_tasks import two_views
from torch import Tensor, nn, optim
from torch.nn import functional

import fmapboard
from fmapboard.demo.network import load_trained


def normal(model: nn.Module) -> nn.Module:
    """DCGAN's initialization."""
    for module in model.modules():
        if isinstance(module, nn.Conv2d | nn.ConvTranspose2d):
            nn.init.normal_(module.weight, 0, 0.02)
    return model


def generator_net(upsample: bool = False) -> nn.Module:
    """64 numbers to 32 × 32 px."""

    def step(into: int, out: int) -> list[nn.Module]:
        if upsample:
            conv = nn.Conv2d(into, out, 3, padding=1, bias=False)
            return [nn.Upsample(scale_factor=2), conv, nn.BatchNorm2d(out), nn.ReLU(True)]
        conv = nn.ConvTranspose2d(into, out, 4, 2, 1, bias=False)
        return [conv, nn.BatchNorm2d(out), nn.ReLU(True)]

    first = [nn.ConvTranspose2d(64, 64, 4, bias=False), nn.BatchNorm2d(64), nn.ReLU(True)]
    last = [nn.ConvTranspose2d(16, 3, 4, 2, 1), nn.Tanh()]
    return nn.Sequential(*first, *step(64, 32), *step(32, 16), *last)


def critic_net(spectral: bool = False) -> nn.Module:
    wrap = nn.utils.parametrizations.spectral_norm if spectral else (lambda conv: conv)
    layers: list[nn.Module] = []
    for into, out in ((3, 16), (16, 32), (32, 64)):
        layers.append(wrap(nn.Conv2d(into, out, 4, 2, 1)))
        layers += [nn.BatchNorm2d(out)] if into > 3 and not spectral else []
        layers.append(nn.LeakyReLU(0.2, True))
    return nn.Sequential(*layers, wrap(nn.Conv2d(64, 1, 4)), nn.Flatten())


def gan(kind: str, upsample: bool = False, steps: int = 120, every: int = 20):
    """A GAN on crops; ``kind`` is its loss: "cross-entropy", "least squares" or "hinge"."""

    def judge(logits: Tensor, real: bool) -> Tensor:
        if kind == "least squares":
            return (logits - float(real)).square().mean()
        if kind == "hinge":
            return functional.relu(1 - logits if real else 1 + logits).mean()
        target = torch.full_like(logits, 0.9 if real else 0.0)
        return functional.binary_cross_entropy_with_logits(logits, target)

    def run(place: Path, seed: int) -> Losses:
        draw, random = pictures(32), torch.Generator().manual_seed(seed)
        maker, critic = normal(generator_net(upsample)), critic_net(kind == "hinge")
        critic = critic if kind == "hinge" else normal(critic)
        first = optim.Adam(maker.parameters(), lr=2e-4, betas=(0.5, 0.999))
        second = optim.Adam(critic.parameters(), lr=1e-4, betas=(0.5, 0.999))
        boards = [
            fmapboard.watch(maker, place, optimizer=first, every=every, name="generator"),
            fmapboard.watch(critic, place, optimizer=second, every=every, name="discriminator"),
        ]
        losses = []
        for _ in range(steps):
            (real,) = draw(random, 16)
            second.zero_grad()
            fake = maker(torch.randn(16, 64, 1, 1))
            loss = judge(critic(real), True) + judge(critic(fake.detach()), False)
            loss.backward()
            second.step()
            first.zero_grad()
            logits = critic(fake)
            (-logits.mean() if kind == "hinge" else judge(logits, True)).backward()
            first.step()
            losses.append(loss.item())
        for board in boards:
            board.close()
        return losses

    return run


def translation(make: Callable[[], nn.Module], steps: int = 80, every: int = 10):
    """pix2pix: grey to colour, L1 and a patch discriminator that sees both."""

    def run(place: Path, seed: int) -> Losses:
        draw, random = pictures(32), torch.Generator().manual_seed(seed)
        maker = make()
        layers = [nn.Conv2d(4, 16, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(16, 32, 4, 2, 1)]
        layers += [nn.InstanceNorm2d(32), nn.LeakyReLU(0.2), nn.Conv2d(32, 1, 4, 1, 1)]
        critic = nn.Sequential(*layers)
        first = optim.Adam(maker.parameters(), lr=5e-4, betas=(0.5, 0.999))
        second = optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.999))
        entropy = functional.binary_cross_entropy_with_logits
        losses = []
        with (
            fmapboard.watch(maker, place, optimizer=first, every=every, name="G"),
            fmapboard.watch(critic, place, optimizer=second, every=every, name="D"),
        ):
            for _ in range(steps):
                (real,) = draw(random, 8)
                grey = real.mean(1, keepdim=True)
                fake = maker(grey)
                found = critic(torch.cat([grey, fake.detach()], 1))
                truth = critic(torch.cat([grey, real], 1))
                second.zero_grad()
                loss = entropy(found, torch.zeros_like(found))
                (loss + entropy(truth, torch.ones_like(truth))).backward()
                second.step()
                for parameter in critic.parameters():
                    parameter.requires_grad_(False)
                first.zero_grad()
                found = critic(torch.cat([grey, fake], 1))
                close = functional.l1_loss(fake, real)
                (entropy(found, torch.ones_like(found)) + 50 * close).backward()
                first.step()
                for parameter in critic.parameters():
                    parameter.requires_grad_(True)
                losses.append(close.item())
        return losses

    return run


def distillation(make: Callable[[], nn.Module], steps: int = 80, every: int = 10):
    """A small network learns the logits of the bundled trained one."""

    def run(place: Path, seed: int) -> Losses:
        draw, random = photos(48, "own"), torch.Generator().manual_seed(seed)
        teacher, student = load_trained(), make()
        optimizer = optim.AdamW(student.parameters(), lr=1e-3)
        losses = []
        with fmapboard.watch(student, place, optimizer=optimizer, every=every):
            for _ in range(steps):
                images, labels = draw(random, 16)
                with torch.no_grad():
                    soft = (teacher(images) / 2).softmax(1)
                logits = student(images)
                loss = functional.cross_entropy(logits, labels)
                loss = loss + functional.cross_entropy(logits / 2, soft)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
        return losses

    return run


def own_targets(make: Callable[[int], nn.Module], steps: int = 100, every: int = 10):
    """BYOL: predicts the code that a slow copy gives another view."""

    def run(place: Path, seed: int) -> Losses:
        draw, random = photos(32), torch.Generator().manual_seed(seed)
        online = make(32)
        target = copy.deepcopy(online).requires_grad_(False)
        predictor = nn.Sequential(nn.Linear(32, 64), nn.BatchNorm1d(64), nn.ReLU())
        predictor.append(nn.Linear(64, 32))
        parameters = [*online.parameters(), *predictor.parameters()]
        optimizer = optim.AdamW(parameters, lr=1e-3, weight_decay=1e-4)
        losses = []
        with fmapboard.watch(online, place, optimizer=optimizer, every=every):
            for _ in range(steps):
                images, _ = draw(random, 16)
                views = [images + 0.2 * torch.randn_like(images), images.flip(3) * 0.9]
                loss = torch.zeros(())
                for one, other in (views, views[::-1]):
                    with torch.no_grad():
                        goal = target(other)
                    alike = functional.cosine_similarity(predictor(online(one)), goal)
                    loss = loss + 1 - alike.mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                follow(target, online, 0.98)
                losses.append(loss.item())
        return losses

    return run


def stop_gradient(make: Callable[[int], nn.Module], steps: int = 100, every: int = 10):
    """SimCLR with a projection head that is no part of the watched backbone."""

    def run(place: Path, seed: int) -> Losses:
        draw, random = photos(32), torch.Generator().manual_seed(seed)
        back = make(64)
        both = nn.Sequential(back, nn.ReLU(), nn.Linear(64, 32))
        optimizer = optim.Adam(both.parameters(), lr=1e-3)
        losses = []
        with fmapboard.watch(back, place, optimizer=optimizer, every=every):
            for _ in range(steps):
                loss = two_views(both, *draw(random, 16))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
        return losses

    return run
