"""The cost of a model: multiplications, weights and activations, of each branch and body.

The cost of an If is the cost of its larger branch. The body of a Loop counts as often as it surely
runs, or once if that number is open. A dimension without a size counts as 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod

from bridge.neutral.graph import Graph, Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import TensorType


@dataclass(frozen=True)
class Cost:
    """Multiplications that products, convolutions and recurrent layers make, the bytes of
    constants, and the bytes of all values that nodes give."""

    multiplications: int = 0
    weights: int = 0
    activations: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.multiplications + other.multiplications,
            self.weights + other.weights,
            self.activations + other.activations,
        )


@dataclass(frozen=True)
class CostPart:
    """A graph: its path (`where`), its depth, its cost, and whether it is the larger branch."""

    where: str
    depth: int
    cost: Cost
    larger: bool | None = None


def costs(graph: Graph) -> list[CostPart]:
    """The whole, then each branch and body, outer ones first."""
    parts: list[CostPart] = []
    _graph(graph, "graph", 0, parts)
    return parts


def _graph(graph: Graph, where: str, depth: int, parts: list[CostPart]) -> Cost:
    place = len(parts)
    parts.append(CostPart(where, depth, Cost()))
    cost, seen = Cost(), set[int]()
    for node in graph.nodes:
        cost += _node(node, seen) if not node.bodies else _nested(node, depth, parts)
    parts[place] = replace(parts[place], cost=cost)
    return cost


def _nested(node: Node, depth: int, parts: list[CostPart]) -> Cost:
    name = f"{node.op} {node.name or next((v.name for v in node.outputs if v.name), '')}".strip()
    places, inside = [], []
    for role, body in node.roles():
        places.append(len(parts))
        inside.append(_graph(body.graph, f"{name} / {role}", depth + 1, parts))
    weights = sum(cost.weights for cost in inside)
    if node.op == "If":
        order = sorted(range(len(inside)), key=lambda i: _size(inside[i]))
        for index, place in enumerate(places):
            parts[place] = replace(parts[place], larger=index == order[-1])
        # Weights of both branches are there, whichever runs.
        return replace(inside[order[-1]], weights=weights)
    runs = known_of(node.input(0)).ints or (1,)
    times = max(runs[0], 0) if len(runs) == 1 else 1
    total = sum(inside, Cost())
    return Cost(total.multiplications * times, weights, total.activations * times)


def _size(cost: Cost) -> tuple[int, int, int]:
    return cost.multiplications, cost.activations, cost.weights


def _node(node: Node, seen: set[int]) -> Cost:
    if node.op == "Constant":
        tensor = node.attributes["value"]
        fresh = id(tensor) not in seen
        seen.add(id(tensor))
        return Cost(weights=tensor.nbytes if fresh else 0)
    shapes = [_dims(value) for value in node.inputs]
    outs = [_dims(value) for value in node.outputs]
    activations = sum(
        prod(dims) * value.tensor.element.bits // 8
        for dims, value in zip(outs, node.outputs, strict=True)
        if dims is not None and value.tensor.element is not None
    )
    count, needed = _MULTIPLICATIONS.get(node.op, (None, ()))
    if count is None or outs[0] is None or any(shapes[place] is None for place in needed):
        return Cost(activations=activations)
    return Cost(count(node, shapes, outs[0]), 0, activations)


def _dims(value: Value | None) -> tuple[int, ...] | None:
    """The sizes of a tensor, 1 for open sizes; None if the rank is not known."""
    if value is None or not isinstance(value.type, TensorType) or value.type.shape is None:
        return None
    return tuple(dim if isinstance(dim, int) else 1 for dim in value.type.shape)


StaticShapes = list[tuple[int, ...] | None]
Counted = Callable[[Node, StaticShapes, tuple[int, ...]], int]


def _product(node: Node, shapes: StaticShapes, out: tuple[int, ...]) -> int:
    x = shapes[0] or ()
    return prod(out) * (x[-2 if node.attributes.get("transA") else -1] if len(x) > 1 else prod(x))


def _convolution(node: Node, shapes: StaticShapes, out: tuple[int, ...]) -> int:
    return prod(out) * prod((shapes[1] or ())[1:])


def _transposed(node: Node, shapes: StaticShapes, out: tuple[int, ...]) -> int:
    return prod(shapes[0] or ()) * prod((shapes[1] or ())[1:])


def _recurrent(node: Node, shapes: StaticShapes, out: tuple[int, ...]) -> int:
    weights = sum(prod(shape) for shape in shapes[1:3] if shape)
    return prod((shapes[0] or ())[:2]) * weights


_MULTIPLICATIONS: dict[str, tuple[Counted, tuple[int, ...]]] = {
    **dict.fromkeys(("MatMul", "Gemm", "MatMulInteger", "QLinearMatMul"), (_product, (0,))),
    **dict.fromkeys(("Conv", "ConvInteger", "DeformConv"), (_convolution, (1,))),
    "ConvTranspose": (_transposed, (0, 1)),
    **dict.fromkeys(("LSTM", "GRU", "RNN"), (_recurrent, (1,))),
    **dict.fromkeys(("Mul", "Div"), (lambda node, shapes, out: prod(out), ())),
}
"""How many multiplications a node of an operator makes, and the inputs whose shapes say so."""
