"""Bad input gives one readable error, exit code 2, and leaves the destination unchanged."""

from __future__ import annotations

import io
import os
import pickle
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

import bridge
from bridge.errors import Unsupported
from bridge.passes.inputs import dimension
from tests.support import command_line
from tests.support.damage import damaged_ir, damaged_onnx
from tests.support.model_files import IR_FILES, ONNX_FILES
from tests.support.sample import spread

HEAD = '<ir_version: 8, opset_import: ["": 17]>'
MODEL = f"""{HEAD} g (bool c, float[2] x) => (float[2] y) {{
  y = If (c) <
    then_branch = t () => (float[2] a) {{ a = Relu (x) }},
    else_branch = e () => (float[2] b) {{ b = Neg (x) }}
  >
}}"""
IR = """<?xml version="1.0"?>
<net name="net" version="11">
  <layers>
    <layer id="0" name="x" type="Parameter" version="opset1">
      <data shape="2" element_type="f32"/>
      <output><port id="0" precision="FP32" names="x"><dim>2</dim></port></output>
    </layer>
    <layer id="1" name="two" type="Const" version="opset1">
      <data element_type="f32" shape="2" offset="0" size="8"/>
      <output><port id="0" precision="FP32"><dim>2</dim></port></output>
    </layer>
    <layer id="2" name="sum" type="Add" version="opset1">
      <data auto_broadcast="numpy"/>
      <input><port id="0"><dim>2</dim></port><port id="1"><dim>2</dim></port></input>
      <output><port id="2" precision="FP32" names="y"><dim>2</dim></port></output>
    </layer>
    <layer id="3" name="y" type="Result" version="opset1">
      <input><port id="0"><dim>2</dim></port></input>
    </layer>
  </layers>
  <edges>
    <edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
    <edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
    <edge from-layer="2" from-port="2" to-layer="3" to-port="0"/>
  </edges>
</net>
"""


@dataclass(frozen=True)
class Case:
    """`files` makes the source file in a directory. `arguments` follow `bridge convert`, with {}
    for the directory. The message must contain `says`."""

    name: str
    files: Callable[[Path], object]
    arguments: str
    says: tuple[str, ...]


def proto(text: str) -> onnx.ModelProto:
    """The model in ONNX's text syntax."""
    return onnx.parser.parse_model(text)


def onnx_text(text: str) -> Callable[[Path], object]:
    """Makes `model.onnx` from the text syntax without the checker."""
    return lambda folder: onnx.save(onnx.parser.parse_model(text), folder / "model.onnx")


