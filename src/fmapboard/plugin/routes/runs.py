"""Which runs hold feature maps."""

from __future__ import annotations

from fmapboard.plugin.data_source import Reader
from fmapboard.plugin.http import Answer, Query
from fmapboard.plugin.tag_names import layer_of, natural


def runs(reader: Reader, query: Query, logdir: str) -> Answer:
    """``data/runs``: the runs that have records of ours."""
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
    return Answer({"runs": listed, "logdir": logdir})
