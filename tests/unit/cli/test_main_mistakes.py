"""Mistakes on the command line and in Python: the sentence names the cause and what to do."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn
from torchvision import transforms

import fmapboard
from fmapboard.cli.main import run
from fmapboard.errors import ConfigurationError, ForwardError, ImageError, url_of
from fmapboard.imaging.images import ImageFile, read_image
from fmapboard.imaging.read_images import ReadImages

NETS = """
from torch import nn

class Small(nn.Module):
    def __init__(self, num_classes=6):
        super().__init__()
        self.conv, self.fc = nn.Conv2d(3, 4, 3), nn.Linear(4, num_classes)

    def forward(self, x):
        return self.fc(self.conv(x).mean((2, 3)))
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("mistaken_nets.py").write_text(NETS)
    Image.new("RGB", (24, 24), "teal").save("cat.png")
    scope: dict[str, type[nn.Module]] = {}
    exec(NETS, scope)
    torch.save(scope["Small"](10).state_dict(), "ten.pt")
    torch.save(scope["Small"]().state_dict(), "good.pt")
    Path("lfs.pt").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 9\n")
    Path("lfs.png").write_bytes(Path("lfs.pt").read_bytes())
    Path("page.safetensors").write_text("\n<!DOCTYPE html>\n<html></html>")
    Path("events.out.tfevents.1").touch()


