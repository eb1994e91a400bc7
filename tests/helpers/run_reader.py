"""Logged runs, read back with TensorBoard's Python loader."""

from __future__ import annotations

from pathlib import Path

from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator


def read(run: Path) -> EventAccumulator:
    """A run with every record kept, where TensorBoard would subsample."""
    accumulator = EventAccumulator(
        str(run),
        size_guidance={"tensors": 0},
        tensor_size_guidance=dict.fromkeys(("images", "histograms", "scalars"), 0),
    )
    accumulator.Reload()
    return accumulator


def tags_of(accumulator: EventAccumulator) -> list[str]:
    return list(accumulator.Tags()["tensors"])


def steps_of(accumulator: EventAccumulator, tag: str) -> list[int]:
    return [event.step for event in accumulator.Tensors(tag)]
