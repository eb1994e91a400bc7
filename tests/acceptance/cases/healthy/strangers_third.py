"""Healthy: a third set by somebody who had not seen the checks."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import data
import losses
import optimizers as o
import timm
import torch
from cases.healthy import strangers_maps as maps
from cases.healthy.strangers_pictures import (
    DECAY,
    NESTEROV,
    how,
    numbers,
    one,
    regions,
    slim,
    spatial_dropout,
)
from loops import Losses, descend, own_loop, seen, train
from nets import classifiers as cnn
from nets import library
from nets import strangers as nets
from torch import Generator, Tensor, nn, optim
from torch.nn import functional
from torch.nn.utils import parametrize
from torchvision.models import VisionTransformer
from torchvision.models.detection import FCOS

import fmapboard


def hours(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Demand of electricity, standardized per series: four days, and the day after."""
    past, future = data.demand(generator, count)
    mean, spread = past.mean(2, keepdim=True), past.std(2, keepdim=True)
    return (past - mean) / spread, (future - mean) / spread


def two_views(model: nn.Module, images: Tensor) -> Tensor:
    return model(*losses.both_views(images))


def duets(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """A low and a high tone at once, [N, 1, 512], and each alone, [N, 2, 512]."""
    time = torch.arange(512) / 8000
    pitch, phase, gain = torch.rand(3, count, 2, 1, generator=generator)
    pitch = torch.tensor([[200.0], [1500.0]]) * (1 + pitch)
    each = (0.4 + 0.6 * gain) * (6.2832 * (pitch * time + phase)).sin()
    return each.sum(1, keepdim=True), each


def painting(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Places on one photograph, -1 to 1, and the colours there."""
    places, colours = data.rays(generator, count)
    return places[:, 0, :2], 2 * colours - 1


def margins(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Of the lengths of capsules."""
    long, truth = model(images), functional.one_hot(labels, 10)
    missed, wrong = (0.9 - long).relu().square(), (long - 0.1).relu().square()
    return (truth * missed + 0.5 * (1 - truth) * wrong).sum(1).mean()


def r_drop(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Two passes with dropout, whose answers are to agree."""
    twice = [model(images) for _ in range(2)]
    first, second = (logits.log_softmax(1) for logits in twice)
    apart = functional.kl_div(first, second, log_target=True, reduction="batchmean")
    apart = apart + functional.kl_div(second, first, log_target=True, reduction="batchmean")
    return sum(functional.cross_entropy(x, labels) for x in twice) / 2 + apart / 4


class Ordinal(nn.Module):
    """CORAL: one score, and a bias for each of five thresholds."""

    def __init__(self) -> None:
        super().__init__()
        self.net, self.biases = nets.inception(1), nn.Parameter(torch.linspace(1, -1, 5))

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x) + self.biases


def steps(model: nn.Module, images: Tensor, _: Tensor) -> Tensor:
    """Light in six steps: is it brighter than the first, the second, …?"""
    brighter = images.mean((1, 2, 3))[:, None] > torch.linspace(-0.8, 0.8, 5)
    return maps.bce(model(images), brighter.float())


class Neck(nn.Module):
    """Re-identification: triplets before a BatchNorm, classes after it."""

    def __init__(self) -> None:
        super().__init__()
        self.back, self.neck = cnn.trunk(24), nn.BatchNorm1d(48)
        self.neck.bias.requires_grad_(False)
        self.last = nn.Linear(48, 8, bias=False)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        code = self.back(x)
        return code, self.last(self.neck(code))


def two_terms(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    code, logits = model(images)
    far, same = torch.cdist(code, code), labels[:, None] == labels
    near = far.masked_fill(same, torch.inf).amin(1)
    hard = functional.softplus((far * same).amax(1) - near).mean()
    return hard + functional.cross_entropy(logits, labels, label_smoothing=0.1)


def proxies(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Proxy-Anchor: pictures are drawn to the proxy of their class, softly the hardest first."""
    code, centres = (functional.normalize(x, dim=1) for x in (model.back(images), model.centres))
    alike, truth = code @ centres.T, functional.one_hot(labels, 8).bool()
    near = (-16 * (alike - 0.1)).masked_fill(~truth, -torch.inf).logsumexp(0)
    far = (16 * (alike + 0.1)).masked_fill(truth, -torch.inf).logsumexp(0)
    return functional.softplus(near).sum() / truth.any(0).sum() + functional.softplus(far).mean()


def prototypes(model: nn.Module, images: Tensor, _: Tensor) -> Tensor:
    """Episodes of four classes: three examples make a prototype, five are asked."""
    code = model(images).view(4, 8, -1)
    far = torch.cdist(code[:, 3:].flatten(0, 1), code[:, :3].mean(1)).square()
    return functional.cross_entropy(-far, torch.arange(4).repeat_interleave(5))


def deep(model: nn.Module, images: Tensor, mask: Tensor, *_: Tensor) -> Tensor:
    """Cross-entropy and Dice of each map."""
    return sum(losses.both_masks(nn.Identity(), shown, mask) for shown in model(images)) / 2


def hard_pixels(model: nn.Module, images: Tensor, truth: Tensor) -> Tensor:
    """OHEM: only the worse half of the pixels counts."""
    each = functional.cross_entropy(model(images), truth, ignore_index=255, reduction="none")
    return each.flatten().topk(each.numel() // 2).values.mean()


class Unsure(nn.Module):
    """Two tasks, weighed by a learned variance each."""

    def __init__(self) -> None:
        super().__init__()
        self.net, self.spread = nets.Pyramid(mask=1, far=1), nn.Parameter(torch.zeros(2))


def kendall(model: Unsure, images: Tensor, mask: Tensor, _: Tensor, far: Tensor) -> Tensor:
    found, halved = model.net(images), partial(functional.avg_pool2d, kernel_size=2)
    terms = [maps.bce(found["mask"], halved(mask)), functional.l1_loss(found["far"], halved(far))]
    return ((-model.spread).exp() * torch.stack(terms) + model.spread).sum()


def preconditioned(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """EDM: what the network learns is scaled by the noise's deviation."""
    clean, log = images * 2 - 1, 1.2 * torch.randn(len(images)) - 1.2
    sigma = log.exp()[:, None, None, None]
    noisy, both = clean + sigma * torch.randn_like(clean), sigma.square() + 0.25
    goal = (clean - 0.25 / both * noisy) * both.sqrt() / (0.5 * sigma)
    return functional.mse_loss(model(noisy / both.sqrt(), log / 4, labels), goal)


def reader() -> nn.Module:
    """From a line of digits to eleven answers in each of 14 columns."""
    layers = [cnn.unit(1, 24), nn.MaxPool2d(2), cnn.unit(24, 48), nn.MaxPool2d(2), cnn.unit(48, 64)]
    return nn.Sequential(*layers, nn.AvgPool2d((7, 1)), nn.Flatten(2), nn.Conv1d(64, 11, 3, 1, 1))


def ctc(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    logs = model(images).permute(2, 0, 1).log_softmax(2)
    spelled, count = torch.stack([labels // 10, labels % 10], 1) + 1, len(labels)
    return functional.ctc_loss(logs, spelled, (len(logs),) * count, (2,) * count)


def either_way(model: nn.Module, wave: Tensor, parts: Tensor) -> Tensor:
    """SI-SDR of two sources in tens of dB, in whichever order is better; what is missing to 30."""

    def ratio(found: Tensor) -> Tensor:
        along = (found * parts).sum(2, True) / (parts.square().sum(2, True) + 1e-6) * parts
        share = along.square().sum(2) / ((found - along).square().sum(2) + 1e-6)
        return (share + 1e-6).log10().mean(1)

    found = model(wave)
    return (3 - torch.maximum(ratio(found), ratio(found.flip(1)))).mean()


def next_word(model: nn.Module, images: Tensor, words: Tensor, _: Tensor) -> Tensor:
    return functional.cross_entropy(model(images, words[:, :-1]).mT, words[:, 1:])


def huber(model: nn.Module, past: Tensor, future: Tensor) -> Tensor:
    return functional.smooth_l1_loss(model(past), future)


def squares(model: nn.Module, places: Tensor, colours: Tensor) -> Tensor:
    return functional.mse_loss(model(places), colours)


def adapted() -> nn.Module:
    """A trained ViT, frozen, with small adapters that begin at 0 and a new head."""
    model = cnn.pretrained(library.vit).requires_grad_(False)
    for number, block in enumerate(model.blocks):
        adapter = nets.Residual(nn.Linear(64, 8), nn.GELU(), nn.Linear(8, 64))
        nn.init.zeros_(adapter.body[2].weight)
        model.blocks[number] = nn.Sequential(block, adapter)
    model.head = nn.Linear(64, 8)
    return model


def four_bits() -> nn.Module:
    model = cnn.bundled()
    for name in ("conv2", "conv3", "conv4"):
        conv = model.get_submodule(name)
        parametrize.register_parametrization(conv, "weight", nets.LearntStep(conv.weight))
    return model


def transformer() -> nn.Module:
    return VisionTransformer(32, 4, 3, 4, 64, 128, dropout=0.1, num_classes=8)


def detector() -> nn.Module:
    """FCOS of torchvision with a small pyramid, one class."""
    back = library.Pyramid(partial(nn.GroupNorm, 4))
    sides = library.detection.anchor_utils.AnchorGenerator(((8,), (16,)), ((1.0,),) * 2)
    options = {"image_mean": [0.0] * 3, "image_std": [1.0] * 3, **library.SIDE}
    return FCOS(back, 2, anchor_generator=sides, **options)


def mutual(place: Path, seed: int) -> Losses:
    """Deep mutual learning: two networks teach each other; both are watched."""
    pair = cnn.classifier(16), nets.inception()
    first, second = (optim.AdamW(net.parameters(), 2e-3, weight_decay=0.02) for net in pair)

    def step(_: int, random: Generator) -> float:
        images, labels = data.P(random, 16)
        found, told = [net(images) for net in pair], 0.0
        for number, optimizer in enumerate((first, second)):
            own, other = found[number].log_softmax(1), found[1 - number].detach().softmax(1)
            loss = functional.nll_loss(own, labels)
            told += descend(optimizer, loss + functional.kl_div(own, other, reduction="batchmean"))
        return told

    with fmapboard.watch(pair[1], place, optimizer=second, every=8, name="second"):
        return train(place, seed, pair[0], step, 96, 8, first, name="first")


def adversarial_code(place: Path, seed: int) -> Losses:
    """An autoencoder of digits, whose code a critic compares with normal numbers."""
    down = [nn.Conv2d(1, 24, 4, 2, 1), nn.ReLU(), nn.Conv2d(24, 32, 4, 2, 1), nn.ReLU()]
    up = [nn.Linear(12, 1568), nn.ReLU(), nn.Unflatten(1, (32, 7, 7))]
    up += [nn.ConvTranspose2d(32, 24, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(24, 1, 4, 2, 1)]
    layers = [nn.Linear(12, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2)]
    coder = nn.Sequential(*down, nn.Flatten(), nn.Linear(1568, 12), *up)
    critic = nn.Sequential(*layers, nn.Linear(64, 1))
    first = optim.Adam(coder.parameters(), 2e-3, (0.5, 0.999))
    second = optim.Adam(critic.parameters(), 5e-4, (0.5, 0.999))

    def step(_: int, random: Generator) -> float:
        images, _ = data.digits(random, 32)
        code = coder[:6](images)
        near = functional.binary_cross_entropy_with_logits(coder[6:](code), images)
        descend(first, near + 0.02 * functional.softplus(-critic(code)).mean())
        real, fake = critic(torch.randn(32, 12)), critic(code.detach())
        descend(second, functional.softplus(-real).mean() + functional.softplus(fake).mean())
        return near.item()

    return train(place, seed, coder, step, 120, 10, first)


def ppo(place: Path, seed: int) -> Losses:
    """PPO: 128 moves, then four clipped steps on them; the share of wrong moves."""
    model = maps.agent(4)
    optimizer = optim.Adam(model.parameters(), lr=1e-3, eps=1e-5)

    def step(_: int, random: Generator) -> float:
        frames, best = data.catch(random, 128)
        with torch.no_grad():
            logits, worth = model(frames).split([3, 1], 1)
            old = torch.distributions.Categorical(logits=logits)
            moves = old.sample()
            gain = (moves == best.long()).float()
            better = gain - worth[:, 0]
            better, before = (better - better.mean()) / better.std(), old.log_prob(moves)
        for rows in torch.randperm(128).split(32):
            logits, worth = model(frames[rows]).split([3, 1], 1)
            now = torch.distributions.Categorical(logits=logits)
            ratio = (now.log_prob(moves[rows]) - before[rows]).exp()
            least = torch.minimum(ratio * better[rows], ratio.clamp(0.8, 1.2) * better[rows])
            value = functional.mse_loss(worth[:, 0], gain[rows])
            optimizer.zero_grad()
            (0.5 * value - least.mean() - 0.01 * now.entropy().mean()).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
        return 1 - gain.mean().item()

    return train(place, seed, model, step, 80, 8)


def cautious(model: nn.Module) -> optim.Optimizer:
    return timm.optim.create_optimizer_v2(model, "cadamw", 2e-3, 0.05)


def adopt(model: nn.Module) -> optim.Optimizer:
    return timm.optim.create_optimizer_v2(model, "adopt", 2e-3, 0.01)


P, P64, SCENES, CE = data.P, data.P64, data.scenes, losses.classes()
CASES = seen(
    "2026-11-27T15:00",
    one("mobilenet_v4", slim("mobilenetv4_conv_small_050"), P64, losses.augmented,
        how(0, o.warm_up, "cautious AdamW", cautious), "timm MobileNet v4"),
    one("pvt", slim("pvt_v2_b0", drop_path_rate=0.1), P64, losses.classes(0.1),
        how(1e-3, o.warm_up, **DECAY, clip=1.0, ema=0.98, evaluate=20, steps=60, every=5),
        "timm PVT v2"),
    one("half_vit", transformer, P, losses.mixup(),
        how(1e-3, o.two_phases, **DECAY, autocast=True, micro=2, batch=12, clip=1.0),
        "torchvision ViT"),
    one("capsules", nets.Capsules, data.digits, margins, how(1e-3, o.fading), "CapsNet"),
    one("spikes", nets.Spiking, data.digits, CE, how(2e-3, o.cosine, **DECAY), "spiking CNN"),
    one("r_drop", spatial_dropout, data.HALF, r_drop, how(0.02, o.cosine, **NESTEROV),
        "CNN, channels dropped"),
    one("coral", Ordinal, P, steps, how(2e-3, o.one_cycle(4e-3)), "Inception, ordinal"),
    one("bn_neck", Neck, data.few_classes, two_terms, how(1e-3, o.warm_up), "BNNeck"),
    one("proxies", lambda: losses.ArcFace(cnn.encoder(32)), P, proxies,
        how(1e-3, **DECAY, batch=32, steps=72, every=6), "Proxy-Anchor"),
    one("prototypes", partial(cnn.plain, classes=48, norm=nn.BatchNorm2d), data.few_classes,
        prototypes, how(1e-3, o.stairs), "prototypical CNN"),
    one("sim_siam", lambda: nets.Stopped(cnn.encoder(32)), data.pictures(40), two_views,
        how(0.05, o.cosine, **NESTEROV, batch=24), "SimSiam"),
    one("predictive", nets.Predictive, data.tones(512), losses.own,
        how(2e-3, batch=32, steps=160, every=16), "CPC"),
    one("adapters", adapted, data.colourless(), CE, how(3e-3, o.warm_up, **DECAY),
        "ViT, adapters"),
    one("four_bits", four_bits, data.photos(48, "own"), CE, how(0.005, o.cosine, **NESTEROV),
        "bundled network, LSQ"),
    one("nested", nets.Nested, SCENES, deep, how(2e-3, o.cosine, **DECAY, batch=8), "U-Net++"),
    one("hard_pixels", partial(nets.PyramidPooling, 8), regions, hard_pixels,
        how(0.03, o.poly, **NESTEROV), "PSPNet"),
    one("fcos", detector, SCENES, library.boxes,
        how(1e-3, o.ramp, **DECAY, batch=4, clip=5.0, steps=60, every=6), "torchvision FCOS"),
    one("kendall", Unsure, SCENES, kendall, how(3e-3, o.again), "FPN, learned weights"),
    one("discrete", nets.Discrete, data.CROPS_UNIT, losses.own, how(2e-3, o.cosine, **DECAY),
        "dVAE"),
    one("edm", nets.Conditioned, data.digits, preconditioned,
        how(1e-3, ema=0.99, evaluate=40, batch=8, steps=120, every=10), "EDM"),
    one("ctc", reader, numbers, ctc, how(2e-3, o.one_cycle(6e-3), clip=5.0), "CTC"),
    one("separated", nets.Separator, duets, either_way, how(2e-3, clip=5.0, batch=8),
        "Conv-TasNet"),
    one("inception_time", nets.inception_time, data.gestures, CE, how(0, None, "ADOPT", adopt),
        "InceptionTime"),
    one("beats", nets.Beats, hours, huber, how(1e-3, o.stairs, batch=64, steps=160, every=16),
        "N-BEATS"),
    one("dgcnn", nets.dgcnn, data.points, losses.classes(0.2),
        how(0.05, o.cosine, **NESTEROV, batch=12), "DGCNN"),
    one("siren", nets.siren, painting, squares, how(5e-4, batch=512, steps=200, every=20),
        "SIREN"),
    one("captions", lambda: nets.Captioner(cnn.encoder(48)), data.captions, next_word,
        how(2e-3, o.linear_down, **DECAY, steps=160, every=16), "pictures to words"),
    own_loop("mutual", "two CNNs, both watched", "mutual learning", mutual, 96, 8),
    own_loop("adversarial_code", "adversarial autoencoder", "two Adams", adversarial_code, 120, 10),
    own_loop("ppo", "policy and value", "PPO", ppo, 80, 8),
)  # fmt: skip
