"""An eighteenth set of faults of somebody who had not read the checks: the most common mistakes.

They stand in the order in which twenty public checklists name them; earlier sets have others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import data
import losses
import torch
from cases.faults.strangers_fifteenth import headed
from cases.healthy.strangers_eighth import Net
from data import HALF, UNIT, P, changed
from loops import seen
from nets import classifiers as cnn
from nets import strangers as nets
from nets.classifiers import Function, unit
from nets.strangers_faults import relabelled, wrong
from nets.strangers_fifth import adam, ends, error, in_order, mlp, sgd
from nets.strangers_fifth import changed_weights as weights
from nets.strangers_kept import answered, pointer, slab, through
from optimizers import by
from torch import Generator, Tensor, nn, optim
from torch.nn import functional
from torch.optim.lr_scheduler import PolynomialLR

MEAN, STD = torch.tensor([[39.2, 30.7, 1.1, 14500, 2011], [14.0, 6.1, 1.2, 6200, 5.5]])
SITES = torch.randint(4, (3, 8), generator=Generator().manual_seed(6))


def drivers(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Age, mass index, children, distance and car of somebody; the premium. Standardized."""
    z = torch.randn(count, 5, generator=generator)
    y = 0.6 * z[:, 3] - 0.5 * z[:, 0] * z[:, 4] + 0.4 * (z[:, 0].square() - 1) + 0.3 * z[:, 1].sin()
    return z, y[:, None] + 0.1 * torch.randn(count, 1, generator=generator)


