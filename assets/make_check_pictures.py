"""Makes the charts and images of docs/checks.md: a faulty and a healthy training of each check.

    python assets/make_check_pictures.py [KIND ...]

A small network is trained on the bundled photographs, as it should be and with a fault, and watched
with fmapboard. The pictures show what was logged, or the weights themselves. The script fails if a
check does not name its fault, or says anything of the healthy training. Takes about two minutes on
two cores.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from check_training import (
    Decaying,
    Forgetful,
    Training,
    WriteBack,
    adam,
    deep_sigmoid,
    dropping,
    ending,
    large_head,
    network,
    new_head,
    no_scale,
    pooled_norm,
    small_momentum,
    sorted_by_class,
    the_first_batch,
    thousand_classes,
)
from line_chart import Axis, Curve, beside, draw
from PIL import Image, ImageDraw, ImageFont
from torch import nn
from torch.nn import functional

from fmapboard.checks import run_checks
from fmapboard.demo.network import MEAN, STD
from fmapboard.formats.training_facts import OutputFacts, TrainingFacts
from fmapboard.health.evidence import Evidence
from fmapboard.health.gradient_ratios import gradient_ratios

PLACE = Path(__file__).parents[1] / "docs" / "pictures"


def ratios(training: Training) -> dict[str, Curve]:
    """First over last gradients, as ``vanishing`` reads them."""
    assert training.record is not None  # it ran
    found = gradient_ratios(Evidence(training.record), 1)
    assert found is not None  # enough layers
    return {"": list(zip(training.record.layers().steps, found.early.tolist(), strict=False))}


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


def facts(
    value: Callable[[TrainingFacts], float | None], name: str = ""
) -> Callable[[Training], dict[str, Curve]]:
    """Reads a number of the facts of each logged step."""

    def read(training: Training) -> dict[str, Curve]:
        assert training.record is not None  # it ran
        found = {step: value(of) for step, of in training.record.facts.items()}
        return {name: [(step, number) for step, number in found.items() if number is not None]}

    return read


def output(value: Callable[[OutputFacts], float | None], name: str = "") -> Callable[..., Any]:
    """Reads a number of the network's output."""
    return facts(lambda of: value(of.outputs[0]) if of.outputs else None, name)


def so_far(values: Callable[[TrainingFacts], Iterable[object]]) -> Callable[..., Any]:
    """Reads how many different values there were up to each logged step."""

    def read(training: Training) -> dict[str, Curve]:
        seen = set[object]()

        def count(of: TrainingFacts) -> int | None:
            seen.update(values(of))
            return len(seen) or None

        return facts(count)(training)

    return read


def losses(training: Training) -> dict[str, Curve]:
    """The loss at each logged step; that of the first one is certain at the second."""
    assert training.record is not None  # it ran
    found = dict[int, float | None]()
    for step, of in training.record.facts.items():
        for one in of.outputs[:1]:
            if one.held is not None:
                found[one.held.step] = one.held.loss
            found[step] = one.loss
    return {"": [(step, loss) for step, loss in sorted(found.items()) if loss is not None]}


def labels_of(of: TrainingFacts) -> Iterable[object]:
    """The labels of the batch."""
    return [label for one in of.outputs for label, _ in one.labels or ()]


def most_frequent(of: OutputFacts) -> float | None:
    """Share of the most frequent label."""
    counts = [count for _, count in of.labels or ()]
    return max(counts) / sum(counts) if counts else None


def range_of(training: Training) -> dict[str, Curve]:
    """Smallest and largest value of the output."""
    return {
        **output(lambda of: of.low, "smallest")(training),
        **output(lambda of: of.high, "largest")(training),
    }


def input_std(training: Training) -> dict[str, Curve]:
    """Standard deviation of the input."""
    assert training.record is not None  # it ran
    known = training.record.network_input
    return {"": [(step, numbers["std"]) for step, numbers in known.items()]}


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
LOSS = "loss, read from its gradient", losses
SEEN = "different labels so far", so_far(labels_of), Axis(0, 12)
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
    "double_softmax": (
        Training(make=ending(nn.Softmax(1))), Chart("softmax at the end", *LOSS, Axis(0, 3)),
    ),
    "probabilities_into_loss": (
        Training(make=ending(nn.Sigmoid())),
        Chart("sigmoid at the end", "values of the output", range_of, Axis(-8, 8)),
    ),
    "loss_climbed": (
        Training(loss=lambda output, labels: -functional.cross_entropy(output, labels)),
        Chart("a minus too many", *LOSS, Axis(0.1, 100, logarithmic=True)),
    ),
    "constant_output": (
        Training(make=no_scale),
        Chart(
            "scale 0 in a BatchNorm", "spread of the output",
            output(lambda of: max(of.spread or 0, 1e-5)),
            Axis(1e-5, 10, logarithmic=True, thresholds=(2e-3,)),
        ),
    ),
    "one_label": (Training(labels=torch.zeros_like), Chart("all labels are 0", *SEEN)),
    "sorted_labels": (
        Training(batches=sorted_by_class),
        Chart(
            "sorted by class", "share of the most frequent label", output(most_frequent),
            Axis(0, 1, thresholds=(0.8,)),
        ),
    ),
    "unused_classes": (
        Training(make=thousand_classes),
        Chart(
            "a head of 1000 classes", "share of the classes that occurred",
            lambda one: {"": [(s, n / one.classes()) for s, n in so_far(labels_of)(one)[""]]},
            Axis(0, 1),
        ),
    ),
    "initial_loss": (
        Training(late=large_head), Chart("a head of large weights", *LOSS, Axis(0, 32)),
    ),
    "rate_vanished": (
        Training(optimize=(decaying := Decaying()), after=decaying.step),
        Chart(
            "decay per step, not per epoch", "learning_rate",
            lambda one: one.scalars("learning_rate"), Axis(1e-20, 1e-2, logarithmic=True),
        ),
    ),
    "never_called": (
        Training(make=lambda: Forgetful(*network())),
        Chart(
            "a layer is not called", MOVED,
            lambda one: {n: one.moved[n] for n in ("0.weight", "12.weight", "17.weight")},
            Axis(0, 1),
        ),
    ),
    "same_batch": (
        Training(batches=the_first_batch),
        Chart(
            "one batch is kept", "different batches so far",
            so_far(lambda of: [of.batch_digest]), Axis(0, 16),
        ),
    ),
    "batchnorm_small_batch": (
        Training(make=pooled_norm, images=lambda x: x[:2], labels=lambda labels: labels[:2]),
        Chart(
            "two images, pooled to one value each", "|batchnorm_gap|",
            lambda one: few(one.scalars("batchnorm_gap")), Axis(0, 4),
        ),
    ),
    "dropout_high": (
        Training(make=dropping), Chart("95 % are dropped", *LOSS, Axis(0, 3)),
    ),
    "input_scale": (
        Training(make=lambda: network(norm=False), images=lambda images: images * 64),
        Chart(
            "not normalized", "standard deviation of the input", input_std,
            Axis(0.01, 1e3, logarithmic=True),
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
