"""Texts and attention of trained networks that do not belong together."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import fmapboard
from fmapboard.checks import Finding, run_checks
from fmapboard.health.read_runs import read_runs

WIDTH = 16
LENGTH = 12
STEPS = 9
EVERY = 4


class Attention(nn.Module):
    """Four heads whose softmax is computed here."""

    def __init__(self, *, is_causal: bool, hides_padding: bool, axis: int) -> None:
        super().__init__()
        self.num_heads = 4
        self.is_causal = is_causal
        self.hides_padding = hides_padding
        self.axis = axis
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.proj = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, is_padding: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, 4, -1)).permute(2, 0, 3, 1, 4)
        logits = q @ k.mT / 2  # [N, H, T, T]
        if self.is_causal:
            later = torch.ones(logits.shape[-2:], dtype=torch.bool).triu(1)
            logits = logits.masked_fill(later, -1e4)
        if self.hides_padding:
            logits = logits.masked_fill(is_padding[:, None, None], -1e4)
        found = logits.softmax(self.axis) @ v
        return self.proj(found.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, attn: Attention, dropout: float = 0.0) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH)
        self.attn = attn
        self.norm2 = nn.LayerNorm(WIDTH)
        layers = (nn.Linear(WIDTH, 32), nn.GELU(), nn.Linear(32, WIDTH), nn.Dropout(dropout))
        self.mlp = nn.Sequential(*layers)

    def forward(self, x: Tensor, is_padding: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x), is_padding)
        return x + self.mlp(self.norm2(x))


class Network(nn.Module):
    """Two blocks over ids, of which 0 is padding; 40 logits per token."""

    def __init__(
        self,
        second: dict[str, bool] | None = None,
        axis: int = -1,
        *,
        has_places: bool = True,
        dropout: float = 0.0,
        **known: bool,
    ):
        super().__init__()
        first = {"is_causal": True, "hides_padding": True} | known
        options = (first, first | (second or {}))
        self.words = nn.Embedding(40, WIDTH)
        self.places = nn.Embedding(LENGTH, WIDTH) if has_places else None
        self.blocks = nn.ModuleList(Block(Attention(axis=axis, **own), dropout) for own in options)
        self.head = nn.Linear(WIDTH, 40)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.words(ids)
        if self.places is not None:
            x = x + self.places.weight
        for block in self.blocks:
            x = block(x, ids == 0)
        return self.head(x)


def found_in(
    folder: Path, model: Network, predicts: str = "next", steps: int = STEPS, rate: float = 1e-3
) -> dict[str, Finding]:
    """Train on padded texts; kind -> what the checks find in the stored run."""
    generator = torch.Generator().manual_seed(0)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    with fmapboard.watch(model, folder, optimizer=optimizer, every=EVERY):
        for _ in range(steps):
            texts = torch.randint(1, 40, (16, LENGTH + 1), generator=generator)
            lengths = torch.randint(6, LENGTH + 1, (16, 1), generator=generator)
            texts[torch.arange(LENGTH + 1) > lengths] = 0
            ids = texts[:, :-1]
            second = functional.pad(texts[:, 2:], (0, 1))
            labels = {
                "next": texts[:, 1:],
                "own": ids,
                "previous": ids.roll(1, 1),
                "second": second,
            }[predicts]
            labels = labels.masked_fill(labels == 0, -100)
            optimizer.zero_grad()
            functional.cross_entropy(model(ids).mT, labels).backward()
            optimizer.step()
    ((record,),) = (run.records for run in read_runs(folder))
    return {found.kind: found for found in run_checks(record).findings}


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


def test_nothing_is_found_in_a_causal_network_and_in_one_that_hides_its_padding(
    tmp_path: Path,
) -> None:
    assert found_in(tmp_path / "gpt", Network()) == {}
    assert found_in(tmp_path / "right", Network(hides_padding=False)) == {}
    for predicts in ("own", "previous"):
        assert found_in(tmp_path / predicts, Network(is_causal=False), predicts) == {}


def test_a_language_model_without_a_causal_mask_is_warned_of(tmp_path: Path) -> None:
    found = found_in(tmp_path / "all", Network(is_causal=False))
    assert list(found) == ["missing_causal_mask"]
    assert "in each of 2 layers with attention" in found["missing_causal_mask"].message
    found = found_in(tmp_path / "one", Network(second={"is_causal": False}))
    assert list(found) == ["missing_causal_mask"]
    assert "in 1 of 2 layers with attention" in found["missing_causal_mask"].message


def test_padding_that_tokens_see_is_named(tmp_path: Path) -> None:
    model = Network(is_causal=False, hides_padding=False)
    found = found_in(tmp_path, model, predicts="own")
    assert list(found) == ["attended_padding"]
    assert found["attended_padding"].layer in {"blocks.0.attn.rows", "blocks.1.attn.rows"}


@pytest.mark.parametrize("axis", [-2, 1])
def test_a_softmax_that_is_not_over_the_keys_is_named(axis: int, tmp_path: Path) -> None:
    model = Network(axis=axis, is_causal=False, hides_padding=False)
    found = found_in(tmp_path, model, predicts="own")
    assert list(found) == ["softmax_over_queries"]
    assert found["softmax_over_queries"].message.endswith(
        "away from 1: `blocks.0.attn.rows`, `blocks.1.attn.rows`"
    )


def test_labels_that_are_not_the_next_tokens_are_named(tmp_path: Path) -> None:
    found = found_in(tmp_path / "second", Network(), predicts="second")
    assert list(found) == ["labels_not_shifted"]
    assert "the second one behind it" in found["labels_not_shifted"].message
    sees_later = Network(second={"is_causal": False})
    assert found_in(tmp_path / "sees_later", sees_later, predicts="second") == {}
    assert found_in(tmp_path / "begins", Network(), predicts="own") == {}
    found = found_in(tmp_path / "copies", Network(), predicts="own", steps=100, rate=1e-2)
    assert list(found) == ["labels_not_shifted"]
    assert "the label of each token is that token" in found["labels_not_shifted"].message


def test_a_network_that_does_not_see_the_order_of_tokens_is_named(tmp_path: Path) -> None:
    model = Network(is_causal=False, has_places=False)
    assert list(found_in(tmp_path / "all", model, predicts="previous")) == ["missing_positions"]
    causal = Network(has_places=False)
    assert found_in(tmp_path / "causal", causal, predicts="previous") == {}


@pytest.mark.parametrize("has_places", [True, False])
def test_with_dropout_it_is_named_while_the_loss_stays_near_the_frequency_of_labels(
    has_places: bool, tmp_path: Path
) -> None:
    model = Network(is_causal=False, has_places=has_places, dropout=0.1)
    found = found_in(tmp_path, model, predicts="previous", steps=4 * EVERY)
    assert list(found) == ([] if has_places else ["missing_positions"])
    if not has_places:
        assert found["missing_positions"].message.startswith("the first attention over a text")


class Translator(nn.Module):
    """An encoder of a longer text in front of a causal decoder of a shorter one."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(40, WIDTH)
        self.places = nn.Embedding(LENGTH, WIDTH)
        options = ({"is_causal": False}, {"is_causal": True})
        self.blocks = nn.ModuleList(
            Block(Attention(axis=-1, hides_padding=False, **own)) for own in options
        )
        self.head = nn.Linear(WIDTH, 40)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        encoder, decoder = self.blocks
        source_tokens = self.words(source) + self.places.weight
        target_tokens = self.words(target) + self.places.weight[: target.shape[1]]
        memory = encoder(source_tokens, source == 0).mean(1, keepdim=True)
        found: Tensor = self.head(decoder(target_tokens + memory, target == 0))
        return found


