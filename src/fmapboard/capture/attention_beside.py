"""Attention read in another pass, a file of its own: ``attention`` reads what the model runs.

torch.compile looks at the modes that are on: a compiled function that runs under one more is
compiled again. A twin runs compiled code uncompiled, and the training's code never sees the mode.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import _disable_current_modes

from fmapboard.capture.attention import AttentionMode
from fmapboard.capture.own_pass import own_pass
from fmapboard.capture.side_pass import copied_values
from fmapboard.capture.twin import NoTwin, Twin
from fmapboard.errors import first_line
from fmapboard.interrupts import raise_interrupt
from fmapboard.model.distributed import are_flattened, is_sharded
from fmapboard.model.kernel_shapes import functions, names_in
from fmapboard.model.tensors import tensors

_FLEX = "flex_attention"


def attend_beside(module: nn.Module, args: Any, kwargs: Any, mode: AttentionMode) -> None:
    """Run a twin of an attention module without gradients, on copies of its arguments.

    Selective checkpointing, which records every operation, sees none of it.

    Args:
        module: the module, which is about to run.
        args: what it is called with.
        kwargs: likewise.
        mode: reads the attention.

    Raises:
        NoTwin: the pass is not possible; the message says why.
    """
    why = _obstacle(module)
    if any(tensor.is_nested for tensor in tensors((args, kwargs))):
        why = "nested tensors are attended to in no other way"
    if why:
        raise NoTwin(why)
    with _disable_current_modes(), torch.no_grad():
        twin = Twin(module)
        with own_pass(twin, keeps_parameters=True):
            own_args, own_kwargs = _copied((args, kwargs))
            with mode:
                twin.module(*own_args, **own_kwargs)


def _copied(arguments: Any) -> Any:
    """Copies of all that the module may change, such as a cache of keys that layers share."""
    try:
        return copied_values(arguments)
    except Exception as error:
        raise_interrupt(error)
        raise NoTwin(f"its arguments cannot be copied ({first_line(error)})") from error


def _obstacle(module: nn.Module) -> str:
    """Why a pass of a twin is of no use, or impossible; "" if it is possible."""
    if is_sharded(module) or are_flattened(module):
        return "its parameters are sharded over ranks, which would wait for each other"
    implementation = getattr(getattr(module, "config", None), "_attn_implementation", "")
    codes = [
        function.__code__ for part in module.modules() for function in functions(part).values()
    ]
    if implementation == _FLEX or any(_FLEX in names_in(code) for code in codes):
        return "uncompiled, flex_attention holds the whole matrix"
    return ""
