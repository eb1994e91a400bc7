"""A fifteenth set of faults of somebody who had not read the checks: the most common mistakes.

They stand in the order in which twenty public checklists name them; earlier sets have others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import data
import losses
import torch
from cases.healthy.strangers_eighth import Net
from data import HALF, UNIT, P, changed
from faults import at
from loops import seen
from nets import classifiers as cnn
from nets import library, signals
from nets import strangers as nets
from nets.classifiers import Function
from nets.dense import UNet, autoencoder
from nets.generative import VAE, Timed
from nets.restoration import super_resolution
from nets.strangers_faults import wrong
from nets.strangers_fifth import adam, ends, error, fcn, in_order, mlp, sgd, through_code
from nets.strangers_fifth import changed_weights as weights
from nets.strangers_kept import Series, next_day, through
from nets.unusual import TextNet, point_net
from optimizers import by
from torch import Generator, Tensor, nn, optim
from torch.nn import functional
from torch.optim.lr_scheduler import MultiplicativeLR

MEAN, STD = torch.tensor([[450.0, 18, 60, 4, 180], [280.0, 8, 20, 2.5, 90]])


def sunlight(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Irradiance, warmth, humidity, wind and its direction; solar power. All are standardized."""
    z = torch.randn(count, 5, generator=generator)
    y = 0.8 * z[:, 0] - 0.3 * z[:, 0] * z[:, 1] + 0.3 * (2 * z[:, 3]).cos() - 0.3 * z[:, 2].relu()
    return z, y[:, None] + 0.1 + 0.1 * torch.randn(count, 1, generator=generator)