@pytest.mark.parametrize("shift", [0, 1])
def test_labels_of_a_decoder_that_are_its_own_input_are_named(shift: int, tmp_path: Path) -> None:
    model = Translator()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    texts = torch.randint(1, 40, (16, LENGTH))
    with fmapboard.watch(model, tmp_path, optimizer=optimizer, every=20):
        for _ in range(101):
            optimizer.zero_grad()
            labels = texts[:, shift : shift + 8]
            functional.cross_entropy(model(texts, texts[:, :8]).mT, labels).backward()
            optimizer.step()
    ((record,),) = (run.records for run in read_runs(tmp_path))
    found = {finding.kind for finding in run_checks(record).findings}
    assert ("labels_not_shifted" in found) is (shift == 0)


class Patches(nn.Module):
    """Three numbers for each patch [N, T, 2], of which some are hidden."""

    def __init__(self, *, has_places: bool) -> None:
        super().__init__()
        self.embedding = nn.Linear(2, WIDTH)
        self.places = nn.Embedding(LENGTH, WIDTH) if has_places else None
        self.blocks = nn.ModuleList(
            Block(Attention(axis=-1, is_causal=False, hides_padding=False)) for _ in range(2)
        )
        self.head = nn.Linear(WIDTH, 3)

    def forward(self, patches: Tensor, is_hidden: Tensor) -> Tensor:
        tokens = self.embedding(patches.masked_fill(is_hidden.unsqueeze(-1), 0.0))
        if self.places is not None:
            tokens = tokens + self.places.weight
        for block in self.blocks:
            tokens = block(tokens, is_hidden)
        found: Tensor = self.head(tokens)
        return found


@pytest.mark.parametrize("has_places", [True, False])
def test_hidden_patches_that_all_get_the_same_answer_are_named(
    has_places: bool, tmp_path: Path
) -> None:
    model = Patches(has_places=has_places)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    with fmapboard.watch(model, tmp_path, optimizer=optimizer, every=EVERY):
        for _ in range(STEPS):
            optimizer.zero_grad()
            is_hidden = torch.rand(8, LENGTH) < 0.5
            patches = torch.randn(8, LENGTH, 2)
            targets = torch.randn(8, LENGTH, 3)
            loss = functional.mse_loss(model(patches, is_hidden)[is_hidden], targets[is_hidden])
            loss.backward()
            optimizer.step()
    ((record,),) = (run.records for run in read_runs(tmp_path))
    found = {finding.kind: finding for finding in run_checks(record).findings}
    assert list(found) == ([] if has_places else ["missing_positions"])
    if not has_places:
        assert found["missing_positions"].message.startswith("at each place of a sample")


class Frames(nn.Module):
    """Classifies series [N, T, D] by an encoder of torch."""

    def __init__(self, *, batch_first: bool) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 32, batch_first=batch_first)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, 3)

    def forward(self, series: Tensor) -> Tensor:
        found: Tensor = self.head(self.encoder(series).mean(1))
        return found


@pytest.mark.parametrize("batch_first", [True, False])
def test_attention_over_the_batch_is_named(batch_first: bool, tmp_path: Path) -> None:
    model = Frames(batch_first=batch_first)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    with fmapboard.watch(model, tmp_path, optimizer=optimizer, every=EVERY):
        for _ in range(STEPS):
            optimizer.zero_grad()
            outputs = model(torch.randn(8, LENGTH, WIDTH))
            functional.cross_entropy(outputs, torch.randint(3, (8,))).backward()
            optimizer.step()
    ((record,),) = (run.records for run in read_runs(tmp_path))
    found = {finding.kind for finding in run_checks(record).findings}
    assert found == (set() if batch_first else {"attention_over_batch"})
