"""Losses and wrappers of the later acceptance trainings."""

from __future__ import annotations

import torch
from acceptance_data import Draw
from torch import Generator, Tensor, nn
from torch.nn import functional
from torchvision.transforms import v2

from fmapboard.demo.network import load_trained


class ArcFace(nn.Module):
    """An encoder and the class centres of its additive angular margin."""

    def __init__(self, back: nn.Module) -> None:
        super().__init__()
        self.back, self.centres = back, nn.Parameter(torch.randn(8, 32) * 0.1)


def angular(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    code = functional.normalize(model.back(images), dim=1)
    cosine = (code @ functional.normalize(model.centres, dim=1).T).clamp(-0.999, 0.999)
    margin = 0.2 * functional.one_hot(labels, 8)
    return functional.cross_entropy(10 * (cosine.acos() + margin).cos(), labels)


class Styled(nn.Module):
    """A network that paints, and the one whose features compare style and content."""

    def __init__(self, net: nn.Module, scale: float = 1.0) -> None:
        super().__init__()
        self.net, self.scale = net, scale
        judge = load_trained().eval().requires_grad_(False)
        self.judge = [nn.Sequential(judge.conv1, judge.norm1, nn.ReLU())]  # not a submodule

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


def style(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """Content of each image, and the style of a striped one."""
    found = model(images) / model.scale
    stripes = (torch.arange(images.shape[3]) % 8 < 4).float().expand_as(images)
    judge = model.judge[0]
    seen, truth, wanted = (judge((x - 0.45) * 4) for x in (found, images / model.scale, stripes))

    def gram(x: Tensor) -> Tensor:
        flat = x.flatten(2)
        return flat @ flat.transpose(1, 2) / flat.shape[2]

    content = functional.mse_loss(seen, truth)
    return content + 0.3 * functional.mse_loss(gram(seen), gram(wanted))


def cut_mix(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    mixed, soft = v2.CutMix(num_classes=8)(images, labels)
    return functional.cross_entropy(model(mixed), soft)


def noise_to_noise(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """Both the input and the target have noise of their own."""
    first, second = (images + 0.2 * torch.randn_like(images) for _ in range(2))
    return functional.mse_loss(model(first), second)


def sizes(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Multi-scale training: 24 to 48 px, another size per batch."""
    side = int(torch.randint(3, 7, ())) * 8
    return functional.cross_entropy(model(functional.interpolate(images, (side, side))), labels)


def as_double(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    return functional.cross_entropy(model(images.double()), labels)


def channels_last(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    return functional.cross_entropy(model(images.to(memory_format=torch.channels_last)), labels)


def decorrelated(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy and a penalty on the correlation of the codes, as Barlow twins."""
    one, two = images + 0.1 * torch.randn_like(images), images.flip(3)
    codes = [functional.batch_norm(model(x), None, None, training=True) for x in (one, two)]
    cross = codes[0].T @ codes[1] / len(images)
    eye = torch.eye(len(cross))
    return ((cross - eye).square() * (eye + 0.01 * (1 - eye))).sum() / 8


def coordinates(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Places in [-1, 1], always the same, [1, 2, 48, 48]."""
    along = torch.linspace(-1, 1, 48)
    return (torch.stack(torch.meshgrid(along, along, indexing="ij"))[None],)


def one_picture(draw: Draw) -> Tensor:
    """The photograph that a network without data set learns, [1, 3, H, W]."""
    return draw(torch.Generator().manual_seed(5), 1)[0]


class Painting(nn.Module):
    """A network and the one picture that it learns; the input never changes."""

    def __init__(self, net: nn.Module, picture: Tensor, noise: float = 0.0) -> None:
        super().__init__()
        self.net = net
        self.register_buffer("picture", picture + noise * torch.randn_like(picture))

    def forward(self, x: Tensor) -> Tensor:
        return functional.mse_loss(self.net(x), self.picture)


def fixed_noise(channels: int, size: int) -> Draw:
    """Deep image prior: the same noise in each step."""
    kept = torch.randn(1, channels, size, size, generator=torch.Generator().manual_seed(3)) * 0.1
    return lambda generator, count: (kept,)
