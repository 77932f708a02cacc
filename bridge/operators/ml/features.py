"""Operators of ai.onnx.ml on features: Binarizer, Scaler, Normalizer, Imputer, encoders, ..."""

import math
from typing import NoReturn

import numpy as np

from bridge.neutral.inference import infers
from bridge.neutral.types import ANY, F32, I32, I64, STRING, TensorType, Type, low
from bridge.operators import (
    Builder,
    Node,
    Refused,
    Result,
    Value,
    legalizes,
    reads,
    required,
)
from bridge.operators.ml.scores import numbers, rows_of

STRINGS = "OpenVINO does not compute with strings; encode them before the model"


@legalizes("ai.onnx.ml::Binarizer", target="ir")
def binarizer(b: Builder, node: Node) -> Result:
    """Binarizer-1: 1 above the threshold, otherwise 0."""
    x = node.operand(0)
    return b.cast(x > node.attributes["threshold"], x.element)


@legalizes("ai.onnx.ml::Scaler", target="ir")
def scaler(b: Builder, node: Node) -> Result:
    """Scaler-1: (x - offset) * scale, as f32."""
    result = b.cast(node.operand(0), F32)
    for op, name in (("Sub", "offset"), ("Mul", "scale")):
        values = numbers(node, name)
        if values is not None:
            result = b.op(op, result, b.constant(values, F32))
    return result


@legalizes("ai.onnx.ml::Normalizer", target="ir")
def normalizer(b: Builder, node: Node) -> Result:
    """Normalizer-1: every row divided by a norm. The norm is its largest element with its sign, its
    sum of magnitudes, or its length."""
    x = node.operand(0)
    x = b.cast(x, F32)
    axes = b.constant([-1])
    norm = node.attributes["norm"]
    if norm == "MAX":
        size = b.op("ReduceMax", x, axes, keepdims=True)
    elif norm == "L1":
        size = b.op("ReduceSum", abs(x), axes, keepdims=True)
    else:
        size = b.op("Sqrt", b.op("ReduceSum", x * x, axes, keepdims=True))
    return x / b.where(size.equal(0.0), 1.0, size)


@legalizes("ai.onnx.ml::Imputer", target="ir")
def imputer(b: Builder, node: Node) -> Result:
    """Imputer-1: replaces each element equal to the replaced value by the imputed value. With
    several imputed values, each column has its own."""
    x = node.operand(0)
    kind = "float" if x.known_element.is_float else "int64"
    imputed = numbers(node, f"imputed_value_{kind}s")
    if imputed is None:
        raise Refused(f"it has no imputed_value_{kind}s for its input")
    replaced = node.attributes[f"replaced_value_{kind}"]
    nan = math.isnan(replaced)
    return b.where(b.op("IsNaN", x) if nan else x.equal(replaced), imputed, x)


@legalizes("ai.onnx.ml::ArrayFeatureExtractor", target="ir")
def array_feature_extractor(b: Builder, node: Node) -> Result:
    """ArrayFeatureExtractor-1: the features at the given indices of the last axis. A vector becomes
    a row."""
    x, y = required(node, 0, 1)
    if x.element is STRING:
        raise Refused(STRINGS)
    if x.rank == 1:
        x = b.unsqueeze(x, 0)
    return b.op("Gather", x, b.reshape(y, -1), -1)


@legalizes("ai.onnx.ml::FeatureVectorizer", target="ir")
def feature_vectorizer(b: Builder, node: Node) -> Result:
    """FeatureVectorizer-1: the first `inputdimensions` columns of every input side by side, as f32.
    All axes behind the first are columns, and 0 fills missing columns."""
    widths = node.attributes.get("inputdimensions") or (None,) * len(node.inputs)
    parts: list[Value] = []
    for x, width in zip(required(node, *range(len(node.inputs))), widths, strict=True):
        rows = b.cast(x, F32)
        if x.rank is not None and x.rank != 2:
            rows = b.reshape(rows, 1 if x.rank == 1 else 0, -1)
        if width is not None:
            if rows.shape is None or len(rows.shape) != 2 or low(rows.shape[1]) < width:
                rows = b.op("Pad", rows, [0, 0, 0, width])
            rows = b.cut(rows, 1, 0, width)
        parts.append(rows)
    return b.concat(1, *parts)


