"""State between calls: IR's variables (ReadValue, Assign) are inputs and outputs in ONNX.

A variable `v` becomes an input and an output. The input `v` is its value before the call, the
output `v.next` its value after the call. The caller feeds the output of one call to the next. If
the model already has an input `v`, the new input is `v.before`. OpenVINO makes a variable's id of
the two names of a pair, one after the other. Such a variable becomes that pair again.

The start of a variable is the input's default, so that the first call need not feed the input. If
the start is computed from other inputs, an empty tensor is the default and stands for it. The
model's metadata records the variables. The conversion back to IR restores them.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from itertools import chain, count

import numpy as np

from bridge.errors import Unsupported, UnsupportedError
from bridge.neutral.arrays import spend
from bridge.neutral.builder import Builder
from bridge.neutral.graph import Graph, Model, Node, Value, operand_of, producer_of
from bridge.neutral.inference.known import known_of
from bridge.neutral.ports import Invariant
from bridge.neutral.tensor import Tensor
from bridge.neutral.terms import Found, op, var
from bridge.neutral.types import TensorType, is_static, low
from bridge.operators import Refused
from bridge.passes.context import Context
from bridge.passes.fuse import fuse, fuses
from bridge.passes.state.exchange import (
    assign_variable,
    empty,
    or_start,
    read_variable,
    take_variables,
    that_may_be_empty,
    variable_attributes,
)
from bridge.passes.state.variable_types import note_types, restore_types
from bridge.passes.uses import Uses
from bridge.records.state import STATE, StatePair


def lower_state(model: Model, context: Context) -> None:
    """Replaces the variables of a model by inputs and outputs, in place.

    Raises UnsupportedError with the nodes that prevent this.
    """
    graph = model.graph
    refused = [
        _finding(graph, n, "a variable inside the body of an If or Loop has no counterpart in ONNX")
        for outer in graph.nodes
        for body in outer.bodies
        for n in body.graph.walk()
        if n.op in ("ReadValue", "Assign")
    ]
    if refused:
        raise UnsupportedError(str(context.target), refused)
    variables = {
        n.attributes["variable_id"] for n in graph.nodes if n.op in ("ReadValue", "Assign")
    }
    if not variables:
        return
    restore_types(model)

    given = len(graph.inputs)
    taken = _names(graph)
    pairs = _pairs(variables, taken)

    def state_of(b: Builder, node: Node) -> Value:
        try:
            return _state(model, node, pairs[node.attributes["variable_id"]].input, b)
        except Refused as why:
            refused.append(_finding(graph, node, str(why)))
            return Value(node.outputs[0].type)

    assigned = take_variables(graph, variables, state_of, context.target)
    if refused:
        raise UnsupportedError(str(context.target), refused)
    named = sorted((pairs[name] for name in assigned), key=_place)
    graph.output_names = graph.output_names or [""] * len(graph.outputs)
    graph.outputs += [assigned[pair.variable] for pair in named]
    graph.output_names += [pair.output for pair in named]
    places = {pair.input: _place(pair) for pair in named}
    graph.inputs[given:] = sorted(
        graph.inputs[given:], key=lambda value: places.get(value.name, ())
    )
    STATE.write(model.metadata, named)


def _names(graph: Graph) -> set[str]:
    """The names of all inputs and outputs."""
    return {name for value in graph.inputs for name in value.names}.union(graph.output_names or ())


def pairs_of_variables(model: Model) -> list[StatePair]:
    """The inputs and outputs that `lower_state` makes of variables, in their order."""
    nodes = model.graph.nodes
    read, assigned = (
        {node.attributes["variable_id"] for node in nodes if node.op == op}
        for op in ("ReadValue", "Assign")
    )
    taken = _names(model.graph)
    pairs = _pairs(read | assigned, taken)
    return sorted((pairs[name] for name in read & assigned), key=_place)


def known_start(node: Node) -> Tensor | None:
    """The start of the variable that a ReadValue reads, None if the start is computed."""
    return _known(node.input(0), node.outputs[0].tensor)


def _finding(graph: Graph, node: Node, why: str) -> Unsupported:
    return Unsupported(node.op, f"{graph.name or 'graph'} / {node!r}", why)


_BOTH = re.compile(
    r"(?P<input>(?P<head>.*?)past(?:_key_values?|_kv)?(?P<end>(?:[._\d].*)?))"
    r"(?P<output>(?P=head)present(?:_key_values?|_kv)?(?P=end))"
)
_LONGEST = 300
"""The longest matched id, in characters. The match is slow for an id that repeats itself."""


def _pairs(variables: Iterable[str], taken: Collection[str]) -> dict[str, StatePair]:
    """The names of variables in ONNX. No other input or output has them. OpenVINO makes an id of
    two names, `past_key_values.0.key` and `present.0.key`: then the pair has these names.
    Otherwise the names are made of the id."""
    pairs: dict[str, StatePair] = {}
    names = {*taken}
    for variable in sorted(variables):
        both = _BOTH.fullmatch(variable) if len(variable) <= _LONGEST else None
        if both is not None and names.isdisjoint(both.group("input", "output")):
            pair = StatePair(variable, both["input"], both["output"])
        else:
            before = variable if variable not in names else _free(f"{variable}.before", names)
            pair = StatePair(variable, before, _free(f"{variable}.next", names))
        pairs[variable] = pair
        names |= {pair.input, pair.output}
    return pairs


def _free(name: str, names: Collection[str]) -> str:
    """The name, with a number if the name is taken."""
    numbered = chain([name], (f"{name}.{number}" for number in count(2)))
    return next(one for one in numbered if one not in names)


def _place(pair: StatePair) -> tuple[tuple[int, str], ...]:
    """A key to sort variables. Variables that were pairs are sorted by name, with numbers compared
    as numbers. Other variables come first, and keep their order."""
    if pair.input == pair.variable:
        return ()
    parts = re.findall(r"\d+|\D+", pair.input)
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in parts)


def _state(model: Model, node: Node, name: str, b: Builder) -> Value:
    """The value of a variable before the call: a new input, or the variable's start if the input is
    empty."""
    kind = node.outputs[0].tensor
    known = _known(node.input(0), kind)
    if known is not None:
        shape = known.shape if kind.shape is None else kind.shape
        return _input(model, name, TensorType(known.element, shape), known)
    initial = node.operand(0)
    shape = that_may_be_empty(kind.shape if kind.shape is not None else initial.shape)
    state = Value(TensorType(kind.element or initial.known_element, shape), [name])
    model.graph.inputs.append(state)
    return or_start(b, model, state, initial)


def _input(model: Model, name: str, type: TensorType, default: Tensor) -> Value:
    """A new input of the model."""
    value = Value(type, [name])
    model.graph.inputs.append(value)
    model.defaults[value] = default
    return value


def _known(initial: Value | None, kind: TensorType) -> Tensor | None:
    """The start of a variable if it is constant, else None. Without an initial value the start is
    zeros."""
    if initial is None:
        assert kind.element is not None
        return empty(kind.element, tuple(low(dim) for dim in kind.shape or ()))
    if initial.constant is not None:
        return initial.constant
    if initial.element is not None and (before := operand_of(initial, "Cast")) is not None:
        known = _known(before, kind)
        return None if known is None else Tensor.of(known.array().astype(initial.element.dtype))
    producer = producer_of(initial, "Expand", "Broadcast")
    if producer is None:
        return None
    constant = producer.operand(0).constant
    shape = initial.shape
    dims = shape if shape and is_static(shape) else known_of(producer.inputs[1]).ints
    if constant is None or dims is None or (producer.op == "Broadcast" and constant.size != 1):
        return None
    array = constant.array() if producer.op == "Expand" else constant.array().reshape(())
    spend((*dims,), array.dtype, f'the start of the variable "{producer.name}"')
    return Tensor.of(np.broadcast_to(array, np.broadcast_shapes(array.shape, dims)).copy())


def restore_state(model: Model, context: Context) -> None:
    """Makes variables of IR, in place, of the inputs and outputs that the model's metadata
    records."""
    graph = model.graph
    inputs = {name: value for value in graph.inputs for name in value.names}
    front: list[Node] = []
    recorded = [
        (inputs[pair.input], pair)
        for pair in STATE.take(model.metadata) or ()
        if inputs.get(pair.input) in model.defaults and pair.output in graph.output_names
    ]
    states = {value: pair.variable for value, pair in recorded}
    note_types(model, ((pair.variable, value.element) for value, pair in recorded))
    started = _restore_starts(graph, states, context) if states else set()
    for value, pair in recorded:
        graph.inputs.remove(value)
        b, start = Builder(front, pair.variable), model.defaults.pop(value)
        if value not in started:
            read_variable(b, pair.variable, b.tensor(start), value)
        index = graph.output_names.index(pair.output)
        del graph.output_names[index]
        last = graph.outputs.pop(index)
        assign_variable(Builder(graph.nodes, pair.variable), pair.variable, last)
    graph.prepend(front)


BEFORE, START = var(), var()
SIZE = op("Size", BEFORE)
STARTED = op("If", op("Equal", SIZE, 0), START, BEFORE)
"""The nodes that `_state` writes for a state with a computed start."""


def _restore_starts(graph: Graph, states: Mapping[Value, str], context: Context) -> set[Value]:
    """Replaces the Ifs that `_state` wrote by ReadValues with the computed starts. The answer is
    the states that no node uses any more."""
    started: set[Value] = set()

    def read(b: Builder, match: Found, uses: Uses) -> Value | None:
        state, node = match[BEFORE], match.node(STARTED)
        if state not in states or len(node.inputs) != 3 or not _passes_on(node):
            return None
        if {*uses.users(state)} != {node, match.node(SIZE)}:
            return None
        started.add(state)
        return b.node(
            "ReadValue", [match[START]], 1, variable_attributes(states[state], state)
        ).outputs[0]

    fuse(graph, {"If": (fuses(STARTED)(read),)}, context)
    return started


def _passes_on(node: Node) -> bool:
    """Whether the two branches of an If give its second and its third input unchanged."""
    for index, body in enumerate(node.bodies, 1):
        (out,) = body.graph.outputs if len(body.graph.outputs) == 1 else (None,)
        inside = [value for value, port in body.entries() if port == Invariant(index)]
        if out is None or out.behind("Identity") not in inside:
            return False
    return True
