"""How tags are taken apart."""

from __future__ import annotations

from fmapboard.formats import tags


def test_a_model_name_may_have_dots() -> None:
    assert tags.split("a.b.update_ratio/c.d") == ("a.b", "update_ratio/c.d")
