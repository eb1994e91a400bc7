"""`extract_batches` and `extract_to_folder`: whole data sets, batch by batch."""

from __future__ import annotations

import gc
import io
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from extracted_maps import assert_same_maps, random_images
from module_hooks import hook_count
from rich.console import Console
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from fmapboard import (
    ConfigurationError,
    LayerNotFound,
    WriteError,
    extract,
    extract_batches,
    extract_to_folder,
)
from fmapboard.extraction.of_batches import ArrayFile


def _net() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(inplace=True), nn.Conv2d(4, 2, 3)).eval()


def _loader(images: Tensor, size: int = 4) -> DataLoader[Any]:
    return DataLoader(TensorDataset(images, torch.arange(len(images))), batch_size=size)


def test_each_batch_of_images_and_labels_gives_what_extract_returns_for_its_images() -> None:
    model, images = _net(), random_images(8, batch=10)
    found = list(extract_batches(model, _loader(images)))
    assert [len(maps["0"]) for maps in found] == [4, 4, 2]
    for maps, batch in zip(found, images.split(4), strict=True):
        assert_same_maps(maps, extract(model, batch))


def test_nothing_is_kept_between_batches_and_no_hook_stays() -> None:
    model, alive, most = _net(), weakref.WeakSet[Tensor](), 0
    for maps in extract_batches(model, _loader(random_images(8, batch=12), 2)):
        alive.update(maps.values())
        most = max(most, len(alive))
        assert hook_count(model) == 0
    del maps
    gc.collect()
    assert most <= 4  # two layers of this batch and of the one before
    assert len(alive) == 0


def test_a_terminal_shows_the_progress_and_other_outputs_show_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    list(extract_batches(_net(), _loader(random_images(8))))
    assert capsys.readouterr().err == ""
    written = io.StringIO()
    monkeypatch.setattr(
        "fmapboard.extraction.of_batches.console",
        lambda **_: Console(file=written, force_terminal=True, width=80),
    )
    list(extract_batches(_net(), _loader(random_images(8), 1)))
    assert "extracting" in written.getvalue()
    assert "100%" in written.getvalue()
    length = len(written.getvalue())
    list(extract_batches(_net(), _loader(random_images(8)), progress=False))
    assert len(written.getvalue()) == length


@pytest.mark.parametrize(
    ("batch", "options"),
    [
        ({"image": torch.ones(1, 3, 8, 8)}, {}),
        (torch.ones(1, 3, 8, 8), {}),
        ([torch.ones(1, 3, 8, 8), 5], {}),
        ((5, torch.ones(1, 3, 8, 8)), {"arguments": lambda batch: batch[1]}),
        ((5, torch.ones(1, 3, 8, 8)), {"arguments": lambda batch: {"image": batch[1]}}),
    ],
    ids=["mapping", "tensor", "list", "function", "function of keywords"],
)
def test_a_batch_becomes_the_arguments_of_the_model(batch: Any, options: dict[str, Any]) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 2, 1)

        def forward(self, image: Tensor) -> Tensor:
            return self.conv(image)  # type: ignore[no-any-return]

    (maps,) = extract_batches(Net(), [batch], side="input", **options)
    assert torch.equal(maps["conv"], torch.ones(1, 3, 8, 8))


def test_a_folder_holds_one_array_per_layer_with_the_samples_of_all_batches(tmp_path: Path) -> None:
    model, images = _net(), random_images(8, batch=10)
    files = extract_to_folder(model, _loader(images), tmp_path / "maps", side="both")
    assert {name: path.name for name, path in files.items()} == {
        "0": "0.npy", "2": "2.npy", "0.input": "0.input.npy", "2.input": "2.input.npy",
    }  # fmt: skip
    expected = extract(model, images, side="both")
    for name in ("0", "2"):
        stored = np.load(files[name], mmap_mode="r")
        np.testing.assert_allclose(stored, expected[name].numpy(), atol=1e-6)
        inputs = np.load(files[f"{name}.input"])
        np.testing.assert_allclose(inputs, expected.inputs[name].numpy(), atol=1e-6)


def test_the_files_are_complete_after_each_batch(tmp_path: Path) -> None:
    images = random_images(8, batch=6)

    def interrupted() -> Any:
        yield images[:4]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        extract_to_folder(_net(), interrupted(), tmp_path)
    assert np.load(tmp_path / "0.npy").shape == (4, 4, 6, 6)


def test_a_second_call_into_the_same_folder_leaves_the_arrays_of_the_first(tmp_path: Path) -> None:
    first, second = random_images(8, batch=3), random_images(8, batch=2)
    files = extract_to_folder(_net(), [first], tmp_path, layers="0")
    with pytest.raises(ConfigurationError, match=r"holds 0\.npy already, .* overwrite=True"):
        extract_to_folder(_net(), [second], tmp_path, layers=["0", "2"])
    assert sorted(file.name for file in tmp_path.iterdir()) == ["0.npy"]
    assert len(np.load(files["0"])) == 3
    extract_to_folder(_net(), [second], tmp_path, layers="2")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["0.npy", "2.npy"]


