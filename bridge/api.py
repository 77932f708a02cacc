"""The library: convert, load, save, and models of either format in memory."""

from __future__ import annotations

import gc
import operator
import os
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias, TypedDict, TypeVar, Unpack

from bridge.atomic_write import scratch_folder, settled, whole
from bridge.errors import BridgeError, InvalidModelError, UnsupportedError, UsageError
from bridge.files import (
    companion,
    format_of,
    holds_constants,
    is_source,
    keep_sources,
    require_file,
    require_own,
    require_place,
    require_unchanged,
    source_format,
)
from bridge.limits import Limits, budget, limited, read_limits
from bridge.report import Report
from bridge.sources import described, in_memory
from bridge.suggestions import keywords, refuse_other_contents

if TYPE_CHECKING:
    import onnx
    import onnx_ir
    import onnxscript
    import openvino
    import torch

    from bridge.neutral.builder import Target
    from bridge.neutral.graph import Model
    from bridge.neutral.types import Interval
    from bridge.passes.context import Context

PathLike: TypeAlias = str | os.PathLike[str]

File: TypeAlias = (
    "PathLike | bytes | bytearray | memoryview | BinaryIO | onnx.ModelProto | onnx.FunctionProto | "
    "tuple[bytes, bytes | None] | openvino.Model | torch.onnx.ONNXProgram | onnx_ir.Model | "
    "onnxscript.OnnxFunction"
)
"""A path of an `.onnx`, `.onnxtxt`, `.textproto` or `.xml` file, the bytes of an ONNX model or a
binary file with them, a pair of the bytes of an `.xml` and its `.bin`, or what other libraries hold
in memory."""

Source: TypeAlias = "File | Model"
"""A File, or a `Model` that `load` gave."""

InputShapes: TypeAlias = "Mapping[str, Sequence[int | str | Interval | None]]"
"""Shapes by the input's name. A dimension is a size, a symbol, a range of sizes, or None for any
size."""


GivenLimits: TypeAlias = "Limits | Mapping[str, int] | None"
"""Limits other than the default ones, by name (`bridge.limits.Limits`)."""


OutputRanks: TypeAlias = "Mapping[str, int]"
"""Ranks by the output's name."""


Stateful: TypeAlias = "bool | Mapping[str, str]"
"""Which inputs and outputs become variables: the output by the input's name, or True for those that
are pairs by their names."""


_Made = TypeVar("_Made")


class ConvertOptions(TypedDict, total=False):
    """The options of `convert`."""

    opset: int | None
    input_shapes: InputShapes | None
    compress_to_fp16: bool
    keep_branches: bool
    output_ranks: OutputRanks | None
    stateful: Stateful
    beam_idx: bool
    quirks: str
    external_data: bool | None
    weights: PathLike | None
    force: bool
    limits: GivenLimits
    debug: bool
    progress: Callable[[str], None] | None


DEFAULT_OPSET = 21
OLDEST_OPSET = 13

QUIRKS = ("default", "old", "none")
"""Which faults of engines a conversion works round."""


DEBUG = bool(os.environ.get("BRIDGE_DEBUG"))
"""Whether all conversions check themselves as with `debug`: for tests."""


@contextmanager
def _known(source: Any, debug: bool = DEBUG) -> Iterator[Any]:
    """The source as a path, bytes, an onnx.ModelProto, or a Model. Where something unforeseen
    breaks inside, asks the standard's checker whether the model is at fault too: InvalidModelError
    if so, which names both. With `debug` inference takes nothing for unforeseen. That numbers of a
    model overflow is nothing that numpy should warn of."""
    import numpy as np

    from bridge.neutral.inference import strictly

    source = in_memory(source)
    try:
        with strictly(debug), np.errstate(all="ignore"):
            yield source
    except (BridgeError, MemoryError, RecursionError):
        raise
    except Exception as error:
        from bridge.neutral.graph import Model
        from bridge.onnx_format.validity import fault_of

        if isinstance(source, str | os.PathLike):
            path = Path(source)
            fault = fault_of(path) if source_format(path) == "onnx" else None
            name = str(path)
        else:
            if isinstance(source, bytearray | memoryview):
                source = bytes(source)
            fault = None if isinstance(source, Model) else fault_of(source)
            name = "the model"
        if fault is None:
            raise
        last = traceback.extract_tb(error.__traceback__)[-1]
        raise InvalidModelError(
            f"{name}: is not valid ONNX: {fault}\nBridge did not foresee it: "
            f"{type(error).__name__}: {error} ({Path(last.filename).name}, line {last.lineno})"
        ) from error


