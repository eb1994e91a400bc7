"""``watch(graph=True)``: what keeps the copy of the model away from training."""

from __future__ import annotations

import logging
import signal
import weakref
from collections.abc import Callable, Iterator

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn
from watched_training import batch, sgd

import fmapboard
from fmapboard.capture.graph import MAX_COPIED_BYTES
from fmapboard.writers.folder import MemoryWriter


class HoldsLambda(nn.Module):
    """A model that deepcopy does not separate from its copy."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)
        self.block = lambda x: self.norm(x)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.block(self.conv(x))
        return result


class HoldsWeakReference(HoldsLambda):
    def __init__(self) -> None:
        super().__init__()
        reference = self.reference = weakref.ref(self.norm)
        self.block = lambda x: _called(reference, x)


class CatchesErrors(HoldsLambda):
    def forward(self, x: Tensor) -> Tensor:
        try:
            return super().forward(x)
        except Exception:
            return self.conv(x)


class PassesBy(HoldsLambda):
    """Runs the original's forward, which no module's call shows."""

    def __init__(self) -> None:
        super().__init__()
        self.block = lambda x: self.norm.forward(x)


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x


class HoldsCounter(HoldsLambda):
    def __init__(self) -> None:
        super().__init__()
        self.counter = Counter()
        self.block = lambda x: self.counter(x)


class OwnDict(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.my_hooks = nn.Conv2d(3, 4, 3), {"scale": 2.0}

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(x) * self.my_hooks["scale"]


class RaisesInCopies(nn.Conv2d):
    """Calls ``raising`` the first time that it runs, which is in the copy."""

    raising: Callable[[], object]
    calls = 0

    def forward(self, x: Tensor) -> Tensor:
        type(self).calls += 1
        if type(self).calls == 1:
            type(self).raising()
        return super().forward(x)


def _raise(error: type[BaseException]) -> None:
    raise error("only in the copy")


class OnSignal:
    """A signal handler that is an object."""

    def __call__(self, number: int, frame: object) -> None:
        raise ValueError(number)


def _called(reference: Callable[[], nn.Module | None], x: Tensor) -> Tensor:
    module = reference()
    assert module is not None
    result: Tensor = module(x)
    return result


def trained(model: nn.Module, graph: bool) -> tuple[bool, list[Tensor]]:
    """Whether a graph was recorded in two steps, and what training left."""
    kept, optimizer = MemoryWriter(), sgd(model)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1, graph=graph):
        for _ in range(2):
            optimizer.zero_grad()
            model(batch()[0]).square().mean().backward()
            optimizer.step()
    left = [tensor.clone() for tensor in model.state_dict().values()]
    return any(step.graph is not None for step in kept.steps), left


def both(kind: type[nn.Module]) -> bool:
    """Whether there is a graph; training with and without it must leave the same."""
    runs = []
    for graph in (True, False):
        torch.manual_seed(0)
        runs.append(trained(kind(), graph))
    assert all(map(torch.equal, runs[0][1], runs[1][1]))
    return runs[0][0]


@pytest.mark.parametrize("kind", [HoldsLambda, HoldsWeakReference, CatchesErrors, PassesBy])
def test_a_copy_that_calls_the_original_is_given_up_and_said_once(
    kind: type[nn.Module], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert not both(kind)
    assert [r.getMessage() for r in caplog.records if "Graphs" in r.getMessage()] == [
        "fmapboard: the copy calls the original model: the Graphs tab is not written; "
        "training continues"
    ]


def test_what_a_part_without_weights_changes_in_the_original_is_restored() -> None:
    calls = []
    for graph in (True, False):
        model = HoldsCounter()
        assert trained(model, graph)[0] == graph
        calls.append(model.counter.calls)
    assert calls == [2, 2]


def test_a_users_own_dict_named_hooks_is_kept_in_the_copy() -> None:
    assert both(OwnDict)


@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")  # torch.compile reads it
def test_what_torch_calls_for_a_module_is_the_same_after_the_recording() -> None:
    compiled = 0

    def backend(module: torch.fx.GraphModule, _: object) -> Callable[..., object]:
        nonlocal compiled
        compiled += 1
        return module.forward

    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3))
    model[0].compile(backend=backend)
    model[2] = torch.compile(model[2], backend=backend)
    model(batch()[0])
    before, names = compiled, [list(vars(module)) for module in model.modules()]
    called = model[0]._compiled_call_impl
    assert trained(model, graph=True)[0]
    model(batch()[0])
    assert compiled == before
    assert model[0]._compiled_call_impl is called
    assert [list(vars(module)) for module in model.modules()] == names


@pytest.fixture
def two_processes() -> Iterator[None]:
    """Rank 0 of two; collectives do nothing."""
    fake = pytest.importorskip("torch.testing._internal.distributed.fake_pg")
    dist.init_process_group("fake", rank=0, world_size=2, store=fake.FakeStore())
    yield
    dist.destroy_process_group()


@pytest.mark.usefixtures("two_processes")
def test_no_graph_is_recorded_in_one_of_several_processes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        assert not both(OwnDict)
    assert [r.getMessage() for r in caplog.records if "Graphs" in r.getMessage()] == [
        "fmapboard: training runs in 2 processes: the Graphs tab is not written; training continues"
    ]


def test_a_model_that_is_too_large_is_not_copied(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    size = sum(t.nbytes for t in (*OwnDict().parameters(), *OwnDict().buffers()))
    assert MAX_COPIED_BYTES == 4 * 2**30
    monkeypatch.setattr("fmapboard.capture.graph.MAX_COPIED_BYTES", size)
    assert both(OwnDict)
    monkeypatch.setattr("fmapboard.capture.graph.MAX_COPIED_BYTES", size - 1)
    with caplog.at_level(logging.WARNING):
        assert not both(OwnDict)
    assert caplog.messages == [
        "fmapboard: the model has 0.0 GiB, too much for a copy: the Graphs tab is not "
        "written; training continues"
    ]


@pytest.fixture
def raising(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], nn.Module]:
    """Make a model whose copy calls a function."""

    def make(function: Callable[[], object]) -> nn.Module:
        monkeypatch.setattr(RaisesInCopies, "calls", 0)
        monkeypatch.setattr(RaisesInCopies, "raising", staticmethod(function), raising=False)
        return nn.Sequential(RaisesInCopies(3, 4, 3))

    return make


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_in_the_copy_stops_the_training(
    kind: type[BaseException], raising: Callable[..., nn.Module]
) -> None:
    with pytest.raises(kind):
        trained(raising(lambda: _raise(kind)), graph=True)


@pytest.mark.parametrize(
    "handler", [OnSignal(), OnSignal().__call__, lambda *_: _raise(ValueError)]
)
def test_any_exception_of_a_signal_handler_stops_the_training(
    raising: Callable[..., nn.Module], handler: Callable[..., None]
) -> None:
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with pytest.raises(ValueError):  # noqa: PT011
            trained(raising(lambda: signal.raise_signal(signal.SIGUSR1)), graph=True)
    finally:
        signal.signal(signal.SIGUSR1, before)
