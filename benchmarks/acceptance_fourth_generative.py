"""Networks of the fourth set that model pictures, and losses without labels."""

from __future__ import annotations

import math

import torch
from acceptance_classic import head, unit
from torch import Tensor, nn
from torch.nn import functional


class BetaVae(nn.Module):
    """Four-pixel convolutions with stride 2 down and up, ReLU, 16 latent numbers, no norm."""

    def __init__(self, norm: bool = False) -> None:
        super().__init__()
        make = nn.BatchNorm2d if norm else None
        layers = [unit(3, 24, 4, 2, make), unit(24, 32, 4, 2, make), unit(32, 48, 4, 2, make)]
        self.encoder = nn.Sequential(*layers, nn.Flatten(), nn.Linear(48 * 16, 32))
        layers = [nn.Linear(16, 48 * 16), nn.ReLU(), nn.Unflatten(1, (48, 4, 4))]
        for into, out in ((48, 32), (32, 24), (24, 3)):
            layers += [nn.ConvTranspose2d(into, out, 4, 2, 1), nn.ReLU()]
        self.decoder = nn.Sequential(*layers[:-1], nn.Sigmoid())

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mean, spread = self.encoder(x).chunk(2, 1)
        code = mean + torch.randn_like(mean) * (spread / 2).exp()
        return self.decoder(code), mean, spread


