"""Healthy: masks, regions and edges of images and volumes."""

from __future__ import annotations

from functools import partial

import data
import losses
import optimizers as o
import torch
import transformers
from data import changed
from draws.images import ALONG, regions, soft_tissue
from loops import seen
from losses import ignoring, told
from nets import classifiers as cnn
from nets import library
from nets.dense import LinkNet, SegNet, UNet, balanced
from nets.maps import FOUR_STAGES, UBN, Gate, Pyramid
from nets.parts import Net, Residual, act, half, up
from recipes import DECAY, FIT, FLAT, NESTEROV, SGD, SHORT, how, one
from torch import Tensor, nn, optim
from torch.nn import functional
from torchvision import models
from torchvision.models import segmentation
from torchvision.models._utils import IntermediateLayerGetter
from torchvision.ops import sigmoid_focal_loss


def thin(model: nn.Module, images: Tensor, edges: Tensor) -> Tensor:
    return sigmoid_focal_loss(model(images), edges, 0.75, 2.0, "mean")


def both(model: nn.Module, images: Tensor, mask: Tensor, _: Tensor, far: Tensor) -> Tensor:
    """Mask and depth at half the size."""
    found, halved = model(images), partial(functional.avg_pool2d, kernel_size=2)
    return functional.binary_cross_entropy_with_logits(
        found["mask"], halved(mask)
    ) + functional.l1_loss(found["far"], halved(far))


line = torch.arange(32)

