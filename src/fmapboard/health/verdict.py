"""Why a run is as it is: whether it learns, the root cause of what is wrong, and the next step."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from fmapboard.formats.checks import Ends, OutputProgress, Seen
from fmapboard.formats.training_facts import NoLoss
from fmapboard.health import thresholds
from fmapboard.health.causes import Cause, causes_of
from fmapboard.health.evidence import quoted
from fmapboard.health.finding import Finding, percent, rounded, times
from fmapboard.health.progress import learns
from fmapboard.health.rules import BUILT_IN, unchecked_text

State = Literal["fault", "suspicion", "does not learn", "not known", "learns"]
"""``fault``: a warning was found; ``suspicion``: notes only; otherwise nothing was found, and the
loss is known and did not fall, is not known, or is known and fell."""
WORST_FIRST: tuple[State, ...] = ("fault", "suspicion", "does not learn", "not known", "learns")
SWITCHED_OFF = "switched off"
"""Why a check says nothing that the user switched off."""
LOOK = "Look at the maps in the Feature maps tab."
"""What to do next where nothing is wrong."""
MOST_LINES = 15
MOST_CHARACTERS = 2400
"""Limits of the text about a run."""
_SHOWN = 2
"""Maximum number of consequences, of further causes, of outputs and of reasons in the text."""


@dataclass(frozen=True, slots=True)
class Remark:
    """A line of the text about a run: "evidence: loss 2.3 at step 0, 0.41 at step 90".

    Attributes:
        label: what kind of line it is.
        text: the rest, a sentence without a full stop.
    """

    label: str
    text: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a run is as it is.

    Attributes:
        run: its name or path.
        causes: see `causes_of`.
        seen: what it was looked through for.
        not_checked: kind of a check that says nothing of the run -> why, in words.
        has_names: the texts name checks and functions, as the command line does and a page does
            not.
    """

    run: str
    causes: Sequence[Cause]
    seen: Seen
    not_checked: Mapping[str, str]
    has_names: bool = True

    @property
    def state(self) -> State:
        """What the run is, in one word or three."""
        for cause, consequences in self.causes:
            if any(finding.class_ == "warning" for finding in (cause, *consequences)):
                return "fault"
        if self.causes:
            return "suspicion"
        if self.learns is None:
            return "not known"
        return "learns" if self.learns else "does not learn"

    @property
    def learns(self) -> bool | None:
        """True if the loss fell and was not lost to a NaN; None if it is not known."""
        lost = self._nonfinite_since
        newest = [output.loss[-1][0] for output in self.seen.outputs if output.loss]
        if lost is not None and newest and max(newest) < lost:
            return False
        return learns(self.seen)

    @property
    def cause(self) -> Finding | None:
        """The root cause; None if nothing was found."""
        return self.causes[0].finding if self.causes else None

    @property
    def findings(self) -> list[Finding]:
        """All that was found, each cause followed by its consequences."""
        found: list[Finding] = []
        for cause, consequences in self.causes:
            found += [cause, *consequences]
        return found

    @property
    def consequences(self) -> tuple[Finding, ...]:
        """What may follow from the root cause."""
        return self.causes[0].consequences if self.causes else ()

    @property
    def extent(self) -> str:
        """How much was looked through: "9 layers × 10 steps"."""
        kind = "image" if self.seen.is_of_images else "step"
        return f"{_counted(self.seen.layers, 'layer')} × {_counted(self.seen.steps, kind)}"

    @property
    def _looked_at(self) -> str:
        if self.seen.last_step is None:
            return self.extent
        return f"{self.extent}, the last one {self.seen.last_step}"

    @property
    def line(self) -> str:
        """The cause or, if there is none, whether the run learns, in one sentence."""
        if self.cause is not None:
            return f"{self.cause.sentence}{self._lost}"
        nothing = f"nothing found in {self.extent}"
        if self.state == "learns":
            return f"{_fallen(self.seen)}; {nothing}"
        if self.state == "does not learn":
            return f"{_not_fallen(self.seen)}; {nothing}"
        if self.seen.is_of_images:
            return nothing
        return f"{nothing}; whether it learns is not known, since {_why(self.seen)}"

    @property
    def _nonfinite_since(self) -> int | None:
        """Since when values are NaN or infinite; None if none is."""
        for cause, consequences in self.causes:
            for finding in (cause, *consequences):
                if finding.kind == "nonfinite":
                    return finding.since_step
        return None

    @property
    def _lost(self) -> str:
        """Since when values are not finite, if that is not the cause itself."""
        if self.cause is None or self.cause.kind == "nonfinite" or self._nonfinite_since is None:
            return ""
        return f"; values are NaN or infinite since step {self._nonfinite_since}"

    @property
    def figures(self) -> list[str]:
        """Numbers of the run, as sentences without a full stop."""
        no_loss = _of_no_loss(self.seen)
        if self.has_names:
            no_loss = [f"{text}; board.loss(loss) logs it" for text in no_loss]
        lost = _lost_spread(self.seen) if self.cause is not None and self.learns is False else ""
        of_spread = [lost] if lost else []
        return [*_of_outputs(self.seen), *no_loss, *of_spread, *_of_updates(self.seen)]

    @property
    def progress(self) -> str:
        """Loss and accuracy of the first outputs, without a full stop; "" if no loss is known."""
        is_known = any(output.loss for output in self.seen.outputs)
        return "; ".join(_of_outputs(self.seen)) if is_known else ""

    @property
    def proofs(self) -> list[str]:
        """What experiments showed: of the cause, and of what they refuted, with its name."""
        own = [] if self.cause is None or not self.cause.proved else [self.cause.proved]
        for finding, _ in self.causes[1:]:
            if finding.proved:
                own.append(f"{self._name(finding.kind)} {finding.proved}")
        return own[:_SHOWN]

    @property
    def evidence(self) -> list[str]:
        """What was measured, and what else was found that does not follow from the cause."""
        own = [] if self.cause is None else [self.cause.sentence]
        also = [f"found besides: {_brief(finding)}" for finding, _ in self.causes[1:]]
        return [*own, *self.proofs, *self.figures, self._looked_at, *also]

    @property
    def next(self) -> str:
        """What to do, in sentences."""
        if self.cause is not None:
            advice = self.cause.advice.rstrip(".") or "Look at the run in the Feature maps tab"
            see = f" See {self.cause.link}" if self.cause.link else ""
            return f"{advice}.{see}"
        if self.seen.is_of_images or self.state == "learns":
            return LOOK
        if self.state == "does not learn":
            return _next_of_stays(self.seen)
        output = _near_frequency(self.seen)
        if output is not None:
            how = "fmapboard.rehearse" if self.has_names else "a rehearsal"
            return (
                "Until now the frequency of the labels is learned, and nothing of the inputs. "
                f"Train longer; if the loss stays near {output.guess:.3g}, {how} tries on copies "
                "what keeps the inputs out."
            )
        if self._is_all_off:
            how = "leave out checks=False" if self.has_names else "switch the checks on"
            return f"Nothing was checked: {how} to know whether it learns."
        if any(output.loss for output in self.seen.outputs):
            return _train_longer(self.seen)
        how = "Call board.loss(loss, labels)" if self.has_names else "Log the loss and the labels"
        return f"{how} in the loop, to switch the checks of the loss on."

    @property
    def _is_all_off(self) -> bool:
        """True if all built-in checks were switched off."""
        off = {kind for kind, why in self.not_checked.items() if why == SWITCHED_OFF}
        return off.issuperset(check.kind for check in BUILT_IN)

    def as_json(self) -> dict[str, Any]:
        """An object for ``fmapboard why --json``."""
        return {
            "run": self.run,
            "verdict": self.state,
            "learns": self.learns,
            "line": self.line,
            "cause": None if self.cause is None else self.cause.as_json(),
            "consequences": [finding.as_json() for finding in self.consequences],
            "evidence": self.evidence,
            "next": self.next,
            "not_checked": dict(self.not_checked),
            "no_loss": dict(self.seen.no_loss),
        }

    @property
    def rest(self) -> list[Remark]:
        """What the text says besides `line`."""
        remarks = []
        if self.cause is not None and self.cause.meaning:
            remarks.append(Remark("means", self.cause.meaning.rstrip(".")))
        remarks += [Remark("proof", proof) for proof in self.proofs]
        remarks += [Remark("evidence", figure) for figure in self.figures]
        besides = [finding for finding, _ in self.causes[1:]]
        remarks += [Remark("may follow from it", text) for text in self._listed(self.consequences)]
        remarks += [Remark("found besides", text) for text in self._listed(besides)]
        remarks.append(Remark("next", self.next))
        remarks += [Remark("not checked", text) for text in self._unchecked]
        return remarks

    def _name(self, kind: str) -> str:
        """The name of a check, or the words that it is made of."""
        return kind if self.has_names else kind.replace("_", " ")

    def _listed(self, findings: Sequence[Finding]) -> list[str]:
        """One line for each of the first `_SHOWN`, the last of which says how many more follow."""
        shown = findings[:_SHOWN]
        rows = [_brief(finding) if self.has_names else finding.sentence for finding in shown]
        more = len(findings) - _SHOWN
        if more > 0:
            rows[-1] += f"; and {more} more"
        return rows

    @property
    def _unchecked(self) -> list[str]:
        """Which checks say nothing, with the reason if there are at most `_SHOWN` reasons."""
        reasons: dict[str, list[str]] = {}
        for kind, why in self.not_checked.items():
            reasons.setdefault(why, []).append(kind)
        if len(reasons) > _SHOWN and self.has_names:
            return [f"{', '.join(self.not_checked)} (--json says why)"]
        return [unchecked_text(kinds, why, name=self._name) for why, kinds in reasons.items()]

    @property
    def unproven(self) -> list[str]:
        """How an experiment is made, if none was and one of the causes has a cure."""
        if self.seen.is_of_images or any(finding.proof for finding in self.findings):
            return []
        if not any(finding.cure for finding, _ in self.causes):
            return []
        return [
            "proof: none was tried; watch(..., prove=True) trains a copy without the cause at the "
            "end, see `fmapboard docs prove`"
        ]

    def lines(self, pictures: Sequence[str] = (), further: Sequence[str] = ()) -> list[str]:
        """The text: at most `MOST_LINES` lines and `MOST_CHARACTERS` characters.

        Args:
            pictures: paths of pictures that show it; those are not shortened, but left out.
            further: lines that end it.
        """
        lines = [f"{self.state}: {self.run} ({self._looked_at})"]
        if self.cause is not None:
            lines.append(f"cause: {self.cause.kind}: {self.line}")
        else:
            lines.append(self.line)
        lines += [f"{remark.label}: {remark.text}" for remark in self.rest]
        lines += further
        shown = [f"picture: {path}" for path in pictures]
        most = MOST_CHARACTERS // 2
        while shown and (len(lines) + len(shown) > MOST_LINES or len("\n".join(shown)) > most):
            shown.pop()
        left = MOST_CHARACTERS - sum(len(line) + 1 for line in shown)
        return [*_shortened(lines, left), *shown]


