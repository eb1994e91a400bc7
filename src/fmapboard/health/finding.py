"""What a check says: one fault, what was measured, what to do; which findings explain others."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from fmapboard.formats.checks import Class, StoredFinding


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding(StoredFinding):
    """One fault of a run.

    Attributes:
        kind: what was found, such as ``"dead"``; "" becomes the kind of the check.
        class_: ``"warning"`` for what is wrong for certain, whatever the network; ``"note"`` for a
            number that healthy runs seldom have.
        message: what was measured, where and since which step, as a sentence without its full stop;
            names are between backticks.
        since_step: first logged step with it; None if it does not begin at a step.
        layer: label of the layer, or None.
        parameter: name of the parameter, or None.
        parameters: names of all parameters that it is about, if it is about several.
        value: the number that was measured; None if there is none.
        follows: kind of the finding from which it may follow; "" if it is a cause. Set by
            `run_checks`, as its meaning then is.
        healthy: the values that healthy runs have, in words; "" for warnings.
        meaning: what it may mean, as a sentence.
        advice: what to do, as a sentence.
        picture: tag of the series of pictures that shows it, or "".
        model: name of the model, as in ``watch(name=...)``; "" for none. Set by `run_checks`.
    """

    kind: str = ""
    class_: Class = "note"
    picture: str = ""
    model: str = ""

    @property
    def link(self) -> str:
        """The command that prints what the docs say of the check; "" if it is not built in."""
        from fmapboard.health.run import BUILT_IN  # here: it imports this module

        documented = any(check.kind == self.kind for check in BUILT_IN)
        return f"`fmapboard docs checks#{self.kind}`" if documented else ""

    @property
    def sentence(self) -> str:
        """The model's name unless the message has it, the message, and the healthy values."""
        model = f"`{self.model}`: " if self.model and self.kind != "nonfinite" else ""
        healthy = f" (healthy: {self.healthy})" if self.healthy else ""
        return f"{model}{self.message}{healthy}"

    @property
    def text(self) -> str:
        """The whole finding in sentences: message, healthy values, meaning, advice, picture."""
        parts = [self.sentence]
        parts += [part.rstrip(".") for part in (self.meaning, self.advice) if part]
        if self.picture:
            parts.append(f"Picture: `{self.picture}`")
        if self.link:
            parts.append(f"See {self.link}")
        return ". ".join(parts)

    @property
    def explanation(self) -> str:
        """Meaning and advice as sentences; "" if it has none."""
        return " ".join(f"{part.rstrip('.')}." for part in (self.meaning, self.advice) if part)

    def as_json(self) -> dict[str, Any]:
        """An object for ``fmapboard check --json``; numbers that are not finite become null."""
        place: dict[str, str | None] = {"layer": self.layer}
        if self.layer is None and self.parameter is not None:
            place = {"parameter": self.parameter}
        value = self.value
        if value is not None and not math.isfinite(value):
            value = None
        answer: dict[str, Any] = {
            "kind": self.kind,
            "class": self.class_,
            **place,
            "since_step": self.since_step,
            "value": value,
            "healthy": self.healthy or None,
            "message": self.text,
        }
        if self.follows:
            answer["follows"] = self.follows
        if self.model:
            answer["model"] = self.model
        return answer


def percent(share: float) -> str:
    """A share in percent with two digits: "0.84 %", "57 %", "1,300 %"."""
    return f"{rounded(100 * share)} %"


def rounded(value: float) -> str:
    """Two digits of a number, as a person writes them.

    >>> [rounded(value) for value in (0, 5.6e-7, 17.3, 929.0, 12345, 1.4e7)]
    ['0', '5.6e-07', '17', '930', '12,000', '1.4e+07']
    """
    digits = f"{value:.2g}"
    if 100 <= value < 1e6:
        return f"{float(digits):,.0f}"
    return digits


