"""Interrupts (Ctrl-C, an exception of a signal handler) at any point of our code reach the user."""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import random
import signal
import traceback
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import interruptions
import pytest
import torch
import torch.optim.optimizer as torch_optimizer
from attending_networks import NETWORKS
from interruptions import OURS, Interruption, TimesUp, ctrl_c, handling, on_alarm
from torch import Tensor, nn
from torch._dynamo import eval_frame
from torch.utils._python_dispatch import TorchDispatchMode

import fmapboard
from fmapboard.gradients import optimizer_hook
from fmapboard.writers.folder import MemoryWriter
from fmapboard.writers.pipeline import Pipeline, Receive

PROBE = torch.linspace(-1, 1, 2 * 3 * 8 * 8).reshape(2, 3, 8, 8)


class Transparent(TorchDispatchMode):
    """A dispatch mode that changes nothing."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def attending() -> nn.Module:
    """A network whose attention is read, of the probe too."""
    return nn.Sequential(nn.ZeroPad2d((0, 4, 0, 4)), NETWORKS["scaled_dot_product_attention"]())


def network() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 4, 3))


def state(model: nn.Module) -> dict[str, object]:
    """What we change during a logged step, as a user's ``except`` finds it."""
    modules = list(model.modules())
    return {
        "hooks": [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in modules],
        "watched calls": [m for m in modules if vars(m).get("_compiled_call_impl") is not None],
        "modes of modules": [m.training for m in modules],
        "stance": str(eval_frame._stance.stance),
        "step hooks": type(torch_optimizer._global_optimizer_pre_hooks).__name__,  # type: ignore[attr-defined]
        "locks": optimizer_hook._lock._is_owned(),
        "grad": torch.is_grad_enabled(),
        "threads": torch.get_num_threads(),
        "function modes": torch._C._len_torch_function_stack(),
        "dispatch modes": torch._C._len_torch_dispatch_stack(),
        "torch functions": torch._C._is_torch_function_enabled(),
        "autocast": (torch.is_autocast_enabled("cpu"), torch.is_autocast_cache_enabled()),
    }


def train(
    model: nn.Module, interruption: contextlib.AbstractContextManager[object], **options: Any
) -> None:
    """Three watched steps, the second of which is interrupted."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    watching = fmapboard.watch(model, writer=MemoryWriter(), optimizer=optimizer, **options)
    with watching:
        for interrupted in (contextlib.nullcontext(), interruption, contextlib.nullcontext()):
            with interrupted:
                optimizer.zero_grad()
                model(PROBE).float().square().mean().backward()
                optimizer.step()


@pytest.fixture
def steps_are_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker thread, which is not interrupted, only receives what a step has measured."""

    def receive(self: Pipeline, queued: tuple[Receive, float]) -> Iterator[None]:
        queued[0]()
        yield

    monkeypatch.setattr(Pipeline, "_work", receive)


@pytest.fixture(autouse=True)
def _nothing_of_earlier_tests_is_collected_here() -> None:
    """An interrupt in a finalizer is lost, so what earlier tests have left is deleted first."""
    gc.collect()


def check(
    number: int,
    handler: Callable[[int, FrameType | None], None],
    make: Callable[[], nn.Module] = network,
    **options: Any,
) -> str:
    """Interrupt a training at a point of our code and check that the user sees that, and no more.

    Returns:
        The point; empty if the training ended before it.
    """
    model, interruption = make(), Interruption(number, handler)
    before = state(model)
    seen: BaseException | None = None
    with handling(handler):
        try:
            train(model, interruption, **options)
        except (TimesUp, KeyboardInterrupt) as error:
            seen = error
            assert state(model) == before, interruption.at
    assert (seen is not None) == bool(interruption.at), f"swallowed: {interruption.at}"
    return interruption.at


CASES: dict[str, dict[str, Any]] = {
    "": {"every": 1},
    "every 2": {"every": 2},
    "a probe": {"every": 1, "probe": PROBE},
    "attention": {"every": 1, "make": attending, "layers": "*attn", "probe": PROBE},
    "everything": {"every": 1, "inputs": True, "attribution": True, "activation_gradients": True},
}