@keywords()
def load(source: File, weights: PathLike | None = None, *, limits: GivenLimits = None) -> Model:
    """Reads a model of either format into the neutral graph.

    `weights` is the `.bin` of an IR, where it does not stand beside the `.xml` under its name.
    `limits` may be given as for `convert`.

    Raises InvalidModelError for what is no model or contradicts itself, UnsupportedError for
    operators that Bridge cannot read, LimitError for a model that would cost more than is allowed,
    UsageError for a source of another kind.
    """
    with limited(read_limits(limits)), _known(source) as known:
        return _load(known, weights)


def _load(source: Any, weights: PathLike | None) -> Model:
    model = _read(source, weights)
    require_unchanged(model.files)
    return model


def _read(source: Any, weights: PathLike | None) -> Model:
    import bridge.hooks  # noqa: F401

    if not isinstance(source, str | os.PathLike):
        from bridge.neutral.graph import Model
        from bridge.onnx_format.frontend import read as read_onnx

        _refuse_weights("the model", weights)
        if isinstance(source, Model):
            return source
        refuse_other_contents(source)
        return read_onnx(bytes(source) if isinstance(source, bytearray | memoryview) else source)
    path = Path(source)
    kind = source_format(path)
    require_file(path)
    refuse_other_contents(path)
    if kind == "onnx":
        from bridge.onnx_format.frontend import read as read_onnx

        _refuse_weights(str(path), weights)
        return read_onnx(path)
    from bridge.ir_format.frontend import read as read_ir

    return read_ir(path, None if weights is None else _path(weights, "weights"))


def _loaded(source: Any, weights: PathLike | None) -> Model:
    """A model that the caller may change."""
    from bridge.neutral.clone import clone_model
    from bridge.neutral.graph import Model

    if not isinstance(source, Model):
        return _load(source, weights)
    _refuse_weights("the model", weights)
    nodes = [node for node in source.graph.walk()]
    constants = {
        id(n.attributes["value"]): n.attributes["value"] for n in nodes if n.op == "Constant"
    }
    budget().allow(len(nodes), sum(tensor.nbytes for tensor in constants.values()))
    return clone_model(source)


def _refuse_weights(name: str, weights: PathLike | None) -> None:
    if weights is not None:
        raise UsageError(f"{name}: only an IR (.xml) has its weights in a .bin; this is none")


def _path(given: Any, what: str) -> Path:
    if not isinstance(given, str | os.PathLike):
        raise UsageError(f"{what} must be a path, not {described(given)}")
    return Path(given)


def _opset(model: Model, opset: int | None) -> int:
    from bridge.onnx_format.backend import check_opset

    if opset is None:
        number = _own_opset(model)
        if "com.microsoft" not in model.opsets:  # whose operators hold few bits in bytes
            number = max(number, _opset_of_elements(model))
        check_opset(number)
        return number
    try:
        number = operator.index(opset)
    except TypeError:
        raise UsageError(f"opset must be a number like 17, not {opset!r}") from None
    check_opset(number)
    return number


def _target(kind: str, model: Model, opset: int | None) -> Target:
    from bridge.neutral.builder import Target

    if kind == "ir":
        return Target(kind)
    return Target(kind, _opset(model, opset), frozenset(model.opsets))


def _own_opset(model: Model) -> int:
    """The operator set of the ONNX model that a model is or came from, else the default."""
    import onnx.defs

    if model.opset is None or model.opset > onnx.defs.onnx_opset_version():
        return DEFAULT_OPSET
    return max(model.opset, OLDEST_OPSET)


_ELEMENT_SINCE = {
    "f8e4m3fn": 19, "f8e4m3fnuz": 19, "f8e5m2": 19, "f8e5m2fnuz": 19, "i4": 21, "u4": 21,
    "f4e2m1": 23, "f8e8m0": 24, "u2": 25, "i2": 25,
}  # fmt: skip
"""The ONNX operator sets that first have these element types."""


def _opset_of_elements(model: Model) -> int:
    elements = {
        v.element for node in model.graph.walk() for v in (*node.inputs, *node.outputs) if v
    }
    return max((_ELEMENT_SINCE.get(e.name, 0) for e in elements if e is not None), default=0)


