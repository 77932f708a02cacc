"""Tensors that remember the place of their bytes instead of holding them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from bridge.errors import InvalidModelError
from bridge.neutral.types import STRING, Element, element_of, size_of
from bridge.suggestions import about_short_file

CHUNK = 1 << 22
"""Bytes read at a time when a range is streamed."""


@dataclass(frozen=True)
class FileRange:
    """`length` bytes at `offset` of the file at `path`."""

    path: str
    offset: int
    length: int

    def read(self) -> bytes:
        """The bytes; InvalidModelError if the file lacks them."""
        kept = _kept.get()
        try:
            if kept is not None:
                data = self._read(kept.of(self.path))
            else:
                with open(self.path, "rb") as file:
                    data = self._read(file)
        except OSError as error:
            raise self.unreadable(error) from error
        if len(data) != self.length:
            raise self.unreadable()
        return data

    def _read(self, file: BinaryIO) -> bytes:
        file.seek(self.offset)
        return file.read(self.length)

    def unreadable(self, error: OSError | None = None) -> InvalidModelError:
        """The error for a file that cannot be read, or lacks the range."""
        if error is not None:
            return InvalidModelError(f"{self.path}: cannot be read: {error.strerror}")
        return InvalidModelError(
            f"{self.path}: holds no {self.length} bytes at {self.offset}; "
            + about_short_file(self.path)
        )


class _KeptOpen:
    """The file that was read last, and stays open for the next constant."""

    def __init__(self) -> None:
        self._path = ""
        self._file: BinaryIO | None = None

    def of(self, path: str) -> BinaryIO:
        """The open file at a path."""
        if self._file is None or self._path != path:
            self.close()
            self._path, self._file = path, open(path, "rb")  # noqa: SIM115
        return self._file

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


_kept: ContextVar[_KeptOpen | None] = ContextVar("kept", default=None)


@contextmanager
def opened_once() -> Iterator[None]:
    """Inside, a file is opened once, however many of its constants are read one after another."""
    kept = _KeptOpen()
    token = _kept.set(kept)
    try:
        yield
    finally:
        _kept.reset(token)
        kept.close()


TensorSource = Any
"""A FileRange, an object with the buffer protocol (packed little-endian bytes), an ndarray, or an
object whose `chunks()` makes the packed bytes one piece at a time."""


class Tensor:
    """A constant: `element`, static `shape`, and the place of its bytes.

    Storage is packed and little-endian, as ONNX's `raw_data` and IR's `.bin` have it in common.
    Strings live in an object array. Two constants are the same if the Tensor is the same object.
    """

    __slots__ = ("_array", "element", "shape", "source")

    def __init__(self, element: Element, shape: tuple[int, ...], source: TensorSource) -> None:
        self.element = element
        self.shape = shape
        self.source = source
        self._array: np.ndarray | None = None

    @classmethod
    def of(cls, array: np.ndarray) -> Tensor:
        """A tensor of an array's values, unpacked (`int4` as ml_dtypes.int4 and so on)."""
        return cls(element_of(array.dtype), array.shape, array)

    @property
    def size(self) -> int:
        """Number of elements."""
        return size_of(self.shape)

    @property
    def storage(self) -> object:
        """A key for the bytes, while the tensor lives: equal for tensors that share them."""
        source = self.source
        return source if isinstance(source, FileRange) else id(getattr(source, "obj", source))

    @property
    def nbytes(self) -> int:
        """Bytes in packed storage."""
        return self.element.nbytes(self.size)

    @property
    def is_whole(self) -> bool:
        """Whether the storage has as many elements as the shape, as far as that is known unread."""
        source = self.source
        if isinstance(source, FileRange):
            return source.length == self.nbytes
        if isinstance(source, np.ndarray):
            return source.size == self.size
        if hasattr(source, "chunks"):
            return True
        return memoryview(source).nbytes == self.nbytes

    def array(self) -> np.ndarray:
        """The values, unpacked, with `shape`. Read from the file at the first call, then kept
        while small; read-only."""
        if self._array is not None:
            return self._array
        source = self.source
        if isinstance(source, np.ndarray):
            array = source if source.shape == self.shape else source.reshape(self.shape)
        else:
            data = source if isinstance(source, bytes) else self.data()
            array = unpack(data, self.element, self.size).reshape(self.shape)
        if array.nbytes <= 1 << 16:
            self._array = array
        return array

    def data(self) -> memoryview:
        """The packed little-endian bytes, all at once."""
        source = self.source
        if isinstance(source, FileRange):
            return memoryview(source.read())
        if hasattr(source, "chunks"):
            return memoryview(b"".join(source.chunks()))
        if isinstance(source, np.ndarray):
            return pack(source, self.element).data
        return memoryview(source).cast("B")

    def chunks(self) -> Iterator[memoryview]:
        """The packed bytes, a bounded piece at a time."""
        source = self.source
        if hasattr(source, "chunks"):
            yield from source.chunks()
            return
        if not isinstance(source, FileRange):
            yield self.data()
            return
        start, end = source.offset, source.offset + source.length
        for offset in range(start, end, CHUNK):
            piece = FileRange(source.path, offset, min(CHUNK, end - offset))
            yield memoryview(piece.read())

    def __repr__(self) -> str:
        from bridge.neutral.types import format_shape

        return f"{self.element}{format_shape(self.shape)}"


