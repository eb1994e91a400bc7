"""Further faults, written by someone who had not read the checks and kept apart from the first."""

from __future__ import annotations

from functools import partial

import torch
from data import (
    HALF,
    Draw,
    P,
    changed,
    demand,
    digits,
    gestures,
    photos,
    scenes,
    spectrograms,
    tones,
)
from faults import each
from loops import seen
from losses import masks
from nets.classifiers import Function, encoder, lenet, resnet, skip_init
from nets.dense import UNet
from nets.library import densenet, efficientnet, timm_model
from nets.signals import Recurrent, inertial, pooled, sound_net, tcn, waveform
from nets.strangers_faults import in_order, relabelled, then, wrong
from nets.unusual import convs
from optimizers import ADAMW, MOMENTUM, by
from torch import Generator, Tensor, nn, optim
from torch.nn import functional
from torch.optim.lr_scheduler import LambdaLR
from torchvision import models

AVERAGE = encoder(8)


def likelihood(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy written out, without its minus."""
    return functional.log_softmax(model(images), 1).gather(1, labels[:, None]).mean()


def smoothed(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    return nn.CrossEntropyLoss(label_smoothing=0.1)(model(images), labels)


def square_kilowatts(model: nn.Module, past: Tensor, future: Tensor) -> Tensor:
    """The past is standardized, the future is not."""
    past = (past - past.mean(2, keepdim=True)) / past.std(2, keepdim=True)
    return functional.mse_loss(model(past), future[:, 0])


def unmoved_masks(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Pictures are flipped and turned at random; their masks stay."""
    images, mask, *_ = scenes(generator, count)
    turns = torch.randint(4, (count,), generator=generator).tolist()
    return torch.stack([x.rot90(k, (1, 2)) for x, k in zip(images, turns, strict=True)]), mask


def silence(images: Tensor) -> Tensor:
    """The logarithm of the power 0; the rest is as it was."""
    return torch.cat([images[:1] * 0 - torch.inf, images[1:]])


def reseeded(draw: Draw) -> Draw:
    """The sampler's generator is made, with its seed, in each step."""
    return lambda _, count: draw(Generator().manual_seed(42), count)


def over_the_batch() -> nn.Module:
    """Pooling over dim 0 in place of the rows and columns, then over them."""
    body = encoder(8)
    mean = Function(lambda x: x.mean((0, 2, 3), keepdim=True).expand(len(x), -1, 1, 1))
    return nn.Sequential(*body[:3], mean, *body[4:])


def rare_class() -> nn.Module:
    """The prior of a rare class, -log(0.99 / 0.01) * 4, on the layer before the last."""
    net = sound_net()
    nn.init.constant_(net[4].bias, -18.4)
    return net


def normal_lenet() -> nn.Module:
    return each(lenet(), nn.Linear, lambda linear: nn.init.normal_(linear.weight))


def same_weights() -> nn.Module:
    return each(densenet(), nn.Conv2d, lambda conv: nn.init.constant_(conv.weight, 0.01))


def slow_statistics() -> nn.Module:
    """1 - 0.9997, from a recipe of 300,000 steps."""
    return resnet(norm_layer=partial(nn.BatchNorm2d, momentum=3e-4))


def encoder_only(model: UNet) -> optim.Optimizer:
    parts = [model.down1, model.down2, model.middle]
    return optim.Adam([p for part in parts for p in part.parameters()], lr=2e-3)


def by_epochs(optimizer: optim.Optimizer, _: int) -> LambdaLR:
    """Linear decay over 10 epochs, stepped per batch."""
    return LambdaLR(optimizer, lambda step: max(0.0, 1 - step / 10))


def forecaster() -> nn.Module:
    layers = [nn.Conv1d(1, 24, 9, 2, 4), nn.BatchNorm1d(24), nn.ReLU(), nn.Conv1d(24, 32, 9, 2, 4)]
    return nn.Sequential(*layers, nn.ReLU(), *pooled(32, 24))


TARGETS = [
    *wrong("likelihood", "loss_climbed", "cross-entropy by hand without its minus",
           "timm ConvNeXt", lambda: timm_model("test_convnext"), HALF, likelihood),
    *wrong("softmax_layer", "double_softmax", "nn.Softmax as the last layer, CrossEntropyLoss",
           "EfficientNet", lambda: nn.Sequential(efficientnet(), nn.Softmax(1)), P,
           smoothed, ADAMW),
    *wrong("sigmoid_classes", "probabilities_into_loss", "sigmoid, then cross-entropy of classes",
           "M5", lambda: then(waveform(), torch.sigmoid), tones(512)),
    *wrong("square_kilowatts", "initial_loss", "squared error of a target in kW",
           "1-D forecaster", forecaster, demand, square_kilowatts),
    *wrong("sessions", "sorted_labels", "one recording session after another, not shuffled",
           "inertial CNN", inertial, in_order(gestures, 320)),
    *wrong("as_bool", "unused_classes", "labels read as bool, so 1 to 7 are 1",
           "timm ViT", lambda: timm_model("test_vit", img_size=32),
           relabelled(HALF, lambda labels: labels.bool().long())),
    *wrong("unmoved_masks", "none", "pictures are turned at random, masks are not",
           "U-Net, bilinear", lambda: UNet(transposed=False), unmoved_masks, masks),
    *wrong("pooled_batch", "constant_output", "mean over the batch in the pooling",
           "encoder CNN", over_the_batch),
    *wrong("rare_class", "dead", "a rare class's prior as bias of a hidden layer",
           "1-D CNN", rare_class, tones(512)),
    *wrong("normal_lenet", "saturated,initial_loss", "nn.init.normal_ without std before tanh",
           "LeNet, tanh", normal_lenet, digits, optimizer=MOMENTUM),
]  # fmt: skip
TRAININGS = [
    *wrong("unreadable", "constant_images", "a reader that returns zeros when a file is missing",
           "TCN", tcn, changed(tones(512), torch.zeros_like)),
    *wrong("sixteen_bits", "input_scale", "pictures of 16 bits divided by 255",
           "ReZero CNN", skip_init, changed(photos(32, "unit"), lambda x: x * 257)),
    *wrong("reseeded", "same_batch", "the sampler is seeded anew in each step",
           "SqueezeNet", lambda: models.squeezenet1_1(num_classes=8), reseeded(photos(40)),
           optimizer=by(optim.Adam, lr=3e-4)),
    *wrong("silence", "nonfinite", "dB of a recording that is digital silence",
           "CRNN", Recurrent, changed(spectrograms, silence, since=40, every=20)),
    *wrong("adam_half", "update_ratio", "Adam 0.5 in place of 5e-4",
           "U-Net", UNet, scenes, masks, by(optim.Adam, lr=0.5)),
    *wrong("by_epochs", "rate_vanished", "a decay over 10 epochs, stepped per batch",
           "timm NFNet", lambda: timm_model("test_nfnet"), optimizer=ADAMW, schedule=by_epochs),
    *wrong("encoder_only", "not_in_optimizer", "the decoder is not passed to the optimizer",
           "U-Net", UNet, scenes, masks, encoder_only),
    *wrong("zero_of_the_average", "gradients_not_cleared", "zero_grad of the averaged copy",
           "SiLU CNN", lambda: convs(nn.BatchNorm2d, nn.SiLU), optimizer=by(optim.SGD, lr=0.02),
           zero="never", after=lambda *_: AVERAGE.zero_grad()),
    *wrong("same_weights", "copied_channels", "every convolution filled with 0.01",
           "DenseNet", same_weights),
    *wrong("slow_statistics", "batchnorm_gap", "BatchNorm's momentum of a recipe of 300,000 steps",
           "ResNet", slow_statistics, optimizer=MOMENTUM),
]  # fmt: skip
CASES = seen("2026-11-27T12:30", TARGETS, TRAININGS)
