"""Tokens as colours in the tab and in a report: at several steps, beside the inputs."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from browser_visitor import Person
from PIL import Image
from run_reader import read
from torch import Tensor, nn

import fmapboard
from fmapboard.report.write import write_report

STEPS = 4
BLOCK = "blocks.layers.1"
PANEL = "section[aria-label='Tokens as colours']"
IMAGES = torch.rand(3, 3, 24, 40, generator=torch.Generator().manual_seed(0))


class Small(nn.Module):
    """Patches of 8×8 px and two blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, 16, 8, stride=8)
        block = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0.0)
        self.blocks = nn.TransformerEncoder(block, 2)
        self.head = nn.Linear(16, 2)

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.embed(x).flatten(2).transpose(1, 2)
        return self.head(self.blocks(tokens).mean(1))  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which each step has images of its own, and one with a probe."""
    root = tmp_path_factory.mktemp("tokens")
    for name, options in (("training", {}), ("probe", {"probe": IMAGES})):
        torch.manual_seed(0)
        model = Small()
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        with fmapboard.watch(model, root / name, every=1, optimizer=optimizer, **options):
            for step in range(STEPS):
                model((IMAGES + step / 9).clamp(0, 1)).square().sum().backward()
                optimizer.step()
                optimizer.zero_grad()
    return root


def stored(run: Path, tag: str) -> list[Any]:
    """The first picture of a series at each step, u8 [H, W, 3]."""
    pictures = []
    for event in read(run).Tensors(tag):
        with Image.open(io.BytesIO(event.tensor_proto.string_val[2])) as image:
            pictures.append(np.asarray(image.convert("RGB")))
    return pictures


def shown(person: Person, label: str) -> list[Any]:
    """The pictures of the panel whose label begins so, in their order, u8 [H, W, 3]."""
    script = f"""() => [...document.querySelectorAll("{PANEL} canvas[aria-label^='{label}']")].map(
      (canvas) => {{
        const {{ width, height }} = canvas;
        const {{ data }} = canvas.getContext("2d").getImageData(0, 0, width, height);
        return [height, width, ...data];
      }})"""
    pictures = []
    for height, width, *rgba in person.frame.evaluate(script):
        pictures.append(np.array(rgba, np.uint8).reshape(height, width, 4)[..., :3])
    return pictures


def assert_equal(found: list[Any], expected: list[Any]) -> None:
    assert [each.tolist() for each in found] == [each.tolist() for each in expected]


def test_the_tokens_of_each_step_stand_below_the_input_of_that_step(
    runs: Path, serve: Callable[[Path], str], visit: Callable[..., Person]
) -> None:
    person = visit(serve(runs), run="training", layer=f"fmapboard/{BLOCK}")
    person.drawn(3)
    tokens = stored(runs / "training", f"tokens_as_colours_Block 16/{BLOCK}")
    assert tokens[0].shape == (3, 5, 3)
    assert_equal(shown(person, "Tokens, step "), tokens)
    inputs = stored(runs / "training", "network_input/sample_0")
    assert_equal(shown(person, "The input of step "), inputs)
    said = person.see(f"{PANEL} .note").text_content()
    assert "differed most at step 0, the same at every step." in said
    assert said.endswith("The images differ: see each picture beside its own.")
    person.see(f"{PANEL} button").nth(1).click()
    person.drawn(1)
    assert person.see(f"{PANEL} [aria-current='true']").text_content().strip() == "step 1"


def test_the_input_of_a_probe_is_shown_once(
    runs: Path, serve: Callable[[Path], str], visit: Callable[..., Person]
) -> None:
    person = visit(serve(runs), run="probe", layer=f"fmapboard/{BLOCK}")
    person.drawn(3)
    assert len(shown(person, "Tokens, step ")) == STEPS
    assert len(shown(person, "The network")) == 1
    assert "The images differ" not in person.see(f"{PANEL} .note").text_content()


def test_layers_that_are_not_of_tokens_have_no_such_panel_and_ask_for_none(
    runs: Path, serve: Callable[[Path], str], visit: Callable[..., Person]
) -> None:
    asked: list[str] = []

    def note(route: Any) -> None:
        asked.append(route.request.url)
        route.continue_()

    person = visit(
        serve(runs), run="training", layer="fmapboard/embed", routes={"**/data/tokens*": note}
    )
    person.drawn(3)
    assert person.see(PANEL).count() == 0
    assert asked == []


def test_a_report_shows_the_same_tokens_at_its_steps(
    runs: Path, visit: Callable[..., Person], tmp_path: Path
) -> None:
    report = write_report([runs / "training"], tmp_path / "tokens.html", steps=2)
    person = visit(f"{report.path.as_uri()}?", layer=f"fmapboard/{BLOCK}")
    person.drawn(3)
    tokens = stored(runs / "training", f"tokens_as_colours_Block 16/{BLOCK}")
    assert_equal(shown(person, "Tokens, step "), [tokens[0], tokens[3]])


class Reader(nn.Module):
    """A network of texts: an embedding and two blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(9, 16)
        block = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0.0)
        self.blocks = nn.TransformerEncoder(block, 2)

    def forward(self, ids: Tensor) -> Tensor:
        return self.blocks(self.embed(ids))  # type: ignore[no-any-return]


