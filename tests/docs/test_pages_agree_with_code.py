"""The tables of options, flags, keys and pages in docs/ agree with the code."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import click
import pytest
from check_pages import pages as made_pages

import fmapboard
from fmapboard.checks import BUILT_IN
from fmapboard.cli import main
from fmapboard.cli.main import COMMON as COMMON_OF_VISUALIZE
from fmapboard.formats import tags
from fmapboard.formats.checks import Seen
from fmapboard.health.rules import group_of
from fmapboard.health.verdict import judge
from fmapboard.options import COMMON
from fmapboard.render.palettes import PALETTES

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))


def cells(page: str, column: int = 0) -> list[str]:
    """One column of all tables of a page, without headings."""
    rows = [line for line in (DOCS / page).read_text().splitlines() if line.startswith("| `")]
    return [row.split("|")[column + 1].strip() for row in rows]


def test_the_page_of_why_lists_the_keys_of_its_object() -> None:
    written = judge("", [], Seen(), {}).as_json()
    assert cells("why.md") == [f"`{key}`" for key in (*written, "pictures")]


def test_the_page_of_options_lists_every_option_of_watch_with_its_default() -> None:
    parameters = inspect.signature(fmapboard.watch).parameters
    expected = {name: p.default for name, p in parameters.items() if name != "model"}
    named = [re.fullmatch(r"`(\w+)=(.*)`", cell) for cell in cells("options.md")]
    listed = {match[1]: ast.literal_eval(match[2]) for match in named if match}
    assert listed == expected
    assert len(named) == len(listed)


def test_the_page_of_options_begins_with_the_common_ones() -> None:
    common = (DOCS / "options.md").read_text().split("## All other options")[0]
    assert re.findall(r"^\| `(\w+)=", common, re.M) == [name for name in COMMON if name != "model"]


def test_the_page_of_options_names_every_palette_and_scale() -> None:
    text = (DOCS / "options.md").read_text()
    for value in (*PALETTES, "channel", "layer", "locked", "drop_oldest"):
        assert f'"{value}"' in text


def test_the_page_and_the_help_of_visualize_begin_with_the_common_options() -> None:
    options = {p.opts[0]: p for p in main.visualize.params if isinstance(p, click.Option)}
    assert list(zip(cells("visualize.md"), cells("visualize.md", 1), strict=True)) == [
        (f"`{flag}`", f"`{options[flag].default}`" if options[flag].show_default else "")
        for flag in COMMON_OF_VISUALIZE
    ]
    text = main.visualize.get_help(click.Context(main.visualize))
    common, others = text.split("Common options:")[1].split("All other options:")
    assert re.findall(r"^  (--[a-z-]+)", common, re.M) == list(COMMON_OF_VISUALIZE)
    listed = re.findall(r"^  (?:-h, )?(--[a-z-]+)", others, re.M)
    assert set(listed) == options.keys() - set(COMMON_OF_VISUALIZE) | {"--help"}
    assert "IMAGES" not in others


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda page: page.stem)
def test_every_flag_of_a_command_that_a_page_shows_exists(page: Path) -> None:
    commands = {"visualize": main.visualize}
    commands |= {f"fmapboard {name}": each for name, each in main.fmapboard.commands.items()}
    text = page.read_text()
    code = re.findall(r"```sh\n(.*?)```", text, re.DOTALL) + re.findall(r"`[^`\n]+`", text)
    shown = r"^[ `]*(visualize|fmapboard [a-z]+)( [^`#\n]*)"
    for name, arguments in re.findall(shown, "\n".join(code), re.MULTILINE):
        known = {flag for each in commands[name].params for flag in each.opts} | {"--help"}
        assert set(re.findall(r" (--?[a-z][a-z-]*)", arguments)) <= known, name


def test_the_page_of_keys_lists_those_of_the_help() -> None:
    source = ROOT / "src" / "fmapboard" / "plugin" / "static" / "view" / "help.js"
    help_rows = re.findall(r'^  \["([^"]+)", "', source.read_text(), re.M)
    assert len(help_rows) > 10
    assert [cell.replace("`", "") for cell in cells("tab_keys.md")] == help_rows


def test_the_page_of_tags_names_every_kind_of_picture_and_histogram() -> None:
    text = (DOCS / "what_is_written.md").read_text()
    pictures = [f"`{kind}_" for kind in (*tags.HISTOGRAM_OF, "kernels")]
    histograms = [f"`{group}/" for group in tags.HISTOGRAM_OF.values()]
    assert [tag for tag in (*pictures, *histograms) if tag not in text] == []


def test_the_page_of_tags_names_every_scalar_and_text() -> None:
    text = (DOCS / "what_is_written.md").read_text()
    whole = (
        tags.LOGGED_STEP_MS, tags.DROPPED_STEPS, tags.WAITED_MS, tags.SKIPPED_STEPS,
        tags.FIRST_NONFINITE, tags.GRADIENT_NORM, tags.GRADIENT_NORM_BEFORE_CLIPPING,
        tags.UPDATE_RATIO, tags.BATCHNORM_GAP, tags.LEARNING_RATE,
        tags.CONSTANT_CHANNELS, tags.NONFINITE, tags.DEAD_CHANNELS, tags.WEIGHTS, tags.GRADIENTS,
        tags.NETWORK_INPUT, tags.RECORD, tags.FIRST_RECORD, tags.OVERVIEW, tags.FIRST_OVERVIEW,
        tags.CHECKS, tags.CHECKS_TEXT, tags.FIRST_NONFINITE_RECORD,
    )  # fmt: skip
    assert [tag for tag in whole if f"`{tag}" not in text] == []


def test_the_pages_of_checks_and_values_are_those_made_from_the_rules() -> None:
    made = made_pages()
    written = {place: (DOCS / place).read_text() for place in made if (DOCS / place).is_file()}
    assert written == made, "run PYTHONPATH=src python tests/helpers/check_pages.py"
    parts = {f"checks/{page.name}" for page in (DOCS / "checks").iterdir()}
    assert parts == made.keys() - {"checks.md", "how_we_know.md"}


def test_the_page_of_checks_counts_them() -> None:
    assert f"{len(BUILT_IN)} rules look for" in (DOCS / "checks.md").read_text()


def test_each_built_in_check_has_a_heading_on_the_page_of_its_group() -> None:
    for check in BUILT_IN:
        page = (DOCS / "checks" / f"{group_of(check)}.md").read_text()
        assert len(re.findall(rf"^##? {check.kind}$", page, re.M)) == 1, check.kind


def test_the_first_page_links_to_every_page() -> None:
    text = (DOCS / "index.md").read_text()
    pages = {page.name for page in DOCS.glob("*.md")} - {"index.md", "README.md"}
    assert sorted(page for page in pages if f"]({page})" not in text) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_a_page_promises_only_what_works(page: Path) -> None:
    text = page.read_text()
    if "pip install fmapboard" in text:
        assert "(from version 0.1.0 on)" in text  # until then it is on no index
    assert "'fmapboard[" not in text


def test_the_docs_show_what_each_check_sees() -> None:
    """Some checks share a picture of a layer."""
    text = "".join(page.read_text() for page in PAGES)
    own = {"nonfinite", "exploding", "copied_channels", "uneven_upsampling", "saturated"}
    of_attention = {"missing_causal_mask", "attended_padding", "softmax_over_queries"}
    of_attention |= {"labels_not_shifted", "missing_positions", "attention_over_batch"}
    without = {"one_prediction", "dead_experts", "dead_heads", "attention_logits", *of_attention}
    groups = {group_of(check) for check in BUILT_IN}
    shown = {group for group in groups if f"pictures/check_{group}.png)" in text}
    assert shown | own | without == groups
    assert all((DOCS / "pictures" / f"check_{kind}.png").is_file() for kind in shown)
