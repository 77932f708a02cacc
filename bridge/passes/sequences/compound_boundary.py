"""Sequences, optionals and tensors of open rank at the boundary of a model in IR.

A sequence input `s` is the pair of inputs `s.data` and `s.shapes`. A sequence output is `s.0` ...
`s.N-1` if its length is known, else `s.data` and `s.shapes`. An optional is `o.present` and its
payload under `o` (or `o.data`, `o.shapes`). An output of open rank is `y.data` and `y.shape`. The
model's metadata records the original.
"""

from bridge.errors import UsageError
from bridge.neutral.builder import Builder
from bridge.neutral.graph import Model, Value, names_of_outputs
from bridge.neutral.types import (
    ANY,
    BOOL,
    I64,
    OptionalType,
    SequenceType,
    TensorType,
    Type,
    innermost,
)
from bridge.operators import Refused
from bridge.options.spoken import keyword
from bridge.passes.context import Context
from bridge.passes.sequences.elements import Elements
from bridge.passes.sequences.form import Form, Sequence, is_compound, undetermined
from bridge.passes.sequences.lower import Lowering
from bridge.passes.sequences.maybe import Maybe
from bridge.passes.sequences.ragged import Ragged
from bridge.passes.sequences.tensors import Open, Plain, TensorForm
from bridge.records.boundary import BOUNDARY, BoundaryRecord, BoundaryValue


def enter_model(model: Model, lowering: Lowering, boundary: BoundaryRecord) -> None:
    """Replaces compound inputs by tensors, and records them."""
    inputs: list[Value] = []
    for value in model.graph.inputs:
        if not is_compound(value):
            inputs.append(value)
            continue
        form, boundary.inputs[value.name] = input_form(value.name, value.type)
        lowering.forms[value] = form
        inputs += form.leaves()
    model.graph.inputs = inputs


def input_form(name: str, type: Type) -> tuple[Form, BoundaryValue]:
    """The tensors that an input becomes, and their record. Refused if the type of the input leaves
    them open."""
    optional = isinstance(type, OptionalType)
    item = type.item if isinstance(type, OptionalType) else type
    held: Form
    if isinstance(item, SequenceType):
        held = _ragged_input(name, item)
        shape = shape_of(item.item, held.rank)
        recorded = BoundaryValue("ragged", held.element.name, shape, optional)
    else:
        if not isinstance(item, TensorType) or item.element is None:
            raise Refused(f'the type of the optional input "{name}" is not known')
        if item.shape is None:
            raise Refused(
                f'nothing determines the rank of the optional input "{name}"; give its shape with '
                + keyword("input_shapes", {name: [None, 3]})
            )
        held = Plain(Value(item, [name]))
        recorded = BoundaryValue("tensor", item.element.name, shape_of(item), optional)
    present = Value(TensorType(BOOL, ()), [f"{name}.present"])
    return Maybe(present, held) if optional else held, recorded


def shape_of(type: Type, rank: int | None = None) -> list[int | str | None] | None:
    """The shape of a tensor type, as in a BoundaryValue, and of rank `rank` if it is given."""
    shape = type.shape if isinstance(type, TensorType) else None
    if rank is not None and (shape is None or len(shape) != rank):
        return [None] * rank
    return None if shape is None else [d if isinstance(d, int | str) else None for d in shape]


def _ragged_input(name: str, type: SequenceType) -> Ragged:
    item = type.item
    if not isinstance(item, TensorType) or item.element is None:
        raise Refused(f'"{name}" is a {type}; its elements must be tensors of a known type')
    if item.rank is None:
        raise undetermined(name)
    data = Value(TensorType(item.element, (ANY,)), [f"{name}.data"])
    shapes = Value(TensorType(I64, (ANY, item.rank)), [f"{name}.shapes"])
    return Ragged(data, shapes, item.element, item.rank)


