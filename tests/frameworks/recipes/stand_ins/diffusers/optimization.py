"""Learning rates under the name of diffusers.optimization."""

from __future__ import annotations

import math

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR


def get_cosine_schedule_with_warmup(optimizer: Optimizer, warm_up: int, steps: int) -> LambdaLR:
    return LambdaLR(
        optimizer, lambda n: min(1.0, (n + 1) / warm_up) * (1 + math.cos(math.pi * n / steps)) / 2
    )
