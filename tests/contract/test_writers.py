"""What every writer promises, over all that are built in."""

from __future__ import annotations

import io
import resource
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from tensorboard.backend.event_processing import tag_types
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util.tensor_util import make_ndarray
from torch import nn
from torch.utils.tensorboard import SummaryWriter

import fmapboard
from fmapboard.errors import ConfigurationError, WriteError
from fmapboard.records import Histogram, LoggedStep, Picture, Raster, TabRecord
from fmapboard.render.grid import enlarge
from fmapboard.render.palettes import palette
from fmapboard.writers import Writer
from fmapboard.writers.folder import FolderWriter
from fmapboard.writers.memory import MemoryWriter
from fmapboard.writers.tensorboard import SummaryWriterAdapter, TensorBoardWriter, as_writer

Pixels = dict[str, list[np.ndarray]]
"""tag -> one picture a sample, as RGB."""


def step_of(number: int) -> LoggedStep:
    """Three pictures (grey with two samples, palette, RGB) and one of everything else."""
    noise = np.random.default_rng(number).integers(0, 250, (4, 40, 40, 3), np.uint8)
    grey = tuple(Raster(plane, tile=(40, 40)) for plane in noise[:2, ..., 0])
    return LoggedStep(
        number,
        1000.0 + number,
        pictures=(
            Picture("feature_maps_4x3x1x1/a.b", "feature_maps", grey, description="maps"),
            Picture(
                "gradients_of_maps_4x3x1x1/a.b", "gradients_of_maps",
                (Raster(noise[2, ..., 0], palette("magma").table, (40, 40)),),
            ),
            Picture("network_input/sample_0", "network_input", (Raster(noise[3]),)),
        ),
        histograms=(Histogram("activations/a.b", np.array([0.0, 1.0]), np.array([5.0])),),
        scalars={"gradient_norm/total": 2.5},
        records=(TabRecord("fmapboard/a.b", (b"{}", b"")),),
    )  # fmt: skip


def rgb(raster: Raster) -> np.ndarray:
    if raster.palette is not None:
        return raster.palette[raster.pixels]
    if raster.pixels.ndim == 3:
        return raster.pixels
    return np.repeat(raster.pixels[..., None], 3, axis=2)


def decoded(data: bytes) -> np.ndarray:
    with Image.open(io.BytesIO(data)) as image:
        return np.array(image.convert("RGB"))


def rgb_of(step: LoggedStep) -> Pixels:
    return {p.tag: [rgb(raster) for raster in p.rasters] for p in step.pictures}


class Case(ABC):
    """One writer, and how to read back what it wrote."""

    writer: Any

    @abstractmethod
    def __init__(self, place: Path) -> None: ...

    @abstractmethod
    def pictures(self, step: int) -> Pixels:
        """What can be read of a step's pictures now, by anybody."""

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


@pytest.fixture(params=[Memory, Folder, Events, Adapter], ids=lambda case: case.__name__)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Case]:
    case: Case = request.param(tmp_path / "place")
    yield case
    case.end()


def assert_same(found: Pixels, wanted: Pixels) -> None:
    assert found.keys() == wanted.keys()
    for tag, pictures in wanted.items():
        assert len(found[tag]) == len(pictures), tag
        assert all(map(np.array_equal, found[tag], pictures)), tag


def test_it_is_a_writer(case: Case) -> None:
    assert isinstance(case.writer, Writer)


def test_every_picture_of_every_step_can_be_read_after_flush(case: Case) -> None:
    for number in (0, 7):
        case.writer.write(step_of(number))
        case.writer.flush()
        assert_same(case.pictures(number), rgb_of(step_of(number)))
    case.writer.close()
    for number in (0, 7):
        assert_same(case.pictures(number), rgb_of(step_of(number)))


def test_flush_and_close_may_be_called_at_any_time_and_twice(case: Case) -> None:
    case.writer.flush()
    case.writer.write(step_of(0))
    for _ in range(2):
        case.writer.flush()
    for _ in range(2):
        case.writer.close()
    case.writer.flush()
    assert_same(case.pictures(0), rgb_of(step_of(0)))


def test_a_step_without_anything_is_no_error(case: Case) -> None:
    case.writer.write(LoggedStep(0, 0.0))
    case.writer.write(step_of(1))
    case.writer.flush()
    assert_same(case.pictures(1), rgb_of(step_of(1)))


def test_a_real_training_step_goes_through_it(case: Case) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(inplace=True))
    if isinstance(case, Folder):
        case.writer.per_step = False
    with fmapboard.watch(model, writer=case.writer) as board, board.step(0):
        model(torch.randn(1, 3, 70, 70))
    if isinstance(case, Memory):
        assert [p.tag for p in case.writer.steps[0].pictures] == [
            "feature_maps_4x3x3x3/0", "kernels_4x3x3x3/0", "network_input/sample_0",
        ]  # fmt: skip
    elif isinstance(case, Folder):
        assert sorted(p.name for p in case.place.iterdir()) == [
            "0.png", "kernels_0.png", "network_input_sample_0.png",
        ]  # fmt: skip
        with Image.open(case.place / "0.png") as image:
            assert image.size == (2 + 2 * 36, 2 + 2 * 36)
    else:
        assert set(case.pictures(0)) == {
            "feature_maps_4x3x3x3/0", "kernels_4x3x3x3/0", "network_input/sample_0",
        }  # fmt: skip


