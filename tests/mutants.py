"""Breaks central lines one at a time and sees whether the tests concerned notice.

Run ``python tests/mutants.py [FIRST LAST] [--keep FILE]``; each mutant is tried in a copy of the repository that keeps
what is compiled already. Those that no kernel contains come first; of the others, those of one file follow each other.
A file that verdicts are kept in lets a later call with the same file try only the others.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
COPIED = "de_gym", "tests", "agents", "pyproject.toml", "train.py", "evaluate.py", "README.md"
MAX_SECONDS = 900  # a broken line may make a loop endless; compiling all kernels takes a third of it


class Mutant(NamedTuple):
    """A line to break.

    Attributes:
        file: Where it stands, below ``de_gym``.
        old: What is there, once.
        new: What to put in its place.
        tests: The tests that must notice, below ``tests``.
        in_kernel: Whether kernels contain the line, so that they have to be compiled again.
    """

    file: str
    old: str
    new: str
    tests: str
    in_kernel: bool = True


# What must never happen without a word; nothing of it stands in kernels.
SILENT = (
    (
        "envs/actions.py",
        "if array.shape != checked.shape:",
        "if False:",
        "test_minimize_options.py::test_actions_of_an_own_controller_are_checked",
    ),
    (
        "envs/rewards.py",
        "] = MappingProxyType(",
        "] = dict(",
        "envs/test_extensions.py::test_compiled_tables_are_read_only",
    ),
    (
        "checks.py",
        "number = operator.index(value)",
        "number = value",
        "envs/test_de_param_control.py::test_whole_numbers_of_any_kind_are_plain_ones",
    ),
    (
        "tensor_files.py",
        "json.dumps(described, sort_keys=True)",
        "json.dumps({})",
        "test_tensor_files.py::test_the_checksum_covers_everything",
    ),
    (
        "tensor_files.py",
        "content = _canonical(save(",
        "content = (save(",
        "test_tensor_files.py::test_equal_contents_give_equal_bytes_in_every_order_and_every_process",
    ),
    (
        "controllers/storage.py",
        "check_tensor_file(source, content)",
        "pass",
        "controllers/test_storage.py::test_a_flipped_weight_bit_is_recognised",
    ),
    (
        "../agents/checkpoints.py",
        "check_tensor_file(path, content)",
        "pass",
        "agents/test_checkpoints.py::test_a_damaged_checkpoint_is_recognised",
    ),
    (
        "../agents/checkpoints.py",
        "if progress.updates > max_updates:",
        "if False:",
        "agents/test_checkpoints.py::test_a_checkpoint_that_makes_no_sense_is_refused_and_changes_nothing",
    ),
    (
        "../agents/callbacks.py",
        "    with replacing(path) as file:\n",
        "    path.unlink(missing_ok=True)\n    with path.open('wb') as file:\n",
        "agents/test_callbacks.py::test_killed_at_any_write_a_resumed_training_loses_no_row",
    ),
    (
        "../agents/reinforce.py",
        "self.num_timesteps = timesteps_before",
        "pass",
        "agents/test_reinforce.py::test_a_callback_can_end_the_training",
    ),
    (
        "../agents/run_folders.py",
        "files = 1, {CONFIG_FILE: checked_json(asdict(config), indent=2)}",
        "files = 1, {}",
        "agents/test_run_folders.py::test_a_folder_has_its_configuration_from_the_start",
    ),
    (
        "../evaluate.py",
        'if name != "store" and not fnmatch(name, ".store.*.part")',
        'if name != "results"',
        "evaluation/test_evaluate.py::test_killed_before_it_knows_its_settings_the_same_command_goes_on",
    ),
    (
        "evaluation/store.py",
        "if difference := _first_difference(known, json.loads(plain)):",
        "if difference := '':",
        "evaluation/test_store.py::test_one_name_cannot_stand_for_two_settings",
    ),
    (
        "minimizing/workers.py",
        "if num_deaths > 1 + _DEATHS_ALONE:",
        "if True:",
        "test_minimize_options.py::test_a_worker_that_dies_once_costs_nothing",
    ),
    (
        "evaluation/runner.py",
        "protocol.run_seeds(key.function, key.runs)",
        "protocol.run_seeds(sum(key.method.encode()), key.runs)",
        "evaluation/test_methods.py::test_the_same_weights_under_another_name_give_the_same_numbers",
    ),
    (
        "envs/task.py",
        "        if named:\n",
        "        if False:\n",
        "test_checks.py::test_a_mistake_is_named_in_one_short_line",
    ),
    (
        "minimizing/choosing.py",
        'if not isinstance(controller, str) or controller != "default":',
        "if False:",
        "test_checks.py::test_a_mistake_is_named_in_one_short_line",
    ),
    (
        "evaluation/methods.py",
        "if trained not in (None, protocol.dimension):",
        "if False:",
        "evaluation/test_methods.py::test_a_controller_of_other_dimensions_is_run_with_a_warning",
    ),
    (
        "optimizers/adaptive.py",
        "return chosen if is_ours else check_actions(chosen, np.zeros(self.num_runs), lowest, title)",
        "return chosen",
        "optimizers/test_adaptive.py::test_first_sizes_of_an_own_rule_are_checked",
    ),
    (
        "minimizing/ask_tell.py",
        "takes_others = engine.takes_other_points and not engine.is_searching_locally",
        "takes_others = engine.takes_other_points",
        "minimizing/test_ask_tell.py::test_further_points_do_not_end_a_local_search[2-0.0001]",
    ),
    (
        "minimizing/endings.py",
        "if self._record.optimizer is not None and self._record.optimizer.is_searching_locally:",
        "if False:",
        "test_minimize.py::test_points_of_a_local_search_are_no_population_that_has_converged",
    ),
    (
        "optimizers/local_search.py",
        "self.begins = np.where(again,",
        "self.begins = np.where(~runs,",
        "optimizers/test_local_search.py::test_populations_that_begin_anew_descend_again",
    ),
    (
        "optimizers/adaptive.py",
        'self._state.runs["evaluations"][ends] = self._runs["evaluations"][ends]',
        "pass",
        "optimizers/test_local_search.py::test_a_descent_begins_late_and_ends_before_the_run_does",
    ),
    (
        "optimizers/running.py",
        "reached[run] = not is_below_minimum(float(values[run]), float(optimum[run]))",
        "pass",
        "optimizers/test_running.py::test_a_stated_optimum_that_is_none_is_said_and_ends_no_run",
    ),
    (
        "machine/compiling.py",
        "kept.save_overload = _without_failing(kept.save_overload, _nothing, OSError)",
        "pass",
        "machine/test_compiling.py::test_a_kernel_that_does_not_fit_on_the_disk_is_compiled_all_the_same",
    ),
    (
        "optimizers/base.py",
        "if not np.isfinite(high - low).all():",
        "if False:",
        "optimizers/test_running.py::test_bounds_whose_width_overflows_are_an_error",
    ),
    (
        "optimizers/controlled_de.py",
        'stated = getattr(controller, "env_settings", {})',
        "stated = {}",
        "optimizers/test_controlled_de.py::test_an_own_controller_can_say_in_which_process_it_was_trained",
    ),
    (
        "../agents/checkpoints.py",
        "    _warn_of_changed_records(path, content.metadata)\n",
        "",
        "agents/test_callbacks.py::test_a_damaged_record_is_said_and_stops_no_training",
    ),
    (
        "problems/minima.py",
        "if num_mistaken == 0:",
        "if True:",
        "envs/test_de_param_control.py::test_a_value_below_the_stated_minimum_is_said_and_not_rewarded",
    ),
    (
        "../agents/export.py",
        "    if missing:\n",
        "    if False:\n",
        "agents/test_export.py::test_a_controller_that_cannot_say_how_it_was_trained_is_not_exported",
    ),
    (
        "machine/compiling.py",
        "return cast(Kernel, njit(**options)(function))",
        "raise",
        "machine/test_compiling.py::test_a_kernel_is_compiled_without_a_cache_where_none_can_be_written",
    ),
    (
        "problems/base.py",
        "if not np.isfinite(upper - lower).all():",
        "if False:",
        "problems/test_base.py::test_width_of_bounds_must_be_finite",
    ),
    (
        "../agents/config.py",
        "if not _has_type(values[name], hint):",
        "if False:",
        "agents/test_run_folders.py::test_a_configuration_of_wrong_types_is_refused",
    ),
    (
        "registry.py",
        "hint = f",
        "hint = '' and f",
        "test_registry.py::test_unknown_names_list_the_choices_and_the_closest",
    ),
    (
        "../agents/blocks.py",
        "seed_update(self.env, root_seed, update, self._number)",
        "seed_update(self.env, root_seed, 0, self._number)",
        "test_train.py::test_all_updates_train_on_episodes_of_their_own",
    ),
    (
        "envs/settings.py",
        '    "pbest",\n',
        "",
        "controllers/test_policies.py::test_every_setting_of_the_process_is_kept",
    ),
    (
        "minimizing/endings.py",
        "best_value <= self._limits.target",
        "best_value < self._limits.target",
        "test_minimize.py::test_a_value_equal_to_the_target_reaches_it",
    ),
    (
        "../agents/training.py",
        "return replace(config, threads=threads)",
        "return config",
        "agents/test_training.py::test_all_cores_are_a_number_that_a_run_keeps",
    ),
    (
        "../agents/evolution_strategy.py",
        "self._means[len(self._means) - num_averaged :]",
        "self._means[:num_averaged]",
        "agents/test_evolution_strategy.py::test_the_result_is_the_mean_of_the_last_middles",
    ),
    (
        "controllers/residual.py",
        "self.features.index(name) for name in INPUTS",
        "0 for name in INPUTS",
        "controllers/test_residual.py::test_residuals_by_hand",
    ),
)
JUDGING = "envs/test_de_param_control.py::"
ADAPTIVE = "envs/test_adaptive_de_control.py::"
VECTOR = "envs/test_vector.py::"
JSO = "optimizers/test_adaptive_jso.py::"
HISTORY = "controllers/test_success_history.py::"
SELECTION = "evolution/test_two_population.py::TestSelection::"
SHELLS = (
    (
        "envs/success_history_shell.py",
        "return 2 * population_size",
        "return population_size",
        ADAPTIVE + "test_inconsistent_arguments_are_named",
    ),
    (
        "envs/success_history_shell.py",
        "rule.set_residuals(residuals)",
        "pass",
        JSO + "test_runs_equal_the_vector_environment_with_the_same_start_and_numbers",
    ),
    (
        "envs/success_history_shell.py",
        'population.runs["evaluations"] += np',
        "np",
        ADAPTIVE + "test_no_generation_of_jso_exceeds_the_budget",
    ),
    (
        "envs/success_history_shell.py",
        "state.order[:, 0]",
        "state.order[:, 1]",
        ADAPTIVE + "test_the_best_never_worsens_and_is_where_it_was_found",
    ),
    (
        "envs/two_population_shell.py",
        "return population_size + 1",
        "return population_size",
        ADAPTIVE + "test_inconsistent_arguments_are_named",
    ),
    (
        "evolution/two_population.py",
        "state.rows[runs, TOP, 0]",
        "state.rows[runs, TOP, 1]",
        VECTOR + "test_best_positions_are_where_the_best_fitness_was_found",
    ),
    (
        "envs/adaptive_process.py",
        'runs["size"] = following.next_size',
        'runs["size"] = 0',
        ADAPTIVE + "test_no_generation_of_jso_exceeds_the_budget",
    ),
    (
        "envs/adaptive_process.py",
        "action_low: float = -1.0",
        "action_low: float = 0.0",
        ADAPTIVE + "test_negative_actions_act",
    ),
    (
        "envs/run_env.py",
        "None if terminated or truncated else state",
        "state",
        ADAPTIVE + "test_the_budget_is_used_to_the_last_evaluation",
    ),
    (
        "envs/run_vector_env.py",
        "stepped[self._ended] = False",
        "pass",
        VECTOR + "test_equal_to_gymnasiums_own_vectorisation",
    ),
    (
        "envs/run_vector_env.py",
        "seed, 0) + run for run",
        "seed, 0) for run",
        VECTOR + "test_run_i_equals_the_single_environment",
    ),
    (
        "optimizers/adaptive_jso.py",
        "self._progress = self._progress[runs]",
        "pass",
        JSO + "test_policies_of_the_environment_control_jso",
    ),
)

# From the layers whose change has the fewest kernels compiled again to those that all kernels are made of.
KERNELS = (
    Mutant(
        "optimizers/base.py",
        "self._draws.keep(runs)",
        "pass",
        "optimizers/test_running.py::test_a_run_is_bit_identical_alone_and_in_a_batch[jade]",
    ),
    Mutant(
        "envs/actions.py",
        "raised if raised < 1.0 else 1.0",
        "raised",
        JUDGING + "test_actions_outside_the_box_are_clipped",
    ),
    Mutant(
        "envs/process.py",
        "has_ended and not has_terminated",
        "has_ended",
        JUDGING + "test_solving_the_function_terminates_with_reward_one",
    ),
    Mutant(
        "envs/process.py",
        "run.best_error < settings.target_error",
        "run.best_error < 0.0",
        JUDGING + "test_solving_the_function_terminates_with_reward_one",
    ),
    Mutant(
        "envs/rewards.py",
        "return (before - after) / whole",
        "return (after - before) / whole",
        "envs/test_rewards.py::test_relative_reward_is_the_share_of_the_error_removed",
    ),
    Mutant(
        "envs/features.py",
        "normalized[run, i] < edge",
        "normalized[run, i] <= edge",
        "envs/test_features.py::test_histogram_equals_numpy_on_values_and_edges",
    ),
    Mutant(
        "controllers/success_history.py",
        "_MEAN_STEP * residual[3]",
        "_MEAN_STEP * residual[0]",
        HISTORY + "test_residuals_move_means",
    ),
    Mutant(
        "controllers/success_history.py",
        "factor_squares / factor_sum",
        "factor_sum",
        HISTORY + "test_memory_entry_is_averaged_with_the_gain_weighted_lehmer_mean",
    ),
    Mutant(
        "evolution/history_features.py",
        "improvements[index, i] >= 0.0",
        "improvements[index, i] > 0.5",
        ADAPTIVE + "test_success_rates_of_jso_are_counted",
    ),
    Mutant(
        "evolution/residuals.py",
        "+ 0.3 * residual[0]",
        "- 0.3 * residual[0]",
        "evolution/test_two_population.py::TestRule::test_residuals_do_what_the_table_says",
    ),
    Mutant(
        "machine/descents.py",
        "own * (step[i] * step[j]) - crossed / product",
        "own * (step[i] * step[j]) + crossed / product",
        "optimizers/test_local_search.py::test_it_knows_that_a_steps_curvature_is_that_of_the_change_of_gradients",
    ),
    Mutant(
        "machine/descents.py",
        "home.point[j] <= home.low[j] and home.slopes[j] > 0.0",
        "home.point[j] <= home.low[j] and home.slopes[j] < 0.0",
        "optimizers/test_local_search.py::test_a_minimum_on_a_bound_is_found_and_the_bound_is_left_where_that_leads_down",
    ),
    Mutant(
        "machine/descents.py",
        "return at - step if at + step > home.high[j] else at + step",
        "return at + step",
        "optimizers/test_local_search.py::test_a_minimum_on_a_bound_is_found_and_the_bound_is_left_where_that_leads_down",
    ),
    Mutant(
        "machine/descents.py",
        "if not descent.has_scale:\n        descent.has_scale = 1",
        "if descent.num_values == 2:\n        descent.has_scale = 1",
        "optimizers/test_local_search.py::test_the_unit_of_the_function_does_not_matter_even_where_it_first_bends_upwards",
    ),
    Mutant(
        "machine/descents.py",
        "num_others -= neighbour != home.point[place]",
        "num_others = 0",
        "optimizers/test_local_search.py::test_other_points_than_it_asked_for_end_a_descent[1]",
    ),
    Mutant(
        "machine/replacement.py",
        "parent - value",
        "value - parent",
        "evolution/test_replacement.py::test_better_and_equal_trials_replace_and_worse_ones_do_not",
    ),
    Mutant(
        "machine/ordering.py",
        "return value <= other",
        "return value < other",
        "evolution/test_replacement.py::test_better_and_equal_trials_replace_and_worse_ones_do_not",
    ),
    Mutant(
        "machine/kernel.py",
        "    if not _are_finite(coordinates, points.size, rows):\n        return False\n",
        "",
        "problems/test_base.py::test_points_that_are_not_finite_are_rejected",
    ),
    Mutant(
        "machine/front_selection.py",
        "value <= front[target]",
        "value < front[target]",
        SELECTION + "test_memory_moves_towards_one_where_nothing_was_gained",
    ),
    Mutant(
        "machine/front_selection.py",
        "if cursor != target and math",
        "if math",
        SELECTION + "test_success_that_takes_the_slot_of_its_target_gains_nothing",
    ),
    Mutant(
        "machine/front_selection.py",
        "places.gains[k] / largest / num_without",
        "places.gains[k] / largest / num_with",
        SELECTION + "test_crossover_along_axes_is_compared_with_other_partial_trials_alone",
    ),
    Mutant(
        "machine/front_selection.py",
        "* gain_with / (gain_with + gain_without)",
        "* gain_without / (gain_with + gain_without)",
        SELECTION + "test_each_memory_learns_from_its_own_successes",
    ),
    Mutant(
        "machine/front_selection.py",
        "larger_of(moved, _SMALLEST_SHARE)",
        "larger_of(moved, 0.0)",
        SELECTION + "test_share_of_the_sparse_memory_stays_between_a_tenth_and_nine_tenths",
    ),
    Mutant(
        "machine/front_selection.py",
        ", 1.0 - _SMALLEST_SHARE)",
        ", 1.0)",
        SELECTION + "test_share_of_the_sparse_memory_stays_between_a_tenth_and_nine_tenths",
    ),
    Mutant(
        "machine/front_selection.py",
        "or rate < 1.0",
        "or rate <= 1.0",
        SELECTION + "test_crossover_along_axes_is_compared_with_other_partial_trials_alone",
    ),
    Mutant(
        "machine/front_selection.py",
        "places.front_rows[_slot_after(first_slot, order[k], size)]",
        "places.front_rows[order[k]]",
        SELECTION + "test_slots_are_taken_in_a_circle",
    ),
    Mutant(
        "machine/top_and_front.py",
        "(linear - SMALLEST_SIZE) * factor)",
        "(linear - SMALLEST_SIZE))",
        SELECTION + "test_worst_of_front_leave_and_the_others_keep_their_order",
    ),
    Mutant(
        "machine/top_and_front.py",
        "smaller_of(run.size, larger_of(SMALLEST_SIZE, stretched))",
        "larger_of(SMALLEST_SIZE, stretched)",
        SELECTION + "test_a_stretched_plan_does_not_let_populations_grow",
    ),
)

MUTANTS = tuple(Mutant(*line, in_kernel=False) for line in SILENT + SHELLS) + KERNELS


def broken(mutant: Mutant, root: Path) -> str:
    """Return the text of the file with the line broken."""
    text = (root / "de_gym" / mutant.file).read_text()
    if text.count(mutant.old) != 1:
        raise ValueError(f"{mutant.file} must have {mutant.old!r} once, got it {text.count(mutant.old)} times.")
    return text.replace(mutant.old, mutant.new)


def is_noticed(mutant: Mutant, copy: Path) -> bool:
    """Return whether the tests fail with the line broken."""
    path = copy / "de_gym" / mutant.file
    changed, times = broken(mutant, copy).rstrip("\n"), path.stat()
    if not mutant.in_kernel and times.st_size > len(changed):
        changed += "\n#" + "-" * (times.st_size - len(changed) - 3) + "\n"
    path.write_text(changed)
    if not mutant.in_kernel:
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # compiled kernels of this size and time stay
    Path(cache_from_source(path)).unlink(missing_ok=True)  # Python knows it by size and time as well
    return not passes((mutant.tests,), copy)


def verdict(mutant: Mutant, whole: Path) -> str:
    """Return whether the tests notice a mutant, or do not come to an end with it."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            return "noticed" if is_noticed(mutant, copy_repository(whole, folder)) else "ALIVE"
        except subprocess.TimeoutExpired:
            return "ENDLESS"


