"""``Lanes``: a number of WIDTH points at once, for compiled code that reads like scalar arithmetic.

The benchmark kernels evaluate WIDTH points side by side. Inside compiled code a ``Lanes`` value holds one double for
each of them and lives in vector registers; ``+ - * /``, comparisons and the functions below act on all lanes. Every
lane sees the same IEEE operations in the same order, so the value of a point never depends on its neighbours.
``Lanes`` exist in compiled code only: they are loaded from and stored to ordinary float64 arrays. How they look to
a type checker is written in ``lanes.pyi``; this file is what numba needs to know to make machine code of them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable

WIDTH: Final = 8

_FLOATS = ir.VectorType(ir.DoubleType(), WIDTH)
_BITS = ir.VectorType(ir.IntType(64), WIDTH)
_FLAGS = ir.VectorType(ir.IntType(1), WIDTH)
_POSITIONS = ir.VectorType(ir.IntType(32), WIDTH)

# numba calls code generators with (target context, LLVM builder, signature, LLVM values); none of them is typed.
_CodeGenerator = Callable[[Any, Any, Any, Any], Any]


class LanesType(types.Type):
    """WIDTH doubles."""

    def __init__(self) -> None:
        super().__init__(name="Lanes")


class MaskType(types.Type):
    """WIDTH truth values."""

    def __init__(self) -> None:
        super().__init__(name="LanesMask")


LANES: Final = LanesType()
MASK: Final = MaskType()


@register_model(LanesType)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, data_model_manager: Any, numba_type: Any) -> None:
        super().__init__(data_model_manager, numba_type, _FLOATS)


@register_model(MaskType)
class _MaskModel(models.PrimitiveModel):
    def __init__(self, data_model_manager: Any, numba_type: Any) -> None:
        super().__init__(data_model_manager, numba_type, _FLAGS)


def fill_vector(builder: Any, scalar: Any) -> Any:
    """Return the vector with ``scalar``, a double or an integer, in every place."""
    undefined = ir.Constant(ir.VectorType(scalar.type, WIDTH), ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(_POSITIONS, [0] * WIDTH))


def _vectors(builder: Any, signature: Any, values: Any) -> list[Any]:
    """Return ``values`` with plain numbers spread over all lanes."""
    kinds = zip(signature.args, values, strict=True)
    return [fill_vector(builder, value) if isinstance(kind, types.Float) else value for kind, value in kinds]


def _is_mixture(*kinds: Any) -> bool:
    """Return whether these argument types are lanes and plain floats, with lanes among them."""
    return any(kind is LANES for kind in kinds) and all(
        kind is LANES or isinstance(kind, types.Float) for kind in kinds
    )


def _register_operator(function: Callable[..., Any], result: types.Type, emit: Callable[[Any, Any, Any], Any]) -> None:
    """Teach numba a binary operator on lanes and floats; ``emit(builder, left, right)`` makes its instruction."""

    @type_callable(function)
    def type_operator(context: Any) -> Any:
        return lambda left, right: result if _is_mixture(left, right) else None

    def lower_operator(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return emit(builder, *_vectors(builder, signature, values))

    for kinds in ((LanesType, LanesType), (LanesType, types.Float), (types.Float, LanesType)):
        lower_builtin(function, *kinds)(lower_operator)


def _comparison(symbol: str) -> Callable[[Any, Any, Any], Any]:
    return lambda builder, left, right: builder.fcmp_ordered(symbol, left, right)


_register_operator(operator.add, LANES, lambda builder, left, right: builder.fadd(left, right))
_register_operator(operator.sub, LANES, lambda builder, left, right: builder.fsub(left, right))
_register_operator(operator.mul, LANES, lambda builder, left, right: builder.fmul(left, right))
_register_operator(operator.truediv, LANES, lambda builder, left, right: builder.fdiv(left, right))
for _function, _symbol in ((operator.lt, "<"), (operator.le, "<="), (operator.gt, ">"), (operator.eq, "==")):
    _register_operator(_function, MASK, _comparison(_symbol))


@type_callable(operator.or_)
def _type_union(context: Any) -> Any:
    return lambda left, right: MASK if left is MASK and right is MASK else None


@lower_builtin(operator.or_, MaskType, MaskType)
def _lower_union(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    return builder.or_(*values)


@type_callable(operator.neg)
def _type_negation(context: Any) -> Any:
    return lambda lanes: LANES if lanes is LANES else None


@lower_builtin(operator.neg, LanesType)
def _lower_negation(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    return builder.fneg(values[0])


def _call(builder: Any, name: str, vectors: list[Any]) -> Any:
    """Return the result of the LLVM vector intrinsic ``name``."""
    function_type = ir.FunctionType(_FLOATS, [_FLOATS] * len(vectors))
    function = cgutils.get_or_insert_function(builder.module, function_type, f"llvm.{name}.v{WIDTH}f64")
    return builder.call(function, vectors)


def _elementwise(name: str) -> _CodeGenerator:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return _call(builder, name, _vectors(builder, signature, values))

    return generate


@intrinsic
def square_root(typing_context: Any, lanes: Any) -> Any:
    """Return the square root of every lane."""
    return LANES(lanes), _elementwise("sqrt")


@intrinsic
def absolute(typing_context: Any, lanes: Any) -> Any:
    """Return the absolute value of every lane."""
    return LANES(lanes), _elementwise("fabs")


@intrinsic
def round_down(typing_context: Any, lanes: Any) -> Any:
    """Return the largest integer not above every lane."""
    return LANES(lanes), _elementwise("floor")


@intrinsic
def round_nearest(typing_context: Any, lanes: Any) -> Any:
    """Return the integer nearest to every lane, ties to even."""
    return LANES(lanes), _elementwise("rint")


@intrinsic
def with_sign_of(typing_context: Any, magnitude: Any, sign: Any) -> Any:
    """Return every lane of ``magnitude`` with the sign of the same lane of ``sign``."""
    return LANES(magnitude, sign), _elementwise("copysign")


@intrinsic
def multiply_add(typing_context: Any, left: Any, right: Any, addend: Any) -> Any:
    """Return left * right + addend, rounded once; each argument is lanes or a plain float."""
    return LANES(left, right, addend), _elementwise("fma")


@intrinsic
def spread(typing_context: Any, number: Any) -> Any:
    """Return lanes that all hold ``number``."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return fill_vector(builder, values[0])

    return LANES(types.float64), generate


