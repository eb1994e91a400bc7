"""Wrong losses, labels and last layers, written by someone who had not read the checks."""

from __future__ import annotations

import timm
import torch
from data import P48, Draw, P, gestures, scenes, spectrograms
from loops import seen
from losses import masks
from nets.classifiers import Function, alexnet, all_convolutions, encoder
from nets.dense import LinkNet, SegNet, UNet
from nets.library import densenet, mobilenet_v3, regnet, timm_model
from nets.signals import Recurrent, inertial
from nets.strangers_faults import Alike, OldHead, in_order, relabelled, then, wrong
from nets.unusual import convs
from optimizers import ADAMW, MOMENTUM, QUICK
from torch import Generator, Tensor, nn, optim
from torch.nn import functional
from torchvision import models


def dice_coefficient(model: nn.Module, images: Tensor, mask: Tensor, *_: Tensor) -> Tensor:
    found = model(images).sigmoid()
    shared = (found * mask).sum((1, 2, 3))
    return ((2 * shared + 1) / (found.sum((1, 2, 3)) + mask.sum((1, 2, 3)) + 1)).mean()


def exponential(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    logs = functional.log_softmax(model(images), dim=1)
    return functional.cross_entropy(logs.exp(), labels)


def nll(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    return functional.nll_loss(model(images), labels)


def broadcast(model: nn.Module, images: Tensor, _: Tensor) -> Tensor:
    """Brightness, with an error in which [N, 1] minus [N] is [N, N]."""
    return (model(images) - images.mean((1, 2, 3))).square().mean()


def rewrapped(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    loss = nn.CrossEntropyLoss()(model(images), labels)
    return torch.tensor(loss.item(), requires_grad=True)


def without_background(model: nn.Module, images: Tensor, mask: Tensor, *_: Tensor) -> Tensor:
    return functional.cross_entropy(model(images), mask[:, 0].long(), ignore_index=0)


def in_pixels(model: nn.Module, images: Tensor, _mask: Tensor, discs: Tensor, *_: Tensor) -> Tensor:
    return functional.smooth_l1_loss(model(images), discs)


def argmax_of_rows(labels: Tensor) -> Tensor:
    return functional.one_hot(labels, 8).argmax(0)


def two_loaders(draw: Draw) -> Draw:
    """Pictures from one loader, labels from another; each shuffles."""

    def again(generator: Generator, count: int) -> tuple[Tensor, ...]:
        return draw(generator, count)[0], draw(generator, count)[1]

    return again


def counts_as_bias() -> nn.Module:
    model = models.shufflenet_v2_x0_5(num_classes=8)
    model.fc.bias.data = torch.tensor([410.0, 388, 52, 47, 260, 19, 133, 75])
    return model


def pruned() -> nn.Module:
    """Channels whose weights' mean is below a threshold that was meant for their sum."""
    net = encoder(8)
    keep = (net[2][0].weight.abs().mean((1, 2, 3)) > 1.0).float().view(1, -1, 1, 1)
    return nn.Sequential(*net[:3], Function(lambda x: x * keep), *net[3:])


def zero_last() -> nn.Module:
    """Goyal's zero scale of a block's last norm, in a network without shortcuts."""
    net = all_convolutions()
    nn.init.zeros_(net[5][1].weight)
    return net


def old_head(model: OldHead) -> optim.Optimizer:
    groups = [{"params": model.back.parameters()}, {"params": model.fc.parameters(), "lr": 0.05}]
    return optim.SGD(groups, lr=0.01, momentum=0.9)


LOSS = [
    *wrong("dice_coefficient", "loss_climbed", "the metric is minimized, not 1 minus it",
           "U-Net", UNet, scenes, dice_coefficient),
    *wrong("exponential", "double_softmax", "log-softmax, exp, then cross-entropy",
           "MobileNet v3", mobilenet_v3, P, exponential, QUICK),
    *wrong("over_the_batch", "double_softmax,probabilities_into_loss", "softmax(dim=0) at the end",
           "DenseNet", lambda: then(densenet(), lambda x: x.softmax(0)), optimizer=ADAMW),
    *wrong("sigmoid_twice", "probabilities_into_loss", "sigmoid, then BCE with logits",
           "LinkNet", lambda: then(LinkNet(), torch.sigmoid), scenes, masks),
    *wrong("relu_last", "probabilities_into_loss", "ReLU after the last Linear",
           "AlexNet", lambda: then(alexnet(), torch.relu), P48),
    *wrong("raw_nll", "none", "NLL of logits, log_softmax forgotten",
           "1-D CNN", inertial, gestures, nll),
    *wrong("broadcast", "none", "[N, 1] against [N] in a squared error",
           "encoder CNN", lambda: encoder(1), P, broadcast),
    *wrong("rewrapped", "unchanged_weights", "torch.tensor(loss.item(), requires_grad=True)",
           "RegNet", regnet, P, rewrapped, MOMENTUM),
]  # fmt: skip
LABELS = [
    *wrong("parent_folder", "one_label", "the class is taken from the wrong part of the path",
           "timm ByobNet", lambda: timm_model("test_byobnet"), relabelled(P, torch.zeros_like)),
    *wrong("unshuffled", "sorted_labels", "sorted by class, shuffle=False",
           "encoder CNN", lambda: encoder(8), in_order(P, 256), optimizer=MOMENTUM),
    *wrong("from_one", "unused_classes", "classes from 1 to 8, clamped to silence an IndexError",
           "SiLU CNN", lambda: convs(nn.BatchNorm2d, nn.SiLU),
           relabelled(P, lambda labels: (labels + 1).clamp(max=7))),
    *wrong("imagenet_head", "unused_classes", "the head of 1000 classes was not replaced",
           "timm EfficientNet", lambda: timm.create_model("test_efficientnet"), optimizer=ADAMW),
    *wrong("two_loaders", "none", "sounds and labels are shuffled apart",
           "CRNN", Recurrent, two_loaders(spectrograms)),
    *wrong("argmax_of_rows", "none", "one_hot.argmax(0), a batch of as many rows as classes",
           "timm ConvNeXt", lambda: timm_model("test_convnext"), relabelled(P, argmax_of_rows),
           batch=8),
    *wrong("empty_masks", "one_label", "masks divided by 255 twice, then > 0.5",
           "SegNet", SegNet, relabelled(scenes, lambda mask: (mask / 255 > 0.5).float()), masks),
    *wrong("ignored_background", "one_label", "ignore_index=0, the background's number",
           "U-Net, two maps", lambda: UNet(out=2), scenes, without_background),
]  # fmt: skip
OUTPUT = [
    *wrong("counts_as_bias", "initial_loss,constant_output", "bias: class counts, not logs of them",
           "ShuffleNet v2", counts_as_bias, optimizer=MOMENTUM),
    *wrong("pruned", "constant_output,dead", "a pruning mask that is 0 everywhere",
           "encoder CNN", pruned),
    *wrong("zero_last", "dead", "scale 0 in the last BatchNorm, no shortcut",
           "all-convolutional", zero_last),
    *wrong("old_head", "not_in_optimizer", "the optimizer has the old head, not the new one",
           "CNN with two heads", OldHead, optimizer=old_head),
    *wrong("scaled_twice", "initial_loss", "cosine divided by a temperature of 0.07 twice",
           "CLIP-like CNN", lambda: Alike(1 / 0.07**2), optimizer=ADAMW),
    *wrong("tanh_in_pixels", "saturated", "tanh at the end, targets in pixels",
           "encoder CNN", lambda: then(encoder(3, norm=False), torch.tanh), scenes, in_pixels),
]  # fmt: skip
CASES = seen("2026-11-27T11:30", LOSS, LABELS, OUTPUT)
