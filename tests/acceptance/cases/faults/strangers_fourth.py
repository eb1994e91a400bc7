"""A fourth set of faults of somebody who had not read the checks: as people ask about them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import data
import losses
import timm
import torch
from cases.healthy.strangers_maps import bce
from cases.healthy.strangers_pictures import regions
from data import HALF, P48, P64, P, changed, fixed
from loops import Case, Losses, Run, descend, seen, train
from nets import classifiers as cnn
from nets import strangers as nets
from nets.dense import LinkNet, Spots, UNet
from nets.library import densenet, hf_convnext, timm_model
from nets.signals import Recurrent
from nets.strangers_faults import relabelled, wrong
from nets.unusual import TextNet
from optimizers import ADAMW, MOMENTUM, QUICK, by
from torch import Generator, Tensor, nn, optim
from torch.nn import functional
from torch.optim.lr_scheduler import LambdaLR, ReduceLROnPlateau
from torchvision import models
from torchvision.models import resnet as resnets
from torchvision.ops import box_iou

import fmapboard

TEACHER = cnn.bundled(True).eval()


def loop(name: str, kinds: str, words: str, architecture: str, run: Run, *steps: int) -> list[Case]:
    return [Case(name, architecture, words, *steps, run, kinds)]


def of_argmax(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """ "does not require grad", says PyTorch; so it is told to."""
    named = model(images).argmax(1).float().requires_grad_()
    return functional.mse_loss(named, labels.float())


def plain_iou(model: nn.Module, images: Tensor, _: Tensor, discs: Tensor, *__: Tensor) -> Tensor:
    """Boxes that do not overlap yet have a slope of 0."""
    true = torch.cat([discs[:, :2] - discs[:, 2:], discs[:, :2] + discs[:, 2:]], 1)
    return 1 - box_iou(model(images), true).diagonal().mean()


def summed_divergence(model: nn.Module, images: Tensor, _: Tensor) -> Tensor:
    """The error is a mean over the pixels, the divergence a sum over codes and pictures."""
    logits, mean, spread = model(images)
    apart = 0.5 * (mean.square() + spread.exp() - spread - 1).sum()
    return bce(logits, images) + apart


def of_frequencies(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """One over the count of each class in the train set; two classes are not in it."""
    kept, count = labels % 6, torch.tensor([41.0, 38, 44, 40, 36, 41, 0, 0])
    weight = 1 / count
    return functional.cross_entropy(model(images), kept, weight / weight.sum())


def clamped(model: nn.Module, images: Tensor, mask: Tensor, *_: Tensor) -> Tensor:
    """BCELoss wants 0 to 1, so the output is clamped."""
    return functional.binary_cross_entropy(model(images).clamp(0, 1), mask)


def distilled(model: nn.Module, images: Tensor, _: Tensor) -> Tensor:
    """The student ends in a softmax, and its answer is softened once more."""
    with torch.no_grad():
        soft = (TEACHER(images) / 2).softmax(1)
    return functional.kl_div((model(images) / 2).log_softmax(1), soft, reduction="batchmean")


def scaled(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """``scaler.scale(loss).backward()``, then ``optimizer.step()``: nobody unscales."""
    return torch.amp.GradScaler("cpu").scale(functional.cross_entropy(model(images), labels))


def same_side(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Both sides of the pair are computed from the first picture."""
    (one, _), same = images.chunk(2), (labels[:8] == labels[8:]).float()
    far = functional.pairwise_distance(model(one), model(one))
    return (same * far.square() + (1 - same) * (1 - far).clamp(min=0).square()).mean()


