"""Damaged files: reading one gives what was written or a ``ValueError`` of one sentence, and nothing else."""

from __future__ import annotations

import json
import os
import pickle
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from findings import Findings


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Attributes:
        name: What reports call it.
        content: The bytes of a file that is whole.
        before: The bytes that it replaced, for writes that are torn.
        read: Returns what a file holds.
        suffix: How its name ends.
    """

    name: str
    content: bytes
    before: bytes
    read: Callable[[Path], object]
    suffix: str


def damaged(content: bytes, before: bytes, rng: np.random.Generator) -> bytes:
    """Return the content with flipped bits, cut off, or written only in part."""
    data, kind = bytearray(content), int(rng.integers(6))
    # A write that is torn where both are still the same leaves the old file, whole.
    same = next(i for i, (new, old) in enumerate(zip(content, before, strict=False)) if new != old)
    place = int(rng.integers(len(data)))
    if kind in (0, 1, 2):
        for _ in range((1, 1, int(rng.integers(2, 9)))[kind]):
            data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
        return bytes(data)
    if kind == 3:
        return content[:place]
    if kind == 4:  # pages that never reached the disk
        length = int(rng.integers(1, 4097))
        data[place : place + length] = bytes(len(data[place : place + length]))
        return bytes(data)
    place = same + 1 + place % (len(content) - same)
    return content[:place] + before[place:]


_SLICE = 500


def flip(count: int, first: int, totals: Findings, seed: int) -> None:
    """Read the damaged files ``first`` to ``first + count - 1`` that are not done."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kinds = make_kinds(folder)
        # A write that was torn before anything but a date had changed leaves the old file, which is whole too.
        whole = {kind.name: [_outcome(kind, folder, one)[1] for one in (kind.content, kind.before)] for kind in kinds}
        for begin in range(first, first + count, _SLICE):
            numbers = range(begin, min(begin + _SLICE, first + count))
            if (unit := f"files {begin} to {numbers[-1]}") not in totals:
                totals.add(unit, *_read_damaged(numbers, seed, folder, kinds, whole))


def _read_damaged(
    numbers: range, seed: int, folder: Path, kinds: list[Kind], whole: Mapping[str, list[object]]
) -> tuple[Counter[str], list[str]]:
    """Read damaged files and return the figures and the findings."""
    figures: Counter[str] = Counter()
    findings = []
    for number in numbers:
        kind = kinds[number % len(kinds)]
        content = damaged(kind.content, kind.before, np.random.default_rng([seed, number]))
        outcome, seen = _outcome(kind, folder, content)
        right = outcome == "read" and seen in whole[kind.name]
        figures.update(["files", f"of kind {kind.name}", "same" if right else outcome])
        if outcome != "refusal" and not right:
            what = "other content, silently" if outcome == "read" else str(seen)
            findings.append(f"file {number}, {kind.name}: {what}")
    return figures, findings


def _outcome(kind: Kind, folder: Path, content: bytes) -> tuple[str, object]:
    """Return "read" and what was read, "refusal", or "error" and what was raised."""
    path = folder / f"damaged{kind.suffix}"
    path.write_bytes(content)
    try:
        return "read", kind.read(path)
    except ValueError as error:
        message = str(error)
        if "\n" in message or not message.endswith((".", "?", ")")) or len(message) > 1500:
            return "error", f"not one sentence: {message[:300]!r}"
        return "refusal", message
    except Exception as error:
        return "error", f"{type(error).__name__}: {str(error)[:300]}"
    finally:
        path.unlink(missing_ok=True)


def make_kinds(folder: Path) -> list[Kind]:
    """Return a file of every kind, with the one it replaced."""
    return [
        *_controllers(folder), _checkpoint(folder), _record(folder), _strategy(folder), *_results(folder),
        *_store_settings(folder), *_pages(folder), _minimize(folder), _asked(folder), _config(folder),
    ]  # fmt: skip


def _kind(name: str, write: Callable[[Path, int], object], read: Callable[[Path], object], path: Path) -> Kind:
    write(path, 1)
    before = path.read_bytes()
    path.unlink()
    write(path, 2)
    return Kind(name, path.read_bytes(), before, read, path.suffix)


