"""The library: convert, load, save, and models of either format in memory."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bridge.errors import InvalidModelError, UsageError
from bridge.report import Report

if TYPE_CHECKING:
    import onnx
    import openvino

    from bridge.neutral.graph import Model

Source = Any
"""A path of an `.onnx` or `.xml` file, the bytes of an ONNX model, an `onnx.ModelProto`, or a
`Model` that `load` gave."""

DEFAULT_OPSET = 21
OLDEST_OPSET = 13


def format_of(path: Path) -> str:
    """ "onnx" or "ir" by the file's suffix; UsageError for others."""
    suffix = path.suffix.lower()
    if suffix == ".onnx":
        return "onnx"
    if suffix == ".xml":
        return "ir"
    raise UsageError(f"{path}: is neither .onnx nor .xml; the suffix says which format it is")


def load(source: Source, weights: str | Path | None = None) -> Model:
    """Reads a model of either format into the neutral graph.

    `weights` is the `.bin` of an IR, where it does not stand beside the `.xml` under its name.
    """
    if not isinstance(source, str | os.PathLike):
        from bridge.onnx_format.frontend import read as read_onnx

        return read_onnx(source)
    path = Path(source)
    kind = format_of(path)
    if not path.is_file():
        raise InvalidModelError(f"{path}: there is no such file")
    if kind == "onnx":
        from bridge.onnx_format.frontend import read as read_onnx

        return read_onnx(path)
    from bridge.ir_format.frontend import read as read_ir

    return read_ir(path, Path(weights) if weights is not None else None)


def _loaded(source: Source, weights: str | Path | None = None) -> Model:
    from bridge.neutral.graph import Model

    return source if isinstance(source, Model) else load(source, weights)


def _opset(model: Model, opset: int | None) -> int:
    if opset is None:
        if model.format == "onnx" and model.opset is not None:
            return max(model.opset, OLDEST_OPSET)
        return DEFAULT_OPSET
    from bridge.onnx_format.backend import check_opset

    check_opset(opset)
    return opset


def convert(
    source: Source,
    destination: str | Path,
    *,
    opset: int | None = None,
    input_shapes: Mapping[str, Sequence[Any]] | None = None,
    compress_to_fp16: bool = False,
    keep_branches: bool = False,
    external_data: bool | None = None,
    weights: str | Path | None = None,
) -> Report:
    """Converts a model to the format that the destination's suffix names.

    `opset` is the ONNX operator set to write, 13 to the newest (default: the source's own when it
    is ONNX, else 21). `input_shapes` gives inputs other shapes, by name: ints, symbols (str) or
    `None` for any size. `compress_to_fp16` stores f32 constants as f16 in IR. `keep_branches`
    never prunes a branch of an If. `external_data` stores ONNX constants beside the model (None:
    when they pass 1 GiB). `weights` is the `.bin` of an IR source, where it is not beside it.

    Raises a BridgeError that says what, where and what to do; what stood at the destination is
    then untouched.
    """
    target = Path(destination)
    kind = format_of(target)
    report = Report(source=str(source) if isinstance(source, str | os.PathLike) else "")
    model = _loaded(source, weights)
    _override(model, input_shapes)
    return _save(model, target, kind, report, opset, compress_to_fp16, keep_branches, external_data)


def _override(model: Model, shapes: Mapping[str, Sequence[Any]] | None) -> None:
    if shapes:
        from bridge.passes.boundary import override_shapes

        override_shapes(model, shapes)


def save(model: Model, destination: str | Path, **options: Any) -> Report:
    """Writes a model that `load` gave; the options are those of `convert`. The model is rewritten
    for its target on the way and is of no further use."""
    return convert(model, destination, **options)


def _save(
    model: Model,
    target: Path,
    kind: str,
    report: Report,
    opset: int | None,
    compress_to_fp16: bool,
    keep_branches: bool,
    external: bool | None,
) -> Report:
    from bridge.neutral.builder import Target
    from bridge.passes import prepare

    if kind == "onnx":
        from bridge.onnx_format.backend import write as write_onnx

        number = _opset(model, opset)
        prepare(model, Target("onnx", number), report, keep_branches)
        data = target.with_name(target.name + ".data")
        with _whole(target, data) as (part, part_data):
            wrote = write_onnx(model, part, part_data, data.name, number, external)
        report.files = [target, data] if wrote else [target]
        return report
    from bridge.ir_format.backend import write as write_ir

    prepare(model, Target("ir"), report, keep_branches)
    if compress_to_fp16:
        from bridge.passes.compress import compress

        compress(model)
    weights = target.with_suffix(".bin")
    with _whole(target, weights) as (part, part_weights):
        write_ir(model, part, part_weights)
    report.files = [target, weights]
    return report


@contextmanager
def _whole(*targets: Path) -> Iterator[list[Path]]:
    """Temporary paths beside the targets, renamed onto them when the block ends well."""
    directory = targets[0].parent
    if not directory.is_dir():
        raise UsageError(f"{directory}: there is no such directory")
    try:
        holder = tempfile.TemporaryDirectory(prefix=".bridge-", dir=directory)
    except OSError as error:
        raise UsageError(f"{directory}: cannot be written: {error.strerror}") from error
    with holder as name:
        parts = [Path(name) / target.name for target in targets]
        yield parts
        # The file that names the others comes last.
        for part, target in reversed(list(zip(parts, targets, strict=True))):
            if part.exists():
                os.replace(part, target)


def to_onnx(source: Source, **options: Any) -> onnx.ModelProto:
    """The model as an `onnx.ModelProto` with its constants embedded; options as in `convert`."""
    from bridge.neutral.builder import Target
    from bridge.onnx_format.backend import to_proto
    from bridge.passes import prepare

    model = _loaded(source, options.pop("weights", None))
    _override(model, options.pop("input_shapes", None))
    opset = _opset(model, options.pop("opset", None))
    prepare(model, Target("onnx", opset), Report(), options.pop("keep_branches", False))
    _no_more(options)
    return to_proto(model, opset)


def to_openvino(source: Source, **options: Any) -> openvino.Model:
    """The model as an `openvino.Model` (needs OpenVINO installed); options as in `convert`."""
    try:
        import openvino
    except ImportError as error:
        raise UsageError(
            "to_openvino needs OpenVINO: pip install 'onnx-openvino-bridge[check]'"
        ) from error
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "model.xml"
        convert(source, path, **options)
        core = openvino.Core()
        core.set_property({"ENABLE_MMAP": False})
        return core.read_model(path)


def _no_more(options: dict[str, Any]) -> None:
    if options:
        raise UsageError(f"unknown option {', '.join(sorted(options))}")