def named(names: list[str] | tuple[str, ...], total: int | None = None, most: int = 3) -> str:
    """The first names between backticks, and how many more there are.

    Example:
        >>> named(["a", "b", "c", "d"])
        '`a`, `b`, `c` and 1 more'
    """
    if total is None:
        total = len(names)
    shown = [f"`{name}`" for name in names[:most]]
    text = ", ".join(shown)
    more = total - len(shown)
    return f"{text} and {more} more" if more else text


Stage = Literal["input", "labels", "loss", "optimizer", "weights", "layers", "gradients", "output"]


class Place(NamedTuple):
    """Where on the data's way a check looks, and what may follow from what it finds.

    Attributes:
        stage: of the way.
        leads_to: ``"less"``: signals, gradients, updates or answers that fade or are all alike;
            ``"any"``: these, and values that grow or are no longer finite.
        is_result: other findings may lead to it: it is a number that the run came to, and nothing
            that the code does.
    """

    stage: Stage
    leads_to: Literal["nothing", "less", "any"]
    is_result: bool = False


WAY: Mapping[str, Place] = {
    "constant_images": Place("input", "less"),
    "identical_images": Place("input", "less"),
    "input_scale": Place("input", "any"),
    "same_batch": Place("input", "nothing"),
    "sorted_labels": Place("labels", "less"),
    "one_label": Place("labels", "less"),
    "unused_classes": Place("labels", "nothing"),
    "double_softmax": Place("loss", "less"),
    "probabilities_into_loss": Place("loss", "any"),
    "loss_climbed": Place("loss", "any"),
    "never_called": Place("layers", "less"),
    "eval_mode": Place("optimizer", "any"),
    "not_in_optimizer": Place("optimizer", "less"),
    "gradients_not_cleared": Place("optimizer", "any"),
    "rate_vanished": Place("optimizer", "less"),
    "copied_channels": Place("weights", "less"),
    "dropout_high": Place("layers", "less"),
    "batchnorm_small_batch": Place("layers", "less"),
    "uneven_upsampling": Place("layers", "nothing"),
    # Results in the order in which they arise within a step: forward, backward, update.
    "exploding": Place("layers", "any", is_result=True),
    "nonfinite": Place("layers", "any", is_result=True),
    "saturated": Place("layers", "less", is_result=True),
    "dead": Place("layers", "less", is_result=True),
    "batchnorm_gap": Place("layers", "nothing", is_result=True),
    "initial_loss": Place("loss", "any", is_result=True),
    "vanishing": Place("gradients", "less", is_result=True),
    "unchanged_weights": Place("weights", "less", is_result=True),
    "update_ratio": Place("weights", "any", is_result=True),
    "constant_output": Place("output", "nothing", is_result=True),
}
"""Kind of each built-in check -> its place, in the order in which causes come before effects."""
_GROWN = frozenset({"exploding", "nonfinite", "update_ratio"})
"""Results to which only what leads to ``"any"`` may lead."""
_SMALL_UPDATE = 1e-3
"""Update ratio below which it is the small size that was found, not the large one."""


class Cause(NamedTuple):
    """A finding to which no other one leads, and what may follow from it."""

    finding: Finding
    consequences: tuple[Finding, ...]


def causes_of(findings: Iterable[Finding]) -> list[Cause]:
    """The findings that no earlier cause explains, the most probable root cause first.

    Each finding is in it once: as a cause, or below the first cause that explains it. A finding
    explains results of the same model that come later in `WAY` at the same step, or
    at a later step, and findings of its own kind and class. Causes with a warning, their own or
    one that follows, come first; then those to which something may be due at all; then what the
    code does before results; then what is earlier. Findings of checks that `WAY` does not have
    explain nothing, and come last.
    """
    ordered = sorted(findings, key=_moment)
    # A finding that no root explains is a root itself, so that each has one. `_explains` is not
    # transitive: what explains a finding may follow from something that does not explain it.
    roots: list[Finding] = []
    for finding in ordered:
        if not any(_explains(root, finding) for root in roots):
            roots.append(finding)
    roots.sort(key=lambda root: _rank(root, [found for found in ordered if _explains(root, found)]))
    consequences: dict[int, list[Finding]] = {id(root): [] for root in roots}
    for finding in ordered:
        if id(finding) not in consequences:
            first = next(root for root in roots if _explains(root, finding))
            consequences[id(first)].append(finding)
    return [Cause(root, tuple(consequences[id(root)])) for root in roots]


