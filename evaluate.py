"""Compare controllers and baselines: ``python evaluate.py`` alone takes about five minutes on two cores.

It runs the last trained controller (or the one that comes with the package) beside random and constant control on
CEC'17 in 10 dimensions, compares them with the stored results of the paper's nine algorithms, and writes a report:
open ``report.html``. Interrupted or killed, the same command goes on where it stopped.

Every number follows from the seed: the same bits on any x86-64 processor under Linux, whatever the number of processes,
the order and the size of chunks. Only methods of other packages follow rules of their own.
"""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Literal

import tyro

from de_gym.controllers import DEFAULT
from de_gym.evaluation import (
    PROTOCOLS,
    MethodResults,
    OptimizerMethod,
    Protocol,
    Results,
    ResultStore,
    WorkerDiedError,
    add_to_result_file,
    equal_runs,
    every_method,
    export_ioh,
    load_results,
    make_methods,
    read_raw_errors,
    run_methods,
    shipped_results,
    write_report,
)
from de_gym.evaluation.paper import function_label, paper_algorithms
from de_gym.evaluation.parameters import ParameterTrace
from de_gym.evaluation.raw_errors import PublishedErrors
from de_gym.evaluation.store import SETTINGS_FILE
from de_gym.files import DISK_FULL
from de_gym.optimizers import PAPER_METHODS
from de_gym.problems import make_suite
from de_gym.problems.own_suites import is_own, own_dimensions

QUICK_RUNS = 25  # of the paper's 51: five minutes instead of ten, and rank-sum tests still see clear differences


@dataclass(frozen=True)
class EvalConfig:
    """Settings of ``evaluate.py``."""

    protocol: Literal[
        "quick",
        "paper-cec13-10d",
        "paper-cec13-10d-T",
        "paper-cec13-30d",
        "paper-cec17-10d",
        "paper-cec17-30d",
        "small-cec17-10d",
        "small-cec17-30d",
        "small-cec17-50d",
        "ladder-cec17-10d",
        "ladder-cec17-30d",
        "ladder-cec17-50d",
    ] = "quick"
    """quick: CEC'17 in 10 dimensions with fewer runs, baselines from stored results. The paper's tables are run in
    full, baselines included; small: the same with 250 evaluations per coordinate. ladder: everything there is, from
    stored results where there are any (which have no convergence: --no-stored runs all for the score of CEC'26)."""
    methods: tuple[str, ...] = ()
    """What to run: baselines (de jade jade-archive jso jso-lde-paper cobide cobide-pcm cde cde-pcm hses), random,
    constant, constant=F,CR, the name of a controller that comes with the package, or FILE.safetensors; controllers
    sample their actions unless ":mean" is appended. MODULE:ATTRIBUTE imports your own controller or model, and
    PPO:MODEL.zip loads one that Stable-Baselines3 or sb3-contrib saved (see --trust). The first is what the others are
    compared with. By default the controller, random and constant; except in quick also the baselines."""
    trust: bool = False
    """Whether saved models may be loaded: such a file can execute any code that its author put in."""
    runs: int | None = None
    """Runs per method and function; by default the protocol's."""
    problems: str | None = None
    """What to run on in place of the protocol's functions: MODULE:ATTRIBUTE imports your own list of problems (or
    suite object); also the name of a suite, cec2013, cec2017 or random:SEED."""
    dimension: int | None = None
    """Number of coordinates; by default the protocol's, or that of your own problems."""
    functions: tuple[int, ...] = ()
    """Official numbers of the functions, or positions in your own list, from 0 on; by default the protocol's or all."""
    max_evaluations: int | None = None
    """Budget of a run; by default 10,000 per dimension."""
    population_size: int | None = None
    """Individuals of all controllers; by default the paper's, 50 in 10 dimensions and 100 in 30."""
    stored: bool = True
    """Whether to add the stored results of baselines that are not run."""
    raw_errors: Path | None = None
    """CSV file of final errors that others published (algorithm, dim, func, run, error; official numbers), compared
    too, under the same rules."""
    seed: int = 0
    """Root seed; every random number of the evaluation follows from it."""
    backend: Literal["local", "dask", "ray"] = "local"
    """Where runs are computed: processes of this machine, or a cluster (RAY_ADDRESS, DASK_SCHEDULER_ADDRESS)."""
    jobs: int = -1
    """Worker processes; -1 for one per core, or all of the cluster."""
    chunk_size: int = 51
    """Runs that a worker computes at once: more is faster, less spreads over more workers."""
    traced_function: int | None = None
    """Function of the picture of F and CR along a run; by default the protocol's first composition function."""
    traced_methods: tuple[str, ...] = ()
    """Methods of that picture; by default the trained controllers and jSO, as in the paper."""
    ioh: Path | None = None
    """Folder for an export in the IOHprofiler format."""
    add_to: Path | None = None
    """Folder whose result file of this protocol takes the final errors, in place of those of the same methods; the
    package's own is de_gym/evaluation/results."""
    out: Path | None = None
    """Folder of results and report; by default results/PROTOCOL."""


