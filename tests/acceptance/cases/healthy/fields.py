"""Healthy: functions of place and time: physics, pictures and scenes as networks."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import data
import losses
import optimizers as o
import torch
from data import changed
from draws.tables import PLANE, noise
from loops import seen
from losses import error, rolled
from nets.classifiers import Function
from nets.maps import perceptron
from nets.parts import Net, changed_weights, glorot, mlp
from recipes import FIT, LONG, LONGER, one
from torch import Generator, Tensor, nn, optim
from torch.nn import functional

SPIN = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])

WAVES = 6 * torch.randn(2, 32, generator=Generator().manual_seed(6))


def raster(*_: Any) -> tuple[Tensor, ...]:
    """Each pixel of one photograph: where it is and its colour."""
    along, picture = torch.linspace(-1, 1, 32), losses.one_picture(data.CROPS)[0]
    return torch.cartesian_prod(along, along), picture.flatten(1).T


def slope(y: Tensor, x: Tensor) -> Tensor:
    return torch.autograd.grad(y.sum(), x, create_graph=True)[0]


FLAT = changed(noise(1), lambda x: (5 * x).requires_grad_())


def burgers(m: nn.Module, inside: Tensor, x: Tensor, u: Tensor) -> Tensor:
    z = inside.clone().requires_grad_()
    y = m(z)
    d = torch.autograd.grad(y.sum(), z, create_graph=True)[0]
    bent = torch.autograd.grad(d[:, 0].sum(), z, create_graph=True)[0][:, :1]
    return (d[:, 1:] + y * d[:, :1] - 0.01 / 3.1416 * bent).square().mean() + error(m, x, u)


def edge_of_time(g: Generator, n: int) -> tuple[Tensor, ...]:
    inside, x = torch.rand(n, 2, generator=g), torch.rand(100, 2, generator=g)
    x[:50, 1], x[50:75, 0], x[75:, 0] = 0, 0, 1
    x, inside = (z * torch.tensor([2.0, 1.0]) - torch.tensor([1.0, 0.0]) for z in (x, inside))
    return inside, x, -(3.1416 * x[:, :1]).sin() * (x[:, 1:] == 0)


CASES = [
    *seen(
        "2026-11-28T03:00",
        one(
            "oscillator",
            partial(mlp, 1, 32, 32, 32, 1, act=nn.Tanh),
            FLAT,
            lambda m, t, _: (
                (slope(d := slope(u := m(t), t), t) + 0.4 * d + 4 * u).square().mean()
                + 4 * (m(z := torch.zeros(1, 1, requires_grad=True)) - 1).square().sum()
                + slope(m(z), z).square().sum()
            ),
            FIT(3e-3, batch=64, **LONGER),
            "PINN",
        ),
        one(
            "neural_ode",
            partial(mlp, 2, 50, 2, act=nn.Tanh),
            PLANE,
            lambda m, x, _: (
                (rolled(lambda y: m(y**3), x) - rolled(lambda y: y**3 @ SPIN, x)).abs().mean()
            ),
            FIT(1e-3, kind=optim.RMSprop),
            "neural ODE",
        ),
        one(
            "hamiltonian",
            partial(mlp, 2, 64, 64, 1, act=nn.Tanh),
            PLANE,
            lambda m, x, _: (
                (
                    slope(m(x), x).flip(1) * x.new([1, -1])
                    - torch.stack([x[:, 1], -3 * x[:, 0].sin()], 1)
                )
                .square()
                .mean()
            ),
            FIT(2e-3, batch=64),
            "Hamiltonian network",
        ),
        one(
            "siren",
            lambda: nn.Sequential(
                *(
                    layer
                    for a, b, w in ((2, 64, 0.5), (64, 64, 0.01), (64, 64, 0.01), (64, 3, 0.01))
                    for layer in (
                        changed_weights(nn.Linear(a, b), lambda p, w=w: p.uniform_(-w, w)),
                        Function(lambda x: (30 * x).sin()),
                    )
                )
            )[:-1],
            raster,
            error,
            FIT(1e-4, **LONGER),
            "SIREN",
        ),
        one(
            "features",
            lambda: nn.Sequential(
                Function(lambda x: torch.cat([(z := x @ WAVES).sin(), z.cos()], 1)),
                mlp(64, 64, 64, 3),
            ),
            raster,
            error,
            FIT(1e-3),
            "Fourier features",
        ),
    ),
    *seen(
        "2026-11-28T12:40",
        one(
            "deep_o_net",
            lambda: changed_weights(
                nn.ModuleDict(
                    {"branch": mlp(50, 40, 40), "trunk": nn.Sequential(mlp(1, 40, 40), nn.ReLU())}
                ),
                lambda p: nn.init.xavier_normal_(p) if p.ndim > 1 else p.zero_(),
            ),
            lambda g, n: (
                c := torch.randn(n, 4, generator=g),
                k := math.pi * torch.arange(1, 5),
                y := torch.rand(n, 1, generator=g),
                c @ (k[:, None] * torch.linspace(0, 1, 50)).cos(),
                (c * (k * y).sin() / k).sum(1),
            )[2:],
            lambda m, y, u, z: ((m["branch"](u) * m["trunk"](y)).sum(1) - z).square().mean(),
            FIT(1e-3, batch=512, **LONG),
            "DeepONet",
        ),
    ),
    *seen(
        "2026-11-28T14:55",
        one(
            "hash_grid",
            lambda: Net(
                lambda m, x: m["net"](
                    torch.cat(
                        [
                            functional.grid_sample(g, x[None, None], align_corners=True)[0, :, 0].T
                            for g in m["grid"]
                        ],
                        1,
                    )
                ),
                grid=nn.ParameterList(
                    [(torch.rand(1, 2, k, k) - 0.5) * 2e-4 for k in (4, 7, 12, 20)]
                ),
                net=mlp(8, 64, 64, 3),
            ),
            raster,
            lambda m, x, y: functional.mse_loss(m(x), y),
            FIT(0.01, betas=(0.9, 0.99), eps=1e-15),
            "Instant NGP, picture",
        ),
    ),
    *seen(
        "2026-11-28T15:30",
        one(
            "nerf",
            lambda: perceptron(39, 96, 96, 96, 4),
            data.rays,
            lambda m, p, y: (
                k := p[..., None] * 2.0 ** torch.arange(6) * 3.14,
                z := m(torch.cat([p, k.sin().flatten(2), k.cos().flatten(2)], 2)),
                a := 1 - (-z[..., 3].relu() / 4).exp(),
                w := a
                * torch.cat([torch.ones_like(a[:, :1]), (1 - a + 1e-10).cumprod(1)[:, :-1]], 1),
                functional.mse_loss((w[..., None] * z[..., :3].sigmoid()).sum(1), y),
            )[4],
            FIT(5e-4, o.fading, batch=512),
            "NeRF",
        ),
    ),
    *seen(
        "2026-11-28T16:05",
        one(
            "burgers",
            lambda: glorot(mlp(2, 20, 20, 20, 20, 1, act=nn.Tanh)),
            edge_of_time,
            burgers,
            FIT(2e-3, o.fading, batch=256, **LONG),
            "PINN, Burgers",
        ),
    ),
]
