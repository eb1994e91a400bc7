"""``visualize(embedding=...)``: a layer's outputs as vectors with thumbnails for the Projector."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from google.protobuf import text_format
from PIL import Image
from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig
from torch import nn
from torch.nn import functional

import fmapboard
from fmapboard.demo.bundled import bundled
from fmapboard.imaging.models.load import load_model
from fmapboard.imaging.models.request import ModelRequest


class Shared(nn.Module):
    """A convolution of stride 8 whose activation runs twice."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv = nn.Conv2d(3, 6, 8, stride=8)
        self.relu = nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.adaptive_avg_pool2d(self.relu(self.relu(self.conv(x)) - 0.1), 1)


@pytest.fixture(scope="module")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve crops of bundled photographs."""
    folder = tmp_path_factory.mktemp("photographs")
    for name in ("chelsea", "coffee", "brick", "rocket"):
        with Image.open(bundled("photographs") / f"{name}.jpg") as image:
            for number in range(3):
                left = 40 * number
                image.crop((left, 20, left + 160, 120)).save(folder / f"{name} {number}.png")
    return folder


def listed(run: Path) -> dict[str, ProjectorConfig]:
    config = text_format.Parse((run / "projector_config.pbtxt").read_text(), ProjectorConfig())
    return {one.tensor_name: one for one in config.embeddings}


def test_the_projector_gets_vectors_labels_and_thumbnails(
    photographs: Path, tmp_path: Path
) -> None:
    demo = load_model(ModelRequest("demo"))
    for layer in ("conv2", "relu4", "conv2"):
        done = fmapboard.visualize(
            demo.model, photographs, transform=demo.preprocessing, log_dir=tmp_path,
            layers="conv1", embedding=layer,
        )  # fmt: skip
    line = "Projector: 12 vectors of 32 values from conv2, averaged over 64×64 positions"
    assert done.projector.startswith(line)
    found = listed(tmp_path)
    assert list(found) == ["relu4", "conv2"]
    labels = (tmp_path / found["conv2"].metadata_path).read_text().splitlines()
    names = ("brick", "chelsea", "coffee", "rocket")
    assert labels == [f"{name} {number}.png" for name in names for number in range(3)]
    vectors = np.loadtxt(tmp_path / found["conv2"].tensor_path, delimiter="\t")
    assert vectors.shape == tuple(found["conv2"].tensor_shape) == (12, 32)
    with Image.open(tmp_path / found["conv2"].sprite.image_path) as sheet:
        assert sheet.size == (4 * 128, 4 * 128)
        own = sheet.crop((3 * 128, 128, 4 * 128, 2 * 128))  # the 8th: coffee 1
        with Image.open(photographs / "coffee 1.png") as image:
            drawn = np.asarray(image.crop((30, 0, 130, 100)).resize((128, 128)), float)
    assert np.corrcoef(np.asarray(own, float).ravel(), drawn.ravel())[0, 1] > 0.9


def test_the_vectors_are_the_average_over_space_of_the_call_that_is_named(tmp_path: Path) -> None:
    model, images = Shared(), torch.rand(5, 3, 16, 32)
    done = fmapboard.visualize(
        model, images, log_dir=tmp_path, embedding="relu.call2", batch_size=2, layers="conv"
    )
    expected = model(images)[..., 0, 0].detach().numpy()
    entry = listed(tmp_path)["relu.call2"]
    np.testing.assert_allclose(np.loadtxt(tmp_path / entry.tensor_path), expected, rtol=1e-6)
    assert done.projector == (
        "Projector: 5 vectors of 6 values from relu.call2, averaged over 2×4 positions, since the "
        "output is not a vector"
    )
    assert repr(done).endswith(done.projector)


def test_a_vector_is_not_averaged_and_without_an_image_there_is_no_thumbnail(
    tmp_path: Path,
) -> None:
    model = nn.Sequential(nn.Conv2d(12, 4, 3), nn.Flatten(), nn.Linear(16, 5))
    done = fmapboard.visualize(
        model, torch.rand(2, 12, 4, 4), log_dir=tmp_path, embedding="2", out=tmp_path / "png"
    )
    assert done.projector == (
        "Projector: 2 vectors of 5 values from 2, without thumbnails: the input is no image"
    )
    assert not listed(tmp_path)["2"].HasField("sprite")


@pytest.mark.parametrize(
    ("layer", "out", "message"),
    [
        ("rellu", None, "no layer 'rellu' among 3; closest: relu"),
        ("relu", "png", "embedding needs a local run directory for the files that TensorBoard's"),
        ("xyzzyx", None, "no layer 'xyzzyx' among 3; there are: "),
        ("relu.call3", None, "did not run, or returned no tensor; name another layer as embedd"),
    ],
)
def test_what_cannot_be_embedded_is_refused(
    tmp_path: Path, layer: str, out: str | None, message: str
) -> None:
    place = {"log_dir": tmp_path / "run"} if out is None else {"out": tmp_path / out}
    with pytest.raises(fmapboard.ConfigurationError) as error:
        fmapboard.visualize(Shared(), torch.rand(1, 3, 16, 16), embedding=layer, **place)
    assert message in str(error.value)
    if "call3" not in layer:
        assert list(tmp_path.iterdir()) == []
