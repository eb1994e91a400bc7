"""The tab's controls in a real browser: step slider, charts, keyboard, links, PNG, layout."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from browser_visitor import RUN_MENU, Person
from striped_training import HOSTILE, STEPS


def test_one_slider_moves_everything_back_to_the_first_step(
    address: str, visit: Callable[..., Person]
) -> None:
    person = visit(address, run="good", layer="fmapboard/stem.0")
    person.drawn(STEPS[-1])
    assert "all 12 logged steps kept" in person.see(".kept").text_content()
    person.press("ArrowLeft")
    person.drawn(STEPS[-2])
    person.press("Home")
    person.drawn(0)
    person.press("ArrowRight", "ArrowRight")
    person.drawn(STEPS[2])
    person.see("input[type=range][aria-label=Step]").fill("4")
    person.drawn(STEPS[4])
    person.press("Space")
    person.drawn(STEPS[-1])


def test_a_menu_closes_after_a_choice_with_the_pointer(
    address: str, visit: Callable[..., Person]
) -> None:
    person = visit(address, width=860, run="good", layer="fmapboard/stem.0")
    person.drawn(STEPS[-1])
    person.menu("Display")
    person.see(".toolgroup.open button:text-is('Layer')").click()
    person.wait("!document.querySelector('.toolgroup.open')")
    assert "p.feature_maps.scale=layer" in person.page.url


def test_the_marks_of_the_steps_follow_the_width_of_the_slider(
    address: str, visit: Callable[..., Person]
) -> None:
    person = visit(address, run="good", layer="fmapboard/stem.0")
    person.drawn(STEPS[-1])
    widths = person.frame.evaluate(
        """async () => { const found = [];
        for (const width of ["210px", "330px"]) {
          document.querySelector(".slider-room").style.flex = `0 0 ${width}`;
          for (let frame = 0; frame < 3; frame += 1) await new Promise(requestAnimationFrame);
          found.push(document.querySelector(".step-marks").style.width);
        }
        document.querySelector(".slider-room").removeAttribute("style"); // the page is used again
        return found; }"""
    )
    assert widths == ["210px", "330px"]


@pytest.mark.parametrize("changed", [True, False])
def test_arrow_keys_change_the_step_after_a_run_was_chosen_with_the_mouse(
    address: str, visit: Callable[..., Person], changed: bool
) -> None:
    person = visit(address, run="bad", layer="fmapboard/stem.0")
    person.drawn(STEPS[-1])
    if changed:
        person.choose_run("good")
    else:
        person.see(RUN_MENU).click()
        person.see(RUN_MENU).click()
    person.page.keyboard.press("ArrowLeft")
    person.drawn(STEPS[-2])
    person.page.keyboard.press("Home")
    person.drawn(0)
    assert person.chosen_run == ("good" if changed else "bad")


def test_a_colour_chosen_without_a_key_leaves_the_arrow_keys_to_the_steps(
    address: str, visit: Callable[..., Person]
) -> None:
    person = visit(address, run="bad", layer="fmapboard/stem.0")
    person.drawn(STEPS[-1])
    person.menu("Display")
    person.see("select[aria-label=Colours]").select_option("magma")  # no event but "change"
    person.settle()
    person.page.keyboard.press("Home")
    person.drawn(0)
    assert person.see("select[aria-label=Colours]").input_value() == "magma"


def test_the_readout_belongs_to_what_is_shown(address: str, visit: Callable[..., Person]) -> None:
    person = visit(address, run="good", layer="fmapboard/block.0", channel=1)
    person.drawn(STEPS[-1])
    status, box = person.see(".status"), person.see(".grid canvas").bounding_box()
    at = (box["x"] + 30, box["y"] + 60)  # of both layers: one has a line more above its maps
    person.page.mouse.move(*at)
    seen = [status.text_content()]
    for act in (lambda: person.press("ArrowLeft"), lambda: person.press("ArrowDown")):
        act()
        person.settle()
        seen.append(status.text_content())
        person.page.mouse.move(at[0] + 0.1, at[1])
        assert status.text_content() == seen[-1]
    assert len(set(seen)) == 3
    assert all(text.startswith("channel 0 · y ") for text in seen)
    person.page.mouse.move(box["x"] + 30, 5)  # out of the grid
    assert status.text_content().startswith("channel 1 · ")
    person.press("Escape")
    person.settle()
    assert status.text_content() == ""


def test_the_readout_of_an_enlarged_map_belongs_to_the_step_that_is_shown(
    address: str, visit: Callable[..., Person]
) -> None:
    person = visit(address, run="good", layer="fmapboard/block.0", channel=2)
    person.drawn(STEPS[-1])
    person.see("figure:visible canvas").first.hover()
    value = person.see("figcaption .value:visible").first
    before = value.text_content()
    person.press("Home")
    person.drawn(0)
    person.settle()
    assert value.text_content() != before
    assert value.text_content().split(":")[0] == before.split(":")[0]


def test_what_is_still_of_another_step_or_layer_says_so(
    address: str, visit: Callable[..., Person]
) -> None:
    # Steps around the shown one are prefetched: the first one must not be among them.
    person = visit(address, anew=True, run="good", layer="fmapboard/stem.0", step=STEPS[-1])
    person.drawn(STEPS[-1])
    person.wait("document.querySelector('.strip.known') !== null")
    assert not person.see(".loading").is_visible()
    assert person.see(".tree.old").count() == 0
    waiting: list[Any] = []
    for route in ("maps", "health_step"):
        person.page.route(f"**/data/{route}?*", lambda request: waiting.append(request))
    person.press("Home")
    person.see(f".loading:has-text('Still shown: stem.0 · good · step {STEPS[-1]}')").wait_for()
    person.see(".tree.old").wait_for()
    person.see(".layer .name:text-is('block.2')").click()
    person.see(".head h1:text-is('block.2')").wait_for()
    person.see(f".loading:has-text('Still shown: stem.0 · good · step {STEPS[-1]}')").wait_for()
    person.page.unroute_all()
    for each in waiting:
        with contextlib.suppress(Exception):  # a request that the tab has given up
            each.continue_()
    person.drawn(0, "block.2")
    person.see(".loading").wait_for(state="hidden")


def test_charts_show_the_step_and_a_click_on_one_changes_it(
    address: str, visit: Callable[..., Person]
) -> None:
    person = visit(address, run="good", layer="fmapboard/block.0")
    charts = person.see(".charts canvas.chart:visible")
    charts.nth(2).wait_for()
    labels = [charts.nth(i).get_attribute("aria-label") for i in range(charts.count())]
    assert any(label.startswith("activations/block.0 over steps") for label in labels)
    assert any(label.startswith("gradient norm over steps") for label in labels)
    (ratios,) = [label for label in labels if label.startswith("update ratio over steps: ")]
    assert "healthy" in ratios, ratios
    box = charts.first.bounding_box()
    charts.first.click(position={"x": 46, "y": box["height"] / 2})
    person.drawn(0)


def test_a_link_survives_a_reload_and_another_tab(
    address: str, visit: Callable[..., Person]
) -> None:
    state = {"run": "bad", "layer": "fmapboard/block.2", "step": 10, "channel": 4}
    person = visit(address, inside=True, scale="layer", **state)
    person.drawn(10, "block.2")
    person.press("ArrowRight")
    person.drawn(15)
    assert "p.feature_maps.step=15" in person.page.url
    person.page.get_by_role("tab", name="Images", exact=False).click()
    person.page.wait_for_function("() => location.hash.startsWith('#images')")
    person.page.get_by_role("tab", name="Feature maps", exact=False).click()
    person.page.wait_for_function("() => location.hash.startsWith('#feature_maps')")
    person.drawn(15, "block.2")
    asked = person.page.url
    assert "p.feature_maps.channel=4" in asked
    person.reopen()
    person.drawn(15, "block.2")
    assert sorted(person.page.url.split("&")) == sorted(asked.split("&"))
    person.see("h2:text-is('Channel 4')").wait_for()


NOTE_LINKS_OF_THE_PAGE = """() => {
  const { click } = HTMLAnchorElement.prototype;
  HTMLAnchorElement.prototype.click = function () {
    window.offered = this.download;
    click.call(this);
  };
}"""


def test_the_view_is_saved_as_a_png_by_a_link_of_the_page(
    address: str, visit: Callable[..., Person]
) -> None:
    from PIL import Image

    person = visit(address, inside=True, run="good", layer="fmapboard/block.2", step=10)
    person.page.evaluate(NOTE_LINKS_OF_THE_PAGE)  # Firefox blocks those of the tab's frame
    with person.page.expect_download() as waiting:
        person.press("p")
    assert waiting.value.suggested_filename == "good_block.2_step10.png"
    assert person.page.evaluate("window.offered") == "good_block.2_step10.png"
    with Image.open(waiting.value.path()) as saved:
        assert saved.width == 1200
        assert len(saved.convert("RGB").getcolors(1 << 20)) > 20


def test_markup_in_names_is_text(address: str, visit: Callable[..., Person]) -> None:
    person = visit(address, run=HOSTILE, layer=f"fmapboard/{HOSTILE}", compare="good@")
    person.settle()
    assert person.see(".head h1").text_content() == HOSTILE
    assert person.chosen_run == HOSTILE
    assert person.frame.evaluate("document.querySelectorAll('img').length") == 0
    assert person.page.evaluate("window.hacked") is None


def test_dark_mode_is_followed_live(address: str, visit: Callable[..., Person]) -> None:
    person = visit(address, inside=True, run="good")
    background = "getComputedStyle(document.body).backgroundColor"
    assert person.frame.evaluate(background) == "rgb(255, 255, 255)"
    person.choose_theme("dark")
    person.wait(f"{background} === 'rgb(48, 48, 48)'")
    person.choose_theme("light")
    person.wait(f"{background} === 'rgb(255, 255, 255)'")


def test_the_keyboard_alone_reaches_everything(address: str, visit: Callable[..., Person]) -> None:
    person = visit(address, run="good", layer="fmapboard/stem.0")
    person.press("?")
    person.see("dialog[open]").wait_for()
    person.press("Escape")
    person.see("dialog[open]").wait_for(state="detached")
    person.press("ArrowDown")
    person.wait("document.documentElement.dataset.layer === 'fmapboard/block.0'")
    person.press("]")
    person.see("h2:text-is('Channel 0')").wait_for()
    person.see(".grid").focus()
    person.press("ArrowDown")
    person.wait("!document.querySelector('.channel h2').textContent.endsWith(' 0')")
    unlabelled = person.frame.evaluate(
        "[...document.querySelectorAll('button, select, input')].filter((e) =>"
        " !(e.getAttribute('aria-label') || e.textContent.trim())).map((e) => e.outerHTML)"
    )
    assert unlabelled == []


@pytest.mark.parametrize("width", [1024, pytest.param(1920, marks=pytest.mark.sweep)])
def test_nothing_is_cut_off_sideways(
    address: str, visit: Callable[..., Person], width: int
) -> None:
    person = visit(address, width=width, height=768, run="good", channel=1, compare="@0")
    wider = person.frame.evaluate(
        "[...document.querySelectorAll('.toolbar, .time, .head, .legend, .layers, aside')]"
        ".filter((e) => e.scrollWidth > e.clientWidth + 1"
        " || e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.className)"
    )
    assert wider == []


@pytest.mark.parametrize("view", ["overview", "maps", "film", "compared", "kernels"])
def test_no_control_reaches_into_the_right_margin_of_a_small_laptop(
    address: str, visit: Callable[..., Person], view: str
) -> None:
    more = {"compared": {"compare": "@0", "show": "all"}, "kernels": {"role": "kernels"}}
    asked = {"view": view if view in ("overview", "film") else "maps", **more.get(view, {})}
    person = visit(address, width=1280, height=800, run="good", channel=1, **asked)
    person.settle()
    beyond = person.frame.evaluate(
        "[...document.querySelectorAll('button, select, input, canvas')].filter((e) =>"
        " e.checkVisibility() && !e.closest('.grid, .film-strip, .visually-hidden') &&"
        " e.getBoundingClientRect().right > innerWidth - (e.closest('.toolbar') ? 11.5 : 0)"
        ").map((e) => e.outerHTML)"
    )
    assert beyond == []
    row = person.see(".toolbar").bounding_box()
    assert row["height"] <= 46
    is_cut = "(e) => [...e.children].some((each) => each.scrollWidth > each.clientWidth)"
    assert not any(each.evaluate(is_cut) for each in person.see(".now").all())
