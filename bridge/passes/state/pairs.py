"""State between calls, if a user asks for it. Pairs of an input and an output of an ONNX model
become variables of IR (ReadValue, Assign). The caches of a language model are such pairs, and
OpenVINO's GenAI runs them as variables.

The metadata records the pairs. The conversion back to ONNX restores them.
"""

from collections.abc import Mapping, Sequence

from bridge.errors import UsageError
from bridge.neutral.builder import Builder
from bridge.neutral.graph import Graph, Model, Node, Value, names_of_outputs
from bridge.neutral.inference import infer_graph
from bridge.neutral.types import I32, TensorType, with_symbols
from bridge.passes.context import Context
from bridge.passes.state.exchange import (
    assign_variable,
    or_start,
    read_variable,
    take_variables,
    that_may_be_empty,
)
from bridge.passes.state.first_call import StartedStates, decide_by_state
from bridge.passes.state.followers import compute_places, follow_one_another, tell_places
from bridge.passes.state.names import may_follow, pairs_of, suggested
from bridge.passes.state.starts import sequences_of, sized, sizes_alike, start_of
from bridge.passes.state.variable_types import note_types, restore_types
from bridge.passes.state.variables import known_start
from bridge.records.state import (
    BEAMS,
    FIRST_CALLS,
    PLACES,
    STATEFUL,
    FirstCall,
    StatefulRecord,
    SymbolicPair,
)
from bridge.suggestions import unknown


def make_stateful(model: Model, context: Context) -> None:
    """Makes variables, in place, of the pairs that are asked for. If no pairs are given, their
    names tell them (see `pairs_of`).

    Raises UsageError if there is no such pair.
    """
    graph, beam_idx = model.graph, bool(context.options.get("beam_idx"))
    outputs = dict(zip(names_of_outputs(graph), graph.outputs, strict=True))
    inputs = {value.name: value for value in graph.inputs}
    pairs = _wanted(model, context, inputs, outputs)
    if not pairs:
        return
    if BEAMS in inputs and beam_idx:
        raise UsageError(f'the model has an input "{BEAMS}" already')
    made = [
        SymbolicPair(name + after, name, after, _symbols(inputs[name]), _symbols(outputs[after]))
        for name, after in pairs.items()
    ]
    values = {inputs[before]: outputs[after] for before, after in pairs.items()}
    left = [value for value in graph.inputs if value not in values]
    beams = Value(TensorType(I32, (sequences_of(left),)), [BEAMS]) if beam_idx else None
    first_calls = _become_variables(model, context, made, values, left, beams)
    followers = follow_one_another(graph, values)
    asked_for = beam_idx and PLACES not in inputs
    told, places = tell_places(followers, left) if asked_for else (None, None)
    left = [value for value in left if value in graph.inputs]
    graph.inputs = [*left, *(value for value in (places, beams) if value is not None)]
    _keep_outputs(graph, [name for name in outputs if name not in pairs.values()])
    record = StatefulRecord(tuple(made), tuple(inputs), tuple(outputs), beam_idx, told)
    STATEFUL.write(model.metadata, record)
    note_types(model, ((pair.variable, inputs[pair.input].element) for pair in made))
    if first_calls:
        FIRST_CALLS.write(model.metadata, first_calls)
    infer_graph(graph)
    notes = context.report.notes
    notes += [_MASKS] if followers else []
    notes += map(_what_of_flag, first_calls)
    variables = ", ".join(f"{before} = {after}" for before, after in pairs.items())
    notes.append(f"variables of the model: {variables}")


def _wanted(
    model: Model, context: Context, inputs: Mapping[str, Value], outputs: Mapping[str, Value]
) -> dict[str, str]:
    """The pairs that become variables; the others stay inputs that each call must give."""
    asked = context.options.get("stateful")
    pairs = pairs_of(inputs, outputs) if asked is True else dict(asked or {})
    if asked is True and not pairs and any(node.op == "ReadValue" for node in model.graph.nodes):
        return {}  # The states were variables before, and they are variables again.
    _require_pairs(pairs, inputs, outputs)
    idle = _never_read(model.graph, pairs, inputs, outputs)
    passed = _passed_on(pairs, inputs, outputs)
    context.report.notes += [f'nothing reads "{name}": it is no variable' for name in idle]
    context.report.notes += [
        f'"{name}" is no variable: 64 bits of it are passed on as they are, and a variable may be '
        "held in 32"
        for name in passed
    ]
    for name in (*idle, *passed):
        model.defaults.pop(inputs[name], None)
    return {name: after for name, after in pairs.items() if name not in (*idle, *passed)}


def _become_variables(
    model: Model,
    context: Context,
    made: Sequence[SymbolicPair],
    values: dict[Value, Value],
    left: Sequence[Value],
    beams: Value | None,
) -> list[FirstCall]:
    """Reads each state from a variable, which gets the next state; `left` are the other inputs.
    Returns what the first call alone does."""
    graph, target = model.graph, context.target
    states = StartedStates(graph, values, {}, [], [])
    front, starts = states.front, states.starts
    alike, equal = sizes_alike(graph), sizes_alike(graph, broadcast=False)
    for state in values:
        state.type = state.declared = sized(state, equal)
        b, tensor = Builder(front, state.name, target), model.defaults.pop(state, None)
        starts[state] = b.tensor(tensor) if tensor is not None else start_of(state, left, alike, b)
    first_calls = decide_by_state(states, target, context.options.get("one_decoder", False))
    # All beams of a text share the states that its first call sets once and for all.
    once = {name for call in first_calls for name in call.once}
    for pair, state in zip(made, values, strict=True):
        b, chosen = Builder(front, pair.input, target), None if pair.input in once else beams
        read_variable(b, pair.variable, starts[state], state, chosen)
    for pair, after in zip(made, values.values(), strict=True):
        assign_variable(Builder(graph.nodes, pair.output, target), pair.variable, after)
    graph.prepend([*front, *states.behind])
    return first_calls


