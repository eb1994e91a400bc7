"""Cost: what a logged step adds to a bare one, compared with budgets and with other loggers.

Each logged step is measured next to a bare one; times are medians of the differences. *Busy* is the
sum of the durations of everything that the device ran. The traffic is estimated from it as if every
kernel ran at the bandwidth of a plain copy, so it is an upper bound.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from gpu.compare import watched
from gpu.device import Settings
from gpu.meter import Activity, peaks, profiled, timed
from gpu.networks import Work, works
from gpu.report import Check, Report, Skip
from gpu.tools import HAS_WANDB, Fmapboard, Recipe
from gpu.trainings import Training

MB = 1e6
MAX_PER_TENSOR = 8
MAX_TOTAL = 800
"""Launches per logged step of ResNet-50."""
MAX_TRAFFIC = 3.5
"""Times the bytes of the watched tensors."""
MAX_MEMORY_MB = 100
TIMES = {"wall (ms)": "wall", "host (ms)": "host", "GPU (ms)": "gpu"}
"""Figure -> attribute of ``Times``."""


@dataclass(frozen=True)
class Bare:
    """A training, and what its bare step takes.

    Attributes:
        train: The training, warmed up.
        peaks: Peak memory allocated and reserved, bytes.
        activity: What the profiler saw.
        tensors: How many tensors fmapboard watches.
        nbytes: How many bytes they have.
    """

    train: Training
    peaks: tuple[int, int]
    activity: Activity
    tensors: int
    nbytes: int


def run(report: Report, settings: Settings) -> None:
    for work in works(tiny=settings.tiny, only=settings.works):
        for mode in settings.modes or work.modes:
            in_mode(report, settings, work, mode)


def in_mode(report: Report, settings: Settings, work: Work, mode: str) -> None:
    about, found = f"{work.name}, {mode}", list[Bare]()
    report.run(
        "cost", f"{about}: bare", lambda check: found.append(bare(settings, work, mode, check))
    )
    if not found:
        return
    (known,) = found
    compiled = known.train.mode.compiled is not None
    added: list[Added] = []
    body = partial(fmapboard_adds, settings, known, added)
    report.run("cost", f"{about}: fmapboard", body)
    if added and not compiled:  # its logged step has a second, uncompiled pass
        for name, holds in budgets(work, known, added[0], settings):
            report.run("budgets", f"{about}: {name}", holds)
    if mode == "eager":
        report.run("cost", f"{about}: the classic recipe", partial(recipe_adds, settings, known))
        report.run("cost", f"{about}: wandb.watch", partial(wandb_adds, settings, known))


def bare(settings: Settings, work: Work, mode: str, check: Check) -> Bare:
    device = settings.device
    try:
        train = Training(work, mode, device)
        for _ in range(2 if settings.tiny else 8):
            train()
    except torch.OutOfMemoryError as error:
        raise Skip("the training alone needs more memory than there is") from error
    times = [timed(device, train) for _ in range(settings.rounds)]
    known = Bare(train, peaks(device, train), profiled(device, train), *_watched(train))
    check.figures |= {
        name: round(statistics.median(getattr(one, field) for one in times), 2)
        for name, field in TIMES.items()
    }
    check.figures |= {
        "launches": known.activity.launches,
        "busy (ms)": round(known.activity.busy, 2),
        "allocated (MB)": round(known.peaks[0] / MB),
        "reserved (MB)": round(known.peaks[1] / MB),
        "watched tensors": known.tensors,
        "watched (GB)": round(known.nbytes / 1e9, 3),
    }
    return known


def _watched(train: Training) -> tuple[int, int]:
    """How many tensors fmapboard watches in one forward pass, and their bytes."""
    sizes: list[int] = []

    def note(module: nn.Module, args: object, output: Tensor) -> None:
        sizes.append(output.nbytes)

    handles = [layer.register_forward_hook(note) for layer in watched(train.raw).values()]
    with train.eager():
        train()
    for handle in handles:
        handle.remove()
    for _ in range(2):  # if the hooks made a compiled model compile again, it does so now
        train()
    return len(sizes), sum(sizes)


@dataclass(frozen=True)
class Added:
    """What a logged step adds to a bare one: kernels, busy time in ms, peak memory in bytes."""

    launches: int
    busy: float
    memory: int


def measure(
    settings: Settings, known: Bare, tool: Any, check: Check, *, slow: bool = False
) -> Added:
    """Measure a tool, interleaved with bare steps.

    Args:
        settings: See ``Settings``.
        known: The bare step.
        tool: The tool, as ``peer_tools.Tool``.
        check: Where the figures go.
        slow: A logged step takes seconds and launches a hundred thousand kernels: measure two
            rounds, without the profiler.
    """
    device, train, numbers = settings.device, known.train, count()

    def logged() -> None:
        tool.logged(next(numbers))

    compiled = frames_compiled()
    pairs, until, blocked = [], [], []
    own_peaks = peaks(device, lambda: [logged() for _ in range(1 if slow else 3)])
    tool.flush()
    for _ in range(min(2, settings.rounds) if slow else settings.rounds):
        before = timed(device, train)
        one = timed(device, logged)
        waited = timed(device, tool.flush)
        pairs.append((before, one))
        until.append(one.wall + waited.wall - before.wall)
        blocked.append(getattr(tool, "blocked", one.host - before.host))
    activity = known.activity if slow else profiled(device, logged)
    tool.flush()
    for _ in range(2):  # a compiled model would be compiled again now
        train()
    middle = statistics.median
    for name, field in TIMES.items():
        adds = middle(getattr(b, field) - getattr(a, field) for a, b in pairs)
        check.figures[name] = f"{adds:+.2f}"
    ratio = middle(b.wall / a.wall for a, b in pairs)
    added = Added(
        activity.launches - known.activity.launches,
        activity.busy - known.activity.busy,
        own_peaks[0] - known.peaks[0],
    )
    check.figures |= {
        "wall (×)": round(ratio, 2),
        "blocks for (ms)": round(middle(blocked), 2),
        "until written (ms)": f"{middle(until):+.1f}",
        "allocated (MB)": f"{added.memory / MB:+.0f}",
        "reserved (MB)": f"{(own_peaks[1] - known.peaks[1]) / MB:+.0f}",
    }
    if not slow:
        check.figures |= {
            "launches": f"{added.launches:+}",
            "per tensor": round(added.launches / known.tensors, 1),
            "busy (ms)": f"{added.busy:+.2f}",
            "to host": f"{activity.to_host - known.activity.to_host:+}",
            "blocking calls": f"{activity.blocking - known.activity.blocking:+}",
        }
    if train.mode.compiled is not None:
        again = frames_compiled() - compiled
        check.expect(again == 0, f"{again} frames were compiled again")
    return added


def frames_compiled() -> int:
    from torch._dynamo.utils import counters

    return int(counters["frames"]["total"])


@contextmanager
def closing(make: Callable[[Path], Any]) -> Iterator[Any]:
    with tempfile.TemporaryDirectory() as folder:
        tool = make(Path(folder))
        try:
            yield tool
        finally:
            tool.close()


def fmapboard_adds(settings: Settings, known: Bare, found: list[Added], check: Check) -> None:
    with closing(lambda folder: Fmapboard(known.train, folder)) as tool:
        found.append(measure(settings, known, tool, check))
    check.expect_silence()


def recipe_adds(settings: Settings, known: Bare, check: Check) -> None:
    with closing(lambda folder: Recipe(known.train, folder)) as tool:
        measure(settings, known, tool, check, slow=True)


def wandb_adds(settings: Settings, known: Bare, check: Check) -> None:
    if not HAS_WANDB:
        raise Skip("wandb is not installed")
    from peer_tools import Wandb

    with closing(lambda folder: Wandb(known.train, folder)) as tool:  # type: ignore[arg-type]
        measure(settings, known, tool, check, slow=True)


def budgets(
    work: Work, known: Bare, added: Added, settings: Settings
) -> Iterator[tuple[str, Callable[[Check], None]]]:
    """Each budget's text and its check."""
    device = settings.device

    def within(value: Callable[[], float], most: float, check: Check) -> None:
        device.require_cuda()
        if known.activity.launches == 0:
            raise Skip("the profiler saw no kernel")
        check.figures |= {"found": round(value(), 2), "budget": most}
        check.expect(value() <= most, "over budget")

    def traffic() -> float:
        return added.busy / 1e3 * device.bandwidth / known.nbytes

    def per_tensor() -> float:
        return added.launches / known.tensors

    yield "launches per watched tensor", partial(within, per_tensor, MAX_PER_TENSOR)
    if work.name.startswith("ResNet-50"):
        yield "launches", partial(within, lambda: added.launches, MAX_TOTAL)
    yield "estimated traffic (× watched)", partial(within, traffic, MAX_TRAFFIC)
    yield "peak memory (MB)", partial(within, lambda: added.memory / MB, MAX_MEMORY_MB)
