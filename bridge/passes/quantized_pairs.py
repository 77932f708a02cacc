"""QuantizeLinear and DequantizeLinear with one scale, as one QuantizeDequantize.

IR has FakeQuantize for the pair. OpenVINO's own reading writes five layers for it, which OpenVINO
joins again when it compiles the model.
"""

from dataclasses import dataclass

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Model, Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.rewrite import Pattern, Result, Rewriter
from bridge.neutral.types import F32, Element
from bridge.operators.quantization.quantize_dequantize import axis_of, limits
from bridge.passes.context import Context
from bridge.passes.dead import remove_dead_nodes
from bridge.passes.fake_quantize import has_levels, meets_integer_kernel, wants_all


def join_pairs(model: Model, context: Context) -> bool:
    """Joins the pairs of the model that integer kernels take, in place. Nothing else may take the
    integers between them."""
    everywhere = wants_all(context)

    def joined(b: Builder, node: Node, uses: Rewriter) -> Result:
        return _joined(b, node, uses, everywhere)

    ops = frozenset({"DequantizeLinear", "Max"})
    pattern = Pattern(joined, ops, context.target, uses=True)
    changed = Rewriter(model.graph).run(pattern)
    if changed:
        remove_dead_nodes(model.graph)
    return changed


@dataclass(frozen=True)
class _Scale:
    """A known scale and zero point, and the type of the integers."""

    scale: np.ndarray
    zero_point: np.ndarray
    element: Element


def _joined(b: Builder, node: Node, uses: Rewriter, everywhere: bool) -> Result:
    if node.op == "Max":
        return _without_copy(b, node, uses)
    integers = node.inputs[0]
    first = uses.single_use(integers, "QuantizeLinear")
    if first is None or integers is None or not _is_plain(first, node):
        return None
    x, *parameters = first.inputs
    copied = uses.single_use(x, "Max")
    copied = None if copied is None or len(copied.inputs) > 1 else copied
    x = copied.inputs[0] if copied else x
    scaling = _scale(parameters)
    if x is None or scaling is None or not _fits(x, scaling):
        return None
    if not everywhere and not meets_integer_kernel(x, node.outputs[0], uses.uses):
        return None
    if not all(map(_same, parameters, node.inputs[1:])):
        return None
    axis = first.attributes["axis"]
    narrow = _clipped(b, x, uses, scaling, axis)
    if narrow is not None:
        return narrow
    b.name = first.name
    notes = {"integers": integers.name, "second": node.name, "apart": copied is not None}
    return b.op("QuantizeDequantize", x, *parameters, axis=axis, **notes)


def _without_copy(b: Builder, node: Node, uses: Rewriter) -> Result:
    """A pair in place of its copy. Bridge writes copies around pairs for onnxruntime."""
    pair = uses.single_use(node.inputs[0], "FakeQuantize", "QuantizeDequantize")
    if pair is None or len(node.inputs) > 1:
        return None
    b.name = pair.name
    return b.op(pair.op, *pair.inputs, **pair.attributes)


def _is_plain(first: Node, second: Node) -> bool:
    """Whether both nodes have three inputs and the same axis, and no blocks or types of their
    own."""
    own = [
        {name: node.attributes.get(name) or None for name in ("axis", "block_size", "output_dtype")}
        for node in (first, second)
    ]
    plain = own[0] == own[1] and not own[0]["block_size"] and not own[0]["output_dtype"]
    return plain and len(first.inputs) == len(second.inputs) == 3


def _scale(parameters: list[Value | None]) -> _Scale | None:
    scale, zero_point = (known_of(value).array for value in parameters)
    element = parameters[1].element if parameters[1] is not None else None
    if scale is None or zero_point is None or element is None or scale.dtype != np.float32:
        return None
    return _Scale(scale, zero_point, element)


def _fits(x: Value, scaling: _Scale) -> bool:
    """Whether one FakeQuantize has levels for the integers, all of them different floats."""
    if scaling.element.kind not in ("int", "uint") or x.element is not F32:
        return False
    if not has_levels(x, scaling.element):
        return False
    low, high = limits(scaling.scale, scaling.zero_point, scaling.element)
    return bool(np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all())


def _same(one: Value | None, other: Value | None) -> bool:
    """Whether two values are known to be equal."""
    if one is other:
        return True
    a, b = known_of(one).array, known_of(other).array
    return a is not None and b is not None and a.dtype == b.dtype and np.array_equal(a, b)


def _clipped(b: Builder, x: Value, uses: Rewriter, scaling: _Scale, axis: int) -> Value | None:
    """A FakeQuantize of fewer levels than the type has, if limits that are levels clip `x`."""
    upper = uses.single_use(x, "Min")
    lower = None if upper is None else uses.single_use(upper.inputs[0], "Max")
    if upper is None or lower is None or len(upper.inputs) != 2 or len(lower.inputs) != 2:
        return None
    data, low, high = lower.inputs[0], lower.inputs[1], upper.inputs[1]
    start, end = known_of(low).array, known_of(high).array
    if data is None or low is None or high is None or start is None or end is None:
        return None
    if not start.size == end.size == scaling.scale.size:
        return None
    places = [axis_of(limit, x) for limit in (start, end)] if start.size > 1 else []
    if any(place is None or (place - axis) % len(x.dims) for place in places):
        return None
    step, zero_point = scaling.scale.ravel(), scaling.zero_point.ravel()
    first, last = (np.round(limit.ravel() / step) for limit in (start, end))
    lowest, highest = scaling.element.bounds
    steps = int(last[0] - first[0])
    if not 0 < steps < highest - lowest or (last - first != steps).any():
        return None
    if (first * step != start.ravel()).any() or (last * step != end.ravel()).any():
        return None
    if (first + zero_point < lowest).any() or (last + zero_point > highest).any():
        return None
    b.name = lower.name
    return b.op("FakeQuantize", data, low, high, low, high, levels=steps + 1)
