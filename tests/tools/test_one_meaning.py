"""The name of a class, or of an alias of a type, has one meaning in the whole package."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import bridge

ROOT = Path(bridge.__file__).parent


def declared(path: Path) -> Iterator[tuple[str, str]]:
    """The classes and the type aliases of a module, each with a text that tells it from others."""
    name_of_module = str(path.relative_to(ROOT))
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef):
            yield node.name, name_of_module
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.col_offset == 0:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name) and is_type(target.id, node.value):
                    yield target.id, name_of_module


def is_type(name: str, value: ast.expr | None) -> bool:
    """Whether a name is a type alias: `CamelCase`, and not a variable of a generic function."""
    word = name.lstrip("_")
    is_variable = isinstance(value, ast.Call) and ast.unparse(value.func) == "TypeVar"
    return word[:1].isupper() and any(map(str.islower, word)) and not is_variable


def test_a_name_has_one_meaning() -> None:
    found = defaultdict(set)
    for path in sorted(ROOT.rglob("*.py")):
        for name, module in declared(path):
            found[name].add(module)
    assert {name: modules for name, modules in found.items() if len(modules) > 1} == {}
