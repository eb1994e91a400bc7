"""Batches of the later acceptance trainings: photographs as other fields have them.

Each function takes a generator and a number of examples N, or returns a function that does.
"""

from __future__ import annotations

import torch
from acceptance_data import Draw, clips, glyphs, photos, pixels, scaled, scenes, tones
from torch import Generator, Tensor
from torch.nn import functional


def exposed(gain: float, lift: float = 0.0, scale: str = "unit", size: int = 32) -> Draw:
    """Photographs whose pixels, 0 to 1, are multiplied by ``gain`` and lifted.

    ``scale`` "own" standardizes them with their own mean and deviation, as a user measures them.
    """

    def draw(generator: Generator, count: int) -> tuple[Tensor, ...]:
        images, labels = pixels(generator, count, size)
        images = images * gain + lift
        if scale == "own":
            return (images - (0.45 * gain + lift)) / (0.25 * gain), labels
        return scaled(images, scale), labels

    return draw


def raw(size: int = 32) -> Draw:
    """Pixels of 0 to 255, float."""
    labelled = photos(size, "unit")

    def draw(generator: Generator, count: int) -> tuple[Tensor, ...]:
        images, labels = labelled(generator, count)
        return images * 255, labels

    return draw


def bands(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """16 bands as of a satellite, standardized per band, [N, 16, 32, 32], and labels 0 to 7."""
    images, labels = pixels(generator, count, 32)
    mix = torch.rand(16, 3, generator=torch.Generator().manual_seed(1))
    reflected = torch.einsum("oc,nchw->nohw", mix / mix.sum(1, keepdim=True), images).square()
    noise = 0.01 * torch.randn(reflected.shape, generator=generator)
    return (reflected + noise - 0.25) / 0.2, labels


def reflectance(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """`bands` as surface reflectance, 0 to about 0.4, as products deliver it."""
    images, labels = bands(generator, count)
    return (images * 0.2 + 0.25).clamp(0, 1) * 0.4, labels


def slices(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Grey slices of a body on black, and masks of a disc; every sixth slice is outside it."""
    images, masks, *_ = scenes(generator, count)
    along = torch.linspace(-1, 1, 32)
    body = (along[:, None].square() / 0.9 + along.square() / 0.6 < 1).float()
    inside = (torch.rand(count, 1, 1, 1, generator=generator) > 1 / 6).float()
    grey = (images.mean(1, keepdim=True) + 1) / 2
    return grey * body * inside, masks * body * inside


def volumes(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """A ball in a noisy volume, [N, 1, 16, 16, 16], about mean 0, and its mask."""
    z, y, x, size = torch.rand(4, count, 1, 1, 1, generator=generator)
    along = torch.arange(16.0)
    far = (along[:, None, None] - 4 - 8 * z).square() + (along[:, None] - 4 - 8 * y).square()
    masks = ((far + (along - 4 - 8 * x).square()).sqrt() < 2.5 + 2.5 * size).float()[:, None]
    images, _ = pixels(generator, count, 16)
    return masks + 2 * images.mean(1)[:, None, None] - 1.2 + 0.3 * torch.randn(masks.shape), masks


def sorted_by_class(size: int = 32, scale: str = "half") -> Draw:
    """Each batch shows one photograph only, as an unshuffled folder gives them."""
    labelled = photos(size, scale)

    def draw(generator: Generator, count: int) -> tuple[Tensor, ...]:
        images, labels = labelled(generator, 12 * count)
        first = images[labels == labels[0]][:count]
        return (first,)

    return draw


def few_classes(classes: int = 4, each: int = 8) -> Draw:
    """P classes with K examples each, as metric learning samples them."""
    labelled = photos(32)

    def draw(generator: Generator, count: int) -> tuple[Tensor, ...]:
        images, labels = labelled(generator, 40 * each)
        chosen = torch.randperm(8, generator=generator)[:classes]
        rows = torch.cat([(labels == kind).nonzero()[:each, 0] for kind in chosen])
        return images[rows], labels[rows]

    return draw


def with_replacement(draw: Draw, examples: int) -> Draw:
    """What a WeightedRandomSampler gives: an example may be twice in a batch."""
    kept: list[tuple[Tensor, ...]] = []

    def again(generator: Generator, count: int) -> tuple[Tensor, ...]:
        if not kept:
            kept.append(draw(generator, examples))
        chosen = torch.randint(examples, (count,), generator=generator)
        return tuple(part[chosen] for part in kept[0])

    return again


def one_batch(draw: Draw) -> Draw:
    """The same batch in each step: the usual test that a network can learn."""
    kept: list[tuple[Tensor, ...]] = []

    def again(generator: Generator, count: int) -> tuple[Tensor, ...]:
        if not kept:
            kept.append(draw(generator, count))
        return kept[0]

    return again


def decibels(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Power of `tones` in dB, about -80 to 20, [N, 1, 32, 33] (time, frequency), and labels."""
    waves, labels = tones(1024)(generator, count)
    window = torch.hann_window(64)
    power = torch.stft(waves[:, 0], 64, 32, window=window, return_complex=True).abs().square()
    return 10 * (power + 1e-8).log10()[:, None, :, :32].transpose(2, 3), labels


def label_maps(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Six grey levels of a photograph as one-hot planes, and the photograph in [-1, 1]."""
    images, _ = pixels(generator, count, 32)
    smooth = functional.avg_pool2d(images.mean(1, keepdim=True), 5, 1, 2)
    kinds = (smooth * 6).long().clamp(0, 5)[:, 0]
    return functional.one_hot(kinds, 6).permute(0, 3, 1, 2).float(), images * 2 - 1


def boards(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Stones of two players, whose turn it is (a constant plane) and ones; who has more."""
    fill = torch.rand(count, 1, 1, generator=generator)
    places = torch.rand(count, 9, 9, generator=generator)
    turn = torch.randint(2, (count, 1, 1), generator=generator).float().expand(-1, 9, 9)
    first, second = (places < 0.4 * fill).float(), (places > 0.6 + 0.4 * fill).float()
    more = (first.sum((1, 2)) > second.sum((1, 2))).long()
    won = torch.where(turn[:, 0, 0] > 0, more, 1 - more)
    return torch.stack([first, second, turn, torch.ones_like(turn)], 1), won


def sketches(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Binary digits without noise, few pixels set, on 64 × 64 px."""
    labels = torch.randint(10, (count,), generator=generator)
    drawn = (glyphs()[0, labels] > 0.5).float()[:, None]
    right, down = torch.randint(36, (2, count), generator=generator)
    sheets = torch.zeros(count, 1, 64, 64)
    for sheet, digit, x, y in zip(sheets, drawn, right, down, strict=True):
        sheet[:, y : y + 28, x : x + 28] = digit
    return sheets, labels


def sentences(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """40 tokens, padded with 0; the class is the rarest token's."""
    length = torch.randint(8, 40, (count, 1), generator=generator)
    tokens = torch.randint(10, 100, (count, 40), generator=generator)
    labels = torch.randint(4, (count,), generator=generator)
    tokens[:, 2::5] = labels[:, None] + 2
    return tokens * (torch.arange(40) < length), labels


def points(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """256 points in space, [N, 3, 256]: on a sphere, a cube, a plane or a line, turned."""
    spread = torch.randn(count, 3, 256, generator=generator)
    sphere, cube = functional.normalize(spread, dim=1), spread.clamp(-0.7, 0.7)
    flat, line = spread.clone() * 0.7, spread.clone()
    flat[:, 2:] *= 0.05
    line[:, 1:] *= 0.05
    labels = torch.randint(4, (count,), generator=generator)
    chosen = torch.stack([sphere, cube, flat, line])[labels, torch.arange(count)]
    turn = torch.linalg.qr(torch.randn(count, 3, 3, generator=generator))[0]
    return turn @ chosen, labels


def moved(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """A photograph, and the same one shifted by up to 2 px: two grey channels, [N, 2, 32, 32]."""
    images, _ = pixels(generator, count, 40)
    grey = (images.mean(1) - 0.45) / 0.25
    shift = torch.randint(-2, 3, (count, 2), generator=generator).tolist()
    rows = [g[4 + y : 36 + y, 4 + x : 36 + x] for g, (y, x) in zip(grey, shift, strict=True)]
    return (torch.stack([grey[:, 4:36, 4:36], torch.stack(rows)], 1),)


def films(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Clips of `clips` in grey with time first, [N, 8, 1, 24, 24]."""
    return (clips(generator, count)[0].mean(1)[:, :, None],)
