"""The trainings of the third set that share the loop of `acceptance_third_loop`."""

from __future__ import annotations

from functools import partial

import acceptance_third_data as data
import acceptance_third_frameworks as frameworks
import acceptance_third_generative as generative
import acceptance_third_pictures as shown
import acceptance_third_selfsup as views
import acceptance_third_series as series
import acceptance_third_signals as signals
import torch
from acceptance_case import HealthyCase
from acceptance_data import photos, scenes
from acceptance_data import pictures as crops
from acceptance_pictures import Denoiser
from acceptance_recipes import by, warm_up
from acceptance_tasks import heat, larger, repaired
from acceptance_third_library_sets import (
    ADAM,
    ADAMW,
    FEW,
    LIBRARY,
    MOMENTUM,
    QUICK,
    Made,
    P,
    smooth,
)
from acceptance_third_loop import Plan
from acceptance_third_tuning import named
from torch import Tensor, nn, optim
from torch.nn import functional


def linear_scaling(optimizer: optim.Optimizer, steps: int) -> object:
    """Rate 0.1 per 256 examples, from a fifth of it over 8 steps."""
    return warm_up(optimizer, steps, first=8)


def heavy_dropout() -> nn.Module:
    layers: list[nn.Module] = []
    for into, out in ((3, 32), (32, 64), (64, 64)):
        conv = nn.Conv2d(into, out, 3, padding=1)
        layers += [conv, nn.ReLU(), nn.MaxPool2d(2), nn.Dropout2d(0.2)]
    layers += [nn.Flatten(), nn.Linear(1024, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 8)]
    return nn.Sequential(*layers)


