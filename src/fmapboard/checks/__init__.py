"""Say in words what is wrong in a logged run: one small object per check, without torch.

A check is called with the record of a run and returns what it found (see `Check`). Pass your own
to ``watch``, which runs them in its worker thread, besides the built-in ones::

    from dataclasses import dataclass
    from fmapboard.checks import Finding, RunRecord

    @dataclass(frozen=True)
    class LargeStepCheck:
        most: float = 100.0  # norm of the gradient
        kind = "large_step"

        def __call__(self, record: RunRecord) -> list[Finding]:
            total = record.group("gradient_norm")["total"]
            step, value = int(total.steps[-1]), float(total.values[-1])
            if not value > self.most:
                return []
            message = f"the gradient's norm is {value:.3g} at step {step}"
            return [Finding(kind=self.kind, class_="note", message=message, since_step=step)]

    fmapboard.watch(model, checks=[LargeStepCheck()])

On the command line, ``fmapboard check RUN --check package.module:LargeStepCheck`` runs it.
"""

from __future__ import annotations

from fmapboard.checks.built_in import BUILT_IN, Checks, Report, chosen, run_checks
from fmapboard.checks.finding import Finding
from fmapboard.checks.health_table import HealthRow, HealthTable
from fmapboard.checks.run_record import Check, NotRecorded, RunRecord, Series

__all__ = [
    "BUILT_IN",
    "Check",
    "Checks",
    "Finding",
    "HealthRow",
    "HealthTable",
    "NotRecorded",
    "Report",
    "RunRecord",
    "Series",
    "chosen",
    "run_checks",
]
