"""Volumes under the name of monai.data."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Volume = npt.NDArray[np.float32]


def create_test_image_3d(
    *shape: int, random_state: np.random.RandomState, noise_max: float, **_: object
) -> tuple[Volume, Volume]:
    label = np.zeros(shape, np.float32)
    first = random_state.randint(0, shape[0] // 2, 3)
    label[tuple(slice(f, f + shape[0] // 4) for f in first)] = 1
    return label + noise_max * random_state.rand(*shape).astype(np.float32), label
