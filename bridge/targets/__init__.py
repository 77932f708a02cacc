"""The targets of an IR: devices and releases of OpenVINO, as data.

A device is a row of `DEVICES`. `READ_SINCE` has the layers that older releases read. `limits`
refuses operators that the target lacks, `operators` writes missing operators with others, and
`branches` arranges the inputs of Ifs. `Device.quirks` and the release tell which faults get a
workaround.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bridge.neutral.graph import Model
from bridge.options import DEVICES as NAMES, release_number
from bridge.passes.applies import between_formats, either, specializes
from bridge.passes.context import Context


@dataclass(frozen=True)
class Device:
    """The abilities of an OpenVINO plugin.

    `quirks` says whether the faults of the plugin get workarounds. `ifs` is the form of Ifs unless
    the user asks for another. `unrolls` says which Loops of known trip count are unrolled: "all",
    those with a "growing" state, or none ("").
    `lacks` are the missing layer types, some "of" an operator set alone, and `types` the missing
    element types, by IR's names.
    `shapes` is "open" (any), "ranked" (a known rank) or "bounded" (a known rank and an upper bound
    of each size). `trip_counts` says whether trip counts of Loops must be constants. `branches`
    says how a branch finds its inputs: by "port", by "producer" (each input needs its own), or by
    "order".
    """

    name: str
    engine: str
    quirks: bool = False
    ifs: str = "keep"
    unrolls: str = ""
    lacks: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset({"string"})
    shapes: str = "open"
    trip_counts: bool = False
    branches: str = "port"


_STRINGS = frozenset({"StringTensorPack", "StringTensorUnpack"})

DEVICES = {
    device.name: device
    for device in (
        Device("CPU", "OpenVINO", quirks=True, types=frozenset()),
        # Source: src/plugins/intel_gpu/include/intel_gpu/plugin/primitives_list.hpp of OpenVINO.
        # These layers are not registered there, and no transformation replaces them before.
        Device(
            "GPU",
            "OpenVINO's GPU plugin",
            quirks=True,
            ifs="select-some",
            unrolls="all",
            lacks=_STRINGS
            | {
                "BitwiseNot", "ErfInv", "GroupedMatMul", "ISTFT", "Inverse", "NMSRotated",
                "ScatterNDUpdate of opset15", "SegmentMax", "SliceScatter", "SparseFillEmptyRows",
            },
            types=frozenset({"string", "u1", "u2", "u3", "u6"}),
            shapes="ranked",
            branches="producer",
        ),
        # Source: NGraphImporter::getParser in src/vpux_compiler/src/frontend/IE.cpp of the NPU
        # compiler. These layers have no parser, and no transformation replaces them before (as for
        # Einsum, Slice). importPrecision in the same file does not know these element types.
        Device(
            "NPU",
            "OpenVINO's NPU compiler",
            lacks=_STRINGS
            | {
                "BinaryConvolution", "BitwiseLeftShift", "BitwiseRightShift", "CTCLoss", "Col2Im",
                "EmbeddingBagOffsets", "EmbeddingBagPacked", "ErfInv",
                "ExperimentalDetectronDetectionOutput",
                "ExperimentalDetectronGenerateProposalsSingleImage",
                "ExperimentalDetectronPriorGridGenerator", "ExperimentalDetectronTopKROIs",
                "GenerateProposals", "GroupedMatMul", "ISTFT", "Identity", "IsFinite", "IsInf",
                "IsNaN", "MatrixNms", "MulticlassNms", "Multinomial", "NMSRotated", "PriorBox",
                "PriorBoxClustered", "RNNCell", "RNNSequence", "ROIAlignRotated", "STFT",
                "SearchSorted", "SegmentMax", "SliceScatter", "SoftSign", "SparseFillEmptyRows",
                "Unique",
            },
            types=frozenset({
                "string", "f4e2m1", "f8e8m0", "u1", "u3", "u6",
            }),
            unrolls="growing",
            shapes="bounded",
            trip_counts=True,
            branches="order",
        ),
        Device("ANY", "OpenVINO", types=frozenset()),
    )
}  # fmt: skip
"""The devices, by name."""

assert tuple(DEVICES) == NAMES

READ_SINCE: Mapping[tuple[str, int] | int, str] = {
    ("AvgPool", 14): "2024.1",
    ("MaxPool", 14): "2024.1",
    15: "2024.4",
    16: "2025.4",
    17: "2026.4",
}
"""The first release that reads a layer of an operator set, by layer type and set, else by set. All
releases that Bridge knows read earlier sets. `tests/releases` measured it."""


def device_of(options: Mapping[str, Any]) -> Device:
    """The device that an IR is for."""
    return DEVICES[options.get("device") or NAMES[0]]


def read_since(type: str, version: str, options: Mapping[str, Any]) -> str:
    """The first release that reads a layer, if the wanted one does not; else ""."""
    asked, opset = options.get("openvino"), re.fullmatch(r"opset(\d+)", version)
    if asked is None or opset is None:
        return ""
    number = int(opset[1])
    since = READ_SINCE.get((type, number)) or READ_SINCE.get(number)
    return since if since and release_number(asked) < release_number(since) else ""


# When passes for a device apply.


def works_round(model: Model, context: Context) -> bool:
    """If faults of engines get workarounds. In a specialized IR, they were undone and are made
    again; an IR of others is made safe for a device that unrolls Loops."""
    device = device_of(context.options)
    asked = between_formats(model, context) or device.unrolls == "all"
    was_onnx = model.format == "ir" and model.opset is not None
    return device.quirks and (asked or (was_onnx and specializes(model, context)))


def is_for_device(model: Model, context: Context) -> bool:
    """If the file is for a device or a release that does not read all valid files."""
    options = context.options
    return bool(options.get("openvino")) or device_of(options).shapes != "open"


def unrolls(model: Model, context: Context) -> bool:
    """If some Loops of known count become their iterations."""
    return bool(device_of(context.options).unrolls)


def counts_states(model: Model, context: Context) -> bool:
    """If the states of Loops that stay are counted."""
    return device_of(context.options).unrolls == "all"


def is_for_cpu(model: Model, context: Context) -> bool:
    """If a model from the other format is for OpenVINO's CPU plugin."""
    return device_of(context.options).name == "CPU" and between_formats(model, context)


has_limits = either(between_formats, is_for_device)
"""If the model is checked against the limits of the device."""
