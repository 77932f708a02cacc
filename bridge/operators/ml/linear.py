"""Linear models and support vector machines of ai.onnx.ml."""

import numpy as np

from bridge.neutral.arrays import spend
from bridge.neutral.inference import infers
from bridge.neutral.types import F32, I64, STRING, TensorType, Type
from bridge.operators import Builder, Node, Refused, Result, Value, legalizes
from bridge.operators.ml.coupling import class_probabilities
from bridge.operators.ml.scores import (
    as_float,
    chosen,
    labels_of,
    numbers,
    positive_or_not,
    rows_of,
    transformed,
    with_second_class,
)


@legalizes("ai.onnx.ml::LinearRegressor", target="ir")
def linear_regressor(b: Builder, node: Node) -> Result:
    """LinearRegressor-1: x * coefficients' + intercepts."""
    targets = node.attributes["targets"]
    scores = _scores(b, node, as_float(b, node.operand(0)), targets)
    return b.cast(transformed(b, scores, node.attributes["post_transform"], targets), F32)


@infers("ai.onnx.ml::LinearRegressor")
def infer_linear_regressor(node: Node) -> list[Type]:
    """LinearRegressor-1: f32 [rows, targets]."""
    return [TensorType(F32, (rows_of(node), node.attributes["targets"]))]


@legalizes("ai.onnx.ml::LinearClassifier", target="ir")
def linear_classifier(b: Builder, node: Node) -> Result:
    """LinearClassifier-1: labels and scores. A single row of coefficients decides between two
    labels. PROBIT of this row follows ONNX's reference; onnxruntime fills only half of the
    result."""
    x = node.operand(0)
    labels = labels_of(node, "classlabels_ints", "classlabels_strings")
    intercepts = node.attributes.get("intercepts")
    rows = len(intercepts) if intercepts else max(len(labels), 1)
    features = x.shape[-1] if x.shape else None
    if not intercepts and isinstance(features, int):
        rows = len(node.attributes["coefficients"]) // features
    scores = b.cast(_scores(b, node, as_float(b, x), rows), F32)
    name = node.attributes["post_transform"]
    if rows > 1:
        return [chosen(b, scores, labels), transformed(b, scores, name, rows)]
    if len(labels) == 2:
        label = positive_or_not(b, scores, 0.0, (int(labels[0]), int(labels[1])))
        if name == "PROBIT":
            return [label, transformed(b, b.concat(1, -scores, scores), name, 2)]
        return [label, with_second_class(b, scores, name, True)]
    positive = int(labels[0]) if len(labels) else 1
    return [positive_or_not(b, scores, 0.0, (0, positive)), transformed(b, scores, name, 1)]


def _scores(b: Builder, node: Node, x: Value, rows: int) -> Value:
    coefficients = numbers(node, "coefficients").reshape(rows, -1)
    return _affine(b, x, coefficients, numbers(node, "intercepts"))


def _affine(b: Builder, x: Value, weights: np.ndarray, offsets: np.ndarray | None) -> Value:
    """x * weights' + offsets."""
    product = b.op("MatMul", x, b.like(weights, x), transpose_b=True)
    return product if offsets is None else product + offsets


@legalizes("ai.onnx.ml::SVMRegressor", target="ir")
def svm_regressor(b: Builder, node: Node) -> Result:
    """SVMRegressor-1: the weighted sum of kernels with the support vectors. The mode `one_class`
    returns the sign of the sum. As in onnxruntime, `post_transform` has no effect."""
    x = node.operand(0)
    attributes = node.attributes
    x = b.cast(x, F32)
    coefficients = numbers(node, "coefficients").reshape(1, -1)
    count = attributes["n_supports"]
    values = x
    if count:
        vectors = numbers(node, "support_vectors").reshape(count, -1)
        values = _kernel(b, node, x, vectors)
    score = _affine(b, values, coefficients, numbers(node, "rho")[:1])
    if attributes["one_class"]:
        return b.where(score > 0.0, b.constant(1.0), b.constant(-1.0))
    return score


@infers("ai.onnx.ml::SVMRegressor")
def infer_svm_regressor(node: Node) -> list[Type]:
    """SVMRegressor-1: f32 [rows, 1]."""
    return [TensorType(F32, (rows_of(node), 1))]


