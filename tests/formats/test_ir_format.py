"""OpenVINO IR read and written: the same numbers in OpenVINO, and stable bytes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import openvino
import pytest
from openvino import Model as OpenVinoModel, opset13 as op

import bridge
from bridge.errors import BridgeError, InvalidModelError, UnsupportedError
from bridge.ir_format.attributes import format_value, parse
from bridge.ir_format.backend import write
from bridge.ir_format.frontend import read
from bridge.ir_format.names import join_names, split_names
from bridge.neutral.builder import Builder, Target
from bridge.neutral.graph import Body, Graph, Model, Node, Value
from bridge.neutral.ports import Carried, Condition, Invariant, Iteration, Sliced, Stacked, Yield
from bridge.neutral.tensor import FileRange, Tensor
from bridge.neutral.types import (
    ANY,
    BF16,
    BOOL,
    BY_IR,
    C64,
    F32,
    I64,
    STRING,
    Element,
    Interval,
    TensorType,
)
from bridge.operators.ir_texts import format_shape, parse_shape
from bridge.passes.context import Context
from bridge.passes.legalize import legalize
from bridge.report import Report
from tests.support.running import EXACT, OnnxRuntime

CORE = openvino.Core()
VECTOR = TensorType(F32, (ANY,))
X = np.array([-1, 2], np.float32)


def run(xml: Path, *feeds: object) -> list[np.ndarray]:
    """The outputs of an IR file on OpenVINO's CPU plugin."""
    compiled = CORE.compile_model(CORE.read_model(xml), "CPU", EXACT)
    results = compiled([np.asarray(feed) for feed in feeds])
    return [np.array(results[output]) for output in compiled.outputs]


def names(xml: Path) -> list[set[str]]:
    """The tensor names of the inputs, then of the outputs, as OpenVINO reads them."""
    model = CORE.read_model(xml)
    return [port.get_names() for port in (*model.inputs, *model.outputs)]


def save(model: OpenVinoModel, folder: Path) -> Path:
    """An IR file as OpenVINO writes it."""
    openvino.save_model(model, folder / "openvino.xml", compress_to_fp16=False)
    return folder / "openvino.xml"


def store(model: Model, xml: Path) -> Path:
    """Expands a model for IR and writes it."""
    legalize(model, Context(Target("ir"), Report()))
    write(model, xml, xml.with_suffix(".bin"))
    return xml


def again(xml: Path) -> Path:
    """The IR that Bridge makes from an IR; the second time it has the same bytes."""
    once = store(read(xml), xml.with_name("once.xml"))
    twice = store(read(once), xml.with_name("twice.xml"))
    assert twice.read_text() == once.read_text()
    assert twice.with_suffix(".bin").read_bytes() == once.with_suffix(".bin").read_bytes()
    return once


def check(model: OpenVinoModel, folder: Path, *feed_sets: tuple[object, ...]) -> Path:
    """Saves a model, converts it to IR, and compares the outputs of both; returns the new IR."""
    return check_file(save(model, folder), *feed_sets)


def check_file(xml: Path, *feed_sets: tuple[object, ...]) -> Path:
    """Converts an IR to IR and compares the outputs of both; returns the new IR."""
    made = again(xml)
    for feeds in feed_sets:
        for expected, found in zip(run(xml, *feeds), run(made, *feeds), strict=True):
            np.testing.assert_array_equal(found, expected, strict=True)
    return made


def from_onnx(text: str, folder: Path) -> Path:
    """The IR that OpenVINO makes from an ONNX model in ONNX's text syntax."""
    header = '<ir_version: 8, opset_import: ["" : 16]>\n'
    model = onnx.parser.parse_model(header + text)
    return save(CORE.read_model(model.SerializeToString()), folder)


def the(op: str, xml: Path) -> Node:
    """The only node of an operator, in the top graph or a body."""
    (node,) = (node for node in read(xml).graph.walk() if node.op == op)
    return node


TRUE_AND_FALSE = ((True, X), (False, X))

IF = """m (bool c, float[N] x) => (float[M] y) {
    one = Constant <value = float {1}> ()
    y = If (c) <
        then_branch = t () => (float[M] a) { a = Add (x, one) },
        else_branch = e () => (float[M] b) { b = Relu (x) }>
}"""


def test_if(tmp_path: Path) -> None:
    made = check_file(from_onnx(IF, tmp_path), *TRUE_AND_FALSE)
    node = the("If", made)
    assert [body.outputs for body in node.bodies] == [[Yield(0)], [Yield(0)]]
    # The constant of the graph around it has become the branch's own.
    assert len(node.inputs) == 2
    assert [body.inputs for body in node.bodies] == [[Invariant(1)], [Invariant(1)]]


def test_if_repeats_outputs_and_gives_out_constants_and_inputs(tmp_path: Path) -> None:
    text = """m (bool c, float[N] x) => (float[N] u, float[N] v, float[M] w) {
        u, v, w = If (c) <
            then_branch = t () => (float[N] a, float[N] b, float[M] k)
                { a = Identity (x) b = Identity (x) k = Constant <value = float[1] {7}> () },
            else_branch = e () => (float[N] d, float[N] f, float[M] l)
                { l = Constant <value = float[3] {1, 2, 3}> () d = Abs (x) f = Identity (d) }>
    }"""
    check_file(from_onnx(text, tmp_path), *TRUE_AND_FALSE)


def test_if_in_if_captures_from_every_scope(tmp_path: Path) -> None:
    text = """m (bool c, float[N] x) => (float[N] y) {
        z = Neg (x)
        y = If (c) <
            then_branch = t () => (float[N] a) {
                d = Abs (x)
                a = If (c) <
                    then_branch = tt () => (float[N] p) { p = Add (d, z) },
                    else_branch = te () => (float[N] q) { q = Mul (x, x) }> },
            else_branch = e () => (float[N] b) {
                n = Not (c)
                b = If (n) <
                    then_branch = et () => (float[N] r) { r = Sub (x, z) },
                    else_branch = ee () => (float[N] s) { s = Identity (z) }> }>
    }"""
    check_file(from_onnx(text, tmp_path), *TRUE_AND_FALSE)


