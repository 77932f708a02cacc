"""Operators with computed axes.

OpenVINO does not infer the rank of their results, though it knows the number of axes. The CPU
plugin does not run values of unknown rank.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import BOOL, I64
from bridge.operators import Result
from bridge.operators.reduction.reduction import IR
from bridge.quirks.quirk import Place, Quirk, rewriting
from bridge.quirks.undo import behind


def reshaped(b: Builder, node: Node, place: Place) -> Result:
    """A Reshape to a computed shape of known length."""
    x, axes = node.input(0), node.input(1)
    if x is None or x.rank is None or axes is None or known_of(axes).ints is not None:
        return None
    count = known_of(axes).length
    if count is None:
        return None
    match node.op:
        case "Squeeze":
            return _squeezed(b, x, axes, count)
        case "Unsqueeze":
            return _unsqueezed(b, x, axes, count)
    return None if node.attributes["keepdims"] else _reduced(b, node, x, axes, count)


def _squeezed(b: Builder, x: Value, axes: Value, count: int) -> Value:
    assert x.rank is not None
    kept = b.op("Squeeze", b.op("NonZero", ~_is_axis(b, axes, x.rank)), [0])
    kept = b.op("Reshape", kept, [x.rank - count])
    return b.op("Reshape", x, b.op("Gather", b.op("Shape", x), kept, 0), allowzero=True)


def _is_axis(b: Builder, axes: Value, rank: int) -> Value:
    """A mask of the axes, bool [rank]: whether each axis is in `axes`."""
    axes = b.as_i64(axes) % rank
    same = b.op("Equal", np.arange(rank)[:, None], axes)
    return b.op("Cast", b.op("ReduceMax", b.cast(same, I64), [1], keepdims=False), to=BOOL)


def _unsqueezed(b: Builder, x: Value, axes: Value, count: int) -> Value:
    assert x.rank is not None
    new = _is_axis(b, axes, x.rank + count)
    if x.rank == 0:
        return b.op("Reshape", x, [1] * count)
    # The number of kept axes of the input in front of each axis.
    own = b.min(b.op("CumSum", b.cast(~new, I64), 0, exclusive=True), x.rank - 1)
    dims = b.op("Gather", b.op("Shape", x), own, 0)
    return b.op("Reshape", x, b.where(new, 1, dims), allowzero=True)


def _reduced(b: Builder, node: Node, x: Value, axes: Value, count: int) -> Value:
    assert x.rank is not None
    stay = x.rank - count
    positive = axes % x.rank
    ones = b.op("Expand", [1], [count])
    zeros = b.constant([0] * x.rank)
    gone = b.op("ScatterElements", zeros, positive, ones, 0)
    _, left = b.ops(
        "ir::TopK", 2, gone, stay, axis=0, mode="min", sort="index",
        index_element_type=I64,
    )  # fmt: skip
    kept = b.op(node.op, x, axes, **{**node.attributes, "keepdims": True})
    return b.op("Reshape", kept, b.op("Gather", b.op("Shape", x), left, 0))


def _of_axes(b: Builder, node: Node) -> Iterator[Value]:
    """The reduction with keepdims=0, or Squeeze or Unsqueeze, with the axes that the comparison
    reads."""
    x, sizes = node.inputs
    kept = x.producer if x is not None else None
    if kept is not None and kept.attributes.get("keepdims") and len(kept.inputs) == 2:
        yield b.op(kept.op, *kept.inputs, **{**kept.attributes, "keepdims": False})
        return
    axes = behind(sizes, "Mod", FAR_BACK)
    if axes is not None:
        for op in ("Squeeze", "Unsqueeze"):
            yield b.op(op, x, axes.inputs[0])


FAR_BACK = 40
"""The number of values to search for the axes."""

QUIRK = Quirk(
    releases="2026.4",
    symptom="Unsqueeze with computed axes has a result of unknown rank, and does not compile. The "
    "same holds for Squeeze and reductions with two or more computed axes.",
    fires="At a Squeeze, an Unsqueeze or a reduction with computed axes, if the number of axes is "
    "known.",
    safe="The elements keep their order. The computed shape is the shape that the axes give.",
    cost="a Reshape, and the arithmetic of its shape",
    run=rewriting("Squeeze", "Unsqueeze", *IR, by=reshaped),
    guess={"Reshape": _of_axes},
)
