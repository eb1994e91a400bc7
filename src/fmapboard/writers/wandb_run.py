"""A writer for Weights & Biases, a file of its own for the optional library."""

from __future__ import annotations

from typing import Any

from PIL import Image

from fmapboard.errors import ConfigurationError, WarnOnce, WriteError, first_line, optional
from fmapboard.formats.tags import OVERVIEW
from fmapboard.records import LoggedStep, Picture

_LEFT_OUT = (
    "step {} is not in the W&B run: you have logged nothing to it since step {}, and a row of a "
    "run holds one value per tag. Call wandb.log at least as often as fmapboard logs, or, if you "
    "never pass step= to wandb.log, use WandbWriter(run, commit=True)"
)


class WandbWriter:
    """Logs pictures, histograms, scalars and texts of each step to a Weights & Biases run.

    Tags are those that TensorBoard has. W&B charts them over ``fmapboard/step``, the number of the
    step (``fmapboard/step_<name>`` for a model with a name): a step is written some time after it
    ended, when your loop may have left its row. The counter behind ``wandb.log(step=...)`` stays
    yours: values join the row that is open, and your next ``wandb.log`` ends it. A row holds one
    logged step; if you log less often than fmapboard, the others are left out, and a warning says
    so.

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
                f"run={type(run).__name__}: expected a run of wandb.init(); a WandbLogger has it "
                "as .experiment"
            )
        Image.preinit()  # not in the worker thread: a fork would inherit the import lock
        self._run = run
        self._commits = commit or run.disabled
        self._defined: set[str] = set()
        self._row: int | None = None
        self._written = 0
        self._warn = WarnOnce()

    def write(self, step: LoggedStep) -> None:
        """Log one step.

        Raises:
            WriteError: W&B refuses, for example because the run is finished.
        """
        try:
            self._run.log({}, commit=False)  # raises at once if the run is finished; `step` waits
            if not self._commits and self._run.step == self._row:
                self._warn.warn("left out", _LEFT_OUT.format(step.step, self._written))
            else:
                self._log(step)
                self._row = self._run.step
                self._written = step.step
        except Exception as error:
            raise WriteError(f"W&B: {first_line(error)}") from error

    def flush(self) -> None:
        """Do nothing: W&B sends rows in a process of its own."""

    def close(self) -> None:
        """Do nothing: the run is the user's to finish."""

    def _log(self, step: LoggedStep) -> None:
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
        self._run.log({**values, number: step.step}, commit=self._commits)

    def _define(self, number: str, values: dict[str, Any]) -> None:
        """Give each new tag the step's number as its x axis, whatever the user defined for "*"."""
        if number not in self._defined:
            self._run.define_metric(number, hidden=True)
        for tag in values.keys() - self._defined:
            self._run.define_metric(tag, step_metric=number)
        self._defined |= {number, *values}


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