LOOP = """m (int64 n, bool c, float[N] x) => (float[N] last, float[M,N] all) {
    last, all = Loop (n, c, x) <body = b (int64 i, bool go, float[N] s)
        => (bool on, float[N] next, float[N] each) {
            f = Cast <to = 1> (i)
            next = Add (s, f)
            sum = ReduceSum <keepdims = 0> (next)
            ten = Constant <value = float {10}> ()
            on = Less (sum, ten)
            each = Identity (next) }>
}"""


@pytest.mark.parametrize("trips", [0, 1, 3, 100])
@pytest.mark.parametrize("condition", [True, False])
def test_loop(trips: int, condition: bool, tmp_path: Path) -> None:
    made = check_file(from_onnx(LOOP, tmp_path), (trips, condition, X))
    (body,) = the("Loop", made).bodies
    assert sum(isinstance(port, Iteration) for port in body.inputs) == 1
    assert sum(isinstance(port, Condition) for port in body.outputs) == 1


def test_loop_without_trip_count(tmp_path: Path) -> None:
    text = LOOP.replace("int64 n, ", "").replace("(n, c, x)", '("", c, x)')
    made = check_file(from_onnx(text, tmp_path), (True, X), (False, X))
    assert the("Loop", made).inputs[0] is None


def test_if_in_loop_in_if(tmp_path: Path) -> None:
    text = """m (bool c, int64 n, float[N] x) => (float[N] y) {
        go = Constant <value = bool {1}> ()
        y = If (c) <
            then_branch = t () => (float[N] a) {
                a = Loop (n, go, x) <body = b (int64 i, bool on, float[N] s)
                    => (bool more, float[N] next) {
                        more = Identity (on)
                        two = Constant <value = int64 {2}> ()
                        odd = Mod (i, two)
                        is = Cast <to = 9> (odd)
                        next = If (is) <
                            then_branch = lt () => (float[N] p) { p = Add (s, x) },
                            else_branch = le () => (float[N] q) { q = Neg (s) }> }> },
            else_branch = e () => (float[N] b) { b = Abs (x) }>
    }"""
    check_file(from_onnx(text, tmp_path), (True, 0, X), (True, 3, X), (False, 3, X))


SCAN = """m (float[N] x, float[A,N] xs) => (float[N] last, float[A,N] all) {
    last, all = Scan <num_scan_inputs = 1, body = b (float[N] s, float[N] part)
        => (float[N] next, float[N] each) { next = Add (s, part) each = Mul (next, next) }>
        (x, xs)
}"""


def test_tensor_iterator(tmp_path: Path) -> None:
    xml = from_onnx(SCAN, tmp_path)
    assert 'type="TensorIterator"' in xml.read_text()
    made = check_file(xml, (X, np.float32([[1, 2], [3, 4], [5, 6]])))
    assert 'type="TensorIterator" version="opset1"' in made.read_text()
    node = the("Loop", made)
    assert node.inputs[:2] == [None, None]
    assert {type(port) for port in node.bodies[0].inputs} == {Carried, Sliced}
    assert {type(port) for port in node.bodies[0].outputs} >= {Yield, Stacked}


def test_tensor_iterator_backwards_along_another_axis(tmp_path: Path) -> None:
    text = SCAN.replace(
        "num_scan_inputs = 1,",
        "num_scan_inputs = 1, scan_input_axes = [1], scan_input_directions = [1], "
        "scan_output_axes = [1], scan_output_directions = [1],",
    ).replace("float[A,N]", "float[N,A]")
    made = check_file(from_onnx(text, tmp_path), (X, np.float32([[1, 2, 3], [4, 5, 6]])))
    sliced = next(p for p in the("Loop", made).bodies[0].inputs if isinstance(p, Sliced))
    assert (sliced.axis, sliced.start, sliced.stride, sliced.end) == (1, -1, -1, 0)


# IR by hand.


def ports(kind: str, first: int, types: Sequence[str]) -> str:
    """The `<input>` or `<output>` of a layer: "FP32 2 3" is a precision and dimensions."""
    lines = []
    for id, text in enumerate(types, first):
        precision, *dims = text.split()
        inner = "".join(f"<dim>{dim}</dim>" for dim in dims)
        lines.append(f'<port id="{id}" precision="{precision}">{inner}</port>')
    return f"<{kind}>{''.join(lines)}</{kind}>" if types else ""


def layer(
    id: int, type: str, inputs: Sequence[str], outputs: Sequence[str], data: str = "",
    inside: str = "", version: str = "opset1", name: str = "",
) -> str:  # fmt: skip
    """A `<layer>`; its output ports are numbered after the input ports."""
    return (
        f'<layer id="{id}" name="{name or f"{type}_{id}"}" type="{type}" version="{version}">'
        f"{f'<data {data}/>' if data else ''}{ports('input', 0, inputs)}"
        f"{ports('output', len(inputs), outputs)}{inside}</layer>"
    )


def net(layers: Sequence[str], edges: str, version: int = 11, more: str = "") -> str:
    """An IR; edges are "from:port>to:port", separated by blanks."""
    return (
        f'<?xml version="1.0"?><net name="m" version="{version}">{graph(layers, edges)}{more}</net>'
    )


