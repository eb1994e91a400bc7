"""A seventeenth set of faults of somebody who had not read the checks: the most common mistakes.

They stand in the order in which twenty public checklists name them; earlier sets have others.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import data
import losses
import torch
from cases.faults.strangers_fifteenth import headed
from cases.healthy.strangers_eighth import Net
from cases.healthy.strangers_maps import agent
from data import HALF, UNIT, P, changed
from faults import at
from loops import seen
from nets import classifiers as cnn
from nets import library
from nets.classifiers import Function, unit
from nets.dense import SegNet
from nets.strangers_faults import relabelled, wrong
from nets.strangers_fifth import adam, ends, error, in_order, mlp, sgd
from nets.strangers_fifth import changed_weights as weights
from nets.strangers_kept import answered, through, twins
from optimizers import by
from torch import Generator, Tensor, nn, optim
from torch.nn import functional
from torch.optim.lr_scheduler import LambdaLR

MEAN, STD = torch.tensor([[14.1, 19.3, 92, 655, 0.096], [3.5, 4.3, 24, 352, 0.014]])
SPOKEN = (1.2 * torch.randn(5, 26, generator=Generator().manual_seed(3))).softmax(1)


def tumours(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Radius, texture, girth, area, smoothness of cells, standardized; benign or malignant."""
    z = torch.randn(count, 5, generator=generator)
    risk = z[:, 0] + 0.8 * z[:, 1] * z[:, 4] + 0.6 * z[:, 3] - 0.5 * z[:, 2].square() + 0.4
    return z, (risk + 0.2 * torch.randn(count, generator=generator) > 0).long()


def abalones(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Length, width, height, weight and shell of an animal; its age. All are standardized."""
    z = torch.randn(count, 5, generator=generator)
    y = 0.6 * z[:, 4] + 0.4 * z[:, 0] * z[:, 3] - 0.4 * (2 * z[:, 1]).cos() + 0.3 * z[:, 2].abs()
    return z, y[:, None] - 0.25 + 0.1 * torch.randn(count, 1, generator=generator)


def muscles(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Four electrodes on a forearm, [N, 4, 128], standardized, and which of four grips it is."""
    kind = torch.randint(4, (count,), generator=generator)
    where, gain = torch.rand(2, count, 1, 1, generator=generator)
    near = (-((torch.arange(128) / 128 - 0.3 - 0.4 * where) / 0.2).square()).exp()
    strong = torch.tensor([[2, 0.4, 0.4, 1], [0.4, 2, 1, 0.4], [1, 0.4, 2, 0.4], [0.4, 1, 0.4, 2]])
    noise = torch.randn(count, 4, 130, generator=generator)
    wave = 0.8 * noise[..., 2:] + 0.6 * noise[..., 1:-1] - 0.6 * noise[..., :-2]
    return wave * (0.2 + (0.6 + gain) * near * strong[kind, :, None]), kind


def names(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Ten letters of a name, and its language."""
    kind = torch.randint(5, (count,), generator=generator)
    return torch.multinomial(SPOKEN[kind], 10, True, generator=generator), kind


def clicks(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """A user, a page and an hour, and whether an advertisement was clicked."""
    x = torch.randint(24, (count, 3), generator=generator)
    liked = torch.randn(3, 24, 4, generator=Generator().manual_seed(4))
    taste = [part[x[:, n]] for n, part in enumerate(liked)]
    return x, ((taste[0] * taste[1]).sum(1) + taste[2][:, 0] > 0).float()[:, None]


def squeeze_net(classes: int = 8) -> nn.Module:
    """SqueezeNet: each block narrows, then widens by kernels of two sizes. No norm."""

    def fire(into: int, few: int, out: int) -> nn.Module:
        def run(m: nn.ModuleDict, x: Tensor) -> Tensor:
            return torch.cat([m["one"](y := m["squeeze"](x)), m["three"](y)], 1)

        parts = {"squeeze": unit(into, few, 1, norm=None), "one": unit(few, out, 1, norm=None)}
        return Net(run, **parts, three=unit(few, out, 3, norm=None))

    layers = [unit(3, 24, 3, 2, None), fire(24, 12, 24), nn.MaxPool2d(2), fire(48, 16, 32)]
    return nn.Sequential(*layers, fire(64, 16, 32), *cnn.head(64, classes))


def separable(normed_head: bool = False) -> nn.Module:
    """MobileNet's first version: depthwise, then pointwise convolutions."""
    layers: list[nn.Module] = [unit(3, 24, 3, 2)]
    for into, out, stride in ((24, 32, 1), (32, 48, 2), (48, 64, 1), (64, 64, 2)):
        layers += [unit(into, into, 3, stride, groups=into), unit(into, out, 1)]
    more = [nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU()] if normed_head else []
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), *more, nn.Linear(64, 8))


