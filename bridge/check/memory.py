"""Models in memory, as the files that engines open."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bridge
from bridge.errors import InvalidModelError
from bridge.files import source_format
from bridge.library.sources import classify

if TYPE_CHECKING:
    import onnx


def as_file(source: Any, folder: Path) -> Path:
    """The path of a model, which is written into `folder` where it is in memory, as it is: not as
    Bridge would write it, if its library can do that.

    Raises UsageError for what is no model or has another suffix, InvalidModelError for what cannot
    be written."""
    given = classify(source)
    if given.kind == "file":
        source_format(Path(source))
        return Path(source)
    folder.mkdir()
    if given.kind in ("pair", "openvino"):
        return given.written(folder)
    path = folder / ("model.onnx" if given.format == "onnx" else "model.xml")
    if given.kind == "model":
        bridge.save(given.held, path)
    elif isinstance(given.held, bytes):
        path.write_bytes(given.held)
    else:
        _save(given.held, path)
    return path


def name_of(source: Any) -> str:
    """What a report calls a model: its path, or what kind of object it is."""
    if isinstance(source, str | os.PathLike):
        return os.fspath(source)
    if isinstance(source, tuple):
        return "an IR in memory"
    home, _, _ = type(source).__module__.partition(".")
    if home == "builtins":
        return "an ONNX model in memory"
    return f"{'onnx' if home.startswith('onnx_ml') else home}.{type(source).__name__} in memory"


def _save(model: onnx.ModelProto, path: Path) -> None:
    import onnx

    try:
        path.write_bytes(model.SerializeToString())
    except ValueError:  # beyond what a proto can hold
        try:
            onnx.save(model, path, save_as_external_data=True, location=f"{path.name}.data")
        except Exception as error:
            raise InvalidModelError(f"the model cannot be written to a file: {error}") from error
