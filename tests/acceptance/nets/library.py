"""Small networks of torchvision, timm and transformers, and the losses that they need."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import timm
import torch
import torchvision
import transformers
from timm.models.mlp_mixer import MlpMixer
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor, nn
from torch.nn import functional
from torchvision import models
from torchvision.models import detection, segmentation
from torchvision.models.convnext import CNBlockConfig, ConvNeXt
from torchvision.models.efficientnet import EfficientNet, MBConvConfig
from torchvision.models.mobilenetv3 import InvertedResidualConfig, MobileNetV3
from torchvision.models.optical_flow import raft
from torchvision.models.resnet import BasicBlock, ResNet
from torchvision.models.vgg import VGG, make_layers
from torchvision.models.video import resnet as films
from torchvision.ops import FeaturePyramidNetwork, MultiScaleRoIAlign

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


def timm_model(name: str, **options: object) -> nn.Module:
    return timm.create_model(name, pretrained=False, num_classes=8, **options)


class UnusedHead(nn.Module):
    """torchvision's ResNet as a feature extractor: its ``fc`` stays, and nothing calls it."""

    def __init__(self) -> None:
        super().__init__()
        self.net = ResNet(BasicBlock, [1, 1, 1, 1], num_classes=1000)
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


def hf_net(kind: str, **options: object) -> nn.Module:
    """The logits of a transformers image classifier."""
    return Logits(hf(f"{kind}ForImageClassification", num_labels=8, **options))


def hf_convnext() -> nn.Module:
    sizes = {"patch_size": 2, "hidden_sizes": [24, 48, 72], "depths": [1, 2, 1], "num_stages": 3}
    return hf_net("ConvNextV2", **sizes)


class Pooled(nn.Module):
    """A ViT with its pooler, which the classification does not use."""

    def __init__(self) -> None:
        super().__init__()
        self.vit = transformers.ViTModel(transformers.ViTConfig(**SMALL), add_pooling_layer=True)
        self.last = nn.Linear(48, 8)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.vit(x).last_hidden_state[:, 0])


class Segformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        sizes = {"num_encoder_blocks": 2, "depths": [1, 1], "sr_ratios": [2, 1], "strides": [2, 2]}
        more = {"hidden_sizes": [16, 32], "patch_sizes": [7, 3], "num_attention_heads": [1, 2]}
        last = {"mlp_ratios": [2, 2], "decoder_hidden_size": 32, "num_labels": 1}
        self.net = hf("SegformerForSemanticSegmentation", **sizes, **more, **last)

    def forward(self, x: Tensor) -> Tensor:
        return functional.interpolate(self.net(x).logits, x.shape[2:], mode="bilinear")


def masked_autoencoder() -> nn.Module:
    decoder = {"decoder_hidden_size": 32, "decoder_num_hidden_layers": 1}
    decoder |= {"decoder_num_attention_heads": 2, "decoder_intermediate_size": 64}
    return hf("ViTMAEForPreTraining", **SMALL, **decoder)


