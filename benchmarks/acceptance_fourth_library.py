"""Networks of torchvision, timm and transformers of the fourth set, built without weights."""

from __future__ import annotations

from functools import partial

import timm
import torch
import torchvision
import transformers
from acceptance_data import photos, pixels
from torch import Generator, Tensor, nn
from torch.nn import functional
from torchvision.models import segmentation
from torchvision.models._utils import IntermediateLayerGetter
from torchvision.models.mobilenetv3 import InvertedResidualConfig, MobileNetV3
from torchvision.models.optical_flow import raft
from torchvision.models.swin_transformer import PatchMerging
from torchvision.models.video.resnet import (
    BasicBlock,
    BasicStem,
    Conv3DNoTemporal,
    Conv3DSimple,
    VideoResNet,
)
from torchvision.models.video.swin_transformer import SwinTransformer3d
from torchvision.ops import FeaturePyramidNetwork


def timm_net(name: str, **options: object) -> nn.Module:
    return timm.create_model(name, num_classes=8, **options)


def mobilenet_v3() -> nn.Module:
    row = partial(InvertedResidualConfig, dilation=1, width_mult=1.0)
    rows = [
        row(16, 3, 16, 16, True, "RE", 2),
        row(16, 3, 64, 24, False, "RE", 2),
        row(24, 5, 96, 40, True, "HS", 2),
        row(40, 5, 120, 40, True, "HS", 1),
    ]
    return MobileNetV3(rows, 128, num_classes=8, norm_layer=partial(nn.BatchNorm2d, momentum=0.1))


def video_resnet(mixed: bool = False) -> nn.Module:
    """A slim torchvision VideoResNet; ``mixed`` has 3-D convolutions in the first stage only."""
    later = Conv3DNoTemporal if mixed else Conv3DSimple
    kinds = [Conv3DSimple, later, later, later]
    model = VideoResNet(BasicBlock, kinds, [1, 1, 1, 1], BasicStem, num_classes=8)
    model.layer3 = model.layer4 = nn.Identity()
    model.fc = nn.Linear(128, 8)
    return model


def swin_3d() -> nn.Module:
    return SwinTransformer3d(
        *([2, 4, 4], 24, [1, 1], [2, 4], [2, 3, 3]),
        stochastic_depth_prob=0.0,
        num_classes=8,
        downsample_layer=PatchMerging,
    )


def fcn() -> nn.Module:
    net = torchvision.models.resnet.ResNet(torchvision.models.resnet.BasicBlock, [1, 1, 1, 1])
    back = IntermediateLayerGetter(net, {"layer2": "out"})
    return segmentation.FCN(back, segmentation.fcn.FCNHead(128, 1))


def masked_out(model: nn.Module, images: Tensor, mask: Tensor, *_: Tensor) -> Tensor:
    found = model(images)
    return functional.binary_cross_entropy_with_logits(found["out"], mask)


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


