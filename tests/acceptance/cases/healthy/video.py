"""Healthy: clips are classified or continued."""

from __future__ import annotations

from functools import partial
from typing import Any

import data
import losses
import optimizers as o
import torch
from data import changed
from loops import seen
from losses import CE, told
from nets import classifiers as cnn
from nets import library
from nets.dense import UNet
from nets.maps import DECODER
from nets.parts import Net, Residual, act, leaky, up
from recipes import DECAY, FIT, LONG, MAE, NESTEROV, SGD, one
from torch import Tensor, nn, optim
from torch.nn import functional
from torchvision.models import video

FILMS = changed(data.panned, lambda x: x.transpose(1, 2))


def conv_lstm(m: Any, x: Tensor) -> Tensor:
    h = c = torch.zeros(len(x), 16, 24, 24)
    found = []
    for frame in x[:, :-1].unbind(1):
        i, f, g, out = m["gates"](torch.cat([frame, h], 1)).chunk(4, 1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        found.append(m["last"](h := out.sigmoid() * c.tanh()))
    return torch.stack(found, 1)


CASES = [
    *seen(
        "2026-11-28T03:00",
        one(
            "tubelets",
            partial(
                library.hf,
                "VideoMAEForVideoClassification",
                **library.BODY,
                image_size=24,
                patch_size=8,
                num_frames=8,
                tubelet_size=2,
                num_labels=8,
            ),
            changed(data.panned, lambda x: x.transpose(1, 2)),
            told,
            FIT(1e-3, o.cosine, **DECAY),
            "video transformer",
        ),
        one(
            "frames",
            lambda: Net(
                lambda m, x: m["last"](
                    m["body"](m["back"](x.transpose(1, 2).flatten(0, 1)).view(-1, 8, 32))[0][:, -1]
                ),
                back=cnn.encoder(32, False),
                body=nn.LSTM(32, 32, batch_first=True),
                last=nn.Linear(32, 8),
            ),
            data.panned,
            CE,
            FIT(2e-3),
            "CNN, LSTM",
        ),
    ),
    *seen(
        "2026-11-28T10:00",
        one(
            "arrow_of_time",
            lambda: nn.Sequential(
                *(
                    layer
                    for a, b in ((3, 16), (16, 32), (32, 48))
                    for layer in (
                        nn.Conv3d(a, b, 3, 1, 1),
                        nn.BatchNorm3d(b),
                        nn.ReLU(),
                        nn.MaxPool3d(2),
                    )
                ),
                nn.Flatten(),
                nn.Linear(432, 1),
            ),
            data.panned,
            lambda m, x, _: functional.binary_cross_entropy_with_logits(
                m(
                    torch.where(
                        (k := torch.rand(len(x), 1).round())[..., None, None, None] > 0,
                        x.flip(2),
                        x,
                    )
                ),
                k,
            ),
            SGD(0.01, weight_decay=5e-4, batch=6),
            "3-D CNN, arrow of time",
        ),
    ),
    *seen(
        "2026-11-28T11:40",
        one(
            "vivit",
            partial(
                library.hf,
                "VivitForVideoClassification",
                **library.BODY,
                image_size=24,
                num_frames=8,
                tubelet_size=[2, 6, 6],
                num_labels=8,
            ),
            FILMS,
            told,
            FIT(1e-3, o.ramp, kind=optim.AdamW, clip=1.0, batch=8),
            "ViViT",
        ),
        one(
            "video_mae",
            lambda: library.hf(
                "VideoMAEForPreTraining",
                **library.BODY,
                **DECODER,
                image_size=24,
                patch_size=6,
                num_frames=8,
                norm_pix_loss=False,
            ),
            FILMS,
            lambda m, x, _: (
                m(
                    x, bool_masked_pos=(torch.rand(16).argsort() < 12).repeat(4).expand(len(x), 64)
                ).loss
            ),
            FIT(2e-3, o.warm_up, **MAE, **LONG, batch=8),
            "VideoMAE, tubes",
        ),
    ),
    *seen(
        "2026-11-28T12:40",
        one(
            "conv_lstm",
            lambda: Net(conv_lstm, gates=nn.Conv2d(17, 64, 3, 1, 1), last=nn.Conv2d(16, 1, 1)),
            data.films,
            lambda m, x: functional.mse_loss(m(x), x[:, 1:]),
            FIT(1e-3, kind=optim.RMSprop, batch=8),
            "ConvLSTM, next frames",
        ),
        one(
            "c3d",
            lambda: cnn.he(
                nn.Sequential(
                    *(
                        layer
                        for a, b, k in ((3, 16, (1, 2, 2)), (16, 32, 2), (32, 48, 2))
                        for layer in (nn.Conv3d(a, b, 3, 1, 1), nn.ReLU(), nn.MaxPool3d(k))
                    ),
                    nn.Flatten(),
                    nn.Linear(864, 128),
                    nn.ReLU(),
                    nn.Dropout(),
                    nn.Linear(128, 8),
                )
            ),
            data.panned,
            CE,
            SGD(3e-3, o.stairs, weight_decay=5e-4),
            "C3D",
        ),
        one(
            "timesformer",
            partial(
                library.hf,
                "TimesformerForVideoClassification",
                **library.BODY,
                image_size=24,
                patch_size=6,
                num_frames=8,
                num_labels=8,
            ),
            FILMS,
            told,
            FIT(1e-3, o.cosine, **DECAY, batch=8),
            "TimeSformer",
        ),
    ),
    *seen(
        "2026-11-28T13:20",
        one(
            "swin_3d",
            lambda: video.swin_transformer.SwinTransformer3d(
                [2, 2, 2], 24, [1, 1], [2, 4], [4, 3, 3], num_classes=8
            ),
            data.panned,
            losses.classes(0.1),
            FIT(1e-3, o.warm_up, **DECAY, batch=8),
            "torchvision Video Swin",
        ),
    ),
    *seen(
        "2026-11-28T14:55",
        one(
            "vjepa2",
            partial(
                library.hf,
                "VJEPA2ForVideoClassification",
                **library.BODY,
                crop_size=24,
                patch_size=6,
                frames_per_clip=8,
                mlp_ratio=2,
                num_pooler_layers=1,
                pred_hidden_size=48,
                num_labels=8,
                pred_num_attention_heads=4,
                pred_num_hidden_layers=1,
            ),
            data.panned,
            lambda m, x, y: told(lambda x, labels: m(x, labels=labels), x.transpose(1, 2), y),
            FIT(1e-3, o.warm_up, **DECAY, batch=8),
            "V-JEPA 2, classifier",
        ),
        one(
            "slow_fast",
            lambda: Net(
                lambda m, x: (
                    a := m["a"](x[:, :, ::4]),
                    b := m["b"](x),
                    c := m["c"](torch.cat([a, m["side"](b)], 1)),
                    d := m["d"](b),
                    m["last"](torch.cat([c.mean((2, 3, 4)), d.mean((2, 3, 4))], 1)),
                )[4],
                **{
                    k: nn.Sequential(
                        nn.Conv3d(n, w, (t, 3, 3), (1, 2, 2), (t // 2, 1, 1)),
                        nn.BatchNorm3d(w),
                        nn.ReLU(),
                    )
                    for k, n, w, t in (
                        ("a", 3, 32, 1),
                        ("b", 3, 8, 5),
                        ("c", 48, 64, 3),
                        ("d", 8, 16, 3),
                    )
                },
                side=nn.Conv3d(8, 16, (5, 1, 1), (4, 1, 1), (2, 0, 0)),
                last=nn.Sequential(nn.Dropout(), nn.Linear(80, 8)),
            ),
            data.panned,
            CE,
            FIT(0.05, o.two_phases, **NESTEROV),
            "SlowFast",
        ),
    ),
    *seen(
        "2026-11-28T15:30",
        one(
            "sim_vp",
            lambda: nn.Sequential(
                nn.Flatten(0, 1),
                cnn.unit(1, 16, norm=partial(nn.GroupNorm, 2), act=nn.SiLU),
                cnn.unit(16, 16, 3, 2, norm=partial(nn.GroupNorm, 2), act=nn.SiLU),
                nn.Unflatten(0, (-1, 4)),
                nn.Flatten(1, 2),
                *(
                    Residual(
                        cnn.unit(64, 64, k, norm=partial(nn.GroupNorm, 8), act=leaky, groups=8),
                        nn.Conv2d(64, 64, 1),
                    )
                    for k in (3, 5, 7)
                ),
                nn.Unflatten(1, (4, 16)),
                nn.Flatten(0, 1),
                up,
                cnn.unit(16, 16, norm=partial(nn.GroupNorm, 2), act=nn.SiLU),
                nn.Conv2d(16, 1, 1),
                nn.Unflatten(0, (-1, 4)),
            ),
            data.films,
            lambda m, x: functional.mse_loss(m(x[:, :4]), x[:, 4:]),
            FIT(1e-3, o.one_cycle(1e-3)),
            "SimVP",
        ),
        one(
            "between",
            partial(UNet, 2, 1, 16, norm=None),
            data.films,
            lambda m, x: functional.l1_loss(m(x[:, 2:5:2, 0]), x[:, 3]),
            FIT(1e-3, kind=optim.Adamax, steps=150, every=13),
            "frames between, Adamax",
        ),
        one(
            "tsn",
            cnn.resnet,
            data.panned,
            lambda m, x, y: functional.cross_entropy(
                torch.stack([m(x[:, :, k]) for k in (1, 4, 6)]).mean(0), y
            ),
            SGD(0.01, o.stairs, weight_decay=5e-4, clip=20.0, batch=8),
            "TSN",
        ),
    ),
    *seen(
        "2026-11-28T16:05",
        one(
            "r2plus1d",
            lambda: nn.Sequential(
                *(
                    z
                    for a, b in ((3, 24), (24, 32), (32, 48))
                    for z in (
                        nn.Conv3d(a, b, (1, 3, 3), (1, 2, 2), (0, 1, 1), bias=False),
                        nn.BatchNorm3d(b),
                        act,
                        nn.Conv3d(b, b, (3, 1, 1), 1, (1, 0, 0), bias=False),
                        nn.BatchNorm3d(b),
                        act,
                    )
                ),
                nn.AdaptiveAvgPool3d(1),
                nn.Flatten(),
                nn.Linear(48, 8),
            ),
            data.panned,
            CE,
            SGD(0.01, o.two_phases, weight_decay=1e-4, batch=12),
            "R(2+1)D",
        ),
    ),
]
