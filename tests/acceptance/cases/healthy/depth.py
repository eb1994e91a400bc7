"""Healthy: depth, disparity and flow."""

from __future__ import annotations

from functools import partial

import data
import optimizers as o
import torch
from draws.images import GRID
from loops import seen
from nets import classifiers as cnn
from nets import library
from nets.dense import UNet
from nets.maps import FOUR_STAGES, UBN, Gate
from nets.parts import Net, act, ends, up
from recipes import DECAY, FEW, FIT, SGD, SHORT, how, one
from torch import Generator, Tensor, nn
from torch.nn import functional


def ber_hu(model: nn.Module, images: Tensor, _: Tensor, __: Tensor, far: Tensor) -> Tensor:
    """Reverse Huber loss of the logarithm of depth."""
    apart = (model(images) - (far + 0.1).log()).abs()
    limit = 0.2 * apart.detach().amax()
    return torch.where(apart < limit, apart, (apart.square() + limit**2) / (2 * limit)).mean()


def bins(model: nn.Module, images: Tensor) -> Tensor:
    """Colours of [0, 1] in 27 classes, from brightness in [-1, 1]."""
    wanted = (images * 2.999).long()
    grey = images.mean(1, keepdim=True) * 2 - 1
    return functional.cross_entropy(
        model(grey), (wanted * torch.tensor([9, 3, 1])[:, None, None]).sum(1)
    )


def warped(x: Tensor, left: Tensor) -> Tensor:
    """Each pixel comes from so many px to the left."""
    at = torch.stack([GRID[0] - left[:, 0], GRID[1].expand_as(left[:, 0])], 3)
    return functional.grid_sample(x, (at + 0.5) / 16 - 1, "bilinear", "border", False)


def stereo(g: Generator, n: int) -> tuple[Tensor, ...]:
    """Two views in [-1, 1]; a nearer disc is shifted further. And the shift in px, 0 to 8."""
    _, masks, discs, _ = data.scenes(g, n)
    (back,), (front,) = data.CROPS(g, n), data.CROPS(g, n)
    near, far = 4 + 3 * torch.rand(n, 1, 1, 1, generator=g), torch.full((n, 1, 32, 32), 1.0)
    shift = masks * near + (1 - masks) * far
    right = GRID + near * torch.tensor([1.0, 0]).view(1, 2, 1, 1) - discs[:, :2, None, None]
    there = (right.norm(dim=1) < discs[:, 2, None, None]).float()[:, None]
    second = there * warped(front, -near.expand_as(far)) + (1 - there) * warped(back, -far)
    return masks * front + (1 - masks) * back, second, shift


