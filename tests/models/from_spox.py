"""Graphs written in Python with spox: preprocessing, tables, search after a model."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import spox.opset.ai.onnx.v21 as op
from spox import Optional, Sequence, Tensor, Var, argument, build

Made = tuple[dict[str, Var], dict[str, Var]]
"""Inputs and outputs by name."""

_random = np.random.default_rng(0)


def _weights(*shape: int) -> Any:
    return _random.standard_normal(shape).astype(np.float32)


ONE, OTHER = _weights(6, 6), _weights(6, 6)


def const(value: Any, kind: Any = np.float32) -> Var:
    return op.const(np.asarray(value, kind))


def whole(*values: int) -> Var:
    """A vector of integers."""
    return const(values, np.int64)


def count(x: Var, axis: int = 0) -> Var:
    """The size of an axis, a scalar."""
    return op.squeeze(op.shape(x, start=axis, end=axis + 1), whole(0))


def rows(name: str = "N", width: int = 6) -> Var:
    return argument(Tensor(np.float32, (name, width)))


def imputed() -> Made:
    """Gaps filled with the mean of their column, if there are any."""
    x = rows()
    known = op.not_(op.isnan(x))
    gaps = op.cast(op.reduce_min(op.cast(known, to=np.int32), keepdims=0), to=bool)
    given = op.where(known, x, const(0))

    def filled() -> list[Var]:
        many = op.reduce_sum(op.cast(known, to=np.float32), whole(0))
        mean = op.div(op.reduce_sum(given, whole(0)), op.max([many, const(1)]))
        return [op.where(known, x, mean)]

    (y,) = op.if_(gaps, then_branch=lambda: [op.identity(x)], else_branch=filled)
    return {"x": x}, {"y": op.matmul(y, const(ONE))}


def batched() -> Made:
    """One example is scored without its axis of examples, several are scored with it."""
    x = rows()
    scores = op.softmax(op.matmul(x, const(ONE)), axis=1)
    (y,) = op.if_(
        op.equal(count(x), const(1, np.int64)),
        then_branch=lambda: [op.squeeze(scores, whole(0))],
        else_branch=lambda: [op.identity(scores)],
    )
    return {"x": x}, {
        "y": op.reshape(y, whole(-1)),
        "best": op.reshape(op.arg_max(y, axis=-1), whole(-1)),
    }


def trimmed() -> Made:
    """Outliers are left out, unless no row would remain."""
    x = argument(Tensor(np.float32, ("N",)))
    kept = op.less(op.abs(op.sub(x, op.reduce_mean(x))), const(0.5))
    many = op.reduce_sum(op.cast(kept, to=np.int32), keepdims=0)
    (y,) = op.if_(
        op.greater(many, const(0, np.int32)),
        then_branch=lambda: [op.compress(x, kept, axis=0)],
        else_branch=lambda: [op.identity(x)],
    )
    return {"x": x}, {"y": op.sub(y, op.reduce_mean(y)), "count": op.size(y)}


def balanced() -> Made:
    """Rows and columns scaled in turn, until no sum moves."""
    x = argument(Tensor(np.float32, (4, 4)))

    def step(at: Var, _: Var, y: Var) -> list[Var]:
        y = op.div(y, op.reduce_sum(y, whole(1)))
        z = op.div(y, op.reduce_sum(y, whole(0)))
        moved = op.reshape(op.reduce_max(op.abs(op.sub(z, y))), whole(1))
        return [op.greater(moved, const(1e-3)), z, moved]

    y, moved = op.loop(const(20, np.int64), const([True], bool), v_initial=[op.exp(x)], body=step)
    return {"x": x}, {"y": y, "moved": moved, "steps": op.size(moved)}


def pieces() -> Made:
    """Texts of several lengths in one tensor: each is normalized, and they are joined again."""
    x, counts = rows(), argument(Tensor(np.int64, ("B",)))
    parts = op.split_to_sequence(x, counts, axis=0)

    def step(at: Var, goes_on: Var, found: Var) -> list[Var]:
        part = op.matmul(op.sequence_at(parts, at), const(ONE))
        part = op.softmax(op.matmul(part, op.transpose(part)), axis=1)
        part = op.matmul(part, op.sequence_at(parts, at))
        return [goes_on, op.sequence_insert(found, part)]

    (found,) = op.loop(count(counts), v_initial=[op.sequence_empty(dtype=np.float32)], body=step)
    y = op.reshape(op.concat_from_sequence(found, axis=0), whole(-1, 6))
    return {"x": x, "counts": counts}, {"y": y}


def sessions() -> Made:
    """A running sum for each event, which starts anew after a long break."""
    x, times = rows(), argument(Tensor(np.float32, ("N",)))

    def step(at: Var, goes_on: Var, state: Var, before: Var) -> list[Var]:
        event, now = op.reshape(op.gather(x, at), whole(6)), op.gather(times, at)
        (state,) = op.if_(
            op.greater(op.sub(now, before), const(1)),
            then_branch=lambda: [op.identity(event)],
            else_branch=lambda: [op.add(op.mul(state, const(0.5)), event)],
        )
        return [goes_on, state, now, state]

    last, _, states = op.loop(count(x), v_initial=[const(np.zeros(6)), const([0])], body=step)
    outputs = {"states": op.reshape(states, whole(-1, 6)), "last": op.reshape(last, whole(6))}
    return {"x": x, "times": times}, outputs


def masked() -> Made:
    """A model with an optional mask."""
    x, mask = rows(), argument(Optional(Tensor(np.bool_, ("N",))))
    (kept,) = op.if_(
        op.optional_has_element(mask),
        then_branch=lambda: [op.optional_get_element(mask)],
        else_branch=lambda: [op.expand(const(True, bool), op.shape(x, end=1))],
    )
    y = op.where(op.unsqueeze(kept, whole(1)), op.matmul(x, const(ONE)), const(0))
    return {"x": x, "mask": mask}, {"y": y}


def first_match() -> Made:
    """The first row over a bound, or none: an optional that a loop carries."""
    x, bound = rows(), argument(Tensor(np.float32, ()))
    row = Tensor(np.float32, (6,))

    def step(at: Var, _: Var, found: Var) -> list[Var]:
        now = op.reshape(op.gather(x, at), whole(6))
        hit = op.greater(op.reduce_max(now), bound)
        (found,) = op.if_(
            hit,
            then_branch=lambda: [op.optional(now)],
            else_branch=lambda: [op.optional(type=row)],
        )
        return [op.not_(hit), found]

    (found,) = op.loop(count(x), const([True], bool), v_initial=[op.optional(type=row)], body=step)
    there = op.optional_has_element(found)
    (y,) = op.if_(
        there,
        then_branch=lambda: [op.optional_get_element(found)],
        else_branch=lambda: [const(np.zeros(6))],
    )
    return {"x": x, "bound": bound}, {"y": y, "found": there}


def mapped() -> Made:
    """Columns of a table, each scaled to its own range."""
    x = rows()
    columns = op.split_to_sequence(x, whole(1, 2, 3), axis=1)

    def scaled(column: Var) -> list[Var]:
        low, high = op.reduce_min(column), op.reduce_max(column)
        (y,) = op.if_(
            op.squeeze(op.greater(high, low), whole(0, 1)),
            then_branch=lambda: [op.div(op.sub(column, low), op.sub(high, low))],
            else_branch=lambda: [op.mul(column, const(0))],
        )
        return [y]

    (found,) = op.sequence_map(columns, body=scaled)
    return {"x": x}, {"y": op.concat_from_sequence(found, axis=1)}


def smoothed() -> Made:
    """Exponential smoothing of a signal, forwards and backwards."""
    x = argument(Tensor(np.float32, ("N",)))

    def step(state: Var, now: Var) -> list[Var]:
        now = op.reshape(now, whole())
        state = op.add(op.mul(state, const(0.8)), op.mul(now, const(0.2)))
        return [state, state]

    last, there = op.scan([const(0), x], body=step, num_scan_inputs=1)
    _, back = op.scan(
        [last, there], body=step, num_scan_inputs=1,
        scan_input_directions=[1], scan_output_directions=[1],
    )  # fmt: skip
    return {"x": x}, {"y": op.reshape(op.add(there, back), whole(-1)), "last": last}


def windows() -> Made:
    """Overlapping windows of a signal, as a sequence that is the model's output."""
    x, width = argument(Tensor(np.float32, ("N",))), argument(Tensor(np.int64, ()))
    step = op.max([width, const(1, np.int64)])
    many = op.div(op.add(count(x), op.sub(step, const(1, np.int64))), step)

    def cut(at: Var, goes_on: Var, found: Var) -> list[Var]:
        start = op.reshape(op.mul(at, step), whole(1))
        end = op.add(start, op.reshape(op.mul(step, const(2, np.int64)), whole(1)))
        return [goes_on, op.sequence_insert(found, op.slice(x, start, end))]

    (found,) = op.loop(many, v_initial=[op.sequence_empty(dtype=np.float32)], body=cut)
    return {"x": x, "width": width}, {"windows": found, "count": op.sequence_length(found)}


