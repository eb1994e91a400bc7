"""One of two processes in which fmapboard fails on rank 1 alone; started by test_distributed.

Arguments: rank, port, folder, kinds (ddp, fsdp). For each fault, the network is trained as without
fmapboard. Writes for each kind, by fault, as JSON: a hash of the final parameters, the messages and
the tags of the steps that were written.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import torch.distributed as dist
from controlled_writers import FullDiskWriter
from distributed_training import SharedReluNet, full, wrapped
from torch.nn import functional

import fmapboard
from fmapboard.capture import kernels as weights
from fmapboard.capture import probe, side_pass
from fmapboard.capture.hooks import HookRegistry
from fmapboard.capture.transfer import Transfer
from fmapboard.gradients import reader as gradients
from fmapboard.measure import merge_ranks, norms
from fmapboard.measure.reducer import Reducer
from fmapboard.model import distributed
from fmapboard.model.distributed import ShardedNames
from fmapboard.model.layers import WatchedLayers
from fmapboard.records import LoggedStep
from fmapboard.session import step as sending
from fmapboard.session.selection import PassSelection
from fmapboard.session.session import StepSession
from fmapboard.writers.folder import MemoryWriter

STEPS = 3
FAULTS: dict[str, list[tuple[Any, str]]] = {
    "none": [],
    "a hook": [(Reducer, "__call__")],
    "replaced layers": [(WatchedLayers, "follow_replacements")],
    "hooks": [(HookRegistry, "arm")],
    "parameters": [(gradients, "clean_name")],
    "optimizer hook": [(gradients, "is_skipped")],
    "chosen pass": [(PassSelection, "choose")],
    "norms": [(norms, "norms")],
    "one gradient": [(norms, "dense")],
    "sent norms": [(ShardedNames, "_sent")],
    "samples": [(gradients, "sample_parameters")],
    "one layer's kernels": [(weights, "_kernels")],
    "kernels": [(weights, "LayerCall")],
    "before the probe": [(probe, "ActivationCollector")],
    "beside the probe": [(side_pass, "own_pass")],
    "result": [(StepSession, "_assembled")],
    "transfer": [(Transfer, "__call__")],
    "finalized": [(sending, "joined")],
    "shared statistics": [(merge_ranks, "_shared")],
}
"""What raises an error on rank 1."""
ONLY = {
    "sent norms": "fsdp",
    **dict.fromkeys(("before the probe", "beside the probe"), "ddp"),
    **dict.fromkeys(("finalized", "shared statistics"), "ddp"),
}
"""Faults of one kind of training only: it alone has what fails."""
OFTEN = {"none", "a hook", "transfer"}
"""Faults that CI plants in one step and in every step, marked and counted; the others in one step,
which is marked with DDP and counted with FSDP. The sweep (``ALL_WAYS``) plants each in all ways."""


def failing(broken: Any, name: str, fails: Callable[[], bool]) -> Any:
    """A patch of ``broken.name`` that raises whenever ``fails()``."""
    original = getattr(broken, name)

    def raises(*args: Any, **kwargs: Any) -> Any:
        if fails():
            raise RuntimeError("made to fail")
        return original(*args, **kwargs)

    return mock.patch.object(broken, name, raises)


class Messages(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


@dataclass
class Case:
    """One training run with a fault on rank 1.

    Attributes:
        broken: what raises an error there.
        when: the steps in which it does.
        marked: steps are marked by hand, not counted.
        full_disk: rank 0 cannot write step 1.
        closes: rank 1 closes its logger after step 0.
        numbers: rank 1 marks its steps from 10 on.
        raises: rank 1 raises an error at the end of the blocks of these steps, and catches it.
        timeout: how long a rank waits for another one, in s.
    """

    broken: list[tuple[Any, str]]
    when: set[int] = field(default_factory=lambda: {1})
    marked: bool = True
    full_disk: bool = False
    closes: bool = False
    numbers: bool = False
    raises: set[int] = field(default_factory=set)
    timeout: float = 60.0


def train(kind: str, case: Case | None, writer: MemoryWriter, now: list[int]) -> str:
    """Train on this rank's batches, watched if there is a case; a hash of the parameters."""
    torch.manual_seed(0)
    model = wrapped(SharedReluNet(), kind)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    board = None
    if case is not None:
        board = fmapboard.watch(
            model,
            writer=writer,
            optimizer=None if case.marked else optimizer,
            every=1,
            kernels=1,
            activation_gradients=True,
            probe=torch.zeros(1, 3, 8, 8),
            reduce_statistics=kind == "ddp",
            checks=False,  # none of them is made to fail
        )
    rank = dist.get_rank()
    torch.manual_seed(rank)
    batches = [torch.randn(2, 3, 8, 8) for _ in range(STEPS)]
    for now[0], x in enumerate(batches):
        with suppress(ValueError), ExitStack() as step:
            if board is not None and case.marked:
                step.enter_context(board.step(now[0] + 10 * rank * case.numbers))
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(x), torch.tensor([0, 1]))
            loss.backward()
            if board is not None:
                board.before_clipping()
            optimizer.step()
            if case is not None and rank == 1 and now[0] in case.raises:
                raise ValueError("a metric that fails")
        if board is not None:
            board.flush()  # the worker thread fails in this step, too
            if case.closes and rank == 1:
                board.close()
    if board is not None:
        board.close()
    state = b"".join(full(p.detach()).numpy().tobytes() for p in model.parameters())
    return hashlib.sha256(state).hexdigest()


