"""What a second round trip gives is byte for byte what the first gave."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

import bridge
from tests.support.model_files import ONNX_FILES, load_onnx


def rounds(model: onnx.ModelProto, folder: Path) -> tuple[Path, Path]:
    """The model after one round through IR, and after another."""
    bridge.convert(model, folder / "1.xml")
    bridge.convert(folder / "1.xml", folder / "1.onnx")
    bridge.convert(folder / "1.onnx", folder / "2.xml")
    bridge.convert(folder / "2.xml", folder / "2.onnx")
    return folder / "1.onnx", folder / "2.onnx"


@pytest.mark.parametrize("path", ONNX_FILES, ids=lambda path: path.stem)
def test_a_second_round_trip_changes_nothing(path: Path, tmp_path: Path) -> None:
    first, second = rounds(load_onnx(path), tmp_path)
    assert first.read_bytes() == second.read_bytes()
