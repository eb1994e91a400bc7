"""Every tag that is written to TensorBoard or read back, defined once.

TensorBoard groups by the text before the first ``/``. A label is a layer's name, with ``.call2``
and so on behind it for later calls in one forward pass.
"""

from __future__ import annotations

from collections.abc import Mapping

LOGGED_STEP_MS = "fmapboard/logged_step_ms"
"""Scalar: what the logged step cost the training thread, in milliseconds."""
DROPPED_STEPS = "fmapboard/dropped_steps"
"""Scalar: logged steps that were dropped so far because the queue was full."""
WAITED_MS = "fmapboard/waited_ms"
"""Scalar: how long training waited before this step because the queue was full, in milliseconds;
only where it waited."""
SKIPPED_STEPS = "fmapboard/skipped_steps"
"""Scalar: optimizer steps that the GradScaler skipped so far."""
FIRST_NONFINITE = "fmapboard/first_nonfinite"
"""Text: where the first value that is not finite was found; written once."""

RECORD = "fmapboard/"
"""The Feature maps tab: one record per layer and step, ``fmapboard/<label>``."""
FIRST_RECORD = "fmapboard_first/"
"""The Feature maps tab: a layer's first step again, grids included."""

NETWORK_INPUT = "network_input/sample_"
CONSTANT_CHANNELS, NONFINITE, DEAD_CHANNELS = "constant_channels", "nonfinite", "dead_channels"
WEIGHTS, GRADIENTS = "weights", "gradients"
GRADIENT_NORM = "gradient_norm"
GRADIENT_NORM_BEFORE_CLIPPING = "gradient_norm_before_clipping"
TOTAL = "total"
"""The name under which the norm of all gradients together stands among those of the parameters."""

HISTOGRAM_OF: Mapping[str, str] = {
    "feature_maps": "activations",
    "inputs": "inputs",
    "gradients_of_maps": "activation_gradients",
}
"""Kind of a layer's tensor -> group of its histogram."""

GRADIENT_NORM_CHART = {"Gradient norms": {"all layers": rf".*{GRADIENT_NORM}/.*"}}
"""Custom Scalars: category -> chart -> pattern of its tags."""


def prefix(name: str | None) -> str:
    """What stands in front of every tag of a model that was watched under a name.

    >>> prefix("generator"), prefix(None)
    ('generator.', '')
    """
    return f"{name}." if name else ""


def image(kind: str, group: str, label: str) -> str:
    """The tag of a layer's pictures.

    >>> image("feature_maps", "64x3x7x7", "conv1")
    'feature_maps_64x3x7x7/conv1'
    """
    return f"{kind}_{group}/{label}"


def network_input(sample: int) -> str:
    """The tag of the image that went into the network.

    >>> network_input(0)
    'network_input/sample_0'
    """
    return f"{NETWORK_INPUT}{sample}"


def of(group: str, name: str) -> str:
    """The tag of a layer or a parameter in a group of scalars or histograms.

    >>> of(GRADIENT_NORM, "conv1.weight")
    'gradient_norm/conv1.weight'
    """
    return f"{group}/{name}"
