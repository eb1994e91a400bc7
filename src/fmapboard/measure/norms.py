"""2-norms of many gradients at once, on their own devices; a host sync on the CPU alone."""

from __future__ import annotations

import torch
from torch import Tensor

from fmapboard.model.distributed import local

_RUN = 4096
# Beyond these, squares of float32 may overflow or vanish.
_LARGE, _SMALL = 1e15, 1e-15


def dense(gradient: Tensor) -> Tensor:
    """This process's part of a gradient, real; of a sparse one the rows that it has, each once."""
    part = local(gradient.detach())
    values = part.coalesce().values() if part.is_sparse else part
    return torch.view_as_real(values) if values.is_complex() else values


def norms(gradients: list[Tensor]) -> list[Tensor]:
    """The 2-norm of each gradient, f64 [] on its device; of float32 (or wider) squares.

    Float32 sums over runs of values and float64 sums over the runs: one float32 sum of 25 million
    squares is wrong in the third digit.

    Args:
        gradients: as `dense` gives them, each of any shape, floating type and device.
    """
    found: list[Tensor] = [torch.empty(0)] * len(gradients)
    places: dict[torch.device, list[int]] = {}
    for place, gradient in enumerate(gradients):
        places.setdefault(gradient.device, []).append(place)
    for device, members in places.items():
        runs = [_runs(gradients[place]) for place in members]
        of_device = list(torch._foreach_norm(runs, 2, dtype=torch.float64))
        if device.type == "cpu":
            values = torch.stack(of_device).tolist()
            for number, value in enumerate(values):
                if not _SMALL < value < _LARGE:  # squares may have left float32
                    of_device[number] = _wide(gradients[members[number]])
        for place, norm in zip(members, of_device, strict=True):
            found[place] = norm
    return found


def _runs(gradient: Tensor) -> Tensor:
    """Norms of runs of a large gradient, f32 or f64; a small one as it is."""
    flat = gradient.reshape(-1)
    count = flat.numel()
    if count <= _RUN:
        return flat
    dtype = torch.float64 if flat.dtype == torch.float64 else torch.float32
    whole = count // _RUN * _RUN
    runs: Tensor = torch.linalg.vector_norm(flat[:whole].view(-1, _RUN), dim=1, dtype=dtype)
    if whole == count:
        return runs
    joined: Tensor = torch.cat([runs, torch.linalg.vector_norm(flat[whole:], dtype=dtype)[None]])
    return joined


def _wide(gradient: Tensor) -> Tensor:
    norm: Tensor = torch.linalg.vector_norm(gradient, dtype=torch.float64)
    return norm
