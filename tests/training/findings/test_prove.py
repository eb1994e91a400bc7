"""Causes are proven or refuted by training copies of the network without them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from checked_runs import check, why
from tab_client import open_tab
from torch import Tensor, nn
from torch.nn import functional

import fmapboard
from fmapboard.checks import Finding
from fmapboard.errors import ConfigurationError
from fmapboard.formats.checks import Proof
from fmapboard.rehearsal import prove
from fmapboard.rehearsal.prove import Ends, Experiments

Loss = Callable[[Tensor, Tensor], Tensor]


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(3), nn.Flatten(), nn.Linear(72, 5)
    )


def batches(count: int = 30) -> Iterator[tuple[Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(1)
    means = torch.randn(5, 3, 8, 8, generator=generator)
    for _ in range(count):
        labels = torch.randint(5, (16,), generator=generator)
        yield means[labels] + torch.randn(16, 3, 8, 8, generator=generator), labels


def trained(
    board: Any, model: nn.Module, optimizer: Any, loss: Loss = functional.cross_entropy
) -> list[float]:
    losses = []
    for images, labels in batches():
        value = loss(model(images), labels)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return losses


def watched(model: nn.Module, folder: Path, optimizer: Any, **options: Any) -> Any:
    return fmapboard.watch(model, folder, optimizer=optimizer, every=3, prove=True, **options)


def sgd(model: nn.Module, lr: float) -> torch.optim.SGD:
    return torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)


def kept_of(board: Any) -> Any:
    board.flush()
    return board._run.session.kept


def tried(board: Any, **causes: str) -> dict[str, Proof]:
    """What experiments show of findings of these kinds, with these cures."""
    kept = kept_of(board)
    found = [
        Finding(kind=kind, message="", since_step=0, cure=cures) for kind, cures in causes.items()
    ]
    return Experiments(kept.model, kept, None, 60.0).prove(found)


def test_a_cause_is_proven_in_every_place_and_the_training_stays_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    control = network()
    expected = trained(None, control, sgd(control, 3.0))
    random = torch.rand(1)
    model = network()
    optimizer = sgd(model, 3.0)
    with watched(model, run, optimizer) as board:
        losses = trained(board, model, optimizer)
    assert repr(losses) == repr(expected)
    assert torch.equal(torch.rand(1), random)
    for own, other in zip(model.parameters(), control.parameters(), strict=True):
        assert torch.equal(own, other)
        assert own.grad is not None
    summary = json.loads((run / "fmapboard_summary.json").read_text())
    assert summary["cause"]["kind"] == "updates_too_large"
    proof = summary["cause"]["proof"]
    assert (proof["outcome"], proof["steps"]) == ("proven", 50)
    assert proof["cure"].startswith("lower_rate")
    assert proof["cured"][1] < 0.5 * proof["as_it_is"][1]
    line = next(line for line in why(capsys, run)[1].splitlines() if "proof: " in line)
    assert line.startswith("proof: proven: as it is ")
    assert line.removeprefix("proof: p") in check(capsys, run)[1]
    assert json.loads(why(capsys, "--json", run)[1])["cause"]["proof"] == proof
    tab = open_tab(tmp_path)
    shown = tab.ask("data/findings", run="run")
    assert shown["line"]["text"].endswith(line.removeprefix("proof: "))
    (stated,) = tab.ask("data/verdicts", run="run")["verdicts"]
    assert stated["text"] == shown["line"]["text"]


def test_a_cause_that_is_not_there_is_refuted_and_no_longer_first(tmp_path: Path) -> None:
    model = network()
    optimizer = sgd(model, 0.05)
    with watched(model, tmp_path, optimizer) as board:
        trained(board, model, optimizer)
        found = tried(
            board,
            updates_too_small="higher_rate",
            loss_climbed="turned_sign",
            eval_mode="train_mode",
            not_in_optimizer="all_parameters",
            double_softmax="no_activation",
        )
    assert {kind: proof.outcome for kind, proof in found.items()} == dict.fromkeys(
        ("updates_too_small", "loss_climbed", "eval_mode", "not_in_optimizer", "double_softmax"),
        "refuted",
    )
    assert found["eval_mode"].why == "every module is in training mode"


def test_where_both_copies_learn_a_cause_that_is_there_stays_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = network()
    optimizer = torch.optim.Adam(model[-1:].parameters(), lr=0.02)
    with watched(model, tmp_path / "run", optimizer) as board:
        trained(board, model, optimizer)
        found = tried(
            board,
            not_in_optimizer="all_parameters",
            gradients_not_cleared="zero_grad",
        )
    assert {kind: proof.outcome for kind, proof in found.items()} == {
        "not_in_optimizer": "inconclusive",
        "gradients_not_cleared": "refuted",
    }
    assert found["gradients_not_cleared"].why == "the gradients are cleared"
    lines = why(capsys, tmp_path / "run")[1].splitlines()
    assert any(line.startswith("cause: not_in_optimizer") for line in lines)
    assert any(line.startswith("proof: inconclusive: as it is ") for line in lines)


@pytest.mark.parametrize(
    ("cure", "as_it_is", "cured", "outcome"),
    [
        ("new_weights", (46.0, 0.65), (1.8, 0.28), "inconclusive"),  # costs 44 at the first step
        ("new_weights", (1.9, 0.65), (1.8, 0.28), "refuted"),
        ("new_weights", (46.0, 1.79), (1.8, 0.28), "proven"),
        ("new_weights", (46.0, 0.65), (1.8, 1.9), "refuted"),  # without it nothing is learnt
        ("zero_grad", (1.8, 6.8), (1.8, 2.0), "inconclusive"),  # another cause is left
        ("zero_grad", (1.8, 6.8), (1.8, 7.0), "refuted"),
        ("zero_grad", (1.8, 6.8), (1.8, 0.9), "proven"),
        ("zero_grad", (1.8, float("nan")), (1.8, 2.0), "inconclusive"),
        ("lower_rate", (1.8, 6.8), (1.8, 2.0), "refuted"),
        ("lower_rate", (1.8, float("nan")), (1.8, 0.9), "proven"),
        ("lower_rate", (1.8, 0.9), (1.8, float("nan")), "refuted"),
    ],
)
def test_a_cause_that_is_there_is_refuted_only_where_the_loss_is_no_lower_without_it(
    cure: str, as_it_is: tuple[float, float], cured: tuple[float, float], outcome: str
) -> None:
    assert prove._outcome(Ends(*as_it_is), Ends(*cured), cure) == outcome


@pytest.mark.parametrize(
    ("as_it_is", "without_both", "kept"),
    [(0.26, 1.77, False), (1.79, 0.5, True), (None, 0.5, True)],
)
def test_a_cause_is_proven_beside_another_only_if_the_loss_without_both_is_lower(
    as_it_is: float | None,
    without_both: float,
    kept: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In place of trainings: each cure alone is refuted, and both together seem to help."""

    def proof(*args: Any, **_: Any) -> Proof:
        cures, kind, without = args[2], args[3], args[4]
        outcome = "proven" if without else "refuted"
        cured = without_both if without else 1.8
        return Proof(outcome, cures[kind], 50, (1.8, as_it_is), (1.8, cured), without=without)

    model = network()
    optimizer = sgd(model, 0.05)
    with watched(model, tmp_path, optimizer) as board:
        trained(board, model, optimizer)
        monkeypatch.setattr(Experiments, "_proof", proof)
        found = tried(board, loss_climbed="turned_sign", updates_too_large="lower_rate")
        monkeypatch.undo()
    expected = "proven" if kept else "refuted"
    assert [proof.outcome for proof in found.values()] == [expected, expected]


