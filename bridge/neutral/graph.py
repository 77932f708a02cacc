"""Values, nodes, closed graphs, and bodies with explicit ports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Protocol

import numpy as np

from bridge.errors import Refused, amount
from bridge.neutral.arithmetic import Arithmetic
from bridge.neutral.attributes import Attributes
from bridge.neutral.extras import ModelExtras, NodeExtras
from bridge.neutral.ports import (
    Carried,
    Condition,
    InputPort,
    Invariant,
    Iteration,
    OutputPort,
    Sliced,
    Yield,
)
from bridge.neutral.tensor import Tensor
from bridge.neutral.types import ANY, UNKNOWN, Dim, Element, KnownValue, Shape, TensorType, Type
from bridge.vocabulary import traits_of

UNKNOWN_ELEMENT = "the element type of one of its inputs is not known"

BRANCHES = ("then_branch", "else_branch")
"""The names of an If's bodies."""


class OnDemand(Protocol):
    """The elements of a value, computed at the first request."""

    def array(self) -> np.ndarray | None:
        """The elements, with their shape; None if they cannot be computed."""


class Value(Arithmetic):
    """One value: its type, its names, and the node that makes it (None for a graph input).
    Its arithmetic makes nodes with the current builder.

    `known_value` holds the known elements of an integer vector or scalar, flattened: numbers,
    symbols, bounds, and None for an unknown element. It is None as a whole if no element is known
    or the value is no shape-like value. `computed` makes all elements when they are asked for. It
    is None if they do not follow from known inputs, or if `known_value` has them.
    Read known elements with `known_of`. `declared` is the type in the file; inference refines it
    and never contradicts it. A rank is `believed` if the declaration alone gives it.
    """

    __slots__ = ("believed", "computed", "declared", "known_value", "names", "producer", "type")

    def __init__(self, type: Type = UNKNOWN, names: list[str] | None = None) -> None:
        self.type: Type = type
        self.declared: Type = type
        self.names: list[str] = names if names is not None else []
        self.producer: Node | None = None
        self.known_value: KnownValue | None = None
        self.computed: OnDemand | None = None
        self.believed = False

    @property
    def name(self) -> str:
        """The first name, "" if there is none."""
        return self.names[0] if self.names else ""

    @property
    def tensor(self) -> TensorType:
        """The type; Refused if it is known to be no tensor."""
        if not isinstance(self.type, TensorType):
            raise Refused(f"{self.name or 'a value'} is no tensor but {self.type}")
        return self.type

    @property
    def element(self) -> Element | None:
        """The element type; None if it is unknown, or the value is no tensor."""
        return self.type.element if isinstance(self.type, TensorType) else None

    @property
    def shape(self) -> Shape:
        """The shape; None if the rank is unknown, or the value is no tensor."""
        return self.type.shape if isinstance(self.type, TensorType) else None

    @property
    def dims(self) -> tuple[Dim, ...]:
        """The shape; Refused if the rank is unknown."""
        if self.shape is None:
            raise Refused(f"the rank of {self.name or 'a value'} is not known; declare it")
        return self.shape

    @property
    def rank(self) -> int | None:
        """The number of axes; None if it is unknown, or the value is no tensor."""
        shape = self.type.shape if isinstance(self.type, TensorType) else None
        return None if shape is None else len(shape)

    @property
    def constant(self) -> Tensor | None:
        """The tensor, if the value is a Constant's output."""
        producer = self.producer
        if producer is not None and producer.op == "Constant":
            tensor: Tensor = producer.attributes["value"]
            return tensor
        return None

    @property
    def known_constant(self) -> Tensor:
        """The tensor of a Constant's output; Refused for another value."""
        if self.constant is None:
            raise Refused(f"{self.name or 'a value'} is no constant")
        return self.constant

    @property
    def known_element(self) -> Element:
        """The element type; Refused if it is unknown."""
        if self.element is None:
            raise Refused(UNKNOWN_ELEMENT)
        return self.element

    @property
    def node(self) -> Node:
        """The producer, known to exist."""
        if self.producer is None:
            raise TypeError(f"{self.name or 'a value'} is an input of its graph")
        return self.producer

    def behind(
        self,
        *ops: str,
        traits: frozenset[str] = frozenset(),
        outside: Mapping[Value, Value] = MappingProxyType({}),
    ) -> Value:
        """Follows the data input (input 0) back through nodes of these operators, and of operators
        with one of the traits, and returns the value where the chain ends. `outside` maps the
        inputs of bodies to outer values."""
        value = self
        while (before := outside.get(value) or operand_of(value, *ops, traits=traits)) is not None:
            value = before
        return value

    def __repr__(self) -> str:
        return f"%{self.name or hex(id(self))[-5:]}: {self.type}"


