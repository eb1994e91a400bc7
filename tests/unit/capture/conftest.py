"""A check that a test leaves no optimizer hook behind."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from torch.optim.optimizer import _global_optimizer_pre_hooks


@pytest.fixture
def _no_hook_stays() -> Iterator[None]:
    yield
    gc.collect()
    assert not _global_optimizer_pre_hooks
