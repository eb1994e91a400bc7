# ruff: noqa: B007, B905, E501, E731, RUF059
import math
from pathlib import Path

import torch
import torch.nn as nn
import torch.nn.functional as F

import fmapboard


# ---------------------------------------------------------------- data
def gen(seed):
    return torch.Generator().manual_seed(seed)


def shapes(n, seed, size=16, kinds=8, noise=0.3, rmin=3.0, rmax=5.0):
    """Disc, square, ring, diamond, plus, horizontal bar, vertical bar, cross: images, class, centre and radius, mask."""
    g = gen(seed + 7919)
    y = torch.randint(0, kinds, (n,), generator=g)
    r = rmin + (rmax - rmin) * torch.rand(n, generator=g)
    c = r[:, None] + 0.5 + (size - 2 * r[:, None] - 1) * torch.rand(n, 2, generator=g)
    ax = torch.arange(size).float() + 0.5
    dy = (ax[None, :, None] - c[:, 0, None, None]).expand(n, size, size)
    dx = (ax[None, None, :] - c[:, 1, None, None]).expand(n, size, size)
    R = r[:, None, None]
    d = (dx**2 + dy**2).sqrt()
    box = (dx.abs() < R) & (dy.abs() < R)
    forms = torch.stack(
        [
            d < R,
            box,
            (d < R) & (d > R * 0.55),
            dx.abs() + dy.abs() < R,
            box & ((dx.abs() < R / 3) | (dy.abs() < R / 3)),
            box & (dy.abs() < R / 2.5),
            box & (dx.abs() < R / 2.5),
            box & ((dx - dy).abs().lt(R / 2) | (dx + dy).abs().lt(R / 2)),
        ],
        1,
    )
    mask = forms[torch.arange(n), y].float()
    x = mask * (0.7 + 0.6 * torch.rand(n, 1, 1, generator=g)) + noise * torch.randn(
        n, size, size, generator=g
    )
    return x[:, None], y, c, r, mask[:, None]


def glyphs(n, seed, classes=10, size=12, ch=1, noise=0.5, shift=2):
    """Smooth random templates, shifted, with noise."""
    g = gen(seed + 104729)
    t = F.interpolate(
        torch.randn(classes, ch, 4, 4, generator=g), size=(size, size), mode="bilinear"
    )
    y = torch.randint(0, classes, (n,), generator=g)
    s = torch.randint(-shift, shift + 1, (n, 2), generator=g)
    x = torch.stack(
        [torch.roll(t[k], (int(a), int(b)), (1, 2)) for k, (a, b) in zip(y.tolist(), s.tolist())]
    )
    return x + noise * torch.randn(x.shape, generator=g), y


def batches(n, size, steps, seed):
    g = gen(seed + 31)
    done = 0
    while True:
        p = torch.randperm(n, generator=g)
        for i in range(0, n - size + 1, size):
            yield p[i : i + size]
            done += 1
            if done == steps:
                return


def accuracy(net, x, y):
    net.eval()
    with torch.no_grad():
        return (net(x).argmax(1) == y).float().mean().item()


class Block(nn.Module):
    def __init__(self, i, o, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(i, o, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(o)
        self.conv2 = nn.Conv2d(o, o, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(o)
        self.skip = nn.Identity() if i == o and stride == 1 else nn.Conv2d(i, o, 1, stride)

    def forward(self, x):
        h = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(h)) + self.skip(x))


class SmallResNet(nn.Module):
    def __init__(self, classes, ch=1, w=16):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(ch, w, 3, 1, 1, bias=False), nn.BatchNorm2d(w), nn.ReLU()
        )
        self.layer1 = Block(w, w)
        self.layer2 = Block(w, 2 * w, 2)
        self.fc = nn.Linear(2 * w, classes)

    def forward(self, x):
        return self.fc(self.layer2(self.layer1(self.stem(x))).mean((2, 3)))


