"""BatchNorm over two values per channel."""

from __future__ import annotations

from check_records import LAST, Rules, layer, record

from fmapboard.checks import Finding
from fmapboard.formats.training_facts import TrainingFacts


def test_batchnorm_over_two_values_leaves_only_which_one_is_larger() -> None:
    def found(*values: float, norm: str = "BatchNormAct2d", batch: int = 2) -> list[Finding]:
        layers = [layer(i, followed_by=(norm, "ReLU") if i == 4 else ()) for i in range(6)]
        columns = {"values": {4: list(values)}}
        scalars = {"batchnorm_gap/bn": [0.1] * LAST}
        facts = [TrainingFacts(batch=batch)] * LAST
        given = record(layers, facts=facts, columns=columns, scalars=scalars)
        return list(Rules("batchnorm_small_batch")(given))

    for batch in (2, 3):
        (one,) = found(*[2.0] * LAST, batch=batch)
        assert (one.kind, one.class_, one.since_step) == ("batchnorm_few_values", "note", 0)
        assert one.value == 2
        assert one.message == (
            "BatchNorm sees at most 2 values per channel behind `conv4` since step 0"
        )
        assert found(3.0, *[2.0] * (LAST - 1), batch=batch) == []
    assert found(*[2.0] * LAST, norm="LayerNorm") == []