def _train_longer(seen: Seen) -> str:
    """What to do about a loss of which it is not known whether it falls."""
    if all(output.may_stay for output in seen.outputs if output.loss):
        return "Look at what the networks make: their losses need not fall."
    text = "Train longer or log more steps"
    if any(output.accuracy for output in seen.outputs):
        return f"{text}."
    return f"{text}; the losses of GANs and of agents need not fall."


def judge(
    run: str, findings: Iterable[Finding], seen: Seen, not_checked: Mapping[str, str]
) -> Verdict:
    """The verdict on a run, from what was found and what was looked at."""
    return Verdict(run, causes_of(findings), seen, not_checked)


def _brief(finding: Finding) -> str:
    return f"{finding.kind}: {finding.sentence}"


def _shortened(lines: Sequence[str], most: int) -> list[str]:
    """The lines with at most ``most`` characters in all; the longest ones are cut."""
    lengths = [len(line) + 1 for line in lines]
    size = max(lengths)
    while size > 0 and sum(min(size, length) for length in lengths) > most:
        size -= 1
    return [line if len(line) < size else f"{line[: max(0, size - 2)]}…" for line in lines]


def _step_values(ends: Ends) -> str:
    return ", ".join(f"{value:.3g} at step {step}" for step, value in ends)


def _of_outputs(seen: Seen) -> list[str]:
    """Numbers of the first `_SHOWN` outputs: "loss 2.3 at step 0, 0.41 at step 90; …".

    Of a loss that the network returns, all rows are known, and of its other outputs some.
    """
    texts: list[str] = []
    is_returned = any(output.is_loss and output.loss for output in seen.outputs)
    for output in sorted(seen.outputs, key=lambda output: output.name)[:_SHOWN]:
        of_name = f" of `{output.name}`" if output.name else ""
        if output.loss and (output.is_loss or not is_returned):
            of_loss = _own_name(output) if output.is_loss else of_name
            texts.append(f"loss{of_loss} {_step_values(output.loss)}{_as_given(output)}")
        if output.accuracy:
            shares = [f"{percent(share)} at step {step}" for step, share in output.accuracy]
            texts.append(f"batch accuracy{of_name} {', '.join(shares)}")
        if output.spread and not output.loss:
            texts.append(f"spread of the output{of_name} {_step_values(output.spread)}")
    return ["; ".join(texts)] if texts else []


