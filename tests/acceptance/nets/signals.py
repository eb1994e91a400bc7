"""Networks for sounds, series, films, volumes, bands and several inputs."""

from __future__ import annotations

import math
from functools import partial

import torch
from data import Draw
from nets.classifiers import Add, head, unit
from torch import Generator, Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrizations


def waveform() -> nn.Module:
    """M5: a wide first kernel, then pooling, on raw sound."""
    layers: list[nn.Module] = [nn.Conv1d(1, 24, 40, 4), nn.BatchNorm1d(24), nn.ReLU()]
    for into, out in ((24, 24), (24, 48)):
        layers += [nn.MaxPool1d(2), nn.Conv1d(into, out, 3), nn.BatchNorm1d(out), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(48, 6))


class Causal(nn.Module):
    """TCN's block: two dilated causal convolutions with weight norm and dropout."""

    def __init__(self, width: int, dilation: int) -> None:
        super().__init__()
        self.pad = (2 * dilation, 0)
        conv = [nn.Conv1d(width, width, 3, dilation=dilation) for _ in range(2)]
        self.conv1, self.conv2 = map(parametrizations.weight_norm, conv)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.drop(functional.relu(self.conv1(functional.pad(x, self.pad))))
        y = self.drop(functional.relu(self.conv2(functional.pad(y, self.pad))))
        return functional.relu(x + y)


def tcn() -> nn.Module:
    layers = [nn.Conv1d(1, 24, 7, 2, 3), *(Causal(24, 2**level) for level in range(5))]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(24, 6))


