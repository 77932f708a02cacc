"""Tree ensembles of ai.onnx.ml. All rows descend in all trees at the same time, one level per
step."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bridge.neutral.arrays import zeros
from bridge.neutral.inference import infers
from bridge.neutral.types import BOOL, F32, F64, I64, STRING, TensorType, Type
from bridge.operators import Builder, Node, Refused, Result, Value, legalizes
from bridge.operators.bodies import Values, along
from bridge.operators.ml.scores import (
    as_float,
    chosen,
    labels_of,
    positive_or_not,
    rows_of,
    transformed,
    with_second_class,
)

MODES = {
    "BRANCH_LEQ": "LessOrEqual", "BRANCH_LT": "Less", "BRANCH_GTE": "GreaterOrEqual",
    "BRANCH_GT": "Greater", "BRANCH_EQ": "Equal", "BRANCH_NEQ": "Equal",
}  # fmt: skip
"""The comparison of each mode; BRANCH_NEQ is the negation of a comparison."""

NEWER_MODES = [*MODES, "BRANCH_MEMBER"]
TRANSFORMS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"]
AGGREGATES = ["AVERAGE", "SUM", "MIN", "MAX"]


@dataclass
class Forest:
    """The nodes of all trees, with the leaves. `yes` and `no` are the next nodes; the next node of
    a leaf is the leaf itself. `weights` [nodes, targets] are 0 except in leaves. `weighted` marks
    the weights that the file has."""

    modes: list[str]
    features: np.ndarray
    splits: np.ndarray
    yes: np.ndarray
    no: np.ndarray
    missing: np.ndarray
    roots: np.ndarray
    weights: np.ndarray
    weighted: np.ndarray
    members: dict[int, list[float]] = field(default_factory=dict)

    def depth(self) -> int:
        """The longest path from a root to a leaf."""
        level, steps = set(self.roots.tolist()), 0
        while True:
            below = {int(n) for i in level for n in (self.yes[i], self.no[i]) if n != i}
            if not below:
                return steps
            if steps > len(self.yes):
                raise Refused("one of its trees has a cycle")
            level, steps = below, steps + 1


def _attribute(node: Node, name: str) -> Any:
    """A list of numbers, from a list or a tensor attribute."""
    tensor = node.attributes.get(f"{name}_as_tensor")
    if tensor is not None:
        return tensor.array().reshape(-1)
    values = node.attributes.get(name)
    return None if values is None else np.array(values)


def _forest(node: Node, prefix: str, targets: int) -> Forest:
    """The forest of TreeEnsembleRegressor (`target`) or TreeEnsembleClassifier (`class`)."""
    attributes = node.attributes
    trees, ids = attributes["nodes_treeids"], attributes["nodes_nodeids"]
    place = {key: i for i, key in enumerate(zip(trees, ids, strict=True))}
    count = len(place)
    modes = list(attributes["nodes_modes"])
    numbers = np.arange(count)

    def next_nodes(name: str) -> np.ndarray:
        ends = attributes[name]
        return np.array(
            [i if modes[i] == "LEAF" else place[trees[i], ends[i]] for i in numbers.tolist()]
        )

    weights = zeros((count, targets), np.float64, repr(node))
    weighted = np.zeros((count, targets), bool)
    for tree, id, target, weight in zip(
        attributes[f"{prefix}_treeids"],
        attributes[f"{prefix}_nodeids"],
        attributes[f"{prefix}_ids"],
        _attribute(node, f"{prefix}_weights"),
        strict=True,
    ):
        weights[place[tree, id], target] += weight
        weighted[place[tree, id], target] = True
    first: dict[int, int] = {}
    yes, no = next_nodes("nodes_truenodeids"), next_nodes("nodes_falsenodeids")
    inner = set(yes[yes != numbers].tolist()) | set(no[no != numbers].tolist())
    for index, tree in enumerate(trees):
        if index not in inner:
            first.setdefault(tree, index)
    missing = attributes.get("nodes_missing_value_tracks_true") or (0,) * count
    return Forest(
        modes,
        np.array(attributes["nodes_featureids"]),
        _attribute(node, "nodes_values"),
        yes,
        no,
        np.array(missing, bool),
        np.array(list(first.values())),
        weights,
        weighted,
    )


def _newer_forest(node: Node) -> Forest:
    """The forest of TreeEnsemble-5. The file numbers leaves separately, but here they follow the
    nodes."""
    attributes = node.attributes
    splits = attributes["nodes_splits"].array()
    count = len(splits)
    targets, leaf_weights = attributes["leaf_targetids"], attributes["leaf_weights"].array()
    leaves = len(targets)

    def next_nodes(ends: str, leafs: str) -> np.ndarray:
        ahead = np.array(attributes[ends]) + count * np.array(attributes[leafs])
        return np.concatenate([ahead, count + np.arange(leaves)])

    def padded(values: Any) -> np.ndarray:
        return np.concatenate([np.array(values), np.zeros(leaves)])

    modes = [NEWER_MODES[m] for m in attributes["nodes_modes"].array().tolist()] + ["LEAF"] * leaves
    width = attributes.get("n_targets") or max(targets) + 1
    weights = zeros((count + leaves, width), np.float64, repr(node))
    weights[count + np.arange(leaves), list(targets)] = leaf_weights
    weighted = np.zeros(weights.shape, bool)
    weighted[count + np.arange(leaves), list(targets)] = True
    missing = attributes.get("nodes_missing_value_tracks_true") or (0,) * count
    forest = Forest(
        modes,
        padded(attributes["nodes_featureids"]).astype(np.int64),
        padded(splits),
        next_nodes("nodes_truenodeids", "nodes_trueleafs"),
        next_nodes("nodes_falsenodeids", "nodes_falseleafs"),
        padded(missing).astype(bool),
        np.array(attributes["tree_roots"]),
        weights,
        weighted,
    )
    sets = attributes.get("membership_values")
    if sets is not None:
        # There is one set for each member node, in order, and NaN ends each set.
        groups: list[list[float]] = [[]]
        for value in sets.array().tolist():
            if value != value:
                groups.append([])
            else:
                groups[-1].append(value)
        places = [i for i, mode in enumerate(modes) if mode == "BRANCH_MEMBER"]
        forest.members = dict(zip(places, groups, strict=False))
    return forest


def _leaves(b: Builder, forest: Forest, x: Value) -> Value:
    """The leaf [rows, trees] that each row reaches in each tree."""
    start = b.expand(b.unsqueeze(b.constant(forest.roots.astype(np.int64)), 0), b.sizes(x, 0), 1)
    depth = forest.depth()
    if depth == 0:
        return start

    def step(b: Builder, parts: Values, states: Values, fixed: Values) -> tuple[Values, Values]:
        (at,), (x,) = states, fixed

        def of_node(values: np.ndarray, element: Any = None) -> Value:
            return b.op("Gather", b.constant(values, element), at, 0)

        value = b.op("GatherElements", x, of_node(forest.features.astype(np.int64)), axis=1)
        takes = _condition(b, forest, value, of_node)
        if forest.missing.any():
            absent = b.op("IsNaN", value) & of_node(forest.missing, BOOL)
            takes |= absent
        yes, no = (of_node(way.astype(np.int64)) for way in (forest.yes, forest.no))
        return [b.where(takes, yes, no)], []

    levels = b.constant(np.arange(depth))
    (at,), _ = along(b, step, [levels], [start], [x])
    return at


def _condition(b: Builder, forest: Forest, value: Value, of_node: Any) -> Value:
    """Whether the conditions of the nodes hold."""
    used = sorted({m for m in forest.modes if m != "LEAF"})
    unknown = [m for m in used if m not in MODES and m != "BRANCH_MEMBER"]
    if unknown:
        raise Refused(f"its mode {unknown[0]} is unknown in ONNX")

    def holds(mode: str) -> Value:
        if mode == "BRANCH_MEMBER":
            met = _membership(b, forest, value, of_node)
        else:
            met = b.op(MODES[mode], value, of_node(forest.splits, value.element))
            if mode == "BRANCH_NEQ":
                met = ~met
        if len(used) == 1:
            return met
        mine: Value = of_node(np.array([m == mode for m in forest.modes]), BOOL)
        return met & mine

    return b.fold("Or", map(holds, used))


def _membership(b: Builder, forest: Forest, value: Value, of_node: Any) -> Value:
    width = max((len(m) for m in forest.members.values()), default=1)
    table = np.full((len(forest.modes), width), np.nan)
    for index, members in forest.members.items():
        table[index, : len(members)] = members
    same = b.unsqueeze(value, 2).equal(of_node(table, value.element))
    return b.op("ReduceMax", b.cast(same, F32), [2], keepdims=False) > 0.0


def _aggregated(b: Builder, forest: Forest, x: Value, how: str) -> Value:
    """The aggregated weights of the reached leaves over all trees: [rows, targets]. As in
    onnxruntime, a target without a leaf has 0."""
    weights = forest.weights
    limit = np.finfo(np.float32).max * (1 if how == "MIN" else -1)
    if how in ("MIN", "MAX"):
        weights = np.where(forest.weighted, weights, limit)
    reached = b.op("Gather", b.like(weights, x), _leaves(b, forest, x), 0)
    op = {"SUM": "ReduceSum", "AVERAGE": "ReduceSum", "MIN": "ReduceMin", "MAX": "ReduceMax"}[how]
    total = b.op(op, reached, b.constant([1]), keepdims=False)
    if how == "AVERAGE":
        return total / len(forest.roots)
    if how == "SUM" or forest.weighted[forest.yes == np.arange(len(forest.yes))].all():
        return total
    return b.where(total.equal(limit), 0.0, total)


def _features(b: Builder, x: Value) -> Value:
    """Rows of features; a vector is one row."""
    x = as_float(b, x)
    return b.reshape(x, 1, -1) if x.rank == 1 else x


@legalizes("ai.onnx.ml::TreeEnsembleRegressor", target="ir")
def regressor(b: Builder, node: Node) -> Result:
    """TreeEnsembleRegressor (1 to 5): the aggregated weights, plus the base values."""
    attributes = node.attributes
    targets = attributes.get("n_targets") or max(attributes["target_ids"]) + 1
    forest = _forest(node, "target", targets)
    scores = _aggregated(b, forest, _features(b, node.operand(0)), attributes["aggregate_function"])
    base = _attribute(node, "base_values")
    if base is not None and len(base):
        scores += base
    return b.cast(transformed(b, scores, attributes["post_transform"], targets), F32)


@infers("ai.onnx.ml::TreeEnsembleRegressor")
def infer_regressor(node: Node) -> list[Type]:
    """TreeEnsembleRegressor (1 to 5): f32 [rows, targets]."""
    targets = node.attributes.get("n_targets") or max(node.attributes["target_ids"]) + 1
    return [TensorType(F32, (rows_of(node), targets))]


@legalizes("ai.onnx.ml::TreeEnsemble", target="ir")
def ensemble(b: Builder, node: Node) -> Result:
    """TreeEnsemble-5: the aggregated weights."""
    x = node.operand(0)
    how = AGGREGATES[node.attributes["aggregate_function"]]
    forest = _newer_forest(node)
    scores = _aggregated(b, forest, _features(b, x), how)
    name = TRANSFORMS[node.attributes["post_transform"]]
    result = transformed(b, scores, name, forest.weights.shape[1])
    return b.cast(result, F64 if x.element is F64 else x.element or F32)


@legalizes("ai.onnx.ml::TreeEnsembleClassifier", target="ir")
def classifier(b: Builder, node: Node) -> Result:
    """TreeEnsembleClassifier (1 to 5): labels and scores. If only one class has weights, it decides
    between two labels, or between 0 and 1 with one label.

    With two or more classes, the label has the largest score, as in ONNX's reference. In
    onnxruntime, classes without a vote do not count, and each of two labels becomes 0 or 1.
    """
    attributes = node.attributes
    labels = labels_of(node, "classlabels_int64s", "classlabels_strings")
    ids = attributes["class_ids"]
    classes = max(len(labels), max(ids) + 1)
    forest = _forest(node, "class", classes)
    single = len(set(ids)) == 1 and len(labels) <= 2
    alone = single and (ids[0] == 0 or len(labels) == 1)
    if alone:
        forest.weights = forest.weights[:, [ids[0]]]
    scores = b.cast(_aggregated(b, forest, _features(b, node.operand(0)), "SUM"), F32)
    base = _attribute(node, "base_values")
    if base is not None and len(base):
        base = base[-1:] if alone else base
        scores += b.constant(base, F32)
    name = attributes["post_transform"]
    if not single:
        return [chosen(b, scores, labels), transformed(b, scores, name, classes)]
    if len(labels) == 1:
        return [positive_or_not(b, scores, 0.0, (0, 1)), transformed(b, scores, name, 1)]
    positive = bool((_attribute(node, "class_weights") >= 0).all())
    pair = (int(labels[0]), int(labels[1]))
    decisive = scores if alone else b.cut(scores, 1, 1, 2)
    label = positive_or_not(b, decisive, 0.5 if positive else 0.0, pair)
    if alone:
        return [label, with_second_class(b, scores, name, positive)]
    return [label, transformed(b, scores, name, classes)]


@infers("ai.onnx.ml::TreeEnsembleClassifier")
def infer_classifier(node: Node) -> list[Type]:
    """TreeEnsembleClassifier (1 to 5): labels [rows] and scores [rows, classes]."""
    attributes = node.attributes
    names = attributes.get("classlabels_strings")
    labels, ids = len(names or attributes["classlabels_int64s"]), set(attributes["class_ids"])
    classes = max(labels, max(ids) + 1)
    probit = ids == {0} and labels == 2 and attributes["post_transform"] == "PROBIT"
    if probit or (len(ids) == 1 and labels == 1):
        classes = 1
    rows = rows_of(node)
    return [TensorType(STRING if names else I64, (rows,)), TensorType(F32, (rows, classes))]
