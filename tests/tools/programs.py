# ruff: noqa: B007, F821, SIM108, UP037 -- onnxscript reads these functions, and dimensions in quotes

# ruff: noqa: F821, UP037 -- the annotations of onnxscript hold names of dimensions

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import onnx
import spox.opset.ai.onnx.ml.v3 as ml
import spox.opset.ai.onnx.v17 as op
from onnxscript import FLOAT, INT64, opset18 as op18, script
from spox import Tensor, Var, argument, build

# spox -------------------------------------------------------------------------------------------


def _floats(*shape: int | str) -> Var:
    return argument(Tensor(np.float32, shape))


def _number(value: float, type: type = np.float32) -> Var:
    return op.const(np.array(value, type))


def _positive(x: Var) -> Var:
    return op.greater(op.reduce_sum(x, keepdims=0), _number(0))


def _one_if(x: Var) -> Iterable[Var]:
    return op.if_(_positive(x), then_branch=lambda: [op.exp(x)], else_branch=lambda: [op.neg(x)])


def _nested(x: Var) -> Iterable[Var]:
    above = op.mul(x, _number(2))
    return op.if_(
        _positive(x),
        then_branch=lambda: op.if_(
            _positive(op.sub(above, _number(1))),
            then_branch=lambda: [op.add(above, x)],
            else_branch=lambda: [above],
        ),
        else_branch=lambda: [op.abs(above)],
    )


def _of_two_shapes(x: Var) -> Iterable[Var]:
    return op.if_(
        _positive(x),
        then_branch=lambda: [op.concat([x, x], axis=0), op.size(x)],
        else_branch=lambda: [x, _number(0, np.int64)],
    )


def _of_two_ranks(x: Var) -> Iterable[Var]:
    (y,) = op.if_(
        _positive(x),
        then_branch=lambda: [x],
        else_branch=lambda: [op.reduce_max(x, axes=[1], keepdims=0)],
    )
    return [op.reshape(y, op.constant(value_ints=[-1]))]


def _loop(x: Var) -> Iterable[Var]:
    def body(i: Var, again: Var, state: Var) -> list[Var]:
        return [_number(True, bool), op.mul(state, _number(0.5)), op.reduce_sum(state, keepdims=0)]

    return op.loop(_number(3, np.int64), None, [x], body=body)


def _while(x: Var) -> Iterable[Var]:
    def body(i: Var, again: Var, state: Var) -> list[Var]:
        doubled = op.add(state, op.abs(state))
        return [
            op.less(op.reduce_max(doubled, keepdims=0), _number(9)),
            doubled,
            op.cast(i, to=np.float32),
        ]

    return op.loop(_number(5, np.int64), None, [x], body=body)


def _if_in_loop(x: Var) -> Iterable[Var]:
    def body(i: Var, again: Var, state: Var) -> list[Var]:
        even = op.equal(op.mod(i, _number(2, np.int64)), _number(0, np.int64))
        (next,) = op.if_(
            even,
            then_branch=lambda: [op.add(state, x)],
            else_branch=lambda: [op.mul(state, _number(-0.5))],
        )
        return [op.const(np.array([True])), next]

    return op.loop(_number(4, np.int64), op.const(np.array([True])), [x], body=body)


def _scan(x: Var) -> Iterable[Var]:
    def body(sum: Var, row: Var) -> list[Var]:
        total = op.add(sum, op.reduce_sum(row, keepdims=0))
        return [total, op.tanh(total)]

    total, sums = op.scan([_number(0), x], body=body, num_scan_inputs=1)
    return [total, op.reshape(sums, op.constant(value_ints=[-1]))]


def _sequence(x: Var) -> Iterable[Var]:
    def body(i: Var, again: Var, rows: Var) -> list[Var]:
        row = op.gather(x, op.squeeze(i), axis=0)
        return [_number(True, bool), op.sequence_insert(rows, op.mul(row, row))]

    length = op.gather(op.shape(x), _number(0, np.int64))
    (rows,) = op.loop(length, None, [op.sequence_empty(dtype=np.float32)], body=body)
    joined = op.concat_from_sequence(rows, axis=0)
    return [op.reshape(joined, op.constant(value_ints=[-1, 4]))]


