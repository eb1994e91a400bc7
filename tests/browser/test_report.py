"""A report in a real browser, a file or a site: its pixels, its controls, hostile names."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import torch
from attributed_training import batch, residual_network
from browser_visitor import ALONE, Person
from torch import nn
from torch.nn import functional

import fmapboard
from fmapboard.report.result import Report
from fmapboard.report.write import NO_INPUT, write_report

STEPS = 6
HOSTILE = "</script><img src=x onerror=\"top['hacked']=1\">'\n\u2028é"
HOSTILE_RUN = "x<", "script><b>'\"é"
LAYER = "fmapboard/3.conv1"
FROM: dict[str, object] = {"run": "plain", "layer": LAYER, "view": "maps"}
PLACES: dict[str, dict[str, object]] = {
    "maps": {**FROM, "step": 2, "sample": 1, "channel": 3, "overlay": 60},
    "locked": {**FROM, "step": 4, "locked": 1, "colours": "magma", "sort": "change"},
    "gradients": {**FROM, "role": "gradients_of_maps"},
    "inputs": {**FROM, "role": "inputs", "scale": "layer"},
    "kernels": {**FROM, "role": "kernels", "channel": 1},
    "columns": {**FROM, "compare": "other@", "show": "all"},
    "point": {**FROM, "step": 3, "pixel": "0.4,0.6"},
    "attribution": {"run": "plain", "view": "attribution", "step": 3},
    "film": {**FROM, "view": "film", "channels": "0,2"},
    "overview": {"run": "plain", "view": "overview", "front": "states", "findings": "open"},
    "sheet": {"run": "plain", "view": "overview", "front": "pictures", "findings": "open"},
}
CANVASES = """() => [...document.querySelectorAll("canvas:not(.step-marks)")]
  .filter((each) => each.checkVisibility() && each.width * each.height)
  .map((each) => each.toDataURL())"""


def train(run: Path, seed: int, first: str = "0") -> None:
    torch.manual_seed(seed)
    others = list(residual_network().named_children())[1:]
    model = nn.Sequential(OrderedDict([(first, nn.Conv2d(3, 8, 3, padding=1)), *others]))
    x, y = batch()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(
        model, run, optimizer=optimizer, every=1, samples=2, attribution=True, inputs=True,
        activation_gradients=True, kernels=2,
    ):  # fmt: skip
        for _ in range(STEPS):
            optimizer.zero_grad()
            functional.cross_entropy(model(x), y).backward()
            optimizer.step()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("reported")
    train(root / "plain", 0)
    train(root / "other", 1)
    return root


@pytest.fixture(scope="module")
def whole(runs: Path) -> Report:
    """A report of all steps of both runs."""
    return write_report([runs], runs / "whole.html")


def visit_file(browser: Any, visit: Callable[..., Person], path: Path, **state: object) -> Person:
    """The page of a report; fails if the page requests anything but itself."""
    asked: list[Any] = []
    browser.on("request", lambda request: asked.append(request))
    # The page has no server: what the address has behind the file's name is ignored.
    person = visit(f"{path.as_uri()}?", **state)
    person.settle()
    own = [each.url for each in asked if each.frame.page == person.page]
    assert [url.split("#")[0] for url in own] == [f"{path.as_uri()}?{ALONE}"]
    return person


def shown(person: Person, state: dict[str, object]) -> list[str]:
    """All canvases at an address but the marks below the slider."""
    entries = "".join(f"&p.feature_maps.{k}={quote(str(v), '')}" for k, v in state.items())
    person.frame.evaluate(f"location.hash = {'feature_maps' + entries!r}")
    person.settle()
    if state["view"] == "film":
        person.wait("document.documentElement.dataset.film === 'ready'")
    person.settle()
    return list(person.frame.evaluate(CANVASES))


def test_every_view_has_the_pixels_of_the_tab_and_nothing_is_requested(
    serve: Callable[[Path], str], runs: Path, whole: Report, browser: Any,
    visit: Callable[..., Person],
) -> None:  # fmt: skip
    assert whole.left_out == ()
    # At other widths, two scalers of the input round some pixels differently.
    tab = visit(serve(runs), width=1415, **FROM)
    expected = {place: shown(tab, state) for place, state in PLACES.items()}
    report = visit_file(browser, visit, whole.path, width=1415, **FROM)
    report.frame.evaluate("document.querySelector('.report-note').remove()")
    report.frame.evaluate("window.dispatchEvent(new Event('resize'))")
    for place, state in PLACES.items():
        assert expected[place], place
        assert shown(report, state) == expected[place], place
    shown(report, {**FROM, "view": "overview"})
    report.see("button[aria-expanded=false]:has-text('Findings: ')").wait_for()
    assert report.see(".finding").count() == 0
    shown(report, {**FROM, "compare": "@0", "rank": 1})
    report.menu("Compare")  # the button would be in it
    assert report.see("select[aria-label='Compare with']").is_visible()
    assert report.see("[aria-label='Layers by difference']:visible").count() == 0
    assert report.see("button:has-text('Rank layers'):visible").count() == 0


def log_signals_and_a_difference(root: Path) -> None:
    """Maps of one long row, one of whose values is far from the others; and signed ones."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv1d(1, 4, 5), nn.ReLU(), nn.Conv1d(4, 4, 5))
    signals = torch.randn(2, 1, 600)
    signals[0, 0, 400] = 40
    with fmapboard.watch(model, root / "signals", every=1, checks=False) as board:
        for step in range(12):
            with board.step(step):
                model(signals).sum().backward()
    one, other = (nn.Sequential(nn.Conv2d(3, 4, 3)) for _ in range(2))
    fmapboard.diff(one, other, torch.rand(1, 3, 150, 150), log_dir=root / "compared")


