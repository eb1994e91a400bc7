"""Which findings are causes, and which may follow from them."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations_with_replacement, product
from random import Random
from typing import Any

import pytest

from fmapboard.checks import BUILT_IN, Finding
from fmapboard.formats.checks import Proof
from fmapboard.health.causes import EDGES, by_cause, causes_of
from fmapboard.health.effects import RESULTS


def note(kind: str, since: int | None = 0, **known: Any) -> Finding:
    return Finding(kind=kind, message=f"{kind} is so", since_step=since, **known)


def warning(kind: str, since: int | None = 0, **known: Any) -> Finding:
    return note(kind, since, class_="warning", **known)


def test_every_built_in_rule_is_part_of_the_graph_and_nothing_else_is() -> None:
    kinds = [rule.kind for rule in BUILT_IN]
    assert list(EDGES) == kinds
    assert len(set(kinds)) == len(kinds)


def test_every_kind_that_a_rule_names_exists_and_is_not_its_own() -> None:
    for rule in BUILT_IN:
        assert {*rule.leads_to, *rule.unless} <= EDGES.keys() - {rule.kind}, rule.kind
        assert len(set(rule.leads_to)) == len(rule.leads_to), rule.kind


@pytest.mark.parametrize(
    ("cause", "effect"),
    [
        ("far_targets", "initial_loss"),
        ("averaged_targets", "constant_output"),
        ("softmax_of_one_class", "constant_output"),
        ("sorted_labels", "one_prediction"),
        ("one_label", "one_prediction"),
        ("large_activations", "growing_signal"),
        ("growing_signal", "exploding"),
        ("fading_signal", "vanishing"),
        ("saturated", "saturated_output"),
        ("unchanged_weights", "cut_off_layers"),
        ("zero_rate", "no_gradient"),
    ],
)
def test_a_symptom_stands_behind_its_cause(cause: str, effect: str) -> None:
    (found,) = causes_of([note(effect), note(cause)])
    assert [found.finding.kind, *[one.kind for one in found.consequences]] == [cause, effect]


def test_what_follows_from_an_effect_follows_from_its_cause() -> None:
    open_paths = [
        (cause, effect, later)
        for cause, effects in EDGES.items()
        for effect in effects
        for later in EDGES[effect]
        if later not in effects
    ]
    assert open_paths == []


def test_no_kind_leads_back_to_a_cause_of_its_own() -> None:
    order = list(EDGES)
    backwards = [
        (cause, effect)
        for cause, effects in EDGES.items()
        for effect in effects
        if order.index(effect) <= order.index(cause)
    ]
    assert backwards == []


def test_only_what_a_run_comes_to_follows_from_something() -> None:
    effects = {effect for kinds in EDGES.values() for effect in kinds}
    assert effects <= {*RESULTS}
    assert list(EDGES)[-len(RESULTS) :] == [*RESULTS]


def test_no_rules_excuse_each_other_in_a_circle() -> None:
    unless = {rule.kind: set(rule.unless) for rule in BUILT_IN}
    left = dict(unless)
    while left:
        free = [kind for kind, others in left.items() if not others & left.keys()]
        assert free, left
        for kind in free:
            del left[kind]


@pytest.mark.parametrize(
    ("found", "cause", "consequences", "besides"),
    [
        # what comes earlier on the data's way explains what comes later
        ([note("dead", 10), note("images_not_scaled")], "images_not_scaled", ["dead"], []),
        ([warning("constant_images"), note("vanishing")], "constant_images", ["vanishing"], []),
        # and what comes earlier in time
        ([warning("nonfinite", 30), note("updates_too_large"), note("dead", 20)],
         "updates_too_large", ["dead", "nonfinite"], []),
        ([note("large_activations", 0), note("updates_too_large", 0)],
         "large_activations", ["updates_too_large"], []),
        ([note("updates_too_large", 10), note("dead", 0)], "dead", [], ["updates_too_large"]),
        # steps before it, which were not logged, were as large
        ([note("dead", 10), note("updates_too_large", 10)], "updates_too_large", ["dead"], []),
        # what the first forward pass computed was there before the first update
        ([note("dead", 0), note("updates_too_large", 0)], "updates_too_large", [], ["dead"]),
        ([note("dead", 10), note("updates_too_small", 10)], "dead", ["updates_too_small"], []),
        # a first loss far too high is there before anything grows
        ([note("exploding", 20), note("large_activations", 0)],
         "large_activations", ["exploding"], []),
        ([warning("nonfinite", 20), note("initial_loss", 0)], "nonfinite", [], ["initial_loss"]),
        ([note("initial_loss", 0), note("updates_too_large", 0), note("images_not_scaled")],
         "images_not_scaled", ["initial_loss", "updates_too_large"], []),
        # what the code does follows from nothing
        ([note("images_not_scaled"), warning("eval_mode", 20)],
         "eval_mode", [], ["images_not_scaled"]),
        ([warning("eval_mode", 20), warning("not_in_optimizer")],
         "not_in_optimizer", [], ["eval_mode"]),
        # what fades does not lead to what grows
        ([note("dead", 0), warning("nonfinite", 50)], "nonfinite", [], ["dead"]),
        ([note("batchnorm_small_batch", 0), warning("nonfinite", 5)],
         "nonfinite", [], ["batchnorm_small_batch"]),
        ([note("updates_too_small", 0), note("exploding", 20)],
         "updates_too_small", [], ["exploding"]),
        ([warning("not_in_optimizer"), note("updates_too_small", 0)],
         "not_in_optimizer", ["updates_too_small"], []),
        # what is uneven explains nothing
        ([note("uneven_upsampling", None), note("dead", 10)], "dead", [], ["uneven_upsampling"]),
        # a certain fault comes before a suspicion that does not lead to it
        ([note("images_not_scaled"), note("mine"), warning("theirs", 9)],
         "theirs", [], ["images_not_scaled", "mine"]),
        # a suspicion does not explain what is certain, of the same kind
        ([warning("identical_images", 0), warning("nonfinite", 0)],
         "nonfinite", [], ["identical_images"]),
        ([note("nonfinite", 0), warning("nonfinite", 5)], "nonfinite", [], ["nonfinite"]),
        ([warning("loss_climbed", 8), note("exploding", 0)], "loss_climbed", ["exploding"], []),
        # a softmax of one class, not what follows from it
        ([note("unchanged_weights", 0), note("softmax_of_one_class", None)],
         "softmax_of_one_class", ["unchanged_weights"], []),
        # one batch at all steps is meant, most often
        ([note("same_batch", 0), note("constant_output", 8)],
         "constant_output", [], ["same_batch"]),
        # a loss without a least value
        ([note("loss_without_logarithm", 10), warning("nonfinite", 5)],
         "loss_without_logarithm", ["nonfinite"], []),
        # the loss explains what is seen before it is certain
        ([note("vanishing", 0), warning("double_softmax", 10)],
         "double_softmax", ["vanishing"], []),
        # an effect of an effect is below the first cause, and not below what came between
        ([note("vanishing", 0), note("fading_signal", 0), note("images_not_scaled", 0)],
         "images_not_scaled", ["fading_signal", "vanishing"], []),
        # the same in several layers is one cause
        ([note("dead", 10, layer="b"), note("dead", 5, layer="a")], "dead", ["dead"], []),
    ],
)  # fmt: skip
def test_the_cause_is_what_no_other_finding_explains(
    found: list[Finding], cause: str, consequences: list[str], besides: list[str]
) -> None:
    for given in (found, found[::-1]):
        first, *others = causes_of(given)
        assert first.finding.kind == cause
        assert [one.kind for one in first.consequences] == consequences
        assert [one.finding.kind for one in others] == besides


VARIANTS: list[dict[str, Any]] = [
    *({"kind": kind} for kind in [*EDGES, "mine"]),
    {"kind": "nonfinite", "class_": "warning"},
]
"""Each kind, that of two classes as each of them."""


def listed_once(found: list[Finding]) -> bool:
    """True if the causes and their consequences are the findings, each once."""
    listed = [one for cause in causes_of(found) for one in (cause.finding, *cause.consequences)]
    return sorted(map(id, listed)) == sorted(map(id, found))


def at(step: int) -> list[Finding]:
    """A finding of each variant, since a step."""
    return [Finding(message="", since_step=step, **variant) for variant in VARIANTS]


def test_of_every_pair_of_kinds_each_finding_has_a_root() -> None:
    for found in product(at(0), at(40)):
        assert listed_once([*found]), [one.kind for one in found]


def test_of_every_triple_of_kinds_each_finding_has_a_root() -> None:
    first, second, last = at(0), at(0), at(40)
    for one, other in combinations_with_replacement(range(len(VARIANTS)), 2):
        for later in last:
            found = [first[one], second[other], later]
            assert listed_once(found), [finding.kind for finding in found]


def test_of_eight_findings_at_any_steps_each_follows_from_the_root_above_it() -> None:
    random = Random(57)
    for _ in range(300):
        found = [
            Finding(message="", since_step=random.choice([None, *range(0, 50, 5)]), **variant)
            for variant in random.sample(VARIANTS, 8)
        ]
        assert listed_once(found), [(one.kind, one.since_step) for one in found]
        for root, consequences in causes_of(found):
            for one in consequences:
                assert causes_of([root, one]) == [(root, (one,))], (root.kind, one.kind)


def test_models_explain_nothing_of_each_other() -> None:
    causes = causes_of([note("images_not_scaled", model="a"), warning("nonfinite", 5, model="b")])
    assert [one.finding.kind for one in causes] == ["nonfinite", "images_not_scaled"]


def test_consequences_stand_below_their_cause_without_advice_of_their_own() -> None:
    own = {"meaning": "A step was too large", "advice": "Lower the learning rate"}
    found = [note("dead", 5, layer="a", **own), note("images_not_scaled", advice="Normalize them")]
    found += [warning("nonfinite", 9, **own), note("uneven_upsampling", None, **own)]
    listed = by_cause(found)
    assert [(one.kind, one.follows, one.explanation) for one in listed] == [
        ("images_not_scaled", "", "Normalize them."),
        ("dead", "images_not_scaled", "May follow from images_not_scaled."),
        ("nonfinite", "images_not_scaled",
         "May follow from images_not_scaled. A step was too large."),
        ("uneven_upsampling", "", "A step was too large. Lower the learning rate."),
    ]  # fmt: skip
    assert by_cause(listed) == listed
    earlier = replace(listed[2], meaning="May follow from images_not_scaled. A step was too large")
    assert by_cause([*listed[:2], earlier, listed[3]]) == listed
    assert ["follows" in one.as_json() for one in listed] == [False, True, True, False]
    alike = [note("dead", 5, layer=name, **own) for name in "ab"]
    assert list(by_cause(alike)) == alike


def test_a_refuted_cause_explains_nothing_and_stands_last() -> None:
    refuted = Proof("refuted", "lower_rate", 50, (2.3, 2.3), (2.3, 2.3))
    rate = warning("updates_too_large", proof=refuted)
    found = causes_of([rate, note("dead", 10), note("one_prediction", 20)])
    assert [cause.finding.kind for cause in found] == ["dead", "updates_too_large"]
    assert [effect.kind for effect in found[0].consequences] == ["one_prediction"]
    proven = Proof("proven", "lower_rate", 50, (2.3, 2.3), (2.3, 0.4))
    (only,) = causes_of([warning("updates_too_large", proof=proven), note("dead", 10)])
    assert only.finding.kind == "updates_too_large"