def _scaled(x: Var) -> Iterable[Var]:
    return [ml.scaler(x, offset=[0.5], scale=[2.0]), ml.normalizer(x, norm="L2")]


_SPOX = (
    _one_if, _nested, _of_two_shapes, _of_two_ranks, _loop, _while, _if_in_loop, _scan, _sequence,
    _scaled,
)  # fmt: skip


def _built(program: Callable[[Var], Iterable[Var]]) -> onnx.ModelProto:
    x = _floats("n", 4)
    outputs = {f"y{i}": value for i, value in enumerate(program(x))}
    return build({"x": x}, outputs)


# onnxscript -------------------------------------------------------------------------------------


@script(default_opset=op18)
def branches(x: FLOAT["n", 4]) -> FLOAT["n", 4]:
    if op18.ReduceSum(x, keepdims=0) > 0.0:
        y = op18.Exp(x)
    else:
        y = op18.Neg(x)
    return y


@script(default_opset=op18)
def branches_in_branches(x: FLOAT["n", 4]) -> FLOAT["n", 4]:
    total = op18.ReduceSum(x, keepdims=0)
    if total > 0.0:
        if total > 2.0:
            y = x * 2.0
        else:
            y = x + total
    else:
        y = op18.Abs(x)
    return y


@script(default_opset=op18)
def counted(x: FLOAT["n", 4]) -> FLOAT["n", 4]:
    y = x
    for i in range(3):
        y = y * 0.5 + x
    return y


@script(default_opset=op18)
def counted_by_input(x: FLOAT["n", 4], times: INT64) -> FLOAT["n", 4]:
    y = x
    for i in range(times):
        y = y + op18.CastLike(i, x)
    return y


@script(default_opset=op18)
def while_small(x: FLOAT["n", 4]) -> FLOAT["n", 4]:
    y = x
    more = op18.ReduceMax(op18.Abs(y), keepdims=0) < 4.0
    while more:
        y = y + y + 0.5
        more = op18.ReduceMax(op18.Abs(y), keepdims=0) < 4.0
    return y


@script(default_opset=op18)
def broken_off(x: FLOAT["n", 4]) -> FLOAT["n", 4]:
    y = x
    for i in range(6):
        y = y * 2.0
        stop = op18.ReduceSum(op18.Abs(y), keepdims=0) > 20.0
        if stop:
            break
    return y


@script(default_opset=op18)
def branch_in_loop(x: FLOAT["n", 4]) -> FLOAT["n", 4]:
    y = x
    for i in range(4):
        if op18.ReduceSum(y, keepdims=0) > 0.0:
            y = y - 1.0
        else:
            y = y + op18.Abs(x)
    return y


@script(default_opset=op18)
def loop_in_branch(x: FLOAT["n", 4]) -> FLOAT["n", 4]:
    if op18.ReduceSum(x, keepdims=0) > 0.0:
        y = x
        for i in range(2):
            y = y * x
    else:
        y = x - 1.0
    return y


@script(default_opset=op18)
def listed(x: FLOAT["n", 4]) -> FLOAT["m", 4]:
    rows = op18.SequenceEmpty(dtype=1)
    for i in range(3):
        rows = op18.SequenceInsert(rows, x * op18.CastLike(i, x))
    return op18.ConcatFromSequence(rows, axis=0)


@script(default_opset=op18)
def several(x: FLOAT["n", 4]) -> tuple[FLOAT["n", 4], FLOAT]:
    if op18.Size(x) > 8:
        y = op18.Softmax(x, axis=-1)
        z = op18.ReduceMax(x, keepdims=0)
    else:
        y = op18.Relu(x)
        z = op18.ReduceMin(x, keepdims=0)
    return y, z


_SCRIPTS = (
    branches, branches_in_branches, counted, counted_by_input, while_small, broken_off,
    branch_in_loop, loop_in_branch, listed, several,
)  # fmt: skip


PROGRAMS: dict[str, dict[str, Callable[[], onnx.ModelProto]]] = {
    "spox": {f.__name__.strip("_"): lambda f=f: _built(f) for f in _SPOX},
    "onnxscript": {f.name: f.to_model_proto for f in _SCRIPTS},
}
