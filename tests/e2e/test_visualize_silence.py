"""`visualize --silence` draws what the next layer receives and prints both predictions."""

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


class NoScores(Scores):
    """Maps instead of scores."""

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(x)


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


def rows(printed: str) -> dict[str, tuple[float, float]]:
    """Class -> probability before and after, in per cent, as printed."""
    found = re.findall(r"^ *(\d+)(?: .*?)? +([\d.]+)% +([\d.]+)%\s*$", printed, re.M)
    return {number: (float(before), float(after)) for number, before, after in found}


def test_the_prediction_is_printed_before_and_after(
    photo: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = visualize(
        capsys, photo, "--model", f"{__name__}:Scores", "--silence", "conv:0", "--out",
        str(tmp_path / "maps"), "--input-size", "16",
    )  # fmt: skip
    assert code == 0
    assert "\nsilenced: conv:0\n" in out
    pixel = torch.tensor([250.0, 30.0, 20.0]) / 255
    scores = (pixel - torch.tensor([0.485, 0.456, 0.406])) / torch.tensor([0.229, 0.224, 0.225])
    silenced = scores * torch.tensor([0.0, 1.0, 1.0])
    expected = torch.stack([scores.softmax(0), silenced.softmax(0)], 1) * 100
    found = rows(out)
    assert list(found) == ["0", "2", "1"]  # the most probable one before comes first
    shown = torch.tensor([found[number] for number in ("0", "1", "2")])
    torch.testing.assert_close(shown, expected, rtol=0.0, atol=0.006)
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


def test_a_folder_is_summarized_and_a_network_without_scores_is_named(
    photo: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Image.new("RGB", (32, 32), (250, 200, 190)).save(tmp_path / "bright.png")
    common = (str(tmp_path), "--input-size", "16", "--logdir", str(tmp_path / "run"))
    code, out, _ = visualize(
        capsys, *common, "--model", f"{__name__}:Scores", "--silence", "conv:0"
    )
    assert code == 0
    assert "another class has the highest probability in 1 of 2 images" in out
    code, out, _ = visualize(
        capsys, *common, "--model", f"{__name__}:NoScores", "--silence", "conv"
    )
    assert code == 0
    assert "no prediction: the network returns no class scores [N, classes]" in out


def test_the_classes_of_the_bundled_network_have_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = visualize(capsys, "--silence", "block.*", "--out", str(tmp_path / "maps"))
    assert code == 0, out
    assert re.search(r"^ *2  *chelsea +[\d.]+% +[\d.]+%", out, re.M), out


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
