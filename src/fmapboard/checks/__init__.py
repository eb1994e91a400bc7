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

from fmapboard.health.checks.layers import CopiedChannelsCheck as CopiedChannelsCheck
from fmapboard.health.checks.layers import DeadCheck as DeadCheck
from fmapboard.health.checks.layers import DropoutHighCheck as DropoutHighCheck
from fmapboard.health.checks.layers import ExplodingCheck as ExplodingCheck
from fmapboard.health.checks.layers import SaturatedCheck as SaturatedCheck
from fmapboard.health.checks.layers import UnevenUpsamplingCheck as UnevenUpsamplingCheck
from fmapboard.health.checks.layers import VanishingCheck as VanishingCheck
from fmapboard.health.checks.loop import ConstantImagesCheck as ConstantImagesCheck
from fmapboard.health.checks.loop import EvalModeCheck as EvalModeCheck
from fmapboard.health.checks.loop import GradientsNotClearedCheck as GradientsNotClearedCheck
from fmapboard.health.checks.loop import IdenticalImagesCheck as IdenticalImagesCheck
from fmapboard.health.checks.loop import InputScaleCheck as InputScaleCheck
from fmapboard.health.checks.loop import NeverCalledCheck as NeverCalledCheck
from fmapboard.health.checks.loop import NotInOptimizerCheck as NotInOptimizerCheck
from fmapboard.health.checks.loop import RateVanishedCheck as RateVanishedCheck
from fmapboard.health.checks.loop import SameBatchCheck as SameBatchCheck
from fmapboard.health.checks.nonfinite import NonfiniteCheck as NonfiniteCheck
from fmapboard.health.checks.outputs import ConstantOutputCheck as ConstantOutputCheck
from fmapboard.health.checks.outputs import DoubleSoftmaxCheck as DoubleSoftmaxCheck
from fmapboard.health.checks.outputs import InitialLossCheck as InitialLossCheck
from fmapboard.health.checks.outputs import LossClimbedCheck as LossClimbedCheck
from fmapboard.health.checks.outputs import OneLabelCheck as OneLabelCheck
from fmapboard.health.checks.outputs import ProbabilitiesIntoLossCheck as ProbabilitiesIntoLossCheck
from fmapboard.health.checks.outputs import SortedLabelsCheck as SortedLabelsCheck
from fmapboard.health.checks.outputs import UnusedClassesCheck as UnusedClassesCheck
from fmapboard.health.checks.weights import BatchnormGapCheck as BatchnormGapCheck
from fmapboard.health.checks.weights import BatchnormSmallBatchCheck as BatchnormSmallBatchCheck
from fmapboard.health.checks.weights import UnchangedWeightsCheck as UnchangedWeightsCheck
from fmapboard.health.checks.weights import UpdateRatioCheck as UpdateRatioCheck
from fmapboard.health.finding import Finding as Finding
from fmapboard.health.record import Check as Check
from fmapboard.health.record import NotRecorded as NotRecorded
from fmapboard.health.record import RunRecord as RunRecord
from fmapboard.health.record import Series as Series
from fmapboard.health.run import BUILT_IN as BUILT_IN
from fmapboard.health.run import Checks as Checks
from fmapboard.health.run import Report as Report
from fmapboard.health.run import chosen as chosen
from fmapboard.health.run import run_checks as run_checks
from fmapboard.health.table import HealthRow as HealthRow
from fmapboard.health.table import HealthTable as HealthTable
