"""``PassTracker``: selects the forward passes to record and numbers their layer calls."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Literal, Protocol

from torch import nn

from fmapboard.records import LayerCall

Side = Literal["output", "input"]
Phase = Literal["waiting", "recording", "done"]


class PassTracker:
    """Selects the root module's forward passes to record and numbers the layer calls in each.

    The first pass for which ``accept`` returns True is recorded. Later passes are ignored, unless
    ``restart`` returns True for one: it is then recorded and its calls are numbered from the start.
    A pass that raised does not count. If the root's ``forward`` never runs (the user calls
    submodules directly), the first call of each layer is recorded.

    Args:
        accept: called when a pass begins, with what the root is called with, and for layer calls
            before a pass is recorded, with what the layer received or returned; returns True if the
            pass or call counts.
        restart: called when an accepted pass begins after a recorded one; returns True to record
            this pass as well.
    """

    def __init__(self, accept: Callable[[Any], bool], restart: Callable[[], bool]) -> None:
        self._accept, self._restart = accept, restart
        self._phase: Phase = "waiting"
        self._is_accepted = False
        self._calls: dict[tuple[str, Side], int] = {}
        self._positions: dict[tuple[str, int], int] = {}

    def root_begins(self, received: Any = ()) -> bool:
        """Called when a forward pass of the root begins; True if it is to be recorded."""
        if not self._accept(received):
            if self._phase == "recording":
                self._phase = "waiting"  # the recorded pass raised; do not complete it
            return False
        if self._phase == "done" and not self._restart():
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
        self._is_accepted = self._phase == "recording" or self._accept(received)
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
            number > 1 or not (self._is_accepted or self._accept(value))
        ):
            return None
        self._calls[layer, side] = number
        return number, self._positions.setdefault((layer, number), len(self._positions))


class CaptureListener(Protocol):
    """Receives what a registry's hooks observe.

    Every method is called inside the user's forward pass, on the thread that runs it. ``args``,
    ``kwargs`` and ``value`` are the live objects, and the next operation may overwrite them: copy
    what is needed before returning. An implementation must not raise, modify these objects or draw
    random numbers.
    """

    def begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Called when the recorded forward pass of the root module begins.

        Discard what an earlier pass delivered.
        """

    def again(self) -> bool:
        """Called when a later pass of the root begins; return True to record it instead."""

    def captured(self, layer_call: LayerCall, side: Side, value: Any, module: nn.Module) -> None:
        """Called when a watched layer of the recorded pass is about to run, or has returned.

        Args:
            layer_call: which layer, and which of its calls.
            side: ``"input"`` before the layer runs, ``"output"`` after it returned.
            value: ``(args, kwargs)`` for ``"input"``, the layer's output for ``"output"``.
            module: the layer.
        """
