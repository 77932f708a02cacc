"""Between AttributeProto and Python values."""

from typing import Any

import onnx

from bridge.errors import InvalidModelError
from bridge.neutral.tensor import Tensor
from bridge.neutral.types import BY_ONNX, Element
from bridge.onnx_format.external import ModelFiles
from bridge.onnx_format.tensors import read_sparse, read_tensor, write_tensor
from bridge.onnx_format.type_protos import read_type, write_type
from bridge.vocabulary import SpelledAttribute, Spelling

_A = onnx.AttributeProto
_PLAIN = (_A.INT, _A.FLOAT, _A.STRING, _A.INTS, _A.TENSOR)
_LISTS = (_A.FLOATS, _A.STRINGS)


def read_attribute(  # noqa: C901 (one case for each type)
    proto: onnx.AttributeProto, files: ModelFiles, where: str
) -> Any:
    """int, float, str, Tensor, Type, or a tuple of these; a graph stays a GraphProto."""
    match proto.type:
        case _A.INT:
            return proto.i
        case _A.FLOAT:
            return proto.f
        case _A.STRING:
            return proto.s.decode("utf-8", "surrogateescape")
        case _A.INTS:
            return tuple(proto.ints)
        case _A.FLOATS:
            return tuple(proto.floats)
        case _A.STRINGS:
            return tuple(s.decode("utf-8", "surrogateescape") for s in proto.strings)
        case _A.TENSOR:
            return read_tensor(proto.t, files, f"{where}.{proto.name}")
        case _A.SPARSE_TENSOR:
            return read_sparse(proto.sparse_tensor, files, f"{where}.{proto.name}")
        case _A.TYPE_PROTO:
            return read_type(proto.tp)
        case _A.GRAPH:
            return proto.g
    kind = _A.AttributeType.Name(proto.type)
    raise InvalidModelError(f"{where}: its attribute {proto.name} is {kind}, which is not known")


def require_kind(proto: onnx.AttributeProto, type: int, where: str) -> None:
    """Refuses an attribute of another type than its schema's."""
    if proto.type != type:
        have, wanted = (_A.AttributeType.Name(each) for each in (proto.type, type))
        raise InvalidModelError(f"{where}: its attribute {proto.name} is {have}, not {wanted}")


def keep_attribute(proto: onnx.AttributeProto, files: ModelFiles, where: str) -> Any:
    """The attribute of an operator outside the vocabulary: its value, or the whole attribute if the
    value is not enough (an empty list has no element type, a sparse tensor would become dense)."""
    if proto.type in _PLAIN or (proto.type in _LISTS and (proto.floats or proto.strings)):
        return read_attribute(proto, files, where)
    kept = _A()
    kept.CopyFrom(proto)
    sparse = (kept.sparse_tensor, *kept.sparse_tensors)
    parts = (part for tensor in sparse for part in (tensor.values, tensor.indices))
    for tensor in (*kept.tensors, *parts):
        # The reference would mean another file when the model is written.
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            embedded = onnx.TensorProto(name=tensor.name)
            write_tensor(read_tensor(tensor, files, f"{where}.{proto.name}"), embedded)
            tensor.CopyFrom(embedded)
    return kept


def neutral_attributes(spelling: Spelling, raw: dict[str, Any]) -> dict[str, Any]:
    """`raw` with bools and elements for the attributes that the row types so. A number other than 0
    and 1 stays, and is a fault: some engines read it as true, others as false."""
    if not raw:
        return raw
    kinds: dict[str, str] = {}
    for spelled in (*spelling.attributes.values(), *spelling.as_attributes.values()):
        if spelled.type in ("bool", "element"):
            kinds[spelled.names[0]] = spelled.type
    if not kinds:
        return raw
    result = dict(raw)
    for name, kind in kinds.items():
        if name in result:
            value = result[name]
            if kind == "element":
                result[name] = BY_ONNX.get(value)
            elif value in (0, 1):
                result[name] = bool(value)
    return result


def write_attribute(node: onnx.NodeProto, name: str, value: Any, kind: str | None) -> None:
    """Appends attribute `name` to the node; `kind` is the row's type, None to go by the value."""
    proto = node.attribute.add()
    if isinstance(value, onnx.AttributeProto):
        proto.CopyFrom(value)
        return
    proto.name = name
    if isinstance(value, Element):
        value = value.onnx or 0
    if isinstance(value, Tensor):
        proto.type = _A.TENSOR
        write_tensor(value, proto.t)
    elif isinstance(value, str):
        proto.type = _A.STRING
        proto.s = value.encode("utf-8", "surrogateescape")
    elif kind == "float" or (kind is None and isinstance(value, float)):
        proto.type = _A.FLOAT
        proto.f = float(value)
    elif isinstance(value, int):
        proto.type = _A.INT
        proto.i = int(value)
    elif isinstance(value, tuple | list):
        _write_list(proto, value, kind)
    else:
        proto.type = _A.TYPE_PROTO
        write_type(value, proto.tp)


def _write_list(proto: onnx.AttributeProto, value: Any, kind: str | None) -> None:
    if kind == "strings" or (value and isinstance(value[0], str)):
        proto.type = _A.STRINGS
        proto.strings.extend(s.encode("utf-8", "surrogateescape") for s in value)
    elif kind == "floats" or (value and isinstance(value[0], float)):
        proto.type = _A.FLOATS
        proto.floats.extend(value)
    else:
        proto.type = _A.INTS
        proto.ints.extend(int(v) for v in value)


def kinds_of(spelling: Spelling) -> dict[str, str]:
    """The row's attribute types by the format's names."""
    spelled: list[SpelledAttribute] = [
        *spelling.attributes.values(),
        *spelling.as_attributes.values(),
    ]
    return {name: s.type for s in spelled for name in s.names}