def graph(layers: Sequence[str], edges: str) -> str:
    lines = []
    for edge in edges.split():
        (source, port), (target, to) = (end.split(":") for end in edge.split(">"))
        lines.append(
            f'<edge from-layer="{source}" from-port="{port}" to-layer="{target}" to-port="{to}"/>'
        )
    return f"<layers>{''.join(layers)}</layers><edges>{''.join(lines)}</edges>"


def put(text: str, folder: Path, weights: bytes = b"") -> Path:
    """Writes an IR by hand."""
    (folder / "hand.bin").write_bytes(weights)
    (folder / "hand.xml").write_text(text, encoding="utf-8")
    return folder / "hand.xml"


PARAMETER = 'element_type="f32" shape="?"'
VECTOR_PORT = "FP32 -1"


def specification_if(first_output: int) -> str:
    """The specification's example. Each body has two Parameters, and some read an outer value that
    the other body does not read. The output ports of the maps count from `first_output`."""

    def entries(inputs: str, results: str) -> str:
        lines = [
            f'<input external_port_id="{port}" internal_layer_id="{inner}"/>'
            for port, inner in (pair.split(">") for pair in inputs.split())
        ]
        lines += [
            f'<output external_port_id="{first_output + index}" internal_layer_id="{inner}"/>'
            for index, inner in enumerate(results.split())
        ]
        return "".join(lines)

    def body(type: str) -> str:
        return graph(
            [
                layer(0, "Parameter", [], [VECTOR_PORT], PARAMETER),
                layer(1, "Parameter", [], [VECTOR_PORT], PARAMETER),
                layer(2, type, [VECTOR_PORT] * 2, [VECTOR_PORT]),
                layer(3, "Result", [VECTOR_PORT], []),
                layer(4, "Result", [VECTOR_PORT], []),
            ],
            "0:0>2:0 1:0>2:1 2:2>3:0 1:0>4:0",
        )

    inside = (
        f"<then_port_map>{entries('1>0 2>1', '3 4')}</then_port_map>"
        f"<else_port_map>{entries('1>1 3>0', '3 4')}</else_port_map>"
        f"<then_body>{body('Add')}</then_body><else_body>{body('Subtract')}</else_body>"
    )
    return net(
        [
            layer(0, "Parameter", [], ["BOOL"], 'element_type="boolean" shape=""', name="c"),
            layer(1, "Parameter", [], [VECTOR_PORT], PARAMETER, name="x"),
            layer(2, "Parameter", [], [VECTOR_PORT], PARAMETER, name="y"),
            layer(3, "Parameter", [], [VECTOR_PORT], PARAMETER, name="z"),
            layer(
                4, "If", ["BOOL", *[VECTOR_PORT] * 3], [VECTOR_PORT] * 2, inside=inside,
                version="opset8",
            ),
            layer(5, "Result", [VECTOR_PORT], [], name="first"),
            layer(6, "Result", [VECTOR_PORT], [], name="second"),
        ],
        "0:0>4:0 1:0>4:1 2:0>4:2 3:0>4:3 4:4>5:0 4:5>6:0",
    )  # fmt: skip


@pytest.mark.parametrize("first_output", [0, 4], ids=["specification", "openvino"])
def test_if_ports_in_either_numbering(first_output: int, tmp_path: Path) -> None:
    xml = put(specification_if(first_output), tmp_path)
    made = check_file(xml, (True, X, X * 2, X * 5), (False, X, X * 2, X * 5))
    node = the("If", made)
    assert node.bodies[0].inputs == [Invariant(1), Invariant(2)]
    assert node.bodies[1].inputs == [Invariant(3), Invariant(1)]
    assert [body.outputs for body in node.bodies] == [[Yield(0), Yield(1)]] * 2
    assert 'external_port_id="4"' in made.read_text()
    assert read(made).graph.output_names == ["first", "second"]


def loop_body_with_odd_iteration(element: str) -> str:
    """A Loop whose body sees the number of the iteration as a 1-D `element`."""
    precision = element.upper()
    body = graph(
        [
            layer(0, "Parameter", [], [f"{precision} 1"], f'element_type="{element}" shape="1"'),
            layer(1, "Parameter", [], ["BOOL"], 'element_type="boolean" shape=""'),
            layer(2, "Result", ["BOOL"], []),
            layer(3, "Result", [f"{precision} 1"], []),
        ],
        "0:0>3:0 1:0>2:0",
    )
    inside = (
        '<port_map><input external_port_id="2" internal_layer_id="1"/>'
        '<output axis="0" external_port_id="3" internal_layer_id="3"/>'
        '<input external_port_id="-1" internal_layer_id="0" purpose="current_iteration"/>'
        '<output external_port_id="-1" internal_layer_id="2" purpose="execution_condition"/>'
        f"</port_map><body>{body}</body>"
    )
    return net(
        [
            layer(0, "Parameter", [], ["I64"], 'element_type="i64" shape=""', name="n"),
            layer(1, "Parameter", [], ["BOOL"], 'element_type="boolean" shape=""', name="c"),
            layer(
                2, "Loop", ["I64", "BOOL", "BOOL"], [f"{precision} -1"], inside=inside,
                version="opset5",
            ),
            layer(3, "Result", [f"{precision} -1"], []),
        ],
        "0:0>2:0 1:0>2:1 1:0>2:2 2:3>3:0",
    )  # fmt: skip


@pytest.mark.parametrize("element", ["i64", "i32"])
def test_loop_with_1d_iteration(element: str, tmp_path: Path) -> None:
    xml = put(loop_body_with_odd_iteration(element), tmp_path)
    made = check_file(xml, (3, True), (3, False))
    assert run(made, 3, True)[0].tolist() == [0, 1, 2]


def with_integer_condition(text: str, folder: Path) -> OnnxRuntime:
    xml = put(text.replace("BOOL", "I32").replace("boolean", "i32"), folder)
    onnx.checker.check_model(made := bridge.to_onnx(xml), full_check=True)
    return OnnxRuntime(made)