class Wave(nn.Module):
    """WaveNet-like: gated dilated convolutions with skip connections."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv1d(1, 24, 1)
        widths = [2**level for level in range(6)]
        self.gates = nn.ModuleList(nn.Conv1d(24, 48, 3, padding=d, dilation=d) for d in widths)
        self.skips = nn.ModuleList(nn.Conv1d(24, 24, 1) for _ in widths)
        self.residuals = nn.ModuleList(nn.Conv1d(24, 24, 1) for _ in widths[1:])
        self.last = nn.Linear(24, 6)

    def forward(self, x: Tensor) -> Tensor:
        x, total = self.first(x), torch.zeros(())
        for level, gate in enumerate(self.gates):
            a, b = gate(x).chunk(2, 1)
            y = a.tanh() * b.sigmoid()
            total = total + self.skips[level](y)
            if level < len(self.residuals):
                x = x + self.residuals[level](y)
        return self.last(functional.relu(total).mean(2))


class Recurrent(nn.Module):
    """Convolutions over a spectrogram, then a GRU over time."""

    def __init__(self) -> None:
        super().__init__()
        layers = [unit(1, 16), nn.MaxPool2d(2), unit(16, 32), nn.MaxPool2d((4, 2))]
        self.conv = nn.Sequential(*layers)
        self.gru, self.head = nn.GRU(32 * 4, 32, batch_first=True), nn.Linear(32, 6)

    def forward(self, x: Tensor) -> Tensor:
        steps = self.conv(x).permute(0, 3, 1, 2).flatten(2)
        return self.head(self.gru(steps)[0].mean(1))


def clip_net(split: bool = False) -> nn.Module:
    """C3D-like; ``split`` takes a spatial and a temporal convolution in place of each."""

    def block(into: int, out: int) -> list[nn.Module]:
        if not split:
            return [nn.Conv3d(into, out, 3, padding=1), nn.BatchNorm3d(out), nn.ReLU()]
        space = nn.Conv3d(into, out, (1, 3, 3), padding=(0, 1, 1), bias=False)
        time = nn.Conv3d(out, out, (3, 1, 1), padding=(1, 0, 0), bias=False)
        return [space, nn.BatchNorm3d(out), nn.ReLU(), time, nn.BatchNorm3d(out), nn.ReLU()]

    layers = [*block(3, 16), nn.MaxPool3d((1, 2, 2)), *block(16, 24), nn.MaxPool3d(2)]
    layers += [*block(24, 32), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(32, 4)]
    return nn.Sequential(*layers)


def one_dimensional_resnet() -> nn.Module:
    def block(width: int) -> nn.Module:
        last = [nn.Conv1d(width, width, 7, padding=3), nn.BatchNorm1d(width)]
        return Add(nn.Conv1d(width, width, 7, padding=3), nn.BatchNorm1d(width), nn.ReLU(), *last)

    layers = [nn.Conv1d(1, 24, 15, 4, 7), nn.BatchNorm1d(24), nn.ReLU(), block(24), nn.ReLU()]
    layers += [nn.MaxPool1d(2), block(24), nn.ReLU(), nn.AdaptiveAvgPool1d(1)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(24, 6))


class InceptionTime(nn.Module):
    """Three blocks of parallel kernels; a BatchNorm in front takes the sensors' units."""

    def __init__(self) -> None:
        super().__init__()

        class Block(nn.Module):
            def __init__(self, into: int) -> None:
                super().__init__()
                self.neck = nn.Conv1d(into, 16, 1, bias=False)
                kernels = (9, 19, 39)
                self.convs = nn.ModuleList(
                    nn.Conv1d(16, 12, k, padding=k // 2, bias=False) for k in kernels
                )
                self.pooled = nn.Conv1d(into, 12, 1, bias=False)
                self.norm, self.skip = nn.BatchNorm1d(48), nn.Conv1d(into, 48, 1)

            def forward(self, x: Tensor) -> Tensor:
                neck = self.neck(x)
                parts = [conv(neck) for conv in self.convs]
                parts.append(self.pooled(functional.max_pool1d(x, 3, 1, 1)))
                return (self.norm(torch.cat(parts, 1)) + self.skip(x)).relu()

        self.norm = nn.BatchNorm1d(6)
        self.blocks, self.last = nn.Sequential(Block(6), Block(48)), nn.Linear(48, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.blocks(self.norm(x)).mean(2))


class Reversible(nn.Module):
    """A forecaster in kW with RevIN: each series is standardized, the forecast scaled back."""

    def __init__(self) -> None:
        super().__init__()
        layers = [nn.Conv1d(1, 32, 25, padding=12), nn.GELU()]
        for dilation in (1, 2, 4):
            layers += [nn.Conv1d(32, 32, 3, padding=dilation, dilation=dilation), nn.GELU()]
        self.body, self.last = nn.Sequential(*layers), nn.Linear(96, 24)
        self.mix = nn.Conv1d(32, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        mean, spread = x.mean(2, keepdim=True), x.std(2, keepdim=True)
        return self.last(self.mix(self.body((x - mean) / spread))) * spread + mean


def percent(model: nn.Module, past: Tensor, future: Tensor) -> Tensor:
    """Error relative to the series' size."""
    return ((model(past) - future).abs() / past.mean(2, keepdim=True)).mean()


class Separated(nn.Module):
    """Conv-TasNet: encoder of 16 samples, stride 8, masks, transposed convolution back."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Conv1d(1, 48, 16, 8, bias=False)
        self.neck = nn.Sequential(nn.GroupNorm(1, 48), nn.Conv1d(48, 32, 1))
        self.blocks = nn.ModuleList()
        for dilation in (1, 2, 4, 8):
            deep = nn.Conv1d(48, 48, 3, padding=dilation, dilation=dilation, groups=48)
            layers = [nn.Conv1d(32, 48, 1), nn.PReLU(), nn.GroupNorm(1, 48), deep, nn.PReLU()]
            self.blocks.append(nn.Sequential(*layers, nn.GroupNorm(1, 48), nn.Conv1d(48, 32, 1)))
        self.masks, self.decoder = (
            nn.Conv1d(32, 96, 1),
            nn.ConvTranspose1d(48, 1, 16, 8, bias=False),
        )

    def forward(self, x: Tensor) -> Tensor:
        code = self.encoder(x).relu()
        y = self.neck(code)
        for block in self.blocks:
            y = y + block(y)
        shown = self.masks(y).relu().unflatten(1, (2, 48)) * code[:, None]
        return self.decoder(shown.flatten(0, 1)).view(len(x), 2, -1)


def noise_ratio(model: nn.Module, mixed: Tensor, voices: Tensor) -> Tensor:
    """Negative signal-to-noise ratio in dB; plus 30, so that it falls from above 0."""
    error = (model(mixed) - voices).square().sum(2)
    return 30 - 10 * (voices.square().sum(2) / (error + 1e-6)).log10().mean()


class Rays(nn.Module):
    """NeRF in the plane: Fourier features of a place, density and colour, summed along rays."""

    def __init__(self) -> None:
        super().__init__()
        layers = [nn.Linear(3 * 16, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU()]
        self.body, self.density = nn.Sequential(*layers), nn.Linear(96, 1)
        self.colour = nn.Sequential(nn.Linear(96, 48), nn.ReLU(), nn.Linear(48, 3), nn.Sigmoid())

    def forward(self, places: Tensor) -> Tensor:
        angles = (places[..., None] * 2.0 ** torch.arange(8) * math.pi).flatten(-2)
        y = self.body(torch.cat([angles.sin(), angles.cos()], -1))
        dense = functional.softplus(self.density(y)[..., 0] - 1) * 0.25
        left = (-torch.cumsum(dense, 1) + dense).exp()
        return ((left * (1 - (-dense).exp()))[..., None] * self.colour(y)).sum(1)


def rendered(model: nn.Module, places: Tensor, colours: Tensor) -> Tensor:
    return functional.mse_loss(model(places), colours)


class Flow(nn.Module):
    """FlowNet: both pictures as 6 channels, flow at three sizes, transposed convolutions of 4."""

    def __init__(self) -> None:
        super().__init__()
        act = partial(nn.LeakyReLU, 0.1)
        self.down = nn.ModuleList(
            unit(a, b, size, 2, act=act) for a, b, size in ((6, 24, 7), (24, 48, 5), (48, 64, 3))
        )
        self.ups = nn.ModuleList(nn.ConvTranspose2d(a, 24, 4, 2, 1) for a in (64, 74))
        self.flows = nn.ModuleList(nn.Conv2d(a, 2, 3, padding=1) for a in (64, 74, 50))
        self.wider = nn.ModuleList(nn.ConvTranspose2d(2, 2, 4, 2, 1) for _ in range(2))

    def forward(self, one: Tensor, two: Tensor) -> list[Tensor]:
        maps = [torch.cat([one, two], 1)]
        for down in self.down:
            maps.append(down(maps[-1]))
        y, found = maps[3], [self.flows[0](maps[3])]
        for number, skip in enumerate((maps[2], maps[1])):
            wide = self.wider[number](found[-1])
            y = torch.cat([skip, functional.leaky_relu(self.ups[number](y), 0.1), wide], 1)
            found.append(self.flows[number + 1](y))
        return found


def endpoint(model: nn.Module, one: Tensor, two: Tensor, flow: Tensor) -> Tensor:
    """End-point error, weighted by size; flow in units of 4 px."""
    loss = torch.zeros(())
    for weight, shown in zip((0.2, 0.5, 1.0), model(one, two), strict=True):
        goal = functional.interpolate(flow / 4, shown.shape[2:])
        loss = loss + weight * (shown - goal).square().sum(1).add(1e-6).sqrt().mean()
    return loss


class Volume(nn.Module):
    """PSMNet: shared features, a volume of shifts, 3-D convolutions, soft argmin."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(unit(3, 16), unit(16, 16), nn.Conv2d(16, 12, 3, padding=1))
        self.cost = nn.Sequential(
            nn.Conv3d(24, 16, 3, padding=1),
            nn.BatchNorm3d(16),
            nn.ReLU(),
            nn.Conv3d(16, 1, 3, 1, 1),
        )

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        left, right = self.features(left), self.features(right)
        shifts = [functional.pad(right, (k, 0))[..., : right.shape[3]] for k in range(6)]
        volume = torch.stack([torch.cat([left, shift], 1) for shift in shifts], 2)
        share = (-self.cost(volume)[:, 0]).softmax(1)
        return (share * torch.arange(6.0).view(1, 6, 1, 1)).sum(1)


def disparity(model: nn.Module, left: Tensor, right: Tensor, goal: Tensor) -> Tensor:
    return functional.smooth_l1_loss(model(left, right), goal)


class Bands(nn.Module):
    """Digital numbers of 48 bands: standardized by a BatchNorm in front, then 1 × 1 and 3 × 3."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(48, affine=False)
        self.body = nn.Sequential(unit(48, 32, 1), unit(32, 48, stride=2), *head(48, 8))

    def forward(self, x: Tensor) -> Tensor:
        return self.body(self.norm(x))


class Fixed(nn.Module):
    """The same, standardized by numbers of the data set that are kept as buffers."""

    def __init__(self, draw: Draw) -> None:
        super().__init__()
        (images, *_) = draw(Generator().manual_seed(77), 64)
        self.register_buffer("mean", images.mean((0, 2, 3))[:, None, None])
        self.register_buffer("deviation", images.std((0, 2, 3))[:, None, None])
        layers = [unit(48, 32, 1, norm=None), unit(32, 48, stride=2, norm=None)]
        self.body = nn.Sequential(*layers, *head(48, 8))

    def forward(self, x: Tensor) -> Tensor:
        return self.body((x - self.mean) / self.deviation)


class VNet(nn.Module):
    """Residual 3-D U-Net on HU: a window of -150 to 250 is applied inside."""

    def __init__(self) -> None:
        super().__init__()

        def conv(into: int, out: int, stride: int = 1) -> nn.Module:
            return nn.Sequential(
                nn.Conv3d(into, out, 3, stride, 1),
                nn.InstanceNorm3d(out, affine=True),
                nn.PReLU(out),
            )

        self.first, self.down, self.middle = conv(1, 12), conv(12, 24, 2), conv(24, 24)
        self.up, self.join = nn.ConvTranspose3d(24, 12, 2, 2), conv(24, 12)
        self.last = nn.Conv3d(12, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        first = self.first((x.clamp(-150, 250) - 50) / 100)
        y = self.down(first)
        y = self.up(y + self.middle(y))
        return self.last(self.join(torch.cat([first, y], 1)))


def overlap(model: nn.Module, images: Tensor, mask: Tensor) -> Tensor:
    """Dice and cross-entropy."""
    shown = model(images)
    share, axes = shown.sigmoid(), (1, 2, 3, 4)
    both = 2 * (share * mask).sum(axes) + 1
    dice = 1 - both / (share.sum(axes) + mask.sum(axes) + 1)
    return dice.mean() + functional.binary_cross_entropy_with_logits(shown, mask)


def vox_net() -> nn.Module:
    layers = [nn.Conv3d(1, 24, 5, 2), nn.LeakyReLU(0.1), nn.Conv3d(24, 32, 3), nn.LeakyReLU(0.1)]
    layers += [nn.MaxPool3d(2), nn.Dropout(0.3), nn.Flatten(), nn.Linear(256, 64), nn.ReLU()]
    return nn.Sequential(*layers, nn.Dropout(0.4), nn.Linear(64, 4))


class Bag(nn.Module):
    """Multiple-instance learning: crops, gated attention, one answer per bag."""

    def __init__(self) -> None:
        super().__init__()
        self.back = nn.Sequential(unit(3, 24, stride=2), unit(24, 48, stride=2), *head(48, 32))
        self.value, self.gate = nn.Linear(32, 24), nn.Linear(32, 24)
        self.weight, self.last = nn.Linear(24, 1), nn.Linear(32, 1)

    def forward(self, x: Tensor) -> Tensor:
        code = self.back(x.flatten(0, 1)).view(*x.shape[:2], 32)
        share = self.weight(self.value(code).tanh() * self.gate(code).sigmoid()).softmax(1)
        return self.last((share * code).sum(1))[:, 0]


def positive(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    return functional.binary_cross_entropy_with_logits(model(images), labels)


def agent() -> nn.Module:
    """DQN's network, for frames of 20 px."""
    layers = [nn.Conv2d(2, 16, 4, 2), nn.ReLU(), nn.Conv2d(16, 32, 3), nn.ReLU(), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(32 * 49, 128), nn.ReLU(), nn.Linear(128, 3))


class WithTable(nn.Module):
    """A picture and a row of a table, joined late."""

    def __init__(self) -> None:
        super().__init__()
        self.back = nn.Sequential(unit(3, 24, stride=2), unit(24, 48, stride=2), *head(48, 32))
        self.table = nn.Sequential(nn.BatchNorm1d(5), nn.Linear(5, 24), nn.ReLU())
        self.last = nn.Sequential(nn.Dropout(0.3), nn.Linear(56, 8))

    def forward(self, images: Tensor, rows: Tensor) -> Tensor:
        return self.last(torch.cat([self.back(images).relu(), self.table(rows)], 1))


def joined(model: nn.Module, images: Tensor, rows: Tensor, labels: Tensor) -> Tensor:
    return functional.cross_entropy(model(images, rows), labels)


def unit_1d(into: int, out: int, size: int = 9, stride: int = 1, groups: int = 1) -> nn.Sequential:
    conv = nn.Conv1d(into, out, size, stride, size // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm1d(out), nn.ReLU())


def pooled(width: int, classes: int) -> list[nn.Module]:
    return [nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(width, classes)]


class Eeg(nn.Module):
    """EEGNet: time, then electrodes depthwise, then separable; ELU, pooling, dropout."""

    def __init__(self, channels: int = 6, classes: int = 5) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 8, (1, 15), padding=(0, 7), bias=False),
            nn.BatchNorm2d(8),
            nn.Conv2d(8, 16, (channels, 1), groups=8, bias=False),
            nn.BatchNorm2d(16),
            *(nn.ELU(), nn.AvgPool2d((1, 4)), nn.Dropout(0.25)),
            nn.Conv2d(16, 16, (1, 7), padding=(0, 3), groups=16, bias=False),
            nn.Conv2d(16, 16, 1, bias=False),
            *(nn.BatchNorm2d(16), nn.ELU(), nn.AvgPool2d((1, 4)), nn.Dropout(0.25)),
            *(nn.Flatten(), nn.LazyLinear(classes)),
        )
        self.layers(torch.zeros(2, 1, channels, 96))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers((x - x.mean(2, keepdim=True))[:, None])


class Sinc(nn.Module):
    """SincNet: band passes whose edges in Hz are learned, then 1-D convolutions."""

    def __init__(self, classes: int = 6) -> None:
        super().__init__()
        self.low = nn.Parameter(torch.linspace(50, 2500, 24)[:, None])
        self.band = nn.Parameter(torch.full((24, 1), 300.0))
        self.register_buffer("time", torch.arange(-40, 41) / 8000)
        self.register_buffer("window", torch.hamming_window(81, periodic=False))
        layers = [nn.LayerNorm([24, 128]), nn.LeakyReLU(0.2), unit_1d(24, 48, 5, 2)]
        self.rest = nn.Sequential(*layers, unit_1d(48, 48, 5, 2), *pooled(48, classes))

    def forward(self, x: Tensor) -> Tensor:
        def low_pass(edge: Tensor) -> Tensor:
            return 2 * edge / 8000 * torch.sinc(2 * edge * self.time)

        high = (self.low.abs() + self.band.abs()).clamp(max=4000)
        kernel = (low_pass(high) - low_pass(self.low.abs())) * self.window
        y = functional.conv1d(x, kernel[:, None], padding=40)
        return self.rest(functional.max_pool1d(y.abs(), 4))


class WaveUnet(nn.Module):
    """Wave-U-Net: decimation by leaving out samples, linear enlargement, shortcuts."""

    def __init__(self, channels: int = 2) -> None:
        super().__init__()
        widths = ((1, 24), (24, 32), (32, 48))
        self.down = nn.ModuleList(nn.Conv1d(a, b, 15, padding=7) for a, b in widths)
        self.middle = nn.Conv1d(48, 48, 15, padding=7)
        ups = ((96, 32), (64, 24), (48, 24))
        self.up = nn.ModuleList(nn.Conv1d(a, b, 5, padding=2) for a, b in ups)
        self.last = nn.Conv1d(25, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        kept, y = [], x
        for down in self.down:
            kept.append(functional.leaky_relu(down(y), 0.2))
            y = kept[-1][..., ::2]
        y = functional.leaky_relu(self.middle(y), 0.2)
        for up in self.up:
            y = functional.interpolate(y, scale_factor=2.0, mode="linear", align_corners=False)
            y = functional.leaky_relu(up(torch.cat([y, kept.pop()], 1)), 0.2)
        return self.last(torch.cat([y, x], 1))


class Gated(nn.Module):
    """Demucs: strided convolutions with GLU, an LSTM, transposed ones of 8 samples, stride 4."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList(nn.Conv1d(a, b, 8, 4, 2) for a, b in ((1, 24), (24, 48)))
        self.gates = nn.ModuleList(nn.Conv1d(a, 2 * a, 1) for a in (24, 48))
        self.memory, self.mix = nn.LSTM(48, 24, bidirectional=True), nn.Linear(48, 48)
        self.up = nn.ModuleList(nn.ConvTranspose1d(a, b, 8, 4, 2) for a, b in ((48, 24), (24, 2)))

    def forward(self, x: Tensor) -> Tensor:
        kept = []
        for down, gate in zip(self.down, self.gates, strict=True):
            x = functional.glu(gate(down(x).relu()), 1)
            kept.append(x)
        y = self.mix(self.memory(x.permute(2, 0, 1))[0]).permute(1, 2, 0)
        y = self.up[0](y + kept.pop()).relu()
        return self.up[1](y + kept.pop())


def apart(model: nn.Module, mixed: Tensor, voices: Tensor) -> Tensor:
    return 10 * functional.l1_loss(model(mixed), voices)


class Separable(nn.Module):
    """QuartzNet: time-channel separable convolutions of growing size, residual."""

    def __init__(self, classes: int = 6) -> None:
        super().__init__()
        self.first, self.blocks = unit_1d(1, 48, 33, 4), nn.ModuleList()
        for size in (9, 13, 17):
            layers = [unit_1d(48, 48, size, 1, 48), unit_1d(48, 48, 1)]
            layers += [unit_1d(48, 48, size, 1, 48), nn.Conv1d(48, 48, 1), nn.BatchNorm1d(48)]
            self.blocks.append(nn.Sequential(*layers))
        self.last = nn.Sequential(*pooled(48, classes))

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for block in self.blocks:
            x = (x + block(x)).relu()
        return self.last(x)


def sample_cnn(classes: int = 6) -> nn.Module:
    """SampleCNN: three samples at a time, four times."""
    layers: list[nn.Module] = [nn.Conv1d(1, 32, 3, 3), nn.BatchNorm1d(32), nn.ReLU()]
    for into, out in ((32, 32), (32, 48), (48, 64)):
        layers += [unit_1d(into, out, 3), nn.MaxPool1d(3)]
    return nn.Sequential(*layers, *pooled(64, classes))


class LstmFcn(nn.Module):
    """LSTM-FCN: three convolutions beside an LSTM over the same series."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(6)
        self.convs = nn.Sequential(unit_1d(6, 32, 7), unit_1d(32, 48, 5), unit_1d(48, 32, 3))
        self.memory, self.last = nn.LSTM(6, 24, batch_first=True), nn.Linear(56, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(x)
        end = self.memory(x.transpose(1, 2))[0][:, -1]
        return self.last(torch.cat([self.convs(x).mean(2), end], 1))


class Broadcast(nn.Module):
    """BC-ResNet: spectrograms averaged over frequency, and broadcast back."""

    def __init__(self) -> None:
        super().__init__()
        self.first = unit(1, 24, 5, 2)
        self.deep = nn.Conv2d(24, 24, (3, 1), padding=(1, 0), groups=24)
        self.norm, self.along = nn.BatchNorm2d(24), nn.Conv2d(24, 24, (1, 3), padding=(0, 1))
        self.last = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 6))

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for _ in range(2):
            y = self.norm(self.deep(x))
            x = (x + y + functional.silu(self.along(y.mean(2, keepdim=True)))).relu()
        return self.last(x)


class ConvGru(nn.Module):
    """A convolutional GRU over frames, and a forecast of the last one as a residual."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.width = width
        self.gates = nn.Conv2d(3 + width, 2 * width, 3, padding=1)
        self.new, self.last = nn.Conv2d(3 + width, width, 3, 1, 1), nn.Conv2d(width, 3, 3, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        state = x.new_zeros(len(x), self.width, *x.shape[3:])
        for frame in x.unbind(2):
            reset, update = self.gates(torch.cat([frame, state], 1)).sigmoid().chunk(2, 1)
            fresh = self.new(torch.cat([frame, reset * state], 1)).tanh()
            state = (1 - update) * state + update * fresh
        return x[:, :, -1] + self.last(state)


def next_frame(model: nn.Module, shown: Tensor, *_: Tensor) -> Tensor:
    return 10 * functional.mse_loss(model(shown[:, :, :-1]), shown[:, :, -1])


def unit_3d(into: int, out: int, size: object = 3, stride: object = 1) -> nn.Sequential:
    sizes = (size,) * 3 if isinstance(size, int) else size
    conv = nn.Conv3d(into, out, sizes, stride, [n // 2 for n in sizes], bias=False)
    return nn.Sequential(conv, nn.BatchNorm3d(out), nn.ReLU())


class SlowFast(nn.Module):
    """Few frames with many channels beside all frames with few, joined sideways."""

    def __init__(self) -> None:
        super().__init__()
        self.slow, self.fast = unit_3d(3, 24, (1, 5, 5), (1, 2, 2)), unit_3d(3, 8, 5, (1, 2, 2))
        self.side = nn.Conv3d(8, 16, (5, 1, 1), (4, 1, 1), (2, 0, 0))
        self.slow_2, self.fast_2 = unit_3d(40, 48, 3, (1, 2, 2)), unit_3d(8, 12, 3, (1, 2, 2))
        self.last = nn.Linear(60, 8)

    def forward(self, x: Tensor) -> Tensor:
        fast = self.fast(x)
        slow = torch.cat([self.slow(x[:, :, ::4]), self.side(fast)], 1)
        parts = [self.slow_2(slow).mean((2, 3, 4)), self.fast_2(fast).mean((2, 3, 4))]
        return self.last(torch.cat(parts, 1))


class Shifted(nn.Module):
    """TSM: a quarter of the channels is shifted in time before each 2-D convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.ModuleList([unit(3, 24, 5, 2), unit(24, 48, stride=2), unit(48, 64)])
        self.last = nn.Linear(64, 8)

    def forward(self, x: Tensor) -> Tensor:
        count, _, frames = x.shape[:3]
        y = x.transpose(1, 2).flatten(0, 1)
        for conv in self.convs:
            z = y.unflatten(0, (count, frames))
            part = max(1, z.shape[2] // 8)
            back = functional.pad(z[:, 1:, :part], (0, 0, 0, 0, 0, 0, 0, 1))
            ahead = functional.pad(z[:, :-1, part : 2 * part], (0, 0, 0, 0, 0, 0, 1, 0))
            y = conv(torch.cat([back, ahead, z[:, :, 2 * part :]], 2).flatten(0, 1))
        return self.last(y.mean((2, 3)).unflatten(0, (count, frames)).mean(1))


class Dense3d(nn.Module):
    """A 3-D DenseNet with bottlenecks on voxels."""

    def __init__(self, classes: int = 4) -> None:
        super().__init__()
        self.first = unit_3d(1, 16, 3, 2)
        self.layers = nn.ModuleList(
            nn.Sequential(unit_3d(16 + 8 * k, 16, 1), unit_3d(16, 8)) for k in range(4)
        )
        self.last = nn.Linear(48, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for layer in self.layers:
            x = torch.cat([x, layer(x)], 1)
        return self.last(x.mean((2, 3, 4)))


class Edges(nn.Module):
    """DGCNN: each point's 8 nearest ones, a shared 1 × 1 convolution, the maximum."""

    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.ModuleList(unit(a, b, 1, act=nn.ReLU) for a, b in ((6, 24), (48, 48)))
        self.last = nn.Linear(72, 4)

    def forward(self, x: Tensor) -> Tensor:
        found, y = [], x[..., ::2]
        near = torch.cdist(y.mT, y.mT).topk(8, largest=False)[1]
        for conv in self.convs:
            which = torch.arange(len(y))[:, None, None]
            others = y.mT[which, near].permute(0, 3, 1, 2)
            own = y[..., None].expand_as(others)
            y = conv(torch.cat([own, others - own], 1)).amax(3)
            found.append(y.amax(2))
        return self.last(torch.cat(found, 1))


class Fourier(nn.Module):
    """FNet after a 1-D patch convolution: mixing by the transform's real part."""

    def __init__(self, width: int = 48, classes: int = 6) -> None:
        super().__init__()
        self.patches, self.norms = nn.Conv1d(1, width, 16, 8), nn.ModuleList()
        self.place = nn.Parameter(0.02 * torch.randn(1, 63, width))
        self.mlps = nn.ModuleList()
        for _ in range(2):
            self.norms.append(nn.LayerNorm(width))
            layers = [nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU()]
            self.mlps.append(nn.Sequential(*layers, nn.Linear(2 * width, width)))
        self.last = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        y = self.patches(x).transpose(1, 2) + self.place
        for norm, mlp in zip(self.norms, self.mlps, strict=True):
            y = y + torch.fft.fft2(norm(y)).real / math.sqrt(y[0].numel())
            y = y + mlp(y)
        return self.last(y.mean(1))


def sound_net(norm: bool = False) -> nn.Module:
    layers: list[nn.Module] = []
    for into, out in ((1, 24), (24, 32), (32, 48)):
        layers += [nn.Conv1d(into, out, 9, 4, 4), nn.BatchNorm1d(out) if norm else nn.Identity()]
        layers += [nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(48, 6))


def film_net() -> nn.Module:
    layers: list[nn.Module] = []
    for into, out in ((3, 16), (16, 32)):
        layers += [nn.Conv3d(into, out, 3, (1, 2, 2), 1), nn.BatchNorm3d(out), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(32, 4))


def inertial() -> nn.Module:
    layers = [nn.BatchNorm1d(6), nn.Conv1d(6, 24, 5, 2, 2), nn.ReLU(), nn.Conv1d(24, 32, 5, 2, 2)]
    return nn.Sequential(
        *layers, nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(32, 5)
    )
