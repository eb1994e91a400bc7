"""The stored text that tells where the first non-finite value of a run was found."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from fmapboard.checks.health_table import FirstNonfinite
from fmapboard.checks.nonfinite_text import parsed
from fmapboard.formats import tags
from fmapboard.plugin.data_source import Reader


def first_nonfinite(reader: Reader, run: str, prefixes: Iterable[str]) -> FirstNonfinite | None:
    """The earliest text on a first non-finite value; a restarted run has several."""
    stored = reader.texts(run, [prefix + tags.FIRST_NONFINITE for prefix in prefixes])
    texts = [(d.step, tag, _text(d.numpy)) for tag, data in stored.items() for d in data]
    if not texts:
        return None
    step, tag, text = min(texts)
    return parsed(step, tag.removesuffix(tags.FIRST_NONFINITE).removesuffix("."), text)


def _text(stored: Any) -> str:
    """A stored text, which is an array of bytes or of strings."""
    values = np.asarray(stored, object).ravel()
    value = values[0] if values.size else ""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
