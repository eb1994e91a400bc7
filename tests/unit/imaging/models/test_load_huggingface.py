"""Models of Hugging Face are built from a folder, with their weights and preprocessing."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from loaded_model import first_convolution, input_image

from fmapboard.errors import (
    CheckpointError,
    ConfigurationError,
    DownloadError,
    MissingExtra,
    UnknownModel,
)
from fmapboard.imaging.models.load import load_model
from fmapboard.imaging.models.preprocessing import Preprocessing
from fmapboard.imaging.models.request import ModelRequest

SMALL = transformers.ResNetConfig(
    embedding_size=8, hidden_sizes=[8, 8], depths=[1, 1], num_labels=3
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A classifier of random weights, as ``save_pretrained`` leaves it."""
    torch.manual_seed(0)
    transformers.ResNetForImageClassification(SMALL).save_pretrained(tmp_path / "net")
    return tmp_path / "net"


def weights_of(folder: Path) -> Any:
    model = transformers.ResNetForImageClassification.from_pretrained(folder)
    return model.resnet.embedder.embedder.convolution.weight


def test_a_folder_is_loaded_with_its_weights(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    expected = weights_of(folder)
    capfd.readouterr()
    loaded = load_model(ModelRequest(f"hf:{folder}"))
    assert type(loaded.model).__name__ == "ResNetForImageClassification"  # as it was saved
    assert not loaded.model.training
    assert torch.equal(first_convolution(loaded).weight, expected)
    assert loaded.report is not None
    assert str(loaded.report) == "50 of 50 tensors loaded"
    assert loaded.preprocessing.source == "ImageNet mean and std (assumed)"
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("spec", ["./net", "net", "net/", "{folder}", "hf:net", "hf:./net"])
def test_a_folder_needs_no_prefix(folder: Path, spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    loaded = load_model(ModelRequest(spec.format(folder=folder)))
    assert torch.equal(first_convolution(loaded).weight, weights_of(folder))


def test_a_folder_with_its_image_processor_is_preprocessed_as_that_does(folder: Path) -> None:
    processor = transformers.ViTImageProcessor(
        size={"height": 40, "width": 48}, image_mean=[0.1, 0.2, 0.3], image_std=[0.4, 0.5, 0.6]
    )
    processor.save_pretrained(folder)
    recipe = load_model(ModelRequest(str(folder))).preprocessing
    assert (recipe.resize, recipe.size) == ((40, 48), (40, 48))
    assert (recipe.mean, recipe.std) == ((0.1, 0.2, 0.3), (0.4, 0.5, 0.6))
    assert recipe.source == "the model's image processor"


def test_a_class_that_is_no_model_of_transformers_is_not_called(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "architectures": ["pipeline"]}))
    assert (
        type(load_model(ModelRequest(str(folder), weights="none")).model).__name__ == "ResNetModel"
    )


def test_without_weights_they_are_random(folder: Path) -> None:
    loaded = load_model(ModelRequest(f"hf:{folder}", weights="none"))
    assert loaded.report is None
    assert not torch.equal(first_convolution(loaded).weight, weights_of(folder))


def test_a_checkpoint_is_loaded_into_a_model_of_hugging_face(folder: Path) -> None:
    loaded = load_model(ModelRequest(f"hf:{folder}", checkpoint=folder))
    assert torch.equal(first_convolution(loaded).weight, weights_of(folder))


def test_an_argument_changes_the_configuration(folder: Path) -> None:
    loaded = load_model(
        ModelRequest(f"hf:{folder}", weights="none", model_args=["embedding_size=16"])
    )
    assert first_convolution(loaded).out_channels == 16


def test_an_argument_that_the_configuration_lacks_is_refused(folder: Path) -> None:
    text = "--model-arg embeding_size: ResNetConfig has no such attribute; closest: embedding_size"
    with pytest.raises(ConfigurationError, match=text):
        load_model(ModelRequest(f"hf:{folder}", model_args=["embeding_size=16"]))
    with pytest.raises(ConfigurationError, match="has no such attribute; leave it out"):
        load_model(ModelRequest(f"hf:{folder}", model_args=["xyzzy=16"]))


def test_a_model_for_text_is_refused(tmp_path: Path) -> None:
    config = transformers.BertConfig(
        hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8
    )
    config.save_pretrained(tmp_path)
    with pytest.raises(ConfigurationError, match=r"\(BertModel\) takes input_ids, not images"):
        load_model(ModelRequest(f"hf:{tmp_path}", weights="none"))