def one_slide(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """A batch is the patches of one slide, as the slide's own loader cuts them."""
    images, labels = P(generator, 12 * count)
    rows = (labels == labels[0]).nonzero()[:count, 0]
    return images[rows], labels[rows]


def late_binding(images: Tensor) -> Tensor:
    """``[lambda: load(file) for file in files]``: each loads the last file of the list."""
    readers = [lambda: image for image in images]  # noqa: B023
    return torch.stack([read() for read in readers])


class Reader(nn.Module):
    """A transformer that answers from its first token; the padding mask is upside down."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True)
        self.words, self.places = nn.Embedding(100, 32), nn.Parameter(0.1 * torch.randn(41, 32))
        self.body, self.last = nn.TransformerEncoder(layer, 2), nn.Linear(32, 4)

    def forward(self, tokens: Tensor) -> Tensor:
        tokens = functional.pad(tokens, (1, 0), value=1)
        there = tokens != 0
        code = self.words(tokens) + self.places
        return self.last(self.body(code, src_key_padding_mask=there)[:, 0])


def prior() -> nn.Module:
    """RetinaNet's prior without its minus: log((1 - 0.01) / 0.01)."""
    model = Spots()
    nn.init.constant_(model.score[1].bias, 4.6)
    return model


class Overwritten(nn.Module):
    """``for block in blocks: y = block(x)``: only the last block's answer is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = cnn.unit(3, 32, stride=2), nn.Sequential(*cnn.head(32, 8))
        self.blocks = nn.ModuleList(nets.attended(32) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for block in self.blocks:
            y = block(x)
        return self.last(y)


def soft_inside() -> nn.Module:
    """Softmax as the activation of each hidden layer."""
    layers: list[nn.Module] = [nn.BatchNorm1d(6), nn.Flatten()]
    for into in (576, 128, 128, 128):
        layers += [nn.Linear(into, 128), nn.Softmax(1)]
    return nn.Sequential(*layers, nn.Linear(128, 5))


class Typo(resnets.BasicBlock):
    """``bn1`` twice, by copy and paste."""

    def forward(self, x: Tensor) -> Tensor:
        same = x if self.downsample is None else self.downsample(x)
        y = self.bn1(self.conv1(x)).relu()
        return (self.bn1(self.conv2(y)) + same).relu()


def projection() -> nn.Module:
    """A new head with BatchNorm; memory allows two pictures, whose gradients are summed."""
    layers = [nn.Linear(48, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 8)]
    return nn.Sequential(cnn.encoder(48, norm=False), *layers)


class ByHand(optim.Optimizer):
    """SGD written by hand, with a plus."""

    def __init__(self, parameters: object, lr: float) -> None:
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter += group["lr"] * parameter.grad


def rate_itself(optimizer: optim.Optimizer, steps: int) -> LambdaLR:
    """The function returns the rate, but ``LambdaLR`` wants a factor: 1e-4 squared and less."""
    return LambdaLR(optimizer, lambda step: 1e-4 * (1 - step / steps))


def plateau_per_batch(place: Path, seed: int) -> Losses:
    """``scheduler.step(loss)`` after each batch, whose loss is noisy, with a patience of 3."""
    model = hf_convnext()
    optimizer = optim.AdamW(model.parameters(), lr=2e-3)
    scheduler = ReduceLROnPlateau(optimizer, patience=3)

    def step(_: int, random: Generator) -> float:
        loss = descend(optimizer, losses.named(model, *P(random, 16)))
        scheduler.step(loss)
        return loss

    return train(place, seed, model, step, 120, 10, optimizer)


def gan(size: tuple[int, int, int], forgotten: bool, place: Path, seed: int) -> Losses:
    """A DCGAN of digits; if ``forgotten``, both optimizers have the critic's parameters."""
    up = [nn.ConvTranspose2d(48, 24, size[0], 2, *size[1:]), nn.BatchNorm2d(24), nn.LeakyReLU(0.2)]
    up += [nn.ConvTranspose2d(24, 1, size[0], 2, *size[1:]), nn.Tanh()]
    layers = [nn.Linear(32, 2352), nn.LeakyReLU(0.2), nn.Unflatten(1, (48, 7, 7)), *up]
    down = [nn.Conv2d(1, 24, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(24, 48, 4, 2, 1)]
    down += [nn.LeakyReLU(0.2), nn.Dropout(0.3), nn.Flatten(), nn.Linear(2352, 1)]
    maker, critic = nn.Sequential(*layers), nn.Sequential(*down)
    learn = (critic if forgotten else maker, critic)
    first, second = (optim.Adam(net.parameters(), 5e-4, (0.5, 0.999)) for net in learn)

    def step(_: int, random: Generator) -> float:
        real, fake = data.digits(random, 16)[0] * 2 - 1, maker(torch.randn(16, 32))
        score, truth = critic(torch.cat([real, fake.detach()])), torch.arange(32)[:, None] < 16
        loss = descend(second, bce(score, truth.float()))
        descend(first, bce(critic(fake), torch.ones(16, 1)))
        return loss

    with fmapboard.watch(critic, place, optimizer=second, every=8, name="critic"):
        return train(place, seed, maker, step, 80, 8, first, name="maker")


def till_the_epoch_ends(step: int, model: nn.Module, _: object) -> None:
    """Validation in the middle of an epoch; ``model.train()`` only where an epoch begins."""
    if step % 24 in (0, 7):
        model.train(step % 24 == 0)


LOSS = [
    *wrong("of_argmax", "unchanged_weights", "MSE of the argmax, told to require a gradient",
           "timm ResNet", lambda: timm_model("test_resnet"), P64, of_argmax),
    *wrong("plain_iou", "unchanged_weights,vanishing", "1 - IoU of boxes that do not overlap",
           "ResNet, box", partial(cnn.resnet, classes=4), data.scenes, plain_iou, MOMENTUM),
    *wrong("summed_divergence", "constant_output", "KL summed, the error a mean: a VAE collapses",
           "VAE", nets.Gaussian, data.digits, summed_divergence, QUICK, batch=32, steps=120,
           every=10),
    *wrong("of_frequencies", "nonfinite", "weights of one over a class's count, which is 0",
           "timm ViT", lambda: timm_model("test_vit", img_size=32), HALF, of_frequencies, ADAMW),
    *wrong("clamped", "initial_loss,dead,vanishing,saturated", "logits clamped to 0 and 1, BCELoss",
           "gated U-Net", nets.Gate, data.scenes, clamped),
    *wrong("distilled", "double_softmax", "distillation of a student that ends in a softmax",
           "a small student", lambda: nn.Sequential(cnn.small_classifier(), nn.Softmax(1)),
           data.photos(32, "own"), distilled),
    *wrong("same_side", "unchanged_weights,vanishing", "net(x0) for both sides of the pair",
           "siamese CNN", partial(cnn.encoder, 16, False), P, same_side),
]  # fmt: skip
LABELS = [
    *wrong("as_tensor", "one_label,unused_classes", "ToTensor() on a mask of class numbers",
           "PSPNet", partial(nets.PyramidPooling, 8),
           relabelled(regions, lambda x: (x / 255).long())),
    *wrong("encoded", "none", "classes are encoded anew in each batch",
           "DenseNet", densenet, relabelled(P, lambda x: x.unique(return_inverse=True)[1]),
           optimizer=ADAMW, batch=8),
    *wrong("one_slide", "sorted_labels,batchnorm_gap", "a batch is one slide's patches",
           "SE, SiLU", nets.squeezed, one_slide, optimizer=ADAMW),
]  # fmt: skip
INPUT = [
    *wrong("late_binding", "identical_images", "[lambda: load(f) for f in files]",
           "torchvision MNASNet", partial(models.mnasnet0_5, num_classes=8),
           changed(P48, late_binding)),
    *wrong("other_cell", "same_batch", "x of another cell of the notebook",
           "Inception", nets.inception, changed(fixed(P, 192), partial({}.setdefault, 0)),
           optimizer=MOMENTUM),
    *wrong("without_log", "input_scale", "power of sounds without its logarithm",
           "CRNN", Recurrent, changed(data.power, lambda x: x[:, None, :, :32] * 1e4)),
    *wrong("as_pixels", "constant_output,identical_images", "words / 100, then .long()",
           "text CNN", TextNet, changed(data.sentences, lambda x: (x / 100).long()), batch=32),
    *wrong("mask_upside_down", "constant_output", "src_key_padding_mask is True for words",
           "transformer of words", Reader, data.sentences, batch=32),
]  # fmt: skip
OPTIMIZER = [
    *wrong("prior", "initial_loss", "the focal prior without its minus",
           "toy detector", prior, data.scenes, losses.detect),
    *wrong("adadelta_rate", "update_ratio,dead", "Adam with the rate 1.0 of Adadelta",
           "MNIST tutorial", cnn.tutorial, data.digits, optimizer=by(optim.Adam, lr=1.0)),
    *wrong("unscaled", "update_ratio,nonfinite", "GradScaler scales, nobody unscales",
           "timm ConvNeXt", lambda: timm_model("test_convnext2"), P64, scaled,
           by(optim.SGD, lr=0.05)),
    *wrong("half_adam", "nonfinite", "model.half() with Adam, whose eps is 0 then",
           "encoder CNN, no norm", lambda: cnn.without_norm().half(), P,
           losses.of_type(torch.float16), batch=8, steps=64),
    *wrong("plus", "loss_climbed", "SGD by hand: weights + rate * gradient",
           "LinkNet", LinkNet, data.scenes, losses.masks,
           lambda model: ByHand(model.parameters(), 0.01)),
    *wrong("rate_itself", "update_ratio,unchanged_weights", "LambdaLR's function returns the rate",
           "torchvision ShuffleNet v2", partial(models.shufflenet_v2_x0_5, num_classes=8), P48,
           optimizer=by(optim.Adam, lr=1e-4), schedule=rate_itself),
    *loop("plateau_per_batch", "rate_vanished", "ReduceLROnPlateau of each batch's loss",
          "transformers ConvNeXt v2", plateau_per_batch, 120, 10),
]  # fmt: skip
LOOP = [
    *wrong("summed_micro", "gradients_not_cleared", "gradients of 2 batches summed, never cleared",
           "U-Net", UNet, data.scenes, losses.both_masks, by(optim.SGD, lr=0.02), zero="never",
           micro=2, batch=8, steps=60, every=6),
    *loop("generator_forgotten", "not_in_optimizer,unchanged_weights",
          "both optimizers have the critic", "DCGAN", partial(gan, (4, 1, 0), True), 80, 8),
    *wrong("till_the_epoch_ends", "eval_mode", "eval mode from validation to the epoch's end",
           "timm EfficientNet", lambda: timm.create_model("test_efficientnet", num_classes=8), P48,
           before=till_the_epoch_ends),
]  # fmt: skip
ARCHITECTURE = [
    *wrong("overwritten", "unchanged_weights,vanishing", "y = block(x) in the loop over blocks",
           "CNN of 4 blocks", Overwritten),
    *wrong("soft_inside", "vanishing", "softmax as hidden activation",
           "MLP on sensors", soft_inside, data.gestures, optimizer=MOMENTUM),
    *wrong("norm_typo", "never_called", "bn1 twice, bn2 never",
           "torchvision ResNet-10", lambda: models.ResNet(Typo, [1, 1, 1, 1], 8), P48,
           optimizer=MOMENTUM, batch=8),
    *loop("five_by_two", "uneven_upsampling", "transposed convolutions 5 × 5, stride 2",
          "DCGAN of TensorFlow", partial(gan, (5, 2, 1), False), 80, 8),
    *wrong("projection", "batchnorm_small_batch", "BatchNorm1d in the head, 2 pictures at a time",
           "CNN, new head", projection, batch=2, micro=8),
]  # fmt: skip
CASES = seen("2026-11-27T18:00", LOSS, LABELS, INPUT, OPTIMIZER, LOOP, ARCHITECTURE)
