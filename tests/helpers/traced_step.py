"""One logged step of a model on fake CUDA tensors, traced."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch
from device_trace import Trace, Tracer
from torch import Tensor, nn
from torch._subclasses import FakeTensorMode

import fmapboard
from fmapboard.capture import attribution, collector, inputs, isolation, transfer
from fmapboard.capture.collector import ActivationCollector
from fmapboard.capture.guard import Guard
from fmapboard.session import selection
from fmapboard.session.session import StepSession
from fmapboard.writers.folder import MemoryWriter


class _Idle(torch.optim.Optimizer):
    """An optimizer whose steps change nothing."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__(model.parameters(), {})

    def step(self, closure: Any = None) -> None:  # type: ignore[override]  # takes no closure
        return


def _unchanged(tensor: Tensor, *args: Any, **options: Any) -> Tensor:
    return tensor


_INITIALIZERS = {
    name: _unchanged for name in dir(nn.init) if name.endswith("_") and not name.startswith("_")
}


def traced_step(
    make: Callable[[], nn.Module],
    shape: tuple[int, ...],
    *,
    autocast: torch.dtype | None = None,
    channels_last: bool = False,
    **options: Any,
) -> Trace:
    """What fmapboard does on the device in one logged step of training.

    There is no backward pass, which torch refuses for fake tensors where it is built with CUDA and
    there is no device: gradients are made up, and hooks on tensors are called by hand.

    Args:
        make: builds the model.
        shape: of the model's input.
        autocast: dtype of the autocast region around the forward pass, if any.
        channels_last: memory format of the weights and the input.
        options: as in ``fmapboard.watch``.
    """
    with FakeTensorMode(allow_non_fake_inputs=True):
        # Fake parameters have no values to initialize; under a tracer, a model may read some.
        with mock.patch.multiple(nn.init, **_INITIALIZERS), torch.device("cuda"), Tracer():
            model = make()
        images = torch.empty(shape, device="cuda")
        if channels_last:
            last = torch.channels_last if len(shape) == 4 else torch.channels_last_3d
            images = images.to(memory_format=last)
            for module in model.modules():  # `model.to()` cannot exchange fake parameters
                if len(getattr(module, "weight", torch.empty(0)).shape) == len(shape):
                    module.weight = nn.Parameter(module.weight.to(memory_format=last))
        optimizer = _Idle(model)
        tracer = Tracer()
        with _on_fake_tensors(tracer) as hooks:
            board = fmapboard.watch(model, writer=MemoryWriter(), every=1, **options)
            with tracer, board.step(0):
                mixed = autocast is not None
                with torch.autocast("cuda", dtype=autocast) if mixed else contextlib.nullcontext():
                    output = model(images)
                assert output.requires_grad
                for tensor, hook in reversed(hooks):
                    hook(torch.empty_like(tensor))
                for parameter in model.parameters():
                    parameter.grad = torch.empty_like(parameter)
                optimizer.step()
            board.close()
    trace: Trace = tracer.trace
    return trace


@contextlib.contextmanager
def _on_fake_tensors(tracer: Tracer) -> Iterator[list[tuple[Tensor, Callable[[Tensor], None]]]]:
    """Let fmapboard read fake tensors as if they were real; nothing arrives in the worker.

    Yields:
        The hooks on tensors that fmapboard has registered, which are not called.

    Raises:
        Exception: the first error that fmapboard would only have reported.
    """
    hooks: list[tuple[Tensor, Callable[[Tensor], None]]] = []
    errors: list[Exception] = []
    keep, close = ActivationCollector._keep, StepSession.close
    empty = torch.empty

    def noted(self: Any, call: Any, kind: Any, tensor: Tensor, *args: Any, **options: Any) -> None:
        tracer.trace.watched.append(tensor.nbytes)
        keep(self, call, kind, tensor, *args, **options)

    def closed(self: StepSession) -> None:
        close(self)

    def failed(self: Guard, about: str, error: Exception) -> None:
        errors.append(error)

    def perhaps_pinned(*size: Any, pin_memory: bool = False, **options: Any) -> Tensor:
        made = empty(*size, **options)
        if pin_memory:
            tracer.pin(made)
        return made

    def register(self: Tensor, hook: Callable[[Tensor], None]) -> None:
        hooks.append((self, hook))

    with contextlib.ExitStack() as patched:
        for where, name, replacement in (
            (ActivationCollector, "_keep", noted),
            (StepSession, "close", closed),
            (Guard, "failed", failed),
            (selection, "_call", _ignored),
            (attribution, "is_observable", _is_not_empty),
            (collector, "is_observable", _is_not_empty),
            (collector, "why_unread", _why_empty),
            (inputs, "is_observable", _is_not_empty),
            (isolation, "_set_dispatch_modes", _ignored),
            (torch, "empty", perhaps_pinned),
            (torch, "get_device_module", mock.MagicMock()),
            (torch.cuda.amp.common, "amp_definitely_not_available", lambda: False),
            (torch.cuda, "is_bf16_supported", lambda: True),
            (Tensor, "register_hook", register),
            (Tensor, "record_stream", _ignored),
        ):
            patched.enter_context(mock.patch.object(where, name, replacement))
        _forget_streams()
        patched.callback(_forget_streams)
        yield hooks
    if errors:
        raise errors[0]


def _forget_streams() -> None:
    """Empty the transfer's caches: streams of a real device do not mix with those of a mock."""
    for cached in vars(transfer).values():
        if hasattr(cached, "cache_clear"):
            cached.cache_clear()


def _is_not_empty(tensor: Tensor) -> bool:
    return tensor.numel() > 0


def _why_empty(tensor: Tensor) -> str | None:
    return None if tensor.numel() else "empty"


def _ignored(*args: Any) -> None:
    return
