"""The library: convert, load, save, and models of either format in memory."""

from __future__ import annotations

import gc
import logging
import os
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias, TypeVar, Unpack, cast

from bridge.errors import BridgeError, InvalidModelError, UsageError, printable
from bridge.files import (
    companion,
    format_of,
    is_source,
    keep_sources,
    require_file,
    require_own,
    require_place,
    require_unchanged,
)
from bridge.files.atomic_write import locked, scratch_folder, whole
from bridge.files.kinds import require_kind
from bridge.library.sources import ClassifiedSource, classify, described
from bridge.limits import budget, limited, read_limits
from bridge.neutral.tensor import opened_once
from bridge.options import (
    ConvertOptions,
    GivenLimits,
    IrOptions,
    OnnxOptions,
    PathLike,
    require_options,
)
from bridge.options.keywords import keywords
from bridge.records.preprocessing import PREPROCESSING
from bridge.report import Report
from bridge.suggestions import refuse_other_contents

if TYPE_CHECKING:
    import onnx
    import onnx_ir
    import onnxscript
    import openvino
    import torch

    from bridge.neutral.graph import Model
    from bridge.passes.context import Context

File: TypeAlias = (
    "PathLike | bytes | bytearray | memoryview | BinaryIO | onnx.ModelProto | onnx.FunctionProto | "
    "tuple[bytes, bytes | None] | openvino.Model | torch.onnx.ONNXProgram | onnx_ir.Model | "
    "onnxscript.OnnxFunction"
)
"""A path of an `.onnx`, `.onnxtxt`, `.textproto` or `.xml` file, the bytes of an ONNX model or a
binary file with them, a pair of the bytes of an `.xml` and its `.bin`, or an object of another
library."""

Source: TypeAlias = "File | Model"
"""A File, or a `Model` that `load` gave."""

_Made = TypeVar("_Made")

_log = logging.getLogger("bridge")
"""Logs the decisions (INFO) and steps (DEBUG) of a conversion, if a program asks for it."""

DEBUG = os.environ.get("BRIDGE_DEBUG", "0") not in ("", "0")
"""Whether all conversions check themselves as with `debug`: for tests."""


@keywords()
def load(
    source: File, weights: PathLike | None = None, *, limits: GivenLimits | None = None
) -> Model:
    """Reads a model of either format into the neutral graph.

    `weights` is the `.bin` of an IR, if it is not beside the `.xml` under the same name. `limits`
    may be given as for `convert`.

    Raises InvalidModelError for a source that is no model or contradicts itself, UnsupportedError
    for operators that Bridge cannot read, LimitError for a model that would cost more than the
    limits, UsageError for a source of another kind.

    >>> model = bridge.load("model.onnx")
    >>> [value.name for value in model.graph.inputs]
    """
    given = classify(source)
    with limited(read_limits(limits)), _blamed(given, DEBUG):
        return _load(given, weights)


@keywords(ConvertOptions)
def convert(source: Source, destination: PathLike, **options: Unpack[ConvertOptions]) -> Report:
    """Converts a model to the format that the destination's suffix names.

    <options>

    Raises InvalidModelError for a source that is no model, contradicts itself, or changes while it
    is read. Raises UnsupportedError with all operators that cannot be converted, and LimitError for
    a model that would cost more than the limits. Raises UsageError for wrong options and for errors
    of the file system. An error leaves the destination as it was.

    >>> report = bridge.convert("model.onnx", "model.xml", input_shapes={"x": [None, 4]})
    >>> print(report)
    >>> bridge.convert("model.xml", "older.onnx", opset=17)
    """
    target = _path(destination, "the destination")
    format = format_of(target, is_written=True)
    require_place(target)
    require_options(options, format, target)
    limits = read_limits(options.get("limits"))
    given = classify(source)
    beside = [companion(target)] if format == "ir" or options.get("external_data") else []
    with locked(target.resolve().parent):
        require_own(target, [target, *beside], options.get("force", False))
    require_kind(target, options.get("force", False))
    debug = options["debug"] = options.get("debug") or DEBUG

    def attempt(opset: int | None) -> Report:
        model = _loaded(given, options)
        for name in ("output_ranks", "stateful"):
            if options.get(name) and model.format == format:
                raise UsageError(f"{name} is for converting ONNX to IR; the source is an IR")
        path = given.held if given.kind == "file" else None
        keep_sources(model, path, target, options.get("force", False))
        context = _context(model, format, Report(str(path or "")), options, opset)
        report = _save(model, target, context)
        for line in (*(f"wrote {path}" for path in report.files), *report.lines()):
            _log.info("%s", printable(line))
        if given.kind != "model":
            done.append(model)
        return report

    with limited(limits), _blamed(given, bool(debug)), opened_once(), _no_collection() as done:
        return _in_format(format, attempt, options.get("opset"))


@keywords(ConvertOptions)
def save(model: Model, destination: PathLike, **options: Unpack[ConvertOptions]) -> Report:
    """Writes a model from `load`, which stays as it is. Options and errors are the same as for
    `convert`.

    >>> model = bridge.load("model.onnx")
    >>> bridge.save(model, "copy.onnx")
    """
    return convert(model, destination, **options)


