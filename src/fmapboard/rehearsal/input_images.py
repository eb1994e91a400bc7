"""Whether input images are scaled, have contrast, and have their axes in order."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fmapboard.health import thresholds
from fmapboard.rehearsal.experiment import Answer, fault
from fmapboard.rehearsal.setup import Pass

_SCALED = "Normalize the images once, to a standard deviation near 1"
_LEAST_WIDTH = 8


def wrong_images(images: Tensor, seen: Pass) -> Answer | None:
    """A fault of the images, by the bounds of the rules of ``fmapboard.health``.

    Args:
        images: what the network gets; only float [N, C, H, W] is judged.
        seen: a pass of them.
    """
    if images.dim() != 4 or not images.is_floating_point() or images.shape[1] > 4:
        return None
    return _scrambled(images) or _badly_scaled(images, seen)


def _scrambled(images: Tensor) -> Answer | None:
    """A fault if red, green and blue take turns in each row, as after a view for a permute.

    Then neighbours differ by their place modulo 3, and are nearer to each other put back.
    """
    count, channels, rows, columns = images.shape
    if channels != 3 or columns < _LEAST_WIDTH or columns % 3 == 0:
        return None
    steps = images.diff(dim=3).abs().mean(0).flatten()  # [3*H*(W-1)]
    numbers = torch.arange(images[0].numel(), device=images.device)
    place = numbers.reshape(images.shape[1:])[:, :, 1:].flatten() % 3
    means = torch.stack([steps[place == number].mean() for number in range(3)])
    put_back = images.reshape(count, rows, columns, 3)
    is_smoother = bool(put_back.diff(dim=2).abs().mean() < steps.mean())
    ratio = float(means.min() / means.max().clamp(min=1e-30))
    if not 0 < ratio < thresholds.INTERLEAVED.value or not is_smoother:
        return None
    return fault(
        "red, green and blue take turns in each row of the images: every third difference between "
        f"neighbours is {ratio:.2g} times the largest",
        figure=ratio,
        advice="Images [H, W, 3] were made [3, H, W] with view or reshape: use permute(2, 0, 1)",
    )


def _badly_scaled(images: Tensor, seen: Pass) -> Answer | None:
    """A fault if images are far too large or too small for the layers that get them."""
    first = next((call for call in seen.calls if _has_kernels(call.module)), None)
    if first is None or not first.outputs or _is_normalized(seen, first.name):
        return None
    magnitude = float(images.abs().max())
    spread = float(images.std())
    is_large = magnitude > thresholds.IMAGE_MAGNITUDE.value
    is_wide = spread > thresholds.IMAGE_SPREAD_HIGH.value
    if is_large or is_wide:
        response = float(first.outputs[0].std())
        if response <= thresholds.FIRST_RESPONSE.value:
            return None  # the network scales them itself
        return fault(
            f"images reach {magnitude:.3g}, and {first.name} ({first.kind}) makes values with a "
            f"standard deviation of {response:.2g} of them",
            figure=magnitude,
            layer=first.name,
            advice=_SCALED,
        )
    if 0 < spread < thresholds.IMAGE_SPREAD_LOW.value:
        return fault(
            f"images have a standard deviation of {spread:.2g}: they were scaled twice, or have "
            "hardly any contrast",
            figure=spread,
            advice=_SCALED,
        )
    return None


def _has_kernels(module: nn.Module) -> bool:
    weight = getattr(module, "weight", None)
    return isinstance(weight, Tensor) and weight.dim() > 1


def _is_normalized(seen: Pass, name: str) -> bool:
    """True if a normalization that adapts is called before a layer or right after it."""
    names = [call.name for call in seen.calls]
    near = seen.calls[: names.index(name) + 2]
    return any("norm" in call.kind.lower() for call in near)
