"""Makes the pictures of the page on transformers: a ViT and a GPT are trained, both small.

``PYTHONPATH=src python docs/pictures/make_transformers.py`` takes a few minutes on one core. It
needs timm, transformers and Pillow, which the development set-up installs. What is drawn is what
``watch`` logs, put side by side, enlarged and labelled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import timm
import torch
import transformers
from PIL import Image, ImageDraw, ImageFont
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor, nn
from torch.nn import functional

import fmapboard
from fmapboard.demo.photographs import Photographs
from fmapboard.formats.tab_records import unpack
from fmapboard.records import LoggedStep, Planes
from fmapboard.writers.folder import MemoryWriter

HERE = Path(__file__).parent
PAGES = HERE.parent
BLOCKS = 4
VIT_STEPS = (0, 30, 100, 300)
GPT_STEPS = (0, 800)
TEXT = "fmapboard logs feature maps of a model while it trains. Each layer of a model has feature"
"""What the GPT's rows of attention are over: its beginning says what its end repeats."""
LOOKS_AT = ("blocks.0", "blocks.3")

Training = Callable[[], Tensor]
"""Returns the loss of the next batch."""


def trained(
    model: nn.Module, loss: Training, steps: Iterable[int], **options: Any
) -> dict[int, LoggedStep]:
    """Train a model and return the logged steps by number."""
    numbers = sorted(steps)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
    kept = MemoryWriter()
    every = set(numbers).__contains__
    with fmapboard.watch(
        model, writer=kept, optimizer=optimizer, every=every, checks=False, **options
    ):
        for number in range(numbers[-1] + 1):
            optimizer.zero_grad()
            value = loss()
            value.backward()  # type: ignore[no-untyped-call]  # torch has no types here
            optimizer.step()
            if number in numbers:
                print(f"step {number}: loss {value.item():.3f}")
    return {step.step: step for step in kept.steps}


def vit() -> dict[int, LoggedStep]:
    """A ViT of four blocks that learns which of the bundled photographs a crop is from."""
    torch.manual_seed(0)
    photographs = Photographs.load()
    model = timm.models.VisionTransformer(
        img_size=48,
        patch_size=6,
        embed_dim=96,
        depth=BLOCKS,
        num_heads=3,
        num_classes=len(photographs.names),
    )
    crops = torch.Generator().manual_seed(0)

    def loss() -> Tensor:
        images, labels = photographs.training_batch(16, crops)
        return functional.cross_entropy(model(images), labels)

    probe, _ = photographs.training_batch(1, torch.Generator().manual_seed(PROBE))
    return trained(model, loss, VIT_STEPS, probe=probe)


PROBE = 24
"""Seed of the crop that is drawn: the eye of a cat."""


def gpt() -> dict[int, LoggedStep]:
    """A GPT of four blocks that learns the text of the documentation."""
    torch.manual_seed(0)
    pages = [page.read_text(encoding="utf-8") for page in sorted(PAGES.glob("*.md"))]
    bytes_to_words = Tokenizer(models.BPE())
    bytes_to_words.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytes_to_words.decoder = decoders.ByteLevel()
    bytes_to_words.train_from_iterator(pages, trainers.BpeTrainer(vocab_size=1000))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=bytes_to_words)
    text = torch.tensor(bytes_to_words.encode("\n".join(pages)).ids)
    model = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=bytes_to_words.get_vocab_size(),
            n_positions=64,
            n_embd=96,
            n_layer=BLOCKS,
            n_head=4,
            bos_token_id=0,
            eos_token_id=0,
        )
    )
    places = torch.Generator().manual_seed(0)

    def loss() -> Tensor:
        starts = torch.randint(len(text) - 64, (16,), generator=places).tolist()
        batch = torch.stack([text[start : start + 64] for start in starts])
        found: Tensor = model(batch, labels=batch).loss
        return found

    probe = torch.tensor([bytes_to_words.encode(TEXT).ids])
    return trained(model, loss, GPT_STEPS, probe=probe, tokens=tokenizer)


# What is written below pictures, and how they are put together.

_GAP = 6
_TEXT_COLOUR = (40, 40, 40)


def _font(size: int) -> Any:
    return ImageFont.load_default(size)


def _enlarged(pixels: Any, width: int, height: int) -> Image.Image:
    return Image.fromarray(pixels).convert("RGB").resize((width, height), Image.Resampling.NEAREST)


Cell = tuple[Image.Image, str]
"""A picture and what is written below it."""


