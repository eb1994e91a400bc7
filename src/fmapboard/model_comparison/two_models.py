"""``diff``: run two models in lockstep and find the first layer in which they differ."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from torch import nn

from fmapboard.errors import ConfigurationError
from fmapboard.model.given import check_input
from fmapboard.model.layers import Layers
from fmapboard.model_comparison.comparison import Rows, compared, tolerance_of
from fmapboard.model_comparison.layer_calls import Arguments
from fmapboard.model_comparison.pictures import draw_maps_of
from fmapboard.model_comparison.result import ModelDifference, is_different
from fmapboard.records import Normalization


def diff(
    model_a: nn.Module,
    model_b: nn.Module,
    images: Any,
    *,
    tolerance: float | None = None,
    forward_kwargs: Mapping[str, Any] | None = None,
    layers: Layers = None,
    out: str | Path | None = None,
    log_dir: str | Path | None = None,
) -> ModelDifference:
    """Find the first layer in which two models differ.

    Both models run on the same input in their current modes (train or eval), without gradients, and
    with the same random numbers. Then the second one runs in lockstep with the first: each layer
    receives what its partner in the first model received, and the code between layers continues
    with what the partner returned. The error that a layer *adds* is therefore its own. What
    functional code adds (an addition, a pooling function) is placed between two layers.

    A layer is a module that calls no other module. Layers are paired by name, then by order. Modes,
    buffers and random states are restored, and all hooks are removed, even after an error.

    If one model computes in a coarser dtype, the error that a layer adds is measured with a copy of
    the other model in the same dtype, so that it does not contain the rounding that both share.

    Args:
        model_a: The reference, any module. A compiled model runs eagerly.
        model_b: The model to compare with it.
        images: Input of both models: a tuple is their positional arguments, anything else the only
            argument. Tensors are copied to the device of each model, and floating-point ones to
            the dtype of its first parameter.
        tolerance: Relative error above which a layer is different. None: 1e-5 in float32, 1e-12
            in float64, 5e-4 in float16, 4e-3 in bfloat16, by the coarser of the dtypes in which
            most layers of each model return their outputs.
        forward_kwargs: Keyword arguments of both models.
        layers: Layers to draw; always with the first difference. As in ``watch``, if ``out`` or
            ``log_dir`` is given: None draws every convolution.
        out: Folder of PNG files: the first image's maps in both models in ``a`` and ``b``, and the
            second model's minus the first's in ``difference``.
        log_dir: Directory of the runs ``a``, ``b`` and ``difference`` for TensorBoard.

    Returns:
        ``first``, the name of the first difference, or None; ``layers``, with the errors of each.

    Raises:
        ConfigurationError: An argument is invalid, a model cannot run on the input, or no layer of
            one can be paired with the other's.
        LayerNotFound: A pattern in ``layers`` matches no layer.
        WriteError: A picture cannot be written.

    Example:
        >>> import copy
        >>> from torch import nn
        >>> from fmapboard import diff
        >>> net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 3))
        >>> other = copy.deepcopy(net)
        >>> other[2].weight.data[0] *= 1.01
        >>> diff(net, other, torch.rand(1, 3, 8, 8)).first
        '2'
        >>> diff(net, net, torch.rand(1, 3, 8, 8)).first is None
        True
    """
    batch = images if isinstance(images, tuple) else (images,)
    for argument in batch:
        check_input(argument, what="images")
    batches = [(batch, dict(forward_kwargs or {}))]
    return difference(
        model_a, model_b, batches, tolerance=tolerance, layers=layers, out=out, log_dir=log_dir
    )


def difference(
    model_a: nn.Module,
    model_b: nn.Module,
    batches: Collection[Arguments],
    *,
    tolerance: float | None,
    layers: Layers,
    out: str | Path | None,
    log_dir: str | Path | None,
    normalization: Normalization | None = None,
) -> ModelDifference:
    """As ``diff``, on several batches, of which the first images are drawn, one step each.

    Args:
        model_a: As for ``diff``, as are all arguments that are not named here.
        model_b: Likewise.
        batches: What the models are called with; iterated again to draw.
        tolerance: Likewise.
        layers: Likewise.
        out: Likewise.
        log_dir: Likewise.
        normalization: Mean and standard deviation per channel of the images.
    """
    if tolerance is not None and not 0 <= tolerance < math.inf:
        raise ConfigurationError(f"tolerance={tolerance!r}: expected a number of at least 0")
    comparison = compared(model_a, model_b, batches)
    limit = tolerance_of(comparison.dtypes) if tolerance is None else tolerance
    rows = Rows(comparison, limit).all()
    first = next((row.name for row in rows if is_different(row.added, limit)), None)
    one, other = (str(dtype).removeprefix("torch.") for dtype in comparison.dtypes)
    found = ModelDifference(first, rows, limit, (one, other))
    if out is not None or log_dir is not None:
        draw_maps_of(
            comparison, found, batches,
            layers=layers, out=out, log_dir=log_dir, normalization=normalization,
        )  # fmt: skip
    return found
