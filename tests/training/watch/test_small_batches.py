"""The loss of batches of fewer than eight images is read, from the rows of several logged steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from recorded_facts import training_facts
from torch import Tensor, nn
from torch.nn import functional as F

import fmapboard
from fmapboard.formats.training_facts import NoLoss
from fmapboard.writers.folder import MemoryWriter

READ = "loss/read_from_gradient"
STEPS = 20


def network(outputs: int) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, outputs)
    )


def trained(
    model: nn.Module, batch: int, backward: Callable[[Any, Tensor], Tensor], steps: int = STEPS
) -> tuple[MemoryWriter, list[float]]:
    """Train with every step logged; the values of the loss, whose backward pass has run."""
    kept, values = MemoryWriter(), list[float]()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1):
        for step in range(steps):
            generator = torch.Generator().manual_seed(step)
            labels = torch.randint(5, (batch,), generator=generator)
            optimizer.zero_grad()
            loss = backward(model(torch.randn(batch, 3, 8, 8, generator=generator)), labels)
            optimizer.step()
            values.append(loss.item())
    return kept, values


def with_backward(
    loss: Callable[[Tensor, Tensor], Tensor],
) -> Callable[[Tensor, Tensor], Tensor]:
    def run(output: Tensor, labels: Tensor) -> Tensor:
        value = loss(output, labels)
        value.backward()  # type: ignore[no-untyped-call]
        return value

    return run


def bce(output: Tensor, labels: Tensor) -> Tensor:
    return F.binary_cross_entropy_with_logits(output, (labels % 2).float()[:, None])


def read_losses(kept: MemoryWriter) -> dict[int, float]:
    """Step -> loss, with those that a later step has confirmed."""
    found: dict[int, float] = {}
    for step in kept.steps:
        for at, values in {**step.earlier, step.step: step.scalars}.items():
            if READ in values:
                found[at] = values[READ]
    return found


@pytest.mark.each_once
@pytest.mark.parametrize("batch", range(1, 9))
@pytest.mark.parametrize(
    ("kind", "loss", "outputs"),
    [("cross-entropy", F.cross_entropy, 5), ("BCE with logits", bce, 1)],
    ids=["cross-entropy", "BCE"],
)
def test_the_loss_is_read_once_there_are_eight_rows(
    kind: str, loss: Callable[[Tensor, Tensor], Tensor], outputs: int, batch: int
) -> None:
    kept, values = trained(network(outputs), batch, with_backward(loss))
    first = -(-8 // batch) - 1
    expected = dict(enumerate(values))
    assert read_losses(kept) == pytest.approx(
        {step: expected[step] for step in range(first, STEPS)}, rel=1e-4
    )
    facts = list(training_facts(kept.steps).values())
    assert facts[-1].outputs[0].kind == kind
    assert facts[-1].outputs[0].rows == batch
    assert [one.no_loss for one in facts[:first]] == [{"": NoLoss.FEW_ROWS}] * first
    assert facts[-1].no_loss == {}


@pytest.mark.parametrize(
    "batch", [1, *(pytest.param(n, marks=pytest.mark.sweep) for n in range(2, 8)), 8]
)
def test_of_a_squared_error_no_loss_is_certain_whatever_the_batch(batch: int) -> None:
    def mse(output: Tensor, labels: Tensor) -> Tensor:
        return F.mse_loss(output, output.detach() - labels[:, None].float() + 1)

    kept, _ = trained(network(3), batch, with_backward(mse))
    assert read_losses(kept) == {}
    facts = list(training_facts(kept.steps).values())[-1]
    assert facts.no_loss == {"": NoLoss.NOT_CERTAIN}
    assert facts.outputs[0].kind == "not certain"


def test_a_loss_beside_the_output_leaves_it_without_a_gradient() -> None:
    class Beside(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3)
            self.loss: Tensor | None = None

        def forward(self, images: Tensor) -> Tensor:
            maps = self.conv(images)
            self.loss = maps.square().mean()
            return maps * 2  # type: ignore[no-any-return]

    model = Beside()

    def backward(output: Tensor, labels: Tensor) -> Tensor:
        assert model.loss is not None
        model.loss.backward()  # type: ignore[no-untyped-call]
        return model.loss

    kept, _ = trained(model, 8, backward, steps=2)
    assert training_facts(kept.steps)[1].no_loss == {"": NoLoss.NO_GRADIENT}


def test_the_sum_of_two_backward_passes_of_different_losses_is_named() -> None:
    def backward(output: Tensor, labels: Tensor) -> Tensor:
        loss = F.cross_entropy(output, labels)
        loss.backward(retain_graph=True)  # type: ignore[no-untyped-call]
        output.sin().mean().backward()  # type: ignore[no-untyped-call]
        return loss

    kept, _ = trained(network(5), 16, backward, steps=3)
    assert training_facts(kept.steps)[2].no_loss == {"": NoLoss.SEVERAL}


def test_a_loss_that_is_given_needs_no_reason() -> None:
    model, kept = network(3), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1) as board:
        loss = model(torch.randn(2, 3, 8, 8)).square().mean()
        board.loss(loss)
        loss.backward()
        optimizer.step()
    assert training_facts(kept.steps)[0].no_loss == {}
