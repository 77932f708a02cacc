"""Values, nodes, closed graphs, and bodies with explicit ports."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from bridge.limits import budget
from bridge.neutral.tensor import Tensor
from bridge.neutral.types import UNKNOWN, TensorType, Type


class Value:
    """One value: its type, its names, and the node that makes it (None for a graph input).

    `content` is what is known of an integer vector's or scalar's elements: a tuple of numbers,
    symbols and None (unknown), flattened; None where nothing is known or it is no shape-like value.
    `declared` is what the file says of the type; inference refines it and never contradicts it.
    """

    __slots__ = ("content", "declared", "names", "producer", "type")

    def __init__(self, type: Type = UNKNOWN, names: list[str] | None = None) -> None:
        self.type: Type = type
        self.declared: Type = type
        self.names: list[str] = names if names is not None else []
        self.producer: Node | None = None
        self.content: tuple[int | str | None, ...] | None = None

    @property
    def name(self) -> str:
        """The first name, "" where there is none."""
        return self.names[0] if self.names else ""

    @property
    def tensor(self) -> TensorType:
        """The type, known to be a tensor."""
        if not isinstance(self.type, TensorType):
            raise TypeError(f"{self.name or 'a value'} is no tensor but {self.type}")
        return self.type

    @property
    def element(self) -> Any:
        return self.type.element if isinstance(self.type, TensorType) else None

    @property
    def shape(self) -> Any:
        return self.type.shape if isinstance(self.type, TensorType) else None

    @property
    def rank(self) -> int | None:
        return self.type.rank if isinstance(self.type, TensorType) else None

    @property
    def constant(self) -> Tensor | None:
        """The tensor, where the value is a Constant's output."""
        producer = self.producer
        if producer is not None and producer.op == "Constant":
            return producer.attributes["value"]
        return None

    def __repr__(self) -> str:
        return f"%{self.name or hex(id(self))[-5:]}: {self.type}"


class Node:
    """One operator applied: `op` is a word of the neutral vocabulary (`mappings/`), or
    `domain::Name` for an operator of a domain that the vocabulary does not cover.

    `inputs` holds None for an absent optional input. `attributes` holds int, float, str, bool,
    Element, Tensor, and tuples of these. `bodies` is empty but for If (then, else) and Loop (one).
    `extras` carries what only one format knows (rt_info, metadata_props, doc_string, ...).
    """

    __slots__ = ("attributes", "bodies", "extras", "inputs", "name", "op", "outputs")

    def __init__(
        self,
        op: str,
        inputs: list[Value | None],
        outputs: list[Value],
        attributes: dict[str, Any] | None = None,
        bodies: tuple[Body, ...] = (),
        name: str = "",
        extras: dict[str, Any] | None = None,
    ) -> None:
        self.op = op
        self.inputs = inputs
        self.outputs = outputs
        self.attributes: dict[str, Any] = attributes if attributes is not None else {}
        self.bodies = bodies
        self.name = name
        self.extras: dict[str, Any] | None = extras
        budget().node(op, name)
        for output in outputs:
            output.producer = self

    def input(self, index: int) -> Value | None:
        """Input `index`, None where it is absent."""
        return self.inputs[index] if index < len(self.inputs) else None

    def __repr__(self) -> str:
        return f'{self.op} "{self.name or (self.outputs[0].name if self.outputs else "")}"'


class Graph:
    """A closed graph: nodes in topological order that see only its inputs and one another.

    `output_names` are the names by which the outside asks for the outputs (top-level graphs only;
    one for each output, "" to use the value's own).
    """

    __slots__ = ("inputs", "name", "nodes", "output_names", "outputs")

    def __init__(
        self,
        inputs: list[Value] | None = None,
        outputs: list[Value] | None = None,
        nodes: list[Node] | None = None,
        name: str = "",
    ) -> None:
        self.inputs: list[Value] = inputs if inputs is not None else []
        self.outputs: list[Value] = outputs if outputs is not None else []
        self.nodes: list[Node] = nodes if nodes is not None else []
        self.output_names: list[str] = []
        self.name = name

    def walk(self) -> Iterator[Node]:
        """Every node of this graph and of all graphs nested in it, outer before inner."""
        stack: list[Graph] = [self]
        while stack:
            graph = stack.pop()
            for node in graph.nodes:
                yield node
                for body in node.bodies:
                    stack.append(body.graph)


