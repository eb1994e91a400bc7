"""Wrong inputs, optimizers and networks, written by someone who had not read the checks."""

from __future__ import annotations

from functools import partial

import timm
import torch
from data import HALF, P64, UNIT, P, changed, one_batch, photos, scenes, tones
from loops import seen
from losses import masks
from nets.classifiers import all_convolutions, encoder, head, resnet, stack, sweep_net, unit
from nets.dense import UNet
from nets.library import densenet, mobilenet_v3, timm_model, vgg, vit
from nets.signals import tcn, waveform
from nets.strangers_faults import Doubling, Fused, wrong
from optimizers import ADAMW, MOMENTUM, QUICK, by
from torch import Generator, Tensor, nn, optim
from torch.nn import functional
from torch.optim.lr_scheduler import ExponentialLR
from torchvision import models

MEAN, STD = (torch.tensor(v).view(3, 1, 1) for v in ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]))


def moved_away(images: Tensor) -> Tensor:
    """A random shift in pixels for a function that wants halves of the picture."""
    rows = torch.eye(2, 3).repeat(len(images), 1, 1)
    rows[:, :, 2] = torch.randint(3, 9, (len(images), 2)) * torch.randn(len(images), 2).sign()
    grid = functional.affine_grid(rows, list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid, align_corners=False)


def empty_infrared(images: Tensor) -> Tensor:
    """np.zeros((4, H, W)), of which only the first three planes are filled."""
    return torch.cat([images[:, :3], torch.zeros_like(images[:, :1])], 1)


def with_a_gap(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """A depth camera's pictures; one of the data set has a pixel without echo, NaN."""
    _, mask, _, far = scenes(generator, count)
    far = (far - 0.7) / 0.3
    far[count // 4, 0, 20, 20] = torch.nan
    return far, mask


def four_bands() -> nn.Module:
    return timm.create_model("test_resnet", num_classes=8, in_chans=4)


def then_reset(model: nn.Module) -> optim.Optimizer:
    """timm's ``reset_classifier`` after the optimizer was built."""
    optimizer = optim.AdamW(model.parameters(), lr=1e-3)
    model.reset_classifier(8)
    return optimizer


def frozen_stages(model: nn.Module) -> optim.Optimizer:
    """Fine-tuning's loop over names, in a network without trained weights."""
    for name, parameter in model.named_parameters():
        if name.startswith("layer"):
            parameter.requires_grad_(False)
    return optim.Adam(model.parameters(), lr=1e-3)


def every_100(step: int, _: nn.Module, optimizer: optim.Optimizer) -> None:
    """``zero_grad`` slipped into the branch that prints the loss."""
    if step % 100 == 0:
        optimizer.zero_grad()


def per_batch(optimizer: optim.Optimizer, _: int) -> ExponentialLR:
    return ExponentialLR(optimizer, 0.75)


def doubling() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 32, 3, 2, 1), *(Doubling(32) for _ in range(4)), *head(32, 8))


def dropped() -> nn.Module:
    """Dropout's ``p`` taken for the share that is kept."""
    return nn.Sequential(
        unit(3, 24), nn.MaxPool2d(2), nn.Dropout2d(0.9), unit(24, 48), *head(48, 8, 0.95)
    )


def sgd(rate: float, **options: float) -> object:
    return by(optim.SGD, lr=rate, momentum=0.9, **options)