@pytest.mark.parametrize("place", ["config.json", "preprocessor_config.json"])
def test_code_in_a_folder_is_never_run_nor_asked_about(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setattr("builtins.input", lambda _: "y")  # somebody who agrees to everything
    (folder / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    own = {"AutoConfig": "own.A", "AutoModel": "own.B", "AutoImageProcessor": "own.C"}
    if place == "config.json":
        (folder / place).write_text(json.dumps({"model_type": "own", "auto_map": own}))
        with pytest.raises(ConfigurationError, match="contains custom code"):
            load_model(ModelRequest(f"hf:{folder}"))
    else:
        (folder / place).write_text(json.dumps({"image_processor_type": "C", "auto_map": own}))
        assert (
            load_model(ModelRequest(f"hf:{folder}")).preprocessing.source
            == "ImageNet mean and std (assumed)"
        )
    assert not (tmp_path / "ran").exists()


def test_a_missing_folder_is_an_unknown_model() -> None:
    with pytest.raises(
        UnknownModel, match=r"no model './none'; also .* a folder of save_pretrained"
    ):
        load_model(ModelRequest("./none"))


def test_a_folder_above_the_saved_one_lacks_a_configuration(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"cannot build .*/test_a.*in its config\.json"):
        load_model(ModelRequest(str(folder.parent)))


@pytest.mark.parametrize("spec", ["model.safetensors", "./model.safetensors"])
def test_a_file_is_no_model(folder: Path, spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    text = "is a file; name the network as --model, .*, and give a file of weights as --checkpoint"
    with pytest.raises(UnknownModel, match=text):
        load_model(ModelRequest(spec))


def test_the_configuration_names_the_classes_of_predictions(folder: Path) -> None:
    loaded = load_model(ModelRequest(str(folder)))
    assert loaded.classes == ["LABEL_0", "LABEL_1", "LABEL_2"]
    assert load_model(ModelRequest(str(folder), checkpoint=folder)).classes == ()


def test_a_folder_without_weights_is_reported_in_one_line(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"damaged")
    text = r"could not load the weights of '.*/net' \(.*\); use .*--weights none for random ones"
    with pytest.raises(CheckpointError, match=text) as damaged:
        load_model(ModelRequest(str(folder)))
    (folder / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match=text) as missing:
        load_model(ModelRequest(str(folder)))
    assert "\n" not in f"{damaged.value}{missing.value}"


def test_weights_that_do_not_fit_an_argument_are_reported(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"cannot build .* num_labels=7: .*--weights none"):
        load_model(ModelRequest(str(folder), model_args=["num_labels=7"]))


def test_offline_the_error_says_so_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise ConnectionRefusedError("no network in tests")

    monkeypatch.setattr("socket.create_connection", refuse)
    with pytest.raises(
        DownloadError, match=r"weights of 'hf:some/net' .*couldn't.*connect"
    ) as caught:
        load_model(ModelRequest("hf:some/net"))
    assert "\n" not in str(caught.value)


def test_without_transformers_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtra, match=r"Run: pip install transformers accelerate$"):
        load_model(ModelRequest("hf:some/net"))


PROCESSORS: dict[str, Any] = {
    "ConvNext, small": ("ConvNextImageProcessor", {"size": {"shortest_edge": 224}}),
    "ConvNext, large": ("ConvNextImageProcessor", {"size": {"shortest_edge": 384}}),
    "ViT": ("ViTImageProcessor", {}),
    "Bit": ("BitImageProcessor", {"size": {"shortest_edge": 256}}),
    "not normalized": ("ViTImageProcessor", {"do_normalize": False}),
}


@pytest.mark.each_once
@pytest.mark.parametrize("case", PROCESSORS)
@pytest.mark.parametrize("size", [(300, 420), (500, 260)])
def test_the_input_is_what_the_image_processor_makes(case: str, size: tuple[int, int]) -> None:
    name, options = PROCESSORS[case]
    processor = getattr(transformers, name)(**options)
    image = input_image(*size)
    theirs = torch.as_tensor(processor(image, return_tensors="pt")["pixel_values"][0])
    ours = Preprocessing.from_huggingface(processor.to_dict())(image)
    assert ours.shape == theirs.shape
    assert (ours - theirs).abs().mean().item() < 0.01


def test_the_configuration_says_how_many_channels_an_image_has(tmp_path: Path) -> None:
    grey = transformers.ResNetConfig(**{**SMALL.to_dict(), "num_channels": 1})
    grey.save_pretrained(tmp_path)
    transformers.ViTImageProcessor().save_pretrained(tmp_path)
    recipe = load_model(ModelRequest(str(tmp_path), weights="none")).preprocessing
    assert (recipe.channels, recipe.mean, recipe.std) == (1, (0.5,), (0.5,))


def test_a_detectors_image_is_not_cropped() -> None:
    size = {"shortest_edge": 800, "longest_edge": 1333}
    config = {"size": size, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    assert Preprocessing.from_huggingface(config)(input_image(90, 70)).shape == (3, 320, 411)
