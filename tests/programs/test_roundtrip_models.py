"""Every model of `roundtrip_models/`, there and back, in both engines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import openvino
import pytest

import bridge
from tests.support import model_files
from tests.support.model_files import INPUT_SETS, IR_FILES, ONNX_FILES, Input
from tests.support.running import OnnxRuntime, OpenVino, assert_close, flat
from tests.support.sample import sample

each_onnx = pytest.mark.parametrize("path", ONNX_FILES, ids=lambda path: path.stem)
each_ir = pytest.mark.parametrize("path", IR_FILES, ids=lambda path: path.stem)


def some(paths: list[Path]) -> list[Path]:
    """A third of the files, for what other tests nearly show."""
    names = set(sample([path.name for path in paths], 3))
    return [path for path in paths if path.name in names]


def read_ir(path: Path) -> openvino.Model:
    return openvino.Core().read_model(path)


def without_dropped_defaults(inputs: list[Input], kept: list[str]) -> list[int]:
    """Positions of the inputs that a conversion kept; only an input with a default may go."""
    for item in inputs:
        assert item.name in kept or item.has_default, f"input {item.name!r} is missing"
    return [position for position, item in enumerate(inputs) if item.name in kept]


def check_onnx(model: onnx.ModelProto, full: bool = True) -> None:
    """The standard's check. It wants outputs to have a rank, so outputs of several ranks, which
    declare none, get one for the check."""
    checked = onnx.ModelProto()
    checked.CopyFrom(model)
    for value in checked.graph.output:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.shape.SetInParent()
    onnx.checker.check_model(checked, full_check=full)


def interface(values: list[onnx.ValueInfoProto], back: bool = False) -> list[tuple[str, str]]:
    """Names and types. With `back`, a tensor without a declared rank is an optional, as it comes
    back from an IR."""
    return [
        (value.name, f"optional({name})" if back and is_open(value.type) else name)
        for value in values
        for name in [type_name(value.type)]
    ]


def is_open(type: onnx.TypeProto) -> bool:
    return type.HasField("tensor_type") and not type.tensor_type.HasField("shape")


def type_name(type: onnx.TypeProto) -> str:
    if type.HasField("sequence_type"):
        return f"seq({type_name(type.sequence_type.elem_type)})"
    if type.HasField("optional_type"):
        return f"optional({type_name(type.optional_type.elem_type)})"
    return str(type.tensor_type.elem_type)


@each_onnx
def test_onnx_model_is_valid(path: Path) -> None:
    model = model_files.load_onnx(path)
    # Type inference gives a sparse initializer a sparse type, which no operator accepts. The
    # specification and onnxruntime treat it as a dense tensor.
    check_onnx(model, full=not model.graph.sparse_initializer)


@each_onnx
def test_onnx_inputs_reach_both_branches(path: Path) -> None:
    model = model_files.load_onnx(path)
    constants = {item.name for item in model.graph.initializer}
    constants |= {n.output[0] for n in model.graph.node if n.op_type == "Constant"}
    conditions = {n.input[0] for n in model.graph.node if n.op_type == "If"} - constants
    if not conditions or model_files.is_one_way(path):
        return
    inputs = model_files.onnx_inputs(model)
    del model.graph.output[:]
    for name in sorted(conditions):
        model.graph.output.add(name=name).type.tensor_type.elem_type = onnx.TensorProto.BOOL
    engine = OnnxRuntime(model)
    taken = [
        [bool(value.item()) for value in engine.run(feed)]
        for feed in (model_files.feeds(path, inputs, index) for index in range(INPUT_SETS))
    ]
    for condition, values in zip(sorted(conditions), zip(*taken, strict=True), strict=True):
        assert set(values) == {True, False}, f"{condition} is always {values[0]}"


@each_onnx
def test_onnx_to_ir_and_back(path: Path, tmp_path: Path) -> None:
    model = model_files.load_onnx(path)
    inputs = model_files.onnx_inputs(model)
    xml, back = tmp_path / "converted.xml", tmp_path / "back.onnx"
    bridge.convert(model, xml)
    ir, boundary = read_ir(xml), bridge.Boundary.of(xml)
    entries = [boundary.owner(name) for port in ir.inputs for name in port.get_names()]
    kept = without_dropped_defaults(inputs, entries)
    exits = [part for value in model.graph.output for part in parts(boundary, value.name)]
    for name, port in zip(exits, ir.outputs, strict=True):
        assert name in port.get_names()
    bridge.convert(xml, back)
    returned = onnx.load(back)
    onnx.checker.check_model(returned, full_check=True)
    assert interface(returned.graph.input) == interface([model.graph.input[i] for i in kept])
    assert interface(returned.graph.output) == interface(model.graph.output, back=True)
    original, there, again = OnnxRuntime(model), OpenVino(ir), OnnxRuntime(back)
    for index in range(INPUT_SETS):
        feed = model_files.feeds(path, inputs, index)
        feed = {inputs[position].name: feed[inputs[position].name] for position in kept}
        expected = flat(original.run(feed))
        results = there.run_packed(boundary, feed)
        assert_close(flat([results[value.name] for value in model.graph.output]), expected)
        assert_close(flat(again.run(feed)), expected)


def parts(boundary: bridge.Boundary, output: str) -> list[str]:
    """The tensors of one output."""
    port = boundary.outputs.get(output)
    return [output] if port is None else port.parts(output)


@pytest.mark.parametrize("path", some(ONNX_FILES), ids=lambda path: path.stem)
def test_onnx_to_onnx(path: Path, tmp_path: Path) -> None:
    model = model_files.load_onnx(path)
    inputs = model_files.onnx_inputs(model)
    copy = tmp_path / "copy.onnx"
    bridge.convert(model, copy)
    written = onnx.load(copy)
    check_onnx(written)
    kept = without_dropped_defaults(inputs, [value.name for value in written.graph.input])
    assert interface(written.graph.input) == interface([model.graph.input[i] for i in kept])
    assert interface(written.graph.output) == interface(model.graph.output)
    original, again = OnnxRuntime(model), OnnxRuntime(copy)
    for index in range(INPUT_SETS):
        feed = model_files.feeds(path, inputs, index)
        feed = {inputs[position].name: feed[inputs[position].name] for position in kept}
        assert_close(flat(again.run(feed)), flat(original.run(feed)))


def names_of(node: openvino.Node, port: openvino.Output) -> set[str]:
    return port.get_names() or {node.get_friendly_name()}


@each_ir
def test_ir_to_onnx_and_back(path: Path, tmp_path: Path) -> None:
    ir = read_ir(path)
    model_path, back = tmp_path / "converted.onnx", tmp_path / "back.xml"
    bridge.convert(path, model_path)
    model = onnx.load(model_path)
    onnx.checker.check_model(model, full_check=True)
    for value, parameter in zip(model.graph.input, ir.get_parameters(), strict=True):
        assert value.name in names_of(parameter, parameter.output(0))
    for value, result in zip(model.graph.output, ir.get_results(), strict=True):
        # One value may go to several Results; ONNX outputs need names of their own.
        assert value.name in result.output(0).get_names() | {result.get_friendly_name()}
    bridge.convert(model_path, back)
    inputs = model_files.ir_inputs(ir)
    original, there, again = OpenVino(ir), OnnxRuntime(model_path), OpenVino(back)
    for index in range(INPUT_SETS):
        values = list(model_files.feeds(path, inputs, index).values())
        expected = original.run(values)
        named = {v.name: x for v, x in zip(model.graph.input, values, strict=True)}
        assert_close(there.run(named), expected)
        assert_close(again.run(values), expected)


@each_ir
def test_ir_to_ir(path: Path, tmp_path: Path) -> None:
    ir = read_ir(path)
    copy = tmp_path / "copy.xml"
    bridge.convert(path, copy)
    written = read_ir(copy)
    for old, new in zip(ir.inputs + ir.outputs, written.inputs + written.outputs, strict=True):
        assert new.get_names() >= old.get_names()
        assert new.get_element_type() == old.get_element_type()
        assert new.get_partial_shape() == old.get_partial_shape()
    inputs = model_files.ir_inputs(ir)
    original, again = OpenVino(ir), OpenVino(copy)
    for index in range(INPUT_SETS):
        values: list[np.ndarray] = list(model_files.feeds(path, inputs, index).values())
        assert_close(again.run(values), original.run(values))


SAVED = {path.name: path for path in [*ONNX_FILES, *IR_FILES]}


@pytest.mark.parametrize("name", sample(SAVED, 8))
def test_as_openvino_saves_it_by_default(name: str, tmp_path: Path) -> None:
    """OpenVINO saves constants of real numbers as f16 by default."""
    path, xml, saved = SAVED[name], tmp_path / "m.xml", tmp_path / "saved.xml"
    if path.suffix == ".xml":
        xml = path
    else:
        bridge.convert(path, xml)
    openvino.save_model(read_ir(xml), saved)
    bridge.convert(saved, tmp_path / "m.onnx")
    bridge.convert(tmp_path / "m.onnx", tmp_path / "again.xml")
    boundary = bridge.Boundary.of(saved)
    there, back = OnnxRuntime(tmp_path / "m.onnx"), OpenVino(tmp_path / "again.xml")
    original = OpenVino(saved)
    if path.suffix == ".xml":
        inputs = model_files.ir_inputs(read_ir(saved))
        for index in range(INPUT_SETS):
            values = list(model_files.feeds(path, inputs, index).values())
            names = [given.name for given in there.session.get_inputs()]
            expected = original.run(values)
            assert_close(there.run(dict(zip(names, values, strict=True))), expected)
            assert_close(back.run(values), expected)
        return
    outputs = [value.name for value in there.session.get_outputs()]
    kept = {value.name for value in there.session.get_inputs()}
    inputs = model_files.onnx_inputs(model_files.load_onnx(path))
    for index in range(INPUT_SETS):
        feed = model_files.feeds(path, inputs, index)
        feed = {key: value for key, value in feed.items() if key in kept}
        results = original.run_packed(boundary, feed)
        expected = flat([results[name] for name in outputs])
        assert_close(flat(there.run(feed)), expected)
        again = back.run_packed(bridge.Boundary.of(tmp_path / "again.xml"), feed)
        assert_close(flat([again[name] for name in outputs]), expected)


@pytest.mark.parametrize("path", some([*ONNX_FILES, *IR_FILES]), ids=lambda path: path.name)
def test_a_loaded_model_can_be_saved_again(path: Path, tmp_path: Path) -> None:
    """Saving gives the same bytes as a conversion, weights included."""
    model = bridge.load(path)
    for suffix in (".xml", ".onnx"):
        bridge.convert(path, tmp_path / f"converted{suffix}")
    for suffix in (".xml", ".onnx", ".xml"):
        bridge.save(model, tmp_path / f"saved{suffix}")
        for converted in tmp_path.glob("converted.*"):
            saved = converted.with_stem("saved")
            if suffix == converted.suffix or (suffix, converted.suffix) == (".xml", ".bin"):
                assert saved.read_bytes() == converted.read_bytes()
