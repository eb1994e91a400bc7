"""Names that moved to runs.provider."""

from fmapboard.runs.provider import IMAGES, Point
from fmapboard.runs.provider import Provider as Reader

__all__ = ["IMAGES", "Point", "Reader"]
