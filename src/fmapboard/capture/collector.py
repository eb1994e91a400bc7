"""``ActivationCollector``: reduces the tensors of one forward pass and its backward pass."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.parameter import is_lazy

from fmapboard.capture.attention import AttentionRows
from fmapboard.capture.attribution import AttributionPass, PendingAttributions
from fmapboard.capture.gradient_sums import GradientSums
from fmapboard.capture.guard import Guard
from fmapboard.capture.inputs import (
    PendingBatch,
    PendingInputImage,
    compared,
    image_batch,
    input_images,
)
from fmapboard.capture.isolation import aside
from fmapboard.capture.passes import CaptureListener, Side
from fmapboard.capture.taps import Tap
from fmapboard.capture.texts import PendingTexts, drawn_texts
from fmapboard.measure.batchnorm_gaps import BatchNormLayer, PendingGaps, running_state
from fmapboard.measure.experts import chosen_experts
from fmapboard.measure.kept_tokens import token_norms
from fmapboard.measure.norms import Factor
from fmapboard.measure.packing import reduce_together
from fmapboard.measure.reducer import PendingMeasurement, Reducer, with_note
from fmapboard.measure.statistics import PendingStatistics
from fmapboard.model.layers import clean_name
from fmapboard.model.tensors import Packed, Unread, first_tensor, is_observable, tensors, why_unread
from fmapboard.records import LayerCall, Normalization, PassCount, TensorKind

_MOST_HELD = 2**22
"""Bytes of extremes of planes that are held on an accelerator until they are reduced together."""


class BatchNormReader:
    """Reads the BatchNorm layers, SyncBatchNorm included, that update their statistics in a pass.

    Layers are left out in eval mode, and if they keep no statistics.

    Args:
        model: the unwrapped model, whose forward pass begins.

    Attributes:
        pending: what was read, once the pass has returned.
    """

    def __init__(self, model: nn.Module) -> None:
        self.pending: PendingGaps | None = None
        self._layers: dict[str, _BatchNorm] = {}
        for name, module in model.named_modules():
            if not isinstance(module, _BatchNorm) or not module.training:
                continue
            variance = module.running_var
            if variance is None or module.num_batches_tracked is None or is_lazy(variance):
                continue
            if module.track_running_stats:
                label = clean_name(name) or type(module).__name__
                self._layers[label] = module
        self._before = self._copied() if self._layers else None

    def ended(self) -> None:
        """Called when the pass has returned."""
        before = self._before
        self._before = None
        if before is None:
            return
        layers = []
        for name, module in self._layers.items():
            layer = BatchNormLayer(name, module.momentum, module.eps)
            layers.append(layer)
        after = self._copied()
        self.pending = PendingGaps(tuple(layers), before, after)

    def _copied(self) -> Packed:
        modules = list(self._layers.values())
        device = modules[0].running_var.device  # type: ignore[union-attr]  # it is kept
        with aside(device.type):
            return running_state(modules)


@dataclass(slots=True)
class ActivationCollector(CaptureListener):
    """A ``CaptureListener`` that reduces each tensor it receives and keeps only the result.

    Runs inside the user's forward and backward passes. Nothing it keeps shares memory with a live
    tensor.

    Attributes:
        reduce: measures one tensor.
        guard: times the work and handles its errors, under the layer's name.
        pictures: draw feature maps; False if a probe is drawn instead.
        numbers: collect statistics and histogram samples; False for a probe's pass.
        gradients: also collect the gradients of the layers' outputs.
        inputs_drawn: how many samples of the network's input to keep; None keeps all.
        normalization: mean and standard deviation per channel of the network's input, if known.
        loss_scale: factor by which a GradScaler scaled the loss; output gradients are divided by
            it.
        attribution: collects the attribution of the pass, or None.
        pending: the measurements so far, still on their devices.
        inputs: copies of the network's input images, still on their device.
        names_tokens: copy the ids of the texts that are drawn.
        texts: these copies, still on their device.
        compares_images: compare the images of the batch with each other.
        input_trains: a tensor that the network receives requires a gradient; None if not known.
        batch: the result.
        model: whose BatchNorm layers are read; None reads none.
        batch_norms: what the pass has changed in them.
        unread: by label, why the output of a layer call was not read.
        sums: follows the gradients of outputs.
    """

    reduce: Reducer
    guard: Guard
    pictures: bool = True
    numbers: bool = True
    gradients: bool = False
    inputs_drawn: int | None = 1
    normalization: Normalization | None = None
    loss_scale: Factor | None = None
    attribution: AttributionPass | None = None
    pending: list[PendingMeasurement] = field(default_factory=list)
    inputs: list[PendingInputImage] = field(default_factory=list)
    names_tokens: bool = False
    texts: list[PendingTexts] = field(default_factory=list)
    compares_images: bool = False
    batch: PendingBatch | None = None
    input_trains: bool | None = None
    model: nn.Module | None = None
    batch_norms: BatchNormReader | None = None
    unread: dict[str, Unread] = field(default_factory=dict)
    sums: GradientSums = field(init=False)
    _held: int = field(default=0, init=False)
    _reduced: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        attribution = self.attribution
        self.sums = GradientSums(self.guard) if attribution is None else attribution.sums

    def discard(self) -> None:
        """Drop everything collected, and ignore gradients of this pass that arrive later."""
        self.sums.discard()
        self.pending.clear()
        self._held = 0
        self._reduced = 0
        self.inputs.clear()
        self.texts.clear()
        self.unread.clear()
        self.batch = self.batch_norms = None
        if self.attribution is not None:
            self.attribution.discard()

    def begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Drop what an earlier pass left, and keep the network's input images."""
        self.discard()
        given = (args, kwargs)
        expected = self.reduce.sequences.are_expected
        depth = self.reduce.depth
        grids = self.reduce.sequences.grids
        if grids is not None:
            with self.guard("network input"):
                grids.begin(given)
        if self.names_tokens and self.pictures:
            with self.guard("tokens"):
                self.texts += drawn_texts(args, kwargs, self.reduce.samples)
        if self.model is not None:
            with self.guard("BatchNorm"):
                self.batch_norms = BatchNormReader(self.model)
        with self.guard("network input"):
            self.inputs += input_images(
                given, self.inputs_drawn, self.normalization, sequences=expected, depth=depth
            )
            if self.inputs:
                self._check_normalization(self.inputs[0])
            if self.attribution is not None:
                self.attribution.begins_on(self.inputs)
        if self.compares_images and not self.guard.is_disabled("training facts"):
            with self.guard("training facts"):
                images = image_batch(given, sequences=expected, depth=depth)
                self.batch = None if images is None else compared(images)
                self.input_trains = any(tensor.requires_grad for tensor in tensors(given))

    def _check_normalization(self, image: PendingInputImage) -> None:
        """Say once if the option does not fit the input's channels."""
        if self.normalization is None or image.normalization is not None:
            return
        channels = len(self.normalization[0])
        self.guard.hint(
            "normalization",
            f"normalization= has a mean and std for {channels} channels, but the input has "
            f"{len(image.values)}; the input is drawn as the network received it. Give one "
            "mean and one std per channel",
        )

    def ended(self) -> None:
        """Called when the forward pass has returned."""
        if self.batch_norms is not None:
            with self.guard("BatchNorm"):
                self.batch_norms.ended()

    def gradients_complete(self) -> None:
        """Called when the gradients of the step are complete."""
        self.sums.complete()
        if self.attribution is not None:
            self.attribution.gradients_complete()

    def captured(self, layer_call: LayerCall, side: Side, value: Any, module: nn.Module) -> None:
        """Reduce a layer's output or input immediately: the next operation may overwrite it."""
        part = layer_call.part
        if part is not None and part.unit == "branch":
            if self.numbers and not self.guard.is_disabled(layer_call.layer):
                with self.guard(layer_call.layer):
                    self.pending += branch_norm(layer_call, value, self.reduce)
            return
        if self.attribution is not None and side == "output":
            self.attribution.captured(layer_call, side, value, module)
            measured = self.attribution.layers.measured
            if not layer_call.pictures and layer_call.layer not in measured:
                return
        if self.guard.is_disabled(layer_call.layer):
            return
        with self.guard(layer_call.layer):
            if isinstance(value, AttentionRows):
                self._keep_rows(layer_call, value, module)
                return
            tensor = first_tensor(value)
            if tensor is None:
                return
            why = why_unread(tensor)
            if why is not None:
                if side == "output":
                    self.unread[layer_call.label] = why
                return
            router = layer_call.part
            if router is not None and router.unit == "expert" and side == "output":
                with aside(tensor.device.type):
                    choice = chosen_experts(value, router)
                if choice is not None:
                    self._keep(layer_call, "feature_maps", choice, module)
                return
            grids = self.reduce.sequences.grids
            if grids is not None and side == "output":
                grids.saw(layer_call, tensor.shape)
            kind: TensorKind = "feature_maps" if side == "output" else "inputs"
            self._keep(layer_call, kind, tensor, module)
            if side == "input" or not tensor.requires_grad:
                return
            if self._follows(layer_call, tensor):
                self._follow(layer_call, tensor, module)

    def attributions(self, *, own_images: bool) -> PendingAttributions | None:
        """The attribution of the pass; ``own_images``: the step draws other input images."""
        if self.attribution is None:
            return None
        images = tuple(self.inputs) if own_images else ()
        return self.attribution.pending(self.loss_scale, images)

    def _keep(
        self, layer_call: LayerCall, kind: TensorKind, tensor: Tensor, module: nn.Module
    ) -> None:
        pictures = self.pictures or kind == "gradients_of_maps"
        with aside(tensor.device.type, tensor.nbytes):
            reduced = self.reduce(
                layer_call, kind, tensor, module, pictures=pictures, numbers=self.numbers
            )
            self.pending.append(reduced)
            numbers = reduced.statistics
            if not tensor.is_cpu and isinstance(numbers, PendingStatistics):
                self._held += numbers.parts[0].nbytes
                if self._held > _MOST_HELD:
                    self._reduce_held()

    def _keep_rows(self, layer_call: LayerCall, value: AttentionRows, module: nn.Module) -> None:
        """Keep rows of attention and, unless only pictures are drawn, the numbers of the heads."""
        device = value.call.device.type
        with aside(device, value.call.nbytes):
            rows = value.read(self.reduce.samples)
        self._keep(layer_call, "feature_maps", rows.values, module)
        kept = with_note(self.pending[-1], rows.note)
        self.pending[-1] = kept._replace(heads=rows.numbers if self.numbers else None)

    def _reduce_held(self) -> None:
        """Reduce what was read of each plane since the last time, which frees its memory."""
        reduce_together(self.pending, self._reduced)
        self._reduced = len(self.pending)
        self._held = 0

    def _follows(self, layer_call: LayerCall, tensor: Tensor) -> bool:
        """Whether the gradient of an output is collected."""
        if layer_call.type == Tap.__name__:
            return not tensor.is_leaf  # a hook on a parameter would stay after the step
        return self.gradients and layer_call.pictures

    def _follow(self, layer_call: LayerCall, tensor: Tensor, module: nn.Module) -> None:
        """Reduce an output's gradient in the backward pass, the sum if there are several."""
        layer_call = replace(layer_call, floor=None)  # gradients have no off value
        position: int | None = None

        def record(gradient: Tensor | None, passes: PassCount) -> None:
            nonlocal position
            if gradient is not None:
                unscaled = self._unscaled(gradient)
                self._keep(layer_call, "gradients_of_maps", unscaled, module)
                if position is None:
                    position = len(self.pending) - 1
                else:
                    self.pending[position] = self.pending.pop()
            if position is not None:
                measured = self.pending[position]
                self.pending[position] = measured._replace(passes=passes)

        self.sums.follow(layer_call.layer, tensor, _observable, record)

    def _unscaled(self, gradient: Tensor) -> Tensor:
        """The gradient of the unscaled loss, in float32 or wider if the loss was scaled."""
        scale = self.loss_scale
        if scale is None:
            return gradient
        with aside(gradient.device.type):
            if isinstance(scale, Tensor):
                scale = scale.to(gradient.device, non_blocking=True)
            if gradient.dtype != torch.float64:
                gradient = gradient.detach().float()
            return gradient / scale


def _observable(gradient: Tensor) -> Tensor | None:
    return gradient if is_observable(gradient) else None


def branch_norm(layer_call: LayerCall, value: Any, reduce: Reducer) -> list[PendingMeasurement]:
    """Only the norm of what an MLP adds to its block; nothing if that cannot be read."""
    tensor = first_tensor(value)
    if tensor is None or why_unread(tensor) is not None or not tensor.is_floating_point():
        return []
    with aside(tensor.device.type):
        features_second = tensor.detach().movedim(-1, 1)  # [N, C, ...]
        norms = token_norms(features_second)
    shape = tuple(tensor.shape)
    return [
        PendingMeasurement(layer_call, "feature_maps", shape, reduce.quantize, token_norms=norms)
    ]
