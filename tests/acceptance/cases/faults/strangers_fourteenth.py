"""A fourteenth set of faults of somebody who had not read the checks: the most common mistakes.

They stand in the order in which twenty public checklists name them; earlier sets have others.
"""

from __future__ import annotations

import math
from functools import partial

import data
import losses
import torch
from cases.faults.strangers_thirteenth import new_head
from cases.faults.strangers_twelfth import of_nodes
from cases.healthy.strangers_eighth import Net, cora
from cases.healthy.strangers_maps import agent, charbonnier, ignoring, mu_law, soft_tissue
from cases.healthy.strangers_pictures import regions
from data import CROPS_UNIT, HALF, UNIT, P, changed
from faults import at
from loops import seen
from nets import classifiers as cnn
from nets import library, signals
from nets import strangers as nets
from nets.classifiers import Function
from nets.dense import UNet, autoencoder
from nets.restoration import RedNet
from nets.strangers_faults import relabelled, wrong
from nets.strangers_fifth import adam, ends, enlarger, error, fcn, in_order, mlp, sgd
from nets.strangers_fifth import changed_weights as weights
from nets.strangers_kept import Rows, Series, next_day
from optimizers import by
from torch import Generator, Tensor, nn, optim
from torch.nn import functional
from torch.optim.lr_scheduler import LinearLR

MEAN, STD = torch.tensor([[-73.97, 40.75, -73.97, 40.75, 13.5], [0.04, 0.03, 0.04, 0.03, 6]])
FIELD, RANGE = torch.tensor([[780.0, 16, 110, 6.5, 340], [210.0, 5, 45, 0.6, 190]])


