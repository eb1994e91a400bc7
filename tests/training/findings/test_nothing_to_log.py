"""What cannot be logged is named with its own cause, once."""

from __future__ import annotations

import contextlib
import copy
import logging
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import warm_python
from networks import two_convolutions
from torch import Tensor, nn
from watched_training import sgd

import fmapboard
from fmapboard.errors import ConfigurationError
from fmapboard.writers.folder import MemoryWriter

Step = Callable[[nn.Module, torch.optim.Optimizer], None]


class SparseLayer(nn.Module):
    """Returns a sparse matrix [3, 3]."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(3, 3))

    def forward(self, x: Tensor) -> Tensor:
        return (self.weight * x).to_sparse()


class SparseNet(nn.Module):
    """A sparse layer in front of a dense one."""

    def __init__(self) -> None:
        super().__init__()
        self.sparse, self.dense = SparseLayer(), nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.dense(self.sparse(x).to_dense())
        return found


def trained(model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor) -> None:
    optimizer.zero_grad()
    found = model(x)
    parts = found.unbind() if found.is_nested else [found]
    torch.stack([part.square().sum() for part in parts]).sum().backward()
    optimizer.step()


def said_in(
    caplog: pytest.LogCaptureFixture,
    model: nn.Module,
    step: Step,
    *,
    marked: bool,
    **options: object,
) -> tuple[list[str], list[set[str]]]:
    """The messages of two steps, and the labels of the layers that are logged in each."""
    caplog.clear()
    optimizer, kept = sgd(model), MemoryWriter()
    options = {"checks": False, "optimizer": None if marked else optimizer, **options}
    with (
        caplog.at_level(logging.WARNING, "fmapboard"),
        fmapboard.watch(model, writer=kept, every=1, **options) as board,
    ):
        for number in range(2):
            if marked:
                with board.step(number):
                    step(model, optimizer)
            else:
                step(model, optimizer)
    return caplog.messages, [{m.layer_call.label for m in s.statistics} for s in kept.steps]


@pytest.mark.parametrize("marked", [False, True])
def test_an_empty_batch_is_named(marked: bool, caplog: pytest.LogCaptureFixture) -> None:
    def step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        trained(model, optimizer, torch.zeros(0, 1, 8, 8))

    said, logged = said_in(caplog, two_convolutions(), step, marked=marked)
    assert said == [
        "fmapboard: step 0: the model ran on an empty batch: its layers returned tensors without "
        "values, so there is nothing to log; leave out batches of 0 samples"
    ]
    assert logged == [set(), set()]


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_nested_outputs_are_named(
    layout: torch.layout, marked: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        samples = [torch.rand(2, 3), torch.rand(4, 3)]
        trained(model, optimizer, torch.nested.nested_tensor(samples, layout=layout))

    said, _ = said_in(
        caplog, nn.Sequential(nn.Linear(3, 2)), step, marked=marked, activation_gradients=True
    )
    assert said == [
        "fmapboard: step 0: these layers return nested tensors, which are not logged: 0; to log "
        "them, return padded ones (torch.nested.to_padded_tensor)"
    ]


@pytest.mark.parametrize("marked", [False, True])
def test_sparse_outputs_are_named_and_the_others_are_logged(
    marked: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        trained(model, optimizer, torch.rand(3, 3))

    options = {"layers": ["sparse", "dense"], "activation_gradients": True}
    said, logged = said_in(caplog, SparseNet(), step, marked=marked, **options)
    assert said == [
        "fmapboard: step 0: these layers return sparse tensors, which are not logged: sparse; to "
        "log them, return dense ones (Tensor.to_dense)"
    ]
    assert logged == [{"dense"}, {"dense"}]


@pytest.mark.parametrize(
    ("context", "name"), [(torch.inference_mode, "inference_mode"), (torch.no_grad, "no_grad")]
)
def test_steps_without_gradients_are_named(
    context: Callable[[], torch.no_grad], name: str, caplog: pytest.LogCaptureFixture
) -> None:
    def step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        with context():
            model(torch.rand(2, 1, 8, 8))

    def stepping(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        step(model, optimizer)
        optimizer.step()

    said, logged = said_in(caplog, two_convolutions(), step, marked=True)
    assert said == [
        f"fmapboard: step 0: the model ran under torch.{name}(), so there are no gradient norms"
    ]
    assert logged == [{"0", "1", "2"}] * 2
    said, _ = said_in(caplog, two_convolutions(), stepping, marked=False)
    assert said == [
        "fmapboard: step 0: no watched layer ran in a training pass; the model ran under "
        f"torch.{name}() alone, where nothing can be trained; to log such passes, put them into a "
        "block: with board.step(i):"
    ]


def test_a_preview_without_gradients_in_a_training_step_is_not_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        model(torch.rand(2, 1, 8, 8)).sum().backward()
        with torch.inference_mode():
            model(torch.rand(2, 1, 8, 8))

    said, _ = said_in(caplog, two_convolutions(), step, marked=True)
    (one,) = said
    assert "no optimizer stepped" in one


def test_a_model_that_was_created_in_inference_mode_is_refused_and_its_maps_can_be_extracted() -> (
    None
):
    with torch.inference_mode():
        model = two_convolutions()
    with pytest.raises(ConfigurationError) as caught:
        fmapboard.watch(model, writer=MemoryWriter())
    assert str(caught.value) == (
        "model=Sequential: its parameter 0.weight was created under torch.inference_mode(), so the "
        "model cannot be trained; create the model outside of it, or use "
        "fmapboard.extract(model, images), which needs no training"
    )
    assert set(fmapboard.extract(model, torch.rand(1, 1, 8, 8))) == {"0", "2"}


def test_a_step_in_a_logger_that_another_watch_has_closed_names_the_later_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model = two_convolutions()
    with caplog.at_level(logging.WARNING, "fmapboard"):
        earlier = fmapboard.watch(model, writer=MemoryWriter(), every=1)
        later = fmapboard.watch(model, writer=MemoryWriter(), every=1)
        with earlier.step(0), later.step(0), torch.no_grad():
            model(torch.rand(2, 1, 8, 8))
        later.close()
    assert (
        "this Sequential was watched already; the earlier logger is now closed"
        in (caplog.messages[0])
    )
    assert caplog.messages[1] == (
        "fmapboard: a step began in a logger that was closed when this model was watched again, "
        "and is not logged; use the later logger, or give each logger its own name="
    )


SCRIPT = """
import torch, fmapboard
model = torch.nn.Conv2d(3, 4, 3)
board = fmapboard.watch(model, "run")
{end}
"""


@pytest.mark.parametrize(("end", "explained"), [("raise KeyError('labels')", 0), ("", 1)])
def test_a_script_that_raises_before_its_first_step_ends_with_its_own_traceback(
    tmp_path: Path, end: str, explained: int
) -> None:
    done = warm_python.run(SCRIPT.format(end=end), cwd=tmp_path)
    assert done.stderr.count("nothing was logged") == explained
    if not explained:
        assert done.stderr.splitlines()[-1] == "KeyError: 'labels'"


@pytest.mark.parametrize("is_marked", [True, False])
@pytest.mark.parametrize(
    ("way", "reason"),
    [
        ("meta", "its parameters are on the meta device and have no values"),
        ("copied", "no optimizer holds its parameters, as when a deep copy of it is trained"),
    ],
)
def test_a_model_without_values_and_a_copy_that_trains_in_its_place_have_their_own_sentence(
    way: str, reason: str, is_marked: bool, caplog: pytest.LogCaptureFixture
) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())
    if way == "meta":
        model.to("meta")
    trains = copy.deepcopy(model) if way == "copied" else model
    optimizer = torch.optim.SGD(trains.parameters(), lr=0.1)
    x = torch.rand(2, 3, 8, 8, device=next(model.parameters()).device)
    counted = None if is_marked else optimizer
    with fmapboard.watch(model, writer=MemoryWriter(), optimizer=counted, every=1) as board:
        for number in range(2):
            with board.step(number) if is_marked else contextlib.nullcontext():
                trained(trains, optimizer, x)
    assert caplog.text.count(f"step 0: no watched layer ran in a training pass; {reason}") == 1