@keywords(OnnxOptions)
def to_onnx(source: Source, **options: Unpack[OnnxOptions]) -> onnx.ModelProto:
    """The model as an `onnx.ModelProto` with its constants embedded. Options and errors are the
    same as for `convert`. A UsageError also if the constants exceed a proto's limit of 2 GiB.

    >>> proto = bridge.to_onnx("model.xml", opset=17)
    >>> onnx.checker.check_model(proto)
    """
    from bridge.onnx_format.backend import to_proto
    from bridge.pipeline import prepare

    asked = cast(ConvertOptions, {**options, "debug": DEBUG})
    require_options(asked, "onnx")
    limits = read_limits(options.get("limits"))
    given = classify(source)

    def attempt(opset: int | None) -> onnx.ModelProto:
        model = _loaded(given, asked)
        context = _context(model, "onnx", Report(), asked, opset)
        prepare(model, context)
        proto = to_proto(model, context.target)
        require_unchanged(model.files)
        return proto

    with limited(limits), _blamed(given, DEBUG), opened_once():
        return _in_format("onnx", attempt, options.get("opset"))


@keywords(IrOptions)
def to_openvino(source: Source, **options: Unpack[IrOptions]) -> openvino.Model:
    """The model as an `openvino.Model`. Options and errors are the same as for `convert`. A
    UsageError also if OpenVINO is not installed.

    >>> model = bridge.to_openvino("model.onnx")
    >>> compiled = openvino.compile_model(model, "CPU")
    """
    try:
        import openvino
    except ImportError as error:
        raise UsageError(
            "to_openvino needs OpenVINO: pip install 'onnx-openvino-bridge[check]'"
        ) from error
    with scratch_folder() as folder:
        path = folder / "model.xml"
        convert(source, path, **options)
        core = openvino.Core()
        core.set_property({"ENABLE_MMAP": False})
        return core.read_model(path)


def _path(given: Any, what: str) -> Path:
    if not isinstance(given, str | os.PathLike):
        raise UsageError(f"{what} must be a path, not {described(given)}")
    return Path(given)


def _load(given: ClassifiedSource, weights: PathLike | None) -> Model:
    model = _read(given, weights)
    require_unchanged(model.files)
    return model


def _read(given: ClassifiedSource, weights: PathLike | None) -> Model:
    """The model of a source; of a Model, itself."""
    import bridge.hooks  # noqa: F401

    is_ir_file = given.kind == "file" and given.format == "ir"
    if given.kind == "file":
        require_file(given.held)
    if isinstance(given.held, Path | bytes):
        refuse_other_contents(given.held)
    if weights is not None and not is_ir_file:
        raise UsageError(f"{given.name}: only an IR (.xml) has its weights in a .bin; this is none")
    if given.kind == "model":
        return given.held  # type: ignore[no-any-return]
    if given.kind in ("pair", "openvino"):
        return given.read_ir()
    if is_ir_file:
        from bridge.ir_format.frontend import read as read_ir

        return read_ir(given.held, None if weights is None else _path(weights, "weights"))
    from bridge.onnx_format.frontend import read as read_onnx

    model = read_onnx(given.held)
    if given.kind == "file" and [n.op for n in model.graph.nodes] == ["com.microsoft::EPContext"]:
        from bridge.library.wrapped import unwrapped

        return unwrapped(model, given.held)
    return model


def _loaded(given: ClassifiedSource, options: ConvertOptions) -> Model:
    """A model that the caller may change."""
    from bridge.neutral.clone import clone_model

    model = _load(given, options.get("weights"))
    if given.kind != "model":
        return model
    nodes = list(model.graph.walk())
    constants = {
        id(n.attributes["value"]): n.attributes["value"] for n in nodes if n.op == "Constant"
    }
    budget().allow(len(nodes), sum(tensor.nbytes for tensor in constants.values()))
    return clone_model(model)


@contextmanager
def _blamed(given: ClassifiedSource, debug: bool) -> Iterator[None]:
    """Runs a conversion of a source. After an unforeseen error, asks the standard's checker whether
    the model is at fault too. If so, raises an InvalidModelError that names both. With `debug`,
    inference hides no unforeseen error. numpy does not warn if numbers of a model overflow."""
    import numpy as np

    from bridge.neutral.inference import strictly

    try:
        with strictly(debug), np.errstate(all="ignore"):
            yield
    except (BridgeError, MemoryError, RecursionError):
        raise
    except Exception as error:
        from bridge.onnx_format.validity import fault_of

        is_onnx = given.kind != "model" and given.format == "onnx"
        fault = fault_of(given.held) if is_onnx else None
        if fault is None:
            raise
        last = traceback.extract_tb(error.__traceback__)[-1]
        raise InvalidModelError(
            f"{given.name}: is not valid ONNX: {fault}",
            f"Bridge did not foresee it: {type(error).__name__}: {error} "
            f"({Path(last.filename).name}, line {last.lineno})",
        ) from error