def beta(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """Pictures of 0 to 1; the sum over pixels, in tens, and twice the divergence."""
    shown, mean, spread = model(images)
    close = functional.mse_loss(shown, images, reduction="sum") / len(images) / 10
    return close + 0.2 * (mean.square() + spread.exp() - 1 - spread).sum(1).mean() / 2


def wasserstein_codes(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """WAE-MMD: codes shall look like normal ones by an inverse multiquadratic kernel."""
    shown, mean, _ = model(images)
    other = torch.randn_like(mean)

    def kernel(a: Tensor, b: Tensor) -> Tensor:
        return (32 / (32 + torch.cdist(a, b).square())).mean()

    apart = kernel(mean, mean) + kernel(other, other) - 2 * kernel(mean, other)
    return 10 * functional.mse_loss(shown, images) + apart


class Glow(nn.Module):
    """ActNorm, invertible 1 × 1 convolution and affine coupling, on 2 × 2 squeezed pictures."""

    def __init__(self, steps: int = 4, width: int = 12) -> None:
        super().__init__()
        self.scales = nn.ParameterList(torch.zeros(1, width, 1, 1) for _ in range(steps))
        self.shifts = nn.ParameterList(torch.zeros(1, width, 1, 1) for _ in range(steps))
        self.mixes = nn.ParameterList(
            nn.init.orthogonal_(torch.empty(width, width)) for _ in range(steps)
        )
        self.nets = nn.ModuleList()
        for _ in range(steps):
            last = nn.Conv2d(48, width, 3, padding=1)
            nn.init.zeros_(last.weight)
            nn.init.zeros_(last.bias)
            layers = [unit(width // 2, 48, norm=None), unit(48, 48, 1, norm=None), last]
            self.nets.append(nn.Sequential(*layers))

    def forward(self, x: Tensor) -> Tensor:
        x, sure = functional.pixel_unshuffle(x, 2), torch.zeros(len(x))
        places = x.shape[2] * x.shape[3]
        for scale, shift, mix, net in zip(
            self.scales, self.shifts, self.mixes, self.nets, strict=True
        ):
            x = (x + shift) * scale.exp()
            x = torch.einsum("oi,nihw->nohw", mix, x)
            sure = sure + places * (scale.sum() + torch.linalg.slogdet(mix)[1])
            kept, moved = x.chunk(2, 1)
            more, gain = net(kept).chunk(2, 1)
            gain = (gain + 2).sigmoid()
            x = torch.cat([kept, (moved + more) * gain], 1)
            sure = sure + gain.log().sum((1, 2, 3))
        sure = sure - 0.5 * (x.square() + math.log(2 * math.pi)).sum((1, 2, 3))
        return -sure / x[0].numel()


def unlikely(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """Nats per number, of pictures in [-1, 1] with the noise of 5 bits; plus 3, above 0."""
    return model(images + torch.rand_like(images) / 16).mean() + 3


class Score(nn.Module):
    """A noise-conditional score network with InstanceNorm, dilated, the level as a bias."""

    def __init__(self) -> None:
        super().__init__()
        act = nn.ELU
        layers = [unit(3, 32, norm=nn.InstanceNorm2d, act=act)]
        for dilation in (1, 2, 4):
            layers += [unit(32, 32, norm=nn.InstanceNorm2d, act=act, dilation=dilation)]
        self.body, self.level = nn.ModuleList(layers), nn.Linear(1, 32)
        self.last = nn.Conv2d(32, 3, 3, padding=1)

    def forward(self, x: Tensor, level: Tensor) -> Tensor:
        more, y = self.level(level.log()[:, None])[:, :, None, None], x
        for number, part in enumerate(self.body):
            y = part(y) + more if number == 0 else y + part(y)
        return self.last(y) / level.view(-1, 1, 1, 1)


def denoising_score(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    level = torch.logspace(0, -1, 6)[torch.randint(6, (len(images),))]
    noise, wide = torch.randn_like(images), level.view(-1, 1, 1, 1)
    return (model(images + wide * noise, level) * wide + noise).square().mean()


class Turned(nn.Module):
    """An encoder whose head names by how much a picture was turned."""

    def __init__(self, kinds: int = 4) -> None:
        super().__init__()
        layers = [unit(3, 24, stride=2, act=nn.Mish), unit(24, 48, stride=2, act=nn.Mish)]
        self.body = nn.Sequential(*layers, unit(48, 48, act=nn.Mish), *head(48, kinds))

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x)


def angle(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """Sine and cosine of a turn about the centre."""
    turn = (torch.rand(len(images)) - 0.5) * math.pi
    rows = torch.stack([turn.cos(), -turn.sin(), 0 * turn, turn.sin(), turn.cos(), 0 * turn], 1)
    grid = functional.affine_grid(rows.view(-1, 2, 3), list(images.shape), align_corners=False)
    shown = functional.grid_sample(images, grid, align_corners=False, padding_mode="reflection")
    return functional.mse_loss(model(shown), torch.stack([turn.sin(), turn.cos()], 1))


def perturbed(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Adversarial training with one signed gradient step."""
    shown = images.clone().requires_grad_()
    loss = functional.cross_entropy(model(shown), labels)
    if not torch.is_grad_enabled():
        return loss
    (slope,) = torch.autograd.grad(loss, shown)
    return functional.cross_entropy(model(images + 0.05 * slope.sign()), labels)


def smooth_input(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy and the squared norm of its gradient in the pictures: double backward."""
    shown = images.clone().requires_grad_()
    loss = functional.cross_entropy(model(shown), labels)
    if not torch.is_grad_enabled():
        return loss
    (slope,) = torch.autograd.grad(loss, shown, create_graph=True)
    return loss + 0.1 * len(images) * slope.square().sum((1, 2, 3)).mean()


def ordinal(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Ordinal regression of brightness in 9 steps: 8 thresholds, a sigmoid each."""
    bright = images.mean((1, 2, 3))
    steps = torch.linspace(-1.0, 1.0, 8)
    return functional.binary_cross_entropy_with_logits(
        model(images), (bright[:, None] > steps).float()
    )


def quantiles(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Pinball loss of three quantiles of the picture's contrast."""
    goal = images.flatten(1).std(1, keepdim=True)
    levels = torch.tensor([0.1, 0.5, 0.9])
    error = goal - model(images)[:, :3]
    return 10 * torch.maximum(levels * error, (levels - 1) * error).mean()


def poly_one(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """PolyLoss: cross-entropy and 1 - p, with soft labels at random strength (mixup)."""
    order, share = torch.randperm(len(images)), 0.5 + 0.5 * torch.rand(()).item()
    logits = model(share * images + (1 - share) * images[order])
    hot = functional.one_hot(labels, 8).float()
    soft = share * hot + (1 - share) * hot[order]
    return functional.cross_entropy(logits, soft) + 1 - (soft * logits.softmax(1)).sum(1).mean()
