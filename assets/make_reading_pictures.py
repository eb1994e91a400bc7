"""Makes the pictures of docs/reading_the_pictures.md and docs/checks.md.

    python assets/make_reading_pictures.py

Small networks are trained on the bundled photographs, one as it should be and each of the others
with one fault that people make, and watched with fmapboard. The pictures are what it wrote; the
numbers that the page quotes are printed. Takes about a minute on two cores.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional

import fmapboard
from fmapboard.demo.bundled import bundled
from fmapboard.demo.network import MEAN, STD, DemoNetwork
from fmapboard.demo.photographs import Photographs
from fmapboard.imaging.images import read_image
from fmapboard.records import LoggedStep
from fmapboard.render import png
from fmapboard.render.grid import enlarge
from fmapboard.writers.folder import MemoryWriter

PLACE = Path(__file__).parents[1] / "docs" / "pictures"
PHOTOGRAPHS = Photographs.load()
DRAWN = (nn.Conv2d, nn.ConvTranspose2d, nn.ReLU, nn.Tanh)
Loss = Callable[[nn.Module, Tensor, Tensor], Tensor]


def cat() -> Tensor:
    """The cat's face, normalized as in training, [1, 3, 128, 128]."""
    image = read_image(bundled("photographs") / "chelsea.jpg").convert("RGB")
    face = image.crop((100, 20, 356, 276)).resize((128, 128), Image.Resampling.BOX)
    pixels = torch.frombuffer(bytearray(face.tobytes()), dtype=torch.uint8)
    planes = pixels.view(128, 128, 3).permute(2, 0, 1).float()[None] / 255
    return (planes - torch.tensor(MEAN).view(3, 1, 1)) / torch.tensor(STD).view(3, 1, 1)


def names_it(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """The loss of a classifier."""
    return functional.cross_entropy(model(images), labels)


def draws_it(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """The loss of an autoencoder."""
    return functional.mse_loss(model(images), images)


def train(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    steps: int,
    *,
    probe: Tensor,
    every: int,
    loss: Loss = names_it,
    change: Callable[[Tensor], Tensor] = lambda images: images,
) -> list[LoggedStep]:
    """What fmapboard logs of a training on random crops."""
    kept, source = MemoryWriter(), torch.Generator().manual_seed(0)
    with fmapboard.watch(
        model,
        writer=kept,
        optimizer=optimizer,
        every=every,
        probe=probe,
        layers=lambda name, layer: isinstance(layer, DRAWN),
        max_channels=16,
    ):
        for _ in range(steps):
            images, labels = PHOTOGRAPHS.training_batch(32, source)
            optimizer.zero_grad()
            loss(model, change(images), labels).backward()
            optimizer.step()
    return kept.steps


def plain(activation: type[nn.Module]) -> nn.Sequential:
    """Three convolutions without normalization between them, which forgives nothing."""
    return nn.Sequential(
        nn.Conv2d(3, 16, 5, padding=2),
        activation(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1),
        activation(),
        nn.Conv2d(32, 32, 3, stride=2, padding=1),
        activation(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, len(PHOTOGRAPHS.names)),
    )


def autoencoder(*up: nn.Module) -> nn.Sequential:
    """Two convolutions that halve the image, and what brings it back."""
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 16, 3, stride=2, padding=1),
        nn.ReLU(),
        *up,
    )


def save(name: str, step: LoggedStep, layer: str) -> None:
    """The picture of a layer's maps, and the numbers beside it."""
    picture = next(
        p
        for p in step.pictures
        if p.kind == "feature_maps" and p.layer_call is not None and p.layer_call.label == layer
    )
    (PLACE / f"{name}.png").write_bytes(png.encode(enlarge(picture.samples[0])))
    shown = {
        tag: f"{value:.3g}"
        for tag, value in step.scalars.items()
        if tag.endswith("/" + layer) or tag == "gradient_norm/total"
    }
    numbers = next(
        m.statistics
        for m in step.statistics
        if (m.layer_call.label, m.kind) == (layer, "feature_maps") and m.statistics is not None
    )
    extent = f"{numbers.minimum.min():.3g} … {numbers.maximum.max():.3g}"
    print(f"{name}: step {step.step}, values {extent}, {shown}")


