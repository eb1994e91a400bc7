"""Messages end with what to do next."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import fmapboard
from fmapboard import FmapboardError, WriteError, intervene, silence
from fmapboard.cli.commands import serve
from fmapboard.errors import not_written, writing
from fmapboard.imaging.images import find_images
from fmapboard.imaging.models.load import load_model
from fmapboard.imaging.models.request import ModelRequest
from fmapboard.imaging.models.weight_files import read_file
from fmapboard.imaging.visualize import logged_for
from fmapboard.integrations.training_run import placed
from fmapboard.model_comparison.comparison import compared
from fmapboard.writers.folder import MemoryWriter
from fmapboard.writers.remote import RemoteDirectory


class Shape(nn.Module):
    """Returns no tensor."""

    def forward(self, x: Tensor) -> tuple[int, ...]:
        return tuple(x.shape)


class OfShape(nn.Module):
    """Has a layer that returns no tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(1, 2, 1)
        self.shape = Shape()

    def forward(self, x: Tensor) -> tuple[int, ...]:
        return self.shape(self.convolution(x))  # type: ignore[no-any-return]


def change_a_shape() -> None:
    model = OfShape()
    with intervene(model, {"shape": silence()}):
        model(torch.zeros(1, 1, 2, 2))


def change(layer: Any) -> None:
    model = nn.Sequential(nn.Conv2d(1, 2, 1))
    with intervene(model, {"0": layer}):
        model(torch.zeros(1, 1, 2, 2))


def change_a_missing_channel() -> None:
    change(silence(7))


def change_a_missing_axis() -> None:
    change(silence(0, channel_axis=4))


def attribution_of_a_missing_class() -> None:
    model = nn.Sequential(nn.Conv2d(1, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(8, 2))
    fmapboard.attribution(model, torch.zeros(1, 1, 2, 2), target=2)


def report_of_a_bucket() -> None:
    with logged_for(Path("report.html"), RemoteDirectory("gs://runs"), steps=1, say=print):
        pass


@pytest.mark.parametrize(
    ("call", "last_step"),
    [
        (
            lambda: load_model(ModelRequest("demo", model_args=["width=2"])),
            "takes no --model-arg; leave it out",
        ),
        (
            report_of_a_bucket,
            "not gs://runs: give the path of one as log_dir= (--logdir), or none",
        ),
        (
            lambda: compared(nn.Conv2d(1, 1, 1), nn.Conv2d(1, 1, 1), []),
            "no images to compare the models on; give at least one",
        ),
        (
            lambda: placed({"share_writer": True}, None, Path()),
            "no W&B run; give it one, or pass log_dir= instead",
        ),
        (change_a_shape, "no tensor that could be changed; name a layer inside or behind it"),
        (
            change_a_missing_channel,
            "there are 2 channels, 0…1 (outputs of Conv2d); give numbers of these",
        ),
        (change_a_missing_axis, "for shape [1, 2, 2, 2]; give one from 0 to 3"),
        (attribution_of_a_missing_class, "the model has 0…1; give one of these"),
        (lambda: find_images([Path(__file__).parent / "zzzzzz.qqq"]), "; check the path"),
        (lambda: read_file(Path(__file__).parent / "zzzzzz.qqq"), "; check the path"),
    ],
)
def test_an_error_says_what_to_do(call: Callable[[], Any], last_step: str) -> None:
    with pytest.raises(FmapboardError) as caught:
        call()
    assert str(caught.value).endswith(last_step)


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "; free some space there"),
        (errno.EDQUOT, "; free some space there"),
        (errno.EACCES, "; choose a directory of your own"),
        (errno.EROFS, "; choose a directory of your own"),
        (errno.ENOTDIR, "; choose a path without a file in it"),
        (errno.EEXIST, "; choose a path without a file in it"),
        (errno.EFBIG, r"; raise the limit on the size of files \(ulimit -f\)"),
        (errno.EIO, ""),
    ],
)
def test_what_cannot_be_written_is_said_with_the_reason_and_what_to_do(
    number: int, advice: str
) -> None:
    reason = os.strerror(number)
    said = rf"^cannot write to runs: {reason}{advice}$"
    with pytest.raises(WriteError, match=said), writing("to runs"):
        raise OSError(number, reason)
    assert str(not_written("a.png", ValueError("closed"))) == "cannot write a.png: closed"


def test_a_tensorboard_that_failed_is_followed_by_where_to_look(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(serve, "os", SimpleNamespace(name="nt", environ={}))
    monkeypatch.setattr(serve, "subprocess", SimpleNamespace(call=lambda command: 3))
    with pytest.raises(FmapboardError, match=r"ended with exit code 3; above is .* fmapboard doc"):
        serve.run_server(tmp_path, 0, open_browser=False)


@pytest.mark.usefixtures("errors_are_only_logged")
def test_a_check_that_fails_is_said_with_what_to_do(said: Callable[[], list[str]]) -> None:
    class Broken:
        kind = "broken"

        def __call__(self, record: object) -> list[Any]:
            raise ZeroDivisionError("no channels")

    model = nn.Conv2d(1, 2, 1)
    board = fmapboard.watch(model, writer=MemoryWriter(), every=1, checks=[Broken()])
    with board, board.step(0):
        model(torch.zeros(1, 1, 2, 2)).sum().backward()
    (message,) = [text for text in said() if "check broken" in text]
    assert message.endswith("the other checks go on. Correct it, or leave it out (checks=)")
