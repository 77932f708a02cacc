"""When passes apply: a declaration beside each pass, and the conditions that several share."""

from collections.abc import Callable
from typing import TypeVar

from bridge.neutral.graph import Graph, Model
from bridge.neutral.types import STRING, ContainerType
from bridge.passes.context import Context

RunPass = Callable[[Model, Context], bool | None]
"""A pass; it returns whether it changed the model, or None if it does not know."""

PassCondition = Callable[[Model, Context], bool]
"""Whether a pass applies to a model."""

_Run = TypeVar("_Run", bound=Callable[..., bool | None])

_conditions: dict[Callable[..., bool | None], PassCondition] = {}


def applies(condition: PassCondition) -> Callable[[_Run], _Run]:
    """Declares when the pass below applies, if it is not between the two formats."""

    def declared(run: _Run) -> _Run:
        _conditions[run] = condition
        return run

    return declared


def condition_of(run: RunPass, otherwise: PassCondition) -> PassCondition:
    """When a pass applies, as it declares."""
    return _conditions.get(run, otherwise)


def both(*conditions: PassCondition) -> PassCondition:
    """If all conditions hold."""
    return lambda model, context: all(one(model, context) for one in conditions)


def either(*conditions: PassCondition) -> PassCondition:
    """If one of the conditions holds."""
    return lambda model, context: any(one(model, context) for one in conditions)


# Conditions on the conversion.


def always(model: Model, context: Context) -> bool:
    """In every conversion."""
    return True


def between_formats(model: Model, context: Context) -> bool:
    """If the model comes from the other format."""
    return model.format != context.target.format


def reads(format: str) -> PassCondition:
    """If the model comes from a file of a format."""
    return lambda model, context: model.format == format


def option(name: str) -> PassCondition:
    """If the user gave an option."""
    return lambda model, context: bool(context.options.get(name))


def without(name: str) -> PassCondition:
    """If the user did not give an option."""
    return lambda model, context: not context.options.get(name)


def selects(model: Model, context: Context) -> bool:
    """If Ifs become selections."""
    return context.options.get("ifs", "keep") != "keep"


def selects_in_onnx(model: Model, context: Context) -> bool:
    """If Ifs of ONNX become selections in ONNX."""
    return model.format == context.target.format == "onnx" and selects(model, context)


specializes = either(option("values"), option("input_shapes"), selects)
"""If as many Ifs as possible are removed: inputs have fixed values or shapes, or Ifs become
selections."""

rewrites = either(between_formats, selects_in_onnx)
"""If the graph changes much."""

concludes = either(between_formats, specializes)
"""If facts are concluded from sizes; not if a format is only copied."""


# Conditions on a model from the other format, which do not import the pass.


def operators_of(graph: Graph) -> frozenset[str]:
    """The operators of a graph and its bodies."""
    return frozenset([node.op for node in graph.walk()])


def found(question: Callable[[Graph], bool]) -> PassCondition:
    """If a question about the graph is answered with yes."""
    return lambda model, context: context.ask(question, model.graph)


def has_operator(*ops: str) -> PassCondition:
    """If the model has one of these operators."""
    return both(
        between_formats,
        lambda model, context: not context.ask(operators_of, model.graph).isdisjoint(ops),
    )


def _has_strings(graph: Graph) -> bool:
    return any(
        value.element is STRING
        for values in (graph.inputs, *(node.outputs for node in graph.walk()))
        for value in values
    )


has_strings = both(between_formats, found(_has_strings))
"""If some value is a tensor of strings."""

has_records = both(between_formats, lambda model, context: bool(model.metadata))
"""If the model has metadata, which may be Bridge's own."""


def has_compound_boundary(model: Model, context: Context) -> bool:
    """If an input or an output is a sequence or an optional."""
    values = (*model.graph.inputs, *model.graph.outputs)
    compound = any(isinstance(value.type, ContainerType) for value in values)
    return compound and between_formats(model, context)
