"""Finds gradients that are used in an optimizer step and not cleared before the next backward pass.

Identities and version counters are compared, and a few values of the gradients that are suspected
then, since version counters do not see operations on ``.data``. A gradient is *uncleared* if all of
this holds:

- When the first backward pass of the logged step begins, it is what it was when the step opened.
- It is changed by nothing but backward passes until the last of them has ended, and is the same
  tensor when its optimizer steps. In a GAN, the generator's backward pass leaves gradients in the
  discriminator that are cleared before its own backward pass: these are not uncleared.
- The optimizer's step and what follows it in the logged step do not change it.
- When the step opened, it had been used by a completed optimizer step: one that has just ended, or
  one in the previous logged step, since when it is either unchanged or, in each of the steps
  between that were not logged, its version has advanced by as much as in this one. Steps that clear
  it in between advance it further or replace the tensor.
- A value of it was not 0 when each of these backward passes began.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from torch import Tensor

from fmapboard.capture.gradient_samples import GradientSamples, sample_gradients

_MOST_SAMPLES = 8


class _Mark(NamedTuple):
    """A gradient's identity and version; holds no reference to it."""

    gradient: weakref.ref[Tensor]
    version: int

    def is_of(self, gradient: Tensor | None) -> bool:
        """True if it is the same tensor, and was not changed."""
        return self.is_same(gradient) and gradient._version == self.version  # type: ignore[union-attr]  # not None

    def is_same(self, gradient: Tensor | None) -> bool:
        """True if it is the same tensor."""
        return gradient is not None and self.gradient() is gradient


def _mark(gradient: Tensor) -> _Mark:
    return _Mark(weakref.ref(gradient), gradient._version)


class UnclearedGradients:
    """Follows the gradients of a model's parameters through one logged step after another.

    Attributes:
        samples: values of the suspected gradients when each backward pass began, at most eight.
    """

    def __init__(self) -> None:
        self._last: Mapping[str, _Mark] = {}
        self._last_step: int | None = None
        self.opens({})

    def opens(self, parameters: Mapping[str, Tensor], just_used: Collection[int] = ()) -> None:
        """Called when a logged step opens, before its first pass.

        Args:
            parameters: the trainable ones, by name.
            just_used: ``id`` of the parameters that an optimizer has updated right before.
        """
        self._parameters = dict(parameters)
        marks = {n: _mark(p.grad) for n, p in parameters.items() if p.grad is not None}
        self._at_open = marks
        self._just_used = {name for name in marks if id(parameters[name]) in just_used}
        self._kept: dict[str, _Mark] | None = None  # None: no backward pass has begun
        self.samples: tuple[GradientSamples, ...] = ()
        self._stepped: dict[str, _Mark] = {}
        self._used: set[str] = set()

    def backward_begins(self) -> None:
        """Called when a backward pass begins, before it changes any gradient."""
        kept = self._at_open if self._kept is None else self._kept
        self._kept = {n: m for n, m in kept.items() if m.is_of(self._parameters[n].grad)}
        if self._kept and len(self.samples) < _MOST_SAMPLES:
            gradients = {name: self._parameters[name].grad for name in self._kept}
            known = {name: gradient for name, gradient in gradients.items() if gradient is not None}
            self.samples = (*self.samples, sample_gradients(known))

    def backward_ends(self) -> None:
        """Called when a backward pass has ended."""
        for name, mark in (self._kept or {}).items():
            gradient = self._parameters[name].grad
            if gradient is not None and mark.is_same(gradient):
                self._kept[name] = _mark(gradient)  # type: ignore[index]  # not None, as it has items

    def stepping(self, names: Iterable[str]) -> None:
        """Called before an optimizer updates these parameters, when gradients are complete."""
        for name in names:
            gradient = None if name not in self._parameters else self._parameters[name].grad
            if gradient is None or name in self._stepped:
                continue
            self._stepped[name] = _mark(gradient)
            kept = (self._kept or {}).get(name)
            if kept is not None and kept.is_same(gradient):
                self._used.add(name)

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
        now = {name: self._parameters[name].grad for name in self._stepped}
        unchanged = {name: mark for name, mark in self._stepped.items() if mark.is_of(now[name])}
        candidates = [name for name in unchanged if name in self._used]
        found = tuple(name for name in candidates if self._was_used(name, step))
        is_known = self._kept is not None and bool(self._stepped)
        self._last, self._last_step = unchanged, step
        return found if found or (is_known and not candidates) else None

    def _was_used(self, name: str, step: int) -> bool:
        """True if an optimizer had used the gradient that was there when the step opened."""
        if name in self._just_used:
            return True
        opened, last = self._at_open[name], self._last.get(name)
        if last is None or self._last_step is None or last.gradient() is not opened.gradient():
            return False
        advance = self._stepped[name].version - opened.version
        between = max(step - self._last_step - 1, 0)
        return opened.version - last.version in (0, between * advance)
