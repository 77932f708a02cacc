"""What was nearly right is told what it was probably meant to be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

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
        (lambda: bridge.to_onnx(IR, keep_branches=True), "it has ifs, input_shapes, limits, "),
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
    for call in (lambda p: bridge.load(p), lambda p: bridge.convert(IR, p)):
        with pytest.raises(UsageError, match=says):
            call(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("m.onnx", IR.read_bytes(), "is an OpenVINO IR in XML, not an ONNX model; give it a name"),
        ("m.xml", b"\x08\x0a\x12\x04test", "whose name must end in .onnx"),
        ("m.onnx", b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
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
