"""Tensors keep their values in packed storage, wherever their bytes are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays

from bridge.errors import InvalidModelError
from bridge.neutral.tensor import FileRange, Tensor, pack, unpack
from bridge.neutral.types import ELEMENTS, Element
from bridge.passes.compress import Halves

PACKED = [e for e in ELEMENTS.values() if e.bits and e.name not in ("u3", "u6", "nf4")]


@given(st.sampled_from(PACKED), st.integers(0, 40), st.data())
def test_packed_bytes_are_read_back(element: Element, count: int, data: st.DataObject) -> None:
    size = element.nbytes(count)
    packed = data.draw(st.binary(min_size=size, max_size=size))
    if element.kind == "bool":
        packed = bytes(byte & 1 for byte in packed)
    used = element.bits * count % 8
    if element.bits < 8 and used:
        # Bits behind the last element are not part of the tensor.
        mask = (0xFF << (8 - used)) & 0xFF if element.name == "u1" else (1 << used) - 1
        packed = packed[:-1] + bytes([packed[-1] & mask])
    array = unpack(packed, element, count)
    assert array.dtype == element.dtype and array.shape == (count,)
    assert pack(array, element).tobytes() == packed


def test_range_of_a_file(tmp_path: Path) -> None:
    values = np.arange(12, dtype=np.int16).reshape(3, 4)
    path = tmp_path / "data"
    path.write_bytes(b"xyz" + values.tobytes())
    tensor = Tensor(ELEMENTS["i16"], (3, 4), FileRange(str(path), 3, 24))
    np.testing.assert_array_equal(tensor.array(), values)
    assert b"".join(tensor.chunks()) == values.tobytes()
    short = Tensor(ELEMENTS["i16"], (3, 5), FileRange(str(path), 3, 30))
    with pytest.raises(InvalidModelError, match="truncated"):
        short.array()


@given(arrays.arrays(np.float32, st.integers(0, 100), elements=st.floats(width=32)))
def test_halves_are_clamped(values: np.ndarray) -> None:
    halves = np.frombuffer(b"".join(Halves(Tensor.of(values)).chunks()), np.float16)
    limit = np.float32(np.finfo(np.float16).max)
    expected = np.clip(values, -limit, limit).astype(np.float16)
    np.testing.assert_array_equal(halves, expected)
