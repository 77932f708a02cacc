"""String tensors in a `.bin`: count, 0, the end of each string, as i32. Then follow all strings,
joined (OpenVINO's `StringAlignedBuffer`)."""

from itertools import pairwise

import numpy as np

from bridge.errors import InvalidModelError
from bridge.neutral.tensor import Tensor
from bridge.neutral.types import STRING, size_of


def unpack_strings(data: bytes, shape: tuple[int, ...], where: str) -> Tensor:
    """The string tensor in packed bytes."""
    count = size_of(shape)
    header = np.frombuffer(data, "<i4", min(count + 2, len(data) // 4))
    if len(header) < 1 or header[0] != count or (count and len(header) < count + 2):
        raise InvalidModelError(f"{where}: the .bin holds no {count} strings for it")
    ends = header[1:].tolist()
    text = data[4 * (count + 2) :]
    if any(a > b for a, b in pairwise(ends)) or (count and ends[-1] > len(text)):
        raise InvalidModelError(f"{where}: the strings in the .bin have ends out of order")
    array = np.empty(count, object)
    for index in range(count):
        array[index] = text[ends[index] : ends[index + 1]].decode("utf-8", "surrogateescape")
    return Tensor.of(array.reshape(shape))


def pack_strings(tensor: Tensor) -> bytes:
    """The packed bytes of a string tensor."""
    items = [
        item if isinstance(item, bytes) else str(item).encode("utf-8", "surrogateescape")
        for item in tensor.array().reshape(-1)
    ]
    assert tensor.element is STRING
    header = np.zeros(len(items) + 2, "<i4")
    header[0] = len(items)
    header[2:] = np.cumsum([len(item) for item in items], dtype=np.int64)
    return header.tobytes() + b"".join(items)
