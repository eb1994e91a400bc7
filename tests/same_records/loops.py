"""Trainings with different loops: clipping, scaling, closures, several optimizers, resume."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import models
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from torch.utils.tensorboard import SummaryWriter
from trainings import BOTH, TRAININGS, fit, images, learn, loss, sgd, training

import fmapboard

__all__ = ["TRAININGS"]


@training
def counted_by_the_optimizer(run: Path) -> None:
    model = models.convolutions()
    optimizer = torch.optim.AdamW(model.parameters())
    with fmapboard.watch(model, run, optimizer=optimizer, every=2, **BOTH):
        for _ in range(5):
            learn(model, images(), optimizer)


@training
def accumulated(run: Path) -> None:
    model = models.convolutions()
    optimizer = sgd(model)
    with fmapboard.watch(model, run, optimizer=optimizer, every=1, **BOTH):
        for _ in range(2):
            for _ in range(3):
                loss(model, images()).backward()
            optimizer.step()
            optimizer.zero_grad()


@training
def clipped(run: Path) -> None:
    model = models.convolutions()
    optimizer = sgd(model)
    with fmapboard.watch(model, run, every=1) as board:
        for step in range(3):
            with board.step(step):
                optimizer.zero_grad()
                loss(model, images()).backward()
                board.before_clipping()
                nn.utils.clip_grad_norm_(model.parameters(), 0.05)
                optimizer.step()


@training
def scaled(run: Path) -> None:
    """The first step overflows and is skipped."""
    model = models.convolutions()
    optimizer = sgd(model)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127, backoff_factor=2.0**-100)
    with fmapboard.watch(
        model, run, optimizer=optimizer, scaler=scaler, every=1,
        activation_gradients=True,
    ):  # fmt: skip
        for _ in range(4):
            optimizer.zero_grad()
            scaler.scale(1e3 * loss(model, images())).backward()
            scaler.step(optimizer)
            scaler.update()


@training
def closures(run: Path) -> None:
    model = models.convolutions()
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=3)
    with fmapboard.watch(model, run, optimizer=optimizer, every=1):
        for _ in range(2):
            x = images()

            def closure(x: Tensor = x) -> Tensor:
                optimizer.zero_grad()
                value = loss(model, x)
                value.backward()
                return value

            optimizer.step(closure)


@training
def two_optimizers(run: Path) -> None:
    model = models.convolutions()
    optimizers = [torch.optim.SGD(model[i].parameters(), lr=0.1) for i in (0, 2)]
    with fmapboard.watch(model, run, every=1) as board:
        for step in range(3):
            with board.step(step):
                loss(model, images()).backward()
                for optimizer in optimizers:
                    optimizer.step()
                    optimizer.zero_grad()


@training
def two_models_of_one_directory(run: Path) -> None:
    pair = {name: models.convolutions() for name in ("generator", "critic")}
    boards = [fmapboard.watch(pair[name], run, name=name, every=1) for name in pair]
    for step in range(2):
        for model, board in zip(pair.values(), boards, strict=True):
            with board.step(step):
                learn(model, images(), sgd(model))
            board.flush()
    for board in boards:
        board.close()


@training
def validations(run: Path) -> None:
    model = models.convolutions()
    with fmapboard.watch(model, run, every=1, inputs=True) as board:
        for step in range(3):
            board.begin_step(step, training=step != 1)
            model.train(step != 1)
            if step == 1:
                with torch.no_grad():
                    model(images())
            else:
                learn(model, images(), sgd(model))
            board.end_step()


@training
def resumed(run: Path) -> None:
    model = models.convolutions()
    for start in (0, 2):
        with fmapboard.watch(model, run, every=1, start_step=start) as board:
            for _ in range(3):
                with board.step():
                    learn(model, images(), sgd(model))


@training
def through_a_summary_writer(run: Path) -> None:
    with SummaryWriter(str(run)) as writer:
        fit(models.convolutions(), None, writer=writer, inputs=True)
        writer.add_scalar("mine", 1.0, 0)


@training
def beside_another_writer(run: Path) -> None:
    with SummaryWriter(str(run)) as writer:
        writer.add_scalar("mine", 1.0, 0)
        writer.flush()
        fit(models.convolutions(), run)


@training
def checkpointed(run: Path) -> None:
    class Saving(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = models.convolutions()

        def forward(self, x: Tensor) -> Any:
            return checkpoint(self.body, x, use_reentrant=False)

    fit(Saving(), run, **BOTH)


@training
def autocast(run: Path) -> None:
    model = models.convolutions()
    with fmapboard.watch(model, run, every=1, **BOTH) as board:
        for step in range(2):
            with board.step(step), torch.autocast("cpu", torch.bfloat16):
                learn(model, images(), sgd(model))
