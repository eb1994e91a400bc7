"""Misuse of `fmapboard.watch` is reported once, with the fix."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable

import numpy as np
import pytest
import torch
from module_hooks import hook_count
from networks import NestedNet
from watched_training import numbers, sgd, train_step

import fmapboard
from fmapboard.errors import ConfigurationError
from fmapboard.writers.folder import MemoryWriter


def test_a_logger_without_optimizer_and_marked_steps_warns_that_nothing_was_logged(
    said: Callable[[], list[str]],
) -> None:
    model = NestedNet()
    board = fmapboard.watch(model, writer=MemoryWriter())
    train_step(model, sgd(model))
    board.close()
    board.close()
    (text,) = said()
    assert text.startswith("fmapboard: nothing was logged: no step was marked; pass optimizer=")


def test_an_optimizer_that_never_stepped_is_reported(said: Callable[[], list[str]]) -> None:
    model = NestedNet()
    with fmapboard.watch(model, writer=MemoryWriter(), optimizer=sgd(model)):
        train_step(model, sgd(model))
    (text,) = [text for text in said() if "nothing was logged" in text]
    assert "the optimizer passed to watch() never stepped" in text


def test_a_schedule_that_is_never_true_is_reported_with_the_next_step(
    said: Callable[[], list[str]],
) -> None:
    model = NestedNet()
    optimizer = sgd(model)
    with fmapboard.watch(
        model, writer=MemoryWriter(), optimizer=optimizer, every=100, start_step=37
    ):
        for _ in range(5):
            train_step(model, optimizer)
    (text,) = said()
    assert "none of the 5 steps before step 42 was due (Every(every=100))" in text
    assert "the next one could be step 100" in text


def test_a_training_that_ends_just_before_the_first_due_step_is_reported_with_that_step(
    said: Callable[[], list[str]],
) -> None:
    model = NestedNet()
    optimizer = sgd(model)
    options = {"writer": MemoryWriter(), "every": 10, "start_step": 5}
    with fmapboard.watch(model, optimizer=optimizer, **options):  # type: ignore[arg-type]
        for _ in range(5):
            train_step(model, optimizer)
    with fmapboard.watch(model, **options, name="marked") as board:  # type: ignore[arg-type]
        for number in range(5, 10):
            with board.step(number):
                train_step(model, optimizer)
    for text in said():
        assert "none of the 5 steps before step 10 was due" in text
        assert "the next one could be step 10." in text
    assert len(said()) == 2


def test_a_step_that_raised_counts_as_marked(said: Callable[[], list[str]]) -> None:
    board = fmapboard.watch(NestedNet(), writer=MemoryWriter(), every=1)
    with contextlib.suppress(ValueError), board.step(0):
        raise ValueError("mine")
    board.close()
    assert said() == []


def test_steps_in_which_the_model_is_not_called_are_reported(said: Callable[[], list[str]]) -> None:
    model, other = NestedNet(), NestedNet()
    with fmapboard.watch(model, writer=MemoryWriter(), every=1) as board:
        for number in range(3):
            with board.step(number):
                train_step(other, sgd(other))
    (text,) = said()
    assert "step 0: no watched layer ran" in text
    assert "call the model itself" in text


def test_a_logger_that_logged_or_that_an_exception_ended_does_not_warn_at_its_end(
    said: Callable[[], list[str]],
) -> None:
    model = NestedNet()
    optimizer = sgd(model)
    with fmapboard.watch(model, writer=MemoryWriter(), optimizer=optimizer):
        train_step(model, optimizer)
    with (
        pytest.raises(ValueError, match="mine"),
        fmapboard.watch(NestedNet(), writer=MemoryWriter()),
    ):
        raise ValueError("mine")
    assert said() == []


def test_a_step_without_a_with_block_is_reported_when_it_is_discarded(
    said: Callable[[], list[str]],
) -> None:
    model = NestedNet()
    board = fmapboard.watch(model, writer=MemoryWriter(), every=1)
    for number in range(3):
        board.step(number)
        train_step(model, sgd(model))
    gc.collect()
    assert [text for text in said() if "without a with block" in text] == [
        "fmapboard: board.step(...) was called without a with block, and does nothing; write: "
        "with board.step(i):, or leave it out where watch() was given the optimizer"
    ]


def test_step_as_a_decorator_is_refused() -> None:
    board = fmapboard.watch(NestedNet(), writer=MemoryWriter())
    with pytest.raises(ConfigurationError, match=r"not a decorator.*with board.step\(i\):"):

        @board.step
        def train() -> None: ...

    with pytest.raises(ConfigurationError, match="not a decorator"):

        @board.step(3)
        def train_too() -> None: ...


def test_use_after_close_is_reported_once_and_leaves_no_hook(said: Callable[[], list[str]]) -> None:
    model, kept = NestedNet(), MemoryWriter()
    board = fmapboard.watch(model, writer=kept, every=1)
    with board.step(0):
        train_step(model, sgd(model))
    board.close()
    for number in (1, 2):
        with board.step(number):
            train_step(model, sgd(model))
    board.before_clipping()
    board.flush()
    assert said() == ["fmapboard: a step began after close() and is not logged; call watch() again"]
    assert (numbers(kept.steps), hook_count(model)) == ([0], 0)


def test_the_watch_cell_of_a_notebook_may_run_again(said: Callable[[], list[str]]) -> None:
    model = NestedNet()
    optimizer = sgd(model)
    written = [MemoryWriter() for _ in range(3)]
    for kept in written:
        board = fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1)
        train_step(model, optimizer)
    board.close()
    assert [numbers(kept.steps) for kept in written] == [[0], [0], [0]]
    assert len(said()) == 2  # one per new logger
    assert "this NestedNet was watched already; the earlier logger is now closed" in said()[0]


def test_a_model_that_is_watched_twice_before_it_trains_is_the_only_thing_said(
    said: Callable[[], list[str]],
) -> None:
    model = NestedNet()
    optimizer = sgd(model)
    fmapboard.watch(model, writer=MemoryWriter(), optimizer=optimizer)
    with fmapboard.watch(model, writer=MemoryWriter(), optimizer=optimizer):
        train_step(model, optimizer)
    assert said() == [
        "fmapboard: this NestedNet was watched already; the earlier logger is now closed. To keep "
        "both, give each logger its own name="
    ]


def test_loggers_of_different_names_share_a_model_and_an_optimizer(
    said: Callable[[], list[str]],
) -> None:
    model = NestedNet()
    optimizer = sgd(model)
    written = {"a": MemoryWriter(), "b": MemoryWriter()}
    boards = [
        fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1, name=name)
        for name, kept in written.items()
    ]
    for _ in range(2):
        train_step(model, optimizer)
    for board in boards:
        board.close()
    assert [numbers(kept.steps) for kept in written.values()] == [[0, 1], [0, 1]]
    assert said() == []


@pytest.mark.parametrize(
    "number", [7, np.int64(7), np.float32(7), 7.0, torch.tensor(7), np.array(7)], ids=repr
)
def test_whole_step_numbers_of_any_type_are_accepted(number: object) -> None:
    model, kept = NestedNet(), MemoryWriter()
    with (
        fmapboard.watch(model, writer=kept, every=np.int64(7)) as board,
        board.step(number),  # type: ignore[arg-type]
    ):
        train_step(model, sgd(model))
    assert numbers(kept.steps) == [7]
    assert type(kept.steps[0].step) is int


@pytest.mark.parametrize("number", [7.5, "7", True, -1, torch.tensor(7.5), [7]], ids=repr)
def test_any_other_step_number_is_refused_at_once(number: object) -> None:
    board = fmapboard.watch(NestedNet(), writer=MemoryWriter(), every=1)
    for mark in (board.step, board.begin_step):
        with pytest.raises(ConfigurationError, match="expected the number of completed optimizer"):
            mark(number)  # type: ignore[arg-type]


def test_an_epoch_as_step_number_is_named_and_logs_each_number_once(
    said: Callable[[], list[str]],
) -> None:
    model, kept = NestedNet(), MemoryWriter()
    optimizer = sgd(model)
    with fmapboard.watch(model, writer=kept, every=1) as board:
        for epoch in range(2):
            for _ in range(4):
                with board.step(epoch):
                    train_step(model, optimizer)
    assert numbers(kept.steps) == [0, 1]
    assert said() == [
        "fmapboard: step 0 was entered again after an optimizer step and is not logged again; "
        "number optimizer steps over the whole training, not epochs, or let fmapboard count them: "
        "with board.step():"
    ]


def test_an_epoch_as_step_number_is_named_at_steps_that_are_not_logged(
    said: Callable[[], list[str]],
) -> None:
    model, kept = NestedNet(), MemoryWriter()
    optimizer = sgd(model)
    board = fmapboard.watch(model, writer=kept, every=100)
    for _ in range(3):
        with board.step(1):
            train_step(model, optimizer)
    assert any("step 1 was entered again after an optimizer step" in text for text in said())
    board.close()


def test_a_number_may_be_entered_again_before_the_optimizer_steps_and_for_the_validation(
    said: Callable[[], list[str]],
) -> None:
    model, kept = NestedNet(), MemoryWriter()
    optimizer = sgd(model)
    with fmapboard.watch(model, writer=kept, every=1) as board:
        with board.step(0):
            train_step(model, optimizer)
        board.begin_step(0, training=False)
        model.eval()(torch.rand(2, 3, 12, 12))
        board.end_step()
        model.train()
        for _ in range(2):  # micro-batches
            with board.step(1):
                model(torch.rand(2, 3, 12, 12)).sum().backward()
        optimizer.step()
    assert numbers(kept.steps) == [0, 0, 1, 1]
    assert not any("entered again" in text for text in said())
