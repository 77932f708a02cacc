"""The rows of the standard's operators."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.operators.by_schema import onnx_expected as expected
from tests.operators.by_schema.rows import ANY, NUMBERS, QUANTISED, REALS, Row, alike

SHAPES = ("2,3", "()", "1", "4", "0,3", "1,2,1", "2,1,3,2", "1,2,1,2,3", "2,1,1,2,1,2")
PAIRS = ("2,3;2,3", "2,3;3", "();()", "2,3;()", "1;4", "0,3;1", "2,1,3;4,1", "3;2,1,1,3",
         "1,2,1,2,3;2,1,3", "2,1,1,2,1,2;1,2,1", "0;0", "1,0;3,1", "2,3;=2", "2,3;=0")  # fmt: skip
TYPES_TO = (1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 16)  # numbers of element types
AXIS = (0, 1, -1, -2, 2)
UNARY = Row(SHAPES, special=True)
# In f64, OpenVINO's CPU plugin gives the largest number of f32 for an infinity.
INFINITE = Row(SHAPES, special=True, fits=lambda v: v["type_T"] != "double")
BINARY = Row(PAIRS, special=True)
# The standard leaves the division of integers by zero undefined.
DIVIDED = Row((*(f"{pair}>0" for pair in PAIRS if "=" not in pair), "2,3;=-2",
               "2,3;[[2,3,-2],[-3,5,7]]"), special=True)  # fmt: skip
EMPTY = r"[\d,]*\b0\b"  # the beginning of a case with a size of 0
REDUCE = Row(
    ("2,3,4;[1]", "2,3,4;[-1]", "2,3,4;[0,2]", "2,3,4;[-1,0]", "2,3;[]", "2,3,4", "();", "4;[0]",
     "0,3;[0]", "2,0;[1]", "2,0,3;[0]", "1,1,1;[1]", "2,1,3,2;[1,2,3]", "1,2,1,2,3;[-2]",
     "2,1,1,2,1,2;[5]", "0,3;"),
    {"keepdims": (0, 1), "noop_with_empty_axes": (0, 1)},
    # OpenVINO's CPU plugin has the limits of 32 bits. It reduces along no empty vector of axes.
    fits=lambda v: (not re.match(EMPTY, v["case"])
                    or v.get("type_T") not in ("double", "int64", "uint64", "uint32"))
    and ("[]" not in v["case"] or v["noop_with_empty_axes"] != "1" or v["input_1"] == "constant"
         or v["sizes"] == "known"),
)  # fmt: skip
# OpenVINO's maximum of no elements is the lowest finite number. The standard's, an infinity, would
# take a Select behind each maximum along an open axis.
EXTREME = replace(
    REDUCE,
    special=True,
    fits=lambda v: REDUCE.fits(v) and (v["sizes"] == "known" or not re.match(EMPTY, v["case"])),
)
BEYOND_F32 = "2,3<16777211..16777259;[1]"
SUM = replace(
    REDUCE,
    cases=(*REDUCE.cases, BEYOND_F32),
    fits=lambda v: REDUCE.fits(v) and (v["case"] != BEYOND_F32 or v["type_T"] != "float16"),
)
CONV = {
    "auto_pad": ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"),
    "strides": ([2], [1, 2], [2, 2], [3, 1, 2]), "dilations": ([2], [2, 1], [2, 2], [1, 2, 1]),
    "pads": ([1, 1], [1, 0, 0, 1], [1, 1, 1, 1], [0, 1, 0, 1, 0, 1]), "group": (1, 2, 4),
}  # fmt: skip
CONVOLVED = (
    "1,4,7,6;4,4,3,2;4", "2,4,7;4,4,3;4", "1,4,5,6,5;2,4,2,3,2;2", "2,4,6,6;4,2,3,3;4",
    "1,4,5,5;4,1,3,3;4", "1,4,1,1;4,4,1,1;4", "0,4,5,5;4,4,3,3;4", "1,4,6;8,1,2;8",
)  # fmt: skip
POOL = {
    **{k: v for k, v in CONV.items() if k != "group"}, "ceil_mode": (0, 1),
    "kernel_shape": ([3], [2, 3], [3, 3], [2, 2, 2], [1, 1]), "count_include_pad": (0, 1),
    "storage_order": (0, 1), "p": (1, 2, 3),
}  # fmt: skip
IMAGES = ("1,2,7,6", "2,3,8", "1,2,5,6,5", "1,1,3,3", "0,2,5,5", "2,1,6,7")
REDUCTIONS = ("none", "add", "mul", "min", "max")
_SPLIT = ("float", "double", "int32", "int64")  # of which onnxruntime makes sequences
SCALE = {"x_scale": REALS, "y_scale": REALS}


def _rank_fits(levels: Mapping[str, str]) -> bool:
    """Whether the lengths of attributes fit the spatial rank."""
    first = levels["case"].partition(";")[0]
    spatial = first.count(",") - 1
    for name, count in (("strides", 1), ("dilations", 1), ("kernel_shape", 1), ("pads", 2),
                        ("output_padding", 1), ("output_shape", 1)):  # fmt: skip
        level = levels.get(name, "absent")
        if level != "absent" and level.count(",") + 1 != spatial * count:
            return False
    padded = levels.get("pads", "absent") != "absent"
    if padded and levels.get("kernel_shape") == "[1, 1]":
        return False  # Windows of padding alone have no meaning.
    if first.startswith("0,") and "kernel_shape" in levels:
        return False  # OpenVINO's pools take no empty batch.
    return not padded or levels.get("auto_pad", "absent") in ("absent", "'NOTSET'")


def _split_fits(levels: Mapping[str, str]) -> bool:
    """Whether the lengths of the parts add up to the size; the engines do not check all of them.
    Parts that differ without lengths came with `num_outputs`."""
    data, _, lengths = levels["case"].partition(";")
    sizes, axis = data.split(","), int(levels["axis"].replace("absent", "0"))
    if not -len(sizes) <= axis < len(sizes):
        return False
    size = int(sizes[axis])
    if lengths and levels.get("input_1") != "absent":
        return sum(ast.literal_eval(lengths)) == size
    return size % 2 == 0 or levels["num_outputs"] != "absent"


def _crop_fits(levels: Mapping[str, str]) -> bool:
    """Whether there is a size for each axis."""
    data, sizes = levels["case"].split(";")
    axes = levels["axes"]
    return sizes.count(",") == (data if axes == "absent" else axes).count(",") and (
        axes == "absent" or int(axes[-2]) <= data.count(",")
    )


def _power_fits(levels: Mapping[str, str]) -> bool:
    """Whether powers are defined."""
    case, base = levels["case"], levels["type_T"]
    if base in ("float", "float16"):
        return True
    is_root = levels.get("type_T1") in REALS and base != "double" and "=" not in case
    plain = levels["numbers"] == "plain" and "-2" not in case
    return plain and (not is_root or ">0;" in case)


def _recurrent(gates: int, **more: Any) -> Row:
    x, directions = "3,2,4", {"": 1, "2": 2}
    cases = []
    for count in directions.values():
        w, r, b = f"{count},{gates * 3},4", f"{count},{gates * 3},3", f"{count},{gates * 6}"
        state = f"{count},2,3"
        tail = f";{state};{count},9" if gates == 4 else ""
        for lengths in ("[3,1]", "[0,2]", "[3,3]"):
            cases.append(f"{x};{w};{r};{b};{lengths};{state}{tail}")
        cases.append(f"1,2,4;{w};{r};{b};[1,1];{state}{tail}")
    return Row(
        tuple(cases),
        {"hidden_size": (3,), "direction": ("forward", "reverse", "bidirectional"),
         "clip": (0.5,), **more},
        # onnxruntime has no other type, and the reference is wrong about several forms.
        {"T1": ("int32",), "T": ("float",)},
        outputs=3 if gates == 4 else 2,
        fits=lambda levels: levels["hidden_size"] != "absent"
        and (levels["direction"] == "'bidirectional'") == (";2," in levels["case"][:9])
    )  # fmt: skip


POOLED = Row(
    IMAGES,
    POOL,
    {"T": ("float", "float16")},
    fits=lambda v: (
        v["kernel_shape"] != "absent"
        and _rank_fits(v)
        and (v["case"] != "1,1,3,3" or "2" not in v["dilations"])
    ),
)

ROWS: dict[str, Row] = {
    **alike(
        "Abs Acos Acosh Asin Asinh Atan BitwiseNot Ceil Cos Cosh Erf Floor "
        "HardSwish Identity IsNaN Mish Neg Not Relu Round Sigmoid Sign Sin "
        "Sinh Softplus Softsign Sqrt Tan Tanh Size", UNARY),
    **alike("Atanh Exp Log Reciprocal", INFINITE),
    **alike(
        "Add And BitwiseAnd BitwiseOr BitwiseXor Equal Greater GreaterOrEqual Less "
        "LessOrEqual Mul Or Sub Xor", BINARY),
    # Integers that overflow, powers of 0 below 0, and roots of negative integers (NaN has no Cast)
    # are undefined. OpenVINO has the exponent in the type of the base, so large exponents are no
    # longer odd.
    "Pow": Row((*(f"{pair}>0" for pair in PAIRS if "=" not in pair), "2,3;=2", "2,3;=0", "2,3;=-2",
                "2,3>0;3>0", "1>0;4>0"),
               special=True, fits=_power_fits),
    **alike(
        "Max Mean Min Sum",
        Row((*PAIRS, "2,3", "2,3;3;()", "2,1;1,3;4,1,1;2,3"), special=True)),
    **alike("ReduceL1 ReduceSum", SUM),
    **alike("ReduceL2 ReduceLogSumExp ReduceMean ReduceProd ReduceSumSquare", REDUCE),
    **alike("ReduceMax ReduceMin", EXTREME),
    "ReduceLogSum": replace(REDUCE, types={"T": [t for t in NUMBERS if t != "double"]}),
    **alike(
        "ArgMax ArgMin", Row(
        ("2,3,4", "4", "1,1", "2,3,1,2", "2,5<0..2", "0,3", "1,2,1,2,3"),
        {"axis": AXIS, "keepdims": (0, 1), "select_last_index": (0, 1)})),
    **alike(
        "Elu LeakyRelu Selu ThresholdedRelu HardSigmoid Swish", Row(
        SHAPES, {"alpha": (0.5, -1.5, 0.0), "beta": (0.25,), "gamma": (0.5,)}, special=True,
        # OpenVINO reads 0 as the default.
        fits=lambda v: ("gamma" not in v and "beta" not in v) or v["alpha"] != "0.0")),
    # The standard's text and its function differ for negative numbers.
    "Celu": Row(SHAPES, {"alpha": (0.5, 2.0)}, special=True),
    "Shrink": Row(SHAPES, {"bias": (0.5,), "lambd": (1.5, -1.0, 0.0)}, special=True),
    "Gelu": Row(SHAPES, {"approximate": ("none", "tanh")}, special=True),
    "IsInf": Row(SHAPES, {"detect_negative": (0, 1), "detect_positive": (0, 1)}, special=True),
    "BitShift": Row(PAIRS[:12], {"direction": ("LEFT", "RIGHT")}),
    "Div": DIVIDED, "Mod": Row(DIVIDED.cases, {"fmod": (0, 1)}),
    # Products of large integers overflow.
    "PRelu": Row(("2,3;2,3", "2,3;3", "2,3;()", "2,3,2;3,1", "2,3,2,2;1", "0,3;3", "2,3;1,1",
                  "[[16777217,-16777217,33554435]];=3"),
                 fits=lambda v: "[" not in v["case"] or v["type_T"] in ("int32", "int64")),
    "Clip": Row(tuple(f"{s};{m}" for s in SHAPES for m in ("=-1;=2", "=2;=1")), special=True),
    "Cast": Row(SHAPES, {"to": (*TYPES_TO, 8), "saturate": (0, 1), "round_mode": ("up", "down")},
                {"T1": ANY}),
    "CastLike": Row(("2,3;1", "();2", "0,2;1,1"), {"saturate": (0,)}, {"T1": ANY, "T2": ANY}),
    "BitCast": Row(SHAPES, {"to": TYPES_TO}, special=True),
    "Where": Row(("2,3;2,3;2,3", "();2,3;2,3", "2,3;();()", "2,1;3;()", "1,3;2,1,1;4,3", "0;0;0",
                  "0,1;1,3;1", "();();()"), types={"T": ANY}, special=True),
    "Softmax": Row(SHAPES[3:], {"axis": AXIS}, special=True),
    "LogSoftmax": Row(SHAPES[3:], {"axis": AXIS}, special=True),
    "Hardmax": Row(("2,3", "2,3<0..2", "4", "2,1,3,2", "0,3"), {"axis": AXIS}),
    **alike(
        "CumSum CumProd", Row(
        ("2,3;=0", "2,3;=1", "2,3;=-1", "4;=0", "2,3,4;=-2", "0,3;=0", "1,1;=1", "2,3;[1]"),
        {"exclusive": (0, 1), "reverse": (0, 1)}, special=True,
        # Products of large integers overflow.
        fits=lambda v: v["version"] != "26" or v["numbers"] != "special" or "int" not in v["type_T"]
        )),
    # Shapes and indices
    "Shape": Row(SHAPES, {"start": (0, 1, -1, 9), "end": (1, -1, -9, 9)}, {"T": ANY}),
    "Reshape": Row(
        ("2,3;[3,2]", "2,3;[-1]", "2,3;[0,-1]", "2,3;[1,6]", "();[1,1]", "1;[]", "0,3;[3,0]",
         "0,3;[0,3]", "2,0;[0,4]", "2,3,4;[0,-1,2,1]", "2,3;[3,1,2,1,1]"),
        {"allowzero": (0, 1)}, {"T": ANY}),
    "Flatten": Row(("2,3,4", "4", "()", "0,3", "2,1,3,2", "2,0,2"), {"axis": (0, 1, 2, -1, -2, 3)},
                   {"T": ANY}),
    "Squeeze": Row(("1,2,1;[0]", "1,2,1;[-1]", "1,2,1;[0,2]", "1,1;", "1,2,1", "1;[0]", "1,0;[0]",
                    "2,1,1,3;[2,1]"), types={"T": ANY}),
    "Unsqueeze": Row(("2,3;[0]", "2,3;[-1]", "2,3;[0,3]", "();[0]", "();[1,0]", "0,3;[2,0]",
                      "2;[-1,-3]", "2,3;[3,1]"), types={"T": ANY}),
    "Transpose": Row(SHAPES, {"perm": ([1, 0], [0], [2, 0, 1], [3, 1, 0, 2], [0, 1])},
                     {"T": ANY}),
    "Expand": Row(("2,3;[2,2,3]", "1,3;[4,1]", "();[2,2]", "3;[]", "1;[0]", "2,1;[1,3]", "0,1;[2]",
                   "2,3;[1,1,1]", "3;[1]"), types={"T": ANY}),
    "Tile": Row(("2,3;[1,2]", "2,3;[0,1]", "4;[3]", "0,2;[2,2]", "1,2,3;[2,1,3]", "();[]"),
                types={"T": ANY}),
    "Concat": Row(("2,3;2,3", "2,3;2,1", "2;3;1", "2,0;2,3", "2,3", "1,2,3;1,2,3;1,2,3", "0;0"),
                  {"axis": AXIS}, {"T": ANY},
                  # Other sizes must agree; onnxruntime does not check a 0.
                  fits=lambda v: v["axis"] in ("1", "-1") or (v["axis"] != "absent"
                                                              and "2,0" not in v["case"])),
    "Split": Row(("4,6;[2,4]", "4,6;[1,3]", "6;[6,0]", "4,5;", "2,4,3;[2,2]", "0,4;[0,0]",
                  "7,2;", "4,4"), {"axis": AXIS, "num_outputs": (2,)}, {"T": ANY}, outputs=2,
                  fits=_split_fits),
    "Slice": Row(
        ("4,5;[1];[3];[0];[1]", "4,5;[0,0];[9,9];[0,1];[2,3]", "4,5;[-1];[-9];[1];[-1]",
         "4,5;[3,4];[0,-9];[-2,-1];[-1,-2]", "4,5;[2];[2];[0];[1]", "4,5;[9];[10];[0];[1]",
         "4,5;[-2];[2147483647];[1];[1]", "0,3;[0];[1];[0];[1]", "4;[0];[-1]",
         "4;[-1];[-2147483648];[0];[-1]", "2,3,4;[1,0];[2,2];[2,0];[1,1]", "4,5;[];[];[];[]",
         "4;[-9];[9];[0];[1]", "4,5;[4];[0];[0];[-3]"), types={"T": ANY}),
    "Gather": Row(("4,3;[0,2]", "4,3;=1", "4,3;[[0,-1],[1,1]]", "4;=-4", "4,3;[]", "1,1;[0]",
                   "2,3,4;[[0,1]]", "4,0;[3]", "3,2;[-1,0,-2]"), {"axis": AXIS}, {"T": ANY}),
    "GatherElements": Row(("3,3;[[0,1,2]]", "3,3;[[-1,0],[1,-3]]", "3;[2,-1]", "2,2,2;[[[0]]]",
                           "3,3;2,0", "2,3;2,3<-2..2"), {"axis": AXIS}, {"T": ANY}),
    "GatherND": Row(("2,3;[[0,1],[1,2]]", "2,3;[[1],[-1]]", "2,3;[0,-1]", "2,2,3;[[1],[0]]",
                     "2,3;[[[0]],[[1]]]", "2,3;0,1", "3;[0]", "2,3,4;2,3,1<-4..4",
                     "2,3,4;2,1<-3..3"), {"batch_dims": (0, 1, 2)}, {"T": ANY}),
    "ScatterElements": Row(
        ("3,3;[[0,1,2]];1,3", "3,3;[[-1,0],[1,-3]];2,2", "3;[2,2,0];3", "3;[0,0,0,0];4",
         "2,3;2,0;2,0", "2,2,2;[[[1]]];1,1,1", "2,3;2,3<-2..2;2,3"),
        {"axis": AXIS, "reduction": REDUCTIONS}, {"T": ANY}),
    "Scatter": Row(("3,3;[[0,1,2]];1,3", "3;[2,0];2"), {"axis": AXIS[:3]}),
    "ScatterND": Row(
        ("4,2;[[1],[3]];2,2", "4,2;[[1],[1]];2,2", "2,3;[[0,-1],[1,2]];2", "3;[[-1]];1",
         "2,3;[[0,1],[0,1],[0,1]];3", "4,2;0,1;0,2", "2,2,3;[[[0],[1]]];1,2,2,3", "3;[0];()"),
        {"reduction": REDUCTIONS}, {"T": ANY}),
    "TopK": Row(("2,4;[2]", "2,4;[4]", "4;[1]", "4;[0]", "2,3,4;[1]", "2,5<0..2;[3]", "0,4;[2]",
                 "1,1;[1]"),
                {"axis": AXIS, "largest": (0, 1), "sorted": (1,)}, outputs=2),
    "Unique": Row(("5<0..3", "4,3<0..2", "1", "0", "2,3,2<0..2", "()"),
                  {"axis": (0, 1, -1), "sorted": (0, 1)}, outputs=4),
    "NonZero": Row((*SHAPES, "4<0..2", "2,3<0..2")),
    "Compress": Row(("3,3;[0,1,1]", "3,2;[1,0]", "3,2;[0,0]", "4;[1]", "2,3,4;[0,1,1]", "0,2;[]",
                     "2,3;[1,0,0,1,1]"), {"axis": (0, 1, -1)},
        fits=lambda v: v["axis"] == "absent" or not v["case"].startswith(("2,3;", "2,3,4"))),
    "OneHot": Row(("[0,2,-1];=3;[0,1]", "2,2<-3..3;=3;[2,5]", "[1];=2;[0,1]", "[7,-9];[3];[0,1]",
                   "0;=3;[0,1]", "[1,1];=1;[1,0]"), {"axis": (0, 1, -1, -2)}, {
                       "T1": ("int64", "int32", "float"), "T2": ("int64", "int32", "float")}),
    "Range": Row(("=0;=5;=2", "=5;=0;=-2", "=0;=0;=1", "=3;=1;=1", "=1;=2;=3", "=-3;=4;=1")),
    "ConstantOfShape": Row(("[2,3]", "[]", "[0,2]", "[1]")),
    "EyeLike": Row(("3,3", "2,4", "4,2", "0,2", "1,1"), {"k": (0, 1, -1, 5), "dtype": (1, 7, 10)}),
    "Trilu": Row(("3,3;=0", "2,4;=1", "4,2;=-1", "2,3,3;=5", "0,3;=0", "2,3;=-7"),
                 {"upper": (0, 1)}),
    "ReverseSequence": Row(("4,3;[1,4,2]", "3,4,2;[1,3,2,1]", "4,4;[4,1,1,3]", "3,3;[1,1,1]"),
                           {"batch_axis": (0, 1), "time_axis": (0, 1)}),
    "DepthToSpace": Row(("1,8,2,3", "2,4,1,1", "0,4,2,2"), {
        "blocksize": (1, 2), "mode": ("DCR", "CRD")}, fits=lambda v: v["blocksize"] != "absent"),
    "SpaceToDepth": Row(("1,2,4,6", "2,1,2,2", "0,2,2,2"), {
        "blocksize": (1, 2), "mode": ("DCR", "CRD")}, fits=lambda v: v["blocksize"] != "absent"),
    "Pad": Row(
        ("3,4;[1,0,0,2];=5", "3,4;[0,0,0,0];", "3,4;[-1,0,0,1];=5", "4;[2,3];=0", "1,1;[0,0,0,0];",
         "3,4;[1,2];=5;[1]", "3,4;[1,2];=5;[-1]", "2,3,4;[1,1,1,1];=2;[2,0]", "0,2;[1,0,1,0];=5",
         "3,4;[2,3,2,3];=1", "4;[-2,-1];=1", "3,4;[-1,-1,1,1];=1"),
        {"mode": ("constant", "reflect", "edge", "wrap"), "value": (1.5,)}),
    "CenterCropPad": Row(("4,5;[2,8]", "4,5;[4,5]", "3,4;[3]", "2,3,4;[5,1]", "4;[7]"),
                         {"axes": ([0], [-1], [1, 0], [0, 2])}, fits=_crop_fits),
    "Resize": Row(
        ("1,1,4,5;;[1,1,2,2];", "1,1,4,5;;[1,1,0.5,1.6];", "1,1,4,5;;;[1,1,7,3]", "4,5;;[2,0.6];",
         "1,2,3,4;;;[1,2,3,4]", "5;;[1.5];", "1,1,4,5;[0,0,0.1,0.2,1,1,0.8,0.9];;[1,1,3,3]",
         "1,1,3,4;;;[6,8]", "1,1,3,4;;[2,3];", "1,1,3,4,2;;[1,1,2,0.5,1];",
         "2,1,1,1;;[1,1,3,3];", "0,1,2,2;;[1,1,2,2];"),
        {"mode": ("nearest", "linear", "cubic"), "antialias": (0, 1), "exclude_outside": (0, 1),
         "coordinate_transformation_mode": (
             "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
             "asymmetric", "tf_crop_and_resize"),
         "cubic_coeff_a": (-0.5,), "extrapolation_value": (1.5,), "axes": ([2, 3], [-1, -2]),
         "keep_aspect_ratio_policy": ("stretch", "not_larger", "not_smaller"),
         "nearest_mode": ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")},
        {"T1": ("float", "float16", "uint8", "int32"), "T2": ("float",)},
        # How numbers between integers become integers is not said, nor what the nearest element is
        # where `exclude_outside` takes it away.
        fits=lambda v: (v["axes"] != "absent") == ("[6,8]" in v["case"] or ";[2,3];" in v["case"])
        and (v["mode"] != "'linear'" or "int" not in v["type_T1"])
        and (v["mode"] not in ("absent", "'nearest'") or v["exclude_outside"] != "1")
        and (v["coordinate_transformation_mode"] == "'tf_crop_and_resize'") == ("0.8" in v["case"])
        # A policy is for sizes. onnxruntime keeps those of axes from the end; the reference fails.
        and (v["keep_aspect_ratio_policy"] in ("absent", "'stretch'")
             or (not v["case"].split(";")[2] and v["axes"] != "[-1, -2]"))
    ),
    "Upsample": Row(("1,1,2,3;[1,1,2,3]", "2,3;[2,1.5]"), {"mode": ("nearest", "linear")}),
    # Windows and images
    "Conv": Row(CONVOLVED, CONV, fits=_rank_fits),
    "ConvTranspose": Row(
        ("1,4,3,4;4,2,3,2;2", "2,4,5;4,4,3;4", "1,4,3,2,3;4,2,2,3,2;2", "1,4,3,3;4,1,3,3;2",
         "1,4,1,1;4,2,1,1;2", "0,4,3,3;4,2,3,3;2"),
        {**CONV, "group": (1, 2), "output_padding": ([1], [0, 1], [1, 1]),
         "output_shape": ([9], [8, 9])}, fits=_rank_fits),
    "ConvInteger": Row(("1,4,5,6;4,4,3,2;=2;=3", "1,4,5,6;4,2,3,3;=2;=0", "2,4,7;4,4,3;=1;=1",
                        "1,4,5,5;2,4,3,3;=4;[1,2]"), CONV, fits=_rank_fits),
    "DeformConv": Row(("1,2,5,5;2,2,2,2;1,8,4,4;2;1,4,4,4", "1,2,3,3;2,1,2,2;1,8,2,2;2;1,4,2,2"),
                      {"group": (1, 2), "kernel_shape": ([2, 2],)}),
    # Dilated windows are not larger than the input. OpenVINO gives place 0 for a window of numbers
    # that are the lowest of a float type.
    "MaxPool": Row(IMAGES, POOL, {"T": (*REALS, "int8", "uint8")}, outputs=2,
                   fits=lambda v: v["kernel_shape"] != "absent" and _rank_fits(v)
                   and (v["case"] != "1,1,3,3" or "2" not in v["dilations"]),
                   expected=expected.max_pool),
    "AveragePool": replace(POOLED, expected=expected.average_pool),
    "LpPool": replace(POOLED, expected=expected.lp_pool),
    **alike(
        "GlobalAveragePool GlobalLpPool", Row(
        IMAGES, {"p": (1, 2, 3)})),
    "GlobalMaxPool": Row(IMAGES, expected=expected.global_max_pool),
    "LRN": Row(("1,5,2,2", "2,3,2", "1,1,2,3", "0,3,2,2"), {
        "size": (1, 2, 3, 4, 5), "alpha": (0.5,), "beta": (0.5,), "bias": (2.0,)},
        # The reference counts the batch instead of the channels.
        {"T": ("float",)}, fits=lambda v: v["size"] != "absent", expected=expected.lrn),
    "MaxRoiPool": Row(("1,2,6,6;[[0,0,0,3,4],[0,1,1,5,5]]",), {
        "pooled_shape": ([2, 2], [1, 3]), "spatial_scale": (1.0, 0.5)}),
    "RoiAlign": Row(("2,2,6,6;[[0,0,3,4],[1,1,5,5]];[0,1]", "1,1,4,4;[[3,3,1,1]];[0]",
                     "1,2,5,5;0,4;0", "1,1,4,4;[[-1,-1,9,9]];[0]"),
                    {"mode": ("avg", "max"), "output_height": (2, 3), "output_width": (2,),
                     "sampling_ratio": (0, 1, 2), "spatial_scale": (0.5,),
                     "coordinate_transformation_mode": ("half_pixel", "output_half_pixel")},
                    {"T2": ("int64",)},
                    # A box of negative size, as it stands, has no number of samples.
                    fits=lambda v: "[3,3,1,1]" not in v["case"]
                    or v["sampling_ratio"] not in ("absent", "0")),
    "GridSample": Row(("1,2,4,4;1,3,3,2", "2,1,3,5;2,2,2,2", "1,1,3,3,3;1,2,2,2,3",
        "1,1,1,1;1,1,1,2",
                       "0,1,2,2;0,2,2,2"),
                      {"align_corners": (0, 1), "padding_mode": ("zeros", "border", "reflection"),
                       "mode": ("linear", "nearest", "cubic", "bilinear", "bicubic")},
                      types={"T1": REALS}, fits=lambda v: v["mode"] in ("absent", "'nearest'")
                      or (int(v["version"]) >= 20) == (v["mode"] in ("'linear'", "'cubic'"))),
    "AffineGrid": Row(("2,2,3;[2,1,3,4]", "1,3,4;[1,1,2,3,2]", "1,2,3;[1,1,1,3]"),
                      {"align_corners": (0, 1)}),
    "Col2Im": Row(("1,4,6;[3,4];[2,2]", "2,8,4;[4,4];[2,2]", "1,3,3;[5];[3]"),
                  {"strides": ([2, 2], [1]), "dilations": ([1, 1],), "pads": ([0, 0, 0, 0],)}),
    "MaxUnpool": Row(("1,1,2,2;[[[[0,3],[8,15]]]];[1,1,4,4]",), {
        "kernel_shape": ([2, 2],), "strides": ([2, 2],)},
        fits=lambda v: v["strides"] != "absent" and v["input_2"] == "absent"),
    "NonMaxSuppression": Row(
        ("1,6,4>0;1,2,6>0;=3;=0.3;=0.5", "2,5,4>0;2,1,5>0;=2;=0.0;=0.0",
         "1,4,4>0;1,1,4>0;=0;=0.5;=0.1", "1,4,4>0;1,3,4>0;[9];[0.6];[0.9]"),
        {"center_point_box": (0, 1)}),
    # Products and normalisations
    "MatMul": Row(("2,3;3,4", "3;3", "2,3;3", "3;3,4", "2,2,3;3,2", "2,2,3;2,3,1", "1,2,3;4,3,2",
                   "0,3;3,2", "2,0;0,3", "2,1,2,3;3,3,2", "1,1;1,1")),
    "Gemm": Row(("3,3;3,3;3", "2,3;3,4;4", "3,2;4,3;3,4", "2,3;4,3;()", "3,2;3,4;2,1", "0,3;3,2;2",
                 "2,0;0,3;3", "1,1;1,1;1,1"),
                {"alpha": (0.5,), "beta": (0.5, 0.0), "transA": (0, 1), "transB": (0, 1)}),
    "Einsum": Row(("2,3;3,4", "3,3;3,3", "2,3,4;2,4,2", "3;3", "3,3"), {"equation": (
        "ij,jk->ik", "ij,jk", "bij,bjk->bik", "i,i->", "i,j->ij", "ii->i", "ij->ji", "ij->",
        "...ij,...jk->...ik", "ij,kj->ik", "ii", "bij,bjk->bki")}),
    "Det": Row(("3,3", "2,2,2", "1,1")),
    "BatchNormalization": Row(("2,3,4;3;3;3;3>0", "2,3;3;3;3;3>0", "1,3,2,2;3;3;3;3>0",
                               "0,3,2;3;3;3;3>0"), {"epsilon": (0.1,), "momentum": (0.5,)}),
    "InstanceNormalization": Row(("2,3,4;3;3", "1,2,3,3;2;2", "1,1,2,2,2;1;1"),
        {"epsilon": (0.1,)}),
    "GroupNormalization": Row(("2,4,3;4;4", "1,4,2,2;4;4", "2,4,3;2;2"), {
        "num_groups": (1, 2, 4), "epsilon": (0.1,), "stash_type": (1,)}),
    "LayerNormalization": Row(("2,3,4;4;4", "2,3,4;3,4;3,4", "2,3;2,3;2,3", "2,3;3;()",
        "0,3;3;3"), {
        "axis": AXIS, "epsilon": (0.1,), "stash_type": (1,)}, outputs=3,
        # No elements have no mean.
        fits=lambda v: "0,3" not in v["case"] or v["axis"] not in ("0", "-2")),
    "RMSNormalization": Row(("2,3,4;4", "2,3,4;3,4", "2,3;1", "0,3;3"), {
        "axis": AXIS, "epsilon": (0.1,), "stash_type": (1,)}),
    "LpNormalization": Row(SHAPES[3:], {"axis": AXIS, "p": (1, 2)}),
    "MeanVarianceNormalization": Row(("2,3,4", "2,3,2,2"), {"axes": ([0], [1, 2], [-1])}),
    "Dropout": Row(("2,3;=0.5;=0", "4;=0.1;=0", "0,2;=0.5;=0"), outputs=2),
    # Quantised
    "QuantizeLinear": Row(("2,3;=0.5;=2", "2,3;[0.5,0.25,2.0];[0,1,2]", "2,4;2,2>0;2,2<0..3",
                           "();=0.1;=0", "0,3;=0.5;=1", "3;[0.5];[1]", "2,3;=2;=1"),
                          {"axis": (0, 1, -1), "saturate": (0, 1), "block_size": (2,),
                           "output_dtype": (2, 3, 5)},
                          {"T1": ("float", "float16", "int32"), "T2": QUANTISED, "T3": QUANTISED},
                          special=True,  # The reference's quotients of integers overflow. Of them,
                          # the scales are integers, too, and nothing says what 0 gives.
                          fits=lambda v: v["type_T1"] != "int32"
                          or (v["numbers"] == "plain" and "=2;" in v["case"])),
    "DequantizeLinear": Row(("2,3<0..2;=0.5;=1", "2,3<0..2;[0.5,0.25,2.0];[0,1,1]",
                             "2,4<0..2;2,2>0;2,2<0..2", "=1;=0.1;=0", "0,3;=0.5;=1"),
                            {"axis": (0, 1, -1), "block_size": (2,), "output_dtype": (1, 10)},
                            {"T": (*QUANTISED, "int32"), "T1": (*QUANTISED, "int32")}),
    "DynamicQuantizeLinear": Row(("2,3", "4>0", "1", "[0.0,0.0]"), outputs=3),
    "QLinearConv": Row(
        tuple(f"{x}<0..9;=0.5;=2;{w}<0..5;{s};=0.25;=3;2<-9..9" for x, w, s in (
            ("1,4,5,6", "2,4,3,2", "=0.5;=1"), ("1,4,5,6", "2,4,3,3", "[0.5,0.1];[1,1]"),
            ("2,4,7", "2,4,3", "=0.5;=0"), ("1,4,5,5", "2,2,3,3", "=0.5;=0"))),
        CONV, {"T4": ("int32",)}, fits=_rank_fits),
    # The reference adds the zero point of the result before it rounds: an even one keeps ties.
    "QLinearMatMul": Row(("2,3<0..9;=0.5;=2;3,4<0..9;=0.25;=1;=1.0;=4",
                          "2,2,3<0..9;=0.5;=2;2,3,1<0..9;=0.25;=1;=1.0;=4",
                          "2,3<0..9;=0.5;=2;3,2<0..9;[0.5,0.25];[1,2];=1.0;=4",
                          "2,3<0..9;=0.5;=2;3,2<0..9;=0.5;[1,2];=1.0;=4")),
    "MatMulInteger": Row(("2,3;3,4;=1;=2", "2,2,3;3,2;=0;=1", "2,3;3,2;[1,2];[1,3]",
        "0,3;3,2;=1;=1",
                          "3;3,2;=1;=1")),
    # Recurrent and attention
    "RNN": _recurrent(1, activations=(["Relu"], ["Tanh", "Sigmoid"])),
    "GRU": _recurrent(3, linear_before_reset=(0, 1), activations=(["Sigmoid", "Relu"],)),
    "LSTM": _recurrent(4, input_forget=(0, 1), activations=(["Sigmoid", "Tanh", "Relu"],)),
    "Attention": Row(
        ("1,2,3,4;1,2,5,4;1,2,5,4;3,5", "1,2,3,4;1,2,3,4;1,2,3,6;1,2,3,3",
            "2,4,3,4;2,2,3,4;2,2,3,4;",
         "1,2,3,4;1,2,2,4;1,2,2,4;3,5;1,2,3,4;1,2,3,4", "1,3,8;1,5,8;1,5,8;3,5",
             "1,2,1,4;1,2,1,4;1,2,1,4;1,1"),
        {"is_causal": (0, 1), "scale": (0.5,), "softcap": (2.0,), "q_num_heads": (2,),
         "kv_num_heads": (2,), "qk_matmul_output_mode": (0, 1, 2, 3)},
        {"T1": REALS, "T2": REALS, "U": ("bool", "float")},
        fits=lambda v: ("1,3,8" in v["case"]) == (v["q_num_heads"] != "absent")
        and (v["q_num_heads"] == "absent") == (v["kv_num_heads"] == "absent")),
    "RotaryEmbedding": Row(("1,2,3,4;3,2;3,2;", "1,2,3,4;5,2;5,2;[[0,2,4]]",
        "2,3,8;2,3,2;2,3,2;"), {
        "interleaved": (0, 1), "num_heads": (2,), "rotary_embedding_dim": (0, 4)},
        fits=lambda v: ("2,3,8" in v["case"]) == (v["num_heads"] != "absent")),
    "TensorScatter": Row(("2,2,4,3;2,2,1,3;[1,3]", "1,4,3;1,2,3;[0]", "2,2,4,3;2,2,2,3;[3,2]"), {
        "axis": (-2, 1, 2), "mode": ("linear", "circular")}),
    # Signals
    "DFT": Row(("1,8,1", "2,8,2", "1,4,3,1;;=1", "1,4,3,2;;=2", "1,8,1;=6;=1", "1,5,1;=8;=-2",
                "1,5,2;=8;=1", "1,1,1"), {"inverse": (0, 1), "onesided": (0, 1), "axis": (1, -2)},
               {"T1": REALS}),
    "STFT": Row(("1,16,1;=4;8;=8", "2,12,1;=3;6;", "1,16,2;=4;8;=8", "1,10,1;=2;;=4"), {
        "onesided": (0, 1)}, {"T1": ("float", "double")}),
    **alike(
        "HannWindow HammingWindow BlackmanWindow", Row(
        ("=8", "=1", "=5", "=0"), {"periodic": (0, 1), "output_datatype": (1, 10, 11)})),
    "MelWeightMatrix": Row(("=4;=16;=8000;=0.0;=4000.0", "=2;=8;=8000;=100.0;=3000.0"), {
        "output_datatype": (1, 11)}),
    # Losses
    **alike(
        "NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss", Row(
        ("3,4;[0,3,1];4>0", "2,4,2;[[0,1],[2,3]];4>0", "2,3,2,1;[[[0],[1]],[[2],[2]]];3>0"),
        {"reduction": ("none", "sum", "mean"), "ignore_index": (0, 1, -1)})),
    # Sequences
    "SequenceConstruct": Row(("2,3;2,3", "2;3", "()", "0,2;1,2")),
    "SequenceAt": Row(("seq 2,3|2,3;=1", "seq 2,3|1,3;=-1", "seq ();=0", "seq 0,2|2,2;=0")),
    "SequenceLength": Row(("seq 2,3|2,3", "seq none", "seq ()")),
    "SequenceInsert": Row(("seq 2,3|1,3;1,3;=1", "seq 2;3;=-1", "seq none;2;=0", "seq 2|2;2;=2"),
                          fits=lambda v: v["type_T"] == v["type_S"]),
    "SequenceErase": Row(("seq 2,3|1,3;=1", "seq 2|3|1;=-3", "seq 2;=0")),
    "ConcatFromSequence": Row(("seq 2,3|2,3", "seq 2,3", "seq 1|1|1", "seq 2,1|2,1"), {
        "axis": (0, 1, -1, -2), "new_axis": (0, 1)}, fits=lambda v: v["axis"] != "absent"),
    "SplitToSequence": Row(("4,3;=2", "4,3;[1,3]", "5;", "4,3;[1,0,3]", "0,2;=1"), {
        "axis": (0, 1, -1), "keepdims": (0, 1)},
        # The lengths must add up to the size; onnxruntime does not check them. Beside a scalar
        # `split`, onnxruntime applies `keepdims`, which the reference ignores.
        fits=lambda v: (v["axis"] in ("0", "absent") or "[1," not in v["case"])
        and (v["keepdims"] != "0" or "=" not in v["case"] or v["type_T"] in _SPLIT)),
}  # fmt: skip