def _as_given(output: OutputProgress) -> str:
    """What ``backward`` was called on, if that is not the mean over the rows."""
    factor = output.factor
    if factor is None or factor < thresholds.SUMMED.value:
        return ""
    values = " and ".join(f"{factor * value:.3g}" for _, value in output.loss)
    return f" per row (backward() was called on {rounded(factor)} times as much: {values})"


def _fallen(seen: Seen) -> str:
    """How far the loss of the first output fell."""
    output = next(output for output in seen.outputs if output.learns)
    (first, start), (last, end) = output.loss[0], output.loss[-1]
    text = f"{_loss(output)} fell from {start:.3g} at step {first} to {end:.3g} at step {last}"
    if output.accuracy:
        text += f" (batch accuracy {percent(output.accuracy[-1][1])})"
    return text


def _not_fallen(seen: Seen) -> str:
    """What the loss is that did not fall, beside that of guessing, and what that leaves."""
    output = next(output for output in seen.outputs if output.learns is False)
    first, start = output.loss[0]
    late = output.late or 0.0
    moved = ""
    if seen.usual_update is not None:
        moved = f", although the weights move by {times(seen.usual_update)} per step (median)"
    lost = _lost_spread(seen)
    guess = output.guess
    if guess is not None and abs(late - guess) < thresholds.NEAR_GUESS.value * guess:
        of_classes = ""
        if output.classes and abs(guess - math.log(output.classes)) < thresholds.NEAR_LN.value:
            of_classes = f"ln {output.classes} = "
        varies = ""
        if output.spread:
            varies = f" (the output varies by {rounded(output.spread[-1][1])} of its magnitude)"
        if lost:
            varies = f" ({lost})"
        return (
            f"{_loss(output)} is {late:.3g} towards the end of {seen.last_step} steps, that of "
            f"guessing ({of_classes}{guess:.3g}){moved}: the labels do not belong to the inputs, "
            f"the inputs are lost on their way{varies}, or what can learn is frozen"
        )
    change = "risen" if late > start else "hardly fallen"
    ends = f"{start:.3g} at step {first}, {late:.3g} towards the end of {seen.last_step} steps"
    where = f"; {lost}" if lost else ""
    return f"{_loss(output)} has {change}{moved}: {ends}{where}"


