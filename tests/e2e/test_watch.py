"""`fmapboard.watch` in real training loops, read back with TensorBoard's own reader."""

from __future__ import annotations

import gc
import logging
import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator
from torch import Tensor, nn
from torch.nn import functional

import fmapboard
import fmapboard.tab_format
from fmapboard.records import LoggedStep
from fmapboard.writers.memory import MemoryWriter


class Net(nn.Module):
    """Convolutions at two depths, an in-place ReLU behind one, BatchNorm and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 5, padding=2)
        self.relu = nn.ReLU(inplace=True)
        self.inner = nn.Sequential(nn.Sequential(nn.Conv2d(8, 16, 3), nn.BatchNorm2d(16)))
        self.head = nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        maps = self.inner(self.relu(self.stem(x)))
        return self.head(functional.relu(maps).mean((2, 3)))


def batch(size: int = 4) -> tuple[Tensor, Tensor]:
    return torch.randn(size, 3, 12, 12), torch.randint(0, 4, (size,))


def train_step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    x, y = batch()
    optimizer.zero_grad()
    functional.cross_entropy(model(x), y).backward()
    optimizer.step()


def numbers(steps: list[LoggedStep]) -> list[int]:
    return [step.step for step in steps]


def tags(step: LoggedStep) -> set[str]:
    series = [*step.pictures, *step.histograms, *step.records]
    return {item.tag for item in series} | set(step.scalars)


def hooks(model: nn.Module) -> int:
    return sum(
        len(m._forward_hooks) + len(m._forward_pre_hooks) + len(m._backward_hooks)
        for m in model.modules()
    )


def read(run: Path) -> EventAccumulator:
    """What TensorBoard's Python loader makes of a run, every record kept."""
    accumulator = EventAccumulator(
        str(run),
        size_guidance={"tensors": 0},
        tensor_size_guidance=dict.fromkeys(("images", "histograms", "scalars"), 0),
    )
    accumulator.Reload()
    return accumulator


def steps_of(accumulator: EventAccumulator, tag: str) -> list[int]:
    return [event.step for event in accumulator.Tensors(tag)]


def test_an_optimizer_counts_the_steps_and_every_names_those_that_are_logged() -> None:
    model, kept = Net(), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=3) as board:
        for _ in range(8):
            train_step(model, optimizer)
    assert numbers(kept.steps) == [0, 3, 6]
    assert board.logged_steps == 3


def test_steps_marked_by_hand_carry_their_number() -> None:
    model, kept = Net(), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    board = fmapboard.watch(model, writer=kept, every=10)
    for number in (0, 5, 10, 20):
        with board.step(number):
            train_step(model, optimizer)
    board.close()
    board.close()
    assert numbers(kept.steps) == [0, 10, 20]


def test_step_decides_where_an_optimizer_is_given_as_well() -> None:
    model, kept = Net(), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1) as board:
        for number in (40, 41):
            with board.step(number):
                train_step(model, optimizer)
    assert numbers(kept.steps) == [40, 41]


def test_a_logged_step_holds_everything_that_is_promised_for_a_layer() -> None:
    model, kept = Net(), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(
        model, writer=kept, optimizer=optimizer, every=1, inputs=True, activation_gradients=True
    ):
        train_step(model, optimizer)
    assert tags(kept.steps[0]) == {
        *(f"{role}_8x3x5x5/stem" for role in ("feature_maps", "inputs", "gradients_of_maps")),
        *(f"{r}_16x8x3x3/inner.0.0" for r in ("feature_maps", "inputs", "gradients_of_maps")),
        "kernels_8x3x5x5/stem",
        "kernels_16x8x3x3/inner.0.0",
        "network_input/sample_0",
        *(
            f"{group}/{layer}"
            for group in ("activations", "inputs", "activation_gradients")
            for layer in ("stem", "inner.0.0")
        ),
        *(
            f"{group}/{layer}.{part}"
            for group in ("weights", "gradients")
            for layer in ("stem", "inner.0.0")
            for part in ("weight", "bias")
        ),
        "gradient_norm/total",
        *(f"gradient_norm/{name}" for name, _ in model.named_parameters()),
        *(
            f"{group}/{layer}"
            for group in ("constant_channels", "nonfinite")
            for layer in ("stem", "inner.0.0", "relu")
        ),
        "dead_channels/relu",
        "fmapboard/logged_step_ms",
        *(
            f"{p}/{layer}"
            for p in ("fmapboard", "fmapboard_first")
            for layer in ("stem", "inner.0.0")
        ),
    }


