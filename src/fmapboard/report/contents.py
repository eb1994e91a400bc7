"""What goes into a report: which steps and layers, below the limit on its size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fmapboard.plugin.tag_names import layer_of
from fmapboard.report.answers import Answer, RunAnswers
from fmapboard.report.blobs import Blobs
from fmapboard.report.choice import CHART_STEPS, logged_steps, matching, spread, thin
from fmapboard.report.event_log import EventLog
from fmapboard.report.page import Page
from fmapboard.report.routes import Routes

_FRONT_END = 400_000
"""Bytes that the page takes without any answer, at most."""
_FEWEST = 2
"""Steps: with fewer there is nothing to compare."""


class Contents:
    """Collects the answers of a report.

    Args:
        logs: by name of the run; what the report does not show is dropped from them.
        layers: globs on layer names.
        steps: most steps of pictures per run.
        limit: of the page's size, bytes.
        inputs: False to leave out every picture that shows the network's input.

    Attributes:
        page: with all answers.
        runs: names of the runs.
        steps: for each run, the steps of its pictures.
        left_out: what the runs have and the report does not, in words.

    Raises:
        LayerNotFound: a glob matches no layer.
    """

    def __init__(
        self,
        logs: Mapping[str, EventLog],
        layers: Sequence[str],
        *,
        steps: int,
        limit: int,
        inputs: bool,
    ) -> None:
        self.page = Page()
        self.left_out: list[str] = []
        self._asked, self._limit = steps, limit
        chosen = self._layers(logs, layers)
        logged = {run: logged_steps(logs[run]) for run in chosen}
        for run, log in logs.items():
            thin(log, spread(logged.get(run, ()), max(CHART_STEPS, steps)))
        routes = Routes({run: logs[run] for run in chosen})
        self._runs = {
            run: RunAnswers(routes, run, keys, inputs=inputs) for run, keys in chosen.items()
        }
        self.runs = list(self._runs)
        self.page.add([Answer.of("runs", routes.ask("runs") or b"")])
        count, answers = self._fitting(limit - _FRONT_END)
        self.page.add(answers)
        self.steps = [spread(run.steps, count) for run in self._runs.values()]
        self._say_steps(logged)
        if not inputs:
            self.left_out.append(
                "pictures of the network's input, of layers' inputs, and attribution over the input"
            )

    def _layers(self, logs: Mapping[str, EventLog], patterns: Sequence[str]) -> dict[str, set[str]]:
        """Run -> keys of the layers whose names match; runs without any are left out."""
        found = {
            run: {
                layer.key: layer.label for layer in map(layer_of, log.series) if layer is not None
            }
            for run, log in logs.items()
        }
        labels = sorted({label for layers in found.values() for label in layers.values()})
        kept = matching(patterns, labels) if patterns else set(labels)
        if len(kept) < len(labels):
            self.left_out.append(f"{len(labels) - len(kept)} of {len(labels)} layers, as asked for")
        chosen = {run: {k for k, label in of.items() if label in kept} for run, of in found.items()}
        return {run: keys for run, keys in chosen.items() if keys}

    def _fitting(self, room: int) -> tuple[int, list[Answer]]:
        """How many steps fit into this many bytes of the page, and all answers."""
        numbers, count = self._numbers(), self._asked
        room -= _size(numbers)
        while True:
            found = self._pictures(count)
            size = _size(found)
            if size <= room:
                return count, numbers + found
            if count <= _FEWEST:
                self._drop_layers(found, room)
                return count, self._numbers() + self._pictures(count)
            count = max(_FEWEST, min(count - 1, int(count * max(room, 0) / size)))

    def _numbers(self) -> list[Answer]:
        return [answer for answers in self._runs.values() for answer in answers.numbers()]

    def _pictures(self, count: int) -> list[Answer]:
        return [
            answer
            for answers in self._runs.values()
            for answer in answers.pictures(spread(answers.steps, count))
        ]

    def _drop_layers(self, found: list[Answer], room: int) -> None:
        """Leave out the layers whose pictures take most bytes, until the rest fits."""
        sizes: dict[str, int] = {}
        for answer in found:
            if answer.layer is not None:
                sizes[answer.layer] = sizes.get(answer.layer, 0) + sum(map(len, answer.parts))
        dropped: set[str] = set()
        kept = found
        for key in sorted(sizes, key=lambda key: -sizes[key])[:-1]:
            if _size(kept) <= room:
                break
            dropped.add(key)
            kept = [answer for answer in kept if answer.layer != key]
        names = sorted({layer.label for layer in map(layer_of, dropped) if layer is not None})
        self.left_out.append(
            f"the layers whose pictures take most bytes, to stay below {self._limit / 1e6:g} MB: "
            f"{', '.join(names)}"
        )
        for answers in self._runs.values():
            answers.drop(dropped)

    def _say_steps(self, logged: Mapping[str, Sequence[int]]) -> None:
        for run, shown in zip(self.runs, self.steps, strict=True):
            of, every = f" of {run}" if len(self.runs) > 1 else "", len(logged[run])
            if len(shown) < every:
                why = "" if len(shown) >= min(self._asked, every) else self._why_fewer()
                self.left_out.append(
                    f"pictures of {every - len(shown)} of {every} logged steps{of}{why}"
                )
            if every > max(CHART_STEPS, self._asked):
                charts = max(CHART_STEPS, self._asked)
                self.left_out.append(
                    f"{every - charts} of {every} logged steps{of} in charts and the overview"
                )

    def _why_fewer(self) -> str:
        return f", to stay below {self._limit / 1e6:g} MB"


def _size(answers: Iterable[Answer]) -> int:
    """Bytes that answers take in the page."""
    blobs = Blobs()
    for answer in answers:
        for part in answer.parts:
            blobs.add(part)
    return blobs.size
