"""The runs with feature maps."""

from __future__ import annotations

from fmapboard.plugin.data_source import Reader
from fmapboard.plugin.http import Answer, Query
from fmapboard.plugin.tag_names import layer_of, natural


def runs(reader: Reader, query: Query, logdir: str, *, keeps_enough: bool) -> Answer:
    """``data/runs``: the runs with records of the plugin.

    Args:
        reader: reads the data.
        query: not used.
        logdir: the log directory, as given to TensorBoard.
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
    return Answer({"runs": listed, "logdir": logdir, "keeps_enough": keeps_enough})
