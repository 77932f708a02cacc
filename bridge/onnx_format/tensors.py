"""Between TensorProto and neutral tensors."""

from typing import Any

import numpy as np
import onnx

from bridge.errors import InvalidModelError, Unsupported, UnsupportedError
from bridge.limits import budget
from bridge.neutral.arrays import zeros
from bridge.neutral.tensor import Tensor, pack
from bridge.neutral.types import BY_ONNX, I64, STRING, Element, size_of
from bridge.onnx_format.external import ModelFiles

_FIELDS = {
    "f32": ("float_data", "float32"), "f64": ("double_data", "float64"),
    "i64": ("int64_data", "int64"), "u64": ("uint64_data", "uint64"),
    "u32": ("uint64_data", "uint64"), "c64": ("float_data", "float32"),
    "c128": ("double_data", "float64"),
}  # fmt: skip


def read_tensor(proto: onnx.TensorProto, files: ModelFiles, where: str) -> Tensor:
    """The tensor, without copying its bytes: they stay in the message, in the model's file, or in
    an external one beside it (`files`)."""
    element = BY_ONNX.get(proto.data_type)
    if element is None:
        raise InvalidModelError(f"{where}: element type {proto.data_type} is not known")
    shape = tuple(proto.dims)
    if any(dim < 0 for dim in shape):
        raise InvalidModelError(f"{where}: has a negative dimension {shape}")
    if proto.data_location == onnx.TensorProto.EXTERNAL:
        return _external(proto, element, shape, files, where)
    if element is STRING:
        strings = [s.decode("utf-8", "surrogateescape") for s in proto.string_data]
        array = np.array(strings, dtype=object)
        _expect(array.size, shape, where)
        return Tensor(element, shape, array.reshape(shape))
    tensor = Tensor(element, shape, b"")
    if proto.HasField("raw_data"):
        data: Any = proto.raw_data
    else:
        data = _from_field(proto, element)
        if len(data) == 0 and tensor.size:
            raise InvalidModelError(f"{where}: has no data for its shape {list(shape)}")
    if len(data) != tensor.nbytes:
        raise InvalidModelError(
            f"{where}: {element}{list(shape)} needs {tensor.nbytes} bytes but has {len(data)}"
        )
    tensor.source = data
    if files.file is None:
        budget().allow(size=tensor.nbytes)
    return tensor


def _expect(count: int, shape: tuple[int, ...], where: str) -> None:
    if count != size_of(shape):
        raise InvalidModelError(f"{where}: holds {count} elements, its shape says {list(shape)}")


def _from_field(proto: onnx.TensorProto, element: Element) -> Any:
    """The packed bytes of a tensor stored in a typed field (`float_data`, `int32_data`, ...)."""
    if element.name in _FIELDS:
        field, dtype = _FIELDS[element.name]
        array = np.array(getattr(proto, field), dtype=dtype)
        if element.name == "u32":
            array = array.astype(np.uint32)
        return array.tobytes()
    array = np.array(proto.int32_data, dtype=np.int32)
    if element.bits < 8:
        # Packed already: each entry of int32_data is one byte of raw_data.
        return array.astype(np.uint8).tobytes()
    return array.astype(f"uint{element.bits}" if element.bits > 8 else "uint8").tobytes()


def _external(
    proto: onnx.TensorProto,
    element: Element,
    shape: tuple[int, ...],
    files: ModelFiles,
    where: str,
) -> Tensor:
    entries = {entry.key: entry.value for entry in proto.external_data}
    location = entries.get("location", "")
    if not location:
        raise InvalidModelError(f"{where}: is external but names no file")
    tensor = Tensor(element, shape, b"")
    offset = _number(entries, "offset", where)
    length = _number(entries, "length", where) or tensor.nbytes
    if length < tensor.nbytes:
        raise InvalidModelError(
            f"{where}: {element}{list(shape)} needs {tensor.nbytes} bytes but has {length}"
        )
    tensor.source = files.range(location, offset, tensor.nbytes, where)
    return tensor


def _number(entries: dict[str, str], key: str, where: str) -> int:
    text = entries.get(key, "0")
    if not text.isdecimal() or len(text) > 20:
        raise InvalidModelError(f'{where}: the {key} of its external data is "{text}", no number')
    return int(text)


def read_sparse(proto: onnx.SparseTensorProto, files: ModelFiles, where: str) -> Tensor:
    """A sparse tensor, made dense (ONNX: indices are linear, 1-D, or one row per value, 2-D)."""
    values = read_tensor(proto.values, files, where)
    indices = read_tensor(proto.indices, files, where)
    shape = tuple(proto.dims)
    if any(dim < 0 for dim in shape):
        raise InvalidModelError(f"{where}: has a negative dimension {shape}")
    count = values.size
    if values.element is STRING or indices.element is not I64 or len(values.shape) != 1 or (
        indices.shape not in ((count,), (count, len(shape)))
    ):  # fmt: skip
        raise InvalidModelError(
            f"{where}: its values {values} and indices {indices} do not fit a sparse tensor"
        )
    places = indices.array()
    most = np.array(shape if places.ndim == 2 else (size_of(shape),), object)
    if count and (places.min() < 0 or bool((places.max(0) >= most).any())):
        raise InvalidModelError(f"{where}: its indices are outside its shape {list(shape)}")
    dense = zeros(shape, values.element.dtype, where)
    if places.ndim == 1:
        dense.reshape(-1)[places] = values.array()
    else:
        dense[tuple(places.T)] = values.array()
    return Tensor(values.element, shape, dense)


def write_tensor(tensor: Tensor, proto: onnx.TensorProto) -> None:
    """Fills `proto`, except its name, with the tensor's bytes embedded."""
    proto.data_type = _onnx_type(tensor)
    proto.dims.extend(tensor.shape)
    if tensor.element is STRING:
        for text in tensor.array().reshape(-1).tolist():
            data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")
            proto.string_data.append(data)
        return
    source = tensor.source
    if isinstance(source, np.ndarray):
        proto.raw_data = pack(source, tensor.element).tobytes()
    else:
        proto.raw_data = source if isinstance(source, bytes) else bytes(tensor.data())


def write_external(tensor: Tensor, proto: onnx.TensorProto, location: str, offset: int) -> None:
    """Fills `proto`, except its name, with a reference to `nbytes` at `offset` of `location`."""
    proto.data_type = _onnx_type(tensor)
    proto.dims.extend(tensor.shape)
    proto.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", offset), ("length", tensor.nbytes)):
        entry = proto.external_data.add()
        entry.key, entry.value = key, str(value)


def _onnx_type(tensor: Tensor) -> int:
    if tensor.element.onnx is None:
        why = f"ONNX has no element type {tensor.element}"
        raise UnsupportedError("ONNX", [Unsupported("Constant", "a constant", why)])
    return tensor.element.onnx
