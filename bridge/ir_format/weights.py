"""Constants in a `.bin`: finds the bytes of a Const, and writes each tensor once."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from bridge.errors import InvalidModelError
from bridge.files import Stamp, bytes_in, stamp_of
from bridge.ir_format.attributes import parse, parse_element
from bridge.ir_format.strings import pack_strings, unpack_strings
from bridge.limits import budget
from bridge.neutral.storage import RangeCopier
from bridge.neutral.tensor import FileRange, Tensor
from bridge.neutral.types import STRING, size_of
from bridge.operators.ir_texts import integer
from bridge.suggestions import about_short_file

if TYPE_CHECKING:
    from bridge.ir_format.layers import Layer

ALIGNMENT = 64
"""Where a tensor of at least as many bytes begins; a smaller one begins at a multiple of 8."""


class WeightsReader:
    """The `.bin` beside a model. Constants with the same bytes and shape share one Tensor.
    `stamps` learns the file's when it is first asked for."""

    def __init__(self, path: Path, stamps: dict[str, Stamp]) -> None:
        self.path = path
        self._stamps = stamps
        self._size: int | None = None
        self._tensors: dict[tuple[object, ...], Tensor] = {}

    def tensor(self, layer: Layer, where: str) -> Tensor:
        """The tensor of a Const layer, its bytes left in the file."""
        where = f"{where} / {layer}"
        try:
            element = parse_element(layer.data["element_type"])
            shape = parse(layer.data["shape"], "ints")
            offset, size = integer(layer.data["offset"]), integer(layer.data["size"])
        except KeyError as error:
            raise InvalidModelError(f"{where}: the attribute {error} is missing") from None
        except ValueError as error:
            raise InvalidModelError(f"{where}: {error}") from None
        if element is None or min(shape, default=0) < 0:
            raise InvalidModelError(f"{where}: a constant needs an element type and a shape")
        key = (element, shape, offset, size)
        if key not in self._tensors:
            needed = element.nbytes(size_of(shape))
            if element is not STRING and size < needed:
                raise InvalidModelError(f"{where}: has {size} bytes where it needs {needed}")
            if needed or element is STRING:
                self._check(offset, size, where)
            range = FileRange(str(self.path), offset, size if element is STRING else needed)
            self._tensors[key] = (
                unpack_strings(range.read(), shape, where)
                if element is STRING
                else Tensor(element, shape, range if needed else b"")
            )
        return self._tensors[key]

    def _check(self, offset: int, size: int, where: str) -> None:
        if self._size is None:
            try:
                regular = stat.S_ISREG(self.path.stat().st_mode)
                self._stamps[str(self.path)] = stamp_of(self.path)
                self._size = self._stamps[str(self.path)][2]
                budget().allow(size=bytes_in(self.path))
            except OSError as error:
                raise InvalidModelError(
                    f"{self.path}: the weights cannot be read ({error.strerror}); "
                    "they belong beside the .xml, or are named by `weights`"
                ) from None
            if not regular:
                raise InvalidModelError(f"{self.path}: the weights are no regular file")
        if offset < 0 or offset + size > self._size:
            why = about_short_file(
                self.path, "is the file truncated, or does it belong to another model?"
            )
            raise InvalidModelError(
                f"{where}: its {size} bytes at {offset} are outside {self.path}, which has "
                f"{self._size}; {why}"
            )


class WeightsWriter:
    """Writes tensors one after another into a `.bin`; FileRanges by `copier`."""

    def __init__(self, file: BinaryIO, copier: RangeCopier) -> None:
        self._file = file
        self._copier = copier
        self._end = 0
        # The tensors are kept, so that no new tensor gets the identity of a deleted one.
        self._places: dict[object, tuple[tuple[int, int], Tensor]] = {}

    def place(self, tensor: Tensor) -> tuple[int, int]:
        """Offset and size of a tensor, which is written at its first use. The same Tensor, and
        the same range of a file, are written once."""
        source = tensor.source
        key: object = source if isinstance(source, FileRange) else id(tensor)
        known = self._places.get(key)
        if known is None:
            known = self._places[key] = (self._write(tensor), tensor)
        return known[0]

    def _write(self, tensor: Tensor) -> tuple[int, int]:
        packed = pack_strings(tensor) if tensor.element is STRING else None
        size = tensor.nbytes if packed is None else len(packed)
        step = ALIGNMENT if size >= ALIGNMENT else 8
        offset = -(-self._end // step) * step
        self._file.write(b"\0" * (offset - self._end))
        if packed is not None:
            self._file.write(packed)
        elif isinstance(tensor.source, FileRange) and size:
            self._copier.copy(FileRange(tensor.source.path, tensor.source.offset, size))
        elif size:
            for piece in tensor.chunks():
                self._file.write(piece)
        else:
            # OpenVINO gives an empty constant one byte too, and cannot map an empty file.
            self._file.write(b"\0")
            size = 1
        self._end = offset + size
        return offset, size
