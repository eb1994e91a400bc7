"""A loss under the name of monai.losses."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional


class DiceCELoss(nn.Module):
    def __init__(self, *, sigmoid: bool) -> None:
        super().__init__()

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        return functional.binary_cross_entropy_with_logits(logits, labels)
