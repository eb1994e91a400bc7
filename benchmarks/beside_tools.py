"""Packages that say what is wrong with a training, behind one class, `Attached`, for `beside.py`.

Each is attached where a case of `tests/acceptance/kept_apart` calls ``fmapboard.watch``, and gives
the text that its user reads.
"""

from __future__ import annotations

import contextlib
import csv
import io
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from first_batch import FirstStep, NotOneBatch
from kept_apart.trainings import Board
from torch import Tensor, nn
from torch.optim import Optimizer


class Enough(BaseException):
    """The tool has said what it has to say before the training is over."""


class Attached(Board):
    """A tool that is attached to a training.

    Args:
        model, run, every, optimizer: as for ``fmapboard.watch``.
    """

    def __init__(
        self, model: nn.Module, run: Path, *, every: int, optimizer: Optimizer, **_: Any
    ) -> None:
        self.model = model
        self.run = Path(run)
        self.every = every
        self.optimizer = optimizer
        self.text: str | None = None
        optimizer.register_step_pre_hook(lambda *_: self.before_step())
        optimizer.register_step_post_hook(lambda *_: self.after_step())
        self.attach()

    loss_value = math.nan
    """The last loss of which gradients were computed."""

    def attach(self) -> None:
        """Called before the training."""

    def before_backward(self, loss: Tensor) -> None:
        """Called with each loss of which gradients are computed."""

    def before_step(self) -> None:
        """Called when the gradients are there."""

    def after_step(self) -> None:
        """Called after each step of the optimizer."""

    def answer(self) -> str:
        """What the tool says at the end."""
        raise NotImplementedError

    def close(self) -> None:
        if self.text is None:
            self.text = self.answer()


@contextmanager
def losses_given_to(boards: Sequence[Attached]) -> Iterator[None]:
    """Give each loss to the tools before ``backward`` runs; more may be attached meanwhile."""
    backward = Tensor.backward

    def given(loss: Tensor, *arguments: Any, **options: Any) -> None:
        for board in boards:
            if board.text is None:
                board.loss_value = loss.item() if loss.numel() == 1 else math.nan
                board.before_backward(loss)
        backward(loss, *arguments, **options)

    Tensor.backward = given  # type: ignore[method-assign]
    try:
        yield
    finally:
        Tensor.backward = backward  # type: ignore[method-assign]


def printed(call: Callable[[], object]) -> str:
    """What a call prints."""
    with contextlib.redirect_stdout(io.StringIO()) as output:
        call()
    return output.getvalue()


class Torchmortem(Attached):
    """Hooks in every step; the text of its HTML report."""

    def attach(self) -> None:
        from torchmortem import Autopsy

        self._autopsy = Autopsy(self.model, optimizer=self.optimizer)
        self._autopsy.attach()

    def after_step(self) -> None:
        self._autopsy.step(loss=self.loss_value)

    def answer(self) -> str:
        self._autopsy.detach()
        report = self._autopsy.get_report()
        assert report is not None
        lines = [report.executive_summary]
        for insight in report.insights:
            lines += ["", f"INSIGHT: {insight.title}", insight.summary]
            lines += [f"- {advice}" for advice in insight.remediation]
        for finding in report.findings:
            lines += ["", f"{finding.severity.name}: {finding.title}", finding.summary]
            lines += [f"- {advice}" for advice in finding.remediation]
        return "\n".join(lines)


class TorchAudit(Attached):
    """``autopatch`` at the logged steps; the table that it prints."""

    def attach(self) -> None:
        from torch_audit import autopatch
        from torch_audit.reporters.console import ConsoleReporter

        self._auditor = autopatch(
            self.model,
            optimizer=self.optimizer,
            every_n_steps=self.every,
            reporters=[ConsoleReporter()],
        )

    def answer(self) -> str:
        text = printed(lambda: self._auditor.finish(report=True))
        self._auditor.unpatch()
        return text


class Curves(Attached):
    """Loss, gradient norm and learning rate of each step in a CSV file, read at the end."""

    def attach(self) -> None:
        self._rows: list[tuple[int, float, float, float]] = []
        self._norm = math.nan

    def before_step(self) -> None:
        parameters = [p for group in self.optimizer.param_groups for p in group["params"]]
        gradients = [p.grad for p in parameters if p.grad is not None]
        self._norm = torch.nn.utils.get_total_norm(gradients).item() if gradients else 0.0

    def after_step(self) -> None:
        rate = float(self.optimizer.param_groups[0]["lr"])
        self._rows.append((len(self._rows), self.loss_value, self._norm, rate))

    def answer(self) -> str:
        self.run.mkdir(parents=True, exist_ok=True)
        path = self.run / "metrics.csv"
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["step", "train_loss", "grad_norm", "lr"])
            writer.writerows(self._rows)
        return printed(lambda: self.read(path))

    def read(self, path: Path) -> object:
        """Print what the tool says of the file."""
        raise NotImplementedError


