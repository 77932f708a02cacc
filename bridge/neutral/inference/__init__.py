"""The engine that infers the types of a node's outputs and the content of shape-like values.

An inference function takes the node and gives one type per output. It may raise Refused if the
inputs say nothing of them. A content function gives the known elements of output 0 (see
`Value.known_value`). Both stand beside the rules of their operators (`bridge/operators/`);
`provide` sets the function that finds them. Other operators are inferred by the `types` of their
row, or by the function that `infer_otherwise` sets. That function uses ONNX's own inference, or,
for operators that ONNX lacks, the result of their rule.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, wraps
from typing import Any

from bridge.errors import Refused
from bridge.neutral.graph import Graph, Node, Value
from bridge.neutral.types import (
    ANY,
    I64_MAX,
    UNKNOWN,
    Dim,
    KnownValue,
    Shape,
    TensorType,
    Type,
    broadcast,
    is_static,
    meet,
    size_of,
)
from bridge.vocabulary import has_trait, operator

Inference = Callable[[Node], Sequence[Type]]
ShapeInference = Callable[[Node, tuple[Dim, ...]], Shape]
Content = Callable[[Node], KnownValue | None]

KNOWN_VALUE_LIMIT = 64
"""The longest value whose `Value.known_value` is kept."""

_inferences: dict[str, Inference] = {}
_known_values: dict[str, Content] = {}
_loaded: set[str] = set()
BREAKS = (ArithmeticError, AssertionError, IndexError, ValueError)
"""Errors of a function or rule for a node that breaks a constraint, or that nothing has checked."""

UNCHECKED = ("ai.onnx.ml::", "com.microsoft::")
"""Domains in which nothing states which attributes and shapes go together. Nothing states it for an
IR either. For ONNX there is a checker, which `convert` calls."""


def faults_of(op: str) -> tuple[type[Exception], ...]:
    """The errors that may be the fault of a node instead of ours. In some domains an attribute may
    even lack, or have any type."""
    return (*BREAKS, AttributeError, KeyError, TypeError) if op.startswith(UNCHECKED) else BREAKS


def require(holds: bool) -> None:
    """Raises Refused unless the condition on the inputs holds: they may contradict each other in a
    branch that would fail if it ran. The outputs stay unknown."""
    if not holds:
        raise Refused("its inputs contradict each other")


def place(axis: int, rank: int) -> int:
    """The axis, not negative; Refused if a tensor of this rank has no such axis."""
    require(-rank <= axis < rank)
    return axis % rank


_strict: ContextVar[bool] = ContextVar("strict", default=False)


@contextmanager
def strictly(on: bool = True) -> Iterator[None]:
    """Inside, such an exception is raised instead of taken for "not known": for debugging."""
    token = _strict.set(on)
    try:
        yield
    finally:
        _strict.reset(token)


def _not_imported(op: str) -> None:
    raise RuntimeError("bridge.operators, which infers operators, is not imported")


def _no_types(node: Node) -> Sequence[Type]:
    return ()


_load: Callable[[str], None] = _not_imported
_by_rule: Inference = _no_types
_otherwise: Inference = _no_types


def provide(load: Callable[[str], None], by_rule: Inference) -> None:
    """`load` imports the module that registers the functions of an operator. `by_rule` infers
    operators that ONNX lacks, or the vocabulary."""
    global _load, _by_rule
    _load, _by_rule = load, by_rule


def infer_otherwise(function: Inference) -> None:
    """`function` infers operators of ONNX that have no function here."""
    global _otherwise
    _otherwise = function


def load_operator(op: str) -> None:
    """Imports the module that registers the functions and constraints of an operator."""
    if op not in _loaded:
        _load(op)
        _loaded.add(op)


def infers(*ops: str) -> Callable[[Inference], Inference]:
    """Registers the inference function of operators."""

    def register(function: Inference) -> Inference:
        for op in ops:
            if op in _inferences:
                raise ValueError(f"{op} has two inference functions")
            _inferences[op] = function
        return function

    return register


def infers_shape(*ops: str) -> Callable[[ShapeInference], ShapeInference]:
    """Registers the shape function of operators with one output of input 0's element type.

    It takes the node and the dimensions of input 0. If the rank of input 0 is not known, the rank
    of the output is not known either.
    """

    def register(function: ShapeInference) -> ShapeInference:
        @infers(*ops)
        @wraps(function)
        def infer_one(node: Node) -> list[Type]:
            data = first(node)
            shape = None if data.shape is None else function(node, data.shape)
            return [TensorType(data.element, shape)]

        return function

    return register


def knows(*ops: str) -> Callable[[Content], Content]:
    """Registers the content function of operators."""

    def register(function: Content) -> Content:
        for op in ops:
            if op in _known_values:
                raise ValueError(f"{op} has two content functions")
            _known_values[op] = function
        return function

    return register


def infer(node: Node) -> None:
    """Sets the types and content of the node's outputs. Declared types stay if inference knows
    less. Never raises for a node that cannot be inferred."""
    op = node.op
    load_operator(op)
    function = _inferences.get(op) or _by_row(node)
    types: Sequence[Type]
    try:
        types = function(node)
    except Refused:
        types = ()
    except faults_of(op):
        if _is_fault(node):
            raise
        types = ()
    for index, output in enumerate(node.outputs):
        inferred = types[index] if index < len(types) else UNKNOWN
        output.type = meet(_possible(inferred), output.declared)
        output.believed = output.rank is not None and getattr(inferred, "shape", None) is None
    content = _known_values.get(op) if node.outputs else None
    if (
        content is not None
        and not any(map(_is_weight, node.inputs))
        and (not any(map(_is_matrix, node.inputs)) or has_trait(op, "known_value_of_any_rank"))
    ):
        node.outputs[0].known_value = _known(content, node)
    computed.defer(node)


def is_inferred(node: Node) -> bool:
    """Whether a function infers the node's outputs. For other nodes an engine may know more."""
    load_operator(node.op)
    return node.op in _inferences


