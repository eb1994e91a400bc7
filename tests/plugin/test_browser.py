"""A person at the tab: a run that was really trained, the real server, a real browser."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import torch
from torch import nn

import fmapboard

HOSTILE = "<img src=x onerror=top['hacked']=1>"
STEPS = list(range(0, 60, 5))
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
]  # fmt: skip
PATIENCE_MS = 30_000
WATCH_CSP = """document.addEventListener("securitypolicyviolation",
  (event) => console.error("securitypolicyviolation", event.violatedDirective));"""


class Net(nn.Module):
    """Two blocks and a layer whose name is markup; channel 3 of the first layer is dead."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.block = nn.Sequential(
            nn.Conv2d(16, 24, 3, padding=1), nn.ReLU(), nn.Conv2d(24, 24, 3, padding=1), nn.ReLU()
        )
        self.add_module(HOSTILE, nn.Conv2d(24, 8, 1))
        self.head = nn.Linear(8, 4)
        first = self.stem[0]
        assert isinstance(first, nn.Conv2d)
        with torch.no_grad():
            first.weight[3], first.bias[3] = 0.0, -1.0  # type: ignore[index]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(getattr(self, HOSTILE)(self.block(self.stem(x))).mean((2, 3)))


def stripes(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Images whose stripes run in one of four directions, and which one."""
    which = torch.arange(count) % 4
    y, x = torch.meshgrid(torch.arange(32.0), torch.arange(32.0), indexing="ij")
    waves = torch.stack([x, y, x + y, x - y])[which]
    images = (waves * 0.6).sin()[:, None].repeat(1, 3, 1, 1) * 0.5 + 0.5
    return (images + 0.1 * torch.randn_like(images)).clamp(0, 1), which


def train(run: Path, steps: list[int], learning_rate: float = 0.05, poison: int = -1) -> None:
    """Train and log; at step ``poison`` the middle layer's weight becomes NaN."""
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate)
    with fmapboard.watch(
        model, run, every=1, samples=2, inputs=True, activation_gradients=True, start_step=steps[0],
    ) as board:  # fmt: skip
        for step in steps:
            images, which = stripes(16)
            with board.step(step):
                optimizer.zero_grad()
                if step == poison:
                    nn.init.constant_(model.block[0].weight[1:2], float("nan"))  # type: ignore[index,arg-type]
                nn.functional.cross_entropy(model(images), which).backward()
                optimizer.step()


@pytest.fixture(scope="module")
def logdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    train(root / "good", STEPS)
    train(root / "bad", STEPS, poison=30)
    train(root / HOSTILE, STEPS[:3])
    return root


@pytest.fixture(scope="module")
def serve() -> Iterator[Callable[[Path], str]]:
    """Starts the real server on a directory; its address."""
    running: list[subprocess.Popen[str]] = []

    def start(logdir: Path) -> str:
        command = [
            sys.executable, "-m", "tensorboard.main", "--logdir", str(logdir), "--port", "0",
            "--host", "127.0.0.1", "--reload_interval", "1",
        ]  # fmt: skip
        server = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True,
        )  # fmt: skip
        running.append(server)
        assert server.stdout is not None
        for line in server.stdout:
            found = re.search(r"http://127\.0\.0\.1:\d+/", line)
            if found:
                return found[0]
        raise AssertionError("TensorBoard ended before it said its address")

    yield start
    for server in running:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(20)
        assert server.stdout is not None
        server.stdout.close()


@pytest.fixture(scope="module")
def address(serve: Callable[[Path], str], logdir: Path) -> str:
    return serve(logdir)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    names = ("chromium", "chromium-browser", "google-chrome")
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None:
        pytest.skip("no browser: apt install chromium")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=program, args=FLAGS)
        yield opened
        opened.close()


