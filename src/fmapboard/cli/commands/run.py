"""``fmapboard run``: run a Python script as ``python`` would, and watch the models it trains."""

from __future__ import annotations

import atexit
import builtins
import functools
import importlib.machinery
import importlib.util
import io
import logging
import os
import runpy
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import TYPE_CHECKING, Any

from fmapboard.errors import VERDICT_OF, ConfigurationError, escaped, log, nearby, one_line
from fmapboard.interrupts import raise_interrupt

if TYPE_CHECKING:
    from fmapboard.auto_watch import AutoWatch

_OPTIMIZERS = "torch.optim.optimizer"
_RANKS = ("RANK", "LOCAL_RANK", "SLURM_PROCID")
"""Environment variables that tell a process, from its start, which rank it is."""


@dataclass(frozen=True, slots=True)
class Watching:
    """How the models of a script are watched: options of ``watch``.

    Attributes:
        log_dir: Log into this directory. None makes a new one below runs.
        every: Log every N optimizer steps, and the second one.
        layers: Watch only layers that match this glob; one that begins with ! excludes.
        samples: Draw this many samples of the batch.
        max_channels: Draw at most this many channels per layer.
        max_tile: Average larger maps to this many px per side.
        activation_gradients: Also log the gradients of the layers' outputs.
        attribution: Also draw where activations lower the loss.
        reduce_statistics: Compute channel statistics over the batches of all ranks.
        rehearse: At the second optimizer step, try the training on copies and print the result.
        colormap: Colors of the pictures.
        scale: The range from black to white: of each channel, or of the whole layer.
    """

    log_dir: str | None = None
    every: int = 100
    layers: Sequence[str] | None = None
    samples: int = 1
    max_channels: int = 64
    max_tile: int = 64
    activation_gradients: bool = False
    attribution: bool = False
    reduce_statistics: bool = False
    rehearse: bool = False
    colormap: str = "grey"
    scale: str = "channel"

    def of_watch(self) -> dict[str, Any]:
        """The options that do not depend on the model."""
        named = {name: getattr(self, name) for name in self.__slots__}
        del named["log_dir"], named["every"]
        return named


@dataclass
class Script:
    """A script or module that is run in this process; calling it does so.

    It runs as with ``python``: as ``__main__``, with its own ``sys.argv`` and ``sys.path``, and an
    exception that it does not catch is printed without frames of fmapboard. Nothing of torch is
    imported before the script does.

    Args:
        target: path of the script, or name of the module.
        arguments: those of the script.
        is_module: ``target`` is a module.
        watching: how its models are watched.
    """

    target: str
    arguments: Sequence[str]
    is_module: bool
    watching: Watching
    _watch: AutoWatch | None = field(init=False, default=None)
    _has_failed: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self._process = os.getpid()
        self._is_launched = any(name in os.environ for name in _RANKS)
        self._is_first_rank = os.environ.get("RANK", "0") == "0"
        self._folder = os.getcwd()

    def __call__(self) -> None:
        """Run it; what it raises, ``SystemExit`` included, is raised."""
        code = None if self.is_module else _compiled(self.target)
        atexit.register(self._end)  # first, so that it is called last
        self._log_to_stderr()
        _when_imported(_OPTIMIZERS, self._follow)
        main = ModuleType("__main__")
        main.__dict__["__builtins__"] = builtins
        own = sys.modules["__main__"]
        sys.modules["__main__"] = main
        sys.argv[:] = [self.target, *self.arguments]
        sys.orig_argv[:] = [sys.executable, *(["-m"] if self.is_module else []), *sys.argv]
        try:
            _execute(self.target, code, main)
        except BaseException:
            sys.excepthook = functools.partial(_print_without_frames, sys.excepthook)
            raise
        finally:
            del own  # until here: its code is running

    def _follow(self, module: ModuleType) -> None:
        """Make every optimizer known that is created from now on."""
        kind: Any = module.Optimizer
        original = kind._patch_step_function

        @functools.wraps(original)
        def patched(optimizer: Any) -> None:
            original(optimizer)
            self._created(optimizer)

        kind._patch_step_function = patched

    def _created(self, optimizer: Any) -> None:
        if self._has_failed or os.getpid() != self._process:
            return
        try:
            if self._watch is None:
                self._watch = self._new_watch()
            self._watch.created(optimizer)
        except Exception as error:
            raise_interrupt(error)
            self._fail(error)

    def _new_watch(self) -> AutoWatch:
        from fmapboard.auto_watch import AutoWatch
        from fmapboard.writers.tensorboard import default_log_dir

        log_dir = self.watching.log_dir or str(default_log_dir())
        if "://" not in log_dir:
            log_dir = os.path.join(self._folder, log_dir)  # the script may have left its folder
        options = self.watching.of_watch()
        return AutoWatch(log_dir, self.watching.every, options, self._say, self._is_launched)

    def _fail(self, error: Exception) -> None:
        self._has_failed = True
        self._say(f"{one_line(error)}; the script goes on and is not watched")

    def _say(self, text: str) -> None:
        """Print a line for the user, on the first rank."""
        if self._is_first_rank and sys.__stderr__ is not None:
            print(f"fmapboard: {escaped(text)}", file=sys.__stderr__, flush=True)

    def _log_to_stderr(self) -> None:
        """Keep warnings of fmapboard out of the script's own log files and output."""
        handler = logging.StreamHandler(sys.__stderr__)
        handler.addFilter(lambda record: not hasattr(record, VERDICT_OF))  # printed at the end
        log.addHandler(handler)
        log.propagate = False

    def _end(self) -> None:
        """Called at the end of the interpreter: close the loggers and print the verdict."""
        if os.getpid() != self._process:
            return
        try:
            self._conclude()
        except Exception as error:
            raise_interrupt(error)
            self._say(one_line(error))

    def _conclude(self) -> None:
        watch = self._watch
        if watch is None or not watch.stepped:
            if not self._has_failed:
                self._say("no optimizer of torch stepped in this process, so nothing is logged")
            return
        watch.close()
        if watch.kept:
            self._say(f"the script watches {', '.join(watch.kept)} itself, as it did before")
        places = dict.fromkeys(watched.place for watched in watch.watched if watched.place)
        local = [Path(place) for place in places if "://" not in place]
        if local:
            from fmapboard.cli.commands.check import why_runs

            with redirect_stdout(sys.__stderr__):
                why_runs(local, as_json=False, pictures=None, silenced=(), further=())


