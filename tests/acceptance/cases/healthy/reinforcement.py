"""Healthy: values, policies and imitation."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import data
import optimizers as o
import torch
from draws.tables import PLANE, numbers
from loops import Losses, descend, own_loop, seen, train
from losses import CE, rolled
from nets import library
from nets.images import agent
from nets.parts import Net, mlp
from recipes import FIT, LONG, LONGER, one
from torch import Generator, nn, optim
from torch.nn import functional


def q_learning(place: Path, seed: int) -> Losses:
    """DQN on catching a ball: a replay memory, a target that is copied each 20 steps."""
    model, target = agent(3), agent(3).requires_grad_(False)
    optimizer = optim.Adam(model.parameters(), 1e-3)
    frames, best = data.catch(Generator().manual_seed(seed + 5), 2000)
    after, _ = data.catch(Generator().manual_seed(seed + 6), 2000)
    moves = torch.randint(3, (2000,))
    reward = (moves == best.long()).float() - 0.5

    def step(number: int, random: Generator) -> float:
        if number % 20 == 0:
            target.load_state_dict(model.state_dict())
        rows = torch.randint(2000, (64,), generator=random)
        goal = reward[rows] + 0.5 * target(after[rows]).amax(1)
        found = model(frames[rows]).gather(1, moves[rows, None])[:, 0]
        return descend(optimizer, functional.smooth_l1_loss(found, goal))

    return train(place, seed, model, step, 240, 20, optimizer)


def actor_critic(place: Path, seed: int) -> Losses:
    """A2C of one step, with a bonus for entropy; the share of wrong moves."""
    model = agent(4)
    optimizer = optim.RMSprop(model.parameters(), 7e-4, alpha=0.99, eps=1e-5)

    def step(_: int, random: Generator) -> float:
        frames, best = data.catch(random, 64)
        logits, value = model(frames).split([3, 1], 1)
        policy = torch.distributions.Categorical(logits=logits)
        moves = policy.sample()
        gain = (moves == best.long()).float() - value[:, 0]
        loss = 0.5 * gain.square() - policy.log_prob(moves) * gain.detach()
        descend(optimizer, (loss - 0.01 * policy.entropy()).mean())
        return (moves != best.long()).float().mean().item()

    return train(place, seed, model, step, 200, 20, optimizer)


CASES = [
    *seen(
        "2026-11-27T11:30",
        own_loop("q_learning", "DQN's network", "a target network", q_learning, 240, 20),
        own_loop("actor_critic", "policy and value", "A2C", actor_critic, 200, 20),
    ),
    *seen(
        "2026-11-28T03:00",
        one(
            "pendulum",
            partial(mlp, 2, 32, 32, 1, act=nn.Tanh),
            PLANE,
            lambda m, x, _: (
                rolled(lambda y: torch.cat([y[:, 1:], 3 * y[:, :1].sin() + 5 * m(y).tanh()], 1), x)
                .square()
                .mean()
            ),
            FIT(2e-3, batch=32),
            "policy, through a simulator",
        ),
        one(
            "cloned",
            partial(agent, 3),
            data.catch,
            lambda m, x, y: CE(m, x, y.long()),
            FIT(2e-3, batch=32, **LONGER),
            "behaviour cloning",
        ),
    ),
    *seen(
        "2026-11-28T10:00",
        one(
            "quantile_q",
            partial(agent, 63),
            data.catch,
            lambda m, x, y: (
                (
                    functional.huber_loss(
                        f := m(x).view(-1, 3, 21)[
                            torch.arange(len(x)), a := torch.randint(3, (len(x),))
                        ],
                        t := ((a == y) + 0.1 * torch.randn(len(x)))[:, None].expand(-1, 21),
                        reduction="none",
                    )
                    * ((torch.arange(21) + 0.5) / 21 - (t < f).float()).abs()
                )
                .sum(1)
                .mean()
            ),
            FIT(1e-3, eps=3e-4, batch=64, **LONG),
            "QR-DQN",
        ),
    ),
    *seen(
        "2026-11-28T11:40",
        one(
            "dynamics",
            lambda: Net(
                lambda m, x: (
                    (f := m["net"](x).chunk(2, 1))[0],
                    (low := m["at"][0])
                    + functional.softplus(
                        (high := m["at"][1]) - functional.softplus(high - f[1]) - low
                    ),
                    high - low,
                ),
                net=mlp(5, 64, 64, 64, 8, act=nn.SiLU),
                at=nn.ParameterList([torch.full((4,), -10.0), torch.full((4,), 0.5)]),
            ),
            numbers(
                5,
                lambda x: (
                    torch.cat([x[:, 2:4], x[:, :2].sin() * 1.3 + x[:, 4:]], 1)
                    + 0.1 * torch.randn(len(x), 4)
                ),
            ),
            lambda m, x, y: (
                ((f := m(x))[1] + (f[0] - y) ** 2 * (-f[1]).exp()).mean() + 0.01 * f[2].sum()
            ),
            FIT(1e-3, weight_decay=5e-5, batch=256, **LONG),
            "dynamics, as PETS",
        ),
    ),
    *seen(
        "2026-11-28T12:40",
        one(
            "decisions",
            partial(
                library.hf,
                "DecisionTransformerModel",
                state_dim=4,
                act_dim=2,
                hidden_size=48,
                n_layer=2,
                n_head=4,
                max_ep_len=32,
                activation_function="relu",
            ),
            lambda g, n: (
                s := torch.randn(n, 12, 4, generator=g),
                a := (s[..., :2] - s[..., 2:] / 2).tanh()
                + 0.1 * torch.randn(n, 12, 2, generator=g),
                -(a**2).sum(2, True),
            )[:3],
            lambda m, s, a, r: functional.mse_loss(
                m(
                    states=s,
                    actions=a,
                    rewards=r,
                    returns_to_go=r.flip(1).cumsum(1).flip(1) / 5,
                    timesteps=torch.arange(12).expand(len(s), -1),
                    attention_mask=torch.ones(len(s), 12),
                )[1],
                a,
            ),
            FIT(1e-3, o.ramp, kind=optim.AdamW, weight_decay=1e-4, clip=0.25, batch=32),
            "decision transformer",
        ),
    ),
]