_MASKS = (
    "each call's mask counts what the variables hold and the new tokens; shorter sequences of a "
    "batch are padded on the left"
)


def _what_of_flag(call: FirstCall) -> str:
    """A note on the removed input that said whether there are states."""
    gone = f'the input "{call.flag}" is gone: '
    if not call.state:
        return gone + "one decoder is left"
    return (
        f'{gone}whether "{call.state}" has elements says it. `one_decoder=True` keeps the decoder '
        "of later calls alone, which takes half the time"
    )


def _require_pairs(
    pairs: Mapping[str, str], inputs: Mapping[str, Value], outputs: Mapping[str, Value]
) -> None:
    if not pairs:
        raise UsageError(
            "no input and output of the model are a state by their names, as past_key_values.0.key "
            "and present.0.key are; say which, as in",
            *suggested(inputs, outputs),
        )
    for before, after in pairs.items():
        for kind, name, known in (("input", before, inputs), ("output", after, outputs)):
            if name not in known:
                raise UsageError(unknown(kind, name, known))
        if not may_follow(inputs[before], outputs[after]):
            raise UsageError(
                f"the output {outputs[after]!r} cannot be the next state of the input "
                f"{inputs[before]!r}: a state is a tensor of known rank and one element type"
            )
        constant = outputs[after].behind("Identity").constant
        if constant is not None and 0 in constant.shape:
            raise UsageError(
                f'the output "{after}" never has elements, so it is not the next state of '
                f'"{before}"; to keep one branch of a merged decoder, ask for `one_decoder` '
                "instead of fixing the input that chooses it"
            )
    if len(set(pairs.values())) < len(pairs):
        raise UsageError("an output is the next state of one input alone")
    if len(pairs) == len(inputs) or len(pairs) == len(outputs):
        raise UsageError("the model must have an input and an output beside its states")


def _never_read(
    graph: Graph,
    pairs: Mapping[str, str],
    inputs: Mapping[str, Value],
    outputs: Mapping[str, Value],
) -> list[str]:
    """The inputs that no node reads and no other output gives. OpenVINO does not load or run a
    model with a variable that is only assigned."""
    after_of = {inputs[before]: after for before, after in pairs.items()}
    nodes = (node for node in graph.nodes if node.op != "Identity")
    read = {value.behind("Identity") for node in nodes for value in node.inputs if value}
    given = ((name, value.behind("Identity")) for name, value in outputs.items())
    read.update(value for name, value in given if after_of.get(value) != name)
    return [name for name in pairs if inputs[name] not in read]


def _passed_on(
    pairs: Mapping[str, str], inputs: Mapping[str, Value], outputs: Mapping[str, Value]
) -> list[str]:
    """The inputs of 64 bits that an output gives unchanged, and whose next state is another input,
    unchanged. If nothing is computed, engines lose no bits."""
    given = {name: value.behind("Identity") for name, value in outputs.items()}
    return [
        name
        for name, after in pairs.items()
        if (element := inputs[name].element) is not None and element.bits == 64
        if given[after] in inputs.values() and given[after] is not inputs[name]
        if any(value is inputs[name] for value in given.values())
    ]


def restore_pairs(model: Model, context: Context | None = None) -> None:
    """Restores, in place, the inputs and outputs that the model's metadata records as pairs."""
    record = STATEFUL.take(model.metadata)
    once = {name for call in FIRST_CALLS.read(model.metadata) or () for name in call.once}
    if record is None:
        return
    restore_types(model)
    graph = model.graph
    pairs = {pair.variable: pair for pair in record.pairs}
    names = names_of_outputs(graph)
    beams = {value for value in graph.inputs if record.beams and BEAMS in value.names}
    places = [value for value in graph.inputs if record.told and PLACES in value.names]
    left = [value for value in graph.inputs if value not in {*beams, *places}]

    def state_of(b: Builder, node: Node) -> Value:
        pair = pairs[node.attributes["variable_id"]]
        type, start = node.outputs[0].tensor, node.inputs[0]
        starts = pair.input in once and start is not None
        if starts:
            type = TensorType(type.element, that_may_be_empty(type.shape))
        state = Value(with_symbols(type, pair.before), [pair.input])
        known = known_start(node)
        if known is not None and known.array().any():
            model.defaults[state] = known
        left.append(state)
        return state if start is None or not starts else or_start(b, model, state, start)

    for variable, after in take_variables(graph, pairs, state_of, beams=beams).items():
        after.type = with_symbols(after.type, pairs[variable].after)
        graph.outputs.append(after)
        names.append(pairs[variable].output)
    graph.output_names = names
    if record.told and places and not compute_places(graph, places[0], record.told, left):
        left += places
    graph.inputs = _in_order(left, record.inputs)
    _keep_outputs(graph, [*dict.fromkeys(n for n in record.outputs if n in names), *names])


def _symbols(value: Value) -> list[str | None]:
    return [dim if isinstance(dim, str) else None for dim in value.shape or ()]


def _in_order(values: Sequence[Value], names: Sequence[str]) -> list[Value]:
    """Values in the order of `names`. Values with other names come last."""
    places = {name: index for index, name in enumerate(names)}
    return sorted(values, key=lambda value: places.get(value.name, len(places)))


def _keep_outputs(graph: Graph, names: Sequence[str]) -> None:
    """Leaves the graph only the outputs of these names, in this order."""
    values = dict(zip(names_of_outputs(graph), graph.outputs, strict=True))
    order = list(dict.fromkeys(names))
    graph.output_names, graph.outputs = order, [values[name] for name in order]