class Panoptic(nn.Module):
    """Semantic FPN on torchvision's feature pyramid: four maps, enlarged and added."""

    def __init__(self) -> None:
        super().__init__()
        net = torchvision.models.resnet.ResNet(torchvision.models.resnet.BasicBlock, [1] * 4)
        self.stem = nn.Sequential(net.conv1, net.bn1, net.relu)
        self.stages = nn.ModuleList([net.layer1, net.layer2])
        self.pyramid = FeaturePyramidNetwork([64, 128], 32)
        groups = [nn.Conv2d(32, 32, 3, padding=1), nn.GroupNorm(8, 32), nn.ReLU()]
        self.smooth, self.last = nn.Sequential(*groups), nn.Conv2d(32, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        y, found = self.stem(x), {}
        for number, stage in enumerate(self.stages):
            y = stage(y)
            found[str(number)] = y
        maps = [self.smooth(y) for y in self.pyramid(found).values()]
        joined = maps[0] + functional.interpolate(maps[1], maps[0].shape[2:], mode="nearest")
        return functional.interpolate(self.last(joined), x.shape[2:], mode="bilinear")


def hf_net(kind: str, **options: object) -> nn.Module:
    """A transformers image classifier from its configuration."""
    config = getattr(transformers, f"{kind}Config")(num_labels=8, **options)
    return getattr(transformers, f"{kind}ForImageClassification")(config)


def cvt() -> nn.Module:
    return hf_net(
        "Cvt",
        embed_dim=[24, 48, 64],
        num_heads=[1, 2, 4],
        depth=[1, 2, 3],
        drop_path_rate=[0.0, 0.0, 0.05],
        patch_sizes=[5, 3, 3],
        patch_stride=[2, 2, 2],
    )


def dino_v2() -> nn.Module:
    return hf_net(
        "Dinov2",
        image_size=32,
        patch_size=4,
        hidden_size=48,
        num_hidden_layers=3,
        num_attention_heads=4,
        mlp_ratio=2,
    )


def pool_former() -> nn.Module:
    return hf_net(
        "PoolFormer",
        hidden_sizes=[24, 32, 48, 64],
        depths=[1, 1, 1, 1],
        patch_sizes=[3, 3, 3, 3],
        strides=[2, 2, 1, 2],
        padding=[1, 1, 1, 1],
        mlp_ratio=2.0,
        layer_scale_init_value=0.1,
    )


def hg_net() -> nn.Module:
    return hf_net(
        "HGNetV2",
        embedding_size=16,
        hidden_sizes=[32, 48, 64, 96],
        depths=[1, 1, 1, 1],
        stem_channels=[3, 12, 16],
        stage_in_channels=[16, 32, 48, 64],
        stage_mid_channels=[8, 12, 16, 24],
        stage_out_channels=[32, 48, 64, 96],
        stage_num_blocks=[1, 1, 1, 1],
        stage_numb_of_layers=[2, 2, 2, 2],
        stage_downsample=[False, True, False, True],
        stage_light_block=[False, False, True, True],
        stage_kernel_size=[3, 3, 3, 5],
    )


def labelled(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    return functional.cross_entropy(model(images).logits, labels)


def spectrogram_transformer() -> nn.Module:
    config = transformers.ASTConfig(
        num_labels=6,
        hidden_size=48,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=96,
        patch_size=8,
        frequency_stride=8,
        time_stride=8,
        max_length=32,
        num_mel_bins=32,
    )
    return transformers.ASTForAudioClassification(config)


def heard(model: nn.Module, power: Tensor, labels: Tensor) -> Tensor:
    return functional.cross_entropy(model(power[:, 0, :32].mT).logits, labels)


class Pairs(nn.Module):
    """transformers' DPT-like use of a backbone: a ResNet's two last maps, fused."""

    def __init__(self) -> None:
        super().__init__()
        config = transformers.ResNetConfig(
            embedding_size=24,
            hidden_sizes=[24, 48, 64],
            depths=[1, 1, 1],
            layer_type="basic",
            out_features=["stage1", "stage3"],
        )
        self.back = transformers.ResNetBackbone(config)
        self.near, self.far = nn.Conv2d(24, 32, 1), nn.Conv2d(64, 32, 1)
        self.last = nn.Sequential(nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 1, 3, padding=1))

    def forward(self, x: Tensor) -> Tensor:
        near, far = self.back(x).feature_maps
        far = functional.interpolate(self.far(far), near.shape[2:], mode="bilinear")
        found = self.last(self.near(near) + far)
        return functional.interpolate(found, x.shape[2:], mode="bilinear")


def moved(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Pictures of 128 px in [-1, 1], moved by 1 to 7 px to the right, and the flow."""
    images, _ = photos(160, "half")(generator, count)
    moves = torch.randint(1, 8, (count,), generator=generator)
    rows = [x[:, 16:144, 16 - m : 144 - m] for x, m in zip(images, moves.tolist(), strict=True)]
    flow = torch.stack([moves.float(), torch.zeros(count)], 1)[..., None, None]
    return images[..., 16:144, 16:144], torch.stack(rows), flow.expand(-1, -1, 128, 128)


def panned(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """A camera pans over a photograph, [N, 3, 8, 24, 24] in [-1, 1], and what it shows, 0 to 7."""
    images, labels = pixels(generator, count, 40)
    frames = [images[..., k : k + 24, k : k + 24] for k in range(0, 16, 2)]
    return torch.stack(frames, 2) * 2 - 1, labels
