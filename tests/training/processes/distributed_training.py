"""One of two processes that train networks together; started by test_distributed.

Arguments: rank, port, folder, kinds (ddp; fsdp; flat or original, the parameters of FSDP1;
compiled(KIND) and ddp(compiled); parts, which are called one by one). Trains each kind unwatched,
then each kind watched, into a folder per kind. Writes the activations, gradient norms, final
parameters and messages of its rank there, as JSON.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional

import fmapboard


class SharedReluNet(nn.Module):
    """Two convolutions, one in-place ReLU called after each, and a linear head."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3)
        self.relu = nn.ReLU(inplace=True)
        self.deep = nn.Conv2d(8, 9, 3)
        self.head = nn.Linear(9, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.relu(self.deep(self.relu(self.stem(x)))).mean((2, 3)))


class Parts(nn.Module):
    """The same network, of which nothing but its parts is called."""

    def __init__(self, network: SharedReluNet) -> None:
        super().__init__()
        layers = (network.stem, network.relu, network.deep, network.relu)
        self.body = nn.parallel.DistributedDataParallel(nn.Sequential(*layers))
        self.head = nn.parallel.DistributedDataParallel(network.head)


def wrapped(model: nn.Module, kind: str) -> nn.Module:
    if kind == "parts":
        return Parts(model)
    if kind.startswith("compiled("):
        # No pass of ours runs beside a compiled one with sharded parameters, whatever compiled it.
        backend = "aot_eager" if "ddp" in kind else "eager"
        return torch.compile(wrapped(model, kind[9:-1]), backend=backend)
    if kind == "ddp(compiled)":
        model, kind = torch.compile(model, backend="aot_eager"), "ddp"
    if kind == "ddp":
        return nn.parallel.DistributedDataParallel(model)
    if kind != "fsdp":
        from torch.distributed.fsdp import FullyShardedDataParallel as Fsdp1

        options = {"device_id": torch.device("cpu"), "use_orig_params": kind == "original"}
        model.deep = Fsdp1(model.deep, **options)
        return Fsdp1(model, **options)
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (2,))
    fully_shard(model.deep, mesh=mesh)
    return fully_shard(model, mesh=mesh)


class Messages(logging.Handler):
    """Keeps what fmapboard says."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


def full(tensor: Tensor) -> Tensor:
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def train(kind: str, rank: int, folder: Path, watched: bool) -> dict[str, Any]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = wrapped(SharedReluNet(), kind)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    board, messages, is_compiled = None, Messages(), "compiled" in kind
    is_whole = kind != "parts"
    logging.getLogger("fmapboard").addHandler(messages)
    if watched:
        board = fmapboard.watch(
            model,
            folder / f"run{rank}",
            optimizer=optimizer,
            every=2,
            kernels=1,
            activation_gradients=not is_compiled,
            attribution=not is_compiled and is_whole,
            probe=None if is_compiled or not is_whole else torch.zeros(1, 3, 8, 8),
            reduce_statistics="ddp" in kind or not is_whole,
        )
    torch.manual_seed(rank)
    norms, stems = [], []
    for _ in range(5):
        optimizer.zero_grad()
        x = torch.randn(2, 3, 8, 8)
        if kind == "ddp":
            stems.append(model.module.stem(x).detach().double().transpose(0, 1).flatten(1))
        output = model(x) if is_whole else model.head(model.body(x).mean((2, 3)))
        loss = functional.cross_entropy(output, torch.tensor([0, 1]))
        loss.backward()
        own = [p.grad for p in model.parameters() if p.grad is not None]  # FSDP1: not every rank's
        gradients = [full(gradient).double() for gradient in own]
        norms.append(torch.stack([g.norm() for g in gradients]).norm().item())
        optimizer.step()
    if board is not None:
        board.close()
    logging.getLogger("fmapboard").removeHandler(messages)
    state = b"".join(full(p.detach()).numpy().tobytes() for p in model.parameters())
    return {
        "stem": [stem.tolist() for stem in stems],
        "norms": norms,
        "state": hashlib.sha256(state).hexdigest(),
        "messages": messages.texts,
    }


def main(rank: int, port: str, folder: Path, *kinds: str) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=2)
    for name, watched in (("bare", False), ("seen", True)):
        for kind in kinds:
            sys.stderr.write(f"{name} {kind}\n")  # the last one is what failed
            seen = train(kind, rank, folder / kind, watched)
            (folder / kind / f"{name}{rank}.json").write_text(json.dumps(seen))
    dist.barrier()
    # Torch 2.15 sometimes aborts while it destroys FSDP2's gloo groups, unwatched too (3 of 24
    # processes). Everything is written by now.
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), *sys.argv[4:])
