"""Changes at a graph's boundary: inputs with a default value, and new shapes of inputs."""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bridge.errors import Unsupported, UnsupportedError, UsageError, amount
from bridge.neutral.builder import constant_node
from bridge.neutral.extras import Note
from bridge.neutral.graph import Model, Value, names_of_outputs
from bridge.neutral.inference import infer_graph
from bridge.neutral.types import (
    ANY,
    I64_MAX,
    Dim,
    ForeignType,
    Interval,
    OptionalType,
    SequenceType,
    TensorType,
    Type,
    high,
    interval,
    low,
    without_sizes,
)
from bridge.neutral.xml_names import clean
from bridge.passes.applies import always, applies
from bridge.passes.context import Context
from bridge.records.boundary import CONSTANTS
from bridge.suggestions import unknown
from bridge.vocabulary.elements import BY_IR


@applies(lambda model, context: bool(model.defaults))
def defaults_to_constants(model: Model, context: Context) -> bool:
    """Makes inputs with defaults constants of their default values, because IR has no defaults. The
    metadata records them. Inputs that the user named stay inputs. Returns whether there were any
    defaults."""
    if not model.defaults:
        return False
    nodes = []
    named = set(context.options.get("input_shapes") or ())
    kept = {value for value in model.defaults if named.intersection(value.names)}
    for value, tensor in model.defaults.items():
        if value in kept:
            context.report.notes.append(
                f'the input "{value.name}" has no default value in IR, and must be given'
            )
            continue
        nodes.append(constant_node(value, tensor))
        context.report.notes.append(
            f'the input "{value.name}" has a default value and became a constant; giving its shape '
            "with `input_shapes` keeps it an input"
        )
    gone = [value for value in model.graph.inputs if value in model.defaults.keys() - kept]
    model.graph.inputs = [value for value in model.graph.inputs if value not in gone]
    model.graph.prepend(nodes)
    model.defaults = {}
    if gone:
        CONSTANTS.write(model.metadata, [value.name for value in gone])
    infer_graph(model.graph)
    return True


@applies(always)
def clean_names(model: Model, context: Context) -> bool:
    """Gives inputs and outputs, in place, names that XML can hold, before records name them."""
    graph = model.graph
    names = names_of_outputs(graph)
    ends = dict.fromkeys([*(n for v in graph.inputs for n in v.names), *names])
    taken, new = set(ends), dict[str, str]()
    for name in ends:
        if (cleaned := clean(name)) != name:
            while cleaned in taken:
                cleaned += "_"
            taken.add(cleaned)
            new[name] = cleaned
    if new:
        for value in (*graph.inputs, *graph.outputs):
            value.names = [new.get(name, name) for name in value.names]
        graph.output_names = [new.get(name, name) for name in names]
        context.report.notes.append(
            f"XML cannot hold the names of inputs and outputs {', '.join(map(repr, new))}; in the "
            f"IR these are {', '.join(map(repr, new.values()))}"
        )
    return bool(new)


def require_declared_types(model: Model, context: Context) -> None:
    """Raises UnsupportedError with the inputs and outputs that ONNX cannot declare. ONNX can leave
    a size open, but not the rank or the element type (IR.md, Graphs)."""
    graph = model.graph
    inputs = [("Parameter", value.name, value) for value in graph.inputs]
    outputs = zip(names_of_outputs(graph), graph.outputs, strict=True)
    findings = [
        Unsupported(kind, f'graph / {kind} "{name}"', _undeclared(value))
        for kind, name, value in (*inputs, *(("Result", *output) for output in outputs))
        if isinstance(value.type, TensorType)
        and (value.element is None or (value.shape is None and kind == "Parameter"))
    ]
    if findings:
        raise UnsupportedError(str(context.target), findings)


def _undeclared(value: Value) -> str:
    """The missing facts of an input or output that ONNX cannot declare, and a remedy."""
    missing = ["element type"] if value.element is None else []
    helps = ["`input_types` gives inputs an element type"] if missing else []
    if value.shape is None and value.producer is None:
        missing.append("rank")
        helps.append("`input_shapes` gives inputs a rank")
    return (
        "ONNX wants the element type of each input and output and the rank of each input; "
        f"the {' and the '.join(missing)} of this one {'is' if len(missing) == 1 else 'are'} not "
        f"known. {' and '.join(helps)}"
    )


def give_types(model: Model, types: Mapping[str, str]) -> None:
    """Gives inputs without an element type one, by name, and infers the model anew. UsageError for
    a word that is no element type, and for inputs with another type."""
    if not isinstance(types, Mapping):
        raise UsageError(f'`input_types` maps names to types, {{"x": "f32"}}; it is {types!r}')
    by_name = inputs_by_name(model)
    for name, text in types.items():
        value, element = by_name(name), BY_IR.get(text)
        if element is None:
            raise UsageError(f'"{text}" is no element type; {", ".join(BY_IR)} are')
        if is_converted(value, text):
            continue  # `passes/preprocess.py` puts a Cast behind it.
        if not isinstance(value.type, TensorType) or value.element not in (None, element):
            raise UsageError(f'the input "{name}" is {value.type}; it cannot be of {text}')
        value.type = value.declared = TensorType(element, value.shape)
    infer_graph(model.graph)


