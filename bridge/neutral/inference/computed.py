"""Elements that follow from known inputs, whatever the operator.

A node without a body has a known result if its inputs are known and small. Nobody asks for most
results. So `Value.computed` only remembers the inputs and the node, and computes when it is asked.
The function that `compute_by` got computes one node.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from bridge.neutral.arrays import spend
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.tensor import GivenTensor, Tensor
from bridge.neutral.types import STRING, TensorType, high
from bridge.vocabulary import operator

MOST = 1 << 10
"""Most elements of an input or output of a computed node. Weights have more."""

MOST_GIVEN = 1 << 20
"""Most elements where a value that the user gave takes part."""

Array = np.ndarray | None
Compute = Callable[[Node, Sequence[Array]], Sequence[Array]]
"""Computes the outputs of a node from its inputs. An absent input is None, and so is an output that
it cannot compute."""


def no_arrays(node: Node, arrays: Sequence[Array]) -> Sequence[Array]:
    """Computes no node."""
    return ()


_compute: Compute = no_arrays


def compute_by(function: Compute) -> None:
    """`function` computes nodes from now on."""
    global _compute
    _compute = function


class Computed:
    """The elements of a value, computed from the elements of others at the first request."""

    __slots__ = ("_array", "_inputs", "_make", "most")

    def __init__(
        self, inputs: Sequence[Value | None], make: Callable[[Sequence[Array]], Array]
    ) -> None:
        self.most = max(map(_most, inputs), default=MOST)
        self._inputs: Sequence[Value | None] | None = list(inputs)
        self._make = make
        self._array: Array = None

    def array(self) -> Array:
        """The elements, with their shape; None if they cannot be computed. A loop computes the
        inputs first, since chains may be too long for recursion."""
        waiting = [self]
        while waiting:
            last = waiting[-1]
            before = [c for v in last._inputs or () if (c := _unfinished(v)) is not None]
            if before:
                waiting += before
                continue
            waiting.pop()
            last._finish()
        return self._array

    def _finish(self) -> None:
        if self._inputs is None:
            return
        inputs, self._inputs = self._inputs, None
        arrays = [known_of(value).array for value in inputs]
        if sum(a is None for a in arrays) == sum(value is None for value in inputs):
            self._array = self._make(arrays)


def _unfinished(value: Value | None) -> Computed | None:
    """The computation that a value still waits for."""
    made = None if value is None else value.computed
    if value is None or not isinstance(made, Computed) or made._inputs is None:
        return None
    return None if value.constant is not None or _is_whole(value) else made


def _most(value: Value | None) -> int:
    """The most elements of a value that is computed on demand."""
    if value is None:
        return MOST
    if isinstance(value.computed, Computed):
        return value.computed.most
    return MOST_GIVEN if isinstance(value.constant, GivenTensor) else MOST


def _is_small(tensor: Tensor) -> bool:
    most = MOST_GIVEN if isinstance(tensor, GivenTensor) else MOST
    return tensor.size <= most and tensor.element is not STRING


def _is_whole(value: Value) -> bool:
    """Whether all elements of an integer value are known, and its type."""
    known = value.known_value
    if known is None or value.element is None or value.rank is None:
        return False
    for item in known:  # noqa: SIM110 (a generator takes twice as long)
        if not isinstance(item, int):
            return False
    return True


def is_known(value: Value) -> bool:
    """Whether a value is known and small, or becomes known when it is asked for."""
    tensor = value.constant
    if tensor is not None:
        return _is_small(tensor)
    return value.computed is not None or _is_whole(value)


def follows(node: Node) -> bool:
    """Whether the outputs of a node follow from known inputs."""
    operands = node.operands
    known = bool(operands) and all(map(is_known, operands))
    return known and not node.bodies and not is_random(node)


def is_random(node: Node) -> bool:
    """Whether a node gives other numbers each time."""
    row = operator(node.op)
    return row is not None and row.family == "random"


def defer(node: Node) -> None:
    """Makes the outputs of a node computed values, if its inputs are known and the outputs are
    surely small."""
    for output in node.outputs:
        output.computed = None
    if not follows(node):
        return
    for index, output in enumerate(node.outputs):
        type = output.type
        if not isinstance(type, TensorType) or _is_whole(output):
            continue
        computed = Computed(node.inputs, partial(_output, node, index, type))
        if _size(type) <= computed.most:
            output.computed = computed


def enter_known(value: Value, outer: Value) -> None:
    """Gives an input of a body the type and the known elements of the outer value."""
    value.type, value.known_value = outer.type, outer.known_value
    value.computed = outer.computed
    if outer.constant is not None and not _is_whole(outer) and is_known(outer):
        value.computed = Computed([outer], lambda arrays: arrays[0])


def _output(node: Node, index: int, type: TensorType, arrays: Sequence[Array]) -> Array:
    """Output `index` of a node; None if its type is not the inferred one."""
    outputs = _compute(node, arrays)
    array = outputs[index] if index < len(outputs) else None
    if array is None or type.element is None or array.dtype != type.element.dtype:
        return None
    dims = type.shape or ()
    fits = len(dims) == array.ndim and all(
        not isinstance(dim, int) or dim == size for dim, size in zip(dims, array.shape, strict=True)
    )
    if not fits:
        return None
    spend(array.shape, array.dtype, f'what "{node.name}" gives')
    return array


def _size(type: TensorType) -> float:
    """How many elements a tensor of a type has at most."""
    if type.shape is None:
        return math.inf
    highs = [high(dim) for dim in type.shape]
    return math.prod(math.inf if most is None else most for most in highs)
