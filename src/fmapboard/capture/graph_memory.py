"""Estimates whether a logged step fits on the device beside the memory of CUDA graphs.

A model compiled with ``mode="reduce-overhead"`` replays CUDA graphs, whose memory pools keep the
activations of a step for good. A logged step runs uncompiled (see ``compiled.force_eager``), so its
activations are allocated beside these pools, and if there is no memory left for them, it is the
user's own forward pass that fails.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import nn

from fmapboard.model.distributed import is_sharded

EAGER_FACTOR = 2
"""An uncompiled step is taken to need this many times the memory of the graphs' pools: compiled
code fuses operations and does not keep what is between them. An estimate, not measured."""

_DEFAULT_POOL = (0, 0)


def shortage(model: nn.Module) -> str | None:
    """Why a logged step of the model may run out of device memory, and what to do; None if not.

    Does not wait for the device, and asks it for nothing unless the model's device has graphs of
    ``torch.compile``. Sharded models are not checked: all ranks must log the same steps.
    """
    graphs = sys.modules.get("torch._inductor.cudagraph_trees")
    if graphs is None or not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]  # torch has no types here
        return None
    indices = {p.device.index or 0 for p in model.parameters() if p.device.type == "cuda"}
    in_use = sorted(i for i in indices if graphs.get_manager(i, create_if_none_exists=False))
    if not in_use or is_sharded(model):
        return None
    segments = torch.cuda.memory_snapshot()  # type: ignore[no-untyped-call]  # torch has no types here
    texts = (_shortage_on(index, segments) for index in in_use)
    return next((text for text in texts if text is not None), None)


def _shortage_on(index: int, segments: list[dict[str, Any]]) -> str | None:
    own = [segment for segment in segments if segment["device"] == index]
    private = [s for s in own if tuple(s["segment_pool_id"]) != _DEFAULT_POOL]
    shared = [s for s in own if tuple(s["segment_pool_id"]) == _DEFAULT_POOL]
    pools = sum(segment["total_size"] for segment in private)
    cached = sum(segment["total_size"] - segment["allocated_size"] for segment in shared)
    free = torch.cuda.mem_get_info(index)[0] + cached
    needed = EAGER_FACTOR * pools
    if free >= needed:
        return None
    return (
        f"logged steps of a model compiled with mode='reduce-overhead' run uncompiled, beside the "
        f"memory of its CUDA graphs ({_mb(pools)}), and may need {_mb(needed)}, but cuda:{index} "
        f"has {_mb(free)} left; use a smaller batch, or compile with another mode"
    )


def _mb(nbytes: int) -> str:
    return f"{nbytes / 1e6:.0f} MB"