def test_inputs_and_gradients_of_maps_are_written_on_request_only() -> None:
    model, kept = Net(), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1):
        train_step(model, optimizer)
    groups = {tag.split("/")[0] for tag in tags(kept.steps[0])}
    assert not {g for g in groups if g.startswith(("inputs", "gradients_of_maps", "activation_g"))}


def test_kernels_are_drawn_on_their_own_slower_schedule() -> None:
    model, kept = Net(), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1):
        for _ in range(11):
            train_step(model, optimizer)
    drawn = [s.step for s in kept.steps if any(p.role == "kernels" for p in s.pictures)]
    assert drawn == [0, 10]


def test_kernels_are_those_that_the_forward_pass_used() -> None:
    model, kept = Net(), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    peak = model.stem.weight.abs().max().item()
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1):
        train_step(model, optimizer)
    assert model.stem.weight.abs().max().item() != peak
    record = next(r for r in kept.steps[0].records if r.tag == "fmapboard/stem")
    header, _ = fmapboard.tab_format.unpack(record.blobs)
    kernels = next(p for p in header["pictures"] if p["role"] == "kernels")
    assert kernels["peak"] == pytest.approx(peak)


@pytest.mark.parametrize("most", [2, 3])
def test_kernels_are_rgb_where_the_weight_has_three_inputs_however_few_are_drawn(most: int) -> None:
    model, kept = Net(), MemoryWriter()
    with fmapboard.watch(model, writer=kept, max_channels=most) as board, board.step(0):
        model(batch()[0])
    stem, inner = (p.rasters[0] for p in kept.steps[0].pictures if p.role == "kernels")
    assert stem.palette is None
    assert stem.pixels.shape[2] == 3
    assert inner.palette is not None
    assert inner.pixels.shape == (1 + 4 * most, 1 + 4 * most)


def test_gradient_norms_are_those_that_the_optimizer_used() -> None:
    model, kept = Net(), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1):
        x, y = batch()
        functional.cross_entropy(model(x), y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.01)
        expected = {n: p.grad.double().norm().item() for n, p in model.named_parameters()}
        optimizer.step()
    scalars = kept.steps[0].scalars
    for name, norm in expected.items():
        assert scalars[f"gradient_norm/{name}"] == pytest.approx(norm, rel=1e-5)
    total = math.sqrt(sum(norm**2 for norm in expected.values()))
    assert scalars["gradient_norm/total"] == pytest.approx(total, rel=1e-5)


def test_samples_gives_one_grid_each_and_never_colour() -> None:
    model, kept = Net(), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1, samples=3):
        train_step(model, optimizer)
    maps = next(p for p in kept.steps[0].pictures if p.tag == "feature_maps_8x3x5x5/stem")
    assert [raster.pixels.shape for raster in maps.rasters] == [(58, 30)] * 3
    inputs = [p.tag for p in kept.steps[0].pictures if p.role == "network_input"]
    assert inputs == [f"network_input/sample_{k}" for k in range(3)]


def test_a_probe_draws_the_same_images_at_every_step_and_numbers_stay_live() -> None:
    model, kept = Net(), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    probe = torch.randn(2, 3, 12, 12)
    model.eval()
    wanted = fmapboard.extract(model, probe)["stem"]
    model.train()
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1, probe=probe):
        train_step(model, optimizer)
        train_step(model, optimizer)
    first, second = (
        next(p for p in step.pictures if p.tag == "feature_maps_8x3x5x5/stem")
        for step in kept.steps
    )
    assert len(first.rasters) == 2
    for a, b in zip(first.rasters, second.rasters, strict=True):
        assert (a.pixels == b.pixels).all()
    measured = next(m for m in kept.steps[0].statistics if m.site.label == "stem")
    assert measured.planes is not None
    assert measured.planes.hi[0, 0] == pytest.approx(wanted[0, 0].max().item())
    assert measured.planes.shape == (2, 8, 12, 12)
    live = [next(m for m in s.statistics if m.site.label == "stem") for s in kept.steps]
    assert live[0].statistics.maximum[0] != live[1].statistics.maximum[0]


