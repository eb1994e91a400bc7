"""Networks of torchvision, timm and transformers of the third set, and the losses they need."""

from __future__ import annotations

from functools import partial

import timm
import torch
import torchvision
import transformers
from acceptance_later_library import Pyramid
from torch import Tensor, nn
from torch.nn import functional
from torchvision.models import detection, segmentation
from torchvision.models.efficientnet import EfficientNet, FusedMBConvConfig, MBConvConfig
from torchvision.models.regnet import BlockParams, RegNet
from torchvision.ops import MultiScaleRoIAlign


def efficientnet_v2() -> nn.Module:
    fused, block = FusedMBConvConfig, MBConvConfig
    stages = [fused(1, 3, 1, 16, 16, 1), fused(4, 3, 2, 16, 32, 2), block(4, 3, 2, 32, 48, 2)]
    norm = partial(nn.BatchNorm2d, eps=1e-3)
    options = {"last_channel": 192, "norm_layer": norm, "num_classes": 8}
    return EfficientNet(stages, 0.2, stochastic_depth_prob=0.2, **options)


def maxvit() -> nn.Module:
    return torchvision.models.MaxVit(
        (64, 64), 16, 4, [16, 32], [1, 1], 16, stochastic_depth_prob=0.1, num_classes=8
    )


def regnet() -> nn.Module:
    parts = BlockParams.from_init_params(6, 24, 16.0, 2.0, 8, se_ratio=0.25)
    return RegNet(parts, num_classes=8)


ROI = {"min_size": 64, "max_size": 64}


def anchors() -> nn.Module:
    return detection.anchor_utils.AnchorGenerator(((12, 16), (24, 32)), ((1.0,),) * 2)


def faster_rcnn(mask: bool = False) -> nn.Module:
    """Pictures of 0 to 1 are standardized inside, as torchvision does."""
    back = Pyramid(nn.BatchNorm2d)
    pool = MultiScaleRoIAlign(["0", "1"], 5, 2)
    options = {"rpn_anchor_generator": anchors(), "box_roi_pool": pool, **ROI}
    options |= {"box_batch_size_per_image": 64, "rpn_batch_size_per_image": 64}
    options |= {"rpn_pre_nms_top_n_train": 200, "rpn_post_nms_top_n_train": 100}
    if mask:
        options |= {"mask_roi_pool": MultiScaleRoIAlign(["0", "1"], 8, 2)}
        options |= {"mask_head": detection.mask_rcnn.MaskRCNNHeads(32, (32, 32), 1)}
        predictor = detection.mask_rcnn.MaskRCNNPredictor(32, 32, 2)
        options |= {"mask_predictor": predictor}
        kind = detection.MaskRCNN
    else:
        kind = detection.FasterRCNN
    head = detection.faster_rcnn.TwoMLPHead(32 * 25, 64)
    box = detection.faster_rcnn.FastRCNNPredictor(64, 2)
    return kind(back, box_head=head, box_predictor=box, **options)


def ssd() -> nn.Module:
    back = Pyramid(nn.BatchNorm2d)
    back.out_channels = [32, 32]
    boxes = detection.anchor_utils.DefaultBoxGenerator([[2], [2]], scales=[0.15, 0.3, 0.5])
    return detection.ssd.SSD(back, boxes, (64, 64), 2)


def found(model: nn.Module, images: Tensor, mask: Tensor, discs: Tensor, *_: Tensor) -> Tensor:
    """The sum of a torchvision detector's losses on pictures of 0 to 1 at 64 px, with masks."""
    images = functional.interpolate(images / 2 + 0.5, scale_factor=2.0)
    masks = functional.interpolate(mask, scale_factor=2.0)[:, 0].to(torch.uint8)
    centre, radius = discs[:, :2], discs[:, 2:]
    corners = torch.cat([centre - radius, centre + radius], 1).mul(2).clamp(0, 64)
    ones = torch.ones(1, dtype=torch.long)
    targets = [
        {"boxes": box[None], "labels": ones, "masks": shape[None]}
        for box, shape in zip(corners, masks, strict=True)
    ]
    return sum(model(list(images), targets).values())


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


def timm_net(name: str, **options: object) -> nn.Module:
    return timm.create_model(name, pretrained=False, num_classes=8, **options)


def clip() -> nn.Module:
    text = {"vocab_size": 64, "hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 2}
    text |= {"num_attention_heads": 4, "max_position_embeddings": 8, "eos_token_id": 2}
    vision = {"hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 3}
    vision |= {"num_attention_heads": 4, "image_size": 32, "patch_size": 4}
    config = transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=32)
    return transformers.CLIPModel(config)


def alike(model: nn.Module, images: Tensor, words: Tensor, labels: Tensor) -> Tensor:
    """CLIP's loss; captions of the same class count as right, as in UniCL."""
    logits = model(input_ids=words, pixel_values=images).logits_per_image
    same = (labels[:, None] == labels).float()
    goal = same / same.sum(1, keepdim=True)
    return (functional.cross_entropy(logits, goal) + functional.cross_entropy(logits.T, goal)) / 2


def upernet() -> nn.Module:
    back = transformers.ConvNextConfig(
        patch_size=2, hidden_sizes=[16, 24, 32, 48], depths=[1, 1, 1, 1], out_indices=[1, 2, 3, 4]
    )
    config = transformers.UperNetConfig(
        backbone_config=back, hidden_size=32, pool_scales=[1, 2], auxiliary_in_channels=32
    )
    config.auxiliary_channels, config.num_labels = 24, 2
    return transformers.UperNetForSemanticSegmentation(config)


def labelled(model: nn.Module, images: Tensor, mask: Tensor, *_: Tensor) -> Tensor:
    images = functional.interpolate(images, scale_factor=2.0)
    target = functional.interpolate(mask, scale_factor=2.0)[:, 0].long()
    return model(pixel_values=images, labels=target).loss


def swin2sr() -> nn.Module:
    config = transformers.Swin2SRConfig(
        image_size=16, patch_size=1, embed_dim=24, depths=[2, 2], num_heads=[2, 2], window_size=4
    )
    return transformers.Swin2SRForImageSuperResolution(config)


def sharper(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    small = functional.interpolate(images, scale_factor=0.5, mode="bicubic", antialias=True)
    return functional.l1_loss(model(small.clamp(0, 1)).reconstruction, images)


def whisper() -> nn.Module:
    config = transformers.WhisperConfig(
        num_mel_bins=33,
        d_model=48,
        encoder_layers=2,
        encoder_attention_heads=4,
        encoder_ffn_dim=96,
        max_source_positions=16,
        decoder_layers=1,
        num_labels=6,
        classifier_proj_size=32,
    )
    return transformers.WhisperForAudioClassification(config)


def heard(model: nn.Module, spectra: Tensor, labels: Tensor) -> Tensor:
    return model(input_features=spectra[:, 0], labels=labels).loss


def video_mae() -> nn.Module:
    config = transformers.VideoMAEConfig(
        image_size=24,
        patch_size=6,
        num_frames=8,
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=96,
        decoder_num_attention_heads=4,
        decoder_hidden_size=48,
        decoder_num_hidden_layers=1,
        decoder_intermediate_size=96,
        norm_pix_loss=False,
    )
    return transformers.VideoMAEForPreTraining(config)


def hidden_patches(model: nn.Module, films: Tensor, *_: Tensor) -> Tensor:
    """Three quarters of the tubes are hidden, the same number in each film."""
    order = torch.rand(len(films), 64).argsort(1)
    return model(pixel_values=films, bool_masked_pos=order < 48).loss