class GivenTensor(Tensor):
    """A constant that the user gave in place of an input: no weight, however large it is."""

    __slots__ = ()


def are_equal(one: Tensor | None, other: Tensor | None) -> bool:
    """Whether two tensors are there and have one type, shape and content."""
    if one is None or other is None:
        return False
    if (one.element, one.shape, one.nbytes) != (other.element, other.shape, other.nbytes):
        return False
    return one.storage == other.storage or bytes(one.data()) == bytes(other.data())


def unpack(data: Any, element: Element, count: int) -> np.ndarray:
    """`count` elements from packed little-endian bytes, 1-D."""
    if element is STRING:
        raise InvalidModelError("string tensors have no packed form")
    if element.nbytes(count) > len(memoryview(data).cast("B")):
        raise InvalidModelError(f"{count} elements of {element} need more bytes than there are")
    if element.bits >= 8:
        dtype = element.dtype
        if dtype.kind == "b":
            return np.asarray(np.frombuffer(data, np.uint8, count) != 0)
        return np.frombuffer(data, dtype, count)
    raw = np.frombuffer(data, np.uint8)
    if element.bits in (1, 2, 4):
        per_byte = 8 // element.bits
        mask = (1 << element.bits) - 1
        shifts = [element.bits * i for i in range(per_byte)]
        if element.bits == 1:
            shifts.reverse()  # OpenVINO stores u1 from the most significant bit down
        parts = np.stack([(raw >> s) & mask for s in shifts], axis=-1).reshape(-1)[:count]
        if element.name == "i2":
            parts = (parts.astype(np.int8) ^ 2) - 2
        elif element.name == "i4":
            parts = (parts.astype(np.int8) ^ 8) - 8
        elif element.name == "f4e2m1":
            return parts.view(element.dtype)
        return parts.astype(element.dtype)
    return _unpack_groups(raw, element.bits)[:count].astype(element.dtype)


def _unpack_groups(raw: np.ndarray, bits: int) -> np.ndarray:
    """Elements of 3 or 6 bits. OpenVINO stores groups of 3 bytes, from the most significant bit
    down: the lower two thirds of each element in the first two bytes, the rest in the third."""
    low = bits // 3 * 2
    groups = raw[: raw.size // 3 * 3].reshape(-1, 3, 1)

    def fields(data: np.ndarray, width: int) -> np.ndarray:
        shifts = np.arange(8 - width, -1, -width, dtype=np.uint8)
        return (data >> shifts & ((1 << width) - 1)).reshape(len(groups), -1)

    elements = fields(groups[:, :2], low) | fields(groups[:, 2:], bits - low) << low
    return np.asarray(elements).reshape(-1)


def pack(array: np.ndarray, element: Element) -> np.ndarray:
    """The packed little-endian bytes of an unpacked array, as a 1-D uint8 array."""
    flat = np.ascontiguousarray(array).reshape(-1)
    if element.bits >= 8:
        return flat.view(np.uint8) if flat.size else np.empty(0, np.uint8)
    is_float = element.name == "f4e2m1"
    codes: np.ndarray = (flat if is_float else flat.astype(np.int8)).view(np.uint8)
    if element.bits not in (1, 2, 4):
        raise InvalidModelError(f"values of {element} cannot be packed")
    per_byte = 8 // element.bits
    codes = codes & ((1 << element.bits) - 1)
    codes = np.concatenate([codes, np.zeros(-len(codes) % per_byte, np.uint8)])
    shifts = [element.bits * i for i in range(per_byte)]
    if element.bits == 1:
        shifts.reverse()
    columns = codes.reshape(-1, per_byte)
    result = np.zeros(len(columns), np.uint8)
    for column, shift in enumerate(shifts):
        result |= columns[:, column] << shift
    return result
