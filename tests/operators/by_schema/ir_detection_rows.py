"""Rows of OpenVINO's operators of detection, images, segments, texts, and recurrent cells.

`test_ir_nn.py` has operators whose inputs depend on each other, such as anchors and regions.
"""

from __future__ import annotations

from dataclasses import replace

from tests.operators.by_schema.onnx_rows import SHAPES
from tests.operators.by_schema.rows import Row

F = {"0": ("float",)}
I32 = {**F, **{str(place): ("int32",) for place in range(1, 6)}}
I64 = {**F, **{str(place): ("int64",) for place in range(1, 6)}}
FLOATS = {str(place): ("float",) for place in range(6)}
BOXES = "[[[0,0,4,4],[1,0,5,4],[0,0,4,4],[6,6,9,8],[2,3,2,3]]]"
SMALL = "[[[0,0,0.4,0.4],[0.1,0,0.5,0.4],[0,0,0.4,0.4],[0.6,0.6,0.9,0.8]]]"
LEANING = "[[[2,2,4,3,0.5],[2.5,2,4,3,0],[8,8,2,2,-1],[2,2,4,3,0.5]]]"
SCORES = "[[[0.9,0.8,0.7,0.6,0.5],[0.1,0.95,0.3,0.05,0.55]]]"
ROIS = "[[0,0,3,4],[1,1,5,5],[2,2,2,2]]"
WIDE = "[[0,0,30,40],[10,10,500,500]]"
NUMBERED = "[[0,0,0,3,4],[0,1,1,5,5],[1,2,2,4,3]]"
CELL = {"hidden_size": (3,), "clip": (0.0, 0.5)}
BAG = ("5,2;[0,2,3,4];[0,2,3]", "5,2;[0,2,3,4];[0,0,2];=1", "5,3,2;[4,1];[0,1];=-1",
       "5,2;[0,2,3,4];[0,2,4];=0;4")  # fmt: skip
PACKED = ("5,2;[[0,1],[4,4]]", "5,2;[[0,1],[4,4]];2,2", "5;[[3]]", "5,3,2;[[3,0,1]];1,3")
PLANES = ("1,6,4,1", "2,3,2,1", "1,4,4,1;1,2,2,2", "2,2,6,1;2,1,3,2")
COLOURS = ("1,6,4,1", "2,3,2,1", "1,4,4,1;1,2,2,1;1,2,2,1")
PRIORS = {
    "min_size": ([10.0], [8.0, 20.0]), "max_size": ([], [15.0]),
    "aspect_ratio": ([], [2.0, 3.0]), "flip": (False, True), "clip": (False, True),
    "step": (0.0, 16.0), "offset": (0.5, 0.0), "variance": ([], [0.1, 0.1, 0.2, 0.2]),
    "scale_all_sizes": (True, False), "min_max_aspect_ratios_order": (True, False),
}  # fmt: skip
SUPPRESSED = {
    "output_type": ("i64", "i32"), "sort_result_across_batch": (False, True),
    "sort_result_type": ("none", "classid", "score"), "score_threshold": (0.0, 0.3),
    "nms_top_k": (-1, 2), "keep_top_k": (-1, 3), "background_class": (-1, 0),
    "normalized": (True, False),
}  # fmt: skip
BINS = {"output_dim": (2,), "spatial_scale": (1.0, 0.5)}

