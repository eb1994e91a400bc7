"""The answers that a report embeds: of every question that its page can ask about a run."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tensorboard.plugins.base_plugin import TBContext
from werkzeug.test import Client

from fmapboard.plugin.picture_values import decoded, tiles_of
from fmapboard.plugin.plugin import FeatureMapsPlugin
from fmapboard.records import Picture, PixelMark
from fmapboard.render import png as encoder
from fmapboard.render.grid import grid
from fmapboard.render.palettes import LEVEL_OF_PIXEL, PIXEL_OF_LEVEL, VALUES, palette
from fmapboard.render.quantize import shrink_pixels
from fmapboard.report.choice import onsets, spread
from fmapboard.report.event_log import LogProvider
from fmapboard.runs.log import EventLog

_NOT_FOUND, _OK = 404, 200


class Routes:
    """The data routes of the tab over runs.

    Args:
        logs: by name of the run.
    """

    def __init__(self, logs: Mapping[str, EventLog]) -> None:
        provider = LogProvider(logs)
        context = TBContext(data_provider=provider, multiplexer=provider, logdir="")
        self._clients = {
            path.removeprefix("/data/"): Client(app)
            for path, app in FeatureMapsPlugin(context).get_plugin_apps().items()
            if path.startswith("/data/")
        }

    def ask(self, path: str, **query: str | int) -> bytes | None:
        """The body of an answer; None if there is no such data.

        Raises:
            RuntimeError: the route failed.
        """
        answer = self._clients[path].get(query_string={k: str(v) for k, v in query.items()})
        if answer.status_code == _NOT_FOUND:
            return None
        if answer.status_code != _OK:
            raise RuntimeError(f"{path} {query}: {answer.text}")
        return bytes(answer.data)

    def facts(self, path: str, **query: str | int) -> Any:
        """The parsed JSON of an answer; None if there is no such data."""
        body = self.ask(path, **query)
        return None if body is None else json.loads(body)


def opened(body: bytes) -> tuple[Any, bytes]:
    """The JSON of a binary answer (see ``plugin.http.container``), and the bytes behind it."""
    (length,) = struct.unpack_from("<I", body)
    return json.loads(body[4 : 4 + length]), body[4 + length :]


def closed(facts: Any, parts: bytes) -> bytes:
    """The binary answer of this JSON and these bytes."""
    text = dumped(facts)
    return struct.pack("<I", len(text)) + text + parts


def dumped(facts: Any) -> bytes:
    """Compact JSON."""
    return json.dumps(facts, separators=(",", ":"), allow_nan=False).encode()


def shrunk(stored: bytes, picture: Mapping[str, Any], block: int) -> bytes | None:
    """A PNG of the same maps, each pixel the mean of a square; None if it cannot be read.

    A square that contains marks gets the mark with the highest code among them.

    Args:
        stored: PNG of one sample's maps.
        picture: its entry in the record's header.
        block: side of a square, px.
    """
    found = decoded(stored)
    if found is None or found[0] not in ("L", "P") or found[1].ndim != 2:
        return None
    tiles = tiles_of(found[1], picture)  # [C, H, W]
    if tiles is None:
        return None
    columns = picture.get("columns", max(1, math.isqrt(len(tiles))))
    padding = picture.get("padding", 2)
    if found[0] == "L":
        means, _ = shrink_pixels(tiles, None, block)  # [C, h, w]
        drawn = Picture(grid(means, columns, padding, 0), tile=means.shape[1:], compact=True)
        return encoder.encode(drawn)
    pixels = PIXEL_OF_LEVEL[np.minimum(tiles, VALUES - 1)]
    marks = np.where(tiles >= VALUES, tiles, 0)
    means, highest = shrink_pixels(pixels, marks, block)  # [C, h, w]
    assert highest is not None  # there were marks
    indices = np.where(highest != 0, highest, LEVEL_OF_PIXEL[means])
    laid_out = grid(indices, columns, padding, PixelMark.PADDING)
    table = palette(picture["palette"]).table
    return encoder.encode(Picture(laid_out, table, indices.shape[1:], compact=True))


_INPUTS = "inputs"
"""Role of the maps that a layer receives: those of the first layer are the network's input."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer and the question that it answers.

    Attributes:
        path: of the route.
        query: sorted names and values.
        parts: the body in parts, so that equal parts are stored once.
        layer: key of the layer whose pictures it has; None if it has none.
    """

    path: str
    query: tuple[tuple[str, str], ...]
    parts: tuple[bytes, ...]
    layer: str | None = None

    @classmethod
    def of(cls, path: str, *parts: bytes, layer: str | None = None, **query: str | int) -> Answer:
        """An answer to a query that is given by name."""
        return cls(path, tuple(sorted((k, str(v)) for k, v in query.items())), parts, layer)


class RunAnswers:
    """The answers about one run.

    Args:
        routes: of the tab.
        run: name of the run.
        layers: keys of the layers to include.
        inputs: False to leave out all pictures that show the network's input.
    """

    def __init__(self, routes: Routes, run: str, layers: Collection[str], *, inputs: bool) -> None:
        self._routes, self._run, self._inputs = routes, run, inputs
        self._listed = routes.facts("layers", run=run)
        own = self._listed["steps"], self._listed["wall_times"]
        for layer in self._listed["layers"]:
            layer.setdefault("steps", own[0])
            layer.setdefault("wall_times", own[1])
        self._listed["layers"] = [one for one in self._listed["layers"] if one["key"] in layers]
        self._since = self._begun(layers)
        found = routes.facts("attribution", run=run)
        self._attribution = found if inputs else {**found, "series": []}
        self._patches = routes.facts("patches", run=run)["series"] if inputs else []

    @property
    def steps(self) -> list[int]:
        """All steps of which there are pictures of the layers."""
        return sorted({step for layer in self._listed["layers"] for step in layer["steps"]})

    @property
    def is_without_training(self) -> bool:
        """True if every step shows an image or a checkpoint."""
        words = self._listed["step_words"]
        return bool(words) and {str(step) for step in self.steps} <= words.keys()

    def _begun(self, layers: Collection[str]) -> dict[str, dict[str, int]]:
        """For each kind of fault, rows of these layers -> the step since which it lasts."""
        body = self._body("health")
        if not body:
            return {}
        facts, _ = opened(body)
        rows = {
            str(row)
            for row, layer in enumerate(facts["layers"])
            if {layer["key"], layer["shown_at"]} & set(layers)
        }
        return {
            kind: {row: step for row, step in since.items() if row in rows}
            for kind, since in facts["since"].items()
        }

    def shown_steps(self, count: int) -> list[int]:
        """At most ``count`` of the steps (see `spread`), those at which faults began among them."""
        steps = self.steps
        return spread(steps, count, onsets(self._since, steps)) if steps else []

    def drop(self, keys: Collection[str]) -> None:
        """Leave out these layers."""
        self._listed["layers"] = [one for one in self._listed["layers"] if one["key"] not in keys]

    def numbers(self) -> Iterator[Answer]:
        """Everything but pictures and the lists of them."""
        run, keys = self._run, {layer["key"] for layer in self._listed["layers"]}
        health = self._body("health")
        if health:
            facts, body = opened(health)
            for row in facts["layers"]:
                for name in ("key", "shown_at"):
                    row[name] = row[name] if row[name] in keys else None
            told = facts["first_nonfinite"]
            if told is not None and told["shown_at"] not in keys:
                told["shown_at"] = None
            yield Answer.of("health", closed(facts, body), run=run)
            if not facts["arrays"]:
                for step in facts["steps"]:
                    yield self._answer("health_step", step=step)
        yield self._answer("findings")
        for layer in self._listed["layers"]:
            yield self._answer("numbers", key=layer["key"])
            for sample in range(layer["samples"]):
                yield self._answer("history", key=layer["key"], sample=sample)

    def pictures(self, steps: Sequence[int], blocks: Mapping[str, int]) -> Iterator[Answer]:
        """The lists of layers, inputs and attributions at these steps, and their pictures.

        Args:
            steps: ascending.
            blocks: key of a layer -> side in px of the squares to average in its maps.
        """
        run, chosen = self._run, set(steps)
        layers = [_shown(layer, chosen) for layer in self._listed["layers"]]
        for layer in layers:
            layer["roles"] = [role for role in layer["roles"] if self._inputs or role != _INPUTS]
        inputs = [_at(one, chosen) for one in self._listed["inputs"]] if self._inputs else []
        whole = {**_at(self._listed, chosen), "layers": layers, "inputs": inputs}
        yield Answer.of("layers", dumped(whole), run=run)
        series = [_at(one, chosen, "gradients") for one in self._attribution["series"]]
        series = [one for one in series if one["steps"]]
        yield Answer.of("attribution", dumped({**self._attribution, "series": series}), run=run)
        yield from self._patches_of({layer["key"] for layer in layers}, chosen)
        for step in steps:
            yield self._answer("health_step", step=step)
        every = sorted({step for layer in layers for step in layer["steps"]})
        for step in every:  # one logged step is one event of the file: read it once
            for layer in layers:
                if step in layer["steps"]:
                    yield self._maps(layer["key"], step, blocks.get(layer["key"], 1))
            for one in inputs:
                if step in one["steps"]:
                    yield self._answer("input", name=one["name"], sample=one["sample"], step=step)
            for one in series:
                if step in one["steps"]:
                    yield self._answer("attribution_picture", key=one["key"], step=step)

    def _patches_of(self, keys: Collection[str], steps: Collection[int]) -> Iterator[Answer]:
        """The list of patches of these layers, and all their pictures."""
        kept = [_shown(one, steps) for one in self._patches if one["key"] in keys]
        listed = dumped({"run": self._run, "series": kept})
        yield Answer.of("patches", listed, run=self._run)
        for one in kept:
            for step in one["steps"]:
                page, pages = 0, 1
                while page < pages:
                    answer = self._answer("layer_patches", key=one["key"], step=step, page=page)
                    yield answer
                    if answer.parts[0]:
                        header = opened(answer.parts[0])[0]["header"]
                        pages = -(-header["searched"] // header["picture"]["rows"])
                    page += 1

    def _body(self, path: str, **query: str | int) -> bytes:
        return self._routes.ask(path, run=self._run, **query) or b""

    def _answer(self, path: str, **query: str | int) -> Answer:
        asked = {"run": self._run, **query}
        texts = tuple(sorted((name, str(value)) for name, value in asked.items()))
        return Answer(path, texts, (self._body(path, **query),))

    def _maps(self, key: str, step: int, block: int) -> Answer:
        """The pictures of a layer at a step, each a part of its own."""
        body = self._body("maps", key=key, step=step)
        if not body:
            return Answer.of("maps", layer=key, run=self._run, key=key, step=step)
        facts, stored = opened(body)
        if not self._inputs:
            _remove(facts, _INPUTS)
        parts = [stored[part["offset"] :][: part["length"]] for part in facts["parts"]]
        if block > 1:
            parts = _shrunk(facts, parts, block)
        offset = 0
        for part, content in zip(facts["parts"], parts, strict=True):
            part["offset"], part["length"] = offset, len(content)
            offset += len(content)
        head = closed(facts, b"")
        return Answer.of("maps", head, *parts, layer=key, run=self._run, key=key, step=step)


def _remove(facts: dict[str, Any], role: str) -> None:
    """Remove the pictures of a role from the JSON of ``data/maps``."""
    header = facts["header"]
    facts["parts"] = [part for part in facts["parts"] if part.get("role") != role]
    header["pictures"] = [picture for picture in header["pictures"] if picture["role"] != role]


def _shrunk(facts: dict[str, Any], parts: list[bytes], block: int) -> list[bytes]:
    """The parts with smaller maps; changes the JSON of ``data/maps`` accordingly."""
    parts = list(parts)
    for picture in facts["header"]["pictures"]:
        if picture["role"] == "kernels" or picture.get("layout") == "rows":
            continue
        of = [i for i, part in enumerate(facts["parts"]) if part.get("role") == picture["role"]]
        small = [shrunk(parts[i], picture, block) for i in of]
        if not small or None in small:
            continue
        height, width = picture["tile"]
        picture["tile"] = [-(-height // block), -(-width // block)]
        picture["block"] = block * picture.get("block", 1)
        for i, png in zip(of, small, strict=True):
            parts[i] = png or b""
            sides = [int.from_bytes(parts[i][at : at + 4], "big") for at in (16, 20)]
            facts["parts"][i]["width"], facts["parts"][i]["height"] = sides
    return parts


def _shown(series: dict[str, Any], steps: Collection[int]) -> dict[str, Any]:
    """A series at these steps, or at its last one if it has none of them."""
    found = _at(series, steps)
    return found if found["steps"] else _at(series, series["steps"][-1:])


def _at(series: dict[str, Any], steps: Collection[int], *more: str) -> dict[str, Any]:
    """A series with ``steps``, ``wall_times`` and ``more`` at these steps only."""
    places = [place for place, step in enumerate(series["steps"]) if step in steps]
    names = ("steps", "wall_times", *more)
    return {**series, **{name: [series[name][place] for place in places] for name in names}}
