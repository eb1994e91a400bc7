"""``StepSession``: collects one logged step at a time and assembles the result."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from torch import Tensor, nn
from torch.optim.optimizer import Optimizer

from fmapboard.capture.attribution import AttributionLayers, AttributionPass
from fmapboard.capture.collector import ActivationCollector
from fmapboard.capture.guard import Guard, MemoryPressure, Stopwatch
from fmapboard.capture.hooks import HookRegistry
from fmapboard.capture.isolation import is_settled
from fmapboard.capture.kernels import read_kernels
from fmapboard.capture.module_calls import is_compile_used
from fmapboard.capture.passes import CaptureListener, Hooked, Side
from fmapboard.capture.probe import NO_PROBE, ProbePass
from fmapboard.capture.side_pass import EagerPass
from fmapboard.capture.transfer import Transfer
from fmapboard.errors import WarnOnce
from fmapboard.gradients.loss_scale import LossScale, is_skipped
from fmapboard.gradients.reader import GradientReader, PendingParameters
from fmapboard.measure.layout import Sequences
from fmapboard.measure.merge_ranks import RankExchange
from fmapboard.measure.reducer import Reducer
from fmapboard.model.blocks import find_blocks
from fmapboard.model.distributed import are_flattened, is_sharded, rank
from fmapboard.model.layers import Layers, named_layers, scripted_warning, unwrap
from fmapboard.options import Options
from fmapboard.records import LayerCall
from fmapboard.render.palettes import palette
from fmapboard.render.quantize import Quantizer
from fmapboard.session.facts import FactRecorder
from fmapboard.session.hints import Hints
from fmapboard.session.kept_batches import KeptBatches
from fmapboard.session.selection import Passes, PassKind, PassSelection
from fmapboard.session.step import Collected, OpenStep, PendingStep, sent


def options_for(model: nn.Module, options: Options, warn: WarnOnce) -> Options:
    """The options without what needs whole weights, or a pass that other ranks take part in.

    A pass of fmapboard's own gathers sharded parameters from all ranks: one that fails alone would
    keep the others waiting. Only one rank watches a model that FSDP1 has flattened.

    Args:
        model: the model.
        options: as the user gave them; returned unchanged unless parameters are sharded.
        warn: where rank 0 tells the user what is not logged.
    """
    kept = options.step_attribution
    without_probe = replace(options, probe=None, attribution=kept, attribution_loss=None)
    if is_sharded(model):
        if options.probe is not None and rank() == 0:
            warn.warn("sharded probe", f"{NO_PROBE}; the training batch is drawn instead")
        return without_probe
    if not are_flattened(model):
        return options
    if rank() == 0:
        probe = "" if options.probe is None else "the images of probe=, "
        warn.warn(
            "flattened parameters",
            "parameters are sharded by FullyShardedDataParallel (FSDP1), and each rank holds only "
            f"a piece of them: {probe}kernels, gradient norms, update ratios, and histograms of "
            "weights are not logged. Feature maps and their statistics are. With fully_shard "
            "(FSDP2), everything but the images of probe= is logged",
        )
    return replace(without_probe, kernels=False, update_ratios=False)


_SLICES = 8
"""Depth slices of a volume that are drawn, for the tab, if ``depth`` chooses none."""


class StepSession(CaptureListener):
    """Hooks one model for the duration of a logged step, and assembles what the hooks collect.

    It is the listener of its own hooks: it decides which forward pass counts and hands captured
    tensors to an ``ActivationCollector``. It is used on the training thread. Once it is created,
    errors inside fmapboard are reported to ``warn`` instead of being raised.

    Args:
        model: any module; its wrappers are unwrapped.
        layers: which layers to watch.
        options: what to collect.
        scaler: a GradScaler whose skipped steps are counted, or None.
        warn: where errors and hints are reported.

    Attributes:
        model: the unwrapped model.
        registry: the hooks.
        probe_pass: draws the images of ``probe=``; None without them.
        facts: records what only the training process knows; None if that is not recorded.
        open_step: the number of the logged step that is open, or None.
        exchange: merges statistics over ranks: each step that was open must take part, in the
            worker thread. None if nothing is merged.
        kept: batches of logged steps; None if none is kept.
    """

    def __init__(
        self, model: nn.Module, layers: Layers, options: Options, scaler: Any, warn: WarnOnce
    ) -> None:
        self._attribution = AttributionLayers(options.step_attribution, options.samples)
        also = self._also(unwrap(model))
        self._guard = Guard(warn)
        self.registry = _registry(model, layers, also, options, self._guard)
        self._watched = watched = self.registry.watched
        self.model = watched.model
        self._options = options
        self._warn = warn
        if (scripted := scripted_warning(self.model)) is not None:
            warn.warn("scripted", scripted)
        self._transfer = Transfer(warn)
        self._memory = MemoryPressure(warn)
        self._reducer = _reducer(self.model, options)
        self.probe_pass = self._probe_pass()
        self._kernels_every = options.kernels_every
        self._gradients = GradientReader(watched, self._guard, options.update_ratios)
        self._loss_scale = LossScale(scaler)
        self._has_scaler = scaler is not None
        self._selection = PassSelection(watched, self._guard, self._gradients, self._loss_scale)
        is_whole = not (is_sharded(self.model) or are_flattened(self.model))
        self._selection.counts_functions = layers is None and is_whole and rank() == 0
        self._hints = Hints(warn, self._gradients, self._loss_scale, self._selection)
        self.kept = KeptBatches(self.model, self._guard) if options.prove else None
        self.facts = None
        if options.checks is not False:
            self.facts = FactRecorder(self._gradients, self._selection)
            self._selection.observer = self.facts
        self._sides: tuple[Side, ...] = ("output", "input") if options.inputs else ("output",)
        self._eager_pass = EagerPass(watched, warn)
        self._open: OpenStep | None = None
        self._closed_steps = 0
        self.open_step: int | None = None
        self._is_sharded = is_sharded(self.model)
        self.exchange = RankExchange.among_all(warn) if options.reduce_statistics else None
        if not self._is_sharded and self.exchange is None:  # no other rank waits for this one
            self._guard.out_of_memory = self._out_of_memory

    def keep_batches(self) -> KeptBatches:
        """Keep batches of logged steps from now on."""
        if self.kept is None:
            self.kept = KeptBatches(self.model, self._guard, copies=True)
        return self.kept

    def _also(self, model: nn.Module) -> dict[str, nn.Module]:
        """The layers to hook besides those that are drawn, by name.

        Raises:
            LayerNotFound: no layer matches the glob of ``attribution``.
        """
        named = named_layers(model)
        branches = {name: named[name] for name in find_blocks(named).branches}
        return {**self._attribution.also(model), **branches}

    def _probe_pass(self) -> ProbePass | None:
        """Draws the images of ``probe=``; None without them."""
        if self._options.probe is None:
            return None
        return ProbePass(self._watched, self._options, self._reducer, self._guard)

    def _collector(self) -> ActivationCollector:
        """A collector for one forward pass of a training step."""
        options = self._options
        draws_inputs = options.probe is None or options.attribution
        attribution = None
        if self._attribution.chosen is not False:
            attribution = AttributionPass(self._attribution, self._reducer, self._guard)
        return ActivationCollector(
            self._reducer,
            self._guard,
            pictures=options.probe is None,
            gradients=options.activation_gradients,
            inputs_drawn=options.samples if draws_inputs else 0,
            normalization=options.normalization,
            attribution=attribution,
            model=self.model,
            names_tokens=options.tokens is not None,
        )

    def open(self, step: int, passes: Passes, *, any_thread: bool = False) -> None:
        """Begin a logged step: install the hooks.

        Args:
            step: its number.
            passes: which forward passes count. If these are the ones that could train the model,
                the step begins right after another one, and the probe images run right before the
                optimizer step; otherwise they run now.
            any_thread: accept passes from any thread until one is recorded, then only from that
                thread, unless the calling thread runs one before the other's backward pass; False
                accepts only passes from the calling thread.
        """
        self.abandon()
        if not self._memory.allows_step(step):
            return
        if not any_thread and not is_settled():
            self._hints.say("new thread", step)
            return
        self._guard.stopwatch = Stopwatch()
        self._guard.gave_up = False
        self._loss_scale.step_opens()
        self._open = opened = OpenStep(step, passes, self._collector())
        self.open_step = step
        with self._guard("replaced layers"):
            gone = self._watched.follow_replacements(self._also)
            if gone:
                self._hints.say("gone", step, gone)
        if passes != "training":
            self._draw_probe(opened)
        if self._open is None:  # out of memory
            return
        self._eager_pass.was_left_out = False
        if self._options.compiled == "eager" and is_compile_used():
            self._hints.say("eager")
        with self._guard("arming"):
            self._arm(opened, any_thread=any_thread)

    def _arm(self, opened: OpenStep, *, any_thread: bool) -> None:
        """Install the hooks of a logged step, as of ``open``."""
        passes = opened.passes
        follows = passes != "evaluation"
        runs_eager = self._options.compiled == "eager"
        if follows:
            self._gradients.arm(self._read_weights, self._gradients_complete)
        trainable = {} if self._is_sharded or not follows else self._gradients.trainable
        self._selection.open(passes, trainable.values())
        if self.facts is not None:
            self.facts.step_opens(opened.live)
        thread = None if any_thread else threading.get_ident()
        aside = None if runs_eager else self._run_aside
        self.registry.arm(
            self,
            policy=self._selection,
            sides=self._sides,
            thread=thread,
            aside=aside,
            attention=True,
        )
        if follows:  # last, as nothing else needs it
            self._gradients.read_weights_at_start(is_marked=passes != "training")

    def close(self) -> PendingStep | None:
        """End the logged step: remove the hooks and start copying the results to the host.

        Returns:
            The collected step; None if no step is open, nothing was collected or an error occurred.
        """
        opened = self._open
        pending = None
        if opened is None:
            self.abandon()  # memory ran out
            return None
        with self._guard("logged step"):
            self.registry.disarm()
            self._gradients.disarm()
        # Collective if parameters are sharded, so outside of what can fail on one rank alone.
        if PassKind.TRAINS_INPUT in self._selection.passes.kinds:  # no optimizer steps on the model
            self._draw_probe(opened)
        self._read_kernels(opened)
        parameters = self._gradients.pending()
        with self._guard("logged step"):
            self._choose_pass()
            if self._open is opened:
                missing = self.registry.tap_choice.missing() if self.registry.root_ran else None
                if missing is not None:
                    self._hints.say("taps", opened.step, [missing])
                is_named = bool(missing or self._guard.has_failed or self._eager_pass.was_left_out)
                unseen = not self.registry.was_called and is_compile_used()
                self._hints.explain(opened, is_named=is_named, unseen=unseen)
                pending = self._assembled(opened, parameters)
        self.abandon()
        self._closed_steps += pending is not None or self._is_sharded
        if pending is not None:
            self._memory.succeeded()
        return pending

    @property
    def is_awaited(self) -> bool:
        """True if the other ranks wait for this one when they end the open step.

        That is so with sharded parameters, once an optimizer has stepped. Before that, an exception
        on this rank leaves them in a collective of the training itself.
        """
        return self._is_sharded and self._open is not None and bool(self._gradients.stepped)

    def abandon(self) -> None:
        """End the logged step without a result; does nothing if no step is open."""
        self._end()
        self.open_step = None

    def _end(self) -> OpenStep | None:
        """Remove every hook and drop what was collected; the step that was open."""
        opened = self._open
        if opened is None:
            return None
        self.registry.disarm()
        self._gradients.disarm()
        self._gradients.forget()
        opened.discard()
        self._selection.close()
        if self.facts is not None:
            self.facts.forget()
        if self.kept is not None:
            self.kept.forget()
        self._open = None  # last: an interrupt may come before, and then all is done again
        return opened

    def _out_of_memory(self, error: Exception) -> None:
        """End the open step at once, since training may need the memory; its number stays."""
        self._guard.gave_up = True
        opened = self._end()
        if opened is not None:
            self._memory.failed(opened.step, error)

    def was_skipped(self, optimizer: Optimizer) -> bool:
        """True if a logged step is open and the GradScaler skipped this optimizer step."""
        if self._open is not None:
            self._gradients.step_ended(None)  # the step may close before our own hook is called
        return self._open is not None and is_skipped(optimizer)

    def before_clipping(self) -> None:
        """Read the current gradient norms; does nothing if no step is open."""
        if self._open is not None:
            with self._guard("gradients before clipping"):
                self._open.before_clipping = self._gradients.norms_now()

    def given_loss(self, loss: Tensor | float, labels: Tensor | None) -> None:
        """Keep the loss that the user gives; does nothing if no step is open."""
        if self._open is not None and self.facts is not None:
            with self._guard("loss"):
                self.facts.given_loss(loss, labels)

    # The next methods are called by the registry, inside the user's forward pass.

    def begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> CaptureListener | None:
        """Called when a forward pass to be recorded begins; returns what collects it."""
        opened = self._open
        if opened is None:  # out of memory
            return None
        if self._has_scaler:
            with self._guard("loss scale"):
                self._loss_scale.pass_begins()
        opened.live = self._collector()
        opened.live.loss_scale = self._loss_scale.at_forward
        with self._guard("forward pass"):
            if self._gradients.pass_begins():  # an optimizer has stepped: discard what was read
                opened.probed = None
                opened.kernels = None
                self._hints.say("steps last", opened.step)
            candidate = self._selection.begin(opened.live, (args, kwargs))
            if self.facts is not None:
                self.facts.pass_begins(candidate, (args, kwargs))
            if self.kept is not None:
                self.kept.pass_begins(candidate, (args, kwargs))
        opened.live.begin(args, kwargs)
        return opened.live

    def captured(self, layer_call: LayerCall, side: Side, value: Any, module: nn.Module) -> None:
        """Called when a layer runs although the model itself was not called."""
        if self._open is not None:
            self._open.live.captured(layer_call, side, value, module)

    def _run_aside(self, module: nn.Module, args: Any, kwargs: Any, hooked: Hooked) -> None:
        """Record an uncompiled pass in place of the compiled one that is about to begin."""
        opened = self._open
        if opened is None or self._guard.is_disabled("compiled model"):
            return
        if opened.live.gradients or opened.live.attribution is not None:
            self._hints.say("compiled gradients")
            opened.live.gradients = False
            opened.live.attribution = None
        with self._guard("compiled model"):
            if not self._eager_pass.can_run():
                return
            if not self._eager_pass.run(module, args, kwargs, hooked):
                opened.live.pending.clear()  # of the layers that ran before

    def _choose_pass(self) -> None:
        """Keep the pass that produced the gradients and drop the others."""
        chosen = self._selection.choose()
        if chosen is not None and self._open is not None:
            self._open.live = chosen.collected

    def _gradients_complete(self, optimizer: Optimizer, own: Mapping[str, Tensor]) -> None:
        """Called when an optimizer is about to use gradients, with its parameters of the model."""
        if own or self._selection.is_learned_by(optimizer):
            self._choose_pass()
        if own and self.facts is not None:
            self.facts.stepping(optimizer, own)
        if own and self.kept is not None:
            self.kept.stepping(optimizer)

    def _read_weights(self) -> None:
        """Record the probe and the kernels right before the optimizer updates the weights."""
        for read in (self._draw_probe, self._read_kernels):
            if self._open is not None:
                read(self._open)

    def _draw_probe(self, opened: OpenStep) -> None:
        """Record the feature maps of the probe images in a separate forward pass, once."""
        if self.probe_pass is not None and not (opened.probed and opened.probed.pending):
            opened.probed, opened.attributions = self.probe_pass.record(self.registry, self._sides)

    def _read_kernels(self, opened: OpenStep) -> None:
        """Read the kernels if they are due at this step, once."""
        every = self._kernels_every
        if not every or self._closed_steps % every or opened.kernels is not None:
            return
        opened.kernels = ()
        with self._guard("kernels"):
            most = self._options.max_channels
            opened.kernels = read_kernels(self._watched.layers, most, self._guard)

    def _assembled(self, opened: OpenStep, parameters: PendingParameters) -> PendingStep | None:
        """Start copying what was collected; None if that is nothing."""
        live = opened.live
        probed = opened.probed
        stopwatch = self._guard.stopwatch
        facts = None
        if self.facts is not None and opened.passes != "evaluation":
            with self._guard("training facts"):
                facts = self.facts.pending(opened.step, live)
        is_trained = self._gradients.stepped and not self._gradients.skipped
        if self.kept is not None and facts is not None and is_trained:
            self.kept.closes(opened.step, self._selection.chosen, facts)
        skips = self._loss_scale.step_closes(self._gradients.fused)
        measured = tuple(live.pending)
        if probed is not None:
            measured += tuple(probed.pending)
        if not measured and not parameters.names:
            return None
        has_probe = self.probe_pass is not None
        inputs = live.inputs
        texts = live.texts
        if has_probe:
            inputs = [] if probed is None else probed.inputs
            texts = [] if probed is None else probed.texts
        collected = Collected(
            step=opened.step,
            milliseconds=lambda: stopwatch.ms,
            measured=measured,
            parameters=parameters,
            before_clipping=opened.before_clipping,
            kernels=opened.kernels or (),
            inputs=tuple(inputs),
            texts=tuple(texts),
            skips=skips,
            facts=facts,
            batch_norms=None if live.batch_norms is None else live.batch_norms.pending,
            attributions=opened.attributions or live.attributions(own_images=has_probe),
        )
        opened.discard()  # frees memory before the copy takes some
        return sent(collected, self._transfer, self._warn, self.exchange)


def _registry(
    model: nn.Module,
    layers: Layers,
    also: dict[str, nn.Module],
    options: Options,
    guard: Guard,
) -> HookRegistry:
    """The hooks of the chosen layers, and of those that attribution is computed for."""
    return HookRegistry(
        model,
        layers,
        also=also,
        effective=options.effective,
        routers=options.routers,
        failed=guard.failed,
    )


def _reducer(model: nn.Module, options: Options) -> Reducer:
    """Measures the tensors of a step as the options say."""
    is_signed = palette(options.colormap).zero_centered
    return Reducer(
        options.samples,
        options.max_channels,
        options.depth,
        Sequences.of(model),
        quantize=Quantizer(options.max_tile, options.scale, is_signed),
        unsettled=set(),
        slices=_SLICES,
    )
