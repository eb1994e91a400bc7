"""An eleventh set of faults of somebody who had not read the checks: the most common mistakes.

They stand in the order in which twenty public checklists name them; others than in the ninth set.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import data
import losses
import torch
from cases.faults.strangers_fifth import adam, ends, error, in_order, mlp, sgd
from cases.faults.strangers_fifth import changed_weights as weights
from cases.healthy.strangers_eighth import Net, ratings, reader
from cases.healthy.strangers_maps import bce
from data import HALF, P, changed, fixed
from faults import at
from loops import Losses, descend, seen, train
from nets import classifiers as cnn
from nets import library, signals
from nets.classifiers import Function
from nets.dense import SegNet, UNet
from nets.restoration import Denoiser, RedNet
from nets.strangers import Residual
from nets.strangers_faults import loop, relabelled, wrong
from nets.strangers_kept import lesions, numbers, words
from nets.unusual import point_net
from optimizers import by
from torch import Generator, Tensor, nn, optim
from torch.nn import functional
from torch.optim.lr_scheduler import MultiStepLR

WINES = torch.tensor([[13.7, 17, 106, 2.8, 1116], [12.3, 20, 95, 2.1, 520], [13.2, 21, 99, 1, 630]])
SPREAD = torch.tensor([0.5, 2.5, 12, 0.4, 160])


def wines(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Alcohol, ash, magnesium, flavanoids and proline of three sorts."""
    sort = torch.randint(3, (count,), generator=generator)
    return WINES[sort] + SPREAD * torch.randn(count, 5, generator=generator), sort


