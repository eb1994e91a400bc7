"""A writer for Weights & Biases, a file of its own for the optional library."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from PIL import Image

from fmapboard.errors import ConfigurationError, WarnOnce, WriteError, first_line, optional
from fmapboard.formats.tags import OVERVIEW
from fmapboard.records import LoggedStep, Picture

MAX_WAITING = 8
"""Maximum number of logged steps that wait for a row of their own."""

_LEFT_OUT = (
    "step {} is not in the W&B run: fmapboard logs more often than you call wandb.log, and a "
    "row of a run holds one logged step. Call wandb.log at least as often as fmapboard logs, "
    "or, if you never pass step= to wandb.log, use WandbWriter(run, commit=True)"
)


class WandbWriter:
    """Logs pictures, histograms, scalars and texts of each step to a Weights & Biases run.

    Tags are those that TensorBoard has. W&B charts them over ``fmapboard/step``, the number of the
    step (``fmapboard/step_<name>`` for a model with a name): a step is written some time after it
    ended, when your loop may have left its row. The counter behind ``wandb.log(step=...)`` stays
    yours: values join the row that is open, and your next ``wandb.log`` ends it. A row holds one
    logged step. If the open row has one already, the next ones wait for your later rows; those
    that still wait when the run is finished get rows of their own after yours. At most
    ``MAX_WAITING`` steps wait: if you log much less often than fmapboard, the oldest are left out,
    and a warning says so.

    What the Feature maps tab needs is not sent. ``close`` does not finish the run.

    Args:
        run: the run, as ``wandb.init`` returns it; None for the active one.
        commit: end a row with each logged step, so that none is left out. This advances W&B's
            counter of rows, which does no harm if ``step=`` is never passed to ``wandb.log``.

    Raises:
        MissingExtra: wandb is not installed.
        ConfigurationError: no run is active, or ``run`` is not one.

    Example::

        run = wandb.init(project="x")
        with fmapboard.watch(model, writer=WandbWriter(run), optimizer=optimizer, every=100):
            ...  # with wandb.log(...) or wandb.log(..., step=i) as before
    """

    def __init__(self, run: Any = None, *, commit: bool = False) -> None:
        self._wandb: Any = optional("wandb", extra="wandb", why="WandbWriter")
        run = self._wandb.run if run is None else run
        if run is None:
            raise ConfigurationError(
                "no W&B run is active: call wandb.init() before WandbWriter(), or pass the run"
            )
        if not callable(getattr(run, "define_metric", None)):
            raise ConfigurationError(
                f"run={type(run).__name__}: expected a run of wandb.init(); a WandbLogger has "
                "it as .experiment"
            )
        Image.preinit()  # not in the worker thread: a fork would inherit the import lock
        self._run = run
        self._commits = commit or run.disabled
        self._defined: set[str] = set()
        self._row: int | None = None  # the last one that holds a logged step
        self._waiting: deque[LoggedStep] = deque()
        self._is_called_at_finish = False
        self._warn = WarnOnce()

    def write(self, step: LoggedStep) -> None:
        """Log one step, or keep it until the user begins another row.

        Raises:
            WriteError: W&B refuses, for example because the run is finished.
        """
        try:
            self._run.log({}, commit=False)  # raises at once if the run is finished; `step` waits
            if self._commits:
                self._log(step, commit=True)
                return
            self._waiting.append(step)
            if self._run.step != self._row:
                self._log(self._waiting.popleft(), commit=False)
                self._row = self._run.step
        except Exception as error:
            raise WriteError(
                f"W&B: {first_line(error)}; wandb's own log says more (wandb/latest-run/logs)"
            ) from error
        if self._waiting and not self._is_called_at_finish:
            self._is_called_at_finish = _call_at_finish(self._run, self._write_waiting)
        if len(self._waiting) > MAX_WAITING:
            left_out = self._waiting.popleft()
            self._warn.warn("left out", _LEFT_OUT.format(left_out.step))

    def flush(self) -> None:
        """Do nothing: W&B sends rows in a process of its own."""

    def close(self) -> None:
        """Leave the run open, which is the user's to finish; steps may wait until then."""
        if not self._is_called_at_finish:
            self._write_waiting()

    def _write_waiting(self) -> None:
        """Log the steps that wait, each in a row of its own."""
        try:
            if self._waiting and self._run.step == self._row:
                self._run.log({}, commit=True)  # ends the row that holds a logged step already
            while self._waiting:
                self._log(self._waiting.popleft(), commit=True)
        except Exception as error:  # of W&B: it must not keep the run from being finished
            self._warn.error("waiting", error, "the last logged steps are not in the W&B run")

    def _log(self, step: LoggedStep, *, commit: bool) -> None:
        values: dict[str, Any] = {**step.scalars, **step.texts}
        for tagged in step.pictures:
            values[tagged.tag] = [
                self._wandb.Image(_image(picture), caption=tagged.description)
                for picture in tagged.samples
            ]
        for histogram in step.histograms:
            if histogram.counts.size:
                pair = (histogram.counts, histogram.edges)
                values[histogram.tag] = self._wandb.Histogram(np_histogram=pair)
        number = _step_metric(step)
        self._define(number, values)
        self._run.log({**values, number: step.step}, commit=commit)

    def _define(self, number: str, values: dict[str, Any]) -> None:
        """Give each new tag the step's number as its x axis, whatever the user defined for "*"."""
        if number not in self._defined:
            self._run.define_metric(number, hidden=True)
        for tag in values.keys() - self._defined:
            self._run.define_metric(tag, step_metric=number)
        self._defined |= {number, *values}


def _call_at_finish(run: Any, function: Callable[[], None]) -> bool:
    """Have W&B call a function when the run is finished, after the user's last row.

    Returns:
        False if this version of W&B has no such hooks.
    """
    try:
        from wandb.sdk.wandb_run import TeardownHook, TeardownStage

        run._teardown_hooks.append(TeardownHook(function, TeardownStage.EARLY))
    except (ImportError, AttributeError):
        return False
    return True


def _step_metric(step: LoggedStep) -> str:
    """The metric that holds the step's number; a model with a name has one of its own."""
    tags = [record.tag for record in step.records if record.tag.endswith(OVERVIEW)]
    name = tags[0].removesuffix(OVERVIEW).removesuffix(".") if tags else ""
    if not name:
        return "fmapboard/step"
    return f"fmapboard/step_{name.replace('.', '_')}"  # W&B would split it at a dot


def _image(picture: Picture) -> Image.Image:
    image = Image.fromarray(picture.pixels)
    if picture.palette is not None:
        image.putpalette(picture.palette.tobytes())
    return image