@contextmanager
def _no_collection() -> Iterator[list[Model]]:
    """Turns garbage collection off. A graph consists of cycles that live until the end, so
    searching for garbage only costs time (a quarter of reading a large IR). The block adds models
    that nobody needs any more to the list. Their cycles are cut before the collector is on again,
    because it would search them all at once."""
    was_enabled = gc.isenabled()
    gc.disable()
    done: list[Model] = []
    try:
        yield done
    finally:
        if was_enabled:
            for model in done:
                for node in model.graph.walk():
                    for value in node.outputs:
                        value.producer = None
            done.clear()
            gc.enable()


def _in_format(format: str, attempt: Callable[[int | None], _Made], opset: int | None) -> _Made:
    """The result of an attempt. For ONNX, it uses the wanted operator set, or one that has all
    operators of the model."""
    if format == "ir":
        return attempt(None)
    from bridge.library.opsets import in_some_opset

    return in_some_opset(attempt, opset)


def _context(
    model: Model, format: str, report: Report, options: ConvertOptions, opset: int | None
) -> Context:
    """The context of the passes. The inputs of the model get the given shapes and values."""
    from bridge.neutral.builder import Target
    from bridge.passes.context import Context
    from bridge.passes.inputs import give_types, override_shapes
    from bridge.targets import device_of

    if options.get("outputs") is not None or options.get("rename"):
        from bridge.passes.edit import cut_at, rename

        if (outputs := options.get("outputs")) is not None:
            cut_at(model, outputs)
        rename(model, options.get("rename") or {})
    if types := options.get("input_types"):
        give_types(model, types)
    if any(options.get(name) for name in ("input_types", *PREPROCESSING)):
        from bridge.passes.preprocess import asked_for, preprocess

        preprocess(model, asked_for(model, options))
    shapes = options.get("input_shapes")
    if shapes not in (None, {}):  # without a new shape the declared sizes stay
        override_shapes(model, shapes)
    if shapes or options.get("values"):
        from bridge.passes.specialize import fix_values, record_shapes

        record_shapes(model, shapes or {})
        fix_values(model, options.get("values") or {})
    report.notes += model.notes + model.details
    report.details += model.details
    usual = device_of(options).ifs if format == "ir" else "keep"
    asked = cast(ConvertOptions, {**options, "ifs": options.get("ifs") or usual})
    if format == "ir":
        return Context(Target("ir"), report, asked)
    from bridge.library.opsets import onnx_target

    return Context(
        onnx_target(model, opset, bool(options.get("standard_operators"))), report, asked
    )


def _save(model: Model, target: Path, context: Context) -> Report:
    """Prepares a model for its target and writes it."""
    from bridge.library.weights import weights_of
    from bridge.passes.assumptions import require_nothing_assumed
    from bridge.pipeline import prepare

    options, report = context.options, context.report
    told = options.get("progress") or (lambda step: None)

    def done(step: str) -> None:
        _log.debug("%s: %s done", target, step)
        told(step)

    source_size = sum(os.path.getsize(path) for path in model.files)
    prepare(model, context, done)
    report.weights = weights_of(model.graph)
    if options.get("strict"):
        require_nothing_assumed(report)

    def check(written: Sequence[Path]) -> None:
        require_unchanged(model.files)
        require_own(target, written, options.get("force", False))
        if beside in written and beside.is_symlink():
            report.notes.append(f"{beside}: was a link and is a file now; the file it led to stays")

    beside = companion(target)
    # A file that replaces its own source could not be made again.
    lasting = is_source(target, model) or is_source(beside, model)
    written = partial(whole, target, beside, notes=report.notes, check=check, lasting=lasting)
    report.files = [target, beside]
    if context.target.format == "ir":
        from bridge.ir_format.backend import write as write_ir

        with written() as parts:
            write_ir(model, *parts)
        _tell_size(report, source_size)
        return report
    from bridge.onnx_format.backend import write as write_onnx

    _note_limits(model, report)
    with written() as (part, data):
        external = options.get("external_data")
        wrote = write_onnx(model, part, data, beside.name, context.target, external)
    if not wrote:
        report.files = [target]
        if beside.is_file():
            report.notes.append(
                f"{beside}: stays, but {target.name} does not need it; other models may"
            )
    _tell_size(report, source_size)
    return report


def _tell_size(report: Report, source_size: int) -> None:
    """Reports the size of a specialized model's files beside the size of its source's files."""
    size = sum(path.stat().st_size for path in report.files)
    if report.specialized and source_size > size:
        share = f"{100 * size / source_size:.1f} %"
        report.specialized.append(
            f"{size:,} bytes of files, {share} of the source's {source_size:,}"
        )


def _note_limits(model: Model, report: Report) -> None:
    """Notes the inputs whose sizes ONNX cannot bound."""
    from bridge.neutral.types import ANY, Interval

    for value in model.graph.inputs:
        ranges = [dim for dim in value.shape or () if isinstance(dim, Interval) and dim != ANY]
        if ranges:
            report.notes.append(
                f'the input "{value.name}": ONNX has no ranges of sizes, so that '
                f"{' and '.join(map(str, ranges))} became any size"
            )