def flats(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Standardized: area, floor, age, distance, noise; a rent of about 0 ± 1."""
    x = torch.randn(count, 5, generator=generator)
    rent = 0.7 * x[:, 0] + 0.3 * x[:, 1] * x[:, 3] - 0.4 * (2 * x[:, 2]).sin()
    return x, rent[:, None] + 0.1 * torch.randn(count, 1, generator=generator)


def visits(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Visitors of five shops on a day, which may be none, and what was sold, standardized."""
    x = torch.poisson(torch.tensor([3.0, 8, 15, 30, 60]).expand(count, 5), generator=generator)
    return x, ((x.sqrt() - 4).sum(1, keepdim=True) - 1) / 2


def energies(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """The energy of a cloud of 256 points, in eV."""
    x, kind = data.points(generator, count)
    return x, -7600 - 120.0 * kind[:, None] - 200 * x.square().mean((1, 2))[:, None]


def tagged(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Photographs and three tags of each."""
    images, kind = P(generator, count)
    return images, (kind[:, None] // torch.tensor([1, 2, 4]) % 2).float()


def keypoints(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """The centre of a disc, -1 to 1."""
    images, _, discs, _ = data.scenes(generator, count)
    return images, discs[:, :2] / 16 - 1


def heard() -> nn.Module:
    """Three strided convolutions over a sound."""
    layers: list[nn.Module] = []
    for into, out, size, stride in ((1, 20, 15, 5), (20, 32, 7, 3), (32, 48, 3, 2)):
        layers += [nn.Conv1d(into, out, size, stride), nn.LeakyReLU(0.1)]
    return nn.Sequential(*layers, *signals.pooled(48, 6))


def long_stack(depth: int, act: type[nn.Module]) -> nn.Module:
    """Convolutions over an inertial unit, without norm."""
    layers: list[nn.Module] = [nn.Conv1d(6, 24, 5, 3), act()]
    layers += [m for _ in range(depth) for m in (nn.Conv1d(24, 24, 3, padding=1), act())]
    return nn.Sequential(*layers, *signals.pooled(24, 5))


def solids(width: int = 16) -> nn.Module:
    """A 3-D network without norm."""
    layers = [nn.Conv3d(1, width, 5, 2), nn.ReLU(), nn.Conv3d(width, width, 3), nn.ReLU()]
    return nn.Sequential(*layers, nn.MaxPool3d(2), nn.Flatten(), nn.Linear(8 * width, 4))


def slab(width: int = 8) -> nn.Module:
    """Segmentation of a volume, without norm."""
    convs = [nn.Conv3d(1, width, 3, 1, 1), nn.ReLU(), nn.Conv3d(width, width, 3, 1, 1), nn.ReLU()]
    return nn.Sequential(*convs, nn.Conv3d(width, 1, 1))


def pointer() -> nn.Module:
    """Where an object is: three convolutions and two Linear layers."""
    convs = [cnn.unit(a, b, stride=2, norm=None) for a, b in ((3, 16), (16, 24), (24, 32))]
    return nn.Sequential(*convs, mlp(512, 64, 2))


def edsr(blocks: int = 12) -> nn.Module:
    """EDSR with He's weights; its sums are not scaled."""

    def block() -> nn.Module:
        return Residual(nn.Conv2d(24, 24, 3, 1, 1), nn.ReLU(), nn.Conv2d(24, 24, 3, 1, 1))

    layers = [nn.Conv2d(3, 24, 3, 1, 1), *(block() for _ in range(blocks))]
    return cnn.he(nn.Sequential(*layers, nn.Conv2d(24, 12, 3, 1, 1), nn.PixelShuffle(2)))


def sensors(kind: type[nn.RNNBase] = nn.GRU) -> nn.Module:
    """A recurrent layer over every second reading; the mean of its states counts."""
    return Net(lambda m, x: m["last"](m["body"](x.mT[:, ::2])[0].mean(1)),
               body=kind(6, 40, batch_first=True), last=nn.Linear(40, 5))  # fmt: skip


def sparse(bias: float) -> nn.Module:
    """An autoencoder of digits; a negative bias shall make its codes sparse."""
    model = nn.Sequential(mlp(784, 200, 64), nn.ReLU(), mlp(64, 200, 784))
    nn.init.constant_(model[0][3].bias, bias)
    return model


def unclear(frozen: bool = True) -> nn.Module:
    """Words, a GRU and its last state; the GRU runs under ``no_grad()``."""

    def run(m: nn.ModuleDict, x: Tensor) -> Tensor:
        with torch.set_grad_enabled(not frozen and torch.is_grad_enabled()):
            x = m["body"](m["words"](x))[1][0]
        return m["last"](x)

    body, last = nn.GRU(24, 40, batch_first=True), nn.Linear(40, 4)
    return Net(run, words=nn.Embedding(102, 24), body=body, last=last)


def tastes(end: Function) -> nn.Module:
    """Matrix factorization of users and films."""

    def run(m: nn.ModuleDict, who: Tensor, what: Tensor) -> Tensor:
        return m["end"]((m["who"](who) * m["what"](what)).sum(1))

    parts = {"who": nn.Embedding(200, 12), "what": nn.Embedding(200, 12), "end": end}
    return weights(Net(run, **parts), lambda w: w.mul_(0.3))


def only(last: str, model: nn.Module) -> nn.Module:
    """All layers but the last are frozen."""
    model.requires_grad_(False).get_submodule(last).requires_grad_(True)
    return model


def starred(model: nn.Module, who: Tensor, what: Tensor, stars: Tensor) -> Tensor:
    return (model(who, what) - stars).square().mean()


def gaussian(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """The likelihood; the second output is taken as the variance."""
    mean, variance = model(x).split(1, 1)
    return 0.5 * (variance.log() + (y - mean).square() / variance).mean()


def flipped(model: nn.Module, images: Tensor, place: Tensor) -> Tensor:
    """Pictures are mirrored at random, the places are not."""
    turn = torch.rand(len(images), 1, 1, 1) < 0.5
    return error(model, torch.where(turn, images.flip(3), images), place)


class Pixels(torch.autograd.Function):
    """Mean cross-entropy; its slope by hand is not divided by the number of pixels."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(x, y)
        return bce(x, y)

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, g: Tensor) -> tuple[Tensor, None]:
        x, y = ctx.saved_tensors
        return g * (x.sigmoid() - y), None


def earth_mover(place: Path, seed: int) -> Losses:
    """A WGAN, whose critic's weights are not clipped."""
    maker, critic = ends(partial(mlp, 16, 96, 784), nn.Tanh())(), mlp(784, 96, 96, 1)
    one, two = (optim.RMSprop(net.parameters(), lr=1e-3) for net in (maker, critic))

    def step(number: int, random: Generator) -> float:
        real, noise = data.digits(random, 32)[0] * 2 - 1, torch.randn(32, 16, generator=random)
        found = descend(two, critic(maker(noise).detach()).mean() - critic(real).mean())
        if number % 3 == 2:
            descend(one, -critic(maker(noise)).mean())
        return found

    return train(place, seed, critic, step, 150, 12, two)


digits, voxels, gestures = data.digits, data.voxels, data.gestures
bad = partial(wrong, steps=120, every=10)
FEW, LONG = {"steps": 104, "every": 8, "batch": 8}, {"steps": 150, "every": 12}
TONES, MOVES = data.tones(), changed(gestures, lambda x: x / 5)
TAGS, RENTS = words(16, 12, lambda x: x % 3), {"batch": 32, **LONG}
LOAD = changed(relabelled(data.demand, lambda y: y[:, 0] / 600 - 2), lambda x: x / 600 - 2)
FIRST = [
    *bad("convnext_rate", "update_ratio", "AdamW with 0.1", "ConvNeXt", library.convnext, P,
         optimizer=by(optim.AdamW, lr=0.1), **FEW),
    *bad("vox_net_rate", "update_ratio", "NAdam with 0.1", "VoxNet", signals.vox_net, voxels,
         optimizer=by(optim.NAdam, lr=0.1)),
    *bad("denoiser_rate", "update_ratio", "SGD with 1 and momentum", "DnCNN", Denoiser, HALF,
         losses.repaired, sgd(1.0, 0.9), **FEW),
    *bad("densenet_slow", "update_ratio", "RMSprop with 1e-7", "DenseNet", library.densenet, P,
         optimizer=by(optim.RMSprop, lr=1e-7), **FEW),
    *bad("rays_slow", "update_ratio", "SGD with 1e-5", "NeRF", signals.Rays, data.rays,
         signals.rendered, sgd(1e-5, 0.9), batch=128),
    *bad("tagger_slow", "update_ratio", "Adagrad with 1e-5", "LSTM tagger",
         partial(reader, 0.0, 16, 3, 24), TAGS, optimizer=by(optim.Adagrad, lr=1e-5)),
    *bad("raw_hounsfield", "input_scale", "Hounsfield units of -1000 to 200", "3-D CNN", slab,
         data.hounsfield, losses.masks, adam(3e-3), **FEW | {"batch": 4}),
    *bad("raw_wines", "input_scale", "columns of 1 to 1100", "MLP, tanh",
         partial(mlp, 5, 24, 24, 3, act=nn.Tanh), wines, optimizer=sgd(0.05), batch=32),
    *bad("raw_counts", "input_scale", "counts of a 12-bit converter", "GRU", sensors,
         changed(gestures, lambda x: 2048 + 100 * x), optimizer=adam(3e-3)),
    *bad("all_tenths", "copied_channels", "all weights begin at 0.1", "LSTM",
         lambda: weights(sensors(nn.LSTM), lambda w: w.fill_(0.1)), MOVES, optimizer=adam(5e-3)),
    *bad("minus_one_to_one", "exploding,initial_loss", "weights of -1 to 1", "3-D CNN",
         lambda: weights(solids(), lambda w: w.uniform_(-1, 1)), voxels, optimizer=adam(1e-3)),
    *bad("hundredth_tanh", "vanishing", "weights of deviation 0.01", "MLP, tanh", lambda: weights(
         mlp(1056, *[100] * 8, 6, act=nn.Tanh), lambda w: w.normal_(0, 0.01)), data.spectrograms,
         optimizer=sgd(0.05, 0.9)),
    *bad("softmax_solids", "double_softmax", "softmax in front of cross-entropy", "3-D CNN",
         ends(solids, nn.Softmax(1)), voxels, optimizer=sgd(0.02, 0.9)),
    *bad("softmax_tags", "double_softmax", "softmax in front of cross-entropy", "LSTM tagger",
         ends(partial(reader, 0.0, 16, 3, 24), nn.Softmax(1)), TAGS, optimizer=sgd(0.5)),
    *bad("softmax_sensors", "double_softmax", "softmax in front of cross-entropy", "EEGNet",
         ends(signals.Eeg, nn.Softmax(1)), gestures, optimizer=sgd(0.02, 0.9)),
    *bad("sparse_bias", "dead", "a bias of -5 for sparse codes", "autoencoder, MLP",
         partial(sparse, -5.0), digits, lambda model, x, _: error(model, x, x.flatten(1)),
         adam(1e-3)),
    *bad("pointer_killed", "dead,update_ratio", "Adam with 0.1", "CNN of keypoints", pointer,
         keypoints, error, adam(0.1)),
    *loop("critic_unclipped", "exploding", "the critic's weights are not clipped", "WGAN, MLP",
          earth_mover, 150, 12),
    *bad("edsr_sums", "exploding", "twelve blocks without norm or scale", "EDSR", edsr,
         HALF, losses.larger, adam(1e-3), **FEW | {"batch": 4}),
    *bad("waveform_eval", "eval_mode", "model.eval() in front of the loop", "M5",
         signals.waveform, TONES, optimizer=sgd(0.05, 0.9), prepare=nn.Module.eval),
    *bad("eval_after_check", "eval_mode", "no model.train() after the first check", "PointNet",
         point_net, data.points, optimizer=sgd(0.05, 0.9),
         before=at(5, lambda model, _: model.eval())),
    *bad("word_of_one", "none", "words of one number", "word bag", lambda: nn.Sequential(
         nn.EmbeddingBag(102, 1, padding_idx=0), nn.Linear(1, 4)), data.sentences,
         optimizer=adam(0.05)),
    *bad("one_solid_channel", "none", "one channel", "3-D CNN", partial(solids, 1), voxels,
         optimizer=adam(3e-3)),
    *bad("stacked_sigmoids", "vanishing", "eight layers with sigmoid", "MLP of a day's load",
         partial(mlp, 96, *[64] * 7, 24, act=nn.Sigmoid), LOAD, error, sgd(0.05, 0.9)),
    *bad("deep_tanh", "vanishing", "sixteen convolutions with tanh", "1-D CNN",
         partial(long_stack, 16, nn.Tanh), MOVES, optimizer=adam(0.01)),
]  # fmt: skip
SECOND = [
    *bad("masks_in_other_order", "none", "masks are listed in another order", "SegNet", SegNet,
         relabelled(data.scenes, lambda mask: mask.roll(1, 0)), losses.masks, adam(2e-3), **FEW),
    *bad("sorted_solids", "sorted_labels,one_label", "a folder for each class, no shuffle",
         "3-D CNN", solids, in_order(voxels, lambda part: part[1], 640), optimizer=adam(2e-3)),
    *bad("rare_pixels", "none", "8 in 1000 pixels are of a lesion", "U-Net",
         partial(UNet, 1, 1, 8), lesions, losses.masks, sgd(0.05, 0.9), **FEW),
    *bad("red_accumulates", "gradients_not_cleared", "zero_grad() is missing", "RED-Net", RedNet,
         HALF, losses.repaired, adam(2e-3), zero="never", **FEW),
    *bad("sixteen_clouds", "none", "sixteen clouds", "PointNet", point_net, fixed(data.points, 16),
         optimizer=adam(5e-3)),
    *bad("body_without_grad", "unchanged_weights", "the body runs under no_grad()", "GRU", unclear,
         data.sentences, optimizer=adam(5e-3)),
    *bad("swin_by_sgd", "update_ratio", "SGD with 0.001", "Swin", library.swin, P,
         optimizer=sgd(1e-3), **FEW),
    *bad("margin_of_zero", "constant_output", "SoftMarginLoss with labels 0 and 1", "LeNet", lambda:
         nn.Sequential(cnn.lenet(nn.ReLU), nn.ReLU(), nn.Linear(10, 1)), relabelled(digits,
         lambda y: y[:, None] % 2), lambda model, x, y: functional.soft_margin_loss(model(x), y),
         adam(2e-3)),
    *bad("hard_sigmoid", "vanishing", "Hardsigmoid between the layers", "1-D CNN",
         partial(long_stack, 5, nn.Hardsigmoid), MOVES, optimizer=adam(3e-3)),
    *bad("half_decay", "constant_output,vanishing", "a weight decay of 0.5", "CNN",
         partial(cnn.plain, act=nn.GELU), P, optimizer=by(optim.Adam, lr=3e-3, weight_decay=0.5)),
    *bad("guessed_moves", "none", "half of the labels are guessed", "EEGNet", signals.Eeg,
         relabelled(gestures, lambda y: torch.where(torch.rand(len(y)) < 0.5,
         torch.randint(5, y.shape), y)), optimizer=adam(5e-3)),
    *bad("frozen_untrained", "unchanged_weights", "layers are frozen that were never trained",
         "DenseNet", lambda: only("classifier", library.densenet()), P,
         optimizer=adam(5e-3), **FEW),
    *bad("negative_variance", "nonfinite", "the variance may be negative", "MLP",
         partial(mlp, 5, 48, 48, 2), flats, gaussian, adam(2e-3), **RENTS),
    *bad("places_not_flipped", "none", "pictures are mirrored, places are not", "CNN of keypoints",
         pointer, keypoints, flipped, adam(2e-3)),
    *bad("slope_of_sum", "update_ratio,exploding", "a slope by hand, not divided by the pixels",
         "U-Net, GroupNorm", partial(UNet, base=8, norm=partial(nn.GroupNorm, 4)), data.edges,
         lambda model, x, mask: Pixels.apply(model(x), mask), sgd(0.1, 0.9), **FEW),
    *bad("electron_volts", "initial_loss", "energies of about -8000 eV", "PointNet",
         ends(point_net, nn.Linear(4, 1)), energies, error, adam(2e-3)),
    *bad("tanh_for_stars", "saturated", "tanh for one to five stars", "matrix factorization",
         partial(tastes, Function(torch.tanh)), ratings, starred, adam(0.05), batch=64),
    *bad("log_of_visits", "nonfinite", "the logarithm of 0 visitors", "MLP",
         partial(mlp, 5, 32, 32, 1), changed(visits, torch.log), error, adam(3e-3), **RENTS),
    *bad("efficient_twos", "batchnorm_small_batch", "batches of two", "EfficientNet",
         library.efficientnet, P, optimizer=adam(3e-3), batch=2),
    *bad("linear_sine", "none", "no activation between the layers", "MLP",
         partial(mlp, 1, 64, 64, 1, act=nn.Identity), numbers(1, lambda x: (2 * x).sin()), error,
         adam(0.01)),
    *bad("milestones_of_epochs", "rate_vanished", "milestones of epochs, counted in batches", "TCN",
         signals.tcn, TONES, optimizer=adam(3e-3),
         schedule=lambda o, _: MultiStepLR(o, [8, 16, 24], 0.1), **LONG | {"batch": 8}),
    *bad("not_standardized", "input_scale,batchnorm_gap", "pixels of 0 to 1, not standardized",
         "trained CNN, new head", lambda: only("head", cnn.bundled()), data.photos(48, "unit"),
         optimizer=sgd(0.05, 0.9), prepare=nn.Module.eval),
    *bad("sound_divided_twice", "input_scale", "divided by 32768 twice", "1-D CNN", heard,
         changed(TONES, lambda x: x / 32768), optimizer=adam(2e-3)),
    *bad("sigmoid_tags", "probabilities_into_loss", "sigmoid in front of a loss on logits",
         "CNN, BatchNorm", ends(partial(cnn.plain, 3, 3, norm=nn.BatchNorm2d), nn.Sigmoid()),
         tagged, lambda model, x, y: functional.multilabel_soft_margin_loss(model(x), y),
         sgd(0.1, 0.9)),
    *bad("cloud_by_view", "none", "view() for permute()", "PointNet", point_net,
         changed(data.points, lambda x: x.mT.reshape(x.shape)), optimizer=adam(5e-3)),
]  # fmt: skip
CASES = seen("2026-11-28T07:10", FIRST, SECOND)