def _lost_spread(seen: Seen) -> str:
    """Where the inputs become alike; "" if nowhere."""
    lost = seen.lost_spread
    if lost is None:
        return ""
    behind = f"by at most {percent(lost.behind)}" if lost.behind else "not at all"
    return (
        f"the outputs of layers differ between inputs by at least {percent(lost.before)} up to "
        f"`{lost.last}`, and {behind} from `{lost.first}` on"
    )


def _next_of_stays(seen: Seen) -> str:
    """What to do if the loss did not fall and nothing was found."""
    lost = seen.lost_spread
    if lost is not None:
        return (
            f"Look at `{lost.first}` and at what is called between `{lost.last}` and it: "
            "weights of almost 0, a saturated activation or a softmax make inputs alike."
        )
    return (
        "Look at the inputs and their labels, and train on a single batch until its loss is near "
        "0; see what the checks cannot see: "
        "`fmapboard docs how_we_know#what-the-checks-cannot-see`"
    )


def _own_name(output: OutputProgress) -> str:
    """The quoted name of a loss that the network returns, unless that says "loss" again."""
    return "" if output.name == "loss" else quoted(output.name)


def _loss(output: OutputProgress) -> str:
    if output.is_loss:
        return f"the loss{_own_name(output)} that the network returns"
    return f"the loss of `{output.name}`" if output.name else "the loss"


