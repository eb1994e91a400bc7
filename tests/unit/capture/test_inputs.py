"""Input images read on an accelerator: averaged there if they are large, the CPU's pictures."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
import torch
from device_trace import Tracer
from simulated_device import moved, simulated_device
from torch._subclasses import FakeTensorMode

from fmapboard.capture import inputs as module
from fmapboard.capture import isolation
from fmapboard.capture.inputs import MAX_SIDE, input_images


@pytest.mark.parametrize("kind", ["cuda", "mps"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.uint8])
@pytest.mark.parametrize("shape", [(2, 3, 20, 20), (2, 3, 300, 20), (2, 1, 700, 513)])
def test_images_are_those_of_the_cpu(shape: tuple[int, ...], dtype: torch.dtype, kind: str) -> None:
    batch = (torch.rand(shape, generator=torch.Generator().manual_seed(0)) * 255).to(dtype)
    expected = [image.to_host() for image in input_images(batch, None, None, sequences=False)]
    with simulated_device() as machine:
        found = input_images(moved(batch, kind), None, None, sequences=False)
        assert machine.waits == []
        received = [image._replace(values=image.values.cpu()).to_host() for image in found]
    for own, other in zip(received, expected, strict=True):
        assert (own.sample, own.block) == (other.sample, other.block)
        np.testing.assert_allclose(own.values, other.values, rtol=1e-5)


def test_only_what_is_drawn_is_copied_to_the_host() -> None:
    with (
        mock.patch.object(module, "is_observable", return_value=True),
        mock.patch.object(isolation, "_set_dispatch_modes"),
        FakeTensorMode(),
        Tracer(everything=True) as tracer,
    ):
        batch = torch.empty(8, 3, 4 * MAX_SIDE, 4 * MAX_SIDE, device="cuda")
        (found,) = input_images(batch, 1, None, sequences=False)
    assert found.values.shape == (3, MAX_SIDE, MAX_SIDE)
    assert tracer.trace.launches == 1
