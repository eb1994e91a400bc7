"""Names of series: which tags are layers of ours, and in which order people expect names."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fmapboard import tags

_DIGITS = re.compile(r"(\d+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class LayerTag:
    """A layer of a watched model, as its record's tag names it.

    ``name`` is that of ``watch(name=…)``, empty without one; ``label`` is the layer with its call.
    """

    name: str
    label: str

    @property
    def prefix(self) -> str:
        """Stands in front of every tag of this model."""
        return tags.prefix(self.name)

    @property
    def key(self) -> str:
        """The tag of the layer's records."""
        return f"{self.prefix}{tags.RECORD}{self.label}"

    @property
    def first_key(self) -> str:
        """The tag of its first step's record, grids included."""
        return f"{self.prefix}{tags.FIRST_RECORD}{self.label}"


def layer_of(tag: str) -> LayerTag | None:
    """The layer that a record's tag names, or a first step's; None for a tag that is not ours."""
    group, _, label = tag.partition("/")
    name, _, marker = group.rpartition(".")
    ours = marker in (tags.RECORD.rstrip("/"), tags.FIRST_RECORD.rstrip("/"))
    return LayerTag(name, label) if ours and label else None


def input_tag(name: str, sample: int) -> str:
    """The tag of the Images series of a model's input."""
    return tags.prefix(name) + tags.network_input(sample)


def natural(text: str) -> tuple[tuple[bool, int, str], ...]:
    """A sort key that puts ``layer2`` before ``layer10``, and numbers before letters."""
    return tuple(
        (False, int(part), "") if part.isdecimal() else (True, 0, part)
        for part in _DIGITS.split(text)
        if part
    )
