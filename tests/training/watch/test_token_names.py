"""Names of tokens are stored once per logged step, with the rows of attention over them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from attending_networks import WIDTH, Attention
from logged_step import log_pass
from tab_client import open_tab
from torch import Tensor, nn
from torch.nn import functional

import fmapboard
from fmapboard.capture import collector, passes
from fmapboard.errors import ConfigurationError
from fmapboard.formats.tab_records import unpack
from fmapboard.options import Options
from fmapboard.records import LoggedStep
from fmapboard.writers.folder import MemoryWriter

WORDS = ("the", "cat", "sat", "on", "mat")
IDS = torch.tensor([[0, 1, 2, 3], [3, 0, 4, 1], [1, 1, 1, 1]])
NAMES = [["the", "cat", "sat", "on"], ["on", "the", "mat", "cat"], ["cat"] * 4]


@pytest.fixture(autouse=True)
def as_in_a_process_without_torch_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once other tests have used it, attention is read in a pass of its own."""
    monkeypatch.setattr(passes, "is_compile_used", bool)


class TextNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(5, WIDTH)
        block = [nn.Sequential(Attention(functional.scaled_dot_product_attention)) for _ in "ab"]
        self.blocks = nn.ModuleList(block)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        x = self.embedding(input_ids)
        for block in self.blocks:
            x = x + block(x)
        return x


def words(ids: list[int]) -> list[str]:
    return [WORDS[number] for number in ids]


def headers(step: LoggedStep) -> dict[str, Any]:
    """Label -> header of the records of rows of attention."""
    found = {}
    for record in step.records:
        if record.tag.startswith("fmapboard/"):
            header = unpack(record.blobs)[0]
            if header.get("unit") == "head":
                found[header["layer"]] = header
    return found


def test_the_first_record_has_the_names_of_the_drawn_texts_and_the_others_say_which_it_is() -> None:
    first, *others = headers(log_pass(TextNet(), IDS, samples=2, tokens=words)).values()
    assert first["tokens"] == NAMES[:2]
    assert "tokens_of" not in first
    assert first["layer"] == "blocks.0.0.rows"
    assert len(others) == 3
    for other in others:
        assert other["tokens_of"] == "blocks.0.0.rows"
        assert "tokens" not in other


def test_without_the_option_nothing_is_copied_or_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    copied = []
    monkeypatch.setattr(collector, "drawn_texts", lambda *given: copied.append(given) or [])
    step = log_pass(TextNet(), IDS)
    assert copied == []
    assert len(headers(step)) == 4
    assert not any({"tokens", "tokens_of"} & set(header) for header in headers(step).values())


def test_of_a_probe_its_own_texts_are_named() -> None:
    first, *_ = headers(log_pass(TextNet(), IDS, probe=IDS[2:], tokens=words)).values()
    assert first["tokens"] == NAMES[2:]


def test_a_mask_before_the_ids_is_no_text() -> None:
    kept = MemoryWriter()
    model = TextNet()
    with fmapboard.watch(model, writer=kept, tokens=words) as board, board.step(0):
        model(attention_mask=torch.ones_like(IDS), input_ids=IDS)
    first, *_ = headers(kept.steps[0]).values()
    assert first["tokens"] == NAMES[:1]


def test_a_tokenizer_of_transformers_names_tokens_by_itself() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    transformers = pytest.importorskip("transformers")
    vocabulary = {word: number for number, word in enumerate(WORDS)}
    model = tokenizers.models.WordLevel(vocabulary, unk_token="the")
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizers.Tokenizer(model))
    first, *_ = headers(log_pass(TextNet(), IDS, tokens=tokenizer)).values()
    assert first["tokens"] == NAMES[:1]


def fails(ids: list[int]) -> list[str]:
    raise LookupError(f"no token {ids[0]}")


@pytest.mark.usefixtures("errors_are_only_logged")
@pytest.mark.parametrize(
    ("naming", "said"),
    [
        (fails, "LookupError: no token 0"),
        (
            lambda ids: ["a"],
            "ConfigurationError: tokens= returned a list of 1 (str) for 4 ids: expected a list of "
            "4 strings",
        ),
        (
            lambda ids: "text",
            "ConfigurationError: tokens= returned a str for 4 ids: expected a list of 4 strings",
        ),
    ],
)
def test_an_error_in_the_users_function_is_said_once_and_the_run_goes_on(
    naming: Callable[[list[int]], Any], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    model, kept = TextNet(), MemoryWriter()
    with (
        caplog.at_level(logging.WARNING, "fmapboard"),
        fmapboard.watch(model, writer=kept, every=1, tokens=naming, checks=False) as board,
    ):
        for number in range(3):
            with board.step(number):
                model(IDS)
    assert [len(headers(step)) for step in kept.steps] == [4, 4, 4]
    about = [message for message in caplog.messages if "tokens" in message]
    assert about == [f"fmapboard: tokens=: {said}; tokens are not named; training continues"]


def test_the_tab_gets_the_names_with_each_row(tmp_path: Path) -> None:
    model = TextNet()
    with fmapboard.watch(model, tmp_path / "run", tokens=words, name="net") as board, board.step(0):
        model(IDS)
    tab = open_tab(tmp_path)
    for label in ("blocks.0.0.rows", "blocks.1.0.peak_rows"):
        facts, _ = tab.open("data/maps", run="run", key=f"net.fmapboard/{label}", step=0)
        assert facts["header"]["tokens"] == NAMES[:1]


@pytest.mark.parametrize("tokens", [5, ["the", "cat"], str])
def test_what_names_no_tokens_is_refused(tokens: Any) -> None:
    with pytest.raises(ConfigurationError, match="expected a tokenizer of transformers, or a func"):
        Options(tokens=tokens)
