"""Sequences, optionals and tensors of open rank at the boundary of a model in IR.

A sequence input `s` is the pair of inputs `s.data` and `s.shapes`; a sequence output is `s.0` ...
`s.N-1` where its length is known, else `s.data` and `s.shapes`; an optional is `o.present` and its
payload under `o` (or `o.data`, `o.shapes`); an output of open rank is `y.data` and `y.shape`. What
was there is recorded in the model's metadata.
"""

from __future__ import annotations

from bridge.errors import UsageError
from bridge.neutral.boundary_record import BOUNDARY, BoundaryRecord, BoundaryValue
from bridge.neutral.builder import Builder
from bridge.neutral.graph import Graph, Model, Value, names_of_outputs
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
from bridge.passes.context import Context
from bridge.passes.sequences.bodies import is_compound
from bridge.passes.sequences.forms import (
    Elements,
    Form,
    Maybe,
    Open,
    Ragged,
    Sequence,
    converted,
    element_of,
    leaves,
    ranks_of,
    ranks_of_item,
    to_ragged,
    undetermined,
)
from bridge.passes.sequences.lower import Lowering
from bridge.passes.sequences.open_rank import to_rank


def enter_model(model: Model, lowering: Lowering, boundary: BoundaryRecord) -> None:
    """Replaces compound inputs by tensors, and records them."""
    inputs: list[Value] = []
    for value in model.graph.inputs:
        if not is_compound(value):
            inputs.append(value)
            continue
        form, port = input_form(value.name, value.type)
        lowering.forms[value] = form
        boundary.inputs[value.name] = port
        inputs += leaves(form)
    model.graph.inputs = inputs


def input_form(name: str, type: Type) -> tuple[Form, BoundaryValue]:
    """The tensors that an input becomes, and the record of that. Refused where its type does not
    say what they are."""
    if isinstance(type, SequenceType):
        ragged = _ragged_input(name, type)
        return ragged, BoundaryValue(
            "ragged", ragged.element.name, shape_of(type.item, ragged.rank)
        )
    assert isinstance(type, OptionalType)
    present = Value(TensorType(BOOL, ()), [f"{name}.present"])
    if isinstance(type.item, SequenceType):
        ragged = _ragged_input(name, type.item)
        shape = shape_of(type.item.item, ragged.rank)
        port = BoundaryValue("ragged", ragged.element.name, shape, optional=True)
        return Maybe(present, ragged), port
    if not isinstance(type.item, TensorType) or type.item.element is None:
        raise Refused(f'the type of the optional input "{name}" is not known')
    if type.item.shape is None:
        raise Refused(
            f'nothing determines the rank of the optional input "{name}"; give its shape with '
            f'--input-shape "{name}=[?,3]"'
        )
    payload = Value(type.item, [name])
    port = BoundaryValue("tensor", type.item.element.name, shape_of(type.item), optional=True)
    return Maybe(present, payload), port


def shape_of(type: Type, rank: int | None = None) -> list[int | str | None] | None:
    """The shape of a tensor type as a BoundaryValue has it, of `rank` where that is given."""
    shape = type.shape if isinstance(type, TensorType) else None
    if rank is not None and (shape is None or len(shape) != rank):
        return [None] * rank
    return None if shape is None else [d if isinstance(d, int | str) else None for d in shape]


def _ragged_input(name: str, type: SequenceType) -> Ragged:
    item = type.item
    if not isinstance(item, TensorType) or item.element is None:
        raise Refused(f'"{name}" is a {type}; its elements must be tensors of a known type')
    if item.rank is None:
        raise Refused(undetermined(name))
    data = Value(TensorType(item.element, (ANY,)), [f"{name}.data"])
    shapes = Value(TensorType(I64, (ANY, item.rank)), [f"{name}.shapes"])
    return Ragged(data, shapes, item.element, item.rank)


def _of_wanted_rank(b: Builder, form: Open, name: str, context: Context) -> Value | Open:
    """An output in the rank that a user gives."""
    rank = context.output_ranks.get(name)
    ranks = " or ".join(str(len(shape)) for shape in form.shapes or ()) or "any rank"
    if rank is None:
        declared = context.disbelieved.get(name)
        instead = ""
        if declared is not None:
            instead = f" (rank {len(declared)}, as declared, is not believed)"
        context.report.notes.append(
            f'data decide whether the output "{name}" has rank {ranks}{instead}: it is '
            f'"{name}.data", its elements, and "{name}.shape", of which bridge.unpack makes it; '
            f"--output-rank {name}=N decides for rank N"
        )
        return form
    if form.shapes is not None and rank not in ranks_of_item(form):
        raise UsageError(f'the output "{name}" has rank {ranks}, not {rank}')
    return to_rank(b, form, rank)


