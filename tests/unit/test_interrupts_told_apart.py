"""What is meant for the whole program is told apart from errors of the code that it interrupts."""

from __future__ import annotations

import signal
from collections.abc import Callable
from functools import partial

import pytest
from interruptions import TimesUp, handling, on_alarm

from fmapboard.interrupts import interrupt_in, raise_interrupt


def interrupted_code(fails_in_turn: type[Exception] | None) -> None:
    """Code that a signal handler interrupts; it may raise another error instead."""
    try:
        signal.raise_signal(signal.SIGALRM)
    except TimesUp:
        if fails_in_turn is None:
            raise
        raise fails_in_turn("in turn")  # noqa: B904  # as code that knows nothing of the handler


def raises_by_itself() -> None:
    raise TimesUp


def swallowing(code: Callable[[], None]) -> None:
    """Run code whose errors are swallowed."""
    try:
        code()
    except Exception as error:
        raise_interrupt(error)


@pytest.mark.parametrize("fails_in_turn", [None, ValueError])
def test_an_exception_of_a_signal_handler_is_raised_where_errors_are_swallowed(
    fails_in_turn: type[Exception] | None,
) -> None:
    with handling(on_alarm), pytest.raises(TimesUp):
        swallowing(partial(interrupted_code, fails_in_turn))


def test_the_same_exception_that_no_signal_handler_has_raised_is_an_error() -> None:
    with handling(on_alarm):
        swallowing(raises_by_itself)


def test_an_interrupt_that_a_caller_is_handling_is_none_of_the_code_that_it_calls() -> None:
    with handling(on_alarm):
        try:
            signal.raise_signal(signal.SIGALRM)
        except TimesUp:
            swallowing(raises_by_itself)
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        swallowing(raises_by_itself)


def test_causes_in_a_circle_are_followed_once() -> None:
    first, second = ValueError("one"), ValueError("other")
    first.__context__ = second
    second.__context__ = first
    assert interrupt_in(first) is None
