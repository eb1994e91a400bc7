"""Attribution from the training step: keep activations until their gradients arrive.

LayerCAM of the loss: ``relu(-dL/dA) * A`` summed over channels, on the activation's device. P.-T.
Jiang, C.-B. Zhang, Q. Hou, M.-M. Cheng, Y. Wei: LayerCAM: Exploring Hierarchical Class Activation
Maps for Localization (2021), equations 4 to 6, with the negative gradient of the loss in place of
the gradient of a class score.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from fmapboard.capture.gradient_sums import GradientSums, keeps_graph
from fmapboard.capture.guard import Guard
from fmapboard.capture.inputs import PendingInputImage
from fmapboard.capture.isolation import aside
from fmapboard.capture.passes import CaptureListener, Side
from fmapboard.measure.layout import Axes, as_maps, axes_of
from fmapboard.measure.norms import Factor
from fmapboard.measure.reducer import Reducer
from fmapboard.model.layers import named_layers
from fmapboard.model.roles import Role, activations, ends_in_function, roles
from fmapboard.model.tensors import first_tensor, is_observable
from fmapboard.records import ONE_PASS, Attribution, InputImage, LayerCall, PassCount

_MOST_SEEN = 4096
"""How many outputs are remembered; images of many sizes have many."""

Size = tuple[int, int]
Key = tuple[str, torch.Size, tuple[torch.Size, Axes] | None]
"""A layer call, the shape of its output, and shape and axes of the output before it."""


Seen = tuple[Axes, Size | None]
"""The axes of an output, and height and width of its maps; None if it is no maps."""


def heat(gradient: Tensor, activation: Tensor) -> tuple[Tensor, Tensor]:
    """Attribution and gradient norm of each sample, without waiting for the device.

    Args:
        gradient: [S, C, H, W], dL/dA.
        activation: [S, C, H, W].

    Returns:
        The negative of the heat map f32 [S, H, W], and the 2-norms of the gradients f32 [S].
    """
    wide = gradient.to(torch.float32)
    norms = torch.linalg.vector_norm(wide, dim=(1, 2, 3))  # [S]
    product = wide.clamp(max=0).mul_(activation)  # [S, C, H, W]
    return product.sum(1), norms


class PendingAttribution(NamedTuple):
    """The attribution of the drawn samples at one layer call, still on the device.

    Attributes:
        layer_call: the layer call.
        negative: f32 [S, H, W], the negative of the heat map of the scaled loss.
        norms: f32 [S], norms of the gradients of the scaled loss.
        batch: number of samples in the batch.
        tokens: the layer returns tokens.
        passes: the backward passes that the gradient is the sum of.
    """

    layer_call: LayerCall
    negative: Tensor
    norms: Tensor
    batch: int
    tokens: bool
    passes: PassCount


class PendingAttributions(NamedTuple):
    """The attributions of a logged step.

    Attributes:
        parts: one per layer call.
        scale: factor by which a GradScaler scaled the loss.
        images: the input images, unless they are those that the step draws.
        of_probe: the loss is ``attribution_loss`` on the probe.
    """

    parts: tuple[PendingAttribution, ...] = ()
    scale: Factor | None = None
    images: tuple[PendingInputImage, ...] = ()
    of_probe: bool = False

    def to_host(self, drawn: tuple[InputImage, ...]) -> tuple[Attribution, ...]:
        """Wait for the device and divide out the loss scale.

        Args:
            drawn: the input images that the step draws, used unless ``images`` has others.
        """
        if self.images:
            drawn = tuple(image.to_host() for image in self.images)
        of_sample = {image.sample: image for image in drawn}
        scale = 1.0 if self.scale is None else float(self.scale)
        found = list[Attribution]()
        for part in self.parts:
            norms = part.norms.tolist()
            for sample, norm in enumerate(norms):
                negative = part.negative[sample].cpu().numpy()
                attribution = Attribution(
                    layer_call=part.layer_call,
                    sample=sample,
                    heat=negative / -scale,
                    gradient=norm / scale,
                    batch=part.batch,
                    image=of_sample.get(sample),
                    tokens=part.tokens,
                    of_probe=self.of_probe,
                    passes=part.passes,
                )
                found.append(attribution)
        return tuple(found)


class AttributionLayers:
    """Which layers of a model are shown as attribution.

    Args:
        chosen: the option ``attribution`` of ``watch``.
        samples: how many samples are drawn.

    Attributes:
        chosen: as passed.
        samples: as passed.
        roles: clean name -> role of the layers that may be shown; empty if ``chosen`` is False.
        measured: those that would be hooked without attribution too, although they are not drawn.
        selects: True if the last activation of each resolution is selected among them.
        overtaken: the calls and sizes of maps after which, in the last pass, another one came.
        seen: what is known of outputs, by ``Key``.
    """

    def __init__(self, chosen: bool | str, samples: int) -> None:
        self.chosen = chosen
        self.samples = samples
        self.selects = not isinstance(chosen, str)
        self.roles: dict[str, Role] = {}
        self.measured: frozenset[str] = frozenset()
        self.overtaken: set[tuple[str, Size]] = set()
        self.seen: dict[Key, Seen] = {}

    def also(self, model: nn.Module) -> dict[str, nn.Module]:
        """The layers to hook besides those that are drawn, by name.

        Raises:
            LayerNotFound: the glob matches no layer.
        """
        measured = activations(model)
        self.measured = frozenset(measured)
        if self.chosen is False:
            return measured
        self.roles = roles(model, self.chosen)
        named = named_layers(model)
        drawn = {name: named[name] for name in self.roles}
        return {**measured, **drawn}


_MOST_STRETCHED = 2.0
"""Maps whose aspect differs from the input's by more than this factor are no maps of the input."""


