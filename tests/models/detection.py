"""torchvision's detectors, as PyTorch's exporter traces them: small images, random weights."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torchvision.models import detection

SMALL = {"weights": None, "weights_backbone": None, "num_classes": 4}


def written(make: Callable[..., Any], options: dict[str, Any], folder: Path) -> Path:
    torch.manual_seed(0)
    path = folder / "model.onnx"
    torch.onnx.export(
        make(**SMALL, **options).eval(), ([torch.rand(3, 64, 96)],), path, dynamo=False,
        input_names=["image"], dynamic_axes={"image": {1: "height", 2: "width"}}, opset_version=17,
    )  # fmt: skip
    return path


_two_stages = {"min_size": 64, "max_size": 96, "box_score_thresh": 0.0, "box_detections_per_img": 8}
_one_stage = {"min_size": 64, "max_size": 96, "score_thresh": 0.0, "detections_per_img": 8}

KINDS: dict[str, Callable[[Path], Path]] = {
    "Faster R-CNN": partial(
        written, detection.fasterrcnn_mobilenet_v3_large_320_fpn, _two_stages
    ),
    "RetinaNet": partial(written, detection.retinanet_resnet50_fpn, _one_stage),
    "SSDLite": partial(
        written, detection.ssdlite320_mobilenet_v3_large,
        {"score_thresh": 0.0, "detections_per_img": 8},
    ),
}  # fmt: skip
"""The functions that write a model into a folder, by name."""