def onnx_bytes(change: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    """Makes `model.onnx` from the changed bytes of a good model."""
    data = onnx.parser.parse_model(MODEL).SerializeToString()
    return lambda folder: (folder / "model.onnx").write_bytes(change(data))


def external(**entries: str) -> Callable[[Path], object]:
    """Makes `model.onnx`, whose initializer is in an external file described by `entries`. Also
    makes `weights` with 8 bytes, beside and above it."""

    def files(folder: Path) -> None:
        model = onnx.parser.parse_model(f"{HEAD} g (float[2] x) => (float[2] y) {{y = Add(x, w)}}")
        tensor = model.graph.initializer.add(
            name="w", data_type=1, dims=[2], data_location=onnx.TensorProto.EXTERNAL
        )
        for key, value in entries.items():
            tensor.external_data.add(key=key, value=value)
        (folder / "model.onnx").write_bytes(model.SerializeToString())
        (folder / "weights").write_bytes(bytes(8))
        (folder.parent / "weights").write_bytes(bytes(8))

    return files


def ir(old: str = "", new: str = "", weights: bytes | None = bytes(8)) -> Callable[[Path], object]:
    """Makes `model.xml`, with `old` replaced by `new`, and `model.bin`."""

    def files(folder: Path) -> None:
        assert old in IR
        (folder / "model.xml").write_text(IR.replace(old, new, 1))
        if weights is not None:
            (folder / "model.bin").write_bytes(weights)

    return files


def nothing(folder: Path) -> None:
    """Makes no file."""


ONNX_TO_IR = "{}/model.onnx {}/out.xml"
ONNX_TO_ONNX = "{}/model.onnx {}/out.onnx"
IR_TO_ONNX = "{}/model.xml {}/out.onnx"

IF = f"{HEAD} g (bool c, float[2] x) => (float[2] y) {{ y = If (c) <%s> }}"
THEN = "then_branch = t () => (float[2] a) { a = Relu (x) }"

CASES = [
    Case(
        "truncated ONNX file",
        onnx_bytes(lambda data: data[: len(data) // 2]),
        ONNX_TO_IR,
        ("model.onnx", "is not an ONNX model, or is truncated"),
    ),
    Case("empty ONNX file", onnx_bytes(lambda data: b""), ONNX_TO_IR, ("it has no graph",)),
    Case(
        "text as ONNX file",
        onnx_bytes(lambda data: b"hello, world"),
        ONNX_TO_IR,
        ("is not an ONNX model",),
    ),
    Case(
        "text that is no ONNX text",
        lambda folder: (folder / "model.onnxtxt").write_text("hello"),
        "{}/model.onnxtxt {}/out.xml",
        ("is not an ONNX model in text",),
    ),
    *(
        Case(
            f"a number out of range: {number}",
            lambda folder, text=text: (folder / "model.onnxtxt").write_text(text),  # type: ignore[misc]
            "{}/model.onnxtxt {}/out.xml",
            ("it holds a number that is out of range",),
        )
        for number, text in {
            "a size": f"{HEAD} g (float[99999999999999999999] x) => (float y) {{ y = Relu(x) }}",
            "an attribute": f"{HEAD} g (float x) => (float y) {{ y = Elu<alpha = 1e999>(x) }}",
        }.items()
    ),
    Case(
        "no operator set",
        onnx_text("<ir_version: 8, opset_import: []> g (float x) => (float y) { y = Relu (x) }"),
        ONNX_TO_IR,
        ("does not say which operator set it uses",),
    ),
    Case(
        "a value that nothing makes",
        onnx_text(f"{HEAD} g (float x) => (float y) {{ y = Add (x, nobody) }}"),
        ONNX_TO_IR,
        ('Add "y"', '"nobody"'),
    ),
    Case(
        "too few inputs",
        onnx_text(f"{HEAD} g (float x) => (float y) {{ y = Add (x) }}"),
        ONNX_TO_IR,
        ('graph / Add "y"', "1 inputs", "has 2"),
    ),
    Case(
        "a missing attribute",
        onnx_text(f"{HEAD} g (float x) => (float y) {{ y = Cast (x) }}"),
        ONNX_TO_IR,
        ('Cast "y"', "attribute to is missing"),
    ),
    Case(
        "an attribute of the wrong type",
        onnx_text(f'{HEAD} g (float[2] x) => (float[2] y) {{ y = Softmax <axis = "last"> (x) }}'),
        ONNX_TO_IR,
        ('Softmax "y"', "axis is STRING, not INT"),
    ),
    Case(
        "a tensor with too few bytes",
        onnx_bytes(lambda data: _short_tensor()),
        ONNX_TO_IR,
        ('initializer "w"', "needs 8 bytes but has 4"),
    ),
    Case("If without else_branch", onnx_text(IF % THEN), ONNX_TO_IR, ('If "y"', "else_branch")),
    Case(
        "branches of different element types",
        onnx_text(IF % f"{THEN}, else_branch = e () => (int64[2] b) {{ b = Cast <to = 7> (x) }}"),
        ONNX_TO_IR,
        ('If "y"', "f32[2] in one branch", "i64[2] in the other"),
    ),
    Case(
        "branches of different output counts",
        onnx_text(
            IF % f"{THEN}, else_branch = e () => (float[2] b, float[2] d) "
            "{ b = Neg (x) d = Abs (x) }"
        ),
        ONNX_TO_IR,
        ('If "y"', "else_branch has 2 outputs, the node 1"),
    ),
    Case(
        "missing external file",
        external(location="nowhere.bin"),
        ONNX_TO_IR,
        ('initializer "w"', "nowhere.bin"),
    ),
    Case(
        "external file outside the directory",
        external(location="../weights"),
        ONNX_TO_IR,
        ('initializer "w"', "../weights is outside"),
    ),
    Case(
        "external file by an absolute path",
        external(location="/etc/hostname"),
        ONNX_TO_IR,
        ('initializer "w"', "/etc/hostname is outside"),
    ),
    Case(
        "external file whose name holds a null",
        external(location="\0", offset="0", length="8"),
        ONNX_TO_IR,
        ('initializer "w"', "is outside"),
    ),
    Case(
        "external file that is too short",
        external(location="weights", offset="4"),
        ONNX_TO_IR,
        ('initializer "w"', "weights"),
    ),
    Case(
        "external data without a number",
        external(location="weights", offset="four"),
        ONNX_TO_IR,
        ('initializer "w"', "offset", "four"),
    ),
    Case(
        "unknown operators, all at once",
        onnx_text(
            """<ir_version: 8, opset_import: ["": 17, "my": 1]>
            g (bool c, float[2] x) => (float[2] y, float[2] z) {
              a = my.Foo (x)
              y = If (c) <
                then_branch = t () => (float[2] p) { p = my.Foo (a) },
                else_branch = e () => (float[2] q) { q = my.Bar (a) }
              >
              z = my.Foo (y)
            }"""
        ),
        ONNX_TO_IR,
        ("cannot be written as OpenVINO IR", "my::Foo (x3)", "my::Bar (x1)", "else_branch"),
    ),
    Case(
        "unknown layers, all at once",
        ir('type="Add"', 'type="Mystery"'),
        IR_TO_ONNX,
        ("cannot be written as ONNX", "Mystery (x1)"),
    ),
    Case(
        "truncated XML",
        lambda folder: (folder / "model.xml").write_text(IR[: len(IR) // 2]),
        IR_TO_ONNX,
        ("model.xml", "XML"),
    ),
    Case(
        "empty XML file",
        lambda folder: (folder / "model.xml").write_text(""),
        IR_TO_ONNX,
        ("model.xml", "XML"),
    ),
    Case(
        "XML that is no IR",
        lambda folder: (folder / "model.xml").write_text("<html><body/></html>"),
        IR_TO_ONNX,
        ("model.xml", "HTML"),
    ),
    Case("IR without its .bin", ir(weights=None), IR_TO_ONNX, ("model.bin",)),
    Case(".bin too short", ir(weights=bytes(4)), IR_TO_ONNX, ("model.bin", "8 bytes")),
    Case("named .bin missing", ir(), f"{IR_TO_ONNX} --weights {{}}/other.bin", ("other.bin",)),
    Case("edge to nowhere", ir('to-layer="2"', 'to-layer="9"'), IR_TO_ONNX, ("9",)),
    Case("edge from nowhere", ir('from-layer="1"', 'from-layer="9"'), IR_TO_ONNX, ("9",)),
    Case("edge from no port", ir('from-port="2"', 'from-port="7"'), IR_TO_ONNX, ("7",)),
    Case(
        "edges in a circle",
        ir('<edge from-layer="1" from-port="0"', '<edge from-layer="2" from-port="2"'),
        IR_TO_ONNX,
        ("sum",),
    ),
    Case(
        "layer without its input",
        ir('<edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>', ""),
        IR_TO_ONNX,
        ("sum",),
    ),
    Case(
        "unknown element type",
        ir('element_type="f32" shape', 'element_type="f33" shape'),
        IR_TO_ONNX,
        ("two", "f33"),
    ),
    Case("a size that is no number", ir('size="8"', 'size="many"'), IR_TO_ONNX, ("two", "many")),
    Case("a size that is not the shape's", ir('size="8"', 'size="4"'), IR_TO_ONNX, ("two", "8")),
    Case("unknown suffix of the source", nothing, "{}/model.pb {}/out.xml", ("model.pb", ".onnx")),
    Case(
        "unknown suffix of the destination",
        onnx_text(MODEL),
        "{}/model.onnx {}/out.tflite",
        ("out.tflite", "neither .onnx nor .xml"),
    ),
    Case("missing source", nothing, ONNX_TO_IR, ("model.onnx", "there is no such file")),
    Case(
        "source that is a directory",
        lambda folder: (folder / "model.onnx").mkdir(),
        ONNX_TO_IR,
        ("model.onnx", "is a directory"),
    ),
    Case(
        "source that is no regular file",
        lambda folder: os.mkfifo(folder / "model.onnx"),
        ONNX_TO_IR,
        ("model.onnx", "is no regular file"),
    ),
    Case(
        "missing directory of the destination",
        onnx_text(MODEL),
        "{}/model.onnx {}/none/out.xml",
        ("none", "no such directory"),
    ),
    Case(
        "destination that is a directory",
        lambda folder: (onnx_text(MODEL)(folder), (folder / "folder.xml").mkdir()),
        "{}/model.onnx {}/folder.xml",
        ("folder.xml", "is a directory"),
    ),
    Case(
        "destination that is no regular file",
        lambda folder: (onnx_text(MODEL)(folder), os.mkfifo(folder / "pipe.xml")),
        "{}/model.onnx {}/pipe.xml",
        ("pipe.xml", "is no regular file"),
    ),
    Case(
        "destination that would overwrite the source's weights",
        lambda folder: (
            external(location="model.bin")(folder),
            (folder / "model.bin").write_bytes(bytes(8)),
        ),
        "{}/model.onnx {}/model.xml",
        ("model.bin", "would be overwritten"),
    ),
    Case(
        "--value that is no regular file",
        lambda folder: (onnx_text(MODEL)(folder), os.mkfifo(folder / "x.npy")),
        f"{ONNX_TO_IR} --value x={{}}/x.npy",
        ("x.npy", "is no regular file"),
    ),
    Case(
        "destination beside an IR that may be its source",
        lambda folder: (onnx_text(MODEL)(folder), (folder / "model.xml").touch()),
        "{}/model.xml",
        ("model.onnx", "is there already", "--force"),
    ),
    Case(
        "--input-shape of no input",
        onnx_text(MODEL),
        f"{ONNX_TO_IR} --input-shape q=[2]",
        ('no input "q"', "c, x"),
    ),
    Case(
        "--input-shape that is none",
        onnx_text(MODEL),
        f"{ONNX_TO_IR} --input-shape x:2",
        ("--input-shape x:2", "NAME=[DIM,...]"),
    ),
    Case(
        "--input-shape with a dimension that is none",
        onnx_text(MODEL),
        f"{ONNX_TO_IR} --input-shape x=[-2]",
        ('"-2" is no dimension',),
    ),
    Case(
        "--input-shape with a size beyond i64",
        onnx_text(MODEL),
        f"{ONNX_TO_IR} --input-shape x=[{2**63}]",
        (f'"{2**63}" is no dimension',),
    ),
    Case(
        "--input-shape with more digits than Python reads",
        onnx_text(MODEL),
        f"{ONNX_TO_IR} --input-shape x=[{'9' * 5000}]",
        ("is no dimension",),
    ),
    Case(
        "--input-shape with an empty range",
        onnx_text(MODEL),
        f"{ONNX_TO_IR} --input-shape x=[3..2]",
        ('"3..2" is no dimension',),
    ),
    Case(
        "--input-shape with another rank",
        onnx_text(MODEL),
        f"{ONNX_TO_IR} --input-shape x=[2,3]",
        ('input "x"', "f32[2]", "2 dimensions"),
    ),
    Case(
        "--input-shape twice",
        onnx_text(MODEL),
        f"{ONNX_TO_IR} --input-shape x=[2] --input-shape x=[3]",
        ("given twice",),
    ),
    Case("--opset too old", ir(), f"{IR_TO_ONNX} --opset 10", ("operator set 10", "11 to")),
    Case("--opset too new", ir(), f"{IR_TO_ONNX} --opset 99", ("operator set 99", "11 to")),
    Case("--opset that is no number", ir(), f"{IR_TO_ONNX} --opset new", ("--opset", "valid int")),
    Case("--opset for IR", onnx_text(MODEL), f"{ONNX_TO_IR} --opset 17", ("opset is", "ONNX")),
    Case(
        "--compress-to-fp16 for ONNX",
        ir(),
        f"{IR_TO_ONNX} --compress-to-fp16",
        ("--compress-to-fp16 is", "IR"),
    ),
    Case(
        "--weights for ONNX",
        onnx_text(MODEL),
        f"{ONNX_TO_IR} --weights {{}}/model.bin",
        ("model.onnx", "only an IR"),
    ),
    Case("unknown option", ir(), f"{IR_TO_ONNX} --fast", ("--fast",)),
]

G = "g (bool c, float[2] x) => (float[2] y)"
# The fault, the model's text, and parts of the message.
INVALID: list[tuple[str, str, tuple[str, ...]]] = [
    ("a name for two values", f"{HEAD} {G} {{a = Neg (x) a = Exp (x) y = Neg (a)}}", ('"a"',)),
    (
        "an output named as an input",
        f"{HEAD} {G} {{x = Neg (x) y = Neg (x)}}",
        ('two values are called "x"',),
    ),
    ("two outputs of one name", f"{HEAD} {G} {{y, y = Split <axis = 0> (x)}}", ('"y"',)),
    (
        "two inputs of one name",
        f"{HEAD} g (float[2] x, float[2] x) => (float[2] y) {{y = Neg (x)}}",
        ('two values are called "x"',),
    ),
    (
        "an output named as an initializer",
        f"{HEAD} {G} <float[2] w = {{1, 2}}> {{w = Neg (x) y = Neg (w)}}",
        ('two values are called "w"',),
    ),
    (
        "two initializers of one name",
        f"{HEAD} {G} <float[2] w = {{1, 2}}, float[2] w = {{3, 4}}> {{y = Add (x, w)}}",
        ('two initializers are called "w"',),
    ),
    (
        "a Constant named as an outer value",
        IF
        % f"{THEN}, else_branch = e () => (int64[2] x) {{x = Constant <value_ints = [1, 2]> ()}}",
        ('If "y" / else_branch', 'two values are called "x"'),
    ),
    (
        "a branch that names an outer value again",
        f"{HEAD} {G} {{w = Exp (x) y = If (c) <{THEN}, "
        "else_branch = e () => (float[2] w) {w = Neg (x)}>}",
        ('If "y" / else_branch', '"w"'),
    ),
    (
        "an initializer of a branch named as an outer one",
        f"{HEAD} {G} <float[2] w = {{1, 2}}> {{y = If (c) <{THEN}, "
        "else_branch = e () => (float[2] b) <float[2] w = {3, 4}> {b = Add (x, w)}>}",
        ('If "y" / else_branch', '"w"'),
    ),
    (
        "a function that names a value twice",
        '<ir_version: 8, opset_import: ["": 17, "f": 1]> g (float[2] x) => (float[2] y) '
        '{y = f.F (x)} <domain: "f", opset_import: ["": 17]> F (a) => (b) '
        "{b = Neg (a) b = Exp (a)}",
        ('F "y"', '"b"'),
    ),
    (
        "an If of a number",
        f"{HEAD} g (float c, float[2] x) => (float[2] y) {{y = If (c) <{THEN}, "
        "else_branch = e () => (float[2] b) {b = Neg (x)}>}",
        ('graph / If "y"', "a condition is bool, here f32[]"),
    ),
    *(
        (
            f"a Loop whose {what}",
            f"{HEAD} {G} {{y = Loop ({given}, x) <body = b (int64 i, bool d, float[2] s) => "
            f"({types}) {{{body}}}>}}",
            ('graph / Loop "y"', says),
        )
        for what, given, types, body, says in (
            (
                "condition is a number",
                ", x",
                "bool e, float[2] t",
                "e = Identity (d) t = Abs (s)",
                "here f32[2]",
            ),
            (
                "condition becomes a number",
                ", c",
                "float[2] e, float[2] t",
                "e = Exp (s) t = Abs (s)",
                "here f32[2]",
            ),
            (
                "state changes its type",
                ", c",
                "bool e, int64[2] t",
                "e = Identity (d) t = Cast <to = 7> (s)",
                "is f32[2] and becomes i64[2]",
            ),
        )
    ),
    *(
        (
            f"a Transpose by {perm}",
            f"{HEAD} g (float[2, 3] x) => (float[3, 2] y) {{y = Transpose <perm = {perm}> (x)}}",
            ('Transpose "y"', f"perm {perm}"),
        )
        for perm in ("[0, 0]", "[5, 1]", "[1]")
    ),
    (
        "an attribute that the operator lacks",
        f"{HEAD} {G} {{y = Softmax <axes = 0> (x)}}",
        ('Softmax "y"', "has no attribute axes"),
    ),
    (
        "an attribute given twice",
        f"{HEAD} {G} {{y = Softmax <axis = 0, axis = -1> (x)}}",
        ('Softmax "y"', "two attributes"),
    ),
    (
        "a reference to an attribute outside of functions",
        f"{HEAD} {G} {{y = Softmax <axis: int = @n> (x)}}",
        ('Softmax "y"', 'refers to "n"'),
    ),
    (
        "no import of the standard's operators",
        f'<ir_version: 8, opset_import: ["my": 1]> {G} {{y = Neg (x)}}',
        ('Neg "y"', "no operator set of ONNX is imported"),
    ),
    (
        "no import of other operators",
        f"{HEAD} {G} {{y = my.Foo (x)}}",
        ('Foo "y"', "no operator set of my is imported"),
    ),
    *(
        (
            f"a Cast to {name}",
            f'<ir_version: 3, opset_import: ["": 5]> {G} {{y = Cast <to = "{name}"> (x)}}',
            ('graph / Cast "y"', f'no element type "{name}"'),
        )
        for name in ("int64", "UNDEFINED")
    ),
    *(
        (
            f"operator set {version}",
            f'<ir_version: 8, opset_import: ["": {version}]> {G} {{y = Neg (x)}}',
            ("model.onnx", f"operator set {version}", f"1 to {onnx.defs.onnx_opset_version()}"),
        )
        for version in (0, 999)
    ),
    *(
        (
            f"IR version {version}",
            f'<ir_version: {version}, opset_import: ["": 17]> {G} {{y = Neg (x)}}',
            ("model.onnx", "IR version", f"1 to {onnx.IR_VERSION}"),
        )
        for version in (0, 99)
    ),
    (
        "an unknown operator that holds a graph",
        f'<ir_version: 8, opset_import: ["": 17, "my": 1]> {G} '
        "{y = my.Foo <body = b () => (float[2] a) {a = Neg (x)}> (x)}",
        ('graph / Foo "y"', "holds a graph"),
    ),
    (
        "operators that the operator set lacks, all at once",
        f"{HEAD} {G} {{f = Foo (x) y = If (c) <{THEN}, "
        "else_branch = e () => (float[2] b) {b = Gelu (f)}>}",
        ("Foo (x1)", "Gelu (x1)", "no such operator", 'If "y" / else_branch'),
    ),
    (
        "a function with operators of two versions of their domain",
        '<ir_version: 8, opset_import: ["": 17, "f": 1, "my": 1]> g (float[2] x) => (float[2] y) '
        '{a = my.Foo (x) y = f.F (a)} <domain: "f", opset_import: ["": 17, "my": 2]> F (a) => (b) '
        "{b = my.Foo (a)}",
        ('F "y" / Foo "b"', "operator set 2 of my", "here 1"),
    ),
    *(
        (
            f"a function that {fault}",
            '<ir_version: 8, opset_import: ["": 17, "f": 1]> g (float[2] x) => (float[2] y) '
            f'{{{call}}} <domain: "f", opset_import: ["": 17, "f": 1]> F (a) => (b) {{{body}}}',
            says,
        )
        for fault, call, body, says in (
            ("calls itself", "y = f.F (x)", "b = f.F (a)", ('F "y" / F "b": its', "itself")),
            ("gets too much", "y = f.F (x, x)", "b = Neg (a)", ('F "y"', "2 inputs", "has 1")),
            ("gives too little", "y, z = f.F (x)", "b = Neg (a)", ('F "y"', "2 outputs", "has 1")),
        )
    ),
]
CASES += [Case(name, onnx_text(text), ONNX_TO_ONNX, says) for name, text, says in INVALID]
CASES += [
    Case(
        f"an input of element type {element}",
        onnx_bytes(lambda data, element=element: _typed(data, element)),  # type: ignore[misc]
        ONNX_TO_ONNX,
        ('graph / input "x"', "has no type"),
    )
    for element in (None, 0, 77)
]


def _typed(data: bytes, element: int | None) -> bytes:
    """The model with its second input of another element type, or of no type at all."""
    model = onnx.ModelProto.FromString(data)
    if element is None:
        model.graph.input[1].ClearField("type")
    else:
        model.graph.input[1].type.tensor_type.elem_type = element
    return model.SerializeToString()


def _short_tensor() -> bytes:
    model = onnx.parser.parse_model(f"{HEAD} g (float[2] x) => (float[2] y) {{ y = Add (x, w) }}")
    model.graph.initializer.add(name="w", data_type=1, dims=[2], raw_data=bytes(4))
    return model.SerializeToString()


def _arguments(case: Case, folder: Path) -> list[str]:
    return ["convert", *(word.replace("{}", str(folder)) for word in case.arguments.split())]


def _files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in folder.rglob("*")
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_readable_error(case: Case, tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    case.files(folder)
    (folder / "out.xml").write_text('<net name="what stood there before"/>')
    for name in ("out.bin", "out.onnx", "out.onnx.data"):
        (folder / name).write_text("what stood there before")
    before = _files(folder)

    finished = command_line.bridge(*_arguments(case, folder))

    assert finished.code == 2, finished
    assert finished.out == ""
    assert "Error: " in finished.err
    assert "Internal error" not in finished.err
    assert "Traceback" not in finished.err
    for text in case.says:
        assert text in finished.err
    assert _files(folder) == before


@pytest.mark.parametrize("name", ["truncated ONNX file", "unknown operators, all at once"])
def test_process(name: str, tmp_path: Path) -> None:
    (case,) = (case for case in CASES if case.name == name)
    case.files(tmp_path)
    command = [sys.executable, "-m", "bridge", *_arguments(case, tmp_path)]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert finished.returncode == 2
    assert finished.stdout == ""
    assert finished.stderr.startswith("Error: ")
    assert "Traceback" not in finished.stderr


def odd_file(folder: Path) -> None:
    """Makes a model whose external file has a name that begins with dots."""
    external(location="..odd")(folder)
    (folder / "weights").rename(folder / "..odd")


VALID: dict[str, Callable[[Path], object]] = {
    "the first IR version, which has operator set 1": onnx_text(
        "<ir_version: 1, opset_import: []> g (float[2] x) => (float[2] y) { y = Relu (x) }"
    ),
    "external file whose name begins with dots": odd_file,
    "names that recur": onnx_text(f"""{HEAD} g (bool c, int64 n, float[2] x) => (float[2] y) {{
      z = If (c) <
        then_branch = t () => (float[2] a) {{ a = Exp (x) }},
        else_branch = e () => (float[2] a) {{ a = Neg (x) }}
      >
      a = Loop (n, c, z) <body = b (int64 i, bool c, float[2] x) => (bool d, float[2] s) {{
        d = Identity (c) s = Add (x, x)
      }}>
      y = Identity (a)
    }}"""),
    "both names of the default domain": onnx_text(f"""{HEAD} g (float[2] x) => (float[2] y) {{
      y = ai.onnx.F (x)
    }} <opset_import: ["ai.onnx": 17]> F (a) => (b) {{ b = Neg (a) }}"""),
}


@pytest.mark.parametrize("name", VALID)
def test_no_error(name: str, tmp_path: Path) -> None:
    VALID[name](tmp_path)
    for target in ("a.xml", "a.onnx"):
        finished = command_line.bridge("convert", tmp_path / "model.onnx", tmp_path / target)
        assert finished.code == 0, finished
    onnx.checker.check_model(tmp_path / "a.onnx", full_check=True)


@dataclass(frozen=True)
class Misuse:
    """A wrong call of the library. `call` gets a directory with `model.onnx`, `model.xml` and
    `seq.xml`; the UsageError contains `says`."""

    name: str
    call: Callable[[Path], object]
    says: str


SEQUENCE = f"{HEAD} g (seq(float[N,2]) s) => (seq(float[N,2]) t) {{ t = Identity (s) }}"


def convert(source: Any = "model.onnx", target: Any = "out.xml", **options: Any) -> Any:
    """A call of `bridge.convert` in a directory."""

    def call(folder: Path) -> object:
        model = folder / source if isinstance(source, str) else source
        return bridge.convert(
            model, folder / target if isinstance(target, str) else target, **options
        )

    return call


def shaped(dim: Any) -> Any:
    """A call of `bridge.convert` with an input of one dimension."""
    return convert(input_shapes={"x": [dim]})


MISUSES = [
    Misuse("a number as source", convert(123), "a path, the bytes .* not of type int"),
    Misuse("no source", convert(None), "a path, the bytes .* not None"),
    Misuse("a file of text as source", convert(io.StringIO()), "open it in binary mode"),
    Misuse("a number as destination", convert(target=5), "destination must be a path"),
    Misuse(
        "text as opset", convert("model.xml", "out.onnx", opset="17"), "`opset` must be a number"
    ),
    Misuse(
        "17.0 as opset", convert("model.xml", "out.onnx", opset=17.0), "`opset` must be a number"
    ),
    Misuse("opset too old", lambda f: bridge.to_onnx(f / "model.xml", opset=5), "11 to"),
    Misuse("opset for IR", convert(opset=17), "`opset` is for writing ONNX"),
    Misuse("external data for IR", convert(external_data=True), "`external_data` is for writing"),
    Misuse("f16 for ONNX", convert(target="a.onnx", compress_to_fp16=True), "is for writing IR"),
    Misuse("branches in ONNX", convert(target="a.onnx", keep_branches=True), "is for writing IR"),
    Misuse("weights of ONNX", convert(weights="model.bin"), "only an IR"),
    Misuse(
        "weights of a Model",
        lambda f: bridge.save(bridge.load(f / "model.xml"), f / "out.xml", weights=f / "model.bin"),
        "only an IR",
    ),
    Misuse("weights of a proto", lambda f: bridge.load(proto(MODEL), f / "w"), "only an IR"),
    Misuse("a list of shapes", convert(input_shapes=[[2]]), "maps names to shapes"),
    Misuse("a number as shape", convert(input_shapes={"x": 2}), "must be a list, not 2"),
    Misuse("text as shape", convert(input_shapes={"x": "[2]"}), "must be a list"),
    Misuse("size -1", shaped(-1), '"x": -1 is no dimension; None is any size'),
    Misuse("size 5.5", shaped(5.5), "5.5 is no dimension"),
    Misuse("size True", shaped(True), "True is no dimension"),
    Misuse("size 2**63", shaped(2**63), "is no dimension"),
    Misuse("a tuple as size", shaped((1, 8)), r"\(1, 8\) is no dimension"),
    Misuse("text as range", shaped("1..8"), '"1..8" is no dimension'),
    Misuse("an empty range", shaped(bridge.Interval(3, 2)), "3..2 is no dimension"),
    Misuse(
        "an array as sequence",
        lambda f: bridge.pack(f / "seq.xml", {"s": np.zeros((1, 2))}),
        '"s" is a sequence: give it a list',
    ),
    Misuse("text as element", lambda f: bridge.pack(f / "seq.xml", {"s": ["a"]}), "is no array"),
    Misuse("a list of inputs", lambda f: bridge.pack(f / "seq.xml", [1]), "given by name"),
    Misuse("a missing result", lambda f: bridge.unpack(f / "seq.xml", {"t.data": 1}), "t.shapes"),
    Misuse("the boundary of nothing", lambda f: bridge.pack(None, {}), "a boundary belongs to"),
    Misuse("the boundary of ONNX", lambda f: bridge.pack(f / "model.onnx", {}), "only an .xml"),
]


@pytest.mark.parametrize("misuse", MISUSES, ids=lambda misuse: misuse.name)
def test_misuse_of_the_library(misuse: Misuse, tmp_path: Path) -> None:
    onnx_text(MODEL)(tmp_path)
    ir()(tmp_path)
    bridge.convert(proto(SEQUENCE), tmp_path / "seq.xml")
    before = _files(tmp_path)
    with pytest.raises(bridge.UsageError, match=misuse.says):
        misuse.call(tmp_path)
    assert _files(tmp_path) == before


@pytest.mark.parametrize("dim", [0, 3, np.int64(3), "n", None, bridge.Interval(1, 8)])
def test_dimensions(dim: Any, tmp_path: Path) -> None:
    onnx_text(MODEL)(tmp_path)
    shaped(dim)(tmp_path)
    assert bridge.load(tmp_path / "out.xml").graph.inputs[1].shape == (dimension(dim),)


def test_more_than_a_proto_can_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = np.zeros(1 << 16, np.float32)
    model = proto(
        f"{HEAD} g (float[{len(weights)}] x) => (float[{len(weights)}] y) {{y = Add(x, w)}}"
    )
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    monkeypatch.setattr("bridge.onnx_format.backend.LARGEST_PROTO", weights.nbytes - 1)
    target = tmp_path / "out.onnx"
    for call in (
        lambda: bridge.to_onnx(model),
        lambda: bridge.convert(model, target, external_data=False),
    ):
        with pytest.raises(bridge.UsageError, match="external data"):
            call()
        assert not list(tmp_path.iterdir())
        # A file has other parts beside its constants.
        monkeypatch.setattr("bridge.onnx_format.backend.LARGEST_PROTO", weights.nbytes)
    bridge.convert(model, target, external_data=True)


def _errors(kind: type[Exception] = bridge.BridgeError) -> list[type[Exception]]:
    return [kind, *(error for below in kind.__subclasses__() for error in _errors(below))]


@pytest.mark.parametrize("kind", _errors(), ids=lambda kind: kind.__name__)
def test_errors_pass_between_processes(kind: type[Exception]) -> None:
    if kind is bridge.UnsupportedError:
        error: Exception = kind("ONNX", [Unsupported("A", "graph / A", "why")])
    else:
        error = kind("what is wrong")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (kind, str(error), vars(error))


def test_unwritable_directory(tmp_path: Path) -> None:
    onnx_text(MODEL)(tmp_path)
    closed = tmp_path / "closed"
    if os.geteuid() == 0:
        closed = Path("/proc/self")  # nobody can make files there, not even root
    else:
        closed.mkdir(mode=0o500)
    finished = command_line.bridge("convert", tmp_path / "model.onnx", closed / "out.xml")
    assert finished.code == 2
    assert finished.err.startswith(f"Error: {closed / 'out.xml'}: cannot be written: ")


def test_unforeseen_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("here\x1b[2J")

    onnx_text(MODEL)(tmp_path)
    monkeypatch.setattr("bridge.library.api._load", broken)
    arguments = ["convert", tmp_path / "model.onnx", tmp_path / "out.xml"]
    finished = command_line.bridge(*arguments)
    assert finished.code == 2
    first, *rest = finished.err.splitlines()
    assert first == "Internal error: ZeroDivisionError: here\\x1b[2J"
    assert "report" in rest[0] and "--debug" in rest[1]
    assert "Traceback" not in finished.err
    assert "Traceback" in command_line.bridge(*arguments, "--debug").err


@pytest.mark.parametrize("size", range(0, 400, 7))
def test_any_truncation_of_an_ir(size: int, tmp_path: Path) -> None:
    (tmp_path / "model.xml").write_text(IR[:size])
    (tmp_path / "model.bin").write_bytes(bytes(8))
    finished = command_line.bridge("convert", tmp_path / "model.xml", tmp_path / "out.onnx")
    assert finished.code == 2
    assert finished.err.startswith("Error: ")


def test_any_truncation_of_an_onnx_file(tmp_path: Path) -> None:
    data = onnx.parser.parse_model(MODEL).SerializeToString()
    for size in range(len(data)):
        (tmp_path / "model.onnx").write_bytes(data[:size])
        finished = command_line.bridge("convert", tmp_path / "model.onnx", tmp_path / "out.xml")
        assert finished.code in (0, 2)
        assert "Internal error" not in finished.err, (size, finished.err)


FILES = {path.name: path for path in (*ONNX_FILES, *IR_FILES)}


@pytest.mark.parametrize("name", spread(FILES, 3, lambda name: name.split("_")[0] + name[-3:]))
def test_a_damaged_model_gives_no_unforeseen_error(name: str, tmp_path: Path) -> None:
    """Bridge finds every fault of a model before another error occurs."""
    path = FILES[name]
    rng = random.Random(path.name)
    for _ in range(5):
        if path.suffix == ".xml":
            model, target = damaged_ir(path, tmp_path, rng), tmp_path / "out.onnx"
        else:
            model, target = damaged_onnx(path, tmp_path, rng), tmp_path / "out.xml"
        finished = command_line.bridge("convert", model, target)
        assert finished.code in (0, 2)
        assert "Internal error" not in finished.err, finished.err
