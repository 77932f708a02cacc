"""Scatter in all forms: elements, slices, N-d indices and updates of a cache."""

import numpy as np

from bridge.neutral.graph import Node, Value
from bridge.neutral.inference import constraints as must, first, knows
from bridge.neutral.inference.constraints import contradiction
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import BOOL, I32, Element, KnownValue
from bridge.operators import Builder, legalizes, ranked, ranks, required
from bridge.operators.guarding import SafeInputs, Unsafe, guards, if_taken, is_surely_filled
from bridge.operators.indexing.gather import indices_of_elements, places_in_data


@legalizes("ScatterUpdate", target="onnx")
def scatter_update_for_onnx(b: Builder, node: Node) -> Value:
    """ScatterUpdate-3: updates[..., indices, ...] along one axis."""
    data, indices, updates, axis = required(node, 0, 1, 2, 3)
    (along,) = b.constants(axis, "its axis")
    indices = b.as_i64(indices)
    if along == 0:
        return b.op("ScatterND", data, b.unsqueeze(indices, -1), updates)
    rank, index_rank = ranks(node, 0, 1)
    at = along % rank
    if index_rank != 1:
        before, after = b.sizes(data, *range(at)), b.sizes(data, *range(at + 1, rank))
        dims = [before] * bool(at) + [b.constant([-1])] + [after] * (at + 1 < rank)
        updates = b.op("Reshape", updates, b.concat(0, *dims))
    column = b.reshape(indices, -1, *[1] * (rank - 1 - at))
    places = b.op("Expand", column, b.op("Shape", updates))
    return b.op("ScatterElements", data, places, updates, axis)


@legalizes("ScatterElements", target="onnx")
def initial_values_for_onnx(b: Builder, node: Node) -> Value | None:
    """ScatterElements: only ScatterElementsUpdate-12 has `use_init_val = false` and the mean."""
    data, indices, updates, axis = required(node, 0, 1, 2, 3)
    reduction = node.attributes["reduction"]
    b.constants(axis, "its axis")
    if reduction == "none":
        return None if node.attributes["use_init_val"] else b.op("ScatterElements", *node.inputs)
    if reduction == "mean":
        return _mean(b, node)
    if node.attributes["use_init_val"]:
        return None
    neutral = b.like(_neutral(reduction, data.known_element), data)
    start = b.op("Expand", neutral, b.op("Shape", updates))
    cleared = b.op("ScatterElements", data, indices, start, axis)
    return b.op("ScatterElements", cleared, indices, updates, axis, reduction=reduction)


def _neutral(reduction: str, element: Element) -> object:
    """The neutral element of a reduction."""
    if reduction in ("add", "mul"):
        return 0 if reduction == "add" else 1
    if element.is_float:
        return -np.inf if reduction == "max" else np.inf
    if element is BOOL:
        return reduction == "min"
    limits = np.iinfo(element.dtype)
    return limits.min if reduction == "max" else limits.max


def _mean(b: Builder, node: Node) -> Value:
    """The sum divided by the number of its values. OpenVINO rounds an integer mean towards zero, as
    ONNX's division does."""
    data, indices, updates, axis = required(node, 0, 1, 2, 3)
    counted = node.attributes["use_init_val"]
    total = b.op("ScatterElements", *node.inputs, reduction="add", use_init_val=counted)
    ones = b.op("Expand", b.like(1, data), b.op("Shape", updates))
    start = b.op("Expand", b.like(1 if counted else 0, data), b.op("Shape", data))
    count = b.op("ScatterElements", start, indices, ones, axis, reduction="add")
    return total / (count if counted else b.max(count, 1))


_OF_BOOLEANS = {"add": "max", "mul": "min", "sub": "add"}


@legalizes("ScatterND", target="onnx")
def reductions_for_onnx(b: Builder, node: Node) -> Value | None:
    """ScatterND: ScatterNDUpdate-15 also subtracts. Its sum, difference and product of booleans are
    Or, Xor and And, which are reductions of 0 and 1 here."""
    data, indices, updates = required(node, 0, 1, 2)
    reduction = node.attributes["reduction"]
    if data.element is BOOL and reduction != "none":
        numbers = b.cast(data, I32), indices, b.cast(updates, I32)
        whole = b.op("ScatterND", *numbers, reduction=_OF_BOOLEANS.get(reduction, reduction))
        return b.cast(whole % 2 if reduction == "sub" else whole, BOOL)
    if reduction != "sub":
        return None
    nothing = b.op("Expand", b.like(0, data), b.op("Shape", data))
    return data - b.op("ScatterND", nothing, indices, updates, reduction="add")


@legalizes("TensorScatter", target="ir")
@legalizes("TensorScatter", target="onnx")
def tensor_scatter(b: Builder, node: Node) -> Value | None:
    """TensorScatter-24: writes consecutive steps into a cache from an index per batch on. A
    circular cache continues at its beginning. ONNX has the operator since operator set 24."""
    if b.opset >= 24:
        return None
    cache, rank = ranked(node)
    update, start = node.operand(1), node.input(2)
    axis = node.attributes["axis"] % rank
    steps = b.op("Range", b.constant(0), b.size(update, axis), 1)
    places = b.reshape(steps, -1, *[1] * (rank - 1 - axis))
    if start is not None:
        places += b.reshape(start, -1, *[1] * (rank - 1))
    if node.attributes["mode"] == "circular":
        places %= b.sizes(cache, axis)
    places = b.op("Expand", places, b.op("Shape", update))
    return b.op("ScatterElements", cache, places, update, axis)


@knows("ScatterElements", "ScatterND", "ScatterUpdate")
def scatter_content(node: Node) -> KnownValue | None:
    """ScatterElements, ScatterND, ScatterUpdate: a vector with known places written to."""
    content, updates = known_of(node.inputs[0]).parts, known_of(node.inputs[2]).parts
    indices = known_of(node.inputs[1]).ints
    if content is None or indices is None or first(node).rank != 1:
        return None
    if node.attributes.get("reduction", "none") != "none":
        return None
    result = list(content)
    for at, index in enumerate(indices):
        result[index] = updates[at] if updates is not None else None
    return tuple(result)


def updates_of_elements(node: Node) -> must.Constraints:
    """ScatterElements: an update for each index."""
    _, indices, updates = must.operands(node, 3)
    why = "{} are no updates for indices {}"
    yield must.Ranks(indices, updates, 0, why, updates, indices)
    for one, other in zip(indices.shape or (), updates.shape or (), strict=False):
        yield must.Same(one, other, why, updates, indices)


must.hold(
    "ScatterElements",
    must.axes_in(3),
    must.one_element(3),
    indices_of_elements,
    updates_of_elements,
)
must.hold("ScatterND", places_in_data)
must.hold("ScatterUpdate", must.axes_in(3), must.one_element(3))


@guards("GatherND", "ScatterElements", "ScatterND")
def first_place(b: Builder, node: Node, counts: Value) -> SafeInputs:
    """GatherND, ScatterND, ScatterElements: the first place, of data that have one."""
    data, indices, *others = node.inputs
    shapes = [value.shape for value in node.inputs if value is not None]
    if data is None or indices is None or None in shapes or not is_surely_filled(data.dims):
        raise Unsafe("there may be no element to take or to replace")
    if contradiction(node) or not all(isinstance(d, int) for s in shapes for d in s or ()):
        raise Unsafe("sizes may not go together there")
    return [data, if_taken(b, counts, indices, 0), *others]
