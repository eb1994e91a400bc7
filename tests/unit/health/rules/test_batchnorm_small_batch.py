"""BatchNorm over batches that are too small."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from check_records import record

from fmapboard.checks import Finding
from fmapboard.formats.training_facts import OutputFacts, TrainingFacts
from fmapboard.health.rules import BatchnormSmallBatchCheck


def test_batchnorm_over_few_images_whose_variance_is_not_that_of_eval_mode() -> None:
    def found(*batches: int | None, gaps: Sequence[float], shape: Any = None) -> list[Finding]:
        facts = [TrainingFacts(batch=batch) for batch in batches]
        series = {f"batchnorm_gap/bn{n}": [5.0] * 4 + [gap] * 4 for n, gap in enumerate(gaps)}
        series["batchnorm_gap/other"] = [math.nan] * 8
        if shape is not None:
            facts = [replace(each, outputs=(OutputFacts("", shape),)) for each in facts]
        return list(BatchnormSmallBatchCheck()(record(facts=facts, scalars=series)))

    unknown = [None] * 4
    assert len(found(*unknown, gaps=[0.6], shape=(2, 1))) == 1
    assert found(*unknown, gaps=[0.6], shape=(3, 1)) == found(*unknown, gaps=[0.6]) == []
    assert (
        found(*unknown, gaps=[0.6], shape=()) == found(3, 3, 3, 3, gaps=[0.6], shape=(2, 1)) == []
    )
    (one,) = found(1, 1, 1, 1, gaps=[0.1, -0.6, 0.6])
    assert (one.class_, one.since_step, one.value) == ("note", 0, 0.6)
    assert one.message == (
        "BatchNorm sees 1 input per step, whose variance differs by a factor of 1.8 from its "
        "running variance (median of 3 layers), since step 0"
    )
    assert len(found(1, 1, 1, 1, gaps=[0.16])) == 1
    assert found(1, 1, 1, 1, gaps=[0.15]) == found(2, 2, 2, 2, gaps=[0.1, 1.0, 0.1]) == []
    (one,) = found(1, 1, 2, 2, gaps=[0.5, 0.5, 0.0])
    assert "2 inputs per step, whose variance differs by a factor of 1.6" in one.message
    assert "(median of 3 layers)" in one.message
    for silent in ((1, 1, 1, 3), (1, 1, 1), [None] * 8):
        assert found(*silent, gaps=[1.0]) == []
    assert found(1, 1, 1, 1, gaps=[]) == []