def is_converted(value: Value, text: str) -> bool:
    """Whether a user gives an input of floats a type of integers, such as the bytes of an image."""
    element = BY_IR.get(text)
    own = value.element if isinstance(value.type, TensorType) else None
    return bool(own and own.is_float and element and element.is_integer)


def dimension(dim: Any) -> Dim:
    """The dimension that a user gives as a size, a symbol, an Interval, or None for any size.
    UsageError for all else."""
    if dim is None:
        return ANY
    if isinstance(dim, Interval):
        low = _size(dim.low, dim)
        high = None if dim.high is None else _size(dim.high, dim)
        if high is not None and low > high:
            raise UsageError(f"{dim} is no dimension: no size lies in this range")
        return interval(low, high)
    if isinstance(dim, str) and dim.isidentifier():
        return dim
    return _size(dim, dim)


def _size(given: Any, dim: Any) -> int:
    """A size in the dimension `dim`, alone or as a bound."""
    try:
        size = None if isinstance(given, bool) else operator.index(given)
    except TypeError:
        size = None
    if size is not None and 0 <= size <= I64_MAX:
        return size
    text = f'"{dim}"' if isinstance(dim, str) else repr(dim)
    if size is not None and size < 0:
        raise UsageError(f"{text} is no dimension; None is any size")
    raise UsageError(
        f"{text} is no dimension; it may be a size from 0 to 2**63-1, a symbol (a word), a range "
        "(bridge.Interval(1, 8)), or None for any size"
    )


def override_shapes(model: Model, shapes: Mapping[str, Sequence[Any]]) -> None:
    """Gives inputs other shapes, by name, and infers the model anew, without the declared sizes of
    other values. `dimension` reads each dimension. UsageError for a wrong shape, or a shape that
    does not fit its input."""
    if not isinstance(shapes, Mapping):
        raise UsageError(f'`input_shapes` maps names to shapes, {{"x": [1, 3]}}; it is {shapes!r}')
    by_name = inputs_by_name(model)
    for name, shape in shapes.items():
        value = by_name(name)
        if isinstance(shape, str) or not isinstance(shape, Sequence):
            raise UsageError(f'the shape of the input "{name}" must be a list, not {shape!r}')
        try:
            dims = tuple(map(dimension, shape))
        except UsageError as error:
            raise UsageError(f'the shape of the input "{name}": {error}') from None
        value.type = value.declared = _reshaped(value.type, dims, name)
        default = model.defaults.get(value)
        if default is not None and not may_be(default.shape, dims):
            del model.defaults[value]
            model.notes.append(
                f'the input "{name}" has no default value any more: it is of another shape'
            )
    # The sizes that the file declares belong to the old shapes.
    for value in model.graph.computed():
        value.declared = without_sizes(value.declared)
    said = model.extras.get("onnx")
    if said is not None:
        notes = {path: _without_sizes(note) for path, note in said.get("notes", {}).items()}
        model.extras = {**model.extras, "onnx": {**said, "notes": notes}}
    infer_graph(model.graph)


def inputs_by_name(model: Model) -> Callable[[str], Value]:
    """Gives the input of a name; UsageError if there is none."""
    by_name = {name: value for value in model.graph.inputs for name in value.names}

    def named(name: str) -> Value:
        if name not in by_name:
            raise UsageError(unknown("input", name, by_name))
        return by_name[name]

    return named


def _without_sizes(note: Note) -> Note:
    """A note with every size that it declares left open."""
    kept = note.copy()
    for key in ("shape", "value_info"):
        if key in kept:
            kept[key] = [dim if isinstance(dim, str) else None for dim in kept[key]]
    return kept


def may_be(shape: Sequence[int], dims: Sequence[Dim]) -> bool:
    """Whether a tensor of this shape has these dimensions."""
    if len(shape) != len(dims):
        return False
    limits = ((low(dim), high(dim)) for dim in dims)
    return all(
        least <= size and (most is None or size <= most)
        for size, (least, most) in zip(shape, limits, strict=True)
    )


def _reshaped(type: Type, dims: tuple[Dim, ...], name: str) -> Type:
    """The type with another shape: of the tensor, or of the tensors in a sequence or optional."""
    if isinstance(type, SequenceType):
        element = type.item.element if isinstance(type.item, TensorType) else None
        return SequenceType(TensorType(element, dims))
    if isinstance(type, OptionalType):
        return OptionalType(_reshaped(type.item, dims, name))
    if isinstance(type, ForeignType) or type.rank not in (None, len(dims)):
        count = amount(len(dims), "dimension")
        raise UsageError(f'the input "{name}" is {type}: it cannot be given {count}')
    return TensorType(type.element, dims)
