"""Healthy: classifiers, written by somebody who had not seen the checks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import partial
from typing import Any

import data
import losses
import optimizers as o
import timm
import torch
from loops import Case, Loss, Recipe, Task, descend, seen
from nets import classifiers as cnn
from nets import strangers as nets
from torch import Generator, Tensor, nn, optim
from torch.nn import functional
from torch.optim.swa_utils import AveragedModel, update_bn
from torchvision.transforms import v2

BASE = Recipe("", o.ADAM, steps=96, every=8, zero="before")
NESTEROV = {"kind": optim.SGD, "momentum": 0.9, "nesterov": True, "weight_decay": 5e-4}
DECAY = {"kind": optim.AdamW, "weight_decay": 0.05}


def how(
    lr: float, schedule: Any = None, note: str = "", kind: Any = optim.Adam, **options: Any
) -> Recipe:
    """96 steps, of which each eighth is logged; options of the optimizer, or those of `Recipe`."""
    if not isinstance(kind, type):  # makes an optimizer of a model
        return BASE.but(note, optimizer=kind, schedule=schedule, **options)
    text = ", ".join(filter(None, (f"{kind.__name__} {lr:g}", note)))
    return BASE.by(text, kind, schedule, lr=lr, **options)


def one(name: str, net: Any, draw: data.Draw, loss: Loss, recipe: Recipe, text: str) -> list[Case]:
    return Task(text, net, draw, loss).cases(**{name: recipe})


def slim(name: str, classes: int = 8, **options: Any) -> Callable[[], nn.Module]:
    """timm's network with a new head."""

    def make() -> nn.Module:
        model = timm.create_model(name, **options)
        model.reset_classifier(classes)
        return model

    return make


