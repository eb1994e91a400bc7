"""A few steps of each recipe's script leave what its page promises.

Libraries that CI does not have are replaced by small networks of the same kinds of layers in
``stand_ins``; ``.ci/field`` runs the same checks with the real ones.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from recipe_promises import PROMISES, check
from recipe_runs import RECIPES, train, train_unwatched

STAND_INS = Path(__file__).parent / "stand_ins"
REPLACED = {path.stem for path in STAND_INS.iterdir() if path.stem != "__pycache__"}
STEPS, EVERY = 3, 2


def forget() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] in REPLACED]:
        del sys.modules[name]


@pytest.fixture(autouse=True)
def without_heavy_libraries(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Import the stand-ins, even if the real libraries are installed."""
    monkeypatch.syspath_prepend(STAND_INS)
    forget()
    yield
    forget()


def test_the_promises_of_every_script_are_checked() -> None:
    assert {path.stem for path in RECIPES.glob("*.py")} == set(PROMISES)


@pytest.mark.parametrize(
    "recipe",
    [  # `.ci/field` runs detection too
        pytest.param(recipe, marks=pytest.mark.sweep if recipe == "detection" else ())
        for recipe in sorted(PROMISES)
    ],
)
def test_a_recipe_leaves_what_its_page_promises_and_trains_as_it_would_unwatched(
    recipe: str, tmp_path: Path
) -> None:
    steps = 8 if recipe == "ultralytics_yolo" else STEPS  # whole epochs
    watched = train(recipe, tmp_path / "watched", steps=steps, every=EVERY)
    alone = train_unwatched(recipe, tmp_path / "alone", steps=steps)
    check(recipe, tmp_path / "watched", list(range(0, steps, EVERY)))
    assert not list((tmp_path / "alone").rglob("*.fmapboard"))
    assert watched.keys() == alone.keys()
    assert [name for name in alone if not torch.equal(watched[name], alone[name])] == []


def test_the_transposed_convolution_of_a_u_net_is_watched_beside_the_others(
    tmp_path: Path,
) -> None:
    train("segmentation", tmp_path, steps=2, every=1)
    records = check("segmentation", tmp_path, [0, 1])["fmapboard/decoder.blocks.0.up"]
    assert [(step, value[0]["type"]) for step, value in records] == [
        (0, "ConvTranspose2d"),
        (1, "ConvTranspose2d"),
    ]
