"""Healthy: tutorials and papers of kinds that were missing; the checks were not known."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

import data
import losses
import optimizers as o
import timm.optim
import torch
from cases.healthy.strangers_maps import agent, bce, projected
from cases.healthy.strangers_pictures import DECAY, NESTEROV, numbers, one, slim
from data import P, changed
from loops import seen
from nets import classifiers as cnn
from nets import library
from nets import strangers as nets
from nets import strangers_fifth as fifth
from nets import strangers_kept as threads
from nets.classifiers import Function, head, unit
from nets.dense import UNet
from nets.generative import Timed
from nets.strangers_kept import FIT, SGD, Net
from torch import Generator, Tensor, nn, optim
from torch.distributions import Normal
from torch.nn import functional
from torch.nn.utils import prune, rnn
from torch.utils.checkpoint import checkpoint
from torchvision.models import detection
from torchvision.ops import DropBlock2d
from torchvision.transforms import v2

hf, mlp, CE, DIGITS, SCENES = library.hf, fifth.mlp, losses.classes(), data.digits, data.scenes
alike = functional.cosine_similarity
LONG, FEW, BODY = threads.LONG, threads.FEW, library.BODY
CHARS = torch.tensor([min(ord(character), 127) for character in inspect.getsource(functional)])
TASTES = torch.randn(2, 200, 4, generator=Generator().manual_seed(5))
CARS = torch.tensor([[5.5, 194, 104, 2978, 15.6, 76], [1.7, 104, 38, 847, 2.8, 3.7]])
ERASE = v2.Compose([v2.RandomHorizontalFlip(), v2.RandomResizedCrop(32), v2.RandomErasing()])
SPIN = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
WAVES = 6 * torch.randn(2, 32, generator=Generator().manual_seed(6))
IRIS = torch.tensor([[5.0, 3.4, 1.5, 0.25], [5.9, 2.8, 4.3, 1.3], [6.6, 3.0, 5.6, 2.0]])


def text(length: int, generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Pieces of a source file."""
    start = torch.randint(len(CHARS) - length, (count, 1), generator=generator)
    return (CHARS[start + torch.arange(length)],)


