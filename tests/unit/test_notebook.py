"""Feature maps as a notebook displays them."""

from __future__ import annotations

import base64
import io
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn
from torchvision.utils import make_grid

import fmapboard
from fmapboard.errors import ConfigurationError


def maps() -> dict[str, torch.Tensor]:
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 20, 3), nn.Flatten())
    net.append(nn.Linear(20 * 36 * 36, 5))
    return fmapboard.extract(net, torch.rand(2, 3, 40, 40), layers=[nn.Conv2d, nn.Linear])


def images(page: str) -> list[Image.Image]:
    found = re.findall(r"data:image/png;base64,([^']+)'", page)
    return [Image.open(io.BytesIO(base64.b64decode(data))) for data in found]


def test_extract_returns_a_dict_that_prints_names_and_shapes() -> None:
    found = maps()
    assert isinstance(found, dict)
    assert repr(found) == (
        "LayerMaps of 3 layers\n"
        "  0: float32 [2, 8, 38, 38]\n"
        "  2: float32 [2, 20, 36, 36]\n"
        "  4: float32 [2, 5]"
    )


def test_extract_shows_a_grid_for_each_layer_that_has_maps() -> None:
    page = maps()._repr_html_()
    assert page.count("<tr>") == 3
    assert "<b>2</b><br>float32 [2, 20, 36, 36]" in page
    assert [image.size for image in images(page)] == [(82, 162), (154, 154)]
    assert "title='16 of 20 channels'" in page


