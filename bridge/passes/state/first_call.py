"""Merged decoders: an input says whether there are states, and an If on it holds a decoder for
either answer (optimum's `use_cache_branch`).

In a stateful model, a state that is empty before the first call gives the same answer. So the input
is removed. Only the first call computes the keys and values of cross-attention, and later calls
keep them. In ONNX, the branch of later calls gives an empty tensor in their place, and callers
throw that tensor away. Such a state need not go through the If. The state starts with the value
that the branch of the first call computes.

A user may ask for one decoder. Then the branch of later calls stays alone. It has to compute the
same as the other branch if the states are still empty. This module does not prove that; a check
runs both models.
"""

from collections.abc import Collection, Mapping, Sequence

from bridge.errors import UsageError
from bridge.neutral.builder import Builder
from bridge.neutral.clone import clone_node
from bridge.neutral.graph import Body, Graph, Node, Value, names_of_outputs
from bridge.neutral.inference.computed import is_random
from bridge.neutral.ports import Invariant
from bridge.neutral.rewrite import Substitution
from bridge.neutral.types import BOOL
from bridge.records.state import FirstCall, Kept


def decide_by_state(
    graph: Graph,
    pairs: dict[Value, Value],
    starts: dict[Value, Value],
    caches: Collection[Value],
    front: Builder,
    b: Builder,
    one_decoder: bool,
) -> list[FirstCall]:
    """Removes inputs that say whether there are states, in place.

    `pairs` maps each state before a call to the state after it. `starts` has the start of each
    state, made by `front`. Both change for states that the first call sets once and for all.
    `caches` are the states whose names say so. An input that chooses whether to read another state
    may mean something else, as to begin anew. `b` adds nodes behind the states. With `one_decoder`
    only the branch of later calls stays.
    UsageError if that is not possible.
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
        state = next((value for value in read if value in empty and value in caches), None)
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
                _require_computed_once(node, node.bodies[side], pairs, once)
        pairs |= {one: one for one in once}
        at = {one.name: axis for one, axis in (empty | {one: _open(one) for one in once}).items()}
        graph.inputs.remove(flag)
        found.append(FirstCall(flag.name, side == 0, name, at, [one.name for one in once], kept))
    if one_decoder and not found:
        raise UsageError(
            "`one_decoder` is for a merged decoder: an input says whether there are states, and "
            "one branch of an If on it reads them"
        )
    return found


def later_branch(graph: Graph, flag: Value, states: Collection[Value]) -> int | None:
    """The index of the branch that reads states in all Ifs on an input, 0 for the first branch.
    None if the input has another use, or if other nodes read these states. Then the first call
    reads them, too."""
    ifs = [node for node in graph.nodes if flag in node.inputs]
    sides = {_later(node, flag, states) for node in ifs}
    taken = {value for node in ifs for value in node.inputs if value in states}
    if any(not taken.isdisjoint(node.inputs) for node in graph.nodes if node not in ifs):
        return None
    return sides.pop() if len(sides) == 1 and flag not in graph.outputs else None


def _later(node: Node, flag: Value, states: Collection[Value]) -> int | None:
    """The index of the only branch that reads states in an If on the flag. None for another
    node."""
    if node.op != "If" or flag in node.inputs[1:]:
        return None
    reads = [not set(states).isdisjoint(node.captures(body).values()) for body in node.bodies]
    return reads.index(True) if sum(reads) == 1 else None


def _open(state: Value) -> int:
    """The axis whose size is 0 before the first call sets a state."""
    return next((axis for axis, dim in enumerate(state.dims) if not isinstance(dim, int)), 0)


def _keep_states(
    node: Node, body: Body, pairs: Mapping[Value, Value], outputs: Mapping[Value, str]
) -> dict[str, Kept]:
    """Makes a branch give the state itself if it gives an empty constant as the next state. The
    answer has each such state by the name of the output."""
    befores = {after: before for before, after in pairs.items()}
    kept = {}
    for index, (value, output) in enumerate(body.results()):
        constant = value.behind("Identity").constant
        before = befores.get(node.outputs[output])
        if before is not None and constant is not None and 0 in constant.shape:
            body.graph.outputs[index] = _captured(node, body, before)
            kept[outputs[node.outputs[output]]] = Kept(before.name, list(constant.shape))
    return kept


def _require_computed_once(
    node: Node, later: Body, pairs: Mapping[Value, Value], once: Collection[Value]
) -> None:
    """Refuses one decoder if it keeps a state that the other branch does not compute from the
    model's inputs alone."""
    captures = node.captures(later)
    for state, after in pairs.items():
        if after not in node.outputs or state in once:
            continue
        if captures.get(later.given(node.outputs.index(after))) is state:
            raise UsageError(
                f'`one_decoder`: the first call alone gives "{state.name}", in a way that cannot '
                "be taken out of its branch; convert without it"
            )


def _compute_once(
    graph: Graph,
    node: Node,
    later: int,
    pairs: Mapping[Value, Value],
    starts: dict[Value, Value],
    b: Builder,
) -> list[Value]:
    """Takes states out of an If. The branch of later calls keeps such a state, and the other branch
    computes it from the model's inputs alone. The answer is these states. Each starts with the
    computed value."""
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
        # The shape that OpenVINO infers for the computed value may be wider than the variable's.
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
    """The nodes of a branch that compute a value from these inputs of the model and constants
    alone. The set is empty if other inputs take part. The search stops at values that are the
    size of an input. The second part of the answer has the input and the axis of each of them."""
    places = {
        dim: (operand, axis)
        for operand in inputs
        for axis, dim in enumerate(operand.shape or ())
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
            waiting += node.operands
    return cone, sizes


def _size(b: Builder, value: Value, source: Value, axis: int) -> Value:
    """The size of `source` along an axis, in the type and rank of `value`."""
    index = [axis] if value.rank else axis
    size = b.op("Gather", b.op("Shape", source), index, 0)
    return b.cast(size, value.element)


def _captured(node: Node, body: Body, outer: Value) -> Value:
    """The value of a branch that stands for a value outside of the branch. Adds it if need be."""
    for value, other in node.captures(body).items():
        if other is outer:
            return value
    if outer not in node.inputs:
        node.inputs.append(outer)
    inside = Value(outer.type, list(outer.names))
    body.add_entry(inside, Invariant(node.inputs.index(outer)))
    return inside
