"""Where the photographs and the trained network that ship with fmapboard lie on disk."""

from __future__ import annotations

from pathlib import Path


def bundled(name: str = "") -> Path:
    """The path of a bundled file or folder, such as ``"photographs"``.

    An installed package carries them inside itself; a checkout has them in ``assets/bundled``.
    """
    inside = Path(__file__).parents[1] / "_bundled"
    folder = inside if inside.is_dir() else Path(__file__).parents[3] / "assets" / "bundled"
    return folder / name