def leave_model(
    model: Model, lowering: Lowering, boundary: BoundaryRecord, context: Context
) -> None:
    """Replaces compound outputs by tensors, and records all in the model's metadata. Raises
    UsageError for `output_ranks` other than those of the outputs."""
    graph = model.graph
    names = names_of_outputs(graph)
    outputs: list[Value] = []
    output_names: list[str] = []
    for value, name in zip(graph.outputs, names, strict=True):
        form = lowering.form(value)
        if isinstance(form, Open):
            form = _of_wanted_rank(lowering.builder, form, name, context)
        elif not isinstance(form, Value) and name in context.output_ranks:
            raise UsageError(f'the output "{name}" is no tensor, so it has no rank')
        if isinstance(form, Value):
            outputs.append(form)
            output_names.append(name)
            continue
        declared: Type = innermost(value.type)
        if isinstance(form, Open):  # What the file declares of it comes back with the ONNX model.
            declared = TensorType(form.element, context.disbelieved.get(name))
        form, port, parts = _output_form(lowering, form, name, declared)
        boundary.outputs[name] = port
        outputs += leaves(form)
        output_names += parts
    graph.outputs, graph.output_names = outputs, output_names
    if boundary.inputs or boundary.outputs:
        boundary.input_order = boundary_order(graph, boundary)
        BOUNDARY.write(model.metadata, boundary)


def boundary_order(graph: Graph, boundary: BoundaryRecord) -> list[str]:
    """The names of the model's inputs as they were."""
    order: list[str] = []
    for value in graph.inputs:
        name = boundary.owner(value.name)
        if name not in order:
            order.append(name)
    return order


def _output_form(
    lowering: Lowering, form: Form, name: str, declared: Type
) -> tuple[Form, BoundaryValue, list[str]]:
    b = lowering.builder
    if isinstance(form, Open):
        port = BoundaryValue("open", str(form.element), shape_of(declared))
        return form, port, port.parts(name)
    if isinstance(form, Elements) and form.items and all(isinstance(v, Value) for v in form.items):
        shape = shape_of(declared, _common_rank(form))
        port = BoundaryValue("elements", element_of(form).name, shape, count=len(form.items))
        return form, port, [f"{name}.{i}" for i in range(len(form.items))]
    if isinstance(form, Sequence):
        pair = _settled(lowering, form, name)
        port = BoundaryValue(
            "ragged", pair.element.name, shape_of(declared, pair.rank), mixed=pair.mixed
        )
        return pair, port, [f"{name}.data", f"{name}.shapes"]
    assert isinstance(form, Maybe)
    payload = form.payload
    if isinstance(payload, Sequence):
        pair = _settled(lowering, payload, name)
        shape = shape_of(declared, pair.rank)
        port = BoundaryValue("ragged", pair.element.name, shape, optional=True, mixed=pair.mixed)
        parts = [f"{name}.present", f"{name}.data", f"{name}.shapes"]
        return Maybe(form.present, pair), port, parts
    if isinstance(payload, Open):
        port = BoundaryValue("open", str(payload.element), None, optional=True)
        return form, port, port.parts(name)
    if not isinstance(payload, Value):
        raise Refused(f'the optional output "{name}" is never present, so nothing says its type')
    tensor = payload.tensor
    port = BoundaryValue(
        "tensor", str(tensor.element), shape_of(declared, tensor.rank), optional=True
    )
    return (
        Maybe(form.present, converted(b, payload, payload, name)),
        port,
        [f"{name}.present", name],
    )


def _settled(lowering: Lowering, form: Sequence, name: str) -> Ragged:
    """A ragged pair; a sequence that is always empty has elements of rank 1, of which there are
    none."""
    if ranks_of(form):
        return to_ragged(lowering.builder, form, name)
    if not isinstance(form, Elements) or form.items:
        raise Refused(undetermined(name))
    vector = TensorType(element_of(form), (ANY,))
    return to_ragged(lowering.builder, Elements((), vector), name)


def _common_rank(form: Elements) -> int | None:
    ranks = ranks_of(form)
    return ranks.pop() if len(ranks) == 1 else None
