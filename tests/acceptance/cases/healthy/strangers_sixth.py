"""Healthy: what the threads of ``faults/strangers_sixth.py`` were answered, and tutorials."""

from __future__ import annotations

from functools import partial

import data
import losses
import optimizers as o
import torch
from cases.faults import strangers_sixth as threads
from cases.faults.strangers_fifth import Codes, coils, ends, error, mlp, mostly_first, small_cifar
from cases.healthy.strangers_fifth import momentum
from cases.healthy.strangers_maps import bce
from cases.healthy.strangers_pictures import DECAY, how, one
from data import HALF, UNIT, P, changed, fixed
from loops import seen
from nets import classifiers as cnn
from nets import library
from nets import strangers as nets
from nets.classifiers import unit
from nets.dense import UNet
from torch import Tensor, nn, optim
from torch.nn import functional
from torch.optim.lr_scheduler import LambdaLR, StepLR


def own_scale(images: Tensor) -> Tensor:
    mean, std = images.mean((1, 2, 3), True), images.std((1, 2, 3), keepdim=True)
    return (images - mean) / (std + 1e-3)


def weighed(model: nn.Module, images: Tensor, mask: Tensor, *_: Tensor) -> Tensor:
    return bce(model(images), mask, pos_weight=torch.tensor(40.0))


def two_weights(model: nn.Module, images: Tensor, mask: Tensor) -> Tensor:
    return functional.cross_entropy(model(images), mask[:, 0].long(), torch.tensor([0.02, 1]))


