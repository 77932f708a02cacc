"""What a conversion may be asked for. `bridge.convert` says what each option means.

The class in which an option stands says what it is for, and who has it: `to_onnx`, `to_openvino`,
or `convert` alone. An option that is not given is None; a switch is False, `device` "CPU", and
`ifs` "keep".
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

from bridge.errors import UsageError

if TYPE_CHECKING:
    from bridge.limits import Limits
    from bridge.neutral.types import Interval

PathLike: TypeAlias = str | os.PathLike[str]

InputShapes: TypeAlias = "Mapping[str, Sequence[int | str | Interval | None]]"
"""Shapes by the input's name. A dimension is a size, a symbol, a range of sizes, or None for any
size."""

Values: TypeAlias = "Mapping[str, Any]"
"""Values by the input's name: a number, a list or an array."""

GivenLimits: TypeAlias = "Limits | Mapping[str, int]"
"""Limits other than the default ones, by name (`bridge.limits.Limits`)."""

OwnInputs: TypeAlias = "PathLike | Mapping[str, Any] | Sequence[PathLike | Mapping[str, Any]]"
"""Inputs of one's own for a check: values by the input's name, a file or a folder, or several of
these (`bridge.check.own_inputs`)."""

Ranges: TypeAlias = "Mapping[str, tuple[float, float]]"
"""The lowest and the highest number that is drawn for an input, by the input's name."""

Tolerance: TypeAlias = "float | Mapping[str, float]"
"""A tolerance for all outputs, or by the output's name, with "*" for the others."""

Stateful: TypeAlias = "bool | Mapping[str, str]"
"""Which inputs and outputs become variables: the output by the input's name, or True for those that
are pairs by their names."""

DEVICES = ("CPU", "GPU", "NPU", "ANY")
"""The devices that an IR may be for; `bridge.targets` says what each takes."""

OLDEST = "2024.0"
"""The oldest release of OpenVINO whose faults are known."""


IFS = ("keep", "select", "select-some")
"""What becomes of Ifs."""

DEBUG = (False, True, "run")
"""How a conversion checks itself: not at all, the graph after each pass, and its numbers too."""


class CommonOptions(TypedDict, total=False):
    """What is for writing either."""

    weights: PathLike | None
    outputs: Sequence[str] | None
    rename: Mapping[str, str] | None
    input_shapes: InputShapes | None
    values: Values | None
    ifs: str
    trust_symbols: bool
    limits: GivenLimits | None


class OnnxOptions(CommonOptions, total=False):
    """What is for writing ONNX."""

    opset: int | None
    standard_operators: bool


class OnnxFileOptions(OnnxOptions, total=False):
    """What is for writing files of ONNX."""

    external_data: bool | None


class IrOptions(CommonOptions, total=False):
    """What is for writing IR."""

    device: str
    openvino: str | None
    compress_to_fp16: bool
    keep_branches: bool
    keep_metadata: bool
    strict: bool
    output_ranks: Mapping[str, int] | None
    stateful: Stateful
    beam_idx: bool
    one_decoder: bool


class ConvertOptions(OnnxFileOptions, IrOptions, total=False):
    """The options of `convert`."""

    force: bool
    debug: bool | str
    progress: Callable[[str], None] | None


def names_of(options: type) -> dict[str, str]:
    """The types of options, as they are written, by name."""
    return {
        name: getattr(type, "__forward_arg__", str(type))
        for name, type in options.__annotations__.items()
    }


def default_of(name: str, type: str) -> Any:
    """What an option is that is not given."""
    words = {"device": DEVICES[0], "ifs": IFS[0]}
    return words.get(name, None if type.endswith("None") else False)


def require_options(options: ConvertOptions, format: str, target: Path | None = None) -> None:
    """Raises UsageError for an option that is not for writing the format, and for values that make
    no sense whatever the model."""
    other = {"onnx": IrOptions, "ir": OnnxFileOptions}[format]
    for name, type in names_of(other).items():
        given = options.get(name)
        if name in CommonOptions.__annotations__ or given in (None, default_of(name, type)):
            continue
        meant = "IR (.xml)" if format == "onnx" else "ONNX (.onnx)"
        raise UsageError(f"{name} is for writing {meant}; the destination is {target}")
    for name, words in (("device", DEVICES), ("ifs", IFS)):
        word = options.get(name) or words[0]
        if word not in words:
            raise UsageError(f"{name} is one of {', '.join(words)}, not {word!r}")
    debug = options.get("debug", False)
    if debug not in (*DEBUG, None):
        raise UsageError(f'debug is True or "run", not {debug!r}')
    if (release := options.get("openvino")) is not None:
        release_number(release)
    _require_ranks(options.get("output_ranks"))
    added = [name for name in ("beam_idx", "one_decoder") if options.get(name)]
    _require_states(options.get("stateful", False), added)


def release_number(release: str) -> tuple[int, int]:
    """The year and the number of a release of OpenVINO, which sort by age. Raises UsageError for
    what is none, and for one before `OLDEST`."""
    match = re.fullmatch(r"(20\d\d)\.(\d)(\.\d+)?", str(release))
    if match is None or (int(match[1]), int(match[2])) < tuple(map(int, OLDEST.split("."))):
        raise UsageError(
            f"openvino is {release!r}; it is a release from {OLDEST} on, for example 2025.2"
        )
    return int(match[1]), int(match[2])


def _require_ranks(given: Any) -> None:
    if given is not None and not isinstance(given, Mapping):
        raise UsageError(f'output_ranks maps names to ranks, {{"y": 2}}; it is {given!r}')
    for name, rank in (given or {}).items():
        if isinstance(rank, bool) or not isinstance(rank, int) or rank < 0:
            raise UsageError(f'the rank of the output "{name}" must be 0 or more, not {rank!r}')


def _require_states(given: Any, added: Sequence[str]) -> None:
    if isinstance(given, Mapping):
        if all(isinstance(name, str) for name in (*given, *given.values())):
            return
    elif isinstance(given, bool):
        if added and not given:
            raise UsageError(f"{added[0]} is for a stateful model: set stateful too")
        return
    raise UsageError(
        f'stateful is True, or maps inputs to outputs, {{"past": "present"}}; it is {given!r}'
    )
