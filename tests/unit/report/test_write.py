"""What a report holds, and what it leaves out; its page is tested in ``test_browser_report``."""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
from pathlib import Path, PureWindowsPath
from typing import Any

import pytest
import torch
from tab_client import Tab, open_tab
from torch import nn
from two_layer_runs import log_steps

import fmapboard
from fmapboard.cli.main import run as run_command
from fmapboard.errors import ConfigurationError, FmapboardError, LayerNotFound
from fmapboard.plugin.answers import Missing, body
from fmapboard.plugin.routes.by_name import ROUTES
from fmapboard.report.answers import RunAnswers
from fmapboard.report.choice import matching, onsets, spread, thin
from fmapboard.report.page import NO_FACTS, Page
from fmapboard.report.result import Report
from fmapboard.report.write import NO_INPUT, PRIVACY, _name, write_report
from fmapboard.runs.log import EventLog
from fmapboard.runs.provider import Files
from fmapboard.writers.folder import MemoryWriter

STEPS = 12


def train(run: Path | None, **options: Any) -> fmapboard.FeatureMapLogger:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Conv2d(16, 8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with fmapboard.watch(model, run, optimizer=optimizer, every=1, **options) as board:
        for _ in range(STEPS):
            optimizer.zero_grad()
            model(torch.rand(2, 3, 40, 40)).square().mean().backward()
            optimizer.step()
    return board


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reported") / "noise"
    train(folder, attribution=True, inputs=True, kernels=4)
    return folder


def embedded(report: Report) -> list[bytes]:
    """Everything that a page embeds."""
    stored = re.findall(
        r'<script type="text/plain" id="(.).*?">(.*?)</script>', report.path.read_text()
    )
    blobs = [(kind, base64.b64decode(text)) for kind, text in stored]
    return [gzip.decompress(blob) if kind == "z" else blob for kind, blob in blobs]


def resumed(folder: Path) -> Path:
    """A run that was resumed at its last step of three."""
    log_steps(folder / "run", steps=[0, 10, 20])
    log_steps(folder / "run", steps=[20, 30], start_step=20)
    return folder


def assert_same_answers(logdir: Path, tab: Tab) -> None:
    runs = [each["run"] for each in tab.ask("data/runs")["runs"]]
    provider = Files({name: EventLog(logdir / name) for name in runs})
    assert [each["run"] for each in json.loads(body(ROUTES["runs"](provider)))["runs"]] == runs

    def compare(path: str, **query: str | int) -> None:
        answer = tab.get(f"data/{path}", **query)
        try:
            found: bytes | None = body(ROUTES[path](provider, **query))
        except Missing:
            found = None
        assert found == (answer.data if answer.status_code == 200 else None), (path, query)

    for name in runs:
        for path in ("layers", "health", "findings", "attribution"):
            compare(path, run=name)
        for layer in tab.ask("data/layers", run=name)["layers"]:
            compare("numbers", run=name, key=layer["key"])
            compare("history", run=name, key=layer["key"])
            for step in layer["steps"]:
                compare("maps", run=name, key=layer["key"], step=step)
                compare("input", run=name, name=layer["name"], step=step)


def test_the_files_give_the_answers_that_tensorboard_gives(
    logdir: Path, tab: Tab, tmp_path: Path
) -> None:
    assert_same_answers(logdir, tab)
    again = resumed(tmp_path)
    assert_same_answers(again, open_tab(again))


@pytest.mark.parametrize(
    ("count", "chosen"), [(1, [9]), (2, [0, 9]), (4, [0, 3, 6, 9]), (10, list(range(10)))]
)
def test_steps_are_spread_evenly_with_the_first_and_the_last(count: int, chosen: list[int]) -> None:
    assert spread(range(10), count) == chosen


def test_the_steps_at_which_faults_began_and_those_before_them_are_shown() -> None:
    steps = list(range(0, 130, 10))
    since = {"large": {3: 10, 4: 5}, "nonfinite": {1: 60, 2: 70}, "dead": {0: 0}}
    wanted = onsets(since, range(4), steps)
    assert wanted == [60, 10, 50, 0]
    assert spread(steps, 8, wanted) == [0, 10, 50, 60, 70, 90, 100, 120]
    assert spread(steps, 3, wanted) == [0, 60, 120]
    assert spread(steps, 2, wanted) == [0, 120]
    assert spread(steps, 3, [55]) == [0, 60, 120]


def test_a_report_has_the_steps_at_which_faults_began(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3))
    with fmapboard.watch(model, tmp_path / "run", every=1) as board, torch.no_grad():
        for step in range(STEPS):
            if step == 8:
                model[2].bias[0] = torch.nan
            with board.step(step):
                model(torch.rand(1, 3, 12, 12))
    even = write_report([tmp_path / "run"], tmp_path / "0.html", steps=4, layers=["0"])
    chosen = write_report([tmp_path / "run"], tmp_path / "2.html", steps=4, layers=["2"])
    assert even.steps == ((0, 4, 7, 11),)
    assert chosen.steps == ((0, 7, 8, 11),)