def test_a_validation_pass_between_steps_is_not_captured() -> None:
    model, kept = Net(), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1):
        model.eval()
        with torch.no_grad():
            model(torch.full((4, 3, 12, 12), 100.0))
        model.train()
        train_step(model, optimizer)
    stem = next(m for m in kept.steps[0].statistics if m.site.label == "stem")
    assert stem.statistics.maximum.max() < 50


def test_with_accumulation_the_first_forward_is_drawn_and_the_norm_is_of_the_sum() -> None:
    model, kept = Net(), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1):
        for scale in (1.0, 1000.0):
            model(torch.full((4, 3, 12, 12), scale)).sum().backward()
        expected = model.head.bias.grad.norm().item()
        optimizer.step()
    stem = next(m for m in kept.steps[0].statistics if m.site.label == "stem")
    assert stem.statistics.maximum.max() < 50
    assert kept.steps[0].scalars["gradient_norm/head.bias"] == pytest.approx(expected)


def test_hooks_are_there_only_while_a_step_is_logged() -> None:
    model, kept = Net(), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    board = fmapboard.watch(model, writer=kept, optimizer=optimizer, every=2)
    assert hooks(model) > 0
    train_step(model, optimizer)
    assert hooks(model) == 0
    train_step(model, optimizer)
    assert hooks(model) > 0
    board.close()
    assert hooks(model) == 0
    assert len(optimizer._optimizer_step_post_hooks) == 0


def test_an_exception_in_training_leaves_no_hooks_and_everything_written_on_disk(
    tmp_path: Path,
) -> None:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    board = fmapboard.watch(model, tmp_path, every=1)
    with board.step(0):
        train_step(model, optimizer)
    with pytest.raises(RuntimeError, match="size"), board.step(1):
        model(batch()[0]) + torch.zeros(7)
    assert hooks(model) == 0
    assert steps_of(read(tmp_path), "feature_maps_8x3x5x5/stem") == [0]
    board.close()


def test_an_interrupt_inside_the_context_manager_leaves_no_hooks(tmp_path: Path) -> None:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def interrupted() -> None:
        with fmapboard.watch(model, tmp_path, optimizer=optimizer, every=1):
            train_step(model, optimizer)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert hooks(model) == 0
    assert steps_of(read(tmp_path), "gradient_norm/total") == [0]


def test_one_line_without_a_name_is_enough(tmp_path: Path) -> None:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    fmapboard.watch(model, tmp_path, optimizer=optimizer, every=1)
    gc.collect()
    train_step(model, optimizer)
    train_step(model, optimizer)
    del optimizer
    gc.collect()
    assert hooks(model) == 0
    assert steps_of(read(tmp_path), "gradient_norm/total") == [0, 1]


@pytest.mark.parametrize("end", ["", "raise SystemExit(3)", "1 / 0"])
def test_a_script_that_just_ends_leaves_everything_on_disk(tmp_path: Path, end: str) -> None:
    script = f"""
import torch, fmapboard
model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.Flatten(), torch.nn.LazyLinear(2))
model(torch.zeros(1, 3, 8, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
fmapboard.watch(model, "run", optimizer=optimizer, every=1)
for _ in range(3):
    model(torch.randn(1, 3, 8, 8)).sum().backward()
    optimizer.step()
{end}
"""
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=False, capture_output=True)
    assert steps_of(read(tmp_path / "run"), "feature_maps_8x3x3x3/0") == [0, 1, 2]


def test_a_logger_marked_by_hand_that_is_forgotten_lets_go_of_everything(tmp_path: Path) -> None:
    model = Net()
    board = fmapboard.watch(model, tmp_path, every=1)
    window = board.step(0)
    window.__enter__()
    assert hooks(model) > 0
    del board, window
    gc.collect()
    assert hooks(model) == 0


def test_resuming_continues_the_run_and_voids_what_came_after(tmp_path: Path) -> None:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, tmp_path, optimizer=optimizer, every=1):
        for _ in range(4):
            train_step(model, optimizer)
    with fmapboard.watch(model, tmp_path, optimizer=optimizer, every=1, start_step=2) as board:
        train_step(model, optimizer)
        assert "next step 3" in repr(board)
    assert steps_of(read(tmp_path), "gradient_norm/total") == [0, 1, 2]