def test_if_with_an_integer_condition(tmp_path: Path) -> None:
    session = with_integer_condition(specification_if(4), tmp_path)
    for condition in map(np.int32, (0, 1)):
        found = session.run({"c": np.asarray(condition), "x": X, "y": X * 2, "z": X * 5})
        wanted = run(tmp_path / "hand.xml", condition, X, X * 2, X * 5)
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one, other)


def test_loop_with_integer_conditions(tmp_path: Path) -> None:
    """OpenVINO reads it, but its CPU plugin cannot run it."""
    session = with_integer_condition(loop_body_with_odd_iteration("i64"), tmp_path)
    for condition, count in ((0, 0), (1, 3)):
        (found,) = session.run({"n": np.array(3), "c": np.array(condition, np.int32)})
        assert found.reshape(-1).tolist() == [*range(count)]


def test_layers_in_any_order(tmp_path: Path) -> None:
    xml = put(
        net(
            [
                layer(9, "Result", [VECTOR_PORT], [], name="second"),
                layer(4, "Abs", [VECTOR_PORT], [VECTOR_PORT]),
                layer(7, "Parameter", [], [VECTOR_PORT], PARAMETER, name="b"),
                layer(1, "Result", [VECTOR_PORT], [], name="first"),
                layer(3, "Add", [VECTOR_PORT] * 2, [VECTOR_PORT]),
                layer(5, "Parameter", [], [VECTOR_PORT], PARAMETER, name="a"),
            ],
            "5:0>3:0 4:1>3:1 7:0>4:0 3:2>9:0 4:1>1:0",
        ),
        tmp_path,
    )
    made = check_file(xml, (X, X * 3))
    read_again = read(made).graph
    assert [value.name for value in read_again.inputs] == ["b", "a"]
    assert read_again.output_names == ["second", "first"]


def test_deep_nesting(tmp_path: Path) -> None:
    # OpenVINO takes many minutes to compile this, so it does not run here.
    inner = Body(Graph([Value(TensorType(BOOL, ())), x := Value(VECTOR)], [x]))
    inner.inputs, inner.outputs = [Invariant(1), Invariant(2)], [Yield(0)]
    other = Body(Graph([y := Value(VECTOR)], [y]), [Invariant(2)], [Yield(0)])
    for _ in range(60):
        condition, value = Value(TensorType(BOOL, ())), Value(VECTOR)
        graph = Graph([condition, value])
        node = Builder(graph.nodes).node(
            "If", [condition, condition, value], 1, {}, (inner, other)
        )  # fmt: skip
        graph.outputs = node.outputs
        inner = Body(graph, [Invariant(1), Invariant(2)], [Yield(0)])
    xml = store(Model(graph, "onnx"), tmp_path / "deep.xml")
    assert sum(node.op == "If" for node in read(again(xml)).graph.walk()) == 60


# Names.


@pytest.mark.parametrize(
    "listed", [["a"], ["a,b", "c"], ["\\,", "x,"], [",", "b\\"], ["a\\b", "é \n<&>\"'"]]
)
def test_names_are_listed_and_read_again(listed: list[str]) -> None:
    assert split_names(join_names(listed)) == listed


def identity_model(inputs: Sequence[str], outputs: Sequence[str]) -> Model:
    """Every output is the absolute value of an input, or an input (`=name`)."""
    values = {name: Value(VECTOR, [name]) for name in inputs}
    graph = Graph(list(values.values()))
    builder = Builder(graph.nodes)
    for index, name in enumerate(outputs):
        source = graph.inputs[index % len(graph.inputs)]
        made = source if name.startswith("=") else builder.op("Abs", source)
        graph.outputs.append(made)
    graph.output_names = [name.removeprefix("=") for name in outputs]
    return Model(graph, "onnx")


ODD = ["a,b", "back\\slash", "end\\", "<&>\"'", "tab\tline\n", "日本", " ", "x:0"]


@pytest.mark.parametrize("name", ODD)
def test_odd_names(name: str, tmp_path: Path) -> None:
    xml = store(identity_model([name], [name + "2"]), tmp_path / "m.xml")
    assert names(xml) == [{name}, {name + "2"}]
    assert names(again(xml)) == [{name}, {name + "2"}]
    graph = read(xml).graph
    assert (graph.inputs[0].name, graph.output_names) == (name, [name + "2"])


def test_characters_that_xml_cannot_hold(tmp_path: Path) -> None:
    xml = store(identity_model(["a\x01", "a\x02"], ["b\x00"]), tmp_path / "m.xml")
    first, second, output = (next(iter(found)) for found in names(again(xml)))
    assert first != second
    assert output == "b\ufffd"


def test_names_that_collide_or_are_missing(tmp_path: Path) -> None:
    model = identity_model(["x", "y", "z"], ["x", "", "p"])
    builder = Builder(model.graph.nodes)
    builder.node("Neg", [model.graph.inputs[0]], [Value(VECTOR, ["p"])])
    model.graph.outputs.append(model.graph.nodes[-1].outputs[0])
    model.graph.output_names.append("q")
    xml = store(model, tmp_path / "m.xml")
    found = names(xml)
    assert found[:3] == [{"x"}, {"y"}, {"z"}]
    assert len({name for port in found for name in port}) == 7
    assert "p" in found[5] and found[6] == {"q"}
    assert names(again(xml)) == found


