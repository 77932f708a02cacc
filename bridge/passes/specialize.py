"""Specialization: inputs become constants, and nodes fold that follow from them and fixed shapes.

Conditions, branches, shapes and weights that only other inputs needed are folded away, for all
formats. The model's record has the fixed values; the report tells which Ifs were removed, and why.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from bridge.errors import UsageError
from bridge.neutral.arrays import full
from bridge.neutral.builder import constant_node
from bridge.neutral.graph import Graph, Model, Value, size_of_constants
from bridge.neutral.inference import infer_graph
from bridge.neutral.tensor import GivenTensor, Tensor
from bridge.neutral.types import (
    STRING,
    Element,
    TensorType,
    format_shape,
    innermost,
    is_static,
)
from bridge.passes.context import Context
from bridge.passes.dead import remove_dead_nodes
from bridge.passes.fold import fold_graph
from bridge.passes.if_causes import Deciders, causes, remaining_ifs
from bridge.passes.inputs import inputs_by_name, may_be
from bridge.records.specialized import (
    SPECIALIZED,
    FixedValue,
    SpecializedRecord,
    recorded_shape,
)


def fix_values(model: Model, values: Mapping[str, Any]) -> None:
    """Makes inputs constants, by name, and infers the model anew. UsageError for a wrong value of
    an input."""
    if not isinstance(values, Mapping):
        raise UsageError(f'`values` maps names to values, {{"sr": 16000}}; it is {values!r}')
    if not values:
        return
    by_name = inputs_by_name(model)
    fixed: dict[Value, Tensor] = {}
    for name, given in values.items():
        value = by_name(name)
        if value in fixed:
            raise UsageError(f'the input "{name}" is given two values')
        fixed[value] = tensor_for(value, name, given)
    record = SPECIALIZED.read(model.metadata) or SpecializedRecord()
    graph = model.graph
    for value, tensor in fixed.items():
        model.defaults.pop(value, None)
        graph.prepend([constant_node(value, tensor)])
        record.values[value.name] = FixedValue.of(tensor)
    graph.inputs = [value for value in graph.inputs if value not in fixed]
    SPECIALIZED.write(model.metadata, record)
    infer_graph(graph)


def record_shapes(model: Model, names: Mapping[str, Any]) -> None:
    """Writes down the shapes that inputs of these names were given."""
    if not names:
        return
    record = SPECIALIZED.read(model.metadata) or SpecializedRecord()
    for value in model.graph.inputs:
        shape = innermost(value.type).shape
        if shape is not None and not set(value.names).isdisjoint(names):
            record.shapes[value.name] = recorded_shape(shape)
    SPECIALIZED.write(model.metadata, record)


def tensor_for(value: Value, name: str, given: Any) -> Tensor:
    """The constant that a number, a list or an array makes of an input. A single number fills an
    input of known shape."""
    type = value.type
    if not isinstance(type, TensorType) or type.element is None:
        raise UsageError(f'the input "{name}" is {type}: only a tensor can be given a value')
    array = _array(type.element, name, given)
    if array.ndim == 0 and type.rank and is_static(type.shape):
        array = full(type.shape, array, array.dtype, f'the input "{name}"')
    if type.shape is not None and not may_be(array.shape, type.shape):
        hint = "; a number alone needs `input_shapes`" if array.ndim == 0 else ""
        raise UsageError(
            f'the input "{name}" is {type}, not a value of shape {format_shape(array.shape)}{hint}'
        )
    return GivenTensor(type.element, array.shape, array)


def _array(element: Element, name: str, given: Any) -> np.ndarray:
    """The value in the element type; UsageError if that does not hold it."""
    try:
        array = np.asarray(given)
        if element is STRING:
            array = array.astype(object)
            same = all(isinstance(item, str) for item in array.flat)
        else:
            rounded = array.astype(element.dtype)
            # A real type rounds, as a model does with a value that is fed to it.
            rounds = element.kind in ("float", "complex") and array.dtype.kind in "biufc"
            same = rounds or bool(np.all(rounded.astype(array.dtype) == array))
            array = rounded
    except (TypeError, ValueError, OverflowError):
        same = False
    if not same:
        text = str(given)
        shown = text if len(text) <= 60 else f"{text[:57]}..."
        raise UsageError(f'the input "{name}" is of {element}, which does not hold {shown}')
    return array


def specialize(model: Model, context: Context) -> None:
    """Folds, in place, all nodes that follow from fixed values and shapes of inputs. Reports the
    removed Ifs."""
    graph, options = model.graph, context.options
    fixed = {
        value: value.name
        for node in graph.nodes
        if node.op == "Constant"
        for value in node.outputs
        if not set(value.names).isdisjoint(options.get("values") or ())
    }
    shaped = {v.name for v in graph.inputs if set(v.names) & set(options.get("input_shapes") or ())}
    deciders = Deciders(graph, fixed)
    weights = size_of_constants(graph)
    settle(graph)
    report = context.report
    why = causes(deciders, graph, set(fixed.values()), shaped)
    report.specialized += why
    report.details += why if len(why) > 1 else []
    left = size_of_constants(graph)
    if left < weights:
        report.specialized.append(f"constants of {weights - left:,} of {weights:,} bytes are gone")


def tell_what_is_left(model: Model, context: Context) -> bool:
    """Reports which Ifs stayed, and why. It runs when branches that fail are pruned."""
    report, left = context.report, remaining_ifs(model.graph)
    if not left and (report.specialized or report.pruned):  # else the model never had one
        left = ["no If is left"]
    if context.options.get("ifs", "keep") == "keep":
        report.specialized += left
    return False


def settle(graph: Graph) -> None:
    """Folds a graph, in place, until nothing more follows."""
    count = -1
    while count != (count := sum(1 for _ in graph.walk())):
        remove_dead_nodes(graph, trim=True)
        infer_graph(graph)
        fold_graph(graph)
    remove_dead_nodes(graph, trim=True)
