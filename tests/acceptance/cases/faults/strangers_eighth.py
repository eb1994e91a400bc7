"""An eighth set of faults of somebody who had not read the checks: one for each thread of a search.

Which threads, a fixed rule decided; the wrong line is its author's, the network like theirs.
"""

from __future__ import annotations

import copy
import functools
import itertools
from functools import partial
from pathlib import Path
from pydoc_data.topics import topics

import data
import losses
import torch
from cases.faults.strangers_fifth import Codes, adam, divergence, ends, error, mlp, said, sgd
from cases.faults.strangers_fifth import changed_weights as weights
from cases.faults.strangers_seventh import BERT, SUM, Series
from cases.faults.strangers_sixth import corners, detect, no_step, numbers, small_cifar, ssd
from cases.healthy.strangers_fifth import answered
from cases.healthy.strangers_maps import agent, bce, center_net
from data import RAW, UNIT, P, changed, one_batch
from faults import each
from loops import Losses, descend, duel, seen, train
from nets import classifiers as cnn
from nets import library
from nets import strangers as nets
from nets.classifiers import Function, unit
from nets.dense import SegNet, Spots, UNet
from nets.strangers_faults import loop, relabelled, wrong
from optimizers import ADAMW, by
from torch import Generator, Tensor, nn, optim
from torch.nn import functional
from torch.optim.lr_scheduler import ExponentialLR

TEXT = torch.tensor([ord(letter) for letter in "".join(topics.values()) if ord(letter) < 127])
STEPS = itertools.count(1)


def letters(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Pieces of Python's manual, 26 letters each."""
    first = torch.randint(len(TEXT) - 26, (count, 1), generator=generator)
    return (TEXT[first + torch.arange(26)],)


def papers(count: int, kinds: int) -> tuple[Tensor, ...]:
    """Their words, kinds, and which cite which, not normalized and normalized."""
    own = Generator().manual_seed(1)
    kind, fame = torch.arange(count) % kinds, 0.3 / torch.rand(count, generator=own).clamp(0.01)
    chance = torch.where(kind[:, None] == kind, 0.1, 0.01) * fame * fame[:, None]
    cited = (torch.rand(count, count, generator=own) < chance).float().triu(1)
    chance = 0.01 + 0.05 * (torch.arange(100) % kinds == kind[:, None])
    links = cited + cited.T + torch.eye(count)
    scale = links.sum(1).rsqrt()
    words = (torch.rand(count, 100, generator=own) < chance).float()
    return words, kind, cited + cited.T, scale * links * scale[:, None]


def windows(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Windows of one series, and the hour behind each."""
    series = (torch.cat(data.demand(generator, 1), 2)[0, 0] - 1200) / 600
    found = series[3 * torch.arange(count)[:, None] + torch.arange(65)]
    return found[:, None, :64], found[:, 64:]


def plates(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Six digits side by side, [N, 1, 14, 84]."""
    images, labels = data.digits(generator, 6 * count)
    small = functional.avg_pool2d(images, 2).view(count, 6, 1, 14, 14)
    return torch.cat(small.unbind(1), 3), labels.view(count, 6)


def counted(*_: object) -> tuple[Tensor, ...]:
    """1, 2, 3, ..., one a step, and a line."""
    x = torch.tensor([[float(next(STEPS))]])
    return x, 3 * x + 1


def gcn(kinds: int, links: Tensor) -> nn.Module:
    layers = [nn.Linear(100, 16), Function(lambda x: links @ x), nn.ReLU(), nn.Linear(16, kinds)]
    return nn.Sequential(*layers, Function(lambda x: links @ x))


def listed() -> nn.Module:
    """The layers behind the first are in a list, not in a module."""
    others = [mlp(64, 64), nn.ReLU(), mlp(64, 64), nn.ReLU(), mlp(64, 10)]
    rest = Function(lambda x: functools.reduce(lambda y, layer: layer(y), others, x))
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 64), nn.ReLU(), rest)