def test_names_keep_two_models_of_one_directory_apart(tmp_path: Path) -> None:
    models = {"generator": Net(), "critic": Net()}
    optimizers = {n: torch.optim.SGD(m.parameters(), lr=0.1) for n, m in models.items()}
    boards = [
        fmapboard.watch(m, tmp_path, optimizer=optimizers[n], every=1, name=n)
        for n, m in models.items()
    ]
    for _ in range(2):
        for name, model in models.items():
            train_step(model, optimizers[name])
    for board in boards:
        board.close()
    accumulator = read(tmp_path)
    assert len(list(tmp_path.glob("*tfevents*"))) == 1
    for name in models:
        assert steps_of(accumulator, f"{name}.gradient_norm/stem.weight") == [0, 1]
        assert steps_of(accumulator, f"{name}.feature_maps_8x3x5x5/stem") == [0, 1]


def test_the_users_summary_writer_gets_the_same_records_and_stays_open(tmp_path: Path) -> None:
    from torch.utils.tensorboard import SummaryWriter

    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    writer = SummaryWriter(str(tmp_path))
    with fmapboard.watch(model, writer=writer, optimizer=optimizer, every=1):
        train_step(model, optimizer)
    writer.add_scalar("mine", 1.0, 0)
    writer.close()
    accumulator = read(tmp_path)
    assert steps_of(accumulator, "feature_maps_16x8x3x3/inner.0.0") == [0]
    assert "mine" in accumulator.Tags()["tensors"]


def test_without_a_place_the_run_is_named_as_summary_writer_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    fmapboard.watch(Net(), comment="_lr0.1", filename_suffix=".mine").close()
    (run,) = (tmp_path / "runs").iterdir()
    assert run.name.endswith("_lr0.1")
    (file,) = run.iterdir()
    assert file.name.endswith(".mine")


def test_scaler_counts_the_steps_that_it_skips() -> None:
    model, kept = Net(), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=1)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, scaler=scaler, every=1):
        for bad in (False, True, False, False, True, True, False):
            x, y = batch()
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(x), y) * (math.inf if bad else 1.0)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    assert numbers(kept.steps) == [0, 1, 2, 3]
    assert [s.scalars["fmapboard/skipped_steps"] for s in kept.steps] == [0.0, 1.0, 1.0, 3.0]
    assert all(math.isfinite(s.scalars["gradient_norm/total"]) for s in kept.steps)


def test_a_step_marked_by_hand_that_the_scaler_skips_is_counted() -> None:
    model, kept = Net(), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    board = fmapboard.watch(model, writer=kept, scaler=scaler, every=1)
    for number, bad in enumerate((False, True, False)):
        with board.step(number):
            optimizer.zero_grad()
            loss = model(batch()[0]).sum() * (math.inf if bad else 1.0)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    board.close()
    assert [s.scalars["fmapboard/skipped_steps"] for s in kept.steps] == [0.0, 1.0, 1.0]
    assert ["gradient_norm/total" in s.scalars for s in kept.steps] == [True, False, True]


def test_gradients_of_maps_are_those_of_the_loss_and_not_of_the_scaled_loss() -> None:
    model, kept = Net(), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    x = batch()[0]
    true = fmapboard.extract_gradients(model, x, loss=torch.sum)["stem"].grad_output[0]
    with fmapboard.watch(
        model, writer=kept, optimizer=optimizer, scaler=scaler, activation_gradients=True
    ):
        scaler.scale(model(x).sum()).backward()
        scaler.step(optimizer)
    role = "gradients_of_maps"
    found = next(m for m in kept.steps[0].statistics if (m.site.label, m.role) == ("stem", role))
    assert found.statistics.maximum.max() == pytest.approx(true.max().item(), rel=1e-5)


