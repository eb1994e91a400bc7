"""The checks that `model_sweep.py` runs on each third-party model.

With random weights: the output of `extract` for every convolution must equal the return value of
its ``forward`` (``torch.equal``). A watched training step must equal an unwatched one of a deep
copy bit by bit: loss, gradients, parameters, buffers and random state.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from model_zoo import Case
from torch import Tensor, nn
from torch.nn import functional
from torch.utils._pytree import tree_leaves

import fmapboard
from fmapboard.model.kernel_shapes import CONVOLUTIONS
from fmapboard.records import LoggedStep
from fmapboard.writers.folder import MemoryWriter


def loss_of(output: Any) -> Tensor:
    """Sum of the cross-entropies of all output tensors with arbitrary labels, and of scalars.

    The scalars are the losses that a detector returns in train mode.
    """
    total = torch.zeros(())
    for leaf in tree_leaves(output):
        if isinstance(leaf, Tensor) and leaf.is_floating_point():
            total = total + (leaf if leaf.dim() == 0 else _cross_entropy(leaf))
    return total


def _cross_entropy(logits: Tensor) -> Tensor:
    shape = logits.shape[:1] + logits.shape[2:]
    labels = torch.arange(shape.numel()).reshape(shape) % logits.shape[1]
    return functional.cross_entropy(logits, labels)


@contextlib.contextmanager
def clones(model: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Collect clones of the return values of every convolution's `forward`, by name and call.

    Independent of hooks: the method is replaced on each convolution and restored at the end.
    """
    kept: dict[str, Tensor] = {}
    wrapped = [(n, m) for n, m in model.named_modules() if isinstance(m, CONVOLUTIONS)]

    def wrap(name: str, module: nn.Module) -> Callable[..., Tensor]:
        own, calls = module.forward, 0

        @functools.wraps(own)
        def forward(*args: Any, **kwargs: Any) -> Tensor:
            nonlocal calls
            output: Tensor = own(*args, **kwargs)
            calls += 1
            kept[name if calls == 1 else f"{name}.call{calls}"] = output.detach().clone()
            return output

        return forward

    for name, module in wrapped:
        module.forward = wrap(name, module)  # type: ignore[method-assign]
    try:
        yield kept
    finally:
        for _, module in wrapped:
            del module.forward


