"""Numbers of input images, for ``inputs`` of `check_records.record`."""

from __future__ import annotations

BYTES = {"minimum": 0.0, "maximum": 200.0, "mean": 110.0, "std": 50.0}
"""Images of bytes."""
FLAT = {"minimum": 0.01, "maximum": 0.07, "mean": 0.04, "std": 0.01}
"""Images of hardly any contrast."""
