"""The rows of onnxruntime's own operators."""

from __future__ import annotations

from collections.abc import Mapping

from tests.operators.by_schema import microsoft_expected as expected
from tests.operators.by_schema.onnx_rows import SHAPES, UNARY
from tests.operators.by_schema.rows import REALS, Row, alike


def _fits_conv(v: Mapping[str, str]) -> bool:
    """Whether the weights have as many channels as the groups, and the pads go together."""
    few = ("1,4,5,6;4,2,3,2;4", "2,5,6,4;4,3,2,2;", "2,5,6,4;4,2,3,2;")
    dilated = "2" in v["dilations"]
    return (
        (v["group"] == "2") == (v["case"] in few)
        and (v["auto_pad"] == "absent" or v.get("pads", "absent") == "absent")
        and (";4;1,4,3,5" not in v["case"] or ("2" not in v["strides"] + v["dilations"]
             and v["auto_pad"] != "'SAME_UPPER'"))
        and (v["case"] != "2,4,7;4,4,3;4" or v.get("strides") == v["dilations"] == "absent")
        and v.get("activation_params", "absent")
        == (_PARAMETERS.get(v["activation"], "absent") if "activation" in v else "absent")
        and (v["sizes"] == "known" or v["input_1"] == "constant")
        and not (dilated and v["auto_pad"] == "'SAME_UPPER'")
    )  # fmt: skip


_PARAMETERS = {
    "'LeakyRelu'": "[0.25]", "'Clip'": "[0.25, 0.5]", "'HardSigmoid'": "[0.25, 0.5]"
}  # fmt: skip


def _fits_gqa(v: Mapping[str, str]) -> bool:
    """Whether the heads are those of the keys, and there are caches to rotate by."""
    heads = "2" if v["case"].startswith(("2,1,16", "2,3,96")) else "1"
    rotated = v["do_rotary"] == "1"
    return (
        v["kv_num_heads"] == heads
        and v["type_T_CACHE"] == v["type_T"]
        and _has_given(v, 1, 2, 3, 4)
        and {v[f"input_{i}"] != "absent" for i in (7, 8)} == {rotated}
        and (not rotated or "6,8~" in v["case"])
    )


def _has_given(v: Mapping[str, str], *places: int) -> bool:
    """Whether no input is absent that the case has."""
    texts = v["case"].split(";")
    return all(v[f"input_{i}"] != "absent" for i in places if i < len(texts) and texts[i])


def _has_zero_points(v: Mapping[str, str]) -> bool:
    """onnxruntime takes no absent one."""
    return all(v[axis] != "absent" for axis in v if axis.startswith("input_"))


def _fits_axis(v: Mapping[str, str]) -> bool:
    """Whether the axis is as long as the scale."""
    return v["axis"] == "1" or v["case"] == "2,3;=0.5;=1"


def _fits_groups(v: Mapping[str, str]) -> bool:
    """Whether the axis of channels is as long as the scale."""
    return (v["channels_last"] == "0") == v["case"].startswith("2,4,3,4")


def _fits_blocks(v: Mapping[str, str]) -> bool:
    """Whether the data have the bits."""
    if v["type_T1"] != "uint8":
        return v["bits"] != "8" and "<0..2;" in v["case"] and v["input_0"] == "constant"
    return ("4,32<0..256" in v["case"]) == (v["bits"] == "8") and "<0..256" in v["case"]


def _fits_delta(v: Mapping[str, str]) -> bool:
    """Whether the rule and the gate have their inputs."""
    rule = "gated_delta" if v["update_rule"] == "absent" else v["update_rule"]
    gated = v["gate_activation"] not in ("absent", "'none'")
    return (
        ("gated" in rule) == (v["input_4"] != "absent")
        and ("delta" in rule) == (v["input_5"] != "absent")
        and gated == (v["case"].endswith(";4;4")) == (v["input_7"] != "absent" != v["input_8"])
        and (not gated or "gated" in rule)
    )


def _has_gates(v: Mapping[str, str]) -> tuple[bool, bool]:
    """Whether there are a decay and an update rate."""
    given = not v["case"].endswith("2,2,4,3")
    return given and v["input_4"] != "absent", given and v["input_5"] != "absent"


