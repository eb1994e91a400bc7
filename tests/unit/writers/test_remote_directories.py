"""Event files at a URL: in fsspec's memory, and in a store that takes only whole objects."""

from __future__ import annotations

import io
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pytest
from data_providers import read_steps
from event_files import step_of
from tensorboard.backend.event_processing.data_provider import MultiplexerDataProvider
from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer
from tensorboard.context import RequestContext
from torch import nn, rand
from torch.utils.tensorboard import SummaryWriter

import fmapboard
from fmapboard.cli.main import run_visualize
from fmapboard.errors import ConfigurationError, MissingExtra, WriteError
from fmapboard.writers import remote
from fmapboard.writers.tensorboard import TensorBoardWriter

TAG = "gradient_norm/total"


class ObjectStore(fsspec.AbstractFileSystem):  # type: ignore[misc]  # no types
    """Objects that are put and read whole: it cannot append, and has no directories."""

    protocol = "objects"
    objects: ClassVar[dict[str, bytes]] = {}
    puts: ClassVar[list[str]] = []
    broken: ClassVar[bool] = False

    def _open(self, path: str, mode: str = "rb", **kwargs: Any) -> Any:
        if mode == "rb":
            return io.BytesIO(self.objects[self._strip_protocol(path)])
        if mode != "wb":
            raise NotImplementedError(f"mode {mode} is not supported")
        if self.broken:
            raise ConnectionError("the store does not answer")
        return _Upload(self, self._strip_protocol(path))

    def ls(self, path: str, detail: bool = True, **kwargs: Any) -> Any:
        path = self._strip_protocol(path).rstrip("/") + "/"
        found: dict[str, dict[str, Any]] = {}
        for name, content in self.objects.items():
            if name.startswith(path):
                first, _, rest = name.removeprefix(path).partition("/")
                kind = "directory" if rest else "file"
                found[first] = {"name": path + first, "size": len(content), "type": kind}
        if not found and path.rstrip("/") not in self.objects:
            raise FileNotFoundError(path)
        return list(found.values()) if detail else [entry["name"] for entry in found.values()]

    def info(self, path: str, **kwargs: Any) -> Any:
        path = self._strip_protocol(path)
        if path in self.objects:
            return {"name": path, "size": len(self.objects[path]), "type": "file"}
        self.ls(path)
        return {"name": path, "size": 0, "type": "directory"}

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """An object store has none."""


class _Upload(io.BytesIO):
    def __init__(self, store: ObjectStore, path: str) -> None:
        super().__init__()
        self._store, self._path = store, path

    def close(self) -> None:
        if not self.closed:
            self._store.objects[self._path] = self.getvalue()
            self._store.puts.append(self._path)
        super().close()


@pytest.fixture(params=["memory", "objects"])
def url(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[str]:
    """A new directory; nothing local may be created meanwhile."""
    fsspec.register_implementation("objects", ObjectStore, clobber=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ObjectStore, "objects", {})
    monkeypatch.setattr(ObjectStore, "puts", [])
    monkeypatch.setattr(ObjectStore, "broken", False)
    yield f"{request.param}://bucket-{uuid.uuid4().hex}/runs"
    assert list(tmp_path.iterdir()) == []


def provider_of(url: str) -> Any:
    """TensorBoard's Python loader on a remote directory."""
    multiplexer = EventMultiplexer(tensor_size_guidance={"feature_maps": 50, "images": 50})
    return MultiplexerDataProvider(multiplexer.AddRunsFromDirectory(url).Reload(), url)


def logged_at(url: str, *steps: int, start_step: int = 0) -> None:
    writer = TensorBoardWriter(url, start_step=start_step)
    for number in steps:
        writer.write(step_of(number))
    writer.close()


def test_steps_of_an_earlier_run_are_named_before_they_vanish(
    url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "_MAX_BYTES", 1)  # one object per step
    logged_at(url, 0, 10, 20)
    TensorBoardWriter(url).close()  # a newer object without a step
    assert caplog.messages == []
    logged_at(url, 20)
    (message,) = caplog.messages
    assert message.startswith(
        f"fmapboard: {url} holds an earlier run, up to step 20: from step 20 on, TensorBoard shows "
        "this run instead"
    )
    caplog.clear()
    logged_at(url, 21)
    logged_at(url, 15, start_step=15)  # discards on purpose
    assert caplog.messages == []


def test_a_run_is_logged_although_an_earlier_one_cannot_be_read(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise ConnectionError("the store does not answer")

    logged_at(url, 10)
    with monkeypatch.context() as patched:
        patched.setattr(remote._gfile().GFile, "read", refuse)
        logged_at(url, 0)
    assert read_steps(provider_of(url), "scalars", TAG) == [0]


def file_names(url: str) -> list[str]:
    file_system, path = fsspec.core.url_to_fs(url)
    return sorted(name.rpartition("/")[2] for name in file_system.find(path))


def test_a_step_can_be_read_as_soon_as_write_returns(url: str) -> None:
    writer = TensorBoardWriter(f"{url}/exp1")
    follows = EventMultiplexer().AddRunsFromDirectory(url)
    for number in range(3):
        writer.write(step_of(number))
        for provider in (provider_of(url), MultiplexerDataProvider(follows.Reload(), url)):
            assert read_steps(provider, "scalars", TAG, "exp1") == list(range(number + 1))
    writer.close()
    assert str(writer.log_dir) == f"{url}/exp1"
    assert str(writer.path).startswith(f"{url}/exp1/events.out.tfevents.")
    assert len(file_names(url)) == 1


def test_a_real_training_run_is_read_back(url: str) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3))
    with fmapboard.watch(model, url, every=1) as board:
        for number in range(3):
            with board.step(number):
                model(rand(1, 3, 9, 9))
    assert read_steps(provider_of(url), "scalars", "nonfinite/0") == [0, 1, 2]


