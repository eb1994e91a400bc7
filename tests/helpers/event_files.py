"""Small logged steps, written to event files and listed again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from torch.utils.tensorboard import SummaryWriter

from fmapboard.formats.tab_records import pack
from fmapboard.records import Histogram, LoggedStep, Picture, TabRecord, TaggedPictures
from fmapboard.writers.tensorboard import TensorBoardWriter


def noise_picture(step: int, side: int = 8) -> Picture:
    """A square picture of random pixels, the same for the same step."""
    noise = np.random.default_rng(step).integers(0, 256, (side, side), np.uint8)
    return Picture(noise, tile=(side, side))


def step_of(number: int, prefix: str = "", side: int = 8) -> LoggedStep:
    """A small logged step with one value of each kind."""
    picture = TaggedPictures(
        f"{prefix}feature_maps_1x1x1x1/conv", "feature_maps", (noise_picture(number, side),),
        description="maps",
    )  # fmt: skip
    counts = Histogram(f"{prefix}activations/conv", np.array([0.0, 1.0, 2.0]), np.array([3.0, 4.0]))
    blobs = pack({"layer": "conv", "step": number}, {"feature_maps.lo": np.zeros((1, 1))})
    return LoggedStep(
        number,
        1000.0 + number,
        pictures=(picture,),
        histograms=(counts,),
        scalars={f"{prefix}gradient_norm/total": number / 2},
        records=(TabRecord(f"{prefix}fmapboard/conv", blobs),),
    )


def write(directory: Path, *numbers: int, **options: Any) -> TensorBoardWriter:
    """Write steps and close the writer."""
    writer = TensorBoardWriter(directory, **options)
    for number in numbers:
        writer.write(step_of(number))
    writer.close()
    return writer


def steps_in(path: Path) -> list[int]:
    """The steps of all readable summaries of a file; every checksum is verified."""
    return [event.step for event in EventFileLoader(str(path)).Load() if event.summary.value]


def event_files(directory: Path) -> list[Path]:
    return sorted(directory.rglob("*tfevents*"))


def foreign(run: Path) -> None:
    """Write a run with pictures that are not fmapboard's."""
    with SummaryWriter(str(run)) as writer:
        for step in range(2):
            writer.add_scalar("loss", 0.5, step)
            writer.add_image("feature", torch.zeros(1, 4, 4), step)