@dataclass(slots=True)
class Invariant:
    """A body input that is the node's input `input`, the same in every iteration."""

    input: int


@dataclass(slots=True)
class Carried:
    """A body input that starts as the node's input `input` (None: the constant true, for a
    condition that was not given) and then takes the body output `output` of the iteration
    before."""

    input: int | None
    output: int


@dataclass(slots=True)
class Sliced:
    """A body input that takes one part of the node's input `input` along `axis` per iteration.

    IR's meaning: parts of `part_size` from `start` to `end`, both inclusive, `stride` apart;
    negative ones count from the end; a negative stride goes backwards. With `keepdims` the part
    keeps the axis (IR); without, parts have size 1 and the axis is removed (ONNX).
    """

    input: int
    axis: int = 0
    start: int = 0
    stride: int = 1
    end: int = -1
    part_size: int = 1
    keepdims: bool = True


@dataclass(slots=True)
class Iteration:
    """A body input that is the number of the iteration, from 0."""


@dataclass(slots=True)
class Yield:
    """A body output that becomes the node's output `output` (of the last iteration, in a Loop);
    None for one that only feeds a Carried input."""

    output: int | None


@dataclass(slots=True)
class Stacked:
    """A body output of which all iterations' values are joined along `axis` into the node's
    output `output`; start, stride, end, part_size as in Sliced. With `keepdims` the values have
    the axis and are concatenated (IR); without, it is new and they are stacked (ONNX)."""

    output: int
    axis: int = 0
    start: int = 0
    stride: int = 1
    end: int = -1
    part_size: int = 1
    keepdims: bool = True


@dataclass(slots=True)
class Condition:
    """A body output that says whether a further iteration runs."""


InputPort = Invariant | Carried | Sliced | Iteration


def outer_input(port: InputPort) -> int | None:
    """The node's input that a body input takes, None where it takes none."""
    return None if isinstance(port, Iteration) else port.input


OutputPort = Yield | Stacked | Condition


@dataclass(slots=True)
class Body:
    """A nested graph and its ports: `inputs[i]` says where `graph.inputs[i]` comes from,
    `outputs[i]` where `graph.outputs[i]` goes."""

    graph: Graph
    inputs: list[InputPort] = field(default_factory=list)
    outputs: list[OutputPort] = field(default_factory=list)


@dataclass
class Model:
    """A graph and what the file says beside it.

    `format` is "onnx" or "ir", where it came from. `opset` is the ONNX operator set of the default
    domain (None when not from ONNX), `opsets` those of other domains. `defaults` are ONNX
    initializers that are inputs too, by input. `metadata` is ONNX's metadata_props; `extras` holds
    what only one format knows, under that format's name. `files` are those that it was read from
    and that hold its constants, each with its stamp (`bridge.files.stamp_of`).
    """

    graph: Graph
    format: str
    opset: int | None = None
    opsets: dict[str, int] = field(default_factory=dict)
    defaults: dict[Value, Tensor] = field(default_factory=dict)
    metadata: dict[str, str] = field(default_factory=dict)
    extras: dict[str, Any] = field(default_factory=dict)
    files: dict[str, tuple[int, int, int, int]] = field(default_factory=dict)


def is_scan(node: Node) -> bool:
    """Whether ONNX's Scan can say the Loop: slices alone decide how often it runs."""
    (body,) = node.bodies
    slices = [p for p in body.inputs if isinstance(p, Sliced)]
    if not slices or node.input(0) is not None or node.input(1) is not None:
        return False
    return all(not isinstance(p, Iteration) for p in body.inputs) and not any(
        isinstance(p, Condition) for p in body.outputs
    )
