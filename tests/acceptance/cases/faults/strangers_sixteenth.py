"""A sixteenth set of faults of somebody who had not read the checks: the most common mistakes.

They stand in the order in which twenty public checklists name them; earlier sets have others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

import data
import losses
import numpy as np
import torch
from cases.faults.strangers_fifteenth import headed
from cases.healthy.strangers_eighth import Net
from cases.healthy.strangers_maps import agent, center_net, centres, mu_law
from data import HALF, UNIT, P, changed
from faults import at
from loops import Losses, descend, duel, seen
from nets import classifiers as cnn
from nets import library, signals
from nets import strangers as nets
from nets.classifiers import Function
from nets.dense import UNet
from nets.restoration import Denoiser, super_resolution
from nets.strangers_faults import loop, relabelled, wrong
from nets.strangers_fifth import adam, ends, error, fcn, in_order, mlp, said, sgd
from nets.strangers_fifth import changed_weights as weights
from nets.strangers_kept import gpt, letters, pointer, spoken
from optimizers import by
from torch import Generator, Tensor, nn, optim
from torch.nn import functional

BIRDS = torch.tensor([[38.8, 18.3, 190, 3700], [48.8, 18.4, 196, 3733], [47.5, 15, 217, 5076]])
GAUGE = torch.tensor([642.0, 1590, 1408, 553, 9065, 521])[:, None]
SPREAD = torch.tensor([0.5, 6.1, 9.0, 0.9, 22, 0.7])[:, None]


def penguins(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Length and depth of a bill, length of a flipper, mass; three species. Standardized."""
    kind = torch.randint(3, (count,), generator=generator)
    x = (BIRDS[kind] - BIRDS.mean(0)) / BIRDS.std(0)
    return x + 0.6 * torch.randn(count, 4, generator=generator), kind


def engines(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Six gauges of an engine, [N, 6, 48], and how long it will last. All are standardized."""
    left, where = torch.rand(2, count, 1, 1, generator=generator)
    wear = (-3 * (left + (1 - torch.arange(48) / 48) / 4)).exp() * 2.5 - 0.8
    sign = torch.tensor([1.0, 0.8, 1.2, -1, 0.6, -0.9])[:, None]
    own = 0.4 * (2 * math.pi * (torch.arange(48) / 24 + where)).sin()
    x = wear * sign + own + 0.3 * torch.randn(count, 6, 48, generator=generator)
    return x, (left[:, :, 0] - 0.5) * 12**0.5


def spectra(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Near-infrared absorption, [N, 1, 160], of a mixture, and three shares, standardized."""
    share = torch.rand(count, 3, 1, generator=generator)
    along = torch.arange(160) / 160
    centre, wide = torch.tensor([[0.25, 0.45, 0.7], [0.06, 0.1, 0.08]])[..., None]
    bands = (share * (-((along - centre) / wide).square()).exp()).sum(1)
    slope = torch.randn(count, 1, generator=generator) * (along - 0.5)
    x = 2 * bands + 0.3 * slope + 0.03 * torch.randn(count, 160, generator=generator) - 0.6
    return x[:, None], (share[..., 0] - 0.5) * 12**0.5


def series(into: int, out: int, act: Callable[[], nn.Module] = nn.ReLU) -> nn.Module:
    """Four strided convolutions over a series, and two Linear layers."""
    layers: list[nn.Module] = []
    for a, b in ((into, 24), (24, 32), (32, 32), (32, 48)):
        layers += [nn.Conv1d(a, b, 5, 2, 2), act()]
    wide = 48 * (3 if into == 6 else 10)
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(wide, 48), act(), nn.Linear(48, out))


def watcher(drop: float = 0.0) -> nn.Module:
    """A transformer over what an engine's gauges say."""

    def run(m: nn.ModuleDict, x: Tensor) -> Tensor:
        y = m["first"](x.mT[:, ::2]) + m["place"](torch.arange(24))
        return m["last"](m["body"](m["drop"](y)).mean(1))

    layer = nn.TransformerEncoderLayer(48, 4, 96, drop, batch_first=True)
    parts = {"body": nn.TransformerEncoder(layer, 2), "last": nn.Linear(48, 1)}
    return Net(run, first=nn.Linear(6, 48), place=nn.Embedding(24, 48), drop=nn.Dropout(drop),
               **parts)  # fmt: skip


