"""The ignite handler on ignite's own engines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from ignite.engine import Engine, Events, create_supervised_trainer
from module_hooks import hook_count
from same_training import ignite_trainer, loader, network, series, steps
from torch import nn
from torch.nn import functional

from fmapboard.integrations.ignite import FeatureMapHandler


def test_without_a_logger_the_run_is_named_as_by_summary_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model, optimizer = network()
    trainer = ignite_trainer(model, optimizer, 1, None)
    FeatureMapHandler(model, every=2).attach(trainer)
    trainer.run(loader(4))
    (run,) = (tmp_path / "runs").iterdir()
    assert steps(run) == [0, 2]


def test_an_exception_is_raised_as_without_the_handler_and_no_hook_remains(tmp_path: Path) -> None:
    model, _ = network()
    counts = list[int]()
    model.head.register_forward_hook(lambda *_: counts.append(hook_count(model)))

    def update(engine: Engine, batch: Any) -> None:
        model(batch[0])
        raise RuntimeError("a bug of the user's")

    trainer = Engine(update)
    FeatureMapHandler(model, every=1, log_dir=tmp_path).attach(trainer)
    with pytest.raises(RuntimeError, match="a bug of the user's"):
        trainer.run(loader(4))
    assert counts[0] > 1
    assert hook_count(model) == 1
    assert "_compiled_call_impl" not in vars(model)


@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_a_user_handler_that_swallows_exceptions_still_does(first: str, tmp_path: Path) -> None:
    model, _ = network()
    caught: list[BaseException] = []
    trainer = Engine(lambda engine, batch: 1 / 0)
    if first == "theirs":
        trainer.add_event_handler(Events.EXCEPTION_RAISED, lambda _, error: caught.append(error))
    FeatureMapHandler(model, every=1, log_dir=tmp_path).attach(trainer)
    if first == "ours":
        trainer.add_event_handler(Events.EXCEPTION_RAISED, lambda _, error: caught.append(error))
    trainer.run(loader(4))
    assert [type(error) for error in caught] == [ZeroDivisionError]
    assert hook_count(model) == 0


def test_a_resumed_engine_continues_from_its_state(tmp_path: Path) -> None:
    def trained(epochs: int, state: dict[str, Any] | None) -> dict[str, Any]:
        model, optimizer = network()
        trainer = ignite_trainer(model, optimizer, 2, None)
        FeatureMapHandler(model, every=2, log_dir=tmp_path, gradient_accumulation_steps=2).attach(
            trainer
        )
        if state is not None:
            trainer.load_state_dict(state)
        trainer.run(loader(6), max_epochs=None if state else epochs)
        return dict(trainer.state_dict())

    state = trained(2, None)
    assert steps(tmp_path) == [0, 2, 4]
    trained(4, {**state, "iteration": 6, "max_epochs": 4})
    assert steps(tmp_path) == [0, 2, 4, 6, 8, 10]


def test_a_terminated_engine_leaves_no_hook(tmp_path: Path) -> None:
    model, optimizer = network()
    trainer = ignite_trainer(model, optimizer, 1, None)
    trainer.add_event_handler(
        Events.ITERATION_COMPLETED(once=3), lambda: trainer.terminate(skip_completed=True)
    )
    FeatureMapHandler(model, every=1, log_dir=tmp_path).attach(trainer)
    trainer.run(loader(10))
    assert hook_count(model) == 0
    assert steps(tmp_path) == [0, 1, 2]


def test_norms_are_unscaled_under_ignites_own_scaler(tmp_path: Path) -> None:
    model, optimizer = network()
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)

    def update(engine: Engine, batch: Any) -> None:
        with torch.autocast("cpu", torch.bfloat16):
            loss = functional.cross_entropy(model(batch[0]), batch[1])
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()

    trainer = Engine(update)
    FeatureMapHandler(model, every=2, log_dir=tmp_path, scaler=scaler).attach(trainer)
    trainer.run(loader(3))
    other, _ = network()
    pixels, labels = next(iter(loader(1)))
    with torch.autocast("cpu", torch.bfloat16):
        functional.cross_entropy(other(pixels), labels).backward()
    norm = other.head.weight.grad.norm().item()
    run = series(tmp_path)
    assert run["gradient_norm/head.weight"][0] == (0, pytest.approx(norm, rel=1e-2))
    assert run["fmapboard/skipped_steps"] == [(0, 0.0), (2, 0.0)]


def test_attach_returns_the_handler_for_one_line_use(tmp_path: Path) -> None:
    model = nn.Conv2d(3, 8, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    trainer = create_supervised_trainer(model, optimizer, lambda y, _: y.mean())
    handler = FeatureMapHandler(model, log_dir=tmp_path).attach(trainer)
    assert isinstance(handler, FeatureMapHandler)
