"""ONNX models in text: ONNX's own syntax (`.onnxtxt`) and protobuf's (`.textproto`)."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
from google.protobuf import text_format

from bridge.errors import InvalidModelError


def read_text(path: Path, where: str) -> onnx.ModelProto:
    """The model in a text file; InvalidModelError with the parser's message for what is none."""
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix.lower() == ".onnxtxt":
            model: onnx.ModelProto = onnx.parser.parse_model(text)
            return model
        model = text_format.Parse(text, onnx.ModelProto())
        return model
    except (onnx.parser.ParseError, text_format.ParseError, UnicodeDecodeError) as error:
        raise InvalidModelError(f"{where}: is not an ONNX model in text: {error}") from error
