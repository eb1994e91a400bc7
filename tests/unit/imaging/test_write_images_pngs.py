"""The PNGs of an image: encoded once, before anything is written, as a folder writer makes them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from compressed_pictures import record_compressions
from reducers import reducer_of
from torch import nn

from fmapboard.image_passes import ImagePasses
from fmapboard.imaging import write_images
from fmapboard.imaging.write_images import ImageWriter
from fmapboard.records import InputImage, StepData
from fmapboard.session.step import PendingStep
from fmapboard.summary.build import SummaryBuilder
from fmapboard.writers.folder import FolderWriter, MemoryWriter
from fmapboard.writers.tensorboard import TensorBoardWriter


def pending(step: StepData) -> PendingStep:
    return PendingStep(step.step, 10, lambda: step)


def image() -> PendingStep:
    values = np.full((3, 40, 40), 0.5, np.float32)
    return pending(StepData(0, 0.0, inputs=(InputImage(0, values),)))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_nothing_of_an_image_is_written_if_one_of_its_pngs_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(picture: object) -> int:
        raise MemoryError("too large")

    monkeypatch.setattr(write_images, "enlargement", broken)
    board = MemoryWriter()
    with pytest.raises(MemoryError, match="too large"):
        list(ImageWriter(SummaryBuilder(), board, [tmp_path / "png"]).write([image()]))
    assert board.steps == []
    assert not (tmp_path / "png").exists()


@pytest.mark.parametrize("with_board", [True, False])
def test_files_hold_the_bytes_that_a_folder_writer_alone_makes(
    tmp_path: Path, with_board: bool
) -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3, stride=4))
    reducer = reducer_of(max_channels=None, max_tile=None)
    passes = ImagePasses(network, reducer, kernels=True)
    (alone,) = passes(torch.rand(1, 3, 42, 42))  # maps of 40 px, and of 10 px: enlarged
    step = alone.to_host()
    board = MemoryWriter() if with_board else None
    (written,) = ImageWriter(SummaryBuilder(), board, [tmp_path / "ours"]).write([pending(step)])
    FolderWriter(tmp_path / "theirs").write(SummaryBuilder()(step))
    expected = ["0.png", "1.png", "kernels_0.png", "kernels_1.png", "network_input_sample_0.png"]
    assert names(tmp_path / "ours") == names(tmp_path / "theirs") == expected
    for name in expected:
        here, there = (tmp_path / folder / name for folder in ("ours", "theirs"))
        assert here.read_bytes() == there.read_bytes(), name
    assert written.files == {name: [tmp_path / "ours" / f"{name}.png"] for name in ("0", "1")}


def test_a_picture_is_encoded_once_for_both_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compressed = record_compressions(monkeypatch)
    board = TensorBoardWriter(tmp_path / "run")
    list(ImageWriter(SummaryBuilder(), board, [tmp_path / "png"]).write([image()]))
    board.close()
    assert len(compressed) == 1
    assert names(tmp_path / "png") == ["network_input_sample_0.png"]


def test_every_png_except_that_of_a_first_record_is_encoded_in_the_pool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compressed = record_compressions(monkeypatch)
    network = nn.Conv2d(3, 4, 3)
    passes = ImagePasses(network, reducer_of(max_channels=None, max_tile=None))
    board = TensorBoardWriter(tmp_path / "run")
    folders: list[Path | None] = [tmp_path / "0", tmp_path / "1"]
    list(ImageWriter(SummaryBuilder(), board, folders).write(passes(torch.rand(2, 3, 12, 12))))
    board.close()
    in_pool = [thread for thread in compressed if thread.startswith("fmapboard-png")]
    assert len(in_pool) == 2 * 3  # the input once; the maps of 10 px as they are, and enlarged
    assert len(compressed) == len(in_pool) + 1  # the first step's record holds the maps again
