"""Models inside compiled functions, DataParallel, scripts and the user's own hooks."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import fmapboard
from fmapboard.records import LoggedStep
from fmapboard.writers.memory import MemoryWriter

SGD = torch.optim.SGD


class Net(nn.Module):
    """A convolution, an in-place ReLU, a head, and a layer that is never used."""

    def __init__(self, channels: int = 3) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, 4, 3)
        self.relu = nn.ReLU(inplace=True)
        self.head = nn.Linear(4, 2)
        self.unused = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.relu(self.conv(x)).mean((2, 3)))


def loss_of(model: nn.Module, x: Tensor) -> Tensor:
    return model(x).square().mean()


def x_of(seed: int = 0, channels: int = 3) -> Tensor:
    return torch.randn(2, channels, 8, 8, generator=torch.Generator().manual_seed(seed))


def norms(step: LoggedStep) -> dict[str, float]:
    prefix = "gradient_norm/"
    return {t.removeprefix(prefix): n for t, n in step.scalars.items() if t.startswith(prefix)}


def true_norms(model: nn.Module, x: Tensor) -> dict[str, float]:
    """Of the plain loss, by a twin that nobody watches."""
    twin = copy.deepcopy(model)
    twin.zero_grad()
    loss_of(twin, x).backward()
    found = {n: p.grad.norm().item() for n, p in twin.named_parameters() if p.grad is not None}
    return {**found, "total": math.hypot(*found.values())}


def pictures(step: LoggedStep) -> set[str]:
    return {picture.tag for picture in step.pictures}


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # dynamo's own
@pytest.mark.parametrize("by_hand", [True, False])
def test_a_compiled_step_function_is_captured_and_not_recompiled(by_hand: bool) -> None:
    from torch._dynamo.utils import counters

    def train(watched: bool) -> tuple[Any, dict[str, int], list[LoggedStep]]:
        torch._dynamo.reset()
        counters.clear()
        torch.manual_seed(0)
        model, kept = Net(), MemoryWriter()
        optimizer = SGD(model.parameters(), lr=0.1)

        @torch.compile(backend="eager")
        def step(x: Tensor) -> None:
            optimizer.zero_grad()
            loss_of(model, x).backward()
            optimizer.step()

        board = None
        if watched:
            counted = None if by_hand else optimizer
            board = fmapboard.watch(model, writer=kept, optimizer=counted, every=2)
        for number in range(5):
            if board is not None and by_hand:
                with board.step(number):
                    step(x_of(number))
            else:
                step(x_of(number))
        if board is not None:
            board.close()
        return model.state_dict(), dict(counters["recompiles"]), kept.steps

    bare, recompiled, _ = train(False)
    seen, recompiled_too, steps = train(True)
    # By itself torch 2.6's compiled step differs from its uncompiled one in the last digit.
    last_digit = 1e-7 if torch.__version__ < "2.7" else 0.0
    for name, value in bare.items():
        torch.testing.assert_close(seen[name], value, rtol=0.0, atol=last_digit)
    assert recompiled_too == recompiled
    assert [step.step for step in steps] == [0, 2, 4]
    assert all("feature_maps_4x3x3x3/conv" in pictures(step) for step in steps)
    assert len({norms(step)["total"] for step in steps}) == 3


def test_data_parallel_without_gpus_runs_and_logs_the_module_itself() -> None:
    model, kept = Net(), MemoryWriter()
    parallel = nn.DataParallel(model)
    optimizer = SGD(parallel.parameters(), lr=0.1)
    expected = true_norms(model, x_of())
    with fmapboard.watch(parallel, writer=kept, optimizer=optimizer):
        loss_of(parallel, x_of()).backward()
        optimizer.step()
    assert norms(kept.steps[0]) == pytest.approx(expected)
    assert "feature_maps_4x3x3x3/conv" in pictures(kept.steps[0])


def test_a_replica_on_another_device_neither_counts_nor_voids_the_pass() -> None:
    model, kept = nn.Sequential(nn.Conv2d(3, 4, 3)), MemoryWriter()

    def replica(device: str) -> nn.Module:
        """As `torch.nn.parallel.replicate` makes them: they share the hooks of the original."""
        root, inner = (m._replicate_for_data_parallel() for m in (model, model[0]))
        for name, parameter in model[0].named_parameters():
            setattr(inner, name, parameter.to(device))
        root._modules["0"] = inner
        return root

    board = fmapboard.watch(model, writer=kept)
    with board.step(0):
        replica("cpu")(x_of())
        replica("meta")(x_of().to("meta"))
    with board.step(100):
        replica("meta")(x_of().to("meta"))
        replica("cpu")(x_of())
    board.close()
    for step in kept.steps:
        assert [m.layer_call.label for m in step.statistics] == ["0"]
        assert len([p for p in step.pictures if p.kind == "network_input"]) == 1
    assert len(kept.steps) == 2


def test_the_users_hooks_that_change_an_output_act_as_ever() -> None:
    model, kept, x = Net(), MemoryWriter(), x_of()
    doubled = model.conv.register_forward_hook(lambda module, args, output: output * 2)
    bare = model(x)
    optimizer = SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer):
        assert torch.equal(model(x), bare)
        functional.mse_loss(model(x), bare.detach()).backward()
        optimizer.step()
    doubled.remove()
    own = next(m for m in kept.steps[0].statistics if m.layer_call.label == "conv").statistics
    with torch.no_grad():
        true = functional.conv2d(x, model.conv.weight, model.conv.bias)
    assert own is not None
    assert own.maximum.max() == pytest.approx(true.max().item())


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning", "ignore:.torch.jit")
@pytest.mark.parametrize("make", [torch.jit.script, lambda m: torch.jit.trace(m, x_of())])
def test_a_scripted_or_traced_model_is_refused_with_the_way_out(make: Any) -> None:
    model = make(nn.Sequential(nn.Conv2d(3, 4, 3)))
    text = "is scripted or traced .*, so its layers cannot be captured; pass the nn.Module"
    with pytest.raises(fmapboard.ConfigurationError, match=text):
        fmapboard.watch(model, writer=MemoryWriter())
    with pytest.raises(fmapboard.ConfigurationError, match=text):
        fmapboard.extract(model, x_of())


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning", "ignore:.torch.jit")
def test_a_scripted_part_is_passed_over_and_named_once(caplog: pytest.LogCaptureFixture) -> None:
    scripted = torch.jit.script(nn.Sequential(nn.Conv2d(4, 4, 3), nn.ReLU()))
    model, kept = nn.Sequential(nn.Conv2d(3, 4, 3), scripted), MemoryWriter()
    board = fmapboard.watch(model, writer=kept, every=1, probe=x_of())
    for number in range(2):
        with board.step(number):
            model(x_of())
    board.close()
    said = [r.message for r in caplog.records if "scripted" in r.message]
    assert said == [
        "fmapboard: hooks do not run inside scripted or traced modules, so these are not captured: "
        "1"
    ]
    assert "feature_maps_4x3x3x3/0" in pictures(kept.steps[0])
    with pytest.raises(fmapboard.LayerNotFound, match="so these are not captured: 1"):
        fmapboard.watch(model, writer=MemoryWriter(), layers="1.*")
