"""Which elements of its results a model determines.

An engine may leave memory as it was: onnxruntime's GroupQueryAttention does so behind the valid
length of a cache. Other results are drawn, or depend on the order of threads. So the original, and
nothing else, runs again: in sessions of their own, with memory that holds other bytes before each.
Elements in which these runs differ by more than the tolerance are not determined, and are compared
with nothing. An engine that allocates memory once has it filled where it is opened.

The results of a TopK that need not sort are sets: all are sorted before they are compared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bridge.check.compare import Results, Tolerances, unlike
from bridge.check.engines import EngineError
from bridge.check.engines.adapters import named_like
from bridge.check.engines.sessions import memory_filled
from bridge.check.suite import Suite
from bridge.errors import BridgeError
from bridge.neutral.graph import Graph, Node, Value, names_of_outputs
from bridge.neutral.inference.known import known_of
from bridge.vocabulary import has_trait

Masks = Mapping[str, np.ndarray]
"""For each output of which a part is not determined, which elements; of a list, True alone."""

_BYTES = (0x3F, 0xC0)
_DRAWN = 4  # runs of a model that draws numbers; a random bit may be the same in a few

_DRAWING = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform"}
    | {"RandomUniformLike", "ir::RandomUniform", "ir::Multinomial", "Dropout"}
)


def draws(suite: Suite) -> bool:
    """Whether the original draws random numbers."""
    return any(n.op in _DRAWING for n in suite.model(suite.original.opened).graph.walk())


def undetermined(
    suite: Suite, feeds: Sequence[Results], tolerances: Tolerances
) -> list[dict[str, np.ndarray]]:
    """For each of these inputs, the elements of the original's outputs that are not determined. An
    output that is drawn is so as a whole."""
    if draws(suite):
        runs = [suite.original.session.run_each(feeds) for _ in range(_DRAWN)]
        exact = Tolerances(0.0, 0.0, decided=frozenset({"*"}))
        found = [_masks(some, exact) for some in zip(*runs, strict=True)]
        return [{n: np.ones_like(mask) for n, mask in one.items()} for one in found]
    runs = []
    for byte in _BYTES:
        try:
            with memory_filled(byte):
                session = replace(suite.sessions, filled=True).open(suite.original.opened)
                runs.append(named_like(suite.original.session, session).run_each(feeds))
        except BridgeError:
            return [{} for _ in feeds]
    return [_masks(some, tolerances) for some in zip(*runs, strict=True)]


def _masks(runs: Sequence[Results | EngineError], tolerances: Tolerances) -> dict[str, np.ndarray]:
    """The elements in which runs with one input differ."""
    first, *others = [one for one in runs if not isinstance(one, EngineError)] or [{}]
    masks: dict[str, np.ndarray] = {}
    for name, value in first.items():
        far = [unlike(value, one[name], *tolerances.of(name, value)) for one in others]
        if any(one.any() for one in far):
            is_alike = len({one.shape for one in far}) == 1
            masks[name] = np.asarray(np.any(far, axis=0) if is_alike else True)
    return masks


def free_orders(graph: Graph) -> dict[str, int]:
    """The outputs whose order along an axis is not determined, with that axis: those of a TopK that
    need not sort, what is computed of them element by element, and what they gather."""
    found: dict[Value, int] = {}
    for node in graph.nodes:
        first, axis = node.input(0), None
        if node.op in ("TopK", "ir::TopK"):
            unsorted = node.attributes.get("sort", node.attributes.get("sorted")) in (False, "none")
            axis = _from_front(node.attributes["axis"], first) if unsorted else None
        elif node.op == "Gather" and node.input(1) in found:
            places = known_of(node.input(2)).ints
            front = _from_front(places[0], first) if places else None
            is_plain = front is not None and not node.attributes.get("batch_dims")
            axis = found[node.operand(1)] + (front or 0) if is_plain else None
        elif _is_by_element(node) and not found.keys().isdisjoint(node.inputs):
            axis = next(found[value] for value in node.inputs if value in found)
        if axis is not None:
            found |= dict.fromkeys(node.outputs, axis)
    outputs = zip(names_of_outputs(graph), graph.outputs, strict=True)
    return {name: found[value] for name, value in outputs if value in found}


def _from_front(axis: int, value: Value | None) -> int | None:
    rank = None if value is None else value.rank
    return None if rank is None else axis % max(rank, 1)


def _is_by_element(node: Node) -> bool:
    """Whether an output has, for each element of one input, what is computed of it alone."""
    others = (value.constant for value in node.inputs[1:] if value is not None)
    alone = all(tensor is not None and tensor.size == 1 for tensor in others)
    return alone and (has_trait(node.op, "by_element") or has_trait(node.op, "broadcasts"))


def settled(results: Results, masks: Masks, orders: Mapping[str, int]) -> Results:
    """The results with 0 for all elements that are not determined, and in one order where any is
    right."""
    return {n: _settled(value, masks.get(n), orders.get(n)) for n, value in results.items()}


def _settled(value: Any, mask: np.ndarray | None, axis: int | None) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    if mask is not None and value.shape == mask.shape:
        value = np.where(mask, np.zeros_like(value), value)
    return value if axis is None or axis >= value.ndim else np.sort(value, axis=axis)
