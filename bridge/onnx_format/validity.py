"""Whether a model is valid ONNX, as the standard's own checker sees it."""

from pathlib import Path

import onnx
import onnx.checker
import onnx.shape_inference

from bridge.files import TEXT_SUFFIXES
from bridge.onnx_format.text import read_text

LARGEST = 1 << 26
"""The most bytes of a file that is checked."""


def fault_of(source: str | Path | bytes | onnx.ModelProto) -> str | None:
    """The error that the checker, with type and shape inference, finds in a model. None if it finds
    none, or if the file is so large that a check takes too long."""
    if isinstance(source, str | Path):
        path = Path(source)
        if path.stat().st_size > LARGEST:
            return None
        source = read_text(path, str(path)) if path.suffix.lower() in TEXT_SUFFIXES else str(path)
    try:
        onnx.checker.check_model(source, full_check=True)
    except UnicodeDecodeError as error:  # the checker's message quotes a name that is not UTF-8
        return " ".join(error.object.decode("utf-8", "backslashreplace").split())
    except (
        onnx.checker.ValidationError, onnx.shape_inference.InferenceError, ValueError,
    ) as error:  # fmt: skip
        return " ".join(str(error).split())
    return None