MODEL = "cat.png --model mistaken_nets:Small"
COMMA = "give each on its own: layers=['conv', 'fc'], or --layers conv --layers fc"
FILE = "'good.pt' is a file; expected a directory"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            "visualize cat.png --model mistaken_nets.py",
            "'mistaken_nets.py' is a file; name the network as --model, such as nets:Net for the "
            "class Net in nets.py",
        ),
        ("visualize cat.png --model good.pt", "is a file; name the network as --model, "),
        (
            f"visualize {MODEL} --layers conv,fc --out o",
            f"no layer matches 'conv,fc' among 3; {COMMA}",
        ),
        (
            f"visualize --checkpoint good.pt ten.pt {MODEL}",
            "'ten.pt' is a checkpoint, not an image; quote a glob of checkpoints",
        ),
        (
            "visualize https://example.com/cat.jpg",
            "'https://example.com/cat.jpg' is a URL, which is not read; download the image first",
        ),
        (
            f"visualize {MODEL} --checkpoint https://example.com/a.pt",
            "URLs are not read: download the file first",
        ),
        (
            f"visualize {MODEL} --checkpoint lfs.pt",
            "'lfs.pt' is a Git LFS pointer, not the data; fetch that with: git lfs pull",
        ),
        ("visualize lfs.png", "'lfs.png' is a Git LFS pointer, not the data"),
        (f"visualize {MODEL} --checkpoint page.safetensors", "is a web page, not the data"),
        (
            f"visualize {MODEL} --checkpoint ten.pt",
            "; if the model was built with another number of classes: --model-arg num_classes=N",
        ),
        (f"visualize {MODEL} --logdir good.pt", FILE),
        (f"visualize {MODEL} --log-dir good.pt/deep/run", FILE),
        (f"visualize {MODEL} --out good.pt", FILE),
        (f"patches {MODEL} --out good.pt", FILE),
        (f"patches {MODEL} --logdir good.pt", FILE),
        (f"diff good.pt good.pt {MODEL} --out good.pt", FILE),
        (f"diff good.pt good.pt {MODEL} --logdir good.pt", FILE),
        ("demo --log-dir good.pt", FILE),
        ("serve good.pt", FILE),
        ("serve --logdir good.pt", FILE),
        ("serve --log-dir good.pt", FILE),
        ("serve events.out.tfevents.1", "'events.out.tfevents.1' is a file; its directory is '.'"),
        ("serve a --logdir b", "two directories: a and --logdir b; give only one"),
    ],
)
def test_a_mistake_is_bad_usage_and_the_cause_is_named(
    arguments: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_of:
        run(arguments.split())
    printed = capsys.readouterr().err
    assert said in printed
    assert printed.count("\n") == 1
    assert exit_of.value.code == 2


def test_the_advice_about_the_number_of_classes_works() -> None:
    arguments = f"visualize {MODEL} --checkpoint ten.pt --model-arg num_classes=10 --out maps"
    with pytest.raises(SystemExit) as exit_of:
        run(arguments.split())
    assert exit_of.value.code == 0


def test_what_is_a_url() -> None:
    assert url_of(Path("s3://bucket/a.png")) == "s3://bucket/a.png"
    assert url_of(Path("photos/a:b.png")) == ""
    assert url_of(Path("C:/photos/a.png")) == ""


class Flat(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.fc = nn.Conv2d(3, 4, 3, padding=1), nn.Linear(256, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.conv(x).flatten(1))


ONE = torch.rand(3, 8, 8)


def test_an_image_without_a_batch_axis_gets_the_advice_to_add_one() -> None:
    advice = r"the input \[3, 8, 8\] has no batch axis: add one with x\[None\]"
    with pytest.raises(ForwardError, match=advice):
        fmapboard.extract(Flat(), ONE)
    with pytest.raises(ForwardError, match=advice):
        fmapboard.extract_gradients(Flat(), ONE, loss=lambda output: output.sum())
    with pytest.raises(ForwardError, match=advice):
        fmapboard.layers(Flat(), ONE)
    with pytest.raises(ForwardError) as raised:
        fmapboard.extract(Flat(), torch.rand(1, 3, 9, 9))
    assert "batch axis" not in str(raised.value)


def test_a_probe_without_a_batch_axis_gets_the_advice_to_add_one() -> None:
    model = Flat()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    advice = r"on the probe of shape \[3, 8, 8\]: .*; add a batch axis: probe=x\[None\]"
    with pytest.raises(ConfigurationError, match=advice):
        fmapboard.watch(model, "run", optimizer=optimizer, probe=ONE)


def test_a_transform_is_a_normalization() -> None:
    transform = transforms.Normalize([0.5] * 3, [0.25] * 3)
    model, images = Flat(), (torch.rand(2, 3, 8, 8) - 0.5) / 0.25
    for number, given in enumerate((transform, ([0.5] * 3, [0.25] * 3))):
        fmapboard.visualize(model, images, normalization=given, out=f"maps{number}")
        fmapboard.patches(model, images, normalization=given, out=f"crops{number}")
    for name in ("maps{}/image0/network_input_sample_0.png", "crops{}/patches_conv.png"):
        one, other = (np.asarray(Image.open(name.format(number))) for number in (0, 1))
        assert (one == other).all()
    with pytest.raises(ConfigurationError, match=r"expected \(mean, std\)"):
        fmapboard.visualize(Flat(), images, normalization=0.5)  # type: ignore[arg-type]


def dark(name: str, peak: int) -> None:
    Image.fromarray(np.full((24, 24), peak, np.uint16)).save(name)


def test_a_16_bit_image_of_12_bit_values_is_named(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    Path("scans").mkdir()
    for number, peak in enumerate((2621, 4095, 60_000, 0)):
        dark(f"scans/a{number}.png", peak)
    said = (
        "a0.png: its brightest pixel is 4.0 % of 16 bits, so it is drawn dark, and 1 more are "
        "alike; multiply the values of 12-bit images by 16 first"
    )
    with pytest.raises(SystemExit) as exit_of:
        run(["visualize", "scans", *MODEL.split()[1:], "--out", "maps"])
    assert (exit_of.value.code, capsys.readouterr().err) == (0, f"{said}\n")
    with caplog.at_level(logging.WARNING, "fmapboard"):
        fmapboard.visualize(Flat(), "scans", transform=transforms.Compose(
            [transforms.Resize(8), transforms.ToTensor()]), out="maps2")  # fmt: skip
    assert [record.getMessage() for record in caplog.records] == [f"fmapboard: {said}"]


@pytest.mark.parametrize("command", ["patches", "diff"])
def test_every_command_names_a_16_bit_image_of_12_bit_values(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("scans").mkdir()
    for number in range(2):
        dark(f"scans/a{number}.png", 4095)
    files = ["good.pt", "good.pt"] if command == "diff" else []
    with pytest.raises(SystemExit) as exit_of:
        run([command, *files, "scans", *MODEL.split()[1:], "--out", "maps"])
    assert exit_of.value.code == 0
    assert capsys.readouterr().err.splitlines()[-1] == (
        "a0.png: its brightest pixel is 6.2 % of 16 bits, so it is drawn dark, and 1 more are "
        "alike; multiply the values of 12-bit images by 16 first"
    )


def test_an_8_bit_image_is_never_called_dark() -> None:
    Image.new("RGB", (24, 24), (3, 3, 3)).save("night.png")
    images = ReadImages([ImageFile(Path("night.png"), "night.png")], transforms.ToTensor())
    list(images.tensors())
    assert images.dark == {}


def test_a_checkpoint_is_no_image_in_python_either() -> None:
    with pytest.raises(ImageError, match="is a checkpoint, not an image"):
        fmapboard.visualize(Flat(), "good.pt")
    assert read_image(Path("cat.png")).size == (24, 24)
