"""The page in a notebook: within Jupyter's limit, and a frame that cannot reach the notebook."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from fmapboard import show
from fmapboard.errors import ConfigurationError

FORMAT_1 = Path(__file__).parents[2] / "golden" / "format_1"


def test_the_page_is_in_a_frame_of_its_own_origin() -> None:
    shown = show(FORMAT_1 / "training", height=500)
    frame = re.fullmatch(r"<iframe (.*) srcdoc=\"([^\"]*)\"></iframe>", shown._repr_html_(), re.S)
    assert frame is not None
    attributes, page = frame.groups()
    assert 'sandbox="allow-scripts allow-downloads"' in attributes
    assert 'height="500"' in attributes
    assert html.unescape(page) == shown.page
    assert shown.page.startswith("<!doctype html>")


def test_what_does_not_fit_is_left_out_and_named() -> None:
    whole = show([FORMAT_1 / "training", FORMAT_1 / "images"])
    assert (whole.runs, whole.left_out) == (("training", "images"), ())
    size = len(whole.page)
    small = show([FORMAT_1 / "training"], max_mb=0.2)
    assert len(small.page) < size
    assert "pictures of 1 of 3 logged steps, to stay below 0.2 MB" in small.left_out
    assert "left_out=('pictures of 1 of 3 logged steps" in repr(small)


@pytest.mark.parametrize("height", [0, -1, 1.5, True, "720"])
def test_a_height_that_is_none_is_refused(height: object) -> None:
    with pytest.raises(ConfigurationError, match=r"height=.*: expected a height in px, at least 1"):
        show(FORMAT_1, height=height)  # type: ignore[arg-type]  # what is tested
