"""Regular expressions read names and files of strangers, so each takes time in proportion to its
text. The texts repeat what an expression looks for, in part and in whole."""

from __future__ import annotations

import ast
import re
import re._constants as op
import re._parser as parser
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from time import process_time
from types import ModuleType
from typing import Any

import pytest

import bridge

SIZES = (4_000, 16_000)
BOUNDED = ("_BOTH",)
"""Expressions that get no text longer than some hundred characters."""
FREE = 0.02
"""Seconds that are too few to be compared."""

PACKAGE = Path(bridge.__file__).parent
CALLS = ("compile", "findall", "finditer", "fullmatch", "match", "search", "split", "sub")


def expressions() -> Iterator[tuple[str, re.Pattern[Any], str]]:
    """Each expression in the code that is no part of a function's values: its place, and the
    function that it is used with."""
    for file in sorted(PACKAGE.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        if not re.search(r"\bre\.\w+\(", text):
            continue
        name = ".".join(("bridge", *file.relative_to(PACKAGE).with_suffix("").parts))
        module = import_module(name.removesuffix(".__init__"))
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in [f"re.{c}" for c in CALLS]:
                found = evaluated(node.args[0], module)
                if found is None:
                    continue
                function = node.func.attr  # type: ignore[attr-defined]
                flags = [a for a in (*node.args[1:], *(k.value for k in node.keywords))]
                flags = [f for f in flags if ast.unparse(f).startswith("re.")]
                pattern = re.compile(found, evaluated(flags[0], module) if flags else 0)
                if any(vars(module).get(name) is pattern for name in BOUNDED):
                    continue
                for used in used_with(function, pattern, module, text):
                    yield f"{name}:{node.lineno}", pattern, used


def evaluated(node: ast.expr, module: ModuleType) -> Any:
    try:
        return eval(ast.unparse(node), dict(vars(module)))
    except NameError:  # of a variable
        return None


def used_with(
    function: str, pattern: re.Pattern[Any], module: ModuleType, text: str
) -> Iterable[str]:
    if function != "compile":
        return [function]
    names = [name for name, value in vars(module).items() if value is pattern]
    calls = {call for name in names for call in re.findall(rf"\b{name}\.(\w+)\(", text)}
    return sorted(calls & set(CALLS)) or ["match"]


def sample(parts: Iterable[Any]) -> str:
    """A text that the parts of an expression match, with each repetition once."""
    found = ""
    for kind, value in parts:
        if kind is op.LITERAL:
            found += chr(value)
        elif kind is op.NOT_LITERAL or kind is op.ANY:
            found += "a"
        elif kind is op.IN:
            found += of_class(value)
        elif kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
            found += sample(value[2])
        elif kind is op.SUBPATTERN:
            found += sample(value[3])
        elif kind is op.BRANCH:
            found += sample(value[1][0])
    return found


def of_class(items: list[Any]) -> str:
    pattern = "".join(chr(n) for n in range(32, 127))
    negated = items[0][0] is op.NEGATE
    compiled = [re.compile(parser_class(item)) for item in items[negated:]]
    fits = (c for c in "a1 " + pattern if any(e.match(c) for e in compiled) != negated)
    return next(fits, "a")


def parser_class(item: Any) -> str:
    kind, value = item
    if kind is op.RANGE:
        return f"[{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}]"
    if kind is op.LITERAL:
        return re.escape(chr(value))
    categories = {"DIGIT": r"\d", "SPACE": r"\s", "WORD": r"\w"}
    word = str(value).rpartition("CATEGORY_")[2]
    return categories[word.removeprefix("NOT_")].swapcase() if "NOT_" in word else categories[word]


def texts(pattern: re.Pattern[Any], size: int) -> Iterator[str]:
    """Repeated beginnings of what an expression matches, its alternatives and its single parts."""
    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode()
    stack, rows = [parser.parse(text, pattern.flags & re.VERBOSE)], []
    while stack:
        row = stack.pop()
        rows.append(list(row))
        for kind, value in row:
            if kind is op.BRANCH:
                stack += value[1]
            elif kind is op.SUBPATTERN:
                stack.append(value[3])
            elif kind in (op.MAX_REPEAT, op.MIN_REPEAT):
                stack.append(value[2])
    pumps = {sample(row[:end]) for row in rows for end in range(1, len(row) + 1)}
    pumps |= {sample([part]) for row in rows for part in row}
    for pump in sorted(pumps - {""}):
        yield (pump * size)[:size] + "\n\0"


def seconds(pattern: re.Pattern[Any], function: str, text: str) -> float:
    given = text if isinstance(pattern.pattern, str) else text.encode()
    call = getattr(pattern, function)
    began = process_time()
    found = call(given[:0], given) if function == "sub" else call(given)
    if function == "finditer":
        list(found)
    return process_time() - began


FOUND = list(expressions())


@pytest.mark.parametrize(
    ("pattern", "function"), [one[1:] for one in FOUND], ids=[place for place, *_ in FOUND]
)
def test_time_is_linear(pattern: re.Pattern[Any], function: str) -> None:
    for small, large in zip(*(texts(pattern, size) for size in SIZES), strict=True):
        assert any(  # other load may be the cause of a slow run
            (long := seconds(pattern, function, large)) < FREE
            or long < 8 * seconds(pattern, function, small)
            for _ in range(3)
        ), small[:80]


def test_expressions_are_found() -> None:
    assert len(FOUND) > 40
