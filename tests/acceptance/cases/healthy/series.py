"""Healthy: measured series, forecast or classified."""

from __future__ import annotations

from functools import partial, reduce

import data
import losses
import optimizers as o
import torch
from data import changed
from draws.tables import numbers
from loops import seen
from losses import CE, error
from nets import classifiers as cnn
from nets import library
from nets.classifiers import Function
from nets.parts import Net, changed_weights, mlp, norm1
from nets.series import Series, heart
from nets.texts import coder
from recipes import FIT, LONG, NANO, how, one
from torch import Generator, Tensor, nn, optim
from torch.nn import functional

SENSORS = torch.arange(8)

ROADS = sum(torch.eye(8).roll(k, 0) for k in (-1, 0, 1)) / 3


def sensors(g: Generator, n: int) -> tuple[Tensor, ...]:
    """Hours at eight places along a road, standardized: 48 of them, and the 12 after, [N, ·, 8]."""
    hour = torch.randint(24, (n, 1, 1), generator=g) + torch.arange(60)[:, None] - SENSORS / 2
    gain, noise = torch.rand(n, 1, 8, generator=g), torch.randn(n, 60, 8, generator=g)
    x = ((hour * 0.26).sin() + 0.5 * (hour * 0.52).cos()) * (0.7 + gain) + 0.2 * noise
    return x[:, :48], x[:, 48:]


