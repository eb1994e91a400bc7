"""The tab without TensorBoard: the same answers as in it, and nothing else, to any request."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from event_files import write
from standalone_servers import Standalone, standalone
from tab_client import ROUTES as ROUTES_OF_TAB
from tab_client import Tab, open_alone, open_tab
from werkzeug.test import Client

from fmapboard.plugin.followed import FollowedRuns
from fmapboard.plugin.routes.by_name import ROUTES
from fmapboard.plugin.standalone import application, data_apps, is_allowed

FORMAT_1 = Path(__file__).parents[2] / "golden" / "format_1"
RUNS = ("images", "sequences", "training")
SECRET = "secret of somebody else"
"""Content of a file beside the directory that is served."""


@pytest.fixture(scope="module")
def tab() -> Tab:
    return open_tab(FORMAT_1)


def paths(tab: Tab, run: str) -> Iterator[str]:
    """Every route with every layer, step, sample and picture of a run."""

    def path(route: str, **query: object) -> str:
        return f"data/{route}?{urlencode({'run': run, **query}, doseq=True)}"

    for route in ("layers", "health", "findings", "attribution", "patches", "verdicts"):
        yield path(route)
    listed = tab.ask("data/layers", run=run)
    steps = listed["steps"]
    for step in steps:
        yield path("health_step", step=step)
        for image in listed["inputs"]:
            yield path("input", step=step, name=image["name"], sample=image["sample"])
    keys = [layer["key"] for layer in listed["layers"]]
    yield path("sheet", key=keys, step=steps, cell=24)
    yield path("sheet_input", step=steps, cell=24)
    for layer in listed["layers"]:
        key = layer["key"]
        yield path("numbers", key=key)
        yield path("history", key=key)
        yield path("tokens", key=key)
        for step in layer["steps"] or steps:
            yield path("maps", key=key, step=step)
            other = {"other_run": run, "other_key": key, "other_step": steps[0]}
            yield path("difference", key=key, step=step, **other)
    for route, pictures in (("attribution", "attribution_picture"), ("patches", "layer_patches")):
        for series in tab.ask(f"data/{route}", run=run)["series"]:
            for step in series["steps"]:
                yield path(pictures, key=series["key"], step=step)


def client_of(logdir: Path, *hosts: str) -> Client:
    """The server's answers about a log directory that is read to its end."""
    provider = FollowedRuns(logdir)
    while provider.look():
        pass
    return Client(application(lambda: data_apps(provider, str(logdir)), hosts))


LOCAL = {"Host": "localhost"}


def test_every_route_answers_as_in_tensorboard(tab: Tab) -> None:
    alone = open_alone(FORMAT_1)
    answered = set()
    for run in RUNS:
        for path in paths(tab, run):
            ours = alone.client.get(f"{ROUTES_OF_TAB}{path}")
            theirs = tab.client.get(f"{ROUTES_OF_TAB}{path}")
            assert (ours.status_code, ours.data) == (theirs.status_code, theirs.data), path
            if ours.status_code == 200:
                answered.add(path.removeprefix("data/").partition("?")[0])
    assert answered == set(ROUTES) - {"runs"}
    ours, theirs = alone.ask("data/runs"), tab.ask("data/runs")
    assert ours["runs"] == theirs["runs"]
    assert (ours["keeps_all"], theirs["keeps_all"]) == (True, False)


PROGRAM = """
import json, sys
from pathlib import Path
from werkzeug.test import Client
from fmapboard.cli import main
from fmapboard.cli.commands import serve
early = [name for name in ("numpy", "PIL") if name in sys.modules]
from fmapboard.plugin.followed import FollowedRuns
from fmapboard.plugin.standalone import application, data_apps

provider = FollowedRuns(Path(sys.argv[1]))
while provider.look():
    pass
client = Client(application(lambda: data_apps(provider, "runs")))
host = {"Host": "localhost"}
statuses = [client.get(path, headers=host).status_code for path in json.load(sys.stdin)]
imported = [name for name in sys.modules if name.startswith(("tensorboard", "torch"))]
print(json.dumps([statuses, imported, early]))
"""


def test_no_answer_imports_anything_of_tensorboard_or_torch(tab: Tab) -> None:
    files = ["/", "/index.js", "/dist/app.js", "/style.css", "/data/runs"]
    asked = [*files, *(f"/{path}" for path in paths(tab, "training"))]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(FORMAT_1)],
        input=json.dumps(asked), capture_output=True, text=True, check=True,
    )  # fmt: skip
    statuses, imported, early = json.loads(done.stdout)
    assert statuses[: len(files)] == [200] * len(files)
    assert statuses.count(200) > len(files) + len(ROUTES)
    assert imported == []
    assert early == []  # what the page does not need is not waited for


