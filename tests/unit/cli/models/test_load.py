"""A model is found by what was typed, gets the weights asked for, and says what its input is."""

from __future__ import annotations

import io
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from email.message import Message
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import timm
import timm.data
import torch
import torchvision.models
from huggingface_hub import constants
from PIL import Image
from torch import nn

from fmapboard.cli.models import pretrained
from fmapboard.cli.models.load import LoadedModel, Preprocessing, load_model
from fmapboard.cli.models.preprocessing import assumed, from_preset, from_timm
from fmapboard.demo import network
from fmapboard.errors import (
    CheckpointError,
    ConfigurationError,
    DownloadError,
    MissingExtra,
    UnknownModel,
)


@pytest.fixture(autouse=True)
def no_download(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every download fails as without a network, and none finds a file in a cache."""

    def fail(*args: Any, **kwargs: Any) -> None:
        raise urllib.error.URLError("no network in tests")

    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch_home"))
    monkeypatch.setattr("torch.hub.urlopen", fail)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """The current folder, importable afterwards by nobody else."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("nets"):
            del sys.modules[name]


def photograph(width: int = 90, height: int = 70) -> Image.Image:
    values = np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8)
    return Image.fromarray(values)


def first_convolution(loaded: LoadedModel) -> nn.Conv2d:
    return next(layer for layer in loaded.model.modules() if isinstance(layer, nn.Conv2d))


# -- torchvision ---------------------------------------------------------------------------------


def test_a_torchvision_model_comes_in_eval_mode_with_its_preprocessing() -> None:
    loaded = load_model("squeezenet1_1", weights="none")
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
    image = photograph(*size)
    ours = from_preset(entry.transforms(), "x", whole=320)(image)
    assert torch.equal(ours, entry.transforms()(image))


def test_every_torchvision_preset_can_be_read() -> None:
    for name in torchvision.models.list_models():
        preset = torchvision.models.get_model_weights(name).DEFAULT.transforms()
        recipe = from_preset(preset, "x", whole=320)
        assert len(recipe.mean) == len(recipe.std) == recipe.channels == 3


def test_named_weights_bring_their_preprocessing(tmp_path: Path) -> None:
    path = tmp_path / "a.pth"
    torch.save(torchvision.models.mobilenet_v2(weights=None).state_dict(), path)
    loaded = load_model("mobilenet_v2", weights="IMAGENET1K_V1", checkpoint=path)
    assert loaded.preprocessing.resize == 256
    assert loaded.preprocessing.source == (
        "MobileNet_V2_Weights.IMAGENET1K_V1 (its preprocessing only)"
    )
    assert load_model("mobilenet_v2", weights="none").preprocessing.resize == 232


def test_a_name_may_be_written_as_the_class() -> None:
    assert isinstance(load_model("ResNet18", weights="none").model, torchvision.models.ResNet)


def test_none_and_default_may_be_written_in_any_case() -> None:
    assert load_model("squeezenet1_1", weights="None").report is None
    with pytest.raises(DownloadError):
        load_model("squeezenet1_1", weights="default")


def test_an_unknown_name_lists_the_closest() -> None:
    text = (
        r"no model 'resnet33'; closest: resnet34, .*; also timm:NAME and package\.module:callable"
    )
    with pytest.raises(UnknownModel, match=text):
        load_model("resnet33")


def test_unknown_weights_list_the_known() -> None:
    text = (
        r"no weights 'V7' for 'resnet50': neither a file nor one of "
        r"IMAGENET1K_V1, IMAGENET1K_V2, DEFAULT, none"
    )
    with pytest.raises(ConfigurationError, match=text):
        load_model("resnet50", weights="V7")


@pytest.mark.parametrize("name", ["r3d_18", "swin3d_t", "raft_small"])
def test_networks_for_clips_are_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="takes clips or pairs of frames"):
        load_model(name, weights="none")


def test_quantized_networks_are_refused_with_the_float_one() -> None:
    with pytest.raises(ConfigurationError, match="use 'resnet18'"):
        load_model("quantized_resnet18", weights="none")


