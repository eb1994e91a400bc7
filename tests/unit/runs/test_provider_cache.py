"""The cache of records and of what is built from them."""

from __future__ import annotations

import gc
import threading
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tab_client import open_tab
from two_layer_runs import log_steps

from fmapboard.runs.provider import OVERHEAD, Cache


def test_the_cache_evicts_the_least_recently_used_blob() -> None:
    cache = Cache(4 * (100 + OVERHEAD))
    for key in "abcd":
        cache.put(key, bytes(100), 100)
    assert cache.get("a") == bytes(100)
    cache.put("e", bytes(100), 100)
    assert [key for key in "abcde" if cache.get(key) is not None] == ["a", "c", "d", "e"]
    assert cache.held == 4 * (100 + OVERHEAD)


def test_a_blob_that_is_put_twice_counts_once() -> None:
    cache = Cache(10_000, 2_500)
    cache.put("a", bytes(100), 100)
    cache.put("a", bytes(200), 200)
    assert (cache.get("a"), cache.held) == (bytes(200), 200 + OVERHEAD)


def test_the_cache_is_not_emptied_for_one_large_blob() -> None:
    cache = Cache(10_000, 2_500)
    cache.put("small", bytes(10), 10)
    cache.put("large", bytes(9_000), 9_000)
    assert (cache.get("large"), cache.get("small")) == (None, bytes(10))


def test_a_value_is_built_from_its_last_version_by_one_thread_at_a_time() -> None:
    cache, begun = Cache(10_000), threading.Semaphore(0)

    def build(last: int | None) -> int:
        begun.release()
        return (last or 0) + 1

    with ThreadPoolExecutor(4) as threads:
        found = [threads.submit(cache.renew, "a", build, int) for _ in range(20)]
    assert sorted(future.result() for future in found) == list(range(1, 21))
    assert cache.get("a") == 20


def test_what_has_no_bytes_is_not_kept() -> None:
    cache = Cache(10_000)
    assert cache.renew("a", lambda last: (last, ()), lambda value: 0) == (None, ())
    assert cache.renew("a", lambda last: (last, ()), lambda value: 0) == (None, ())
    assert (cache.get("a"), cache.held) == (None, 0)


def texts_held_by(root: object, beginning: str) -> int:
    """Number of strings with this beginning that an object keeps alive."""
    seen: set[int] = set()
    waiting = [root]
    found = 0
    while waiting:
        item = waiting.pop()
        if id(item) in seen or isinstance(item, type | types.ModuleType | types.CodeType):
            continue
        seen.add(id(item))
        found += isinstance(item, str) and item.startswith(beginning)
        if isinstance(item, types.FunctionType):  # without the globals of its module
            waiting += [item.__closure__, item.__defaults__, item.__kwdefaults__]
        else:
            waiting += gc.get_referents(item)
    return found


def test_questions_about_runs_that_do_not_exist_take_no_memory(tmp_path: Path) -> None:
    log_steps(tmp_path / "run")
    tab = open_tab(tmp_path)

    def ask(begin: int, end: int) -> None:
        for number in range(begin, end):
            path = f"data/{('health', 'layers', 'findings')[number % 3]}"
            assert tab.get(path, run=f"made up {number}").status_code == 404

    ask(0, 300)
    assert texts_held_by(tab, "run") > 0  # the search finds what is kept
    assert texts_held_by(tab, "made up") < 10
