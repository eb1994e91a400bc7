"""The models that `model_sweep.py` checks: how to build each, and its input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

TIMM = (
    "beit_base_patch16_224", "botnet26t_256", "mobileone_s0", "cait_xxs24_224", "coat_lite_tiny",
    "convit_tiny", "convmixer_768_32", "convnext_atto", "crossvit_tiny_240", "cs3darknet_focus_s",
    "davit_tiny", "deit_tiny_distilled_patch16_224", "densenet121", "dla46x_c", "dpn48b",
    "edgenext_xx_small", "efficientformer_l1", "efficientformerv2_s0", "efficientnet_b0",
    "efficientvit_b0", "efficientvit_m0", "eva02_tiny_patch14_224", "fasternet_t0", "fastvit_t8",
    "focalnet_tiny_srf", "gcvit_xxtiny", "ghostnet_050", "ghostnetv3_050", "halonet26t",
    "hardcorenas_a", "hgnetv2_b0", "hiera_tiny_224", "hrnet_w18_small", "inception_next_atto",
    "inception_v4", "lambda_resnet26t", "levit_conv_128s", "mambaout_femto", "coatnet_nano_rw_224",
    "poolformer_s12", "mixer_s32_224", "mobilenetv3_small_050", "mobilevit_xxs",
    "mobilevitv2_050", "mvitv2_tiny", "nest_tiny", "nf_resnet26", "pit_ti_224", "pvt_v2_b0",
    "rdnet_tiny", "regnetx_002", "repghostnet_050", "repvit_m0_9", "res2net50_14w_8s",
    "resnest14d", "resnet10t", "resnetv2_50x1_bit", "rexnet_100", "selecsls42",
    "legacy_seresnet18", "sequencer2d_s", "shvit_s1", "skresnet18", "starnet_s050",
    "swiftformer_xs", "swin_tiny_patch4_window7_224", "swinv2_cr_tiny_224", "tf_mixnet_s",
    "tiny_vit_5m_224", "tnt_s_patch16_224", "tresnet_m", "twins_svt_small", "visformer_tiny",
    "vit_tiny_patch16_224", "volo_d1_224", "ese_vovnet19b_slim_dw", "xception41",
    "xcit_nano_12_p16_224",
)  # fmt: skip
"""One small timm model per family."""

SIDES = (64, 128, 224, 256, 299)
"""Sides of the input, px, tried in this order until a model accepts one."""

OPTIONS: dict[str, dict[str, Any]] = {
    "googlenet": {"init_weights": False},
    "inception_v3": {"init_weights": False},
    **{f"vit_{kind}": {"image_size": 64} for kind in ("b_16", "b_32", "l_16", "l_32")},
    "vit_h_14": {"image_size": 56},
}
"""Extra arguments for some of torchvision's builders."""


@dataclass(frozen=True, slots=True)
class Case:
    """A model of torchvision or timm."""

    name: str
    """Name of its builder."""
    task: str
    """``"classification"``, ``"segmentation"``, ``"detection"`` or ``"timm"``."""

    def build(self) -> nn.Module:
        """Build the model with random weights."""
        torch.manual_seed(0)
        if self.task == "timm":
            import timm

            return timm.create_model(self.name, pretrained=False)
        import torchvision

        options = dict(OPTIONS.get(self.name, {}))
        if self.task != "classification":
            options["weights_backbone"] = None
        if self.task == "detection" and not self.name.startswith("ssd"):
            options |= {"min_size": 64, "max_size": 96}
        return torchvision.models.get_model(self.name, weights=None, **options)

    def sides(self, model: nn.Module) -> tuple[int, ...]:
        """Sides of the input to try, px, in order."""
        known = getattr(model, "pretrained_cfg", None) or {}
        if known.get("fixed_input_size"):
            return (known["input_size"][-1],)
        if self.task == "detection":
            return (96,)
        asked = OPTIONS.get(self.name, {}).get("image_size")
        return (asked,) if asked and self.task == "classification" else SIDES

    def arguments(self, side: int) -> tuple[Any, ...]:
        """Arguments of a training call: two images, and targets if it is a detector."""
        images = torch.rand(2, 3, side, side, generator=torch.Generator().manual_seed(1))
        if self.task != "detection":
            return (images,)
        boxes = torch.tensor([[8.0, 8.0, 56.0, 56.0], [30.0, 20.0, 90.0, 80.0]])
        target = {"boxes": boxes, "labels": torch.tensor([1, 2])}
        if self.name.startswith("mask"):
            target["masks"] = torch.ones(2, side, side, dtype=torch.uint8)
        if self.name.startswith("keypoint"):
            middle = (boxes[:, None, :2] + boxes[:, None, 2:]) / 2  # [2, 1, 2]
            target["keypoints"] = torch.cat([middle, torch.ones(2, 1, 1)], 2).repeat(1, 17, 1)
            target["labels"] = torch.ones(2, dtype=torch.int64)
        return list(images), [dict(target), dict(target)]


def cases(*, timm: bool) -> list[Case]:
    """All models to check; with ``timm``, also those of `TIMM`."""
    import torchvision.models as zoo

    found = [Case(name, "classification") for name in zoo.list_models(zoo)]
    found += [Case(name, "segmentation") for name in zoo.list_models(zoo.segmentation)]
    found += [Case(name, "detection") for name in zoo.list_models(zoo.detection)]
    return found + [Case(name, "timm") for name in TIMM if timm]