def test_a_segmentation_model_takes_the_whole_picture_and_fetches_no_backbone() -> None:
    loaded = load_model("lraspp_mobilenet_v3_large", weights="none")
    assert loaded.preprocessing(photograph(104, 52)).shape == (3, 520, 1040)
    square = load_model("lraspp_mobilenet_v3_large", weights="none", input_size=64)
    assert square.preprocessing(photograph()).shape == (3, 64, 64)


def test_a_detector_runs_on_a_small_picture() -> None:
    name = "fasterrcnn_mobilenet_v3_large_fpn"
    loaded = load_model(name, weights="none")
    assert loaded.preprocessing(photograph(900, 600)).shape == (3, 320, 480)
    # Not normalized: the network does that itself.
    assert loaded.preprocessing(Image.new("RGB", (9, 9), "white")).unique().tolist() == [1]
    assert loaded.model.transform.min_size == (320,)
    small = load_model(name, weights="none", input_size=64)
    seen: list[torch.Size] = []
    first_convolution(small).register_forward_pre_hook(lambda _, args: seen.append(args[0].shape))
    with torch.no_grad():
        small.model(small.preprocessing(photograph())[None])
    assert seen == [(1, 3, 64, 64)]


@pytest.mark.parametrize("name", ["googlenet", "inception_v3"])
def test_networks_with_a_warning_of_their_own_are_built_without_it(name: str) -> None:
    loaded = load_model(name, weights="none")
    assert loaded.model.transform_input is True


# -- files of weights ----------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["weights", "checkpoint"])
def test_a_file_of_weights_is_loaded_and_nothing_fetched(tmp_path: Path, option: str) -> None:
    torch.manual_seed(0)
    theirs = torchvision.models.squeezenet1_1(weights=None)
    path = tmp_path / "mine"
    torch.save({"state_dict": theirs.state_dict()}, path)
    if option == "weights":
        loaded = load_model("squeezenet1_1", weights=str(path))
    else:
        loaded = load_model("squeezenet1_1", checkpoint=path)
    assert str(loaded.report) == "52 of 52 tensors loaded"
    assert torch.equal(first_convolution(loaded).weight, theirs.features[0].weight)


def test_two_files_of_weights_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.pth"
    path.touch()
    with pytest.raises(ConfigurationError, match="two files of weights"):
        load_model("resnet18", weights=str(path), checkpoint=path)


def test_a_missing_file_of_weights_is_said_to_be_missing() -> None:
    with pytest.raises(CheckpointError, match=r"no such file of weights: 'mine\.pth'"):
        load_model("resnet18", weights="mine.pth")


def test_a_checkpoint_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.pth"
    torch.save(torchvision.models.squeezenet1_1(weights=None, num_classes=7).state_dict(), path)
    text = r"classifier\.1\.weight is 7x512x1x1 in the file and 1000x512x1x1 in the model"
    with pytest.raises(CheckpointError, match=text):
        load_model("squeezenet1_1", checkpoint=path)


# -- downloads -----------------------------------------------------------------------------------


