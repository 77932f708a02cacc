"""The protobuf wire format of an ONNX file, as far as large tensors need it.

Reading makes a copy of the file without the bytes of its large tensors; references to their places
replace them. Writing puts the message first, then streams the large tensors. So a model's weights
never pass through protobuf. Field numbers are from `onnx.proto`.
"""

import mmap
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import onnx

from bridge.errors import InvalidModelError
from bridge.limits import budget
from bridge.neutral.storage import RangeCopier
from bridge.neutral.tensor import FileRange, Tensor

LARGE = 1 << 16
"""The smallest number of bytes for which a tensor stays in its file."""

SELF = f"\0{os.urandom(8).hex()}"
"""The location of a tensor whose bytes are in the model file itself, drawn so that no model can
name it."""

MODEL, GRAPH, NODE, ATTRIBUTE, TENSOR, FUNCTION = range(6)
NESTED: dict[int, dict[int, int]] = {
    MODEL: {7: GRAPH, 25: FUNCTION},
    FUNCTION: {7: NODE, 11: ATTRIBUTE},
    GRAPH: {1: NODE, 5: TENSOR},
    NODE: {5: ATTRIBUTE},
    ATTRIBUTE: {5: TENSOR, 6: GRAPH},
}
"""The fields of each message that hold another one."""

RAW_DATA = 9
LENGTH_DELIMITED = 2

_NUMBERS = (7 << 3 | 5, 8 << 3)
"""The tags of `floats` and `ints` of an attribute, of which a tree ensemble has millions."""

Data = bytes | mmap.mmap


def read_skeleton(path: Path, where: str) -> bytes:
    """The file's bytes. Each tensor with at least LARGE bytes of `raw_data` becomes an external
    tensor at location SELF. InvalidModelError if it is no such file, LimitError if it has too many
    fields or too deeply nested graphs."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        if size < LARGE:
            file.seek(0)
            return file.read()
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                pieces = _shrink(Fields(data, where), 0, size, MODEL, 0)
            except (ValueError, IndexError):
                raise InvalidModelError(
                    f"{where}: is not an ONNX model, or is truncated ({size} bytes)"
                ) from None
            return data[:] if pieces is None else b"".join(pieces)


class Fields:
    """Goes through the messages in some data, as long as they do not have too many fields."""

    def __init__(self, data: Data, where: str) -> None:
        self.data = data
        self.where = where
        self.count = 0
        self.most = budget().limits.elements

    def of(  # noqa: C901 (the hot loop of reading)
        self, start: int, end: int
    ) -> Iterator[tuple[int, int, int, int]]:
        """The length-delimited fields of the message in `data[start:end]`: number, start of the
        field, start of its content, end of both. None follow the first number of an attribute that
        lists numbers. ValueError or IndexError if it is no message."""
        data, at = self.data, start
        while at < end:
            begin = at
            self.count += 1
            if self.count > self.most:
                budget().elements(self.count, self.where)
            tag = data[at]
            at += 1
            if tag >= 0x80:
                tag, at = _varint(data, begin)
            wire = tag & 7
            if wire == LENGTH_DELIMITED:
                length = data[at]
                if length < 0x80:
                    at += 1
                else:
                    length, at = _varint(data, at)
                if at + length > end:
                    raise ValueError("a field is longer than its message")
                if tag < 8:
                    raise ValueError("there is no field 0")
                yield tag >> 3, begin, at, at + length
                at += length
            elif tag < 8:
                raise ValueError("there is no field 0")
            elif tag in _NUMBERS:
                return
            elif wire == 0:
                _, at = _varint(data, at)
            elif wire in (1, 5):
                at += 8 if wire == 1 else 4
            else:
                raise ValueError(f"wire type {wire}")


def _varint(data: Data, at: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, at
        shift += 7
        if shift > 63:
            raise ValueError("a varint is too long")


def encode(number: int) -> bytes:
    """A varint."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _shrink(fields: Fields, start: int, end: int, kind: int, depth: int) -> list[bytes] | None:
    """The message in `data[start:end]` without its large tensors; None if it has none. It lies
    in `depth` graphs."""
    data = fields.data
    pieces: list[bytes] = []
    last: list[bytes] = []
    kept = start
    for field, begin, at, stop in fields.of(start, end):
        if stop - at < LARGE:
            continue
        replaced = _replace(fields, at, stop, field, kind, depth)
        if replaced is None:
            continue
        pieces.append(data[kept:begin])
        kept = stop
        # In a tensor, the new fields go last. If a field stands there twice, the last one counts,
        # and many tensors say that their data are not external.
        (last if kind == TENSOR else pieces).extend(replaced)
    if not pieces:
        return None
    return [*pieces, data[kept:end], *last]


def _replace(
    fields: Fields, at: int, stop: int, field: int, kind: int, depth: int
) -> list[bytes] | None:
    """The replacement of a large field; None if the field stays."""
    if kind == TENSOR and field == RAW_DATA:
        reference = onnx.TensorProto(data_location=onnx.TensorProto.EXTERNAL)
        for key, value in (("location", SELF), ("offset", at), ("length", stop - at)):
            reference.external_data.add(key=key, value=str(value))
        return [reference.SerializeToString()]
    inner_kind = NESTED.get(kind, {}).get(field)
    if inner_kind is None:
        return None
    if inner_kind == GRAPH:
        depth += 1
        budget().graph(depth - 1, fields.where)
    inner = _shrink(fields, at, stop, inner_kind, depth)
    if inner is None:
        return None
    tag = encode(field << 3 | LENGTH_DELIMITED)
    return [tag, encode(sum(map(len, inner))), *inner]


def write_streamed(
    proto: onnx.ModelProto, tensors: Iterable[tuple[str, Tensor]], path: Path
) -> None:
    """Writes a model whose graph has, beside its own, the initializers `tensors`, which are copied
    from their files or memory."""
    graph = proto.graph.SerializeToString(deterministic=True)
    proto.ClearField("graph")
    heads: list[tuple[bytes, Tensor]] = []
    total = len(graph)
    for name, tensor in tensors:
        message = onnx.TensorProto(name=name, data_type=tensor.element.onnx, dims=tensor.shape)
        head = message.SerializeToString(deterministic=True)
        head += encode(RAW_DATA << 3 | LENGTH_DELIMITED) + encode(tensor.nbytes)
        size = len(head) + tensor.nbytes
        heads.append((encode(5 << 3 | LENGTH_DELIMITED) + encode(size) + head, tensor))
        total += len(heads[-1][0]) + tensor.nbytes
    with path.open("wb") as file, RangeCopier(file) as copier:
        file.write(proto.SerializeToString(deterministic=True))
        file.write(encode(7 << 3 | LENGTH_DELIMITED) + encode(total) + graph)
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
