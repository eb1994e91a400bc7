"""Attribution in a forward pass of our own: of the probe images, and ``attribution()``."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
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
from fmapboard.capture.inputs import PendingInputImage, input_images
from fmapboard.capture.passes import CaptureListener, Side
from fmapboard.capture.side_pass import Probe, untouched
from fmapboard.errors import ConfigurationError, WarnOnce
from fmapboard.measure.reducer import Reducer
from fmapboard.model.given import check_input, check_model
from fmapboard.model.layers import WatchedLayers, unwrap
from fmapboard.model.tensors import first_tensor, map_tensors
from fmapboard.options import Options
from fmapboard.records import Attribution, LayerCall, Normalization


class AttributionListener(CaptureListener):
    """A ``CaptureListener`` that passes on what it receives.

    Args:
        own: collects the attribution.
        normalization: how the images were normalized, undone before they are drawn.

    Attributes:
        images: the input images of the pass.
    """

    def __init__(self, own: AttributionPass, normalization: Normalization | None = None) -> None:
        self.own, self._normalization = own, normalization
        self.images: list[PendingInputImage] = []

    def begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """See ``CaptureListener``."""
        self.own.discard()
        self.images = input_images((args, kwargs), None, self._normalization, sequences=False)
        self.own.begin(self.images)

    def captured(self, layer_call: LayerCall, side: Side, value: Any, module: nn.Module) -> None:
        """See ``CaptureListener``."""
        self.own.captured(layer_call, value, module)


def floating_like(model: nn.Module, otherwise: Tensor) -> Tensor:
    """The model's first floating-point parameter, whose device and dtype its input should have."""
    return next((p for p in model.parameters() if p.is_floating_point()), otherwise)


@contextlib.contextmanager
def differentiable(
    model: nn.Module, hooked: Collection[str], seen: AttributionListener, device_type: str
) -> Iterator[None]:
    """Run a block in eval mode, with gradients and without autocast; the model is as before after.

    Args:
        model: the unwrapped model.
        hooked: names of the layers whose outputs ``seen`` gets.
        seen: receives the passes in the block.
        device_type: the type of device that the block computes on.
    """
    registry = HookRegistry(model, lambda name, _: name in hooked)
    with (
        registry.listening(seen),
        untouched(model, training=False),
        torch.inference_mode(False),
        torch.enable_grad(),
        torch.autocast(device_type, enabled=False, cache_enabled=False),
    ):
        yield


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
    own = unwrap(model)
    like = floating_like(own, images)
    chosen = AttributionLayers(layers, len(images))
    hooked = chosen.also(own)
    collected = AttributionPass.of(chosen, Reducer.for_model(own), Guard(_Raises()))
    assert collected is not None  # `layers` is not False
    seen = _ImageListener(collected)
    with differentiable(own, hooked, seen, like.device.type):
        leaf = images.detach().to(like.device, like.dtype, copy=True).requires_grad_()
        output = own(leaf.clone())  # the first layer may overwrite its input
        scores, names = _scores(output, target, len(images))
        # With respect to the input alone, so that no parameter gets a gradient.
        torch.autograd.grad(-scores.sum(), [leaf], allow_unused=True)
    found = seen.own.pending(None, tuple(seen.images)).to_host(())
    values = scores.detach().tolist()
    return tuple(
        replace(one, batch=1, score=names[one.sample], value=values[one.sample]) for one in found
    )


class _Raises(WarnOnce):
    """Raises errors at once: they are the caller's."""

    def error(self, about: str, error: BaseException, consequence: str) -> None:
        raise error


class _ImageListener(AttributionListener):
    """Refuses what is no batch of images."""

    def begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        super().begin(args, kwargs)
        if not self.images:
            shape = list(args[0].shape)
            raise ConfigurationError(f"images of shape {shape}: expected [N, 1 or 3, H, W]")


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


Loss = Callable[[Any], Tensor]


class ProbeAttribution:
    """Computes the attribution of ``attribution_loss`` on the probe images in eval mode.

    The gradient is taken with respect to the images, so no parameter gets one, and neither the
    hooks of optimizers nor those of DistributedDataParallel run.

    Args:
        model: the unwrapped model.
        probe: the images.
        loss: maps the model's output on them to the loss: one number, or one per image.
        chosen: the option ``attribution``.
        normalization: how the images were normalized, undone before they are drawn.
        guard: handles errors, under ``"attribution"``.
    """

    def __init__(
        self,
        model: nn.Module,
        probe: Probe,
        loss: Loss,
        chosen: bool | str,
        normalization: Normalization | None,
        guard: Guard,
    ) -> None:
        self._model, self._probe, self._loss, self._guard = model, probe, loss, guard
        self._normalization = normalization
        images = first_tensor(probe.images)
        self._layers = AttributionLayers(chosen, 1 if images is None else len(images))
        self._reducer = Reducer.for_model(model)

    @classmethod
    def of(
        cls, watched: WatchedLayers, probe: Probe | None, options: Options, guard: Guard
    ) -> ProbeAttribution | None:
        """None unless ``attribution_loss`` is given, and a probe."""
        if options.attribution_loss is None or probe is None:
            return None
        loss, chosen = options.attribution_loss, options.attribution
        return cls(watched.model, probe, loss, chosen, options.normalization, guard)

    def record(self, registry: HookRegistry) -> PendingAttributions:
        """The attribution of the probe images; empty after an error.

        Args:
            registry: the hooks of the open step, which ignore the pass.
        """
        if self._guard.is_disabled("attribution"):
            return NO_ATTRIBUTIONS
        with self._guard("attribution"), registry.paused():
            return self._record()
        return NO_ATTRIBUTIONS  # after an error, which the guard has reported

    def _record(self) -> PendingAttributions:
        model = unwrap(self._model)
        hooked = self._layers.also(model)
        collected = AttributionPass.of(self._layers, self._reducer, self._guard)
        assert collected is not None  # `attribution` is not False
        seen = AttributionListener(collected, self._normalization)
        like = floating_like(model, torch.empty(0))
        with differentiable(model, hooked, seen, like.device.type):
            leaves: list[Tensor] = []

            def leaf(tensor: Tensor) -> Tensor:
                if not tensor.is_floating_point():
                    return tensor
                leaves.append(tensor.detach().clone().requires_grad_())
                return leaves[-1].clone()  # the first layer may overwrite its input

            output = model(*map_tensors(self._probe.arguments(model), leaf))
            torch.autograd.grad(_mean(self._loss(output)), leaves, allow_unused=True)
        found = collected.pending(None, tuple(seen.images))
        return PendingAttributions(found.parts, None, found.images, of_probe=True)


def _mean(loss: Any) -> Tensor:
    if not isinstance(loss, Tensor) or loss.dim() > 1:
        found = f"tensor {list(loss.shape)}" if isinstance(loss, Tensor) else type(loss).__name__
        raise ConfigurationError(
            f"attribution_loss returned {found}: expected one number, or one per image"
        )
    return loss.mean()
