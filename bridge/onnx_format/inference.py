"""Type inference and function bodies of single nodes by the ONNX standard's own code."""

from collections.abc import Mapping, Sequence

import onnx
import onnx.defs
import onnx.shape_inference

from bridge.neutral.builder import Builder, Target
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.tensor import Tensor
from bridge.neutral.types import ANY, UNKNOWN, TensorType, Type, with_dims
from bridge.onnx_format.functions import expand_function
from bridge.onnx_format.node import write_node
from bridge.onnx_format.tensors import write_tensor
from bridge.onnx_format.type_protos import read_type, write_type
from bridge.operators import NEWEST
from bridge.operators.schemas import schema_of
from bridge.operators.spelling import choose
from bridge.vocabulary import Spelling, has_trait

SMALL = 1024
"""Longest constant that inference is shown; longer ones are never shapes or axes."""


def spelled_node(node: Node) -> tuple[Spelling, onnx.NodeProto, dict[str, Value]] | None:
    """The node in its newest spelling, and its inputs by the names they have there."""
    spelling, _ = choose(node, Target("onnx", onnx.defs.onnx_opset_version()))
    if spelling is None:
        return None
    named: dict[Value, str] = {}
    proto = onnx.NodeProto()
    write_node(node, spelling, lambda value: named.setdefault(value, f"i{len(named)}"), proto)
    proto.output.extend(f"o{i}" for i in range(len(node.outputs)))
    return spelling, proto, {name: value for value, name in named.items()}


def _schema(spelling: Spelling) -> onnx.defs.OpSchema | None:
    newest = onnx.defs.onnx_opset_version()
    version = NEWEST if spelling.domain else min(spelling.until or newest, newest)
    return schema_of(spelling.type, version, spelling.domain)


def _type_proto(value: Value) -> onnx.TypeProto:
    proto = onnx.TypeProto()
    write_type(value.type, proto)
    return proto


def infer_node(node: Node) -> Sequence[Type]:
    """Output types by the newest schema's inference function; () if there is none."""
    spelled = spelled_node(node)
    if spelled is None:
        return ()
    spelling, proto, inputs = spelled
    schema = _schema(spelling)
    if schema is None:
        return ()
    types, data = {}, {}
    for name, value in inputs.items():
        type = _type_proto(value)
        if type.WhichOneof("value") is None:
            continue
        types[name] = type
        array = known_of(value).array if _is_small(value) else None
        if array is not None:
            tensor = onnx.TensorProto()
            write_tensor(Tensor.of(array), tensor)
            data[name] = tensor
    names = [f"o{index}" for index in range(len(node.outputs))]
    found = _inferred(schema, proto, types, data, names)
    dims = (dim for type in types.values() for dim in type.tensor_type.shape.dim)
    if any(map(_has_sizes, found)) and not all(dim.HasField("dim_value") for dim in dims):
        closed = {name: _closed(type) for name, type in types.items()}
        found = _confirmed(found, _inferred(schema, proto, closed, data, names))
    x = node.input(0)
    if found and x is not None and x.shape is not None and has_trait(node.op, "keeps_rank"):
        first, *rest = found
        if isinstance(first, TensorType) and first.shape is None:
            found = [TensorType(first.element, (ANY,) * len(x.shape)), *rest]
    return found


_PROBE = 5040
"""A size that takes the place of all open ones, to confirm what onnx says of them: some of its
functions take them for 0 (Attention). Heads, groups and strides divide it."""


def _inferred(
    schema: onnx.defs.OpSchema,
    proto: onnx.NodeProto,
    types: dict[str, onnx.TypeProto],
    data: dict[str, onnx.TensorProto],
    names: Sequence[str],
) -> list[Type]:
    try:
        result = onnx.shape_inference.infer_node_outputs(schema, proto, types, data)
    except (
        onnx.shape_inference.InferenceError, onnx.checker.ValidationError, RuntimeError,
        KeyError,  # an input without a type
    ):  # fmt: skip
        return []
    return [read_type(result[name]) if name in result else UNKNOWN for name in names]


def _has_sizes(type: Type) -> bool:
    shape = type.shape if isinstance(type, TensorType) else None
    return any(isinstance(dim, int) for dim in shape or ())


def _closed(type: onnx.TypeProto) -> onnx.TypeProto:
    """A type with a size for each open one."""
    closed = onnx.TypeProto()
    closed.CopyFrom(type)
    for dim in closed.tensor_type.shape.dim:
        if not dim.HasField("dim_value"):
            dim.dim_value = _PROBE
    return closed


def _confirmed(found: Sequence[Type], probed: Sequence[Type]) -> list[Type]:
    """The types without the sizes that differ for a closed input. If that does not fit, without
    sizes of 0."""
    if not probed:
        return [with_dims(type, lambda dim: dim or ANY) for type in found]
    return [_agreed(*types) for types in zip(found, probed, strict=True)]


def _agreed(type: Type, probed: Type) -> Type:
    if not (isinstance(type, TensorType) and isinstance(probed, TensorType) and type.shape):
        return type
    if probed.shape is None or len(probed.shape) != len(type.shape):
        return TensorType(type.element)
    pairs = zip(type.shape, probed.shape, strict=True)
    dims = (d if o == (d if isinstance(d, int) else _PROBE) else ANY for d, o in pairs)
    return TensorType(type.element, tuple(dims))


def _is_small(value: Value) -> bool:
    tensor = value.constant
    return value.known_value is not None or (tensor is not None and tensor.size <= SMALL)


def inline_standard_function(builder: Builder, node: Node, where: str) -> list[Value | None] | None:
    """Builds the standard's function body of a node; None if its operator has none."""
    spelled = spelled_node(node)
    schema = None if spelled is None else _schema(spelled[0])
    if spelled is None or schema is None:
        return None
    _, proto, inputs = spelled
    function = _function(schema, proto, inputs)
    if function is None:
        return None
    values = [inputs[name] if name else None for name in proto.input]
    defaults = (a.default_value for a in schema.attributes.values())
    attributes = [*(default for default in defaults if default.name), *proto.attribute]
    return expand_function(builder, function, values, attributes, where, len(node.outputs))


def _function(
    schema: onnx.defs.OpSchema, proto: onnx.NodeProto, inputs: Mapping[str, Value]
) -> onnx.FunctionProto | None:
    """The standard's function body of a node, if its operator has one."""
    if schema.has_context_dependent_function:
        types = [
            _type_proto(inputs[name]).SerializeToString() if name else b"" for name in proto.input
        ]
        data = schema.get_context_dependent_function(proto.SerializeToString(), types)
        function = onnx.FunctionProto()
        function.ParseFromString(data)
        return function if function.node else None
    return schema.function_body if schema.has_function else None
