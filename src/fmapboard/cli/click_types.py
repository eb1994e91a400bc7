"""Commands whose help opens with an example to paste, and the type of a palette's name."""

from __future__ import annotations

from typing import Any

import click

HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
"""Context settings of every command."""


class ExampleCommand(click.Command):
    """A command whose help opens with an example to paste."""

    example = ""

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the example, then the usage."""
        formatter.write(f"{self.example}\n\n")
        super().format_usage(ctx, formatter)


def command_with(example: str) -> type[ExampleCommand]:
    """The class of a command with this example."""
    return type("Command", (ExampleCommand,), {"example": example})


class ExampleGroup(click.Group):
    """The top-level command; its help also opens with an example to paste."""

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the example, then the usage."""
        formatter.write("fmapboard demo\n\n")
        super().format_usage(ctx, formatter)


class Palette(click.Choice):  # type: ignore[type-arg]  # generic since click 8.2
    """Names of palettes; ``gray`` is accepted for ``grey``."""

    def convert(self, value: Any, *context: Any) -> Any:
        """Return the palette's name."""
        return super().convert("grey" if value == "gray" else value, *context)
