"""A timm model is found by name and tag, and comes with its preprocessing and weights."""

from __future__ import annotations

import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
import timm
import timm.data
import torch
from huggingface_hub import constants
from loaded_model import input_image

from fmapboard.errors import (
    ConfigurationError,
    DownloadError,
    MissingExtra,
    UnknownModel,
)
from fmapboard.imaging.models.load import load_model
from fmapboard.imaging.models.preprocessing import Preprocessing
from fmapboard.imaging.models.request import ModelRequest


def test_a_timm_model_comes_with_its_preprocessing() -> None:
    loaded = load_model(ModelRequest("timm:mobilenetv3_small_050", weights="none"))
    assert not loaded.model.training
    assert loaded.name == "timm:mobilenetv3_small_050"
    assert loaded.preprocessing.source == "timm pretrained_cfg"
    assert loaded.preprocessing.interpolation == "bicubic"
    assert loaded.preprocessing.resize == 256


@pytest.mark.each_once
@pytest.mark.parametrize(
    "config",
    [
        {"crop_pct": 0.875, "interpolation": "bicubic"},
        {"crop_pct": 0.95, "interpolation": "bilinear", "input_size": (3, 160, 160)},
        {"crop_pct": 1.0, "interpolation": "bicubic", "crop_mode": "squash"},
    ],
)
@pytest.mark.parametrize("size", [(90, 70), (33, 500)])
def test_the_input_is_what_timms_own_transform_makes(
    config: dict[str, Any], size: tuple[int, int]
) -> None:
    whole = timm.data.resolve_data_config({}, pretrained_cfg=config)
    theirs = timm.data.create_transform(**whole)(input_image(*size))
    assert torch.allclose(Preprocessing.from_timm(whole)(input_image(*size)), theirs, atol=1e-6)


def test_an_unknown_timm_name_lists_the_closest() -> None:
    with pytest.raises(UnknownModel, match="no model 'timm:resnet19'; closest: timm:resnet18,"):
        load_model(ModelRequest("timm:resnet19", weights="none"))


def test_an_unknown_timm_tag_is_an_unknown_model() -> None:
    with pytest.raises(UnknownModel, match=r"closest: .*timm:resnet18\.a1_in1k"):
        load_model(ModelRequest("timm:resnet18.a9_in1k", weights="none"))


def test_without_timm_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(MissingExtra, match=r"Run: pip install timm$"):
        load_model(ModelRequest("timm:resnet18"))


def test_a_failed_timm_download_is_reported_with_alternatives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise ConnectionRefusedError("no network in tests")

    monkeypatch.setattr("socket.create_connection", refuse)
    text = r"could not load the weights of 'timm:mobilenetv3_small_050' .*--weights none"
    with pytest.raises(DownloadError, match=text):
        load_model(ModelRequest("timm:mobilenetv3_small_050"))


@pytest.mark.parametrize(("status", "asked"), [(200, True), (403, True), (503, False), (0, False)])
def test_the_hub_is_asked_only_if_it_answers(
    monkeypatch: pytest.MonkeyPatch, status: int, asked: bool
) -> None:
    class Hub(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.send_response(status)
            self.end_headers()

        def log_message(self, *args: Any) -> None: ...

    offline: list[bool] = []

    def create(*args: Any, **kwargs: Any) -> None:
        offline.append(constants.HF_HUB_OFFLINE)
        raise OSError("no network in tests")

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(timm, "create_model", create)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with HTTPServer(("127.0.0.1", 0), Hub) as server:
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.handle_request)
        if status:
            thread.start()
        else:
            server.server_close()
        with pytest.raises(DownloadError):
            load_model(ModelRequest("timm:resnet18"))
        if status:
            thread.join()
    assert offline == [not asked]


def test_a_timm_tag_is_part_of_the_name() -> None:
    loaded = load_model(ModelRequest("timm:mobilenetv3_small_050.lamb_in1k", weights="none"))
    assert loaded.name == "timm:mobilenetv3_small_050.lamb_in1k"


def test_a_timm_model_without_pretrained_weights_says_so() -> None:
    with pytest.raises(DownloadError, match=r"No pretrained weights exist for .*--weights none"):
        load_model(ModelRequest(f"timm:{_without_weights()}"))


def _without_weights() -> str:
    having = {name.split(".")[0] for name in timm.list_models(pretrained=True)}
    small = timm.list_models("lcnet_*")  # the first of all has a billion parameters
    return next(name for name in (*small, *timm.list_models()) if name not in having)


def test_a_constructors_argument_reaches_timm() -> None:
    loaded = load_model(
        ModelRequest("timm:resnet18", weights="none", model_args=["num_classes=7", "in_chans=1"])
    )
    assert loaded.model.get_classifier().out_features == 7
    assert loaded.preprocessing.channels == 1


def test_an_argument_that_timm_does_not_know_is_reported_in_one_line() -> None:
    text = r"cannot build 'timm:resnet18' with numclasses=7: TypeError: .*'numclasses'"
    with pytest.raises(ConfigurationError, match=f"^{text}(. Did you mean .*)?$"):
        load_model(ModelRequest("timm:resnet18", weights="none", model_args=["numclasses=7"]))


def test_a_timm_models_input_has_the_requested_size() -> None:
    loaded = load_model(
        ModelRequest("timm:vit_tiny_patch16_224", weights="none", model_args=["img_size=96"])
    )
    assert loaded.preprocessing(input_image()).shape == (3, 96, 96)
