"""Makes the moving picture of the tab in README: ``python assets/make_moving_picture.py``.

A training whose rate is too high from step 120 on, as in ``make_tab_pictures``: the verdict, the
maps before and after, the film. Then the demonstration, which learns. Needs what
``make_tab_pictures`` needs.
"""

from __future__ import annotations

import argparse
import io
import tempfile
from pathlib import Path
from typing import NamedTuple

from make_pictures import CHROMIUM_FLAGS, DRAWN, HERE, chromium
from make_tab_pictures import logged_runs, served
from PIL import Image

WIDTH, HEIGHT = 1400, 760
MOST_BYTES = 2_000_000


class Scene(NamedTuple):
    """What is shown, and for how many ms."""

    state: dict[str, object]
    shown_ms: int


def scenes() -> list[Scene]:
    """The story in its order."""
    wrong = {"run": "goes_wrong", "layer": "fmapboard/block3.conv1"}
    steps = [Scene({**wrong, "step": step}, 450) for step in range(96, 160, 8)]
    return [
        Scene({"run": "goes_wrong", "view": "overview"}, 2600),
        *steps,
        Scene({**wrong, "step": 160}, 1600),
        Scene({**wrong, "view": "film", "step": 120}, 2400),
        Scene({"run": "demo", "view": "overview"}, 2400),
        Scene({"run": "demo", "layer": "fmapboard/conv2", "channel": 5}, 2200),
    ]


def take(logdir: Path) -> list[Image.Image]:
    """One picture per scene."""
    from playwright.sync_api import sync_playwright

    pictures = []
    with served(logdir) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=CHROMIUM_FLAGS)
        for scene in scenes():
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
            fields = "".join(f"&p.feature_maps.{key}={value}" for key, value in scene.state.items())
            page.goto(f"{address}#feature_maps{fields}")
            page.wait_for_selector("iframe")
            page.frames[-1].wait_for_function(DRAWN)
            page.wait_for_timeout(1500)  # the channel's history, and what is loaded late
            pictures.append(Image.open(io.BytesIO(page.screenshot())).convert("RGB"))
            page.close()
        browser.close()
    return pictures


def main() -> None:
    """Take the pictures and write them as one animated WebP."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--logdir", type=Path, help="with the runs, made before")
    parser.add_argument("--out", type=Path, default=HERE / "tab_moves.webp")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        logdir = logged_runs(options.logdir or Path(folder), ["tab_overview", "tab_demo"])
        first, *others = take(logdir)
    durations = [scene.shown_ms for scene in scenes()]
    settings = {"save_all": True, "loop": 0, "quality": 82, "method": 6}
    first.save(options.out, append_images=others, duration=durations, **settings)
    size = options.out.stat().st_size
    if size >= MOST_BYTES:
        raise SystemExit(f"{size} bytes")


if __name__ == "__main__":
    main()
