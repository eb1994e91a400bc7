"""Healthy: boxes, keypoints, counts and places are found in images."""

from __future__ import annotations

from functools import partial

import data
import losses
import optimizers as o
import torch
from data import P
from draws.images import GRID
from loops import seen
from losses import centres
from nets import classifiers as cnn
from nets import library
from nets.dense import UNet
from nets.maps import UBN, center_net
from nets.parts import Net, Residual, changed_weights, group, half, up
from recipes import DECAY, FEW, FIT, SGD, SHORT, how, one
from torch import Generator, Tensor, nn, optim
from torch.nn import functional
from torchvision import models
from torchvision.models import detection
from torchvision.ops import MultiScaleRoIAlign


def glass(width: int, deep: int = 2) -> nn.Module:
    """Residual blocks, on the map and on one of half its size."""
    low, *more = (Residual(cnn.unit(width, 12, 1), nn.Conv2d(12, width, 3, 1, 1)) for _ in "abc")
    inner = glass(width, deep - 1) if deep else more.pop()
    return Net(lambda m, x: m["a"](x) + m["b"](x), a=more[0], b=nn.Sequential(half, low, inner, up))


def integral(model: nn.Module, images: Tensor, _: Tensor, discs: Tensor, *__: Tensor) -> Tensor:
    """The mean place of a map's softmax, as in integral pose regression."""
    share = model(images).flatten(1).softmax(1).view(-1, 32, 32)
    along = torch.arange(32.0)
    found = torch.stack([(share.sum(1) * along).sum(1), (share.sum(2) * along).sum(1)], 1)
    return functional.l1_loss(found, discs[:, :2]) / 16


RAYS = torch.stack([(torch.arange(8) * torch.pi / 4).cos(), (torch.arange(8) * torch.pi / 4).sin()])


def crowd(g: Generator, n: int) -> tuple[Tensor, ...]:
    """Photographs with 3 to 12 bright heads, and their density on a stride of 4, scaled."""
    (x, _), place = P(g, n), 32 * torch.rand(n, 12, 2, 1, 1, generator=g)
    there = torch.arange(12) < torch.randint(3, 13, (n, 1), generator=g)
    spots = (-(GRID - place).square().sum(2) / 4).exp() * there[..., None, None]
    spots = spots.sum(1, True)
    return x * 0.6 + 2 * spots.clamp(max=1), 2 * functional.avg_pool2d(spots, 4)


