"""The contract of a check (`fmapboard.checks.Check`), for each built-in one and one of a user."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from check_records import STEPS, from_step, layer, record

from fmapboard.checks import BUILT_IN, Check, Finding, RunRecord, Series, run_checks
from fmapboard.formats.training_facts import Idle, LossKind, OutputFacts, TrainingFacts, Unchanged

LAST = len(STEPS)
ALL = tuple(range(4))


OUTPUT = OutputFacts(
    name="", shape=(32, 10), rows=32, low=-2.0, high=2.0, spread=1.0, predictions=9,
    kind="cross-entropy", loss=2.3, accuracy=0.1, classes=10, label_changes=28,
    labels=tuple((n, 4 - n // 8) for n in range(9)),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class OwnCheck:
    """A user's check: the gradient's norm at the newest step."""

    most: float = 100.0
    kind: str = "large_gradient"

    def __call__(self, record: RunRecord) -> Sequence[Finding]:
        norm: Series = record.group("gradient_norm")["total"]
        if not norm.values[-1] > self.most:
            return []
        return [Finding(kind=self.kind, class_="note", message="large", value=norm.values[-1])]


def faulty() -> RunRecord:
    """A record with everything wrong that a check can see."""
    facts = TrainingFacts(
        not_in_optimizer=("a",), not_cleared=("b",), eval_mode=True, batch=4,
        constant_images=(), identical_images=((0, 1), (0, 2), (0, 3)), rates=(0.1, 0.1),
        unchanged={"c.weight": Unchanged(5, 0)}, no_gradient=("d.weight",),
        not_called=("d.weight",), dropouts={"drop": 0.95}, batch_digest="a", outputs=(OUTPUT,),
    )  # fmt: skip
    layers = [layer(i) for i in range(6)]
    layers[0] = layer(0, followed_by=("Tanh",))
    layers[5] = layer(5, type="ConvTranspose2d", transposed_stride=(2, 2))
    channels = {name: [0.5] * 8 for name in ("mean", "std")}
    made = record(
        layers,
        steps=[2 * step for step in STEPS],
        columns={
            "nonfinite": {1: from_step(3, 0.5, 0.0)},
            "dead": {2: from_step(2, 0.9, 0.0)},
            "dead_lasting": {2: from_step(5, 0.9, 0.0)},
            "maximum": {3: from_step(4, 1e5, 1.0)},
            "std": {0: [9.0] * LAST},
        },
        scalars={
            "gradient_norm/total": [1e3] * LAST,
            **{f"gradient_norm/conv{i}.weight": [1e-9 if i < 2 else 1.0] * LAST for i in range(6)},
            **{f"update_ratio/conv{i}.weight": [0.5] * LAST for i in range(6)},
            "batchnorm_gap/bn": [3.0] * LAST,
            "learning_rate/0": [0.1, *[1e-6] * (LAST - 1)],
        },
        facts=[facts] * LAST,
        first={"conv1": {"minimum": [0.0] * 8, "maximum": [1.0] * 8, **channels}},
        inputs={"minimum": 0.0, "maximum": 255.0, "mean": 99.0, "std": 60.0},
    )
    return replace(made, name="")


def with_batches(**changes: Any) -> RunRecord:
    """The same with other batches."""
    made = faulty()
    return replace(made, facts={at: replace(of, **changes) for at, of in made.facts.items()})


def with_outputs(outputs: Sequence[OutputFacts]) -> RunRecord:
    """The same with an output of the network, one per step."""
    made = faulty()
    facts = zip(made.facts.items(), outputs, strict=True)
    return replace(
        made,
        facts={at: replace(f, batch_digest=str(at), outputs=(one,)) for (at, f), one in facts},
    )


def of(**changes: Any) -> RunRecord:
    return with_outputs([replace(OUTPUT, **changes)] * LAST)


STEPPED = TrainingFacts(batch=4, rates=(0.1, 0.1), no_gradient=())
NORM = layer(1, followed_by=("BatchNorm2d",))
CONSTANT = {name: [0.1] * 4 for name in ("minimum", "maximum", "mean")} | {"std": [0.0] * 4}
ONE_UNIT = OutputFacts("", (32, 1), rows=32, low=-1.0, high=2.0, spread=1.0, predictions=2)
SPREADS = {f"conv{n}": {**CONSTANT, "std": [std] * 4} for n, std in enumerate((1.0, 0.1, 9e-4))}
PICTURE = OutputFacts("0", (32, 1, 8, 8), low=0.0, high=0.9, spread=0.5)
MEAN = OutputFacts("1", (32, 4), low=-0.3, high=0.25, spread=1.0, predictions=4)


def at_each(*outputs: OutputFacts, **known: Any) -> RunRecord:
    """A record of healthy layers, with the same outputs at each step."""
    return record(facts=[replace(STEPPED, outputs=outputs)] * LAST, **known)


OTHER = {
    "flat_images": record(inputs={"minimum": 0.0, "maximum": 0.07, "mean": 0.04, "std": 0.01}),
    "scrambled_images": record(
        inputs={"minimum": 0.0, "maximum": 1.0, "mean": 0.4, "std": 0.5, "interleaved": 0.1}
    ),
    "input_magnitude": record(
        scalars={"gradient_norm/conv0.weight": [500.0], "gradient_norm/conv0.bias": [0.5]}
    ),
    "softmax_of_one_class": at_each(
        replace(ONE_UNIT, low=1.0, high=1.0, spread=0.0, predictions=1)
    ),
    "loss_without_logarithm": at_each(
        replace(OUTPUT, kind=LossKind.NLL_OF_PROBABILITIES, loss=None)
    ),
    "averaged_targets": record(
        facts=[
            replace(STEPPED, outputs=(replace(ONE_UNIT, target=0.3 + n / 100),))
            for n in range(LAST)
        ]
    ),
    "far_targets": at_each(replace(ONE_UNIT, away=300.0)),
    "labels_beyond_1": at_each(
        replace(OUTPUT, kind=LossKind.BEYOND_1, loss=None, labels=((0, 30), (255, 2)))
    ),
    "summed_loss": record(
        facts=[replace(STEPPED, outputs=(replace(OUTPUT, factor=32.0),), optimizers=("SGD",))]
        * LAST
    ),
    "unbounded_loss": record(
        facts=[
            TrainingFacts(outputs=(replace(OUTPUT, loss=-(10.0**n)),)) for n in range(1, LAST + 1)
        ]
    ),
    "weights_overwritten": record(
        facts=[replace(STEPPED, outputs=(replace(OUTPUT, loss=2.3),), changed_outside={"a": 0.01})]
        * LAST,
        scalars={"update_ratio/a": [0.01] * LAST},
    ),
    "idle_group": record(facts=[replace(STEPPED, idle_group=("head.weight",))] * LAST),
    "new_optimizer": record(
        facts=[replace(STEPPED, optimizers=("Adam",), new_optimizers=("Adam",))] * LAST
    ),
    "no_optimizer_step": record(
        facts=[
            TrainingFacts(batch=4, idle=Idle(n, 0, is_held=True, is_cleared=True)) for n in range(4)
        ]
    ),
    "zero_rate": record(facts=[replace(STEPPED, rates=(0.0, 0.0))] * LAST),
    "dead_experts": record(
        [replace(layer(0), channels=8, unit="expert", activation=None)],
        columns={"dead": {0: [0.25] * LAST}, "dead_lasting": {0: [0.25] * LAST}},
    ),
    "dead_heads": record(
        [replace(layer(0), channels=4, unit="head", activation=None)],
        columns={"dead": {0: [0.25] * LAST}, "dead_lasting": {0: [0.25] * LAST}},
    ),
    "attention_logits": record(
        [replace(layer(0), channels=4, unit="head", activation=None)],
        scalars={"attention_logit/conv0/highest_head": [4.0**step for step in range(LAST)]},
    ),
    "missing_causal_mask": record(facts=[replace(STEPPED, next_key={"conv0": 0.1})] * LAST),
    "labels_not_shifted": record(
        facts=[replace(STEPPED, is_causal=True, outputs=(replace(OUTPUT, labels_ahead=2),))] * LAST
    ),
    "missing_positions": record(
        facts=[replace(STEPPED, is_causal=False, outputs=(replace(OUTPUT, ignores_places=True),))]
        * LAST
    ),
    "attention_over_batch": record(facts=[replace(STEPPED, between_samples=("conv0",))] * LAST),
    "attended_padding": record(facts=[replace(STEPPED, padding={"conv0": 0.1})] * LAST),
    "softmax_over_queries": record(facts=[replace(STEPPED, off_one={"conv0": 0.5})] * LAST),
    "zero_weights": record(first={"conv1": CONSTANT, "conv2": CONSTANT}),
    "batchnorm_few_values": record(
        [layer(0), NORM, *(layer(i) for i in range(2, 6))],
        facts=[STEPPED] * LAST,
        columns={"values": {1: [2.0] * LAST}},
        scalars={"batchnorm_gap/bn": [0.1] * LAST},
    ),
    "batchnorm_momentum": record(facts=[replace(STEPPED, initial_norms=("bn",))] * LAST),
    "empty_code": at_each(PICTURE, MEAN, replace(MEAN, name="2", low=-0.1, high=0.3)),
    "large_activations": record(columns={"maximum": {3: [1e4] * LAST}}),
    "growing_signal": record(columns={"std": {5: [60.0] * LAST}}),
    "fading_signal": at_each(
        replace(OUTPUT, loss=2.3),
        first=SPREADS,
        scalars={f"gradient_norm/conv{i}.weight": [1.0] * LAST for i in range(6)},
    ),
    "saturated_output": at_each(OutputFacts("", (16, 1), low=0.0, high=0.8, pulled=0.3)),
    "zero_output": at_each(OutputFacts("b", (16, 3), predictions=1)),
    "no_gradient": record(
        facts=[STEPPED] * LAST,
        scalars={f"gradient_norm/conv{i}.weight": [0.0] * LAST for i in range(6)},
    ),
    "cut_off_layers": record(
        facts=[replace(STEPPED, no_gradient=("conv1.weight",))] * LAST,
        scalars={f"gradient_norm/conv{i}.weight": [1.0] * LAST for i in range(2, 6)},
    ),
    "updates_too_small": record(
        scalars={f"update_ratio/conv{i}.weight": [1e-8] * LAST for i in range(6)}
    ),
    "one_prediction": at_each(replace(OUTPUT, predictions=1)),
    "constant_images": with_batches(constant_images=ALL),  # not reported as identical
    "same_batch": with_batches(identical_images=()),
    "batchnorm_small_batch": with_batches(batch=1),
    "double_softmax": of(rows_are="probabilities", is_softmax_of_softmax=True),
    "probabilities_into_loss": of(low=0.01, high=0.9),
    "loss_climbed": of(is_climbed=True),
    "constant_output": of(spread=1e-4, predictions=1),
    "one_label": of(labels=((3, 32),)),
    "sorted_labels": with_outputs([replace(OUTPUT, labels=((n // 2, 32),)) for n in range(LAST)]),
    "unused_classes": of(labels=((0, 30), (1, 30))),
    "initial_loss": of(loss=9.0),
}
"""Kinds whose fault excludes others -> a record with it."""


CHECKS: list[Check] = [*BUILT_IN, OwnCheck()]


def said(check: Check) -> list[Finding]:
    """What a check finds in the faulty records."""
    return list(check(OTHER.get(check.kind, faulty())))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "check" in metafunc.fixturenames:
        metafunc.parametrize("check", CHECKS, ids=lambda check: check.kind)


def test_its_kind_is_an_identifier_that_no_other_check_has(check: Check) -> None:
    assert check.kind.isidentifier()
    assert [other.kind for other in CHECKS].count(check.kind) == 1


def test_it_finds_its_fault_and_says_so_completely(check: Check) -> None:
    found = said(check)
    assert found
    for one in found:
        assert one.kind == check.kind
        assert one.message
        assert not one.message.endswith(".")
        assert one.message.count("`") % 2 == 0
        assert not (one.layer and one.parameter)
        if check in BUILT_IN:
            assert one.meaning
            assert one.advice
            assert (one.class_ == "note") == bool(one.healthy)


def test_its_findings_are_json(check: Check) -> None:
    for one in said(check):
        text = json.dumps(one.as_json(), allow_nan=False)
        keys = set(json.loads(text)) - {"layer", "parameter"}  # one of them
        assert keys == {"kind", "class", "since_step", "value", "healthy", "message"}


def test_it_keeps_no_state_and_changes_no_record(check: Check) -> None:
    given = faulty()
    before = pickle.dumps(given)
    first, second = check(given), check(copy.deepcopy(given))
    assert list(first) == list(second)
    assert pickle.dumps(given) == before


def test_it_is_silent_on_a_healthy_record(check: Check) -> None:
    fine = TrainingFacts(
        not_in_optimizer=(), not_cleared=(), eval_mode=False, batch=4, constant_images=(),
        identical_images=(),
    )  # fmt: skip
    layers = [layer(i) for i in range(6)]
    scalars: dict[str, Any] = {
        "gradient_norm/total": [1.0] * LAST,
        **{f"gradient_norm/conv{i}.weight": [1.0] * LAST for i in range(6)},
        **{f"update_ratio/conv{i}.weight": [1e-3] * LAST for i in range(6)},
        "batchnorm_gap/bn": [0.1] * LAST,
        "learning_rate/0": [0.1] * LAST,
    }
    channels = {"minimum": [-1.0] * 8, "maximum": [1.0] * 8, "mean": range(8), "std": [1.0] * 8}
    healthy = record(
        layers, scalars=scalars, first={"conv1": channels},
        facts=[replace(fine, batch_digest=str(n), outputs=(OUTPUT,)) for n in range(LAST)],
        inputs={"minimum": -2.0, "maximum": 2.0, "mean": 0.0, "std": 1.0},
    )  # fmt: skip
    assert list(check(healthy)) == []


def test_a_missing_series_is_not_recorded_or_nothing(check: Check) -> None:
    for given in (RunRecord(), record(steps=[7])):
        report = run_checks(given, [check])
        assert (report.findings, report.failed) == ((), {})
        assert all(report.not_checked.values())
