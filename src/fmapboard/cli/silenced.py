"""``visualize --silence``: run a network without some channels, and compare its predictions."""

from __future__ import annotations

import contextlib
import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from rich.table import Table
from torch import Tensor, nn

from fmapboard.capture.side_pass import run_side_pass
from fmapboard.cli.table import add_row
from fmapboard.errors import ConfigurationError
from fmapboard.interventions.channels import ChannelChange, silence
from fmapboard.interventions.context import intervene
from fmapboard.model.tensors import first_tensor

TOP = 5
"""Classes with the highest probabilities that are printed, of each of the two predictions."""


@dataclass(frozen=True, slots=True)
class Compared:
    """The probabilities of an image's top classes, and whether the first one changed.

    Attributes:
        rows: Class, probability before, probability after; the highest before comes first.
        changed: True if another class has the highest probability.
    """

    rows: tuple[tuple[int, float, float], ...]
    changed: bool


class Silenced:
    """Silences channels of a network around its forward passes.

    Args:
        model: Any module.
        given: The values of ``--silence``, ``LAYER:CHANNELS`` or ``LAYER`` each.
        names: Names of the classes in the order of the scores; empty if unknown.

    Attributes:
        compared: Step -> what is known about its image; without entries if the network returns no
            scores [N, classes].

    Raises:
        ConfigurationError: A value is invalid, or there is no such layer or channel.
    """

    def __init__(self, model: nn.Module, given: Sequence[str], names: Sequence[str]) -> None:
        changes: dict[str | re.Pattern[str] | type[nn.Module], list[ChannelChange]] = {}
        for value in given:
            layer, change = parsed(value)
            changes.setdefault(layer, []).append(change)
        self._model, self._given, self._names = model, given, names
        self._intervention = intervene(model, changes)
        self.compared: dict[int, Compared] = {}

    def __str__(self) -> str:
        return f"silenced: {', '.join(self._given)}"

    @contextlib.contextmanager
    def around(self, images: Tensor, first: int) -> Iterator[None]:
        """Silence the channels inside the block, and compare the predictions for its images.

        Args:
            images: [B, C, H, W], as the network takes them; each runs alone.
            first: The step of the first image.
        """
        before = list(map(self._probabilities, images))
        with self._intervention:
            after = list(map(self._probabilities, images))
            for number, (one, other) in enumerate(zip(before, after, strict=True)):
                if one is not None and other is not None:
                    self.compared[first + number] = _compared(one, other)
            yield

    def _probabilities(self, image: Tensor) -> Tensor | None:
        """f64 [classes] of an image [C, H, W]; None if the network returns no scores."""
        scores = first_tensor(run_side_pass(self._model, image[None]))
        if scores is None or scores.dim() != 2 or scores.shape[0] != 1 or scores.shape[1] < 2:
            return None
        if len(self._names) != scores.shape[1]:
            self._names = ()
        return scores[0].double().softmax(0).cpu()

    def table(self, step: int) -> Table | str:
        """The prediction for an image before and after, for the terminal."""
        found = self.compared.get(step)
        if found is None:
            return "no prediction: the network returns no class scores [N, classes]"
        table = Table(box=None, header_style="bold", pad_edge=False)
        table.add_column("class", justify="right")
        if self._names:
            table.add_column("name")
        table.add_column("before", justify="right")
        table.add_column("after", justify="right")
        for number, before, after in found.rows:
            name = self._names[number : number + 1] if self._names else ()
            add_row(table, number, *name, f"{before:.2%}", f"{after:.2%}")
        return table

    def summary(self) -> str:
        """For how many images another class has the highest probability."""
        changed = sum(one.changed for one in self.compared.values())
        return (
            f"another class has the highest probability in {changed} of {len(self.compared)} images"
        )


def parsed(value: str) -> tuple[str, ChannelChange]:
    """The layer, or glob, and the channels of a value of ``--silence``.

    >>> parsed("layer1.0.conv1:3,17")
    ('layer1.0.conv1', silence([3, 17]))

    Raises:
        ConfigurationError: The value is invalid.
    """
    layer, colon, numbers = value.partition(":")
    channels = [int(n) for n in numbers.split(",") if n.strip().isdecimal()] if colon else None
    if not layer or (channels is not None and len(channels) < len(numbers.split(","))):
        raise ConfigurationError(
            f"--silence {value!r}: expected LAYER:CHANNELS, such as layer1.0.conv1:3,17, or LAYER"
        )
    return layer, silence(channels)


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


def _compared(before: Tensor, after: Tensor) -> Compared:
    most = min(TOP, len(before))
    top = {*before.topk(most).indices.tolist(), *after.topk(most).indices.tolist()}
    rows = [(number, float(before[number]), float(after[number])) for number in top]
    changed = bool(torch.ne(before.argmax(), after.argmax()))
    return Compared(tuple(sorted(rows, key=lambda row: -row[1])), changed)