CASES = [
    *seen(
        "2026-11-27T11:30",
        one(
            "center_net",
            center_net,
            data.scenes,
            centres,
            how(2e-3, steps=160, every=16),
            "CenterNet",
        ),
        one("integral", UBN, data.scenes, integral, how(2e-3, o.stairs, batch=8), "integral pose"),
    ),
    *seen(
        "2026-11-28T03:00",
        one(
            "fcos",
            lambda: detection.FCOS(
                library.Pyramid(group),
                2,
                image_mean=[0.0] * 3,
                image_std=[1.0] * 3,
                **library.SIDE,
                anchor_generator=detection.anchor_utils.AnchorGenerator(
                    ((8,), (16,)), ((1.0,),) * 2
                ),
            ),
            data.scenes,
            library.boxes,
            FIT(1e-3, **FEW | {"batch": 3}),
            "FCOS",
        ),
        one(
            "simple_pose",
            lambda: nn.Sequential(
                cnn.unit(3, 24, stride=2),
                cnn.unit(24, 48, stride=2),
                *(
                    layer
                    for k in (48, 32)
                    for layer in (
                        changed_weights(
                            nn.ConvTranspose2d(k, 32, 4, 2, 1, bias=False),
                            lambda p: p.normal_(0, 1e-3),
                        ),
                        nn.BatchNorm2d(32),
                        nn.ReLU(),
                    )
                ),
                changed_weights(nn.Conv2d(32, 1, 1), lambda p: p.normal_(0, 1e-3)),
            ),
            data.scenes,
            losses.heat,
            FIT(3e-3, batch=8, steps=150),
            "simple baseline of poses",
        ),
    ),
    *seen(
        "2026-11-28T10:00",
        one(
            "pose_machine",
            lambda: Net(
                lambda m, x: (f := m["f"](x), a := m["a"](f), m["b"](torch.cat([f, a], 1)))[1:],
                f=cnn.unit(3, 24, 5, norm=None),
                **{
                    k: nn.Sequential(
                        cnn.unit(n, 24, 5, norm=None),
                        cnn.unit(24, 24, 1, norm=None),
                        nn.Conv2d(24, 1, 1),
                    )
                    for k, n in (("a", 24), ("b", 25))
                },
            ),
            data.scenes,
            lambda m, x, y, d, _: sum(losses.heat(lambda _, h=h: h, x, y, d) for h in m(x)),
            FIT(1e-3, o.stairs, batch=6),
            "pose machine",
        ),
    ),
    *seen(
        "2026-11-28T12:40",
        one(
            "retina_net",
            library.retinanet,
            data.scenes,
            library.boxes,
            SGD(0.01, o.ramp, weight_decay=1e-4, batch=4),
            "torchvision RetinaNet",
        ),
        one(
            "hourglass",
            lambda: Net(
                lambda m, x: (
                    h := m["stem"](x),
                    a := m["a"](h),
                    p := m["p"](a),
                    b := m["b"](h + m["q"](a) + m["r"](p)),
                    p,
                    m["s"](b),
                )[4:],
                stem=cnn.unit(3, 24),
                a=nn.Sequential(glass(24), cnn.unit(24, 24, 1)),
                b=nn.Sequential(glass(24), cnn.unit(24, 24, 1)),
                p=nn.Conv2d(24, 1, 1),
                q=nn.Conv2d(24, 24, 1),
                r=nn.Conv2d(1, 24, 1),
                s=nn.Conv2d(24, 1, 1),
            ),
            data.scenes,
            lambda m, x, y, d, _: sum(losses.heat(lambda _, h=h: h, x, y, d) for h in m(x)),
            FIT(2.5e-4, kind=optim.RMSprop, batch=6),
            "stacked hourglass",
        ),
    ),
    *seen(
        "2026-11-28T13:20",
        one(
            "vit_pose",
            partial(
                library.hf,
                "VitPoseForPoseEstimation",
                backbone_config={
                    "model_type": "vitpose_backbone",
                    **library.BODY,
                    "image_size": [64, 64],
                    "patch_size": [8, 8],
                    "num_labels": 1,
                },
                num_labels=1,
                scale_factor=4,
                use_simple_decoder=True,
            ),
            data.scenes,
            lambda m, x, *y: losses.heat(
                lambda z: m(functional.interpolate(z, (64, 64))).heatmaps, x, *y
            ),
            FIT(5e-4, o.ramp, **DECAY, clip=1.0, **SHORT),
            "ViTPose",
        ),
        one(
            "faster_rcnn",
            lambda: detection.FasterRCNN(
                library.Pyramid(nn.BatchNorm2d),
                None,
                **library.SIDE,
                rpn_anchor_generator=library.anchors(),
                box_roi_pool=MultiScaleRoIAlign(["0", "1"], 5, 2),
                box_head=detection.faster_rcnn.TwoMLPHead(800, 64),
                box_predictor=detection.faster_rcnn.FastRCNNPredictor(64, 2),
                rpn_pre_nms_top_n_train=200,
                rpn_post_nms_top_n_train=100,
                box_batch_size_per_image=64,
            ),
            data.scenes,
            library.found,
            SGD(5e-3, o.ramp, weight_decay=5e-4, batch=4),
            "torchvision Faster R-CNN",
        ),
    ),
    *seen(
        "2026-11-28T14:55",
        one(
            "ssd",
            lambda: models.detection.ssd.SSD(
                library.Pyramid(nn.BatchNorm2d),
                k := models.detection.ssd.DefaultBoxGenerator([[2], [2]], scales=[0.2, 0.4, 0.7]),
                (64, 64),
                2,
                head=models.detection.ssd.SSDHead([32, 32], k.num_anchors_per_location(), 2),
            ),
            data.scenes,
            library.found,
            SGD(2e-3, o.stairs, weight_decay=5e-4, batch=8),
            "torchvision SSD",
        ),
    ),
    *seen(
        "2026-11-28T15:30",
        one(
            "localized",
            lambda: nn.Sequential(cnn.trunk(24), nn.Linear(48, 32), nn.ReLU(), nn.Linear(32, 3)),
            data.scenes,
            losses.centre,
            FIT(1e-3, o.stairs),
            "a disc's place, regression",
        ),
    ),
    *seen(
        "2026-11-28T16:05",
        one(
            "csr_net",
            lambda: nn.Sequential(
                cnn.unit(3, 24, norm=None),
                half,
                cnn.unit(24, 48, norm=None),
                half,
                *(cnn.unit(48, 48, norm=None, dilation=2) for _ in "abc"),
                nn.Conv2d(48, 1, 1),
            ),
            crowd,
            lambda m, x, y: functional.mse_loss(m(x), y),
            FIT(1e-3, weight_decay=5e-4),
            "CSRNet",
        ),
        one(
            "star_dist",
            partial(UNet, 3, 9, 16),
            data.scenes,
            lambda m, x, y, d, _: (
                z := m(x),
                p := GRID - d[:, :2, None, None],
                q := torch.einsum("nchw,cr->nrhw", p, RAYS),
                r := (
                    (q**2 - p.square().sum(1, True) + d[:, 2, None, None, None] ** 2).relu() + 1e-6
                ).sqrt()
                - q,
                functional.binary_cross_entropy_with_logits(z[:, :1], y)
                + 0.2 * ((z[:, 1:] - r).abs() * y).sum() / y.sum() / 8,
            )[4],
            FIT(3e-4, batch=8),
            "StarDist",
        ),
    ),
]
