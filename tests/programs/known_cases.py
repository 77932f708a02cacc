"""The standard's node cases that can be parts of programs."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import onnx
from onnx import defs

from bridge.check.isolation import Worker
from tests.conformance import ledger
from tests.conformance.cases import Case, cases
from tests.support.once import once_a_run
from tests.support.running import OnnxRuntime, assert_close, flat


@functools.cache
def at_opset(opset: int) -> dict[str, list[Case]]:
    """The cases whose operators mean the same in this operator set as in their own.

    The key is the operator with which the case's name begins.
    """
    found: dict[str, list[Case]] = {}
    for case in map(cases().__getitem__, _runnable()):
        if _is_alike(case, opset):
            found.setdefault(case.name.split("_")[1], []).append(case)
    return found


def _is_alike(case: Case, opset: int) -> bool:
    own = case.model.opset_import[0].version
    for node in _nodes(case.model.graph):
        try:
            versions = [defs.get_schema(node.op_type, v).since_version for v in (own, opset)]
        except defs.SchemaError:
            return False
        if versions[0] != versions[1]:
            return False
    return True


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from _nodes(attribute.g)


@once_a_run
def _runnable() -> list[str]:
    """The names of cases that convert correctly by themselves and that onnxruntime runs."""
    known = {name for path in (ledger.PATH, ledger.BODIES) for name, _ in ledger.read(path)}
    asked = [
        case
        for name, case in sorted(cases().items())
        if name not in known
        and [opset.domain for opset in case.model.opset_import] == [""]
        and not any(_is_text(value) for data in case.data_sets[0] for value in data)
        and not any(_meets_fault(node) for node in case.model.graph.node)
    ]
    with closing(Worker()) as worker:
        return [case.name for case in asked if _runs(worker, case)]


def _runs(worker: Worker, case: Case) -> bool:
    """Whether onnxruntime runs a case and gives the expected outputs; some cases crash it."""
    try:
        worker.call(_try, case)
    except Exception:  # of any kind, a crash too
        return False
    return True


def _meets_fault(node: onnx.NodeProto) -> bool:
    """Whether onnxruntime computes a node wrongly inside a larger model. Each of these faults has
    its test in `tests/quirks/test_other_faults.py`."""
    set_ones = {attribute.name for attribute in node.attribute if attribute.i}
    # The kernel writes the running mean into its input.
    return node.op_type == "BatchNormalization" and "training_mode" in set_ones


def _is_text(value: Any) -> bool:
    if isinstance(value, list):
        return any(_is_text(element) for element in value)
    return value is not None and value.dtype.kind in "OSU"


def _is_odd(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "V"


def _try(case: Case) -> None:
    names = [info.name for info in case.model.graph.input]
    inputs, outputs = case.data_sets[0]
    session = OnnxRuntime(case.model)
    # onnxruntime takes no array of the types that numpy lacks.
    if not any(_is_odd(value) for value in inputs):
        assert_close(flat(session.run(dict(zip(names, inputs, strict=True)))), flat(outputs))