@intrinsic
def choose(typing_context: Any, mask: Any, accepted: Any, refused: Any) -> Any:
    """Return ``accepted`` in the lanes where ``mask`` holds and ``refused`` elsewhere.

    With a plain truth value and plain floats it returns one of them, so that a formula can serve both kinds.
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.select(*(_vectors(builder, signature, values) if mask is MASK else values))

    result = LANES if mask is MASK else types.float64
    return result(mask, accepted, refused), generate


@intrinsic
def split_exponent(typing_context: Any, lanes: Any) -> Any:
    """Return (m, e) with lane = m * 2**e and m in [sqrt(1/2), sqrt(2)), for positive normal lanes."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        def constant(bits: int) -> Any:
            return ir.Constant(_BITS, [bits] * WIDTH)

        bits = builder.bitcast(values[0], _BITS)
        # Counting exponents from sqrt(1/2), biased so that a logical shift does: AVX2 has no arithmetic one.
        offset = builder.sub(bits, constant(0x3FE6A09E667F3BCD - (1024 << 52)))
        biased = builder.lshr(offset, constant(52))
        exponent_bits = builder.shl(builder.sub(biased, constant(1024)), constant(52))
        mantissa = builder.bitcast(builder.sub(bits, exponent_bits), _FLOATS)
        # The integer becomes a double by way of the mantissa bits of 2**52.
        as_float = builder.bitcast(builder.or_(biased, constant(0x4330000000000000)), _FLOATS)
        exponent = builder.fsub(as_float, ir.Constant(_FLOATS, [2.0**52 + 1024.0] * WIDTH))
        return context.make_tuple(builder, signature.return_type, [mantissa, exponent])

    return types.UniTuple(LANES, 2)(lanes), generate


