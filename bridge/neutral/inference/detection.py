"""Object detection and regions of interest."""

from __future__ import annotations

from bridge.neutral.builder import values_of
from bridge.neutral.graph import Node
from bridge.neutral.inference import first, infers
from bridge.neutral.types import ANY, F32, I32, I64, Dim, TensorType, Type


@infers("NonMaxSuppression")
def non_max_suppression(node: Node) -> list[Type]:
    return [TensorType(I64, (ANY, 3))]


@infers("ir::NonMaxSuppression", "NMSRotated")
def ir_non_max_suppression(node: Node) -> list[Type]:
    element = node.attributes["output_type"]
    return [
        TensorType(element, (ANY, 3)),
        TensorType(first(node, 1).element, (ANY, 3)),
        TensorType(element, (1,)),
    ]


@infers("MatrixNms", "MulticlassNms")
def multiclass_nms(node: Node) -> list[Type]:
    element = node.attributes["output_type"]
    return [
        TensorType(first(node).element, (ANY, 6)),
        TensorType(element, (ANY, 1)),
        TensorType(element, (ANY,)),
    ]


def _rois(node: Node, channels: Dim, height: Dim, width: Dim) -> list[Type]:
    rois = first(node, 1).shape
    return [TensorType(first(node).element, (rois[0] if rois else ANY, channels, height, width))]


def _channels(node: Node) -> Dim:
    data = first(node).shape
    return data[1] if data else ANY


@infers("RoiAlign")
def roi_align(node: Node) -> list[Type]:
    size = node.attributes["output_height"], node.attributes["output_width"]
    return _rois(node, _channels(node), *size)


@infers("ROIAlign", "ROIAlignRotated", "ROIPooling")
def ir_roi_align(node: Node) -> list[Type]:
    return _rois(node, _channels(node), node.attributes["pooled_h"], node.attributes["pooled_w"])


@infers("MaxRoiPool")
def max_roi_pool(node: Node) -> list[Type]:
    return _rois(node, _channels(node), *node.attributes["pooled_shape"])


@infers("PSROIPooling", "DeformablePSROIPooling")
def psroi_pooling(node: Node) -> list[Type]:
    size = node.attributes["group_size"]
    return _rois(node, node.attributes["output_dim"], size, size)


@infers("RegionYolo")
def region_yolo(node: Node) -> list[Type]:
    data, attributes = first(node), node.attributes
    if data.shape is None:
        return [TensorType(data.element)]
    if not attributes["do_softmax"]:
        channels = (attributes["classes"] + attributes["coords"] + 1) * len(attributes["mask"])
        return [TensorType(data.element, (data.shape[0], channels, *data.shape[2:]))]
    rank = len(data.shape)
    axis, end = attributes["axis"] % rank, attributes["end_axis"] % rank
    size: Dim = 1
    for dim in data.shape[axis : end + 1]:
        size = size * dim if isinstance(size, int) and isinstance(dim, int) else ANY
    return [TensorType(data.element, (*data.shape[:axis], size, *data.shape[end + 1 :]))]


@infers("PriorBox", "PriorBoxClustered")
def prior_box(node: Node) -> list[Type]:
    size = values_of(node.input(0))
    if size is None:
        return [TensorType(F32, (2, ANY))]
    from bridge.rules.prior_box import priors_per_cell

    return [TensorType(F32, (2, 4 * int(size[0]) * int(size[1]) * priors_per_cell(node)))]


@infers("Proposal")
def proposal(node: Node) -> list[Type]:
    probabilities = first(node)
    batch = probabilities.shape[0] if probabilities.shape else ANY
    count = batch * node.attributes["post_nms_topn"] if isinstance(batch, int) else ANY
    return [
        TensorType(probabilities.element, (count, 5)),
        TensorType(probabilities.element, (count,)),
    ]


@infers("DetectionOutput")
def detection_output(node: Node) -> list[Type]:
    keep = node.attributes["keep_top_k"][0]
    shape = first(node).shape
    images = shape[0] if shape else ANY
    rows = images * keep if isinstance(images, int) and keep > 0 else ANY
    return [TensorType(first(node).element, (1, 1, rows, 7))]


@infers("ExperimentalDetectronDetectionOutput")
def detectron_detection_output(node: Node) -> list[Type]:
    element, count = first(node).element, node.attributes["max_detections_per_image"]
    return [
        TensorType(element, (count, 4)),
        TensorType(I32, (count,)),
        TensorType(element, (count,)),
    ]


@infers("ExperimentalDetectronGenerateProposalsSingleImage")
def detectron_generate_proposals(node: Node) -> list[Type]:
    element, count = first(node).element, node.attributes["post_nms_count"]
    return [TensorType(element, (count, 4)), TensorType(element, (count,))]


@infers("ExperimentalDetectronPriorGridGenerator")
def detectron_prior_grid(node: Node) -> list[Type]:
    element = first(node).element
    if node.attributes["flatten"]:
        return [TensorType(element, (ANY, 4))]
    return [TensorType(element, (ANY, ANY, ANY, 4))]


@infers("ExperimentalDetectronROIFeatureExtractor")
def detectron_roi_features(node: Node) -> list[Type]:
    rois, size = first(node), node.attributes["output_size"]
    features = first(node, 1).shape
    count, channels = rois.shape[0] if rois.shape else ANY, features[1] if features else ANY
    return [
        TensorType(rois.element, (count, channels, size, size)),
        TensorType(rois.element, (count, 4)),
    ]


@infers("ExperimentalDetectronTopKROIs")
def detectron_topk_rois(node: Node) -> list[Type]:
    return [TensorType(first(node).element, (node.attributes["max_rois"], 4))]


@infers("GenerateProposals")
def generate_proposals(node: Node) -> list[Type]:
    element = first(node).element
    batch = first(node).shape
    return [
        TensorType(element, (ANY, 4)),
        TensorType(element, (ANY,)),
        TensorType(node.attributes["roi_num_type"], (batch[0] if batch else ANY,)),
    ]