@pytest.mark.parametrize(
    "host",
    ["localhost", "localhost:6006", "LOCALHOST:1", "127.0.0.1:6006", "[::1]:6006", "10.0.0.7"],
)
def test_a_request_by_this_machines_own_name_or_address_is_answered(host: str) -> None:
    assert is_allowed(host, [])


@pytest.mark.parametrize(
    "host",
    ["", "evil.example", "evil.example:6006", "localhost.evil.example", "localhost@evil.example",
     "[::1", "1.2.3.4.5", "localhost:x", "localhost:", "evil.example/localhost", "localhost:1:2"],
)  # fmt: skip
def test_a_page_of_another_site_gets_no_answer(host: str, tmp_path: Path) -> None:
    assert not is_allowed(host, [])
    client = client_of(tmp_path)
    for path in ("/", "/data/runs", "/nowhere"):
        refused = client.get(path, environ_overrides={"HTTP_HOST": host})
        assert refused.status_code == 403, path


def test_a_host_is_answered_that_the_user_names(tmp_path: Path) -> None:
    client = client_of(tmp_path, "GPU7.lab")
    assert client.get("/", headers={"Host": "gpu7.lab:6006"}).status_code == 200
    refused = client.get("/", headers={"Host": "gpu8.lab:6006"})
    assert refused.json == {
        "error": "host 'gpu8.lab:6006' is refused; fmapboard serve --allow-host NAME allows it"
    }


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "X"])
def test_only_get_and_head_are_answered(method: str, tmp_path: Path) -> None:
    client = client_of(tmp_path)
    for path in ("/", "/index.js", "/data/runs", "/nowhere"):
        assert client.open(path, method=method, headers=LOCAL).status_code == 405, path
    assert client.head("/", headers=LOCAL).data == b""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    """A server of a directory, beside which there are another run and a file."""
    root = tmp_path_factory.mktemp("served")
    write(root / "logs" / "run", 0, 1)
    write(root / "other", 0, 1)
    (root / "secret.txt").write_text(SECRET)
    (root / "logs" / "secret.txt").symlink_to(root / "secret.txt")
    (root / "logs" / "linked").symlink_to(root / "other")
    with standalone(root / "logs") as started:
        yield started


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt", "/..%2fsecret.txt", "/%2e%2e/secret.txt", "/%252e%252e/secret.txt",
        "/data/../../secret.txt", "//secret.txt", "/dist/../../apps.py", "/..%5csecret.txt",
        "/dist/%2e%2e/%2e%2e/apps.py", "/secret.txt", "/%00secret.txt", "/%c0%ae%c0%ae/secret.txt",
        "/file:///etc/passwd", "/index.js/../style.css", "/data/runs/", "/DATA/runs", "/%ff",
        "/data", "*", "http://localhost/../secret.txt", "secret.txt",
        "/data/layers?run=../other", "/data/layers?run=run/../../other", "/data/layers?run=/etc",
        "/data/layers?run=%2e%2e%2fother", "/data/layers?run=linked", "/data/layers?run=run%00",
        "/data/input?run=../other&step=0", "/data/maps?run=linked&key=fmapboard/conv&step=0",
    ],
)  # fmt: skip
def test_no_request_leads_to_a_file_or_out_of_the_directory(path: str, server: Standalone) -> None:
    status, body = server.get(path)
    assert status in (400, 404)
    assert SECRET.encode() not in body
    status, body = server.get("/data/runs")
    assert [entry["run"] for entry in json.loads(body)["runs"]] == ["run"]


def test_a_request_for_another_machine_is_refused_however_it_names_it(server: Standalone) -> None:
    assert server.get("/data/runs")[0] == 200
    assert server.get("http://evil.example/data/runs")[0] == 403
    assert server.get("/data/runs", host="evil.example")[0] == 403
    assert server.get("/data/runs", host=None)[0] == 403


def test_the_page_may_load_nothing_from_anywhere_else(server: Standalone, tmp_path: Path) -> None:
    page = client_of(tmp_path).get("/", headers=LOCAL)
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "http" not in policy
    assert page.headers["X-Content-Type-Options"] == "nosniff"
