"""The outcome of a case in each direction, against the engine of its first format."""

from __future__ import annotations

import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
import openvino
from onnx import helper, numpy_helper
from openvino import opset13
from openvino.utils.node_factory import NodeFactory

import bridge
from tests.attributes.family import Call, Case
from tests.attributes.suite import FAMILIES
from tests.support.running import OnnxRuntime, OpenVino, assert_close, flat

Verdicts = dict[str, str]
"""The outcome of a case, by route: "right", "refused: ..." or the failure."""

NO_PROGRAM = "no program"
"""The route if the first engine cannot run the case itself."""


def judge(case: Case) -> Verdicts:
    """Runs a case to the other format and back."""
    return _judged(case, False)


def judge_stored_as_f16(case: Case) -> Verdicts:
    """The same for a case of IR as OpenVINO saves it by default: its constants are f16."""
    return _judged(case, True)


def _judged(case: Case, as_f16: bool) -> Verdicts:
    kind = FAMILIES[case.family]
    call = kind.call(case.row)
    assert call is not None
    constants = [int(position) for position in case.row["constants"]]
    is_open = case.row["shapes"] == "open"
    with warnings.catch_warnings(), TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        if kind.format == "ir":
            return _from_ir(call, constants, is_open, Path(folder), as_f16)
        return _from_onnx(call, constants, is_open, Path(folder))


def onnx_model(call: Call, constants: list[int], is_open: bool) -> onnx.ModelProto:
    """The call as a model; raises if no output has a known type."""
    domain, _, operator = call.operator.rpartition("::")
    names = ["" if value is None else f"x{i}" for i, value in enumerate(call.inputs)]
    given = [(name, value) for name, value in zip(names, call.inputs, strict=True) if name]
    fixed = [f"x{i}" for i in constants]
    inputs = [
        helper.make_tensor_value_info(
            name,
            helper.np_dtype_to_tensor_dtype(value.dtype),
            [f"{name}_{axis}" for axis in range(value.ndim)] if is_open else value.shape,
        )
        for name, value in given
        if name not in fixed
    ]
    results = [onnx.ValueInfoProto(name=f"y{i}") for i in range(call.outputs)]
    for result, element in zip(results, call.types, strict=False):
        result.CopyFrom(helper.make_tensor_value_info(result.name, element, None))
    node = helper.make_node(
        operator, names, [r.name for r in results], domain=domain, **call.attributes
    )
    weights = [numpy_helper.from_array(value, name) for name, value in given if name in fixed]
    graph = helper.make_graph([node], "g", inputs, results, weights)
    opsets = [helper.make_opsetid(domain, call.version)]
    opsets += [helper.make_opsetid("", 18)] if domain else []
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    model = onnx.shape_inference.infer_shapes(model)
    assert all(output.type.WhichOneof("value") for output in model.graph.output)
    return model


def _is_declared(output: onnx.ValueInfoProto, value: np.ndarray) -> bool:
    """Whether a result of onnxruntime has the shape that the standard infers."""
    type = output.type.tensor_type
    if not type.HasField("shape"):
        return True
    sizes = [dim.dim_value if dim.HasField("dim_value") else None for dim in type.shape.dim]
    return len(sizes) == value.ndim and all(
        size in (None, found) for size, found in zip(sizes, value.shape, strict=True)
    )


def _from_onnx(call: Call, constants: list[int], is_open: bool, folder: Path) -> Verdicts:
    ir, back = folder / "a.xml", folder / "b.onnx"
    fed = {
        f"x{i}": value
        for i, value in enumerate(call.inputs)
        if value is not None and i not in constants
    }
    try:
        model = onnx_model(call, constants, is_open)
        expected = flat(OnnxRuntime(model).run(fed))
    except Exception as error:
        return {NO_PROGRAM: line(error)}
    if not all(map(_is_declared, model.graph.output, expected)):
        return {NO_PROGRAM: "onnxruntime gives another shape than the standard"}

    def in_openvino() -> None:
        bridge.convert(model, ir)
        boundary, engine = bridge.Boundary.of(ir), OpenVino(ir)
        request = engine.compiled.create_infer_request()
        for _ in range(2):  # A request that has run is another test than a fresh one.
            results = engine.run_once(request, boundary, fed)
            assert_close(flat([results[output.name] for output in model.graph.output]), expected)

    def in_onnxruntime() -> None:
        bridge.convert(ir, back)
        assert_close(flat(OnnxRuntime(back).run(fed)), expected)

    return _along({"openvino": in_openvino, "back": in_onnxruntime})


def ir_model(call: Call, constants: list[int], is_open: bool) -> openvino.Model:
    """The call as a model of OpenVINO; raises if OpenVINO lacks it."""
    parameters, arguments = [], []
    for place, value in enumerate(call.inputs):
        assert value is not None
        if place in constants:
            arguments.append(opset13.constant(value))
            continue
        shape = [-1] * value.ndim if is_open else list(value.shape)
        parameters.append(opset13.parameter(shape, value.dtype, f"x{place}"))
        arguments.append(parameters[-1])
    made = NodeFactory(f"opset{call.version}").create(
        call.operator, arguments, dict(call.attributes)
    )
    results = [opset13.result(made.output(i)) for i in range(call.outputs)]
    return openvino.Model(results, parameters, "m")


def _from_ir(
    call: Call, constants: list[int], is_open: bool, folder: Path, as_f16: bool
) -> Verdicts:
    first, model, again = folder / "a.xml", folder / "b.onnx", folder / "c.xml"
    fed = [value for i, value in enumerate(call.inputs) if i not in constants and value is not None]
    try:
        openvino.save_model(ir_model(call, constants, is_open), first, compress_to_fp16=as_f16)
        expected = OpenVino(first).run(fed)
    except Exception as error:
        return {NO_PROGRAM: line(error)}

    def in_onnxruntime() -> None:
        bridge.convert(first, model)
        runtime = OnnxRuntime(model)
        names = [given.name for given in runtime.session.get_inputs()]
        assert_close(runtime.run(dict(zip(names, fed, strict=True))), expected)

    def in_openvino() -> None:
        bridge.convert(model, again)
        assert_close(OpenVino(again).run(fed), expected)

    return _along({"onnxruntime": in_onnxruntime, "back": in_openvino})


def _along(routes: dict[str, object]) -> Verdicts:
    """The verdict of each route, up to the first that is not right."""
    verdicts: Verdicts = {}
    for name, run in routes.items():
        try:
            run()  # type: ignore[operator]
        except bridge.BridgeError as error:
            verdicts[name] = f"refused: {line(error)}"
        except Exception as error:
            verdicts[name] = f"{type(error).__name__}: {line(error)}"
        else:
            verdicts[name] = "right"
            continue
        break
    return verdicts


def line(error: Exception) -> str:
    """An error on one short line; the end of the error says most."""
    said = " ".join(str(error).split())
    return said if len(said) < 220 else f"{said[:110]} ... {said[-110:]}"