def evaluate(config: EvalConfig, command: str = "") -> Path:
    """Run what is missing, write the report and return the path of its page."""
    protocol = make_protocol(config)
    folder = checked_folder(config.out or Path("results") / default_folder(config, protocol))
    names = list(config.methods) or default_names(config, protocol)
    stored = {column.name: column for column in stored_columns(config, protocol, names)}
    methods = named_methods(config, protocol, [name for name in names if name not in stored])
    if config.population_size is not None and not any(method.settings["kind"] == "controller" for method in methods):
        raise ValueError(f"`population_size` is for controllers, and there are none to run among {', '.join(names)}.")
    function = traced_function(config, protocol)
    traced = traced_methods(config, protocol, methods)
    published = None if config.raw_errors is None else read_raw_errors(config.raw_errors, protocol)
    columns = run_and_export(config, protocol, methods, folder)
    reference = names[0] if names[0] in stored else methods[0].name
    results = comparable([*columns, *stored.values()], published, protocol, reference)
    return write_report(
        results,
        folder,
        traces=trace_methods(traced, function, protocol),
        traced_function=function_label(protocol.suite, function),
        command=command,
    )


def run_and_export(
    config: EvalConfig, protocol: Protocol, methods: Sequence[OptimizerMethod], folder: Path
) -> list[MethodResults]:
    """Run what is missing of the methods and return their results, after writing the files that were asked for."""
    names = [method.name for method in methods]
    store = ResultStore(folder / "store", protocol)
    print(f"{protocol.table}: {', '.join(names) or 'nothing to run'}; {protocol.num_runs} runs each, kept in {folder}")
    run_methods(methods, store, backend=config.backend, jobs=config.jobs, chunk_size=config.chunk_size)
    columns = load_results(store, names)
    if config.ioh is not None:
        print(f"IOHprofiler data: {len(export_ioh(columns, protocol, config.ioh))} files in {config.ioh}")
    if config.add_to is not None:
        print(f"Final errors: {add_to_result_file(columns, protocol, config.add_to)}")
    return columns


def comparable(
    own: Sequence[MethodResults], published: PublishedErrors | None, protocol: Protocol, reference: str
) -> Results:
    """Return results with equally many runs, on the functions and in the digits that all have; and say what is not."""
    methods = list(own)
    if published is not None:
        rows = [protocol.functions.index(function) for function in published.functions]
        parts = [*(method.part(rows, method.num_runs) for method in own), *published.methods]
        methods = [method.rounded(published.digits) for method in parts]
        print(f"Published errors have {published.digits} digits; later ones are not compared.")
        if missing := [f"f{function}" for function in protocol.functions if function not in published.functions]:
            print(f"Left out, because not all published entries have them: {', '.join(missing)}.")
        protocol = replace(protocol, functions=published.functions)
    compared = equal_runs(methods, protocol.num_runs)
    if any(method.num_runs > compared[0].num_runs for method in methods):
        print(f"Of every method the first {compared[0].num_runs} runs are compared: more is more significant.")
    return Results(protocol, compared, reference)


def make_protocol(config: EvalConfig) -> Protocol:
    """Return the rules that the configuration asks for."""
    quick = PROTOCOLS["paper-cec17-10d"].with_runs(QUICK_RUNS)
    base = quick if config.protocol == "quick" else PROTOCOLS[config.protocol]
    num_runs = base.num_runs if config.runs is None else config.runs
    limit = base.max_evaluations if config.max_evaluations is None else config.max_evaluations
    base = replace(base, num_runs=num_runs, max_evaluations=limit, seed=config.seed)
    suite = base.suite if config.problems is None else config.problems
    dimension = config.dimension or common_dimension(suite) or base.dimension
    # The protocol's choice of functions is one of its own suite.
    chosen = config.functions or (base.functions if suite == base.suite else None)
    return replace(base, suite=suite, dimension=dimension, functions=make_suite(suite, dimension, chosen).numbers)


def common_dimension(suite: str) -> int | None:
    """Return the number of coordinates of the user's own problems, None for other suites."""
    if not is_own(suite):
        return None
    dimensions = own_dimensions(suite)
    if len(dimensions) > 1:
        raise ValueError(f"The problems of {suite!r} have {dimensions} coordinates: choose one with --dimension.")
    return dimensions[0]


