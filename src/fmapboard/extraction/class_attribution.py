"""``attribution``: where larger activations raise the score of a class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from fmapboard.capture.attribution import AttributionLayers
from fmapboard.capture.guard import Guard
from fmapboard.capture.inputs import image_batch
from fmapboard.capture.probe import attributions_of
from fmapboard.capture.side_pass import Probe
from fmapboard.errors import ConfigurationError, WarnOnce
from fmapboard.extraction.call_trace import check_input
from fmapboard.model.given import check_model, returned
from fmapboard.model.tensors import first_tensor
from fmapboard.records import Attribution

Target = int | Sequence[int] | Tensor | Callable[[Any], Tensor] | None
"""Whose score: a class, one class per image, None for the class with the highest score of each
image, or a function from the model's output to one score per image."""


def attribution(
    model: nn.Module, images: Tensor, target: Target = None, layers: bool | str = True
) -> dict[str, Tensor]:
    """Return where larger activations raise the score of a class: LayerCAM in eval mode.

    The model, its gradients and the random states are left unchanged, and it runs once, on all
    images together.

    Args:
        model: Any module that takes a batch of images.
        images: Float tensor [N, C, H, W] with 1 or 3 channels, prepared as for the model.
        target: A class, one class per image, None for the class with the highest score of each
            image, or a function from the model's output to a tensor of scores [N].
        layers: True for the last activation of each resolution, or a glob on layer names, as
            ``attribution`` of ``watch``.

    Returns:
        A dict in call order: label of the layer call -> f32 [N, h, w] on the CPU, at least 0, in
        the resolution of the layer and the unit of the score.

    Raises:
        LayerNotFound: The glob matches no layer.
        ConfigurationError: An argument is invalid, or the model returns no scores [N, classes].

    Example:
        >>> import torch
        >>> from torch import nn
        >>> net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        ...                     nn.Flatten(), nn.Linear(8, 5))
        >>> {name: tuple(heat.shape) for name, heat in
        ...  attribution(net, torch.rand(2, 3, 10, 8), target=4).items()}
        {'1': (2, 8, 6)}
    """
    maps: dict[str, list[Tensor]] = {}
    found = class_attributions(model, images, target, layers)
    for attributed in found:
        heat = torch.from_numpy(attributed.heat).clamp(min=0)
        label = attributed.layer_call.label
        maps.setdefault(label, []).append(heat)
    return {label: torch.stack(heats) for label, heats in maps.items()}


def class_attributions(
    model: nn.Module,
    images: Tensor,
    target: Target = None,
    layers: bool | str = True,
    *,
    classes: Sequence[str] = (),
) -> tuple[Attribution, ...]:
    """As ``attribution``, with signs and norms of gradients; ``classes`` are their names, if known.

    Returns:
        One record per layer call and image, in call order.
    """
    check_model(model)
    check_input(images, what="images")
    if image_batch((images,), sequences=False) is None:
        raise ConfigurationError(
            f"images of shape {list(images.shape)}: expected [N, 1 or 3, H, W]"
        )
    scored: list[tuple[str, float]] = []

    def loss(output: Any) -> Tensor:
        scores, names = _scores(output, target, len(images), classes)
        values = scores.detach().tolist()
        scored.extend(zip(names, values, strict=True))
        return -scores.sum()

    chosen = AttributionLayers(layers, len(images))
    guard = Guard(_Raises())
    pending = attributions_of(model, Probe(images), loss, chosen, guard)
    found = []
    for attributed in pending.to_host(()):
        score, value = scored[attributed.sample]
        found.append(replace(attributed, batch=1, score=score, value=value))
    return tuple(found)


class _Raises(WarnOnce):
    """Raises errors at once: they are the caller's."""

    def error(self, about: str, error: BaseException, consequence: str) -> None:
        raise error


def _scores(
    output: Any, target: Target, images: int, class_names: Sequence[str]
) -> tuple[Tensor, list[str]]:
    """One score per image, and the names of what they measure."""
    if callable(target):
        scores = target(output)
        if not isinstance(scores, Tensor) or scores.shape != (images,):
            raise ConfigurationError(
                f"target returned {returned(scores)}: expected scores [{images}]"
            )
        return scores, ["the given score"] * images
    logits = first_tensor(output)
    if logits is None or logits.dim() != 2 or len(logits) != images:
        what = returned(output if logits is None else logits)
        raise ConfigurationError(
            f"the model returned {what}: expected scores [{images}, classes]; pass a function of "
            f"the output that returns [{images}] as target="
        )
    if target is None:
        classes = logits.detach().argmax(1).tolist()
    else:
        classes = torch.as_tensor(target).expand(images).tolist()
    known = logits.shape[1]
    for number in classes:
        if not isinstance(number, int) or not 0 <= number < known:
            raise ConfigurationError(
                f"class {number} does not exist: the model has 0…{known - 1}; give one of these"
            )
    index = torch.tensor(classes, device=logits.device)[:, None]  # [N, 1]
    scores = logits.gather(1, index)[:, 0]  # [N]
    return scores, [_named(number, class_names) for number in classes]


def _named(number: int, class_names: Sequence[str]) -> str:
    name = class_names[number] if number < len(class_names) else ""
    return f"class {number} ({name})" if name else f"class {number}"
