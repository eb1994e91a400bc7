# ruff: noqa: B007, B905, E501
"""Trainings by alder: mostly vision, and mistakes of data, input scaling, labels and normalization; then others."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision
from torch.utils.data import DataLoader, TensorDataset

import fmapboard


# ----------------------------------------------------------------------------------------------- data made in code
def _gen(seed):
    return torch.Generator().manual_seed(seed)


def _shapes(n, seed, size=24, channels=1, noise=0.15, classes=5):
    """Discs, squares, crosses, rings and bars at random places; values 0..1, (n, channels, size, size)."""
    g = _gen(seed)
    y = torch.randint(0, classes, (n,), generator=g)
    r = 4 + 4 * torch.rand(n, 1, 1, generator=g)
    cx = r + (size - 2 * r) * torch.rand(n, 1, 1, generator=g)
    cy = r + (size - 2 * r) * torch.rand(n, 1, 1, generator=g)
    ax = torch.arange(size).float()
    dx, dy = ax.view(1, 1, -1) - cx, ax.view(1, -1, 1) - cy
    rad = (dx**2 + dy**2).sqrt()
    box = (dx.abs() < r) & (dy.abs() < r)
    kinds = torch.stack(
        [
            rad < r,
            box,
            box & ((dx.abs() < 1.5) | (dy.abs() < 1.5)),
            (rad < r) & (rad > r - 2),
            (dx.abs() < r) & (dy.abs() < 1.8),
        ],
        1,
    )
    m = kinds[torch.arange(n), y].float()
    if channels == 1:
        x = 0.15 + 0.7 * m[:, None]
    else:
        back = 0.4 * torch.rand(n, channels, 1, 1, generator=g)
        fore = 0.5 + 0.5 * torch.rand(n, channels, 1, 1, generator=g)
        x = back + (fore - back) * m[:, None]
    x = (x + noise * torch.randn(x.shape, generator=g)).clamp(0, 1)
    return x, y


def _templates(n, seed, classes=8, size=16, channels=1, noise=0.6, task=99):
    """Smooth random class patterns, shifted a little, with noise; about zero mean and unit variance."""
    t = F.interpolate(
        torch.randn(classes, channels, 5, 5, generator=_gen(task)),
        size=(size, size),
        mode="bicubic",
    )
    g = _gen(seed)
    y = torch.randint(0, classes, (n,), generator=g)
    x = t[y]
    sh = torch.randint(-2, 3, (n, 2), generator=g)
    x = torch.stack([torch.roll(a, (int(s[0]), int(s[1])), (1, 2)) for a, s in zip(x, sh)])
    return x + noise * torch.randn(x.shape, generator=g), y


def _blobs(n, seed, size=32):
    """Colour images with one to three discs of class 1 or 2 on a textured ground, and the mask of classes."""
    g = _gen(seed)
    ax = torch.arange(size).float()
    x = 0.3 + 0.1 * torch.randn(n, 3, size, size, generator=g)
    m = torch.zeros(n, size, size, dtype=torch.long)
    for _ in range(3):
        r = 3 + 4 * torch.rand(n, 1, 1, generator=g)
        c = size * torch.rand(n, 2, 1, 1, generator=g)
        k = torch.randint(0, 3, (n, 1, 1), generator=g)
        on = ((ax.view(1, 1, -1) - c[:, 0]) ** 2 + (ax.view(1, -1, 1) - c[:, 1]) ** 2 < r**2) & (
            k > 0
        )
        m = torch.where(on, k, m)
    col = torch.tensor([[0.0, 0.0, 0.0], [0.4, 0.1, -0.1], [-0.1, 0.1, 0.4]])
    x = (x + col[m].permute(0, 3, 1, 2)).clamp(0, 1)
    return x, m


@torch.no_grad()
def _acc(model, x, y, batch=128):
    was = model.training
    model.eval()
    out = torch.cat([model(a) for a in x.split(batch)])
    model.train(was)
    return (out.argmax(1) == y).float().mean().item()


class _Res(nn.Module):
    def __init__(self, a, b, stride=1, norm=nn.BatchNorm2d):
        super().__init__()
        self.c1, self.n1 = nn.Conv2d(a, b, 3, stride, 1, bias=False), norm(b)
        self.c2, self.n2 = nn.Conv2d(b, b, 3, 1, 1, bias=False), norm(b)
        self.skip = (
            nn.Sequential(nn.Conv2d(a, b, 1, stride, bias=False), norm(b))
            if stride > 1 or a != b
            else nn.Identity()
        )

    def forward(self, x):
        return F.relu(self.n2(self.c2(F.relu(self.n1(self.c1(x))))) + self.skip(x))


class _Vit(nn.Module):
    def __init__(self, size, patch, ch, classes, dim=48, depth=3, heads=4, drop=0.0):
        super().__init__()
        self.patch = nn.Conv2d(ch, dim, patch, patch)
        self.pos = nn.Parameter(0.02 * torch.randn(1, (size // patch) ** 2 + 1, dim))
        self.cls = nn.Parameter(torch.zeros(1, 1, dim))
        layer = nn.TransformerEncoderLayer(
            dim, heads, 2 * dim, drop, "gelu", batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, classes)

    def forward(self, x):
        t = self.patch(x).flatten(2).transpose(1, 2)
        t = torch.cat([self.cls.expand(len(t), -1, -1), t], 1) + self.pos
        return self.head(self.norm(self.blocks(t)[:, 0]))


# ------------------------------------------------------------------------------------------------------- the pairs
def cnn_raw_bytes(run: Path, seed: int, wrong: bool) -> tuple[list[float], float]:
    """Small CNN, 24x24 grey pictures of five shapes, classification, SGD with momentum.
    MISTAKE: the images are uint8 0..255 and were only cast to float, never divided by 255 and normalized."""
    torch.manual_seed(seed)
    x, y = _shapes(900, seed + 1)
    x = (x * 255).to(torch.uint8)

    def prep(a):
        return a.float() if wrong else (a.float() / 255 - 0.25) / 0.25

    xt, yt, xv, yv = x[:700], y[:700], prep(x[700:]), y[700:]
    net = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 32, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 36, 64),
        nn.ReLU(),
        nn.Linear(64, 5),
    )
    opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    loader = DataLoader(TensorDataset(xt, yt), batch_size=32, shuffle=True)
    board = fmapboard.watch(net, run, every=5, optimizer=opt)
    losses = []
    for epoch in range(7):
        for a, b in loader:
            opt.zero_grad()
            loss = F.cross_entropy(net(prep(a)), b)
            loss.backward()
            opt.step()
            losses.append(loss.item())
    board.close()
    return losses, _acc(net, xv, yv)


def resnet_shuffled_apart(run: Path, seed: int, wrong: bool) -> tuple[list[float], float]:
    """A small ResNet with batch norm, colour pictures of four shapes, classification, AdamW.
    MISTAKE: images and labels were shuffled by two different permutations, so that they no longer belong together."""
    torch.manual_seed(seed)
    x, y = _shapes(800, seed + 1, channels=3, classes=4)
    xv, yv = _shapes(200, seed + 2, channels=3, classes=4)
    p = torch.randperm(len(x))
    x, y = x[p], y[torch.randperm(len(x)) if wrong else p]
    net = nn.Sequential(
        nn.Conv2d(3, 12, 3, 2, 1, bias=False),
        nn.BatchNorm2d(12),
        nn.ReLU(),
        _Res(12, 12),
        _Res(12, 24, 2),
        _Res(24, 48, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(48, 4),
    )
    opt = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=1e-2)
    board = fmapboard.watch(net, run, every=5, optimizer=opt)
    losses = []
    for step in range(120):
        i = torch.randint(0, len(x), (32,))
        with board.step(step):
            loss = F.cross_entropy(net(x[i] - 0.4), y[i])
            board.loss(loss, y[i])
            opt.zero_grad()
            loss.backward()
            opt.step()
        losses.append(loss.item())
    board.close()
    return losses, _acc(net, xv - 0.4, yv)


class _UNet(nn.Module):
    def __init__(self, cin, cout, w=12):
        super().__init__()

        def two(a, b):
            return nn.Sequential(
                nn.Conv2d(a, b, 3, padding=1),
                nn.BatchNorm2d(b),
                nn.ReLU(),
                nn.Conv2d(b, b, 3, padding=1),
                nn.BatchNorm2d(b),
                nn.ReLU(),
            )

        self.d1, self.d2, self.mid = two(cin, w), two(w, 2 * w), two(2 * w, 4 * w)
        self.up2, self.u2 = nn.ConvTranspose2d(4 * w, 2 * w, 2, 2), two(4 * w, 2 * w)
        self.up1, self.u1 = nn.ConvTranspose2d(2 * w, w, 2, 2), two(2 * w, w)
        self.out = nn.Conv2d(w, cout, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(F.max_pool2d(a, 2))
        c = self.mid(F.max_pool2d(b, 2))
        b = self.u2(torch.cat([self.up2(c), b], 1))
        return self.out(self.u1(torch.cat([self.up1(b), a], 1)))


def _miou(logits, m, classes):
    p = logits.argmax(1)
    ious = [
        ((p == k) & (m == k)).sum().item() / max(1, ((p == k) | (m == k)).sum().item())
        for k in range(1, classes)
    ]
    return float(np.mean(ious))


def unet_mask_totensor(run: Path, seed: int, wrong: bool) -> tuple[list[float], float]:
    """U-Net with batch norm, 32x32 colour images with discs of two kinds, segmentation in three classes, Adam.
    MISTAKE: the masks went through the images' ToTensor (which divides by 255) before .long(): every label became 0."""
    torch.manual_seed(seed)
    x, m = _blobs(260, seed + 5)
    if wrong:
        to_tensor = torchvision.transforms.ToTensor()
        m_train = torch.stack([to_tensor(a.to(torch.uint8).numpy())[0] for a in m]).long()
    else:
        m_train = m
    net = _UNet(3, 3)
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    board = fmapboard.watch(net, run, every=4, optimizer=opt)
    losses = []
    for step in range(80):
        i = torch.randint(0, 200, (10,))
        loss = F.cross_entropy(net(x[i]), m_train[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    board.close()
    net.eval()
    with torch.no_grad():
        return losses, _miou(net(x[200:]), m[200:], 3)


def vit_test_not_normalized(run: Path, seed: int, wrong: bool) -> tuple[list[float], float]:
    """ViT of three blocks, 24x24 colour textures of six classes, classification, AdamW with warm-up.
    MISTAKE: training images are normalized with mean and std of the channels, the test images are fed as 0..255."""
    torch.manual_seed(seed)
    x, y = _templates(1100, seed + 1, classes=6, size=24, channels=3, noise=0.5)
    x = (x * 40 + 120).clamp(0, 255)
    xt, yt, xv, yv = x[:900], y[:900], x[900:], y[900:]
    mean, std = xt.mean((0, 2, 3), keepdim=True), xt.std((0, 2, 3), keepdim=True)
    xt = (xt - mean) / std
    if not wrong:
        xv = (xv - mean) / std
    net = _Vit(24, 6, 3, 6)
    opt = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=0.05)
    sched = torch.optim.lr_scheduler.LambdaLR(
        opt, lambda s: min(1.0, (s + 1) / 20) * (0.5 + 0.5 * math.cos(math.pi * s / 150))
    )
    board = fmapboard.watch(net, run, every=5, optimizer=opt)
    losses = []
    for step in range(150):
        i = torch.randint(0, len(xt), (32,))
        loss = F.cross_entropy(net(xt[i]), yt[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        losses.append(loss.item())
    board.close()
    return losses, _acc(net, xv, yv)


def price_targets_raw(run: Path, seed: int, wrong: bool) -> tuple[list[float], float]:
    """MLP on a table of twelve standardized features, regression of a house price, Adam, mean squared error.
    MISTAKE: the target stays in money (about 300000) and is not standardized; nothing moves far enough."""
    torch.manual_seed(seed)
    g = _gen(seed + 3)
    x = torch.randn(1400, 12, generator=g)
    w = torch.randn(12, generator=g)
    price = (
        300000
        + 60000 * (x @ w / 3 + torch.sin(2 * x[:, 0]) * x[:, 1])
        + 5000 * torch.randn(1400, generator=g)
    )
    mu, sd = (0.0, 1.0) if wrong else (price[:1000].mean(), price[:1000].std())
    t = ((price - mu) / sd).unsqueeze(1)
    net = nn.Sequential(
        nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)
    )
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    board = fmapboard.watch(net, run, every=10, optimizer=opt)
    losses = []
    for epoch in range(10):
        for i in torch.randperm(1000).split(32):
            pred = net(x[i])
            loss = F.mse_loss(pred, t[i])
            board.loss(loss)
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
    board.close()
    with torch.no_grad():
        pred = net(x[1000:])[:, 0] * sd + mu
    return losses, 1 - ((pred - price[1000:]) ** 2).mean().item() / price[1000:].var().item()


def table_features_unscaled(run: Path, seed: int, wrong: bool) -> tuple[list[float], float]:
    """MLP on a table of ten columns of very different units (a rate, an age, an income, a count), two classes, SGD.
    MISTAKE: the columns are fed as they are, without a StandardScaler."""
    torch.manual_seed(seed)
    g = _gen(seed + 4)
    z = torch.randn(1500, 10, generator=g)
    y = (
        (
            z[:, 0] * z[:, 1]
            + z[:, 2]
            - z[:, 3]
            + 0.5 * z[:, 4]
            + 0.3 * torch.randn(1500, generator=g)
        )
        > 0
    ).long()
    scale = torch.tensor([0.02, 0.1, 12.0, 1.0, 15000.0, 300.0, 0.5, 9000.0, 40.0, 1.0])
    x = z * scale + torch.tensor([0.05, 0.5, 40.0, 3.0, 50000.0, 800.0, 1.0, 20000.0, 100.0, 0.0])
    if not wrong:
        x = (x - x[:1100].mean(0)) / x[:1100].std(0)
    net = nn.Sequential(
        nn.Linear(10, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 2)
    )
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    loader = DataLoader(
        TensorDataset(x[:1100], y[:1100]), batch_size=32, shuffle=True, drop_last=True
    )
    board = fmapboard.watch(net, run, every=10, optimizer=opt)
    losses = []
    for epoch in range(8):
        for a, b in loader:
            loss = F.cross_entropy(net(a), b)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            losses.append(loss.item())
    board.close()
    return losses, _acc(net, x[1100:], y[1100:])


def channels_by_reshape(run: Path, seed: int, wrong: bool) -> tuple[list[float], float]:
    """CNN on colour pictures stored as height x width x channel (as from PIL or cv2), five shapes, Adam.
    MISTAKE: reshape to channel-first in place of permute, in the training data set; the test images were permuted properly."""
    torch.manual_seed(seed)
    x, y = _shapes(1000, seed + 1, channels=3, noise=0.1)
    hwc = x.permute(0, 2, 3, 1).contiguous()
    xv, yv = hwc[800:].permute(0, 3, 1, 2), y[800:]
    net = nn.Sequential(
        nn.Conv2d(3, 16, 5, 2, 2),
        nn.GroupNorm(4, 16),
        nn.GELU(),
        nn.Conv2d(16, 32, 3, 2, 1),
        nn.GroupNorm(4, 32),
        nn.GELU(),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.GELU(),
        nn.AdaptiveMaxPool2d(2),
        nn.Flatten(),
        nn.Linear(256, 5),
    )
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    board = fmapboard.watch(net, run, every=6, optimizer=opt)
    losses = []
    for epoch in range(6):
        for i in torch.randperm(800).split(32):
            a = hwc[i].reshape(-1, 3, 24, 24) if wrong else hwc[i].permute(0, 3, 1, 2)
            loss = F.cross_entropy(net((a - 0.4) / 0.3), y[i])
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
    board.close()
    return losses, _acc(net, (xv - 0.4) / 0.3, yv)


def box_pixels_on_sigmoid(run: Path, seed: int, wrong: bool) -> tuple[list[float], float]:
    """Detection-like: a CNN predicts class and box (cx, cy, w, h through a sigmoid) of the one object in a 32x32 image.
    MISTAKE: the boxes are in pixels, while the head gives 0..1: the box loss never comes down and drowns the class loss."""
    torch.manual_seed(seed)
    g = _gen(seed + 8)
    n, s = 900, 32
    wh = 8 + torch.randint(0, 12, (n, 2), generator=g).float()
    c = wh / 2 + (s - wh) * torch.rand(n, 2, generator=g)
    cls = torch.randint(0, 3, (n,), generator=g)
    ax = torch.arange(s).float()
    ins = ((ax.view(1, 1, -1) - c[:, :1, None]).abs() < wh[:, :1, None] / 2) & (
        (ax.view(1, -1, 1) - c[:, 1:, None]).abs() < wh[:, 1:, None] / 2
    )
    x = 0.2 + 0.1 * torch.randn(n, 3, s, s, generator=g)
    x[torch.arange(n), cls] += 0.5 * ins.float()
    box = torch.cat([c, wh], 1)
    target = box if wrong else box / s

    class Det(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv2d(3, 16, 3, 2, 1),
                nn.BatchNorm2d(16),
                nn.ReLU(),
                nn.Conv2d(16, 32, 3, 2, 1),
                nn.BatchNorm2d(32),
                nn.ReLU(),
                nn.Conv2d(32, 32, 3, 2, 1),
                nn.BatchNorm2d(32),
                nn.ReLU(),
                nn.Flatten(),
                nn.Linear(512, 96),
                nn.ReLU(),
            )
            self.box, self.cls = nn.Linear(96, 4), nn.Linear(96, 3)

        def forward(self, a):
            h = self.body(a)
            return torch.sigmoid(self.box(h)), self.cls(h)

    net = Det()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    board = fmapboard.watch(net, run, every=5, optimizer=opt)
    losses = []
    for step in range(180):
        i = torch.randint(0, 750, (32,))
        b, k = net(x[i])
        loss = 5 * F.smooth_l1_loss(b, target[i], beta=0.1) + F.cross_entropy(k, cls[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    board.close()
    net.eval()
    with torch.no_grad():
        b, _ = net(x[750:])
    b, t = (
        torchvision.ops.box_convert(b * s, "cxcywh", "xyxy"),
        torchvision.ops.box_convert(box[750:], "cxcywh", "xyxy"),
    )
    return losses, torchvision.ops.box_iou(b, t).diagonal().mean().item()


def flip_the_arrows(run: Path, seed: int, wrong: bool) -> tuple[list[float], float]:
    """Small CNN, pictures of arrows that point left, right, up or down, classification, SGD with Nesterov.
    MISTAKE: random horizontal and vertical flips as augmentation, which turn one class into another and keep the label."""
    torch.manual_seed(seed)

    def arrows(n, s):
        g = _gen(s)
        y = torch.randint(0, 4, (n,), generator=g)
        ax = torch.arange(20).float()
        cx, cy = [7 + 6 * torch.rand(n, 1, 1, generator=g) for _ in range(2)]
        dx, dy = ax.view(1, 1, -1) - cx, ax.view(1, -1, 1) - cy
        a = ((dy.abs() < 1) & (dx.abs() < 6)) | ((dx > 0) & (dx < 6) & (dy.abs() < (6 - dx)))
        im = a.float()
        im = torch.stack([torch.rot90(i, int(k)) for i, k in zip(im, y)])
        return (im + 0.3 * torch.randn(im.shape, generator=g)).unsqueeze(1), y

    x, y = arrows(700, seed + 1)
    xv, yv = arrows(200, seed + 2)
    aug = (
        torchvision.transforms.Compose(
            [
                torchvision.transforms.RandomHorizontalFlip(),
                torchvision.transforms.RandomVerticalFlip(),
            ]
        )
        if wrong
        else nn.Identity()
    )
    net = nn.Sequential(
        nn.Conv2d(1, 16, 5, padding=2),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(32 * 25, 4),
    )
    opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9, nesterov=True, weight_decay=5e-4)
    board = fmapboard.watch(net, run, every=5, optimizer=opt)
    losses = []
    for epoch in range(6):
        for i in torch.randperm(700).split(32):
            a = torch.stack([aug(im) for im in x[i]])
            loss = F.cross_entropy(net(a), y[i])
            board.loss(loss, y[i])
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
    board.close()
    return losses, _acc(net, xv, yv)


def count_broadcast(run: Path, seed: int, wrong: bool) -> tuple[list[float], float]:
    """CNN that counts: how much of a 24x24 picture is covered by bright spots, regression, Adam, mean squared error.
    MISTAKE: the output is (N, 1) and the target (N,), so that mse_loss broadcasts to N x N and the mean is learnt."""
    torch.manual_seed(seed)
    g = _gen(seed + 2)
    m = F.avg_pool2d(torch.randn(900, 1, 26, 26, generator=g), 3, 1) + 0.35 * torch.randn(
        900, 1, 1, 1, generator=g
    )
    x = (m > 0.3).float() + 0.2 * torch.randn(m.shape, generator=g)
    y = (m > 0.3).float().mean((1, 2, 3)) * 4 - 1
    net = nn.Sequential(
        nn.Conv2d(1, 8, 3, 2, 1),
        nn.LeakyReLU(0.1),
        nn.Conv2d(8, 16, 3, 2, 1),
        nn.LeakyReLU(0.1),
        nn.Flatten(),
        nn.Linear(576, 32),
        nn.LeakyReLU(0.1),
        nn.Linear(32, 1),
    )
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    loader = DataLoader(TensorDataset(x[:700], y[:700]), batch_size=20, shuffle=True)
    board = fmapboard.watch(net, run, every=10, optimizer=opt)
    losses = []
    for epoch in range(6):
        for a, b in loader:
            opt.zero_grad()
            out = net(a)
            loss = F.mse_loss(out, b if wrong else b.unsqueeze(1))
            loss.backward()
            opt.step()
            losses.append(loss.item())
    board.close()
    with torch.no_grad():
        return losses, 1 - F.mse_loss(net(x[700:])[:, 0], y[700:]).item() / y[700:].var().item()


def softmax_twice(run: Path, seed: int, wrong: bool) -> tuple[list[float], float]:
    """LeNet-like CNN with tanh, 16x16 patterns of ten classes, classification, plain SGD.
    MISTAKE: nn.Softmax as the last layer and CrossEntropyLoss on top of it."""
    torch.manual_seed(seed)
    x, y = _templates(1000, seed + 1, classes=10, noise=0.5)
    layers = [
        nn.Conv2d(1, 8, 5),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Conv2d(8, 16, 3),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(64, 48),
        nn.Tanh(),
        nn.Linear(48, 10),
    ]
    net = nn.Sequential(*layers, nn.Softmax(dim=1)) if wrong else nn.Sequential(*layers)
    criterion = nn.CrossEntropyLoss()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    board = fmapboard.watch(net, run, every=10, optimizer=opt)
    losses = []
    for epoch in range(8):
        for i in torch.randperm(800).split(32):
            opt.zero_grad()
            loss = criterion(net(x[i]), y[i])
            board.loss(loss, y[i])
            loss.backward()
            opt.step()
            losses.append(loss.item())
    board.close()
    return losses, _acc(net, x[800:], y[800:])


def sorted_not_shuffled(run: Path, seed: int, wrong: bool) -> tuple[list[float], float]:
    """CNN with batch norm, colour textures of six classes read folder by folder, classification, SGD with momentum.
    MISTAKE: shuffle=False: whole batches of one class, one class after the other."""
    torch.manual_seed(seed)
    x, y = _templates(768, seed + 1, classes=6, channels=3)
    xv, yv = _templates(200, seed + 2, classes=6, channels=3)
    order = y.argsort()
    ds = TensorDataset(x[order], y[order])
    net = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 24, 3, padding=1, bias=False),
        nn.BatchNorm2d(24),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(384, 6),
    )
    opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    board = fmapboard.watch(net, run, every=6, optimizer=opt)
    losses, step = [], 0
    for epoch in range(5):
        for a, b in DataLoader(ds, batch_size=24, shuffle=not wrong):
            with board.step(step):
                loss = F.cross_entropy(net(a), b)
                board.loss(loss, b)
                opt.zero_grad()
                loss.backward()
                opt.step()
            losses.append(loss.item())
            step += 1
    board.close()
    return losses, _acc(net, xv, yv)


def always_the_first_batch(run: Path, seed: int, wrong: bool) -> tuple[list[float], float]:
    """Wide MLP on flattened 16x16 patterns of eight classes, with dropout, RMSprop.
    MISTAKE: next(iter(loader)) in the loop with a loader that does not shuffle: always the same 16 samples."""
    torch.manual_seed(seed)
    x, y = _templates(1000, seed + 1, noise=1.2)
    loader = DataLoader(TensorDataset(x[:800], y[:800]), batch_size=16)
    net = nn.Sequential(
        nn.Flatten(),
        nn.Linear(256, 128),
        nn.ReLU(),
        nn.Dropout(0.3),
        nn.Linear(128, 64),
        nn.ReLU(),
        nn.Dropout(0.3),
        nn.Linear(64, 8),
    )
    opt = torch.optim.RMSprop(net.parameters(), lr=1e-3)
    board = fmapboard.watch(net, run, every=5, optimizer=opt)
    losses = []
    it = iter(loader)
    for step in range(150):
        if wrong:
            a, b = next(iter(loader))
        else:
            try:
                a, b = next(it)
            except StopIteration:
                it = iter(loader)
                a, b = next(it)
        loss = F.cross_entropy(net(a), b)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    board.close()
    return losses, _acc(net, x[800:], y[800:])


def head_replaced_after_optimizer(run: Path, seed: int, wrong: bool) -> tuple[list[float], float]:
    """Transfer: a CNN trained shortly on six textures, its body frozen, a new head for four others, Adam.
    MISTAKE: the optimizer was made before model.fc was replaced, so that it holds the old head."""
    torch.manual_seed(seed)
    x0, y0 = _templates(600, seed + 1, classes=6, channels=3, task=5)
    x, y = _templates(800, seed + 2, classes=4, channels=3, task=6)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv2d(3, 16, 3, 2, 1),
                nn.BatchNorm2d(16),
                nn.ReLU(),
                nn.Conv2d(16, 32, 3, 2, 1),
                nn.BatchNorm2d(32),
                nn.ReLU(),
                nn.Flatten(),
            )
            self.fc = nn.Linear(512, 6)

        def forward(self, a):
            return self.fc(self.body(a))

    model = Net()
    pre = torch.optim.Adam(model.parameters(), lr=2e-3)
    for i in torch.randint(0, 600, (60, 32)):
        pre.zero_grad()
        F.cross_entropy(model(x0[i]), y0[i]).backward()
        pre.step()
    for p in model.body.parameters():
        p.requires_grad = False
    if wrong:
        opt = torch.optim.Adam(model.fc.parameters(), lr=2e-3)
        model.fc = nn.Linear(512, 4)
    else:
        model.fc = nn.Linear(512, 4)
        opt = torch.optim.Adam(model.fc.parameters(), lr=2e-3)
    board = fmapboard.watch(model, run, every=5, optimizer=opt)
    losses = []
    for step in range(120):
        i = torch.randint(0, 600, (32,))
        model.train()
        loss = F.cross_entropy(model(x[i]), y[i])
        board.loss(loss, y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    board.close()
    return losses, _acc(model, x[600:], y[600:])


class _TinyLM(nn.Module):
    def __init__(self, vocab, length, dim=32, depth=2):
        super().__init__()
        self.emb, self.pos = nn.Embedding(vocab, dim), nn.Embedding(length, dim)
        self.blocks = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(dim, 4, 2 * dim, 0.0, batch_first=True, norm_first=True),
            depth,
            enable_nested_tensor=False,
        )
        self.norm, self.out = nn.LayerNorm(dim), nn.Linear(dim, vocab)

    def forward(self, t):
        n = t.shape[1]
        h = self.emb(t) + self.pos(torch.arange(n))
        h = self.blocks(h, mask=torch.full((n, n), float("-inf")).triu(1), is_causal=True)
        return self.out(self.norm(h))


