"""Makes the charts and images of docs/checks.md: a faulty and a healthy training of each check.

    python assets/make_check_pictures.py [KIND ...]

A small network is trained on the bundled photographs, as it should be and with a fault, and watched
with fmapboard. The pictures show what was logged, or the weights themselves. The script fails if a
check does not name its fault, or says anything of the healthy training. Takes about two minutes on
two cores.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from check_training import (
    Training,
    WriteBack,
    adam,
    deep_sigmoid,
    network,
    new_head,
    small_momentum,
)
from line_chart import Axis, Curve, beside, draw
from PIL import Image, ImageDraw, ImageFont

from fmapboard.checks import run_checks
from fmapboard.demo.network import MEAN, STD
from fmapboard.health.checks.layers import gradient_ratios

PLACE = Path(__file__).parents[1] / "docs" / "pictures"


def ratios(training: Training) -> dict[str, Curve]:
    """First over last gradients, as ``vanishing`` reads them."""
    assert training.record is not None  # it ran
    found = gradient_ratios(training.record)
    assert found is not None  # enough layers
    return {"": list(zip(found.steps.tolist(), found.values, strict=True))}


def dead(training: Training) -> dict[str, Curve]:
    """Share of dead channels of each activation."""
    assert training.record is not None  # it ran
    table = training.record.layers()
    shares = table.columns["dead"]  # [steps, layers]
    return {
        row.facts.activation or row.facts.label: list(zip(table.steps, column, strict=True))
        for row, column in zip(table.rows, shares.T.tolist(), strict=True)
        if np.isfinite(column).all()
    }


def few(curves: dict[str, Curve]) -> dict[str, Curve]:
    """The first, a middle and the last curve."""
    names = list(curves)
    return {name: curves[name] for name in (names[0], names[len(names) // 2], names[-1])}


@dataclass(frozen=True)
class Chart:
    """What is drawn of both trainings.

    Attributes:
        fault: the fault in words.
        title: what is on the vertical axis.
        curves: reads it.
        axis: of both charts.
    """

    fault: str
    title: str
    curves: Callable[[Training], dict[str, Curve]]
    axis: Axis

    def __call__(self, faulty: Training, healthy: Training) -> Image.Image:
        """Both charts in a row."""
        left = draw(f"faulty: {self.fault} · {self.title}", self.curves(faulty), self.axis)
        return beside(left, draw(f"healthy · {self.title}", self.curves(healthy), self.axis))


@dataclass(frozen=True)
class Batch:
    """Eight images of a batch as the network receives them, de-normalized."""

    fault: str

    def __call__(self, faulty: Training, healthy: Training) -> Image.Image:
        """Both batches in a row."""
        return beside(self._sheet(f"faulty: {self.fault}", faulty), self._sheet("healthy", healthy))

    def _sheet(self, title: str, training: Training) -> Image.Image:
        assert training.batch is not None  # it ran
        mean, std = torch.tensor([MEAN, STD]).view(2, 3, 1, 1)
        pixels = ((training.batch[:8] * std + mean).clamp(0, 1) * 255).byte().permute(0, 2, 3, 1)
        sheet = Image.new("RGB", (4 * 100, 20 + 2 * 100), "white")
        ImageDraw.Draw(sheet).text((0, 4), title, "#333333", ImageFont.load_default(size=11))
        for number, tile in enumerate(pixels.numpy()):
            place = number % 4 * 100, 20 + number // 4 * 100
            sheet.paste(Image.fromarray(tile).resize((96, 96), Image.Resampling.NEAREST), place)
        return sheet


MOVED = "change of weights since step 0"
PICTURES: dict[str, tuple[Training, Chart | Batch]] = {
    "not_in_optimizer": (
        Training(late=new_head),
        Chart("a new head", MOVED, lambda one: few(dict(one.moved)), Axis(0, 1)),
    ),
    "gradients_not_cleared": (
        Training(clears=False),
        Chart(
            "no zero_grad()", "gradient_norm/total",
            lambda one: one.scalars("gradient_norm", "total"), Axis(0.1, 1000, logarithmic=True),
        ),
    ),
    "eval_mode": (
        Training(evaluates=True),
        Chart(
            "no train()", "mean running variance", lambda one: few(dict(one.variances)),
            Axis(0.01, 10, logarithmic=True),
        ),
    ),
    "constant_images": (Training(images=torch.zeros_like), Batch("every image has one value")),
    "identical_images": (
        Training(images=lambda x: x[:1].expand_as(x).clone()), Batch("one image, repeated"),
    ),
    "unchanged_weights": (
        Training(after=WriteBack()),
        Chart("an old copy is written back", MOVED, lambda one: few(dict(one.moved)), Axis(0, 1)),
    ),
    "dead": (
        Training(make=lambda: network(norm=False), optimize=adam(0.03)),
        Chart(
            "rate 0.03",
            "dead_channels",
            dead,
            Axis(0, 1, thresholds=(0.5,)),
        ),
    ),
    "vanishing": (
        Training(make=deep_sigmoid),
        Chart(
            "sigmoids", "gradient of first / last layers", ratios,
            Axis(1e-8, 100, logarithmic=True, thresholds=(1e-4,)),
        ),
    ),
    "update_ratio": (
        Training(optimize=adam(0.3)),
        Chart(
            "rate 0.3", "update_ratio",
            lambda one: few(one.scalars("update_ratio", "0.weight", "6.weight", "12.weight")),
            Axis(1e-7, 100, logarithmic=True, thresholds=(1e-6, 0.1)),
        ),
    ),
    "batchnorm_gap": (
        Training(make=small_momentum),
        Chart(
            "momentum 1e-4", "|batchnorm_gap|", lambda one: few(one.scalars("batchnorm_gap")),
            Axis(0, 4, thresholds=(1.0,)),
        ),
    ),
}  # fmt: skip


def main() -> None:
    """Write the pictures of the given kinds, or all."""
    torch.set_num_threads(1)  # the same pictures on every machine
    healthy = Training().run()
    assert healthy.record is not None  # it ran
    said = run_checks(healthy.record).findings
    if said:
        raise SystemExit(f"healthy: {[finding.text for finding in said]}")
    for kind in sys.argv[1:] or PICTURES:
        training, picture = PICTURES[kind]
        faulty = training.run()
        assert faulty.record is not None  # it ran
        found = {finding.kind: finding.text for finding in run_checks(faulty.record).findings}
        print(f"{kind}: {found}", flush=True)
        if kind not in found:
            raise SystemExit(f"{kind} is not named")
        file = PLACE / f"check_{kind}.png"
        picture(faulty, healthy).quantize(64).save(file, optimize=True)


if __name__ == "__main__":
    main()
