"""import-linter cannot see an import by string. So it stays within its own package, or the table
below lists it."""

import ast
from pathlib import Path

import bridge
from bridge import pipeline

ROOT = Path(bridge.__file__).parent

ELSEWHERE = {
    "__init__.py": "what the package is asked for by name",
    "check/engines/protocol.py": "engines, which are no part of Bridge",
    "pipeline.py": "packages below it",
}
"""Modules that import others by string, and the modules that they import."""


def leads_elsewhere(path: Path) -> bool:
    """Whether a module imports by string from outside its own package."""
    return any(
        isinstance(node, ast.Call)
        and ast.unparse(node.func).rpartition(".")[2] in ("import_module", "__import__")
        and (
            path.parent == ROOT or [ast.unparse(each) for each in node.args[1:]] != ["__package__"]
        )
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    )


def test_imports_by_string_stay_within_their_package() -> None:
    found = {str(path.relative_to(ROOT)) for path in ROOT.rglob("*.py") if leads_elsewhere(path)}
    assert found == set(ELSEWHERE)


def test_passes_are_below_the_pipeline() -> None:
    packages = {step.path.partition(".")[0] for step in (*pipeline.TO_IR, *pipeline.TO_ONNX)}
    assert packages <= {"passes", "quirks", "targets"}
