"""Python processes that start with torch imported, which takes seconds: forks of one that has.

Each is as one that was started with ``python -c``: fmapboard is not imported, and it ends as
programs do. Not for tests of what is imported, or of what is read when Python or OpenMP starts.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO


class WarmPython:
    """A started process, in a session of its own; used as a ``subprocess.Popen``.

    Attributes:
        pid: of the process, which is no child of this one.
    """

    def __init__(
        self,
        code: str,
        *arguments: str | Path,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        output: IO[bytes] | None = None,
    ) -> None:
        """Start code with these ``sys.argv[1:]``.

        Args:
            output: file for all that it prints, which ``communicate`` then does not return.
        """
        request = {"code": code, "arguments": [*map(str, arguments)], "cwd": str(cwd or Path.cwd())}
        request["env"] = dict(os.environ if env is None else env)
        self._own = [] if output else [tempfile.TemporaryFile() for _ in range(2)]  # noqa: SIM115
        reading, writing = os.pipe()
        self._status = os.fdopen(reading)
        self._code: int | None = None
        files = [file.fileno() for file in (self._own or [output, output])]
        socket.send_fds(_server(), [json.dumps(request).encode()], [*files, writing])
        os.close(writing)
        self.pid = int(self._status.readline())

    def poll(self) -> int | None:
        """The exit status; None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0.0)
        return None

    def wait(self, timeout: float) -> int:
        """Wait for its end, at most ``timeout`` seconds, and return the exit status.

        Raises:
            subprocess.TimeoutExpired: it did not end.
        """
        if self._code is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            self._code = int(self._status.readline())
            self._status.close()
        return self._code

    def kill(self) -> None:
        """Kill it, if it has not ended."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def communicate(self, timeout: float) -> subprocess.CompletedProcess[str]:
        """Wait for its end, at most ``timeout`` seconds, after which it is killed.

        Raises:
            subprocess.TimeoutExpired: it did not end.
        """
        try:
            status = self.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        texts = []
        for file in self._own:
            file.seek(0)
            texts.append(file.read().decode())
            file.close()
        return subprocess.CompletedProcess([], status, *texts)


def run(
    code: str,
    *arguments: str | Path,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = 120.0,
) -> subprocess.CompletedProcess[str]:
    """Run code with these ``sys.argv[1:]`` to its end, at most ``timeout`` seconds."""
    return WarmPython(code, *arguments, cwd=cwd, env=env).communicate(timeout)


@functools.cache
def _server() -> socket.socket:
    """The way to the process that is forked; it ends when this is closed."""
    own, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    descriptor = its.fileno()
    command = [sys.executable, __file__, str(descriptor)]
    process = subprocess.Popen(command, pass_fds=[descriptor], stdin=subprocess.DEVNULL)
    its.close()

    def end() -> None:
        own.close()
        process.wait()

    atexit.register(end)
    return own


def _requested(channel: socket.socket) -> str:
    """In a new process for each request: the code that it asks for. In this one: the end."""
    while True:
        message, files, _, _ = socket.recv_fds(channel, 1 << 18, 3)
        if not message:
            sys.exit()
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if os.fork() == 0:
            break
        for each in files:
            os.close(each)
    channel.close()
    out, errors, status = files
    pid = os.fork()
    if pid:  # tells how the process ends, whose parent it is
        os.write(status, f"{pid}\n".encode())
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os.write(status, f"{code}\n".encode())
        os._exit(0)
    os.close(status)
    os.setsid()
    for target, file in ((1, out), (2, errors)):
        os.dup2(file, target)
        os.close(file)
    request = json.loads(message)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.argv[:] = ["-c", *request["arguments"]]
    sys.path[:1] = ["", *filter(None, request["env"].get("PYTHONPATH", "").split(os.pathsep))]
    found: str = request["code"]
    return found


if __name__ == "__main__":
    import tensorboard.main  # noqa: F401
    import torch
    import torch._dynamo
    import torch.distributed.fsdp
    import torch.utils.tensorboard
    import torchvision  # noqa: F401

    torch.set_num_threads(1)
    gc.freeze()  # otherwise each process, when it ends, looks through all that is imported
    _code = _requested(socket.socket(fileno=int(sys.argv[1])))
    torch.set_num_threads(1)  # makes torch's pool anew: two threads that do so at once break it
    _names = {"__name__": "__main__", "__builtins__": __builtins__}
    exec(compile(_code, "<string>", "exec"), _names)
