"""Speed of ``visualize`` relative to the bare network: ``python benchmarks/visualize_folder.py``.

Runs ResNet-18 on 200 crops of the bundled photographs: bare forward passes on preprocessed batches
(eval mode, no_grad, same batch size and threads), and all of ``visualize`` (reading, decoding,
preprocessing, forward passes, drawing, encoding, writing). The two alternate; ratios are of the
median images per second.
"""

from __future__ import annotations

import argparse
import random
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from PIL import Image
from rich.console import Console
from rich.table import Table
from torch import Tensor
from workloads import machine

from fmapboard.demo.bundled import bundled
from fmapboard.imaging.images import find_images, read_image
from fmapboard.imaging.models.load import load_model
from fmapboard.imaging.models.request import LoadedModel, ModelRequest
from fmapboard.imaging.read_images import ReadImages
from fmapboard.imaging.visualize import Drawing, draw_folder


def make_images(folder: Path, count: int) -> list[Path]:
    """Write ``count`` JPEG crops of 300 to 500 px, always the same ones."""
    drawn = random.Random(0)
    photographs = [
        Image.open(path).convert("RGB") for path in sorted(bundled("photographs").glob("*.jpg"))
    ]
    paths = []
    for number in range(count):
        photograph = photographs[number % len(photographs)]
        side = min(*photograph.size, drawn.randint(300, 500))
        left = drawn.randint(0, photograph.width - side)
        top = drawn.randint(0, photograph.height - side)
        paths.append(folder / f"crop{number:03}.jpg")
        photograph.crop((left, top, left + side, top + side)).save(paths[-1], quality=92)
    return paths


def bare(loaded: LoadedModel, batches: list[Tensor]) -> None:
    with torch.no_grad():
        for batch in batches:
            loaded.model(batch)


def ours(
    drawing: Drawing, loaded: LoadedModel, paths: list[Path], place: Path, *, files: bool
) -> None:
    ahead = 2 * drawing.batch_size
    draw_folder(
        drawing, loaded.model, ReadImages.of(find_images(paths), loaded.preprocessing, ahead=ahead),
        logdir=place / "run", out=place / "png" if files else None,
        say=str, each=lambda name, written: None,
    )  # fmt: skip


def timed(act: Callable[[], None]) -> tuple[float, float]:
    """Wall time and CPU time of a call, s."""
    wall, cpu = time.perf_counter(), time.process_time()
    act()
    return time.perf_counter() - wall, time.process_time() - cpu


def measure(
    loaded: LoadedModel, paths: list[Path], options: argparse.Namespace
) -> dict[str, list[tuple[float, float]]]:
    prepare, size = loaded.preprocessing, options.batch_size
    prepared = torch.stack([prepare(read_image(path)) for path in paths])
    batches = list(prepared.split(size))
    drawing = Drawing(batch_size=size)
    places = {"TensorBoard": False, "TensorBoard and PNG files": True}
    spent: dict[str, list[tuple[float, float]]] = {name: [] for name in ("bare", *places)}
    for number in range(options.rounds + 1):
        for name, files in places.items():
            cost = timed(lambda: bare(loaded, batches))
            if number:  # the first round warms up
                spent["bare"].append(cost)
            with tempfile.TemporaryDirectory(dir=options.folder) as place:
                cost = timed(
                    lambda p=place, f=files: ours(drawing, loaded, paths, Path(p), files=f)
                )
            if number:
                spent[name].append(cost)
    return spent


def table(spent: dict[str, list[tuple[float, float]]], images: int) -> Table:
    found = Table("", "images per s", "vs. bare", "wall per image", "CPU per image")
    middle = {
        name: [statistics.median(c) for c in zip(*s, strict=True)] for name, s in spent.items()
    }
    for name, (wall, cpu) in middle.items():
        found.add_row(
            name,
            f"{images / wall:.1f}",
            f"{middle['bare'][0] / wall:.2f}",
            f"{wall / images * 1e3:.1f} ms",
            f"{cpu / images * 1e3:.1f} ms",
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=200)
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--threads", type=int, help="torch threads for both (default: torch's)")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--folder", help="for temporary files (default: the system's)")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    loaded = load_model(ModelRequest(options.model, weights="none"))
    loaded.model.eval()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        paths = make_images(Path(folder), options.images)
        spent = measure(loaded, paths, options)
    Console().print(
        f"{options.model}, {options.images} images in batches of {options.batch_size}, "
        f"medians of {options.rounds} rounds (bare: {2 * options.rounds})\n{machine()}"
    )
    Console().print(table(spent, options.images))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    Console().print(f"peak memory of the process: {peak:.0f} MB")


if __name__ == "__main__":
    main()