def _by_row(node: Node) -> Inference:
    """The inference of an operator without its own function."""
    row = operator(node.op)
    if row is not None and row.types:
        return partial(rows.declared_types, row=row)
    if row is not None and "same_type" in row.traits:
        return same
    if row is not None and "broadcasts" in row.traits:
        return broadcasting
    return _otherwise if row is not None and row.onnx else _by_rule


def _is_fault(node: Node) -> bool:
    """Whether an error is the fault of the function: in strict mode, if the node breaks none of
    its constraints."""
    return _strict.get() and not constraints.contradiction(node)


def _known(content: Content, node: Node) -> KnownValue | None:
    """The content that a content function gives for a node, if it is short. For an output that is
    long by its type the function is not asked: it would read weights."""
    type = node.outputs[0].type
    shape = type.shape if isinstance(type, TensorType) else None
    if is_static(shape) and size_of(shape) > KNOWN_VALUE_LIMIT:
        return None
    try:
        known = content(node)
    except Refused:
        return None
    except faults_of(node.op):
        if _is_fault(node):
            raise
        return None
    return None if known is None or len(known) > KNOWN_VALUE_LIMIT else known


def _possible(type: Type) -> Type:
    """The type with sizes that a tensor can have: arithmetic on shapes that do not fit together
    gives others."""
    shape = type.shape if isinstance(type, TensorType) else None
    if shape is None:
        return type
    for dim in shape:
        if isinstance(dim, int) and not 0 <= dim <= I64_MAX:
            break
    else:
        return type
    dims = (d if not isinstance(d, int) or 0 <= d <= I64_MAX else ANY for d in shape)
    return TensorType(type.element, tuple(dims))  # type: ignore[union-attr]


def _is_matrix(value: Value | None) -> bool:
    """Whether some elements of a matrix, or of a tensor with more axes, are known."""
    return value is not None and value.known_value is not None and (value.rank or 0) > 1


def _is_weight(value: Value | None) -> bool:
    """Whether a value is a large constant matrix."""
    tensor = None if value is None else value.constant
    return tensor is not None and len(tensor.shape) > 1 and tensor.size > computed.MOST


def infer_graph(graph: Graph) -> None:
    """Infers a graph and all nested graphs anew, from the types of its inputs."""
    from bridge.neutral.inference.control import enter_bodies

    for node in graph.nodes:
        if node.op == "Constant":
            continue
        if node.bodies:
            enter_bodies(node)
        infer(node)


def same(node: Node) -> list[Type]:
    """Every output is like input 0."""
    value: Any = node.inputs[0]
    return [value.type] * len(node.outputs)


def broadcasting(node: Node) -> list[Type]:
    """The output has the shapes of all inputs broadcast, and the first element type known."""
    types = [first(node, index) for index in range(len(node.inputs))]
    element = next((type.element for type in types if type.element is not None), None)
    return [TensorType(element, broadcast(*(type.shape for type in types)))]


def first(node: Node, index: int = 0) -> TensorType:
    """The tensor type of input `index`; unknown if it is absent."""
    value: Value | None = node.input(index)
    return value.type if value is not None and isinstance(value.type, TensorType) else UNKNOWN


# These modules register the functions of the graph's own operators: If and Loop.
from bridge.neutral.inference import computed, constraints, control, rows  # noqa: E402, F401
