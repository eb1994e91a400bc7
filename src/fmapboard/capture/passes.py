"""``PassTracker``: selects the forward passes to record and numbers their layer calls."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Literal

from torch import nn

from fmapboard.records import LayerCall

Side = Literal["output", "input"]
Phase = Literal["waiting", "recording", "done"]


class CaptureListener:
    """Receives what a registry's hooks observe. Subclasses define what they need.

    Every method is called inside the user's forward pass, on the thread that runs it. ``args``,
    ``kwargs`` and ``value`` are the live objects, and the next operation may overwrite them: copy
    what is needed before returning. An implementation must not raise, modify these objects or draw
    random numbers.
    """

    __slots__ = ()

    def counts(self, received: Any) -> bool:
        """Called when a pass begins; True if it counts, which is the default.

        Args:
            received: ``(args, kwargs)`` of the root. If its layers are called one by one, what the
                layer received or returned.
        """
        return True

    def begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Called when the recorded forward pass of the root module begins.

        Discard what an earlier pass delivered.
        """

    def again(self) -> bool:
        """Called when a later pass that counts begins; True records it too. Default: False."""
        return False

    def takes_over(self) -> bool:
        """Called when the thread that armed the registry begins a pass that counts, after another.

        Returns:
            True if from now on only passes of this thread are to be recorded. Default: False.
        """
        return False

    def pass_ended(self, output: Any) -> None:
        """Called with the output of every forward pass of the root, recorded or not.

        While the root's ``forward`` does not run, it is called with those of its children instead.
        """

    def captured(self, layer_call: LayerCall, side: Side, value: Any, module: nn.Module) -> None:
        """Called when a watched layer of the recorded pass is about to run, or has returned.

        Args:
            layer_call: which layer, and which of its calls.
            side: ``"input"`` before the layer runs, ``"output"`` after it returned.
            value: ``(args, kwargs)`` for ``"input"``, the layer's output for ``"output"``.
            module: the layer.
        """


class PassTracker:
    """Selects the root module's forward passes to record and numbers the layer calls in each.

    The first pass that counts is recorded. Later ones are ignored, unless the listener wants one
    too, whose calls are then numbered from the start. A pass that raised does not count. If the
    root's ``forward`` never runs (the user calls submodules directly), the first call of each layer
    is recorded.

    Args:
        listener: tells which passes, and which of such layer calls, count.
    """

    def __init__(self, listener: CaptureListener) -> None:
        self._listener = listener
        self._phase: Phase = "waiting"
        self._is_accepted = False
        self._calls: dict[tuple[str, Side], int] = {}
        self._positions: dict[tuple[str, int], int] = {}

    def root_begins(self, received: Any = ()) -> bool:
        """Called when a forward pass of the root begins; True if it is to be recorded."""
        if not self._listener.counts(received):
            if self._phase == "recording":
                self._phase = "waiting"  # the recorded pass raised; do not complete it
            return False
        if self._phase == "done" and not self._listener.again():
            return False
        self._phase = "recording"
        self._calls.clear()
        self._positions.clear()
        return True

    @contextlib.contextmanager
    def accepting(self, received: Any) -> Iterator[bool]:
        """Record the layer calls in the block, whatever each of them receives.

        Args:
            received: what the root, or a part of the model, is called with.

        Yields:
            False if that call does not count, so that there is nothing to record.
        """
        self._is_accepted = self._phase == "recording" or self._listener.counts(received)
        try:
            yield self._is_accepted
        finally:
            self._is_accepted = False

    @property
    def is_done(self) -> bool:
        """True once a pass of the root was recorded."""
        return self._phase == "done"

    def root_ends(self) -> None:
        """Called when a forward pass of the root has returned."""
        if self._phase == "recording":
            self._phase = "done"

    def call(self, layer: str, side: Side, value: Any = None) -> tuple[int, int] | None:
        """Number a call of a layer in the recorded pass.

        Args:
            layer: its name.
            side: which of its tensors is delivered.
            value: what the layer received or returned.

        Returns:
            The call's number for this layer, from 1, and its position among the calls of all
            layers, from 0; or None if the call is not recorded.
        """
        if self._phase == "done":
            return None
        number = self._calls.get((layer, side), 0) + 1
        if self._phase == "waiting" and (
            number > 1 or not (self._is_accepted or self._listener.counts(value))
        ):
            return None
        self._calls[layer, side] = number
        return number, self._positions.setdefault((layer, number), len(self._positions))
