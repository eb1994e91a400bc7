"""In which threads torch has yet to set its number of threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
import torch

from fmapboard.capture import isolation


@pytest.mark.parametrize(("counts", "expected"), [((0, 1), True), ((1, 1), False), ((), True)])
def test_a_new_thread_is_settled_if_one_of_the_openmp_runtimes_has_torchs_number(
    counts: tuple[int, ...], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = torch.get_num_threads()
    runtimes = [SimpleNamespace(get_num_threads=lambda n=number + c: n) for c in counts]
    monkeypatch.setattr(isolation, "openmp_runtimes", lambda: runtimes)
    with ThreadPoolExecutor(1) as new_thread:
        assert new_thread.submit(isolation.is_settled).result() is expected