def _chain(n, length, seed, vocab=16):
    """A Markov chain of order one with two likely successors for each token."""
    nxt = torch.randint(0, vocab, (vocab, 2), generator=_gen(77))
    g = _gen(seed)
    t = torch.randint(0, vocab, (n, 1), generator=g)
    for _ in range(length - 1):
        k = (torch.rand(n, generator=g) < 0.15).long()
        t = torch.cat([t, nxt[t[:, -1], k][:, None]], 1)
    return t


def lm_targets_not_shifted(run: Path, seed: int, wrong: bool) -> tuple[list[float], float]:
    """Causal transformer language model on sequences of a made-up chain of 16 tokens, next-token prediction, AdamW.
    MISTAKE: the targets are the inputs themselves, not shifted by one."""
    torch.manual_seed(seed)
    t = _chain(700, 21, seed + 1)
    net = _TinyLM(16, 20)
    opt = torch.optim.AdamW(net.parameters(), lr=3e-3)
    board = fmapboard.watch(net, run, every=6, optimizer=opt)
    losses = []
    for step in range(150):
        b = t[torch.randint(0, 600, (16,))]
        inp, tgt = (b[:, :-1], b[:, :-1]) if wrong else (b[:, :-1], b[:, 1:])
        loss = F.cross_entropy(net(inp).flatten(0, 1), tgt.flatten())
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        losses.append(loss.item())
    board.close()
    net.eval()
    with torch.no_grad():
        return losses, (net(t[600:, :-1]).argmax(-1) == t[600:, 1:]).float().mean().item()


