"""Stored training facts: what is written is read back; damaged records are refused in words."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from fmapboard.formats.tab_records import FormatError
from fmapboard.formats.training_facts import (
    MAX_EVAL_MODULES,
    MAX_NAMES,
    MAX_OUTPUTS,
    FirstNonfinite,
    HeldLoss,
    Idle,
    Nonfinite,
    OutputFacts,
    TrainingFacts,
    Unchanged,
    pack_nonfinite,
    pack_training_facts,
    unpack_nonfinite,
    unpack_training_facts,
)

FULL = TrainingFacts(
    not_in_optimizer=("head.weight",),
    not_cleared=("conv1.weight", "conv1.bias"),
    eval_mode=True,
    eval_modules=("bn1", "drop"),
    batch=16,
    constant_images=(3,),
    identical_images=((0, 4), (0, 5)),
    unchanged={"conv1.weight": Unchanged(3, 120)},
    nonfinite_weights=("conv2.weight",),
    rates=(1e-4, 0.1),
    no_gradient=("unused.weight",),
    idle=Idle(4, 80, is_held=None, is_cleared=True),
    initial_norms=("bn1",),
    outputs=(
        OutputFacts(
            name="logits",
            shape=(16, 10),
            rows=16,
            low=-2.5,
            high=4.0,
            spread=0.5,
            predictions=7,
            kind="cross-entropy",
            loss=1.25,
            accuracy=0.75,
            labels=((3, 10), (0, 6)),
            classes=10,
            label_changes=9,
            held=HeldLoss(0, 2.5, None),
            pulled=0.25,
            target=0.5,
            is_pulled_apart=True,
            away=1.5,
            factor=64.0,
            labels_ahead=1,
            only_text=True,
            needs_places=True,
            ignores_places=True,
            attends_alike=True,
        ),
    ),
    batch_digest="5a1e",
    not_called=("unused.weight",),
    dropouts={"drop": 0.75},
    optimizers=("AdamW",),
    weight_decays=(0.0, 0.01),
    new_optimizers=("AdamW",),
    idle_group=("unused.weight",),
    dtypes=("float32",),
    changed_outside={"conv1.weight": 0.25},
    clamped={"conv1.weight": 0.01},
    weights_left=0.75,
    next_key={"attn.rows": 0.5},
    padding={"attn.rows": 0.125},
    off_one={"attn.rows": 0.75},
    is_causal=False,
    between_samples=("attn.rows",),
    left_out={"initial_norms": 7},
)


def record(**changes: Any) -> list[bytes]:
    """A stored record with some keys replaced."""
    return [json.dumps({"format": 1, **changes}).encode()]


def test_findings_are_read_back_unchanged() -> None:
    assert unpack_training_facts(pack_training_facts(FULL)) == FULL
    assert unpack_training_facts(pack_training_facts(TrainingFacts())) == TrainingFacts()


def test_the_record_is_the_documented_json() -> None:
    (blob,) = pack_training_facts(FULL)
    assert json.loads(blob) == {
        "format": 1,
        "not_in_optimizer": ["head.weight"],
        "not_cleared": ["conv1.weight", "conv1.bias"],
        "eval_mode": True,
        "eval_modules": ["bn1", "drop"],
        "batch": 16,
        "constant_images": [3],
        "identical_images": [[0, 4], [0, 5]],
        "unchanged": {"conv1.weight": {"steps": 3, "since": 120}},
        "nonfinite_weights": ["conv2.weight"],
        "rates": {"lo": 1e-4, "hi": 0.1},
        "no_gradient": ["unused.weight"],
        "idle": {"steps": 4, "since": 80, "is_held": None, "is_cleared": True},
        "initial_norms": ["bn1"],
        "outputs": [
            {
                "name": "logits",
                "shape": [16, 10],
                "rows": 16,
                "low": -2.5,
                "high": 4.0,
                "spread": 0.5,
                "rows_are": "any",
                "predictions": 7,
                "kind": "cross-entropy",
                "is_climbed": False,
                "is_softmax_of_softmax": False,
                "loss": 1.25,
                "accuracy": 0.75,
                "labels": [[3, 10], [0, 6]],
                "classes": 10,
                "label_changes": 9,
                "held": [0, 2.5, None],
                "given": False,
                "pulled": 0.25,
                "target": 0.5,
                "is_pulled_apart": True,
                "away": 1.5,
                "factor": 64.0,
                "labels_ahead": 1,
                "only_text": True,
                "needs_places": True,
                "ignores_places": True,
                "attends_alike": True,
            }
        ],
        "batch_digest": "5a1e",
        "not_called": ["unused.weight"],
        "dropouts": {"drop": 0.75},
        "optimizers": ["AdamW"],
        "weight_decays": [0.0, 0.01],
        "new_optimizers": ["AdamW"],
        "idle_group": ["unused.weight"],
        "dtypes": ["float32"],
        "changed_outside": {"conv1.weight": 0.25},
        "clamped": {"conv1.weight": 0.01},
        "weights_left": 0.75,
        "next_key": {"attn.rows": 0.5},
        "padding": {"attn.rows": 0.125},
        "off_one": {"attn.rows": 0.75},
        "is_causal": False,
        "between_samples": ["attn.rows"],
        "left_out": {"initial_norms": 7},
    }


def test_what_is_not_known_is_null_and_what_is_missing_has_its_default() -> None:
    raw = json.loads(pack_training_facts(TrainingFacts())[0])
    unknown = {name for name, value in raw.items() if value is None}
    assert unknown == {
        *("not_in_optimizer", "not_cleared", "eval_mode", "batch"),
        *("constant_images", "identical_images", "rates", "nonfinite_weights", "no_gradient"),
    }
    assert unpack_training_facts(record()) == TrainingFacts()
    assert unpack_training_facts(record(of_a_later_version=[{}])) == TrainingFacts()
    earlier = {"frozen": ["stem.weight"], "accumulated": True}
    assert unpack_training_facts(record(**earlier)) == TrainingFacts()


def test_of_fields_that_later_versions_added_those_without_a_value_are_not_stored() -> None:
    raw = json.loads(pack_training_facts(TrainingFacts())[0])
    assert set(raw) == {
        *("format", "not_in_optimizer", "not_cleared", "eval_mode", "eval_modules", "batch"),
        *("constant_images", "identical_images", "unchanged", "nonfinite_weights", "rates"),
        *("no_gradient", "initial_norms"),
    }


def test_weights_of_which_nothing_is_left_are_stored() -> None:
    found = TrainingFacts(weights_left=0.0)
    assert unpack_training_facts(pack_training_facts(found)) == found


def test_long_lists_are_cut_and_counted() -> None:
    names = tuple(f"layer{n}.weight" for n in range(MAX_NAMES + 5))
    long = TrainingFacts(
        initial_norms=names,
        eval_modules=names[: MAX_EVAL_MODULES + 2],
        unchanged={name: Unchanged(1, 0) for name in names[: MAX_NAMES + 1]},
        outputs=tuple(OutputFacts(name, (4, 10)) for name in names[: MAX_OUTPUTS + 3]),
    )
    back = unpack_training_facts(pack_training_facts(long))
    assert back.initial_norms == names[:MAX_NAMES]
    assert len(back.eval_modules) == MAX_EVAL_MODULES
    assert len(back.unchanged) == MAX_NAMES
    assert [one.name for one in back.outputs] == list(names[:MAX_OUTPUTS])
    left_out = {"initial_norms": 5, "eval_modules": 2, "unchanged": 1, "outputs": 3}
    assert back.left_out == left_out


def test_a_name_that_cannot_be_sent_is_replaced() -> None:
    back = unpack_training_facts(pack_training_facts(TrainingFacts(initial_norms=("a\ud800b",))))
    assert back.initial_norms == ("a?b",)


def test_a_rate_that_is_not_finite_is_refused_by_the_writer() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        pack_training_facts(TrainingFacts(rates=(0.1, float("inf"))))


def test_a_newer_format_says_what_to_do() -> None:
    with pytest.raises(FormatError, match="written by a newer fmapboard, in format 2"):
        unpack_training_facts([b'{"format": 2}'])


@pytest.mark.parametrize("blobs", [[], [None]])
def test_a_dropped_record_is_refused(blobs: list[None]) -> None:
    with pytest.raises(FormatError, match="can no longer be read"):
        unpack_training_facts(blobs)


def test_a_huge_record_is_refused_without_being_parsed() -> None:
    with pytest.raises(FormatError, match="bytes; expected 1048576 at most"):
        unpack_training_facts([b" " * (2**20 + 1)])


@pytest.mark.parametrize(
    "blob",
    [
        b"", b"\xff\xfe\x00", b"[]", b"null", b"{}", b"[" * 100_000,
        b'{"format": true}', b'{"format": "1"}', b'{"format": -1}', b'{"format": 1.0}',
        b'{"format": 1, "batch": ' + b"9" * 5000 + b"}",
    ],
)  # fmt: skip
def test_what_is_no_record_is_refused(blob: bytes) -> None:
    with pytest.raises(FormatError, match="not in fmapboard's format"):
        unpack_training_facts([blob])


@pytest.mark.parametrize(
    "changes",
    [
        {"not_in_optimizer": "conv1"},
        {"not_in_optimizer": [1]},
        {"not_cleared": ["\ud800"]},
        {"initial_norms": ["x"] * 5000},
        {"eval_mode": 1},
        {"eval_mode": "yes"},
        {"batch": -1},
        {"batch": 2.5},
        {"batch": 2**60},
        {"batch": True},
        {"constant_images": [-1]},
        {"constant_images": {"0": 1}},
        {"identical_images": [[0]]},
        {"identical_images": [[0, 1, 2]]},
        {"identical_images": [3]},
        {"unchanged": ["conv1"]},
        {"unchanged": {"conv1": 3}},
        {"unchanged": {"conv1": {"steps": 3}}},
        {"unchanged": {"conv1": {"steps": "3", "since": 0}}},
        {"rates": 0.1},
        {"rates": {"lo": 0.1}},
        {"rates": {"lo": float("nan"), "hi": 1.0}},
        {"rates": {"lo": 0.1, "hi": float("inf")}},
        {"rates": {"lo": False, "hi": True}},
        {"rates": {"lo": 10**400, "hi": 1}},
        {"left_out": {"frozen": -1}},
    ],
    ids=str,
)
def test_a_hostile_value_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(FormatError, match="not in fmapboard's format"):
        unpack_training_facts(record(**changes))


FIRST = FirstNonfinite(7, "inputs", "a`b", "Conv2d", 2, Nonfinite(3, 0, 1), 1200, counted=False)


def test_the_first_nonfinite_value_is_stored_as_fields() -> None:
    (blob,) = pack_nonfinite(FIRST)
    assert json.loads(blob) == {
        "format": 1, "step": 7, "place": "inputs", "owner": "a`b", "type": "Conv2d", "call": 2,
        "found": [3, 0, 1], "total": 1200, "counted": False,
    }  # fmt: skip
    read = unpack_nonfinite([blob], "net")
    assert read == replace(FIRST, name="net")
    assert read.label == "a`b.call2"
    assert read.text == (
        "first non-finite values: at least 3 NaN, 1 -Inf of 1,200 in the input of layer "
        "`net: a'b` (Conv2d, call 2)"
    )
    assert replace(FIRST, call=1).where == "input of layer `a'b` (Conv2d)"


@pytest.mark.parametrize(
    "change",
    [
        {"step": -1}, {"place": "weights"}, {"owner": 3}, {"found": [1, 2, 3, 4]}, {"found": "1"},
        {"call": "1"}, {"counted": 1}, {"format": 2}, {"total": 0.5},
    ],
)  # fmt: skip
def test_a_damaged_record_of_the_first_nonfinite_value_is_refused(change: dict[str, Any]) -> None:
    raw = json.loads(pack_nonfinite(FIRST)[0])
    with pytest.raises(FormatError):
        unpack_nonfinite([json.dumps(raw | change).encode()], "")


def test_labels_may_be_negative_and_counts_may_not() -> None:
    signs = OutputFacts("", (8, 1), labels=((-1, 5), (1, 3)))
    found = TrainingFacts(outputs=(signs,))
    assert unpack_training_facts(pack_training_facts(found)) == found
    with pytest.raises(FormatError, match="-5 does not fit int"):
        unpack_training_facts(
            pack_training_facts(TrainingFacts(outputs=(replace(signs, labels=((1, -5),)),)))
        )
