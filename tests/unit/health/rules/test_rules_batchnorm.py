"""Rules of BatchNorm: when they are not recorded."""

from __future__ import annotations

import pytest
from check_records import LAST, layer, record

from fmapboard.checks import Check, NotRecorded, RunRecord
from fmapboard.formats.training_facts import TrainingFacts
from fmapboard.health.rules import (
    BatchnormFewValuesCheck,
    BatchnormGapCheck,
    BatchnormSmallBatchCheck,
)


@pytest.mark.parametrize(
    "check", [BatchnormGapCheck(), BatchnormSmallBatchCheck(), BatchnormFewValuesCheck()]
)
def test_batchnorm_is_not_recorded_only_where_the_network_has_it(check: Check) -> None:
    assert check(record(facts=[TrainingFacts()] * LAST)) == []
    behind = [layer(0, followed_by=("SyncBatchNorm", "ReLU"))]
    itself = [layer(0, type="BatchNormAct2d")]
    for known in (record(behind), record(itself), RunRecord()):
        with pytest.raises(NotRecorded, match="batchnorm_gap/…, of BatchNorm layers in training"):
            check(known)
