"""The checks of a layer's numbers, under the name by which the docs first gave them."""

from __future__ import annotations

from fmapboard.health.checks.layers import CopiedChannelsCheck, DeadCheck, UnevenUpsamplingCheck

__all__ = ["CopiedChannelsCheck", "DeadCheck", "UnevenUpsamplingCheck"]
