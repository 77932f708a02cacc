"""Differences for which nobody is at fault: a decision between values that are equal but for
rounding, as an ArgMax of two scores that are a rounding apart. A TopK of IR that is not stable
decides freely between equal values, too.

Three things show it, outside of Loops alone. The operands of the node that decides agree within
the tolerance. What each engine decides is what the standard's evaluator decides for the operands of
that engine. With the first engine's decisions in both models, all their outputs agree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from bridge.check.bisect import twins
from bridge.check.compare import Difference, compare, tolerance
from bridge.check.cut import cut
from bridge.check.engines import Reference, Session
from bridge.check.inputs import OWN_NAMES
from bridge.check.outputs import ATOL, RTOL, Comparison, Results
from bridge.check.stages import plain_onnx
from bridge.check.taken import take_branches, watched
from bridge.check.taps import Spot, expose, seen, value_at
from bridge.neutral.clone import clone_model
from bridge.neutral.expression import OPPOSITES
from bridge.neutral.graph import Model, Node, Value
from bridge.neutral.types import ANY, TensorType

DECIDERS = frozenset(
    {
        *OPPOSITES, "ArgMax", "ArgMin", "TopK", "Round", "Floor", "Ceil", "Sign", "Cast",
        "QuantizeLinear", "DynamicQuantizeLinear", "ir::TopK",
    }
)  # fmt: skip
"""Operators that decide between floats: a little more or less gives another result."""

_MOST = 100  # nodes that decide, in a model that is looked at
_ROUNDS = 8  # of decisions that follow from others
_NEAR = 1e-6  # what a quotient of 32-bit floats is off by, a few roundings included
_DEPTH = 4  # of Ifs in Ifs

Load = Callable[[Model, Model | None], tuple[Session, Session]]
"""Gives both models, changed alike, loaded."""

Found = tuple[list[str], list[tuple[str, Difference]]]
"""The nodes that decide otherwise, and how the outputs compare with the same decisions in both."""


def decided(
    mine: Model, its: Model | None, load: Load, feed: Results, comparison: Comparison
) -> Found | None:
    """The decisions for which alone two models differ with an input; None where that is not shown.
    `its` is None where the other model is converted from `mine`. Raises BridgeError where a changed
    model does not run."""
    found = _decided(mine, its, load, feed, comparison)
    flat = None if found else _flat(mine, its, load, feed, comparison)
    return found if flat is None else _decided(*flat, load, feed, comparison)


def _decided(
    mine: Model, its: Model | None, load: Load, feed: Results, comparison: Comparison
) -> Found | None:
    graph = mine.graph
    places = twins(graph, None if its is None else its.graph)
    spots = {value_at(graph, spot): spot for spot in places}
    left = [node for node in graph.nodes if _decides(node)]
    fixed: dict[Spot, np.ndarray] = {}
    for _ in range(_ROUNDS if 0 < len(left) <= _MOST else 0):
        taken = dict.fromkeys(v for node in left for v in (*node.inputs, *node.outputs))
        shown = [spots[value] for value in taken if value in spots]
        changed, other = _changed(mine, shown, fixed), None
        if its is not None:
            fixed_too = {places[spot]: array for spot, array in fixed.items()}
            other = _changed(its, [places[spot] for spot in shown], fixed_too)
        sessions = load(changed, other)
        given = {**feed, **{_name(number): x for number, x in enumerate(fixed.values())}}
        runs = [_run(session, comparison.renamed(given, session)) for session in sessions]
        differences = comparison.differences(runs[0], comparison.aligned(*sessions, runs[1]))
        ends = [(name, how) for name, how in differences if not name.startswith(OWN_NAMES)]
        if fixed and all(how.ok for _, how in ends):
            return sorted({repr(graph.nodes[place]) for place, _ in fixed}), ends
        inputs = {value: feed[value.name] for value in graph.inputs if value.name in feed}
        known = [
            inputs
            | {value_at(graph, s): run[seen(i)] for i, s in enumerate(shown) if seen(i) in run}
            for run in runs
        ]
        unlike = [node for node in left if _decide_unlike(node, known, comparison)]
        if not unlike or not all(_is_right(mine, node, run) for node in unlike for run in known):
            return None
        fixed |= {spots[value]: known[0][value] for node in unlike for value in node.outputs}
        left = [node for node in left if node not in unlike]
    return None


def _flat(
    mine: Model, its: Model | None, load: Load, feed: Results, comparison: Comparison
) -> tuple[Model, Model | None] | None:
    """Both models with the branches that both take in the place of their Ifs; None where there are
    none, or where they take others."""
    flat, flat_too = mine, its
    for _ in range(_DEPTH):
        if all(node.op != "If" for node in flat.graph.nodes):
            break
        sessions = load(watched(flat), None if flat_too is None else watched(flat_too))
        runs = [session.run(comparison.renamed(feed, session)) for session in sessions]
        shown = [{n: x for n, x in run.items() if n.startswith(OWN_NAMES)} for run in runs]
        if shown[0].keys() != shown[1].keys() or any(
            np.all(x) != np.all(shown[1][name]) for name, x in shown[0].items()
        ):
            return None
        flat = take_branches(flat, runs[0])
        flat_too = None if flat_too is None else take_branches(flat_too, runs[1])
    return None if flat is mine else (flat, flat_too)


def _decides(node: Node) -> bool:
    """Whether a node makes integers or truth values of floats, or whole numbers, or chooses."""
    if _chooses(node):
        return True
    if node.op == "Cast" and (node.outputs[0].element is None or node.outputs[0].element.is_float):
        return False
    return node.op in DECIDERS and any(
        value is not None and value.element is not None and value.element.is_float
        for value in node.inputs
    )


def _chooses(node: Node) -> bool:
    """Whether a node takes any of equal elements."""
    return node.op == "ir::TopK" and not node.attributes["stable"]


def _decide_unlike(
    node: Node, known: Sequence[Mapping[Value, Any]], comparison: Comparison
) -> bool:
    """Whether a node decides otherwise in one model than in the other, with operands that agree."""
    decisions = [value for value in node.outputs if _is_whole(value)] or node.outputs
    operands = _operands(node)
    if not all(value in values for values in known for value in (*operands, *node.outputs)):
        return False
    mine, its = known
    rtol, atol = min(comparison.rtol, RTOL), min(comparison.atol, ATOL)
    return not all(np.array_equal(mine[v], its[v]) for v in decisions) and all(
        compare(mine[v], its[v], tolerance(mine[v], rtol), atol).ok for v in operands
    )


def _is_whole(value: Value) -> bool:
    return value.element is not None and not value.element.is_float


def _operands(node: Node) -> list[Value]:
    """What a node decides between, without constants."""
    return list(dict.fromkeys(v for v in node.inputs if v is not None and v.constant is None))


def _is_right(model: Model, node: Node, values: Mapping[Value, Any]) -> bool:
    """Whether the standard's evaluator decides the same for these operands; of equal elements any
    is right where a node chooses."""
    first = node.inputs[0]
    if node.op == "DynamicQuantizeLinear" and first is not None and first in values:
        return _is_nearest(values[first], *(values[value] for value in node.outputs))
    operands = _operands(node)
    names = {value: f"bridge.{i}" for i, value in enumerate((*operands, *node.outputs))}
    graph = cut([node], operands, node.outputs, names)
    alone = plain_onnx(Model(graph, model.format, model.opset, dict(model.opsets)))
    results = Reference().load(alone).run({names[value]: values[value] for value in operands})
    decided = node.outputs
    if _chooses(node):
        decided, (x, places) = node.outputs[:1], (values[operands[0]], values[node.outputs[1]])
        axis = node.attributes["axis"]
        taken = np.take_along_axis(x, places.astype(np.int64), axis)
        each = np.sort(places, axis)
        if (np.diff(each, axis=axis) == 0).any() or not np.array_equal(taken, values[decided[0]]):
            return False
    return all(compare(values[v], results[names[v]], 0.0, 0.0).ok for v in decided)


def _is_nearest(x: np.ndarray, y: np.ndarray, scale: np.ndarray, zero: np.ndarray) -> bool:
    """Whether a DynamicQuantizeLinear spreads 255 levels over the numbers and 0, with each number
    at the nearest level; as near as 32-bit floats can tell."""
    wide = x.astype(np.float64)
    low, high = min(wide.min(initial=0.0), 0.0), max(wide.max(initial=0.0), 0.0)
    step = float(scale)
    if not np.isclose(step, (high - low) / 255, _NEAR, 0.0) or not step:
        return False
    levels = np.append(wide / step + float(zero), -low / step)
    chosen = np.append(y.astype(np.float64), float(zero))
    return bool((np.abs(np.clip(levels, 0, 255) - chosen) <= 0.5 + 256 * _NEAR).all())


def _changed(model: Model, shown: Sequence[Spot], fixed: Mapping[Spot, np.ndarray]) -> Model:
    """A copy of a model that shows values, and takes others as inputs instead of computing them."""
    copy = clone_model(model)
    values = [value_at(copy.graph, spot) for spot in fixed]
    expose(copy, (), shown)
    for number, (value, array) in enumerate(zip(values, fixed.values(), strict=True)):
        open_type = TensorType(value.element, (ANY,) * array.ndim)
        entry = Value(open_type if value.shape is None else value.type, [_name(number)])
        copy.graph.inputs.append(entry)
        node = value.producer
        assert node is not None
        place = node.outputs.index(value)
        node.outputs[place] = Value(value.type)
        node.outputs[place].producer = node
        copy.graph.prepend([Node("Identity", [entry], [value])])
    return copy


def _name(number: int) -> str:
    return f"{OWN_NAMES}decided.{number}"


def _run(session: Session, feed: Results) -> Results:
    # Twice: what is wrong in a first run only is told elsewhere.
    session.run(feed)
    return session.run(feed)