def test_a_failed_download_says_the_ways_out(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with pytest.raises(DownloadError) as caught:
        load_model("squeezenet1_1")
    assert str(caught.value) == (
        "could not download the weights of 'squeezenet1_1' (URLError: <urlopen error no network in "
        "tests>); use --weights FILE or --checkpoint FILE for weights you have, or --weights none "
        "for random ones"
    )
    assert capsys.readouterr().out == ""  # torch.hub prints there
    assert not [p for p in (tmp_path / "torch_home").rglob("*") if p.is_file()]
    assert socket.getdefaulttimeout() is None


def test_a_silent_host_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pretrained, "_TIMEOUT", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/a.pth"
        monkeypatch.setattr("torch.hub.urlopen", lambda *_: urllib.request.urlopen(url))
        with pytest.raises(DownloadError, match="timed out"):
            load_model("squeezenet1_1")


def test_a_download_with_another_hash_leaves_no_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Answer(io.BytesIO):
        def info(self) -> Message:
            return Message()

    monkeypatch.setattr("torch.hub.urlopen", lambda *_: Answer(b"junk"))
    with pytest.raises(DownloadError, match=r"could not download .*invalid hash value"):
        load_model("squeezenet1_1")
    assert not [p for p in (tmp_path / "torch_home").rglob("*") if p.is_file()]


def test_a_damaged_file_in_the_cache_is_named(tmp_path: Path) -> None:
    cache = tmp_path / "torch_home" / "hub" / "checkpoints"
    cache.mkdir(parents=True)
    (cache / "squeezenet1_1-b8a52dc0.pth").write_bytes(b"PK half a file")
    text = r"could not load the weights of 'squeezenet1_1'; delete .*squeezenet1_1-b8a52dc0\.pth'"
    with pytest.raises(DownloadError, match=text):
        load_model("squeezenet1_1")


def test_weights_in_the_cache_are_loaded(tmp_path: Path) -> None:
    cache = tmp_path / "torch_home" / "hub" / "checkpoints"
    cache.mkdir(parents=True)
    theirs = torchvision.models.squeezenet1_1(weights=None)
    torch.save(theirs.state_dict(), cache / "squeezenet1_1-b8a52dc0.pth")
    loaded = load_model("squeezenet1_1")
    assert torch.equal(first_convolution(loaded).weight, theirs.features[0].weight)
    assert loaded.preprocessing.source == "SqueezeNet1_1_Weights.IMAGENET1K_V1"


# -- timm ----------------------------------------------------------------------------------------


def test_a_timm_model_comes_with_its_preprocessing() -> None:
    loaded = load_model("timm:mobilenetv3_small_050", weights="none")
    assert not loaded.model.training
    assert loaded.name == "timm:mobilenetv3_small_050"
    assert loaded.preprocessing.source == "timm pretrained_cfg"
    assert loaded.preprocessing.interpolation == "bicubic"
    assert loaded.preprocessing.resize == 256


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
    theirs = timm.data.create_transform(**whole)(photograph(*size))
    assert torch.allclose(from_timm(whole, "x")(photograph(*size)), theirs, atol=1e-6)


def test_an_unknown_timm_name_lists_the_closest() -> None:
    with pytest.raises(UnknownModel, match="no model 'timm:resnet19'; closest: timm:resnet18,"):
        load_model("timm:resnet19", weights="none")


def test_an_unknown_timm_tag_is_an_unknown_model() -> None:
    with pytest.raises(UnknownModel, match=r"closest: .*timm:resnet18\.a1_in1k"):
        load_model("timm:resnet18.a9_in1k", weights="none")


def test_without_timm_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(MissingExtra, match=r"pip install 'fmapboard\[timm\]'"):
        load_model("timm:resnet18")


def test_a_failed_timm_download_says_the_ways_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise ConnectionRefusedError("no network in tests")

    monkeypatch.setattr("socket.create_connection", refuse)
    monkeypatch.setattr("fmapboard.cli.models.pretrained.getproxies", dict)
    text = r"could not download the weights of 'timm:mobilenetv3_small_050' .*--weights none"
    with pytest.raises(DownloadError, match=text):
        load_model("timm:mobilenetv3_small_050")


@pytest.mark.parametrize("reachable", [True, False])
def test_the_hub_is_asked_only_if_it_can_be_reached(
    monkeypatch: pytest.MonkeyPatch, reachable: bool
) -> None:
    offline: list[bool] = []

    def create(*args: Any, **kwargs: Any) -> None:
        offline.append(constants.HF_HUB_OFFLINE)
        raise OSError("no network in tests")

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(timm, "create_model", create)
    monkeypatch.setattr(pretrained, "getproxies", dict)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{port}")
        if not reachable:
            server.close()
        with pytest.raises(DownloadError):
            load_model("timm:resnet18")
    assert offline == [not reachable]
    assert constants.HF_HUB_OFFLINE is False


def test_a_timm_tag_is_part_of_the_name() -> None:
    loaded = load_model("timm:mobilenetv3_small_050.lamb_in1k", weights="none")
    assert loaded.name == "timm:mobilenetv3_small_050.lamb_in1k"


def test_a_timm_model_without_pretrained_weights_says_so() -> None:
    with pytest.raises(
        ConfigurationError, match=r"timm has no pretrained weights for .* --weights none"
    ):
        load_model(f"timm:{_without_weights()}")


def _without_weights() -> str:
    having = {name.split(".")[0] for name in timm.list_models(pretrained=True)}
    return next(name for name in timm.list_models() if name not in having)


# -- the user's own ------------------------------------------------------------------------------

FACTORIES = """
import torch
from torch import nn

def colour(): return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())
def grey(): return nn.Sequential(nn.Conv2d(1, 4, 3))
def spectral(): return nn.Sequential(nn.Conv2d(7, 4, 3))
def linear(): return nn.Linear(2, 2)
def number(): return 3
def needs(width): return nn.Conv2d(3, width, 3)
def broken(): raise RuntimeError("no\\nGPU here")
def leaves(): raise SystemExit(3)
ready = nn.Conv2d(3, 4, 3)
table = {"a": 1}
class Net(nn.Module):
    @classmethod
    def small(cls): return cls()
"""


@pytest.fixture
def nets(folder: Path) -> str:
    (folder / "nets_a.py").write_text(FACTORIES)
    return "nets_a"


def test_a_callable_of_the_current_folder_is_called(nets: str) -> None:
    loaded = load_model(f"{nets}:colour")
    assert isinstance(loaded.model, nn.Sequential)
    assert not loaded.model.training
    assert loaded.preprocessing == Preprocessing(
        size=(224, 224),
        resize=256,
        mean=(0.485, 0.456, 0.406),
        std=(0.229, 0.224, 0.225),
        source="ImageNet mean and std (assumed)",
    )


@pytest.mark.parametrize("attribute", ["ready", "Net", "Net.small"])
def test_modules_classes_and_methods_are_models_too(nets: str, attribute: str) -> None:
    assert isinstance(load_model(f"{nets}:{attribute}").model, nn.Module)


def test_a_model_of_one_channel_gets_grey_pictures(nets: str) -> None:
    recipe = load_model(f"{nets}:grey", input_size=32).preprocessing
    assert recipe.channels == 1
    assert recipe.mean == pytest.approx((0.449,))
    assert recipe.std == pytest.approx((0.226,))
    white = recipe(Image.new("RGB", (50, 60), "white"))
    assert white.shape == (1, 32, 32)
    assert white[0, 0, 0].item() == pytest.approx((1 - 0.449) / 0.226, abs=1e-4)


def test_a_model_of_seven_channels_is_refused(nets: str) -> None:
    with pytest.raises(ConfigurationError, match=r"takes 7 input channels; images have 1 .* or 3"):
        load_model(f"{nets}:spectral")


def test_a_callable_can_be_given_a_checkpoint(nets: str, tmp_path: Path) -> None:
    weights = {"module.0.weight": torch.ones(4, 3, 3, 3), "module.0.bias": torch.zeros(4)}
    torch.save(weights, tmp_path / "a.pt")
    loaded = load_model(f"{nets}:colour", checkpoint=tmp_path / "a.pt")
    assert str(loaded.report) == "2 of 2 tensors loaded"
    assert first_convolution(loaded).weight.mean().item() == 1


@pytest.mark.parametrize(
    ("spec", "kind", "text"),
    [
        ("nets_a:color", UnknownModel, r"'nets_a' has no 'color' .*; closest: colour"),
        ("nets_b:net", UnknownModel, r"no module 'nets_b' \(for 'nets_b:net'\) in '/"),
        ("nets_a.b:net", UnknownModel, r"no module 'nets_a\.b'"),
        ("nets_a:", UnknownModel, r"not written as package\.module:callable"),
        (":net", UnknownModel, r"not written as package\.module:callable"),
        ("nets_a:table", UnknownModel, "is a dict, neither callable nor a module"),
        ("nets_a:number", ConfigurationError, r"returned a int, not a torch\.nn\.Module"),
        (
            "nets_a:needs",
            ConfigurationError,
            r"'nets_a:needs' failed: TypeError: needs\(\) missing",
        ),
        ("nets_a:broken", ConfigurationError, "failed: RuntimeError: no GPU here"),
        ("nets_a:leaves", ConfigurationError, "failed: SystemExit: 3"),
    ],
)
def test_what_is_wrong_with_a_callable_is_said(
    nets: str, spec: str, kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind, match=text) as caught:
        load_model(spec)
    assert type(caught.value) is kind
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (
            "import nets_absent_library",
            "ModuleNotFoundError: No module named 'nets_absent_library'",
        ),
        ("def f(:", "SyntaxError: "),
        ("import sys; sys.exit(2)", "SystemExit: 2"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
    ],
)
def test_a_module_that_fails_to_import_is_not_said_to_be_missing(
    folder: Path, source: str, text: str
) -> None:
    (folder / "nets_c.py").write_text(source)
    with pytest.raises(ConfigurationError, match=f"importing 'nets_c' .* failed: {text}") as caught:
        load_model("nets_c:f")
    assert type(caught.value) is ConfigurationError


