"""What only one format says of a model or of a node, kept for the way back to that format."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from bridge.metadata import Size

if TYPE_CHECKING:
    from bridge.neutral.graph import Value
    from bridge.neutral.provenance import Provenance


PRODUCER = "bridge"
"""The producer of an ONNX file that Bridge made of an IR: it has the type of each value."""


class NodeExtras(TypedDict, total=False):
    """Of a node.

    IR: `rt_info` is XML, `port_rt_info` that of its ports by ("input" or "output", index).
    `ir_attributes` are the layer's attributes beside the operator's own. `layer` is the type and
    the operator set of a layer that no row reads, `why` the reason.
    ONNX: `doc_string`, `metadata_props`.
    Both: `provenance` is the node of ONNX in whose place this stands, with others that lead to it.
    `restored` says that a record named this node, and was right.
    """

    rt_info: str
    port_rt_info: dict[tuple[str, int], str]
    ir_attributes: dict[str, str]
    layer: tuple[str, str]
    why: str
    doc_string: str
    metadata_props: dict[str, str]
    provenance: Provenance
    restored: bool


class EdgeExtras(NodeExtras, total=False):
    """Of a layer that is no node, a Parameter or a Result, with its name. `output_names` are those
    that a Result says that it answers to."""

    name: str
    output_names: list[str]


class Note(TypedDict, total=False):
    """What a part of an ONNX model says beyond the computation. `hints` are attributes that say how
    an engine computes a node. `shape` is what it declares of a
    value at the boundary of a graph, `value_info` of one within: sizes, names, None for neither."""

    doc_string: str
    metadata_props: dict[str, str]
    hints: dict[str, int]
    shape: list[Size | str | None]
    value_info: list[Size | str | None]


class OnnxExtras(TypedDict, total=False):
    """Of an ONNX model. `notes` are those of its graphs, values and nodes by path (see
    `bridge.onnx_format.notes`)."""

    producer_name: str
    producer_version: str
    domain: str
    model_version: int
    doc_string: str
    notes: dict[str, Note]


class IrExtras(TypedDict, total=False):
    """Of an IR: the entries of its rt_info as XML, its Parameters and its Results."""

    rt_info: tuple[str, ...]
    parameters: dict[Value, EdgeExtras]
    results: list[EdgeExtras]


class ModelExtras(TypedDict, total=False):
    """Of a model, by format."""

    onnx: OnnxExtras
    ir: IrExtras