def test_parametrized_and_lone_convolutions_have_histograms_of_their_weights() -> None:
    lone, kept = nn.Conv2d(3, 4, 3), MemoryWriter()
    nn.utils.parametrizations.weight_norm(lone)
    optimizer = torch.optim.SGD(lone.parameters(), lr=0.1)
    with fmapboard.watch(lone, writer=kept, optimizer=optimizer):
        lone(torch.randn(1, 3, 8, 8)).sum().backward()
        optimizer.step()
    assert {h.tag for h in kept.steps[0].histograms if h.tag.startswith("weights/")} == {
        "weights/bias",
        "weights/parametrizations.weight.original0",
        "weights/parametrizations.weight.original1",
    }


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"every": 0}, "every=0: expected a whole number of steps, at least 1"),
        ({"every": -5}, "every=-5"),
        ({"layers": "stm"}, "no layer matches 'stm' among 8; closest: stem"),
        (
            {"probe": torch.zeros(2, 5, 12, 12)},
            r"model.forward\(\) failed on the probe of shape \[2, 5, 12, 12\]",
        ),
        ({"probe": torch.zeros(0, 3, 12, 12)}, "it has no samples"),
        ({"probe": "images"}, "expected a tensor of images"),
        ({"samples": 0}, "samples=0: expected a whole number, at least 1"),
        ({"scale": "batch"}, "scale='batch': expected 'channel' or 'layer' or 'locked'"),
        ({"colormap": "jet"}, "no palette 'jet'"),
        ({"start_step": -1}, "start_step=-1"),
        ({"normalization": (0.5, 0.5)}, r"normalization=\(0.5, 0.5\): expected \(mean, std\)"),
        ({"normalization": ((0.5,), (0.1, 0.1))}, "each one number per channel"),
        ({"smaples": 3}, "no option 'smaples'; closest: samples"),
        ({"name": "a/b"}, "name='a/b'"),
        ({"log_dir": "x"}, "log_dir and writer are mutually exclusive"),
        ({"optimizer": "sgd"}, "optimizer=str: expected a torch.optim.Optimizer"),
    ],
)
def test_a_wrong_request_is_refused_at_once(options: dict[str, object], text: str) -> None:
    model = Net()
    with pytest.raises(fmapboard.ConfigurationError, match=text):
        fmapboard.watch(model, writer=MemoryWriter(), **options)
    assert hooks(model) == 0


def test_a_model_without_convolutions_is_refused_with_what_it_has() -> None:
    with pytest.raises(
        fmapboard.NoConvolution, match=r"has no Conv2d to watch; it has Linear, ReLU"
    ):
        fmapboard.watch(nn.Sequential(nn.Linear(2, 2), nn.ReLU()), writer=MemoryWriter())


def test_a_directory_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(fmapboard.WriteError, match="cannot write to"):
        fmapboard.watch(Net(), tmp_path / "file" / "run")


class BrokenWriter(MemoryWriter):
    """Fails at its second step."""

    def write(self, step: LoggedStep) -> None:
        if step.step == 1:
            raise OSError(28, "No space left on device")
        super().write(step)


@pytest.mark.usefixtures("errors_are_only_logged")
def test_a_failing_writer_warns_once_and_training_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model, kept = Net(), BrokenWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with (
        caplog.at_level(logging.WARNING, "fmapboard"),
        fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1),
    ):
        for _ in range(3):
            train_step(model, optimizer)
    assert numbers(kept.steps) == [0, 2]
    assert [r.message for r in caplog.records] == [
        "writing: OSError: [Errno 28] No space left on device; this step is lost, training goes on"
    ]


def test_an_error_is_raised_where_the_environment_asks_for_it() -> None:
    model, kept = Net(), BrokenWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    board = fmapboard.watch(model, writer=kept, every=1)
    for number in range(2):
        with board.step(number):
            train_step(model, optimizer)
    with pytest.raises(fmapboard.CaptureError, match="No space left"):
        board.flush()
    board.close()


def test_a_model_that_is_bypassed_gets_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    model, kept = Net(), MemoryWriter()
    board = fmapboard.watch(model, writer=kept, every=1)
    with caplog.at_level(logging.WARNING, "fmapboard"):
        for number in range(3):
            with board.step(number):
                model.stem.forward(torch.zeros(1, 3, 8, 8))
    board.close()
    assert [r.message.split(":")[1] for r in caplog.records] == [
        " no watched layer ran; was the model "
        "itself called (no scripted or traced copy of it), and in train() mode where fmapboard "
        "counts steps?"
    ]
    assert kept.steps == []


def test_training_is_bitwise_the_same_while_every_step_is_logged() -> None:
    def run(watched: bool) -> tuple[dict[str, Tensor], Tensor]:
        torch.manual_seed(3)
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
        board = (
            fmapboard.watch(
                model,
                writer=MemoryWriter(),
                optimizer=optimizer,
                every=1,
                inputs=True,
                activation_gradients=True,
                probe=torch.zeros(1, 3, 12, 12),
            )
            if watched
            else None
        )
        for _ in range(5):
            train_step(model, optimizer)
        if board is not None:
            board.close()
        return model.state_dict(), torch.get_rng_state()

    (bare, bare_rng), (seen, seen_rng) = run(False), run(True)
    for name, value in bare.items():
        assert torch.equal(value, seen[name]), name
    assert torch.equal(bare_rng, seen_rng)