@pytest.mark.parametrize("spec", ["nets_a:colour", "timm:resnet18", "demo"])
def test_only_torchvision_has_weights_with_names(nets: str, spec: str) -> None:
    text = f"no weights 'V2' for '{spec}': neither a file nor one of DEFAULT, none"
    with pytest.raises(ConfigurationError, match=text):
        load_model(spec, weights="V2")


# -- the bundled network -------------------------------------------------------------------------


def test_the_demo_network_is_read_at_128_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "load_trained", lambda: nn.Conv2d(3, 4, 3))
    loaded = load_model("demo")
    assert loaded.preprocessing(photograph()).shape == (3, 128, 128)
    assert loaded.preprocessing.mean == network.MEAN
    assert loaded.preprocessing.source == "the demo network's own"


def test_the_demo_network_can_be_had_untrained(monkeypatch: pytest.MonkeyPatch) -> None:
    trained = nn.Conv2d(3, 4, 3)
    nn.init.constant_(trained.weight, 9)
    monkeypatch.setattr(network, "load_trained", lambda: trained)
    assert load_model("demo").model.weight.min() == 9
    assert load_model("demo", weights="none").model.weight.max() < 9


# -- preprocessing -------------------------------------------------------------------------------


def test_the_picture_can_be_had_back_from_the_input() -> None:
    recipe = assumed(nn.Conv2d(3, 4, 3))
    red = recipe(Image.new("RGB", (300, 300), (255, 0, 51)))
    back = red[:, 0, 0] * torch.tensor(recipe.std) + torch.tensor(recipe.mean)
    assert back.tolist() == pytest.approx([1, 0, 0.2], abs=1e-6)