class Node:
    """One operator applied: `op` is a word of the neutral vocabulary (`mappings/`), or
    `domain::Name` for an operator of a domain that the vocabulary does not cover.

    `inputs` holds None for an absent optional input. `attributes` are the attributes in the
    operator's row. `bodies` is empty except for If (then, else) and Loop (one). `extras` holds
    facts that only one format knows.
    """

    __slots__ = ("attributes", "bodies", "extras", "inputs", "name", "op", "outputs")

    def __init__(
        self,
        op: str,
        inputs: list[Value | None],
        outputs: list[Value],
        attributes: Attributes | None = None,
        bodies: tuple[Body, ...] = (),
        name: str = "",
        extras: NodeExtras | None = None,
    ) -> None:
        self.op = op
        self.inputs = inputs
        self.outputs = outputs
        self.attributes: Attributes = attributes if attributes is not None else {}
        self.bodies = bodies
        self.name = name
        self.extras: NodeExtras | None = extras
        for output in outputs:
            output.producer = self

    def input(self, index: int) -> Value | None:
        """Input `index`, None if it is absent."""
        return self.inputs[index] if index < len(self.inputs) else None

    @property
    def operands(self) -> list[Value]:
        """The inputs without the absent ones."""
        return [value for value in self.inputs if value is not None]

    def operand(self, index: int) -> Value:
        """Input `index`; Refused if it is absent."""
        value = self.input(index)
        if value is None:
            raise Refused(f"its input {index} is absent")
        return value

    @property
    def body(self) -> Body:
        """The body of a Loop."""
        (body,) = self.bodies
        return body

    @property
    def then_body(self) -> Body:
        """The first branch of an If."""
        return self.bodies[0]

    @property
    def else_body(self) -> Body:
        """The second branch of an If."""
        return self.bodies[1]

    @property
    def condition(self) -> Value | None:
        """The condition of an If or a Loop (None: always true)."""
        return self.inputs[0] if self.op == "If" else self.input(1)

    @property
    def trip_count(self) -> Value | None:
        """The most iterations of a Loop (None: no limit but the slices and the condition)."""
        return self.inputs[0]

    def outer(self, port: InputPort) -> Value | None:
        """The outer value that a body input takes, or starts with; None if it takes none."""
        index = None if isinstance(port, Iteration) else port.input
        return None if index is None else self.inputs[index]

    def states(self) -> list[tuple[Value, Carried, Value]]:
        """The loop-carried values of a Loop, inside the body, with their ports and their initial
        values; without a condition that starts as true."""
        return [
            (value, port, initial)
            for value, port in self.body.entries()
            if isinstance(port, Carried) and (initial := self.outer(port)) is not None
        ]

    def slices(self) -> list[tuple[Sliced, Dim]]:
        """The slices of a Loop, and the sizes of the axes along which they are taken."""
        ports = [port for port in self.body.inputs if isinstance(port, Sliced)]
        shapes = [self.operand(port.input).shape for port in ports]
        return [
            (port, ANY if shape is None else shape[port.axis])
            for port, shape in zip(ports, shapes, strict=True)
        ]

    def captures(self, body: Body) -> dict[Value, Value]:
        """Maps the inputs of a body that have one value in all iterations, or in a branch, to the
        outer values."""
        return {
            value: outer
            for value, port in body.entries()
            if isinstance(port, Invariant) and (outer := self.outer(port)) is not None
        }

    def roles(self) -> list[tuple[str, Body]]:
        """The bodies with their names in paths: `then_branch`, `else_branch`, `body`."""
        names = BRANCHES if self.op == "If" else ("body",) * len(self.bodies)
        return list(zip(names, self.bodies, strict=True))

    def __repr__(self) -> str:
        return f'{self.op} "{self.name or (self.outputs[0].name if self.outputs else "")}"'