def test_outputs_that_are_inputs_and_constants(tmp_path: Path) -> None:
    model = identity_model(["x"], ["=x", "=same", "abs"])
    constant = Builder(model.graph.nodes).constant(np.float32([3, 4]))
    model.graph.outputs += [constant, constant]
    model.graph.output_names += ["k", "k,2"]
    xml = store(model, tmp_path / "m.xml")
    for file in (xml, again(xml)):
        compiled = CORE.compile_model(CORE.read_model(file), "CPU")
        results = compiled({"x": X})
        for name, expected in [
            ("x", X),
            ("same", X),
            ("abs", abs(X)),
            ("k", [3, 4]),
            ("k,2", [3, 4]),
        ]:
            np.testing.assert_array_equal(results[name], expected)
        assert read(file).graph.output_names == ["x", "same", "abs", "k", "k,2"]


def test_names_of_files_without_tensor_names(tmp_path: Path) -> None:
    layers = [
        layer(0, "Parameter", [], [VECTOR_PORT], PARAMETER, name="in"),
        layer(1, "Abs", [VECTOR_PORT], [VECTOR_PORT], name="absolute"),
        layer(2, "Result", [VECTOR_PORT], [], name="result"),
        layer(3, "Result", [VECTOR_PORT], [], name="other"),
    ]
    edges = "0:0>1:0 1:1>2:0 1:1>3:0"
    graph = read(put(net(layers, edges), tmp_path)).graph
    assert [value.name for value in graph.inputs] == ["in"]
    assert graph.output_names == ["result", "other"]
    # Version 10 names an output after the layer that makes it.
    graph = read(put(net(layers, edges, version=10), tmp_path)).graph
    assert graph.output_names == ["absolute", "other"]


def test_two_results_with_the_same_name(tmp_path: Path) -> None:
    node = op.relu(vector := op.parameter([-1], np.float32, name="x"))
    node.output(0).set_names({"y"})
    model = OpenVinoModel([op.result(node), op.result(node)], [vector], "m")
    xml = save(model, tmp_path)
    first, second = read(xml).graph.output_names
    assert first == "y" and second != "y"
    check_file(xml, (X,))


# Types and shapes.


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("", ()),
        ("...", None),
        ("2,3", (2, 3)),
        ("?,1..5,3", (ANY, Interval(1, 5), 3)),
        ("2..,..4", (Interval(2), Interval(0, 4))),
        ("[1, ?]", (1, ANY)),
        ("[...]", None),
    ],
)
def test_shapes(text: str, shape: object, tmp_path: Path) -> None:
    assert parse_shape(text) == shape
    assert parse_shape(format_shape(shape)) == shape
    port = layer(0, "Parameter", [], ["FP32"], f'element_type="f32" shape="{text}"')
    xml = put(net([port, layer(1, "Result", ["FP32"], [])], "0:0>1:0"), tmp_path)
    assert read(xml).graph.inputs[0].shape == shape
    expected = CORE.read_model(xml).input(0).partial_shape
    assert CORE.read_model(again(xml)).input(0).partial_shape == expected


def test_symbols_are_open_in_openvino_and_come_back(tmp_path: Path) -> None:
    value = Value(TensorType(F32, ("batch", 3, "a/b", "a/b")), ["x"])
    xml = store(Model(Graph([value], [value]), "onnx"), tmp_path / "m.xml")
    model = CORE.read_model(xml)
    assert str(model.input(0).partial_shape) == "[?,3,?,?]"
    model.reshape([-1, 3, 7, openvino.Dimension(1, 5)])
    for file, shape in (
        (xml, ("batch", 3, "a/b", "a/b")),
        (again(xml), ("batch", 3, "a/b", "a/b")),
        (save(model, tmp_path), ("batch", 3, 7, Interval(1, 5))),
    ):
        graph = read(file).graph
        assert graph.inputs[0].shape == graph.outputs[0].shape == shape


@pytest.mark.parametrize(
    "entry", ["", "no JSON", "[]", "{}", '{"x": ["n"]}', '{"x": 1}', '{"x": [1, "", null]}']
)
def test_symbols_that_say_nothing(entry: str, tmp_path: Path) -> None:
    value = Value(TensorType(F32, (ANY, ANY, ANY)), ["x"])
    model = Model(Graph([value], [value]), "onnx", metadata={"symbols": entry})
    xml = store(model, tmp_path / "m.xml")
    assert read(xml).graph.inputs[0].shape == (ANY, ANY, ANY)


@pytest.mark.parametrize(
    ("value", "text", "kind"),
    [
        (True, "true", "bool"),
        ((1, -2), "1, -2", "ints"),
        ((), "", "ints"),
        (0.1, "0.1", "float"),
        (float(np.float32(0.1)), "0.1", "float"),
        (1e-5, "1e-05", "float"),
        (-3.4028234663852886e38, "-3.4028234663852886e+38", "float"),
        (float("inf"), "inf", "float"),
        ((0.5, 2.0), "0.5, 2.0", "floats"),
        (BF16, "bf16", "element"),
        (BOOL, "boolean", "element"),
        ("a b", "a b", "string"),
    ],
)
def test_attribute_values(value: object, text: str, kind: str) -> None:
    assert format_value(value) == text
    found = parse(text, kind)
    assert np.float32(found) == np.float32(value) if kind == "float" else found == value


def test_bool_attributes_in_every_spelling() -> None:
    assert [parse(text, "bool") for text in ("true", "True", "1", "false", "0")] == [
        True, True, True, False, False,
    ]  # fmt: skip
    assert parse("yes", "bool") is None


# Constants.


def constants(*tensors: Tensor) -> Model:
    """A model whose outputs are constants."""
    graph = Graph()
    builder = Builder(graph.nodes)
    graph.outputs = [builder.tensor(tensor) for tensor in tensors]
    return Model(graph, "onnx")


