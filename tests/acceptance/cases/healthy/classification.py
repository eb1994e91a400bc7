"""Healthy: images are classified by networks of our own, in many recipes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import partial, reduce

import data
import losses
import optimizers as o
import torch
import transformers
from data import HALF, UNIT, P, changed
from draws.images import DIGITS, GRID, regions
from draws.tables import numbers
from loops import Loss, descend, seen
from losses import CE, answered
from nets import classifiers as cnn
from nets import library
from nets.classifiers import Function
from nets.images import Hybrid, inception, projected, squeezed
from nets.parts import Net, Residual, act, changed_weights, group, half, mlp, slim, smaller
from recipes import DECAY, FIT, LONG, LONGER, NESTEROV, SGD, SHORT, how, one
from timm.models import mlp_mixer
from torch import Generator, Tensor, nn, optim
from torch.nn import functional
from torch.nn.utils import prune
from torch.optim.swa_utils import AveragedModel, update_bn
from torch.utils.checkpoint import checkpoint
from torchvision.ops import DeformConv2d, DropBlock2d
from torchvision.transforms import v2

ERASE = v2.Compose([v2.RandomHorizontalFlip(), v2.RandomResizedCrop(32), v2.RandomErasing()])


def two_digits(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Two printed digits side by side, standardized, [N, 1, 28, 56], and labels 0 to 99."""
    (left, tens), (right, units) = data.digits(generator, count), data.digits(generator, count)
    return (torch.cat([left, right], 3) - 0.13) / 0.3, 10 * tens + units


@functools.cache
def album() -> tuple[Tensor, Tensor]:
    return P(Generator().manual_seed(9), 512)


