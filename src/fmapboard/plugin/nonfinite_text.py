"""The stored text that tells where the first non-finite value of a run was found."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from fmapboard import tags
from fmapboard.plugin.data_source import Reader
from fmapboard.plugin.health_table import FirstNonfinite

_LAYER = re.compile(r"layer `([^`]+)` \([^`]*, call (\d+)\)")


def first_nonfinite(reader: Reader, run: str, prefixes: Iterable[str]) -> FirstNonfinite | None:
    """The earliest text on a first non-finite value; a restarted run has several."""
    stored = reader.texts(run, [prefix + tags.FIRST_NONFINITE for prefix in prefixes])
    texts = [(d.step, tag, _text(d.numpy)) for tag, data in stored.items() for d in data]
    if not texts:
        return None
    step, tag, text = min(texts)
    at = _LAYER.search(text)
    call = f".call{at[2]}" if at is not None and at[2] != "1" else ""
    return {
        "step": step,
        "text": text.partition(": ")[2].replace("`", ""),
        "name": tag.removesuffix(tags.FIRST_NONFINITE).removesuffix("."),
        "label": at[1] + call if at is not None else None,
    }


def _text(stored: Any) -> str:
    """A stored text, which is an array of bytes or of strings."""
    values = np.asarray(stored, object).ravel()
    value = values[0] if values.size else ""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