_RULES = {
    (False, False): ("'linear'",), (True, False): ("'linear'", "'gated'"),
    (False, True): ("'linear'", "'delta'"),
    (True, True): ("'linear'", "'delta'", "'gated'", "'gated_delta'", "absent"),
}  # fmt: skip
"""The rules that LinearAttention computes with or without a decay, and an update rate."""


def _fits_experts(v: Mapping[str, str]) -> bool:
    """Whether the weights are constants of these bits, in blocks or not."""
    swiglu = v["activation_type"] == "'swiglu'"
    return (
        {v["input_2"], v["input_5"]} == {"constant"}
        and "input" not in (v["input_10"], v["input_11"])
        and _has_given(v, 3, 6, 10, 11)
        and ("32,32<" in v["case"]) == (v["expert_weight_bits"] == "8")
        and (",2~" in v["case"]) == (v["block_size"] != "absent")
        and swiglu == ("3,64" in v["case"]) == (v["swiglu_fusion"] == "1")
    )


ROWS: dict[str, Row] = {
    "Gelu": UNARY, "QuickGelu": Row(SHAPES, {"alpha": (1.0, -0.5)}, special=True),
    "FastGelu": Row(("2,3,4;4", "4;4", "0,4;4", "2,1,4;")),
    "BiasGelu": Row(("2,3,4;4", "1,4;4")),
    "Inverse": Row(("[[2.0,1.0],[1.0,3.0]]", "[[[4.0]]]")),
    "Trilu": Row(("3,3;=0", "2,4;=1", "2,3,3;=-1"), {"upper": (0, 1)}),
    "ExpandDims": Row(("2,3;=0", "2,3;=-1", "();=0", "2,3;=2")),
    "Range": Row(("=0;=5;=2", "=5;=0;=-2", "=1;=4;")),
    "Unique": Row(("5<0..3", "1"), outputs=3),
    "FusedMatMul": Row(("2,3;3,4", "3,3;3,3", "3,3,3;3,3,3", "2,3,3;3,3", "2,2,2,2;2,2,2,2"), {
        "alpha": (0.5,), "transA": (0, 1), "transB": (0, 1), "transBatchA": (0, 1),
        "transBatchB": (0, 1)}, fits=lambda v: v["case"] != "2,3;3,4" or "1" not in (
            v["transA"], v["transB"], v["transBatchA"], v["transBatchB"])),
    "TransposeMatMul": Row(("3,3;3,3", "2,3,3;2,3,3"), {
        "alpha": (0.5,), "transA": (0, 1), "transB": (0, 1)}),
    "FusedGemm": Row(("3,3;3,3;3", "2,3;3,4;"), {
        "alpha": (0.5,), "beta": (0.5,), "transA": (0, 1), "transB": (0, 1),
        "activation": ("Relu", "Tanh", "LeakyRelu", "Sigmoid", "Elu", "HardSigmoid", "Softplus",
                       "Softsign", "ThresholdedRelu"),
        "activation_alpha": (0.1,), "activation_beta": (0.2,)}, {"T": REALS},
        fits=lambda v: v["activation"] != "absent" and v["activation_alpha"] != "absent"
        and (v["case"] == "3,3;3,3;3" or "1" not in (v["transA"], v["transB"]))),
    "FusedConv": Row(
        ("1,4,5,6;4,4,3,2;4", "2,4,7;4,4,3;4", "1,4,5,6;4,4,3,2;4;1,4,3,5", "1,4,5,6;4,2,3,2;4"), {
        "activation": ("Relu", "Tanh", "Sigmoid", "LeakyRelu", "Clip", "HardSigmoid"),
        "activation_params": ([0.25], [0.25, 0.5]), "group": (1, 2),
        "auto_pad": ("SAME_UPPER", "VALID"),
        "strides": ([1, 1], [2, 1]), "dilations": ([1, 1], [1, 2])}, fits=_fits_conv),
    "SkipLayerNormalization": Row(
        ("2,3,4~;2,3,4~;4~;4~;4~", "1,3,4~;1,3,4~;4~;;4~", "3,4~;3,4~;4~;4~;",
         "2,3,4~;1,3,4~;4~;4~;4~",
         "2,3,4~;3,4~;4~;;"), {"epsilon": (0.1,)}, outputs=4, unread=(1, 2)),
    "SkipSimplifiedLayerNormalization": Row(
        ("2,3,4~;2,3,4~;4~;4~", "1,3,4~;1,3,4~;4~;", "2,3,4~;3,4~;4~;4~"), {"epsilon": (0.1,)},
        outputs=4, unread=(1, 2)),
    "EmbedLayerNormalization": Row(
        ("2,3<0..5;2,3<0..2;5,4;6,4;2,4;4;4;[[1,1,0],[1,1,1]]",
         "2,3<0..5;;5,4;6,4;;4;4;[[1,1,1],[1,0,0]];2,3<0..6"),
        {"epsilon": (0.1,), "mask_index_type": (0, 1)}, {"T1": ("int32",)}, outputs=3,
        fits=lambda v: v["sizes"] == "known" or all(v[f"input_{i}"] != "input" for i in (2, 3, 5))),
    # Without outputs for present keys and values, onnxruntime reads memory that nobody wrote.
    "MultiHeadAttention": Row(
        ("2,3,8~;2,5,8~;2,5,8~;24~", "2,3,8~;2,5,8~;2,5,8~;;;1,2,3,5~",
         "1,3,8~;1,3,8~;1,3,8~;24~;[[1,1,0]]", "2,3,8~;2,2,5,4~;2,2,5,4~",
         "1,3,8~;1,2,8~;1,2,8~;;;1,1,3,4~;1,2,2,4~;1,2,2,4~", "2,3,2,3,4~",
         "2,3,8~;2,5,2,2,4~;;;[[1,1,0,1,1],[0,1,1,1,1]]", "0,3,8~;0,5,8~;0,5,8~;24~",
         "1,3,8~;1,3,8~;1,3,4~;20~;[3]"),
        {"num_heads": (2,), "scale": (0.5,), "unidirectional": (0, 1),
         "mask_filter_value": (-100.0,)}, {"M": ("int32",)}, outputs=3,
        fits=lambda v: _has_given(v, 1, 2, 6, 7)),
    "Attention": Row(
        ("2,3,4~;4,24~;24~", "2,3,4~;4,24~;24~;[3,2]", "2,3,4~;4,24~;24~;[[1,1,0],[1,1,1]]",
         "2,3,4~;4,24~;24~;;2,2,2,2,4~", "2,3,4~;4,24~;24~;;;2,2,3,3~",
         "2,3,4~;4,24~;24~;[3,2,1,0]",
         "2,3,4~;4,24~;;[[[1,1,0],[1,1,1],[0,1,1]],[[1,0,0],[1,1,1],[1,0,1]]]",
         "2,3,4~;4,24~;24~;[[1,1,0,1,1],[0,1,1,1,1]];2,2,2,2,4~;1,2,3,5~", "0,3,4~;4,24~;24~"),
        {"num_heads": (2,), "unidirectional": (0, 1), "scale": (0.5,),
         "mask_filter_value": (-100.0,), "qkv_hidden_sizes": ([8, 8, 8],)},
        {"M": ("int32",)}, outputs=2),
    "GroupQueryAttention": Row(
        ("1,3,16~;1,3,8~;1,3,8~;1,1,5,8~;1,1,5,8~;[4];=5",
         "2,1,16~;2,1,16~;2,1,16~;2,2,4,8~;2,2,4,8~;[3,2];=4",
         "1,3,16~;1,3,8~;1,3,8~;;;[2];=3", "1,2,32~;1,2,16~;1,2,16~;;;[1];=2;6,8~;6,8~",
         "1,3,32~;1,3,16~;1,3,16~;1,1,5,16~;1,1,5,16~;[4];=5;6,8~;6,8~",
         "2,3,96~;;;;;[2,2];=3;6,8~;6,8~"),
        {"num_heads": (2,), "kv_num_heads": (1, 2), "scale": (0.5,), "do_rotary": (0, 1),
         "rotary_interleaved": (1,), "softcap": (2.0,), "local_window_size": (2,),
         "smooth_softmax": (1,)}, {"M": ("int32",), "T_CACHE": REALS, "T_KV_SCALE": ("float",)},
        outputs=3, fits=_fits_gqa),
    "RotaryEmbedding": Row(("1,3,8;[[0,1,2]];4,2;4,2", "2,3,8;[1];5,4;5,4",
        "1,2,3,4;[0];4,2;4,2", "2,3,8;[[0,1,2],[3,1,0]];4,1;4,1"), {
        "interleaved": (0, 1), "num_heads": (0, 2), "rotary_embedding_dim": (0, 2),
        "scale": (1.0,), "is_packed_batching": (0,)},
        fits=lambda v: (v["rotary_embedding_dim"] == "2") == (";4,1;" in v["case"])
        and (v["num_heads"] == "2") == (";4," in v["case"])),
    "QAttention": Row(
        ("2,3,4<0..9;4,24<-5..5;24;=0.1;=0.2", "2,3,4<0..9;4,24<-5..5;24;=0.1;=0.2;[3,2];=1;=0"),
        {"num_heads": (2,), "unidirectional": (0, 1)}, {"T4": ("int32",)}),
    "MatMulNBits": Row(
        ("2,32;4,2,8<0..256;4,2>0;4,1<0..256", "2,32;4,2,8<0..256;8>0;",
         "1,2,32;4,2,8<0..256;4,2>0;;;4", "0,32;4,2,8<0..256;4,2>0;;;4",
         "2,32;4,2,16<0..256;4,2>0;4,2<0..256", "2,32;4,2,4<0..256;4,2>0;4,1<0..256"),
        # Of `accuracy_level` 4, the description says: "input A can be quantized".
        {"K": (32,), "N": (4,), "bits": (2, 4, 8), "block_size": (16,), "accuracy_level": (0, 1)},
        {"T2": ("uint8",), "T3": ("uint8",), "T4": ("int32",)},
        fits=lambda v: v["input_1"] == "constant" != v["input_0"] and v["input_3"] != "input"
        and f"4,2,{ {'2': 4, '8': 16}.get(v['bits'], 8)}<" in v["case"]),
    "GatherBlockQuantized": Row(
        ("4,32<0..2;[0,3];4,2>0;4,2<0..2", "4,32<0..2;[[1],[-1]];4,2>0;",
         "4,16<0..256;[0,3];4,2>0;4,1<0..256", "4,32<0..256;[[1],[-1]];4,2>0;4,2<0..256"), {
        "block_size": (16,), "gather_axis": (0,), "quantize_axis": (1, -1), "bits": (4, 8)},
        {"T1": ("uint4", "int4", "uint8")}, fits=_fits_blocks),
    "DequantizeLinear": Row(("2,3;=0.5;=1", "2,3;[0.5,0.25,1.0];[0,1,1]"), {"axis": (0, 1)},
                            fits=_fits_axis),
    "QuantizeLinear": Row(("2,3;=0.5;=1", "2,3;[0.5,0.25,1.0];[0,1,1]"), {"axis": (0, 1)},
                          fits=_fits_axis),
    **alike(
        "QLinearAdd QLinearMul", Row(
        ("2,3;=0.5;=2;2,3;=0.25;=1;=0.5;=3", "2,3;=0.5;=2;3;=0.25;=1;=0.5;=3",
         "2,1;=0.5;=2;();=0.25;=1;=0.5;=3", "2,3;=0.5;=2;2,3;=0.25;=1;=1;=3",
         "0,3;=0.5;=2;3;=0.25;=1;=0.5;=3"), fits=_has_zero_points)),
    **alike(
        "QLinearSigmoid QLinearLeakyRelu", Row(
        ("2,3;=0.1;=2;=0.01;=3", "4;=0.5;=0;=0.1;=1"), {"alpha": (0.1, 0.5)},
        # onnxruntime ends its process if the other inputs are not constants.
        fits=lambda v: all(v[f"input_{place}"] == "constant" for place in range(1, 5)))),
    "QLinearSoftmax": Row(("2,3;=0.1;=2;=0.01;=0", "2,3,4;=0.1;=2;=0.01;=0"), {
        "axis": (0, 1, -1), "opset": (12, 13)}),
    "QLinearConcat": Row(("=0.5;=2;2,3;=0.25;=1;2,3;=0.6;=3",), {"axis": (0, 1, -1)},
                         {"TV": ("uint8", "int8", "float")}),
    "QLinearGlobalAveragePool": Row(("1,2,3,3;=0.5;=2;=0.25;=3", "2,3,1,4;=0.5;=2;=0.25;=3"), {
        "channels_last": (0, 1)}),
    # Of a kernel that is larger than its axis, onnxruntime gives a row, the standard none.
    "QLinearAveragePool": Row(("1,2,5,5;=0.5;=2;=0.25;=3", "1,5,6,2;=0.5;=2;=0.25;=3"), {
        "kernel_shape": ([2, 2], [3, 3]), "strides": ([2, 2],), "ceil_mode": (0, 1),
        "pads": ([1, 1, 1, 1],), "count_include_pad": (0, 1), "channels_last": (0, 1)},
        fits=lambda v: (v["channels_last"] == "1") == v["case"].startswith("1,5")
        and _has_zero_points(v)),
    "QLinearWhere": Row(("2,3;2,3;=0.5;=2;2,3;=0.25;=1;=0.6;=3",)),
    "QLinearReduceMean": Row(("2,3,4;=0.5;=2;=0.25;=3", "2,1,4;=0.5;=2;=0.6;=0"), {
        "axes": ([1], [-1], [0, 2]), "keepdims": (0, 1)},
        fits=_has_zero_points, expected=expected.qlinear_reduce_mean),
    # OpenVINO's FakeQuantize may round a number halfway between two integers to the other one
    # (`passes/fake_quantize.py`), but not if the scale is a power of two and the zero point even.
    "QGemm": Row(("2,3<0..9;=0.5;=2;3,4<0..9;=0.25;=1;4<-9..9;=0.5;=4",
        "3,3<0..9;=0.5;=2;3,3<0..9;=0.25;=1;", "2,3<0..9;=0.5;=2;3,4<0..9;4>0;[1,0,2,1];4<-9..9",
        "3,3<0..9;=0.5;=2;3,3<0..9;=0.25;=1;;=0.125;=4"),
        {"alpha": (0.5,), "transA": (0, 1), "transB": (0, 1)}, {"TC": ("int32",)},
        fits=lambda v: v["case"].startswith("3") or "1" not in (v["transA"], v["transB"])),
    "MatMulIntegerToFloat": Row(("2,3;3,4;=0.5;=0.2;=2;=1;4", "2,3;3,4;=0.5;4>0;=2;4<0..3;")),
    # The integers on both sides of a number halfway between them are equally near
    # (`quirks/rounding.py`).
    "DynamicQuantizeMatMul": Row(
        ("2,3~;3,4<0..9;=0.2;=1;4", "2,3~;3,4<0..9;4>0;;", "2,2,3~;3,4<0..9;4>0;4<0..3;4")),
    "NhwcMaxPool": Row(("1,5,5,2",), {"kernel_shape": ([2, 2],), "ceil_mode": (0, 1),
                                      "strides": ([2, 2],), "dilations": ([1, 2],),
                                      "pads": ([0, 1, 0, 1],), "auto_pad": ("SAME_UPPER",)},
        # onnxruntime pads for a kernel without dilations.
        fits=lambda v: "absent" in (v["auto_pad"], v["dilations"])),
    "Pad": Row(("3,4;[1,0,0,2];=5", "3,4;[0,1,0,0];"), {"mode": ("constant", "reflect", "edge")}),
    "GatherND": Row(("2,3;[[0,1],[1,2]]", "2,3;[[1],[0]]")),
    "CropAndResize": Row(("1,2,5,5;[[0.0,0.0,1.0,1.0]];[0];[3,3]",
        "1,2,5,5;[[0.1,0.2,0.8,0.7]];[0];[2,4]"),
                         {"mode": ("bilinear", "nearest"), "extrapolation_value": (1.5,)}),
    "BiasAdd": Row(("2,3,4;4;2,3,4", "1,1,5;5;1,1,5"), expected=expected.bias_add),
    "BiasSplitGelu": Row(("2,3,8;8", "1,1,2;2"), expected=expected.bias_split_gelu),
    "BiasSoftmax": Row(("2,3,4;2,3,4", "2,3,4;1,3,4", "2,3,4;2,1,4"), {
        "axis": (1, 2), "is_inner_broadcast": (0, 1)}, {"T": ("float", "float16")},
        expected=expected.bias_softmax),
    "GroupNorm": Row(("1,3,3,4;4;4", "2,4,3,4;4;4"), {
        "groups": (2, 4), "activation": (0, 1), "channels_last": (0, 1), "epsilon": (0.1,)},
        fits=_fits_groups, expected=expected.group_norm),
    "SkipGroupNorm": Row(
        ("2,4,3,4;4;4;2,4,3,4;4", "2,3,3,4;4;4;2,1,1,4;4", "2,3,3,4;4;4;2,4;"), {
        "groups": (2, 4), "activation": (0, 1), "channels_last": (0, 1), "epsilon": (0.1,)},
        outputs=2, fits=_fits_groups, expected=expected.group_norm),
    "RelativePositionBias": Row(("8,2;=3;=3", "8,2;=1;=4", "32,2;=7;=9"), {
        "max_distance": (16, 128), "is_bidirectional": (0, 1)},
        expected=expected.relative_position_bias),
    "GridSample": Row(("1,1,3,4;1,2,2,2", "2,2,4,3;2,3,1,2"), {
        "align_corners": (0, 1), "mode": ("bilinear", "nearest", "bicubic"),
        "padding_mode": ("zeros", "border", "reflection")}),
    "GemmFastGelu": Row(("2,3;3,4;4", "2,2,3;3,4;"), expected=expected.gemm_fast_gelu),
    "FusedMatMulActivation": Row(("3,3;3,3", "3,3,3;3,3,3", "2,3,3;3,3"), {
        "alpha": (0.5,), "transA": (0, 1), "transB": (0, 1), "transBatchA": (0, 1),
        "transBatchB": (0, 1), "activation": ("Relu", "Tanh", "Sigmoid", "LeakyRelu"),
        "activation_alpha": (0.1,)}, {"T": REALS},
        fits=lambda v: (v["activation"] == "'LeakyRelu'") == (v["activation_alpha"] != "absent")
        and (v["case"] == "3,3,3;3,3,3" or "1" not in (v["transBatchA"], v["transBatchB"])),
        expected=expected.fused_matmul),
    "NhwcConv": Row(("1,5,6,4;4,3,2,4;4", "2,5,6,4;4,3,2,2;", "1,5,6,4;2,1,1,4;2"), {
        "group": (1, 2), "auto_pad": ("SAME_UPPER", "VALID"), "strides": ([1, 1], [2, 1]),
        "dilations": ([1, 1], [1, 2]), "pads": ([1, 0, 0, 1],)},
        fits=_fits_conv, expected=expected.nhwc_conv),
    "NhwcFusedConv": Row(
        ("1,5,6,4;4,4,3,2;4", "2,5,6,4;4,2,3,2;", "1,5,6,4;4,4,1,1;4;1,5,6,4"), {
        "activation": ("Relu", "Tanh", "Sigmoid"), "group": (1, 2),
        "auto_pad": ("SAME_UPPER", "VALID"), "dilations": ([1, 1], [1, 2])},
        fits=_fits_conv, expected=expected.nhwc_fused_conv),
    "CDist": Row(("3,4;2,4", "1,4;2,4"), {"metric": ("euclidean", "sqeuclidean")}),
    "BranchwiseRMSNorm": Row(("2,3,4;3,4", "2,5,12;12", "2,12;4", "2,3,4;", "0,3,4;"), {
        "num_branches": (1, 3), "epsilon": (0.1,)}),
    "GatedRMSNorm": Row(("2,3,4;4;2,3,4", "3,4;4;3,4", "0,3,4;4;0,3,4", "2,8;4;2,8"), {
        "activation": ("silu", "sigmoid"), "epsilon": (0.1,)}),
    "GatedAdd": Row(("2,5,8;2,5,8;2,5,1", "0,5,8;0,5,8;0,5,1", "3,4;3,4;3,1")),
    "ScaledSiLU": Row(("2,3,4;", "4;()", "2,3;=0.5", "0,4;=1", "();"), {"alpha": (1.0, -0.5)}),
    "MatMulBnb4": Row(("3,32;80<0..256;10>0", "2,3,32;80<0..256;10>0", "0,32;80<0..256;10>0"), {
        "K": (32,), "N": (5,), "block_size": (16,), "quant_type": (0, 1), "transB": (1,)},
        {"T2": ("uint8",)}, fits=lambda v: v["input_1"] == "constant" != v["input_0"]),
    "QLinearConv": Row(
        ("1,2,5,6<0..9;=0.5;=2;4,2,3,2<0..9;=0.25;=1;=0.5;=4;4<-9..9",
         "2,2,5,5<0..9;=0.5;=2;2,2,3,3<0..9;[0.25,0.5];[1,1];=0.5;=4",
         "1,5,6,2<0..9;=0.5;=2;4,2,3,2<0..9;=0.25;=1;=0.5;=4"), {
        "channels_last": (0, 1), "group": (1,), "strides": ([1, 1], [2, 1]),
        "dilations": ([1, 1], [1, 2]), "pads": ([0, 0, 0, 0], [1, 0, 1, 1]),
        "auto_pad": ("SAME_UPPER", "VALID")}, {"T4": ("int32",)},
        fits=lambda v: v["case"].startswith("1,5,6,2") == (v["channels_last"] == "1")
        and (v["sizes"] == "known" or v["input_3"] == "constant")
        and "absent" in (v["pads"], v["auto_pad"])
        and (v["auto_pad"] != "'SAME_UPPER'" or v["dilations"] != "[1, 2]")),
    "QEmbedLayerNormalization": Row(
        ("2,3<0..5;2,3<0..2;5,4<0..9;6,4<0..9;2,4<0..9;4<0..9;4<0..9;[[1,1,0],[1,1,1]];"
         "=0.1;=0.2;=0.3;=0.4;=0.5;=1;=2;=3;=4;=5",
         "2,3<0..5;;5,4<0..9;6,4<0..9;;4<0..9;4<0..9;;=0.1;=0.2;;=0.4;=0.5;=1;=2;;=4;=5"),
        {"epsilon": (0.1,)}, {"T1": ("int32",)}, outputs=2,
        fits=lambda v: "absent" not in [v[f"input_{i}"] for i in (1, 4, 10, 15)]
        or {v[f"input_{i}"] for i in (1, 4, 10, 15)} == {"absent"}),
    "DynamicQuantizeLSTM": Row(
        ("4,2,6~;1,6,20<-9..9;1,5,20<-9..9;1,40~;[4,2];1,2,5~;1,2,5;1,15;[0.01];[3];[0.02];[0]",
         "4,2,6~;1,6,20<0..9;1,5,20<0..9;;;;;;[0.01];[3];[0.02];[0]"),
        {"hidden_size": (5,), "direction": ("forward", "reverse"), "clip": (1.0,),
         "input_forget": (0, 1)}, {"T1": ("int32",)}, outputs=3,
        fits=lambda v: v["hidden_size"] != "absent"),
    "LinearAttention": Row(
        ("2,3,8;2,3,8;2,3,6;;2,3,8;2,3,2", "2,1,8;2,1,8;2,1,6;2,2,4,3;2,1,2;2,1,2",
         "2,3,8;2,3,8;2,3,6;2,2,4,3"), {
        "q_num_heads": (2,), "kv_num_heads": (2,), "scale": (0.5,), "chunk_size": (64,),
        "update_rule": ("linear", "gated", "delta", "gated_delta")}, outputs=2,
        fits=lambda v: v["update_rule"] in _RULES[_has_gates(v)]),
    "LinearAttentionGate": Row(("2,3,4;4;4;2,3,4", "1,1,3;3;3;1,1,3"), outputs=2,
        fits=lambda v: v["input_3"] != "absent"),
    "GatedDeltaNet": Row(
        ("1,3,2,4;1,3,2,4;1,3,2,3;;1,3,2;1,3,2;1,2,3,4", "2,1,2,4;2,1,2,4;2,1,4,3;;2,1,4;2,1,4",
         "1,3,2,4;1,3,2,4;1,3,4,3;;1,3,4;1,3,4;1,4,3,4;4;4"), {
        "beta_activation": ("none", "sigmoid"), "qk_l2_norm": (0, 1), "scale": (0.5,),
        "gate_activation": ("none", "softplus", "sigmoid"), "gate_lower_bound": (-2.0,),
        "update_rule": ("linear", "gated", "delta", "gated_delta"), "chunk_size": (64,)},
        outputs=2, fits=_fits_delta),
    "CausalConvWithState": Row(
        ("2,3,7;3,1,4;3;2,3,3", "2,3,7;3,1,4", "1,3,1;3,1,2;;1,3,1", "2,3,7;3,1,3;3;2,3,4"), {
        "activation": ("silu", "none"), "ndim": (1,), "dilation": (1, 2)}, outputs=2,
        fits=lambda v: (v["dilation"] == "2") == v["case"].endswith(";2,3,4")
        and (v["sizes"] == "known" or v["input_1"] == "constant")),
    "MRotaryEmbedding": Row(
        ("2,2,3,8;3,2,3<0..6;6,4;6,4", "2,3,16;3,2,3<0..6;6,4;6,4"), {
        "mrope_section": ([2, 1, 1],), "num_heads": (0, 2), "mrope_layout": (0, 1),
        "rotary_embedding_dim": (0, 8), "scale": (0.5,), "interleaved": (0, 1)},
        fits=lambda v: v["num_heads"] == "2" or (v["case"].startswith("2,2")
        and v["rotary_embedding_dim"] != "8")),
    "MoE": Row(
        ("3,4~;3,3~;3,5,4~;3,5~;3,4,5~;3,4~", "2,3,4~;6,3~;3,5,4~;;3,4,5~;"), {
        "activation_type": ("relu", "gelu", "silu", "identity"), "k": (1, 2),
        "normalize_routing_weights": (0, 1)}, {"T": REALS},
        fits=lambda v: v["sizes"] == "known" or v["input_1"] == v["input_2"] == "constant"),
    "QMoE": Row(
        ("3,32~;3,3~;3,32,16<0..256;3,32~;3,32~;3,32,16<0..256;3,32~;3,32~",
         "3,32~;3,3~;3,64,16<0..256;3,64,2~;;3,32,16<0..256;3,32,2~;",
         "3,32~;3,3~;3,32,16<0..256;3,32,2~;;3,32,16<0..256;3,32,2~;;;;;3,32,1<0..256;"
         "3,32,1<0..256", "3,32~;3,3~;3,32,32<0..256;3,32~;;3,32,32<0..256;3,32~;"), {
        "expert_weight_bits": (4, 8), "block_size": (16,), "k": (1, 2), "quant_type": ("int",),
        "activation_type": ("relu", "gelu", "silu", "identity", "swiglu"), "swiglu_fusion": (0, 1),
        "normalize_routing_weights": (0, 1)}, {"T": ("float",), "T1": ("uint8",),
        "T2": ("float",)}, always={"weights_prepacked": 0}, fits=_fits_experts),
    "DecoderMaskedMultiHeadAttention": Row(
        ("2,1,8~;2,1,8~;2,1,8~;[[1,1,1,1],[1,1,0,1]];;2,2,6,4~;2,2,6,4~;=3;;;24~",
         "2,1,8~;2,2,4,4~;2,2,4,4~;[[1,1,1,1],[1,0,1,1]]",
         "2,1,8~;2,1,8~;2,1,8~;;2,2,1,4~;2,2,6,4~;2,2,6,4~;=3",
         "2,1,8~;2,1,8~;2,1,8~;;;2,2,6,4~;2,2,6,4~;=3;=2;1,2,6<0..2"), {
        "num_heads": (2,), "scale": (0.5,), "mask_filter_value": (-100.0,),
        "past_present_share_buffer": (1,)}, {"M": ("int32",)}, outputs=3,
        fits=lambda v: _has_given(v, 1, 2, 5, 6, 7, 8, 9)
        and (v["past_present_share_buffer"] == "1") == ("2,2,6,4" in v["case"])),
    "SampleOp": Row(SHAPES),
    "UnfoldTensor": Row(("2,7", "2,5,3", "6"), {
        "dim": (-1, 0, 1), "size": (2, 3, 1), "step": (1, 2)}, {"T": ("float", "double", "int64",
        "int32")}, fits=lambda v: v["dim"] != "1" or v["case"] != "6"),
}  # fmt: skip
