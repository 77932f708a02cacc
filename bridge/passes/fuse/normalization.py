"""LayerNormalization and InstanceNormalization: MVN, scaled and shifted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.dims import known_axes
from bridge.neutral.types import BF16, F16, F32, Element, is_static
from bridge.passes.fuse.uses import Uses, along_channels, either_way, trailing


@dataclass(frozen=True)
class _Normalized:
    """An MVN, its input, and what it is scaled by and shifted by."""

    mvn: Node
    x: Value
    axes: tuple[int, ...]
    scale: Value | None
    bias: Value | None


def layer_normalization(b: Builder, node: Node, uses: Uses) -> Value | None:
    """Over the last axes, with a scale, and perhaps a bias, of their shape. MVN computes in f32
    what is f16, as LayerNormalization does by its stash_type."""
    found = _normalized(node, uses)
    if found is None or b.target is None or b.target.opset < 17:
        return None
    x = found.x
    rank, shape = len(x.dims), x.dims[found.axes[0] :]
    if found.axes != tuple(range(found.axes[0], rank)) or not is_static(shape):
        return None
    if found.scale is None and found.axes[0] == 2 and rank > 3:
        return None  # An image's.
    parameters: list[Value] = []
    for value in (found.scale, found.bias):
        parameter = None if value is None else trailing(b, value, shape)
        if value is not None and parameter is None:
            return None
        parameters += [parameter] if parameter is not None else []
    if not parameters:
        parameters.append(b.filled(1, shape, x.element))
    b.name = found.mvn.name
    return b.op(
        "LayerNormalization", x, *parameters, axis=found.axes[0] - rank,
        epsilon=found.mvn.attributes["eps"], stash_type=F32,
    )  # fmt: skip


def instance_normalization(b: Builder, node: Node, uses: Uses) -> Value | None:
    """Over all axes behind the channels, with a scale and a bias for each channel."""
    found = _normalized(node, uses)
    if found is None or found.x.element is not found.mvn.outputs[0].element:
        return None
    x = found.x
    if x.element not in (F32, F16) or len(x.dims) < 2:
        return None
    rank = len(x.dims)
    if rank < 3:
        return None
    channels = x.dims[1]
    if found.axes != tuple(range(2, rank)) or not isinstance(channels, int):
        return None
    if found.scale is None and (rank < 4 or found.bias is not None):
        return None
    parameters = []
    for value, otherwise in ((found.scale, 1), (found.bias, 0)):
        parameter = None if value is None else along_channels(b, value, channels, rank)
        if value is not None and parameter is None:
            return None
        if parameter is None:
            parameter = b.constant(np.full(channels, otherwise), x.element)
        parameters.append(parameter)
    b.name = found.mvn.name
    return b.op("InstanceNormalization", x, *parameters, epsilon=found.mvn.attributes["eps"])


def _normalized(node: Node, uses: Uses) -> _Normalized | None:
    """MVN, MVN · scale or MVN · scale + bias, of which a node is the last."""
    if node.op == "MVN":
        return _of_mvn(node, None, None)
    for value, parameter in either_way(node):
        if node.op == "Mul":
            mvn = _mvn(value, uses)
            if mvn is not None:
                return _of_mvn(mvn, parameter, None)
            continue
        product = uses.single_use(value, "Mul")
        for inner, scale in () if product is None else either_way(product):
            mvn = _mvn(inner, uses)
            if mvn is not None:
                return _of_mvn(mvn, scale, parameter)
    return None


def _mvn(value: Value, uses: Uses) -> Node | None:
    """The MVN that gives a value, perhaps converted back to the type of its input."""
    back = uses.single_use(value, "Cast")
    if back is None:
        return uses.single_use(value, "MVN")
    mvn = uses.single_use(back.inputs[0], "MVN")
    if mvn is None or _source(mvn, back.attributes["to"]) is mvn.inputs[0]:
        return None
    return mvn


def _source(mvn: Node, element: Element | None) -> Value | None:
    """What an MVN normalises, before it was converted to f32 from `element`."""
    value = mvn.inputs[0]
    maker = value.producer if value is not None else None
    if maker is None or maker.op != "Cast" or maker.attributes["to"] is not F32:
        return value
    inner = maker.inputs[0]
    narrow = inner is not None and inner.element is element and element in (F16, BF16)
    return inner if narrow else value


def _of_mvn(mvn: Node, scale: Value | None, bias: Value | None) -> _Normalized | None:
    element = scale.element if scale is not None else mvn.outputs[0].element
    x, attributes = _source(mvn, element), mvn.attributes
    if x is None or x.shape is None or element not in (F32, F16, BF16):
        return None
    if not attributes["normalize_variance"] or attributes["eps_mode"].upper() != "INSIDE_SQRT":
        return None
    axes = known_axes(mvn.inputs[1], len(x.shape))
    return _Normalized(mvn, x, tuple(sorted(axes)), scale, bias) if axes else None