def _of_wanted_rank(b: Builder, form: Open, name: str, context: Context) -> TensorForm:
    """An output in the rank that a user gives."""
    rank = context.output_ranks.get(name)
    ranks = " or ".join(str(len(shape)) for shape in form.shapes or ())
    ranks = f"rank {ranks}" if ranks else "one rank or another"
    if rank is None and context.target.format == "onnx":
        return form
    if rank is None:
        declared = context.disbelieved.get(name)
        instead = ""
        if declared is not None:
            instead = f" (rank {len(declared)}, as declared, is not believed)"
        context.report.notes.append(
            f'data decide whether the output "{name}" has {ranks}{instead}: it is '
            f'"{name}.data", its elements, and "{name}.shape", of which bridge.unpack makes it; '
            "`output_ranks` decides for one rank"
        )
        return form
    if form.shapes is not None and rank not in form.ranks:
        raise UsageError(f'the output "{name}" has {ranks}, not {rank}')
    return Plain(form.at_rank(b, rank))


def leave_model(
    model: Model, lowering: Lowering, boundary: BoundaryRecord, context: Context
) -> None:
    """Replaces compound outputs by tensors, and records all in the model's metadata. Raises
    UsageError if `output_ranks` do not fit the outputs."""
    graph = model.graph
    names = names_of_outputs(graph)
    outputs: list[Value] = []
    output_names: list[str] = []
    for value, name in zip(graph.outputs, names, strict=True):
        form = lowering.form(value)
        if isinstance(form, Open):
            form = _of_wanted_rank(lowering.builder, form, name, context)
        elif not isinstance(form, Plain) and name in context.output_ranks:
            raise UsageError(f'the output "{name}" is no tensor, so it has no rank')
        if isinstance(form, Plain):
            outputs.append(form.value)
            output_names.append(name)
            continue
        declared: Type = innermost(value.type)
        if isinstance(form, Open):  # Its declared type comes back with the ONNX model.
            declared = TensorType(form.element, context.disbelieved.get(name))
        form, boundary.outputs[name] = _output_form(lowering.builder, form, name, declared)
        outputs += form.leaves()
        output_names += boundary.outputs[name].parts(name)
    graph.outputs, graph.output_names = outputs, output_names
    write_boundary(model, boundary)


def write_boundary(model: Model, boundary: BoundaryRecord) -> None:
    """Records the meaning of inputs and outputs, and the original order of the inputs."""
    if boundary.inputs or boundary.outputs:
        names = (boundary.owner(value.name) for value in model.graph.inputs)
        boundary.input_order = list(dict.fromkeys(names))
        BOUNDARY.write(model.metadata, boundary)


def _output_form(b: Builder, form: Form, name: str, declared: Type) -> tuple[Form, BoundaryValue]:
    """The tensors that an output becomes, and the record of that."""
    optional = isinstance(form, Maybe)
    held = form.payload if isinstance(form, Maybe) else form
    if isinstance(held, Elements) and not optional and held.is_plain:
        rank = held.item_ranks.pop() if len(held.item_ranks) == 1 else None
        shape = shape_of(declared, rank)
        count = len(held.items)
        recorded = BoundaryValue("elements", held.item_element.name, shape, count=count)
    elif isinstance(held, Sequence):
        held = pair = _with_rank(held, name).to_ragged(b, name)
        shape = shape_of(declared, pair.rank)
        recorded = BoundaryValue("ragged", pair.element.name, shape, optional, mixed=pair.mixed)
    elif isinstance(held, Open):
        shape = None if optional else shape_of(declared)
        recorded = BoundaryValue("open", str(held.element), shape, optional)
    elif isinstance(held, Plain):
        tensor = held.value.tensor
        shape = shape_of(declared, tensor.rank)
        recorded = BoundaryValue("tensor", str(tensor.element), shape, optional)
    else:
        raise Refused(f'the optional output "{name}" is never present, so its type is not known')
    return Maybe(form.present, held) if isinstance(form, Maybe) else held, recorded


def _with_rank(form: Sequence, name: str) -> Sequence:
    """The sequence. If its elements have no known rank, it is always empty, and their rank is 1."""
    if form.item_ranks:
        return form
    if not isinstance(form, Elements) or form.items:
        raise undetermined(name)
    return Elements((), TensorType(form.item_element, (ANY,)))
