"""Faulty trainings of the later acceptance that need a loop of their own."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import torch
from acceptance_case import Losses
from acceptance_classic import head, unit
from acceptance_data import photos, pictures
from acceptance_later_loops import encoder
from torch import Tensor, nn, optim
from torch.nn import functional
from torchvision.models import resnet

import fmapboard


def small_resnet() -> nn.Module:
    model = resnet.ResNet(resnet.BasicBlock, [1, 1, 1, 1], num_classes=1000)
    model.layer3 = model.layer4 = nn.Identity()
    model.fc = nn.Linear(128, 1000)
    return model


def classify(
    model: nn.Module,
    optimizer: optim.Optimizer,
    place: Path,
    seed: int,
    zero: Callable[[], None] | None = None,
    between: Callable[[int], None] | None = None,
    step: bool = True,
    counted: bool = False,
) -> Losses:
    """60 steps, marked by default; ``counted`` passes the optimizer to the board instead."""
    random, losses = torch.Generator().manual_seed(seed), []
    options = {"optimizer": optimizer} if counted else {}
    with fmapboard.watch(model, place, every=5, **options) as board:
        for number in range(60):
            images, labels = photos(32)(random, 16)
            with nullcontext() if counted else board.step(number):
                (zero or optimizer.zero_grad)()
                loss = functional.cross_entropy(model(images), labels)
                loss.backward()
                if step:
                    optimizer.step()
            losses.append(loss.item())
            if between is not None:
                between(number)
    return losses


def new_head(place: Path, seed: int) -> Losses:
    """The optimizer is built before the head is replaced."""
    model = small_resnet()
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    model.fc = nn.Linear(128, 8)
    return classify(model, optimizer, place, seed, counted=True)


class Branches(nn.Module):
    """Branches in a Python list, which PyTorch does not see."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = unit(3, 24, stride=2), nn.Sequential(*head(48, 8))
        self.branches: object = [unit(24, 24), unit(24, 24, 5)]

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        return self.last(torch.cat([branch(x) for branch in self.branches], 1))


def listed(place: Path, seed: int) -> Losses:
    """The list becomes a ModuleList only after the optimizer is built."""
    model = Branches()
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    branches = model.branches
    del model.branches
    model.branches = nn.ModuleList(branches)
    return classify(model, optimizer, place, seed)


def copied(place: Path, seed: int) -> Losses:
    """The optimizer has the parameters of the model before it was copied."""
    model = encoder(8)
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    return classify(copy.deepcopy(model), optimizer, place, seed, counted=True)


def never_cleared(place: Path, seed: int) -> Losses:
    model = encoder(8)
    return classify(model, optim.Adam(model.parameters(), lr=1e-3), place, seed, zero=lambda: None)


def head_cleared(place: Path, seed: int) -> Losses:
    """zero_grad of a part of the network."""
    model = encoder(8)
    optimizer = optim.SGD(model.parameters(), lr=0.005)
    return classify(model, optimizer, place, seed, zero=model[-1].zero_grad)


def critic_kept(place: Path, seed: int) -> Losses:
    """A GAN whose discriminator is never cleared: it steps along the generator's gradients too."""
    random, draw = torch.Generator().manual_seed(seed), pictures(32)
    layers = [nn.Linear(32, 48 * 64), nn.Unflatten(1, (48, 8, 8)), nn.ReLU()]
    layers += [nn.Upsample(scale_factor=2), unit(48, 32), nn.Upsample(scale_factor=2), unit(32, 16)]
    maker = nn.Sequential(*layers, nn.Conv2d(16, 3, 3, padding=1), nn.Tanh())
    critic = nn.Sequential(unit(3, 24, 4, 2), unit(24, 48, 4, 2), *head(48, 1))
    first = optim.Adam(maker.parameters(), lr=5e-4, betas=(0.5, 0.999))
    second = optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.999))
    losses = []
    with (
        fmapboard.watch(maker, place, optimizer=first, every=5, name="generator"),
        fmapboard.watch(critic, place, optimizer=second, every=5, name="discriminator"),
    ):
        for _ in range(60):
            (real,) = draw(random, 12)
            fake = maker(torch.randn(12, 32))
            loss = functional.softplus(-critic(real)).mean()
            loss = loss + functional.softplus(critic(fake.detach())).mean()
            loss.backward()
            second.step()
            first.zero_grad()
            functional.softplus(-critic(fake)).mean().backward()
            first.step()
            losses.append(loss.item())
    return losses


def eval_after_validation(place: Path, seed: int) -> Losses:
    """train() is called once before the loop; validation switches to eval mode for good."""
    model = nn.Sequential(*list(encoder(8))[:-1], nn.Dropout(0.3), nn.Linear(64, 8))
    optimizer = optim.Adam(model.parameters(), lr=1e-3)

    def validate(step: int) -> None:
        if step == 19:
            model.eval()
            with torch.no_grad():
                model(photos(32)(torch.Generator().manual_seed(9), 16)[0])

    return classify(model.train(), optimizer, place, seed, between=validate)


def eval_backbone(place: Path, seed: int) -> Losses:
    """Features of the backbone are looked at before the training, in eval mode."""
    model = nn.ModuleDict({"backbone": encoder(32), "head": nn.Linear(32, 8)})
    model.forward = lambda x: model["head"](model["backbone"](x))
    model["backbone"].eval()
    optimizer = optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    return classify(model, optimizer, place, seed)


def loaded(place: Path, seed: int) -> Losses:
    """A network that a function returns in eval mode, trained as it is, all of it."""
    model = small_resnet().eval()
    return classify(model, optim.AdamW(model.parameters(), lr=3e-4), place, seed)


def never_stepped(place: Path, seed: int) -> Losses:
    """Accumulation with a condition that is never true."""
    model = encoder(8)
    return classify(model, optim.Adam(model.parameters(), lr=1e-3), place, seed, step=False)
