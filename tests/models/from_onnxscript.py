"""Functions written in Python with onnxscript: its `if`, `for`, `while` and `break`, functions that
call functions, sequences, optionals and Scans."""
# ruff: noqa: SIM108 - onnxscript reads the statement `if`, and no expression of Python.

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnxscript import BOOL, FLOAT, INT64, graph, opset18 as op, optimizer, script
from onnxscript.values import Opset

bounds, own = Opset("own.bounds", 1), Opset("own.functions", 1)
ROWS, SQUARE, VECTOR = FLOAT["N", 6], FLOAT[6, 6], FLOAT["N"]
ANY, WORDS, BEAMS = FLOAT[...], INT64["words"], INT64[2, "words"]
_random = np.random.default_rng(0)


@script(bounds, default_opset=op)
def scaled(x, low: float, high: float):
    """Values between two bounds, which are attributes."""
    return op.Min(op.Max(x, op.Constant(value_float=low)), op.Constant(value_float=high))


@script(own, default_opset=op)
def power(x, many: INT64):
    """A matrix multiplied with itself `many` times."""
    y = x
    for _ in range(many):
        y = op.MatMul(y, x)
    return scaled(y, low=-2.0, high=2.0)


@script(own, default_opset=op)
def linear(x, layer, bias=None):
    """A layer with an optional bias."""
    y = op.MatMul(x, layer)
    if op.OptionalHasElement(bias):
        y = op.Add(y, op.OptionalGetElement(bias))
    else:
        y = op.Identity(y)
    return y


@script(default_opset=op)
def gate(x: ROWS, one: SQUARE, other: SQUARE) -> ROWS:
    """A layer that data choose."""
    if op.ReduceSum(x, keepdims=0) > 0.0:
        y = op.Relu(op.MatMul(x, one))
    else:
        y = op.MatMul(x, other) - 1.0
    return y


@script(default_opset=op)
def pooled(x: ROWS, per_row: BOOL) -> ANY:
    """A mean over all elements, or for each row: branches of two ranks."""
    if per_row:
        y = op.ReduceMean(x, [1], keepdims=0)
    else:
        y = op.ReduceMean(x, keepdims=0)
    return op.Softmax(op.Reshape(y, [-1]), axis=0)


@script(default_opset=op)
def newton(x: VECTOR) -> (VECTOR, INT64):
    """Newton's method: it ends when a step is small, and counts its steps."""
    y = op.Abs(x) + 1.0
    square = y
    steps = op.Constant(value_int=0)
    moves = op.Constant(value_int=1) > 0
    while moves:
        old = y
        y = 0.5 * (y + square / y)
        steps = steps + 1
        far = op.ReduceMax(op.Abs(y - old), keepdims=0) > 0.001
        moves = op.And(far, steps < 30)
    return y, steps


@script(default_opset=op)
def decoding(state: FLOAT[6], layer: SQUARE, most: INT64) -> WORDS:
    """Greedy decoding into a vector that grows, with a break."""
    words = op.Constant(value_ints=[0])
    for _ in range(most):
        last = op.Gather(words, [-1])
        state = op.Tanh(op.MatMul(layer, state) + op.Cast(last, to=1))
        word = op.ArgMax(state, axis=0)
        words = op.Concat(words, word, axis=0)
        stop = op.Squeeze(word == 3, [0])
        if stop:
            break
    return words


@script(default_opset=op)
def collatz(start: INT64) -> (INT64, INT64):
    """An If in a while: the number of steps to 1, and the highest number on the way."""
    n = op.Abs(start) + 1
    steps = op.Constant(value_int=0)
    highest = n
    goes_on = n > 1
    while goes_on:
        if n % 2 == 0:
            n = n / 2
        else:
            n = 3 * n + 1
        highest = op.Max(n, highest)
        steps = steps + 1
        goes_on = op.And(n > 1, steps < 200)
    return steps, highest


@script(default_opset=op)
def chunks(x: ROWS, layer: SQUARE, size: INT64) -> ROWS:
    """A long signal in chunks, the last possibly short: a list, joined in the end."""
    whole = op.Max(size, 1)
    rows = op.Squeeze(op.Shape(x, start=0, end=1), [0])
    many = (rows + whole - 1) / whole
    found = op.SequenceEmpty()
    for i in range(many):
        start = op.Reshape(i * whole, [1])
        chunk = op.Slice(x, start, start + op.Reshape(whole, [1]), [0])
        mean = op.ReduceMean(chunk, [0])
        found = op.SequenceInsert(found, op.MatMul(chunk - mean, layer))
    return op.ConcatFromSequence(found, axis=0)


