"""Paths of the files that ship with fmapboard: the photographs and the trained network."""

from __future__ import annotations

from pathlib import Path


def bundled(name: str = "") -> Path:
    """The path of a bundled file or folder, such as ``"photographs"``.

    In an installed package the files are inside it; in a checkout they are in ``assets/bundled``.
    """
    inside = Path(__file__).parents[1] / "_bundled"
    if inside.is_dir():
        return inside / name
    return Path(__file__).parents[3] / "assets" / "bundled" / name


PHOTOGRAPH = bundled("photographs") / "chelsea.jpg"
"""The image that the commands take where none is given."""