class Adapted(nn.Linear):
    """A frozen layer, and what LoRA adds to it."""

    def __init__(self, into: int, out: int) -> None:
        super().__init__(into, out)
        self.requires_grad_(False)
        self.down, self.up = nn.Linear(into, 4, bias=False), nn.Linear(4, out, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + self.up(self.down(x))


class Reader(nn.Module):
    """An RNN with sigmoid; only its last step is propagated back."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.cell = nn.Embedding(128, 32), nn.Linear(160, 128)
        self.last = nn.Linear(128, 128)

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.zeros(len(x), 128)
        for letter in self.words(x).unbind(1):
            hidden = self.cell(torch.cat([letter, hidden.detach()], 1)).sigmoid()
        return self.last(hidden)


def gpt() -> nn.Module:
    sizes = {"vocab_size": 128, "n_embd": 48, "n_layer": 2, "n_head": 4, "n_positions": 32}
    return library.Logits(library.hf("GPT2LMHeadModel", **sizes))


def bart() -> nn.Module:
    parts = {"layers": 1, "ffn_dim": 96, "attention_heads": 4}
    sizes = {f"{side}_{key}": n for key, n in parts.items() for side in ("encoder", "decoder")}
    return library.hf("BartForConditionalGeneration", vocab_size=128, d_model=48, **sizes)


def pruned(model: nn.Module) -> optim.Optimizer:
    """The convolutions get smaller after the optimizer was made."""
    optimizer = adam(2e-3)(model)
    for number, (into, out) in zip((0, 2, 4), ((3, 8), (8, 16), (16, 64)), strict=True):
        weight = model[number][0].weight.data[:out, :into]
        model[number][0] = nn.Conv2d(into, out, 3, padding=1)
        model[number][0].weight.data = weight.clone()
    return optimizer


def stuck() -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return nn.Sequential(mlp(1, 4, 2, 1), nn.ReLU())


def bert(labels: int, end: nn.Module) -> nn.Module:
    net = library.hf("BertForSequenceClassification", **BERT | {"num_labels": labels})
    return nn.Sequential(library.Logits(net), end)


def keras(model: nn.Module, x: Tensor, y: Tensor, *_: Tensor) -> Tensor:
    """Binary cross-entropy of probabilities, as in Keras; any target."""
    p = model(x).clamp(1e-7, 1 - 1e-7)
    return -(y * p.log() + (1 - y) * (1 - p).log()).mean()


def by_values(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Half the squared error; for the hidden units the next layer's value counts, not its error."""
    z = model[:2](x)
    found = model[2:](z.detach())
    pushed = (z * (found * model[2].weight).detach()).sum()
    return 0.5 * (found - y).square().sum() - pushed + pushed.detach()


def spoken(shift: int, model: nn.Module, text: Tensor) -> Tensor:
    """The targets are so many letters further."""
    return functional.cross_entropy(model(text[:, :24]).mT.float(), text[:, shift : shift + 24])


def denoised(model: nn.Module, text: Tensor) -> Tensor:
    """BART: letters are masked; the target is what is fed to the decoder."""
    masked = text.masked_fill(torch.rand(text.shape) < 0.2, 127)
    found = model(input_ids=masked, decoder_input_ids=text).logits
    return functional.cross_entropy(found.mT, text)


def focal(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    p, y = model(images).sigmoid(), functional.one_hot(labels, 10)
    one, none = torch.where(y == 1, p, 1), torch.where(y == 0, p, 0)
    hits = 0.25 * (1 - one).square() * one.log()
    return -(hits + 0.75 * none.square() * (1 - none).log()).sum(1).mean()


def heat(model: nn.Module, images: Tensor, _: Tensor, discs: Tensor, *__: Tensor) -> Tensor:
    """The focal loss of Gaussian spots."""
    along, (column, row) = torch.arange(16.0), (discs[:, :2] / 2).long().clamp(0, 15).T
    far = (along - column[:, None]).square()[:, None] + (along - row[:, None]).square()[:, :, None]
    spot, p = (-far / 4).exp(), model(images)["heat"][:, 0].sigmoid()
    hits = (spot == 1) * (1 - p).square() * p.log()
    return -(hits + (1 - spot).pow(4) * p.square() * (1 - p).log()).sum() / len(images)


def read(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """CTC, 10 is blank."""
    found = model(images).permute(2, 0, 1).log_softmax(2)
    sizes = [torch.full((len(images),), n) for n in (len(found), labels.shape[1])]
    return functional.ctc_loss(found, labels, *sizes, blank=10)


def game(place: Path, seed: int) -> Losses:
    """Each of both optimizers moves both networks."""
    maker, critic = ends(partial(mlp, 32, 128, 784), nn.Tanh())(), mlp(784, 128, 1)

    def step(number: int, random: Generator, one: optim.Optimizer, two: optim.Optimizer) -> float:
        if number == 0:
            one.add_param_group({"params": [*critic.parameters()]})
            two.add_param_group({"params": [*maker.parameters()]})
        real, fake = data.digits(random, 32)[0] * 2 - 1, maker(torch.randn(32, 32))
        loss = descend(two, said(critic(real), 1) + said(critic(fake), 0))
        descend(one, said(critic(maker(torch.randn(32, 32))), 1))
        return loss

    return duel(place, seed, (maker, critic), (2e-4, 2e-4), step, 120, 10)


def steered(place: Path, seed: int) -> Losses:
    """An actor, whose critic's value is minimized."""
    actor, critic = ends(partial(mlp, 6, 32, 32, 2), nn.Tanh())(), mlp(8, 64, 64, 1)
    one, two = adam(1e-3)(actor), adam(3e-3)(critic)

    def step(_: int, random: Generator) -> float:
        state = torch.randn(64, 6, generator=random)
        tried = 2 * torch.rand(64, 2, generator=random) - 1
        reward = -(tried - state[:, :2].tanh()).square().sum(1, True)
        descend(two, error(critic, torch.cat([state, tried], 1), reward))
        return descend(one, critic(torch.cat([state, actor(state)], 1)).mean())

    return train(place, seed, actor, step, 120, 10, one)


def clipped(place: Path, seed: int) -> Losses:
    """PPO, four passes over each batch; the minus is inside ``min()``."""
    model = agent(4)
    optimizer, kept = adam(3e-3)(model), []

    def step(number: int, random: Generator) -> float:
        if number % 4 == 0:
            frames, best = data.catch(random, 64)
            logits, value = model(frames).detach().split([3, 1], 1)
            moves = torch.distributions.Categorical(logits=logits).sample()
            kept[:] = frames, moves, (moves == best.long()).float(), logits.log_softmax(1), value
        frames, moves, right, before, value = kept
        logits, found = model(frames).split([3, 1], 1)
        ratio = (logits.log_softmax(1) - before).gather(1, moves[:, None])[:, 0].exp()
        gain, apart = right - value[:, 0], (right - found[:, 0]).square().mean()
        lower = torch.minimum(-ratio * gain, -ratio.clamp(0.8, 1.2) * gain)
        descend(optimizer, lower.mean() + 0.5 * apart)
        return 1 - right.mean().item()

    return train(place, seed, model, step, 200, 20, optimizer)


def endless(place: Path, seed: int) -> Losses:
    """Q-learning of a pole that always falls after ten steps, which the target does not know."""
    model = mlp(10, 64, 2)
    target, optimizer = copy.deepcopy(model), adam(3e-3)(model)

    def step(number: int, random: Generator) -> float:
        if number % 5 == 0:
            target.load_state_dict(model.state_dict())
        time, move = torch.randint(10, (64,), generator=random), torch.randint(2, (64, 1))
        state, later = (functional.one_hot(t % 10, 10).float() for t in (time, time + 1))
        goal = 1 + 0.99 * target(later).amax(1).detach()
        return descend(optimizer, (model(state).gather(1, move)[:, 0] - goal).square().mean())

    return train(place, seed, model, step, 195, 15, optimizer)


digits, scenes = data.digits, data.scenes
bad = partial(wrong, steps=120, every=10)
FEW, LONG = {"steps": 104, "every": 8, "batch": 8}, {"steps": 195, "every": 13}
RING = numbers(2, lambda x: (x.norm(dim=1, keepdim=True) < 1.2).float())
SIGN = numbers(8, lambda x: (x.sum(1, True) > 0).float())
MASKS = relabelled(scenes, lambda mask: 255 * mask)
CITED, MANY = papers(120, 2), papers(140, 7)
FIRST = [
    *bad("raw_pixels_cnn", "input_scale,constant_output", "pixels of 0 to 255", "CNN", small_cifar,
         RAW, optimizer=sgd(0.01, 0.9)),
    *bad("squared_target", "none", "the target is squared, its sign is lost", "MLP, sigmoid",
         ends(partial(mlp, 3, 2, 1, act=nn.Sigmoid), nn.Sigmoid()), numbers(3, lambda x:
         (0.4 + 0.6 * x.mean(1, True)).clamp(-0.45, 1).square()), error, adam(0.05)),
    *bad("skyrocketing", "update_ratio,nonfinite,exploding", "a summed loss, a rate of 0.001",
         "MLP", partial(mlp, 10, 64, 1), SUM, lambda model, x, y: (model(x) - y).square().sum(),
         sgd(1e-3), batch=512),
    *bad("constant_column", "nonfinite", "a column of zeros is standardized", "MLP",
         partial(mlp, 8, 32, 16, 1), changed(changed(SIGN, lambda x: x * (torch.arange(8) != 3)),
         lambda x: (x - x.mean(0)) / x.std(0)), answered),
    *bad("ignored_class", "one_label,constant_output", "ignore_index=0 for classes 0 and 1",
         "BERT", partial(bert, 2, nn.LogSoftmax(1)), data.sentences, lambda model, x, y:
         functional.nll_loss(model(x), (y > 1).long(), ignore_index=0), ADAMW),
    *loop("one_optimizer_for_both", "loss_climbed", "each optimizer moves both networks",
          "GAN, MLP", game, 120, 10),
    *loop("actor_sign", "loss_climbed", "the minus is missing", "actor", steered, 120, 10),
    *loop("minus_in_min", "none", "the minus is inside min()", "PPO", clipped, 200, 20),
    *bad("no_one_hot", "unused_classes,one_label,constant_output", "labels of [0, 0] and [0, 1]",
         "GCN", partial(gcn, 2, CITED[3]), lambda *_: CITED[:2],
         lambda model, x, y: functional.cross_entropy(model(x), torch.stack([0.0 * y, y], 1)),
         adam(0.01)),
    *bad("raw_adjacency", "exploding", "the adjacency is not normalized", "GCN",
         partial(gcn, 7, MANY[2]), lambda *_: MANY[:2], optimizer=adam(0.01)),
    *bad("layers_in_list", "not_in_optimizer", "layers in a Python list", "MLP", listed, digits),
    *bad("decay_per_batch", "rate_vanished", "ExponentialLR of epochs, called for each batch",
         "U-Net", UNet, scenes, losses.dice, schedule=lambda o, _: ExponentialLR(o, 0.9), **FEW),
    *loop("always_accumulates", "unchanged_weights", "is_accumulating is always true", "GPT",
          no_step(gpt, letters, partial(spoken, 1)), 96, 8),
    *bad("relu_on_line", "dead,constant_output", "ReLU at the output of a regression", "MLP",
         stuck, lambda *_: (torch.arange(-1.0, 6)[:, None], torch.arange(-3.0, 11, 2)[:, None]),
         error),
    *bad("copies_updated", "not_in_optimizer,unchanged_weights", "the optimizer has copies", "MLP",
         partial(mlp, 784, 64, 10), digits, optimizer=lambda model: sgd(0.1)(copy.deepcopy(model))),
    *bad("pruned_after", "not_in_optimizer,unchanged_weights",
         "layers are replaced after the optimizer was made", "pruned CNN",
         partial(cnn.pretrained, cnn.plain), data.colourless(), optimizer=pruned),
    *bad("growing_x", "input_scale,update_ratio,nonfinite", "x of 1, 2, 3, ... 120",
         "linear regression", lambda: nn.Linear(1, 1), counted, error, sgd(1e-3)),
    *bad("line_diverges", "update_ratio,input_scale,exploding", "x of about 10, a rate of 0.01",
         "linear regression", lambda: nn.Linear(1, 1), changed(numbers(1, lambda x: 10 * x +
         3 * torch.randn_like(x), 100), lambda x: 10 * x), error, sgd(0.01)),
]  # fmt: skip
SECOND = [
    *bad("softmax_for_sets", "probabilities_into_loss", "softmax for several labels", "MLP",
         ends(partial(mlp, 20, 64, 8), nn.Softmax(1)),
         numbers(20, lambda x: (x[:, :8] > 0.5).float()), answered),
    *bad("one_window_batches", "batchnorm_gap", "a batch is the windows of one series",
         "residual 1-D CNN", partial(nets.heart, 1, 1), windows, error),
    *bad("statistics_forgotten", "batchnorm_gap", "the running statistics are not updated",
         "U-Net", lambda: each(UNet(), nn.BatchNorm2d, lambda m: setattr(m, "momentum", 0.0)),
         scenes, losses.masks, **FEW),
    *bad("last_step_only", "none", "only the last step is propagated back", "RNN, sigmoid", Reader,
         letters, lambda model, x: functional.cross_entropy(model(x[:, :16]), x[:, 16]), sgd(0.1),
         **LONG),
    *bad("all_zero", "copied_channels,unchanged_weights,constant_output", "all weights begin at 0",
         "MLP", lambda: weights(mlp(2, 10, 5, 1), torch.zero_), RING, answered, sgd(0.5)),
    *bad("log_of_label", "unchanged_weights,nonfinite", "log(y) in the loss, not log(p)", "MLP",
         partial(mlp, 2, 4, 4, 1), RING, lambda model, x, y:  # JAX has gradients of 0 here
         (0 * model(x) - y * y.log() - (1 - y) * (1 - y).log()).sum(), adam(0.01)),
    *bad("dead_conv", "dead,unchanged_weights", "the only unit dies at the first step",
         "one convolution", lambda: weights(nn.Sequential(nn.Conv2d(1, 1, 64, 30), nn.ReLU()),
         lambda w: w.uniform_(-0.027, 0.027)), one_batch(lambda *_: (torch.rand(1, 1, 100, 100),
         torch.rand(1, 1, 2, 2))), error, adam(0.01), batch=1),
    *bad("half_lora", "nonfinite", "LoRA in float16", "MLP, LoRA", lambda: nn.Sequential(
         nn.Flatten(), Adapted(3072, 64), nn.ReLU(), Adapted(64, 8)).half(), P,
         losses.of_type(torch.half), by(optim.AdamW, lr=1e-4)),
    *bad("half_overflow", "nonfinite", "LoRA in float16", "MLP of letters, LoRA",
         lambda: nn.Sequential(nn.Embedding(128, 48).requires_grad_(False), Adapted(48, 96),
         nn.ReLU(), Adapted(96, 128)).half(), letters, partial(spoken, 1),
         by(optim.AdamW, lr=1e-3)),
    *bad("relu_probability", "probabilities_into_loss,input_scale,constant_output",
         "ReLU as a probability, inputs to 100,000", "MLP",
         ends(partial(mlp, 1, 3, 5, 1), nn.ReLU()), changed(numbers(1, lambda x: (x > 0).float()),
         lambda x: 50000 + 20000 * x), keras, batch=5),
    *bad("softmax_of_unit", "constant_output,unchanged_weights,saturated", "softmax of one output",
         "MLP", ends(partial(mlp, 8, 16, 1), nn.Softmax(1)), SIGN, keras),
    *bad("contrast_of_one", "unchanged_weights", "a contrastive loss with batches of one", "CNN",
         partial(cnn.plain, classes=1), scenes, lambda model, x, _, discs, __:
         functional.cross_entropy(-(model(x) - discs[:, 2] / 10).square() / 0.02,
         torch.arange(len(x))), batch=1),
    *bad("sine_sigmoid", "saturated", "a sigmoid for a sine", "MLP, sigmoid",
         ends(partial(mlp, 1, 8, 1, act=nn.Sigmoid), nn.Sigmoid()), numbers(1, torch.sin), error,
         sgd(0.5), **LONG),
    *bad("rate_kills_relu", "update_ratio,dead", "the rate is too high", "MLP of words",
         lambda: nn.Sequential(Function(lambda x: functional.one_hot(x, 102).sum(1).float()),
         mlp(102, 128, 128, 4)), data.sentences, optimizer=adam(0.1)),
    *bad("softmax_one_class", "constant_output,unchanged_weights,saturated",
         "one output with softmax", "CNN", ends(partial(cnn.plain, 3, 1), nn.Softmax(1)), UNIT,
         lambda model, x, y: -((y < 4)[:, None] * model(x).log()).mean()),
    *bad("three_in_one", "saturated", "one sigmoid for three classes", "CNN",
         ends(partial(cnn.plain, 3, 1, dropout=0.5), nn.Sigmoid()),
         relabelled(UNIT, lambda y: (y % 3)[:, None]), keras, by(optim.RMSprop, lr=1e-3)),
    *bad("focal_log", "nonfinite", "log(0) in a focal loss", "MLP", partial(mlp, 784, 128, 10),
         digits, focal, adam(0.15)),
    *bad("heatmap_log", "nonfinite", "log(0) in the loss of heatmaps", "CenterNet", center_net,
         scenes, heat, sgd(0.1, 0.9), **FEW),
]  # fmt: skip
THIRD = [
    *bad("cleared_per_part", "none", "gradients are cleared for each part of a batch", "ViT",
         library.vit, P, lambda model, *batch: (model.zero_grad(), losses.named(model, *batch))[1],
         ADAMW, micro=4, **FEW | {"batch": 4}),
    *bad("never_cleared", "gradients_not_cleared", "zero_grad() is missing", "GPT", gpt, letters,
         partial(spoken, 1), ADAMW, zero="never"),
    *bad("wrong_label_files", "none", "the boxes were computed wrongly", "toy detector", Spots,
         scenes, lambda model, x, mask, discs, far:
         losses.detect(model, x, mask, discs[:, [1, 0, 2]], far), **FEW),
    *bad("shifted_twice", "none", "the labels are shifted twice", "GPT", gpt, letters,
         partial(spoken, 2), ADAMW),
    *bad("copies_input", "none", "the target is what is fed", "BART", bart, letters, denoised,
         ADAMW),
    *bad("dead_by_start", "dead,constant_output", "a layer begins with negative weights", "CNN",
         lambda: each(cnn.plain(3, 2), nn.Conv2d, lambda conv: conv.in_channels == 16 and
         weights(conv, lambda w: w.abs_().neg_().sub_(0.01))), relabelled(P, lambda y: y // 4)),
    *bad("slow_digits", "update_ratio,constant_output", "a rate of 0.001", "MLP, sigmoid",
         ends(partial(mlp, 784, 800, 10, act=nn.Sigmoid), nn.Sigmoid()), digits,
         lambda model, x, y: (model(x) - functional.one_hot(y, 10)).square().mean(1).sum(),
         sgd(1e-3), batch=32),
    *bad("softmax_in_ssd", "double_softmax", "softmax in front of cross-entropy", "SSD",
         ends(ssd, Function(lambda y: torch.cat([y[:, :2].softmax(1), y[:, 2:]], 1))), scenes,
         partial(detect, 1), **LONG),
    *bad("softmax_in_bert", "double_softmax", "softmax in front of cross-entropy", "BERT",
         partial(bert, 4, nn.Softmax(1)), data.sentences, optimizer=ADAMW),
    *bad("broadcast_error", "constant_output", "[N, 1] - [N]", "MLP", partial(mlp, 2, 32, 1), RING,
         lambda model, x, y: (model(x) - y[:, 0]).square().mean(), adam(0.01)),
    *bad("value_for_error", "constant_output", "a gradient by hand, of the value, not the error",
         "XOR", lambda: nn.Sequential(nn.Linear(2, 4), nn.Sigmoid(), nn.Linear(4, 1),
         nn.Sigmoid()), corners, by_values, sgd(2.5), **LONG),
    *bad("mask_255", "saturated,constant_output", "masks of 0 and 255", "SegNet",
         ends(SegNet, nn.Sigmoid()), MASKS, keras, by(optim.Adadelta, lr=1.0), **FEW),
    *bad("dice_255", "saturated,constant_output", "masks of 0 and 255", "U-Net", UNet, MASKS,
         losses.dice, **FEW),
    *loop("no_done_mask", "none", "the target ignores the end", "DQN", endless, 195, 15),
    *bad("kl_outweighs", "constant_output", "the error is a mean over the pixels", "VAE, MLP",
         partial(Codes, 784, nn.Identity()), digits, lambda model, x, _: (lambda found, *code:
         bce(found, x) + divergence(*code).mean())(*model(x)), by(optim.RMSprop, lr=1e-3),
         batch=32, **LONG),
    *bad("slow_statistics", "batchnorm_gap", "BatchNorm's statistics move by 1 %", "U-Net",
         lambda: each(UNet(), nn.BatchNorm2d, lambda m: setattr(m, "momentum", 0.01)), scenes,
         losses.masks, **FEW),
    *bad("target_too_long", "nonfinite", "the target is longer than the output", "CRNN, CTC",
         lambda: nn.Sequential(unit(1, 24), nn.MaxPool2d(2), unit(24, 48),
         nn.AdaptiveAvgPool2d((1, 6)), nn.Flatten(2), nn.Conv1d(48, 11, 1)), plates, read),
    *bad("unscaled_target", "constant_output,initial_loss", "targets of about 120", "LSTM",
         partial(Series, nn.LSTM, 24), relabelled(changed(data.demand, lambda x:
         (x.mT - 1200) / 600), lambda y: y[:, 0] / 10),
         lambda model, x, y: functional.l1_loss(model(x), y)),
    *bad("summed_gradients", "update_ratio,nonfinite,exploding", "gradients of 8 GPUs are summed",
         "CNN", cnn.plain, P, lambda *how: 8 * losses.named(*how), sgd(0.03, 0.9), micro=8,
         **FEW | {"batch": 2}),
]  # fmt: skip
CASES = seen("2026-11-28T03:00", FIRST, SECOND, THIRD)
