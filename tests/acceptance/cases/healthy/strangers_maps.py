"""Healthy: maps, generators, signals and codes, by somebody who had not seen the checks."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import data
import losses
import optimizers as o
import torch
from cases.healthy.strangers_pictures import DECAY, NESTEROV, how, one, regions, slim
from loops import Losses, descend, duel, own_loop, seen, train
from nets import classifiers as cnn
from nets import strangers as nets
from nets.unusual import TextNet
from torch import Generator, Tensor, nn, optim
from torch.nn import functional
from torch.nn.utils.parametrizations import spectral_norm
from torchvision.ops import sigmoid_focal_loss

bce = functional.binary_cross_entropy_with_logits


def soft_tissue(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """HU in the window from -160 to 240, scaled to [0, 1]."""
    images, mask = data.hounsfield(generator, count)
    return (images.clamp(-160, 240) + 160) / 400, mask


def ignoring(model: nn.Module, images: Tensor, truth: Tensor) -> Tensor:
    return functional.cross_entropy(model(images), truth, ignore_index=255)


def centres(model: nn.Module, images: Tensor, _: Tensor, discs: Tensor, *__: Tensor) -> Tensor:
    """CenterNet: focal loss of Gaussian spots, L1 of size and offset at the centre."""
    found, place = model(images), discs[:, :2] / 2
    along, (column, row) = torch.arange(16.0), place.long().clamp(0, 15).T
    across = (along - column[:, None]).square()[:, None]
    spot = (-(across + (along - row[:, None]).square()[:, :, None]) / 4).exp()
    share = found["heat"][:, 0].sigmoid().clamp(1e-4, 1 - 1e-4)
    hits = (spot == 1) * (1 - share).square() * share.log()
    misses = (spot < 1) * (1 - spot).pow(4) * share.square() * (1 - share).log()
    which = torch.arange(len(images))
    size = (found["size"][which, 0, row, column] - discs[:, 2] / 8).abs().mean()
    offset = (found["offset"][which, :, row, column] - place % 1).abs().mean()
    return -(hits + misses).sum() / len(images) + 0.5 * size + offset


def center_net() -> nn.Module:
    model = nets.Pyramid(heat=1, size=1, offset=2)
    nn.init.constant_(model.heads["heat"][-1].bias, -2.19)
    return model


def integral(model: nn.Module, images: Tensor, _: Tensor, discs: Tensor, *__: Tensor) -> Tensor:
    """The mean place of a map's softmax, as in integral pose regression."""
    share = model(images).flatten(1).softmax(1).view(-1, 32, 32)
    along = torch.arange(32.0)
    found = torch.stack([(share.sum(1) * along).sum(1), (share.sum(2) * along).sum(1)], 1)
    return functional.l1_loss(found, discs[:, :2]) / 16


def ber_hu(model: nn.Module, images: Tensor, _: Tensor, __: Tensor, far: Tensor) -> Tensor:
    """Reverse Huber loss of the logarithm of depth."""
    apart = (model(images) - (far + 0.1).log()).abs()
    limit = 0.2 * apart.detach().amax()
    return torch.where(apart < limit, apart, (apart.square() + limit**2) / (2 * limit)).mean()


def bins(model: nn.Module, images: Tensor) -> Tensor:
    """Colours of [0, 1] in 27 classes, from brightness in [-1, 1]."""
    wanted = (images * 2.999).long()
    grey = images.mean(1, keepdim=True) * 2 - 1
    return functional.cross_entropy(
        model(grey), (wanted * torch.tensor([9, 3, 1])[:, None, None]).sum(1)
    )


def charbonnier(model: nn.Module, images: Tensor) -> Tensor:
    noisy = images + 0.1 * torch.randn_like(images)
    return ((noisy - model(noisy) - images).square() + 1e-6).sqrt().mean()


def thin(model: nn.Module, images: Tensor, edges: Tensor) -> Tensor:
    return sigmoid_focal_loss(model(images), edges, 0.75, 2.0, "mean")


def both(model: nn.Module, images: Tensor, mask: Tensor, _: Tensor, far: Tensor) -> Tensor:
    """Mask and depth at half the size."""
    found, halved = model(images), partial(functional.avg_pool2d, kernel_size=2)
    return bce(found["mask"], halved(mask)) + functional.l1_loss(found["far"], halved(far))


