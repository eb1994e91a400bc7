"""``intervene``: change outputs, inputs and gradients of layers for the duration of a block."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias

from torch import Tensor, nn

from fmapboard.capture.compiled import hold_eager, release_eager
from fmapboard.capture.layer_hook import InertInCopies, recorded_last
from fmapboard.capture.taps import TAP, Tap, TapChange, changing_taps, has_taps, tap_label
from fmapboard.errors import ConfigurationError, log
from fmapboard.interventions.channels import ChannelChange
from fmapboard.measure.layout import Sequences, axes_of
from fmapboard.model.given import check_model, described
from fmapboard.model.kernel_shapes import CONVOLUTIONS, output_channels
from fmapboard.model.layers import clean_name, matches, named_layers, select, unwrap
from fmapboard.model.tensors import first_tensor, replace_tensor, tensors

Change = ChannelChange | Callable[[Tensor], Tensor]
"""Says what becomes of a tensor; a function returns a tensor of the same shape."""

Where = Literal["outputs", "inputs", "gradients"]

Changes: TypeAlias = "Mapping[str | re.Pattern[str] | type[nn.Module], Change | Sequence[Change]]"
"""Layer -> what becomes of its tensor, or several changes that are made in order. A layer is a
name, a glob, a compiled regular expression or a module type, as in ``watch``."""

_NORMS = nn.modules.batchnorm._NormBase  # BatchNorm and InstanceNorm


class ChangeHook(InertInCopies):
    """A forward hook that changes a layer's output, its gradient or, as a pre-hook, its input.

    Errors are raised in the user's forward pass or, for gradients, in the backward pass.

    Args:
        name: The layer's name.
        where: What is changed.
        change: What becomes of it.
        sequences: How tensors with three axes are read.

    Attributes:
        name: As passed.
        follows_recording: See ``InertInCopies``.
        was_called: True once the layer has run.
    """

    __slots__ = ("_change", "_sequences", "_where", "follows_recording", "name", "was_called")

    def __init__(self, name: str, where: Where, change: Change, sequences: Sequences) -> None:
        self.name, self._where, self._change = name, where, change
        self._sequences, self.was_called = sequences, False
        self.follows_recording = where == "gradients"

    def __call__(self, module: nn.Module, args: Any, kwargs: Any, output: Any = None) -> Any:
        """What takes the place of the output, or of ``(args, kwargs)``.

        Its first floating-point tensor, or its first tensor, is changed; for gradients, that is a
        copy whose gradient is changed in the backward pass before it reaches the layer.
        """
        self.was_called = True
        value = (args, kwargs) if self._where == "inputs" else output
        chosen = first_tensor(value)
        if chosen is None:
            chosen = next(iter(tensors(value)), None)
        if chosen is None:
            verb = "receives" if self._where == "inputs" else "returned"
            raise ConfigurationError(f"{self.name!r} {verb} no tensor that could be changed")
        change = self._with_gradient if self._where == "gradients" else self._changed
        changed = change(module, chosen)
        return value if changed is chosen else replace_tensor(value, chosen, changed)

    def _changed(self, module: nn.Module, tensor: Tensor) -> Tensor:
        change = self._change
        if not isinstance(change, ChannelChange):
            return self._checked(change(tensor), tensor)
        axes = axes_of(module, tensor.shape, self._sequences)
        try:
            return change.apply(tensor, axes.channels)
        except ConfigurationError as error:
            raise ConfigurationError(
                f"{change!r} of {self._where} of {self.name!r}: {error}"
            ) from None

    def _with_gradient(self, module: nn.Module, tensor: Tensor) -> Tensor:
        if not tensor.requires_grad:
            return tensor
        is_tapped = isinstance(module, Tap) and not tensor.is_leaf  # what tap returns may be unused
        # A layer may have returned its input, which others use too.
        own = tensor if is_tapped else tensor.clone()
        own.register_hook(partial(self._changed, module))  # type: ignore[no-untyped-call]  # torch
        return own

    def _checked(self, found: Any, tensor: Tensor) -> Tensor:
        if isinstance(found, Tensor) and found.shape == tensor.shape:
            return found
        what = f"shape {list(found.shape)}" if isinstance(found, Tensor) else type(found).__name__
        raise ConfigurationError(
            f"the function for {self._where} of {self.name!r} returned {what}: expected a tensor "
            f"of shape {list(tensor.shape)}, as it received"
        )


class Intervention:
    """A context manager that installs an intervention's hooks; ``intervene`` documents it.

    It may be entered again after it was left. Inside the block, its layers' names are in
    ``layers``.
    """

    def __init__(
        self,
        model: nn.Module,
        outputs: Changes | None,
        inputs: Changes | None,
        gradients: Changes | None,
    ) -> None:
        check_model(model)
        self._root = unwrap(model)
        self._wrapped = model is not self._root
        self._patterns: dict[str, str | re.Pattern[str]] = {}  # of tapped tensors
        self._planned = [
            *self._plan("outputs", outputs),
            *self._plan("inputs", inputs),
            *self._plan("gradients", gradients),
        ]
        self._open: contextlib.ExitStack | None = None

    def __repr__(self) -> str:
        changes = ", ".join(f"{name}: {change!r}" for name, _, _, change in self._planned)
        return f"Intervention({type(self._root).__name__}, {changes or 'no changes'})"

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers that are changed, without repetition."""
        return tuple(dict.fromkeys(name for name, *_ in self._planned))

    def __enter__(self) -> Intervention:
        if self._open is not None:
            raise ConfigurationError("this intervention is active already; call intervene() again")
        with contextlib.ExitStack() as stack:
            stack.callback(release_eager, self)
            hold_eager(self)  # compiled code would ignore the hooks
            sequences = Sequences.of(self._root)
            self._hooks: list[ChangeHook] = []
            # Of several hooks on a layer's output, the last one changes the gradient first.
            last = [one for one in self._planned if one[2] == "gradients" and one[1] is not TAP]
            others = [one for one in self._planned if one not in last]
            for name, module, where, change in [*others, *reversed(last)]:
                hook = ChangeHook(name, where, change, sequences)
                self._hooks.append(hook)
                if isinstance(module, Tap):
                    stack.enter_context(changing_taps(self._tap_change(name, hook)))
                    continue
                install = (
                    module.register_forward_pre_hook
                    if where == "inputs"
                    else module.register_forward_hook
                )
                stack.callback(install(hook, with_kwargs=True).remove)
            stack.enter_context(recorded_last(self._root))
            self._open = stack.pop_all()
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        stack, self._open = self._open, None
        if stack is None:
            return
        stack.close()
        for name in dict.fromkeys(hook.name for hook in self._hooks if not hook.was_called):
            if error is None:
                log.warning("intervene: %r was not called, so nothing was changed there", name)

    def _tap_change(self, pattern: str, hook: ChangeHook) -> TapChange:
        """Changes the tapped tensors of this model whose names match."""
        names, own = named_layers(self._root), set(self._root.modules())
        matching = self._patterns.get(pattern, pattern)

        def change(name: str, value: Any, running: list[nn.Module]) -> Any:
            if own.isdisjoint(running) or not matches(matching, tap_label(name, names)):
                return value
            return hook(TAP, (), {}, value)

        return change

    def _plan(
        self, where: Where, given: Changes | None
    ) -> Iterator[tuple[str, nn.Module, Where, Change]]:
        if given is None:
            return
        if not isinstance(given, Mapping):
            raise ConfigurationError(
                f"{where}={described(given)}: expected a dict from layers to changes, such as "
                '{"layer1.0.conv1": fmapboard.silence([3, 17])}'
            )
        for key, changes in given.items():
            several: Sequence[Any] = changes if isinstance(changes, (list, tuple)) else [changes]
            for name, module in self._selected(where, key).items():
                for change in several:
                    _check_change(where, name, module, change)
                    yield name, module, where, change

    def _selected(self, where: Where, key: Any) -> dict[str, nn.Module]:
        is_exclusion = isinstance(key, str) and key.startswith("!")
        if is_exclusion or not isinstance(key, (str, re.Pattern, type)):
            raise ConfigurationError(
                f"{where} has the key {described(key)}: expected a layer's name, a glob, a "
                "compiled regex or a module type"
            )
        if isinstance(key, str):
            key = clean_name(key)
            own = dict(self._root.named_children())
            if self._wrapped and key.startswith("module.") and "module" not in own:
                key = key.removeprefix("module.")
        may_be_tap = where != "inputs" and not isinstance(key, type)
        taps = partial(has_taps, self._root) if may_be_tap else bool
        found = select(self._root, key, has_taps=taps)
        if not found:
            name = key if isinstance(key, str) else key.pattern
            found, self._patterns[name] = {name: TAP}, key
        return found


