"""Making nodes: defaults filled in, types inferred at once."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from contextvars import Token
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, Self, TypeVar

import numpy as np

from bridge.errors import Refused as Refused
from bridge.limits import budget
from bridge.neutral.arithmetic import CURRENT, Argument, NodeMaker
from bridge.neutral.arrays import counted, full, spend
from bridge.neutral.extras import NodeExtras
from bridge.neutral.graph import UNKNOWN_ELEMENT, Body, Node, Value, operand_of
from bridge.neutral.inference import KNOWN_VALUE_LIMIT, infer
from bridge.neutral.inference.known import known_of
from bridge.neutral.tensor import FileRange, Tensor
from bridge.neutral.types import (
    BF16,
    F16,
    F32,
    F64,
    I64,
    I64_MAX,
    STRING,
    Element,
    TensorType,
    format_shape,
    size_of,
)
from bridge.vocabulary import has_trait, operator

_Found = TypeVar("_Found")


DEFAULT_OPSET = 21
"""For models that never were ONNX."""


@dataclass(frozen=True)
class Target:
    """The format a graph is rewritten for. For ONNX it has the operator set, and the other domains
    whose operators may be used, because the model used these domains before."""

    format: str
    opset: int = 0
    domains: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"ONNX (operator set {self.opset})" if self.format == "onnx" else "OpenVINO IR"


class Builder:
    """Appends nodes to `nodes`. `name` prefixes the names of the nodes it makes. `target` is the
    target of the rewriting (None while a file is read). `made` holds the earlier results of `once`.

    Inside `with b:` it is the current builder, and arithmetic on values makes its nodes there
    (`bridge/neutral/arithmetic.py`). The current builder is set in every rule and every pattern.
    """

    def __init__(
        self,
        nodes: list[Node],
        name: str = "",
        target: Target | None = None,
        made: dict[Hashable, Any] | None = None,
    ) -> None:
        self.nodes = nodes
        self.name = name
        self.target = target
        self._made = {} if made is None else made
        self._outer: list[Token[NodeMaker]] = []

    def __enter__(self) -> Self:
        self._outer.append(CURRENT.set(self))
        return self

    def __exit__(self, *error: object) -> None:
        CURRENT.reset(self._outer.pop())

    @property
    def opset(self) -> int:
        """The operator set of the ONNX file to write; 0 for IR, and while a file is read."""
        return self.target.opset if self.target is not None else 0

    @property
    def is_for_ir(self) -> bool:
        """Whether the nodes are for IR."""
        return self.target is not None and self.target.format == "ir"

    @property
    def domains(self) -> frozenset[str]:
        """The domains beside ONNX's own whose operators may be used."""
        return self.target.domains if self.target is not None else frozenset()

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
        """A node with inferred output types. `outputs` is a count, or the values themselves; then
        inference refines their types."""
        row = operator(op)
        if row is not None and row.defaults:
            attributes = {**row.defaults, **attributes} if attributes else dict(row.defaults)
        values = [Value() for _ in range(outputs)] if isinstance(outputs, int) else list(outputs)
        trimmed = list(inputs)
        # A Loop's trip count and condition keep their places.
        least = 2 if op == "Loop" else 0
        while len(trimmed) > least and trimmed[-1] is None:
            trimmed.pop()
        name = self.name if name is None else name
        budget().node(op, name)
        node = Node(op, trimmed, values, attributes, bodies, name, extras)
        infer(node)
        self.nodes.append(node)
        return node

    def once(self, key: Hashable, make: Callable[[], _Found]) -> _Found:
        """The result of `make()`, or the earlier result if a node of the graph used the same key.
        It is for a computation that many nodes share, such as a mask, in a rule that gives a
        result. Results of a rule that gives None are not kept."""
        if key not in self._made:
            self._made[key] = make()
        result: _Found = self._made[key]
        return result

    def op(self, op: str, *inputs: Argument, **attributes: Any) -> Value:
        """The single output of a new node."""
        return self.node(op, self._values(op, inputs), 1, attributes).outputs[0]

    def ops(self, op: str, count: int, *inputs: Argument, **attributes: Any) -> list[Value]:
        """The `count` outputs of a new node."""
        return self.node(op, self._values(op, inputs), count, attributes).outputs

    def _values(self, op: str, operands: Sequence[Argument]) -> list[Value | None]:
        """The inputs of a new node: numbers become Constants."""
        values: list[Value | None] = []
        for operand in operands:
            if operand is None or isinstance(operand, Value):
                values.append(operand)
            elif not has_trait(op, "broadcasts"):
                values.append(self.constant(operand))
            else:
                # The condition of Where does not decide the type.
                typed = operands[1:] if op == "Where" else operands
                element = next((v.element for v in typed if isinstance(v, Value)), None)
                values.append(self.constant(operand, element))
        return values

    def fold(self, op: str, values: Iterable[Value]) -> Value:
        """The values put together by an operator of two inputs, from the first on."""
        return reduce(partial(self.op, op), values)

    def tensor(self, tensor: Tensor, names: list[str] | None = None, name: str = "") -> Value:
        """A Constant of `tensor`."""
        value = constant_value(tensor, names)
        budget().node("Constant", self.name)
        self.nodes.append(Node("Constant", [], [value], {"value": tensor}, (), name or self.name))
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
        """A Constant of one value, of a static shape; 0 is an empty string, too. LimitError if it
        is too large to be made."""
        assert element is not None
        value = "" if element is STRING and value == 0 else value
        return self.constant(full(shape, value, element.dtype, self._place()))

    def counted(self, count: int, element: Element = I64) -> Value:
        """A Constant of the numbers 0 to count - 1; LimitError if it is too large."""
        return self.constant(counted(count, element.dtype, self._place()))

    def room(self, *shape: int) -> None:
        """Raises LimitError if an array of so many numbers is too large to be made."""
        spend(shape, np.int64, self._place())

    def _place(self) -> str:
        return f'a constant for "{self.name}"'

    def like(self, value: Any, other: Value) -> Value:
        """A Constant with the element type of `other`."""
        return self.constant(value, other.element)

    # Short forms of the most frequent nodes in rules; arithmetic has operators of Python.

    def where(self, condition: Value, x: Argument, y: Argument) -> Value:
        """The elements of `x` if the condition holds, else the elements of `y`."""
        return self.op("Where", condition, x, y)

    def max(self, *values: Argument) -> Value:
        """The greatest element at each place."""
        return self.op("Max", *values)

    def min(self, *values: Argument) -> Value:
        """The least element at each place."""
        return self.op("Min", *values)

    def transpose(self, x: Value, *perm: int) -> Value:
        """`x` with its axes permuted; `x` itself if the order is the same."""
        if list(perm) == sorted(perm):
            return x
        return self.op("Transpose", x, self.constant(list(perm)))

    def swap_last(self, x: Value, rank: int) -> Value:
        """`x`, of `rank`, with its last two axes exchanged."""
        return self.transpose(x, *range(rank - 2), rank - 1, rank - 2)

    def from_first(self, x: Value, axis: int, rank: int) -> Value:
        """`x`, of `rank`, with its first axis moved to `axis`."""
        return self.transpose(x, *range(1, axis + 1), 0, *range(axis + 1, rank))

    def channels_first(self, x: Value, rank: int) -> Value:
        """`x`, whose channels are its last axis, with them as its second."""
        return self.transpose(x, 0, rank - 1, *range(1, rank - 1))

    def channels_last(self, x: Value, rank: int) -> Value:
        """`x`, whose channels are its second axis, with them as its last."""
        return self.transpose(x, 0, *range(2, rank), 1)

    def unsqueeze(self, x: Value, *axes: int) -> Value:
        """`x` with new axes of size 1 at `axes`. A constant stays one, with the same bytes."""
        if not axes:
            return x
        tensor = x.constant
        if tensor is None:
            return self.op("Unsqueeze", x, self.constant(list(axes)))
        new = {axis % (len(tensor.shape) + len(axes)) for axis in axes}
        old = iter(tensor.shape)
        wide = range(len(tensor.shape) + len(axes))
        dims = tuple(1 if axis in new else next(old) for axis in wide)
        return self.of_shape(x, dims)

    def squeeze(self, x: Value, *axes: int) -> Value:
        """`x` without `axes`, which have size 1. A constant stays one, with the same bytes."""
        tensor = x.constant
        gone = () if tensor is None else {axis % len(tensor.shape) for axis in axes}
        if tensor is None or any(tensor.shape[axis] != 1 for axis in gone):
            return self.op("Squeeze", x, self.constant(list(axes)))
        dims = tuple(dim for axis, dim in enumerate(tensor.shape) if axis not in gone)
        return self.of_shape(x, dims)

    def reshape(self, x: Value, *dims: int | Value) -> Value:
        """`x` in another shape; -1 infers, 0 copies. A constant stays one, with the same bytes."""
        tensor = x.constant
        numbers = [dim for dim in dims if isinstance(dim, int)]
        if tensor is not None and tensor.size and len(numbers) == len(dims) and 0 not in numbers:
            known = size_of([n for n in numbers if n > 0])
            shape = tuple(n if n > 0 else tensor.size // known for n in numbers)
            if size_of(shape) == tensor.size:
                return self.of_shape(x, shape)
        return self.op("Reshape", x, self.shape(*dims))

    def of_shape(self, x: Value, dims: tuple[int, ...]) -> Value:
        """A constant in another shape, with the same bytes and names."""
        tensor = x.known_constant
        return self.tensor(Tensor(tensor.element, dims, tensor.source), list(x.names))

    def as_bits(self, x: Value, element: Element, *dims: int) -> Value:
        """The bytes of a constant taken for elements of another width, which both formats pack
        alike; it keeps its names."""
        tensor = x.known_constant
        source = tensor.source if isinstance(tensor.source, FileRange) else tensor.data()
        return self.tensor(Tensor(element, dims, source), list(x.names))

    def expand(self, x: Value, *dims: int | Value) -> Value:
        """`x` broadcast to a shape."""
        return self.op("Expand", x, self.shape(*dims))

    def concat(self, axis: int, *parts: Value) -> Value:
        """The parts joined along `axis`; the part itself if there is but one."""
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=axis)

    def split(self, x: Value, axis: int, *sizes: int) -> list[Value]:
        """Parts of the given sizes along `axis`."""
        if len(sizes) == 1:
            return [x]
        return self.ops("Split", len(sizes), x, self.constant(list(sizes)), axis=axis)

    def cut(self, x: Value, axis: int, start: int | Value | None, end: int | Value | None) -> Value:
        """The elements from `start` up to `end` along `axis`; numbers or 1-D i64 values, None for
        an end of the axis."""
        limits = (0 if start is None else start), (I64_MAX if end is None else end)
        starts, ends = [v if isinstance(v, Value) else self.constant([v]) for v in limits]
        return self.op("Slice", x, starts, ends, self.constant([axis]))

    def flip(self, x: Value, axis: int) -> Value:
        """`x` in reverse order along `axis`."""
        limits = (self.constant([n]) for n in (-1, -I64_MAX, axis, -1))
        return self.op("Slice", x, *limits)

    def take(self, x: Value, axis: int, *indices: int) -> Value:
        """The elements at `indices` along `axis`, which stays."""
        return self.op("Gather", x, self.constant(list(indices)), self.constant(axis))

    def from_the_front(self, indices: Value, count: Value) -> Value:
        """The indices without negative ones: -1 becomes `count - 1`, and so on."""
        from_end = self.op("Add", indices, self.cast(count, indices.element))
        return self.op("Where", self.op("Less", indices, self.like(0, indices)), from_end, indices)

    def known(self, fact: _Found | None, what: str) -> _Found:
        """A fact that was found about a node. Raises Refused if `fact` is None."""
        if fact is None:
            raise Refused(f"{what} is not known; give the inputs' shapes or values")
        return fact

    def constants(self, x: Value | None, what: str) -> tuple[int, ...]:
        """The integers of a constant; Refused if `x` is none."""
        found = known_of(x).ints
        if found is None:
            raise Refused(f"{what} must be constant; `values` makes an input so")
        return found

    def element(self, x: Value, index: int) -> Value:
        """One element of a vector, a scalar; a constant if it is known."""
        known = known_of(x).array
        if known is not None:
            return self.constant(known.reshape(-1)[index])
        return self.op("Gather", x, index, 0)

    def dim(self, x: Value, axis: int) -> int | Value:
        """The size of an axis: a number if it is known, else a vector of one element."""
        known = None if x.shape is None else x.shape[axis]
        return known if isinstance(known, int) else self.sizes(x, axis)

    def sizes(self, x: Value, *axes: int) -> Value:
        """The sizes of `axes` of `x`, 1-D i64; a constant if they are known."""
        if x.shape is not None and all(isinstance(x.shape[a], int) for a in axes):
            return self.constant([x.shape[a] for a in axes])
        return self.take(self.op("Shape", x), 0, *axes)

    def shape(self, *dims: int | Value) -> Value:
        """A shape, 1-D i64, from numbers and 1-D values."""
        parts: list[Value] = []
        numbers: list[int] = []
        for dim in dims:
            if isinstance(dim, int):
                numbers.append(dim)
                continue
            if numbers:
                parts.append(self.constant(numbers))
                numbers = []
            parts.append(dim)
        if numbers or not parts:
            parts.append(self.constant(numbers))
        return self.concat(0, *parts)

    def zeros(self, like: Value, *dims: int | Value) -> Value:
        """Zeros of the element type of `like`."""
        known = [known_of(d).ints if isinstance(d, Value) else (d,) for d in dims]
        if all(k is not None for k in known):
            return self.filled(0, [n for k in known if k is not None for n in k], like.element)
        return self.expand(self.filled(0, (), like.element), *dims)

    def size(self, x: Value, axis: int) -> Value:
        """The size of one axis of `x`, an i64 scalar; Refused if there is no such axis."""
        if x.shape is not None:
            if not -len(x.shape) <= axis < len(x.shape):
                raise Refused(f"one of its inputs, {format_shape(x.shape)}, has no axis {axis}")
            known = x.shape[axis]
            if isinstance(known, int):
                return self.constant(known)
        return self.op("Gather", self.op("Shape", x), self.constant(axis), self.constant(0))

    def positions(self, x: Value, axis: int) -> Value:
        """0, 1, 2, ... along an axis of `x`, 1-D i64."""
        return self.op("Range", self.constant(0), self.size(x, axis), self.constant(1))

    def cast(self, x: Value, element: Element | None) -> Value:
        """`x` as `element`, or `x` itself if it has that type. Raises Refused if `element` is None,
        so that the type of another value is not known."""
        if x.element is element:
            return x
        if element is None:
            raise Refused(UNKNOWN_ELEMENT)
        return self.op("Cast", x, to=element)

    def plus(self, x: Value, *addends: Value | None) -> Value:
        """The sum of `x` and the addends. An absent addend adds 0."""
        for addend in addends:
            x = x if addend is None else self.op("Add", x, addend)
        return x

    def as_i64(self, x: Value) -> Value:
        """Integers as i64; a constant stays one."""
        known = known_of(x).array
        if x.element is I64 or known is None:
            return self.cast(x, I64)
        return self.constant(known, I64)

    def vector(self, x: Value) -> Value:
        """A scalar, or a vector of one element, as a vector; a constant stays one."""
        known = known_of(x).array
        if x.rank == 1:
            return x
        if known is None:
            return self.op("Reshape", x, self.constant([-1]))
        return self.constant(known.reshape(-1))

    def scalar(self, x: Value) -> Value:
        """A vector of one element, or a scalar, as a scalar; a constant stays one."""
        known = known_of(x).array
        if x.rank == 0:
            return x
        if known is None:
            return self.op("Reshape", x, self.constant([]))
        if known.size != 1:
            raise Refused(f"one number was expected, not {known.size} of them")
        return self.constant(known.reshape(()))


def constant_value(tensor: Tensor, names: list[str] | None = None) -> Value:
    """A value with the type and, for short integers, the content of `tensor` (no producer)."""
    value = Value(TensorType(tensor.element, tensor.shape), names)
    whole = tensor.element.kind in ("int", "uint", "bool")
    if whole and len(tensor.shape) <= 1 and tensor.size <= KNOWN_VALUE_LIMIT:
        value.known_value = tuple(map(int, tensor.array().reshape(-1).tolist()))
    return value


def constant_node(value: Value, tensor: Tensor) -> Node:
    """The Constant that makes a value, which had no node, this tensor."""
    known = constant_value(tensor)
    value.type, value.known_value = known.type, known.known_value
    return Node("Constant", [], [value], {"value": tensor}, (), value.name)


def stored_short(value: Value) -> Tensor | None:
    """The tensor of f16 or bf16 that a Cast makes the value of, exactly; None if there is none.
    OpenVINO saves constants of f32 and f64 so, unless it is told not to."""
    few = operand_of(value, "Cast") if value.element in (F32, F64) else None
    tensor = few.constant if few is not None else None
    return tensor if tensor is not None and tensor.element in (F16, BF16) else None
