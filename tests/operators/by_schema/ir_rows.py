"""The rows of OpenVINO's operators, each named with an operator set that has it. OpenVINO publishes
no schemas, so attributes have all their values here; None leaves one out."""

from __future__ import annotations

from dataclasses import replace

from tests.operators.by_schema.onnx_rows import DIVIDED, PAIRS, SHAPES
from tests.operators.by_schema.rows import REALS, Row, alike

F = {"0": ("float",)}
FLOAT = {"0": REALS}
WIDE = {"0": (*REALS, "int32", "int64")}
I64 = {str(place): ("int64",) for place in range(1, 6)}
AUTO = ("explicit", "same_upper", "same_lower", "valid")
WINDOW = {"strides": ([1, 1], [2, 2], [2, 1]), "pads_begin": ([0, 0], [1, 0]),
          "pads_end": ([0, 0], [0, 1]), "auto_pad": AUTO}  # fmt: skip
CONV = {**WINDOW, "dilations": ([1, 1], [2, 2], [1, 2])}
REDUCE = Row(
    ("2,3,4;[1]", "2,3,4;[-1]", "2,3,4;[0,2]", "2,3;[]", "4;[0]", "0,3;[0]", "2,0;[1]",
     "1,1,1;[1]", "2,1,3,2;[1,2,3]", "2,3,4;=1"), {"keep_dims": (True, False)}, I64,
    fits=lambda v: not v["case"].startswith(("0,", "2,0")) or v["type_0"] == "float")  # fmt: skip
FILLED = tuple(case for case in REDUCE.cases if not case.startswith(("0,", "2,0")))
SHORT = tuple(pair for pair in PAIRS if "=" not in pair)
# In f64, the plugin finds a constant less than itself.
BINARY = Row(
    SHORT,
    {"auto_broadcast": ("numpy",)},
    {"0": ("float", "float16", "int32", "int64", "uint8", "int8")},
    special=True,
)
UNARY = Row(SHAPES, types=FLOAT, special=True)
GATHERED = Row(
    ("4,3;[0,2];=0", "4,3;=1;=-1", "2,3;[[0,2],[1,1]];=1", "4;=3;=0", "4,3;[];=0",
     "2,3,4;[[0,1],[2,3]];=2"), {"batch_dims": (0,)}, I64)  # fmt: skip
NMS = ("1,6,4>0;1,2,6>0;=3;=0.3;=0.5;=0.0", "2,5,4>0;2,1,5>0;=2;=0.0;=0.0;=0.5",
       "1,4,4>0;1,1,4>0;=0;=0.5;=0.1;=0.0")  # fmt: skip