@infers("ai.onnx.ml::FeatureVectorizer")
def infer_feature_vectorizer(node: Node) -> list[Type]:
    """FeatureVectorizer-1: f32 [rows, sum of the widths]."""
    widths = node.attributes.get("inputdimensions")
    return [TensorType(F32, (rows_of(node), sum(widths) if widths else ANY))]


@legalizes("ai.onnx.ml::OneHotEncoder", target="ir")
def one_hot_encoder(b: Builder, node: Node) -> Result:
    """OneHotEncoder-1: a new last axis with a 1 at the index of the category."""
    x = node.operand(0)
    categories = numbers(node, "cats_int64s")
    if categories is None or x.element is STRING:
        raise Refused(STRINGS)
    return b.cast(b.unsqueeze(b.cast(x, I64), -1).equal(categories), F32)


@reads("ai.onnx.ml::LabelEncoder", format="onnx", until=1)
def read_label_encoder_1(b: Builder, node: Node) -> Value:
    """LabelEncoder-1: the index of a string in `classes_strings`, or the string at an index."""
    x = node.operand(0)
    words = tuple(node.attributes.get("classes_strings") or ())
    if x.element is None or not words:
        raise Refused("it has no classes_strings, or the element type of its input is not known")
    places, defaults = tuple(range(len(words))), ("default_int64", "default_string")
    given = {name: node.attributes[name] for name in defaults if name in node.attributes}
    ends = ("keys", "values") if x.element is STRING else ("values", "keys")
    given |= {f"{ends[0]}_strings": words, f"{ends[1]}_int64s": places}
    return b.op("ai.onnx.ml::LabelEncoder", x, **given)


@legalizes("ai.onnx.ml::LabelEncoder", target="ir")
def label_encoder(b: Builder, node: Node) -> Result:
    """LabelEncoder (1 to 4): the value for the key that equals the element, or the default without
    such a key. A key NaN matches NaN, but onnxruntime does this in version 4 only. The first of
    equal keys counts, as in onnxruntime, although version 4 specifies the last."""
    x = node.operand(0)
    keys, values, default = mapping(node)
    if x.element is STRING or keys is None or values is None:
        raise Refused(STRINGS)
    element = b.unsqueeze(x, -1)
    same = element.equal(keys)
    if keys.dtype.kind == "f" and np.isnan(keys).any():
        same |= b.op("IsNaN", element) & np.isnan(keys)
    hits = b.cast(same, I32)
    # With an axis counted from the front, engines can also reduce an empty tensor.
    last = -1 if x.rank is None else x.rank
    known = b.op("ReduceMax", hits, [last], keepdims=False)
    place = b.op("ArgMax", hits, axis=last, keepdims=False)
    encoded = b.op("Gather", values, place, 0)
    return b.where(known.equal(b.constant(0, I32)), default, encoded)


def mapping(node: Node) -> tuple[np.ndarray | None, np.ndarray | None, np.ndarray]:
    """The keys, the values and the default of a LabelEncoder. Keys or values are None if they are
    strings."""
    attributes = node.attributes

    def listed(prefix: str) -> np.ndarray | None:
        tensor = attributes.get(f"{prefix}_tensor")
        if tensor is not None:
            return None if tensor.element is STRING else tensor.array().reshape(-1)
        for kind, dtype in (("floats", np.float32), ("int64s", np.int64)):
            if attributes.get(f"{prefix}_{kind}"):
                return np.array(attributes[f"{prefix}_{kind}"], dtype)
        return None

    values = listed("values")
    tensor = attributes.get("default_tensor")
    if values is None:
        default = np.zeros((), np.int64)
    elif tensor is not None:
        default = tensor.array().reshape(()).astype(values.dtype)
    elif values.dtype == np.float32:
        default = np.array(attributes["default_float"], np.float32)
    else:
        default = np.array(attributes["default_int64"], values.dtype)
    return listed("keys"), values, default


@legalizes("ai.onnx.ml::CategoryMapper", target="ir")
def category_mapper(b: Builder, node: Node) -> NoReturn:
    """Refuses CategoryMapper-1, because its input or its output is a string tensor."""
    raise Refused(STRINGS)


@legalizes("ai.onnx.ml::CastMap", "ai.onnx.ml::DictVectorizer", "ai.onnx.ml::ZipMap", target="ir")
def maps(b: Builder, node: Node) -> NoReturn:
    """Refuses CastMap, DictVectorizer and ZipMap, because IR has no maps. A ZipMap for an output of
    the model is already removed."""
    raise Refused(
        "only outputs of the model can be maps, with different keys; export it without maps"
    )
