"""Every tag that is written to TensorBoard or read from it, defined once.

TensorBoard groups tags by the text before the first ``/``. A label is a layer's name; for the
layer's second and later calls in one forward pass it ends in ``.call2`` and so on.
"""

from __future__ import annotations

from collections.abc import Mapping

LOGGED_STEP_MS = "fmapboard/logged_step_ms"
"""Scalar: time in ms that the logged step took on the training thread."""
DROPPED_STEPS = "fmapboard/dropped_steps"
"""Scalar: number of logged steps dropped so far because the queue was full."""
WAITED_MS = "fmapboard/waited_ms"
"""Scalar: time in ms that training waited before this step because the queue was full.

Written only if training had to wait.
"""
SKIPPED_STEPS = "fmapboard/skipped_steps"
"""Scalar: number of optimizer steps skipped so far by the GradScaler."""
FIRST_NONFINITE = "fmapboard/first_nonfinite"
"""Text: where the first non-finite value was found; written once."""
FIRST_NONFINITE_RECORD = "fmapboard_first_nonfinite"
"""Feature maps tab: the same as fields (``training_facts.FirstNonfinite``)."""

RECORD = "fmapboard/"
"""Feature maps tab: one record per layer and step, ``fmapboard/<label>``."""
FIRST_RECORD = "fmapboard_first/"
"""Feature maps tab: a layer's first step again, including the grids."""

OVERVIEW = "fmapboard_overview"
"""Feature maps tab: one record per step with numbers of all layers (``formats.overview``)."""
FIRST_OVERVIEW = "fmapboard_overview_first"
"""Feature maps tab: the overview of the first step again."""
FIRST_ATTRIBUTION = "fmapboard_first_attribution/"
"""Feature maps tab: the first picture of an attribution series again."""
ATTRIBUTION_SCORE = "fmapboard_attribution_score/sample_"
"""Feature maps tab: name and value of the score whose attribution is drawn, per step."""
PATCHES = "fmapboard_patches/"
"""Feature maps tab: the crops that excite the channels most, ``fmapboard_patches/<label>``."""
TRAINING_FACTS = "fmapboard_findings"
"""Feature maps tab: what only the training process knows, per step (``formats.training_facts``)."""

CHECKS = "fmapboard_checks"
"""Feature maps tab: all findings up to a step; written from the first finding on."""
CHECKS_PROVEN = "fmapboard_checks_proven"
"""Feature maps tab: as ``CHECKS`` of the same step, with what copies of the network showed."""
CHECKS_TEXT = "fmapboard/checks"
"""Text: what the checks say, each finding once."""
WHY = "fmapboard/why"
"""Text: the verdict on the run, its cause and the next step; written when the logger is closed."""
SUMMARY_FILE = "fmapboard_summary.json"
"""The same as fields, in a file beside the event files."""
MODEL_DIFFERENCE = "fmapboard_difference"
"""Feature maps tab: the table that ``diff`` prints (``formats.model_difference``)."""

NETWORK_INPUT = "network_input/sample_"
ATTRIBUTION = "attribution"
ATTRIBUTION_GRADIENT = "attribution_gradient"
HIGHEST_LOSS = "network_input/highest_loss"
"""Image: the images of the batch with the highest loss."""
INPUT_PICTURES = (HIGHEST_LOSS, f"{NETWORK_INPUT}0")
"""Image series of a model that show what it was trained on."""
CONSTANT_CHANNELS = "constant_channels"
NONFINITE = "nonfinite"
DEAD_CHANNELS = "dead_channels"
EXPERT_BALANCE = "expert_balance"
WEIGHTS = "weights"
GRADIENTS = "gradients"
GRADIENT_NORM = "gradient_norm"
GRADIENT_NORM_BEFORE_CLIPPING = "gradient_norm_before_clipping"
UPDATE_RATIO = "update_ratio"
LEARNING_RATE = "learning_rate"
LOSS_READ = "loss/read_from_gradient"
LOSS_GIVEN = "loss/given"
"""Scalars, like the next two; of one of several outputs ``/<name of the output>`` follows."""
ACCURACY = "loss/accuracy"
OUTPUT_SPREAD = "output/spread"
BATCHNORM_GAP = "batchnorm_gap"
ATTENTION_ENTROPY = "attention_entropy"
"""Scalars, like the next two: the mean over the heads of ``<label>``, and the value of one head as
``<label>/lowest_head`` or, of the next two, ``<label>/highest_head``."""
ATTENTION_LOGIT = "attention_logit"
ATTENTION_FIRST = "attention_first"
TOKEN_NORM_MAX = "token_norm_max"
TOKEN_NORM_MEDIAN = "token_norm_median"
BRANCH_SHARE = "branch_share"
"""Scalar: norm of what attention returns relative to that of what its block returns."""
TOKENS_AS_COLOURS = "tokens_as_colours"
"""Images: three principal components of a layer's tokens, in series of their own."""
LOWEST_HEAD = "lowest_head"
HIGHEST_HEAD = "highest_head"
TOTAL = "total"
"""Name of the norm over all gradients, in the group with those of the parameters."""

HISTOGRAM_OF: Mapping[str, str] = {
    "feature_maps": "activations",
    "inputs": "inputs",
    "gradients_of_maps": "activation_gradients",
}
"""Kind of a layer's tensor -> group of its histogram."""

GRADIENT_NORM_CHART = rf".*{GRADIENT_NORM}/.*"
"""Custom Scalars: pattern of the tags in the chart of all gradient norms."""


def prefix(name: str | None) -> str:
    """The prefix of every tag of a model that is watched under the given name.

    Example:
        >>> prefix("generator"), prefix(None)
        ('generator.', '')
    """
    return f"{name}." if name else ""


def split(tag: str) -> tuple[str, str]:
    """Name of the model, "" for none, and the tag without its prefix.

    Example:
        >>> split("net.gradient_norm/layer1.0.weight")
        ('net', 'gradient_norm/layer1.0.weight')
        >>> split("fmapboard_overview")
        ('', 'fmapboard_overview')
    """
    group, slash, label = tag.partition("/")
    name, _, marker = group.rpartition(".")
    return name, f"{marker}{slash}{label}"


def image(kind: str, group: str, label: str) -> str:
    """The tag of a layer's pictures.

    Example:
        >>> image("feature_maps", "64x3x7x7", "conv1")
        'feature_maps_64x3x7x7/conv1'
    """
    return f"{kind}_{group}/{label}"


def network_input(sample: int) -> str:
    """The tag of an input image of the network.

    Example:
        >>> network_input(0)
        'network_input/sample_0'
    """
    return f"{NETWORK_INPUT}{sample}"


def attribution(label: str, sample: int) -> str:
    """The name of a sample's attribution at a layer call, in its groups of images and scalars.

    Example:
        >>> attribution("layer4.1.relu.call2", 0)
        'layer4.1.relu.call2/sample_0'
    """
    return f"{label}/sample_{sample}"


def of(group: str, name: str) -> str:
    """The tag of a layer or parameter in a group of scalars or histograms.

    Example:
        >>> of(GRADIENT_NORM, "conv1.weight")
        'gradient_norm/conv1.weight'
    """
    return f"{group}/{name}"
