"""Rows of older and further versions of OpenVINO's operators, of further ranks and forms, and of
detections. A zero in front of the number stands for a further row of the operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tests.operators.by_schema.ir_detection_rows import BOXES, FLOATS, ROWS as DETECTION, SCORES
from tests.operators.by_schema.ir_rows import NMS, ROWS as OTHERS
from tests.operators.by_schema.rows import Row

NEWEST = {**OTHERS, **DETECTION}
F = {"0": ("float",)}
I64 = {str(place): ("int64",) for place in range(1, 6)}
ALONG = {"strides": ([1], [2]), "pads_begin": ([0], [1]), "pads_end": ([0], [2]),
         "auto_pad": ("explicit", "same_upper", "valid")}  # fmt: skip
CUBE = {"strides": ([1, 1, 1], [1, 2, 1]), "pads_begin": ([0, 0, 0], [1, 0, 1]),
        "pads_end": ([0, 0, 0], [0, 1, 1]), "auto_pad": ("explicit", "same_lower")}  # fmt: skip
LONG, DEEP = {**ALONG, "dilations": ([1], [2])}, {**CUBE, "dilations": ([1, 1, 1],)}
SUPPRESSED = {"0": ("float",), "1": ("float",), "2": ("int64",), "3": ("float",), "4": ("float",)}
FIVE = tuple(case.rpartition(";")[0] for case in NMS)
ANCHORS = "[[[0.1,0.1,0.4,0.4,0.2,0.2,0.6,0.6,0.0,0.1,0.3,0.9,0.5,0.5,0.9,0.8]"
VARIANCES = ",[" + ",".join(["0.1,0.1,0.2,0.2"] * 4) + "]]]"
OVERLAPS = "[[0.9,0.1,0.2,0.7,0.35,0.8,0.6,0.5]]"
PRIORS = (f"1,16;{OVERLAPS};{ANCHORS}{VARIANCES}", f"1,16;{OVERLAPS};{ANCHORS}]]")
REGIONS = "[[0,0,13,14],[10,10,25,20],[2,2,2,2],[1,1,15,13]]"
SHIFTS = ";[[0.1,0.2,0.3,0.4,0.1,0.0,-0.1,0.2,-0.5,0.1,0.2,0.1]"
ANCHORED = ";2,2,1,4>0"
DETECTED = {
    "background_label_id": (0, -1), "top_k": (-1, 3), "keep_top_k": ([4], [-1]),
    "variance_encoded_in_target": (False, True), "share_location": (True,),
    "code_type": ("caffe.PriorBoxParameter.CENTER_SIZE", "caffe.PriorBoxParameter.CORNER"),
    "nms_threshold": (0.4, 0.9), "confidence_threshold": (0.0, 0.3), "normalized": (True,),
    "clip_after_nms": (False, True), "clip_before_nms": (False, True),
    "decrease_label_id": (False, True),
}  # fmt: skip
PROPOSED = {
    "base_size": (16, 4), "feat_stride": (16, 4), "pre_nms_topn": (30, 5), "post_nms_topn": (6, 3),
    "nms_thresh": (0.5, 0.9), "min_size": (3, 0), "ratio": ([0.5, 1.0],), "scale": ([1.0],),
    "clip_before_nms": (True, False), "clip_after_nms": (False, True),
    "normalize": (False, True), "framework": ("", "tensorflow"),
    "box_size_scale": (1.0, 5.0), "box_coordinate_scale": (1.0, 10.0),
}  # fmt: skip
PLACED = ("1,4,3,3>0;1,8,3,3;[60,70,1]", "1,4,2,1>0;1,8,2,1;[30,20,1.5]")
GENERATED = {
    "min_size": (0.0, 3.0), "nms_threshold": (0.5, 0.9), "pre_nms_count": (20, 3),
    "post_nms_count": (4, 2),
}  # fmt: skip
STEPS = ("2,3,4;2,1,3;[3,2];1,{0},4;1,{0},3;1,{0}", "2,3,4;2,2,3;[3,1];2,{0},4;2,{0},3;2,{0}")


def _of(name: str, without: Sequence[str] = (), **changes: Any) -> Row:
    """The newest row without some attributes, and with other values."""
    row = NEWEST[name]
    changed: Mapping[str, Any] = {**row.attributes, **changes.pop("attributes", {})}
    kept = {key: levels for key, levels in changed.items() if key not in without}
    return replace(row, attributes=kept, **changes)


def _directions(name: str, cases: Sequence[str]) -> Row:
    """A recurrent layer in both directions, which has twice the weights."""
    return _of(
        name, attributes={"direction": ("forward", "reverse", "bidirectional")}, cases=cases,
        fits=lambda v: ("2,2,3" in v["case"]) == (v["direction"] == "bidirectional"),
    )  # fmt: skip


def _encoded(levels: Mapping[str, str]) -> bool:
    """Whether there are variances beside the priors, or in the moves of the boxes, and the class
    that is left out is the first."""
    encoded, first = levels["variance_encoded_in_target"], levels["background_label_id"] == "0"
    fits = first or levels["decrease_label_id"] == "False"
    return fits and (VARIANCES in levels["case"]) == (encoded == "False")


FLOORED = {"rounding_type": ("floor", "ceil")}
ROWS = {name: replace(row, release=1) for name, row in {
    "AvgPool-1": _of("AvgPool-14", attributes=FLOORED),
    "AvgPool-16": _of("AvgPool-14", attributes={"dilations": ([1, 1], [2, 1])}),
    # Of a window in the padding, the plugin gives the lowest number of f32.
    "MaxPool-1": _of("MaxPool-14", ("dilations", "axis", "index_element_type"),
                     attributes=FLOORED, types={"0": ("float", "float16")}),
    "MaxPool-8": _of("MaxPool-14", attributes=FLOORED),
    "Convolution-2": Row(("2,3,7;4,3,3", "1,3,5;2,3,2"), LONG, F),
    "Convolution-3": Row(("1,2,4,4,3;3,2,2,3,2",), DEEP, F),
    "GroupConvolution-2": Row(("2,4,7;2,3,2,3", "1,3,5;3,1,1,2"), LONG, F),
    "ConvolutionBackpropData-2": Row(("2,3,5;3,4,3", "1,3,5;3,2,2;[11]"), {
        **LONG, "output_padding": ([0], None)}, {**F, "2": ("int64",)},
        # ONNX's output_shape may be no longer than what filters reach.
        fits=lambda v: "[11]" not in v["case"] or v["sizes"] == "known"),
    "MaxPool-15": Row(("2,3,7",), {**LONG, "kernel": ([2], [3]), "rounding_type": ("floor",),
                                   "index_element_type": ("i64",), "axis": (0, 1)}, F),
    "AvgPool-15": Row(("1,2,4,4,3",), {**CUBE, "kernel": ([2, 3, 2],), "exclude-pad": (
        True, False), "rounding_type": ("floor",)}, F),
    "Broadcast-1": Row(("2,3;[2,2,3]", "1,3;[4,3]", "();[2,2]", "3;[3,2];[0]", "2,3;[4,2,3];[1,2]"),
                       {"mode": ("numpy", "explicit")}, I64,
                       fits=lambda v: (v["case"].count(";") == 2) == (v["mode"] == "explicit")),
    "BatchNormInference-1": Row(("3;3;2,3,4;3;3>0", "3;3;2,3;3;3>0"), {"epsilon": (1e-5, 0.1)}, F),
    "DeformableConvolution-1": _of("DeformableConvolution-8", ("bilinear_interpolation_pad",),
                                   cases=("1,4,5,5;1,18,5,5;2,4,3,3",)),
    "Gather-1": _of("Gather-7", ("batch_dims",)),
    "GatherND-5": _of("GatherND-8", cases=("2,3;[[0,1],[1,2]]", "2,3;[[1],[0]]", "2,2,3;[[1],[0]]"
                                           )),
    "Gelu-2": _of("Gelu-7", ("approximation_mode",)),
    "Interpolate-1": Row(("1,1,4,5;[8,3]", "1,2,3,4;[6,8]"), {
        "axes": ([2, 3],), "mode": ("nearest", "linear"), "align_corners": (True, False),
        "antialias": (False,), "pads_begin": ([0],), "pads_end": ([0],)}, {**F, **I64}),
    "Interpolate-4": Row(
        ("1,1,4,5;[8,3];[2.0,0.6];[2,3]", "4,5;[2,9];[0.5,1.8];[0,1]", "4,5;[2,9];[0.5,1.8]"),
        {**{key: levels for key, levels in OTHERS["Interpolate-11"].attributes.items()},
         "mode": ("nearest", "linear", "linear_onnx", "cubic"),
         "shape_calculation_mode": ("sizes", "scales")},
        {**F, "1": ("int64",), "2": ("float",), "3": ("int64",)}),
    "Interpolate-12": _of(
        "Interpolate-11", attributes={"shape_calculation_mode": ("scales",)},
        cases=("1,1,4,5;[2.0,0.6];[2,3]", "4,5;[0.5,1.8];[0,1]", "4,5;[1.5,2.0]"),
        types={**F, "1": ("float",), "2": ("int64",)}),
    "LSTMCell-1": Row(("2,4;2,3;2,3;12,4;12,3;12", "1,4;1,3;1,3;12,4;12,3"), {
        "hidden_size": (3,), "clip": (0.0, 0.5), "input_forget": (False,),
        "weights_format": ("fico",)}, FLOATS),
    "RNNSequence-6": _directions("RNNSequence-5", [case.format(3) for case in STEPS]),
    "GRUSequence-6": _directions("GRUSequence-5", [case.format(9) for case in STEPS]),
    "LSTMSequence-6": _directions("LSTMSequence-5", [
        "2,3,4;2,1,3;2,1,3;[3,2];1,12,4;1,12,3;1,12",
        "2,3,4;2,2,3;2,2,3;[3,1];2,12,4;2,12,3;2,12"]),
    "MVN-2": Row(("2,3,4", "1,2,3,3"), {"across_channels": (True, False), "eps": (1e-5, 0.1),
                                       "normalize_variance": (True, False)}, F),
    "MulticlassNms-9": _of("MulticlassNms-8", cases=(
        BOXES + ";" + SCORES,
        "[[[0,0,4,4],[1,0,5,4]],[[0,0,3,4],[6,6,9,8]]];[[0.9,0.8],[0.2,0.95]];[1,1]"),
        types={**FLOATS, "2": ("int32",)}),
    "NonMaxSuppression-1": _of("NonMaxSuppression-9", ("output_type",), cases=FIVE,
                               types=SUPPRESSED),
    "NonMaxSuppression-3": _of("NonMaxSuppression-9", cases=FIVE, types=SUPPRESSED),
    "NonMaxSuppression-4": _of("NonMaxSuppression-9", cases=FIVE, types=SUPPRESSED),
    "NonMaxSuppression-5": _of("NonMaxSuppression-9"),
    "OneHot-16": _of("OneHot-1", attributes={"negative_indices_mode": (
        "ignore_negative", "normalize")}),
    "Pad-1": _of("Pad-12", cases=("3,4;[1,0];[0,2];=5", "4;[2];[3]", "3,4;[1,2];[1,2]")),
    "PriorBox-1": _of("PriorBox-8", ("min_max_aspect_ratios_order",)),
    "Proposal-1": Row(PLACED, PROPOSED, FLOATS),
    "Proposal-4": Row(PLACED, PROPOSED, FLOATS),
    "ROIAlign-3": _of("ROIAlign-9", ("aligned_mode",), fits=lambda v: True),
    "Range-1": Row(OTHERS["Range-4"].cases, types={str(place): ("int64",) for place in range(3)}),
    "ScatterElementsUpdate-3": _of("ScatterElementsUpdate-12", ("reduction", "use_init_val"),
                                   cases=("3,3;[[0,1,2]];1,3;=0", "3;[2,0];2;=-1",
                                          "3,3;[[-1,0],[1,-3]];2,2;=1")),
    "ScatterNDUpdate-3": _of("ScatterNDUpdate-15", ("reduction",), cases=(
        "4,2;[[1],[3]];2,2", "2,3;[[0,2],[1,2]];2", "3;[[2]];1")),
    "ShapeOf-1": Row(OTHERS["ShapeOf-3"].cases),
    "Softmax-1": Row(("2,3", "4", "2,1,3,2", "0,3"), {"axis": (0, 1)}, F, special=True,
                     fits=lambda v: v["case"] != "4" or v["axis"] == "0"),
    "Squeeze-1": _of("Squeeze-15", ("allow_axis_skip",)),
    "TopK-1": _of("TopK-11", ("index_element_type", "stable"), types={
        "0": ("float", "float16"), **I64}, cases=("2,4;=2", "2,4;=4", "4;=1", "2,3,4;=1"),
        fits=lambda v: True, attributes={"sort": ("value", "index")}),
    "TopK-3": _of("TopK-11", ("stable",), types={"0": ("float", "float16"), **I64},
                  cases=("2,4;=2", "2,4;=4", "4;=1", "2,3,4;=1"), fits=lambda v: True,
                  attributes={"sort": ("value", "index")}),
    "TopK-12": _of("TopK-11", attributes={"sort": ("index",)}),
    "ReduceSum-2": Row(("2,3,4;[-1,0]", "2,3,4;=-1"), {"keep_dims": (True, False)},
                       {"0": ("float", "int32"), "1": ("int32",)}),
    **{f"{op}-2": replace(OTHERS[f"{op}-1"], cases=("2,3;2,3", "2,3,4;2,3,4", "0,2;0,2"),
                          attributes={"auto_broadcast": ("none",)})
       for op in ("Add", "Multiply", "Less", "Maximum")},
    # OpenVINO loses the mode where it rewrites Divide, Greater and Subtract.
    **{f"{op}-3": replace(OTHERS[f"{op}-1"], cases=("2,3;2", "2,3,4;2,3", "2,3;2,3", "2,2;2"),
                          attributes={"auto_broadcast": ("pdpd",)})
       for op in ("Add", "Maximum", "Multiply")},
    "Reverse-01": Row(
        ("2,3;[True,False]", "4;[True]", "2,3,2;[False,False,True]", "0,3;[True,True]"), {
        "mode": ("mask",)}, {"1": ("bool",)}),
    "ROIPooling-3": Row(
        ("1,2,6,6;[[0,0.0,0.1,0.5,0.9],[0,0.2,0.2,1.0,0.7]]", "2,1,5,7;[[1,0.1,0.0,0.4,1.0]]"), {
        "output_size": ([2, 3],), "spatial_scale": (1.0,), "method": ("bilinear",)}, FLOATS),
    "ROIPooling-4": Row(
        ("1,2,6,6;[[0,0,0,3,4],[0,1,1,5,5]]", "2,1,6,8;[[1,2,2,15,9],[0,5,5,1,1]]"), {
        "output_size": ([2, 2], [3, 1]), "spatial_scale": (1.0, 0.5), "method": ("max",)}, FLOATS),
    "PSROIPooling-2": Row(
        ("2,8,6,6;[[0,0.0,0.1,0.5,0.9],[1,0.2,0.2,1.0,0.7]]", "1,8,5,7;[[0,0.1,0.0,0.4,1.0]]"), {
        "output_dim": (2,), "spatial_scale": (1.0, 0.5), "group_size": (1, 2),
        "mode": ("bilinear",), "spatial_bins_x": (2,), "spatial_bins_y": (2,)}, FLOATS),
    "PriorBox-08": _of("PriorBox-8", attributes={
        "min_size": ([], [10.0]), "max_size": ([],), "scale_all_sizes": (True,),
        "fixed_size": ([], [8.0, 16.0]), "density": ([], [2.0, 1.0]),
        "fixed_ratio": ([], [0.5, 2.0])}, fits=lambda v: (
            (v["fixed_size"] == "[]") == (v["density"] == "[]") != (v["min_size"] == "[]")
            and (v["fixed_ratio"] == "[]" or v["fixed_size"] != "[]"))),
    "DeformableConvolution-9": Row(
        ("2,4,5,6;2,36,3,3;2,2,3,3;2,18,3,3", "2,4,5,6;2,36,3,3;2,2,3,3"), {
        "strides": ([2, 2],), "pads_begin": ([1, 1],), "pads_end": ([1, 1],),
        "dilations": ([1, 1],), "group": (2,), "deformable_group": (2,),
        "bilinear_interpolation_pad": (True, False)}, FLOATS),
    "DetectionOutput-9": Row([f"1,32{priors[4:]}" for priors in PRIORS], {
        **DETECTED, "share_location": (False,)}, FLOATS, fits=_encoded),
    "BinaryConvolution-1": Row(("[[[[1,-1,1],[1,1,-1],[-1,1,1]]]];1,1,2,2",), {
        "strides": ([1, 1],), "pads_begin": ([0, 0],), "pads_end": ([0, 0],),
        "dilations": ([1, 1],), "mode": ("xnor-popcount",), "pad_value": (0.0,)}, F),
    "DetectionOutput-1": Row(PRIORS, {
        **DETECTED, "num_classes": (2,), "input_height": (1,), "input_width": (1,),
        "objectness_score": (0.0,)}, FLOATS, fits=_encoded),
    "DetectionOutput-8": Row((*PRIORS, *(f"{priors};1,8>0;1,16" for priors in PRIORS)), {
        **DETECTED, "objectness_score": (0.0, 0.4)}, FLOATS, fits=_encoded),
    "ExperimentalDetectronDetectionOutput-6": Row(
        (REGIONS + SHIFTS + (",[0,0,0,0,0.1,0.1,0,0,0.2,-0.2,0.1,0]" * 3)
         + "];[[0.1,0.8,0.1],[0.2,0.3,0.5],[0.9,0.05,0.05],[0.1,0.15,0.75]];[[30,40,1]]",), {
        "score_threshold": (0.1, 0.4), "nms_threshold": (0.3, 0.7), "num_classes": (3,),
        "post_nms_count": (10, 1), "max_detections_per_image": (3, 6),
        "max_delta_log_wh": (4.0,), "class_agnostic_box_regression": (False,),
        "deltas_weights": ([10.0, 10.0, 5.0, 5.0], [1.0, 1.0, 1.0, 1.0])}, FLOATS),
    "ExperimentalDetectronGenerateProposalsSingleImage-6": Row(
        ("[30,40,1];[[0,0,13,14],[10,10,25,20],[2,2,9,8],[1,1,15,13]];4,2,2;1,2,2",
         "[30,40,1];[[0,0,13,14],[10,10,25,20],[2,2,9,8],[1,1,15,13]];4,2,2<0..1;1,2,2"),
        {**GENERATED, "min_size": (0.0, 10.0)}, FLOATS,
        # "Order of pairs with equal scores is undefined": one box is small at most.
        fits=lambda v: v["min_size"] == "0.0" or "<" in v["case"]),
    "GenerateProposals-9": Row(
        ("[[30,40,1]];[[[[0,0,13,14]],[[10,10,25,20]]],[[[2,2,9,8]],[[1,1,15,13]]]];1,4,2,2;1,1,2,2",
         "[[30,40,1,1]];2,2,1,4;1,4,2,2;1,1,2,2"), {
        **GENERATED, "nms_eta": (1.0,), "normalized": (True, False),
        "roi_num_type": ("i64", "i32")}, FLOATS),
}.items()}  # fmt: skip
