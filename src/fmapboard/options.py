"""The options of ``fmapboard.watch``, each defined and validated in one place."""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, Protocol, TypedDict, get_args

import numpy as np
from typing_extensions import Unpack

from fmapboard.errors import ConfigurationError, closest
from fmapboard.health.run import Checks, chosen
from fmapboard.records import Normalization, Scale
from fmapboard.render.palettes import checked_colormap
from fmapboard.schedule import Schedule, as_schedule, step_number, whole_number

SECONDS = 60.0
"""How long experiments on copies of the network take by default at most."""

WhenFull = Literal["wait", "drop_oldest"]
Compiled = Literal["side_pass", "eager"]


COMMON = (
    *("model", "log_dir", "optimizer", "every", "layers", "samples", "probe", "normalization"),
    *("max_channels", "max_tile", "name", "start_step"),
)
"""The parameters of ``watch`` that most trainings need; ``help()`` and the docs begin with them."""


class Normalizing(Protocol):
    """A transform that normalizes images, such as torchvision's ``Normalize``."""

    mean: Sequence[float]
    std: Sequence[float]


class CommonOptions(TypedDict, total=False):
    """The keyword options shared by ``fmapboard.watch`` and all integrations (see ``watch``)."""

    name: str | None
    samples: int
    probe: Any
    inputs: bool
    activation_gradients: bool
    effective: bool
    routers: Any
    attribution: bool | str
    attribution_loss: Callable[[Any], Any] | None
    kernels: bool | int
    max_channels: int | None
    max_tile: int | None
    depth: int | None
    max_bytes_per_step: int | None
    reduce_statistics: bool
    update_ratios: bool
    compiled: Compiled
    scale: Scale
    colormap: str
    normalization: tuple[Sequence[float], Sequence[float]] | Normalizing | None
    class_names: Sequence[str]
    tokens: Any
    when_full: WhenFull
    checks: Checks


