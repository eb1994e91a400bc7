"""Runs of the commands, each in a process of its own, and calls of the functions for tensors."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import models
import torch
from digest import sha256
from PIL import Image
from torch import Tensor, nn

import fmapboard

HERE = Path(__file__).parent
PHOTOGRAPHS = HERE.parents[1] / "assets" / "bundled" / "photographs"
SIDES = {"astronaut": 96, "chelsea": 60, "coffee": 130, "retina": 75, "rocket": 96}  # px
VISUALIZE = "from fmapboard.cli.main import run_visualize; run_visualize()"
FMAPBOARD = "from fmapboard.cli.main import run; run()"
SMALL = "--input-size 64"
COMMANDS = {
    "demo": (FMAPBOARD, "demo --steps 4 --every 2 --logdir log"),
    "visualize_batch_1": (VISUALIZE, "photos --batch-size 1 --logdir log --out maps"),
    "visualize_batch_3": (VISUALIZE, f"photos --batch-size 3 --logdir log --out maps {SMALL}"),
    "visualize_kernels": (
        VISUALIZE,
        "photos/coffee.png photos/chelsea.png --colormap signed --kernels --logdir log --out maps",
    ),
    "visualize_resnet": (
        VISUALIZE,
        "photos --batch-size 3 --model models:resnet18 --colormap viridis --scale layer "
        f"--layers conv1 --layers layer1.* --logdir log --out maps --samples 4 {SMALL}",
    ),
    "visualize_sequences": (
        VISUALIZE,
        f"photos --batch-size 3 --model models:sequences --layers * --logdir log {SMALL}",
    ),
    "visualize_repeated": (
        VISUALIZE,
        f"photos --batch-size 3 --model models:repeated --kernels --out maps {SMALL}",
    ),
    "visualize_mixing": (
        VISUALIZE,
        f"photos --batch-size 3 --model models:mixing --logdir log {SMALL}",
    ),
    "visualize_tokens": (
        VISUALIZE,
        "photos --batch-size 3 --model models:vit --layers encoder.* --logdir log --input-size 32",
    ),
    "visualize_list": (VISUALIZE, "--model models:resnet18 --list"),
}


def run_command(name: str, directory: Path) -> dict[str, Any]:
    """Run a command in a directory with photographs of several sizes; return what it printed."""
    code, words = COMMANDS[name]
    photos = directory.parent / f"{directory.name}_photos" / "photos"
    photos.mkdir(parents=True, exist_ok=True)
    for stem, side in SIDES.items():
        with Image.open(PHOTOGRAPHS / f"{stem}.jpg") as opened:
            image = opened.convert("RGB")
        height = side * image.height // image.width
        image.resize((side, height)).save(photos / f"{stem}.png")
    (directory / "photos").symlink_to(photos, target_is_directory=True)
    # The command has to run the package that is imported here.
    source = Path(str(fmapboard.__file__)).parents[1]
    path = os.pathsep.join(map(str, (source, HERE)))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *words.split()], cwd=directory, text=True,
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}, capture_output=True,
    )  # fmt: skip
    (directory / "photos").unlink()
    if done.returncode != 0:
        raise RuntimeError(f"{name}: {done.stderr}")
    return {"stdout": _lines(done.stdout, directory), "stderr": _lines(done.stderr, directory)}


def _lines(text: str, directory: Path) -> list[str]:
    """Lines without times, paths and progress bars."""
    text = re.sub(r"in [\d.]+ s", "in _ s", text.replace(str(directory), ""))
    return [line.rstrip() for line in text.splitlines() if "━" not in line]


def extractions(directory: Path) -> dict[str, Any]:
    """The results of `extract`, `extract_gradients`, `kernel_groups` and `draw`."""
    batch = torch.randn(2, 3, 20, 24)
    cases: dict[str, tuple[nn.Module, Tensor, Any]] = {
        "convolutions": (models.convolutions(), batch, None),
        "repeated": (models.Repeated(), batch, None),
        "sequences": (models.Sequences(), torch.randn(2, 3, 40, 40), "*"),
        "resnet18": (models.resnet18().train(), torch.randn(2, 3, 48, 48), "layer[12].*"),
        "tokens": (models.tokens(), torch.randn(2, 3, 32, 32), "*"),
    }
    found: dict[str, Any] = {}
    for name, (model, x, layers) in cases.items():
        maps = fmapboard.extract(model, x, layers)
        inputs = fmapboard.extract(model, x, layers, side="input")
        gradients = fmapboard.extract_gradients(model, x, lambda out: out.square().sum(), layers)
        groups = fmapboard.kernel_groups(model)
        found[name] = {
            "outputs": plain(maps), "inputs": plain(inputs), "gradients": plain(gradients),
            "groups": {str(shape): names for shape, names in groups.items()},
            "order": [list(maps), list(inputs), list(gradients)],
        }  # fmt: skip
    for colormap in ("grey", "signed"):
        maps = fmapboard.extract(models.resnet18().eval(), batch, "conv1")
        fmapboard.draw(maps["conv1"], colormap=colormap).save(directory / f"{colormap}.png")
    return found


def plain(value: Any) -> Any:
    """The value with a digest in place of each tensor."""
    if isinstance(value, Tensor):
        data = value.detach().contiguous().flatten().view(torch.uint8)
        return f"{value.dtype} {list(value.shape)} {sha256(data.numpy().tobytes())}"
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, (tuple, list)):
        return [plain(inner) for inner in value]
    return repr(value)
