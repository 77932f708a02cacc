"""Statements that programs seldom have: operators of many kinds, functions with attributes, and
operators that fail, in branches and bodies that never run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import onnx
from hypothesis import strategies as st

from tests.programs.blocks import (
    ELEMENTS,
    GO,
    MAX_BOUND,
    MAX_ELEMENTS,
    NUMBERS,
    Block,
    Var,
    has_elements,
    is_flag,
    new_constant,
    reshape,
)
from tests.programs.little import little

# Operators


def rare_node(block: Block) -> None:
    """Applies one of many operators to a value of known shape."""
    var = block.pick(lambda x: x.element in ("f32", "i64") and bool(x.shape) and has_elements(x))
    if var is None:
        new_constant(block)
        return
    block.choose(list(_anywhere(block, var)) + list(_on_floats(block, var)))()


def _sizes(var: Var) -> tuple[int, ...]:
    return tuple(dim for dim in var.shape if isinstance(dim, int))


def _anywhere(block: Block, var: Var) -> Iterator[Callable[[], object]]:
    shape = _sizes(var)
    axis = block.draw(st.integers(-len(shape), len(shape) - 1))
    size = shape[axis]

    def vector(*numbers: int) -> str:
        return block.literal(np.array(numbers, np.int64))

    def along(change: int) -> tuple[int, ...]:
        return tuple(d + change * (i == axis % len(shape)) for i, d in enumerate(shape))

    total = replace(var, bound=var.bound * size)
    yield lambda: block.emit(
        "CumSum", [var, block.literal(np.array(axis, np.int64))], total,
        exclusive=int(block.flip()), reverse=int(block.flip()),
    )  # fmt: skip
    if math.prod(shape) < MAX_ELEMENTS / 4:
        ends = [0] * len(shape)
        padded = replace(var, shape=along(1))
        before = [int(i == axis % len(shape)) for i in range(len(shape))]
        yield lambda: block.emit("Pad", [var, vector(*before, *ends)], padded)
        tiled = replace(var, shape=along(size))
        yield lambda: block.emit("Tile", [var, vector(*(n + 1 for n in before))], tiled)
        wide = replace(var, shape=(2, *shape))
        yield lambda: block.emit("Expand", [var, vector(2, *[1] * len(shape))], wide)
    yield lambda: _split(block, var, axis)
    yield lambda: block.emit(
        "GatherElements", [var, block.literal(np.zeros(shape, np.int64))], var, axis=axis
    )
    places = np.full(along(1 - size), size - 1)
    yield lambda: block.emit(
        "ScatterElements",
        [
            var,
            block.literal(places),
            block.literal(np.ones(places.shape, ELEMENTS[var.element][1])),
        ],
        replace(var, bound=max(1, var.bound)),
        axis=axis,
    )
    yield lambda: _largest(block, var, axis)
    yield lambda: block.emit("NonZero", [var], Var("", "i64", (len(shape), None), MAX_BOUND))
    if var.element == "i64":
        yield lambda: block.emit("Div", [var, block.literal(np.array(3))], var)
        yield lambda: _range(block, var)
    if len(shape) == 2 and block.opset >= 14:
        yield lambda: block.emit("Trilu", [var], var, upper=int(block.flip()))


def _split(block: Block, var: Var, axis: int) -> None:
    """The first place along an axis, and all others."""
    shape = list(_sizes(var))
    lengths = [1, shape[axis] - 1] if shape[axis] > 1 else [1]
    names = [block.fresh() for _ in lengths]
    given = block.literal(np.array(lengths))
    block.add("Split", [var.name, given], names, axis=axis)
    for name, length in zip(names, lengths, strict=True):
        shape[axis] = length
        block.variables.append(replace(var, name=name, shape=tuple(shape)))


def _largest(block: Block, var: Var, axis: int) -> None:
    """The largest numbers along an axis, in order; their positions are left out."""
    shape = list(_sizes(var))
    count = block.draw(st.integers(1, shape[axis]))
    names = [block.fresh(), block.fresh()]
    block.add("TopK", [var.name, block.literal(np.array([count]))], names, axis=axis)
    shape[axis] = count
    block.variables.append(replace(var, name=names[0], shape=tuple(shape)))


def _range(block: Block, var: Var) -> None:
    """The numbers up to the largest magnitude."""
    size = block.emit("Abs", [var], var)
    end = block.emit("ReduceMax", [size], replace(var, shape=()), keepdims=0)
    zero, one = (block.literal(np.array(n)) for n in (0, 1))
    block.emit("Range", [zero, end, one], Var("", "i64", (None,), MAX_BOUND))


def _on_floats(block: Block, var: Var) -> Iterator[Callable[[], object]]:
    if var.element != "f32":
        return
    shape = _sizes(var)
    rounded = replace(var, bound=4, bits=None)
    yield lambda: block.emit("Softmax", [var], rounded, axis=-1)
    yield lambda: block.emit("ReduceMean", [var], replace(rounded, shape=(1,) * len(shape)))
    if block.opset >= 17:
        scale = block.literal(np.ones(shape[-1:], np.float32))
        yield lambda: block.emit("LayerNormalization", [var, scale], rounded)
    if len(shape) == 2:
        yield lambda: _lstm(block, var)
        matrix = block.constant("f32", (shape[1], 2), block.flip())
        result = replace(
            var,
            shape=(shape[0], 2),
            bound=2 * var.bound * shape[1],
            bits=None if var.bits is None else var.bits + 1,
        )
        yield lambda: block.emit("MatMul", [var, matrix], result)


def _lstm(block: Block, var: Var) -> None:
    """Two hidden units over the rows."""
    rows, width = _sizes(var)
    x = reshape(block, var, (rows, 1, width))
    rng = np.random.default_rng(rows + width)
    weights = [
        block.literal(rng.uniform(-0.5, 0.5, (1, 8, n)).astype(np.float32)) for n in (width, 2)
    ]
    result = Var("", "f32", (rows, 1, 1, 2), 1, None)
    y = block.emit("LSTM", [x, *weights], result, hidden_size=2)
    reshape(block, y, (rows, 2))


# Functions

FUNCTIONS = {
    "scaled": """scaled <by> (x) => (y) {
      k = Constant <value_float: float = @by> ()
      c = CastLike (k, x)
      y = Mul (x, c)
    }""",
    "turned": """turned <to> (c, x) => (y) {
      y = If (c) <
        then_branch = then () => (a) {
          k = Constant <value_int: int = @to> ()
          n = CastLike (k, x)
          a = Mul (x, n)
        },
        else_branch = other () => (b) { b = Abs (x) }>
    }""",
    "again": """again <times> (x) => (y) {
      n = Constant <value_int: int = @times> ()
      y = Loop (n, , x) <body = body (int64 i, bool g, s) => (bool h, t) {
        h = Identity (g)
        t = Neg (s)
      }>
    }""",
}
"""Functions with attributes, by name."""


def functions(opset: int) -> list[onnx.FunctionProto]:
    """The functions, in this operator set."""
    head = f'<domain: "local", opset_import: ["" : {opset}]>'
    return [onnx.parser.parse_function(f"{head} {text}") for text in FUNCTIONS.values()]


def call(block: Block) -> None:
    """Calls a function."""
    var = block.pick(lambda x: x.element in NUMBERS)
    flag = block.pick(is_flag)
    if var is None or flag is None or block.opset < 16:
        new_constant(block)
        return
    name = block.choose(list(FUNCTIONS))
    if name == "again":
        block.emit(name, [var], var, domain="local", times=block.draw(st.integers(0, 2)))
    elif name == "turned":
        block.emit(name, [flag, var], var, domain="local", to=block.choose([1, -1]))
    else:
        double = replace(var, bound=2 * var.bound)
        block.emit(name, [var], double, domain="local", by=block.choose([2.0, -1.0]))


# Operators that fail


def add_guarded(block: Block) -> None:
    """An If or a Loop with an operator that fails whenever it runs, which it never does."""
    var = block.pick(lambda x: x.element in NUMBERS)
    if var is None:
        new_constant(block)
        return
    never = _never(block)
    loops = block.flip()
    if loops and None in var.shape:
        var = new_scalar(block)
    inside = block.child(block.counter)
    inside.fill(1)
    if loops:
        _guarding_loop(block, inside, var, never)
        return
    bad = _failed(inside, var)
    outside = block.child(inside.counter)
    outside.fill(1)
    good = outside.emit("Identity", [var], var)
    block.counter = outside.counter
    graphs = [inside.graph("fails", [], [bad]), outside.graph("works", [], [good])]
    if block.flip():
        never = block.emit("Not", [never], never)
        graphs.reverse()
    result = replace(var, name=block.fresh())
    block.add("If", [never.name], [result.name], then_branch=graphs[0], else_branch=graphs[1])
    block.variables.append(result)


def _guarding_loop(block: Block, body: Block, var: Var, never: Var) -> None:
    """A Loop over `var` that runs no iteration."""
    step, still = Var(body.fresh(), "i64", ()), Var(body.fresh(), "bool", ())
    state = replace(var, name=body.fresh())
    body.variables += [step, still, state]
    bad = _failed(body, state)
    go_on = body.emit("Identity", [still], still)
    block.counter = body.counter
    trips = block.emit("Cast", [never], Var("", "i64", ()), to=onnx.TensorProto.INT64)
    result = replace(var, name=block.fresh())
    graph = body.graph("body", [step, still, state], [go_on, bad])
    block.add("Loop", [trips.name, "", var.name], [result.name], body=graph)
    block.variables.append(result)


def new_scalar(block: Block) -> Var:
    """A constant scalar."""
    return block.constant("f32", (), block.flip())


def _never(block: Block) -> Var:
    """A condition that no input makes true, though no engine can know that."""
    number = block.pick(lambda x: x.element in ("f32", "i64", "i32") and x.bits is not None)
    if number is None or block.flip():
        go = next(x for x in block.visible() if x.name == GO)
        other = block.emit("Not", [go], go)
        return block.emit("And", [go, other], Var("", "bool", ()))
    size = block.emit("Abs", [number], number)
    total = replace(number, shape=(), bound=number.bound * MAX_ELEMENTS)
    size = block.emit("ReduceSum", [size], total, keepdims=0)
    below = block.literal(np.array(-1, ELEMENTS[size.element][1]))
    return block.emit("Less", [size, below], Var("", "bool", ()))


def _failed(block: Block, like: Var) -> Var:
    """A value like this one, by way of an operator that fails."""
    base = block.constant("f32", (2, 3), block.flip())

    def numbers(*shape: int) -> str:
        return block.literal(np.ones(shape, np.float32))

    def places(listed: object) -> str:
        return block.literal(np.array(listed, np.int64))

    failing: list[tuple[str, list[Var | str]]] = [
        ("Gather", [base, places(7)]),
        ("GatherElements", [base, places([1])]),
        ("GatherND", [base, places([[5, 0]])]),
        ("ScatterND", [base, places([[0]]), numbers(1, 5)]),
        ("ScatterElements", [base, places([1]), numbers(1)]),
        ("Reshape", [base, places([5, 7])]),
        ("Clip", [base, numbers(2)]),
        ("PRelu", [base, numbers(5)]),
    ]
    if block.opset >= 17:
        failing.append(("LayerNormalization", [base, numbers(5)]))
    op_type, inputs = block.choose(failing)
    bad = block.fresh()
    block.add(op_type, [x if isinstance(x, str) else x.name for x in inputs], [bad])
    names = [block.fresh() for _ in range(3)]
    block.add("ReduceSum", [bad], names[:1], keepdims=0)
    block.add("Cast", names[:1], names[1:2], to=ELEMENTS[like.element][0])
    block.add("Add", [like.name, names[1]], names[2:])
    return replace(like, name=names[2])


STATEMENTS = (rare_node, rare_node, call, add_guarded, little)
"""Further statements that programs draw."""
