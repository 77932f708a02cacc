"""Models of ai.onnx.ml as IR: OpenVINO computes the same as onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import bridge
from tests.support.running import OnnxRuntime, OpenVino, assert_close

RNG = np.random.default_rng(11)
ROWS, FEATURES = 16, 5
X = RNG.normal(size=(ROWS, FEATURES)).astype(np.float32)
X[3, 2] = np.nan
CLEAN = np.nan_to_num(X)
WHOLE = RNG.integers(0, 4, size=(ROWS, 3))


def floats(*shape: int) -> list[float]:
    return RNG.normal(size=shape).reshape(-1).tolist()


def forest(prefix: str, trees: int, depth: int, ids: list[int], **options: Any) -> dict[str, Any]:
    """Random binary trees; every leaf has a weight for one of `ids`."""
    a: dict[str, list[Any]] = {
        f"nodes_{k}": []
        for k in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids",
                  "falsenodeids", "missing_value_tracks_true")
    }  # fmt: skip
    a |= {f"{prefix}_{k}": [] for k in ("treeids", "nodeids", "ids", "weights")}
    modes = options.pop("modes", ["BRANCH_LEQ"])
    positive = options.pop("positive", False)
    for tree in range(trees):
        inner = 2**depth - 1
        for index in range(2 * inner + 1):
            leaf = index >= inner
            mode = "LEAF" if leaf else modes[RNG.integers(len(modes))]
            row = (tree, index, int(RNG.integers(FEATURES)), float(RNG.normal()), mode,
                   0 if leaf else 2 * index + 1, 0 if leaf else 2 * index + 2,
                   int(RNG.integers(2)))  # fmt: skip
            for key, value in zip(list(a)[:8], row, strict=True):
                a[key].append(value)
            if leaf:
                a[f"{prefix}_treeids"].append(tree)
                a[f"{prefix}_nodeids"].append(index)
                a[f"{prefix}_ids"].append(ids[RNG.integers(len(ids))])
                weight = RNG.random() / trees if positive else RNG.normal()
                a[f"{prefix}_weights"].append(float(weight))
    return {**a, **options}


Case = tuple[str, np.ndarray, dict[str, Any]]
CASES: dict[str, Case] = {
    "scaler": ("Scaler", CLEAN, {"offset": floats(FEATURES), "scale": floats(FEATURES)}),
    "scaler of integers": ("Scaler", WHOLE, {"offset": [1.5], "scale": [2.0]}),
    "binarizer": ("Binarizer", CLEAN, {"threshold": 0.3}),
    "imputer": ("Imputer", X, {
        "imputed_value_floats": floats(FEATURES), "replaced_value_float": float("nan"),
    }),
    "imputer of integers": ("Imputer", WHOLE, {
        "imputed_value_int64s": [7], "replaced_value_int64": 2,
    }),
    "feature vectorizer": ("FeatureVectorizer", CLEAN, {"inputdimensions": [FEATURES]}),
    "feature vectorizer of fewer": ("FeatureVectorizer", CLEAN, {"inputdimensions": [2]}),
    "feature vectorizer of more": ("FeatureVectorizer", CLEAN, {"inputdimensions": [FEATURES + 2]}),
    "one hot": ("OneHotEncoder", WHOLE, {"cats_int64s": [2, 0, 1], "zeros": 1}),
    "label encoder": ("LabelEncoder", WHOLE, {
        "keys_int64s": [0, 3, 2], "values_floats": [0.5, 1.5, 2.5], "default_float": -1.0,
    }),
    "label encoder to integers": ("LabelEncoder", WHOLE, {
        "keys_int64s": [1, 3], "values_int64s": [10, 30], "default_int64": -5,
    }),
    "linear regressor": ("LinearRegressor", CLEAN, {
        "coefficients": floats(2, FEATURES), "intercepts": floats(2), "targets": 2,
    }),
}  # fmt: skip
for norm in ("MAX", "L1", "L2"):
    CASES[f"normalizer {norm}"] = "Normalizer", CLEAN, {"norm": norm}
for transform in ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"):
    CASES[f"linear classifier {transform}"] = "LinearClassifier", CLEAN, {
        "coefficients": floats(3, FEATURES), "intercepts": floats(3),
        "classlabels_ints": [4, 7, 9], "post_transform": transform,
    }  # fmt: skip
    CASES[f"trees, three classes, {transform}"] = (
        "TreeEnsembleClassifier",
        X,
        forest("class", 16, 3, [0, 1, 2], classlabels_int64s=[5, 6, 8], post_transform=transform),
    )
for transform in ("NONE", "LOGISTIC", "SOFTMAX"):
    CASES[f"linear classifier of two, {transform}"] = "LinearClassifier", CLEAN, {
        "coefficients": floats(2, FEATURES), "intercepts": floats(2),
        "classlabels_ints": [4, 7], "post_transform": transform,
    }  # fmt: skip
    for positive in (False, True):
        CASES[f"trees, two classes, {transform} {positive}"] = "TreeEnsembleClassifier", X, forest(
            "class", 4, 3, [0], classlabels_int64s=[0, 1], post_transform=transform,
            positive=positive,
        )  # fmt: skip
for how in ("SUM", "AVERAGE", "MIN", "MAX"):
    CASES[f"trees, {how}"] = (
        "TreeEnsembleRegressor",
        X,
        forest("target", 5, 4, [0], n_targets=1, aggregate_function=how),
    )
    CASES[f"trees, some without a target, {how}"] = (
        "TreeEnsembleRegressor",
        X,
        forest("target", 2, 2, [0, 1, 1], n_targets=3, aggregate_function=how),
    )
for transform in ("LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"):
    CASES[f"trees, one target, {transform}"] = "TreeEnsembleRegressor", X, forest(
        "target", 3, 3, [0], n_targets=1, post_transform=transform
    )  # fmt: skip
    CASES[f"linear regressor of one, {transform}"] = "LinearRegressor", CLEAN, {
        "coefficients": floats(FEATURES), "targets": 1, "post_transform": transform,
    }  # fmt: skip
    CASES[f"linear classifier of one row, {transform}"] = "LinearClassifier", CLEAN, {
        "coefficients": floats(FEATURES), "intercepts": floats(1),
        "classlabels_ints": [4, 7], "post_transform": transform,
    }  # fmt: skip
CASES["trees, one label"] = "TreeEnsembleClassifier", X, forest(
    "class", 3, 3, [0], classlabels_int64s=[6], post_transform="LOGISTIC"
)  # fmt: skip
CASES["trees, votes for the second class"] = "TreeEnsembleClassifier", X, forest(
    "class", 3, 3, [1], classlabels_int64s=[6, 7], post_transform="LOGISTIC"
)  # fmt: skip
CASES["trees, all modes"] = "TreeEnsembleRegressor", np.round(X), forest(
    "target", 16, 4, [0, 1], n_targets=2, base_values=[0.5, -0.25],
    modes=["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"],
)  # fmt: skip
for kernel in ("LINEAR", "RBF", "POLY", "SIGMOID"):
    vectors = {
        "support_vectors": floats(6, FEATURES), "kernel_type": kernel,
        "kernel_params": [0.2, 0.1, 2.0],
    }  # fmt: skip
    CASES[f"svm regressor {kernel}"] = "SVMRegressor", CLEAN, {
        **vectors, "coefficients": floats(6), "n_supports": 6, "rho": [0.3],
    }  # fmt: skip
    CASES[f"svm classifier {kernel}"] = "SVMClassifier", CLEAN, {
        **vectors, "coefficients": floats(2, 6), "vectors_per_class": [2, 3, 1],
        "rho": floats(3), "classlabels_ints": [3, 5, 8],
    }  # fmt: skip
for transform in ("LOGISTIC", "SOFTMAX"):
    CASES[f"svm regressor, {transform}"] = "SVMRegressor", CLEAN, {
        **vectors, "coefficients": floats(6), "n_supports": 6, "rho": [0.3],
        "post_transform": transform,
    }  # fmt: skip
    CASES[f"svm classifier of two, {transform}"] = "SVMClassifier", CLEAN, {
        **vectors, "coefficients": floats(6), "vectors_per_class": [2, 4], "rho": [0.1],
        "classlabels_ints": [3, 5], "post_transform": transform,
    }  # fmt: skip
for sign in ("mixed", "positive"):
    weights = np.abs(floats(2, FEATURES)) if sign == "positive" else floats(2, FEATURES)
    CASES[f"svm by {sign} coefficients alone"] = "SVMClassifier", CLEAN, {
        "kernel_type": "LINEAR", "kernel_params": [0.0, 0.0, 0.0], "coefficients": list(weights),
        "rho": [0.1], "classlabels_ints": [3, 5],
    }  # fmt: skip
CASES["svm classifier of positive coefficients"] = "SVMClassifier", CLEAN, {
    **vectors, "coefficients": list(np.abs(floats(6))), "vectors_per_class": [2, 4],
    "rho": [-0.1], "classlabels_ints": [3, 5],
}  # fmt: skip
CASES["svm classifier of two"] = "SVMClassifier", CLEAN, {
    **vectors, "coefficients": floats(6), "vectors_per_class": [2, 4], "rho": [0.1],
    "classlabels_ints": [3, 5],
}  # fmt: skip
CASES["svm probabilities"] = "SVMClassifier", CLEAN, {
    **vectors, "coefficients": floats(2, 6), "vectors_per_class": [2, 3, 1],
    "rho": floats(3), "classlabels_ints": [3, 5, 8], "prob_a": [-2.0, -1.5, -3.0],
    "prob_b": [0.1, -0.2, 0.3],
}  # fmt: skip
CASES["svm probabilities of two"] = "SVMClassifier", CLEAN, {
    **vectors, "coefficients": floats(6), "vectors_per_class": [2, 4], "rho": [0.1],
    "classlabels_ints": [3, 5], "prob_a": [-2.0], "prob_b": [0.4],
}  # fmt: skip
CASES["svm probabilities of many"] = "SVMClassifier", CLEAN, {
    **vectors, "coefficients": floats(5, 6), "vectors_per_class": [1] * 6, "rho": floats(15),
    "classlabels_ints": list(range(6)), "prob_a": (-np.abs(floats(15))).tolist(),
    "prob_b": floats(15),
}  # fmt: skip
CASES["svm, one class"] = "SVMRegressor", CLEAN, {
    **vectors, "coefficients": floats(6), "n_supports": 6, "rho": [0.3], "one_class": 1,
}  # fmt: skip


def model(op: str, x: np.ndarray, attributes: dict[str, Any], version: int) -> onnx.ModelProto:
    schema = onnx.defs.get_schema(op, version, "ai.onnx.ml")
    outputs = ["a", "b"][: len(schema.outputs)]
    node = helper.make_node(op, ["x"], outputs, domain="ai.onnx.ml", **attributes)
    shape = ["rows", x.shape[1]]
    element = helper.np_dtype_to_tensor_dtype(x.dtype)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", element, shape)],
        [onnx.ValueInfoProto(name=name) for name in outputs],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", version)]
    whole = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    return onnx.shape_inference.infer_shapes(whole)


@pytest.mark.parametrize("name", CASES)
def test_types(name: str) -> None:
    """The types of results are known although no file declares them; later nodes need them."""
    op, x, attributes = CASES[name]
    proto = model(op, x, attributes, 3)
    types = [value.type for value in bridge.load(proto).graph.outputs]
    for value in proto.graph.output:
        if not value.type.tensor_type.elem_type:
            integers = op == "Imputer" and x.dtype == np.int64
            value.type.tensor_type.elem_type = TensorProto.INT64 if integers else TensorProto.FLOAT
    for type, found in zip(types, OnnxRuntime(proto).run({"x": x}), strict=True):
        assert type.element.dtype == found.dtype
        assert type.rank == found.ndim
        sizes = zip(type.shape, found.shape, strict=True)
        assert all(known == size for known, size in sizes if isinstance(known, int))
        assert [isinstance(size, int) for size in type.shape[1:]] == [True] * (found.ndim - 1)


@pytest.mark.parametrize("name", CASES)
def test_same_numbers(name: str, tmp_path: Path) -> None:
    op, x, attributes = CASES[name]
    proto = model(op, x, attributes, 3)
    for value in proto.graph.output:
        if not value.type.tensor_type.elem_type:
            same = op == "Imputer" and x.dtype == np.int64
            value.type.tensor_type.elem_type = TensorProto.INT64 if same else TensorProto.FLOAT
    expected = OnnxRuntime(proto).run({"x": x})
    bridge.convert(proto, tmp_path / "m.xml")
    actual = OpenVino(tmp_path / "m.xml").run([x])
    back = bridge.to_onnx(tmp_path / "m.xml")
    for results in (actual, OnnxRuntime(back).run({"x": x})):
        for wanted, found in zip(expected, results, strict=True):
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    if op.startswith(("Label", "Linear")) or (op.startswith("SVM") and "prob" not in name):
        assert [node.op_type for node in back.graph.node] == [op]


def test_categories_side_by_side(tmp_path: Path) -> None:
    """Core ML's converter writes categories like this: the categories of each column get an axis of
    their own, and a vectorizer treats all axes behind the first as columns."""
    text = """<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 3]>
    g (int64[rows,1] x, float[rows,2] z) => (float[rows,5] y) {
      a = ai.onnx.ml.OneHotEncoder <cats_int64s = [0, 1, 3], zeros = 1> (x)
      b = ai.onnx.ml.FeatureVectorizer <inputdimensions = [3, 2]> (a, z)
      y = Exp(b)
    }"""
    proto = onnx.parser.parse_model(text)
    bridge.convert(proto, tmp_path / "a.xml")
    bridge.convert(tmp_path / "a.xml", tmp_path / "b.onnx")
    for rows in (1, 4):
        x = RNG.integers(0, 4, size=(rows, 1))
        feed = {"x": x, "z": RNG.normal(size=(rows, 2)).astype(np.float32)}
        expected = OnnxRuntime(proto).run(feed)
        assert_close(OpenVino(tmp_path / "a.xml").run(list(feed.values())), expected)
        assert_close(OnnxRuntime(tmp_path / "b.onnx").run(feed), expected)