def test_names_are_escaped() -> None:
    class Marked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.add_module("<b>", nn.Conv2d(1, 1, 1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.get_submodule("<b>")(x)

    page = fmapboard.extract(Marked(), torch.rand(1, 1, 4, 4))._repr_html_()
    assert "<b>&lt;b&gt;</b>" in page


def test_layers_without_a_tensor_and_empty_batches_are_listed_without_a_picture() -> None:
    from fmapboard.notebook import LayerMaps

    mixed = LayerMaps(none=None, pair=(torch.rand(1, 2, 4, 4), 3), empty=torch.rand(0, 2, 4, 4))
    assert "none: NoneType\n" in repr(mixed)
    assert "pair: tuple with float32 [1, 2, 4, 4]" in repr(mixed)
    assert len(images(mixed._repr_html_())) == 1


def test_what_extract_returns_is_saved_and_loaded_as_plain_tensors(tmp_path: Path) -> None:
    found = maps()
    torch.save(found, tmp_path / "maps.pt")
    loaded = torch.load(tmp_path / "maps.pt", weights_only=True)
    assert list(loaded) == ["0", "2", "4"]
    assert torch.equal(loaded["2"], found["2"])
    assert b"fmapboard" not in (tmp_path / "maps.pt").read_bytes()


def test_a_grid_has_the_pixels_of_make_grid(tmp_path: Path) -> None:
    from torchvision.utils import make_grid

    tensor = torch.rand(2, 6, 40, 40)
    grid = fmapboard.draw(tensor, sample=1)
    grid.save(tmp_path / "grid.png")
    expected = make_grid(tensor[1].unsqueeze(1), nrow=2, normalize=True, scale_each=True)
    pixels = np.asarray(Image.open(tmp_path / "grid.png"))
    assert np.abs(pixels - (expected[0] * 255).numpy()).max() <= 1
    assert Image.open(io.BytesIO(grid._repr_png_())).size == (86, 128)
    assert repr(grid) == "Grid(86×128 px, 6 channels)"


def test_a_grid_says_what_it_left_out() -> None:
    grid = fmapboard.draw(torch.rand(1, 100, 128, 128), max_channels=4)
    assert repr(grid) == "Grid(134×134 px, 4 of 100 channels; each pixel is the mean of 2×2 values)"


def test_nrow_is_the_number_of_tiles_per_row() -> None:
    eight = torch.rand(1, 8, 40, 40)
    expected = make_grid(eight[0][:, None], nrow=3, normalize=True, scale_each=True)[0] * 255
    drawn = np.asarray(fmapboard.draw(eight, nrow=3))
    assert np.abs(drawn - expected.numpy()).max() <= 1
    assert np.asarray(fmapboard.draw(eight, nrow=99)).shape == (44, 338)
    for wrong in (0, 2.0, True):
        with pytest.raises(ConfigurationError, match=f"nrow={wrong}: expected a number of tiles"):
            fmapboard.draw(eight, nrow=wrong)


def test_tokens_that_fill_a_square_are_drawn_as_patches() -> None:
    assert "4 channels" in repr(fmapboard.draw(torch.rand(1, 17, 4)))


def test_a_sequence_is_drawn_as_rows_if_its_channel_axis_is_given() -> None:
    maps = torch.tensor([[[0.0, 1.0, 2.0], [9.0, 5.0, 7.0]]])  # [N, C, L]
    expected = [[0, 127, 255], [255, 0, 127]]
    for tensor, axis in ((maps, 1), (maps.transpose(1, 2), 2), (maps.transpose(1, 2), -1)):
        grid = fmapboard.draw(tensor, channel_axis=axis)
        rows = grid.picture.pixels.repeat(1, axis=0)[::11, ::11]  # 3 px are enlarged to 33
        assert rows.tolist() == expected
        assert "one row of pixels per channel" in repr(grid)


def test_the_slice_of_a_volume_can_be_chosen() -> None:
    maps = torch.arange(4.0)[:, None, None].expand(1, 1, 4, 40, 40) + torch.rand(40, 40)
    first, middle = fmapboard.draw(maps, depth=0), fmapboard.draw(maps)
    assert "depth slice 0 of 0…3" in repr(first)
    assert "depth slice 2 of 0…3" in repr(middle)


def test_extract_shows_sequences_as_watch_draws_them() -> None:
    from fmapboard.render.grid import enlarge
    from fmapboard.writers.folder import MemoryWriter

    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv1d(2, 3, 1), nn.GroupNorm(1, 3), nn.Conv1d(3, 4, 3)).eval()
    x, kept = torch.rand(1, 2, 40), MemoryWriter()
    layers = [nn.Conv1d, nn.GroupNorm]
    with fmapboard.watch(model, writer=kept, layers=layers, kernels=False) as board:
        board.begin_step(0, training=False)
        model(x)
        board.end_step()
    logged = [enlarge(tagged.samples[0]).pixels for tagged in kept.steps[0].pictures]
    shown = images(fmapboard.extract(model, x, layers=layers)._repr_html_())
    assert len(shown) == len(logged) == 3
    for image, pixels in zip(shown, logged, strict=True):
        assert np.array_equal(np.asarray(image), pixels)


@pytest.mark.parametrize(
    ("arguments", "options", "text"),
    [
        (
            torch.rand(2, 3, 4, 4),
            {"sample": 2},
            "sample=2: the maps have 2 samples, counted from 0",
        ),
        (torch.rand(2, 3, 5), {}, r"maps of shape \[2, 3, 5\] cannot be drawn"),
        (torch.rand(2, 3, 5), {"channel_axis": 3}, r"channel_axis=3: .* one of the axes 1 to 2"),
        (torch.rand(2, 3, 5), {"channel_axis": 0}, "channel_axis=0: .* axis 0 holds the samples"),
        (torch.rand(1, 2, 3, 4, 4), {"depth": -1}, "depth=-1: expected the index of a depth"),
        (torch.rand(2, 3, 4, 4), {"colormap": "jet"}, "no palette 'jet'"),
        (torch.rand(2, 3, 4, 4), {"scale": "locked"}, "expected 'channel' or 'layer'"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    arguments: torch.Tensor, options: dict[str, object], text: str
) -> None:
    with pytest.raises(fmapboard.ConfigurationError, match=text):
        fmapboard.draw(arguments, **options)
