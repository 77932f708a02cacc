"""The programs of the suite: the axes of an operator, and the model of a program."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any
from zlib import crc32

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.conformance.cases import Case
from tests.control_flow.covering import covering
from tests.control_flow.suite import Entry
from tests.operators.by_schema import ir_programs
from tests.operators.by_schema.ir_programs import ROWS as IR_ROWS
from tests.operators.by_schema.microsoft_rows import ROWS as MICROSOFT_ROWS
from tests.operators.by_schema.ml_rows import ROWS as ML_ROWS
from tests.operators.by_schema.onnx_rows import ROWS as ONNX_ROWS
from tests.operators.by_schema.rows import BASIC, Row
from tests.operators.by_schema.schemas import MICROSOFT, Port, Schema, computes, kernels, versions
from tests.operators.by_schema.values import is_sequence, value

ROWS: dict[str, Row] = {
    **ONNX_ROWS,
    **{f"{MICROSOFT}.{name}": row for name, row in MICROSOFT_ROWS.items()},
    **{f"ai.onnx.ml.{name}": row for name, row in ML_ROWS.items()},
    **{f"IR.{name}": row for name, row in IR_ROWS.items()},
}
FEEDS = 2
"""The number of inputs that a program runs with."""
FIRST = 7
"""Operators are written for operator sets from here on, as onnxruntime runs them; an older version
of an operator stands in this set if it is valid there."""


def entries(strength: int, names: Sequence[str] = ()) -> Iterator[Entry]:
    """The programs that cover every combination of `strength` levels of different axes."""
    for name in names or ROWS:
        for levels in _covering(name, strength):
            yield Entry(name, tuple(levels.items()))


@cache
def _covering(name: str, strength: int) -> Sequence[Mapping[str, str]]:
    return tuple(covering(axes_of(name), partial(_exists, name), strength))


def schemas(name: str) -> Mapping[int, Schema]:
    """The versions of an operator by the operator sets they stand in."""
    domain, _, op = name.rpartition(".")
    found = versions(domain, op)
    if domain:
        return {schema.version: schema for schema in found}
    kept = {max(schema.version, FIRST): schema for schema in reversed(found)}
    return dict(sorted(kept.items(), reverse=True))


@cache
def axes_of(name: str) -> Mapping[str, Sequence[str]]:
    """The axes of an operator with their levels."""
    row = ROWS[name]
    if row.release:
        return ir_programs.axes_of(name, row)
    newest = schemas(name)
    schema = next(iter(newest.values()))
    names = list(dict.fromkeys(a for s in newest.values() for a in s.attributes))
    axes: dict[str, Sequence[str]] = {"case": row.cases, "version": [str(v) for v in newest]}
    for parameter, allowed in schema.types.items():
        bare = {item[item.rindex("(") + 1 :].rstrip(")") for item in allowed}
        kinds = [t for t in row.types.get(parameter, BASIC) if t in bare]
        if kinds and any(port.type == parameter for port in schema.inputs):
            axes[f"type_{parameter}"] = kinds
    for attribute in names:
        if attribute in row.attributes:
            axes[attribute] = ["absent", *map(repr, row.attributes[attribute])]
    longest = max(case.count(";") for case in row.cases) + 1
    for place in range(longest):
        port = port_of(schema, place)
        levels = ["input", "constant"] if longest > 1 else ["input"]
        axes[f"input_{place}"] = [*levels, *["absent"] * port.optional]
    axes["sizes"] = ["known", "open"]
    axes["numbers"] = ["plain", *["special"] * row.special]
    axes["place"] = ["top", "in an If", "in a Loop"]
    return axes


def port_of(schema: Schema, place: int) -> Port:
    """The input of the schema at a place."""
    return schema.inputs[min(place, len(schema.inputs) - 1)]


def _exists(name: str, levels: Mapping[str, str]) -> bool:
    row = ROWS[name]
    if not row.fits(levels):
        return False
    if row.release:
        return ir_programs.exists(levels)
    if not _axis_fits(name, levels):
        return False
    schema = schemas(name)[int(levels["version"])]
    for axis, level in levels.items():
        if axis in row.attributes and level != "absent" and axis not in schema.attributes:
            return False
    for attribute, required in schema.attributes.items():
        if required and levels.get(attribute) == "absent":
            return False
    texts = levels["case"].split(";")
    given = [levels.get(f"input_{place}", "absent") for place in range(len(texts))]
    some = [level for level, text in zip(given, texts, strict=True) if text and level != "absent"]
    # An input without a value is absent, and said to be so once.
    missing = [axis for axis in levels if axis.startswith("input_")][len(texts) :]
    if any(levels[axis] == "constant" for axis in missing):
        return False
    if any(not text and level == "constant" for level, text in zip(given, texts, strict=True)):
        return False
    return "input" in some and _types_fit(schema, levels)


def _axis_fits(name: str, levels: Mapping[str, str]) -> bool:
    """Whether the axis, the axes or the order of them suit the rank of the first input."""
    rank = rank_of(levels["case"].partition(";")[0])
    axis, order = levels.get("axis", "absent"), levels.get("perm", "absent")
    if order != "absent" and order.count(",") + 1 != rank:
        return False
    if axis == "absent":
        return True
    # The output has one more axis, or the axis is a place between axes.
    more = name in ("OneHot", "Flatten", "ConcatFromSequence")
    return -rank - more <= int(axis) < rank + more


def rank_of(text: str) -> int:
    """The rank of a value that a text describes."""
    first = text.removeprefix("seq ").partition("|")[0]
    if first.startswith(("[", "=")):
        return np.ndim(ast.literal_eval(first.lstrip("=")))
    return len(re.findall(r"\d+", first.partition("<")[0].partition(">")[0]))


def _types_fit(schema: Schema, levels: Mapping[str, str]) -> bool:
    for parameter, allowed in schema.types.items():
        level = levels.get(f"type_{parameter}")
        if level is not None and not any(f"({level})" in item for item in allowed):
            return False
    if schema.domain != MICROSOFT:
        return True
    if not kernels(schema.op):
        # A row alone knows the outputs, and of no control flow around it.
        return levels["place"] == "top"
    types = {axis.removeprefix("type_"): level for axis, level in levels.items()}
    return computes(schema.op, types)


def case_of(entry: Entry) -> Case:
    """The model of an entry, at the top, with its inputs; the outputs have no types yet."""
    levels = dict(entry.levels)
    row, schema = ROWS[entry.kind], schemas(entry.kind)[int(levels["version"])]
    rng = np.random.default_rng(crc32(entry.name.encode()))
    inputs: list[onnx.ValueInfoProto] = []
    names: list[str] = []
    constants: list[onnx.TensorProto] = []
    feeds: list[list[Any]] = [[] for _ in range(FEEDS)]
    attributes = {name: v for name, v in row.always.items() if name in schema.attributes} | {
        axis: ast.literal_eval(levels[axis])
        for axis in row.attributes
        if levels.get(axis, "absent") != "absent"
    }
    newest = next(iter(schemas(entry.kind).values()))
    for place, text in enumerate(levels["case"].split(";")):
        given, port = levels[f"input_{place}"], port_of(newest, place)
        if not text or given == "absent":
            names.append("")
            continue
        type_ = _type_of(schema, newest, port, levels)
        made = [value(text, type_, levels["numbers"], rng) for _ in feeds]
        if place >= len(schema.inputs) and not schema.inputs[-1].variadic:
            # An older version has an attribute of this name.
            attributes[port.name] = made[0].tolist()
            continue
        name = f"x{place}"
        names.append(name)
        if given == "constant" and not is_sequence(text):
            constants.append(_tensor(made[0], type_, name))
            continue
        inputs.append(_info(name, type_, made[0], levels["sizes"]))
        for feed, item in zip(feeds, made, strict=True):
            feed.append(item)
    while names and not names[-1]:
        names.pop()
    many = schema.outputs[-1].variadic
    count = row.outputs if many else min(row.outputs, len(schema.outputs))
    outputs = ["" if place in row.unread else f"y{place}" for place in range(count)]
    node = helper.make_node(schema.op, names, outputs, domain=schema.domain, **attributes)
    results = [onnx.ValueInfoProto(name=name) for name in outputs if name]
    graph = helper.make_graph([node], "g", inputs, results, constants)
    own = helper.make_opsetid(schema.domain, int(levels["version"]))
    imports = [own] if not schema.domain else [helper.make_opsetid("", 21), own]
    model = helper.make_model(graph, opset_imports=imports)
    model.ir_version = max(8, helper.find_min_ir_version_for(imports, ignore_unknown=True))
    return Case(entry.name, model, tuple((tuple(feed), ()) for feed in feeds), 1e-5, 1e-6)


def _type_of(schema: Schema, newest: Schema, port: Port, levels: Mapping[str, str]) -> str:
    place, names = newest.inputs.index(port), [item.name for item in schema.inputs]
    place = names.index(port.name) if port.name in names else place
    own = schema.inputs[place] if place < len(names) else port
    for parameter in (own.type, port.type):
        if f"type_{parameter}" in levels:
            return levels[f"type_{parameter}"]
    allowed = schema.types.get(own.type) or newest.types.get(port.type) or (port.type,)
    return allowed[0][allowed[0].rindex("(") + 1 :].rstrip(")")


def _tensor(made: np.ndarray, type_: str, name: str) -> onnx.TensorProto:
    if type_ == "string":
        return helper.make_tensor(name, TensorProto.STRING, made.shape, list(made.ravel()))
    return numpy_helper.from_array(made, name)


def _info(name: str, type_: str, made: Any, sizes: str) -> onnx.ValueInfoProto:
    element = TensorProto.DataType.Value(type_.upper())
    if isinstance(made, list):
        ranks = {item.ndim for item in made}
        shape = [None] * ranks.pop() if len(ranks) == 1 else None
        return helper.make_tensor_sequence_value_info(name, element, shape)
    return helper.make_tensor_value_info(name, element, shape_of(made, sizes, name))


def shape_of(made: np.ndarray, sizes: str, name: str) -> list[int | str]:
    """The declared shape: each size itself, or a name for it."""
    if sizes == "known":
        return list(made.shape)
    return [f"{name}_{axis}" for axis in range(made.ndim)]


def declared(case: Case, outputs: Sequence[Sequence[Any]], sizes: str) -> Case:
    """The case with these outputs, whose types the model declares."""
    for info, first in zip(case.model.graph.output, outputs[0], strict=True):
        item = first[0] if isinstance(first, list) and first else first
        dtype = item.dtype if not isinstance(item, list) else np.dtype(np.float32)
        element = helper.np_dtype_to_tensor_dtype(dtype)
        if isinstance(first, list):
            info.CopyFrom(helper.make_tensor_sequence_value_info(info.name, element, None))
            continue
        shapes = {made.shape for made in (row[_place(case, info.name)] for row in outputs)}
        known = sizes if len(shapes) == 1 else "open"
        info.CopyFrom(
            helper.make_tensor_value_info(info.name, element, shape_of(first, known, info.name))
        )
    sets = zip((inputs for inputs, _ in case.data_sets), outputs, strict=True)
    return Case(case.name, case.model, tuple((i, tuple(o)) for i, o in sets), case.rtol, case.atol)


def _place(case: Case, name: str) -> int:
    return [info.name for info in case.model.graph.output].index(name)