def grip(act: Callable[[], nn.Module] = nn.ReLU, more: int = 0) -> nn.Module:
    """Three strided convolutions over what electrodes record, and two Linear layers."""
    sizes = [(4, 24, 7, 2, 3), (24, 32, 7, 2, 3), (32, 32, 7, 2, 3), *[(32, 32, 3, 1, 1)] * more]
    layers = [layer for size in sizes for layer in (nn.Conv1d(*size), act())]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(512, 48), act(), nn.Linear(48, 4))


def language(drop: float = 0.0) -> nn.Module:
    """An LSTM over letters, to and fro, and the mean of its states."""
    body = nn.LSTM(24, 32, 2, batch_first=True, bidirectional=True, dropout=drop)
    last = nn.Sequential(nn.Dropout(drop), nn.Linear(64, 32), nn.ReLU(), nn.Dropout(drop))
    return Net(lambda m, x: m["last"](m["body"](m["letters"](x))[0].mean(1)), body=body,
               letters=nn.Embedding(26, 24), last=last.append(nn.Linear(32, 5)))  # fmt: skip


def deep_and_wide(*end: nn.Module) -> nn.Module:
    fields = [Function(lambda x: x + 24 * torch.arange(3)), nn.Embedding(72, 12), nn.Flatten()]
    return nn.Sequential(*fields, mlp(36, 64, 32, 1), *end)


def cropped() -> nn.Module:
    """One network finds where to look, by whole pixels; the other one looks there."""

    def run(m: nn.ModuleDict, x: Tensor) -> Tensor:
        at = (16 * m["where"](x).sigmoid()).long().tolist()
        parts = [one[:, r : r + 12, c : c + 12] for one, (r, c) in zip(x, at, strict=True)]
        return m["what"](torch.stack(parts))

    where = nn.Sequential(unit(1, 16, 5, 2, None), unit(16, 16, 3, 2, None), mlp(784, 32, 2))
    what = nn.Sequential(unit(1, 16, norm=None), nn.MaxPool2d(2), mlp(576, 64, 10))
    return Net(run, where=where, what=what)


def rewarded(model: nn.Module, frames: Tensor, best: Tensor) -> Tensor:
    """REINFORCE; rewards are standardized, also if all are the same."""
    chance = model(frames).log_softmax(1)
    move = (chance - torch.empty_like(chance).exponential_().log()).argmax(1)
    reward = (move == best).float()
    return -(chance.gather(1, move[:, None])[:, 0] * (reward - reward.mean()) / reward.std()).mean()


def cosines(model: nn.Module, pair: Tensor, same: Tensor) -> Tensor:
    """CosineEmbeddingLoss, which wants -1 for pairs that differ, not 0."""
    return functional.cosine_embedding_loss(*map(model, pair.split(1, 1)), same)