def test_constants_of_all_types(tmp_path: Path) -> None:
    arrays = [
        np.arange(5, dtype=dtype)
        for dtype in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
    ]
    arrays += [
        np.array([True, False]),
        np.float32(3),
        np.zeros((0, 3), np.float32),
        np.ones((2, 1, 3), np.int64),
    ]
    xml = store(constants(*map(Tensor.of, arrays)), tmp_path / "m.xml")
    for file in (xml, again(xml)):
        for found, array in zip(run(file), arrays, strict=True):
            np.testing.assert_array_equal(found, array, strict=True)


@pytest.mark.parametrize(
    "name", ["i4", "u4", "u2", "u1", "u3", "u6", "nf4", "f4e2m1", "f8e4m3", "f8e5m2"]
)
def test_constants_of_small_elements(name: str, tmp_path: Path) -> None:
    size, precision = BY_IR[name].bits, BY_IR[name].precision
    data = bytes(range(17, 17 + size))
    k = layer(
        0,
        "Const",
        [],
        [f"{precision} 8"],
        f'element_type="{name}" shape="8" offset="0" size="{size}"',
    )
    xml = put(net([k, layer(1, "Result", [f"{precision} 8"], [])], "0:0>1:0"), tmp_path, data)
    made = again(xml)
    assert made.with_suffix(".bin").read_bytes() == data
    assert CORE.read_model(made).get_ops()[0].get_output_element_type(0).to_string() == name


def test_string_constants(tmp_path: Path) -> None:
    array = np.array([["ab", ""], ["déf", "x" * 99]])
    constant = openvino.op.Constant(openvino.Tensor(array))
    xml = save(OpenVinoModel([op.result(constant)], [], "m"), tmp_path)
    (node,) = read(xml).graph.nodes
    assert node.attributes["value"].array().tolist() == array.tolist()
    assert run(again(xml))[0].tolist() == array.tolist()


def test_empty_string_constant(tmp_path: Path) -> None:
    tensor = Tensor(STRING, (0, 2), np.empty((0, 2), object))
    xml = store(constants(tensor), tmp_path / "m.xml")
    assert read(again(xml)).graph.nodes[0].attributes["value"].shape == (0, 2)


def test_a_tensor_is_written_once_and_copied_from_file_to_file(tmp_path: Path) -> None:
    values = np.arange(1 << 20, dtype=np.float32)
    (tmp_path / "data").write_bytes(b"odd" + values.tobytes())
    source = FileRange(str(tmp_path / "data"), 3, values.nbytes)
    tensor, same = (Tensor(F32, values.shape, source) for _ in range(2))
    small = Tensor.of(np.float32([1, 2]))
    xml = store(constants(small, tensor, tensor, same, small), tmp_path / "m.xml")
    assert xml.with_suffix(".bin").stat().st_size == values.nbytes + 64
    assert tensor._array is None
    for file in (xml, again(xml)):
        found = run(file)
        np.testing.assert_array_equal(found[1], values)
        np.testing.assert_array_equal(found[3], values)
        np.testing.assert_array_equal(found[4], [1, 2])


def test_constants_stay_in_the_file(tmp_path: Path) -> None:
    xml = store(constants(Tensor.of(np.ones(3, np.float32))), tmp_path / "m.xml")
    source = read(xml).graph.nodes[0].attributes["value"].source
    assert source == FileRange(str(tmp_path / "m.bin"), 0, 12)
    elsewhere = xml.with_suffix(".bin").rename(tmp_path / "elsewhere")
    assert read(xml, elsewhere).graph.nodes[0].attributes["value"].array().tolist() == [1, 1, 1]


# What only IR knows.


def test_unknown_layers_are_kept(tmp_path: Path) -> None:
    xml = put(
        net(
            [
                layer(0, "Parameter", [], [VECTOR_PORT], PARAMETER, name="x"),
                layer(
                    1, "Custom", [VECTOR_PORT], ["FP32 2 -1"], 'what="a &lt; b" n="1"',
                    version="extension",
                ),
                layer(2, "Abs", ["FP32 2 -1"], ["FP32 2 -1"], ""),
                layer(3, "Result", ["FP32 2 -1"], []),
            ],
            "0:0>1:0 1:1>2:0 2:1>3:0",
        ),
        tmp_path,
    )  # fmt: skip
    custom = next(node for node in read(xml).graph.nodes if "Custom" in node.op)
    assert custom.op == "extension::Custom"
    assert custom.attributes == {"what": "a < b", "n": "1"}
    assert custom.outputs[0].type == TensorType(F32, (2, ANY))
    text = again(xml).read_text()
    assert 'type="Custom" version="extension"' in text
    assert 'what="a &lt; b" n="1"' in text


def test_rt_info_is_kept(tmp_path: Path) -> None:
    model = OpenVinoModel([op.result(x := op.parameter([-1, 3], np.float32, name="x"))], [x], "m")
    x.set_layout(openvino.Layout("NC"))
    model.set_rt_info("4.2", ["framework", "version"])
    model.set_rt_info({"a b": "c<&>"}, ["odd"])
    found = CORE.read_model(again(save(model, tmp_path)))
    assert found.get_parameters()[0].get_layout() == openvino.Layout("[N,C]")
    assert found.get_rt_info(["framework", "version"]).astype(str) == "4.2"
    assert found.get_rt_info(["odd", "a b"]).astype(str) == "c<&>"


def test_metadata_survives_openvino(tmp_path: Path) -> None:
    model = identity_model(["x"], ["y"])
    model.metadata = {"bridge.x": '["a"]', "odd <&>\n é": "v,\\ \t", "": "empty", "1": "2"}
    xml = store(model, tmp_path / "m.xml")
    assert read(again(xml)).metadata == model.metadata
    resaved = save(CORE.read_model(xml), tmp_path)
    assert read(resaved).metadata == model.metadata


