"""Networks of the fourth set for sounds, series, films and volumes."""

from __future__ import annotations

import math

import torch
from acceptance_classic import unit
from torch import Tensor, nn
from torch.nn import functional


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
