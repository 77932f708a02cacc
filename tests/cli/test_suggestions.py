"""Messages about a small mistake suggest the word that was probably meant."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import bridge
from bridge.check import check
from bridge.errors import InvalidModelError, UsageError

from ..support.command_line import bridge as run
from ..support.model_files import FOLDER

IR = FOLDER / "if_nested.xml"


def test_what_there_is_can_be_listed() -> None:
    listed = dir(bridge)
    assert set(bridge.__all__) < set(listed)
    assert [name for name in listed if not name.startswith("__")] == sorted(bridge.__all__)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: bridge.convert(IR, "m.onnx", input_shape={}), "did you mean 'input_shapes'"),
        (lambda: bridge.to_onnx(IR, opst=17), "to_onnx.. has no option 'opst'; did you mean 'opse"),
        (lambda: bridge.to_onnx(IR, keep_branches=True), "it has decompress, ifs, input_shapes, "),
        (lambda: bridge.load(IR, weight="m.bin"), "did you mean 'weights'"),
        (lambda: bridge.save(bridge.load(IR), "m.onnx", external=True), "'external_data'"),
        (lambda: check(IR, sample=3), "did you mean 'samples'"),
        (lambda: check(IR, compress_to_f16=True), "did you mean 'compress_to_fp16'"),
        (lambda: bridge.pack(IR, feed={}), "did you mean 'feeds'"),
    ],
)  # fmt: skip
def test_wrong_keywords(call: Callable[[], Any], says: str) -> None:
    with pytest.raises(TypeError, match=says):
        call()


def test_wrong_names() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'to_onx'; did you mean 'to_onnx'"):
        bridge.to_onx  # type: ignore[attr-defined]  # noqa: B018
    assert not hasattr(bridge, "something_else")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("m.pt", "export it first: torch.onnx.export"),
        ("m.bin", "give the .xml that stands beside it"),
        ("m.onnx.data", "give the .onnx that stands beside it"),
        ("m.onx", r"did you mean m\.onnx\?"),
        ("m.XLM", r"did you mean m\.xml\?"),
        ("m.tflite", "TensorFlow"),
        ("m", "the suffix says which format it is"),
        ("m.qqqqqqqq", "the suffix says which format it is"),
    ],
)
def test_wrong_suffixes(name: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=says):
        bridge.load(tmp_path / name)
    if name in ("m.pt", "m.bin", "m.onnx.data", "m.tflite"):  # a destination has no first step
        says = "neither .onnx nor .xml; Bridge writes these two alone"
    with pytest.raises(UsageError, match=says):
        bridge.convert(IR, tmp_path / name)


def test_an_unknown_keyword_is_an_error_of_both_kinds() -> None:
    for kind in (UsageError, TypeError):
        with pytest.raises(kind, match="did you mean 'opset'"):
            bridge.convert(IR, "m.onnx", opsett=17)


def zipped(name: str) -> bytes:
    """A zip with one file."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, b"content")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("m.onnx", IR.read_bytes(), "is an OpenVINO IR in XML, not an ONNX model; give it a name"),
        ("m.xml", b"\x08\x0a\x12\x04test", "whose name must end in .onnx"),
        ("m.onnx", b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
        ("m.onnx", zipped("__MODEL_PROTO.onnx"), "tf2onnx --large_model writes; unpack it"),
        ("m.onnx", zipped("archive/data.pkl"), "is a zip.*PyTorch"),
        ("m.onnx", zipped("m.onnx"), "is a zip.*give the .onnx that is in it"),
        ("m.onnx", gzip.compress(b"x", mtime=0), "is packed by gzip"),
        ("m.xml", b"<!DOCTYPE html><html><body>Not found", "a page of the web"),
        (None, b"\xef\xbb\xbf" + IR.read_bytes(), "or a pair of the bytes of .xml and .bin"),
    ],
)
def test_files_of_another_kind(name: str | None, data: bytes, says: str, tmp_path: Path) -> None:
    source: Any = data
    if name is not None:
        source = tmp_path / name
        source.write_bytes(data)
    with pytest.raises(InvalidModelError, match=says):
        bridge.load(source)


def test_constants_that_are_pointers(tmp_path: Path) -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12345\n"
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [99]) for name in "xy"]
    weights = onnx.numpy_helper.from_array(np.zeros(99, np.float32), "w")
    add = helper.make_node("Add", ["x", "w"], ["y"])
    graph = helper.make_graph([add], "g", values[:1], values[1:], [weights])
    proto = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 18)])
    bridge.convert(proto, tmp_path / "w.xml")
    onnx.save_model(
        proto, tmp_path / "e.onnx", save_as_external_data=True, location="e.data", size_threshold=9
    )
    for name, data in (("e.onnx", "e.data"), ("w.xml", "w.bin")):
        (tmp_path / data).write_bytes(pointer)
        with pytest.raises(InvalidModelError, match="git lfs pull"):
            bridge.convert(tmp_path / name, tmp_path / ("o.xml" if "onnx" in name else "o.onnx"))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("convrt", IR, "m.onnx"), "Did you mean 'convert'?"),
        (("convert", IR, "m.onnx", "--opst", "17"), "did you mean --opset?"),
    ],
)
def test_wrong_commands_and_options(arguments: tuple[str | Path, ...], says: str) -> None:
    finished = run(*arguments)
    assert finished.code == 2 and says in finished.err
