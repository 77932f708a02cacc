"""TopK of both formats, and ArgMax and ArgMin, which IR lacks."""

from bridge.neutral.inference import constraints as must, first, infers, place
from bridge.neutral.inference.dims import at_most
from bridge.neutral.inference.known import as_dim, known_of
from bridge.neutral.types import ANY, I64, TensorType
from bridge.operators import Builder, Node, Refused, Result, Value, legalizes, reads, required
from bridge.operators.guarding import SafeInputs, Unsafe, guards, is_surely_filled
from bridge.operators.reduction.order import first_places, in_order, takes_long, top


@reads("TopK", format="onnx", until=9)
def read_top_k_1(b: Builder, node: Node) -> Result:
    """TopK-1 has k as an attribute."""
    k = b.constant([node.attributes["k"]])
    return b.ops("TopK", 2, node.inputs[0], k, axis=node.attributes.get("axis", -1))


@legalizes("TopK", target="ir")
def top_k(b: Builder, node: Node) -> Result:
    """TopK (1 to 24). IR's k is a scalar. As in ONNX, `stable` puts the lower index first among
    equal elements. If a stable TopK would be slow, unstable ones compute the same result."""
    x, k = required(node, 0, 1)
    axis, by_value = node.attributes["axis"], node.attributes["sorted"]
    mode = "max" if node.attributes["largest"] else "min"
    number = b.scalar(k)
    if not by_value or not x.shape or x.element is None:
        return top(b, x, number, axis, mode, "value" if by_value else "none", by_value)
    size, (known,) = x.shape[axis], known_of(k).parts or (None,)
    count = as_dim(known)
    if not takes_long(size, count):
        return top(b, x, number, axis, mode, stable=True)
    if count == size != ANY:
        places = in_order(b, x, number, axis, mode, size, count)
    else:
        first = first_places(b, x, number, axis, mode)
        among = b.op("GatherElements", x, first, axis=axis)
        order = in_order(b, among, number, axis, mode, size, count)
        places = b.op("GatherElements", first, order, axis=axis)
    return b.op("GatherElements", x, places, axis=axis), places


@legalizes("ir::TopK", target="onnx")
def ir_top_k(b: Builder, node: Node) -> Result:
    """TopK for ONNX, which requires a 1-D k and i64 indices. For results sorted by index, a TopK of
    the indices computes the positions."""
    x, k = required(node, 0, 1)
    axis, by = node.attributes["axis"], node.attributes["sort"]
    count = b.vector(b.as_i64(k))
    largest = node.attributes["mode"] == "max"
    values, indices = b.ops("TopK", 2, x, count, axis=axis, largest=largest, sorted=by != "none")
    if by == "index":
        indices, order = b.ops("TopK", 2, indices, count, axis=axis, largest=False)
        values = b.op("GatherElements", values, order, axis=axis)
    return values, b.cast(indices, node.attributes["index_element_type"])


@legalizes("ArgMax", "ArgMin", target="ir")
def arg(b: Builder, node: Node) -> Result:
    """ArgMax (1 to 13) and ArgMin (1 to 13) as the index of a TopK with k = 1. For the last of
    equal elements, the input is reversed."""
    x = node.operand(0)
    axis, last = node.attributes["axis"], node.attributes["select_last_index"]
    if x.rank is None and last and axis >= 0:
        raise Refused("select_last_index needs the rank of the input; declare its shape")
    indices = b.node(
        "ir::TopK", [b.flip(x, axis) if last else x, b.constant(1)], 2,
        {
            "axis": axis, "mode": "max" if node.op == "ArgMax" else "min", "sort": "value",
            "stable": True, "index_element_type": I64,
        },
    ).outputs[1]  # fmt: skip
    if last:
        indices = b.sizes(x, axis) - [1] - indices
    return indices if node.attributes["keepdims"] else b.op("Squeeze", indices, [axis])


@infers("ArgMax", "ArgMin")
def infer_arg(node: Node) -> list[TensorType]:
    """ArgMax, ArgMin: i64, without `axis`, or with 1 in its place."""
    shape = first(node).shape
    if shape is None:
        return [TensorType(I64)]
    axis = place(node.attributes["axis"], len(shape))
    middle = (1,) if node.attributes["keepdims"] else ()
    return [TensorType(I64, shape[:axis] + middle + shape[axis + 1 :])]


@infers("TopK", "ir::TopK")
def infer_top_k(node: Node) -> list[TensorType]:
    """TopK, ir::TopK: k along `axis`; the indices are i64, or of the type that IR names."""
    element, shape, k = first(node).element, first(node).shape, node.inputs[1]
    if shape is not None:
        axis = place(node.attributes["axis"], len(shape))
        parts = known_of(k).parts
        count = ANY if parts is None else as_dim(parts[0])
        count = at_most(shape[axis]) if count == ANY else count
        shape = (*shape[:axis], count, *shape[axis + 1 :])
    indices = node.attributes.get("index_element_type", I64)
    return [TensorType(element, shape), TensorType(indices, shape)]


def no_more_than_there_are(node: Node) -> must.Constraints:
    """TopK: not more elements than the axis has."""
    (x,), count = must.operands(node, 1), known_of(node.input(1)).ints
    for output in node.outputs:
        yield must.Ranks(must.Operand(output), x)
    axis = node.attributes.get("axis", -1)
    if x.rank and count and len(count) == 1 and -x.rank <= axis < x.rank:
        size = x[axis]
        if count[0] < 0 or (isinstance(size, int) and count[0] > size):
            yield f"axis {axis} of {x} has no {count[0]} elements"


must.hold(("ArgMax", "ArgMin"), must.axis_attribute("axis"))
must.hold(
    ("TopK", "ir::TopK"), must.axis_attribute("axis"), must.one_element(1), no_more_than_there_are
)


@guards("ArgMax", "ArgMin", further=True)
def _choice(b: Builder, node: Node, counts: Value) -> SafeInputs:
    """ArgMax, ArgMin: there is an element to choose."""
    if not is_surely_filled([_size(node)]):
        raise Unsafe("there may be no elements to choose from")
    return None


@guards("TopK", further=True)
def _few(b: Builder, node: Node, counts: Value) -> SafeInputs:
    """TopK: there are as many elements as it wants."""
    wanted = known_of(node.inputs[1]).ints
    if not wanted or wanted[0] > _size(node):
        raise Unsafe("there may be fewer elements than it wants")
    return None


def _size(node: Node) -> int:
    """The size of the axis along which elements are chosen; 0 if it is open."""
    value, axis = node.inputs[0], node.attributes["axis"]
    dims = () if value is None or value.shape is None else value.shape
    known = dims[axis] if -len(dims) <= axis < len(dims) else 0
    return known if isinstance(known, int) else 0
