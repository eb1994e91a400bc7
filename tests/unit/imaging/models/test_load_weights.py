"""Weights of a named model come from a file, the download cache or a download."""

from __future__ import annotations

import io
import socket
import urllib.request
from email.message import Message
from pathlib import Path

import pytest
import torch
import torchvision.models
from loaded_model import first_convolution

from fmapboard.errors import (
    CheckpointError,
    ConfigurationError,
    DownloadError,
)
from fmapboard.imaging.models import load
from fmapboard.imaging.models.load import load_model
from fmapboard.imaging.models.request import ModelRequest

# -- weights files -------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["weights", "checkpoint"])
def test_a_file_of_weights_is_loaded_and_nothing_fetched(tmp_path: Path, option: str) -> None:
    torch.manual_seed(0)
    theirs = torchvision.models.squeezenet1_1(weights=None)
    path = tmp_path / "mine"
    torch.save({"state_dict": theirs.state_dict()}, path)
    if option == "weights":
        loaded = load_model(ModelRequest("squeezenet1_1", weights=str(path)))
    else:
        loaded = load_model(ModelRequest("squeezenet1_1", checkpoint=path))
    assert str(loaded.report) == "52 of 52 tensors loaded"
    assert torch.equal(first_convolution(loaded).weight, theirs.features[0].weight)


def test_two_files_of_weights_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.pth"
    path.touch()
    with pytest.raises(ConfigurationError, match="two weights files"):
        load_model(ModelRequest("resnet18", weights=str(path), checkpoint=path))


def test_a_missing_file_of_weights_is_reported() -> None:
    with pytest.raises(ConfigurationError, match=r"no weights 'mine\.pth' for .*: neither a file"):
        load_model(ModelRequest("resnet18", weights="mine.pth"))


def test_a_checkpoint_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.pth"
    torch.save(torchvision.models.squeezenet1_1(weights=None, num_classes=7).state_dict(), path)
    text = r"mismatch for classifier\.1\.weight: .*\[7, 512, 1, 1\].*\[1000, 512, 1, 1\]"
    with pytest.raises(CheckpointError, match=text):
        load_model(ModelRequest("squeezenet1_1", checkpoint=path))


# -- downloads -----------------------------------------------------------------------------------


def test_a_failed_download_is_reported_with_alternatives(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with pytest.raises(DownloadError) as caught:
        load_model(ModelRequest("squeezenet1_1"))
    assert str(caught.value) == (
        "could not load the weights of 'squeezenet1_1' (URLError: <urlopen error no network in "
        "tests>); use --weights FILE or --checkpoint FILE for local weights, or --weights none "
        "for random ones"
    )
    assert capsys.readouterr().out == ""  # torch.hub prints there
    assert not [p for p in (tmp_path / "torch_home").rglob("*") if p.is_file()]
    assert socket.getdefaulttimeout() is None


def test_a_host_that_does_not_answer_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "_TIMEOUT", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/a.pth"
        monkeypatch.setattr("torch.hub.urlopen", lambda *_: urllib.request.urlopen(url))
        with pytest.raises(DownloadError, match="timed out"):
            load_model(ModelRequest("squeezenet1_1"))


def test_a_download_with_another_hash_leaves_no_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Answer(io.BytesIO):
        def info(self) -> Message:
            return Message()

    monkeypatch.setattr("torch.hub.urlopen", lambda *_: Answer(b"junk"))
    with pytest.raises(DownloadError, match=r"could not load .*invalid hash value"):
        load_model(ModelRequest("squeezenet1_1"))
    assert not [p for p in (tmp_path / "torch_home").rglob("*") if p.is_file()]


def test_a_damaged_file_in_the_cache_is_named(tmp_path: Path) -> None:
    cache = tmp_path / "torch_home" / "hub" / "checkpoints"
    cache.mkdir(parents=True)
    (cache / "squeezenet1_1-b8a52dc0.pth").write_bytes(b"PK half a file")
    text = r"could not load the weights of 'squeezenet1_1' .*; delete .*1_1-b8a52dc0\.pth'"
    with pytest.raises(DownloadError, match=text):
        load_model(ModelRequest("squeezenet1_1"))


def test_weights_in_the_cache_are_loaded(tmp_path: Path) -> None:
    cache = tmp_path / "torch_home" / "hub" / "checkpoints"
    cache.mkdir(parents=True)
    theirs = torchvision.models.squeezenet1_1(weights=None)
    torch.save(theirs.state_dict(), cache / "squeezenet1_1-b8a52dc0.pth")
    loaded = load_model(ModelRequest("squeezenet1_1"))
    assert torch.equal(first_convolution(loaded).weight, theirs.features[0].weight)
    assert loaded.preprocessing.source == "SqueezeNet1_1_Weights.IMAGENET1K_V1"
