"""``Words``: WIDTH unsigned 64-bit integers at once, for random streams advanced side by side in compiled code.

What ``Lanes`` are for doubles: ``+ ^ |`` act on all integers, ``<<`` and ``>>`` shift all by one plain number, and
the values live in vector registers. How they look to a type checker is written in ``words.pyi``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable

from de_gym.machine.lanes import LANES, WIDTH, fill_vector

_INTEGER = ir.IntType(64)
_INTEGERS = ir.VectorType(_INTEGER, WIDTH)
_DOUBLES = ir.VectorType(ir.DoubleType(), WIDTH)


class WordsType(types.Type):
    """WIDTH unsigned integers."""

    def __init__(self) -> None:
        super().__init__(name="Words")


WORDS: Final = WordsType()


@register_model(WordsType)
class _WordsModel(models.PrimitiveModel):
    def __init__(self, data_model_manager: Any, numba_type: Any) -> None:
        super().__init__(data_model_manager, numba_type, _INTEGERS)


def _register_operator(function: Callable[..., Any], instruction: str, other: Any) -> None:
    """Teach numba a binary operator of words and ``other``: words again, or a plain integer."""

    @type_callable(function)
    def type_operator(context: Any) -> Any:
        return lambda left, right: WORDS if left is WORDS and isinstance(right, other) else None

    @lower_builtin(function, WordsType, other)
    def lower_operator(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        left, right = values
        if other is types.Integer:
            right = fill_vector(builder, right)
        return getattr(builder, instruction)(left, right)


for _function, _instruction in ((operator.add, "add"), (operator.xor, "xor"), (operator.or_, "or_")):
    _register_operator(_function, _instruction, WordsType)
for _function, _instruction in ((operator.lshift, "shl"), (operator.rshift, "lshr")):
    _register_operator(_function, _instruction, types.Integer)


@intrinsic
def spread_word(typing_context: Any, number: Any) -> Any:
    """Return words that all hold ``number``."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return fill_vector(builder, values[0])

    return WORDS(types.uint64), generate


@intrinsic
def load_words(typing_context: Any, pointer: Any, row: Any) -> Any:
    """Return words from integers WIDTH * row onwards."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        start = builder.mul(values[1], ir.Constant(_INTEGER, WIDTH))
        address = builder.bitcast(builder.gep(values[0], [start]), _INTEGERS.as_pointer())
        return builder.load(address, align=8)

    return WORDS(pointer, types.int64), generate


@intrinsic
def lanes_of_bits(typing_context: Any, words: Any) -> Any:
    """Return the lanes whose bits the words are."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.bitcast(values[0], _DOUBLES)

    return LANES(words), generate