def swept(case: str, *handlers: Callable[[int, FrameType | None], None], stride: int) -> int:
    """The number of points at which a training was interrupted, by the handlers in turn."""
    for done, number in enumerate(itertools.count(step=stride)):
        if not check(number, handlers[done % len(handlers)], **CASES[case]):
            return done
    raise AssertionError


@pytest.mark.usefixtures("steps_are_not_drawn")
@pytest.mark.parametrize(
    ("case", "stride"), [("every 2", 13), ("a probe", 601), ("everything", 601)]
)
def test_an_interrupt_at_any_point_reaches_the_user_and_leaves_nothing(
    case: str, stride: int
) -> None:
    assert swept(case, ctrl_c, on_alarm, stride=stride) > (0 if case == "every 2" else 10)


@pytest.mark.usefixtures("steps_are_not_drawn")
@pytest.mark.parametrize("file", ["attention.py", "passes.py"])
def test_an_interrupt_where_attention_is_seen_leaves_no_function_mode(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interruptions, "OURS", f"{OURS}/capture/{file}")
    assert swept("attention", ctrl_c, on_alarm, stride=199) > 5


@pytest.mark.sweep
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("handler", [ctrl_c, on_alarm])
def test_an_interrupt_at_every_point_reaches_the_user_and_leaves_nothing(
    case: str, handler: Callable[[int, FrameType | None], None]
) -> None:
    swept(case, handler, stride=1)


@pytest.mark.usefixtures("steps_are_not_drawn")
def test_an_interrupt_leaves_the_users_dispatch_modes_and_autocast() -> None:
    for number in itertools.count(3, step=601):
        with Transparent(), torch.autocast("cpu", torch.bfloat16):
            if not check(number, on_alarm, every=1):
                break


@pytest.mark.usefixtures("errors_are_only_logged")
def test_our_errors_are_not_taken_for_the_interrupt_that_the_user_handles() -> None:

    def loss(output: Tensor) -> Tensor:
        raise ValueError("ours")

    model = network()
    with handling(on_alarm):
        try:
            signal.raise_signal(signal.SIGALRM)
        except TimesUp:
            train(
                model,
                contextlib.nullcontext(),
                every=1,
                probe=PROBE,
                attribution=True,
                attribution_loss=loss,
            )


class CallsInEvalMode(nn.Module):
    """Calls a function in eval mode, in which only the probe runs."""

    def __init__(self, function: Callable[[], object]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.drop = nn.Conv2d(3, 4, 3), nn.Dropout(0.5)
        self.function, self.is_armed = function, False

    def forward(self, x: Tensor) -> Tensor:
        maps: Tensor = self.drop(self.conv(x))
        if self.is_armed and not self.training:
            self.function()
        return maps


def exits() -> None:
    raise SystemExit(3)


def fails() -> None:
    raise ValueError("only here")


def trained(
    function: Callable[[], object], *, watched: bool = True, **options: Any
) -> list[Tensor]:
    """What two steps leave of a model, and of the random state."""
    model = CallsInEvalMode(function)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    watching: contextlib.AbstractContextManager[object] = contextlib.nullcontext()
    if watched:
        watching = fmapboard.watch(
            model, writer=MemoryWriter(), optimizer=optimizer, every=1, probe=PROBE
        )
    model.is_armed = True
    with watching:
        for _ in range(2):
            optimizer.zero_grad()
            model(PROBE).square().mean().backward()
            optimizer.step()
    return [*(p.detach().clone() for p in model.parameters()), torch.get_rng_state()]


@pytest.mark.usefixtures("errors_are_only_logged")
def test_an_error_in_the_probes_pass_is_reported_and_training_is_the_same(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert all(map(torch.equal, trained(fails, watched=False), trained(fails)))
    assert caplog.messages == [
        "fmapboard: probe: ValueError: only here; it is not logged; training continues"
    ]


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, TimesUp])
def test_an_interrupt_in_the_probes_pass_stops_the_training(kind: type[BaseException]) -> None:
    function: dict[type[BaseException], Callable[[], object]] = {
        SystemExit: exits,
        KeyboardInterrupt: functools.partial(ctrl_c, signal.SIGINT, None),
        TimesUp: functools.partial(signal.raise_signal, signal.SIGALRM),
    }
    with handling(on_alarm), pytest.raises(kind):
        trained(function[kind])


