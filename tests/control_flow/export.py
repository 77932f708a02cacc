"""The suite in the layout of ONNX's backend tests, for other readers of ONNX."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from tests.conformance.bodies import NoFormError
from tests.conformance.cases import Case
from tests.control_flow.judge import case_of
from tests.control_flow.suite import Entry


def write(chosen: Iterable[Entry], folder: Path) -> int:
    """Writes `NAME/model.onnx`, `NAME/test_data_set_0/input_0.pb`, ... and `manifest.json`, with
    the levels of each case by its name. Returns the number of cases."""
    manifest: dict[str, dict[str, str]] = {}
    for number, entry in enumerate(chosen):
        try:
            case = case_of(entry)
        except (NoFormError, RuntimeError, ValueError):
            continue
        name = f"{entry.kind}_{number:05}"
        write_case(case, folder / name)
        manifest[name] = {"kind": entry.kind, **dict(entry.levels)}
    text = json.dumps(manifest, indent=1)
    (folder / "manifest.json").write_text(text + "\n", encoding="utf-8")
    return len(manifest)


def write_case(case: Case, folder: Path) -> None:
    """Writes one case."""
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(case.model, folder / "model.onnx")
    graph = case.model.graph
    for number, sets in enumerate(case.data_sets):
        data = folder / f"test_data_set_{number}"
        data.mkdir(exist_ok=True)
        for kind, items, values in zip(
            ("input", "output"), (graph.input, graph.output), sets, strict=True
        ):
            for index, (item, value) in enumerate(zip(items, values, strict=True)):
                proto = _proto(item.type, value, item.name)
                (data / f"{kind}_{index}.pb").write_bytes(proto.SerializeToString())


def _proto(type: onnx.TypeProto, value: Any, name: str) -> Any:
    if type.HasField("optional_type"):
        return numpy_helper.from_optional(value, name)
    if type.HasField("sequence_type"):
        dtype = onnx.helper.tensor_dtype_to_np_dtype(
            type.sequence_type.elem_type.tensor_type.elem_type
        )
        return numpy_helper.from_list([np.asarray(item, dtype) for item in value], name)
    return numpy_helper.from_array(np.asarray(value), name)
