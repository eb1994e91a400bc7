"""A small transformer whose attention can be spoilt, and others that train only in part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from nets import library
from nets.parts import Net
from torch import Tensor, nn
from torch.nn import functional

KINDS = 128
"""Different tokens."""


class Attention(nn.Module):
    """Self-attention that computes its softmax itself.

    Args:
        width: of the tokens.
        heads: number of heads.
        order: which keys a query sees: "all", those "before" it and itself, or those "behind" it.
        scale: the logits are multiplied by it; None for the usual one.
        axis: of the softmax.
        dtype: of the logits.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        order: str = "all",
        scale: float | None = None,
        axis: int = -1,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        self.num_heads, self.order, self.axis, self.dtype = heads, order, axis, dtype
        self.scale = (width // heads) ** -0.5 if scale is None else scale
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor, hidden: Tensor | None = None) -> Tensor:
        """``hidden`` [N, T] is True where a key is padding."""
        parts = self.qkv(x).unflatten(-1, (3, self.num_heads, -1))  # [N, T, 3, H, D]
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        logits = (q.to(self.dtype) * self.scale) @ k.to(self.dtype).mT
        length = x.shape[1]
        if self.order != "all":
            later = torch.ones(length, length, dtype=torch.bool).triu(1)
            logits = logits.masked_fill(later if self.order == "before" else later.mT, -1e4)
        if hidden is not None:
            logits = logits.masked_fill(hidden[:, None, None], -1e4)
        found = logits.softmax(self.axis).to(v.dtype) @ v
        return self.proj(found.transpose(1, 2).flatten(2))


class Block(nn.Module):
    """Attention and an MLP; their norms stand in front of them, or behind ("post")."""

    def __init__(
        self, width: int, heads: int, norm: str, act: Callable[[], nn.Module], **how: Any
    ) -> None:
        super().__init__()
        self.is_post = norm == "post"
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = Attention(width, heads, **how)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), act(), nn.Linear(2 * width, width))

    def forward(self, x: Tensor, hidden: Tensor | None = None) -> Tensor:
        if self.is_post:
            x = self.norm1(x + self.attn(x, hidden))
            return self.norm2(x + self.mlp(x))
        x = x + self.attn(self.norm1(x), hidden)
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    """Blocks over tokens, or over the patches of images.

    Args:
        depth: number of blocks.
        norm: "pre" or "post".
        out: number of classes; 0 for the next token, with tied weights.
        patch: side of the patches of images; 0 for tokens.
        places: learn where a token stands.
        act: activation of the MLPs.
        padding: number of the token that is none; it is hidden from attention.
        how: options of `Attention`.
    """

    def __init__(
        self,
        depth: int = 2,
        norm: str = "pre",
        out: int = 0,
        patch: int = 0,
        places: bool = True,
        act: Callable[[], nn.Module] = nn.GELU,
        padding: int | None = None,
        width: int = 48,
        **how: Any,
    ) -> None:
        super().__init__()
        self.padding, self.out = padding, out
        first = nn.Embedding(KINDS, width)
        self.first = nn.Conv2d(3, width, patch, patch) if patch else first
        self.place = nn.Parameter(0.02 * torch.randn(64, width)) if places else None
        self.blocks = nn.ModuleList(Block(width, 4, norm, act, **how) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, out or KINDS, bias=bool(out))
        if not patch:
            nn.init.normal_(self.first.weight, std=0.02)
            if not out:
                self.head.weight = self.first.weight

    def forward(self, x: Tensor) -> Tensor:
        hidden = None if self.padding is None else x == self.padding
        x = self.first(x)
        if x.dim() == 4:
            x = x.flatten(2).mT
        if self.place is not None:
            x = x + self.place[: x.shape[1]]
        for block in self.blocks:
            x = block(x, hidden)
        x = self.norm(x)
        return self.head(x.mean(1) if self.out else x)


def language(**how: Any) -> nn.Module:
    """A GPT."""
    return Transformer(order="before", **how)


def sent(model: nn.Module, x: Tensor, y: Tensor | None = None) -> Tensor:
    """Cross-entropy of the next token, or of the given ones."""
    given, asked = (x[:, :-1], x[:, 1:]) if y is None else (x, y)
    return functional.cross_entropy(model(given).mT.float(), asked, ignore_index=-100)


