"""Code blocks and links of Markdown pages."""

from __future__ import annotations

import re
from pathlib import Path


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)


def broken_links(page: Path) -> list[str]:
    """Relative links to files that do not exist."""
    links: list[str] = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
    return [link for link in links if not (page.parent / link).exists()]


def is_part(block: str, script: str) -> bool:
    """Whether a script contains the lines of a block, at any indentation and in any layout."""
    return _compact(block) in _compact(script)


def _compact(text: str) -> str:
    return re.sub(r"\s+|,(?=\s*[)\]}])", "", text)
