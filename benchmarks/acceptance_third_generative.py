"""Generative networks of the third set: their losses, and the loops of the adversarial ones."""

from __future__ import annotations

import copy
import math

import torch
from acceptance_classic import unit
from acceptance_data import pixels
from acceptance_pictures import Timed
from torch import Tensor, nn, optim
from torch.nn import functional


class Automaton(nn.Module):
    """Growing neural cellular automaton: fixed Sobel filters, a last layer that begins at 0."""

    def __init__(self, channels: int = 12) -> None:
        super().__init__()
        sobel = torch.tensor([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]]) / 8
        one = torch.zeros(3, 3)
        one[1, 1] = 1
        kernels = torch.stack([one, sobel, sobel.T]).repeat(channels, 1, 1)[:, None]
        self.register_buffer("kernels", kernels)
        self.channels = channels
        self.hidden, self.last = nn.Conv2d(3 * channels, 48, 1), nn.Conv2d(48, channels, 1)
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.last.bias)

    def forward(self, x: Tensor) -> Tensor:
        seen = functional.conv2d(x, self.kernels, padding=1, groups=self.channels)
        change = self.last(self.hidden(seen).relu())
        return x + change * (torch.rand_like(x[:, :1]) < 0.5)


def grown(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """From one living cell to the first picture, 16 to 24 steps later."""
    goal = pixels(torch.Generator().manual_seed(4), 1, 20)[0]
    state = torch.zeros(4, model.channels, 20, 20)
    state[:, 3:, 10, 10] = 1
    for _ in range(int(torch.randint(16, 25, ()))):
        state = model(state)
    return functional.mse_loss(state[:, :3], goal.expand(4, -1, -1, -1))


def unit_gradients(_: int, model: nn.Module, optimizer: optim.Optimizer) -> None:
    """The automaton's paper: each gradient is divided by its norm, in a hook of the optimizer."""
    if not optimizer._optimizer_step_pre_hooks:

        def divide(*_: object) -> None:
            for p in model.parameters():
                p.grad.div_(p.grad.norm() + 1e-8)

        optimizer.register_step_pre_hook(divide)


class Patches(nn.Module):
    """DiT: patches, attention with modulated norms that begin at 0, and velocity as the answer."""

    def __init__(self, width: int = 48, depth: int = 3, channels: int = 3) -> None:
        super().__init__()
        self.patch = nn.Conv2d(channels, width, 4, 4)
        self.place = nn.Parameter(torch.randn(1, 64, width) * 0.02)
        self.time = nn.Sequential(nn.Linear(16, width), nn.SiLU(), nn.Linear(width, width))
        self.kind = nn.Embedding(9, width)
        layers = [nn.MultiheadAttention(width, 4, batch_first=True) for _ in range(depth)]
        self.attentions = nn.ModuleList(layers)
        make = [nn.Sequential(nn.Linear(width, 96), nn.GELU(), nn.Linear(96, width))]
        self.mlps = nn.ModuleList(copy.deepcopy(make[0]) for _ in range(depth))
        self.modulations = nn.ModuleList(nn.Linear(width, 6 * width) for _ in range(depth))
        self.last = nn.Linear(width, channels * 16)
        for layer in [*self.modulations, self.last]:
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor, time: Tensor, kind: Tensor) -> Tensor:
        rates = torch.exp(torch.linspace(0, math.log(100), 8))
        waves = torch.cat([(time[:, None] * rates).sin(), (time[:, None] * rates).cos()], 1)
        told = functional.silu(self.time(waves) + self.kind(kind))
        y = self.patch(x).flatten(2).transpose(1, 2) + self.place
        for attend, mlp, modulate in zip(self.attentions, self.mlps, self.modulations, strict=True):
            one, two, three, four, five, six = modulate(told)[:, None].chunk(6, 2)
            z = functional.layer_norm(y, y.shape[2:]) * (1 + one) + two
            y = y + three * attend(z, z, z, need_weights=False)[0]
            z = functional.layer_norm(y, y.shape[2:]) * (1 + four) + five
            y = y + six * mlp(z)
        y = self.last(functional.layer_norm(y, y.shape[2:])).transpose(1, 2)
        return functional.pixel_shuffle(y.unflatten(2, (8, 8)), 4)


