"""The probe images of ``watch``, their maps and attribution; and ``attribution()``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from fmapboard.capture.attribution import (
    AttributionLayers,
    AttributionPass,
    PendingAttributions,
)
from fmapboard.capture.collector import ActivationCollector
from fmapboard.capture.guard import Guard
from fmapboard.capture.hooks import HookRegistry
from fmapboard.capture.inputs import PendingInputImage, image_batch, input_images
from fmapboard.capture.passes import CaptureListener, Side
from fmapboard.capture.side_pass import Probe, run_side_pass
from fmapboard.errors import ConfigurationError, WarnOnce, first_line, raise_interrupt
from fmapboard.measure.layout import Sequences
from fmapboard.measure.reducer import Reducer
from fmapboard.model.distributed import are_flattened, is_sharded
from fmapboard.model.given import check_input, check_model, without_batch_axis
from fmapboard.model.layers import WatchedLayers, unwrap
from fmapboard.model.tensors import first_tensor, tensors
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
    reduce = Reducer(sequences=Sequences.of(inner))
    seen = _Listener(AttributionPass(layers, reduce, guard), normalization)
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


def check_probe(model: nn.Module, probe: Probe | None) -> None:
    """Run the model on the probe once, so that an unsuitable probe is rejected before training.

    This also copies the probe to the model's device. A model with lazy parameters is not run.

    Raises:
        ConfigurationError: the probe holds no images, or the model cannot run on it.
    """
    if probe is None:
        return
    images = [] if isinstance(probe.images, list) else tensors(probe.images)
    if not images:
        raise ConfigurationError(
            f"probe={type(probe.images).__name__}: expected a tensor of images [N, C, H, W] (use "
            "torch.stack(images) for a list), or a tuple of the model's positional arguments"
        )
    if any(image.dim() == 0 or image.numel() == 0 for image in images):
        raise ConfigurationError(
            f"probe of shape {list(images[0].shape)}: expected at least one sample"
        )
    if any(map(is_lazy, model.parameters())):
        return
    handled = sys.exc_info()[1]
    try:
        run_side_pass(model, probe)
    except Exception as error:
        raise_interrupt(error, handled)
        shapes = ", ".join(str(list(tensor.shape)) for tensor in images)
        fix = "; add a batch axis: probe=x[None]" * bool(without_batch_axis(probe.images))
        raise ConfigurationError(
            f"model.forward() failed on the probe of shape {shapes}: {first_line(error)}{fix}"
        ) from error


NO_PROBE = (
    "the probe is not drawn: parameters are sharded (FSDP), and a forward pass of fmapboard's own "
    "would gather them from all ranks"
)
"""What to say of ``probe=`` with sharded parameters."""


class ProbePass:
    """Runs a model on the probe images, and records what its layers return and their attribution.

    Args:
        watched: the watched layers of the model.
        options: the probe, how the network's input was normalized, and ``attribution_loss``.
        reducer: measures the tensors.
        guard: handles errors, under ``"probe"`` and ``"attribution"``.

    Attributes:
        probe: the images, or None.
    """

    def __init__(
        self, watched: WatchedLayers, options: Options, reducer: Reducer, guard: Guard
    ) -> None:
        self._model, self._options = watched.model, options
        self._reducer, self._guard = replace(reducer, samples=None), guard
        self.probe = None if options.probe is None else Probe(options.probe)
        images = first_tensor(options.probe)
        samples = 1 if images is None else len(images)
        self._attributed = AttributionLayers(options.attribution, samples)

    def record(
        self, registry: HookRegistry, sides: tuple[Side, ...]
    ) -> tuple[ActivationCollector | None, PendingAttributions | None]:
        """The feature maps of the probe, and the attribution of ``attribution_loss`` on it.

        Args:
            registry: the layers to record; its own hooks ignore the passes.
            sides: ``"output"``, ``"input"`` or both.

        Returns:
            None for what is not to be drawn, and after an error.
        """
        maps, heat, probe = None, None, self.probe
        if probe is None:
            return None, None
        if are_flattened(self._model) or is_sharded(self._model):  # since ``watch``
            self._guard.hint("sharded probe", NO_PROBE)
            return None, None
        loss, normalization = self._options.attribution_loss, self._options.normalization
        with self._guard("probe"), registry.paused():
            seen = ActivationCollector(
                self._reducer,
                self._guard,
                numbers=False,
                inputs_drawn=None,
                normalization=normalization,
            )
            layers = registry.layers
            same = registry.effective
            own = HookRegistry(self._model, lambda name, _: name in layers, effective=same)
            own.tap_choice = registry.tap_choice
            with own.listening(seen, sides=sides):
                run_side_pass(self._model, probe)
            maps = seen
        if loss is not None and not self._guard.is_disabled("attribution"):
            with self._guard("attribution"), registry.paused():
                own_loss, layers_drawn = partial(_mean_loss, loss), self._attributed
                found = _attributions(
                    self._model, probe, own_loss, layers_drawn, self._guard, normalization
                )
                heat = replace(found, of_probe=True)
        return maps, heat


def _mean_loss(loss: Callable[[Any], Tensor], output: Any) -> Tensor:
    found = loss(output)
    if not isinstance(found, Tensor) or found.dim() > 1:
        raise ConfigurationError(
            f"attribution_loss returned {_what(found)}: expected one number, or one per image"
        )
    return found.mean()
