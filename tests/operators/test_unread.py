"""A node with an attribute or an input that no row or rule reads is refused, for every operator of
each domain of ONNX, and every layer of IR, where attributes beside its specification are ignored
(`test_attributes_of_layers.py`)."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import numpy as np
import onnx
import onnx.defs
import openvino
import pytest
from onnx import TensorProto, helper
from openvino import opset1 as ops

import bridge
from bridge import operators
from bridge.vocabulary import ir_rows, operator
from tests.operators.microsoft_cases import CASES, WITHOUT_KERNEL, Case, f32, random, u8, whole
from tests.operators.test_microsoft import model_of
from tests.operators.test_microsoft_layers import CASES as LAYERS
from tests.support.ir_operators import of

UNKNOWN = "of_next_month"
MODELS = Path(__file__).parents[2] / "roundtrip_models"


def _requires(source: onnx.ModelProto | Path, target: Path, said: str) -> None:
    with pytest.raises(bridge.BridgeError) as refused:
        bridge.convert(source, target)
    assert said in str(refused.value), str(refused.value)


# onnxruntime's operators ------------------------------------------------------------------------


def _microsoft() -> dict[str, Case]:
    """One case for each of onnxruntime's operators; their rules read the node as it stands."""
    a, b, scale, zero = whole(2, 3), whole(3, 4), f32(0.1), u8(3)
    cases = [
        *CASES.values(),
        *LAYERS.values(),
        *(case for case, _ in WITHOUT_KERNEL.values()),
        Case("GemmFastGelu", [random(2, 3), random(3, 4)]),
        Case("QGemm", [a, scale, zero, b, scale, zero]),
        Case("QLinearReduceMean", [a, scale, zero, scale, zero], {"axes": [1]}),
    ]
    return {f"{case.domain}::{case.op}": case for case in cases}


def test_there_is_a_case_for_each_operator() -> None:
    operators.load_all()
    converted = {
        op
        for (target, op), rule in operators.legalizations.items()
        if target == "ir" and op.startswith("com.microsoft::") and operator(op) is None
        if rule.__annotations__["return"] is not NoReturn
    }
    assert converted <= set(_microsoft())


@pytest.mark.parametrize("op", _microsoft())
def test_unknown_parts_of_onnxruntimes_operators(op: str, tmp_path: Path) -> None:
    model = model_of(_microsoft()[op])
    (node,) = model.graph.node
    node.attribute.append(helper.make_attribute(UNKNOWN, 1))
    _requires(model, tmp_path / "a.xml", f"attribute `{UNKNOWN}`")
    del node.attribute[-1]
    if node.op_type == "QLinearConcat":  # It has any number of inputs.
        return
    most = 30
    first = next(name for name in node.input if name)
    node.input.extend([""] * (most - len(node.input)) + [first])
    _requires(model, tmp_path / "a.xml", "input")


# The standard's operators -----------------------------------------------------------------------


def _schemas() -> Iterator[onnx.defs.OpSchema]:
    for schema in onnx.defs.get_all_schemas_with_history():
        if not schema.deprecated and schema.domain in ("", "ai.onnx.ml"):
            yield schema


def _model(schema: onnx.defs.OpSchema, inputs: int) -> onnx.ModelProto:
    """A model of one node; Bridge reads no further than its signature."""
    names = [f"x{i}" for i in range(inputs)]
    outputs = [f"y{i}" for i in range(max(schema.min_output, 1))]
    node = helper.make_node(schema.name, names, outputs, domain=schema.domain)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names],
        [onnx.ValueInfoProto(name=name) for name in outputs],
    )
    opsets = [helper.make_opsetid(schema.domain, schema.since_version)]
    opsets += [helper.make_opsetid("", 18)] if schema.domain else []
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def test_unknown_parts_of_the_standards_operators(tmp_path: Path) -> None:
    for schema in _schemas():
        model = _model(schema, schema.min_input)
        model.graph.node[0].attribute.append(helper.make_attribute(UNKNOWN, 1))
        _requires(model, tmp_path / "a.xml", UNKNOWN)
        if schema.max_input < 1 << 16:
            surplus = schema.max_input + 1
            _requires(_model(schema, surplus), tmp_path / "a.xml", f"has {surplus} inputs")


# Layers of IR -----------------------------------------------------------------------------------


def test_an_attribute_of_the_specification_that_a_rule_leaves_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = operators.ReadingRule(lambda b, node: b.op("Relu", node.inputs[0]), 1, 99)
    operators.load_all()
    monkeypatch.setitem(operators.readers, ("ir", "MVN"), [rule])
    model, x = tmp_path / "a.xml", ops.parameter([1, 2, 3], np.float32)
    openvino.save_model(openvino.Model([of(2, "MVN", eps=0.1)(x)], [x]), model)
    _requires(model, tmp_path / "a.onnx", "attribute `eps`")


MOST_INPUTS = 40


def _with_inputs(net: ElementTree.Element, layer: ElementTree.Element) -> bool:
    """Feeds the first input many times more. False if the layer has any number of inputs."""
    rows = ir_rows(layer.attrib["type"], layer.attrib["version"])
    inputs, edges = layer.find("input"), net.find("edges")
    variadic = any(spelling.inputs[-1:] and spelling.inputs[-1][-1] == "*" for _, spelling in rows)
    if inputs is None or edges is None or variadic:
        return False
    first = {"to-layer": layer.attrib["id"], "to-port": inputs[0].attrib["id"]}
    edge = next(e for e in edges if first.items() <= e.attrib.items())
    for place in range(100, 100 + MOST_INPUTS):
        inputs.append(ElementTree.fromstring(ElementTree.tostring(inputs[0])))
        inputs[-1].set("id", str(place))
        edges.append(ElementTree.Element("edge", {**edge.attrib, "to-port": str(place)}))
    return True


_EDGES = ("Const", "Parameter", "Result")


def _layers(folder: Path) -> dict[tuple[str, str], tuple[Path, int]]:
    """A model for each type of layer and operator set, and the place of the layer in it."""
    found: dict[tuple[str, str], tuple[Path, int]] = {}
    for source in sorted(MODELS.iterdir()):
        ir = source if source.suffix == ".xml" else folder / f"{source.stem}.xml"
        if source.suffix in (".onnx", ".onnxtxt"):
            with suppress(bridge.BridgeError):
                bridge.convert(source, ir)
        if ir.suffix == ".xml" and ir.exists():
            layers = ElementTree.parse(ir).getroot().find("layers")
            for place, layer in enumerate(() if layers is None else layers):
                found.setdefault((layer.attrib["type"], layer.attrib["version"]), (ir, place))
    return found


def test_unknown_inputs_of_layers(tmp_path: Path) -> None:
    layers = _layers(tmp_path)
    assert len(layers) > 90
    changed = tmp_path / "changed.xml"
    for (type, _), (ir, place) in layers.items():
        net = ElementTree.parse(ir).getroot()
        layer = net.findall("layers/layer")[place]
        if type in _EDGES or not _with_inputs(net, layer):
            continue
        ElementTree.ElementTree(net).write(changed)
        weights = ir.with_suffix(".bin")
        changed.with_suffix(".bin").write_bytes(weights.read_bytes() if weights.exists() else b"")
        _requires(changed, tmp_path / "a.onnx", "is not known to this version of Bridge")
