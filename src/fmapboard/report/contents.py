"""What a report holds: as many steps, then as many layers, as the limit on its size allows."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from fmapboard.plugin.routes.by_name import runs
from fmapboard.plugin.tag_names import layer_of
from fmapboard.report.answers import Embedded, RunAnswers
from fmapboard.report.choice import CHART_STEPS, layers_of, logged_steps, matching, spread, thin
from fmapboard.report.page import NO_FACTS, Page, size_of
from fmapboard.runs.log import EventLog
from fmapboard.runs.provider import Files

_PER_ANSWER = 60
"""Bytes of the page's index for one answer, at most."""
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
        is_site: True to have the pictures in files beside the page.

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
        limit: float,
        inputs: bool,
        is_site: bool = False,
    ) -> None:
        self.page = Page(is_site=is_site)
        self.left_out: list[str] = []
        self._asked = steps
        self._limit = limit
        self._inputs = inputs
        self._dropped: set[str] = set()
        keys_of_runs = self._matching(logs, layers)
        self.runs = list(keys_of_runs)
        kept_logs = {run: logs[run] for run in self.runs}
        self._logged = {run: len(logged_steps(log)) for run, log in kept_logs.items()}
        self._chart_steps = max(CHART_STEPS, steps)
        for log in kept_logs.values():
            charted = spread(logged_steps(log), self._chart_steps)
            thin(log, charted)
        provider = Files(kept_logs)
        self._answers = [
            RunAnswers(provider, run, keys, inputs=inputs) for run, keys in keys_of_runs.items()
        ]
        listed = [Embedded.of("runs", runs(provider))]
        count, answers = self._fitting()
        self.steps = [run.shown_steps(count) for run in self._answers]
        self.page.add(listed + answers)
        self._describe_left_out()

    @property
    def is_without_training(self) -> bool:
        """True if no step is one of a training: images or checkpoints were drawn."""
        return all(run.is_without_training for run in self._answers)

    def _matching(
        self, logs: Mapping[str, EventLog], patterns: Sequence[str]
    ) -> dict[str, set[str]]:
        """Run -> keys of the layers whose names match; runs without any are left out."""
        layers_of_runs = {run: layers_of(log) for run, log in logs.items()}
        labels: set[str] = set()
        for layers in layers_of_runs.values():
            labels.update(layers.values())
        kept = matching(patterns, sorted(labels)) if patterns else labels
        dropped = len(labels) - len(kept)
        if dropped:
            self.left_out.append(f"{dropped} of {len(labels)} layers, as asked for")
        chosen: dict[str, set[str]] = {}
        for run, layers in layers_of_runs.items():
            keys = {key for key, label in layers.items() if label in kept}
            if keys:
                chosen[run] = keys
        return chosen

    def _fitting(self) -> tuple[int, list[Embedded]]:
        """The number of steps with pictures that fit, and all answers.

        Steps are left out down to `_FEWEST`, then layers, those that take most bytes first. The
        last layer stays, so the result may exceed the limit.
        """
        available = self._limit - len(Page().html(NO_FACTS))
        count = self._asked
        numbers = self._numbers()
        while True:
            answers = numbers + self._pictures(count)
            size = size_of(answers) + _PER_ANSWER * len(answers)
            if size <= available:
                return count, answers
            if count > _FEWEST:
                estimate = int(count * max(available, 0) / size)
                count = max(_FEWEST, min(count - 1, estimate))
                continue
            excess = math.ceil((size - available) * 3 / 4)  # base64 adds a third
            dropped = _largest(picture_bytes(answers), excess)
            if not dropped:
                return count, answers
            self._dropped.update(dropped)
            for run in self._answers:
                run.drop(dropped)
            numbers = self._numbers()

    def _numbers(self) -> list[Embedded]:
        """The answers about all runs that have no pictures."""
        return [answer for run in self._answers for answer in run.numbers()]

    def _pictures(self, count: int) -> list[Embedded]:
        """The answers about all runs with pictures, of at most ``count`` steps per run."""
        answers: list[Embedded] = []
        for run in self._answers:
            answers += run.pictures(run.shown_steps(count))
        return answers

    def _describe_left_out(self) -> None:
        """Say in words what was left out."""
        to_fit = f", to stay below {self._limit / 1e6:g} MB"
        for run, shown in zip(self.runs, self.steps, strict=True):
            of_run = f" of {run}" if len(self.runs) > 1 else ""
            logged = self._logged[run]
            undrawn = logged - len(shown)
            if undrawn > 0:
                is_for_size = len(shown) < min(self._asked, logged)
                why = to_fit if is_for_size else ""
                self.left_out.append(f"pictures of {undrawn} of {logged} logged steps{of_run}{why}")
            if self._chart_steps < logged:
                fewer = logged - self._chart_steps
                self.left_out.append(
                    f"{fewer} of {logged} logged steps{of_run} in charts and the overview"
                )
        if self._dropped:
            layers = [layer_of(key) for key in self._dropped]
            names = sorted({layer.label for layer in layers if layer is not None})
            listed = ", ".join(names)
            counted = "1 layer" if len(names) == 1 else f"{len(names)} layers"
            self.left_out.append(f"{counted} with large pictures{to_fit}: {listed}")
        if not self._inputs:
            self.left_out.append(
                "pictures of the network's input and of layers' inputs, attribution, and patches"
            )


def picture_bytes(answers: Iterable[Embedded]) -> dict[str, int]:
    """Key of a layer -> bytes that its pictures take at all steps."""
    sizes: defaultdict[str, int] = defaultdict(int)
    for answer in answers:
        if answer.maps is not None:
            key = dict(answer.query)["key"]
            sizes[key] += sum(len(picture.png) for picture in answer.maps.pictures)
    return dict(sizes)


def _largest(sizes: Mapping[str, int], excess: int) -> list[str]:
    """The layers with most bytes, until they make up ``excess`` bytes; never all layers."""
    chosen: list[str] = []
    largest_first = sorted(sizes, key=lambda key: -sizes[key])
    for key in largest_first[: len(sizes) - 1]:
        if excess <= 0:
            break
        chosen.append(key)
        excess -= sizes[key]
    return chosen
