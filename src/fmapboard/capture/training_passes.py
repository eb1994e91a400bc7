"""``TrainingPasses``: which forward passes of a logged step could train the model or its input."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from fmapboard.model.tensors import tensors

_MAX_NODES = 256
"""How many nodes of the graph in front of the model are searched for what it leads to."""


class TrainingPasses:
    """Tells forward passes that could train something from those that could not.

    A pass could train the model if gradients are enabled and one of its parameters requires one. In
    a model whose parameters are frozen and stay so, a pass could train what the model receives if
    that requires a gradient: the image of neural style transfer, or the network in front of a
    perceptual loss. A discriminator that is frozen only in the generator's update is no such model.

    Args:
        model: the unwrapped model.

    Attributes:
        may_train: the pass that began last could train something.
        input_learns: a pass of the open step could train what a frozen model receives.
        were_transformed: a pass of the open step ran inside a transformation of ``torch.func``.
        disabled_by: what disabled gradients in all passes of the open step that could have trained
            the model otherwise; None if there are none, or if gradients were enabled in one.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._was_trainable = self._has_run = self._runs_trainable = False
        self.may_train = self.input_learns = self.were_transformed = False
        self._enabled = False
        self.disabled_by: str | None = None

    def step_opens(self) -> None:
        """Called when a logged step opens."""
        self._enabled, self.disabled_by = False, None
        self._was_trainable = self._was_trainable or self.has_trainable()

    def step_closes(self) -> None:
        """Called when a logged step closes: if all of its passes were frozen, the model is."""
        if self._has_run and not self._runs_trainable:
            self._was_trainable = False
        self._has_run = self._runs_trainable = False
        self.may_train = self.input_learns = self.were_transformed = False

    @property
    def is_frozen(self) -> bool:
        """True if no parameter requires a gradient, and none is known to do so at times."""
        return not self._was_trainable

    def has_trainable(self) -> bool:
        """True if a parameter requires a gradient now."""
        return any(parameter.requires_grad for parameter in self._model.parameters())

    def are_transformed(self) -> bool:
        """True inside ``vmap``, ``grad`` and the like, where tensors have no values to be read."""
        found = torch._C._functorch.peek_interpreter_stack() is not None
        self.were_transformed = self.were_transformed or found
        return found

    def begins(self, received: Any) -> bool:
        """Called when a pass begins; True if it counts while an optimizer's steps are counted.

        These are the passes that could train something and, if the model is frozen, all passes in
        training mode.

        Args:
            received: what the model is called with. If its layers are called one by one, what
                the layer received or returned.
        """
        trainable, enabled = self.has_trainable(), torch.is_grad_enabled()
        self._has_run = True
        self._runs_trainable = self._runs_trainable or trainable
        self._was_trainable = self._was_trainable or trainable
        if self._was_trainable:
            self.may_train = enabled and trainable
            if trainable:
                self._enabled = self._enabled or enabled
                inference = torch.is_inference_mode_enabled()
                by = "torch.inference_mode()" if inference else "torch.no_grad()"
                self.disabled_by = None if self._enabled else by
        else:
            learns = enabled and any(tensor.requires_grad for tensor in tensors(received))
            self.input_learns = self.input_learns or learns
            # In training mode, tensors that are not parameters may learn.
            self.may_train = learns or (enabled and self._model.training)
            return learns or self._model.training
        return self.may_train


def learned_leaves(received: Any) -> tuple[Tensor, ...]:
    """The leaf tensors, such as an image or weights, that gradients of a model's input reach.

    Searches the graph in front of the model up to 256 nodes: of what is behind a deep network,
    leaves may be missing.

    >>> image = torch.rand(1, 3, 8, 8, requires_grad=True)
    >>> [leaf is image for leaf in learned_leaves(((image - 0.5) / 0.2,))]
    [True]
    """
    found = {id(leaf): leaf for tensor in tensors(received) for leaf in _leaves(tensor)}
    return tuple(found.values())


def _leaves(tensor: Tensor) -> Iterator[Tensor]:
    if tensor.grad_fn is None:
        if tensor.requires_grad:
            yield tensor
        return
    due, seen = deque([tensor.grad_fn]), {tensor.grad_fn}
    while due:
        node = due.popleft()
        leaf = getattr(node, "variable", None)  # only nodes that accumulate a gradient have it
        if isinstance(leaf, Tensor):
            yield leaf
        for following, _ in node.next_functions:
            if following is not None and following not in seen and len(seen) < _MAX_NODES:
                seen.add(following)
                due.append(following)