def plain_cnn(classes, ch=1, size=16, w=16):
    return nn.Sequential(
        nn.Conv2d(ch, w, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(w, 2 * w, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(2 * w * (size // 4) ** 2, 64),
        nn.ReLU(),
        nn.Linear(64, classes),
    )


# ---------------------------------------------------------------- pairs
def cnn_no_zero_grad(run: Path, seed: int, wrong: bool):
    """LeNet-like CNN, drawn shapes in 8 classes, SGD with momentum.  MISTAKE: optimizer.zero_grad() is never called,
    so the gradients of all batches so far add up."""
    torch.manual_seed(seed)
    x, y, *_ = shapes(1500, seed)
    net = plain_cnn(8)
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    board = fmapboard.watch(net, run, every=8, optimizer=opt)
    losses = []
    for i in batches(1200, 32, 200, seed):
        if not wrong:
            opt.zero_grad()
        loss = F.cross_entropy(net(x[i]), y[i])
        loss.backward()
        opt.step()
        losses.append(loss.item())
    board.close()
    return losses, accuracy(net, x[1200:], y[1200:])


def finetune_head_after_optimizer(run: Path, seed: int, wrong: bool):
    """Small ResNet pretrained on 8 drawn shapes, backbone frozen, a new head for 3 groups of shapes.  MISTAKE: the
    optimizer was made over the old head's parameters, then the head was replaced; so nothing is ever trained."""
    torch.manual_seed(seed)
    x, y, *_ = shapes(1500, seed)
    net = SmallResNet(8)
    pre = torch.optim.Adam(net.parameters(), lr=3e-3)
    for i in batches(1200, 32, 70, seed + 1):
        pre.zero_grad()
        F.cross_entropy(net(x[i]), y[i]).backward()
        pre.step()
    z = torch.tensor([0, 1, 2, 0, 1, 2, 0, 1])[y]
    for p in net.parameters():
        p.requires_grad = False
    if wrong:
        for p in net.fc.parameters():
            p.requires_grad = True
        opt = torch.optim.Adam(net.fc.parameters(), lr=1e-2)
        net.fc = nn.Linear(32, 3)
    else:
        net.fc = nn.Linear(32, 3)
        opt = torch.optim.Adam(net.fc.parameters(), lr=1e-2)
    board = fmapboard.watch(net, run, every=5, optimizer=opt)
    losses = []
    net.train()
    for i in batches(1200, 32, 120, seed):
        loss = F.cross_entropy(net(x[i]), z[i])
        board.loss(loss, z[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    board.close()
    return losses, accuracy(net, x[1200:], z[1200:])


class UNet(nn.Module):
    def __init__(self, ch=1, w=8, final_sigmoid=False):
        super().__init__()
        conv = lambda i, o: nn.Sequential(
            nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU()
        )
        self.down1, self.down2 = conv(ch, w), conv(w, 2 * w)
        self.mid = conv(2 * w, 4 * w)
        self.up2, self.up1 = conv(6 * w, 2 * w), conv(3 * w, w)
        self.out = nn.Conv2d(w, 1, 1)
        self.final = nn.Sigmoid() if final_sigmoid else nn.Identity()

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        m = self.mid(F.max_pool2d(b, 2))
        b = self.up2(torch.cat([F.interpolate(m, scale_factor=2.0), b], 1))
        a = self.up1(torch.cat([F.interpolate(b, scale_factor=2.0), a], 1))
        return self.final(self.out(a))


def unet_mask_not_flipped(run: Path, seed: int, wrong: bool):
    """U-Net with BatchNorm, segmentation of small shapes (about 7 % foreground), random flips.  MISTAKE: the random flips are
    drawn separately for the image and its mask (two transforms), so they often don't fit each other."""
    import torchvision.transforms.v2 as T

    torch.manual_seed(seed)
    x, y, c, r, m = shapes(500, seed, size=24, noise=0.35, rmin=2.5, rmax=4.5)
    flips = T.Compose([T.RandomHorizontalFlip(), T.RandomVerticalFlip()])
    net = UNet()
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    crit = nn.BCEWithLogitsLoss()
    board = fmapboard.watch(net, run, every=5, optimizer=opt)
    losses = []
    for i in batches(400, 16, 90, seed):
        xb, mb = [], []
        for k in i.tolist():
            if wrong:
                u, v = flips(x[k]), flips(m[k])
            else:
                u, v = flips(torch.cat([x[k], m[k]])).split(1)
            xb.append(u)
            mb.append(v)
        xb, mb = torch.stack(xb), torch.stack(mb)
        loss = crit(net(xb), mb)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    board.close()
    net.eval()
    with torch.no_grad():
        p = net(x[400:]) > 0
    t = m[400:] > 0.5
    return losses, ((p & t).sum() / (p | t).sum().clamp(min=1)).item()


class ViT(nn.Module):
    def __init__(self, classes, size=16, patch=4, dim=48, depth=3, ch=1, heads=4):
        super().__init__()
        self.embed = nn.Conv2d(ch, dim, patch, patch)
        self.pos = nn.Parameter(0.02 * torch.randn(1, (size // patch) ** 2 + 1, dim))
        self.cls = nn.Parameter(torch.zeros(1, 1, dim))
        layer = lambda: nn.TransformerEncoderLayer(
            dim, heads, 2 * dim, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.blocks = nn.ModuleList([layer() for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        t = self.embed(x).flatten(2).transpose(1, 2)
        t = torch.cat([self.cls.expand(len(x), -1, -1), t], 1) + self.pos
        for b in self.blocks:
            t = b(t)
        return self.head(self.norm(t[:, 0]))


def vit_learning_rate(run: Path, seed: int, wrong: bool):
    """Small ViT (patches of 4, 3 blocks), 6 blurry templates as images.  MISTAKE: Adam with a learning rate of 0.1 and no
    warm-up, as one would give SGD for a CNN, instead of 0.001."""
    torch.manual_seed(seed)
    x, y = glyphs(1500, seed, classes=6, size=16, noise=0.6, shift=1)
    net = ViT(6)
    opt = torch.optim.Adam(net.parameters(), lr=0.1 if wrong else 1e-3)
    board = fmapboard.watch(net, run, every=5, optimizer=opt)
    losses = []
    for i in batches(1200, 32, 150, seed):
        loss = F.cross_entropy(net(x[i]), y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    board.close()
    return losses, accuracy(net, x[1200:], y[1200:])


def arrows(n, seed, size=16):
    g = gen(seed + 17)
    y = torch.randint(0, 4, (n,), generator=g)
    c = torch.randint(-2, 3, (n, 2), generator=g)
    base = torch.zeros(size, size)
    for k in range(5):
        base[8 - k, 4 + k] = base[8 + k, 4 + k] = 1.0  # a "<"
    base[8, 4:13] = 1.0
    x = torch.stack(
        [torch.roll(torch.rot90(base, int(k)), (int(a), int(b)), (0, 1)) for k, (a, b) in zip(y, c)]
    )[:, None]
    return x + 0.4 * torch.randn(x.shape, generator=g), y


def arrows_flipped(run: Path, seed: int, wrong: bool):
    """CNN with BatchNorm and dropout, which of 4 ways does an arrow point.  MISTAKE: RandomHorizontalFlip and
    RandomVerticalFlip as augmentation, which change the right answer but not the label."""
    import torchvision.transforms.v2 as T

    torch.manual_seed(seed)
    x, y = arrows(1000, seed)
    aug = (
        T.Compose([T.RandomHorizontalFlip(), T.RandomVerticalFlip()])
        if wrong
        else T.RandomCrop(16, padding=1)
    )
    net = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(512, 4),
    )
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    board = fmapboard.watch(net, run, every=5, optimizer=opt)
    losses = []
    for i in batches(800, 32, 125, seed):
        xb = torch.stack([aug(v) for v in x[i]])
        loss = F.cross_entropy(net(xb), y[i])
        board.loss(loss, y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    board.close()
    return losses, accuracy(net, x[800:], y[800:])


class VAE(nn.Module):
    def __init__(self, z=8):
        super().__init__()
        self.enc = nn.Sequential(
            nn.Flatten(), nn.Linear(144, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU()
        )
        self.mu, self.logvar = nn.Linear(64, z), nn.Linear(64, z)
        self.dec = nn.Sequential(
            nn.Linear(z, 64), nn.ReLU(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 144)
        )

    def forward(self, x):
        h = self.enc(x)
        mu, lv = self.mu(h), self.logvar(h)
        z = mu + torch.randn_like(mu) * (0.5 * lv).exp() if self.training else mu
        return self.dec(z).view(-1, 1, 12, 12), mu, lv


def vae_kl_too_heavy(run: Path, seed: int, wrong: bool):
    """MLP VAE on 12x12 blurry images.  MISTAKE: reconstruction with mse_loss's mean over pixels, but KL summed over the
    latent and not scaled: the KL outweighs it 144 times and the latent collapses."""
    torch.manual_seed(seed)
    x, _ = glyphs(2400, seed, noise=0.1, shift=1)
    net = VAE()
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    board = fmapboard.watch(net, run, every=10, optimizer=opt)
    losses = []
    for i in batches(2000, 64, 300, seed):
        out, mu, lv = net(x[i])
        kl = (-0.5 * (1 + lv - mu**2 - lv.exp()).sum(1)).mean()
        rec = F.mse_loss(out, x[i]) if wrong else F.mse_loss(out, x[i], reduction="sum") / len(i)
        loss = rec + kl
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    board.close()
    net.eval()
    with torch.no_grad():
        t = x[2000:]
        return losses, 1 - (F.mse_loss(net(t)[0], t) / t.var()).item()


def boxes_in_pixels(run: Path, seed: int, wrong: bool):
    """CNN with a box head (sigmoid, 0 to 1: centre and size), one object in each image; smooth L1.  MISTAKE: the
    targets are left in pixels (0 to 24), which a sigmoid can't reach."""
    torch.manual_seed(seed)
    x, y, c, r, _ = shapes(1200, seed, size=24, noise=0.2, rmin=3, rmax=6)
    box = torch.cat([c, 2 * r[:, None]], 1)
    target = box if wrong else box / 24
    net = nn.Sequential(
        nn.Conv2d(1, 12, 3, 2, 1),
        nn.ReLU(),
        nn.Conv2d(12, 24, 3, 2, 1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(24 * 36, 64),
        nn.ReLU(),
        nn.Linear(64, 3),
        nn.Sigmoid(),
    )
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    board = fmapboard.watch(net, run, every=10, optimizer=opt)
    losses = []
    for step, i in enumerate(batches(1000, 32, 250, seed)):
        with board.step(step):
            loss = F.smooth_l1_loss(net(x[i]), target[i])
            opt.zero_grad()
            loss.backward()
            opt.step()
        losses.append(loss.item())
    board.close()
    net.eval()
    with torch.no_grad():
        p = net(x[1000:]) * (1 if wrong else 24)
    t = box[1000:]
    lo = torch.maximum(p[:, :2] - p[:, 2:] / 2, t[:, :2] - t[:, 2:] / 2)
    hi = torch.minimum(p[:, :2] + p[:, 2:] / 2, t[:, :2] + t[:, 2:] / 2)
    inter = (hi - lo).clamp(min=0).prod(1)
    return losses, (inter / (p[:, 2] ** 2 + t[:, 2] ** 2 - inter)).mean().item()


def table(n, seed, d=10):
    g = gen(seed + 3)
    x = torch.randn(n, d, generator=g)
    w = torch.randn(d, generator=g)
    f = (
        x @ w
        + 1.5 * x[:, 0] * x[:, 1]
        + 2 * torch.sin(2 * x[:, 2])
        + 0.2 * torch.randn(n, generator=g)
    )
    return x, f


def mlp_broadcast(run: Path, seed: int, wrong: bool):
    """MLP regression on a table of 10 standardized columns.  MISTAKE: predictions (N, 1) against targets (N,): MSELoss
    broadcasts to N x N and the network learns the mean."""
    torch.manual_seed(seed)
    x, y = table(2500, seed)
    y = (y - y.mean()) / y.std()
    net = nn.Sequential(
        nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)
    )
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    board = fmapboard.watch(net, run, every=10, optimizer=opt)
    losses = []
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in batches(2000, 64, 300, seed):
            out = net(x[i])
            loss = F.mse_loss(out, y[i]) if wrong else F.mse_loss(out.squeeze(1), y[i])
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
    board.close()
    net.eval()
    with torch.no_grad():
        return losses, 1 - (F.mse_loss(net(x[2000:]).squeeze(1), y[2000:]) / y[2000:].var()).item()


class SeqLSTM(nn.Module):
    def __init__(self, vocab, hidden, classes, batch_first):
        super().__init__()
        self.emb = nn.Embedding(vocab, 16)
        self.lstm = nn.LSTM(16, hidden, batch_first=batch_first)
        self.fc = nn.Linear(hidden, classes)

    def forward(self, t):
        out, _ = self.lstm(self.emb(t))
        return self.fc(out[:, -1])


def lstm_batch_first(run: Path, seed: int, wrong: bool):
    """Embedding, LSTM, linear; which of 4 symbol families is commonest in a sequence of 16.  MISTAKE: batch_first=True is
    left out though the batches are (batch, time), so the LSTM runs over the batch."""
    torch.manual_seed(seed)
    g = gen(seed + 5)
    y = torch.randint(0, 4, (2500,), generator=g)
    t = torch.randint(0, 20, (2500, 16), generator=g)
    own = torch.rand(2500, 16, generator=g) < 0.35
    t = torch.where(own, y[:, None] * 5 + torch.randint(0, 5, (2500, 16), generator=g), t)
    net = SeqLSTM(20, 48, 4, batch_first=not wrong)
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    board = fmapboard.watch(net, run, every=5, optimizer=opt)
    losses = []
    for i in batches(2000, 32, 180, seed):
        loss = F.cross_entropy(net(t[i]), y[i])
        board.loss(loss, y[i])
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        losses.append(loss.item())
    board.close()
    return losses, accuracy(net, t[2000:], y[2000:])


class TextTransformer(nn.Module):
    def __init__(self, vocab=30, dim=32, length=20, classes=3):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.pos = nn.Embedding(length, dim)
        layer = nn.TransformerEncoderLayer(dim, 4, 64, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(dim, classes)

    def forward(self, t):
        h = self.emb(t) + self.pos(torch.arange(t.shape[1]))
        return self.head(self.encoder(h).mean(1))


def scheduler_every_batch(run: Path, seed: int, wrong: bool):
    """Transformer encoder, sentiment-like classification of token sequences.  MISTAKE: StepLR(step_size=2, gamma=0.5) is
    meant for epochs, but scheduler.step() stands in the batch loop: the learning rate is gone after two dozen steps."""
    torch.manual_seed(seed)
    g = gen(seed + 9)
    t = torch.randint(0, 30, (1600, 20), generator=g)
    score = torch.randn(30, generator=g)[t].sum(1)
    y = torch.bucketize(score, torch.quantile(score, torch.tensor([1 / 3, 2 / 3])))
    net = TextTransformer()
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    sched = torch.optim.lr_scheduler.StepLR(opt, 2, 0.5)
    board = fmapboard.watch(net, run, every=8, optimizer=opt)
    losses, per_epoch = [], 1280 // 32
    for step, i in enumerate(batches(1280, 32, 4 * per_epoch, seed)):
        loss = F.cross_entropy(net(t[i]), y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if wrong or (step + 1) % per_epoch == 0:
            sched.step()
        losses.append(loss.item())
    board.close()
    return losses, accuracy(net, t[1280:], y[1280:])


def energy(a, b):
    return (
        2 * torch.cdist(a, b).mean() - torch.cdist(a, a).mean() - torch.cdist(b, b).mean()
    ).item()


def gan_generator_detached(run: Path, seed: int, wrong: bool):
    """MLP GAN on points of two moons-like arcs.  MISTAKE: the detached fakes of the discriminator's step are used in the
    generator's step too, so the generator gets no gradient."""
    torch.manual_seed(seed)
    g = gen(seed + 13)
    a = math.pi * torch.rand(3000, generator=g)
    data = torch.stack([2 + 1.5 * a.cos(), 1 + 1.5 * a.sin()], 1) + 0.1 * torch.randn(
        3000, 2, generator=g
    )
    G = nn.Sequential(
        nn.Linear(8, 48), nn.LeakyReLU(0.2), nn.Linear(48, 48), nn.LeakyReLU(0.2), nn.Linear(48, 2)
    )
    D = nn.Sequential(
        nn.Linear(2, 48), nn.LeakyReLU(0.2), nn.Linear(48, 48), nn.LeakyReLU(0.2), nn.Linear(48, 1)
    )
    og = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.5, 0.9))
    od = torch.optim.Adam(D.parameters(), lr=1e-3, betas=(0.5, 0.9))
    bg = fmapboard.watch(G, run / "generator", every=10, optimizer=og)
    bd = fmapboard.watch(D, run / "discriminator", every=10, optimizer=od)
    bce = nn.BCEWithLogitsLoss()
    losses = []
    one, zero = torch.ones(64, 1), torch.zeros(64, 1)
    for i in batches(2500, 64, 300, seed):
        fake = G(torch.randn(64, 8))
        if wrong:
            fake = fake.detach()
        od.zero_grad()
        ld = bce(D(data[i]), one) + bce(D(fake.detach()), zero)
        ld.backward()
        od.step()
        og.zero_grad()
        lg = bce(D(fake), one)
        lg.backward()
        og.step()
        losses.append(lg.item())
    bg.close()
    bd.close()
    with torch.no_grad():
        return losses, -energy(G(torch.randn(500, 8)), data[2500:])


def reinforce_sign(run: Path, seed: int, wrong: bool):
    """REINFORCE with a baseline, a policy MLP on a contextual choice among 4 actions; measure: mean reward.  MISTAKE: the
    minus sign of the loss is missing, so the good actions become rarer."""
    torch.manual_seed(seed)
    g = gen(seed + 21)
    w = torch.randn(6, 4, generator=g)
    net = nn.Sequential(nn.Linear(6, 48), nn.Tanh(), nn.Linear(48, 4))
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    board = fmapboard.watch(net, run, every=10, optimizer=opt)
    base, losses = 0.25, []
    for step in range(300):
        s = torch.randn(64, 6, generator=g)
        dist = torch.distributions.Categorical(logits=net(s))
        act = dist.sample()
        reward = (act == (s @ w).argmax(1)).float()
        adv = reward - base
        base = 0.9 * base + 0.1 * reward.mean().item()
        obj = (dist.log_prob(act) * adv).mean()
        loss = obj if wrong else -obj
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    board.close()
    s = torch.randn(1000, 6, generator=g)
    with torch.no_grad():
        act = torch.distributions.Categorical(logits=net(s)).sample()
    return losses, (act == (s @ w).argmax(1)).float().mean().item()


def table_raw_columns(run: Path, seed: int, wrong: bool):
    """MLP, binary classification of a customer table (income, age, rates, counts).  MISTAKE: the columns are not
    standardized: income in the ten thousands stands beside rates of a hundredth."""
    torch.manual_seed(seed)
    x, f = table(2500, seed, d=8)
    y = (f > f.median()).float()
    scale = torch.tensor([0.01, 0.05, 12.0, 1.0, 3.0, 0.02, 150.0, 20000.0])
    mean = torch.tensor([0.05, 0.3, 40.0, 2.0, 6.0, 0.1, 600.0, 52000.0])
    x = x * scale + mean
    if not wrong:
        x = (x - x[:2000].mean(0)) / x[:2000].std(0)
    net = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    board = fmapboard.watch(net, run, every=8, optimizer=opt)
    losses = []
    for i in batches(2000, 32, 240, seed):
        loss = F.binary_cross_entropy_with_logits(net(x[i]).squeeze(1), y[i])
        board.loss(loss, y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    board.close()
    net.eval()
    with torch.no_grad():
        return losses, ((net(x[2000:]).squeeze(1) > 0).float() == y[2000:]).float().mean().item()


def cnn_softmax_before_ce(run: Path, seed: int, wrong: bool):
    """Strided CNN with BatchNorm whose last layer is a softmax, 20 classes of small colour images, plain SGD.  MISTAKE: CrossEntropyLoss is given
    probabilities, though it applies log-softmax itself."""
    torch.manual_seed(seed)
    x, y = glyphs(1800, seed, classes=20, ch=3, noise=1.0, shift=1)
    net = nn.Sequential(
        nn.Conv2d(3, 16, 3, 2, 1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, 2, 1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(288, 20),
    )
    if wrong:
        net.append(nn.Softmax(dim=1))
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    board = fmapboard.watch(net, run, every=8, optimizer=opt)
    losses = []
    for i in batches(1500, 32, 240, seed):
        loss = F.cross_entropy(net(x[i]), y[i])
        board.loss(loss, y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    board.close()
    return losses, accuracy(net, x[1500:], y[1500:])


# ---------------------------------------------------------------- healthy ones
def actor_critic(run: Path, seed: int):
    """A2C on a small grid world (5 x 5, find the goal), shared trunk, entropy bonus, clipped gradients; measure: return."""
    torch.manual_seed(seed)
    trunk = nn.Sequential(nn.Linear(26, 64), nn.Tanh())
    net = nn.ModuleDict({"trunk": trunk, "policy": nn.Linear(64, 4), "value": nn.Linear(64, 1)})
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    board = fmapboard.watch(net, run, every=10, optimizer=opt)
    moves = torch.tensor([[0, 1], [0, -1], [1, 0], [-1, 0]])
    n, horizon = 32, 5

    def obs(pos, goal):
        return torch.cat(
            [
                F.one_hot(pos, 5).flatten(1),
                F.one_hot(goal, 5).flatten(1),
                F.one_hot((goal - pos).sign() + 1, 3).flatten(1),
            ],
            1,
        ).float()

    pos, goal = torch.randint(0, 5, (n, 2)), torch.randint(0, 5, (n, 2))
    losses, rewards = [], []
    for step in range(200):
        logp, val, ent, rew = [], [], [], []
        for _ in range(horizon):
            h = net["trunk"](obs(pos, goal))
            dist = torch.distributions.Categorical(logits=net["policy"](h))
            a = dist.sample()
            logp.append(dist.log_prob(a))
            ent.append(dist.entropy())
            val.append(net["value"](h).squeeze(1))
            pos = (pos + moves[a]).clamp(0, 4)
            hit = (pos == goal).all(1)
            rew.append(hit.float() - 0.05)
            new = torch.randint(0, 5, (n, 2))
            goal = torch.where(hit[:, None], new, goal)
        with torch.no_grad():
            ret = net["value"](net["trunk"](obs(pos, goal))).squeeze(1)
        targets = []
        for r in reversed(rew):
            ret = r + 0.9 * ret
            targets.insert(0, ret)
        targets, val, logp = torch.stack(targets), torch.stack(val), torch.stack(logp)
        adv = (targets - val).detach()
        loss = (
            -(logp * adv).mean() + 0.5 * F.mse_loss(val, targets) - 0.01 * torch.stack(ent).mean()
        )
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        opt.step()
        losses.append(loss.item())
        rewards.append(torch.stack(rew).mean().item())
    board.close()
    return losses, sum(rewards[-20:]) / 20


def dcgan(run: Path, seed: int):
    """DCGAN with BatchNorm in the generator, 12 x 12 images of three blurry kinds; measure: minus the energy distance."""
    torch.manual_seed(seed)
    x, _ = glyphs(1200, seed, classes=3, noise=0.05, shift=1)
    x = torch.tanh(x)
    G = nn.Sequential(
        nn.Linear(16, 32 * 9),
        nn.Unflatten(1, (32, 3, 3)),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.ConvTranspose2d(32, 16, 4, 2, 1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.ConvTranspose2d(16, 1, 4, 2, 1),
        nn.Tanh(),
    )
    D = nn.Sequential(
        nn.Conv2d(1, 16, 4, 2, 1),
        nn.LeakyReLU(0.2),
        nn.Conv2d(16, 32, 4, 2, 1),
        nn.LeakyReLU(0.2),
        nn.Flatten(),
        nn.Linear(288, 1),
    )
    og = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.5, 0.999))
    od = torch.optim.Adam(D.parameters(), lr=4e-4, betas=(0.5, 0.999))
    bg = fmapboard.watch(G, run / "g", every=10, optimizer=og)
    bd = fmapboard.watch(D, run / "d", every=10, optimizer=od)
    losses = []
    for i in batches(1000, 32, 240, seed):
        fake = G(torch.randn(32, 16))
        ld = F.softplus(-D(x[i])).mean() + F.softplus(D(fake.detach())).mean()
        od.zero_grad()
        ld.backward()
        od.step()
        lg = F.softplus(-D(fake)).mean()
        og.zero_grad()
        lg.backward()
        og.step()
        losses.append(lg.item())
    bg.close()
    bd.close()
    with torch.no_grad():
        return losses, -energy(G(torch.randn(200, 16)).flatten(1), x[1000:].flatten(1))


def denoising_autoencoder(run: Path, seed: int):
    """Convolutional denoising autoencoder, L1 loss, RMSprop; measure: R2 of the clean image."""
    torch.manual_seed(seed)
    x, *_ = shapes(1000, seed, noise=0.0)
    net = nn.Sequential(
        nn.Conv2d(1, 12, 3, 2, 1),
        nn.ELU(),
        nn.Conv2d(12, 24, 3, 2, 1),
        nn.ELU(),
        nn.ConvTranspose2d(24, 12, 4, 2, 1),
        nn.ELU(),
        nn.ConvTranspose2d(12, 1, 4, 2, 1),
    )
    opt = torch.optim.RMSprop(net.parameters(), lr=1e-3)
    board = fmapboard.watch(net, run, every=8, optimizer=opt)
    losses = []
    for i in batches(900, 32, 240, seed):
        loss = F.l1_loss(net(x[i] + 0.5 * torch.randn_like(x[i])), x[i])
        board.loss(loss)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    board.close()
    net.eval()
    with torch.no_grad():
        t = x[900:]
        return losses, 1 - (F.mse_loss(net(t + 0.5 * torch.randn_like(t)), t) / t.var()).item()


def finetune_frozen(run: Path, seed: int):
    """Small ResNet pretrained on drawn shapes; then all but its last block and the new head frozen, two learning rates,
    bars and crosses against the rest."""
    torch.manual_seed(seed)
    x, y, *_ = shapes(1500, seed)
    net = SmallResNet(8)
    pre = torch.optim.Adam(net.parameters(), lr=3e-3)
    for i in batches(1200, 32, 60, seed + 1):
        pre.zero_grad()
        F.cross_entropy(net(x[i]), y[i]).backward()
        pre.step()
    z = (y >= 4).long()
    net.fc = nn.Linear(32, 2)
    for part in (net.stem, net.layer1):
        part.requires_grad_(False)
    opt = torch.optim.AdamW(
        [
            {"params": net.layer2.parameters(), "lr": 3e-4},
            {"params": net.fc.parameters(), "lr": 3e-3},
        ]
    )
    board = fmapboard.watch(net, run, every=5, optimizer=opt)
    losses = []
    for i in batches(1200, 32, 100, seed):
        net.train()
        net.stem.eval()
        net.layer1.eval()
        loss = F.cross_entropy(net(x[i]), z[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    board.close()
    return losses, accuracy(net, x[1200:], z[1200:])


def vit_warmup(run: Path, seed: int):
    """Small ViT, AdamW with weight decay, linear warm-up then cosine decay to zero."""
    torch.manual_seed(seed)
    x, y = glyphs(1500, seed, classes=8, size=16, noise=0.6, shift=1)
    net = ViT(8, depth=2)
    opt = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=0.05)
    steps = 140
    sched = torch.optim.lr_scheduler.LambdaLR(
        opt,
        lambda s: min((s + 1) / 20, 0.5 * (1 + math.cos(math.pi * max(0, s - 20) / (steps - 20)))),
    )
    board = fmapboard.watch(net, run, every=5, optimizer=opt)
    losses = []
    for i in batches(1200, 32, steps, seed):
        loss = F.cross_entropy(net(x[i]), y[i])
        board.loss(loss, y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        losses.append(loss.item())
    board.close()
    return losses, accuracy(net, x[1200:], y[1200:])


def cnn_accumulation(run: Path, seed: int):
    """CNN with GroupNorm, batches of 8, gradients of 4 of them accumulated, clipped; one optimizer step is one step."""
    torch.manual_seed(seed)
    x, y, *_ = shapes(1500, seed)
    net = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.GroupNorm(4, 16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.GroupNorm(4, 32),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(512, 8),
    )
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    board = fmapboard.watch(net, run, every=5, optimizer=opt)
    losses, total = [], 0.0
    for k, i in enumerate(batches(1200, 8, 480, seed)):
        loss = F.cross_entropy(net(x[i]), y[i]) / 4
        loss.backward()
        total += loss.item()
        if k % 4 == 3:
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            opt.zero_grad()
            losses.append(total)
            total = 0.0
    board.close()
    return losses, accuracy(net, x[1200:], y[1200:])


def resnet_bf16_ema(run: Path, seed: int):
    """Small ResNet, bfloat16 autocast on the CPU, an EMA of the weights that is evaluated."""
    torch.manual_seed(seed)
    x, y = glyphs(1300, seed, classes=10, ch=3, noise=0.8)
    net = SmallResNet(10, ch=3, w=12)
    ema = torch.optim.swa_utils.AveragedModel(
        net, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.95), use_buffers=True
    )
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    board = fmapboard.watch(net, run, every=4, optimizer=opt)
    losses = []
    for i in batches(1000, 32, 100, seed):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.cross_entropy(net(x[i]), y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
        ema.update_parameters(net)
        losses.append(loss.item())
    board.close()
    return losses, accuracy(ema, x[1000:], y[1000:])


def cnn_mixup_smoothing(run: Path, seed: int):
    """CNN with BatchNorm and dropout, mixup, label smoothing, OneCycleLR."""
    torch.manual_seed(seed)
    x, y = glyphs(1500, seed, classes=10, noise=0.7)
    net = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.3),
        nn.Linear(288, 10),
    )
    opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
    steps = 180
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, 0.1, total_steps=steps)
    crit = nn.CrossEntropyLoss(label_smoothing=0.1)
    beta = torch.distributions.Beta(0.4, 0.4)
    board = fmapboard.watch(net, run, every=6, optimizer=opt)
    losses = []
    for i in batches(1200, 32, steps, seed):
        lam, p = beta.sample(), torch.randperm(32)
        out = net(lam * x[i] + (1 - lam) * x[i][p])
        loss = lam * crit(out, y[i]) + (1 - lam) * crit(out, y[i][p])
        board.loss(loss)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        losses.append(loss.item())
    board.close()
    return losses, accuracy(net, x[1200:], y[1200:])


def distillation(run: Path, seed: int):
    """A big MLP as teacher (trained first, not watched), a small MLP student: softened KL plus hard labels, on a table."""
    torch.manual_seed(seed)
    x, f = table(2500, seed)
    y = torch.bucketize(f, torch.quantile(f, torch.tensor([0.25, 0.5, 0.75])))
    teacher = nn.Sequential(
        nn.Linear(10, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 4)
    )
    ot = torch.optim.Adam(teacher.parameters(), lr=2e-3)
    for i in batches(2000, 64, 200, seed + 1):
        ot.zero_grad()
        F.cross_entropy(teacher(x[i]), y[i]).backward()
        ot.step()
    teacher.eval()
    student = nn.Sequential(nn.Linear(10, 24), nn.GELU(), nn.Linear(24, 4))
    opt = torch.optim.Adam(student.parameters(), lr=1e-2)
    board = fmapboard.watch(student, run, every=10, optimizer=opt)
    losses, T = [], 3.0
    for i in batches(2000, 64, 250, seed):
        with torch.no_grad():
            soft = (teacher(x[i]) / T).softmax(1)
        out = student(x[i])
        loss = 0.7 * T * T * F.kl_div(
            (out / T).log_softmax(1), soft, reduction="batchmean"
        ) + 0.3 * F.cross_entropy(out, y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    board.close()
    return losses, accuracy(student, x[2000:], y[2000:])


def simclr(run: Path, seed: int):
    """SimCLR-like: a CNN encoder and a projection head, two noisy shifted views, NT-Xent; measure: minus the held-out
    NT-Xent."""
    torch.manual_seed(seed)
    x, y = glyphs(1000, seed, classes=12, noise=0.7, shift=2)
    enc = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
    )
    net = nn.Sequential(enc, nn.Sequential(nn.Linear(288, 64), nn.ReLU(), nn.Linear(64, 32)))
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    board = fmapboard.watch(net, run, every=5, optimizer=opt)

    def view(b):
        s = torch.randint(-2, 3, (2,)).tolist()
        return torch.roll(b, s, (2, 3)) * (
            0.7 + 0.6 * torch.rand(len(b), 1, 1, 1)
        ) + 0.4 * torch.randn_like(b)

    def nt_xent(b):
        z = F.normalize(net(torch.cat([view(b), view(b)])), dim=1)
        sim = z @ z.t() / 0.3
        sim = sim.masked_fill(torch.eye(len(z), dtype=torch.bool), -1e4)
        return F.cross_entropy(sim, (torch.arange(len(z)) + len(b)) % len(z))

    losses = []
    for i in batches(800, 32, 120, seed):
        loss = nt_xent(x[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    board.close()
    net.eval()
    with torch.no_grad():
        return losses, -sum(nt_xent(x[k : k + 32]).item() for k in range(800, 992, 32)) / 6


class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(1, 16, 3, 1, 1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, 2, 1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.Flatten(),
        )
        self.kind = nn.Linear(800, 8)
        self.where = nn.Sequential(nn.Linear(800, 32), nn.ReLU(), nn.Linear(32, 3))

    def forward(self, x):
        h = self.trunk(x)
        return self.kind(h), self.where(h)


def multitask(run: Path, seed: int):
    """One CNN trunk, two heads: which shape, and where and how large; cross-entropy plus weighted smooth L1; marked steps."""
    torch.manual_seed(seed)
    x, y, c, r, _ = shapes(3000, seed, size=20, noise=0.2)
    t = torch.cat([c / 20, r[:, None] / 10], 1)
    net = MultiTask()
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    board = fmapboard.watch(net, run, every=8, optimizer=opt)
    losses = []
    for k, i in enumerate(batches(2800, 32, 240, seed)):
        with board.step(k):
            a, b = net(x[i])
            loss = F.cross_entropy(a, y[i]) + 20 * F.smooth_l1_loss(b, t[i])
            opt.zero_grad()
            loss.backward()
            opt.step()
        losses.append(loss.item())
    board.close()
    net.eval()
    with torch.no_grad():
        return losses, (net(x[2800:])[0].argmax(1) == y[2800:]).float().mean().item()


def lbfgs_curve(run: Path, seed: int):
    """A tanh MLP fitted to a wavy surface with L-BFGS (full batch of 64 points, closures); measure: R2 elsewhere."""
    torch.manual_seed(seed)
    g = gen(seed)
    f = lambda p: torch.sin(3 * p[:, :1]) * torch.cos(2 * p[:, 1:])
    x, v = 2 * torch.rand(64, 2, generator=g) - 1, 1.8 * torch.rand(500, 2, generator=g) - 0.9
    net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
    opt = torch.optim.LBFGS(net.parameters(), lr=0.5, max_iter=4, history_size=10)
    board = fmapboard.watch(net, run, every=3, optimizer=opt)
    losses = []
    for _ in range(60):

        def closure():
            opt.zero_grad()
            loss = F.mse_loss(net(x), f(x)) + 1e-5 * sum((p**2).sum() for p in net.parameters())
            loss.backward()
            return loss

        losses.append(float(opt.step(closure)))
    board.close()
    with torch.no_grad():
        return losses, 1 - (F.mse_loss(net(v), f(v)) / f(v).var()).item()


def gpt_from_config(run: Path, seed: int):
    """transformers' GPT-2 from a tiny config, language model of a made-up grammar (a sparse second-order chain), AdamW,
    clipping; measure: minus the held-out loss."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(seed)
    g = gen(seed + 77)
    nxt = torch.randint(0, 24, (24, 3), generator=g)
    seq = [torch.randint(0, 24, (900,), generator=g)]
    for _ in range(23):
        k = torch.multinomial(torch.tensor([0.7, 0.2, 0.1]), 900, True, generator=g)
        seq.append(nxt[seq[-1], k])
    t = torch.stack(seq, 1)
    net = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=24,
            n_positions=24,
            n_embd=48,
            n_layer=2,
            n_head=4,
            bos_token_id=0,
            eos_token_id=0,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
        )
    )
    opt = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=0.01)
    board = fmapboard.watch(net, run, every=5, optimizer=opt)
    losses = []
    for i in batches(800, 16, 110, seed):
        loss = net(input_ids=t[i], labels=t[i]).loss
        board.loss(loss, t[i])
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        losses.append(loss.item())
    board.close()
    net.eval()
    with torch.no_grad():
        return losses, -net(input_ids=t[800:], labels=t[800:]).loss.item()


# held-out measures with seed 0 / seed 1
PAIRS = [
    cnn_no_zero_grad,  # right 0.757 / 0.587, wrong 0.097 / 0.143 (blows up)
    finetune_head_after_optimizer,  # right 0.863 / 0.857, wrong 0.327 / 0.340
    vit_learning_rate,  # right 0.963 / 0.930, wrong 0.180 / 0.577 (chance 0.17)
    arrows_flipped,  # right 0.915 / 0.910, wrong 0.475 / 0.490 (chance 0.25)
    vae_kl_too_heavy,  # right 0.883 / 0.885, wrong 0.059 / 0.086
    boxes_in_pixels,  # right 0.762 / 0.757, wrong 0.000 / 0.000
    mlp_broadcast,  # right 0.962 / 0.959, wrong 0.001 / 0.016
    lstm_batch_first,  # right 0.884 / 0.880, wrong 0.478 / 0.526 (chance 0.25)
    scheduler_every_batch,  # right 0.772 / 0.856, wrong 0.409 / 0.334 (chance 0.33)
    gan_generator_detached,  # right -0.084 / -0.208, wrong -4.437 / -4.666
    reinforce_sign,  # right 0.923 / 0.927, wrong 0.003 / 0.008
    unet_mask_not_flipped,  # right 0.820 / 0.838, wrong 0.365 / 0.433
    cnn_softmax_before_ce,  # right 1.000 / 1.000, wrong 0.113 / 0.090 (chance 0.05)
    table_raw_columns,  # right 0.904 / 0.934, wrong 0.524 / 0.486 (chance 0.5)
]
HEALTHY = [
    actor_critic,  # 0.260 / 0.252 (untrained -0.04)
    dcgan,  # -0.684 / -0.745 (untrained -2.72)
    denoising_autoencoder,  # 0.721 / 0.713
    finetune_frozen,  # 0.857 / 0.797
    vit_warmup,  # 0.880 / 0.917
    cnn_accumulation,  # 0.640 / 0.713
    resnet_bf16_ema,  # 1.000 / 1.000
    cnn_mixup_smoothing,  # 0.973 / 0.963
    distillation,  # 0.800 / 0.612
    simclr,  # -2.730 / -2.713 (untrained -3.99)
    multitask,  # 0.695 / 0.605
    lbfgs_curve,  # 0.974 / 0.997
    gpt_from_config,  # -0.846 / -0.841 (untrained -3.11)
]
