"""What a second round trip gives is byte for byte what the first gave."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

import bridge
from tests.support.model_files import IR_FILES, ONNX_FILES, load_onnx


def rounds(model: onnx.ModelProto | Path, folder: Path, first: str, second: str) -> None:
    """Writes the model as 1 in the first format, that as 1 in the second, and both once more."""
    for number in ("1", "2"):
        for suffix in (first, second):
            path = folder / f"{number}.{suffix}"
            bridge.convert(model, path)
            model = path


@pytest.mark.parametrize("path", ONNX_FILES, ids=lambda path: path.stem)
def test_a_second_round_trip_changes_nothing(path: Path, tmp_path: Path) -> None:
    rounds(load_onnx(path), tmp_path, "xml", "onnx")
    assert (tmp_path / "1.onnx").read_bytes() == (tmp_path / "2.onnx").read_bytes()


@pytest.mark.parametrize("path", IR_FILES, ids=lambda path: path.stem)
def test_a_second_round_trip_of_ir_changes_nothing(path: Path, tmp_path: Path) -> None:
    rounds(path, tmp_path, "onnx", "xml")
    for suffix in ("onnx", "xml", "bin"):
        first, second = (tmp_path / f"{number}.{suffix}" for number in ("1", "2"))
        assert first.read_bytes() == second.read_bytes()