def chosen() -> Made:
    """A tensor that a name chooses from the caller's sequence."""
    parts, name = argument(Sequence(Tensor(np.float32, ("N", 6)))), argument(Tensor(np.str_, ()))

    def other() -> list[Var]:
        return [op.concat_from_sequence(parts, axis=0)]

    (y,) = op.if_(
        op.equal(name, op.const(np.array("first"))),
        then_branch=lambda: [op.sequence_at(parts, const(0, np.int64))],
        else_branch=lambda: op.if_(
            op.equal(name, op.const(np.array("last"))),
            then_branch=lambda: [op.sequence_at(parts, const(-1, np.int64))],
            else_branch=other,
        ),
    )
    return {"parts": parts, "name": name}, {"y": op.matmul(y, const(ONE))}


def written(make: Callable[[], Made], folder: Path) -> Path:
    path = folder / "model.onnx"
    onnx.save(build(*make()), path)
    return path


KINDS: dict[str, Callable[[Path], Path]] = {
    "gaps filled in an If": partial(written, imputed),
    "If of two ranks": partial(written, batched),
    "If of two lengths": partial(written, trimmed),
    "Loop until nothing moves": partial(written, balanced),
    "attention within texts of several lengths": partial(written, pieces),
    "Loop with an If": partial(written, sessions),
    "optional mask": partial(written, masked),
    "optional that a Loop carries": partial(written, first_match),
    "SequenceMap with an If": partial(written, mapped),
    "two Scans": partial(written, smoothed),
    "windows as a sequence": partial(written, windows),
    "a sequence and a string": partial(written, chosen),
}
"""The functions that write a model into a folder, by name."""
