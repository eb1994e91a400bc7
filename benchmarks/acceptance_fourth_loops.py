"""Trainings of the fourth set with a loop of their own."""

from __future__ import annotations

import copy
from pathlib import Path

import torch
from acceptance_case import Losses, follow
from acceptance_classic import head, unit
from acceptance_data import photos, pictures
from acceptance_fourth_plain import convs
from acceptance_later_loops import encoder
from acceptance_third_data import catch
from acceptance_third_loop import Measured, evaluated
from acceptance_third_tuning import named
from torch import Tensor, nn, optim
from torch.nn import functional

import fmapboard


def tanh_net() -> nn.Module:
    return nn.Sequential(
        *(unit(3, 16, 5, 2, None, nn.Tanh), unit(16, 32, 5, 2, None, nn.Tanh)), *head(32, 8)
    )


def line_search(place: Path, seed: int) -> Losses:
    """L-BFGS with strong Wolfe conditions on 128 examples; a closure, all calls in one step."""
    random, model = torch.Generator().manual_seed(seed), tanh_net()
    images, labels = photos(32)(random, 128)
    optimizer = optim.LBFGS(model.parameters(), lr=0.5, max_iter=4, line_search_fn="strong_wolfe")
    losses = []

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = named(model, images, labels)
        loss.backward()
        return loss

    with fmapboard.watch(model, place, optimizer=optimizer, every=4):
        for _ in range(40):
            losses.append(optimizer.step(closure).item())
    return losses


def plateau(place: Path, seed: int) -> Measured:
    """The rate falls when a validation loss, measured in eval mode each 10 steps, does not."""
    random, model = torch.Generator().manual_seed(seed), encoder(8)
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.3, patience=1)
    shown, losses = photos(32)(random, 64), Measured()
    with fmapboard.watch(model, place, every=lambda s: s % 10 == 9) as board:
        for step in range(100):
            with board.step(step):
                loss = named(model.train(), *photos(32)(random, 16))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            losses.append(loss.item())
            if step % 10 == 9:
                model.eval()
                with torch.no_grad():
                    scheduler.step(named(model, *shown))
    losses.evaluated = evaluated(model, lambda: named(model, *shown))
    return losses


def coder(final: nn.Module) -> nn.Module:
    layers = [unit(3, 24, 4, 2, None, nn.ELU), unit(24, 32, 4, 2, None, nn.ELU)]
    layers += [unit(32, 32, norm=None, act=nn.ELU), nn.Upsample(scale_factor=2)]
    layers += [unit(32, 24, norm=None, act=nn.ELU), nn.Upsample(scale_factor=2)]
    return nn.Sequential(*layers, nn.Conv2d(24, 3, 3, padding=1), final)


def equilibrium(place: Path, seed: int) -> Losses:
    """BEGAN: the critic is an autoencoder; a share k keeps the two losses in balance."""
    random, draw = torch.Generator().manual_seed(seed), pictures(32)
    layers = [nn.Linear(32, 32 * 64), nn.Unflatten(1, (32, 8, 8))]
    for out in (32, 24):
        layers += [unit(32, out, norm=None, act=nn.ELU), nn.Upsample(scale_factor=2)]
        layers += [nn.Identity() if out == 32 else nn.Conv2d(24, 3, 3, padding=1)]
    maker, critic = nn.Sequential(*layers), coder(nn.Identity())
    first = optim.Adam(maker.parameters(), lr=5e-4, betas=(0.5, 0.999))
    second = optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.999))
    share, losses = 0.0, []
    with (
        fmapboard.watch(maker, place, optimizer=first, every=8, name="maker"),
        fmapboard.watch(critic, place, optimizer=second, every=8, name="critic"),
    ):
        for _ in range(80):
            (real,) = draw(random, 12)
            fake = maker(torch.randn(12, 32))
            true = functional.l1_loss(critic(real), real)
            false = functional.l1_loss(critic(fake.detach()), fake.detach())
            second.zero_grad()
            (true - share * false).backward()
            second.step()
            critic.requires_grad_(False)
            first.zero_grad()
            made = functional.l1_loss(critic(fake), fake)
            made.backward()
            first.step()
            critic.requires_grad_(True)
            share = min(1.0, max(0.0, share + 0.01 * (0.5 * true - made).item()))
            losses.append(true.item())
    return losses