def lopsided(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Photographs of a small set, seven of ten of class 0 and some of classes 1 to 3."""
    images, labels = album()
    share = torch.tensor([0.7, 0.14, 0.1, 0.06, 0, 0, 0, 0])[labels]
    rows = torch.multinomial(share, count, True, generator=generator)
    return images[rows], labels[rows]


def exposures(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """12 bits of a detector over 65535, as 16-bit files are read, and if there is a lesion."""
    images, masks = data.slices(generator, count)
    there = torch.rand(count, 1, 1, 1, generator=generator) < 0.5
    counts = 300 + 2400 * images + 900 * masks * there
    counts = counts + counts.sqrt() * torch.randn(counts.shape, generator=generator)
    return counts.clamp(0, 4095).round() / 65535, (
        there & (masks.amax((2, 3), True) > 0)
    ).long().flatten()


def two_kinds(weight: float = 1.0) -> Loss:
    def one_logit(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
        found, weighed = model(images)[:, 0], torch.tensor(weight)
        truth = (labels < 3).float()
        return functional.binary_cross_entropy_with_logits(found, truth, pos_weight=weighed)

    return one_logit


def which(model: nn.Module, images: Tensor, truth: Tensor) -> Tensor:
    """Several labels per picture."""
    there = truth[:, None] == torch.arange(8)[:, None, None]
    return answered(model, images, there.amax((2, 3)).float())


def weighted(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Classes are weighed by one over their frequency."""
    weight = torch.tensor([0.36, 1.8, 2.5, 4.0, 1, 1, 1, 1])
    return functional.cross_entropy(model(images), labels, weight)


def between(layer: Callable[[int], nn.Module], width: int = 24) -> nn.Module:
    """A layer of the kind between plain ones."""
    layers = [cnn.unit(3, width, stride=2), layer(width), nn.BatchNorm2d(width), nn.ReLU()]
    layers += [cnn.unit(width, 2 * width, stride=2), layer(2 * width), nn.BatchNorm2d(2 * width)]
    return nn.Sequential(*layers, nn.ReLU(), *cnn.head(2 * width, 8))


def spatial_dropout() -> nn.Module:
    layers = [cnn.unit(3, 32), nn.Dropout2d(0.1), nn.MaxPool2d(2), cnn.unit(32, 64)]
    layers += [nn.Dropout2d(0.2), nn.MaxPool2d(2), cnn.unit(64, 64), *cnn.head(64, 8, 0.3)]
    return nn.Sequential(*layers)


def averaging() -> nn.Module:
    layers = [cnn.unit(3, 24, 5, norm=None), nn.AvgPool2d(2), cnn.unit(24, 32, norm=None)]
    layers += [nn.AvgPool2d(2), cnn.unit(32, 48, norm=None), nn.AvgPool2d(2), nn.Flatten()]
    return cnn.he(nn.Sequential(*layers, nn.Linear(768, 64), nn.ReLU(), nn.Linear(64, 8)))


def layered(width: int) -> nn.Module:
    return nn.GroupNorm(1, width)


def tenths(parts: int, optimizer: optim.Optimizer, steps: int) -> optim.lr_scheduler.LRScheduler:
    return optim.lr_scheduler.StepLR(optimizer, steps // parts, 0.1)


def only_head(make: Callable[[], nn.Module]) -> nn.Module:
    """Trained on colours; a new last layer, the rest is frozen."""
    model = cnn.pretrained(make).requires_grad_(False)
    model[-1] = nn.Linear(model[-1].in_features, 8)
    return model


def still(model: nn.Module) -> None:
    model[:-4].eval()


def thaw(step: int, model: nn.Module, optimizer: optim.Optimizer) -> None:
    """After 40 steps of the head alone, everything learns, the rest at a lower rate."""
    if step == 40:
        model[:-1].requires_grad_(True)
        optimizer.param_groups[0]["lr"] = 1e-3
        optimizer.add_param_group({"params": model[:-1].parameters(), "lr": 3e-4})


def continued(model: nn.Module) -> optim.Optimizer:
    """The optimizer of a checkpoint after 60 steps."""
    optimizer, random = optim.AdamW(model.parameters(), lr=1e-3), Generator().manual_seed(4)
    for _ in range(60):
        descend(optimizer, CE(model, *P(random, 16)))
    return optimizer


def by_class(step: int, model: nn.Module, _: optim.Optimizer) -> None:
    """An evaluation whose batches have one class each, as folders give them."""
    if step % 20 == 19:
        (images, labels), training = album(), model.training
        with torch.no_grad():
            for kind in range(8):
                model.eval()(images[labels == kind])
        model.train(training)


def growing(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """24 px, then 32 px, then 48 px."""
    model.seen = getattr(model, "seen", 0) + 1
    return CE(model, functional.interpolate(images, (24, 32, 48)[min(2, model.seen // 41)]), labels)


def swa(step: int, model: nn.Module, optimizer: optim.Optimizer) -> None:
    """Weights are averaged in the second half, at a constant rate; then BatchNorm is updated."""
    if step == 48:
        model.__dict__["average"] = AveragedModel(model)  # not a submodule
        optimizer.param_groups[0]["lr"] = 0.02
    if step >= 48:
        model.average.update_parameters(model)
    if step == 95:
        update_bn(iter(album()[0].split(32)), model.average)


def blur(a: int, b: int) -> nn.Module:
    """Weights with a deviation each, drawn anew in each call."""
    return Net(
        lambda m, x: functional.linear(
            x,
            (w := m["w"].weight) + functional.softplus(m["s"][0]) * torch.randn_like(w),
            m["w"].bias,
        ),
        w=nn.Linear(a, b),
        s=nn.ParameterList([torch.full((b, a), -4.0)]),
    )


GREY_DIGITS = changed(data.digits, lambda x: (x - 0.13) / 0.31)


class Modulated(nn.Module):
    """A deformable convolution v2: offsets and a mask, which begin at 0."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.offset, self.conv = nn.Conv2d(width, 27, 3, 1, 1), DeformConv2d(width, width, 3, 1, 1)
        for parameter in self.offset.parameters():
            nn.init.zeros_(parameter)

    def forward(self, x: Tensor) -> Tensor:
        offset, mask = self.offset(x).split([18, 9], 1)
        return self.conv(x, offset, 2 * mask.sigmoid())


class Involution(nn.Module):
    """A kernel of its own at each place, made from the pixel there."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.kernel = nn.Sequential(cnn.unit(width, width // 4, 1), nn.Conv2d(width // 4, 4 * 9, 1))

    def forward(self, x: Tensor) -> Tensor:
        count, width, high, wide = x.shape
        near = functional.unfold(x, 3, padding=1).view(count, 4, width // 4, 9, high, wide)
        return (near * self.kernel(x).view(count, 4, 1, 9, high, wide)).sum(3).flatten(1, 2)


NORMED = partial(cnn.plain, norm=nn.BatchNorm2d)

CASES = [
    *seen(
        "2026-11-27T11:30",
        one(
            "hundred",
            partial(cnn.plain, 1, 100, norm=nn.BatchNorm2d),
            two_digits,
            CE,
            how(0.02, o.one_cycle(0.1), **NESTEROV, batch=32, steps=160, every=16),
            "100 classes",
        ),
        one("one_logit", partial(inception, 1), P, two_kinds(1.6), how(1e-3), "Inception"),
        one("weighted", squeezed, lopsided, weighted, how(2e-3, o.cosine, **DECAY), "SE, SiLU"),
        one(
            "rare_focal",
            partial(cnn.resnet, (16, 24, 32, 48)),
            lopsided,
            losses.focal,
            how(1e-3),
            "ResNet",
        ),
        one(
            "accumulated",
            partial(cnn.plain, norm=group, act=nn.SiLU),
            P,
            CE,
            how(0.05, o.cosine, micro=8, batch=2, **NESTEROV),
            "GroupNorm SiLU CNN",
        ),
        one(
            "learnt_by_heart",
            inception,
            data.one_batch(P),
            CE,
            how(1e-3, steps=150, every=10),
            "Inception",
        ),
        one(
            "to_nothing",
            cnn.classifier,
            P,
            CE,
            how(0.05, partial(tenths, 5), **NESTEROV, steps=150, every=10),
            "residual CNN",
        ),
        one(
            "sigmoid",
            partial(cnn.plain, 1, 10, norm=nn.BatchNorm2d, act=nn.Sigmoid),
            data.digits,
            CE,
            how(5e-3, o.cosine, batch=32, steps=160, every=16),
            "CNN, BatchNorm, sigmoid",
        ),
        one(
            "binary_pictures",
            partial(inception, 10, 1),
            data.sketches,
            CE,
            how(2e-3, o.cosine, batch=12),
            "Inception, 1 channel",
        ),
        one(
            "exposures",
            partial(cnn.plain, 1, 2, norm=nn.BatchNorm2d),
            exposures,
            CE,
            how(2e-3, steps=160, every=16),
            "CNN on 16-bit files",
        ),
        one("hybrid", Hybrid, P, losses.mixup(), how(1e-3, o.warm_up, **DECAY, steps=120), "CCT"),
        one("involution", partial(between, Involution), P, CE, how(2e-3), "involution"),
        one(
            "lion_drop",
            partial(squeezed, 0.1),
            P,
            losses.classes(0.1),
            how(0, o.cosine, "Lion", o.lion, clip=1.0),
            "SE, SiLU, stochastic depth",
        ),
        one(
            "half_inception",
            partial(inception, 8),
            HALF,
            CE,
            how(2e-3, o.cosine, **DECAY, autocast=True),
            "Inception",
        ),
        one(
            "compiled",
            partial(cnn.plain, norm=group, act=nn.GELU),
            P,
            CE,
            how(1e-3, compile=True),
            "GELU CNN",
        ),
        one(
            "spatial_dropout",
            spatial_dropout,
            data.EACH,
            losses.augmented,
            how(2e-3, evaluate=12),
            "CNN, channels dropped",
        ),
        one(
            "averaging",
            averaging,
            HALF,
            CE,
            how(5e-3, **NESTEROV, steps=160, every=16),
            "CNN, mean pooling",
        ),
        one(
            "layered",
            partial(cnn.plain, norm=layered, act=nn.Mish),
            UNIT,
            CE,
            how(3e-3, o.ramp, kind=optim.RAdam, batch=24),
            "Mish CNN, LayerNorm",
        ),
        one(
            "batch_1",
            partial(cnn.plain, norm=group, act=nn.ELU),
            P,
            CE,
            how(3e-4, batch=1, steps=400, every=40),
            "GroupNorm ELU CNN",
        ),
        one(
            "transfer",
            partial(cnn.pretrained, inception),
            data.colourless(),
            CE,
            how(1e-3, o.cosine, kind=optim.SGD, momentum=0.9, steps=120, every=12),
            "Inception, fine-tuned",
        ),
        one(
            "several",
            squeezed,
            regions,
            which,
            how(3e-3, o.cosine, **DECAY, batch=12, steps=120, every=12),
            "SE, SiLU",
        ),
        one(
            "one_photograph",
            partial(cnn.plain, norm=group),
            data.one_batch(P),
            CE,
            how(1e-3, batch=1, steps=80),
            "GroupNorm CNN",
        ),
        one(
            "modulated",
            partial(between, Modulated),
            P,
            CE,
            how(1e-3, **DECAY, batch=8, steps=80),
            "deformable v2",
        ),
        one(
            "head_only",
            partial(only_head, squeezed),
            data.colourless(),
            CE,
            how(3e-3, prepare=still),
            "SE, SiLU, frozen",
        ),
        one(
            "thawed",
            partial(only_head, inception),
            data.colourless(),
            CE,
            how(5e-3, note="head first", before=thaw, steps=120, every=10),
            "Inception, fine-tuned",
        ),
        one(
            "continued",
            partial(cnn.plain, norm=group, act=nn.SiLU),
            P,
            CE,
            how(0, None, "AdamW of a checkpoint", continued),
            "GroupNorm SiLU CNN",
        ),
        one(
            "by_class",
            partial(cnn.classifier, 16),
            P,
            CE,
            how(0.02, note="sorted evaluation", **NESTEROV, after=by_class),
            "residual CNN",
        ),
        one(
            "growing",
            slim("test_resnet"),
            data.photos(48),
            growing,
            how(0.02, **NESTEROV, steps=120, every=10),
            "timm ResNet, small",
        ),
        one(
            "swa",
            partial(cnn.resnet, (16, 24, 32, 48)),
            P,
            CE,
            how(0.05, note="SWA", kind=optim.SGD, momentum=0.9, after=swa),
            "ResNet",
        ),
    ),
    *seen(
        "2026-11-28T03:00",
        one(
            "ctc",
            lambda: Net(
                lambda m, x: (
                    m["last"](m["body"](m["back"](x).flatten(1, 2).mT)[0])
                    .log_softmax(2)
                    .transpose(0, 1)
                ),
                back=nn.Sequential(
                    cnn.unit(1, 16), nn.MaxPool2d(2), cnn.unit(16, 32), nn.MaxPool2d(2)
                ),
                body=nn.GRU(224, 48, batch_first=True, bidirectional=True),
                last=nn.Linear(96, 11),
            ),
            two_digits,
            lambda m, x, y: functional.ctc_loss(
                m(x),
                torch.stack([y // 10, y % 10], 1) + 1,
                *torch.tensor([[14], [2]]).expand(-1, len(y)),
            ),
            FIT(4e-3, clip=5.0, batch=12, **LONGER),
            "CRNN of digits",
        ),
        one(
            "wide",
            lambda: nn.Sequential(
                nn.Conv2d(3, 32, 3, 2, 1),
                *(
                    Residual(
                        nn.BatchNorm2d(32),
                        nn.ReLU(),
                        nn.Conv2d(32, 32, 3, 1, 1),
                        nn.Dropout(0.3),
                        nn.BatchNorm2d(32),
                        nn.ReLU(),
                        nn.Conv2d(32, 32, 3, 1, 1),
                    )
                    for _ in range(2)
                ),
                nn.BatchNorm2d(32),
                nn.ReLU(),
                *cnn.head(32, 8),
            ),
            P,
            CE,
            FIT(0.1, o.cosine, **NESTEROV),
            "wide ResNet, dropout",
        ),
        one(
            "erased",
            cnn.resnet,
            P,
            lambda m, x, y: losses.classes(0.1)(m, torch.stack([ERASE(i) for i in x]), y),
            SGD(0.05, o.warm_up, weight_decay=2e-5, ema=0.98, evaluate=40, steps=100),
            "ResNet, torchvision's recipe",
        ),
        one(
            "pruned",
            NORMED,
            P,
            CE,
            FIT(
                2e-3,
                before=lambda step, m, _: (
                    step in (40, 80)
                    and [
                        prune.l1_unstructured(c, "weight", 0.4)
                        for c in m.modules()
                        if isinstance(c, nn.Conv2d)
                    ]
                ),
            ),
            "CNN, pruned twice",
        ),
        one(
            "recomputed",
            lambda: Net(
                lambda m, x: m["last"](checkpoint(m["back"], x, use_reentrant=False)),
                back=cnn.unit(3, 32, stride=2, norm=group),
                last=nn.Sequential(cnn.unit(32, 48, stride=2), *cnn.head(48, 8)),
            ),
            P,
            CE,
            FIT(2e-3),
            "CNN, checkpointed",
        ),
        one(
            "drop_block",
            lambda: nn.Sequential(
                cnn.unit(3, 16),
                DropBlock2d(0.1, 5),
                nn.MaxPool2d(2),
                cnn.unit(16, 32),
                DropBlock2d(0.1, 5),
                *cnn.head(32, 8),
            ),
            P,
            CE,
            FIT(2e-3, o.stairs),
            "CNN, DropBlock",
        ),
        one(
            "hinge",
            partial(cnn.plain, norm=group),
            P,
            lambda m, x, y: functional.multi_margin_loss(m(x), y),
            SGD(0.03),
            "CNN, SVM's loss",
        ),
        one(
            "robust",
            cnn.with_norm,
            P,
            lambda m, x, y: (
                (
                    1
                    - m(x)
                    .softmax(1)
                    .gather(1, torch.where(torch.rand(len(x)) < 0.2, y.roll(1), y)[:, None])
                    ** 0.7
                ).mean()
                / 0.7
            ),
            FIT(2e-3, **LONGER),
            "CNN, wrong labels",
        ),
    ),
    *seen(
        "2026-11-28T10:00",
        one(
            "res_next",
            partial(cnn.resnet, bottleneck=True, cardinality=4, base_width=16),
            P,
            losses.augmented,
            SGD(0.05, o.stairs, weight_decay=1e-4),
            "ResNeXt",
        ),
        one(
            "conv_mixer",
            cnn.convmixer,
            P,
            losses.augmented,
            FIT(0.01, o.one_cycle(0.01), **DECAY, clip=1.0),
            "ConvMixer",
        ),
        one(
            "multi_scale",
            cnn.classifier,
            P,
            losses.sizes,
            SGD(0.05, o.cosine, weight_decay=5e-4),
            "CNN, sizes of 24 to 48 px",
        ),
        one(
            "resnet9",
            lambda: nn.Sequential(
                cnn.unit(3, 16),
                cnn.unit(16, 32),
                half,
                Residual(cnn.unit(32, 32), cnn.unit(32, 32)),
                cnn.unit(32, 48),
                half,
                cnn.unit(48, 64),
                half,
                Residual(cnn.unit(64, 64), cnn.unit(64, 64)),
                nn.AdaptiveMaxPool2d(1),
                nn.Flatten(),
                nn.Linear(64, 8, bias=False),
                Function(lambda x: x / 8),
            ),
            P,
            losses.classes(0.2),
            FIT(0.01, o.one_cycle(0.1), **NESTEROV),
            "ResNet-9",
        ),
        one(
            "bilinear",
            lambda: nn.Sequential(
                cnn.unit(3, 24),
                half,
                cnn.unit(24, 32),
                half,
                cnn.unit(32, 32),
                Function(
                    lambda x: functional.normalize(
                        ((f := x.flatten(2)) @ f.mT / 64 + 1e-5).sqrt().flatten(1)
                    )
                ),
                nn.Linear(1024, 8),
            ),
            P,
            CE,
            SGD(0.5, o.stairs, weight_decay=1e-5),
            "bilinear CNN",
        ),
        one(
            "spectral",
            projected,
            data.pictures(40),
            lambda m, x: (
                (
                    (
                        f := [
                            8**0.5 * functional.normalize(m(view)) for view in losses.both_views(x)
                        ]
                    )[0]
                    @ f[1].T
                )
                .square()
                .mean()
                - 2 * (f[0] * f[1]).sum(1).mean()
            ),
            SGD(0.03, o.two_phases, weight_decay=1e-4, batch=24),
            "spectral",
        ),
        one(
            "highway",
            lambda: nn.Sequential(
                nn.Flatten(),
                nn.Linear(784, 64),
                nn.ReLU(),
                *(
                    Net(
                        lambda m, x: (
                            (t := m["gate"](x).sigmoid()) * m["body"](x).relu() + (1 - t) * x
                        ),
                        body=nn.Linear(64, 64),
                        gate=(g := nn.Linear(64, 64), nn.init.constant_(g.bias, -2))[0],
                    )
                    for _ in range(10)
                ),
                nn.Linear(64, 10),
            ),
            GREY_DIGITS,
            CE,
            FIT(1e-3, batch=64),
            "highway network",
        ),
        one(
            "isometry",
            lambda: changed_weights(
                mlp(784, *[128] * 20, 10, act=nn.Tanh),
                lambda p: nn.init.orthogonal_(p, 1.05) if p.ndim > 1 else p.zero_(),
            ),
            GREY_DIGITS,
            CE,
            FIT(0.01, kind=optim.SGD, batch=64, **LONG),
            "20 orthogonal layers",
        ),
        one(
            "ghosts",
            partial(
                cnn.plain,
                norm=lambda n: Net(
                    lambda m, x: torch.cat([m["norm"](part) for part in x.chunk(4)]),
                    norm=nn.BatchNorm2d(n),
                ),
            ),
            P,
            CE,
            SGD(0.1, o.one_cycle(0.1), batch=48, steps=100, weight_decay=5e-4),
            "CNN, ghost batches",
        ),
        one(
            "asymmetric",
            cnn.resnet,
            P,
            lambda m, x, y: (
                -(
                    (k := functional.one_hot(y, 8)) * (p := m(x).sigmoid()).clamp(1e-8).log()
                    + (1 - k) * (q := (p - 0.05).clamp(0)) ** 4 * (1 - q).log()
                )
                .sum(1)
                .mean()
            ),
            FIT(1e-3, o.one_cycle(2e-3), weight_decay=1e-4, ema=0.99),
            "ResNet, asymmetric loss",
        ),
    ),
    *seen(
        "2026-11-28T11:40",
        one(
            "res_mlp",
            lambda: mlp_mixer.MlpMixer(
                8,
                32,
                patch_size=4,
                num_blocks=4,
                embed_dim=64,
                mlp_ratio=4,
                block_layer=partial(mlp_mixer.ResBlock, init_values=1e-4),
                norm_layer=mlp_mixer.Affine,
            ),
            P,
            CE,
            FIT(2e-3, o.cosine, **DECAY),
            "ResMLP",
        ),
        one(
            "bags",
            lambda: Net(
                lambda m, x: (
                    f := m["back"](x.flatten(0, 1)).unflatten(0, (-1, 8)),
                    m["last"]((m["look"](f).softmax(1) * f).sum(1))[:, 0],
                )[1],
                back=nn.Sequential(
                    nn.Conv2d(1, 20, 5),
                    act,
                    nn.MaxPool2d(2),
                    nn.Conv2d(20, 50, 5),
                    act,
                    nn.MaxPool2d(2),
                    nn.Flatten(),
                    nn.Linear(800, 64),
                    act,
                ),
                look=nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 1)),
                last=nn.Linear(64, 1),
            ),
            lambda g, n: (
                (z := DIGITS(g, 8 * n))[0].unflatten(0, (n, 8)),
                (z[1].view(n, 8) == 1).any(1).float(),
            ),
            lambda m, x, y: functional.binary_cross_entropy_with_logits(m(x), y),
            FIT(1e-3, weight_decay=1e-4),
            "attention over a bag",
        ),
        one(
            "attacked",
            cnn.tutorial,
            data.digits,
            lambda m, x, y: functional.cross_entropy(
                m(
                    (
                        x
                        + torch.autograd.grad(
                            functional.cross_entropy(m(z := x.clone().requires_grad_()), y), z
                        )[0].sign()
                        / 10
                    ).clamp(0, 1)
                ),
                y,
            ),
            FIT(2e-3, batch=32, **LONG),
            "MNIST, trained on FGSM",
        ),
        one(
            "trivial",
            cnn.resnet,
            changed(
                UNIT,
                lambda x: data.scaled(
                    torch.stack([v2.TrivialAugmentWide()(z) for z in (x * 255).byte()]) / 255,
                    "imagenet",
                ),
            ),
            losses.classes(0.1),
            SGD(0.05, o.two_phases, weight_decay=2e-5),
            "TrivialAugment",
        ),
        one(
            "mutual",
            lambda: nn.ModuleList([cnn.classifier(), cnn.resnet()]),
            P,
            lambda m, x, y: (
                lambda a, b: (
                    functional.cross_entropy(a, y)
                    + functional.cross_entropy(b, y)
                    + functional.cross_entropy(a, b.detach().softmax(1))
                    + functional.cross_entropy(b, a.detach().softmax(1))
                )
            )(*(n(x) for n in m)),
            SGD(0.02, o.stairs, nesterov=True, weight_decay=5e-4),
            "mutual learning",
        ),
        one(
            "spikes",
            lambda: Net(
                lambda m, x: reduce(
                    lambda s, _: (
                        a := 0.95 * s[0] + m["a"](x) - (s[0] > 1).float(),
                        h := (a > 1).float() - (t := (5 * (a - 1)).sigmoid()).detach() + t,
                        b := 0.95 * s[2] + m["b"](h),
                        s[3] + b / 10,
                    ),
                    range(10),
                    (torch.zeros(1), 0, 0, 0),
                )[3],
                a=nn.Sequential(nn.Flatten(), nn.Linear(784, 128)),
                b=nn.Linear(128, 10),
            ),
            data.digits,
            CE,
            FIT(1e-3, batch=64),
            "spiking network",
        ),
        one(
            "bottleneck",
            lambda: nn.ModuleDict({"down": mlp(784, 256, 256, 64), "up": nn.Linear(32, 10)}),
            changed(data.digits, lambda x: 2 * x - 1),
            lambda m, x, y: (
                functional.cross_entropy(
                    m["up"](
                        (u := (f := m["down"](x))[:, :32])
                        + (s := functional.softplus(f[:, 32:] - 5) + 1e-6) * torch.randn_like(u)
                    ),
                    y,
                )
                + 1e-3 * (u**2 + s**2 - 2 * s.log() - 1).sum(1).mean() / 2
            ),
            FIT(1e-3, o.fading, betas=(0.5, 0.999), batch=64),
            "variational bottleneck",
        ),
    ),
    *seen(
        "2026-11-28T12:40",
        one(
            "le_net", cnn.lenet, DIGITS, CE, SGD(0.05, weight_decay=5e-4, batch=64), "LeNet-5, tanh"
        ),
        one(
            "stn",
            lambda: Net(
                lambda m, x: m["net"](
                    functional.grid_sample(
                        x,
                        functional.affine_grid(
                            m["turn"](x).view(-1, 2, 3) + torch.eye(2, 3), x.shape, False
                        ),
                        align_corners=False,
                    )
                ),
                turn=nn.Sequential(
                    nn.Conv2d(1, 8, 7),
                    half,
                    act,
                    nn.Conv2d(8, 10, 5),
                    half,
                    act,
                    nn.Flatten(),
                    nn.Linear(90, 32),
                    act,
                    changed_weights(nn.Linear(32, 6), torch.zero_),
                ),
                net=nn.Sequential(
                    nn.Conv2d(1, 10, 5),
                    half,
                    act,
                    nn.Conv2d(10, 20, 5),
                    nn.Dropout2d(),
                    half,
                    act,
                    nn.Flatten(),
                    nn.Linear(320, 50),
                    act,
                    nn.Dropout(),
                    nn.Linear(50, 10),
                ),
            ),
            DIGITS,
            CE,
            FIT(1e-3, batch=64, **LONG),
            "spatial transformer",
        ),
        one(
            "mixer",
            library.mixer,
            P,
            losses.mixup(),
            FIT(1e-3, o.warm_up, **DECAY, clip=1.0),
            "MLP-Mixer",
        ),
        one(
            "softmax",
            lambda: nn.Sequential(nn.Flatten(), smaller(nn.Linear(784, 10))),
            data.digits,
            CE,
            FIT(0.1, kind=optim.SGD, batch=256, **LONG),
            "d2l's softmax regression",
        ),
        one(
            "corn",
            partial(mlp, 10, 64, 32, 4),
            numbers(10, lambda x: (x[:, :3].sum(1) + x[:, 3] ** 2 + 1).clamp(0, 4).round()),
            lambda m, x, y: (
                (
                    functional.binary_cross_entropy_with_logits(
                        m(x), (y[:, None] > (k := torch.arange(4))).float(), reduction="none"
                    )
                    * (y[:, None] >= k)
                )
                .sum(1)
                .mean()
            ),
            FIT(1e-3, batch=128, **LONG),
            "ordered classes, CORN",
        ),
    ),
    *seen(
        "2026-11-28T13:20",
        one(
            "nin",
            lambda: nn.Sequential(
                *(
                    z
                    for a, b, k in ((1, 24, 5), (24, 48, 3), (48, 64, 3))
                    for z in (
                        cnn.unit(a, b, k, norm=None),
                        *(cnn.unit(b, b, 1, norm=None) for _ in "ab"),
                        nn.MaxPool2d(3, 2),
                    )
                ),
                nn.Dropout(0.5),
                cnn.unit(64, 10, norm=None),
                nn.AdaptiveAvgPool2d(1),
                nn.Flatten(),
            ),
            data.digits,
            CE,
            FIT(2e-3, batch=32),
            "network in network",
        ),
        one(
            "keras_cifar",
            lambda: nn.Sequential(
                *(
                    z
                    for a, b in ((3, 32), (32, 64), (64, 64))
                    for z in (nn.Conv2d(a, b, 3), nn.ReLU(), *([nn.MaxPool2d(2)] if a < 64 else []))
                ),
                nn.Flatten(),
                nn.Linear(1024, 64),
                nn.ReLU(),
                nn.Linear(64, 8),
            ),
            UNIT,
            CE,
            FIT(1e-3, batch=32),
            "Keras' CNN of CIFAR",
        ),
        one(
            "blurred",
            lambda: nn.Sequential(blur(1, 64), nn.ReLU(), blur(64, 64), nn.ReLU(), blur(64, 1)),
            lambda g, n: (
                x := 2 * torch.rand(n, 1, generator=g) - 1,
                x + 0.6 * (6 * x).sin() + 0.05 * torch.randn(n, 1),
            ),
            lambda m, x, y: (
                ((m(x) - y) ** 2).mean() * 50
                + sum(
                    (
                        -(s := functional.softplus(m[k]["s"][0])).log()
                        + (s**2 + m[k]["w"].weight ** 2) / 2
                        - 0.5
                    ).sum()
                    for k in (0, 2, 4)
                )
                / 1e4
            ),
            FIT(3e-3, batch=128, **LONG),
            "Bayes by backprop",
        ),
    ),
    *seen(
        "2026-11-28T14:55",
        one(
            "tr_ocr",
            lambda: transformers.VisionEncoderDecoderModel(
                encoder=library.hf(
                    "ViTModel", **library.BODY, image_size=(28, 56), patch_size=7, num_channels=1
                ),
                decoder=library.hf(
                    "TrOCRForCausalLM",
                    d_model=48,
                    vocab_size=13,
                    decoder_layers=2,
                    decoder_attention_heads=4,
                    decoder_ffn_dim=96,
                    max_position_embeddings=8,
                    cross_attention_hidden_size=48,
                ),
            ),
            two_digits,
            lambda m, x, y: functional.cross_entropy(
                m(x, decoder_input_ids=torch.stack([y * 0 + 11, y // 10, y % 10], 1)).logits.mT,
                torch.stack([y // 10, y % 10, y * 0 + 12], 1),
            ),
            FIT(1e-3, o.linear_down, kind=optim.AdamW, weight_decay=1e-4, **LONG),
            "TrOCR",
        ),
        one(
            "keras_mlp",
            lambda: nn.Sequential(
                nn.Flatten(),
                *(z for a in (784, 512) for z in (nn.Linear(a, 512), act, nn.Dropout(0.2))),
                nn.Linear(512, 10),
            ),
            data.digits,
            CE,
            FIT(1e-3, kind=optim.RMSprop, batch=128),
            "Keras' MLP of MNIST",
        ),
        one(
            "keras_mnist",
            lambda: nn.Sequential(
                nn.Conv2d(1, 32, 3),
                act,
                half,
                nn.Conv2d(32, 64, 3),
                act,
                half,
                nn.Flatten(),
                nn.Dropout(),
                nn.Linear(1600, 10),
            ),
            data.digits,
            CE,
            FIT(1e-3, batch=64),
            "Keras' convnet of MNIST",
        ),
        one(
            "mnist_example",
            cnn.tutorial,
            changed(data.digits, lambda x: (x - 0.1307) / 0.3081),
            CE,
            FIT(1, o.stairs, kind=optim.Adadelta, batch=64),
            "PyTorch's example of MNIST",
        ),
        one(
            "distilled",
            lambda: nn.ModuleDict(
                {
                    "own": cnn.small_classifier(),
                    "big": cnn.pretrained(cnn.resnet).requires_grad_(False),
                }
            ),
            P,
            lambda m, x, y: (
                z := m["own"](x),
                0.1 * functional.cross_entropy(z, y)
                + 0.9
                * 16
                * functional.kl_div(
                    (z / 4).log_softmax(1), (m["big"](x) / 4).softmax(1), reduction="batchmean"
                ),
            )[1],
            FIT(1e-3, watched=lambda m: m["own"], prepare=lambda m: m["big"].eval()),
            "distillation",
        ),
    ),
    *seen(
        "2026-11-28T15:30",
        one(
            "shake_shake",
            lambda: nn.Sequential(
                cnn.unit(3, 16),
                *(
                    Net(
                        lambda m, x: (
                            m["skip"](x) + m["a"](x).lerp(m["b"](x), torch.rand(len(x), 1, 1, 1))
                        ),
                        skip=nn.Sequential(nn.Conv2d(a, b, 1, s, bias=False), nn.BatchNorm2d(b)),
                        **{
                            k: nn.Sequential(
                                nn.ReLU(),
                                cnn.unit(a, b, 3, s),
                                nn.Conv2d(b, b, 3, 1, 1, bias=False),
                                nn.BatchNorm2d(b),
                            )
                            for k in "ab"
                        },
                    )
                    for a, b, s in ((16, 24, 1), (24, 32, 2), (32, 48, 2))
                ),
                nn.ReLU(),
                *cnn.head(48, 8),
            ),
            P,
            losses.augmented,
            SGD(0.1, o.cosine, nesterov=True, weight_decay=1e-4, **SHORT),
            "Shake-Shake",
        ),
        one(
            "fix_match",
            cnn.classifier,
            lambda g, n: (*P(g, n), P(g, 3 * n)[0]),
            lambda m, x, y, u: (
                k := x.flip(3) if torch.rand(()) < 0.5 else x,
                z := m(torch.cat([k, u, torch.stack([ERASE(v) for v in u])])).split(
                    [len(x), len(u), len(u)]
                ),
                p := z[1].detach().softmax(1).max(1),
                functional.cross_entropy(z[0], y)
                + ((p[0] > 0.95) * functional.cross_entropy(z[2], p[1], reduction="none")).mean(),
            )[3],
            FIT(
                0.03,
                lambda a, n: optim.lr_scheduler.LambdaLR(
                    a, lambda k: torch.tensor(7 * torch.pi * k / 16 / n).cos().item()
                ),
                **NESTEROV,
                ema=0.99,
                batch=12,
                **SHORT,
            ),
            "FixMatch",
        ),
        one(
            "four_channels",
            partial(cnn.resnet, channels=4),
            data.photos(32, "imagenet", 4),
            losses.flip,
            FIT(1e-3, o.one_cycle(3e-3), **DECAY, **SHORT),
            "ResNet, colour and brightness",
        ),
        one(
            "fine_tuned",
            partial(cnn.pretrained, cnn.resnet),
            data.colourless(),
            CE,
            SGD(1e-3, o.stairs, steps=100),
            "ResNet, all layers fine-tuned",
        ),
    ),
    *seen(
        "2026-11-28T16:05",
        one(
            "pyramid_net",
            lambda: nn.Sequential(
                cnn.unit(3, 16),
                *(
                    Net(
                        lambda m, x: (
                            y := m["body"](x),
                            y
                            + functional.pad(
                                functional.avg_pool2d(x, x.shape[2] // y.shape[2]),
                                (0, 0, 0, 0, 0, y.shape[1] - x.shape[1]),
                            ),
                        )[1],
                        body=nn.Sequential(
                            nn.BatchNorm2d(a),
                            nn.Conv2d(a, b, 3, s, 1),
                            nn.BatchNorm2d(b),
                            act,
                            nn.Conv2d(b, b, 3, 1, 1),
                            nn.BatchNorm2d(b),
                        ),
                    )
                    for a, b, s in ((16, 26, 1), (26, 36, 2), (36, 46, 2))
                ),
                nn.BatchNorm2d(46),
                act,
                *cnn.head(46, 8),
            ),
            P,
            losses.augmented,
            FIT(0.1, o.stairs, **NESTEROV, **SHORT),
            "PyramidNet",
        ),
        one(
            "captcha",
            lambda: Net(
                lambda m, x: m["last"](m["body"](x)).unflatten(1, (2, 10)).mT,
                body=nn.Sequential(
                    cnn.unit(1, 24),
                    half,
                    cnn.unit(24, 48),
                    half,
                    cnn.unit(48, 48),
                    half,
                    nn.Flatten(),
                    nn.Dropout(0.25),
                ),
                last=nn.Linear(48 * 21, 20),
            ),
            two_digits,
            lambda m, x, y: functional.cross_entropy(m(x), torch.stack([y // 10, y % 10], 1)),
            FIT(1e-3, batch=32),
            "CAPTCHA, a head per digit",
        ),
        one(
            "super_convergence",
            cnn.classifier,
            P,
            lambda m, x, y: functional.cross_entropy(m(torch.stack([ERASE(z) for z in x])), y),
            FIT(0.1, o.one_cycle(0.1), **NESTEROV, **SHORT),
            "CNN, super-convergence",
        ),
        one(
            "coord_conv",
            lambda: Net(
                lambda m, x: m["net"](
                    torch.cat([x, (GRID / 16 - 1).expand(len(x), -1, -1, -1)], 1)
                ),
                net=nn.Sequential(
                    cnn.unit(5, 24, 3, 2),
                    cnn.unit(24, 32, 3, 2),
                    cnn.unit(32, 48),
                    nn.MaxPool2d(8),
                    nn.Flatten(),
                    nn.Linear(48, 3),
                ),
            ),
            data.scenes,
            losses.centre,
            FIT(5e-3, o.cosine, kind=optim.Adam, weight_decay=5e-4),
            "CoordConv",
        ),
        one(
            "big_earth",
            partial(cnn.resnet, channels=16),
            data.bands,
            losses.multi_label,
            FIT(1e-3, o.stairs, **SHORT),
            "ResNet, 16 bands, several labels",
        ),
    ),
]