def producer_of(
    value: Value | None, *ops: str, traits: frozenset[str] = frozenset()
) -> Node | None:
    """The node that makes a value, if it is one of these operators or has one of the traits; any
    node without `ops` and `traits`."""
    node = None if value is None else value.producer
    if node is None or not (ops or traits):
        return node
    return node if node.op in ops or traits & traits_of(node.op) else None


def operand_of(
    value: Value | None, *ops: str, traits: frozenset[str] = frozenset()
) -> Value | None:
    """The first input of the node that makes a value, if it is one of these operators or has one
    of the traits."""
    node = producer_of(value, *ops, traits=traits) if ops or traits else None
    return node.inputs[0] if node is not None else None


class Graph:
    """A closed graph: nodes in topological order that use only its inputs and each other's outputs.

    `output_names` are the public names of the outputs (top-level graphs only; one for each output,
    "" to use the value's own name).
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

    def prepend(self, nodes: Iterable[Node]) -> None:
        """Puts nodes in front of all others."""
        self.nodes[:0] = nodes

    def walk(self) -> Iterator[Node]:
        """Every node of this graph and of all graphs nested in it, outer before inner."""
        stack: list[Graph] = [self]
        while stack:
            graph = stack.pop()
            for node in graph.nodes:
                yield node
                for body in node.bodies:
                    stack.append(body.graph)

    def computed(self) -> Iterator[Value]:
        """The values of this graph and of all nested graphs, without constants and without the
        inputs of this graph."""
        for node in self.walk():
            if node.op != "Constant":
                yield from node.outputs
            for body in node.bodies:
                yield from body.graph.inputs


def sizes_of_constants(graph: Graph) -> list[int]:
    """Bytes of each constant of a graph and its nested graphs, of one tensor once."""
    tensors = {id(n.attributes["value"]): n.attributes["value"]
               for n in graph.walk() if n.op == "Constant"}  # fmt: skip
    return [tensor.nbytes for tensor in tensors.values()]


def size_of_constants(graph: Graph) -> int:
    """Bytes of all constants of a graph and its nested graphs, each tensor counted once."""
    return sum(sizes_of_constants(graph))


def names_of_outputs(graph: Graph) -> list[str]:
    """The public names of the outputs of a top-level graph."""
    names = graph.output_names or [""] * len(graph.outputs)
    return [name or value.name for name, value in zip(names, graph.outputs, strict=True)]


@dataclass(eq=False)
class Body:
    """A nested graph and its ports: `inputs[i]` says where `graph.inputs[i]` comes from,
    `outputs[i]` where `graph.outputs[i]` goes. Both are edited together, by the methods here."""

    graph: Graph
    inputs: list[InputPort] = field(default_factory=list)
    outputs: list[OutputPort] = field(default_factory=list)

    def entries(self) -> list[tuple[Value, InputPort]]:
        """The inputs with their ports."""
        return list(zip(self.graph.inputs, self.inputs, strict=True))

    def exits(self) -> list[tuple[Value, OutputPort]]:
        """The outputs with their ports."""
        return list(zip(self.graph.outputs, self.outputs, strict=True))

    def set_entries(self, entries: Iterable[tuple[Value, InputPort]]) -> None:
        """Gives the body these inputs."""
        pairs = list(entries)
        self.graph.inputs = [value for value, _ in pairs]
        self.inputs = [port for _, port in pairs]

    def set_exits(self, exits: Iterable[tuple[Value, OutputPort]]) -> None:
        """Gives the body these outputs; carried inputs that stay must find theirs in its place."""
        pairs = list(exits)
        self.graph.outputs = [value for value, _ in pairs]
        self.outputs = [port for _, port in pairs]

    def add_entry(self, value: Value, port: InputPort, first: bool = False) -> None:
        """Adds an input, behind the others or as the `first`."""
        index = 0 if first else len(self.inputs)
        self.graph.inputs.insert(index, value)
        self.inputs.insert(index, port)

    def add_exit(self, value: Value, port: OutputPort) -> int:
        """Adds an output behind the others; its index."""
        self.graph.outputs.append(value)
        self.outputs.append(port)
        return len(self.outputs) - 1

    def take_entries(
        self, wanted: Callable[[Value, InputPort], bool]
    ) -> list[tuple[Value, InputPort]]:
        """Removes the wanted inputs; gives them with their ports."""
        pairs = self.entries()
        taken = [pair for pair in pairs if wanted(*pair)]
        if taken:
            self.set_entries(pair for pair in pairs if not wanted(*pair))
        return taken

    def keep_exits(self, kept: Sequence[int]) -> None:
        """Keeps the outputs of these indices, which no carried input may go without."""
        moved = {old: new for new, old in enumerate(kept)}
        exits = self.exits()
        self.set_exits(exits[index] for index in kept)
        self.inputs = [
            replace(port, output=moved[port.output]) if isinstance(port, Carried) else port
            for port in self.inputs
        ]

    def results(self) -> list[tuple[Value, int]]:
        """The outputs of a branch, each with the output of the If that it becomes."""
        return [
            (value, port.output)
            for value, port in self.exits()
            if isinstance(port, Yield) and port.output is not None
        ]

    def exit_of(self, port: Carried) -> tuple[Value, OutputPort]:
        """The output that a carried input takes, with its port."""
        return self.graph.outputs[port.output], self.outputs[port.output]

    def given(self, output: int) -> Value:
        """The value that a branch gives for an output of its If. It usually has the same place."""
        wanted = Yield(output)
        there = self.outputs[output : output + 1] == [wanted]
        return self.graph.outputs[output if there else self.outputs.index(wanted)]

    def copy(self) -> Body:
        """A body with the same values and nodes, whose own lists can change without this one's."""
        graph = self.graph
        same = Graph(list(graph.inputs), list(graph.outputs), list(graph.nodes), graph.name)
        return Body(same, list(self.inputs), list(self.outputs))


