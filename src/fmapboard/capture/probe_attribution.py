"""Attribution of the probe: a pass of its own, and a backward pass to the images alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from fmapboard.capture.attribution import AttributionPass
from fmapboard.capture.attribution_layers import AttributionLayers
from fmapboard.capture.guard import Guard
from fmapboard.capture.hooks import HookRegistry
from fmapboard.capture.pending_attributions import NO_ATTRIBUTIONS, PendingAttributions
from fmapboard.capture.side_attribution import AttributionListener, differentiable, floating_like
from fmapboard.capture.side_pass import Probe
from fmapboard.errors import ConfigurationError
from fmapboard.measure.reducer import Reducer
from fmapboard.model.distributed import is_sharded
from fmapboard.model.layers import unwrap
from fmapboard.model.tensors import first_tensor, map_tensors
from fmapboard.options import Options
from fmapboard.records import Normalization

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
        cls, model: nn.Module, probe: Probe | None, options: Options, guard: Guard
    ) -> ProbeAttribution | None:
        """None unless ``attribution_loss`` is given, or if parameters are sharded."""
        if options.attribution_loss is None or probe is None:
            return None
        if is_sharded(model):
            guard.hint(
                "attribution of sharded parameters",
                "attribution_loss= is not supported with sharded parameters (FSDP): no attribution "
                "is logged",
            )
            return None
        loss, chosen = options.attribution_loss, options.attribution
        return cls(model, probe, loss, chosen, options.normalization, guard)

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

            output = model(*map_tensors(self._probe.arguments(like), leaf))
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
