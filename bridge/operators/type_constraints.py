"""Which types the schemas of ONNX's operators allow, in each operator set: part of how ONNX spells
the vocabulary, and so of what rules ask before they write an operator."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from bridge.neutral.graph import Value
from bridge.neutral.types import BY_ONNX, Element, OptionalType, SequenceType, TensorType, Type


@dataclass(frozen=True)
class TypeSignature:
    """The type variables of an operator's inputs and outputs, in order, the last again and again
    where `variadic`, with types of their own if `mixed`; and what types each variable may stand
    for, in the schemas' spelling."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    variadic_inputs: bool
    variadic_outputs: bool
    mixed: bool
    allowed: dict[str, frozenset[str]]

    def input(self, index: int) -> str | None:
        """The variable of input `index`; None where the schema has no such input."""
        return _at(self.inputs, index, self.variadic_inputs)

    def output(self, index: int) -> str | None:
        """The variable of output `index`; None where the schema has no such output."""
        return _at(self.outputs, index, self.variadic_outputs)


def _at(variables: tuple[str, ...], index: int, variadic: bool) -> str | None:
    if index < len(variables):
        return variables[index]
    return variables[-1] if variadic and variables else None


TABLE = Path(__file__).with_name("types.txt")
"""What `described` says of the operators of the default domain, as `python -m tests.signatures`
writes it: the newest operator set, then a line an operator, with the operator sets in which its
types changed, oldest first, and a line for each set of types that some variable may stand for,
which operators name by its number. (To ask onnx itself, it has to set up the schemas of all.)"""


@cache
def type_signature(type: str, opset: int) -> TypeSignature | None:
    """The types of ONNX's operator `type` in operator set `opset`; None where that lacks it."""
    newest, lines = _table()
    if opset > newest:
        return of_installed(type, opset)
    changes = json.loads(lines.get(type, "[]"))
    return next((_read(row, _types) for since, row in reversed(changes) if since <= opset), None)


@cache
def _table() -> tuple[int, dict[str, str]]:
    newest, *lines = TABLE.read_text(encoding="utf-8").splitlines()
    return int(newest), {name: rest for name, _, rest in (line.partition(" ") for line in lines)}


@cache
def _types(number: int) -> frozenset[str]:
    return frozenset(json.loads(_table()[1][str(number)]))


def _read(row: Any, types: Callable[[Any], frozenset[str]]) -> TypeSignature:
    inputs, outputs, variadic_inputs, variadic_outputs, mixed, allowed = row
    return TypeSignature(
        tuple(inputs),
        tuple(outputs),
        variadic_inputs,
        variadic_outputs,
        mixed,
        {variable: types(said) for variable, said in allowed.items()},
    )


def of_installed(type: str, opset: int) -> TypeSignature | None:
    """What the installed onnx says of an operator's types."""
    import onnx.defs

    try:
        schema = onnx.defs.get_schema(type, opset)
    except onnx.defs.SchemaError:
        return None
    return _read(described(schema), frozenset)


def described(schema: Any) -> list[Any]:
    """The fields of the TypeSignature of an operator (`OpSchema`) in its operator set, as JSON."""
    allowed = {c.type_param_str: sorted(c.allowed_type_strs) for c in schema.type_constraints}
    inputs = [formal.type_str for formal in schema.inputs]
    outputs = [formal.type_str for formal in schema.outputs]
    for variable in (*inputs, *outputs):
        # Where all operators have the same type, the schema names that itself.
        allowed.setdefault(variable, [variable])
    return [
        inputs,
        outputs,
        schema.max_input > len(inputs),
        schema.max_output > len(outputs),
        not all(formal.is_homogeneous for formal in schema.inputs),
        dict(sorted(allowed.items())),
    ]


def schema_type(type: Type) -> str | None:
    """A type as the schemas spell it (`seq(tensor(float))`); None where its element is unknown or
    none of ONNX's."""
    match type:
        case TensorType(element=element):
            return None if element is None else _schema_types().get(element)
        case SequenceType(item=item):
            inner = schema_type(item)
            return f"seq({inner})" if inner else None
        case OptionalType(item=item):
            inner = schema_type(item)
            return f"optional({inner})" if inner else None
    return None


@cache
def _schema_types() -> dict[Element, str]:
    """The schemas' names of tensor types, by element; where the installed onnx has no such type,
    and so no schema that names it, a name of Bridge's own."""
    import onnx

    names = {number: name.lower() for name, number in onnx.TensorProto.DataType.items()}
    return {e: f"tensor({names.get(number, e.name)})" for number, e in BY_ONNX.items()}


def disallowed(
    type: str, opset: int, inputs: Sequence[Value | None], outputs: Sequence[Value]
) -> str:
    """Why operator set `opset` does not allow a node with these inputs and outputs; "" where it
    does, as far as the types are known."""
    signature = type_signature(type, opset)
    if signature is None:
        return ""
    meanings: dict[str, str] = {}
    for values, variable_of in ((inputs, signature.input), (outputs, signature.output)):
        for index, value in enumerate(values):
            if value is None:
                continue
            variable, given = variable_of(index), schema_type(value.type)
            if variable is None or given is None:
                continue
            if given in signature.allowed[variable]:
                if values is inputs and not signature.mixed:
                    other = meanings.setdefault(variable, given)
                    if other != given:
                        return f"{type} takes inputs of one type, not {other} and {given}"
                continue
            kind = "takes" if values is inputs else "gives"
            since = _since(type, opset, index, kind == "takes", given)
            return f"{type} {kind} no {given} {since}"
    return ""


def _since(type: str, opset: int, index: int, is_input: bool, given: str) -> str:
    """From which operator set on the type is allowed there."""
    import onnx.defs

    for later in range(opset + 1, onnx.defs.onnx_opset_version() + 1):
        signature = type_signature(type, later)
        if signature is None:
            continue
        variable = signature.input(index) if is_input else signature.output(index)
        if variable is not None and given in signature.allowed[variable]:
            return f"before operator set {later}"
    return f"in ONNX, as far as the installed onnx {onnx.__version__} knows"