@intrinsic
def power_of_two(typing_context: Any, lanes: Any) -> Any:
    """Return 2**k for lanes that hold integers k from -1022 to 1023."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        # Adding 1.5 * 2**52 leaves k + 1023 in the low mantissa bits; the shift moves it into the exponent.
        magic = ir.Constant(_FLOATS, [6755399441055744.0 + 1023.0] * WIDTH)
        bits = builder.bitcast(builder.fadd(values[0], magic), _BITS)
        return builder.bitcast(builder.shl(bits, ir.Constant(_BITS, [52] * WIDTH)), _FLOATS)

    return LANES(lanes), generate


def _element(builder: Any, pointer: Any, position: Any) -> Any:
    return builder.gep(pointer, [position])


def _row(builder: Any, pointer: Any, row: Any) -> Any:
    """Return the address of WIDTH numbers, ``row`` times WIDTH behind ``pointer``."""
    start = builder.mul(row, ir.Constant(ir.IntType(64), WIDTH))
    return builder.bitcast(_element(builder, pointer, start), _FLOATS.as_pointer())


@intrinsic
def pointer_to(typing_context: Any, array: Any) -> Any:
    """Return the address of a contiguous array's first element.

    Inside a kernel arrays are handed on as bare pointers: they cost one register instead of eight, no
    reference counting and no test for negative indices. The caller keeps the array alive.
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return context.make_array(signature.args[0])(context, builder, values[0]).data

    if array.layout != "C":
        raise TypingError(f"Only contiguous arrays have a plain address, got {array}.")
    return types.CPointer(array.dtype)(array), generate


@intrinsic
def load(typing_context: Any, pointer: Any, row: Any) -> Any:
    """Return lanes from numbers WIDTH * row onwards."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.load(_row(builder, *values), align=8)

    return LANES(pointer, types.int64), generate


@intrinsic
def store(typing_context: Any, pointer: Any, row: Any, lanes: Any) -> Any:
    """Write lanes to numbers WIDTH * row onwards."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        builder.store(values[2], _row(builder, values[0], values[1]), align=8)
        return context.get_dummy_value()

    return types.void(pointer, types.int64, LANES), generate


@intrinsic
def load_from(typing_context: Any, pointer: Any, start: Any) -> Any:
    """Return lanes from numbers ``start`` onwards, which need not be a multiple of WIDTH."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.load(builder.bitcast(_element(builder, *values), _FLOATS.as_pointer()), align=8)

    return LANES(pointer, types.int64), generate


@intrinsic
def store_from(typing_context: Any, pointer: Any, start: Any, lanes: Any) -> Any:
    """Write lanes to numbers ``start`` onwards, which need not be a multiple of WIDTH."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        address = builder.bitcast(_element(builder, values[0], values[1]), _FLOATS.as_pointer())
        builder.store(values[2], address, align=8)
        return context.get_dummy_value()

    return types.void(pointer, types.int64, LANES), generate


@intrinsic
def gather(typing_context: Any, pointer: Any, start: Any, step: Any) -> Any:
    """Return lanes from numbers start, start + step, start + 2 step, ..."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        pointer, position, step = values
        lanes = ir.Constant(_FLOATS, ir.Undefined)
        for lane in range(WIDTH):
            number = builder.load(_element(builder, pointer, position))
            lanes = builder.insert_element(lanes, number, ir.Constant(ir.IntType(32), lane))
            position = builder.add(position, step)
        return lanes

    return LANES(pointer, types.int64, types.int64), generate