def _kernel(b: Builder, node: Node, x: Value, vectors: np.ndarray) -> Value:
    """The kernel of every row with every support vector: [rows, vectors]."""
    gamma, offset, degree = (*(node.attributes.get("kernel_params") or ()), 0.0, 0.0, 0.0)[:3]
    kind = node.attributes["kernel_type"]
    product = b.op("MatMul", x, b.constant(vectors, F32), transpose_b=True)
    if kind == "LINEAR":
        return product
    if kind == "RBF":
        squares = b.op("ReduceSum", x * x, [1], keepdims=True)
        theirs = b.constant((vectors.astype(np.float64) ** 2).sum(1), F32)
        twice = product * 2.0
        return b.op("Exp", (squares + theirs - twice) * -float(gamma))
    line = product * float(gamma) + float(offset)
    if kind == "POLY":
        return line ** float(degree)
    if kind == "SIGMOID":
        return b.op("Tanh", line)
    raise Refused(f"its kernel_type {kind} is unknown in ONNX")


@legalizes("ai.onnx.ml::SVMClassifier", target="ir")
def svm_classifier(b: Builder, node: Node) -> Result:
    """SVMClassifier-1: the winner of the one-against-one machines, with their scores or with the
    probabilities of all classes. Linear machines return their scores."""
    x = node.operand(0)
    attributes = node.attributes
    labels = labels_of(node, "classlabels_ints", "classlabels_strings")
    per_class = attributes.get("vectors_per_class")
    x = b.cast(x, F32)
    rho = numbers(node, "rho")
    name = attributes["post_transform"]
    if not per_class:
        coefficients = numbers(node, "coefficients").reshape(len(labels), -1)
        scores = _affine(b, x, coefficients, rho[:1])
        label = _linear_choice(b, scores, labels, attributes["coefficients"])
        return [label, transformed(b, scores, name, len(labels))]
    total = sum(per_class)
    kernels = _kernel(b, node, x, numbers(node, "support_vectors").reshape(total, -1))
    duels, votes_if, votes_else = _duels(numbers(node, "coefficients"), per_class)
    scores = _affine(b, kernels, duels, rho)
    won = b.cast(scores > 0.0, F32)
    lost = 1.0 - won
    votes = b.op("MatMul", won, b.constant(votes_if, F32)) + b.op(
        "MatMul", lost, b.constant(votes_else, F32)
    )
    if attributes.get("prob_a"):
        a, c = numbers(node, "prob_a"), numbers(node, "prob_b")
        scores = class_probabilities(b, scores, a, c, len(per_class))
    if attributes.get("prob_a") or len(labels) != 2:
        classes = len(per_class)
        columns = classes if attributes.get("prob_a") else classes * (classes - 1) // 2
        return [chosen(b, votes, labels), transformed(b, scores, name, columns)]
    return [chosen(b, votes, labels), with_second_class(b, scores, name, name != "NONE")]


def _linear_choice(
    b: Builder, scores: Value, labels: np.ndarray, coefficients: tuple[float, ...]
) -> Value:
    """The label [rows] of the largest score. As in onnxruntime, the second of two classes wins at
    each score above 0. If no coefficient is negative, the second class wins from a score of 0.5
    on."""
    best = chosen(b, scores, labels)
    if len(labels) != 2:
        return best
    most = b.op("ReduceMax", scores, [1], keepdims=False)
    over = most >= 0.5 if min(coefficients) >= 0 else most > 0.0
    return b.where(over, b.constant(int(labels[1])), best)


@infers("ai.onnx.ml::SVMClassifier")
def infer_svm_classifier(node: Node) -> list[Type]:
    """SVMClassifier-1: labels [rows] and scores [rows, classes, or pairs of classes]."""
    attributes = node.attributes
    names = attributes.get("classlabels_strings")
    classes = len(names or attributes["classlabels_ints"])
    scores = classes
    if attributes.get("vectors_per_class") and not attributes.get("prob_a"):
        # There is one score for each pair of classes. A single pair has two scores, except with
        # PROBIT.
        scores = classes * (classes - 1) // 2
        if classes == 2 and attributes["post_transform"] != "PROBIT":
            scores = 2
    rows = rows_of(node)
    return [TensorType(STRING if names else I64, (rows,)), TensorType(F32, (rows, scores))]


def _duels(
    coefficients: np.ndarray, per_class: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The weights of all kernels and the winner for each pair of classes."""
    count, total = len(per_class), sum(per_class)
    starts = np.concatenate([[0], np.cumsum(per_class)])
    by_opponent = coefficients.reshape(-1, total)
    spend((count, count, total + 2 * count), np.float64, "the votes of a support vector machine")
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
    weights = np.zeros((len(pairs), total))
    winners, losers = np.zeros((len(pairs), count)), np.zeros((len(pairs), count))
    for row, (i, j) in enumerate(pairs):
        mine, theirs = slice(starts[i], starts[i + 1]), slice(starts[j], starts[j + 1])
        weights[row, mine] = by_opponent[j - 1, mine]
        weights[row, theirs] = by_opponent[i, theirs]
        winners[row, i] = losers[row, j] = 1
    return weights, winners, losers
