"""One of two processes that train transformers together; started by test_transformer_ranks.

Arguments: rank, port, folder, kinds (``ddp NETWORK`` or ``fsdp NETWORK``, a network of
``default_layers``). Trains each kind unwatched, watched and, with DDP, with
``reduce_statistics``. In step 1 an exception comes on rank
1 alone, after the optimizer step, and is caught. Writes what is left of each training, as JSON.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sys
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from default_layers import NETWORKS
from distributed_training import Messages, full
from library_training import inputs, loss_of
from torch import nn

import fmapboard
from fmapboard.records import LoggedStep
from fmapboard.writers.folder import MemoryWriter

STEPS = 3


def wrapped(network: nn.Module, kind: str) -> nn.Module:
    if kind == "ddp":
        return nn.parallel.DistributedDataParallel(network, find_unused_parameters=True)
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (2,))
    for module in list(network.modules()):
        if isinstance(module, nn.ModuleList):
            for block in module:
                fully_shard(block, mesh=mesh)
    return fully_shard(network, mesh=mesh)


def means(step: LoggedStep) -> dict[str, list[float]]:
    """The mean of each channel, head or expert, by layer."""
    return {
        own.layer_call.label: own.statistics.mean.tolist()
        for own in step.statistics
        if own.kind == "feature_maps" and own.statistics is not None
    }


def train(kind: str, name: str, how: str) -> dict[str, Any]:
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = wrapped(NETWORKS[name]().train(), kind)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    kept, messages = MemoryWriter(), Messages()
    logging.getLogger("fmapboard").addHandler(messages)
    board = None
    if how != "bare":
        board = fmapboard.watch(model, writer=kept, every=1, reduce_statistics=how == "merged")
    torch.manual_seed(1 + rank)
    for number in range(STEPS):
        given = inputs(name)
        with suppress(ValueError), ExitStack() as step:
            if board is not None:
                step.enter_context(board.step(number))
            outputs = model(**given) if isinstance(given, Mapping) else model(*given)
            optimizer.zero_grad()
            loss_of(outputs).backward()
            optimizer.step()
            if rank == 1 and number == 1:
                raise ValueError("a metric that fails")
    if board is not None:
        board.close()
    logging.getLogger("fmapboard").removeHandler(messages)
    state = b"".join(full(p.detach()).numpy().tobytes() for p in model.parameters())
    return {
        "state": hashlib.sha256(state).hexdigest(),
        "random": hashlib.sha256(torch.get_rng_state().numpy().tobytes()).hexdigest(),
        "messages": messages.texts,
        "means": {str(step.step): means(step) for step in kept.steps},
    }


def main(rank: int, port: str, folder: Path, *kinds: str) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=2)
    found = {}
    for kind in kinds:
        wrapper, _, name = kind.partition(" ")
        for how in ("bare", "seen", "merged"):
            if how != "merged" or wrapper == "ddp":
                sys.stderr.write(f"{how} {kind}\n")  # the last one is what failed
                found[f"{how} {kind}"] = train(wrapper, name, how)
    (folder / f"{rank}.json").write_text(json.dumps(found))
    dist.barrier()
    sys.stderr.flush()
    os._exit(0)  # see distributed_training.py


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), *sys.argv[4:])