def test_another_input_size_crops_as_much_away() -> None:
    recipe = assumed(nn.Conv2d(3, 4, 3)).with_input_size(112)
    assert (recipe.size, recipe.resize) == ((112, 112), 128)


def test_a_squashed_input_stays_squashed_at_another_size() -> None:
    recipe = Preprocessing((8, 8), (8, 8), (0.0,) * 3, (1.0,) * 3, source="x").with_input_size(5)
    assert (recipe.size, recipe.resize) == ((5, 5), (5, 5))


@pytest.mark.parametrize("side", [0, -1])
def test_an_input_without_pixels_is_refused_before_anything_is_built(side: int) -> None:
    with pytest.raises(ConfigurationError, match=f"at least 1 pixel, not {side}"):
        load_model("resnet18", input_size=side)


def test_a_strip_of_one_pixel_does_not_fill_the_memory() -> None:
    recipe = Preprocessing(None, 10, (0.0,) * 3, (1.0,) * 3, source="x")
    assert recipe(Image.new("RGB", (1, 3000))).shape == (3, 200, 10)
    strip = Image.new("RGB", (100, 1), "black")
    strip.paste("white", (40, 0, 60, 1))
    assert recipe(strip).unique().tolist() == [1]


def test_lazy_convolutions_are_taken_to_want_colour() -> None:
    assert assumed(nn.LazyConv2d(4, 3)).channels == 3


def test_a_model_without_convolutions_gets_colour() -> None:
    assert assumed(nn.Linear(2, 2)).channels == 3
