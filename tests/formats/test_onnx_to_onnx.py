"""Content that only ONNX can express passes from ONNX to ONNX unchanged."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import AttributeProto, TensorProto, helper, numpy_helper

import bridge
from tests.support.running import OnnxRuntime, OpenVino, assert_close

FLOAT = helper.make_tensor_type_proto(TensorProto.FLOAT, [2])
MAP = helper.make_map_type_proto(TensorProto.STRING, FLOAT)
SPARSE = helper.make_sparse_tensor(
    numpy_helper.from_array(np.array([1.5], np.float32), "values"),
    numpy_helper.from_array(np.array([3]), "indices"),
    [5],
)
LARGE = numpy_helper.from_array(np.arange(1 << 15, dtype=np.float32), "large")


def model_of(nodes: list[onnx.NodeProto], input: onnx.TypeProto, *outputs: onnx.TypeProto) -> (
    onnx.ModelProto
):  # fmt: skip
    """A model with the input x and the outputs y0, y1, ..."""
    infos = [helper.make_value_info(f"y{i}", type) for i, type in enumerate(outputs)]
    graph = helper.make_graph(nodes, "g", [helper.make_value_info("x", input)], infos)
    imports = [helper.make_opsetid(d, v) for d, v in (("", 17), ("ai.onnx.ml", 3), ("my", 2))]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def converted(model: onnx.ModelProto, folder: Path) -> onnx.ModelProto:
    """The model after its way through files."""
    onnx.save(model, folder / "a.onnx")
    bridge.convert(folder / "a.onnx", folder / "b.onnx")
    return onnx.load(folder / "b.onnx")


@pytest.mark.parametrize(
    "type",
    [
        FLOAT,
        MAP,
        helper.make_sequence_type_proto(MAP),
        helper.make_optional_type_proto(MAP),
        helper.make_sparse_tensor_type_proto(TensorProto.FLOAT, [2, "n"]),
    ],
    ids=lambda type: type.WhichOneof("value"),
)
def test_types(type: onnx.TypeProto, tmp_path: Path) -> None:
    nodes = [helper.make_node("Foo", ["x"], ["v"], domain="my")]
    nodes.append(helper.make_node("Bar", ["v"], ["y0"], domain="my"))
    model = model_of(nodes, type, type)
    model.graph.value_info.add(name="v", type=type)
    result = converted(model, tmp_path).graph
    for field in ("input", "output", "value_info"):
        assert list(getattr(result, field)) == list(getattr(model.graph, field))


@pytest.mark.parametrize(
    "fields",
    [
        {"type": AttributeProto.FLOATS},
        {"type": AttributeProto.STRINGS},
        {"type": AttributeProto.INTS},
        {"type": AttributeProto.FLOATS, "floats": [0.1, 2]},
        {"type": AttributeProto.STRING, "s": b"\xff\x00"},
        {"type": AttributeProto.TENSOR, "t": LARGE},
        {"type": AttributeProto.TENSORS, "tensors": [LARGE, LARGE]},
        {"type": AttributeProto.SPARSE_TENSOR, "sparse_tensor": SPARSE},
        {"type": AttributeProto.SPARSE_TENSORS, "sparse_tensors": [SPARSE]},
        {"type": AttributeProto.TYPE_PROTO, "tp": MAP},
        {"type": AttributeProto.TYPE_PROTOS, "type_protos": [FLOAT, MAP]},
    ],
    ids=lambda fields: f"{AttributeProto.AttributeType.Name(fields['type'])} {len(fields)}",
)
@pytest.mark.parametrize("external", [False, True])
def test_attributes_of_unknown_operators(fields: dict, external: bool, tmp_path: Path) -> None:
    node = helper.make_node("Foo", ["x"], ["y0"], domain="my")
    node.attribute.append(AttributeProto(name="a", **fields))
    model = model_of([node], FLOAT, FLOAT)
    if external:
        onnx.external_data_helper.convert_model_to_external_data(model, convert_attribute=True)
    (found,) = converted(model, tmp_path).graph.node[0].attribute
    if fields["type"] == AttributeProto.TENSOR:
        found.t.name = LARGE.name
    assert found == AttributeProto(name="a", **fields)


def test_optional_outputs_stay_absent(tmp_path: Path) -> None:
    """Engines compute each named output, and take some names as a request for training."""
    nodes = [
        helper.make_node("MaxPool", ["x"], ["p", ""], kernel_shape=[1, 1]),
        helper.make_node("Shape", ["p"], ["y0"]),
        helper.make_node("LSTM", ["l", "w", "w"], ["", "y1", ""], hidden_size=1),
        helper.make_node("Foo", ["p"], ["", "y2", ""], domain="my"),
    ]
    image = helper.make_tensor_type_proto(TensorProto.FLOAT, [1, 1, 2, 2])
    vector = helper.make_tensor_type_proto(TensorProto.INT64, [4])
    model = model_of(nodes, image, vector, FLOAT, FLOAT)
    for name in "lw":
        model.graph.input.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4, 1]))
    found = {node.op_type: list(node.output) for node in converted(model, tmp_path).graph.node}
    assert found == {"MaxPool": ["p"], "Shape": ["y0"], "LSTM": ["", "y1"], "Foo": ["", "y2", ""]}


def test_notes(tmp_path: Path) -> None:
    """Documentation and metadata, wherever a model has them."""
    model = model_of([helper.make_node("Neg", ["x"], ["y0"], "n")], FLOAT, FLOAT)
    graph = model.graph
    for part in (model, graph, graph.input[0], graph.output[0], graph.node[0]):
        part.doc_string = "words"
        part.metadata_props.add(key="k", value="v")
    result = converted(model, tmp_path)
    assert result.graph == graph
    assert result.doc_string == "words"
    assert result.metadata_props == model.metadata_props


def test_absent_training_outputs(tmp_path: Path) -> None:
    """Before operator set 14, further named outputs of BatchNormalization meant training."""
    outputs = ["y0", "", "", "", ""]
    node = helper.make_node("BatchNormalization", ["x", "s", "s", "s", "s"], outputs)
    image = helper.make_tensor_type_proto(TensorProto.FLOAT, [1, 1, 2, 2])
    model = model_of([node], image, image)
    model.graph.initializer.append(numpy_helper.from_array(np.ones(1, np.float32), "s"))
    model.opset_import[0].version = 9
    bridge.convert(model, tmp_path / "a.xml")
    assert list(converted(model, tmp_path).graph.node[0].output) == ["y0"]


@pytest.mark.parametrize("source", [None, 3, io.StringIO("")])
def test_what_is_no_source(source: object) -> None:
    with pytest.raises(bridge.UsageError, match="path"):
        bridge.load(source)


GIVEN_GRAPH = """
<ir_version: 8, opset_import: ["": 17, "local": 1]>
function_given_graph (bool c, bool d, float[2] x) => (float[2] y) {
  v = Exp (x)
  y = If (d) <
    then_branch = outer_then () => (float[2] p) {
      w = Sin (x)
      p = local.twice <branch = given () => (float[2] q) { r = Add (v, w) q = Mul (r, x) }> (c, w)
    },
    else_branch = outer_else () => (float[2] s) { s = Identity (v) }
  >
}
<domain: "local", opset_import: ["": 17, "local": 1]>
twice <branch> (c, x) => (y) {
  v = Neg (x)
  w = local.either <branch: graph = @branch> (c, v)
  y = Add (w, v)
}
<domain: "local", opset_import: ["": 17, "local": 1]>
either <branch> (c, x) => (y) {
  w = Cos (x)
  n = Not (c)
  y = If (c) <
    then_branch: graph = @branch,
    else_branch = inner () => (float[2] z) {
      u = If (n) <
        then_branch: graph = @branch,
        else_branch = never () => (float[2] t) { t = Abs (w) }
      >
      z = Add (u, w)
    }
  >
}
"""


@pytest.mark.parametrize("suffix", [".onnx", ".xml"])
def test_graphs_given_to_functions(suffix: str, tmp_path: Path) -> None:
    """A branch as a function's attribute reads values of the caller.

    Here the call is two calls deep, from inside another If, and values of the functions have the
    same names. Neither onnxruntime nor the standard's inliner accepts that, so numpy computes the
    numbers.
    """
    path = tmp_path / f"a{suffix}"
    bridge.convert(onnx.parser.parse_model(GIVEN_GRAPH), path)
    x = np.array([0.3, -1.2], np.float32)
    v, w = np.exp(x), np.sin(x)
    given = (v + w) * x
    for c, expected in ((True, given - w), (False, given + np.cos(-w) - w)):
        feed = {"c": np.array(c), "d": np.array(True), "x": x}
        if suffix == ".onnx":
            result = OnnxRuntime(path).run(feed)
        else:
            result = OpenVino(path).run(list(feed.values()))
        assert_close(result, [expected])


def test_types_that_the_file_does_not_say(tmp_path: Path) -> None:
    """Types of an If's outputs are not added: a checker of the file may infer more precise ones."""
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        g (bool c, float[2] x) => (float[N] y) {
          v = If (c) <then_branch = t () => (float[2] a) { a = Neg (x) },
                      else_branch = e () => (float[2] b) { b = Abs (x) }>
          y = Relu (v)
        }""")
    assert not model.graph.value_info
    assert not converted(model, tmp_path).graph.value_info


def test_a_graph_in_an_operator_of_another_domain_is_named(tmp_path: Path) -> None:
    inner = helper.make_graph([], "inner", [], [])
    model = model_of([helper.make_node("Search", ["x"], ["y0"], domain="my", decoder=inner)], FLOAT)
    with pytest.raises(bridge.UnsupportedError, match=r'\("decoder"\).* save the graph as a'):
        converted(model, tmp_path)


@pytest.mark.parametrize("place", ["initializer", "attribute"])
def test_large_tensors_that_say_where_their_data_are(place: str, tmp_path: Path) -> None:
    """Tensors as onnx leaves them after it loaded external data: they claim that their data are in
    the file."""
    large = onnx.TensorProto()
    large.CopyFrom(LARGE)
    large.data_location = TensorProto.DEFAULT
    assert large.HasField("data_location")
    if place == "initializer":
        model = model_of([helper.make_node("Add", ["x", "large"], ["y0"])], FLOAT, FLOAT)
        model.graph.initializer.append(large)
        model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = LARGE.dims[0]
        model.graph.output[0].type.tensor_type.shape.dim[0].dim_value = LARGE.dims[0]
    else:
        model = model_of([helper.make_node("Constant", [], ["y0"], value=large)], FLOAT, FLOAT)
        model.graph.output[0].type.tensor_type.shape.dim[0].dim_value = LARGE.dims[0]
    back = converted(model, tmp_path)
    tensors = [*back.graph.initializer, *(a.t for n in back.graph.node for a in n.attribute)]
    assert any(
        np.array_equal(numpy_helper.to_array(t), numpy_helper.to_array(LARGE)) for t in tensors
    )
