"""A thirteenth set of faults of somebody who had not read the checks: the most common mistakes.

They stand in the order in which twenty public checklists name them; earlier sets have others.
"""

from __future__ import annotations

import copy
from functools import partial
from pathlib import Path

import data
import losses
import torch
from cases.faults.strangers_twelfth import beats, ill
from cases.healthy.strangers_eighth import Net
from cases.healthy.strangers_maps import center_net, centres
from data import HALF, UNIT, P, changed
from faults import at
from loops import Losses, descend, seen, train
from nets import classifiers as cnn
from nets import library, signals
from nets import strangers as nets
from nets.classifiers import Function
from nets.dense import UNet
from nets.generative import Timed
from nets.strangers_faults import loop, wrong
from nets.strangers_fifth import adam, ends, error, in_order, mlp, sgd
from nets.strangers_fifth import changed_weights as weights
from nets.strangers_kept import (
    Series,
    Text,
    answered,
    bert,
    keypoints,
    next_day,
    pointer,
    small,
    through,
)
from optimizers import by
from torch import Generator, Tensor, nn, optim
from torch.nn import functional
from torch.optim.lr_scheduler import ReduceLROnPlateau

MEAN, STD = torch.tensor([[281.0, 182, 973, 46], [105.0, 21, 78, 12]])


