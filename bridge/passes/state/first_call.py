"""Merged decoders: an input says whether there are states, and an If on it holds a decoder for
either answer (optimum's `use_cache_branch`).

In a stateful model a state that has nothing in it at first says the same, so the input goes. What
the first call alone computes, the keys and values of cross-attention, stays what it is: the branch
of later calls gives an empty tensor in its place, which callers of the ONNX model throw away.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Body, Graph, Node, Value
from bridge.neutral.ports import Invariant, Yield
from bridge.neutral.types import BOOL
from bridge.passes.state.records import FirstCall


def decide_by_state(
    graph: Graph, pairs: Mapping[Value, Value], empty: Mapping[Value, int], b: Builder
) -> list[FirstCall]:
    """Takes away inputs that say whether there are states, in place.

    `pairs` are states before and after a call, `empty` those that have nothing in them at first,
    with the axis of size 0.
    """
    found = []
    for flag in [value for value in graph.inputs if value.element is BOOL]:
        ifs = [node for node in graph.nodes if flag in node.inputs]
        sides = {_later(node, flag, pairs) for node in ifs}
        if len(sides) != 1 or None in sides or flag in graph.outputs:
            continue
        (side,) = sides
        assert side is not None
        read = [value for node in ifs for value in node.captures(node.bodies[side]).values()]
        state = next((value for value in read if value in empty), None)
        if state is None:
            continue
        says = b.op(("Greater", "Equal")[side], b.op("Size", state), b.constant(0))
        kept: dict[str, list[int]] = {}
        for node in ifs:
            node.inputs[0] = says
            kept |= _keep_states(node, node.bodies[side], pairs)
        graph.inputs.remove(flag)
        found.append(FirstCall(flag.name, side == 0, state.name, empty[state], kept))
    return found


def _later(node: Node, flag: Value, states: Collection[Value]) -> int | None:
    """Which branch of an If on the flag alone reads states; None for another node."""
    if node.op != "If" or flag in node.inputs[1:]:
        return None
    reads = [not set(states).isdisjoint(node.captures(body).values()) for body in node.bodies]
    return reads.index(True) if sum(reads) == 1 else None


def _keep_states(node: Node, body: Body, pairs: Mapping[Value, Value]) -> dict[str, list[int]]:
    """Makes a branch give the state itself where it gives a constant of no elements as the next.
    The answer is the shape of each such constant, by the name of the state."""
    befores = {after: before for before, after in pairs.items()}
    kept = {}
    for index, (value, port) in enumerate(body.exits()):
        assert isinstance(port, Yield) and port.output is not None
        constant = value.behind("Identity").constant
        before = befores.get(node.outputs[port.output])
        if before is not None and constant is not None and 0 in constant.shape:
            body.graph.outputs[index] = _captured(node, body, before)
            kept[before.name] = list(constant.shape)
    return kept


def _captured(node: Node, body: Body, outer: Value) -> Value:
    """What a value outside is in a branch."""
    for value, other in node.captures(body).items():
        if other is outer:
            return value
    if outer not in node.inputs:
        node.inputs.append(outer)
    inside = Value(outer.type, list(outer.names))
    body.add_entry(inside, Invariant(node.inputs.index(outer)))
    return inside