def test_two_samples_of_one_dataloader_worker_do_not_wait_for_the_thread(tmp_path: Path) -> None:
    """A forked DataLoader worker inherits the logger, and must not hang on its missing thread."""
    from torch.utils.data import DataLoader

    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = [(torch.zeros(3, 12, 12), 0)] * 4
    with fmapboard.watch(model, tmp_path, optimizer=optimizer, every=1):
        for _ in range(2):
            for x, y in DataLoader(data, batch_size=2, num_workers=1):
                optimizer.zero_grad()
                functional.cross_entropy(model(x), y).backward()
                optimizer.step()
    assert steps_of(read(tmp_path), "gradient_norm/total") == [0, 1, 2, 3]


class OnceFullWriter(MemoryWriter):
    """Fails at its very first step."""

    def write(self, step: LoggedStep) -> None:
        if step.step == 0:
            raise OSError(28, "No space left on device")
        super().write(step)


@pytest.mark.usefixtures("errors_are_only_logged")
def test_the_first_step_that_could_be_stored_counts_as_the_first() -> None:
    model, kept = Net(), OnceFullWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1):
        for _ in range(3):
            train_step(model, optimizer)
    assert numbers(kept.steps) == [1, 2]
    first = [[r.tag for r in s.records if r.tag == "fmapboard_first/stem"] for s in kept.steps]
    assert first == [["fmapboard_first/stem"], []]
    header, _ = fmapboard.tab_format.unpack(kept.steps[1].records[0].blobs)
    assert header["steps_written"] == 2


def test_a_large_network_input_is_averaged_down_and_says_so() -> None:
    model, kept = Net(), MemoryWriter()
    board = fmapboard.watch(model, writer=kept, every=1)
    with board.step(0):
        model(torch.rand(1, 3, 600, 300))
    board.close()
    picture = next(p for p in kept.steps[0].pictures if p.role == "network_input")
    assert picture.rasters[0].pixels.shape == (200, 100, 3)
    assert picture.description.endswith("a pixel is the mean of 3×3")


@pytest.mark.usefixtures("errors_are_only_logged")
def test_a_layer_that_fails_in_the_worker_is_left_out_and_the_step_is_written(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fmapboard.measure.reducer

    real = fmapboard.measure.reducer.Pending.to_host

    def faulty(pending: fmapboard.measure.reducer.Pending) -> object:
        if pending.site.layer == "inner.0.0":
            raise MemoryError("no room")
        return real(pending)

    monkeypatch.setattr(fmapboard.measure.reducer.Pending, "to_host", faulty)
    model, kept = Net(), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with (
        caplog.at_level(logging.WARNING, "fmapboard"),
        fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1),
    ):
        for _ in range(3):
            train_step(model, optimizer)
    assert [r.message for r in caplog.records] == [
        "inner.0.0: MemoryError: no room; it is left out, training goes on"
    ]
    assert len(kept.steps) == 3
    left = {m.site.layer for m in kept.steps[0].statistics}
    assert left
    assert "inner.0.0" not in left


@pytest.mark.usefixtures("errors_are_only_logged")
def test_a_fault_of_ours_in_one_layer_is_said_once_and_the_rest_goes_on(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fmapboard.measure.reducer

    real, tries = fmapboard.measure.reducer.statistics, []

    def faulty(maps: Tensor, floor: float | None = None, **options: bool) -> object:
        if maps.shape[1] == 16:
            tries.append(maps.shape)
            raise ZeroDivisionError("a bug")
        return real(maps, floor, **options)

    monkeypatch.setattr(fmapboard.measure.reducer, "statistics", faulty)
    model, kept = Net(), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with (
        caplog.at_level(logging.WARNING, "fmapboard"),
        fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1),
    ):
        for _ in range(6):
            train_step(model, optimizer)
    assert [r.message for r in caplog.records] == [
        "inner.0.0: ZeroDivisionError: a bug; it is left out, training goes on"
    ]
    assert len(tries) == 3  # then the layer is passed over
    assert numbers(kept.steps) == list(range(6))
    assert {"feature_maps_8x3x5x5/stem"} == {
        p.tag for p in kept.steps[-1].pictures if p.role == "feature_maps"
    }