def passes(tests: Sequence[str], copy: Path) -> bool:
    """Return whether tests pass in a copy; that there are none of these names or that they do not end is an error."""
    nodes = [f"tests/{test}" for test in dict.fromkeys(tests)]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *nodes]
    environment = os.environ | {"PYTHONPATH": str(copy)}
    with tempfile.TemporaryFile("w+") as output:
        # A session of its own, so that workers end with it.
        tests_under_way = subprocess.Popen(
            command, cwd=copy, env=environment, stdout=output, stderr=output, start_new_session=True
        )
        try:
            code = tests_under_way.wait(MAX_SECONDS * len(nodes))
        finally:
            with suppress(ProcessLookupError):
                os.killpg(tests_under_way.pid, signal.SIGKILL)
        output.seek(0)
        if code > 1:  # a signal's number is negative: the tests have crashed
            raise ValueError(f"The tests {nodes} cannot be run:\n{output.read()[-2000:]}")
    return code == 0


def copy_repository(root: Path, folder: str) -> Path:
    """Copy what tests need, with times of change, so that what is compiled already need not be compiled again."""
    for name in COPIED:
        source, target = root / name, Path(folder) / name
        shutil.copytree(source, target) if source.is_dir() else shutil.copy2(source, target)
    return Path(folder)


