"""Records are collected step by step, resumed, thinned, and survive damaged blobs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from check_records import layer

from fmapboard.formats import tags
from fmapboard.formats.overview import OverviewStep, pack_overview
from fmapboard.formats.tab_records import pack
from fmapboard.formats.training_facts import (
    FirstNonfinite,
    Nonfinite,
    TrainingFacts,
    pack_nonfinite,
    pack_training_facts,
)
from fmapboard.health.record import RateHistory, RecordBuilder, is_read


def overview(step: int, written: int, dead: float = 0.0) -> tuple[bytes, ...]:
    layers = (layer(0), layer(1))
    numbers = {"minimum": np.zeros(2), "maximum": np.ones(2), "dead": np.array([dead, 0.0])}
    since = {"dead": {0: 3}} if dead else {}
    return pack_overview(OverviewStep(step, written, layers, numbers, since, {"std": 0.5}))


def builder(*steps: int) -> RecordBuilder:
    made = RecordBuilder("run", "gen")
    for written, step in enumerate(steps, start=1):
        made.add_blobs(step, tags.OVERVIEW, overview(step, written, 0.5))
        made.add_blobs(step, tags.TRAINING_FACTS, pack_training_facts(TrainingFacts(batch=step)))
        made.add_scalar(step, "gradient_norm/total", float(step))
    return made


@pytest.mark.parametrize(
    ("tag", "read"),
    [
        ("gradient_norm/conv.weight", True),
        ("gen.gradient_norm/conv.weight", True),
        ("update_ratio/w", True),
        ("batchnorm_gap/bn", True),
        ("fmapboard_overview", True),
        ("gen.fmapboard_findings", True),
        ("fmapboard_first/conv", True),
        ("gen.fmapboard_first_nonfinite", True),
        ("fmapboard/conv", False),
        ("gradient_norm_before_clipping/conv.weight", False),
        ("loss", False),
        ("", False),
    ],
)
def test_which_series_are_read(tag: str, read: bool) -> None:
    assert is_read(tag) is read


def test_a_record_has_every_step() -> None:
    record = builder(0, 10, 20).record()
    health = record.layers()
    assert health.steps == (0, 10, 20)
    assert health.since == {"dead": {0: 3}}
    assert health.columns["dead"][:, 0].tolist() == [0.5] * 3
    assert record.scalars["gradient_norm"]["total"].values.tolist() == [0.0, 10.0, 20.0]
    assert [facts.batch for facts in record.facts.values()] == [0, 10, 20]
    assert record.network_input[10] == {"std": 0.5}
    assert (record.run, record.name, health.rows[0].key) == ("run", "gen", "gen.fmapboard/conv0")


def test_thinning_keeps_the_ends_and_where_something_began_and_the_first_nonfinite_value() -> None:
    """And the steps before these: what was so there tells the cause."""
    made = builder(*range(40))
    first = FirstNonfinite(9, "gradients", "w", "", 0, Nonfinite(1), 0, name="gen")
    made.add_blobs(9, tags.FIRST_NONFINITE_RECORD, pack_nonfinite(first))
    made.thin({7})
    record = made.record()
    assert record.layers().steps == (0, 1, 2, 3, 6, 7, 8, *range(12, 40))
    assert record.steps_called == "kept steps"
    assert record.layers().first_nonfinite == first


def test_the_learning_rate_is_known_over_all_steps_also_those_that_were_dropped() -> None:
    made = RecordBuilder()
    for step in range(100):
        rate = 1.0 if step == 20 else 1e-5
        made.add_scalars(step, {"learning_rate/0": rate, "learning_rate/1": math.nan})
        made.thin(set())
        made = made.copy()
    assert made.record().rates == {
        "0": RateHistory(
            0, 99, rate=pytest.approx(1e-5), peak=1.0, low={1e-4: (21, 79), 5e-3: (21, 79)}
        )
    }


def test_first_statistics_are_those_of_the_first_step() -> None:
    made = RecordBuilder()
    for step, value in ((5, 1.0), (9, 2.0)):
        arrays = {f"feature_maps.{n}": np.full(3, value) for n in ("minimum", "maximum", "mean")}
        arrays["feature_maps.std"] = np.full(3, value)
        made.add_blobs(step, "fmapboard_first/conv", pack({"layer": "conv"}, arrays, [b"png"]))
    assert made.record().first["conv"]["mean"].tolist() == [1.0, 1.0, 1.0]


def test_statistics_of_different_lengths_are_left_out() -> None:
    made = RecordBuilder()
    arrays = {
        f"feature_maps.{n}": np.zeros(k)
        for k, n in enumerate(("minimum", "maximum", "mean", "std"))
    }
    made.add_blobs(0, "fmapboard_first/conv", pack({}, arrays))
    assert made.record().first == {}


@pytest.mark.parametrize(
    "tag",
    [tags.OVERVIEW, tags.TRAINING_FACTS, tags.FIRST_NONFINITE_RECORD, "fmapboard_first/conv"],
)
@pytest.mark.parametrize(
    "blobs", [[], [b""], [b"{}", b""], [b"\xff", b"", b""], [None, None, None], [b"[]", b"", b"x"]]
)
def test_damaged_records_are_counted_and_left_out(tag: str, blobs: list[bytes | None]) -> None:
    made = builder(0)
    made.add_blobs(10, tag, blobs)
    assert set(made.errors) == {10}
    assert made.record().layers().steps == (0,)
    assert list(made.record().facts) == [0]


def test_scalars_have_the_precision_of_an_event_file_and_huge_ones_become_unknown() -> None:
    made = RecordBuilder()
    made.add_scalar(0, "gradient_norm/w", float("inf"))
    made.add_scalar(1, "gradient_norm/w", 1e300)
    made.add_scalars(2, {"gradient_norm/w": 0.1})
    values = made.record().scalars["gradient_norm"]["w"].values.tolist()
    assert str(values) == "[nan, nan, 0.10000000149011612]"


def test_scalars_that_some_steps_lack() -> None:
    made = RecordBuilder()
    made.add_scalar(0, "gradient_norm/a", 1.0)
    made.add_scalars(2, {"gradient_norm/b": 3.0, "gradient_norm/a": 2.0})
    norms = made.record().group("gradient_norm")
    assert (norms["a"].steps.tolist(), norms["a"].values.tolist()) == ([0, 2], [1.0, 2.0])
    assert (norms["b"].steps.tolist(), norms["b"].values.tolist()) == ([2], [3.0])
