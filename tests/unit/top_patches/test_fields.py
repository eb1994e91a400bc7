"""The measured part of the image holds everything that a position of a layer depends on."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torchvision.models import mobilenetv3
from torchvision.ops import SqueezeExcitation

from fmapboard.capture.hooks import HookRegistry
from fmapboard.extraction.of_outputs import extract
from fmapboard.model.layers import named_layers
from fmapboard.top_patches.fields import Fields, MeasuredFields, maps_of, measure_fields

SIDE = 48


class Residual(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        return x + self.inner(x)


class Applied(nn.Module):
    """A module that applies a function."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attend = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.flatten(2).transpose(1, 2)
        return tokens + self.attend(tokens, tokens, tokens)[0]


def conv(*, k: int = 3, inputs: int = 8, **options: object) -> nn.Conv2d:
    return nn.Conv2d(inputs, 8, k, **options)  # type: ignore[arg-type]


def first(k: int = 3, **options: object) -> nn.Conv2d:
    return conv(k=k, inputs=3, **options)


def batch_norm() -> nn.BatchNorm2d:
    norm = nn.BatchNorm2d(8)
    nn.init.uniform_(norm.running_mean)
    nn.init.uniform_(norm.running_var, 0.5, 2)
    return norm


LOCAL = {
    "stride": [first(7, stride=2, padding=3), nn.ReLU(), conv(stride=2)],
    "dilation": [first(padding=1), nn.GELU(), conv(dilation=4, padding=4)],
    "reflected padding": [first(5, padding=2, padding_mode="reflect"), nn.SiLU()],
    "circular padding": [first(5, padding=2, padding_mode="circular"), nn.Hardswish()],
    "residual": [first(padding=1), batch_norm(), Residual(conv(padding=1)), nn.LeakyReLU()],
    "pooling": [first(), nn.MaxPool2d(3, 2, 1), conv(), nn.AvgPool2d(2), nn.ReLU6()],
    "transposed": [first(4, stride=4), nn.ConvTranspose2d(8, 8, 3, 2, 1), nn.Sigmoid()],
    "even kernel": [first(4, padding=1), nn.ELU(), conv(k=2, stride=2)],
    "upsampling": [first(stride=2), nn.Upsample(scale_factor=2, mode="bilinear"), conv()],
    "grouped": [first(), nn.Conv2d(8, 8, 3, groups=4), nn.Hardtanh(), nn.PixelShuffle(2)],
    "dead": [first(), Applied(lambda x: x - 1e9), nn.ReLU(), conv()],
}
GLOBAL = {
    "squeeze and excitation": [first(), SqueezeExcitation(8, 4), conv()],
    "attention": [first(4, stride=4), Attention()],
    "instance norm": [first(), nn.InstanceNorm2d(8), nn.ReLU()],
    "pooled": [first(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5)],
    "mask": [first(), Applied(lambda x: x * (x.mean((1, 2, 3), keepdim=True) > 0)), conv()],
    "sort": [first(), Applied(lambda x: x.sort(-2).values), conv()],
    "control flow": [first(), Applied(lambda x: x + 1 if x.sum() > 0 else x - 1), conv()],
    "unpooled": [
        Applied(lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2)),
        first(),
    ],
    "cleaned": [first(), Applied(lambda x: x + x.mean((2, 3), True).nan_to_num())],
    "NumPy": [
        first(),
        Applied(lambda x: x * float(np.sign(x.mean().detach().numpy()) > 0)),
        conv(),
    ],
    "array": [first(), Applied(lambda x: x * (1 + (np.asarray(x.sum(1)) > 0).sum())), conv()],
    "list": [first(), Applied(lambda x: x * sum(v > 0 for v in x.flatten().tolist())), conv()],
    "sign of broadcast": [
        first(),
        Applied(lambda x: x * torch.copysign(torch.ones(8, 1, 1), x.mean((1, 2, 3), True))),
    ],
    "count": [first(), Applied(lambda x: x * torch.linalg.vector_norm(x, 0, (1, 2, 3), True))],
    "sign in place": [first(), Applied(lambda x: x * x.mean((1, 2, 3), True).sign_()), conv()],
}


def measured(model: nn.Module, side: int = SIDE) -> MeasuredFields:
    torch.manual_seed(0)
    registry = HookRegistry(model, lambda name, module: True)
    return measure_fields(registry, torch.randn(1, 3, side, side), 8)


def outputs(model: nn.Module, image: Tensor) -> dict[str, Tensor]:
    """Values [C, P] by label of the layer call."""
    modules = named_layers(model)
    maps = extract(model, image, layers=lambda name, module: True)
    return {
        label: maps_of(value, modules[re.sub(r"\.call\d+$", "", label)], 1)[0][0]
        for label, value in maps.items()
    }