@dataclass
class Person:
    """Someone in front of the tab; ``page`` is TensorBoard, ``frame`` the tab in it."""

    page: Any
    frame: Any
    complaints: list[str]

    def see(self, selector: str) -> Any:
        return self.frame.locator(selector)

    def press(self, *keys: str) -> None:
        self.frame.evaluate("document.hasFocus() || window.focus()")
        for key in keys:
            self.page.keyboard.press(key)

    def settle(self) -> None:
        """Until what was asked for is drawn."""
        self.frame.evaluate(
            "() => new Promise((d) => requestAnimationFrame(() => requestAnimationFrame(d)))"
        )
        self.wait("document.documentElement.dataset.busy === 'false'")
        self.frame.evaluate("() => new Promise((d) => requestAnimationFrame(d))")

    def wait(self, expression: str) -> None:
        """Until it is true in the frame."""
        self.frame.wait_for_function(f"() => {expression}", timeout=PATIENCE_MS)

    def drawn(self, step: int, layer: str | None = None) -> None:
        """Until that step (and layer) is on the screen and nothing is on its way."""
        self.wait(f"document.documentElement.dataset.step === '{step}'")
        if layer is not None:
            self.wait(f"document.documentElement.dataset.layer === 'fmapboard/{layer}'")
        self.wait("document.documentElement.dataset.busy === 'false'")

    def canvas(self, selector: str) -> str:
        """What a canvas shows, as one word that changes with any pixel."""
        script = f"document.querySelector({selector!r}).toDataURL()"
        return str(self.frame.evaluate(script))

    def reopen(self) -> None:
        self.page.reload()
        self.frame = frame_of(self.page)
        self.wait("document.documentElement.dataset.ready === 'true'")


def frame_of(page: Any) -> Any:
    """The tab's frame, once it is there."""
    element = page.wait_for_selector("iframe", timeout=PATIENCE_MS, state="attached")
    page.wait_for_function(
        "() => [...document.querySelectorAll('iframe')]"
        ".some((f) => f.contentWindow.location.href.includes('feature_maps'))",
        timeout=PATIENCE_MS,
    )
    frame = element.content_frame()
    frame.wait_for_load_state()
    return frame


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Person]]:
    """Opens the tab; afterwards nothing may have complained."""
    people: list[Person] = []

    def open_tab(address: str, width: int = 1400, height: int = 900, **state: object) -> Person:
        context = browser.new_context(
            viewport={"width": width, "height": height}, accept_downloads=True
        )
        page = context.new_page()
        complaints: list[str] = []
        page.add_init_script(WATCH_CSP)
        page.on(
            "console", lambda said: complaints.append(said.text) if said.type == "error" else None
        )
        page.on("pageerror", lambda error: complaints.append(str(error)))
        entries = "".join(f"&p.feature_maps.{k}={quote(str(v), '')}" for k, v in state.items())
        page.goto(f"{address}#feature_maps{entries}")
        person = Person(page, frame_of(page), complaints)
        person.wait("document.documentElement.dataset.ready === 'true'")
        people.append(person)
        return person

    yield open_tab
    said = [person.complaints for person in people]
    for person in people:
        person.page.context.close()
    assert said == [[] for _ in people]


def test_layers_are_found_in_order_by_kernel_and_by_name(
    address: str, visit: Callable[..., Person]
) -> None:
    person = visit(address, run="good")
    rows = person.see(".tree .layer .name")
    names = ["stem.0", "block.0", "block.2", HOSTILE]
    assert rows.all_text_contents() == names
    person.see("button:text-is('Kernel')").click()
    person.see(".tree .group .name:text-is('16×3×3×3')").wait_for()
    groups = person.see(".tree .group .name").all_text_contents()
    assert groups == ["16×3×3×3", "24×16×3×3", "24×24×3×3", "8×24×1×1"]
    person.press("/")
    person.page.keyboard.type("24x24")
    person.wait("document.querySelectorAll('.tree .layer').length === 1")
    person.page.keyboard.type("nothing like it")
    person.see(".layers .note:visible").wait_for()


def test_a_sick_layer_stands_out_without_being_opened(
    address: str, visit: Callable[..., Person]
) -> None:
    person = visit(address, run="bad")
    person.see(".layer[data-severity='3']").first.wait_for()
    assert "NaN" in person.see(".layer[data-severity='3'] .badge").first.text_content()
    person.press("Home")
    person.drawn(0)
    person.wait("document.querySelectorAll(\".layer[data-severity='3']\").length === 0")


