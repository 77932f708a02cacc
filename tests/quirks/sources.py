"""Models with inputs, on which quirks may fire."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import onnx
from onnx import parser

from bridge.errors import BridgeError
from tests.conformance import bodies
from tests.conformance.bodies import NoFormError
from tests.conformance.cases import cases
from tests.control_flow.suite import Entry, entries, feeds_of
from tests.quirks.alone import Fired, judge
from tests.quirks.canaries import CANARIES, Canary
from tests.support.model_files import INPUT_SETS, ONNX_FILES, feeds, load_onnx, onnx_inputs

Feeds = list[Mapping[str, Any]]


@dataclass(frozen=True)
class Source:
    """A model with inputs, made on demand; raises NoFormError if it does not exist."""

    name: str
    make: Callable[[], tuple[onnx.ModelProto, Feeds]]


def proto_of(canary: Canary) -> onnx.ModelProto:
    """The model of a canary."""
    header = f'<ir_version: 10, opset_import: ["": {canary.opset}]>'
    return parser.parse_model(f"{header} g {canary.model}")


def of_canaries() -> Iterator[Source]:
    """The canaries that onnxruntime can run, with their inputs."""
    runnable = ((path, canary) for path, canary in CANARIES.items() if canary.expected is None)
    for path, canary in runnable:
        given: Feeds = [feed for feed in (canary.before, canary.feed) if feed is not None]
        yield Source(path, lambda canary=canary, given=given: (proto_of(canary), given))


def of_round_trip() -> Iterator[Source]:
    """The models of `roundtrip_models/`, with inputs as their comments say."""
    for path in ONNX_FILES:

        def make(path=path) -> tuple[onnx.ModelProto, Feeds]:
            model = load_onnx(path)
            inputs = [item for item in onnx_inputs(model) if not item.has_default]
            return model, [feeds(path, inputs, index) for index in range(INPUT_SETS)]

        yield Source(path.stem, make)


def of_control_flow() -> Iterator[Source]:
    """The programs of the control-flow suite that cover every pair of levels of different axes."""
    for entry in entries(2):
        yield Source(entry.name, lambda entry=entry: _program(entry))


def _program(entry: Entry) -> tuple[onnx.ModelProto, Feeds]:
    from tests.control_flow.judge import case_of

    try:
        case = case_of(entry)
    except Exception as error:  # onnxruntime cannot run the program itself
        raise NoFormError(str(error)) from error
    return case.model, list(feeds_of(case))


def of_cases() -> Iterator[Source]:
    """The standard's cases in bodies."""
    for name in cases():
        for body in bodies.BODIES:
            yield Source(f"{name} in {body}", lambda name=name, body=body: _case(name, body))


def _case(name: str, body: str) -> tuple[onnx.ModelProto, Feeds]:
    case = bodies.wrap(cases()[name], body)
    return case.model, list(feeds_of(case))


SOURCES: Mapping[str, Callable[[], Iterator[Source]]] = {
    "canaries": of_canaries,
    "roundtrip": of_round_trip,
    "control-flow": of_control_flow,
    "cases": of_cases,
}
"""The kinds of sources."""


@cache
def sources(kind: str) -> list[Source]:
    """The sources of a kind."""
    return list(SOURCES[kind]())


def judged(kind: str, index: int) -> list[Fired]:
    """The effect of the quirks on one source; empty if onnxruntime or Bridge refuses it."""
    try:
        model, feeds = sources(kind)[index].make()
        return list(judge(model, feeds))
    except (NoFormError, BridgeError):
        return []
