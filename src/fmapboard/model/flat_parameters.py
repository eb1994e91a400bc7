"""Parameters that ``FullyShardedDataParallel`` (FSDP1) has flattened.

Each rank holds a piece of one long vector. The layers' weights are views of it: whole during a
pass, afterwards cut to this rank's piece, or without memory, and then reading one ends the process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from torch import Tensor, nn

from fmapboard.errors import WarnOnce
from fmapboard.model.distributed import rank
from fmapboard.options import Options


def are_flattened(model: nn.Module) -> bool:
    """True if any parameter of the model is flattened."""
    return any(map(_is_flattened, model.parameters()))


def not_flattened(parameters: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Those of the parameters, by name, that this rank holds completely."""
    return {name: p for name, p in parameters.items() if not _is_flattened(p)}


def options_for(model: nn.Module, options: Options, warn: WarnOnce) -> Options:
    """The options without what needs whole weights, or a pass that other ranks take part in.

    Only one rank watches a flattened model. A pass of fmapboard's own would wait for the others for
    ever.

    Args:
        model: the model.
        options: as the user gave them; returned unchanged unless the model is flattened.
        warn: where rank 0 tells the user what is not logged.
    """
    if not are_flattened(model):
        return options
    if rank() == 0:
        probe = "" if options.probe is None else "the images of probe=, "
        warn.warn(
            "flattened parameters",
            "parameters are sharded by FullyShardedDataParallel (FSDP1), and each rank holds only "
            f"a piece of them: {probe}kernels, gradient norms, update ratios, and histograms of "
            "weights are not logged. Feature maps and their statistics are. With fully_shard "
            "(FSDP2), everything is logged",
        )
    of_probe = options.attribution_loss is not None
    return replace(
        options,
        probe=None,
        attribution=False if of_probe else options.attribution,
        attribution_loss=None,
        kernels=False,
        update_ratios=False,
    )


def _is_flattened(parameter: Tensor) -> bool:
    return bool(getattr(parameter, "_fsdp_flattened", False))
