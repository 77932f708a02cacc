"""The variables of an IR, as the inputs and outputs that they are in ONNX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from bridge.neutral.graph import Model, Node, Value
from bridge.neutral.types import Element, TensorType
from bridge.passes.state.variable_types import noted_types
from bridge.passes.state.variables import known_start, pairs_of_variables
from bridge.records.state import FIRST_CALLS, STATEFUL, StatePair, ToldPlaces


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
