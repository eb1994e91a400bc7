"""The verdict on a run: which finding is the cause, and what is said within the limits."""

from __future__ import annotations

import math
from itertools import product
from random import Random
from typing import Any

import pytest
from check_records import STEPS, record

from fmapboard.checks import BUILT_IN, Finding
from fmapboard.formats.training_facts import HeldLoss, OutputFacts, TrainingFacts
from fmapboard.health.finding import WAY, Place, by_cause, causes_of
from fmapboard.health.run import run_checks
from fmapboard.health.verdict import (
    MOST_CHARACTERS,
    MOST_LINES,
    Seen,
    Update,
    as_checked,
    is_of_output,
    is_update_of_weights,
    judge,
    seen_in,
)


def note(kind: str, since: int | None = 0, **known: Any) -> Finding:
    return Finding(kind=kind, message=f"{kind} is so", since_step=since, **known)


def warning(kind: str, since: int | None = 0, **known: Any) -> Finding:
    return note(kind, since, class_="warning", **known)


LARGE, SMALL = {"value": 0.5}, {"value": 1e-8}


def test_every_built_in_check_has_a_place_on_the_way_and_no_other_name_has() -> None:
    assert WAY.keys() == {check.kind for check in BUILT_IN}


@pytest.mark.parametrize(
    ("found", "cause", "consequences", "besides"),
    [
        # what comes earlier on the data's way explains what comes later
        ([note("dead", 10), note("input_scale")], "input_scale", ["dead"], []),
        ([warning("constant_images"), note("vanishing")], "constant_images", ["vanishing"], []),
        # and what comes earlier in time
        ([warning("nonfinite", 30), note("update_ratio", 0, **LARGE), note("dead", 20)],
         "update_ratio", ["dead", "nonfinite"], []),
        ([note("exploding", 0), note("update_ratio", 0, **LARGE)],
         "exploding", ["update_ratio"], []),
        ([note("update_ratio", 10, **LARGE), note("dead", 0)], "dead", [], ["update_ratio"]),
        # steps before it, which were not logged, were as large
        ([note("dead", 10), note("update_ratio", 10, **LARGE)], "update_ratio", ["dead"], []),
        ([note("dead", 0), note("update_ratio", 0, **LARGE)], "dead", [], ["update_ratio"]),
        ([note("dead", 10), note("update_ratio", 10, **SMALL)], "dead", ["update_ratio"], []),
        # a first loss far too high is there before anything grows
        ([note("exploding", 20), note("initial_loss", 0)], "initial_loss", ["exploding"], []),
        ([note("initial_loss", 0), note("update_ratio", 0, **LARGE), note("input_scale")],
         "input_scale", ["initial_loss", "update_ratio"], []),
        # what the code does follows from nothing
        ([note("input_scale"), warning("eval_mode", 20)], "eval_mode", [], ["input_scale"]),
        ([warning("eval_mode", 20), warning("not_in_optimizer")],
         "not_in_optimizer", [], ["eval_mode"]),
        # what fades does not lead to what grows
        ([note("dead", 0), warning("nonfinite", 50)], "nonfinite", [], ["dead"]),
        ([note("batchnorm_small_batch", 0), warning("nonfinite", 5)],
         "nonfinite", [], ["batchnorm_small_batch"]),
        ([note("update_ratio", 0, **SMALL), note("exploding", 20)],
         "update_ratio", [], ["exploding"]),
        ([warning("not_in_optimizer"), note("update_ratio", 0, **SMALL)],
         "not_in_optimizer", ["update_ratio"], []),
        # what is uneven explains nothing
        ([note("uneven_upsampling", None), note("dead", 10)], "dead", [], ["uneven_upsampling"]),
        # a certain fault comes before a suspicion that does not lead to it
        ([note("input_scale"), note("mine"), warning("theirs", 9)],
         "theirs", [], ["input_scale", "mine"]),
        # a suspicion does not explain what is certain, of the same kind
        ([warning("identical_images", 0), warning("nonfinite", 0)],
         "nonfinite", [], ["identical_images"]),
        ([note("nonfinite", 0), warning("nonfinite", 5)], "nonfinite", [], ["nonfinite"]),
        ([warning("loss_climbed", 8), note("exploding", 0)], "loss_climbed", ["exploding"], []),
        # a softmax of one class, not what follows from it
        ([note("unchanged_weights", 0), note("constant_output", None)],
         "constant_output", ["unchanged_weights"], []),
        # one batch at all steps is meant, most often
        ([note("same_batch", 0), note("constant_output", 8)],
         "constant_output", [], ["same_batch"]),
        # a loss without a least value
        ([note("probabilities_into_loss", 10), warning("nonfinite", 5)],
         "probabilities_into_loss", ["nonfinite"], []),
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


def test_the_loss_explains_what_is_seen_before_it_is_certain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(WAY, "of_loss", Place("loss", "less"))  # type: ignore[arg-type]  # a dict
    (cause,) = causes_of([note("vanishing", 0), warning("of_loss", 10)])
    assert (cause.finding.kind, cause.consequences[0].kind) == ("of_loss", "vanishing")


VARIANTS: list[dict[str, Any]] = [
    *({"kind": kind} for kind in [*WAY, "mine"]),
    {"kind": "update_ratio", **LARGE},
    {"kind": "nonfinite", "class_": "warning"},
]
"""Each kind, those of two sizes or classes as each of them."""


def listed_once(found: list[Finding]) -> bool:
    """True if the causes and their consequences are the findings, each once."""
    listed = [one for cause in causes_of(found) for one in (cause.finding, *cause.consequences)]
    return sorted(map(id, listed)) == sorted(map(id, found))


@pytest.mark.parametrize("count", [2, 3])
def test_of_every_pair_and_triple_of_kinds_each_finding_has_a_root(count: int) -> None:
    steps = (0, 0, 40)[-count:]
    for chosen in product(VARIANTS, repeat=count):
        found = [
            Finding(message="", since_step=at, **x) for x, at in zip(chosen, steps, strict=True)
        ]
        assert listed_once(found), [one.kind for one in found]


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
    causes = causes_of([note("input_scale", model="a"), warning("nonfinite", 5, model="b")])
    assert [one.finding.kind for one in causes] == ["nonfinite", "input_scale"]


def test_consequences_stand_below_their_cause_without_advice_of_their_own() -> None:
    own = {"meaning": "A step was too large", "advice": "Lower the learning rate"}
    found = [note("dead", 5, layer="a", **own), note("input_scale", advice="Normalize them")]
    found += [warning("nonfinite", 9, **own), note("uneven_upsampling", None, **own)]
    listed = by_cause(found)
    assert [(one.kind, one.follows, one.explanation) for one in listed] == [
        ("input_scale", "", "Normalize them."),
        ("dead", "input_scale", "May follow from input_scale."),
        ("nonfinite", "input_scale", "May follow from input_scale. A step was too large."),
        ("uneven_upsampling", "", "A step was too large. Lower the learning rate."),
    ]
    assert by_cause(listed) == listed
    assert ["follows" in one.as_json() for one in listed] == [False, True, True, False]
    alike = [note("dead", 5, layer=name, **own) for name in "ab"]
    assert list(by_cause(alike)) == alike


def test_a_warning_anywhere_is_a_fault_and_notes_alone_are_a_suspicion() -> None:
    fault = judge("a", [note("input_scale"), warning("nonfinite", 9)], Seen())
    assert (fault.verdict, fault.cause and fault.cause.class_) == ("fault", "note")
    suspicion, nothing = judge("b", [note("dead")], Seen()), judge("c", [], Seen())
    assert (suspicion.verdict, nothing.verdict) == ("suspicion", "nothing found")


@pytest.mark.parametrize(
    ("why", "expected"),
    [
        ("too few rows", "fewer than eight rows with a gradient were logged so far"),
        ("no gradient", "no gradient has reached what the network returned"),
        ("not certain", "the gradient is not for certain that of a loss that can be read"),
        ("several losses", "several losses were passed back through the output one after another"),
        ("of a later version", "of a later version"),
    ],
)
def test_why_no_loss_is_known_is_said_in_words(why: str, expected: str) -> None:
    seen = Seen(no_loss={"aux": why, "out": "not certain"}, curves={"loss/given/out": [(0, 1.0)]})
    _, text = judge("run", [], seen).figures
    assert text == f"no loss of `aux` was read: {expected}; board.loss(loss) logs it"


def test_the_object_has_the_findings_as_check_has_them() -> None:
    found = [warning("eval_mode", 4, advice="Call train()"), note("batchnorm_gap", 8, value=2.0)]
    seen = Seen(
        2, 3, 20, curves={"loss/given": [(0, 2.3), (20, 2.25)]}, not_checked={"dead": "needs x"}
    )
    assert judge("runs/a", [*found, note("mine")], seen).as_json() == {
        "run": "runs/a",
        "verdict": "fault",
        "cause": found[0].as_json(),
        "consequences": [found[1].as_json()],
        "evidence": [
            "eval_mode is so", "loss 2.3 at step 0, 2.25 at step 20",
            "2 layers × 3 steps, the last one 20", "found besides: mine: mine is so",
        ],
        "next": "Call train(). See `fmapboard docs checks#eval_mode`",
        "not_checked": {"dead": "needs x"},
        "no_loss": {},
    }  # fmt: skip


def test_the_text_begins_with_verdict_and_cause() -> None:
    found = [warning("eval_mode", 4, meaning="Dropout is off.", advice="Call train().")]
    found += [note("batchnorm_gap", 8, healthy="a factor of 1.2")]
    lacking = {"dead": "needs x", "vanishing": "needs x"}
    assert judge("runs/a", found, Seen(2, 3, 20, not_checked=lacking)).lines(["p/a.png"]) == [
        "fault: runs/a (2 layers × 3 steps, the last one 20)",
        "cause: eval_mode: eval_mode is so",
        "means: Dropout is off",
        "may follow from it: batchnorm_gap: batchnorm_gap is so (healthy: a factor of 1.2)",
        "next: Call train(). See `fmapboard docs checks#eval_mode`",
        "not checked: dead, vanishing (needs x)",
        "picture: p/a.png",
    ]


def test_however_much_is_found_the_text_keeps_its_limits() -> None:
    long = "x" * 3000
    found = [note(kind, 0, healthy=long, meaning=long, advice=long) for kind in WAY]
    found += [warning(f"mine{n}", model=long, meaning=long) for n in range(5)]
    seen = Seen(
        9, 9, 9,
        updates=[Update(f"update_ratio/{long}.weight", 0, 0.1)],
        curves={f"loss/given/{n} {long}": [(0, 1.0)] for n in range(3)},
        not_checked={f"other{n}": f"{n} {long}" for n in range(5)},
    )  # fmt: skip
    paths = [f"pictures/{'y' * 200}{n}.png" for n in range(3)]
    for pictures, shown in ((paths, 3), (["z" * 5000] * 3, 0), ([], 0)):
        lines = judge(long, found, seen).lines(pictures)
        assert len(lines) <= MOST_LINES == 15
        assert MOST_CHARACTERS - 40 < len("\n".join(lines)) <= MOST_CHARACTERS == 2400
        assert [line for line in lines if line.startswith("picture: ")] == [
            f"picture: {path}" for path in pictures[:shown]
        ]
        for label in ("fault: ", "cause: ", "means: ", "next: ", "not checked: "):
            assert any(line.startswith(label) for line in lines)


def test_what_is_not_named_is_counted() -> None:
    found = [warning("eval_mode"), *(note("dead", n, layer=f"l{n}") for n in range(5))]
    reasons = {"a": "needs 1", "b": "needs 2", "c": "needs 1"}
    rest = judge("", found, Seen(not_checked=reasons)).rest
    assert rest[-2:] == ["not checked: a, c (needs 1)", "not checked: b (needs 2)"]
    several = judge("", found, Seen(not_checked={**reasons, "d": "needs 3"})).rest
    assert several[-1] == "not checked: a, b, c, d (--json says why)"
    assert [line for line in rest if "follow" in line] == [
        "may follow from it: dead: dead is so", "may follow from it: dead: dead is so; and 3 more",
    ]  # fmt: skip


def seen(layers: int = 9, steps: int = 10, updates: Any = (), *, of_images: bool = False) -> Seen:
    return Seen(layers, steps, steps - 1, of_images, updates)


def test_only_ratios_of_weights_count() -> None:
    assert is_update_of_weights("update_ratio/stem.weight")
    assert is_update_of_weights("net.update_ratio/weight")
    for tag in ("update_ratio/stem.bias", "gradient_norm/stem.weight", "loss"):
        assert not is_update_of_weights(tag)


@pytest.mark.parametrize(
    ("most", "said"), [(0.027, "2.7 %"), (0.2, "20 %"), (0.571, "57 %"), (13.3, "1,300 %")]
)
def test_the_median_and_the_largest_update_are_named(most: float, said: str) -> None:
    updates = [
        Update("update_ratio/head.weight", 25, most),
        Update("update_ratio/stem.weight", 25, 0.0084),
        Update("update_ratio/stem.weight", 50, 0.0042),
        Update("update_ratio/stem.weight", 75, math.nan),
    ]
    figures = f"median update 0.84 %, largest {said} (`head.weight`, step 25)"
    assert judge("", [], seen(updates=updates)).line == (
        f"Nothing found in 9 layers × 10 steps: {figures}"
    )


def test_without_updates_only_the_extent_is_told() -> None:
    assert judge("", [], seen(1, 1)).line == "Nothing found in 1 layer × 1 step"
    images = judge("", [], seen(1200, 6, of_images=True))
    assert images.line == "Nothing found in 1,200 layers × 6 images"
    assert "train" not in images.next


def test_the_model_of_a_named_run_is_told() -> None:
    line = judge("", [], seen(updates=[Update("net.update_ratio/a.weight", 3, 1e-7)])).line
    assert line.endswith(": median update 1e-05 %, largest 1e-05 % (`net: a.weight`, step 3)")


def test_updates_are_told_of_the_steps_that_the_checks_see() -> None:
    updates = [Update("update_ratio/a.weight", step, 0.1) for step in range(100)]
    kept = [step for _, step, _ in as_checked(updates, {50, None})]
    assert kept == [*range(4), 50, *range(72, 100)]


def test_the_loss_is_told_of_each_model_and_output_from_the_first_step_on() -> None:
    curves = {
        "output/spread": [(10, 0.5)], "loss/read_from_gradient": [(0, 2.302585), (10, 1.5)],
        "loss/accuracy": [(0, 0.125), (10, 0.5)], "net.loss/given/aux.0": [(10, 1.0)],
        "other.output/spread": [(10, 9.0)],
    }  # fmt: skip
    assert all(map(is_of_output, curves))
    assert not any(map(is_of_output, ("loss", "loss/train", "loss/given2", "output/spreads")))
    assert judge("", [], Seen(curves=curves)).figures == [
        "loss 2.3 at step 0, 1.5 at step 10; share of right answers 0.125 at step 0, 0.5 at step "
        "10; spread of the output 0.5 at step 10; loss of `net: aux.0` 1 at step 10"
    ]


@pytest.mark.parametrize(("last", "stays"), [(1.43, True), (1.38, True), (1.2, False)])
def test_a_loss_that_has_not_fallen_is_told_where_nothing_was_found(
    last: float, stays: bool
) -> None:
    seen = Seen(
        curves={"loss/read_from_gradient": [(0, 1.4), (9, last)], "loss/accuracy": [(0, 1)]}
    )
    assert judge("", [], seen).next.startswith("The loss has not fallen") == stays
    assert judge("", [note("dead", advice="Do")], seen).next.startswith("Do.")


def test_what_was_held_back_is_told_of_its_own_step() -> None:
    late = OutputFacts("", (8, 10), loss=1.5, held=HeldLoss(STEPS[0], 2.5, 0.125))
    facts = [TrainingFacts(outputs=(OutputFacts("", (8, 10)),)), TrainingFacts(outputs=(late,))]
    curves = seen_in([run_checks(record(facts=facts))]).curves
    assert curves["loss/read_from_gradient"] == [(STEPS[0], 2.5), (STEPS[1], 1.5)]
    assert curves["loss/accuracy"] == [(STEPS[0], 0.125)]


def test_numbers_are_taken_from_what_the_checks_read() -> None:
    outputs = [OutputFacts("", (8, 10), loss=2.5 - n / 10, spread=0.5) for n in range(len(STEPS))]
    facts = [TrainingFacts(outputs=(each,)) for each in outputs]
    scalars = {"update_ratio/conv0.weight": [0.01] * len(STEPS), "update_ratio/conv0.bias": [9.0]}
    report = run_checks(record(facts=facts, scalars=scalars))
    found = seen_in([report])
    assert (found.layers, found.steps, found.last_step) == (6, len(STEPS), 70)
    assert {tag for tag, *_ in found.updates} == {"update_ratio/conv0.weight"}
    assert judge("", [], found).figures[0] == (
        "loss 2.5 at step 0, 1.8 at step 70; spread of the output 0.5 at step 0, 0.5 at step 70"
    )
    assert found.not_checked is not None
    assert found.not_checked["vanishing"] == "needs the scalars gradient_norm/…"
