"""A twelfth set of faults of somebody who had not read the checks: the most common mistakes.

They stand in the order in which twenty public checklists name them; earlier sets have others.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import data
import losses
import torch
from cases.healthy.strangers_eighth import Net, cora, ratings, reader
from cases.healthy.strangers_maps import matching
from data import Draw, P, changed, fixed
from faults import at
from loops import Losses, descend, seen, train
from nets import classifiers as cnn
from nets import library, signals
from nets import strangers as nets
from nets.classifiers import Function, unit
from nets.dense import LinkNet, Spots, UNet
from nets.strangers_faults import loop, relabelled, wrong
from nets.strangers_fifth import adam, ends, error, in_order, mlp, said, sgd
from nets.strangers_fifth import changed_weights as weights
from nets.strangers_kept import (
    MOVES,
    answered,
    gpt,
    keypoints,
    letters,
    numbers,
    pointer,
    spoken,
    starred,
    tastes,
    words,
)
from nets.unusual import TextNet, point_net
from optimizers import by
from torch import Generator, Tensor, nn, optim
from torch.nn import functional
from torch.optim.lr_scheduler import ExponentialLR
from torchvision.transforms import v2

MEAN, STD = torch.tensor([[288.0, 1013, 65, 180, 12], [9.0, 8, 18, 100, 7]])


def bikes(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Temperature, pressure, humidity, wind and hour; bikes hired. All are standardized."""
    z = torch.randn(count, 5, generator=generator)
    y = 0.7 * z[:, 0] - 0.5 * z[:, 2] * z[:, 3] + 0.6 * (2 * z[:, 4]).sin() + 0.3 * z[:, 1]
    return z, y[:, None] + 0.1 * torch.randn(count, 1, generator=generator)


def beats(share: float = 0.25) -> Draw:
    """Heart beats in mV, [N, 1, 160]; ``share`` each are wide, lack a wave, end upside down."""

    def draw(generator: Generator, count: int) -> tuple[Tensor, ...]:
        time, chance = torch.arange(160) / 160, torch.tensor([1 - 3 * share, *[share] * 3])
        kind = torch.multinomial(chance, count, True, generator=generator)[:, None]
        place, gain = torch.rand(2, count, 1, generator=generator)
        wide = torch.where(kind == 1, 0.05, 0.015)

        def bump(at: float, size: Tensor | float) -> Tensor:
            return (-((time - 0.4 - 0.2 * place - at) / size).square() / 2).exp()

        before, after = 0.2 * bump(-0.2, 0.03) * (kind != 2), 0.35 * bump(0.24, 0.05)
        wave = (0.7 + 0.6 * gain) * (bump(0, wide) + before + torch.where(kind == 3, -1, 1) * after)
        noise = 0.03 * torch.randn(wave.shape, generator=generator)
        return (wave + noise)[:, None], kind[:, 0]

    return draw


