"""Networks with attention, gates or unusual norms."""

from __future__ import annotations

from functools import partial

import torch
from nets.classifiers import head, unit
from timm.layers import HybridEmbed
from timm.models.mlp_mixer import MlpMixer
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrizations


def vit(**options: object) -> nn.Module:
    sizes = {"embed_dim": 64, "depth": 3, "num_heads": 4, "mlp_ratio": 2.0, "num_classes": 8}
    sizes |= {"img_size": 32, "patch_size": 4, "proj_drop_rate": 0.1}
    return VisionTransformer(**(sizes | options))


def hybrid() -> nn.Module:
    """Convolutions, then attention."""
    stem = nn.Sequential(unit(3, 32, stride=2), unit(32, 64, stride=2))
    embed = partial(HybridEmbed, stem, patch_size=1)

    def layer(img_size: int, in_chans: int, embed_dim: int, **_: object) -> nn.Module:
        return embed(img_size=img_size, in_chans=in_chans, embed_dim=embed_dim)

    return vit(patch_size=1, depth=2, global_pool="avg", embed_layer=layer)


def mixer() -> nn.Module:
    return MlpMixer(8, 32, patch_size=4, num_blocks=3, embed_dim=64, mlp_ratio=(1.0, 2.0))


class Maxout(nn.Module):
    def __init__(self, into: int, out: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(into, 2 * out, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(x).unflatten(1, (2, -1)).amax(1)


def maxout() -> nn.Module:
    layers = [Maxout(3, 24), nn.MaxPool2d(2), Maxout(24, 48), nn.MaxPool2d(2), Maxout(48, 64)]
    return nn.Sequential(*layers, *head(64, 8, 0.3))


class Gated(nn.Module):
    """Convolution times a sigmoid of another."""

    def __init__(self, into: int, out: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(into, 2 * out, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return functional.glu(self.conv(x), 1)


def gated() -> nn.Module:
    layers = [Gated(3, 32), nn.AvgPool2d(2), nn.BatchNorm2d(32), Gated(32, 48), nn.AvgPool2d(2)]
    return nn.Sequential(*layers, nn.BatchNorm2d(48), Gated(48, 64), *head(64, 8))


def selu() -> nn.Module:
    """Self-normalizing: LeCun's initialization, alpha dropout."""
    layers = [nn.Conv2d(3, 24, 3, padding=1), nn.SELU(), nn.AvgPool2d(2)]
    layers += [nn.Conv2d(24, 48, 3, padding=1), nn.SELU(), nn.AvgPool2d(2)]
    layers += [nn.Conv2d(48, 64, 3, padding=1), nn.SELU(), nn.AvgPool2d(4), nn.Flatten()]
    layers += [nn.AlphaDropout(0.1), nn.Linear(256, 64), nn.SELU(), nn.Linear(64, 8)]
    for layer in layers:
        if isinstance(layer, nn.Conv2d | nn.Linear):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="linear")
            nn.init.zeros_(layer.bias)
    return nn.Sequential(*layers)


def reparametrized(kind: str) -> nn.Module:
    """A plain network with weight norm or spectral norm on each convolution."""
    wrap = getattr(parametrizations, kind)
    layers: list[nn.Module] = []
    for into, out in ((3, 32), (32, 48), (48, 64)):
        conv = wrap(nn.Conv2d(into, out, 3, padding=1))
        layers += [conv, nn.LeakyReLU(0.1), nn.AvgPool2d(2)]
    return nn.Sequential(*layers, *head(64, 8))


class Capsules(nn.Module):
    """Capsules routed twice; the lengths of the class capsules are the logits."""

    def __init__(self, classes: int = 10) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 32, 7, 2)
        self.primary = nn.Conv2d(32, 64, 5, 2)
        self.votes = nn.Parameter(0.05 * torch.randn(classes, 8 * 16, 8, 8))

    @staticmethod
    def squash(x: Tensor) -> Tensor:
        length = x.square().sum(-1, keepdim=True)
        return x * length.add(1e-8).sqrt() / (1 + length)

    def forward(self, x: Tensor) -> Tensor:
        x = self.primary(functional.relu(self.conv(x)))  # [N, 64, 4, 4]
        x = self.squash(x.flatten(2).unflatten(1, (8, 8)).permute(0, 1, 3, 2).flatten(1, 2))
        votes = torch.einsum("nid,kide->nkie", x, self.votes)
        routes = torch.zeros(votes.shape[:3])
        for _ in range(2):
            out = self.squash((routes.softmax(1)[..., None] * votes).sum(2))  # [N, classes, 8]
            routes = routes + (votes.detach() * out.detach()[:, :, None]).sum(-1)
        return 8 * out.norm(dim=-1)


class Steered(nn.Module):
    """A spatial transformer before a small network; it starts as the identity."""

    def __init__(self) -> None:
        super().__init__()
        find = [nn.Conv2d(1, 8, 7), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(8, 10, 5)]
        last = nn.Linear(40, 6)
        nn.init.zeros_(last.weight)
        last.bias.data.copy_(torch.tensor([1.0, 0, 0, 0, 1, 0]))
        self.find = nn.Sequential(*find, nn.MaxPool2d(2), nn.ReLU(), nn.Flatten(), last)
        parts = [nn.Conv2d(1, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 5), nn.ReLU()]
        self.rest = nn.Sequential(*parts, *head(32, 10))

    def forward(self, x: Tensor) -> Tensor:
        rows = self.find(x[..., 2:26, 2:26])
        grid = functional.affine_grid(rows.view(-1, 2, 3), list(x.shape), align_corners=False)
        return self.rest(functional.grid_sample(x, grid, align_corners=False))