def test_signals_and_differences_have_the_pixels_of_the_tab(
    serve: Callable[[Path], str], browser: Any, visit: Callable[..., Person], tmp_path: Path
) -> None:
    log_signals_and_a_difference(tmp_path / "runs")
    report = write_report([tmp_path / "runs"], tmp_path / "report.html", steps=12)
    places = [
        {"run": run, "view": "overview", "front": "pictures"}
        for run in ("signals", "compared/difference")
    ]
    tab = visit(serve(tmp_path / "runs"), width=1415, **places[0])
    expected = [shown(tab, place) for place in places]
    page = visit_file(browser, visit, report.path, width=1415, **places[0])
    page.frame.evaluate("document.querySelector('.report-note').remove()")
    page.frame.evaluate("window.dispatchEvent(new Event('resize'))")
    assert all(expected)
    assert [shown(page, place) for place in places] == expected


@pytest.fixture(scope="module")
def site(runs: Path) -> Path:
    """A site of all steps of both runs."""
    return write_report([runs], site=runs.parent / "site").path


@pytest.fixture
def address(site: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of the site on disk, or of a server of static files."""
    if request.param == "disk":
        yield f"{site.as_uri()}?"
        return
    handler = partial(Quiet, directory=str(site.parent))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/?"
        server.shutdown()
        thread.join()


class Quiet(SimpleHTTPRequestHandler):
    """Serves a folder, and prints nothing."""

    def log_message(self, format: str, *values: Any) -> None: ...


@pytest.mark.parametrize(
    "address", ["disk", pytest.param("server", marks=pytest.mark.sweep)], indirect=True
)
def test_a_site_has_the_pixels_of_a_report_and_loads_a_picture_when_it_is_shown(
    address: str, site: Path, whole: Report, browser: Any, visit: Callable[..., Person]
) -> None:
    report = visit(f"{whole.path.as_uri()}?", anew=True, **FROM)
    asked: list[Any] = []
    browser.on("request", lambda request: asked.append(request))
    found = visit(address, anew=True, **FROM)
    found.settle()

    def pictures() -> list[str]:
        own = [each.url for each in asked if each.frame.page == found.page]
        return [url for url in own if "/pictures/" in url]

    first = pictures()  # what is shown, and steps beside it
    assert len(first) == len(set(first))
    assert 0 < 10 * len(first) < len(list(site.parent.glob("pictures/*.js")))
    for place in ("columns", "attribution", "overview"):
        assert shown(found, PLACES[place]) == shown(report, PLACES[place]), place
    assert len(set(pictures())) > len(first)


def test_a_report_with_hostile_names_opens_at_its_steps_and_says_what_it_leaves_out(
    tmp_path: Path, browser: Any, visit: Callable[..., Person]
) -> None:
    train(tmp_path.joinpath(*HOSTILE_RUN), 1, HOSTILE)
    page = tmp_path / "</title><b>.html".replace("/", "\u2215")
    written = write_report([tmp_path], page, steps=3, inputs=False)
    assert written.runs == (HOSTILE_RUN[1],)
    person = visit_file(browser, visit, page)
    assert person.page.title() == f"Feature maps of {HOSTILE_RUN[1]}"
    note = person.see(".report-note")
    assert note.locator("strong").inner_text() == NO_INPUT
    note.locator("summary").click()
    assert note.locator("li").all_inner_texts() == list(written.left_out)
    assert "pictures of 3 of 6 logged steps" in written.left_out
    assert person.see("h1:visible").first.inner_text().startswith("</script><img src=x onerror")
    assert person.see("[aria-label='What is drawn'] button:visible").all_inner_texts() == [
        "Maps", "Gradients", "Kernels",
    ]  # fmt: skip
    assert person.see(".kept").inner_text().startswith("3 of 6 logged steps kept")
    assert person.see("button:has-text('Live'):visible").count() == 0
    shown(person, {"run": HOSTILE_RUN[1], "view": "overview"})
    assert person.see(".sheet-steps").inner_text().split() == ["0", "3", "5"]
    person.see("button:has-text('States'):visible").click()
    person.wait("document.querySelector('.health-room').checkVisibility()")
    about = person.see(".overview .about").inner_text()
    assert "6 layers × 6 steps" in about  # of which 3 have pictures
    assert person.frame.evaluate("top['hacked'] === undefined")