# -- the user's own writer -----------------------------------------------------------------------


def test_a_users_summary_writer_stays_open_and_gets_our_steps_beside_its_own(
    tmp_path: Path,
) -> None:
    with SummaryWriter(str(tmp_path)) as users:
        writer = as_writer(users)
        assert isinstance(writer, SummaryWriterAdapter)
        users.add_scalar("loss", 1.0, 0)
        writer.write(step_of(0))
        writer.close()
        users.add_scalar("loss", 0.5, 1)
    assert len(list(tmp_path.glob("*tfevents*"))) == 1
    accumulator = EventAccumulator(str(tmp_path)).Reload()
    assert [e.step for e in accumulator.Scalars("loss")] == [0, 1]
    (event,) = accumulator.Tensors("gradient_norm/total")
    assert (event.step, event.wall_time) == (0, 1000.0)
    assert make_ndarray(event.tensor_proto) == 2.5


@pytest.mark.parametrize("given", ["runs/x", 7, object()])
def test_what_is_no_writer_is_refused(given: Any) -> None:
    with pytest.raises(ConfigurationError) as error:
        as_writer(given)
    assert str(error.value) == (
        f"writer={type(given).__name__}: expected a torch.utils.tensorboard.SummaryWriter "
        "or an object with write, flush and close"
    )


def test_an_object_with_the_three_methods_is_a_writer_as_it_is() -> None:
    class Mine:
        def write(self, step: LoggedStep) -> None: ...

        def flush(self) -> None: ...

        def close(self) -> None: ...

    mine = Mine()
    assert as_writer(mine) is mine


@pytest.mark.parametrize("kind", [Events, Adapter])
def test_a_step_that_cannot_be_encoded_leaves_the_next_one_readable(
    kind: type[Events], tmp_path: Path
) -> None:
    case = kind(tmp_path)
    empty = Picture(
        "network_input/sample_0", "network_input", (Raster(np.empty((0, 4), np.uint8)),)
    )
    broken = LoggedStep(0, 0.0, pictures=(*step_of(0).pictures[:2], empty))
    with pytest.raises(ValueError, match="0×4 px cannot be a PNG"):
        case.writer.write(broken)
    case.writer.write(step_of(1))
    case.end()
    assert_same(case.pictures(1), rgb_of(step_of(1)))


# -- folders -------------------------------------------------------------------------------------


def picture(tag: str, value: int = 0, role: Any = "feature_maps") -> Picture:
    return Picture(tag, role, (Raster(np.full((40, 40), value, np.uint8), tile=(40, 40)),))


def test_files_of_a_folder_never_collide(tmp_path: Path) -> None:
    tags = ["feature_maps_1x1/a/b", "feature_maps_1x1/a_b", "feature_maps_2x2/A_b",
            "feature_maps_1x1/../../up", "feature_maps_1x1/.hidden"]  # fmt: skip
    writer = FolderWriter(tmp_path)
    writer.write(LoggedStep(0, 0.0, pictures=tuple(picture(t, i) for i, t in enumerate(tags))))
    names = [writer.files[tag][0].name for tag in tags]
    assert names == ["a_b.png", "a_b-2.png", "A_b-3.png", "_.._up.png", "hidden.png"]
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(names)
    assert [decoded((tmp_path / name).read_bytes())[0, 0, 0] for name in names] == [0, 1, 2, 3, 4]


def test_a_later_step_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    writer = FolderWriter(tmp_path)
    for number in (0, 1):
        writer.write(LoggedStep(number, 0.0, pictures=(picture("feature_maps_1x1/a", number),)))
    assert [p.name for p in tmp_path.iterdir()] == ["a.png"]
    assert decoded((tmp_path / "a.png").read_bytes())[0, 0, 0] == 1


def test_small_maps_are_enlarged_in_a_folder_and_nowhere_else(tmp_path: Path) -> None:
    small = Raster(np.arange(64, dtype=np.uint8).reshape(8, 8), tile=(8, 8))
    step = LoggedStep(0, 0.0, pictures=(Picture("feature_maps_1x1/a", "feature_maps", (small,)),))
    writer = FolderWriter(tmp_path / "folder")
    writer.write(step)
    assert np.array_equal(
        decoded((tmp_path / "folder" / "a.png").read_bytes()), rgb(enlarge(small))
    )
    events = Events(tmp_path / "events")
    events.writer.write(step)
    events.end()
    assert events.pictures(0)["feature_maps_1x1/a"][0].shape == (8, 8, 3)


def test_a_folder_that_cannot_be_made_is_an_error_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(WriteError, match=r"cannot write to .*/file: File exists"):
        FolderWriter(tmp_path / "file")


def test_a_picture_that_cannot_be_written_leaves_the_one_before_readable(tmp_path: Path) -> None:
    writer = FolderWriter(tmp_path)
    writer.write(LoggedStep(0, 0.0, pictures=(picture("feature_maps_1x1/a", 9),)))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50, limits[1]))
    try:
        with pytest.raises(WriteError, match=r"cannot write .*a\.png: File too large"):
            writer.write(LoggedStep(1, 0.0, pictures=(picture("feature_maps_1x1/a", 1),)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [p.name for p in tmp_path.iterdir()] == ["a.png"]
    assert decoded((tmp_path / "a.png").read_bytes())[0, 0, 0] == 9
