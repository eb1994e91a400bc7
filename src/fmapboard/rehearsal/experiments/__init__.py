"""The experiments of a rehearsal: one module per question.

Each is run with a setup and returns an answer::

    for experiment in EXPERIMENTS:
        answer = experiment.run(setup)
"""

from __future__ import annotations

from fmapboard.rehearsal.experiment import Experiment
from fmapboard.rehearsal.experiments.bfloat16_agrees import Bfloat16Agrees
from fmapboard.rehearsal.experiments.every_input_matters import EveryInputMatters
from fmapboard.rehearsal.experiments.every_parameter_moves import EveryParameterMoves
from fmapboard.rehearsal.experiments.first_loss import FirstLoss
from fmapboard.rehearsal.experiments.images_mix import ImagesMix
from fmapboard.rehearsal.experiments.input_reaches_output import InputReachesOutput
from fmapboard.rehearsal.experiments.labels_count import LabelsCount
from fmapboard.rehearsal.experiments.labels_fit_images import LabelsFitImages
from fmapboard.rehearsal.experiments.one_batch_is_learnt import OneBatchIsLearnt
from fmapboard.rehearsal.experiments.padding_is_ignored import PaddingIsIgnored
from fmapboard.rehearsal.experiments.rates import Rates
from fmapboard.rehearsal.experiments.same_twice import SameTwice
from fmapboard.rehearsal.experiments.target_is_hidden import TargetIsHidden
from fmapboard.rehearsal.experiments.train_and_eval import TrainAndEval

EXPERIMENTS: tuple[Experiment, ...] = (
    SameTwice(),
    TrainAndEval(),
    EveryParameterMoves(),
    ImagesMix(),
    InputReachesOutput(),
    TargetIsHidden(),
    PaddingIsIgnored(),
    EveryInputMatters(),
    LabelsCount(),
    FirstLoss(),
    OneBatchIsLearnt(),
    Rates(),
    LabelsFitImages(),
)
"""Those that run by default, the shortest first."""

BFLOAT16 = Bfloat16Agrees()
"""Runs only if it is asked for."""