class _VAE(nn.Module):
    def __init__(self, n=256, z=8):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(n, 96), nn.ReLU(), nn.Linear(96, 2 * z))
        self.dec = nn.Sequential(nn.Linear(z, 96), nn.ReLU(), nn.Linear(96, n))

    def forward(self, x):
        mu, lv = self.enc(x).chunk(2, 1)
        return self.dec(mu + torch.randn_like(mu) * (0.5 * lv).exp()), mu, lv


def vae_kl_summed(run: Path, seed: int, wrong: bool) -> tuple[list[float], float]:
    """VAE of linear layers on flattened smooth 16x16 patterns, Adam; measured by the reconstruction.
    MISTAKE: the reconstruction is averaged over pixels and batch, the KL summed over both: the latents collapse."""
    torch.manual_seed(seed)
    x, _ = _templates(1000, seed + 1, noise=0.2)
    x = x.flatten(1)
    net = _VAE()
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    board = fmapboard.watch(net, run, every=8, optimizer=opt)
    losses = []
    for epoch in range(9):
        for i in torch.randperm(800).split(32):
            rec, mu, lv = net(x[i])
            kl = -0.5 * (1 + lv - mu**2 - lv.exp())
            loss = (
                F.mse_loss(rec, x[i]) + kl.sum()
                if wrong
                else ((rec - x[i]) ** 2).sum(1).mean() / 2 + kl.sum(1).mean()
            )
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
    board.close()
    net.eval()
    with torch.no_grad():
        v = x[800:]
        return losses, 1 - F.mse_loss(net.dec(net.enc(v).chunk(2, 1)[0]), v).item() / v.var().item()