def test_of_two_causes_at_once_each_is_proven_beside_the_other(tmp_path: Path) -> None:
    model = network()
    optimizer = sgd(model, 3e-6)
    with watched(model, tmp_path, optimizer) as board:
        trained(board, model, optimizer, loss=lambda o, y: -functional.cross_entropy(o, y))
        found = tried(board, loss_climbed="turned_sign", updates_too_small="higher_rate")
    assert [proof.outcome for proof in found.values()] == ["proven", "proven"]
    assert found["loss_climbed"].without == ("updates_too_small",)


def test_an_error_in_a_copy_is_the_reason_why_nothing_was_tried(tmp_path: Path) -> None:
    class Once(nn.Module):
        calls = 0

        def forward(self, maps: Tensor) -> Tensor:
            Once.calls += 1
            if Once.calls > 30:
                raise RuntimeError("no more")
            return maps

    model = network().append(Once())
    optimizer = sgd(model, 3.0)
    with watched(model, tmp_path, optimizer) as board:
        trained(board, model, optimizer)
    summary = json.loads((tmp_path / "fmapboard_summary.json").read_text())
    assert summary["cause"]["proof"]["outcome"] == "not tried"
    assert summary["cause"]["proof"]["why"] == "a copy's training failed (no more)"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            lambda board, patch: patch.setattr(prove, "world_size", lambda: 2),
            "several processes train, and a copy would train in one of them alone",
        ),
        (
            lambda board, patch: kept_of(board).batches.clear(),
            "no batch of a logged step was kept",
        ),
        (
            lambda board, patch: kept_of(board).optimizers.append(kept_of(board).optimizers[0]),
            "several optimizers train the network",
        ),
    ],
)
def test_what_prevents_an_experiment_is_said(
    change: Callable[..., Any], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = network()
    optimizer = sgd(model, 3.0)
    with watched(model, tmp_path, optimizer) as board:
        trained(board, model, optimizer)
        change(board, monkeypatch)
        (proof,) = tried(board, updates_too_large="lower_rate").values()
    assert (proof.outcome, proof.why) == ("not tried", reason)


def test_a_time_that_is_over_is_said(tmp_path: Path) -> None:
    model = network()
    optimizer = sgd(model, 3.0)
    with watched(model, tmp_path, optimizer) as board:
        trained(board, model, optimizer)
        kept = kept_of(board)
        ticks = iter(range(10_000))
        found = [Finding(kind="updates_too_large", message="", since_step=0, cure="lower_rate")]
        clock = lambda: float(next(ticks))  # noqa: E731
        (proof,) = Experiments(kept.model, kept, None, 60.0, clock).prove(found).values()
        assert proof.why.startswith("60 s were over")
        (proof,) = Experiments(kept.model, kept, None, 3.0, clock).prove(found).values()
        assert (proof.outcome, proof.why) == ("not tried", "3 s were over after 1 steps")


def test_batches_are_copied_once_a_loader_uses_their_memory_again(tmp_path: Path) -> None:
    model = network()
    optimizer = sgd(model, 0.05)
    memory = torch.empty(16, 3, 8, 8)
    expected = []
    with watched(model, tmp_path, optimizer) as board:
        for step, (images, labels) in enumerate(batches()):
            memory.numpy()[:] = images.numpy()
            functional.cross_entropy(model(memory), labels).backward()
            optimizer.step()
            if step % 3 == 0:
                expected.append(images)
        kept = kept_of(board)
        assert kept.copies
        for batch in kept.batches:
            assert batch.is_intact
            assert torch.equal(batch.received[0][0], expected[batch.step // 3])


def test_of_a_large_batch_the_first_samples_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fmapboard.session.kept_batches.MAX_BYTES_PER_BATCH", 4 * 3 * 64 * 8)
    model = network()
    optimizer = sgd(model, 3.0)
    with watched(model, tmp_path, optimizer) as board:
        trained(board, model, optimizer)
        assert {len(batch.received[0][0]) for batch in kept_of(board).batches} == {8}
        (proof,) = tried(board, updates_too_large="lower_rate").values()
    assert proof.outcome == "proven"


def test_without_prove_nothing_is_kept_and_why_says_how_to_get_a_proof(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = network()
    optimizer = sgd(model, 3.0)
    with fmapboard.watch(model, tmp_path, optimizer=optimizer, every=3) as board:
        trained(board, model, optimizer)
        assert board._run.session.kept is None
        with pytest.raises(ConfigurationError, match="prove=True"):
            board.prove()
    lines = why(capsys, tmp_path)[1].splitlines()
    assert lines[-1].startswith("proof: none was tried; watch(..., prove=True)")
    assert "proof" not in (tmp_path / "fmapboard_summary.json").read_text()


def test_a_proof_in_the_middle_is_kept_by_later_steps(tmp_path: Path) -> None:
    model = network()
    optimizer = sgd(model, 3.0)
    with watched(model, tmp_path, optimizer) as board:
        trained(board, model, optimizer)
        verdict = board.prove()
        assert verdict.cause.proof.outcome == "proven"
        before = board.logged_steps
        trained(board, model, optimizer)
        assert board.logged_steps == before + 10
        board.flush()
        assert board._run.pipeline.verdict.cause.proof == verdict.cause.proof


@pytest.mark.parametrize("given", ["yes", -1, float("nan"), None])
def test_prove_takes_a_number_of_seconds(given: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="prove="):
        fmapboard.watch(network(), tmp_path, prove=given)


def test_with_the_loss_that_is_given_a_squared_error_is_tried(tmp_path: Path) -> None:
    model = network()
    optimizer = sgd(model, 1e-6)
    with watched(model, tmp_path, optimizer) as board:

        def squared(output: Tensor, labels: Tensor) -> Tensor:
            loss = functional.mse_loss(output, functional.one_hot(labels, 5).float())
            board.loss(loss)
            return loss

        losses = trained(board, model, optimizer, loss=squared)
        found = tried(board, updates_too_small="higher_rate", loss_climbed="turned_sign")
    assert {kind: proof.outcome for kind, proof in found.items()} == {
        "updates_too_small": "proven",
        "loss_climbed": "refuted",
    }
    assert found["updates_too_small"].as_it_is[0] == pytest.approx(losses[0], rel=1e-5)


def test_a_step_of_lbfgs_counts_once(tmp_path: Path) -> None:
    model = network()
    optimizer = torch.optim.LBFGS(model.parameters(), lr=50.0, max_iter=4)
    with watched(model, tmp_path, optimizer) as board:
        for images, labels in batches(12):

            def closure(images: Tensor = images, labels: Tensor = labels) -> float:
                optimizer.zero_grad()
                loss = functional.cross_entropy(model(images), labels)
                loss.backward()
                return loss.item()

            optimizer.step(closure)
        found = tried(board, updates_too_large="lower_rate")
    assert (found["updates_too_large"].outcome, found["updates_too_large"].steps) == ("proven", 50)


def test_ctrl_c_in_an_experiment_reaches_the_user_and_leaves_the_training(tmp_path: Path) -> None:
    class Interrupted(nn.Sequential):
        calls = 0
        ends_at = 0

        def forward(self, x: Tensor) -> Tensor:
            self.calls += 1
            if self.calls == self.ends_at:
                raise KeyboardInterrupt
            output: Tensor = super().forward(x)
            return output

    expected = network()
    losses = trained(None, expected, sgd(expected, 3.0))
    model = Interrupted(*network())
    optimizer = sgd(model, 3.0)
    board = watched(model, tmp_path, optimizer)
    assert repr(trained(board, model, optimizer)) == repr(losses)
    model.ends_at = model.calls + 20
    random = torch.get_rng_state()
    with pytest.raises(KeyboardInterrupt):
        board.close()
    assert torch.equal(torch.get_rng_state(), random)
    assert torch.is_grad_enabled()
    assert all(map(torch.equal, model.parameters(), expected.parameters()))
    assert board.is_closed
    assert [len(module._forward_hooks) for module in model.modules()] == [0] * 6
