"""``intervene``: change outputs, inputs and gradients of layers, and what their channels become."""

from __future__ import annotations

import contextlib
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor, nn

from fmapboard.capture.compiled import hold_eager, release_eager
from fmapboard.capture.layer_hook import InertInCopies, recorded_last
from fmapboard.capture.taps import TAP, Tap, TapChange, changing_taps, has_taps, tap_label
from fmapboard.errors import ConfigurationError, log
from fmapboard.measure.layout import Sequences, axes_of
from fmapboard.model.given import check_model, described
from fmapboard.model.kernel_shapes import CONVOLUTIONS, output_channels
from fmapboard.model.layers import clean_name, matches, named_layers, select, unwrap
from fmapboard.model.tensors import first_tensor, replace_tensor, tensors

Channels: TypeAlias = "int | Iterable[int] | slice | None"
"""Which channels, counted from 0: one, several, a slice, or None for all."""

Value: TypeAlias = "float | Tensor"
"""A number; a tensor with one value per chosen channel; or a tensor that broadcasts to the chosen
part of the layer's tensor, in the layer's own order of axes."""
Axis = int | None
"""Number of an axis of a tensor; None infers it."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ChannelChange:
    """One operation on chosen channels of a layer's tensor.

    Attributes:
        operation: What becomes of the channels.
        channels: Which; None for all.
        value: The factor, the replacement or what is added.
        channel_axis: The axis of the channels; None infers it from the layer and the shape.
    """

    operation: Literal["silence", "scale", "replace", "add"]
    channels: tuple[int, ...] | slice | None = None
    value: Value = 0.0
    channel_axis: int | None = None

    def __repr__(self) -> str:
        given = [] if self.operation == "silence" else [_short(self.value)]
        if self.channels is not None:
            chosen = self.channels
            given.append(str(list(chosen)) if isinstance(chosen, tuple) else repr(chosen))
        if self.channel_axis is not None:
            given.append(f"channel_axis={self.channel_axis}")
        return f"{self.operation}({', '.join(given)})"

    def apply(self, tensor: Tensor, axis: int) -> Tensor:
        """A tensor of the same shape and dtype in which the chosen channels are changed.

        Gradients flow through it: those of silenced and replaced channels are 0.

        Args:
            tensor: Any shape; it is not modified.
            axis: The axis of the channels, unless ``channel_axis`` is set.

        Raises:
            ConfigurationError: A channel or the axis is out of range, or the value does not fit.
        """
        if self.channel_axis is not None:
            axis = self.channel_axis
            if not -tensor.dim() <= axis < tensor.dim():
                raise ConfigurationError(
                    f"channel_axis={axis} is out of range for shape {list(tensor.shape)}"
                )
            axis %= tensor.dim()
        if self.channels is None:
            return self._changed(tensor, axis)
        chosen = self.within(tensor.shape[axis], f"shape {list(tensor.shape)}, axis {axis}")
        if not chosen:
            return tensor
        index = torch.tensor(chosen, dtype=torch.long, device=tensor.device)
        part = self._changed(tensor.index_select(axis, index), axis)
        return tensor.clone().index_copy_(axis, index, part)  # index_copy loses channels_last

    def within(self, count: int, what: str) -> list[int]:
        """The chosen channels of a tensor with ``count`` channels.

        Raises:
            ConfigurationError: One is out of range; the message ends with ``what``.
        """
        if self.channels is None or isinstance(self.channels, slice):
            return list(range(count)[self.channels or slice(None)])
        beyond = [channel for channel in self.channels if channel >= count]
        if beyond:
            raise ConfigurationError(
                f"no channel {', '.join(map(str, beyond))}: there are {count} channels, "
                f"0…{count - 1} ({what})"
            )
        return list(self.channels)

    def _changed(self, part: Tensor, axis: int) -> Tensor:
        value = self.value if isinstance(self.value, float) else self._fitted(part, axis)
        if self.operation == "scale":
            return (part * value).to(part.dtype)
        if self.operation == "add":
            return (part + value).to(part.dtype)
        # `part` stays in the graph, so the parameters before it get gradients of 0 instead of none.
        everywhere = torch.ones((), dtype=torch.bool, device=part.device)
        empty = part.clone().masked_fill_(everywhere, 0)  # masked_fill loses channels_last
        return empty if self.operation == "silence" else (empty + value).to(part.dtype)

    def _fitted(self, part: Tensor, axis: int) -> Tensor:
        """The value as a tensor that broadcasts to ``part``."""
        assert isinstance(self.value, Tensor)  # checked by the caller
        value = self.value.to(part.device, part.dtype)
        if value.dim() == 1 and len(value) == part.shape[axis]:
            return value.reshape([-1 if one == axis else 1 for one in range(part.dim())])
        if value.dim() != 1:
            with contextlib.suppress(RuntimeError):  # the error below says what would fit
                return value.expand_as(part)
        raise ConfigurationError(
            f"a value of shape {list(value.shape)} does not fit the chosen channels: expected a "
            f"number, one value per channel [{part.shape[axis]}], or a tensor that broadcasts to "
            f"{list(part.shape)}"
        )


def silence(channels: Channels = None, *, channel_axis: Axis = None) -> ChannelChange:
    """Set channels to 0, NaN and infinity included.

    >>> silence([3, 17])
    silence([3, 17])

    Args:
        channels: Which, counted from 0: a number, several, a slice; None for all.
        channel_axis: The axis of the channels in the layer's tensor; None infers it from the layer
            and the shape, as for pictures: [N, C, H, W], tokens [N, L, C], [N, H, W, C].

    Raises:
        ConfigurationError: ``channels`` is invalid.
    """
    return ChannelChange("silence", _channels(channels), channel_axis=_axis(channel_axis))


def scale(factor: Value, channels: Channels = None, *, channel_axis: Axis = None) -> ChannelChange:
    """Multiply channels by a factor.

    >>> scale(0.5, 3)
    scale(0.5, [3])

    Args:
        factor: As in ``replace``.
        channels: As in ``silence``.
        channel_axis: As in ``silence``.

    Raises:
        ConfigurationError: An argument is invalid.
    """
    return _with_value("scale", factor, channels, channel_axis)


def replace(value: Value, channels: Channels = None, *, channel_axis: Axis = None) -> ChannelChange:
    """Replace channels by a value.

    >>> replace(1.5, [0, 2])
    replace(1.5, [0, 2])

    Args:
        value: A number, a tensor with one value per chosen channel, or a tensor that broadcasts to
            the chosen part of the layer's tensor, such as another image's maps.
        channels: As in ``silence``.
        channel_axis: As in ``silence``.

    Raises:
        ConfigurationError: An argument is invalid.
    """
    return _with_value("replace", value, channels, channel_axis)


def add(value: Value, channels: Channels = None, *, channel_axis: Axis = None) -> ChannelChange:
    """Add a value to channels.

    >>> add(torch.zeros(8))
    add(tensor [8])

    Args:
        value: As in ``replace``.
        channels: As in ``silence``.
        channel_axis: As in ``silence``.

    Raises:
        ConfigurationError: An argument is invalid.
    """
    return _with_value("add", value, channels, channel_axis)


def _with_value(
    operation: Literal["scale", "replace", "add"], value: Any, channels: Any, axis: Any
) -> ChannelChange:
    if not isinstance(value, Tensor):
        if isinstance(value, bool) or not hasattr(value, "__float__"):
            raise ConfigurationError(
                f"{operation}({described(value)}): expected a number or a tensor"
            )
        value = float(value)
    return ChannelChange(operation, _channels(channels), value, _axis(axis))


def _channels(given: Any) -> tuple[int, ...] | slice | None:
    if given is None or isinstance(given, slice):
        return given
    if isinstance(given, Tensor) and given.dtype != torch.bool:
        given = given.tolist()
    try:
        chosen = tuple(map(operator.index, given if isinstance(given, Iterable) else [given]))
    except TypeError:
        chosen = (-1,)
    if isinstance(given, (bool, str, Tensor)) or any(channel < 0 for channel in chosen):
        raise ConfigurationError(
            f"channels={given!r}: expected numbers of channels, counted from 0, such as [3, 17]"
        )
    if len(set(chosen)) < len(chosen):
        raise ConfigurationError(f"channels={given!r}: a channel is listed twice")
    return chosen


def _axis(given: Any) -> int | None:
    if given is not None and (isinstance(given, bool) or not isinstance(given, int)):
        raise ConfigurationError(f"channel_axis={given!r}: expected the number of an axis, or None")
    return given


def _short(value: Value) -> str:
    return f"tensor {list(value.shape)}" if isinstance(value, Tensor) else f"{value:g}"


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
