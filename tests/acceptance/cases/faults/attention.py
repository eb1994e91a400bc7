"""Faults: transformers with a mistake in attention, experts, or how they are trained."""

from __future__ import annotations

from functools import partial

import optimizers as o
import torch
from data import P
from draws.texts import docs, two_manuals
from loops import seen
from losses import CE
from nets import attention as a
from recipes import adam, bad
from torch import Generator, Tensor, nn, optim

DOCS = partial(docs, 32)
ADAMW = partial(o.by, optim.AdamW)


def shuffled(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Pieces of text, each in an order of its own."""
    x = DOCS(generator, count)[0]
    return (x.gather(1, torch.rand(x.shape, generator=generator).argsort(1)),)


def larger(model: nn.Module, factor: float, *words: str) -> nn.Module:
    """Weights whose name has one of the words in it, times a factor."""
    for name, parameter in model.named_parameters():
        if any(word in name for word in words) and parameter.dim() > 1:
            parameter.data *= factor
    return model


def off(model: nn.Module) -> nn.Module:
    """The biases in front of the activations far below 0."""
    for block in model.blocks:
        nn.init.constant_(block.mlp[0].bias, -20.0)
    return model


CASES = [
    *seen(
        "2026-11-29T13:55",
        bad(
            "no_places",
            "no_positions",
            "no positions, and shuffled tokens",
            "GPT",
            partial(a.language, places=False),
            shuffled,
            a.sent,
            adam(1e-3),
        ),
        bad(
            "unscaled",
            "dead_heads,attention_logits",
            "logits are not scaled, and weights of queries and keys 8 times too large",
            "GPT",
            lambda: larger(a.language(scale=1.0), 8.0, "qkv"),
            DOCS,
            a.sent,
            adam(1e-3),
        ),
        bad(
            "sees_later",
            "missing_causal_mask",
            "no causal mask",
            "GPT",
            a.Transformer,
            DOCS,
            a.sent,
            adam(1e-3),
        ),
        bad(
            "one_expert",
            "dead_experts",
            "no loss that balances the experts, and a router that begins uneven",
            "GPT, 8 experts",
            partial(a.mixed, bias=1.0),
            DOCS,
            a.sent,
            adam(2e-3),
        ),
        bad(
            "dead_mlp",
            "dead",
            "biases of -20 in front of ReLU",
            "ViT",
            lambda: off(a.Transformer(out=8, patch=4, act=nn.ReLU)),
            P,
            CE,
            adam(1e-3),
        ),
        bad(
            "one_hot",
            "dead_heads,attention_logits",
            "weights of queries and keys 30 times too large",
            "ViT",
            lambda: larger(a.Transformer(out=8, patch=4), 30.0, "qkv"),
            P,
            CE,
            adam(3e-4),
        ),
        bad(
            "tied_output",
            "initial_loss,large_activations",
            "an output tied to words 60 times too large",
            "GPT",
            lambda: larger(a.language(), 60.0, "first"),
            DOCS,
            a.sent,
            adam(1e-3),
        ),
        bad(
            "frozen_blocks",
            "unchanged_weights,not_in_optimizer,no_gradient",
            "the optimizer got the head only",
            "ViT",
            partial(a.Transformer, out=8, patch=4),
            P,
            CE,
            lambda m: optim.Adam(m.head.parameters(), lr=1e-3),
        ),
        bad(
            "hundredfold",
            "updates_too_large,exploding",
            "a hundredfold rate",
            "GPT",
            a.language,
            DOCS,
            a.sent,
            adam(0.1),
        ),
    ),
    *seen(
        "2026-11-29T14:40",
        bad(
            "post_norm_rate",
            "updates_too_large,exploding",
            "post-norm without warm-up at a large rate",
            "GPT, post-norm",
            partial(a.language, norm="post", depth=6),
            DOCS,
            a.sent,
            adam(2e-2),
        ),
        bad(
            "half_logits",
            "nonfinite",
            "logits in float16 of large queries and keys",
            "GPT",
            lambda: larger(a.language(dtype=torch.float16), 40.0, "qkv"),
            DOCS,
            a.sent,
            adam(1e-3),
        ),
        bad(
            "queries_in_sum",
            "softmax_over_queries",
            "softmax over the queries",
            "ViT",
            partial(a.Transformer, out=8, patch=4, axis=-2),
            P,
            CE,
            adam(1e-3),
        ),
        bad(
            "unmasked_padding",
            "attended_padding",
            "attention sees the padding",
            "classifier of padded texts",
            partial(a.Transformer, out=2),
            two_manuals,
            CE,
            adam(1e-3),
        ),
    ),
]
