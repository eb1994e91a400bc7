"""The data provider that the tab's routes ask, over event files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

from tensorboard import errors
from tensorboard.data import provider

from fmapboard.runs.log import Datum, EventLog, TagSeries


class LogProvider:
    """Answers the plugin's questions from the event files; see TensorBoard's ``DataProvider``.

    Args:
        logs: by name of the run.
    """

    def __init__(self, logs: Mapping[str, EventLog]) -> None:
        self._logs = logs

    def experiment_metadata(self, _: Any = None, *, experiment_id: str) -> Any:
        """Nothing is known of the experiment."""
        return provider.ExperimentMetadata(data_location="")

    def list_runs(self, _: Any = None, *, experiment_id: str) -> list[Any]:
        """The runs and when they were started."""
        return [
            provider.Run(run_id=name, run_name=name, start_time=log.started)
            for name, log in self._logs.items()
        ]

    def list_scalars(self, _: Any = None, **asked: Any) -> dict[str, dict[str, Any]]:
        """Run -> tag -> None."""
        return self._found(asked, lambda log, series: None)

    list_tensors = list_blob_sequences = list_scalars

    def read_scalars(self, _: Any = None, **asked: Any) -> dict[str, dict[str, Any]]:
        """Run -> tag -> data with a ``value``."""
        return self._found(
            asked,
            lambda log, series: [_scalar(d) for d in series.ordered() if d.number is not None],
        )

    def read_tensors(self, _: Any = None, **asked: Any) -> dict[str, dict[str, Any]]:
        """Run -> tag -> data with an array ``numpy``."""
        return self._found(
            asked,
            lambda log, series: [
                _tensor(datum, array)
                for datum in series.ordered()
                if (array := log.array(datum)) is not None
            ],
        )

    def read_blob_sequences(self, _: Any = None, **asked: Any) -> dict[str, dict[str, Any]]:
        """Run -> tag -> data with the keys of their blobs."""
        found: dict[str, dict[str, Any]] = {}
        for run, _log, tag, series in self._asked(asked):
            found.setdefault(run, {})[tag] = [_blobs(run, tag, d) for d in series.ordered()]
        return found

    def read_blob(self, _: Any = None, *, blob_key: str) -> bytes:
        """The blob of a key.

        Raises:
            NotFoundError: there is no such blob.
        """
        run, tag, step, index = json.loads(blob_key)
        try:
            log = self._logs[run]
            blob: bytes = log.strings(log.series[tag].data[step])[index]
        except LookupError as error:
            raise errors.NotFoundError(blob_key) from error
        return blob

    def _found(self, asked: Mapping[str, Any], of: Any) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for run, log, tag, series in self._asked(asked):
            found.setdefault(run, {})[tag] = of(log, series)
        return found

    def _asked(self, asked: Mapping[str, Any]) -> Iterator[tuple[str, EventLog, str, TagSeries]]:
        plugin, chosen = asked["plugin_name"], asked.get("run_tag_filter")
        runs = None if chosen is None else chosen.runs
        tags = None if chosen is None or chosen.tags is None else set(chosen.tags)
        for run in self._logs if runs is None else runs:
            log = self._logs.get(run)
            if log is None:
                continue
            for tag, series in log.series.items():  # in the order in which TensorBoard lists them
                if series.plugin == plugin and series.data and (tags is None or tag in tags):
                    yield run, log, tag, series


def _scalar(datum: Datum) -> Any:
    return provider.ScalarDatum(step=datum.step, wall_time=datum.wall_time, value=datum.number)


def _tensor(datum: Datum, array: Any) -> Any:
    return provider.TensorDatum(step=datum.step, wall_time=datum.wall_time, numpy=array)


def _blobs(run: str, tag: str, datum: Datum) -> Any:
    keys = (json.dumps([run, tag, datum.step, index]) for index in range(datum.blobs))
    values = tuple(provider.BlobReference(key) for key in keys)
    return SimpleNamespace(step=datum.step, wall_time=datum.wall_time, values=values)
