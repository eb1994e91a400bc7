"""``Task``: how a batch goes through a network, and what its loss is."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from fmapboard.errors import ConfigurationError
from fmapboard.interrupts import raise_interrupt
from fmapboard.model.layers import unwrap
from fmapboard.model.tensors import tensors

LABELS = frozenset(
    {
        *("label", "labels", "target", "targets", "y", "class", "classes", "class_id"),
        *("category", "lbl", "gt", "ground_truth", "mask", "masks", "segmentation", "answer"),
    }
)
"""Names of labels in a batch, and of the argument of ``forward`` that takes them."""


class Parts(NamedTuple):
    """What a batch consists of.

    Attributes:
        args: positional arguments of the network.
        kwargs: keyword arguments of the network.
        label: a tensor or nested values; None if the batch has none.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    label: Any


@dataclass(frozen=True, slots=True)
class Task:
    """Computes outputs and losses of a network.

    Attributes:
        parameters: those of the network's ``forward``.
        loss: a function of (output, batch), or, with ``takes_label``, of (output, label). None if
            the network returns its loss.
        takes_label: see ``loss``.
        takes_dict: the network gets a batch that is a dict as it is, not the tensors in it.
        step: the loss as a framework computes it, from the network and a batch, in place of
            ``loss``; None without a framework.
    """

    parameters: tuple[inspect.Parameter, ...]
    loss: Callable[[Any, Any], Tensor] | None = None
    takes_label: bool = False
    takes_dict: bool = False
    step: Callable[[nn.Module, Any], Tensor] | None = None

    def __call__(self, model: nn.Module, batch: Any) -> Tensor:
        """The loss of a batch, one number."""
        if self.step is not None:
            return as_loss(self.step(model, batch))
        return self.loss_of(self.output(model, batch), batch)

    def own(self, own: Callable[[Any], Any]) -> Task:
        """The same task with copies of its functions."""
        return replace(self, loss=own(self.loss), step=own(self.step))

    def output(self, model: nn.Module, batch: Any) -> Any:
        """What the network returns for a batch."""
        parts = self.parts(batch)
        return model(*parts.args, **parts.kwargs)

    def loss_of(self, output: Any, batch: Any) -> Tensor:
        """The loss of an output."""
        if self.loss is None:
            return as_loss(output)
        if not self.takes_label:
            return as_loss(self.loss(output, batch))
        parts = self.parts(batch)
        target = parts.label
        if target is None:  # an autoencoder's
            target = next(iter((*parts.args, *parts.kwargs.values())))
        return as_loss(self.loss(output, target))

    def parts(self, batch: Any) -> Parts:
        """What of a batch the network gets, and what is its label."""
        if isinstance(batch, Parts):
            return batch
        if isinstance(batch, Tensor):
            return Parts((batch,), {}, None)
        if isinstance(batch, Mapping):
            return self._of_mapping(batch)
        if isinstance(batch, (tuple, list)) and batch:
            return self._of_sequence(tuple(batch))
        raise ConfigurationError(
            f"batch={type(batch).__name__}: expected a tensor, a tuple or a dict of tensors, or "
            "several of these, such as a DataLoader"
        )

    def _of_sequence(self, items: tuple[Any, ...]) -> Parts:
        if len(items) == 1:
            return Parts(items, {}, None)
        positional = [p for p in self.parameters if p.kind in _POSITIONAL]
        required = [p for p in positional if p.default is inspect.Parameter.empty]
        count = min(max(len(required), 1), len(items))
        args = items[:count]
        label = items[-1]
        if len(positional) > count and positional[count].name.lower() in LABELS:
            args = (*args, label)
        return Parts(args, {}, label)

    def _of_mapping(self, batch: Mapping[Any, Any]) -> Parts:
        names = {p.name for p in self.parameters}
        is_open = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in self.parameters)
        label = next((batch[key] for key in batch if str(key).lower() in LABELS), None)
        if self.takes_dict:
            return Parts((batch,), {}, label)
        taken = {str(key): value for key, value in batch.items() if key in names}
        if taken:
            if is_open:
                taken = {str(key): value for key, value in batch.items()}
            return Parts((), {**self._unnamed(batch, taken), **taken}, label)
        inputs = [batch[key] for key in batch if str(key).lower() not in LABELS]
        held = [value for value in inputs if tensors(value)]
        if not held:
            if not batch:
                raise ConfigurationError("batch is an empty dict")
            raise ConfigurationError(
                f"batch has the keys {', '.join(map(str, batch))}: forward() takes none of them"
            )
        required = [p for p in self.parameters if p.default is inspect.Parameter.empty]
        count = sum(p.kind in _POSITIONAL for p in required)
        return Parts(tuple(held[: max(count, 1)]), {}, label)

    def _unnamed(self, batch: Mapping[Any, Any], taken: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments that no key has the name of: the other tensors, in their order."""
        others = [
            value
            for key, value in batch.items()
            if str(key) not in taken and str(key).lower() not in LABELS and tensors(value)
        ]
        missing = [
            parameter.name
            for parameter in self.parameters
            if parameter.default is inspect.Parameter.empty
            and parameter.kind in (*_POSITIONAL, inspect.Parameter.KEYWORD_ONLY)
            and parameter.name not in taken
        ]
        return dict(zip(missing, others, strict=False))


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def as_loss(found: Any) -> Tensor:
    """The loss in what a loss function, a network or a training step has returned.

    Raises:
        ConfigurationError: there is none.
    """
    held = found
    if isinstance(found, Mapping) and "loss" in found:
        held = found["loss"]
    elif getattr(found, "loss", None) is not None:
        held = found.loss
    elif isinstance(found, Mapping):
        parts = [value for value in found.values() if isinstance(value, Tensor)]
        if parts and all(part.dim() == 0 for part in parts):
            held = torch.stack(parts).sum()  # the losses of a detector
    if isinstance(held, (tuple, list)) and held and isinstance(held[0], Tensor):
        held = held[0]
    if isinstance(held, Tensor) and held.numel() == 1:
        return held.reshape(())
    kind = f"tensor {list(held.shape)}" if isinstance(held, Tensor) else type(held).__name__
    raise ConfigurationError(
        f"expected a loss of one number, not {kind}; pass loss=, a function of (output, batch) "
        "that returns it"
    )


def task_of(model: nn.Module, loss: Any, run: Callable[[Task], Any]) -> Task:
    """How to compute the loss.

    Args:
        model: the network.
        loss: a function of (output, batch) or of (output, label), a module, or None.
        run: tries a task on a batch.

    Returns:
        The first way that raises nothing: the network gets the tensors of a batch that is a dict,
        or else the dict. If all ways raise, the first one.
    """
    inner = unwrap(model)
    parameters = tuple(inspect.signature(inner.forward).parameters.values())
    if loss is not None and not callable(loss):
        raise ConfigurationError(
            f"loss={type(loss).__name__}: expected a function of (output, batch), or a module"
        )
    ways = [Task(parameters, loss)]
    if loss is not None:
        ways.append(Task(parameters, loss, takes_label=True))
    module = getattr(loss, "__module__", "") or ""
    if isinstance(loss, nn.Module) or module.startswith("torch."):
        ways.reverse()
    ways += [replace(way, takes_dict=True) for way in ways]
    for way in ways:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of a way that is none
                run(way)
        except Exception as error:
            raise_interrupt(error)
        else:
            return way
    return ways[0]
