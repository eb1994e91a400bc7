"""Keep the best positions of each channel over a stream of images, in a stable order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Ints = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]


def best_positions(values: Tensor, most: int) -> tuple[Doubles, Ints]:
    """The positions with the largest values, in descending order; the first of equal ones.

    Args:
        values: [N, C, P]. NaN is left out; infinity is the largest value.
        most: Number of positions per image and channel; fewer if there are fewer.

    Returns:
        The values and the positions, both [N, C, min(most, P)]. Where there are fewer numbers than
        that, the value is NaN.
    """
    if most == 1 and not torch.isnan(values).any():
        found, places = values.max(-1, keepdim=True)
    else:
        # Two stable sorts: NaN last, then by value; a NaN comes after each -inf.
        bad, order = torch.sort(torch.isnan(values).byte(), stable=True)
        filled = values.gather(-1, order).masked_fill(bad.bool(), -torch.inf)
        found, ranks = torch.sort(filled, descending=True, stable=True)
        found, ranks = found[..., :most], ranks[..., :most]
        found = found.masked_fill(bad.gather(-1, ranks).bool(), torch.nan)
        places = order.gather(-1, ranks)
    return found.double().cpu().numpy(), places.cpu().numpy()


class Ranking:
    """The best positions of each channel of a layer so far.

    Args:
        channels: Number of channels.
        k: Number of positions to keep per channel.

    Attributes:
        values: f64 [C, k], descending; NaN where there is none yet.
        images: int64 [C, k], number of the image.
        positions: int64 [C, k], index of the position in the layer's output.
    """

    def __init__(self, channels: int, k: int) -> None:
        self.values = np.full((channels, k), np.nan)
        self.images = np.zeros((channels, k), np.int64)
        self.positions = np.zeros((channels, k), np.int64)

    def add(self, values: Doubles, positions: Ints, image: int) -> Ints:
        """Add the positions of one image, which comes after all earlier ones.

        Args:
            values: [C, m], descending; NaN for none.
            positions: [C, m].
            image: Number of the image.

        Returns:
            int64 [C, k]: where each kept position was before, from k on as m new ones.
        """
        k = self.values.shape[1]
        joined = np.concatenate([self.values, values], 1)  # [C, k + m]
        order: Ints = np.argsort(-joined, axis=1, kind="stable")[:, :k]  # NaN is last
        self.values = np.take_along_axis(joined, order, 1)
        numbers = np.full_like(positions, image)
        for name, new in (("images", numbers), ("positions", positions)):
            both = np.concatenate([getattr(self, name), new], 1)
            setattr(self, name, np.take_along_axis(both, order, 1))
        return order

    def entered(self, order: Ints) -> Iterator[tuple[int, int]]:
        """Channel and rank of the positions that are new according to what ``add`` returned."""
        new = (order >= self.values.shape[1]) & ~np.isnan(self.values)
        yield from zip(*(axis.tolist() for axis in np.nonzero(new)), strict=True)
