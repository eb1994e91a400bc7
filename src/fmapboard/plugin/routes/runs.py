"""The runs with feature maps."""

from __future__ import annotations

from collections.abc import Sequence

from fmapboard.plugin.data_source import Reader
from fmapboard.plugin.http import Answer, Query
from fmapboard.plugin.log_scan import has_own_records
from fmapboard.plugin.tag_names import layer_of, natural


def runs(reader: Reader, query: Query, logdirs: Sequence[str], *, keeps_enough: bool) -> Answer:
    """``data/runs``: the runs with records of the plugin.

    ``is_unread`` is True if there are none, but files of fmapboard that TensorBoard has not read.

    Args:
        reader: reads the data.
        query: not used.
        logdirs: the log directories, as given to TensorBoard.
        keeps_enough: False if TensorBoard keeps its default of 10 steps, because there were no
            records of the plugin when it started.
    """
    started, found = reader.started(), reader.tags()
    layers = {
        run: {layer for layer in map(layer_of, tags) if layer is not None}
        for run, tags in found.items()
    }
    listed = [
        {"run": run, "layers": len(layers[run]), "started": started.get(run)}
        for run in sorted(layers, key=natural)
        if layers[run]
    ]
    is_unread = not listed and has_own_records(logdirs)
    told = {"logdir": ", ".join(logdirs), "keeps_enough": keeps_enough, "is_unread": is_unread}
    return Answer({"runs": listed, **told})
