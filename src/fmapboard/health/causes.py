"""Which findings are causes, and which may follow from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from fmapboard.health.cures import REFUTED
from fmapboard.health.effects import RESULTS
from fmapboard.health.finding import Finding
from fmapboard.health.rules import BUILT_IN

EDGES: Mapping[str, tuple[str, ...]] = {rule.kind: rule.leads_to for rule in BUILT_IN}
"""Kind of each built-in rule -> the kinds that may follow from it, directly or not. Its order is
that of `BUILT_IN`: causes come before effects."""
_ORDER = {kind: index for index, kind in enumerate(EDGES)}
_FROM_START = frozenset(rule.kind for rule in BUILT_IN if rule.is_from_start)
_ON_PURPOSE = frozenset({"same_batch"})
"""What is meant, most often: one batch is kept to see if it can be learnt at all."""


class Cause(NamedTuple):
    """A finding to which no other one leads, and what may follow from it."""

    finding: Finding
    consequences: tuple[Finding, ...]


class Moment(NamedTuple):
    """When a finding arises.

    Attributes:
        since: step since which it is so, -1 for from the start.
        place: of its kind in `EDGES`; behind all of them for other checks.
    """

    since: int
    place: int


def causes_of(findings: Iterable[Finding]) -> list[Cause]:
    """The findings that no earlier cause explains, the most probable root cause first.

    Each finding is in it once: as a cause, or below the first cause that explains it. A finding
    explains findings of the same model to whose kinds its own leads, from its step on, and further
    ones of its own kind and class. Causes with a warning, their own or one that follows, come
    first; then those from which something may follow; then what the code does before what a run
    comes to; then what is earlier. Findings of checks that are not built in explain nothing, and
    come last. What an experiment has refuted explains nothing, and stands behind all others.
    """
    ordered = sorted(findings, key=_moment)
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


def by_cause(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings ordered by cause, each cause followed by its consequences.

    Of a consequence that is a note, what it would mean alone is left out. Advice is given for
    causes only. What has the kind of its cause stays as it is.
    """
    ordered: list[Finding] = []
    for cause, consequences in causes_of(findings):
        ordered.append(cause)
        ordered += [_following(finding, cause.kind) for finding in consequences]
    return tuple(ordered)


def _moment(finding: Finding) -> Moment:
    since = finding.since_step
    if since is None or finding.kind in _FROM_START:
        since = -1
    return Moment(since, _ORDER.get(finding.kind, len(_ORDER)))


def _explains(cause: Finding, effect: Finding) -> bool:
    if cause is effect or cause.model != effect.model or _is_refuted(cause):
        return False
    began = _moment(cause).since
    seen = _moment(effect).since
    if cause.kind == effect.kind:
        return cause.class_ == effect.class_ and began <= seen
    if effect.kind not in EDGES.get(cause.kind, ()):
        return False
    if cause.kind == "updates_too_large" and seen == 0:
        return False  # what the first forward pass computed was there before the first update
    return began <= seen


def _is_refuted(finding: Finding) -> bool:
    return finding.proof is not None and finding.proof.outcome == REFUTED


class Rank(NamedTuple):
    """What causes are ordered by, ascending.

    Attributes:
        is_refuted: a copy without it learns no better.
        goes_on: the training is not lost.
        is_uncertain: no warning is among the cause and what it explains.
        is_on_purpose: it is meant, most often.
        is_idle: nothing may follow from it.
        is_result: it is a number that the run came to.
        moment: when it arose.
    """

    is_refuted: bool
    goes_on: bool
    is_uncertain: bool
    is_on_purpose: bool
    is_idle: bool
    is_result: bool
    moment: Moment


def _rank(root: Finding, explained: Sequence[Finding]) -> Rank:
    classes = {finding.class_ for finding in (root, *explained)}
    return Rank(
        is_refuted=_is_refuted(root),
        goes_on=root.kind != "nonfinite" or root.class_ != "warning",
        is_uncertain="warning" not in classes,
        is_on_purpose=root.kind in _ON_PURPOSE,
        is_idle=not EDGES.get(root.kind),
        is_result=root.kind in RESULTS,
        moment=_moment(root),
    )


def _following(finding: Finding, cause: str) -> Finding:
    if cause == finding.kind:
        return finding
    # Records of before 0.1.0 say the cause in the meaning, too.
    own = finding.meaning.removeprefix(f"May follow from {cause}").lstrip(". ")
    meaning = own if finding.class_ == "warning" else ""
    return replace(finding, follows=cause, meaning=meaning, advice="")
