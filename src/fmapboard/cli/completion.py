"""Completion of the commands in a shell, by click; and the names of torchvision's models for it."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem, get_completion_class

SHELLS = ("bash", "zsh", "fish")

_MODEL = re.compile(r"^@register_model\(\)\n(?:@.*\n(?: .*\n|\)\n)*)*def (\w+)\(", re.M)
"""A function of torchvision that builds a model of its name."""

_NOT_FOR_IMAGES = ("optical_flow", "quantization", "video")


class ModelName(click.ParamType):  # type: ignore[type-arg]  # not generic in older versions
    """The name of a model: torchvision's names and folders are completed."""

    name = "text"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Folders, and the names that begin with the text."""
        names = [name for name in image_models() if name.startswith(incomplete.lower())]
        # Folders first: in bash, click drops the names before that item.
        return [CompletionItem(incomplete, type="dir"), *map(CompletionItem, names)]


def image_models() -> list[str]:
    """The names of the demo network and of torchvision's models for images.

    They are read from its source files: importing it takes seconds.

    >>> "resnet34" in image_models()
    True
    """
    found = importlib.util.find_spec("torchvision")
    folders = found.submodule_search_locations if found is not None else None
    names = {"demo"}
    for file in Path(folders[0], "models").rglob("*.py") if folders else ():
        if file.parent.name not in _NOT_FOR_IMAGES:
            names.update(_MODEL.findall(file.read_text(encoding="utf-8")))
    return sorted(names)


def shell_in(environment: Mapping[str, str]) -> str:
    """The name of the user's shell.

    Raises:
        click.UsageError: It is none of `SHELLS`.
    """
    shell = Path(environment.get("SHELL", "")).name
    if shell not in SHELLS:
        raise click.UsageError(
            f"your shell ({shell or 'unknown'}) is none of {', '.join(SHELLS)}; name one: "
            "fmapboard completion bash"
        )
    return shell


def script(shell: str, commands: Mapping[str, click.Command]) -> str:
    """What a shell must evaluate so that it completes the commands.

    Args:
        shell: One of `SHELLS`.
        commands: By the name of their program.
    """
    kind: Any = get_completion_class(shell)
    parts = (
        kind(command, {}, name, f"_{name.upper()}_COMPLETE").source()
        for name, command in commands.items()
    )
    return "\n".join(parts)
