"""What is run on the device: how each model, and inputs for it, are made in the process that runs
it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
import openvino

import tests.conftest  # noqa: F401 - the same seed draws the same programs
from tests.support.model_files import (
    INPUT_SETS,
    IR_FILES,
    ONNX_FILES,
    feeds,
    ir_inputs,
    load_onnx,
    onnx_inputs,
)
from tests.support.reports import whole_feeds_of

Made = tuple[onnx.ModelProto | Path, Sequence[Mapping[str, Any]]]
"""A model of ONNX, or the path of an IR, and its inputs."""


@dataclass(frozen=True)
class Case:
    """A model by its name; `make(*arguments, folder)` makes it."""

    name: str
    make: Callable[..., Made]
    arguments: tuple[Any, ...]


def roundtrip_models() -> Iterator[Case]:
    """The models of `roundtrip_models/`."""
    for path in (*ONNX_FILES, *IR_FILES):
        yield Case(path.name, of_file, (path,))


def of_file(path: Path, _: Path) -> Made:
    """A model of `roundtrip_models/` with all its inputs that have no default."""
    if path.suffix == ".xml":
        inputs = ir_inputs(openvino.Core().read_model(path))
        return path, [feeds(path, inputs, index) for index in range(INPUT_SETS)]
    model = load_onnx(path)
    inputs = [item for item in onnx_inputs(model) if not item.has_default]
    return model, [feeds(path, inputs, index) for index in range(INPUT_SETS)]


def programs(kind: str, count: int, seed: int) -> Iterator[Case]:
    """Programs that `tests.programs` draws."""
    for number in range(count):
        yield Case(f"{kind}_{seed}_{number}", of_program, (kind, seed, number))


def of_program(kind: str, seed: int, number: int, _: Path) -> Made:
    """A drawn program with four inputs."""
    from tests.programs.drawing import draw_one

    program = draw_one(kind, seed, number)
    return program.model, [program.feed(index) for index in range(4)]


def control_flow(every: int, start: int = 0) -> Iterator[Case]:
    """A part of the control-flow suite: each two levels of different axes meet in the whole."""
    from tests.control_flow.suite import entries

    for entry in list(entries(2))[start::every]:
        yield Case(entry.name, of_entry, (entry,))


def of_entry(entry: Any, _: Path) -> Made:
    """A program of the suite with every combination of its inputs."""
    from tests.control_flow.judge import case_of
    from tests.control_flow.suite import feeds_of

    case = case_of(entry)
    return case.model, feeds_of(case)


def exporter_models() -> Iterator[Case]:
    """Models as exporters write them, as far as the exporters are installed."""
    from tests.models.groups import models

    for group, name, make in models():
        yield Case(f"{group}: {name}", of_exporter, (make,))


def of_exporter(make: Callable[[Path], Path], folder: Path) -> Made:
    """An exporter's model with the inputs that a check finds for it."""
    from bridge.check import check

    path = make(folder)
    report = check(path)
    return onnx.load(path), whole_feeds_of(report)
