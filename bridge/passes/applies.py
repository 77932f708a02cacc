"""When passes apply: a declaration beside each pass, and the conditions that several share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from bridge.neutral.graph import Graph, Model
from bridge.neutral.types import STRING, ContainerType, TensorType
from bridge.passes.context import Context

RunPass = Callable[[Model, Context], bool | None]
"""A pass; it returns whether it changed the model, or None if it does not know."""

Condition = Callable[[Model, Context], bool]
"""Whether a pass applies to a model."""

_Run = TypeVar("_Run", bound=Callable[..., bool | None])

_conditions: dict[Callable[..., bool | None], Condition] = {}


def applies(condition: Condition) -> Callable[[_Run], _Run]:
    """Declares when the pass below applies, if it is not between the two formats."""

    def declared(run: _Run) -> _Run:
        _conditions[run] = condition
        return run

    return declared


def condition_of(run: RunPass, otherwise: Condition) -> Condition:
    """When a pass applies, as it declares."""
    return _conditions.get(run, otherwise)


@dataclass(frozen=True)
class Contents:
    """The operators of a graph and its bodies, and whether some value is a tensor of strings, or a
    sequence or an optional."""

    operators: frozenset[str]
    strings: bool
    containers: bool


def contents(graph: Graph) -> Contents:
    """What a graph and its bodies hold."""
    nodes = list(graph.walk())
    types = [
        value.type for values in (graph.inputs, *(n.outputs for n in nodes)) for value in values
    ]
    return Contents(
        frozenset([node.op for node in nodes]),
        any([isinstance(type, TensorType) and type.element is STRING for type in types]),
        any([isinstance(type, ContainerType) for type in types]),
    )


# Conditions on the conversion.


def always(model: Model, context: Context) -> bool:
    """In every conversion."""
    return True


def between_formats(model: Model, context: Context) -> bool:
    """If the model comes from the other format."""
    return model.format != context.target.format


def option(name: str) -> Condition:
    """If the user gave an option."""
    return lambda model, context: bool(context.options.get(name))


def selects(model: Model, context: Context) -> bool:
    """If Ifs become selections."""
    return context.options.get("ifs", "keep") != "keep"


def selects_in_onnx(model: Model, context: Context) -> bool:
    """If Ifs of ONNX become selections in ONNX."""
    return model.format == context.target.format == "onnx" and selects(model, context)


def rewrites(model: Model, context: Context) -> bool:
    """If the graph changes much: between the formats, and where Ifs of ONNX become selections."""
    return between_formats(model, context) or selects_in_onnx(model, context)


def specializes(model: Model, context: Context) -> bool:
    """If as many Ifs as possible are removed: inputs have fixed values or shapes, or Ifs become
    selections."""
    fixed = context.options.get("values") or context.options.get("input_shapes")
    return bool(fixed) or selects(model, context)


def concludes(model: Model, context: Context) -> bool:
    """If facts are concluded from sizes; not if a format is only copied."""
    return between_formats(model, context) or specializes(model, context)


# Conditions on the model, which need not import the pass.


def has_operator(*ops: str) -> Condition:
    """If a model from the other format has one of these operators."""

    def condition(model: Model, context: Context) -> bool:
        if not between_formats(model, context):
            return False
        return not context.ask(contents, model.graph).operators.isdisjoint(ops)

    return condition


def has_strings(model: Model, context: Context) -> bool:
    """If a model from the other format has a tensor of strings."""
    return between_formats(model, context) and context.ask(contents, model.graph).strings


def has_records(model: Model, context: Context) -> bool:
    """If a model from the other format has metadata, which may be Bridge's own."""
    return bool(model.metadata) and between_formats(model, context)


def has_compound_boundary(model: Model, context: Context) -> bool:
    """If an input or an output of a model from the other format is a sequence or an optional."""
    values = (*model.graph.inputs, *model.graph.outputs)
    compound = any(isinstance(value.type, ContainerType) for value in values)
    return compound and between_formats(model, context)
