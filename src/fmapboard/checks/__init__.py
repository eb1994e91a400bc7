"""Say in words what is wrong in a logged run: the public names of `fmapboard.health`.

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

from fmapboard.health.checks.growth import ExplodingCheck, VanishingCheck
from fmapboard.health.checks.layers import CopiedChannelsCheck, DeadCheck, UnevenUpsamplingCheck
from fmapboard.health.checks.loop import (
    ConstantImagesCheck,
    EvalModeCheck,
    GradientsNotClearedCheck,
    IdenticalImagesCheck,
    InputScaleCheck,
    NotInOptimizerCheck,
)
from fmapboard.health.checks.nonfinite import NonfiniteCheck
from fmapboard.health.checks.weights import (
    BatchnormGapCheck,
    UnchangedWeightsCheck,
    UpdateRatioCheck,
)
from fmapboard.health.finding import Finding
from fmapboard.health.record import Check, NotRecorded, RunRecord, Series
from fmapboard.health.run import BUILT_IN, Checks, Report, chosen, run_checks
from fmapboard.health.table import HealthRow, HealthTable

__all__ = [
    "BUILT_IN",
    "BatchnormGapCheck",
    "Check",
    "Checks",
    "ConstantImagesCheck",
    "CopiedChannelsCheck",
    "DeadCheck",
    "EvalModeCheck",
    "ExplodingCheck",
    "Finding",
    "GradientsNotClearedCheck",
    "HealthRow",
    "HealthTable",
    "IdenticalImagesCheck",
    "InputScaleCheck",
    "NonfiniteCheck",
    "NotInOptimizerCheck",
    "NotRecorded",
    "Report",
    "RunRecord",
    "Series",
    "UnchangedWeightsCheck",
    "UnevenUpsamplingCheck",
    "UpdateRatioCheck",
    "VanishingCheck",
    "chosen",
    "run_checks",
]