def _controllers(folder: Path) -> Iterator[Kind]:
    from de_gym.controllers import ResidualController, load, save_controller, save_residual_controller

    def write_recurrent(path: Path, number: int) -> None:
        save_controller(load(("short-10d", "long-10d")[number - 1]), path)

    def read(path: Path) -> object:
        controller = load(path)
        if isinstance(controller, ResidualController):
            names = controller.features, controller.controls
            arrays = controller.weights, controller.size_weights, controller.budgets, controller.dimensions
            return pickle.dumps((*names, *arrays, dict(controller.info)))
        arrays = {name: array.tobytes() for name, array in sorted(controller.tensors.items())}
        return arrays, asdict(controller.info)

    def write_residual(path: Path, number: int) -> None:
        from dataclasses import replace

        shipped = load("adaptive")
        assert isinstance(shipped, ResidualController)
        save_residual_controller(replace(shipped, weights=shipped.weights * number), path)

    yield _kind("controller", write_recurrent, read, folder / "controller.safetensors")
    yield _kind("residual controller", write_residual, read, folder / "residual.safetensors")


def _tiny_agent() -> Any:
    from agents.config import TrainConfig
    from agents.training import make_agent, make_training_env

    config = TrainConfig(
        functions=(1,), episodes_per_function=2, dimension=2, population_size=6, max_generations=4, cell_size=3,
        test_functions=(2,),
    )  # fmt: skip
    return make_agent(config, make_training_env(config))


def _checkpoint(folder: Path) -> Kind:
    from agents.checkpoints import load_checkpoint, save_checkpoint

    agent = _tiny_agent()

    def write(path: Path, number: int) -> None:
        agent.learn(8, reset_num_timesteps=False)
        save_checkpoint(agent, number, path)

    def read(path: Path) -> object:
        progress = load_checkpoint(agent, path, 10)
        weights = {name: tensor.numpy().tobytes() for name, tensor in agent.policy.state_dict().items()}
        states = agent.policy.optimizer.state_dict()["state"]
        return progress, weights, {key: [t.numpy().tobytes() for t in state.values()] for key, state in states.items()}

    return _kind("training checkpoint", write, read, folder / "checkpoint.safetensors")


def _record(folder: Path) -> Kind:
    from agents.callbacks import VALIDATION_FILE, append_row
    from agents.checkpoints import load_checkpoint, save_checkpoint

    agent, checkpoint, record = _tiny_agent(), folder / "recorded.safetensors", folder / VALIDATION_FILE

    def write(path: Path, number: int) -> None:
        for update in range(1, number + 1):
            append_row(path, {"update": float(update), "return": 0.1 * update * number})
        save_checkpoint(agent, 0, checkpoint, [path])

    def read(path: Path) -> object:
        content = path.read_bytes()
        os.replace(path, record)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                load_checkpoint(agent, checkpoint, 10)
            except RuntimeWarning as warning:
                raise ValueError(str(warning)) from warning  # what is said and stops no training
        return content

    return _kind("record of a training", write, read, record)


def _strategy(folder: Path) -> Kind:
    from agents.evolution_strategy import EvolutionStrategy, Stage

    strategy = EvolutionStrategy(Stage(1, (2,), largest_budget=60.0, num_problems=2), num_candidates=4)

    def write(path: Path, number: int) -> None:
        strategy.learn(1)
        strategy.save(path)

    def read(path: Path) -> object:
        loaded = EvolutionStrategy.load(path)
        return loaded.settings, loaded.scores, loaded.anchor_scores, loaded.mean.tobytes()

    return _kind("strategy", write, read, folder / "strategy.json")


def _results(folder: Path) -> Iterator[Kind]:
    from de_gym.evaluation import PROTOCOLS
    from de_gym.evaluation.array_files import DamagedFileError, read_arrays, write_arrays
    from de_gym.evaluation.result_files import read_runs, result_file

    def write_chunk(path: Path, number: int) -> None:
        write_arrays(path, {"errors": np.arange(40.0) * number, "evaluations": np.arange(40)}, "chunk")

    def read_chunk(path: Path) -> object:
        try:
            return {name: array.tobytes() for name, array in read_arrays(path, "chunk").items()}
        except DamagedFileError as error:
            raise ValueError(str(error)) from error  # the store computes such a chunk anew

    yield _kind("chunk of a store", write_chunk, read_chunk, folder / "chunk.npz")
    protocol = PROTOCOLS["paper-cec13-10d"]
    shipped, older = (result_file(PROTOCOLS[name]).read_bytes() for name in ("paper-cec13-10d", "paper-cec13-30d"))

    def read_file(path: Path) -> object:
        os.replace(path, folder / result_file(protocol).name)
        runs = read_runs(protocol, folder)
        return {name: (entry.errors.tobytes(), json.dumps(dict(entry.settings))) for name, entry in runs.items()}

    yield Kind("result file", shipped, older, read_file, ".npz")


