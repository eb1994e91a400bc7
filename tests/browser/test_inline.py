"""A notebook that Jupyter's client runs shows the page of a run inside the page of the notebook."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from browser_visitor import Person

from fmapboard.report.write import write_report

FORMAT_1 = Path(__file__).parents[1] / "golden" / "format_1"
CANVASES = """() => [...document.querySelectorAll("canvas")]
  .filter((each) => each.checkVisibility() && each.width * each.height)
  .map((each) => each.toDataURL())"""


def outputs_of(source: str, folder: Path) -> list[Any]:
    """What a notebook with one cell displays below it."""
    client = pytest.importorskip("nbclient", reason="pip install nbclient ipykernel")
    formats = pytest.importorskip("nbformat").v4
    notebook = formats.new_notebook(cells=[formats.new_code_cell(source)])
    client.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": folder}}).execute()
    return list(notebook.cells[0].outputs)


def maps_in(person: Person) -> list[str]:
    """The canvases of the first layer's maps, after a click on Maps."""
    person.wait("document.documentElement.dataset.ready === 'true'")
    person.frame.get_by_role("button", name="Maps").first.click()
    person.wait("document.documentElement.dataset.layer")
    person.settle()
    return list(person.frame.evaluate(CANVASES))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_cell_shows_the_page_of_a_report_and_leaves_the_notebook_as_it_is(
    browser: Any, tmp_path: Path
) -> None:
    source = f"import fmapboard\nfmapboard.show({str(FORMAT_1)!r}, height=600)"
    (output,) = outputs_of(source, tmp_path)
    shown = output["data"]["text/html"]
    assert output["data"]["text/plain"].startswith("InlinePage(height=600, runs=('images', ")
    notebook = tmp_path / "notebook.html"
    notebook.write_text(f"<!doctype html><title>Notebook</title><input autofocus>{shown}")
    page = browser.new_page()
    complaints: list[str] = []
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(f"{notebook.as_uri()}#cell")
    frame = page.query_selector("iframe").content_frame()
    person = Person(page, frame, complaints)
    person.wait("document.documentElement.dataset.ready === 'true'")
    assert page.evaluate("document.activeElement.localName") == "input"
    canvases = maps_in(person)
    width, height = frame.evaluate("[window.innerWidth, window.innerHeight]")
    assert page.url == f"{notebook.as_uri()}#cell"
    assert page.title() == "Notebook"
    assert complaints == []
    page.set_viewport_size({"width": width, "height": height})
    page.goto(write_report([FORMAT_1], tmp_path / "report.html").path.as_uri())
    assert len(canvases) > 1
    assert maps_in(Person(page, page, complaints)) == canvases
    page.close()
