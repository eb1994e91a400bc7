"""A check that a test leaves no optimizer hook behind; torch has no public list of them."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from torch.optim import optimizer as torch_optimizer


@pytest.fixture
def _no_hook_stays() -> Iterator[None]:
    yield
    if torch_optimizer._global_optimizer_pre_hooks:
        gc.collect()  # takes 0.2 s: only where a reader is in a reference cycle
    assert not torch_optimizer._global_optimizer_pre_hooks
