"""Between TypeProto and neutral types."""

import onnx

from bridge.errors import InvalidModelError
from bridge.neutral.types import (
    ANY,
    BY_ONNX,
    UNKNOWN,
    ContainerType,
    Dim,
    ForeignType,
    OptionalType,
    SequenceType,
    Shape,
    TensorType,
    Type,
)


def read_type(proto: onnx.TypeProto) -> Type:
    """The neutral type; UNKNOWN if the proto has none."""
    kind = proto.WhichOneof("value")
    if kind == "tensor_type":
        tensor = proto.tensor_type
        return TensorType(BY_ONNX.get(tensor.elem_type), _read_shape(tensor))
    if kind == "sequence_type":
        return SequenceType(read_type(proto.sequence_type.elem_type))
    if kind == "optional_type":
        return OptionalType(read_type(proto.optional_type.elem_type))
    if kind is None:
        return UNKNOWN
    if kind == "map_type":
        key = BY_ONNX.get(proto.map_type.key_type)
        name = f"map({key or '?'},{read_type(proto.map_type.value_type)})"
    else:
        name = kind.removesuffix("_type")
    return ForeignType(name, proto.SerializeToString(deterministic=True))


def require_type(type: Type, where: str) -> None:
    """Raises InvalidModelError if a value has no type or no element type."""
    while isinstance(type, ContainerType):
        type = type.item
    if isinstance(type, TensorType) and type.element is None:
        raise InvalidModelError(f"{where}: has no type, or an unknown element type")


_NO_NAMES = ("", "?", "-1", "*", "None")
"""A name that some tools write for a dimension without one: two such need not be equal."""


def _read_shape(tensor: onnx.TypeProto.Tensor) -> Shape:
    if not tensor.HasField("shape"):
        return None
    dims: list[Dim] = []
    for dim in tensor.shape.dim[:]:
        kind = dim.WhichOneof("value")
        if kind == "dim_value" and dim.dim_value >= 0:
            dims.append(dim.dim_value)
        elif kind == "dim_param" and dim.dim_param not in _NO_NAMES:
            dims.append(dim.dim_param)
        else:
            dims.append(ANY)
    return tuple(dims)


def write_type(type: Type, proto: onnx.TypeProto) -> None:
    """Fills `proto`; leaves it empty if the element type is unknown."""
    if isinstance(type, SequenceType):
        proto.sequence_type.SetInParent()
        write_type(type.item, proto.sequence_type.elem_type)
        return
    if isinstance(type, OptionalType):
        proto.optional_type.SetInParent()
        write_type(type.item, proto.optional_type.elem_type)
        return
    if isinstance(type, ForeignType):
        proto.ParseFromString(type.spelled)
        return
    if type.element is None or type.element.onnx is None:
        return
    proto.tensor_type.elem_type = type.element.onnx
    if type.shape is None:
        return
    shape = proto.tensor_type.shape
    shape.SetInParent()
    for dim in type.shape:
        added = shape.dim.add()
        if isinstance(dim, int):
            added.dim_value = dim
        elif isinstance(dim, str):
            added.dim_param = dim
