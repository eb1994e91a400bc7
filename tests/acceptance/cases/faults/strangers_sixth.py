"""A sixth set of faults of somebody who had not read the checks: one for each thread of a search.

Which threads, a fixed rule decided; the wrong line is its author's, the network like theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import data
import losses
import torch
from cases.faults.strangers_fifth import (
    Codes,
    adam,
    as_view,
    changed_weights,
    coils,
    corners,
    divergence,
    ends,
    error,
    in_order,
    mlp,
    mostly_first,
    near,
    sgd,
    small_cifar,
)
from data import HALF, RAW, UNIT, Draw, P, changed
from loops import Losses, Run, seen, train
from nets import classifiers as cnn
from nets import library
from nets.classifiers import unit
from nets.dense import UNet
from nets.strangers_faults import loop, relabelled, wrong
from nets.unusual import TextNet
from optimizers import ADAMW, by
from torch import Generator, Tensor, nn, optim
from torch.nn import functional
from torch.optim.lr_scheduler import ExponentialLR, StepLR


def numbers(columns: int, of: Callable[[Tensor], Tensor], rows: int = 0) -> Draw:
    """Normal numbers and a function of them; the same ``rows`` in each step, or new ones."""

    def draw(generator: Generator, count: int) -> tuple[Tensor, ...]:
        chosen = Generator().manual_seed(0) if rows else generator
        x = torch.randn(rows or count, columns, generator=chosen)
        return x, of(x)

    return draw


def added_sines(x: Tensor) -> Tensor:
    """One number a row, without a second axis."""
    return (x.sin().sum(1) + 6) / 12


def lesions(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """A grey picture, of which 8 in 1000 pixels are of a lesion, that is brighter."""
    images, _, discs, _ = data.scenes(generator, count)
    mask = near(discs, 1.6)
    return images.mean(1, keepdim=True) + 0.5 * mask, mask


def pairs(hidden: float, generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Covers, 0, and the same pictures with something hidden in their pixels, 1."""
    covers, _ = UNIT(generator, count // 2)
    message = torch.randint(2, covers.shape, generator=generator) * 2.0 - 1
    return torch.cat([covers, covers + hidden * message]), torch.arange(count) // (count // 2)


def own_scale(images: Tensor) -> Tensor:
    """Some slices are blank: 0 / 0."""
    mean, std = images.mean((1, 2, 3), True), images.std((1, 2, 3), keepdim=True)
    return (images - mean) / std


def some_black(images: Tensor) -> Tensor:
    return torch.cat([torch.zeros_like(images[:1]), images[1:]])


def fashion() -> nn.Module:
    """FashionMNISTModelV2."""
    layers: list[nn.Module] = []
    for into in (1, 10):
        layers += [nn.Conv2d(into, 10, 3, 1, 1), nn.ReLU(), nn.Conv2d(10, 10, 3, 1, 1)]
        layers += [nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(490, 10))


def ssd() -> nn.Module:
    """A detector: for each cell background or object, and a box."""
    back = [unit(3, 16), unit(16, 32, stride=2), unit(32, 48, stride=2)]
    return nn.Sequential(*back, nn.Conv2d(48, 5, 1))


def hidden(*layers: int, start: Callable[[Tensor], object], act: type = nn.ReLU) -> nn.Module:
    """A perceptron; ``start`` is applied to the weights of all layers but the last."""
    model = mlp(*layers, act=act)
    for layer in list(model)[1:-1]:
        if isinstance(layer, nn.Linear):
            start(layer.weight.data)
            nn.init.zeros_(layer.bias)
    return model


def one_wide() -> nn.Module:
    """The first layer has one unit."""
    layers: list[nn.Module] = []
    for into, out in ((7, 1), (1, 100), (100, 150)):
        layers += [nn.Linear(into, out), nn.BatchNorm1d(out), nn.ReLU(), nn.Dropout()]
    return nn.Sequential(*layers, nn.Linear(150, 1))


def exclusive(act: Callable[[], nn.Module] = nn.ReLU, width: int = 2, seed: int = 24) -> nn.Module:
    """XOR with He's weights and biases of 0.01."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = nn.Sequential(nn.Linear(2, width), act(), nn.Linear(width, 1), nn.Sigmoid())
        for layer in (model[0], model[2]):
            nn.init.kaiming_normal_(layer.weight)
            nn.init.constant_(layer.bias, 0.01)
    return model


def below_zero() -> nn.Module:
    """One unit with ReLU, for inputs of -1 and -2."""
    model = nn.Sequential(nn.Linear(2, 1), nn.ReLU())
    model[0].weight.data.abs_()
    return model


def blocks_frozen() -> nn.Module:
    model = library.vit()
    model.blocks.requires_grad_(False)
    model.patch_embed.requires_grad_(False)
    return model


def characters() -> nn.Module:
    """Convolutions over letters, and three Linear layers."""
    layers: list[nn.Module] = [nn.Embedding(100, 24), cnn.Function(lambda x: x.mT)]
    for into in (24, 32, 32):
        layers += [nn.Conv1d(into, 32, 3), nn.ReLU(), nn.MaxPool1d(2)]
    layers += [nn.Flatten(), nn.Linear(96, 64), nn.ReLU(), nn.Dropout(), nn.Linear(64, 64)]
    return nn.Sequential(*layers, nn.ReLU(), nn.Dropout(), nn.Linear(64, 4))


class Brighter(nn.Module):
    """Zero-DCE with one curve."""

    def __init__(self) -> None:
        super().__init__()
        layers = [unit(3, 16, norm=None), unit(16, 16, norm=None), nn.Conv2d(16, 3, 3, 1, 1)]
        self.curve = nn.Sequential(*layers, nn.Tanh())

    def forward(self, x: Tensor) -> Tensor:
        return x + self.curve(x) * (x.square() - x)


def balanced(epsilon: float, model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """The loss of colour, a root, and that of exposure."""
    found = model(images)
    red, green, blue = found.mean((2, 3)).T
    apart = (red - green) ** 2, (red - blue) ** 2, (blue - green) ** 2
    colour = torch.pow(apart[0] ** 2 + apart[1] ** 2 + apart[2] ** 2 + epsilon, 0.5)
    return colour.mean() + (functional.avg_pool2d(found.mean(1), 8) - 0.6).square().mean()


def detect(number: int, model: nn.Module, images: Tensor, *truths: Tensor) -> Tensor:
    """SSD's: three hard negatives for each positive; the only class has this number."""
    found, discs, which = model(images), truths[1], torch.arange(len(images))
    column, row = (discs[:, :2] / 4).long().clamp(0, 7).T
    truth = torch.zeros(len(images), 8, 8).long()
    truth[which, row, column] = number
    loss = functional.cross_entropy(found[:, :2], truth, reduction="none")
    positive, count = truth > 0, int((truth > 0).sum())
    hard = loss.masked_fill(positive, 0).flatten().topk(3 * count)[0]
    inside = torch.cat([discs[:, :2] / 4 % 1, discs[:, 2:].log()], 1)
    apart = functional.smooth_l1_loss(found[which, 2:, row, column], inside, reduction="none")
    placed = (apart.sum(1) * positive[which, row, column]).sum()
    return (loss[positive].sum() + hard.sum() + placed) / max(1, count)


def likelihood(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """``F.nll_loss``, of whatever the network says."""
    return functional.nll_loss(model(images), labels)


def by_hand(epsilon: float, model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """-log(p) of probabilities."""
    truth = functional.one_hot(labels, 10 if images.shape[1] == 1 else 8)
    return -(truth * torch.log(model(images) + epsilon)).sum(1).mean()


def outside(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    return functional.cross_entropy(model(images).softmax(1), labels)


def minus(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    return -1 * losses.named(model, images, labels)


def mean_error(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """A mean over the pixels, and a sum over the codes."""
    found, mean, log = model(images)
    return functional.mse_loss(found, images) + divergence(mean, log).sum(1).mean()


def entropy(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """A VAE with binary cross-entropy."""
    found, mean, log = model(images)
    apart = functional.binary_cross_entropy(found, images, reduction="sum")
    return apart / len(images) + divergence(mean, log).sum(1).mean()


def own_entropy(epsilon: float, model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """As in TensorFlow's VAE: 1e-10 + 1 - p is 0 in single precision."""
    p, mean, log = model(images)
    apart = images * torch.log(epsilon + p) + (1 - images) * torch.log(epsilon + 1 - p)
    return -apart.flatten(1).sum(1).mean() + divergence(mean, log).sum(1).mean()


def probable(model: nn.Module, images: Tensor, mask: Tensor, *_: Tensor) -> Tensor:
    """BCELoss of a sigmoid."""
    return functional.binary_cross_entropy(model(images).sigmoid(), mask)


def answer(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return functional.binary_cross_entropy(model(x), y)


def no_step(
    make: Callable[[], nn.Module],
    draw: Draw,
    loss: Callable[..., Tensor],
    backward: bool = True,
    schedule: bool = False,
) -> Run:
    """``optimizer.step()`` is missing."""

    def run(place: Path, seed: int) -> Losses:
        model = make()
        optimizer = optim.SGD(model.parameters(), lr=0.01)
        scheduler = StepLR(optimizer, 1000)

        def step(_: int, random: Generator) -> float:
            found = loss(model, *draw(random, 16))
            if backward:
                found.backward()
            if schedule:
                scheduler.step()
            optimizer.zero_grad()
            return found.item()

        return train(place, seed, model, step, 96, 8)

    return run


def always_eval(_: int, model: nn.Module, *__: object) -> None:
    model.eval()


digits, scenes = data.digits, data.scenes
STANDARD = changed(digits, lambda x: (x - 0.13) / 0.3)
FEW = {"steps": 60, "every": 5, "batch": 8}
LONG = {"steps": 156, "every": 13}
FIRST = [
    *wrong("second_instance", "not_in_optimizer,unchanged_weights", "the model was made again",
           "Fashion CNN", fashion, STANDARD, optimizer=lambda _: sgd(0.1)(fashion()), batch=32,
           **LONG),
    *wrong("alexnet_rate", "update_ratio,dead,nonfinite", "AlexNet from scratch with a rate of 0.1",
           "AlexNet", cnn.alexnet, data.P48, optimizer=sgd(0.1, 0.9)),
    *wrong("char_cnn", "update_ratio,dead", "the rate is too high: always the same class",
           "char CNN", characters, data.sentences, optimizer=adam(0.1), **LONG),
    *loop("no_step", "unchanged_weights", "gradients, and no step of the optimizer",
          "LeNet for CIFAR", no_step(small_cifar, P, losses.named), 96, 8),
    *wrong("class_zero", "one_label,unused_classes,unchanged_weights",
           "the only class has the number of the background", "SSD", ssd, scenes,
           partial(detect, 0), **FEW),
    *wrong("flat_mask", "none", "hardly any pixel is of an object, BCE",
           "U-Net", UNet, coils, losses.masks, **FEW),
    *wrong("small_lesions", "none", "the regions are very small",
           "U-Net, grey", partial(UNet, 1, 2, norm=None), lesions, losses.two_classes, **FEW),
    *loop("no_training", "unchanged_weights", "neither backward() nor step()", "linear regression",
          no_step(lambda: nn.Linear(1, 1), numbers(1, lambda x: 2 * x), error, False), 96, 8),
    *wrong("zero_input", "constant_images,identical_images", "the pictures are all zeros",
           "CNN", cnn.plain, changed(P, torch.zeros_like)),
    *wrong("negative_nll", "probabilities_into_loss", "nll_loss without log_softmax",
           "MNIST example", cnn.tutorial, digits, likelihood, sgd(0.01, 0.5)),
    *wrong("sign", "none", "the loss is multiplied by -1", "CNN", cnn.plain, P, minus),
    *wrong("divided_by_zero", "nonfinite", "a picture is divided by its deviation, 0",
           "U-Net, grey", partial(UNet, 1), changed(data.slices, own_scale), losses.masks, **FEW),
    *wrong("rate_1e5", "nonfinite,update_ratio,loss_climbed", "SGD with a rate of 1e5",
           "linear regression", lambda: nn.Linear(10, 1),
           numbers(10, lambda x: x.sum(1, True)), error, sgd(1e5)),
    *wrong("zero_kernels", "copied_channels,unchanged_weights,dead", "three layers begin at 0",
           "MLP", partial(hidden, 10, 64, 64, 64, 1, start=torch.zero_),
           numbers(10, lambda x: x.sum(1, True)), error),
    *wrong("vae_mse", "constant_output", "the error is a mean, the divergence a sum",
           "VAE, MLP", partial(Codes, 784, nn.Sigmoid()), digits, mean_error, adam(3e-3), batch=32,
           **LONG),
]  # fmt: skip
SECOND = [
    *wrong("batch_of_one", "batchnorm_small_batch,batchnorm_gap", "BatchNorm, one picture a step",
           "U-Net", UNet, scenes, losses.masks, adam(1e-3), batch=1),
    *wrong("in_batch_loop", "rate_vanished", "ExponentialLR of epochs, called for each batch",
           "MLP", partial(mlp, 784, 128, 10), digits, optimizer=sgd(0.1),
           schedule=lambda o, _: ExponentialLR(o, 0.8)),
    *wrong("five_mistakes",
           "double_softmax,vanishing,gradients_not_cleared,eval_mode,update_ratio",
           "sigmoids, softmax, eval mode, no zero_grad(), a rate of 1e-4", "MLP, sigmoid",
           ends(partial(mlp, 784, 256, 128, 64, 32, 16, 10, act=nn.Sigmoid), nn.Softmax(1)),
           digits, optimizer=sgd(1e-4), zero="never", before=always_eval),
    *wrong("vit_frozen", "unchanged_weights,not_in_optimizer", "the blocks are frozen",
           "ViT", blocks_frozen, HALF, optimizer=ADAMW, **LONG),
    *wrong("cover_twice", "identical_images", "split('\\\\') on Linux: covers are also the stegos",
           "steganalysis CNN", partial(cnn.plain, classes=2, norm=nn.BatchNorm2d),
           partial(pairs, 0)),
    *wrong("majority", "none", "19 of 20 pictures are of one class", "CNN",
           partial(cnn.plain, norm=nn.BatchNorm2d), mostly_first, optimizer=adam(2e-3), **LONG),
    *wrong("colour_root", "nonfinite", "the root of 0", "Zero-DCE", Brighter,
           changed(UNIT, some_black), partial(balanced, 0), **FEW),
    *wrong("y_log_y", "nonfinite", "y * log(y) where y is 0", "softmax regression",
           ends(partial(mlp, 784, 10), nn.Softmax(1)), changed(digits, lambda x: x * 255),
           partial(by_hand, 0), sgd(0.5)),
    *wrong("one_unit", "dropout_high,dead,constant_output", "a layer of one unit, with dropout",
           "MLP, BatchNorm", one_wide, numbers(7, lambda x: x.sum(1, True), 10), error, **LONG),
    *wrong("unshuffled", "sorted_labels", "the sentences are sorted by class", "text CNN",
           TextNet, in_order(data.sentences, lambda part: part[1], 1600), optimizer=adam(0.01)),
    *wrong("softmax_before", "double_softmax", "softmax in front of CrossEntropyLoss",
           "CNN", ends(cnn.plain, nn.Softmax(1))),
    *wrong("outside", "double_softmax", "criterion(softmax(output), target)",
           "MLP", partial(mlp, 784, 64, 10), digits, outside, sgd(0.1)),
    *wrong("softmax_nll", "probabilities_into_loss", "Softmax, then NLLLoss",
           "CNN", ends(partial(cnn.plain, norm=nn.BatchNorm2d), nn.Softmax(1)), P, likelihood),
    *wrong("tiny_init", "vanishing", "weights of 0.0001", "MLP, tanh",
           lambda: changed_weights(mlp(784, 64, 64, 10, act=nn.Tanh), lambda p: p.normal_(0, 1e-4)),
           digits, optimizer=sgd(0.1)),
    *wrong("ten_times", "saturated,exploding,initial_loss", "weights of 10", "MLP, tanh",
           lambda: changed_weights(mlp(784, 64, 64, 10, act=nn.Tanh), lambda p: p.normal_(0, 10)),
           digits, optimizer=sgd(0.1)),
    *wrong("xor_dead", "dead", "two units with ReLU", "XOR", exclusive, corners, answer,
           adam(0.01), **LONG),
    *wrong("negative_input", "dead", "a unit with ReLU that is never above 0", "one unit",
           below_zero, lambda *_: (torch.tensor([[-1.0, -2]]), torch.ones(1, 1)), error,
           sgd(0.01)),
]  # fmt: skip
THIRD = [
    *wrong("mask_255", "loss_climbed", "masks of 0 and 255 in BCE", "U-Net", UNet,
           relabelled(scenes, lambda mask: mask * 255), losses.masks,
           by(optim.RMSprop, lr=1e-3), **FEW),
    *wrong("toggled", "eval_mode", "train() is forgotten after eval()", "CNN, dropout",
           partial(cnn.plain, norm=nn.BatchNorm2d, dropout=0.5), before=always_eval),
    *wrong("never_zeroed", "gradients_not_cleared", "zero_grad() is forgotten", "LeNet",
           cnn.lenet, digits, optimizer=adam(0.01), zero="never", **LONG),
    *wrong("viewed", "input_scale", "view() for permute()", "CNN", cnn.plain,
           changed(P, as_view)),
    *wrong("unscaled", "input_scale", "pixels of 0 to 255", "MLP", partial(mlp, 3072, 64, 8), RAW,
           optimizer=sgd(0.01, 0.9)),
    *wrong("sines", "constant_output", "[N, 1] - [N]", "MLP", partial(mlp, 10, 64, 1),
           numbers(10, added_sines), error, adam(1e-2), batch=32),
    *wrong("all_zero", "one_label,unused_classes", "all labels are 0", "MLP",
           ends(partial(mlp, 5, 10, 1), nn.Sigmoid()), numbers(5, lambda x: 0 * x[:, :1]), answer),
    *wrong("regularized", "dropout_high", "excessive dropout", "CNN",
           partial(cnn.plain, norm=nn.BatchNorm2d, dropout=0.95)),
    *wrong("shuffled_labels", "none", "the labels are in another order", "CNN",
           partial(cnn.plain, norm=nn.BatchNorm2d),
           relabelled(P, lambda y: y[torch.randperm(len(y))])),
    *loop("only_scheduler", "unchanged_weights", "lr_scheduler.step(), and no optimizer.step()",
          "U-Net", no_step(partial(UNet, 3, 3), data.CROPS, losses.repaired, schedule=True),
          96, 8),
]  # fmt: skip
CASES = seen("2026-11-27T21:55", FIRST, SECOND, THIRD)
