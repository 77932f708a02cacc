"""The standard's node cases inside a body: in a branch of an If, in a Loop, in a Scan.

- `if`: the case is the then branch and captures all its inputs. The condition is an input of the
  model. The model runs twice. The second time runs the other branch, whose outputs are constants of
  the expected types and shapes.
- `loop`: two iterations that capture all inputs. Outputs are stacked. ONNX does not stack sequences
  and optionals, so these are states that each iteration replaces.
- `scan`: the input is the first tensor of the case twice over, sliced. The body captures the other
  inputs. Outputs are stacked.

A model keeps the operator set of its case if that set's control flow accepts the case's types.
Otherwise it has the first set that accepts them and has the same versions of the case's operators.
Some cases have no such form (`NoFormError`):

- A Scan slices and stacks tensors alone. So a case needs a tensor among its inputs, and no sequence
  or optional among its outputs.
- Some old versions of operators share no operator set with a newer body or type. Scans with batches
  (set 8) and Loops that must have a state (before set 11) are not written.
- The outputs of a random operator have no expected value, and differ in each iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
from onnx import defs, helper, numpy_helper

from .cases import Case

ITERATIONS = 2


class NoFormError(Exception):
    """ONNX cannot express the case in this body; the message says why."""


def wrap(case: Case, body: str) -> Case:
    """The case inside a `body` of `BODIES`, with suitable inputs and outputs."""
    for node in _nodes(case.model.graph):
        if _is_random(case, node):
            raise NoFormError(f"{node.op_type} is random")
    return BODIES[body](case)


def _if(case: Case) -> Case:
    graph = case.model.graph
    outer = [_renamed(info, f"if_{info.name}") for info in graph.output]
    others = [_other(value) for value in case.data_sets[0][1]]
    needs = [("If", _type(info.type)) for info in graph.output]
    for value in others:
        needs += _needs(value)
    branch = onnx.GraphProto(name="other")
    for info, value in zip(graph.output, others, strict=True):
        name = f"other_{info.name}"
        branch.node.extend(_constant(name, info.type, value))
        branch.output.append(_renamed(info, name))
    node = helper.make_node(
        "If",
        ["taken"],
        [info.name for info in outer],
        then_branch=_body(graph, "case", []),
        else_branch=branch,
    )
    taken = helper.make_tensor_value_info("taken", onnx.TensorProto.BOOL, [])
    model = _model(case, [node], [taken, *graph.input], outer, needs)
    data_sets = []
    for inputs, outputs in case.data_sets:
        data_sets.append(((np.array(True), *inputs), outputs))
        data_sets.append(((np.array(False), *inputs), tuple(others)))
    return replace(case, model=model, data_sets=tuple(data_sets))


def _loop(case: Case) -> Case:
    graph = case.model.graph
    carried = [info for info in graph.output if not _is_tensor(info)]
    stacked = [info for info in graph.output if _is_tensor(info)]
    needs = [("Loop", _type(info.type)) for info in graph.output]
    nodes = []
    for info, value in zip(graph.output, case.data_sets[0][1], strict=True):
        if info in carried:
            nodes += _constant(f"first_{info.name}", info.type, _other(value))
            needs += _needs(value)
    states = [_renamed(info, f"state_{info.name}") for info in carried]
    number = helper.make_tensor_value_info("iteration", onnx.TensorProto.INT64, [])
    running = helper.make_tensor_value_info("running", onnx.TensorProto.BOOL, [])
    body = _body(graph, "case", [number, running, *states])
    body.node.append(helper.make_node("Identity", ["running"], ["on"]))
    del body.output[:]
    body.output.extend([_renamed(running, "on"), *carried, *stacked])
    trips = numpy_helper.from_array(np.array(ITERATIONS, np.int64), "trips")
    nodes.append(
        helper.make_node(
            "Loop",
            ["trips", "", *(f"first_{info.name}" for info in carried)],
            [f"loop_{info.name}" for info in (*carried, *stacked)],
            body=body,
        )
    )
    outer = [
        _renamed(info if info in carried else _several(info), f"loop_{info.name}")
        for info in graph.output
    ]
    model = _model(case, nodes, graph.input, outer, needs, [trips])
    data_sets = [
        (
            inputs,
            tuple(
                value if info in carried else np.stack([value] * ITERATIONS)
                for info, value in zip(graph.output, outputs, strict=True)
            ),
        )
        for inputs, outputs in case.data_sets
    ]
    return replace(case, model=model, data_sets=tuple(data_sets))


def _scan(case: Case) -> Case:
    graph = case.model.graph
    position = next((i for i, info in enumerate(graph.input) if _is_tensor(info)), None)
    if position is None:
        raise NoFormError("none of its inputs is a tensor that a Scan could slice")
    sliced = graph.input[position]
    needs = [("Scan", _type(info.type)) for info in (sliced, *graph.output)]
    inputs = list(graph.input)
    inputs[position] = _renamed(_several(sliced), f"scan_{sliced.name}")
    outer = [_renamed(_several(info), f"scan_{info.name}") for info in graph.output]
    node = helper.make_node(
        "Scan",
        [inputs[position].name],
        [info.name for info in outer],
        num_scan_inputs=1,
        body=_body(graph, "case", [sliced]),
    )
    model = _model(case, [node], inputs, outer, needs)
    data_sets = []
    for given, outputs in case.data_sets:
        feeds = list(given)
        feeds[position] = np.stack([given[position]] * ITERATIONS)
        data_sets.append((tuple(feeds), tuple(np.stack([v] * ITERATIONS) for v in outputs)))
    return replace(case, model=model, data_sets=tuple(data_sets))


BODIES: dict[str, Callable[[Case], Case]] = {"if": _if, "loop": _loop, "scan": _scan}

# ------------------------------------------------------------------------------------------------


def _model(
    case: Case,
    nodes: Sequence[onnx.NodeProto],
    inputs: Iterable[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    needs: Sequence[Need],
    initializers: Sequence[onnx.TensorProto] = (),
) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, case.model.graph.name, inputs, outputs, initializers)
    others = [opset for opset in case.model.opset_import if opset.domain]
    imports = [helper.make_opsetid("", _operator_set(case, needs)), *others]
    lowest = helper.find_min_ir_version_for(imports, ignore_unknown=True)
    # Since version 4 an initializer need not be an input.
    version = max(case.model.ir_version, lowest, 4)
    return helper.make_model(graph, opset_imports=imports, ir_version=version)


def _body(
    graph: onnx.GraphProto, name: str, inputs: Sequence[onnx.ValueInfoProto]
) -> onnx.GraphProto:
    """The case's graph with `inputs` alone; it captures the other inputs."""
    body = onnx.GraphProto()
    body.CopyFrom(graph)
    body.name = name
    del body.input[:]
    body.input.extend(inputs)
    return body


