"""What a built-in rule is: one kind of fault, what excuses it, and what may follow from it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding
from fmapboard.health.record import RunRecord


class Rule(ABC):
    """A built-in check for one kind of fault, whose fields are its thresholds.

    A subclass is a frozen dataclass in a module of its own, ``health.rules.<kind>``. Its docstring
    is what the docs say of it: what it sees, why that hurts, when the rule is silent, an example.
    No rule calls another one: what several rules need is a fact of `Evidence`.

    Attributes:
        kind: of its findings.
        group: name under which several rules are switched on and off together; "" for its kind.
        unless: kinds of other rules: if one of them finds something, that is the cause, and
            `run.run_checks` leaves out what this rule finds.
        leads_to: kinds of findings that may follow from this one, see `causes`.
        is_from_start: it has been so since the run began, whenever it became certain.
        cure: what takes the cause away from a copy of the network, a key of `cures.CURES`; "" if
            nothing of ours does.
    """

    __slots__ = ()
    kind: ClassVar[str]
    group: ClassVar[str] = ""
    unless: ClassVar[tuple[str, ...]] = ()
    leads_to: ClassVar[tuple[str, ...]] = ()
    is_from_start: ClassVar[bool] = False
    cure: ClassVar[str] = ""

    def __call__(self, record: RunRecord) -> Sequence[Finding]:
        """What is wrong in a run; see `record.Check`."""
        return self.findings(Evidence(record))

    def findings(self, evidence: Evidence) -> list[Finding]:
        """What is wrong, given facts that may be known already.

        Raises:
            NotRecorded: the run lacks a series that the rule reads.
        """
        docs = f"checks#{self.kind}"
        findings = []
        for found in self.find(evidence):
            cure = self.cure if found.cure is None else found.cure
            findings.append(replace(found, kind=self.kind, docs=docs, cure=cure))
        return findings

    @abstractmethod
    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """What is wrong; kind and cure of the findings are set by `findings`."""