TEXT = torch.tensor([[3, 1, 4, 1, 5, 2, 6, 5], [3, 5, 8, 7, 2, 2, 3, 1]])
WORDS = ["the", "Ġcat", "▁sat", "on", "a", "mat", ".", "Ċ", "<b>"]


@pytest.fixture(scope="module")
def heads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on images of patches of one colour each, and one on texts."""
    root = tmp_path_factory.mktemp("heads")
    torch.manual_seed(0)
    patches = torch.rand(2, 3, 3, 5).repeat_interleave(8, 2).repeat_interleave(8, 3)
    reader = Reader()
    for name, model, x in (("images", Small(), patches), ("texts", reader, TEXT)):
        options = {"tokens": lambda ids: [WORDS[i] for i in ids]} if model is reader else {}
        with fmapboard.watch(model, root / name, every=1, **options) as board:
            for step in range(2):
                with board.step(step):
                    model(x).square().sum().backward()
    return root


ROWS = "blocks.layers.1.self_attn.rows"
_GRID = "() => document.querySelector('.grid canvas').toDataURL('image/png')"


def first_tile(person: Person) -> Any:
    """The colours of the middles of the patches of the first tile of the grid, [3, 5, 3]."""
    encoded = person.frame.evaluate(_GRID).partition(",")[2]
    grid = Image.open(io.BytesIO(base64.b64decode(encoded))).convert("RGB")
    pixels = np.array(grid).astype(float)
    left, top = 10, 10  # margins of the grid
    away = np.abs(pixels - pixels[0, 0]).max(-1) > 0
    right = left + int(np.argmin(away[top + 2, left:]))
    side = (right - left) / 5
    rows = [int(top + (y + 0.5) * side) for y in range(3)]
    columns = [int(left + (x + 0.5) * side) for x in range(5)]
    return pixels[np.ix_(rows, columns)]


def test_heads_are_drawn_over_the_input_unless_that_is_turned_off(
    heads: Path, serve: Callable[[Path], str], visit: Callable[..., Person]
) -> None:
    where: dict[str, Any] = {"run": "images", "layer": f"fmapboard/{ROWS}"}
    alone = visit(serve(heads), overlay=0, **where)
    alone.drawn(1)
    own = first_tile(alone)
    over = visit(serve(heads), **where)
    over.drawn(1)
    over.settle()
    (image,) = stored(heads / "images", "network_input/sample_0")[1:]
    middles = image[4::8, 4::8].astype(float)
    assert np.abs(first_tile(over) - (0.6 * own + 0.4 * middles)).max() <= 3
    over.press("o")
    over.wait("parent.location.hash.includes('overlay=0')")
    over.settle()
    assert np.abs(first_tile(over) - own).max() == 0


def test_the_tokens_of_a_text_are_named_and_shaded_by_a_head(
    heads: Path, serve: Callable[[Path], str], visit: Callable[..., Person]
) -> None:
    person = visit(serve(heads), run="texts", layer=f"fmapboard/{ROWS}", channel=1)
    person.drawn(1)
    person.settle()
    spans = person.see(".shaded span")
    names = ["on", " cat", "a", " cat", "mat", " sat", ".", "mat"]
    assert spans.evaluate_all("(all) => all.map((each) => each.textContent)") == names
    shades = spans.evaluate_all("(all) => all.map((each) => getComputedStyle(each).background)")
    values = [float(each) for each in spans.evaluate_all("(all) => all.map((each) => each.title)")]
    assert len(set(shades)) > 3
    assert " / 0)" in shades[values.index(min(values))]  # transparent
    box = person.see(".grid canvas").bounding_box()
    person.page.mouse.move(box["x"] + 60, box["y"] + 30)
    person.wait("document.querySelector('.status').textContent.includes('position 0 “on”')")


@pytest.mark.parametrize(
    ("layer", "word"),
    [(ROWS, "head"), ("blocks.layers.1", "feature"), ("blocks.layers.1.linear1", "MLP unit")],
)
def test_what_is_no_channel_is_not_called_one(
    layer: str,
    word: str,
    heads: Path,
    serve: Callable[[Path], str],
    visit: Callable[..., Person],
) -> None:
    person = visit(serve(heads), run="images", layer=f"fmapboard/{layer}")
    person.drawn(1)
    person.settle()
    texts = """() => [document.body, ...document.querySelectorAll("main *, aside *")]
      .flatMap((each) => [each.innerText, each.title, each.getAttribute("aria-label")])
      .filter((text) => text && /channel/i.test(text))"""
    assert f"Click any {word} or press ]" in person.see("aside").inner_text()
    assert person.frame.evaluate(texts) == []
    person.press("]")
    person.wait("document.querySelector('.channel.open') !== null")
    person.settle()
    assert person.frame.evaluate(texts) == []
