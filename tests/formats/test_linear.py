"""Conversions whose work grows linearly with the model. The test counts executed lines of Bridge's
own code, since other load on the machine does not change them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import onnx
import pytest
from onnx import helper

import bridge
import bridge.library.api


def value(name: str, type: int = 1, shape: tuple[int, ...] = (2,)) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, type, shape)


def model(nodes: list[onnx.NodeProto], outputs: list[str]) -> onnx.ModelProto:
    given = [value("x"), value("c", onnx.TensorProto.BOOL, ())]
    graph = helper.make_graph(nodes, "g", given, [value(name) for name in outputs])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def wide_if(count: int) -> onnx.ModelProto:
    """An If of many outputs."""

    def branch(op: str, letter: str) -> onnx.GraphProto:
        names = [f"{letter}{i}" for i in range(count)]
        nodes = [helper.make_node(op, ["x"], [name]) for name in names]
        return helper.make_graph(nodes, op, [], [value(name) for name in names])

    outputs = [f"y{i}" for i in range(count)]
    branches = {"then_branch": branch("Neg", "a"), "else_branch": branch("Abs", "b")}
    return model([helper.make_node("If", ["c"], outputs, **branches)], outputs)


def of_one_name(count: int) -> onnx.ModelProto:
    """Nodes in a row, all with the same name."""
    names = ["x", *(f"y{i}" for i in range(count))]
    nodes = [helper.make_node("Neg", [names[i]], [names[i + 1]], name="same") for i in range(count)]
    return model(nodes, names[-1:])


def lines(work: Callable[[], Any]) -> int:
    """The number of executed lines of Bridge's code."""
    count = 0

    def line(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return line

    def call(frame: FrameType, event: str, argument: Any) -> Any:
        # Code that dataclasses generate has no file; comparisons of dataclasses are counted there.
        name = frame.f_code.co_filename
        return line if "/bridge/" in name or name == "<string>" else None

    before = sys.gettrace()
    sys.settrace(call)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize(
    ("make", "target", "options"),
    [
        (wide_if, "o.xml", {"ifs": "select"}),
        (wide_if, "o.onnx", {"ifs": "select"}),
        (wide_if, "o.xml", {}),
        (of_one_name, "o.onnx", {}),
        (of_one_name, "o.xml", {}),
    ],
)
def test_work_grows_with_the_model(
    make: Callable[[int], onnx.ModelProto],
    target: str,
    options: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bridge.library.api, "DEBUG", False)

    def work(count: int) -> int:
        source = make(count)
        return lines(lambda: bridge.convert(source, tmp_path / target, **options))

    work(2)  # imports and caches all that is needed once
    small, large = work(100), work(400)
    assert large < 4.4 * small