ROWS = {
    "BitwiseNot-13": Row(SHAPES, types={"0": ("int32", "int64", "uint8", "int8", "bool")}),
    "Identity-16": Row(SHAPES),
    "ErfInv-17": Row(("[[0.1,-0.5,0.9]]", "[]", "=0.25", "[[[-0.99],[0.0]]]"), types=F),
    "Reverse-1": Row(("2,3;[1]", "4;[0]", "2,3,2;[0,2]", "0,3;[1]", "2,3;[0,1]"), {
        "mode": ("index",)}, {"1": ("int64",)}),
    "ConvertPromoteTypes-14": Row(("2,3;3", "();2", "4;()"), {
        "promote_unsafe": (True,), "pytorch_scalar_promotion": (True, False),
        "u64_integer_promotion_target": ("f32", "i64")}, {"1": ("float16",)}),
    "ConvertPromoteTypes-15": Row(("2,3;3", "();2", "4;()"), {
        "promote_unsafe": (True,), "pytorch_scalar_promotion": (True, False)}, {"1": ("int32",)}),
    # Embeddings and segments
    "EmbeddingBagOffsets-15": Row(BAG, {"reduction": ("sum", "mean")}, {
        **I32, "4": ("float",)},
        fits=lambda v: v["reduction"] == "sum" or v["case"].count(";") < 4),
    "EmbeddingBagOffsetsSum-3": Row(BAG, {}, {**I64, "4": ("float",)}),
    "EmbeddingBagPacked-15": Row(PACKED, {"reduction": ("sum", "mean")}, {
        **I32, "2": ("float",)},
        fits=lambda v: v["reduction"] == "sum" or v["case"].count(";") < 2),
    "EmbeddingBagPackedSum-3": Row(PACKED, {}, {**I64, "2": ("float",)}),
    "EmbeddingSegmentsSum-3": Row(
        ("5,2;[0,2,3,4];[0,0,2,2];=3", "5,2;[0,2,3,4];[0,1,1,3];=5;=1",
         "5,3,2;[4,1];[0,2];=3;=-1", "5,2;[0,2,3,4];[0,0,2,2];=3;=0;4"), {},
        {**I64, "5": ("float",)}),
    "SegmentMax-16": Row(("4,2;[0,0,2,2]", "4;[0,1,1,3];=5", "3,2,2;[1,1,1];=1",
                          "4,2;[0,0,1,2];=2"), {
        "fill_mode": ("ZERO", "LOWEST")}, {"0": ("float", "int32"), "1": ("int64",),
                                           "2": ("int64",)}),
    "SliceScatter-15": Row(
        ("4,5;2,5;[1];[3];[1];[0]", "4,5;2,2;[0,0];[9,9];[2,3];[0,1]", "4;2;[-2];[9];[1]",
         "4,5;4,5;[-1];[-9];[-1];[1]", "4,5;0,5;[2];[2];[1];[0]"),
        types={str(place): ("int64",) for place in range(2, 6)},
        # OpenVINO ends its process on a computed step.
        fits=lambda v: v["input_4"] == "constant"),
    "SparseFillEmptyRows-16": Row(
        ("[1.5,2.0,3.0];[5,6];[[0,1],[2,0],[2,3]];=7", "[1.0];[2,2];[[1,0]];=0",
         "[1.0,2.0];[2,2];[[0,0],[1,1]];=4"), {}, {**F, "1": ("int64",), "2": ("int64",),
                                                    "3": ("float",)}),
    # Detection
    "NMSRotated-13": Row(
        (LEANING + ";[[[0.9,0.8,0.7,0.6]]];=2;=0.3;=0.1",
         LEANING + ";[[[0.9,0.8,0.7,0.6],[0.1,0.2,0.3,0.4]]];=9;=0.0;=0.0"), {
        "sort_result_descending": (True, False), "output_type": ("i64", "i32"),
        "clockwise": (True, False)}, {**FLOATS, "2": ("int64",)}),
    "MatrixNms-8": Row((BOXES + ";" + SCORES, SMALL + ";[[[0.9,0.8,0.7,0.6]]]"), {
        **SUPPRESSED, "decay_function": ("linear", "gaussian"), "gaussian_sigma": (2.0, 0.5),
        "post_threshold": (0.0, 0.4)}, FLOATS),
    "MulticlassNms-8": Row((BOXES + ";" + SCORES, SMALL + ";[[[0.9,0.8,0.7,0.6]]]"), {
        **SUPPRESSED, "iou_threshold": (0.0, 0.5), "nms_eta": (1.0, 0.5)}, FLOATS),
    "ROIAlignRotated-15": Row(("2,2,6,6;[[2,2,3,2,0.5],[3,3,4,4,-1]];[0,1]",), {
        "pooled_h": (2,), "pooled_w": (1, 3), "sampling_ratio": (0, 2),
        "spatial_scale": (1.0, 0.5), "clockwise_mode": (True, False)},
        {**F, "1": ("float",), "2": ("int32",)}),
    "PSROIPooling-1": Row(("2,8,6,6;" + NUMBERED, "1,8,5,7;[[0,0,0,4,4]]"), {
        **BINS, "group_size": (2,), "mode": ("average", "bilinear"),
        "spatial_bins_x": (2,), "spatial_bins_y": (2,)}, FLOATS,
        # Bilinear regions are parts of the image.
        fits=lambda v: v["mode"] == "average"),
    "DeformablePSROIPooling-1": Row(
        ("2,8,6,6;" + NUMBERED, "2,8,6,6;" + NUMBERED + ";3,2,2,2"), {
        **BINS, "group_size": (2,), "spatial_bins_x": (1, 2), "spatial_bins_y": (2,),
        "part_size": (2,), "trans_std": (0.0, 0.2)}, FLOATS),
    "PriorBox-8": Row(("[3,4];[60,100]", "[1,1];[20,20]"), PRIORS, {
        "0": ("int64", "int32"), "1": ("int64",)},
        fits=lambda v: v["max_size"] == "[]" or "," not in v["min_size"]),
    "PriorBoxClustered-1": Row(("[3,4];[60,100]", "[1,1];[20,20]"), {
        "width": ([10.0, 20.0],), "height": ([5.0, 30.0],), "clip": (True, False),
        "step": (0.0, 8.0), "step_w": (0.0, 16.0), "step_h": (0.0, 8.0), "offset": (0.0, 0.5),
        "variance": ([0.1, 0.1, 0.2, 0.2], [])}, {"0": ("int64",), "1": ("int64",)}),
    "ReorgYolo-2": Row(("1,4,4,6", "2,8,2,2"), {"stride": ([2], [1])}, F),
    "RegionYolo-1": Row(("2,24,4,5", "1,24,1,1", "2,16,3,2"), {
        "classes": (3,), "coords": (4,), "num": (2, 3), "mask": ([0, 1], [0, 1, 2]), "axis": (1,),
        "end_axis": (3, -1, 1), "do_softmax": (True, False)}, F,
        # There are 8 channels for each region.
        fits=lambda v: (",16," in v["case"]) == (
            v["num"] == "2" if v["do_softmax"] == "True" else v["mask"] == "[0, 1]")),
    "ExperimentalDetectronTopKROIs-6": Row(
        (ROIS + ";[0.5,0.9,0.1]",), {"max_rois": (1, 2, 5)}, FLOATS),
    "ExperimentalDetectronPriorGridGenerator-6": Row(("3,4;1,2,3,4;1,3,30,40",), {
        "flatten": (True, False), "h": (0, 2), "w": (0, 3), "stride_x": (0.0, 4.0),
        "stride_y": (0.0, 8.0)}, FLOATS),
    "ExperimentalDetectronROIFeatureExtractor-6": Row(
        (WIDE + ";1,2,16,16;1,2,8,8", "[[0,0,9,7]];1,3,12,16;1,3,6,8"),
        {"output_size": (2, 3), "sampling_ratio": (1, 2), "pyramid_scales": ([16, 32],),
         "aligned": (True, False)}, FLOATS),
    # Images of other colours
    **{f"NV12to{order}-8": Row(PLANES, types={str(p): ("uint8",) for p in range(2)})
       for order in ("RGB", "BGR")},
    **{f"I420to{order}-8": Row(COLOURS, types={str(p): ("uint8",) for p in range(3)})
       for order in ("RGB", "BGR")},
    "DeformableConvolution-8": Row(
        ("1,4,5,5;1,18,5,5;2,4,3,3", "1,4,5,5;1,18,5,5;2,4,3,3;1,9,5,5"), {
        "strides": ([1, 1],), "pads_begin": ([1, 1],), "pads_end": ([1, 1],),
        "dilations": ([1, 1],), "auto_pad": ("explicit", "same_upper"), "group": (1,),
        "deformable_group": (1,), "bilinear_interpolation_pad": (True, False)}, FLOATS),
    # Recurrent cells
    "RNNCell-3": Row(("2,4;2,3;3,4;3,3;3", "1,4;1,3;3,4;3,3"), {
        **CELL, "activations": (["tanh"], ["relu"], ["sigmoid"])}, FLOATS),
    "GRUCell-3": Row(("2,4;2,3;9,4;9,3;9", "2,4;2,3;9,4;9,3;12", "1,4;1,3;9,4;9,3;9"), {
        **CELL, "linear_before_reset": (True, False),
        "activations": (["sigmoid", "tanh"], ["tanh", "relu"])}, FLOATS,
        fits=lambda v: v["case"].endswith(";12") == (v["linear_before_reset"] == "True")),
    "LSTMCell-4": Row(("2,4;2,3;2,3;12,4;12,3;12", "1,4;1,3;1,3;12,4;12,3;12"), {
        **CELL, "activations": (["sigmoid", "tanh", "tanh"], ["tanh", "relu", "sigmoid"])}, FLOATS),
    # Texts and signals
    "CTCGreedyDecoder-1": Row(("5,2,4;[[1,1],[1,1],[1,1],[1,0],[0,0]]",), {
        "ctc_merge_repeated": (True, False)}, FLOATS),
    "CTCGreedyDecoderSeqLen-6": Row(("2,5,4;[5,2]", "2,5,4;[5,0];=1", "1,3,2;[3];=0"), {
        "merge_repeated": (True, False), "classes_index_type": ("i64", "i32"),
        "sequence_length_type": ("i64", "i32")}, I32),
    "CTCLoss-4": Row(("2,5,4;[5,4];[[0,1,2,0,0],[1,1,0,0,0]];[3,2]",
                      "1,4,3;[4];[[1,0,0,0]];[1];=2"), {
        "preprocess_collapse_repeated": (True, False), "ctc_merge_repeated": (True, False),
        "unique": (True, False)}, I32),
    "ISTFT-16": Row(("5,6,2;8>0;=8;=3", "2,5,6,2;8>0;=8;=3", "5,6,2;6>0;=8;=2;=12"), {
        "center": (True, False), "normalized": (True, False)},
        {**F, "1": ("float",), "2": ("int64",), "3": ("int64",), "4": ("int64",)}),
    "GroupedMatMul-17": Row(
        ("7,4;3,5,4;[2,5,7]", "7,4;3,5,4;[0,0,7]", "3,2,4;3,5,4"), {},
        {**F, "1": ("float",), "2": ("int32",)}, fits=lambda v: v["input_1"] == "constant"),
}  # fmt: skip
ROWS = {name: replace(row, release=1) for name, row in ROWS.items()}
