"""The page of a report inside a notebook, without a server."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fmapboard.errors import ConfigurationError
from fmapboard.report.write import page_of

_LIMIT = 2.5
"""10⁶ bytes, by default: Jupyter's server drops an output of more than 3 MB within 3 s
(``iopub_data_rate_limit`` and ``rate_limit_window`` in its configuration)."""
_FRAME = (
    '<iframe title="Feature maps" sandbox="allow-scripts allow-downloads" width="100%" '
    'height="{height}" style="border: 1px solid #8888; box-sizing: border-box" '
    'srcdoc="{page}"></iframe>'
)


@dataclass(frozen=True, slots=True)
class InlinePage:
    """The page of runs; displays itself in a notebook.

    Attributes:
        page: the HTML document.
        height: of its frame, px.
        runs: names of the runs.
        left_out: what the runs have and the page does not, in words.
    """

    page: str = field(repr=False)
    height: int
    runs: tuple[str, ...]
    left_out: tuple[str, ...]

    def _repr_html_(self) -> str:
        # Without allow-same-origin, so that the page reaches neither the notebook nor its address.
        return _FRAME.format(height=self.height, page=html.escape(self.page))


def show(
    run: str | Path | Sequence[str | Path],
    *,
    steps: int = 8,
    layers: str | Sequence[str] = (),
    max_mb: float = _LIMIT,
    inputs: bool = True,
    height: int = 720,
) -> InlinePage:
    """Show logged runs in a notebook: the Feature maps tab below the cell, without a server.

    The page is part of the notebook, and is saved with it. It holds what a report holds.

    Args:
        run: The directory of a run, or one above several, or a list of these.
        steps: Maximum number of steps with pictures per run.
        layers: Layers to include, such as ``"layer1.*"``; ``"!*.downsample.*"`` excludes layers.
        max_mb: Size limit, 10⁶ bytes; pictures of steps are left out to keep it, then layers. By
            default what Jupyter's server passes on: it drops an output of more than 3 MB.
        inputs: False to leave out every picture of the network's input.
        height: Height of the page, px.

    Returns:
        The page. As the last line of a cell it is displayed.

    Raises:
        ConfigurationError: An argument is invalid, or the runs hold nothing of fmapboard.
        LayerNotFound: A glob matches no layer.

    Example:
        >>> import torch
        >>> import fmapboard
        >>> model = torch.nn.Conv2d(3, 8, 3)
        >>> with fmapboard.watch(model, "runs/shown", every=1) as board, board.step(0):
        ...     maps = model(torch.rand(1, 3, 16, 16))
        >>> fmapboard.show("runs/shown")
        InlinePage(height=720, runs=('shown',), left_out=())
    """
    if isinstance(height, bool) or not isinstance(height, int) or height < 1:
        raise ConfigurationError(f"height={height!r}: expected a height in px, at least 1")
    given = [run] if isinstance(run, (str, Path)) else run
    patterns = [layers] if isinstance(layers, str) else layers
    paths = [Path(path) for path in given]
    contents, page = page_of(paths, steps=steps, layers=patterns, max_mb=max_mb, inputs=inputs)
    return InlinePage(page.decode(), height, tuple(contents.runs), tuple(contents.left_out))
