"""The tab says when TensorBoard keeps fewer steps than it could, in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from browser_visitor import Person
from event_files import foreign
from two_layer_runs import log_steps


@pytest.mark.parametrize("first", ["foreign", pytest.param("ours", marks=pytest.mark.sweep)])
def test_the_tab_names_the_flag_that_keeps_more_steps_if_feature_maps_came_later(
    first: str, tmp_path: Path, serve: Callable[[Path], str], visit: Callable[..., Person]
) -> None:
    if first == "foreign":
        foreign(tmp_path / "theirs")
    else:
        log_steps(tmp_path / "before", steps=[0])
    address = serve(tmp_path)
    log_steps(tmp_path / "run", steps=range(3))
    person = visit(address)
    person.wait("document.querySelector('.tree .layer') !== null")
    person.settle()
    hint = person.see(".sampling")
    assert hint.is_visible() == (first == "foreign")
    assert hint.text_content() == (
        "TensorBoard keeps only 10 steps of each picture, as no run had feature maps when it was "
        "started. Restart it with --samples_per_plugin images=50,feature_maps=50"
    )
