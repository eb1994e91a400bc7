"""Healthy: a fourth set by somebody who had not seen the checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import data
import losses
import optimizers as o
import torch
from cases.healthy.strangers_maps import agent, bce
from cases.healthy.strangers_pictures import DECAY, NESTEROV, how, lopsided, one, regions, slim
from loops import Loss, Losses, descend, own_loop, seen, train
from nets import classifiers as cnn
from nets import library
from nets import strangers as nets
from nets.dense import LinkNet, Spots, UNet
from torch import Generator, Tensor, nn, optim
from torch.nn import functional
from torchvision.ops import generalized_box_iou_loss, sigmoid_focal_loss

CALLS: Counter[Generator] = Counter()


def hours(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Demand of electricity, standardized per series: four days, and the day after."""
    past, future = data.demand(generator, count)
    mean, spread = past.mean(2, keepdim=True), past.std(2, keepdim=True)
    return (past - mean) / spread, (future - mean) / spread


def ever_more(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """A curriculum: three classes, after 20 batches five, after 60 all eight."""
    CALLS[generator] += 1
    images, labels = data.P(generator, 6 * count)
    known = 3 + 2 * (CALLS[generator] > 20) + 3 * (CALLS[generator] > 60)
    rows = (labels < known).nonzero()[:count, 0]
    return images[rows], labels[rows]


def crowds(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Up to 12 heads on a photograph in grey, 100 times their density, and their number."""
    images = data.pixels(generator, count, 32)[0].mean(1, keepdim=True) - 0.45
    number = torch.randint(1, 13, (count,), generator=generator)
    along, (x, y) = torch.arange(32.0), 2 + 28 * torch.rand(2, count, 12, 1, generator=generator)
    across, down = (along - x).square()[:, :, None], (along - y).square()[..., None]
    heads = (-(across + down) / 4.5).exp() * (torch.arange(12) < number[:, None])[..., None, None]
    return images + 1.5 * heads.amax(1, True), 100 / 14.1 * heads.sum(1, True), number.float()


def moves(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """A game, and a teacher's moves: -1, 0 or 1."""
    frames, best = data.catch(generator, count)
    return frames, best[:, None] - 1


def squares(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Brier's score of ten sigmoids."""
    return functional.mse_loss(model(images), functional.one_hot(labels, 10).float())


def hinge(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Squared, of targets -1 and 1."""
    truth = 2 * functional.one_hot(labels, 8) - 1
    return (1 - truth * model(images)).relu().square().mean()


def against(function: Callable[..., Tensor]) -> Loss:
    """Of the model's answer and the second part of the batch."""
    return lambda model, images, truth, *_: function(model(images), truth)


def coloured(model: nn.Module, images: Tensor) -> Tensor:
    """From brightness to colours, all from -1 to 1."""
    return functional.huber_loss(model(images.mean(1, keepdim=True)), images, delta=0.2)


def softmax_dice(model: nn.Module, images: Tensor, truth: Tensor) -> Tensor:
    """Dice of each class, seams left out, without any cross-entropy."""
    there = (truth != 255)[:, None]
    share = model(images).softmax(1) * there
    true = functional.one_hot(truth % 255, 8).movedim(3, 1) * there
    axes = (0, 2, 3)
    return 1 - ((2 * (share * true).sum(axes) + 1) / ((share + true).sum(axes) + 1)).mean()


def bounded() -> nn.Module:
    """Three numbers, cut to 0 and 1; the bias begins in the middle."""
    model = nets.inception(3)
    nn.init.constant_(model[-1].bias, 0.5)
    return nn.Sequential(model, nn.Hardtanh(0, 1))


def tint(model: nn.Module, images: Tensor, _: Tensor) -> Tensor:
    """The mean colour, in Huber's loss."""
    return functional.smooth_l1_loss(model(images), images.mean((2, 3)), beta=0.1)


def how_many(model: nn.Module, images: Tensor, _: Tensor, number: Tensor) -> Tensor:
    return functional.poisson_nll_loss(model(images)[:, 0], number, full=True)


def only_biases() -> nn.Module:
    """BitFit: of a trained ViT, only biases and the head learn."""
    model = cnn.pretrained(library.vit)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name.endswith("bias") or name.startswith("head"))
    return model


def adjusted(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Logits plus the logarithm of how frequent their class is."""
    prior = torch.tensor([0.7, 0.14, 0.1, 0.06]).log()
    return functional.cross_entropy(model(images) + prior, labels)


def pairs(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Hadsell's loss of all pairs: near if of one class, else at least 1 apart."""
    one, two = torch.triu_indices(32, 32, 1)
    code, same = model(images), (labels[one] == labels[two]).float()
    far = functional.pairwise_distance(code[one], code[two])
    return (same * far.square() + (1 - same) * (1 - far).relu().square()).mean()


def hashed(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """16 bits from tanh: near for one class, far for others, and each close to -1 or 1."""
    code, same = model(images), labels[:, None] == labels
    far = (code[:, None] - code).square().mean(2)
    return torch.where(same, far, (2 - far).relu()).mean() + 0.1 * (1 - code.abs()).mean()


def solid() -> nn.Module:
    """An autoencoder of volumes."""
    down = [nn.Conv3d(1, 12, 4, 2, 1), nn.ReLU(), nn.Conv3d(12, 24, 4, 2, 1), nn.ReLU()]
    up = [nn.ConvTranspose3d(24, 12, 4, 2, 1), nn.ReLU(), nn.ConvTranspose3d(12, 1, 4, 2, 1)]
    return nn.Sequential(*down, nn.Conv3d(24, 8, 1), nn.Conv3d(8, 24, 1), nn.ReLU(), *up)


def rebuilt(model: nn.Module, images: Tensor, _: Tensor) -> Tensor:
    return bce(model(images), images)


class Tied(nn.Module):
    """An autoencoder of digits whose way back has the kernels of the way down."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 24, 4, 2, 1), nn.Conv2d(24, 16, 4, 2, 1)
        self.lift, self.end = nn.Parameter(torch.zeros(24)), nn.Parameter(torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        code, back = self.second(self.first(x).relu()).relu(), functional.conv_transpose2d
        y = back(code, self.second.weight, self.lift, 2, 1).relu()
        return back(y, self.first.weight, self.end, 2, 1)


def one_block() -> nn.Module:
    """A ViT whose four blocks are one, as ALBERT's."""
    model = library.vit()
    model.blocks = nn.Sequential(*[model.blocks[0]] * 4)
    return model


class Forecaster(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.last = nn.LSTM(1, 48, 2, batch_first=True, dropout=0.1), nn.Linear(48, 24)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.body(x.mT)[0][:, -1])[:, None]


class Causal(nn.Module):
    """A small GPT, whose words are also its last layer; 64 levels of sounds are its words."""

    def __init__(self) -> None:
        super().__init__()
        options = {"dropout": 0.0, "batch_first": True, "norm_first": True}
        layer = nn.TransformerEncoderLayer(48, 4, 96, **options)
        self.words, self.places = nn.Embedding(64, 48), nn.Parameter(0.02 * torch.randn(63, 48))
        self.body = nn.TransformerEncoder(layer, 2, nn.LayerNorm(48), enable_nested_tensor=False)
        nn.init.normal_(self.words.weight, 0, 0.02)

    def forward(self, words: Tensor) -> Tensor:
        ahead = nn.Transformer.generate_square_subsequent_mask(words.shape[1])
        code = self.body(self.words(words) + self.places, ahead, is_causal=True)
        return functional.linear(code, self.words.weight)


def next_level(model: nn.Module, waves: Tensor, _: Tensor) -> Tensor:
    words = ((waves[:, 0].clamp(-1, 1) + 1) * 31.5).long()
    return functional.cross_entropy(model(words[:, :-1]).mT, words[:, 1:])


def overlapping(model: nn.Module, images: Tensor, _: Tensor, discs: Tensor, *__: Tensor) -> Tensor:
    """Focal loss of each cell, and the generalized IoU of the box in the cell of the centre."""
    score, box = model(images)
    cell, which = (discs[:, :2] / 4).long().clamp(0, 7), torch.arange(len(images))
    true = torch.zeros_like(score)
    true[which, 0, cell[:, 1], cell[:, 0]] = 1
    found = box[which, :, cell[:, 1], cell[:, 0]]
    place, size = 4 * (cell + found[:, :2].sigmoid()), 8 * found[:, 2:].clamp(-3, 3).exp()
    boxes = [torch.cat([p - r, p + r], 1) for p, r in ((place, size), (discs[:, :2], discs[:, 2:]))]
    apart = generalized_box_iou_loss(*boxes, reduction="mean")
    return sigmoid_focal_loss(score, true, reduction="sum") / len(images) + apart


class Paired(nn.Module):
    """SigLIP: a sigmoid for each pair of picture and caption; the bias begins at -10."""

    def __init__(self) -> None:
        super().__init__()
        self.see, self.read = cnn.encoder(32), nn.EmbeddingBag(60, 32)
        self.scale, self.shift = nn.Parameter(torch.tensor(2.3)), nn.Parameter(torch.tensor(-10.0))

    def forward(self, images: Tensor, words: Tensor) -> Tensor:
        one, two = (functional.normalize(x, dim=1) for x in (self.see(images), self.read(words)))
        return self.scale.exp() * one @ two.T + self.shift


def sigmoids(model: nn.Module, images: Tensor, words: Tensor, labels: Tensor) -> Tensor:
    same = (labels[:, None] == labels).float()
    return bce(model(images, words), same, reduction="sum") / len(images)


def to_words(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Devise: the code is to point to the fixed vector of the class's name."""
    names = torch.randn(8, 50, generator=Generator().manual_seed(4))
    return functional.cosine_embedding_loss(model(images), names[labels], torch.ones(len(images)))


def mixture(model: nn.Module, images: Tensor, _: Tensor, discs: Tensor, *__: Tensor) -> Tensor:
    """The density of the centre as three Gaussians."""
    share, place, log = model(images).split([3, 6, 6], 1)
    place, log = (x.view(-1, 3, 2) for x in (place, log.clamp(-3, 3)))
    apart = ((discs[:, None, :2] / 16 - 1 - place) / log.exp()).square() / 2 + log + 0.919
    return -(share.log_softmax(1) - apart.sum(2)).logsumexp(1).mean()


def spread_labels(model: nn.Module, images: Tensor, _: Tensor) -> Tensor:
    """Light in 20 steps, told as a Gaussian over them; the divergence from it."""
    far = torch.linspace(0, 1, 20) - images.mean((1, 2, 3))[:, None]
    soft, logs = (-(far / 0.06).square() / 2).softmax(1), model(images).log_softmax(1)
    return functional.kl_div(logs, soft, reduction="batchmean")


def few_active() -> nn.Module:
    """A k-sparse autoencoder: 16 of 256 numbers of the code are kept, the others are 0."""

    def keep(x: Tensor) -> Tensor:
        return torch.where(x >= x.topk(16, 1).values[:, -1:], x, 0.0)

    up = [nn.Unflatten(1, (16, 7, 7)), nn.ReLU(), nn.ConvTranspose2d(16, 16, 4, 2, 1), nn.ReLU()]
    down = [nn.Conv2d(1, 16, 4, 2, 1), nn.ReLU(), nn.Conv2d(16, 16, 4, 2, 1), nn.ReLU()]
    code = [nn.Flatten(), nn.Linear(784, 256), cnn.Function(keep), nn.Linear(256, 784)]
    return nn.Sequential(*down, *code, *up, nn.ConvTranspose2d(16, 1, 4, 2, 1))


def two_rates(place: Path, seed: int) -> Losses:
    """The trained body learns by AdamW at 1e-5, the new head by SGD at 0.05."""
    model, grey = cnn.bundled(), data.colourless(32, "own")
    head = optim.SGD(model.head.parameters(), lr=0.05, momentum=0.9)
    body = optim.AdamW([p for n, p in model.named_parameters() if n[:4] != "head"], lr=1e-5)

    def step(_: int, random: Generator) -> float:
        body.zero_grad()
        loss = descend(head, losses.named(model, *grey(random, 16)))
        body.step()
        return loss

    return train(place, seed, model, step, 96, 8)


def then(make: Callable[[], nn.Module], *layers: nn.Module) -> Callable[[], nn.Module]:
    return lambda: nn.Sequential(make(), *layers)


P, SCENES, CE = data.P, data.scenes, losses.classes()
QUICK = partial(nn.BatchNorm2d, momentum=0.2, eps=1e-3)
GREY = partial(cnn.plain, 1, norm=nn.BatchNorm2d)
CASES = seen(
    "2026-11-27T18:00",
    one("squares", then(partial(GREY, 10), nn.Sigmoid()), data.digits, squares,
        how(3e-3, batch=32), "CNN, ten sigmoids"),
    one("probabilities", then(LinkNet, nn.Sigmoid()), SCENES,
        against(functional.binary_cross_entropy),
        how(2e-3, o.cosine, **DECAY), "LinkNet, sigmoid"),
    one("coloured", then(partial(UNet, 1, 3), nn.Tanh()), data.CROPS, coloured,
        how(2e-3, o.cosine, batch=8), "U-Net, tanh"),
    one("margin", library.densenet, P, against(functional.multi_margin_loss),
        how(2e-3, o.one_cycle(4e-3)), "DenseNet, hinge"),
    one("softmax_dice", partial(nets.PyramidPooling, 8), regions, softmax_dice,
        how(5e-3, o.cosine), "PSPNet"),
    one("bounded", bounded, data.UNIT, tint, how(1e-3, o.stairs), "Inception, cut to 0 and 1"),
    one("density", then(partial(nets.Gate, 1), nn.ReLU()), crowds,
        against(functional.mse_loss), how(2e-3, batch=12), "gated U-Net, ReLU"),
    one("how_many", partial(GREY, 1), crowds, how_many, how(3e-3, o.cosine), "CNN, Poisson"),
    one("only_biases", only_biases, data.colourless(), CE, how(5e-3, o.warm_up), "ViT, BitFit"),
    one("ever_more", cnn.resnet, ever_more, CE, how(0.01, **NESTEROV), "ResNet"),
    one("adjusted", partial(cnn.resnet, classes=4), lopsided, adjusted,
        how(1e-3, o.cosine, **DECAY, micro=2, clip=1.0), "ResNet"),
    one("pairs", partial(cnn.encoder, 8), data.few_classes, pairs, how(1e-3), "siamese CNN"),
    one("hashed", then(partial(cnn.encoder, 16), nn.Tanh()), data.few_classes, hashed,
        how(2e-3), "hashing CNN"),
    one("solid", solid, data.voxels, rebuilt, how(3e-3, batch=12), "3-D autoencoder"),
    one("tied", Tied, data.digits, rebuilt, how(3e-3, batch=32), "autoencoder, tied kernels"),
    one("one_block", one_block, data.HALF, losses.classes(0.1),
        how(1e-3, o.warm_up, **DECAY, clip=1.0), "ViT, one block four times"),
    one("quick_norm", partial(cnn.plain, norm=QUICK, act=nn.SiLU), data.UNIT, losses.flip,
        how(0.01, o.cosine, **NESTEROV, steps=120, every=10), "CNN, quick BatchNorm"),
    one("forecast", Forecaster, hours, against(functional.l1_loss),
        how(5e-3, batch=32, clip=1.0), "LSTM"),
    one("causal", Causal, data.tones(64), next_level,
        how(3e-3, o.warm_up, **DECAY, clip=1.0, batch=32), "GPT, tied"),
    one("overlapping", Spots, SCENES, overlapping,
        how(2e-3, o.ramp, batch=8, micro=2, clip=5.0), "toy detector, GIoU"),
    one("sigmoids", Paired, data.captions, sigmoids, how(3e-3, o.cosine, batch=32), "SigLIP"),
    one("to_words", slim("test_vit", 50, img_size=32), data.HALF, to_words,
        how(1e-3, o.ramp, **DECAY), "timm ViT, word vectors"),
    one("mixture", partial(nets.inception, 15), SCENES, mixture,
        how(2e-3, o.cosine, steps=120, every=10), "Inception, mixture density"),
    one("layer_scale", partial(library.vit, init_values=1e-5), P, CE,
        how(2e-3, o.two_phases, **DECAY), "ViT, LayerScale"),
    one("hinge", partial(cnn.plain, norm=nets.group), P, hinge, how(1e-3), "GroupNorm CNN"),
    one("softplus", then(partial(UNet, transposed=False), nn.Softplus()), SCENES, losses.depth,
        how(2e-3, o.linear_down, batch=8), "U-Net, softplus"),
    one("spread_labels", slim("mobilenetv3_small_050", 20), data.photos(64, "unit"), spread_labels,
        how(2e-3, o.one_cycle(5e-3), **DECAY), "timm MobileNet v3, 20 steps"),
    one("few_active", few_active, data.digits, rebuilt, how(2e-3, batch=32), "k-sparse"),
    one("cloned", then(partial(agent, 1), nn.Tanh()), moves, against(functional.mse_loss),
        how(3e-3, batch=128, steps=120, every=10), "policy, tanh"),
    own_loop("two_rates", "bundled network", "SGD and AdamW", two_rates, 96, 8),
)  # fmt: skip
