"""``AutoWatch``: which modules are watched, by which optimizer, under which name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import auto_watched
import pytest
import torch
from auto_watched import Watching, watching
from run_reader import read, steps_of
from torch import Tensor, nn
from torch.optim import SGD, Optimizer
from warm_python import run

import fmapboard


@pytest.fixture(name="watched")
def _watched(tmp_path: Path) -> Iterator[Watching]:
    with watching(tmp_path / "run") as found:
        yield found


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Conv2d(1, 2, 3)
        self.head = nn.Linear(72, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x).relu().flatten(1))


class Gan(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.generator = nn.Linear(4, 64)
        self.critic = nn.Linear(64, 1)


def loss_of(model: Callable[[Tensor], Tensor]) -> Tensor:
    return nn.functional.cross_entropy(model(torch.rand(8, 1, 8, 8)), torch.arange(8) % 3)


def train(model: nn.Module, *optimizers: Optimizer, steps: int = 4) -> None:
    for _ in range(steps):
        model.zero_grad()
        loss_of(model).backward()
        for optimizer in optimizers:
            optimizer.step()


def logged_steps(watched: Watching, folder: Path) -> list[int]:
    watched.watch.close()
    return steps_of(read(folder / "run"), "fmapboard/logged_step_ms")


def test_the_outermost_module_is_watched_from_the_second_step_on(
    watched: Watching, tmp_path: Path
) -> None:
    class Loss(nn.Module):
        def __init__(self, net: nn.Module) -> None:
            super().__init__()
            self.net = net

        def forward(self, x: Tensor) -> Tensor:
            return self.net(x)

    loss = Loss(Net())
    train(loss, SGD(loss.net.head.parameters(), 0.1), steps=9)
    assert watched.found() == {None: "Loss"}
    assert watched.steps() == [9]
    assert logged_steps(watched, tmp_path) == [1, 3, 6]


def test_two_models_have_a_name_each(watched: Watching) -> None:
    first, second = Net(), Net()
    optimizers = SGD(first.parameters(), 0.1), SGD(second.parameters(), 0.1)
    for _ in range(3):
        train(first, optimizers[0], steps=1)
        train(second, optimizers[1], steps=1)
    assert watched.found() == {"Net": "Net", "Net_2": "Net"}
    assert watched.steps() == [3, 3]
    assert watched.lines[1].startswith("watching Net_2 (Net), trained by SGD: 1 layers, logged")


def test_optimizers_that_step_on_passes_of_their_own_have_a_model_each(watched: Watching) -> None:
    gan = Gan()
    critic = SGD(gan.critic.parameters(), 0.1)
    generator = SGD(gan.generator.parameters(), 0.1)
    for _ in range(3):
        for optimizer in (generator, critic):
            gan.zero_grad()
            gan.critic(gan.generator(torch.rand(8, 4))).mean().backward()
            optimizer.step()
    assert watched.found() == {"generator": "Linear", "critic": "Linear"}


def test_optimizers_that_step_on_one_backward_pass_count_as_the_last_one(
    watched: Watching,
) -> None:
    net = Net()
    train(net, SGD(net.body.parameters(), 0.1), SGD(net.head.parameters(), 0.1), steps=5)
    assert watched.found() == {None: "Net"}
    assert watched.steps() == [5]
    assert len(watched.lines) == 1


def test_an_optimizer_that_steps_twice_does_not_wait_for_the_others(watched: Watching) -> None:
    net = Net()
    later = SGD(net.body.parameters(), 0.1)
    train(net, SGD(net.head.parameters(), 0.1), steps=3)
    assert watched.found() == {None: "Net"}
    train(net, later, steps=4)
    assert watched.steps() == [7]


def test_a_second_optimizer_of_a_model_goes_on_with_its_steps(watched: Watching) -> None:
    net = Net()
    first = SGD(net.parameters(), 0.1)
    train(net, first, steps=4)
    train(net, torch.optim.Adam(net.parameters()), steps=5)
    assert watched.found() == {None: "Net"}
    assert watched.steps() == [7]  # the first two told that it took over
    assert first._optimizer_step_post_hooks == {}  # type: ignore[attr-defined]  # of torch


def test_an_optimizer_per_epoch_goes_on_with_the_numbers(watched: Watching, tmp_path: Path) -> None:
    net = Net()
    for _ in range(3):
        train(net, SGD(net.parameters(), 0.1), steps=4)
    assert watched.found() == {None: "Net"}
    assert logged_steps(watched, tmp_path) == [1, 3, 5, 6, 9]


def test_a_model_that_the_script_watches_keeps_its_own_logger(
    watched: Watching, tmp_path: Path
) -> None:
    net = Net()
    optimizer = SGD(net.parameters(), 0.1)
    with fmapboard.watch(net.body, tmp_path / "own", optimizer=optimizer, every=1) as board:
        train(net, optimizer)
    assert board.logged_steps == 4
    assert watched.found() == {}
    assert watched.watch.kept == ["Net"]


def test_what_no_module_owns_is_named(watched: Watching) -> None:
    image = torch.zeros(1, 1, 8, 8, requires_grad=True)
    optimizer = SGD([image], 0.1)
    for _ in range(3):
        image.sum().backward()
        optimizer.step()
    assert watched.lines == ["no module owns what SGD updates, so it is not watched"]


def test_an_error_of_ours_is_a_line_and_training_goes_on(
    watched: Watching, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("spoilt")

    monkeypatch.setattr("fmapboard.auto_watch.LivingModules", fails)
    net = Net()
    train(net, SGD(net.parameters(), 0.1), steps=9)
    assert watched.found() == {}
    assert caplog.messages == [
        "fmapboard: finding the model that an optimizer trains: RuntimeError: spoilt; it is not "
        "logged; training continues"
    ]


def test_a_layer_that_does_not_exist_is_a_line(watched: Watching) -> None:
    watched.watch.options = {"layers": ["stem*"]}
    net = Net()
    train(net, SGD(net.parameters(), 0.1))
    assert watched.lines == [
        "Net is not watched: no layer matches 'stem*' among 3; there are: Net, body, head"
    ]


def test_a_step_that_is_not_logged_costs_one_call_and_no_hook(watched: Watching) -> None:
    net = Net()
    optimizer = SGD(net.parameters(), 0.1)
    watched.watch.every = 100
    train(net, optimizer, steps=4)
    calls: list[str] = []
    package = str(Path(fmapboard.__file__).parent)

    def count(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(package):
            calls.append(frame.f_code.co_name)

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        train(net, optimizer, steps=3)
    finally:
        sys.setprofile(before)
    assert calls == ["_after_step"] * 3
    assert hooks_on(net) == 0
    assert "_compiled_call_impl" not in vars(net)
    assert watched.steps() == [7]


def hooks_on(model: nn.Module) -> int:
    """How many hooks there are on the modules of a model."""
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return sum(len(vars(module)[kind]) for module in model.modules() for kind in kinds)


def test_steps_that_a_grad_scaler_skips_are_counted_apart(
    watched: Watching, tmp_path: Path
) -> None:
    net = Net()
    optimizer = SGD(net.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for number in range(5):
        optimizer.zero_grad()
        loss = scaler.scale(loss_of(net))
        (loss * torch.inf if number == 1 else loss).backward()
        scaler.step(optimizer)
        scaler.update()
    watched.watch.close()
    skipped = read(tmp_path / "run").Tensors("fmapboard/skipped_steps")
    assert [(event.step, event.tensor_proto.float_val[0]) for event in skipped] == [(1, 1), (3, 1)]


FORKING = """
import os
import sys
from pathlib import Path

