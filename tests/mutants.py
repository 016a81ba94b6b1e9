"""Breaks central lines one at a time and sees whether the tests concerned notice.

Run ``python tests/mutants.py [FIRST LAST]``; each mutant is tried in a copy of the repository that keeps what is
compiled already.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
COPIED = "de_gym", "tests", "agents", "pyproject.toml", "train.py", "evaluate.py", "README.md"


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


JUDGING = "envs/test_de_param_control.py"
ADAPTIVE = "envs/test_adaptive_de_control.py"
VECTOR = "envs/test_vector.py"
JSO = "optimizers/test_adaptive_jso.py"
HISTORY = "controllers/test_success_history.py"
MUTANTS = (
    Mutant("envs/success_history_shell.py", "return 2 * population_size", "return population_size", ADAPTIVE),
    Mutant("envs/success_history_shell.py", "rule.set_residuals(residuals)", "rule.set_residuals(-residuals)", JSO),
    Mutant("envs/success_history_shell.py", 'population.runs["evaluations"] += np', "np", ADAPTIVE),
    Mutant("envs/success_history_shell.py", "state.order[:, 0]", "state.order[:, 1]", ADAPTIVE),
    Mutant("envs/two_population_shell.py", "return population_size + 1", "return population_size", ADAPTIVE),
    Mutant("envs/two_population_shell.py", "state.rows[runs, TOP, 0]", "state.rows[runs, TOP, 1]", VECTOR),
    Mutant("envs/adaptive_process.py", 'runs["size"] = following.next_size', 'runs["size"] = 0', ADAPTIVE),
    Mutant("envs/adaptive_process.py", "action_low: float = -1.0", "action_low: float = 0.0", ADAPTIVE),
    Mutant("envs/run_env.py", "None if terminated or truncated else state", "state", ADAPTIVE),
    Mutant("envs/run_vector_env.py", "stepped[self._ended] = False", "pass", VECTOR),
    Mutant("envs/run_vector_env.py", "seed, 0) + run for run", "seed, 0) for run", VECTOR),
    Mutant("envs/actions.py", "raised if raised < 1.0 else 1.0", "raised", JUDGING),
    Mutant("envs/process.py", "has_ended and not has_terminated", "has_ended", JUDGING),
    Mutant("envs/process.py", "run.best_error < settings.target_error", "run.best_error < 0.0", JUDGING),
    Mutant(
        "envs/rewards.py", "return (before - after) / whole", "return (after - before) / whole", "envs/test_rewards.py"
    ),
    Mutant("envs/features.py", "normalized[run, i] < edge", "normalized[run, i] <= edge", "envs/test_features.py"),
    Mutant("optimizers/adaptive_jso.py", "self._progress = self._progress[runs]", "pass", JSO),
    Mutant("optimizers/base.py", "self._draws.keep(runs)", "pass", "optimizers"),
    Mutant("controllers/success_history.py", "_MEAN_STEP * residual[3]", "_MEAN_STEP * residual[0]", HISTORY),
    Mutant("controllers/success_history.py", "factor_squares / factor_sum", "factor_sum", HISTORY),
    Mutant("evolution/history_features.py", "improvements[index, i] >= 0.0", "improvements[index, i] > 0.5", ADAPTIVE),
    Mutant(
        "machine/front_selection.py",
        "first_slot + order[k]) % size]\n        copy",
        "order[k]]\n        copy",
        "evolution",
    ),
    Mutant("evolution/residuals.py", "+ 0.3 * residual[0]", "- 0.3 * residual[0]", "evolution"),
    Mutant("machine/replacement.py", "parent - value", "value - parent", "evolution/test_replacement.py"),
    Mutant("machine/ordering.py", "return value <= other", "return value < other", "evolution/test_replacement.py"),
    Mutant(
        "machine/kernel.py",
        "    if not _are_finite(coordinates, points.size, rows):\n        return False\n",
        "",
        "problems/test_base.py",
    ),
)

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
    ("tensor_files.py", "json.dumps(described, sort_keys=True)", "json.dumps({})", "test_tensor_files.py"),
    ("tensor_files.py", "content = _canonical(save(", "content = (save(", "test_tensor_files.py"),
    ("controllers/storage.py", "check_tensor_file(source, content)", "pass", "controllers/test_storage.py"),
    ("../agents/checkpoints.py", "check_tensor_file(path, content)", "pass", "agents/test_checkpoints.py"),
    ("../agents/checkpoints.py", "if progress.updates > max_updates:", "if False:", "agents/test_checkpoints.py"),
    (
        "../agents/callbacks.py",
        "    with replacing(path) as file:\n",
        "    path.unlink(missing_ok=True)\n    with path.open('wb') as file:\n",
        "agents/test_callbacks.py",
    ),
    ("../agents/reinforce.py", "self.num_timesteps = timesteps_before", "pass", "agents/test_callbacks.py"),
    (
        "../agents/run_folders.py",
        "files = 1, {CONFIG_FILE: checked_json(asdict(config), indent=2)}",
        "files = 1, {}",
        "agents/test_run_folders.py",
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
        "evaluation/test_store.py",
    ),
    (
        "minimizing/workers.py",
        "for is_last_attempt in (False, True):",
        "for is_last_attempt in (True,):",
        "test_minimize_options.py::test_a_worker_that_dies_once_costs_nothing",
    ),
    (
        "evaluation/runner.py",
        "protocol.run_seeds(key.function, key.runs)",
        "protocol.run_seeds(sum(key.method.encode()), key.runs)",
        "evaluation/test_methods.py::test_the_same_weights_under_another_name_give_the_same_numbers",
    ),
    ("envs/task.py", "        if named:\n", "        if False:\n", "test_checks.py"),
    (
        "minimizing/choosing.py",
        'if not isinstance(controller, str) or controller != "default":',
        "if False:",
        "test_checks.py",
    ),
    (
        "evaluation/methods.py",
        "if trained not in (None, protocol.dimension):",
        "if False:",
        "evaluation/test_methods.py::test_a_controller_of_other_dimensions_is_run_with_a_warning",
    ),
    ("envs/process.py", "if num_mistaken == 0:", "if True:", "envs/test_de_param_control.py"),
    ("../agents/export.py", "    if missing:\n", "    if False:\n", "agents/test_export.py"),
    ("machine/compiling.py", "return cast(Kernel, njit(**_OPTIONS)(function))", "raise", "machine/test_compiling.py"),
    ("problems/base.py", "if not np.isfinite(upper - lower).all():", "if False:", "test_checks.py"),
    ("../agents/config.py", "if not _has_type(values[name], hint):", "if False:", "agents/test_run_folders.py"),
    ("registry.py", "hint = f", "hint = '' and f", "test_registry.py"),
    (
        "../agents/reinforce.py",
        "seed_update(env, self.seed, self._n_updates)",
        "seed_update(env, self.seed, 0)",
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
        "test_minimize.py",
    ),
    ("../agents/training.py", "return replace(config, threads=threads)", "return config", "agents/test_training.py"),
)
MUTANTS += tuple(Mutant(*line, in_kernel=False) for line in SILENT)


def is_noticed(mutant: Mutant, copy: Path) -> bool:
    """Return whether the tests fail with the line broken."""
    path = copy / "de_gym" / mutant.file
    text = path.read_text()
    if text.count(mutant.old) != 1:
        raise ValueError(f"{mutant.file} must have {mutant.old!r} once, got it {text.count(mutant.old)} times.")
    changed, times = text.replace(mutant.old, mutant.new).rstrip("\n"), path.stat()
    if not mutant.in_kernel and len(text) > len(changed):
        changed += "\n#" + "-" * (len(text) - len(changed) - 3) + "\n"
    path.write_text(changed)
    if not mutant.in_kernel:
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # compiled kernels of this size and time stay
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", f"tests/{mutant.tests}"]
    environment = os.environ | {"PYTHONPATH": str(copy)}
    return subprocess.run(command, cwd=copy, env=environment, capture_output=True, check=False).returncode == 1


def main() -> None:
    """Try the mutants and print which of them live."""
    first, last = map(int, sys.argv[1:3]) if len(sys.argv) == 3 else (1, len(MUTANTS))
    for number, mutant in enumerate(MUTANTS[first - 1 : last], first):
        with tempfile.TemporaryDirectory() as folder:
            for name in COPIED:
                source, target = ROOT / name, Path(folder) / name
                # With times of change, so that what is compiled already need not be compiled again.
                shutil.copytree(source, target) if source.is_dir() else shutil.copy2(source, target)
            verdict = "noticed" if is_noticed(mutant, Path(folder)) else "ALIVE"
        print(f"{number:2d} {verdict} {mutant.file}: {mutant.old!r} -> {mutant.new!r}", flush=True)


if __name__ == "__main__":
    main()
