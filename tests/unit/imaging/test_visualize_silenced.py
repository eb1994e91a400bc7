"""`visualize --silence` draws what the next layer receives."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from fmapboard.cli.main import run_visualize

SAID = "what the next layer receives, after all forward hooks"


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


def visualize(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        run_visualize(list(arguments))
    printed = capsys.readouterr()
    return int(left.value.code or 0), printed.out, printed.err


@pytest.fixture
def photo(tmp_path: Path) -> str:
    """A red image."""
    Image.new("RGB", (32, 32), (250, 30, 20)).save(tmp_path / "photo.png")
    return str(tmp_path / "photo.png")


def test_a_silenced_channel_is_drawn_as_0(
    photo: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = visualize(
        capsys, photo, "--model", f"{__name__}:Scores", "--silence", "conv:0", "--out",
        str(tmp_path / "maps"), "--input-size", "16",
    )  # fmt: skip
    assert code == 0
    assert "\nsilenced: conv:0\n" in out
    assert " -1.51 … 0 " in out  # red is 0, the largest of the three


def test_the_maps_are_described_as_what_the_next_layer_receives(
    photo: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for model, flags, is_said in (
        ("Scores", ["--silence", "conv:0"], True),
        ("Scores", [], False),
        ("Hooked", ["--effective"], True),
        ("Hooked", [], False),
    ):
        logdir = tmp_path / f"{model}{len(flags)}"
        code, out, _ = visualize(
            capsys, photo, "--model", f"{__name__}:{model}", *flags, "--logdir", str(logdir)
        )
        assert code == 0
        run = EventAccumulator(str(logdir)).Reload()
        (tag,) = (tag for tag in run.Tags()["tensors"] if tag.startswith("feature_maps"))
        assert (SAID in run.SummaryMetadata(tag).summary_description) == is_said
        largest = re.search(r"… ([-\d.]+)", out)
        assert largest is not None
        red = (250 / 255 - 0.485) / 0.229
        expected = {("Scores", True): 0.0, ("Hooked", True): 2 * red}.get((model, is_said), red)
        assert float(largest[1]) == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("conv:9", "silence([9]) of 'conv': no channel 9: there are 3 channels, 0…2"),
        ("cnov:1", "no layer matches 'cnov' among 2; closest: conv"),
        ("conv:1,x", "--silence 'conv:1,x': expected LAYER:CHANNELS, such as layer1.0.conv1:3,17"),
        ("conv:", "--silence 'conv:': expected LAYER:CHANNELS"),
        (":1", "--silence ':1': expected LAYER:CHANNELS"),
        ("conv:1,1", "a channel is listed twice"),
    ],
)
def test_an_invalid_value_is_one_line_and_nothing_is_written(
    photo: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], value: str, said: str
) -> None:
    code, _, err = visualize(
        capsys, photo, "--model", f"{__name__}:Scores", "--silence", value, "--logdir",
        str(tmp_path / "run"),
    )  # fmt: skip
    assert code == 2
    assert said in err
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "run").exists()