def table(columns: list[str], rows: list[tuple[str, list[Cell]]]) -> Image.Image:
    """Pictures of one size in rows and columns with labels."""
    width, height = rows[0][1][0][0].size
    left = 74
    top = 22
    line = height + _GAP + 16
    size = (left + len(columns) * (width + _GAP), top + len(rows) * line)
    sheet = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(sheet)
    for number, label in enumerate(columns):
        draw.text((left + number * (width + _GAP), 4), label, _TEXT_COLOUR, _font(12))
    for row, (label, cells) in enumerate(rows):
        y = top + row * line
        draw.text((4, y + height // 2 - 8), label, _TEXT_COLOUR, _font(12))
        for number, (picture, below) in enumerate(cells):
            x = left + number * (width + _GAP)
            sheet.paste(picture, (x, y))
            draw.text((x, y + height + 1), below, _TEXT_COLOUR, _font(11))
    return sheet


def picture_of(step: LoggedStep, tag: str) -> Any:
    """The pixels of the picture whose tag ends so."""
    (found,) = [pictures for pictures in step.pictures if pictures.tag.endswith(tag)]
    return found.samples[0].colours


def planes_of(step: LoggedStep, label: str) -> Planes:
    """What is drawn of a layer call."""
    (found,) = [part for part in step.statistics if part.layer_call.label == label]
    assert found.planes is not None
    return found.planes


def draw_vit(steps: Mapping[int, LoggedStep]) -> None:
    """The tokens as colours by block and step, and what the class token attends to."""
    side = 108
    image = _enlarged(picture_of(steps[0], "network_input/sample_0"), side, side)
    rows = []
    for block in LOOKS_AT:
        label = f"tokens_as_colours_Block 96/{block}"
        cells = [(image, "")]
        for step in VIT_STEPS:
            cells.append((_enlarged(picture_of(steps[step], label), side, side), ""))
        rows.append((block, cells))
    columns = ["input", *(f"step {step}" for step in VIT_STEPS)]
    table(columns, rows).save(HERE / "transformers_tokens.png", optimize=True)

    rows = []
    for step in (VIT_STEPS[0], VIT_STEPS[-1]):
        cells = [(image, f"all alike: {1 / 65:.3f}")]
        for block in LOOKS_AT:
            planes = planes_of(steps[step], f"{block}.attn.rows")
            for head, pixels in enumerate(planes.pixels[0]):
                below = f"largest: {planes.hi[0, head]:.3f}"
                cells.append((_enlarged(pixels, side, side), below))
        rows.append((f"step {step}", cells))
    heads = [f"{block}, head {head}" for block in LOOKS_AT for head in range(3)]
    table(["input", *heads], rows).save(HERE / "transformers_class.png", optimize=True)


def draw_gpt(steps: Mapping[int, LoggedStep]) -> None:
    """What the last token attends to, with the names of the tokens."""
    names = _names(steps[0])
    cell = 17
    left = 92
    top = 84
    heads = 4
    panel = top + BLOCKS * (heads * cell + _GAP)
    right = left + len(names) * cell
    sheet = Image.new("RGB", (right + 48, panel * len(GPT_STEPS)), "white")
    draw = ImageDraw.Draw(sheet)
    for number, step in enumerate(GPT_STEPS):
        y = number * panel + top
        draw.text((4, y - 20), f"step {step}", _TEXT_COLOUR, _font(13))
        draw.text((right + 4, y - 18), "largest", _TEXT_COLOUR, _font(11))
        for column, name in enumerate(names):
            label = Image.new("RGB", (78, cell), "white")
            ImageDraw.Draw(label).text((2, 1), name, _TEXT_COLOUR, _font(12))
            sheet.paste(label.rotate(90, expand=True), (left + column * cell, y - 80))
        for block in range(BLOCKS):
            planes = planes_of(steps[step], f"transformer.h.{block}.attn.rows")
            for head, pixels in enumerate(planes.pixels[0]):
                draw.text((4, y + 1), f"block {block}, head {head}", _TEXT_COLOUR, _font(11))
                row = _enlarged(pixels, len(names) * cell, cell - 1)
                sheet.paste(row, (left, y))
                draw.text((right + 4, y + 1), f"{planes.hi[0, head]:.3f}", _TEXT_COLOUR, _font(11))
                y += cell
            y += _GAP
    sheet.save(HERE / "transformers_text.png", optimize=True)


def _names(step: LoggedStep) -> list[str]:
    """Names of the tokens, as they are stored for the tab."""
    for record in step.records:
        header, _ = unpack(record.blobs)
        if "tokens" in header:
            names: list[str] = header["tokens"][0]
            return [name.replace("Ġ", "·") for name in names]
    raise LookupError("no names of tokens are stored")


if __name__ == "__main__":
    torch.set_num_threads(1)
    draw_vit(vit())
    draw_gpt(gpt())