class Conditional(nn.Module):
    """A generator whose BatchNorm's scale and shift depend on the class."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(32, 48 * 64), nn.Conv2d(24, 3, 3, padding=1)
        self.convs = nn.ModuleList(nn.Conv2d(a, b, 3, padding=1) for a, b in ((48, 32), (32, 24)))
        self.norms = nn.ModuleList(nn.BatchNorm2d(a, affine=False) for a in (48, 32))
        self.scales = nn.ModuleList(nn.Embedding(8, 2 * a) for a in (48, 32))
        for table in self.scales:
            nn.init.zeros_(table.weight)

    def forward(self, noise: Tensor, labels: Tensor) -> Tensor:
        x = self.first(noise).unflatten(1, (48, 8, 8))
        for conv, norm, table in zip(self.convs, self.norms, self.scales, strict=True):
            scale, shift = table(labels)[..., None, None].chunk(2, 1)
            x = (norm(x) * (1 + scale) + shift).relu()
            x = conv(functional.interpolate(x, scale_factor=2.0))
        return self.last(x.relu()).tanh()


def projected(place: Path, seed: int) -> Losses:
    """A class-conditional GAN with a projection critic and hinge loss; the critic's loss."""
    random, draw = torch.Generator().manual_seed(seed), photos(32, "half")
    wrap = nn.utils.parametrizations.spectral_norm
    maker = Conditional()
    body = []
    for into, out in ((3, 24), (24, 48), (48, 64)):
        body += [wrap(nn.Conv2d(into, out, 4, 2, 1)), nn.LeakyReLU(0.1)]
    critic = nn.ModuleDict(
        {"body": nn.Sequential(*body), "all": nn.Linear(64, 1), "kinds": nn.Embedding(8, 64)}
    )

    def judge(x: Tensor, labels: Tensor) -> Tensor:
        code = critic["body"](x).mean((2, 3))
        return critic["all"](code)[:, 0] + (critic["kinds"](labels) * code).sum(1)

    first = optim.Adam(maker.parameters(), lr=3e-4, betas=(0.0, 0.99))
    second = optim.Adam(critic.parameters(), lr=3e-4, betas=(0.0, 0.99))
    losses = []
    with (
        fmapboard.watch(maker, place, every=8, optimizer=first, name="G"),
        fmapboard.watch(critic, place, every=8, optimizer=second, name="D"),
    ):
        for _ in range(80):
            real, labels = draw(random, 12)
            fake = maker(torch.randn(12, 32), labels)
            loss = functional.relu(1 - judge(real, labels)).mean()
            loss = loss + functional.relu(1 + judge(fake.detach(), labels)).mean()
            second.zero_grad()
            loss.backward()
            second.step()
            first.zero_grad()
            (-judge(fake, labels).mean()).backward()
            first.step()
            losses.append(loss.item())
    return losses


