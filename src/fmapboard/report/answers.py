"""The answers that a report embeds: of every question that its page can ask about a run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from fmapboard.arithmetic import ceil_div
from fmapboard.plugin.answers import Answer, Missing, pieces
from fmapboard.plugin.routes.attribution import AttributionSeries, attribution
from fmapboard.plugin.routes.by_name import ROUTES
from fmapboard.plugin.routes.health import Health
from fmapboard.plugin.routes.layers import InputSeries, Layer, Layers, layers
from fmapboard.plugin.routes.maps import Maps
from fmapboard.plugin.routes.patches import LayerPatches, Patches, PatchesSeries, patches
from fmapboard.plugin.routes.tokens import Tokens
from fmapboard.report.choice import onsets, spread
from fmapboard.runs.provider import Provider

S = TypeVar("S", Layers, Layer, InputSeries, AttributionSeries, PatchesSeries, Tokens)


_INPUTS = "inputs"
"""Role of the maps that a layer receives: those of the first layer are the network's input."""


class Embedded(NamedTuple):
    """An answer and the question that it answers.

    Attributes:
        path: name of the route.
        query: sorted names and values.
        parts: the answer's bytes in parts, so that equal parts are stored once; empty if there is
            no such data.
        maps: the answer, if it has the pictures of a layer.
    """

    path: str
    query: tuple[tuple[str, str], ...]
    parts: tuple[bytes, ...]
    maps: Maps | None = None

    @classmethod
    def of(cls, path: str, answer: Answer | None, **query: str | int) -> Embedded:
        """An answer to a query that is given by name; None if there is none."""
        names = sorted(query)
        asked = tuple((name, str(query[name])) for name in names)
        if answer is None:
            return cls(path, asked, (b"",))
        parts = pieces(answer)
        if not isinstance(answer, Maps):
            whole = b"".join(parts)
            return cls(path, asked, (whole,))
        begin = len(parts) - len(answer.pictures)
        header = b"".join(parts[:begin])
        pictures = parts[begin:]
        return cls(path, asked, (header, *pictures), answer)


