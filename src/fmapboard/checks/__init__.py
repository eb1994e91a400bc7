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

from fmapboard.formats.checks import Proof as Proof
from fmapboard.health.causes import Cause as Cause
from fmapboard.health.finding import Finding as Finding
from fmapboard.health.record import Check as Check
from fmapboard.health.record import NotRecorded as NotRecorded
from fmapboard.health.record import RunRecord as RunRecord
from fmapboard.health.record import Series as Series
from fmapboard.health.rules import BUILT_IN as BUILT_IN
from fmapboard.health.rules import AveragedTargetsCheck as AveragedTargetsCheck
from fmapboard.health.rules import BatchnormFewValuesCheck as BatchnormFewValuesCheck
from fmapboard.health.rules import BatchnormGapCheck as BatchnormGapCheck
from fmapboard.health.rules import BatchnormMomentumCheck as BatchnormMomentumCheck
from fmapboard.health.rules import BatchnormSmallBatchCheck as BatchnormSmallBatchCheck
from fmapboard.health.rules import ConstantImagesCheck as ConstantImagesCheck
from fmapboard.health.rules import ConstantOutputCheck as ConstantOutputCheck
from fmapboard.health.rules import CopiedChannelsCheck as CopiedChannelsCheck
from fmapboard.health.rules import CutOffLayersCheck as CutOffLayersCheck
from fmapboard.health.rules import DeadCheck as DeadCheck
from fmapboard.health.rules import DoubleSoftmaxCheck as DoubleSoftmaxCheck
from fmapboard.health.rules import DropoutHighCheck as DropoutHighCheck
from fmapboard.health.rules import EmptyCodeCheck as EmptyCodeCheck
from fmapboard.health.rules import EvalModeCheck as EvalModeCheck
from fmapboard.health.rules import ExplodingCheck as ExplodingCheck
from fmapboard.health.rules import FadingSignalCheck as FadingSignalCheck
from fmapboard.health.rules import FarTargetsCheck as FarTargetsCheck
from fmapboard.health.rules import FlatImagesCheck as FlatImagesCheck
from fmapboard.health.rules import GradientsNotClearedCheck as GradientsNotClearedCheck
from fmapboard.health.rules import GrowingSignalCheck as GrowingSignalCheck
from fmapboard.health.rules import IdenticalImagesCheck as IdenticalImagesCheck
from fmapboard.health.rules import ImagesNotScaledCheck as ImagesNotScaledCheck
from fmapboard.health.rules import InitialLossCheck as InitialLossCheck
from fmapboard.health.rules import InputMagnitudeCheck as InputMagnitudeCheck
from fmapboard.health.rules import LabelsBeyond1Check as LabelsBeyond1Check
from fmapboard.health.rules import LargeActivationsCheck as LargeActivationsCheck
from fmapboard.health.rules import LossClimbedCheck as LossClimbedCheck
from fmapboard.health.rules import LossWithoutLogarithmCheck as LossWithoutLogarithmCheck
from fmapboard.health.rules import NeverCalledCheck as NeverCalledCheck
from fmapboard.health.rules import NoGradientCheck as NoGradientCheck
from fmapboard.health.rules import NonfiniteCheck as NonfiniteCheck
from fmapboard.health.rules import NoOptimizerStepCheck as NoOptimizerStepCheck
from fmapboard.health.rules import NotInOptimizerCheck as NotInOptimizerCheck
from fmapboard.health.rules import OneLabelCheck as OneLabelCheck
from fmapboard.health.rules import OnePredictionCheck as OnePredictionCheck
from fmapboard.health.rules import ProbabilitiesIntoLossCheck as ProbabilitiesIntoLossCheck
from fmapboard.health.rules import RateVanishedCheck as RateVanishedCheck
from fmapboard.health.rules import RepeatedImagesCheck as RepeatedImagesCheck
from fmapboard.health.rules import SameBatchCheck as SameBatchCheck
from fmapboard.health.rules import SaturatedCheck as SaturatedCheck
from fmapboard.health.rules import SaturatedOutputCheck as SaturatedOutputCheck
from fmapboard.health.rules import ScrambledImagesCheck as ScrambledImagesCheck
from fmapboard.health.rules import SoftmaxOfOneClassCheck as SoftmaxOfOneClassCheck
from fmapboard.health.rules import SortedLabelsCheck as SortedLabelsCheck
from fmapboard.health.rules import UnchangedWeightsCheck as UnchangedWeightsCheck
from fmapboard.health.rules import UnevenUpsamplingCheck as UnevenUpsamplingCheck
from fmapboard.health.rules import UnusedClassesCheck as UnusedClassesCheck
from fmapboard.health.rules import UpdatesTooLargeCheck as UpdatesTooLargeCheck
from fmapboard.health.rules import UpdatesTooSmallCheck as UpdatesTooSmallCheck
from fmapboard.health.rules import VanishingCheck as VanishingCheck
from fmapboard.health.rules import ZeroOutputCheck as ZeroOutputCheck
from fmapboard.health.rules import ZeroRateCheck as ZeroRateCheck
from fmapboard.health.rules import ZeroWeightsCheck as ZeroWeightsCheck
from fmapboard.health.run import Checks as Checks
from fmapboard.health.run import Report as Report
from fmapboard.health.run import chosen as chosen
from fmapboard.health.run import run_checks as run_checks
from fmapboard.health.table import HealthRow as HealthRow
from fmapboard.health.table import HealthTable as HealthTable
from fmapboard.health.verdict import Verdict as Verdict