@dataclass(slots=True, eq=False)
class _Kept:
    """An output that may be shown.

    Attributes:
        layer_call: the layer call.
        role: its role.
        output: the live tensor, which a surrounding block may return again.
        tokens: the layer returns tokens.
        size: height and width of its maps.
        activation: [S, C, H, W], a copy, until its gradient is known; None if it was not kept.
        found: the attribution, once the gradient has arrived.
        is_alive: False once the output is not needed any more.
    """

    layer_call: LayerCall
    role: Role
    output: weakref.ref[Tensor]
    tokens: bool
    size: Size
    activation: Tensor | None = None
    found: PendingAttribution | None = None
    is_alive: bool = True

    def drop(self) -> None:
        self.is_alive = False
        self.activation = None
        self.found = None


class AttributionPass(CaptureListener):
    """A ``CaptureListener`` that collects the attribution of a pass and its backward pass.

    Args:
        layers: which layers.
        reduce: interprets tensors as maps.
        guard: handles errors, under ``"attribution"``.

    Attributes:
        layers: as passed.
        sums: follows the gradients of outputs.
    """

    def __init__(self, layers: AttributionLayers, reduce: Reducer, guard: Guard) -> None:
        self.layers = layers
        self._reduce = reduce
        self._guard = guard
        self.sums = GradientSums(guard)
        self._kept: list[_Kept] = []
        self._last: dict[Size, _Kept] = {}
        self._axes_before: tuple[torch.Size, Axes] | None = None
        self._aspect: float | None = None

    def begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Called when a pass begins whose only listener this is."""
        grids = self._reduce.sequences.grids
        if grids is not None:
            with self._guard("attribution"):
                grids.begin((args, kwargs))

    def begins_on(self, inputs: list[PendingInputImage]) -> None:
        """Called before the pass or when it begins, with copies of its input images."""
        if inputs:
            height, width = inputs[0].values.shape[1:]
            self._aspect = height / width
        else:
            self._guard.hint(
                "attribution needs images",
                "attribution= draws over the network's input, but the model was not called with "
                "images [N, C, H, W] of 1 or 3 channels; no attribution is logged. Leave "
                "attribution= out",
            )

    def discard(self) -> None:
        """Drop everything; the owner of ``sums`` discards them."""
        for kept in self._kept:
            kept.drop()
        self._kept.clear()
        self._last.clear()
        self._axes_before = None

    def gradients_complete(self) -> None:
        """Called when the gradients of the step are complete."""
        for kept in self._kept:
            if kept.found is not None:
                kept.activation = None

    def captured(self, layer_call: LayerCall, side: Side, value: Any, module: nn.Module) -> None:
        """Called when a layer has returned: keep its output if it may be the one to show."""
        role = self.layers.roles.get(layer_call.layer)
        if role is None or self._aspect is None or self._guard.is_disabled("attribution"):
            return
        with self._guard("attribution"):
            tensor = first_tensor(value)
            if tensor is None or not is_observable(tensor) or tensor.is_complex():
                return
            grids = self._reduce.sequences.grids
            if grids is not None:
                grids.saw(layer_call, tensor.shape)
            axes, size = self._seen(layer_call.label, tensor, module)
            if role == "linear" or size is None or not tensor.requires_grad:
                return
            if role == "block" and not ends_in_function(tensor):
                return
            if _is_alike(size, self._aspect):
                output = weakref.ref(tensor)
                kept = _Kept(layer_call, role, output, axes.tokens, size)
                if not self.layers.selects or self._is_selected(kept):
                    self._keep(kept, tensor, axes)

    def pending(
        self, scale: Factor | None, images: tuple[PendingInputImage, ...]
    ) -> PendingAttributions:
        """What was collected; see ``PendingAttributions`` for the arguments."""
        overtaken = self.layers.overtaken
        for size, last in self._last.items():
            label = last.layer_call.label
            overtaken.discard((label, size))
        self._tell_about_outputs()
        found = [kept.found for kept in self._kept if kept.found is not None]
        if not found:
            return PendingAttributions()
        return PendingAttributions(tuple(found), scale, images)

    def _seen(self, label: str, tensor: Tensor, module: nn.Module) -> Seen:
        """What is known of an output."""
        key = (label, tensor.shape, self._axes_before)
        known = self.layers.seen
        if key not in known or known[key][0].tokens:  # their grid depends on the image
            if len(known) >= _MOST_SEEN:
                known.clear()
            axes = self._axes(tensor, module)
            with aside(tensor.device.type):
                maps = self._first_samples(tensor, axes)
            size = None
            if maps is not None:
                height, width = maps.shape[2:]
                size = (height, width)
            known[key] = axes, size
        seen = known[key]
        self._axes_before = tensor.shape, seen[0]
        return seen

    def _axes(self, tensor: Tensor, module: nn.Module) -> Axes:
        """The axes of an output; an activation keeps those of the layer before it."""
        has_parameters = next(module.parameters(), None) is not None
        if self._axes_before is not None and not has_parameters:
            shape, before = self._axes_before
            if shape == tensor.shape:
                return before
        return axes_of(module, tensor.shape, self._reduce.sequences)

    def _first_samples(self, tensor: Tensor, axes: Axes) -> Tensor | None:
        """The drawn samples as maps [S, C, H, W], a view where possible; None if there are no maps.

        Tokens are maps if they lie on a grid, but not those of windows. A layer whose maps have a
        single pixel has none.

        Args:
            tensor: an output of a layer, or its gradient.
            axes: its axes.
        """
        if axes.grid is not None and axes.grid.window is not None:
            return None
        tensor = tensor.detach()
        if axes.batch is not None:
            batch = tensor.shape[axes.batch]
            samples = min(self.layers.samples, batch)
            tensor = tensor.narrow(axes.batch, 0, samples)
        view = as_maps(tensor, axes, self._reduce.sequences)
        maps = view.maps if view.patches is None else view.patches
        if maps.dim() != 4:
            return None
        height, width = maps.shape[2:]
        return maps if height * width > 1 else None

    def _keep(self, kept: _Kept, tensor: Tensor, axes: Axes) -> None:
        """Copy an output and follow its gradient."""
        with aside(tensor.device.type):
            maps = self._first_samples(tensor, axes)
            assert maps is not None  # as it has a size
            kept.activation = maps.clone(memory_format=torch.contiguous_format)
        self._kept.append(kept)
        self._follow(kept, tensor, axes)

    def _is_selected(self, kept: _Kept) -> bool:
        """Whether an output is the last activation of its resolution, as far as is known."""
        size = kept.size
        overtaken = self.layers.overtaken
        last = self._last.get(size)
        if last is not None:
            if not _overtakes(kept, last):
                return False
            label = last.layer_call.label
            overtaken.add((label, size))
            last.drop()
        self._last[size] = kept
        label = kept.layer_call.label
        return (label, size) not in overtaken

    def _follow(self, kept: _Kept, tensor: Tensor, axes: Axes) -> None:
        """Compute the attribution in the backward pass, of the sum if there are several."""
        batch = 1 if axes.batch is None else tensor.shape[axes.batch]

        def first(gradient: Tensor) -> Tensor | None:
            if not kept.is_alive or not is_observable(gradient):
                return None
            with aside(gradient.device.type):
                return self._first_samples(gradient, axes)

        def record(gradient: Tensor | None, passes: PassCount) -> None:
            activation = kept.activation
            if not keeps_graph():
                kept.activation = None
            if gradient is not None and activation is not None:
                with aside(gradient.device.type, activation.nbytes):
                    negative, norms = heat(gradient, activation)
                kept.found = PendingAttribution(
                    kept.layer_call,
                    negative,
                    norms,
                    batch=batch,
                    tokens=kept.tokens,
                    passes=passes,
                )
            elif kept.found is not None:
                if passes == ONE_PASS:
                    passes = PassCount(1, 2)
                kept.found = kept.found._replace(passes=passes)

        self.sums.follow("attribution", tensor, first, record)

    def _tell_about_outputs(self) -> None:
        """Say where no activation module runs behind the layer that is shown."""
        names = []
        for kept in self._kept:
            is_activation = kept.role not in ("convolution", "norm")
            if is_activation or kept.found is None or kept.tokens:
                continue
            names.append(kept.layer_call.label)
        if names:
            self._guard.hint(
                "attribution without activation",
                "attribution: no activation module runs behind these layers at their resolution, "
                "so their own outputs are shown (a functional ReLU behind one changes nothing): "
                f"{', '.join(names)}",
            )


def _is_alike(size: Size, aspect: float) -> bool:
    """True if maps of this size may be maps of an input with this height divided by its width."""
    height, width = size
    stretched = height / width / aspect
    return 1 / _MOST_STRETCHED <= stretched <= _MOST_STRETCHED


def _overtakes(new: _Kept, last: _Kept) -> bool:
    """Whether a later output of the same resolution is to be shown instead."""
    if new.role == "convolution":
        return last.role == "convolution"
    return new.role != "block" or new.output() is not last.output()