@keywords()
def convert(
    source: Source,
    destination: PathLike,
    *,
    opset: int | None = None,
    input_shapes: InputShapes | None = None,
    compress_to_fp16: bool = False,
    keep_branches: bool = False,
    output_ranks: OutputRanks | None = None,
    stateful: Stateful = False,
    beam_idx: bool = False,
    quirks: str = "default",
    external_data: bool | None = None,
    weights: PathLike | None = None,
    force: bool = False,
    limits: GivenLimits = None,
    debug: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Report:
    """Converts a model to the format that the destination's suffix names.

    `opset` is the ONNX operator set to write, 13 to the newest (default: the source's own when it
    is ONNX, or an IR that Bridge made of ONNX, else 21). `input_shapes` gives inputs other shapes,
    by name; a dimension is a size, a symbol (str), a range (`bridge.Interval(1, 8)`), or None for
    any size. `compress_to_fp16` stores f32 constants as f16 in IR. `keep_branches` never prunes a
    branch of an If, in IR, with which OpenVINO may then be unable to run the model; one that
    contradicts itself is refused. `output_ranks` says the rank of outputs, by name, where several
    are possible; without it, one whose rank data decide is two outputs of the IR, its elements and
    its shape, of which `unpack` makes it. `stateful` makes variables of IR (ReadValue, Assign) of
    states that an ONNX model takes and gives, as the caches of language models are: pairs of input
    and output by name, or True for those that their names tell; `beam_idx` adds the input that
    reorders their sequences. `quirks` says which faults of engines are worked round: "default",
    those of the newest releases; "old", also those that only earlier ones have; or "none", for
    other readers and plugins.
    `external_data` stores ONNX constants beside the model (None: when they pass 1 GiB). `weights`
    is the `.bin` of an IR source, where it is not beside it. `force` overwrites a `.bin` or `.data`
    that stands where the destination's goes, but beside no model. `limits` raises what a conversion
    may cost, by name (`bridge.limits.Limits`). `debug` verifies the graph after each pass;
    `progress` is called with the name of each step that is done.

    Raises InvalidModelError for a source that is no model or contradicts itself, or that changes
    while it is read; UnsupportedError with all operators that cannot be converted; LimitError for a
    model that would cost more than is allowed; and UsageError for options that make no sense and
    for what the file system refuses. What stood at the destination is then untouched.
    """
    from bridge.passes.context import Context

    target = _path(destination, "the destination")
    kind = format_of(target)
    require_place(target)
    if kind == "onnx":
        misplaced = {
            "compress_to_fp16": compress_to_fp16,
            "keep_branches": keep_branches,
            "output_ranks": output_ranks is not None,
            "stateful": bool(stateful),
            "beam_idx": beam_idx,
        }
    else:
        misplaced = {"opset": opset is not None, "external_data": external_data is not None}
    for option, given in misplaced.items():
        if given:
            other = "IR (.xml)" if kind == "onnx" else "ONNX (.onnx)"
            raise UsageError(f"{option} is for writing {other}; the destination is {target}")
    allowed = read_limits(limits)
    if kind == "ir" or external_data:
        with settled(target):
            require_own(target, [companion(target)], force)
    _check_quirks(quirks)
    ranks, states = _ranks(output_ranks), _states(stateful, beam_idx)
    report = Report(source=str(source) if isinstance(source, str | os.PathLike) else "")
    debug = debug or DEBUG

    def attempt(opset: int | None) -> Report:
        model = _loaded(known, weights)
        if ranks and model.format == kind:
            raise UsageError("output_ranks is for converting ONNX to IR; the source is an IR")
        if states and model.format == kind:
            raise UsageError("stateful is for converting ONNX to IR; the source is an IR")
        keep_sources(model, Path(report.source) if report.source else target, target)
        _override(model, input_shapes)
        report.notes = list(model.notes)
        context = Context(
            _target(kind, model, opset),
            report,
            keep_branches,
            compress_to_fp16,
            quirks,
            debug,
            frozenset(input_shapes or ()),
            ranks,
            stateful=states,
            beams=beam_idx,
        )
        return _save(model, target, context, external_data, force, progress or _silent)

    with limited(allowed), _known(source, debug) as known, _no_collection():
        return _in_some_opset(attempt, opset) if kind == "onnx" else attempt(None)


def _in_some_opset(attempt: Callable[[int | None], _Made], opset: int | None) -> _Made:
    """What an attempt gives. Where no operator set was asked for and the one that the model had as
    ONNX cannot say all of it, as an IR may have changed since, another attempt in the default
    one."""
    from bridge.neutral.builder import Target

    try:
        return attempt(opset)
    except UnsupportedError as error:
        if opset is not None or error.target == str(Target("onnx", DEFAULT_OPSET)):
            raise
        try:
            return attempt(DEFAULT_OPSET)
        except UnsupportedError:
            raise error from None


def _check_quirks(quirks: object) -> None:
    if quirks not in QUIRKS:
        raise UsageError(f"quirks is one of {', '.join(QUIRKS)}, not {quirks!r}")


def _ranks(given: OutputRanks | None) -> dict[str, int]:
    if given is not None and not isinstance(given, Mapping):
        raise UsageError(f'output_ranks maps names to ranks, {{"y": 2}}; it is {given!r}')
    for name, rank in (given or {}).items():
        if isinstance(rank, bool) or not isinstance(rank, int) or rank < 0:
            raise UsageError(f'the rank of the output "{name}" must be 0 or more, not {rank!r}')
    return dict(given or {})


def _states(given: Stateful, beams: bool) -> Stateful:
    if isinstance(given, Mapping):
        if all(isinstance(name, str) for name in (*given, *given.values())):
            return dict(given)
    elif isinstance(given, bool):
        if beams and not given:
            raise UsageError("beam_idx is for a stateful model: set stateful too")
        return given
    raise UsageError(
        f'stateful is True, or maps inputs to outputs, {{"past": "present"}}; it is {given!r}'
    )


def _silent(step: str) -> None:
    """What to do when a step of a conversion is done, where nobody asks."""


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


def _override(model: Model, shapes: InputShapes | None) -> None:
    if shapes is not None:
        from bridge.passes.boundary import override_shapes

        override_shapes(model, shapes)


@keywords(ConvertOptions.__annotations__)
def save(model: Model, destination: PathLike, **options: Unpack[ConvertOptions]) -> Report:
    """Writes a model that `load` gave, which stays as it is; options and errors are those of
    `convert`."""
    return convert(model, destination, **options)


def _save(
    model: Model,
    target: Path,
    context: Context,
    external: bool | None,
    force: bool,
    done: Callable[[str], None],
) -> Report:
    from bridge.pipeline import prepare

    report = context.report
    prepare(model, context, done)

    def check(written: Sequence[Path]) -> None:
        require_unchanged(model.files)
        require_own(target, written, force)

    # What takes the place of its own source could not be made again.
    lasting = is_source(target, model) or is_source(companion(target), model)
    written = partial(whole, notes=report.notes, check=check, lasting=lasting)
    if context.target.format == "onnx":
        from bridge.onnx_format.backend import write as write_onnx

        data = companion(target)
        _note_limits(model, report)
        with written(target, data) as parts:
            part, part_data = parts
            wrote = write_onnx(model, part, part_data, data.name, context.target.opset, external)
            obsolete = not wrote and _holds_constants_of(data, target)
        if obsolete:
            with suppress(OSError):
                data.unlink()
        report.files = [target, data] if wrote else [target]
        return report
    from bridge.ir_format.backend import write as write_ir

    weights = companion(target)
    with written(target, weights) as parts:
        write_ir(model, *parts)
    report.files = [target, weights]
    return report


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


def _holds_constants_of(data: Path, target: Path) -> bool:
    """Whether `data` holds constants of the model that stands at `target`, if one does."""
    if not (data.is_file() and target.is_file()):
        return False
    try:
        return holds_constants(data, load(target))
    except BridgeError:
        return False


@keywords()
def to_onnx(
    source: Source,
    *,
    opset: int | None = None,
    input_shapes: InputShapes | None = None,
    quirks: str = "default",
    weights: PathLike | None = None,
    limits: GivenLimits = None,
) -> onnx.ModelProto:
    """The model as an `onnx.ModelProto` with its constants embedded. Options and errors are those
    of `convert`; a UsageError also where the constants pass the 2 GiB that a proto can hold."""
    from bridge.onnx_format.backend import to_proto
    from bridge.passes.context import Context
    from bridge.pipeline import prepare

    _check_quirks(quirks)

    def attempt(opset: int | None) -> onnx.ModelProto:
        model = _loaded(known, weights)
        _override(model, input_shapes)
        target = _target("onnx", model, opset)
        prepare(model, Context(target, Report(), quirks=quirks, debug=DEBUG))
        proto = to_proto(model, target.opset)
        require_unchanged(model.files)
        return proto

    with limited(read_limits(limits)), _known(source) as known:
        return _in_some_opset(attempt, opset)


@keywords()
def to_openvino(
    source: Source,
    *,
    input_shapes: InputShapes | None = None,
    compress_to_fp16: bool = False,
    keep_branches: bool = False,
    output_ranks: OutputRanks | None = None,
    stateful: Stateful = False,
    beam_idx: bool = False,
    quirks: str = "default",
    weights: PathLike | None = None,
    limits: GivenLimits = None,
) -> openvino.Model:
    """The model as an `openvino.Model`. Options and errors are those of `convert`; a UsageError
    also where OpenVINO is not installed."""
    try:
        import openvino
    except ImportError as error:
        raise UsageError(
            "to_openvino needs OpenVINO: pip install 'onnx-openvino-bridge[check]'"
        ) from error
    with scratch_folder() as folder:
        path = folder / "model.xml"
        convert(
            source,
            path,
            input_shapes=input_shapes,
            compress_to_fp16=compress_to_fp16,
            keep_branches=keep_branches,
            output_ranks=output_ranks,
            stateful=stateful,
            beam_idx=beam_idx,
            quirks=quirks,
            weights=weights,
            limits=limits,
        )
        core = openvino.Core()
        core.set_property({"ENABLE_MMAP": False})
        return core.read_model(path)