@dataclass(eq=False)
class Model:
    """A graph with the other facts in the file.

    `format` is "onnx" or "ir", the format of the file. `opset` is the ONNX operator set of the
    default domain (None for IR), `opsets` has the sets of other domains. `defaults` holds the ONNX
    initializers that are also inputs, by input. `metadata` is ONNX's metadata_props. `extras` holds
    facts that only one format knows, under the format's name. `notes` are a report's notes about
    how the file was read, `details` further ones for `Report.details`. `files` are the files that
    were read and that hold the constants, each with its stamp (`bridge.files.stamp_of`).
    """

    graph: Graph
    format: str
    opset: int | None = None
    opsets: dict[str, int] = field(default_factory=dict)
    defaults: dict[Value, Tensor] = field(default_factory=dict)
    metadata: dict[str, str] = field(default_factory=dict)
    extras: ModelExtras = field(default_factory=ModelExtras)
    notes: list[str] = field(default_factory=list)
    files: dict[str, tuple[int, int, int, int]] = field(default_factory=dict)
    details: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        graph = self.graph
        counts = {
            "input": len(graph.inputs),
            "output": len(graph.outputs),
            "node": sum(node.op != "Constant" for node in graph.walk()),
            "If": sum(node.op == "If" for node in graph.walk()),
        }
        said = ", ".join(amount(count, noun) for noun, count in counts.items())
        return f"<Model {graph.name!r} of {self.format}: {said}>"

    def _repr_html_(self) -> str:
        """A summary for notebooks: inputs, outputs and operators."""
        from bridge.neutral.tables import as_html

        graph = self.graph
        operators = Counter(node.op for node in graph.walk() if node.op != "Constant")
        named = zip(names_of_outputs(graph), graph.outputs, strict=True)
        return as_html(
            repr(self),
            {
                "input": [(value.name, str(value.type)) for value in graph.inputs],
                "output": [(name, str(value.type)) for name, value in named],
                "operator": [(op, str(count)) for op, count in operators.most_common()],
            },
        )


def loop_kind(node: Node) -> str:
    """The kind of a Loop, among the kinds that both formats have.

    "slices": only slices say how often it runs, as in IR's TensorIterator. "scan": likewise, and
    the body does not use the iteration's number, as in ONNX's Scan. "count": a trip count or a
    condition, as in the Loop of both formats.
    """
    body = node.body
    counted = node.trip_count is not None or node.condition is not None
    if counted or not any(isinstance(port, Sliced) for port in body.inputs):
        return "count"
    if any(isinstance(port, Carried) and port.input is None for port in body.inputs):
        return "count"
    if any(isinstance(port, Condition) for port in body.outputs):
        return "count"
    return "slices" if any(isinstance(port, Iteration) for port in body.inputs) else "scan"
