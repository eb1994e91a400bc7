"""``PassObserver``: what follows the passes of a logged step besides ``PassSelection``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fmapboard.capture.pass_selection import Candidate


class PassObserver:
    """Is notified by a ``PassSelection`` on the training thread; this one does nothing.

    The selection calls each method in a block of its ``Guard``.
    """

    def step_opens(self) -> None:
        """Called when a logged step opens, before its first pass."""

    def pass_begins(self, candidate: Candidate) -> None:
        """Called when a pass that is recorded begins."""

    def backward_begins(self) -> None:
        """Called when a backward pass of the step begins, before it changes any gradient."""

    def backward_ends(self) -> None:
        """Called when a backward pass of the step has ended."""
