"""What the commands share: help with an example, types and options of click, exit status.

The options that are arguments of Python functions are made from these: their docstring is the help.
"""

from __future__ import annotations

import ast
import functools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from fmapboard.cli.run_dirs import Directory

if TYPE_CHECKING:
    from fmapboard.imaging.models.preprocessing import Size

HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
"""Context settings of every command."""


class ExampleCommand(click.Command):
    """A command whose help opens with an example to paste.

    Attributes:
        example: The example.
        common: Flags of the options to list first, in that order; empty for a single list.
    """

    example = "fmapboard demo"
    common: tuple[str, ...] = ()

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the example, then the usage."""
        formatter.write(f"{self.example}\n\n")
        super().format_usage(ctx, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, in two groups if some are common."""
        if not self.common:
            super().format_options(ctx, formatter)
            return
        records: dict[str, tuple[str, str]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                records[parameter.opts[0]] = record
        common = [records[flag] for flag in self.common]
        others = [record for flag, record in records.items() if flag not in self.common]
        with formatter.section("Common options"):
            formatter.write_dl(common)
        with formatter.section("All other options"):
            formatter.write_dl(others)


class ExampleGroup(ExampleCommand, click.Group):
    """The top-level command."""


def command(
    example: str,
    short_help: str,
    *,
    name: str | None = None,
    common: Sequence[str] = (),
    runs_script: bool = False,
) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a function a command.

    Args:
        example: What its help opens with.
        short_help: Its line in the list of commands.
        name: Its name; None for that of the function.
        common: Flags of the options to list first.
        runs_script: What follows its first argument is not read, as it belongs to a script.
    """
    attributes = {"example": example, "common": tuple(common)}
    kind = type("Command", (ExampleCommand,), attributes)
    settings = {**HELP, "allow_interspersed_args": not runs_script}
    return click.command(name, cls=kind, context_settings=settings, short_help=short_help)


class Palette(click.Choice):  # type: ignore[type-arg]  # generic since click 8.2
    """Names of palettes; ``gray`` is accepted for ``grey``."""

    def convert(self, value: Any, *context: Any) -> Any:
        """Return the palette's name."""
        name = "grey" if value == "gray" else value
        return super().convert(name, *context)


T = TypeVar("T")
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def taken(kind: type[T], options: dict[str, Any]) -> T:
    """A dataclass made of the options that it has fields for, which are removed from ``options``.

    Example:
        >>> from fmapboard.imaging.models.request import ModelRequest
        >>> options = {"spec": "resnet34", "kernels": True}
        >>> taken(ModelRequest, options).spec, options
        ('resnet34', {'kernels': True})
    """
    given = {}
    for field in fields(kind):  # type: ignore[arg-type]  # a dataclass
        if field.name in options:
            given[field.name] = options.pop(field.name)
    return kind(**given)


EXISTING = click.Path(path_type=Path)
"""The type of a path."""


_TYPES = {"int": click.IntRange(min=1), "Path": EXISTING}
"""Annotation of an argument -> the type of its option, where `FLAGS` has no other."""


def _off(flag: str, text: str) -> dict[str, Any]:
    """What `FLAGS` says of an argument that is True unless a flag is given."""
    return {"flags": (flag,), "help": text, "callback": lambda context, option, given: not given}


def _numbers(text: str, *, positive: bool = False) -> tuple[float, ...]:
    """One number per channel, separated by commas.

    Raises:
        click.BadParameter: They are no numbers, or on the scale of 0 to 255.
    """
    parts = re.split(r"[\s,]+", text.strip("[]() "))
    try:
        numbers = tuple(float(part) for part in parts)
    except ValueError:
        raise click.BadParameter(
            f"{text!r}: expected numbers with commas and no spaces: 0.5 or 0.485,0.456,0.406"
        ) from None
    if max(numbers) > 2:
        scaled = ",".join(f"{number / 255:.3g}" for number in numbers)
        raise click.BadParameter(f"{text!r}: expected numbers for pixels from 0 to 1: {scaled}?")
    is_finite = all(math.isfinite(number) for number in numbers)
    if positive and not (is_finite and min(numbers) > 0):
        raise click.BadParameter(f"{text!r}: expected numbers above 0")
    if not is_finite:
        raise click.BadParameter(f"{text!r}: expected finite numbers")
    return numbers


def _size(text: str) -> Size:
    """A number of pixels, ``HEIGHTxWIDTH``, or ``none``."""
    if text.lower() == "none":
        return "none"
    match = re.fullmatch(r"(\d{1,5})(?:[x×,*](\d{1,5}))?", text.strip())
    sides = []
    if match is not None:
        sides = [int(side) for side in match.groups() if side]
    if not sides or min(sides) < 1:
        raise click.BadParameter(f"{text!r}: expected px, such as 224 or 480x640, or none")
    if len(sides) == 1:
        return sides[0]
    height, width = sides
    return height, width


FLAGS: Mapping[str, Mapping[str, Any]] = {
    "log_dir": {"flags": ("--logdir", "--log-dir"), "type": Directory(remote=True)},
    "out": {"type": Directory(remote=False)},
    "step": {"type": click.IntRange(min=0)},
    "layers": {
        "multiple": True,
        "metavar": "GLOB",
        "callback": lambda context, option, given: list(given) or None,
    },
    "colormap": {"type": Palette(["grey", "viridis", "magma", "signed"])},
    "scale": {"type": click.Choice(["channel", "layer"])},
    "depth": {"type": click.IntRange(min=0), "absent": "the middle one"},
    "target": {
        "flags": ("--class",),
        "type": click.IntRange(min=0),
        "metavar": "N",
        "absent": "the one with the highest score",
    },
    "only_list": {"flags": ("--list",)},
    "patches.layers": {"absent": "all convolutions"},
    "k": {"flags": ("-k",)},
    "channels": {
        "type": click.IntRange(min=0),
        "callback": lambda context, option, given: given or None,
        "help": "Search the first N channels of each layer; 0 for all.",
    },
    "one_per_image": {
        **_off("--several-per-image", "Take the largest values of all positions."),
        "absent": "at most one crop of an image",
    },
    "tolerance": {
        "type": click.FloatRange(min=0),
        "absent": "1e-12 in float64, 1e-5 in float32, 5e-4 in float16, 4e-3 in bfloat16",
    },
    "diff.layers": {"absent": "convolutions"},
    "diff.log_dir": {"type": Directory(remote=False)},
    "spec_b": {"flags": ("--model-b",), "metavar": "MODEL"},
    "checkpoint_key_b": {"metavar": "NAME"},
    "as_json": {"flags": ("--json",)},
    "spec": {"flags": ("--model",)},
    "model_args": {"flags": ("--model-arg",), "metavar": "NAME=VALUE"},
    "forward_args": {"flags": ("--forward-arg",), "metavar": "NAME=VALUE"},
    "ModelRequest.inputs": {"flags": ("--input",), "metavar": "NAME=FILE"},
    "checkpoint_key": {"metavar": "NAME"},
    "mean": {"type": _numbers, "metavar": "NUMBERS"},
    "std": {"type": lambda text: _numbers(text, positive=True), "metavar": "NUMBERS"},
    "resize": {"type": _size, "metavar": "SIZE"},
    "crop": {"type": _size, "metavar": "SIZE"},
    "pictures": {"type": Directory(remote=False), "metavar": "DIR"},
    "check_runs.silenced": {"flags": ("--without",), "metavar": "KIND"},
    "why_runs.silenced": {"flags": ("--without",), "metavar": "KIND"},
    "further": {"flags": ("--check",), "metavar": "MODULE:NAME"},
    "Watching.log_dir": {"type": str, "metavar": "DIR", "absent": "runs/<time>_<host>"},
    "run_demo.log_dir": {"type": Directory(remote=False), "default": "runs/demo"},
    "run_demo.steps": {"absent": "250"},
    "port": {"type": click.IntRange(0, 65535)},
    "allow_host": {"metavar": "NAME"},
    "open_browser": _off("--no-open", "Print the tab's address without opening a browser."),
    "write_report.out": {
        "flags": ("--out", "-o"),
        "type": EXISTING,
        "help": "The HTML file.",
        "absent": "report.html",
    },
    "site": {"type": Directory(remote=False), "metavar": "DIR"},
    "write_report.layers": {"callback": None},
    "max_mb": {
        "type": click.FloatRange(min=0, min_open=True),
        "absent": "20 in one file, none in a site",
    },
    "write_report.inputs": _off("--no-input", "Leave out pictures of the network's input."),
}
"""Name of an argument, or function and name -> how its option differs from what Python says.

``flags`` are the option's names, ``absent`` is what its help says of the default; the others are
arguments of `click.option`.
"""

FILES = {
    "visualize": "imaging/visualize.py",
    "patches": "imaging/patches.py",
    "diff": "model_comparison/two_models.py",
    "write_report": "report/write.py",
    "ModelRequest": "imaging/models/request.py",
    "visualize_images": "cli/commands/visualize.py",
    "diff_checkpoints": "cli/commands/diff.py",
    "check_runs": "cli/commands/check.py",
    "why_runs": "cli/commands/check.py",
    "Watching": "cli/commands/run.py",
    "run_demo": "cli/commands/demo.py",
    "run_server": "cli/commands/serve.py",
}
"""The functions and classes of whose arguments options are made, and where they are."""


class Argument(NamedTuple):
    """An argument of a function or dataclass: type and default, and what the docstring says."""

    type: str
    default: Any
    text: str


@functools.cache
def arguments_of(name: str) -> Mapping[str, Argument]:
    """The arguments of a function or dataclass of `FILES` that its docstring lists, by name.

    They are read from the source: importing the function would import torch, which takes seconds.
    """
    source = resources.files("fmapboard").joinpath(FILES[name]).read_text("utf-8")
    definitions = {}
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            definitions[statement.name] = statement
    node = definitions[name]
    docstring = ast.get_docstring(node) or ""
    _, section, *_ = re.split(r"\n(?:Args|Attributes):\n", docstring)
    listed, _, _ = section.partition("\n\n")
    texts = dict(re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", listed, re.MULTILINE))
    found = {}
    for argument, kind, default in _declared(node):
        if argument not in texts:
            continue
        found[argument] = Argument(
            type="" if kind is None else ast.unparse(kind),
            default=None if default is None else ast.literal_eval(default),
            text=" ".join(texts[argument].split()),
        )
    return found


def _declared(
    node: ast.FunctionDef | ast.ClassDef,
) -> Iterator[tuple[str, ast.expr | None, ast.expr | None]]:
    """Name, annotation and default of each argument of a function, or field of a dataclass."""
    if isinstance(node, ast.ClassDef):
        for field in node.body:
            if isinstance(field, ast.AnnAssign):
                yield ast.unparse(field.target), field.annotation, field.value
        return
    given = node.args
    arguments = [*given.args, *given.kwonlyargs]
    required = len(given.args) - len(given.defaults)
    defaults = [None] * required + given.defaults + given.kw_defaults
    for argument, default in zip(arguments, defaults, strict=True):
        yield argument.arg, argument.annotation, default


def options_of(name: str, *arguments: str) -> Decorator:
    """Add the options for arguments of a function or dataclass, changed by `FLAGS`.

    Args:
        name: One of `FILES`.
        arguments: Their names, in the order of the help.
    """

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for argument in reversed(arguments):
            option = _option(name, argument)
            command = option(command)
        return command

    return add


def _option(function: str, name: str) -> Decorator:
    argument = arguments_of(function)[name]
    kind = argument.type.removesuffix(" | None").removeprefix("str | ")
    given: dict[str, Any] = {}
    if kind in _TYPES:
        given["type"] = _TYPES[kind]
    given.update(FLAGS.get(name, {}))
    given.update(FLAGS.get(f"{function}.{name}", {}))
    flag = name.replace("_", "-")
    flags = given.pop("flags", (f"--{flag}",))
    text = given.pop("help", "") or first_sentence(argument.text)
    if argument.type == "Sequence[str]":
        given["multiple"] = True
    elif argument.type == "bool":
        given["is_flag"] = True
    else:
        default = given.pop("default", argument.default)
        if default is not None:
            given["default"] = default
            given["show_default"] = True
    if given.get("multiple"):
        text += " Repeatable."
    if "absent" in given:
        absent = given.pop("absent")
        text += f"  [default: {absent}]"
    return click.option(*flags, name, help=text, **given)


def first_sentence(text: str) -> str:
    """What the help says of an argument: the first sentence, without markup and ``None``.

    Example:
        >>> first_sentence('Slice of ``"3-D"`` maps; None draws the middle one. More.')
        'Slice of 3-D maps.'
    """
    sentence = re.split(r"(?<=\.)\s", text)[0]
    return re.sub(r"; None [^.;]*|``\"?|\"?``", "", sentence)
