"""Token sequences of vision transformers and channels-last maps of Swin, drawn as maps."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import timm
import torch
from attending_networks import slow_path
from logged_step import log_pass, measurement
from torch import Tensor, nn
from torchvision.models.maxvit import MaxVit
from torchvision.models.swin_transformer import SwinTransformer
from torchvision.models.vision_transformer import VisionTransformer

import fmapboard
from fmapboard.measure.layout import last_axis_is_channels
from fmapboard.model.layers import Layers
from fmapboard.records import LayerMeasurement, LoggedStep, TaggedPictures
from fmapboard.render.grid import grid
from fmapboard.writers.folder import MemoryWriter


def log(model: nn.Module, x: Tensor, layers: Layers) -> LoggedStep:
    return log_pass(model.eval(), x, layers=layers)


def of(step: LoggedStep, label: str) -> tuple[LayerMeasurement, TaggedPictures | None]:
    """A layer's output: what was measured, and its pictures if it was drawn."""
    found = measurement(step, label)
    drawn = (
        p for p in step.pictures if p.kind == "feature_maps" and p.layer_call == found.layer_call
    )
    return found, next(drawn, None)


def levels(maps: Tensor) -> Tensor:
    """Maps [C, H, W] quantized to u8, each channel between its own extremes."""
    lo, hi = maps.amin((1, 2), keepdim=True), maps.amax((1, 2), keepdim=True)
    return ((maps - lo) / (hi - lo) * 255).to(torch.uint8)


def assert_drawn(picture: TaggedPictures | None, maps: Tensor) -> None:
    """Assert that the picture is the grid of these maps [C, H, W], within one grey level."""
    assert picture is not None
    pixels = picture.samples[0].pixels.astype(int)
    expected = grid(levels(maps).numpy(), 4, 2, 0).astype(int)
    assert pixels.shape == expected.shape
    assert abs(pixels - expected).max() <= 1


def vit() -> nn.Module:
    return VisionTransformer(
        image_size=32, patch_size=8, num_layers=1, num_heads=2, hidden_dim=16, mlp_dim=32,
        num_classes=3,
    )  # fmt: skip


X = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))


def test_tokens_of_a_vit_are_drawn_as_patches_without_the_class_token() -> None:
    model = vit()
    name = "encoder.layers.encoder_layer_0"
    step = log(model, X, [name, f"{name}.ln_1"])
    true = fmapboard.extract(model, X, layers=name)[name]  # [N, 17, 16]
    kept, picture = of(step, name)
    assert_drawn(picture, true[0, 1:].T.reshape(16, 4, 4))
    assert "16 tokens drawn as 4×4 patches, prefix tokens skipped: 1" in picture.description
    assert kept.statistics.maximum.tolist() == pytest.approx(true.amax((0, 1)).tolist())
    assert of(step, f"{name}.ln_1")[1] is not None


@pytest.mark.parametrize(("name", "left_out"), [("deit_tiny_distilled_patch16_224", 2),
                                                ("vit_small_patch14_reg4_dinov2", 5)])  # fmt: skip
def test_prefix_tokens_of_timm_are_left_out(name: str, left_out: int) -> None:
    size, side = (42, 3) if "14" in name else (32, 2)
    model = timm.create_model(name, img_size=size, num_classes=3, depth=1)
    step = log(model, torch.randn(1, 3, size, size), "blocks.0")
    picture = of(step, "blocks.0")[1]
    said = f"{side**2} tokens drawn as {side}×{side} patches, prefix tokens skipped: {left_out}"
    assert said in picture.description


def test_tokens_of_an_image_that_is_no_square_lie_on_its_own_grid() -> None:
    model = timm.create_model("vit_tiny_patch16_224", img_size=(32, 48), num_classes=3, depth=1)
    x = torch.randn(2, 3, 32, 48)
    true = fmapboard.extract(model, x, layers=["blocks.0", "blocks.0.mlp.fc1"])
    for watched in (["patch_embed.proj", *true], list(true)):  # the first layer itself or not
        step = log(model, x, watched)
        for name, tokens in true.items():
            picture = of(step, name)[1]
            assert "6 tokens drawn as 2×3 patches, prefix tokens skipped: 1" in picture.description
            maps = tokens[0, 1:].T.reshape(-1, 2, 3)
            pixels = picture.samples[0].pixels
            assert (pixels[2:4, 2:5].astype(int) - levels(maps)[0].numpy()).max() <= 1
    assert "2×3 patches" in true._repr_html_()


