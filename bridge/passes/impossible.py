"""Nodes that cannot run with the shapes they get.

OpenVINO infers both branches of an If when it opens a model, and refuses one of which a branch
contradicts itself, though it may never be taken: the branch for another sample rate, say, once the
length of the input is fixed. Such a branch is pruned; its If goes the other way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bridge.errors import Unsupported, UnsupportedError
from bridge.neutral.builder import integers
from bridge.neutral.graph import BRANCHES, Graph, Model, Node, Value
from bridge.neutral.rewrite import Substitution
from bridge.neutral.types import Dim, Shape, format_shape, is_static, size_of
from bridge.passes.context import Context
from bridge.passes.fold import infer_and_fold, inline_branch
from bridge.report import Report


def prune_impossible(model: Model, context: Context) -> None:
    """Prunes, in place, branches that fail whenever they are taken, and notes each in the report.

    Raises UnsupportedError with the nodes that fail elsewhere.
    """
    report = context.report
    count = len(report.pruned)
    findings = _graph(model.graph, "graph", report)
    if len(report.pruned) > count:
        infer_and_fold(model.graph)
    if findings:
        raise UnsupportedError(str(context.target), findings)


def _graph(graph: Graph, where: str, report: Report) -> list[Unsupported]:
    findings: list[Unsupported] = []
    substitution = Substitution()
    nodes: list[Node] = []
    for node in graph.nodes:
        substitution.apply(node)
        here = f"{where} / {node!r}"
        if node.op == "If":
            found = [
                _graph(body.graph, f"{here} / {branch}", report) for branch, body in node.roles()
            ]
            possible = [index for index in (0, 1) if not found[index]]
            if len(possible) == 1:
                gone = 1 - possible[0]
                report.pruned.append(f"{here}: its {BRANCHES[gone]} fails, {found[gone][0].why}")
                inline_branch(node, node.bodies[possible[0]], nodes, substitution)
                continue
            findings += [finding for each in found for finding in each]
        for body in node.bodies if node.op != "If" else ():
            findings += _graph(body.graph, f"{here} / body", report)
        why = contradiction(node)
        if why:
            findings.append(Unsupported(node.op, here, why))
        nodes.append(node)
    graph.nodes = nodes
    substitution.finish(graph)
    return findings


def contradiction(node: Node) -> str:
    """Why the known shapes of a node's inputs do not go together; "" where they may."""
    check = _CHECKS.get(node.op)
    if check is None:
        return ""
    return next(check(node), "")


def _elementwise(node: Node) -> Iterator[str]:
    """Multidirectional broadcasting (ONNX, Broadcasting)."""
    sizes: dict[int, int] = {}
    for value in node.inputs:
        for place, dim in enumerate(reversed(_shape(value) or ())):
            if isinstance(dim, int) and dim != 1 and sizes.setdefault(place, dim) != dim:
                yield f"{_shapes(node)} cannot be broadcast together"


def _matmul(node: Node) -> Iterator[str]:
    a, b = (_shape(value) for value in node.inputs[:2])
    if () in (a, b):
        yield f"{_shapes(node)} are not both matrices or vectors"
    elif a and b and _differ(a[-1], b[max(len(b) - 2, 0)]):
        yield f"{_shapes(node)} cannot be multiplied"


def _gemm(node: Node) -> Iterator[str]:
    a, b = (_shape(value) for value in node.inputs[:2])
    if a is None or b is None:
        return
    if len(a) != 2 or len(b) != 2:
        yield f"{_shapes(node)} are no matrices"
    else:
        columns = a[0 if node.attributes["transA"] else 1]
        rows = b[1 if node.attributes["transB"] else 0]
        if _differ(columns, rows):
            yield f"{_shapes(node)} cannot be multiplied"


def _convolution(node: Node) -> Iterator[str]:
    x, w = (_shape(value) for value in node.inputs[:2])
    if x is None or w is None:
        return
    if len(x) != len(w):
        yield f"{_shapes(node)} differ in rank"
    elif node.op == "Conv" and isinstance(x[1], int) and isinstance(w[1], int):
        group = node.attributes["group"]
        if x[1] != w[1] * group:
            yield f"{_shapes(node)} differ in channels"


def _reshape(node: Node) -> Iterator[str]:
    shape, target = _shape(node.inputs[0]), integers(node.inputs[1])
    if shape is None or not is_static(shape) or target is None:
        return
    copies = not node.attributes["allowzero"]
    if copies and any(not size and place >= len(shape) for place, size in enumerate(target)):
        yield f"{format_shape(shape)} has no dimension to copy for each 0 of {list(target)}"
        return
    sizes = [shape[i] if copies and not size else size for i, size in enumerate(target)]
    given, wanted = size_of(shape), size_of([size for size in sizes if size >= 0])
    fits = (given % wanted == 0 if wanted else not given) if -1 in sizes else given == wanted
    if not fits:
        yield f"{format_shape(shape)} cannot take the shape {list(target)}"


def _transpose(node: Node) -> Iterator[str]:
    shape, order = _shape(node.inputs[0]), integers(node.input(1))
    if shape is not None and order is not None and len(order) != len(shape):
        yield f"{format_shape(shape)} has no {len(order)} axes to exchange"


def _concat(node: Node) -> Iterator[str]:
    shapes = [shape for value in node.inputs if (shape := _shape(value)) is not None]
    for shape in shapes[1:]:
        if len(shape) != len(shapes[0]):
            yield f"{_shapes(node)} differ in rank"
            return
        axis = node.attributes["axis"] % max(len(shape), 1)
        for place, (one, other) in enumerate(zip(shapes[0], shape, strict=True)):
            if place != axis and _differ(one, other):
                yield f"{_shapes(node)} differ along axis {place}"


def _squeeze(node: Node) -> Iterator[str]:
    shape, axes = _shape(node.inputs[0]), integers(node.input(1))
    if shape is None or axes is None or node.attributes["allow_axis_skip"]:
        return
    for axis in axes:
        if not -len(shape) <= axis < len(shape):
            yield f"{format_shape(shape)} has no axis {axis}"
        elif _differ(shape[axis], 1):
            yield f"axis {axis} of {format_shape(shape)} is not 1"


def _recurrent(node: Node) -> Iterator[str]:
    x, w = (_shape(value) for value in node.inputs[:2])
    if x is None or w is None:
        return
    if len(x) != 3 or len(w) != 3:
        yield f"{_shapes(node)} are not of rank 3"
    elif _differ(x[2], w[2]):
        yield f"{_shapes(node)} differ in input size"


def _differ(one: Dim, other: Dim) -> bool:
    """Whether two dimensions are known not to be equal."""
    return isinstance(one, int) and isinstance(other, int) and one != other


def _shape(value: Value | None) -> Shape:
    return None if value is None else value.shape


def _shapes(node: Node) -> str:
    return " and ".join(format_shape(v.shape) for v in node.inputs if v is not None)


_CHECKS: dict[str, Callable[[Node], Iterator[str]]] = {
    **dict.fromkeys(
        (
            "Add", "And", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater",
            "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "Or",
            "Pow", "Sub", "Sum", "Where", "Xor",
        ),
        _elementwise,
    ),
    **dict.fromkeys(("LSTM", "GRU", "RNN"), _recurrent),
    **dict.fromkeys(("Conv", "ConvTranspose"), _convolution),
    "Concat": _concat,
    "Gemm": _gemm,
    "MatMul": _matmul,
    "Reshape": _reshape,
    "Squeeze": _squeeze,
    "Transpose": _transpose,
}  # fmt: skip
