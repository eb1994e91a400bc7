"""Later acceptance trainings with loops of their own: adversarial, self-supervised, meta."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from pathlib import Path

import torch
from acceptance_case import Losses, follow
from acceptance_classic import head, unit
from acceptance_data import photos, pictures, pixels
from acceptance_later_data import few_classes
from acceptance_later_pictures import style_net
from torch import Tensor, nn, optim
from torch.nn import functional

import fmapboard

Run = Callable[[Path, int], Losses]


def encoder(out: int = 32, norm: bool = True) -> nn.Module:
    make = nn.BatchNorm2d if norm else None
    layers = [unit(3, 24, stride=2, norm=make), unit(24, 48, stride=2, norm=make)]
    return nn.Sequential(*layers, unit(48, 64, norm=make), *head(64, out))


def views(images: Tensor) -> list[Tensor]:
    """Two views; they differ in crop, flip, contrast and noise."""
    found = []
    for _ in range(2):
        top, left = torch.randint(0, 8, (2,)).tolist()
        shown = images[..., top : top + 24, left : left + 24]
        shown = shown.flip(3) if torch.rand(()) < 0.5 else shown
        gain = 0.7 + 0.6 * torch.rand(len(images), 1, 1, 1)
        found.append(shown * gain + 0.1 * torch.randn_like(shown))
    return found


def wasserstein(place: Path, seed: int) -> Losses:
    """WGAN-GP: three steps of the critic for one of the generator; distance of the moments."""
    draw, random = pictures(32), torch.Generator().manual_seed(seed)
    layers = [nn.Linear(32, 48 * 64), nn.Unflatten(1, (48, 8, 8)), nn.BatchNorm2d(48), nn.ReLU()]
    layers += [nn.Upsample(scale_factor=2), unit(48, 32), nn.Upsample(scale_factor=2), unit(32, 16)]
    maker = nn.Sequential(*layers, nn.Conv2d(16, 3, 3, padding=1), nn.Tanh())
    layers = [nn.Conv2d(3, 24, 3, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(24, 48, 3, 2, 1)]
    critic = nn.Sequential(*layers, nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(48 * 64, 1))
    first = optim.Adam(maker.parameters(), lr=5e-4, betas=(0.0, 0.9))
    second = optim.Adam(critic.parameters(), lr=5e-4, betas=(0.0, 0.9))
    losses = []
    with (
        fmapboard.watch(maker, place, optimizer=first, every=8, name="generator"),
        fmapboard.watch(critic, place, optimizer=second, every=24, name="critic"),
    ):
        for step in range(240):
            (real,) = draw(random, 12)
            with torch.no_grad():
                fake = maker(torch.randn(12, 32))
            share = torch.rand(12, 1, 1, 1)
            mixed = (share * real + (1 - share) * fake).requires_grad_()
            (slope,) = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)
            penalty = (slope.flatten(1).norm(dim=1) - 1).square().mean()
            second.zero_grad()
            (critic(fake).mean() - critic(real).mean() + 10 * penalty).backward()
            second.step()
            if step % 3 == 2:
                first.zero_grad()
                fake = maker(torch.randn(12, 32))
                (-critic(fake).mean()).backward()
                first.step()
                apart = (fake.std(0) - real.std(0)).abs().mean() + (fake - real).mean(
                    0
                ).abs().mean()
                losses.append(apart.item())
    return losses


def cycles(place: Path, seed: int) -> Losses:
    """CycleGAN between light and dark photographs; the loss of the cycles."""
    draw, random = pictures(32), torch.Generator().manual_seed(seed)
    makers = nn.ModuleDict({"there": style_net(), "back": style_net()})
    layers = [nn.Conv2d(3, 24, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(24, 1, 4, 2, 1)]
    critics = nn.ModuleDict({name: nn.Sequential(*copy.deepcopy(layers)) for name in makers})
    pairs = itertools.chain(makers["there"].parameters(), makers["back"].parameters())
    first = optim.Adam(pairs, lr=1e-3, betas=(0.5, 0.999))
    second = optim.Adam(critics.parameters(), lr=2e-4, betas=(0.5, 0.999))
    losses = []
    with fmapboard.watch(makers, place, optimizer=first, every=5):
        for _ in range(60):
            light, dark = draw(random, 4)[0], draw(random, 4)[0] * 0.4 - 0.5
            fakes = makers["there"](light), makers["back"](dark)
            again = makers["back"](fakes[0]), makers["there"](fakes[1])
            loop = functional.l1_loss(again[0], light) + functional.l1_loss(again[1], dark)
            fooled = sum(
                (critics[n](f) - 1).square().mean() for n, f in zip(makers, fakes, strict=True)
            )
            first.zero_grad()
            (10 * loop + fooled).backward()
            first.step()
            second.zero_grad()
            for name, fake, real in zip(makers, fakes, (dark, light), strict=True):
                critic = critics[name]
                judged = (critic(real) - 1).square().mean() + critic(fake.detach()).square().mean()
                judged.backward()
            second.step()
            losses.append(loop.item())
    return losses


class Momentum(nn.Module):
    """MoCo: the query's encoder, the key's slow copy, and a queue of keys."""

    def __init__(self) -> None:
        super().__init__()
        self.query = encoder()
        self.key = copy.deepcopy(self.query).requires_grad_(False)
        self.register_buffer("queue", functional.normalize(torch.randn(64, 32), dim=1))

    def forward(self, one: Tensor, two: Tensor) -> Tensor:
        query = functional.normalize(self.query(one), dim=1)
        with torch.no_grad():
            follow(self.key, self.query, 0.95)
            key = functional.normalize(self.key(two), dim=1)
        logits = torch.cat([(query * key).sum(1, keepdim=True), query @ self.queue.T], 1) / 0.2
        self.queue = torch.cat([key, self.queue])[:64]
        return functional.cross_entropy(logits, torch.zeros(len(query), dtype=torch.long))


def momentum_contrast(place: Path, seed: int) -> Losses:
    """All parameters are given to SGD, those of the slow copy without gradients."""
    model, random = Momentum(), torch.Generator().manual_seed(seed)
    optimizer = optim.SGD(model.parameters(), lr=0.06, momentum=0.9, weight_decay=1e-4)
    losses = []
    with fmapboard.watch(model, place, optimizer=optimizer, every=8):
        for _ in range(120):
            loss = model(*views(photos(32)(random, 16)[0]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def self_distillation(place: Path, seed: int) -> Losses:
    """DINO: student and teacher in one watched module, only the student in the optimizer."""
    student, random = encoder(48), torch.Generator().manual_seed(seed)
    teacher = copy.deepcopy(student).requires_grad_(False)
    both = nn.ModuleDict({"student": student, "teacher": teacher})
    optimizer = optim.AdamW(student.parameters(), lr=1e-3, weight_decay=0.04)
    centre, losses = torch.zeros(48), []
    with fmapboard.watch(both, place, optimizer=optimizer, every=8):
        for step in range(120):
            images, _ = photos(32)(random, 16)
            large = views(images)
            small = functional.interpolate(large[0], (16, 16), mode="bilinear")
            with torch.no_grad():
                seen = [teacher(view) for view in large]
                goals = [((y - centre) / 0.05).softmax(1) for y in seen]
                centre = 0.9 * centre + 0.1 * torch.cat(seen).mean(0)
            given = [student(view) for view in (*large, small)]
            pairs = [(g, s) for i, g in enumerate(goals) for j, s in enumerate(given) if i != j]
            terms = [-(g * (s / 0.1).log_softmax(1)).sum(1).mean() for g, s in pairs]
            loss = torch.stack(terms).mean()
            optimizer.zero_grad()
            loss.backward()
            if step < 5:
                student[-1].weight.grad = student[-1].bias.grad = None
            optimizer.step()
            follow(teacher, student, 0.97)
            losses.append(loss.item())
    return losses


def prototypes(place: Path, seed: int) -> Losses:
    """Prototypical network: four classes, two examples each, six questions each."""
    model, random = encoder(), torch.Generator().manual_seed(seed)
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    draw, losses = few_classes(4, 8), []
    with fmapboard.watch(model, place, optimizer=optimizer, every=5):
        for _ in range(100):
            images, labels = draw(random, 32)
            kinds = torch.stack([labels == kind for kind in labels.unique()]).long().argmax(0)
            codes = model(images)
            groups = [codes[kinds == kind] for kind in range(int(kinds.max()) + 1)]
            means = torch.stack([group[:2].mean(0) for group in groups])
            asked = torch.cat([group[2:] for group in groups])
            truth = torch.cat([torch.full((len(g) - 2,), k) for k, g in enumerate(groups)])
            loss = functional.cross_entropy(-torch.cdist(asked, means), truth)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


class Reversed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: object, gradient: Tensor) -> Tensor:
        return -0.3 * gradient


class Adversarial(nn.Module):
    """DANN: a classifier, and a domain head behind a reversed gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.back, self.label, self.domain = encoder(64), nn.Linear(64, 8), nn.Linear(64, 2)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        code = self.back(x).relu()
        return self.label(code), self.domain(Reversed.apply(code))