class WatchOptions(CommonOptions, total=False):
    """The options in ``CommonOptions``, and those that integrations set themselves."""

    every: int | Schedule
    start_step: int
    prove: bool | float
    rehearse: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The validated options of a ``FeatureMapLogger``; ``watch`` describes each.

    >>> Options(kernels=5).kernels_every
    5

    Raises:
        ConfigurationError: an option has an invalid value.
    """

    every: int | Schedule = 100
    start_step: int = 0
    name: str | None = None
    samples: int = 1
    probe: Any = None
    inputs: bool = False
    activation_gradients: bool = False
    effective: bool = False
    routers: Any = ()
    attribution: bool | str = False
    attribution_loss: Callable[[Any], Any] | None = None
    kernels: bool | int = True
    max_channels: int | None = 64
    max_tile: int | None = 64
    depth: int | None = None
    max_bytes_per_step: int | None = None
    reduce_statistics: bool = False
    update_ratios: bool = True
    compiled: Compiled = "side_pass"
    scale: Scale = "channel"
    colormap: str = "grey"
    normalization: Normalization | None = None
    class_names: tuple[str, ...] = ()
    tokens: Callable[[list[int]], Sequence[str]] | None = None
    when_full: WhenFull = "wait"
    checks: Checks = True
    prove: bool | float = False
    rehearse: bool = False

    @classmethod
    def of(cls, **given: Unpack[WatchOptions]) -> Options:
        """Create the options from keyword arguments as a user passes them.

        Raises:
            ConfigurationError: an option does not exist (the message lists the closest names) or
                has an invalid value.
        """
        check_names(given, [field.name for field in fields(cls)])
        pair = given.get("normalization")
        checked = None if pair is None else checked_normalization(pair)
        return cls(**{**given, "normalization": checked})  # type: ignore[arg-type]  # cls() validates it

    def __post_init__(self) -> None:
        self._need_positive("samples", "max_channels", "max_tile", "max_bytes_per_step")
        check_depth(self.depth)
        self._need_one_of("scale", Scale)
        self._need_one_of("when_full", WhenFull)
        self._need_one_of("compiled", Compiled)
        object.__setattr__(self, "colormap", checked_colormap(self.colormap))
        as_schedule(self.every)
        object.__setattr__(self, "start_step", step_number(self.start_step, "start_step"))
        self._need_bool("inputs", "activation_gradients", "effective", "reduce_statistics")
        self._need_bool("update_ratios", "rehearse")
        if self.reduce_statistics and self.when_full == "drop_oldest":
            raise ConfigurationError(
                "reduce_statistics=True and when_full='drop_oldest' are mutually exclusive: each "
                "rank would drop other steps; use when_full='wait'"
            )
        object.__setattr__(self, "class_names", _class_names(self.class_names))
        object.__setattr__(self, "tokens", _naming(self.tokens))
        chosen(self.checks)
        self._check_prove()
        if not isinstance(self.attribution, str):
            if not isinstance(self.attribution, (bool, np.bool_)):
                found = type(self.attribution).__name__
                raise ConfigurationError(
                    f"attribution={found}: expected True, False, or a glob on layer names"
                )
            object.__setattr__(self, "attribution", bool(self.attribution))
        if self.attribution_loss is not None:
            self._check_attribution_loss()
        kernels = whole_number(self.kernels)
        if not isinstance(self.kernels, bool) and (kernels is None or kernels < 0):
            raise ConfigurationError(
                f"kernels={self.kernels!r}: expected True, False, or a number of logged steps"
            )
        if self.name is not None and not _is_tag(self.name):
            raise ConfigurationError(
                f"name={self.name!r}: expected a non-empty string without '/' or lone surrogates"
            )

    @property
    def prove_seconds(self) -> float:
        """How long experiments on copies of the network may take in all, s."""
        return SECONDS if self.prove is True else float(self.prove)

    @property
    def kernels_every(self) -> int:
        """Read convolution kernels at every n-th logged step; 0 for never."""
        if self.kernels is True and self.max_channels is None:
            return 10  # whole weights take long to copy
        return int(self.kernels)

    @property
    def step_attribution(self) -> bool | str:
        """``attribution``, unless it is that of the probe."""
        return self.attribution if self.attribution_loss is None else False

    def _check_prove(self) -> None:
        seconds = self.prove
        is_number = isinstance(seconds, (int, float)) and math.isfinite(seconds)
        if not is_number or seconds < 0:
            raise ConfigurationError(
                f"prove={seconds!r}: expected True, False, or how many seconds it may take"
            )
        if seconds and self.checks is False:
            raise ConfigurationError("prove= requires checks, which name the causes to prove")

    def _check_attribution_loss(self) -> None:
        if not callable(self.attribution_loss):
            found = type(self.attribution_loss).__name__
            raise ConfigurationError(
                f"attribution_loss={found}: expected a function of the model's output on the probe "
                "that returns the loss"
            )
        for name in ("probe", "attribution"):
            if getattr(self, name) is None or getattr(self, name) is False:
                raise ConfigurationError(f"attribution_loss= requires {name}=")

    def _need_positive(self, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            number = whole_number(value)
            if value is None and name != "samples":
                continue
            if number is None or number < 1:
                raise ConfigurationError(f"{name}={value!r}: expected a whole number, at least 1")
            object.__setattr__(self, name, number)

    def _need_bool(self, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            if not isinstance(value, (bool, np.bool_)):
                raise ConfigurationError(f"{name}={type(value).__name__}: expected True or False")

    def _need_one_of(self, name: str, choices: Any) -> None:
        value = getattr(self, name)
        if value not in get_args(choices):
            expected = " or ".join(map(repr, get_args(choices)))
            raise ConfigurationError(f"{name}={value!r}: expected {expected}")


def _class_names(names: Any) -> tuple[str, ...]:
    """The names of the classes.

    Raises:
        ConfigurationError: it is no list of strings.
    """
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise ConfigurationError(
            f"class_names={names!r}: expected a list of strings, one per class"
        )
    return tuple(names)


def _naming(tokens: Any) -> Callable[[list[int]], Sequence[str]] | None:
    """What names ids: a function as it is, of a tokenizer of transformers its method.

    Raises:
        ConfigurationError: it is neither.
    """
    if tokens is None:
        return None
    naming = getattr(tokens, "convert_ids_to_tokens", tokens)
    if not callable(naming) or isinstance(naming, type):
        raise ConfigurationError(
            f"tokens={type(tokens).__name__}: expected a tokenizer of transformers, or a function "
            "that gets a list of ids and returns the name of each"
        )
    return naming  # type: ignore[no-any-return]  # any callable


def _is_tag(name: Any) -> bool:
    """True if the value can prefix a tag: a non-empty string without '/' that UTF-8 can encode."""
    if not isinstance(name, str):
        return False
    return bool(name) and "/" not in name and name.encode("utf-8", "ignore").decode() == name


def checked_normalization(given: Any) -> Normalization:
    """Mean and standard deviation per channel, from a pair or from a transform that has them.

    Raises:
        ConfigurationError: It is neither.
    """
    # Of torchvision's Normalize these are values, of a tensor or an array they are methods.
    is_transform = hasattr(given, "std") and not callable(given.std)
    pair = (given.mean, given.std) if is_transform else given
    try:
        mean, std = (tuple(float(value) for value in part) for part in pair)
    except (TypeError, ValueError):
        mean = std = ()
    usable = all(map(math.isfinite, (*mean, *std))) and all(value > 0 for value in std)
    if not mean or len(mean) != len(std) or not usable:
        raise ConfigurationError(
            f"normalization={given!r}: expected (mean, std), each a sequence of one "
            "number per channel of the input, such as ([0.5], [0.5]), with std above 0, or a "
            "transforms.Normalize"
        )
    return mean, std


def check_names(given: Iterable[str], known: Iterable[str]) -> None:
    """Check that options exist.

    Args:
        given: names of the options that were passed.
        known: names of the options that there are.

    Raises:
        ConfigurationError: a name is unknown; the message names the options probably meant.
    """
    names = list(known)
    for name in given:
        if name not in names:
            near = closest(name.lower().strip("_"), names) or "; help(fmapboard.watch) lists them"
            raise ConfigurationError(f"no option {name!r}{near}")


def check_depth(depth: int | None) -> None:
    """Check that the value is the index of a depth slice, or None.

    Raises:
        ConfigurationError: it is neither.
    """
    if depth is not None and (type(depth) is not int or depth < 0):
        raise ConfigurationError(
            f"depth={depth!r}: expected the index of a depth slice, from 0, or None for the "
            "middle one"
        )


def check_place(
    log_dir: Any, others: Sequence[Any], writer: Any, comment: Any, filename_suffix: Any
) -> None:
    """Check the arguments of ``watch`` that say where to log.

    Raises:
        ConfigurationError: there are ``others`` by position, ``writer`` is combined with one of the
            others, or an argument has the wrong type; the message says what to pass.
    """
    if others:
        kinds = ", ".join(type(each).__name__ for each in (log_dir, *others))
        raise ConfigurationError(
            f"watch(model, {kinds}): expected only the model and log_dir by position, all else by "
            "name: watch(model, log_dir, optimizer=optimizer, every=100)"
        )
    if log_dir is not None and writer is not None:
        raise ConfigurationError("log_dir and writer are mutually exclusive: pass only one")
    if writer is not None and (comment or filename_suffix):
        raise ConfigurationError("comment and filename_suffix require log_dir, not writer")
    kind = type(log_dir).__name__
    if log_dir is not None and not isinstance(log_dir, (str, os.PathLike)):
        if hasattr(log_dir, "add_scalar") or hasattr(log_dir, "write"):
            raise ConfigurationError(f"log_dir={kind}: expected a directory; pass it as writer=")
        if hasattr(log_dir, "param_groups"):
            raise ConfigurationError(f"log_dir={kind}: expected a directory; pass it as optimizer=")
        raise ConfigurationError(f"log_dir={kind}: expected the path of a directory")
    if isinstance(writer, (str, os.PathLike)):
        raise ConfigurationError(f"writer={writer!r}: pass a directory as log_dir=")
    if isinstance(writer, type):
        raise ConfigurationError(
            f"writer={writer.__name__}: expected an instance, not the class; pass "
            f"{writer.__name__}(...)"
        )
    for name, text in (("comment", comment), ("filename_suffix", filename_suffix)):
        if not isinstance(text, str):
            raise ConfigurationError(f"{name}={text!r}: expected a string")


def with_options(function: Callable[..., Any]) -> inspect.Signature:
    """A function's signature with its options spelled out, for help() and editors.

    The common ones come first.
    """
    signature = inspect.signature(function)
    stars = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    named = [p for p in signature.parameters.values() if p.kind not in stars]
    kind = inspect.Parameter.KEYWORD_ONLY
    options = [
        inspect.Parameter(field.name, kind, default=field.default, annotation=field.type)
        for field in fields(Options)
    ]
    by_name = {parameter.name: parameter for parameter in [*named, *options]}
    common = [by_name.pop(name) for name in COMMON]
    return signature.replace(parameters=[*common, *by_name.values()])
