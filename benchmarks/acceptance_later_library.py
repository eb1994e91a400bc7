"""Networks of torchvision, timm and transformers, small, built from a configuration.

The functions below the networks are losses: of a model and a batch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import timm
import torch
import torchvision
import transformers
from torch import Tensor, nn
from torch.nn import functional
from torchvision.models import detection, segmentation
from torchvision.ops import FeaturePyramidNetwork

SMALL: dict[str, int] = {
    "hidden_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 96,
    "image_size": 32,
    "patch_size": 4,
}


def densenet() -> nn.Module:
    return torchvision.models.DenseNet(12, (2, 3, 2), 24, num_classes=8)


def googlenet() -> nn.Module:
    return torchvision.models.googlenet(num_classes=8, aux_logits=False, init_weights=False)


def mnasnet() -> nn.Module:
    """With a new last layer; its BatchNorm has a momentum of 3e-4."""
    model = torchvision.models.MNASNet(0.35, dropout=0.0)
    model.classifier[1] = nn.Linear(1280, 8)
    return model


def swin() -> nn.Module:
    return torchvision.models.SwinTransformer(
        [2, 2], 24, [2, 2], [2, 4], [4, 4], stochastic_depth_prob=0.1, num_classes=8
    )


def vit_conv_stem() -> nn.Module:
    config = torchvision.models.vision_transformer.ConvStemConfig
    stem = [config(16, 3, 2), config(32, 3, 2)]
    return torchvision.models.VisionTransformer(
        32, 4, 3, 4, 48, 96, num_classes=8, conv_stem_configs=stem
    )


def vgg_own_head() -> nn.Module:
    """VGG-11's convolutions, a pooled head of one's own; the old classifier is dropped."""
    features = torchvision.models.vgg11_bn(init_weights=True).features[:15]
    return nn.Sequential(features, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 8))


class Lraspp(nn.Module):
    """LR-ASPP on MobileNet v3, one class; returns the map."""

    def __init__(self) -> None:
        super().__init__()
        self.net = segmentation.lraspp_mobilenet_v3_large(
            weights=None, weights_backbone=None, num_classes=1
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)["out"]


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


def detector(kind: str) -> nn.Module:
    """ "retinanet" or "fcos" for one class at 64 px."""
    sizes = {"min_size": 64, "max_size": 64, "image_mean": [0.0] * 3, "image_std": [1.0] * 3}
    if kind == "fcos":
        anchors = detection.anchor_utils.AnchorGenerator(((8,), (16,)), ((1.0,),) * 2)
        back = Pyramid(nn.BatchNorm2d)
        return detection.FCOS(back, 2, anchor_generator=anchors, **sizes)
    anchors = detection.anchor_utils.AnchorGenerator(((12, 16), (24, 32)), ((1.0,),) * 2)
    back = Pyramid(partial(nn.GroupNorm, 4))
    return detection.RetinaNet(back, 2, anchor_generator=anchors, **sizes)


def timm_model(name: str, **options: object) -> nn.Module:
    return timm.create_model(name, pretrained=False, num_classes=8, **options)


class Features(nn.Module):
    """A segmentation head on timm's features_only backbone."""

    def __init__(self, name: str = "test_byobnet") -> None:
        super().__init__()
        self.back = timm.create_model(name, pretrained=False, features_only=True)
        widths = self.back.feature_info.channels()
        self.laterals = nn.ModuleList(nn.Conv2d(width, 24, 1) for width in widths[:3])
        self.last = nn.Conv2d(24, 1, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.zeros(())
        for lateral, found in zip(self.laterals, self.back(x), strict=False):
            found = functional.interpolate(lateral(found), x.shape[2:], mode="bilinear")
            y = y + found
        return self.last(functional.relu(y))


class UnusedHead(nn.Module):
    """torchvision's ResNet as a feature extractor: its ``fc`` stays, and nothing calls it."""

    def __init__(self) -> None:
        super().__init__()
        self.net = torchvision.models.resnet.ResNet(
            torchvision.models.resnet.BasicBlock, [1, 1, 1, 1], num_classes=1000
        )
        self.last = nn.Linear(256, 8)

    def forward(self, x: Tensor) -> Tensor:
        net = self.net
        x = net.maxpool(net.relu(net.bn1(net.conv1(x))))
        return self.last(net.layer3(net.layer2(net.layer1(x))).mean((2, 3)))


class Logits(nn.Module):
    """transformers' answer reduced to its logits."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x).logits


def hf_convnext() -> nn.Module:
    config = transformers.ConvNextV2Config(
        patch_size=2, hidden_sizes=[24, 48, 72], depths=[1, 2, 1], num_stages=3, num_labels=8
    )
    return Logits(transformers.ConvNextV2ForImageClassification(config))


def hf_vit_pooler() -> nn.Module:
    """A ViT with its pooler, which the classification does not use."""

    class Pooled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            config = transformers.ViTConfig(**SMALL)
            self.vit = transformers.ViTModel(config, add_pooling_layer=True)
            self.last = nn.Linear(48, 8)

        def forward(self, x: Tensor) -> Tensor:
            return self.last(self.vit(x).last_hidden_state[:, 0])

    return Pooled()


def segformer() -> nn.Module:
    config = transformers.SegformerConfig(
        num_encoder_blocks=2,
        depths=[1, 1],
        sr_ratios=[2, 1],
        hidden_sizes=[16, 32],
        patch_sizes=[7, 3],
        strides=[2, 2],
        num_attention_heads=[1, 2],
        mlp_ratios=[2, 2],
        decoder_hidden_size=32,
        num_labels=1,
    )

    class Full(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = transformers.SegformerForSemanticSegmentation(config)

        def forward(self, x: Tensor) -> Tensor:
            return functional.interpolate(self.net(x).logits, x.shape[2:], mode="bilinear")

    return Full()


def masked_autoencoder() -> nn.Module:
    config = transformers.ViTMAEConfig(
        **SMALL,
        decoder_hidden_size=32,
        decoder_num_hidden_layers=1,
        decoder_num_attention_heads=2,
        decoder_intermediate_size=64,
    )
    return transformers.ViTMAEForPreTraining(config)


def wav2vec() -> nn.Module:
    config = transformers.Wav2Vec2Config(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        conv_dim=(24, 24, 32),
        conv_stride=(5, 2, 2),
        conv_kernel=(10, 3, 3),
        num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=2,
        num_labels=6,
        classifier_proj_size=32,
        apply_spec_augment=False,
    )
    return Logits(transformers.Wav2Vec2ForSequenceClassification(config))


def whole_loss(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """Of a transformers model that returns its loss."""
    return model(images).loss


def wave_classes(model: nn.Module, waves: Tensor, labels: Tensor) -> Tensor:
    return functional.cross_entropy(model(waves[:, 0]), labels)


def boxes(model: nn.Module, images: Tensor, _mask: Tensor, discs: Tensor, *_: Tensor) -> Tensor:
    """The sum of a torchvision detector's losses on images enlarged to 64 px."""
    images = functional.interpolate(images, scale_factor=2.0)
    centre, radius = discs[:, :2], discs[:, 2:]
    corners = torch.cat([centre - radius, centre + radius], 1).mul(2).clamp(0, 64)
    ones = torch.ones(1, dtype=torch.long)
    targets = [{"boxes": box[None], "labels": ones} for box in corners]
    found = model(list(images), targets)
    return sum(found.values()) if isinstance(found, dict) else torch.zeros(())
