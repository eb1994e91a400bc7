"""Experts to which their router sends no token."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.health import thresholds
from fmapboard.health.evidence import Evidence, since_share
from fmapboard.health.finding import Finding
from fmapboard.health.rule import Rule
from fmapboard.health.table import HealthTable, call_text


@dataclass(frozen=True, slots=True)
class DeadExpertsCheck(Rule):
    """The same experts of a router get no token of the batch, at four logged steps in a row.

    Which expert gets a token follows from the scores that the router returned.

    Why it hurts: an expert without tokens gets no gradient and stays as it is, while the others do
    its work: the network is smaller than it is meant to be, and the router seldom comes back.

    Silent: for batches with so few tokens that an expert may be left out by chance.

    Example: a mixture of experts that is trained without a loss that balances their load.

    Attributes:
        tokens: number of tokens per expert and step from which a router is looked at.
    """

    tokens: int = thresholds.TOKENS_PER_EXPERT.value
    kind: ClassVar[str] = "dead_experts"

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        table = evidence.layers
        dead = [index for index in range(len(table.rows)) if self._dead(table, index) > 0]
        if not dead or table.is_of_images:
            return
        first = dead[0]
        row = table.rows[first]
        share = self._dead(table, first)
        count = round(share * row.facts.channels)
        since = since_share(table, first, share, table.steps[-1])
        get = "gets" if count == 1 else "get"
        more = ""
        if len(dead) > 1:
            routers = "router" if len(dead) == 2 else "routers"
            more = f"; the same of {len(dead) - 1} further {routers}"
        yield Finding(
            message=f"{count} of {row.facts.channels} experts of {call_text(table, row)} "
            f"{get} no token of the batch since step {since}{more}",
            since_step=since,
            layer=row.facts.label,
            value=share,
            healthy="0",
            meaning="Experts without tokens get no gradient and stay as they are, so the network "
            "is smaller than it is meant to be",
            advice="Add a loss that balances the load (the `aux_loss` of many libraries), or noise "
            "to the scores of the router; lower its learning rate",
            picture=evidence.record.picture(row),
        )

    def _dead(self, table: HealthTable, index: int) -> float:
        """Share of a router's experts that are dead at the newest steps; 0 of other layers."""
        facts = table.rows[index].facts
        if facts.unit != "expert" or facts.values < self.tokens * facts.channels:
            return 0.0
        lasting = float(table.columns["dead_lasting"][-1, index])
        return lasting if lasting > thresholds.SHARE_ROUNDING.value else 0.0
