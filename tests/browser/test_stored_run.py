"""The stored training of format 1 opens in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from browser_visitor import Person

FORMAT_1 = Path(__file__).parents[1] / "golden" / "format_1"


def test_a_browser_shows_the_stored_layers_a_grid_and_the_last_step(
    serve: Callable[[Path], str], visit: Callable[..., Person]
) -> None:
    person = visit(serve(FORMAT_1), run="training")
    person.drawn(20)
    names = person.see(".tree .layer .name").all_text_contents()
    colours = person.frame.evaluate(
        """() => { const c = document.querySelector(".grid canvas");
        const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
        return new Set(new Uint32Array(d.buffer)).size; }"""
    )
    assert names == ["stem.0", "refine", "unused", "refine (call 2)", "block.0"]
    assert colours > 20
