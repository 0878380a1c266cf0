"""A SIMD type of sixteen lanes, one per agent: a compiled type whose +, -, *, / act on sixteen agents at once.

The game's per-agent algebra is tiny (a handful of 3×3 products), so loops over its entries cost more than the
arithmetic. Written over lanes it reads as the algebra of one agent, and the processor does several at a time: row
r of a memory of float64 numbers is its entries 16r … 16r+15, one for each agent of a chunk.

Memory is passed as an address, not as an array: passing an array costs seven registers and reference counting, which at
a few microseconds a game would be most of the time.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core.datamodel import models
from numba.extending import intrinsic as numba_intrinsic
from numba.extending import overload, register_model

# Two or four machine vectors: wide enough that the loops around cost little, narrow enough for a game of five.
LANES = 16
CACHE_LINE = 64  # bytes
SPARE = CACHE_LINE // 8  # numbers to allocate beyond the rows, so that the first can start on a cache line
_NUMBER = ir.DoubleType()
_VECTOR = ir.VectorType(_NUMBER, LANES)
_INDEX = ir.IntType(32)


# An intrinsic is called without the typing context it is written with; type checkers do not know.
intrinsic: Any = numba_intrinsic


class LanesType(types.Type):
    """The compiled type; it exists only inside compiled code."""

    def __init__(self):
        super().__init__(name="Lanes")


LANES_TYPE = LanesType()


@register_model(LanesType)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, frontend_type):
        super().__init__(manager, frontend_type, _VECTOR)


def _pointer(context, builder, memory, place, place_type, element, unit=None):
    """Pointer to an `element`, `place` units after `memory`; a unit is an element unless given."""
    index = context.cast(builder, place, place_type, types.intp)
    base = builder.inttoptr(memory, (unit or element).as_pointer())
    return builder.bitcast(builder.gep(base, [index], inbounds=True), element.as_pointer())


@intrinsic
def address(typing_context, array):
    """The address of an array's numbers. The array must outlive every use of its address, and be contiguous."""

    def emit(context, builder, signature, args):
        return builder.ptrtoint(context.make_array(array)(context, builder, args[0]).data, ir.IntType(64))

    return types.int64(array), emit


@njit(cache=True)
def first_row(array):
    """The address of an array's first whole cache line. A row across two lines takes several times as long to read."""
    return (address(array) + CACHE_LINE - 1) // CACHE_LINE * CACHE_LINE


def _reader(element, result, alignment, unit=None):
    @intrinsic
    def read(typing_context, memory, place):
        def emit(context, builder, signature, args):
            return builder.load(_pointer(context, builder, args[0], args[1], place, element, unit), align=alignment)

        return result(types.int64, place), emit

    return read


def _writer(element, written, alignment, unit=None):
    @intrinsic
    def write(typing_context, memory, place, value):
        def emit(context, builder, signature, args):
            pointer = _pointer(context, builder, args[0], args[1], place, element, unit)
            builder.store(args[2], pointer, align=alignment)
            return context.get_dummy_value()

        return types.void(types.int64, place, written), emit

    return write


# None of these checks bounds. load and store: row `place` of memory from `first_row`. number, set_number, whole_number:
# the single number at `place`. load_run, store_run: the LANES numbers from `place` on.
load, store = _reader(_VECTOR, LANES_TYPE, CACHE_LINE), _writer(_VECTOR, LANES_TYPE, CACHE_LINE)
number, set_number = _reader(_NUMBER, types.float64, 8), _writer(_NUMBER, types.float64, 8)
whole_number = _reader(ir.IntType(64), types.int64, 8)
load_run, store_run = _reader(_VECTOR, LANES_TYPE, 8, _NUMBER), _writer(_VECTOR, LANES_TYPE, 8, _NUMBER)


@intrinsic
def load_strided(typing_context, memory, place, stride):
    """The numbers at place, place + stride, place + 2·stride, …, one for each lane."""

    def emit(context, builder, signature, args):
        result = ir.Constant(_VECTOR, ir.Undefined)
        for lane in range(LANES):
            entry = builder.add(args[1], builder.mul(args[2], ir.Constant(ir.IntType(64), lane)))
            pointer = _pointer(context, builder, args[0], entry, types.int64, _NUMBER)
            result = builder.insert_element(result, builder.load(pointer, align=8), _INDEX(lane))
        return result

    return LANES_TYPE(types.int64, types.int64, types.int64), emit


@intrinsic
def store_strided(typing_context, memory, place, stride, value):
    """Set the numbers at place, place + stride, place + 2·stride, …, one from each lane."""

    def emit(context, builder, signature, args):
        for lane in range(LANES):
            entry = builder.add(args[1], builder.mul(args[2], ir.Constant(ir.IntType(64), lane)))
            pointer = _pointer(context, builder, args[0], entry, types.int64, _NUMBER)
            builder.store(builder.extract_element(args[3], _INDEX(lane)), pointer, align=8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64, LANES_TYPE), emit


@intrinsic
def splat(typing_context, value):
    """The same number in every lane."""

    def emit(context, builder, signature, args):
        number = context.cast(builder, args[0], value, types.float64)
        undefined = ir.Constant(_VECTOR, ir.Undefined)
        first = builder.insert_element(undefined, number, _INDEX(0))
        zeros = ir.Constant(ir.VectorType(_INDEX, LANES), [0] * LANES)
        return builder.shuffle_vector(first, undefined, zeros)

    return LANES_TYPE(value), emit


@intrinsic
def lane_sum(typing_context, value):
    """The sum over lanes, always in the same order, so results do not depend on the machine's load."""

    def emit(context, builder, signature, args):
        total = builder.extract_element(args[0], _INDEX(0))
        for lane in range(1, LANES):
            total = builder.fadd(total, builder.extract_element(args[0], _INDEX(lane)))
        return total

    return types.float64(LANES_TYPE), emit


def _arithmetic(instruction):
    @intrinsic
    def combine(typing_context, left, right):
        def emit(context, builder, signature, args):
            # "contract" lets a product and a sum become one fused instruction; nothing is reordered.
            return getattr(builder, instruction)(args[0], args[1], flags=["contract"])

        return LANES_TYPE(LANES_TYPE, LANES_TYPE), emit

    def resolve(left, right):
        if isinstance(left, LanesType) and isinstance(right, LanesType):
            return lambda left, right: combine(left, right)
        return None

    return resolve


for _operators, _instruction in (
    ((operator.add, operator.iadd), "fadd"),
    ((operator.sub, operator.isub), "fsub"),
    ((operator.mul, operator.imul), "fmul"),
    ((operator.truediv, operator.itruediv), "fdiv"),
):
    for _operator in _operators:
        overload(_operator)(_arithmetic(_instruction))
