"""All objects of a class in this process, such as its modules; apart, as it is about no model."""

from __future__ import annotations

import gc
import itertools
from typing import TypeVar

T = TypeVar("T")


def living(base: type[T]) -> list[T]:
    """The objects of a class and of those derived from it, as far as garbage collection knows them.

    Scans all objects that the garbage collector tracks, which takes tens of ms.

    While a list of all objects exists, no other thread may run: one that is about to return a tuple
    that it builds step by step would fail with a SystemError, because this list refers to it. So
    each search is a single call into C, which does not release the interpreter's lock and keeps
    the objects' types, or the few objects that refer to these.
    """
    objects = itertools.chain.from_iterable(map(gc.get_objects, (None,)))  # lists them when used
    # type() rather than isinstance(), which would resolve lazy proxy objects.
    kinds = {kind for kind in set(map(type, objects)) if issubclass(kind, base)}
    found = gc.get_referrers(*kinds) if kinds else []
    return [holder for holder in found if type(holder) in kinds]
