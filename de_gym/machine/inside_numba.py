"""What needs numba's inside, to spare users waiting: parts of kernels, and kernels read without the compiler.

A part is a function that is compiled into kernels and never for itself. Numba would optimise every function that a
kernel calls, make machine code and wrappers for Python from it, and then do all of that again with the kernel that
contains it; and once more for every constant the function is called with. Half of the time that a first call takes
would go into code that nobody runs.

``compiling`` decides with which releases of numba this is used.
"""

# Numba's compiler may be extended, but says little about its types.
# mypy: disable-error-code="attr-defined, misc, no-untyped-call, override"

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from numba import config
from numba._dynfunc import make_function
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.registry import CPUDispatcher
from numba.core.runtime import rtsys
from numba.core.sigutils import normalize_signature
from numba.core.typed_passes import (
    IRLegalization,
    NativeLowering,
    NoPythonBackend,
    NopythonTypeInference,
    PreLowerStripPhis,
)
from numba.core.types import unliteral
from numba.core.untyped_passes import (
    DeadBranchPrune,
    FixupArgs,
    GenericRewrites,
    IRProcessing,
    ReconstructSSA,
    RewriteSemanticConstants,
    TranslateByteCode,
)

Function = TypeVar("Function", bound=Callable[..., object])

# What numba does with a function of plain loops. Left out is what serves closures, comprehensions, ``with``, literals
# and expressions of whole arrays: kernels have none of these, but numba would look for them in every part.
_STEPS = (
    TranslateByteCode,
    FixupArgs,
    IRProcessing,
    RewriteSemanticConstants,
    DeadBranchPrune,
    GenericRewrites,
    ReconstructSSA,
    NopythonTypeInference,
    PreLowerStripPhis,
    IRLegalization,
    NativeLowering,
    NoPythonBackend,
)


class _PartLibrary(JITCodeLibrary):
    """The intermediate code of a part: kernels copy it, and optimise it where they use it."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout
        passes, builder = self._codegen._function_pass_manager()
        for function in ll_module.functions:
            if not function.is_declaration:
                passes.run(function, builder)

    def _optimize_final_module(self) -> None:
        return

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerPart(NativeLowering):
    """Numba's last step, without machine code of the part alone, which nobody would call."""

    _name = "lower_part"

    def run_pass(self, state: Any) -> bool:
        state.library = _PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        function = state.cr.fndesc
        # Numba knows functions by an object like this; nothing calls the address.
        entry = make_function(function.lookup_module(), function.qualname, "", 0, state.cr.env, (state.library,))
        state.targetctx.insert_user_function(entry, function, [state.library])
        state.cr = state.cr._replace(cfunc=entry)
        return True


class KernelCompiler(CompilerBase):
    """Numba's compiler with the steps alone that kernels need."""

    _steps: tuple[type, ...] = _STEPS

    def define_pipelines(self) -> list[Any]:
        """Return the steps, as numba asks for them."""
        manager = PassManager("kernel")
        for step in self._steps:
            manager.add_pass(step, step.__name__)
        manager.finalize()
        return [manager]


class _PartCompiler(KernelCompiler):
    _steps = tuple(_LowerPart if step is NativeLowering else step for step in _STEPS)


class _Part(CPUDispatcher):
    """A function that is compiled into kernels only; Python, too, may call it, and runs it as it is written."""

    def __call__(self, *arguments: Any) -> Any:
        return self.py_func(*arguments)

    def compile(self, sig: Any) -> Any:
        arguments, result = normalize_signature(sig)
        if arguments not in self.overloads:
            with global_compiler_lock, self._compiling_counter:
                self.add_overload(self._compiler.compile(arguments, result))
        return self.overloads[arguments].entry_point

    def get_call_template(self, args: Sequence[Any], kws: dict[str, Any]) -> Any:
        # Numba would compile one version for each constant that it is called with.
        return super().get_call_template([unliteral(kind) for kind in args], kws)


def as_part(function: Function, **options: bool) -> Function:
    """Return ``function`` as a part, with further options of numba."""
    if config.DISABLE_JIT:
        return function
    options.update(nopython=True, nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
    return cast(Function, _Part(function, {}, {"error_model": "numpy", **options}, _PartCompiler))


def load_without_compiler(dispatcher: Any) -> None:
    """Let a kernel that is on disk be loaded as it is.

    Numba would first load all that it can compile, and parts of scipy with it: 60 MB and a third of a second.
    """
    cache = dispatcher._cache

    def load(signature: Any, context: Any) -> Any:
        rtsys.initialize(context)
        with cache._guard_against_spurious_io_errors():
            return cache._load_overload(signature, context)

    cache.load_overload = load
