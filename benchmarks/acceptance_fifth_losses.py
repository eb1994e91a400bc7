"""Tasks of the fifth set: what is predicted, and data made for it from the bundled photographs."""

from __future__ import annotations

import torch
from acceptance_data import Draw, photos, pixels, scaled
from torch import Generator, Tensor, nn
from torch.nn import functional

ORDERS = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 0, 1], [3, 2, 1, 0], [1, 2, 3, 0]])


def rotated(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """By which quarter turn the image was rotated."""
    turns = torch.arange(len(images)) % 4
    shown = torch.stack([x.rot90(n, (1, 2)) for x, n in zip(images, turns.tolist(), strict=True)])
    return functional.cross_entropy(model(shown), turns)


def jigsaw(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """In which of five orders the quarters of the image are."""
    order = torch.arange(len(images)) % len(ORDERS)
    rows = [half.chunk(2, 3) for half in images.chunk(2, 2)]
    parts = torch.stack([part for row in rows for part in row], 1)
    parts = parts[torch.arange(len(images))[:, None], ORDERS[order]]
    top, bottom = torch.cat([*parts[:, :2].unbind(1)], 3), torch.cat([*parts[:, 2:].unbind(1)], 3)
    return functional.cross_entropy(model(torch.cat([top, bottom], 2)), order)


def smoothed(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    return functional.cross_entropy(model(images), labels, label_smoothing=0.1)


def augmented(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Flips, shifts by up to 3 px, and contrast, all per image."""
    images = torch.where(torch.rand(len(images), 1, 1, 1) < 0.5, images.flip(3), images)
    moves = torch.randint(-3, 4, (len(images), 2)).tolist()
    shown = torch.stack([x.roll(m, (1, 2)) for x, m in zip(images, moves, strict=True)])
    return functional.cross_entropy(
        model(shown * (0.8 + 0.4 * torch.rand(len(images), 1, 1, 1))), labels
    )


def cut_mix(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """A quarter of each image comes from another one."""
    order, side = torch.randperm(len(images)), images.shape[-1] // 2
    top, left = torch.randint(0, side, (2,)).tolist()
    shown = images.clone()
    shown[..., top : top + side, left : left + side] = images[
        order, :, top : top + side, left : left + side
    ]
    logits = model(shown)
    own, other = (functional.cross_entropy(logits, y) for y in (labels, labels[order]))
    return 0.75 * own + 0.25 * other


def margins(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    return functional.multi_margin_loss(model(images), labels)


def squared(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Squared error of the class's indicator, times the number of classes."""
    return 8 * functional.mse_loss(model(images), functional.one_hot(labels, 8).float())


def groups(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Five attributes, each of several classes, as independent sigmoids."""
    member = torch.stack([labels % 2 == 0, labels < 4, labels % 3 == 0, labels > 5, labels == 1], 1)
    return functional.binary_cross_entropy_with_logits(model(images), member.float())


def statistics(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """Mean and deviation of each colour plane, smooth L1."""
    target = torch.cat([images.mean((2, 3)), images.std((2, 3))], 1)
    return functional.smooth_l1_loss(model(images), target, beta=0.1)


def denoised(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    noisy = images + 0.15 * torch.randn_like(images)
    return functional.l1_loss(model(noisy), images)


def rebuilt(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """Three of ten pixels are missing."""
    seen = (torch.rand_like(images[:, :1]) > 0.3).float()
    return functional.l1_loss(model(images * seen), images)


def boundary(model: nn.Module, images: Tensor, mask: Tensor) -> Tensor:
    """Edges of photographs, cross-entropy that weighs the rare class."""
    weight = torch.tensor(3.0)
    return functional.binary_cross_entropy_with_logits(model(images), mask, pos_weight=weight)


def both_masks(model: nn.Module, images: Tensor, mask: Tensor, *_: Tensor) -> Tensor:
    """Cross-entropy plus Dice."""
    logits = model(images)
    share = logits.sigmoid()
    overlap = 2 * (share * mask).sum() / (share.sum() + mask.sum() + 1)
    return functional.binary_cross_entropy_with_logits(logits, mask) + 1 - overlap


def two_classes(model: nn.Module, images: Tensor, mask: Tensor, *_: Tensor) -> Tensor:
    """Cross-entropy of two maps, background and disc."""
    return functional.cross_entropy(model(images), mask[:, 0].long())


def proxies(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Cosine softmax: the model returns unit-free cosines to a proxy of each class."""
    return functional.cross_entropy(8 * model(images), labels)


def triplet(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Mean over all triplets of the batch with a margin of 0.5, on unit vectors."""
    code = functional.normalize(model(images), dim=1)
    far = 1 - code @ code.T
    same = (labels[:, None] == labels).float()
    valid = same[:, :, None] * (1 - same)[:, None, :]
    cost = (far[:, :, None] - far[:, None, :] + 0.5).clamp(min=0)
    return (cost * valid).sum() / valid.sum().clamp(min=1)


def views(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """InfoNCE of two crops of each of 24 images."""
    images = images[:24]
    size = images.shape[-1] - 6
    codes = []
    for _ in range(2):
        top, left = torch.randint(0, 7, (2,)).tolist()
        shown = images[..., top : top + size, left : left + size]
        codes.append(functional.normalize(model(shown * (0.8 + 0.4 * torch.rand(())))))
    return functional.cross_entropy(codes[0] @ codes[1].T / 0.2, torch.arange(len(images)))


def spots(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Photographs of 32 px with 0 to 3 bright squares, and their number."""
    images, _ = photos(32)(generator, count)
    number = torch.randint(0, 4, (count,), generator=generator)
    for image, n in zip(images, number.tolist(), strict=True):
        for y, x in torch.randint(2, 27, (n, 2), generator=generator).tolist():
            image[:, y : y + 4, x : x + 4] = torch.tensor([2.5, -1.5, 2.5])[:, None, None]
    return images, number


def tinted(size: int = 32, scale: str = "half") -> Draw:
    """Photographs times a random colour, and the colour."""

    def draw(generator: Generator, count: int) -> tuple[Tensor, ...]:
        images, _ = pixels(generator, count, size)
        colour = 0.4 + 0.6 * torch.rand(count, 3, generator=generator)
        return scaled(images * colour[:, :, None, None], scale), colour

    return draw


def tint(model: nn.Module, images: Tensor, colour: Tensor) -> Tensor:
    return 10 * functional.mse_loss(model(images).sigmoid(), colour)
