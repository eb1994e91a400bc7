"""Completion of the commands in a shell, by click."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


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