def test_windows_of_a_swin_are_put_back_on_the_grid() -> None:
    model = timm.create_model(
        "swin_tiny_patch4_window7_224", img_size=(16, 32), depths=(2, 1, 1, 1), window_size=2,
        num_classes=3,
    )  # fmt: skip
    x, names = torch.randn(2, 3, 16, 32), ["layers.0.blocks.0.attn", "layers.0.blocks.1.attn"]
    true = fmapboard.extract(model, x, layers=names)
    step = log(model, x, names)
    for name in names:
        windows = true[name]  # [2 · 8, 4, 96], of 4×8 patches
        assert windows.shape == (16, 4, 96)
        tokens = windows.view(2, 2, 4, 2, 2, 96).transpose(2, 3).reshape(2, 4, 8, 96)
        kept, picture = of(step, name)
        pixels = picture.samples[0].pixels[2:6, 2:10].astype(int)
        assert abs(pixels - levels(tokens[0].movedim(-1, 0))[0].numpy()).max() <= 1
        assert "32 tokens drawn as 4×8 patches, put together from windows of 2×2" in kept.view
        assert kept.view.endswith("where a block shifts its windows, the patches are shifted")
        assert kept.statistics.maximum.tolist() == pytest.approx(windows.amax((0, 1)).tolist())