def test_a_resumed_run_discards_the_steps_from_the_start_step_on(url: str) -> None:
    for numbers in ((0, 10, 20, 30), (20, 30)):
        writer = TensorBoardWriter(url, start_step=15 if numbers[0] else 0)
        for number in numbers:
            writer.write(step_of(number))
        writer.close()
    assert len(file_names(url)) == 2
    assert read_steps(provider_of(url), "scalars", TAG) == [0, 10, 20, 30]


def test_an_object_that_becomes_too_large_is_followed_by_another(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "_MAX_BYTES", 2000)
    writer = TensorBoardWriter(url)
    for number in range(20):
        writer.write(step_of(number))
    writer.close()
    files = file_names(url)
    assert 2 < len(files) < 20
    assert read_steps(provider_of(url), "scalars", TAG) == list(range(20))
    blobs = provider_of(url).read_blob_sequences(
        RequestContext(), experiment_id="", plugin_name="images", downsample=50
    )
    assert [datum.step for datum in blobs["."]["feature_maps_1x1x1x1/conv"]] == list(range(20))


def test_next_to_another_writers_event_file_ours_is_a_separate_run(url: str) -> None:
    with fsspec.open(f"{url}/events.out.tfevents.1.host", "wb") as file:
        file.write(b"")
    assert str(TensorBoardWriter(url).log_dir) == f"{url}/fmapboard"


def test_two_writers_of_one_url_share_one_file(url: str) -> None:
    first, second = TensorBoardWriter(url), TensorBoardWriter(f"{url}/")
    first.write(step_of(0))
    second.write(step_of(1))
    first.close()
    second.close()
    assert len(file_names(url)) == 1
    assert read_steps(provider_of(url), "scalars", TAG) == [0, 1]


@pytest.mark.parametrize("url", ["memory"], indirect=True)  # torch's writer appends
def test_torchs_own_writer_reaches_the_same_memory(url: str) -> None:
    with SummaryWriter(f"{url}/torch") as users:
        users.add_scalar(TAG, 1.0, 5)
    TensorBoardWriter(f"{url}/ours").write(step_of(5))
    for run in ("torch", "ours"):
        assert read_steps(provider_of(url), "scalars", TAG, run) == [5]


@pytest.mark.parametrize("url", ["objects"], indirect=True)
def test_a_store_that_does_not_answer_loses_only_the_step_being_written(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = TensorBoardWriter(url)
    monkeypatch.setattr(ObjectStore, "broken", True)
    said = "the store does not answer; check the address and your permissions there"
    with pytest.raises(WriteError, match=f"cannot write objects://.*: {said}"):
        writer.write(step_of(0))
    with pytest.raises(WriteError, match=said):
        TensorBoardWriter(f"{url}/other")
    monkeypatch.setattr(ObjectStore, "broken", False)
    writer.write(step_of(1))
    assert read_steps(provider_of(url), "scalars", TAG) == [1]
    assert len(set(ObjectStore.puts)) == 1


@pytest.mark.parametrize(
    ("url", "package"), [("gs://bucket/run", "gcsfs"), ("abfs://box/run", "adlfs")]
)
def test_a_missing_package_is_named(
    url: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MissingExtra) as error:
        TensorBoardWriter(url)
    assert str(error.value) == f"log_dir={url!r} needs {package}. Run: pip install {package}"
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_kind_of_url_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError) as error:
        fmapboard.watch(nn.Conv2d(1, 1, 1), "nosuch://bucket/run")
    assert str(error.value) == (
        "log_dir='nosuch://bucket/run': no file system for nosuch:// is known to TensorBoard's "
        "file layer (fsspec, or TensorFlow where it is installed); install the package of fsspec "
        "for it, or give another log_dir"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_visualize_writes_to_a_url(url: str, tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        run_visualize(["--logdir", f"{url}/drawn"])
    assert ended.value.code == 0
    listed = provider_of(url).list_blob_sequences(
        RequestContext(), experiment_id="", plugin_name="images"
    )
    assert "feature_maps_16x3x7x7/conv1" in listed["drawn"]
