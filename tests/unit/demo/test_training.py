"""Training of the demo network."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import nn
from torch.optim import Optimizer
from torch_threads import torch_threads

from fmapboard.demo.network import DemoNetwork
from fmapboard.demo.photographs import Photographs
from fmapboard.demo.training import accuracy, train


def tiny() -> nn.Sequential:
    """A network that trains in no time: the colours of a 6 × 6 mosaic and a linear layer."""
    return nn.Sequential(nn.AvgPool2d(8), nn.Flatten(), nn.Linear(108, 8))


@pytest.mark.slow
def test_forty_steps_beat_chance_by_far(photographs: Photographs) -> None:
    network = DemoNetwork()
    result = train(network, photographs, steps=40)
    assert result.steps == 40
    assert result.chance == 0.125
    assert result.accuracy > 0.5
    assert result.loss < 1.0
    assert result.seconds > 0
    assert result.accuracy == accuracy(network, *photographs.validation_crops())
    assert not network.training


@pytest.mark.slow
def test_the_same_seed_gives_the_same_losses_and_uses_no_global_random_number(
    photographs: Photographs,
) -> None:
    def losses(seed: int) -> list[float]:
        seen: list[float] = []
        train(
            DemoNetwork(),
            photographs,
            steps=3,
            seed=seed,
            on_step=lambda step, loss: seen.append(loss),
        )
        return seen

    first = losses(0)
    before = torch.random.get_rng_state()
    torch.rand(1)
    moved = torch.random.get_rng_state()
    assert losses(0) == first
    assert torch.equal(torch.random.get_rng_state(), moved)
    assert not torch.equal(before, moved)
    assert losses(1) != first


def test_the_watch_context_is_open_exactly_around_the_steps(photographs: Photographs) -> None:
    events: list[str] = []
    network = tiny()

    @contextmanager
    def watch(model: nn.Module, optimizer: Optimizer) -> Iterator[None]:
        assert model is network
        owned = {id(p) for group in optimizer.param_groups for p in group["params"]}
        assert owned == {id(p) for p in network.parameters()}
        events.append("open")
        optimizer.register_step_post_hook(lambda *_: events.append("optimizer step"))
        yield
        events.append("closed")

    train(
        network,
        photographs,
        steps=2,
        watch=watch,
        on_step=lambda step, loss: events.append(f"step {step}"),
    )
    assert events == ["open", "optimizer step", "step 0", "optimizer step", "step 1", "closed"]


def test_training_uses_one_torch_thread_and_restores_the_number_afterwards(
    photographs: Photographs,
) -> None:
    seen: list[int] = []
    with torch_threads(2):
        train(
            tiny(),
            photographs,
            steps=1,
            on_step=lambda step, loss: seen.append(torch.get_num_threads()),
        )
        seen.append(torch.get_num_threads())
    assert seen == [1, 2]


def test_the_watch_context_is_closed_when_the_loop_fails(photographs: Photographs) -> None:
    events: list[str] = []

    @contextmanager
    def watch(model: nn.Module, optimizer: Optimizer) -> Iterator[None]:
        try:
            yield
        except KeyboardInterrupt:
            events.append("closed by the interrupt")
            raise

    def interrupt(step: int, loss: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(tiny(), photographs, steps=2, watch=watch, on_step=interrupt)
    assert events == ["closed by the interrupt"]


def test_loss_and_validation_accuracy_are_reported_with_their_steps(
    photographs: Photographs,
) -> None:
    reported: list[tuple[str, float, int]] = []
    result = train(
        tiny(),
        photographs,
        steps=52,
        scalars=lambda tag, value, step: reported.append((tag, value, step)),
    )
    losses = [(value, step) for tag, value, step in reported if tag == "loss/training"]
    measured = [(value, step) for tag, value, step in reported if tag == "accuracy/validation"]
    assert [step for _, step in losses] == list(range(52))
    assert losses[-1][0] == result.loss
    assert [step for _, step in measured] == [50, 52]
    assert measured[-1][0] == result.accuracy


def test_the_network_trains_in_training_mode_after_a_validation(photographs: Photographs) -> None:
    modes: list[bool] = []
    network = tiny().eval()
    train(
        network,
        photographs,
        steps=51,
        on_step=lambda step, loss: modes.append(network.training),
    )
    assert modes == [True] * 51


def test_accuracy_is_the_fraction_of_correct_answers_and_changes_nothing() -> None:
    network = nn.Sequential(nn.BatchNorm2d(1), nn.Flatten())
    images = torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]).view(4, 1, 1, 2)
    assert accuracy(network, images, torch.tensor([1, 0, 1, 1])) == 0.75
    assert network.training
    assert network.state_dict()["0.num_batches_tracked"].item() == 0
    assert network.state_dict()["0.running_mean"].tolist() == [0.0]
