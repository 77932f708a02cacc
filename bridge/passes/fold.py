"""Makes values constant that are known at conversion: shape arithmetic, Ifs that go one way."""

import numpy as np

from bridge.neutral.arrays import can_be, full
from bridge.neutral.builder import Builder, constant_value
from bridge.neutral.captures import sink_constants
from bridge.neutral.graph import Graph, Model, Node, Value
from bridge.neutral.inference import KNOWN_VALUE_LIMIT, infer, infer_graph
from bridge.neutral.inference.computed import follows
from bridge.neutral.inference.known import known_of
from bridge.neutral.ports import Invariant
from bridge.neutral.rewrite import Pattern, Result, Rewriter
from bridge.neutral.tensor import Tensor
from bridge.neutral.types import BOOL, F64, TensorType, is_static
from bridge.passes.applies import applies, rewrites
from bridge.passes.context import Context


@applies(rewrites)
def fold(model: Model, context: Context) -> bool:
    """Folds known integer values and inlines Ifs with a known condition, in place."""
    graph = model.graph
    before = _count_ifs(graph)
    changed = fold_graph(graph)
    if before and _count_ifs(graph) < before:
        infer_and_fold(graph)  # One branch tells more about its outputs than both together.
    return changed


def _count_ifs(graph: Graph) -> int:
    return sum(node.op == "If" for node in graph.walk())


def fold_graph(graph: Graph) -> bool:
    """Folds a graph, in place; whether that changed it, or more is known of it."""
    return Rewriter(graph).run(FOLD)


def infer_and_fold(graph: Graph) -> None:
    """Infers a graph anew, in place, as after the pruning of a branch, and again with the newly
    known values."""
    infer_graph(graph)
    if fold_graph(graph):
        infer_graph(graph)


def _folded(b: Builder, node: Node, rewriter: Rewriter) -> Result:
    if node.op == "If":
        known = known_of(node.inputs[0]).ints
        if known is not None and len(known) == 1:
            return rewriter.inline(b, node, node.bodies[0 if known[0] else 1], FOLD)
        rewriter.changed |= _known_in_branches(node)
    elif node.op == "Cast" and _is_bool(node.inputs[0]) and _is_bool(node.outputs[0]):
        return node.inputs[0]  # PyTorch's exporter casts every condition.
    elif node.op == "Identity" and node.inputs[0] is not None and node.inputs[0].constant:
        return node.inputs[0]
    if node.bodies:
        rewriter.descend(node, FOLD)
        rewriter.changed |= sink_constants(node)
    elif len(node.outputs) == 1:
        (value,) = node.outputs
        before = value.known_value
        if not is_static(value.shape) and any(0 in (v.shape or ()) for v in node.operands):
            infer(node)  # An input may have become a constant without elements.
        if fold_value(value, node, b.nodes):
            return value
        rewriter.changed |= value.known_value is not before
    return None


FOLD = Pattern(_folded, bodies=False)
"""Folds a node, or the branch of an If that always goes one way."""


def _is_bool(value: Value | None) -> bool:
    return value is not None and value.element is BOOL


def _known_in_branches(node: Node) -> bool:
    """Gives an If's branches their condition as a constant: true in the first branch, false in the
    other. Returns whether a branch captured it."""
    condition = node.inputs[0]
    assert condition is not None
    if not is_static(condition.shape):
        return False
    news = False
    for body, truth in zip(node.bodies, (True, False), strict=True):
        known = body.take_entries(
            lambda _, port: isinstance(port, Invariant) and node.inputs[port.input] is condition
        )
        for value, _ in known:
            tensor = Tensor.of(full(condition.shape, truth, what=repr(node)))
            value.type, value.known_value = condition.type, (int(truth),)
            made = Node("Constant", [], [value], {"value": tensor}, (), value.name)
            body.graph.prepend([made])
            news = True
    return news


def fold_value(value: Value, node: Node, out: list[Node]) -> bool:
    """Makes `value` a Constant if all its elements are known, or it has none."""
    empty = value.shape
    if (
        empty and 0 in empty and is_static(empty)
        and value.element is not None and can_be(empty, value.element.dtype)
    ):  # fmt: skip
        nothing = np.empty(empty, value.element.dtype)
        tensor = Tensor(value.element, empty, nothing)
        value.known_value = constant_value(tensor).known_value
        out.append(Node("Constant", [], [value], {"value": tensor}, (), node.name))
        return True
    element = value.element
    if element is F64 and node.op != "Cast":
        return _fold_f64(value, node, out)
    if element is None or element.kind not in ("int", "uint", "bool") or value.rank not in (0, 1):
        return False
    size = value.dims[0] if value.rank else 1
    if isinstance(size, int) and size > KNOWN_VALUE_LIMIT:
        return False
    known = known_of(value).ints
    if known is None and follows(node):
        infer(node)  # Its inputs may have become known since it was made.
        known = known_of(value).ints
    if known is None or len(known) > KNOWN_VALUE_LIMIT or (value.rank == 0 and len(known) != 1):
        return False
    shape = () if value.rank == 0 else (len(known),)
    tensor = Tensor(element, shape, np.array(known, element.dtype).reshape(shape))
    value.type, value.known_value = TensorType(element, shape), known
    out.append(Node("Constant", [], [value], {"value": tensor}, (), node.name))
    return True


def _fold_f64(value: Value, node: Node, out: list[Node]) -> bool:
    """Makes a value of f64 a Constant if it is known and small. OpenVINO never ends folding sums of
    sums of them."""
    numbers = None if value.computed is None else value.computed.array()
    if numbers is None or numbers.size > KNOWN_VALUE_LIMIT or value.element is None:
        return False
    tensor = Tensor(value.element, numbers.shape, numbers)
    value.type = TensorType(value.element, numbers.shape)
    out.append(Node("Constant", [], [value], {"value": tensor}, (), node.name))
    return True
