"""Where `fmapboard.watch` writes: new, shared and resumed runs, and a writer of the user."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from networks import NestedNet
from run_reader import read, steps_of
from watched_training import train_step

import fmapboard


def test_resuming_continues_the_run_and_discards_later_steps(tmp_path: Path) -> None:
    model = NestedNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, tmp_path, optimizer=optimizer, every=1):
        for _ in range(4):
            train_step(model, optimizer)
    with fmapboard.watch(model, tmp_path, optimizer=optimizer, every=1, start_step=2) as board:
        train_step(model, optimizer)
        assert "next step 3" in repr(board)
    assert steps_of(read(tmp_path), "gradient_norm/total") == [0, 1, 2]


def test_names_keep_two_models_of_one_directory_apart(tmp_path: Path) -> None:
    models = {"generator": NestedNet(), "critic": NestedNet()}
    optimizers = {n: torch.optim.SGD(m.parameters(), lr=0.1) for n, m in models.items()}
    boards = [
        fmapboard.watch(m, tmp_path, optimizer=optimizers[n], every=1, name=n)
        for n, m in models.items()
    ]
    for _ in range(2):
        for name, model in models.items():
            train_step(model, optimizers[name])
    for board in boards:
        board.close()
    accumulator = read(tmp_path)
    assert len(list(tmp_path.glob("*tfevents*"))) == 1
    for name in models:
        assert steps_of(accumulator, f"{name}.gradient_norm/stem.weight") == [0, 1]
        assert steps_of(accumulator, f"{name}.feature_maps_8x3x5x5/stem") == [0, 1]


def test_the_users_summary_writer_gets_the_same_records_and_stays_open(tmp_path: Path) -> None:
    from torch.utils.tensorboard import SummaryWriter

    model = NestedNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    writer = SummaryWriter(str(tmp_path))
    with fmapboard.watch(model, writer=writer, optimizer=optimizer, every=1):
        train_step(model, optimizer)
    writer.add_scalar("mine", 1.0, 0)
    writer.close()
    accumulator = read(tmp_path)
    assert steps_of(accumulator, "feature_maps_16x8x3x3/inner.0.0") == [0]
    assert "mine" in accumulator.Tags()["tensors"]


def test_without_a_log_dir_the_run_is_named_as_by_summary_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    fmapboard.watch(NestedNet(), comment="_lr0.1", filename_suffix=".mine").close()
    (run,) = (tmp_path / "runs").iterdir()
    assert run.name.endswith("_lr0.1")
    (file,) = run.iterdir()
    assert file.name.endswith(".mine")
