"""What a logged step shows if it is no step of a training: an image, or a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

Kind = Literal["image", "checkpoint"]


@dataclass(frozen=True, slots=True)
class StepSource:
    """What a step of ``visualize`` shows.

    Attributes:
        kind: ``"image"`` if each step is another image, ``"checkpoint"`` if each is the same image
            with other weights.
        name: name of the image's or the checkpoint's file.
    """

    kind: Kind
    name: str


def source_text(source: StepSource | None, step: int) -> str:
    """A step in words.

    Example:
        >>> source_text(StepSource("image", "cat.jpg"), 3)
        'image 3 (cat.jpg)'
        >>> source_text(StepSource("checkpoint", "ckpt_20.pt"), 20), source_text(None, 20)
        ('step 20 (ckpt_20.pt)', 'step 20')
    """
    kind = "image" if source is not None and source.kind == "image" else "step"
    # Images that are given as tensors have a number for a name.
    name = "" if source is None or source.name.isdecimal() else f" ({source.name})"
    return f"{kind} {step}{name}"


def is_of_images(sources: Mapping[int, StepSource | None]) -> bool:
    """True if every step is another image, so that nothing is before or after anything else."""
    return bool(sources) and all(of is not None and of.kind == "image" for of in sources.values())


def parsed_source(raw: Any) -> StepSource | None:
    """The source in a header; None if there is none, or a kind that this version does not know."""
    if not isinstance(raw, Mapping) or raw.get("kind") not in get_args(Kind):
        return None
    return StepSource(cast(Kind, raw["kind"]), str(raw.get("name", "")))
