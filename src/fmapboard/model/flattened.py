"""Parameters that ``FullyShardedDataParallel`` (FSDP1) has flattened.

Each rank holds a piece of one long vector. The layers' weights are views of it: whole during a
pass, afterwards cut to this rank's piece, or without memory, and then reading one ends the
process.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

_FLATTENED = "_fsdp_flattened"


def are_flattened(model: nn.Module) -> bool:
    """True if any parameter of the model is flattened."""
    return any(getattr(parameter, _FLATTENED, False) for parameter in model.parameters())


def not_flattened(parameters: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Those of the parameters, by name, that this rank holds completely."""
    return {name: p for name, p in parameters.items() if not getattr(p, _FLATTENED, False)}
