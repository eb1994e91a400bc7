"""The verdict on a run: whether it learns, and what is said within the limits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from check_records import STEPS, record

from fmapboard.checks import BUILT_IN, Finding
from fmapboard.formats.checks import (
    Ends,
    LargestUpdate,
    LostSpread,
    OutputProgress,
    Proof,
    Seen,
)
from fmapboard.formats.training_facts import HeldLoss, OutputFacts, TrainingFacts
from fmapboard.health.progress import merged
from fmapboard.health.run import run_checks
from fmapboard.health.verdict import (
    MOST_CHARACTERS,
    MOST_LINES,
    SWITCHED_OFF,
    Remark,
    Verdict,
    judge,
)

KINDS = [check.kind for check in BUILT_IN]


def note(kind: str, since: int | None = 0, **known: Any) -> Finding:
    return Finding(kind=kind, message=f"{kind} is so", since_step=since, **known)


def warning(kind: str, since: int | None = 0, **known: Any) -> Finding:
    return note(kind, since, class_="warning", **known)


def verdict(*found: Finding, **seen: Any) -> Verdict:
    """The verdict on findings, given fields of what was looked at."""
    return judge("run", found, Seen(**seen), {})


def test_a_warning_anywhere_is_a_fault_and_notes_alone_are_a_suspicion() -> None:
    fault = verdict(note("images_not_scaled"), warning("nonfinite", 9))
    assert (fault.state, fault.cause and fault.cause.class_) == ("fault", "note")
    assert fault.line == "images_not_scaled is so; values are NaN or infinite since step 9"
    assert verdict(note("dead")).state == "suspicion"


FELL: Ends = ((0, 2.3), (90, 0.41))
PROGRESS = OutputProgress("", loss=FELL, classes=10, guess=2.3, late=0.6, learns=True)
SIZE: dict[str, Any] = {"layers": 9, "steps": 10, "last_step": 90}


def test_a_loss_that_fell_is_the_first_line_of_a_run_that_learns() -> None:
    known = replace(PROGRESS, accuracy=((0, 0.1), (90, 0.87)))
    learning = verdict(**SIZE, outputs=(known,))
    assert (learning.state, learning.learns) == ("learns", True)
    assert learning.line == (
        "the loss fell from 2.3 at step 0 to 0.41 at step 90 (batch accuracy 87 %); "
        "nothing found in 9 layers × 10 steps"
    )


@pytest.mark.parametrize(("since", "learns"), [(80, True), (91, False)])
def test_a_loss_that_fell_until_values_were_nan_is_not_learning(since: int, learns: bool) -> None:
    lost = verdict(warning("nonfinite", since), **SIZE, outputs=(PROGRESS,))
    assert (lost.state, lost.learns) == ("fault", learns)


def test_a_loss_that_stays_at_that_of_guessing_says_what_that_leaves() -> None:
    stays = replace(PROGRESS, loss=((0, 2.4), (90, 2.31)), late=2.302, guess=2.3026, learns=False)
    at_guess = verdict(**SIZE, outputs=(stays,), usual_update=0.0025)
    assert (at_guess.state, at_guess.learns) == ("does not learn", False)
    assert at_guess.line == (
        "the loss is 2.3 towards the end of 90 steps, that of guessing (ln 10 = 2.3), although "
        "the weights move by 0.25 % per step (median): the labels do not belong to the inputs, the "
        "inputs are lost on their way, or what can learn is frozen; nothing found in 9 layers × "
        "10 steps"
    )
    varied = replace(stays, spread=((0, 0.3), (90, 1.13)))
    assert (
        "the inputs are lost on their way (the output varies by 1.1 of its magnitude), or"
        in verdict(**SIZE, outputs=(varied,)).line
    )
    uneven = replace(stays, guess=2.2, late=2.21)  # labels of different frequency
    assert "that of guessing (2.2)" in verdict(**SIZE, outputs=(uneven,)).line


@pytest.mark.parametrize(("late", "change"), [(4.87, "risen"), (2.05, "hardly fallen")])
def test_a_loss_that_rose_or_stays_elsewhere_is_told(late: float, change: str) -> None:
    stays = replace(PROGRESS, loss=((0, 2.09), (90, late)), late=late, guess=None, learns=False)
    assert verdict(**SIZE, outputs=(stays,)).line == (
        f"the loss has {change}: 2.09 at step 0, {late} towards the end of 90 steps; nothing "
        "found in 9 layers × 10 steps"
    )


LOST = LostSpread("block3", 0.31, "block4", 0.002)
ALIKE = (
    "the outputs of layers differ between inputs by at least 31 % up to `block3`, and by at most "
    "0.2 % from `block4` on"
)


def test_where_inputs_become_alike_is_said_of_a_run_that_does_not_learn() -> None:
    stays = replace(PROGRESS, loss=((0, 2.4), (90, 2.31)), late=2.302, guess=2.3026, learns=False)
    at_guess = verdict(**SIZE, outputs=(stays,), lost_spread=LOST)
    assert f"the inputs are lost on their way ({ALIKE}), or what can learn" in at_guess.line
    assert at_guess.next.startswith("Look at `block4` and at what is called between `block3` and ")
    risen = replace(stays, late=4.9, guess=None)
    assert (
        f"of 90 steps; {ALIKE}; nothing" in verdict(**SIZE, outputs=(risen,), lost_spread=LOST).line
    )
    found = verdict(note("vanishing"), **SIZE, outputs=(stays,), lost_spread=LOST)
    assert ALIKE in found.evidence
    assert Remark("evidence", ALIKE) in found.rest
    alike = verdict(**SIZE, outputs=(stays,), lost_spread=replace(LOST, behind=0.0))
    assert "up to `block3`, and not at all from `block4` on" in alike.line


def test_where_inputs_become_alike_is_not_said_of_a_run_that_learns() -> None:
    for found in ((), (note("vanishing"),)):
        learning = verdict(*found, **SIZE, outputs=(PROGRESS,), lost_spread=LOST)
        assert "block3" not in " ".join(learning.lines())


def test_the_output_whose_loss_did_not_fall_is_named() -> None:
    aux = replace(PROGRESS, name="net: aux", guess=None, late=2.3, learns=False)
    other = replace(PROGRESS, name="head", learns=None)
    seen = verdict(**SIZE, outputs=(other, aux))
    assert (seen.state, seen.line.split(":")[0]) == ("does not learn", "the loss of `net")
    assert verdict(**SIZE, outputs=(PROGRESS, aux)).state == "learns"  # one of them fell


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        ({}, "no loss was read"),
        ({"no_loss": {"": "no gradient"}},
         "no loss was read: no gradient has reached what the network returned"),
        ({"outputs": (OutputProgress("", loss=FELL),)},
         "the loss is known at fewer than 4 logged steps"),
        ({"outputs": (replace(PROGRESS, learns=None, guess=None, may_stay=False),)},
         "the loss has fallen by no more than it varies from step to step: 2.3 at step 0, a "
         "median of 0.6 towards the end"),
        ({"outputs": (replace(PROGRESS, learns=None, guess=None, late=2.4, may_stay=False),)},
         "the loss has not fallen yet, in fewer than 50 steps: 2.3 at step 0, a median of "
         "2.4 towards the end"),
        ({"outputs": (replace(PROGRESS, learns=None, guess=None),)},
         "the loss varies too much, or need not fall: 2.3 at step 0, a median of 0.6 "
         "towards the end"),
        ({"outputs": (replace(PROGRESS, name="critic", learns=None, may_stay=True),)},
         "the loss of `critic` need not fall: each batch has one label, as for a GAN's "
         "discriminator"),
    ],
)  # fmt: skip
def test_a_loss_that_is_not_known_is_said_with_its_reason(seen: dict[str, Any], why: str) -> None:
    unknown = verdict(**SIZE, **seen)
    assert (unknown.state, unknown.learns) == ("not known", None)
    assert unknown.line == (
        f"nothing found in 9 layers × 10 steps; whether it learns is not known, since {why}"
    )
    advice = "Call board.loss(loss, labels)"
    if "outputs" in seen:
        need_not = seen["outputs"][0].may_stay
        advice = "Look at what the networks" if need_not else "Train longer or log more steps"
    assert unknown.next.startswith(advice)


def test_only_of_a_loss_without_labels_it_is_said_that_some_need_not_fall() -> None:
    outputs = replace(PROGRESS, learns=None, guess=None, may_stay=False)
    of_gan = verdict(**SIZE, outputs=(outputs,)).next
    assert of_gan.endswith("log more steps; the losses of GANs and of agents need not fall.")
    labelled = replace(outputs, accuracy=((0, 0.1), (90, 0.6)))
    assert verdict(**SIZE, outputs=(labelled,)).next == "Train longer or log more steps."


def test_a_loss_that_the_frequency_of_the_labels_gives_too_was_read_and_says_nothing_yet() -> None:
    near = replace(PROGRESS, guess=0.58, learns=None)
    unknown = verdict(**SIZE, outputs=(near,))
    assert (unknown.state, unknown.learns) == ("not known", None)
    assert unknown.line == (
        "nothing found in 9 layers × 10 steps; whether it learns is not known, since the loss fell "
        "from 2.3 at step 0 to 0.6 towards the end of 90 steps, and the frequency of the labels "
        "alone gives 0.58"
    )
    assert unknown.next == (
        "Until now the frequency of the labels is learned, and nothing of the inputs. Train "
        "longer; if the loss stays near 0.58, fmapboard.rehearse tries on copies what keeps the "
        "inputs out."
    )
    assert "a rehearsal tries on copies" in replace(unknown, has_names=False).next
    one_label = verdict(**SIZE, outputs=(replace(near, guess=0.0, may_stay=True),))
    assert "need not fall" in one_label.line
    assert one_label.next == "Look at what the networks make: their losses need not fall."


@pytest.mark.parametrize(
    ("why", "expected"),
    [
        ("too few rows", "fewer than eight rows with a gradient were logged so far"),
        ("no gradient", "no gradient has reached what the network returned"),
        ("not certain", "its gradient fits no loss that fmapboard knows for certain"),
        ("several losses", "several losses were passed back through the output one after another"),
        ("of a later version", "of a later version"),
    ],
)
def test_why_no_loss_is_known_is_said_in_words(why: str, expected: str) -> None:
    known = OutputProgress("out", loss=((0, 1.0),))
    _, text = verdict(no_loss={"aux": why, "out": "not certain"}, outputs=(known,)).figures
    assert text == f"no loss of `aux` was read: {expected}; board.loss(loss) logs it"


def test_the_object_has_the_findings_as_check_has_them() -> None:
    found = [warning("eval_mode", 4, advice="Call train()"), note("batchnorm_gap", 8, value=2.0)]
    progress = OutputProgress("", loss=((0, 2.3), (20, 2.25)), late=2.25, learns=False)
    seen = Seen(2, 3, 20, outputs=(progress,))
    assert judge("runs/a", [*found, note("mine")], seen, {"dead": "needs x"}).as_json() == {
        "run": "runs/a",
        "verdict": "fault",
        "learns": False,
        "line": "eval_mode is so",
        "cause": found[0].as_json(),
        "consequences": [found[1].as_json()],
        "evidence": [
            "eval_mode is so", "loss 2.3 at step 0, 2.25 at step 20",
            "2 layers × 3 steps, the last one 20", "found besides: mine: mine is so",
        ],
        "next": "Call train().",
        "not_checked": {"dead": "needs x"},
        "no_loss": {},
    }  # fmt: skip


def test_the_text_begins_with_verdict_and_cause() -> None:
    said = {"meaning": "Dropout is off.", "advice": "Call train()."}
    found = [warning("eval_mode", 4, **said, docs="checks#eval_mode")]
    found += [note("batchnorm_gap", 8, healthy="a factor of 1.2")]
    lacking = {"dead": "needs x", "vanishing": "needs x"}
    assert judge("runs/a", found, Seen(2, 3, 20), lacking).lines(["p/a.png"]) == [
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
    found = [note(kind, 0, healthy=long, meaning=long, advice=long) for kind in KINDS]
    found += [warning(f"mine{n}", model=long, meaning=long) for n in range(5)]
    outputs = tuple(OutputProgress(f"{n} {long}", loss=((0, 1.0),)) for n in range(3))
    update = LargestUpdate(f"{long}.weight", 0, 0.1)
    seen = Seen(9, 9, 9, usual_update=0.1, largest_update=update, outputs=outputs)
    lacking = {f"other{n}": f"{n} {long}" for n in range(5)}
    paths = [f"pictures/{'y' * 200}{n}.png" for n in range(3)]
    for pictures, shown in ((paths, 3), (["z" * 5000] * 3, 0), ([], 0)):
        lines = judge(long, found, seen, lacking).lines(pictures)
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
    rest = judge("", found, Seen(), reasons).rest
    unchecked = [remark.text for remark in rest if remark.label == "not checked"]
    assert unchecked == ["a, c (needs 1)", "b (needs 2)"]
    several = judge("", found, Seen(), {**reasons, "d": "needs 3"}).rest
    assert several[-1] == Remark("not checked", "a, b, c, d (--json says why)")
    follow = [remark.text for remark in rest if remark.label == "may follow from it"]
    assert follow == ["dead: dead is so", "dead: dead is so; and 3 more"]


def test_a_page_names_neither_checks_nor_functions() -> None:
    refuted = Proof("refuted", "lower_rate", 50, (2.3, 2.3), (2.3, 2.3))
    found = [warning("eval_mode"), note("batchnorm_gap", 8), note("rate_vanished", proof=refuted)]
    lacking = {"copied_channels": "needs `a_b`", "dead": "needs 2", "one_label": "needs 3"}
    cause = replace(judge("", found, Seen(no_loss={"": "no gradient"}), lacking), has_names=False)
    assert {remark.label: remark.text for remark in cause.rest[:-3]} == {
        "proof": f"rate vanished {found[2].proved}",
        "evidence": "no loss was read: no gradient has reached what the network returned",
        "may follow from it": "batchnorm_gap is so",
        "found besides": "rate_vanished is so",
        "next": "Look at the run in the Feature maps tab.",
    }
    assert [remark.text for remark in cause.rest[-3:]] == [
        "copied channels (needs `a_b`)", "dead (needs 2)", "one label (needs 3)",
    ]  # fmt: skip
    unknown = replace(judge("", [], Seen(), {}), has_names=False)
    assert unknown.next.startswith("Log the loss and the labels in the loop")
    off = dict.fromkeys((rule.kind for rule in BUILT_IN), SWITCHED_OFF)
    silent = replace(judge("", [], Seen(), off), has_names=False)
    assert silent.next == "Nothing was checked: switch the checks on to know whether it learns."


@pytest.mark.parametrize(
    ("most", "said"),
    [(0.027, "2.7 %"), (0.2, "20 %"), (0.571, "57 %"), (13.3, "13 times its norm")],
)
def test_the_median_and_the_largest_update_are_named_with_rate_and_batch(
    most: float, said: str
) -> None:
    largest = LargestUpdate("head.weight", 25, most)
    seen = verdict(usual_update=0.0084, largest_update=largest, rates=(0.1, 0.1), batch=32)
    assert seen.figures == [
        f"median update 0.84 % over all weights and steps, largest {said} (`head.weight`, step "
        "25), learning rate 0.1, batches of 32"
    ]
    assert verdict(rates=(0.01, 0.1)).figures == ["learning rate 0.01 to 0.1"]
    own = {"optimizers": ("AdamW",), "rates": (0.1, 0.1), "weight_decays": (0.0, 0.01)}
    assert verdict(**own).figures == ["AdamW, learning rate 0.1, weight decay 0 to 0.01"]


def test_without_images_the_rows_of_the_outputs_tell_the_size_of_a_batch() -> None:
    tables = [OutputFacts("a", (64, 8)), OutputFacts("b", (64, 2)), OutputFacts("loss", ())]
    seen = run_checks(record(facts=[TrainingFacts(outputs=tuple(tables))])).seen
    assert seen.rows == 64
    assert "outputs of 64 rows" in verdict(rows=64, rates=(0.1, 0.1)).figures[-1]
    assert "rows" not in verdict(rows=64, rates=(0.1, 0.1), batch=32).figures[-1]
    other = [tables[0], OutputFacts("b", (32, 2))]
    assert run_checks(record(facts=[TrainingFacts(outputs=tuple(other))])).seen.rows is None


def test_updates_of_weights_that_were_read_in_part_bear_a_sign() -> None:
    largest = LargestUpdate("head.weight", 25, 1.3, is_estimate=True)
    estimated = verdict(usual_update=0.0084, is_usual_estimate=True, largest_update=largest)
    assert estimated.figures == [
        "median update ≈ 0.84 % over all weights and steps, largest ≈ 1.3 times its norm "
        "(`head.weight`, step 25)"
    ]


def test_the_spread_of_an_output_is_told_where_no_loss_is_known() -> None:
    spread = ((0, 0.5), (90, 0.7))
    assert verdict(outputs=(OutputProgress("", spread=spread),)).figures == [
        "spread of the output 0.5 at step 0, 0.7 at step 90"
    ]
    known = OutputProgress("", loss=((0, 2.28), (90, 1.5)), spread=spread)
    assert verdict(outputs=(known,)).figures == ["loss 2.28 at step 0, 1.5 at step 90"]


def test_a_loss_that_was_multiplied_is_told_as_the_user_sees_it_too() -> None:
    output = OutputProgress("", loss=((0, 2.28), (90, 1.5)), factor=66.0)
    assert verdict(outputs=(output,)).figures == [
        "loss 2.28 at step 0, 1.5 at step 90 per row (backward() was called on 66 times as much: "
        "150 and 99)"
    ]
    (plain,) = verdict(outputs=(replace(output, factor=0.25),)).figures
    assert plain == "loss 2.28 at step 0, 1.5 at step 90"


def test_of_images_only_the_extent_is_told() -> None:
    images = verdict(layers=1200, steps=6, last_step=5, is_of_images=True)
    assert images.line == "nothing found in 1,200 layers × 6 images"
    assert "train" not in images.next


def outputs_at(*outputs: OutputFacts, **known: Any) -> Seen:
    """What is seen of a run with an output at each logged step."""
    facts = [TrainingFacts(outputs=(output,), rates=(0.1, 0.2), batch=32) for output in outputs]
    return run_checks(record(facts=facts, **known)).seen


def losses(*values: float, **known: Any) -> Seen:
    output = OutputFacts("", (8, 10), rows=8, kind="cross-entropy", classes=10)
    labels = tuple((label, 4) for label in range(10))
    return outputs_at(*(replace(output, loss=loss, labels=labels) for loss in values), **known)


FALLS = (2.3, 2.2, 2.0, 1.8, 1.6, 1.5, 1.4, 1.3)


@pytest.mark.parametrize(
    ("values", "learns"),
    [
        (FALLS, True),
        ((2.3,) * 8, False),
        ((2.09, 2.5, 3.0, 3.5, 4.0, 4.5, 4.8, 4.87), False),
        ((2.3, 2.31, 2.3, 2.31, 2.4, 2.35, 2.05, 1.6), True),  # in the last third only
        ((2.9, 2.6, 2.4, 2.31, 2.3, 2.3, 2.3, 2.3), None),  # to that of guessing
        ((2.3, 2.0, 1.5), None),  # too few
        ((9.0, 0.1) * 4, None),  # too different from step to step
    ],
)
def test_a_run_learns_if_its_loss_falls_below_its_start_and_below_guessing(
    values: tuple[float, ...], learns: bool | None
) -> None:
    (output,) = losses(*values).outputs
    assert output.learns == learns
    assert output.guess == pytest.approx(2.302585)


def test_in_few_training_steps_no_loss_need_fall_and_one_that_rose_is_told() -> None:
    (soon,) = losses(*[2.3] * 8, steps=range(8)).outputs
    (risen,) = losses(*range(2, 10), steps=range(8)).outputs
    assert (soon.learns, risen.learns) == (None, False)


def test_what_was_held_back_is_told_of_its_own_step() -> None:
    late = OutputFacts("", (8, 10), loss=1.5, held=HeldLoss(STEPS[0], 2.5, 0.125))
    (output,) = outputs_at(OutputFacts("", (8, 10)), late).outputs
    assert output.loss == ((STEPS[0], 2.5), (STEPS[1], 1.5))
    assert output.accuracy == ((STEPS[0], 0.125),)


def test_numbers_are_taken_from_what_the_checks_read() -> None:
    scalars = {"update_ratio/conv0.weight": [0.01] * 8, "update_ratio/conv0.bias": [9.0, 0.9]}
    seen = losses(*FALLS, scalars=scalars)
    assert (seen.layers, seen.steps, seen.last_step) == (6, 8, 70)
    assert (seen.rates, seen.batch, seen.usual_update) == ((0.1, 0.2), 32, 0.01)
    assert seen.largest_update == LargestUpdate("conv0.bias", 10, 0.9)  # 9.0 may be of one near 0
    report = run_checks(record(scalars=scalars))
    assert report.not_checked["vanishing"] == "needs the scalars gradient_norm/…"


def test_models_of_a_run_are_judged_together() -> None:
    falls = losses(*FALLS)
    stays = replace(falls, outputs=(OutputProgress("b", learns=False),), last_step=90)
    both = merged([falls, stays])
    assert (both.layers, both.steps, both.last_step) == (12, 8, 90)
    assert judge("", [], both, {}).learns is True  # one of them does
    assert judge("", [], merged([stays]), {}).learns is False
    assert judge("", [], merged([falls]), {}).state == "learns"


def test_of_several_models_all_optimizers_and_the_range_of_their_rates_are_named() -> None:
    first = Seen(optimizers=("Adam",), rates=(1e-4, 1e-3), weight_decays=(0.0, 0.0), batch=16)
    second = Seen(optimizers=("SGD", "Adam"), rates=(2e-4, 0.1), batch=16, rows=8)
    both = merged([first, second, Seen(batch=16)])
    assert judge("", [], both, {}).figures == [
        "Adam, SGD, learning rate 0.0001 to 0.1, weight decay 0, batches of 16"
    ]
    assert merged([first, Seen(batch=8)]).batch is None
    assert merged([second, second]).rows == 8
    assert merged([Seen(), Seen()]) == Seen()


def test_a_loss_that_is_not_known_to_have_fallen_is_not_said_to() -> None:
    short = replace(PROGRESS, guess=1.4, loss=((0, 1.38), (20, 1.45)), late=1.44, learns=None)
    short = replace(short, may_stay=False)
    unknown = verdict(**SIZE, outputs=(short,))
    assert "fell" not in unknown.line
    assert unknown.line.endswith(
        "the loss has not fallen yet, in fewer than 50 steps: 1.38 at step 0, a median of "
        "1.44 towards the end"
    )


def test_a_run_of_images_names_no_checks_of_a_training() -> None:
    none = dict.fromkeys(("vanishing", "eval_mode"), "nothing was trained")
    images = judge("", [], Seen(layers=2, steps=3, is_of_images=True), none)
    expected = "not checked: what only a training shows, since nothing was trained"
    assert images.lines()[-1] == expected


def test_a_loss_that_the_network_returns_is_named_as_one() -> None:
    (own,) = outputs_at(*[OutputFacts("loss", (), loss=loss) for loss in FALLS]).outputs
    (rows,) = losses(*FALLS).outputs
    assert (own.is_loss, rows.is_loss) == (True, False)
    both = verdict(**SIZE, outputs=(own, replace(rows, name="logits", accuracy=((0, 0.12),))))
    assert both.line.startswith("the loss that the network returns fell from 2.3 at step 0")
    expected = "batch accuracy of `logits` 12 % at step 0; loss 2.3 at step 0, 1.3 at step 70"
    assert both.figures[0] == expected


def test_the_loss_of_a_discriminator_is_known_to_need_not_fall() -> None:
    one_label = OutputFacts("", (8, 1), rows=8, kind="BCE with logits", loss=0.6, labels=((1, 8),))
    (critic,) = outputs_at(*[one_label] * 8).outputs
    (rows,) = losses(*FALLS).outputs
    assert (critic.may_stay, critic.learns, rows.may_stay) == (True, None, False)
