"""A fifth set of faults of somebody who had not read the checks: one for each thread of a search.

Which threads, a fixed rule decided; the wrong line is its author's, the network like theirs.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from functools import partial
from pathlib import Path

import data
import losses
import torch
from cases.healthy.strangers_maps import bce
from data import HALF, UNIT, Draw, P, changed, exposed
from faults import each
from loops import Losses, descend, duel, follow, seen, train
from nets import classifiers as cnn
from nets import library
from nets import strangers as nets
from nets.classifiers import Function, unit
from nets.dense import Spots, UNet
from nets.strangers_faults import loop, relabelled, wrong
from optimizers import ADAMW, MOMENTUM, SLOW, by
from torch import Generator, Tensor, nn, optim
from torch.nn import functional
from torch.optim.lr_scheduler import StepLR
from torchvision.transforms import v2


def line(*_: object) -> tuple[Tensor, ...]:
    """The whole data set, 40 points, in each step."""
    x = torch.linspace(0, 1, 40)[:, None]
    return x, 0.7 * x + 0.3


def triples(*_: object) -> tuple[Tensor, ...]:
    """1024 times three numbers, all in each step, and their sum."""
    x = torch.rand(1024, 3, generator=Generator().manual_seed(0))
    return x, x.sum(1)


def corners(*_: object) -> tuple[Tensor, ...]:
    """XOR."""
    return torch.tensor([[0.0, 0], [0, 1], [1, 0], [1, 1]]), torch.tensor([[0.0], [1], [1], [0]])


def near(discs: Tensor, size: float) -> Tensor:
    """1 where a disc's centre is nearer than ``size``, [N, 1, 32, 32]."""
    along = torch.arange(32.0)
    far = (along - discs[:, :1])[:, None].square() + (along - discs[:, 1:2])[:, :, None].square()
    return (far.sqrt() < size).float()[:, None]


