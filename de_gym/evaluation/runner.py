"""Run methods x functions x runs into a result store: parallel, resumable, the same bits on every backend."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Protocol as Interface

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from de_gym.arrays import FloatArray
from de_gym.evaluation.array_files import DamagedFileError
from de_gym.evaluation.backends import WorkerDiedError, run_tasks
from de_gym.evaluation.protocol import Protocol
from de_gym.evaluation.store import ChunkKey, ResultStore
from de_gym.optimizers.records import RunResult
from de_gym.problems import Problem, make_suite
from de_gym.problems.budgets import ZERO_ERROR


class Method(Interface):
    """An optimiser under comparison: picklable, with settings that JSON can hold."""

    @property
    def name(self) -> str:
        """Its name in the store."""

    @property
    def settings(self) -> Mapping[str, object]:
        """Everything its results depend on besides protocol and seeds."""

    def run(self, problem: Problem, seeds: Sequence[np.random.SeedSequence], protocol: Protocol) -> RunResult:
        """Return the record of one run per seed; a run must depend on its own seed only."""


@dataclass(frozen=True)
class Chunk:
    """A unit of work: one method, one function, a range of runs.

    It carries its problem, because a worker knows nothing of suites that were registered elsewhere.
    """

    key: ChunkKey
    method: Method
    protocol: Protocol
    problem: Problem


def run_methods(
    methods: Sequence[Method],
    store: ResultStore,
    *,
    backend: str = "local",
    jobs: int = -1,
    chunk_size: int = 51,
    progress: bool = True,
) -> None:
    """Compute all runs of ``methods`` that ``store`` still lacks under its protocol.

    Every finished chunk is on disk before the next one is waited for, so after Ctrl-C, a dead worker or a kill the same
    call goes on where it stopped. Damaged chunks are reported by a warning and computed again.

    Args:
        methods: Methods with distinct names.
        store: Where results go; other evaluations may use it at the same time.
        backend: ``"local"``, ``"dask"`` or ``"ray"``.
        jobs: Number of worker processes; -1 for one per core.
        chunk_size: Runs per chunk. Large chunks compute faster, small ones spread over more workers.
        progress: Whether to show a progress bar with the time left.
    """
    names = [method.name for method in methods]
    if len(set(names)) < len(names):
        raise ValueError(f"Methods need distinct names, got {', '.join(names)}.")
    if chunk_size < 1:
        raise ValueError(f"`chunk_size` must be at least 1, got {chunk_size}.")
    for method in methods:
        store.register(method.name, method.settings)
    protocol = store.protocol
    suite = make_suite(protocol.suite, protocol.dimension, protocol.functions)
    chunks = [
        Chunk(key, method, protocol, suite[function])
        for function in protocol.functions
        for method in methods
        for key in missing_chunks(store, method.name, function, chunk_size)
    ]
    num_runs = sum(len(chunk.key.runs) for chunk in chunks)
    done = 0
    try:
        with (
            closing(run_tasks(run_chunk, chunks, backend, jobs)) as finished,
            tqdm(total=num_runs, unit="run", disable=not progress, smoothing=0.05) as bar,
        ):
            for key, arrays in finished:
                store.save(key, arrays)
                done += len(key.runs)
                bar.set_postfix_str(f"{key.method} f{key.function}", refresh=False)
                bar.update(len(key.runs))
    except KeyboardInterrupt as interruption:
        raise type(interruption)(f"Interrupted. {_progress_kept(store, done, num_runs)}") from None
    except WorkerDiedError as error:
        raise WorkerDiedError(f"{error}. {_progress_kept(store, done, num_runs)}") from error
    except OSError as error:  # a full disk, most of all
        raise OSError(f"{error.strerror or error}. {_progress_kept(store, done, num_runs)}") from error
    store.remove_abandoned()


def run_chunk(chunk: Chunk) -> tuple[ChunkKey, dict[str, NDArray[np.generic]]]:
    """Return a chunk's key and its arrays; an error below the target counts as 0."""
    protocol, key, problem = chunk.protocol, chunk.key, chunk.problem
    # Where the optimum is unknown, errors are the values themselves, and no value counts as 0.
    target = -np.inf if problem.optimum is None else protocol.target_error
    seeds = protocol.run_seeds(key.function, key.runs)
    try:
        record = chunk.method.run(problem, seeds, protocol)
    except Exception as error:
        error.add_note(f"This happened in {key.method!r} on function {key.function}, runs {key.start} to {key.stop}.")
        raise
    return key, {
        "errors": _reached_is_zero(record.errors, target),
        "evaluations": record.evaluations,
        "best_positions": record.best_positions,
        "convergence": _reached_is_zero(record.convergence, target),
        "grid": record.grid,
    }


def missing_chunks(store: ResultStore, method: str, function: int, chunk_size: int) -> list[ChunkKey]:
    """Return the chunks still to compute, after discarding the damaged ones with a warning."""
    missing = set(range(store.protocol.num_runs))
    for key in store.chunks(method):
        if key.function != function:
            continue
        try:
            store.load(key)
        except DamagedFileError as error:
            warnings.warn(f"Damaged chunk, computed again: {error}", stacklevel=2)
            store.discard(key)
        else:
            missing -= set(key.runs)
    keys: list[ChunkKey] = []
    for run in sorted(missing):
        last = keys[-1] if keys else None
        if last is not None and last.stop == run and len(last.runs) < chunk_size:
            keys[-1] = ChunkKey(function, last.start, run + 1, method)
        else:
            keys.append(ChunkKey(function, run, run + 1, method))
    return keys


def _reached_is_zero(errors: FloatArray, target_error: float) -> FloatArray:
    # A value below the stated minimum is no solved run: the optimiser has warned, and the error stays negative.
    return np.where((errors < target_error) & (errors > -ZERO_ERROR), 0.0, errors)


def _progress_kept(store: ResultStore, done: int, wanted: int) -> str:
    return (
        f"{done} of {wanted} runs were finished and are kept in {str(store.folder)!r}; "
        "the same command computes only the rest."
    )