def watched(kind: str, case: Case) -> dict[str, Any]:
    """Train while fmapboard fails on rank 1; hash, messages and tags of the written steps."""
    messages, now = Messages(), [-1]
    writer = FullDiskWriter(1) if case.full_disk else MemoryWriter()

    def fails() -> bool:
        return dist.get_rank() == 1 and now[0] in case.when

    fmapboard_log = logging.getLogger("fmapboard")
    fmapboard_log.addHandler(messages)
    with ExitStack() as patches:
        limit = timedelta(seconds=case.timeout)
        patches.enter_context(mock.patch.object(distributed, "TIMEOUT", limit))
        for place, name in case.broken:
            patches.enter_context(failing(place, name, fails))
        state = train(kind, case, writer, now)
    fmapboard_log.removeHandler(messages)
    tags = {
        str(step.step): sorted(
            {*step.scalars, *(part.tag for part in (*step.pictures, *step.histograms))}
        )
        for step in writer.steps
    }
    means = {str(step.step): mean_of_stem(step) for step in writer.steps}
    return {"state": state, "messages": messages.texts, "tags": tags, "means": means}


def mean_of_stem(step: LoggedStep) -> list[float]:
    """The mean of each channel of the first convolution."""
    for measured in step.statistics:
        if (measured.layer_call.layer, measured.kind) == ("stem", "feature_maps"):
            assert measured.statistics is not None
            return measured.statistics.mean.tolist()
    return []


def cases(kind: str) -> dict[str, Case]:
    """The runs with each fault, and those with faults in what the ranks exchange."""
    found = {
        f"{name}, {'marked' if marked else 'counted'}, steps {sorted(when)}": Case(
            broken, when, marked
        )
        for name, broken in FAULTS.items()
        if ONLY.get(name, kind) == kind
        for marked in (False, True)
        for when in ({1}, set(range(STEPS)))
        if os.environ["ALL_WAYS"] or name in OFTEN or (marked, when) == (kind == "ddp", {1})
    }
    if kind == "ddp":
        found["full disk"] = Case([], full_disk=True)
        found["early close"] = Case([], closes=True, timeout=2.0)
        found["other numbers"] = Case([], numbers=True)
        found["caught error"] = Case([], raises={0})
        found["caught error in the last step"] = Case([], raises={2})
        found["exchange"] = Case([(dist, "all_gather_object")], timeout=2.0)
    return found


def main(rank: int, port: str, folder: Path, *kinds: str) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    torch.set_num_threads(1)
    limit = timedelta(seconds=30)  # a rank that is left waiting fails
    dist.init_process_group("gloo", rank=rank, world_size=2, timeout=limit)
    for kind in kinds:
        found: dict[str, Any] = {"bare": train(kind, None, MemoryWriter(), [0])}
        for label, case in cases(kind).items():
            try:
                found[label] = watched(kind, case)
            except BaseException as error:
                sys.stderr.write(f"rank {rank}: {kind}: {label}: {error}\n")
                raise
        (folder / f"{kind}{rank}.json").write_text(json.dumps(found))
    dist.barrier()
    sys.stderr.flush()
    os._exit(0)  # see distributed_training.py


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), *sys.argv[4:])
