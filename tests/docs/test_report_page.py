"""The page about reports agrees with the command."""

from __future__ import annotations

import re
from pathlib import Path

import click

from fmapboard.cli.main import report_command

PAGE = (Path(__file__).parents[2] / "docs" / "report.md").read_text()


def test_the_page_lists_every_option_with_its_default_and_uses_only_those() -> None:
    options = [each for each in report_command.params if isinstance(each, click.Option)]
    listed = re.findall(r"^\| `(--[a-z-]+)` \| (?:`(.*)`)? *\|", PAGE, re.M)
    expected = {o.opts[0]: str(o.default) if o.show_default else "" for o in options}
    assert dict(listed) == expected
    (block,) = re.findall(r"```sh\n(fmapboard report.*?)```", PAGE, re.S)
    assert set(re.findall(r" (--?[a-z-]+) ", block)) <= {f for o in options for f in o.opts}
