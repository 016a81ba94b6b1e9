"""What happens around each update of a training script: seeds, progress, records and checkpoints."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import HParam
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from tqdm import tqdm

from de_gym.arrays import FloatArray, IntArray
from de_gym.files import replacing

from .checkpoints import CHECKPOINT_FILE, save_checkpoint
from .interruptions import stop_if_asked
from .seeding import seed_update

PROGRESS_FILE, VALIDATION_FILE, BEST_FILE = "progress.csv", "validation.csv", "best.safetensors"
_PROGRESS = ("update", "timesteps", "return", "log10_error", "clipped_share", "zero_return_share")
_VALIDATION = ("update", "return")
ERROR_FLOOR = 1e-8  # the environment's target: smaller errors count as solved


class SeedEveryRollout(BaseCallback):
    """Begins every rollout of an SB3 on-policy algorithm with new episodes and with the seeds of its number.

    RecurrentREINFORCE does so by itself; this gives RecurrentPPO the same exact continuation after a stop.
    """

    def __init__(self, root_seed: int, first_update: int = 0) -> None:
        """Seed the update ``first_update`` next."""
        super().__init__()
        self._root_seed = root_seed
        self._update = first_update

    def _on_rollout_start(self) -> None:
        seed_update(self.training_env, self._root_seed, self._update)
        self.model._last_obs = self.training_env.reset()  # type: ignore[assignment]  # one array
        self.model._last_episode_starts = np.ones(self.training_env.num_envs, dtype=bool)
        self._update += 1

    def _on_step(self) -> bool:
        return True


class TrainingMonitor(BaseCallback):
    """Shows a progress bar, appends one row per update to a CSV file, and writes checkpoints.

    Works for every SB3 on-policy algorithm whose rollouts begin with new episodes.
    """

    def __init__(
        self,
        folder: Path,
        total_updates: int,
        checkpoint_every: int,
        first_update: int = 0,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        """Prepare the records of the run in ``folder``.

        Args:
            folder: Receives the progress file and the checkpoint.
            total_updates: Training ends after so many updates.
            checkpoint_every: Number of updates between two checkpoints.
            first_update: Updates already done; later rows of an interrupted run are dropped.
            settings: What TensorBoard lists as the run's hyper-parameters.
        """
        super().__init__()
        self.folder = folder
        self._settings = dict(settings or {})
        self.rows = _rows_before(folder / PROGRESS_FILE, first_update, _PROGRESS)
        self._total_updates = total_updates
        self._checkpoint_every = checkpoint_every
        self._updates = first_update  # completed ones, once the next rollout begins
        self._collected = first_update
        self._bar = tqdm(total=total_updates, initial=first_update, unit="update", dynamic_ncols=True)

    def _on_training_start(self) -> None:
        write_rows(self.folder / PROGRESS_FILE, self.rows)
        if self._settings:
            plain = {
                name: value if isinstance(value, bool | int | float | str) else str(value)
                for name, value in self._settings.items()
            }
            shown_only_there = ("stdout", "log", "json", "csv")
            self.logger.record("hparams", HParam(plain, {"rollout/return": 0.0}), exclude=shown_only_there)

    def _on_rollout_start(self) -> None:
        self._finish_update()
        num_envs = self.training_env.num_envs
        self._returns: FloatArray = np.zeros(num_envs)
        self._errors: FloatArray = np.full(num_envs, np.nan)
        self._going = np.ones(num_envs, dtype=bool)
        self._clipped_shares: list[float] = []
        self._names: list[str] = []

    def _on_step(self) -> bool:
        stop_if_asked()
        if self._updates >= self._total_updates:
            return False
        self._names = self._names or [_curve_name(info) for info in self.training_env.unwrapped.reset_infos]
        rewards, dones, infos = (self.locals[name] for name in ("rewards", "dones", "infos"))
        self._returns += np.where(self._going, rewards, 0.0)
        for run in np.flatnonzero(self._going & dones):
            self._errors[run] = infos[run].get("best_error", np.nan)
        if self._going.any():
            size = np.prod(self.training_env.action_space.shape or ())
            self._clipped_shares.append(float(self._num_clipped()[self._going].sum() / (size * self._going.sum())))
        self._going &= ~dones
        return True

    def _num_clipped(self) -> IntArray:
        """Return how many numbers of each run's action were outside of the box."""
        counted: IntArray | None = self.locals.get("num_clipped")
        if counted is None:  # of an agent of SB3
            counted = (self.locals["actions"] != self.locals["clipped_actions"]).sum(axis=1)
        return counted

    def _on_rollout_end(self) -> None:
        self._collected += 1
        log_errors = np.log10(np.maximum(self._errors, ERROR_FLOOR))
        row = {
            "update": float(self._collected),
            "timesteps": float(self.model.num_timesteps),
            "return": float(self._returns.mean()),
            "log10_error": float(np.nanmean(log_errors)) if np.isfinite(log_errors).any() else float("nan"),
            "clipped_share": float(np.mean(self._clipped_shares)),
            "zero_return_share": float((self._returns == 0.0).mean()),
        }
        for name in ("log10_error", "zero_return_share"):
            self.logger.record(f"rollout/{name}", row[name])
        self.logger.record("rollout/return", row["return"])
        self.logger.record("rollout/clipped_share", row["clipped_share"])
        for name in dict.fromkeys(self._names):
            runs = [run for run, other in enumerate(self._names) if other == name]
            self.logger.record(f"function_returns/{name}", float(self._returns[runs].mean()), exclude="stdout")
        self.rows.append(row)
        append_row(self.folder / PROGRESS_FILE, row)
        self._bar.set_postfix_str(
            f"return {row['return']:.3f}, log10 error {row['log10_error']:.2f}, clipped {row['clipped_share']:.0%}, "
            f"zero returns {row['zero_return_share']:.0%}"
        )

    def _on_training_end(self) -> None:
        self._finish_update()
        self._save_checkpoint()

    def close(self) -> None:
        """End the progress bar, wherever the training ended."""
        self._bar.close()

    def _finish_update(self) -> None:
        """Count the update whose rollout ended before this moment, and write a checkpoint when it is due."""
        if self._updates < self._collected:
            self._updates = self._collected
            self._bar.update()
            if self._updates % self._checkpoint_every == 0:
                self._save_checkpoint()

    def _save_checkpoint(self) -> None:
        assert isinstance(self.model, OnPolicyAlgorithm)
        records = self.folder / PROGRESS_FILE, self.folder / VALIDATION_FILE
        save_checkpoint(self.model, self._updates, self.folder / CHECKPOINT_FILE, records)


