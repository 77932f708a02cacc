"""The variables of an IR, as the inputs and outputs that they are in ONNX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from bridge.neutral.graph import Model, Node, Value
from bridge.neutral.types import Element, TensorType
from bridge.passes.state.records import FIRST_CALLS, STATEFUL, StatePair, ToldPlaces
from bridge.passes.state.types import noted_types
from bridge.passes.state.variables import known_start, pairs_of_variables


@dataclass(frozen=True)
class Variables:
    """Variables by `pairs` of an input and an output, with the nodes that `read` them, by the
    input, and what these `hold` in ONNX. `begun` are the inputs that are what a variable starts
    with where they are empty; `beams` says whether `BEAMS` is an input that the ONNX model does not
    have. `PLACES` is another if it is `told`. They are `own` if the ONNX model was made of them,
    whose inputs have what they start with as a default."""

    pairs: Sequence[StatePair]
    read: Mapping[str, Node]
    hold: Mapping[str, Value]
    begun: Set[str]
    beams: bool
    own: bool
    told: ToldPlaces | None = None

    @classmethod
    def of(cls, model: Model) -> Variables | None:
        """Those of a model, None where it has none."""
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
    """The input that a variable is in ONNX."""
    held = node.outputs[0].tensor
    element = types.get(node.attributes["variable_id"], held.element)
    return Value(TensorType(element, held.shape), [name])


def dtype_of(value: Value) -> Any:
    """The numpy type of a value."""
    assert value.element is not None
    return value.element.dtype
