"""fmapboard under an Accelerator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from module_hooks import hook_count
from same_training import accelerator_in, loader, network, series, steps
from torch.nn import functional

import fmapboard
from fmapboard.integrations.accelerate import watch


def train(accelerator: Any, board: Any, parts: tuple[Any, ...], *, marked: bool = False) -> None:
    model, optimizer, data = parts
    for number, (pixels, labels) in enumerate(data):
        step = board.step(number) if marked else torch.enable_grad()
        with step:
            accelerator.backward(functional.cross_entropy(model(pixels), labels))
            optimizer.step()
            optimizer.zero_grad()


def test_without_a_tracker_the_run_has_a_directory_of_its_own(tmp_path: Path) -> None:
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True, project_dir=str(tmp_path))
    parts = accelerator.prepare(*network(), loader(4))
    with watch(accelerator, parts[0], parts[1], every=2) as board:
        train(accelerator, board, parts)
    (run,) = (tmp_path / "runs").iterdir()
    assert steps(run) == [0, 2]


def test_steps_can_be_marked_by_hand(tmp_path: Path) -> None:
    accelerator = accelerator_in(tmp_path)
    parts = accelerator.prepare(*network(), loader(4))
    with watch(accelerator, parts[0], every=3) as board:
        train(accelerator, board, parts, marked=True)
    accelerator.end_training()
    assert steps(tmp_path / "run" / "fmapboard") == [0, 3]


def test_start_step_continues_a_run(tmp_path: Path) -> None:
    for start in (0, 2):
        accelerator = accelerator_in(tmp_path)
        parts = accelerator.prepare(*network(), loader(4))
        with watch(accelerator, parts[0], parts[1], every=1, start_step=start) as board:
            train(accelerator, board, parts)
        accelerator.end_training()
    assert steps(tmp_path / "run" / "fmapboard") == [0, 1, 2, 3, 4, 5]


def test_under_bfloat16_the_records_are_those_of_accelerates_autocast(tmp_path: Path) -> None:
    accelerator = accelerator_in(tmp_path, mixed_precision="bf16")
    parts = accelerator.prepare(*network(), loader(2))
    with watch(accelerator, parts[0], parts[1], every=2) as board:
        train(accelerator, board, parts)
    accelerator.end_training()
    model, _ = network()
    pixels, labels = next(iter(loader(1)))
    with torch.autocast("cpu", torch.bfloat16):
        logits = model(pixels)
    functional.cross_entropy(logits.float(), labels).backward()
    norm = model.stem.weight.grad.norm().item()
    first = series(tmp_path / "run" / "fmapboard")["gradient_norm/stem.weight"][0]
    assert first == (0, pytest.approx(norm, rel=1e-5))


def test_norms_before_clipping_are_read_when_the_loop_calls_before_clipping(tmp_path: Path) -> None:
    accelerator = accelerator_in(tmp_path)
    model, optimizer, data = accelerator.prepare(*network(), loader(1))
    with watch(accelerator, model, optimizer) as board:
        for pixels, labels in data:
            accelerator.backward(functional.cross_entropy(model(pixels), labels))
            board.before_clipping()
            norm = accelerator.clip_grad_norm_(model.parameters(), 0.05).item()
            optimizer.step()
    accelerator.end_training()
    run = series(tmp_path / "run" / "fmapboard")
    assert run["gradient_norm_before_clipping/total"] == [(0, pytest.approx(norm, rel=1e-5))]
    assert run["gradient_norm/total"] == [(0, pytest.approx(0.05, rel=1e-4))]


def test_a_marked_evaluation_is_recorded_under_its_own_name(tmp_path: Path) -> None:
    accelerator = accelerator_in(tmp_path)
    model, _, data = accelerator.prepare(*network(), loader(2))
    with watch(accelerator, model, every=1, name="validation") as board:
        model.eval()
        board.begin_step(7, training=False)
        with torch.no_grad():
            for pixels, _ in data:
                model(pixels)
        board.end_step()
    accelerator.end_training()
    run = series(tmp_path / "run" / "fmapboard")
    assert [step for step, _ in run["validation.feature_maps_8x3x5x5/stem"]] == [7]
    assert not any("gradient" in tag for tag in run)
    assert hook_count(model) == 0


def test_an_unknown_option_is_refused_with_the_closest_name(tmp_path: Path) -> None:
    accelerator = accelerator_in(tmp_path)
    with pytest.raises(fmapboard.ConfigurationError, match="no option 'sampels'; closest: samp"):
        watch(accelerator, network()[0], sampels=3)
    accelerator.end_training()
