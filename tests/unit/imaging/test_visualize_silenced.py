"""`visualize` under `intervene`, or with ``--effective``, draws what the next layer receives."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch import Tensor, nn

import fmapboard
from fmapboard.cli.main import run_visualize

RECEIVED = "what the next layer receives, after all forward hooks"
RED = (250 / 255 - 0.485) / 0.229


class Scores(nn.Module):
    """Scores [N, 3] of the mean of each of the colours red, green and blue."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 1, bias=False)
        self.conv.weight.data.copy_(torch.eye(3)[..., None, None])

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(x).mean((2, 3))


class Hooked(Scores):
    """The same with a forward hook that doubles the maps."""

    def __init__(self) -> None:
        super().__init__()
        self.conv.register_forward_hook(lambda layer, args, output: output * 2)


def description(logdir: Path) -> str:
    """What TensorBoard's Images tab says of the only layer's feature maps."""
    run = EventAccumulator(str(logdir)).Reload()
    (tag,) = (tag for tag in run.Tags()["tensors"] if tag.startswith("feature_maps"))
    return str(run.SummaryMetadata(tag).summary_description)


@pytest.fixture
def photo(tmp_path: Path) -> str:
    """A red image."""
    Image.new("RGB", (32, 32), (250, 30, 20)).save(tmp_path / "photo.png")
    return str(tmp_path / "photo.png")


def test_a_silenced_channel_is_drawn_as_0_and_described_as_what_the_next_layer_receives(
    tmp_path: Path,
) -> None:
    model = Scores()
    image = torch.tensor([2.0, -1.0, -1.5])[None, :, None, None].expand(1, 3, 16, 16)
    with fmapboard.intervene(model, {"conv": fmapboard.silence([0])}):
        silenced = fmapboard.visualize(model, image, log_dir=tmp_path / "silenced")
    plain = fmapboard.visualize(model, image, log_dir=tmp_path / "plain")
    assert " -1.5 … 0 " in silenced.table  # red is 0, the largest of the three
    assert " -1.5 … 2 " in plain.table
    assert RECEIVED in description(tmp_path / "silenced")
    assert RECEIVED not in description(tmp_path / "plain")


@pytest.mark.parametrize(
    ("flags", "largest", "is_received"),
    [(["--effective"], 2 * RED, True), ([], RED, False)],
    ids=["effective", "as returned"],
)
def test_effective_maps_are_described_as_what_the_next_layer_receives(
    photo: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    flags: list[str],
    largest: float,
    is_received: bool,
) -> None:
    words = [photo, "--model", f"{__name__}:Hooked", "--logdir", str(tmp_path / "run")]
    with pytest.raises(SystemExit) as left:
        run_visualize([*words, *flags])
    assert left.value.code == 0
    assert (RECEIVED in description(tmp_path / "run")) == is_received
    drawn = re.search(r"… ([-\d.]+)", capsys.readouterr().out)
    assert drawn is not None
    assert float(drawn[1]) == pytest.approx(largest, abs=0.01)


@pytest.mark.parametrize("option", ["--silence", "--embedding"])
def test_options_that_only_python_has_are_refused(
    photo: str, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    with pytest.raises(SystemExit) as left:
        run_visualize([photo, option, "conv"])
    assert left.value.code == 2
    assert f"No such option '{option}'" in capsys.readouterr().err
