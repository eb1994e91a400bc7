"""Losses of the acceptance trainings that are not classifications, and data made for them."""

from __future__ import annotations

import torch
from acceptance_data import Draw, photos, scaled
from torch import Generator, Tensor, nn
from torch.nn import functional


def masks(model: nn.Module, images: Tensor, mask: Tensor, *_: Tensor) -> Tensor:
    return functional.binary_cross_entropy_with_logits(model(images), mask)


def dice(model: nn.Module, images: Tensor, mask: Tensor, *_: Tensor) -> Tensor:
    found = model(images).sigmoid()
    shared = (found * mask).sum((1, 2, 3))
    return (1 - (2 * shared + 1) / (found.sum((1, 2, 3)) + mask.sum((1, 2, 3)) + 1)).mean()


def depth(model: nn.Module, images: Tensor, _mask: Tensor, _discs: Tensor, far: Tensor) -> Tensor:
    return functional.smooth_l1_loss(model(images), far, beta=0.1)


def heat(model: nn.Module, images: Tensor, _mask: Tensor, discs: Tensor, *_: Tensor) -> Tensor:
    """A spot at the disc's centre, as in keypoint networks."""
    along = torch.arange(32.0)
    across = (along - discs[:, :1])[:, None, :].square()
    distance = across + (along - discs[:, 1:2])[:, :, None].square()
    return 10 * functional.mse_loss(model(images), (-distance / 18).exp()[:, None])


def detect(model: nn.Module, images: Tensor, _mask: Tensor, discs: Tensor, *_: Tensor) -> Tensor:
    """Objectness in every cell; the box in the cell of the centre."""
    score, box = model(images)
    column, row = (discs[:, :2] / 4).long().clamp(0, 7).T
    which = torch.arange(len(images))
    target = torch.zeros_like(score)
    target[which, 0, row, column] = 1
    inside = torch.cat([discs[:, :2] / 4 % 1, discs[:, 2:].log()], 1)
    found = functional.smooth_l1_loss(box[which, :, row, column], inside)
    weight = torch.where(target > 0, 8.0, 1.0)
    return functional.binary_cross_entropy_with_logits(score, target, weight) + found


def again(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    return functional.mse_loss(model(images), images)


def repaired(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """From an image with noise to the image."""
    return functional.mse_loss(model(images + 0.2 * torch.randn_like(images)), images)


def filled(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """From an image with a hole, and the hole's mask as a fourth channel, to the image."""
    hole = torch.zeros(len(images), 1, *images.shape[2:])
    hole[..., 10:22, 10:22] = 1
    found = model(torch.cat([images * (1 - hole), hole], 1))
    return functional.l1_loss(found, images)


def colours(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """From brightness to the colours."""
    return functional.mse_loss(model(images.mean(1, keepdim=True)), images)


def larger(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    small = functional.interpolate(images, scale_factor=0.5, mode="bicubic", antialias=True)
    return functional.l1_loss(model(small), images)


def own(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """Of a model that returns its loss."""
    return model(images)


def diffusion(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """The noise of a random time, cosine schedule."""
    time, noise = torch.rand(len(images)), torch.randn_like(images)
    clean = (time * torch.pi / 2).cos().view(-1, 1, 1, 1)
    mixed = clean * images + (1 - clean.square()).sqrt() * noise
    return functional.mse_loss(model(mixed, time), noise)


def levels(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """16 grey levels, each predicted from the pixels before it."""
    target = (images * 15).round().long()[:, 0]
    return functional.cross_entropy(model(images), target)


def next_sample(model: nn.Module, waves: Tensor, *_: Tensor) -> Tensor:
    return functional.mse_loss(model(waves[..., :-1]), waves[..., 1:])


def pairs(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Contrastive loss of neighbours in the batch; the two branches share their weights."""
    half = len(images) // 2
    first, second = model(images[:half]), model(images[half:])
    distance = functional.pairwise_distance(first, second)
    same = (labels[:half] == labels[half:]).float()
    apart = (2 - distance).clamp(min=0).square()
    return (same * distance.square() + (1 - same) * apart).mean()


def triplets(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Batch-hard triplet loss, soft margin, on unit vectors."""
    code = functional.normalize(model(images), dim=1)
    distance = (2 - 2 * code @ code.T).clamp(min=1e-6).sqrt()
    same = labels[:, None] == labels
    far = (distance * same).amax(1)
    near = (distance + 10 * same).amin(1)
    return functional.softplus(5 * (far - near)).mean()


def two_views(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """SimCLR's loss; the views differ in flip, contrast and noise."""

    def view() -> Tensor:
        gain = 0.7 + 0.6 * torch.rand(len(images), 1, 1, 1)
        shown = images.flip(3) if torch.rand(()) < 0.5 else images
        return shown * gain + 0.1 * torch.randn_like(images)

    code = functional.normalize(model(torch.cat([view(), view()])), dim=1)
    alike = code @ code.T / 0.2
    alike.fill_diagonal_(-1e4)
    count = len(images)
    return functional.cross_entropy(alike, (torch.arange(2 * count) + count) % (2 * count))


def colourless(size: int = 32, scale: str = "imagenet") -> Draw:
    """Crops in grey, three equal channels, and their labels 0 to 7."""
    labelled = photos(size, "unit")

    def draw(generator: Generator, count: int) -> tuple[Tensor, ...]:
        images, labels = labelled(generator, count)
        return scaled(images.mean(1, keepdim=True).expand_as(images), scale), labels

    return draw


def multi_label(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """One sigmoid per class."""
    target = functional.one_hot(labels, 8).float()
    return functional.binary_cross_entropy_with_logits(model(images), target)


def focal(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    loss = functional.cross_entropy(model(images), labels, reduction="none")
    return ((1 - (-loss).exp()).square() * loss).mean()


def regression(model: nn.Module, images: Tensor, _: Tensor) -> Tensor:
    """The mean colour and contrast of each image."""
    target = torch.cat([images.mean((2, 3)), images.flatten(1).std(1, keepdim=True)], 1)
    return functional.mse_loss(model(images), target)


def centre(model: nn.Module, images: Tensor, _mask: Tensor, discs: Tensor, *_: Tensor) -> Tensor:
    """Centre and radius of the disc, in units of 16 px."""
    return functional.smooth_l1_loss(model(images), discs / 16 - 1)