def rides(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Where a taxi starts and ends, and the hour; how long it takes. All are standardized."""
    z = torch.randn(count, 5, generator=generator)
    far = (z[:, :2] - z[:, 2:4]).norm(dim=1)
    y = far * (1 + 0.3 * z[:, 4].sin()) - 1.77
    return z, y[:, None] + 0.1 * torch.randn(count, 1, generator=generator)


def harvests(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Rain, warmth, nitrogen, acidity and height; what is reaped. All are standardized."""
    z = torch.randn(count, 5, generator=generator)
    y = 0.6 * z[:, 0] - 0.4 * z[:, 1].square() + 0.5 * z[:, 2] * z[:, 3].tanh() - 0.4 * z[:, 4]
    return z, y[:, None] + 0.4 + 0.1 * torch.randn(count, 1, generator=generator)


def bearings(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Two accelerometers, [N, 2, 256], in g; a bearing is sound, or one of three parts knocks."""
    time, kind = torch.arange(256) / 256, torch.randint(4, (count,), generator=generator)
    phase, other, gain = torch.rand(3, count, 1, generator=generator)
    since = (torch.tensor([1.0, 5, 9, 14])[kind, None] * time + phase) % 1
    knock = (-8 * since).exp() * (2 * math.pi * 60 * time).sin() * (kind > 0)[:, None]
    hum = 0.3 * (2 * math.pi * (8 * time + other)).sin()
    wave = torch.stack([(0.6 + gain) * knock + hum, (1 - gain / 2) * knock - hum], 1)
    return wave + 0.05 * torch.randn(wave.shape, generator=generator), kind


def machine() -> nn.Module:
    """Four convolutions over what accelerometers say."""
    layers: list[nn.Module] = []
    for into, out, size in ((2, 24, 9), (24, 32, 7), (32, 32, 5), (32, 48, 5)):
        layers += [nn.Conv1d(into, out, size, 2), nn.ReLU()]
    return nn.Sequential(*layers, *signals.pooled(48, 4))


def solid(act: type[nn.Module] = nn.ReLU, more: int = 0) -> nn.Module:
    """Convolutions in space, ``more`` without stride, and two Linear layers."""
    layers: list[nn.Module] = [nn.Conv3d(1, 16, 5, 2), act()]
    layers += [m for _ in range(more) for m in (nn.Conv3d(16, 16, 3, padding=1), act())]
    return nn.Sequential(*layers, nn.MaxPool3d(2), nn.Flatten(), nn.Linear(432, 48), act(),
                         nn.Linear(48, 4))  # fmt: skip


def cited(layers: int, divided: bool = True) -> nn.Module:
    """A network of a graph: means, or sums, over neighbours."""

    def run(m: nn.ModuleDict, links: Tensor, x: Tensor) -> Tensor:
        links = links if divided else (links > 0).float()
        for layer in m["layers"]:
            x = (links @ layer(x)).relu()
        return m["last"](links @ x)

    parts = nn.ModuleList(nn.Linear(32 if n else 60, 32) for n in range(layers))
    return Net(run, layers=parts, last=nn.Linear(32, 3))


def dropped(share: float) -> nn.Module:
    """A mean of words, with dropout of each layer."""
    layers = [nn.Linear(32, 64), nn.ReLU(), nn.Dropout(share), nn.Linear(64, 64), nn.ReLU()]
    start = [nn.Embedding(102, 32), Function(lambda x: x.mean(1)), nn.Dropout(share)]
    return nn.Sequential(*start, *layers, nn.Dropout(share), nn.Linear(64, 4))


class Swish(torch.autograd.Function):
    """x · sigmoid(x); its slope by hand is not multiplied by that of what follows."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x.sigmoid()

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, _: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return x.sigmoid() * (1 + x * (1 - x.sigmoid()))


def evidence(model: nn.Module, x: Tensor, *_: Tensor) -> Tensor:
    """Sums over pixels and codes."""
    found, mean, log = model(x)
    again = functional.binary_cross_entropy_with_logits(found, x, reduction="sum")
    return again - 0.5 * (1 + log - mean.square() - log.exp()).sum()


def thresholded(model: nn.Module, images: Tensor, mask: Tensor, *_: Tensor) -> Tensor:
    """Dice of all that is above 0.5, which is then told to require a gradient."""
    found = (model(images).sigmoid() > 0.5).float()
    share = (2 * (found * mask).sum() + 1) / (found.sum() + mask.sum() + 1)
    return (1 - share).requires_grad_()


def alone(x: Tensor) -> Tensor:
    """Each window on its own mean and deviation; in one of 200 the machine stands."""
    x = x * (torch.rand(len(x), 1, 1) > 0.005)
    return (x - x.mean(2, keepdim=True)) / x.std(2, keepdim=True)


digits, scenes, sentences, catch = data.digits, data.scenes, data.sentences, data.catch
bad = partial(wrong, steps=120, every=10)
FEW, ROWS = {"steps": 104, "every": 8, "batch": 8}, {"steps": 150, "every": 12, "batch": 64}
PLAY = {"batch": 64, "steps": 200, "every": 16}
FOUR, THREE = FEW | {"batch": 4}, FEW | {"batch": 3}
LOAD = changed(relabelled(data.demand, lambda y: y[:, 0] / 600 - 2), lambda x: x / 600 - 2)
FIRST = [
    *bad("mixed_rate", "update_ratio", "AdamW with 0.1", "ConvMixer", cnn.convmixer, P,
         optimizer=by(optim.AdamW, lr=0.1), **FEW),
    *bad("restorer_rate", "update_ratio", "Adam with 0.03", "RCAN", nets.restorer, CROPS_UNIT,
         charbonnier, adam(0.03), **FOUR),
    *bad("rows_rate", "update_ratio", "Adam with 0.3", "LSTM of a digit's rows", Rows, digits,
         optimizer=adam(0.3)),
    *bad("boxes_slow", "update_ratio", "SGD with 1e-6 and momentum", "RetinaNet",
         library.retinanet, scenes, library.found, sgd(1e-6, 0.9), **THREE),
    *bad("larger_slow", "update_ratio", "Adam with 1e-7", "SRResNet", enlarger, HALF,
         losses.larger, adam(1e-7), **FOUR),
    *bad("bearings_slow", "update_ratio", "Adam with 1e-6", "1-D CNN", machine, bearings,
         optimizer=adam(1e-6)),
    *bad("bytes_of_digits", "input_scale", "pixels of 0 to 255", "MLP", partial(mlp, 784, 128, 64,
         10), changed(digits, lambda x: (255 * x).round()), optimizer=sgd(0.05, 0.9)),
    *bad("raw_fields", "input_scale", "millimetres, kilograms and metres", "MLP",
         partial(mlp, 5, 64, 64, 1), changed(harvests, lambda z: FIELD + RANGE * z), error,
         adam(1e-3), **ROWS),
    *bad("raw_coordinates", "input_scale", "degrees of longitude and latitude", "MLP",
         partial(mlp, 5, 64, 64, 1), changed(rides, lambda z: MEAN + STD * z), error, adam(2e-3),
         **ROWS),
    *bad("policy_of_zeros", "copied_channels,unchanged_weights,constant_output",
         "all weights begin at 0", "DQN's network", lambda: weights(agent(3), torch.zero_), catch,
         optimizer=adam(2e-3), **PLAY),
    *bad("normal_denoiser", "exploding,initial_loss", "weights of deviation 1", "RED-Net",
         lambda: weights(RedNet(), lambda w: w.normal_()), HALF, losses.repaired, adam(1e-3),
         **FEW),
    *bad("hundredth_alexnet", "vanishing", "weights of deviation 0.01, as once published",
         "AlexNet", lambda: weights(cnn.alexnet(), lambda w: w.normal_(0, 0.01) if w.ndim > 1 else
         w.zero_()), data.P48, optimizer=sgd(0.01, 0.9), **FEW),
    *bad("softmax_rows", "double_softmax", "softmax in front of cross-entropy",
         "LSTM of a digit's rows", ends(Rows, nn.Softmax(1)), digits, optimizer=adam(5e-3),
         **ROWS | {"batch": 32}),
    *bad("softmax_regions", "double_softmax", "softmax in front of cross-entropy", "gated U-Net",
         ends(partial(nets.Gate, out=8), nn.Softmax(1)), regions, ignoring, sgd(0.05, 0.9), **FOUR),
    *bad("softmax_strides", "double_softmax", "softmax in front of cross-entropy",
         "all-convolutional", ends(cnn.all_convolutions, nn.Softmax(1)), P,
         optimizer=sgd(0.05, 0.9), **FEW),
    *bad("policy_killed", "dead,update_ratio", "SGD with 1 and momentum", "DQN's network",
         partial(agent, 3), catch, optimizer=sgd(1.0, 0.9), **PLAY),
    *bad("fcn_killed", "dead,update_ratio", "Adam with 0.03", "FCN", fcn, scenes, losses.masks,
         adam(0.03), **FEW),
    *bad("evidence_unclipped", "exploding,update_ratio,nonfinite",
         "sums over pixels and codes, not clipped", "VAE", nets.Gaussian, digits, evidence,
         sgd(1e-3, 0.9)),
    *bad("links_not_divided", "exploding,initial_loss", "sums over neighbours, not means",
         "GCN", partial(cited, 2, False), cora, of_nodes, sgd(0.1, 0.9)),
    *bad("dense_eval", "eval_mode", "model.eval() in front of the loop", "DenseNet",
         library.densenet, P, optimizer=sgd(0.1, 0.9), prepare=nn.Module.eval, **FEW),
    *bad("mixed_eval", "eval_mode", "no model.train() after the first validation", "ConvMixer",
         cnn.convmixer, P, optimizer=sgd(0.1, 0.9), before=at(6, lambda model, _: model.eval()),
         **FEW),
    *bad("deep_graph", "vanishing", "twenty layers without norm or shortcut", "GCN",
         partial(cited, 20), cora, of_nodes, adam(5e-3)),
    *bad("deep_solids", "vanishing", "24 convolutions without norm or shortcut", "3-D CNN",
         partial(solid, more=24), data.voxels, optimizer=adam(1e-3), **FEW),
]  # fmt: skip
SECOND = [
    *bad("sorted_digits", "sorted_labels,one_label", "a folder for each class, no shuffle",
         "CNN of PyTorch's MNIST", cnn.tutorial, in_order(digits, lambda part: part[1], 640),
         optimizer=adam(2e-3)),
    *bad("rays_accumulate", "gradients_not_cleared", "zero_grad() is missing", "NeRF",
         signals.Rays, data.rays, signals.rendered, sgd(0.2, 0.9), zero="never", batch=128),
    *bad("masks_thresholded", "unchanged_weights", "Dice of a mask that is thresholded", "U-Net",
         partial(UNet, base=8), scenes, thresholded, adam(2e-3), **FEW),
    *bad("hybrid_by_sgd", "update_ratio", "SGD with 0.001", "CNN and transformer", nets.Hybrid, P,
         optimizer=sgd(1e-3), **FEW),
    *bad("divergence_of_shares", "probabilities_into_loss", "KLDivLoss without a logarithm",
         "EEGNet", signals.Eeg, data.gestures, lambda model, x, y: functional.kl_div(
         model(x).softmax(1), functional.one_hot(y, 5).float()), sgd(0.01, 0.9)),
    *bad("sigmoid_solids", "vanishing", "sigmoid between the layers", "3-D CNN",
         partial(solid, nn.Sigmoid), data.voxels, optimizer=sgd(0.02, 0.9)),
    *bad("dropout_of_words", "dropout_high", "dropout of 0.9 behind each layer", "word bag, MLP",
         partial(dropped, 0.9), sentences, optimizer=adam(5e-3), batch=32),
    *bad("decoder_forgotten", "not_in_optimizer,unchanged_weights",
         "the optimizer has the encoder only", "autoencoder", autoencoder, HALF, losses.again,
         lambda model: optim.Adam(model[:7].parameters(), 2e-3), **FEW),
    *bad("standing_machine", "nonfinite", "windows of deviation 0 are divided by it", "1-D CNN",
         machine, changed(bearings, alone), optimizer=adam(2e-3)),
    *bad("slope_without_chain", "none", "a slope by hand without what follows", "MLP",
         partial(mlp, 1056, 128, 64, 6, act=lambda: Function(Swish.apply)), data.spectrograms,
         optimizer=adam(2e-3)),
    *bad("raw_seconds", "initial_loss", "rides of about 900 s", "MLP", partial(mlp, 5, 64, 64, 1),
         relabelled(rides, lambda y: 900 + 450 * y), error, adam(1e-3), **ROWS),
    *bad("sigmoid_classes", "probabilities_into_loss,double_softmax",
         "sigmoid in front of cross-entropy", "all-convolutional",
         ends(cnn.all_convolutions, nn.Sigmoid()), P, optimizer=sgd(0.05, 0.9), **FEW),
    *bad("gaps_of_meter", "nonfinite", "hours that were not metered", "GRU",
         partial(Series, nn.GRU), changed(next_day(600, 600), lambda x: x.masked_fill(
         torch.rand(x.shape) < 2e-4, torch.nan)), error, adam(3e-3)),
    *bad("mixed_twos", "batchnorm_small_batch", "batches of two", "ConvMixer", cnn.convmixer, P,
         optimizer=adam(3e-3), batch=2),
    *bad("line_of_epochs", "rate_vanished", "LinearLR of ten epochs, called for each batch",
         "WaveNet", partial(nets.WaveNet, 64), data.tones(256), mu_law, adam(3e-3),
         schedule=lambda o, _: LinearLR(o, 1.0, 1e-3, 10), **FEW),
    *bad("dark_for_trained", "input_scale,constant_images,identical_images,batchnorm_gap",
         "pixels divided by 255 twice", "trained CNN, new head", new_head,
         changed(UNIT, lambda x: x / 255), optimizer=adam(5e-3), prepare=nn.Module.eval),
    *bad("loads_scaled_twice", "input_scale", "x / 600 - 2 twice", "MLP of a day's load",
         partial(mlp, 96, 128, 24), changed(LOAD, lambda x: x / 600 - 2), error, adam(2e-3)),
    *bad("sigmoid_volumes", "probabilities_into_loss", "sigmoid in front of BCEWithLogits",
         "gated U-Net (3-D)", ends(partial(nets.Gate, 1, wide=False), nn.Sigmoid()), soft_tissue,
         losses.masks, adam(3e-3), **FEW | {"batch": 2}),
]  # fmt: skip
CASES = seen("2026-11-28T11:40", FIRST, SECOND)
