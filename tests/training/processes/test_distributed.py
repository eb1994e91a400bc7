"""Two gloo processes that train one network: rank 0 writes the norms of the averaged gradient."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from run_reader import read, tags_of
from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator
from tensorboard.util import tensor_util
from two_ranks import run_ranks

from fmapboard.formats.tab_records import unpack

HERE = Path(__file__).parent
OFTEN = ("ddp", "parts", "fsdp", "flat", "compiled(ddp)", "compiled(fsdp)")
SELDOM = ("original", "ddp(compiled)", "compiled(original)")
"""Kinds that only the sweep trains: FSDP1 with the original parameters, DDP of a compiled model."""


NORMS = {"gradient_norm", "gradient_norm_before_clipping"}
MISSING = {
    **dict.fromkeys(("norms", "one gradient", "sent norms"), NORMS),
    "chosen pass": {"gradient_norm"},
}
"""What rank 0 cannot write when something fails on rank 1; of everything else it has all tags."""

ALONE = {
    *("hooks", "parameters", "chosen pass", "result", "transfer", "finalized"),
    "shared statistics",
}
"""What leaves rank 1 without statistics to share at step 1."""


@dataclass(frozen=True)
class Trained:
    """What the ranks of all trainings recorded; the files of a kind are in a folder of its name.

    One pair of processes trains several kinds: to import torch takes longer than to train.
    """

    folder: Path

    def ranks(self, kind: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """What both ranks recorded unwatched, and watched."""
        skip_if_not_trainable(kind)
        if not (self.folder / kind).exists():
            kinds = [other for other in (OFTEN if kind in OFTEN else SELDOM) if is_trainable(other)]
            for other in kinds:
                (self.folder / other).mkdir()
            run_ranks("distributed_training.py", self.folder, *kinds, FMAPBOARD_ON_ERROR="raise")
        bare, seen = (
            [json.loads((self.folder / kind / f"{name}{r}.json").read_text()) for r in range(2)]
            for name in ("bare", "seen")
        )
        return bare, seen

    def run(self, kind: str, rank: int = 0) -> Path:
        return self.folder / kind / f"run{rank}"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return Trained(tmp_path_factory.mktemp("distributed"))


def each(*kinds: str) -> list[Any]:
    """The kinds as parameters, of which CI has some."""
    return [pytest.param(k, marks=pytest.mark.sweep if k in SELDOM else ()) for k in kinds]


def is_trainable(kind: str) -> bool:
    """Whether this torch can; ``fully_shard`` of torch 2.6 cannot run on a CPU at all."""
    return "fsdp" not in kind or torch.__version__ >= "2.7"


def skip_if_not_trainable(kind: str) -> None:
    if not torch.distributed.is_available():
        pytest.skip("torch without distributed")
    if not is_trainable(kind):
        pytest.skip("fully_shard of torch 2.6 cannot run on a CPU at all")


@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_ranks_train_as_if_unwatched_and_rank_0_writes_the_true_norms(
    trained: Trained, kind: str
) -> None:
    bare, seen = trained.ranks(kind)
    assert [rank["state"] for rank in seen] == [rank["state"] for rank in bare]
    assert seen[0]["state"] == seen[1]["state"]
    assert not trained.run(kind, 1).exists()
    said = [rank["messages"] for rank in seen]
    assert said[1] == []
    expected = ["fmapboard: the probe is not drawn:"] if kind == "fsdp" else []
    assert [text[:34] for text in said[0]] == expected
    accumulator = read(trained.run(kind))
    logged = accumulator.Tensors("gradient_norm/total")
    assert [event.step for event in logged] == [0, 2, 4]
    for event in logged:
        norm = float(tensor_util.make_ndarray(event.tensor_proto))
        assert norm == pytest.approx(seen[0]["norms"][event.step], rel=1e-5)
    if kind == "ddp":
        assert_statistics_are_of_both_batches(accumulator, seen)
    tags = tags_of(accumulator)
    for tag in (
        "feature_maps_8x3x3x3/stem",
        "feature_maps_9x8x3x3/deep",
        "gradients_of_maps_9x8x3x3/deep",
        "kernels_9x8x3x3/deep",
        "gradient_norm/deep.weight",
        "dead_channels/relu.call2",
    ):
        assert tag in tags


def test_ranks_that_call_parts_of_a_model_train_as_if_unwatched(trained: Trained) -> None:
    bare, seen = trained.ranks("parts")
    assert [rank["state"] for rank in seen] == [rank["state"] for rank in bare]
    assert seen[0]["state"] == seen[1]["state"]
    assert [rank["messages"] for rank in seen] == [[], []]
    accumulator = read(trained.run("parts"))
    for event in accumulator.Tensors("gradient_norm/total"):
        norm = float(tensor_util.make_ndarray(event.tensor_proto))
        assert norm == pytest.approx(seen[0]["norms"][event.step], rel=1e-5)
    assert "network_input/sample_0" in tags_of(accumulator)


@pytest.mark.parametrize("kind", each("flat", "original"))
def test_parameters_that_fsdp1_has_flattened_are_not_read_and_maps_are_logged(
    trained: Trained, kind: str
) -> None:
    bare, seen = trained.ranks(kind)
    assert [rank["state"] for rank in seen] == [rank["state"] for rank in bare]
    assert not trained.run(kind, 1).exists()
    tags = tags_of(read(trained.run(kind)))
    assert {
        *("feature_maps_8x3x3x3/stem", "gradients_of_maps_9x8x3x3/deep"),
        *("dead_channels/relu.call2", "activations/deep", "attribution/relu.call2/sample_0"),
    } <= set(tags)
    of_parameters = ("kernels", "gradient_norm", "update_ratio", "weights", "gradients/", "biases")
    assert not [tag for tag in tags if tag.startswith(of_parameters)]


@pytest.mark.parametrize("kind", each("ddp(compiled)", "compiled(ddp)"))
def test_compiled_ranks_train_as_if_unwatched_and_their_maps_are_logged(
    trained: Trained, kind: str
) -> None:
    bare, seen = trained.ranks(kind)
    assert [rank["state"] for rank in seen] == [rank["state"] for rank in bare]
    assert [rank["messages"] for rank in seen] == [[], []]
    accumulator = read(trained.run(kind))
    for tag in ("gradient_norm/total", "feature_maps_8x3x3x3/stem", "feature_maps_9x8x3x3/deep"):
        assert [event.step for event in accumulator.Tensors(tag)] == [0, 2, 4]


@pytest.mark.parametrize("kind", each("compiled(fsdp)", "compiled(original)"))
def test_compiled_ranks_with_sharded_parameters_run_no_pass_of_ours_and_say_so_once(
    trained: Trained, kind: str
) -> None:
    bare, seen = trained.ranks(kind)
    assert [rank["state"] for rank in seen] == [rank["state"] for rank in bare]
    (said,) = [text for text in seen[0]["messages"] if "compiled" in text]
    assert "its parameters are sharded over ranks, which would wait for each other" in said
    tags = tags_of(read(trained.run(kind)))
    assert not [tag for tag in tags if tag.startswith("feature_maps_")]


def assert_statistics_are_of_both_batches(
    accumulator: EventAccumulator, seen: list[dict[str, Any]]
) -> None:
    for event in accumulator.Tensors("fmapboard/stem"):
        _, arrays = unpack(event.tensor_proto.string_val)
        both = np.concatenate([rank["stem"][event.step] for rank in seen], axis=1)  # [C, N*S]
        for name, expected in (
            ("minimum", both.min(1)), ("maximum", both.max(1)),
            ("mean", both.mean(1)), ("std", both.std(1)),
        ):  # fmt: skip
            assert arrays[f"feature_maps.{name}"] == pytest.approx(expected, rel=1e-4, abs=1e-6)


Runs = dict[str, dict[str, Any]]


@pytest.fixture(scope="module", params=["", pytest.param("all ways", marks=pytest.mark.sweep)])
def faults(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """The folder in which both ranks recorded their trainings with faults, of all kinds."""
    if not torch.distributed.is_available():
        pytest.skip("torch without distributed")
    folder = tmp_path_factory.mktemp("faults")
    kinds = [kind for kind in ("ddp", "fsdp") if is_trainable(kind)]
    environment = {"FMAPBOARD_ON_ERROR": "", "ALL_WAYS": request.param}
    run_ranks("distributed_faults.py", folder, *kinds, **environment)
    return folder


def both_ranks(folder: Path, kind: str) -> tuple[Runs, Runs]:
    """What rank 0 and rank 1 recorded, of which rank 1 fails; both trained as if unwatched."""
    skip_if_not_trainable(kind)
    sane, failing = (json.loads((folder / f"{kind}{rank}.json").read_text()) for rank in range(2))
    bare = sane.pop("bare")
    assert failing.pop("bare") == bare
    assert {name for name, run in sane.items() if run["state"] != bare} == set()
    assert {name for name, run in failing.items() if run["state"] != bare} == set()
    return sane, failing


def test_a_failure_on_one_rank_of_fsdp_leaves_the_others_training(faults: Path) -> None:
    sane, failing = both_ranks(faults, "fsdp")
    for name, run in failing.items():
        assert any("made to fail" in text for text in run["messages"]) == ("none" not in name), name
    complete = set(sane["none, counted, steps [1]"]["tags"]["1"])
    assert "gradient_norm_before_clipping/total" in complete
    for name, run in sane.items():
        assert list(run["tags"]) == ["0", "1", "2"], name
        missing = {step: complete - set(tags) for step, tags in run["tags"].items()}
        what = name.split(",")[0]
        assert {tag.split("/")[0] for tag in missing["1"]} == MISSING.get(what, set()), name
        if "[1]" in name:
            assert not missing["0"], name
            assert not missing["2"], name


def test_an_exception_that_is_caught_on_one_rank_costs_that_step_alone(faults: Path) -> None:
    sane, failing = both_ranks(faults, "ddp")
    control = sane["none, marked, steps [1]"]["means"]
    for name, step in (("caught error", "0"), ("caught error in the last step", "2")):
        assert sane[name]["messages"] == failing[name]["messages"] == []
        differing = {number for number in control if sane[name]["means"][number] != control[number]}
        assert differing == {step}


def test_statistics_are_merged_again_at_the_step_after_a_failure_on_one_rank(faults: Path) -> None:
    sane, failing = both_ranks(faults, "ddp")
    reference = sane["none, marked, steps [1]"]
    complete = {step: set(tags) for step, tags in reference["tags"].items()}
    special = {"full disk", "early close", "other numbers", "exchange"}
    special |= {"caught error", "caught error in the last step"}
    for name, run in sane.items():
        if name in special:
            continue
        assert run["messages"] == [], name
        assert {step: set(tags) for step, tags in run["tags"].items()} == complete, name
        other = {step for step in complete if run["means"][step] != reference["means"][step]}
        if name.endswith("marked, steps [1]"):
            what = name.split(",")[0]
            # After three errors in all, a layer is not hooked any more.
            assert other == ({"1", "2"} if what == "a hook" else {"1"} if what in ALONE else set())
    assert sane["full disk"]["means"] == {s: reference["means"][s] for s in ("0", "2")}
    for name in ("early close", "exchange"):
        (message,) = sane[name]["messages"]
        assert "from step 1 on, statistics are those of this rank's batch" in message
        assert sane[name]["means"]["0"] == reference["means"]["0"]
        assert sane[name]["means"]["1"] != reference["means"]["1"]
    for run in (sane["other numbers"], failing["other numbers"]):
        assert "the ranks are at different steps: [0, 10]" in run["messages"][0]
        assert len(run["messages"]) == 1