def test_the_value_under_the_cursor_is_the_logged_one(
    address: str, visit: Callable[..., Person]
) -> None:
    torch.manual_seed(0)
    model = Net()
    images, _ = stripes(16)
    with torch.no_grad():
        true = model.stem[0](images)  # [16, 16, 32, 32], of step 0 with the same seed
    person = visit(address, run="good", layer="fmapboard/stem.0", step=0, channel=5)
    person.drawn(0)
    box = person.see("figure:visible canvas").first.bounding_box()
    at = (box["x"] + box["width"] * (7.5 / 32), box["y"] + box["height"] * (20.5 / 32))
    person.page.mouse.move(*at)
    said = person.see("figcaption .value:visible").first.text_content()
    found = re.fullmatch(r"y 20, x 7: (\S+) ± (\S+)", said)
    assert found is not None, said
    value, unit = (float(text.replace("−", "-")) for text in found.groups())
    assert value == pytest.approx(float(true[0, 5, 20, 7]), abs=unit + 1e-3)


def test_all_channels_are_drawn_and_a_dead_one_is_unmistakable(
    address: str, visit: Callable[..., Person]
) -> None:
    person = visit(address, run="good", layer="fmapboard/stem.0", colours="grey")
    box = person.see(".grid canvas").bounding_box()
    seen = set()
    for column in range(40):
        person.page.mouse.move(box["x"] + 20 + column * box["width"] / 40, box["y"] + 40)
        seen.add(person.see(".status").text_content().split(" · ")[0])
    assert {"channel 0", "channel 1", "channel 2", "channel 3"} <= seen
    cyan = person.frame.evaluate(
        """() => { const c = document.querySelector(".grid canvas");
        const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
        let n = 0;
        for (let i = 0; i < d.length; i += 4) if (!d[i] && d[i+1] === 225) n += 1;
        return n; }"""
    )
    assert cyan > 3000  # the tile of channel 3, which is constant


def test_scale_colours_sort_and_size_change_the_picture(
    address: str, visit: Callable[..., Person]
) -> None:
    person = visit(address, run="good", layer="fmapboard/block.2")
    pictures = {person.canvas(".grid canvas")}
    for key in ("s", "c", "c", "c", "+", "l"):
        person.press(key)
        person.settle()
        pictures.add(person.canvas(".grid canvas"))
    for order in ("strength", "change", "similarity"):
        person.see("select[aria-label=Sort]").select_option(order)
        person.settle()
        pictures.add(person.canvas(".grid canvas"))
    assert len(pictures) == 10


def test_a_channel_is_seen_closely_over_the_input_with_its_numbers(
    address: str, visit: Callable[..., Person]
) -> None:
    person = visit(address, run="good", layer="fmapboard/stem.0")
    person.see(".grid canvas").click(position={"x": 30, "y": 30})
    person.see("h2:text-is('Channel 0')").wait_for()
    assert "p.feature_maps.channel=0" in person.page.url
    assert "Minimum" in person.see(".numbers").text_content()
    assert person.see(".channel canvas.chart").is_visible()
    before = person.canvas(".channel figure canvas")
    person.see("button:text-is('Over input')").click()
    person.settle()
    person.wait(f"document.querySelector('.channel figure canvas').toDataURL() !== {before!r}")
    person.press("Escape")
    person.see("h2:text-is('Channel 0')").wait_for(state="hidden")


