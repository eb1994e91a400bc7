"""Healthy trainings of `tests/acceptance` that are spoilt in one thing, and their table."""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from torch import Generator, Tensor, nn, optim

timm = pytest.importorskip("timm")

ACCEPTANCE = Path(__file__).parents[1] / "acceptance"


@pytest.fixture
def acceptance(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Imports a module of `tests/acceptance`; they are gone from `sys.modules` afterwards."""
    monkeypatch.syspath_prepend(str(ACCEPTANCE))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and (
            ACCEPTANCE in Path(str(sys.modules[name].__file__)).parents
        ):
            del sys.modules[name]


def rows(generator: Generator, count: int) -> tuple[Tensor, ...]:
    inputs = torch.randn(count, 4, generator=generator)
    return inputs, inputs.sum(1, keepdim=True)


def squared_error(model: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
    return (model(inputs) - targets).square().mean()


def training(acceptance: Any, layers: list[nn.Module], **recipe: Any) -> Any:
    """Four steps of a small network, at a rate of 0.1 that is halved after each."""
    loops = acceptance("loops")

    def schedule(optimizer: optim.Optimizer, _: int) -> Any:
        return optim.lr_scheduler.StepLR(optimizer, 1, 0.5)

    def optimizer(model: nn.Module) -> optim.Optimizer:
        return optim.SGD(model.parameters(), 0.1)

    how = loops.Recipe("", optimizer, schedule, steps=4, every=4, batch=8, **recipe)
    return loops.Fit(lambda: nn.Sequential(*layers), rows, squared_error, how)


def spoilt(acceptance: Any, name: str, fit: Any) -> Any:
    """The spoilt training, and if it took effect."""
    spoilings = acceptance("spoilings")
    (spoiling,) = (known for known in spoilings.SPOILINGS if known.name == name)
    effect = spoilings.Effect()
    return spoiling.spoil(fit, effect), effect


def test_a_spoilt_rate_is_that_of_the_schedule_times_the_factor(
    acceptance: Any, tmp_path: Path
) -> None:
    rates: list[float] = []

    def before(_: int, __: nn.Module, optimizer: optim.Optimizer) -> None:
        rates.append(optimizer.param_groups[0]["lr"])

    fit = training(acceptance, [nn.Linear(4, 1)], before=before)
    changed, effect = spoilt(acceptance, "rate x10", fit)
    changed(tmp_path / "run", 0)
    assert rates == pytest.approx([1.0, 0.5, 0.25, 0.125])
    assert effect.is_seen


def test_nothing_before_a_detached_layer_learns(acceptance: Any, tmp_path: Path) -> None:
    layers = [nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 1)]
    before = [layer.weight.detach().clone() for layer in layers]
    changed, effect = spoilt(acceptance, "detached in the middle", training(acceptance, [*layers]))
    changed(tmp_path / "run", 0)
    moved = [
        not torch.equal(layer.weight, weight) for layer, weight in zip(layers, before, strict=True)
    ]
    assert moved == [False, False, True]
    assert effect.is_seen


def test_inputs_are_scaled_for_the_model_and_targets_are_not(
    acceptance: Any, tmp_path: Path
) -> None:
    seen: list[float] = []
    layer = nn.Linear(4, 1)
    layer.register_forward_pre_hook(lambda _, args: seen.append(args[0].abs().mean().item()))
    changed, _ = spoilt(acceptance, "inputs x255", training(acceptance, [layer]))
    changed(tmp_path / "run", 0)
    inputs, targets = changed.draw(Generator().manual_seed(0), 8)
    assert torch.equal(targets, inputs.sum(1, keepdim=True))
    assert 100 < seen[0] < 400


def test_a_case_without_a_batch_to_cut_is_left_out(acceptance: Any) -> None:
    fit = training(acceptance, [nn.Linear(4, 1)])
    fit = type(fit)(fit.make, fit.draw, fit.loss, fit.recipe.but("", batch=2))
    with pytest.raises(acceptance("spoilings").NotApplicable, match=r"^batches have 2 examples$"):
        spoilt(acceptance, "batches of 2", fit)


def row(acceptance: Any, spoiling: str, end: float, said: str = "") -> Any:
    """A training whose healthy twin falls from 3 to 1."""
    class_, _, kind = said.partition(";")[0].partition(" ")
    group = "healthy" if spoiling == "healthy" else "rate"
    return acceptance("spoilt_table").Trained(
        *("healthy/tables", "iris", "2026-11-28T03:00", "MLP", "Adam 0.01", 0, spoiling, group),
        healthy_start=3.0,
        healthy_end=1.0,
        start=3.0,
        end=end,
        class_=class_,
        kind=kind,
        said=said,
    )


@pytest.mark.parametrize(
    ("end", "share"), [(1.0, 1.0), (2.0, 0.5), (3.0, 0.0), (5.0, -1.0), (math.nan, -math.inf)]
)
def test_the_share_of_the_healthy_progress(acceptance: Any, end: float, share: float) -> None:
    assert row(acceptance, "rate x10", end).share == share


def test_a_table_is_read_as_it_was_written(acceptance: Any, tmp_path: Path) -> None:
    table = acceptance("spoilt_table")
    written = [row(acceptance, "healthy", 1.0), row(acceptance, "rate x10", 2.5, "note dead")]
    table.write(written, tmp_path / "spoilt.tsv")
    assert table.read(tmp_path / "spoilt.tsv") == written


def test_what_is_said_of_the_healthy_training_does_not_count(acceptance: Any) -> None:
    table = acceptance("spoilt_table").judged(
        [
            row(acceptance, "healthy", 1.0, "note dead"),
            row(acceptance, "rate x10", 3.0, "note dead"),
            row(acceptance, "rate x100", 3.0, "note dead; note exploding; note exploding"),
        ]
    )
    assert "| rate x10 | 1 | 1 | 0 (0 %) | 0 |  | nothing 1 |" in table
    assert "| rate x100 | 1 | 1 | 1 (100 %) | 0 |  | exploding 1 |" in table
    assert "| all | 2 | 2 | 1 (50 %) | 0 |  | nothing 1, exploding 1 |" in table
    assert "| exploding | 1 | 1 | 1 | 0 | 0.00 |" in table


def test_a_plot_has_a_full_dot_for_what_is_said_and_a_ring_for_silence(
    acceptance: Any, tmp_path: Path
) -> None:
    plots = acceptance("spoilt_plots")
    plots.plot(
        [
            row(acceptance, "healthy", 1.0),
            row(acceptance, "rate x10", 3.0, "note update_ratio"),
            row(acceptance, "rate x10", 1.0),
        ],
        tmp_path,
    )
    image = Image.open(tmp_path / "rate.png").convert("RGB")
    said = (plots.LEFT + round(plots.WIDTH * 0.5 / 1.75), plots.TOP + 7)
    silent = (plots.LEFT + round(plots.WIDTH * 1.5 / 1.75), plots.TOP + plots.ROW + 7)
    blue = (0, 114, 178)
    assert image.getpixel(said) == blue
    assert image.getpixel(silent) != blue
    assert blue in [image.getpixel((silent[0] + right, silent[1])) for right in range(-6, 7)]
