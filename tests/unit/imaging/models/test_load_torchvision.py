"""A torchvision model is found by name and comes with the preprocessing of its weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torchvision.models
from loaded_model import first_convolution, input_image
from PIL import Image

from fmapboard.errors import (
    ConfigurationError,
    DownloadError,
    UnknownModel,
)
from fmapboard.imaging.models.load import load_model, torchvision_names
from fmapboard.imaging.models.preprocessing import Preprocessing
from fmapboard.imaging.models.request import ModelRequest


def test_a_torchvision_model_comes_in_eval_mode_with_its_preprocessing() -> None:
    loaded = load_model(ModelRequest("squeezenet1_1", weights="none"))
    assert isinstance(loaded.model, torchvision.models.SqueezeNet)
    assert not loaded.model.training
    assert loaded.name == "squeezenet1_1"
    assert loaded.report is None
    assert loaded.preprocessing == Preprocessing(
        size=(224, 224),
        resize=256,
        mean=(0.485, 0.456, 0.406),
        std=(0.229, 0.224, 0.225),
        source="SqueezeNet1_1_Weights.IMAGENET1K_V1 (its preprocessing only)",
    )


@pytest.mark.each_once
@pytest.mark.parametrize(
    "entry",
    [
        torchvision.models.ResNet18_Weights.IMAGENET1K_V1,
        torchvision.models.ResNet50_Weights.IMAGENET1K_V2,
        torchvision.models.EfficientNet_B1_Weights.IMAGENET1K_V1,
        torchvision.models.EfficientNet_V2_S_Weights.IMAGENET1K_V1,
        torchvision.models.segmentation.FCN_ResNet50_Weights.DEFAULT,
    ],
)
@pytest.mark.parametrize("size", [(90, 70), (33, 500), (1, 1)])
def test_the_input_is_what_the_weights_own_transforms_make(
    entry: Any, size: tuple[int, int]
) -> None:
    image = input_image(*size)
    ours = Preprocessing.from_preset(entry.transforms(), "x")(image)
    assert torch.equal(ours, entry.transforms()(image))


def test_every_torchvision_preset_can_be_read() -> None:
    for name in torchvision_names():
        preset = torchvision.models.get_model_weights(name).DEFAULT.transforms()
        recipe = Preprocessing.from_preset(preset, "x")
        assert len(recipe.mean) == len(recipe.std) == recipe.channels == 3


def test_named_weights_bring_their_preprocessing(tmp_path: Path) -> None:
    path = tmp_path / "a.pth"
    torch.save(torchvision.models.mobilenet_v2(weights=None).state_dict(), path)
    loaded = load_model(ModelRequest("mobilenet_v2", weights="IMAGENET1K_V1", checkpoint=path))
    assert loaded.preprocessing.resize == 256
    assert loaded.preprocessing.source == (
        "MobileNet_V2_Weights.IMAGENET1K_V1 (its preprocessing only)"
    )
    assert load_model(ModelRequest("mobilenet_v2", weights="none")).preprocessing.resize == 232


def test_a_name_may_be_written_as_the_class() -> None:
    assert isinstance(
        load_model(ModelRequest("ResNet18", weights="none")).model, torchvision.models.ResNet
    )


def test_none_and_default_may_be_written_in_any_case() -> None:
    assert load_model(ModelRequest("squeezenet1_1", weights="None")).report is None
    with pytest.raises(DownloadError):
        load_model(ModelRequest("squeezenet1_1", weights="default"))


def test_an_unknown_name_lists_the_closest() -> None:
    text = r"no model 'resnet33'; closest: resnet34, .*; also accepted: timm:NAME, hf:NAME, a f"
    with pytest.raises(UnknownModel, match=text):
        load_model(ModelRequest("resnet33"))


def test_unknown_weights_list_the_known() -> None:
    text = (
        r"no weights 'V7' for 'resnet50': neither a file nor one of "
        r"IMAGENET1K_V1, IMAGENET1K_V2, DEFAULT, none"
    )
    with pytest.raises(ConfigurationError, match=text):
        load_model(ModelRequest("resnet50", weights="V7"))


@pytest.mark.parametrize(
    "name", ["r3d_18", "swin3d_t", "raft_small", "quantized_resnet18", "quantized_googlenet"]
)
def test_networks_for_clips_and_of_8_bit_numbers_are_unknown(name: str) -> None:
    with pytest.raises(UnknownModel, match=f"no model '{name}'"):
        load_model(ModelRequest(name, weights="none"))


def test_a_segmentation_model_takes_the_whole_picture_and_fetches_no_backbone() -> None:
    loaded = load_model(ModelRequest("lraspp_mobilenet_v3_large", weights="none"))
    assert loaded.preprocessing(input_image(104, 52)).shape == (3, 520, 1040)
    square = load_model(ModelRequest("lraspp_mobilenet_v3_large", weights="none", input_size=64))
    assert square.preprocessing(input_image()).shape == (3, 64, 64)


def test_a_detector_runs_on_a_small_image() -> None:
    name = "fasterrcnn_mobilenet_v3_large_fpn"
    loaded = load_model(ModelRequest(name, weights="none"))
    assert loaded.preprocessing(input_image(900, 600)).shape == (3, 320, 480)
    # Not normalized: the network does that itself.
    assert loaded.preprocessing(Image.new("RGB", (9, 9), "white")).unique().tolist() == [1]
    assert loaded.model.transform.min_size == (320,)
    small = load_model(ModelRequest(name, weights="none", input_size=64))
    seen: list[torch.Size] = []
    first_convolution(small).register_forward_pre_hook(lambda _, args: seen.append(args[0].shape))
    with torch.no_grad():
        small.model(small.preprocessing(input_image())[None])
    assert seen == [(1, 3, 64, 64)]


@pytest.mark.parametrize("name", ["googlenet", "inception_v3"])
def test_networks_that_warn_when_built_are_built_without_a_warning(name: str) -> None:
    loaded = load_model(ModelRequest(name, weights="none"))
    assert loaded.model.transform_input is True


def test_a_constructors_argument_reaches_torchvision() -> None:
    loaded = load_model(ModelRequest("squeezenet1_1", weights="none", model_args=["num_classes=7"]))
    assert loaded.model.num_classes == 7


def test_a_number_of_classes_that_pretrained_weights_rule_out_is_refused_with_a_fix() -> None:
    text = "cannot build 'squeezenet1_1' with num_classes=7: .*, or --weights none for random ones$"
    with pytest.raises(ConfigurationError, match=text):
        load_model(ModelRequest("squeezenet1_1", model_args=["num_classes=7"]))
