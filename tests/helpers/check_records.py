"""Records for the checks: healthy ones, and the same with given faults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fmapboard.checks import BUILT_IN, Finding, NotRecorded, RunRecord, Series
from fmapboard.formats.overview import LayerFacts, OverviewStep
from fmapboard.formats.training_facts import FirstNonfinite, TrainingFacts
from fmapboard.health.evidence import Evidence
from fmapboard.health.record import RateHistory
from fmapboard.health.rules import group_of
from fmapboard.health.table import COLUMNS, health_of

STEPS = tuple(range(0, 80, 10))
LAST = len(STEPS)
HEALTHY = {
    "minimum": -1.0, "maximum": 1.0, "mean": 0.0, "std": 1.0, "nonfinite": 0.0, "constant": 0.0,
    "dead": 0.0, "dead_lasting": 0.0, "weights_change": 0.01, "values": 2048.0,
    "spread": 0.8,
}  # fmt: skip


def layer(index: int, **known: Any) -> LayerFacts:
    """A drawn convolution with 64 channels: ``conv0``, ``conv1``, …"""
    facts = LayerFacts(
        f"conv{index}", f"conv{index}", "Conv2d", (64, 64, 3, 3), 1, index, 64, 2048, 64, 1,
        ("feature_maps",), f"relu{index}",
    )  # fmt: skip
    return replace(facts, **known)


def record(
    layers: Sequence[LayerFacts] | None = None,
    *,
    steps: Sequence[int] = STEPS,
    columns: Mapping[str, Mapping[int, Sequence[float]]] | None = None,
    scalars: Mapping[str, Sequence[float]] | None = None,
    facts: Sequence[TrainingFacts] = (),
    first: Mapping[str, Mapping[str, Any]] | None = None,
    inputs: Mapping[str, float] | None = None,
    told: FirstNonfinite | None = None,
) -> RunRecord:
    """The record of a run of six healthy layers, with some columns of some layers replaced.

    Args:
        layers: the layers.
        steps: the logged steps.
        columns: column -> index of a layer -> its values, one per step.
        scalars: tag -> values, one per step.
        facts: what the training process knew, one per step.
        first: statistics of the channels at the first step.
        inputs: numbers of the input images, the same at each step.
        told: where the first non-finite value was found.
    """
    listed = tuple(map(layer, range(6))) if layers is None else tuple(layers)
    overviews = []
    for index, step in enumerate(steps):
        numbers = {name: np.full(len(listed), HEALTHY[name]) for name in COLUMNS}
        for name, rows in (columns or {}).items():
            for row, values in rows.items():
                numbers[name][row] = values[index]
        overviews.append((step, OverviewStep(step, index + 1, listed, numbers, {})))
    groups: dict[str, dict[str, Series]] = {}
    for tag, values in (scalars or {}).items():
        group, _, name = tag.partition("/")
        at = np.array(steps[: len(values)], np.int64)
        groups.setdefault(group, {})[name] = Series(at, np.array(values, np.float64))
    rates: dict[str, RateHistory] = {}
    for name, of in groups.get("learning_rate", {}).items():
        for step, rate in zip(of.steps.tolist(), of.values.tolist(), strict=True):
            new = RateHistory(step, step, rate, rate)
            rates[name] = rates.get(name, new).then(step, rate)
    return RunRecord(
        health=health_of("", "", overviews, told),
        scalars=groups,
        facts=dict(zip(steps, facts, strict=False)),
        first={
            label: {name: np.asarray(values, np.float32) for name, values in of.items()}
            for label, of in (first or {}).items()
        },
        network_input=dict.fromkeys(steps, inputs) if inputs else {},
        rates=rates,
    )


def from_step(index: int, value: float, before: float) -> list[float]:
    """``before`` at the first ``index`` steps, ``value`` from there on."""
    return [before] * index + [value] * (len(STEPS) - index)


def statistics(*rows: tuple[float, ...]) -> dict[str, list[float]]:
    """Minimum, maximum, mean and standard deviation of channels, for ``first`` of `record`."""
    names = ("minimum", "maximum", "mean", "std")
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def gradients(first: float | list[float], layers: int = 6) -> dict[str, list[float]]:
    """Gradient norms of 1 in all layers but the first two."""
    values = first if isinstance(first, list) else [first] * LAST
    norms = {f"gradient_norm/conv{i}.weight": [1.0] * LAST for i in range(2, layers)}
    return {**norms, **{f"gradient_norm/conv{i}.weight": values for i in range(2)}}


def updates(values: list[float]) -> dict[str, list[float]]:
    """The same update ratios of the weights of six layers."""
    return {f"update_ratio/conv{i}.weight": values for i in range(6)}


def two_calls() -> list[LayerFacts]:
    """Convolutions, of which one module ``act`` is the activation, called twice."""
    return [
        replace(layer(0), activation="act"),
        replace(layer(1), label="act", layer="act"),
        replace(layer(2), activation="act.call2"),
        replace(layer(3), label="act.call2", layer="act", call=2),
    ]


class Rules:
    """The built-in rules of a group, called as one check; those that others of it excuse are out.

    Args:
        group: such as ``"update_ratio"``.
        **changed: thresholds, of the rules that have them.
    """

    def __init__(self, group: str, **changed: Any) -> None:
        self.kind = group
        self.rules = []
        for rule in BUILT_IN:
            if group_of(rule) == group:
                own = {name: value for name, value in changed.items() if hasattr(rule, name)}
                self.rules.append(replace(rule, **own))  # type: ignore[type-var]  # a dataclass
        assert self.rules

    def __call__(self, run: RunRecord) -> list[Finding]:
        """What they find.

        Raises:
            NotRecorded: all of them lack a series.
        """
        evidence = Evidence(run)
        found: dict[str, list[Finding]] = {}
        missing: list[NotRecorded] = []
        for rule in self.rules:
            try:
                found[rule.kind] = rule.findings(evidence)
            except NotRecorded as error:
                missing.append(error)
        kinds = {kind for kind, every in found.items() if every}
        excused = {rule.kind for rule in self.rules if kinds & set(rule.unless)}
        left = [one for kind, every in found.items() if kind not in excused for one in every]
        if len(missing) == len(self.rules):
            raise missing[0]
        return left
