"""Losses of a model and a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from data import Draw
from loops import Loss
from torch import Tensor, nn
from torch.nn import functional
from torchvision.transforms import v2


def masks(model: nn.Module, images: Tensor, mask: Tensor, *_: Tensor) -> Tensor:
    return functional.binary_cross_entropy_with_logits(model(images), mask)


def dice(model: nn.Module, images: Tensor, mask: Tensor, *_: Tensor) -> Tensor:
    found = model(images).sigmoid()
    shared = (found * mask).sum((1, 2, 3))
    return (1 - (2 * shared + 1) / (found.sum((1, 2, 3)) + mask.sum((1, 2, 3)) + 1)).mean()


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


def multi_label(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """One sigmoid per class."""
    target = functional.one_hot(labels, 8).float()
    return functional.binary_cross_entropy_with_logits(model(images), target)


def focal(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    loss = functional.cross_entropy(model(images), labels, reduction="none")
    return ((1 - (-loss).exp()).square() * loss).mean()


def centre(model: nn.Module, images: Tensor, _mask: Tensor, discs: Tensor, *_: Tensor) -> Tensor:
    """Centre and radius of the disc, in units of 16 px."""
    return functional.smooth_l1_loss(model(images), discs / 16 - 1)


def classes(smoothing: float = 0.0) -> Loss:
    def loss(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
        return functional.cross_entropy(model(images), labels, label_smoothing=smoothing)

    return loss


def mixup(alpha: float = 0.2) -> Loss:
    """Cross-entropy of blended images, in training mode."""

    def loss(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
        share = float(torch.distributions.Beta(alpha, alpha).sample())
        order = torch.randperm(len(images))
        logits = model(share * images + (1 - share) * images[order])
        first = functional.cross_entropy(logits, labels)
        return share * first + (1 - share) * functional.cross_entropy(logits, labels[order])

    return loss


def flip(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of images flipped and jittered in brightness."""
    images = images.flip(3) if torch.rand(()) < 0.5 else images
    gain = 0.8 + 0.4 * torch.rand(len(images), 1, 1, 1)
    return functional.cross_entropy(model(images * gain), labels)


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


def one_picture(draw: Draw) -> Tensor:
    """The photograph that a network without data set learns, [1, 3, H, W]."""
    return draw(torch.Generator().manual_seed(5), 1)[0]


def augmented(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Flips, shifts by up to 3 px, and contrast, all per image."""
    images = torch.where(torch.rand(len(images), 1, 1, 1) < 0.5, images.flip(3), images)
    moves = torch.randint(-3, 4, (len(images), 2)).tolist()
    shown = torch.stack([x.roll(m, (1, 2)) for x, m in zip(images, moves, strict=True)])
    return functional.cross_entropy(
        model(shown * (0.8 + 0.4 * torch.rand(len(images), 1, 1, 1))), labels
    )


def both_masks(model: nn.Module, images: Tensor, mask: Tensor, *_: Tensor) -> Tensor:
    """Cross-entropy plus Dice."""
    logits = model(images)
    share = logits.sigmoid()
    overlap = 2 * (share * mask).sum() / (share.sum() + mask.sum() + 1)
    return functional.binary_cross_entropy_with_logits(logits, mask) + 1 - overlap


def two_classes(model: nn.Module, images: Tensor, mask: Tensor, *_: Tensor) -> Tensor:
    """Cross-entropy of two maps, background and disc."""
    return functional.cross_entropy(model(images), mask[:, 0].long())


def both_views(images: Tensor) -> list[Tensor]:
    """Two views; they differ in crop, flip, contrast and noise."""
    found = []
    for _ in range(2):
        top, left = torch.randint(0, 8, (2,)).tolist()
        shown = images[..., top : top + 24, left : left + 24]
        shown = shown.flip(3) if torch.rand(()) < 0.5 else shown
        gain = 0.7 + 0.6 * torch.rand(len(images), 1, 1, 1)
        found.append(shown * gain + 0.1 * torch.randn_like(shown))
    return found


def named(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    return functional.cross_entropy(model(images), labels)


def of_nodes(model: nn.Module, links: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return functional.cross_entropy(model(links, x), y)


CE = classes()


def told(model: nn.Module, x: Tensor, y: Tensor | None = None) -> Tensor:
    """The loss of transformers' models."""
    return model(x, labels=x if y is None else y).loss


def rolled(field: Any, y: Tensor) -> Tensor:
    """Ten steps, each by the slope half-way."""
    ways = [y]
    for _ in range(10):
        ways.append(ways[-1] + 0.05 * field(ways[-1] + 0.025 * field(ways[-1])))
    return torch.stack(ways)


def ignoring(model: nn.Module, images: Tensor, truth: Tensor) -> Tensor:
    return functional.cross_entropy(model(images), truth, ignore_index=255)


def centres(model: nn.Module, images: Tensor, _: Tensor, discs: Tensor, *__: Tensor) -> Tensor:
    """CenterNet: focal loss of Gaussian spots, L1 of size and offset at the centre."""
    found, place = model(images), discs[:, :2] / 2
    along, (column, row) = torch.arange(16.0), place.long().clamp(0, 15).T
    across = (along - column[:, None]).square()[:, None]
    spot = (-(across + (along - row[:, None]).square()[:, :, None]) / 4).exp()
    share = found["heat"][:, 0].sigmoid().clamp(1e-4, 1 - 1e-4)
    hits = (spot == 1) * (1 - share).square() * share.log()
    misses = (spot < 1) * (1 - spot).pow(4) * share.square() * (1 - share).log()
    which = torch.arange(len(images))
    size = (found["size"][which, 0, row, column] - discs[:, 2] / 8).abs().mean()
    offset = (found["offset"][which, :, row, column] - place % 1).abs().mean()
    return -(hits + misses).sum() / len(images) + 0.5 * size + offset


def matching(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Flow matching along straight lines from noise to digits."""
    noise, time = torch.randn_like(images), torch.rand(len(images))
    far, images = time[:, None, None, None], images * 2 - 1
    found = model((1 - far) * noise + far * images, time, labels)
    return functional.mse_loss(found, images - noise)


def mu_law(model: nn.Module, waves: Tensor, *_: Tensor) -> Tensor:
    """The next of 64 levels."""
    bent = waves.sign() * (1 + 255 * waves.abs().clamp(max=1)).log() / 5.545
    levels = ((bent + 1) * 31.5).round().long()[:, 0]
    return functional.cross_entropy(model(bent)[..., :-1], levels[:, 1:])


def error(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return functional.mse_loss(model(x), y)


def said(
    found: Tensor,
    truth: float,
    kind: Callable[..., Tensor] = functional.binary_cross_entropy_with_logits,
) -> Tensor:
    return kind(found, torch.full_like(found, truth))


def spoken(shift: int, model: nn.Module, text: Tensor) -> Tensor:
    """The targets are so many letters further."""
    return functional.cross_entropy(model(text[:, :24]).mT.float(), text[:, shift : shift + 24])


def answered(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return functional.binary_cross_entropy_with_logits(model(x), y)
