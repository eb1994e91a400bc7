"""Steps that begin and end at two events, as in the callbacks of the frameworks."""

from __future__ import annotations

import logging

import pytest
import torch
from module_hooks import hook_count
from same_training import loader, network
from torch.nn import functional

import fmapboard
from fmapboard.writers.folder import MemoryWriter


def test_a_step_begun_again_with_the_same_number_continues() -> None:
    model, optimizer = network()
    kept, batches = MemoryWriter(), list(loader(4))
    board = fmapboard.watch(model, writer=kept, every=1)
    for number, (pixels, labels) in enumerate(batches):
        board.begin_step(number // 2)
        functional.cross_entropy(model(pixels), labels).backward()
        if number % 2:
            optimizer.step()
            optimizer.zero_grad()
            board.end_step()
    board.close()
    assert [step.step for step in kept.steps] == [0, 1]
    first = next(m for m in kept.steps[0].statistics if m.layer_call.label == "stem")
    with torch.no_grad():
        expected = network()[0].stem(batches[0][0])
    assert first.statistics.maximum == pytest.approx(expected.amax((0, 2, 3)).numpy(), rel=1e-5)


def test_a_validation_step_records_passes_in_eval_mode_and_nothing_of_an_optimizer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model, optimizer = network()
    kept, (training, validation) = MemoryWriter(), list(loader(2))
    board = fmapboard.watch(model, writer=kept, every=1)
    with caplog.at_level(logging.WARNING, "fmapboard"):
        board.begin_step(7, training=False)
        functional.cross_entropy(model(training[0]), training[1]).backward()
        model.eval()
        with torch.inference_mode():
            expected = model.stem(validation[0])
            model(validation[0])
        model.train()
        optimizer.step()
        board.end_step()
    board.close()
    (step,) = kept.steps
    found = next(m for m in step.statistics if m.layer_call.label == "stem")
    assert found.statistics.maximum == pytest.approx(expected.amax((0, 2, 3)).numpy(), rel=1e-5)
    assert not any("gradient" in tag for tag in step.scalars)
    assert caplog.records == []
    assert hook_count(model) == 0


def test_a_validation_step_without_an_optimizer_logs_no_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model, _ = network()
    board = fmapboard.watch(model.eval(), writer=MemoryWriter(), every=1)
    with caplog.at_level(logging.WARNING, "fmapboard"), torch.no_grad():
        board.begin_step(0, training=False)
        model(next(iter(loader(1)))[0])
        board.end_step()
    board.close()
    assert caplog.records == []


def test_norms_before_clipping_outside_a_logged_step_are_not_read() -> None:
    model, _ = network()
    kept = MemoryWriter()
    with fmapboard.watch(model, writer=kept, every=2) as board:
        for number in range(2):
            with board.step(number):
                model(next(iter(loader(1)))[0]).sum().backward()
                board.before_clipping()
        board.before_clipping()
    assert [step.step for step in kept.steps] == [0]
    assert kept.steps[0].scalars["gradient_norm_before_clipping/total"] > 0