def domains(place: Path, seed: int) -> Losses:
    """Colour photographs with labels, grey ones without."""
    model, random = Adversarial(), torch.Generator().manual_seed(seed)
    optimizer = optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    losses = []
    with fmapboard.watch(model, place, optimizer=optimizer, every=8):
        for _ in range(120):
            images, labels = photos(32)(random, 16)
            grey = photos(32)(random, 16)[0].mean(1, keepdim=True).expand(-1, 3, -1, -1)
            named, placed = model(torch.cat([images, grey]))
            task = functional.cross_entropy(named[:16], labels)
            where = torch.arange(2).repeat_interleave(16)
            optimizer.zero_grad()
            (task + functional.cross_entropy(placed, where)).backward()
            optimizer.step()
            losses.append(task.item())
    return losses


def policy_gradient(place: Path, seed: int) -> Losses:
    """A contextual bandit with REINFORCE and a baseline; the share of wrong choices."""
    model, random = encoder(9), torch.Generator().manual_seed(seed)
    optimizer = optim.Adam(model.parameters(), lr=2e-3)
    losses = []
    with fmapboard.watch(model, place, optimizer=optimizer, every=10):
        for _ in range(200):
            images, labels = photos(24)(random, 24)
            logits, value = model(images).split([8, 1], 1)
            choice = torch.distributions.Categorical(logits=logits)
            chosen = choice.sample()
            gain = (chosen == labels).float()
            better = gain - value[:, 0]
            loss = -(choice.log_prob(chosen) * better.detach()).mean()
            loss = loss + 0.5 * better.square().mean() - 0.01 * choice.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(1 - gain.mean().item())
    return losses


def reptile(place: Path, seed: int) -> Losses:
    """Meta-learning: the watched network moves towards copies trained on tasks, no optimizer."""
    model, random = encoder(8, norm=False), torch.Generator().manual_seed(seed)
    losses = []
    with fmapboard.watch(model, place, every=3) as board:
        for step in range(36):
            inner = copy.deepcopy(model)
            fast = optim.Adam(inner.parameters(), lr=1e-3, betas=(0.0, 0.999))
            images, labels = pixels(random, 24, 24)
            with board.step(step):
                losses.append(functional.cross_entropy(model(images * 2 - 1), labels).item())
                for _ in range(4):
                    fast.zero_grad()
                    functional.cross_entropy(inner(images * 2 - 1), labels).backward()
                    fast.step()
                follow(model, inner, 0.5)
    return losses
