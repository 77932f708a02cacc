"""The way in which each operator is converted, for `bridge ops` and `docs/operators.md`."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import NoReturn

from bridge.operators import legalizations, load_all, readers
from bridge.passes import maps
from bridge.passes.sequences import operators as sequences
from bridge.passes.strings import operators as strings
from bridge.vocabulary import (
    Operator,
    Spelling,
    families_of_type,
    family_of,
    ir_opset,
    ir_rows,
    operators,
)

MISSING = "-"
ABSENT = ""


@dataclass(frozen=True)
class Line:
    """One operator: its versions in each format ("" if a format lacks it), how each direction
    converts it, in words of `bridge ops --help`, and the types of its layers in IR."""

    family: str
    name: str
    onnx: str
    ir: str
    to_ir: str
    to_onnx: str
    layers: tuple[str, ...] = ()


def called(name: str) -> set[str]:
    """All names of an operator of the vocabulary: its own, without its domain, and in each
    format."""
    operator = operators().get(name)
    spelled = () if operator is None else (*operator.onnx, *operator.ir)
    return {name, name.rpartition("::")[2], *(spelling.type for spelling in spelled)}


def coverage() -> list[Line]:
    """Every operator of both formats, by family and name."""
    load_all()
    lines = {line.name: line for line in map(_line, operators().values())}
    for format, type in _read_by_rules_alone():
        line = lines.get(type) or Line(
            families_of_type(format, type)[0], type, ABSENT, ABSENT, ABSENT, ABSENT
        )
        if format == "onnx":
            lines[type] = replace(line, onnx="any", to_ir="rule")
        else:
            lines[type] = replace(line, ir="any", to_onnx="rule", layers=(type,))
    for target, name in legalizations:
        if name not in lines and target == "ir" and _has_rule(target, name):
            lines[name] = Line(family_of(name) or "", name, "any", ABSENT, "rule", ABSENT)
    return sorted(lines.values(), key=lambda line: (line.family, line.name.lower(), line.name))


def _line(operator: Operator) -> Line:
    onnx, ir = operator.onnx, operator.ir
    return Line(
        operator.family,
        operator.name,
        _versions(_onnx_version(s) for s in onnx),
        _versions(str(v).removeprefix("opset") for s in ir for v in (s.version, *s.reads)),
        _direction(operator, "ir", ir) if onnx else ABSENT,
        _direction(operator, "onnx", onnx) if any(_read(operator, s) for s in ir) else ABSENT,
        tuple(dict.fromkeys(spelling.type for spelling in ir)),
    )


def _read(operator: Operator, spelling: Spelling) -> bool:
    """Whether a layer so spelled is read as this operator and not as another one before it."""
    return ir_rows(spelling.type, ir_opset(spelling.version))[0][0] is operator


def _onnx_version(spelling: Spelling) -> str:
    until = f"-{spelling.until}" if spelling.until is not None else ""
    return f"{spelling.version}{until}"


def _versions(texts: Iterable[str]) -> str:
    def key(text: str) -> list[str | int]:
        return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", text)]

    return ", ".join(sorted(set(texts), key=key))


def _direction(operator: Operator, target: str, spellings: tuple[Spelling, ...]) -> str:
    name = operator.name
    lowered = target == "ir" and name in {*sequences.LOWERED, *strings.LOWERED, *maps.LOWERED}
    if (target, name) in legalizations and not _has_rule(target, name):
        return "passes" if lowered else MISSING
    if operator.family == "control":
        return "body" if name in _function_bodies() else "passes"
    ways = ["row"] if spellings else []
    if operator.family == "state":
        ways.append("passes")
    if _has_rule(target, name):
        ways.append("rule")
    if lowered and operator.family in ("sequence", "ml"):
        ways.append("passes")
    if not ways and name.rpartition("::")[2] in _function_bodies():
        ways.append("body")
    return " ".join(ways) or MISSING


def _has_rule(target: str, name: str) -> bool:
    """Whether a rule does more than refuse the operator."""
    rule = legalizations.get((target, name))
    return rule is not None and rule.__annotations__["return"] is not NoReturn


@cache
def _function_bodies() -> set[str]:
    """The operators whose meaning the standard gives as a function body."""
    import onnx.defs

    return {
        schema.name
        for schema in onnx.defs.get_all_schemas()
        if schema.has_function or schema.has_context_dependent_function
    }


def _read_by_rules_alone() -> Iterator[tuple[str, str]]:
    """(format, type) of layers without a row: a rule reads them as other operators."""
    for format in ("onnx", "ir"):
        spelled = {s.type for o in operators().values() for s in getattr(o, format)}
        yield from ((f, type) for f, type in readers if f == format and type not in spelled)
