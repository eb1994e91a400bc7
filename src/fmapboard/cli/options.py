"""What the commands share: help with an example, types and options of click, exit status.

The options that are arguments of Python functions are made from these: their docstring is the help.
"""

from __future__ import annotations

import ast
import functools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fmapboard.cli.run_dirs import Directory
from fmapboard.errors import CaptureError, FmapboardError

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
        options = [one for one in self.get_params(ctx) if isinstance(one, click.Option)]
        shown = [(one.opts[0], one.get_help_record(ctx)) for one in options]
        records = {flag: record for flag, record in shown if record}
        others = [record for flag, record in records.items() if flag not in self.common]
        for title, rows in (
            ("Common options", [records[flag] for flag in self.common]),
            ("All other options", others),
        ):
            with formatter.section(title):
                formatter.write_dl(rows)


class ExampleGroup(ExampleCommand, click.Group):
    """The top-level command."""


def command(
    example: str, short_help: str, *, name: str | None = None, common: Sequence[str] = ()
) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a function a command.

    Args:
        example: What its help opens with.
        short_help: Its line in the list of commands.
        name: Its name; None for that of the function.
        common: Flags of the options to list first.
    """
    kind = type("Command", (ExampleCommand,), {"example": example, "common": tuple(common)})
    return click.command(name, cls=kind, context_settings=HELP, short_help=short_help)


class Palette(click.Choice):  # type: ignore[type-arg]  # generic since click 8.2
    """Names of palettes; ``gray`` is accepted for ``grey``."""

    def convert(self, value: Any, *context: Any) -> Any:
        """Return the palette's name."""
        return super().convert("grey" if value == "gray" else value, *context)


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
    names = [one.name for one in fields(kind) if one.name in options]  # type: ignore[arg-type]  # a dataclass
    return kind(**{name: options.pop(name) for name in names})


EXISTING = click.Path(path_type=Path)
"""The type of a path."""

LAYERS: Mapping[str, Any] = {
    "multiple": True,
    "metavar": "GLOB",
    "callback": lambda context, option, given: list(given) or None,
}
"""Of ``--layers``, whose value is a list, or None if the option was not given."""

model_arg = click.option(
    "--model-arg",
    "model_args",
    multiple=True,
    metavar="NAME=VALUE",
    help="An argument of the model's constructor, such as num_classes=10. Repeatable.",
)
forward_arg = click.option(
    "--forward-arg",
    "forward_args",
    multiple=True,
    metavar="NAME=VALUE",
    help="An argument that the model's forward takes in addition to the images. Repeatable.",
)
input_option = click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="NAME=FILE",
    help="A tensor (torch.save, or .npy) that the model's forward takes in addition to the images; "
    "or package.module:function, which turns images into all arguments. Repeatable.",
)
checkpoint_key = click.option(
    "--checkpoint-key",
    metavar="NAME",
    help="Which weights to load if a checkpoint holds several, such as state_dict_ema.",
)
weights = click.option(
    "--weights",
    default="DEFAULT",
    show_default=True,
    help="DEFAULT (pretrained, downloaded if needed), none (random), a weights file, or the "
    "name of torchvision weights.",
)
device = click.option(
    "--device", default="cpu", show_default=True, help="Torch device, such as cuda:0."
)


def _numbers(text: str, *, positive: bool = False) -> tuple[float, ...]:
    """One number per channel, separated by commas.

    Raises:
        click.BadParameter: They are no numbers, or on the scale of 0 to 255.
    """
    try:
        numbers = tuple(map(float, re.split(r"[\s,]+", text.strip("[]() "))))
    except ValueError:
        raise click.BadParameter(
            f"{text!r}: expected numbers with commas and no spaces: 0.5 or 0.485,0.456,0.406"
        ) from None
    if max(numbers) > 2:
        scaled = ",".join(f"{number / 255:.3g}" for number in numbers)
        raise click.BadParameter(f"{text!r}: expected numbers for pixels from 0 to 1: {scaled}?")
    if not all(math.isfinite(number) and (number > 0 or not positive) for number in numbers):
        what = "numbers above 0" if positive else "finite numbers"
        raise click.BadParameter(f"{text!r}: expected {what}")
    return numbers


def _positive_numbers(text: str) -> tuple[float, ...]:
    return _numbers(text, positive=True)


def _size(text: str) -> Size:
    """A number of pixels, ``HEIGHTxWIDTH``, or ``none``."""
    if text.lower() == "none":
        return "none"
    match = re.fullmatch(r"(\d{1,5})(?:[x×,*](\d{1,5}))?", text.strip())
    sides = [int(side) for side in match.groups() if side] if match else []
    if not sides or min(sides) < 1:
        raise click.BadParameter(f"{text!r}: expected px, such as 224 or 480x640, or none")
    return sides[0] if len(sides) == 1 else (sides[0], sides[1])


_OPTIONS = (
    click.option(
        "--input-size", type=click.IntRange(min=1), help="Side of the square input in px."
    ),
    click.option(
        "--mean",
        type=_numbers,
        metavar="NUMBERS",
        help="Subtracted per channel, for pixels from 0 to 1, such as 0.485,0.456,0.406.",
    ),
    click.option(
        "--std",
        type=_positive_numbers,
        metavar="NUMBERS",
        help="Divides each channel after that.",
    ),
    click.option(
        "--resize",
        type=_size,
        metavar="SIZE",
        help="Shorter side in px, HEIGHTxWIDTH, or none to keep the image's size.",
    ),
    click.option(
        "--crop",
        type=_size,
        metavar="SIZE",
        help="Centre crop after that: side in px, HEIGHTxWIDTH, or none.",
    ),
)