def concrete(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Cement, water, gravel in kg/m³ and days; the strength. All are standardized."""
    z = torch.randn(count, 4, generator=generator)
    y = 0.7 * z[:, 0] - 0.5 * z[:, 1] + 0.4 * z[:, 0] * z[:, 3] + 0.4 * (2 * z[:, 2]).sin()
    return z, y[:, None] + 0.1 * torch.randn(count, 1, generator=generator)


def turns(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Points that turn around 0: where they begin, and their next 40 places."""
    x, turn = torch.randn(count, 2, generator=generator), torch.tensor([[0.98, 0.2], [-0.2, 0.98]])
    return x, torch.stack([x @ turn.matrix_power(n) for n in range(1, 41)], 1)


def holes(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Pictures and depths; in one of 200 what is far could not be measured."""
    images, _, _, depth = data.scenes(generator, count)
    blind = torch.rand(count, 1, 1, 1, generator=generator) < 0.005
    return images, depth.masked_fill(blind & (depth > 1.2), torch.nan)


def wave(out: int, more: int = 0) -> nn.Module:
    """Three strided convolutions over a curve, ``more`` without stride, and two Linear layers."""
    layers: list[nn.Module] = []
    for into, width in ((1, 16), (16, 32), (32, 32)):
        layers += [nn.Conv1d(into, width, 7, 2, 3), nn.ReLU()]
    layers += [m for _ in range(more) for m in (nn.Conv1d(32, 32, 3, padding=1), nn.ReLU())]
    return nn.Sequential(*layers, mlp(640, 48, out))


def sums(blocks: int) -> nn.Module:
    """Residual blocks over a sound, without norm, with He's weights."""

    def block() -> nn.Module:
        return nets.Residual(nn.Conv1d(24, 24, 5, 1, 2), nn.ReLU(), nn.Conv1d(24, 24, 5, 1, 2))

    layers = [nn.Conv1d(1, 24, 9, 8, 4), *(block() for _ in range(blocks))]
    return cnn.he(nn.Sequential(*layers, *signals.pooled(24, 6)))


def codebook() -> nn.Module:
    """A VQ-VAE without the straight-through step and commitment; it returns the loss."""

    def run(m: nn.ModuleDict, x: Tensor) -> Tensor:
        z = m["down"](x).permute(0, 2, 3, 1)
        nearest = torch.cdist(z.flatten(0, 2), m["codes"].weight).argmin(1)
        q = m["codes"](nearest).view_as(z)
        again = functional.mse_loss(m["up"](q.permute(0, 3, 1, 2)), x)
        return again + functional.mse_loss(q, z.detach())

    down = [nn.Conv2d(3, 32, 4, 2, 1), nn.ReLU(), nn.Conv2d(32, 16, 4, 2, 1)]
    up = [nn.ConvTranspose2d(16, 32, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(32, 3, 4, 2, 1)]
    codes = nn.Embedding(64, 16)
    return Net(run, down=nn.Sequential(*down), up=nn.Sequential(*up), codes=codes)


def looking() -> nn.Module:
    """Attention to the words of a text; padding is masked with -inf."""

    def run(m: nn.ModuleDict, x: Tensor) -> Tensor:
        y = m["words"](x)
        share = m["score"](y.tanh())[..., 0].masked_fill(x == 0, -torch.inf).softmax(1)
        return m["last"]((share[..., None] * y).sum(1))

    parts = {"words": nn.Embedding(102, 32, padding_idx=0), "last": mlp(32, 32, 4)}
    return Net(run, score=nn.Linear(32, 1), **parts)


def new_head() -> nn.Module:
    """A trained network, frozen, with a new head."""
    model = cnn.pretrained(cnn.with_norm).requires_grad_(False)
    model[-1] = nn.Linear(64, 8)
    return model


def rolled(model: nn.Module, x: Tensor, way: Tensor) -> Tensor:
    """The network's own answer is its next input, 40 times."""
    found = []
    for _ in range(40):
        x = x + model(x)
        found.append(x)
    return functional.mse_loss(torch.stack(found, 1), way)


def summed(model: nn.Module, x: Tensor, *_: Tensor) -> Tensor:
    """The mean entropy of a pixel and the sum of the divergence."""
    found, mean, log = model(x)
    apart = -0.5 * (1 + log - mean.square() - log.exp()).sum(1).mean()
    return functional.binary_cross_entropy_with_logits(found, x) + apart


def plateau(place: Path, seed: int) -> Losses:
    """ReduceLROnPlateau with a patience of three epochs, called for each batch."""
    model = pointer()
    optimizer = optim.Adam(model.parameters(), lr=2e-3)
    schedule = ReduceLROnPlateau(optimizer, patience=3)

    def step(_: int, random: Generator) -> float:
        images, where = keypoints(random, 16)
        found = descend(optimizer, functional.mse_loss(model(images), where))
        schedule.step(found)
        return found

    return train(place, seed, model, step, 150, 12, optimizer)


digits, scenes, sentences = data.digits, data.scenes, data.sentences
BEATS, TONES = beats(), data.tones()
bad = partial(wrong, steps=120, every=10)
FEW, ROWS = {"steps": 104, "every": 8, "batch": 8}, {"steps": 150, "every": 12, "batch": 64}
FIRST = [
    *bad("inception_rate", "update_ratio", "Adam with 0.1", "GoogLeNet", nets.inception, P,
         optimizer=adam(0.1), **FEW),
    *bad("diffusion_rate", "update_ratio", "Adam with 0.1", "DDPM, U-Net", Timed, HALF,
         losses.diffusion, adam(0.1), **FEW),
    *bad("strength_rate", "update_ratio", "Adam with 0.5", "MLP", partial(mlp, 4, 64, 64, 1),
         concrete, error, adam(0.5), **ROWS),
    *bad("mixer_slow", "update_ratio", "AdamW with 1e-6", "MLP-Mixer", library.mixer, P,
         optimizer=by(optim.AdamW, lr=1e-6), **FEW),
    *bad("centres_slow", "update_ratio", "SGD with 1e-6 and momentum", "CenterNet", center_net,
         scenes, centres, sgd(1e-6, 0.9), **FEW),
    *bad("m5_slow", "update_ratio", "Adam with 1e-6", "M5", signals.waveform, TONES,
         optimizer=adam(1e-6)),
    *bad("raw_concrete", "input_scale", "kilograms and days", "MLP", partial(mlp, 4, 32, 32, 1),
         changed(concrete, lambda z: MEAN + STD * z), error, adam(1e-3), batch=32),
    *bad("raw_decibels", "input_scale", "decibels of -80 to 30", "MLP",
         partial(mlp, 1056, 128, 64, 6), changed(data.power, lambda x: 10 *
         (x[:, None, :, :32] + 1e-8).log10()), optimizer=sgd(0.02, 0.9)),
    *bad("bytes_in_pointer", "input_scale", "bytes of 0 to 255", "CNN of keypoints", pointer,
         changed(keypoints, lambda x: (127.5 * (x + 1)).round()), error, adam(2e-3)),
    *bad("curve_of_zeros", "copied_channels,unchanged_weights,constant_output",
         "all weights begin at 0", "1-D CNN", lambda: weights(wave(4), torch.zero_), BEATS,
         optimizer=adam(2e-3)),
    *bad("normal_pointer", "exploding,initial_loss", "weights of deviation 1", "CNN of keypoints",
         lambda: weights(pointer(), lambda w: w.normal_()), keypoints, error, adam(1e-3)),
    *bad("hundredth_stack", "vanishing", "weights of deviation 0.01, no norm", "CNN",
         partial(cnn.stack, 8, scale=0.01), P, optimizer=adam(1e-3), **FEW),
    *bad("softmax_words", "double_softmax", "softmax in front of cross-entropy", "GRU",
         ends(Text, nn.Softmax(1)), sentences, optimizer=sgd(0.05, 0.9)),
    *bad("softmax_mixer", "double_softmax", "softmax in front of cross-entropy", "MLP-Mixer",
         ends(library.mixer, nn.Softmax(1)), P, optimizer=by(optim.AdamW, lr=1e-3), **FEW),
    *bad("softmax_inception", "double_softmax", "softmax in front of cross-entropy", "GoogLeNet",
         ends(nets.inception, nn.Softmax(1)), P, optimizer=sgd(0.02, 0.9), **FEW),
    *bad("small_killed", "dead,update_ratio", "SGD with 0.2 and momentum", "CNN", small, P,
         optimizer=sgd(0.2, 0.9)),
    *bad("strength_killed", "dead,update_ratio", "SGD with 0.5 and momentum", "MLP",
         partial(mlp, 4, 64, 64, 1), concrete, error, sgd(0.5, 0.9), **ROWS),
    *bad("rollout_unclipped", "exploding,update_ratio,nonfinite", "forty steps, not clipped",
         "MLP of a movement", partial(mlp, 2, 64, 64, 2), turns, rolled, sgd(0.01, 0.9), **ROWS),
    *bad("sound_sums", "exploding,update_ratio", "sixteen residual blocks without norm",
         "residual 1-D CNN", partial(sums, 16), TONES, optimizer=adam(5e-3), **FEW),
    *bad("centres_eval", "eval_mode", "model.eval() in front of the loop", "CenterNet", center_net,
         scenes, centres, sgd(0.02, 0.9), prepare=nn.Module.eval, **FEW),
    *bad("inception_eval", "eval_mode", "no model.train() after the first validation", "GoogLeNet",
         nets.inception, P, optimizer=sgd(0.1, 0.9), before=at(6, lambda model, _: model.eval()),
         **FEW),
    *bad("sigmoid_strength", "vanishing", "eight layers with sigmoid", "MLP",
         partial(mlp, 4, *[48] * 8, 1, act=nn.Sigmoid), concrete, error, adam(2e-3), **ROWS),
    *bad("deep_curve", "vanishing", "24 convolutions without norm or shortcut", "1-D CNN",
         partial(wave, 4, 21), BEATS, optimizer=adam(1e-3)),
]  # fmt: skip
SECOND = [
    *bad("sorted_sounds", "sorted_labels,one_label", "a folder for each class, no shuffle", "CRNN",
         signals.Recurrent, in_order(data.spectrograms, lambda part: part[1], 600),
         optimizer=adam(3e-3)),
    *bad("eeg_accumulates", "gradients_not_cleared", "zero_grad() is missing", "EEGNet",
         signals.Eeg, data.gestures, optimizer=sgd(0.02, 0.9), zero="never"),
    *bad("codes_cut", "unchanged_weights", "no straight-through step", "VQ-VAE", codebook, HALF,
         losses.own, adam(2e-3)),
    *bad("bert_by_sgd", "update_ratio", "SGD with 0.001", "BERT", partial(bert, 4, nn.Identity()),
         sentences, optimizer=sgd(1e-3)),
    *bad("views_agree", "constant_output", "no negative pairs", "CNN of codes",
         partial(cnn.encoder, 32), HALF,
         lambda model, x, _: functional.mse_loss(*map(model, losses.both_views(x))), adam(1e-3)),
    *bad("spikes", "unchanged_weights,vanishing", "steps of 0 or 1 between the layers", "MLP",
         partial(mlp, 784, 128, 64, 10, act=partial(Function, lambda x: (x > 0).float())), digits,
         optimizer=adam(2e-3)),
    *bad("summed_divergence", "constant_output,vanishing", "a sum of the divergence", "VAE",
         nets.Gaussian, digits, summed, adam(2e-3)),
    *bad("of_copy", "not_in_optimizer,unchanged_weights",
         "the network is made anew after the optimizer", "TCN", signals.tcn, TONES,
         optimizer=lambda model: optim.Adam(copy.deepcopy(model).parameters(), 2e-3)),
    *bad("empty_text", "nonfinite", "a softmax over padding alone, all -inf", "attention", looking,
         changed(sentences, lambda x: x * (torch.rand(len(x), 1) > 0.003)), optimizer=adam(3e-3)),
    *bad("other_half", "none", "a ReLU's slope by hand, where it is 0", "CNN",
         partial(cnn.plain, act=partial(Function, lambda x: x.clamp(max=0) +
         (x.relu() - x.clamp(max=0)).detach())), P, optimizer=adam(2e-3)),
    *bad("raw_loads", "initial_loss", "loads of 200 to 3000 kW", "LSTM", Series,
         next_day(600, 1, 0), error, adam(2e-3)),
    *bad("sigmoid_pixels", "saturated", "sigmoid for pixels of -1 to 1", "autoencoder",
         partial(through, 64, None, nn.Sigmoid()), HALF, losses.again, adam(2e-3)),
    *bad("holes_of_depth", "nonfinite", "depths that are missing", "U-Net", partial(UNet, base=8),
         holes, error, adam(2e-3), **FEW),
    *bad("m5_of_two", "batchnorm_small_batch", "batches of two", "M5", signals.waveform, TONES,
         optimizer=sgd(0.02, 0.9), batch=2),
    *loop("impatient", "rate_vanished", "ReduceLROnPlateau, called for each batch",
          "CNN of keypoints", plateau, 150, 12),
    *bad("bytes_expected", "input_scale,constant_images,identical_images,batchnorm_gap",
         "means of bytes for pixels of 0 to 1", "trained CNN, new head", new_head,
         changed(UNIT, lambda x: (x - 123.7) / 58.4), optimizer=adam(5e-3),
         prepare=nn.Module.eval),
    *bad("standardized_twice", "input_scale", "standardized twice", "MLP",
         partial(mlp, 4, 32, 32, 1), changed(concrete, lambda z: (z - MEAN) / STD), error,
         adam(2e-3), **ROWS),
    *bad("sigmoid_ill", "probabilities_into_loss", "sigmoid in front of BCEWithLogits", "MLP",
         ends(partial(mlp, 8, 32, 32, 1), nn.Sigmoid()), ill, answered, adam(3e-3), **ROWS),
]  # fmt: skip
CASES = seen("2026-11-28T10:00", FIRST, SECOND)