def equal(a: Tensor, b: Tensor) -> bool:
    """True if dtype, shape and all bits are the same."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return torch.equal(a, b) or _bits(a) == _bits(b)  # NaN is not equal to itself


def _bits(tensor: Tensor) -> bytes:
    flat = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
    return hashlib.blake2b(flat.numpy()).digest()


@dataclass(slots=True)
class Outcome:
    """The result for one model.

    Attributes:
        convolutions: number of convolutions that ran.
        calls: number of their calls.
        records: number of calls for which `extract` returned a tensor equal to its clone.
        pictures: number of Conv2d calls that were drawn.
        drawable: number of Conv2d calls with a non-empty output.
        same: True if the watched step was bitwise the unwatched one; None if it was not run.
        said: notes for the table.
        wrong: faults that were found.
        seconds: duration of the checks, s.
    """

    convolutions: int = 0
    calls: int = 0
    records: int = 0
    pictures: int = 0
    drawable: int = 0
    same: bool | None = None
    said: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0


def sweep(case: Case) -> Outcome:
    """Run both checks on one model."""
    begun, outcome = time.perf_counter(), Outcome()
    model = case.build().train()
    args = _fitting(case, model, outcome)
    check_extract(model, args, outcome)
    check_training(model, args, outcome)
    outcome.seconds = time.perf_counter() - begun
    return outcome


def _fitting(case: Case, model: nn.Module, outcome: Outcome) -> tuple[Any, ...]:
    """Arguments that the model accepts, in train mode or, if none work there, in eval mode.

    The model is left in that mode.
    """
    first: Exception | None = None
    sides = case.sides(model)
    for training in (True, False) if case.task != "detection" else (True,):
        model.train(training)
        for side in sides:
            before = {name: buffer.clone() for name, buffer in model.named_buffers()}
            try:
                args = case.arguments(side)
                with torch.no_grad():
                    loss_of(model(*args))
            except Exception as error:
                first = first or error
                continue
            finally:
                for name, buffer in model.named_buffers():
                    buffer.copy_(before[name])
            outcome.said += [f"{side} px"] + ([] if training else [f"in eval mode: {first}"])
            return args
    raise RuntimeError(f"accepts no input with a side of {sides} px: {first}")


def check_extract(model: nn.Module, args: tuple[Any, ...], outcome: Outcome) -> None:
    """Check that `extract` returns every call of a convolution, equal to its clone, in order."""
    kinds = [kind for kind in CONVOLUTIONS if any(isinstance(m, kind) for m in model.modules())]
    before = {name: buffer.clone() for name, buffer in model.named_buffers()}
    torch.manual_seed(2)
    with torch.no_grad(), clones(model) as expected:
        model(*args)
    for name, buffer in model.named_buffers():
        buffer.copy_(before[name])
    torch.manual_seed(2)
    got = fmapboard.extract(model, args, layers=kinds)
    outcome.calls = len(expected)
    outcome.convolutions = len({label.partition(".call")[0] for label in expected})
    outcome.records = sum(label in got and equal(got[label], x) for label, x in expected.items())
    if not expected:
        outcome.wrong.append("no convolution ran")
    for label in expected:
        if label not in got:
            outcome.wrong.append(f"{label} ran and has no record")
        elif not equal(got[label], expected[label]):
            outcome.wrong.append(f"the record of {label} is not what forward returned")
    outcome.wrong += [f"{label} has a record and did not run" for label in got.keys() - expected]
    if not outcome.wrong and list(got) != list(expected):
        outcome.wrong.append("the records are in another order than the calls")


def check_training(model: nn.Module, args: tuple[Any, ...], outcome: Outcome) -> None:
    """Check that watching does not change a step, and that every Conv2d is logged correctly."""
    twin = copy.deepcopy(model)
    with clones(twin) as kept:
        plain = train_step(twin, args)
    drawn = {
        label: output
        for label, output in kept.items()
        if isinstance(twin.get_submodule(label.partition(".call")[0]), nn.Conv2d)
    }
    del twin
    writer = MemoryWriter()
    watched = train_step(model, args, writer)
    differs = [name for name in plain if plain[name] != watched.get(name)]
    outcome.same = not differs and plain.keys() == watched.keys()
    if not outcome.same:
        outcome.wrong.append(f"training differs in {', '.join(differs[:3])} ({len(differs)})")
    if len(writer.steps) != 1:
        outcome.wrong.append(f"{len(writer.steps)} steps were logged, not 1")
        return
    check_step(writer.steps[0], drawn, outcome)


def train_step(
    model: nn.Module, args: tuple[Any, ...], writer: MemoryWriter | None = None
) -> dict[str, bytes]:
    """Run one step of SGD, watched if a writer is given, and hash everything that it changes."""
    torch.manual_seed(3)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    board = None
    if writer is not None:
        by_hand = not model.training  # steps that are counted must be in train mode
        board = fmapboard.watch(
            model,
            writer=writer,
            optimizer=None if by_hand else optimizer,
            every=1,
            inputs=True,
            activation_gradients=True,
        )
    with board.step(0) if board is not None and not model.training else contextlib.nullcontext():
        loss = loss_of(model(*args))
        loss.backward()
        optimizer.step()
    if board is not None:
        board.close()
    found = {"the loss": loss, "the random state": torch.get_rng_state()}
    found |= {f"parameter {name}": p for name, p in model.named_parameters()}
    found |= {f"gradient of {n}": p.grad for n, p in model.named_parameters() if p.grad is not None}
    found |= {f"buffer {name}": buffer for name, buffer in model.named_buffers()}
    return {name: _bits(tensor) for name, tensor in found.items()}


def check_step(step: LoggedStep, ran: dict[str, Tensor], outcome: Outcome) -> None:
    """Check pictures, histogram, and the exact minimum and maximum of each call of a Conv2d."""
    pictures = {
        (picture.layer_call.label, picture.kind): picture
        for picture in step.pictures
        if picture.layer_call is not None
    }
    numbers = {m.layer_call.label: m for m in step.statistics if m.kind == "feature_maps"}
    histograms = {histogram.tag: histogram for histogram in step.histograms}
    empty = [label for label, output in ran.items() if output.numel() == 0]
    if empty:
        outcome.said.append(f"{len(empty)} calls on no samples, nothing to draw")
    seen = {label: output for label, output in ran.items() if label not in empty}
    outcome.drawable = len(seen)
    for label, output in seen.items():
        picture, measured = pictures.get((label, "feature_maps")), numbers.get(label)
        outcome.pictures += picture is not None
        if picture is None or (label, "inputs") not in pictures:
            outcome.wrong.append(f"{label} ran and has no picture of its maps or inputs")
        if f"activations/{label}" not in histograms:
            outcome.wrong.append(f"{label} has no histogram")
        if measured is None or measured.statistics is None:
            outcome.wrong.append(f"{label} has no numbers")
        elif bool(output.isfinite().all()):
            extremes = (measured.statistics.minimum.min(), measured.statistics.maximum.max())
            if extremes != (output.min().item(), output.max().item()):
                outcome.wrong.append(f"{label}: minimum, maximum {extremes} are not its output's")
    followed = sum(kind == "gradients_of_maps" for _, kind in pictures)
    if followed != len(seen):
        outcome.said.append(f"gradients drawn of {followed} calls")