def rare_count_more(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    return functional.cross_entropy(model(images), labels, torch.tensor([0.05] + [1.0] * 7))


def flat(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return functional.mse_loss(model(x).flatten(), y)


def alike(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Contrastive loss of pairs, margin 1."""
    code = model(images)
    far = ((code - code.roll(1, 0)).square().sum(1) + 1e-6).sqrt()
    same = (labels == labels.roll(1)).float()
    return (same * far.square() + (1 - same) * (1 - far).relu().square()).mean()


def each_epoch(optimizer: optim.Optimizer, _: int) -> LambdaLR:
    return LambdaLR(optimizer, lambda step: 0.8 ** (step // 12))


def xavier() -> nn.Module:
    model = mlp(784, 64, 64, 10, act=nn.Tanh)
    for parameter in model.parameters():
        if parameter.ndim > 1:
            nn.init.xavier_uniform_(parameter)
    return model


def fused() -> nn.Module:
    """Six layers with BatchNorm and ReLU."""
    layers: list[nn.Module] = [nn.Flatten()]
    for into, out in ((784, 256), (256, 128), (128, 64), (64, 32), (32, 16)):
        layers += [nn.Linear(into, out), nn.BatchNorm1d(out), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(16, 10))


def in_network() -> nn.Module:
    """NiN: convolutions of 1 px after each, a map per class."""
    layers: list[nn.Module] = []
    for into, out in ((3, 32), (32, 48), (48, 8)):
        layers += [unit(into, out, norm=None), unit(out, out, 1, norm=None)]
        layers += [unit(out, out, 1, norm=None), nn.MaxPool2d(3, 2, 1)]
    return cnn.he(nn.Sequential(*layers[:-1], nn.AdaptiveAvgPool2d(1), nn.Flatten()))


def sub_pixel() -> nn.Module:
    """The super-resolution of pytorch/examples: orthogonal weights, PixelShuffle."""
    layers: list[nn.Module] = []
    for into, out, size in ((3, 48, 5), (48, 48, 3), (48, 24, 3)):
        layers += [nn.Conv2d(into, out, size, 1, size // 2), nn.ReLU()]
        nn.init.orthogonal_(layers[-2].weight, 2**0.5)
    last = nn.Conv2d(24, 12, 3, 1, 1)
    nn.init.orthogonal_(last.weight)
    return nn.Sequential(*layers, last, nn.PixelShuffle(2))


def narrow() -> nn.Module:
    """Lightning's first: 784 to 64 to 3 and back."""
    return nn.Sequential(mlp(784, 64, 3), mlp(3, 64, 784), nn.Unflatten(1, (1, 28, 28)))


def cats() -> nn.Module:
    """Keras's cats and dogs: four convolutions without padding, Flatten, Dense."""
    layers: list[nn.Module] = []
    for into, out in ((3, 16), (16, 32), (32, 32)):
        layers += [nn.Conv2d(into, out, 3), nn.ReLU(), nn.MaxPool2d(2)]
    layers += [nn.Flatten(), nn.Linear(512, 64), nn.ReLU(), nn.Linear(64, 1), nn.Sigmoid()]
    return nn.Sequential(*layers)


def first_four(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    return threads.answer(model, images, (labels < 4).float()[:, None])


SCENES, DIGITS, CE = data.scenes, data.digits, losses.classes()
FEW = {"steps": 60, "every": 5, "batch": 8}
LONG = {"steps": 156, "every": 13}
SUM = threads.numbers(10, lambda x: x.sum(1, True))
NORMED = partial(cnn.plain, norm=nn.BatchNorm2d)
ANSWERS = [
    *one("second_instance", threads.fashion, threads.STANDARD, CE,
         how(0.1, kind=optim.SGD, batch=32, **LONG), "Fashion CNN"),
    *one("alexnet_rate", cnn.alexnet, data.P48, CE, momentum(0.01, **LONG), "AlexNet"),
    *one("char_cnn", threads.characters, data.sentences, CE, how(1e-3, **LONG), "char CNN"),
    *one("no_step", small_cifar, P, CE, momentum(0.01), "LeNet for CIFAR"),
    *one("class_zero", threads.ssd, SCENES, partial(threads.detect, 1), how(2e-3, **FEW), "SSD"),
    *one("flat_mask", UNet, coils, weighed, how(2e-3, **FEW), "U-Net"),
    *one("small_lesions", partial(UNet, 1, 2, norm=None), threads.lesions, two_weights,
         how(2e-3, **FEW), "U-Net, grey"),
    *one("no_training", lambda: nn.Linear(1, 1), threads.numbers(1, lambda x: 2 * x), error,
         how(0.1, kind=optim.SGD), "linear regression"),
    *one("zero_input", cnn.plain, P, CE, how(1e-3, **LONG), "CNN"),
    *one("negative_nll", ends(cnn.tutorial, nn.LogSoftmax(1)), DIGITS, threads.likelihood,
         momentum(0.05, **LONG), "MNIST example"),
    *one("divided_by_zero", partial(UNet, 1), changed(data.slices, own_scale), losses.masks,
         how(2e-3, **FEW), "U-Net, grey"),
    *one("rate_1e5", lambda: nn.Linear(10, 1), SUM, error, how(0.1, kind=optim.SGD),
         "linear regression"),
    *one("zero_kernels", partial(mlp, 10, 64, 64, 64, 1), SUM, error, how(1e-3), "MLP, deep"),
    *one("vae_mse", partial(Codes, 784, nn.Sigmoid()), DIGITS, threads.entropy,
         how(3e-3, batch=32, **LONG), "VAE, MLP"),
    *one("batch_of_one", partial(UNet, norm=nets.group), SCENES, losses.masks,
         how(2e-3, batch=1, **LONG), "U-Net, GroupNorm"),
    *one("in_batch_loop", partial(mlp, 784, 128, 10), DIGITS, CE,
         how(0.1, each_epoch, kind=optim.SGD, momentum=0.9), "MLP"),
    *one("five_mistakes", fused, DIGITS, CE, how(1e-3, batch=32), "MLP, BatchNorm"),
    *one("vit_frozen", library.vit, HALF, losses.mixup(),
         how(1e-3, o.warm_up, **DECAY, **LONG), "ViT"),
    *one("cover_twice", partial(NORMED, classes=2), partial(threads.pairs, 0.1), CE, how(2e-3),
         "steganalysis CNN"),
    *one("majority", NORMED, mostly_first, rare_count_more, how(2e-3, **LONG), "CNN, BatchNorm"),
    *one("colour_root", threads.Brighter, changed(UNIT, threads.some_black),
         partial(threads.balanced, 1e-5), how(1e-3, **FEW), "Zero-DCE"),
    *one("almost_one", partial(Codes, 784, nn.Sigmoid()),
         changed(DIGITS, lambda x: (x > 0.5).float()), partial(threads.own_entropy, 1e-6),
         how(3e-3, batch=32), "VAE, MLP"),
    *one("y_log_y", ends(partial(mlp, 784, 10), nn.Softmax(1)), DIGITS,
         partial(threads.by_hand, 1e-8), how(0.1, kind=optim.SGD), "softmax regression"),
    *one("unshuffled", threads.TextNet, fixed(data.sentences, 320), CE, how(3e-3), "text CNN"),
    *one("softmax_nll", ends(NORMED, nn.LogSoftmax(1)), P, threads.likelihood, how(1e-3),
         "CNN, BatchNorm"),
    *one("tiny_init", xavier, DIGITS, CE, how(0.1, kind=optim.SGD, batch=32), "MLP, tanh"),
    *one("xor_dead", partial(threads.exclusive, partial(nn.LeakyReLU, 0.2), 8), threads.corners,
         threads.answer, how(0.02), "XOR, leaky"),
    *one("mask_255", UNet, SCENES, threads.probable, how(1e-3, kind=optim.RMSprop, **FEW),
         "U-Net"),
    *one("toggled", partial(NORMED, dropout=0.5), P, CE, how(2e-3), "CNN, dropout"),
    *one("never_zeroed", cnn.lenet, DIGITS, CE, how(3e-3, **LONG), "LeNet"),
    *one("sines", partial(mlp, 10, 64, 1), threads.numbers(10, threads.added_sines), flat,
         how(1e-2, batch=32), "MLP"),
    *one("only_scheduler", partial(UNet, 3, 3), data.CROPS, losses.repaired,
         how(2e-3, o.cosine, **FEW), "U-Net, noise"),
]  # fmt: skip
TUTORIALS = [
    *one("adadelta", ends(cnn.tutorial, nn.LogSoftmax(1)), DIGITS, threads.likelihood,
         how(1.0, lambda optimizer, _: StepLR(optimizer, 20, 0.7), kind=optim.Adadelta, **LONG),
         "MNIST example"),
    *one("in_network", in_network, P, CE, how(1e-3, **LONG), "NiN"),
    *one("sub_pixel", sub_pixel, data.CROPS, losses.larger, how(1e-3, **FEW), "sub-pixel CNN"),
    *one("narrow", narrow, DIGITS, losses.again, how(1e-3, batch=32), "autoencoder, MLP"),
    *one("cats", cats, data.photos(48, "unit"), first_four, how(1e-3, kind=optim.RMSprop),
         "Keras's cats and dogs"),
    *one("siamese", partial(cnn.encoder, 16), P, alike, how(1e-3, batch=32), "siamese CNN"),
]  # fmt: skip
CASES = seen("2026-11-27T21:55", ANSWERS, TUTORIALS)
