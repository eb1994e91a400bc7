"""What a ``ModelDifference`` prints."""

from __future__ import annotations

import math

from fmapboard.model_comparison.differences import LayerDifference, ModelDifference


def test_a_difference_prints_as_a_table_and_its_summary() -> None:
    equal = LayerDifference("stem.conv", 0.0, 0.0, 0.0, "Conv2d")
    added = LayerDifference("stem.bn", 0.0, 0.0123, math.inf, "BatchNorm2d", "train mode in A")
    alone = LayerDifference("gate", type="Gate", note="only B runs it")

    printed = repr(ModelDifference("stem.bn", (equal, added, alone), 1e-5))

    assert printed.splitlines() == [
        "layer      type         error in  error out  added",
        "stem.conv  Conv2d              0          0      0",
        "stem.bn    BatchNorm2d         0    1.2e-02    inf  train mode in A",
        "gate       Gate                –          –      –  only B runs it",
        "first difference: `stem.bn` (train mode in A)",
    ]
