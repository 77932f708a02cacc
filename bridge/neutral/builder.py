"""Making nodes: defaults filled in, types inferred at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bridge.neutral.arrays import counted, full, spend
from bridge.neutral.extras import NodeExtras
from bridge.neutral.graph import Body, Node, Value
from bridge.neutral.inference import KNOWN_VALUE_LIMIT, infer
from bridge.neutral.inference.dims import known_integers
from bridge.neutral.tensor import Tensor
from bridge.neutral.types import I64, Element, TensorType
from bridge.vocabulary import operator

integers = known_integers


@dataclass(frozen=True)
class Target:
    """What a graph is rewritten for: a format, and for ONNX the operator set and the other domains
    whose operators may be used, since the model was of them before."""

    format: str
    opset: int = 0
    domains: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"ONNX (operator set {self.opset})" if self.format == "onnx" else "OpenVINO IR"


class Builder:
    """Appends nodes to `nodes`. `name` prefixes the names of the nodes it makes; `target` is what
    the graph is rewritten for (None while a file is read)."""

    def __init__(self, nodes: list[Node], name: str = "", target: Target | None = None) -> None:
        self.nodes = nodes
        self.name = name
        self.target = target

    def node(
        self,
        op: str,
        inputs: Sequence[Value | None],
        outputs: int | Sequence[Value] = 1,
        attributes: dict[str, Any] | None = None,
        bodies: tuple[Body, ...] = (),
        name: str | None = None,
        extras: NodeExtras | None = None,
    ) -> Node:
        """A node with inferred output types. `outputs` is a count, or the values themselves
        (their types are then refined by what inference finds)."""
        row = operator(op)
        if row is not None and row.defaults:
            attributes = {**row.defaults, **attributes} if attributes else dict(
                row.defaults
            )  # fmt: skip
        values = [Value() for _ in range(outputs)] if isinstance(outputs, int) else list(outputs)
        trimmed = list(inputs)
        # A Loop's trip count and condition keep their places.
        least = 2 if op == "Loop" else 0
        while len(trimmed) > least and trimmed[-1] is None:
            trimmed.pop()
        node = Node(
            op, trimmed, values, attributes, bodies, self.name if name is None else name, extras
        )
        infer(node)
        self.nodes.append(node)
        return node

    def op(self, op: str, *inputs: Value | None, **attributes: Any) -> Value:
        """The single output of a new node."""
        return self.node(op, inputs, 1, attributes).outputs[0]

    def ops(self, op: str, count: int, *inputs: Value | None, **attributes: Any) -> list[Value]:
        """The `count` outputs of a new node."""
        return self.node(op, inputs, count, attributes).outputs

    def tensor(self, tensor: Tensor, names: list[str] | None = None, name: str = "") -> Value:
        """A Constant of `tensor`."""
        value = constant_value(tensor, names)
        self.nodes.append(
            Node("Constant", [], [value], {"value": tensor}, (), name or self.name)
        )  # fmt: skip
        return value

    def constant(self, value: Any, element: Element | None = None) -> Value:
        """A Constant of an array, number or list; Python integers become i64, floats f32."""
        array = np.asarray(value)
        if element is not None:
            array = array.astype(element.dtype)
        elif not isinstance(value, np.ndarray | np.generic):
            if array.dtype.kind in "iu" or array.size == 0:
                array = array.astype(np.int64)
            elif array.dtype.kind == "f":
                array = array.astype(np.float32)
        return self.tensor(Tensor.of(array))

    def filled(self, value: Any, shape: Sequence[Any], element: Element | None) -> Value:
        """A Constant of one value, of a static shape; LimitError where it is too large to be
        made."""
        assert element is not None
        return self.constant(full(shape, value, element.dtype, self._place()))

    def counted(self, count: int, element: Element = I64) -> Value:
        """A Constant of the numbers 0 to count - 1; LimitError where it is too large."""
        return self.constant(counted(count, element.dtype, self._place()))

    def room(self, *shape: int) -> None:
        """Raises LimitError where an array of so many numbers is too large to be made."""
        spend(shape, np.int64, self._place())

    def _place(self) -> str:
        return f'a constant for "{self.name}"'

    def like(self, value: Any, other: Value) -> Value:
        """A Constant with the element type of `other`."""
        return self.constant(value, other.element)


def constant_value(tensor: Tensor, names: list[str] | None = None) -> Value:
    """A value with the type and, for short integers, the content of `tensor` (no producer)."""
    value = Value(TensorType(tensor.element, tensor.shape), names)
    whole = tensor.element.kind in ("int", "uint", "bool")
    if whole and len(tensor.shape) <= 1 and tensor.size <= KNOWN_VALUE_LIMIT:
        value.known_value = tuple(map(int, tensor.array().reshape(-1).tolist()))
    return value


def values_of(value: Value | None) -> np.ndarray | None:
    """The values of a constant (or of an integer value that is known), as an array; else None."""
    if value is None:
        return None
    tensor = value.constant
    if tensor is not None:
        return tensor.array()
    known = integers(value)
    if known is not None and isinstance(value.type, TensorType):
        array = np.array(known, (value.element or I64).dtype)
        return array.reshape(()) if value.rank == 0 else array
    return None