def preprocessing_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command; what is not given stays as the weights expect."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


FLAGS: Mapping[str, Mapping[str, Any]] = {
    "log_dir": {"flags": ("--logdir", "--log-dir"), "type": Directory(remote=True)},
    "out": {"type": Directory(remote=False)},
    "html": {"type": EXISTING},
    "step": {"type": click.IntRange(min=0)},
    "layers": {
        **LAYERS,
        "help": "Layers to draw, such as 'layer1.*'; '!*.downsample.*' excludes layers. "
        "Repeatable.",
    },
    "batch_size": {"type": click.IntRange(min=1)},
    "colormap": {"type": Palette(["grey", "viridis", "magma", "signed"])},
    "scale": {"type": click.Choice(["channel", "layer"])},
    "depth": {"type": click.IntRange(min=0), "absent": "the middle one"},
    "target": {
        "flags": ("--class",),
        "type": click.IntRange(min=0),
        "metavar": "N",
        "absent": "the one with the highest score",
    },
    "embedding": {"metavar": "LAYER"},
    "patches.layers": {
        "help": "Layers to search, such as 'layer1.*'. Repeatable.",
        "absent": "all convolutions",
    },
    "k": {"flags": ("-k",), "type": click.IntRange(min=1)},
    "channels": {
        "type": click.IntRange(min=0),
        "callback": lambda context, option, given: given or None,
        "help": "Search the first N channels of each layer; 0 for all.",
    },
    "one_per_image": {
        "flags": ("--several-per-image",),
        "callback": lambda context, option, given: not given,
        "help": "Take the largest values of all positions.",
        "absent": "at most one crop of an image",
    },
    "tolerance": {
        "type": click.FloatRange(min=0),
        "absent": "1e-12 in float64, 1e-5 in float32, 5e-4 in float16, 4e-3 in bfloat16",
    },
    "diff.layers": {
        "help": "Layers to draw; always with the first difference. Repeatable.",
        "absent": "convolutions",
    },
    "diff.log_dir": {"type": Directory(remote=False)},
}
"""Name of an argument, or function and name -> how its option differs from what Python says.

``flags`` are the option's names, ``absent`` is what its help says of the default; the others are
arguments of `click.option`.
"""

_MODULES = {
    "visualize": "imaging/visualize.py",
    "patches": "imaging/patches.py",
    "diff": "model_comparison/two_models.py",
}


@dataclass(frozen=True, slots=True)
class Argument:
    """A keyword argument of a function: its type and default, and what the docstring says."""

    type: str
    default: Any
    text: str


@functools.cache
def arguments_of(function: str) -> Mapping[str, Argument]:
    """The keyword arguments of ``visualize``, ``patches`` or ``diff`` by name.

    They are read from the source: importing the function would import torch, which takes seconds.
    """
    source = resources.files("fmapboard").joinpath(_MODULES[function]).read_text("utf-8")
    (node,) = (
        each
        for each in ast.parse(source).body
        if isinstance(each, ast.FunctionDef) and each.name == function
    )
    section = (ast.get_docstring(node) or "").partition("\nArgs:\n")[2].partition("\n\n")[0]
    texts = dict(re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", section, re.M))
    positional = node.args.args[len(node.args.args) - len(node.args.defaults) :]
    pairs = [
        *zip(positional, node.args.defaults, strict=True),
        *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True),
    ]
    return {
        one.arg: Argument(
            ast.unparse(one.annotation or ast.Constant(None)),
            None if default is None else ast.literal_eval(default),
            " ".join(texts[one.arg].split()),
        )
        for one, default in pairs
    }


def options_of(function: str, *names: str) -> Decorator:
    """Add the options for arguments of a Python function, changed by `FLAGS`.

    Args:
        function: ``"visualize"``, ``"patches"`` or ``"diff"``.
        names: Of the arguments, in the order of the help.
    """

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for name in reversed(names):
            command = _option(function, name)(command)
        return command

    return add


def _option(function: str, name: str) -> Decorator:
    argument = arguments_of(function)[name]
    given = {**FLAGS.get(name, {}), **FLAGS.get(f"{function}.{name}", {})}
    flags = given.pop("flags", (f"--{name.replace('_', '-')}",))
    absent = f"  [default: {given.pop('absent')}]" if "absent" in given else ""
    text = given.pop("help", None) or first_sentence(argument.text)
    if argument.type == "bool":
        given["is_flag"] = True
    elif argument.default is not None:
        given |= {"default": argument.default, "show_default": True}
    return click.option(*flags, name, help=text + absent, **given)


def first_sentence(text: str) -> str:
    """What the help says of an argument: the first sentence, without markup and ``None``.

    Example:
        >>> first_sentence('Slice of ``"3-D"`` maps; None draws the middle one. More.')
        'Slice of 3-D maps.'
    """
    sentence = re.split(r"(?<=\.)\s", text)[0]
    return re.sub(r"; None [^.;]*|``\"?|\"?``", "", sentence)


FAILED = 2
"""Exit status for bad usage, unreadable input, and every other error."""


def judged(found: Callable[[], bool]) -> int:
    """The exit status of a command.

    Args:
        found: runs it; True if something was found.

    Raises:
        FmapboardError: it failed; the exit code is `FAILED`, also for errors of other types, for
            which Python would exit with 1.
    """
    try:
        return 1 if found() else 0
    except FmapboardError as error:
        error.exit_code = FAILED
        raise
    except BrokenPipeError:  # whoever reads the output has seen enough
        raise
    except Exception as error:
        failed = CaptureError(f"{type(error).__name__}: {error}")
        failed.exit_code = FAILED
        raise failed from error
