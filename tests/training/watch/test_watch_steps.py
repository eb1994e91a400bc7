"""Which steps `fmapboard.watch` logs, and under which numbers."""

from __future__ import annotations

import math

import pytest
import torch
from controlled_writers import FullDiskWriter
from networks import NestedNet
from torch.nn import functional
from watched_training import batch, numbers, train_step

import fmapboard
import fmapboard.formats.tab_records
from fmapboard.writers.folder import MemoryWriter


def test_an_optimizer_counts_the_steps_and_every_selects_those_that_are_logged() -> None:
    model, kept = NestedNet(), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=3) as board:
        for _ in range(8):
            train_step(model, optimizer)
    assert numbers(kept.steps) == [0, 3, 6]
    assert board.logged_steps == 3


def test_steps_marked_by_hand_carry_their_number() -> None:
    model, kept = NestedNet(), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    board = fmapboard.watch(model, writer=kept, every=10)
    for number in (0, 5, 10, 20):
        with board.step(number):
            train_step(model, optimizer)
    board.close()
    board.close()
    assert numbers(kept.steps) == [0, 10, 20]


def test_step_takes_precedence_over_an_optimizer() -> None:
    model, kept = NestedNet(), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1) as board:
        for number in (40, 41):
            with board.step(number):
                train_step(model, optimizer)
    assert numbers(kept.steps) == [40, 41]


def test_steps_that_the_scaler_skips_are_counted() -> None:
    model, kept = NestedNet(), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=1)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, scaler=scaler, every=1):
        for bad in (False, True, False, False, True, True, False):
            x, y = batch()
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(x), y) * (math.inf if bad else 1.0)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    assert numbers(kept.steps) == [0, 1, 2, 3]
    assert [s.scalars["fmapboard/skipped_steps"] for s in kept.steps] == [0.0, 1.0, 1.0, 3.0]
    assert all(math.isfinite(s.scalars["gradient_norm/total"]) for s in kept.steps)


def test_a_validation_step_after_a_training_step_keeps_its_probe_without_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model, kept = NestedNet(), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, writer=kept, every=1, probe=batch()[0]) as board:
        with board.step(0):
            train_step(model, optimizer)
        board.begin_step(1, training=False)
        model.eval()
        model(batch()[0])
        board.end_step()
    assert [any("stem" in p.tag for p in step.pictures) for step in kept.steps] == [True, True]
    assert ["gradient_norm/total" in step.scalars for step in kept.steps] == [True, False]
    assert caplog.records == []


def test_a_step_marked_by_hand_that_the_scaler_skips_is_counted() -> None:
    model, kept = NestedNet(), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    board = fmapboard.watch(model, writer=kept, scaler=scaler, every=1)
    for number, bad in enumerate((False, True, False)):
        with board.step(number):
            optimizer.zero_grad()
            loss = model(batch()[0]).sum() * (math.inf if bad else 1.0)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    board.close()
    assert [s.scalars["fmapboard/skipped_steps"] for s in kept.steps] == [0.0, 1.0, 1.0]
    assert ["gradient_norm/total" in s.scalars for s in kept.steps] == [True, False, True]


@pytest.mark.usefixtures("errors_are_only_logged")
def test_the_first_step_that_could_be_stored_counts_as_the_first() -> None:
    model, kept = NestedNet(), FullDiskWriter(full_at=0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1):
        for _ in range(3):
            train_step(model, optimizer)
    assert numbers(kept.steps) == [1, 2]
    first = [[r.tag for r in s.records if r.tag == "fmapboard_first/stem"] for s in kept.steps]
    assert first == [["fmapboard_first/stem"], []]
    header, _ = fmapboard.formats.tab_records.unpack(kept.steps[1].records[0].blobs)
    assert header["steps_written"] == 2