class RunAnswers:
    """The answers about one run.

    Args:
        provider: of the run.
        run: name of the run.
        keys: of the layers to include.
        inputs: False to leave out all pictures that show the network's input.
    """

    def __init__(
        self, provider: Provider, run: str, keys: Collection[str], *, inputs: bool
    ) -> None:
        self._provider = provider
        self._run = run
        self._inputs = inputs
        listed = layers(provider, run)
        included: list[Layer] = []
        for layer in listed.layers:
            if layer.key not in keys:
                continue
            if layer.steps is None:  # it has those of the run
                layer = replace(layer, steps=listed.steps, wall_times=listed.wall_times)
            included.append(layer)
        self._listed = replace(listed, layers=included)
        health = self._answer("health")
        self._health = health if isinstance(health, Health) else None
        self._attribution = attribution(provider, run)
        self._patches = patches(provider, run)
        if not inputs:
            self._attribution = replace(self._attribution, series=[])
            self._patches = replace(self._patches, series=[])

    @property
    def steps(self) -> list[int]:
        """All steps of which there are pictures of the layers."""
        return _steps_of(self._listed.layers)

    @property
    def is_without_training(self) -> bool:
        """True if every step shows an image or a checkpoint."""
        words = self._listed.step_words
        if not words:
            return False
        return words.keys() >= set(self.steps)

    def shown_steps(self, count: int) -> list[int]:
        """At most ``count`` of the steps (see `spread`), those at which faults began among them."""
        steps = self.steps
        if self._health is None or not steps:
            return spread(steps, count)
        keys = self._keys()
        rows = set()
        for number, row in enumerate(self._health.layers):
            if row.key in keys or row.shown_at in keys:
                rows.add(number)
        wanted = onsets(self._health.since, rows, steps)
        return spread(steps, count, wanted)

    def _keys(self) -> set[str]:
        return {layer.key for layer in self._listed.layers}

    def drop(self, keys: Collection[str]) -> None:
        """Leave out these layers."""
        kept = [layer for layer in self._listed.layers if layer.key not in keys]
        self._listed = replace(self._listed, layers=kept)

    def numbers(self) -> Iterator[Embedded]:
        """Everything but pictures and the lists of them."""
        health = self._health
        if health is not None:
            yield self._of("health", self._without_dropped(health))
            if not health.arrays:
                for step in health.steps:
                    yield self._asked("health_step", step=step)
        yield self._asked("findings")
        for layer in self._listed.layers:
            yield self._asked("numbers", key=layer.key)
            for sample in range(layer.facts.samples):
                yield self._asked("history", key=layer.key, sample=sample)

    def pictures(self, steps: Sequence[int]) -> Iterator[Embedded]:
        """The lists of layers, inputs and attributions at these steps, and their pictures.

        Args:
            steps: ascending.
        """
        chosen = set(steps)
        shown = [_shown(layer, chosen) for layer in self._listed.layers]
        inputs: list[InputSeries] = []
        if self._inputs:
            inputs = [_at(series, chosen) for series in self._listed.inputs]
        else:
            shown = [_without_input(layer) for layer in shown]
        listed = _at(self._listed, chosen)
        yield self._of("layers", replace(listed, layers=shown, inputs=inputs))
        attributions = []
        for series in self._attribution.series:
            kept = _at(series, chosen, "gradients", "scores")
            if kept.steps:
                attributions.append(kept)
        attribution = replace(self._attribution, series=attributions)
        yield self._of("attribution", attribution)
        yield from self._patches_of(chosen)
        for layer in shown:
            if layer.facts.unit == "feature":
                found = self._answer("tokens", key=layer.key)
                if isinstance(found, Tokens):
                    found = _at(found, chosen, "pictures")
                yield self._of("tokens", found, key=layer.key)
        for step in steps:
            yield self._asked("health_step", step=step)
        for step in _steps_of(shown):
            for layer in shown:
                if layer.steps and step in layer.steps:
                    yield self._maps(layer.key, step)
            for image in inputs:
                if step in image.steps:
                    sample = image.sample
                    yield self._asked("input", name=image.name, sample=sample, step=step)
            for attributed in attributions:
                if step in attributed.steps:
                    key = attributed.key
                    yield self._asked("attribution_picture", key=key, step=step)

    def _patches_of(self, steps: set[int]) -> Iterator[Embedded]:
        """The list of patches of the layers, and all their pictures."""
        keys = self._keys()
        kept: list[PatchesSeries] = []
        for series in self._patches.series:
            if series.key in keys:
                kept.append(_shown(series, steps))
        listed = Patches(self._run, kept)
        yield self._of("patches", listed)
        for series in kept:
            for step in series.steps:
                yield from self._pages(series.key, step)

    def _pages(self, key: str, step: int) -> Iterator[Embedded]:
        """The pages of a layer's patches at a step."""
        page = 0
        pages = 1
        while page < pages:
            found = self._answer("layer_patches", key=key, step=step, page=page)
            yield self._of("layer_patches", found, key=key, step=step, page=page)
            if isinstance(found, LayerPatches):
                rows = found.header["picture"]["rows"]
                searched = found.header["searched"]
                pages = ceil_div(searched, rows)
            page += 1

    def _without_dropped(self, found: Health) -> Health:
        """The health of all layers, which leads to those only that the report has."""
        keys = self._keys()

        def kept(key: str | None) -> str | None:
            return key if key in keys else None

        rows = []
        for row in found.layers:
            key = kept(row.key)
            shown_at = kept(row.shown_at)
            rows.append(replace(row, key=key, shown_at=shown_at))
        first = found.first_nonfinite
        if first is not None:
            first = replace(first, shown_at=kept(first.shown_at))
        return replace(found, layers=tuple(rows), first_nonfinite=first)

    def _maps(self, key: str, step: int) -> Embedded:
        """The pictures of a layer at a step, each a part of its own."""
        found = self._answer("maps", key=key, step=step)
        if isinstance(found, Maps) and not self._inputs:
            found = _without(found, _INPUTS)
        return self._of("maps", found, key=key, step=step)

    def _asked(self, path: str, **query: str | int) -> Embedded:
        answer = self._answer(path, **query)
        return self._of(path, answer, **query)

    def _answer(self, path: str, **query: str | int) -> Answer | None:
        route = ROUTES[path]
        try:
            return route(self._provider, run=self._run, **query)
        except Missing:
            return None

    def _of(self, path: str, answer: Answer | None, **query: str | int) -> Embedded:
        return Embedded.of(path, answer, run=self._run, **query)


def _steps_of(layers: Sequence[Layer]) -> list[int]:
    """The steps that any of the layers has, ascending."""
    steps: set[int] = set()
    for layer in layers:
        steps.update(layer.steps or ())
    return sorted(steps)


def _without_input(layer: Layer) -> Layer:
    roles = tuple(role for role in layer.facts.roles if role != _INPUTS)
    facts = replace(layer.facts, roles=roles)
    return replace(layer, facts=facts)


def _without(found: Maps, role: str) -> Maps:
    """The answer without the pictures of a role."""
    header = dict(found.header)
    header["pictures"] = [facts for facts in header["pictures"] if facts["role"] != role]
    pictures = tuple(picture for picture in found.pictures if picture.role != role)
    return replace(found, header=header, pictures=pictures)


def _shown(series: S, steps: Collection[int]) -> S:
    """A series at these steps, or at its last one if it has none of them."""
    found = _at(series, steps)
    if found.steps or not series.steps:
        return found
    return _at(series, series.steps[-1:])


def _at(series: S, steps: Collection[int], *more: str) -> S:
    """A series with ``steps``, ``wall_times`` and ``more`` at these steps only."""
    own_steps = series.steps or ()
    places = [place for place, step in enumerate(own_steps) if step in steps]
    kept: dict[str, Any] = {}
    for name in ("steps", "wall_times", *more):
        values = getattr(series, name)
        kept[name] = [values[place] for place in places]
    return replace(series, **kept)