INPUT = [
    *wrong("bytes", "input_scale", "0 to 255 as read, .float() without / 255",
           "SqueezeNet", lambda: models.squeezenet1_1(num_classes=8),
           changed(photos(40, "unit"), lambda x: x * 255), optimizer=by(optim.Adam, lr=3e-4)),
    *wrong("normalized_twice", "input_scale", "Normalize in the data set and in the model",
           "timm ViT", lambda: timm_model("test_vit", img_size=32),
           changed(P, lambda x: (x - MEAN) / STD)),
    *wrong("one_list_times_16", "identical_images", "[image] * 16 in the collate function",
           "timm LCNet", lambda: timm_model("lcnet_035"),
           changed(P64, lambda x: x[:1].repeat(len(x), 1, 1, 1))),
    *wrong("empty_infrared", "constant_images", "the fourth band is never filled",
           "timm ResNet, 4 bands", four_bands, changed(photos(32, "imagenet", 4), empty_infrared)),
    *wrong("next_iter", "same_batch", "next(iter(loader)) in the loop",
           "VGG, BatchNorm", vgg, one_batch(P), optimizer=MOMENTUM),
    *wrong("moved_away", "constant_images", "a shift in px where halves of the picture are meant",
           "all-convolutional", all_convolutions, changed(UNIT, moved_away)),
    *wrong("byte_constants", "input_scale,constant_images", "mean and std of 0 to 255 on 0 to 1",
           "plain CNN", sweep_net, changed(UNIT, lambda x: (x - MEAN * 255) / (STD * 255))),
    *wrong("with_a_gap", "nonfinite", "a depth map with NaN in one image of 240",
           "U-Net on depth", lambda: UNet(1), with_a_gap, masks, examples=240),
]  # fmt: skip
OPTIMIZER = [
    *wrong("sgd_3", "update_ratio", "SGD 3 in place of 0.03",
           "ResNet", resnet, optimizer=sgd(3.0)),
    *wrong("vit_1e_7", "update_ratio", "1e-7 for 1e-4", "ViT", vit, HALF,
           optimizer=by(optim.AdamW, lr=1e-7)),
    *wrong("gamma_per_batch", "rate_vanished", "an epoch's gamma 0.75 applied per batch",
           "MobileNet v3", mobilenet_v3, optimizer=QUICK, schedule=per_batch),
    *wrong("zero_grad_in_print", "gradients_not_cleared", "zero_grad in the branch that prints",
           "M5", waveform, tones(512), optimizer=sgd(0.01), zero="never", before=every_100),
    *wrong("reset_classifier", "not_in_optimizer", "a new head after the optimizer is made",
           "timm ByobNet", lambda: timm.create_model("test_byobnet"), optimizer=then_reset),
    *wrong("decay_1", "none", "weight decay 1 with SGD 0.1",
           "encoder CNN", lambda: encoder(8), optimizer=sgd(0.1, weight_decay=1.0)),
    *wrong("clip_1e_6", "update_ratio,unchanged_weights", "clip_grad_norm_ to 1e-6",
           "TCN", tcn, tones(512), optimizer=sgd(0.03), clip=1e-6),
    *wrong("frozen_stages", "unchanged_weights", "all stages of an untrained network are frozen",
           "ResNet", resnet, optimizer=frozen_stages),
]  # fmt: skip
ARCHITECTURE = [
    *wrong("seven_sigmoids", "vanishing", "seven layers, sigmoid after each, no norm",
           "plain CNN of 7 layers", partial(stack, 6, act=nn.Sigmoid)),
    *wrong("normal_weights", "exploding,initial_loss", "nn.init.normal_ without std, residual",
           "residual CNN, no norm", doubling, optimizer=by(optim.Adam, lr=1e-4)),
    *wrong("batches_of_two", "batchnorm_small_batch", "BatchNorm with two examples per batch",
           "timm ResNet", lambda: timm_model("test_resnet"), batch=2, steps=160, every=16),
    *wrong("dropout_95", "dropout_high", "Dropout's p taken for the share that is kept",
           "small CNN", dropped),
    *wrong("loaded_for_inference", "eval_mode", "the loader's .eval() stays on",
           "DenseNet", densenet, P, optimizer=ADAMW, prepare=nn.Module.eval),
    *wrong("copy_and_paste", "never_called", "the first branch is called twice, the second never",
           "CNN of two branches", Fused, P),
]  # fmt: skip
CASES = seen("2026-11-27T11:30", INPUT, OPTIMIZER, ARCHITECTURE)
