"""Compare what was logged of a tensor with float64 results computed from a clone of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from fmapboard.model.kernel_shapes import CONVOLUTIONS
from fmapboard.model.roles import activations
from fmapboard.records import LayerMeasurement, LoggedStep, PixelMark, Planes, Statistics

Clones = dict[tuple[str, str], Tensor]
"""Label and kind of a measurement -> clone of the tensor."""


def watched(model: nn.Module) -> dict[str, nn.Module]:
    """The layers that fmapboard watches by default in a model with convolutions, by name."""
    drawn = {name: m for name, m in model.named_modules() if isinstance(m, CONVOLUTIONS)}
    return drawn | activations(model)


@contextmanager
def clones(model: nn.Module) -> Iterator[Clones]:
    """Clone inputs, outputs and output gradients of the watched layers, with hooks of its own."""
    kept: Clones = {}
    handles = []
    for name, module in watched(model).items():
        hooks = _Hooks(name, kept)
        handles.append(module.register_forward_pre_hook(hooks.before, prepend=True))
        handles.append(module.register_forward_hook(hooks.after, prepend=True))
    try:
        yield kept
    finally:
        for handle in handles:
            handle.remove()


class _Hooks:
    def __init__(self, name: str, kept: Clones) -> None:
        self._name, self._kept, self._calls = name, kept, 0

    def before(self, module: nn.Module, args: Any) -> None:
        self._calls += 1
        self._kept[self._label, "inputs"] = args[0].detach().clone()

    def after(self, module: nn.Module, args: Any, output: Tensor) -> None:
        label = self._label
        self._kept[label, "feature_maps"] = output.detach().clone()

        def keep(gradient: Tensor) -> None:
            self._kept[label, "gradients_of_maps"] = gradient.detach().clone()

        if output.requires_grad:
            output.register_hook(keep)  # type: ignore[no-untyped-call]

    @property
    def _label(self) -> str:
        return self._name if self._calls == 1 else f"{self._name}.call{self._calls}"


def of_step(step: LoggedStep, kept: Clones, *, loss_scale: float = 1.0) -> list[str]:
    """Differences between a logged step and the clones of its tensors."""
    wrong = []
    for measured in step.statistics:
        key = measured.layer_call.label, measured.kind
        if key not in kept:
            wrong.append(f"{key}: recorded, but the layer was not called")
            continue
        tensor = kept[key]
        if measured.kind == "gradients_of_maps" and loss_scale != 1.0:
            tensor = tensor.float() / loss_scale
        wrong += [f"{measured.kind} of {key[0]}: {text}" for text in of_tensor(measured, tensor)]
    return wrong


def of_tensor(measured: LayerMeasurement, tensor: Tensor) -> list[str]:
    """Differences between one measurement and the tensor [N, C, ...] that it was made of."""
    values = tensor.detach().cpu().double().numpy()
    found = []
    if measured.shape != values.shape:
        found.append(f"shape {measured.shape}, expected {values.shape}")
    if measured.statistics is not None:
        found += list(
            _of_statistics(measured.statistics, values, moments=measured.sample is not None)
        )
    if measured.planes is not None and values.ndim == 4:
        found += list(_of_planes(measured.planes, values))
    if measured.sample is not None:
        sampled = np.asarray(measured.sample.values, np.float64)
        if not np.isin(sampled[np.isfinite(sampled)], values).all():
            found.append("the histogram's values are not values of the tensor")
        if measured.sample.total != values.size:
            found.append(f"histogram of {measured.sample.total} values, expected {values.size}")
    return found


def _of_statistics(own: Statistics, values: Any, *, moments: bool) -> Iterator[str]:
    planes = np.moveaxis(values, 1, 0).reshape(values.shape[1], -1)  # [C, S]
    counts = [np.isnan(planes), planes == np.inf, planes == -np.inf]
    nan, up, down = (one.sum(1) for one in counts)
    bad = nan + up + down > 0
    if not np.array_equal(own.nonfinite, bad):
        yield f"{own.nonfinite.sum()} channels flagged as non-finite, expected {bad.sum()}"
    counted = getattr(own, "counted", True)
    if counted and not all(
        map(
            np.array_equal, (own.nan, own.positive_infinity, own.negative_infinity), (nan, up, down)
        )
    ):
        yield "wrong counts of NaN and infinite values"
    finite = np.where(np.isfinite(planes), planes, np.nan)
    known = ~np.isnan(finite).all(1) & (counted | ~bad)  # channels with statistics
    some = finite[known]
    lo, hi, mean, std = np.nanmin(some, 1), np.nanmax(some, 1), np.nanmean(some, 1), _std(some)
    if not np.array_equal(own.minimum[known], lo) or not np.array_equal(own.maximum[known], hi):
        error = _largest(own.minimum[known] - lo, own.maximum[known] - hi)
        yield f"extremes wrong by up to {error}"
    constant = (lo == hi) & ~bad[known] & (planes.shape[1] > 1)
    if not np.array_equal(own.constant[known], constant):
        yield f"{own.constant.sum()} channels constant, expected {constant.sum()}"
    if not moments:
        return
    size = std + 1e-3 * np.abs(mean)  # what an error is compared with
    errors = (
        np.abs(own.mean[known] - mean) / (size + 1e-30),
        np.abs(own.std[known] - std) / (size + 1e-30),
    )
    for what, error in zip(("mean", "std"), errors, strict=True):
        if not (error <= 1e-3).all():
            yield f"{what} wrong by {np.nan_to_num(error, nan=np.inf).max():.1e} of the spread"


def _std(planes: Any) -> Any:
    """Std of the finite values of each row, without overflow and underflow of the squares."""
    centered = planes - np.nanmean(planes, 1, keepdims=True)
    unit = np.nanmax(np.abs(centered), 1, keepdims=True)
    unit[unit == 0] = 1
    return np.sqrt(np.nanmean(np.square(centered / unit), 1)) * unit[:, 0]


def _of_planes(own: Planes, values: Any) -> Iterator[str]:
    """Pixels are exact to one level: the device may average and round in another order."""
    samples, channels = own.pixels.shape[:2]
    drawn = values[:samples, :channels]
    if own.block > 1:
        height, width = (side // own.block * own.block for side in drawn.shape[2:])
        cut = drawn[:, :, :height, :width]
        shape = (*cut.shape[:2], height // own.block, own.block, width // own.block, own.block)
        drawn = cut.reshape(shape).mean((3, 5))
    expected, inside = own.pixels[:, :, : drawn.shape[2], : drawn.shape[3]], np.isfinite(drawn)
    bad = np.zeros(drawn.shape, bool) if own.marks is None else own.marks > 0
    if own.block == 1 and not np.array_equal(bad, ~inside):
        yield f"{(bad != ~inside).sum()} pixels marked or not marked by mistake"
    if own.marks is not None and (own.marks[np.isnan(drawn)] != PixelMark.NAN).any():
        yield "NaN is not marked as NaN"
    is_whole = all(side % own.block == 0 for side in values.shape[2:])
    if is_whole and drawn[0, 0].size > 1:
        known = inside.any((2, 3))
        ends = [np.where(inside, drawn, sign * np.inf) for sign in (1, -1)]
        lowest, highest = ends[0].min((2, 3))[known], ends[1].max((2, 3))[known]
        error = _largest(own.lo[known] - lowest, own.hi[known] - highest)
        rounding = 0.0 if own.block == 1 else 1e-5 * _largest(lowest, highest)
        if error > rounding:
            yield "the drawn range is not that of the maps"
    lo, hi = own.lo[..., None, None], own.hi[..., None, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        levels = np.floor(255.0 * np.clip((drawn - lo) / np.where(hi > lo, hi - lo, np.inf), 0, 1))
    off = np.abs(np.where(inside, expected - levels, 0))
    if off.max(initial=0) > 1:
        yield f"pixels wrong by up to {off.max():.0f} levels"


def of_gradients(step: LoggedStep, model: nn.Module) -> list[str]:
    """Differences between the logged gradient norms and those of the gradients still there."""
    wrong = []
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None
        norm, logged = (
            parameter.grad.double().norm().item(),
            step.scalars.get(f"gradient_norm/{name}"),
        )
        if logged is None or abs(logged - norm) > 1e-4 * norm:
            wrong.append(f"gradient norm of {name} is {logged}, expected {norm}")
    return wrong


def differing(one: dict[str, Tensor], other: dict[str, Tensor]) -> list[str]:
    """Names of the tensors that differ in any value, or that only one side has."""
    both = one.keys() & other.keys()
    return [n for n in {**one, **other} if n not in both or not torch.equal(one[n], other[n])]


def _largest(*differences: Any) -> float:
    return max(float(np.nan_to_num(np.abs(one), nan=np.inf).max(initial=0)) for one in differences)
