"""Outputs of the model that an engine writes to wrong memory, or not at all."""

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Graph, Node, Value
from bridge.neutral.types import (
    BF16,
    BOOL,
    F16,
    F32,
    F64,
    I8,
    I32,
    I64,
    U8,
    U64,
    is_static,
)
from bridge.passes.context import Context
from bridge.quirks.known import is_known
from bridge.quirks.opaque import is_hidden, opaque
from bridge.quirks.parts import IN_PLACE, is_of_shapes
from bridge.quirks.quirk import (
    GPU,
    PARTS,
    Place,
    barrier,
    graph_quirk,
    nearest,
    replace_outputs,
)

AS_THEY_ARE = {BF16, F32, I8, I32, U8}
"""Types that the plugin stores and returns unchanged."""


CONVERSIONS = ("Cast", "CastLike")


@barrier(
    *CONVERSIONS,
    "Reshape",
    hides="memory",
    outputs=True,
    symptom="A Convert of an input to its own type, perhaps through another type, is removed. If "
    "the result is an output of open shape, OpenVINO writes it into memory that is too small or "
    "freed, and crashes.",
    cost="a maximum of each such output with itself",
)
def converted_input(node: Node, place: Place) -> list[bool]:
    """At an output of open shape that comes from an input of the same type through Casts, and
    perhaps Reshapes of the same rank. The copy of an input for an output of another name is such a
    Cast.
    """
    (value,) = node.outputs
    if place.holder is not None or is_static(value.shape) or not place.is_output(value):
        return []
    source, ops = _converted(value)
    if (
        source.producer is not None
        or source not in place.graph.inputs
        or source.element is not value.element
    ):
        return []
    return [value.element in AS_THEY_ARE and not ops.isdisjoint(CONVERSIONS)]


def _converted(value: Value) -> tuple[Value, set[str]]:
    """The value before conversions, and the operators between. A Reshape of the same rank may be
    between, because the plugin removes it if it keeps the shape."""
    ops: set[str] = set()
    while (made := value.producer) is not None and made.op in (*CONVERSIONS, "Reshape"):
        source = made.inputs[0]
        assert source is not None
        if source.rank != value.rank:
            break
        ops.add(made.op)
        value = source
    return value, ops


# The GPU plugin writes an output that follows from sizes only if sizes change. It keeps constants
# of f64 and u64 in 32 bits, and does not convert them back.
@graph_quirk(
    engines=(GPU,),
    symptom="An output that depends on sizes alone is unset memory in a new request, unless sizes "
    "changed. A constant output of f64 has the bits of f32, and one of u64 the bits of i32. An "
    "output that is a part of a tensor, in f16 or reshaped, has the first elements of the tensor. "
    "The first inference fails at a boolean output of known shape, if something before it has an "
    "open size. A Slice of a Slice that was whole and is empty in the next run ends the process.",
    cost="a Maximum or a Gather of the output, or a few operators on one element, which stay on "
    "the way back to ONNX",
)
def copied_output(graph: Graph, context: Context) -> bool:
    """Adding 0 changes no integer. The only row of a stack of a value is the value, and so is its
    maximum with itself.
    """
    place = Place(graph)
    made = (value for node in graph.nodes for value in node.outputs)
    is_open = not all(is_static(value.shape) for value in (*graph.inputs, *made))

    def copied(b: Builder, value: Value) -> Value | None:
        element, made = value.element, value.producer
        if element is None or made is None or is_hidden(value, "memory", "content"):
            return None
        if element in (F64, U64) and is_known(value, place):
            return opaque(b, value, "content")
        if (element is BOOL and is_open and made.op != "Constant") or _is_part(value):
            return opaque(b, value, "memory")
        shape = nearest(value, "Shape", 1000) if element.is_integer else None
        if shape is None or not is_of_shapes(value):
            return None
        while is_of_shapes(shape.operand(0)) and (
            other := nearest(shape.operand(0), "Shape", 1000)
        ):
            shape = other  # The plugin computes what follows from sizes on the host, zeros too.
        return value + b.cast(_zero_of(b, shape.operand(0)), element)

    return replace_outputs(graph, context, copied)


def _is_moved_part(value: Value) -> bool:
    """Whether a value is a part of a tensor of known sizes, in f16 or behind views and Casts."""
    part = value.behind(*IN_PLACE, "Cast")
    made = part.producer
    if made is None or made.op not in PARTS or (part is value and value.element is not F16):
        return False
    whole = made.operand(0)
    return is_static(whole.shape) and is_static(part.shape) and part.shape != whole.shape


def _is_part_of_part(value: Value) -> bool:
    """Whether a value is a Slice of a Slice of open size."""
    for _ in range(2):
        made = value.behind(*IN_PLACE).producer
        if made is None or made.op != "Slice" or is_static(made.outputs[0].shape):
            return False
        value = made.operand(0)
    return True


def _is_part(value: Value) -> bool:
    return _is_moved_part(value) or _is_part_of_part(value)


def _zero_of(b: Builder, data: Value) -> Value:
    """A 0 that is computed from data, perhaps from an empty tensor."""
    first = b.op("Slice", b.reshape(b.cast(data, I64), -1), [0], [1], [0], [1])
    return b.op("ReduceMax", b.concat(0, first * 0, b.constant([0])), [0], keepdims=False)