class Validation(BaseCallback):
    """Tries the policy on held-out problems every few updates, and keeps the best so far.

    The trials draw from generators of their own, so that the training is the same with and without them.
    """

    def __init__(self, folder: Path, every: int, first_update: int, try_policy: Callable[[Path], float]) -> None:
        """Prepare the trials of the run in ``folder``.

        Args:
            folder: Receives a row per trial, and the best policy so far.
            every: Updates between two trials.
            first_update: Updates already done; later rows of an interrupted run are dropped.
            try_policy: Writes the present policy as a controller to a path, and returns its mean return.
        """
        super().__init__()
        self.folder = folder
        known = _rows_before(folder / VALIDATION_FILE, first_update, _VALIDATION)
        self.rows = [row for row in known if row["update"] <= first_update]
        self._every = every
        self._updates = self._collected = first_update
        self._try_policy = try_policy
        self._candidate = folder / f".{BEST_FILE}.candidate.safetensors"

    def _on_training_start(self) -> None:
        self._candidate.unlink(missing_ok=True)  # of a trial that was killed
        write_rows(self.folder / VALIDATION_FILE, self.rows)

    def _on_rollout_start(self) -> None:
        self._finish_update()

    def _on_rollout_end(self) -> None:
        self._collected += 1

    def _on_training_end(self) -> None:
        self._finish_update()

    def _finish_update(self) -> None:
        """Try the policy where it has been updated with the rollout that ended before this moment, and it is due.

        Not at the end of every training: one that is extended later would then differ from one that was not stopped.
        """
        if self._updates < self._collected and self._collected % self._every == 0:
            self._validate()
        self._updates = self._collected

    def _on_step(self) -> bool:
        return True

    def _validate(self) -> None:
        try:
            mean_return = self._try_policy(self._candidate)
            if all(mean_return > row["return"] for row in self.rows):
                self._candidate.replace(self.folder / BEST_FILE)
        finally:
            self._candidate.unlink(missing_ok=True)
        self.logger.record("validation/return", mean_return)
        row = {"update": float(self._collected), "return": mean_return}
        self.rows.append(row)
        append_row(self.folder / VALIDATION_FILE, row)


def _curve_name(info: dict[str, Any]) -> str:
    """Return what TensorBoard calls the curve of a run's function."""
    part = f"part{info['part']}_" if "part" in info else ""
    return f"{part}f{info.get('function', 0)}"


def write_rows(path: Path, rows: list[dict[str, float]]) -> None:
    """Write ``rows`` to a CSV file, which is replaced whole or not at all; without rows, remove the file."""
    if not rows:
        path.unlink(missing_ok=True)
        return
    with replacing(path) as file:
        file.write(_csv(rows, with_header=True))


def append_row(path: Path, row: dict[str, float]) -> None:
    """Append ``row`` to a CSV file, with a header when it is new; it is on disk before a checkpoint relies on it."""
    with path.open("ab") as file:
        file.write(_csv([row], with_header=file.tell() == 0))
        file.flush()
        os.fsync(file.fileno())


def _csv(rows: list[dict[str, float]], with_header: bool) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, rows[0])
    if with_header:
        writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def _rows_before(path: Path, first_update: int, columns: tuple[str, ...]) -> list[dict[str, float]]:
    """Return the complete rows of the first updates; a kill or a power cut may have cut one off."""
    rows: list[dict[str, float]] = []
    if first_update == 0 or not path.exists():
        return rows
    with path.open(newline="", errors="replace") as file, suppress(csv.Error, TypeError, ValueError):
        for _, row in zip(range(first_update), csv.DictReader(file), strict=False):
            if tuple(row) != columns:
                break
            rows.append({key: float(value) for key, value in row.items()})
    return rows
