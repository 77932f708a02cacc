"""Node cases of domains with few cases in the standard or none: onnxruntime's own operators and
ai.onnx.ml. Programs are made of them."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tests.conformance.cases import Case
from tests.operators import microsoft_cases, test_ml
from tests.support.running import OnnxRuntime

ML = "ai.onnx.ml"
VERSIONS = {"com.microsoft": 1, ML: 3}
"""The operator sets of these domains that programs import."""

OPSET = 17


@functools.cache
def contrib() -> dict[str, list[Case]]:
    """The cases by operator; only those cases are kept that onnxruntime runs."""
    found: dict[str, list[Case]] = {}
    for name, case in microsoft_cases.CASES.items():
        if case.domain in VERSIONS:
            node = helper.make_node(
                case.op, [], case.outputs, domain=case.domain, **case.attributes
            )
            _add(found, name, node, case.inputs, set(case.data))
    for name, (op, data, attributes) in test_ml.CASES.items():
        if isinstance(data, np.ndarray) and data.dtype.kind in "fiu":
            node = helper.make_node(op, [], ["y"], domain=ML, **attributes)
            _add(found, name, node, [data], {0})
    return found


def _add(
    found: dict[str, list[Case]],
    name: str,
    node: onnx.NodeProto,
    inputs: list[np.ndarray | None],
    data: set[int],
) -> None:
    """A case of the node. Inputs outside `data` are constants."""
    nodes, infos, given = [], [], []
    for index, array in enumerate(inputs):
        node.input.append("" if array is None else f"i{index}")
        if array is None:
            continue
        if index in data:
            element = helper.np_dtype_to_tensor_dtype(array.dtype)
            infos.append(helper.make_tensor_value_info(f"i{index}", element, array.shape))
            given.append(array)
        else:
            tensor = numpy_helper.from_array(array)
            nodes.append(helper.make_node("Constant", [], [f"i{index}"], value=tensor))
    outputs = [onnx.ValueInfoProto(name=output) for output in node.output if output]
    graph = helper.make_graph([*nodes, node], "g", infos, outputs)
    opsets = [
        helper.make_opsetid("", OPSET),
        helper.make_opsetid(node.domain, VERSIONS[node.domain]),
    ]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    try:
        feed = {info.name: array for info, array in zip(infos, given, strict=True)}
        results: list[Any] = OnnxRuntime(model).run(feed)
    except Exception:
        return
    if not all(
        isinstance(result, np.ndarray) and result.dtype.kind in "fiub" for result in results
    ):
        return
    for info, result in zip(model.graph.output, results, strict=True):
        element = helper.np_dtype_to_tensor_dtype(result.dtype)
        info.CopyFrom(helper.make_tensor_value_info(info.name, element, None))
    case = Case(name, model, ((tuple(given), tuple(results)),), 0, 0)
    found.setdefault(node.op_type, []).append(case)