@pytest.mark.parametrize("kind", [SystemExit, TimesUp])
def test_an_interrupt_while_the_probe_is_checked_is_raised(kind: type[BaseException]) -> None:
    function = functools.partial(signal.raise_signal, signal.SIGALRM)
    model = CallsInEvalMode(exits if kind is SystemExit else function)
    model.is_armed = True
    with handling(on_alarm), pytest.raises(kind):
        fmapboard.watch(model, writer=MemoryWriter(), probe=PROBE)


def time_out(number: int, frame: FrameType | None) -> None:
    """A user's signal handler, whose exception looks like that of a system call."""
    raise TimeoutError(number)


def raises_the_signal(*args: Any, **kwargs: Any) -> None:
    signal.raise_signal(signal.SIGALRM)


GFILE = "tensorboard.compat.tensorflow_stub.io.gfile"


@pytest.mark.parametrize(
    ("place", "directory"),
    [
        ("pathlib.Path.mkdir", "run"),
        ("pathlib.Path.open", "run"),
        ("os.writev", "run"),
        ("torch.utils.tensorboard.writer.EventFileWriter", "run"),
        (f"{GFILE}.makedirs", "memory://interrupted"),
        (f"{GFILE}.isdir", "memory://interrupted"),
        (f"{GFILE}.GFile.write", "memory://interrupted"),
    ],
)
def test_an_interrupt_while_the_log_directory_is_opened_is_raised(
    place: str, directory: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch.utils.tensorboard.writer")
    where = directory if ":" in directory else str(tmp_path / directory)
    monkeypatch.setattr(place, raises_the_signal)
    with handling(time_out), pytest.raises(TimeoutError) as raised:
        fmapboard.watch(network(), where)
    assert raised.value.args == (signal.SIGALRM,)


def callbacks(one: object) -> list[object]:
    """What Python would call when an object is deleted."""
    return [reference.__callback__ for reference in weakref.getweakrefs(one)]


def test_nothing_of_ours_is_called_when_the_users_objects_are_deleted() -> None:
    """An exception of a signal handler in such a call is lost, whoever's step it happens in."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    objects = [*model.modules(), *model.parameters(), optimizer]
    before = [len(list(filter(None, callbacks(one)))) for one in objects]
    with fmapboard.watch(model, writer=MemoryWriter(), optimizer=optimizer, every=1) as board:
        for _ in range(3):
            optimizer.zero_grad()
            model(PROBE).square().mean().backward()
            optimizer.step()
        board.flush()
        assert [len(list(filter(None, callbacks(one)))) for one in objects] == before


def test_nothing_of_ours_is_called_when_the_block_of_a_step_is_deleted() -> None:
    with fmapboard.watch(network(), writer=MemoryWriter(), every=1) as board:
        block = board.step(0)
        with block:
            pass
        assert not hasattr(block, "__del__")


def interrupted_by_timer(every: int, seconds: float) -> bool:
    """Interrupt a training after some time; True if the interrupt reached the user."""
    model = network()
    before = state(model)
    with handling(on_alarm):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        try:
            with fmapboard.watch(model, writer=MemoryWriter(), optimizer=optimizer, every=every):
                signal.setitimer(signal.ITIMER_REAL, seconds)
                for _ in range(100_000):
                    optimizer.zero_grad()
                    model(PROBE).square().mean().backward()
                    optimizer.step()
        except TimesUp as error:
            found = state(model)
            frames = traceback.extract_tb(error.__traceback__)
            if not any(frame.filename.startswith(OURS) for frame in frames):
                # torch's own functions, too, can be interrupted between two changes of it
                found["grad"] = before["grad"]
                torch.set_grad_enabled(True)
            assert found == before
            return True
    return False


@pytest.mark.sweep
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("every", [1, 10])
def test_a_thousand_real_interrupts_reach_the_user_and_leave_nothing(every: int) -> None:
    generator = random.Random(0)
    for _ in range(1000):
        assert interrupted_by_timer(every, 1e-3 + 0.03 * generator.random())
