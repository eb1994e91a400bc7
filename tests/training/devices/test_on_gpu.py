"""A dry run of `benchmarks/on_gpu.py` on the CPU, and with faults that it must find."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parents[3] / "benchmarks" / "on_gpu.py"
DRY = ("--device", "cpu", "--tiny", "--rounds", "1")
MODES, AMP = ("eager", "amp16"), ("eager", "amp")


def run(folder: Path, *options: str, before: str = "") -> tuple[int, list[dict[str, Any]], str]:
    """Exit status, results and output of the program, in a process of its own.

    Args:
        folder: Where it writes.
        options: Further options.
        before: Statements that run before it.
    """
    arguments = [str(PROGRAM), *DRY, "--out", str(folder), *options]
    start = f"import runpy, sys; sys.path.insert(0, {str(PROGRAM.parent)!r})\n{before}\n"
    start += f"sys.argv = {arguments!r}\nrunpy.run_path({str(PROGRAM)!r}, run_name='__main__')"
    command = [sys.executable, "-c", start] if before else [sys.executable, *arguments]
    one_thread = {**os.environ, "OMP_NUM_THREADS": "1"}  # others would spin: the tensors are small
    done = subprocess.run(command, capture_output=True, text=True, env=one_thread, timeout=250)
    saved = folder / "on_gpu.json"
    results = json.loads(saved.read_text())["results"] if saved.exists() else []
    return done.returncode, results, done.stdout + done.stderr


def verdicts(results: list[dict[str, Any]], section: str) -> dict[str, str]:
    return {one["name"]: one["verdict"] for one in results if one["section"] == section}


def on_the_cpu(*names: str) -> dict[str, str]:
    return dict.fromkeys(names, "ok")


@pytest.mark.usefixtures("errors_are_only_logged")
def test_a_dry_run_reports_each_section_and_says_what_it_skips(tmp_path: Path) -> None:
    status, results, output = run(tmp_path, "--modes", ",".join(MODES))
    assert (status, output.count("\n[")) == (0, len(results)), output
    more = [f"{what}, {mode}" for what in ("averaged tiles", "NaN and infinity") for mode in AMP]
    more += [f"hard tensors, {dtype}" for dtype in ("float32", "bfloat16", "float16")]
    assert verdicts(results, "right") == on_the_cpu(*MODES, *more)
    assert verdicts(results, "neutral") == on_the_cpu(*MODES)
    assert set(verdicts(results, "waits").values()) == {"skip"}
    assert set(verdicts(results, "budgets").values()) == {"skip"}
    hazards = verdicts(results, "hazards")
    assert [name for name in hazards if hazards[name] != "skip"] == ["memory stays the same"]
    cost = verdicts(results, "cost")
    for work in ("small", "ConvNeXt", "3D U-Net"):
        assert [cost[f"{work}, {mode}: fmapboard"] for mode in MODES] == ["ok", "ok"]
        assert cost[f"{work}, eager: the classic recipe"] == "measured"
    skipped = [one for one in results if one["verdict"] == "skip"]
    assert all(one["notes"] and one["notes"][0] for one in skipped)
    count = Counter(one["verdict"] for one in results)
    summary = f"{count['ok']} ok, 0 FAIL, {count['skip']} skip, {count['measured']} measured"
    assert summary in output
    page = (tmp_path / "on_gpu.md").read_text()
    assert [one for one in results if f"| {one['name']} | {one['verdict']} |" not in page] == []


def test_without_a_gpu_the_error_names_the_dry_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    status, results, output = run(tmp_path, "--device", "cuda")
    assert (status, results) == (2, [])
    assert output.endswith("; a dry run: --device cpu --tiny\n")


DRAWS_ANOTHER_TENSOR = """
from fmapboard.measure.reducer import Reducer
genuine = Reducer.keep
def keep(self, view, samples, **options):
    view.maps.data = view.maps.roll(1, -1)
    return genuine(self, view, samples, **options)
Reducer.keep = keep
"""
CHANGES_AN_OUTPUT = """
from fmapboard.capture.collector import ActivationCollector
genuine = ActivationCollector.captured
def captured(self, call, side, value, module):
    genuine(self, call, side, value, module)
    if side == "output" and call.layer == "wide":
        value.data.mul_(1 + 1e-6)
ActivationCollector.captured = captured
"""


@pytest.mark.parametrize(
    ("fault", "section"),
    [
        pytest.param(DRAWS_ANOTHER_TENSOR, "right", marks=pytest.mark.sweep),
        (CHANGES_AN_OUTPUT, "neutral"),
    ],
    ids=["draws another tensor", "changes an output"],
)
def test_a_planted_fault_fails(tmp_path: Path, fault: str, section: str) -> None:
    only = ("--only", section, "--modes", "eager")
    status, results, output = run(tmp_path, *only, before=fault)
    failed = [one["name"] for one in results if one["verdict"] == "FAIL"]
    assert "eager" in failed, output
    assert status == len(failed)


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    monkeypatch.setenv("KINETO_LOG_LEVEL", "6")
    monkeypatch.syspath_prepend(PROGRAM.parent)
    return importlib.import_module("on_gpu")


def test_a_check_that_raises_fails_and_the_next_one_runs(program: Any, tmp_path: Path) -> None:
    report = program.Report(tmp_path, [], 100.0)
    report.run("right", "raises", lambda check: 1 // 0)
    report.run("right", "expects", lambda check: check.expect(True, ""))
    report.run("right", "measures", lambda check: check.figures.update(ms=3))
    found = [(result.name, result.verdict) for result in report.results]
    assert found == [("raises", "FAIL"), ("expects", "ok"), ("measures", "measured")]
    assert report.failed == 1
    assert "ZeroDivisionError" in report.results[0].notes[0]
    assert program.load(tmp_path) == report.results


def test_a_check_that_would_begin_too_late_is_skipped(program: Any, tmp_path: Path) -> None:
    report = program.Report(tmp_path, [], -1.0)
    report.run("right", "late", lambda check: check.expect(True, ""))
    assert [result.verdict for result in report.results] == ["skip"]
    assert report.failed == 0


@pytest.mark.parametrize("ends", ["crashes", "hangs"])
def test_a_section_that_crashes_or_hangs_counts_as_failed_and_keeps_its_results(
    program: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    def section(command: list[str], timeout: float) -> Any:
        child = program.Report(Path(command[-1]), [], 100.0)
        child.run("hazards", "first", lambda check: check.expect(True, ""))
        if ends == "hangs":
            raise subprocess.TimeoutExpired(command, timeout)
        return subprocess.CompletedProcess(command, -11)

    monkeypatch.setattr(subprocess, "run", section)
    report = program.Report(tmp_path, [], 100.0)
    program.in_a_process("hazards", report, [])
    assert [result.verdict for result in report.results] == ["ok", "FAIL"]
    text = {"crashes": "ended with status -11", "hangs": "did not end in time"}[ends]
    assert report.results[1].notes == [f"the process {text}, after 1 checks"]
