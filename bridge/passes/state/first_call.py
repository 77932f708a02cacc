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
from dataclasses import dataclass

from bridge.errors import UsageError
from bridge.neutral.builder import Builder, Target
from bridge.neutral.clone import clone_node
from bridge.neutral.graph import Body, Graph, Node, Value, names_of_outputs
from bridge.neutral.inference.computed import is_random
from bridge.neutral.ports import Invariant
from bridge.neutral.rewrite import Substitution
from bridge.neutral.types import BOOL
from bridge.passes.state.names import PAST
from bridge.records.state import FirstCall, Kept


@dataclass(frozen=True, eq=False)
class StartedStates:
    """States of a graph that become variables. `after` maps each state before a call to the state
    after it, and `starts` to its first value, which nodes of `front` compute. Nodes of `behind`
    may read the variables."""

    graph: Graph
    after: dict[Value, Value]
    starts: dict[Value, Value]
    front: list[Node]
    behind: list[Node]


def decide_by_state(states: StartedStates, target: Target, one_decoder: bool) -> list[FirstCall]:
    """Removes inputs that say whether there are states, in place. The first call may set states
    once and for all: `states` then has the computed start, and each is its own next state. With
    `one_decoder` only the branch of later calls stays.

    Raises UsageError if there is no such input, but one decoder is wanted.
    """
    empty = {one: start.dims.index(0) for one, start in states.starts.items() if 0 in start.dims}
    flags = [value for value in states.graph.inputs if value.element is BOOL]
    calls = (_decided(states, flag, empty, target, one_decoder) for flag in flags)
    found = [call for call in calls if call is not None]
    if one_decoder and not found:
        raise UsageError(
            "`one_decoder` is for a merged decoder: an input says whether there are states, and "
            "one branch of an If on it reads them"
        )
    return found


def _decided(
    states: StartedStates,
    flag: Value,
    empty: Mapping[Value, int],
    target: Target,
    one_decoder: bool,
) -> FirstCall | None:
    """What the first call alone does, if a flag says whether there are states. The branch of later
    calls reads a cache, as its name says, that starts `empty` along an axis. An input that chooses
    whether to read another state may mean something else, as to begin anew."""
    graph, pairs = states.graph, states.after
    side = later_branch(graph, flag, pairs)
    if side is None:
        return None
    ifs = [node for node in graph.nodes if flag in node.inputs]
    read = [value for node in ifs for value in node.captures(node.bodies[side]).values()]
    state = next((value for value in read if value in empty and PAST.match(value.name)), None)
    if state is None:
        return None
    b = Builder(states.behind, target=target)
    if one_decoder:
        name, says = "", b.constant(side == 0)
    else:
        name, says = state.name, b.op(("Greater", "Equal")[side], b.op("Size", state), 0)
    outputs = dict(zip(graph.outputs, names_of_outputs(graph), strict=True))
    kept: dict[str, Kept] = {}
    once: list[Value] = []
    for node in ifs:
        node.inputs[0] = says
        kept |= _keep_states(node, node.bodies[side], pairs, outputs)
        once += _compute_once(states, node, side, state)
        if one_decoder:
            _require_computed_once(node, node.bodies[side], pairs, once)
    pairs |= {one: one for one in once}
    axes = {**empty, **{one: _open(one) for one in once}}
    at = {one.name: axis for one, axis in axes.items()}
    graph.inputs.remove(flag)
    return FirstCall(flag.name, side == 0, name, at, [one.name for one in once], kept)


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


def _compute_once(states: StartedStates, node: Node, later: int, asked: Value) -> list[Value]:
    """Takes states out of an If, other than the one that decides it. The branch of later calls
    keeps such a state, and the other branch computes it from the model's inputs alone. The answer
    is these states. Each starts with the computed value."""
    graph, starts, b = states.graph, states.starts, Builder(states.front)
    first, set_once = node.bodies[1 - later], []
    used = {value for other in graph.nodes for value in other.inputs}
    for state, after in states.after.items():
        if state is asked or after not in node.outputs or after in used or not state.dims:
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
        set_once.append(state)
    return set_once


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