def test_one_slider_moves_everything_and_the_first_step_is_there(
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


@pytest.mark.parametrize(
    ("kind", "other"),
    [("step", "0"), ("run", "bad"), ("sample", "1"), ("role", "gradients_of_maps")],
)
def test_two_sides_are_compared_channel_by_channel(
    address: str, visit: Callable[..., Person], kind: str, other: str
) -> None:
    person = visit(address, run="good", layer="fmapboard/block.0", step=20, channel=2)
    alone = person.canvas(".grid canvas")
    person.see("select[aria-label='Compare with']").select_option(kind)
    person.see(f"select[aria-label='Compare with which {kind}']").select_option(other)
    person.see("button:text-is('Both')").click()
    person.settle()
    person.wait("document.querySelectorAll('.channel figure:not([hidden])').length === 3")
    assert person.canvas(".grid canvas") != alone
    named = {"step": "step 0", "run": "bad", "sample": "sample 1", "role": "Gradients"}
    sides = person.see(".numbers tr").first.locator("th[scope=col]").all_text_contents()
    assert len(sides) == 2
    assert sides[1] == named[kind]
    assert f"p.feature_maps.compare={kind}" in person.page.url


def test_gradients_and_inputs_stand_in_the_place_of_the_maps(
    address: str, visit: Callable[..., Person]
) -> None:
    person = visit(address, run="good", layer="fmapboard/block.0")
    pictures = {person.canvas(".grid canvas")}
    for role in ("Inputs", "Gradients", "Kernels"):
        person.see(f".head button:text-is('{role}')").click()
        person.settle()
        pictures.add(person.canvas(".grid canvas"))
        assert person.see(".grid-room > .note:visible").count() == 0
    assert len(pictures) == 4


def test_charts_share_the_step_and_choose_it(address: str, visit: Callable[..., Person]) -> None:
    person = visit(address, run="good", layer="fmapboard/block.0")
    charts = person.see(".charts canvas.chart:visible")
    charts.nth(2).wait_for()
    labels = [charts.nth(i).get_attribute("aria-label") for i in range(charts.count())]
    assert any(label.startswith("activations/block.0 over steps") for label in labels)
    assert any(label.startswith("gradient norm over steps") for label in labels)
    box = charts.first.bounding_box()
    charts.first.click(position={"x": 46, "y": box["height"] / 2})
    person.drawn(0)


def test_a_link_survives_a_reload_and_another_tab(
    address: str, visit: Callable[..., Person]
) -> None:
    person = visit(address, run="bad", layer="fmapboard/block.2", step=10, channel=4, scale="layer")
    person.drawn(10, "block.2")
    person.press("ArrowRight")
    person.drawn(15)
    asked = person.page.url
    assert "p.feature_maps.step=15" in asked
    person.reopen()
    person.drawn(15, "block.2")
    assert person.page.url == asked
    person.page.get_by_role("tab", name="Images", exact=False).click()
    person.page.wait_for_function("() => location.hash.startsWith('#images')")
    person.page.get_by_role("tab", name="Feature maps", exact=False).click()
    person.page.wait_for_function("() => location.hash.startsWith('#feature_maps')")
    person.drawn(15, "block.2")
    assert "p.feature_maps.channel=4" in person.page.url
    person.reopen()
    person.drawn(15, "block.2")
    person.see("h2:text-is('Channel 4')").wait_for()


def test_the_view_is_saved_as_a_png(address: str, visit: Callable[..., Person]) -> None:
    from PIL import Image

    person = visit(address, run="good", layer="fmapboard/block.2", step=10)
    with person.page.expect_download() as waiting:
        person.press("p")
    assert waiting.value.suggested_filename == "good_block.2_step10.png"
    with Image.open(waiting.value.path()) as saved:
        assert saved.width == 1200
        assert len(saved.convert("RGB").getcolors(1 << 20)) > 20


def test_markup_in_names_is_text(address: str, visit: Callable[..., Person]) -> None:
    person = visit(address, run=HOSTILE, layer=f"fmapboard/{HOSTILE}", compare="run", other="good")
    person.settle()
    assert person.see(".head h1").text_content() == HOSTILE
    assert person.see("select[aria-label=Run]").input_value() == HOSTILE
    assert person.frame.evaluate("document.querySelectorAll('img').length") == 0
    assert person.page.evaluate("window.hacked") is None


def test_dark_mode_is_followed_live(address: str, visit: Callable[..., Person]) -> None:
    person = visit(address, run="good")
    background = "getComputedStyle(document.body).backgroundColor"
    assert person.frame.evaluate(background) == "rgb(255, 255, 255)"
    person.page.evaluate("document.body.classList.add('dark-mode')")
    person.wait(f"{background} === 'rgb(48, 48, 48)'")
    person.page.evaluate("document.body.classList.remove('dark-mode')")
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
        " !(e.getAttribute('aria-label') || e.textContent.trim())).length"
    )
    assert unlabelled == 0


@pytest.mark.parametrize("width", [1024, 1920])
def test_nothing_is_cut_off_sideways(
    address: str, visit: Callable[..., Person], width: int
) -> None:
    person = visit(address, width=width, height=768, run="good", channel=1, compare="step", other=0)
    wider = person.frame.evaluate(
        "[...document.querySelectorAll('.top, .time, .head, .legend, .layers, aside')]"
        ".filter((e) => e.scrollWidth > e.clientWidth + 1"
        " || e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.className)"
    )
    assert wider == []