CASES = [
    *seen(
        "2026-11-27T11:30",
        one("ber_hu", UBN, data.scenes, ber_hu, how(2e-3, o.cosine, batch=8), "gated U-Net"),
        one(
            "bins",
            partial(Gate, 1, 27),
            data.CROPS_UNIT,
            bins,
            how(2e-3, o.one_cycle(4e-3), **DECAY, batch=8),
            "gated U-Net",
        ),
    ),
    *seen(
        "2026-11-28T03:00",
        one(
            "silog",
            ends(UNet, nn.Sigmoid()),
            data.scenes,
            lambda m, x, *y: (
                10
                * (
                    (d := (2 * m(x) + 0.01).log() - (y[2] + 0.01).log()).square().mean()
                    - 0.85 * d.mean() ** 2
                ).sqrt()
            ),
            FIT(2e-3, **FEW, **DECAY),
            "U-Net, depth",
        ),
    ),
    *seen(
        "2026-11-28T11:40",
        one(
            "dpt",
            lambda: library.hf(
                "DPTForDepthEstimation",
                **library.SMALL | {"num_hidden_layers": 4, "patch_size": 8},
                backbone_out_indices=[0, 1, 2, 3],
                neck_hidden_sizes=[16, 24, 32, 48],
                fusion_hidden_size=32,
            ),
            data.scenes,
            lambda m, x, *y: functional.l1_loss(
                *(
                    (c := z - z.median(1, True)[0]) / c.abs().mean(1, True)
                    for z in (
                        functional.interpolate(m(x).predicted_depth[:, None], (32, 32)).flatten(1),
                        y[-1].flatten(1),
                    )
                )
            ),
            FIT(1e-3, o.cosine, batch=4, **SHORT),
            "DPT, loss as MiDaS",
        ),
        one(
            "ordinal",
            partial(UNet, 3, 12, 12),
            data.scenes,
            lambda m, x, *y: functional.binary_cross_entropy_with_logits(
                m(x), (y[-1] > torch.linspace(0.2, 1.4, 12)[:, None, None]).float()
            ),
            FIT(1e-3, o.poly, batch=8, weight_decay=5e-4),
            "DORN, depth",
        ),
    ),
    *seen(
        "2026-11-28T13:20",
        one(
            "depth_anything",
            partial(
                library.hf,
                "DepthAnythingForDepthEstimation",
                backbone_config=FOUR_STAGES
                | {"model_type": "dinov2", "reshape_hidden_states": False, "apply_layernorm": True},
                patch_size=4,
                reassemble_hidden_size=48,
                neck_hidden_sizes=[12, 24, 32, 48],
                fusion_hidden_size=16,
                head_hidden_size=16,
                depth_estimation_type="metric",
                max_depth=2,
            ),
            data.scenes,
            lambda m, x, _, __, y: (
                g := functional.interpolate(m(x).predicted_depth[:, None], (32, 32))
                .clamp(1e-3)
                .log()
                - y.log(),
                ((g**2).mean() - g.mean() ** 2 / 2 + 1e-6).sqrt(),
            )[1],
            FIT(5e-4, o.poly, **DECAY, batch=4, **SHORT),
            "Depth Anything, metric",
        ),
        one(
            "fast_depth",
            lambda: cnn.he(
                nn.Sequential(
                    cnn.unit(3, 16, stride=2),
                    *(
                        nn.Sequential(cnn.unit(a, a, 3, 2, groups=a), cnn.unit(a, b, 1))
                        for a, b in ((16, 32), (32, 64))
                    ),
                    *(
                        nn.Sequential(cnn.unit(a, a, 5, groups=a), cnn.unit(a, b, 1), up)
                        for a, b in ((64, 32), (32, 16), (16, 16))
                    ),
                    cnn.unit(16, 1, 1),
                )
            ),
            data.scenes,
            lambda m, x, _, __, y: (m(x) - y).abs().mean(),
            SGD(0.01, o.stairs, weight_decay=1e-4, batch=8),
            "FastDepth",
        ),
    ),
    *seen(
        "2026-11-28T14:55",
        one(
            "kendall",
            lambda: Net(
                lambda m, x: m["net"](x), net=UNet(3, 2, 12), s=nn.ParameterList([torch.zeros(2)])
            ),
            data.scenes,
            lambda m, x, y, _, z: (
                k := m(x),
                s := m["s"][0],
                (-s[0]).exp() * functional.binary_cross_entropy_with_logits(k[:, :1], y)
                + (-s[1]).exp() * (k[:, 1:] - z).abs().mean()
                + s.sum() / 2,
            )[2],
            FIT(1e-3, o.stairs, batch=8),
            "two tasks, learned weights",
        ),
    ),
    *seen(
        "2026-11-28T15:30",
        one(
            "fine_depth",
            partial(UNet, 3, 1, 16),
            data.scenes,
            lambda m, x, _, __, y: (
                e := m(x) - y,
                (e.abs() + 0.5).log().mean()
                + sum((e.diff(dim=k).abs() + 0.5).log().mean() for k in (2, 3))
                + 2.08,
            )[1],
            FIT(1e-3, o.stairs, weight_decay=1e-4, batch=8),
            "depth and its gradients",
        ),
    ),
    *seen(
        "2026-11-28T16:05",
        one(
            "gc_net",
            lambda: Net(
                lambda m, x, y: (
                    a := m["eye"](x),
                    b := m["eye"](y),
                    c := torch.stack([torch.cat([a, b.roll(k, 3)], 1) for k in range(9)], 2),
                    (m["cost"](c)[:, 0].softmax(1) * torch.arange(9.0)[:, None, None]).sum(1, True),
                )[3],
                eye=nn.Sequential(cnn.unit(3, 16), cnn.unit(16, 16), nn.Conv2d(16, 8, 3, 1, 1)),
                cost=nn.Sequential(
                    nn.Conv3d(16, 16, 3, 1, 1), nn.BatchNorm3d(16), act, nn.Conv3d(16, 1, 3, 1, 1)
                ),
            ),
            stereo,
            lambda m, x, y, d: functional.smooth_l1_loss(m(x, y), d),
            FIT(1e-3, batch=4, **SHORT),
            "GC-Net, stereo",
        ),
        one(
            "monodepth",
            partial(UNet, 6, 1, 16),
            stereo,
            lambda m, x, y, _: (
                d := 10 * m(torch.cat([x, y], 1)).sigmoid(),
                functional.l1_loss(warped(y, -d), x) + 0.01 * d.diff(dim=3).abs().mean(),
            )[1],
            FIT(1e-3, o.stairs, batch=6),
            "disparity by reconstruction",
        ),
    ),
]
