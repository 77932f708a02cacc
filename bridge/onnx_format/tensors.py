"""Between TensorProto and neutral tensors."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from bridge.errors import InvalidModelError, Unsupported, UnsupportedError
from bridge.neutral.tensor import FileRange, Tensor, pack
from bridge.neutral.types import BY_ONNX, STRING, Element
from bridge.onnx_format.wire import SELF

_FIELDS = {
    "f32": ("float_data", "float32"), "f64": ("double_data", "float64"),
    "i64": ("int64_data", "int64"), "u64": ("uint64_data", "uint64"),
    "u32": ("uint64_data", "uint64"), "c64": ("float_data", "float32"),
    "c128": ("double_data", "float64"),
}  # fmt: skip


def read_tensor(proto: onnx.TensorProto, file: Path | None, where: str) -> Tensor:
    """The tensor, without copying its bytes: they stay in the message, in the model `file`, or in
    an external file beside it."""
    element = BY_ONNX.get(proto.data_type)
    if element is None:
        raise InvalidModelError(f"{where}: element type {proto.data_type} is not known")
    shape = tuple(proto.dims)
    if any(dim < 0 for dim in shape):
        raise InvalidModelError(f"{where}: has a negative dimension {shape}")
    if proto.data_location == onnx.TensorProto.EXTERNAL:
        return _external(proto, element, shape, file, where)
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
    return tensor


def _expect(count: int, shape: tuple[int, ...], where: str) -> None:
    if count != int(np.prod(shape, dtype=np.int64)):
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
    file: Path | None,
    where: str,
) -> Tensor:
    entries = {entry.key: entry.value for entry in proto.external_data}
    location = entries.get("location", "")
    if not location:
        raise InvalidModelError(f"{where}: is external but names no file")
    if file is None:
        raise InvalidModelError(
            f"{where}: its data is in the external file {location}; give the model as a path, or "
            "load the external data first"
        )
    directory = file.parent
    path = file if location == SELF else Path(os.path.normpath(directory / location))
    inside = Path(os.path.relpath(path, directory)).parts[:1] != ("..",)
    if os.path.isabs(location) or "\0" in location.removeprefix(SELF) or not inside:
        raise InvalidModelError(f"{where}: the external file {location} is outside {directory}")
    tensor = Tensor(element, shape, b"")
    offset = _number(entries, "offset", where)
    length = _number(entries, "length", where) or tensor.nbytes
    if length < tensor.nbytes:
        raise InvalidModelError(
            f"{where}: {element}{list(shape)} needs {tensor.nbytes} bytes but has {length}"
        )
    source = FileRange(str(path), offset, tensor.nbytes)
    try:
        source.check()
    except InvalidModelError as error:
        raise InvalidModelError(f"{where}: its external data is missing: {error}") from error
    tensor.source = source
    return tensor


def _number(entries: dict[str, str], key: str, where: str) -> int:
    text = entries.get(key, "0")
    if not text.isdecimal():
        raise InvalidModelError(f'{where}: the {key} of its external data is "{text}", no number')
    return int(text)


def read_sparse(proto: onnx.SparseTensorProto, file: Path | None, where: str) -> Tensor:
    """A sparse tensor, made dense (ONNX: indices are linear, 1-D, or one row per value, 2-D)."""
    values = read_tensor(proto.values, file, where)
    indices = read_tensor(proto.indices, file, where).array()
    shape = tuple(proto.dims)
    dense = np.zeros(shape, values.element.dtype)
    if indices.ndim == 1:
        dense.reshape(-1)[indices] = values.array()
    else:
        dense[tuple(indices.T)] = values.array()
    return Tensor(values.element, shape, dense)


def write_tensor(tensor: Tensor, proto: onnx.TensorProto) -> None:
    """Fills `proto` (but for its name) with the tensor's bytes embedded."""
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
    """Fills `proto` (but for its name) with a reference to `nbytes` at `offset` of `location`."""
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