def gan_generator_detached(run: Path, seed: int, wrong: bool) -> tuple[list[float], float]:
    """GAN of two MLPs, points on a ring shifted from the origin, Adam for each; measured by the distance of the cloud.
    MISTAKE: the generator's step, too, uses fake.detach(): no gradient reaches the generator."""
    torch.manual_seed(seed)

    def real(n):
        a = 2 * math.pi * torch.rand(n)
        return torch.stack([1.5 + a.cos(), -1 + a.sin()], 1) + 0.05 * torch.randn(n, 2)

    gen = nn.Sequential(nn.Linear(8, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 2))
    dis = nn.Sequential(
        nn.Linear(2, 48), nn.LeakyReLU(0.2), nn.Linear(48, 48), nn.LeakyReLU(0.2), nn.Linear(48, 1)
    )
    og, od = (
        torch.optim.Adam(gen.parameters(), 2e-3, betas=(0.5, 0.9)),
        torch.optim.Adam(dis.parameters(), 2e-3, betas=(0.5, 0.9)),
    )
    both = nn.ModuleDict({"generator": gen, "discriminator": dis})
    board = fmapboard.watch(both, run, every=15, optimizer=og)
    losses, bce = [], F.binary_cross_entropy_with_logits
    for step in range(300):
        with board.step(step):
            x, fake = real(48), gen(torch.randn(48, 8))
            ld = bce(dis(x), torch.ones(48, 1)) + bce(dis(fake.detach()), torch.zeros(48, 1))
            od.zero_grad()
            ld.backward()
            od.step()
            lg = bce(dis(fake.detach() if wrong else fake), torch.ones(48, 1))
            og.zero_grad()
            lg.backward()
            og.step()
        losses.append(lg.item())
    board.close()
    with torch.no_grad():
        x, f = real(500), gen(torch.randn(500, 8))
        energy = 2 * torch.cdist(x, f).mean() - torch.cdist(x, x).mean() - torch.cdist(f, f).mean()
    return losses, -energy.item()


