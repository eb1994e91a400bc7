"""A dry run of `benchmarks/on_gpu.py` on the CPU, and with faults that it must find."""

from __future__ import annotations

import importlib
import json
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from fmapboard.capture.collector import ActivationCollector
from fmapboard.measure.reducer import Reducer

PROGRAM = Path(__file__).parents[3] / "benchmarks" / "on_gpu.py"
DRY = ("--device", "cpu", "--tiny", "--rounds", "1")
MODES, AMP = ("eager", "amp16"), ("eager", "amp")
WORKS = ("small", "ConvNeXt", "3D U-Net")


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    monkeypatch.setenv("KINETO_LOG_LEVEL", "6")
    monkeypatch.syspath_prepend(PROGRAM.parent)
    return importlib.import_module("on_gpu")


def results_in(folder: Path) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = json.loads((folder / "on_gpu.json").read_text())["results"]
    return results


def verdicts(results: list[dict[str, Any]], section: str) -> dict[str, str]:
    return {one["name"]: one["verdict"] for one in results if one["section"] == section}


def on_the_cpu(*names: str) -> dict[str, str]:
    return dict.fromkeys(names, "ok")


@pytest.mark.usefixtures("errors_are_only_logged")
@pytest.mark.parametrize(
    ("modes", "works"),
    [(MODES[:1], WORKS[:1]), pytest.param(MODES, WORKS, marks=pytest.mark.sweep)],
)
def test_a_dry_run_reports_each_section_and_says_what_it_skips(
    program: Any,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    modes: tuple[str, ...],
    works: tuple[str, ...],
) -> None:
    chosen = ["--modes", ",".join(modes), *(["--works", *works] if len(works) == 1 else [])]
    status = program.main([*DRY, "--out", str(tmp_path), *chosen])
    results, output = results_in(tmp_path), capsys.readouterr().out
    assert (status, output.count("\n[")) == (0, len(results)), output
    more = [f"{what}, {mode}" for what in ("averaged tiles", "NaN and infinity") for mode in AMP]
    more += [f"hard tensors, {dtype}" for dtype in ("float32", "bfloat16", "float16")]
    assert verdicts(results, "right") == on_the_cpu(*modes, *more)
    assert verdicts(results, "neutral") == on_the_cpu(*modes)
    assert set(verdicts(results, "waits").values()) == {"skip"}
    assert set(verdicts(results, "budgets").values()) == {"skip"}
    hazards = verdicts(results, "hazards")
    assert [name for name in hazards if hazards[name] != "skip"] == ["memory stays the same"]
    cost = verdicts(results, "cost")
    for work in works:
        assert [cost[f"{work}, {mode}: fmapboard"] for mode in modes] == ["ok"] * len(modes)
        assert cost[f"{work}, eager: the classic recipe"] == "measured"
    skipped = [one for one in results if one["verdict"] == "skip"]
    assert all(one["notes"] and one["notes"][0] for one in skipped)
    count = Counter(one["verdict"] for one in results)
    summary = f"{count['ok']} ok, 0 FAIL, {count['skip']} skip, {count['measured']} measured"
    assert summary in output
    page = (tmp_path / "on_gpu.md").read_text()
    assert [one for one in results if f"| {one['name']} | {one['verdict']} |" not in page] == []


@pytest.mark.skipif(torch.cuda.is_available(), reason="has a GPU")
def test_without_a_gpu_the_error_names_the_dry_run(
    program: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        program.main(["--device", "cuda", "--out", str(tmp_path)])
    assert (ended.value.code, list(tmp_path.iterdir())) == (2, [])
    assert capsys.readouterr().err.endswith("; a dry run: --device cpu --tiny\n")


def draw_another_tensor(monkeypatch: pytest.MonkeyPatch) -> None:
    genuine = Reducer.keep

    def keep(self: Reducer, view: Any, samples: Any, **options: Any) -> Any:
        view.maps.data = view.maps.roll(1, -1)
        return genuine(self, view, samples, **options)

    monkeypatch.setattr(Reducer, "keep", keep)


def change_an_output(monkeypatch: pytest.MonkeyPatch) -> None:
    genuine = ActivationCollector.captured

    def captured(self: Any, call: Any, side: str, value: Any, module: nn.Module) -> None:
        genuine(self, call, side, value, module)
        if side == "output" and call.layer == "wide":
            value.data.mul_(1 + 1e-6)

    monkeypatch.setattr(ActivationCollector, "captured", captured)


@pytest.mark.parametrize(
    ("fault", "section"),
    [
        pytest.param(draw_another_tensor, "right", marks=pytest.mark.sweep),
        (change_an_output, "neutral"),
    ],
)
def test_a_planted_fault_fails(
    program: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fault: Callable[[pytest.MonkeyPatch], None],
    section: str,
) -> None:
    fault(monkeypatch)
    only = ("--only", section, "--modes", "eager")
    status = program.main([*DRY, "--out", str(tmp_path), *only])
    failed = [one["name"] for one in results_in(tmp_path) if one["verdict"] == "FAIL"]
    assert "eager" in failed
    assert status == len(failed)


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
