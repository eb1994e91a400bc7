"""``board.report``: a report of what a logger has written so far."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fmapboard.errors import ConfigurationError
from fmapboard.report.result import Report


class ReportsRun:
    """A logger's ``report``; the logger has its run as ``_run``."""

    def report(
        self,
        path: str | Path,
        *,
        steps: int = 8,
        layers: str | Sequence[str] = (),
        max_mb: float = 20.0,
        inputs: bool = True,
    ) -> Report | None:
        """Write the run so far into one HTML file, as ``fmapboard report`` does.

        The file opens in a browser without TensorBoard, and contains training images.

        Args:
            path: the HTML file; replaced if it exists.
            steps: pictures of at most this many steps, evenly spaced, with the first and the last.
            layers: a glob on layer names, or several; one that begins with ``!`` excludes. Empty
                for all layers.
            max_mb: limit on the size of the file, 10⁶ bytes. To stay below it, the
                largest maps are drawn smaller, then steps are left out, then layers.
            inputs: False to leave out every picture of the network's input.

        Returns:
            What was written and what was left out; None on ranks other than 0, which write nothing.

        Raises:
            ConfigurationError: an argument is invalid, nothing was logged yet, or the run is not
                logged into a local directory.
            LayerNotFound: a glob matches no layer.
            WriteError: the file cannot be written.
        """
        from fmapboard.report.write import write_report  # reads TensorBoard's modules

        run: Any = self._run  # type: ignore[attr-defined]  # of the logger
        if not run.writes:
            return None
        folder = run.pipeline.log_dir
        if not isinstance(folder, (str, Path)) or "://" in str(folder):
            raise ConfigurationError(
                "report() needs a run that is logged into a local directory: watch(model, log_dir)"
            )
        run.flush()
        chosen = (layers,) if isinstance(layers, str) else tuple(layers)
        return write_report(
            [Path(folder)], Path(path), steps=steps, layers=chosen, max_mb=max_mb, inputs=inputs,
            below=False,
        )  # fmt: skip
