"""Facts about a model or a node that only one format has, kept for the way back to that format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

if TYPE_CHECKING:
    from bridge.neutral.graph import Value
    from bridge.neutral.provenance import Provenance


PRODUCER = "bridge"
"""The producer of an ONNX file that Bridge made of an IR: it has the type of each value."""


@dataclass(eq=False)
class Fits:
    """A condition on the values of a type, for `Annotated`; `name` describes it in messages."""

    test: Callable[[Any], bool]
    name: str


Size = Annotated[int, Fits(lambda number: number >= 0, "size")]
"""The size of a dimension."""


class NodeExtras(TypedDict, total=False):
    """Extras of a node.

    IR: `rt_info` is XML; `port_rt_info` is the XML of its ports by ("input" or "output", index).
    `layer` is the type and the operator set of a layer that no row reads, `why` the reason.
    ONNX: `doc_string`, `metadata_props`.
    Both: `provenance` is the ONNX node that this node replaces, with other nodes that lead to it.
    `restored` says that a record named this node, and the proof held.
    While passes run, `quantizes` marks the last node of a QuantizeLinear, `noop` IR's reductions.
    """

    rt_info: str
    port_rt_info: dict[tuple[str, int], str]
    layer: tuple[str, str]
    why: str
    doc_string: str
    metadata_props: dict[str, str]
    provenance: Provenance
    restored: bool
    quantizes: bool
    noop: bool


class EdgeExtras(NodeExtras, total=False):
    """Extras of a layer without a node (a Parameter or a Result), with its name. `output_names` are
    the tensor names of a Result."""

    name: str
    output_names: list[str]


class Note(TypedDict, total=False):
    """Extra facts in a part of an ONNX model that do not change the computation. `hints` are
    attributes that say how an engine computes a node. `shape` is the declared shape of a value at
    the boundary of a graph, `value_info` of an inner value: sizes, names, None for neither."""

    doc_string: str
    metadata_props: dict[str, str]
    hints: dict[str, int]
    shape: list[Size | str | None]
    value_info: list[Size | str | None]


class OnnxExtras(TypedDict, total=False):
    """Extras of an ONNX model. `notes` holds the notes of its graphs, values and nodes by path
    (see `bridge.onnx_format.notes`)."""

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
    """The facts about a model that only one format knows, by format."""

    onnx: OnnxExtras
    ir: IrExtras