def _renamed(info: onnx.ValueInfoProto, name: str) -> onnx.ValueInfoProto:
    return onnx.ValueInfoProto(name=name, type=info.type)


def _several(info: onnx.ValueInfoProto) -> onnx.ValueInfoProto:
    """The type of `ITERATIONS` tensors stacked."""
    if not _is_tensor(info):
        raise NoFormError(f"'{info.name}' is no tensor, and a Scan stacks nothing else")
    result = onnx.ValueInfoProto()
    result.CopyFrom(info)
    if info.type.tensor_type.HasField("shape"):
        shape = result.type.tensor_type.shape
        del shape.dim[:]
        shape.dim.add(dim_value=ITERATIONS)
        shape.dim.extend(info.type.tensor_type.shape.dim)
    return result


def _is_tensor(info: onnx.ValueInfoProto) -> bool:
    return info.type.HasField("tensor_type")


# ------------------------------------------------------------------------------------------------


def _other(value: Any) -> Any:
    """A value of the same type and shape that no case expects: ones."""
    if value is None or isinstance(value, list):
        return value if value is None else [_other(element) for element in value]
    if value.dtype.kind in "OSU":
        return np.full(value.shape, "other", object)
    return np.ones(value.shape, value.dtype)


def _constant(name: str, type_: onnx.TypeProto, value: Any) -> Iterator[onnx.NodeProto]:
    """Nodes that make `value`, a tensor, a sequence or an optional of `type_`."""
    if type_.HasField("optional_type"):
        content = type_.optional_type.elem_type
        if value is None:
            yield helper.make_node("Optional", [], [name], type=content)
        else:
            yield from _constant(f"{name}_content", content, value)
            yield helper.make_node("Optional", [f"{name}_content"], [name])
    elif type_.HasField("sequence_type"):
        content = type_.sequence_type.elem_type
        for number, element in enumerate(value):
            yield from _constant(f"{name}_{number}", content, element)
        elements = [f"{name}_{number}" for number in range(len(value))]
        if elements:
            yield helper.make_node("SequenceConstruct", elements, [name])
        else:
            dtype = content.tensor_type.elem_type
            yield helper.make_node("SequenceEmpty", [], [name], dtype=dtype)
    else:
        yield helper.make_node("Constant", [], [name], value=numpy_helper.from_array(value))