def intervene(
    model: nn.Module,
    outputs: Changes | None = None,
    *,
    inputs: Changes | None = None,
    gradients: Changes | None = None,
) -> Intervention:
    """Change what layers return, receive or propagate, for the duration of a ``with`` block.

    Hooks are on the model only inside the block, however it ends. They come after those that the
    model already has. Blocks may be nested: the outer one changes a tensor first. Copies of the
    model that are made inside the block are without the intervention. Compiled models run eagerly
    inside the block, because compiled code would ignore the hooks.

    Inside the block, ``watch``, ``extract`` and ``visualize`` show what the next layer receives.

    Args:
        model: Any module; DistributedDataParallel, DataParallel and torch.compile are unwrapped.
        outputs: Layer -> what becomes of its output: ``silence(...)``, ``scale(...)``,
            ``replace(...)``, ``add(...)``, a function from a tensor to a tensor of the same shape,
            or a list of these. Layers are selected as in ``watch``: names, globs, compiled regular
            expressions and module types; a name or pattern that matches no module selects tensors
            named by ``tap``. Of several tensors, the first one of a floating-point
            dtype is changed.
        inputs: The same for what layers receive.
        gradients: The same for the gradient of layers' outputs, before it flows back into them. A
            forward pass inside the block keeps these changes if its backward pass runs later.

    Returns:
        The context manager.

    Raises:
        LayerNotFound: A name or pattern matches no layer; the message lists similar names.
        NoConvolution: A convolution type was given, and the model has no convolution.
        ConfigurationError: An argument is invalid, or a layer has no such channel. If that depends
            on the tensor, it is raised in the model's forward or backward pass.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> from fmapboard import intervene, silence
        >>> net = nn.Sequential(nn.Conv2d(1, 2, 1), nn.ReLU())
        >>> with intervene(net, {"0": silence(1)}):
        ...     maps = net(torch.ones(1, 1, 4, 4))
        >>> maps[:, 1].any().item()
        False
    """
    return Intervention(model, outputs, inputs, gradients)


def _check_change(where: Where, name: str, module: nn.Module, change: Any) -> None:
    if not isinstance(change, ChannelChange):
        if not callable(change) or isinstance(change, type):
            raise ConfigurationError(
                f"{where}[{name!r}]={described(change)}: expected silence(...), scale(...), "
                "replace(...), add(...), or a function of a tensor"
            )
        return
    count = None if change.channel_axis is not None else _channels_of(module, where)
    if count is not None:
        try:
            change.within(count, f"{where} of {type(module).__name__}")
        except ConfigurationError as error:
            raise ConfigurationError(f"{change!r} of {name!r}: {error}") from None


def _channels_of(module: nn.Module, where: Where) -> int | None:
    """The number of channels of a layer's tensor if its attributes say so."""
    if isinstance(module, CONVOLUTIONS):
        count = module.in_channels if where == "inputs" else module.out_channels
    elif isinstance(module, nn.Linear):
        count = module.in_features if where == "inputs" else module.out_features
    elif isinstance(module, _NORMS):
        count = module.num_features
    else:
        count = 0 if where == "inputs" else output_channels(module) or 0
    return count or None  # 0 in lazy layers
