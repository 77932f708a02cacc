"""The models with control flow that a reader without it can read, once Bridge has written them for
it.

The reader is WebNN by way of onnxruntime-web. `webnn.json` holds the operators of its
documentation, and the inputs that must be constants.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import onnx
import onnx.defs

import bridge
from bridge.neutral.graph import Model

MODELS = Path(__file__).parents[2] / "roundtrip_models"
CONTROL = frozenset({"If", "Loop", "Scan"})
WITHOUT = ("Sequence", "Optional", "SplitToSequence", "ConcatFromSequence")


@cache
def reader() -> dict[str, frozenset[str]]:
    """The operators of the reader, each with its inputs that must be constants."""
    text = (Path(__file__).parent / "webnn.json").read_text(encoding="utf-8")
    return {name: frozenset(inputs) for name, inputs in json.loads(text)["operators"].items()}


@dataclass(frozen=True)
class Line:
    """A model: its Ifs before, its control flow and sequences afterwards, operators that the reader
    lacks, and inputs that must be constants for the reader."""

    name: str
    ifs: int
    left: tuple[str, ...]
    lacking: tuple[str, ...]
    computed: tuple[str, ...]


def lines() -> Iterator[Line]:
    """Every model that has an If, written as ONNX with all possible Ifs selected."""
    for path in sorted(MODELS.glob("*.onnxtxt")):
        model = bridge.load(path)
        ifs = sum(node.op == "If" for node in model.graph.walk())
        if ifs:
            yield line(path.stem, ifs, model)


def line(name: str, ifs: int, model: Model) -> Line:
    """The obstacles for a reader in one model."""
    proto = bridge.to_onnx(model, ifs="select-some")
    nodes = list(_nodes(proto.graph))
    named = {
        node.op_type if not node.domain else f"{node.domain}::{node.op_type}" for node in nodes
    }
    left = {op for op in named if op in CONTROL or op.startswith(WITHOUT)}
    constants = {tensor.name for tensor in proto.graph.initializer}
    constants |= {node.output[0] for node in nodes if node.op_type == "Constant"}
    opset = next(each.version for each in proto.opset_import if not each.domain)
    computed = {
        f"{node.op_type}.{formal}"
        for node in nodes
        if node.op_type in reader() and not node.domain
        for formal, given in zip(_formals(node.op_type, opset), node.input, strict=False)
        if formal in reader()[node.op_type] and given and given not in constants
    }
    lacking = named - left - reader().keys()
    return Line(name, ifs, *(tuple(sorted(found)) for found in (left, lacking, computed)))


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from _nodes(attribute.g)


def _formals(op: str, opset: int) -> list[str]:
    return [formal.name for formal in onnx.defs.get_schema(op, opset, "").inputs]


def table() -> Iterator[str]:
    """The number of models that lose all control flow, and the gaps of the reader for these
    models."""
    found = list(lines())
    free = [each for each in found if not each.left]
    whole = [each for each in free if not each.lacking]
    rest = [each for each in free if each.lacking or each.computed]
    yield (
        f"`roundtrip_models/` has {len(found)} models with an If. `--ifs select-some` leaves "
        f"{len(free)} of them without If, Loop, Scan, sequence and optional. The reader has all "
        f"operators of {len(whole)} of these. In {len(free) - len(rest)} models, the inputs that "
        "must be constants are constants, too. The table lists the others:"
    )
    yield ""
    yield "| model | operators that the reader lacks | inputs that must be constants |"
    yield "| --- | --- | --- |"
    for each in rest:
        cells = (
            ", ".join(f"`{name}`" for name in names) for names in (each.lacking, each.computed)
        )
        yield f"| `{each.name}` | {' | '.join(cells)} |"
