"""The variables of an IR, as the inputs and outputs that they are in ONNX, and sessions seen so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from bridge.check.engines.adapters import Adapter
from bridge.check.engines.protocol import (
    STATES,
    Feeds,
    RunResults,
    Session,
    UndefinedCallError,
    ValueInfo,
    feed_of,
)
from bridge.neutral.graph import Model, Node, Value
from bridge.neutral.types import Element, TensorType
from bridge.passes.state.variable_types import noted_types
from bridge.passes.state.variables import known_start, pairs_of_variables
from bridge.records.state import (
    BEAMS,
    FIRST_CALLS,
    PLACES,
    STATEFUL,
    FirstCall,
    StatePair,
    ToldPlaces,
)


@dataclass(frozen=True)
class Variables:
    """Variables, with their `pairs` of an input and an output. `read` has the node that reads each
    variable, and `hold` its input in ONNX, both by the input's name. An input in `begun` may be
    empty: then the variable's computed start takes its place. `beams` says whether the IR has the
    input `BEAMS` and the ONNX model does not, `told` says the same of `PLACES`. `own` says whether
    the ONNX model was made of the IR. Then the defaults of its inputs are the starts."""

    pairs: Sequence[StatePair]
    read: Mapping[str, Node]
    hold: Mapping[str, Value]
    begun: Set[str]
    beams: bool
    own: bool
    told: ToldPlaces | None = None

    @classmethod
    def of(cls, model: Model) -> Variables | None:
        """The variables of a model, None if it has no variables."""
        nodes: dict[str, Node] = {}
        for node in model.graph.nodes:
            if node.op == "ReadValue":
                nodes.setdefault(node.attributes["variable_id"], node)
        record = STATEFUL.read(model.metadata)
        pairs = pairs_of_variables(model) if record is None else record.pairs
        read = {pair.input: nodes[pair.variable] for pair in pairs if pair.variable in nodes}
        if not read:
            return None
        types = noted_types(model)
        hold = {name: _held(node, types, name) for name, node in read.items()}
        if record is None:
            begun = {name for name, node in read.items() if known_start(node) is None}
            return cls(pairs, read, hold, begun, False, True)
        once = {name for call in FIRST_CALLS.read(model.metadata) or () for name in call.once}
        return cls(record.pairs, read, hold, once, record.beams, False, record.told)


def _held(node: Node, types: Mapping[str, Element], name: str) -> Value:
    """The input of the ONNX model that stands for a variable."""
    held = node.outputs[0].tensor
    element = types.get(node.attributes["variable_id"], held.element)
    return Value(TensorType(element, held.shape), [name])


def dtype_of(value: Value) -> Any:
    """The numpy type of a value."""
    assert value.element is not None
    return value.element.dtype


def paired(session: Session, variables: Variables) -> Adapter:
    """Sets the variables before each run to the states in the feeds of the ONNX model. Gives their
    contents after the run as outputs. Sequences keep their order."""
    ports = {p.variable: _info(p.input, variables.hold[p.input]) for p in variables.pairs}
    read = {p.variable: variables.read[p.input].outputs[0] for p in variables.pairs}
    held = {p.variable: variables.hold[p.input] for p in variables.pairs}
    told = variables.told
    added = {BEAMS: variables.beams, PLACES: told is not None}
    own = [port for port in session.inputs if not added.get(port.name)]

    def before(feeds: Feeds) -> Feeds:
        # A state that is not fed, or has no elements, may start by itself.
        states = {
            variable: np.asarray(feed_of(port, feeds)).astype(dtype_of(read[variable]))
            for variable, port in ports.items()
            if port.name in feeds
            and (port.name not in variables.begun or np.size(feeds[port.name]))
        }
        feeds = {**feeds, STATES: states}
        if told is not None:
            cache = feeds.get(told.cache)
            past = 0 if cache is None else np.shape(cache)[2]
            batch, count = np.shape(feeds[told.words])[:2]
            feeds[PLACES] = np.tile(np.arange(past, past + count), (batch, 1))
        if variables.beams:
            open_ports = (port for port in own if port.shape and port.shape[0] is None)
            sizes = [len(feed_of(port, feeds)) for port in open_ports]
            feeds[BEAMS] = np.arange(sizes[0] if sizes else 1, dtype=np.int32)
        return feeds

    def after(_: Feeds, results: RunResults) -> RunResults:
        contents = results.pop(STATES)
        for pair in variables.pairs:
            value = contents[pair.variable].astype(dtype_of(held[pair.variable]), copy=False)
            # OpenVINO may show a scalar as [1].
            is_scalar = ports[pair.variable].shape == () and value.size == 1
            results[pair.output] = value.reshape(()) if is_scalar else value
        return results

    outputs = [*session.outputs, *(ValueInfo(pair.output) for pair in variables.pairs)]
    found = Adapter(session, [*own, *ports.values()], outputs, before, after)
    found.has_states = True
    return found


def _info(name: str, value: Value) -> ValueInfo:
    if value.shape is None:
        return ValueInfo(name)
    return ValueInfo(name, tuple(dim if isinstance(dim, int) else None for dim in value.shape))


def with_flags(session: Session, calls: Sequence[FirstCall]) -> Adapter:
    """Adds inputs that say whether there are states, to a model whose states say it."""

    def before(feeds: Feeds) -> Feeds:
        states: dict[str, Any] = dict(feeds)
        for call in calls:
            if call.flag in feeds:
                states |= _states_as_told(call, feeds)
        return states

    def after(feeds: Feeds, results: RunResults) -> RunResults:
        # If later calls gave an empty output for a kept state, it is empty here.
        for call in calls:
            if call.flag in feeds and _is_later(call, feeds):
                for name, kept in call.kept.items():
                    value = results[name]
                    if np.array_equal(value, feeds[kept.state], equal_nan=True):
                        results[name] = np.zeros(kept.shape, value.dtype)
        return results

    return Adapter(session, before=before, after=after)


def _states_as_told(call: FirstCall, feeds: Feeds) -> Feeds:
    """The states that are fed otherwise. In a first call they are empty: the original looks at
    none."""
    if not _is_later(call, feeds):
        return {
            name: np.delete(np.asarray(feeds[name]), np.s_[:], axis)
            for name, axis in call.empty.items()
        }
    for name in dict.fromkeys([*call.once, *([call.state] if call.state else [])]):
        if not np.size(feeds[name]):
            why = f'"{call.flag}" says that "{name}" is there, which is empty'
            raise UndefinedCallError(why)
    return {}


def _is_later(call: FirstCall, feeds: Feeds) -> bool:
    """Whether a call is not the first."""
    return bool(np.all(feeds[call.flag])) is call.later
