"""Small graphs as text: read, changed by one pass alone, and shown as text again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx.parser

import bridge
import bridge.hooks
from bridge.neutral.builder import Target
from bridge.neutral.graph import Graph, Model
from bridge.neutral.printer import show
from bridge.neutral.verify import verify
from bridge.passes.context import Context
from bridge.report import Report

HEADER = '<ir_version: 10, opset_import: ["": 21]>'


def read(text: str) -> Model:
    """The model with a graph in ONNX's text syntax."""
    return bridge.load(onnx.parser.parse_model(f"{HEADER} {text}"))


def context(format: str = "ir", **options: Any) -> Context:
    """The context of a pass: `format` is the target format, `options` are options of
    `bridge.convert` and the `report`."""
    report = options.pop("report", Report())
    target = Target(format, 21 if format == "onnx" else 0)
    return Context(target, report, {"debug": True, **options})


def after(
    run: Callable[[Model, Context], object], text: str | Model, format: str = "ir", **options: Any
) -> str:
    """The graph as text after one pass, verified."""
    model = read(text) if isinstance(text, str) else text
    run(model, context(format, **options))
    return shown(model.graph)


def shown(graph: Graph) -> str:
    """The graph as text, verified."""
    verify(graph)
    return show(graph)
