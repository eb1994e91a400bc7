"""``fmapboard docs``: print a page of the documentation, or one of its sections."""

from __future__ import annotations

import re
import sys
import tarfile
from pathlib import Path
from typing import NamedTuple

from rich.markdown import Markdown

from fmapboard.errors import ConfigurationError, closest, few
from fmapboard.printing import console

_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n+", re.DOTALL)
_HEADING = re.compile(r"^(#+) (.*)$")
_PARTS = "checks/"
"""Start of the names of pages that are parts of another one, and are not listed."""


def print_docs(place: str | None) -> None:
    """Print a page, formatted if this is a terminal; without a place, list the pages.

    Args:
        place: name of a page, or page and section: ``"checks"``, ``"checks#dead"``. The section
            may be one of a page in the folder of that name, ``checks/dead.md``.

    Raises:
        ConfigurationError: there is no such page or section; the message names the closest.
    """
    pages = _pages()
    if place is None:
        for name, text in pages.items():
            if not name.startswith(_PARTS):
                title = text.splitlines()[0].lstrip("# ")
                print(f"{name:26}{title}")
        return
    name, _, anchor = place.partition("#")
    name = name.removeprefix("docs/").removesuffix(".md")  # as the README writes it
    if name not in pages:
        advice = closest(name, pages) or "; fmapboard docs lists them"
        raise ConfigurationError(f"no page {name!r}{advice}")
    shown = pages[name]
    if anchor:
        parts = [text for part, text in pages.items() if part.startswith(f"{name}/")]
        shown = section("\n".join([shown, *parts]), anchor)
    if sys.stdout.isatty():
        console().print(Markdown(shown, hyperlinks=False))
    else:
        print(shown)


class _Heading(NamedTuple):
    """A heading: the number of its line, 1 for the page's title and more below, and its anchor."""

    line: int
    level: int
    anchor: str


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
    lines = page.splitlines()
    headings: list[_Heading] = []
    is_code = False
    for number, line in enumerate(lines):
        if line.startswith("```"):
            is_code = not is_code
        match = _HEADING.match(line)
        if match is not None and not is_code:
            marks, title = match.groups()
            words = re.sub(r"[^\w -]", "", title.lower())
            heading = _Heading(number, level=len(marks), anchor=words.replace(" ", "-"))
            headings.append(heading)
    known = [heading.anchor for heading in headings]
    if anchor.lower() not in known:
        near = closest(anchor, known) or f"; its first ones: {few(known, 6)}"
        raise ConfigurationError(f"no section {anchor!r}{near}")
    place = known.index(anchor.lower())
    first = headings[place]
    end = len(lines)
    for heading in headings[place + 1 :]:
        if heading.level <= first.level:
            end = heading.line
            break
    return "\n".join(lines[first.line : end])


def _pages() -> dict[str, str]:
    """Name -> text of each page, without what stands in front of it for programs.

    The pages are in an archive of an installed package, and in ``docs`` in a checkout.
    """
    package = Path(__file__).parents[2]
    archive = package / "_docs.tar.xz"
    if archive.is_file():
        found = _packed(archive)
        skill = package / "_skills" / "fmapboard" / "SKILL.md"
        found["agents.md"] = skill.read_text(encoding="utf-8")
    else:
        folder = package.parents[1] / "docs"
        paths = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*.md")}
        found = {name: path.read_text(encoding="utf-8") for name, path in paths.items()}
        found.pop("README.md", None)
    pages = {name.removesuffix(".md"): _FRONT_MATTER.sub("", found[name]) for name in found}
    return dict(sorted(pages.items()))


def _packed(archive: Path) -> dict[str, str]:
    """File name -> text of each page of an archive, which ``hatch_build.py`` makes."""
    found = {}
    with tarfile.open(archive, "r:xz") as packed:
        for entry in packed:
            page = packed.extractfile(entry)
            if page is not None:
                found[entry.name] = page.read().decode("utf-8")
    return found
