"""Facts of a run that several rules need."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from check_records import LAST, STEPS, from_step, layer, record, updates
from loop_facts import LOOP, STEPPED
from output_facts import OUTPUT, record_of

from fmapboard.checks import NotRecorded, RunRecord
from fmapboard.formats.training_facts import HeldLoss, OutputFacts, TrainingFacts
from fmapboard.health.evidence import Evidence, are_all_constant


def of_losses(*losses: float | None, held: HeldLoss | None = None) -> Evidence:
    outputs = [replace(OUTPUT, loss=loss) for loss in losses]
    outputs[1] = replace(outputs[1], held=held)
    return Evidence(record_of(outputs))


def test_losses_are_known_at_four_steps_or_more_the_first_one_perhaps_later() -> None:
    assert of_losses(2.3, 2.0, 1.5, 1.0).losses == [[2.3, 2.0, 1.5, 1.0]]
    assert of_losses(None, 2.0, 1.5, 1.0).losses == []
    held = HeldLoss(0, 2.5, None)
    assert of_losses(None, 2.0, 1.5, 1.0, held=held).losses == [[2.5, 2.0, 1.5, 1.0]]
    assert of_losses(None, 2.0, 1.5, 1.0, held=HeldLoss(0, None, 0.1)).losses == []


def test_losses_are_those_of_each_output() -> None:
    steps = [(OUTPUT, replace(OUTPUT, name="b", loss=loss)) for loss in (1.0, 0.5, 0.25, 0.125)]
    assert Evidence(record_of(steps)).losses == [[2.3] * 4, [1.0, 0.5, 0.25, 0.125]]


def test_a_run_learns_if_every_known_loss_ends_below_four_fifths_of_its_first_value() -> None:
    assert of_losses(2.0, 2.0, 2.0, 1.59).falls()
    assert not of_losses(2.0, 1.0, 1.0, 1.6).falls()
    assert not of_losses(None, None).falls()
    one_of_two = [(replace(OUTPUT, loss=2.0 - n), replace(OUTPUT, name="b")) for n in (0, 1, 1, 1)]
    assert not Evidence(record_of(one_of_two)).falls()


def test_a_loss_stays_if_it_never_fell_to_95_percent() -> None:
    assert of_losses(2.0, 1.91, 1.95, 2.5).has_loss_that_stays
    assert not of_losses(2.0, 1.9, 1.95, 2.5).has_loss_that_stays
    assert not of_losses(None, None).has_loss_that_stays


def test_a_loss_stays_if_the_medians_of_its_second_half_and_last_third_are_above_a_share() -> None:
    assert of_losses(2.0, 0.1, 1.1, 1.0, 1.2, 0.9).stays_late(0.49)
    assert not of_losses(2.0, 0.1, 1.1, 1.0, 1.2, 0.9).stays_late(0.5)
    assert not of_losses(2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 1.85, 1.5).stays_late(0.95)
    assert of_losses(None, None).stays_late(0.95)  # no loss is known


def test_an_output_is_known_at_the_steps_at_which_it_is_finite() -> None:
    lost = OutputFacts("", (32, 10), rows=32)
    evidence = Evidence(record_of([OUTPUT, lost, OUTPUT]))
    assert evidence.outputs == {"": {0: OUTPUT, 20: OUTPUT}}
    assert Evidence(record_of([lost, lost])).outputs == {}
    with pytest.raises(NotRecorded, match="an output of the network with a gradient"):
        _ = Evidence(record_of([(), ()])).outputs


def test_a_constant_output_is_so_at_the_last_two_steps_the_first_of_the_run_not_counted() -> None:
    same = replace(OUTPUT, spread=5e-3, predictions=1)
    found = Evidence(record_of([same, same, same])).constant_output()
    assert found is not None
    assert (found.since, found.spread, found.is_one) == (10, 5e-3, False)
    assert Evidence(record_of([same, same])).constant_output() is None
    assert not Evidence(record_of([same, same, OUTPUT])).has_constant_output
    assert not Evidence(RunRecord()).has_constant_output


def test_update_ratios_are_those_of_layers_with_kernels_unless_these_are_few() -> None:
    ratios = Evidence(record(scalars={**updates([0.1] * LAST), "update_ratio/head.weight": [0.3]}))
    known = ratios.update_ratios
    assert known is not None
    assert known.names == [f"conv{i}.weight" for i in range(6)]
    assert known.steps == list(STEPS)
    assert (known.median.tolist(), known.is_of_head) == ([0.1] * LAST, False)
    others = {f"update_ratio/linear{i}.weight": [0.3] * LAST for i in range(13)}
    few = Evidence(record(scalars={**updates([0.1] * LAST), **others})).update_ratios
    assert few is not None
    assert len(few.names) == 19
    assert few.median.tolist() == [0.3] * LAST


def test_update_ratios_of_0_are_none_unless_the_rate_is_known_to_be_above_0() -> None:
    none = updates([0.0] * LAST)
    assert Evidence(record(scalars=none)).update_ratios is None
    found = Evidence(record(scalars=none, facts=[STEPPED] * LAST)).update_ratios
    assert found is not None
    assert found.values.tolist() == [[0.0] * 6] * LAST


def test_biases_count_as_largest_beyond_their_norm_where_the_weights_move_as_far() -> None:
    bias = [3.0, 4.0, 9.0, *[0.5] * (LAST - 3)]  # from near 0, as those of BatchNorm
    for weight, most in ((0.01, 0.5), (0.3, 9.0)):
        ratios = {"update_ratio/conv0.weight": [weight] * LAST, "update_ratio/conv0.bias": bias}
        largest = Evidence(record(scalars=ratios)).largest_update()
        assert largest is not None
        assert (largest.parameter, largest.value) == ("conv0.bias", most)
    some = {**ratios, "update_ratio/conv0.weight": [0.3, *[0.01] * (LAST - 1)]}
    largest = Evidence(record(scalars=some)).largest_update()
    assert largest is not None
    assert (largest.step, largest.value) == (STEPS[0], 3.0)
    assert Evidence(record()).largest_update() is None


def test_the_median_update_of_a_line_search_is_unknown() -> None:
    searched = [replace(STEPPED, rates=None), *[STEPPED] * (LAST - 1)]
    found = Evidence(record(scalars=updates([0.1] * LAST), facts=searched)).update_ratios
    assert found is not None
    assert np.isnan(found.median).tolist() == [True] + [False] * (LAST - 1)


def test_weights_whose_gradient_is_always_0_have_no_update_ratio() -> None:
    zero = {"gradient_norm/conv0.weight": [0.0] * LAST, "gradient_norm/conv1.weight": [0.0, 1.0]}
    found = Evidence(record(scalars={**updates([0.1] * LAST), **zero})).update_ratios
    assert found is not None
    assert found.names == [f"conv{i}.weight" for i in range(1, 6)]


def test_dead_layers_are_found_since_the_step_from_which_enough_channels_are() -> None:
    dead = {2: [0.0, 0.2, 0.2, 0.2, 0.8, 0.8, 0.8, 0.8]}
    (found,) = Evidence(record(columns={"dead": dead, "dead_lasting": dead})).dead_layers()
    assert (found.spell.row, found.spell.since, found.share) == (2, 40, pytest.approx(0.8))
    always = {2: [0.8] * LAST}
    evidence = Evidence(record(columns={"dead": always, "dead_lasting": always}))
    assert evidence.dead_layers() == []
    assert len(evidence.dead_layers(share_at_start=0.8)) == 1


def test_values_are_lost_since_channels_died_grew_or_were_not_finite() -> None:
    assert Evidence(record()).lost_since is None
    assert Evidence(RunRecord()).lost_since is None
    grown = {"maximum": {2: from_step(4, 1000.0, 1.0)}}
    assert Evidence(record(columns=grown)).lost_since == 40
    lost = {**grown, "nonfinite": {3: from_step(3, 0.5, 0.0)}}
    assert Evidence(record(columns=lost)).lost_since == 30
    dead = {name: {2: from_step(2, 0.9, 0.0)} for name in ("dead", "dead_lasting")}
    assert Evidence(record(columns={**lost, **dead})).lost_since == 20
    black = [replace(LOOP, constant_images=(0, 1, 2, 3))] * LAST
    assert Evidence(record(columns={**lost, **dead}, facts=black)).lost_since == 30


def test_growth_is_that_of_the_first_layer_and_step() -> None:
    columns = {"maximum": {2: from_step(4, 1000.0, 1.0), 3: from_step(3, 2000.0, 1.0)}}
    found = Evidence(record(columns=columns)).growth_over_steps()
    assert found is not None
    assert (found.row, found.step, found.factor, found.largest) == (3, 30, 2000.0, 2000.0)
    assert Evidence(record()).growth_over_steps() is None


def test_batches_are_faulty_if_half_or_the_last_are_and_single_images_do_not_count() -> None:
    black = replace(LOOP, constant_images=(0, 1, 2, 3))
    alone = replace(LOOP, batch=1, constant_images=(0,))
    evidence = Evidence(record(facts=[LOOP, LOOP, black, black, alone]))
    found = evidence.faulty_batches(are_all_constant)
    assert found == (20, 4, "at 2 of 4 logged steps, since step 20")
    fewer = Evidence(record(facts=[LOOP, LOOP, LOOP, black, black]))
    assert fewer.faulty_batches(are_all_constant) is None
    steps = range(0, 140, 10)
    at_the_end = Evidence(record(facts=[LOOP] * 10 + [black] * 4, steps=steps))
    found = at_the_end.faulty_batches(are_all_constant)
    assert found == (100, 4, "at 4 of 14 logged steps, since step 100")
    returns = Evidence(record(facts=[LOOP] * 9 + [black] * 4 + [LOOP], steps=steps))
    assert returns.faulty_batches(are_all_constant) is None
    with pytest.raises(NotRecorded, match="a batch of images"):
        Evidence(record(facts=[TrainingFacts()] * 4)).faulty_batches(are_all_constant)


def test_a_fault_counts_at_the_last_two_steps() -> None:
    off = replace(LOOP, eval_mode=True)

    def since(*facts: TrainingFacts) -> int | None:
        return Evidence(record(facts=facts)).since(lambda known: known.eval_mode is True)

    assert since(LOOP, off, off) == 10
    assert since(off) == 0
    assert since(off, off, LOOP) is None
    assert since(LOOP, off) is None


def test_the_first_layer_is_the_one_that_is_called_first() -> None:
    first = Evidence(record([layer(3), layer(1)])).first_layer
    assert first is not None
    assert first.facts.layer == "conv1"
    assert Evidence(RunRecord()).first_layer is None
