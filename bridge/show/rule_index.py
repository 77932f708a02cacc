"""Which operators have rules, read off the decorators without importing the rules."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

BRIDGE = Path(__file__).parent.parent


@dataclass(frozen=True)
class RuleIndex:
    """`expanded` holds (target, operator), `read` holds (format, type), `lowered` the operators on
    sequences and optionals that have a form in tensors."""

    expanded: set[tuple[str, str]] = field(default_factory=set)
    read: set[tuple[str, str]] = field(default_factory=set)
    lowered: set[str] = field(default_factory=set)


@cache
def rule_index() -> RuleIndex:
    """The decorators `@expands`, `@reads` and `@lowers` in `bridge/rules/` and among the passes.

    Of readers, those registered for a table that is computed from `mappings/` are left out.
    """
    index = RuleIndex()
    for path in (*BRIDGE.glob("rules/*.py"), *BRIDGE.glob("passes/sequences/*.py")):
        module = ast.parse(path.read_text(encoding="utf-8"))
        tables = {
            target.id: statement.value
            for statement in module.body
            if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None
            for target in _targets(statement)
            if isinstance(target, ast.Name)
        }
        for statement in module.body:
            if not isinstance(statement, ast.FunctionDef):
                continue
            for decorator in statement.decorator_list:
                _add(index, decorator, tables)
    return index


def _targets(statement: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return statement.targets if isinstance(statement, ast.Assign) else [statement.target]


def _add(index: RuleIndex, decorator: ast.expr, tables: dict[str, ast.expr]) -> None:
    if not isinstance(decorator, ast.Call) or not isinstance(decorator.func, ast.Name):
        return
    keywords = {
        k.arg: k.value.value for k in decorator.keywords if isinstance(k.value, ast.Constant)
    }
    names = {name for argument in decorator.args for name in _names(argument, tables)}
    if decorator.func.id == "expands":
        index.expanded.update((str(keywords["target"]), name) for name in names)
    elif decorator.func.id == "reads":
        index.read.update((str(keywords["format"]), name) for name in names)
    elif decorator.func.id == "lowers":
        index.lowered.update(names)


def _names(node: ast.expr | None, tables: dict[str, ast.expr]) -> Iterator[str]:
    """The strings in an argument: a literal, or a starred table of the same module (of which a
    dictionary gives its keys)."""
    match node:
        case ast.Constant(value=str(name)):
            yield name
        case ast.Starred(value=ast.Name(id=name)) | ast.Name(id=name):
            yield from _names(tables.get(name), tables)
        case ast.Starred(value=inner):
            yield from _names(inner, tables)
        case ast.Dict(keys=keys):
            for key in keys:
                yield from _names(key, tables)
        case ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Set(elts=elements):
            for element in elements:
                yield from _names(element, tables)
        case ast.Call(args=arguments):
            for argument in arguments:
                yield from _names(argument, tables)
