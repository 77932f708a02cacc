"""What a single node gives for known inputs, by `onnx.reference`, the standard's own evaluator."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from bridge.neutral.graph import Node
from bridge.onnx_format.inference import spelled_node

Array = np.ndarray | None

LARGEST = 1 << 16
"""The product of the whole numbers among a node's attributes, such as kernels and pads, from which
on the node is not computed: it may take any time."""

NOT_COMPUTED: Mapping[str, str] = {
    "Attention": "onnxruntime gives other numbers where all places of a row are masked",
    "Bernoulli": "chance decides",
    "DFT": "onnxruntime rounds otherwise",
    "DeformConv": "onnx.reference fails for places outside",
    "DequantizeLinear": "it stands for a type that kernels compute in",
    "DynamicQuantizeLinear": "it stands for a type that kernels compute in",
    "FlexAttention": "onnxruntime has no such operator to compare with",
    "GridSample": "onnx.reference fails for places outside",
    "ImageDecoder": "it needs a library of images",
    "MaxUnpool": "onnx.reference puts elements in other places",
    "Multinomial": "chance decides",
    "QLinearConv": "it stands for a type that kernels compute in",
    "QLinearMatMul": "it stands for a type that kernels compute in",
    "QuantizeLinear": "it stands for a type that kernels compute in",
    "RandomNormalLike": "chance decides",
    "RandomUniformLike": "chance decides",
    "Resize": "onnx.reference takes other places with align_corners",
    "RoiAlign": "onnx.reference takes any number of samples",
    "STFT": "onnxruntime rounds otherwise",
    "Scatter": "onnx.reference does not have it",
    "SwiGLU": "onnxruntime has no such operator to compare with",
}
"""Operators that stay as they are though their inputs are known, and why."""

TYPES = frozenset("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64".split())
"""Types in which engines compute alike."""

MAY_OVERFLOW = frozenset(
    "Abs Add BitShift CumProd CumSum Einsum Gemm MatMul Mul Neg Pow ReduceL1 ReduceProd ReduceSum "
    "ReduceSumSquare Sub Sum".split()
)
"""Operators that may give whole numbers that their type does not hold. Engines differ there."""


def compute_node(node: Node, arrays: Sequence[Array]) -> Sequence[Array]:
    """The outputs of a node of ONNX for these inputs, in their types; () where engines do not
    agree on them, or where it is not known what they are."""
    if math.prod(abs(n) or 1 for n in _numbers(node.attributes.values())) > LARGEST:
        return ()
    spelled = spelled_node(node)
    if spelled is None or spelled[0].domain or spelled[0].type in NOT_COMPUTED:
        return ()
    spelling, proto, named = spelled
    places = {value: place for place, value in enumerate(node.inputs) if value is not None}
    given = {name: arrays[places[value]] for name, value in named.items()}
    # A narrow real number is exact in a wide type.
    widens = spelling.type == "Cast"
    for array in given.values():
        name = "" if array is None else array.dtype.name
        if name not in TYPES and not (widens and name in ("float16", "bfloat16")):
            return ()
        if array is not None and array.dtype.kind == "f" and np.isnan(array).any():
            return ()
    result = _run(proto, given)
    if spelling.type in MAY_OVERFLOW and _differ(result, _run(proto, given, np.float64)):
        return ()
    if spelling.type in ("Cast", "CastLike") and not _holds(result, arrays[0]):
        return ()
    return result if all(a is not None and a.dtype.name in TYPES for a in result) else ()


def _numbers(values: Any) -> list[int]:
    """The whole numbers among attributes."""
    found: list[int] = []
    for value in values:
        if isinstance(value, tuple | list):
            found += _numbers(value)
        elif isinstance(value, int):
            found.append(value)
    return found


def _run(
    proto: onnx.NodeProto, given: Mapping[str, Array], dtype: type[np.generic] | None = None
) -> Sequence[Array]:
    """What the evaluator gives, if wished with whole numbers in another type; () where it fails."""
    from onnx.reference import ReferenceEvaluator

    if dtype is not None:
        given = {
            name: array.astype(dtype) if array is not None and array.dtype.kind in "iu" else array
            for name, array in given.items()
        }
    whole = all(array is None or array.dtype.kind in "biu" for array in given.values())
    try:
        # No engine agrees with another on a division of whole numbers by 0.
        with np.errstate(all="raise" if whole else "ignore"):
            found = ReferenceEvaluator(proto).run(None, dict(given))
    except Exception:  # It raises what it likes for a node that contradicts itself.
        return ()
    return [np.asarray(x) if isinstance(x, np.ndarray | np.generic) else None for x in found]


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
