"""Options of the commands that are arguments of Python functions: their docstring is the help."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

import click

from fmapboard.cli.options import EXISTING, LAYERS, Decorator, Palette
from fmapboard.cli.run_dirs import Directory

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
