"""The attribution of a class for the recorded images of ``visualize``, and its name."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from torch import Tensor, nn

from fmapboard.capture.own_attribution import class_attributions
from fmapboard.errors import escaped
from fmapboard.records import Attribution, StepData
from fmapboard.session.step import PendingStep

SIDE = 256
"""Length in px of the longer side of a picture; smaller inputs are not enlarged."""


def scored(name: str, score: tuple[str, float], classes: Sequence[str] = ()) -> str:
    """One line: the class whose attribution was drawn, and its score.

    Args:
        name: Of the image.
        score: Name and value of the score.
        classes: Names of the classes, if they are known.

    Example:
        >>> scored("cat.jpg", ("class 1", 12.3456), ("dog", "tabby"))
        'cat.jpg: class 1 (tabby), score 12.35'
    """
    number = score[0].removeprefix("class ")
    called = classes[int(number)] if number.isdecimal() and int(number) < len(classes) else ""
    shown = f"{score[0]} ({called})" if called else score[0]
    return f"{escaped(name, keep='')}: {escaped(shown, keep='')}, score {score[1]:.4g}"


def class_names(spec: str, weights: str, model: nn.Module) -> tuple[str, ...]:
    """The classes of a network with its own pretrained weights, in order; empty if unknown.

    Args:
        spec: As in ``load_model``.
        weights: ``"DEFAULT"`` or the name of torchvision weights.
        model: The network; the configuration of one of transformers names its classes.
    """
    labels = getattr(getattr(model, "config", None), "id2label", None)
    if isinstance(labels, Mapping):
        return tuple(str(labels.get(number, "")) for number in range(len(labels)))
    if spec == "demo":
        return tuple(importlib.import_module("fmapboard.demo.network").CLASSES)
    models = importlib.import_module("torchvision.models")
    if ":" in spec or spec.lower() not in models.list_models():
        return ()
    entries = models.get_model_weights(spec.lower())
    name = weights.removeprefix(f"{entries.__name__}.")
    entry = entries.DEFAULT if weights.upper() == "DEFAULT" else entries.__members__.get(name)
    return () if entry is None else tuple(entry.meta.get("categories", ()))


def with_attributions(
    steps: Iterable[PendingStep], model: nn.Module, images: Tensor, number: int | None
) -> Iterator[PendingStep]:
    """The recorded images of a batch together with their attribution.

    Args:
        steps: One per image, in order.
        model: Any classifier.
        images: [B, C, H, W], as the model takes them; each runs alone.
        number: The class; None for the class with the highest score of each image.

    Raises:
        ConfigurationError: The model does not return scores, or has no such class.
    """
    for step, image in zip(steps, images, strict=True):
        found = class_attributions(model, image[None], number)
        yield _added(step, found)


def _added(step: PendingStep, found: tuple[Attribution, ...]) -> PendingStep:
    def to_host() -> StepData:
        data = step.to_host()
        drawn = data.inputs[0] if data.inputs else None  # de-normalized
        own = tuple(replace(one, image=drawn or one.image) for one in found)
        return replace(data, attributions=own)

    return replace(step, to_host=to_host)
