"""Healthy: what the threads of ``faults/strangers_fifth.py`` were answered, and tutorials."""

from __future__ import annotations

from functools import partial

import data
import losses
import optimizers as o
import torch
from cases.faults import strangers_fifth as threads
from cases.healthy.strangers_maps import bce
from cases.healthy.strangers_pictures import DECAY, NESTEROV, how, one, slim
from loops import own_loop, seen
from nets import classifiers as cnn
from nets import library
from nets import strangers as nets
from nets.dense import Spots, UNet
from nets.strangers_faults import relabelled
from torch import Tensor, nn, optim
from torch.nn import functional
from torch.optim.lr_scheduler import StepLR
from torchvision import models


def answered(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return bce(model(x), y)


def valid(model: nn.Module, images: Tensor, mask: Tensor) -> Tensor:
    """The mean over valid pixels, at least one."""
    apart = (model(images) - images).abs() * mask
    return (apart.sum((1, 2, 3)) / mask.sum((1, 2, 3)).clamp(min=1)).mean()


def root(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """RMSE of each picture, with an epsilon."""
    found = model(functional.avg_pool2d(images, 3, 1, 1))
    return ((found - images).square().mean((1, 2, 3)) + 1e-6).sqrt().mean()


def triplets(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Batch-hard, of normalized codes."""
    return threads.triplets(lambda x: functional.normalize(model(x), dim=1), images, labels)


def contrast(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    one, two = (functional.normalize(model(x), dim=1) for x in losses.both_views(images))
    return functional.cross_entropy(one @ two.T / 0.2, torch.arange(len(one)))


class Rows(nn.Module):
    """An LSTM reads a digit's rows."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.last = nn.LSTM(28, 64, batch_first=True), nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.body(x[:, 0])[0][:, -1])


def resized() -> nn.Module:
    """CycleGAN's generator, whose transposed convolutions are replaced."""
    model = threads.translator()
    for number, layer in enumerate(model):
        if isinstance(layer, nn.ConvTranspose2d):
            conv = nn.Conv2d(layer.in_channels, layer.out_channels, 3, 1, 1)
            model[number] = nn.Sequential(nn.Upsample(scale_factor=2), conv)
    return model


def extractor() -> nn.Module:
    """The trained network is frozen, its head is new."""
    model = cnn.bundled().requires_grad_(False)
    model.head.requires_grad_(True)
    return model


def epochs(length: int, share: float = 0.1) -> object:
    return lambda optimizer, _: StepLR(optimizer, length, share)


def momentum(rate: float, schedule: object = None, **options: object) -> object:
    return how(rate, schedule, **({"kind": optim.SGD, "momentum": 0.9} | options))


P, HALF, UNIT, SCENES, CE = data.P, data.HALF, data.UNIT, data.scenes, losses.classes()
DIGITS, GREY = data.digits, data.colourless()
FEW = {"steps": 60, "every": 5, "batch": 8}
ANSWERS = [
    *one("mlp", partial(threads.mlp, 3072, 64, 8), HALF, CE, momentum(0.01), "MLP"),
    *one("deep_relu", partial(threads.mlp, 3072, *[64] * 6, 8), HALF, CE, how(1e-3), "MLP, deep"),
    *one("line", lambda: nn.Linear(1, 1), threads.line, threads.error, how(0.1, kind=optim.SGD),
         "linear regression"),
    *one("sums", lambda: nn.Linear(3, 1), relabelled(threads.triples, lambda y: y[:, None]),
         threads.error, how(0.1, kind=optim.SGD), "linear regression"),
    *one("xor", partial(threads.mlp, 2, 8, 1, act=nn.Tanh), threads.corners, answered, how(0.05),
         "XOR"),
    *one("cifar", threads.small_cifar, P, CE, how(1e-3), "LeNet for CIFAR"),
    *one("valid", partial(UNet, 1), data.slices, valid, how(2e-3, **FEW), "U-Net, grey"),
    *one("coils", threads.fcn, threads.coils,
         lambda model, x, y: bce(model(x), y, pos_weight=torch.tensor(40.0)),
         how(1e-3, kind=optim.RMSprop), "VGG-FCN"),
    *one("fruits", partial(UNet, 3, 4), threads.fruits,
         lambda model, x, y: functional.cross_entropy(model(x), y, torch.tensor([0.03, 1, 1, 1])),
         how(2e-3, **FEW), "U-Net, 4 maps"),
    *one("ladder", lambda: nn.Sequential(UNet(3, 8, 8), UNet(8, 2, 8)), SCENES,
         losses.two_classes, how(2e-3, batch=8), "two U-Nets"),
    *one("tuned", lambda: cnn.pretrained(cnn.resnet), GREY, CE, momentum(5e-3), "trained ResNet"),
    *own_loop("game", "DCGAN", "Adam", threads.digits_game(
        threads.entropies, lambda critic, x: threads.said(critic(x), 1)), 80, 8, falls=False),
    *own_loop("squares", "LSGAN", "Adam", threads.digits_game(
        threads.least_squares, lambda critic, x: (critic(x) - 1).square().mean(),
        rates=(1e-3, 5e-5)), 80, 8, falls=False),
    *one("ten_outputs", partial(threads.mlp, 784, 64, 10), DIGITS, CE, momentum(0.05), "MLP"),
    *one("root", threads.without_bias, data.slices, root, how(2e-3), "CNN without biases"),
    *one("triplets", partial(cnn.encoder, 32, False), data.few_classes, triplets, how(1e-3),
         "encoder CNN, no norm"),
    *one("contrast", partial(cnn.encoder, 32, False), P, contrast, how(1e-3, batch=32),
         "encoder CNN, no norm"),
    *one("two_classes", partial(UNet, 3, 2), SCENES, losses.two_classes,
         how(2e-3, o.poly, **FEW), "U-Net, two maps"),
    *one("detector", Spots, SCENES, losses.detect, how(2e-3, o.ramp), "toy detector"),
    *one("one_logit", partial(cnn.plain, classes=1, norm=nn.BatchNorm2d), P, threads.yes,
         how(1e-3), "CNN"),
    *one("enlarger", threads.enlarger, data.CROPS, losses.larger, how(1e-3, epochs(40), **FEW),
         "SRResNet"),
    *one("tanh_at_the_end", partial(threads.Codes, 784, nn.Tanh()),
         data.changed(DIGITS, lambda x: x * 2 - 1), threads.latent, how(2e-3, batch=32), "VAE"),
    *one("summed", partial(threads.Codes, 3072, nn.Sigmoid()), UNIT, threads.latent,
         how(1e-3, batch=32), "VAE, MLP"),
    *one("resized", resized, data.CROPS, losses.repaired, how(2e-3, **FEW), "generator, resizing"),
    *one("keras", lambda: nn.Sequential(cnn.he(UNet(1, norm=None)), nn.Sigmoid()), data.slices,
         lambda model, x, y: functional.binary_cross_entropy(model(x), y), how(1e-3, **FEW),
         "U-Net of Keras"),
    *one("over_255", threads.through_code, UNIT, losses.again, how(2e-3), "autoencoder"),
    *one("restored", nets.restorer, P, losses.repaired, how(1e-3, **FEW), "restorer"),
    *one("residual", partial(cnn.resnet, blocks=2), P, CE, momentum(0.02, steps=60, every=5),
         "ResNet-18"),
    *one("domains", threads.Domains, DIGITS, threads.both_domains, momentum(0.01), "DANN"),
    *one("vit", library.vit, HALF, CE, how(1e-3, o.cosine, **DECAY), "ViT"),
    *own_loop("bootstrap", "BYOL", "Adam 1e-3", partial(threads.bootstrap, 1e-3), 72, 6),
    *one("groups_of_two", partial(cnn.plain, norm=nets.group), P, CE,
         how(1e-3, batch=2, micro=4), "GroupNorm CNN"),
    *one("four_points", partial(UNet, 3, 4, transposed=False), SCENES,
         partial(threads.spots, False), how(3e-3, **FEW), "U-Net, 4 maps"),
    *one("permuted", cnn.with_norm, P, CE, how(1e-3, o.again), "encoder CNN"),
]  # fmt: skip
TUTORIALS = [
    *one("quickstart", partial(threads.mlp, 784, 128, 128, 10), DIGITS, CE,
         momentum(0.1, batch=64), "MLP of PyTorch's quickstart"),
    *one("extractor", extractor, GREY, CE, momentum(0.01, epochs(40)), "transfer tutorial"),
    *one("rows", Rows, DIGITS, CE, how(5e-3, batch=64), "LSTM of MNIST's rows"),
    *one("carvana", UNet, SCENES, losses.both_masks,
         how(3e-4, kind=optim.RMSprop, momentum=0.9, weight_decay=1e-8, clip=1.0, **FEW),
         "U-Net of Carvana"),
    *one("vgg", partial(cnn.plain, widths=(16, 32, 64, 64), norm=nn.BatchNorm2d, dropout=0.5), P,
         CE, how(0.02, epochs(60), **NESTEROV), "VGG with BatchNorm"),
    *one("fire", partial(models.squeezenet1_1, num_classes=8), data.P64, CE,
         how(3e-4, steps=60, every=5), "torchvision SqueezeNet"),
    *one("swin", library.swin, HALF, losses.classes(0.1),
         how(1e-3, o.warm_up, **DECAY, clip=1.0, steps=80), "torchvision Swin"),
    *one("average", slim("test_efficientnet"), data.P48, CE,
         how(2e-3, o.cosine, **DECAY, ema=0.99), "timm EfficientNet"),
    *one("several", library.densenet, P, losses.multi_label, how(1e-3, steps=60, every=5),
         "DenseNet, several labels"),
    *one("commands", partial(nets.heart, 1, 6), data.tones(), CE, how(3e-3, epochs(60)),
         "1-D CNN of sounds"),
    *one("keypoints", partial(nets.inception, 3), SCENES, losses.centre, how(1e-3, o.stairs),
         "Inception, centre"),
    *one("noise_to_noise", partial(UNet, 3, 3, norm=None), data.CROPS, losses.noise_to_noise,
         how(1e-3, **FEW), "U-Net, Noise2Noise"),
]  # fmt: skip
CASES = seen("2026-11-27T21:15", ANSWERS, TUTORIALS)
