"""The rows of onnxruntime's own operators."""

from __future__ import annotations

from tests.operators.by_schema.onnx_rows import PAIRS, SHAPES, UNARY
from tests.operators.by_schema.rows import REALS, Row, alike

ROWS: dict[str, Row] = {
    "Gelu": UNARY, "QuickGelu": Row(SHAPES, {"alpha": (1.0, -0.5)}, special=True),
    "FastGelu": Row(("2,3,4;4", "4;4", "0,4;4", "2,1,4;")),
    "BiasGelu": Row(("2,3,4;4", "1,4;4")),
    "Inverse": Row(("[[2.0,1.0],[1.0,3.0]]", "[[[4.0]]]")),
    "Trilu": Row(("3,3;=0", "2,4;=1", "2,3,3;=-1"), {"upper": (0, 1)}),
    "ExpandDims": Row(("2,3;=0", "2,3;=-1", "();=0", "2,3;=2")),
    "Range": Row(("=0;=5;=2", "=5;=0;=-2", "=1;=4;")),
    "Unique": Row(("5<0..3", "1"), outputs=3),
    "FusedMatMul": Row(("2,3;3,4", "3,3;3,3", "2,3,3;2,3,3", "2,3,3;3,3"), {
        "alpha": (0.5,), "transA": (0, 1), "transB": (0, 1), "transBatchA": (0, 1),
        "transBatchB": (0, 1)}),
    "TransposeMatMul": Row(("3,3;3,3", "2,3,3;2,3,3"), {
        "alpha": (0.5,), "transA": (0, 1), "transB": (0, 1)}),
    "FusedGemm": Row(("3,3;3,3;3", "2,3;3,4;"), {
        "alpha": (0.5,), "beta": (0.5,), "transA": (0, 1), "transB": (0, 1),
        "activation": ("Relu", "Tanh", "LeakyRelu", "Sigmoid"), "activation_alpha": (0.1,)},
        {"T": REALS}),
    "FusedConv": Row(("1,4,5,6;4,4,3,2;4", "2,4,7;4,4,3;4", "1,4,5,6;4,4,3,2;4;1,4,3,5"), {
        "activation": ("Relu", "Tanh", "Sigmoid"), "group": (1, 2),
        "auto_pad": ("SAME_UPPER", "VALID")}),
    "SkipLayerNormalization": Row(
        ("2,3,4;2,3,4;4;4;4", "1,3,4;1,3,4;4;;4", "3,4;3,4;4;4;", "2,3,4;1,3,4;4;4;4",
         "2,3,4;3,4;4;;"), {"epsilon": (0.1,)}, outputs=4),
    "SkipSimplifiedLayerNormalization": Row(
        ("2,3,4;2,3,4;4;4", "1,3,4;1,3,4;4;", "2,3,4;3,4;4;4"), {"epsilon": (0.1,)}, outputs=4),
    "EmbedLayerNormalization": Row(
        ("2,3<0..5;2,3<0..2;5,4;6,4;2,4;4;4;[[1,1,0],[1,1,1]]",
         "2,3<0..5;;5,4;6,4;;4;4;[[1,1,1],[1,0,0]];2,3<0..6"),
        {"epsilon": (0.1,), "mask_index_type": (0, 1)}, {"T1": ("int32",)}, outputs=3),
    "MultiHeadAttention": Row(
        ("2,3,8;2,5,8;2,5,8;24", "2,3,8;2,5,8;2,5,8;;;1,2,3,5", "1,3,8;1,3,8;1,3,8;24;[[1,1,0]]",
         "1,3,8;1,2,8;1,2,8;;;1,1,3,4;1,2,2,4;1,2,2,4", "2,3,8;2,2,5,4;2,2,5,4;8"),
        {"num_heads": (2,), "scale": (0.5,), "unidirectional": (0, 1),
         "mask_filter_value": (-100.0,)}, {"M": ("int32",)}, outputs=3),
    "Attention": Row(
        ("2,3,4;4,24;24", "2,3,4;4,24;24;[3,2]", "2,3,4;4,24;24;[[1,1,0],[1,1,1]]",
         "2,3,4;4,24;24;;2,2,2,2,4", "2,3,4;4,24;24;;;2,2,3,3"),
        {"num_heads": (2,), "unidirectional": (0, 1), "scale": (0.5,), "do_rotary": (1,),
         "mask_filter_value": (-100.0,), "qkv_hidden_sizes": ([8, 8, 8],)},
        {"M": ("int32",)}, outputs=2),
    "GroupQueryAttention": Row(
        ("1,3,8;1,3,4;1,3,4;1,1,5,4;1,1,5,4;[2];=3", "2,1,8;2,1,8;2,1,8;2,2,4,4;2,2,4,4;[3,2];=4",
         "1,3,8;1,3,4;1,3,4;;;[2];=3", "1,2,8;1,2,4;1,2,4;;;[1];=2;6,2;6,2"),
        {"num_heads": (2,), "kv_num_heads": (1, 2), "scale": (0.5,), "do_rotary": (1,),
         "rotary_interleaved": (1,), "softcap": (2.0,), "local_window_size": (2,),
         "smooth_softmax": (1,)}, {"M": ("int32",)}, outputs=3),
    "RotaryEmbedding": Row(("1,3,8;[[0,1,2]];4,2;4,2", "2,3,8;[1];5,4;5,4",
        "1,2,3,4;[0];4,2;4,2"), {
        "interleaved": (0, 1), "num_heads": (0, 2), "rotary_embedding_dim": (0, 4),
        "scale": (1.0,), "is_packed_batching": (0,)}),
    "QAttention": Row(
        ("2,3,4<0..9;4,24<-5..5;24;=0.1;=0.2", "2,3,4<0..9;4,24<-5..5;24;=0.1;=0.2;[3,2];=1;=0"),
        {"num_heads": (2,), "unidirectional": (0, 1)}, {"T4": ("int32",)}),
    "MatMulNBits": Row(
        ("2,32;4,2,8<0..256;4,2>0;4,1<0..256", "2,32;4,2,8<0..256;8>0;",
            "1,2,32;4,2,8<0..256;4,2>0;;;4"),
        {"K": (32,), "N": (4,), "bits": (4,), "block_size": (16,), "accuracy_level": (0, 4)},
        {"T2": ("uint8",), "T3": ("uint8",), "T4": ("int32",)}),
    "GatherBlockQuantized": Row(("4,32<0..2;[0,3];4,2>0;4,2<0..2", "4,32<0..2;[[1],[-1]];4,2>0;"), {
        "block_size": (16,), "gather_axis": (0,), "quantize_axis": (1, -1), "bits": (4, 8)},
        {"T1": ("uint4", "int4", "uint8")}),
    "DequantizeLinear": Row(("2,3;=0.5;=1", "2,3;[0.5,0.25,1.0];[0,1,1]"), {"axis": (0, 1)}),
    "QuantizeLinear": Row(("2,3;=0.5;=1", "2,3;[0.5,0.25,1.0];[0,1,1]"), {"axis": (0, 1)}),
    **alike(
        "QLinearAdd QLinearMul", Row(
        ("2,3;=0.5;=2;2,3;=0.25;=1;=0.6;=3", "2,3;=0.5;=2;3;=0.25;=1;=0.6;=3",
         "2,1;=0.5;=2;();=0.25;=1;=0.6;=3", "2,3;=0.5;=2;2,3;=0.25;=1;=1;=3",
         "0,3;=0.5;=2;3;=0.25;=1;=0.6;=3"))),
    **alike(
        "QLinearSigmoid QLinearLeakyRelu", Row(
        ("2,3;=0.1;=2;=0.01;=3", "4;=0.5;=0;=0.1;=1"), {"alpha": (0.1, 0.5)},
        # onnxruntime ends its process if the other inputs are not constants.
        fits=lambda v: all(v[f"input_{place}"] == "constant" for place in range(1, 5)))),
    "QLinearSoftmax": Row(("2,3;=0.1;=2;=0.01;=0",), {"axis": (0, 1, -1), "opset": (12, 13)}),
    "QLinearConcat": Row(("=0.5;=2;2,3;=0.25;=1;2,3;=0.6;=3",), {"axis": (0, 1, -1)}),
    "QLinearGlobalAveragePool": Row(("1,2,3,3;=0.5;=2;=0.25;=3",), {"channels_last": (0, 1)}),
    "QLinearAveragePool": Row(("1,2,5,5;=0.5;=2;=0.25;=3",), {
        "kernel_shape": ([2, 2], [3, 3]), "strides": ([2, 2],), "ceil_mode": (0, 1),
        "pads": ([1, 1, 1, 1],), "count_include_pad": (0, 1), "channels_last": (0, 1)}),
    "QLinearWhere": Row(("2,3;2,3;=0.5;=2;2,3;=0.25;=1;=0.6;=3",)),
    "QLinearReduceMean": Row(("2,3,4;=0.5;=2;=0.25;=3",), {"axes": ([1], [-1]),
        "keepdims": (0, 1)}),
    "QGemm": Row(("2,3<0..9;=0.5;=2;3,4<0..9;=0.25;=1;4<-9..9;=0.6;=3",
        "3,3<0..9;=0.5;=2;3,3<0..9;=0.25;=1;"),
                 {"alpha": (0.5,), "transA": (0, 1), "transB": (0, 1)}, {"TC": ("int32",)}),
    "MatMulIntegerToFloat": Row(("2,3;3,4;=0.5;=0.2;=2;=1;4", "2,3;3,4;=0.5;4>0;=2;4<0..3;")),
    "DynamicQuantizeMatMul": Row(("2,3;3,4<0..9;=0.2;=1;4", "2,3;3,4<0..9;4>0;;")),
    "MulInteger": Row(("2,3;=1;2,3;=2", "2,3;;3;")),
    "ReduceSumInteger": Row(("2,3,4",), {"axes": ([1], [-1, 0]), "keepdims": (0, 1)}),
    "ComplexMul": Row(("2,3,2;2,3,2",)), "ComplexMulConj": Row(("2,3,2;2,3,2",)),
    "Rfft": Row(("2,8",), {"normalized": (0,), "onesided": (1,), "signal_ndim": (1,)}),
    "NhwcMaxPool": Row(("1,5,5,2",), {"kernel_shape": ([2, 2],), "ceil_mode": (0, 1),
                                      "strides": ([2, 2],),
                                      "pads": ([0, 1, 0, 1],), "auto_pad": ("SAME_UPPER",)}),
    "Pad": Row(("3,4;[1,0,0,2];=5", "3,4;[0,1,0,0];"), {"mode": ("constant", "reflect", "edge")}),
    "GatherND": Row(("2,3;[[0,1],[1,2]]", "2,3;[[1],[0]]")),
    "CropAndResize": Row(("1,2,5,5;[[0.0,0.0,1.0,1.0]];[0];[3,3]",
        "1,2,5,5;[[0.1,0.2,0.8,0.7]];[0];[2,4]"),
                         {"mode": ("bilinear", "nearest"), "extrapolation_value": (1.5,)}),
    "BiasSoftmax": Row(("2,3,4;2,3,4", "2,3,4;1,3,4"), {"axis": (1, 2),
        "is_inner_broadcast": (0, 1)}),
    "GroupNorm": Row(("1,3,3,4;4;4",), {"groups": (2,), "activation": (0, 1), "channels_last": (1,),
                                        "epsilon": (0.1,)}),
    "RelativePositionBias": Row(("8,2;=3;=3", "8,2;=1;=4"), {
        "max_distance": (16,), "is_bidirectional": (0, 1)}),
    "GridSample": Row(("1,1,3,4;1,2,2,2",), {
        "align_corners": (0, 1), "mode": ("bilinear", "nearest", "bicubic"),
        "padding_mode": ("zeros", "border", "reflection")}),
    "IsAllFinite": Row(("2,3;4",), {"isinf_only": (0, 1), "isnan_only": (0, 1)}, special=True),
    "GemmFastGelu": Row(("2,3;3,4;4",)), "CDist": Row(("3,4;2,4",), {
        "metric": ("euclidean", "sqeuclidean")}),
    "BranchwiseRMSNorm": Row(("2,3,4;3,4", "2,5,12;12", "2,12;4", "2,3,4;", "0,3,4;"), {
        "num_branches": (1, 3), "epsilon": (0.1,)}),
    "GatedRMSNorm": Row(("2,3,4;4;2,3,4", "3,4;4;3,4", "0,3,4;4;0,3,4"), {
        "activation": ("silu", "sigmoid"), "epsilon": (0.1,)}),
    "GatedAdd": Row(("2,5,8;2,5,8;2,5,1", "2,5,8;2,5,8;2,5,8", "2,5,8;2,5,8;2,5,8;8,1",
                     "3,4;3,4;3,1")),
    "ScaledSiLU": Row(("2,3,4;", "4;()", "2,3;=0.5", "0,4;=1", "();"), {"alpha": (1.0, -0.5)}),
    "MatMulBnb4": Row(("3,32;80<0..256;10>0", "2,3,32;80<0..256;10>0", "0,32;80<0..256;10>0"), {
        "K": (32,), "N": (5,), "block_size": (16,), "quant_type": (0, 1), "transB": (1,)},
        {"T2": ("uint8",)}),
    "QLinearConv": Row(
        ("1,2,5,6<0..9;=0.5;=2;4,2,3,2<0..9;=0.25;=1;=0.6;=3;4<-9..9",
         "2,2,5,5<0..9;=0.5;=2;2,2,3,3<0..9;[0.25,0.5];[1,2];=0.6;=3",
         "1,5,6,2<0..9;=0.5;=2;4,2,3,2<0..9;=0.25;=1;=0.6;=3"), {
        "channels_last": (0, 1), "group": (1,), "strides": ([1, 1], [2, 1]),
        "dilations": ([1, 1], [1, 2]), "pads": ([0, 0, 0, 0], [1, 0, 1, 1]),
        "auto_pad": ("SAME_UPPER", "VALID")}, {"T4": ("int32",)},
        fits=lambda v: v["case"].startswith("1,5,6,2") == (v["channels_last"] == "1")),
    "QEmbedLayerNormalization": Row(
        ("2,3<0..5;2,3<0..2;5,4<0..9;6,4<0..9;2,4<0..9;4<0..9;4<0..9;[[1,1,0],[1,1,1]];"
         "=0.1;=0.2;=0.3;=0.4;=0.5;=1;=2;=3;=4;=5",
         "2,3<0..5;;5,4<0..9;6,4<0..9;;4<0..9;4<0..9;;=0.1;=0.2;;=0.4;=0.5;=1;=2;;=4;=5"),
        {"epsilon": (0.1,)}, {"T1": ("int32",)}, outputs=2),
    "DynamicQuantizeLSTM": Row(
        ("4,2,6;1,6,20<-9..9;1,5,20<-9..9;1,40;[4,2];1,2,5;1,2,5;1,15;[0.01];[3];[0.02];[0]",
         "4,2,6;1,6,20<0..9;1,5,20<0..9;;;;;;[0.01];[3];[0.02];[0]"),
        {"hidden_size": (5,), "direction": ("forward", "reverse"), "clip": (0.5,),
         "input_forget": (0,)}, {"T1": ("int32",)}, outputs=3),
    "LinearAttention": Row(
        ("2,3,8;2,3,8;2,3,6;;2,3,8;2,3,2", "2,1,8;2,1,8;2,1,6;2,2,4,3;2,1,2;2,1,2",
         "2,3,8;2,3,8;2,3,6;2,2,4,3"), {
        "q_num_heads": (2,), "kv_num_heads": (2,), "scale": (0.5,), "chunk_size": (64,),
        "update_rule": ("linear", "gated", "delta", "gated_delta")}, outputs=2),
    "LinearAttentionGate": Row(("2,3,4;4;4;2,3,4", "1,1,3;3;3", "2,3,4;4;4"), outputs=2),
    "CausalConvWithState": Row(
        ("2,3,7;3,1,4;3;2,3,3", "2,3,7;3,1,4", "1,3,1;3,1,2;;1,3,1"), {
        "activation": ("silu", "none"), "ndim": (1,), "dilation": (1,)}, outputs=2),
    "MRotaryEmbedding": Row(
        ("2,2,3,8;3,2,3<0..6;6,4;6,4", "2,3,16;3,2,3<0..6;6,4;6,4"), {
        "mrope_section": ([2, 1, 1],), "num_heads": (0, 2), "mrope_layout": (0,),
        "rotary_embedding_dim": (0, 8), "scale": (0.5,), "interleaved": (0, 1)}),
    "MoE": Row(("3,4;3,3;3,5,4;3,5;3,4,5;3,4", "2,3,4;6,3;3,5,4;;3,4,5;"), {
        "activation_type": ("relu", "gelu", "silu", "identity"), "k": (1, 2),
        "normalize_routing_weights": (0, 1)}, {"T": REALS}),
    "SampleOp": Row(SHAPES),
    "UnfoldTensor": Row(("2,7", "2,5,3", "6"), {
        "dim": (-1, 0, 1), "size": (2, 3, 1), "step": (1, 2)}),
    "SwiGLU": Row(("2,4", "2,4;2,4")), "Sampling": Row(("2,3",), fits=lambda levels: False),
}  # fmt: skip
del ROWS["Sampling"], PAIRS