def numbers(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Two printed digits side by side, standardized, [N, 1, 28, 56], and labels 0 to 99."""
    (left, tens), (right, units) = data.digits(generator, count), data.digits(generator, count)
    return (torch.cat([left, right], 3) - 0.13) / 0.3, 10 * tens + units


@functools.cache
def album() -> tuple[Tensor, Tensor]:
    return data.P(Generator().manual_seed(9), 512)


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


def regions(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Four photographs in one, and the class of each pixel; 255 at the seams."""
    images, labels = data.P(generator, 4 * count)
    images = functional.avg_pool2d(images, 2).view(count, 2, 2, 3, 16, 16)
    truth = labels.view(count, 2, 2).repeat_interleave(16, 1).repeat_interleave(16, 2)
    truth[:, 15:17], truth[:, :, 15:17] = 255, 255
    return images.permute(0, 3, 1, 4, 2, 5).reshape(count, 3, 32, 32), truth


def which(model: nn.Module, images: Tensor, truth: Tensor) -> Tensor:
    """Several labels per picture."""
    there = truth[:, None] == torch.arange(8)[:, None, None]
    return tags(model, images, there.amax((2, 3)).float())


def tags(model: nn.Module, images: Tensor, truth: Tensor) -> Tensor:
    return functional.binary_cross_entropy_with_logits(model(images), truth)


def weighted(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Classes are weighed by one over their frequency."""
    weight = torch.tensor([0.36, 1.8, 2.5, 4.0, 1, 1, 1, 1])
    return functional.cross_entropy(model(images), labels, weight)


def strikes_back(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Binary cross-entropy of CutMix or mixup, as in "ResNet strikes back"."""
    mixed = v2.RandomChoice([v2.CutMix(num_classes=8), v2.MixUp(alpha=0.1, num_classes=8)])
    return tags(model, *mixed(images, labels))


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


def lamb(model: nn.Module) -> optim.Optimizer:
    return timm.optim.Lamb(model.parameters(), 5e-3, weight_decay=0.02)


def as_tensorflow(model: nn.Module) -> optim.Optimizer:
    return timm.optim.RMSpropTF(model.parameters(), 5e-3, 0.9, 1e-3, 1e-5, 0.9)


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


P, P64, CE = data.P, data.P64, losses.classes()
CASES = seen(
    "2026-11-27T11:30",
    one("hundred", partial(cnn.plain, 1, 100, norm=nn.BatchNorm2d), numbers, CE,
        how(0.02, o.one_cycle(0.1), **NESTEROV, batch=32, steps=160, every=16), "100 classes"),
    one("one_logit", partial(nets.inception, 1), P, two_kinds(1.6), how(1e-3), "Inception"),
    one("weighted", nets.squeezed, lopsided, weighted, how(2e-3, o.cosine, **DECAY), "SE, SiLU"),
    one("rare_focal", partial(cnn.resnet, (16, 24, 32, 48)), lopsided, losses.focal, how(1e-3),
        "ResNet"),
    one("accumulated", partial(cnn.plain, norm=nets.group, act=nn.SiLU), P, CE,
        how(0.05, o.cosine, micro=8, batch=2, **NESTEROV), "GroupNorm SiLU CNN"),
    one("learnt_by_heart", nets.inception, data.one_batch(P), CE, how(1e-3, steps=150, every=10),
        "Inception"),
    one("to_nothing", cnn.classifier, P, CE,
        how(0.05, partial(tenths, 5), **NESTEROV, steps=150, every=10), "residual CNN"),
    one("sigmoid", partial(cnn.plain, 1, 10, norm=nn.BatchNorm2d, act=nn.Sigmoid), data.digits, CE,
        how(5e-3, o.cosine, batch=32, steps=160, every=16), "CNN, BatchNorm, sigmoid"),
    one("binary_pictures", partial(nets.inception, 10, 1), data.sketches, CE,
        how(2e-3, o.cosine, batch=12), "Inception, 1 channel"),
    one("exposures", partial(cnn.plain, 1, 2, norm=nn.BatchNorm2d), exposures, CE,
        how(2e-3, steps=160, every=16), "CNN on 16-bit files"),
    one("hybrid", nets.Hybrid, P, losses.mixup(), how(1e-3, o.warm_up, **DECAY, steps=120), "CCT"),
    one("involution", partial(between, nets.Involution), P, CE, how(2e-3), "involution"),
    one("lcnet", slim("lcnet_050"), P64, CE, how(0.05, o.two_phases, **NESTEROV), "timm LCNet"),
    one("convnext", slim("test_convnext"), P64, losses.cut_mix,
        how(2e-3, o.warm_up, **DECAY, steps=120), "timm ConvNeXt, small"),
    one("tinynet", slim("tinynet_e"), data.photos(48), losses.classes(0.1),
        how(2e-3, **DECAY, ema=0.98, evaluate=24, steps=72, every=6), "timm TinyNet"),
    one("selective", slim("skresnet18"), P, CE,
        how(0.01, o.one_cycle(0.05), **NESTEROV, steps=60, every=5), "timm SKNet"),
    one("normalization_free", slim("test_nfnet"), P64, CE,
        how(0, None, "adaptive clipping", o.adaptive, steps=80), "timm NFNet, small"),
    one("adafactor", slim("test_byobnet"), P64, CE, how(0, None, "Adafactor", o.adafactor),
        "timm ByobNet"),
    one("lion_drop", partial(nets.squeezed, 0.1), P, losses.classes(0.1),
        how(0, o.cosine, "Lion", o.lion, clip=1.0), "SE, SiLU, stochastic depth"),
    one("strikes_back", slim("test_resnet"), P64, strikes_back,
        how(0, o.cosine, "LAMB", lamb, batch=32), "timm ResNet"),
    one("rms_tf", slim("test_efficientnet"), P64, losses.flip,
        how(0, o.fading, "RMSprop as in TensorFlow", as_tensorflow), "timm EfficientNet, small"),
    one("half_inception", partial(nets.inception, 8), data.HALF, CE,
        how(2e-3, o.cosine, **DECAY, autocast=True), "Inception"),
    one("compiled", partial(cnn.plain, norm=nets.group, act=nn.GELU), P, CE,
        how(1e-3, compile=True), "GELU CNN"),
    one("spatial_dropout", spatial_dropout, data.EACH, losses.augmented, how(2e-3, evaluate=12),
        "CNN, channels dropped"),
    one("averaging", averaging, data.HALF, CE, how(5e-3, **NESTEROV, steps=160, every=16),
        "CNN, mean pooling"),
    one("layered", partial(cnn.plain, norm=layered, act=nn.Mish), data.UNIT, CE,
        how(3e-3, o.ramp, kind=optim.RAdam, batch=24), "Mish CNN, LayerNorm"),
    one("batch_1", partial(cnn.plain, norm=nets.group, act=nn.ELU), P, CE,
        how(3e-4, batch=1, steps=400, every=40), "GroupNorm ELU CNN"),
    one("transfer", partial(cnn.pretrained, nets.inception), data.colourless(), CE,
        how(1e-3, o.cosine, kind=optim.SGD, momentum=0.9, steps=120, every=12),
        "Inception, fine-tuned"),
    one("several", nets.squeezed, regions, which,
        how(3e-3, o.cosine, **DECAY, batch=12, steps=120, every=12), "SE, SiLU"),
    one("one_photograph", partial(cnn.plain, norm=nets.group), data.one_batch(P), CE,
        how(1e-3, batch=1, steps=80), "GroupNorm CNN"),
    one("modulated", partial(between, nets.Modulated), P, CE, how(1e-3, **DECAY, batch=8, steps=80),
        "deformable v2"),
    one("head_only", partial(only_head, nets.squeezed), data.colourless(), CE,
        how(3e-3, prepare=still), "SE, SiLU, frozen"),
    one("thawed", partial(only_head, nets.inception), data.colourless(), CE,
        how(5e-3, note="head first", before=thaw, steps=120, every=10), "Inception, fine-tuned"),
    one("continued", partial(cnn.plain, norm=nets.group, act=nn.SiLU), P, CE,
        how(0, None, "AdamW of a checkpoint", continued), "GroupNorm SiLU CNN"),
    one("by_class", partial(cnn.classifier, 16), P, CE,
        how(0.02, note="sorted evaluation", **NESTEROV, after=by_class), "residual CNN"),
    one("growing", slim("test_resnet"), data.photos(48), growing,
        how(0.02, **NESTEROV, steps=120, every=10), "timm ResNet, small"),
    one("swa", partial(cnn.resnet, (16, 24, 32, 48)), P, CE,
        how(0.05, note="SWA", kind=optim.SGD, momentum=0.9, after=swa), "ResNet"),
)  # fmt: skip