def test_friendly_names_are_kept(tmp_path: Path) -> None:
    x = op.parameter([-1], np.float32, name="layer")
    x.output(0).set_names({"tensor"})
    node = op.relu(x)
    node.set_friendly_name("rectified")
    result = op.result(node)
    result.set_friendly_name("the result")
    made = CORE.read_model(check(OpenVinoModel([result], [x], "m"), tmp_path, (X,)))
    assert [o.get_friendly_name() for o in made.get_ordered_ops()] == [
        "layer", "rectified", "the result",
    ]  # fmt: skip


# Bodies that OpenVINO never writes for an ONNX file.


def scalar(element: Element, name: str) -> Value:
    return Value(TensorType(element, ()), [name])


@pytest.mark.parametrize(
    ("trip_count", "early_exit"), [(0, False), (3, False), (0, True), (3, True), (None, True)]
)
@pytest.mark.parametrize("condition", [None, True, False])
def test_loop_ports(
    trip_count: int | None, condition: bool | None, early_exit: bool, tmp_path: Path
) -> None:
    pair = TensorType(F32, (2,))
    n, c, x = scalar(I64, "n"), scalar(BOOL, "c"), Value(pair, ["x"])
    i, go, s = scalar(I64, "i"), scalar(BOOL, "go"), Value(pair, ["s"])
    body = Graph([i, go, s])
    builder = Builder(body.nodes)
    after = builder.op("Add", s, builder.op("Cast", i, to=F32))
    row = builder.op("Unsqueeze", after, builder.constant([0]))
    total = builder.op("ReduceSum", after, builder.constant([0]), keepdims=False)
    read = builder.op("Or", go, builder.op("Not", go))  # The state has a reader.
    on = builder.op("And", read, builder.op("Less", total, builder.constant(np.float32(5))))
    body.outputs = [on, after, row, on] if early_exit else [go, after, row, go]
    ports = [Condition() if early_exit else Yield(None), Yield(0), Stacked(1), Yield(2)]
    graph = Graph([v for v, used in ((n, trip_count), (c, condition), (x, x)) if used is not None])
    builder = Builder(graph.nodes)
    first = builder.constant(True) if condition is None else c
    node = builder.node(
        "Loop",
        [n if trip_count is not None else None, c if condition is not None else None, x, first],
        3,
        bodies=(Body(body, [Iteration(), Carried(3, 3), Carried(2, 1)], ports),),
    )
    graph.outputs, graph.output_names = node.outputs, ["last", "rows", "on"]
    xml = store(Model(graph, "onnx"), tmp_path / "m.xml")
    state, rows, going = X, [], condition is not False
    while going and len(rows) != trip_count:
        state = state + np.float32(len(rows))
        rows.append(state)
        going = not early_exit or bool(state.sum() < 5)
    feeds = [feed for feed in (trip_count, condition, X) if feed is not None]
    for file in (xml, again(xml)):
        last, all_rows, on_at_end = run(file, *feeds)
        np.testing.assert_array_equal(last, state)
        np.testing.assert_array_equal(all_rows, np.array(rows, np.float32).reshape(-1, 2))
        assert on_at_end == going


def test_if_condition_captured_and_a_value_captured_twice(tmp_path: Path) -> None:
    c, x = scalar(BOOL, "c"), Value(VECTOR, ["x"])
    d, a, b = scalar(BOOL, "d"), Value(VECTOR, ["a"]), Value(VECTOR, ["b"])
    then, otherwise = Graph([d, a, b]), Graph()
    builder = Builder(then.nodes)
    then.outputs = [builder.op("Add", a, b), d]
    builder = Builder(otherwise.nodes)
    otherwise.outputs = [builder.constant(np.float32([9])), builder.constant(False)]
    graph = Graph([c, x])
    node = Builder(graph.nodes).node(
        "If", [c, x], 2,
        bodies=(
            Body(then, [Invariant(0), Invariant(1), Invariant(1)], [Yield(0), Yield(1)]),
            Body(otherwise, [], [Yield(0), Yield(1)]),
        ),
    )  # fmt: skip
    graph.outputs = node.outputs
    xml = store(Model(graph, "onnx"), tmp_path / "m.xml")
    for file in (xml, again(xml)):
        assert [found.tolist() for found in run(file, True, X)] == [[-2, 4], True]
        assert [found.tolist() for found in run(file, False, X)] == [[9], False]


# Refusals.


def valid_layers() -> list[str]:
    return [
        layer(0, "Parameter", [], [VECTOR_PORT], PARAMETER, name="x"),
        layer(1, "Abs", [VECTOR_PORT], [VECTOR_PORT], name="a"),
        layer(2, "Result", [VECTOR_PORT], []),
    ]


VALID = net(valid_layers(), "0:0>1:0 1:1>2:0")
CONST = layer(
    0, "Const", [], ["FP32 2"], 'element_type="f32" shape="2" offset="4" size="8"', name="k"
)
WITH_CONST = net([CONST, layer(1, "Result", ["FP32 2"], [])], "0:0>1:0")


