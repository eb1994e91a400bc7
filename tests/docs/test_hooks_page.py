"""Each row of the page about hooks leads to an example; test_pages_run.py runs them."""

from __future__ import annotations

import re
from pathlib import Path

TEXT = (Path(__file__).parents[2] / "docs" / "hooks.md").read_text()


def test_each_row_leads_to_a_section_with_an_example_that_prints_its_result() -> None:
    sections = {
        heading.lower().replace(" ", "-"): body
        for heading, body in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", TEXT, re.M | re.S)
    }
    rows = re.findall(r"^\| \[.*?\]\(#(.*?)\) \|", TEXT, re.M)
    assert rows == list(sections)
    assert len(rows) >= 14
    for anchor, body in sections.items():
        (first, *_) = re.findall(r"```python\n(.*?)```", body, re.S) or [""]
        blocks = "".join(re.findall(r"```python\n(.*?)```", body, re.S))
        assert "fmapboard." in blocks or "gradients[" in first, anchor
        assert re.search(r"^print\(.*\)  # ", blocks, re.M), anchor


def test_no_result_is_printed_where_it_is_not_compared() -> None:
    assert re.findall(r"^ +print\(", TEXT, re.M) == []
