"""The outputs of a single node for known inputs, by `onnx.reference`, the standard's evaluator."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from bridge.neutral.graph import Node
from bridge.neutral.inference.computed import Array
from bridge.onnx_format.inference import spelled_node

LARGEST = 1 << 16
"""The largest product of a computed node's whole attributes, such as kernels and pads. Beyond it,
the node may take any time."""

NOT_COMPUTED: Mapping[str, str] = {
    "Attention": "onnxruntime gives other numbers if all places of a row are masked",
    "Bernoulli": "chance decides",
    "CastLike": "onnx.reference fails for its attributes",
    "DFT": "onnxruntime rounds otherwise",
    "DeformConv": "onnx.reference fails for places outside",
    "DequantizeLinear": "it stands for a type that kernels compute in",
    "Dropout": "chance decides where it trains",
    "DynamicQuantizeLinear": "it stands for a type that kernels compute in",
    "FlexAttention": "onnxruntime has no such operator to compare with",
    "GridSample": "onnx.reference fails for places outside",
    "ImageDecoder": "it needs a library of images",
    "LpNormalization": "onnx.reference adds numbers with their signs",
    "MaxUnpool": "onnx.reference puts elements in other places",
    "Multinomial": "chance decides",
    "NonMaxSuppression": "onnx.reference takes long for many boxes",
    "QLinearConv": "it stands for a type that kernels compute in",
    "QLinearMatMul": "it stands for a type that kernels compute in",
    "QuantizeLinear": "it stands for a type that kernels compute in",
    "RandomNormalLike": "chance decides",
    "RandomUniformLike": "chance decides",
    "ReduceLogSumExp": "onnxruntime overflows earlier",
    "Resize": "onnx.reference takes other places with align_corners",
    "RoiAlign": "onnx.reference takes any number of samples",
    "STFT": "onnxruntime rounds otherwise",
    "Scatter": "onnx.reference does not have it",
    "SoftmaxCrossEntropyLoss": "onnxruntime overflows earlier",
    "SwiGLU": "onnxruntime has no such operator to compare with",
}
"""Operators that are not computed, with the reason."""

TYPES = frozenset({
    "bool", "float32", "float64", "int16", "int32", "int64", "int8", "uint16", "uint32", "uint64",
    "uint8",
})  # fmt: skip
"""Types with the same results in all engines."""

MAY_OVERFLOW: Mapping[str, int] = {
    "Abs": 1, "Add": 2, "CumProd": 1, "CumSum": 1, "Gemm": 3, "MatMul": 2, "Mul": 2, "Neg": 1,
    "Pow": 2, "ReduceL1": 1, "ReduceProd": 1, "ReduceSum": 1, "ReduceSumSquare": 1, "Sub": 2,
}  # fmt: skip
"""Operators whose integers may overflow, with different results in engines, and the number of their
operands."""


def compute_node(node: Node, arrays: Sequence[Array]) -> Sequence[Array]:
    """The outputs of a node for these inputs. () if engines differ, or if the node cannot be
    computed."""
    if math.prod(abs(n) or 1 for n in _numbers(node.attributes.values())) > LARGEST:
        return ()
    spelled = spelled_node(node)
    if spelled is None or spelled[0].domain or spelled[0].type in NOT_COMPUTED:
        return ()
    spelling, proto, named = spelled
    places = {value: place for place, value in enumerate(node.inputs) if value is not None}
    given = {name: arrays[places[value]] for name, value in named.items()}
    if spelling.type == "Cast":  # A narrow real number is exact in a wider type.
        given = {name: _widened(array) for name, array in given.items()}
    if not all(array is None or _is_plain(array) for array in given.values()):
        return ()
    result = _run(proto, given)
    operands = proto.input[: MAY_OVERFLOW.get(spelling.type, 0)]
    if operands and _differ(result, _run(proto, {**given, **_as_reals(given, operands)})):
        return ()
    if spelling.type == "Cast" and not _holds(result, arrays[0]):
        return ()
    return result if all(map(_is_plain, result)) else ()


def _is_plain(array: Array) -> bool:
    """Whether all engines compute alike with numbers of this type and range."""
    return array is not None and array.dtype.name in TYPES and bool(np.isfinite(array).all())


def _widened(array: Array) -> Array:
    narrow = array is not None and array.dtype.name in ("float16", "bfloat16")
    return array.astype(np.float32) if array is not None and narrow else array


def _numbers(values: Any) -> list[int]:
    """The whole numbers among attributes."""
    found: list[int] = []
    for value in values:
        if isinstance(value, tuple | list):
            found += _numbers(value)
        elif isinstance(value, int):
            found.append(value)
    return found


def _as_reals(given: Mapping[str, Array], names: Sequence[str]) -> dict[str, Array]:
    """The inputs in f64, which can hold results that are too large for integers."""
    arrays = {name: given[name] for name in names if name}
    return {name: None if a is None else a.astype(np.float64) for name, a in arrays.items()}


def _run(proto: onnx.NodeProto, given: Mapping[str, Array]) -> Sequence[Array]:
    """The outputs of ONNX's reference evaluator; () if it fails."""
    whole = all(array is None or array.dtype.kind in "biu" for array in given.values())
    compute = WITHOUT_EVALUATOR.get(proto.op_type, _evaluated)
    try:
        # No engine agrees with another on a division of whole numbers by 0.
        with np.errstate(all="raise" if whole else "ignore"):
            found = compute(proto, given)
    except Exception:  # It raises errors of any kind for a node that contradicts itself.
        return ()
    return [np.asarray(x) if isinstance(x, np.ndarray | np.generic) else None for x in found]