def solid_sums(blocks: int) -> nn.Module:
    """Residual blocks over voxels, without norm, with He's weights."""

    def block() -> nn.Module:
        return nets.Residual(nn.Conv3d(16, 16, 3, 1, 1), nn.ReLU(), nn.Conv3d(16, 16, 3, 1, 1))

    layers = [nn.Conv3d(1, 16, 5, 3), *(block() for _ in range(blocks)), nn.AdaptiveAvgPool3d(1)]
    return cnn.he(nn.Sequential(*layers, nn.Flatten(), nn.Linear(16, 4)))


def by_numpy(x: Tensor) -> Tensor:
    return torch.from_numpy(np.maximum(x.detach().numpy(), 0))


def apart(model: nn.Module, images: Tensor, _: Tensor, discs: Tensor, *__: Tensor) -> Tensor:
    """1 - IoU of boxes, of which the network's begin at (0, 0) and are small."""
    centre, half = discs[:, :2] / 32, discs[:, 2:] / 32
    found = model(images)
    low = torch.maximum(found[:, :2], centre - half)
    high = torch.minimum(found[:, 2:], centre + half)
    shared = (high - low).clamp(min=0).prod(1)
    areas = (found[:, 2:] - found[:, :2]).clamp(min=0).prod(1) + (2 * half[:, 0]).square()
    return (1 - shared / (areas - shared)).mean()


