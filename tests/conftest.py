"""Settings that every test relies on, and the marker of the slow tests."""

from __future__ import annotations

import gc
import logging
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

TESTS = Path(__file__).parent
collect_ignore = ["acceptance", "accuracy"]  # run by hand
if os.name == "nt":  # they limit resources as only POSIX can
    collect_ignore += ["contract/test_folder_writer.py", "destruction"]
    collect_ignore += ["unit/writers/test_event_file_errors.py"]
SLOW = {
    *("browser", "frameworks", "golden", "same_records", "training"),
    *(f"contract/test_{what}.py" for what in ("four_places", "rerun", "tensorboard_server")),
    *(f"docs/test_{what}.py" for what in ("default_layers", "examples", "hooks")),
    *(f"docs/test_{what}.py" for what in ("pages_run", "reference", "site")),
    *(f"unit/cli/test_{what}.py" for what in ("check", "diff", "doctor")),
    *(f"unit/cli/test_{what}.py" for what in ("main_command_line", "tab_server")),
    "unit/imaging/test_embedding.py",
    *(f"unit/imaging/test_visualize_{what}.py" for what in ("attribution", "folder")),
    *(f"unit/imaging/test_visualize_{what}.py" for what in ("same_reading", "silenced", "tells")),
    "unit/imaging/models/test_checkpoints_series.py",
    *(
        f"unit/imaging/models/test_load_{library}.py"
        for library in ("huggingface", "timm", "torchvision")
    ),
    *(f"unit/interventions/test_context_{what}.py" for what in ("compiled", "copies")),
    "unit/plugin/routes",
    *(f"unit/plugin/test_{what}.py" for what in ("answers_types", "front_end_modules", "loader")),
    *(f"unit/plugin/test_plugin_{what}.py" for what in ("hostile", "server")),
    "unit/plugin/test_plugin_steps_of_visualize.py",
    *(f"unit/plugin/test_{what}.py" for what in ("log_scan", "source_calls", "source_sampling")),
    "unit/report",
}
"""Folders and modules of slow tests: trainings, servers, browsers, large libraries, pages."""
SWEEPS = {"training/setups/test_model_zoo.py"}
"""Modules that repeat for many models what other tests show for a few."""
LONGEST = (
    "training/processes/test_distributed.py",
    "training/neutral/test_compiled.py",
    "frameworks/test_examples.py",
    "docs/test_pages_run.py",
    "training/processes/test_interrupts.py",
    "unit/imaging/test_visualize_folder.py",
    "contract/test_four_places.py",
    "training/processes/test_collectives.py",
    "docs/test_site.py",
)
"""Modules that take longest, or wait for longest, the longest first.

None of the browser: it would be started once for that module and once for the others.
"""

# Helpers contain assertions: rewritten, their failures show values as those of test modules do.
for _helper in (TESTS / "helpers").glob("*.py"):
    pytest.register_assert_rewrite(_helper.stem)


def pytest_configure(config: pytest.Config) -> None:
    """Side by side (``-n``), start modules in the order of the items, see below."""
    config.option.loadscopereorder = False


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With `-m "not slow"` do not even import the slow modules, which takes seconds."""
    if config.option.markexpr == "not slow" and collection_path.is_relative_to(TESTS):
        return collection_path.relative_to(TESTS).as_posix() in SLOW or None
    return None


@pytest.hookimpl(hookwrapper=True)
def pytest_collection() -> Iterator[None]:
    """Leave what is imported to no garbage collection: there are a million objects of it."""
    gc.disable()
    yield
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark slow tests and sweeps; `-m "not slow"` and `-m "not sweep"` leave them out.

    Slow modules come first, the longest before all: processes side by side then end together.
    """
    for item in items:
        path = item.path.relative_to(TESTS)
        if SLOW & {place.as_posix() for place in (path, *path.parents)}:
            item.add_marker(pytest.mark.slow)
        if path.as_posix() in SWEEPS:
            item.add_marker(pytest.mark.sweep)
    _sweep_combinations(items)
    items.sort(key=_turn)


def _sweep_combinations(items: list[pytest.Item]) -> None:
    """Of tests marked `each_once`, leave CI as many cases as have each value of each parameter."""
    cases: dict[str, list[pytest.Function]] = {}
    for item in items:
        if item.get_closest_marker("each_once") and not item.get_closest_marker("sweep"):
            assert isinstance(item, pytest.Function)
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for same_test in cases.values():
        columns = set()
        for name in same_test[0].callspec.params:
            given = [id(case.callspec.params[name]) for case in same_test]
            columns.add(tuple(map([*dict.fromkeys(given)].index, given)))
        values = [sorted({*column}) for column in sorted(columns)]
        often = {
            tuple(
                axis[(n + turn * (n // len(axis))) % len(axis)] for turn, axis in enumerate(values)
            )
            for n in range(max(map(len, values)))
        }
        for case, places in zip(same_test, zip(*sorted(columns), strict=True), strict=True):
            if places not in often:
                case.add_marker(pytest.mark.sweep)


def _turn(item: pytest.Item) -> int:
    path = item.path.relative_to(TESTS).as_posix()
    if path in LONGEST:
        return LONGEST.index(path)
    return len(LONGEST) + (item.get_closest_marker("slow") is None)


@pytest.fixture(scope="session", autouse=True)
def _one_torch_thread() -> Iterator[None]:
    """One torch thread: the tests' small tensors are faster with it, and forks are safe.

    The processes that tests start have one, too.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("OMP_NUM_THREADS", "1")
        yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def _same_random_numbers() -> None:
    torch.default_generator.manual_seed(0)
    if torch.cuda.is_initialized():  # until then, torch would note a traceback for each test
        torch.cuda.manual_seed_all(0)


@pytest.fixture(autouse=True)
def _errors_of_ours_are_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise fmapboard's errors; tests of what a user sees use `errors_are_only_logged`."""
    monkeypatch.setenv("FMAPBOARD_ON_ERROR", "raise")


@pytest.fixture
def errors_are_only_logged(
    monkeypatch: pytest.MonkeyPatch, _errors_of_ours_are_raised: None
) -> None:
    """Log fmapboard's errors, as for a user."""
    monkeypatch.delenv("FMAPBOARD_ON_ERROR")


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], list[str]]]:
    """A function that returns the warnings logged so far."""
    with caplog.at_level(logging.WARNING, "fmapboard"):
        yield lambda: caplog.messages


def _is_for_posix(raised: pytest.ExceptionInfo[BaseException]) -> bool:
    """True if code of a test asked for a signal or a system call that this system does not have."""
    error = raised.value
    is_missing = isinstance(error, AttributeError) and error.obj in (os, signal)
    return is_missing and Path(raised.traceback[-1].path).is_relative_to(TESTS)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """A test that uses what only POSIX has is skipped elsewhere.

    In CI a skipped test fails, unless it needs a GPU, or only the fast tests run, for which no
    framework is installed.
    """
    outcome = yield
    report = outcome.get_result()
    if call.excinfo is not None and _is_for_posix(call.excinfo):
        report.outcome = "skipped"
        report.longrepr = (str(item.path), 0, f"Skipped: {call.excinfo.value}")
    is_strict = os.environ.get("CI") and item.config.option.markexpr != "not slow"
    if report.skipped and is_strict and not item.get_closest_marker("cuda"):
        if hasattr(report, "wasxfail"):
            return
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped in CI: {report.longrepr[-1]}"