ROWS = {name: replace(row, release=1) for name, row in {
    **alike(
        "Abs-1 Acos-1 Asin-1 Atan-1 Ceiling-1 Cos-1 Cosh-1 Erf-1 Exp-1 Floor-1 Log-1 "
        "Negative-1 Relu-1 Sigmoid-1 Sign-1 Sin-1 Sinh-1 Sqrt-1 Tan-1 Tanh-1", UNARY),
    **alike(
        "Acosh-3 Asinh-3 Atanh-3 HSwish-4 Mish-4 SoftPlus-4 HSigmoid-5 IsNaN-10 IsFinite-10",
        UNARY),
    # onnxruntime has no kernel of f64, the reference none of scalars.
    "SoftSign-9": replace(UNARY, types={"0": ("float", "float16")}),
    "Abs-1": Row(SHAPES), "Sign-1": Row(SHAPES, special=True),
    "Negative-1": Row(SHAPES), "Relu-1": Row(SHAPES, special=True),
    **alike(
        "Maximum-1 Minimum-1 Equal-1 NotEqual-1 Greater-1 GreaterEqual-1 Less-1 LessEqual-1",
        BINARY),
    # The plugin saturates integers of 8 bits.
    **alike("Add-1 Subtract-1 Multiply-1", replace(BINARY, types=WIDE)),
    **alike("SquaredDifference-1 Power-1", replace(BINARY, types=FLOAT)),
    "Divide-1": Row(DIVIDED.cases, types=WIDE, attributes={
        "m_pythondiv": (True, False), "auto_broadcast": ("numpy",)}),
    **alike(
        "Mod-1 FloorMod-1", Row(
        ("2,3;[[2,3,-2],[-3,5,7]]", "2,3;=3", "4;=-3", "();=2", "0,3;=2", "2,3;[2,-3,5]"),
        {"auto_broadcast": ("numpy",)})),
    **dict.fromkeys((f"Logical{op}-1" for op in ("And", "Or", "Xor")), Row(
        SHORT, {"auto_broadcast": ("numpy",)}, {"0": ("bool",), "1": ("bool",)})),
    "LogicalNot-1": Row(SHAPES, types={"0": ("bool",)}),
    **dict.fromkeys((f"Bitwise{op}-13" for op in ("And", "Or", "Xor")), Row(
        SHORT, {"auto_broadcast": ("numpy",)}, {"0": ("int32", "uint8", "int8", "bool")})),
    **dict.fromkeys((f"Bitwise{op}Shift-15" for op in ("Left", "Right")), Row(
        ("2,3<0..9;2,3<0..4", "4<0..9;=2", "();=1"), types={"0": ("int32", "uint8", "int64")})),
    "IsInf-10": Row(SHAPES, {"detect_negative": (True, False), "detect_positive": (True, False)},
                    FLOAT, special=True),
    "Clamp-1": Row(SHAPES, {"min": (-1.0, 0.0, -1e9), "max": (1.0, 2.0)}, special=True),
    "Elu-1": Row(SHAPES, {"alpha": (1.0, 0.5, -1.0)}, FLOAT, special=True),
    "Selu-1": Row(("2,3;=1.5;=1.1", "();=1.5;=1.1"), types=FLOAT),
    "PRelu-1": Row(("2,3;3", "2,3,2;3", "1,3,2,2;1", "2,3;2,3", "2,3;()"), types=FLOAT),
    "Swish-4": Row(("2,3", "2,3;=0.5", "0,2;=1.0"), types=FLOAT, special=True),
    "HardSigmoid-1": Row(("2,3;=0.2;=0.5",), types=FLOAT, special=True),
    "Gelu-7": Row(SHAPES, {"approximation_mode": ("erf", "tanh")}, FLOAT, special=True),
    "Round-5": Row(SHAPES, {"mode": ("half_to_even", "half_away_from_zero")}, FLOAT, special=True),
    "Convert-1": Row(SHAPES, {"destination_type": (
        "f32", "f16", "f64", "i8", "i32", "i64", "u8", "boolean", "i16", "u16", "u32", "u64")},
        # A float below 0 has no unsigned integer.
        fits=lambda v: "u" not in v["destination_type"] or v["type_0"] not in REALS),
    "ConvertLike-1": Row(("2,3;1", "();2")),
    "Select-1": Row(("2,3;2,3;2,3", "2,1;3;()", "();2,3;3", "0;0;0", "1,3;2,1,1;4,3"), {
        "auto_broadcast": ("numpy",)}, {"0": ("bool",), "1": ("float",), "2": ("float",)}),
    "ReduceSum-1": REDUCE,
    # The specification says nothing of no elements.
    **{f"Reduce{op}-1": replace(REDUCE, cases=FILLED) for op in ("Max", "Mean", "Min")},
    # The plugin saturates integers of 8 bits.
    "ReduceProd-1": replace(REDUCE, types={**I64, **WIDE}),
    **{f"ReduceL{p}-4": replace(REDUCE, types={**I64, **F}) for p in (1, 2)},
    **{f"ReduceLogical{op}-1": replace(REDUCE, types={**I64, "0": ("bool",)})
       for op in ("And", "Or")},
    # Shapes and indices
    "Reshape-1": Row(("2,3;[3,2]", "2,3;[-1]", "2,3;[0,-1]", "();[1,1]", "1;[]", "0,3;[0,3]",
                      "2,3,4;[0,0,2,-1]", "2,0;[0,4]"), {"special_zero": (True, False)}, I64),
    "Squeeze-15": Row(("1,2,1;[0]", "1,2,1;[-1]", "1,2,1;[0,2]", "1,2,1", "1,2,1;[1]", "1;[0]"), {
        "allow_axis_skip": (True, False)}, I64),
    "Unsqueeze-1": Row(("2,3;[0]", "2,3;[-1]", "2,3;[0,3]", "();[0]", "0,3;[2,0]", "2,3;=1"),
                       types=I64),
    "Transpose-1": Row(("2,3;[1,0]", "2,3,4;[2,0,1]", "2,3;[]", "4;[0]", "0,3;[1,0]"), types=I64),
    "ShapeOf-3": Row(SHAPES, {"output_type": ("i64", "i32")}),
    "Concat-1": Row(("2,3;2,3", "2,3;2,1", "2;3;1", "2,0;2,3", "1,2,3;1,2,3"), {
        "axis": (0, 1, -1)}),
    "Split-1": Row(("4,6;=0", "4,6;=1", "4,6;=-1", "2,4,2;=1"), {"num_splits": (1, 2)}, I64),
    "VariadicSplit-1": Row(("4,6;=0;[1,3]", "4,6;=1;[2,-1]", "4,6;=-1;[6,0]", "6;=0;[1,2,3]"),
                           types=I64, fits=lambda v: v["input_2"] == "constant"),
    "Broadcast-3": Row(("2,3;[2,2,3]", "1,3;[4,1]", "();[2,2]", "3;[2,3]", "1;[0]"), {
        "mode": ("numpy", "bidirectional")}, I64),
    "Tile-1": Row(("2,3;[1,2]", "2,3;[2]", "4;[0]", "2;[2,3]", "0,2;[2,2]"), types=I64),
    "StridedSlice-1": Row(
        ("4,5;[1,0];[3,5];[1,1]", "4,5;[0,0];[9,9];[2,3]", "4,5;[-1,-1];[-9,-9];[-1,-2]",
         "4,5;[1,1];[2,2];[1,1]", "2,3,4;[0,1];[2,3];[1,1]", "4,5;[3,4];[0,0];[-2,-1]"),
        {"begin_mask": ([0, 0], [1, 0], [0, 1]), "end_mask": ([0, 0], [0, 1]),
         "new_axis_mask": ([0, 0], [1, 0]), "shrink_axis_mask": ([0, 0], [0, 1]),
         "ellipsis_mask": ([0, 0],)}, I64,
        # With open sizes, the plugin gives unset memory.
        fits=lambda v: v["sizes"] == "known" or v["new_axis_mask"] == v["ellipsis_mask"]),
    "Slice-8": Row(("4,5;[1];[3];[1];[0]", "4,5;[0,0];[9,9];[2,3];[0,1]", "4,5;[-1];[-9];[-1];[1]",
                    "4,5;[2];[2];[1];[0]", "4;[-9];[9];[1]", "4,5;[9];[12];[2];[-1]",
                    "0,3;[0];[1];[1];[0]"), types=I64),
    "Gather-8": replace(
        GATHERED, attributes={"batch_dims": (0, 1, -1)},
        # OpenVINO ends its process on no indices.
        fits=lambda v: "[]" not in v["case"] or v["batch_dims"] == "0"),
    "Gather-7": GATHERED,
    "GatherElements-6": Row(("3,3;[[0,1,2]]", "3,3;[[-1,0],[1,-3]]", "3;[2,-1]", "3,3;2,0"), {
        "axis": (0, 1, -1)}, I64),
    "GatherND-8": Row(("2,3;[[0,1],[1,2]]", "2,3;[[1],[-1]]", "2,3;[0,-1]", "2,3,4;2,1<-3..3",
                       "2,2,3;[[1],[0]]"), {"batch_dims": (0, 1)}, I64),
    "GatherTree-1": Row(("3,1,2<0..2;3,1,2<0..2;[2];=9", "2,2,3<0..3;2,2,3<0..3;[2,1];=5"),
                        types={**{str(i): ("int32",) for i in range(1, 4)}, "0": ("int32",)}),
    "ScatterElementsUpdate-12": Row(
        ("3,3;[[0,1,2]];1,3;=0", "3,3;[[-1,0],[1,-3]];2,2;=1", "3;[0,0,0,0];4;=0",
         "3;[2,2,0];3;=-1", "2,3;2,0;2,0;=1"),
        {"reduction": ("none", "sum", "prod", "min", "max", "mean"), "use_init_val": (True, False)},
        {"0": ("float", "int32", "int64", "float16"), "1": ("int64",), "3": ("int64",)}),
    "ScatterNDUpdate-15": Row(
        ("4,2;[[1],[3]];2,2", "4,2;[[1],[1]];2,2", "2,3;[[0,-1],[1,2]];2", "3;[[-1]];1",
         "2,3;[[0,1],[0,1]];2", "4,2;0,1;0,2"),
        {"reduction": ("none", "sum", "sub", "prod", "min", "max")}, {"1": ("int64",)}),
    "ScatterUpdate-3": Row(("4,2;[1,3];2,2;=0", "4,2;[0];4,1;=1", "4;[3];1;=0", "4,2;=1;2;=0"),
                           types={"1": ("int64",), "3": ("int64",)}),
    "TopK-11": Row(("2,4;=2", "2,4;=4", "4;=1", "2,3,4;=1", "2,5<0..2;=3", "1,1;=1"), {
        "axis": (0, -1), "mode": ("max", "min"), "sort": ("value",),
        "index_element_type": ("i64", "i32"), "stable": (True, False)}, I64,
        # "Otherwise the output order is undefined": few integers have many equal ones.
        fits=lambda v: v["stable"] == "True" or (v["type_0"] in REALS and "<" not in v["case"])),
    # Along another axis than the first, the plugin takes equal parts for different ones. Of bytes,
    # the indices are unset memory. onnxruntime has no kernel of i32, and the reference fails.
    "Unique-10": Row(("5<0..3;=0", "4,3<0..2;=0", "4,3;=1", "4,3;=-1", "5<0..3", "4,3<0..2"), {
        "sorted": (True, False), "index_element_type": ("i64", "i32"),
        "count_element_type": ("i64", "i32")}, {**I64, "0": ("float", "int64")}),
    "NonZero-3": Row(("2,3<0..2", "4<0..2", "0,3", "2,3"), {"output_type": ("i64", "i32")}),
    "OneHot-1": Row(("[0,2,-1];=3;=5;=-1", "2,2<-3..3;=3;=1;=0", "=1;=2;=1;=0"), {
        "axis": (0, 1, -1)}, {"0": ("int64", "int32"), "1": ("int64",), "2": ("float",),
                             "3": ("float",)}),
    "Range-4": Row(("=0;=5;=2", "=5;=0;=-2", "=0;=0;=1", "=1;=2;=3"), {
        "output_type": ("i64", "f32", "i32")}, {"0": ("int64", "float", "int32")}),
    "CumSum-3": Row(("2,3;=0", "2,3;=-1", "4;=0", "0,3;=0"), {
        "exclusive": (True, False), "reverse": (True, False)},
        {"0": ("float", "int64", "int32", "float16"), "1": ("int64",)}),
    "Eye-9": Row(("=3;=4;=0", "=3;=2;=-1", "=2;=2;=5", "=0;=2;=0"), {
        "output_type": ("f32", "i64", "boolean")}, {"0": ("int64",), **I64}),
    "ReverseSequence-1": Row(("4,3;[1,4,2]", "3,3;[1,3,2]", "3,3;[1,1,1]"), {
        "batch_axis": (1, -1), "seq_axis": (0,)}, I64),
    "Roll-7": Row(("2,3;[1];[0]", "2,3;[-1,4];[0,1]", "4;=1;[0]", "2,3;[1,1];[-1,-1]"),
                  types=I64),
    "Pad-12": Row(("3,4;[1,0];[0,2];=5", "3,4;[-1,0];[0,1];=5", "4;[2];[3]", "3,4;[0,0];[0,0]",
                   "3,4;[1,2];[1,2];=1"),
                  {"pad_mode": ("constant", "reflect", "edge", "symmetric")},
                  {"1": ("int64",), "2": ("int64",)}),
    "DepthToSpace-1": Row(("1,8,2,3", "2,4,2"), {
        "block_size": (1, 2), "mode": ("blocks_first", "depth_first")}),
    "SpaceToDepth-1": Row(("1,2,4,6", "2,1,4"), {
        "block_size": (1, 2), "mode": ("blocks_first", "depth_first")}),
    "ShuffleChannels-1": Row(("1,4,2,2", "2,6,2", "4,2"), {"axis": (0, 1, -1), "group": (1, 2)}),
    "BatchToSpace-2": Row(("4,3;[1,2];[0,0];[0,1]", "4,1,2,2;[1,1,2,2];[0,0,0,0];[0,0,1,0]"),
                          types=I64),
    "SpaceToBatch-2": Row(("2,4;[1,2];[0,0];[0,2]", "1,1,2,2;[1,1,2,2];[0,0,0,0];[0,0,0,0]"),
                          types=I64),
    "Bucketize-3": Row(("2,3;[-1,0,2]", "4;[]", "();[0]"), {
        "output_type": ("i64", "i32"), "with_right_bound": (True, False)},
        {"0": ("float", "int32", "int64"), "1": ("float",)}),
    "SearchSorted-15": Row(("[1,3,5];2", "[[1,3,5],[2,2,4]];2,2", "[1,1,2];2,2"), {
        "right_mode": (True, False), "output_type": ("i64", "i32")}),
    # Windows and images
    "Convolution-1": Row(("1,4,5,6;4,4,3,2", "2,4,7,7;2,4,3,3", "1,4,1,1;4,4,1,1"), CONV, FLOAT),
    "GroupConvolution-1": Row(("1,4,5,6;2,3,2,3,2", "2,4,7,7;4,1,1,3,3"), CONV, FLOAT),
    "ConvolutionBackpropData-1": Row(
        ("1,4,5,6;4,2,3,2", "1,4,3,3;4,4,3,3", "1,4,3,3;4,2,3,3;[5,5]"),
        {**CONV, "output_padding": ([0, 0], [1, 0], None)},
        # onnxruntime has no kernel of f64, and the reference no negative pads.
        {"0": ("float", "float16"), "2": ("int64",)}),
    "GroupConvolutionBackpropData-1": Row(
        ("1,4,3,4;2,2,3,3,2",), {**CONV, "output_padding": ([0, 0], [0, 1], None)}, F),
    "MaxPool-14": Row(("1,2,7,6", "1,1,3,3", "0,2,5,5"), {
        **CONV, "kernel": ([2, 2], [3, 2], [1, 1]), "axis": (0, 2, -1),
        "rounding_type": ("floor", "ceil", "ceil_torch"), "index_element_type": ("i64", "i32")},
        FLOAT, fits=lambda v: v["kernel"] != "[1, 1]" or v["pads_begin"] == v["pads_end"]),
    "AvgPool-14": Row(("1,2,7,6", "1,1,3,3", "0,2,5,5"), {
        **WINDOW, "kernel": ([2, 2], [3, 2], [1, 1]), "exclude-pad": (True, False),
        "rounding_type": ("floor", "ceil", "ceil_torch")}, FLOAT),
    "AdaptiveAvgPool-8": Row(("1,2,7,6;[3,2]", "1,2,5;[2]", "2,1,4,4;[1,1]"), types={**F, **I64}),
    "AdaptiveMaxPool-8": Row(("1,2,7,6;[3,2]", "1,2,5;[2]"), {
        "index_element_type": ("i64", "i32")}, {**F, **I64}),
    "Interpolate-11": Row(
        ("1,1,4,5;[8,3];[2,3]", "1,1,4,5;[5,4];[-1,-2]", "4,5;[2,9];[0,1]", "1,2,3,4;[6,8];[2,3]"),
        {"mode": ("nearest", "linear", "linear_onnx", "cubic", "bilinear_pillow", "bicubic_pillow"),
         "shape_calculation_mode": ("sizes",), "antialias": (False, True),
         "coordinate_transformation_mode": (
             "half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners",
             "tf_half_pixel_for_nn"),
         "nearest_mode": ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"),
         "pads_begin": ([0], [0, 0, 1, 0]), "pads_end": ([0],), "cube_coeff": (-0.75, -0.5)},
        {**F, **I64}),
    "LRN-1": Row(("1,5,2,2;[1]", "2,3,4;[1,2]", "2,3,4;[]"), {
        "alpha": (0.5,), "beta": (0.75,), "bias": (1.0, 2.0), "size": (1, 3, 5)}, {**F, **I64}),
    "GRN-1": Row(("1,3,2,2", "2,3,2"), {"bias": (0.1, 1.0)}, F),
    "MVN-6": Row(("2,3,4;[1,2]", "2,3,4;[-1]", "1,2,3,3;[2,3]"), {
        "normalize_variance": (True, False), "eps": (1e-5, 0.1),
        "eps_mode": ("inside_sqrt", "outside_sqrt")}, {**F, **I64}),
    "NormalizeL2-1": Row(("2,3,4;[1]", "2,3,4;[]", "1,2,3,3;[1,2,3]", "2,3;[-1]"), {
        "eps": (1e-5, 0.5), "eps_mode": ("add", "max")}, {**F, **I64},
        # "Each input element is divided by itself", but the plugin does so for constants alone.
        fits=lambda v: "[]" not in v["case"] or v["input_1"] == "constant"),
    "BatchNormInference-5": Row(("2,3,4;3;3;3;3>0", "2,3;3;3;3;3>0"), {"epsilon": (1e-5, 0.1)}, F),
    "GroupNormalization-12": Row(("2,4,3;4;4", "1,4,2,2;4;4"), {
        "num_groups": (1, 2, 4), "epsilon": (1e-5, 0.1)}, F),
    "RMS-14": Row(("2,3,4;4", "2,3,4;1"), {"epsilon": (1e-5, 0.1)}, F),
    "GridSample-9": Row(("1,2,4,4;1,3,3,2", "2,1,3,5;2,2,2,2", "1,1,1,1;1,1,1,2"), {
        "align_corners": (True, False), "mode": ("bilinear", "nearest", "bicubic"),
        "padding_mode": ("zeros", "border", "reflection")}, F),
    "ROIAlign-9": Row(("2,2,6,6;[[0,0,3,4],[1,1,5,5]];[0,1]", "1,1,4,4;[[3,3,1,1]];[0]"), {
        "pooled_h": (2,), "pooled_w": (3,), "sampling_ratio": (0, 2), "spatial_scale": (1.0, 0.5),
        "mode": ("avg", "max"),
        "aligned_mode": ("asymmetric", "half_pixel_for_nn", "half_pixel")},
        {**F, "1": ("float",), "2": ("int64",)},
        # A negative size has no number of samples.
        fits=lambda v: "[3,3,1,1]" not in v["case"] or "0" not in v["sampling_ratio"]
        or v["aligned_mode"] == "'asymmetric'"),
    "ROIPooling-2": Row(("1,2,6,6;[[0,0,0,3,4],[0,1,1,5,5]]",), {
        "output_size": ([2, 2],), "spatial_scale": (1.0,), "method": ("max",)}, F),
    "ExtractImagePatches-3": Row(("1,2,5,6",), {
        "sizes": ([2, 2], [3, 2]), "strides": ([1, 1], [2, 2]), "rates": ([1, 1], [2, 1]),
        "auto_pad": ("valid", "same_upper", "same_lower")}, F),
    "Col2Im-15": Row(("1,4,6;[3,4];[2,2]", "2,8,9;[4,4];[2,2]"), {
        "strides": ([1, 1],), "dilations": ([1, 1],), "pads_begin": ([0, 0],),
        "pads_end": ([0, 0],)}, {**F, **I64}),
    "NonMaxSuppression-9": Row(NMS, {
        "box_encoding": ("corner", "center"), "sort_result_descending": (True, False),
        "output_type": ("i64", "i32")}, {**F, "1": ("float",), "2": ("int64",), "3": ("float",),
                                       "4": ("float",), "5": ("float",)}),
    # Products, quantisation, recurrence, attention, signals
    "MatMul-1": Row(("3,3;3,3", "3;3", "3;3,3", "2,3,3;3,3", "2,1,3,3;3,3,3", "0,3;3,3", "3,3;3"), {
        "transpose_a": (True, False), "transpose_b": (True, False)},
        fits=lambda v: "0,3" not in v["case"] or v["transpose_a"] == "False"),
    "Einsum-7": Row(("3,3;3,3",), {"equation": (
        "ij,jk->ik", "ij,kj->ik", "ij,ij->", "ij,jk", "ij,ij->ij", "ii,jk->ik")}, F),
    "Softmax-8": Row(("2,3", "4", "2,1,3,2", "0,3"), {"axis": (0, -1)}, FLOAT, special=True),
    "LogSoftmax-5": Row(("2,3", "4", "2,1,3,2", "0,3"), {"axis": (0, -1)}, FLOAT, special=True),
    "FakeQuantize-1": Row(
        ("2,3,4;=-1;=2;=-1;=2", "2,3,4;=0;=2;=-1;=1", "1,3,2,2;1,3,1,1<-5..-2;1,3,1,1<1..4;=-1;=1",
         "2,3;=2;=-1;=0;=1"), {"levels": (2, 16, 255, 256), "auto_broadcast": ("numpy",)}, F),
    "FakeConvert-13": Row(("2,3;=1.0", "2,3;=2.0;=0.5"), {
        "destination_type": ("f8e4m3", "f8e5m2")}, F),
    "RNNSequence-5": Row(("2,3,4;2,1,3;[3,2];1,3,4;1,3,3;1,3",), {
        "hidden_size": (3,), "direction": ("forward", "reverse"),
        "activations": (["tanh"], ["relu"]), "clip": (0.0, 0.5)},
        {**F, "1": ("float",), "2": ("int64",)}),
    "GRUSequence-5": Row(("2,3,4;2,1,3;[3,2];1,9,4;1,9,3;1,9",
        "2,3,4;2,1,3;[3,2];1,9,4;1,9,3;1,12"), {
        "hidden_size": (3,), "direction": ("forward", "reverse"),
        "linear_before_reset": (True, False), "clip": (0.0, 0.5),
        "activations": (["sigmoid", "tanh"], ["sigmoid", "relu"])},
        {**F, "1": ("float",), "2": ("int64",)}),
    "LSTMSequence-5": Row(("2,3,4;2,1,3;2,1,3;[3,2];1,12,4;1,12,3;1,12",), {
        "hidden_size": (3,), "direction": ("forward", "reverse"), "clip": (0.0, 0.5),
        "activations": (["sigmoid", "tanh", "tanh"], ["sigmoid", "relu", "tanh"])},
        {**F, "3": ("int64",)}),
    "ScaledDotProductAttention-13": Row(
        ("1,2,3,4;1,2,5,4;1,2,5,6", "2,3,4;2,5,4;2,5,4;3,5", "1,2,3,4;1,2,5,4;1,2,5,4;1,1,3,5;=0.5",
         "1,2,3,4;1,2,3,4;1,2,3,4;();=0.3"), {"causal": (True, False)}, F),
    **{f"{op}-{release}": Row(
        ("2,8,2;[1]", "2,4,4,2;[1,2]", "2,4,4,2;[-2]", "2,8,2;[1];[6]", "2,8,2;[1];[-1]",
         "2,4,2;[1];[7]"), types={**F, **I64},
        # OpenVINO crashes when it compiles a constant along computed axes.
        fits=lambda v: v["input_0"] != "constant" or v["input_1"] != "input")
       for op, release in (("DFT", 7), ("IDFT", 7), ("IRDFT", 9))},
    "RDFT-9": Row(("2,8;[1]", "2,4,4;[1,2]", "2,4,4;[-2]", "2,8;[1];[6]", "2,4;[1];[7]"),
                  types={**F, **I64}),
    "STFT-15": Row(("2,16;4;=4;=2", "12;4;=6;=3"), {"transpose_frames": (True, False)},
                   {**F, "1": ("float",), "2": ("int64",), "3": ("int64",)}),
    "Inverse-14": Row(("[[2.0,1.0],[1.0,3.0]]",), {"adjoint": (True, False)}, F),
}.items()}  # fmt: skip