def known_verdicts(path: Path | None) -> dict[Mutant, str]:
    """Return the verdicts that were kept in a file, which need not be there yet."""
    lines = path.read_text().splitlines() if path is not None and path.exists() else []
    return {Mutant(*mutant): found for found, mutant in map(json.loads, lines)}


def verdicts(mutants: Sequence[Mutant]) -> Iterator[tuple[Mutant, str]]:
    """Yield mutants with their verdicts."""
    with tempfile.TemporaryDirectory() as whole:
        # What fails unbroken would seem to notice everything; and this compiles what the copies of the copy share.
        if mutants and not passes([mutant.tests for mutant in mutants], copy_repository(ROOT, whole)):
            raise ValueError("The tests must pass before a line is broken.")
        for mutant in mutants:
            yield mutant, verdict(mutant, Path(whole))


def main() -> None:
    """Try mutants and print which of them live."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("numbers", nargs="*", type=int, help="the first and the last to try; all without them")
    parser.add_argument("--keep", type=Path, help="file of the verdicts so far, not asked again, and of those to come")
    arguments = parser.parse_args()
    first, last = arguments.numbers or (1, len(MUTANTS))
    chosen, found = MUTANTS[first - 1 : last], known_verdicts(arguments.keep)
    for mutant, answer in verdicts([mutant for mutant in chosen if mutant not in found]):
        found[mutant] = answer
        print(f"{answer} {mutant.file}: {mutant.old!r} -> {mutant.new!r}", flush=True)
        if arguments.keep is not None:
            with arguments.keep.open("a") as file:
                file.write(json.dumps([answer, mutant]) + "\n")
    print(dict(Counter(found[mutant] for mutant in chosen)))


if __name__ == "__main__":
    main()
