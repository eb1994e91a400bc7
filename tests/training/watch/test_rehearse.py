"""``watch(..., rehearse=True)`` rehearses the first logged step with the loss of its gradient."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hidden_state import Stateless
from torch import Tensor, nn
from torch.nn import functional

import fmapboard
from fmapboard.session import kept_batches
from fmapboard.writers.folder import MemoryWriter

PIXELS = torch.rand(24, 3, 8, 8, generator=torch.Generator().manual_seed(0))
LABELS = torch.arange(24) % 3


def trained(
    *, loss: Any = functional.cross_entropy, steps: int = 3, **options: Any
) -> list[Tensor]:
    torch.manual_seed(0)
    model = Stateless()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    board = fmapboard.watch(model, writer=MemoryWriter(), optimizer=optimizer, every=1, **options)
    for _ in range(steps):
        optimizer.zero_grad()
        loss(model(PIXELS), LABELS).backward()
        optimizer.step()
        assert [m for m in model.modules() if m._forward_hooks] == []
    board.close()
    return [tensor.detach().clone() for tensor in model.state_dict().values()]


def test_the_first_step_is_rehearsed_once_and_the_training_is_the_same(
    capsys: pytest.CaptureFixture[str],
) -> None:
    bare = trained()
    assert capsys.readouterr().out == ""
    seen = trained(rehearse=True)
    printed = capsys.readouterr().out
    assert printed.count("Do images mix?") == 1
    assert "guessing among 3 classes has 1.1" in printed
    assert all(map(torch.equal, bare, seen))


def test_what_is_missing_is_said(caplog: pytest.LogCaptureFixture) -> None:
    trained(loss=lambda output, _: output.square().mean(), rehearse=True, steps=1)
    assert "the training was not rehearsed: the loss could not be read" in caplog.text
    assert "board.loss(loss) in the step makes a squared error known" in caplog.text


def test_too_few_rows_are_said(caplog: pytest.LogCaptureFixture) -> None:
    model = Stateless()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, writer=MemoryWriter(), optimizer=optimizer, rehearse=True):
        functional.cross_entropy(model(PIXELS[:6]), LABELS[:6]).backward()
        optimizer.step()
    assert "as 8 rows are needed for that and it has 6" in caplog.text


def test_a_batch_and_a_loss_can_be_given_to_the_logger() -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(192, 3), nn.Softmax(dim=0))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, writer=MemoryWriter(), optimizer=optimizer) as board:
        found = board.rehearse((PIXELS, LABELS), functional.cross_entropy, seconds=5)
        functional.cross_entropy(model(PIXELS), LABELS).backward()
        optimizer.step()
    assert found is not None
    assert found.faults[0].kind == "images_mix"


def test_a_squared_error_is_known_with_the_loss_that_is_given(
    capsys: pytest.CaptureFixture[str],
) -> None:
    torch.manual_seed(0)
    model = Stateless()
    targets = functional.one_hot(LABELS).float()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    board = fmapboard.watch(model, writer=MemoryWriter(), optimizer=optimizer, rehearse=True)
    loss = functional.mse_loss(model(PIXELS), targets)
    board.loss(loss)
    loss.backward()
    optimizer.step()
    board.close()
    after = functional.mse_loss(model(PIXELS), targets).item()
    assert f"loss {after:.3g} → " in capsys.readouterr().out


def test_after_an_exception_in_its_step_the_next_logged_step_is_rehearsed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    model = Stateless()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    board = fmapboard.watch(
        model, writer=MemoryWriter(), optimizer=optimizer, every=1, rehearse=True
    )

    def step(number: int, wrong: int) -> None:
        with board.step(number):
            functional.cross_entropy(model(PIXELS), LABELS).backward()
            optimizer.step()
            assert 1 // wrong

    with pytest.raises(ZeroDivisionError):
        step(0, 0)
    assert capsys.readouterr().out == ""
    step(1, 1)
    step(2, 1)
    board.close()
    assert capsys.readouterr().out.count("Do images mix?") == 1


def test_a_model_that_is_never_called_is_not_rehearsed(caplog: pytest.LogCaptureFixture) -> None:
    model = Stateless()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    board = fmapboard.watch(
        model, writer=MemoryWriter(), optimizer=optimizer, every=1, rehearse=True
    )
    model.conv(PIXELS).mean().backward()
    optimizer.step()
    board.close()
    assert "not rehearsed: no logged step trained the model by calling it" in caplog.text


def test_a_compiled_model_gets_no_hook(caplog: pytest.LogCaptureFixture) -> None:
    model = Stateless()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    compiled = torch.compile(model, backend="eager")
    board = fmapboard.watch(
        compiled, writer=MemoryWriter(), optimizer=optimizer, every=1, rehearse=True
    )
    functional.cross_entropy(compiled(PIXELS), LABELS).backward()
    optimizer.step()
    board.close()
    assert "was not rehearsed: the model is compiled" in caplog.text


def test_a_batch_that_cannot_be_copied_does_not_end_the_training(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(values: Any) -> Any:
        raise RuntimeError("no copy")

    bare = trained()
    monkeypatch.delenv("FMAPBOARD_ON_ERROR")
    monkeypatch.setattr(kept_batches, "detached_copy", failing)
    seen = trained(rehearse=True)
    assert "batches for experiments" in caplog.text
    assert "no copy" in caplog.text
    assert all(map(torch.equal, bare, seen))
