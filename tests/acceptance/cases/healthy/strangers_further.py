"""Healthy: a second set by somebody who had not seen the checks."""

from __future__ import annotations

import copy
from functools import partial
from pathlib import Path

import data
import losses
import optimizers as o
import timm
import torch
import torchvision
from cases.healthy import strangers_maps as maps
from cases.healthy.strangers_pictures import DECAY, NESTEROV, album, how, one, slim, two_kinds
from loops import Loss, Losses, descend, duel, follow, own_loop, seen
from nets import classifiers as cnn
from nets import strangers as nets
from nets.dense import unblurred
from torch import Generator, Tensor, nn, optim
from torch.nn import functional

U, UBN, CE = maps.U, maps.UBN, losses.classes()


def instances(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """128 photographs, each of which is a class of its own, as Exemplar-CNN."""
    rows = torch.randint(128, (count,), generator=generator)
    return album()[0][rows], rows


def mislabelled(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """A fifth of the labels is wrong."""
    images, labels = data.P(generator, count)
    wrong = torch.rand(count, generator=generator) < 0.2
    return images, torch.where(wrong, torch.randint(8, (count,), generator=generator), labels)


def hours(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Demand of electricity, standardized per series: four days, and the day after."""
    past, future = data.demand(generator, count)
    mean, spread = past.mean(2, keepdim=True), past.std(2, keepdim=True)
    return (past - mean) / spread, (future - mean) / spread


def pinball(model: nn.Module, past: Tensor, future: Tensor) -> Tensor:
    """Three quantiles of each of 24 hours."""
    share = torch.tensor([0.1, 0.5, 0.9])[:, None]
    apart = future - model(past).view(-1, 3, 24)
    return torch.maximum(share * apart, (share - 1) * apart).mean()


def cos_face(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    code, centres = (functional.normalize(x, dim=1) for x in (model.back(images), model.centres))
    return functional.cross_entropy(12 * (code @ centres.T - 0.15 * torch.eye(8)[labels]), labels)


def semi_hard(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """FaceNet's triplets: of each pair, the nearest other that is farther than the friend."""
    code = functional.normalize(model(images), dim=1)
    far = torch.cdist(code, code)
    pairs = torch.triu(labels[:, None] == labels, 1).nonzero()
    friend, others = far[pairs[:, 0], pairs[:, 1]], far[pairs[:, 0]]
    hidden = (labels[pairs[:, 0], None] == labels) | (others <= friend[:, None])
    near = others.masked_fill(hidden, 2.0).amin(1)
    return (friend - near + 0.3).relu().mean()


class Follower(nn.Module):
    """BYOL with GroupNorm in the encoder: an encoder, a predictor, and a slow copy."""

    def __init__(self) -> None:
        super().__init__()
        self.net = cnn.plain(classes=32, norm=nets.group, act=nn.SiLU)
        layers = [nn.Linear(32, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 32)]
        self.predict, self.slow = nn.Sequential(*layers), copy.deepcopy(self.net)
        self.slow.requires_grad_(False)

    def forward(self, one: Tensor, two: Tensor) -> Tensor:
        pairs = ((one, two), (two, one))
        alike = [(self.predict(self.net(a)), self.slow(b).detach()) for a, b in pairs]
        return sum(1 - functional.cosine_similarity(*pair).mean() for pair in alike)


def taught(temperature: float) -> Loss:
    """Hinton's distillation from the bundled network, which saw the same photographs."""
    teacher = cnn.bundled(True).eval().requires_grad_(False)

    def loss(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
        soft, found = (teacher(images) / temperature).softmax(1), model(images)
        close = functional.kl_div((found / temperature).log_softmax(1), soft, reduction="batchmean")
        return 0.7 * temperature**2 * close + 0.3 * functional.cross_entropy(found, labels)

    return loss


def epsilon(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """DDPM on digits: the noise is predicted."""
    time, noise = torch.rand(len(images)), torch.randn_like(images)
    angle = (time * torch.pi / 2)[:, None, None, None]
    mixed = angle.cos() * (images * 2 - 1) + angle.sin() * noise
    return functional.mse_loss(model(mixed, time, labels), noise)


def likely(model: nn.Module, images: Tensor, _: Tensor, __: Tensor, far: Tensor) -> Tensor:
    """Depth with a variance of its own in each pixel."""
    mean, spread = model(images).chunk(2, 1)
    return functional.gaussian_nll_loss(mean, far, functional.softplus(spread) + 1e-3)


def regularized(place: Path, seed: int) -> Losses:
    """A GAN of 16 px with the non-saturating loss and R1, as Mescheder et al.; the critic's."""
    layers = [nn.Linear(32, 64 * 16), nn.Unflatten(1, (64, 4, 4)), nn.LeakyReLU(0.2)]
    for into, out in ((64, 48), (48, 32)):
        layers += [nn.Upsample(scale_factor=2), nn.Conv2d(into, out, 3, 1, 1), nn.LeakyReLU(0.2)]
    maker = nn.Sequential(*layers, nn.Conv2d(32, 3, 3, 1, 1), nn.Tanh())
    layers = [nn.Conv2d(3, 32, 3, 1, 1), nn.LeakyReLU(0.2), nn.Conv2d(32, 48, 4, 2, 1)]
    layers += [nn.LeakyReLU(0.2), nn.Conv2d(48, 64, 4, 2, 1), nn.LeakyReLU(0.2), nn.Flatten()]
    critic = nn.Sequential(*layers, nn.Linear(1024, 1))
    draw = data.pictures(16)

    def step(_: int, random: Generator, first: optim.Optimizer, second: optim.Optimizer) -> float:
        real = draw(random, 24)[0].requires_grad_()
        fake, told = maker(torch.randn(24, 32)), critic(real)
        (slope,) = torch.autograd.grad(told.sum(), real, create_graph=True)
        loss = functional.softplus(-told).mean() + functional.softplus(critic(fake.detach())).mean()
        descend(second, loss + 0.1 * slope.square().sum((1, 2, 3)).mean())
        descend(first, functional.softplus(-critic(fake)).mean())
        return loss.item()

    return duel(place, seed, (maker, critic), (1e-3, 1e-3), step, 120, 10, (0.0, 0.99))


def coded() -> nn.Module:
    """An autoencoder of spectrograms with a narrow middle."""
    layers = [nn.Conv2d(1, 16, 4, 2, 1), nn.GELU(), nn.Conv2d(16, 32, 4, 2, 1), nn.GELU()]
    layers += [nn.Conv2d(32, 4, 1), nn.ConvTranspose2d(4, 32, 4, 2, 1), nn.GELU()]
    return nn.Sequential(*layers, nn.ConvTranspose2d(32, 1, 4, 2, 1))


def solid(channels: int, classes: int, widths: tuple[int, ...] = (12, 24, 32)) -> nn.Module:
    """3-D convolutions with GroupNorm and SiLU."""
    layers: list[nn.Module] = []
    for into, out in zip((channels, *widths), widths, strict=False):
        layers += [nn.Conv3d(into, out, 3, 1, 1), nets.group(out), nn.SiLU(), nn.MaxPool3d(2)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(32, classes))


def forecaster() -> nn.Module:
    layers = [nn.Conv1d(1, 24, 5, 2, 2), nn.GELU(), nn.Conv1d(24, 32, 5, 2, 2), nn.GELU()]
    return nn.Sequential(*layers, nn.Flatten(), nn.Dropout(0.1), nn.Linear(768, 72))


def adan(model: nn.Module) -> optim.Optimizer:
    return timm.optim.Adan(model.parameters(), 3e-3, weight_decay=0.02)


def slowly(_: int, model: nn.Module, __: optim.Optimizer) -> None:
    follow(model.slow, model.net, 0.97)


def two_views(model: nn.Module, images: Tensor) -> Tensor:
    return model(*losses.both_views(images))


SHUFFLE = partial(torchvision.models.shufflenet_v2_x0_5, num_classes=1)
CASES = seen(
    "2026-11-27T12:30",
    one("cos_face", lambda: losses.ArcFace(cnn.trunk(16)), data.P, cos_face,
        how(2e-3, o.cosine, **DECAY), "CosFace"),
    one("semi_hard", cnn.encoder, data.few_classes, semi_hard, how(1e-3, steps=64),
        "FaceNet's triplets"),
    one("follower", Follower, data.pictures(40), two_views,
        how(1e-3, **DECAY, after=slowly, batch=24), "BYOL, GroupNorm"),
    one("taught", cnn.small_classifier, data.photos(32, "own"), taught(4.0),
        how(0.05, o.cosine, **NESTEROV), "a small student"),
    own_loop("regularized", "GAN, no norm", "R1", regularized, 120, 10, False),
    one("hours", forecaster, hours, pinball, how(2e-3, o.fading, batch=32, steps=120, every=10),
        "forecaster (1-D)"),
    one("coded", coded, data.changed(data.spectrograms, lambda x: x[:, :, :32]), losses.again,
        how(2e-3, o.one_cycle(5e-3)), "autoencoder of sounds"),
    one("solid", partial(solid, 1, 4), data.voxels, CE, how(2e-3, batch=12), "3-D CNN, GroupNorm"),
    one("films", partial(solid, 3, 8), data.panned, CE, how(3e-3, o.cosine, **DECAY, batch=8),
        "3-D CNN, GroupNorm"),
    one("unblurred", nets.restorer, data.CROPS_UNIT, unblurred, how(1e-3, o.cosine, batch=8),
        "attention, no norm"),
    one("filled", partial(UBN, 4, 3), data.CROPS, losses.filled, how(2e-3, **DECAY, batch=8),
        "gated U-Net"),
    one("empty", partial(UBN, 1), data.slices, losses.boundary,
        how(1e-3, kind=optim.RMSprop, batch=8), "gated U-Net"),
    one("heat", U, data.scenes, losses.heat,
        how(2e-3, o.one_cycle(6e-3), batch=8, steps=120, every=10), "gated U-Net"),
    one("center_net", maps.center_net, data.scenes, maps.centres,
        how(0.02, o.two_phases, **NESTEROV, clip=5.0), "CenterNet"),
    one("epsilon", nets.Conditioned, data.digits, epsilon, how(2e-3, ema=0.99, clip=1.0, batch=8),
        "DDPM, class given"),
    one("rep_vit", slim("repvit_m0_9"), data.P, losses.classes(0.1),
        how(1e-3, o.warm_up, **DECAY, steps=60, every=5), "timm RepViT"),
    one("swift", slim("swiftformer_xs"), data.P, CE,
        how(1e-3, **DECAY, clip=1.0, steps=60, every=5), "timm SwiftFormer"),
    one("convnext_raw", slim("test_convnext3"), data.photos(64, "unit"), CE,
        how(2e-3, o.cosine, **DECAY, ema=0.98, evaluate=24), "timm ConvNeXt, small"),
    one("one_logit_shuffle", SHUFFLE, data.P64, two_kinds(),
        how(0.05, o.poly, **NESTEROV, steps=80), "torchvision ShuffleNet"),
    one("instances", partial(cnn.plain, classes=128, norm=nn.BatchNorm2d), instances,
        losses.augmented, how(3e-3, batch=32, steps=120, every=10), "Exemplar-CNN"),
    one("lenet", partial(cnn.lenet, nn.GELU), data.digits, CE,
        how(2e-3, **DECAY, batch=32, steps=160, every=16), "LeNet, GELU"),
    one("six", partial(nets.inception, channels=6), data.photos(32, channels=6), CE,
        how(0, o.ramp, "Adan", adan), "Inception, 6 channels"),
    one("accumulated_norm", cnn.classifier, data.HALF, CE,
        how(0.05, o.stairs, **NESTEROV, micro=4, batch=8, steps=64), "residual CNN"),
    one("mislabelled", nets.squeezed, mislabelled, CE,
        how(2e-3, o.cosine, **DECAY, steps=120, every=10), "SE, SiLU"),
    one("learnt_by_heart", cnn.plain, data.one_batch(data.P), CE,
        how(1e-3, batch=32, steps=160, every=16), "CNN, no norm"),
    one("small_set", nets.Hybrid, data.P, losses.augmented,
        how(1e-3, o.cosine, **DECAY, examples=96, steps=120, every=10), "CCT"),
    one("all_tuned", cnn.bundled, data.colourless(32, "own"), CE,
        how(2e-3, o.cosine, kind=optim.SGD, momentum=0.9, steps=120, every=10), "bundled network"),
    one("tones", partial(nets.heart, 1, 6), data.tones(), CE, how(5e-4, kind=optim.RMSprop),
        "residual 1-D CNN"),
    one("centre", partial(nets.inception, 3), data.scenes, losses.centre,
        how(2e-3, o.cosine, **DECAY, steps=120, every=10), "Inception, regression"),
    one("likely", partial(U, out=2), data.scenes, likely, how(1e-3, batch=8),
        "gated U-Net, variance"),
)  # fmt: skip
