"""A third set of faults of somebody who had not read the checks: as forums and checklists tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import data
import losses
import numpy as np
import torch
from cases.healthy.strangers_maps import evidence, ignoring
from cases.healthy.strangers_pictures import regions
from data import HALF, P48, UNIT, Draw, P, changed
from loops import Case, Losses, Run, descend, seen, train
from nets import classifiers as cnn
from nets import strangers as nets
from nets.dense import UNet, autoencoder
from nets.library import deeplab, timm_model, with_aux
from nets.strangers_faults import Alike, relabelled, wrong
from optimizers import ADAMW, MOMENTUM, SLOW, by
from PIL import Image
from torch import Generator, Tensor, nn, optim
from torch.nn import functional
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader, Dataset, Subset
from torchvision import models
from torchvision.ops import SqueezeExcitation
from torchvision.transforms.functional import normalize, to_tensor


def nll_of_softmax(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    return nn.NLLLoss()(functional.softmax(model(images), dim=1), labels)


def rounded_dice(model: nn.Module, images: Tensor, mask: Tensor, *_: Tensor) -> Tensor:
    """The metric, which wants a mask of 0 and 1, as loss."""
    found = model(images).sigmoid().round()
    return 1 - (2 * (found * mask).sum() + 1) / (found.sum() + mask.sum() + 1)


def kl_without_log(model: nn.Module, images: Tensor, _: Tensor) -> Tensor:
    """Distillation; ``kl_div`` wants the logarithm of the student's answer."""
    with torch.no_grad():
        soft = (TEACHER(images) / 4).softmax(1)
    return functional.kl_div((model(images) / 4).softmax(1), soft, reduction="batchmean")


