"""One of two processes whose network calls a collective in ``forward``; see test_collectives.

Arguments: rank, port, folder, then pairs "collective/way". Each pair is trained without and with
fmapboard. Writes by pair, as JSON: whether the weights are equal, the warnings, and how many layers
the last logged step has pictures of.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

import fmapboard
from fmapboard.errors import ConfigurationError
from fmapboard.writers.folder import MemoryWriter


def _all_reduce(mean: Tensor) -> Tensor:
    dist.all_reduce(mean)
    return mean / 2


def _all_gather(mean: Tensor) -> Tensor:
    found = [torch.zeros_like(mean) for _ in range(2)]
    dist.all_gather(found, mean)
    return torch.stack(found).mean(0)


def _broadcast(mean: Tensor) -> Tensor:
    dist.broadcast(mean, 0)
    return mean


def _objects(mean: Tensor) -> Tensor:
    found: list[Any] = [None, None]
    dist.all_gather_object(found, mean.tolist())
    return torch.tensor(found).mean(0)


def _functional(mean: Tensor) -> Tensor:
    found = functional.all_reduce(mean, "sum", dist.group.WORLD)
    return torch.ops._c10d_functional.wait_tensor(found) / 2  # type: ignore[no-any-return]


def _caught(mean: Tensor) -> Tensor:
    try:
        return _all_reduce(mean)
    except Exception:
        return mean


COLLECTIVES = {
    "all_reduce": _all_reduce,
    "all_gather": _all_gather,
    "broadcast": _broadcast,
    "objects": _objects,
    "functional": _functional,
    "caught": _caught,
}


class Net(nn.Module):
    """Subtracts the mean of all ranks, as a codebook or a contrastive loss would."""

    def __init__(self, collective: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3)
        self.last = nn.Conv2d(4, 2, 3)
        self.collective = collective

    def forward(self, x: Tensor) -> Tensor:
        maps = self.first(x).relu()
        mean = self.collective(maps.detach().mean((0, 2, 3)))
        scores: Tensor = self.last(maps - mean[:, None, None]).mean((2, 3))
        return scores


def train(collective: str, way: str, *, watched: bool) -> tuple[list[Tensor], int]:
    torch.manual_seed(0)
    torch._dynamo.reset()
    model = Net(COLLECTIVES[collective])
    trained: Any = DistributedDataParallel(model)
    if way == "inductor":
        from torch._inductor import config

        config.compile_threads = 1
        config.cpp.vec_isa_ok = False  # vector code takes 20 s more
    if way in ("eager", "inductor"):
        trained = torch.compile(trained, backend=way)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    kept = MemoryWriter()
    images = torch.linspace(0, 1, 4 * 3 * 10 * 10).view(4, 3, 10, 10) * (1 + dist.get_rank())
    board = None
    if watched:
        options: dict[str, Any] = {}
        if way in ("probe", "attribution"):
            options["probe"] = images[:1]
        if way == "attribution":
            options |= {"attribution": True, "attribution_loss": lambda scores: scores.sum()}
        board = fmapboard.watch(trained, writer=kept, optimizer=optimizer, every=2, **options)
    for step in range(5):
        if watched and way == "calls" and step == 2 and dist.get_rank() == 0:
            for call in (fmapboard.graph, fmapboard.extract, fmapboard.attribution):
                try:
                    call(model, images)
                except ConfigurationError as error:
                    logging.getLogger("fmapboard").warning("%s: %s", call.__name__, error)
        optimizer.zero_grad()
        trained(images).square().mean().backward()
        optimizer.step()
    if board is not None:
        board.close()
    names = {p.layer_call.layer for s in kept.steps[-1:] for p in s.pictures if p.layer_call}
    return [p.detach().clone() for p in model.parameters()], len(names)


def main() -> None:
    rank, port, folder, *pairs = sys.argv[1:]
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    dist.init_process_group("gloo", rank=int(rank), world_size=2, timeout=timedelta(seconds=60))
    messages: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("fmapboard").addHandler(handler)
    found = {}
    for pair in pairs:
        collective, way = pair.split("/")
        bare, _ = train(collective, way, watched=False)
        messages.clear()
        seen, layers = train(collective, way, watched=True)
        said = [message for message in messages if "collective" in message]
        found[pair] = [all(map(torch.equal, bare, seen)), said, layers]
    (Path(folder) / f"collectives_{rank}.json").write_text(json.dumps(found))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