def check_nothing_outside_matters(model: nn.Module, fields: dict[str, Fields], side: int) -> None:
    """Change everything outside of the box of some positions, and compare their values."""
    image = torch.randn(1, 3, side, side)
    before = outputs(model, image)
    for label, of in fields.items():
        places = len(of.boxes)
        for place in {0, places // 3, places * 6 // 11, places - 1}:
            top, left, bottom, right = of.boxes[place]
            changed = 50 * torch.randn_like(image)
            changed[..., top:bottom, left:right] = image[..., top:bottom, left:right]
            after = outputs(model, changed)
            assert torch.equal(before[label][:, place], after[label][:, place]), (label, place)


@pytest.mark.parametrize("name", LOCAL)
def test_pixels_outside_the_field_do_not_change_the_value(name: str) -> None:
    model = nn.Sequential(*LOCAL[name]).eval()
    fields = measured(model).of_layer
    check_nothing_outside_matters(model, fields, SIDE)
    boxes = fields["Sequential"].boxes
    assert (boxes[:, 2] - boxes[:, 0]).min() < SIDE  # else the test shows nothing
    assert {of.lost_at for of in fields.values()} == {None}


@pytest.mark.parametrize("name", GLOBAL)
def test_the_field_of_a_layer_after_a_global_operation_is_the_whole_image(name: str) -> None:
    model = nn.Sequential(*GLOBAL[name]).eval()
    fields = measured(model).of_layer
    last = fields[str(len(model) - 1)]
    assert (last.boxes == [0, 0, SIDE, SIDE]).all()
    if name != "unpooled":
        assert max(fields["0"].largest) <= 4  # what ran before keeps its own
    check_nothing_outside_matters(model, fields, SIDE)


def test_the_field_of_convolutions_and_pooling_is_the_exact_one() -> None:
    model = nn.Sequential(
        first(7, stride=2, padding=3),
        nn.MaxPool2d(3, 2, 1),
        conv(padding=1),
        conv(padding=2, dilation=2),
    )
    fields = measured(model, 64).of_layer
    assert [fields[name].largest for name in "0123"] == [(7, 7), (11, 11), (19, 19), (35, 35)]
    assert fields["2"].grid == (16, 16)
    middle = 8 * 16 + 8
    assert fields["2"].boxes[middle].tolist() == [23, 23, 42, 42]
    assert fields["2"].boxes[0].tolist() == [0, 0, 10, 10]  # cut off at the border


def test_a_field_of_more_than_a_sixty_fourth_of_a_large_image_is_exact_or_slightly_larger() -> None:
    model = nn.Sequential(nn.Conv2d(3, 1, 3), nn.Conv2d(1, 1, 3, dilation=40))  # 83 px
    fields = measured(model, 220).of_layer
    assert fields["0"].largest == (3, 3)
    exact = np.array([(y, x, y + 83, x + 83) for y in range(138) for x in range(138)])
    boxes = fields["1"].boxes
    assert (boxes[:, :2] <= exact[:, :2]).all()
    assert (boxes[:, 2:] >= exact[:, 2:]).all()
    assert abs(boxes - exact).max() <= 3


def test_images_that_interact_in_a_batch_are_found() -> None:
    norm = nn.BatchNorm2d(8, track_running_stats=False)  # batch statistics in eval mode, too
    assert not measured(nn.Sequential(first(), norm)).separable
    assert measured(nn.Sequential(first(), batch_norm())).separable


@pytest.mark.sweep
@pytest.mark.parametrize(
    "name",
    [
        "mobilenet",
        "resnet18",
        pytest.param("swin_t", marks=pytest.mark.slow),
        pytest.param("densenet121", marks=pytest.mark.slow),
    ],
)
def test_pixels_outside_the_field_do_not_change_the_value_in_library_models(name: str) -> None:
    import torchvision

    torch.manual_seed(0)
    if name == "mobilenet":
        model = mobilenetv3.mobilenet_v3_small()
    else:
        model = getattr(torchvision.models, name)(weights=None)
    fields = measured(model.eval(), 64).of_layer
    some = dict(list(fields.items())[:: max(1, len(fields) // 12)])
    check_nothing_outside_matters(model, some, 64)


def test_a_position_that_depends_on_no_pixel_does_not_make_the_fields_of_the_others_large() -> None:
    padded = nn.Sequential(first(3, padding=4))  # its border is only padding
    of = measured(padded).of_layer["0"]
    assert of.largest == (3, 3)
    assert of.boxes[0].tolist() == [0, 0, SIDE, SIDE]


def test_the_methods_of_tensors_are_restored_after_a_measurement() -> None:
    before = dict(vars(Tensor))
    measured(nn.Sequential(first()))
    assert dict(vars(Tensor)) == before


class Biased(nn.Module):
    """Adds a bias that is computed once per pass, as in Swin V2, not once per image."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.bias = first(), nn.Linear(2, 8)

    def forward(self, x: Tensor) -> Tensor:
        return self.first(x) + self.bias(torch.ones(1, 1, 1, 2)).movedim(3, 1)  # type: ignore[no-any-return]


class BatchMean(Biased):
    """Adds the mean of the batch."""

    def forward(self, x: Tensor) -> Tensor:
        found = self.first(x)
        return found + self.bias(found.mean((0, 2, 3))[None, :2]).mean()  # type: ignore[no-any-return]


def test_a_layer_that_is_the_same_for_all_images_does_not_make_them_depend_on_each_other() -> None:
    biased = measured(Biased())
    assert biased.separable
    assert biased.of_layer["bias"].constant.all()
    assert biased.of_layer["first"].largest == (3, 3)
    assert not measured(BatchMean()).separable