def quakes(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Three components of a station, [N, 3, 200]: noise, a near quake, a far one, a blast."""
    time, kind = torch.arange(200) / 200, torch.randint(4, (count,), generator=generator)
    begin, phase, gain = torch.rand(3, count, 1, generator=generator)
    since = (time - 0.1 - 0.2 * begin).clamp(min=0)
    lag = torch.tensor([0.1, 0.12, 0.4, 0.0])[kind, None]
    late = (since - lag).clamp(min=0)
    first = since.sign() * (-12 * since).exp() * (2 * math.pi * (30 * since + phase)).sin()
    second = late.sign() * (-7 * late).exp() * (2 * math.pi * (14 * late + phase)).sin()
    parts = [first + 0.3 * second, second - 0.2 * first, 0.8 * second + 0.2 * first]
    wave = torch.stack(parts, 1) * (0.7 + gain[..., None]) * (kind > 0)[:, None, None]
    return 2 * wave + 0.1 * torch.randn(wave.shape, generator=generator), kind


def station(act: Callable[[], nn.Module] = nn.ReLU) -> nn.Module:
    """Four strided convolutions over what a station records, and two Linear layers."""
    layers: list[nn.Module] = []
    for into, out in ((3, 24), (24, 32), (32, 32), (32, 48)):
        layers += [nn.Conv1d(into, out, 7, 2, 3), act()]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(48 * 13, 48), act(), nn.Linear(48, 4))


def deep_sounds(depth: int) -> nn.Module:
    """A stride over a spectrogram, then ``depth`` convolutions without norm."""
    layers = [cnn.unit(1, 24, 3, 2, None), *(cnn.unit(24, 24, norm=None) for _ in range(depth))]
    return nn.Sequential(*layers, *cnn.head(24, 6))


def of_clouds(blocks: int) -> nn.Module:
    """Residual blocks over points, without norm, with He's weights."""

    body = [(nn.Conv1d(48, 48, 1), nn.ReLU(), nn.Conv1d(48, 48, 1)) for _ in range(blocks)]
    layers = [nn.Conv1d(3, 48, 1), *(nets.Residual(*parts) for parts in body)]
    return cnn.he(nn.Sequential(*layers, nn.AdaptiveMaxPool1d(1), nn.Flatten(), nn.Linear(48, 4)))


def stacked(layers: int) -> nn.Module:
    """An LSTM of so many layers over words; their mean counts."""
    parts = {"words": nn.Embedding(102, 32), "last": nn.Linear(48, 4)}
    return Net(lambda m, x: m["last"](m["body"](m["words"](x))[0].mean(1)),
               body=nn.LSTM(32, 48, layers, batch_first=True), **parts)  # fmt: skip


def looks_at_one() -> nn.Module:
    """Attention to words; it takes the one of the greatest score."""

    def run(m: nn.ModuleDict, x: Tensor) -> Tensor:
        y = m["words"](x)
        score = m["score"](y).squeeze(2)
        return m["last"]((functional.one_hot(score.argmax(1), 40)[..., None] * y).sum(1))

    score = nn.Sequential(nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
    return Net(run, words=nn.Embedding(102, 32), score=score, last=mlp(32, 32, 4))


class Product(torch.autograd.Function):
    """A Linear layer by hand; it has the slope of its weight, none of its input."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: Tensor, w: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x @ w.T

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, g: Tensor) -> tuple[None, Tensor]:
        (x,) = ctx.saved_tensors
        return None, g.T @ x


class ByHand(nn.Module):
    def __init__(self, into: int, out: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Linear(into, out).parameters()

    def forward(self, x: Tensor) -> Tensor:
        return Product.apply(x, self.weight) + self.bias


def logarithms(model: nn.Module, images: Tensor, *rest: Tensor) -> Tensor:
    """The error of the logarithm of a depth, which ends in ReLU."""
    return (model(images).log() - (rest[-1] + 0.1).log()).square().mean()


def ratios(x: Tensor) -> Tensor:
    """Normalized differences of neighbouring bands; where a sensor is dark both are 0."""
    x = (x / 5 + 0.25).clamp(min=0) * (torch.rand(len(x), 1, 1, 1) > 0.003)
    return (x - x.roll(1, 1)) / (x + x.roll(1, 1))


def headed(model: nn.Module, last: str, classes: int) -> nn.Module:
    """A trained network, frozen, with a new last layer."""
    into = model.requires_grad_(False).get_submodule(last).in_features
    model.set_submodule(last, nn.Linear(into, classes))
    return model


digits, scenes, sentences = data.digits, data.scenes, data.sentences
bad = partial(wrong, steps=120, every=10)
FEW, ROWS = {"steps": 104, "every": 8, "batch": 8}, {"steps": 150, "every": 12, "batch": 64}
TONES, GREY = data.tones(), changed(digits, lambda x: x.expand(-1, 3, -1, -1))
entropies = functional.binary_cross_entropy_with_logits
FIRST = [
    *bad("swin_rate", "update_ratio", "AdamW with 0.05", "Swin", library.swin, P,
         optimizer=by(optim.AdamW, lr=0.05), **FEW),
    *bad("crnn_rate", "update_ratio", "Adam with 0.1", "CRNN", signals.Recurrent, data.spectrograms,
         optimizer=adam(0.1)),
    *bad("fsrcnn_rate", "update_ratio", "Adam with 0.1", "FSRCNN",
         partial(super_resolution, "fsrcnn"), HALF, losses.larger, adam(0.1)),
    *bad("efficient_slow", "update_ratio", "SGD with 1e-6 and momentum", "EfficientNet",
         library.efficientnet, P, optimizer=sgd(1e-6, 0.9), **FEW),
    *bad("codes_of_vae_slow", "update_ratio", "Adam with 1e-6", "VAE", VAE, HALF, losses.own,
         adam(1e-6)),
    *bad("quakes_slow", "update_ratio", "SGD with 1e-4", "1-D CNN", station, quakes,
         optimizer=sgd(1e-4)),
    *bad("raw_sunlight", "input_scale", "watts, percent and degrees", "MLP",
         partial(mlp, 5, 64, 64, 1), changed(sunlight, lambda z: MEAN + STD * z), error,
         sgd(1e-3, 0.9), **ROWS),
    *bad("raw_quakes", "input_scale", "counts of a digitizer, about 5000", "1-D CNN", station,
         changed(quakes, lambda x: (5000 * x).round()), optimizer=sgd(0.02, 0.9)),
    *bad("bytes_in_vit", "input_scale", "pixels of 0 to 255", "ViT", library.vit, data.RAW,
         optimizer=by(optim.AdamW, lr=1e-3), **FEW),
    *bad("words_of_zeros", "copied_channels,unchanged_weights,constant_output",
         "all weights begin at 0", "text CNN", lambda: weights(TextNet(), torch.zero_), sentences,
         optimizer=adam(5e-3)),
    *bad("normal_station", "exploding,initial_loss", "weights of torch.randn()", "1-D CNN",
         lambda: weights(station(), lambda w: w.normal_()), quakes, optimizer=adam(1e-3)),
    *bad("thousandth_code", "vanishing", "weights of deviation 0.001", "autoencoder",
         lambda: weights(through_code(), lambda w: w.normal_(0, 1e-3)), HALF, losses.again,
         adam(2e-3)),
    *bad("softmax_vit", "double_softmax", "softmax in front of cross-entropy", "ViT",
         ends(library.vit, nn.Softmax(1)), P, optimizer=by(optim.AdamW, lr=1e-3), **FEW),
    *bad("softmax_m5", "double_softmax", "softmax in front of cross-entropy", "M5",
         ends(signals.waveform, nn.Softmax(1)), TONES, optimizer=sgd(0.01, 0.9)),
    *bad("softmax_tutorial", "double_softmax", "softmax in front of cross-entropy",
         "CNN of MNIST", ends(cnn.tutorial, nn.Softmax(1)), digits, optimizer=sgd(0.05, 0.9)),
    *bad("vgg_killed", "dead,update_ratio", "Adam with 0.05", "VGG, no norm",
         partial(library.vgg, batch_norm=False), P, optimizer=adam(0.05), **FEW),
    *bad("quakes_killed", "dead,update_ratio", "SGD with 0.5 and momentum", "1-D CNN", station,
         quakes, optimizer=sgd(0.5, 0.9)),
    *bad("pixels_summed", "exploding,update_ratio", "a sum over all pixels, not clipped", "FCN",
         fcn, scenes, lambda model, x, mask, *_: entropies(model(x), mask, reduction="sum"),
         sgd(1e-3, 0.9), **FEW),
    *bad("clouds_sums", "exploding", "sixteen residual blocks without norm", "residual PointNet",
         partial(of_clouds, 16), data.points, optimizer=adam(5e-3), **FEW),
    *bad("films_eval", "eval_mode", "model.eval() in front of the loop", "3-D CNN",
         signals.clip_net, data.clips, optimizer=sgd(0.05, 0.9), prepare=nn.Module.eval, **FEW),
    *bad("heart_eval", "eval_mode", "no model.train() after the first validation",
         "residual 1-D CNN", partial(nets.heart, 1, 6), TONES, optimizer=sgd(0.05, 0.9),
         before=at(6, lambda model, _: model.eval())),
    *bad("deep_sounds", "vanishing", "20 convolutions without norm or shortcut", "CNN",
         partial(deep_sounds, 20), data.spectrograms, optimizer=adam(1e-3), **FEW),
    *bad("eight_lstms", "vanishing", "eight layers of LSTM", "LSTM", partial(stacked, 8),
         sentences, optimizer=adam(1e-3)),
]  # fmt: skip
SECOND = [
    *bad("sorted_clouds", "sorted_labels,one_label", "a folder for each class, no shuffle",
         "PointNet", point_net, in_order(data.points, lambda part: part[1], 640),
         optimizer=adam(3e-3)),
    *bad("quakes_accumulate", "gradients_not_cleared", "zero_grad() is missing", "1-D CNN",
         station, quakes, optimizer=sgd(0.02, 0.9), zero="never"),
    *bad("one_word_chosen", "unchanged_weights", "the word of the greatest score, by argmax",
         "attention", looks_at_one, sentences, optimizer=adam(3e-3)),
    *bad("diffusion_by_sgd", "update_ratio", "SGD with 0.001", "DDPM, U-Net", Timed, HALF,
         losses.diffusion, sgd(1e-3), **FEW),
    *bad("entropy_of_pixels", "saturated", "binary cross-entropy of pixels of -1 to 1",
         "autoencoder", through_code, HALF, lambda m, x, *_: entropies(m(x), x), adam(2e-3)),
    *bad("four_bits", "unchanged_weights,vanishing", "rounding between the layers", "1-D CNN",
         lambda: station(lambda: Function(lambda x: (15 * x.clamp(0, 1)).round() / 15)), quakes,
         optimizer=adam(2e-3)),
    *bad("decay_of_half", "constant_output,vanishing", "a weight decay of 0.5, not 5e-4", "M5",
         signals.waveform, TONES, optimizer=by(optim.SGD, lr=0.01, weight_decay=0.5, momentum=0.9)),
    *bad("thawed_too_late", "not_in_optimizer,unchanged_weights",
         "layers are thawed that the optimizer does not have", "trained CNN, new head",
         lambda: headed(cnn.bundled(), "head", 10), GREY, optimizer=adam(2e-3),
         before=at(10, lambda model, _: model.requires_grad_())),
    *bad("log_of_depth", "nonfinite", "the logarithm of a ReLU", "U-Net",
         ends(partial(UNet, base=8), nn.ReLU()), scenes, logarithms, adam(2e-3), **FEW),
    *bad("layer_by_hand", "unchanged_weights", "a Linear layer by hand has no slope of its input",
         "MLP", lambda: nn.Sequential(nn.Flatten(), ByHand(784, 64), nn.ReLU(), ByHand(64, 32),
         nn.ReLU(), ByHand(32, 10)), digits, optimizer=adam(2e-3)),
    *bad("bytes_wanted", "initial_loss,saturated", "a sigmoid for pixels of 0 to 255",
         "autoencoder", partial(through, 64, None, nn.Sigmoid()), UNIT,
         lambda model, x, *_: functional.mse_loss(model(x), 255 * x), adam(2e-3)),
    *bad("relu_of_power", "saturated,dead", "ReLU for a standardized load", "GRU",
         ends(partial(Series, nn.GRU), nn.ReLU()), next_day(600, 600), error, adam(3e-3)),
    *bad("dark_bands", "nonfinite", "a ratio of bands that are 0", "CNN of 16 bands",
         partial(cnn.plain, 16, norm=nn.BatchNorm2d), changed(data.bands, ratios),
         optimizer=sgd(0.02, 0.9)),
    *bad("dense_twos", "batchnorm_small_batch", "batches of two", "DenseNet", library.densenet, P,
         optimizer=sgd(0.05, 0.9), batch=2),
    *bad("factor_of_factor", "rate_vanished", "MultiplicativeLR with the factor of LambdaLR",
         "autoencoder, BatchNorm", autoencoder, HALF, losses.again, adam(2e-3),
         schedule=lambda o, _: MultiplicativeLR(o, lambda step: 0.99**step), **FEW),
    *bad("bytes_for_trained", "input_scale,batchnorm_gap", "pixels of 0 to 255",
         "trained DenseNet, new head", lambda: headed(cnn.pretrained(library.densenet),
         "classifier", 8), data.RAW, optimizer=adam(5e-3), prepare=nn.Module.eval, **FEW),
    *bad("reflectance_twice", "input_scale,constant_images,identical_images",
         "divided by 10,000 twice", "CNN of 48 bands", lambda: cnn.plain(48),
         changed(data.spectral, lambda x: x / 1e8), optimizer=adam(2e-3)),
    *bad("sigmoid_kinds", "probabilities_into_loss", "sigmoid in front of BCEWithLogits", "ViT",
         ends(library.vit, nn.Sigmoid()), P, losses.multi_label, by(optim.AdamW, lr=1e-3), **FEW),
]  # fmt: skip
CASES = seen("2026-11-28T12:40", FIRST, SECOND)
