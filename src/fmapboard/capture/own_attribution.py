"""Attribution in a forward pass of our own: of the probe images, and ``attribution()``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from fmapboard.capture.attribution import (
    NO_ATTRIBUTIONS,
    AttributionLayers,
    AttributionPass,
    PendingAttributions,
)
from fmapboard.capture.guard import Guard
from fmapboard.capture.hooks import HookRegistry
from fmapboard.capture.inputs import PendingInputImage, image_batch, input_images
from fmapboard.capture.passes import CaptureListener, Side
from fmapboard.capture.side_pass import Probe, run_side_pass
from fmapboard.errors import ConfigurationError, WarnOnce
from fmapboard.measure.reducer import Reducer
from fmapboard.model.given import check_input, check_model
from fmapboard.model.layers import WatchedLayers, unwrap
from fmapboard.model.tensors import first_tensor
from fmapboard.options import Options
from fmapboard.records import Attribution, LayerCall, Normalization


class _Listener(CaptureListener):
    """Passes on what it receives.

    Args:
        own: collects the attribution.
        normalization: how the images were normalized, undone before they are drawn.

    Attributes:
        images: the input images of the pass.
    """

    def __init__(self, own: AttributionPass, normalization: Normalization | None) -> None:
        self.own, self._normalization = own, normalization
        self.images: list[PendingInputImage] = []

    def begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """See ``CaptureListener``."""
        self.images = input_images((args, kwargs), None, self._normalization, sequences=False)
        self.own.begin(self.images)

    def captured(self, layer_call: LayerCall, side: Side, value: Any, module: nn.Module) -> None:
        """See ``CaptureListener``."""
        self.own.captured(layer_call, value, module)


def _attributions(
    model: nn.Module,
    images: Probe,
    loss: Callable[[Any], Tensor],
    layers: AttributionLayers,
    guard: Guard,
    normalization: Normalization | None = None,
) -> PendingAttributions:
    """The attribution of a loss in one pass of the model in eval mode.

    Args:
        model: any module.
        images: what it runs on.
        loss: one number, from the model's output.
        layers: which layers, and how many samples.
        guard: handles errors, under ``"attribution"``.
        normalization: how the images were normalized, undone before they are drawn.
    """
    inner = unwrap(model)
    hooked = layers.also(inner)
    seen = _Listener(AttributionPass(layers, Reducer.for_model(inner), guard), normalization)
    registry = HookRegistry(inner, lambda name, _: name in hooked)
    with registry.listening(seen):
        run_side_pass(inner, images, loss)
    return seen.own.pending(None, tuple(seen.images))


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
    of_tokens = {  # of each resolution the last one that has a map
        one.heat.shape: one.layer_call.label for one in found if one.tokens and (one.heat > 0).any()
    }
    for one in found:
        label = one.layer_call.label
        if not one.tokens or layers is not True or label == of_tokens.get(one.heat.shape):
            maps.setdefault(label, []).append(torch.from_numpy(one.heat).clamp(min=0))
    return {label: torch.stack(heats) for label, heats in maps.items()}


def class_attributions(
    model: nn.Module, images: Tensor, target: Target = None, layers: bool | str = True
) -> tuple[Attribution, ...]:
    """As ``attribution``, with signs, norms of gradients and all layers that hold tokens.

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
        scores, names = _scores(output, target, len(images))
        scored.extend(zip(names, scores.detach().tolist(), strict=True))
        return -scores.sum()

    chosen, guard = AttributionLayers(layers, len(images)), Guard(_Raises())
    found = _attributions(model, Probe(images), loss, chosen, guard).to_host(())
    return tuple(
        replace(one, batch=1, score=scored[one.sample][0], value=scored[one.sample][1])
        for one in found
    )


class _Raises(WarnOnce):
    """Raises errors at once: they are the caller's."""

    def error(self, about: str, error: BaseException, consequence: str) -> None:
        raise error


def _scores(output: Any, target: Target, images: int) -> tuple[Tensor, list[str]]:
    """One score per image, and the names of what they measure."""
    if callable(target):
        scores = target(output)
        if not isinstance(scores, Tensor) or scores.shape != (images,):
            raise ConfigurationError(f"target returned {_what(scores)}: expected scores [{images}]")
        return scores, ["the given score"] * images
    logits = first_tensor(output)
    if logits is None or logits.dim() != 2 or len(logits) != images:
        raise ConfigurationError(
            f"the model returned {_what(output if logits is None else logits)}: expected scores "
            f"[{images}, classes]; pass a function of the output that returns [{images}] as target="
        )
    if target is None:
        classes = logits.detach().argmax(1).tolist()
    else:
        classes = torch.as_tensor(target).expand(images).tolist()
    known = logits.shape[1]
    wrong = next((c for c in classes if not isinstance(c, int) or not 0 <= c < known), None)
    if wrong is not None:
        raise ConfigurationError(f"class {wrong} does not exist: the model has 0…{known - 1}")
    index = torch.tensor(classes, device=logits.device)[:, None]
    return logits.gather(1, index)[:, 0], [f"class {number}" for number in classes]


def _what(value: Any) -> str:
    return f"tensor {list(value.shape)}" if isinstance(value, Tensor) else type(value).__name__


class ProbeAttribution:
    """Computes the attribution of ``attribution_loss`` on the probe images in eval mode.

    Args:
        watched: the watched layers of the model.
        probe: the images.
        loss: maps the model's output on them to the loss: one number, or one per image.
        options: which layers are shown, and how the images were normalized.
        guard: handles errors, under ``"attribution"``.
    """

    def __init__(
        self,
        watched: WatchedLayers,
        probe: Probe,
        loss: Callable[[Any], Tensor],
        options: Options,
        guard: Guard,
    ) -> None:
        self._model, self._probe, self._loss = watched.model, probe, loss
        self._normalization, self._guard = options.normalization, guard
        images = first_tensor(probe.images)
        samples = 1 if images is None else len(images)
        self._layers = AttributionLayers(options.attribution, samples)

    @classmethod
    def of(
        cls, watched: WatchedLayers, probe: Probe | None, options: Options, guard: Guard
    ) -> ProbeAttribution | None:
        """None unless ``attribution_loss`` is given, and a probe."""
        loss = options.attribution_loss
        return None if loss is None or probe is None else cls(watched, probe, loss, options, guard)

    def record(self, registry: HookRegistry) -> PendingAttributions:
        """The attribution of the probe images; empty after an error.

        Args:
            registry: the hooks of the open step, which ignore the pass.
        """
        found = NO_ATTRIBUTIONS
        if not self._guard.is_disabled("attribution"):
            with self._guard("attribution"), registry.paused():
                found = _attributions(
                    self._model, self._probe, self._mean_loss, self._layers, self._guard,
                    self._normalization,
                )  # fmt: skip
        return replace(found, of_probe=True)

    def _mean_loss(self, output: Any) -> Tensor:
        loss = self._loss(output)
        if not isinstance(loss, Tensor) or loss.dim() > 1:
            raise ConfigurationError(
                f"attribution_loss returned {_what(loss)}: expected one number, or one per image"
            )
        return loss.mean()
