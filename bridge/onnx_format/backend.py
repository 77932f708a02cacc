"""Neutral graph → ONNX: ports become captures again, constants become initializers."""

from collections.abc import Mapping, Set
from functools import cached_property
from pathlib import Path

import onnx
import onnx.helper

from bridge.errors import Unsupported, UnsupportedError, UsageError
from bridge.neutral.builder import Target
from bridge.neutral.extras import PRODUCER, Note, OnnxExtras
from bridge.neutral.graph import Body, Graph, Model, Node, Value, size_of_constants
from bridge.neutral.ports import Invariant, Yield
from bridge.neutral.tensor import Tensor
from bridge.neutral.types import STRING
from bridge.onnx_format.attributes import write_attribute
from bridge.onnx_format.loop_writer import write_loop
from bridge.onnx_format.names import Names, unique_node_names
from bridge.onnx_format.node import write_node
from bridge.onnx_format.notes import NODE, as_declared, within, write_hints, write_note
from bridge.onnx_format.signature import leave_out_defaults, signature
from bridge.onnx_format.storage import ExternalData
from bridge.onnx_format.tensors import write_tensor
from bridge.onnx_format.type_protos import write_type
from bridge.onnx_format.wire import LARGE, write_streamed
from bridge.operators.spelling import choose, oldest, spell
from bridge.vocabulary import operator

EMBEDDED_LIMIT = 1 << 30
"""Bytes of constants above which they go to an external file by default."""


LARGEST_PROTO = (1 << 31) - 1
"""Bytes that a protobuf message can have."""


def to_proto(model: Model, target: Target) -> onnx.ModelProto:
    """The model as a ModelProto with its constants; UsageError if a message cannot hold them. Every
    node must have an ONNX spelling (`legalize` ensures it)."""
    _require_room(size_of_constants(model.graph))
    return Writer(model, target, None).model()


def write(
    model: Model,
    path: Path,
    data_path: Path,
    location: str,
    target: Target,
    external: bool | None = None,
) -> bool:
    """Writes the model to `path` and, if constants are external, `data_path`, which the model
    calls `location`. `external` None decides by size. Returns whether `data_path` was written.
    UsageError, before anything is written, if the file would be larger than ONNX allows."""
    if external is None:
        external = size_of_constants(model.graph) > EMBEDDED_LIMIT
    layout = ExternalData(location) if external else None
    writer = Writer(model, target, layout, stream=True)
    proto = writer.model()
    _require_room(proto.ByteSize() + sum(tensor.nbytes for _, tensor in writer.streamed))
    write_streamed(proto, writer.streamed, path)
    if layout is not None and layout.tensors:
        layout.write(data_path)
        return True
    return False


def _require_room(size: int) -> None:
    """Raises UsageError if a message of so many bytes could not be read again."""
    if size > LARGEST_PROTO:
        raise UsageError(
            f"{size} bytes do not fit an ONNX file or proto, which ends at 2 GiB; convert to a "
            ".onnx file and leave its constants to external data"
        )


