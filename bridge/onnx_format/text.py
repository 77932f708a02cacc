"""ONNX models in text: ONNX's own syntax (`.onnxtxt`) and protobuf's (`.textproto`)."""

import re
from pathlib import Path

import onnx
import onnx.parser
from google.protobuf import text_format
from google.protobuf.message import DecodeError

from bridge.errors import InvalidModelError
from bridge.limits import budget

_SHOWN = 200
"""Characters of a line that a parser's message may quote."""

_FIRST, _LONGEST = 1 << 20, 1 << 30

_OPENING, _CLOSING = (b"{", b"(", b"<", b"["), (b"}", b")", b">", b"]")
_BRACKETS = (
    rb"""(?s)[][{}(<)]|=?>|\#[^\n]*"""
    rb"""|"(?:[^"\\]|\\(?:.|\Z))*(?:"|\Z)|'(?:[^'\\]|\\(?:.|\Z))*(?:'|\Z)"""
)
"""Brackets, and tokens without brackets: the arrow of a signature, texts, comments."""


def read_text(path: Path, where: str) -> onnx.ModelProto:
    """The model in a text file. Raises InvalidModelError with the parser's message if it is no
    model, and LimitError if it has too many or too deep brackets."""
    with path.open("rb") as file:
        data = file.read(_FIRST)
        if b"\0" in data:
            raise InvalidModelError(f"{where}: is not an ONNX model in text: it holds null bytes")
        data += file.read(_LONGEST)
    if len(data) > _LONGEST:
        raise InvalidModelError(f"{where}: is larger than a model in text can be, {_LONGEST} bytes")
    is_onnx = path.suffix.lower() == ".onnxtxt"
    _require_size(data, where, 2 if is_onnx else 3)
    try:
        text = data.decode()
        if is_onnx:
            return _parsed(text, where)
        model: onnx.ModelProto = text_format.Parse(text, onnx.ModelProto())
        return model
    except UnicodeDecodeError as error:
        raise InvalidModelError(f"{where}: is no UTF-8 text: {error}") from error
    except (onnx.parser.ParseError, text_format.ParseError) as error:
        first, *rest = _lines(error)
        raise InvalidModelError(
            f"{where}: is not an ONNX model in text: {first}", *(f"  {line}" for line in rest)
        ) from error
    except DecodeError as error:
        raise InvalidModelError(
            f"{where}: has graphs so deep within one another that ONNX's parser of text cannot "
            "pass them on; give the model as .onnx"
        ) from error


def _parsed(text: str, where: str) -> onnx.ModelProto:
    """The model in ONNX's text syntax. Its parser passes C++'s errors about numbers through."""
    try:
        model: onnx.ModelProto = onnx.parser.parse_model(text)
    except (IndexError, OverflowError, RuntimeError, ValueError) as error:
        raise InvalidModelError(
            f"{where}: is not an ONNX model in text: it holds a number that is out of range "
            f"({error})"
        ) from error
    return model


def _lines(error: Exception) -> list[str]:
    """The lines of a parser's message, which quotes a line of the text. ONNX's gives bytes."""
    given = error.args[0] if error.args else ""
    text = given.decode("utf-8", "replace") if isinstance(given, bytes) else str(given)
    return [line if len(line) <= _SHOWN else f"{line[:_SHOWN]} ..." for line in text.split("\n")]


def _require_size(data: bytes, where: str, levels: int) -> None:
    """Refuses text with so deep brackets that the recursive parsers would crash. A graph takes
    `levels` levels of brackets."""
    budget().elements(sum(map(data.count, (b"{", b"(", b"<", b"["))), where)
    depth = deepest = 0
    for found in re.finditer(_BRACKETS, data):
        if found[0] in _OPENING:
            depth += 1
            deepest = max(deepest, depth)
        elif found[0] in _CLOSING:
            depth -= 1
    budget().graph(deepest // levels, where)