def default_folder(config: EvalConfig, protocol: Protocol) -> str:
    """Return the name of the folder for results that was not chosen: results of other problems go elsewhere."""
    if config.problems is None and config.dimension is None:
        return config.protocol
    return protocol.table.replace(":", "-")


def named_methods(config: EvalConfig, protocol: Protocol, names: Sequence[str]) -> list[OptimizerMethod]:
    """Return the methods of the given names with the configuration's choices for controllers."""
    return make_methods(names, protocol, population_size=config.population_size, trust=config.trust)


def default_names(config: EvalConfig, protocol: Protocol) -> list[str]:
    """Return the last trained or a shipped controller, and what it is compared with under the chosen protocol."""
    trained = sorted(Path("runs").glob("*/controller.safetensors"), key=lambda path: path.stat().st_mtime)
    controller = str(trained[-1]) if trained else DEFAULT
    if is_ladder(config):
        return list(dict.fromkeys([controller, *every_method(protocol)]))
    printed = [] if config.protocol == "quick" else paper_algorithms(protocol.table)
    baselines = [name for name in printed if name in PAPER_METHODS]
    return [controller, "random", "constant", *baselines]


def stored_columns(config: EvalConfig, protocol: Protocol, names: Sequence[str]) -> list[MethodResults]:
    """Return the stored results to be shown: of baselines that are not run, on a ladder of all that need not be run."""
    if not config.stored:
        return []
    wanted = every_method(protocol) if is_ladder(config) else list(PAPER_METHODS)
    run = names if config.methods or not is_ladder(config) else []
    return [column for column in shipped_results(protocol) if column.name in wanted and column.name not in run]


def is_ladder(config: EvalConfig) -> bool:
    """Return whether everything there is shall be compared."""
    return config.protocol.startswith("ladder")


def traced_methods(config: EvalConfig, protocol: Protocol, methods: Sequence[OptimizerMethod]) -> list[OptimizerMethod]:
    """Return the methods whose F and CR are drawn: those asked for, or what was trained and jSO, as in the paper."""
    if config.traced_methods:
        return named_methods(config, protocol, config.traced_methods)
    trained = [method for method in methods if "weights_sha256" in method.settings]
    return [] if is_ladder(config) else [*trained, *named_methods(config, protocol, ["jso"])]


def traced_function(config: EvalConfig, protocol: Protocol) -> int:
    """Return the function whose F and CR are drawn; the paper draws the first composition function of CEC'13."""
    if config.traced_function is None:
        return 21 if 21 in protocol.functions else protocol.functions[0]
    if config.traced_function not in protocol.functions:
        raise ValueError(f"`traced_function` must be one of {protocol.functions}, got {config.traced_function}.")
    return config.traced_function


def trace_methods(methods: Sequence[OptimizerMethod], function: int, protocol: Protocol) -> list[ParameterTrace]:
    """Return F and CR along the first run of every method that has them."""
    problem = make_suite(protocol.suite, protocol.dimension, [function])[function]
    traces = []
    for method in methods:
        trace = method.trace(problem, protocol.run_seeds(function, [0])[0], protocol)
        traces += [] if trace is None else [trace]
    return traces


def checked_folder(folder: Path) -> Path:
    """Return the output folder, or refuse one that holds something else."""
    found = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    # Killed in its first moments, the command leaves an unfinished store and nothing else.
    foreign = [name for name in found if name != "store" and not fnmatch(name, ".store.*.part")]
    if foreign and not (folder / "store" / SETTINGS_FILE).exists():
        raise ValueError(
            f"The folder {str(folder)!r} holds files but no results of this script; name another with --out."
        )
    return folder


class Terminated(KeyboardInterrupt):
    """SIGTERM asked the command to end; what Ctrl-C does, then, and workers end with it."""


def _terminate(*_: object) -> None:
    raise Terminated


def main() -> int:
    """Run the command line; whatever ends it says so in one sentence, and what is done is kept."""
    config = tyro.cli(EvalConfig, description=__doc__)
    signal.signal(signal.SIGTERM, _terminate)
    try:
        page = evaluate(config, command=shlex.join(["python", *sys.argv]))
    except KeyboardInterrupt as interruption:
        said = str(interruption) or "Interrupted. Finished runs are kept; the same command goes on."
        print(f"\nevaluate.py: {said}", file=sys.stderr)
        return 128 + (signal.SIGTERM if isinstance(interruption, Terminated) else signal.SIGINT)
    except (OSError, ValueError, ImportError, WorkerDiedError) as error:
        full = isinstance(error, OSError) and error.errno in DISK_FULL
        what_to_do = "The disk is full: free some space; the same command goes on, finished runs are kept."
        said = what_to_do if full else str(error)
        print(f"evaluate.py: {said}", file=sys.stderr)
        return 1
    print(f"Report: {page}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
