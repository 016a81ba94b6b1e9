"""Records of a training in Weights & Biases or MLflow: what SB3's logger gets, they get."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from numbers import Real
from typing import Any, Literal

from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import KVWriter

TrackerName = Literal["wandb", "mlflow"]


def import_tracker(name: TrackerName) -> Any:
    """Return the package of a tracker, or say how to get it."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise ValueError(f"`track` {name!r} needs the package {error.name!r}: pip install {name}.") from error


class Tracking(BaseCallback):
    """Begins a run of the tracker with the training, and ends it with the training, however that ends."""

    def __init__(self, name: TrackerName, title: str, settings: Mapping[str, Any]) -> None:
        """Prepare a run called ``title`` with these hyper-parameters."""
        super().__init__()
        self._package = import_tracker(name)
        self._is_wandb = name == "wandb"
        self._title = title
        self._settings = {key: str(value) if value is None else value for key, value in settings.items()}

    def _on_training_start(self) -> None:
        if self._is_wandb:
            run = self._package.init(project="de_gym", name=self._title, config=self._settings)
            log = run.log
        else:
            self._package.start_run(run_name=self._title)
            self._package.log_params(self._settings)
            log = self._package.log_metrics
        self.logger.output_formats.append(_TrackerWriter(log))

    def _on_step(self) -> bool:
        return True

    def close(self) -> None:
        """End the tracker's run."""
        (self._package.finish if self._is_wandb else self._package.end_run)()


class _TrackerWriter(KVWriter):
    """Hands the numbers that SB3's logger collects to a tracker, which calls steps what SB3 calls time steps."""

    def __init__(self, log: Any) -> None:
        self._log = log

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0) -> None:
        """Log what TensorBoard gets too, but for what is no number."""
        shown = {
            name: float(value)
            for name, value in key_values.items()
            if isinstance(value, Real) and "tensorboard" not in (key_excluded.get(name) or ())
        }
        self._log(shown, step=step)

    def close(self) -> None:
        """Do nothing: the run is ended by whoever began it."""
