"""The first training step of a loop as a function of the model's outputs, to be computed again.

Tools that check one batch before the training ask for a batch and a loss function. A loop holds
both, but only as code: here the calls that lead from the model's outputs to the loss are recorded
while the loop makes its first step.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map

Known = dict[int, Any]
"""Tensor of the recorded step, by its id -> the one in its place."""


class NotOneBatch(Exception):
    """The step cannot be given as one batch and a loss function; the text says why."""


@dataclass(frozen=True)
class Call:
    """One call of a function or of the model, and what it returned."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    options: Mapping[str, Any]
    result: Any
    has_gradients: bool

    def again(self, known: Known) -> Any:
        """The result for other tensors; those that are not known stay as they were."""
        with torch.set_grad_enabled(self.has_gradients):
            arguments, options = _replaced((self.arguments, dict(self.options)), known)
            return self.function(*arguments, **options)


def _replaced(tree: Any, known: Known) -> Any:
    return tree_map(lambda leaf: known.get(id(leaf), leaf), tree)


def _tensors(tree: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)]


class FirstStep(TorchFunctionMode):
    """Records from the model's first call on, until `stop` is called.

    What the loop draws or computes without the model's outputs is part of the batch.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self._model = model
        self._depth = 0
        self._tracked: set[int] = set()
        self._outputs: list[Call] = []
        self._calls: list[Call] = []
        self._hooks = [
            model.register_forward_pre_hook(self._before),
            model.register_forward_hook(self._after, with_kwargs=True),
        ]
        self.__enter__()

    def stop(self) -> None:
        """Leave the model and torch as they were."""
        for hook in self._hooks:
            hook.remove()
        self.__exit__(None, None, None)

    def _before(self, *_: Any) -> None:
        self._depth += 1

    def _after(self, _: nn.Module, arguments: Any, options: Any, output: Any) -> None:
        self._depth -= 1
        if self._depth:
            return
        if self._is_tracked((arguments, options)):
            raise NotOneBatch("the model is called on its own output")
        call = Call(self._model, arguments, options, output, torch.is_grad_enabled())
        self._outputs.append(call)
        self._tracked.update(map(id, _tensors(output)))

    def _is_tracked(self, tree: Any) -> bool:
        return any(id(tensor) in self._tracked for tensor in _tensors(tree))

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        options = kwargs or {}
        result = func(*args, **options)
        tensors = _tensors(result)
        if self._depth == 0 and tensors and self._is_tracked((args, options)):
            self._calls.append(Call(func, args, options, result, torch.is_grad_enabled()))
            self._tracked.update(map(id, tensors))
        return result

    def inputs(self) -> Any:
        """Of the model: those of its call, or a tuple with the first input of each call.

        Raises:
            NotOneBatch: there are none, or calls with several inputs.
        """
        if not self._outputs:
            raise NotOneBatch("the model that is trained is not called itself, only parts of it")
        if any(call.options for call in self._outputs):
            raise NotOneBatch("the model is called with keyword arguments")
        if len(self._outputs) == 1:
            arguments = self._outputs[0].arguments
            return arguments[0] if len(arguments) == 1 else arguments
        if any(len(call.arguments) != 1 for call in self._outputs):
            raise NotOneBatch("the model is called several times with several inputs")
        return tuple(call.arguments[0] for call in self._outputs)

    def forward(self, model: nn.Module, inputs: Any) -> Any:
        """The output for such inputs; a tuple with one output per call if there are several."""
        if len(self._outputs) > 1:
            return tuple(model(one) for one in inputs)
        return model(*inputs) if isinstance(inputs, tuple) else model(inputs)

    def loss(self, loss: Tensor, outputs: Any) -> Tensor:
        """The loss for other outputs of the model.

        Args:
            loss: the recorded one.
            outputs: as `forward` returns them.

        Raises:
            NotOneBatch: the loss does not depend on the model's outputs.
        """
        if id(loss) not in self._tracked:
            raise NotOneBatch("the loss is not computed from the output of the model")
        recorded = [call.result for call in self._outputs]
        given = list(outputs) if len(recorded) > 1 else [outputs]
        known: Known = {}
        _enter(known, recorded, given)
        for call in self._calls:
            _enter(known, call.result, call.again(known))
        found = known[id(loss)]
        assert isinstance(found, Tensor)
        return found

    def function_and_targets(self, loss: Tensor) -> tuple[Callable[..., Tensor], Any]:
        """A loss function as users give it: ``F.cross_entropy`` and targets, if that is all.

        Otherwise a function of the outputs alone, and None.
        """
        if len(self._calls) == len(self._outputs) == 1:
            (call,) = self._calls
            output = self._outputs[0].result
            is_plain = len(call.arguments) == 2 and call.arguments[0] is output
            if is_plain and _are_defaults(call.function, call.options):
                return call.function, call.arguments[1]
        return lambda outputs: self.loss(loss, outputs), None


def _are_defaults(function: Callable[..., Any], options: Mapping[str, Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:  # a method of a tensor
        return not options
    return all(name in parameters and parameters[name].default == options[name] for name in options)


def _enter(known: Known, recorded: Any, given: Any) -> None:
    pairs: Sequence[tuple[Any, Any]] = list(
        zip(tree_leaves(recorded), tree_leaves(given), strict=True)
    )
    known.update({id(old): new for old, new in pairs if isinstance(old, Tensor)})
