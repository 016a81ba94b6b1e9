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

# Coordinates of one point computed at once where points are not side by side: what one register holds, so that little
# is computed twice at the end of a row.
ROW_WIDTH: Final = 4

LINE_BYTES: Final = 64

_FLOATS = ir.VectorType(ir.DoubleType(), WIDTH)
_BITS = ir.VectorType(ir.IntType(64), WIDTH)

# numba calls code generators with (target context, LLVM builder, signature, LLVM values); none of them is typed.
_CodeGenerator = Callable[[Any, Any, Any, Any], Any]


class LanesType(types.Type):
    """So many doubles."""

    def __init__(self, width: int) -> None:
        super().__init__(name=f"Lanes({width})")
        self.width = width


class MaskType(types.Type):
    """So many truth values."""

    def __init__(self, width: int) -> None:
        super().__init__(name=f"LanesMask({width})")
        self.width = width


LANES: Final = LanesType(WIDTH)
ROW_LANES: Final = LanesType(ROW_WIDTH)


@register_model(LanesType)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, data_model_manager: Any, numba_type: Any) -> None:
        super().__init__(data_model_manager, numba_type, ir.VectorType(ir.DoubleType(), numba_type.width))


@register_model(MaskType)
class _MaskModel(models.PrimitiveModel):
    def __init__(self, data_model_manager: Any, numba_type: Any) -> None:
        super().__init__(data_model_manager, numba_type, ir.VectorType(ir.IntType(1), numba_type.width))


def fill_vector(builder: Any, scalar: Any, width: int = WIDTH) -> Any:
    """Return the vector with ``scalar``, a double or an integer, in every place."""
    undefined = ir.Constant(ir.VectorType(scalar.type, width), ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.Constant(ir.IntType(32), 0))
    places = ir.Constant(ir.VectorType(ir.IntType(32), width), [0] * width)
    return builder.shuffle_vector(first, undefined, places)


def _width_of(kinds: Any) -> int | None:
    """Return the width of the lanes among these argument types, None where all are plain floats or widths differ."""
    widths = {kind.width for kind in kinds if isinstance(kind, (LanesType, MaskType))}
    others = [kind for kind in kinds if not isinstance(kind, (LanesType, MaskType, types.Float))]
    return widths.pop() if len(widths) == 1 and not others else None


def _vectors(builder: Any, signature: Any, values: Any) -> list[Any]:
    """Return ``values`` with plain numbers spread over all lanes."""
    width, kinds = _width_of(signature.args), zip(signature.args, values, strict=True)
    return [fill_vector(builder, value, width) if isinstance(kind, types.Float) else value for kind, value in kinds]