def epochs(step: int, _: nn.Module, optimizer: optim.Optimizer) -> None:
    """``adjust_learning_rate`` of the ImageNet example, called for each batch."""
    for group in optimizer.param_groups:
        group["lr"] = 0.02 * 0.1 ** (step // 10)


def game(place: Path, seed: int) -> Losses:
    """A GAN of digits, whose critic ends in a sigmoid."""
    maker = ends(partial(mlp, 24, 128, 784), nn.Tanh())()
    critic = nn.Sequential(mlp(784, 128, 64, 1, act=partial(nn.LeakyReLU, 0.2)), nn.Sigmoid())

    def step(_: int, random: Generator, one: optim.Optimizer, two: optim.Optimizer) -> float:
        real, noise = data.digits(random, 32)[0] * 2 - 1, torch.randn(32, 24, generator=random)
        fake = maker(noise)
        found = descend(two, said(critic(real), 1) + said(critic(fake.detach()), 0))
        descend(one, said(critic(fake), 1))
        return found

    return duel(place, seed, (maker, critic), (1e-3, 1e-3), step, 120, 10)


digits, scenes, TONES = data.digits, data.scenes, data.tones(256)
GAUGES, LIGHT, LASTS = partial(series, 6, 1), partial(series, 1, 3), {"batch": 32}
bad = partial(wrong, steps=120, every=10)
FEW, ROWS = {"steps": 104, "every": 8, "batch": 8}, {"steps": 150, "every": 12, "batch": 64}
PLAY = {"batch": 64, "steps": 200, "every": 16}
FIRST = [
    *bad("squeezed_rate", "update_ratio", "RMSprop with 0.1", "inverted bottlenecks", nets.squeezed,
         P, optimizer=by(optim.RMSprop, lr=0.1), **FEW),
    *bad("watcher_rate", "update_ratio", "Adam with 0.1", "transformer of a series", watcher,
         engines, error, adam(0.1), **LASTS),
    *bad("gpt_rate", "update_ratio", "AdamW with 0.1", "GPT", gpt, letters, partial(spoken, 1),
         by(optim.AdamW, lr=0.1)),
    *bad("convnext_slow", "update_ratio", "AdamW with 1e-7", "ConvNeXt", library.convnext, P,
         optimizer=by(optim.AdamW, lr=1e-7), **FEW),
    *bad("spectra_slow", "update_ratio", "SGD with 1e-5 and momentum", "1-D CNN", LIGHT, spectra,
         error, sgd(1e-5, 0.9), **LASTS),
    *bad("levels_slow", "update_ratio", "Adam with 1e-6", "WaveNet", partial(nets.WaveNet, 64),
         TONES, mu_law, adam(1e-6), **FEW),
    *bad("raw_penguins", "input_scale", "millimetres and grams", "MLP", partial(mlp, 4, 32, 16, 3),
         changed(penguins, lambda z: BIRDS.mean(0) + BIRDS.std(0) * z), optimizer=sgd(0.01, 0.9),
         batch=32),
    *bad("raw_gauges", "input_scale", "degrees, pressure and turns a minute", "1-D CNN", GAUGES,
         changed(engines, lambda x: GAUGE + SPREAD * x), error, adam(1e-3), **LASTS),
    *bad("bytes_in_lenet", "input_scale", "pixels of 0 to 255", "LeNet",
         partial(cnn.lenet, nn.ReLU), changed(digits, lambda x: (255 * x).round()),
         optimizer=sgd(0.05, 0.9)),
    *bad("spectra_of_zeros", "copied_channels,unchanged_weights,constant_output",
         "all weights begin at 0", "1-D CNN", lambda: weights(LIGHT(), torch.zero_), spectra, error,
         adam(2e-3), **LASTS),
    *bad("normal_fcn", "exploding,initial_loss", "weights of deviation 1", "FCN",
         lambda: weights(fcn(), lambda w: w.normal_()), scenes, losses.masks, adam(1e-3), **FEW),
    *bad("thousandth_gauges", "vanishing", "weights of deviation 0.001", "1-D CNN", lambda:
         weights(GAUGES(), lambda w: w.normal_(0, 1e-3)), engines, error, sgd(0.02, 0.9), **LASTS),
    *bad("softmax_swin", "double_softmax", "softmax in front of cross-entropy", "Swin",
         ends(library.swin, nn.Softmax(1)), P, optimizer=by(optim.AdamW, lr=1e-3), **FEW),
    *bad("softmax_penguins", "double_softmax", "softmax in front of cross-entropy", "MLP",
         ends(partial(mlp, 4, 32, 16, 3), nn.Softmax(1)), penguins, optimizer=sgd(0.05, 0.9),
         batch=32),
    *bad("softmax_gpt", "double_softmax", "softmax in front of cross-entropy", "GPT",
         ends(gpt, nn.Softmax(2)), letters, partial(spoken, 1), by(optim.AdamW, lr=1e-3)),
    *bad("engines_killed", "dead,update_ratio", "Adam with 0.1", "1-D CNN", GAUGES, engines, error,
         adam(0.1), **LASTS),
    *bad("lenet_killed", "dead,update_ratio", "SGD with 0.5 and momentum", "LeNet",
         partial(cnn.lenet, nn.ReLU), digits, optimizer=sgd(0.5, 0.9)),
    *bad("places_in_pixels", "exploding,update_ratio,nonfinite", "an error in px², not clipped",
         "CNN of keypoints", pointer, scenes, lambda model, x, *rest: error(model, x,
         rest[1][:, :2]), sgd(1e-3, 0.9)),
    *bad("solid_sums", "exploding", "sixteen residual blocks without norm", "residual 3-D CNN",
         partial(solid_sums, 16), data.voxels, optimizer=adam(2e-3), **FEW),
    *bad("squeezed_eval", "eval_mode", "model.eval() in front of the loop", "inverted bottlenecks",
         nets.squeezed, P, optimizer=sgd(0.1, 0.9), prepare=nn.Module.eval, **FEW),
    *bad("denoiser_eval", "eval_mode", "no model.train() after the first validation", "DnCNN",
         Denoiser, HALF, losses.repaired, sgd(0.1, 0.9), before=at(6, lambda model, _:
         model.eval()), **FEW),
    *bad("deep_codes", "vanishing", "24 layers without norm or shortcut", "autoencoder, MLP",
         partial(mlp, 784, *[48] * 23, 784), digits, lambda model, x, _:
         error(model, x, x.flatten(1)), adam(1e-3)),
    *bad("sigmoid_penguins", "vanishing", "nine layers with sigmoid", "MLP",
         partial(mlp, 4, *[24] * 8, 3, act=nn.Sigmoid), penguins, optimizer=sgd(0.05, 0.9),
         batch=32),
]  # fmt: skip
SECOND = [
    *bad("sorted_penguins", "sorted_labels,one_label", "a table sorted by species, no shuffle",
         "MLP", partial(mlp, 4, 32, 16, 3), in_order(penguins, lambda part: part[1], 960),
         optimizer=sgd(0.05, 0.9)),
    *bad("spectra_accumulate", "gradients_not_cleared", "zero_grad() is missing", "1-D CNN", LIGHT,
         spectra, error, sgd(0.02, 0.9), zero="never", **LASTS),
    *bad("features_by_numpy", "unchanged_weights", "features are made an array of NumPy",
         "1-D CNN", lambda: nn.Sequential(series(1, 16), Function(by_numpy), nn.Linear(16, 3)),
         spectra, error, adam(2e-3), **LASTS),
    *bad("rays_by_sgd", "update_ratio", "SGD with 0.01", "NeRF", signals.Rays, data.rays,
         signals.rendered, sgd(0.01), batch=128),
    *bad("boxes_apart", "unchanged_weights", "1 - IoU of boxes that do not meet", "CNN of boxes",
         lambda: nn.Sequential(pointer(), nn.ReLU(), nn.Linear(2, 4)), scenes, apart, adam(2e-3)),
    *bad("squares_between", "vanishing,constant_output", "squares between the layers", "1-D CNN",
         partial(series, 1, 3, partial(Function, torch.square)), spectra, error, adam(1e-3),
         **LASTS),
    *bad("dropout_of_gauges", "dropout_high", "dropout of 0.9, meant as what is kept",
         "transformer of a series", partial(watcher, 0.9), engines, error, adam(1e-3), **LASTS),
    *bad("heads_given", "not_in_optimizer,unchanged_weights", "the optimizer has the heads only",
         "CenterNet", center_net, scenes, centres,
         lambda model: optim.Adam(model.heads.parameters(), 2e-3), **FEW),
    *bad("gamma_of_linear", "nonfinite", "a root of pixels, some below 0", "ESPCN",
         partial(super_resolution, "espcn"), UNIT, lambda model, x, _: losses.larger(
         lambda small: model(small).pow(1 / 2.2), x.pow(1 / 2.2)), adam(2e-3)),
    *bad("averaged_twice", "update_ratio", "a slope by hand, divided by the batch twice", "MLP",
         ends(partial(mlp, 784, 64, 10), Function(lambda y: y / 64 + (y * 63 / 64).detach())),
         digits, optimizer=sgd(0.1), batch=64),
    *bad("raw_cycles", "initial_loss", "cycles of 0 to 300", "transformer of a series", watcher,
         relabelled(engines, lambda y: 150 + 86 * y), error, adam(1e-3), **LASTS),
    *bad("sigmoid_depth", "saturated", "sigmoid for depths of 2 to 8 m", "U-Net",
         ends(partial(UNet, base=8, transposed=False), nn.Sigmoid()), scenes,
         lambda model, x, *rest: functional.l1_loss(model(x), 5 * rest[-1]), adam(2e-3), **FEW),
    *bad("points_missing", "exploding,update_ratio", "decimal points are missing in some rows",
         "1-D CNN", LIGHT, relabelled(spectra, lambda y: torch.where(torch.rand(y.shape) < 0.01,
         100 * y, y)), error, sgd(0.02, 0.9), **LASTS),
    *bad("squeezed_twos", "batchnorm_small_batch", "batches of two", "inverted bottlenecks",
         nets.squeezed, P, optimizer=sgd(0.05, 0.9), batch=2),
    *bad("adjusted_rate", "rate_vanished", "a rate of epochs, set for each batch", "1-D CNN",
         GAUGES, engines, error, sgd(0.02, 0.9), before=epochs, **LASTS),
    *bad("sixteen_bits", "input_scale,batchnorm_gap", "pixels of 16 bits",
         "trained EfficientNet, new head", lambda: headed(cnn.pretrained(library.efficientnet),
         "classifier.1", 8), changed(UNIT, lambda x: (65535 * x).round()), optimizer=adam(5e-3),
         prepare=nn.Module.eval, **FEW),
    *bad("frames_divided", "input_scale,constant_images,identical_images",
         "frames of 0 and 1 are divided by 255", "DQN's network", partial(agent, 3),
         changed(data.catch, lambda x: x / 255), optimizer=adam(1e-3), **PLAY),
    *loop("sigmoid_critic", "probabilities_into_loss", "sigmoid in front of BCEWithLogits",
          "GAN, MLP", game, 120, 10),
]  # fmt: skip
CASES = seen("2026-11-28T13:20", FIRST, SECOND)
