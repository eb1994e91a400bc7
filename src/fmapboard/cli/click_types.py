"""Commands whose help opens with an example to paste, and the type of a palette's name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
"""Context settings of every command."""


class ExampleCommand(click.Command):
    """A command whose help opens with an example to paste.

    Attributes:
        example: The example.
        common: Flags of the options to list first, in that order; empty for a single list.
    """

    example = ""
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


def command_with(example: str, common: Sequence[str] = ()) -> type[ExampleCommand]:
    """The class of a command with this example, and these common options."""
    return type("Command", (ExampleCommand,), {"example": example, "common": tuple(common)})


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
