"""A nineteenth set of faults of somebody who had not read the checks: the most common mistakes.

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
from optimizers import by
from torch import Generator, Tensor, nn, optim
from torch.nn import functional

MEAN, STD = torch.tensor([[194.0, 104, 2970, 15.6, 1976, 5.5], [105.0, 38, 847, 2.8, 3.7, 1.7]])


def cars(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Displacement, power, weight, acceleration, year, cylinders; the fuel. Standardized."""
    z = torch.randn(count, 6, generator=generator)
    y = 0.6 * z[:, 2] + 0.4 * z[:, 0] * z[:, 1] - 0.4 * (z[:, 4].square() - 1) + 0.4 * z[:, 3].sin()
    return z, y[:, None] + 0.1 * torch.randn(count, 1, generator=generator)


def strokes(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Where a pen was, [N, 2, 64]: a circle, a square, a triangle, a spiral or a star."""
    kind = torch.randint(5, (count,), generator=generator)
    turn, start, size = torch.rand(3, count, 1, generator=generator)
    way = torch.arange(64) / 64
    angle, along = 2 * math.pi * (way + start), 2 * math.pi * (way + start + turn)
    third = (along % (2 * math.pi / 3) - math.pi / 3).cos()
    square = 0.8 / torch.maximum(along.sin().abs(), along.cos().abs())
    kinds = [torch.ones_like(along), square, 0.6 / third, (0.3 + way).expand_as(along)]
    far = torch.stack([*kinds, 0.8 + 0.3 * (5 * along).cos()])[kind, torch.arange(count)]
    place = ((0.8 + 0.6 * size) * far)[:, None] * torch.stack([angle.cos(), angle.sin()], 1)
    return place + 0.04 * torch.randn(count, 2, 64, generator=generator), kind


def tickets(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """30 words of 300, of which each of 5 departments has 12 of its own; and the department."""
    kind = torch.randint(5, (count,), generator=generator)
    x = torch.randint(300, (count, 30), generator=generator)
    told = torch.rand(count, 30, generator=generator)
    return torch.where(told < 0.15, x % 12 + 12 * kind[:, None], x), kind


def lab(images: Tensor) -> Tensor:
    """About L*a*b*: lightness of 0 to 100, and two colours."""
    return 100 * torch.cat([images.mean(1, keepdim=True), -images.diff(dim=1)], 1)


def next_net() -> nn.Module:
    """ResNeXt: residual bottlenecks of eight groups."""
    layers: list[nn.Module] = [unit(3, 32, 3, 2)]
    for into, out, stride in ((32, 48, 1), (48, 64, 2), (64, 64, 1)):
        body = [unit(into, into, 1), unit(into, into, 3, stride, groups=8)]
        skip = nn.Identity() if into == out else nn.Conv2d(into, out, 1, stride)
        layers += [nets.Residual(*body, unit(into, out, 1, act=nn.Identity), skip=skip), nn.ReLU()]
    return nn.Sequential(*layers, *cnn.head(64, 8))


def keyword(cut: Callable[[Tensor], Tensor] = lambda x: x) -> nn.Module:
    """DS-CNN: depthwise and pointwise convolutions over a spectrogram."""
    layers: list[nn.Module] = [unit(1, 32, 5, 2)]
    for into, out in ((32, 48), (48, 48), (48, 64)):
        layers += [unit(into, into, groups=into), unit(into, out, 1)]
    return nn.Sequential(*layers, Function(cut), *cnn.head(64, 6))


def pyramid() -> nn.Module:
    """PSPNet: means over squares of four sizes stand beside the map."""
    up, parts = nn.Upsample((8, 8), mode="bilinear"), (("a", 1), ("b", 2), ("c", 4))
    pools = {k: nn.Sequential(nn.AdaptiveAvgPool2d(n), unit(48, 12, 1), up) for k, n in parts}
    joined = Net(lambda m, x: torch.cat([x, *(m[k](x) for k in "abc")], 1), **pools)
    last = [unit(84, 48), nn.Conv2d(48, 1, 1), nn.Upsample(scale_factor=4, mode="bilinear")]
    return nn.Sequential(unit(3, 24, 3, 2), unit(24, 48, 3, 2), joined, *last)


def painter(more: int = 0) -> nn.Module:
    """From grey to colours, -1 to 1; ``more`` convolutions in the middle."""
    sizes = [(1, 24, 5, 1), (24, 32, 3, 2), *[(32, 32, 3, 1)] * (1 + more)]
    last = [nn.ConvTranspose2d(32, 24, 4, 2, 1), nn.ReLU(), nn.Conv2d(24, 3, 3, 1, 1)]
    return nn.Sequential(*(unit(*s, norm=None) for s in sizes), *last)


def pen(act: Callable[[], nn.Module] = nn.ReLU, more: int = 0) -> nn.Module:
    """Strided convolutions over a stroke, ``more`` after them, and two Linear layers."""
    sizes = [(2, 24, 2), (24, 32, 2), (32, 48, 2), *[(48, 48, 1)] * more]
    layers = [z for a, b, stride in sizes for z in (nn.Conv1d(a, b, 5, stride, 2), act())]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(384, 48), act(), nn.Linear(48, 5))


def both_ways() -> nn.Module:
    """A GRU in both directions over a stroke, and the mean of its states."""
    parts = {"body": nn.GRU(2, 32, batch_first=True, bidirectional=True), "last": nn.Linear(64, 5)}
    return Net(lambda m, x: m["last"](m["body"](x.mT)[0].mean(1)), **parts)


def bag() -> nn.Module:
    """fastText: the mean of the words, and two Linear layers."""
    return nn.Sequential(nn.EmbeddingBag(300, 32), nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 5))


def tabular() -> nn.Module:
    """FT-Transformer: each column is a token."""
    layer = nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True)
    tokens = Net(lambda m, x: x[..., None] * m["scale"].weight + m["shift"].weight,
                 scale=nn.Embedding(6, 32), shift=nn.Embedding(6, 32))  # fmt: skip
    means = Function(lambda x: x.mean(1))
    return nn.Sequential(tokens, nn.TransformerEncoder(layer, 2), means, nn.Linear(32, 1))


def by_hand(x: Tensor) -> Tensor:
    """A sigmoid; its slope by hand is x (1 - x) of the input, not of what comes out."""
    slope = x.square() / 2 - x**3 / 3
    return slope + (x.sigmoid() - slope).detach()


def coloured(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    return functional.mse_loss(model(images.mean(1, keepdim=True)), images)


def likely(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """The likelihood of a normal distribution, of which the logarithm of the width is learned."""
    mean, width = model(x).chunk(2, 1)
    return (width + 0.5 * ((y - mean) * (-width).exp()).square()).mean()


def contrast(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Contrastive loss; the squares of all distances are a² + b² - 2ab."""
    code = model(images)
    norm, same = code.square().sum(1), labels[:, None] == labels
    far = (norm[:, None] + norm - 2 * code @ code.T).sqrt()
    return torch.where(same, far.square(), (1 - far).clamp(min=0).square()).mean()


bad, SOFTMAX = partial(wrong, steps=120, every=10), "softmax in front of cross-entropy"
FEW, ROWS = {"steps": 104, "every": 8, "batch": 8}, {"steps": 150, "every": 12, "batch": 64}
CARS, scenes, heard = partial(mlp, 6, 64, 64, 1), data.scenes, data.spectrograms
FIRST = [
    *bad("next_rate", "update_ratio", "AdamW with 0.3", "ResNeXt", next_net, P,
         optimizer=by(optim.AdamW, lr=0.3), **FEW),
    *bad("both_ways_rate", "update_ratio", "Adam with 0.1", "GRU in both directions", both_ways,
         strokes, optimizer=adam(0.1), batch=32),
    *bad("painter_rate", "update_ratio", "RMSprop with 0.05", "CNN of colours", painter, HALF,
         coloured, by(optim.RMSprop, lr=0.05), **FEW),
    *bad("pyramid_slow", "update_ratio", "SGD with 1e-5 and momentum", "PSPNet", pyramid, scenes,
         losses.masks, sgd(1e-5, 0.9), **FEW),
    *bad("keyword_slow", "update_ratio", "Adam with 1e-6", "DS-CNN", keyword, heard,
         optimizer=adam(1e-6), **FEW),
    *bad("tabular_slow", "update_ratio", "AdamW with 1e-6", "FT-Transformer", tabular, cars, error,
         by(optim.AdamW, lr=1e-6), **ROWS),
    *bad("raw_cars", "input_scale", "cubic centimetres, pounds and years", "MLP", CARS,
         changed(cars, lambda z: MEAN + STD * z), error, adam(1e-3), **ROWS),
    *bad("raw_strokes", "input_scale", "places of 0 to 1000 px", "1-D CNN", pen,
         changed(strokes, lambda x: (500 + 280 * x).round()), optimizer=adam(1e-3), batch=32),
    *bad("bytes_in_painter", "input_scale", "grey of 0 to 255", "CNN of colours", painter, HALF,
         lambda model, x, _: error(model, 127.5 + 127.5 * x.mean(1, True), x), adam(2e-3), **FEW),
    *bad("both_ways_of_zeros", "copied_channels,unchanged_weights,constant_output",
         "all weights begin at 0", "GRU in both directions", lambda: weights(both_ways(),
         torch.zero_), strokes, optimizer=adam(2e-3), batch=32),
    *bad("normal_pen", "exploding,initial_loss", "weights of torch.randn()", "1-D CNN", lambda:
         weights(pen(), lambda w: w.normal_()), strokes, optimizer=adam(1e-3), batch=32),
    *bad("thousandth_painter", "vanishing", "weights of deviation 0.001", "CNN of colours", lambda:
         weights(painter(), lambda w: w.normal_(0, 0.001)), HALF, coloured, adam(1e-3), **FEW),
    *bad("softmax_pen", "double_softmax", SOFTMAX, "1-D CNN", ends(pen, nn.Softmax(1)), strokes,
         optimizer=adam(1e-3), batch=32),
    *bad("softmax_keyword", "double_softmax", SOFTMAX, "DS-CNN", ends(keyword, nn.Softmax(1)),
         heard, optimizer=sgd(0.02, 0.9), **FEW),
    *bad("softmax_tickets", "double_softmax", SOFTMAX, "fastText", ends(bag, nn.Softmax(1)),
         tickets, optimizer=adam(2e-3), batch=32),
    *bad("pen_killed", "dead,update_ratio", "Adam with 0.1", "1-D CNN", pen, strokes,
         optimizer=adam(0.1), batch=32),
    *bad("painter_killed", "dead,update_ratio", "SGD with 0.5 and momentum", "CNN of colours",
         painter, HALF, coloured, sgd(0.5, 0.9), **FEW),
    *bad("likelihood_unclipped", "exploding,update_ratio,nonfinite", "widths of each, unclipped",
         "MLP", partial(mlp, 6, 64, 64, 2), cars, likely, sgd(0.05, 0.9), **ROWS),
    *bad("unrolled_sums", "exploding,update_ratio,nonfinite", "twelve steps of size 1, no norm",
         "CNN, unrolled", lambda: nn.Sequential(nn.Conv2d(3, 24, 5, 4, 2), *[nets.Residual(
         unit(24, 48, norm=None), nn.Conv2d(48, 24, 3, 1, 1))] * 12, *cnn.head(24, 8)), P,
         optimizer=sgd(0.01, 0.9), **FEW),
    *bad("next_eval", "eval_mode", "model.eval() in front of the loop", "ResNeXt", next_net, P,
         optimizer=sgd(0.1, 0.9), prepare=nn.Module.eval, **FEW),
    *bad("keyword_eval", "eval_mode", "no model.train() after the first validation", "DS-CNN",
         keyword, heard, optimizer=sgd(0.02, 0.9), before=lambda step, model, _:
         model.train(step < 4), **FEW),
    *bad("sigmoid_pen", "vanishing", "nine layers with sigmoid", "1-D CNN",
         partial(pen, nn.Sigmoid, 5), strokes, optimizer=adam(1e-3), batch=32),
    *bad("deep_painter", "vanishing", "25 convolutions without norm or shortcut",
         "CNN of colours", partial(painter, 20), HALF, coloured, sgd(0.05, 0.9), **FEW),
]  # fmt: skip
SECOND = [
    *bad("sorted_tickets", "sorted_labels,one_label", "a file for each department, no shuffle",
         "fastText", bag, in_order(tickets, lambda part: part[1], 640), optimizer=adam(5e-3)),
    *bad("pen_accumulates", "gradients_not_cleared", "zero_grad() is missing", "1-D CNN", pen,
         strokes, optimizer=sgd(0.02, 0.9), zero="never", batch=32),
    *bad("features_by_data", "unchanged_weights", "the head is given features.data", "DS-CNN",
         partial(keyword, lambda x: x.data), heard, optimizer=adam(1e-3), **FEW),
    *bad("tickets_by_sgd", "update_ratio", "SGD with 0.01", "fastText", bag, tickets,
         optimizer=sgd(0.01), batch=32),
    *bad("absolute_classes", "constant_output", "absolute error of ones and zeros", "1-D CNN", pen,
         strokes, lambda model, x, y: functional.l1_loss(model(x), torch.eye(5)[y]), batch=32),
    *bad("softmax_in_table", "vanishing", "softmax between the layers", "MLP",
         partial(mlp, 6, 64, 64, 64, 1, act=partial(nn.Softmax, 1)), cars, error, **ROWS),
    *bad("decay_in_adam", "constant_output,vanishing", "AdamW's decay of 0.1, in Adam", "1-D CNN",
         pen, strokes, optimizer=by(optim.Adam, lr=1e-3, weight_decay=0.1), batch=32),
    *bad("undecayed_given", "not_in_optimizer,unchanged_weights", "the group with decay is lost",
         "ResNeXt", next_net, P, optimizer=lambda m: optim.AdamW(
         [{"params": [p for p in m.parameters() if p.ndim < 2], "weight_decay": 0}], 1e-3), **FEW),
    *bad("roots_of_distances", "nonfinite", "the root of a distance of 0", "CNN of codes",
         partial(cnn.encoder, 16), P, contrast, adam(1e-3), **FEW),
    *bad("sigmoid_by_hand", "vanishing", "a sigmoid's slope by hand, of its input", "MLP",
         partial(mlp, 128, 96, 64, 5, act=partial(Function, by_hand)), strokes, batch=32),
    *bad("raw_emissions", "initial_loss", "grams of about 150", "FT-Transformer", tabular,
         relabelled(cars, lambda y: 150 + 40 * y), error, adam(1e-3), **ROWS),
    *bad("tanh_of_places", "saturated", "tanh for places in px", "CNN of keypoints",
         ends(partial(cnn.encoder, 2), nn.Tanh()), scenes, lambda model, x, *rest: error(model, x,
         rest[1][:, :2]), adam(1e-3), **FEW),
    *bad("unknown_power", "nonfinite", "NaN where a power is not known", "MLP", CARS,
         changed(cars, lambda z: z.masked_fill((torch.rand(len(z), 1) < 0.015) &
         (torch.arange(6) == 1), math.nan)), error, adam(1e-3), **ROWS),
    *bad("keyword_twos", "batchnorm_small_batch", "batches of two", "DS-CNN", keyword, heard,
         optimizer=sgd(0.05, 0.9), batch=2),
    *bad("steps_of_epochs", "rate_vanished", "a tenth each third epoch, called for each batch",
         "ResNeXt", next_net, P, optimizer=sgd(0.02, 0.9), schedule=lambda o, _:
         optim.lr_scheduler.LambdaLR(o, lambda epoch: 0.1 ** (epoch // 3)), **FEW),
    *bad("lab_for_trained", "input_scale,batchnorm_gap", "L*a*b*, not red, green and blue",
         "trained ResNeXt, new head", lambda: headed(cnn.pretrained(next_net), "10", 8),
         changed(UNIT, lab), optimizer=adam(5e-3), prepare=nn.Module.eval),
    *bad("grey_divided_twice", "input_scale", "grey is divided by 255 twice", "CNN of colours",
         painter, UNIT, lambda model, x, _: error(model, x.mean(1, True) / 255, x), **FEW),
    *bad("sigmoid_of_labels", "probabilities_into_loss", "sigmoid, MultiLabelSoftMarginLoss",
         "ResNeXt", ends(next_net, nn.Sigmoid()), P, lambda model, x, y:
         functional.multilabel_soft_margin_loss(model(x), torch.eye(8)[y]), **FEW),
]  # fmt: skip
CASES = seen("2026-11-28T16:05", FIRST, SECOND)
