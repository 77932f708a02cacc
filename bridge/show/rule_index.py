"""Which operators have rules, read off the decorators without importing the rules."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

BRIDGE = Path(__file__).parent.parent


@dataclass(frozen=True)
class RuleIndex:
    """`expanded` holds (target, operator), and `refused` those of which the rule does nothing but
    say why not; `read` holds (format, type), `lowered` the operators on sequences, optionals, maps
    and strings that passes write in others."""

    expanded: set[tuple[str, str]] = field(default_factory=set)
    refused: set[tuple[str, str]] = field(default_factory=set)
    read: set[tuple[str, str]] = field(default_factory=set)
    lowered: set[str] = field(default_factory=set)


@cache
def rule_index() -> RuleIndex:
    """The decorators `@legalizes`, `@reads` and `@lowers` in `bridge/operators/` and the passes,
    and the tables LOWERED there.

    Of readers, those registered for a table that is computed from `mappings/` are left out.
    """
    index = RuleIndex()
    for path in (*BRIDGE.glob("operators/**/*.py"), *BRIDGE.glob("passes/**/*.py")):
        _Module(index, ast.parse(path.read_text(encoding="utf-8"))).scan()
    return index


class _Module:
    """One file: its statements, and what its names stand for."""

    def __init__(self, index: RuleIndex, tree: ast.Module) -> None:
        self.index = index
        self.tree = tree
        self.functions: dict[str, ast.FunctionDef] = {}
        self.names: dict[str, ast.expr] = {}
        for statement in tree.body:
            match statement:
                case ast.FunctionDef(name=name):
                    self.functions[name] = statement
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self.names[name] = value
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    self.names[name] = value

    def scan(self) -> None:
        """Adds all that the module registers."""
        self.index.lowered.update(_texts(self.names.get("LOWERED"), self.names))
        for statement in self.tree.body:
            match statement:
                case ast.FunctionDef():
                    self._decorated(statement, self.names)
                case ast.Expr(value=ast.Call(func=decorator)):
                    # A function of another module: `legalizes("Op", ...)(function)`.
                    self._decorator(decorator, self.names, False)

    def _decorated(self, function: ast.FunctionDef, names: Mapping[str, ast.expr]) -> None:
        # Nothing but a `raise` after the docstring.
        refuses = isinstance(function.body[-1], ast.Raise) and all(
            isinstance(statement, ast.Expr) for statement in function.body[:-1]
        )
        for decorator in function.decorator_list:
            self._decorator(decorator, names, refuses)

    def _decorator(self, decorator: ast.expr, names: Mapping[str, ast.expr], refuses: bool) -> None:
        if not isinstance(decorator, ast.Call) or not isinstance(decorator.func, ast.Name):
            return
        options = {
            keyword.arg: str(keyword.value.value)
            for keyword in decorator.keywords
            if isinstance(keyword.value, ast.Constant)
        }
        found = {text for argument in decorator.args for text in _texts(argument, names)}
        match decorator.func.id:
            case "legalizes":
                known = self.index.refused if refuses else self.index.expanded
                known.update((options["target"], name) for name in found)
            case "reads":
                self.index.read.update((options["format"], name) for name in found)
            case "lowers":
                self.index.lowered.update(found)
            case own if own in self.functions:
                # A decorator of the module's own, around a function that it registers.
                helper = self.functions[own]
                given = zip((a.arg for a in helper.args.args), decorator.args, strict=False)
                inner = {**names, **dict(given)}
                for statement in ast.walk(helper):
                    if isinstance(statement, ast.FunctionDef) and statement is not helper:
                        self._decorated(statement, inner)


def _texts(  # noqa: C901 (one case for each kind of expression)
    node: ast.expr | None, names: Mapping[str, ast.expr]
) -> Iterator[str]:
    """The strings in an argument: literals, and names of the module (of a dictionary its keys)."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=parts):
            inner = (part.value if isinstance(part, ast.FormattedValue) else part for part in parts)
            yield "".join(text for part in inner for text in _texts(part, names))
        case ast.Name(id=name):
            yield from _texts(names.get(name), names)
        case ast.Starred(value=inner_node):
            yield from _texts(inner_node, names)
        case ast.Dict(keys=keys):
            for key in keys:
                yield from _texts(key, names)
        case ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Set(elts=elements):
            for element in elements:
                yield from _texts(element, names)
        case ast.Call(args=arguments):
            for argument in arguments:
                yield from _texts(argument, names)
