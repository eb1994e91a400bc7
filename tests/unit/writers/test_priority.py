"""The worker thread gives way to training, and to nothing where nothing trains."""

from __future__ import annotations

import os
import sys
import threading

import pytest

from fmapboard.errors import WarnOnce
from fmapboard.options import Options
from fmapboard.records import LoggedStep, StepData
from fmapboard.writers.memory import MemoryWriter
from fmapboard.writers.pipeline import Pipeline
from fmapboard.writers.worker import Worker

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux has a priority per thread"
)


def own_priority() -> int:
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


@pytest.mark.parametrize("low_priority", [True, False])
def test_a_worker_has_the_lowest_priority_only_if_that_is_asked_for(low_priority: bool) -> None:
    seen: list[int] = []
    worker: Worker[None] = Worker(
        lambda _: seen.append(own_priority()), lambda error: None, low_priority=low_priority
    )
    worker.put(None, 1)
    worker.close()
    assert seen == [19 if low_priority else own_priority()]


def test_the_steps_of_a_training_are_written_with_the_lowest_priority() -> None:
    class Watching(MemoryWriter):
        def write(self, step: LoggedStep) -> None:
            seen.append(own_priority())

    seen: list[int] = []
    pipeline = Pipeline(Watching(), Options(), WarnOnce())
    pipeline.put(lambda: StepData(0, 0.0), 1)
    pipeline.close()
    assert seen == [19]