def _place(finding: Finding) -> Place | None:
    """Where a finding is on the data's way.

    An output that is constant whatever was trained, with no first step, is no result.
    """
    if finding.kind == "constant_output" and finding.since_step is None:
        return WAY["double_softmax"]
    return WAY.get(finding.kind)


def _moment(finding: Finding) -> tuple[int, int]:
    """Step since which it is so, -1 for from the start, and its place within a step.

    What labels and loss are does not change within a run, though it is certain some steps later.
    """
    place = _place(finding)
    since = -1 if finding.since_step is None else finding.since_step
    if place is None:
        return since, len(WAY)
    if place.stage in ("labels", "loss") and not place.is_result:
        since = -1
    kind = finding.kind
    if kind == "update_ratio" and since > 0 and not _is_small_update(finding):
        kind = "saturated"  # after steps that were not logged
    return since, list(WAY).index(kind)


def _explains(cause: Finding, effect: Finding) -> bool:
    if cause is effect or cause.model != effect.model or _moment(cause) > _moment(effect):
        return False
    place_of_cause = _place(cause)
    place_of_effect = _place(effect)
    if place_of_cause is None or place_of_effect is None:
        return False
    from_small = _is_small_update(cause)
    to_small = _is_small_update(effect)
    if cause.kind == effect.kind and from_small == to_small:
        return cause.class_ == effect.class_
    if not place_of_effect.is_result or place_of_cause.leads_to == "nothing":
        return False
    if effect.kind not in _GROWN or to_small:
        return True
    return place_of_cause.leads_to == "any" and not from_small


def _is_small_update(finding: Finding) -> bool:
    return finding.kind == "update_ratio" and (finding.value or 0.0) < _SMALL_UPDATE


class Rank(NamedTuple):
    """What causes are ordered by, ascending.

    Attributes:
        goes_on: the training is not lost.
        is_uncertain: no warning is among the cause and what it explains.
        idle: 0 if something may be due to it, 1 if nothing, 2 if it is meant, most often: one batch
            is kept on purpose to see if it can be learnt at all.
        is_result: it is a number that the run came to.
        moment: see `_moment`.
    """

    goes_on: bool
    is_uncertain: bool
    idle: int
    is_result: bool
    moment: tuple[int, int]


def _rank(root: Finding, explained: Sequence[Finding]) -> Rank:
    place = _place(root) or WAY["constant_output"]
    classes = {finding.class_ for finding in (root, *explained)}
    idle = 0
    if root.kind == "same_batch":
        idle = 2
    elif place.leads_to == "nothing":
        idle = 1
    return Rank(
        goes_on=root.kind != "nonfinite" or root.class_ != "warning",
        is_uncertain="warning" not in classes,
        idle=idle,
        is_result=place.is_result,
        moment=_moment(root),
    )


def by_cause(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings ordered by cause, each cause followed by its consequences.

    A consequence says from what it may follow instead of what it would mean alone; of a warning the
    meaning is kept. Advice is given for causes only. What has the kind of its cause stays as it is.
    """
    ordered: list[Finding] = []
    for cause, consequences in causes_of(findings):
        ordered.append(cause)
        ordered += [_following(finding, cause.kind) for finding in consequences]
    return tuple(ordered)


def _following(finding: Finding, cause: str) -> Finding:
    if cause in {finding.kind, finding.follows}:
        return finding
    meaning = f"May follow from {cause}"
    if finding.class_ == "warning" and finding.meaning:
        meaning += f". {finding.meaning}"
    return replace(finding, follows=cause, meaning=meaning, advice="")
