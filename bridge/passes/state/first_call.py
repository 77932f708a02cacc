"""Merged decoders: an input says whether there are states, and an If on it holds a decoder for
either answer (optimum's `use_cache_branch`).

In a stateful model a state that has nothing in it at first says the same, so the input goes. What
the first call alone computes, the keys and values of cross-attention, stays what it is: the branch
of later calls gives an empty tensor in its place, which callers of the ONNX model throw away. Such
a state need not go through the If: it starts with what the branch of the first call computes.

Where a user says so, the branch of later calls is the one decoder: with states that are still empty
it is to compute what the other does. Nothing here proves that; a check runs both.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from bridge.errors import UsageError
from bridge.neutral.builder import Builder
from bridge.neutral.clone import clone_node
from bridge.neutral.graph import Body, Graph, Node, Value, names_of_outputs
from bridge.neutral.inference.computed import is_random
from bridge.neutral.ports import Invariant, Yield
from bridge.neutral.rewrite import Substitution
from bridge.neutral.types import BOOL
from bridge.passes.state.records import FirstCall, Kept


def decide_by_state(
    graph: Graph,
    pairs: dict[Value, Value],
    starts: dict[Value, Value],
    front: Builder,
    b: Builder,
    one_decoder: bool,
) -> list[FirstCall]:
    """Takes away inputs that say whether there are states, in place.

    `pairs` are states before and after a call, `starts` what they start with, made by `front`. Both
    change for states that the first call sets once and for all. `b` stands behind the states. With
    `one_decoder` the branch of later calls stays alone; UsageError where that cannot be.
    """
    found = []
    outputs = dict(zip(graph.outputs, names_of_outputs(graph), strict=True))
    empty = {state: start.dims.index(0) for state, start in starts.items() if 0 in start.dims}
    for flag in [value for value in graph.inputs if value.element is BOOL]:
        ifs = [node for node in graph.nodes if flag in node.inputs]
        side = later_branch(graph, flag, pairs)
        if side is None:
            continue
        read = [value for node in ifs for value in node.captures(node.bodies[side]).values()]
        state = next((value for value in read if value in empty), None)
        if state is None:
            continue
        if one_decoder:
            name, says = "", b.constant(side == 0)
        else:
            name, says = state.name, b.op(("Greater", "Equal")[side], b.op("Size", state), 0)
        kept: dict[str, Kept] = {}
        once: list[Value] = []
        for node in ifs:
            node.inputs[0] = says
            kept |= _keep_states(node, node.bodies[side], pairs, outputs)
            waits = {one: after for one, after in pairs.items() if one is not state}
            once += _compute_once(graph, node, side, waits, starts, front)
            if one_decoder:
                _require_made_once(node, node.bodies[side], pairs, once)
        pairs |= {one: one for one in once}
        at = {one.name: axis for one, axis in (empty | {one: _open(one) for one in once}).items()}
        graph.inputs.remove(flag)
        found.append(FirstCall(flag.name, side == 0, name, at, [one.name for one in once], kept))
    if one_decoder and not found:
        raise UsageError(
            "one_decoder is for a merged decoder: an input says whether there are states, and one "
            "branch of an If on it reads them"
        )
    return found


def later_branch(graph: Graph, flag: Value, states: Collection[Value]) -> int | None:
    """Which branch of all Ifs on an input reads states, 0 for the first one; None where the input
    does not say that alone, or other nodes read these states: then a first call looks at them."""
    ifs = [node for node in graph.nodes if flag in node.inputs]
    sides = {_later(node, flag, states) for node in ifs}
    taken = {value for node in ifs for value in node.inputs if value in states}
    if any(not taken.isdisjoint(node.inputs) for node in graph.nodes if node not in ifs):
        return None
    return sides.pop() if len(sides) == 1 and flag not in graph.outputs else None


def _later(node: Node, flag: Value, states: Collection[Value]) -> int | None:
    """Which branch of an If on the flag alone reads states; None for another node."""
    if node.op != "If" or flag in node.inputs[1:]:
        return None
    reads = [not set(states).isdisjoint(node.captures(body).values()) for body in node.bodies]
    return reads.index(True) if sum(reads) == 1 else None


def _open(state: Value) -> int:
    """The axis along which a state has no elements, before the first call sets it."""
    return next((axis for axis, dim in enumerate(state.dims) if not isinstance(dim, int)), 0)


def _keep_states(
    node: Node, body: Body, pairs: Mapping[Value, Value], outputs: Mapping[Value, str]
) -> dict[str, Kept]:
    """Makes a branch give the state itself where it gives a constant of no elements as the next.
    The answer is each such state, by the name of the output."""
    befores = {after: before for before, after in pairs.items()}
    kept = {}
    for index, (value, port) in enumerate(body.exits()):
        assert isinstance(port, Yield) and port.output is not None
        constant = value.behind("Identity").constant
        before = befores.get(node.outputs[port.output])
        if before is not None and constant is not None and 0 in constant.shape:
            body.graph.outputs[index] = _captured(node, body, before)
            kept[outputs[node.outputs[port.output]]] = Kept(before.name, list(constant.shape))
    return kept


def _require_made_once(
    node: Node, later: Body, pairs: Mapping[Value, Value], once: Collection[Value]
) -> None:
    """Refuses one decoder where it keeps a state that the other branch makes of more than the
    model's inputs."""
    captures = node.captures(later)
    for state, after in pairs.items():
        if after not in node.outputs or state in once:
            continue
        if captures.get(later.given(node.outputs.index(after))) is state:
            raise UsageError(
                f'one_decoder: the first call alone gives "{state.name}", in a way that cannot be '
                "taken out of its branch; convert without it"
            )