def _evaluated(proto: onnx.NodeProto, given: Mapping[str, Any]) -> Sequence[Any]:
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(proto).run(None, dict(given))  # type: ignore[return-value]


def _joined(proto: onnx.NodeProto, given: Mapping[str, Any]) -> Sequence[Any]:
    return [np.concatenate([given[name] for name in proto.input], proto.attribute[0].i)]


def _sliced(proto: onnx.NodeProto, given: Mapping[str, Any]) -> Sequence[Any]:
    inputs: list[Any] = [given.get(name) for name in proto.input]
    x, starts, ends, axes, steps = [*inputs, None, None][:5]
    axes = range(len(starts)) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    places = [slice(None)] * x.ndim
    for axis, *limits in zip(axes, starts, ends, steps, strict=True):
        places[axis] = slice(*limits)
    return [x[tuple(places)]]


def _unsqueezed(proto: onnx.NodeProto, given: Mapping[str, Any]) -> Sequence[Any]:
    x, axes = [given[name] for name in proto.input]
    return [np.expand_dims(x, tuple(axes))]


WITHOUT_EVALUATOR: Mapping[str, Callable[[onnx.NodeProto, Mapping[str, Any]], Sequence[Any]]] = {
    "Concat": _joined, "Slice": _sliced, "Unsqueeze": _unsqueezed,
}  # fmt: skip
"""Operators that exporters write around the weights of recurrent layers. numpy has them, and to
import the evaluator takes a quarter of a small conversion."""


def _differ(one: Sequence[Array], other: Sequence[Array]) -> bool:
    """Whether whole numbers are others when they are computed in a wider type."""
    return len(one) != len(other) or any(
        a is None or b is None or a.shape != b.shape or (a.dtype.kind in "iu" and (a != b).any())
        for a, b in zip(one, other, strict=True)
    )


def _holds(result: Sequence[Array], given: Array) -> bool:
    """Whether a type of whole numbers holds all numbers that were converted to it."""
    if given is None or len(result) != 1 or result[0] is None or result[0].dtype.kind not in "iu":
        return True
    info = np.iinfo(result[0].dtype)
    return all(info.min <= math.trunc(x) <= info.max for x in given.reshape(-1).tolist())
