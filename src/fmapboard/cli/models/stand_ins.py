"""Read ``torch.save`` files that hold more than weights, without running any code in them.

Training scripts store their settings next to the weights: ``argparse.Namespace``, paths, a
configuration class. Each class that such a file names is replaced by an empty stand-in class of
the same name; the real class is never imported. torch's ``weights_only`` unpickler does the rest.
"""

from __future__ import annotations

import contextlib
import pickle
import re
import warnings
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch.serialization import get_unsafe_globals_in_checkpoint, safe_globals

_HARMLESS = re.compile(
    r"(?:argparse|pathlib|datetime|collections|numpy|decimal|fractions|uuid)\b.*"
    r"|copyreg\._reconstructor|functools\.partial|types\.SimpleNamespace"
    r"|builtins\.(?:bool|dict|float|frozenset|getattr|int|list|object|range|slice|str|tuple)"
)
"""Callables that a file may name; they are not called, the result is a stand-in."""

_UNKNOWN = re.compile(r"Unsupported global: GLOBAL (?P<name>[\w.]+)")
_CONTAINER = re.compile(r"Can only (?P<how>SETITEM|append|extend).*got <class '(?P<name>[\w.]+)'>")
_NOT_BUILT = re.compile(
    r"GLOBAL (?P<name>[\w.]+)|TorchScript|Can only|unrecognized func|Only persistent_load"
)
"""torch's errors for a file with objects that are not tensors, numbers, text or containers."""


class CodeInFile(Exception):
    """Loading the file would call a function that could run code; it was not called.

    Args:
        name: the callable, such as ``"os.system"``.
        names: the classes and functions that the file names, as far as it was read.
    """

    def __init__(self, name: str, names: Collection[str] = ()) -> None:
        super().__init__(name)
        self.name, self.names = name, frozenset(names)


class _StandInType(type):
    """Metaclass of stand-ins; calling one returns a stand-in or a plain container."""

    made: type = object
    """Type of the result: `object` for a stand-in, or a plain dictionary or list."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        name = f"{cls.__module__}.{cls.__qualname__}"
        if not _HARMLESS.fullmatch(name):
            raise CodeInFile(name)
        if name == "collections.defaultdict":
            return OrderedDict()
        return cls.__new__(cls)  # type: ignore[call-overload]  # the stand-in's `__new__`


class StandIn:
    """Takes the place of an object in a file, and holds its attributes."""

    state: Mapping[str, Any]

    def __setstate__(self, state: Any) -> None:
        self.state = state if isinstance(state, Mapping) else {}

    def __setitem__(self, key: Any, value: Any) -> None:
        """Ignored; torch before 2.7 sets items on the stand-in of a dictionary subclass."""

    @property
    def is_module(self) -> bool:
        """True if the object is a pickled `torch.nn.Module`."""
        return {"_modules", "_parameters"} <= getattr(self, "state", {}).keys()

    @property
    def package(self) -> str:
        """Top-level package of the object's class."""
        return type(self).__module__.partition(".")[0]


def load_with_stand_ins(path: Path) -> Any:
    """Load a ``torch.save`` file on the CPU; all objects but plain data become a `StandIn`.

    Plain data are tensors, numbers, text and containers of them.

    Raises:
        CodeInFile: loading the file would call a function that could run code.
        Exception: of any type, if the file is damaged or not a ``torch.save`` file.
    """
    types = {name: _stand_in(name) for name in _named_in(path)}
    while True:
        try:
            return _load(path, types)
        except CodeInFile as error:
            raise CodeInFile(error.name, types) from error
        except (pickle.UnpicklingError, RuntimeError) as error:
            if not _learnt(str(error), types):
                found = _NOT_BUILT.search(str(error))
                if found is None:
                    raise
                raise CodeInFile(found["name"] or "Python objects", types) from error


def _load(path: Path, types: Mapping[str, type]) -> Any:
    with warnings.catch_warnings(), safe_globals(list(types.values())):
        warnings.simplefilter("ignore")  # about old formats, which the user cannot change
        return torch.load(path, map_location="cpu", weights_only=True)


def _named_in(path: Path) -> Collection[str]:
    """The classes that a file in zip format names; `_learnt` finds those of the older format."""
    with contextlib.suppress(Exception):  # if the file is damaged, loading it raises as well
        return get_unsafe_globals_in_checkpoint(path)
    return ()


def _learnt(text: str, types: dict[str, _StandInType]) -> bool:
    """Add a stand-in for the class in torch's error; False if loading would fail again."""
    unknown, container = _UNKNOWN.search(text), _CONTAINER.search(text)
    if unknown is not None:
        names = {unknown["name"], f"builtins.{unknown['name']}"} - types.keys()
        types.update({name: _stand_in(name) for name in names})
        return bool(names)
    if container is None or types.get(container["name"]) is None:
        return False
    kind = OrderedDict if container["how"] == "SETITEM" else list
    changed = types[container["name"]].made is not kind
    types[container["name"]] = _stand_in(container["name"], kind)
    return changed


def _stand_in(name: str, made: type = object) -> _StandInType:
    module, _, qualname = name.rpartition(".")

    def new(cls: type, *args: Any, **kwargs: Any) -> Any:
        return object.__new__(cls) if made is object else made()

    body = {"__module__": module, "__qualname__": qualname, "__new__": new, "made": made}
    return _StandInType(qualname, (StandIn,), body)


def modules_in(raw: Any) -> Iterator[tuple[str, StandIn]]:
    """Pickled modules at the top level of a file or one dictionary deep, each with its index."""
    if isinstance(raw, StandIn) and raw.is_module:
        yield "", raw
    for key, value in raw.items() if isinstance(raw, Mapping) else ():
        if isinstance(value, StandIn) and value.is_module:
            yield f"[{key!r}]", value
