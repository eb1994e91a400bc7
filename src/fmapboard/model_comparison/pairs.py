"""Pair the layer calls of two models: by name, then by order."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from difflib import SequenceMatcher

from fmapboard.extraction.call_trace import TracedCall
from fmapboard.records import LayerCall

Pair = tuple[LayerCall | None, LayerCall | None]
"""A layer call in the first and in the second model; None where one of them does not have it."""

Calls = Sequence[TracedCall]
Partners = dict[int, int]
"""Number of a call of the first model -> number of the one of the second that it is paired with."""


def in_both(pairs: Iterable[Pair]) -> list[tuple[LayerCall, LayerCall]]:
    """The calls that both models have."""
    both = []
    for first, second in pairs:
        if first is not None and second is not None:
            both.append((first, second))
    return both


def paired(first: Calls, second: Calls) -> list[Pair]:
    """Pair calls in execution order.

    Calls of modules of the same name and type are paired, in the order that pairs the most of them.
    The others are paired between two pairs, in order: those of the same type and output shapes,
    then those of the same name, then those of the same output shapes.

    Returns:
        Pairs and calls without a partner in the order of the first model; a call of the second
        model alone comes after the pair that it runs after.
    """
    partners = _in_order(first, second, {}, _name_and_type)
    partners |= _unique_names(first, second, partners)
    for key in (_type_and_shapes, _name, _shapes):
        partners |= _in_order(first, second, partners, key)
    return _merged(first, second, partners)


def _name_and_type(call: TracedCall) -> Hashable:
    return call.layer_call.layer, call.layer_call.type


def _type_and_shapes(call: TracedCall) -> Hashable:
    return call.layer_call.type, _shapes(call)


def _name(call: TracedCall) -> Hashable:
    return call.layer_call.layer


def _shapes(call: TracedCall) -> Hashable:
    returned = call.returned or ()
    return tuple(shape for _, shape in returned)


def _unique_names(first: Calls, second: Calls, known: Partners) -> Partners:
    """Pairs of modules that both models call once, in another order."""
    places = _places_of_unique(first)
    others = _places_of_unique(second)
    found = {}
    for key, i in places.items():
        if i not in known and key in others:
            found[i] = others[key]
    return found


def _places_of_unique(calls: Calls) -> dict[Hashable, int]:
    """Name and type -> number of the call, for modules that are called once."""
    keys = list(map(_name_and_type, calls))
    counts = Counter(keys)
    places = {}
    for number, key in enumerate(keys):
        if counts[key] == 1:
            places[key] = number
    return places


def _in_order(
    first: Calls, second: Calls, known: Partners, key: Callable[[TracedCall], Hashable]
) -> Partners:
    """Pairs with the same key among the calls without a partner, between two known pairs."""
    taken = set(known.values())
    keys = list(map(key, first))
    other_keys = list(map(key, second))
    ends = _increasing(known)
    ends.append((len(first), len(second)))
    found: Partners = {}
    start_i = 0
    start_j = 0
    for end_i, end_j in ends:
        mine = [i for i in range(start_i, end_i) if i not in known]
        others = [j for j in range(start_j, end_j) if j not in taken]
        keys_a = [keys[i] for i in mine]
        keys_b = [other_keys[j] for j in others]
        matcher = SequenceMatcher(None, keys_a, keys_b, autojunk=False)
        for block in matcher.get_matching_blocks():
            partners = others[block.b : block.b + block.size]
            own = mine[block.a : block.a + block.size]
            found.update(zip(own, partners, strict=True))
        start_i = end_i + 1
        start_j = end_j + 1
    return found


def _increasing(partners: Partners) -> list[tuple[int, int]]:
    """A longest chain of pairs that is in order in both models."""
    tails: list[int] = []
    ends: list[int] = []
    before: dict[int, int | None] = {}
    for i, j in sorted(partners.items()):
        place = bisect_left(tails, j)
        tails[place : place + 1] = [j]
        ends[place : place + 1] = [i]
        before[i] = ends[place - 1] if place else None
    chain = []
    last = ends[-1] if ends else None
    while last is not None:
        pair = (last, partners[last])
        chain.append(pair)
        last = before[last]
    chain.reverse()
    return chain


def _merged(first: Calls, second: Calls, partners: Partners) -> list[Pair]:
    taken = set(partners.values())
    merged: list[Pair] = []

    def add_alone(start: int) -> None:
        """Add the calls of the second model from a number on that have no partner."""
        for number in range(start, len(second)):
            if number in taken:
                return
            alone = second[number].layer_call
            merged.append((None, alone))

    add_alone(0)
    for i, call in enumerate(first):
        if i not in partners:
            merged.append((call.layer_call, None))
            continue
        j = partners[i]
        pair = (call.layer_call, second[j].layer_call)
        merged.append(pair)
        add_alone(j + 1)
    return merged
