"""RMSNormalization: elements by the root of the mean of their squares, scaled."""

from __future__ import annotations

from dataclasses import dataclass

from bridge.neutral.builder import Builder, values_of
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.dims import known_axes
from bridge.neutral.types import F16, F32, is_static
from bridge.passes.fuse.uses import Uses, either_way, is_number, trailing


@dataclass(frozen=True)
class _Root:
    """The root of the mean of the squares of `x` over `axes`, with `epsilon` inside; `first` is
    the node of the squares."""

    x: Value
    axes: tuple[int, ...]
    epsilon: float
    first: Node


def rms_normalization(b: Builder, node: Node, uses: Uses) -> Value | None:
    """Over the last axes, with a scale of their shape; in f32 what is narrower."""
    if b.target is None or b.target.opset < 23:
        return None
    for value, scale in either_way(node):
        narrow = uses.single_use(value, "Cast")
        x, root = _normalized(narrow.inputs[0] if narrow is not None else value, uses)
        if x is None or root is None or x is not root.x:
            continue
        if narrow is not None:
            x = _widened(x, narrow)
        if x is None or x.shape is None or x.element is not scale.element:
            continue
        if x.element not in (F32, F16):
            continue
        rank, start = len(x.shape), root.axes[0]
        shape = x.shape[start:]
        if root.axes != tuple(range(start, rank)) or not is_static(shape):
            continue
        parameter = trailing(b, scale, shape)
        if parameter is None:
            continue
        b.name = root.first.name
        return b.op(
            "RMSNormalization", x, parameter, axis=start - rank, epsilon=root.epsilon,
            stash_type=F32,
        )  # fmt: skip
    return None


def _widened(x: Value, narrow: Node) -> Value | None:
    """What was converted to f32 from the type that a node converts back to."""
    wide = x.producer
    inner = wide.inputs[0] if wide is not None and wide.op == "Cast" else None
    element = narrow.attributes["to"]
    same = x.element is F32 and inner is not None and inner.element is element
    return inner if same and element is F16 else None


def _normalized(value: Value | None, uses: Uses) -> tuple[Value | None, _Root | None]:
    """x / root, or x times the inverse of the root."""
    node = uses.single_use(value, "Div", "Mul")
    if node is None:
        return None, None
    if node.op == "Div":
        return node.inputs[0], _root(node.inputs[1], uses)
    for x, factor in either_way(node):
        inverse = uses.single_use(factor, "Reciprocal", "Div", "Pow")
        if inverse is not None:
            return x, _root(_inverted(inverse), uses)
    return None, None


def _inverted(node: Node) -> Value | None:
    """What a node gives the inverse of."""
    if node.op == "Reciprocal":
        return node.inputs[0]
    first, second = node.inputs
    if node.op == "Div":
        return second if is_number(first, 1) else None
    return first if is_number(second, -1) else None


def _root(value: Value | None, uses: Uses) -> _Root | None:
    root = uses.single_use(value, "Sqrt")
    total = uses.single_use(root.inputs[0], "Add") if root is not None else None
    for inner, addend in () if total is None else either_way(total):
        mean = uses.single_use(inner, "ReduceMean")
        epsilon = values_of(addend)
        if mean is None or epsilon is None or epsilon.size != 1:
            continue
        square = uses.single_use(mean.inputs[0], "Mul", "Pow")
        x = square.inputs[0] if square is not None else None
        if square is None or x is None or x.rank is None or not mean.attributes["keepdims"]:
            continue
        other = square.inputs[1]
        if not (other is x if square.op == "Mul" else is_number(other, 2)):
            continue
        axes = known_axes(mean.input(1), x.rank)
        if axes:
            return _Root(x, tuple(sorted(axes)), float(epsilon.reshape(())), square)
    return None