def partitions(maps: Tensor, size: int, *, is_grid: bool) -> Tensor:
    """Maps [N, H, W, C] put together from [N · windows, size, size, C] as MaxViT cuts them."""
    windows, _, _, channels = maps.shape
    side = math.isqrt(windows // 2)
    order = (0, 3, 1, 4, 2, 5) if is_grid else (0, 1, 3, 2, 4, 5)
    return (
        maps.view(2, side, side, size, size, channels)
        .permute(order)
        .reshape(2, side * size, side * size, channels)
    )


def assert_planes(kept: LayerMeasurement, maps: Tensor) -> None:
    """Assert that the first image's maps [N, H, W, C] are drawn."""
    assert kept.planes is not None
    drawn = torch.from_numpy(kept.planes.pixels[0]).int()
    expected = levels(maps[0].movedim(-1, 0)[: len(drawn)]).int()
    assert drawn.shape == expected.shape
    assert (drawn - expected).abs().max() <= 6  # 250 levels, the others are marks


def test_windows_and_grids_of_timms_maxvit_are_put_back_on_the_image() -> None:
    model = timm.create_model("maxvit_nano_rw_256", img_size=64)
    assert model.stages[0].blocks[0].attn_grid.partition_size == (2, 2)
    x = torch.randn(2, 3, 64, 64)
    names = [f"stages.0.blocks.0.attn_{kind}.attn" for kind in ("block", "grid")]
    step = log(model, x, None)
    true = fmapboard.extract(model, x, names)  # after log, which calls eval()
    for name, is_grid in zip(names, (False, True), strict=True):
        kept, _ = of(step, name)
        assert true[name].shape == (2 * 64, 2, 2, 64)
        assert_planes(kept, partitions(true[name], 2, is_grid=is_grid))
        what = "grids of 2×2 distant patches" if is_grid else "windows of 2×2"
        assert kept.view == f"256 tokens drawn as 16×16 patches, put together from {what}"
        assert kept.tokens is not None
        assert kept.tokens.shape == (16, 16, 64)
        whole, _ = of(step, name.removesuffix("attn") + "mlp.act")  # outside of the windows
        assert whole.shape == (2, 16, 16, 256)
        assert whole.view == "the last axis holds the channels: MLP 64→256"


def test_windows_and_grids_of_torchvisions_maxvit_are_put_back_on_the_image() -> None:
    model = MaxVit((32, 32), 8, 4, [8], [1], 8, 0.0)  # windows of 4×4 in maps of 8×8
    x = torch.randn(2, 3, 32, 32)
    names = [f"blocks.0.layers.0.layers.{kind}_attention" for kind in ("window", "grid")]
    step = log(model, x, None)
    true = fmapboard.extract(model, x, [f"{name}.{part}" for name in names for part in PARTS])
    for name, is_grid in zip(names, (False, True), strict=True):
        for part in PARTS:
            windows = true[f"{name}.{part}"].flatten(0, 1).unflatten(1, (4, 4))
            assert windows.shape[:3] == (2 * 4, 4, 4)
            kept, _ = of(step, f"{name}.{part}")
            assert_planes(kept, partitions(windows, 4, is_grid=is_grid))
            what = "grids of 4×4 distant patches" if is_grid else "windows of 4×4"
            assert kept.view == f"64 tokens drawn as 8×8 patches, put together from {what}"


PARTS = ("attn_layer", "mlp_layer.2")
"""Of torchvision's MaxViT: attention, and the activation of the MLP, both inside the windows."""


def test_blocks_behind_1d_convolutions_are_read_and_drawn_as_tokens() -> None:
    class Speech(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv1d(8, 16, 3, padding=1)
            self.block = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
            self.other = nn.Sequential(nn.Linear(16, 24))

        def forward(self, x: Tensor) -> Tensor:
            return self.other(self.block(self.conv(x).transpose(1, 2)))

    model, x = Speech().eval(), torch.randn(2, 8, 20)
    names = ["conv", "block", "block.self_attn", "other"]
    step = log(model, x, names)
    with slow_path():  # the fast one rounds otherwise
        true = fmapboard.extract(model, x, layers=names)
    for name, features in (("block", 16), ("block.self_attn", 16), ("other", 24)):
        kept, picture = of(step, name)
        assert picture.samples[0].pixels.shape == (features, 20), name
        tokens = true[name][0] if name == "block.self_attn" else true[name]  # [2, 20, features]
        assert kept.statistics.maximum.tolist() == pytest.approx(tokens.amax((0, 1)).tolist())
    assert of(step, "conv")[1].samples[0].pixels.shape == (16, 20)


def test_gradients_of_tokens_lie_on_the_grid_of_the_tokens() -> None:
    model = timm.create_model("vit_tiny_patch16_224", img_size=(32, 48), num_classes=3, depth=1)
    kept = MemoryWriter()
    options = {"layers": ["blocks.0"], "activation_gradients": True, "attribution": "blocks.0"}
    with fmapboard.watch(model, writer=kept, **options) as board, board.step(0):
        model(torch.randn(2, 3, 32, 48)).sum().backward()
    (step,) = kept.steps
    told = {p.kind: p.description for p in step.pictures if p.layer_call is not None}
    assert "6 tokens drawn as 2×3 patches" in told["gradients_of_maps"]
    assert step.attributions[0].heat.shape == (2, 3)


def test_a_text_in_front_of_the_patches_is_not_drawn_as_a_part_of_the_image() -> None:
    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.words = nn.Conv2d(3, 8, 8, stride=8), nn.Embedding(9, 8)
            self.of_image, self.of_both = nn.LayerNorm(8), nn.LayerNorm(8)
            block = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
            self.blocks = nn.ModuleList([block])

        def forward(self, both: tuple[Tensor, Tensor]) -> Tensor:
            image, text = both
            patches = self.of_image(self.embed(image).flatten(2).transpose(1, 2))
            both = self.of_both(torch.cat([self.words(text), patches], 1))
            return self.blocks[0](both)

    text = torch.randint(9, (2, 9))
    step = log(Mixed(), (X, text), ["of_image", "of_both", "blocks.0"])
    assert "4×4 patches" in of(step, "of_image")[1].description
    assert of(step, "of_both")[1] is None  # 25 tokens would fill a square
    assert of(step, "blocks.0")[1].samples[0].pixels.shape == (8, 25)  # rows


@pytest.mark.parametrize("length", [3, 7, 15])
def test_tokens_that_fill_no_square_are_measured_and_not_drawn(length: int) -> None:
    class Sequences(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm = nn.Conv2d(3, length, 1), nn.LayerNorm(64)

        def forward(self, x: Tensor) -> Tensor:
            return self.norm(self.conv(x).flatten(2))

    kept, picture = of(log(Sequences(), torch.randn(2, 3, 8, 8), "norm"), "norm")
    assert picture is None
    assert kept.statistics.mean.shape == (64,)


@pytest.mark.parametrize(
    "make",
    [lambda: nn.Conv1d(1, 1, 1), lambda: nn.TransformerEncoderLayer(8, 1)],
    ids=["a Conv1d", "batch second"],
)
def test_sequences_of_a_network_without_image_patches_are_not_drawn(
    make: Callable[[], nn.Module],
) -> None:
    model = nn.Sequential(nn.LayerNorm(8))
    model.other = make()
    model.patches = nn.Conv2d(3, 4, 1)
    model.forward = lambda x: model[0](x)
    assert of(log(model, torch.randn(2, 16, 8), "0"), "0")[1] is None


def test_sequences_of_a_model_without_convolutions_are_rows_and_never_patches() -> None:
    x = torch.randn(2, 16, 8)
    model = nn.Sequential(nn.LayerNorm(8))
    picture = of(log(model, x, "0"), "0")[1]
    assert picture.samples[0].pixels.shape == (8, 16)  # 16 tokens would fill a square
    scaled = (true := model(x)[0].detach().T) - true.amin(1, keepdim=True)
    expected = (255 * scaled / scaled.amax(1, keepdim=True)).numpy()
    assert abs(picture.samples[0].pixels - expected).max() <= 1


def test_channels_last_maps_of_swin_are_drawn_and_measured_by_channel() -> None:
    model = SwinTransformer(
        patch_size=[4, 4], embed_dim=16, depths=[2, 2], num_heads=[2, 2], window_size=[2, 2],
        num_classes=3,
    )  # fmt: skip
    layers = ["features.1", "features.1.0", "features.1.0.norm1", "features.1.0.mlp.0",
              "features.1.0.attn", "features.0", "features.2"]  # fmt: skip
    step = log(model, X, layers)
    true = fmapboard.extract(model, X, layers=layers)
    for name, output in true.items():
        channels = output.shape[-1]  # [N, H, W, C]
        kept, picture = of(step, name)
        assert kept.statistics.maximum.tolist() == pytest.approx(output.amax((0, 1, 2)).tolist())
        assert "the last axis holds the channels" in picture.description, name
        if channels == 16:
            assert_drawn(picture, output[0].movedim(-1, 0))


def test_maps_of_convnext_are_read_with_the_channels_second() -> None:
    model = timm.create_model("convnext_atto", num_classes=3, depths=(1, 1, 1, 1))
    step = log(model, torch.randn(1, 3, 64, 64), ["stages.0.blocks.0", "stem", "stem.1"])
    for name in ("stages.0.blocks.0", "stem", "stem.1"):
        kept, picture = of(step, name)
        assert kept.statistics.mean.shape == (40,)
        assert "last axis" not in picture.description


class _Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(16)


@pytest.mark.parametrize(
    ("make", "shape", "expected"),
    [
        (lambda: nn.Linear(8, 16), (2, 16, 16, 16), True),
        (lambda: nn.LayerNorm(16), (2, 5, 5, 16), True),
        (lambda: nn.LayerNorm([5, 5, 16]), (2, 5, 5, 16), False),
        (_Block, (2, 5, 5, 16), True),
        (_Block, (2, 16, 5, 5), False),
        (_Block, (2, 16, 5, 16), False),
        (lambda: nn.GELU(), (2, 5, 5, 16), False),
        (lambda: nn.Sequential(nn.Conv2d(3, 5, 1), _Block()), (2, 5, 5, 16), False),
    ],
)
def test_the_type_of_a_module_decides_which_axis_holds_the_channels(
    make: Callable[[], nn.Module], shape: tuple[int, ...], expected: bool
) -> None:
    assert last_axis_is_channels(make(), shape)[0] == expected


def test_an_ambiguous_shape_is_read_with_the_channels_second_and_a_note_says_so() -> None:
    read, said = last_axis_is_channels(_Block(), (2, 16, 5, 16))
    assert not read
    assert said == "the channels may be on the second or on the last axis; the second is used"
