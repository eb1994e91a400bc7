"""Side computations inside a user's forward pass: neither affects the other."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch
from torch._ops import _len_torch_dispatch_stack_pre_dispatch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import TorchDispatchMode
from torch_threads import torch_threads

from fmapboard.capture import isolation
from fmapboard.capture.isolation import aside


class Operations(TorchDispatchMode):
    """Records every operation, as selective checkpointing does."""

    def __init__(self) -> None:
        super().__init__()
        self.operations: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.operations.append(str(func))
        return func(*args, **(kwargs or {}))


def test_the_users_dispatch_modes_do_not_see_our_operations_and_are_restored_afterwards() -> None:
    x = torch.rand(3)
    with Operations() as seen:
        with aside("cpu"):
            x.sum()
        x.amax()
    assert seen.operations == ["aten.amax.default"]


def test_a_trace_before_dispatch_is_interrupted_in_its_own_thread_only() -> None:
    seen: list[int] = []

    def look() -> None:
        with aside("cpu"):
            seen.append(_len_torch_dispatch_stack_pre_dispatch())

    def traced(x: torch.Tensor) -> torch.Tensor:
        other = threading.Thread(target=look)  # as our worker beside the user's torch.export
        other.start()
        other.join()
        look()
        return x * 2

    graph = make_fx(traced, pre_dispatch=True)(torch.ones(2))
    assert seen == [1, 0]
    assert torch.equal(graph(torch.ones(2)), torch.full([2], 2.0))


def test_a_thread_may_include_the_key_of_these_modes_without_having_any() -> None:
    before = isolation._has_modes_before_dispatch()
    torch._C._dispatch_tls_set_dispatch_key_included(torch._C.DispatchKey.PreDispatch, True)
    try:
        with aside("cpu"):
            assert torch.ones(2).sum() == 2
    finally:
        torch._C._dispatch_tls_set_dispatch_key_included(torch._C.DispatchKey.PreDispatch, before)


def test_one_thread_reads_and_other_threads_keep_the_users_setting() -> None:
    seen: list[int] = []
    other = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
    with torch_threads(3):
        with aside("cpu"):
            assert torch.get_num_threads() == 1
            other.start()
            other.join()
        assert (torch.get_num_threads(), seen) == (3, [3])


def test_a_new_thread_keeps_the_users_setting_too() -> None:
    seen: list[int] = []

    def act() -> None:
        with aside("cpu"):
            torch.rand(200_000).sum()
        seen.append(torch.get_num_threads())

    thread = threading.Thread(target=act)
    with torch_threads(3):
        thread.start()
        thread.join()
    assert seen == [3]


def test_autocast_and_gradients_are_off_inside_and_restored_afterwards() -> None:
    x = torch.rand(3, 3, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        with aside("cpu"):
            inside = x @ x
        after = x @ x
    assert (inside.dtype, inside.requires_grad) == (torch.float32, False)
    assert (after.dtype, after.requires_grad) == (torch.bfloat16, True)
    with aside("cpu"):
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()


def test_gradients_are_on_again_after_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> bool:
        raise ValueError("modes")

    with torch_threads(3):
        monkeypatch.setattr(isolation, "_has_modes_before_dispatch", fails)
        with pytest.raises(ValueError, match="modes"), aside("cpu"):
            pass
        assert torch.is_grad_enabled()
        torch.rand(200_000).sum()
        assert torch.get_num_threads() == 3
