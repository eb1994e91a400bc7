"""Healthy: more convolutional networks as they are trained; the checks were not known."""

from __future__ import annotations

from functools import partial
from typing import Any

import data
import losses
import optimizers as o
import torch
import transformers
from cases.healthy.strangers_eighth import Net, told
from cases.healthy.strangers_maps import bce, projected
from cases.healthy.strangers_pictures import DECAY, NESTEROV, one, slim
from data import P64, P, changed
from loops import seen
from nets import classifiers as cnn
from nets import library
from nets.classifiers import Function, unit
from nets.dense import SegNet, UNet
from nets.generative import Timed
from nets.restoration import RedNet, super_resolution
from nets.strangers import Gate, Residual
from nets.strangers_kept import FIT, REST, SGD
from torch import nn, optim
from torch.nn import functional
from torch.nn.utils.parametrizations import weight_norm
from torchvision.models import segmentation

CE, SCENES, UNITS, S, cat = losses.classes(), data.scenes, data.CROPS_UNIT, nn.Sequential, torch.cat
mse, l1, sphere = functional.mse_loss, functional.l1_loss, functional.normalize
conv, half, line, FLAT = nn.Conv2d, nn.MaxPool2d(2), torch.arange(32), [1] * 4
ADAMW = {"kind": optim.AdamW, "weight_decay": 0.01}
P48, CLEAN = data.photos(48), (1 - torch.linspace(1e-4, 0.02, 1000)).cumprod(0)
CHOSEN: dict[str, Any] = {
    "hgnetv2_b0": (losses.classes(0.1), FIT(1e-3, o.cosine, **ADAMW)),
    "seresnet18": (losses.augmented, SGD(0.05, o.cosine, weight_decay=4e-5)),
    "regnety_002": (losses.mixup(), FIT(0.01, o.one_cycle(0.05), **NESTEROV)),
    "resnet14t": (losses.classes(0.1), FIT(2e-3, o.two_phases, **DECAY)),
}  # fmt: skip
HUGGING: dict[str, Any] = {
    "MobileNetV2": {"depth_multiplier": 0.35, "classifier_dropout_prob": 0.1},
    "ConvNext": {"hidden_sizes": [24, 32, 48, 64], "depths": [1, 1, 2, 1], "drop_path_rate": 0.1},
    "SwiftFormer": {"embed_dims": [16, 24, 32, 48], "depths": FLAT},
}  # fmt: skip
CASES = seen("2026-11-28T10:00",
    *(one(name.split("_")[0], slim(name), P48, loss, recipe.but("", batch=6, steps=80, every=8),
         f"timm {name}") for name, (loss, recipe) in CHOSEN.items()),
    *(one(name.lower(), partial(library.hf, f"{name}ForImageClassification", **sizes, num_labels=8),
         P64, told, FIT(2e-3, o.linear_down, **ADAMW, clip=1.0, batch=8), f"transformers {name}")
         for name, sizes in HUGGING.items()),
    one("res_next", partial(cnn.resnet, bottleneck=True, cardinality=4, base_width=16), P,
         losses.augmented, SGD(0.05, o.stairs, weight_decay=1e-4), "ResNeXt"),
    one("conv_mixer", cnn.convmixer, P, losses.augmented, FIT(0.01, o.one_cycle(0.01), **DECAY,
         clip=1.0), "ConvMixer"),
    one("multi_scale", cnn.classifier, P, losses.sizes, SGD(0.05, o.cosine, weight_decay=5e-4),
         "CNN, sizes of 24 to 48 px"),
    one("seg_net", SegNet, SCENES, losses.masks, SGD(0.1, weight_decay=5e-4, batch=8), "SegNet"),
    one("red_net", RedNet, UNITS, losses.repaired, FIT(1e-3, o.stairs, batch=8), "RED-Net"),
    one("fsrcnn", partial(super_resolution, "fsrcnn"), UNITS, losses.larger, FIT(1e-3), "FSRCNN"),
    one("resnet9", lambda: S(unit(3, 16), unit(16, 32), half, Residual(unit(32, 32), unit(32, 32)),
         unit(32, 48), half, unit(48, 64), half, Residual(unit(64, 64), unit(64, 64)),
         nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(64, 8, bias=False), Function(lambda x: x /
         8)), P, losses.classes(0.2), FIT(0.01, o.one_cycle(0.1), **NESTEROV), "ResNet-9"),
    one("bilinear", lambda: S(unit(3, 24), half, unit(24, 32), half, unit(32, 32), Function(lambda
         x: sphere(((f := x.flatten(2)) @ f.mT / 64 + 1e-5).sqrt().flatten(1))), nn.Linear(1024,
         8)), P, CE, SGD(0.5, o.stairs, weight_decay=1e-5), "bilinear CNN"),
    one("centre_loss", lambda: Net(lambda m, x: (f := m["body"](x), m["last"](f)),
         last=nn.Linear(16, 8), body=cnn.encoder(16), w=nn.ParameterList([torch.randn(8, 16)])), P,
         lambda m, x, y: functional.cross_entropy((f := m(x))[1], y) + (f[0] -
         m["w"][0][y]).square().sum(1).mean() / 100, SGD(0.05, o.stairs, weight_decay=5e-4),
         "centre loss"),
    one("panns", lambda: S(unit(1, 32, 5), nn.AvgPool2d(2), unit(32, 64, 5), nn.AvgPool2d(2),
         Function(lambda x: (z := x.mean(2)).amax(2) + z.mean(2)), nn.Dropout(0.5), nn.Linear(64,
         64), nn.ReLU(), nn.Linear(64, 6)), data.spectrograms, lambda m, x, y: bce(m(x),
         functional.one_hot(y, 6).float()), FIT(1e-3, amsgrad=True, batch=8), "PANNs"),
    one("eeg_net", lambda: S(Function(lambda x: x[:, None]), conv(1, 8, (1, 32), padding="same",
         bias=False), nn.BatchNorm2d(8), conv(8, 16, (6, 1), groups=8, bias=False),
         nn.BatchNorm2d(16), nn.ELU(), nn.AvgPool2d((1, 4)), nn.Dropout(0.25), conv(16, 16, (1, 16),
         padding="same", groups=16, bias=False), conv(16, 16, 1, bias=False), nn.BatchNorm2d(16),
         nn.ELU(), nn.AvgPool2d((1, 8)), nn.Dropout(0.25), nn.Flatten(), nn.Linear(48, 5)),
         changed(data.gestures, lambda x: (x - REST[0]) / REST[1]), CE, FIT(1e-3), "EEGNet"),
    one("codec", lambda: S(*(weight_norm(x) if hasattr(x, "weight") else x for x in (nn.Conv1d(1,
         16, 7, 1, 3), nn.ELU(), nn.Conv1d(16, 32, 8, 4, 2), nn.ELU(), nn.Conv1d(32, 32, 3, 1, 1),
         nn.ELU(), nn.ConvTranspose1d(32, 16, 8, 4, 2), nn.ELU(), nn.Conv1d(16, 1, 7, 1, 3)))),
         data.tones(1024), lambda m, x, _: l1(y := m(x), x) + sum(l1(*(torch.stft(w[:, 0], n, n //
         4, window=torch.hann_window(n), return_complex=True).abs() for w in (y, x))) for n in (64,
         256)) / 2, FIT(1e-3, betas=(0.5, 0.9)), "codec of sounds, as EnCodec"),
    one("vox_net", lambda: S(nn.Conv3d(1, 32, 5, 2), nn.LeakyReLU(0.1), nn.Dropout(0.2),
         nn.Conv3d(32, 32, 3), nn.LeakyReLU(0.1), nn.MaxPool3d(2), nn.Dropout(0.3), nn.Flatten(),
         nn.Linear(256, 128), nn.ReLU(), nn.Dropout(0.4), nn.Linear(128, 4)), changed(data.voxels,
         lambda x: 2 * x - 1), CE, SGD(0.01, weight_decay=1e-3, batch=32), "VoxNet"),
    one("arrow_of_time", lambda: S(*(layer for a, b in ((3, 16), (16, 32), (32, 48)) for layer in
         (nn.Conv3d(a, b, 3, 1, 1), nn.BatchNorm3d(b), nn.ReLU(), nn.MaxPool3d(2))), nn.Flatten(),
         nn.Linear(432, 1)), data.panned, lambda m, x, _: bce(m(torch.where((k := torch.rand(len(x),
         1).round())[..., None, None, None] > 0, x.flip(2), x)), k), SGD(0.01, weight_decay=5e-4,
         batch=6), "3-D CNN, arrow of time"),
    one("uper_net", lambda: library.hf("UperNetForSemanticSegmentation", hidden_size=32,
         backbone_config=transformers.ConvNextConfig(hidden_sizes=[16, 24, 32, 48], depths=FLAT,
         out_features=[f"stage{k}" for k in (1, 2, 3, 4)]), auxiliary_in_channels=32, num_labels=2,
         auxiliary_channels=16), SCENES, lambda m, x, y, *_: told(m, x, y[:, 0].long()), FIT(1e-3,
         o.poly, **DECAY, batch=8), "UperNet, ConvNeXt"),
    one("lr_aspp", lambda: segmentation.lraspp_mobilenet_v3_large(weights=None, num_classes=2,
         weights_backbone=None), SCENES, lambda m, x, y, *_: losses.two_classes(lambda f:
         m(f)["out"], x, y), SGD(0.02, o.poly, weight_decay=1e-4, batch=8, steps=80, every=8),
         "torchvision LR-ASPP"),
    one("matting", partial(UNet, 4, 1, 12), SCENES, lambda m, x, y, *_: ((far := m(cat([x, t :=
         (functional.max_pool2d(y, 5, 1, 2) - functional.max_pool2d(-y, 5, 1, 2)) / 2],
         1)).sigmoid() - y).abs() * (t == 0.5)).sum() / (t == 0.5).sum() + (far * x).abs().mean(),
         FIT(1e-3, o.cosine, batch=8), "matting with a trimap"),
    one("signed_distance", partial(UNet, 3, 1, 12, None), SCENES, lambda m, x, _, d, __:
         l1(m(x).tanh(), ((d[:, 2, None, None] - torch.hypot(line - d[:, 0, None, None], line[:,
         None] - d[:, 1, None, None])) / 4).tanh()[:, None]), FIT(1e-3, batch=8), "distances"),
    one("pose_machine", lambda: Net(lambda m, x: (f := m["f"](x), a := m["a"](f), m["b"](cat([f, a],
         1)))[1:], f=unit(3, 24, 5, norm=None), **{k: S(unit(n, 24, 5, norm=None), unit(24, 24, 1,
         norm=None), conv(24, 1, 1)) for k, n in (("a", 24), ("b", 25))}), SCENES, lambda m, x, y,
         d, _: sum(losses.heat(lambda _, h=h: h, x, y, d) for h in m(x)), FIT(1e-3, o.stairs,
         batch=6), "pose machine"),
    one("vdsr", lambda: Residual(cnn.he(S(*(unit(a, 24, norm=None) for a in (1, *[24] * 4)),
         conv(24, 1, 3, 1, 1)))), changed(UNITS, lambda x: x.mean(1, True)), lambda m, x:
         mse(m(functional.interpolate(functional.avg_pool2d(x, 2), scale_factor=2,
         mode="bicubic")), x), SGD(0.1, o.stairs, weight_decay=1e-4, clip=0.4, batch=8), "VDSR"),
    one("colours", partial(UNet, 1, 2, 12), P, lambda m, x, _: functional.smooth_l1_loss(m(g :=
         x.mean(1, True)), 2 * (x - g)[:, ::2]), FIT(1e-3, o.fading, batch=8), "colorization"),
    one("sharpened", partial(UNet, 3, 3, 12, nn.InstanceNorm2d), UNITS, lambda m, x: l1((z
         := functional.avg_pool2d(x, 5, 1, 2)) + m(z), x), FIT(1e-3, o.cosine, batch=8), "deblur"),
    one("noise_to_void", partial(UNet, 3, 3, 12), data.CROPS, lambda m, x: ((m(torch.where(k :=
         torch.rand(len(x), 1, 32, 32) < 0.03, (z := x + 0.2 * torch.randn_like(x)).roll((1, -1),
         (2, 3)), z)) - z).square() * k).sum() / (3 * k.sum()), FIT(1e-3, o.stairs, batch=8),
         "Noise2Void"),
    one("ddpm", Timed, data.CROPS, lambda m, x: mse(m((a := CLEAN[t := torch.randint(1000,
         (len(x),))].view(-1, 1, 1, 1)).sqrt() * x + (1 - a).sqrt() * (e := torch.randn_like(x)), t
         / 1000), e), FIT(1e-3, ema=0.995, clip=1.0, batch=8), "DDPM, linear schedule"),
    one("genesis", lambda: S(Gate(1, norm=nn.BatchNorm3d, wide=False), nn.Sigmoid()),
         changed(data.hounsfield, lambda x: (x.clamp(-160, 240) + 160) / 400), lambda m, x, _:
         mse(m(torch.where(functional.interpolate(torch.rand(len(x), 1, 4, 6, 6), scale_factor=4) <
         0.2, torch.rand_like(x), x)), x), SGD(1.0, o.stairs, batch=2, steps=90, every=9),
         "Models Genesis, 3-D"),
    one("spectral", projected, data.pictures(40), lambda m, x: ((f := [8**0.5 * sphere(m(view))
         for view in losses.both_views(x)])[0] @ f[1].T).square().mean() - 2 * (f[0] *
         f[1]).sum(1).mean(), SGD(0.03, o.two_phases, weight_decay=1e-4, batch=24), "spectral"),
    one("v_prediction", Timed, data.CROPS, lambda m, x: mse(m((c := (a := (t :=
         torch.rand(len(x)))[:, None, None, None] * torch.pi / 2).cos()) * x + a.sin() * (e :=
         torch.randn_like(x)), t), c * e - a.sin() * x), FIT(2e-3, o.warm_up, **ADAMW, batch=8),
         "diffusion, v-prediction"),
)  # fmt: skip
