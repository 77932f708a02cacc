"""Declared shapes of outputs decide nothing that follows from the inputs. The standard's cases
convert the same without the shapes of their outputs."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

import bridge
from tests.conformance.cases import cases

CHUNKS = 8


def refusal(model: onnx.ModelProto, folder: Path) -> str:
    """Why Bridge does not convert a model to IR; "" if it does."""
    try:
        bridge.convert(model, folder / "a.xml")
    except bridge.BridgeError as error:
        return str(error)
    return ""


def undeclared(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy without the shapes of the outputs."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for output in copy.graph.output:
        if output.type.HasField("tensor_type"):
            output.type.tensor_type.ClearField("shape")
    return copy


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_shapes_of_outputs_are_not_needed(chunk: int, tmp_path: Path) -> None:
    for name in sorted(cases())[chunk::CHUNKS]:
        model = cases()[name].model
        assert refusal(undeclared(model), tmp_path) == refusal(model, tmp_path), name