def frozen(model: nn.Module, *trained: str) -> nn.Module:
    """Only the parameters whose name has one of these words in it are trained."""
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(any(word in name for word in trained))
    return model


class Mixture(nn.Module):
    """An MLP of experts; each token goes to ``top_k`` of them."""

    def __init__(self, width: int, experts: int = 8, top_k: int = 2, bias: float = 0.0) -> None:
        super().__init__()
        self.top_k = top_k
        self.gate = nn.Linear(width, experts, bias=bool(bias))
        if bias:
            with torch.no_grad():
                self.gate.bias.copy_(bias * torch.arange(experts))
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width))
            for _ in range(experts)
        )
        self.balance: Tensor | float = 0.0

    def forward(self, x: Tensor) -> Tensor:
        scores = self.gate(x).softmax(-1)
        chosen = scores.topk(self.top_k, -1)
        share = torch.zeros_like(scores).scatter(-1, chosen.indices, chosen.values)
        load = (share > 0).float().mean((0, 1))
        self.balance = len(self.experts) * (load * scores.mean((0, 1))).sum() / self.top_k
        return sum(share[..., i : i + 1] * e(x) for i, e in enumerate(self.experts))


def mixed(**how: Any) -> nn.Module:
    """A GPT with a mixture of experts in each block."""
    model = language()
    for block in model.blocks:
        block.mlp = Mixture(48, **how)
    return model


def balanced(model: nn.Module, x: Tensor) -> Tensor:
    """The next token, and an even load of the experts."""
    loss = sent(model, x)
    return loss + 0.02 * sum(block.mlp.balance for block in model.blocks)


def translator(**how: Any) -> nn.Module:
    """torch's encoder and decoder over tokens."""
    sizes = {"d_model": 48, "nhead": 4, "num_encoder_layers": 2, "num_decoder_layers": 2}
    sizes |= {"dim_feedforward": 96, "dropout": 0.0, "batch_first": True}
    return Net(
        lambda m, x, y: m["last"](
            m["body"](
                m["words"](x) + m["place"].weight[: x.shape[1]],
                m["words"](y) + m["place"].weight[: y.shape[1]],
                tgt_mask=nn.Transformer.generate_square_subsequent_mask(y.shape[1]),
                tgt_is_causal=True,
            )
        ),
        words=nn.Embedding(KINDS, 48),
        place=nn.Embedding(64, 48),
        body=nn.Transformer(**(sizes | how)),
        last=nn.Linear(48, KINDS),
    )


def turned(model: nn.Module, x: Tensor) -> Tensor:
    """The text backwards, by an encoder and a decoder."""
    y = x.flip(1)
    start = torch.cat([torch.zeros_like(y[:, :1]), y[:, :-1]], 1)
    return functional.cross_entropy(model(x, start).mT, y)


def copied(model: nn.Module, x: Tensor) -> Tensor:
    """Text twice; the second one is asked for."""
    x = torch.cat([x, x], 1)
    asked = x[:, 1:].clone()
    asked[:, : x.shape[1] // 2 - 1] = -100
    return sent(model, x[:, :-1], asked)


def hidden_words(model: nn.Module, x: Tensor) -> Tensor:
    """BERT's task: 15 % of the tokens are hidden, and asked for."""
    is_hidden = torch.rand(x.shape) < 0.15
    return model(x.masked_fill(is_hidden, KINDS - 1), labels=x.masked_fill(~is_hidden, -100)).loss


def lora(model: nn.Module, rank: int = 4) -> nn.Module:
    """Linear layers of attention are frozen, and get a trained product of two small ones."""
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    for module in list(model.modules()):
        for name, part in list(module.named_children()):
            if isinstance(part, nn.Linear) and name in ("qkv", "proj"):
                setattr(module, name, Lora(part, rank))
    model.get_classifier().requires_grad_(True)
    return model


class Lora(nn.Module):
    def __init__(self, whole: nn.Linear, rank: int) -> None:
        super().__init__()
        self.whole = whole
        self.down = nn.Linear(whole.in_features, rank, bias=False)
        self.up = nn.Linear(rank, whole.out_features, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x: Tensor) -> Tensor:
        return self.whole(x) + self.up(self.down(x))


def timm_vit(**how: Any) -> nn.Module:
    """timm's ViT without dropout."""
    return library.vit(**({"proj_drop_rate": 0.0} | how))
