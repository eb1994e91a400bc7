"""Preprocessing in which the user's own numbers replace those that the weights expect."""

from __future__ import annotations

from dataclasses import replace

from fmapboard.cli.models.preprocessing import Preprocessing
from fmapboard.cli.preprocessing_options import Size
from fmapboard.errors import ConfigurationError


def changed(
    known: Preprocessing,
    *,
    mean: tuple[float, ...] | None = None,
    std: tuple[float, ...] | None = None,
    resize: Size | None = None,
    crop: Size | None = None,
) -> Preprocessing:
    """Preprocessing with these numbers, and ``known`` where they are None.

    A crop that is not given fits: after ``resize=96`` it is at most 96×96, and after a resize to
    height and width, or to none, nothing is cropped. A resize that is not given is raised to the
    crop.

    Raises:
        ConfigurationError: the numbers of channels differ, or a crop is larger than the image.
    """
    given = {"--mean": mean, "--std": std, "--resize": resize, "--crop": crop}
    named = [name for name, value in given.items() if value is not None]
    if not named:
        return known
    own_mean = known.mean if mean is None else _per_channel(mean, known.channels, "--mean")
    own_std = known.std if std is None else _per_channel(std, known.channels, "--std")
    side, size = _sizes(known, resize, crop)
    source = f"{', '.join(named)} as given" + (
        "" if len(named) == len(given) else f", otherwise {known.source}"
    )
    return replace(known, mean=own_mean, std=own_std, resize=side, size=size, source=source)


def _per_channel(numbers: tuple[float, ...], channels: int, option: str) -> tuple[float, ...]:
    if len(numbers) not in (1, channels):
        raise ConfigurationError(
            f"{option} has {len(numbers)} numbers: expected 1 or {channels}, one per channel of "
            "the model's input"
        )
    return numbers * (channels // len(numbers))


def _sizes(
    known: Preprocessing, resize: Size | None, crop: Size | None
) -> tuple[int | tuple[int, int] | None, tuple[int, int] | None]:
    """The sizes of the resized image and of the crop."""
    own = None if crop in (None, "none") else _square(crop)
    if resize is None:
        size = known.size if crop is None else own
        return _raised(known.resize, size or (0, 0)), size
    if resize == "none":
        return None, own
    if own is not None and any(
        side < need for side, need in zip(_square(resize), own, strict=True)
    ):
        raise ConfigurationError(
            f"--crop {own[0]}x{own[1]} is larger than --resize {_text(resize)}; give a larger "
            "--resize, or only one of the two"
        )
    if crop is not None or known.size is None or not isinstance(resize, int):
        return resize, own
    return resize, (min(resize, known.size[0]), min(resize, known.size[1]))


def _square(size: Size | None) -> tuple[int, int]:
    assert size is not None
    assert size != "none"
    return (size, size) if isinstance(size, int) else size


def _raised(
    resize: int | tuple[int, int] | None, crop: tuple[int, int]
) -> int | tuple[int, int] | None:
    """A resize after which the image covers the crop."""
    if resize is None:
        return None
    if isinstance(resize, int):
        return max(resize, *crop)
    return max(resize[0], crop[0]), max(resize[1], crop[1])


def _text(size: Size) -> str:
    return str(size) if isinstance(size, int) else "x".join(map(str, size))
