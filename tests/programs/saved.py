"""Programs as IR that another tool than Bridge has saved: OpenVINO, as it does by default, or as
files of version 10 are. Nothing in them says what they were made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import openvino
from openvino import _offline_transformations as offline, passes

import bridge
from tests.programs.verdict import NO_PROGRAM, Close, Feeds, Step, same
from tests.support.running import OnnxRuntime, OpenVino, run_request

Form = Callable[[openvino.Model, Path], None]
"""Saves a model."""


def _plainly(model: openvino.Model, path: Path) -> None:
    openvino.save_model(model, path, compress_to_fp16=False)


def _by_default(model: openvino.Model, path: Path) -> None:
    openvino.save_model(model, path)


def _as_version_10(model: openvino.Model, path: Path) -> None:
    _plainly(model, path)
    text = path.read_text()
    path.write_text(text.replace('version="11"', 'version="10"', 1))


def _behind(change: Callable[[openvino.Model], Any]) -> Form:
    def save(model: openvino.Model, path: Path) -> None:
        change(model)
        _by_default(model, path)

    return save


def _in_half(model: openvino.Model) -> None:
    manager = passes.Manager()
    manager.register_pass(passes.ConvertFP32ToFP16())
    manager.run_passes(model)
    model.validate_nodes_and_infer_types()


FORMS: Mapping[str, Form] = {
    "11": _plainly,
    "f16": _by_default,
    "10": _as_version_10,
    "common": _behind(lambda m: offline.apply_moc_transformations(m, cf=True, smart_reshape=True)),
    "legacy": _behind(lambda m: offline.apply_moc_legacy_transformations(m, [])),
    "iterators": _behind(offline.convert_sequence_to_tensor_iterator_transformation),
    "half": _behind(_in_half),
}
"""Forms of files, and what saves a model so."""

SOUND = tuple(map(np.dtype, ("f4", "i4", "i8", "?")))
"""Types of outputs of open sizes in version 10. With others, OpenVINO writes beyond its memory: it
puts a conversion behind them."""


def bare(model: openvino.Model) -> openvino.Model:
    """The model without what Bridge writes of its origin, and without names of tensors. In version
    10 names of layers are names of tensors, too, and no two may be the same."""
    if "bridge" in model.rt_info:
        del model.rt_info["bridge"]
    for number, layer in enumerate(model.get_ordered_ops()):
        layer.set_friendly_name(f"layer{number}")
        for output in layer.outputs():
            output.set_names(set())
    return model


class _Saved:
    """An IR in OpenVINO, which takes and gives what its file says: OpenVINO reads some types of
    version 10 as others."""

    def __init__(self, path: Path, types: Sequence[np.dtype]) -> None:
        self.engine = OpenVino(path)
        self.types = types
        self.taken = [port.get_element_type().to_dtype() for port in self.engine.compiled.inputs]
        self.request = self.engine.compiled.create_infer_request()

    def run(self, values: Sequence[np.ndarray]) -> list[np.ndarray]:
        outputs = run_request(self.request, as_types(values, self.taken))
        return as_types(outputs, self.types)


def as_types(values: Sequence[np.ndarray], types: Sequence[np.dtype]) -> list[np.ndarray]:
    """The values in these types; strings as they are."""
    return [
        value if value.dtype == object else value.astype(type)
        for value, type in zip(values, types, strict=True)
    ]


def _require_memory(ir: openvino.Model) -> None:
    for port in ir.outputs:
        is_open = port.get_partial_shape().is_dynamic
        assert not is_open or port.get_element_type().to_dtype() in SOUND


def judge_saved(
    form: str, model: onnx.ModelProto, feeds: Feeds, folder: Path, close: Close, step: Step
) -> None:
    """Runs the IR of a model, saved in a form, in OpenVINO; what Bridge makes of that in
    onnxruntime; and what comes back of it."""
    there, saved = folder / "there.xml", folder / "saved.xml"
    step("to IR", NO_PROGRAM, bridge.convert, model, there)
    boundary = bridge.Boundary.of(there)
    ir = step("saved", NO_PROGRAM, openvino.Core().read_model, there)
    step("saved", NO_PROGRAM, FORMS[form], bare(ir), saved)
    types = [port.get_element_type().to_dtype() for port in ir.outputs]
    if form == "10":
        step("saved", NO_PROGRAM, _require_memory, ir)
    original = step("saved", NO_PROGRAM, _Saved, saved, types)
    taken = [port.get_element_type().to_dtype() for port in ir.inputs]
    values = [
        as_types([np.array(value) for value in bridge.pack(boundary, feed).values()], taken)
        for feed in feeds
    ]
    expected = [step("saved", NO_PROGRAM, original.run, given) for given in values]
    made, again = folder / "made.onnx", folder / "again.xml"
    step("to ONNX", "error", bridge.convert, saved, made)
    runtime = step("onnxruntime", "does not load", OnnxRuntime, made)
    names = [given.name for given in runtime.session.get_inputs()]
    for given, wanted in zip(values, expected, strict=True):
        feed = dict(zip(names, given, strict=True))
        step("onnxruntime", "", close, step("onnxruntime", "fails", runtime.run, feed), wanted)
    step("back to IR", "error", bridge.convert, made, again)
    back = step("back in OpenVINO", "does not load", _Saved, again, types)
    for given, wanted in zip(values, expected, strict=True):
        found = step("back in OpenVINO", "fails", back.run, given)
        about = "back in OpenVINO"
        if not same(found, wanted, close):
            found = step(about, "fails", back.run, given)
            about += ", right the second time" * same(found, wanted, close)
        step(about, "", close, found, wanted)