def healthy(face: Tensor) -> None:
    """The demonstration's network, as it starts and as it ends."""
    model = DemoNetwork(len(PHOTOGRAPHS.names))
    steps = train(model, torch.optim.AdamW(model.parameters(), 3e-3), 201, probe=face, every=200)
    save("healthy_before", steps[0], "conv2")
    save("healthy", steps[-1], "conv2")


def dead(face: Tensor) -> None:
    """A learning rate that is ten times too high."""
    model = plain(nn.ReLU)
    steps = train(model, torch.optim.Adam(model.parameters(), 0.01), 41, probe=face, every=40)
    save("dead", steps[-1], "3")


def saturated(face: Tensor) -> None:
    """Images left at about 255 times what the network expects."""
    model = plain(nn.Tanh)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    steps = train(
        model,
        optimizer,
        101,
        probe=face * 255,
        every=100,
        change=lambda images: images * 255,
    )
    save("saturated", steps[-1], "1")


def exploding(face: Tensor) -> None:
    """A learning rate that is a hundred times too high."""
    model = plain(nn.ReLU)
    steps = train(model, torch.optim.SGD(model.parameters(), 5.0), 8, probe=face, every=1)
    for step in steps:
        save("exploding" if step.step <= 4 else "exploded", step, "2")


def checkerboard(face: Tensor) -> None:
    """Kernels of 3 that move in steps of 2 overlap unevenly."""
    model = autoencoder(
        nn.ConvTranspose2d(16, 16, 3, 2, padding=1, output_padding=1),
        nn.ReLU(),
        nn.ConvTranspose2d(16, 3, 3, 2, padding=1, output_padding=1),
    )
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    steps = train(model, optimizer, 101, probe=face, every=100, loss=draws_it)
    save("checkerboard", steps[-1], "4")


def no_checkerboard(face: Tensor) -> None:
    """The same, enlarged first and convolved then."""
    model = autoencoder(
        nn.Upsample(scale_factor=2),
        nn.Conv2d(16, 16, 3, padding=1),
        nn.ReLU(),
        nn.Upsample(scale_factor=2),
        nn.Conv2d(16, 3, 3, padding=1),
    )
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    steps = train(model, optimizer, 101, probe=face, every=100, loss=draws_it)
    save("no_checkerboard", steps[-1], "5")


def copied(face: Tensor) -> None:
    """Weights that all start with the same value."""
    model = plain(nn.ReLU)
    for layer in model:
        if isinstance(layer, nn.Conv2d):
            nn.init.constant_(layer.weight, 0.02)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    steps = train(model, optimizer, 41, probe=face, every=40)
    save("copied", steps[-1], "2")


def nonfinite(face: Tensor) -> None:
    """A weight that becomes NaN, as after an overflow in half precision."""
    model = plain(nn.ReLU)
    with torch.no_grad():
        model[2].weight[5, 0, 0, 0] = torch.nan  # type: ignore[index]  # the weight of a Conv2d
    optimizer = torch.optim.AdamW(model.parameters(), 0.0)
    steps = train(model, optimizer, 1, probe=face, every=1)
    save("nonfinite", steps[0], "2")


def main() -> None:
    """Make all pictures, each from the same seed."""
    PLACE.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)  # the same pictures on every machine
    for make in (
        healthy,
        dead,
        saturated,
        exploding,
        checkerboard,
        no_checkerboard,
        copied,
        nonfinite,
    ):
        torch.manual_seed(0)
        make(cat())


if __name__ == "__main__":
    main()
