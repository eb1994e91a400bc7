"""Were gradients touched? Their identities and versions, compared at two moments.

Accumulation by a backward pass, ``zero_grad``, an assignment to ``grad`` and an in-place operation
each change one of them; an operation on ``.data`` does not. The selection of the pass asks this of
some gradients (``GradientMarks``), the search for uncleared ones of all (``UnclearedGradients``). A
mark holds no reference to the gradient.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from typing import NamedTuple, TypeVar

from torch import Tensor

from fmapboard.arithmetic import ceil_div
from fmapboard.gradients.reader import read_norms
from fmapboard.measure.norms import GradientNorms, PendingNorms

K = TypeVar("K")


class Mark(NamedTuple):
    """A gradient and its version at one moment."""

    gradient: weakref.ref[Tensor]
    version: int


def marks(parameters: Mapping[K, Tensor]) -> dict[K, Mark]:
    """Mark the gradients that some parameters have now; those without one are left out."""
    found = dict[K, Mark]()
    for key, parameter in parameters.items():
        gradient = parameter.grad
        if gradient is not None:
            found[key] = Mark(weakref.ref(gradient), gradient._version)
    return found


def same(before: Mapping[K, Mark], parameters: Mapping[K, Tensor]) -> dict[K, Mark]:
    """Mark the gradients again that are still the same tensor, changed or not."""
    found = dict[K, Mark]()
    for key, mark in before.items():
        gradient = parameters[key].grad
        if gradient is None:
            continue
        if mark.gradient() is gradient:
            found[key] = Mark(mark.gradient, gradient._version)
    return found


def untouched(before: Mapping[K, Mark], parameters: Mapping[K, Tensor]) -> dict[K, Mark]:
    """The marks of gradients that are still the same tensor and were not changed."""
    found = dict[K, Mark]()
    for key, mark in same(before, parameters).items():
        if mark.version == before[key].version:
            found[key] = mark
    return found


_MAX_CHECKED = 32
"""How many gradients ``GradientMarks`` checks at most, evenly spread."""


class GradientMarks:
    """Tells whether the gradients of some leaf tensors were touched since the last look.

    Args:
        leaves: parameters, or other tensors that require a gradient.
    """

    def __init__(self, leaves: Collection[Tensor]) -> None:
        stride = max(ceil_div(len(leaves), _MAX_CHECKED), 1)
        checked = islice(leaves, 0, None, stride)
        self._leaves = dict(enumerate(checked))
        self.look()

    def look(self) -> None:
        """Take the gradients as they are now."""
        self._marks = marks(self._leaves)

    def were_touched(self) -> bool:
        """True if one of them was changed, replaced, added or removed; looks at them anew."""
        before = self._marks
        kept = untouched(before, self._leaves)
        self.look()
        return not len(kept) == len(before) == len(self._marks)


_MOST_READ = 8
"""Norms are read at the beginning of at most this many backward passes of a logged step."""


class UnclearedGradients:
    """Follows the gradients of a model's parameters through one logged step after another.

    A gradient is *uncleared* if all of this holds:

    - When the first backward pass of the logged step begins, it is what it was when the step
      opened.
    - It is changed by nothing but backward passes until the last of them has ended, and is the same
      tensor when its optimizer steps. In a GAN, the generator's backward pass leaves gradients in
      the discriminator that are cleared before its own backward pass: these are not uncleared.
    - The optimizer's step and what follows it in the logged step do not change it.
    - When the step opened, it had been used by a completed optimizer step: one that has just ended,
      or one in the previous logged step, since when it is either unchanged or, in each of the steps
      between that were not logged, its version has advanced by as much as in this one. Steps that
      clear it in between advance it further or replace the tensor.
    - A value of it was not 0 when each of these backward passes began. The norms are read for this:
      version counters do not see operations on ``.data``.
    """

    def __init__(self) -> None:
        self._last: Mapping[str, Mark] = {}
        self._last_step: int | None = None
        self.opens({})

    def opens(self, parameters: Mapping[str, Tensor], just_used: Collection[int] = ()) -> None:
        """Called when a logged step opens, before its first pass.

        Args:
            parameters: the trainable ones, by name.
            just_used: ``id`` of the parameters that an optimizer has updated right before.
        """
        self._parameters = dict(parameters)
        at_open = marks(parameters)
        self._at_open = at_open
        self._just_used = {name for name in at_open if id(parameters[name]) in just_used}
        self._kept: dict[str, Mark] | None = None  # None: no backward pass has begun
        self._norms: tuple[PendingNorms, ...] = ()
        self._stepped: dict[str, Mark] = {}
        self._used: set[str] = set()

    def backward_begins(self) -> None:
        """Called when a backward pass begins, before it changes any gradient."""
        before = self._at_open if self._kept is None else self._kept
        kept = untouched(before, self._parameters)
        self._kept = kept
        if kept and len(self._norms) < _MOST_READ:
            suspected = {name: self._parameters[name] for name in kept}
            norms = GradientNorms()
            read_norms(suspected, norms)
            self._norms = (*self._norms, norms.pending())

    def backward_ends(self) -> None:
        """Called when a backward pass has ended."""
        if self._kept is not None:
            self._kept = same(self._kept, self._parameters)

    def stepping(self, names: Iterable[str]) -> None:
        """Called before an optimizer updates these parameters, when gradients are complete."""
        known = self._parameters
        fresh = {n: known[n] for n in names if n in known and n not in self._stepped}
        self._stepped |= marks(fresh)
        if self._kept:
            kept = same(self._kept, known)
            self._used |= kept.keys() & fresh.keys()

    def closes(self, step: int) -> tuple[str, ...] | None:
        """Called when the logged step closes.

        Args:
            step: its number.

        Returns:
            Names of the parameters with an uncleared gradient, also if all of its values were 0;
            None if that is not known, because no backward pass or no optimizer step was seen, or
            because it is not known whether gradients that were there before belong to a completed
            step.
        """
        unchanged = untouched(self._stepped, self._parameters)
        candidates = [name for name in unchanged if name in self._used]
        found = tuple(name for name in candidates if self._was_used(name, step))
        self._last = unchanged
        self._last_step = step
        if found:
            return found
        has_seen_all = self._kept is not None and bool(self._stepped)
        return () if has_seen_all and not candidates else None

    def take_norms(self) -> tuple[PendingNorms, ...]:
        """Norms of the suspected gradients when each backward pass began; kept no longer."""
        norms = self._norms
        self._norms = ()
        return norms

    def _was_used(self, name: str, step: int) -> bool:
        """True if an optimizer had used the gradient that was there when the step opened."""
        if name in self._just_used:
            return True
        opened = self._at_open[name]
        last = self._last.get(name)
        if last is None or self._last_step is None:
            return False
        if last.gradient() is not opened.gradient():
            return False
        advance = self._stepped[name].version - opened.version
        since_last = opened.version - last.version
        between = max(step - self._last_step - 1, 0)
        return since_last in (0, between * advance)
