"""TopK in either format, and ArgMax and ArgMin, which IR lacks."""

from __future__ import annotations

import math

from bridge.neutral.builder import integers
from bridge.neutral.inference import constraints as must, first, infers, place
from bridge.neutral.inference.dims import content_of, with_dim
from bridge.neutral.types import ANY, I64, Dim, TensorType
from bridge.operators import Builder, Node, Refused, Result, Value, legalizes, reads, required


@reads("TopK", format="onnx", until=9)
def read_top_k_1(b: Builder, node: Node) -> Result:
    """TopK-1 has k as an attribute."""
    k = b.constant([node.attributes["k"]])
    return b.ops("TopK", 2, node.inputs[0], k, axis=node.attributes.get("axis", -1))


@legalizes("TopK", target="ir")
def top_k(b: Builder, node: Node) -> Result:
    """TopK (1 to 24): IR's k is a scalar; `stable` puts the lower index first among equals, as
    ONNX does."""
    x, k = required(node, 0, 1)
    axis, by_value = node.attributes["axis"], node.attributes["sorted"]
    mode = "max" if node.attributes["largest"] else "min"

    def top(of: Value, axis: int, stable: bool) -> list[Value]:
        return b.ops(
            "ir::TopK", 2, of, b.scalar(k), axis=axis, mode=mode,
            sort="value" if by_value else "none", stable=stable, index_element_type=I64,
        )  # fmt: skip

    if not by_value or not _has_candidates(x, k, axis):
        return top(x, axis, by_value)
    row = x if x.rank == 1 else b.reshape(x, -1)
    found = _candidates(b, row, top(row, 0, False)[0], mode)
    values, places = top(b.op("Gather", row, found, 0), 0, True)
    others = [other for other in range(len(x.dims)) if other != axis % len(x.dims)]
    return tuple(b.unsqueeze(y, *others) for y in (values, b.op("Gather", found, places, 0)))


_FEW = 8
"""Elements of a TopK that OpenVINO's stable one finds quickly enough."""


def _has_candidates(x: Value, k: Value, axis: int) -> bool:
    """Whether the k largest elements are worth a search before they are sorted: OpenVINO's stable
    TopK takes time in proportion to k times the size, its unstable one hardly any. Rows of a
    matrix would have different numbers of candidates."""
    if x.element is None or not x.shape:
        return False
    size, (count, *_) = x.shape[axis], content_of(k) or (None,)
    alone = set(with_dim(x.shape, axis % len(x.shape), 1)) == {1}
    if not alone or isinstance(size, int) or count == size:
        return False
    return not isinstance(count, int) or count >= _FEW


def _candidates(b: Builder, x: Value, largest: Value, mode: str) -> Value:
    """Where a vector holds elements that are not beyond all of its `largest` ones: these, those
    equal to the last of them, and NaN. If one of the largest is NaN, all are candidates."""
    reduce, beyond, worst = {
        "max": ("ReduceMin", "Less", -math.inf), "min": ("ReduceMax", "Greater", math.inf)
    }[mode]  # fmt: skip
    if x.element is not None and x.element.is_float:
        largest = b.op("Where", b.op("IsNaN", largest), worst, largest)
    limit = b.op(reduce, largest, [0])
    return b.reshape(b.op("NonZero", b.op("Not", b.op(beyond, x, limit))), -1)


@legalizes("ir::TopK", target="onnx")
def ir_top_k(b: Builder, node: Node) -> Result:
    """ONNX's k has one axis, its indices are i64. Sorted by index: the positions come from a TopK
    of the indices."""
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
    """ArgMax (1 to 13) and ArgMin (1 to 13): the index of a TopK with k = 1; for the last one
    among equals, of the reversed input."""
    (x,) = required(node, 0)
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
        indices = b.op("Sub", b.op("Sub", b.sizes(x, axis), [1]), indices)
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
        known = None if k is None else k.known_value
        count: Dim = ANY if known is None or known[0] is None else known[0]
        shape = (*shape[:axis], count, *shape[axis + 1 :])
    indices = node.attributes.get("index_element_type", I64)
    return [TensorType(element, shape), TensorType(indices, shape)]


def no_more_than_there_are(node: Node) -> must.Constraints:
    """TopK: not more elements than the axis has."""
    (x,), count = must.operands(node, 1), integers(node.input(1))
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
