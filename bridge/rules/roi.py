"""Pooling of regions of interest.

IR's aligned_mode "half_pixel_for_nn" is ONNX's half_pixel, "asymmetric" is output_half_pixel, and
"half_pixel" lies half a pixel of the input further.
"""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.neutral.types import I64
from bridge.rules import Refused, Result, expands
from bridge.rules.idioms import cast

_ALIGNED = {"half_pixel": "half_pixel_for_nn", "output_half_pixel": "asymmetric"}


@expands("RoiAlign", target="ir")
def roi_align_to_ir(b: Builder, node: Node) -> Result:
    attributes = node.attributes
    if attributes["mode"] == "max":
        raise Refused(
            "ONNX's mode max takes the maximum of weighted corners, OpenVINO's of samples"
        )
    return b.op(
        "ROIAlign", *node.inputs, pooled_h=attributes["output_height"],
        pooled_w=attributes["output_width"], sampling_ratio=attributes["sampling_ratio"],
        spatial_scale=attributes["spatial_scale"], mode=attributes["mode"],
        aligned_mode=_ALIGNED[attributes["coordinate_transformation_mode"]],
    )  # fmt: skip


@expands("ROIAlign", target="onnx")
def ir_roi_align_to_onnx(b: Builder, node: Node) -> Result:
    """ONNX's mode max takes the maximum of weighted corners, IR's that of samples and 0: it is
    pooled here from averages of one sample each."""
    data, rois, batches = node.inputs
    assert rois is not None and batches is not None
    attributes = node.attributes
    aligned = attributes["aligned_mode"]
    scale = attributes["spatial_scale"]
    if aligned == "half_pixel":
        rois = b.op("Add", rois, b.like(0.5, rois))
    samples, height, width = (attributes[k] for k in ("sampling_ratio", "pooled_h", "pooled_w"))
    mode = "output_half_pixel" if aligned == "asymmetric" else "half_pixel"
    largest = attributes["mode"] == "max"
    if largest and samples == 0:
        raise Refused("mode max with a sampling_ratio of 0 has no fixed number of samples")
    finer = samples if largest else 1
    y = b.op(
        "RoiAlign", data, rois, cast(b, batches, I64), mode="avg", spatial_scale=scale,
        output_height=height * finer, output_width=width * finer,
        sampling_ratio=1 if largest else samples,
        coordinate_transformation_mode=mode,
    )  # fmt: skip
    if not largest:
        return y
    window = (samples, samples)
    return b.op("Relu", b.op("MaxPool", y, kernel_shape=window, strides=window))


@expands("MaxRoiPool", target="ir")
def max_roi_pool_to_ir(b: Builder, node: Node) -> Result:
    height, width = node.attributes["pooled_shape"]
    return b.op(
        "ROIPooling", *node.inputs, pooled_h=height, pooled_w=width, method="max",
        spatial_scale=node.attributes["spatial_scale"],
    )  # fmt: skip


@expands("ROIPooling", target="onnx")
def roi_pooling_to_onnx(b: Builder, node: Node) -> Result:
    attributes = node.attributes
    if attributes["method"] != "max":
        raise Refused(f"ONNX has no region pooling by {attributes['method']}")
    return b.op(
        "MaxRoiPool", *node.inputs, pooled_shape=(attributes["pooled_h"], attributes["pooled_w"]),
        spatial_scale=attributes["spatial_scale"],
    )  # fmt: skip
