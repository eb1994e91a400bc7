"""Names of the tokens of texts: a file of its own, since a function of the user's gives them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from fmapboard.errors import ConfigurationError
from fmapboard.records import LayerMeasurement, Texts

NameTokens = Callable[[list[int]], Sequence[str]]
"""The name of each of some ids."""

_LONGEST_NAME = 40
"""Characters of a name that are kept."""
_LONGEST_TEXT = 4096
"""Longer texts are not named: readers read at most as many entries of a list."""


def named(texts: Texts, name_tokens: NameTokens) -> Texts:
    """The texts with the names of their tokens, unless they are too long.

    Raises:
        ConfigurationError: what the function returns is no list with a string for each id.
        Exception: what the function itself raises.
    """
    if texts.ids.shape[1] > _LONGEST_TEXT:
        return texts
    found = []
    for ids in texts.ids.tolist():
        names = name_tokens(ids)
        is_list = isinstance(names, (list, tuple)) and len(names) == len(ids)
        if not is_list or not all(isinstance(name, str) for name in names):
            raise ConfigurationError(
                f"tokens= returned {_described(names)} for {len(ids)} ids: expected a list of "
                f"{len(ids)} strings"
            )
        kept = [name[:_LONGEST_NAME].encode("utf-8", "replace").decode() for name in names]
        found.append(tuple(kept))
    return replace(texts, names=tuple(found))


def _described(names: Any) -> str:
    kind = type(names).__name__
    if not isinstance(names, (list, tuple)):
        return f"a {kind}"
    kinds = sorted({type(name).__name__ for name in names})
    return f"a {kind} of {len(names)} ({', '.join(kinds)})"


class StoredNames:
    """What the records of rows of attention say of the tokens of a step.

    The names of a text are stored once per step, in the first record of rows over its tokens.

    Args:
        texts: of the step.
    """

    def __init__(self, texts: Sequence[Texts]) -> None:
        self._texts = [text for text in texts if text.names]
        self._places: dict[int, str] = {}  # length of a text -> label of the record with its names

    def keys(self, rows: LayerMeasurement) -> dict[str, Any]:
        """``tokens`` or ``tokens_of`` for the header of a record; neither for other layers."""
        drawn = rows.planes
        if rows.layer_call.unit != "head" or drawn is None:
            return {}
        length = drawn.shape[2]
        samples = len(drawn.pixels)
        for text in self._texts:
            if text.ids.shape[1] != length or samples > len(text.names):
                continue
            label = self._places.setdefault(length, rows.layer_call.label)
            if label != rows.layer_call.label:
                return {"tokens_of": label}
            return {"tokens": [list(names) for names in text.names[:samples]]}
        return {}