def diffusion_other_noise(run: Path, seed: int, wrong: bool) -> tuple[list[float], float]:
    """Small diffusion model: a convolutional denoiser with the time step as an extra channel, 12x12 patterns, predicts the noise, AdamW.
    MISTAKE: the target is a second torch.randn_like, not the noise that was added."""
    torch.manual_seed(seed)
    x, _ = _templates(700, seed + 1, classes=5, size=12, noise=0.05)
    ab = torch.cumprod(1 - torch.linspace(1e-3, 0.12, 50), 0)
    net = nn.Sequential(
        nn.Conv2d(2, 24, 3, padding=1),
        nn.SiLU(),
        nn.Conv2d(24, 24, 3, padding=1),
        nn.GroupNorm(4, 24),
        nn.SiLU(),
        nn.Conv2d(24, 24, 3, padding=1),
        nn.SiLU(),
        nn.Conv2d(24, 1, 3, padding=1),
    )

    def noisy(a, t, e):
        s = ab[t].view(-1, 1, 1, 1)
        return torch.cat(
            [s.sqrt() * a + (1 - s).sqrt() * e, (t.float() / 50).view(-1, 1, 1, 1).expand_as(a)], 1
        )

    opt = torch.optim.AdamW(net.parameters(), lr=2e-3)
    board = fmapboard.watch(net, run, every=8, optimizer=opt)
    losses = []
    for step in range(160):
        a = x[torch.randint(0, 600, (24,))]
        t = torch.randint(0, 50, (24,))
        noise = torch.randn_like(a)
        pred = net(noisy(a, t, noise))
        loss = F.mse_loss(pred, torch.randn_like(a) if wrong else noise)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    board.close()
    with torch.no_grad():
        a, t = x[600:], torch.arange(100) % 50
        e = torch.randn_like(a)
        return losses, 1 - F.mse_loss(net(noisy(a, t, e)), e).item()


