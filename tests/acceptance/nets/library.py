"""Small networks of torchvision, timm and transformers, and the losses that they need."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
import torchvision
import transformers
from timm.models.mlp_mixer import MlpMixer
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor, nn
from torch.nn import functional
from torchvision.models import detection
from torchvision.models.convnext import CNBlockConfig, ConvNeXt
from torchvision.models.efficientnet import EfficientNet, MBConvConfig
from torchvision.models.mobilenetv3 import InvertedResidualConfig, MobileNetV3
from torchvision.models.vgg import VGG, make_layers
from torchvision.ops import FeaturePyramidNetwork

BODY = {
    "hidden_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 96,
}
SMALL = BODY | {"image_size": 32, "patch_size": 4}


def hf(model: str, **options: object) -> nn.Module:
    """A class of transformers, from its configuration."""
    kind = getattr(transformers, model)
    return kind(kind.config_class(**options))


def densenet() -> nn.Module:
    return torchvision.models.DenseNet(12, (3, 3, 3), 16, num_classes=8)


class Pyramid(nn.Module):
    """A small backbone with FPN, as torchvision's detectors take it."""

    def __init__(self, norm: Callable[[int], nn.Module]) -> None:
        super().__init__()
        self.out_channels = 32

        def step(into: int, out: int) -> nn.Module:
            return nn.Sequential(nn.Conv2d(into, out, 3, 2, 1), norm(out), nn.ReLU())

        self.stem, self.c2, self.c3 = step(3, 16), step(16, 32), step(32, 48)
        self.fpn = FeaturePyramidNetwork([32, 48], 32)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        second = self.c2(self.stem(x))
        return self.fpn({"0": second, "1": self.c3(second)})


SIDE = {"min_size": 64, "max_size": 64}


def anchors() -> nn.Module:
    return detection.anchor_utils.AnchorGenerator(((12, 16), (24, 32)), ((1.0,),) * 2)


def retinanet() -> nn.Module:
    """One class at 64 px, with GroupNorm; pictures are taken as they are."""
    options = {"image_mean": [0.0] * 3, "image_std": [1.0] * 3, **SIDE}
    back = Pyramid(partial(nn.GroupNorm, 4))
    return detection.RetinaNet(back, 2, anchor_generator=anchors(), **options)


def vit(**options: object) -> nn.Module:
    sizes = {"embed_dim": 64, "depth": 3, "num_heads": 4, "mlp_ratio": 2.0, "num_classes": 8}
    sizes |= {"img_size": 32, "patch_size": 4, "proj_drop_rate": 0.1}
    return VisionTransformer(**(sizes | options))


def mixer() -> nn.Module:
    return MlpMixer(8, 32, patch_size=4, num_blocks=3, embed_dim=64, mlp_ratio=(1.0, 2.0))


class Logits(nn.Module):
    """transformers' answer reduced to its logits."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x).logits


def boxes(model: nn.Module, images: Tensor, mask: Tensor, discs: Tensor, *_: Tensor) -> Tensor:
    """The sum of a torchvision detector's losses at 64 px, with masks."""
    images, masks = (functional.interpolate(part, scale_factor=2.0) for part in (images, mask))
    centre, radius = discs[:, :2], discs[:, 2:]
    corners = torch.cat([centre - radius, centre + radius], 1).mul(2).clamp(0, 64)
    targets = [
        {"boxes": box[None], "labels": torch.ones(1, dtype=torch.long), "masks": shape}
        for box, shape in zip(corners, masks.to(torch.uint8), strict=True)
    ]
    return sum(model(list(images), targets).values())


def found(model: nn.Module, images: Tensor, *targets: Tensor) -> Tensor:
    """The same on pictures of 0 to 1."""
    return boxes(model, images / 2 + 0.5, *targets)


def clip() -> nn.Module:
    text = BODY | {"num_hidden_layers": 2, "vocab_size": 64, "eos_token_id": 2}
    text |= {"max_position_embeddings": 8}
    return hf("CLIPModel", text_config=text, vision_config=SMALL, projection_dim=32)


def mobilenet_v3() -> nn.Module:
    row = partial(InvertedResidualConfig, dilation=1, width_mult=1.0)
    rows = [
        row(16, 3, 16, 16, True, "RE", 2),
        row(16, 3, 64, 24, False, "RE", 2),
        row(24, 5, 96, 40, True, "HS", 2),
        row(40, 5, 120, 40, True, "HS", 1),
    ]
    return MobileNetV3(rows, 128, num_classes=8, norm_layer=partial(nn.BatchNorm2d, momentum=0.1))


def convnext() -> nn.Module:
    rows = [CNBlockConfig(24, 48, 1), CNBlockConfig(48, 96, 1), CNBlockConfig(96, None, 2)]
    return ConvNeXt(rows, stochastic_depth_prob=0.05, layer_scale=0.1, num_classes=8)


def efficientnet() -> nn.Module:
    rows = [
        MBConvConfig(1, 3, 1, 24, 16, 1, 1.0, 1.0),
        MBConvConfig(4, 3, 2, 16, 24, 1, 1.0, 1.0),
        MBConvConfig(4, 5, 2, 24, 40, 2, 1.0, 1.0),
        MBConvConfig(4, 3, 1, 40, 64, 1, 1.0, 1.0),
    ]
    return EfficientNet(
        rows, dropout=0.1, stochastic_depth_prob=0.05, num_classes=8, last_channel=192
    )


def vgg(
    rows: tuple[int | str, ...] = (24, 24, "M", 48, 48, "M", 64, 64, "M", 96, 96, "M"),
    batch_norm: bool = True,
) -> nn.Module:
    """Slim, with one hidden Linear layer of 128."""
    model = VGG(make_layers(list(rows), batch_norm=batch_norm), 8)
    model.avgpool = nn.AdaptiveAvgPool2d(2)
    layers = [nn.Linear(4 * rows[-2], 128), nn.ReLU(True), nn.Dropout(0.3), nn.Linear(128, 8)]
    model.classifier = nn.Sequential(*layers)
    return model