def test_overwriting_leaves_an_array_that_was_opened_before(tmp_path: Path) -> None:
    first, second = random_images(8, batch=9), random_images(8, batch=2)
    files = extract_to_folder(_net(), [first], tmp_path, layers="0")
    opened = np.load(files["0"], mmap_mode="r")
    before = opened.copy()
    model = _net()
    extract_to_folder(model, [second], tmp_path, layers="0", overwrite=True)
    assert np.array_equal(opened, before)
    np.testing.assert_allclose(np.load(files["0"]), extract(model, second)["0"], atol=1e-6)


def test_the_header_does_not_move_when_the_number_of_rows_gets_longer(tmp_path: Path) -> None:
    file, row = ArrayFile(tmp_path / "a.npy", "a"), torch.arange(3.0)
    for number in range(12):
        file.append((row + number)[None])
    file.append(torch.zeros(988, 3))
    stored = np.load(tmp_path / "a.npy")
    assert stored.shape == (1000, 3)
    assert stored[11].tolist() == [11.0, 12.0, 13.0]
    assert not stored[12:].any()


@pytest.mark.parametrize(
    ("tensor", "expected"),
    [
        (torch.tensor([1.5], dtype=torch.bfloat16), np.array([1.5], np.float32)),
        (torch.tensor([1.5], dtype=torch.float8_e5m2), np.array([1.5], np.float32)),
        (torch.tensor([2], dtype=torch.int8), np.array([2], np.int8)),
        (torch.tensor([True]), np.array([True])),
        (torch.tensor([1 + 2j]).conj(), np.array([1 - 2j], np.complex64)),
        (torch.tensor([[0.0, 3.0]]).to_sparse(), np.array([[0.0, 3.0]], np.float32)),
        (torch.arange(6.0).view(2, 3).t(), np.array([[0, 3], [1, 4], [2, 5]], np.float32)),
    ],
)
def test_tensors_of_any_kind_are_stored(
    tmp_path: Path, tensor: Tensor, expected: np.ndarray[Any, Any]
) -> None:
    ArrayFile(tmp_path / "a.npy", "a").append(tensor)
    stored = np.load(tmp_path / "a.npy")
    assert stored.dtype == expected.dtype
    np.testing.assert_array_equal(stored, expected)


def test_several_tensors_of_a_layer_get_a_file_each_and_names_are_safe(tmp_path: Path) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.add_module("a/b", nn.LSTM(3, 5, batch_first=True))

        def forward(self, x: Tensor) -> Any:
            return self.get_submodule("a/b")(x)

    files = extract_to_folder(Net(), [torch.rand(2, 7, 3)], tmp_path)
    assert {name: path.name for name, path in files.items()} == {
        "a/b": "a_b.npy",
        "a/b.tensor2": "a_b.tensor2.npy",
        "a/b.tensor3": "a_b.tensor3.npy",
    }
    assert np.load(files["a/b"]).shape == (2, 7, 5)


def test_what_cannot_be_stored_is_refused(tmp_path: Path) -> None:
    sizes = [random_images(8), random_images(9)]
    with pytest.raises(ConfigurationError, match=r"0 is float32 \[2, 4, 7, 7\] in this batch"):
        extract_to_folder(_net(), sizes, tmp_path)

    class Sometimes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Conv2d(3, 3, 1), nn.Conv2d(3, 3, 1)

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.first(x)
            return self.second(out) if len(x) > 1 else out

    batches = [random_images(4), random_images(4, batch=1)]
    with pytest.raises(ConfigurationError, match=r"batch 1 ran other layers .* \(second\).*or use"):
        extract_to_folder(Sometimes(), batches, tmp_path)
    with pytest.raises(ConfigurationError, match=r"a single number per batch.*or use extract_b"):
        ArrayFile(tmp_path / "b.npy", "loss").append(torch.tensor(1.0))
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteError, match="cannot write"):
        extract_to_folder(_net(), [random_images(8)], tmp_path / "file")


def test_mistakes_are_refused_before_a_batch_is_read() -> None:
    def unread() -> Any:
        raise AssertionError
        yield

    with pytest.raises(LayerNotFound, match="no layer matches 'conv1'"):
        extract_batches(_net(), unread(), "conv1")
    with pytest.raises(ConfigurationError, match="expected an iterable of batches"):
        extract_batches(_net(), random_images(8))
    with pytest.raises(ConfigurationError, match="expected an iterable of batches"):
        extract_batches(_net(), 5)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=r"x=DataLoader: .* extract_batches"):
        extract(_net(), _loader(random_images(8)))