@script(default_opset=op)
def filtered(x: ROWS, bound: FLOAT) -> ROWS:
    """Rows over a bound, collected in a list: a SequenceInsert in an If in a Loop."""
    rows = op.Squeeze(op.Shape(x, start=0, end=1), [0])
    found = op.SequenceConstruct(op.Slice(x, [0], [0], [0]))
    for i in range(rows):
        row = op.Gather(x, op.Reshape(i, [1]), axis=0)
        if op.ReduceMax(row, keepdims=0) > bound:
            found = op.SequenceInsert(found, row)
        else:
            found = op.Identity(found)
    return op.ConcatFromSequence(found, axis=0)


@script(default_opset=op)
def running(x: ROWS) -> (ROWS, FLOAT[6]):
    """The highest row so far and its decay, a Scan over a function of Python."""

    @graph()
    def step(state, row):
        new = op.Max(state * 0.9, row)
        out = op.Identity(new)
        return new, out

    start = op.Expand(-1.0, [6])
    last, all = op.Scan(start, x, body=step, num_scan_inputs=1)
    return all, last


@script(default_opset=op)
def powers(x: SQUARE, many: INT64) -> SQUARE:
    """Functions of the model's own: a Loop in one, attributes of another."""
    y = power(scaled(x, low=-1.0, high=1.0), many)
    return scaled(y, low=0.0, high=1.0)


@script(default_opset=op)
def layers(x: ROWS, one: SQUARE, bias: FLOAT[6], other: SQUARE) -> ROWS:
    """A function with an optional input, present in the first call."""
    return linear(op.Relu(linear(x, one, bias)), other)


@script(default_opset=op)
def kept(x: ROWS, most: INT64) -> (FLOAT[6], BOOL):
    """An optional that a Loop carries: the last row that was positive, if there was one."""
    first = op.Gather(x, 0, axis=0)
    found = op.Optional(first)
    for i in range(most):
        row = op.Gather(x, i % op.Squeeze(op.Shape(x, start=0, end=1), [0]), axis=0)
        if op.ReduceSum(row, keepdims=0) > 0.0:
            found = op.Optional(row)
        else:
            found = op.Identity(found)
    return op.OptionalGetElement(found), op.OptionalHasElement(found)


@script(default_opset=op)
def beams(start: FLOAT[6], layer: SQUARE, steps: INT64) -> (BEAMS, FLOAT[2]):
    """Beam search of width 2: the best continuations of all beams in each step."""
    words = op.Constant(value=onnx.helper.make_tensor("words", 7, [2, 1], [0, 0]))
    scores = op.Constant(value_floats=[0.0, -1000.0])
    states = op.Expand(start, [2, 6])
    for _ in range(steps):
        last = op.Cast(op.Gather(words, [-1], axis=1), to=1)
        states = op.Tanh(op.MatMul(states, layer) + last * 0.3)
        ends = op.Gather(words, [-1], axis=1) == 5
        logs = op.Where(ends, op.Constant(value_floats=[0.0, -9.0, -9.0, -9.0, -9.0, 0.0]),
                        op.LogSoftmax(states, axis=1))  # fmt: skip
        total = op.Reshape(op.Unsqueeze(scores, [1]) + logs, [-1])
        scores, best = op.TopK(total, [2])
        beam = best / 6
        word = op.Unsqueeze(best % 6, [1])
        words = op.Concat(op.Gather(words, beam, axis=0), word, axis=1)
        states = op.Gather(states, beam, axis=0)
        stop = op.ReduceMin(op.Cast(word == 5, to=6), keepdims=0) == 1
        if stop:
            break
    return words, scores


def written(function: Any, folder: Path) -> Path:
    path = folder / "model.onnx"
    onnx.save(function.to_model_proto(), path)
    return path


def optimized(function: Any, folder: Path) -> Path:
    path = folder / "model.onnx"
    onnx.save(optimizer.optimize(function.to_model_proto()), path)
    return path


KINDS: dict[str, Callable[[Path], Path]] = {
    "if": partial(written, gate),
    "if of two ranks": partial(written, pooled),
    "while, Newton's method": partial(written, newton),
    "for with a break, greedy decoding": partial(written, decoding),
    "if in a while": partial(written, collatz),
    "chunks as a sequence": partial(written, chunks),
    "sequence that an if in a for extends": partial(written, filtered),
    "Scan over a function": partial(written, running),
    "functions with a for": partial(written, powers),
    "function with an optional input": partial(optimized, layers),
    "optional that a for carries": partial(written, kept),
    "for with a break, beam search": partial(written, beams),
}
"""The functions that write a model into a folder, by name."""
