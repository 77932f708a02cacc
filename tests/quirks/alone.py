"""Each quirk alone: the models in which it fires, and whether the graph means the same after it.

onnxruntime computes the graph as plain ONNX, before the quirk and after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import onnx

import bridge
from bridge import quirks
from bridge.check.diagnosis.stages import plain_onnx
from bridge.check.engines import EngineError, LacksOperatorError, OnnxRuntime, Session
from bridge.errors import BridgeError
from bridge.neutral.clone import clone_model
from bridge.neutral.graph import Graph, Model
from bridge.passes.context import Context
from bridge.pipeline import TO_IR
from tests.support.graphs import context
from tests.support.running import assert_close, flat

Feeds = Sequence[Mapping[str, Any]]
Runs = list[tuple[Mapping[str, Any], list[Any]]]
"""Inputs with the outputs of the model."""


@dataclass(frozen=True)
class Fired:
    """A quirk that rewrote a model. `said` is the fault, "" if there is none; `ran` is whether
    onnxruntime ran both graphs."""

    path: str
    said: str = ""
    ran: bool = True


def legalized(source: onnx.ModelProto | Model) -> tuple[Model, Context]:
    """A model as it comes to the quirks."""
    model, told = bridge.load(source), context()
    model = clone_model(model)
    for step in TO_IR:
        if step.run is quirks.work_round:
            return model, told
        if step.when(model, told):
            step.run(model, told)
    raise AssertionError("no quirks run")


def fired(source: onnx.ModelProto) -> dict[str, Model]:
    """The model after each quirk that rewrites it alone, by the path of the quirk, and under "" the
    model before all quirks."""
    model, told = legalized(source)
    ops = {node.op for node in model.graph.walk()}
    found = {"": model}
    for quirk in quirks.of_engine(quirks.CPU):
        if not quirk.needs or quirk.needs & ops:
            changed = clone_model(model)
            before = outline(changed.graph)
            quirk.run(changed.graph, told)
            if outline(changed.graph) != before:
                found[quirk.name] = changed
    return found


def outline(graph: Graph) -> list[object]:
    """The nodes of a graph with attributes, inputs and the ports of their bodies. A quirk that
    rewrites the graph changes some of it."""
    lines: list[object] = []
    for node in graph.walk():
        ports = [(body.inputs[:], body.outputs[:]) for body in node.bodies]
        settings = {name: v for name, v in node.attributes.items() if node.op != "Constant"}
        lines.append((node.op, list(map(id, node.inputs)), settings, ports))
    return lines


def judge(source: onnx.ModelProto, feeds: Feeds) -> Iterator[Fired]:
    """The quirks that fire in a model, and whether each keeps its meaning."""
    made = fired(source)
    model = made.pop("")
    runs = _runs(model, feeds) if made else []
    for path, changed in made.items():
        yield _judged(path, changed, runs) if runs else Fired(path, ran=False)


def _runs(model: Model, feeds: Feeds) -> Runs:
    """onnxruntime's outputs for the inputs that the model accepts; empty if onnxruntime lacks an
    operator or a type."""
    runs = []
    with suppress(BridgeError):
        session = OnnxRuntime(1).load(plain_onnx(model))
        for feed in feeds:
            with suppress(EngineError):
                runs.append((feed, _outputs(session, feed)))
    return runs


def _outputs(session: Session, feed: Mapping[str, Any]) -> list[Any]:
    return flat([*session.run(feed).values()])


def _judged(path: str, changed: Model, runs: Runs) -> Fired:
    try:
        session = OnnxRuntime(1).load(plain_onnx(changed))
        for feed, expected in runs:
            assert_close(_outputs(session, feed), expected)
    except LacksOperatorError:
        return Fired(path, ran=False)
    except Exception as error:
        return Fired(path, f"{type(error).__name__}: {error}")
    return Fired(path)