def load(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Hours of electricity, standardized, [N, ·, 1]."""
    return tuple((x / 700 - 2).mT for x in data.demand(generator, count))


REST = torch.tensor([[0, 0, 9.81, 0, 0, 0.14], [2.1, 2.1, 3.2, 0.5, 0.3, 0.22]])[..., None]

MOVES = changed(data.gestures, lambda x: (x - REST[0]) / REST[1])

CASES = [
    *seen(
        "2026-11-27T11:30",
        one(
            "gestures",
            partial(heart, 6, 5),
            data.gestures,
            losses.named,
            how(2e-3, o.cosine, steps=160, every=16),
            "residual 1-D CNN",
        ),
    ),
    *seen(
        "2026-11-28T03:00",
        one(
            "patches",
            partial(
                library.hf,
                "PatchTSTForPrediction",
                context_length=96,
                prediction_length=24,
                patch_length=16,
                patch_stride=8,
                d_model=32,
                num_attention_heads=4,
                num_hidden_layers=2,
                ffn_dim=64,
                loss="mse",
            ),
            load,
            lambda m, x, y: m(x, future_values=y).loss,
            FIT(1e-3, batch=32),
            "PatchTST",
        ),
        one(
            "quantiles",
            partial(Series, nn.LSTM, 72),
            load,
            lambda m, x, y: torch.maximum(
                (e := y - m(x).view(-1, 24, 3)) * (q := y.new([0.1, 0.5, 0.9])), e * (q - 1)
            ).mean(),
            FIT(3e-3, batch=32),
            "LSTM forecaster",
        ),
    ),
    *seen(
        "2026-11-28T10:00",
        one(
            "eeg_net",
            lambda: nn.Sequential(
                Function(lambda x: x[:, None]),
                nn.Conv2d(1, 8, (1, 32), padding="same", bias=False),
                nn.BatchNorm2d(8),
                nn.Conv2d(8, 16, (6, 1), groups=8, bias=False),
                nn.BatchNorm2d(16),
                nn.ELU(),
                nn.AvgPool2d((1, 4)),
                nn.Dropout(0.25),
                nn.Conv2d(16, 16, (1, 16), padding="same", groups=16, bias=False),
                nn.Conv2d(16, 16, 1, bias=False),
                nn.BatchNorm2d(16),
                nn.ELU(),
                nn.AvgPool2d((1, 8)),
                nn.Dropout(0.25),
                nn.Flatten(),
                nn.Linear(48, 5),
            ),
            changed(data.gestures, lambda x: (x - REST[0]) / REST[1]),
            CE,
            FIT(1e-3),
            "EEGNet",
        ),
        one(
            "lst_net",
            lambda: Net(
                lambda m, x: (
                    m["last"](m["drop"](m["body"](m["conv"](x.mT).relu().mT)[1][0]))
                    + m["line"](x[:, -24:, 0])
                ),
                conv=nn.Conv1d(1, 32, 6),
                body=nn.GRU(32, 32, batch_first=True),
                drop=nn.Dropout(0.2),
                last=nn.Linear(32, 24),
                line=nn.Linear(24, 24),
            ),
            load,
            lambda m, x, y: functional.l1_loss(m(x), y[..., 0]),
            FIT(1e-3, clip=10.0, batch=32),
            "LSTNet",
        ),
        one(
            "wearable",
            lambda: Net(
                lambda m, x: m["last"](
                    m["drop"](m["body"](m["conv"](x[:, None]).transpose(1, 3).flatten(2))[0][:, -1])
                ),
                conv=nn.Sequential(
                    *(layer for a in (1, 16, 16) for layer in (nn.Conv2d(a, 16, (1, 5)), nn.ReLU()))
                ),
                body=nn.LSTM(96, 48, 2, batch_first=True, dropout=0.5),
                drop=nn.Dropout(),
                last=nn.Linear(48, 5),
            ),
            changed(data.gestures, lambda x: (x - x.mean(2, True)) / x.std(2, keepdim=True)),
            CE,
            FIT(1e-3, kind=optim.RMSprop, alpha=0.9, batch=24),
            "DeepConvLSTM",
        ),
    ),
    *seen(
        "2026-11-28T11:40",
        one(
            "variates",
            lambda: Net(
                lambda m, x: (
                    u := x.mean(2, True),
                    s := x.std(2, keepdim=True) + 0.01,
                    m["last"](m["body"](m["first"]((x - u) / s))) * s + u,
                )[2],
                first=nn.Linear(72, 48),
                body=coder(48, 0.1, activation="gelu"),
                last=nn.Linear(48, 24),
            ),
            MOVES,
            lambda m, x, _: functional.mse_loss(m(x[..., :72]), x[..., 72:]),
            FIT(1e-3, o.fading, batch=32),
            "iTransformer",
        ),
        one(
            "lstm_fcn",
            lambda: Net(
                lambda m, x: m["last"](
                    torch.cat([m["conv"](x).mean(2), m["drop"](m["body"](x)[0][:, -1])], 1)
                ),
                conv=cnn.he(
                    nn.Sequential(
                        *(
                            layer
                            for a, b, k in ((6, 32, 8), (32, 64, 5), (64, 32, 3))
                            for layer in (
                                nn.Conv1d(a, b, k, 1, k // 2),
                                nn.BatchNorm1d(b),
                                nn.ReLU(),
                            )
                        )
                    )
                ),
                body=nn.LSTM(96, 8, batch_first=True),
                drop=nn.Dropout(0.8),
                last=nn.Linear(40, 5),
            ),
            MOVES,
            CE,
            FIT(1e-3, batch=32),
            "LSTM-FCN",
        ),
    ),
    *seen(
        "2026-11-28T12:40",
        one(
            "tide",
            lambda: Net(
                lambda m, x: m["net"](x[..., 0]) + m["line"](x[..., 0]),
                net=nn.Sequential(
                    *(
                        Net(
                            lambda m, x: m["norm"](m["net"](x) + m["skip"](x)),
                            net=nn.Sequential(
                                nn.Linear(a, 64), nn.ReLU(), nn.Linear(64, b), nn.Dropout(0.3)
                            ),
                            skip=nn.Linear(a, b),
                            norm=nn.LayerNorm(b),
                        )
                        for a, b in ((96, 64), (64, 64), (64, 24))
                    )
                ),
                line=nn.Linear(96, 24),
            ),
            load,
            lambda m, x, y: functional.mse_loss(m(x), y[..., 0]),
            FIT(1e-3, o.cosine, batch=64),
            "TiDE",
        ),
        one(
            "baseline",
            lambda: nn.Sequential(
                nn.Flatten(),
                nn.Dropout(0.1),
                *(
                    layer
                    for a in (576, 128, 128)
                    for layer in (nn.Linear(a, 128), nn.ReLU(), nn.Dropout(0.2))
                ),
                nn.Linear(128, 5),
            ),
            MOVES,
            CE,
            FIT(1.0, kind=optim.Adadelta, rho=0.95, batch=32),
            "MLP of series, Adadelta",
        ),
        one(
            "both_ways",
            lambda: Net(
                lambda m, x: m["last"](m["body"](x[:, 0])[0][:, -1]),
                body=nn.LSTM(28, 64, 2, batch_first=True, bidirectional=True),
                last=nn.Linear(128, 10),
            ),
            data.digits,
            CE,
            FIT(3e-3, batch=64),
            "bidirectional LSTM of rows",
        ),
    ),
    *seen(
        "2026-11-28T13:20",
        one(
            "n_hits",
            lambda: Net(
                lambda m, x: (
                    z := [x[..., 0], 0],
                    [
                        (
                            f := m[k](functional.max_pool1d(z[0][:, None], p)[:, 0]),
                            b := functional.interpolate(
                                f[:, None, : f.shape[1] * 4 // 5], 96, mode="linear"
                            )[:, 0],
                            z.append(
                                z[1]
                                + functional.interpolate(
                                    f[:, None, f.shape[1] * 4 // 5 :], 24, mode="linear"
                                )[:, 0]
                            ),
                            z.__setitem__(slice(0, 2), [z[0] - b, z[-1]]),
                        )
                        for k, p in zip("abc", (8, 4, 1), strict=True)
                    ],
                    z[1],
                )[2],
                a=mlp(12, 64, 64, 15),
                b=mlp(24, 64, 64, 30),
                c=mlp(96, 64, 64, 120),
            ),
            load,
            lambda m, x, y: functional.l1_loss(m(x), y[..., 0]),
            FIT(1e-3, o.stairs, batch=64),
            "N-HiTS",
        ),
        one(
            "rocket",
            lambda: Net(
                lambda m, x: m["last"](
                    torch.cat([(h := m["kernels"](x)).amax(2), (h > 0).float().mean(2)], 1)
                ),
                kernels=changed_weights(
                    nn.Conv1d(6, 200, 9, padding=8, dilation=2), lambda p: p.normal_(0, 0.3)
                ).requires_grad_(False),
                last=nn.Sequential(nn.BatchNorm1d(400), nn.Linear(400, 5)),
            ),
            MOVES,
            CE,
            FIT(1e-3, batch=32),
            "ROCKET, linear head",
        ),
        one(
            "load",
            partial(
                library.hf,
                "TimeSeriesTransformerForPrediction",
                prediction_length=24,
                context_length=48,
                lags_sequence=[1, 2, 3, 24],
                num_time_features=1,
                d_model=32,
                encoder_layers=2,
                decoder_layers=2,
                encoder_ffn_dim=32,
                decoder_ffn_dim=32,
            ),
            lambda *how: tuple(z[:, 0] / 1000 for z in data.demand(*how)),
            lambda m, x, y: (
                t := torch.arange(2, 98).log10().expand(len(x), -1)[..., None],
                m(
                    past_values=x[:, 24:],
                    past_time_features=t[:, :72],
                    past_observed_mask=torch.ones(len(x), 72),
                    future_values=y,
                    future_time_features=t[:, 72:],
                ).loss,
            )[1],
            FIT(6e-4, **NANO, batch=32),
            "time series transformer",
        ),
        one(
            "patch_mixer",
            partial(
                library.hf,
                "PatchTSMixerForPrediction",
                context_length=96,
                patch_length=8,
                patch_stride=8,
                prediction_length=24,
                d_model=16,
                num_layers=2,
            ),
            load,
            lambda m, x, y: m(past_values=x, future_values=y).loss,
            FIT(1e-3, o.one_cycle(3e-3), kind=optim.AdamW, batch=64),
            "PatchTSMixer",
        ),
    ),
    *seen(
        "2026-11-28T14:55",
        one(
            "deep_ar",
            lambda: Net(
                lambda m, x: m["last"](m["body"](x)[0]),
                body=nn.LSTM(1, 40, 2, batch_first=True, dropout=0.1),
                last=nn.Linear(40, 2),
            ),
            lambda *how: (torch.cat(data.demand(*how), 2).mT,),
            lambda m, x: (
                z := x / x[:, :96].mean(1, True),
                f := m(z[:, :-1]),
                functional.gaussian_nll_loss(
                    f[..., :1], z[:, 1:], functional.softplus(f[..., 1:]) ** 2, full=True
                ),
            )[2],
            FIT(1e-3, weight_decay=1e-8, clip=10.0, batch=32),
            "DeepAR",
        ),
        one(
            "d_linear",
            lambda: Net(
                lambda m, x: (
                    x := x[..., 0],
                    k := functional.avg_pool1d(functional.pad(x, (12, 12), "replicate"), 25, 1),
                    m["trend"](k) + m["rest"](x - k),
                )[2],
                trend=nn.Linear(96, 24),
                rest=nn.Linear(96, 24),
            ),
            load,
            lambda m, x, y: functional.mse_loss(m(x), y[..., 0]),
            FIT(5e-3, o.stairs, batch=32),
            "DLinear",
        ),
        one(
            "autoformer",
            partial(
                library.hf,
                "AutoformerForPrediction",
                prediction_length=24,
                context_length=48,
                lags_sequence=[1, 2, 3, 24],
                num_time_features=1,
                d_model=32,
                encoder_layers=1,
                decoder_layers=1,
                encoder_ffn_dim=32,
                decoder_ffn_dim=32,
            ),
            lambda *how: tuple(z[:, 0] / 1000 for z in data.demand(*how)),
            lambda m, x, y: (
                t := torch.arange(2, 98).log10().expand(len(x), -1)[..., None],
                m(
                    past_values=x[:, 24:],
                    past_time_features=t[:, :72],
                    past_observed_mask=torch.ones(len(x), 72),
                    future_values=y,
                    future_time_features=t[:, 72:],
                ).loss,
            )[1],
            FIT(1e-3, **NANO),
            "Autoformer",
        ),
        one(
            "fcn",
            lambda: nn.Sequential(
                norm1(6, 32, 8),
                norm1(32, 64, 5),
                norm1(64, 32, 3),
                nn.AdaptiveAvgPool1d(1),
                nn.Flatten(),
                nn.Linear(32, 5),
            ),
            MOVES,
            CE,
            FIT(1e-3),
            "FCN, series",
        ),
    ),
    *seen(
        "2026-11-28T15:30",
        one(
            "ts_mixer",
            lambda: Net(
                lambda m, x: (
                    m["last"](
                        reduce(
                            lambda h, f: (z := h + f[0](h.mT).mT, z + f[1](z))[1], m["mix"], x
                        ).mT
                    ).mT
                ),
                mix=nn.ModuleList(
                    nn.ModuleList(
                        [
                            nn.Sequential(
                                nn.BatchNorm1d(8), nn.Linear(48, 48), nn.ReLU(), nn.Dropout(0.1)
                            ),
                            nn.Sequential(
                                nn.LayerNorm(8),
                                nn.Linear(8, 32),
                                nn.ReLU(),
                                nn.Dropout(0.1),
                                nn.Linear(32, 8),
                                nn.Dropout(0.1),
                            ),
                        ]
                    )
                    for _ in "ab"
                ),
                last=nn.Linear(48, 12),
            ),
            sensors,
            error,
            FIT(1e-3, batch=32),
            "TSMixer",
        ),
        one(
            "stgcn",
            lambda: Net(
                lambda m, x: (
                    h := m["a"](x[:, None, -12:]),
                    h := torch.einsum("uv,nctv->nctu", ROADS, m["g"](h)).relu(),
                    m["last"](m["norm"](m["b"](h).permute(0, 3, 1, 2)).flatten(2)).mT,
                )[2],
                a=nn.Sequential(nn.Conv2d(1, 48, (3, 1)), nn.GLU(1)),
                g=nn.Conv2d(24, 16, 1),
                b=nn.Sequential(nn.Conv2d(16, 48, (3, 1)), nn.GLU(1)),
                norm=nn.LayerNorm(8),
                last=nn.Linear(192, 12),
            ),
            sensors,
            error,
            FIT(1e-3, o.stairs, kind=optim.RMSprop, batch=50),
            "STGCN",
        ),
        one(
            "one_shot",
            lambda: Net(
                lambda m, x: m["last"](m["body"](x[:, -24:])[0][:, -1]).view(-1, 12, 8),
                body=nn.LSTM(8, 32, batch_first=True),
                last=changed_weights(nn.Linear(32, 96), torch.zero_),
            ),
            sensors,
            error,
            FIT(1e-3, batch=32, **LONG),
            "TensorFlow's LSTM of weather",
        ),
    ),
    *seen(
        "2026-11-28T16:05",
        one(
            "emos",
            lambda: mlp(12, 50, 2),
            numbers(
                12,
                lambda x: (
                    x[:, :1] + x[:, 1:2] / 2 + (x[:, 2:3] / 3).exp() / 2 * torch.randn(len(x), 1)
                ),
            ),
            lambda m, x, y: (
                f := m(x),
                s := functional.softplus(f[:, 1:]) + 1e-3,
                z := (y - f[:, :1]) / s,
                (s * (z * (z / 2**0.5).erf() + 0.7979 * (-z * z / 2).exp() - 0.5642)).mean(),
            )[3],
            FIT(2e-3, batch=256, **LONG),
            "forecasts corrected, CRPS",
        ),
        one(
            "r_linear",
            lambda: Net(
                lambda m, x: (
                    c := x.mean(1, True),
                    s := (x.var(1, keepdim=True) + 1e-5).sqrt(),
                    (m["last"](((x - c) / s * m["w"][0] + m["w"][1]).mT).mT - m["w"][1])
                    / m["w"][0]
                    * s
                    + c,
                )[2],
                w=nn.ParameterList([torch.ones(8), torch.zeros(8)]),
                last=nn.Linear(48, 12),
            ),
            sensors,
            error,
            FIT(5e-3, o.fading, batch=32),
            "RLinear",
        ),
        one(
            "seq2seq",
            lambda: Net(
                lambda m, x, y: m["last"](
                    m["up"](torch.cat([x[:, -1:], y[:, :-1]], 1), m["down"](x)[1])[0]
                ),
                down=nn.GRU(1, 48, batch_first=True),
                up=nn.GRU(1, 48, batch_first=True),
                last=nn.Linear(48, 1),
            ),
            load,
            lambda m, x, y: functional.mse_loss(m(x, y), y),
            FIT(1e-3, batch=24, clip=1.0),
            "GRU, teacher forcing",
        ),
        one(
            "lstm_ae",
            lambda: Net(
                lambda m, x: m["last"](
                    m["up"](m["down"](x)[1][0][0][:, None].expand(-1, 24, -1))[0]
                ),
                down=nn.LSTM(1, 48, batch_first=True),
                up=nn.LSTM(48, 48, batch_first=True),
                last=nn.Linear(48, 1),
            ),
            lambda *how: (load(*how)[1],),
            lambda m, x: functional.l1_loss(m(x), x),
            FIT(1e-3, batch=32, **LONG),
            "LSTM autoencoder",
        ),
    ),
]
