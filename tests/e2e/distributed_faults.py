"""One of two processes in which fmapboard fails on rank 1 alone; started by test_distributed.

Arguments: kind (ddp, fsdp), rank, port, folder. For each fault, the network is trained as without
fmapboard. Writes by fault, as JSON: a hash of the final parameters, the messages and the tags of
the steps that were written.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import torch.distributed as dist
from distributed_training import SharedReluNet, full, wrapped
from torch.nn import functional

import fmapboard
from fmapboard.capture import gradients, probe, side_pass, weights
from fmapboard.capture.hooks import HookRegistry
from fmapboard.capture.pass_selection import PassSelection
from fmapboard.measure import norms
from fmapboard.measure.reducer import Reducer
from fmapboard.model.distributed import ShardedNames
from fmapboard.session import StepSession
from fmapboard.writers.memory import MemoryWriter

STEPS = 3
FAULTS: dict[str, list[tuple[Any, str]]] = {
    "none": [],
    "a hook": [(Reducer, "__call__")],
    "replaced layers": [(HookRegistry, "follow_replacements")],
    "hooks": [(HookRegistry, "arm")],
    "parameters": [(gradients, "clean_name")],
    "optimizer hook": [(gradients, "is_skipped")],
    "chosen pass": [(PassSelection, "choose")],
    "norms": [(norms, "norms")],
    "one gradient": [(norms, "dense")],
    "sent norms": [(ShardedNames, "_sent")],
    "samples": [(gradients, "sample")],
    "one layer's kernels": [(weights, "_two_dimensional")],
    "kernels": [(weights, "untouched")],
    "before the probe": [(probe, "ActivationCollector")],
    "beside the probe": [(side_pass, "untouched")],
    "result": [(StepSession, "_assembled")],
}
"""What raises an error on rank 1."""


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


def train(kind: str, watch: Callable[[Any, Any], Any] | None, marked: bool, fault: Any) -> str:
    """Train on this rank's batches; a hash of the parameters. ``fault(board, step)`` is entered."""
    torch.manual_seed(0)
    model = wrapped(SharedReluNet(), kind)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    board = None if watch is None else watch(model, None if marked else optimizer)
    torch.manual_seed(dist.get_rank())
    batches = [torch.randn(2, 3, 8, 8) for _ in range(STEPS)]
    for number, x in enumerate(batches):
        with ExitStack() as around:
            around.enter_context(fault(number))
            if board is not None and marked:
                around.enter_context(board.step(number))
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(x), torch.tensor([0, 1]))
            loss.backward()
            if board is not None:
                board.before_clipping()
            optimizer.step()
    if board is not None:
        board.close()
    state = b"".join(full(p.detach()).numpy().tobytes() for p in model.parameters())
    return hashlib.sha256(state).hexdigest()


def watched(kind: str, broken: list[tuple[Any, str]], marked: bool, when: set[int]) -> Any:
    """Train while fmapboard fails on rank 1; hash, messages and tags of the written steps."""
    writer, messages, now = MemoryWriter(), Messages(), [-1]

    def watch(model: Any, optimizer: Any) -> Any:
        return fmapboard.watch(
            model,
            writer=writer,
            optimizer=optimizer,
            every=1,
            kernels=1,
            activation_gradients=True,
            probe=torch.zeros(1, 3, 8, 8),
        )

    def fault(number: int) -> ExitStack:
        now[0] = number
        return ExitStack()

    def fails() -> bool:
        return dist.get_rank() == 1 and now[0] in when

    fmapboard_log = logging.getLogger("fmapboard")
    fmapboard_log.addHandler(messages)
    with ExitStack() as patches:
        for place, name in broken:
            patches.enter_context(failing(place, name, fails))
        state = train(kind, watch, marked, fault)
    fmapboard_log.removeHandler(messages)
    tags = {
        str(step.step): sorted(
            {*step.scalars, *(part.tag for part in (*step.pictures, *step.histograms))}
        )
        for step in writer.steps
    }
    return {"state": state, "messages": messages.texts, "tags": tags}


def main(kind: str, rank: int, port: str, folder: Path) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    torch.set_num_threads(1)
    limit = timedelta(seconds=30)  # a rank that is left waiting fails
    dist.init_process_group("gloo", rank=rank, world_size=2, timeout=limit)
    found: dict[str, Any] = {"bare": train(kind, None, False, lambda number: ExitStack())}
    for name, broken in FAULTS.items():
        for marked in (False, True):
            for when in ({1}, set(range(STEPS))):
                label = f"{name}, {'marked' if marked else 'counted'}, steps {sorted(when)}"
                try:
                    found[label] = watched(kind, broken, marked, when)
                except BaseException as error:
                    sys.stderr.write(f"rank {rank}: {label}: {error}\n")
                    raise
    (folder / f"faults{rank}.json").write_text(json.dumps(found))
    dist.barrier()
    sys.stderr.flush()
    os._exit(0)  # see distributed_training.py


if __name__ == "__main__":
    kind, rank, port, folder = sys.argv[1:]
    main(kind, int(rank), port, Path(folder))
