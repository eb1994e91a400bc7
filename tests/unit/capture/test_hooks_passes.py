"""Which forward passes hooks report: not a second, failed, refused, paused or traced one."""

from __future__ import annotations

import pytest
import torch
from hooked_model import Choosing, RecordingSink, X
from networks import two_convolutions
from torch import Tensor, nn

from fmapboard import HookRegistry


def test_a_second_forward_is_ignored_unless_the_policy_wants_to_start_over() -> None:
    model, sink = two_convolutions(), RecordingSink()
    registry = HookRegistry(model)
    policy = Choosing()
    registry.arm(sink, policy=policy)
    model(X)
    model(X)
    assert (sink.begun, sink.labels) == (1, ["0", "2"])
    policy.start_over = True
    model(X)
    registry.disarm()
    assert (sink.begun, sink.labels) == (2, ["0", "2"])


class _BreaksOnce(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.last = nn.Conv2d(1, 1, 1), nn.Conv2d(1, 1, 1)
        self.broken = True

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(x)
        if self.broken:
            raise MemoryError
        return self.last(x)  # type: ignore[no-any-return]


def test_a_forward_that_raised_does_not_count_and_the_next_is_recorded_from_the_start() -> None:
    model, sink = _BreaksOnce(), RecordingSink()
    registry = HookRegistry(model)
    registry.arm(sink)
    with pytest.raises(MemoryError):
        model(X)
    model.broken = False
    model(X)
    model(X)
    registry.disarm()
    assert (sink.begun, sink.labels) == (2, ["conv", "last"])


def test_a_refused_forward_reports_nothing_even_after_one_that_raised() -> None:
    model, sink = _BreaksOnce(), RecordingSink()
    registry = HookRegistry(model)
    registry.arm(sink, policy=Choosing(of_training=model))
    with pytest.raises(MemoryError):
        model(X)
    model.broken = False
    model.eval()(X)
    assert sink.labels == ["conv"]  # of the broken pass
    model.train()(X)
    registry.disarm()
    assert (sink.begun, sink.labels) == (2, ["conv", "last"])


def test_a_forward_in_eval_mode_in_between_is_refused() -> None:
    model, sink = two_convolutions(), RecordingSink()
    registry = HookRegistry(model)
    registry.arm(sink, policy=Choosing(of_training=model))
    model.eval()(X)
    assert (sink.begun, sink.labels) == (0, [])
    model.train()(X)
    model.eval()(X)
    registry.disarm()
    assert (sink.begun, sink.labels) == (1, ["0", "2"])


def test_if_the_roots_forward_is_bypassed_each_layers_first_call_is_reported() -> None:
    model, sink = two_convolutions(), RecordingSink()
    registry = HookRegistry(model)
    registry.arm(sink)
    for _ in range(2):
        x = X
        for layer in model:
            x = layer(x)
    registry.disarm()
    assert (sink.begun, sink.labels) == (0, ["0", "2"])


def test_nothing_is_reported_while_paused() -> None:
    model, sink = two_convolutions(), RecordingSink()
    registry = HookRegistry(model)
    registry.arm(sink)
    with registry.paused():
        model(X)
    assert (sink.begun, sink.labels) == (0, [])
    model(X)
    registry.disarm()
    assert sink.labels == ["0", "2"]


@pytest.mark.filterwarnings("ignore:.*torch.jit.trace")
def test_tracing_and_a_checkpoints_second_forward_report_nothing() -> None:
    model, sink = two_convolutions(), RecordingSink()
    registry = HookRegistry(model)
    policy = Choosing()
    registry.arm(sink, policy=policy)
    torch.jit.trace(model, X, check_trace=False)
    assert (sink.begun, sink.reported) == (0, [])
    from torch.utils.checkpoint import checkpoint

    policy.start_over = True
    checkpoint(model, X.clone().requires_grad_(), use_reentrant=False).sum().backward()
    registry.disarm()
    assert sink.begun == 1


def test_nothing_is_reported_while_a_cuda_graph_is_captured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, sink = two_convolutions(), RecordingSink()
    registry = HookRegistry(model)
    registry.arm(sink)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    model(X)
    assert (sink.begun, sink.reported) == (0, [])
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    model(X)
    registry.disarm()
    assert sink.begun == 1
