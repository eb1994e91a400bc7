"""What the tab requests in a real browser: each layer and step once, new data on reload."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from browser_visitor import PATIENCE_MS, RUN_MENU, Person
from striped_training import STEPS, StripesNet, stripes, train
from torch import nn

import fmapboard


def test_a_layer_and_step_is_requested_once(address: str, visit: Callable[..., Person]) -> None:
    person = visit(address, anew=True, run="good", layer="fmapboard/block.0")
    asked: list[str] = []
    person.page.on("request", lambda request: asked.append(request.url))
    person.press("Home")
    person.drawn(0)
    for key, steps in (("ArrowRight", STEPS[1:4]), ("ArrowLeft", STEPS[2::-1])):
        for step in steps:
            person.press(key)
            person.drawn(step)
    maps = [url for url in asked if "/data/maps?" in url]
    assert maps
    assert len(maps) == len(set(maps))


def test_a_reload_of_a_hidden_tab_is_requested_once_it_is_shown(
    address: str, visit: Callable[..., Person]
) -> None:
    person = visit(address, inside=True, run="good", layer="fmapboard/block.0")
    person.drawn(STEPS[-1])
    person.page.get_by_role("tab", name="Images", exact=False).click()
    person.wait("window.innerHeight === 0")
    asked: list[str] = []
    person.page.on("request", lambda request: asked.append(request.url))
    with person.page.expect_response(lambda response: "/data/runs" in response.url):
        person.page.locator(".reload-button").click()  # TensorBoard notifies the hidden tab
    person.frame.evaluate("new Promise((done) => setTimeout(done, 1500))")
    assert [url for url in asked if "plugin/feature_maps/data" in url] == []
    with person.page.expect_request(lambda request: "/data/layers?" in request.url):
        person.page.get_by_role("tab", name="Feature maps", exact=False).click()


def test_an_empty_directory_shows_what_to_do_until_a_run_appears(
    serve: Callable[[Path], str], visit: Callable[..., Person], tmp_path: Path
) -> None:
    person = visit(serve(tmp_path), anew=True)
    text = person.see(".empty").text_content()
    assert "fmapboard.watch(model" in text
    assert "fmapboard serve" in text
    train(tmp_path / "new", [0, 1])
    person.see(".tree .layer").first.wait_for(timeout=PATIENCE_MS)


LIVE = "document.querySelector('[aria-label=More] .toggle')"


def test_while_live_is_off_a_reload_shows_new_runs_and_steps_and_keeps_the_place(
    serve: Callable[[Path], str], visit: Callable[..., Person], tmp_path: Path
) -> None:
    images, which = stripes(8)
    model = StripesNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    def go_on(steps: int) -> None:
        for _ in range(steps):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), which).backward()
            optimizer.step()
        board.flush()

    with fmapboard.watch(model, tmp_path / "a", optimizer=optimizer, every=1) as board:
        go_on(3)
        person = visit(serve(tmp_path), run="a", layer="fmapboard/block.2", step=1, channel=3)
        person.drawn(1, "block.2")
        person.wait(f"{LIVE}.getAttribute('aria-pressed') === 'true'")
        person.menu("More")
        person.see("button:text-is('Live')").click()
        person.settle()
        person.wait(f"!{LIVE}.matches('[aria-pressed=true]')")
        assert person.see(".kept").text_content() == "all 3 logged steps kept"
        go_on(2)
        train(tmp_path / "b", [0, 1])
        reload = person.see("button[aria-label='Look for new steps']")

        def is_new() -> bool:
            runs = person.listed_runs()
            return len(runs) == 2 and "5 logged steps" in person.see(".kept").text_content()

        for _ in range(60):
            reload.click()
            person.settle()
            if is_new():
                break
            person.page.wait_for_timeout(500)
        assert is_new()
        person.drawn(1, "block.2")
        assert person.see("h2:text-is('Channel 3')").is_visible()


LATER = "{ const real = Date.now; Date.now = () => real() + %d; }"


def test_live_is_on_while_a_run_is_fresh_and_a_new_run_is_listed_by_itself(
    serve: Callable[[Path], str], visit: Callable[..., Person], tmp_path: Path
) -> None:
    train(tmp_path / "a", [0, 1, 2])
    person = visit(serve(tmp_path), run="a", layer="fmapboard/block.2")
    person.drawn(2)
    person.wait(f"{LIVE}.getAttribute('aria-pressed') === 'true'")
    assert person.see(".kept").text_content() == "all 3 logged steps kept"
    assert person.see(".newest").text_content() == " · newest"
    train(tmp_path / "b", [0, 1])
    person.see(RUN_MENU).click()
    person.wait("document.querySelectorAll('.picker-panel li').length === 2")
    person.frame.evaluate(LATER % 3_600_000)
    person.wait(f"{LIVE}.getAttribute('aria-pressed') === 'false'")
    # A run that starts later is still found, as the list of runs is asked for every 30 s.
    person.frame.evaluate(
        "{ const now = performance.now.bind(performance);performance.now = () => now() + 40_000; }"
    )
    train(tmp_path / "c", [0, 1])
    with person.page.expect_request(lambda request: "/data/runs" in request.url):
        pass