CASES = [
    *seen(
        "2026-11-27T11:30",
        one(
            "regions",
            partial(UBN, out=8),
            regions,
            ignoring,
            how(0.05, o.poly, **NESTEROV),
            "gated U-Net",
        ),
        one(
            "mask_dice",
            Gate,
            data.scenes,
            losses.both_masks,
            how(2e-3, o.cosine, **DECAY, batch=8),
            "gated U-Net",
        ),
        one(
            "one_mask",
            Gate,
            data.one_batch(data.scenes),
            losses.dice,
            how(2e-3, batch=1, steps=160, every=16),
            "gated U-Net",
        ),
        one("thin_edges", UBN, data.edges, thin, how(2e-3, **DECAY, batch=8), "gated U-Net"),
        one(
            "two_maps",
            partial(Pyramid, mask=1, far=1),
            data.scenes,
            both,
            how(0.05, o.linear_down, **NESTEROV),
            "FPN",
        ),
        one(
            "nn_unet",
            partial(Gate, 1, norm=partial(nn.InstanceNorm3d, affine=True), wide=False),
            soft_tissue,
            losses.both_masks,
            how(
                0.01,
                o.poly,
                **NESTEROV | {"momentum": 0.99, "weight_decay": 3e-5},
                clip=12,
                batch=2,
            ),
            "nnU-Net (3-D)",
        ),
        one(
            "two_classes",
            partial(Gate, out=2),
            data.scenes,
            losses.two_classes,
            how(0.05, o.poly, **NESTEROV, batch=8),
            "gated U-Net",
        ),
    ),
    *seen(
        "2026-11-28T10:00",
        one(
            "seg_net",
            SegNet,
            data.scenes,
            losses.masks,
            SGD(0.1, weight_decay=5e-4, batch=8),
            "SegNet",
        ),
        one(
            "uper_net",
            lambda: library.hf(
                "UperNetForSemanticSegmentation",
                hidden_size=32,
                backbone_config=transformers.ConvNextConfig(
                    hidden_sizes=[16, 24, 32, 48],
                    depths=FLAT,
                    out_features=[f"stage{k}" for k in (1, 2, 3, 4)],
                ),
                auxiliary_in_channels=32,
                num_labels=2,
                auxiliary_channels=16,
            ),
            data.scenes,
            lambda m, x, y, *_: told(m, x, y[:, 0].long()),
            FIT(1e-3, o.poly, **DECAY, batch=8),
            "UperNet, ConvNeXt",
        ),
        one(
            "lr_aspp",
            lambda: segmentation.lraspp_mobilenet_v3_large(
                weights=None, num_classes=2, weights_backbone=None
            ),
            data.scenes,
            lambda m, x, y, *_: losses.two_classes(lambda f: m(f)["out"], x, y),
            SGD(0.02, o.poly, weight_decay=1e-4, batch=8, steps=80, every=8),
            "torchvision LR-ASPP",
        ),
        one(
            "matting",
            partial(UNet, 4, 1, 12),
            data.scenes,
            lambda m, x, y, *_: (
                (
                    (
                        far := m(
                            torch.cat(
                                [
                                    x,
                                    t := (
                                        functional.max_pool2d(y, 5, 1, 2)
                                        - functional.max_pool2d(-y, 5, 1, 2)
                                    )
                                    / 2,
                                ],
                                1,
                            )
                        ).sigmoid()
                        - y
                    ).abs()
                    * (t == 0.5)
                ).sum()
                / (t == 0.5).sum()
                + (far * x).abs().mean()
            ),
            FIT(1e-3, o.cosine, batch=8),
            "matting with a trimap",
        ),
        one(
            "signed_distance",
            partial(UNet, 3, 1, 12, None),
            data.scenes,
            lambda m, x, _, d, __: functional.l1_loss(
                m(x).tanh(),
                (
                    (
                        d[:, 2, None, None]
                        - torch.hypot(
                            line - d[:, 0, None, None], line[:, None] - d[:, 1, None, None]
                        )
                    )
                    / 4
                ).tanh()[:, None],
            ),
            FIT(1e-3, batch=8),
            "distances",
        ),
        one(
            "genesis",
            lambda: nn.Sequential(Gate(1, norm=nn.BatchNorm3d, wide=False), nn.Sigmoid()),
            changed(data.hounsfield, lambda x: (x.clamp(-160, 240) + 160) / 400),
            lambda m, x, _: functional.mse_loss(
                m(
                    torch.where(
                        functional.interpolate(torch.rand(len(x), 1, 4, 6, 6), scale_factor=4)
                        < 0.2,
                        torch.rand_like(x),
                        x,
                    )
                ),
                x,
            ),
            SGD(1.0, o.stairs, batch=2, steps=90, every=9),
            "Models Genesis, 3-D",
        ),
    ),
    *seen(
        "2026-11-28T11:40",
        one(
            "hardest",
            partial(UNet, 3, 2, 12),
            data.scenes,
            lambda m, x, y, *_: (
                functional.cross_entropy(m(x), y[:, 0].long(), reduction="none")
                .flatten()
                .topk(len(x) * 512)[0]
                .mean()
            ),
            SGD(0.05, o.poly, weight_decay=5e-4, batch=8),
            "U-Net, OHEM",
        ),
    ),
    *seen(
        "2026-11-28T12:40",
        one(
            "link_net",
            LinkNet,
            data.scenes,
            losses.masks,
            FIT(5e-4, o.stairs, kind=optim.RMSprop, batch=8),
            "LinkNet",
        ),
        one(
            "milesial",
            partial(UNet, 3, 1, 16),
            changed(data.scenes, lambda x: x / 2 + 0.5),
            losses.both_masks,
            FIT(1e-5, kind=optim.RMSprop, weight_decay=1e-8, momentum=0.999, clip=1.0, batch=4),
            "Pytorch-UNet",
        ),
        one(
            "psp_net",
            lambda: Net(
                lambda m, x: (
                    m["last"](
                        torch.cat(
                            [
                                h := m["b"](z := m["a"](x)),
                                *(
                                    functional.interpolate(m[k](h), (8, 8), mode="bilinear")
                                    for k in "1236"
                                ),
                            ],
                            1,
                        )
                    ),
                    m["side"](z),
                ),
                a=nn.Sequential(
                    cnn.unit(3, 24, stride=2), cnn.unit(24, 32, stride=2), cnn.unit(32, 32)
                ),
                b=nn.Sequential(cnn.unit(32, 48, dilation=2), cnn.unit(48, 48, dilation=4)),
                **{
                    k: nn.Sequential(nn.AdaptiveAvgPool2d(int(k)), cnn.unit(48, 12, 1))
                    for k in "1236"
                },
                last=nn.Sequential(cnn.unit(96, 32), nn.Dropout2d(0.1), nn.Conv2d(32, 2, 1)),
                side=nn.Sequential(cnn.unit(32, 16), nn.Conv2d(16, 2, 1)),
            ),
            data.scenes,
            lambda m, x, y, *_: sum(
                w
                * functional.cross_entropy(
                    functional.interpolate(f, (32, 32), mode="bilinear"), y[:, 0].long()
                )
                for w, f in zip((1, 0.4), m(x), strict=True)
            ),
            SGD(0.01, o.poly, weight_decay=1e-4, batch=16),
            "PSPNet",
        ),
        one(
            "hed",
            lambda: cnn.he(
                Net(
                    lambda m, x: [
                        *(
                            z := [
                                functional.interpolate(m[f"side{k}"](x), (40, 40), mode="bilinear")
                                for k in "abc"
                                if (x := m[k](x)) is not None
                            ]
                        ),
                        m["fuse"](torch.cat(z, 1)),
                    ],
                    a=nn.Sequential(cnn.unit(3, 16, norm=None), cnn.unit(16, 16, norm=None)),
                    b=nn.Sequential(half, cnn.unit(16, 32, norm=None), cnn.unit(32, 32, norm=None)),
                    c=nn.Sequential(half, cnn.unit(32, 48, norm=None), cnn.unit(48, 48, norm=None)),
                    sidea=nn.Conv2d(16, 1, 1),
                    sideb=nn.Conv2d(32, 1, 1),
                    sidec=nn.Conv2d(48, 1, 1),
                    fuse=nn.Conv2d(3, 1, 1),
                )
            ),
            data.edges,
            balanced,
            FIT(1e-3, o.stairs, weight_decay=2e-4, batch=6),
            "HED",
        ),
    ),
    *seen(
        "2026-11-28T13:20",
        one(
            "fcn",
            lambda: segmentation.FCN(
                IntermediateLayerGetter(
                    cnn.resnet(output_stride=8), {"layer4": "out", "layer3": "aux"}
                ),
                segmentation.fcn.FCNHead(64, 2),
                segmentation.fcn.FCNHead(64, 2),
            ),
            data.scenes,
            lambda m, x, y, *_: (
                z := m(x),
                sum(
                    w * functional.cross_entropy(z[k], y[:, 0].long())
                    for k, w in (("out", 1), ("aux", 0.5))
                ),
            )[1],
            SGD(0.01, o.poly, weight_decay=1e-4),
            "torchvision FCN, auxiliary head",
        ),
        one(
            "beit_segments",
            partial(
                library.hf,
                "BeitForSemanticSegmentation",
                **FOUR_STAGES,
                num_labels=2,
                pool_scales=[1, 2],
                use_auxiliary_head=False,
            ),
            data.scenes,
            lambda m, x, y, *_: told(m, x, y[:, 0].long()),
            FIT(5e-4, o.poly, **DECAY, batch=8),
            "Beit, UperNet head",
        ),
    ),
    *seen(
        "2026-11-28T14:55",
        one(
            "deep_lab_plus",
            lambda: Net(
                lambda m, x: (
                    z := m["body"](x),
                    functional.interpolate(
                        m["last"](
                            torch.cat(
                                [
                                    m["low"](z["low"]),
                                    functional.interpolate(
                                        m["aspp"](z["out"]), z["low"].shape[2:], mode="bilinear"
                                    ),
                                ],
                                1,
                            )
                        ),
                        (32, 32),
                        mode="bilinear",
                    ),
                )[1],
                body=models._utils.IntermediateLayerGetter(
                    cnn.resnet(output_stride=8), {"layer1": "low", "layer4": "out"}
                ),
                low=cnn.unit(16, 12, 1),
                last=nn.Sequential(cnn.unit(44, 32), nn.Conv2d(32, 2, 1)),
                aspp=models.segmentation.deeplabv3.ASPP(64, [2, 4, 6], 32),
            ),
            data.scenes,
            losses.two_classes,
            SGD(0.01, o.poly, weight_decay=1e-4),
            "DeepLab v3+",
        ),
        one(
            "nested",
            lambda: Net(
                lambda m, x: (
                    a := m["a"](x),
                    b := m["b"](half(a)),
                    c := m["c"](half(b)),
                    d := m["d"](torch.cat([a, up(b)], 1)),
                    e := m["e"](torch.cat([b, up(c)], 1)),
                    f := m["f"](torch.cat([a, d, up(e)], 1)),
                    [m["p"](d), m["q"](f)],
                )[-1],
                **{
                    k: nn.Sequential(cnn.unit(n, w), cnn.unit(w, w))
                    for k, n, w in zip(
                        "abcdef", (3, 12, 24, 36, 72, 48), (12, 24, 48, 12, 24, 12), strict=True
                    )
                },
                p=nn.Conv2d(12, 1, 1),
                q=nn.Conv2d(12, 1, 1),
            ),
            data.scenes,
            lambda m, x, *y: sum(
                losses.dice(k := lambda _, h=h: h, x, *y) + losses.masks(k, x, *y) / 2 for h in m(x)
            ),
            FIT(1e-3, batch=8),
            "UNet++",
        ),
        one(
            "tversky",
            partial(UNet, 3, 1, 12),
            data.scenes,
            lambda m, x, y, *_: (
                p := m(x).sigmoid(),
                k := [z.sum((1, 2, 3)) for z in (p * y, y - p * y, p - p * y)],
                ((1 - (k[0] + 1) / (k[0] + 0.7 * k[1] + 0.3 * k[2] + 1)) ** 0.75).mean(),
            )[2],
            FIT(3e-3, o.fading, batch=8),
            "U-Net, focal Tversky",
        ),
        one(
            "v_net",
            lambda: Net(
                lambda m, x: (
                    a := m["a"](x),
                    b := m["b"](m["down"](a)),
                    m["last"](m["c"](torch.cat([a, m["up"](b)], 1))),
                )[2],
                **{
                    k: Residual(
                        nn.Conv3d(n, w, 5, 1, 2),
                        nn.BatchNorm3d(w),
                        nn.PReLU(w),
                        skip=nn.Conv3d(n, w, 1),
                    )
                    for k, n, w in (("a", 1, 8), ("b", 16, 16), ("c", 16, 8))
                },
                down=nn.Sequential(nn.Conv3d(8, 16, 2, 2), nn.PReLU(16)),
                up=nn.ConvTranspose3d(16, 8, 2, 2),
                last=nn.Conv3d(8, 1, 1),
            ),
            soft_tissue,
            lambda m, x, y: (
                p := m(x).sigmoid(),
                1 - 2 * (p * y).sum() / ((p**2).sum() + y.sum() + 1e-5),
            )[1],
            FIT(1e-3, o.fading, weight_decay=1e-5, batch=2, **SHORT),
            "V-Net, Dice with squares",
        ),
        one(
            "cell_pose",
            partial(UNet, 3, 3, 16),
            data.scenes,
            lambda m, x, y, d, _: (
                k := d[:, :2, None, None]
                - torch.stack(torch.meshgrid(*[torch.arange(32.0)] * 2, indexing="xy")),
                z := m(x),
                functional.mse_loss(z[:, :2], 5 * y * functional.normalize(k)) / 2
                + functional.binary_cross_entropy_with_logits(z[:, 2:], y),
            )[2],
            FIT(
                0.2, o.ramp, kind=optim.SGD, momentum=0.9, nesterov=True, weight_decay=1e-5, batch=8
            ),
            "Cellpose",
        ),
        one(
            "changes",
            lambda: Net(
                lambda m, x, y: (
                    a := m["a"](x),
                    c := m["a"](y),
                    b := m["b"](a) - m["b"](c),
                    m["last"](torch.cat([(a - c).abs(), m["up"](b.abs())], 1)),
                )[3],
                a=nn.Sequential(cnn.unit(3, 16), cnn.unit(16, 16)),
                b=nn.Sequential(half, cnn.unit(16, 32), cnn.unit(32, 32)),
                up=nn.ConvTranspose2d(32, 16, 2, 2),
                last=nn.Sequential(cnn.unit(32, 16), nn.Dropout2d(0.2), nn.Conv2d(16, 1, 1)),
            ),
            lambda g, n: (
                z := data.scenes(g, n),
                k := data.CROPS(g, n)[0],
                z[0],
                z[0].lerp(k, z[1]) + 0.1 * torch.randn_like(k),
                z[1],
            )[2:],
            lambda m, x, k, y: functional.binary_cross_entropy_with_logits(m(x, k), y),
            FIT(1e-3, o.fading, batch=8),
            "FC-Siam-diff",
        ),
    ),
    *seen(
        "2026-11-28T15:30",
        one(
            "boundary",
            partial(UNet, 3, 1, 12),
            data.scenes,
            lambda m, x, y, d, _: (
                losses.dice(m, x, y)
                + (
                    m(x).sigmoid()
                    * (
                        (
                            torch.stack(torch.meshgrid(ALONG, ALONG, indexing="xy"))
                            - d[:, :2, None, None]
                        ).norm(dim=1)
                        - d[:, 2, None, None]
                    )[:, None]
                ).mean()
                / 10
            ),
            FIT(1e-3, weight_decay=1e-4, batch=8),
            "boundary loss",
        ),
        one(
            "focal_masks",
            LinkNet,
            data.scenes,
            lambda m, x, y, *_: sigmoid_focal_loss(m(x), y, reduction="mean") * 10,
            FIT(1e-3, o.poly, kind=optim.AdamW),
            "LinkNet, focal loss",
        ),
    ),
    *seen(
        "2026-11-28T16:05",
        one(
            "deep_masks",
            lambda: Net(
                lambda m, x: (
                    a := m["a"](x),
                    b := m["b"](half(a)),
                    c := m["c"](half(b)),
                    z := [
                        m[k](functional.interpolate(v, (32, 32), mode="bilinear"))
                        for k, v in (("i", a), ("j", b), ("k", c))
                    ],
                    [*z, m["last"](torch.cat(z, 1))],
                )[4],
                a=cnn.unit(3, 24),
                b=cnn.unit(24, 32),
                c=cnn.unit(32, 48),
                i=nn.Conv2d(24, 1, 3, 1, 1),
                j=nn.Conv2d(32, 1, 3, 1, 1),
                k=nn.Conv2d(48, 1, 3, 1, 1),
                last=nn.Conv2d(3, 1, 1),
            ),
            data.scenes,
            lambda m, x, y, *_: sum(
                functional.binary_cross_entropy_with_logits(z, y) for z in m(x)
            ),
            FIT(1e-3, batch=12),
            "side outputs, as U²-Net",
        ),
        one(
            "bi_se_net",
            lambda: Net(
                lambda m, x: (
                    a := m["path"](x),
                    b := m["context"](x),
                    b := b * m["gate"](b),
                    m["last"](
                        functional.interpolate(
                            m["join"](torch.cat([a, functional.interpolate(b, (16, 16))], 1)),
                            (32, 32),
                            mode="bilinear",
                        )
                    ),
                )[3],
                path=nn.Sequential(cnn.unit(3, 24, 3, 2), cnn.unit(24, 32)),
                context=nn.Sequential(
                    cnn.unit(3, 16, 3, 2), cnn.unit(16, 32, 3, 2), cnn.unit(32, 48, 3, 2)
                ),
                gate=nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(48, 48, 1), nn.Sigmoid()),
                join=cnn.unit(80, 32),
                last=nn.Conv2d(32, 2, 1),
            ),
            data.scenes,
            losses.two_classes,
            SGD(0.025, o.poly, weight_decay=5e-4, batch=12),
            "BiSeNet",
        ),
        one(
            "med_net",
            lambda: nn.Sequential(
                *(
                    z
                    for a, b in ((1, 12), (12, 24), (24, 32))
                    for z in (nn.Conv3d(a, b, 3, 2, 1), nn.InstanceNorm3d(b), nn.PReLU())
                ),
                nn.Flatten(),
                nn.Linear(576, 1),
            ),
            soft_tissue,
            lambda m, x, y: functional.mse_loss(m(x)[:, 0], 20 * y.mean((1, 2, 3, 4))),
            FIT(1e-3, batch=8),
            "MONAI's regressor, volume",
        ),
        one(
            "seg_res_net",
            lambda: nn.Sequential(
                nn.Conv3d(1, 12, 3, 1, 1),
                *(
                    Residual(
                        nn.GroupNorm(4, 12),
                        act,
                        nn.Conv3d(12, 12, 3, 1, 1),
                        nn.GroupNorm(4, 12),
                        act,
                        nn.Conv3d(12, 12, 3, 1, 1),
                    )
                    for _ in "ab"
                ),
                nn.GroupNorm(4, 12),
                act,
                nn.Conv3d(12, 1, 1),
            ),
            soft_tissue,
            lambda m, x, y: (
                z := m(x).sigmoid(),
                1 - 2 * (z * y).sum() / (z.square().sum() + y.square().sum() + 1e-5),
            )[1],
            FIT(1e-3, o.cosine, weight_decay=1e-5, batch=2, **SHORT),
            "SegResNet, 3-D",
        ),
        one(
            "mri",
            partial(UNet, 1),
            data.slices,
            losses.both_masks,
            FIT(1e-3, o.cosine, batch=12, **SHORT),
            "U-Net, slices",
        ),
    ),
]
