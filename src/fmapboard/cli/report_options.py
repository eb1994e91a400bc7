"""The options of ``fmapboard report``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fmapboard.cli.click_types import HELP, command_with
from fmapboard.cli.shared_options import layers

_PATH = click.Path(path_type=Path)


@click.command(
    "report",
    cls=command_with("fmapboard report runs/demo -o demo.html"),
    context_settings=HELP,
    short_help="Write runs into one HTML file that opens without TensorBoard.",
)
@click.argument("runs", nargs=-1, required=True, type=_PATH, metavar="RUN...")
@click.option(
    "--out", "-o", type=_PATH, default=Path("report.html"), show_default=True, help="The HTML file."
)
@click.option(
    "--steps",
    type=click.IntRange(min=1),
    default=8,
    show_default=True,
    help="Pictures of at most N steps per run: first, last, where faults began, others between.",
)
@layers("Layers to include, such as 'layer1.*'; '!*.downsample.*' excludes layers.")
@click.option(
    "--max-mb",
    type=click.FloatRange(min=0, min_open=True),
    default=20,
    show_default=True,
    help="Size limit; to keep it, maps are drawn smaller, then steps and layers are left out.",
)
@click.option("--no-input", is_flag=True, help="Leave out pictures of the network's input.")
def report_command(**options: Any) -> None:
    """Write the Feature maps tab of each RUN directory into one HTML file.

    The file opens in a browser without TensorBoard and network. It contains the input images; maps
    may reveal them even with --no-input.
    """
    from fmapboard.cli.report import run_report

    run_report(**options)
