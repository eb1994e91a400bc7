"""The tab without TensorBoard in a real browser: the same page, which follows the directory."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from browser_visitor import PATIENCE_MS, Person
from standalone_servers import standalone
from striped_training import train

FORMAT_1 = Path(__file__).parents[1] / "golden" / "format_1"
PLACES: dict[str, dict[str, object]] = {
    "overview": {"run": "training", "view": "overview", "front": "states", "findings": "open"},
    "sheet": {"run": "training", "view": "overview", "front": "pictures"},
    "maps": {"run": "training", "layer": "fmapboard/stem.0", "step": 10, "view": "maps"},
    "patches": {"run": "training", "layer": "fmapboard/block.0", "step": 20, "channel": 1},
}
SHOWN = """() => [document.body.innerText.replaceAll(/\\s+/g, " "),
  ...[...document.querySelectorAll("canvas:not(.step-marks)")]
    .filter((each) => each.checkVisibility() && each.width * each.height)
    .map((each) => each.toDataURL())]"""


def shown(person: Person) -> list[str]:
    """The text and the canvases of a view, but for the slider's, as wide as the row has room."""
    person.settle()
    return list(person.frame.evaluate(SHOWN))


def test_the_page_shows_what_it_shows_in_tensorboard(
    serve: Callable[[Path], str], visit: Callable[..., Person]
) -> None:
    with standalone(FORMAT_1) as server:
        tab = visit(serve(FORMAT_1), anew=True, **PLACES["overview"])
        alone = visit(f"{server.address}?", anew=True, **PLACES["overview"])
        for place, state in PLACES.items():
            entries = "".join(f"&p.feature_maps.{k}={quote(str(v), '')}" for k, v in state.items())
            for person in (tab, alone):
                person.turn_to(f"feature_maps{entries}")
            expected = shown(tab)
            assert len(expected) > 1
            assert shown(alone) == expected, place
        assert alone.complaints == []
    alone.complaints.clear()  # what it loads ahead may fail when the server ends


def test_runs_and_steps_appear_while_they_are_written_and_a_deleted_run_is_gone(
    visit: Callable[..., Person], tmp_path: Path
) -> None:
    with standalone(tmp_path) as server:
        person = visit(f"{server.address}?", anew=True)
        empty = person.see(".empty").text_content()
        assert f"No run in {tmp_path} holds records of fmapboard." in empty
        train(tmp_path / "new", [0, 1])
        person.see(".tree .layer").first.wait_for(timeout=PATIENCE_MS)
        person.drawn(1)
        train(tmp_path / "new", [2, 3])
        person.drawn(3)
        assert person.see(".kept").inner_text() == "all 4 logged steps kept"
        shutil.rmtree(tmp_path / "new")
        person.see(".empty").wait_for(timeout=PATIENCE_MS)
        # The browser names each answer that is 404: what was asked just before the run was gone.
        for gone in person.complaints:
            assert "404" in gone
            assert "run=new" in gone
        person.complaints.clear()
