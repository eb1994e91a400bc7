"""Trainings of the third set that fine-tune, adapt, share or combine networks."""

from __future__ import annotations

from pathlib import Path

import torch
from acceptance_data import photos
from acceptance_later_training import bundled
from acceptance_tasks import colourless
from acceptance_third_loop import Measured, Plan
from acceptance_third_selfsup import classifier
from torch import Tensor, nn, optim
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm

import fmapboard


def named(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    return functional.cross_entropy(model(images), labels)


def pretrained(make, steps: int = 60, size: int = 48) -> nn.Module:
    """A network trained on colour photographs, unwatched, before it is fine-tuned on grey ones."""
    with torch.random.fork_rng():
        torch.manual_seed(11)
        model, random = make(), torch.Generator().manual_seed(11)
        optimizer = optim.AdamW(model.parameters(), lr=2e-3)
        for _ in range(steps):
            loss = named(model, *photos(size)(random, 16))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model


def slices(model: nn.Module) -> optim.Optimizer:
    """fastai's discriminative rates: from 1e-4 at the input to 3e-3 at the head."""
    parts = list(model.named_children())
    rates = torch.logspace(-4, -2.5, len(parts)).tolist()
    groups = [
        {"params": list(part.parameters()), "lr": rate}
        for (_, part), rate in zip(parts, rates, strict=True)
        if list(part.parameters())
    ]
    return optim.AdamW(groups, weight_decay=0.01, betas=(0.9, 0.99))


def frozen_norms(model: nn.Module) -> None:
    """Stages up to the last are frozen, their BatchNorm in eval mode."""
    for name, part in model.named_children():
        if name not in ("conv4", "norm4", "head"):
            part.requires_grad_(False)
            part.eval()


def norms_and_head(model: nn.Module) -> None:
    """Only scales, shifts and the head learn."""
    model.requires_grad_(False)
    model.head.requires_grad_(True)
    for module in model.modules():
        if isinstance(module, _BatchNorm):
            module.requires_grad_(True)


def unfreeze(step: int, model: nn.Module, _: optim.Optimizer) -> None:
    """fastai: the head alone for 24 steps, then everything; all is in the optimizer at once."""
    if step == 0:
        model.requires_grad_(False)
        model.head.requires_grad_(True)
    if step == 24:
        model.requires_grad_(True)


class Adapted(nn.Module):
    """A frozen convolution and a 1 × 1 convolution beside it that begins at 0."""

    def __init__(self, conv: nn.Conv2d) -> None:
        super().__init__()
        self.conv = conv.requires_grad_(False)
        self.side = nn.Conv2d(conv.in_channels, conv.out_channels, 1, conv.stride, bias=False)
        nn.init.zeros_(self.side.weight)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(x) + self.side(x)


def adapters() -> nn.Module:
    model = bundled().requires_grad_(False)
    for name, module in list(model.named_children()):
        if isinstance(module, nn.Conv2d):
            setattr(model, name, Adapted(module))
    model.head.requires_grad_(True)
    return model


class Prompted(nn.Module):
    """Visual prompting: a frame of learned pixels around the picture, a frozen network."""

    def __init__(self) -> None:
        super().__init__()
        self.frame = nn.Parameter(torch.zeros(3, 48, 48))
        self.net = bundled().requires_grad_(False)
        self.net.head.requires_grad_(True)

    def train(self, mode: bool = True) -> nn.Module:
        super().train(mode)
        self.net.eval()
        return self

    def forward(self, x: Tensor) -> Tensor:
        edge = torch.ones(48, 48)
        edge[6:42, 6:42] = 0
        return self.net(x + edge * self.frame)


def at_test_time(place: Path, seed: int) -> Measured:
    """Tent: a trained network adapts to noisy, dark pictures; only norms learn, from entropy."""
    model, random = pretrained(classifier, size=32), torch.Generator().manual_seed(seed)
    model.train().requires_grad_(False)
    for module in model.modules():
        if isinstance(module, _BatchNorm):
            module.requires_grad_(True)
            module.track_running_stats = False
            module.running_mean = module.running_var = None
    chosen = [p for p in model.parameters() if p.requires_grad]
    optimizer, losses = optim.Adam(chosen, lr=3e-3), Measured()
    with fmapboard.watch(model, place, optimizer=optimizer, every=6):
        for _ in range(60):
            images, _ = photos(32)(random, 32)
            share = model(images * 0.6 + 0.4 * torch.randn_like(images)).softmax(1)
            loss = -(share * (share + 1e-8).log()).sum(1).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def painted(place: Path, seed: int) -> Measured:
    """Gatys: the picture is what learns; the network is frozen, in eval mode, and watched."""
    judge = bundled().eval().requires_grad_(False)
    random, kept = torch.Generator().manual_seed(seed), {}
    names = ("conv1", "conv2", "conv3")
    for name in names:
        part = judge.get_submodule(name)
        part.register_forward_hook(lambda _m, _i, out, name=name: kept.update({name: out}))

    def look(picture: Tensor) -> list[Tensor]:
        judge(picture)
        return [kept[name] for name in names]

    def gram(x: Tensor) -> Tensor:
        flat = x.flatten(2)
        return flat @ flat.transpose(1, 2) / flat.shape[2]

    content, style = photos(48, "own")(random, 2)[0].split(1)
    with torch.no_grad():
        goal, grams = look(content)[2].clone(), [gram(x).clone() for x in look(style)]
    picture, losses = content.clone().requires_grad_(), Measured()
    optimizer = optim.Adam([picture], lr=0.05)
    with fmapboard.watch(judge, place, optimizer=optimizer, every=10):
        for _ in range(100):
            maps = look(picture)
            loss = functional.mse_loss(maps[2], goal)
            loss = loss + sum(
                functional.mse_loss(gram(m), g) for m, g in zip(maps, grams, strict=True)
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


GREY = colourless(48, "own")
EASY = {"steps": 60, "every": 6}
TUNED = {
    "fastai": Plan(
        bundled,
        GREY,
        named,
        slices,
        before=unfreeze,
        steps=80,
        every=4,
        schedule=lambda o, n: optim.lr_scheduler.OneCycleLR(
            o, [g["lr"] * 2 for g in o.param_groups], n + 1
        ),
    ).case("bundled network", "head first, then all; discriminative rates, one cycle"),
    "frozen_stages": Plan(
        bundled,
        GREY,
        named,
        lambda m: optim.SGD(m.parameters(), lr=0.01, momentum=0.9),
        **EASY,
        begin=frozen_norms,
    ).case("bundled network", "frozen stages are given to SGD"),
    "norms_only": Plan(
        bundled,
        GREY,
        named,
        lambda m: optim.Adam([p for p in m.parameters() if p.requires_grad], lr=3e-3),
        **EASY,
        begin=norms_and_head,
    ).case("bundled network", "only norms and head"),
    "adapters": Plan(
        adapters,
        GREY,
        named,
        lambda m: optim.AdamW(filter(lambda p: p.requires_grad, m.parameters()), lr=3e-3),
        **EASY,
    ).case("bundled network with adapters", "AdamW, only adapters and head"),
    "prompt": Plan(
        Prompted,
        GREY,
        named,
        lambda m: optim.Adam([m.frame, *m.net.head.parameters()], lr=0.01),
        **EASY,
    ).case("bundled network, visual prompt", "Adam 0.01, a frame of pixels and the head"),
}
