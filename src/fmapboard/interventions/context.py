"""``intervene``: change outputs, inputs and gradients of layers, and what their channels become."""

from __future__ import annotations

import contextlib
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias

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
        given = []
        if self.operation != "silence":
            given.append(_short(self.value))
        if isinstance(self.channels, tuple):
            given.append(str(list(self.channels)))
        elif self.channels is not None:
            given.append(repr(self.channels))
        if self.channel_axis is not None:
            given.append(f"channel_axis={self.channel_axis}")
        arguments = ", ".join(given)
        return f"{self.operation}({arguments})"

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
                    f"channel_axis={axis} is out of range for shape {list(tensor.shape)}; give "
                    f"one from 0 to {tensor.dim() - 1}"
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
                f"0…{count - 1} ({what}); give numbers of these"
            )
        return list(self.channels)

    def _changed(self, part: Tensor, axis: int) -> Tensor:
        value = self.value
        if isinstance(value, Tensor):
            value = _fitted(value, part, axis)
        if self.operation == "scale":
            return (part * value).to(part.dtype)
        if self.operation == "add":
            return (part + value).to(part.dtype)
        # `part` stays in the graph, so the parameters before it get gradients of 0 instead of none.
        everywhere = torch.ones((), dtype=torch.bool, device=part.device)
        empty = part.clone().masked_fill_(everywhere, 0)  # masked_fill loses channels_last
        if self.operation == "silence":
            return empty
        return (empty + value).to(part.dtype)


def _fitted(value: Tensor, part: Tensor, axis: int) -> Tensor:
    """A value as a tensor that broadcasts to the chosen part of a layer's tensor."""
    value = value.to(part.device, part.dtype)
    channels = part.shape[axis]
    if value.dim() != 1:
        with contextlib.suppress(RuntimeError):  # the error below says what would fit
            return value.expand_as(part)
    elif len(value) == channels:
        shape = [1] * part.dim()
        shape[axis] = channels
        return value.reshape(shape)
    raise ConfigurationError(
        f"a value of shape {list(value.shape)} does not fit the chosen channels: expected a "
        f"number, one value per channel [{channels}], or a tensor that broadcasts to "
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
    chosen = _channels(channels)
    return ChannelChange("silence", chosen, channel_axis=_axis(channel_axis))


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
        is_number = hasattr(value, "__float__") and not isinstance(value, bool)
        if not is_number:
            raise ConfigurationError(
                f"{operation}({described(value)}): expected a number or a tensor"
            )
        value = float(value)
    chosen = _channels(channels)
    return ChannelChange(operation, chosen, value, _axis(axis))


def _channels(given: Any) -> tuple[int, ...] | slice | None:
    if given is None or isinstance(given, slice):
        return given
    if isinstance(given, Tensor) and given.dtype != torch.bool:
        given = given.tolist()
    several = given if isinstance(given, Iterable) else [given]
    try:
        chosen = tuple(map(operator.index, several))
    except TypeError:
        chosen = (-1,)
    is_negative = any(channel < 0 for channel in chosen)
    if is_negative or isinstance(given, (bool, str, Tensor)):
        raise ConfigurationError(
            f"channels={given!r}: expected numbers of channels, counted from 0, such as [3, 17]"
        )
    if len(set(chosen)) < len(chosen):
        raise ConfigurationError(
            f"channels={given!r}: a channel is listed twice; list each one once"
        )
    return chosen


def _axis(given: Any) -> int | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int):
        raise ConfigurationError(f"channel_axis={given!r}: expected the number of an axis, or None")
    return given


def _short(value: Value) -> str:
    if isinstance(value, Tensor):
        return f"tensor {list(value.shape)}"
    return f"{value:g}"


Change = ChannelChange | Callable[[Tensor], Tensor]
"""Says what becomes of a tensor; a function returns a tensor of the same shape."""

Where = Literal["outputs", "inputs", "gradients"]

Changes: TypeAlias = "Mapping[str | re.Pattern[str] | type[nn.Module], Change | Sequence[Change]]"
"""Layer -> what becomes of its tensor, or several changes that are made in order. A layer is a
name, a glob, a compiled regular expression or a module type, as in ``watch``."""


