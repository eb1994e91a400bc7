"""Event files through TensorBoard's data providers: tab records, resumed runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from data_providers import provider_of, read_steps
from event_files import write
from tensorboard.context import RequestContext

from fmapboard.formats.tab_records import PLUGIN_NAME, unpack

both_loaders = pytest.mark.parametrize("loader", ["fast", "python"])


@both_loaders
def test_the_tabs_records_are_blob_sequences_of_our_plugin(tmp_path: Path, loader: str) -> None:
    write(tmp_path, 0, 1, 2)
    ctx = RequestContext()
    with provider_of(tmp_path, loader) as provider:
        listed = provider.list_blob_sequences(ctx, experiment_id="", plugin_name=PLUGIN_NAME)
        assert {run: set(tags) for run, tags in listed.items()} == {".": {"fmapboard/conv"}}
        assert listed["."]["fmapboard/conv"].max_step == 2
        assert listed["."]["fmapboard/conv"].max_length == 2
        read = provider.read_blob_sequences(
            ctx, experiment_id="", plugin_name=PLUGIN_NAME, downsample=50
        )["."]["fmapboard/conv"]
        assert [datum.step for datum in read] == [0, 1, 2]
        for datum in read:
            blobs = [provider.read_blob(ctx, blob_key=r.blob_key) for r in datum.values]
            header, arrays = unpack(blobs)
            assert header["step"] == datum.step
            assert arrays["feature_maps.lo"].shape == (1, 1)


@both_loaders
def test_resuming_makes_tensorboard_discard_the_steps_from_the_start_step_on(
    tmp_path: Path, loader: str
) -> None:
    write(tmp_path, 0, 10, 20, 30, 40)
    write(tmp_path, 20, 30, start_step=15)
    with provider_of(tmp_path, loader) as provider:
        assert read_steps(provider, "scalars", "gradient_norm/total") == [0, 10, 20, 30]


@both_loaders
def test_a_second_resume_purges_again(tmp_path: Path, loader: str) -> None:
    write(tmp_path, 0, 10, 20)
    write(tmp_path, 10, 20, 30, 40, start_step=10)
    write(tmp_path, 30, start_step=21)
    with provider_of(tmp_path, loader) as provider:
        assert read_steps(provider, "scalars", "gradient_norm/total") == [0, 10, 20, 30]


def test_a_resumed_run_that_logs_no_step_discards_nothing(tmp_path: Path) -> None:
    write(tmp_path, 0, 10, 20)
    write(tmp_path, start_step=10)
    with provider_of(tmp_path, "python") as provider:
        assert read_steps(provider, "scalars", "gradient_norm/total") == [0, 10, 20]


@both_loaders
def test_a_run_that_goes_on_without_a_start_step_keeps_the_steps_before_its_first(
    tmp_path: Path, loader: str
) -> None:
    write(tmp_path, 0, 10, 20, 30)
    write(tmp_path, 20)
    with provider_of(tmp_path, loader) as provider:
        assert read_steps(provider, "scalars", "gradient_norm/total") == [0, 10, 20]
