"""Parse the stored text that says where the first non-finite value of a run was found."""

from __future__ import annotations

import re

from fmapboard.checks.health_table import FirstNonfinite

_LAYER = re.compile(r"layer `([^`]+)` \([^`]*, call (\d+)\)")


def parsed(step: int, name: str, text: str) -> FirstNonfinite:
    """What a text says.

    Args:
        step: the logged step of the text.
        name: name of the model, as in ``watch(name=...)``; "" for none.
        text: the text, in markdown.
    """
    at = _LAYER.search(text)
    call = f".call{at[2]}" if at is not None and at[2] != "1" else ""
    return {
        "step": step,
        "text": text.partition(": ")[2].replace("`", ""),
        "name": name,
        "label": at[1] + call if at is not None else None,
    }