def wav2vec() -> nn.Module:
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    sizes |= {"intermediate_size": 64, "classifier_proj_size": 32, "num_labels": 6}
    convs = {"conv_dim": (24, 24, 32), "conv_stride": (5, 2, 2), "conv_kernel": (10, 3, 3)}
    convs |= {"num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 2}
    options = {"apply_spec_augment": False, **sizes, **convs}
    return Logits(hf("Wav2Vec2ForSequenceClassification", **options))


def heard(model: nn.Module, sounds: Tensor, labels: Tensor) -> Tensor:
    """transformers wants sounds without a channel."""
    return functional.cross_entropy(model(sounds[:, 0]), labels)


def whole_loss(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """Of a transformers model that returns its loss."""
    return model(images).loss


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


def maxvit() -> nn.Module:
    return torchvision.models.MaxVit(
        (64, 64), 16, 4, [16, 32], [1, 1], 16, stochastic_depth_prob=0.1, num_classes=8
    )


def mask_rcnn() -> nn.Module:
    """Pictures of 0 to 1 are standardized inside, as torchvision does."""
    back = Pyramid(nn.BatchNorm2d)
    pool = MultiScaleRoIAlign(["0", "1"], 5, 2)
    options = {"rpn_anchor_generator": anchors(), "box_roi_pool": pool, **SIDE}
    options |= {"box_batch_size_per_image": 64, "rpn_batch_size_per_image": 64}
    options |= {"rpn_pre_nms_top_n_train": 200, "rpn_post_nms_top_n_train": 100}
    options |= {"mask_roi_pool": MultiScaleRoIAlign(["0", "1"], 8, 2)}
    options |= {"mask_head": detection.mask_rcnn.MaskRCNNHeads(32, (32, 32), 1)}
    options |= {"mask_predictor": detection.mask_rcnn.MaskRCNNPredictor(32, 32, 2)}
    head = detection.faster_rcnn.TwoMLPHead(32 * 25, 64)
    box = detection.faster_rcnn.FastRCNNPredictor(64, 2)
    return detection.MaskRCNN(back, box_head=head, box_predictor=box, **options)


def deeplab() -> nn.Module:
    return segmentation.deeplabv3_mobilenet_v3_large(
        weights=None, weights_backbone=None, num_classes=2, aux_loss=True
    )


def with_aux(model: nn.Module, images: Tensor, mask: Tensor, *_: Tensor) -> Tensor:
    """torchvision's reference for segmentation: cross-entropy, half of it for the side head."""
    images = functional.interpolate(images, scale_factor=2.0)
    target = functional.interpolate(mask, scale_factor=2.0)[:, 0].long()
    shown = model(images)
    side = functional.cross_entropy(shown["aux"], target)
    return functional.cross_entropy(shown["out"], target) + 0.5 * side


def clip() -> nn.Module:
    text = BODY | {"num_hidden_layers": 2, "vocab_size": 64, "eos_token_id": 2}
    text |= {"max_position_embeddings": 8}
    return hf("CLIPModel", text_config=text, vision_config=SMALL, projection_dim=32)


def alike(model: nn.Module, images: Tensor, words: Tensor, labels: Tensor) -> Tensor:
    """CLIP's loss; captions of the same class count as right, as in UniCL."""
    logits = model(input_ids=words, pixel_values=images).logits_per_image
    same = (labels[:, None] == labels).float()
    goal = same / same.sum(1, keepdim=True)
    return (functional.cross_entropy(logits, goal) + functional.cross_entropy(logits.T, goal)) / 2


def swin2sr() -> nn.Module:
    sizes = {"image_size": 16, "patch_size": 1, "embed_dim": 24, "window_size": 4}
    return hf("Swin2SRForImageSuperResolution", **sizes, depths=[2, 2], num_heads=[2, 2])


def sharper(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    small = functional.interpolate(images, scale_factor=0.5, mode="bicubic", antialias=True)
    return functional.l1_loss(model(small.clamp(0, 1)).reconstruction, images)


def mobilenet_v3() -> nn.Module:
    row = partial(InvertedResidualConfig, dilation=1, width_mult=1.0)
    rows = [
        row(16, 3, 16, 16, True, "RE", 2),
        row(16, 3, 64, 24, False, "RE", 2),
        row(24, 5, 96, 40, True, "HS", 2),
        row(40, 5, 120, 40, True, "HS", 1),
    ]
    return MobileNetV3(rows, 128, num_classes=8, norm_layer=partial(nn.BatchNorm2d, momentum=0.1))


def video_resnet() -> nn.Module:
    """A slim torchvision VideoResNet."""
    kinds = [films.Conv3DSimple] * 4
    model = films.VideoResNet(films.BasicBlock, kinds, [1, 1, 1, 1], films.BasicStem, num_classes=8)
    model.layer3 = model.layer4 = nn.Identity()
    model.fc = nn.Linear(128, 8)
    return model


def optical_flow() -> nn.Module:
    """RAFT, slim, with InstanceNorm and BatchNorm as published, three updates."""
    encode = partial(raft.FeatureEncoder, block=raft.ResidualBlock, strides=(2, 1, 2, 2))
    features = encode(layers=(16, 16, 24, 32, 48), norm_layer=nn.InstanceNorm2d)
    context = encode(layers=(16, 16, 24, 32, 56), norm_layer=nn.BatchNorm2d)
    correlation = raft.CorrBlock(num_levels=2, radius=2)
    motion = raft.MotionEncoder(
        in_channels_corr=correlation.out_channels,
        corr_layers=(32,),
        flow_layers=(24, 16),
        out_channels=32,
    )
    memory = raft.RecurrentBlock(
        input_size=32 + 24, hidden_size=32, kernel_size=((3, 3),), padding=((1, 1),)
    )
    update = raft.UpdateBlock(
        motion_encoder=motion,
        recurrent_block=memory,
        flow_head=raft.FlowHead(in_channels=32, hidden_size=32),
    )
    return raft.RAFT(
        feature_encoder=features,
        context_encoder=context,
        corr_block=correlation,
        update_block=update,
        mask_predictor=None,
    )


def updates(model: nn.Module, one: Tensor, two: Tensor, flow: Tensor) -> Tensor:
    """L1 of each of three updates, the later the heavier."""
    found = model(one, two, num_flow_updates=3)
    terms = [0.8 ** (2 - k) * (y - flow).abs().mean() for k, y in enumerate(found)]
    return torch.stack(terms).sum()


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


def swin_v2() -> nn.Module:
    sizes = {"image_size": 32, "patch_size": 2, "embed_dim": 24, "depths": [1, 2]}
    return hf_net("Swinv2", **sizes, num_heads=[2, 4], window_size=4, drop_path_rate=0.0)
