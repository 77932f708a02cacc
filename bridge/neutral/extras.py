"""Facts about a model or a node that only one format has, kept for the way back to that format.

The graph is built on this file, so values are Any here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

PRODUCER = "bridge"
"""The producer of an ONNX file that Bridge made of an IR: it has the type of each value."""


@dataclass(eq=False)
class Fits:
    """A condition on the values of a type, for `Annotated`; `name` describes it in messages."""

    test: Callable[[Any], bool]
    name: str


Size = Annotated[int, Fits(lambda number: number >= 0, "size")]
"""The size of a dimension."""


@dataclass(frozen=True, eq=False)
class Provenance:
    """The one node that a rule replaced by several: its operator, its attributes without defaults,
    and its inputs. `outputs` of a node with several outputs holds a new value for each. An output
    that nobody uses stands for itself; no node of the graph makes it. The provenance is kept at
    the last of the new nodes that gives an output. It is a hint and must be proved, because the
    nodes may have changed since.

    `of_quirk` says that a quirk replaced the node, which was one of IR then, and perhaps one of the
    nodes that replace the node of ONNX in `former`."""

    op: str
    attributes: dict[str, Any]
    inputs: Sequence[Any]
    outputs: Sequence[Any] = ()
    of_quirk: bool = False
    former: Provenance | None = None

    def of(self, stands: Callable[[Any], Any]) -> Provenance:
        """The same node, with the values that now replace its inputs and outputs."""
        inputs = [None if value is None else stands(value) for value in self.inputs]
        outputs = list(map(stands, self.outputs))
        former = None if self.former is None else self.former.of(stands)
        return Provenance(self.op, self.attributes, inputs, outputs, self.of_quirk, former)


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
    parameters: dict[Any, EdgeExtras]
    results: list[EdgeExtras]


class ModelExtras(TypedDict, total=False):
    """The facts about a model that only one format knows, by format."""

    onnx: OnnxExtras
    ir: IrExtras