class Writer:
    """Writes one model. `name_of` gives a value's name and notes that it is used."""

    def __init__(
        self, model: Model, target: Target, external: ExternalData | None, stream: bool = False
    ) -> None:
        self.source = model
        self.target = target
        self.external = external
        self.names = Names()
        self.used: dict[Value, int] = {}
        self.domains: dict[str, int] = {}
        self.shared: dict[int, str] = {}
        self.stream = stream
        self.streamed: list[tuple[str, Tensor]] = []
        self.where: list[str] = []
        self.notes: Mapping[str, Note] = model.extras.get("onnx", {}).get("notes", {})
        self.path = ""
        producer = model.extras.get("onnx", {}).get("producer_name")
        self.every = model.opset is None or producer == PRODUCER

    def model(self) -> onnx.ModelProto:
        """The ModelProto."""
        proto = onnx.ModelProto()
        info: OnnxExtras = self.source.extras.get("onnx", {})
        if self.source.opset is None:
            proto.producer_name = PRODUCER
        for key in ("producer_name", "producer_version", "domain", "model_version", "doc_string"):
            if key in info:
                setattr(proto, key, info[key])
        graph = self.source.graph
        proto.graph.name = graph.name or "graph"
        shared = self._shared_constants()
        self._name_boundary(graph, shared)
        for tensor, node in shared.items():
            # An output that is a copy of it has the name that the outside asks for.
            wishes = (*node.outputs[0].names, node.name, "constant")
            free = (name for name in wishes if name and name not in graph.output_names)
            self.shared[tensor] = self.names.take(next(free, "constant"))
        self._graph(graph, proto.graph, None)
        for tensor, node in shared.items():
            self._initializer(proto.graph, self.shared[tensor], node.attributes["value"])
        proto.opset_import.add(domain="", version=self.target.opset)
        kept = {k: v for k, v in self.source.opsets.items() if k in self.target.domains}
        domains = {**kept, **self.domains}
        for domain in sorted(domains):
            proto.opset_import.add(domain=domain, version=domains[domain])
        proto.ir_version = onnx.helper.find_min_ir_version_for(
            [*proto.opset_import], ignore_unknown=True
        )
        for key, value in self.source.metadata.items():
            proto.metadata_props.add(key=key, value=value)
        return proto

    def _name_boundary(self, graph: Graph, shared: Mapping[int, Node]) -> None:
        """Names inputs and outputs first, because users of the model rely on their names. An
        output that is one of the `shared` constants will be a copy of it."""
        for index, value in enumerate(graph.inputs):
            self.names.give(value, value.name or f"input_{index}")
        inputs = set(graph.inputs)
        for index, value in enumerate(graph.outputs):
            wish = graph.output_names[index] if index < len(graph.output_names) else ""
            if value not in inputs and id(value.constant) not in shared:
                self.names.give(value, wish or value.name or f"output_{index}")

    def _shared_constants(self) -> dict[int, Node]:
        """The Constants that become initializers of the top graph although a body uses them, by
        tensor. Several graphs use them, or they are large and are streamed from there."""
        top = self.source.graph
        if not any(node.bodies for node in top.nodes):
            return {}
        homes: dict[int, Graph] = {}
        first: dict[int, Node] = {}
        many: set[int] = set()
        stack = [top]
        while stack:
            graph = stack.pop()
            taken = self._taken(graph)
            for node in graph.nodes:
                if node.op == "Constant" and node.outputs[0] in taken:
                    tensor = node.attributes["value"]
                    key = id(tensor)
                    first.setdefault(key, node)
                    nested = graph is not top and tensor.nbytes >= LARGE
                    if nested or homes.setdefault(key, graph) is not graph:
                        many.add(key)
                for body in node.bodies:
                    stack.append(body.graph)
        return {key: node for key, node in first.items() if key in many}

    def _taken(self, graph: Graph) -> set[Value]:
        """The values of a graph that are written as inputs of its nodes or as its outputs, not as
        attributes."""
        taken = set(graph.outputs)
        for node in graph.nodes:
            spelling = None if node.bodies else choose(node, self.target)[0]
            inputs = node.inputs if spelling is None else spell(node, spelling)[0]
            taken.update(value for value in inputs if value is not None)
        return taken

    def name_of(self, value: Value) -> str:
        """The value's name in the written model."""
        tensor = value.constant
        if tensor is not None:
            name = self.shared.get(id(tensor))
            if name is not None:
                return name
        self.used.setdefault(value, len(self.used))
        return self.names.of[value]

    def _graph(self, graph: Graph, proto: onnx.GraphProto, body: Body | None) -> list[str]:
        """Writes nodes and initializers (and, at the top, inputs and outputs). Returns the names
        that were given, for the caller to free."""
        given = self.names.give_nodes(
            n for n in graph.nodes
            if n.op != "Constant" or id(n.attributes["value"]) not in self.shared
        )  # fmt: skip
        node_names = unique_node_names(graph)
        outputs = frozenset(graph.outputs)
        for node in graph.nodes:
            if node.op != "Constant":
                written = proto.node.add()
                self.node(node, written, node_names.get(node, ""))
                self._value_info(node, written, outputs, proto)
        write_note(self.notes, self.path, proto)
        if body is None:
            self._boundary(graph, proto)
        return given

    def _value_info(
        self, node: Node, written: onnx.NodeProto, outputs: Set[Value], proto: onnx.GraphProto
    ) -> None:
        """Writes the types of a node's outputs: all of them, or the types that the ONNX file of
        another tool had. Outputs of unknown operators always get a type. So do outputs in bodies
        of a model from IR, because nothing else gives their types."""
        needed = (bool(node.bodies) and self.source.format != "onnx") or operator(node.op) is None
        if not (needed or self.every or self.notes):
            return
        by_name = {self.names.of[v]: v for v in node.outputs if v not in outputs}
        for name in written.output:
            value = by_name.get(name)
            if value is None:
                continue
            known = self.every and value.shape is not None
            if needed or known or "value_info" in self.notes.get(within(self.path, name), {}):
                info = self.info(name, value)
                if info.type.WhichOneof("value"):
                    proto.value_info.append(info)

    def info(self, name: str, value: Value) -> onnx.ValueInfoProto:
        """The type of a value, with the notes of its source."""
        info = onnx.ValueInfoProto(name=name)
        if not self.notes:
            write_type(value.type, info.type)
            return info
        path = within(self.path, name)
        write_type(as_declared(value.type, self.notes.get(path, {})), info.type)
        write_note(self.notes, path, info)
        return info

    def initializers(self, graph: Graph, proto: onnx.GraphProto) -> None:
        """Writes the used constants of a graph. They keep the order of an ONNX file. Constants from
        IR are in the order of use, because their order in an IR has no meaning."""
        constants = {n.outputs[0]: n for n in graph.nodes if n.op == "Constant"}
        used = [value for value in constants if value in self.used]
        if self.source.format != "onnx":
            used.sort(key=self.used.__getitem__)
        for value in used:
            self._initializer(proto, self.names.of[value], constants[value].attributes["value"])

    def _boundary(self, graph: Graph, proto: onnx.GraphProto) -> None:
        for value in graph.inputs:
            name = self.names.of[value]
            proto.input.append(self.info(name, value))
            tensor = self.source.defaults.get(value)
            if tensor is not None:
                self._initializer(proto, name, tensor)
        seen: set[str] = set()
        for index, value in enumerate(graph.outputs):
            wish = graph.output_names[index] if index < len(graph.output_names) else ""
            name = self.name_of(value)
            renamed = wish and name != wish and not self.names.is_taken(wish)
            tensor = value.constant
            hoisted = tensor is not None and id(tensor) in self.shared
            if renamed or hoisted or name in seen:
                name = self.identity(value, proto, wish or f"output_{index}")
            seen.add(name)
            proto.output.append(self.info(name, value))
        self.initializers(graph, proto)

    def identity(self, value: Value, proto: onnx.GraphProto, wish: str) -> str:
        """A copy of a value under a name of its own."""
        node = proto.node.add()
        node.op_type = "Identity"
        node.input.append(self.name_of(value))
        name = self.names.fresh(wish)
        node.output.append(name)
        return name

    def _copied(self, value: Value, otherwise: str) -> str:
        """A name for a copy of a value: one that it has and nothing is called by."""
        free = (name for name in value.names[1:] if not self.names.is_taken(name))
        return next(free, value.name or otherwise)

    def _initializer(self, proto: onnx.GraphProto, name: str, tensor: Tensor) -> None:
        if self.external is not None and self.external.takes(tensor):
            self.external.reference(tensor, proto.initializer.add(name=name))
        elif self.stream and tensor.element is not STRING and tensor.nbytes >= LARGE:
            self.streamed.append((name, tensor))
        else:
            write_tensor(tensor, proto.initializer.add(name=name))

    def node(self, node: Node, proto: onnx.NodeProto, name: str) -> None:
        """Writes one node."""
        if name:
            proto.name = name
        if node.op == "If":
            self._if(node, proto)
        elif node.op == "Loop":
            write_loop(self, node, proto)
        else:
            self._plain(node, proto)
        extras = node.extras or {}
        if "doc_string" in extras:
            proto.doc_string = extras["doc_string"]
        for key, text in extras.get("metadata_props", {}).items():
            proto.metadata_props.add(key=key, value=text)
        if self.notes and proto.output:
            place = within(self.path, proto.output[0], NODE)
            write_note(self.notes, place, proto)
            write_hints(self.notes, place, proto)

    def _plain(self, node: Node, proto: onnx.NodeProto) -> None:
        spelling, why = choose(node, self.target)
        if spelling is not None:
            write_node(node, spelling, self.name_of, proto)
            version = int(spelling.version) if spelling.domain else self.target.opset
            leave_out_defaults(proto, version)
            if spelling.domain:
                known = self.source.opsets.get(spelling.domain, 0)
                new = known == 0 or self.source.format != "onnx"
                needed = version if new else oldest(node)
                written = self.domains.get(spelling.domain, 0)
                self.domains[spelling.domain] = max(needed, written, known)
        elif self._is_known(node):
            self._unknown(node, proto)
        else:
            path = " / ".join([*self.where, repr(node)])
            raise UnsupportedError(str(self.target), [Unsupported(node.op, path, why)])
        self._outputs(node, proto)

    def _outputs(self, node: Node, proto: onnx.NodeProto) -> None:
        """Names a node's outputs, except optional ones that nobody uses, because an engine would
        compute every output with a name."""
        names = [self.names.of[v] for v in node.outputs]
        if len(names) > 1:
            declared = signature(proto.op_type, self.target.opset, proto.domain)
            for index, value in enumerate(node.outputs):
                optional = declared is None or index in declared.optional_outputs
                if optional and not value.names and value not in self.consumed:
                    names[index] = ""
            while len(names) > 1 and not names[-1] and declared is not None:
                names.pop()
        proto.output.extend(names)

    @cached_property
    def consumed(self) -> set[Value]:
        """The values that a node or a graph's outputs take."""
        graph = self.source.graph
        taken = set(graph.outputs)
        for node in graph.walk():
            taken.update(v for v in node.inputs if v is not None)
            for body in node.bodies:
                taken.update(body.graph.outputs)
        return taken

    def _is_known(self, node: Node) -> bool:
        """Whether an operator that the vocabulary lacks is one that the model may have."""
        domain, separator, _ = node.op.partition("::")
        return bool(separator) and (self.source.format == "onnx" or domain in self.source.opsets)

    def _unknown(self, node: Node, proto: onnx.NodeProto) -> None:
        """An ONNX operator that the vocabulary lacks, written as it was read."""
        domain, _, proto.op_type = node.op.partition("::")
        proto.domain = domain
        self.domains[domain] = self.source.opsets[domain]
        proto.input.extend("" if v is None else self.name_of(v) for v in node.inputs)
        for key, value in node.attributes.items():
            write_attribute(proto, key, value, None)

    def _if(self, node: Node, proto: onnx.NodeProto) -> None:
        proto.op_type = "If"
        condition = node.inputs[0]
        assert condition is not None
        proto.input.append(self.name_of(condition))
        proto.output.extend(self.names.of[v] for v in node.outputs)
        for key, body in node.roles():
            attribute = proto.attribute.add()
            attribute.name = key
            attribute.type = onnx.AttributeProto.GRAPH
            order: list[Value] = [Value()] * len(node.outputs)
            for value, port in body.exits():
                assert isinstance(port, Yield) and port.output is not None
                order[port.output] = value
            self.body(node, body, attribute.g, order, [], (proto.output[0], key))

    def body(
        self,
        node: Node,
        body: Body,
        proto: onnx.GraphProto,
        outputs: list[Value],
        inputs: list[Value],
        place: tuple[str, str],
    ) -> None:
        """Writes a body with `outputs` in this order. The node gives it `inputs`; all other inputs
        are captures. Its `place` is the node's first output, and the attribute."""
        self.where.append(f"{node!r}")
        outside = self.path
        if self.notes:
            self.path = within(outside, *place)
        for port in body.inputs:
            if isinstance(port, Invariant):
                outer = node.inputs[port.input]
                assert outer is not None
                self.used.setdefault(outer, len(self.used))
        self.names.enter(body, node.inputs)
        proto.name = body.graph.name or "body"
        given = []
        for value in inputs:
            if value not in self.names.of:
                given.append(self.names.give(value, value.name or "input"))
            proto.input.append(self.info(self.names.of[value], value))
        given += self._graph(body.graph, proto, body)
        own = {v for n in body.graph.nodes if n.op != "Constant" for v in n.outputs}
        seen: set[Value] = set()
        for index, value in enumerate(outputs):
            if value in own and value not in seen:
                name = self.name_of(value)
                seen.add(value)
            else:
                name = self.identity(value, proto, self._copied(value, f"output_{index}"))
                given.append(name)
            proto.output.append(self.info(name, value))
        self.initializers(body.graph, proto)
        self.names.leave(given)
        self.where.pop()
        self.path = outside


def check_opset(opset: int) -> None:
    """Raises UsageError for an operator set that cannot be written."""
    newest = onnx.defs.onnx_opset_version()
    if not 11 <= opset <= newest:
        raise UsageError(
            f"operator set {opset} cannot be written; choose 11 to {newest}, which is the newest "
            f"of the installed onnx {onnx.__version__}"
        )
