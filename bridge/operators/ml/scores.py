"""Steps from scores to results in models of ai.onnx.ml: transforms, the second class, labels."""

import math
from typing import Any

import numpy as np

from bridge.neutral.inference import first
from bridge.neutral.types import ANY, BOOL, F32, Dim
from bridge.operators import Builder, Node, Refused, Value


def transformed(b: Builder, scores: Value, name: str, columns: int) -> Value:
    """Applies `post_transform` to scores [rows, columns]. ONNX specifies no formulas. As in
    onnxruntime, only PROBIT changes a single column."""
    match "NONE" if columns == 1 and name != "PROBIT" else name:
        case "NONE":
            return scores
        case "LOGISTIC":
            return b.op("Sigmoid", scores)
        case "SOFTMAX":
            return b.op("Softmax", scores, axis=1)
        case "SOFTMAX_ZERO":
            return _softmax_zero(b, scores)
        case "PROBIT":
            return _probit(b, scores)
    raise Refused(f"its post_transform {name} is unknown in ONNX")


def _softmax_zero(b: Builder, scores: Value) -> Value:
    """Softmax with a weight of 0 for each score of 0."""
    most = b.op("ReduceMax", scores, [1], keepdims=True)
    zero = abs(scores) < 1e-7
    weights = b.op("Exp", scores - most)
    weights = b.where(zero, scores * b.op("Exp", -most), weights)
    return weights / b.op("ReduceSum", weights, [1], keepdims=True)


def _probit(b: Builder, scores: Value) -> Value:
    """The quantile function of the normal distribution. It uses the approximation of the inverse
    error function in onnxruntime and in ONNX's reference."""
    x = scores * 2.0 - 1.0
    log = b.op("Log", b.like(1.0, x) - x * x)
    v = log * 0.5 + 2 / (math.pi * 0.147)
    size = b.op("Sqrt", b.op("Sqrt", v * v - log * (1 / 0.147)) - v)
    return b.op("Sign", x) * size * 1.41421356


def as_float(b: Builder, x: Value) -> Value:
    """Features as f32, unless they are already floats."""
    return x if x.element is not None and x.element.is_float else b.cast(x, F32)


def labels_of(node: Node, ints: str, strings: str) -> np.ndarray:
    """The class labels of a classifier; Refused if they are strings."""
    if node.attributes.get(strings):
        raise Refused(
            "its labels are strings, which OpenVINO does not compute with; export integer labels"
        )
    return np.array(node.attributes.get(ints) or (), np.int64)


def chosen(b: Builder, scores: Value, labels: np.ndarray) -> Value:
    """The label [rows] of the largest score of each row."""
    best = b.op("ArgMax", scores, axis=1, keepdims=False)
    if np.array_equal(labels, np.arange(len(labels))):
        return best
    return b.op("Gather", labels, best, 0)


def positive_or_not(b: Builder, scores: Value, threshold: float, labels: tuple[int, int]) -> Value:
    """One of two labels [rows], selected by a single score [rows, 1]."""
    over = b.squeeze(scores, 1) > threshold
    return b.where(b.cast(over, BOOL), b.constant(labels[1]), b.constant(labels[0]))


def with_second_class(b: Builder, score: Value, name: str, complement: bool) -> Value:
    """Scores [rows, 2] of a classifier with a single score [rows, 1], as in onnxruntime. The first
    column is the complement or the negative of the score. LOGISTIC always uses the negative. PROBIT
    returns [rows, 1], as in ONNX's reference. In onnxruntime, the second column is then not
    initialized."""
    if name == "PROBIT":
        return transformed(b, score, name, 1)
    if name == "LOGISTIC":
        return transformed(b, b.concat(1, -score, score), name, 2)
    other = 1 - score if complement else -score
    return b.concat(1, other, score)


def numbers(node: Node, name: str) -> Any:
    """A list attribute as an array; None if it is absent or empty."""
    values = node.attributes.get(name)
    return np.array(values) if values else None


def rows_of(node: Node) -> Dim:
    """The number of rows of features in input 0; a vector is one row."""
    shape = first(node).shape
    return 1 if shape is not None and len(shape) < 2 else ANY if shape is None else shape[0]