def evidence(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    logits, mean, spread = model(images)
    apart = 0.5 * (mean.square() + spread.exp() - spread - 1).sum() / len(images)
    return bce(logits, images, reduction="sum") / len(images) + apart


def matching(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Flow matching along straight lines from noise to digits."""
    noise, time = torch.randn_like(images), torch.rand(len(images))
    far, images = time[:, None, None, None], images * 2 - 1
    found = model((1 - far) * noise + far * images, time, labels)
    return functional.mse_loss(found, images - noise)


def mu_law(model: nn.Module, waves: Tensor, *_: Tensor) -> Tensor:
    """The next of 64 levels."""
    bent = waves.sign() * (1 + 255 * waves.abs().clamp(max=1)).log() / 5.545
    levels = ((bent + 1) * 31.5).round().long()[:, 0]
    return functional.cross_entropy(model(bent)[..., :-1], levels[:, 1:])


def supervised(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """SupCon: all of the same class attract, of two views."""
    code = functional.normalize(model(torch.cat(losses.both_views(images))), dim=1)
    alike, own = code @ code.T / 0.2, torch.eye(len(code), dtype=torch.bool)
    same = (labels.repeat(2)[:, None] == labels.repeat(2)) & ~own
    share = alike.masked_fill(own, -1e4).log_softmax(1)
    return -((share * same).sum(1) / same.sum(1)).mean()


def barlow(model: nn.Module, images: Tensor) -> Tensor:
    """The correlation of two views is to be the identity."""
    one, two = (model(view) for view in losses.both_views(images))
    one, two = ((x - x.mean(0)) / (x.std(0) + 1e-4) for x in (one, two))
    apart = (one.T @ two / len(one) - torch.eye(one.shape[1])).square()
    return apart.diagonal().sum() + 0.01 * (apart.sum() - apart.diagonal().sum())


def turned(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """RotNet: by which of four right angles a picture is turned."""
    labels = torch.randint(4, (len(images),))
    shown = [x.rot90(k, (1, 2)) for x, k in zip(images, labels.tolist(), strict=True)]
    return functional.cross_entropy(model(torch.stack(shown)), labels)


def projected() -> nn.Module:
    layers = [nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 32)]
    return nn.Sequential(cnn.trunk(32), *layers)


def agent(out: int) -> nn.Module:
    layers = [nn.Conv2d(2, 16, 5, 2), nn.ReLU(), nn.Conv2d(16, 32, 3, 2), nn.ReLU(), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(288, 64), nn.ReLU(), nn.Linear(64, out))


def q_learning(place: Path, seed: int) -> Losses:
    """DQN on catching a ball: a replay memory, a target that is copied each 20 steps."""
    model, target = agent(3), agent(3).requires_grad_(False)
    optimizer = optim.Adam(model.parameters(), 1e-3)
    frames, best = data.catch(Generator().manual_seed(seed + 5), 2000)
    after, _ = data.catch(Generator().manual_seed(seed + 6), 2000)
    moves = torch.randint(3, (2000,))
    reward = (moves == best.long()).float() - 0.5

    def step(number: int, random: Generator) -> float:
        if number % 20 == 0:
            target.load_state_dict(model.state_dict())
        rows = torch.randint(2000, (64,), generator=random)
        goal = reward[rows] + 0.5 * target(after[rows]).amax(1)
        found = model(frames[rows]).gather(1, moves[rows, None])[:, 0]
        return descend(optimizer, functional.smooth_l1_loss(found, goal))

    return train(place, seed, model, step, 240, 20, optimizer)


def actor_critic(place: Path, seed: int) -> Losses:
    """A2C of one step, with a bonus for entropy; the share of wrong moves."""
    model = agent(4)
    optimizer = optim.RMSprop(model.parameters(), 7e-4, alpha=0.99, eps=1e-5)

    def step(_: int, random: Generator) -> float:
        frames, best = data.catch(random, 64)
        logits, value = model(frames).split([3, 1], 1)
        policy = torch.distributions.Categorical(logits=logits)
        moves = policy.sample()
        gain = (moves == best.long()).float() - value[:, 0]
        loss = 0.5 * gain.square() - policy.log_prob(moves) * gain.detach()
        descend(optimizer, (loss - 0.01 * policy.entropy()).mean())
        return (moves != best.long()).float().mean().item()

    return train(place, seed, model, step, 200, 20, optimizer)


def conditional(place: Path, seed: int) -> Losses:
    """A GAN of digits with hinge losses; the class is a part of the noise, and of the picture."""
    layers = [nn.Linear(42, 64 * 49), nn.Unflatten(1, (64, 7, 7)), nn.BatchNorm2d(64), nn.ReLU()]
    layers += [nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.BatchNorm2d(32), nn.ReLU()]
    maker = nn.Sequential(*layers, nn.ConvTranspose2d(32, 1, 4, 2, 1), nn.Sigmoid())
    layers = [spectral_norm(nn.Conv2d(11, 24, 4, 2, 1)), nn.LeakyReLU(0.2)]
    layers += [spectral_norm(nn.Conv2d(24, 48, 4, 2, 1)), nn.LeakyReLU(0.2), *cnn.head(48, 1)]
    critic = nn.Sequential(*layers)

    def step(_: int, random: Generator, first: optim.Optimizer, second: optim.Optimizer) -> float:
        real, labels = data.digits(random, 32)
        kind = functional.one_hot(labels, 10).float()
        plane = kind[:, :, None, None].expand(-1, -1, 28, 28)
        fake = maker(torch.cat([torch.randn(32, 32), kind], 1))
        wrong = (1 + critic(torch.cat([fake.detach(), plane], 1))).relu().mean()
        loss = descend(second, (1 - critic(torch.cat([real, plane], 1))).relu().mean() + wrong)
        descend(first, -critic(torch.cat([fake, plane], 1)).mean())
        return loss

    return duel(place, seed, (maker, critic), (1e-3, 1e-3), step, 120, 10, (0.0, 0.9))


U, UBN = nets.Gate, partial(nets.Gate, norm=nn.BatchNorm2d)
CASES = seen(
    "2026-11-27T11:30",
    one("regions", partial(UBN, out=8), regions, ignoring, how(0.05, o.poly, **NESTEROV),
        "gated U-Net"),
    one("mask_dice", U, data.scenes, losses.both_masks, how(2e-3, o.cosine, **DECAY, batch=8),
        "gated U-Net"),
    one("one_mask", U, data.one_batch(data.scenes), losses.dice,
        how(2e-3, batch=1, steps=160, every=16), "gated U-Net"),
    one("center_net", center_net, data.scenes, centres, how(2e-3, steps=160, every=16),
        "CenterNet"),
    one("integral", UBN, data.scenes, integral, how(2e-3, o.stairs, batch=8), "integral pose"),
    one("ber_hu", UBN, data.scenes, ber_hu, how(2e-3, o.cosine, batch=8), "gated U-Net"),
    one("rcan", partial(nets.restorer, 12, nn.PixelShuffle(2)), data.CROPS_UNIT, losses.larger,
        how(5e-4, batch=8), "RCAN"),
    one("bins", partial(U, 1, 27), data.CROPS_UNIT, bins,
        how(2e-3, o.one_cycle(4e-3), **DECAY, batch=8), "gated U-Net"),
    one("charbonnier", nets.restorer, data.CROPS_UNIT, charbonnier, how(5e-4, o.cosine, batch=8),
        "attention, no norm"),
    one("thin_edges", UBN, data.edges, thin, how(2e-3, **DECAY, batch=8), "gated U-Net"),
    one("two_maps", partial(nets.Pyramid, mask=1, far=1), data.scenes, both,
        how(0.05, o.linear_down, **NESTEROV), "FPN"),
    one("evidence", nets.Gaussian, data.digits, evidence, how(1e-3, batch=32, steps=150, every=15),
        "VAE, GroupNorm"),
    one("matching", nets.Conditioned, data.digits, matching,
        how(1e-3, **DECAY, ema=0.98, evaluate=32, batch=8), "flow matching"),
    one("gestures", partial(nets.heart, 6, 5), data.gestures, losses.named,
        how(2e-3, o.cosine, steps=160, every=16), "residual 1-D CNN"),
    one("wave_net", partial(nets.WaveNet, 64), data.tones(256), mu_law, how(3e-3, batch=8),
        "WaveNet (1-D)"),
    one("nn_unet", partial(U, 1, norm=partial(nn.InstanceNorm3d, affine=True), wide=False),
        soft_tissue, losses.both_masks,
        how(0.01, o.poly, **NESTEROV | {"momentum": 0.99, "weight_decay": 3e-5}, clip=12, batch=2),
        "nnU-Net (3-D)"),
    one("sup_con", projected, data.P40, supervised, how(0.05, o.cosine, **NESTEROV, batch=24),
        "SupCon"),
    one("barlow", projected, data.pictures(40), barlow, how(1e-3, **DECAY, batch=48, steps=64),
        "Barlow Twins"),
    one("turned", partial(cnn.plain, 1, 4, norm=nn.BatchNorm2d), data.digits, turned,
        how(2e-3, o.cosine, batch=32, steps=120, every=12), "RotNet"),
    one("words", TextNet, data.sentences, losses.named, how(2e-3, o.linear_down, batch=32),
        "text CNN (1-D)"),
    one("spoken", slim("test_efficientnet", 6, in_chans=1), data.spectrograms, losses.classes(0.1),
        how(2e-3, o.warm_up, **DECAY), "timm EfficientNet, 1 channel"),
    one("two_classes", partial(U, out=2), data.scenes, losses.two_classes,
        how(0.05, o.poly, **NESTEROV, batch=8), "gated U-Net"),
    own_loop("q_learning", "DQN's network", "a target network", q_learning, 240, 20),
    own_loop("actor_critic", "policy and value", "A2C", actor_critic, 200, 20),
    own_loop("conditional", "conditional GAN", "hinge", conditional, 120, 10, False),
)  # fmt: skip
