"""Networks that model pictures, and their losses."""

from __future__ import annotations

import copy
import math

import torch
from data import pixels
from nets.classifiers import head, unit
from torch import Tensor, nn, optim
from torch.nn import functional


class VAE(nn.Module):
    """Images in [-1, 1] to 32 latent numbers and back; returns the loss per pixel."""

    def __init__(self) -> None:
        super().__init__()
        layers = [nn.Conv2d(3, 24, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(24, 48, 4, 2, 1)]
        self.encode = nn.Sequential(*layers, nn.LeakyReLU(0.2), nn.Flatten())
        self.mean, self.spread = nn.Linear(48 * 64, 32), nn.Linear(48 * 64, 32)
        self.start = nn.Linear(32, 48 * 64)
        layers = [nn.Unflatten(1, (48, 8, 8)), nn.ConvTranspose2d(48, 24, 4, 2, 1), nn.ReLU()]
        self.decode = nn.Sequential(*layers, nn.ConvTranspose2d(24, 3, 4, 2, 1), nn.Tanh())

    def forward(self, x: Tensor) -> Tensor:
        y = self.encode(x)
        mean, spread = self.mean(y), self.spread(y)
        again = self.decode(self.start(mean + (spread / 2).exp() * torch.randn_like(mean)))
        divergence = -0.5 * (1 + spread - mean.square() - spread.exp()).mean()
        return functional.mse_loss(again, x) + 0.01 * divergence


class VectorQuantized(nn.Module):
    """VQ-VAE with a straight-through estimate; returns the loss."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Sequential(unit(3, 24, 4, 2), unit(24, 32, stride=2), nn.Conv2d(32, 16, 1))
        self.book = nn.Embedding(64, 16)
        nn.init.uniform_(self.book.weight, -1, 1)
        layers = [nn.ConvTranspose2d(16, 24, 4, 2, 1), nn.ReLU()]
        self.decode = nn.Sequential(*layers, nn.ConvTranspose2d(24, 3, 4, 2, 1))

    def forward(self, x: Tensor) -> Tensor:
        code = self.encode(functional.pad(x, (0, 1, 0, 1)))
        flat = code.permute(0, 2, 3, 1)
        near = torch.cdist(flat.flatten(0, 2), self.book.weight).argmin(1)
        found = self.book(near).view_as(flat).permute(0, 3, 1, 2)
        commit = functional.mse_loss(code, found.detach()) * 0.25
        again = self.decode(code + (found - code).detach())
        return functional.mse_loss(again, x) + functional.mse_loss(found, code.detach()) + commit


class Timed(nn.Module):
    """A small U-Net with GroupNorm and the time of the diffusion, as in DDPM."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(16, 48), nn.SiLU(), nn.Linear(48, 2 * width))
        self.first = nn.Conv2d(3, width, 3, padding=1)
        self.down = nn.Conv2d(width, 2 * width, 3, 2, 1)
        self.norm1, self.norm2 = nn.GroupNorm(6, 2 * width), nn.GroupNorm(6, 2 * width)
        self.conv1 = nn.Conv2d(2 * width, 2 * width, 3, padding=1)
        self.conv2 = nn.Conv2d(2 * width, 2 * width, 3, padding=1)
        self.up = nn.ConvTranspose2d(2 * width, width, 4, 2, 1)
        self.norm3, self.last = nn.GroupNorm(6, 2 * width), nn.Conv2d(2 * width, 3, 3, padding=1)
        nn.init.zeros_(self.last.weight)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        rates = torch.exp(torch.linspace(0, 6, 8))
        waves = torch.cat([(time[:, None] * rates).sin(), (time[:, None] * rates).cos()], 1)
        first = self.first(x)
        y = self.down(first) + self.time(waves)[:, :, None, None]
        y = y + self.conv1(functional.silu(self.norm1(y)))
        y = y + self.conv2(functional.silu(self.norm2(y)))
        y = torch.cat([first, self.up(y)], 1)
        return self.last(functional.silu(self.norm3(y)))


class Masked(nn.Conv2d):
    """PixelCNN's convolution, which sees only earlier pixels."""

    def __init__(self, into: int, out: int, size: int, own: bool) -> None:
        super().__init__(into, out, size, padding=size // 2)
        seen = torch.zeros(size, size)
        seen[: size // 2] = 1
        seen[size // 2, : size // 2 + own] = 1
        self.register_buffer("seen", seen)

    def forward(self, x: Tensor) -> Tensor:
        return self._conv_forward(x, self.weight * self.seen, self.bias)


def pixel_cnn() -> nn.Module:
    """16 grey levels of a printed digit, pixel by pixel."""
    layers = [Masked(1, 24, 7, False), nn.ReLU(), Masked(24, 24, 3, True), nn.ReLU()]
    return nn.Sequential(*layers, Masked(24, 24, 3, True), nn.ReLU(), nn.Conv2d(24, 16, 1))


class Coupling(nn.Module):
    """RealNVP's affine coupling; the last convolution begins at zero."""

    def __init__(self, width: int, swap: bool) -> None:
        super().__init__()
        self.swap = swap
        layers = [nn.Conv2d(width // 2, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 1)]
        self.net = nn.Sequential(*layers, nn.ReLU(), nn.Conv2d(32, width, 3, padding=1))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        kept, changed = x.chunk(2, 1)[:: -1 if self.swap else 1]
        shift, scale = self.net(kept).chunk(2, 1)
        scale = scale.tanh()
        return torch.cat([kept, changed * scale.exp() + shift], 1), scale.sum((1, 2, 3))


class Flow(nn.Module):
    """Four couplings on 2 × 2 px as channels; returns bits per number, without the constant."""

    def __init__(self) -> None:
        super().__init__()
        self.steps = nn.ModuleList(Coupling(12, bool(step % 2)) for step in range(4))

    def forward(self, x: Tensor) -> Tensor:
        x = functional.pixel_unshuffle(x + torch.rand_like(x) / 32, 2)
        total = torch.zeros(len(x))
        for step in self.steps:
            x, change = step(x)
            total = total + change
        return (x.square().sum((1, 2, 3)) / 2 - total).mean() / x[0].numel() + 1


class Sine(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return (30 * x).sin()


def siren() -> nn.Module:
    """Coordinates to colours, as convolutions of size 1, with SIREN's initialization."""
    layers: list[nn.Module] = []
    for number, (into, out) in enumerate(((2, 48), (48, 48), (48, 48))):
        conv = nn.Conv2d(into, out, 1)
        bound = 1 / into if number == 0 else math.sqrt(6 / into) / 30
        nn.init.uniform_(conv.weight, -bound, bound)
        layers += [conv, Sine()]
    last = nn.Conv2d(48, 3, 1)
    nn.init.uniform_(last.weight, -math.sqrt(6 / 48) / 30, math.sqrt(6 / 48) / 30)
    return nn.Sequential(*layers, last)


def painted(planes: int = 6) -> nn.Module:
    """From one-hot planes to a photograph."""
    layers = [unit(planes, 32), unit(32, 48, stride=2), unit(48, 48), nn.Upsample(scale_factor=2)]
    return nn.Sequential(*layers, unit(48, 24), nn.Conv2d(24, 3, 3, padding=1), nn.Tanh())


def to_photo(model: nn.Module, planes: Tensor, images: Tensor) -> Tensor:
    return functional.l1_loss(model(planes), images)


class Automaton(nn.Module):
    """Growing neural cellular automaton: fixed Sobel filters, a last layer that begins at 0."""

    def __init__(self, channels: int = 12) -> None:
        super().__init__()
        sobel = torch.tensor([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]]) / 8
        one = torch.zeros(3, 3)
        one[1, 1] = 1
        kernels = torch.stack([one, sobel, sobel.T]).repeat(channels, 1, 1)[:, None]
        self.register_buffer("kernels", kernels)
        self.channels = channels
        self.hidden, self.last = nn.Conv2d(3 * channels, 48, 1), nn.Conv2d(48, channels, 1)
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.last.bias)

    def forward(self, x: Tensor) -> Tensor:
        seen = functional.conv2d(x, self.kernels, padding=1, groups=self.channels)
        change = self.last(self.hidden(seen).relu())
        return x + change * (torch.rand_like(x[:, :1]) < 0.5)


def grown(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """From one living cell to the first picture, 16 to 24 steps later."""
    goal = pixels(torch.Generator().manual_seed(4), 1, 20)[0]
    state = torch.zeros(4, model.channels, 20, 20)
    state[:, 3:, 10, 10] = 1
    for _ in range(int(torch.randint(16, 25, ()))):
        state = model(state)
    return functional.mse_loss(state[:, :3], goal.expand(4, -1, -1, -1))


def unit_gradients(_: int, model: nn.Module, optimizer: optim.Optimizer) -> None:
    """The automaton's paper: each gradient is divided by its norm, in a hook of the optimizer."""
    if not optimizer._optimizer_step_pre_hooks:

        def divide(*_: object) -> None:
            for p in model.parameters():
                p.grad.div_(p.grad.norm() + 1e-8)

        optimizer.register_step_pre_hook(divide)


class Patches(nn.Module):
    """DiT: patches, attention with modulated norms that begin at 0, and velocity as the answer."""

    def __init__(self, width: int = 48, depth: int = 3, channels: int = 3) -> None:
        super().__init__()
        self.patch = nn.Conv2d(channels, width, 4, 4)
        self.place = nn.Parameter(torch.randn(1, 64, width) * 0.02)
        self.time = nn.Sequential(nn.Linear(16, width), nn.SiLU(), nn.Linear(width, width))
        self.kind = nn.Embedding(9, width)
        layers = [nn.MultiheadAttention(width, 4, batch_first=True) for _ in range(depth)]
        self.attentions = nn.ModuleList(layers)
        make = [nn.Sequential(nn.Linear(width, 96), nn.GELU(), nn.Linear(96, width))]
        self.mlps = nn.ModuleList(copy.deepcopy(make[0]) for _ in range(depth))
        self.modulations = nn.ModuleList(nn.Linear(width, 6 * width) for _ in range(depth))
        self.last = nn.Linear(width, channels * 16)
        for layer in [*self.modulations, self.last]:
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor, time: Tensor, kind: Tensor) -> Tensor:
        rates = torch.exp(torch.linspace(0, math.log(100), 8))
        waves = torch.cat([(time[:, None] * rates).sin(), (time[:, None] * rates).cos()], 1)
        told = functional.silu(self.time(waves) + self.kind(kind))
        y = self.patch(x).flatten(2).transpose(1, 2) + self.place
        for attend, mlp, modulate in zip(self.attentions, self.mlps, self.modulations, strict=True):
            one, two, three, four, five, six = modulate(told)[:, None].chunk(6, 2)
            z = functional.layer_norm(y, y.shape[2:]) * (1 + one) + two
            y = y + three * attend(z, z, z, need_weights=False)[0]
            z = functional.layer_norm(y, y.shape[2:]) * (1 + four) + five
            y = y + six * mlp(z)
        y = self.last(functional.layer_norm(y, y.shape[2:])).transpose(1, 2)
        return functional.pixel_shuffle(y.unflatten(2, (8, 8)), 4)


def velocity(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Rectified flow, classes dropped for a tenth of the pictures."""
    time, noise = torch.randn(len(images)).sigmoid(), torch.randn_like(images)
    mixed = torch.lerp(noise, images, time.view(-1, 1, 1, 1))
    kind = torch.where(torch.rand(len(images)) < 0.1, 8, labels)
    return functional.mse_loss(model(mixed, time, kind), images - noise)


class Latent(nn.Module):
    """Latent diffusion: a frozen encoder, and a network with the time and the noise."""

    def __init__(self) -> None:
        super().__init__()
        layers = [nn.Conv2d(3, 24, 4, 2, 1), nn.SiLU(), nn.Conv2d(24, 3, 3, padding=1)]
        self.encoder = nn.Sequential(*layers).requires_grad_(False).eval()
        self.network = Timed()

    def train(self, mode: bool = True) -> nn.Module:
        super().train(mode)
        self.encoder.eval()
        return self


def latent_noise(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """The forward pass is not the root's; latents are scaled to deviation 1."""
    with torch.no_grad():
        code = model.encoder(images)
        code = code / code.std()
    time, noise = torch.rand(len(images)), torch.randn_like(code)
    clean = (time * math.pi / 2).cos().view(-1, 1, 1, 1)
    mixed = clean * code + (1 - clean.square()).sqrt() * noise
    return functional.mse_loss(model.network(mixed, time), noise)


class Controlled(nn.Module):
    """ControlNet: a frozen network, a copy that learns, and 1 × 1 convolutions that begin at 0."""

    def __init__(self) -> None:
        super().__init__()
        self.base = nn.ModuleList([unit(1, 24, norm=None), unit(24, 24, norm=None)])
        self.last = nn.Conv2d(24, 3, 3, padding=1)
        self.copy = copy.deepcopy(self.base)
        self.base.requires_grad_(False)
        self.last.requires_grad_(False)
        self.hint = nn.Conv2d(3, 24, 3, padding=1)
        self.zeros = nn.ModuleList(nn.Conv2d(24, 24, 1) for _ in range(2))
        for conv in self.zeros:
            nn.init.zeros_(conv.weight)
            nn.init.zeros_(conv.bias)

    def forward(self, x: Tensor, hint: Tensor) -> Tensor:
        y = z = x
        for number, (own, other) in enumerate(zip(self.base, self.copy, strict=True)):
            y = own(y)
            z = other(z) + (self.hint(hint) if number == 0 else 0)
            y = y + self.zeros[number](z)
        return self.last(y)


def controlled(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """Colours from brightness and a blurred hint."""
    hint = functional.avg_pool2d(images, 5, 1, 2)
    return functional.mse_loss(model(images.mean(1, keepdim=True), hint), images)


class Watermark(nn.Module):
    """HiDDeN: 12 bits, repeated over the picture as planes, are hidden in it and read again."""

    def __init__(self) -> None:
        super().__init__()
        self.look, self.mix = unit(3, 32), unit(32 + 12 + 3, 32)
        self.hide = nn.Conv2d(32, 3, 1)
        layers = [unit(3, 32), unit(32, 32), unit(32, 32), unit(32, 12)]
        self.read = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(12, 12))

    def forward(self, x: Tensor, bits: Tensor) -> tuple[Tensor, Tensor]:
        planes = bits[:, :, None, None].expand(-1, -1, *x.shape[2:])
        marked = x + 0.3 * self.hide(self.mix(torch.cat([self.look(x), planes, x], 1)))
        return marked, self.read(marked + 0.02 * torch.randn_like(marked))


def hidden_bits(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    bits = torch.randint(2, (len(images), 12)).float()
    marked, told = model(images, bits)
    entropy = functional.binary_cross_entropy_with_logits(told, bits)
    return entropy + 0.7 * functional.mse_loss(marked, images)


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


def decoder() -> nn.Module:
    """Strided down, then PixelShuffle up, LayerNorm and GELU between."""
    layers = [nn.Conv2d(3, 32, 4, 4), nn.GroupNorm(1, 32), nn.GELU(), nn.Conv2d(32, 32, 3, 1, 1)]
    return nn.Sequential(*layers, nn.GELU(), nn.Conv2d(32, 48, 1), nn.PixelShuffle(4))