_NO_LOSS = {
    NoLoss.FEW_ROWS: "fewer than eight rows with a gradient were logged so far",
    NoLoss.NO_GRADIENT: "no gradient has reached what the network returned",
    NoLoss.NOT_CERTAIN: "its gradient fits no loss that fmapboard knows for certain",
    NoLoss.SEVERAL: "several losses were passed back through the output one after another",
}
"""Why no loss is known -> in words."""


def _why(seen: Seen) -> str:
    """Why it is not known whether the loss fell."""
    output = _near_frequency(seen)
    if output is not None:
        first, start = output.loss[0]
        return (
            f"{_loss(output)} fell from {start:.3g} at step {first} to {output.late:.3g} towards "
            f"the end of {seen.last_step} steps, and the frequency of the labels alone "
            f"gives {output.guess:.3g}"
        )
    for known in seen.outputs:
        if known.loss:
            return _undecided(known)
    for why in seen.no_loss.values():
        return f"no loss was read: {_NO_LOSS.get(why, why)}"
    return "no loss was read"


def _undecided(output: OutputProgress) -> str:
    """Why a known loss does not tell whether the output learns."""
    loss = _loss(output)
    if output.may_stay:
        return f"{loss} need not fall: each batch has one label, as for a GAN's discriminator"
    if output.late is None:
        least = thresholds.LOGGED_STEPS.value
        return f"{loss} is known at fewer than {least} logged steps"
    first, start = output.loss[0]
    ends = f"{start:.3g} at step {first}, a median of {output.late:.3g} towards the end"
    if output.may_stay is None:
        return f"{loss} varies too much, or need not fall: {ends}"
    if output.late < start:
        return f"{loss} has fallen by no more than it varies from step to step: {ends}"
    return f"{loss} has not fallen yet, in fewer than {thresholds.UPDATE_SPAN.value} steps: {ends}"


def _near_frequency(seen: Seen) -> OutputProgress | None:
    """The output whose loss fell to what the frequency of the labels alone gives."""
    for output in seen.outputs:
        late = output.late
        if late is None or not output.guess or output.learns is not None:
            continue  # where all labels are the same, that of guessing is 0
        _, start = output.loss[0]
        if thresholds.STAYS.value * output.guess <= late < thresholds.STAYS.value * start:
            return output
    return None


def _of_no_loss(seen: Seen) -> list[str]:
    """Why no loss of the first `_SHOWN` outputs without one is known."""
    known = {output.name for output in seen.outputs if output.loss}
    unknown = sorted(seen.no_loss.keys() - known)
    found = []
    for name in unknown[:_SHOWN]:
        of_name = f" of `{name}`" if name else ""
        why = _NO_LOSS.get(seen.no_loss[name], seen.no_loss[name])
        found.append(f"no loss{of_name} was read: {why}")
    return found


def _of_updates(seen: Seen) -> list[str]:
    """The size of the updates, and with which rate and batch they were made."""
    texts = []
    if seen.usual_update is not None:
        usual = times(seen.usual_update, is_estimate=seen.is_usual_estimate)
        texts.append(f"median update {usual} over all weights and steps")
    largest = seen.largest_update
    if largest is not None:
        place = f"`{largest.parameter}`, step {largest.step}"
        size = times(largest.value, is_estimate=largest.is_estimate)
        texts.append(f"largest {size} ({place})")
    texts += seen.optimizers
    if seen.rates is not None:
        texts.append(f"learning rate {_between(*seen.rates)}")
    if seen.weight_decays is not None:
        texts.append(f"weight decay {_between(*seen.weight_decays)}")
    if seen.batch:
        texts.append(f"batches of {seen.batch}")
    elif seen.rows:
        texts.append(f"outputs of {seen.rows} rows")
    return [", ".join(texts)] if texts else []


def _between(low: float, high: float) -> str:
    return f"{high:.3g}" if low == high else f"{low:.3g} to {high:.3g}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number:,} {noun}s"
