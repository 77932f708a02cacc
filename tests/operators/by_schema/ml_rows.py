"""The rows of ai.onnx.ml. DictVectorizer, CastMap and ZipMap have maps, which no text describes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.operators.by_schema.rows import Row

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
FEATURES = ("2,3", "1,3", "0,3", "5,3")
WEIGHTS = [0.5, -1.0, 2.0, 0.25, 0.75, -0.5, 1.5, 0.1, -0.3]
VECTORS = [0.1, 0.2, -0.3, 1.0, -1.0, 0.5, 0.7, 0.0, 0.2, -0.4, 0.9, 1.1]
KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")
PARAMETERS = ([0.2, 0.1, 2.0], [0.5, 0.0, 3.0], [1.0, 1.0, 1.0])
TREES = {
    "nodes_treeids": [0] * 5 + [1] * 3, "nodes_nodeids": [0, 1, 2, 3, 4, 0, 1, 2],
    "nodes_featureids": [0, 1, 0, 0, 0, 2, 0, 0],
    "nodes_values": [0.5, -0.5, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0],
    "nodes_truenodeids": [1, 3, 0, 0, 0, 1, 0, 0], "nodes_falsenodeids": [2, 4, 0, 0, 0, 2, 0, 0],
}  # fmt: skip
LEAVES = {"treeids": [0, 0, 0, 1, 1], "nodeids": [2, 3, 4, 1, 2]}
WEIGHT = [0.25, -0.5, 1.0, 0.125, 0.75]
MODES = tuple(
    [f"BRANCH_{one}", f"BRANCH_{two}", *["LEAF"] * 3, f"BRANCH_{one}", *["LEAF"] * 2]
    for one, two in (("LEQ", "LEQ"), ("LT", "GT"), ("GTE", "LEQ"), ("EQ", "NEQ"))
)
BRANCHES = {
    "nodes_modes": MODES, "nodes_missing_value_tracks_true": ([1, 0, 0, 0, 0, 1, 0, 0],),
    "post_transform": TRANSFORMS,
}  # fmt: skip
# OpenVINO computes f64 as well; the runtime has i32 and i64 of features, too.
NUMERIC = ("float", "double", "int64", "int32")


def _one_of(*names: str) -> Callable[[Mapping[str, str]], bool]:
    """Whether exactly one of some attributes is there."""
    return lambda v: sum(v.get(name, "absent") != "absent" for name in names) == 1


def _mapped(levels: Mapping[str, str]) -> bool:
    """Whether a LabelEncoder has keys of its input's type, values, and a default that fits."""
    if levels["version"] == "1":
        return (
            levels["classes_strings"] != "absent"
            and _one_of(*(f"{end}_{kind}" for end in ("keys", "values") for kind in KINDS))(
                {**levels, "keys_strings": "here"}
            )
            and all(levels[f"{end}_{kind}"] == "absent" for end, kind in ENDS)
        )
    keys = [kind for kind in KINDS if levels[f"keys_{kind}"] != "absent"]
    values = [kind for kind in KINDS if levels[f"values_{kind}"] != "absent"]
    fitting = {"int64": "int64s", "string": "strings", "float": "floats"}
    return (
        len(keys) == len(values) == 1
        and levels["classes_strings"] == "absent"
        and fitting.get(levels["type_T1"]) == keys[0]
    )


KINDS = ("floats", "int64s", "strings")
ENDS = [(end, kind) for end in ("keys", "values") for kind in KINDS]

