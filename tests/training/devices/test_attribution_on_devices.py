"""Attribution on accelerators: no waits, few launches, the same maps as on the CPU, few bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torchvision
from device_training import logged, on_device, plain_batch
from device_workloads import WORKLOADS
from PIL import Image
from torch.nn import functional

import fmapboard
from fmapboard.demo.bundled import bundled
from fmapboard.writers.folder import MemoryWriter
from fmapboard.writers.tensorboard import Encoder

ON = {"attribution": True, "samples": 2}


@pytest.mark.parametrize(
    ("kind", "how"),
    [
        *[(kind, {}) for kind in ("cuda", "mps", "xpu")],
        *[(kind, {"scaled": how}) for kind in ("cuda", "mps") for how in ("fused", "unfused")],
    ],
    ids=str,
)
def test_the_maps_are_those_of_the_cpu_and_no_step_waits(kind: str, how: dict[str, Any]) -> None:
    steps, machine = on_device(kind, plain_batch(), **how, **ON)
    assert machine.waits_on("MainThread") == []
    assert machine.uploads == 0
    expected = logged("cpu", plain_batch(), **ON)
    assert len(steps) == len(expected) == 3
    for step, other in zip(steps, expected, strict=True):
        assert len(step.attributions) == len(other.attributions) == 4
        for own, unscaled in zip(step.attributions, other.attributions, strict=True):
            assert own.layer_call.label == unscaled.layer_call.label
            np.testing.assert_allclose(own.heat, unscaled.heat, rtol=1e-3, atol=1e-7)
            assert own.gradient == pytest.approx(unscaled.gradient, rel=1e-3)


@pytest.mark.parametrize("kind", ["cuda", "mps"])
def test_the_attribution_of_a_probe_is_that_of_the_cpu_and_no_step_waits(kind: str) -> None:
    images = plain_batch()[:2] / 2
    options = {**ON, "probe": images, "attribution_loss": lambda output: -output[:, 0]}
    steps, machine = on_device(kind, plain_batch(), **options)
    assert machine.waits_on("MainThread") == []
    expected = logged("cpu", plain_batch(), **options)
    for step, other in zip(steps, expected, strict=True):
        assert len(step.attributions) == len(other.attributions) == 4
        for own, real in zip(step.attributions, other.attributions, strict=True):
            assert own.of_probe
            np.testing.assert_allclose(own.heat, real.heat, rtol=1e-3, atol=1e-7)


@pytest.mark.parametrize(
    ("name", "layers", "launches"),
    [
        ("ResNet-18 b64", 5, 4),
        *(
            pytest.param(*case, marks=pytest.mark.sweep)
            for case in (("ResNet-50 b64", 5, 4), ("ResNet-50 bf16", 5, 5))
        ),
    ],
)
def test_a_layer_takes_five_launches_for_the_gradient_and_a_candidate_one_copy(
    name: str, layers: int, launches: int
) -> None:
    workload = WORKLOADS[name]
    without, trace = workload.trace(samples=3), workload.trace(samples=3, attribution=True)
    by_module = trace.by_module()
    own = by_module["capture.attribution"][0] - layers * launches
    assert 0 < own <= len(trace.watched) + 10  # at the first logged step; later one per layer
    # Packing 16 more tensors takes one more launch.
    assert 0 <= trace.launches - (without.launches + own + layers * launches) <= 1
    assert trace.waits == []
    assert trace.to_host - without.to_host < 0.25e6


def test_from_the_second_logged_step_on_only_what_is_shown_is_copied() -> None:
    model, kept = torchvision.models.resnet18(), MemoryWriter()
    copies = []
    clone = torch.Tensor.clone

    def counted(self: torch.Tensor, **options: Any) -> torch.Tensor:
        copies.append(self.shape)
        return clone(self, **options)

    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    board = fmapboard.watch(
        model, writer=kept, optimizer=optimizer, every=1, attribution=True, layers="conv1"
    )
    with board, pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.Tensor, "clone", counted)
        counts = []
        for _ in range(2):
            copies.clear()
            functional.cross_entropy(model(torch.rand(2, 3, 64, 64)), torch.arange(2)).backward()
            counts.append(len([shape for shape in copies if len(shape) == 4]))
            optimizer.step()
    assert counts[0] - counts[1] > 10
    assert len(kept.steps[1].attributions) == len(kept.steps[0].attributions) == 5


def photographs(size: int) -> torch.Tensor:
    """The bundled photographs f32 [8, 3, size, size], 0…1."""
    paths = sorted(Path(bundled("photographs")).glob("*.jpg"))
    images = [Image.open(path).convert("RGB").resize((size, size)) for path in paths]
    stacked = np.stack([np.asarray(image) for image in images])
    return torch.from_numpy(stacked).permute(0, 3, 1, 2).float() / 255


@pytest.mark.sweep
def test_three_samples_of_resnet_18_take_at_most_40_kb_per_step() -> None:
    model, images, kept = torchvision.models.resnet18(), photographs(224)[:3], MemoryWriter()
    sizes = {}
    for attribution in (False, True):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        kept = MemoryWriter()
        with fmapboard.watch(
            model, writer=kept, optimizer=optimizer, every=1, samples=3, attribution=attribution
        ):
            for _ in range(2):
                optimizer.zero_grad()
                functional.cross_entropy(model(images), torch.arange(3)).backward()
                optimizer.step()
        encode = Encoder()
        sizes[attribution] = [sum(map(len, encode(step))) for step in kept.steps]
    first, later = (on - off for on, off in zip(sizes[True], sizes[False], strict=True))
    assert later <= 40_000
    assert first <= 80_000  # its pictures are stored twice: once as the control of all others
    assert min(first, later) > 5_000
