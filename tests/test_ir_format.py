"""OpenVINO IR read and written: the same numbers in OpenVINO, and stable bytes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import openvino
import pytest
from openvino import Model as OpenVinoModel
from openvino import opset13 as op

from bridge.errors import InvalidModelError, UnsupportedError
from bridge.ir_format.attributes import format_shape, format_value, parse, parse_shape
from bridge.ir_format.backend import write
from bridge.ir_format.frontend import read
from bridge.ir_format.names import join_names, split_names
from bridge.neutral.builder import Builder, Target
from bridge.neutral.graph import (
    Body,
    Carried,
    Condition,
    Graph,
    Invariant,
    Iteration,
    Model,
    Node,
    Sliced,
    Stacked,
    Value,
    Yield,
)
from bridge.neutral.tensor import FileRange, Tensor
from bridge.neutral.types import ANY, BF16, BOOL, C64, F32, I64, STRING, Interval, TensorType
from bridge.passes.expand import expand

CORE = openvino.Core()
F32_PRECISION = {"INFERENCE_PRECISION_HINT": "f32"}
VECTOR = TensorType(F32, (ANY,))
X = np.array([-1, 2], np.float32)


def run(xml: Path, *feeds: object) -> list[np.ndarray]:
    """The outputs of an IR file on OpenVINO's CPU plugin."""
    compiled = CORE.compile_model(CORE.read_model(xml), "CPU", F32_PRECISION)
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
    findings = expand(model, Target("ir"))
    assert not findings
    write(model, xml, xml.with_suffix(".bin"))
    return xml


def again(xml: Path) -> Path:
    """The IR that Bridge makes of an IR; the second time it comes out byte for byte the same."""
    once = store(read(xml), xml.with_name("once.xml"))
    twice = store(read(once), xml.with_name("twice.xml"))
    assert twice.read_text() == once.read_text()
    assert twice.with_suffix(".bin").read_bytes() == once.with_suffix(".bin").read_bytes()
    return once


def check(model: OpenVinoModel, folder: Path, *feed_sets: tuple[object, ...]) -> Path:
    """Saves a model, converts it to IR, and compares the outputs of both; the new IR."""
    return check_file(save(model, folder), *feed_sets)


def check_file(xml: Path, *feed_sets: tuple[object, ...]) -> Path:
    """Converts an IR to IR and compares the outputs of both; the new IR."""
    made = again(xml)
    for feeds in feed_sets:
        for expected, found in zip(run(xml, *feeds), run(made, *feeds), strict=True):
            np.testing.assert_array_equal(found, expected, strict=True)
    return made


def from_onnx(text: str, folder: Path) -> Path:
    """The IR that OpenVINO makes of an ONNX model in ONNX's text syntax."""
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


def test_loop_without_condition(tmp_path: Path) -> None:
    text = LOOP.replace("bool c, ", "").replace("(n, c, x)", '(n, "", x)')
    check_file(from_onnx(text, tmp_path), (3, X), (0, X))


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
    """An IR; edges are "from:port>to:port", parted by blanks."""
    return f'<?xml version="1.0"?><net name="m" version="{version}">{graph(layers, edges)}{more}</net>'


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
    """The specification's example: two Parameters in each body, of which each body uses one
    outer value by its own port; the output ports of the maps start at `first_output`."""

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
