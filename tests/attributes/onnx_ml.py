"""Operators of ai.onnx.ml by attributes, if the standard and onnxruntime agree."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper

from tests.attributes.family import Call, Draw, call, family

TRANSFORMS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT")
CLASSIFIED = TensorProto.INT64, TensorProto.FLOAT
VALUES = (TensorProto.FLOAT,)


def ml(op: str, x: np.ndarray, types: tuple[int, ...], version: int = 3, **attributes: Any) -> Call:
    """A call of ai.onnx.ml."""
    name = f"ai.onnx.ml::{op}"
    return call(name, version, x, outputs=len(types), types=types, **attributes)


@family("onnx", rows=(1, 2, 3), regresses=(0, 1), transform=TRANSFORMS)
def linear_models(d: Draw, rows: int, regresses: int, transform: str) -> Call | None:
    x = d.floats(9, 3)
    shared = {"coefficients": d.list(rows, 3), "intercepts": d.list(rows),
              "post_transform": transform}  # fmt: skip
    if regresses:
        return ml("LinearRegressor", x, VALUES, targets=rows, **shared)
    if rows == 1 and transform == "PROBIT":
        return None  # onnxruntime fills in half of the scores.
    labels = list(range(4, 4 + max(rows, 2)))
    return ml("LinearClassifier", x, CLASSIFIED, classlabels_ints=labels, **shared)


@family(
    "onnx", kind=("regressor", "one_class", "alone", "two", "three", "probabilities"),
    kernel=("LINEAR", "POLY", "RBF", "SIGMOID"), transform=TRANSFORMS,
)  # fmt: skip
def vector_machines(d: Draw, kind: str, kernel: str, transform: str) -> Call | None:
    x, params = d.floats(9, 3), [0.5, 0.3, 2.0]
    shared = {"kernel_type": kernel, "kernel_params": params, "post_transform": transform}
    if kind in ("regressor", "one_class"):
        return ml(
            "SVMRegressor", x, VALUES, coefficients=d.list(4), support_vectors=d.list(4, 3),
            n_supports=4, rho=d.list(1), one_class=int(kind == "one_class"), **shared,
        )  # fmt: skip
    if kind == "alone":
        labels = {"classlabels_ints": [3, 8], "rho": d.list(1)}
        return ml("SVMClassifier", x, CLASSIFIED, coefficients=d.list(2, 3), **labels, **shared)
    if transform == "PROBIT" and kind != "three":
        return None  # onnxruntime leaves a column of scores as it was; or scores near 0 and 1.
    count = 3 if kind == "three" else 2
    given: dict[str, Any] = {"prob_a": [-0.5], "prob_b": [0.1]} if kind == "probabilities" else {}
    return ml(
        "SVMClassifier", x, CLASSIFIED, coefficients=d.list(count - 1, 2 * count),
        support_vectors=d.list(2 * count, 3), vectors_per_class=[2] * count,
        rho=d.list(count * (count - 1) // 2), classlabels_ints=[3, 8, 9][:count], **given, **shared,
    )  # fmt: skip


MODES = ("LEQ", "LT", "GT", "GTE", "EQ", "NEQ")


@family(
    "onnx", mode=MODES, transform=TRANSFORMS, how=("SUM", "AVERAGE", "MIN", "MAX", "votes"),
    columns=(1, 2, 3), base=(0, 1), sparse=(0, 1),
)  # fmt: skip
def forests(
    d: Draw, mode: str, transform: str, how: str, columns: int, base: int, sparse: int
) -> Call | None:
    """Two stumps, each leaf with a vote for every column, or `sparse` for one of them."""
    nodes = {
        "nodes_treeids": [0, 0, 0, 1, 1, 1], "nodes_nodeids": [0, 1, 2] * 2,
        "nodes_featureids": [0, 0, 0, 1, 0, 0], "nodes_values": [0.3, 0, 0, -0.2, 0, 0],
        "nodes_truenodeids": [1, 0, 0] * 2, "nodes_falsenodeids": [2, 0, 0] * 2,
        "nodes_modes": [f"BRANCH_{mode}", "LEAF", "LEAF"] * 2, "post_transform": transform,
        "base_values": d.list(columns) if base else None,
    }  # fmt: skip
    leaves = [(tree, leaf) for tree in (0, 1) for leaf in (1, 2)]
    targets = [[place % columns] if sparse else range(columns) for place in range(4)]
    votes = [(*leaf, c) for leaf, every in zip(leaves, targets, strict=True) for c in every]
    trees, ids, places = (list(part) for part in zip(*votes, strict=True))
    weights, x = d.list(len(votes)), d.floats(9, 3)
    if sparse and base and columns > 1:
        return None  # Without a leaf for a target, onnxruntime leaves the base value out.
    if how != "votes":
        return ml(
            "TreeEnsembleRegressor", x, VALUES, **nodes, aggregate_function=how, n_targets=columns,
            target_treeids=trees, target_nodeids=ids, target_ids=places, target_weights=weights,
        )  # fmt: skip
    if columns == 2 or (columns == 3 and sparse) or (columns == 1 and transform == "PROBIT"):
        return None  # Here onnxruntime names other labels than the largest scores have.
    return ml(
        "TreeEnsembleClassifier", x, CLASSIFIED, **nodes, class_treeids=trees, class_nodeids=ids,
        class_ids=places, class_weights=weights,
        classlabels_int64s=[4, 5, 6] if columns == 3 else [4, 5],
    )  # fmt: skip


FEATURES: dict[str, dict[str, Any]] = {
    "Binarizer": {"threshold": (None, 0.5, -1.0)},
    "Scaler": {"offset": ([0.5], [0.5, 1.0, -2.0]), "scale": ([3.0], [3.0, 0.1, 1.0])},
    "Normalizer": {"norm": ("MAX", "L1", "L2")},
    "OneHotEncoder": {"cats_int64s": ([0, 1, -2],)},
    "FeatureVectorizer": {"inputdimensions": ([3], [2], [5])},
    "LabelEncoder": {"keys_int64s": ([1, 2], [0, -1]), "values_int64s": ([5, 6],),
                     "default_int64": (None, -3)},
    "Imputer": {"imputed_value_int64s": ([7], [7, 8, 9]), "replaced_value_int64": (0, 1)},
}  # fmt: skip
WHOLE = ("LabelEncoder", "Imputer")


@family("onnx", op=tuple(FEATURES), type=("f4", "f8", "i4", "i8"), first=(0, 1, 2), second=(0, 1))
def features(d: Draw, op: str, type: str, first: int, second: int) -> Call | None:
    attributes: dict[str, Any] = {}
    for place, (name, values) in enumerate(FEATURES[op].items()):
        chosen = (first, second, second)[place]
        attributes[name] = values[chosen % len(values)]
    whole = op in WHOLE
    if whole and type != "i8":
        return None
    same = helper.np_dtype_to_tensor_dtype(np.dtype(type))
    kept = (same,) if op == "Binarizer" or whole else VALUES
    return ml(op, d.of(type, 9, 3, scale=2), kept, **attributes)