class _Planned(NamedTuple):
    """A change of one layer.

    Attributes:
        name: The layer's name; for tapped tensors, the pattern that selects them.
        module: The layer; ``TAP`` for tapped tensors.
        where: What is changed.
        change: What becomes of it.
    """

    name: str
    module: nn.Module
    where: Where
    change: Change


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
        self.name = name
        self._where = where
        self._change = change
        self._sequences = sequences
        self.was_called = False
        self.follows_recording = where == "gradients"

    def __call__(self, module: nn.Module, args: Any, kwargs: Any, output: Any = None) -> Any:
        """What takes the place of the output, or of ``(args, kwargs)``.

        Its first floating-point tensor, or its first tensor, is changed; for gradients, that is a
        copy whose gradient is changed in the backward pass before it reaches the layer.
        """
        self.was_called = True
        is_input = self._where == "inputs"
        value = (args, kwargs) if is_input else output
        chosen = first_tensor(value)
        if chosen is None:
            chosen = next(iter(tensors(value)), None)
        if chosen is None:
            verb = "receives" if is_input else "returned"
            raise ConfigurationError(
                f"{self.name!r} {verb} no tensor that could be changed; name a layer inside or "
                "behind it"
            )
        if self._where == "gradients":
            changed = self._with_gradient(module, chosen)
        else:
            changed = self._changed(module, chosen)
        if changed is chosen:
            return value
        return replace_tensor(value, chosen, changed)

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
        what = type(found).__name__
        if isinstance(found, Tensor):
            what = f"shape {list(found.shape)}"
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
        kind = type(self._root).__name__
        changes = [f"{planned.name}: {planned.change!r}" for planned in self._planned]
        listed = ", ".join(changes) or "no changes"
        return f"Intervention({kind}, {listed})"

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers that are changed, without repetition."""
        names = dict.fromkeys(planned.name for planned in self._planned)
        return tuple(names)

    def __enter__(self) -> Intervention:
        if self._open is not None:
            raise ConfigurationError("this intervention is active already; call intervene() again")
        with contextlib.ExitStack() as stack:
            stack.callback(release_eager, self)
            hold_eager(self)  # compiled code would ignore the hooks
            sequences = Sequences.of(self._root)
            self._hooks: list[ChangeHook] = []
            for planned in self._in_order():
                name, module, where, change = planned
                hook = ChangeHook(name, where, change, sequences)
                self._hooks.append(hook)
                if isinstance(module, Tap):
                    tap_change = self._tap_change(name, hook)
                    stack.enter_context(changing_taps(tap_change))
                    continue
                if where == "inputs":
                    handle = module.register_forward_pre_hook(hook, with_kwargs=True)
                else:
                    handle = module.register_forward_hook(hook, with_kwargs=True)
                stack.callback(handle.remove)
            stack.enter_context(recorded_last(self._root))
            self._open = stack.pop_all()
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        stack = self._open
        self._open = None
        if stack is None:
            return
        stack.close()
        if error is not None:
            return
        unused = [hook.name for hook in self._hooks if not hook.was_called]
        for name in dict.fromkeys(unused):
            log.warning(
                "intervene: %r was not called, so nothing was changed there; name a layer that "
                "fmapboard.layers(model, x) shows with an output",
                name,
            )

    def _in_order(self) -> list[_Planned]:
        """The changes in the order in which their hooks are installed.

        Of several hooks on a layer's output, the last one changes the gradient first.
        """
        hooks = []
        of_gradients = []
        for planned in self._planned:
            is_hook = planned.module is not TAP
            if is_hook and planned.where == "gradients":
                of_gradients.append(planned)
            else:
                hooks.append(planned)
        of_gradients.reverse()
        return hooks + of_gradients

    def _tap_change(self, pattern: str, hook: ChangeHook) -> TapChange:
        """Changes the tapped tensors of this model whose names match."""
        names = named_layers(self._root)
        own = set(self._root.modules())
        matching = self._patterns.get(pattern, pattern)

        def change(name: str, value: Any, running: list[nn.Module]) -> Any:
            if own.isdisjoint(running):
                return value
            label = tap_label(name, names)
            if not matches(matching, label):
                return value
            return hook(TAP, (), {}, value)

        return change

    def _plan(self, where: Where, given: Changes | None) -> Iterator[_Planned]:
        if given is None:
            return
        if not isinstance(given, Mapping):
            raise ConfigurationError(
                f"{where}={described(given)}: expected a dict from layers to changes, such as "
                '{"layer1.0.conv1": fmapboard.silence([3, 17])}'
            )
        for key, changes in given.items():
            several: Sequence[Any] = [changes]
            if isinstance(changes, (list, tuple)):
                several = changes
            selected = self._selected(where, key)
            for name, module in selected.items():
                for change in several:
                    _check_change(where, name, module, change)
                    yield _Planned(name, module, where, change)

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
            self._patterns[name] = key
            return {name: TAP}
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
    if change.channel_axis is not None:
        return
    count = _channels_of(module, where)
    if count is not None:
        kind = type(module).__name__
        try:
            change.within(count, f"{where} of {kind}")
        except ConfigurationError as error:
            raise ConfigurationError(f"{change!r} of {name!r}: {error}") from None


def _channels_of(module: nn.Module, where: Where) -> int | None:
    """The number of channels of a layer's tensor if its attributes say so."""
    of_inputs = where == "inputs"
    count: int | None = None
    if isinstance(module, CONVOLUTIONS):
        count = module.in_channels if of_inputs else module.out_channels
    elif isinstance(module, nn.Linear):
        count = module.in_features if of_inputs else module.out_features
    elif isinstance(module, _NORMS):
        count = module.num_features
    elif not of_inputs:
        count = output_channels(module)
    return count or None  # 0 in lazy layers
