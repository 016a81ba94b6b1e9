"""Compare methods under the paper's protocol: run, store, test, report."""

from de_gym.evaluation.backends import BACKENDS, WorkerDiedError
from de_gym.evaluation.comparison import Comparison, compare
from de_gym.evaluation.ioh import export_ioh
from de_gym.evaluation.methods import ALGORITHMS, OptimizerMethod, controller_method, every_method, make_methods
from de_gym.evaluation.protocol import PROTOCOLS, Protocol
from de_gym.evaluation.raw_errors import read_raw_errors
from de_gym.evaluation.report import write_report
from de_gym.evaluation.results import (
    MethodResults,
    Results,
    add_to_result_file,
    equal_runs,
    load_results,
    shipped_results,
)
from de_gym.evaluation.runner import run_methods
from de_gym.evaluation.store import ResultStore

__all__ = [
    "ALGORITHMS",
    "BACKENDS",
    "PROTOCOLS",
    "Comparison",
    "MethodResults",
    "OptimizerMethod",
    "Protocol",
    "ResultStore",
    "Results",
    "WorkerDiedError",
    "add_to_result_file",
    "compare",
    "controller_method",
    "equal_runs",
    "every_method",
    "export_ioh",
    "load_results",
    "make_methods",
    "read_raw_errors",
    "run_methods",
    "shipped_results",
    "write_report",
]
