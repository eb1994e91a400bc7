"""``fmapboard docs``: print a page of the documentation, or one of its sections."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from rich.markdown import Markdown

from fmapboard.errors import ConfigurationError, closest, few
from fmapboard.printing import console

_HEADING = re.compile(r"^(#+) (.*)$")


def print_docs(place: str | None) -> None:
    """Print a page, formatted if this is a terminal; without a place, list the pages.

    Args:
        place: name of a page, or page and section: ``"checks"``, ``"checks#dead"``.

    Raises:
        ConfigurationError: there is no such page or section; the message names the closest.
    """
    folder = _folder()
    found = sorted(path.relative_to(folder) for path in folder.rglob("*.md"))
    pages = {path.with_suffix("").as_posix(): folder / path for path in found}
    pages.pop("README", None)
    if place is None:
        for name, path in pages.items():
            title = path.read_text(encoding="utf-8").splitlines()[0].lstrip("# ")
            print(f"{name:26}{title}")
        return
    name, _, anchor = place.partition("#")
    name = name.removeprefix("docs/").removesuffix(".md")  # as the README writes it
    if name not in pages:
        raise ConfigurationError(
            f"no page {name!r}{closest(name, pages) or '; fmapboard docs lists them'}"
        )
    text = pages[name].read_text(encoding="utf-8")
    shown = section(text, anchor) if anchor else text
    if sys.stdout.isatty():
        console().print(Markdown(shown, hyperlinks=False))
    else:
        print(shown)


def section(page: str, anchor: str) -> str:
    """The section of a page under the heading with this anchor, its subsections included.

    Args:
        page: markdown.
        anchor: the heading in lower case, with hyphens for spaces and without other punctuation.

    Raises:
        ConfigurationError: there is no such heading; the message names the closest.

    Example:
        >>> section("# A\\nx\\n## My b\\ny\\n### c\\n# D", "my-b")
        '## My b\\ny\\n### c'
    """
    lines, headings, is_code = page.splitlines(), [], False
    for number, line in enumerate(lines):
        is_code ^= line.startswith("```")
        heading = _HEADING.match(line)
        if heading is not None and not is_code:
            own = re.sub(r"[^\w -]", "", heading[2].lower()).replace(" ", "-")
            headings.append((number, len(heading[1]), own))
    known = [own for _, _, own in headings]
    if anchor.lower() not in known:
        near = closest(anchor, known) or f"; its first ones: {few(known, 6)}"
        raise ConfigurationError(f"no section {anchor!r}{near}")
    (begin, level, _), *later = headings[known.index(anchor.lower()) :]
    end = next((number for number, other, _ in later if other <= level), len(lines))
    return "\n".join(lines[begin:end])


def _folder() -> Path:
    """The pages: inside an installed package, in ``docs`` in a checkout."""
    inside = Path(__file__).parents[2] / "_docs"
    return inside if inside.is_dir() else Path(__file__).parents[4] / "docs"
