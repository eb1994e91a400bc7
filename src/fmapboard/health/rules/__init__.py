"""The built-in rules: one module per kind of fault, on the data's way from input to output.

A rule is called with the record of a run, or, where several rules are, with its evidence::

    findings = DeadCheck()(record)
    evidence = Evidence(record)
    findings = [found for rule in BUILT_IN for found in rule.findings(evidence)]
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from fmapboard.health.rule import Rule
from fmapboard.health.rules.attended_padding import AttendedPaddingCheck as AttendedPaddingCheck
from fmapboard.health.rules.attention_logits import AttentionLogitsCheck as AttentionLogitsCheck
from fmapboard.health.rules.attention_over_batch import (
    AttentionOverBatchCheck as AttentionOverBatchCheck,
)
from fmapboard.health.rules.averaged_targets import AveragedTargetsCheck as AveragedTargetsCheck
from fmapboard.health.rules.batchnorm_few_values import (
    BatchnormFewValuesCheck as BatchnormFewValuesCheck,
)
from fmapboard.health.rules.batchnorm_gap import BatchnormGapCheck as BatchnormGapCheck
from fmapboard.health.rules.batchnorm_momentum import (
    BatchnormMomentumCheck as BatchnormMomentumCheck,
)
from fmapboard.health.rules.batchnorm_small_batch import (
    BatchnormSmallBatchCheck as BatchnormSmallBatchCheck,
)
from fmapboard.health.rules.constant_images import ConstantImagesCheck as ConstantImagesCheck
from fmapboard.health.rules.constant_output import ConstantOutputCheck as ConstantOutputCheck
from fmapboard.health.rules.copied_channels import CopiedChannelsCheck as CopiedChannelsCheck
from fmapboard.health.rules.cut_off_layers import CutOffLayersCheck as CutOffLayersCheck
from fmapboard.health.rules.dead import DeadCheck as DeadCheck
from fmapboard.health.rules.dead_experts import DeadExpertsCheck as DeadExpertsCheck
from fmapboard.health.rules.dead_heads import DeadHeadsCheck as DeadHeadsCheck
from fmapboard.health.rules.double_softmax import DoubleSoftmaxCheck as DoubleSoftmaxCheck
from fmapboard.health.rules.dropout_high import DropoutHighCheck as DropoutHighCheck
from fmapboard.health.rules.empty_code import EmptyCodeCheck as EmptyCodeCheck
from fmapboard.health.rules.eval_mode import EvalModeCheck as EvalModeCheck
from fmapboard.health.rules.exploding import ExplodingCheck as ExplodingCheck
from fmapboard.health.rules.fading_signal import FadingSignalCheck as FadingSignalCheck
from fmapboard.health.rules.far_targets import FarTargetsCheck as FarTargetsCheck
from fmapboard.health.rules.flat_images import FlatImagesCheck as FlatImagesCheck
from fmapboard.health.rules.gradients_not_cleared import (
    GradientsNotClearedCheck as GradientsNotClearedCheck,
)
from fmapboard.health.rules.growing_signal import GrowingSignalCheck as GrowingSignalCheck
from fmapboard.health.rules.identical_images import IdenticalImagesCheck as IdenticalImagesCheck
from fmapboard.health.rules.idle_group import IdleGroupCheck as IdleGroupCheck
from fmapboard.health.rules.images_not_scaled import ImagesNotScaledCheck as ImagesNotScaledCheck
from fmapboard.health.rules.initial_loss import InitialLossCheck as InitialLossCheck
from fmapboard.health.rules.input_magnitude import InputMagnitudeCheck as InputMagnitudeCheck
from fmapboard.health.rules.labels_beyond_1 import LabelsBeyond1Check as LabelsBeyond1Check
from fmapboard.health.rules.labels_not_shifted import (
    LabelsNotShiftedCheck as LabelsNotShiftedCheck,
)
from fmapboard.health.rules.large_activations import LargeActivationsCheck as LargeActivationsCheck
from fmapboard.health.rules.loss_climbed import LossClimbedCheck as LossClimbedCheck
from fmapboard.health.rules.loss_without_logarithm import (
    LossWithoutLogarithmCheck as LossWithoutLogarithmCheck,
)
from fmapboard.health.rules.missing_causal_mask import (
    MissingCausalMaskCheck as MissingCausalMaskCheck,
)
from fmapboard.health.rules.missing_positions import (
    MissingPositionsCheck as MissingPositionsCheck,
)
from fmapboard.health.rules.never_called import NeverCalledCheck as NeverCalledCheck
from fmapboard.health.rules.new_optimizer import NewOptimizerCheck as NewOptimizerCheck
from fmapboard.health.rules.no_gradient import NoGradientCheck as NoGradientCheck
from fmapboard.health.rules.no_optimizer_step import NoOptimizerStepCheck as NoOptimizerStepCheck
from fmapboard.health.rules.nonfinite import NonfiniteCheck as NonfiniteCheck
from fmapboard.health.rules.not_in_optimizer import NotInOptimizerCheck as NotInOptimizerCheck
from fmapboard.health.rules.one_label import OneLabelCheck as OneLabelCheck
from fmapboard.health.rules.one_prediction import OnePredictionCheck as OnePredictionCheck
from fmapboard.health.rules.probabilities_into_loss import (
    ProbabilitiesIntoLossCheck as ProbabilitiesIntoLossCheck,
)
from fmapboard.health.rules.rate_vanished import RateVanishedCheck as RateVanishedCheck
from fmapboard.health.rules.repeated_images import RepeatedImagesCheck as RepeatedImagesCheck
from fmapboard.health.rules.same_batch import SameBatchCheck as SameBatchCheck
from fmapboard.health.rules.saturated import SaturatedCheck as SaturatedCheck
from fmapboard.health.rules.saturated_output import SaturatedOutputCheck as SaturatedOutputCheck
from fmapboard.health.rules.scrambled_images import ScrambledImagesCheck as ScrambledImagesCheck
from fmapboard.health.rules.softmax_of_one_class import (
    SoftmaxOfOneClassCheck as SoftmaxOfOneClassCheck,
)
from fmapboard.health.rules.softmax_over_queries import (
    SoftmaxOverQueriesCheck as SoftmaxOverQueriesCheck,
)
from fmapboard.health.rules.sorted_labels import SortedLabelsCheck as SortedLabelsCheck
from fmapboard.health.rules.summed_loss import SummedLossCheck as SummedLossCheck
from fmapboard.health.rules.unbounded_loss import UnboundedLossCheck as UnboundedLossCheck
from fmapboard.health.rules.unchanged_weights import UnchangedWeightsCheck as UnchangedWeightsCheck
from fmapboard.health.rules.uneven_upsampling import UnevenUpsamplingCheck as UnevenUpsamplingCheck
from fmapboard.health.rules.unused_classes import UnusedClassesCheck as UnusedClassesCheck
from fmapboard.health.rules.updates_too_large import UpdatesTooLargeCheck as UpdatesTooLargeCheck
from fmapboard.health.rules.updates_too_small import UpdatesTooSmallCheck as UpdatesTooSmallCheck
from fmapboard.health.rules.vanishing import VanishingCheck as VanishingCheck
from fmapboard.health.rules.weights_overwritten import (
    WeightsOverwrittenCheck as WeightsOverwrittenCheck,
)
from fmapboard.health.rules.zero_output import ZeroOutputCheck as ZeroOutputCheck
from fmapboard.health.rules.zero_rate import ZeroRateCheck as ZeroRateCheck
from fmapboard.health.rules.zero_weights import ZeroWeightsCheck as ZeroWeightsCheck

BUILT_IN: tuple[Rule, ...] = (
    ConstantImagesCheck(),
    IdenticalImagesCheck(),
    RepeatedImagesCheck(),
    ImagesNotScaledCheck(),
    FlatImagesCheck(),
    ScrambledImagesCheck(),
    InputMagnitudeCheck(),
    SameBatchCheck(),
    SortedLabelsCheck(),
    OneLabelCheck(),
    UnusedClassesCheck(),
    MissingCausalMaskCheck(),
    LabelsNotShiftedCheck(),
    MissingPositionsCheck(),
    AttentionOverBatchCheck(),
    AttendedPaddingCheck(),
    SoftmaxOverQueriesCheck(),
    DoubleSoftmaxCheck(),
    SoftmaxOfOneClassCheck(),
    ProbabilitiesIntoLossCheck(),
    LossWithoutLogarithmCheck(),
    AveragedTargetsCheck(),
    FarTargetsCheck(),
    LossClimbedCheck(),
    LabelsBeyond1Check(),
    SummedLossCheck(),
    UnboundedLossCheck(),
    NeverCalledCheck(),
    EvalModeCheck(),
    NotInOptimizerCheck(),
    GradientsNotClearedCheck(),
    WeightsOverwrittenCheck(),
    NewOptimizerCheck(),
    IdleGroupCheck(),
    NoOptimizerStepCheck(),
    ZeroRateCheck(),
    RateVanishedCheck(),
    CopiedChannelsCheck(),
    ZeroWeightsCheck(),
    DeadExpertsCheck(),
    DropoutHighCheck(),
    BatchnormSmallBatchCheck(),
    BatchnormFewValuesCheck(),
    BatchnormMomentumCheck(),
    UnevenUpsamplingCheck(),
    EmptyCodeCheck(),
    InitialLossCheck(),
    LargeActivationsCheck(),
    GrowingSignalCheck(),
    UpdatesTooLargeCheck(),
    AttentionLogitsCheck(),
    ExplodingCheck(),
    NonfiniteCheck(),
    FadingSignalCheck(),
    SaturatedCheck(),
    SaturatedOutputCheck(),
    DeadCheck(),
    DeadHeadsCheck(),
    ZeroOutputCheck(),
    VanishingCheck(),
    UnchangedWeightsCheck(),
    NoGradientCheck(),
    CutOffLayersCheck(),
    UpdatesTooSmallCheck(),
    BatchnormGapCheck(),
    OnePredictionCheck(),
    ConstantOutputCheck(),
)
"""Every built-in rule: what code does, then `effects.RESULTS`; causes come before effects."""


def group_of(rule: object) -> str:
    """Name under which a check is switched on and off, together with others of its group."""
    kind: str = getattr(rule, "kind", "")
    return getattr(rule, "group", "") or kind


def is_named(check: object, names: Collection[str]) -> bool:
    """True if the kind of a check, or its group, is among these names."""
    return getattr(check, "kind", "") in names or group_of(check) in names


NOTHING_TRAINED = "nothing was trained"
"""Why most checks say nothing of a run of images."""


def unchecked_text(kinds: Collection[str], why: str, name: Callable[[str], str] = str) -> str:
    """Kinds of checks that say nothing of a run, each as ``name`` calls it, and why."""
    if why == NOTHING_TRAINED:
        return "what only a training shows, since nothing was trained"
    return f"{name(kinds_text(kinds))} ({why})"


def kinds_text(kinds: Collection[str]) -> str:
    """Kinds of checks in a sentence; a group of which all are among them is named once."""
    if len(kinds) == len(BUILT_IN):
        return "all checks"
    groups: dict[str, list[str]] = {}
    for rule in BUILT_IN:
        groups.setdefault(group_of(rule), []).append(rule.kind)
    names: list[str] = []
    for kind in kinds:
        whole = [group for group, own in groups.items() if kind in own and set(own) <= set(kinds)]
        names += whole or [kind]
    return ", ".join(dict.fromkeys(names))
