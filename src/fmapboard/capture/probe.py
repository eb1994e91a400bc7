"""The probe images of ``watch``, their maps and attribution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from fmapboard.capture.attribution import AttributionLayers, AttributionPass, PendingAttributions
from fmapboard.capture.collector import ActivationCollector
from fmapboard.capture.guard import Guard
from fmapboard.capture.hooks import HookRegistry
from fmapboard.capture.inputs import input_images
from fmapboard.capture.passes import Side
from fmapboard.capture.side_pass import Probe, run_side_pass
from fmapboard.capture.twin import NoTwin, Twin
from fmapboard.errors import ConfigurationError, first_line
from fmapboard.interrupts import raise_interrupt
from fmapboard.measure.layout import Sequences
from fmapboard.measure.reducer import Reducer
from fmapboard.model.distributed import are_flattened, is_sharded
from fmapboard.model.given import returned, without_batch_axis
from fmapboard.model.layers import WatchedLayers, unwrap
from fmapboard.model.tensors import first_tensor, tensors
from fmapboard.options import Options
from fmapboard.records import Normalization

T = TypeVar("T")


def attributions_of(
    model: nn.Module,
    images: Probe,
    loss: Callable[[Any], Tensor],
    layers: AttributionLayers,
    guard: Guard,
    *,
    normalization: Normalization | None = None,
    keeps_parameters: bool = False,
) -> PendingAttributions:
    """The attribution of a loss in one pass of the model in eval mode.

    Args:
        model: any module.
        images: what it runs on.
        loss: one number, from the model's output.
        layers: which layers, and how many samples.
        guard: handles errors, under ``"attribution"``.
        normalization: how the images were normalized, undone before they are drawn.
        keeps_parameters: refuse an operation that writes into a parameter.

    Raises:
        NoTwin: the pass is refused.
    """
    inner = unwrap(model)
    hooked = layers.also(inner)
    seen = AttributionPass(layers, Reducer(sequences=Sequences.of(inner)), guard)
    drawn = input_images(images.arguments(inner), None, normalization, sequences=False)
    seen.begins_on(drawn)
    registry = HookRegistry(inner, lambda name, _: name in hooked)
    twin = Twin(inner)
    with registry.listening(seen, twin=twin):
        run_side_pass(twin, images, loss, keeps_parameters=keeps_parameters)
    return seen.pending(None, tuple(drawn))


def check_probe(model: nn.Module, probe: Probe) -> None:
    """Run the model on the probe once, so that an unsuitable probe is rejected before training.

    This also copies the probe to the model's device. A model with lazy parameters is not run.

    Raises:
        ConfigurationError: the probe holds no images, or the model cannot run on it.
    """
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
    try:
        run_side_pass(model, probe, keeps_parameters=True)
    except NoTwin:
        return  # ``ProbePass`` says why it is not drawn
    except Exception as error:
        raise_interrupt(error)
        shapes = ", ".join(str(list(tensor.shape)) for tensor in images)
        fix = ""
        if without_batch_axis(probe.images):
            fix = "; add a batch axis: probe=x[None]"
        raise ConfigurationError(
            f"model.forward() failed on the probe of shape {shapes}: {first_line(error)}{fix}"
        ) from error


_MORE = "; fmapboard docs setups says which models have one"

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
        probe: the images.
    """

    def __init__(
        self, watched: WatchedLayers, options: Options, reducer: Reducer, guard: Guard
    ) -> None:
        self._model = watched.model
        self._options = options
        self._reducer = replace(reducer, samples=None)
        self._guard = guard
        self._is_refused = False
        self.probe = Probe(options.probe)
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
        if self._is_refused:
            return None, None
        if are_flattened(self._model) or is_sharded(self._model):  # since ``watch``
            self._guard.hint("sharded probe", NO_PROBE)
            return None, None
        maps = None
        heat = None
        with self._guard("probe"), registry.paused():
            maps = self._allowed(partial(self._maps, registry, sides))
        has_loss = self._options.attribution_loss is not None and not self._is_refused
        if has_loss and not self._guard.is_disabled("attribution"):
            with self._guard("attribution"), registry.paused():
                heat = self._allowed(self._attributions)
        return maps, heat

    def _allowed(self, run: Callable[[], T]) -> T | None:
        """What a pass returns; None if it is refused, which is said once."""
        try:
            return run()
        except NoTwin as error:
            self._is_refused = True
            self._guard.hint("no probe", f"the probe is not drawn: {error}{_MORE}")
            return None

    def _maps(self, registry: HookRegistry, sides: tuple[Side, ...]) -> ActivationCollector:
        layers = registry.layers
        own = HookRegistry(
            self._model,
            lambda name, _: name in layers,
            effective=registry.effective,
            routers=self._options.routers,
        )
        own.tap_choice = registry.tap_choice
        seen = ActivationCollector(
            self._reducer,
            self._guard,
            numbers=False,
            inputs_drawn=None,
            normalization=self._options.normalization,
            names_tokens=self._options.tokens is not None,
        )
        twin = Twin(self._model)
        with own.listening(seen, sides=sides, twin=twin, attention=True):
            run_side_pass(twin, self.probe, keeps_parameters=True)
        return seen

    def _attributions(self) -> PendingAttributions:
        found = attributions_of(
            self._model,
            self.probe,
            self._mean_loss,
            self._attributed,
            self._guard,
            normalization=self._options.normalization,
            keeps_parameters=True,
        )
        return found._replace(of_probe=True)

    def _mean_loss(self, output: Any) -> Tensor:
        assert self._options.attribution_loss is not None  # else it is not called
        found = self._options.attribution_loss(output)
        if not isinstance(found, Tensor) or found.dim() > 1:
            raise ConfigurationError(
                f"attribution_loss returned {returned(found)}: expected one number, or one per "
                "image"
            )
        return found.mean()