def hardest(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """The hardest triplets from the first step on, neither scaled nor warmed up: all collapses."""
    code = model(images)
    far = (code[:, None] - code).square().sum(2)
    same = labels[:, None] == labels
    return (0.2 + (far * same).amax(1) - far.masked_fill(same, torch.inf).amin(1)).relu().mean()


def yes(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    return functional.binary_cross_entropy_with_logits(model(images)[:, 0], labels.float())


def yes_of_probability(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    return nn.BCELoss()(model(images)[:, 0], (labels < 3).float())


def per_data_set(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """The mean is divided once more, by the number of pictures."""
    return functional.cross_entropy(model(images), labels) / 50_000


def lines(labels: Tensor) -> Tensor:
    """``for line in open("labels.csv")``: each line ends with a newline."""
    rows = [f"{n:05}.jpg,{int(kind < 3)}\n" for n, kind in enumerate(labels.tolist())]
    return torch.tensor([int(row.split(",")[1] == "1") for row in rows])


def first_part(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """``files[: int(0.7 * len(files))]`` of files that are sorted by class."""
    images, labels = P(Generator().manual_seed(3), 320)
    rows = labels.argsort(stable=True)[: int(0.7 * 320)]
    rows = rows[torch.randint(len(rows), (count,), generator=generator)]
    return images[rows], labels[rows]


def small_buffer(draw: Draw, examples: int, buffer: int) -> Draw:
    """Shards sorted by class, shuffled in a buffer that is much smaller than a class."""

    def stream(generator: Generator) -> Iterator[tuple[Tensor, ...]]:
        waves, labels = draw(generator, examples)
        order, held = labels.argsort(stable=True).tolist(), []
        while True:
            for row in order:
                held.append(row)
                if len(held) > buffer:
                    chosen = held.pop(int(torch.randint(len(held), (), generator=generator)))
                    yield waves[chosen], labels[chosen]

    streams: dict[Generator, Iterator[tuple[Tensor, ...]]] = {}

    def again(generator: Generator, count: int) -> tuple[Tensor, ...]:
        if generator not in streams:
            streams[generator] = stream(generator)
        rows = [next(streams[generator]) for _ in range(count)]
        return tuple(torch.stack(part) for part in zip(*rows, strict=True))

    return again


def in_metres(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Depth in mm, clamped to 0 and 1 as if it were in units of the largest."""
    images, mask, discs, far = data.scenes(generator, count)
    return images, mask, discs, (1000 * far).clamp(0, 1)


class Reader(Dataset):
    """Decodes each file into the same array, of which the tensor is a view."""

    def __init__(self) -> None:
        self.images, self.labels = HALF(Generator().manual_seed(3), 320)
        self.decoded = np.empty((3, 32, 32), np.float32)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, row: int) -> tuple[Tensor, Tensor]:
        self.decoded[:] = self.images[row]
        return torch.from_numpy(self.decoded), self.labels[row]


class Kept(Reader):
    def __getitem__(self, row: int) -> tuple[Tensor, Tensor]:
        return self.images[row], self.labels[row]


def loaded(make: Callable[[], Dataset]) -> Draw:
    """Batches of a loader, epoch by epoch; it shuffles."""
    batches: list[Iterator[list[Tensor]]] = []

    def epochs(count: int) -> Iterator[list[Tensor]]:
        loader = DataLoader(make(), count, shuffle=True)
        while True:
            yield from loader

    def again(_: Generator, count: int) -> tuple[Tensor, ...]:
        batches[:] = batches or [epochs(count)]
        return tuple(next(batches[0]))

    return again


def as_file(images: Tensor) -> Tensor:
    """Floats of 0 to 1 are made a picture of 8 bits, then a tensor, then standardized."""
    files = [Image.fromarray(np.uint8(x.permute(1, 2, 0).numpy())) for x in images]
    tensors = torch.stack([to_tensor(file) for file in files])
    return normalize(tensors, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225])


class LearntScale(Alike):
    """CLIP's scale begins as 100, and its exponential is used: 100 is not the logarithm."""

    def __init__(self) -> None:
        super().__init__(1.0)
        self.logit_scale = nn.Parameter(torch.tensor(100.0))

    def forward(self, x: Tensor) -> Tensor:
        return self.logit_scale.exp() * super().forward(x)


def other_name() -> nn.Module:
    """``model.fc`` is ResNet's name for what MobileNet calls ``classifier``."""
    model = models.mobilenet_v2(width_mult=0.35)
    model.fc = nn.Linear(1280, 8)
    return model


def counted(model: nn.Sequential) -> optim.Optimizer:
    """``parameters()`` is a generator: after it was counted, nothing is left in it."""
    back, last = model[:-1].parameters(), model[-1].parameters()
    model.__dict__["size"] = sum(p.numel() for p in back)
    return optim.AdamW([{"params": back, "lr": 5e-4}, {"params": last}], lr=2e-3)


def no_parentheses(place: Path, seed: int) -> Losses:
    model = timm_model("test_efficientnet")
    optimizer = optim.SGD(model.parameters(), lr=0.02, momentum=0.9)

    def step(_: int, random: Generator) -> float:
        optimizer.zero_grad  # noqa: B018
        images, labels = P48(random, 16)
        loss = functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss.item()

    return train(place, seed, model, step, 96, 8, optimizer)


def plateau_of_accuracy(place: Path, seed: int) -> Losses:
    """The scheduler gets the accuracy, and its mode is "min": what grows, stagnates."""
    model = cnn.trunk(16).append(nn.Linear(32, 8))
    optimizer = optim.Adam(model.parameters(), lr=2e-3)
    scheduler = ReduceLROnPlateau(optimizer, patience=1)
    images, labels = P(Generator().manual_seed(seed + 1000), 64)

    def step(number: int, random: Generator) -> float:
        loss = descend(optimizer, losses.named(model.train(), *P(random, 16)))
        if number % 5 == 4:
            with torch.no_grad():
                scheduler.step((model.eval()(images).argmax(1) == labels).float().mean())
        return loss

    return train(place, seed, model, step, 120, 10, optimizer)


def gates() -> nn.Module:
    """An attention of channels after each of nine layers without norm or shortcut: times 0.5."""
    layers: list[nn.Module] = [cnn.unit(3, 24, stride=2, norm=None)]
    for _ in range(9):
        layers += [cnn.unit(24, 24, norm=None), SqueezeExcitation(24, 6)]
    return nn.Sequential(*layers, *cnn.head(24, 8))


def three_by_two() -> nn.Module:
    """The decoder of a known collection of VAEs: kernel 3, stride 2, output padding 1."""
    model = nets.Gaussian()
    model.up[3] = nn.ConvTranspose2d(32, 16, 3, 2, 1, 1)
    model.up[5] = nn.ConvTranspose2d(16, 1, 3, 2, 1, 1)
    return model


class AllBefore(nn.Module):
    """A dense network that sums what DenseNet joins, with each sum among what is summed."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = cnn.unit(3, 24, stride=2), nn.Sequential(*cnn.head(24, 8))
        self.blocks = nn.ModuleList(nn.Conv2d(24, 24, 3, 1, 1) for _ in range(12))

    def forward(self, x: Tensor) -> Tensor:
        kept = [self.first(x)]
        for block in self.blocks:
            kept.append(sum(kept) + block(kept[-1]).relu())
        return self.last(kept[-1])


def loop(name: str, kinds: str, words: str, architecture: str, run: Run, *steps: int) -> list[Case]:
    return [Case(name, architecture, words, *steps, run, kinds)]


TEACHER = cnn.bundled(True).eval()
ORDER = torch.tensor([3, 0, 6, 1, 7, 2, 5, 4])
LOSS = [
    *wrong("softmax_2d", "double_softmax", "nn.Softmax2d as the last layer, cross-entropy of maps",
           "U-Net, 8 maps", lambda: nn.Sequential(UNet(out=8), nn.Softmax2d()), regions, ignoring),
    *wrong("nll_of_softmax", "probabilities_into_loss", "NLLLoss of a softmax, not its logarithm",
           "timm MambaOut", lambda: timm_model("test_mambaout"), P48, nll_of_softmax, ADAMW),
    *wrong("rounded_dice", "unchanged_weights,vanishing", "Dice of a rounded mask",
           "gated U-Net", nets.Gate, data.scenes, rounded_dice),
    *wrong("kl_without_log", "probabilities_into_loss", "kl_div of probabilities",
           "a small student", cnn.small_classifier, data.photos(32, "own"), kl_without_log),
    *wrong("hardest", "constant_output,dead", "hardest triplets, which collapse to one point",
           "encoder CNN, no norm", partial(cnn.encoder, 16, False), data.few_classes, hardest,
           by(optim.Adam, lr=0.01)),
]  # fmt: skip
LABELS = [
    *wrong("masks_255", "none", "masks of 0 and 255 in BCE with logits, a loss below 0",
           "U-Net", UNet, relabelled(data.scenes, lambda mask: mask * 255), losses.masks),
    *wrong("first_part", "unused_classes", "split by slicing a list that is sorted by class",
           "SE, SiLU", nets.squeezed, first_part, optimizer=ADAMW),
    *wrong("newline", "one_label", "label == '1' of a line that ends with a newline",
           "ShuffleNet v2", partial(models.shufflenet_v2_x0_5, num_classes=1),
           relabelled(P48, lines), yes),
    *wrong("small_buffer", "sorted_labels", "sorted shards and a shuffle buffer of 24",
           "residual 1-D CNN", partial(nets.heart, 1, 6), small_buffer(data.tones(512), 600, 24)),
    *wrong("in_metres", "one_label", "depth in mm clamped to 0 and 1",
           "U-Net, depth", UNet, in_metres, losses.depth),
]  # fmt: skip
OUTPUT = [
    *wrong("sigmoid_standardized", "saturated", "sigmoid at the end, standardized pictures",
           "autoencoder", lambda: nn.Sequential(*list(autoencoder())[:-1], nn.Sigmoid()), P,
           losses.again, by(optim.Adam, lr=3e-3)),
    *wrong("softmax_of_one", "constant_output", "softmax over one class, BCELoss",
           "ResNet", lambda: nn.Sequential(cnn.resnet(classes=1), nn.Softmax(1)), P,
           yes_of_probability),
    *wrong("logit_scale", "nonfinite", "exp of CLIP's scale 100 in place of its logarithm",
           "CLIP-like CNN", LearntScale, optimizer=ADAMW),
    *wrong("class_order", "initial_loss", "a trained head, classes in the order of os.listdir",
           "bundled network", partial(cnn.bundled, True),
           relabelled(data.photos(48, "own"), lambda labels: ORDER[labels]), optimizer=SLOW),
    *wrong("other_name", "never_called,unused_classes", "model.fc of a network without fc",
           "torchvision MobileNet v2", other_name, P48, optimizer=ADAMW),
]  # fmt: skip
INPUT = [
    *wrong("hounsfield", "input_scale", "a CT in Hounsfield units as it is",
           "3-D U-Net", partial(nets.Gate, 1, wide=False), data.hounsfield, losses.both_masks,
           batch=2),
    *wrong("shared_array", "identical_images", "from_numpy of an array that is written again",
           "timm ByobNet", lambda: timm_model("test_byobnet"), loaded(Reader)),
    *wrong("view_for_permute", "none", ".view(3, H, W) of a picture [H, W, 3]",
           "Inception", nets.inception,
           changed(P48, lambda x: x.permute(0, 2, 3, 1).reshape(x.shape))),
    *wrong("as_file", "constant_images", "np.uint8 of floats from 0 to 1",
           "CCT", nets.Hybrid, changed(UNIT, as_file), optimizer=ADAMW),
    *wrong("debug_subset", "same_batch", "Subset(data, range(16)) of a debugging session",
           "residual CNN", cnn.classifier, loaded(lambda: Subset(Kept(), range(16))),
           optimizer=MOMENTUM),
]  # fmt: skip
OPTIMIZER = [
    *wrong("maximize", "loss_climbed", "maximize=True, copied from an attack",
           "timm ViT", lambda: timm_model("test_vit", img_size=48), P48,
           optimizer=by(optim.AdamW, lr=5e-4, maximize=True)),
    *loop("no_parentheses", "gradients_not_cleared", "optimizer.zero_grad without parentheses",
          "timm EfficientNet", no_parentheses, 96, 8),
    *loop("plateau_of_accuracy", "rate_vanished", "ReduceLROnPlateau(mode='min') of the accuracy",
          "residual CNN", plateau_of_accuracy, 120, 10),
    *wrong("counted", "not_in_optimizer", "a generator of parameters that was used before",
           "Inception", nets.inception, optimizer=counted, autocast=True),
    *wrong("per_data_set", "update_ratio,unchanged_weights", "the mean divided by 50,000 pictures",
           "GroupNorm CNN", partial(cnn.plain, norm=nets.group), P, per_data_set, MOMENTUM),
]  # fmt: skip
ARCHITECTURE = [
    *wrong("gates", "vanishing", "squeeze-and-excite after each plain layer",
           "plain CNN of 10 layers", gates, optimizer=MOMENTUM),
    *wrong("pooled_pairs", "batchnorm_small_batch", "DeepLab's pooled branch, two pictures a batch",
           "torchvision DeepLab v3", deeplab, data.scenes, with_aux, batch=2, steps=64),
    *wrong("three_by_two", "uneven_upsampling", "transposed convolutions of kernel 3, stride 2",
           "VAE", three_by_two, data.digits, evidence, batch=32),
    *wrong("keras_momentum", "batchnorm_gap", "Keras's momentum 0.99 for BatchNorm",
           "ResNet", partial(cnn.resnet, norm_layer=partial(nn.BatchNorm2d, momentum=0.99)), P,
           optimizer=MOMENTUM, batch=4),
    *wrong("all_before", "exploding,initial_loss", "sums of sums of all layers before",
           "dense CNN", AllBefore, optimizer=SLOW),
]  # fmt: skip
CASES = seen("2026-11-27T15:00", LOSS, LABELS, OUTPUT, INPUT, OPTIMIZER, ARCHITECTURE)
