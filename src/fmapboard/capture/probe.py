"""``ProbePass``: records the feature maps of the probe images in a forward pass of their own."""

from __future__ import annotations

from dataclasses import replace

from torch import nn

from fmapboard.capture.collector import ActivationCollector
from fmapboard.capture.guard import Guard
from fmapboard.capture.hooks import HookRegistry
from fmapboard.capture.passes import Side
from fmapboard.capture.side_pass import Probe, run_side_pass
from fmapboard.measure.reducer import Reducer
from fmapboard.model.distributed import Agreement
from fmapboard.model.flat_parameters import are_flattened
from fmapboard.options import Options


class ProbePass:
    """Runs a model on the probe images and records what its layers return.

    Under FSDP2 the pass gathers parameters from all ranks. So the ranks agree right before it, once
    everything that can fail on one of them alone is done: either all of them run it, or none.

    Args:
        model: the unwrapped model.
        options: the probe, and how the network's input was normalized.
        reducer: measures the tensors.
        guard: handles errors, under ``"probe"``.

    Attributes:
        probe: the images, or None.
    """

    def __init__(self, model: nn.Module, options: Options, reducer: Reducer, guard: Guard) -> None:
        self._model, self._options = model, options
        self._reducer, self._guard = replace(reducer, samples=None), guard
        self.probe = None if options.probe is None else Probe(options.probe)
        self._agreement = Agreement() if options.probe is None else Agreement.among(model)

    def record(self, registry: HookRegistry, sides: tuple[Side, ...]) -> ActivationCollector | None:
        """The feature maps of the probe; None without a probe, and after an error.

        Args:
            registry: the layers to record; its own hooks ignore the pass.
            sides: ``"output"``, ``"input"`` or both.
        """
        probe = self.probe
        if probe is None:
            return None
        if are_flattened(self._model):  # after ``watch``, which had left out the probe
            self._guard.hint("flattened", "the probe is not drawn: parameters are sharded by FSDP1")
            return None
        found, is_asked = None, False

        def may_run() -> bool:
            nonlocal is_asked
            is_asked = True
            all_can = self._agreement.all_say(True)
            if not all_can:
                self._guard.hint("others", f"the probe is not drawn: {self._agreement.why_not}")
            return all_can

        with self._guard("probe"), registry.paused():
            seen = ActivationCollector(
                self._reducer,
                self._guard,
                numbers=False,
                inputs_drawn=None,
                normalization=self._options.normalization,
            )
            layers = registry.layers
            same = registry.effective
            own = HookRegistry(self._model, lambda name, _: name in layers, effective=same)
            own.tap_choice = registry.tap_choice
            with own.listening(seen, sides=sides):
                run_side_pass(self._model, probe, may_run)
            found = seen
        if not is_asked:
            with self._guard("probe"):
                self._agreement.all_say(False)
        return found