SUM = net(
    [
        *valid_layers()[:1],
        layer(1, "Add", [VECTOR_PORT] * 2, [VECTOR_PORT], 'auto_broadcast="numpy"', name="s"),
        layer(2, "Result", [VECTOR_PORT], []),
    ],
    "0:0>1:0 0:0>1:1 1:2>2:0",
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is no whole XML file"),
        (VALID[:-20], "is no whole XML file"),
        ("<model/>", "is no OpenVINO IR"),
        ("<net version='11'/>", "is no OpenVINO IR: its <net> has no <layers>"),
        ('<!DOCTYPE net [<!ENTITY a "b">]>' + VALID[21:], "document type"),
        ('<!-- <net> --><!DOCTYPE net [<!ENTITY a "b">]>' + VALID[21:], "document type"),
        (VALID.replace('version="11"', 'version="7"'), "convert the original model anew"),
        (VALID.replace('version="11"', 'version="12"'), "is IR version 12; Bridge reads 10 and 11"),
        (VALID.replace('version="11"', 'version="7"'), "convert the original model anew"),
        (WITH_CONST.replace('element_type="f32"', 'execOrder="1"'), "is the runtime form of a"),
        (VALID.replace("opset1", "opset99"), 'layer "x" is of operator set 99; Bridge knows 1 to'),
        (VALID.replace('shape="?"', 'shape="5..2"'), 'Parameter "x": "5..2" is no dimension'),
        (VALID.replace('shape="?"', 'shape="1.. 4"'), '"1.. 4" is no dimension'),
        (VALID.replace('shape="?"', 'shape="-2"'), '"-2" is no dimension'),
        (SUM.replace("numpy", "other"), 'Add "s": auto_broadcast "other" is not numpy'),
        (VALID.replace('version="11"', 'version="x"'), "number version"),
        (VALID.replace('to-layer="2"', 'to-layer="5"'), "layer 5, port 0: there is no such layer"),
        (VALID.replace('from-port="1"', 'from-port="3"'), "there is no output port 3"),
        (VALID.replace('id="2" name', 'id="1" name'), "two layers have the id 1"),
        (VALID.replace("FP32", "FP31"), 'no element type "FP31"'),
        (VALID.replace('shape="?"', 'shape="a"'), 'Parameter "x": "a" is no dimension'),
        (net(valid_layers(), "1:1>1:0 1:1>2:0"), 'Abs "a": is part of a cycle'),
        (net(valid_layers(), "0:0>1:0 1:1>2:0 0:0>2:0"), "two edges lead to layer 2, port 0"),
        (net(valid_layers(), "0:0>1:0"), "nothing is connected to it"),
        (WITH_CONST.replace('offset="4"', 'offset="5"'), 'Const "k": its 8 bytes at 5 are outside'),
        (WITH_CONST.replace('size="8"', 'size="4"'), "has 4 bytes where it needs 8"),
        (WITH_CONST.replace('shape="2"', 'shape="-2"'), "needs an element type and a shape"),
        (specification_if(0).replace('"3" internal', '"9" internal'), "names input port 9"),
        (specification_if(0).replace('internal_layer_id="3"', 'internal_layer_id="7"'), "id 7"),
        (specification_if(0).replace("else_body>", "no_body>"), "else_body: is missing"),
        (
            loop_body_with_odd_iteration("i64").replace(
                'internal_layer_id="1"/>', 'internal_layer_id="1" purpose="current_iteration"/>'
            ),
            "two layers of the body are the current_iteration",
        ),
    ],
)
def test_invalid_files(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidModelError, match=re.escape(message)):
        read(put(text, tmp_path, b"0" * 12))


def test_document_type_in_another_encoding(tmp_path: Path) -> None:
    text = '<?xml version="1.0" encoding="UTF-16"?><!DOCTYPE net>' + VALID[21:]
    xml = put("", tmp_path)
    xml.write_bytes(text.encode("utf-16"))
    with pytest.raises(InvalidModelError, match="document type"):
        read(xml)


@pytest.mark.parametrize("flag", ["1", "True", "0"])
def test_rounding_of_integer_division(flag: str, tmp_path: Path) -> None:
    """Every spelling of a boolean. OpenVINO's CPU plugin ignores this attribute, and so does the
    ONNX model."""
    data = f'auto_broadcast="none" m_pythondiv="{flag}"'
    parameter = 'element_type="i32" shape="1"'
    xml = put(
        net(
            [
                layer(0, "Parameter", [], ["I32 1"], parameter, name="x"),
                layer(1, "Parameter", [], ["I32 1"], parameter, name="y"),
                layer(2, "Divide", ["I32 1"] * 2, ["I32 1"], data),
                layer(3, "Result", ["I32 1"], []),
            ],
            "0:0>2:0 1:0>2:1 2:2>3:0",
        ),
        tmp_path,
    )
    x, y = np.array([-5], np.int32), np.array([2], np.int32)
    assert run(xml, x, y)[0].tolist() == [-2]
    assert OnnxRuntime(bridge.to_onnx(xml)).run({"x": x, "y": y})[0].tolist() == [-2]


@pytest.mark.parametrize("replacement", [None, "", "7", "-1", "Result"])
def test_damaged_files_are_refused_or_read(replacement: str | None, tmp_path: Path) -> None:
    """Any change of an attribute raises a BridgeError or none."""
    for text in (specification_if(4), loop_body_with_odd_iteration("i32"), WITH_CONST):
        found = list(re.finditer(r' [\w-]+="[^"]*"', text))
        for match in found:
            name = match[0].split("=")[0]
            with_damage = "" if replacement is None else f'{name}="{replacement}"'
            damaged = text[: match.start()] + with_damage + text[match.end() :]
            with suppress(BridgeError):
                read(put(damaged, tmp_path, b"0" * 12))


def test_missing_weights(tmp_path: Path) -> None:
    xml = put(WITH_CONST, tmp_path)
    xml.with_suffix(".bin").unlink()
    with pytest.raises(InvalidModelError, match=r"hand\.bin: the weights cannot be read"):
        read(xml)


def test_values_that_openvino_has_no_type_for(tmp_path: Path) -> None:
    graph = Graph([unknown := Value(TensorType(None, ()), ["u"])])
    graph.outputs = [unknown, Builder(graph.nodes).tensor(Tensor(C64, (1,), b"01234567"))]
    with pytest.raises(UnsupportedError) as raised:
        write(Model(graph, "onnx"), tmp_path / "m.xml", tmp_path / "m.bin")
    assert len(raised.value.findings) == 2
    assert "c64" in str(raised.value) and '"u"' in str(raised.value)
    assert not (tmp_path / "m.xml").exists()
