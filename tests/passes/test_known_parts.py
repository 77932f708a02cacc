"""Sequences and optionals that were restored at a model's boundary are recognised, and nothing else
is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

import bridge
from bridge.neutral.graph import names_of_outputs
from bridge.onnx_format.frontend import read
from bridge.passes.sequences.known_parts import know_parts
from tests.support.graphs import context
from tests.support.model_files import ONNX_FILES, load_onnx

MODELS = {path.stem: path for path in ONNX_FILES}


def boundary(model: onnx.ModelProto) -> list[str]:
    """The names of inputs and outputs after the pass."""
    neutral = read(model)
    know_parts(neutral, context("ir"))
    return [*(value.name for value in neutral.graph.inputs), *names_of_outputs(neutral.graph)]


def restored(stem: str, folder: Path) -> onnx.ModelProto:
    bridge.convert(load_onnx(MODELS[stem]), folder / "a.xml")
    return bridge.to_onnx(folder / "a.xml")


KNOWN = {
    "sequence_input": {"parts.data", "parts.shapes"},
    "sequence_output": {"parts.data", "parts.shapes"},
    "optional_input": {"o.present", "o"},
    "optional_output": {"maybe.present", "maybe"},
}


@pytest.mark.parametrize("stem", KNOWN)
def test_known(stem: str, tmp_path: Path) -> None:
    model = restored(stem, tmp_path)
    assert set(boundary(model)) >= KNOWN[stem]


def test_known_behind_another_node_of_the_same_operator(tmp_path: Path) -> None:
    model = restored("sequence_input", tmp_path)
    model.graph.input.append(helper.make_tensor_value_info("flat", TensorProto.FLOAT, [4]))
    model.graph.output.append(helper.make_tensor_value_info("square", TensorProto.FLOAT, [2, 2]))
    model.graph.initializer.append(helper.make_tensor("two", TensorProto.INT64, [2], [2, 2]))
    node = helper.make_node("Reshape", ["flat", "two"], ["square"], allowzero=1)
    model.graph.node.insert(0, node)
    assert set(boundary(model)) >= KNOWN["sequence_input"]


@pytest.mark.parametrize("stem", ["sequence_input", "sequence_output", "optional_input"])
def test_what_was_not_restored_stays(stem: str) -> None:
    model = load_onnx(MODELS[stem])
    names = [value.name for value in (*model.graph.input, *model.graph.output)]
    assert boundary(model) == names


def another_use(model: onnx.ModelProto) -> None:
    """The input has a further use."""
    model.graph.node.append(helper.make_node("SequenceLength", ["parts"], ["length"]))
    model.graph.output.append(helper.make_tensor_value_info("length", TensorProto.INT64, []))


def another_axis(model: onnx.ModelProto) -> None:
    """The elements are cut at another place."""
    loop = next(node for node in model.graph.node if node.op_type == "Loop")
    (body,) = (a.g for a in loop.attribute if a.name == "body")
    (cut,) = (node for node in body.node if node.op_type == "Slice")
    body.node.insert(0, helper.make_node("Neg", [cut.input[1]], ["start"]))
    cut.input[1] = "start"


def swapped_branches(model: onnx.ModelProto) -> None:
    """A present optional is taken for absent."""
    last = next(node for node in reversed(model.graph.node) if node.op_type == "If")
    then, otherwise = last.attribute
    then.name, otherwise.name = otherwise.name, then.name


OTHERS: dict[str, Callable[[onnx.ModelProto], None]] = {
    "sequence_input": another_use,
    "sequence_output": another_axis,
    "optional_output": swapped_branches,
}


@pytest.mark.parametrize("stem", OTHERS)
def test_near_misses_stay(stem: str, tmp_path: Path) -> None:
    model = restored(stem, tmp_path)
    OTHERS[stem](model)
    assert not KNOWN[stem] & set(boundary(model)) - {"maybe"}
