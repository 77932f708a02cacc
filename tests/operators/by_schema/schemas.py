"""One view of the schemas of the standard and of onnxruntime's own operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import onnx.defs
from onnxruntime.capi import onnxruntime_pybind11_state as runtime

MICROSOFT = "com.microsoft"


@dataclass(frozen=True)
class Port:
    """An input or output of a schema; `type` is a type parameter or a type."""

    name: str
    type: str
    optional: bool
    variadic: bool


@dataclass(frozen=True)
class Schema:
    """A version of an operator. `types` has the types of each type parameter."""

    domain: str
    op: str
    version: int
    inputs: Sequence[Port]
    outputs: Sequence[Port]
    attributes: Mapping[str, bool]
    """Whether an attribute is required, by its name."""
    types: Mapping[str, Sequence[str]]


@cache
def versions(domain: str, op: str) -> tuple[Schema, ...]:
    """The versions of an operator, the newest first. Those that no longer may be used are left
    out."""
    given = runtime.get_all_operator_schema() if domain == MICROSOFT else _standard()
    found = [schema for schema in given if (schema.domain, schema.name) == (domain, op)]
    views = [_view(schema) for schema in found if not schema.deprecated]
    return tuple(sorted(views, key=lambda schema: -schema.version))


@cache
def _standard() -> tuple[onnx.defs.OpSchema, ...]:
    return tuple(onnx.defs.get_all_schemas_with_history())


@cache
def kernels(op: str) -> tuple[Mapping[str, Sequence[str]], ...]:
    """The types that each of onnxruntime's kernels of its own operator takes, by type parameter."""
    given = runtime.get_all_opkernel_def()
    return tuple(k.type_constraints for k in given if (k.domain, k.op_name) == (MICROSOFT, op))


def computes(op: str, types: Mapping[str, str]) -> bool:
    """Whether onnxruntime has a kernel of its own operator for these types. It casts f16 to f32."""
    as_wide = {name: {type_, type_.replace("float16", "float")} for name, type_ in types.items()}
    return any(
        all(
            name not in as_wide or any(f"tensor({type_})" in allowed for type_ in as_wide[name])
            for name, allowed in kernel.items()
        )
        for kernel in kernels(op)
    )


def _view(schema: Any) -> Schema:
    types = {}
    for item in schema.type_constraints:
        # The two libraries spell the fields of their schemas differently.
        name = str(getattr(item, "type_param_str", None) or getattr(item, "typeParamStr", ""))
        allowed = getattr(item, "allowed_type_strs", None) or item.allowedTypeStrs
        types[name] = tuple(allowed)
    attributes = {name: item.required for name, item in schema.attributes.items()}
    return Schema(
        schema.domain, schema.name, schema.since_version,
        [_port(port) for port in schema.inputs], [_port(port) for port in schema.outputs],
        attributes, types,
    )  # fmt: skip


def _port(port: Any) -> Port:
    kind = port.option.name.lower()
    type_ = str(getattr(port, "type_str", None) or getattr(port, "typeStr", ""))
    return Port(port.name, type_, kind == "optional", kind == "variadic")