def _store_settings(folder: Path) -> Iterator[Kind]:
    from de_gym.evaluation import PROTOCOLS, ResultStore

    protocol, made = PROTOCOLS["paper-cec17-10d"], {"scale_factor": 0.5, "names": ["a", "b"], "size": None}
    store = ResultStore(folder / "store", protocol)
    store.register("mine", made)
    protocol_file, method_file = (store.folder / name for name in ("settings.json", "methods/mine/settings.json"))

    def read_protocol(path: Path) -> object:
        os.replace(path, protocol_file)
        return ResultStore(store.folder, protocol).protocol, _stated(protocol_file)

    def read_method(path: Path) -> object:
        os.replace(path, method_file)
        store.register("mine", made)
        return _stated(method_file)

    for name, file, read in (("store", protocol_file, read_protocol), ("method", method_file, read_method)):
        content = file.read_bytes()
        yield Kind(f"settings of a {name}", content, content.replace(b"0", b"7"), read, ".json")


def _stated(path: Path) -> object:
    """Return the settings of a file; an entry that is null says as much as none, whatever its name."""

    def without_null(entries: list[tuple[str, object]]) -> dict[str, object]:
        return {name: entry for name, entry in entries if entry is not None}

    return json.loads(path.read_text(), object_pairs_hook=without_null)


def _pages(folder: Path) -> Iterator[Kind]:
    from de_gym.evaluation import PROTOCOLS
    from de_gym.evaluation.curves import curve_file, read_curves
    from de_gym.evaluation.held_out import Case, HeldOutErrors, read_held_out, write_held_out
    from de_gym.evaluation.result_files import RESULTS

    protocol = PROTOCOLS["paper-cec17-10d"]
    shipped, older = (curve_file(one, RESULTS).read_bytes() for one in (protocol, PROTOCOLS["paper-cec13-10d"]))

    def read_curve(path: Path) -> object:
        os.replace(path, curve_file(protocol, folder))
        return {name: curves.shares.tobytes() for name, (curves, _) in read_curves(protocol, folder).items()}

    def write(path: Path, number: int) -> None:
        errors = {"mine": {Case(10, 200): np.arange(6.0).reshape(2, 3) * number}}
        write_held_out(HeldOutErrors(errors, {"mine": {"size": number}}), path)

    def read(path: Path) -> object:
        content = read_held_out(path)
        errors = {
            name: {case: cell.tobytes() for case, cell in cells.items()} for name, cells in content.errors.items()
        }
        return content.settings, errors

    yield Kind("curves", shipped, older, read_curve, ".npz")
    yield _kind("held-out errors", write, read, folder / "held-out.npz")


def _bowl(x: Any) -> float:
    return float(np.sum(np.square(x)))


def _minimize(folder: Path) -> Kind:
    from de_gym import minimize

    def run(path: Path, seed: int) -> object:
        result = minimize(_bowl, [(-5, 5)] * 2, method="de", max_evaluations=60, seed=seed, checkpoint=path)
        return result.x.tobytes(), result.fun, result.nfev

    return _kind("minimize checkpoint", run, lambda path: run(path, 2), folder / "run.npz")


def _asked(folder: Path) -> Kind:
    from de_gym import Optimizer

    def write(path: Path, number: int) -> None:
        run = Optimizer([(-5, 5)] * 2, method="de", population_size=6, max_evaluations=60, seed=number)
        for points in (run.ask(), run.ask(4)):
            run.tell(points, [_bowl(point) for point in points])
        run.save(path)

    def read(path: Path) -> object:
        run = Optimizer.load(path)
        return run.result.x.tobytes(), run.result.nfev, run.outstanding.tobytes(), run.ask().tobytes()

    return _kind("saved Optimizer", write, read, folder / "asked.npz")


def _config(folder: Path) -> Kind:
    from agents.config import TrainConfig
    from agents.run_folders import CONFIG_FILE, load_run_config, save_run_config

    def write(path: Path, number: int) -> None:
        save_run_config(TrainConfig(seed=10**number, learning_rate=0.001 * number), folder)

    def read(path: Path) -> object:
        os.replace(path, folder / CONFIG_FILE)
        return load_run_config(folder)

    return _kind("configuration", write, read, folder / CONFIG_FILE)


def summary(totals: Findings) -> str:
    """Return the line of figures."""
    kinds = sum(name.startswith("of kind ") for name in totals.figures)
    return (
        f"flips: {totals.figures['files']} damaged files of {kinds} kinds; {totals.figures['same']} read as written, "
        f"{totals.figures['refusal']} refused in one sentence, {len(totals.all)} findings"
    )
