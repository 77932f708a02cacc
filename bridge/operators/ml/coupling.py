"""Class probabilities of support vector machines. They use Platt's sigmoid for each pair of
classes, and then couple all pairs. The source is Wu, Lin and Weng, "Probability Estimates for
Multi-class Classification by Pairwise Coupling", section 4.4. The iteration is libsvm's, as in
ONNX's reference."""

import numpy as np

from bridge.neutral.arrays import spend
from bridge.neutral.graph import Body, Graph
from bridge.neutral.ports import Carried, Condition, Invariant, Yield
from bridge.neutral.types import BOOL, I32, TensorType
from bridge.operators import Builder, Value

LEAST = 1e-7
"""The minimum distance of a pair's probability from 0 and 1."""

MOST_ITERATIONS = 100
"""The number of iterations of the coupling, unless there are more classes than this number."""


def class_probabilities(
    b: Builder, scores: Value, prob_a: np.ndarray, prob_b: np.ndarray, classes: int
) -> Value:
    """The probabilities [rows, classes] from the scores [rows, pairs] of all pairs i < j, in order.
    `prob_a` and `prob_b` [pairs] are the parameters of Platt's sigmoids."""
    slope, offset = b.like(prob_a, scores), b.like(prob_b, scores)
    first = b.op("Sigmoid", -(scores * slope + offset))
    first = b.op("Clip", first, b.like(LEAST, scores), b.like(1 - LEAST, scores))
    pairs = _pairs(b, first, 1 - first, classes)
    start = b.expand(b.like(np.full((1, classes), 1 / classes), scores), b.sizes(scores, 0), 1)
    return _coupled(b, _quadratic(b, pairs, classes), start, classes)


def _pairs(b: Builder, first: Value, second: Value, classes: int) -> Value:
    """The probability [rows, classes, classes] of class i against class j; 0 if i is j."""
    count = classes * (classes - 1) // 2
    spend((classes, classes), np.int64, "the pairs of classes of a support vector machine")
    places = np.full((classes, classes), 2 * count)
    above = np.triu_indices(classes, 1)
    places[above] = np.arange(count)
    places.T[above] = np.arange(count) + count
    every = b.concat(1, first, second, b.cut(first, 1, 0, 1) * 0)
    return b.op("Gather", every, places, 1)


def _quadratic(b: Builder, pairs: Value, classes: int) -> Value:
    """The matrix Q [rows, classes, classes]; the coupling minimises p'Qp. The diagonal has the sums
    of the squares of all probabilities against a class. The other elements are the negative
    products of both directions."""
    other = b.transpose(pairs, 0, 2, 1)
    squares = b.op("ReduceSum", other * other, [2], keepdims=True)
    products = -(other * pairs)
    return b.where(b.constant(np.eye(classes, dtype=bool)), squares, products)


def _coupled(b: Builder, matrix: Value, start: Value, classes: int) -> Value:
    """The probabilities p at the minimum of p'Qp. A row stays the same when it is near enough, and
    the Loop ends when all rows are."""
    state, inside = Value(start.type, ["p"]), Value(matrix.type, ["Q"])
    graph = Graph([state, inside], name="coupling")
    with Builder(graph.nodes, b.name, b.target) as inner:
        product = inner.op("ReduceSum", inside * inner.unsqueeze(state, 1), [2], keepdims=False)
        total = inner.op("ReduceSum", state * product, [1], keepdims=True)
        worst = inner.op("ReduceMax", abs(product - total), [1], keepdims=True)
        near = worst < 0.005 / classes
        p = _step(inner, inside, state, product, total, classes)
        far = inner.cast(~near, I32)
        any_far = inner.op("ReduceMax", far, [0, 1], keepdims=False)
        graph.outputs = [inner.cast(any_far, BOOL), inner.where(near, state, p)]
    graph.outputs[0].type = TensorType(BOOL, ())
    count = b.constant(max(MOST_ITERATIONS, classes))
    body = Body(graph, [Carried(2, 1), Invariant(3)], [Condition(), Yield(0)])
    return b.node("Loop", [count, None, start, matrix], 1, {}, (body,)).outputs[0]


def _step(b: Builder, matrix: Value, p: Value, product: Value, total: Value, classes: int) -> Value:
    """Sets one class after another to the minimum of p'Qp, and scales all to a sum of 1. `product`
    is Qp, and `total` is p'Qp; both are updated with p."""
    one = b.like(1, p)
    for t in range(classes):
        line = b.op("Gather", matrix, t, 1)
        diagonal, here = b.cut(line, 1, t, t + 1), b.cut(product, 1, t, t + 1)
        more = (total - here) / diagonal
        scale = one + more
        unit = b.like(np.eye(classes)[[t]], p)
        p = (p + more * unit) / scale
        total = (total + more * (more * diagonal + 2 * here)) / (scale * scale)
        product = (product + more * line) / scale
    return p
