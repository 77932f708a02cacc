"""Ranges of files are copied without being read, and holes stay holes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bridge.errors import InvalidModelError
from bridge.neutral.storage import RangeCopier
from bridge.neutral.tensor import FileRange

MEGABYTE = 1 << 20


def test_holes_stay_holes(tmp_path: Path) -> None:
    """Data at both ends and in the middle, between holes; ranges that begin and end in each."""
    source, target = tmp_path / "source", tmp_path / "target"
    with source.open("wb") as file:
        for place in (0, 8 * MEGABYTE, 15 * MEGABYTE):
            file.seek(place)
            file.write(bytes(range(1, 251)) * (MEGABYTE // 250))
        file.truncate(32 * MEGABYTE)
    ranges = [
        (0, 32 * MEGABYTE),
        (MEGABYTE // 2 + 3, 8 * MEGABYTE),
        (2 * MEGABYTE + 1, 3 * MEGABYTE),
        (16 * MEGABYTE - 77, 16 * MEGABYTE + 77),
        (20 * MEGABYTE, 5),
        (8 * MEGABYTE, 8 * MEGABYTE + 7),
    ]
    with target.open("wb") as file, RangeCopier(file) as copier:
        for offset, length in ranges:
            file.write(b"begin")
            copier.copy(FileRange(str(source), offset, length))
        file.write(b"end")
    content = source.read_bytes()
    expected = b"".join(b"begin" + content[begin : begin + size] for begin, size in ranges)
    assert target.read_bytes() == expected + b"end"
    kernel_copies = hasattr(os, "copy_file_range")
    if kernel_copies and source.stat().st_blocks * 512 < 32 * MEGABYTE:
        assert target.stat().st_blocks * 512 < len(expected) // 2


@pytest.mark.parametrize("data", [0, 1 << 17])
def test_a_range_beyond_the_end(data: int, tmp_path: Path) -> None:
    """The range exceeds a full file, or a file with a hole. The hole does not count as missing
    data."""
    source = tmp_path / "source"
    with source.open("wb") as file:
        file.write(b"x" * data)
        file.truncate(1 << 20)
    with (tmp_path / "target").open("wb") as file, RangeCopier(file) as copier:
        for length in ((1 << 20) + 1, 1 << 40):
            with pytest.raises(InvalidModelError, match="is it truncated"):
                copier.copy(FileRange(str(source), 0, length))
    assert os.path.getsize(tmp_path / "target") <= 2 << 20
