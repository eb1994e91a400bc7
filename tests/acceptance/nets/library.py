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
from torchvision.models import detection
from torchvision.models.convnext import CNBlockConfig, ConvNeXt
from torchvision.models.efficientnet import EfficientNet, MBConvConfig
from torchvision.models.mobilenetv3 import InvertedResidualConfig, MobileNetV3
from torchvision.models.optical_flow import raft
from torchvision.models.vgg import VGG, make_layers
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


def swin() -> nn.Module:
    return torchvision.models.SwinTransformer(
        [2, 2], 24, [2, 2], [2, 4], [4, 4], stochastic_depth_prob=0.1, num_classes=8
    )


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


class Logits(nn.Module):
    """transformers' answer reduced to its logits."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x).logits


def heard(model: nn.Module, sounds: Tensor, labels: Tensor) -> Tensor:
    """transformers wants sounds without a channel."""
    return functional.cross_entropy(model(sounds[:, 0]), labels)


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


def mobilenet_v3() -> nn.Module:
    row = partial(InvertedResidualConfig, dilation=1, width_mult=1.0)
    rows = [
        row(16, 3, 16, 16, True, "RE", 2),
        row(16, 3, 64, 24, False, "RE", 2),
        row(24, 5, 96, 40, True, "HS", 2),
        row(40, 5, 120, 40, True, "HS", 1),
    ]
    return MobileNetV3(rows, 128, num_classes=8, norm_layer=partial(nn.BatchNorm2d, momentum=0.1))


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
