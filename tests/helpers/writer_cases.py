"""The built-in writers, each with a way to read back what it wrote."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from decoded_pictures import rgb_pixels
from PIL import Image
from tensorboard.backend.event_processing import tag_types
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util.tensor_util import make_ndarray
from torch.utils.tensorboard import SummaryWriter

from fmapboard.records import Histogram, LoggedStep, Picture, TabRecord, TaggedPictures
from fmapboard.render.palettes import palette
from fmapboard.writers import WandbWriter
from fmapboard.writers.folder import FolderWriter, MemoryWriter
from fmapboard.writers.tensorboard import SummaryWriterAdapter, TensorBoardWriter

Pixels = dict[str, list[np.ndarray]]
"""Tag -> one RGB picture per sample."""


def step_of(number: int) -> LoggedStep:
    """A step with three pictures (grey with two samples, palette, RGB) and one of all else."""
    noise = np.random.default_rng(number).integers(0, 250, (4, 40, 40, 3), np.uint8)
    grey = tuple(Picture(plane, tile=(40, 40)) for plane in noise[:2, ..., 0])
    return LoggedStep(
        number,
        1000.0 + number,
        pictures=(
            TaggedPictures("feature_maps_4x3x1x1/a.b", "feature_maps", grey, description="maps"),
            TaggedPictures(
                "gradients_of_maps_4x3x1x1/a.b", "gradients_of_maps",
                (Picture(noise[2, ..., 0], palette("magma").table, (40, 40)),),
            ),
            TaggedPictures("network_input/sample_0", "network_input", (Picture(noise[3]),)),
        ),
        histograms=(Histogram("activations/a.b", np.array([0.0, 1.0]), np.array([5.0])),),
        scalars={"gradient_norm/total": 2.5},
        records=(TabRecord("fmapboard/a.b", (b"{}", b"")),),
    )  # fmt: skip


def decoded(data: bytes) -> np.ndarray:
    """The pixels of a PNG file as RGB, u8 [H, W, 3]."""
    with Image.open(io.BytesIO(data)) as image:
        return np.array(image.convert("RGB"))


def rgb_of(step: LoggedStep) -> Pixels:
    return {p.tag: [rgb_pixels(picture) for picture in p.samples] for p in step.pictures}


class Case(ABC):
    """One writer, and how to read back what it wrote."""

    writer: Any

    @abstractmethod
    def __init__(self, place: Path) -> None: ...

    @abstractmethod
    def pictures(self, step: int) -> Pixels:
        """The pictures of a step that any reader finds now."""

    def end(self) -> None:
        self.writer.close()


class Memory(Case):
    def __init__(self, place: Path) -> None:
        self.writer = MemoryWriter()

    def pictures(self, step: int) -> Pixels:
        (logged,) = [s for s in self.writer.steps if s.step == step]
        return rgb_of(logged)


class Folder(Case):
    def __init__(self, place: Path) -> None:
        self.place = place
        self.writer = FolderWriter(place, per_step=True)

    def pictures(self, step: int) -> Pixels:
        folder = self.place / f"step{step}"
        names = {
            "feature_maps_4x3x1x1/a.b": ["a.b.png", "a.b_sample1.png"],
            "gradients_of_maps_4x3x1x1/a.b": ["gradients_of_maps_a.b.png"],
            "network_input/sample_0": ["network_input_sample_0.png"],
        }
        assert sorted(p.name for p in folder.iterdir()) == sorted(
            file for files in names.values() for file in files
        )
        return {
            tag: [decoded((folder / file).read_bytes()) for file in files]
            for tag, files in names.items()
        }


class Events(Case):
    def __init__(self, place: Path) -> None:
        self.place = place
        self.writer = TensorBoardWriter(place)

    def pictures(self, step: int) -> Pixels:
        accumulator = EventAccumulator(str(self.place), {tag_types.TENSORS: 0}).Reload()
        found = {}
        for tag in accumulator.PluginTagToContent("images"):
            (event,) = [e for e in accumulator.Tensors(tag) if e.step == step]
            found[tag] = [decoded(data) for data in make_ndarray(event.tensor_proto)[2:]]
        return found


class Adapter(Events):
    def __init__(self, place: Path) -> None:
        self.place = place
        self.users = SummaryWriter(str(place))
        self.writer = SummaryWriterAdapter(self.users)

    def end(self) -> None:
        super().end()
        self.users.close()


class Wandb(Case):
    """A real run, offline; the pictures are read from the files that it stores."""

    def __init__(self, place: Path) -> None:
        pytest.importorskip("wandb")
        from wandb_runs import offline_run

        self._run, self._rows = offline_run(place), list[dict[str, Any]]()
        self.disabled, self.define_metric = False, self._run.define_metric
        self.writer = WandbWriter(self, commit=True)

    @property
    def step(self) -> int:
        return int(self._run.step)

    def log(self, row: dict[str, Any], commit: bool) -> None:
        self._run.log(row, commit=commit)
        self._rows.append(row)

    def pictures(self, step: int) -> Pixels:
        (row,) = [row for row in self._rows if row.get("fmapboard/step") == step]
        lists = {tag: value for tag, value in row.items() if isinstance(value, list)}
        return {
            tag: [np.array(each.image.convert("RGB")) for each in images]
            for tag, images in lists.items()
        }

    def end(self) -> None:
        super().end()
        self._run.finish()
