"""Networks of words and letters."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from nets import library
from nets.parts import Net
from torch import Tensor, nn


def critic(out: int = 2, end: nn.Module | None = None) -> nn.Module:
    """A transformer over words, and the mean of its states."""
    layer = nn.TransformerEncoderLayer(48, 4, 96, 0.0, batch_first=True)
    place, body = nn.Embedding(24, 48), nn.TransformerEncoder(layer, 2)
    last = nn.Sequential(nn.Linear(48, out), end or nn.Identity())
    return Net(
        lambda m, x: m["last"](m["body"](m["words"](x) + m["place"].weight).mean(1)),
        words=nn.Embedding(200, 48),
        place=place,
        body=body,
        last=last,
    )


def bag() -> nn.Module:
    """fastText: the mean of the words, and two Linear layers."""
    return nn.Sequential(nn.EmbeddingBag(300, 32), nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 5))


def language(drop: float = 0.0) -> nn.Module:
    """An LSTM over letters, to and fro, and the mean of its states."""
    body = nn.LSTM(24, 32, 2, batch_first=True, bidirectional=True, dropout=drop)
    last = nn.Sequential(nn.Dropout(drop), nn.Linear(64, 32), nn.ReLU(), nn.Dropout(drop))
    return Net(
        lambda m, x: m["last"](m["body"](m["letters"](x))[0].mean(1)),
        body=body,
        letters=nn.Embedding(26, 24),
        last=last.append(nn.Linear(32, 5)),
    )


def reader(drop: float = 0.0, kinds: int = 128, out: int = 128, width: int = 64) -> nn.Module:
    body = nn.LSTM(width, width, 1 + (drop > 0), batch_first=True, dropout=drop)
    parts = {"words": nn.Embedding(kinds, width), "body": body, "last": nn.Linear(width, out)}
    return Net(lambda m, x: m["last"](m["body"](m["words"](x))[0]).mT, **parts)


GPT = {"n_embd": 64, "n_layer": 2, "n_head": 4, "bos_token_id": 0, "eos_token_id": 0}

TINY = library.BODY | {"vocab_size": 128, "max_position_embeddings": 40}

GROUPED = TINY | {"num_key_value_heads": 2, "head_dim": 12, "pad_token_id": 0}


def coder(width: int, drop: float = 0.0, **how: Any) -> nn.Module:
    layer = partial(nn.TransformerEncoderLayer, width, 4, 2 * width, drop, batch_first=True)
    return nn.TransformerEncoder(layer(**how), 2, enable_nested_tensor=False)


PAD = {"pad_token_id": 0}

SIZES = {"n_embd": 48, "n_layer": 2, "n_head": 4, "vocab_size": 128, "n_positions": 32}


def gpt() -> nn.Module:
    sizes = {"vocab_size": 128, "n_embd": 48, "n_layer": 2, "n_head": 4, "n_positions": 32}
    return library.Logits(library.hf("GPT2LMHeadModel", **sizes))


class TextNet(nn.Module):
    """Kim's convolutions over word vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(100, 24, padding_idx=0)
        self.convs = nn.ModuleList(nn.Conv1d(24, 16, size, padding=2) for size in (2, 3, 4))
        self.last = nn.Sequential(nn.Dropout(0.3), nn.Linear(48, 4))

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.words(tokens).transpose(1, 2)
        return self.last(torch.cat([conv(x).relu().amax(2) for conv in self.convs], 1))