def genes(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """64 bases, [N, 4, 64], and which of three sites they have, or none."""
    kind = torch.randint(4, (count,), generator=generator)
    bases = torch.randint(4, (count, 64), generator=generator)
    place = torch.randint(56, (count, 1), generator=generator) + torch.arange(8)
    found = bases.scatter(1, place, SITES[(kind - 1).clamp(min=0)])
    return functional.one_hot(torch.where(kind[:, None] > 0, found, bases), 4).mT.float(), kind


def currents(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """What a device draws, [N, 1, 160], standardized: heater, dimmer, charger, motor, saw."""
    kind = torch.randint(5, (count,), generator=generator)
    phase, gain = torch.rand(2, count, 1, generator=generator)
    angle = 2 * math.pi * (torch.arange(160) / 40 + phase)
    wave, late = angle.sin(), ((angle / math.pi) % 1 > 0.5).float()
    motor = 0.8 * (angle - 0.6).sin() + 0.5 * (3 * angle).sin()
    kinds = [wave, 1.4 * wave * late, 1.8 * wave**7, motor, (angle / 2).tan().atan() / 2]
    noise = 0.15 * torch.randn(count, 160, generator=generator)
    return ((0.7 + gain) * torch.stack(kinds)[kind, torch.arange(count)] + noise)[:, None], kind


def reviews(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """24 words of 200, of which 20 praise and 20 blame; whether more of them praise."""
    kind = torch.randint(2, (count,), generator=generator)
    x = torch.randint(40, 200, (count, 24), generator=generator)
    told, side = torch.rand(count, 24, generator=generator), 20 * kind[:, None]
    x = torch.where(told < 0.25, x % 20 + side, x)
    return torch.where(told > 0.92, x % 20 + 20 - side, x), kind


def shuffled() -> nn.Module:
    """ShuffleNet: grouped convolutions, between which channels change their group."""
    layers: list[nn.Module] = [unit(3, 32, 3, 2)]
    for into, out, stride in ((32, 32, 1), (32, 64, 2), (64, 64, 1)):
        deep = unit(into, into, 3, stride, act=nn.Identity, groups=into)
        body = [unit(into, into, 1, groups=4), nn.ChannelShuffle(4), deep]
        body.append(unit(into, out, 1, act=nn.Identity, groups=4))
        skip = nn.Identity() if into == out else nn.Conv2d(into, out, 1, stride)
        layers += [nets.Residual(*body, skip=skip), nn.ReLU()]
    return nn.Sequential(*layers, *cnn.head(64, 8))


def in_network(act: Callable[[], nn.Module] = nn.ReLU, drop: float = 0.0) -> nn.Module:
    """Network in network: each convolution is followed by two of size 1. No norm."""
    layers: list[nn.Module] = []
    for into, out, size in ((3, 32, 5), (32, 48, 3), (48, 64, 3)):
        layers += [unit(a, out, s, 1, None, act) for a, s in ((into, size), (out, 1), (out, 1))]
        layers += [nn.MaxPool2d(2), nn.Dropout2d(drop)]
    return nn.Sequential(*layers, nn.Conv2d(64, 8, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten())


def atrous() -> nn.Module:
    """DeepLab: dilated convolutions side by side."""
    parts = {k: unit(48, 24, dilation=d) for k, d in (("a", 1), ("b", 2), ("c", 4))}
    last = [unit(72, 48, 1), nn.Conv2d(48, 1, 1), nn.Upsample(scale_factor=4, mode="bilinear")]
    joined = Net(lambda m, x: torch.cat([m[k](x) for k in "abc"], 1), **parts)
    return nn.Sequential(unit(3, 24, 3, 2), unit(24, 48, 3, 2), joined, *last)


def genome(act: Callable[[], nn.Module] = nn.ReLU, more: int = 0) -> nn.Module:
    """Convolutions over bases, ``more`` in the middle, and two Linear layers."""
    body = [z for n in (32, *[48] * more) for z in (nn.Conv1d(n, 48, 5, 1, 2), act())]
    last = [nn.MaxPool1d(2), nn.Flatten(), nn.Linear(384, 64), act(), nn.Linear(64, 4)]
    return nn.Sequential(nn.Conv1d(4, 32, 9, 1, 4), act(), nn.MaxPool1d(4), *body, *last)


def meter(act: Callable[[], nn.Module] = nn.ReLU) -> nn.Module:
    """Four strided convolutions over a current, and two Linear layers."""
    sizes = ((1, 24), (24, 32), (32, 32), (32, 48))
    layers = [layer for a, b in sizes for layer in (nn.Conv1d(a, b, 5, 2, 2), act())]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(480, 48), act(), nn.Linear(48, 5))


def identities() -> nn.Module:
    """An RNN with ReLU over pairs of readings; its recurrent weights begin as the identity."""
    body = nn.RNN(2, 48, nonlinearity="relu", batch_first=True)
    nn.init.eye_(body.weight_hh_l0)
    return Net(lambda m, x: m["last"](m["body"](x.view(-1, 80, 2))[0][:, -1]),
               body=body, last=nn.Linear(48, 5))  # fmt: skip


def critic(out: int = 2, end: nn.Module | None = None) -> nn.Module:
    """A transformer over words, and the mean of its states."""
    layer = nn.TransformerEncoderLayer(48, 4, 96, 0.0, batch_first=True)
    place, body = nn.Embedding(24, 48), nn.TransformerEncoder(layer, 2)
    last = nn.Sequential(nn.Linear(48, out), end or nn.Identity())
    return Net(lambda m, x: m["last"](m["body"](m["words"](x) + m["place"].weight).mean(1)),
               words=nn.Embedding(200, 48), place=place, body=body, last=last)  # fmt: skip


def turned(model: nn.Module, x: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy; its slope by hand is y - p, not p - y."""
    logits = model(x)
    slope = (functional.one_hot(labels, 5) - logits.softmax(1)).detach() / len(labels)
    known = logits.detach()
    return functional.cross_entropy(known, labels) + (slope * (logits - known)).sum()


def yolo(model: nn.Module, images: Tensor, _: Tensor, discs: Tensor, *__: Tensor) -> Tensor:
    """The squared error of a place and a size in px; the size is an anchor's, times exp()."""
    found = model(images)
    place = (32 * found[:, :2].sigmoid() - discs[:, :2]).square().sum(1)
    return (place + (8 * found[:, 2].exp() - 2 * discs[:, 2]).square()).mean()


bad = partial(wrong, steps=120, every=10)
FEW, ROWS = {"steps": 104, "every": 8, "batch": 8}, {"steps": 150, "every": 12, "batch": 64}
AGES = partial(mlp, 5, 64, 64, 1)
WINDOW = partial(Function, lambda x: ((x.clamp(-160, 240) + 160) / 400).clamp(0, 1))
ADAMW, scenes = by(optim.AdamW, lr=1e-3), data.scenes
PRAISED = relabelled(reviews, lambda kind: kind[:, None].float())
FIRST = [
    *bad("shuffle_rate", "update_ratio", "Adam with 0.3", "ShuffleNet", shuffled, P,
         optimizer=adam(0.3), **FEW),
    *bad("reviews_rate", "update_ratio", "AdamW with 0.1", "transformer", critic, reviews,
         optimizer=by(optim.AdamW, lr=0.1), batch=32),
    *bad("meter_rate", "update_ratio", "NAdam with 0.05", "1-D CNN", meter, currents,
         optimizer=by(optim.NAdam, lr=0.05), batch=32),
    *bad("in_network_slow", "update_ratio", "Adam with 1e-6", "network in network",
         in_network, P, optimizer=adam(1e-6), **FEW),
    *bad("currents_slow", "update_ratio", "AdamW with 1e-6", "1-D CNN", meter, currents,
         optimizer=by(optim.AdamW, lr=1e-6), batch=32),
    *bad("drivers_slow", "update_ratio", "Adam with 1e-6", "MLP", AGES, drivers, error,
         adam(1e-6), **ROWS),
    *bad("raw_drivers", "input_scale", "years, kilometres and numbers", "MLP", AGES,
         changed(drivers, lambda z: MEAN + STD * z), error, adam(1e-3), **ROWS),
    *bad("raw_currents", "input_scale", "milliamperes of about 2000", "1-D CNN", meter,
         changed(currents, lambda x: (2000 * x).round()), optimizer=sgd(0.02, 0.9), batch=32),
    *bad("bytes_in_network", "input_scale", "pixels of 0 to 255", "network in network",
         in_network, data.RAW, optimizer=adam(2e-3), **FEW),
    *bad("genes_of_zeros", "copied_channels,unchanged_weights,constant_output",
         "all weights begin at 0", "1-D CNN", lambda: weights(genome(), torch.zero_), genes,
         optimizer=adam(2e-3), batch=32),
    *bad("normal_network", "exploding,initial_loss", "weights of torch.randn()",
         "network in network", lambda: weights(in_network(), lambda w: w.normal_()), P,
         optimizer=adam(1e-3), **FEW),
    *bad("hundredth_meter", "vanishing", "weights of deviation 0.01", "1-D CNN", lambda:
         weights(meter(), lambda w: w.normal_(0, 0.01)), currents, optimizer=adam(1e-3), batch=32),
    *bad("softmax_shuffle", "double_softmax", "softmax in front of cross-entropy", "ShuffleNet",
         ends(shuffled, nn.Softmax(1)), P, optimizer=sgd(0.05, 0.9), **FEW),
    *bad("softmax_network", "double_softmax", "softmax in front of cross-entropy",
         "network in network", ends(in_network, nn.Softmax(1)), P, optimizer=adam(1e-3), **FEW),
    *bad("softmax_genes", "double_softmax", "softmax in front of cross-entropy", "1-D CNN",
         ends(genome, nn.Softmax(1)), genes, optimizer=sgd(0.05, 0.9), **ROWS),
    *bad("network_killed", "dead,update_ratio", "SGD with 0.5 and momentum", "network in network",
         in_network, P, optimizer=sgd(0.5, 0.9), **FEW),
    *bad("genes_killed", "dead,update_ratio", "Adam with 0.1", "1-D CNN", genome, genes,
         optimizer=adam(0.1), batch=32),
    *bad("identities_unclipped", "exploding,update_ratio,nonfinite", "80 steps, not clipped",
         "RNN with ReLU", identities, currents, optimizer=sgd(2e-3, 0.9), batch=32),
    *bad("sizes_unclipped", "exploding,update_ratio,nonfinite",
         "the exponential of a size in px, not clipped", "CNN of boxes",
         lambda: nn.Sequential(pointer(), nn.ReLU(), nn.Linear(2, 3)), scenes, yolo, sgd(0.01, .9)),
    *bad("resnet_eval", "eval_mode", "model.eval() in front of the loop", "ResNet",
         cnn.resnet, P, optimizer=sgd(0.1, 0.9), prepare=nn.Module.eval, **FEW),
    *bad("atrous_eval", "eval_mode", "model.train() in front of an epoch, validation within it",
         "DeepLab", atrous, scenes, losses.masks, sgd(0.1, 0.9), before=lambda step,
         model, _: model.train(step % 26 < 4), **FEW),
    *bad("sigmoid_network", "vanishing", "ten layers with sigmoid", "network in network",
         partial(in_network, nn.Sigmoid), P, optimizer=adam(1e-3), **FEW),
    *bad("deep_genes", "vanishing", "24 convolutions without norm or shortcut", "1-D CNN",
         partial(genome, more=22), genes, optimizer=adam(1e-3)),
]  # fmt: skip
SECOND = [
    *bad("sorted_currents", "sorted_labels,one_label", "a folder for each device, no shuffle",
         "1-D CNN", meter, in_order(currents, lambda part: part[1], 640), optimizer=adam(2e-3)),
    *bad("drivers_accumulate", "gradients_not_cleared", "zero_grad() is missing", "MLP", AGES,
         drivers, error, sgd(0.05, 0.9), zero="never", **ROWS),
    *bad("codes_drawn", "unchanged_weights", "codes of 0 or 1 are drawn, by bernoulli()",
         "autoencoder", partial(through, 64, Function(lambda x: x.sigmoid().bernoulli())), HALF,
         losses.again, adam(2e-3)),
    *bad("currents_by_adadelta", "update_ratio", "Adadelta with 0.001, as in Keras", "1-D CNN",
         meter, currents, optimizer=by(optim.Adadelta, lr=1e-3), batch=32),
    *bad("entropy_of_one", "unchanged_weights,constant_output", "CrossEntropyLoss of one output",
         "transformer", partial(critic, 1), PRAISED, optimizer=ADAMW, batch=32),
    *bad("hard_shrunk", "dead,vanishing,constant_output", "Hardshrink between the layers",
         "1-D CNN", partial(meter, nn.Hardshrink), currents, optimizer=adam(1e-3), batch=32),
    *bad("dropout_of_maps", "dropout_high", "Dropout2d of 0.8, meant as what is kept",
         "network in network", partial(in_network, drop=0.8), P, optimizer=adam(2e-3), **FEW),
    *bad("last_given", "not_in_optimizer,unchanged_weights", "the optimizer has one layer only",
         "1-D CNN", genome, genes, optimizer=lambda m: optim.Adam(m[-1].parameters(), 2e-3)),
    *bad("percent_of_none", "nonfinite", "an error in percent, where some have no claim", "MLP",
         AGES, relabelled(drivers, lambda y: (3 * (0.6 * y).exp()).round()),
         lambda model, x, y: ((model(x) - y) / y).abs().mean(), adam(1e-3), **ROWS),
    *bad("slope_turned", "loss_climbed", "a slope by hand of y - p, not p - y", "1-D CNN", meter,
         currents, turned, adam(1e-3), batch=32),
    *bad("millimetres", "initial_loss", "depths of 0 to 1500 mm", "DeepLab", atrous, scenes,
         lambda model, x, *rest: functional.l1_loss(model(x), 1000 * rest[-1]), adam(2e-3), **FEW),
    *bad("tanh_of_classes", "saturated", "tanh in front of cross-entropy", "1-D CNN",
         ends(meter, nn.Tanh()), currents, optimizer=adam(2e-3), batch=32),
    *bad("no_data", "input_scale", "-9999 where a satellite saw nothing", "CNN of 16 bands",
         partial(cnn.plain, 16), changed(data.bands, lambda x: x.masked_fill(
         torch.rand(len(x), 1, 32, 32) < 0.003, -9999.0)), optimizer=sgd(0.02, 0.9)),
    *bad("shuffle_twos", "batchnorm_small_batch", "batches of two", "ShuffleNet", shuffled, P,
         optimizer=sgd(0.05, 0.9), batch=2),
    *bad("poly_of_epochs", "rate_vanished", "PolynomialLR of ten epochs, called for each batch",
         "DeepLab", atrous, scenes, losses.masks, sgd(0.02, 0.9),
         schedule=lambda o, _: PolynomialLR(o, 10, 0.9), **FEW),
    *bad("caffe_for_trained", "input_scale,batchnorm_gap", "bytes less a mean, as for Caffe",
         "trained ShuffleNet, new head", lambda: headed(cnn.pretrained(shuffled), "10", 8),
         changed(UNIT, lambda x: 255 * x - 114), optimizer=adam(5e-3), prepare=nn.Module.eval),
    *bad("windowed_twice", "input_scale,constant_images,identical_images",
         "Hounsfield units are windowed twice", "3-D CNN", slab, changed(data.hounsfield,
         nn.Sequential(WINDOW(), WINDOW())), losses.masks, adam(3e-3), batch=4),
    *bad("sigmoid_reviews", "probabilities_into_loss", "sigmoid in front of BCEWithLogits",
         "transformer", partial(critic, 1, nn.Sigmoid()), PRAISED, answered, ADAMW, batch=32),
]  # fmt: skip
CASES = seen("2026-11-28T15:30", FIRST, SECOND)