bad = partial(wrong, steps=120, every=10)
FEW, ROWS = {"steps": 104, "every": 8, "batch": 8}, {"steps": 150, "every": 12, "batch": 64}
MANY, CODES = {"batch": 32}, partial(through, 64)
EVENTS = relabelled(abalones, lambda y: (150 * (0.6 * y).exp()).round())
SOFT = partial(Function, lambda x: x.exp() + (functional.softplus(x) - x.exp()).detach())
CELLS, AGES = partial(mlp, 5, 32, 32, 2), partial(mlp, 5, 64, 64, 1)
FIRST = [
    *bad("separable_rate", "update_ratio", "AdamW with 0.3", "MobileNet v1", separable, P,
         optimizer=by(optim.AdamW, lr=0.3), **FEW),
    *bad("clicks_rate", "update_ratio", "Adam with 0.3", "embeddings and MLP", deep_and_wide,
         clicks, answered, adam(0.3), **ROWS),
    *bad("codes_rate", "update_ratio", "Adam with 0.05", "autoencoder", CODES, HALF,
         losses.again, adam(0.05)),
    *bad("seg_net_slow", "update_ratio", "Adam with 1e-6", "SegNet", SegNet, data.scenes,
         losses.masks, adam(1e-6), **FEW),
    *bad("language_slow", "update_ratio", "Adam with 1e-6", "LSTM of names", language,
         names, optimizer=adam(1e-6), **MANY),
    *bad("grips_slow", "update_ratio", "SGD with 1e-5 and momentum", "1-D CNN", grip, muscles,
         optimizer=sgd(1e-5, 0.9)),
    *bad("raw_tumours", "input_scale", "micrometres and their squares", "MLP", CELLS,
         changed(tumours, lambda z: MEAN + STD * z), optimizer=sgd(0.01, 0.9), **ROWS),
    *bad("raw_electrodes", "input_scale", "microvolts of about 300", "1-D CNN", grip,
         changed(muscles, lambda x: 300 * x), optimizer=sgd(0.05, 0.9)),
    *bad("bytes_in_codes", "input_scale", "pixels of 0 to 255", "autoencoder", CODES, HALF,
         lambda model, x, _: functional.mse_loss(model(127.5 * (x + 1)), x), adam(2e-3)),
    *bad("clicks_of_zeros", "copied_channels,unchanged_weights,constant_output",
         "all weights begin at 0", "embeddings and MLP", lambda: weights(deep_and_wide(),
         torch.zero_), clicks, answered, adam(0.02), **ROWS),
    *bad("normal_squeeze", "exploding,initial_loss", "weights of torch.randn()", "SqueezeNet",
         lambda: weights(squeeze_net(), lambda w: w.normal_()), P, optimizer=adam(1e-3), **FEW),
    *bad("hundredth_squeeze", "vanishing", "weights of deviation 0.01", "SqueezeNet", lambda:
         weights(squeeze_net(), lambda w: w.normal_(0, 0.01)), P, optimizer=adam(1e-3), **FEW),
    *bad("softmax_separable", "double_softmax", "softmax in front of cross-entropy",
         "MobileNet v1", ends(separable, nn.Softmax(1)), P, optimizer=sgd(0.05, 0.9), **FEW),
    *bad("softmax_language", "double_softmax", "softmax in front of cross-entropy",
         "LSTM of names", ends(language, nn.Softmax(1)), names, optimizer=sgd(0.05, 0.9), **MANY),
    *bad("softmax_grips", "double_softmax", "softmax in front of cross-entropy", "1-D CNN",
         ends(grip, nn.Softmax(1)), muscles, optimizer=sgd(0.05, 0.9)),
    *bad("squeeze_killed", "dead,update_ratio", "Adam with 0.05", "SqueezeNet", squeeze_net, P,
         optimizer=adam(0.05), **FEW),
    *bad("grips_killed", "dead,update_ratio", "SGD with 0.5 and momentum", "1-D CNN", grip, muscles,
         optimizer=sgd(0.5, 0.9)),
    *bad("counts_unclipped", "exploding,update_ratio,nonfinite",
         "the exponential of an answer, not clipped", "MLP, Poisson", AGES, EVENTS,
         lambda model, x, y: functional.poisson_nll_loss(model(x), y), sgd(0.01, 0.9), **ROWS),
    *bad("codes_summed", "exploding,update_ratio", "a sum over pixels, not clipped",
         "autoencoder", partial(through, 64, None, nn.Identity()), HALF, lambda model, x, _:
         functional.mse_loss(model(x), x, reduction="sum"), sgd(1e-4, 0.9)),
    *bad("separable_eval", "eval_mode", "model.eval() in front of the loop", "MobileNet v1",
         separable, P, optimizer=sgd(0.1, 0.9), prepare=nn.Module.eval, **FEW),
    *bad("mobile_eval", "eval_mode", "no model.train() after the first validation", "MobileNet v3",
         library.mobilenet_v3, P, optimizer=adam(3e-3), before=at(6, lambda model, _: model.eval()),
         **FEW),
    *bad("sigmoid_grips", "vanishing", "nine layers with sigmoid", "1-D CNN",
         partial(grip, nn.Sigmoid, 5), muscles, optimizer=adam(1e-3)),
    *bad("deep_tumours", "vanishing", "25 layers without norm or shortcut", "MLP",
         partial(mlp, 5, *[32] * 24, 2), tumours, optimizer=adam(1e-3), **ROWS),
]  # fmt: skip
SECOND = [
    *bad("sorted_names", "sorted_labels,one_label", "a file for each language, no shuffle",
         "LSTM of names", language, in_order(names, lambda part: part[1], 1280),
         optimizer=adam(3e-3), **MANY),
    *bad("squeeze_accumulates", "gradients_not_cleared", "zero_grad() is missing", "SqueezeNet",
         squeeze_net, P, optimizer=adam(3e-3), zero="never", **FEW),
    *bad("crops_of_pixels", "unchanged_weights", "a place in whole pixels, by long()",
         "crop and CNN", cropped, data.digits, optimizer=adam(2e-3)),
    *bad("names_by_rprop", "update_ratio", "Rprop in small batches", "LSTM of names",
         language, names, optimizer=by(optim.Rprop), **MANY),
    *bad("cosines_of_zero", "constant_output", "CosineEmbeddingLoss with labels 0 and 1",
         "siamese MLP", partial(mlp, 784, 128, 64, 16), twins, cosines, adam(1e-3)),
    *bad("shrunk", "vanishing,constant_output", "Tanhshrink between the layers", "1-D CNN",
         partial(grip, nn.Tanhshrink), muscles, optimizer=adam(2e-3)),
    *bad("dropout_of_letters", "dropout_high", "dropout of 0.9, meant as what is kept",
         "LSTM of names", partial(language, 0.9), names, optimizer=adam(3e-3), **MANY),
    *bad("embeddings_forgotten", "not_in_optimizer,unchanged_weights",
         "the optimizer has the MLP only", "embeddings and MLP", deep_and_wide, clicks, answered,
         lambda model: optim.Adam(model[3].parameters(), 0.02), **ROWS),
    *bad("equal_rewards", "nonfinite", "rewards are divided by their deviation, 0",
         "policy by REINFORCE", partial(agent, 3), data.catch, rewarded, adam(1e-3), batch=8),
    *bad("slope_of_exponential", "exploding,loss_climbed", "softplus; its slope by hand is exp(x)",
         "MLP", partial(mlp, 784, 128, 64, 10, act=SOFT), data.digits, optimizer=adam(5e-3)),
    *bad("raw_events", "initial_loss", "counts of about 150", "MLP", AGES, EVENTS, error,
         adam(1e-3), **ROWS),
    *bad("tanh_of_rings", "saturated", "tanh for ages of 3 to 20", "MLP", ends(AGES, nn.Tanh()),
         relabelled(abalones, lambda y: 10 + 3 * y), error, adam(1e-3), **ROWS),
    *bad("nine_hundreds", "input_scale", "999 for what was not measured", "MLP", CELLS,
         changed(tumours, lambda z: z.masked_fill(torch.rand(z.shape) < 0.02, 999.0)),
         optimizer=sgd(0.02, 0.9), **ROWS),
    *bad("separable_twos", "batchnorm_small_batch", "batches of two", "MobileNet v1",
         partial(separable, True), P, optimizer=sgd(0.05, 0.9), batch=2),
    *bad("halved_in_batches", "rate_vanished", "halved each epoch, called for each batch",
         "LSTM of names", language, names, optimizer=adam(3e-3),
         schedule=lambda o, _: LambdaLR(o, lambda epoch: 0.5**epoch), **MANY),
    *bad("bytes_standardized", "input_scale,batchnorm_gap",
         "bytes are standardized like pixels of 0 to 1", "trained MobileNet, new head", lambda:
         headed(cnn.pretrained(separable), "11", 8), changed(UNIT, lambda x:
         data.scaled(255 * x, "imagenet")), optimizer=adam(5e-3), prepare=nn.Module.eval, **FEW),
    *bad("electrodes_scaled_twice", "input_scale", "divided by 300 twice", "1-D CNN", grip,
         changed(muscles, lambda x: x / 300), optimizer=adam(1e-3)),
    *bad("sigmoid_clicks", "probabilities_into_loss", "sigmoid in front of BCEWithLogits",
         "embeddings and MLP", partial(deep_and_wide, nn.Sigmoid()), clicks, answered, adam(0.02),
         **ROWS),
]  # fmt: skip
CASES = seen("2026-11-28T14:55", FIRST, SECOND)
