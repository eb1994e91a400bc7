"""Reads files of ``torch.save`` that hold more than weights, without running any of their code.

Training scripts store their settings beside the weights: ``argparse.Namespace``, paths, a
configuration class. Each class that such a file names is replaced by an empty stand-in of that
name; the class itself is never imported. The rest is left to torch's ``weights_only`` unpickler.
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
"""What a file may ask to be called: not called either, the result is a stand-in."""

_UNKNOWN = re.compile(r"Unsupported global: GLOBAL (?P<name>[\w.]+)")
_CONTAINER = re.compile(r"Can only (?P<how>SETITEM|append|extend).*got <class '(?P<name>[\w.]+)'>")
_NOT_BUILT = re.compile(
    r"GLOBAL (?P<name>[\w.]+)|TorchScript|Can only|unrecognized func|Only persistent_load"
)
"""What torch says of a file whose objects are not plain tensors, numbers, text and containers."""


class CodeInFile(Exception):
    """The file asks for a call that could run code; nothing was run.

    Args:
        name: what would be called, such as ``"os.system"``.
        names: every class and function that the file names, as far as it was read.
    """

    def __init__(self, name: str, names: Collection[str] = ()) -> None:
        super().__init__(name)
        self.name, self.names = name, frozenset(names)


class _StandInType(type):
    """Of a class that a file names; calling it makes no instance of the class itself."""

    made: type = object
    """What instances are: a stand-in (`object`), or a plain dictionary or list."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        name = f"{cls.__module__}.{cls.__qualname__}"
        if not _HARMLESS.fullmatch(name):
            raise CodeInFile(name)
        if name == "collections.defaultdict":
            return OrderedDict()
        return cls.__new__(cls)  # type: ignore[call-overload]  # the stand-in's, not `type`'s


class StandIn:
    """Takes the place of an object in a file; holds its attributes where they have names."""

    state: Mapping[str, Any]

    def __setstate__(self, state: Any) -> None:
        self.state = state if isinstance(state, Mapping) else {}

    def __setitem__(self, key: Any, value: Any) -> None:
        """Items are dropped; torch before 2.7 does not ask for a plain dictionary."""

    @property
    def is_module(self) -> bool:
        """Whether it is a pickled `torch.nn.Module`."""
        return {"_modules", "_parameters"} <= getattr(self, "state", {}).keys()

    @property
    def package(self) -> str:
        """The package that the object's class comes from."""
        return type(self).__module__.partition(".")[0]


def load_with_stand_ins(path: Path) -> Any:
    """What ``torch.save`` wrote, on the CPU; other objects than tensors, numbers, text and their
    containers are `StandIn`.

    Raises:
        CodeInFile: the file asks for a call that could run code.
        Exception: of any type, where the file is damaged or something else.
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
        warnings.simplefilter("ignore")  # of old formats, which the user cannot help
        return torch.load(path, map_location="cpu", weights_only=True)


def _named_in(path: Path) -> Collection[str]:
    """The classes that a zip file names; of the older format they are learnt one at a time."""
    with contextlib.suppress(Exception):  # where the file is damaged, loading it says so
        return get_unsafe_globals_in_checkpoint(path)
    return ()


def _learnt(text: str, types: dict[str, _StandInType]) -> bool:
    """Add what torch could not load to the stand-ins; False where that is no help."""
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
    """Pickled modules at the top of a file, or one dictionary deep, each with its index."""
    if isinstance(raw, StandIn) and raw.is_module:
        yield "", raw
    for key, value in raw.items() if isinstance(raw, Mapping) else ():
        if isinstance(value, StandIn) and value.is_module:
            yield f"[{key!r}]", value
