"""TensorBoard's data providers on a log directory, with the fast or the Python loader."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from local_servers import wait_for
from tensorboard.backend.event_processing.data_provider import MultiplexerDataProvider
from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer
from tensorboard.context import RequestContext
from tensorboard.data.provider import RunTagFilter
from tensorboard.data.server_ingester import ExistingServerDataIngester, get_server_binary
from tensorboard.util.grpc_util import ChannelCredsType

from fmapboard.formats.tab_records import PLUGIN_NAME


@contextlib.contextmanager
def provider_of(logdir: Path, loader: str) -> Iterator[Any]:
    """The data provider that dashboards ask, with the ``"fast"`` or the ``"python"`` loader."""
    if loader == "python":
        multiplexer = EventMultiplexer(tensor_size_guidance={PLUGIN_NAME: 50, "scalars": 1000})
        yield MultiplexerDataProvider(
            multiplexer.AddRunsFromDirectory(str(logdir)).Reload(), str(logdir)
        )
        return
    with tempfile.TemporaryDirectory() as scratch:
        port, output = Path(scratch, "port"), Path(scratch, "stderr")
        command = [
            get_server_binary().path, f"--logdir={logdir}", "--reload=once", "--port=0",
            f"--port-file={port}", "--die-after-stdin", "--verbose",
        ]  # fmt: skip
        with (
            output.open("wb") as stderr,
            subprocess.Popen(command, stdin=subprocess.PIPE, stderr=stderr) as server,
        ):
            try:
                for what, holds in (
                    ("the loaded run", lambda: "Finished load cycle" in output.read_text()),
                    ("the port", lambda: port.is_file() and port.read_text().endswith("\n")),
                ):
                    wait_for(f"{what} of the data server", 30.0, holds, poll=0.01)
                address = f"localhost:{int(port.read_text())}"
                credentials = ChannelCredsType.LOCAL
                yield ExistingServerDataIngester(
                    address, channel_creds_type=credentials
                ).data_provider
            finally:
                server.terminate()


def read_steps(provider: Any, plugin: str, tag: str, run: str = ".") -> list[int]:
    """The steps of one scalar series."""
    series = provider.read_scalars(
        RequestContext(), experiment_id="", plugin_name=plugin, downsample=1000,
        run_tag_filter=RunTagFilter([run], [tag]),
    )  # fmt: skip
    return [datum.step for datum in series[run][tag]]