def _compute_once(
    graph: Graph,
    node: Node,
    later: int,
    pairs: Mapping[Value, Value],
    starts: dict[Value, Value],
    b: Builder,
) -> list[Value]:
    """Takes states out of an If that the branch of later calls keeps, and the other computes of the
    model's inputs alone. The answer is these states, which start with what is computed."""
    first, found = node.bodies[1 - later], []
    used = {value for other in graph.nodes for value in other.inputs}
    for state, after in pairs.items():
        if after not in node.outputs or after in used or not state.dims:
            continue
        place = node.outputs.index(after)
        made, kept = (node.bodies[index].given(place) for index in (1 - later, later))
        captures = node.captures(first)
        given = [value for value in graph.inputs if value not in starts]
        cone, sizes = _cone(made, given, captures)
        if node.captures(node.bodies[later]).get(kept) is not state or not cone:
            continue
        taken = {captures.get(value) for one in cone for value in one.inputs if value}
        weights = [one for one in graph.nodes if one.op == "Constant" and one.outputs[0] in taken]
        graph.nodes = [one for one in graph.nodes if one not in weights]
        values = captures | {value: _size(b, value, *place) for value, place in sizes.items()}
        b.nodes += weights
        b.nodes += [clone_node(one, values) for one in first.graph.nodes if one in cone]
        # OpenVINO may know less of what is computed than the variable's shape says.
        known = [dim if isinstance(dim, int) else 0 for dim in state.dims]
        starts[state] = b.op("Reshape", values[made], known)
        substitution = Substitution()
        substitution.replace(made, _captured(node, first, state), names=False)
        for one in first.graph.nodes:
            substitution.apply(one)
        substitution.finish(first.graph)
        found.append(state)
    return found


def _cone(
    value: Value, inputs: Sequence[Value], captures: Mapping[Value, Value]
) -> tuple[set[Node], dict[Value, tuple[Value, int]]]:
    """The nodes of a branch that make a value of these inputs of the model and of constants alone;
    none where others take part. What is known to be a size of an input is not gone into: the second
    part of the answer is that input, and the axis."""
    places = {
        dim: (given, axis)
        for given in inputs
        for axis, dim in enumerate(given.shape or ())
        if isinstance(dim, str)
    }
    cone: set[Node] = set()
    sizes = {}
    waiting = [value]
    while waiting:
        value = waiting.pop()
        node, outer, known = value.producer, captures.get(value), value.known_value
        if outer is not None and (outer in inputs or outer.constant is not None):
            continue
        if known is not None and len(known) == 1 and known[0] in places:
            sizes[value] = places[str(known[0])]
            continue
        if node is None or node.bodies or is_random(node):
            return set(), {}
        if node not in cone:
            cone.add(node)
            waiting += [given for given in node.inputs if given is not None]
    return cone, sizes


def _size(b: Builder, value: Value, source: Value, axis: int) -> Value:
    """The size of an input along an axis, of the type of a value that is this size."""
    index = [axis] if value.rank else axis
    size = b.op("Gather", b.op("Shape", source), index, 0)
    return b.cast(size, value.element)


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
