"""Makes the pictures of the tab for README and docs: ``python assets/make_tab_pictures.py``.

The demonstration is one run. Another goes wrong: a network of named blocks without normalization
is trained on the bundled photographs, and from step 120 on its learning rate is 12 times too high.
The third is of a small ViT of timm, for the page on transformers (``--only transformers_sheet --out
docs/pictures --width 1440``). Needs Debian's chromium and ``pip install playwright``.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from make_pictures import CHROMIUM_FLAGS, DRAWN, HERE, chromium, wait_for
from torch import Tensor, nn
from torch.nn import functional

import fmapboard
from fmapboard.cli.commands.serve import server_command
from fmapboard.demo.photographs import Photographs

PORT, HEIGHT = 6118, 780
STEPS, EVERY, WRONG_FROM, FACTOR = 240, 8, 120, 12
VIEWS = {
    "tab_demo": ("demo", {"view": "overview"}),
    "tab": ("demo", {"layer": "fmapboard/conv2", "channel": 5}),
    "tab_overview": ("goes_wrong", {"view": "overview"}),
    "tab_compare": ("demo", {"layer": "fmapboard/conv2", "compare": "demo@0", "show": "all"}),
    "tab_film": ("demo", {"view": "film", "layer": "fmapboard/conv2", "channels": "5,11"}),
    "tab_kernels": ("demo", {"layer": "fmapboard/conv1", "role": "kernels"}),
    "transformers_sheet": ("vit", {"view": "overview"}),
}
"""File name -> run, and state in the address."""


class Block(nn.Module):
    """Two convolutions with ReLU: [N, C, H, W] -> [N, D, H/2, W/2]."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.relu1 = nn.ReLU()
        self.conv2 = nn.Conv2d(outputs, outputs, 3, stride=2, padding=1)
        self.relu2 = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        """Both convolutions, each followed by ReLU."""
        out: Tensor = self.relu2(self.conv2(self.relu1(self.conv1(x))))
        return out


class Classifier(nn.Module):
    """Three blocks and a linear layer: images [N, 3, H, W] -> logits [N, classes]."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.block1, self.block2, self.block3 = Block(3, 24), Block(24, 48), Block(48, 96)
        self.classifier = nn.Linear(96, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Average the last maps and classify them."""
        maps = self.block3(self.block2(self.block1(images)))
        out: Tensor = self.classifier(maps.mean((2, 3)))
        return out


def goes_wrong(run: Path) -> None:
    """Train with a learning rate that jumps at `WRONG_FROM`."""
    photographs = Photographs.load()
    source = torch.Generator().manual_seed(1)
    torch.manual_seed(0)
    model = Classifier(len(photographs.names))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    probe = photographs.training_batch(16, torch.Generator().manual_seed(4))[0]
    with fmapboard.watch(model, run, optimizer=optimizer, every=EVERY, probe=probe):
        for step in range(STEPS):
            optimizer.param_groups[0]["lr"] = 0.05 * (FACTOR if step >= WRONG_FROM else 1)
            images, labels = photographs.training_batch(32, source)
            loss = functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]  # torch does not annotate it
            optimizer.step()


def vit(run: Path) -> None:
    """Train a ViT of four blocks; another crop is drawn at each logged step."""
    import timm

    photographs = Photographs.load()
    source = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    model = timm.models.VisionTransformer(
        img_size=48,
        patch_size=8,
        embed_dim=96,
        depth=4,
        num_heads=3,
        num_classes=len(photographs.names),
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
    with fmapboard.watch(model, run, optimizer=optimizer, every=25):
        for _ in range(200):
            images, labels = photographs.training_batch(16, source)
            loss = functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]  # torch does not annotate it
            optimizer.step()


@contextmanager
def served(logdir: Path) -> Iterator[str]:
    """TensorBoard on a log directory."""
    command = server_command(logdir, PORT, opens=False)
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as server:
        try:
            address = f"http://127.0.0.1:{PORT}/"
            wait_for(address + "data/runs")
            yield address
        finally:
            server.terminate()


def screenshots(logdir: Path, folder: Path, names: list[str], *, dark: bool, width: int) -> None:
    """Save the chosen `VIEWS`."""
    from playwright.sync_api import sync_playwright

    with served(logdir) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=CHROMIUM_FLAGS)
        for name in names:
            run, state = VIEWS[name]
            page = browser.new_page(viewport={"width": width, "height": HEIGHT})
            state = {"run": run, **state}
            fields = "".join(f"&p.feature_maps.{key}={value}" for key, value in state.items())
            page.goto(f"{address}{'?darkMode=true' if dark else ''}#feature_maps{fields}")
            page.wait_for_selector("iframe")
            page.frames[-1].wait_for_function(DRAWN)
            page.wait_for_timeout(1500)  # the channel's history, and what is loaded late
            page.screenshot(path=str(folder / f"{name}.png"))
            page.close()
        browser.close()


def logged_runs(logdir: Path, names: list[str]) -> Path:
    """The directory, with the runs of some `VIEWS` trained where they are missing."""
    missing = {VIEWS[name][0] for name in names if not (logdir / VIEWS[name][0]).exists()}
    if "demo" in missing:
        run = str(logdir / "demo")
        subprocess.run([sys.executable, "-m", "fmapboard", "demo", "--logdir", run], check=True)
    if "goes_wrong" in missing:
        goes_wrong(logdir / "goes_wrong")
    if "vit" in missing:
        vit(logdir / "vit")
    return logdir


def main() -> None:
    """Train the runs, unless a log directory has them, and take the pictures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--logdir", type=Path, help="with the runs, made before")
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--only", nargs="*", default=list(VIEWS), choices=list(VIEWS))
    parser.add_argument("--width", type=int, default=1500)
    parser.add_argument("--dark", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        logdir = logged_runs(options.logdir or Path(folder), options.only)
        options.out.mkdir(parents=True, exist_ok=True)
        screenshots(logdir, options.out, options.only, dark=options.dark, width=options.width)


if __name__ == "__main__":
    main()
