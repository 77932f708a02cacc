"""The library: convert, load, save, and models of either format in memory."""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bridge.errors import BridgeError, InvalidModelError, UsageError
from bridge.report import Report

if TYPE_CHECKING:
    import onnx
    import openvino

    from bridge.neutral.graph import Model

Source = Any
"""A path of an `.onnx`, `.onnxtxt`, `.textproto` or `.xml` file, the bytes of an ONNX model, an
`onnx.ModelProto`, or a `Model` that `load` gave."""

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


def _source_format(path: Path) -> str:
    """Like `format_of`; ONNX models in text can be read too, though not written."""
    return "onnx" if path.suffix.lower() in (".onnxtxt", ".textproto") else format_of(path)


@contextmanager
def _examined(source: Source) -> Iterator[None]:
    """Where something unforeseen breaks inside, asks the standard's checker whether the model is
    at fault: InvalidModelError if so."""
    try:
        yield
    except BridgeError:
        raise
    except Exception as error:
        from bridge.neutral.graph import Model
        from bridge.onnx_format.validity import fault_of

        is_path = isinstance(source, str | os.PathLike)
        if isinstance(source, Model) or (is_path and _source_format(Path(source)) != "onnx"):
            raise
        fault = fault_of(Path(source) if is_path else source)
        if fault is None:
            raise
        name = source if is_path else "the model"
        raise InvalidModelError(f"{name}: is not valid ONNX: {fault}") from error


def load(source: Source, weights: str | Path | None = None) -> Model:
    """Reads a model of either format into the neutral graph.

    `weights` is the `.bin` of an IR, where it does not stand beside the `.xml` under its name.
    """
    with _examined(source):
        return _load(source, weights)


def _load(source: Source, weights: str | Path | None) -> Model:
    if not isinstance(source, str | os.PathLike):
        from bridge.onnx_format.frontend import read as read_onnx

        return read_onnx(source)
    path = Path(source)
    kind = _source_format(path)
    if not path.is_file():
        raise InvalidModelError(f"{path}: there is no such file")
    if kind == "onnx" and weights is not None:
        raise UsageError(f"{path}: only an IR has its weights in a .bin; this is ONNX")
    if kind == "onnx":
        from bridge.onnx_format.frontend import read as read_onnx

        return read_onnx(path)
    from bridge.ir_format.frontend import read as read_ir

    return read_ir(path, Path(weights) if weights is not None else None)


def _loaded(source: Source, weights: str | Path | None = None) -> Model:
    from bridge.neutral.graph import Model

    return source if isinstance(source, Model) else _load(source, weights)


def _opset(model: Model, opset: int | None) -> int:
    if opset is None:
        if model.format == "onnx" and model.opset is not None:
            return max(model.opset, OLDEST_OPSET)
        return max(DEFAULT_OPSET, _opset_of_elements(model))
    from bridge.onnx_format.backend import check_opset

    check_opset(opset)
    return opset


_ELEMENT_SINCE = {"f4e2m1": 23, "f8e8m0": 24, "u2": 25}
"""The ONNX operator sets that first have these element types, where newer than the default."""


def _opset_of_elements(model: Model) -> int:
    elements = {
        v.element for node in model.graph.walk() for v in (*node.inputs, *node.outputs) if v
    }
    return max((_ELEMENT_SINCE.get(e.name, 0) for e in elements if e is not None), default=0)


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
    debug: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Report:
    """Converts a model to the format that the destination's suffix names.

    `opset` is the ONNX operator set to write, 13 to the newest (default: the source's own when it
    is ONNX, else 21). `input_shapes` gives inputs other shapes, by name: ints, symbols (str) or
    `None` for any size. `compress_to_fp16` stores f32 constants as f16 in IR. `keep_branches`
    never prunes a branch of an If. `external_data` stores ONNX constants beside the model (None:
    when they pass 1 GiB). `weights` is the `.bin` of an IR source, where it is not beside it.
    `debug` verifies the graph after each pass; `progress` is called with the name of each step
    that is done.

    Raises a BridgeError that says what, where and what to do; what stood at the destination is
    then untouched.
    """
    target = Path(destination)
    kind = format_of(target)
    _require_place(target)
    report = Report(source=str(source) if isinstance(source, str | os.PathLike) else "")
    with _examined(source), _no_collection():
        model = _loaded(source, weights)
        _keep_sources(model, Path(report.source) if report.source else target, target)
        _override(model, input_shapes)
        return _save(
            model,
            target,
            kind,
            report,
            opset,
            compress_to_fp16,
            keep_branches,
            external_data,
            _observer(model, debug, progress),
        )