def test_links_to_runs_are_followed_and_give_the_name(run: Path, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a_run").symlink_to(run)
    report = write_report([tmp_path / "logs"], tmp_path / "report.html", steps=1)
    assert report.runs == ("a_run",)


def test_runs_on_two_drives_of_windows_have_their_whole_paths_as_names(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(paths: object) -> str:
        raise ValueError("Paths don't have the same drive")

    monkeypatch.setattr(os.path, "commonpath", refused)
    report = write_report([run], tmp_path / "report.html", steps=1)
    assert report.runs == (run.as_posix().lstrip("/"),)
    assert _name(PureWindowsPath(r"D:\runs\exp1"), "") == "D/runs/exp1"


def test_layers_are_chosen_by_globs_and_a_glob_without_match_is_an_error() -> None:
    names = ["layer1.conv", "layer1.down", "head"]
    assert matching(["layer1.*", "!*.down"], names) == {"layer1.conv"}
    assert matching(["!head"], names) == {"layer1.conv", "layer1.down"}
    with pytest.raises(LayerNotFound, match=r"no layer matches 'heat' among 3; closest: head"):
        matching(["heat"], names)
    with pytest.raises(
        LayerNotFound, match="no layer matches 'x' among 7; the first ones: 0, 1, 2"
    ):
        matching(["x"], [str(number) for number in range(7)])


def test_a_layer_that_runs_at_few_steps_keeps_its_last_one(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Conv2d(3, 2, 3), nn.Conv2d(2, 2, 1))
    with fmapboard.watch(model, tmp_path / "run", every=1, kernels=False) as board:
        for step in range(8):
            with board.step(step):
                often, rare = model
                seen = often(torch.rand(1, 3, 8, 8))
                (rare(seen) if step == 2 else seen).sum().backward()
    log, keys = EventLog(tmp_path / "run"), {"fmapboard/0", "fmapboard/1"}
    thin(log, [0, 7])
    answers = RunAnswers(Files({"run": log}), "run", keys, inputs=True)
    asked = {each.query for each in answers.pictures([0, 7]) if each.path == "maps"}
    assert sorted((dict(query)["key"], int(dict(query)["step"])) for query in asked) == [
        ("fmapboard/0", 0), ("fmapboard/0", 7), ("fmapboard/1", 2),
    ]  # fmt: skip


FIT = [
    (20.0, ["pictures of 4 of 12 logged steps"]),
    (0.58, ["pictures of 6 of 12 logged steps, to stay below"]),
    (0.27, ["pictures of 10 of 12 logged steps, to stay below"]),
    (0.2, ["pictures of 10 of 12 logged steps, to stay below", "1 layer with large pictures"]),
]
"""Limits without what a report without answers has, MB, and what is left out."""


def test_to_fit_steps_are_left_out_first_then_layers(run: Path, tmp_path: Path) -> None:
    empty = len(Page().html(NO_FACTS))
    for more, expected in FIT:
        limit = empty / 1e6 + more
        report = write_report([run], tmp_path / "small.html", max_mb=limit)
        assert report.size == report.path.stat().st_size <= limit * 1e6
        assert report.size <= 1.36 * report.embedded + 2 * empty
        assert (report.steps[0][0], report.steps[0][-1]) == (0, STEPS - 1)
        assert len(report.left_out) == len(expected)
        assert not report.problems
        for text, start in zip(report.left_out, expected, strict=True):
            assert text.startswith(start)


@pytest.mark.parametrize(
    ("out", "options", "error"),
    [
        ("events.out.tfevents.1.a.2.fmapboard", {}, "has the name of an event file"),
        ("a.html", {"max_mb": float("inf")}, "max_mb=inf"),
        ("a.html", {"layers": ["!*"]}, "no layer is left of 2: !.; leave out a pattern with"),
    ],
    ids=["event file", "no limit", "no layer"],
)
def test_a_report_that_cannot_be_meant_is_refused(
    run: Path, tmp_path: Path, out: str, options: dict[str, Any], error: str
) -> None:
    (tmp_path / out).write_text("before")
    with pytest.raises(FmapboardError, match=error):
        write_report([run], tmp_path / out, **options)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(out, "before")]


def test_a_report_is_a_file_or_a_site(run: Path, tmp_path: Path) -> None:
    with pytest.raises(
        ConfigurationError, match=r"a file \(--out\) or a site \(--site\), not both"
    ):
        write_report([run], tmp_path / "a.html", site=tmp_path / "site")


def test_a_file_above_the_limit_is_said_to_be(run: Path, tmp_path: Path) -> None:
    report = write_report([run], tmp_path / "small.html", max_mb=0.1)
    assert report.size > 100_000
    assert [p.split(" MB, more than 0.1 MB")[1][:1] for p in report.problems] == [":"]


def in_files(folder: Path) -> list[bytes]:
    """Everything in the files of pictures of a site."""
    found = []
    for file in folder.glob("*.js"):
        start, text = file.read_text().split("=", 1)
        assert start == "window.fmapboardPictures"
        for name, stored in json.loads(text.rstrip(";\n")).items():
            assert name.endswith(f".{file.stem}")
            blob = base64.b64decode(stored)
            found.append(gzip.decompress(blob) if name.startswith("z") else blob)
    return found


def test_a_site_has_in_files_the_pictures_that_a_report_embeds(run: Path, tmp_path: Path) -> None:
    pictures = tmp_path / "site" / "pictures"
    pictures.mkdir(parents=True)
    for name in ("0.js", "99999.js", "own.js"):
        (pictures / name).write_text("before")
    whole = write_report([run], tmp_path / "whole.html", steps=STEPS)
    site = write_report([run], site=tmp_path / "site", steps=STEPS)
    assert site.path == tmp_path / "site" / "index.html"
    assert (site.runs, site.steps, site.left_out) == (whole.runs, whole.steps, whole.left_out)
    assert (pictures / "own.js").read_text() == "before"
    (pictures / "own.js").unlink()
    assert not (pictures / "99999.js").exists()  # of an earlier site with more pictures
    files = [file for file in (tmp_path / "site").rglob("*") if file.is_file()]
    assert site.size == sum(file.stat().st_size for file in files)
    apart, inside = in_files(pictures), embedded(site)
    png = b"\x89PNG"
    assert sum(blob.startswith(png) for blob in apart) > STEPS
    assert not any(blob.startswith(png) for blob in inside)
    assert {*apart, *inside} >= {blob for blob in embedded(whole) if blob.startswith(png)}


def test_a_site_has_no_limit_on_its_size_unless_one_is_given(run: Path, tmp_path: Path) -> None:
    small = write_report([run], site=tmp_path / "small", steps=STEPS, max_mb=0.45)
    assert len(small.steps[0]) < STEPS
    assert small.size < 450_000


def test_without_inputs_no_picture_of_them_is_embedded(run: Path, tmp_path: Path) -> None:
    log = EventLog(run)
    secret = {
        log.strings(datum)[-1]
        for tag, series in log.series.items()
        if tag.startswith(("network_input", "inputs_", "attribution")) and series.plugin == "images"
        for datum in series.ordered()
    }
    whole = write_report([run], tmp_path / "whole.html", steps=STEPS)
    assert whole.privacy == PRIVACY
    assert secret <= set(embedded(whole))
    without = write_report([run], tmp_path / "without.html", steps=STEPS, inputs=False)
    assert without.privacy == NO_INPUT
    assert not secret & set(embedded(without))
    joined = b"".join(embedded(without))
    assert all(picture not in joined for picture in secret)
    assert NO_INPUT.encode() in joined


def test_a_logger_reports_its_own_run_while_it_is_open(tmp_path: Path) -> None:
    log_steps(tmp_path / "run" / "below")
    board = train(tmp_path / "run")
    report = board.report(tmp_path / "run.html", steps=3, layers="2", inputs=False)
    assert report is not None
    assert (report.runs, report.steps) == (("run",), ((0, 6, 11),))
    assert report.left_out[0] == "1 of 2 layers, as asked for"
    kept = train(None, writer=MemoryWriter())
    with pytest.raises(ConfigurationError, match="logged into a local directory"):
        kept.report(tmp_path / "none.html")


def test_the_command_says_what_was_left_out_and_exits_with_2_for_bad_usage(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "run.html"
    with pytest.raises(SystemExit) as done:
        run_command(["report", str(run), "-o", str(page), "--steps", "5"])
    assert done.value.code == 0
    size = page.stat().st_size / 1e6
    assert capsys.readouterr().out == (
        f"{page}: 1 run, {size:.1f} MB. {PRIVACY}\nleft out: pictures of 7 of 12 logged steps\n"
    )
    for arguments in ([str(tmp_path)], [str(run), "--layers", "heat"], [str(tmp_path / "none")]):
        with pytest.raises(SystemExit) as done:
            run_command(["report", *arguments, "-o", str(page)])
        assert done.value.code == 2


def test_visualize_writes_a_report_and_leaves_no_log_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    drawn = fmapboard.visualize(nn.Conv2d(3, 4, 3), torch.rand(2, 3, 9, 9), html="out.html")
    assert drawn.html == Path("out.html")
    assert (drawn.log_dir, drawn.out) == (None, None)
    assert [path.name for path in tmp_path.iterdir()] == ["out.html"]
