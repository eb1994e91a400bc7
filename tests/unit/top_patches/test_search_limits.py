"""A search stays right where a model or its images limit what can be measured."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import fmapboard
from fmapboard.cli.main import run
from fmapboard.demo.bundled import bundled
from fmapboard.errors import WriteError
from fmapboard.top_patches.search import PatchSearch


class Exit(nn.Module):
    """Runs its second layer only on bright images."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3)

    def forward(self, x: Tensor) -> Tensor:
        hidden: Tensor = self.first(x)
        return self.second(hidden) if x.mean() > 0 else hidden


def test_a_layer_that_does_not_run_on_the_first_image_gets_crops_of_whole_images() -> None:
    images = torch.rand(3, 3, 12, 16)
    images[0] -= 5
    found = fmapboard.patches(Exit(), images, ["first", "second"], k=2, batch_size=1)
    assert found["second"].lost_at == "control flow that depends on the image"
    assert {crop.field for row in found["second"].crops for crop in row} == {(0, 0, 12, 16)}
    assert found["first"].cell == (3, 3)


class Pruned(nn.Module):
    """Keeps the tokens of an image that are above average, of which there are more or fewer."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.mix = nn.Conv2d(3, 8, 4, 4), nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.embed(x).flatten(2).transpose(1, 2)
        size = tokens.norm(dim=-1)
        kept = [one[norm > norm.mean()] for one, norm in zip(tokens, size, strict=True)]
        return torch.stack([self.mix(one[None]).mean((0, 1)) for one in kept])


def test_layers_with_another_number_of_tokens_per_image_get_crops_of_whole_images() -> None:
    torch.manual_seed(0)
    net, images = Pruned(), torch.rand(6, 3, 16, 16)
    counts = {fmapboard.extract(net, one[None], "mix")["mix"].shape[1] for one in images}
    assert len(counts) > 1
    found = fmapboard.patches(net, images, ["embed", "mix"], k=6)
    assert found["mix"].lost_at == "control flow that depends on the image"
    assert {len(row) for row in found["mix"].crops} == {6}
    assert {crop.field for row in found["mix"].crops for crop in row} == {(0, 0, 16, 16)}
    assert (found["embed"].cell, found["embed"].lost_at) == ((4, 4), None)


def test_values_do_not_depend_on_the_batch_size_where_nan_was_lost() -> None:
    torch.manual_seed(0)

    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3)

        def forward(self, x: Tensor) -> Tensor:
            hidden = self.first(x)
            share = (hidden > 0).to(hidden).mean()  # over the batch
            return self.second(hidden * share)  # type: ignore[no-any-return]

    net, images = Masked(), torch.randn(4, 3, 12, 16)
    values = [
        [
            row[0].value
            for row in fmapboard.patches(net, images, "second", batch_size=size)["second"].crops
        ]
        for size in (1, 4)
    ]
    assert values[0] == values[1]


def test_nan_and_infinite_pixels_of_the_first_image_do_not_make_fields_the_whole_image() -> None:
    images = torch.rand(2, 3, 12, 16)
    images[0, 0, 5, 5], images[0, 1, 2, 9] = torch.nan, torch.inf
    assert fmapboard.patches(nn.Conv2d(3, 4, 3), images)["Conv2d"].cell == (3, 3)


def test_positions_that_change_with_the_image_are_control_flow() -> None:
    class Pruned(nn.Module):
        """Keeps more tokens of bright images."""

        def __init__(self) -> None:
            super().__init__()
            self.embed, self.linear = nn.Conv2d(3, 8, 4, 4), nn.Linear(8, 8)

        def forward(self, x: Tensor) -> Tensor:
            tokens = self.embed(x).flatten(2).transpose(1, 2)
            kept = 10 + 5 * bool(x.mean() > 0)
            return self.linear(tokens[:, :kept])  # type: ignore[no-any-return]

    found = fmapboard.patches(Pruned(), torch.rand(2, 3, 20, 20), "linear", batch_size=1)
    assert found["linear"].lost_at == "control flow that depends on the image"


@pytest.mark.parametrize("option", ["log_dir", "out"])
def test_a_directory_that_cannot_be_written_to_is_refused_before_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.delattr(PatchSearch, "add")  # the search would fail
    net, place = nn.Conv2d(3, 4, 3), {option: tmp_path / "file" / "run"}
    with pytest.raises(WriteError, match="cannot write to"):
        fmapboard.patches(
            net, torch.rand(2, 3, 8, 8), log_dir=place.get("log_dir"), out=place.get("out")
        )


def test_the_command_refuses_a_directory_before_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.delattr(PatchSearch, "add")  # the search would fail
    photograph = str(bundled("photographs") / "coffee.jpg")
    with pytest.raises(SystemExit) as done:
        run(["patches", photograph, "--model", "demo", "--out", str(tmp_path / "file")])
    assert done.value.code == 2
    assert "is a file; expected a directory" in capsys.readouterr().err
