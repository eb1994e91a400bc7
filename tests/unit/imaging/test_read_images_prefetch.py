"""Images are prefetched in order, a bounded number ahead."""

from __future__ import annotations

import threading
import warnings
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from held_work import LIMIT
from own_threads import own_threads
from PIL import Image

from fmapboard.errors import ImageError
from fmapboard.imaging.images import decoding, read_image
from fmapboard.imaging.read_images import prefetched


def test_results_come_in_order_even_if_calls_finish_out_of_order() -> None:
    second_done = threading.Event()

    def slow_first(number: int) -> int:
        if number == 0:
            assert second_done.wait(LIMIT)
        if number == 1:
            second_done.set()
        return -number

    assert list(prefetched(slow_first, range(10), ahead=4, threads=2)) == [-n for n in range(10)]


def test_no_more_calls_are_started_than_allowed_ahead() -> None:
    asked: list[int] = []

    def items():  # type: ignore[no-untyped-def]
        for number in range(100):
            asked.append(number)
            yield number

    results = prefetched(abs, items(), ahead=3, threads=2)
    assert asked == []
    assert next(results) == 0
    assert asked == [0, 1, 2, 3, 4]
    assert next(results) == 1
    assert asked == [0, 1, 2, 3, 4, 5]
    results.close()
    assert own_threads() == []


def test_items_of_a_size_are_taken_until_they_are_as_large_as_allowed() -> None:
    asked: list[int] = []

    def items():  # type: ignore[no-untyped-def]
        for number in range(100):
            asked.append(number)
            yield number

    results = prefetched(abs, items(), ahead=35, threads=1, size=lambda number: 10)
    assert next(results) == 0
    assert asked == [0, 1, 2, 3, 4]
    results.close()


def test_what_is_dropped_if_it_is_closed_early_comes_after_all_that_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[int] = []
    second_started = threading.Event()
    first_cancelled = threading.Event()
    third_started = threading.Event()
    cancel = Future.cancel

    def step(number: int) -> None:
        started.append(number)
        if number == 1:
            second_started.set()
            assert first_cancelled.wait(LIMIT)
        if number == 2:
            third_started.set()

    def noted(future: Future[None]) -> bool:
        done = cancel(future)
        if not first_cancelled.is_set():
            first_cancelled.set()
            assert third_started.wait(LIMIT)  # the thread goes on meanwhile
        return done

    monkeypatch.setattr(Future, "cancel", noted)
    results = prefetched(step, range(30), ahead=20, threads=1)
    next(results)
    assert second_started.wait(LIMIT)
    results.close()
    assert started[:3] == [0, 1, 2]
    assert started == list(range(len(started)))


def test_an_error_is_raised_in_its_place_and_ends_the_threads() -> None:
    def picky(number: int) -> int:
        if number == 2:
            raise ValueError("two")
        return number

    results = prefetched(picky, range(5), ahead=4, threads=2)
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(ValueError, match="two"):
        next(results)
    assert own_threads() == []


def bomb(folder: Path) -> Path:
    path = folder / "bomb.png"
    Image.new("1", (9_500, 9_500)).save(path)
    return path


def test_threads_that_read_at_once_leave_the_warnings_filters_as_they_were(tmp_path: Path) -> None:
    Image.new("RGB", (40, 40)).save(tmp_path / "a.png")
    huge = bomb(tmp_path)
    before = list(warnings.filters)

    def read(path: Path) -> str:
        try:
            return str(read_image(path).size)
        except ImageError as error:
            return str(error)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(read, [tmp_path / "a.png", huge] * 20))
    assert found[::2] == ["(40, 40)"] * 20
    assert all("has more than 89 million pixels" in text for text in found[1::2])
    assert list(warnings.filters) == before


def test_other_warnings_are_shown_while_those_of_decoders_are_not() -> None:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        with decoding():
            warnings.warn("of the network", UserWarning, stacklevel=1)
            warnings.warn_explicit("odd tag", UserWarning, "tiff.py", 1, "PIL.TiffImagePlugin")
    assert [str(warning.message) for warning in heard] == ["of the network"]
