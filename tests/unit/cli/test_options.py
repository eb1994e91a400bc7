"""The options of a command and the arguments of its Python function agree."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable
from typing import Any

import click
import pytest

import fmapboard
from fmapboard.cli.main import diff_command, patches_command, visualize
from fmapboard.cli.main import fmapboard as fmapboard_command
from fmapboard.cli.options import FILES, FLAGS, arguments_of, first_sentence

FUNCTIONS: dict[str, tuple[Callable[..., Any], click.Command]] = {
    "visualize": (fmapboard.visualize, visualize),
    "patches": (fmapboard.patches, patches_command),
    "diff": (fmapboard.diff, diff_command),
}
PYTHON_ONLY = {"embedding", "transform", "normalization", "inputs", "forward_kwargs"}
"""Arguments for which the commands have options of another kind, such as --mean, or none."""


def documented(function: Callable[..., Any]) -> dict[str, str]:
    """The docstring's text on each argument, on one line."""
    text = inspect.getdoc(function) or ""
    section = re.split(r"(?:Args|Attributes):\n", text)[1].split("\n\n")[0]
    parts = re.split(r"^ {4}(\w+): ", section, flags=re.M)[1:]
    return {
        name: " ".join(text.split()) for name, text in zip(parts[::2], parts[1::2], strict=True)
    }


def differing(function: str, name: str) -> dict[str, Any]:
    return {**FLAGS.get(name, {}), **FLAGS.get(f"{function}.{name}", {})}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_keyword_argument_is_an_option_with_its_default(function: str) -> None:
    called, command = FUNCTIONS[function]
    options = {one.name: one for one in command.params if isinstance(one, click.Option)}
    parameters = inspect.signature(called).parameters.values()
    keywords = {one.name: one.default for one in parameters if one.default is not one.empty}
    assert keywords.keys() - PYTHON_ONLY <= options.keys()
    for name in keywords.keys() - PYTHON_ONLY:
        given = command.make_context("x", ["a", "b", "--model", "demo"]).params[name]
        assert given == keywords[name], name


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_help_of_an_option_is_the_first_sentence_about_the_argument(function: str) -> None:
    called, command = FUNCTIONS[function]
    texts = documented(called)
    options = [one for one in command.params if isinstance(one, click.Option)]
    compared = [one for one in options if one.name in texts.keys() - PYTHON_ONLY]
    assert len(compared) >= 4
    for option in compared:
        assert option.name is not None
        own = differing(function, option.name)
        expected = own.get("help") or first_sentence(texts[option.name])
        expected += " Repeatable." if option.multiple else ""
        absent = f"  [default: {own['absent']}]" if "absent" in own else ""
        assert option.help == expected + absent


@pytest.mark.parametrize("name", FILES)
def test_what_is_read_from_the_source_is_what_python_says(name: str) -> None:
    module = FILES[name].removesuffix(".py").replace("/", ".")
    called = getattr(importlib.import_module(f"fmapboard.{module}"), name)
    texts = documented(called)
    expected = {
        one.name: (one.annotation, None if one.default is one.empty else one.default, text)
        for one in inspect.signature(called).parameters.values()
        if (text := texts.get(one.name)) is not None
    }
    read = arguments_of(name)
    assert {n: (one.type, one.default, one.text) for n, one in read.items()} == expected


@pytest.mark.parametrize(
    ("command", "name", "expected"),
    [
        ("demo", "every", "Log every N steps."),
        ("demo", "steps", "Training steps.  [default: 250]"),
        ("serve", "port", "The server's port; 0 for any free one."),
        ("check", "silenced", "Leave out a check. Repeatable."),
        ("report", "layers", "Layers to include, such as 'layer1.*'; '!*.downsample.*' excludes "
         "layers. Repeatable."),
        ("patches", "device", "Torch device, such as cuda:0."),
        ("diff", "as_json", "Print a JSON object with all layers."),
    ],
)  # fmt: skip
def test_the_help_is_what_the_docstring_says_of_the_function_that_runs(
    command: str, name: str, expected: str
) -> None:
    own = {one.name: one for one in fmapboard_command.commands[command].params}
    option = own[name]
    assert isinstance(option, click.Option)
    assert option.help == expected


def test_the_table_of_flags_names_only_arguments_that_exist() -> None:
    every = {name for function in FILES for name in arguments_of(function)}
    of_functions = {f"{f}.{name}" for f in FILES for name in arguments_of(f)}
    assert FLAGS.keys() <= every | of_functions


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("One of 3-D maps, such as ``x``. More.", "One of 3-D maps, such as x."),
        ('``"a"``: first; ``"b"``: second.', "a: first; b: second."),
        ("Which class, counted from 0; None takes the best.", "Which class, counted from 0."),
    ],
)
def test_a_help_has_neither_markup_nor_none(text: str, sentence: str) -> None:
    assert first_sentence(text) == sentence