def _register_operator(
    function: Callable[..., Any], result: type[LanesType | MaskType], emit: Callable[[Any, Any, Any], Any]
) -> None:
    """Teach numba a binary operator on lanes and floats; ``emit(builder, left, right)`` makes its instruction."""

    @type_callable(function)
    def type_operator(context: Any) -> Any:
        def type_result(left: Any, right: Any) -> Any:
            width = None if isinstance(left, MaskType) else _width_of((left, right))
            return None if width is None else result(width)

        return type_result

    def lower_operator(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return emit(builder, *_vectors(builder, signature, values))

    for kinds in ((LanesType, LanesType), (LanesType, types.Float), (types.Float, LanesType)):
        lower_builtin(function, *kinds)(lower_operator)


def _comparison(symbol: str) -> Callable[[Any, Any, Any], Any]:
    return lambda builder, left, right: builder.fcmp_ordered(symbol, left, right)


_register_operator(operator.add, LanesType, lambda builder, left, right: builder.fadd(left, right))
_register_operator(operator.sub, LanesType, lambda builder, left, right: builder.fsub(left, right))
_register_operator(operator.mul, LanesType, lambda builder, left, right: builder.fmul(left, right))
_register_operator(operator.truediv, LanesType, lambda builder, left, right: builder.fdiv(left, right))
for _function, _symbol in ((operator.lt, "<"), (operator.le, "<="), (operator.gt, ">"), (operator.eq, "==")):
    _register_operator(_function, MaskType, _comparison(_symbol))


@type_callable(operator.or_)
def _type_union(context: Any) -> Any:
    return lambda left, right: left if isinstance(left, MaskType) and right is left else None


@lower_builtin(operator.or_, MaskType, MaskType)
def _lower_union(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    return builder.or_(*values)


@type_callable(operator.neg)
def _type_negation(context: Any) -> Any:
    return lambda lanes: lanes if isinstance(lanes, LanesType) else None


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
        return builder.select(*(_vectors(builder, signature, values) if is_mask else values))

    is_mask = isinstance(mask, MaskType)
    result = LanesType(mask.width) if is_mask else types.float64
    return result(mask, accepted, refused), generate


def _later_where(symbol: str, one: Any, other: Any) -> Any:
    """Return what numba needs to know to choose the later of two numbers where it compares so with the first."""
    kinds = {types.float64 if isinstance(kind, types.Float) else types.int64 for kind in (one, other)}
    if len(kinds) > 1:
        raise TypingError(f"Two floats or two integers can be compared, got {one} and {other}.")
    number = kinds.pop()

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        compare = builder.fcmp_ordered if number is types.float64 else builder.icmp_signed
        return builder.select(compare(symbol, values[1], values[0]), values[1], values[0])

    return number(number, number), generate


@intrinsic
def smaller_of(typing_context: Any, one: Any, other: Any) -> Any:
    """Return what Python's ``min`` does; numba would compile that as a function of its own for each kind of number."""
    return _later_where("<", one, other)


@intrinsic
def larger_of(typing_context: Any, one: Any, other: Any) -> Any:
    """Return what Python's ``max`` does."""
    return _later_where(">", one, other)


@intrinsic
def whole_of(typing_context: Any, number: Any) -> Any:
    """Return what Python's ``int`` does with a float."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.fptosi(values[0], ir.IntType(64))

    return types.int64(types.float64), generate


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
    reference counting and no test for negative indices. The caller keeps the array alive; see ``hold``.
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return context.make_array(signature.args[0])(context, builder, values[0]).data

    if array.layout != "C":
        raise TypingError(f"Only contiguous arrays have a plain address, got {array}.")
    return types.CPointer(array.dtype)(array), generate


@intrinsic
def hold(typing_context: Any, arrays: Any) -> Any:
    """Keep one array or a tuple of them alive until here: numba frees arrays after their last mention."""
    return types.void(arrays), lambda context, builder, signature, values: context.get_dummy_value()


@intrinsic
def in_line(typing_context: Any, pointer: Any) -> Any:
    """Return the first address from ``pointer`` on where a line of the processor's cache begins."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        address = builder.ptrtoint(values[0], ir.IntType(64))
        behind = builder.add(address, ir.Constant(address.type, LINE_BYTES - 1))
        return builder.inttoptr(builder.and_(behind, ir.Constant(address.type, -LINE_BYTES)), values[0].type)

    return pointer(pointer), generate


def _reading_as(number: Any, pointer: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.bitcast(values[0], context.get_value_type(number).as_pointer())

    return types.CPointer(number)(pointer), generate


@intrinsic
def as_integers(typing_context: Any, pointer: Any) -> Any:
    """Return the same address, of integers."""
    return _reading_as(types.int64, pointer)


@intrinsic
def as_words(typing_context: Any, pointer: Any) -> Any:
    """Return the same address, of unsigned integers."""
    return _reading_as(types.uint64, pointer)


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


def _row_from(builder: Any, pointer: Any, start: Any, width: int) -> Any:
    """Return the address of ``width`` numbers, ``start`` behind ``pointer``."""
    numbers = ir.VectorType(ir.DoubleType(), width)
    return builder.bitcast(_element(builder, pointer, start), numbers.as_pointer())


def _loading(result: LanesType, pointer: Any) -> Any:
    """Return what numba needs to know to load so many lanes from a pointer and a position."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.load(_row_from(builder, *values, result.width), align=8)

    return result(pointer, types.int64), generate


@intrinsic
def load_from(typing_context: Any, pointer: Any, start: Any) -> Any:
    """Return ROW_WIDTH lanes from the numbers ``start`` onwards."""
    return _loading(ROW_LANES, pointer)


@intrinsic
def load_wide(typing_context: Any, pointer: Any, start: Any) -> Any:
    """Return WIDTH lanes from the numbers ``start`` onwards."""
    return _loading(LANES, pointer)


@intrinsic
def count_true(typing_context: Any, mask: Any, first: Any) -> Any:
    """Return in how many lanes from ``first`` on the mask holds."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        bits = ir.IntType(mask.width)
        held = builder.lshr(builder.bitcast(values[0], bits), builder.trunc(values[1], bits))
        return builder.ctpop(builder.zext(held, ir.IntType(64)))

    return types.int64(mask, types.int64), generate


@intrinsic
def lane_of(typing_context: Any, lanes: Any, place: Any) -> Any:
    """Return the number in one of the lanes."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.extract_element(*values)

    return types.float64(lanes, types.int64), generate


@intrinsic
def store_from(typing_context: Any, pointer: Any, start: Any, lanes: Any) -> Any:
    """Write lanes of either width to the numbers ``start`` onwards."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        builder.store(values[2], _row_from(builder, values[0], values[1], lanes.width), align=8)
        return context.get_dummy_value()

    return types.void(pointer, types.int64, lanes), generate


@intrinsic
def prefetch(typing_context: Any, pointer: Any, position: Any) -> Any:
    """Have the number at ``position`` brought near the processor, with those beside it, while other work goes on."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        address = builder.bitcast(_element(builder, *values), ir.IntType(8).as_pointer())
        flag = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [address.type, flag, flag, flag])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        # To be read (0), used often (3), data (1).
        builder.call(function, [address, *(ir.Constant(flag, number) for number in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(pointer, types.int64), generate


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


@intrinsic
def moved(typing_context: Any, pointer: Any, count: Any) -> Any:
    """Return the address ``count`` numbers behind ``pointer``."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return _element(builder, *values)

    return pointer(pointer, types.int64), generate


@intrinsic
def transpose(typing_context: Any, pointer: Any, start: Any, step: Any, target: Any, row: Any) -> Any:
    """Gather WIDTH times, from ``start``, ``start + 1``, ..., into the rows of ``target`` from ``row`` on.

    Where WIDTH points of consecutive coordinates are to stand side by side, this reads whole rows of them.
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        pointer, position, step, target, row = values
        rows = []
        for _ in range(WIDTH):
            rows.append(builder.load(_row_from(builder, pointer, position, WIDTH), align=8))
            position = builder.add(position, step)
        size = 1
        while size < WIDTH:
            rows = _swap_blocks(builder, rows, size)
            size *= 2
        for lanes in rows:
            builder.store(lanes, _row(builder, target, row), align=8)
            row = builder.add(row, ir.Constant(row.type, 1))
        return context.get_dummy_value()

    return types.void(pointer, types.int64, types.int64, target, types.int64), generate


def _swap_blocks(builder: Any, rows: list[Any], size: int) -> list[Any]:
    """Return a matrix of WIDTH rows whose blocks of ``size`` by ``size`` beside each diagonal pair have swapped places.

    Doing so for every power of two transposes it.
    """
    lanes = range(WIDTH)
    # A shuffle counts the lanes of its second vector from WIDTH on.
    upper = [WIDTH + lane - size if lane & size else lane for lane in lanes]
    lower = [WIDTH + lane if lane & size else lane + size for lane in lanes]
    swapped = list(rows)
    for index in lanes:
        if not index & size:
            pair = rows[index], rows[index + size]
            for place, choice in ((index, upper), (index + size, lower)):
                picked = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), choice)
                swapped[place] = builder.shuffle_vector(*pair, picked)
    return swapped


@intrinsic
def stay_apart(typing_context: Any) -> Any:
    """Keep the function that says this out of the code of those that call it.

    What a rare branch needs would otherwise be prepared each time the caller starts.
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        # A part that an inlined one calls first is marked like its caller.
        builder.function.attributes.discard("alwaysinline")
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), generate
