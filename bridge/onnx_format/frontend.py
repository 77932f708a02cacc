"""ONNX → neutral graph: nodes in their newest meaning, captures made explicit ports."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError

from bridge.errors import InvalidModelError, Unsupported, UnsupportedError
from bridge.files import TEXT_SUFFIXES
from bridge.limits import budget
from bridge.neutral.builder import Builder
from bridge.neutral.graph import Graph, Model, Node, Value
from bridge.neutral.signature import impropriety
from bridge.neutral.symbols import mark_shared_symbols
from bridge.neutral.tensor import Tensor
from bridge.neutral.types import ANY, STRING, UNKNOWN, Type, with_dims
from bridge.onnx_format import text
from bridge.onnx_format.attributes import (
    keep_attribute,
    neutral_attributes,
    read_attribute,
    require_kind,
)
from bridge.onnx_format.control import CONTROL, read_by_function
from bridge.onnx_format.deep import Grafts, parse_deep
from bridge.onnx_format.external import ModelFiles
from bridge.onnx_format.functions import Functions, inline
from bridge.onnx_format.notes import dims_of
from bridge.onnx_format.opsets import IMPLIED, read_opsets
from bridge.onnx_format.order import Unordered, in_order
from bridge.onnx_format.proto_node import ProtoNode, taken_apart
from bridge.onnx_format.scope import Scope
from bridge.onnx_format.signature import leave_out_absent, require_signature, signature
from bridge.onnx_format.survey import Survey, survey
from bridge.onnx_format.tensors import read_sparse, read_tensor
from bridge.onnx_format.type_protos import read_type, require_type
from bridge.onnx_format.wire import read_skeleton
from bridge.operators import Refused, Rule, reader
from bridge.operators.reading import NotedAttributes, Unread, applied, without_effect
from bridge.operators.schemas import attribute_types, schema_defaults, schema_of
from bridge.operators.spelling import fits, takes, unspell
from bridge.vocabulary import Operator, Spelling, onnx_rows

_A = onnx.AttributeProto


def read(source: str | Path | bytes | onnx.ModelProto) -> Model:
    """Reads a model from a file, from the bytes of one, or from a ModelProto.

    External tensors are read from files beside the model; they stay file ranges. Raises
    InvalidModelError if it is no ONNX model or contradicts itself.
    """
    if isinstance(source, onnx.ModelProto):
        return _model(source, ModelFiles(None), Grafts(), "the model", own=False)
    if isinstance(source, bytes):
        return _model(*_parse(source, ModelFiles(None), "the model"), "the model")
    where = str(source)
    path = Path(source).absolute()
    try:
        files = ModelFiles(path)
        if path.suffix.lower() in TEXT_SUFFIXES:
            return _model(text.read_text(path, where), files, Grafts(), where)
        data = read_skeleton(path, where)
    except OSError as error:
        raise InvalidModelError(f"{where}: cannot be read: {error.strerror or error}") from error
    return _model(*_parse(data, files, where), where)


def _parse(
    data: bytes, files: ModelFiles, where: str
) -> tuple[onnx.ModelProto, ModelFiles, Grafts]:
    try:
        return onnx.ModelProto.FromString(data), files, Grafts()
    except DecodeError as error:
        try:
            proto, grafts = parse_deep(data, where)
        except (DecodeError, ValueError, IndexError):
            raise InvalidModelError(
                f"{where}: is not an ONNX model, or is truncated ({len(data)} bytes)"
            ) from error
        return proto, files, grafts


def _model(
    proto: onnx.ModelProto, files: ModelFiles, grafts: Grafts, where: str, own: bool = True
) -> Model:
    _require(proto, where)
    proto, found = survey(proto, grafts, own)
    budget().allow(nodes=found.nodes)
    try:
        model = OnnxReader(proto, files, grafts, found).model()
    except Unordered as unordered:
        model = OnnxReader(proto, files, grafts, found, sorts=True).model()
        model.notes.append(
            f"nodes stand before others that they need, first {unordered.place}; they were sorted"
        )
    model.files = files.stamps
    return model


def _require(proto: onnx.ModelProto, where: str) -> None:
    if not proto.HasField("graph") or not (proto.graph.output or proto.graph.node):
        raise InvalidModelError(f"{where}: is not an ONNX model: it has no graph")
    if not 1 <= proto.ir_version <= onnx.IR_VERSION:
        raise InvalidModelError(
            f"{where}: is of IR version {proto.ir_version or 'unknown'}; the installed "
            f"onnx has 1 to {onnx.IR_VERSION}"
        )
    if not proto.opset_import and proto.ir_version >= 3:
        raise InvalidModelError(f"{where}: does not say which operator set it uses")
    read_opsets(proto.opset_import, where)


class OnnxReader:
    """Reads one ModelProto; one that `sorts` brings nodes into topological order first."""

    def __init__(
        self,
        proto: onnx.ModelProto,
        files: ModelFiles,
        grafts: Grafts | None = None,
        survey: Survey | None = None,
        sorts: bool = False,
    ) -> None:
        self.proto = proto
        self.files = files
        self.grafts = grafts or Grafts()
        self.survey = survey or Survey()
        self.sorts = sorts
        self.functions = Functions(proto.functions)
        self.opsets = read_opsets(proto.opset_import, "the model")
        if proto.ir_version < 3:
            self.opsets.setdefault("", 1)
        self.repeated: list[str] = []
        # Of operators that only functions use, a model need not import the operator set.
        self.written_opsets = {k: v for k, v in self.opsets.items() if k}

    def model(self) -> Model:
        """The whole model."""
        proto = self.proto
        model = Model(Graph(), "onnx", self.opsets.get(""))
        model.opsets = self.written_opsets
        model.metadata = {entry.key: entry.value for entry in proto.metadata_props}
        told = ("producer_name", "producer_version", "domain", "model_version", "doc_string")
        known: Any = {key: found for key in told if (found := getattr(proto, key))}
        known["notes"] = self.survey.notes
        model.extras["onnx"] = known
        scope = Scope(self, Builder([]), self.opsets, "graph")
        scope.extras = self.survey.extras
        graph = self.graph(proto.graph, scope, model)
        model.graph = graph
        for value, name in zip(graph.outputs, graph.output_names, strict=True):
            dims = dims_of(self.survey.types.get(name, UNKNOWN))
            if dims is not None and None not in dims and dims_of(value.type) != dims:
                self.survey.notes.setdefault(name, {})["shape"] = dims
        if self.repeated:
            model.notes.append(
                f"initializers of bodies repeat those around them, first {self.repeated[0]}; they "
                "were taken for the same"
            )
        return model

    def graph(self, proto: onnx.GraphProto, scope: Scope, model: Model | None = None) -> Graph:
        """Reads a graph into `scope`; the inputs of a body are in the scope already. Only the
        top-level graph has a `model`; its initializers may be inputs too."""
        graph = scope.graph
        graph.name = proto.name
        constants: dict[str, Tensor] = {}
        for name, tensor in self._initializers(proto, scope.where):
            if name in constants:
                raise InvalidModelError(f'{scope.where}: two initializers are called "{name}"')
            constants[name] = tensor
        if model is not None:
            self._inputs(proto, scope, model, constants)
        for name, tensor in constants.items():
            if model is not None or not self._is_repeated(name, tensor, scope):
                scope.define(name, scope.builder.tensor(tensor, [name]))
        outputs = proto.output[:]
        types = self.survey.types if model is not None else _types_of(proto)
        scope.declared = {name: self.declared(type) for name, type in types.items()}
        self.nodes(proto.node[:], scope)
        for info in outputs:
            graph.outputs.append(scope.resolve(info.name, "output"))
            if model is not None:
                graph.output_names.append(info.name)
        graph.nodes = scope.builder.nodes
        scope.close()
        return graph

    def _is_repeated(self, name: str, tensor: Tensor, scope: Scope) -> bool:
        """Whether an initializer of a body is one of a graph around it again, as onnxslim writes
        them. InvalidModelError if it has the name of another value: onnxruntime then takes the
        outer one, OpenVINO the inner one."""
        if not scope.sees(name):
            return False
        outer = scope.resolve(name, "an initializer")
        if outer is None or outer.constant is None or not _equal(outer.constant, tensor):
            return False
        self.repeated.append(f'"{name}" in {scope.where}')
        return True

    def _inputs(
        self, proto: onnx.GraphProto, scope: Scope, model: Model, constants: dict[str, Tensor]
    ) -> None:
        """Adds the inputs of the top-level graph. Removes inputs with a default value from
        `constants`."""
        overridable = self.proto.ir_version >= 4
        for info in proto.input:
            if info.name in constants and not overridable:
                continue
            value = Value(read_type(info.type), [info.name])
            require_type(value.type, f'{scope.where} / input "{info.name}"')
            scope.define(info.name, value)
            scope.graph.inputs.append(value)
            if info.name in constants:
                model.defaults[value] = constants.pop(info.name)
        mark_shared_symbols(scope.graph.inputs)

    def _initializers(self, proto: onnx.GraphProto, where: str) -> Any:
        for tensor in proto.initializer:
            yield (
                tensor.name,
                read_tensor(tensor, self.files, f'{where} / initializer "{tensor.name}"'),
            )
        for sparse in proto.sparse_initializer:
            name = sparse.values.name
            yield name, read_sparse(sparse, self.files, f'{where} / initializer "{name}"')

    def declared(self, type: Type) -> Type:
        """What the file declares of a computed value, without its sizes: they may be those of one
        example, or of an input that somebody opened later. What they are is inferred."""
        return with_dims(type, lambda dim: ANY)

    def nodes(self, protos: Sequence[onnx.NodeProto], scope: Scope) -> None:
        """Reads the nodes of a graph or function into `scope`."""
        for proto in in_order(protos, self.grafts, scope.where) if self.sorts else protos:
            self.node(proto, scope)

    def node(self, proto: onnx.NodeProto, scope: Scope) -> None:
        """Reads one node into `scope`."""
        node = taken_apart(proto, scope.where)
        scope.refer(node)
        domain, where = node.domain, node.where
        function = self.functions.get(node)
        if function is not None:
            inline(self, function, node, scope)
            return
        version = scope.opsets.get(domain, IMPLIED.get(domain))
        if version is None:
            raise InvalidModelError(f"{where}: no operator set of {domain or 'ONNX'} is imported")
        require_signature(node, version)
        control = CONTROL.get(node.op_type) if domain == "" else None
        if control is not None and signature(node.op_type, version, domain) is not None:
            control(self, node, scope)
            return
        holds_graph = any(a.type == _A.GRAPH for a in node.attribute)
        if holds_graph and _has_function(node, domain, version):
            read_by_function(self, node, scope)
            return
        leave_out_absent(node, version)
        inputs = [scope.resolve(name, where) if name else None for name in node.input]
        type = node.op_type if domain == "" else f"{domain}::{node.op_type}"
        rule = reader("onnx", type, version)
        spellings = onnx_rows(domain, node.op_type)
        if rule is None and not spellings:
            self.unknown(node, type, inputs, version, scope)
            return
        types = attribute_types(node.op_type, version, domain)
        for a in node.attribute:
            require_kind(a, types.get(a.name, a.type), where)
        raw = NotedAttributes(
            {a.name: read_attribute(a, self.files, where) for a in node.attribute}
        )
        scope.builder.name = node.name
        rows = [row for row in spellings if int(row[1].version) <= version]
        made = Node(type, inputs, [Value() for _ in node.output], raw, (), node.name)
        why = ""
        try:
            if rule is not None and self._by_rule(rule, made, node, version, scope):
                return
            if self._by_row(rows, made, node, version, scope):
                return
        except Unread as unread:
            why = str(unread)
        self.unknown(node, type, inputs, version, scope, why)

    def _by_rule(self, rule: Rule, made: Node, node: ProtoNode, version: int, scope: Scope) -> bool:
        """Reads a node, as it stands in the file, by a rule, if that applies."""
        start = len(scope.builder.nodes)
        try:
            with scope.builder as b:
                result = applied(
                    rule, b, made, lambda: schema_defaults(node.op_type, version, node.domain)
                )
        except Unread:
            del scope.builder.nodes[start:]
            raise
        except Refused as refusal:
            raise InvalidModelError(f"{node.where}: {refusal}") from None
        if result is None:
            return False
        results: list[Value | None] = [result] if isinstance(result, Value) else list(result)
        _require_proper(scope.builder.nodes[start:], node.where)
        scope.bind_results(node, results)
        return True

    def _by_row(
        self,
        rows: Sequence[tuple[Operator, Spelling]],
        made: Node,
        node: ProtoNode,
        version: int,
        scope: Scope,
    ) -> bool:
        """Reads a node by the first of the rows that fits its attributes, if one does."""
        inputs, raw = made.inputs, made.attributes
        scope.builder.name = node.name
        start = len(scope.builder.nodes)
        for operator, spelling in rows:
            attributes = neutral_attributes(spelling, raw)
            if not fits(operator, spelling, attributes):
                continue
            _require_read(made, spelling, version, node.domain)
            outputs, extras = scope.outputs(node), scope.extras_of(node)
            try:
                unspell(
                    scope.builder, operator, spelling, inputs, attributes, outputs, node.name,
                    extras,
                )  # fmt: skip
            except KeyError as error:
                raise InvalidModelError(f"{node.where}: {error.args[0]}") from error
            _require_proper(scope.builder.nodes[start:], node.where)
            scope.bind(node, outputs)
            return True
        return False

    def unknown(
        self,
        node: ProtoNode,
        type: str,
        inputs: list[Value | None],
        version: int,
        scope: Scope,
        unread: str = "",
    ) -> None:
        """Reads a node of an operator that the vocabulary lacks, or with something `unread`, to be
        written as it is."""
        where = node.where
        domain = node.domain
        op = type if domain else f"ai.onnx::{type}"
        why = ""
        graphs = [f'"{a.name}"' for a in node.attribute if a.type in (_A.GRAPH, _A.GRAPHS)]
        if graphs:
            why = (
                f"it holds a graph ({', '.join(graphs)}); Bridge only knows the meaning of "
                "graphs in If, Loop, Scan and operators with a function body; save the graph as a "
                "separate model to convert it"
            )
        elif domain and self.written_opsets.setdefault(domain, version) != version:
            why = (
                f"it is of operator set {version} of {domain}, but a model can import one alone, "
                f"here {self.written_opsets[domain]}"
            )
        if why:
            raise UnsupportedError("any format", [Unsupported(op, where, why)])
        kept = {a.name: keep_attribute(a, self.files, where) for a in node.attribute}
        outputs, extras = scope.outputs(node), scope.extras_of(node)
        if unread:
            extras = {**(extras or {}), "why": unread}
        scope.builder.node(op, inputs, outputs, kept, (), node.name, extras)
        scope.bind(node, outputs)


def _require_read(node: Node, spelling: Spelling, version: int, domain: str) -> None:
    """Raises Unread for an attribute or an input for which a row has no place. A rule that left the
    node to the row may have read an attribute."""
    assert isinstance(node.attributes, NotedAttributes)
    if unread := node.attributes.keys() - spelling.names - node.attributes.read:
        defaults = schema_defaults(spelling.type, version, domain)
        for name in sorted(unread):
            if not without_effect(node.op, name, node.attributes[name], defaults):
                raise Unread(f"attribute `{name}`", node.op)
    if not takes(spelling, len(node.inputs)):
        raise Unread(f"input {len(spelling.inputs)}", node.op)


def _types_of(graph: onnx.GraphProto) -> dict[str, Type]:
    """The declared types of a graph's outputs and inner values, by name."""
    infos = (*graph.value_info[:], *graph.output[:])
    return {info.name: read_type(info.type) for info in infos if info.HasField("type")}


def _require_proper(nodes: Sequence[Node], where: str) -> None:
    """Raises InvalidModelError for an input, output or attribute that the operator does not allow.
    (Wrong shapes are no reason: the node may stand in a branch that never runs.)"""
    for node in nodes:
        if why := impropriety(node):
            raise InvalidModelError(f"{where}: {why}")


def _equal(first: Tensor, second: Tensor) -> bool:
    if (first.element, first.shape) != (second.element, second.shape):
        return False
    if first.element is STRING:
        return np.array_equal(first.array(), second.array())
    return all(a == b for a, b in zip(first.chunks(), second.chunks(), strict=True))


def _has_function(node: ProtoNode, domain: str, version: int) -> bool:
    """Whether the standard makes a function body for the node's types."""
    schema = schema_of(node.op_type, version, domain)
    return schema is not None and schema.has_context_dependent_function