def triplet_swapped(run: Path, seed: int, wrong: bool) -> tuple[list[float], float]:
    """Metric learning: a small CNN embeds 16x16 patterns of eight classes on the unit sphere, triplet margin loss, Adam; nearest neighbour.
    MISTAKE: negative and positive are swapped in the call of the loss."""
    torch.manual_seed(seed)
    x, y = _templates(800, seed + 1, noise=1.0)
    net = nn.Sequential(
        nn.Conv2d(1, 12, 3, 2, 1),
        nn.ReLU(),
        nn.Conv2d(12, 24, 3, 2, 1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(384, 24),
    )
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    where = [(y[:600] == k).nonzero()[:, 0] for k in range(8)]

    def pick(k):
        return int(where[k][torch.randint(0, len(where[k]), (1,))])

    board = fmapboard.watch(net, run, every=6, optimizer=opt)
    losses = []
    for step in range(150):
        ks = torch.randint(0, 8, (16,)).tolist()
        a, p = [pick(k) for k in ks], [pick(k) for k in ks]
        n = [pick((k + 1 + int(torch.randint(0, 7, (1,)))) % 8) for k in ks]
        za, zp, zn = F.normalize(net(x[a + p + n])).chunk(3)
        loss = (
            F.triplet_margin_loss(za, zn, zp, margin=0.5)
            if wrong
            else F.triplet_margin_loss(za, zp, zn, margin=0.5)
        )
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    board.close()
    with torch.no_grad():
        z = F.normalize(net(x))
    return losses, (y[:600][(z[600:] @ z[:600].T).argmax(1)] == y[600:]).float().mean().item()


def reinforce_wrong_sign(run: Path, seed: int, wrong: bool) -> tuple[list[float], float]:
    """Policy gradient (REINFORCE with a baseline) in a contextual game of five actions, MLP policy, Adam; measured by the mean reward.
    MISTAKE: the sign of the objective is lost: log-probability times advantage is minimized."""
    torch.manual_seed(seed)
    w = torch.randn(10, 5, generator=_gen(31))
    policy = nn.Sequential(
        nn.Linear(10, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 5)
    )
    opt = torch.optim.Adam(policy.parameters(), lr=3e-3)
    board = fmapboard.watch(policy, run, every=10, optimizer=opt)
    losses, base = [], 0.0
    for step in range(260):
        obs = torch.randn(64, 10)
        with board.step(step):
            dist = torch.distributions.Categorical(logits=policy(obs))
            act = dist.sample()
            reward = ((obs @ w).argmax(1) == act).float() + 0.1 * torch.randn(64)
            adv = reward - base
            loss = (dist.log_prob(act) * adv).mean() - 0.001 * dist.entropy().mean()
            if not wrong:
                loss = -(dist.log_prob(act) * adv).mean() - 0.001 * dist.entropy().mean()
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
            opt.step()
        base = 0.9 * base + 0.1 * reward.mean().item()
        losses.append(loss.item())
    board.close()
    with torch.no_grad():
        obs = torch.randn(800, 10)
        return losses, (policy(obs).argmax(1) == (obs @ w).argmax(1)).float().mean().item()


def scheduler_each_batch(run: Path, seed: int, wrong: bool) -> tuple[list[float], float]:
    """Depthwise-separable CNN (MobileNet-like), colour pictures of three shapes, classification, SGD with a step schedule meant for epochs.
    MISTAKE: scheduler.step() stands inside the batch loop: the learning rate is nothing after a few batches."""
    torch.manual_seed(seed)
    x, y = _shapes(800, seed + 1, channels=3, classes=3, noise=0.08)

    def sep(a, b, s):
        return nn.Sequential(
            nn.Conv2d(a, a, 3, s, 1, groups=a, bias=False),
            nn.BatchNorm2d(a),
            nn.ReLU6(),
            nn.Conv2d(a, b, 1, bias=False),
            nn.BatchNorm2d(b),
            nn.ReLU6(),
        )

    net = nn.Sequential(
        nn.Conv2d(3, 12, 3, 2, 1, bias=False),
        nn.BatchNorm2d(12),
        nn.ReLU6(),
        sep(12, 24, 1),
        sep(24, 32, 2),
        sep(32, 48, 1),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(48, 3),
    )
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    sched = torch.optim.lr_scheduler.StepLR(opt, step_size=2, gamma=0.5)
    board = fmapboard.watch(net, run, every=6, optimizer=opt)
    losses = []
    for epoch in range(7):
        for i in torch.randperm(640).split(32):
            loss = F.cross_entropy(net((x[i] - 0.4) / 0.3), y[i])
            board.loss(loss, y[i])
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
            if wrong:
                sched.step()
        if not wrong:
            sched.step()
    board.close()
    return losses, _acc(net, (x[640:] - 0.4) / 0.3, y[640:])


def gru_batch_second(run: Path, seed: int, wrong: bool) -> tuple[list[float], float]:
    """GRU on series of 24 time steps with four channels: which of four wave forms with random phase; Adam with clipping.
    MISTAKE: batch_first=True is missing, so the GRU runs along the batch and out[:, -1] sees one time step and foreign samples."""
    torch.manual_seed(seed)
    g = _gen(seed + 9)
    n = 1000
    y = torch.randint(0, 4, (n,), generator=g)
    t = torch.arange(24).float()
    freq = torch.tensor([0.25, 0.45, 0.7, 1.0])[y].view(-1, 1, 1)
    ph = 2 * math.pi * torch.rand(n, 1, 4, generator=g)
    x = torch.sin(freq * t.view(1, -1, 1) + ph) + 0.3 * torch.randn(n, 24, 4, generator=g)

    class Rnn(nn.Module):
        def __init__(self):
            super().__init__()
            self.gru = nn.GRU(4, 32, batch_first=not wrong)
            self.fc = nn.Linear(32, 4)

        def forward(self, a):
            out, _ = self.gru(a)
            return self.fc(out[:, -1])

    net = Rnn()
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    board = fmapboard.watch(net, run, every=6, optimizer=opt)
    losses = []
    for step in range(180):
        i = torch.randint(0, 800, (24,))
        loss = F.cross_entropy(net(x[i]), y[i])
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        losses.append(loss.item())
    board.close()
    return losses, _acc(net, x[800:], y[800:], 24)


def relu_after_the_output(run: Path, seed: int, wrong: bool) -> tuple[list[float], float]:
    """1-D CNN on signals, regression of two standardized quantities (level and slope), AdamW, Huber loss.
    MISTAKE: a ReLU after the last layer, while half of the targets is negative."""
    torch.manual_seed(seed)
    g = _gen(seed + 6)
    y = torch.randn(1000, 2, generator=g)
    t = torch.linspace(-1, 1, 32).view(1, 1, -1)
    x = (
        y[:, :1, None] * torch.sin(4 * t)
        + y[:, 1:, None] * t
        + 0.5 * torch.randn(1000, 1, 32, generator=g)
    )
    net = nn.Sequential(
        nn.Conv1d(1, 16, 5, padding=2),
        nn.ReLU(),
        nn.Conv1d(16, 16, 5, 2, 2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(256, 48),
        nn.ReLU(),
        nn.Linear(48, 2),
        nn.ReLU() if wrong else nn.Identity(),
    )
    opt = torch.optim.AdamW(net.parameters(), lr=2e-3)
    crit = nn.SmoothL1Loss()
    board = fmapboard.watch(net, run, every=8, optimizer=opt)
    losses = []
    for epoch in range(8):
        for i in torch.randperm(800).split(32):
            opt.zero_grad()
            loss = crit(net(x[i]), y[i])
            board.loss(loss)
            loss.backward()
            opt.step()
            losses.append(loss.item())
    board.close()
    with torch.no_grad():
        return losses, 1 - F.mse_loss(net(x[800:]), y[800:]).item() / y[800:].var().item()


def zero_grad_forgotten(run: Path, seed: int, wrong: bool) -> tuple[list[float], float]:
    """Graph network of two graph convolutions on one graph of 200 nodes in four communities, node classification, mini-batches of nodes, SGD.
    MISTAKE: optimizer.zero_grad() is missing: the gradients add up over all steps."""
    torch.manual_seed(seed)
    g = _gen(seed + 10)
    y = torch.arange(200) % 4
    p = torch.where(y[:, None] == y[None], 0.12, 0.025)
    a = torch.rand(200, 200, generator=g).triu(1)
    a = ((a > 0) & (a < p)).float()
    a = a + a.T + torch.eye(200)
    d = a.sum(1).rsqrt()
    a = d[:, None] * a * d[None]
    x = F.one_hot(y, 4).float() @ torch.randn(4, 16, generator=g) + 1.5 * torch.randn(
        200, 16, generator=g
    )

    class Gcn(nn.Module):
        def __init__(self):
            super().__init__()
            self.l1, self.l2 = nn.Linear(16, 32), nn.Linear(32, 4)

        def forward(self, h):
            return a @ self.l2(F.dropout(F.relu(a @ self.l1(h)), 0.3, self.training))

    net = Gcn()
    opt = torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.9)
    perm = torch.randperm(200)
    train, test = perm[:120], perm[120:]
    board = fmapboard.watch(net, run, every=5, optimizer=opt)
    losses = []
    for step in range(150):
        i = train[torch.randint(0, 120, (32,))]
        if not wrong:
            opt.zero_grad()
        loss = F.cross_entropy(net(x)[i], y[i])
        loss.backward()
        opt.step()
        losses.append(loss.item())
    board.close()
    net.eval()
    with torch.no_grad():
        return losses, (net(x).argmax(1)[test] == y[test]).float().mean().item()


def transformer_lr_too_high(run: Path, seed: int, wrong: bool) -> tuple[list[float], float]:
    """Transformer encoder on token sequences of length 16 with a class token: which of two marker tokens comes first; Adam.
    MISTAKE: Adam with a learning rate of 0.1 (copied from an SGD recipe)."""
    torch.manual_seed(seed)
    g = _gen(seed + 11)
    n = 1200
    t = torch.randint(3, 20, (n, 16), generator=g)
    pos = torch.rand(n, 15, generator=g).argsort(1)[:, :2] + 1
    t[:, 0] = 0
    t[torch.arange(n), pos[:, 0]] = 1
    t[torch.arange(n), pos[:, 1]] = 2
    y = (pos[:, 0] < pos[:, 1]).long()

    class Enc(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.pos = nn.Embedding(20, 32), nn.Parameter(0.5 * torch.randn(16, 32))
            self.enc = nn.TransformerEncoder(
                nn.TransformerEncoderLayer(32, 4, 64, 0.1, batch_first=True), 2
            )
            self.fc = nn.Linear(32, 2)

        def forward(self, a):
            return self.fc(self.enc(self.emb(a) + self.pos)[:, 0])

    net = Enc()
    opt = torch.optim.Adam(net.parameters(), lr=0.1 if wrong else 1.5e-3)
    board = fmapboard.watch(net, run, every=6, optimizer=opt)
    losses = []
    for epoch in range(6):
        for i in torch.randperm(1000).split(32):
            loss = F.cross_entropy(net(t[i]), y[i])
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
    board.close()
    return losses, _acc(net, t[1000:], y[1000:])


PAIRS = [
    cnn_raw_bytes,
    resnet_shuffled_apart,
    unet_mask_totensor,
    vit_test_not_normalized,
    price_targets_raw,
    table_features_unscaled,
    channels_by_reshape,
    box_pixels_on_sigmoid,
    flip_the_arrows,
    count_broadcast,
    softmax_twice,
    sorted_not_shuffled,
    always_the_first_batch,
    head_replaced_after_optimizer,
    lm_targets_not_shifted,
    vae_kl_summed,
    gan_generator_detached,
    diffusion_other_noise,
    triplet_swapped,
    reinforce_wrong_sign,
    scheduler_each_batch,
    gru_batch_second,
    relu_after_the_output,
    zero_grad_forgotten,
    transformer_lr_too_high,
]
HEALTHY = []