sys.path.insert(0, sys.argv[2])
import torch
from auto_watched import watching
from torch import nn

with watching(Path(sys.argv[1])) as watched:
    net = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    child = os.fork()
    for _ in range(4):
        net(torch.rand(3, 2)).sum().backward()
        optimizer.step()
    print(len(watched.watch.watched))
    if child:
        os.waitpid(child, 0)
"""
"""In a process of its own: autograd refuses to run in a fork of one that has seen a device."""


def test_a_child_that_was_forked_does_not_log(tmp_path: Path) -> None:
    ended = run(FORKING, tmp_path / "run", Path(auto_watched.__file__).parent)
    assert (ended.returncode, sorted(ended.stdout.split())) == (0, ["0", "1"])


def test_a_module_that_is_not_called_is_watched_by_its_parts(
    watched: Watching, tmp_path: Path
) -> None:
    parts = nn.ModuleDict({"body": nn.Conv2d(1, 2, 3), "head": nn.Linear(72, 3)})

    def called(x: Tensor) -> Tensor:
        return parts["head"](parts["body"](x).flatten(1))

    optimizer = SGD(parts.parameters(), 0.1)
    for _ in range(4):
        optimizer.zero_grad()
        loss_of(called).backward()
        optimizer.step()
    assert watched.found() == {None: "ModuleDict"}
    watched.watch.close()
    assert steps_of(read(tmp_path / "run"), "activations/body") == [1, 3]


def test_a_model_of_one_step_is_a_line(watched: Watching, caplog: pytest.LogCaptureFixture) -> None:
    net = Net()
    optimizer = SGD(net.parameters(), 0.1)
    train(net, optimizer, steps=1)
    watched.watch.close()
    assert watched.lines[1:] == ["the model was trained for one step only: not logged"]
    assert watched.watch.watched[0].place == ""
    assert caplog.messages == []