ROWS: dict[str, Row] = {
    "Scaler": Row((*FEATURES, "3"), {"offset": ([0.5], [0.5, -1.0, 2.0]),
        "scale": ([2.0], [0.5, -1.0, 0.0])}, {"T": NUMERIC},
        fits=lambda v: "absent" not in (v["offset"], v["scale"])
        and v["offset"].count(",") == v["scale"].count(",")),
    "Normalizer": Row((*FEATURES, "[[0.0,0.0,0.0],[-1.0,-3.0,-2.0]]", "3"),
        {"norm": ("MAX", "L1", "L2")}, {"T": NUMERIC}),
    "Binarizer": Row((*FEATURES, "3", "2,1,3"), {"threshold": (0.5, -1.0)}, {"T": NUMERIC}),
    "Imputer": Row(("2,3", "1,3", "[[0,2,0],[2,0,1]]"), {
        "imputed_value_floats": ([1.5], [1.5, -2.0, 0.0]), "replaced_value_float": (2.0,),
        "imputed_value_int64s": ([7], [7, 8, 9]), "replaced_value_int64": (2,)},
        {"T": ("float", "int64")},
        fits=lambda v: (v["imputed_value_floats"] != "absent") == (v["type_T"] == "float")
        and (v["imputed_value_int64s"] != "absent") == (v["type_T"] == "int64")),
    "FeatureVectorizer": Row(("2,3;2,2", "1,3;1,2", "2,3"), {
        "inputdimensions": ([3, 2], [2, 3], [3])}, {"T1": NUMERIC},
        fits=lambda v: v["inputdimensions"].count(",") == v["case"].count(";")
        and v["inputdimensions"] != "absent"),
    "ArrayFeatureExtractor": Row(("2,3;[2,0]", "3;[1]", "2,2,3;[0,0,2]", "1,3;[[2]]", "0,3;[1]"),
        {}, {"T": (*NUMERIC, "string")}),
    "OneHotEncoder": Row(("2,3<0..4", "4<0..4", "2,1<0..4", "0<0..4"), {
        "cats_int64s": ([0, 1, 2, 3], [3, 1]), "cats_strings": (["a", "b", ""],),
        "zeros": (0, 1)}, {"T": (*NUMERIC, "string")},
        fits=lambda v: (v["cats_strings"] != "absent") == (v["type_T"] == "string")
        and (v["cats_int64s"] != "absent") == (v["type_T"] != "string")
        and (v["zeros"] != "0" or v["cats_int64s"] == "[0, 1, 2, 3]")),
    "CategoryMapper": Row(("2,3<0..4", "4"), {
        "cats_int64s": ([1, 2, 3],), "cats_strings": (["a", "b", "Zebra"],),
        "default_int64": (9,), "default_string": ("other",)},
        fits=lambda v: "absent" not in (v["cats_int64s"], v["cats_strings"])
        and ("<" in v["case"]) == (v["type_T1"] != "string")),
    "LabelEncoder": Row(("2,3", "4", "()", "[[0,1],[2,7]]"), {
        "classes_strings": (["a", "b", "Zebra"],), "default_int64": (9,),
        "default_float": (0.5,), "default_string": ("other",),
        "keys_floats": ([0.0, 1.0, 2.0],), "keys_int64s": ([0, 1, 2],),
        "keys_strings": (["a", "b", "Zebra"],), "values_floats": ([1.5, -2.0, 0.0],),
        "values_int64s": ([5, 6, -7],), "values_strings": (["x", "", "z"],)},
        {"T1": ("float", "int64", "string")},
        fits=lambda v: _mapped(v) and ("[" not in v["case"] or v["type_T1"] != "string")),
    "LinearRegressor": Row(FEATURES, {
        "targets": (1, 3), "intercepts": ([0.5], [0.5, -1.0, 2.0]),
        "coefficients": (WEIGHTS[:3], WEIGHTS), "post_transform": TRANSFORMS}, {"T": NUMERIC},
        fits=lambda v: v["coefficients"] == str(WEIGHTS if v["targets"] == "3" else WEIGHTS[:3])
        and (v["intercepts"] == "absent" or (v["targets"] == "3") == ("," in v["intercepts"]))),
    "LinearClassifier": Row(FEATURES, {
        "classlabels_ints": ([4, 7, 9], [0, 1, 2]), "classlabels_strings": (["a", "b", "c"],),
        "intercepts": ([0.5, -1.0, 2.0],), "multi_class": (0, 1),
        "post_transform": TRANSFORMS}, {"T1": NUMERIC}, always={"coefficients": WEIGHTS},
        outputs=2,
        # onnxruntime counts the classes by the intercepts; without them it computes nothing.
        fits=lambda v: _one_of("classlabels_ints", "classlabels_strings")(v)
        and v["intercepts"] != "absent"),
    "SVMRegressor": Row(FEATURES, {
        "kernel_type": KERNELS, "kernel_params": PARAMETERS, "one_class": (0, 1),
        "post_transform": TRANSFORMS}, {"T": NUMERIC},
        always={"coefficients": WEIGHTS[:4], "n_supports": 4, "rho": [0.3],
                "support_vectors": VECTORS}),
    "SVMClassifier": Row(FEATURES, {
        "kernel_type": KERNELS, "kernel_params": PARAMETERS, "post_transform": TRANSFORMS,
        "classlabels_ints": ([3, 5, 8], [0, 1, 2]), "classlabels_strings": (["a", "b", "c"],),
        "prob_a": ([-2.0, -1.5, -3.0],), "prob_b": ([0.1, -0.2, 0.3],)}, {"T1": NUMERIC},
        always={"coefficients": WEIGHTS[:8], "vectors_per_class": [1, 2, 1],
                "rho": [0.3, -0.2, 0.1], "support_vectors": VECTORS}, outputs=2,
        fits=lambda v: _one_of("classlabels_ints", "classlabels_strings")(v)
        and (v["prob_a"] == "absent") == (v["prob_b"] == "absent")
        and v["kernel_params"] != "absent"),
    "TreeEnsembleRegressor": Row(FEATURES, {
        **BRANCHES, "n_targets": (1, 2), "target_ids": ([0] * 5, [0, 1, 0, 1, 0], [0, 0, 0, 1, 1]),
        "aggregate_function": ("SUM", "AVERAGE", "MIN", "MAX"),
        "base_values": ([0.5], [0.5, -0.25])}, {"T": NUMERIC},
        always={**TREES, **{f"target_{k}": v for k, v in LEAVES.items()},
                "target_weights": WEIGHT},
        # onnxruntime leaves out the base value of a target without a leaf.
        fits=lambda v: "absent" not in (v["nodes_modes"], v["target_ids"], v["n_targets"])
        and (v["base_values"] == "absent" or v["target_ids"] != "[0, 1, 0, 1, 0]")
        and ("1" in v["target_ids"]) == (v["n_targets"] == "2")
        and (v["base_values"] == "absent"
             or ("," in v["base_values"]) == (v["n_targets"] == "2"))),
    "TreeEnsembleClassifier": Row(FEATURES, {
        **BRANCHES, "classlabels_int64s": ([4, 7, 9], [0, 1, 2]),
        "classlabels_strings": (["a", "b", "c"],), "class_ids": ([0, 1, 2, 1, 0], [2] * 5),
        "base_values": ([0.5, -0.25, 0.125],)}, {"T1": NUMERIC},
        always={**TREES, **{f"class_{k}": v for k, v in LEAVES.items()},
                "class_weights": WEIGHT}, outputs=2,
        fits=lambda v: _one_of("classlabels_int64s", "classlabels_strings")(v)
        and "absent" not in (v["nodes_modes"], v["class_ids"])),
}  # fmt: skip
