"""What `draw` returns, as a PIL image, a NumPy array, on screen and as a matplotlib figure."""

from __future__ import annotations

import io
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import fmapboard

MAPS = torch.linspace(0, 1, 4 * 40 * 40).view(1, 4, 40, 40)


@pytest.mark.parametrize(("colormap", "mode"), [("grey", "L"), ("viridis", "RGB")])
def test_image_and_array_have_the_pixels_of_the_png(colormap: str, mode: str) -> None:
    grid = fmapboard.draw(MAPS, colormap=colormap)
    png = Image.open(io.BytesIO(grid._repr_png_())).convert(mode)
    assert grid.image.mode == mode
    assert np.array_equal(np.asarray(grid.image), np.asarray(png))
    assert np.array_equal(np.asarray(grid), np.asarray(png))
    assert np.asarray(grid).dtype == np.uint8
    assert np.asarray(grid, dtype=np.float32).dtype == np.float32


def test_a_changed_array_does_not_change_the_grid() -> None:
    grid = fmapboard.draw(MAPS)
    before = grid._repr_png_()
    np.asarray(grid)[:] = 0
    assert grid._repr_png_() == before


def test_show_opens_a_viewer_or_displays_below_the_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []
    grid = fmapboard.draw(MAPS)
    monkeypatch.setattr(Image.Image, "show", lambda image: shown.append(image))
    grid.show()
    assert [image.size for image in shown] == [grid.image.size]

    shell, display = ModuleType("IPython"), ModuleType("IPython.display")
    shell.get_ipython = lambda: SimpleNamespace(kernel=1)  # type: ignore[attr-defined]
    display.display = shown.append  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    grid.show()
    assert shown[1] is grid
    shell.get_ipython = lambda: None  # type: ignore[attr-defined]  # IPython without a notebook
    grid.show()
    assert len(shown) == 3
    assert shown[2] is not grid


def test_without_matplotlib_figure_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(fmapboard.MissingExtra, match="pip install matplotlib"):
        fmapboard.draw(MAPS).figure()


class _Axes:
    """Records what is called on it, in place of `matplotlib.axes.Axes`."""

    def __init__(self, figure: Any) -> None:
        self.figure, self.drawn, self.title = figure, np.zeros(0), ""

    def imshow(self, pixels: Any, **options: Any) -> None:
        self.drawn, self.options = pixels, options

    def set_axis_off(self) -> None: ...

    def set_title(self, title: str, **_: Any) -> None:
        self.title = title


def test_a_figure_shows_the_pixels_titled_with_what_is_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    grid = fmapboard.draw(torch.rand(1, 9, 128, 128), max_channels=4)
    given = _Axes("mine")
    assert grid.figure(given) == "mine"
    assert np.array_equal(given.drawn, np.asarray(grid))
    assert given.title == "4 of 9 channels; each pixel is the mean of 2×2 values"
    assert given.options["interpolation"] == "nearest"

    made = SimpleNamespace()
    made.add_axes = lambda box: _Axes((made, box))
    plt = ModuleType("matplotlib.pyplot")
    plt.figure = lambda figsize, dpi: setattr(made, "size", (figsize, dpi)) or made  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "matplotlib", ModuleType("matplotlib"))
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", plt)
    figure, (_, _, width, height) = grid.figure()
    assert figure is made
    rows, columns = np.asarray(grid).shape
    (inches_wide, inches_high), dpi = made.size
    assert height * inches_high * dpi == pytest.approx(rows)  # one pixel per pixel
    assert width * inches_wide * dpi >= columns
