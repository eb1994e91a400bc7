"""`fmapboard.watch` leaves no hook and no incomplete file, and training unchanged."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
import torch
import warm_python
from module_hooks import hook_count
from networks import NestedNet
from run_reader import read, steps_of
from torch import Tensor
from torch.nn import functional
from watched_training import batch, train_step

import fmapboard
from fmapboard.writers.folder import MemoryWriter


def test_hooks_exist_only_in_the_passes_of_a_logged_step() -> None:
    model, kept, inside = NestedNet(), MemoryWriter(), list[int]()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with model.relu.register_forward_hook(lambda *_: inside.append(hook_count(model) - 1)):
        board = fmapboard.watch(model, writer=kept, optimizer=optimizer, every=2)
        for _ in range(3):
            assert hook_count(model) == 1
            train_step(model, optimizer)
        board.close()
    assert [count > 0 for count in inside] == [True, False, True]
    assert hook_count(model) == 0
    assert len(optimizer._optimizer_step_post_hooks) == 0


def test_an_exception_in_training_leaves_no_hooks_and_everything_written_on_disk(
    tmp_path: Path,
) -> None:
    model = NestedNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    board = fmapboard.watch(model, tmp_path, every=1)
    with board.step(0):
        train_step(model, optimizer)
    with pytest.raises(RuntimeError, match="size"), board.step(1):
        model(batch()[0]) + torch.zeros(7)
    assert hook_count(model) == 0
    assert steps_of(read(tmp_path), "feature_maps_8x3x5x5/stem") == [0]
    board.close()


def test_an_interrupt_inside_the_context_manager_leaves_no_hooks(tmp_path: Path) -> None:
    model = NestedNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def interrupted() -> None:
        with fmapboard.watch(model, tmp_path, optimizer=optimizer, every=1):
            train_step(model, optimizer)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert hook_count(model) == 0
    assert steps_of(read(tmp_path), "gradient_norm/total") == [0]


def test_watch_logs_even_if_its_result_is_not_kept(tmp_path: Path) -> None:
    model = NestedNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    fmapboard.watch(model, tmp_path, optimizer=optimizer, every=1)
    gc.collect()
    train_step(model, optimizer)
    train_step(model, optimizer)
    del optimizer
    gc.collect()
    assert hook_count(model) == 0
    assert steps_of(read(tmp_path), "gradient_norm/total") == [0, 1]


@pytest.mark.parametrize("end", ["", "raise SystemExit(3)", "1 / 0"])
def test_a_script_that_just_ends_leaves_everything_on_disk(tmp_path: Path, end: str) -> None:
    script = f"""
import torch, fmapboard
model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.Flatten(), torch.nn.LazyLinear(2))
model(torch.zeros(1, 3, 8, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
fmapboard.watch(model, "run", optimizer=optimizer, every=1)
for _ in range(3):
    model(torch.randn(1, 3, 8, 8)).sum().backward()
    optimizer.step()
{end}
"""
    warm_python.run(script, cwd=tmp_path)
    assert steps_of(read(tmp_path / "run"), "feature_maps_8x3x3x3/0") == [0, 1, 2]


def test_a_logger_that_is_discarded_inside_a_marked_step_leaves_no_hook(tmp_path: Path) -> None:
    model = NestedNet()
    board = fmapboard.watch(model, tmp_path, every=1)
    window = board.step(0)
    window.__enter__()
    assert vars(model).get("_compiled_call_impl") is not None  # waits for the model's call
    del board, window
    gc.collect()
    assert vars(model).get("_compiled_call_impl") is None
    assert hook_count(model) == 0


def test_training_is_bitwise_the_same_while_every_step_is_logged() -> None:
    def run(watched: bool) -> tuple[dict[str, Tensor], Tensor]:
        torch.manual_seed(3)
        model = NestedNet()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
        board = (
            fmapboard.watch(
                model,
                writer=MemoryWriter(),
                optimizer=optimizer,
                every=1,
                inputs=True,
                activation_gradients=True,
                probe=torch.zeros(1, 3, 12, 12),
            )
            if watched
            else None
        )
        for _ in range(5):
            train_step(model, optimizer)
        if board is not None:
            board.close()
        return model.state_dict(), torch.get_rng_state()

    (bare, bare_rng), (seen, seen_rng) = run(False), run(True)
    for name, value in bare.items():
        assert torch.equal(value, seen[name]), name
    assert torch.equal(bare_rng, seen_rng)


def test_a_forked_data_loader_worker_does_not_wait_for_the_writing_thread(tmp_path: Path) -> None:
    """A forked DataLoader worker inherits the logger, and must not hang on its missing thread."""
    from torch.utils.data import DataLoader

    model = NestedNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = [(torch.zeros(3, 12, 12), 0)] * 4
    with fmapboard.watch(model, tmp_path, optimizer=optimizer, every=1):
        for _ in range(2):
            for x, y in DataLoader(data, batch_size=2, num_workers=1):
                optimizer.zero_grad()
                functional.cross_entropy(model(x), y).backward()
                optimizer.step()
    assert steps_of(read(tmp_path), "gradient_norm/total") == [0, 1, 2, 3]