def student(place: Path, seed: int) -> Measured:
    """Noisy student: a first network names unlabelled pictures, a larger one learns with noise."""
    random = torch.Generator().manual_seed(seed)
    teacher = convs(nn.BatchNorm2d, nn.ReLU)
    optimizer = optim.Adam(teacher.parameters(), lr=2e-3)
    for _ in range(40):
        loss = named(teacher, *photos(32)(random, 16))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    teacher.eval().requires_grad_(False)
    model = convs(nn.BatchNorm2d, nn.SiLU, (32, 64, 96))
    optimizer, losses = optim.AdamW(model.parameters(), lr=2e-3), Measured()

    def loss_on(images: Tensor, _: Tensor) -> Tensor:
        return functional.cross_entropy(model(images), teacher(images).softmax(1))

    with fmapboard.watch(model, place, optimizer=optimizer, every=7):
        for _ in range(70):
            images, _ = photos(32)(random, 16)
            soft = teacher(images).softmax(1)
            noisy = images + 0.15 * torch.randn_like(images)
            loss = functional.cross_entropy(model(noisy), soft)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    losses.evaluated = evaluated(model, lambda: loss_on(*photos(32)(random, 48)))
    return losses


def q_learning(place: Path, seed: int) -> Losses:
    """Double DQN with a replay buffer and a slow target on a one-step game of 0 and 1."""
    random = torch.Generator().manual_seed(seed)
    model = nn.Sequential(
        *(nn.Conv2d(2, 24, 5, 2, 2), nn.ReLU(), nn.Conv2d(24, 32, 3, 2, 1), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(32 * 25, 64), nn.ReLU(), nn.Linear(64, 3)),
    )
    target = copy.deepcopy(model).requires_grad_(False)
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    frames, best = catch(random, 600)
    losses = []
    with fmapboard.watch(model, place, optimizer=optimizer, every=15, layers="*"):
        for _ in range(150):
            which = torch.randint(600, (32,), generator=random)
            states, after = frames[which], frames[(which + 1) % 600]
            moves = torch.randint(3, (32,), generator=random)
            gain = (moves == best[which]).float()
            with torch.no_grad():
                chosen = model(after).argmax(1, keepdim=True)
                goal = gain + 0.2 * target(after).gather(1, chosen)[:, 0]
            value = model(states).gather(1, moves[:, None])[:, 0]
            loss = functional.smooth_l1_loss(value, goal)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_value_(model.parameters(), 1.0)
            optimizer.step()
            follow(target, model, 0.95)
            losses.append(loss.item())
    return losses


def thawed(place: Path, seed: int) -> Measured:
    """Head first at a high rate, then a second optimizer with all layers, one run in two parts."""
    random, model = torch.Generator().manual_seed(seed), encoder(8)
    losses = Measured()
    for start, parts, rate in ((0, model[-1], 0.01), (30, model, 2e-3)):
        model.requires_grad_(False)
        parts.requires_grad_(True)
        optimizer = optim.AdamW(parts.parameters(), lr=rate)
        options = {"every": 5, "start_step": start}
        with fmapboard.watch(model, place, optimizer=optimizer, **options):
            for _ in range(30 + start):
                loss = named(model, *photos(32)(random, 16))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
    losses.evaluated = evaluated(model, lambda: named(model, *photos(32)(random, 48)))
    return losses


def pretext(place: Path, seed: int) -> Losses:
    """Contrastive predictive coding: rows of patches predict the ones below, InfoNCE."""
    random = torch.Generator().manual_seed(seed)
    encode = nn.Sequential(unit(3, 32, 4, 2, None), unit(32, 48, 4, 2, None), nn.Conv2d(48, 32, 1))
    memory, ahead = nn.GRU(32, 32, batch_first=True), nn.Linear(32, 32)
    model = nn.ModuleDict({"encode": encode, "memory": memory, "ahead": ahead})
    optimizer, losses = optim.Adam(model.parameters(), lr=2e-3), []
    with fmapboard.watch(model, place, optimizer=optimizer, every=8):
        for _ in range(80):
            (images,) = pictures(32)(random, 16)
            codes = encode(images).mean(3).mT
            told = ahead(memory(codes)[0][:, :-2])
            scores = torch.einsum("ntc,mtc->tnm", told, codes[:, 2:]) / 4
            labels = torch.arange(16).expand(len(scores), -1)
            loss = functional.cross_entropy(scores.flatten(0, 1), labels.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses
