"""Every row of the tables of set-ups is tested."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]

TESTS: dict[str, tuple[str, ...]] = {
    "`torch.compile`, with any backend: wrapped, in place (`model.compile()`), parts of a model": (
        "test_a_compiled_training_is_bitwise_the_same",
    ),
    "a compiled model, `activation_gradients=` and `attribution=`": (
        "test_eager_is_the_way_that_has_gradients_of_maps_and_says_that_it_is_not_neutral",
    ),
    "a compiled model with SyncBatchNorm": (
        "test_no_pass_is_run_beside_where_it_would_change_something",
        "test_a_compiled_step_function_is_captured_uncompiled_only_and_not_recompiled",
    ),
    "CUDA graphs (`torch.cuda.graph`)": (
        "test_nothing_is_launched_or_waited_for_in_a_captured_step_and_the_next_one_is_logged",
    ),
    "scripted and traced models": (
        "test_a_scripted_or_traced_model_is_refused_with_a_fix",
        "test_a_scripted_part_is_skipped_and_reported_once",
    ),
    "copies, averages, `torch.save`, `torch.jit.script`": (
        "test_copies_of_a_watched_model_capture_nothing_and_can_be_saved",
        "test_the_model_and_its_parent_can_be_scripted_at_every_step",
        "test_the_model_can_be_traced_exported_and_copied_at_every_step",
        "test_where_the_slot_cannot_be_used_copies_work_and_scripting_names_the_reason",
    ),
    "state of any kind that the modules hold": (
        "test_beside_a_training",
        "test_with_a_probe_and_its_attribution",
        "test_beside_a_compiled_training",
        "test_around_a_call",
    ),
    "a lambda, closure, weak reference or hook": (
        "test_a_function_that_refers_to_the_model_is_refused",
        "test_a_hook_that_refers_to_the_model_is_refused",
        "test_what_cannot_be_copied_is_named",
    ),
    "`forward` calls a collective": (
        "test_training_ends_with_the_weights_of_the_control",
        "test_the_pass_is_refused_and_said_once",
    ),
    "`forward` writes into a parameter": (
        "test_an_operation_that_writes_into_a_parameter_is_refused_before_it_does",
        "test_a_parameter_whose_data_was_replaced_gets_it_back",
    ),
    "state outside of the modules": ("test_hooks_are_called_with_modules_of_the_twin",),
    "lazy parameters": ("test_lazy_and_scripted_parts_are_copied",),
    "ROCm (which PyTorch calls `cuda`), XPU, MPS and other accelerators, with or without float64": (
        "test_every_step_is_logged_with_the_records_of_the_cpu",
    ),
    "waiting for an accelerator": ("test_no_logged_step_waits_for_the_device",),
    "out of memory on the device, inside fmapboard": (
        "test_steps_without_memory_are_tried_less_and_less_and_training_is_the_same",
    ),
    "NaN and infinite values on an accelerator": (
        "test_nonfinite_values_are_flagged_at_their_first_step_and_counted_at_the_next",
    ),
    "DistributedDataParallel, FSDP2 `fully_shard`": (
        "test_ranks_train_as_if_unwatched_and_rank_0_writes_the_true_norms",
    ),
    "an error inside fmapboard on one rank alone": (
        "test_a_failure_on_one_rank_of_fsdp_leaves_the_others_training",
        "test_statistics_are_merged_again_at_the_step_after_a_failure_on_one_rank",
    ),
    "`FullyShardedDataParallel` (FSDP1)": (
        "test_parameters_that_fsdp1_has_flattened_are_not_read_and_maps_are_logged",
    ),
    "DataParallel": (
        "test_a_replica_on_another_device_is_not_recorded_and_does_not_discard_the_pass",
    ),
    "several threads, each with a model of its own": (
        "test_threads_that_train_their_own_models_have_every_step_on_disk",
    ),
    "another thread that runs the model (a server), beside the training": (
        "test_a_server_beside_the_training_costs_no_step",
    ),
    "activation checkpointing of all kinds; autocast, bf16 and fp16": (
        "test_checkpointed_training_is_bitwise_the_same_and_recorded_once",
        "test_training_under_autocast_is_bitwise_the_same",
    ),
    "gradient accumulation, clipping, GradScaler": (
        "test_accumulated_gradients_are_logged_once_as_their_sum",
        "test_the_logged_norm_is_the_norm_after_clipping",
        "test_norms_under_a_grad_scaler_are_unscaled",
    ),
    "a step that the GradScaler skips": (
        "test_a_step_that_the_scaler_skips_is_replaced_by_the_next_one",
        "test_a_skipped_step_of_a_fused_optimizer_counts_as_a_step_without_gradients",
    ),
    "LBFGS, and any closure": ("test_with_a_closure_the_norm_is_that_of_its_first_evaluation",),
    "no torch optimizer: fastai's, or a loop with `p -= lr * p.grad`": (
        "test_the_norms_are_those_after_the_last_backward_pass",
    ),
    "float32 copies of a half-precision model's parameters in the optimizer (master weights: "
    "apex O2, guided-diffusion)": (
        "test_an_optimizer_with_master_weights_is_not_called_another_one",
        "test_in_marked_steps_the_gradient_norms_of_the_model_are_logged",
    ),
    "optimizers that step inside the backward pass": (
        "test_optimizers_that_step_inside_the_backward_pass_have_norms",
    ),
    "several optimizers on one model": ("test_two_optimizers_of_one_model_share_one_logged_step",),
    "several backward passes over one forward pass": (
        "test_gradients_of_outputs_and_attribution_are_those_that_the_optimizer_uses",
    ),
    "a GAN: two models": (
        "test_the_two_models_of_a_gan_have_their_own_norms",
        "test_a_discriminator_shows_the_real_batch_and_a_generator_the_pass_of_its_own_update",
    ),
    "frozen and unused parameters": (
        "test_frozen_and_unused_parameters_have_histograms_of_weights_but_no_norm",
    ),
    "a frozen network whose input learns (style transfer, feature visualization)": (
        "test_the_pass_that_the_images_gradients_come_from_is_logged_without_a_warning",
    ),
    "sparse gradients": ("test_sparse_gradients_have_the_norm_of_their_dense_form",),
    "Ctrl-C, a signal handler that raises (a time limit, SIGTERM), `SystemExit`": (
        "test_an_interrupt_at_any_point_reaches_the_user_and_leaves_nothing",
    ),
    "`channels_last` memory; convolutions of timm and torchvision; with `layers=`": (
        "test_channels_last_maps_give_the_same_pictures",
        "test_convolutions_of_timm_and_torchvision_are_drawn",
        "test_any_requested_module_is_measured",
    ),
    "spectral norm, weight norm, parametrizations": (
        "test_parametrized_convolutions_train_as_if_unwatched_and_are_drawn",
    ),
    "your own forward hooks": ("test_user_hooks_that_change_an_output_still_do",),
    "`intervene` in a compiled model": (
        "test_a_compiled_model_is_changed_in_the_block_only_and_not_compiled_again",
    ),
    "float64, bf16, fp16, float8 and complex maps": (
        "test_maps_of_every_type_are_drawn_and_measured",
    ),
    "Keras 3 on torch": ("test_of_a_keras_model_a_warning_says_that_its_layers_cannot_be_watched",),
    "quantized layers (torch.ao)": (
        "test_quantized_layers_are_drawn_and_measured_by_their_dequantized_values",
    ),
    "lazy convolutions": (
        "test_a_lazy_convolution_is_drawn_from_its_first_pass_on_under_its_true_shape",
    ),
    "shared modules, repeated calls": (
        "test_a_shared_module_has_one_name_and_each_of_its_calls_is_drawn",
    ),
    "layers that return tuples, dicts, dataclasses, `None`, generators": (
        "test_the_first_tensor_of_any_output_is_drawn_and_none_is_no_error",
    ),
    "sparse and nested outputs": ("test_sparse_outputs_are_named_and_the_others_are_logged",),
    "token maps `[N, L, C]` of vision transformers": (
        "test_tokens_of_a_vit_are_drawn_as_patches_without_the_class_token",
    ),
    "maps `[N, H, W, C]` of Swin": (
        "test_channels_last_maps_of_swin_are_drawn_and_measured_by_channel",
    ),
    "a model that was created under `torch.inference_mode()`": (
        "test_a_model_that_was_created_in_inference_mode_is_refused_and_its_maps_can_be_extracted",
    ),
    "a model that raises an error only in the probe's pass": (
        "test_an_error_in_the_probes_pass_is_reported_and_training_is_the_same",
    ),
    "models whose `forward` bypasses the layers": (
        "test_a_model_that_is_bypassed_gets_one_warning",
    ),
    "NaN, infinities, 3e38, denormals, constant and 1×1 maps": (
        "test_statistics_are_those_of_float64",
        "test_the_first_bad_activation_is_named_once_in_the_log_and_as_text",
    ),
    "empty batches": ("test_an_empty_batch_is_skipped_and_the_next_step_is_logged",),
}
"""The beginning of each row, in the order of the page -> the tests that check what it says."""


def rows() -> list[list[str]]:
    page = (ROOT / "docs" / "setups.md").read_text()
    lines = [line for line in page.splitlines() if line.startswith("|")]
    table = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row in table if row[0] not in ("set-up", "---|---")]


def existing() -> set[str]:
    names: set[str] = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        tree = ast.parse(path.read_text())
        names |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    return names


def test_every_row_says_what_happens_and_has_a_test() -> None:
    table = rows()
    assert all(len(row) == 2 and all(row) for row in table)
    assert len(table) >= 40
    for (set_up, _), begins in zip(table, TESTS, strict=True):
        assert set_up.startswith(begins)


def test_the_tests_of_set_ups_exist() -> None:
    known = existing()
    assert [name for names in TESTS.values() for name in names if name not in known] == []


def test_every_test_of_a_training_set_up_is_that_of_a_row() -> None:
    named = {name for names in TESTS.values() for name in names}
    tree = ast.parse((ROOT / "tests" / "training" / "setups" / "test_setups.py").read_text())
    tests = {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
    beside = {"test_a_skipped_step_marked_by_hand_has_no_norm"}  # a second view of one row
    assert {name for name in tests if name.startswith("test_")} - named == beside
