"""Makes the pictures of the README: ``python assets/make_pictures.py``.

Needs Debian's chromium and ``pip install playwright`` for the screenshots of TensorBoard.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
from PIL import Image

import fmapboard
from fmapboard.cli.commands.serve import server_command
from fmapboard.demo.bundled import bundled
from fmapboard.imaging.images import read_image
from fmapboard.imaging.models.load import load_model
from fmapboard.imaging.models.request import ModelRequest
from fmapboard.measure.reducer import Reducer
from fmapboard.records import LayerCall
from fmapboard.render import png
from fmapboard.render.grid import draw_maps
from fmapboard.render.palettes import palette

HERE = Path(__file__).parent / "pictures"
CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PORT = 6117
DRAWN = """() => document.documentElement.dataset.ready === 'true'
  && document.documentElement.dataset.busy === 'false'"""


def marks() -> Image.Image:
    """One layer's maps of a photograph with every kind of bad channel put in, in three palettes."""
    loaded = load_model(ModelRequest("demo"))
    photograph = read_image(bundled("photographs") / "chelsea.jpg")
    batch = loaded.preprocessing(photograph)[None]
    maps = fmapboard.extract(loaded.model, batch, "conv2")["conv2"]  # [1, 32, H, W]
    maps[0, 3] = float("nan")
    maps[0, 7, 10:30, 10:30] = float("inf")
    maps[0, 8, 20:40, 30:50] = -float("inf")
    maps[0, 11] = 0.5
    maps[0, 16] = 0.0
    dead = np.arange(32) == 16
    pictures = []
    for name in ("grey", "viridis", "signed"):
        reduce = Reducer(max_channels=None, zero_centered=palette(name).zero_centered)
        layer = loaded.model.conv2
        planes = reduce(LayerCall("conv2", "Conv2d"), "feature_maps", maps, layer).planes
        assert planes is not None
        picture = draw_maps(planes.to_host(), 0, palette(name), dead)
        pictures.append(Image.open(io.BytesIO(png.encode(picture))).convert("RGB"))
    width = sum(picture.width + 10 for picture in pictures) - 10
    sheet = Image.new("RGB", (width, pictures[0].height), "white")
    for number, picture in enumerate(pictures):
        sheet.paste(picture, (number * (picture.width + 10), 0))
    return sheet


def screenshots(run: Path, cwd: str) -> None:
    """Save TensorBoard's Images tab on a run, in headless Chromium."""
    from playwright.sync_api import sync_playwright

    command = server_command(run, PORT, opens=False)
    with subprocess.Popen(command, cwd=cwd, stderr=subprocess.DEVNULL) as server:
        try:
            wait_for(f"http://127.0.0.1:{PORT}/data/runs")
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(
                    executable_path=chromium(), args=CHROMIUM_FLAGS
                )
                page = browser.new_page(viewport={"width": 1280, "height": 900})
                page.goto(f"http://127.0.0.1:{PORT}/#images")
                page.wait_for_selector("tf-image-loader img")
                page.wait_for_timeout(4000)  # the pictures load one after the other
                page.screenshot(path=str(HERE / "images_tab.png"))
                browser.close()
        finally:
            server.terminate()


def chromium() -> str:
    """The program: its headless shell, if there is one."""
    names = ("chromium-headless-shell", "chromium", "google-chrome")
    found = [path for name in names if (path := shutil.which(name))]
    if not found:
        raise SystemExit("there is no Chromium")
    return found[0]


def wait_for(url: str) -> None:
    """Wait until a server answers at an address."""
    for _ in range(100):
        try:
            urllib.request.urlopen(url).close()
        except urllib.error.URLError:
            time.sleep(0.2)
        else:
            return
    raise TimeoutError(url)


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    marks().save(HERE / "marks.png", optimize=True)
    with tempfile.TemporaryDirectory() as folder:
        demo = [sys.executable, "-c", "from fmapboard.cli.main import run; run()", "demo"]
        subprocess.run(demo, check=True, cwd=folder)
        screenshots(Path("runs/demo"), folder)
