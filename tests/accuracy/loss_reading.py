"""How often the loss is read from the gradient of the output, and how often it is read wrongly.

    PYTHONPATH=src:tests/helpers python tests/accuracy/loss_reading.py \
        > tests/accuracy/results/loss_reading.md

The losses of `tests/helpers/loss_cases.py`, with outputs as at initialization, as of a trained
network and near zero (logits of 1e-3), in float32, bfloat16 and float16 (times 65,536, as a
GradScaler does), the loss computed in float32 or in that type, with 2, 3, 10 and 1,000 classes and
64 rows.

The value that is read of a readable loss is compared with that of torch. If another loss is read as
a known one, its exact gradient is compared with that of the loss that was read: the reading is
*false* if they differ by more than the rounding error of the gradient. Labels that are read must
always be right.
"""

from __future__ import annotations

import argparse
import itertools
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import torch
from loss_cases import (
    CLASSES,
    NUMBERS,
    OF_LOGARITHMS,
    OTHERS,
    READABLE,
    STATES,
    UNITS,
    Case,
    Loss,
    case_of,
    gradient,
)
from torch import Tensor
from torch.nn import functional as F

from fmapboard.gradients.loss import Reading, read

LIMITS = {torch.float32: 1e-3, torch.bfloat16: 2e-2, torch.float16: 2e-2}
"""Largest relative error of a value."""


def exact(loss: Loss, output: Tensor, case: Case) -> Tensor:
    """The gradient in float64."""
    leaf = output.double().requires_grad_()
    loss(leaf, case.labels, torch.Generator().manual_seed(case.seed)).backward()
    assert leaf.grad is not None
    return leaf.grad


def difference(found: Reading, output: Tensor, true: Tensor, unit: float) -> float:
    """By how many rounding errors the gradient of the loss that was read differs from the true one.

    Root mean square over all entries; the factor, of each label with class weights, is the one that
    fits best.
    """
    o, g = output.double()[found.rows], true[found.rows]
    if found.kind.startswith("BCE"):
        p = o.sigmoid()
        targets = ((g < 0) != found.is_climbed).double()
    else:
        p = o.softmax(1)
        assert found.labels is not None or found.kind.endswith("mixed labels")
        if found.labels is None:
            return float("nan")  # the targets were fitted to the gradient
        targets = F.one_hot(torch.from_numpy(found.labels), o.shape[1]).double()
        if found.kind.endswith("smoothing"):
            return float("nan")
    if found.kind.startswith("NLL"):
        p = torch.zeros_like(p)
    groups = found.labels if found.kind.endswith("class weights") else np.zeros(len(o), np.intp)
    squares = torch.zeros(())
    for group in np.unique(groups):
        own = torch.from_numpy(groups == group)
        direction, weight = (p - targets)[own], (unit * g[own].abs()).clamp_min(1e-30) ** -2
        factor = (weight * direction * g[own]).sum() / (weight * direction**2).sum()
        squares = squares + (weight * (g[own] - factor * direction) ** 2).sum()
    return float((squares / (g != 0).sum()).sqrt())


@dataclass(slots=True)
class Results:
    """What was read in all cases.

    Attributes:
        counted: type of numbers and state -> number of readable cases.
        right: the same -> those that were read rightly.
        largest: the same -> largest relative error of their values.
        others: number of cases of other losses.
        missed: readable cases that were not read, except with logits of 1e-3.
        wrong: values beyond the limit, false kinds and wrong labels.
        alike: other losses whose gradient is that of the loss that was read, within its rounding.
    """

    counted: Counter[str] = field(default_factory=Counter)
    right: Counter[str] = field(default_factory=Counter)
    largest: dict[str, float] = field(default_factory=dict)
    others: int = 0
    missed: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    alike: list[str] = field(default_factory=list)

    def readable(self, title: str, case: Case) -> None:
        """Read a readable loss."""
        known, numbers, group = READABLE[title], case.numbers, f"{case.numbers}, {case.state}"
        output = known.prepare(case.logits[:, : known.units]).to(numbers.dtype)
        found = read(output, gradient(known.loss, output, case))
        counts = case.classes not in known.without
        self.counted[group] += counts
        generator = torch.Generator().manual_seed(case.seed)
        value = float(known.value(output.double(), case.labels, generator))
        if found.losses is None:
            if counts and case.state != "1e-3":
                self.missed.append(f"{case}, {title}: {found.kind}")
            return
        got = float(found.losses.mean())
        error = abs(got - value) / abs(value)
        if found.kind != known.kind or found.is_climbed or error > LIMITS[numbers.dtype]:
            lines = self.wrong if counts else self.alike
            lines.append(f"{case}, {title}: {found.kind}, {got:.5f} for {value:.5f}")
        elif counts:
            self.right[group] += 1
            self.largest[group] = max(self.largest.get(group, 0.0), error)

    def other(self, title: str, loss: Loss, output: Tensor, case: Case) -> None:
        """Try to read a loss that is none of the known ones."""
        try:
            given = gradient(loss, output, case)
        except (NotImplementedError, RuntimeError):  # torch has it in half precision on GPUs only
            return
        self.others += 1
        found = read(output, given)
        if found.losses is None:
            if found.labels is not None and (found.labels != case.labels[found.rows].numpy()).any():
                self.wrong.append(f"{case}, {title}: {found.kind}, wrong labels")
            return
        off = difference(found, output, exact(loss, output, case), UNITS[case.numbers.dtype])
        generator = torch.Generator().manual_seed(case.seed)
        value, got = float(loss(output.double(), case.labels, generator)), found.losses.mean()
        values = f"{got:.5f} for {value:.5f}, {off:.2g} rounding errors apart"
        lines = self.alike if off <= 1 else self.wrong
        lines.append(f"{case}, {title}: {found.kind}, {values}")

    def show(self) -> None:
        """Print everything as markdown."""
        print("# Losses read from the gradient of the output\n\nMade by `loss_reading.py`.\n")
        print("| numbers, outputs | read | largest relative error |\n| --- | --- | --- |")
        for group, count in self.counted.items():
            largest = f"{self.largest.get(group, 0):.0e}" if self.right[group] else ""
            print(f"| {group} | {self.right[group]} of {count} | {largest} |")
        print(f"\nOther losses: {self.others:,} cases.")
        lists = {
            "False kinds, labels or values": self.wrong,
            "Other losses with the gradient of the one that was read, within its rounding: value "
            "read and value of the loss": self.alike,
            "Readable, and not read (without logits of 1e-3)": self.missed,
        }
        for title, lines in lists.items():
            print(f"\n## {title}: {len(lines)}\n")
            print("\n".join(f"- {line}" for line in lines) or "None.")


def main(seeds: int) -> None:
    """Run all cases."""
    results = Results()
    for seed, numbers, state, classes in itertools.product(range(seeds), NUMBERS, STATES, CLASSES):
        case = case_of(seed, numbers, state, classes)
        for title in READABLE:
            results.readable(title, case)
        for title, loss in OTHERS.items():
            results.other(title, loss, case.logits.to(numbers.dtype), case)
        for title, loss in OF_LOGARITHMS.items():
            output = case.logits.log_softmax(1).to(numbers.dtype)
            results.other(f"{title}, of logarithms", loss, output, case)
    results.show()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    torch.set_num_threads(1)
    main(parser.parse_args().seeds)
