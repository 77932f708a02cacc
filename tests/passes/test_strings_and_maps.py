"""Strings from a vocabulary and maps become places and rows in IR, and come back in ONNX."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import bridge
from bridge.check import check
from bridge.records.boundary import MAP_KEYS, VOCABULARIES, LabelRecord
from bridge.records.entry import Entry
from tests.support.running import OnnxRuntime, OpenVino, assert_close

ML = "ai.onnx.ml"
X = np.random.default_rng(3).normal(size=(7, 3)).astype(np.float32)
WORDS = np.array([["red", "blue"], ["pink", "red"], ["", "green"], ["blue", "?"]], object)

HEAD = f'<ir_version: 9, opset_import: ["" : 19, "{ML}" : 3]>'
STRINGS = {
    "label encoder to numbers": """g (string[n, 2] x) => (float[n, 2] y) {
        y = ai.onnx.ml.LabelEncoder <keys_strings = ["red", "blue"], values_floats = [1.5, 2.5],
            default_float = -1.0> (x) }""",
    "label encoder to strings": """g (string[n, 2] x) => (string[n, 2] y) {
        y = ai.onnx.ml.LabelEncoder <keys_strings = ["red", "blue"],
            values_strings = ["rot", "blau"], default_string = "andere"> (x) }""",
    "one hot": """g (string[n, 2] x) => (float[n, 2, 3] y) {
        y = ai.onnx.ml.OneHotEncoder <cats_strings = ["blue", "green", "red"], zeros = 1> (x) }""",
    "category mapper": """g (string[n, 2] x) => (int64[n, 2] y) {
        y = ai.onnx.ml.CategoryMapper <cats_strings = ["red", "blue"], cats_int64s = [7, 9]> (x)
        }""",
    "one vocabulary for two": """g (string[n, 2] x) => (float[n, 2] y, int64[n, 2] z) {
        y = ai.onnx.ml.LabelEncoder <keys_strings = ["red"], values_floats = [1.5]> (x)
        same = Identity(x)
        z = ai.onnx.ml.LabelEncoder <keys_strings = ["blue", "red"], values_int64s = [3, 4]> (same)
        }""",
    "compared": """g (string[n, 2] x) => (bool[n, 2] y) <string[1] word = {"blue"}> {
        y = Equal(x, word) }""",
    "moved": """g (string[n, 2] x) => (int64[k] y)
        <string[1, 2] more = {"green", "red"}, int64[1] all = {-1}> {
        rows = Concat <axis = 0> (x, more)
        turned = Transpose (rows)
        flat = Reshape (turned, all)
        y = ai.onnx.ml.LabelEncoder <keys_strings = ["green", "red"], values_int64s = [1, 2]> (flat)
        }""",
    "chosen": """g (string[n, 2] x) => (string[n, 2] y)
        <string[1] word = {"blue"}, string[1] other = {"no"}> {
        same = Equal(x, word)
        y = Where(same, word, other) }""",
    "numbers in strings": """g (string[n, 2] x) => (float[n, 2] y) {
        word = ai.onnx.ml.LabelEncoder <keys_strings = ["red", "blue"],
            values_strings = ["10", "2.5"], default_string = "-1"> (x)
        y = Cast <to = 1> (word) }""",
    "integers written out": """g (int64[n, 3] z) => (float[n, 3] y) {
        word = Cast <to = 8> (z)
        y = ai.onnx.ml.LabelEncoder <keys_strings = ["-2", "7", "07", "x"],
            values_floats = [1.0, 2.0, 3.0, 4.0], default_float = -1.0> (word) }""",
    "sliced and stacked": """g (string[n, 2] x) => (string[n, 2] y, int64[n] k) {
        y, k = Scan <num_scan_inputs = 1, body = b (string[2] row) => (string[2] w, int64 m) {
            w = ai.onnx.ml.LabelEncoder <keys_strings = ["red"], values_strings = ["rot"],
                default_string = "-"> (row)
            m = Size (row) }> (x) }""",
    "sliced, and never asked": """g (string[n, 2] x) => (int64[n] k) {
        k = Scan <num_scan_inputs = 1, body = b (string[2] row) => (int64 m) {
            m = Size (row) }> (x) }""",
    "cut": """g (string[n, 2] x) => (int64[k, 2] y)
        <int64[1] start = {1}, int64[1] end = {3}, int64[2] twice = {2, 1}> {
        rows = Slice (x, start, end)
        more = Tile (rows, twice)
        y = ai.onnx.ml.LabelEncoder <keys_strings = ["red", "pink"], values_int64s = [1, 2]> (more)
        }""",
    "scattered": """g (string[n, 2] x) => (string[3] y)
        <string[3] words = {"red", "", "?"}, int64[1] at = {1}, string[1] word = {"blue"}> {
        y = ScatterElements (words, at, word) }""",
    "in an if": """g (string[n, 2] x, bool c) => (string[n, 2] y) <string[1] word = {"red"}> {
        code = ai.onnx.ml.LabelEncoder <keys_strings = ["red", "blue"], values_int64s = [0, 1],
            default_int64 = 2> (x)
        y = If (c) <
          then_branch = t () => (string[n, 2] a) {
            a = ai.onnx.ml.LabelEncoder <keys_int64s = [0, 1, 2],
                values_strings = ["r", "b", "-"]> (code) },
          else_branch = e () => (string[n, 2] b) {
            s = Equal(x, word)
            yes = Constant <value = string {"yes"}> ()
            no = Constant <value = string {"no"}> ()
            b = Where(s, yes, no) }
        > }""",
}


# LabelEncoder-1.
CLASSES = {
    "places": """g (string[n, 2] x) => (int64[n, 2] y) {
        y = ai.onnx.ml.LabelEncoder <classes_strings = ["red", "", "blue"], default_int64 = 7> (x)
        }""",
    "strings": """g (int64[n, 3] z) => (string[n, 3] y) {
        y = ai.onnx.ml.LabelEncoder <classes_strings = ["red", "blue"]> (z) }""",
    "both, and a classifier of another version": """g (string[n, 2] x) => (string[n, 2] y) {
        code = ai.onnx.ml.LabelEncoder <classes_strings = ["red", "blue"], default_int64 = 5> (x)
        y = ai.onnx.ml.LabelEncoder <classes_strings = ["rot", "blau"], default_string = "-"> (code)
        }""",
}


def both_ways(proto: onnx.ModelProto, feed: dict[str, Any], folder: Path) -> None:
    """The IR gives the same as the model, and so does the ONNX that comes back."""
    expected = OnnxRuntime(proto).run(feed)
    names = [value.name for value in proto.graph.output]
    bridge.convert(proto, folder / "a.xml")
    boundary = bridge.Boundary.of(folder / "a.xml")
    results = OpenVino(folder / "a.xml").run_packed(boundary, feed)
    bridge.convert(folder / "a.xml", folder / "b.onnx")
    back = OnnxRuntime(folder / "b.onnx")
    types = [value.type for value in back.session.get_outputs()]
    assert types == [value.type for value in OnnxRuntime(proto).session.get_outputs()]
    for found in ([results[name] for name in names], back.run(feed)):
        for one, other in zip(found, expected, strict=True):
            if isinstance(other, list):
                keys = [*other[0]]
                assert all(item.keys() == other[0].keys() for item in (*one, *other))
                one, other = (
                    np.array([[item[key] for key in keys] for item in x], np.float32)
                    for x in (one, other)
                )
            assert_close([one], [other])


@pytest.mark.parametrize("name", STRINGS)
def test_strings(name: str, tmp_path: Path) -> None:
    proto = onnx.parser.parse_model(f"{HEAD} {STRINGS[name]}")
    for flag in (True, False) if name == "in an if" else (True,):
        feed = {"x": WORDS, "c": np.array(flag), "z": np.array([[7, -2, 3], [0, 7, 1 << 40]])}
        folder = tmp_path / str(flag)
        folder.mkdir()
        both_ways(proto, {value.name: feed[value.name] for value in proto.graph.input}, folder)


OPEN = {
    "a slice": """g (string[3] x) => (string[1] y) <int64[1] a = {0}, int64[1] b = {1}> {
        y = Slice (x, a, b) }""",
    "a repetition": """g (string[3] x) => (string[6] y) <int64[1] twice = {2}> {
        y = Tile (x, twice) }""",
    "a stack": """g (string[3] x) => (string[3] y) {
        y = Scan <num_scan_inputs = 1, body = b (string s) => (string t) { t = Identity (s) }> (x)
        }""",
    "what is there": "g (string[3] x) => (string[k] y) { y = Unique (x) }",
}
"""Operators on strings that OpenVINO lacks, or on which it crashes."""


@pytest.mark.parametrize("name", OPEN)
def test_strings_that_no_vocabulary_holds(name: str, tmp_path: Path) -> None:
    with pytest.raises(bridge.UnsupportedError, match=r"a string that no|not compute with strings"):
        bridge.convert(onnx.parser.parse_model(f"{HEAD} {OPEN[name]}"), tmp_path / "a.xml")


@pytest.mark.parametrize("name", CLASSES)
def test_label_encoder_1(name: str, tmp_path: Path) -> None:
    head = HEAD.replace(": 3]", ": 1]")
    proto = onnx.parser.parse_model(f"{head} {CLASSES[name]}")
    feed = {"x": WORDS, "z": np.array([[0, 1, 2], [-1, 9, 1]])}
    feed = {value.name: feed[value.name] for value in proto.graph.input}
    both_ways(proto, feed, tmp_path)
    bridge.convert(proto, tmp_path / "c.onnx")
    onnx.checker.check_model(tmp_path / "c.onnx", full_check=True)
    (expected,), (found,) = (OnnxRuntime(m).run(feed) for m in (proto, tmp_path / "c.onnx"))
    assert np.array_equal(expected, found)


def test_newer_operators_than_the_source_has(tmp_path: Path) -> None:
    """Operators added on the way back may be newer than the operator set of the source file."""
    proto = onnx.parser.parse_model(f"{HEAD.replace(': 3]', ': 1]')} {STRINGS['one hot']}")
    both_ways(proto, {"x": WORDS}, tmp_path)


@pytest.mark.parametrize("name", STRINGS)
def test_second_round(name: str, tmp_path: Path) -> None:
    """A vocabulary reads back as the same vocabulary, without additions."""
    bridge.convert(onnx.parser.parse_model(f"{HEAD} {STRINGS[name]}"), tmp_path / "a.xml")
    for before, after in (("a", "b"), ("b", "c")):
        bridge.convert(tmp_path / f"{before}.xml", tmp_path / f"{after}.onnx")
        bridge.convert(tmp_path / f"{after}.onnx", tmp_path / f"{after}.xml")
    once, twice = (bridge.load(tmp_path / f"{name}.xml") for name in ("b", "c"))
    assert once.metadata == twice.metadata
    assert [node.op for node in once.graph.walk()] == [node.op for node in twice.graph.walk()]


def classifier(labels: list[Any], zip_map: bool, **more: Any) -> onnx.ModelProto:
    """A linear classifier of X, with a ZipMap at its end."""
    kind = "strings" if isinstance(labels[0], str) else "ints"
    rng = np.random.default_rng(len(labels))
    attributes = {
        "coefficients": rng.normal(size=3 * len(labels)).tolist(),
        "intercepts": rng.normal(size=len(labels)).tolist(),
        f"classlabels_{kind}": labels,
        "post_transform": "SOFTMAX",
        **more,
    }
    nodes = [helper.make_node("LinearClassifier", ["x"], ["label", "p"], domain=ML, **attributes)]
    label = TensorProto.STRING if kind == "strings" else TensorProto.INT64
    outputs = [helper.make_tensor_value_info("label", label, [None])]
    if zip_map:
        key = "classlabels_strings" if kind == "strings" else "classlabels_int64s"
        nodes.append(helper.make_node("ZipMap", ["p"], ["map"], domain=ML, **{key: labels}))
        value = helper.make_tensor_type_proto(TensorProto.FLOAT, [])
        map_type = helper.make_map_type_proto(label, value)
        outputs.append(helper.make_value_info("map", helper.make_sequence_type_proto(map_type)))
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(ML, 3)]
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize("opset", [9, 17])
@pytest.mark.parametrize("labels", [["a", "ü", "c,d"], [5, -2, 7], ["no", "yes"]])
def test_maps(labels: list[Any], opset: int, tmp_path: Path) -> None:
    proto = classifier(labels, True)
    proto.opset_import[0].version = opset
    both_ways(proto, {"x": X}, tmp_path)
    assert len(bridge.Boundary.of(tmp_path / "a.xml").map_keys.outputs["map"]) == len(labels)


def test_map_of_an_input(tmp_path: Path) -> None:
    """The row of the map has a name of its own, and is another output too."""
    proto = classifier(["a", "b", "c"], True)
    del proto.graph.node[0], proto.graph.output[0]
    proto.graph.node[0].input[0] = "x"
    proto.graph.node.append(helper.make_node("Identity", ["x"], ["same"]))
    proto.graph.output.append(helper.make_tensor_value_info("same", TensorProto.FLOAT, ["n", 3]))
    both_ways(proto, {"x": X}, tmp_path)


DAMAGED = {
    "values": 'LabelEncoder <keys_strings = ["a", "b"], values_int64s = [1]>',
    "no keys": "LabelEncoder <values_int64s = [1]>",
    "no attributes": "LabelEncoder",
    "categories": 'CategoryMapper <cats_strings = ["a"], cats_int64s = [1, 2]>',
    "no categories": "OneHotEncoder",
}


@pytest.mark.parametrize("name", DAMAGED)
def test_attributes_that_do_not_match(name: str, tmp_path: Path) -> None:
    body = f"g (string[n] x) => (int64[n] y) {{ y = ai.onnx.ml.{DAMAGED[name]} (x) }}"
    with pytest.raises(bridge.BridgeError):
        bridge.convert(onnx.parser.parse_model(f"{HEAD} {body}"), tmp_path / "m.xml")


@pytest.mark.parametrize("keys", [["a", "a"], []])
def test_maps_without_keys(keys: list[str], tmp_path: Path) -> None:
    proto = classifier(["a", "b"], True)
    del proto.graph.node[1].attribute[:]
    proto.graph.node[1].attribute.append(
        helper.make_attribute("classlabels_strings", keys, attr_type=onnx.AttributeProto.STRINGS)
    )
    with pytest.raises(bridge.BridgeError, match="different keys" if keys else "type 0"):
        bridge.convert(proto, tmp_path / "m.xml")


def test_check_compares_maps_and_strings(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(classifier(["a", "b", "c"], True), path)
    assert check(path).ok
    onnx.save(classifier(["x", "y", "z"], True), tmp_path / "other.onnx")
    bridge.convert(tmp_path / "other.onnx", tmp_path / "other.xml")
    report = check(path, tmp_path / "other.xml")
    assert {found.output for found in report.verdict.results if not found.ok} == {"label", "map"}


REFUSED = {
    "other text leaves": """g (string[n, 2] x) => (string[n, 2] y) <string[1] w = {"a"}> {
        same = Equal(x, w)
        y = Where(same, w, x) }""",
    "strings of inputs compared": """g (string[n, 2] x, string[n, 2] z) => (bool[n, 2] y) {
        y = Equal(x, z) }""",
    "text": """g (string[n] x) => (int64[n] y) {
        word = StringNormalizer <case_change_action = "LOWER"> (x)
        y = ai.onnx.ml.LabelEncoder <keys_strings = ["a"], values_int64s = [1]> (word) }""",
}


@pytest.mark.parametrize("name", REFUSED)
def test_text_is_refused(name: str, tmp_path: Path) -> None:
    proto = onnx.parser.parse_model(f"{HEAD} {REFUSED[name]}")
    with pytest.raises(bridge.UnsupportedError, match=r"string|text"):
        bridge.convert(proto, tmp_path / "m.xml")


def test_pack_and_unpack_say_what_is_wrong(tmp_path: Path) -> None:
    bridge.convert(onnx.parser.parse_model(f"{HEAD} {STRINGS['chosen']}"), tmp_path / "m.xml")
    packed = bridge.pack(tmp_path / "m.xml", {"x": np.array([["blue", "never"]])})["x"]
    assert packed.dtype == np.int64
    assert len({*packed.ravel().tolist()}) == 2
    with pytest.raises(bridge.UsageError, match="strings"):
        bridge.pack(tmp_path / "m.xml", {"x": np.array([[1, 2]])})
    with pytest.raises(bridge.UsageError, match="places"):
        bridge.unpack(tmp_path / "m.xml", {"y": np.array([[99]])})
    bridge.convert(classifier(["a", "b"], True), tmp_path / "c.xml")
    with pytest.raises(bridge.UsageError, match="keys"):
        bridge.unpack(tmp_path / "c.xml", {"map": np.zeros((2, 3))})


BROKEN = [
    "[]", "{}", '{"inputs":{},"outputs":[]}', '{"inputs":{},"outputs":{"y":[]}}',
    '{"inputs":{"x":["a","a"]},"outputs":{}}', '{"inputs":{"x":[true]},"outputs":{}}',
    '{"inputs":{"x":"ab"},"outputs":{}}', '{"inputs":{"x":[["a"]]},"outputs":{}}', "[" * 999,
]  # fmt: skip


@pytest.mark.parametrize("text", BROKEN)
@pytest.mark.parametrize("entry", [VOCABULARIES, MAP_KEYS])
def test_foreign_records(text: str, entry: Entry[LabelRecord]) -> None:
    with pytest.raises(bridge.InvalidModelError):
        entry.read({entry.key: text})


def test_record_of_what_is_not_there(tmp_path: Path) -> None:
    bridge.convert(onnx.parser.parse_model(f"{HEAD} {STRINGS['chosen']}"), tmp_path / "m.xml")
    text = (tmp_path / "m.xml").read_text()
    for side in ("inputs", "outputs"):
        record = {"inputs": {}, "outputs": {}, side: {"absent": ["a"]}}
        model = bridge.load(tmp_path / "m.xml")
        model.metadata[VOCABULARIES.key] = json.dumps(record)
        with pytest.raises(bridge.InvalidModelError, match="absent"):
            bridge.save(model, tmp_path / "m.onnx")
    assert text == (tmp_path / "m.xml").read_text()
