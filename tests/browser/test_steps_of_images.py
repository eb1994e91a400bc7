"""A run whose steps are images names them after their files, in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from browser_visitor import Person


def test_the_tab_says_which_image_is_shown(
    serve: Callable[[Path], str], visit: Callable[..., Person], image_runs: Path
) -> None:
    person = visit(serve(image_runs), run="images", layer="fmapboard/0", view="maps", step=2)
    person.settle()
    assert person.see(".time .step").inner_text() == "image 2 (cow.png)"
    assert not person.see(".time .label").is_visible()
    person.wait("document.querySelector('.charts h2').textContent === 'Layer over images'")
    assert person.see(".charts h3").first.inner_text().startswith("Histogram over images")
    person.press("m")
    person.wait("document.documentElement.dataset.film === 'ready'")
    assert person.see(".film .status").inner_text().startswith("image 2 (cow.png) · channel 1")
    assert person.see(".film .facts").inner_text() == "Conv2d · 4 kept images, 0 to 3"
    notes = person.see(".film-inputs").inner_text()
    assert notes == "One image per frame, the same weights."
    person.press("m", "v")
    person.settle()
    assert person.see(".sheet-steps span").all_inner_texts()[:2] == ["ant.png", "bee.png"]
    person.see(".toolbar button:text-is('States')").click()
    person.settle()
    assert person.see(".overview .about").text_content() == "3 layers × 4 images"


def test_a_run_of_images_gets_no_advice_for_training_and_no_channel_is_called_dead(
    serve: Callable[[Path], str], visit: Callable[..., Person], image_runs: Path
) -> None:
    address = serve(image_runs)
    front = visit(address, run="images", view=None, findings="open")
    front.settle()
    assert "nothing found" in front.see("main.overview").text_content()
    assert "learning rate" not in front.see("main.overview").text_content()
    maps = visit(address, run="images", layer="fmapboard/0", view="maps", channel=0, step=0)
    maps.settle()
    assert maps.see(".numbers tr").last.text_content().endswith("off after its ReLU")
    assert maps.see(".layer .badge").first.text_content() == "50 % off"
    assert maps.see(".kept").text_content() == "all 4 images kept"
    assert maps.see(".tree-head").inner_text().split() == ["layer", "max", "|x|"]  # and no change
    maps.press("m")
    maps.wait("document.documentElement.dataset.film === 'ready'")
    for person in (front, maps):
        assert "dead" not in person.frame.evaluate("document.body.innerText")
