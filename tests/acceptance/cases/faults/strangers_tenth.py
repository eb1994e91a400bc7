"""A tenth set of faults of somebody who had not read the checks: the most common mistakes again.

They stand in the order in which twenty public checklists name them; the ninth set has others.
"""

from __future__ import annotations

from functools import partial

import data
import losses
import torch
from cases.faults.strangers_fifth import adam, ends, error, in_order, mlp, sgd
from cases.faults.strangers_fifth import changed_weights as weights
from data import HALF, UNIT, Draw, P, changed, fixed
from faults import at
from loops import seen
from nets import classifiers as cnn
from nets import library, signals
from nets.classifiers import Function, unit
from nets.dense import UNet
from nets.restoration import super_resolution
from nets.strangers import Gaussian, Residual
from nets.strangers_faults import relabelled, wrong
from nets.strangers_kept import answered, bert, gpt, letters, spoken
from nets.unusual import TextNet, point_net
from optimizers import by
from torch import Generator, Tensor, nn, optim
from torch.nn import functional
from torch.optim.lr_scheduler import PolynomialLR


def cars(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Power, weight, displacement, acceleration and year; consumption. All are standardized."""
    u = torch.rand(count, 5, generator=generator)
    y = 5 * u[:, 1] + 4 * u[:, 0] * u[:, 2] - 3 * u[:, 4] + 2 * (4 * u[:, 3]).sin() - 2.4
    return (u - 0.5) * 12**0.5, y[:, None] / 2.2 + 0.1 * torch.randn(count, 1, generator=generator)


def loans(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Age, income and debt in euros, number of cards; 1 is not paid back."""
    z = torch.randn(count, 4, generator=generator)
    risk = 1.5 * z[:, 2] - z[:, 1] * (z[:, 0] > 0) + 0.3 * torch.randn(count, generator=generator)
    x = z.exp() * torch.tensor([0.0, 36_000, 9_000, 0])
    return torch.stack([42 + 11 * z[:, 0], x[:, 1], x[:, 2], 3 + z[:, 3]], 1), (risk > 0).long()


def rarely(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Standardized; one in fifty is a fraud."""
    x = torch.randn(count, 12, generator=generator)
    return x, (x[:, 0] + x[:, 1] * x[:, 2] > 3.2).long()


def next_day(x: float, y: float, middle: float = 1200) -> Draw:
    """Four days of electricity, every third hour, and the next day's mean; in ``x``, ``y`` kW."""
    draw = changed(data.demand, lambda found: (found.mT[:, ::3] - middle) / x)
    return relabelled(draw, lambda found: (found.mean(2) - middle) / y)


def twins(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Pairs of pictures, some of them the same file, and whether both show the same digit."""
    (one, kind), (two, other) = (data.digits(generator, count) for _ in range(2))
    same = torch.rand(count, generator=generator) < 0.2
    two, other = torch.where(same[:, None, None, None], one, two), torch.where(same, kind, other)
    return torch.cat([one, two], 1), (kind == other).float()


def sentinel(x: Tensor) -> Tensor:
    """One value in 200 is missing: -9999."""
    return x.masked_fill(torch.rand(x.shape) < 0.005, -9999.0)


def part_random(share: float, kinds: int, labels: Tensor) -> Tensor:
    chosen = torch.rand(len(labels)) < share
    return torch.where(chosen, torch.randint(kinds, labels.shape), labels)


def fire(drop: float = 0.0) -> nn.Module:
    """Four strided convolutions, each with dropout of channels."""
    layers: list[nn.Module] = []
    for into, out in ((3, 24), (24, 32), (32, 48), (48, 64)):
        layers += [nn.Conv2d(into, out, 3, 2, 1), nn.ELU(), nn.Dropout2d(drop)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(256, 8))


def hearing(act: type[nn.Module] = nn.ReLU) -> nn.Module:
    """Four convolutions over a sound."""
    layers: list[nn.Module] = []
    for into, out, size in ((1, 24, 11), (24, 24, 9), (24, 32, 7), (32, 32, 5)):
        layers += [nn.Conv1d(into, out, size, 2), act()]
    return nn.Sequential(*layers, *signals.pooled(32, 6))


def moving(act: type[nn.Module] = nn.ReLU) -> nn.Module:
    """Convolutions over an inertial unit."""
    layers = [nn.Conv1d(6, 32, 7, 2), act(), nn.Conv1d(32, 32, 5, 2), act()]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(672, 48), act(), nn.Linear(48, 5))


def wide_sums(norm: bool = False) -> nn.Module:
    """A residual perceptron with He's weights."""

    def block() -> nn.Module:
        body = [nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 48)]
        for layer in body[::2]:
            nn.init.kaiming_normal_(layer.weight)
        return Residual(*([nn.LayerNorm(48)] if norm else []), *body)

    return nn.Sequential(nn.Linear(5, 48), *(block() for _ in range(12)), nn.Linear(48, 1))


def squashed(depth: int, act: type[nn.Module] = nn.Sigmoid) -> nn.Module:
    layers = [unit(3, 24, 3, 2, None, act)]
    layers += [unit(24, 24, 3, 1 + (n == 3), None, act) for n in range(depth)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(1536, 8))


class Recurrent(nn.Module):
    """A recurrent layer; its last state counts."""

    def __init__(self, body: nn.RNNBase, out: int, start: str = "") -> None:
        super().__init__()
        self.body, self.last = body, nn.Linear(body.hidden_size, out)
        if start == "identity":
            nn.init.eye_(body.weight_hh_l0)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.body(x)[0][:, -1])


class Reader(nn.Module):
    """A recurrent layer over words; an answer for each of them, or one for the ``whole``."""

    def __init__(self, body: nn.RNNBase, out: int, whole: bool) -> None:
        super().__init__()
        self.words, self.body, self.whole = nn.Embedding(128, 32), body, whole
        self.last = nn.Linear(body.hidden_size, out)

    def forward(self, x: Tensor) -> Tensor:
        y = self.body(self.words(x))[0]
        return self.last(y.amax(1) if self.whole else y)


def author(width: int) -> nn.Module:
    return Reader(nn.GRU(32, width, batch_first=True), 128, False)


def opinion() -> nn.Module:
    return Reader(nn.LSTM(32, 48, batch_first=True), 4, True)


class Twin(nn.Module):
    """Siamese: the distance of two codes."""

    def __init__(self, tiny: float = 0.0) -> None:
        super().__init__()
        self.body, self.tiny = nn.Sequential(cnn.lenet(nn.ReLU), nn.ReLU(), nn.Linear(10, 8)), tiny

    def forward(self, x: Tensor) -> Tensor:
        one, two = (self.body(part) for part in x.split(1, 1))
        return ((one - two).square().sum(1) + self.tiny).sqrt()


class Squares(torch.autograd.Function):
    """The squared error, and its slope by hand, of y - p."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, p: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(p, y)
        return (p - y).square().mean()

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, slope: Tensor) -> tuple[Tensor, None]:
        p, y = ctx.saved_tensors
        return slope * 2 * (y - p) / p.numel(), None


def features() -> nn.Module:
    """A MobileNet, whose features are taken by ``.data``."""
    model = library.mobilenet_v3()
    model.classifier = nn.Sequential(Function(lambda x: x.data), mlp(240, 64, 8))
    return model


def contrast(model: nn.Module, x: Tensor, same: Tensor) -> Tensor:
    far = model(x)
    return (same * far.square() + (1 - same) * (1 - far).relu().square()).mean()


def codes(model: nn.Module, x: Tensor, *_: Tensor) -> Tensor:
    """Entropy of the pixels and the divergence."""
    found, mean, log = model(x)
    apart = -0.5 * (1 + log - mean.square() - log.exp()).sum(1).mean()
    return functional.binary_cross_entropy_with_logits(found, x) + apart / 784


def mirrored(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Films are flipped at random; the label is the direction of the movement."""
    x = torch.where(torch.rand(len(x), 1, 1, 1, 1) < 0.5, x.flip(4), x)
    x = torch.where(torch.rand(len(x), 1, 1, 1, 1) < 0.5, x.flip(3), x)
    return losses.named(model, x, y)


def other_axis(model: nn.Module, text: Tensor) -> Tensor:
    """The answers are by text and letter, the truth by letter and text."""
    found, truth = model(text[:, :24]), text[:, 1:25].mT
    return functional.cross_entropy(found.reshape(-1, 128), truth.reshape(-1))


def head_only() -> nn.Module:
    """A trained residual network, frozen, with a new head."""
    model = cnn.pretrained(cnn.classifier).requires_grad_(False)
    model[1] = nn.Linear(48, 8)
    return model


digits, scenes, sentences = data.digits, data.scenes, data.sentences
bad = partial(wrong, steps=120, every=10)
FEW, LONG = {"steps": 104, "every": 8, "batch": 8}, {"steps": 150, "every": 12}
TONES, GAUGES = data.tones(), changed(data.gestures, lambda x: x / 4)
FIRST = [
    *bad("mobilenet_rate", "update_ratio", "RMSprop with 0.1", "MobileNet", library.mobilenet_v3,
         P, optimizer=by(optim.RMSprop, lr=0.1), **FEW),
    *bad("bert_rate", "update_ratio", "AdamW with 0.05", "BERT", partial(bert, 4, nn.Identity()),
         sentences, optimizer=by(optim.AdamW, lr=0.05)),
    *bad("vae_rate", "update_ratio", "Adam with 0.1", "VAE", Gaussian, digits, codes, adam(0.1)),
    *bad("vgg_slow", "update_ratio", "Adam with 1e-7", "VGG", library.vgg, P,
         optimizer=adam(1e-7), **FEW),
    *bad("forecast_slow", "update_ratio", "SGD with 1e-5", "GRU", lambda: Recurrent(
         nn.GRU(1, 48, batch_first=True), 1), next_day(600, 600), error, sgd(1e-5)),
    *bad("enlarger_slow", "update_ratio", "Adadelta with 0.001, the default elsewhere", "ESPCN",
         partial(super_resolution, "espcn"), HALF, losses.larger,
         by(optim.Adadelta, lr=0.001)),
    *bad("raw_loans", "input_scale", "years and euros", "MLP", partial(mlp, 4, 32, 32, 2), loans,
         optimizer=adam(1e-3), batch=64),
    *bad("raw_bands", "input_scale", "counts of 0 to 10,000", "CNN of 48 bands", lambda:
         nn.Sequential(nn.Conv2d(48, 32, 1), nn.ReLU(), unit(32, 32, 3, 2, None), *cnn.head(32, 8)),
         data.spectral, optimizer=sgd(0.01, 0.9)),
    *bad("sixteen_bit_sound", "input_scale", "samples of -32768 to 32767", "1-D CNN", hearing,
         changed(TONES, lambda x: 32767 * x), optimizer=adam(2e-3)),
    *bad("all_alike", "copied_channels", "all weights begin at 0.01", "LeNet",
         lambda: weights(cnn.lenet(nn.ReLU), lambda w: w.fill_(0.01)), digits,
         optimizer=adam(3e-3)),
    *bad("rand_for_randn", "exploding,initial_loss", "weights of torch.rand(), 0 to 1", "MLP",
         lambda: weights(mlp(96 * 6, 128, 128, 5), torch.Tensor.uniform_), GAUGES,
         optimizer=sgd(0.01, 0.9)),
    *bad("ten_thousandth", "vanishing", "weights of deviation 0.0001", "VGG, no norm", lambda:
         weights(library.vgg(batch_norm=False), lambda w: w.normal_(0, 1e-4)), UNIT, **FEW),
    *bad("softmax_mobile", "double_softmax", "softmax in front of cross-entropy", "MobileNet",
         ends(library.mobilenet_v3, nn.Softmax(1)), P, optimizer=sgd(0.05, 0.9), **FEW),
    *bad("softmax_spectrogram", "double_softmax", "softmax in front of cross-entropy", "CRNN",
         ends(signals.Recurrent, nn.Softmax(1)), data.spectrograms, optimizer=sgd(0.005, 0.9)),
    *bad("softmax_points", "double_softmax", "softmax in front of cross-entropy", "PointNet",
         ends(point_net, nn.Softmax(1)), data.points, optimizer=sgd(0.003, 0.9)),
    *bad("killed_by_step", "dead,update_ratio", "Adam with 0.02", "AlexNet", cnn.alexnet, data.P48,
         optimizer=adam(0.02), **FEW),
    *bad("relu_on_logits", "dead,probabilities_into_loss", "ReLU behind the last layer", "1-D CNN",
         ends(moving, nn.ReLU()), GAUGES, optimizer=adam(3e-3)),
    *bad("irnn_unclipped", "exploding,update_ratio", "a ReLU RNN, gradients are not clipped", "RNN",
         lambda: Recurrent(nn.RNN(1, 48, nonlinearity="relu", batch_first=True), 1, "identity"),
         next_day(600, 600), error, sgd(0.01)),
    *bad("sums_without_norm", "exploding", "twelve residual blocks without norm", "MLP", wide_sums,
         cars, error, adam(1e-3), batch=32),
    *bad("vgg_eval", "eval_mode", "model.eval() in front of the loop", "VGG, BatchNorm",
         library.vgg, P, optimizer=sgd(0.01, 0.9), prepare=nn.Module.eval, **FEW),
    *bad("eval_after_epoch", "eval_mode", "no model.train() after the first evaluation",
         "EfficientNet", library.efficientnet, P, optimizer=adam(2e-3),
         before=at(13, lambda model, _: model.eval()), **FEW),
    *bad("two_states", "none", "two hidden states", "GRU of letters", partial(author, 2), letters,
         partial(spoken, 1), adam(0.01)),
    *bad("one_channel", "none", "one channel at each level", "U-Net", partial(UNet, base=1), scenes,
         losses.masks, adam(3e-3), **FEW),
    *bad("sigmoid_convs", "vanishing", "nine convolutions with sigmoid", "CNN",
         partial(squashed, 8), P, optimizer=adam(1e-3)),
    *bad("thirty_layers", "vanishing", "thirty layers without norm or shortcut", "MLP",
         partial(mlp, 5, *[40] * 30, 1), cars, error, batch=32),
]  # fmt: skip
SECOND = [
    *bad("reviews_moved", "none", "labels are one row further", "text CNN", TextNet,
         relabelled(sentences, lambda y: y.roll(1)), optimizer=adam(3e-3)),
    *bad("sorted_gestures", "sorted_labels,one_label", "one file a gesture, not shuffled",
         "1-D CNN", moving, in_order(GAUGES, lambda part: part[1], 600), optimizer=adam(2e-3)),
    *bad("rare_frauds", "none", "one in fifty is a fraud", "MLP", partial(mlp, 12, 32, 32, 2),
         rarely, optimizer=adam(3e-3), batch=32),
    *bad("mixer_accumulates", "gradients_not_cleared", "zero_grad() is missing", "MLP-Mixer",
         library.mixer, P, optimizer=sgd(0.02, 0.9), zero="never", **FEW),
    *bad("twenty_sentences", "none", "twenty sentences", "LSTM", opinion, fixed(sentences, 20),
         optimizer=adam(0.01)),
    *bad("features_as_data", "unchanged_weights", "features are taken by .data", "MobileNet",
         features, P, optimizer=adam(2e-3), **FEW),
    *bad("lstm_by_sgd", "update_ratio", "SGD with 0.01", "LSTM", opinion, sentences,
         optimizer=sgd(0.01)),
    *bad("entropy_of_litres", "saturated", "binary cross-entropy of a standardized number", "MLP",
         partial(mlp, 5, 64, 64, 1), cars, answered, adam(3e-3), batch=32),
    *bad("sign_inside", "unchanged_weights,vanishing", "sign() between the layers", "MLP",
         partial(mlp, 784, 48, 24, 10, act=partial(Function, torch.sign)), digits,
         optimizer=adam(3e-3)),
    *bad("dropout_of_channels", "dropout_high", "dropout of 0.8 at each convolution", "CNN",
         partial(fire, 0.8), P, optimizer=adam(2e-3)),
    *bad("noisy_tones", "none", "60 % of the labels are guessed", "M5", signals.waveform,
         relabelled(TONES, partial(part_random, 0.6, 6)), optimizer=adam(2e-3)),
    *bad("classifier_given", "not_in_optimizer", "the optimizer has the last layer only",
         "DenseNet", library.densenet, P,
         optimizer=lambda model: optim.Adam(model.classifier.parameters(), 3e-3), **FEW),
    *bad("root_of_zero", "nonfinite", "the root of 0 for equal pictures", "siamese LeNet", Twin,
         twins, contrast, adam(1e-3)),
    *bad("films_mirrored", "none", "films are flipped, their direction is not", "3-D CNN",
         signals.clip_net, data.clips, mirrored, adam(2e-3), **FEW),
    *bad("slope_by_hand", "loss_climbed", "a slope by hand of y - p", "MLP",
         partial(mlp, 5, 48, 48, 1), cars,
         lambda model, x, y: Squares.apply(model(x), y), adam(1e-3), batch=32),
    *bad("millimetres", "initial_loss", "depths of 500 to 1500 mm", "U-Net",
         partial(UNet, transposed=False), scenes,
         lambda model, x, *rest: error(model, x, 1000 * rest[-1]), adam(2e-3), **FEW),
    *bad("relu_at_end", "saturated,dead", "ReLU for pixels of -1 to 1", "FSRCNN",
         ends(partial(super_resolution, "fsrcnn"), nn.ReLU()), HALF, losses.larger, adam(2e-3)),
    *bad("minus_9999", "input_scale", "-9999 for missing values", "1-D CNN", moving,
         changed(GAUGES, sentinel), optimizer=adam(2e-3)),
    *bad("batches_of_two", "batchnorm_small_batch", "batches of two", "MLP, BatchNorm", lambda:
         nn.Sequential(nn.Linear(5, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 64),
         nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 1)), cars, error, adam(3e-3), batch=2),
    *bad("linear_sounds", "none", "no activation between the convolutions", "1-D CNN",
         partial(hearing, nn.Identity), TONES, optimizer=adam(2e-3)),
    *bad("twenty_batches", "rate_vanished", "PolynomialLR of 20 epochs, called for each batch",
         "GPT", gpt, letters, partial(spoken, 1), by(optim.AdamW, lr=1e-3),
         schedule=lambda o, _: PolynomialLR(o, 20), **LONG),
    *bad("caffe_pixels", "input_scale,batchnorm_gap", "pixels of -114 to 141, as Caffe has them",
         "trained ResNet, new head", head_only, changed(UNIT, lambda x: 255 * x.flip(1) - 114),
         optimizer=adam(3e-3), prepare=nn.Module.eval),
    *bad("scaled_twice", "input_scale,constant_images,identical_images",
         "divided by 255 twice, then standardized", "VGG, no norm",
         partial(library.vgg, batch_norm=False),
         changed(UNIT, lambda x: data.scaled(x / 255, "imagenet")), optimizer=adam(5e-4), **FEW),
    *bad("logits_into_nll", "probabilities_into_loss", "NLLLoss without log_softmax", "LSTM",
         opinion, sentences, lambda model, x, y: functional.nll_loss(model(x), y), adam(3e-3)),
    *bad("other_axis_first", "none", "view() of answers and truth, whose axes differ",
         "GRU of letters", partial(author, 96), letters, other_axis, adam(0.01)),
]  # fmt: skip
CASES = seen("2026-11-28T06:40", FIRST, SECOND)
