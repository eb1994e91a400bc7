"""`batchnorm_gap/<layer>` against the statistics of the batch itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from exact_updates import of_group
from torch import Tensor, nn

import fmapboard
from fmapboard.records import LoggedStep
from fmapboard.writers.folder import MemoryWriter


def network(momentum: float | None = 0.1) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16, momentum=momentum), nn.ReLU())


def batch(seed: int, factor: float = 1.0) -> Tensor:
    return factor * torch.randn(8, 3, 12, 12, generator=torch.Generator().manual_seed(seed))


def exact_gap(model: nn.Sequential, images: Tensor) -> float:
    """The gap, from the convolution's output; call it before the pass."""
    norm = model[1]
    with torch.no_grad():
        seen = model[0](images).double().var((0, 2, 3)) + norm.eps
    return float((seen / (norm.running_var.double() + norm.eps)).log().abs().median())


def gaps(step: LoggedStep) -> dict[str, float]:
    return of_group(step, "batchnorm_gap")


def logged(
    model: nn.Module, train: Callable[[int], object], steps: int = 1, **options: object
) -> list[LoggedStep]:
    kept = MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, writer=kept, every=1) as board:
        for number in range(steps):
            with board.step(number):
                train(number)
                optimizer.step()
    return kept.steps


@pytest.mark.parametrize("momentum", [0.1, 1.0, 0.003, None])
def test_the_gap_is_that_between_the_batch_and_the_running_variance(
    momentum: float | None,
) -> None:
    model, exact = network(momentum), []

    def train(number: int) -> None:
        images = batch(number, 1 + number)
        exact.append(exact_gap(model, images))
        model(images).square().mean().backward()

    steps = logged(model, train, 4)
    for step, expected in zip(steps, exact, strict=True):
        assert list(gaps(step)) == ["1"]
        assert gaps(step)["1"] == pytest.approx(expected, rel=1e-3, abs=1e-3)


def test_a_healthy_layer_has_a_small_gap_and_another_input_scale_a_large_one() -> None:
    model = network()
    for number in range(100):
        model(batch(number))
    seen = [
        logged(model, lambda _, images=images: model(images).mean().backward())
        for images in (batch(100), batch(101, 3.0))
    ]
    assert gaps(seen[0][0])["1"] < 0.1
    assert gaps(seen[1][0])["1"] == pytest.approx(2.2, abs=0.2)  # log 9


def test_the_recorded_pass_alone_counts() -> None:
    """As in an accumulation, or a GAN's discriminator, which sees two batches."""
    model, exact = network(), []

    def train(number: int) -> None:
        exact.append(exact_gap(model, batch(1)))
        (model(batch(1)).mean() + model(batch(2, 5.0)).mean()).backward()

    (step,) = logged(model, train)
    assert gaps(step)["1"] == pytest.approx(exact[0], rel=1e-3)


def test_a_layer_that_runs_twice_in_the_pass_shows_the_mean_of_its_batches() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm = nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4, momentum=None)

        def forward(self, x: Tensor) -> Tensor:
            maps = self.conv(x)
            return self.norm(maps) + self.norm(2 * maps)

    model, images = Twice(), batch(0)
    with torch.no_grad():
        variance = model.conv(images).double().var((0, 2, 3)) * (1 + 4) / 2
    expected = float((variance + 1e-5).log().abs().median())
    (step,) = logged(model, lambda _: model(images).mean().backward())
    assert gaps(step)["norm"] == pytest.approx(expected, abs=1e-3)


def frozen(model: nn.Sequential) -> None:
    model[1].eval()


def without_statistics(model: nn.Sequential) -> None:
    model[1] = nn.BatchNorm2d(16, track_running_stats=False)


def without_momentum(model: nn.Sequential) -> None:
    model[1].momentum = 0.0


def uncounted(model: nn.Sequential) -> None:
    model[1].num_batches_tracked = None


def too_coarse(model: nn.Sequential) -> None:
    model[1].momentum = 1e-6


@pytest.mark.parametrize(
    "change", [frozen, without_statistics, without_momentum, uncounted, too_coarse]
)
def test_a_layer_whose_batch_is_unknown_has_no_gap(
    change: Callable[[nn.Sequential], None],
) -> None:
    model = network()
    change(model)
    (step,) = logged(model, lambda _: model(batch(0)).square().mean().backward())
    assert "gradient_norm/total" in step.scalars
    assert gaps(step) == {}


def test_a_nonfinite_batch_has_no_gap() -> None:
    model = network()
    images = batch(0)
    images[0, 0, 3, 3] = torch.inf
    (step,) = logged(model, lambda _: model(images).mean().backward())
    assert gaps(step) == {}


def test_a_pass_in_eval_mode_has_no_gap() -> None:
    model = network().eval()
    (step,) = logged(model, lambda _: model(batch(0)).mean().backward())
    assert gaps(step) == {}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_statistics_are_read_unless_they_are_too_coarse(dtype: torch.dtype) -> None:
    model, images = network().to(dtype), batch(0, 3.0).to(dtype)
    exact = exact_gap(network(), batch(0, 3.0))
    (step,) = logged(model, lambda _: model(images).float().mean().backward())
    expected = {} if dtype == torch.bfloat16 else {"1": pytest.approx(exact, abs=0.02)}
    assert gaps(step) == expected


def test_a_lazy_layer_has_a_gap_once_it_knows_its_channels() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.LazyBatchNorm2d())
    kept = MemoryWriter()
    with fmapboard.watch(model, writer=kept, every=1) as board:
        for number in range(2):
            with board.step(number):
                model(batch(number)).square().mean().backward()
    assert [list(gaps(step)) for step in kept.steps] == [[], ["1"]]


def test_the_model_itself_may_be_the_layer() -> None:
    model, kept = nn.BatchNorm2d(3), MemoryWriter()
    with fmapboard.watch(model, writer=kept, every=1) as board, board.step(0):
        model(batch(0)).square().mean().backward()
    assert list(gaps(kept.steps[0])) == ["BatchNorm2d"]