def test_a_layer_and_step_is_asked_for_once_and_nothing_while_hidden(
    address: str, visit: Callable[..., Person]
) -> None:
    person = visit(address, run="good", layer="fmapboard/block.0")
    asked: list[str] = []
    person.page.on("request", lambda request: asked.append(request.url))
    person.press("Home")
    person.drawn(0)
    for key, steps in (("ArrowRight", STEPS[1:]), ("ArrowLeft", STEPS[-2::-1])):
        for step in steps:
            person.press(key)
            person.drawn(step)
    maps = [url for url in asked if "/data/maps?" in url]
    assert maps
    assert len(maps) == len(set(maps))
    person.page.get_by_role("tab", name="Images", exact=False).click()
    person.wait("window.innerHeight === 0")
    asked.clear()
    person.page.locator(".reload-button").click()  # TensorBoard tells the hidden tab of it
    person.frame.evaluate("new Promise((done) => setTimeout(done, 2500))")
    assert [url for url in asked if "plugin/feature_maps/data" in url] == []
    with person.page.expect_request(lambda request: "/data/layers?" in request.url):
        person.page.get_by_role("tab", name="Feature maps", exact=False).click()


def test_what_a_hidden_tab_was_told_of_it_asks_for_when_it_is_shown(
    address: str, visit: Callable[..., Person]
) -> None:
    person = visit(address, run="good", layer="fmapboard/block.0")
    person.drawn(STEPS[-1])
    height = "height => { document.querySelector('iframe').style.height = height; }"
    person.page.evaluate(height, "0px")  # as TensorBoard does, but unannounced when shown again
    person.wait("window.innerHeight === 0")
    asked: list[str] = []
    person.page.on("request", lambda request: asked.append(request.url))
    with person.page.expect_response(lambda response: "/data/runs" in response.url):
        person.page.locator(".reload-button").click()
    person.frame.evaluate("new Promise((done) => setTimeout(done, 1500))")
    assert [url for url in asked if "plugin/feature_maps/data" in url] == []
    with person.page.expect_request(lambda request: "/data/layers?" in request.url):
        person.page.evaluate(height, "")


def test_an_empty_directory_says_what_to_do_and_fills_by_itself(
    serve: Callable[[Path], str], visit: Callable[..., Person], tmp_path: Path
) -> None:
    person = visit(serve(tmp_path))
    text = person.see(".empty").text_content()
    assert "fmapboard.watch(model" in text
    assert "fmapboard serve" in text
    train(tmp_path / "new", [0, 1])
    person.see(".tree .layer").first.wait_for(timeout=PATIENCE_MS)


def test_a_reload_shows_a_new_run_and_keeps_the_place(
    serve: Callable[[Path], str], visit: Callable[..., Person], tmp_path: Path
) -> None:
    train(tmp_path / "a", [0, 1, 2])
    person = visit(serve(tmp_path), run="a", layer="fmapboard/block.2", step=1, channel=3)
    person.drawn(1, "block.2")
    train(tmp_path / "b", [0, 1])
    reload = person.see("button[aria-label='Look for new steps']")
    for _ in range(60):
        reload.click()
        person.settle()
        if person.see("select[aria-label=Run] option").count() == 2:
            break
        person.page.wait_for_timeout(500)
    assert person.see("select[aria-label=Run] option").count() == 2
    person.drawn(1, "block.2")
    assert person.see("h2:text-is('Channel 3')").is_visible()


def test_a_reload_picks_up_the_steps_of_a_training_that_goes_on(
    serve: Callable[[Path], str], visit: Callable[..., Person], tmp_path: Path
) -> None:
    images, which = stripes(8)
    model = Net()
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
        assert "3 logged steps" in person.see(".kept").text_content()
        go_on(2)
        reload = person.see("button[aria-label='Look for new steps']")
        for _ in range(60):
            reload.click()
            person.settle()
            if "5 logged steps" in person.see(".kept").text_content():
                break
            person.page.wait_for_timeout(500)
        assert "5 logged steps" in person.see(".kept").text_content()
        person.drawn(1, "block.2")
        assert person.see("h2:text-is('Channel 3')").is_visible()