# ------------------------------------------------------------------------------------------------

Need = tuple[str, str]  # an operator, and a type as schemas spell it

# Before, a Scan had batches, and a Loop had to have a state.
_FIRST = {"Scan": 9, "Loop": 11}


def _needs(value: Any) -> list[Need]:
    """The operators and types that `_constant` needs for `value`."""
    if value is None:
        return []
    if isinstance(value, list):
        return [need for element in value for need in _needs(element)]
    element = helper.np_dtype_to_tensor_dtype(value.dtype)
    return [("Constant", _type(helper.make_tensor_type_proto(element, None)))]


def _type(type_: onnx.TypeProto) -> str:
    """The type as schemas spell it: `seq(tensor(float))`."""
    if type_.HasField("optional_type"):
        return f"optional({_type(type_.optional_type.elem_type)})"
    if type_.HasField("sequence_type"):
        return f"seq({_type(type_.sequence_type.elem_type)})"
    return f"tensor({onnx.TensorProto.DataType.Name(type_.tensor_type.elem_type).lower()})"


def _operator_set(case: Case, needs: Sequence[Need]) -> int:
    """The first operator set, from the case's own on, that has the case's operators unchanged and
    accepts all `needs`."""
    first = _own_set(case)
    operators = {node.op_type for node in _nodes(case.model.graph) if not node.domain}
    for version in range(first, defs.onnx_opset_version() + 1):
        if any(_since(operator, version) != _since(operator, first) for operator in operators):
            break
        if all(_takes(operator, type_, version) for operator, type_ in needs):
            return version
    types = ", ".join(sorted({f"{operator} of {type_}" for operator, type_ in needs}))
    raise NoFormError(f"no operator set has its operators of set {first} and {types}")


def _own_set(case: Case) -> int:
    for opset in case.model.opset_import:
        if not opset.domain:
            return opset.version
    # All operators of the case are of another domain.
    return max(row[2] for row in helper.VERSION_TABLE if row[1] <= case.model.ir_version)


def _since(operator: str, version: int) -> int:
    return defs.get_schema(operator, version).since_version


def _takes(operator: str, type_: str, version: int) -> bool:
    if version < _FIRST.get(operator, 1):
        return False
    constraints = defs.get_schema(operator, version).type_constraints
    return any(type_ in constraint.allowed_type_strs for constraint in constraints)


def _is_random(case: Case, node: onnx.NodeProto) -> bool:
    versions = {opset.domain: opset.version for opset in case.model.opset_import}
    if not defs.has(node.op_type, versions[node.domain], node.domain):
        return False  # It is no operator of the standard.
    schema = defs.get_schema(node.op_type, versions[node.domain], node.domain)
    # Dropout is random in training alone, which Bridge refuses.
    in_training = any(port.name == "training_mode" for port in schema.inputs)
    return "seed" in schema.attributes and not in_training


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """All nodes, also in bodies."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for body in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])):
                yield from _nodes(body)