class Runmedic(Curves):
    """``runmedic diagnose metrics.csv``."""

    def read(self, path: Path) -> object:
        from runmedic.cli import main

        return main(["diagnose", str(path)])


class Trainspotter(Curves):
    """``trainspotter analyze metrics.csv``."""

    def read(self, path: Path) -> object:
        from trainspotter.cli import main

        return main(["analyze", str(path), "--no-color"])


class OneBatch(Attached):
    """A tool that looks at one batch before the training: the first one. It ends the training."""

    def attach(self) -> None:
        self._first = FirstStep(self.model)
        self._is_asked = False

    def before_backward(self, loss: Tensor) -> None:
        if self._is_asked:  # a loss of the tool's own
            return
        self._is_asked = True
        self._first.stop()
        self._first.loss(loss, self._first.forward(self.model, self._first.inputs()))
        self.text = self.checked(self._first, loss)
        raise Enough

    def checked(self, first: FirstStep, loss: Tensor) -> str:
        """What the tool says of the batch."""
        raise NotImplementedError

    def answer(self) -> str:
        raise NotOneBatch("no gradients are computed")


class Torchtest2(OneBatch):
    """``check_model`` with inputs, targets, loss function and optimizer."""

    def checked(self, first: FirstStep, loss: Tensor) -> str:
        import torchtest2

        inputs = first.inputs()
        function, targets = first.function_and_targets(loss)
        options: dict[str, Any] = {}
        if isinstance(inputs, tuple):
            options["forward_fn"] = lambda model, given, _: first.forward(model, given)
            options["eval_forward_fn"] = first.forward
        report = torchtest2.check_model(
            *(self.model, inputs, targets),
            loss_fn=function,
            optimizer=self.optimizer,
            **options,
        )
        return str(report)


class Guardtower(OneBatch):
    """``audit`` with a closure that computes the loss."""

    def checked(self, first: FirstStep, loss: Tensor) -> str:
        import guardtower

        inputs = first.inputs()
        report = guardtower.audit(
            self.model,
            lambda: first.loss(loss, first.forward(self.model, inputs)),
            optimizer=self.optimizer,
            inputs=inputs,
        )
        return repr(report)


class Fmapboard(Attached):
    """``fmapboard why`` on what was logged with the defaults."""

    def __init__(self, model: nn.Module, run: Path, **options: Any) -> None:
        import fmapboard

        self.run = run
        self.text = None
        self._board = fmapboard.watch(model, run, **options)

    def loss(self, *arguments: Any) -> None:
        self._board.loss(*arguments)

    def step(self, step: int | None = None) -> Any:
        return self._board.step(step)

    def answer(self) -> str:
        from click.testing import CliRunner

        from fmapboard.cli.main import fmapboard

        self._board.close()
        return CliRunner().invoke(fmapboard, ["why", str(self.run)]).output


TOOLS: dict[str, type[Attached]] = {
    "fmapboard": Fmapboard,
    "torchmortem": Torchmortem,
    "torch-audit": TorchAudit,
    "runmedic": Runmedic,
    "trainspotter": Trainspotter,
    "torchtest2": Torchtest2,
    "guardtower": Guardtower,
}
"""Name of the distribution -> how it is attached."""


def says(tool: str, train: Callable[[Callable[..., Attached]], object]) -> tuple[str, str]:
    """The text of a tool on a training, and why there is none, or why the training ended.

    Args:
        tool: its name.
        train: trains with a function in place of ``fmapboard.watch``.
    """
    boards: list[Attached] = []

    def watch(*arguments: Any, **options: Any) -> Attached:
        if boards and issubclass(TOOLS[tool], OneBatch):
            raise NotOneBatch("several models are trained in turn")
        boards.append(TOOLS[tool](*arguments, **options))
        return boards[-1]

    error = ""
    warnings.simplefilter("ignore")  # of torch and of the tools, on stderr
    with losses_given_to(boards):
        try:
            train(watch)
        except (Enough, NotOneBatch) as ended:
            error = str(ended)
        except Exception as raised:
            error = f"the training ended with {type(raised).__name__}: {raised}"
    texts = []
    for board in boards:
        try:
            board.close()
        except NotOneBatch as reason:
            error = error or str(reason)
        texts.append(board.text or "")
    return "\n".join(text for text in texts if text), error