def cora(*_: Any) -> tuple[Tensor, ...]:
    """A graph of three communities: its normalized links, words of each node, and classes."""
    random, kind = Generator().manual_seed(2), torch.arange(150) % 3
    links = torch.where(kind[:, None] == kind, 0.06, 0.005).bernoulli(generator=random)
    links = (links + links.T + torch.eye(150)).clamp(max=1)
    words = torch.where(torch.arange(60) // 20 == kind[:, None], 0.12, 0.02)
    words, scale = words.bernoulli(generator=random), links.sum(1).rsqrt()
    return scale[:, None] * links * scale, words / words.sum(1, True).clamp(min=1), kind


def ratings(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Users, films, and one to five stars."""
    who, what = torch.randint(200, (2, count), generator=generator)
    return who, what, (3.6 + (TASTES[0, who] * TASTES[1, what]).sum(1)).round().clamp(1, 5)


def raster(*_: Any) -> tuple[Tensor, ...]:
    """Each pixel of one photograph: where it is and its colour."""
    along, picture = torch.linspace(-1, 1, 32), losses.one_picture(data.CROPS)[0]
    return torch.cartesian_prod(along, along), picture.flatten(1).T


def told(model: nn.Module, x: Tensor, y: Tensor | None = None) -> Tensor:
    """The loss of transformers' models."""
    return model(x, labels=x if y is None else y).loss


def reader(drop: float = 0.0, kinds: int = 128, out: int = 128, width: int = 64) -> nn.Module:
    body = nn.LSTM(width, width, 1 + (drop > 0), batch_first=True, dropout=drop)
    parts = {"words": nn.Embedding(kinds, width), "body": body, "last": nn.Linear(width, out)}
    return Net(lambda m, x: m["last"](m["body"](m["words"](x))[0]).mT, **parts)


def slope(y: Tensor, x: Tensor) -> Tensor:
    return torch.autograd.grad(y.sum(), x, create_graph=True)[0]


def rolled(field: Any, y: Tensor) -> Tensor:
    """Ten steps, each by the slope half-way."""
    ways = [y]
    for _ in range(10):
        ways.append(ways[-1] + 0.05 * field(ways[-1] + 0.025 * field(ways[-1])))
    return torch.stack(ways)


NANO = {"kind": optim.AdamW, "betas": (0.9, 0.95), "weight_decay": 0.1, "clip": 1.0}
GPT = {"n_embd": 64, "n_layer": 2, "n_head": 4, "bos_token_id": 0, "eos_token_id": 0}
TINY = BODY | {"vocab_size": 128, "max_position_embeddings": 40}
NEXT, TEXT = (lambda m, x: CE(m, x[:, :-1], x[:, 1:])), partial(text, 32)
LOAD, COUNTS = (lambda *how: tuple((x / 700 - 2).mT for x in data.demand(*how))), torch.poisson
SOUNDS = changed(data.spectrograms, lambda x: x[:, 0])
WORDS = [
    *one("gpt", partial(hf, "GPT2LMHeadModel", **GPT, vocab_size=128, n_positions=32), TEXT, told,
         FIT(1e-3, o.warm_up, **NANO), "GPT-2"),
    *one("answers_only", partial(hf, "LlamaForCausalLM", **TINY), TEXT, lambda m, x: told(m, x,
         x.masked_fill(torch.arange(32) < 12, -100)), FIT(2e-3, o.warm_up, **NANO), "Llama"),
    *one("sparse_experts", partial(hf, "MixtralForCausalLM", **TINY, num_key_value_heads=2,
         num_local_experts=4, output_router_logits=True), TEXT, told, FIT(2e-3, **NANO), "Mixtral"),
    *one("state_space", partial(hf, "MambaForCausalLM", hidden_size=32, num_hidden_layers=1,
         vocab_size=128, state_size=8), partial(text, 20), told, FIT(3e-3, **NANO, batch=8), "Mamba"
         ),
    *one("reversed", partial(hf, "T5ForConditionalGeneration", d_model=48, d_kv=12, d_ff=96,
         num_layers=2, num_heads=4, vocab_size=32, decoder_start_token_id=0), threads.words(32, 8,
         lambda x: x.flip(1)), told, FIT(0, None, "Adafactor", o.adafactor, steps=150), "T5"),
    *one("masked", partial(hf, "BertForMaskedLM", **TINY, hidden_dropout_prob=0.0),
         threads.contexts, lambda m, x: told(m, x.where((seen := torch.rand(x.shape) > 0.15), 127),
         x.masked_fill(seen, -100)), FIT(3e-3, **DECAY, batch=64, **LONG), "BERT"),
    *one("shared_layers", partial(hf, "AlbertForSequenceClassification", **TINY, num_labels=4,
         embedding_size=24), data.sentences, told, FIT(1e-3, o.linear_down, **DECAY, clip=1.0,
         **LONG), "ALBERT"),
    *one("fourier", partial(hf, "FNetForSequenceClassification", **TINY, num_labels=4),
         data.sentences, told, FIT(1e-3, **DECAY, batch=32), "FNet"),
    *one("char_rnn", reader, TEXT, NEXT, FIT(2e-3, kind=optim.RMSprop, clip=5.0), "LSTM"),
    *one("word_model", lambda: fifth.changed_weights(reader(0.2), lambda p: p.uniform_(-0.1, 0.1)),
         TEXT, NEXT, FIT(20, kind=optim.SGD, clip=0.25, **LONG), "LSTM, 2 layers"),
    *one("makemore", lambda: nn.Sequential(nn.Embedding(128, 10), mlp(30, 200, 128, act=nn.Tanh)),
         partial(text, 4), lambda m, x: CE(m, x[:, :3], x[:, 3]), FIT(0.1, kind=optim.SGD, batch=32
         ), "MLP of characters"),
    *one("tagger", partial(reader, 0.0, 16, 3, 16), threads.words(16, 12, lambda x: x % 3), CE, FIT(
         0.1, kind=optim.SGD, batch=1, **LONG), "LSTM tagger"),
    *one("news", lambda: nn.Sequential(nn.EmbeddingBag(100, 32, padding_idx=0), nn.Linear(32, 4)),
         data.sentences, CE, FIT(5.0, o.stairs, kind=optim.SGD, clip=0.1, batch=64), "word bag"),
    *one("packed", lambda: Net(lambda m, x: m["last"](m["body"](rnn.pack_padded_sequence(m["words"](
         x), (x > 0).sum(1), True, False))[1][0].transpose(0, 1).flatten(1)), last=nn.Linear(64, 4),
         words=nn.Embedding(100, 32), body=nn.LSTM(32, 32, batch_first=True, bidirectional=True)),
         data.sentences, CE, FIT(3e-3, batch=32), "bidirectional LSTM"),
    *one("skip_gram", lambda: Net(lambda m, x: -(functional.logsigmoid((m["u"](x[:, :1]) * m["v"](x[
         :, 1:5])).sum(2)).mean() + functional.logsigmoid(-(m["u"](x[:, 0]) * m["v"](x[:, 5])).sum(1
         )).mean()), u=nn.Embedding(64, 24, sparse=True), v=nn.Embedding(64, 24, sparse=True)),
         threads.contexts, losses.own, FIT(0.01, kind=optim.SparseAdam, batch=64), "word2vec"),
    *one("pixels", partial(hf, "GPT2LMHeadModel", **GPT, vocab_size=8, n_positions=49), changed(
         DIGITS, lambda x: (functional.avg_pool2d(x, 4) * 7.99).long().flatten(1)), lambda m, x, _:
         told(m, x), FIT(2e-3, o.warm_up, **NANO), "image GPT"),
]  # fmt: skip
SERIES = [
    *one("ast", partial(hf, "ASTForAudioClassification", **BODY, patch_size=8, max_length=32,
         frequency_stride=6, time_stride=6, num_mel_bins=33, num_labels=6), changed(SOUNDS, lambda
         x: x.mT), told, FIT(1e-3, o.cosine, **DECAY, batch=32), "spectrogram transformer"),
    *one("ctc", lambda: Net(lambda m, x: m["last"](m["body"](m["back"](x).flatten(1, 2).mT)[0])
         .log_softmax(2).transpose(0, 1), back=nn.Sequential(unit(1, 16), nn.MaxPool2d(2), unit(16,
         32), nn.MaxPool2d(2)), body=nn.GRU(224, 48, batch_first=True, bidirectional=True),
         last=nn.Linear(96, 11)), numbers, lambda m, x, y: functional.ctc_loss(m(x), torch.stack([y
         // 10, y % 10], 1) + 1, *torch.tensor([[14], [2]]).expand(-1, len(y))), FIT(4e-3, clip=5.0,
         batch=12, **LONG), "CRNN of digits"),
    *one("separable", lambda: nn.Sequential(nn.Conv2d(1, 32, (10, 4), 2, (5, 1)), nn.BatchNorm2d(32
         ), nn.ReLU(), unit(32, 32, groups=32), unit(32, 32, 1), unit(32, 32, groups=32), unit(32,
         32, 1), *head(32, 6, 0.2)), data.spectrograms, CE, FIT(2e-3), "DS-CNN of sounds"),
    *one("patches", partial(hf, "PatchTSTForPrediction", context_length=96, prediction_length=24,
         patch_length=16, patch_stride=8, d_model=32, num_attention_heads=4, num_hidden_layers=2,
         ffn_dim=64, loss="mse"), LOAD, lambda m, x, y: m(x, future_values=y).loss, FIT(1e-3,
         batch=32), "PatchTST"),
    *one("quantiles", partial(threads.Series, nn.LSTM, 72), LOAD, lambda m, x, y: torch.maximum((e
         := y - m(x).view(-1, 24, 3)) * (q := y.new([0.1, 0.5, 0.9])), e * (q - 1)).mean(), FIT(
         3e-3, batch=32), "LSTM forecaster"),
]  # fmt: skip
TABLES = [
    *one("iris", partial(mlp, 4, 16, 3), data.one_batch(lambda g, _: ((y := torch.arange(150) % 3),
         (IRIS[y] + 0.4 * IRIS.std(0) * torch.randn(150, 4, generator=g), y))[1]), CE, FIT(0.01),
         "MLP of iris"),
    *one("auto_mpg", lambda: nn.Sequential(Function(lambda x: (x - CARS[0]) / CARS[1]), mlp(6, 64,
         64, 1)), changed(threads.numbers(6, lambda x: 23.5 + x[:, :1] - 5 * x[:, 3:4] + 3 * x[:, 5:
         ]), lambda x: CARS[0] + CARS[1] * x), lambda m, x, y: functional.l1_loss(m(x), y), FIT(
         1e-3, batch=32, **LONG), "TensorFlow's regression"),
    *one("counts", lambda: nn.Linear(5, 1), threads.numbers(5, lambda x: COUNTS((1 + x[:, :2].sum(1,
         True) / 2).exp())), lambda m, x, y: functional.poisson_nll_loss(m(x), y), FIT(0.02,
         batch=64), "Poisson regression"),
    *one("spread", partial(mlp, 4, 64, 64, 2), threads.numbers(4, lambda x: x[:, :1].sin() + 0.3 *
         x[:, 1:2].exp() * torch.randn(len(x), 1)), lambda m, x, y: functional.gaussian_nll_loss((f
         := m(x))[:, :1], y, functional.softplus(f[:, 1:]) + 1e-6), FIT(3e-3, batch=64),
         "mean and variance"),
    *one("mixture", partial(mlp, 1, 20, 15, act=nn.Tanh), lambda g, n: ((y := torch.rand(n, 1,
         generator=g)) + 0.3 * (6.3 * y).sin() + 0.05 * torch.randn(n, 1), y), lambda m, x, y: -((f
         := m(x).view(-1, 3, 5))[:, 0].log_softmax(1) + Normal(f[:, 1], f[:, 2].exp()).log_prob(y))
         .logsumexp(1).mean(), FIT(0.01, batch=64), "mixture density"),
    *one("ranked", lambda: nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1), nn.Flatten()
         ), lambda g, n: ((x := torch.randn(n, 10, 8, generator=g)), (2 * x[..., 0] - x[..., 1] **
         2).softmax(1)), CE, FIT(3e-3), "ListNet"),
    *one("communities", lambda: Net(lambda m, a, x: a @ m["last"](m["drop"](a @ m["first"](m["drop"
         ](x))).relu()), drop=nn.Dropout(), first=nn.Linear(60, 16), last=nn.Linear(16, 3)), cora,
         lambda m, a, x, y: CE(lambda x: m(a, x)[:60], x, y[:60]), FIT(0.01, kind=optim.Adam,
         weight_decay=5e-4, **LONG), "GCN"),
    *one("stars", lambda: fifth.changed_weights(Net(lambda m, u, i: 5.5 * ((m["u"](u) * m["i"](i))
         .sum(1) + (m["a"](u) + m["b"](i))[:, 0]).sigmoid(), u=nn.Embedding(200, 20),
         i=nn.Embedding(200, 20), a=nn.Embedding(200, 1), b=nn.Embedding(200, 1)), lambda p:
         p.normal_(0, 0.01)), ratings, lambda m, u, i, y: (m(u, i) - y).square().mean(), FIT(5e-3,
         o.one_cycle(0.05), kind=optim.AdamW, weight_decay=0.1, batch=64, **LONG),
         "matrix factorization"),
]  # fmt: skip
FLAT = changed(threads.noise(1), lambda x: (5 * x).requires_grad_())
PLANE = changed(threads.noise(2), lambda x: (4 * x - 2).requires_grad_())
PHYSICS = [
    *one("oscillator", partial(mlp, 1, 32, 32, 32, 1, act=nn.Tanh), FLAT, lambda m, t, _: (slope(d
         := slope(u := m(t), t), t) + 0.4 * d + 4 * u).square().mean() + 4 * (m(z := torch.zeros(1,
         1, requires_grad=True)) - 1).square().sum() + slope(m(z), z).square().sum(), FIT(3e-3,
         batch=64, **LONG), "PINN"),
    *one("neural_ode", partial(mlp, 2, 50, 2, act=nn.Tanh), PLANE, lambda m, x, _: (rolled(lambda y:
         m(y**3), x) - rolled(lambda y: y**3 @ SPIN, x)).abs().mean(), FIT(1e-3, kind=optim.RMSprop
         ), "neural ODE"),
    *one("hamiltonian", partial(mlp, 2, 64, 64, 1, act=nn.Tanh), PLANE, lambda m, x, _: (slope(m(x),
         x).flip(1) * x.new([1, -1]) - torch.stack([x[:, 1], -3 * x[:, 0].sin()], 1)).square().mean(
         ), FIT(2e-3, batch=64), "Hamiltonian network"),
    *one("pendulum", partial(mlp, 2, 32, 32, 1, act=nn.Tanh), PLANE, lambda m, x, _: rolled(lambda
         y: torch.cat([y[:, 1:], 3 * y[:, :1].sin() + 5 * m(y).tanh()], 1), x).square().mean(), FIT(
         2e-3, batch=32), "policy, through a simulator"),
    *one("siren", lambda: nn.Sequential(*(layer for a, b, w in ((2, 64, 0.5), (64, 64, 0.01), (64,
         64, 0.01), (64, 3, 0.01)) for layer in (fifth.changed_weights(nn.Linear(a, b), lambda p,
         w=w: p.uniform_(-w, w)), Function(lambda x: (30 * x).sin()))))[:-1], raster, fifth.error,
         FIT(1e-4, **LONG), "SIREN"),
    *one("features", lambda: nn.Sequential(Function(lambda x: torch.cat([(z := x @ WAVES).sin(),
         z.cos()], 1)), mlp(64, 64, 64, 3)), raster, fifth.error, FIT(1e-3), "Fourier features"),
]  # fmt: skip
TIMM: dict[str, Any] = {
    "xcit_nano_12_p8_224": ("adan", 2e-3, {"img_size": 32, "depth": 2, "embed_dim": 48}),
    "edgenext_xx_small": ("adopt", 2e-3, {"dims": (16, 24, 32, 48), "depths": (1, 1, 2, 1)}),
    "starnet_s1": ("laprop", 1e-3, {"base_dim": 12, "depths": (1, 1, 2, 1)}),
    "repvit_m0_9": ("adabelief", 1e-3, {"embed_dim": (16, 24, 32, 48), "depth": (1, 1, 1, 1)}),
    "test_byobnet": ("madgradw", 1e-3, {}),
    "test_vit2": ("adamp", 1e-3, {"img_size": 32, "patch_size": 8}),
    "visformer_tiny": ("nadamw", 1e-3, {"img_size": 32, "embed_dim": 48, "depth": (1, 1, 1)}),
    "convit_tiny": ("cadamw", 2e-3, {"img_size": 32, "patch_size": 8, "depth": 3, "embed_dim": 12}),
    "davit_tiny": ("mars", 2e-3, {"depths": (1, 1), "embed_dims": (24, 48), "num_heads": (1, 2)}),
    "dla34": ("sgdp", 0.05, {"channels": (8, 16, 24, 32, 48, 64), "levels": (1,) * 6}),
}
CLASSIFIERS = [
    *(case for name, (kind, lr, sizes) in TIMM.items() for case in one(name.removeprefix("test_")
         .split("_")[0], slim(name, **sizes), P, CE, FIT(0, None, f"{kind} {lr:g}", partial(
         timm.optim.create_optimizer_v2, opt=kind, lr=lr, weight_decay=0.02), batch=12, steps=100),
         f"timm {name}")),
    *one("wide", lambda: nn.Sequential(nn.Conv2d(3, 32, 3, 2, 1), *(nets.Residual(nn.BatchNorm2d(32
         ), nn.ReLU(), nn.Conv2d(32, 32, 3, 1, 1), nn.Dropout(0.3), nn.BatchNorm2d(32), nn.ReLU(),
         nn.Conv2d(32, 32, 3, 1, 1)) for _ in range(2)), nn.BatchNorm2d(32), nn.ReLU(), *head(32, 8)
         ), P, CE, FIT(0.1, o.cosine, **NESTEROV), "wide ResNet, dropout"),
    *one("erased", cnn.resnet, P, lambda m, x, y: losses.classes(0.1)(m, torch.stack([ERASE(i) for i
         in x]), y), SGD(0.05, o.warm_up, weight_decay=2e-5, ema=0.98, evaluate=40, steps=100),
         "ResNet, torchvision's recipe"),
    *one("pruned", threads.NORMED, P, CE, FIT(2e-3, before=lambda step, m, _: step in (40, 80) and
         [prune.l1_unstructured(c, "weight", 0.4) for c in m.modules() if isinstance(c, nn.Conv2d)]
         ), "CNN, pruned twice"),
    *one("recomputed", lambda: Net(lambda m, x: m["last"](checkpoint(m["back"], x,
         use_reentrant=False)), back=unit(3, 32, stride=2, norm=nets.group), last=nn.Sequential(
         unit(32, 48, stride=2), *head(48, 8))), P, CE, FIT(2e-3), "CNN, checkpointed"),
    *one("drop_block", lambda: nn.Sequential(unit(3, 16), DropBlock2d(0.1, 5), nn.MaxPool2d(2),
         unit(16, 32), DropBlock2d(0.1, 5), *head(32, 8)), P, CE, FIT(2e-3, o.stairs),
         "CNN, DropBlock"),
    *one("hinge", partial(cnn.plain, norm=nets.group), P, lambda m, x, y:
         functional.multi_margin_loss(m(x), y), SGD(0.03), "CNN, SVM's loss"),
    *one("robust", cnn.with_norm, P, lambda m, x, y: (1 - m(x).softmax(1).gather(1, torch.where(
         torch.rand(len(x)) < 0.2, y.roll(1), y)[:, None]) ** 0.7).mean() / 0.7, FIT(2e-3, **LONG),
         "CNN, wrong labels"),
    *one("ordinal", partial(cnn.plain, 1, 9, norm=nn.BatchNorm2d), DIGITS, lambda m, x, y: bce(m(x),
         (y[:, None] > torch.arange(9)).float()), FIT(2e-3, batch=32), "CNN, ordered classes"),
    *one("cosface", lambda: losses.ArcFace(cnn.encoder(32)), P, lambda m, x, y: CE(lambda x: 16 *
         (functional.normalize(m.back(x)) @ functional.normalize(m.centres).T - 0.2 *
         functional.one_hot(y, 8)), x, y), SGD(0.03, o.cosine, batch=32), "CosFace"),
    *one("cloned", partial(agent, 3), data.catch, lambda m, x, y: CE(m, x, y.long()), FIT(2e-3,
         batch=32, **LONG), "behaviour cloning"),
    *one("tubelets", partial(hf, "VideoMAEForVideoClassification", **BODY, image_size=24,
         patch_size=8, num_frames=8, tubelet_size=2, num_labels=8), changed(data.panned, lambda x:
         x.transpose(1, 2)), told, FIT(1e-3, o.cosine, **DECAY), "video transformer"),
    *one("frames", lambda: Net(lambda m, x: m["last"](m["body"](m["back"](x.transpose(1, 2).flatten(
         0, 1)).view(-1, 8, 32))[0][:, -1]), back=cnn.encoder(32, False), body=nn.LSTM(32, 32,
         batch_first=True), last=nn.Linear(32, 8)), data.panned, CE, FIT(2e-3), "CNN, LSTM"),
]  # fmt: skip
MAPS = [
    *one("fcos", lambda: detection.FCOS(library.Pyramid(nets.group), 2, image_mean=[0.0] * 3,
         image_std=[1.0] * 3, **library.SIDE,
         anchor_generator=detection.anchor_utils.AnchorGenerator(((8,), (16,)), ((1.0,),) * 2)),
         SCENES, library.boxes, FIT(1e-3, **FEW | {"batch": 3}), "FCOS"),
    *one("simple_pose", lambda: nn.Sequential(unit(3, 24, stride=2), unit(24, 48, stride=2), *(layer
         for k in (48, 32) for layer in (fifth.changed_weights(nn.ConvTranspose2d(k, 32, 4, 2, 1,
         bias=False), lambda p: p.normal_(0, 1e-3)), nn.BatchNorm2d(32), nn.ReLU())),
         fifth.changed_weights(nn.Conv2d(32, 1, 1), lambda p: p.normal_(0, 1e-3))), SCENES,
         losses.heat, FIT(3e-3, batch=8, steps=150), "simple baseline of poses"),
    *one("silog", fifth.ends(UNet, nn.Sigmoid()), SCENES, lambda m, x, *y: 10 * ((d := (2 * m(x) +
         0.01).log() - (y[2] + 0.01).log()).square().mean() - 0.85 * d.mean() ** 2).sqrt(), FIT(
         2e-3, **FEW, **DECAY), "U-Net, depth"),
    *one("chamfer", lambda: nn.Sequential(nn.Conv1d(3, 32, 1), nn.ReLU(), nn.Conv1d(32, 64, 1),
         nn.AdaptiveMaxPool1d(1), mlp(64, 128, 192), nn.Unflatten(1, (64, 3))), changed(data.points,
         lambda x: x[..., :64]), lambda m, x, _: (d := torch.cdist(m(x), x.mT)).amin(1).mean() +
         d.amin(2).mean(), FIT(2e-3), "autoencoder of points"),
    *one("conditional", lambda: nn.ModuleDict({"down": mlp(794, 100, 16), "up": mlp(18, 100, 784)}),
         DIGITS, lambda m, x, y: 784 * bce(m["up"](torch.cat([(f := m["down"](torch.cat([x.flatten(1
         ), (k := functional.one_hot(y, 10))], 1)).chunk(2, 1))[0] + (f[1] / 2).exp() * torch.randn(
         len(x), 8), k], 1)), x.flatten(1)) + fifth.divergence(*f).sum(1).mean(), FIT(5e-3,
         batch=32, **LONG), "conditional VAE"),
    *one("spiral", partial(mlp, 4, 128, 128, 128, 2, act=nn.GELU), lambda g, n: (torch.stack([(a :=
         9.4 * torch.rand(n, generator=g).sqrt()) * a.cos(), a * a.sin()], 1) / 6,), lambda m, x:
         functional.mse_loss(m(torch.cat([x * (a := 1.57 * torch.rand(len(x), 1)).cos() + (n :=
         torch.randn_like(x)) * a.sin(), a, (3 * a).cos()], 1)), n), FIT(1e-3, kind=optim.AdamW,
         clip=1.0, batch=64, **LONG), "diffusion of points"),
    *one("edm", Timed, data.CROPS, lambda m, x: functional.mse_loss(m((y := x + (s := (1.2 *
         torch.randn(len(x), 1, 1, 1) - 1.2).exp()) * torch.randn_like(x)) * (v := s**2 + 0.25)
         .rsqrt(), s.log().flatten() / 4), (x - y / (4 * v)) * 2 * v.sqrt() / s), FIT(2e-3,
         ema=0.98, batch=8), "EDM"),
    *one("one_class", lambda: nn.Sequential(*(layer for a, b in ((1, 8), (8, 16)) for layer in
         (nn.Conv2d(a, b, 5, 2, 2, bias=False), nn.BatchNorm2d(b, affine=False), nn.LeakyReLU())),
         nn.Flatten(), nn.Linear(784, 32, bias=False)), fifth.only_zeros, lambda m, x, _: ((z := m(x
         )) - m.__dict__.setdefault("centre", z.detach().mean(0))).square().sum(1).mean(), FIT(1e-3,
         kind=optim.Adam, weight_decay=1e-6, batch=32), "Deep SVDD"),
    *one("simsiam", lambda: nn.ModuleDict({"back": projected(), "guess": nn.Sequential(nn.Linear(32,
         8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 32))}), data.pictures(32),
         lambda m, x: (lambda a, b: -(alike(m["guess"](a), b.detach()) + alike(m["guess"](b),
         a.detach())).mean() / 2)(*map(m["back"], losses.both_views(x))), SGD(0.05, o.cosine,
         batch=20, weight_decay=1e-4), "SimSiam"),
]  # fmt: skip
CASES = seen("2026-11-28T03:00", WORDS, SERIES, TABLES, PHYSICS, CLASSIFIERS, MAPS)
