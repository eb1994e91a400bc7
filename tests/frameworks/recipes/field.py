"""Run a recipe with the real library, with and without fmapboard; check what its section promises.

PYTHONPATH=tests/helpers python tests/frameworks/recipes/field.py RECIPE DIRECTORY
Exit status 0 if everything that the section promises is there, 1 otherwise.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from recipe_promises import check
from recipe_runs import train, train_unwatched

STEPS, EVERY = 4, 2


def main(recipe: str, directory: Path) -> int:
    steps = 8 if recipe == "ultralytics_yolo" else STEPS  # whole epochs
    watched = train(recipe, directory / "watched", steps=steps, every=EVERY)
    alone = train_unwatched(recipe, directory / "alone", steps=steps)
    check(recipe, directory / "watched", list(range(0, steps, EVERY)))
    differing = [name for name in alone if not torch.equal(watched[name], alone[name])]
    if differing:
        print(f"differ from training without fmapboard: {differing}", file=sys.stderr)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