def script_to_run(target: str, arguments: Sequence[str], **options: Any) -> Script:
    """The script of a command line.

    Raises:
        ConfigurationError: there is no such file, or the log directory is one.
    """
    is_module = options.pop("is_module")
    path = Path(target)
    log_dir = options["log_dir"]
    if log_dir is not None and os.path.isfile(log_dir):
        raise ConfigurationError(f"--logdir {log_dir!r} is a file; expected a directory")
    if not is_module and not path.is_file():
        raise ConfigurationError(f"{target!r}: no such script{nearby(path)}")
    return Script(target, arguments, is_module, Watching(**options))


def _compiled(path: str) -> CodeType:
    """A script's code; a syntax error is the script's."""
    with io.open_code(os.path.abspath(path)) as file:
        source = file.read()
    try:
        code: CodeType = compile(source, os.path.abspath(path), "exec", dont_inherit=True)
    except BaseException:
        sys.excepthook = functools.partial(_print_without_frames, sys.excepthook)
        raise
    return code


def _execute(target: str, code: CodeType | None, main: ModuleType) -> None:
    """Run a script's code, or a module, in the module ``__main__``."""
    folder = os.getcwd() if code is None else os.path.dirname(os.path.realpath(target))
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = folder
    if code is None:
        runpy._run_module_as_main(target)  # type: ignore[attr-defined]  # what python -m calls
        return
    path = os.path.abspath(target)
    main.__dict__.update(
        __file__=path,
        __cached__=None,
        __loader__=importlib.machinery.SourceFileLoader("__main__", path),
    )
    exec(code, main.__dict__)


def _print_without_frames(
    hook: Any, kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Call a hook for an uncaught exception, without the frames up to ``_execute``."""
    inner = trace
    while inner is not None and inner.tb_frame.f_code is not _execute.__code__:
        inner = inner.tb_next
    own = None if inner is None else inner.tb_next
    error.__traceback__ = own
    hook(kind, error, own)


def _when_imported(name: str, function: Any) -> None:
    """Call a function with a module, now or right after the module was imported."""
    module = sys.modules.get(name)
    if module is not None:
        function(module)
    else:
        sys.meta_path.insert(0, _Finder(name, function))


class _Finder(MetaPathFinder):
    """Calls a function when a module was imported; finds nothing itself."""

    def __init__(self, name: str, function: Any) -> None:
        self._name = name
        self._function = function

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The module's own specification, whose loader calls the function."""
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        loader: Any = spec.loader
        before = vars(loader).get("exec_module")  # of another tool that waits for the module
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            if before is None:
                del loader.exec_module
            else:
                loader.exec_module = before
            execute(module)
            self._function(module)

        loader.exec_module = exec_module
        return spec
