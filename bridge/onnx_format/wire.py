"""The protobuf wire format of an ONNX file, as far as large tensors need it.

Reading: a copy of the file without the bytes of its large tensors, which become references to
where they are. Writing: the message first, then the large tensors, streamed. So a model's weights
never pass through protobuf. Field numbers are those of `onnx.proto`.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

import onnx

from bridge.neutral.storage import RangeCopier
from bridge.neutral.tensor import FileRange, Tensor

LARGE = 1 << 16
"""Bytes from which on a tensor is left in its file."""

SELF = "\0"
"""The location of a tensor whose bytes are in the model file itself."""

_MODEL, _GRAPH, _NODE, _ATTRIBUTE, _TENSOR = range(5)
_NESTED: dict[int, dict[int, int]] = {
    _MODEL: {7: _GRAPH},
    _GRAPH: {1: _NODE, 5: _TENSOR},
    _NODE: {5: _ATTRIBUTE},
    _ATTRIBUTE: {5: _TENSOR, 6: _GRAPH},
}
_RAW_DATA = 9
_LENGTH_DELIMITED = 2


class _Malformed(Exception):
    """Not the wire format; protobuf's own parser says so better."""


def read_skeleton(path: Path) -> bytes:
    """The file's bytes, with each tensor of at least LARGE bytes of `raw_data` made an external
    one at location SELF."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        if size < LARGE:
            file.seek(0)
            return file.read()
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                pieces = _shrink(data, 0, size, _MODEL)
            except (_Malformed, IndexError):
                pieces = None
            return data[:] if pieces is None else b"".join(pieces)


def _varint(data: mmap.mmap, at: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, at
        shift += 7
        if shift > 63:
            raise _Malformed


def _encode(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _shrink(data: mmap.mmap, start: int, end: int, kind: int) -> list[bytes] | None:
    """The message in `data[start:end]` without its large tensors; None where it has none."""
    nested = _NESTED.get(kind, {})
    pieces: list[bytes] = []
    kept = at = start
    while at < end:
        begin = at
        tag, at = _varint(data, at)
        wire = tag & 7
        if wire == _LENGTH_DELIMITED:
            length, at = _varint(data, at)
            if at + length > end:
                raise _Malformed
            if length >= LARGE:
                replaced = _replace(data, at, length, tag >> 3, kind, nested)
                if replaced is not None:
                    pieces += [data[kept:begin], *replaced]
                    kept = at + length
            at += length
        elif wire == 0:
            _, at = _varint(data, at)
        elif wire == 5:
            at += 4
        elif wire == 1:
            at += 8
        else:
            raise _Malformed
    if not pieces:
        return None
    pieces.append(data[kept:end])
    return pieces


def _replace(
    data: mmap.mmap, at: int, length: int, field: int, kind: int, nested: dict[int, int]
) -> list[bytes] | None:
    """What takes the place of a large field; None where it stays."""
    if kind == _TENSOR and field == _RAW_DATA:
        reference = onnx.TensorProto(data_location=onnx.TensorProto.EXTERNAL)
        for key, value in (("location", SELF), ("offset", at), ("length", length)):
            reference.external_data.add(key=key, value=str(value))
        return [reference.SerializeToString()]
    if field not in nested:
        return None
    inner = _shrink(data, at, at + length, nested[field])
    if inner is None:
        return None
    tag = _encode(field << 3 | _LENGTH_DELIMITED)
    return [tag, _encode(sum(map(len, inner))), *inner]


def write_streamed(
    proto: onnx.ModelProto, tensors: Iterable[tuple[str, Tensor]], path: Path
) -> None:
    """Writes a model whose graph has, beside its own, the initializers `tensors`, which are
    copied from where they are."""
    graph = proto.graph.SerializeToString(deterministic=True)
    proto.ClearField("graph")
    heads: list[tuple[bytes, Tensor]] = []
    total = len(graph)
    for name, tensor in tensors:
        message = onnx.TensorProto(name=name, data_type=tensor.element.onnx, dims=tensor.shape)
        head = message.SerializeToString(deterministic=True)
        head += _encode(_RAW_DATA << 3 | _LENGTH_DELIMITED) + _encode(tensor.nbytes)
        size = len(head) + tensor.nbytes
        heads.append((_encode(5 << 3 | _LENGTH_DELIMITED) + _encode(size) + head, tensor))
        total += len(heads[-1][0]) + tensor.nbytes
    with path.open("wb") as file, RangeCopier(file) as copier:
        file.write(proto.SerializeToString(deterministic=True))
        file.write(_encode(7 << 3 | _LENGTH_DELIMITED) + _encode(total) + graph)
        for head, tensor in heads:
            file.write(head)
            copy_tensor(tensor, file, copier)


def copy_tensor(tensor: Tensor, file: BinaryIO, copier: RangeCopier) -> None:
    """Appends the packed bytes of a tensor to a file."""
    if isinstance(tensor.source, FileRange):
        copier.copy(tensor.source)
    else:
        for piece in tensor.chunks():
            file.write(piece)