def _observer(
    model: Model, debug: bool, progress: Callable[[str], None] | None
) -> Callable[[str], None]:
    """What to do when a step of a conversion is done."""

    def done(step: str) -> None:
        if debug:
            from bridge.neutral.verify import verify

            verify(model.graph, f"after {step}: graph")
        if progress is not None:
            progress(step)

    return done


@contextmanager
def _no_collection() -> Iterator[None]:
    """A graph is all cycles that live until the end, so that looking for garbage among them only
    costs time (a quarter of reading a large IR)."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


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
    done: Callable[[str], None],
) -> Report:
    from bridge.neutral.builder import Target
    from bridge.passes import prepare

    if kind == "onnx":
        from bridge.onnx_format.backend import write as write_onnx

        number = _opset(model, opset)
        prepare(model, Target("onnx", number), report, keep_branches, done)
        data = _companion(target)
        with _whole(target, data) as (part, part_data):
            wrote = write_onnx(model, part, part_data, data.name, number, external)
        report.files = [target, data] if wrote else [target]
        return report
    from bridge.ir_format.backend import write as write_ir

    prepare(model, Target("ir"), report, keep_branches, done)
    if compress_to_fp16:
        from bridge.passes.compress import compress

        compress(model)
    weights = _companion(target)
    with _whole(target, weights) as (part, part_weights):
        write_ir(model, part, part_weights)
    report.files = [target, weights]
    return report


def _require_place(target: Path) -> None:
    """Raises UsageError where no file can be called `target`."""
    if not target.parent.is_dir():
        raise UsageError(f"{target.parent}: there is no such directory to write to")
    for path in (target, _companion(target)):
        if path.is_dir():
            raise UsageError(f"{path}: is a directory; choose another name for the destination")


def _keep_sources(model: Model, source: Path, target: Path) -> None:
    """Raises UsageError where writing `target` would overwrite constants of another model."""
    from bridge.neutral.tensor import FileRange

    if source.exists() and target.exists() and source.samefile(target):
        return
    tensors = [n.attributes["value"] for n in model.graph.walk() if n.op == "Constant"]
    files = {t.source.path for t in tensors if isinstance(t.source, FileRange)}
    for written in (target, _companion(target)):
        if written.exists() and any(written.samefile(file) for file in files):
            raise UsageError(
                f"{written}: would be overwritten, but it holds the constants of {source}; choose "
                "another name or directory for the destination"
            )


def _companion(target: Path) -> Path:
    """Where constants of a model go that are not in its own file."""
    if format_of(target) == "onnx":
        return target.with_name(f"{target.name}.data")
    return target.with_suffix(".bin")


@contextmanager
def _whole(*targets: Path) -> Iterator[list[Path]]:
    """Temporary paths beside the targets, renamed onto them when the block ends well. What the
    system refuses meanwhile (no permission, no space left) is a UsageError."""
    try:
        with tempfile.TemporaryDirectory(prefix=".bridge-", dir=targets[0].parent) as name:
            parts = [Path(name) / target.name for target in targets]
            yield parts
            _put_in_place(parts, targets, Path(name))
    except OSError as error:
        raise UsageError(f"{targets[0]}: cannot be written: {error.strerror}") from error


def _put_in_place(parts: Sequence[Path], targets: Sequence[Path], aside: Path) -> None:
    """Renames new files to where they belong, those that stood there aside first: so a failure at
    the second file does not leave the first one changed, and ext4 does not write a new file out
    before it takes an old one's name."""
    moved: list[tuple[Path, Path]] = []
    try:
        # The file that names the others comes last.
        for part, target in reversed(list(zip(parts, targets, strict=True))):
            if not part.exists():
                continue
            if target.exists():
                moved.append((aside / f"{target.name}.old", target))
                os.rename(target, moved[-1][0])
            os.rename(part, target)
    except OSError:
        for old, target in moved:
            if old.exists():
                os.replace(old, target)
        raise


def to_onnx(source: Source, **options: Any) -> onnx.ModelProto:
    """The model as an `onnx.ModelProto` with its constants embedded; options as in `convert`."""
    from bridge.neutral.builder import Target
    from bridge.onnx_format.backend import to_proto
    from bridge.passes import prepare

    with _examined(source):
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