def coils(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Photographs, of which 8 in 1000 pixels are of a coil."""
    images, _, discs, _ = data.scenes(generator, count)
    return images, near(discs, 1.6)


def fruits(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Small discs of three colours, and the class of each pixel, mostly 0."""
    images, _, discs, _ = data.scenes(generator, count)
    kind, small = torch.randint(3, (count,), generator=generator), near(discs, 2.2)
    colour = (1.5 * torch.eye(3) - 0.5)[kind, :, None, None]
    truth = small[:, 0] * (1 + kind[:, None, None])
    return images * (1 - small) + small * colour, truth.long()


def mostly_first(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """19 of 20 are of class 0."""
    images, labels = P(generator, 8 * count)
    common = torch.rand(8 * count, generator=generator) < 0.95
    share = torch.where(labels == 0, 0.95 / (labels == 0).sum(), 0.05 / (labels > 0).sum())
    rows = torch.multinomial(share * common.numel(), count, True, generator=generator)
    return images[rows], labels[rows]


def jittered(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Two classes; flips, crops of a sixth of the picture, and colours that change."""
    images, labels = data.photos(48, "unit")(generator, count)
    strong = [v2.RandomVerticalFlip(), v2.RandomCrop(20), v2.ColorJitter(0.5, 0.5, 0.5, 0.5)]
    return torch.stack([v2.Compose(strong)(x) for x in images]) * 2 - 1, (labels > 3).long()


def only_zeros(generator: Generator, count: int) -> tuple[Tensor, ...]:
    images, labels = data.digits(generator, 30 * count)
    return images[labels == 0][:count], labels[labels == 0][:count]


def in_order(draw: Draw, key: Callable[[tuple[Tensor, ...]], Tensor], examples: int = 320) -> Draw:
    """A list sorted by ``key``; the loader does not shuffle."""
    kept: list[tuple[Tensor, ...]] = []
    place = 0

    def again(_: Generator, count: int) -> tuple[Tensor, ...]:
        nonlocal place
        if not kept:
            found = draw(Generator().manual_seed(3), examples)
            kept.append(tuple(part[key(found).argsort(stable=True)] for part in found))
        rows, place = (place + torch.arange(count)) % examples, place + count
        return tuple(part[rows] for part in kept[0])

    return again


def as_view(images: Tensor) -> Tensor:
    """OpenCV's [H, W, 3] is made [3, H, W] by ``view``."""
    return images.permute(0, 2, 3, 1).contiguous().view(images.shape)


def mlp(*widths: int, act: Callable[[], nn.Module] = nn.ReLU) -> nn.Sequential:
    layers: list[nn.Module] = [nn.Flatten()]
    for into, out in itertools.pairwise(widths):
        layers += [nn.Linear(into, out), act()]
    return nn.Sequential(*layers[:-1])


def changed_weights(model: nn.Module, change: Callable[[Tensor], object]) -> nn.Module:
    for parameter in model.parameters():
        change(parameter.data)
    return model


def alike(layer: nn.Linear) -> None:
    """``torch.randn(...).repeat(...)``: the same weights for each unit."""
    layer.weight.data = 0.1 * torch.randn(1, layer.in_features).repeat(layer.out_features, 1)
    nn.init.zeros_(layer.bias)


class Cut(nn.Module):
    """The code is made a new tensor between the body and the head."""

    def __init__(self) -> None:
        super().__init__()
        self.back, self.last = cnn.encoder(32), nn.Linear(32, 8)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(torch.from_numpy(self.back(x).detach().numpy()))


def small_cifar() -> nn.Module:
    """Two convolutions and three Linear layers."""
    layers = [nn.Conv2d(3, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU()]
    layers += [nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 8))


def logarithm() -> nn.Module:
    layers = [unit(3, 24, stride=2, norm=None), Function(torch.log), unit(24, 48, stride=2)]
    return nn.Sequential(*layers, *cnn.head(48, 8))


def fcn() -> nn.Module:
    """VGG and three transposed convolutions."""
    layers: list[nn.Module] = []
    for into, out in ((3, 16), (16, 32), (32, 64)):
        layers += [unit(into, out, norm=None), nn.MaxPool2d(2)]
    for into, out in ((64, 32), (32, 16), (16, 1)):
        layers += [nn.ConvTranspose2d(into, out, 4, 2, 1), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def two_maps(seed: int = 2) -> nn.Module:
    """U-Net as in Keras: before its sigmoid a layer of two maps with ReLU."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        last = [nn.ReLU(), nn.Conv2d(16, 2, 3, 1, 1), nn.ReLU(), nn.Conv2d(2, 1, 1), nn.Sigmoid()]
        return cnn.he(nn.Sequential(UNet(1, 16, norm=None), *last))


def without_bias() -> nn.Module:
    convs = [nn.Conv2d(a, b, 3, 1, 1, bias=False) for a, b in ((1, 16), (16, 16), (16, 1))]
    return nn.Sequential(convs[0], nn.ReLU(), convs[1], nn.ReLU(), convs[2])


def enlarger() -> nn.Module:
    """SRResNet."""
    layers = [nn.Conv2d(3, 24, 9, 1, 4), nn.PReLU(), nets.attended(), nets.attended()]
    return nn.Sequential(*layers, nn.Conv2d(24, 12, 3, 1, 1), nn.PixelShuffle(2))


def translator(into: int = 3, norm: Callable[[int], nn.Module] = nn.InstanceNorm2d) -> nn.Module:
    """CycleGAN's generator with one block."""
    block = nets.Residual(unit(48, 48, norm=norm), nn.Conv2d(48, 48, 3, 1, 1), norm(48))
    layers = [unit(into, 12, 7, norm=norm), unit(12, 24, 3, 2, norm=norm)]
    layers += [unit(24, 48, 3, 2, norm=norm), block]
    for wide in (48, 24):
        layers += [nn.ConvTranspose2d(wide, wide // 2, 3, 2, 1, 1), norm(wide // 2), nn.ReLU()]
    return nn.Sequential(*layers, nn.Conv2d(12, 3, 7, padding=3), nn.Tanh())


def through_code() -> nn.Module:
    down = [nn.Conv2d(3, 24, 4, 2, 1), nn.ReLU(), nn.Conv2d(24, 16, 4, 2, 1), nn.ReLU()]
    up = [nn.ConvTranspose2d(16, 24, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(24, 3, 4, 2, 1)]
    return nn.Sequential(*down, *up)


class Codes(nn.Module):
    """A VAE of Linear layers."""

    def __init__(self, size: int, end: nn.Module) -> None:
        super().__init__()
        self.there, self.back = mlp(size, 100, 16), nn.Sequential(mlp(8, 100, size), end)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mean, log = self.there(x).chunk(2, 1)
        code = mean + (log / 2).exp() * torch.randn_like(mean)
        return self.back(code).view_as(x), mean, log


def divergence(mean: Tensor, log: Tensor) -> Tensor:
    return -0.5 * (1 + log - mean.square() - log.exp())


def latent(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    found, mean, log = model(images)
    apart = divergence(mean, log).sum(1).mean()
    return functional.mse_loss(found, images, reduction="sum") / len(images) + apart


def ten_times_the_mean(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """The error is a mean over the pixels, times 10, the divergence a mean over the codes."""
    found, mean, log = model(images)
    return 10 * functional.mse_loss(found, images) + divergence(mean, log).mean()


class Motion(nn.Module):
    """A GRU to a code and one back, as of animals' postures."""

    def __init__(self) -> None:
        super().__init__()
        self.there, self.back = nn.GRU(6, 32, batch_first=True), nn.GRU(32, 32, batch_first=True)
        self.last = nn.Linear(32, 6)

    def forward(self, x: Tensor) -> Tensor:
        code = self.there(x.mT)[1][0]
        return self.last(self.back(code[:, None].expand(-1, x.shape[2], -1))[0]).mT


class Domains(nn.Module):
    """DANN: features, whose gradient from the discriminator is turned around."""

    def __init__(self, *end: nn.Module) -> None:
        super().__init__()
        self.back = nn.Sequential(unit(1, 16, stride=2), unit(16, 32, stride=2), nn.Flatten())
        self.kind = nn.Sequential(nn.Linear(1568, 50), nn.ReLU(), nn.Linear(50, 10), *end)
        self.side = nn.Sequential(nn.Linear(1568, 50), nn.ReLU(), nn.Linear(50, 2), *end)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        code = self.back(x)
        return self.kind(code[: len(x) // 2]), self.side(2 * code.detach() - code)


def both_domains(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    target = 1 - images.roll(1, 0)
    kind, side = model(torch.cat([images, target]))
    domain = (torch.arange(2 * len(images)) >= len(images)).long()
    return functional.cross_entropy(kind, labels) + functional.cross_entropy(side, domain)


def brightness(model: nn.Module, images: Tensor, _: Tensor) -> Tensor:
    return functional.mse_loss(model(images)[:, 0], images.mean((1, 2, 3)))


def squares(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """For a classification."""
    return functional.mse_loss(model(images).softmax(1), functional.one_hot(labels, 8).float())


def error(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return functional.mse_loss(model(x), y)


def per_valid_pixel(model: nn.Module, images: Tensor, mask: Tensor) -> Tensor:
    """A slice without any valid pixel: 0 / 0."""
    apart = (model(images) - images).abs() * mask
    return (apart.sum((1, 2, 3)) / mask.sum((1, 2, 3))).mean()


def root(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """RMSE of each picture; of an empty slice it is 0, where the root has no slope."""
    found = model(functional.avg_pool2d(images, 3, 1, 1))
    return functional.mse_loss(found, images, reduction="none").mean((1, 2, 3)).sqrt().mean()


def ones(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """One sigmoid for ten digits."""
    return bce(model(images)[:, 0], labels.float())


def yes(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    return bce(model(images)[:, 0], (labels < 3).float())


def xor(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return PLAIN(model(x), y)


def triplets(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Batch-hard, of codes that are not normalized."""
    code, same = model(images), labels[:, None] == labels
    far = ((code[:, None] - code).square().sum(2) + 1e-12).sqrt()
    return (0.5 + (far * same).amax(1) - far.masked_fill(same, torch.inf).amin(1)).relu().mean()


def hardest_negative(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """In place of InfoNCE."""
    one, two = (functional.normalize(model(x), dim=1) for x in losses.both_views(images))
    far = 2 - 2 * one @ two.T
    others = far + 9 * torch.eye(len(one))
    return (0.5 + far.diagonal() - others.amin(1)).relu().mean()


def clipped(model: nn.Module, images: Tensor, mask: Tensor, *_: Tensor) -> Tensor:
    """``png[png >= num_classes] = num_classes`` of a mask of 0 and 255; that class is ignored."""
    truth = (255 * mask[:, 0]).long().clamp(max=2)
    return functional.cross_entropy(model(images), truth, ignore_index=2)


def only_score(model: nn.Module, images: Tensor, mask: Tensor, *_: Tensor) -> Tensor:
    """A line of a test was left: position and size are not in the loss."""
    return bce(model(images)[0], functional.max_pool2d(mask, 4))


def spots(typo: bool, model: nn.Module, images: Tensor, _: Tensor, *rest: Tensor) -> Tensor:
    """Four points of a disc; ``kid`` for ``kid2``: all others' spots get into the last channel."""
    along, truth, discs = torch.arange(32.0), torch.zeros(len(images), 4, 32, 32), rest[0]
    for kid2, side in enumerate(((1, 0), (-1, 0), (0, 1), (0, -1))):
        place, kid = discs[:, :2] + discs[:, 2:] * torch.tensor(side), 3 if typo else kid2
        across = (along - place[:, :1]).square()[:, None]
        spot = (-(across + (along - place[:, 1:]).square()[:, :, None]) / 8).exp()
        truth[:, kid] = torch.maximum(truth[:, kid], spot)
    return 10 * functional.mse_loss(model(images), truth)


def other_model(_: nn.Module) -> optim.Optimizer:
    """``params=model_0.parameters()``, while ``model_1`` is trained."""
    return optim.SGD(nn.Linear(1, 1).parameters(), lr=0.01)


def frozen_once() -> nn.Module:
    """Frozen for a linear evaluation; to unfreeze, ``if p.requires_grad`` finds no parameter."""
    model = cnn.pretrained(partial(cnn.classifier, 16))
    model[0].requires_grad_(False)
    for parameter in model[0].parameters():
        if parameter.requires_grad:
            parameter.requires_grad = True
    return model


def no_backward(place: Path, seed: int) -> Losses:
    model = mlp(3072, 32, 8)
    optimizer = optim.SGD(model.parameters(), lr=0.01)

    def step(_: int, random: Generator) -> float:
        optimizer.zero_grad()
        loss = losses.named(model, *HALF(random, 16))
        optimizer.step()
        return loss.item()

    return train(place, seed, model, step, 96, 8, optimizer)


def scheduler_only(place: Path, seed: int) -> Losses:
    """``if scheduler: scheduler.step()``, else: ``optimizer.step()``."""
    model = UNet(transposed=False)
    optimizer = optim.Adam(model.parameters(), lr=2e-4)
    scheduler = StepLR(optimizer, 30)

    def step(_: int, random: Generator) -> float:
        optimizer.zero_grad()
        loss = losses.depth(model, *data.scenes(random, 8))
        loss.backward()
        scheduler.step()
        return loss.item()

    return train(place, seed, model, step, 60, 5)


def bootstrap(rate: float, place: Path, seed: int) -> Losses:
    """BYOL with Adam; 0.2 is the rate that the paper gives to LARS."""
    online = cnn.encoder(32)
    target, guess = copy.deepcopy(online), nn.Sequential(*mlp(32, 64, 32))
    optimizer = optim.Adam([*online.parameters(), *guess.parameters()], lr=rate)
    both = nn.ModuleDict({"online": online, "guess": guess})

    def step(_: int, random: Generator) -> float:
        one, two = losses.both_views(P(random, 16)[0])
        with torch.no_grad():
            true = target(two), target(one)
        pairs = zip((one, two), true, strict=True)
        parts = [functional.cosine_similarity(guess(online(x)), y).mean() for x, y in pairs]
        loss = descend(optimizer, 2 - sum(parts))
        follow(target, online, 0.99)
        return loss

    return train(place, seed, both, step, 72, 6, optimizer)


def digits_game(
    of_critic: Callable[[nn.Module, Tensor, Tensor], Tensor],
    of_maker: Callable[[nn.Module, Tensor], Tensor],
    end: tuple[nn.Module, ...] = (),
    rates: tuple[float, float] = (2e-4, 2e-4),
    sides: int = 0,
    clip: float = 0,
) -> Callable[[Path, int], Losses]:
    """A DCGAN of digits; the ``sides`` of true pictures are padded with zeros."""

    def run(place: Path, seed: int) -> Losses:
        up = [nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.BatchNorm2d(16), nn.ReLU()]
        start = [nn.Linear(32, 1568), nn.ReLU(), nn.Unflatten(1, (32, 7, 7))]
        maker = nn.Sequential(*start, *up, nn.ConvTranspose2d(16, 1, 4, 2, 1), nn.Tanh())
        down = [nn.Conv2d(1, 24, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(24, 48, 4, 2, 1)]
        down += [nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(2352, 1), *end]
        critic = nn.Sequential(*down)

        def step(_: int, random: Generator, first: optim.Adam, second: optim.Adam) -> float:
            real, fake = data.digits(random, 16)[0] * 2 - 1, maker(torch.randn(16, 32))
            if sides:
                real[..., :sides], real[..., -sides:] = 0, 0
            loss = descend(second, of_critic(critic, real, fake.detach()))
            for parameter in critic.parameters() if clip else ():
                parameter.data.clamp_(-clip, clip)
            descend(first, of_maker(critic, fake))
            return loss

        return duel(place, seed, (maker, critic), rates, step, 80, 8)

    return run


def said(found: Tensor, truth: float, kind: Callable[..., Tensor] = bce) -> Tensor:
    return kind(found, torch.full_like(found, truth))


def entropies(critic: nn.Module, real: Tensor, fake: Tensor) -> Tensor:
    return said(critic(real), 1) + said(critic(fake), 0)


def of_probabilities(critic: nn.Module, real: Tensor, fake: Tensor) -> Tensor:
    return said(critic(real), 1, PLAIN) + said(critic(fake), 0, PLAIN)


def least_squares(critic: nn.Module, real: Tensor, fake: Tensor) -> Tensor:
    return (critic(real) - 1).square().mean() + critic(fake).square().mean()


def parenthesis(critic: nn.Module, real: Tensor, fake: Tensor) -> Tensor:
    """It is closed at the end of the line."""
    return -torch.mean(critic(real) + torch.mean(critic(fake)))


def evaluated_once(step: int, model: nn.Module, _: object) -> None:
    """``model.eval()`` for a validation before the first epoch, and never ``train()`` again."""
    if step == 0:
        model.eval()


def ends(make: Callable[[], nn.Module], *layers: nn.Module) -> Callable[[], nn.Module]:
    return lambda: nn.Sequential(make(), *layers)


def sgd(rate: float, momentum: float = 0.0) -> Callable[[nn.Module], optim.Optimizer]:
    return by(optim.SGD, lr=rate, momentum=momentum)


def adam(rate: float) -> Callable[[nn.Module], optim.Optimizer]:
    return by(optim.Adam, lr=rate)


PLAIN = functional.binary_cross_entropy
digits, scenes, bare = data.digits, data.scenes, cnn.without_norm
FEW = {"steps": 60, "every": 5, "batch": 8}
FIRST = [
    *wrong("tiny_rate", "update_ratio", "SGD with a rate of 1e-4",
           "MLP", partial(mlp, 3072, 32, 8), optimizer=sgd(1e-4)),
    *wrong("deep_sigmoid", "vanishing", "a sigmoid after each of seven layers",
           "MLP, sigmoid", partial(mlp, 3072, *[20] * 7, 8, act=nn.Sigmoid), optimizer=sgd(0.01)),
    *wrong("softmax_first", "double_softmax", "Softmax, then CrossEntropyLoss",
           "encoder CNN", ends(cnn.with_norm, nn.Softmax(1))),
    *wrong("labels_shuffled", "none", "labels are shuffled, pictures are not",
           "SE, SiLU", nets.squeezed, relabelled(P, lambda y: y[torch.randperm(len(y))])),
    *wrong("cut", "unchanged_weights", "the code becomes a new tensor before the head", "CNN", Cut),
    *wrong("not_normalized", "input_scale", "pixels of 0 to 255",
           "encoder CNN, no norm", bare, data.RAW, optimizer=sgd(0.02, 0.9)),
    *wrong("other_model", "not_in_optimizer,unchanged_weights", "the optimizer has model_0",
           "linear regression", lambda: nn.Linear(1, 1), line, error, other_model),
    *wrong("all_negative", "dead,update_ratio", "Adam's rate too high: all units are dead",
           "LeNet for CIFAR", small_cifar, optimizer=adam(0.1)),
    *wrong("jittered", "none", "flips, small crops and strong colour jitter at once",
           "ResNet", partial(cnn.resnet, classes=2), jittered),
    *wrong("mostly_first", "none", "19 of 20 pictures are of one class",
           "encoder CNN, no norm", bare, mostly_first),
    *wrong("zeros", "copied_channels,unchanged_weights,dead", "weights begin at 0",
           "MLP", lambda: changed_weights(mlp(784, 64, 10), torch.zero_), digits,
           optimizer=sgd(0.01)),
    *wrong("thousand", "initial_loss,exploding,nonfinite", "weights between -1000 and 1000",
           "MLP", lambda: changed_weights(mlp(3072, 50, 1), lambda p: p.uniform_(-1000, 1000)),
           HALF, brightness, sgd(0.01)),
    *wrong("no_valid_pixel", "nonfinite", "0 / 0 valid pixels",
           "U-Net, grey", partial(UNet, 1), data.slices, per_valid_pixel, **FEW),
    *wrong("coils", "none", "8 in 1000 pixels are of a coil, all weigh the same",
           "VGG-FCN", fcn, coils, losses.masks, by(optim.RMSprop, lr=1e-3)),
    *wrong("fruits", "none", "hardly any pixel is of a fruit",
           "U-Net without norm", partial(UNet, 3, 4, norm=None), fruits, **FEW),
    *loop("no_backward", "unchanged_weights", "loss.backward() is missing",
          "MLP", no_backward, 96, 8),
    *wrong("alike", "copied_channels", "the same weights for each unit of a layer",
           "MLP", lambda: each(mlp(784, 32, 10), nn.Linear, alike), digits, optimizer=sgd(0.1)),
    *wrong("rate_of_ten", "update_ratio,nonfinite", "SGD with a rate of 10",
           "linear regression", partial(mlp, 3072, 1), HALF, brightness, sgd(10)),
    *wrong("ladder", "update_ratio", "Adam with a rate of 0.3",
           "two U-Nets", lambda: nn.Sequential(UNet(3, 8, 8), UNet(8, 2, 8)), scenes,
           losses.two_classes, adam(0.3), batch=8),
    *wrong("from_scratch", "update_ratio", "fine-tuning with the rate for training from scratch",
           "trained ResNet", lambda: cnn.pretrained(cnn.resnet), data.colourless(),
           optimizer=sgd(0.1, 0.9)),
    *loop("sigmoid_at_the_end", "saturated,vanishing", "a critic with sigmoid, and BCELoss",
          "DCGAN", digits_game(of_probabilities, lambda critic, x: said(critic(x), 1, PLAIN),
                               (nn.Sigmoid(),), (2e-4, 2e-3)), 80, 8),
    *loop("padded_truth", "none", "true pictures have zeros at their sides",
          "DCGAN", digits_game(entropies, lambda critic, x: said(critic(x), 1), sides=4), 80, 8),
]  # fmt: skip
CHECKLISTS = [
    *wrong("not_centred", "input_scale", "pixels between 0.7 and 0.9",
           "encoder CNN, no norm", bare, exposed(0.2, 0.7), optimizer=sgd(0.02, 0.9)),
    *wrong("bytes_to_bytes", "input_scale,initial_loss", "pixels of 0 to 255, also as target",
           "autoencoder", through_code, data.RAW, losses.again, **FEW),
    *wrong("wrong_range", "saturated", "a sigmoid for pixels that are standardized",
           "restorer, sigmoid", partial(nets.restorer, 3, nn.Sigmoid()), P, losses.repaired, **FEW),
    *wrong("too_deep", "vanishing", "30 plain layers",
           "plain CNN of 32 layers", partial(cnn.stack, 30, 16), optimizer=MOMENTUM, **FEW),
    *wrong("two_units", "none", "two hidden units for ten digits",
           "MLP", partial(mlp, 784, 2, 10), digits),
    *wrong("squares", "none", "MSE for a classification",
           "encoder CNN, no norm", bare, P, squares, sgd(0.01)),
    *wrong("one_sigmoid", "none", "one sigmoid for ten digits, a loss below 0",
           "MLP", partial(mlp, 784, 64, 1), changed(digits, lambda x: x * 255), ones),
    *wrong("no_zero_grad", "gradients_not_cleared", "zero_grad() is never called",
           "MLP", partial(mlp, 784, 64, 10), digits, optimizer=sgd(0.1), zero="never"),
    *wrong("broadcast", "constant_output", "MSE of [N, 1] and [N]",
           "linear regression", lambda: changed_weights(nn.Linear(3, 1, False), torch.zero_),
           triples, error, sgd(0.1)),
    *wrong("one_class", "one_label", "trained with the digit 0 only",
           "LeNet", cnn.lenet, only_zeros),
]  # fmt: skip
THREADS = [
    *wrong("triplets", "constant_output,dead", "batch-hard triplets, no normalization: collapse",
           "encoder CNN, no norm", partial(cnn.encoder, 32, False), data.few_classes, triplets,
           adam(5e-3)),
    *wrong("hardest_negative", "constant_output,dead", "the hardest negative: collapse",
           "encoder CNN, no norm", partial(cnn.encoder, 32, False), P, hardest_negative,
           adam(0.01), batch=32),
    *wrong("logarithm", "nonfinite", "torch.log of what a ReLU left", "CNN", logarithm),
    *wrong("root", "nonfinite", "RMSE of each picture, of which one is 0",
           "CNN without biases", without_bias, data.slices, root),
    *wrong("two_a_batch", "batchnorm_small_batch", "BatchNorm with two pictures",
           "ResNet", cnn.resnet, optimizer=adam(1e-3), batch=2),
    *wrong("slow_norm", "batchnorm_gap", "BatchNorm's momentum 0.001",
           "CNN", partial(cnn.plain, norm=partial(nn.BatchNorm2d, momentum=1e-3))),
    *wrong("frozen_once", "unchanged_weights,not_in_optimizer", "frozen, and never unfrozen",
           "trained CNN", frozen_once, data.colourless(), optimizer=ADAMW),
    *wrong("clipped", "one_label,unused_classes", "255 of a mask is clipped to the ignored class",
           "U-Net, two maps", partial(UNet, 3, 2), scenes, clipped, **FEW),
    *wrong("sigmoid_twice", "probabilities_into_loss", "Sigmoid, then BCEWithLogitsLoss",
           "CNN", ends(partial(cnn.plain, classes=1), nn.Sigmoid()), P, yes),
    *wrong("only_score", "unchanged_weights", "only the score is in the loss",
           "toy detector", Spots, scenes, only_score),
    *wrong("softmax_of_one", "constant_output,unchanged_weights,vanishing",
           "softmax over one unit", "XOR", ends(partial(mlp, 2, 2, 1, act=nn.Sigmoid),
           nn.Softmax(1)), corners, xor, sgd(0.01)),
    *wrong("two_maps", "dead", "two maps with ReLU before the last layer",
           "U-Net of Keras", two_maps, data.slices,
           lambda model, x, y: PLAIN(model(x), y), SLOW, **FEW),
    *wrong("relu_at_the_end", "dead", "a decoder that ends in ReLU, for pixels of -1 to 1",
           "VAE, MLP", partial(Codes, 784, nn.ReLU()), changed(digits, lambda x: x * 2 - 1), latent,
           batch=32),
    *wrong("ten_times", "constant_output", "the error is a mean: the posterior collapses",
           "VAE, MLP", partial(Codes, 3072, nn.Sigmoid()), UNIT, ten_times_the_mean, batch=32),
    *wrong("spots", "none", "all points' spots are in the last channel",
           "U-Net, 4 maps", partial(UNet, 3, 4), scenes, partial(spots, True), **FEW),
    *wrong("pix2pix", "uneven_upsampling", "ConvTranspose2d, kernel 3, stride 2",
           "generator of pix2pixHD", partial(translator, norm=nn.BatchNorm2d), data.edges,
           lambda model, x, y: functional.l1_loss(model(y.expand(-1, 3, -1, -1)), x.tanh()), **FEW),
    *wrong("checkered", "uneven_upsampling", "transposed convolutions that overlap unevenly",
           "generator of CycleGAN", translator, data.CROPS, losses.repaired, **FEW),
    *loop("scheduler_only", "unchanged_weights", "scheduler.step() in place of optimizer.step()",
          "U-Net, depth", scheduler_only, 60, 5),
    *wrong("step_of_epochs", "rate_vanished", "StepLR of epochs, called for each batch",
           "SRResNet", enlarger, data.CROPS, losses.larger, schedule=lambda o, _: StepLR(o, 4, 0.1),
           batch=8),
    *wrong("gamma_of_zero", "rate_vanished", "StepLR with gamma 0, which was to be 1",
           "GRU autoencoder", Motion, data.gestures, losses.again,
           schedule=lambda o, _: StepLR(o, 30, 0.0), batch=32),
    *wrong("sorted_list", "sorted_labels", "a list sorted by class, not shuffled",
           "Inception", nets.inception, in_order(P, lambda part: part[1]), optimizer=MOMENTUM),
    *wrong("listdir", "none", "os.listdir is not sorted: labels of other pictures",
           "CNN", cnn.small_classifier, relabelled(P, lambda y: y.roll(7)), examples=192),
    *wrong("never_train_again", "eval_mode", "eval mode since the first validation",
           "SE, SiLU, dropout", nets.squeezed, optimizer=ADAMW, before=evaluated_once),
    *wrong("never_cleared", "gradients_not_cleared", "zero_grad() forgotten before backward()",
           "encoder CNN", cnn.with_norm, optimizer=sgd(0.02, 0.9), zero="never"),
    *wrong("as_view", "none", "view() where permute() was meant",
           "encoder CNN", cnn.with_norm, changed(P, as_view)),
    *loop("parenthesis", "none", "WGAN: -mean(D(real) + mean(D(fake)))",
          "WGAN", digits_game(parenthesis, lambda critic, x: -critic(x).mean(), clip=0.01), 80, 8),
    *wrong("tanh_at_the_end", "saturated", "a tanh after the last layer",
           "ViT, tanh", ends(library.vit, nn.Tanh()), HALF),
    *loop("rate_of_lars", "update_ratio,dead", "Adam with the rate 0.2 of LARS",
          "BYOL", partial(bootstrap, 0.2), 72, 6),
    *wrong("both_domains", "double_softmax", "softmax at both ends, then CrossEntropyLoss",
           "DANN", partial(Domains, nn.Softmax(1)), digits, both_domains, sgd(0.01, 0.9)),
    *wrong("federated", "double_softmax", "softmax of an MLP, then CrossEntropyLoss",
           "MLP", ends(partial(mlp, 784, 64, 10), nn.Softmax(1)), digits, optimizer=sgd(0.01, 0.5)),
    *loop("detached", "unchanged_weights", "fake.detach() in the generator's step",
          "LSGAN", digits_game(least_squares,
                               lambda critic, x: (critic(x.detach()) - 1).square().mean()), 80, 8),
]  # fmt: skip
CASES = seen("2026-11-27T21:15", FIRST, CHECKLISTS, THREADS)
