"""``BeforeUpdate``: what is drawn of the weights before the optimizer updates them."""

from __future__ import annotations

from fmapboard.capture.guard import Guard
from fmapboard.capture.hooks import HookRegistry
from fmapboard.capture.open_step import OpenStep
from fmapboard.capture.passes import Side
from fmapboard.capture.probe import ProbePass
from fmapboard.capture.probe_attribution import ProbeAttribution
from fmapboard.capture.weights import read_kernels
from fmapboard.model.distributed import is_sharded
from fmapboard.options import Options


class BeforeUpdate:
    """Draws the probe images and the kernels of a logged step, each once.

    Args:
        registry: the hooks of the model.
        options: when kernels are drawn, and how many channels.
        probe_pass: draws the images of ``probe=``.
        probe_cam: draws their attribution, or None.
        guard: where errors are reported.
        sides: which of the layers' tensors are drawn.

    Attributes:
        steps: number of logged steps that were closed, on which it depends whether kernels are due;
            the caller counts them.
    """

    def __init__(
        self,
        registry: HookRegistry,
        options: Options,
        probe_pass: ProbePass,
        probe_cam: ProbeAttribution | None,
        guard: Guard,
        sides: tuple[Side, ...],
    ) -> None:
        self._registry, self._options, self._guard = registry, options, guard
        self._probe_pass, self._probe_cam, self._sides = probe_pass, probe_cam, sides
        self._is_sharded, self.steps = is_sharded(registry.model), 0

    def draw_probe(self, opened: OpenStep) -> None:
        """Record the feature maps of the probe images in a separate forward pass."""
        has_maps = opened.probed is not None and opened.probed.pending
        if opened.is_probed if self._is_sharded else has_maps:
            return
        opened.is_probed = True
        opened.probed = self._probe_pass.record(self._registry, self._sides)
        if self._probe_cam:
            opened.attributions = self._probe_cam.record(self._registry)

    def read_kernels(self, opened: OpenStep) -> None:
        """Read the kernels if they are due at this step."""
        every = self._options.kernels_every
        if not every or self.steps % every or opened.kernels is not None:
            return
        opened.kernels = ()
        with self._guard("kernels"):
            most = self._options.max_channels
            opened.kernels = read_kernels(self._registry.layers, most, self._guard)
