"""Parse the tags of the tab's records, and sort names in natural order."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from fmapboard.formats import tags

_TAGS = 2**15
"""Tags that are kept parsed; a large network has several thousand, the same in each run."""
_MOST_DIGITS = 300
"""Digits of a number that are compared; Python does not convert any number of them."""
_OF_LAYERS = (tags.RECORD, tags.FIRST_RECORD)
_DIGITS = re.compile(r"(\d+)", re.ASCII)


class LayerTag(NamedTuple):
    """The layer of a watched model that the tag of a record names.

    Attributes:
        name: the ``name`` given to ``watch``, or empty.
        label: the layer's name, with ``.call2`` and so on for a later call in one forward pass.
    """

    name: str
    label: str

    @property
    def prefix(self) -> str:
        """Prefix of every tag of this model."""
        return tags.prefix(self.name)

    @property
    def key(self) -> str:
        """The tag of the layer's records."""
        return f"{self.prefix}{tags.RECORD}{self.label}"

    @property
    def first_key(self) -> str:
        """The tag of the layer's first-step records, which include the pictures."""
        return f"{self.prefix}{tags.FIRST_RECORD}{self.label}"


@lru_cache(_TAGS)
def layer_of(tag: str) -> LayerTag | None:
    """The layer of a record's or a first-step record's tag; None for any other tag."""
    name, own = tags.split(tag)
    group, _, label = own.partition("/")
    return LayerTag(name, label) if label and f"{group}/" in _OF_LAYERS else None


@lru_cache(_TAGS)
def overview_of(tag: str) -> str | None:
    """The name of the model whose overview series, or first one, has this tag; None for others."""
    name, own = tags.split(tag)
    return name if own in (tags.OVERVIEW, tags.FIRST_OVERVIEW) else None


def input_tag(name: str, sample: int) -> str:
    """The tag of the Images series with a model's input."""
    return tags.prefix(name) + tags.network_input(sample)


def natural(text: str) -> tuple[tuple[bool, int, str], ...]:
    """Sort key that puts ``layer2`` before ``layer10``, and numbers before letters."""
    return tuple(
        (False, int(part[:_MOST_DIGITS]), "") if part.isdecimal() else (True, 0, part)
        for part in _DIGITS.split(text)
        if part
    )