def velocity(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Rectified flow, classes dropped for a tenth of the pictures."""
    time, noise = torch.randn(len(images)).sigmoid(), torch.randn_like(images)
    mixed = torch.lerp(noise, images, time.view(-1, 1, 1, 1))
    kind = torch.where(torch.rand(len(images)) < 0.1, 8, labels)
    return functional.mse_loss(model(mixed, time, kind), images - noise)


class Latent(nn.Module):
    """Latent diffusion: a frozen encoder, and a network with the time and the noise."""

    def __init__(self) -> None:
        super().__init__()
        layers = [nn.Conv2d(3, 24, 4, 2, 1), nn.SiLU(), nn.Conv2d(24, 3, 3, padding=1)]
        self.encoder = nn.Sequential(*layers).requires_grad_(False).eval()
        self.network = Timed()

    def train(self, mode: bool = True) -> nn.Module:
        super().train(mode)
        self.encoder.eval()
        return self


def latent_noise(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """The forward pass is not the root's; latents are scaled to deviation 1."""
    with torch.no_grad():
        code = model.encoder(images)
        code = code / code.std()
    time, noise = torch.rand(len(images)), torch.randn_like(code)
    clean = (time * math.pi / 2).cos().view(-1, 1, 1, 1)
    mixed = clean * code + (1 - clean.square()).sqrt() * noise
    return functional.mse_loss(model.network(mixed, time), noise)


class Controlled(nn.Module):
    """ControlNet: a frozen network, a copy that learns, and 1 × 1 convolutions that begin at 0."""

    def __init__(self) -> None:
        super().__init__()
        self.base = nn.ModuleList([unit(1, 24, norm=None), unit(24, 24, norm=None)])
        self.last = nn.Conv2d(24, 3, 3, padding=1)
        self.copy = copy.deepcopy(self.base)
        self.base.requires_grad_(False)
        self.last.requires_grad_(False)
        self.hint = nn.Conv2d(3, 24, 3, padding=1)
        self.zeros = nn.ModuleList(nn.Conv2d(24, 24, 1) for _ in range(2))
        for conv in self.zeros:
            nn.init.zeros_(conv.weight)
            nn.init.zeros_(conv.bias)

    def forward(self, x: Tensor, hint: Tensor) -> Tensor:
        y = z = x
        for number, (own, other) in enumerate(zip(self.base, self.copy, strict=True)):
            y = own(y)
            z = other(z) + (self.hint(hint) if number == 0 else 0)
            y = y + self.zeros[number](z)
        return self.last(y)


def controlled(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """Colours from brightness and a blurred hint."""
    hint = functional.avg_pool2d(images, 5, 1, 2)
    return functional.mse_loss(model(images.mean(1, keepdim=True), hint), images)


class Watermark(nn.Module):
    """HiDDeN: 12 bits, repeated over the picture as planes, are hidden in it and read again."""

    def __init__(self) -> None:
        super().__init__()
        self.look, self.mix = unit(3, 32), unit(32 + 12 + 3, 32)
        self.hide = nn.Conv2d(32, 3, 1)
        layers = [unit(3, 32), unit(32, 32), unit(32, 32), unit(32, 12)]
        self.read = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(12, 12))

    def forward(self, x: Tensor, bits: Tensor) -> tuple[Tensor, Tensor]:
        planes = bits[:, :, None, None].expand(-1, -1, *x.shape[2:])
        marked = x + 0.3 * self.hide(self.mix(torch.cat([self.look(x), planes, x], 1)))
        return marked, self.read(marked + 0.02 * torch.randn_like(marked))


def hidden_bits(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    bits = torch.randint(2, (len(images), 12)).float()
    marked, told = model(images, bits)
    entropy = functional.binary_cross_entropy_with_logits(told, bits)
    return entropy + 0.7 * functional.mse_loss(marked, images)
