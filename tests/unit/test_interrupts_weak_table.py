"""Values by object, without a callback when an object is deleted."""

from __future__ import annotations

import weakref

from fmapboard.interrupts import WeakTable


class Key:
    """Something that can be held weakly."""


def test_a_table_holds_values_by_identity_and_does_not_keep_the_keys() -> None:
    table: WeakTable[Key, int] = WeakTable()
    first, second = Key(), Key()
    table[first] = 1
    assert (table.get(first), table.get(second)) == (1, None)
    gone = weakref.ref(first)
    del first
    assert gone() is None
    assert list(table) == []


def test_an_object_with_the_id_of_a_deleted_one_has_no_value() -> None:
    table: WeakTable[Key, int] = WeakTable()
    old = [Key() for _ in range(100)]
    for key in old:
        table[key] = 1
    numbers = set(map(id, old))
    del old, key
    later = [Key() for _ in range(1000)]
    found = [key for key in later if id(key) in numbers]
    assert found
    assert {table.get(key) for key in found} == {None}


def test_a_table_calls_nothing_when_keys_are_deleted_and_drops_them_when_it_grows() -> None:
    table: WeakTable[Key, int] = WeakTable()
    keys, last = [Key() for _ in range(32)], Key()
    for key in keys:
        table[key] = 1
        assert [one.__callback__ for one in weakref.getweakrefs(key)] == [None]
    del keys, key
    table[last] = 2
    assert len(table._entries) == 1
    assert table.get(last) == 2