def ill(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Eight laboratory values, standardized, and whether somebody is ill."""
    x = torch.randn(count, 8, generator=generator)
    return x, (x[:, :1] + x[:, 1:2] * x[:, 2:3] > 0).float()


def pulse() -> nn.Module:
    """Three strided convolutions over a heart beat."""
    layers: list[nn.Module] = []
    for into, out in ((1, 24), (24, 32), (32, 48)):
        layers += [nn.Conv1d(into, out, 7, 2), nn.ReLU()]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(48 * 15, 4))


def graph(width: int = 32, end: nn.Module | None = None) -> nn.Module:
    """A network of a graph's links and of its nodes' words."""

    def run(m: nn.ModuleDict, links: Tensor, x: Tensor) -> Tensor:
        return m["end"](links @ m["two"]((links @ m["one"](x)).relu()))

    return Net(run, one=nn.Linear(60, width), two=nn.Linear(width, 3), end=end or nn.Identity())


def of_nodes(model: nn.Module, links: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return entropy(model(links, x), y)


def of_points(depth: int) -> nn.Module:
    """PointNet without norm; each layer sees one point."""
    layers: list[nn.Module] = [nn.Conv1d(3, 32, 1), nn.ReLU()]
    layers += [m for _ in range(depth) for m in (nn.Conv1d(32, 32, 1), nn.ReLU())]
    return nn.Sequential(*layers, nn.AdaptiveMaxPool1d(1), nn.Flatten(), nn.Linear(32, 4))


def coupled() -> nn.Module:
    """RealNVP of points; it returns the loss."""

    def run(m: nn.ModuleDict, x: Tensor) -> Tensor:
        total = torch.zeros(len(x))
        for net in m.values():
            shift, scale = net(x[:, :1]).split(1, 1)
            x = torch.cat([x[:, 1:] * scale.exp() + shift, x[:, :1]], 1)
            total = total + scale[:, 0]
        return (x.square().sum(1) / 2 - total).mean()

    return Net(run, **{f"net{n}": mlp(1, 64, 64, 2) for n in range(8)})


def felt() -> nn.Module:
    """An LSTM over an inertial unit, whose first axis is taken as time."""
    body, last = nn.LSTM(6, 40), nn.Linear(40, 5)
    return Net(lambda m, x: m["last"](m["body"](x.mT[:, ::2])[0].mean(1)), body=body, last=last)


def directed() -> nn.Module:
    """Words of length one; the padding's length is 0."""

    def run(m: nn.ModuleDict, x: Tensor) -> Tensor:
        y = m["words"](x)
        return m["last"](m["body"](y / y.norm(dim=2, keepdim=True))[0].mean(1))

    parts = {"words": nn.Embedding(102, 24, padding_idx=0), "last": nn.Linear(40, 4)}
    return Net(run, body=nn.GRU(24, 40, batch_first=True), **parts)


class Slope(torch.autograd.Function):
    """Cross-entropy; its slope by hand is p, not p - y."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return entropy(x, y)

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, g: Tensor) -> tuple[Tensor, None]:
        (x,) = ctx.saved_tensors
        return g * x.softmax(1) / len(x), None


def frozen_residual() -> nn.Module:
    """A trained ResNet, frozen, with a new head."""
    model = cnn.pretrained(cnn.resnet).requires_grad_(False)
    model.fc = nn.Linear(64, 8)
    return model


def head_after(model: nn.Module) -> optim.Optimizer:
    """The head is replaced when the optimizer has its parameters already."""
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name.startswith("head"))
    optimizer = optim.Adam(model.parameters(), lr=3e-3)
    model.head = nn.Linear(96, 8)
    return optimizer


def near_zero(model: nn.Module, images: Tensor, mask: Tensor, discs: Tensor, *_: Tensor) -> Tensor:
    """The absolute error of a map that is 0 but for a small spot."""
    along = torch.arange(32.0)
    across, down = ((along - discs[:, n : n + 1]).square() for n in (0, 1))
    return functional.l1_loss(model(images)[:, 0], (-(across[:, None] + down[..., None]) / 8).exp())


def game(place: Path, seed: int) -> Losses:
    """A GAN of digits; what the maker makes is detached for the critic and for the maker."""
    up = [nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(16, 1, 4, 2, 1)]
    maker = nn.Sequential(mlp(24, 1568), nn.ReLU(), nn.Unflatten(1, (32, 7, 7)), *up, nn.Tanh())
    convs = [unit(a, b, 4, 2, None, nn.LeakyReLU) for a, b in ((1, 16), (16, 32))]
    critic = nn.Sequential(*convs, nn.Flatten(), nn.Linear(1568, 1))
    one, two = (optim.Adam(n.parameters(), lr=1e-3, betas=(0.5, 0.99)) for n in (maker, critic))

    def step(_: int, random: Generator) -> float:
        real, noise = data.digits(random, 16)[0] * 2 - 1, torch.randn(16, 24, generator=random)
        fake = maker(noise).detach()
        descend(two, said(critic(real), 1) + said(critic(fake), 0))
        return descend(one, said(critic(fake), 1))

    return train(place, seed, maker, step, 104, 8, one)


digits, scenes, sentences, BEATS = data.digits, data.scenes, data.sentences, beats()
bad = partial(wrong, steps=120, every=10)
FEW, LONG = {"steps": 104, "every": 8, "batch": 8}, {"steps": 150, "every": 12}
CROP = v2.RandomResizedCrop(28, (0.02, 0.1))
ROWS, entropy = {"batch": 64, **LONG}, functional.cross_entropy
BENT = changed(numbers(2, torch.sum), lambda x: 0.3 * x + x[:, :1].square() * torch.arange(2))
FIRST = [
    *bad("hybrid_rate", "update_ratio", "Adam with 0.05", "CNN and transformer", nets.Hybrid, P,
         optimizer=adam(0.05), **FEW),
    *bad("gated_rate", "update_ratio", "Adam with 0.5", "attention U-Net", nets.Gate, scenes,
         losses.masks, adam(0.5), **FEW),
    *bad("flow_rate", "update_ratio", "Adam with 0.05", "flow matching, FiLM", nets.Conditioned,
         digits, matching, adam(0.05), **FEW),
    *bad("link_net_slow", "update_ratio", "Adam with 1e-7", "LinkNet", LinkNet, data.edges,
         losses.masks, adam(1e-7), **FEW),
    *bad("films_slow", "update_ratio", "SGD with 1e-6 and momentum", "3-D CNN", signals.clip_net,
         data.clips, optimizer=sgd(1e-6, 0.9), **FEW),
    *bad("graph_slow", "update_ratio", "AdamW with 1e-6", "GCN", graph, cora, of_nodes,
         by(optim.AdamW, lr=1e-6)),
    *bad("raw_weather", "input_scale", "kelvin, hectopascal and degrees", "MLP",
         partial(mlp, 5, 48, 48, 1), changed(bikes, lambda z: MEAN + STD * z), error, adam(2e-3),
         **ROWS),
    *bad("raw_microvolts", "input_scale", "microvolts of about 1000", "1-D CNN", pulse,
         changed(BEATS, lambda x: 1000 * x), optimizer=sgd(0.01, 0.9)),
    *bad("raw_microscope", "input_scale", "pixels of 16 bits", "U-Net, no norm",
         partial(UNet, 1, norm=None), changed(data.slices, lambda x: (65535 * x).round()),
         losses.masks, adam(1e-3), **FEW),
    *bad("graph_of_zeros", "copied_channels,unchanged_weights,constant_output",
         "all weights begin at 0", "GCN", lambda: weights(graph(), torch.zero_), cora, of_nodes,
         adam(0.01)),
    *bad("initializer_of_one", "exploding,initial_loss", "weights of deviation 1", "GPT", lambda:
         weights(gpt(), lambda w: w.normal_() if w.ndim > 1 else w), letters, partial(spoken, 1),
         by(optim.AdamW, lr=1e-3)),
    *bad("thousandth_slices", "vanishing", "weights of deviation 0.001", "U-Net, no norm", lambda:
         weights(UNet(1, norm=None), lambda w: w.normal_(0, 1e-3)), data.slices, losses.masks,
         adam(1e-3), **FEW),
    *bad("softmax_graph", "double_softmax", "softmax in front of cross-entropy", "GCN",
         partial(graph, 32, nn.Softmax(1)), cora, of_nodes, sgd(0.5, 0.9)),
    *bad("softmax_beats", "double_softmax", "softmax in front of cross-entropy",
         "residual 1-D CNN", ends(partial(nets.heart, 1, 4), nn.Softmax(1)), BEATS,
         optimizer=sgd(0.02, 0.9)),
    *bad("softmax_bands", "double_softmax", "softmax in front of cross-entropy", "CNN of 16 bands",
         ends(partial(cnn.plain, 16, norm=nn.BatchNorm2d), nn.Softmax(1)), data.bands,
         optimizer=sgd(0.02, 0.9)),
    *bad("rand_less_one", "dead", "uniform weights, none above 0", "MLP",
         lambda: weights(mlp(784, 128, 64, 10), lambda w: w.copy_((torch.rand_like(w) - 1) *
         w.shape[-1] ** -0.5)), digits, optimizer=adam(1e-3)),
    *bad("pulse_killed", "dead,update_ratio", "SGD with 0.5 and momentum", "1-D CNN", pulse, BEATS,
         optimizer=sgd(0.5, 0.9)),
    *bad("tags_summed", "exploding,update_ratio", "a sum over all words, not clipped",
         "LSTM tagger", partial(reader, 0.0, 16, 3, 24), words(16, 12, lambda x: x % 3),
         lambda model, x, y: entropy(model(x), y, reduction="sum"), sgd(0.1, 0.9), batch=32),
    *bad("coupling_unbounded", "exploding,nonfinite", "the logarithm of a scale has no bounds",
         "RealNVP", coupled, BENT, losses.own, sgd(0.03, 0.9), **ROWS),
    *bad("strides_in_eval", "eval_mode", "model.eval() in front of the loop", "all-convolutional",
         cnn.all_convolutions, P, optimizer=sgd(0.05, 0.9), prepare=nn.Module.eval, **FEW),
    *bad("masks_in_eval", "eval_mode", "no model.train() after the first validation", "U-Net",
         partial(UNet, base=8), scenes, losses.masks, sgd(0.1, 0.9),
         before=at(8, lambda model, _: model.eval()), **FEW),
    *bad("graph_of_one", "none", "one hidden unit", "GCN", partial(graph, 1), cora, of_nodes,
         adam(0.01)),
    *bad("hires_by_two", "none", "two hidden units", "MLP", partial(mlp, 5, 2, 1), bikes, error,
         adam(0.01), **ROWS),
    *bad("sigmoid_codes", "vanishing", "ten layers with sigmoid", "autoencoder, MLP",
         partial(mlp, 784, 256, 128, 64, 32, 16, 32, 64, 128, 256, 784, act=nn.Sigmoid), digits,
         lambda model, x, _: error(model, x, x.flatten(1)), sgd(0.1, 0.9)),
    *bad("deep_clouds", "vanishing", "24 layers without norm or shortcut", "PointNet, no norm",
         partial(of_points, 23), data.points, optimizer=adam(2e-3), **FEW),
]  # fmt: skip
SECOND = [
    *bad("hires_shuffled", "none", "a join has lost the order of the rows", "MLP",
         partial(mlp, 5, 48, 48, 1), relabelled(bikes, lambda y: y[torch.randperm(len(y))]), error,
         adam(3e-3), **ROWS),
    *bad("sorted_texts", "sorted_labels,one_label", "texts sorted by class, no shuffle", "text CNN",
         TextNet, in_order(sentences, lambda part: part[1], 640), optimizer=adam(3e-3)),
    *bad("rare_beats", "none", "one beat in 100 is of each other kind", "1-D CNN", pulse,
         beats(0.01), optimizer=adam(5e-4)),
    *bad("gated_accumulates", "gradients_not_cleared", "zero_grad() is missing", "attention U-Net",
         nets.Gate, scenes, losses.masks, sgd(0.2, 0.9), zero="never", **FEW),
    *bad("vit_of_few", "none", "24 pictures", "ViT", library.vit, fixed(P, 24),
         optimizer=by(optim.AdamW, lr=1e-3)),
    *loop("both_detached", "unchanged_weights", "pictures are detached in the maker's step too",
          "GAN, CNN", game, 104, 8),
    *bad("stars_by_sgd", "update_ratio", "SGD with 0.01", "matrix factorization",
         lambda: tastes(Function(lambda y: y + 3.6)), ratings, starred, sgd(0.01), batch=64),
    *bad("absolute_spots", "constant_output", "absolute error of a map that is mostly 0",
         "CNN of maps", lambda: nn.Sequential(unit(3, 24, 5, norm=None), unit(24, 24, 5, norm=None),
         nn.Conv2d(24, 1, 1)), scenes, near_zero, adam(2e-3), **FEW),
    *bad("softmax_between", "vanishing", "softmax between the convolutions", "CNN",
         partial(cnn.plain, act=nn.Softmax2d), P, optimizer=adam(1e-3)),
    *bad("sum_of_weights", "constant_output,vanishing", "L1 of all weights, times 0.1", "1-D CNN",
         pulse, BEATS, lambda model, x, y: entropy(model(x), y) + 0.1 * sum(w.abs().sum() for w in
         model.parameters()), adam(2e-3)),
    *bad("guessed_clouds", "none", "60 % of the labels are guessed", "PointNet", point_net,
         relabelled(data.points, lambda y: torch.where(torch.rand(len(y)) < 0.6,
         torch.randint(4, y.shape), y)), optimizer=adam(3e-3)),
    *bad("head_after", "not_in_optimizer,unchanged_weights",
         "the head is replaced after the optimizer was made", "trained CNN", cnn.bundled,
         data.photos(48, "own"), optimizer=head_after, **FEW),
    *bad("length_of_zero", "nonfinite", "padding is divided by its length, 0", "GRU", directed,
         sentences, optimizer=adam(3e-3)),
    *bad("digits_cropped", "none", "crops of 2 to 10 % of a picture", "CNN, BatchNorm",
         partial(cnn.plain, 1, 10, norm=nn.BatchNorm2d), changed(digits, lambda images:
         torch.stack([CROP(x) for x in images])), optimizer=adam(3e-3)),
    *bad("slope_without_truth", "loss_climbed", "a slope by hand of p, not p - y", "text CNN",
         TextNet, sentences, lambda model, x, y: Slope.apply(model(x), y), adam(3e-3)),
    *bad("places_in_pixels", "initial_loss", "places of 0 to 4000 px", "CNN, BatchNorm",
         partial(cnn.encoder, 2), relabelled(keypoints, lambda y: 2000 * (y + 1)), error,
         adam(2e-3)),
    *bad("softmax_of_one", "constant_output,unchanged_weights,saturated",
         "softmax over one output", "MLP", ends(partial(mlp, 8, 32, 32, 1), nn.Softmax(1)), ill,
         lambda model, x, y: functional.binary_cross_entropy(model(x), y), adam(3e-3), **ROWS),
    *bad("wrong_unit", "input_scale", "one field in 50 is in thousandths", "MLP",
         partial(mlp, 5, 48, 48, 1), changed(bikes, lambda z: torch.where(
         torch.rand(z.shape) < 0.02, 1000 * z, z)), error, adam(2e-3), **ROWS),
    *bad("films_of_two", "batchnorm_small_batch", "batches of two", "3-D CNN", signals.clip_net,
         data.clips, optimizer=sgd(0.02, 0.9), batch=2),
    *bad("linear_diagnosis", "none", "no activation between the layers", "MLP",
         partial(mlp, 8, 64, 32, 1, act=nn.Identity), ill, answered, adam(3e-3), **ROWS),
    *bad("exponential_batches", "rate_vanished", "ExponentialLR(0.9), called for each batch",
         "CRNN", signals.Recurrent, data.spectrograms, optimizer=adam(2e-3),
         schedule=lambda o, _: ExponentialLR(o, 0.9), **LONG),
    *bad("twelve_bits", "input_scale,batchnorm_gap", "grey levels of 0 to 4095",
         "trained ResNet, new head", frozen_residual,
         changed(data.colourless(32, "unit"), lambda x: 4095 * x), optimizer=adam(3e-3),
         prepare=nn.Module.eval),
    *bad("bytes_scaled_twice", "input_scale,constant_images,identical_images",
         "x / 127.5 - 1 twice", "CNN of keypoints", pointer,
         changed(keypoints, lambda x: x / 127.5 - 1), error, adam(2e-3)),
    *bad("sigmoid_cells", "probabilities_into_loss", "sigmoid in front of BCEWithLogits",
         "toy detector", ends(Spots, Function(lambda y: (y[0].sigmoid(), y[1]))), scenes,
         losses.detect, adam(3e-3), **FEW),
    *bad("batch_is_time", "none", "batch_first is missing", "LSTM", felt, MOVES,
         optimizer=adam(5e-3)),
]  # fmt: skip
CASES = seen("2026-11-28T09:25", FIRST, SECOND)