def ensemble() -> nn.Module:
    class Mean(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.nets = nn.ModuleList(views.small_classifier() for _ in range(3))

        def forward(self, x: Tensor) -> Tensor:
            return torch.stack([net(x) for net in self.nets]).mean(0)

    return Mean()


def pure_half(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    return functional.cross_entropy(model(images.bfloat16()).float(), labels)


PLANS: dict[str, Made] = {
    "rrdb": ("ESRGAN", "Adam, L1", Plan(shown.Rrdb, crops(32, "unit"), larger, ADAM, batch=8)),
    "lap_srn": (
        *("LapSRN", "Adam, losses at two sizes"),
        Plan(shown.Laplacian, crops(32, "unit"), shown.pyramid, ADAM, batch=8),
    ),
    "ffd_net": (
        *("FFDNet", "Adam, a plane of the noise's level"),
        Plan(shown.NoiseLevel, crops(32, "unit"), shown.any_noise, ADAM),
    ),
    "blind_spot": (
        *("residual denoiser", "Noise2Void"),
        Plan(partial(Denoiser, 5), crops(), shown.blind_spot, ADAM),
    ),
    "zero_dce": (
        *("Zero-DCE", "Adam, dark pictures of 0 to 0.3"),
        Plan(shown.Curves, crops(32, "unit"), shown.brighter, ADAM, clip=0.1),
    ),
    "raw_sensor": (
        *("demosaicing CNN", "Adam, raw values of 12 bits"),
        Plan(shown.Developed, data.sensor, shown.close, ADAM),
    ),
    "icnr": (
        *("fastai's U-Net, PixelShuffle with ICNR", "Adam, denoising"),
        Plan(shown.dynamic_unet, crops(), repaired, ADAM),
    ),
    "hed": (
        "HED",
        "SGD, side maps",
        Plan(shown.Holistic, data.edges, shown.balanced, MOMENTUM, batch=8),
    ),
    "crowd": (
        "CSRNet",
        "Adam, density",
        Plan(shown.density, data.crowds, shown.counted, ADAM, batch=8),
    ),
    "center_net": (
        *("CenterNet", "Adam, focal loss"),
        Plan(shown.Centres, scenes, shown.centres, ADAM),
    ),
    "pose": ("simple baseline", "Adam", Plan(shown.Pose, scenes, heat, ADAM)),
    "automaton": (
        *("neural cellular automaton", "Adam, gradients of norm 1"),
        Plan(
            generative.Automaton,
            crops(20),
            generative.grown,
            by(optim.Adam, lr=2e-3),
            steps=100,
            every=10,
            before=generative.unit_gradients,
        ),
    ),
    "dit": (
        *("DiT", "AdamW, rectified flow"),
        Plan(generative.Patches, photos(32, "half"), generative.velocity, ADAMW, steps=100),
    ),
    "latent": (
        *("latent diffusion", "AdamW, frozen encoder"),
        Plan(generative.Latent, crops(), generative.latent_noise, by(optim.AdamW, lr=1e-3)),
    ),
    "control_net": (
        *("ControlNet", "AdamW, zero convolutions, frozen network"),
        Plan(generative.Controlled, crops(), generative.controlled, ADAM),
    ),
    "watermark": (
        *("HiDDeN", "Adam, message planes"),
        Plan(generative.Watermark, crops(), generative.hidden_bits, QUICK, steps=120),
    ),
    "flow_net": (
        "FlowNet",
        "Adam",
        Plan(signals.Flow, data.shifted, signals.endpoint, ADAM, steps=100),
    ),
    "stereo": (
        "PSMNet",
        "Adam",
        Plan(signals.Volume, data.stereo, signals.disparity, QUICK, batch=4),
    ),
    "spectral": (
        *("48-band CNN, BatchNorm in front", "Adam, digital numbers"),
        Plan(signals.Bands, data.spectral, named, ADAM),
    ),
    "spectral_fixed": (
        *("48-band CNN, fixed standardization", "Adam, digital numbers"),
        Plan(partial(signals.Fixed, data.spectral), data.spectral, named, ADAM),
    ),
    "v_net": (
        *("V-Net (3-D)", "Adam, HU, windowed inside"),
        Plan(signals.VNet, data.hounsfield, signals.overlap, QUICK, batch=2, **FEW),
    ),
    "vox_net": ("VoxNet (3-D)", "Adam, occupancy", Plan(signals.vox_net, data.voxels, named, ADAM)),
    "inception_time": (
        *("InceptionTime (1-D)", "Adam, sensors' units"),
        Plan(series.InceptionTime, data.gestures, named, ADAM),
    ),
    "reversible": (
        *("forecaster with RevIN (1-D)", "Adam, kW"),
        Plan(series.Reversible, data.demand, series.percent, ADAM),
    ),
    "tas_net": (
        *("Conv-TasNet (1-D)", "Adam, clipping 5"),
        Plan(series.Separated, data.mixtures, series.noise_ratio, ADAM, clip=5.0, batch=8),
    ),
    "bags": (
        "attention over bags",
        "Adam",
        Plan(signals.Bag, data.bags, signals.positive, ADAM, batch=8),
    ),
    "behaviour": (
        "DQN's network",
        "behaviour cloning",
        Plan(signals.agent, data.catch, named, ADAM, batch=32),
    ),
    "with_table": (
        *("picture and table", "Adam"),
        Plan(signals.WithTable, data.with_table, signals.joined, ADAM),
    ),
    "rays": (
        *("NeRF of a plane", "Adam, batches of rays"),
        Plan(
            series.Rays,
            series.rays,
            series.rendered,
            by(optim.Adam, lr=2e-3),
            batch=512,
            steps=120,
        ),
    ),
    "linear_scaling": (
        *("residual CNN", "SGD 0.2, batch 128, warm-up, decay not for norms, smoothing"),
        Plan(
            views.classifier,
            P,
            smooth,
            lambda m: optim.SGD(
                [
                    {"params": [p for p in m.parameters() if p.ndim > 1], "weight_decay": 1e-4},
                    {"params": [p for p in m.parameters() if p.ndim <= 1]},
                ],
                lr=0.2,
                momentum=0.9,
                nesterov=True,
            ),
            batch=128,
            steps=40,
            every=4,
            schedule=linear_scaling,
        ),
    ),
    "dropout_heavy": (
        "VGG-like CNN, much dropout",
        "Adam",
        Plan(heavy_dropout, P, named, ADAM, steps=150),
    ),
    "ensemble": ("ensemble of three", "Adam", Plan(ensemble, P, named, ADAM)),
    "pure_half": (
        *("residual CNN, bfloat16", "AdamW"),
        Plan(lambda: views.classifier().bfloat16(), P, pure_half, by(optim.AdamW, lr=2e-3)),
    ),
    "schedule_free": (
        *("residual CNN", "schedule-free SGD"),
        Plan(views.classifier, P, named, frameworks.schedule_free),
    ),
}

SHARED: dict[str, HealthyCase] = {
    n: plan.case(net, how) for n, (net, how, plan) in (LIBRARY | PLANS).items()
}
