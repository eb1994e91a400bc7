"""Networks of torchvision, timm and transformers of the fifth set, built without weights."""

from __future__ import annotations

from functools import partial

import torch
from acceptance_fourth_library import hf_net
from torch import Tensor, nn
from torch.nn import functional
from torchvision import models
from torchvision.models.convnext import CNBlockConfig, ConvNeXt
from torchvision.models.efficientnet import EfficientNet, MBConvConfig
from torchvision.models.segmentation import DeepLabV3
from torchvision.models.segmentation.deeplabv3 import DeepLabHead
from torchvision.models.vgg import VGG, make_layers


def resnext() -> nn.Module:
    return models.ResNet(models.resnet.Bottleneck, [1, 1, 1, 1], 8, groups=8, width_per_group=8)


def wide_resnet() -> nn.Module:
    return models.ResNet(
        models.resnet.BasicBlock, [1, 1, 1, 1], 8, norm_layer=partial(nn.GroupNorm, 8)
    )


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


def vgg() -> nn.Module:
    model = VGG(make_layers([24, "M", 48, "M", 64, 64, "M"], batch_norm=True), 8)
    model.avgpool = nn.AdaptiveAvgPool2d(2)
    layers = [nn.Linear(256, 128), nn.ReLU(True), nn.Dropout(0.3), nn.Linear(128, 8)]
    model.classifier = nn.Sequential(*layers)
    return model


def deeplab() -> nn.Module:
    """DeepLab v3 on the layers of MobileNet v2 up to stride 8."""
    body = models.mobilenet_v2(width_mult=0.5).features[:7]
    back = models._utils.IntermediateLayerGetter(nn.Sequential(body), {"0": "out"})
    return DeepLabV3(back, DeepLabHead(16, 2, (2, 4)))


def masked(model: nn.Module, images: Tensor, mask: Tensor, *_: Tensor) -> Tensor:
    return functional.cross_entropy(model(images)["out"], mask[:, 0].long())


def mobilenet_v1() -> nn.Module:
    return hf_net("MobileNetV1", depth_multiplier=0.25, min_depth=8, classifier_dropout_prob=0.1)


def regnet() -> nn.Module:
    sizes = {"embedding_size": 16, "hidden_sizes": [24, 48, 64], "depths": [1, 1, 2]}
    return hf_net("RegNet", **sizes, groups_width=8, layer_type="y")


def resnet() -> nn.Module:
    sizes = {"embedding_size": 24, "hidden_sizes": [48, 64, 96], "depths": [1, 1, 1]}
    return hf_net("ResNet", **sizes, layer_type="bottleneck")


def swin_v2() -> nn.Module:
    sizes = {"image_size": 32, "patch_size": 2, "embed_dim": 24, "depths": [1, 2]}
    return hf_net("Swinv2", **sizes, num_heads=[2, 4], window_size=4, drop_path_rate=0.0)


def focal_net() -> nn.Module:
    sizes = {"image_size": 32, "patch_size": 2, "embed_dim": 24, "depths": [1, 1, 1]}
    more = {"hidden_sizes": [24, 48, 96], "focal_levels": [2, 2, 2], "focal_windows": [3, 3, 3]}
    return hf_net("FocalNet", **sizes, **more)


def pvt_v2() -> nn.Module:
    return hf_net(
        "PvtV2",
        image_size=64,
        depths=[1, 1, 1, 1],
        hidden_sizes=[16, 32, 48, 64],
        num_attention_heads=[1, 2, 2, 4],
        mlp_ratios=[2, 2, 2, 2],
        drop_path_rate=0.0,
    )


def beit() -> nn.Module:
    sizes = {"image_size": 32, "patch_size": 4, "hidden_size": 48, "num_hidden_layers": 3}
    more = {"num_attention_heads": 4, "intermediate_size": 96, "drop_path_rate": 0.0}
    return hf_net("Beit", **sizes, **more, use_relative_position_bias=True)


class Two(nn.Module):
    """A pair of torchvision's features as a regression of two quantities."""

    def __init__(self) -> None:
        super().__init__()
        self.body = models.squeezenet1_1().features[:8]
        self.last = nn.Linear(256, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(torch.mean(self.body(x), (2, 3)))
